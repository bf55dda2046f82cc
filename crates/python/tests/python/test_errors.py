"""Errors, their classes and fields."""

import os
import tempfile
import unittest

import marquetry as mq
import pyarrow
import pyarrow.parquet


class Errors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a.parquet")

    def test_what_is_not_there(self):
        with self.assertRaises(FileNotFoundError) as raised:
            mq.open(self.path)
        self.assertIsInstance(raised.exception, mq.NotFound)
        self.assertIsInstance(raised.exception, mq.Error)
        self.assertEqual(raised.exception.address, self.path)
        self.assertIn(self.path, str(raised.exception))
        self.assertNotIn(self.path, raised.exception.message)

    def test_a_broken_page_has_its_place(self):
        table = pyarrow.table({"a": range(1000), "b": [f"text {i}" for i in range(1000)]})
        pyarrow.parquet.write_table(
            table, self.path, compression="none", use_dictionary=False, write_page_checksum=True
        )
        with open(self.path, "r+b") as file:
            bytes = file.read()
            at = bytes.index(b"text 500")
            file.seek(at)
            file.write(b"TEXT")
        with self.assertRaises(mq.InvalidFile) as raised:
            for _ in mq.open(self.path).batches():
                pass
        error = raised.exception
        self.assertEqual((error.place.column, error.place.row_group), ("b", 0))
        self.assertEqual(error.address, self.path)
        # Through a stream it is the reader's own exception, with the same words.
        with self.assertRaises(Exception) as raised:
            pyarrow.table(mq.open(self.path))
        self.assertIn("column b", str(raised.exception))

    def test_no_parquet(self):
        with open(self.path, "wb") as file:
            file.write(b"PAR1 no, it is not")
        with self.assertRaises(mq.InvalidFile) as raised:
            mq.open(self.path)
        self.assertEqual(raised.exception.address, self.path)

    def test_arguments(self):
        pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), self.path)
        table = mq.open(self.path)
        for wrong in (lambda: table.select("b"), lambda: table.where("a =="), lambda: table.where("b = 1")):
            with self.assertRaises(mq.InvalidArgument):
                wrong()
        self.assertTrue(issubclass(mq.InvalidArgument, ValueError))
        target = self.path + ".csv"
        with self.assertRaises(mq.InvalidArgument) as raised:
            mq.copy(self.path, target, codec="zstd")
        self.assertEqual(raised.exception.option, "codec")
        with self.assertRaisesRegex(mq.InvalidArgument, "no option kodec"):
            mq.copy(self.path, target, kodec="zstd")
        with self.assertRaises(mq.InvalidArgument):
            mq.copy(self.path, target, limit=1.5)
        with self.assertRaises(mq.Unsupported):
            mq.copy(self.path, self.path + ".xml")
        with self.assertRaises(mq.Unsupported):
            mq.open("gopher://host/a")
        with self.assertRaises(TypeError):
            mq.open(7)
        self.assertFalse(os.path.exists(target))

    def test_a_value_that_does_not_fit(self):
        with open(self.path + ".csv", "w", encoding="utf-8") as file:
            file.write("a\n1\n300\n")
        with self.assertRaises(mq.ConversionError) as raised:
            pyarrow.parquet.write_table(pyarrow.table({"a": [1, 300]}), self.path)
            for _ in mq.open(self.path).types("a=tinyint").batches():
                pass
        self.assertEqual((raised.exception.place.row, raised.exception.place.column), (1, "a"))


if __name__ == "__main__":
    unittest.main()
