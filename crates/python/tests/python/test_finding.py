"""Look-ups by keys."""

import datetime
import decimal
import os
import tempfile
import unittest
import uuid

import marquetry as mq
import numpy
import pandas
import pyarrow
import pyarrow.parquet

ROWS = 20_000


class Finding(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "keys.parquet")
        start = datetime.datetime(2024, 2, 29, 12)
        self.columns = {
            "id": pyarrow.array(range(ROWS), pyarrow.int64()),
            "It's \"a\" name": [f"it's {i}" for i in range(ROWS)],
            "half": pyarrow.array([i / 2 for i in range(ROWS)], pyarrow.float64()),
            "single": pyarrow.array([i / 10 for i in range(ROWS)], pyarrow.float32()),
            "price": pyarrow.array([decimal.Decimal(i).scaleb(-2) for i in range(ROWS)], pyarrow.decimal128(12, 2)),
            "blob": [i.to_bytes(4, "big") for i in range(ROWS)],
            "at": pyarrow.array(
                [(start + datetime.timedelta(milliseconds=i)).replace(tzinfo=datetime.timezone.utc) for i in range(ROWS)],
                pyarrow.timestamp("us", "UTC"),
            ),
            "local": pyarrow.array([start + datetime.timedelta(microseconds=i) for i in range(ROWS)], pyarrow.timestamp("us")),
            "day": pyarrow.array([datetime.date(1970, 1, 1) + datetime.timedelta(days=i) for i in range(ROWS)]),
            "clock": pyarrow.array(
                [(datetime.datetime.min + datetime.timedelta(seconds=i)).time() for i in range(ROWS)], pyarrow.time64("us")
            ),
            "even": [i % 2 == 0 for i in range(ROWS)],
            "uuid": pyarrow.ExtensionArray.from_storage(
                pyarrow.uuid(), pyarrow.array([uuid.UUID(int=i).bytes for i in range(ROWS)], pyarrow.binary(16))
            ),
            "bucket": pyarrow.array([i // 100 for i in range(ROWS)], pyarrow.int32()),
        }
        self.table = pyarrow.table(self.columns)
        pyarrow.parquet.write_table(self.table, self.path, row_group_size=7_000)

    def ids(self, found):
        return pyarrow.table(found)["id"].to_pylist()

    def test_keys_of_every_type(self):
        for name, values in self.columns.items():
            if name in ("even", "bucket"):
                continue
            finder = mq.Finder(self.path, name, columns=["id"])
            values = self.table[name]
            for at in (0, 6_999, 7_000, 12_345, ROWS - 1):
                self.assertEqual(self.ids(finder.find(values[at].as_py())), [at], name)
                self.assertEqual(self.ids(finder.find(values[at])), [at], name)
            self.assertEqual(self.ids(finder.find(values[3].as_py(), values[12_345].as_py())), [3, 12_345], name)
            self.assertIn(values[77].as_py(), finder)

    def test_numpys_values(self):
        find = lambda name, value: self.ids(mq.Finder(self.path, name).find(value))
        self.assertEqual(find("id", numpy.int16(77)), [77])
        self.assertEqual(find("half", numpy.float32(38.5)), [77])
        self.assertEqual(find("single", numpy.float32(7.7)), [77])
        self.assertEqual(find("local", numpy.datetime64("2024-02-29T12:00:00.000077000", "ns")), [77])
        self.assertEqual(len(find("even", numpy.bool_(True))), ROWS // 2)
        self.assertEqual(find("It's \"a\" name", numpy.str_("it's 77")), [77])
        with self.assertRaises(mq.InvalidArgument):
            find("half", numpy.longdouble("38.5"))
        for value in (numpy.datetime64("NaT"), numpy.timedelta64(7, "s")):
            with self.assertRaises(mq.InvalidArgument):
                find("local", value)

    def test_what_is_absent(self):
        finder = mq.Finder(mq.open(self.path), "id")
        self.assertEqual(self.ids(finder.find(ROWS)), [])
        self.assertEqual(finder.find(-1).columns, self.table.column_names)
        self.assertNotIn(ROWS, finder)
        self.assertNotIn(0.5, finder)
        self.assertIn("by id", repr(finder))

    def test_names_with_dots_and_quotes(self):
        table = pyarrow.table({"a.b": [1, 2], 'c"d': [3, 4], "s": [{"t": 5}, {"t": 6}]})
        pyarrow.parquet.write_table(table, self.path)
        for key, value in (("a.b", 2), ('"a.b"', 2), ('c"d', 4), ('"c""d"', 4), ("s.t", 6)):
            finder = mq.Finder(self.path, key)
            self.assertEqual(pyarrow.table(finder.find(value))["a.b"].to_pylist(), [2], key)
            self.assertIn(value, finder)
        both = mq.Finder(self.path, ["a.b", "s.t"])
        self.assertTrue((1, 5) in both and (1, 6) not in both)

    def test_keys_of_several_columns(self):
        finder = mq.Finder(self.path, ["bucket", "even", "id"], columns=["id"])
        self.assertEqual(finder.key, ["bucket", "even", "id"])
        self.assertEqual(self.ids(finder.find((3, False, 301), (3, True, 301), (3, True, 302))), [301, 302])
        self.assertIn((199, False, 19_999), finder)
        for key in (3, (3,), (3, True), [3, True, 302, 1]):
            with self.assertRaises(mq.InvalidArgument):
                finder.find(key)

    def test_what_is_refused(self):
        finder = mq.Finder(self.path, "id")
        for key in (None, object(), [1], {}, 1j, decimal.Decimal("NaN")):
            with self.assertRaises(mq.InvalidArgument):
                finder.find(key)
            with self.assertRaises(mq.InvalidArgument):
                key in finder
        with self.assertRaises(mq.InvalidArgument):
            finder.find()
        with self.assertRaises(mq.InvalidArgument):
            mq.Finder(self.path, [])
        with self.assertRaises(mq.InvalidArgument):
            mq.Finder(self.path, "missing")
        with self.assertRaises(mq.NotFound):
            mq.Finder(self.path + ".none", "id")
        # Nothing in a text ends it, and nothing that is no text becomes one.
        texts = mq.Finder(self.path, "It's \"a\" name", columns=["id"])
        with self.assertRaises(mq.InvalidArgument):
            texts.find(pandas.NaT)
        self.assertEqual(self.ids(texts.find("' OR id = 7 OR '' = '")), [])


if __name__ == "__main__":
    unittest.main()
