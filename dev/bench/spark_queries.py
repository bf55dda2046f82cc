#!/usr/bin/env python3
"""The queries of the published experiment with GDELT's events, by Spark with one thread: on Parquet, by Spark's own reader and by our data source; and on the
layouts of a table in Cassandra, by our data source and by the Spark Cassandra Connector.

    spark_queries.py --files DIR --out DIR --bin DIR --marquetry PROGRAM --cassandra CASSANDRA.SH --peers DIR --connector SPARKQUERIES.JAVA
                     [--rows 4037539] [--rounds 5] [--rounds-of-rows 1] [--without connector|cassandra]…

--rounds-of-rows is for the tables that a server reads row by row, of which a query takes half a minute and more.
Run it by a Python that has Spark, with the package `marquetry` in PYTHONPATH. --bin holds bench-gdelt; --peers is what `dev/setup.sh cluster-peers` makes.
Results: OUT/spark.md, spark.svg, spark.json, as the other benchmarks write theirs.
"""

import argparse
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

import marquetry as mq
import pyspark
from pyspark.sql import SparkSession

KEYSPACE = "bench"
#: Name, the columns that it needs, rows that `where` can leave out, and the text.
QUERIES = [
    ("count(numarticles)", "numarticles", None, "SELECT count(numarticles) FROM events"),
    (
        "avg(avgtone) by actor1name, ordered",
        "actor1name, avgtone",
        None,
        "SELECT actor1name, AVG(avgtone) AS tone FROM events GROUP BY actor1name ORDER BY tone DESC",
    ),
    (
        "avg, min, max(avgtone) of a month",
        "monthyear, avgtone",
        "monthyear = 198012",
        "SELECT AVG(avgtone), MIN(avgtone), MAX(avgtone) FROM events WHERE monthyear = 198012",
    ),
    (
        "avgs by actor1name, of a cached table",
        "actor1name, numarticles, avgtone",
        None,
        "SELECT actor1name, avg(numarticles), avg(avgtone) FROM events GROUP BY actor1name",
    ),
]
CACHED = len(QUERIES) - 1
TO_CACHE = "SELECT actor1name, numarticles, avgtone FROM events"
#: Ours by the other: no slower than Spark's reader of Parquet, and three times as fast as the connector.
PARQUET_BAR, ROWS_BAR = 1.0, 1 / 3
OPENED = "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent java.util.concurrent.atomic sun.nio.ch"
OURS_PARQUET, SPARKS, OURS_ROWS, CONNECTOR, OURS_WIDE, CONNECTOR_WIDE, OURS_BLOB, OURS_COLUMNS = (
    "Marquetry, Parquet",
    "Spark's Parquet reader",
    "Marquetry, rows",
    "Spark Cassandra Connector, rows",
    "Marquetry, wide",
    "Spark Cassandra Connector, wide",
    "Marquetry, blob",
    "Marquetry, columns",
)
NAMES = (OURS_PARQUET, SPARKS, OURS_ROWS, CONNECTOR, OURS_WIDE, CONNECTOR_WIDE, OURS_BLOB, OURS_COLUMNS)
#: The layouts of a table, with the options that they are loaded by, and who reads them. Records of `blob` and files of `columns` are nothing that the connector reads.
LAYOUTS = {
    "rows": (("--key", "globaleventid"), OURS_ROWS, CONNECTOR),
    "wide": (("--layout", "wide", "--key", "sqldate, globaleventid"), OURS_WIDE, CONNECTOR_WIDE),
    "blob": (("--layout", "blob", "--key", "globaleventid"), OURS_BLOB, None),
    "columns": (("--layout", "columns", "--codec", "zstd"), OURS_COLUMNS, None),
}
#: What `wide` calls all columns but those of its key: c and the column's number (docs/layouts.md).
WIDE_KEY = ("sqldate", "globaleventid")


def say(text):
    print(f"spark_queries: {text}", file=sys.stderr, flush=True)


def output(*command):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, text=True).stdout


class Server:
    """A Cassandra, while it is entered."""

    def __init__(self, script, directory):
        self.script, self.directory = script, directory

    def __enter__(self):
        output(self.script, "stop", self.directory)
        subprocess.run(["rm", "-rf", str(self.directory / "data")], check=True)
        output(self.script, "start", self.directory, "--heap", "2g")
        self.at = output(self.script, "where", self.directory).strip()
        return self

    def __exit__(self, *_):
        output(self.script, "stop", self.directory)

    def settle(self, table):
        for verb in ("flush", "compact"):
            output(self.script, "nodetool", self.directory, verb, KEYSPACE, table)
        # By these both readers split a table. A server makes them every five minutes.
        output(self.script, "nodetool", self.directory, "refreshsizeestimates")


def session():
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    builder = SparkSession.builder.master("local[1]").appName("spark_queries")
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "2g",
        # On a busy machine a Python may not be there in the 15 seconds that it is given.
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
    }
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    spark.dataSource.register(mq.spark.Source)
    return spark


class InSpark:
    """A source that this Spark reads."""

    def __init__(self, spark, address, is_ours):
        self.spark, self.address, self.is_ours = spark, address, is_ours

    def once(self, number):
        """Milliseconds, and the rows of the result."""
        _, columns, where, text = QUERIES[number]
        begun = time.perf_counter()
        if self.is_ours:
            # Spark does not tell sources in Python which columns and rows a query needs.
            reader = self.spark.read.format("marquetry").option("columns", columns)
            events = (reader.option("where", where) if where else reader).load(self.address)
        else:
            events = self.spark.read.parquet(self.address)
        events.createOrReplaceTempView("events")
        if number == CACHED:
            some = self.spark.sql(TO_CACHE).cache()
            some.count()
            some.createOrReplaceTempView("events")
            begun = time.perf_counter()
        rows = [tuple(row) for row in self.spark.sql(text).collect()]
        milliseconds = (time.perf_counter() - begun) * 1e3
        if number == CACHED:
            self.spark.catalog.clearCache()
        return milliseconds, rows


def by_connector(options, at, table, name):
    """The times and results of all queries by the connector, each `rounds` times after one that does not count. `name` is what the table calls a column."""
    classes, jars = options.files / "spark-queries", options.peers / "spark" / "*"
    output("javac", "-cp", jars, "-d", classes, options.connector)
    opens = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED.split()]
    host, _, port = at.rpartition(":")

    def named(text):
        return re.sub(r"\b[a-z][a-z0-9]*\b", lambda word: name(word.group()), text)

    said = output(
        "java", *opens, "-Xmx2g", "-cp", f"{classes}:{jars}", "SparkQueries", host, port, KEYSPACE, table, rounds_of(options, CONNECTOR), named(TO_CACHE),
        *(named(text) for *_, text in QUERIES),
    )  # fmt: skip
    times, results = {}, {}
    # Not `splitlines`, for which U+001E ends a line, too.
    for line in said.split("\n"):
        fields = line.split("\t")
        if len(fields) != 3 or not fields[0].lstrip("-").isdigit():
            continue
        number = int(fields[0])
        if number < 0:
            rows = [row.split("\x1f") for row in fields[2].split("\x1e")]
            results[-1 - number] = [tuple(value_of(value) for value in row) for row in rows if row != [""]]
        else:
            times.setdefault(number, []).append(float(fields[1]))
    return times, results


def value_of(text):
    if text == "null":
        return None
    return float(text) if re.fullmatch(r"-?[0-9]+([.][0-9]+)?(E-?[0-9]+)?", text) else text


def same(one, other):
    """Whether results are the same rows; of equal tones the order is anybody's, and sums depend on theirs in the last digits."""

    def ordered(rows):
        # A name may be all digits, which the text of the connector's does not tell from a number.
        return sorted(rows, key=lambda row: str(value_of(str(row[0]))))

    def alike(a, b):
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
        return a == b or (isinstance(a, str) and isinstance(b, float) and value_of(a) == b)

    one, other = ordered(one), ordered(other)
    return len(one) == len(other) and all(len(a) == len(b) and all(map(alike, a, b)) for a, b in zip(one, other))


def make_files(options):
    """Makes the events; returns their text, and the Parquet file."""
    text, parquet = options.files / f"layouts-{options.rows}.tsv", options.files / f"spark-{options.rows}.parquet"
    gdelt = options.bin / "bench-gdelt"
    if not text.exists():
        unfinished = text.with_suffix(".new")
        output(gdelt, unfinished, "--rows", options.rows)
        unfinished.rename(text)
    if not parquet.exists():
        output(*copy_of_text(options), "--codec", "zstd", text, parquet)
    return text, parquet


def copy_of_text(options):
    return [options.marquetry, "copy", "--quiet", "--header", "no", "--schema", output(options.bin / "bench-gdelt", "schema").strip()]


def load(options, server, text):
    """Loads the events into tables; returns what each source is read from."""
    found = {}
    cqlsh = options.peers / "cqlsh-venv" / "bin" / "cqlsh"
    host, _, port = server.at.rpartition(":")
    output(cqlsh, host, port, "-e", f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    for layout, (wanted, ours, connector) in LAYOUTS.items():
        table = f"cql://{server.at}/{KEYSPACE}.{layout}"
        output(*copy_of_text(options), "--create", *wanted, text, table)
        server.settle(layout)
        found[ours] = table
        if connector and "connector" not in options.without:
            found[connector] = layout
    return found


def rounds_of(options, name):
    """How often a query of a source is timed."""
    return options.rounds if name in (OURS_PARQUET, SPARKS, OURS_COLUMNS) else min(options.rounds, options.rounds_of_rows)


def columns_of(options):
    """The names of the events' columns, in order."""
    return [column.split()[0] for column in output(options.bin / "bench-gdelt", "schema").strip().split(",")]


def measure(options, server):
    text, parquet = make_files(options)
    addresses = {OURS_PARQUET: str(parquet), SPARKS: str(parquet)}
    if server is not None:
        addresses |= load(options, server, text)
    spark = session()
    by_us = {name: address for name, address in addresses.items() if name not in (CONNECTOR, CONNECTOR_WIDE)}
    sources = {name: InSpark(spark, address, name != SPARKS) for name, address in by_us.items()}
    times = {name: {number: [] for number in range(len(QUERIES))} for name in sources}
    results = {}
    for number, (query, *_) in enumerate(QUERIES):
        for name, source in sources.items():
            _, rows = source.once(number)
            results[name, number] = rows
        for turn in range(options.rounds):
            names = list(sources)
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                if turn >= rounds_of(options, name):
                    continue
                milliseconds, rows = sources[name].once(number)
                if len(rows) != len(results[name, number]):
                    raise SystemExit(f"{query}: {name} found {len(rows)} rows, and {len(results[name, number])} before")
                times[name][number].append(milliseconds)
        say(f"{query}: " + ", ".join(f"{name} {statistics.median(times[name][number]):.0f} ms" for name in sources))
    spark.stop()
    short = {name: f"c{number}" for number, name in enumerate(columns_of(options)) if name not in WIDE_KEY}
    for connector, names in ((CONNECTOR, {}), (CONNECTOR_WIDE, short)):
        if connector in addresses:
            times[connector], found = by_connector(options, server.at, addresses[connector], lambda name, names=names: names.get(name, name))
            results.update({(connector, number): rows for number, rows in found.items()})
    for number, (query, *_) in enumerate(QUERIES):
        for name in times:
            if not same(results[SPARKS, number], results[name, number]):
                raise SystemExit(f"{query}: {name} has another result than {SPARKS}: {results[name, number][:3]}, {results[SPARKS, number][:3]}")
    return {name: {number: statistics.median(samples) for number, samples in of.items()} for name, of in times.items()}, times


def rows_of(medians):
    """The report's rows, as src/report.rs has them."""
    groups = [
        ("On Parquet", OURS_PARQUET, SPARKS, PARQUET_BAR),
        ("On rows in Cassandra", OURS_ROWS, CONNECTOR, ROWS_BAR),
        ("On wide in Cassandra", OURS_WIDE, CONNECTOR_WIDE, None),
        ("On blob in Cassandra", OURS_BLOB, None, None),
        ("On columns in Cassandra", OURS_COLUMNS, None, None),
    ]
    for group, ours, other, bar in groups:
        if ours not in medians:
            continue
        for number, (query, *_) in enumerate(QUERIES):
            value = medians[ours][number]
            peers = {other: round(medians[other][number], 3)} if other in medians else {}
            limit = bar * medians[other][number] if peers and bar else None
            row = {"case": f"{group}: {query}", "unit": "ms", "better": "lower", "ours": round(value, 3), "peers": peers}
            row |= {"bar": limit and round(limit, 3), "holds": None if limit is None else value <= limit}
            if peers:
                row["ratio"] = round(value / medians[other][number], 3)
            yield row


def chart(medians):
    """Bars, on a logarithmic scale: the slowest is some hundred times the fastest."""
    width, line, left = 420, 18, 250
    top = max(value for of in medians.values() for value in of.values())
    low = min(value for of in medians.values() for value in of.values()) / 2
    ours = {OURS_PARQUET: "#0b6e4f", OURS_COLUMNS: "#2a9d74", OURS_BLOB: "#55b391", OURS_WIDE: "#7fc8a9", OURS_ROWS: "#a9ddc5"}
    colours = {**ours, SPARKS: "#8a8a8a", CONNECTOR: "#c0c0c0", CONNECTOR_WIDE: "#d8d8d8"}
    parts, y = [], 10
    for number, (query, *_) in enumerate(QUERIES):
        parts.append(f'<text x="4" y="{y + 13}" font-weight="bold">{query}</text>')
        y += line
        for name in colours:
            if name not in medians:
                continue
            value = medians[name][number]
            length = width * math.log(value / low) / math.log(top / low)
            parts.append(f'<text x="{left - 6}" y="{y + 13}" text-anchor="end">{name}</text>')
            parts.append(f'<rect x="{left}" y="{y + 2}" width="{length:.0f}" height="{line - 5}" fill="{colours[name]}"/>')
            parts.append(f'<text x="{left + length + 4:.0f}" y="{y + 13}">{value:,.0f} ms</text>')
            y += line
        y += 8
    body = "\n".join(parts)
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 90}" height="{y}" font-family="sans-serif" font-size="12">\n{body}\n</svg>\n'


def report(options, medians, times):
    rows = list(rows_of(medians))
    held = [row for row in rows if row["holds"] is not None]
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        processor = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), "?")
    names = [name for name in NAMES if name in medians]
    lines = [
        "# Queries by Spark, with one thread",
        "",
        f"{options.rows} events like GDELT's of 1979 to 1984 (`bench-gdelt`), in one Parquet file (ZSTD) and in one Cassandra on the same machine. Spark {pyspark.__version__} with "
        f"`local[1]`; the Spark Cassandra Connector with the Spark that it is for. Milliseconds from loading the table until the result is there, medians of {options.rounds} (of rows, wide and blob: "
        f"{rounds_of(options, OURS_ROWS)}) after one that does not count, in turns; the last query's table is cached before. Our data source is told columns and rows by its options, because Spark does not tell it; a Python of its own decodes while the "
        "JVM's one thread computes. All have the same results (sums to nine digits).",
        "",
        f"The bar holds in {sum(row['holds'] for row in held)} of {len(held)} rows: ours on Parquet no slower than Spark's own reader, and on rows three times as fast as the connector.",
        "",
        f"{processor}.",
        "",
    ]
    if options.rows != 4_037_539:
        lines += [f"**A quick look: {options.rows} of 4037539 records.** Its numbers are no results.", ""]
    if OURS_ROWS not in medians:
        lines += ["**Not run**: tables in Cassandra.", ""]
    elif CONNECTOR not in medians:
        lines += ["**Not run**: the Spark Cassandra Connector.", ""]
    lines += ["![Queries by Spark](spark.svg)", "", "| query | " + " | ".join(names) + " |", "|---|" + "--:|" * len(names)]
    for number, (query, *_) in enumerate(QUERIES):
        lines.append(f"| {query} | " + " | ".join(f"{medians[name][number]:,.0f}" for name in names) + " |")
    setting = {"rows": options.rows, "rounds": options.rounds, "rounds_of_rows": options.rounds_of_rows, "spark": pyspark.__version__, "marquetry": mq.__version__, "processor": processor, "samples": times}
    (options.out / "spark.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (options.out / "spark.svg").write_text(chart(medians), encoding="utf-8")
    (options.out / "spark.json").write_text(json.dumps({"name": "spark", "setting": setting, "rows": rows}, indent=2) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    for name in ("files", "out", "bin", "marquetry", "cassandra", "peers", "connector"):
        parser.add_argument(f"--{name}", type=lambda path: pathlib.Path(path).absolute(), required=True)
    parser.add_argument("--rows", type=int, default=4_037_539)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rounds-of-rows", type=int, default=1)
    parser.add_argument("--without", action="append", default=[])
    options = parser.parse_args()
    options.files.mkdir(parents=True, exist_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    if "cassandra" in options.without:
        medians, times = measure(options, None)
    else:
        with Server(options.cassandra, options.files / "spark-cassandra") as server:
            medians, times = measure(options, server)
    report(options, medians, times)


main()
