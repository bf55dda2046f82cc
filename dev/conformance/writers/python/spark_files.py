#!/usr/bin/env python3
"""Writes files with Apache Spark: OUT/spark/*.parquet.

    spark_files.py OUT
"""

import shutil
import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

FLAT = """
SELECT id, CAST(id % 2 AS BOOLEAN) b, CAST(id AS TINYINT) i8, CAST(id AS SMALLINT) i16, CAST(id AS INT) i,
    id * 1000000007 l, CAST(id AS FLOAT) / 3 f, sqrt(id) d, concat('text ', id) s,
    CAST(concat('bin', id) AS BINARY) bin, CAST(id AS DECIMAL(5, 2)) dec5, CAST(id * 1.5 AS DECIMAL(15, 3)) dec15,
    CAST(-id * 123456789.25 AS DECIMAL(38, 6)) dec38, date_add(DATE'1900-01-01', CAST(id * 1000 AS INT)) dt,
    timestamp_micros(id * 1000000007 - 5000000000000) ts, CAST(timestamp_micros(id * 1000000007) AS TIMESTAMP_NTZ) ntz,
    if(id % 3 = 0, NULL, id) lo, if(id % 5 < 3, NULL, concat('x', id % 4)) so,
    make_ym_interval(CAST(id AS INT), 2) ym, make_dt_interval(CAST(id AS INT), 1, 2, 3.5) dti
FROM range({rows})"""
NESTED = """
SELECT CAST(id AS INT) id, if(id % 4 = 0, NULL, array(CAST(id AS INT), NULL, 3)) a, CAST(array() AS ARRAY<INT>) e,
    if(id % 3 = 0, array(), array('x', CAST(id AS STRING))) strs,
    named_struct('x', id, 'y', if(id % 2 = 0, NULL, named_struct('z', CAST(id AS STRING), 'w', array(id, id + 1)))) st,
    if(id % 5 = 0, NULL, map('k', id, CAST(id AS STRING), NULL)) m,
    map(id, array(named_struct('q', id, 'r', if(id % 2 = 0, NULL, CAST(id AS DOUBLE))))) mm,
    array(array(array(CAST(id AS INT)), NULL), array()) aaa, array(named_struct('one', CAST(id AS FLOAT))) ones
FROM range({rows})"""
VARIANT = """
SELECT id, if(id % 5 = 4, NULL, parse_json(concat('{{"a": ', id, ', "b": [1, "x", null, {{"c": 1.25}}], "t": "', id, '"}}'))) v,
    if(id % 2 = 0, NULL, parse_json(CAST(id AS STRING))) w
FROM range({rows})"""

PARQUET = "spark.sql.parquet."
LEGACY = {PARQUET + "writeLegacyFormat": "true"}
SHREDDED = {
    "spark.sql.variant.writeShredding.enabled": "true",
    "spark.sql.variant.forceShreddingSchemaForTest": "a int, b array<variant>, t string",
}
INFERRED = {"spark.sql.variant.writeShredding.enabled": "true", "spark.sql.variant.inferShreddingSchema": "true"}


def main(out):
    folder = Path(out) / "spark"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")

    def write(name, query, settings={}, rows=50):
        for key, value in settings.items():
            spark.conf.set(key, value)
        with tempfile.TemporaryDirectory() as parts:
            spark.sql(query.format(rows=rows)).coalesce(1).write.mode("overwrite").parquet(f"file://{parts}")
            (part,) = Path(parts).glob("*.parquet")
            shutil.copy(part, folder / f"{name}.parquet")
        for key in settings:
            spark.conf.unset(key)

    for name, query in (("flat", FLAT), ("nested", NESTED)):
        write(name, query)
        write(f"{name}_legacy", query, LEGACY)
        write(f"{name}_v2", query, {"parquet.writer.version": "v2"})
        write(f"{name}_no_rows", query, rows=0)
        for kind in ("INT96", "TIMESTAMP_MILLIS", "TIMESTAMP_MICROS"):
            write(f"{name}_{kind.lower()}", query, {PARQUET + "outputTimestampType": kind})
        for codec in ("gzip", "zstd", "lz4", "lz4_raw", "uncompressed"):
            write(f"{name}_{codec}", query, {PARQUET + "compression.codec": codec})
    write("variant", VARIANT, {"spark.sql.variant.writeShredding.enabled": "false"}, rows=20)
    write("variant_shredded", VARIANT, SHREDDED, rows=20)
    write("variant_inferred", VARIANT, INFERRED, rows=20)
    write("names", "SELECT id `a b`, id `ü.x`, named_struct('f.1', id) `s.t` FROM range(3)")
    # Lists of lists in the legacy shape are refused by pyarrow.
    (folder / "twins.txt").write_text("nested_legacy.parquet nested.parquet\n")
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
