"""Ctrl-C, forks, writers that are killed, and how long an import takes."""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

import marquetry as mq
import pyarrow
import pyarrow.parquet

# Rows that never end, slowly: what is to be interrupted.
ENDLESS = """
import time
import marquetry as mq
import pyarrow

schema = pyarrow.schema([("a", pyarrow.int64())])

def batches():
    while True:
        time.sleep(0.005)
        yield pyarrow.record_batch([range(1000)], schema)

def endless():
    return pyarrow.RecordBatchReader.from_batches(schema, batches())
"""


class Processes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(folder.name, "a.parquet")

    def start(self, program):
        """Starts a program, and waits until it says that it has begun."""
        process = subprocess.Popen(
            [sys.executable, "-c", ENDLESS + textwrap.dedent(program), self.folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

        def end():
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()

        self.addCleanup(end)
        self.assertEqual(process.stdout.readline(), "begun\n")
        return process

    def test_ctrl_c_ends_a_write_and_leaves_nothing(self):
        process = self.start(
            """
            import sys
            begun = []
            def progress(copied):
                if not begun:
                    begun.append(print("begun", flush=True))
            mq.write(endless(), sys.argv[1] + "/b.parquet", progress=progress)
            """
        )
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1]
        self.assertIn("KeyboardInterrupt", said)
        self.assertEqual(os.listdir(self.folder), [])

    def test_ctrl_c_ends_a_read(self):
        table = pyarrow.table({"a": range(3_000_000)})
        pyarrow.parquet.write_table(table, self.path)
        process = self.start(
            """
            import sys
            table = mq.open(sys.argv[1] + "/a.parquet")
            print("begun", flush=True)
            while True:
                for batch in table.batches():
                    pass
            """
        )
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        self.assertIn("KeyboardInterrupt", process.communicate(timeout=30)[1])

    def test_ctrl_c_ends_a_stream_that_others_read(self):
        table = pyarrow.table({"a": range(3_000_000)})
        pyarrow.parquet.write_table(table, self.path)
        process = self.start(
            """
            import sys
            tables = [mq.open([sys.argv[1] + "/a.parquet"] * 400).select("a")]
            print("begun", flush=True)
            pyarrow.table(tables[0])
            """
        )
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=60)[1]
        self.assertIn("KeyboardInterrupt", said)

    def test_a_killed_writer_leaves_no_file_of_that_name(self):
        process = self.start(
            """
            import sys
            begun = []
            def progress(copied):
                if not begun:
                    begun.append(print("begun", flush=True))
            mq.write(endless(), sys.argv[1] + "/b.parquet", progress=progress)
            """
        )
        process.kill()
        process.wait()
        self.assertNotIn("b.parquet", os.listdir(self.folder))

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_a_fork_reads_what_was_opened_and_refuses_what_was_begun(self):
        pyarrow.parquet.write_table(pyarrow.table({"a": range(200_000)}), self.path, row_group_size=20_000)
        table = mq.open(self.path)
        batches = table.batches()
        next(batches)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                try:
                    next(batches)
                except mq.InvalidArgument:
                    code = 2
                del batches
                if code == 2 and sum(batch.num_rows for batch in table.batches()) == 200_000:
                    code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(sum(batch.num_rows for batch in batches), 200_000 - 8192)

    def test_many_batches_take_no_memory(self):
        pyarrow.parquet.write_table(pyarrow.table({"a": range(100_000)}), self.path)
        table = mq.open(self.path)

        def read(times):
            for _ in range(times):
                for batch in table.batches():
                    pyarrow.record_batch(batch)
                pyarrow.table(table)

        def resident():
            with open("/proc/self/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

        read(20)
        before = resident()
        read(200)
        # 200 times 1.6 MB would be 320 MB.
        self.assertLess(resident() - before, 64 << 20)

    def test_the_package_imports_little(self):
        program = "import sys; before = set(sys.modules); import marquetry; print(sorted(set(sys.modules) - before))"
        found = subprocess.run([sys.executable, "-I", "-c", "import sys; sys.path[:0] = sys.argv[1:]; " + program]
                               + os.environ["PYTHONPATH"].split(os.pathsep), capture_output=True, text=True, check=True)
        for heavy in ("pyarrow", "numpy", "pandas", "polars", "asyncio", "json"):
            self.assertNotIn(f"'{heavy}'", found.stdout)


if __name__ == "__main__":
    unittest.main()
