"""Tables of a cluster: opened, written, copied and compared."""

import asyncio
import datetime
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
import uuid

import marquetry as mq
import pyarrow

from cassandra import TYPES, WithKeyspace, types_table


class Tables(WithKeyspace, unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.make_keyspace()

    def path(self, name):
        return os.path.join(self.folder, name)

    def assert_same(self, a, b):
        differences = mq.diff(a, b, key=["id"])
        self.assertTrue(differences.are_rows_equal, (differences, differences.columns_changed, differences.columns_incomparable))
        self.assertEqual(differences.columns_only, ([], []))

    def test_every_type_of_cql_there_and_back(self):
        types_table(self, "a")
        types_table(self, "b", rows=False)
        table = mq.open(self.address("a"))
        self.assertEqual(set(table.columns), {"id", *TYPES})
        arrow = pyarrow.table(table)
        rows = sorted(arrow.to_pylist(), key=lambda row: row["id"])
        self.assertEqual([row["id"] for row in rows], [1, 2, 3])
        self.assertEqual({value for name, value in rows[2].items() if name != "id"}, {None})
        first = rows[0]
        self.assertEqual((first["a_bigint"], first["a_boolean"], first["a_blob"]), (2**63 - 1, True, b"\0\xff"))
        self.assertEqual((first["a_date"], rows[1]["a_text"]), (datetime.date(2024, 2, 29), "it's"))
        self.assertEqual(first["a_timestamp"].replace(tzinfo=None), datetime.datetime(2024, 2, 29, 12, 0, 0, 123_000))
        self.assertEqual(uuid.UUID(bytes=bytes(first["a_uuid"].bytes if hasattr(first["a_uuid"], "bytes") else first["a_uuid"])).hex[:8], "123e4567")
        self.assertEqual((first["a_list"], first["a_set"], first["a_map"]), ([3, 1, 3], ["a", "b"], [("a", -2), ("b", 1)]))
        self.assertEqual(rows[1]["a_place"], {"lat": -2.5, "names": None})
        # Into a table that is there, and into one that is created like it; by Arrow, and by a file.
        self.assertEqual(mq.write(arrow, self.address("b")).rows_written, 3)
        self.assert_same(self.address("a"), self.address("b"))
        self.assertEqual(mq.copy(self.address("a"), self.address("c"), create=True).rows_written, 3)
        self.assert_same(self.address("a"), self.address("c"))
        mq.copy(self.address("a"), self.path("a.parquet"), codec="zstd")
        mq.copy(self.path("a.parquet"), self.address("d"), create=True)
        self.assert_same(self.address("a"), self.address("d"))

    def test_rows_that_do_not_fit_are_counted_and_kept(self):
        self.statement(f"CREATE TABLE {self.KEYSPACE}.t (id int PRIMARY KEY, n smallint)")
        rows = pyarrow.table({"id": range(1000), "n": [40_000 if i % 100 == 5 else i for i in range(1000)]})
        with self.assertRaises(mq.ConversionError) as raised:
            mq.write(rows, self.address("t"))
        self.assertEqual((raised.exception.place.row, raised.exception.place.column), (5, "n"))
        told = []
        rejects = self.path("rejects.parquet")
        copied = mq.write(rows, self.address("t"), rejects=rejects, max_errors=100, progress=told.append)
        self.assertEqual((copied.rows, copied.rows_written, copied.rows_rejected), (1000, 990, 10))
        self.assertEqual(told[-1].rows_rejected, 10)
        self.assertEqual(pyarrow.table(mq.open(rejects).select("id"))["id"].to_pylist(), list(range(5, 1000, 100)))
        table = mq.open(self.address("t"), consistency="one", retry_for=5)
        self.assertEqual(table.count(), 990)
        self.assertEqual(mq.Finder(table, "id").find(7).count(), 1)
        self.assertEqual(table.where("id IN (1, 2, 5)").count(), 2)
        self.assertGreater(len(table.pieces), 0)

    def test_shares_by_tokens_are_the_table_by_one_connection(self):
        rows = pyarrow.table({"id": range(3000), "n": [i % 7 for i in range(3000)]})
        for layout in ("rows", "wide", "blob"):
            address = self.address(f"shares_{layout}")
            key = "n, id" if layout == "wide" else "id"
            mq.write(rows, address, create=True, key=key, layout=layout)
            table = mq.open(address)
            with self.subTest(layout):
                counts, ids = [], []
                for tokens in (f":{-(2**62)}", f"{-(2**62)}:0", "0:77", f"77:{2**62}", f"{2**62}:"):
                    share = table.token_range(tokens).select("id")
                    found = pyarrow.table(share.threads(0))["id"].to_pylist()
                    counts.append(len(found))
                    ids += found
                    # A share is several requests at a time for its one reader; of few tokens, as many as there are.
                    self.assertGreaterEqual(len(share.pieces), 16)
                    inside = [piece.tokens for piece in share.pieces]
                    after, last = (int(text) if text else None for text in tokens.split(":"))
                    self.assertTrue(all((after is None or first > after) and (last is None or end <= last) for first, end in inside), inside)
                self.assertEqual(sorted(ids), list(range(3000)))
                if layout != "wide":
                    self.assertGreater(min(counts[:2] + counts[3:]), 300)
                for refused in (table.select("id"), table.where("id = 3"), table.limit(3)):
                    with self.assertRaises(mq.InvalidArgument) as raised:
                        refused.token_range("0:")
                    self.assertEqual(raised.exception.option, "token_range")
        with self.assertRaises(mq.InvalidArgument):
            table.token_range("0")

    def test_a_load_goes_on_and_what_is_missing_is_mended(self):
        rows = pyarrow.table({"id": range(5000), "n": range(5000)})
        mq.write(rows, self.path("a.parquet"), row_group_rows=1000)
        address, state = self.address("t"), self.path("load.state")

        class Enough(Exception):
            pass

        def progress(copied):
            if copied.rows_written > 500:
                raise Enough

        options = {"create": True, "key": "id", "state": state}
        with self.assertRaises(Enough):
            mq.copy(self.path("a.parquet"), address, progress=progress, rate="2K", **options)
        self.assertTrue(os.path.exists(state))
        # It goes on with the same rows only, and is not repeated once it is done.
        with self.assertRaises(mq.Error):
            mq.copy(self.path("a.parquet"), address, limit=4000, resume=True, **options)
        self.assertLess(mq.copy(self.path("a.parquet"), address, resume=True, **options).rows_written, 5000)
        self.assertEqual(mq.open(address).count(), 5000)
        self.assertEqual(mq.copy(self.path("a.parquet"), address, resume=True, **options).rows_written, 0)
        self.statement(*(f"DELETE FROM {self.KEYSPACE}.t WHERE id = {i}" for i in range(10)), f"UPDATE {self.KEYSPACE}.t SET n = 0 WHERE id = 77")
        self.assertEqual(mq.copy(self.path("a.parquet"), address, missing_only=True, dry_run=True).rows, 11)
        self.assertEqual(mq.write(rows, address, missing_only=True).rows_written, 11)
        self.assertEqual(mq.write(rows, address, missing_only=True).rows_written, 0)
        self.assert_same(rows, address)
        wrong = {"resume": {"resume": True}, "state": {"state": state}, "missing_only": {"missing_only": True, "create": True, "key": "id"}}
        for option, given in wrong.items():
            with self.subTest(option), self.assertRaises(mq.InvalidArgument) as raised:
                mq.write(rows, address, **given)
            self.assertEqual(raised.exception.option, option)

    def test_names_and_keys_of_a_table_that_is_created(self):
        rows = pyarrow.table({"fare": [1.5, 2.5], "when": pyarrow.array([1_700_000_000_123_456] * 2, pyarrow.timestamp("us", "UTC"))})
        options = {"create": True, "key_row_number": "id", "map": "price=fare", "timestamps_as": "millis"}
        mq.write(rows, self.address("t"), **options)
        found = sorted(pyarrow.table(mq.open(self.address("t"))).to_pylist(), key=lambda row: row["id"])
        self.assertEqual([(row["id"], row["price"]) for row in found], [(0, 1.5), (1, 2.5)])
        self.assertEqual(found[0]["when"].microsecond, 123_000)

    def test_a_file_within_a_table_that_was_replaced_has_another_tag(self):
        found = []
        for options in ({"create": True}, {"overwrite": True}):
            mq.write(pyarrow.table({"id": range(1000)}), self.address("t"), layout="columns", **options)
            (piece,) = mq.open(self.address("t")).pieces
            self.assertEqual(piece.tag, mq.open(self.address("t")).pieces[0].tag)
            found.append((piece.rows, piece.bytes, piece.tag))
        self.assertEqual(found[0][:2], found[1][:2])
        self.assertNotEqual(found[0][2], found[1][2])

    def test_how_a_cluster_is_connected_to(self):
        self.statement(f"CREATE TABLE {self.KEYSPACE}.t (id int PRIMARY KEY)")
        address = self.address("t")
        # This server asks nobody who they are, and knows no TLS.
        self.assertEqual(mq.open(address, user="me", password="tiger").count(), 0)
        with self.assertRaises(mq.Error) as raised:
            mq.open(address, tls=True, user="me", password="tiger")
        self.assertNotIn("tiger", f"{raised.exception} {raised.exception!r}")
        wrong = {"password": {"password": "tiger"}, "tls_any_host": {"tls_any_host": True}, "cert": {"cert": "none.pem"}}
        for option, options in wrong.items():
            with self.subTest(option), self.assertRaises(mq.InvalidArgument) as raised:
                mq.open(address, **options)
            self.assertEqual(raised.exception.option, option)
            self.assertNotIn("tiger", str(raised.exception))
        with self.assertRaises(mq.NotFound):
            mq.open(address, ca=self.path("none.pem"))
        # An address without a host is of a bundle.
        with self.assertRaises(mq.NotFound):
            mq.open(f"cql:///{self.KEYSPACE}.t", bundle=self.path("none.zip"))
        with self.assertRaises(mq.Error):
            mq.open(f"cql:///{self.KEYSPACE}.t")

    def test_a_load_ends_with_ctrl_c_and_with_its_task(self):
        self.statement(f"CREATE TABLE {self.KEYSPACE}.t (id bigint PRIMARY KEY)")
        program = """
            import signal, sys
            import marquetry as mq
            import pyarrow

            signal.signal(signal.SIGINT, signal.default_int_handler)
            schema = pyarrow.schema([("id", pyarrow.int64())])
            batches = (pyarrow.record_batch([range(i * 1000, i * 1000 + 1000)], schema) for i in range(10**9))
            begun = []
            def progress(copied):
                if copied.rows_written and not begun:
                    begun.append(print("begun", flush=True))
            mq.write(pyarrow.RecordBatchReader.from_batches(schema, batches), sys.argv[1], rate="20K", progress=progress)
            """
        command = [sys.executable, "-c", textwrap.dedent(program), self.address("t")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                self.assertEqual(process.stdout.readline(), "begun\n")
                process.send_signal(signal.SIGINT)
                said = process.communicate(timeout=60)[1]
                self.assertIn("KeyboardInterrupt", said)
                # It ends as any program of Python's that Ctrl-C ends, and not by an interpreter that gives up.
                self.assertEqual(process.returncode, -signal.SIGINT, said)
                self.assertNotIn("Fatal", said)
            finally:
                process.kill()
        loaded = mq.open(self.address("t")).count()
        self.assertGreater(loaded, 0)
        # Nothing is written any more: what was in flight had settled.
        self.assertEqual(mq.open(self.address("t")).count(), loaded)

        async def cancelled():
            schema = pyarrow.schema([("id", pyarrow.int64())])
            batches = (pyarrow.record_batch([range(i * 1000, i * 1000 + 1000)], schema) for i in range(10**9))
            begun = asyncio.Event()
            reader = pyarrow.RecordBatchReader.from_batches(schema, batches)
            load = mq.aio.write(reader, self.address("t"), rate="20K", progress=lambda _: begun.set())
            task = asyncio.create_task(load)
            await asyncio.wait_for(begun.wait(), 60)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        import marquetry.aio

        asyncio.run(cancelled())


if __name__ == "__main__":
    unittest.main()
