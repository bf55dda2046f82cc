#!/usr/bin/env python3
"""What Apache Spark reads from files, held against what pyarrow reads from them.

    expect_spark.py OUT.json FILE...     one JSON array, one entry a file, in the order given
    expect_spark.py OUT.json @LIST       the same; LIST holds one path a line

Entry: {"file", "columns": how many were compared, "row_by_row": how many of them only Spark's slower reader had, "refused": {column: what
Spark said}, "wrong": [text...]}. A file is read whole, with Spark's vectorized reader; where that fails, column by column, and with the other
reader (parquet-java's), too. Values are compared as those of `expect_written.py` are; a VARIANT is not, for Spark puts it together and pyarrow
does not. What Python has no values of stands in "refused", by "" where that is pyarrow's.

Run by a Python that has the packages of dev/spark.txt. One session in this process's own Java, which listens on the loopback alone.
"""

import json
import os
import sys
import time

os.environ["TZ"] = "UTC"
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
time.tzset()

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from expect import files_of, one_line, write_entries
from plain import plain

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # Rows in the file's order: one task a file.
    "spark.sql.files.maxPartitionBytes": "1g",
}
# What keeps Spark from any column of a file: a codec that it does not bring, types that it has no schema of.
OF_FILES = ("BrotliCodec", "PARQUET_TYPE_ILLEGAL", "PARQUET_TYPE_NOT_SUPPORTED", "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION")
# What Python has no values of, be they Spark's or pyarrow's: dates beyond its years, text that is not UTF-8.
NO_VALUES = (OverflowError, UnicodeDecodeError)
VECTORIZED = "spark.sql.parquet.enableVectorizedReader"


def expect_file(spark, path):
    """The entry of one file. Never raises: what pyarrow refuses is wrong."""
    entry = {"file": path, "columns": 0, "row_by_row": 0, "refused": {}, "wrong": []}
    try:
        table = pq.ParquetFile(path).read(use_threads=False)
        expected = {name: plain(table.column(name).to_pylist()) for name in table.column_names}
    except NO_VALUES as error:
        entry["refused"][""] = f"pyarrow: {one_line(error)}"
        return entry
    except Exception as error:  # whatever its type
        entry["wrong"].append(f"pyarrow: {one_line(error)}")
        return entry
    try:
        found = read(spark, path, None)
    except Exception as error:  # column by column, to see which it is, unless it is all of them
        found = {}
        if any(part in str(error) for part in OF_FILES):
            entry["refused"] = dict.fromkeys(expected, cause(error))
        for name in expected.keys() - entry["refused"].keys():
            try:
                found |= read(spark, path, name)
            except Exception:
                try:
                    found |= read(spark, path, name, vectorized="false")
                    entry["row_by_row"] += 1
                except Exception as error:
                    entry["refused"][name] = cause(error)
    variants = [field.name for field in table.schema if is_variant(field.type)]
    for name in found.keys() - variants:
        values = found[name]
        entry["columns"] += 1
        if values != expected[name]:
            at = next((at for at, pair in enumerate(zip(values, expected[name])) if pair[0] != pair[1]), len(values))
            entry["wrong"].append(f"column {name}, {len(values)} rows of {len(expected[name])}: row {at} is "
                                  f"{values[at:at + 1]}, not {expected[name][at:at + 1]}")  # fmt: skip
    return entry


def read(spark, path, column, vectorized="true"):
    """Columns by name, of one or of all."""
    spark.conf.set(VECTORIZED, vectorized)
    frame = spark.read.parquet(f"file://{path}")
    if column is not None:
        frame = frame.select("`" + column.replace("`", "``") + "`")
    table = frame.toArrow()
    return {name: plain(geometries(table.column(at)).to_pylist()) for at, name in enumerate(table.column_names)}


def geometries(column):
    """Geometries as their bytes, without the reference system that Spark has beside each. Others as they are."""
    kind = column.type
    is_geometry = pa.types.is_struct(kind) and [field.name for field in kind] == ["srid", "wkb"]
    return pa.chunked_array([chunk.field("wkb") for chunk in column.chunks], pa.binary()) if is_geometry else column


def is_variant(kind):
    if not pa.types.is_struct(kind):
        return isinstance(kind, pa.BaseExtensionType)
    names = {field.name for field in kind}
    return "metadata" in names and names <= {"metadata", "value", "typed_value"}


def cause(error):
    """The last cause that Spark names, in a line."""
    lines = [line for line in str(error).splitlines() if line.startswith("Caused by: ")]
    return (lines[-1] if lines else one_line(error))[:300]


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    spark = SparkSession.builder.master("local[1]").config(map=SETTINGS).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    entries = [expect_file(spark, os.path.realpath(path)) for path in files_of(arguments[1:])]
    print(f"{len(entries)} files read by Spark {spark.version}: {arguments[0]}")
    spark.stop()
    write_entries(arguments[0], entries)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
