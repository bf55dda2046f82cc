"""Writes a table of columns of all types that have an order, and how DuckDB sorts it; and one whose texts are too long.

sorted.py FOLDER: FOLDER/table.parquet, which has a column `id` of its rows' numbers, and FOLDER/orders.json: for each
`--sort` the ids in order; and FOLDER/long.parquet.
"""

import decimal
import json
import pathlib
import random
import sys

import duckdb
import numpy
import pyarrow as pa
import pyarrow.parquet as pq

folder = pathlib.Path(sys.argv[1])
random.seed(11)
ROWS = 20_000


def some(make):
    """Values that come again, and some nulls."""
    known = [make() for _ in range(60)]
    return [None if random.random() < 0.05 else random.choice(known) if random.random() < 0.7 else make() for _ in range(ROWS)]


def text():
    return "".join(random.choice("aab\u0000é日") for _ in range(random.randrange(30)))


def fixed(width):
    return bytes(random.randrange(256) for _ in range(width))


special = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0]
number = lambda: random.choice(special) if random.random() < 0.2 else random.gauss(0, 1e6)
unscaled = lambda digits: random.randrange(-(10**digits), 10**digits)
columns = {
    "boolean": pa.array(some(lambda: random.random() < 0.5), pa.bool_()),
    "int8": pa.array(some(lambda: random.randrange(-128, 128)), pa.int8()),
    "int32": pa.array(some(lambda: random.randrange(-(2**31), 2**31)), pa.int32()),
    "int64": pa.array(some(lambda: random.randrange(-(2**63), 2**63)), pa.int64()),
    "uint8": pa.array(some(lambda: random.randrange(256)), pa.uint8()),
    "uint32": pa.array(some(lambda: random.randrange(2**32)), pa.uint32()),
    "uint64": pa.array(some(lambda: random.randrange(2**64)), pa.uint64()),
    "float": pa.array(some(lambda: float(numpy.float32(number()))), pa.float32()),
    "double": pa.array(some(number), pa.float64()),
    "date": pa.array(some(lambda: random.randrange(-100_000, 100_000)), pa.date32()),
    "time": pa.array(some(lambda: random.randrange(86_400_000_000)), pa.time64("us")),
    "timestamp": pa.array(some(lambda: random.randrange(-(2**50), 2**50)), pa.timestamp("us")),
    "decimal9": pa.array(some(lambda: decimal.Decimal(unscaled(9)).scaleb(-2)), pa.decimal128(11, 2)),
    "decimal38": pa.array(some(lambda: decimal.Decimal(unscaled(37))), pa.decimal128(38, 0)),
    "text": pa.array(some(text), pa.string()),
    "bytes": pa.array(some(lambda: fixed(random.randrange(20))), pa.binary()),
}
ids = pa.array(range(ROWS), pa.int64())
nested = pa.array([[{"a": row, "b": None if row % 3 else str(row)}] * (row % 4) if row % 7 else None for row in range(ROWS)])
table = pa.table({"id": ids, **columns, "nested": nested})
pq.write_table(table, folder / "table.parquet", row_group_size=3_000, store_decimal_as_integer=True)

pq.write_table(pa.table({"a": ["x", "y" * 70_000]}), folder / "long.parquet")

connection = duckdb.connect()
connection.register("t", table)
orders = []
names = list(columns)
for at, name in enumerate(names):
    second = names[(at * 7 + 3) % len(names)]
    for first_way in ["", " desc", " nulls first", " desc nulls first"]:
        sort = f"{name}{first_way}, {second} desc"
        # As DuckDB has it, nulls are last whichever way values go.
        def sql(part):
            name, *words = part.split()
            rest = " ".join(words)
            return f'"{name}" {rest}' + ("" if "nulls" in rest else " nulls last")

        by = ", ".join(sql(part.strip()) for part in sort.split(","))
        rows = connection.execute(f"select id from t order by {by}, id").fetchall()
        orders.append({"sort": sort, "ids": [row[0] for row in rows]})
(folder / "orders.json").write_text(json.dumps(orders))
