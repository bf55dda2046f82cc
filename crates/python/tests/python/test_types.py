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

    def test_strings_have_the_layout_that_is_wanted(self):
        """Values of each length, by PLAIN and by dictionaries, in columns of all shapes: in each layout what pyarrow makes of them."""
        texts = ["", None, "a", "twelve bytes", "żółw 🐢", "more than a view has, and so in a page", "ü" * 300] * 1000
        place = pyarrow.struct([("name", pyarrow.string()), ("tags", pyarrow.list_(pyarrow.large_string()))])
        of = {
            "text": pyarrow.array(texts),
            "bytes": pyarrow.array([None if it is None else it.encode() for it in texts]),
            "list": pyarrow.array([None if it is None else [it, None, "b"] for it in texts]),
            "fixed": pyarrow.array([[it, "x"] for it in texts], pyarrow.list_(pyarrow.string(), 2)),
            "map": pyarrow.array([[("k" * (at % 20), it)] for at, it in enumerate(texts)], pyarrow.map_(pyarrow.string(), pyarrow.string())),
            "place": pyarrow.array([None if it is None else {"name": it, "tags": [it]} for it in texts], place),
            "kind": pyarrow.array(texts).dictionary_encode(),
            "id": pyarrow.array(range(len(texts))),
        }
        wanted = pyarrow.table(of)
        kinds = {"string": ("string", "binary"), "large_string": ("large_string", "large_binary"), "string_view": ("string_view", "binary_view")}
        for stores in (True, False):
            for dictionary in (True, False):
                pyarrow.parquet.write_table(wanted, self.path, store_schema=stores, use_dictionary=dictionary, row_group_size=3000)
                table = mq.open(self.path)
                self.assertEqual(pyarrow.table(table).to_pydict(), wanted.to_pydict())
                for layout, (text, of_bytes) in kinds.items():
                    with self.subTest(stores=stores, dictionary=dictionary, layout=layout):
                        changed = table.strings(layout)
                        read = pyarrow.table(changed)
                        read.validate(full=True)
                        self.assertEqual(read.to_pydict(), wanted.to_pydict())
                        self.assertEqual(read.schema, pyarrow.schema(changed.schema))
                        for name, kind in (("text", text), ("bytes", of_bytes)):
                            self.assertEqual(str(read.schema.field(name).type), kind)
                        self.assertEqual(str(read.schema.field("list").type.value_type), text)
                        self.assertEqual(str(read.schema.field("map").type.key_type), text)
                        self.assertEqual(str(read.schema.field("place").type.field("tags").type.value_type), text)
                        # Who had dictionaries has them, and numbers are what they are.
                        self.assertEqual(pyarrow.types.is_dictionary(read.schema.field("kind").type), stores)
                        self.assertEqual(read.schema.field("id").type, pyarrow.int64())
                        batches = [pyarrow.record_batch(batch) for batch in changed.batches()]
                        self.assertTrue(pyarrow.Table.from_batches(batches).equals(read))
        with self.assertRaises(mq.InvalidArgument) as raised:
            mq.open(self.path).strings("varchar")
        self.assertIn("string_view", str(raised.exception))

    def test_a_schema_that_is_asked_for_is_given_as_far_as_it_can_be(self):
        kinds = pyarrow.schema(
            [
                ("text", pyarrow.string_view()),
                ("bytes", pyarrow.large_binary()),
                ("list", pyarrow.large_list(pyarrow.large_string())),
                ("place", pyarrow.struct([("name", pyarrow.string_view())])),
                ("kind", pyarrow.string()),
                ("id", pyarrow.int32()),
            ]
        )
        table = pyarrow.table(
            {
                "text": ["a", None],
                "bytes": [b"a", None],
                "list": [["a"], None],
                "place": [{"name": "a"}, None],
                "kind": pyarrow.array(["a", None]).dictionary_encode(),
                "id": [1, 2],
            }
        )
        pyarrow.parquet.write_table(table, self.path)
        rows = mq.open(self.path)

        def stream(of, schema):
            return pyarrow.RecordBatchReader._import_from_c_capsule(of.__arrow_c_stream__(schema.__arrow_c_schema__()))

        for of in (rows, rows.batches()):
            read = stream(of, kinds).read_all()
            # No other number: that would be more than another layout.
            given = kinds.set(5, pyarrow.field("id", pyarrow.int64()))
            self.assertEqual(read.schema.types, given.types)
            self.assertEqual(read.to_pydict(), table.to_pydict())
            read.validate(full=True)
        # Which the caller makes of it.
        self.assertEqual(pyarrow.table(rows, schema=kinds).schema.types, kinds.types)
        self.assertEqual(pyarrow.table(rows).schema.types, table.schema.types)
        plain = kinds.set(0, pyarrow.field("text", pyarrow.dictionary(pyarrow.int16(), pyarrow.string())))
        self.assertEqual(stream(rows, plain).read_all().schema.types[0], plain.types[0])
        # Other columns are others.
        batches = rows.batches()
        for wrong in (kinds.remove(0), kinds.set(0, pyarrow.field("other", pyarrow.string())), pyarrow.schema([])):
            for of in (rows, batches):
                with self.assertRaises(mq.InvalidArgument):
                    of.__arrow_c_stream__(wrong.__arrow_c_schema__())
        # Nothing is lost by that.
        self.assertEqual(pyarrow.table(batches).num_rows, 2)
        for wrong in (7, rows.__arrow_c_stream__(), pyarrow.int64().__arrow_c_schema__()):
            with self.assertRaises((TypeError, ValueError)):
                rows.__arrow_c_stream__(wrong)

    def test_text_that_is_none_is_an_error_in_each_layout(self):
        """pyarrow writes what it is told is text."""
        for bad in (b"\xff", b"more than twelve \xc5", b"ends in a half \xc5", b"\xbc begins with one"):
            values = [b"good"] * 100 + [bad] + [b"some more text after it"] * 100
            raw = pyarrow.array(values, pyarrow.binary())
            text = pyarrow.Array.from_buffers(pyarrow.string(), len(raw), raw.buffers())
            pyarrow.parquet.write_table(pyarrow.table({"text": text}), self.path)
            for layout in ("string", "large_string", "string_view"):
                with self.subTest(bad=bad, layout=layout):
                    with self.assertRaises(mq.InvalidFile) as raised:
                        list(mq.open(self.path).strings(layout).batches())
                    self.assertEqual((raised.exception.place.column, raised.exception.place.row), ("text", 100))

    def test_what_is_copied_from_few_values_comes_in_small_batches(self):
        """Values of a dictionary, and the places of null lists, of which a batch's size in the file says nothing."""
        rows, texts = 30_000, ["x" * 1_000, "y" * 1_000]
        keys = pyarrow.array([i % 2 for i in range(rows)], pyarrow.int8())
        table = pyarrow.table({"text": pyarrow.DictionaryArray.from_arrays(keys, texts)})
        mq.write(table, self.path)
        plain = pyarrow.schema({"text": pyarrow.string()})
        sizes = [batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(mq.open(self.path), plain)]
        self.assertEqual((sum(sizes), max(sizes)), (rows, 8_192))
        lists = pyarrow.nulls(rows, pyarrow.list_(pyarrow.float32(), 64))
        mq.write(pyarrow.table({"list": lists}), self.path, overwrite=True)
        read = pyarrow.RecordBatchReader.from_stream(mq.open(self.path))
        sizes = [(batch.num_rows, batch["list"].null_count) for batch in read]
        self.assertEqual((sum(size for size, _ in sizes), max(sizes)), (rows, (8_192, 8_192)))

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
