"""The data source of Apache Spark: one session for all tests, with two threads, which tries a task three times."""

import os
import random
import shutil
import sys
import tempfile
import time
import unittest
import warnings

import marquetry as mq
import pyarrow
import pyarrow.parquet
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as spark_types

from cassandra import TYPES, WithKeyspace, needs_cassandra, types_table
from test_types import columns

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
#: What Spark has no type for: unsigned 64 bits, more than 38 digits, nanoseconds.
REFUSED = {"uint64", "decimal76", "time_ns", "timestamp_ns"}


def setUpModule():
    global spark, scratch
    scratch = tempfile.mkdtemp()
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder = SparkSession.builder.master("local[2,3]").appName("marquetry")
    conf = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": os.path.join(scratch, "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        # On a busy machine a worker may not be there in the 15 seconds that it is given.
        "spark.python.authenticate.socketTimeout": "120s",
        # Another zone than UTC, and than this machine's.
        "spark.sql.session.timeZone": "America/New_York",
        "spark.sql.timeType.enabled": "true",
    }
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    spark.dataSource.register(mq.spark.Source)


def tearDownModule():
    spark.stop()
    shutil.rmtree(scratch, ignore_errors=True)


def load(address, schema=None, **options):
    reader = spark.read.format("marquetry").options(**options)
    return (reader.schema(schema) if schema else reader).load(address)


def save(frame, address, mode="append", **options):
    frame.write.format("marquetry").mode(mode).options(**options).save(address)


class WithFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def trips(self, name, ids):
        """A file of these trips."""
        ids = list(ids)
        rows = {"id": ids, "fare": [i / 4 if i % 7 else None for i in ids], "city": [f"city {i % 13}" for i in ids]}
        mq.write(pyarrow.table(rows), self.path(name))

    def refused(self, what, *words):
        """What Spark says when something fails, which has these words."""
        with self.assertRaises(PySparkException) as raised:
            what()
        for word in words:
            self.assertIn(word, str(raised.exception))
        return str(raised.exception)


class Reading(WithFolder):
    def test_every_type(self):
        kinds = {name: it for name, it in columns().items() if name not in REFUSED}
        table = pyarrow.table({name: pyarrow.array(values, kind) for name, (values, kind) in kinds.items()})
        mq.write(table, self.path("a.parquet"))
        frame = load(self.path("a.parquet"))
        self.assertEqual(frame.columns, table.column_names)
        wanted = {
            "uint8": "smallint", "uint16": "int", "uint32": "bigint", "float16": "float", "decimal38": "decimal(38,0)",
            "timestamp_ms": "timestamp_ntz", "timestamp_zone": "timestamp", "time_ms": "time(6)", "string_view": "string",
            "uuid": "binary", "duration": "interval day to second", "map": "map<string,bigint>",
            "structs": "array<struct<lat:double,tags:array<string>>>", "null": "void",
        }  # fmt: skip
        types = {field.name: field.dataType.simpleString() for field in frame.schema}
        self.assertEqual({name: types[name] for name in wanted}, wanted)
        for name in table.column_names:
            with self.subTest(name):
                self.assertEqual(frame.select(name).toArrow()[name].to_pylist(), table[name].to_pylist())

    def test_what_spark_lacks_is_refused_with_its_columns(self):
        kinds = columns()
        table = pyarrow.table({name: pyarrow.array(*kinds[name]) for name in ("int8", *sorted(REFUSED))})
        nested = pyarrow.array([{"a": [1, None]}], pyarrow.struct([("a", pyarrow.list_(pyarrow.uint64()))]))
        mq.write(table, self.path("a.parquet"))
        mq.write(pyarrow.table({"deep": nested}), self.path("b.parquet"))
        said = self.refused(lambda: load(self.path("a.parquet")), "uint64", "decimal76", "time_ns", "timestamp_ns")
        self.assertNotIn("int8, which", said.replace("uint", ""))
        self.refused(lambda: load(self.path("b.parquet")), "deep.a.element, which is uint64")
        # They can be left out, and have other types.
        self.assertEqual(load(self.path("a.parquet"), columns="int8").count(), 3)
        frame = load(self.path("a.parquet"), columns="uint64", types="uint64=decimal(20, 0)")
        self.assertEqual([row[0] for row in frame.collect()], [0, None, 2**64 - 1])

    def test_partitions_are_files_and_row_groups(self):
        for number in range(5):
            self.trips(f"{number}.parquet", range(number * 1000, number * 1000 + 1000))
        frame = load(self.folder)
        self.assertEqual(frame.rdd.getNumPartitions(), 5)
        self.assertEqual(sorted(row.id for row in frame.collect()), list(range(5000)))
        fewer = load(self.folder, partitions="2")
        self.assertEqual(fewer.rdd.getNumPartitions(), 2)
        self.assertEqual(fewer.agg(F.sum("id")).first()[0], sum(range(5000)))
        self.assertEqual(load(self.path("*.parquet")).count(), 5000)
        # A file of two row groups that are worth a task each.
        noise = random.Random(1)
        large = pyarrow.table({"x": pyarrow.array([noise.getrandbits(62) for _ in range(2_300_000)])})
        pyarrow.parquet.write_table(large, self.path("large.parquet"), row_group_size=1_150_000, use_dictionary=False)
        frame = load(self.path("large.parquet"))
        self.assertEqual(frame.rdd.getNumPartitions(), 2)
        self.assertEqual(frame.agg(F.bit_xor("x")).first()[0], self.xor(large["x"]))
        self.assertEqual(frame.count(), 2_300_000)

    @staticmethod
    def xor(column):
        value = 0
        for each in column.to_pylist():
            value ^= each
        return value

    def test_columns_and_rows_are_chosen_by_options(self):
        self.trips("a.parquet", range(1000))
        # Names are those after `rename`.
        self.refused(lambda: load(self.path("a.parquet"), columns="city, id", rename="city=town"), "city")
        frame = load(self.path("a.parquet"), columns="town, id", where="id < 20 AND fare IS NOT NULL", rename="city=town")
        self.assertEqual(frame.columns, ["town", "id"])
        self.assertEqual(sorted(row.id for row in frame.collect()), [i for i in range(20) if i % 7])
        self.refused(lambda: load(self.path("a.parquet"), kolumns="id"), "kolumns")
        self.refused(lambda: load(self.path("a.parquet"), partitions="none").collect(), "partitions is a number")
        self.refused(lambda: load(self.path("a.parquet"), max_files_per_trigger="1").collect(), "this is for streams")

    def test_one_query_does_not_filter_another(self):
        self.trips("a.parquet", range(100))
        self.addCleanup(spark.conf.set, PUSHDOWN, "false")
        for may_push in ("true", "false"):
            spark.conf.set(PUSHDOWN, may_push)
            frame = load(self.path("a.parquet"))
            self.assertEqual(frame.where("id < 10").count(), 10)
            self.assertEqual(frame.count(), 100)
            self.assertEqual(frame.where("id = 3").union(frame).count(), 101)

    def test_filters_of_a_query_become_predicates(self):
        from marquetry import _spark_filters
        from pyspark.sql import datasource as filters

        self.trips("a.parquet", range(1000))
        schema = load(self.path("a.parquet")).schema
        if not _spark_filters.IS_APART:
            self.refused(lambda: load(self.path("a.parquet"), pushdown="true").count(), "keeps the filters of one query")
        reader = _spark_filters.FilteringReader({"path": self.path("a.parquet"), "where": "id < 500"}, schema)
        wanted = [
            filters.GreaterThan(("id",), 7),
            filters.In(("city",), ("city 1", None)),
            filters.Not(filters.EqualTo(("id",), 14)),
            filters.StringStartsWith(("city",), "city"),
            filters.IsNotNull(("fare",)),
            # What may be more than is said, or is of no use here, is left to Spark.
            filters.GreaterThan(("fare",), 1.0),
            filters.EqualTo(("id",), "text"),
            filters.Not(filters.EqualNullSafe(("id",), 40)),
            filters.StringContains(("city",), "7"),
        ]
        self.assertEqual(list(reader.pushFilters(wanted)), wanted)
        found = [i for part in reader.partitions() for batch in reader.read(part) for i in batch["id"].to_pylist()]
        self.assertEqual(found, [i for i in range(8, 500) if i % 13 == 1 and i != 14 and i % 7])

    def test_a_schema_that_is_given_is_the_tables(self):
        self.trips("a.parquet", range(100))
        frame = load(self.path("a.parquet"), "city string, id bigint")
        self.assertEqual(frame.columns, ["city", "id"])
        self.assertEqual(frame.where("id = 3").collect()[0], ("city 3", 3))
        self.refused(lambda: load(self.path("a.parquet"), "id int").collect(), "the column id is bigint, and not int")
        self.refused(lambda: load(self.path("a.parquet"), "tip double").collect(), "no column tip; it has id, fare, city")

    def test_signatures_are_not_told(self):
        from marquetry._spark_read import Plan

        self.assertEqual(Plan({"path": "https://h/a.parquet?X-Amz-Signature=tiger"}).name, "https://h/a.parquet?…")

    def test_paths_as_spark_writes_them(self):
        self.trips("a.parquet", range(10))
        for scheme in ("file:", "file://", "FILE:"):
            self.assertEqual(load(scheme + self.path("a.parquet")).count(), 10)
        save(load(self.path("a.parquet")), "file:" + self.path("t"))
        self.assertEqual(load(self.path("t")).count(), 10)
        # What is no path of this machine does not become one.
        for wrong in ("dbfs:/t", "hdfs:/t", "hdfs://h/t"):
            self.refused(lambda: load(wrong), wrong.partition(":")[0])
            self.refused(lambda: save(spark.range(1), wrong), "path is" if "://" not in wrong else "into a directory")

    def test_what_is_not_there_is_said(self):
        self.refused(lambda: load(self.path("none.parquet")), "none.parquet")
        self.refused(lambda: load("-"), "no standard input")
        self.refused(lambda: spark.read.format("marquetry").load(), "an address is needed")

    def test_a_table_that_changed_is_an_error(self):
        self.trips("a.parquet", range(100))
        frame = load(self.path("a.parquet"))
        self.assertEqual(frame.count(), 100)
        self.trips("b.parquet", range(50))
        os.replace(self.path("b.parquet"), self.path("a.parquet"))
        # Workers that are kept have the table open, as it was.
        self.refused(frame.collect, "changed")
        self.assertEqual(load(self.path("a.parquet")).count(), 50)

    def test_a_task_that_is_tried_again_opens_its_table_again(self):
        from marquetry._spark_read import Plan, _kept, rows, shares

        self.trips("a.parquet", range(100_000))
        plan = Plan({"path": self.path("a.parquet")})
        share, schema = shares(plan, 1)[0], pyarrow.schema(plan.open().schema)
        self.assertEqual(sum(batch.num_rows for batch in rows(share, schema)), 100_000)
        self.assertIn((plan.id, os.getpid()), _kept)
        os.truncate(self.path("a.parquet"), 100)
        with self.assertRaises(mq.Error):
            list(rows(share, schema))
        self.assertNotIn((plan.id, os.getpid()), _kept)

    @unittest.skipUnless(os.environ.get("AWS_ENDPOINT_URL"), "it needs a server of S3")
    def test_objects_are_read(self):
        mq.write(pyarrow.table({"id": range(1000), "city": [f"c{i % 3}" for i in range(1000)]}), "s3://spark/trips/", partition_by="city")
        frame = load("s3://spark/trips/**/*.parquet", where="id >= 10")
        self.assertEqual(frame.rdd.getNumPartitions(), 3)
        self.assertEqual(sorted(row.id for row in frame.where("city = 'c1'").collect()), list(range(10, 1000, 3)))

    def test_sstables_are_rows(self):
        rows = pyarrow.table({"id": list(range(1000)), "name": [f"n{i}" for i in range(1000)]})
        address = "sstable:" + self.path("t")
        mq.write(rows, address, format="da", table="ks.t", key="id")
        frame = load(address)
        self.assertEqual(frame.columns, ["id", "name"])
        self.assertEqual(sorted(map(tuple, frame.collect())), [(i, f"n{i}") for i in range(1000)])


class Writing(WithFolder):
    def rows(self, start, end, partitions=2):
        return spark.range(start, end, 1, partitions).withColumn("name", F.concat(F.lit("n"), "id"))

    def ids(self, directory):
        return sorted(pyarrow.table(mq.open(directory))["id"].to_pylist())

    def test_append_and_overwrite(self):
        to = self.path("below/t")
        save(self.rows(0, 100), to)
        self.assertEqual(self.ids(to), list(range(100)))
        self.assertEqual(sorted(os.listdir(self.path("below"))), ["t"])
        self.assertIn("_SUCCESS", os.listdir(to))
        self.assertEqual(len(os.listdir(to)), 3)
        save(self.rows(100, 150), to, codec="zstd")
        self.assertEqual(self.ids(to), list(range(150)))
        self.assertEqual(len(os.listdir(to)), 5)
        # What would make a table that cannot be read is told before anything is written.
        other = self.rows(150, 151).withColumnRenamed("name", "called")
        self.refused(lambda: save(other, to), "other columns than the table", "called")
        self.refused(lambda: save(spark.sql("SELECT 'a' AS id, 'b' AS name"), to, union="true"), "no type holds the values of both")
        self.assertEqual(len(os.listdir(to)), 5)
        save(other, to, union="true")
        self.assertEqual(load(to, union="true").select("name", "called").where("id >= 149").count(), 2)
        save(self.rows(7, 9), to, "overwrite")
        self.assertEqual(self.ids(to), [7, 8])
        self.assertEqual(sorted(os.listdir(self.path("below"))), ["t"])
        self.assertEqual(sorted(map(tuple, load(to).collect())), [(7, "n7"), (8, "n8")])
        self.refused(lambda: save(self.rows(0, 1), to, new="true"), "already exists")
        self.refused(lambda: save(self.rows(0, 1), to, kodec="zstd"), "kodec")
        self.refused(lambda: save(self.rows(0, 1), to, to="csv"), "each of which writes some of the rows")
        self.assertEqual(self.ids(to), [7, 8])

    def test_no_rows_are_a_table_with_columns(self):
        to = self.path("t")
        save(self.rows(0, 0), to)
        self.assertEqual(mq.open(to).columns, ["id", "name"])
        self.assertEqual(load(to).count(), 0)
        save(self.rows(0, 0), to)
        self.assertEqual(len(os.listdir(to)), 2)

    def test_what_is_no_table_is_not_replaced(self):
        to = self.path("t")
        save(self.rows(0, 5), to)
        with open(os.path.join(to, "thesis.doc"), "w") as file:
            file.write("years of work")
        self.refused(lambda: save(self.rows(5, 6), to, "overwrite"), "thesis.doc in it is no Parquet file")
        os.remove(os.path.join(to, "thesis.doc"))
        self.assertEqual(self.ids(to), list(range(5)))
        self.assertEqual(os.listdir(self.folder), ["t"])
        with open(self.path("file"), "w"):
            pass
        self.refused(lambda: save(self.rows(0, 1), self.path("file")), "is no directory")
        self.refused(lambda: save(self.rows(0, 1), "s3://bucket/t"), "into a directory")

    def test_an_attempt_that_does_not_count_is_not_in_the_table(self):
        schema = spark_types.StructType([spark_types.StructField("id", spark_types.LongType())])
        batch = pyarrow.record_batch({"id": [1, 2]})
        for overwrite in (False, False, True):
            to = self.path("t")
            writer = mq.spark.Source({"path": to}).writer(schema, overwrite)
            counts, _ = writer.write(iter([batch])), writer.write(iter([batch]))
            writer.commit([counts])
            self.assertEqual(os.listdir(self.folder), ["t"])
            # One that is late writes nowhere.
            with self.assertRaises(mq.NotFound):
                writer.write(iter([batch]))
            writer.abort([counts])
        self.assertEqual(self.ids(to), [1, 2])
        writers = [mq.spark.Source({"path": to}).writer(schema, False) for _ in range(2)]
        messages = [writer.write(iter([batch])) for writer in writers]
        os.remove(os.path.join(writers[1].temporary, messages[1].file))
        writers[0].commit(messages[:1])
        with self.assertRaises(OSError):
            writers[1].commit([writers[1].write(iter([batch])), messages[1]])
        writers[1].abort(messages)
        self.assertEqual(self.ids(to), [1, 1, 2, 2])
        # Of two jobs that make one directory, one does.
        writers = [mq.spark.Source({"path": self.path("u")}).writer(schema, False) for _ in range(2)]
        messages = [writer.write(iter([batch])) for writer in writers]
        writers[0].commit(messages[:1])
        with self.assertRaises(OSError):
            writers[1].commit(messages[1:])
        writers[1].abort(messages)
        self.assertEqual(self.ids(self.path("u")), [1, 2])
        self.assertEqual(sorted(os.listdir(self.folder)), ["t", "u"])

    def test_every_type_there_and_back(self):
        kinds = {name: it for name, it in columns().items() if name not in REFUSED and name != "null"}
        table = pyarrow.table({name: pyarrow.array(values, kind) for name, (values, kind) in kinds.items()})
        mq.write(table, self.path("a.parquet"))
        frame = load(self.path("a.parquet"))
        save(frame, self.path("t"))
        back = load(self.path("t"))
        self.assertEqual(back.schema, frame.schema)
        for name in table.column_names:
            with self.subTest(name):
                self.assertEqual(back.select(name).toArrow()[name].to_pylist(), table[name].to_pylist())

    def test_types_that_are_not_written_are_refused(self):
        frame = spark.sql("SELECT 1 AS id, INTERVAL '1' YEAR AS span, array(parse_json('1')) AS what")
        self.refused(lambda: save(frame, self.path("t")), "span is interval year", "what.element is variant")
        self.assertEqual(os.listdir(self.folder), [])

    def test_text_that_is_not_utf8_is_refused(self):
        frame = spark.sql("SELECT 1 AS id, array(CAST(X'61ff' AS STRING)) AS texts")
        self.assertEqual(frame.selectExpr("hex(texts[0])").first()[0], "61FF")
        self.refused(lambda: save(frame, self.path("t")), "the column texts has values that are not of its type", "UTF8")
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_task_that_fails_leaves_nothing(self):
        def fail(batches):
            from pyspark import TaskContext

            for batch in batches:
                yield batch
            if TaskContext.get().partitionId() == 1:
                raise RuntimeError("no more of this")

        save(self.rows(0, 5), self.path("t"))
        before = sorted(os.listdir(self.path("t")))
        failing = self.rows(0, 100).mapInArrow(fail, "id bigint, name string")
        self.refused(lambda: save(failing, self.path("t")), "no more of this")
        self.assertEqual(sorted(os.listdir(self.path("t"))), before)
        self.refused(lambda: save(failing, self.path("t"), "overwrite"), "no more of this")
        self.refused(lambda: save(failing, self.path("u")), "no more of this")
        self.assertEqual(os.listdir(self.folder), ["t"])
        self.assertEqual(self.ids(self.path("t")), list(range(5)))

    def test_a_worker_that_is_killed_is_replaced_and_its_rows_are_there_once(self):
        marks = self.path("marks")
        os.mkdir(marks)

        def die_once(batches):
            import os
            import signal
            from pyspark import TaskContext

            mark = os.path.join(marks, str(TaskContext.get().partitionId()))
            for batch in batches:
                yield batch
            if not os.path.exists(mark):
                open(mark, "w").close()
                os.kill(os.getpid(), signal.SIGKILL)

        save(self.rows(0, 1000).mapInArrow(die_once, "id bigint, name string"), self.path("t"))
        self.assertEqual(sorted(os.listdir(marks)), ["0", "1"])
        self.assertEqual(self.ids(self.path("t")), list(range(1000)))
        self.assertEqual(len(os.listdir(self.path("t"))), 3)


class Streams(WithFolder):
    def setUp(self):
        super().setUp()
        os.mkdir(self.path("in"))

    def run_once(self, schema=None, **options):
        reader = spark.readStream.format("marquetry").options(**options)
        stream = (reader.schema(schema) if schema else reader).load(self.path("in"))
        writer = stream.writeStream.format("parquet").option("checkpointLocation", self.path("checkpoint"))
        query = writer.option("path", self.path("out")).trigger(availableNow=True).start()
        try:
            query.awaitTermination(300)
            if query.exception():
                raise query.exception()
            return query
        finally:
            query.stop()

    def out(self):
        return sorted(row.id for row in spark.read.parquet(self.path("out")).collect())

    def test_each_file_once(self):
        self.trips("in/b.parquet", range(10))
        self.trips("in/_hidden.parquet", range(500, 510))
        self.run_once()
        self.assertEqual(self.out(), list(range(10)))
        # Names have no order: one that comes before is new, too.
        self.trips("in/a.parquet", range(10, 20))
        self.trips("in/c.parquet", range(20, 30))
        query = self.run_once(max_files_per_trigger="1")
        self.assertEqual(self.out(), list(range(30)))
        self.assertEqual([each["numInputRows"] for each in query.recentProgress if each["numInputRows"]], [10, 10])
        self.run_once()
        self.assertEqual(self.out(), list(range(30)))

    def test_files_that_appear_while_it_runs(self):
        self.trips("in/0.parquet", range(10))
        found = []
        stream = spark.readStream.format("marquetry").load(self.path("in"))
        writer = stream.writeStream.foreachBatch(lambda frame, _: found.extend(row.id for row in frame.collect()))
        query = writer.trigger(processingTime="200 milliseconds").start()
        try:
            for number in range(1, 4):
                self.trips(f"in/{number}.parquet", range(10 * number, 10 * number + 10))
                end = time.monotonic() + 300
                while len(found) < 10 * number + 10 and time.monotonic() < end and not query.exception():
                    time.sleep(0.1)
        finally:
            query.stop()
        self.assertEqual(sorted(found), list(range(40)))

    def test_columns_that_come_later(self):
        self.trips("in/a.parquet", range(10))
        self.run_once()
        mq.write(pyarrow.table({"id": [10]}), self.path("in/b.parquet"))
        schema = "id bigint, fare double, city string"
        self.run_once(schema)
        self.assertEqual(self.out(), list(range(11)))
        # With others a query begins, knowing what it leaves out.
        mq.write(pyarrow.table({"id": [11], "tip": [1.5]}), self.path("in/c.parquet"))
        self.run_once(schema)
        self.assertEqual(self.out(), list(range(12)))
        mq.write(pyarrow.table({"id": ["text"]}), self.path("in/d.parquet"))
        self.refused(lambda: self.run_once(schema), "id")
        self.assertEqual(self.out(), list(range(12)))

    def test_groups_whose_fields_differ(self):
        """As in what `marquetry watch` makes of flushes: the column `mutation` has what the writes of an SSTable need."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        def flush(number, **options):
            sstable = "sstable:" + self.path(f"sstable-{number}")
            rows = pyarrow.table({"id": range(10 * number, 10 * number + 10), "name": [f"n{i}" for i in range(10)]})
            mq.write(rows, sstable, table="ks.t", key="id", **options)
            mq.copy(sstable, self.path(f"in/{number}.parquet"))

        flush(0)
        flush(1, ttl=100_000_000)
        schema = load(self.path("in"), union="true").schema
        self.assertIn("expires_at", schema["mutation"].dataType.names)
        self.assertNotIn("expires_at", load(self.path("in/0.parquet")).schema["mutation"].dataType.names)
        reader = mq.spark.Source({"path": self.path("in"), "union": "true"}).streamReader(schema)
        self.run_once(union="true")
        out = spark.read.parquet(self.path("out"))
        self.assertEqual(sorted(row.id for row in out.where("mutation.expires_at IS NULL").collect()), list(range(10)))
        self.assertEqual(self.out(), list(range(20)))
        # A field that nobody knew when the reader began.
        mq.write(pyarrow.table({"id": [20], "mutation": [{"more": 1}]}), self.path("in/2.parquet"))
        start = reader.initialOffset()
        with self.assertRaises(mq.ConversionError) as raised:
            reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
        self.assertIn("mutation.more", str(raised.exception))

    def test_a_schema_leaves_out_what_spark_lacks(self):
        large = pyarrow.array([2**64 - 1] * 10, pyarrow.uint64())
        mq.write(pyarrow.table({"id": range(10), "large": large}), self.path("in/a.parquet"))
        self.refused(lambda: self.run_once(), "large")
        self.run_once("id bigint")
        self.assertEqual(self.out(), list(range(10)))
        mq.write(pyarrow.table({"large": large}), self.path("in/b.parquet"))
        self.refused(lambda: self.run_once("id bigint"), "has no column of the stream's")

    def test_the_reader_by_itself(self):
        from pyspark.sql.streaming.datasource import ReadAllAvailable

        self.trips("in/a.parquet", range(10))
        schema = load(self.path("in")).schema
        reader = mq.spark.Source({"path": self.path("in")}).streamReader(schema)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        self.assertEqual(list(end["files"]), ["a.parquet"])
        self.assertEqual(reader.partitions(end, end), [])
        self.assertEqual(sum(batch.num_rows for part in reader.partitions(start, end) for batch in reader.read(part)), 10)
        # A column that nobody knew when it began, and a file that is gone before it is read.
        mq.write(pyarrow.table({"id": [1], "tip": [2.0]}), self.path("in/b.parquet"))
        later = reader.latestOffset(end, ReadAllAvailable())
        with self.assertRaises(mq.ConversionError) as raised:
            reader.partitions(end, later)
        self.assertIn("tip", str(raised.exception))
        os.remove(self.path("in/b.parquet"))
        with self.assertRaises(mq.NotFound):
            reader.partitions(end, later)
        self.assertEqual(reader.latestOffset(later, ReadAllAvailable()), later)


@needs_cassandra
class Cluster(WithKeyspace, WithFolder):
    KEYSPACE = "marquetry_spark"

    def setUp(self):
        super().setUp()
        self.make_keyspace()

    def test_rows_into_a_table_and_out_of_it(self):
        address = self.address("t")
        rows = spark.range(0, 5000, 1, 3).withColumn("name", F.concat(F.lit("n"), "id"))
        self.refused(lambda: save(rows, address), "no table")
        save(rows, address, create="true", key="id")
        wanted = [(i, f"n{i}") for i in range(5000)]
        frame = load(address)
        self.assertGreater(frame.rdd.getNumPartitions(), 1)
        self.assertEqual(sorted(map(tuple, frame.collect())), wanted)
        self.assertEqual(load(address, partitions="3").rdd.getNumPartitions(), 3)
        self.assertEqual(sorted(map(tuple, load(address, partitions="3").collect())), wanted)
        self.assertEqual(load(address, where="id = 77").collect(), [(77, "n77")])
        # The same rows once more change nothing.
        save(rows, address)
        self.assertEqual(load(address).count(), 5000)
        self.refused(lambda: save(rows, address, "overwrite"), "mode append")
        self.refused(lambda: save(rows.withColumnRenamed("name", "called"), address), "called")
        # What would be the same in each task, or take the place of what others write.
        self.refused(lambda: save(rows, address, key_row_number="n"), "each of which writes some of the rows")
        self.refused(lambda: save(rows, self.address("c"), create="true", layout="columns"), "one writer writes")

    def test_rows_that_do_not_fit_have_a_file_of_each_task(self):
        self.statement(f"CREATE TABLE {self.KEYSPACE}.t (id bigint PRIMARY KEY, n smallint)")
        rows = spark.range(0, 3000, 1, 3).withColumn("n", F.expr("if(id % 1000 = 7, 40000, 1)"))
        self.refused(lambda: save(rows, self.address("t")), "40000")
        save(rows, self.address("t"), rejects=self.path("bad.parquet"))
        self.assertEqual(load(self.address("t")).count(), 2997)
        self.assertEqual(len(os.listdir(self.folder)), 3)
        self.assertEqual(sorted(row.id for row in load(self.path("bad-*.parquet")).collect()), [7, 1007, 2007])

    def writer(self, table, schema, **options):
        from marquetry._spark_write import writer

        return writer({"path": self.address(table), **options}, spark_types.StructType.fromDDL(schema), False)

    def test_rows_that_do_not_fit_are_told_of_at_the_end(self):
        self.statement(f"CREATE TABLE {self.KEYSPACE}.t (id bigint PRIMARY KEY, n smallint)")
        writer = self.writer("t", "id bigint, n int", rejects=self.path("bad.parquet"))
        rows = [pyarrow.record_batch({"id": [i, i + 1], "n": pyarrow.array([1, 40000], pyarrow.int32())}) for i in (1, 3)]
        messages = [writer.write(iter([batch])) for batch in rows]
        with self.assertWarnsRegex(RuntimeWarning, "^2 rows did not fit"):
            writer.commit(messages)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            writer.commit([writer.write(iter(()))])

    def test_rows_that_cannot_be_had_are_not_asked_for_again(self):
        self.statement(f"CREATE TABLE {self.KEYSPACE}.t (id bigint PRIMARY KEY, n int)")
        asked = []

        def rows():
            asked.append(None)
            raise OSError("the first batch is lost")
            yield

        # Spark's own iterator is at its end after an error: a second try would write nothing, and succeed.
        with self.assertRaisesRegex(mq.Error, "the first batch is lost"):
            self.writer("t", "id bigint, n int").write(rows())
        self.assertEqual(len(asked), 1)

    def test_counters_are_written_where_that_is_admitted(self):
        self.statement(f"CREATE TABLE {self.KEYSPACE}.t (id bigint PRIMARY KEY, n counter)")
        rows = spark.range(0, 100, 1, 2).selectExpr("id", "id * 2 AS n")
        self.refused(lambda: save(rows, self.address("t")), "ounter")
        save(rows, self.address("t"), counters_at_least_once="true")
        self.assertEqual(sorted(map(tuple, load(self.address("t")).collect())), [(i, i * 2) for i in range(100)])

    def test_a_trial_creates_nothing(self):
        rows = spark.range(0, 100, 1, 2)
        save(rows, self.address("t"), create="true", key="id", dry_run="true")
        self.refused(lambda: load(self.address("t")), "no table")
        save(rows, self.address("t"), create="true", key="id")
        self.assertEqual(load(self.address("t")).count(), 100)

    def test_passwords_are_in_no_plan(self):
        self.statement(f"CREATE TABLE {self.KEYSPACE}.t (id bigint PRIMARY KEY, name text)")
        login = {"user": "somebody", "password": "tiger"}
        save(spark.range(10).selectExpr("id", "'a' AS name"), self.address("t"), **login)
        frame = load(self.address("t"), **login)
        self.assertEqual(frame.count(), 10)
        # What the web interface shows of each query.
        told = spark._jsparkSession.sharedState().statusStore().executionsList()
        told = [told.apply(at) for at in range(told.size())]
        plans = [frame._jdf.queryExecution().toString(), *(it.physicalPlanDescription() + it.details() for it in told)]
        self.assertTrue(any("marquetry" in plan for plan in plans))
        for plan in plans:
            self.assertNotIn("tiger", plan)

    def test_each_layout_is_read(self):
        rows = pyarrow.table({"day": [i % 3 for i in range(3000)], "id": range(3000), "name": [f"n{i}" for i in range(3000)]})
        for layout in ("rows", "wide", "blob", "columns"):
            key = {} if layout == "columns" else {"key": "day, id"}
            mq.write(rows, self.address(layout), create=True, layout=layout, **key)
            with self.subTest(layout):
                frame = load(self.address(layout))
                self.assertEqual(sorted(row.id for row in frame.select("id").collect()), list(range(3000)))
                one = load(self.address(layout), columns="name", where="day = 1 AND id = 7")
                self.assertEqual([tuple(row) for row in one.collect()], [("n7",)])
        # A file within a table is as large as the one before.
        from marquetry._spark_read import Plan, fingerprint

        plan = Plan({"path": self.address("columns")})
        before = fingerprint(plan.open())
        self.assertEqual(fingerprint(plan.open()), before)
        mq.write(rows, self.address("columns"), layout="columns", overwrite=True)
        self.assertNotEqual(fingerprint(plan.open()), before)
        # Added to tables whose rows hold others.
        for layout in ("wide", "blob"):
            more = spark.range(3000, 3100, 1, 2).selectExpr("1L AS day", "id", "concat('n', id) AS name")
            save(more, self.address(layout))
            self.assertEqual(load(self.address(layout)).count(), 3100)

    def test_every_type_of_cql_there_and_back(self):
        types_table(self, "a")
        types_table(self, "b", rows=False)
        # Spark has no type for these: they are named, and can be left out, or taken as others.
        self.refused(lambda: load(self.address("a")), "a_time")
        names = [name for name in ("id", *TYPES) if name != "a_duration"]
        frame = load(self.address("a"), columns=", ".join(names), types="a_time=text")
        self.assertEqual(sorted(frame.columns), sorted(names))
        rows = {row.id: row for row in frame.collect()}
        self.assertEqual((rows[1].a_bigint, rows[1].a_time, rows[2].a_text), (2**63 - 1, "23:59:59.999999999", "it's"))
        self.assertEqual({rows[3][name] for name in names if name != "id"}, {None})
        left = [name for name in names if name != "a_time"]
        # Elements of lists that are not frozen come twice if a task is tried again.
        self.refused(lambda: save(frame.select(*left), self.address("b")), "a_list is a list that is not frozen")
        save(frame.select(*left), self.address("b"), lists_at_least_once="true")
        a, b = (mq.open(self.address(name)).select(*left) for name in "ab")
        differences = mq.diff(a, b, key=["id"])
        self.assertTrue(differences.are_rows_equal, (differences, differences.columns_changed, differences.columns_incomparable))


if __name__ == "__main__":
    unittest.main()
