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

# Rows that never end, slowly: what is to be interrupted, also where Ctrl-C is ignored by whoever started the tests.
ENDLESS = """
import signal
import time
import marquetry as mq
import pyarrow

signal.signal(signal.SIGINT, signal.default_int_handler)
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

    def assert_interrupted(self, process):
        """It ends as any program of Python's that Ctrl-C ends, and not by an interpreter that gives up. Returns what it has said of that."""
        said = process.communicate(timeout=30)[1]
        self.assertIn("KeyboardInterrupt", said)
        self.assertEqual(process.returncode, -signal.SIGINT, said)
        self.assertNotIn("Fatal", said)
        return said

    def assert_ctrl_c_ends(self, work, table):
        """Work with a table that is `long`, which leaves nothing."""
        with self.subTest(work):
            process = self.start(
                f"""
                import sys
                table = {table}
                print("begun", flush=True)
                {work}
                """
            )
            # Signals are looked for after a twentieth of a second.
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            self.assert_interrupted(process)
            self.assertEqual(os.listdir(self.folder), ["a.parquet"])

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
        self.assert_interrupted(process)
        self.assertEqual(os.listdir(self.folder), [])

    def long(self):
        """The words of a table of two thousand million rows, of which none is wanted: nothing comes of it for minutes."""
        table = pyarrow.table({"a": range(2_000_000)})
        pyarrow.parquet.write_table(table, self.path, write_statistics=False, use_dictionary=False)
        return 'mq.open([sys.argv[1] + "/a.parquet"] * 1000).where("a = -1")'

    def test_ctrl_c_ends_a_read(self):
        process = self.start(
            f"""
            import sys
            batches = {self.long()}.batches()
            print("begun", flush=True)
            next(batches)
            """
        )
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        self.assert_interrupted(process)

    def start_a_stream(self, program):
        """Starts a program that has another library read `long`. What takes long in its first use, imports of pandas among it, is done before it begins."""
        return self.start(
            f"""
            import sys
            pyarrow.table(mq.open(sys.argv[1] + "/a.parquet").limit(1))
            table = {self.long()}
            print("begun", flush=True)
            {program}
            """
        )

    def test_ctrl_c_ends_a_stream_that_others_read(self):
        for read in ("pyarrow.table(table)", "pyarrow.RecordBatchReader.from_stream(table).read_all()"):
            with self.subTest(read):
                process = self.start_a_stream(read)
                time.sleep(0.2)
                process.send_signal(signal.SIGINT)
                said = self.assert_interrupted(process)
                # It came while the stream was read: pyarrow was told, and its exception is the other one's context.
                self.assertIn("External error: KeyboardInterrupt\n", said)
                self.assertNotIn("Exception ignored", said)

    def test_a_library_that_keeps_a_stream_is_interrupted_after_its_error(self):
        process = self.start_a_stream(
            """
            reader = pyarrow.RecordBatchReader.from_stream(table)
            try:
                reader.read_all()
            except pyarrow.ArrowInvalid:
                time.sleep(1)
                print("nothing came", flush=True)
            """
        )
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        said = self.assert_interrupted(process)
        self.assertNotIn("Exception ignored", said)

    def test_what_a_handler_raises_ends_a_stream_that_others_read(self):
        """Whatever its class; and it is called once."""
        process = self.start_a_stream(
            """
            class Enough(Exception):
                pass

            calls = []
            def handler(number, frame):
                calls.append(number)
                raise Enough("now")

            signal.signal(signal.SIGINT, handler)
            print("listens", flush=True)
            try:
                pyarrow.table(table)
            except Enough as error:
                print(error, error.__context__, len(calls), flush=True)
            """
        )
        self.assertEqual(process.stdout.readline(), "listens\n")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        told, said = process.communicate(timeout=30)
        self.assertEqual((told, process.returncode), ("now External error: Enough: now 1\n", 0), said)

    def test_a_stream_is_read_without_the_interpreter_in_calls_of_ours(self):
        """pyarrow releases the interpreter while it reads, and signals are looked for meanwhile: also where it is called by us."""
        table = self.long()
        for work in ("table.to_arrow()", "mq.copy(endless(), sys.argv[1] + '/b.parquet', progress=lambda _: pyarrow.table(table))"):
            self.assert_ctrl_c_ends(work, table)

    def test_ctrl_c_ends_whatever_takes_long(self):
        table = self.long()
        for work in (
            "table.count()",
            "table.column_statistics()",
            "mq.diff(table, table)",
            "mq.Finder(table, 'a').find(-1).count()",
            "mq.copy(table, sys.argv[1] + '/b.parquet')",
        ):
            self.assert_ctrl_c_ends(work, table)

    def test_other_threads_of_python_run_meanwhile(self):
        """Rows come from a pipe that a thread of Python feeds: with the interpreter held, both would wait for each other for ever."""
        program = """
            import os, sys, threading
            import marquetry as mq
            import pyarrow

            rows = 200_000
            # More than a pipe holds.
            text = "id\\n" + "".join(f"{row}\\n" for row in range(rows))

            def feed(pipe):
                with open(pipe, "w", encoding="ascii") as file:
                    file.write(text)

            def opened(pipe):
                return mq.open(pipe, schema="id bigint", header="yes").threads(0)

            for number, work in enumerate((
                lambda pipe: sum(batch.num_rows for batch in opened(pipe).batches()),
                lambda pipe: pyarrow.table(opened(pipe)).num_rows,
                lambda pipe: opened(pipe).count(),
                lambda pipe: mq.open(pipe, header="yes").count(),
                lambda pipe: mq.copy(pipe, sys.argv[1] + "/copy.parquet", header="yes").rows,
            )):
                # One that was read to its end may have its reader for a moment longer, and has only one.
                pipe = f"{sys.argv[1]}/{number}.csv"
                os.mkfifo(pipe)
                feeder = threading.Thread(target=feed, args=[pipe], daemon=True)
                feeder.start()
                assert work(pipe) == rows
                feeder.join()
            print("read")
            """
        arguments = [sys.executable, "-c", textwrap.dedent(program), self.folder]
        told = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
        self.assertEqual(told.stdout, "read\n", told.stderr)

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
        begun = len(next(batches))
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
        self.assertEqual(sum(batch.num_rows for batch in batches), 200_000 - begun)

    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_a_fork_of_who_has_asked_a_store_is_told(self):
        program = """
            import os, signal
            import marquetry as mq

            def kind():
                try:
                    mq.open("s3://bucket/a.parquet")
                except mq.Error as error:
                    return type(error).__name__, str(error)

            assert kind()[0] == "InputOutputError"
            if os.fork() == 0:
                signal.alarm(20)
                name, text = kind()
                os._exit(7 if name == "InvalidArgument" and "forked" in text else 1)
            print(os.waitstatus_to_exitcode(os.wait()[1]))
            """
        # Nobody listens there.
        store = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
                 "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true"}
        told = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env={**os.environ, **store},
                              capture_output=True, text=True, check=True)
        self.assertEqual(told.stdout, "7\n", told.stderr)

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
