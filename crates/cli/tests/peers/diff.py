"""The same rows, as pyarrow and DuckDB write them: in different types, and in another order."""

import datetime
import decimal
import os
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

os.chdir(sys.argv[1])
ROWS = 1000
every = range(ROWS)
start = datetime.datetime(2024, 1, 1)
columns = {
    "id": pa.array(every, pa.int64()),
    "narrow": pa.array([at % 200 for at in every], pa.uint8()),
    "real": pa.array([at / 7 if at % 5 else None for at in every], pa.float64()),
    "price": pa.array([decimal.Decimal(at).scaleb(-2) for at in every], pa.decimal128(12, 2)),
    "time": pa.array([start + datetime.timedelta(seconds=at) for at in every], pa.timestamp("us")),
    "day": pa.array([start.date() + datetime.timedelta(days=at) for at in every]),
    "text": pa.array([f"x{at}" if at % 3 else None for at in every]),
    "list": pa.array([list(range(at % 4)) if at % 7 else None for at in every], pa.list_(pa.int32())),
    "group": pa.array(
        [{"a": at, "b": str(at)} if at % 11 else None for at in every],
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
    ),
    "map": pa.array([[(f"k{n}", n) for n in range(at % 3)] for at in every], pa.map_(pa.string(), pa.int64())),
    "flag": pa.array([bool(at % 2) for at in every]),
    "raw": pa.array([bytes([at % 256, 0]) for at in every]),
}
table = pa.table(columns)
required = table.schema.set(0, table.schema.field("id").with_nullable(False))
pq.write_table(table.cast(required), "arrow.parquet")
# Spark's timestamps, and an older spelling of lists.
pq.write_table(table, "older.parquet", use_deprecated_int96_timestamps=True, use_compliant_nested_type=False)
duckdb.sql("COPY (SELECT * FROM 'arrow.parquet') TO 'duckdb.parquet' (FORMAT parquet)")
duckdb.sql("COPY (SELECT * FROM 'arrow.parquet' ORDER BY hash(id)) TO 'shuffled.parquet' (FORMAT parquet)")
# Integers with nulls, as pandas has them; and wider decimals.
duckdb.sql(
    "COPY (SELECT * REPLACE (narrow::DOUBLE AS narrow, price::DECIMAL(30, 5) AS price, time::TIMESTAMP_NS AS time)"
    " FROM 'arrow.parquet') TO 'wider.parquet' (FORMAT parquet)"
)
