"""For long: a million batches each way, many threads, many forks. Memory, threads and files that are open stay what they were."""

import gc
import os
import random
import signal
import tempfile
import threading
import time
import unittest

import marquetry as mq
import pyarrow
import pyarrow.parquet

BATCHES = int(os.environ.get("MARQUETRY_SOAK_BATCHES", "1000000"))
#: What memory may grow by from the first tenth of the work to its end. A batch that is kept takes some hundred bytes at least: a million, 100 MB.
GROWN_MAX = 24 << 20
SECONDS = float(os.environ.get("MARQUETRY_SOAK_SECONDS", "60"))


def resident():
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def threads():
    return len(os.listdir("/proc/self/task"))


def files():
    return len(os.listdir("/proc/self/fd"))


class Soak(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.small = os.path.join(cls.folder, "small.parquet")
        # A row group a row, so that a batch has one.
        rows = pyarrow.table({"id": range(5000), "name": [f"n{i}" for i in range(5000)]})
        mq.write(rows, cls.small, row_group_rows=1)
        cls.large = os.path.join(cls.folder, "large.parquet")
        ids = list(range(200_000))
        random.Random(1).shuffle(ids)
        table = pyarrow.table({"id": ids, "name": [f"n{i}" for i in ids]})
        mq.write(table, cls.large, bloom="id", row_group_rows=20_000, page_rows=2000)

    def flat(self, work, rounds):
        """Does a work so many times, and compares what is held after a tenth of it with what is at the end."""
        for _ in range(rounds // 10):
            work()
        before = resident(), threads(), files()
        for _ in range(rounds - rounds // 10):
            work()
        # Threads that have ended may take a moment to be gone.
        end = time.monotonic() + 10
        while threads() > before[1] and time.monotonic() < end:
            time.sleep(0.05)
        after = resident(), threads(), files()
        self.assertLess(after[0] - before[0], GROWN_MAX)
        self.assertEqual(after[1:], before[1:])

    def test_a_million_batches_one_by_one(self):
        table, count = mq.open(self.small), 0

        def read():
            nonlocal count
            for batch in table.batches():
                pyarrow.record_batch(batch)
                count += 1

        self.flat(read, BATCHES // 5000)
        self.assertEqual(count, BATCHES)

    def test_a_million_batches_through_streams(self):
        table, count, rounds = mq.open(self.small).threads(0), 0, 0

        def read():
            nonlocal count, rounds
            rounds += 1
            for number, batch in enumerate(pyarrow.RecordBatchReader.from_stream(table)):
                count += batch.num_rows
                # Each tenth stream is left before its end.
                if rounds % 10 == 0 and number == 2500:
                    break

        self.flat(read, BATCHES // 5000)
        self.assertGreater(count, BATCHES * 9 // 10)

    def test_a_million_batches_are_written(self):
        batch = pyarrow.record_batch({"id": [1], "name": ["n"]})
        to = os.path.join(self.folder, "written.parquet")

        def write():
            reader = pyarrow.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(BATCHES // 100)))
            self.assertEqual(mq.write(reader, to, overwrite=True).rows, BATCHES // 100)

        self.flat(write, 100)

    def test_tables_that_are_opened_and_dropped(self):
        def open_and_fail():
            mq.open(self.large).where("id = 7").count()
            for wrong in (lambda: mq.open("none.parquet"), lambda: mq.open(self.large, kodec="zstd"), lambda: mq.open(self.large).select("no")):
                with self.assertRaises(mq.Error):
                    wrong()
            # Begun, and not read to their end.
            next(mq.open(self.large).batches())
            mq.open(self.large).__arrow_c_stream__()

        self.flat(open_and_fail, 300)

    def test_threads(self):
        table, finder = mq.open(self.large), mq.Finder(self.large, "id", columns=["name"])
        ends, faults, done = time.monotonic() + SECONDS, [], [0] * 8

        def work(number):
            draw = random.Random(number)
            try:
                while time.monotonic() < ends:
                    kind = draw.randrange(5)
                    key = draw.randrange(200_000)
                    if kind == 0:
                        self.assertEqual(pyarrow.table(finder.find(key))["name"].to_pylist(), [f"n{key}"])
                    elif kind == 1:
                        self.assertEqual(table.where(f"id < {key // 100}").count(), key // 100)
                    elif kind == 2:
                        rows = sum(batch.num_rows for batch in table.select("id").threads(draw.randrange(4)).batches())
                        self.assertEqual(rows, 200_000)
                    elif kind == 3:
                        to = os.path.join(self.folder, f"of-{number}.parquet")
                        mq.write(table.limit(5000), to, overwrite=True, verify=True)
                        self.assertEqual(mq.open(to).num_rows, 5000)
                    else:
                        with self.assertRaises(mq.NotFound):
                            mq.copy(os.path.join(self.folder, "none.csv"), os.path.join(self.folder, f"{number}.parquet"))
                    done[number] += 1
            except BaseException as fault:
                faults.append(fault)

        before = threads()
        workers = [threading.Thread(target=work, args=(number,)) for number in range(len(done))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.assertEqual(faults, [])
        self.assertGreater(min(done), 0)
        end = time.monotonic() + 10
        while threads() > before and time.monotonic() < end:
            time.sleep(0.05)
        self.assertLessEqual(threads(), before)

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_forks_while_threads_read(self):
        """A child opens and reads what it likes, whatever its parent's threads were at when it was forked."""
        table, has_ended = mq.open(self.large), threading.Event()

        def read():
            while not has_ended.is_set():
                for batch in table.threads(2).batches():
                    pyarrow.record_batch(batch)

        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        forks, codes, end = 0, [], time.monotonic() + SECONDS
        try:
            while time.monotonic() < end:
                child = os.fork()
                if child == 0:
                    # What waits for a thread that is not there is ended by the alarm, and counted as a fault.
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.alarm(60)
                    code = 1
                    try:
                        again = mq.open(self.large)
                        rows = sum(batch.num_rows for batch in again.select("id").batches())
                        found = table.where("id = 77").threads(0).count()
                        code = 0 if (rows, found) == (200_000, 1) else 2
                    finally:
                        os._exit(code)
                forks += 1
                codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        finally:
            has_ended.set()
            for reader in readers:
                reader.join()
        self.assertEqual(codes, [0] * forks)
        self.assertGreater(forks, 5)


if __name__ == "__main__":
    unittest.main()
