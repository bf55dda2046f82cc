"""Errors, their classes and fields."""

import copy
import errno
import os
import pickle
import socket
import ssl
import subprocess
import sys
import tempfile
import textwrap
import threading
import unittest
import unittest.mock

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

    def test_what_may_not_be_read(self):
        with open(self.path, "wb"):
            pass
        os.chmod(self.path, 0)
        program = """
            import errno, os, sys
            import marquetry as mq

            # Who is root may read all that there is.
            if os.geteuid() == 0:
                os.seteuid(65534)
            try:
                mq.open(sys.argv[1])
            except PermissionError as error:
                print(type(error) is mq.PermissionDenied, error.errno == errno.EACCES, error.filename == sys.argv[1])
            """
        told = subprocess.run([sys.executable, "-c", textwrap.dedent(program), self.path], capture_output=True, text=True, check=True)
        self.assertEqual(told.stdout, "True True True\n", told.stderr)

    def test_a_limit_has_its_name(self):
        # It claims to have a footer of 257 MiB, and has room for it.
        with open(self.path, "wb") as file:
            file.write(b"PAR1")
            file.truncate(300 << 20)
            file.seek(0, os.SEEK_END)
            file.write((257 << 20).to_bytes(4, "little") + b"PAR1")
        with self.assertRaises(mq.LimitExceeded) as raised:
            mq.open(self.path)
        error = raised.exception
        self.assertEqual((error.limit, error.address, error.option), ("footer_bytes", self.path, None))

    def test_errors_that_are_pickled_or_copied_keep_their_fields(self):
        with self.assertRaises(mq.NotFound) as raised:
            mq.open(self.path)
        missing = raised.exception
        part = mq.ConversionError("row 7: no", message="no", place={"row": 7, "column": "a"}, admitted_by=["types"])
        several = mq.InvalidArgument("all of it", option="codec", limit="footer_bytes", parts=[part])
        for error in (missing, part, several):
            for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
                self.assertIs(type(again), type(error))
                self.assertEqual(str(again), str(error))
                for field in ("message", "address", "place", "limit", "option", "admitted_by"):
                    self.assertEqual(getattr(again, field), getattr(error, field), field)
                self.assertEqual([(str(it), it.place) for it in again.parts], [(str(it), it.place) for it in error.parts])
                if error is missing:
                    self.assertEqual((again.errno, again.filename), (errno.ENOENT, self.path))

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
        # Who goes on after it is not told that this was all.
        batches = mq.open(self.path).batches()
        with self.assertRaises(mq.InvalidFile):
            next(batches)
        for again in (lambda: next(batches), lambda: pyarrow.RecordBatchReader.from_stream(batches)):
            with self.assertRaisesRegex(mq.InvalidArgument, "before the last row"):
                again()
        # Nor is another library that goes on with a stream.
        reader = pyarrow.RecordBatchReader.from_stream(mq.open(self.path))
        for words in ("column b", "before the last row"):
            with self.assertRaisesRegex(Exception, words):
                reader.read_next_batch()
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
        with self.assertRaisesRegex(mq.InvalidArgument, "null has no comma"):
            mq.copy(self.path, target, null=["a,b"])
        self.assertFalse(os.path.exists(target))

    def test_what_would_help_is_named_as_it_is_given(self):
        with open(self.path + ".csv", "w", encoding="utf-8") as file:
            # More than is looked at for types.
            file.write("a,b\n" + f"1,{'x' * 1_000}\n" * 20_000 + "one,x\n")
        with self.assertRaises(mq.ConversionError) as raised:
            mq.copy(self.path + ".csv", self.path)
        self.assertEqual(raised.exception.admitted_by, ["infer_all", "types"])
        mq.copy(self.path + ".csv", self.path, infer_all=True)
        self.assertEqual(mq.open(self.path).count(), 20_001)

    def test_a_value_that_does_not_fit(self):
        with self.assertRaises(mq.ConversionError) as raised:
            pyarrow.parquet.write_table(pyarrow.table({"a": [1, 300]}), self.path)
            for _ in mq.open(self.path).types("a=tinyint").batches():
                pass
        self.assertEqual((raised.exception.place.row, raised.exception.place.column), (1, "a"))

    def test_tasks_of_spark_wait_for_a_cluster_until_rows_move(self):
        from marquetry._spark_waiting import RETRY_SECONDS, patience, patiently

        self.assertEqual(patience("cql://h/k.t", {}), RETRY_SECONDS)
        self.assertEqual((patience("cql://h/k.t", {"retry_for": "3"}), patience("/a/b", {"retry_for": "3"})), (3, 0))
        # Nobody listens there.
        address = "cql://127.0.0.1:9/ks.t"

        def tried(seconds, errors, has_begun=lambda: False):
            """How often something is tried that fails so, and then does not."""
            tries = []

            def work():
                tries.append(None)
                if len(tries) <= len(errors):
                    raise errors[len(tries) - 1]
                return "done"

            with unittest.mock.patch("time.sleep"):
                try:
                    ended = patiently(work, seconds, has_begun)
                except mq.Error as error:
                    ended = error
            return len(tries), ended

        with self.assertRaises(mq.InputOutputError) as raised:
            mq.open(address)
        away = raised.exception
        self.assertIs(type(away), mq.InputOutputError)
        self.assertEqual(tried(60, [away, away]), (3, "done"))
        # Neither after the time, nor when rows were taken, nor for what has nothing to do with connections.
        self.assertEqual(tried(0, [away]), (1, away))
        self.assertEqual(tried(60, [away], lambda: True), (1, away))
        for other in (mq.NotFound("no such file"), mq.InvalidArgument("no such option"), mq.Refused("no such user")):
            self.assertEqual(tried(60, [other]), (1, other))
        # A copy connects before it takes rows, so that such a task can wait.
        taken = []

        def batches():
            taken.append(None)
            yield pyarrow.record_batch({"id": [1]})

        rows = pyarrow.RecordBatchReader.from_batches(pyarrow.schema({"id": pyarrow.int64()}), batches())
        with self.assertRaises(mq.InputOutputError):
            mq.write(rows, address)
        self.assertEqual(taken, [])

    def test_a_cluster_that_is_not_trusted_is_refused_at_once(self):
        from marquetry._spark_waiting import patiently

        keys = os.path.join(os.environ["MARQUETRY_ROOT"], "crates", "cluster", "tests", "data", "tls")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # For the name localhost, and no address.
        context.load_cert_chain(os.path.join(keys, "node.pem"), os.path.join(keys, "node-key.pem"))
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]

        def serve():
            while True:
                try:
                    arrived, _ = listener.accept()
                except OSError:
                    return
                with arrived:
                    try:
                        context.wrap_socket(arrived, server_side=True).close()
                    except OSError:
                        # The client has gone.
                        pass

        server = threading.Thread(target=serve)
        server.start()
        # The one that waits is woken.
        self.addCleanup(server.join)
        self.addCleanup(listener.close)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        for host, authority, said, option in (
            ("localhost", "other.pem", "UnknownIssuer", "ca"),
            ("127.0.0.1", "authority.pem", "not valid for name", "tls_any_host"),
        ):
            tries = []

            def work():
                tries.append(None)
                mq.open(f"cql://me:tiger@{host}:{port}/ks.t", ca=os.path.join(keys, authority))

            with self.subTest(said), self.assertRaisesRegex(mq.Refused, said) as raised:
                patiently(work, 60)
            self.assertEqual((len(tries), raised.exception.admitted_by[0]), (1, option))
            self.assertNotIn("tiger", str(raised.exception))

    def test_addresses_in_messages_have_no_secrets(self):
        from marquetry._marquetry import shown

        for address, said in (
            ("cql://me:tiger@h/ks.t", "cql://me:***@h/ks.t"),
            ("https://h/a.parquet?X-Amz-Signature=tiger", "https://h/a.parquet?…"),
            ("/a/b@c.parquet", "/a/b@c.parquet"),
        ):
            self.assertEqual(shown(address), said)


if __name__ == "__main__":
    unittest.main()
