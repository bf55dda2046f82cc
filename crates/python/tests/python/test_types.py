"""Every type through Python and back."""

import datetime
import decimal
import glob
import os
import tempfile
import unittest

import marquetry as mq
import pyarrow
import pyarrow.parquet

D = decimal.Decimal


def columns():
    """Arrow's types that Parquet has, each with its least and greatest values, and nulls."""
    integers = {}
    for bits in (8, 16, 32, 64):
        integers[f"int{bits}"] = ([-(2 ** (bits - 1)), None, 2 ** (bits - 1) - 1], getattr(pyarrow, f"int{bits}")())
        integers[f"uint{bits}"] = ([0, None, 2**bits - 1], getattr(pyarrow, f"uint{bits}")())
    moments = [datetime.datetime(1, 1, 1), None, datetime.datetime(9999, 12, 31, 23, 59, 59)]
    near = [datetime.datetime(1700, 1, 1), None, datetime.datetime(2200, 12, 31, 23, 59, 59)]
    place = pyarrow.struct([("lat", pyarrow.float64()), ("tags", pyarrow.list_(pyarrow.string()))])
    return {
        **integers,
        "bool": ([True, None, False], pyarrow.bool_()),
        "float16": ([1.5, None, -2.25], pyarrow.float16()),
        "float32": ([1.5, None, float("inf")], pyarrow.float32()),
        "float64": ([1e300, None, float("-inf")], pyarrow.float64()),
        "decimal9": ([D("-9999999.99"), None, D("0.01")], pyarrow.decimal128(9, 2)),
        "decimal18": ([D("-9999999999999999.99"), None, D("0.01")], pyarrow.decimal128(18, 2)),
        "decimal38": ([D("-" + "9" * 38), None, D("1")], pyarrow.decimal128(38, 0)),
        "decimal76": ([D("-" + "9" * 76), None, D("1")], pyarrow.decimal256(76, 0)),
        "date": ([datetime.date(1, 1, 1), None, datetime.date(9999, 12, 31)], pyarrow.date32()),
        "time_ms": ([datetime.time(0), None, datetime.time(23, 59, 59, 999_000)], pyarrow.time32("ms")),
        "time_us": ([datetime.time(0), None, datetime.time(23, 59, 59, 999_999)], pyarrow.time64("us")),
        "time_ns": ([0, None, 86_399_999_999_999], pyarrow.time64("ns")),
        "timestamp_ms": (moments, pyarrow.timestamp("ms")),
        "timestamp_us": (moments, pyarrow.timestamp("us", "UTC")),
        "timestamp_ns": (near, pyarrow.timestamp("ns")),
        "timestamp_zone": (near, pyarrow.timestamp("us", "Europe/Rome")),
        "duration": ([datetime.timedelta(days=-1), None, datetime.timedelta(0)], pyarrow.duration("us")),
        "string": (["", None, "żółw 🐢"], pyarrow.string()),
        "large_string": (["", None, "x" * 1000], pyarrow.large_string()),
        "string_view": (["", None, "x" * 1000], pyarrow.string_view()),
        "binary": ([b"", None, bytes(range(256))], pyarrow.binary()),
        "large_binary": ([b"", None, b"\0"], pyarrow.large_binary()),
        "fixed": ([b"abc", None, b"\0\0\0"], pyarrow.binary(3)),
        "uuid": ([b"0123456789abcdef", None, b"\0" * 16], pyarrow.binary(16)),
        "null": ([None, None, None], pyarrow.null()),
        "dictionary": (["a", None, "a"], pyarrow.dictionary(pyarrow.int32(), pyarrow.string())),
        "list": ([[1, None], None, []], pyarrow.list_(pyarrow.int64())),
        "large_list": ([[1, None], None, []], pyarrow.large_list(pyarrow.int64())),
        "fixed_list": ([[1, 2], None, [3, None]], pyarrow.list_(pyarrow.int32(), 2)),
        "deep_list": ([[[1], None, []], None, [[None, 2]]], pyarrow.list_(pyarrow.list_(pyarrow.int64()))),
        "map": ([[("a", 1), ("b", None)], None, []], pyarrow.map_(pyarrow.string(), pyarrow.int64())),
        "struct": ([{"lat": 1.5, "tags": ["a", None]}, None, {"lat": None, "tags": []}], place),
        "structs": ([[{"lat": 1.5, "tags": None}], None, [None]], pyarrow.list_(place)),
    }


class Types(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a.parquet")

    def test_each_type_there_and_back(self):
        for name, (values, kind) in columns().items():
            with self.subTest(name):
                table = pyarrow.table({name: pyarrow.array(values, kind)})
                mq.write(table, self.path, overwrite=True, verify=True)
                # What we write: by us, with the same type, and by pyarrow.
                self.assertTrue(pyarrow.table(mq.open(self.path)).equals(table), name)
                # The last pyarrow for CPython 3.9 does not read nulls of lists of a fixed size.
                if name != "fixed_list" or int(pyarrow.__version__.split(".")[0]) > 21:
                    theirs = pyarrow.parquet.read_table(self.path)
                    self.assertEqual(theirs[name].to_pylist(), table[name].to_pylist())
                # What pyarrow writes, by us.
                if name not in ("fixed_list",):
                    pyarrow.parquet.write_table(table, self.path)
                    read = pyarrow.table(mq.open(self.path))
                    self.assertEqual(read[name].to_pylist(), table[name].to_pylist())

    def test_what_parquet_lacks_is_refused(self):
        kinds = {
            "union": pyarrow.UnionArray.from_sparse(
                pyarrow.array([0, 1], pyarrow.int8()), [pyarrow.array([1, 2]), pyarrow.array(["a", "b"])]
            ),
            "list_view": pyarrow.array([[1], [2]], pyarrow.list_view(pyarrow.int64())),
            "run_end": pyarrow.RunEndEncodedArray.from_arrays([1, 2], ["a", "b"]),
        }
        for name, values in kinds.items():
            with self.subTest(name):
                with self.assertRaises((mq.Unsupported, mq.InvalidArgument)) as raised:
                    mq.write(pyarrow.table({name: values}), self.path)
                self.assertIn(name, str(raised.exception))
                self.assertFalse(os.path.exists(self.path))

    def test_a_slice_is_what_is_written(self):
        all = columns()
        table = pyarrow.table({name: pyarrow.array(values * 5, kind) for name, (values, kind) in all.items()})
        table = table.slice(4, 7)
        mq.write(table, self.path)
        self.assertTrue(pyarrow.table(mq.open(self.path)).equals(table))

    @unittest.skipUnless(os.environ.get("MARQUETRY_FILES"), "it needs files of others")
    def test_files_of_others_go_through_arrow_and_back(self):
        equal = 0
        for path in sorted(glob.glob(os.path.join(os.environ["MARQUETRY_FILES"], "parquet-testing", "data", "*.parquet"))):
            with self.subTest(os.path.basename(path)):
                try:
                    table = mq.open(path)
                    if (table.num_bytes or 0) > 1 << 20:
                        continue
                    arrow = pyarrow.table(table)
                except (mq.Error, pyarrow.ArrowException):
                    # What Arrow has no type for, what is encrypted, and what is broken: said, and not bent.
                    continue
                mq.write(arrow, self.path, overwrite=True)
                if os.path.basename(path) == "map_no_value.parquet":
                    # A map without values is a list to Arrow.
                    continue
                differences = mq.diff(path, self.path)
                self.assertTrue(differences.are_rows_equal, (differences, differences.columns_changed, differences.columns_incomparable))
                equal += 1
        self.assertGreater(equal, 40)


if __name__ == "__main__":
    unittest.main()
