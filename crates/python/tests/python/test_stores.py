"""Objects of a store: S3, by the server that the environment names, and its bucket `python`."""

import asyncio
import os
import tempfile
import unittest

import marquetry as mq
import marquetry.aio
import pyarrow

BUCKET = "s3://python"


class Stores(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.table = pyarrow.table({"id": range(20_000), "city": [f"city {i % 3}" for i in range(20_000)]})

    def test_objects_are_tables(self):
        address, seen = f"{BUCKET}/a b/trips.parquet", []
        written = mq.write(self.table, address, codec="zstd", bloom="id", row_group_rows=5000, progress=seen.append)
        self.assertEqual((written.rows, seen[-1].rows), (20_000, 20_000))
        trips = mq.open(address)
        self.assertEqual((trips.num_rows, trips.num_row_groups, trips.name), (20_000, 4, address))
        self.assertTrue(pyarrow.table(trips).cast(self.table.schema).equals(self.table))
        self.assertEqual(pyarrow.table(trips.where("id = 777").select("city"))["city"].to_pylist(), ["city 0"])
        finder = mq.Finder(address, "id")
        self.assertEqual(pyarrow.table(finder.find(7, 19_999))["id"].to_pylist(), [7, 19_999])
        self.assertNotIn(20_000, finder)
        self.assertEqual(trips.footers()[0]["rows"], 20_000)
        # From here to there, from there to there, and back.
        local = os.path.join(self.folder, "a.parquet")
        mq.copy(address, f"{BUCKET}/trips.csv.gz", where="id < 100")
        mq.copy(f"{BUCKET}/trips.csv.gz", local)
        self.assertEqual(mq.diff(local, trips.where("id < 100"), key=["id"]).rows_only, (0, 0))
        mq.copy(local, f"{BUCKET}/tree/", partition_by="city")
        self.assertEqual(sorted(pyarrow.table(mq.open(f"{BUCKET}/tree/**/*.parquet"))["id"].to_pylist()), list(range(100)))
        self.assertEqual(mq.open(f"{BUCKET}/tree/").where("city = 'city 1'").count(), 33)

        async def count():
            return sum([batch.num_rows async for batch in mq.aio.batches(await mq.aio.open(address))])

        self.assertEqual(asyncio.run(count()), 20_000)

    def test_an_object_that_takes_the_place_of_another_has_another_tag(self):
        address, tags = f"{BUCKET}/tagged.parquet", []
        for first in (0, 0, 1):
            mq.write(pyarrow.table({"id": [first, *range(1, 1000)]}), address, overwrite=True)
            (piece,) = mq.open(address).where("id >= 0").select("id").pieces
            self.assertEqual(piece.tag, mq.open(address).pieces[0].tag)
            tags.append(piece.tag)
        self.assertEqual((tags[0], len(set(tags))), (tags[1], 2))
        # The time of a file is that of one machine.
        local = os.path.join(self.folder, "a.parquet")
        mq.write(self.table, local)
        self.assertIsNone(mq.open(local).pieces[0].tag)

    def test_an_object_appears_whole_or_not_at_all(self):
        address = f"{BUCKET}/whole.parquet"

        def some():
            yield from self.table.to_batches()
            raise RuntimeError("no more of this")

        with self.assertRaises(mq.Error) as raised:
            mq.write(pyarrow.RecordBatchReader.from_batches(self.table.schema, some()), address)
        self.assertIn("no more of this", str(raised.exception))
        with self.assertRaises(mq.NotFound) as raised:
            mq.open(address)
        self.assertEqual(raised.exception.address, address)
        mq.write(self.table.slice(0, 5), address)
        # What is there is replaced only by who says so; and an object cannot be read before it appears.
        with self.assertRaises(mq.AlreadyExists):
            mq.write(self.table, address)
        with self.assertRaises(mq.InvalidArgument) as raised:
            mq.write(self.table, address, overwrite=True, verify=True)
        self.assertEqual(mq.open(address).num_rows, 5)
        mq.write(self.table, address, overwrite=True)
        self.assertEqual(mq.open(address).num_rows, 20_000)


if __name__ == "__main__":
    unittest.main()
