"""Rows that are written, copied and compared."""

import os
import tempfile
import unittest

import duckdb
import marquetry as mq
import pandas
import polars
import pyarrow
import pyarrow.parquet


class Writing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.table = pyarrow.table({"id": list(range(20_000)), "name": [f"n{i % 99}" for i in range(20_000)]})

    def path(self, name):
        return os.path.join(self.folder, name)

    def test_anything_with_a_stream_is_written(self):
        frame = polars.from_arrow(self.table)
        sources = {
            "pyarrow": self.table,
            "reader": self.table.to_reader(max_chunksize=777),
            "batch": self.table.combine_chunks().to_batches()[0],
            "polars": frame,
            "pandas": self.table.to_pandas(),
            "duckdb": duckdb.from_arrow(self.table),
        }
        for name, rows in sources.items():
            with self.subTest(name):
                path = self.path(f"{name}.parquet")
                written = mq.write(rows, path, codec="zstd", row_group_rows=8_000)
                self.assertEqual((written.rows, written.rows_written, written.row_groups), (20_000, 20_000, 3))
                read = pyarrow.parquet.read_table(path, columns=["id", "name"])
                self.assertTrue(read.cast(self.table.schema).equals(self.table))
                codecs = pyarrow.parquet.read_metadata(path).row_group(0).column(0).compression
                self.assertEqual(codecs, "ZSTD")

    def test_a_table_is_written(self):
        mq.write(self.table, self.path("a.parquet"))
        some = mq.open(self.path("a.parquet")).where("id < 10")
        self.assertEqual(mq.write(some, self.path("b.csv"), columns=["name", "id"], sort="id desc").rows, 10)
        with open(self.path("b.csv"), encoding="utf-8") as text:
            self.assertEqual(text.read().splitlines()[:2], ["name,id", "n9,9"])

    def test_a_stream_is_taken_once(self):
        reader = self.table.to_reader()
        mq.write(reader, self.path("a.parquet"))

        class Once:
            def __init__(self, capsule):
                self.capsule = capsule

            def __arrow_c_stream__(self, requested_schema=None):
                return self.capsule

        once = Once(self.table.__arrow_c_stream__())
        mq.write(once, self.path("b.parquet"))
        with self.assertRaises(mq.InvalidArgument):
            mq.write(once, self.path("c.parquet"))
        with self.assertRaises(TypeError):
            mq.write([1, 2], self.path("c.parquet"))
        with self.assertRaises(TypeError):
            mq.write("a.parquet", self.path("c.parquet"))
        self.assertEqual(sorted(os.listdir(self.folder)), ["a.parquet", "b.parquet"])

    def test_rows_with_nulls_go_everywhere(self):
        """Values between nulls stay where they are: sorted, filtered, as text and as SSTables."""
        names = [None if i % 3 else f"n{i}" for i in range(3000)]
        fares = [None if i % 5 == 1 else i / 4 for i in range(3000)]
        rows = pyarrow.table({"id": range(3000), "name": names, "fare": fares})
        wanted = [(i, names[i], fares[i]) for i in range(3000)]

        def read(address, **options):
            columns = pyarrow.table(mq.open(address, **options).select("id", "name", "fare")).to_pydict()
            return list(zip(columns["id"], columns["name"], columns["fare"]))

        mq.write(rows, self.path("a.parquet"), sort="id desc", verify=True)
        self.assertEqual(read(self.path("a.parquet")), wanted[::-1])
        mq.write(rows, self.path("b.parquet"), where="fare > 100 AND name IS NOT NULL")
        self.assertEqual(read(self.path("b.parquet")), [row for row in wanted if row[1] and (row[2] or 0) > 100])
        mq.write(rows, self.path("c.csv"))
        self.assertEqual(read(self.path("c.csv")), wanted)
        mq.write(rows, "sstable:" + self.path("t"), table="ks.t", key="id")
        self.assertEqual(sorted(read("sstable:" + self.path("t"), mapping="logical")), wanted)

    def test_rows_that_are_null_are_refused(self):
        rows = pyarrow.chunked_array([pyarrow.array([{"a": 1}, None, {"a": 3}])])
        with self.assertRaisesRegex(mq.Error, "1 of 3 rows are null"):
            mq.write(rows, self.path("a.parquet"))
        with self.assertRaisesRegex(mq.InvalidArgument, "Int64, not of rows"):
            mq.write(pyarrow.chunked_array([[1, 2]]), self.path("a.parquet"))
        self.assertEqual(os.listdir(self.folder), [])
        rows = pyarrow.chunked_array([pyarrow.array([{"a": 1}, {"a": None}])])
        self.assertEqual(mq.write(rows, self.path("a.parquet")).rows, 2)

    def test_arrays_that_contradict_themselves_are_refused(self):
        for keys in ([0, 7], [-1, 0], [0, 2]):
            for values in (pyarrow.array(["a", "b"]), pyarrow.array(["a", None])):
                broken = pyarrow.DictionaryArray.from_arrays(pyarrow.array(keys), values, safe=False)
                with self.subTest((keys, values)), self.assertRaises(mq.Error):
                    mq.write(pyarrow.table({"a": broken}), self.path("a.parquet"))
        # A key of what is null is nobody's.
        keys = pyarrow.DictionaryArray.from_arrays(pyarrow.array([1, None, 0], pyarrow.int8()), pyarrow.array(["a", "b"]))
        mq.write(pyarrow.table({"a": keys}), self.path("b.parquet"))
        self.assertEqual(pyarrow.parquet.read_table(self.path("b.parquet"))["a"].to_pylist(), ["b", None, "a"])

        class Two:
            """A schema of two columns, and one array."""

            def __arrow_c_array__(self, requested_schema=None):
                one = pyarrow.record_batch({"a": [1]})
                return (pyarrow.record_batch({"a": [1], "b": [2]}).__arrow_c_array__()[0], one.__arrow_c_array__()[1])

        with self.assertRaises(mq.InvalidArgument):
            mq.write(Two(), self.path("c.parquet"))

        class Streamed(Two):
            """The same as a stream."""

            def __arrow_c_stream__(self, requested_schema=None):
                two = pyarrow.schema({"a": pyarrow.int64(), "b": pyarrow.int64()})
                return pyarrow.RecordBatchReader.from_batches(two, [pyarrow.record_batch({"a": [1]})]).__arrow_c_stream__()

        with self.assertRaisesRegex(mq.Error, "contradict each other|columns"):
            mq.write(Streamed(), self.path("c.parquet"))
        self.assertEqual(os.listdir(self.folder), ["b.parquet"])

    def test_names_with_commas_are_quoted(self):
        mq.write(pyarrow.table({"a, b": [2, 1], "a": [3, 4]}), self.path("a.parquet"))
        with self.assertRaisesRegex(mq.InvalidArgument, "in double quotes"):
            mq.copy(self.path("a.parquet"), self.path("b.parquet"), columns=["a, b"])
        mq.copy(self.path("a.parquet"), self.path("b.parquet"), columns=['"a, b"'])
        self.assertEqual(pyarrow.parquet.read_table(self.path("b.parquet")).column_names, ["a, b"])

    def test_nothing_is_left_of_rows_that_fail(self):
        def batches():
            yield from self.table.to_batches(max_chunksize=5_000)
            raise RuntimeError("the well is dry")

        reader = pyarrow.RecordBatchReader.from_batches(self.table.schema, batches())
        with self.assertRaisesRegex(mq.InputOutputError, "the well is dry"):
            mq.write(reader, self.path("a.parquet"))
        self.assertEqual(os.listdir(self.folder), [])

    def test_copies(self):
        mq.write(self.table, self.path("a.parquet"))
        seen = []
        copied = mq.copy(self.path("a.parquet"), self.path("b.csv.gz"), verify=True, progress=seen.append)
        self.assertEqual((copied.rows, copied.rows_verified, copied.rows_total), (20_000, 20_000, 20_000))
        self.assertEqual(seen[-1].rows, 20_000)
        mq.copy(self.path("b.csv.gz"), self.path("many/"), partition_by=["name"], types="name=text")
        self.assertEqual(len(os.listdir(self.path("many"))), 99)
        differences = mq.diff(self.path("many/"), self.table, key=["id"])
        self.assertTrue(differences.are_rows_equal, differences)
        with self.assertRaises(mq.AlreadyExists):
            mq.copy(self.path("a.parquet"), self.path("b.csv.gz"))
        mq.copy(self.path("a.parquet"), self.path("b.csv.gz"), overwrite=True, limit=3, threads=1)
        self.assertEqual(mq.open(self.path("b.csv.gz")).count(), 3)
        mq.copy([self.path("a.parquet")], self.path("c.txt"), to="jsonl", where="id = 7")
        with open(self.path("c.txt"), encoding="utf-8") as text:
            self.assertEqual(text.read(), '{"id":7,"name":"n7"}\n')

    def test_sstables_there_and_back(self):
        to = "sstable:" + self.path("table")
        mq.write(self.table, to, key="id", table="ks.t", format="nb", timestamp=1_700_000_000_000_000, ttl=100_000_000)
        self.assertTrue(any(name.startswith("nb-1-big-Data.db") for name in os.listdir(self.path("table"))))
        writes = pyarrow.table(mq.open(to).limit(5))
        self.assertIn("mutation", writes.column_names)
        rows = mq.open(to, mapping="logical", at=1_700_000_001)
        self.assertEqual(rows.columns, ["id", "name"])
        frame = sorted(pyarrow.table(rows).to_pylist(), key=lambda row: row["id"])
        self.assertEqual(frame, self.table.to_pylist())
        # Nothing is alive once all has expired.
        self.assertEqual(mq.open(to, mapping="logical", at=2_100_000_001).count(), 0)
        some = mq.open(to, mapping="logical", at=1_700_000_001, token_range=":0").count()
        self.assertTrue(0 < some < 20_000)
        with self.assertRaises(mq.InvalidArgument) as caught:
            mq.copy(to, "sstable:" + self.path("other"), columns="id")
        self.assertEqual(caught.exception.option, "columns")
        self.assertFalse(os.path.exists(self.path("other")))

    def test_text_is_read_as_it_is_said_to_be(self):
        with open(self.path("a.txt"), "w", encoding="latin1") as text:
            text.write("a line about it\nid;fare;place\n1;2,5;Åre\n2;NA;-\n")
        options = {"from_": "csv", "delimiter": ";", "decimal": ",", "skip": 1, "null": ["NA", "-"], "text_encoding": "latin1"}
        wanted = [{"id": 1, "fare": 2.5, "place": "Åre"}, {"id": 2, "fare": None, "place": None}]
        self.assertEqual(pyarrow.table(mq.open(self.path("a.txt"), **options)).to_pylist(), wanted)
        mq.copy(self.path("a.txt"), self.path("a.parquet"), types="id=int", **options)
        self.assertEqual(pyarrow.parquet.read_table(self.path("a.parquet")).to_pylist(), wanted)
        for wrong in ({"delimiter": ";"}, {"sort": "id"}, {"mapping": "full"}, {"delimitre": ";"}):
            with self.assertRaises(mq.InvalidArgument):
                mq.open(self.path("a.parquet"), **wrong)
        with self.assertRaises(mq.InvalidArgument):
            mq.write(self.table, self.path("b.parquet"), delimiter=";")

    def refused(self, option, action):
        with self.assertRaises(mq.InvalidArgument) as raised:
            action()
        self.assertEqual(raised.exception.option, option, raised.exception)
        self.assertNotIn("tiger", f"{raised.exception} {raised.exception!r}")
        return str(raised.exception)

    def test_what_is_open_is_not_opened_by_the_options_of_a_copy(self):
        with open(self.path("a.csv"), "w", encoding="ascii") as text:
            text.write("id;fare\n1;2.5\n")
        mq.write(self.table, "sstable:" + self.path("t"), key="id", table="ks.t")
        text, sstables = mq.open(self.path("a.csv"), delimiter=";"), mq.open("sstable:" + self.path("t"), mapping="logical")
        for source, options in (
            (text, {"delimiter": ","}),
            (text, {"union": True}),
            (text, {"from_": "csv"}),
            (sstables, {"mapping": "full"}),
            (sstables, {"token_range": ":0"}),
            (self.table, {"hive": "off"}),
        ):
            with self.subTest(options):
                (option,) = options
                said = self.refused(option, lambda: mq.copy(source, self.path("b.parquet"), **options))
                self.assertIn("when a table is opened", said)
        # These mean nothing there, whoever opens it.
        for options in ({"rate": "1K"}, {"with_metadata": True}, {"mapping": "full"}):
            self.refused(*options, lambda: mq.copy(text, self.path("b.parquet"), **options))
        self.assertFalse(os.path.exists(self.path("b.parquet")))
        # Limits are those of what is written, too.
        self.assertEqual(mq.copy(text, self.path("b.parquet"), trust=True).rows, 1)

    def test_a_login_reaches_one_cluster_only(self):
        # Nobody is asked: nobody listens there.
        a, b = "cql://127.0.0.1:9/ks.a", "cql://127.0.0.1:8/ks.b"
        for option in ("user", "password", "password_file"):
            said = self.refused(option, lambda: mq.copy(a, b, **{option: "tiger"}))
            self.assertIn("put the logins into the addresses", said)
        mq.write(self.table, self.path("a.parquet"))
        for action in (
            lambda: mq.open(a, bundle="b.zip"),
            lambda: mq.copy(a, b, bundle="b.zip"),
            lambda: mq.copy(a, self.path("b.parquet"), bundle="b.zip"),
            lambda: mq.copy(self.path("a.parquet"), b, bundle="b.zip"),
            lambda: mq.write(self.table, b, bundle="b.zip"),
        ):
            self.assertIn("has no host", self.refused("bundle", action))
        # With a cluster that has no host beside it, it is looked for.
        with self.assertRaises(mq.Error) as raised:
            mq.copy("cql:///ks.a", b, bundle=self.path("none.zip"))
        self.assertIsInstance(raised.exception, mq.NotFound)

    def test_errors_are_counted_where_rows_are_put_aside(self):
        self.assertIn("rejects", self.refused("max_errors", lambda: mq.write(self.table, "cql://127.0.0.1:9/ks.t", max_errors=5)))

    def test_a_stream_of_which_some_is_copied_is_let_go_of(self):
        ended = []

        def batches():
            try:
                for at in range(1_000_000):
                    yield pyarrow.record_batch({"id": [at] * 1000})
            finally:
                ended.append(True)

        schema = pyarrow.schema([("id", pyarrow.int64())])
        rows = batches()
        reader = pyarrow.RecordBatchReader.from_batches(schema, rows)
        del rows
        # What is left of it goes with its last owner, who must not be a thread of ours when this is done.
        capsule = reader.__arrow_c_stream__()
        del reader

        class Once:
            def __arrow_c_stream__(self, requested_schema=None):
                nonlocal capsule
                taken, capsule = capsule, None
                return taken

        self.assertEqual(mq.write(Once(), self.path("a.parquet"), limit=1500).rows, 1500)
        self.assertEqual(ended, [True])

    def test_what_a_progress_raises_ends_the_copy(self):
        class Enough(Exception):
            pass

        def slow():
            import time

            for batch in self.table.to_batches(max_chunksize=100):
                time.sleep(0.01)
                yield batch

        def progress(copied):
            raise Enough

        reader = pyarrow.RecordBatchReader.from_batches(self.table.schema, slow())
        with self.assertRaises(Enough):
            mq.write(reader, self.path("a.parquet"), progress=progress)
        self.assertEqual(os.listdir(self.folder), [])

    def test_differences(self):
        other = self.table.set_column(1, "name", [["x" if i < 3 else f"n{i % 99}" for i in range(20_000)]])
        other = other.slice(0, 19_999).append_column("more", [[1] * 19_999])
        differences = mq.diff(self.table, other)
        self.assertTrue(differences)
        self.assertFalse(differences.are_rows_equal or differences.are_schemas_equal)
        self.assertEqual(differences.rows, (20_000, 19_999))
        self.assertEqual((differences.rows_changed, differences.rows_only), (3, (1, 0)))
        self.assertEqual(differences.columns_only, ([], ["more"]))
        self.assertEqual(differences.columns_changed, [("name", 3)])
        self.assertFalse(mq.diff(self.table, self.table))

    def test_pandas_has_no_stray_column(self):
        mq.write(pandas.DataFrame({"a": [1, 2]}), self.path("a.parquet"))
        self.assertEqual(mq.open(self.path("a.parquet")).columns, ["a"])


if __name__ == "__main__":
    unittest.main()
