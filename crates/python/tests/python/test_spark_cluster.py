"""The data source on a real cluster: a standalone master and two workers on loopback, of which executors are killed in the middle of their work."""

import functools
import glob
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import marquetry as mq
import pyarrow
import pyspark
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cassandra import WithKeyspace, needs_cassandra

SECONDS_MAX = 180
#: What the programs of the cluster are called.
DEPLOY = "org.apache.spark.deploy"
EXECUTOR = "CoarseGrainedExecutorBackend"


def wait_for(what, condition):
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come to be in {SECONDS_MAX} s")


def children(pid, word):
    """The processes that a process has started whose command has a word."""
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(stat, encoding="utf-8", errors="replace") as file:
                # The name, in parentheses, may have anything in it.
                number, rest = file.read().split(" (", 1)
            with open(f"/proc/{number}/cmdline", encoding="utf-8", errors="replace") as file:
                command = file.read()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(rest.rpartition(") ")[2].split()[1]) == pid and word in command:
            found.append(int(number))
    return found


class StandaloneCluster:
    """A master and two workers, each of which has one core and one executor."""

    def __init__(self, folder):
        self.folder, self.processes, self.workers = folder, [], []
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"spark://127.0.0.1:{port}"
        try:
            master = self.start("master", f"{DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", 0)
            wait_for("the master", lambda: self.says(master, "New state: ALIVE"))
            for number in range(2):
                place = os.path.join(folder, f"worker-{number}")
                arguments = ("--host", "127.0.0.1", "--cores", 1, "--memory", "1g", "--work-dir", place, "--webui-port", 0, self.url)
                self.workers.append(self.start(f"worker-{number}", f"{DEPLOY}.worker.Worker", *arguments))
            wait_for("two workers", lambda: self.count(master, "Registering worker") == 2)
        except BaseException:
            self.stop()
            raise

    def start(self, name, program, *arguments):
        home = os.path.dirname(pyspark.__file__)
        environment = {**os.environ, "SPARK_HOME": home, "SPARK_DAEMON_MEMORY": "256m", "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
        log = open(os.path.join(self.folder, f"{name}.log"), "wb")
        with log:
            command = [os.path.join(home, "bin", "spark-class"), program, *map(str, arguments)]
            # A group of its own: Ctrl-C is for the tests.
            process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        process.log = log.name
        self.processes.append(process)
        return process

    def count(self, process, words):
        if process.poll() is not None:
            with open(process.log, encoding="utf-8", errors="replace") as log:
                raise AssertionError(f"it has ended: {log.read()[-2000:]}")
        with open(process.log, encoding="utf-8", errors="replace") as log:
            return log.read().count(words)

    def says(self, process, words):
        return self.count(process, words) > 0

    def executors(self):
        """The executors that run now."""
        return [executor for worker in self.workers for executor in children(worker.pid, EXECUTOR)]

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def setUpModule():
    global cluster, spark, scratch
    scratch = tempfile.mkdtemp()
    unittest.addModuleCleanup(shutil.rmtree, scratch, ignore_errors=True)
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    cluster = StandaloneCluster(scratch)
    unittest.addModuleCleanup(cluster.stop)
    builder = SparkSession.builder.master(cluster.url).appName("marquetry")
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": os.path.join(scratch, "driver"),
        "spark.sql.warehouse.dir": os.path.join(scratch, "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        "spark.executor.cores": "1",
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
        # Of an executor that is killed, nobody hears more than that it is gone.
        "spark.network.timeout": "60s",
        "spark.executor.heartbeatInterval": "5s",
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.sql.session.timeZone": "UTC",
    }
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    unittest.addModuleCleanup(spark.stop)
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(mq.spark.Source)
    wait_for("two executors", lambda: len(cluster.executors()) == 2)


def load(address, **options):
    return spark.read.format("marquetry").options(**options).load(address)


def save(frame, address, mode="append", **options):
    frame.write.format("marquetry").mode(mode).options(**options).save(address)


def marked(folder, seconds):
    """Passes batches on, slowly, and leaves a mark for each task that has begun."""

    def work(batches):
        import os
        import time
        from pyspark import TaskContext

        context = TaskContext.get()
        with open(os.path.join(folder, f"{context.partitionId()}-{context.attemptNumber()}"), "w"):
            pass
        for batch in batches:
            yield batch
            time.sleep(seconds)

    return work


class OnTwoWorkers(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        wait_for("two executors", lambda: len(cluster.executors()) == 2)

    def path(self, name):
        return os.path.join(self.folder, name)

    def marks(self):
        os.makedirs(self.path("marks"), exist_ok=True)
        return self.path("marks")

    def trips(self, files, rows):
        """A directory of so many files, each with so many rows."""
        os.mkdir(self.path("trips"))
        for number in range(files):
            ids = range(number * rows, (number + 1) * rows)
            mq.write(pyarrow.table({"id": ids, "name": [f"n{i}" for i in ids]}), self.path(f"trips/{number:03}.parquet"))
        return self.path("trips")

    def rows(self, count, partitions, seconds=0.5):
        """Rows that come slowly."""
        frame = spark.range(0, count, 1, partitions).withColumn("name", F.concat(F.lit("n"), "id"))
        return frame.mapInArrow(marked(self.marks(), seconds), "id bigint, name string")

    def killing(self, work, marks=4):
        """Does a work, and kills an executor as soon as so many tasks have begun. Returns what the work does."""
        killed = []

        def kill():
            wait_for("some tasks", lambda: len(os.listdir(self.marks())) >= marks)
            for executor in cluster.executors()[:1]:
                os.kill(executor, signal.SIGKILL)
                killed.append(executor)

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            return work()
        finally:
            killer.join()
            self.assertEqual(len(killed), 1)
            # A task that it was at was tried again.
            attempts = [int(mark.rpartition("-")[2]) for mark in os.listdir(self.marks())]
            self.assertGreater(max(attempts), 0)

    def assert_table(self, directory, count):
        table = pyarrow.table(mq.open(directory)).sort_by("id")
        self.assertEqual(table["id"].to_pylist(), list(range(count)))
        self.assertEqual(table["name"].to_pylist(), [f"n{i}" for i in range(count)])


class WithFiles(OnTwoWorkers):
    def test_both_workers_read(self):
        frame = load(self.trips(16, 100))
        self.assertEqual(frame.rdd.getNumPartitions(), 16)

        def place(batches):
            import os
            import time

            for batch in batches:
                time.sleep(0.1)
                yield pyarrow.record_batch({"place": [os.getcwd()] * batch.num_rows})

        # An executor's directory: WORKER/APPLICATION/NUMBER.
        places = {row.place for row in frame.mapInArrow(place, "place string").distinct().collect()}
        self.assertEqual({place.split(os.sep)[-3] for place in places}, {"worker-0", "worker-1"})
        self.assertEqual(sorted(map(tuple, frame.collect())), [(i, f"n{i}") for i in range(1600)])
        self.assertEqual(load(self.path("trips"), where="id >= 250 AND id < 1350", columns="id").agg(F.sum("id")).first()[0], sum(range(250, 1350)))

    def test_an_executor_is_killed_while_it_reads(self):
        frame = load(self.trips(24, 500))
        slow = frame.mapInArrow(marked(self.marks(), 0.5), "id bigint, name string")
        found = self.killing(lambda: slow.toArrow().sort_by("id"))
        self.assertEqual(found["id"].to_pylist(), list(range(12_000)))

    def test_an_executor_is_killed_while_it_writes(self):
        self.killing(lambda: save(self.rows(50_000, 24), self.path("t"), codec="zstd"))
        self.assert_table(self.path("t"), 50_000)
        self.assertEqual(sorted(os.listdir(self.folder)), ["marks", "t"])
        self.assertEqual(len([name for name in os.listdir(self.path("t")) if name.endswith(".parquet")]), 24)
        # Added to, and replaced, as well.
        shutil.rmtree(self.marks())
        added = self.rows(60_000, 24).where("id >= 50000")
        self.killing(lambda: save(added, self.path("t")))
        self.assert_table(self.path("t"), 60_000)
        shutil.rmtree(self.marks())
        self.killing(lambda: save(self.rows(1000, 24), self.path("t"), "overwrite"))
        self.assert_table(self.path("t"), 1000)
        self.assertEqual(sorted(os.listdir(self.folder)), ["marks", "t"])

    def test_a_job_that_fails_leaves_nothing(self):
        save(self.rows(10, 2, 0), self.path("t"))

        def fail(batches):
            from pyspark import TaskContext

            yield from batches
            if TaskContext.get().partitionId() == 7:
                raise RuntimeError("no more of this")

        failing = spark.range(0, 1000, 1, 8).mapInArrow(fail, "id bigint").withColumn("name", F.lit("n"))
        for mode in ("append", "overwrite"):
            with self.assertRaises(PySparkException) as raised:
                save(failing, self.path("t"), mode)
            self.assertIn("no more of this", str(raised.exception))
            self.assert_table(self.path("t"), 10)
        self.assertEqual(sorted(os.listdir(self.folder)), ["marks", "t"])

    def test_a_directory_that_executors_do_not_see_is_told(self):
        # What the driver has made is gone once the job is planned: as where nothing is shared.
        class Elsewhere(mq.spark.Source):
            @classmethod
            def name(cls):
                return "elsewhere"

            def writer(self, schema, overwrite):
                writer = super().writer(schema, overwrite)
                shutil.rmtree(writer.temporary)
                return writer

        spark.dataSource.register(Elsewhere)
        with self.assertRaises(PySparkException) as raised:
            spark.range(10).write.format("elsewhere").mode("append").save(self.path("t"))
        self.assertIn("on a file system that all executors share", str(raised.exception))
        self.assertFalse(os.path.exists(self.path("t")))

    def test_an_executor_is_killed_while_a_stream_reads(self):
        trips = self.trips(12, 400)
        stream = spark.readStream.format("marquetry").option("max_files_per_trigger", "6").load(trips)
        slow = stream.mapInArrow(marked(self.marks(), 0.5), "id bigint, name string")
        writer = slow.writeStream.format("parquet").option("checkpointLocation", self.path("checkpoint")).option("path", self.path("out"))

        def run():
            query = writer.trigger(availableNow=True).start()
            try:
                self.assertTrue(query.awaitTermination(600))
                if query.exception():
                    raise query.exception()
            finally:
                query.stop()

        self.killing(run)
        found = sorted(map(tuple, spark.read.parquet(self.path("out")).collect()))
        self.assertEqual(found, [(i, f"n{i}") for i in range(4800)])


@needs_cassandra
class WithCassandra(WithKeyspace, OnTwoWorkers):
    KEYSPACE = "marquetry_spark_cluster"

    def setUp(self):
        super().setUp()
        self.make_keyspace()

    def test_an_executor_is_killed_while_rows_are_loaded(self):
        address = self.address("t")
        self.killing(lambda: save(self.rows(20_000, 16), address, create="true", key="id"))
        frame = load(address)
        self.assertEqual(sorted(map(tuple, frame.collect())), [(i, f"n{i}") for i in range(20_000)])
        # Read with an executor that is killed, too.
        shutil.rmtree(self.marks())
        slow = load(address, partitions="16").mapInArrow(marked(self.marks(), 0.5), "id bigint, name string")
        found = self.killing(lambda: slow.toArrow().sort_by("id"))
        self.assertEqual(found["id"].to_pylist(), list(range(20_000)))


#: Tests that start and stop servers.
needs_servers = unittest.skipUnless(os.environ.get("MARQUETRY_CASSANDRA_DIR"), "it needs a Cassandra of dev/cassandra.sh")


def result_of(work):
    """What a work returns, or the error of Spark's that it ends with."""
    try:
        return work()
    except PySparkException as error:
        return error


class WithServers(WithKeyspace, OnTwoWorkers):
    def cassandra(self, command, directory, *arguments):
        script = os.path.join(os.environ["MARQUETRY_ROOT"], "dev", "cassandra.sh")
        subprocess.run([script, command, directory, *arguments], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def while_it_goes(self, work, go):
        """Does a work, and `go` as soon as some tasks of it have begun. Returns what the work does, or its error, and how many had begun."""
        shutil.rmtree(self.marks())
        self.marks()
        begun, has_ended = [], threading.Event()

        def wait_and_go():
            wait_for("some tasks", lambda: has_ended.is_set() or len(os.listdir(self.marks())) >= 4)
            begun.append(len(os.listdir(self.marks())))
            if not has_ended.is_set():
                go()

        going = threading.Thread(target=wait_and_go)
        going.start()
        try:
            result = result_of(work)
        finally:
            has_ended.set()
            going.join()
        self.assertGreaterEqual(begun[0], 4, result)
        return result, begun[0]

    def in_parts(self, address, **options):
        """A table in eight partitions at least, however small a server knows it to be."""
        ends = [str(2**61 * at) for at in range(-3, 4)]
        frames = [load(address, token_range=f"{after}:{last}", **options) for after, last in zip(["", *ends], [*ends, ""])]
        return functools.reduce(DataFrame.union, frames)

    def assert_rows(self, address, ids, **options):
        self.assertEqual(sorted(map(tuple, load(address, **options).collect())), [(i, f"n{i}") for i in ids])


@needs_servers
class WithAServerThatGoes(WithServers):
    KEYSPACE = "marquetry_spark_goes"

    def setUp(self):
        super().setUp()
        self.make_keyspace()
        self.directory, self.port = os.environ["MARQUETRY_CASSANDRA_DIR"], self.server.rpartition(":")[2]
        # Whatever becomes of a test, the others have a server.
        self.addCleanup(self.start)

    def stop(self):
        self.cassandra("stop", self.directory)

    def start(self):
        try:
            self.cassandra("where", self.directory)
        except subprocess.CalledProcessError:
            self.cassandra("start", self.directory, "--port", self.port)

    def restart(self):
        self.stop()
        self.start()

    def test_one_that_comes_back_is_waited_for(self):
        address = self.address("t")
        # Rows on their way are sent again, and tasks that begin meanwhile wait until they can connect.
        ended, begun = self.while_it_goes(lambda: save(self.rows(6000, 12, 1), address, create="true", key="id", retry_for="170"), self.restart)
        self.assertIsNone(ended)
        self.assertLess(begun, 12)
        self.assert_rows(address, range(6000))
        # So do those that read: rows of token ranges, and a file that a table holds.
        mq.copy(address, self.address("file"), layout="columns", create=True)

        def read():
            rows = self.in_parts(address, retry_for="170").union(load(self.address("file"), retry_for="170"))
            return rows.mapInArrow(marked(self.marks(), 1), "id bigint, name string").toArrow()

        found, begun = self.while_it_goes(read, self.restart)
        self.assertIsInstance(found, pyarrow.Table, found)
        self.assertLess(begun, 9)
        self.assertEqual(found.sort_by("id").to_pylist(), [{"id": i, "name": f"n{i}"} for i in range(6000) for _ in "ab"])

    def test_one_that_does_not_is_told_and_rows_are_whole(self):
        address = self.address("t")
        save(self.rows(0, 1, 0), address, create="true", key="id")
        # Each task is tried, and waits for as long as it is told to; then the job has failed.
        ended, begun = self.while_it_goes(lambda: save(self.rows(6000, 12, 1), address, retry_for="3"), self.stop)
        self.assertLess(begun, 12)
        self.assertRegex(str(ended), "cannot connect to|did not acknowledge a row")
        # The driver says so at once.
        started = time.monotonic()
        self.assertIn(f"cannot connect to {address}", str(result_of(lambda: load(address).count())))
        self.assertLess(time.monotonic() - started, 60)
        self.start()
        # Some rows are there, each of them whole; the same job once more adds the others, and changes none.
        there = sorted(row.id for row in load(address).collect())
        self.assertLess(len(there), 6000)
        self.assert_rows(address, there)
        save(self.rows(6000, 12, 0), address)
        self.assert_rows(address, range(6000))
        # A job that reads is told, too.
        slow = self.in_parts(address, retry_for="3").mapInArrow(marked(self.marks(), 1), "id bigint, name string")
        ended, _ = self.while_it_goes(slow.toArrow, self.stop)
        self.assertRegex(str(ended), "cannot connect to|not read rows")


@needs_servers
class WithANodeThatIsLost(WithServers):
    KEYSPACE = "marquetry_spark_lost"
    #: Where nobody else starts a node.
    NODES = ("127.0.0.12", "127.0.0.13")

    def setUp(self):
        super().setUp()
        first = f"{self.NODES[0]}:7000"
        for node in self.NODES:
            self.addCleanup(self.cassandra, "stop", self.path(node))
            seed = () if node == self.NODES[0] else ("--seed", first)
            self.cassandra("start", self.path(node), "--address", node, "--port", "9042", "--storage-port", "7000", *seed)
        self.server = f"{self.NODES[0]}:9042"
        self.statement(f"CREATE KEYSPACE {self.KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 2}}")

    def address(self, table):
        return f"cql://{','.join(f'{node}:9042' for node in self.NODES)}/{self.KEYSPACE}.{table}"

    def lose(self):
        with open(os.path.join(self.path(self.NODES[1]), "pid"), encoding="ascii") as file:
            os.kill(int(file.read()), signal.SIGKILL)

    def test_the_other_one_answers_if_that_is_enough(self):
        a, b = self.address("a"), self.address("b")
        save(self.rows(6000, 4, 0), a, create="true", key="id", consistency="all")
        save(self.rows(0, 1, 0), b, create="true", key="id")

        def read_and_write():
            slow = load(a, partitions="12", consistency="local_one").mapInArrow(marked(self.marks(), 1), "id bigint, name string")
            save(slow, b, consistency="local_one")

        ended, begun = self.while_it_goes(read_and_write, self.lose)
        self.assertIsNone(ended)
        self.assertLess(begun, 12)
        self.assert_rows(b, range(6000), consistency="local_one")
        # Where both are wanted, that is told.
        self.assertRegex(str(result_of(lambda: load(a, consistency="all", retry_for="2").count())), "not read rows")


if __name__ == "__main__":
    unittest.main()
