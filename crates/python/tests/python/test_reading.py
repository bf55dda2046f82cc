"""Tables that are opened and read: by Python, and by those that take Arrow's streams."""

import html
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import duckdb
import marquetry as mq
import pandas
import polars
import polars.testing as polars_testing
import pyarrow
import pyarrow.parquet


class Reading(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "trips.parquet")
        rows = 100_000
        self.table = pyarrow.table(
            {
                "id": pyarrow.array(range(rows), pyarrow.int64()),
                "fare": pyarrow.array([i / 4 if i % 7 else None for i in range(rows)], pyarrow.float64()),
                "city": [f"city {i % 13}" for i in range(rows)],
            }
        )
        pyarrow.parquet.write_table(self.table, self.path, row_group_size=30_000)

    def test_what_it_is(self):
        trips = mq.open(self.path)
        self.assertEqual(trips.columns, ["id", "fare", "city"])
        self.assertEqual((trips.num_rows, trips.num_row_groups), (100_000, 4))
        self.assertEqual(trips.num_bytes, os.path.getsize(self.path))
        self.assertIn("ARROW:schema", trips.key_values)
        self.assertEqual(trips.schema.names, trips.columns)
        self.assertEqual(pyarrow.schema(trips.schema).field("id").type, pyarrow.int64())
        self.assertEqual(pyarrow.schema(trips), pyarrow.schema(trips.schema))
        self.assertIn("100000 rows", repr(trips))
        self.assertIn("id: Int64", repr(trips.schema))
        self.assertEqual(mq.open(pathlib.Path(self.path)).num_rows, 100_000)

    def test_what_its_values_are_like(self):
        id, fare, city = mq.open(self.path).column_statistics()
        self.assertEqual([column.path for column in (id, fare, city)], ["id", "fare", "city"])
        self.assertEqual((id.values, id.nulls, id.min, id.max), (100_000, 0, "0", "99999"))
        nulls = self.table["fare"].null_count
        self.assertEqual((fare.values, fare.nulls, fare.nans, fare.bytes_mean), (100_000 - nulls, nulls, 0, None))
        self.assertEqual((city.distinct, city.is_distinct_exact, city.is_max_cut), (13, True, False))
        self.assertEqual((city.min, city.max, city.bytes_max), ("city 0", "city 9", 7))
        self.assertAlmostEqual(city.bytes_mean, sum(map(len, self.table["city"].to_pylist())) / 100_000)
        value, at_least, at_most = city.frequent[0]
        self.assertEqual(value, "city 0")
        self.assertLessEqual(at_least, 7693)
        self.assertGreaterEqual(at_most, 7693)
        self.assertIn("13 distinct", repr(city))

    def test_others_take_it(self):
        trips = mq.open(self.path)
        self.assertTrue(pyarrow.table(trips).cast(self.table.schema).equals(self.table))
        wanted = polars.from_arrow(self.table)
        self.assertTrue(polars.DataFrame(trips).equals(wanted))
        frame = polars.from_arrow(trips)
        # Since Polars 2, a series of structs.
        self.assertTrue((frame if isinstance(frame, polars.DataFrame) else frame.struct.unnest()).equals(wanted))
        fares = duckdb.sql("SELECT sum(fare), count(DISTINCT city) FROM trips").fetchall()
        self.assertEqual(fares, duckdb.sql(f"SELECT sum(fare), count(DISTINCT city) FROM '{self.path}'").fetchall())
        # Before pandas 3, by way of pyarrow.
        frame = pandas.DataFrame.from_arrow(trips) if hasattr(pandas.DataFrame, "from_arrow") else pyarrow.table(trips).to_pandas()
        self.assertEqual(frame["id"].sum(), sum(range(100_000)))

    def test_as_what_others_have(self):
        rows = 1000
        table = pyarrow.table(
            {
                "text": [f"a text that is longer than a view, {i}" if i % 5 else None for i in range(rows)],
                "short": [str(i) for i in range(rows)],
                "kind": pyarrow.array([f"a kind of some length, {i % 3}" for i in range(rows)]).dictionary_encode(),
                "bytes": pyarrow.array([bytes([i % 256]) * (i % 20) for i in range(rows)], pyarrow.large_binary()),
                "list": [[str(i)] * (i % 3) for i in range(rows)],
                "struct": [{"a": i, "b": f"{i} in a struct, beyond a view"} for i in range(rows)],
            }
        )
        path = os.path.join(os.path.dirname(self.path), "types.parquet")
        pyarrow.parquet.write_table(table, path)
        trips = mq.open(path)
        self.assertTrue(trips.to_arrow().equals(table))
        # Some columns have the types that they have among all.
        some = trips.where("short = '7'").select("kind", "text", "list", "bytes").to_arrow()
        wanted = table.select(["kind", "text", "list", "bytes"]).slice(7, 1)
        # A dictionary may have fewer entries.
        self.assertEqual((some.schema.types, some.to_pylist()), (wanted.schema.types, wanted.to_pylist()))
        self.assertEqual(trips.select("struct.b").to_arrow().schema.field("struct").type.field("b").type, pyarrow.string())
        self.assertEqual(trips.rename("text=note").select("note").to_arrow().schema.field("note").type, pyarrow.string_view())
        pandas.testing.assert_frame_equal(trips.to_pandas(), table.to_pandas())
        polars_testing.assert_frame_equal(trips.to_polars(), polars.from_arrow(table))

    def test_what_others_have_needs_them(self):
        program = "import sys; sys.modules[sys.argv[1]] = None; import marquetry as mq; getattr(mq.open(sys.argv[2]), sys.argv[3])()"
        for library, method in (("pyarrow", "to_arrow"), ("pyarrow", "to_pandas"), ("polars", "to_polars")):
            ended = subprocess.run([sys.executable, "-c", program, library, self.path, method], capture_output=True, text=True)
            self.assertNotEqual(ended.returncode, 0)
            self.assertRegex(ended.stderr, f"(ModuleNotFound|Import)Error: .*{library}")

    def test_batches(self):
        trips = mq.open(self.path)
        batches = trips.batches()
        self.assertEqual(batches.schema.names, trips.columns)
        rows = pyarrow.Table.from_batches([pyarrow.record_batch(batch) for batch in batches])
        self.assertTrue(rows.cast(self.table.schema).equals(self.table))
        self.assertIsNone(next(batches, None))
        with self.assertRaises(mq.InvalidArgument):
            pyarrow.table(batches)
        # Those that are left are a stream.
        batches = iter(trips)
        first = next(batches)
        self.assertEqual(first.num_columns, 3)
        self.assertEqual(pyarrow.table(batches).num_rows, 100_000 - len(first))
        # A batch outlives all that it came from.
        del batches, trips
        os.remove(self.path)
        self.assertEqual(pyarrow.record_batch(first)["id"][0].as_py(), 0)

    def test_batches_are_large_and_bounded(self):
        path = os.path.join(os.path.dirname(self.path), "large.parquet")
        rows = 200_000
        pyarrow.parquet.write_table(pyarrow.table({"id": range(rows)}), path)
        for table in (mq.open(path), mq.open(path).threads(0)):
            self.assertEqual({len(batch) for batch in table.batches()}, {32_768, rows % 32_768})
            self.assertEqual(len(pyarrow.table(table).to_batches()), 7)
        # Wide rows, and long ones, are fewer.
        pyarrow.parquet.write_table(pyarrow.table({f"c{at}": range(rows) for at in range(40)}), path)
        first = len(next(mq.open(path).batches()))
        self.assertTrue(8192 < first < 32_768, first)
        pyarrow.parquet.write_table(pyarrow.table({"text": [f"{at:0300}" for at in range(50_000)]}), path, compression="none", use_dictionary=False)
        first = len(next(mq.open(path).batches()))
        self.assertTrue(8192 <= first < 16_384, first)

    def test_rows_and_columns_are_chosen(self):
        trips = mq.open(self.path)
        chosen = trips.where("city = 'city 3' AND id >= 50000").select("fare", "id").limit(5)
        wanted = self.table.filter(
            (pyarrow.compute.field("city") == "city 3") & (pyarrow.compute.field("id") >= 50_000)
        )
        wanted = wanted.select(["fare", "id"]).slice(0, 5)
        self.assertTrue(pyarrow.table(chosen).cast(wanted.schema).equals(wanted))
        self.assertEqual(trips.where("city = 'city 3'").count(), 7693)
        self.assertEqual(pyarrow.table(trips.offset(99_990).select("id"))["id"].to_pylist(), list(range(99_990, 100_000)))
        self.assertEqual(mq.open([self.path, self.path]).num_rows, 200_000)
        renamed = trips.rename("id=number").types("fare=text")
        self.assertEqual(renamed.columns, ["number", "fare", "city"])
        self.assertEqual(pyarrow.table(renamed.limit(2))["fare"].to_pylist(), [None, "0.25"])
        sample = trips.sample(10, seed=1)
        self.assertEqual(pyarrow.table(sample).num_rows, 10)
        # The one that was opened is as before.
        self.assertEqual(trips.columns, ["id", "fare", "city"])

    def test_readers_share_a_table(self):
        trips = mq.open([self.path, self.path])
        pieces = trips.pieces
        self.assertEqual([(piece.name, piece.rows, piece.tokens) for piece in pieces], [(self.path, 100_000, None)] * 2)
        self.assertIn("100000 rows", repr(pieces[0]))
        second = trips.only(1, 2).where("id < 10")
        self.assertEqual((trips.only(0, 2).num_rows, trips.only(1, 2).num_rows, trips.only(1, 1).num_rows), (200_000, 100_000, 0))
        self.assertEqual(pyarrow.table(second.select("id"))["id"].to_pylist(), list(range(10)))
        # Rows are chosen before, too.
        self.assertEqual(trips.where("id < 10").only(1, 2).count(), 10)
        with self.assertRaises(mq.InvalidArgument):
            trips.only(1, 3)

    def test_notebooks_show_the_picture(self):
        page = mq.open(self.path).select("id")._repr_html_()
        self.assertTrue(page.startswith('<iframe sandbox="allow-scripts"'))
        # Nothing of it ends the attribute that it is in.
        self.assertEqual(page.count('"'), 6)
        inner = html.unescape(page.split('srcdoc="')[1].rsplit('"></iframe>', 1)[0])
        self.assertTrue(inner.startswith("<!doctype html>") and "trips.parquet" in inner)
        self.assertIn("Content-Security-Policy", inner)
        self.assertIsNone(mq.open([self.path, self.path])._repr_html_())
        text = self.path + ".csv"
        mq.copy(self.path, text, limit=3)
        self.assertIsNone(mq.open(text)._repr_html_())

    def test_threads_read_one_table(self):
        trips, sums = mq.open(self.path), []

        def read():
            ids = pyarrow.table(trips.select("id"))["id"]
            sums.append(pyarrow.compute.sum(ids).as_py())

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sums, [sum(range(100_000))] * 8)

    def test_threads_share_one_iterator_or_are_refused(self):
        batches, rows, refused = mq.open(self.path).batches(), [], []

        def read():
            while True:
                try:
                    batch = next(batches, None)
                except mq.InvalidArgument:
                    refused.append(1)
                    continue
                if batch is None:
                    return
                rows.append(batch.num_rows)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sum(rows), 100_000)


    def test_footers_are_of_the_files_that_were_opened(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "a.parquet")
        mq.write(pyarrow.table({"id": [1, 2, 3]}), path)
        # A name that says something else.
        other = os.path.join(folder.name, "a.csv")
        os.link(path, other)
        for table in (mq.open(path), mq.open(other, from_="parquet"), mq.open(other, from_="parquet", trust=True).select("id")):
            self.assertEqual([footer["rows"] for footer in table.footers()], [3])


if __name__ == "__main__":
    unittest.main()
