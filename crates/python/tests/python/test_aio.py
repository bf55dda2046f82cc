"""The same for asyncio."""

import asyncio
import concurrent.futures
import os
import tempfile
import time
import unittest
import unittest.mock

import pyarrow
import pyarrow.parquet
import marquetry as mq
import marquetry.aio


class Aio(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "a.parquet")
        self.table = pyarrow.table({"id": range(50_000)})

    async def test_rows(self):
        seen = []
        written = await mq.aio.write(self.table, self.path, progress=seen.append, codec="zstd")
        self.assertEqual(written.rows, 50_000)
        table = await mq.aio.open(self.path)
        rows = [batch.num_rows async for batch in mq.aio.batches(table)]
        self.assertEqual(sum(rows), 50_000)
        self.assertGreater(len(rows), 1)
        with self.assertRaises(mq.AlreadyExists):
            await mq.aio.copy(table, self.path)
        with self.assertRaises(mq.NotFound):
            await mq.aio.open(self.path + ".no")

    async def test_the_loop_goes_on_and_a_cancelled_copy_leaves_nothing(self):
        def endless():
            while True:
                time.sleep(0.005)
                yield from self.table.slice(0, 100).to_batches()

        reader = pyarrow.RecordBatchReader.from_batches(self.table.schema, endless())
        begun = asyncio.Event()
        task = asyncio.create_task(mq.aio.write(reader, self.path, progress=lambda _: begun.set()))
        await asyncio.wait_for(begun.wait(), 30)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await asyncio.wait_for(task, 30)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [])

    async def test_what_reads_ends_with_its_task(self):
        # Two thousand million rows, of which none is wanted; and a pipe that nobody writes into.
        pyarrow.parquet.write_table(pyarrow.table({"a": range(2_000_000)}), self.path, write_statistics=False, use_dictionary=False)
        table = mq.open([self.path] * 1000).where("a = -1")
        pipe = self.path + ".csv"
        os.mkfifo(pipe)
        self.addCleanup(os.close, os.open(pipe, os.O_RDWR))

        async def read():
            return [batch async for batch in mq.aio.batches(table)]

        for work in (mq.aio.open(pipe), mq.aio.count(table), read(), mq.aio.diff(table, table)):
            with self.subTest(work.__name__):
                task = asyncio.create_task(work)
                await asyncio.sleep(0.2)
                self.assertFalse(task.done())
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await asyncio.wait_for(task, 60)

    async def test_a_second_cancellation_waits_too(self):
        def endless():
            while True:
                time.sleep(0.005)
                yield from self.table.slice(0, 100).to_batches()

        really, has_ended = mq.aio._marquetry.copy, False

        def copy(*arguments):
            nonlocal has_ended
            try:
                return really(*arguments)
            finally:
                has_ended = True

        reader = pyarrow.RecordBatchReader.from_batches(self.table.schema, endless())
        begun = asyncio.Event()
        with unittest.mock.patch.object(mq.aio._marquetry, "copy", copy):
            task = asyncio.create_task(mq.aio.write(reader, self.path, progress=lambda _: begun.set()))
            await asyncio.wait_for(begun.wait(), 30)
            for _ in range(3):
                task.cancel()
                await asyncio.sleep(0)
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertTrue(has_ended)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [])

    async def test_what_a_progress_raises_ends_the_copy(self):
        class Enough(Exception):
            pass

        def endless():
            while True:
                time.sleep(0.005)
                yield from self.table.slice(0, 100).to_batches()

        def progress(_):
            raise Enough

        reader = pyarrow.RecordBatchReader.from_batches(self.table.schema, endless())
        with self.assertRaises(Enough):
            await asyncio.wait_for(mq.aio.write(reader, self.path, progress=progress), 30)
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [])

    async def test_a_copy_that_is_cancelled_before_it_begins_begins_not(self):
        loop = asyncio.get_running_loop()
        loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, time.sleep, 0.5)
        task = asyncio.create_task(mq.aio.write(self.table, self.path))
        await asyncio.sleep(0.1)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        await busy
        self.assertEqual(os.listdir(os.path.dirname(self.path)), [])


if __name__ == "__main__":
    unittest.main()
