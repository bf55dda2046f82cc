"""Random tables and random predicates, and the rows that DuckDB finds.

find.py FOLDER: FOLDER/*.parquet, and FOLDER/cases.tsv: a file, a predicate, and the numbers of the rows, in order.
"""

import datetime
import decimal
import math
import os
import random
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

os.chdir(sys.argv[1])
rng = random.Random(7)
ROWS = 2000
CITIES = ["Oslo", "Rome", "Ålesund", "New York", "new york", "O'Fallon", "", "Ros", "Rom\u00e4", "Z" * 90]
DAY = datetime.date(2024, 1, 1)


def number(at):
    return rng.randint(-50, 50) if rng.random() < 0.9 else None


def real(at):
    return rng.choice([0.0, -0.0, math.nan, math.inf, -math.inf, 0.1, rng.uniform(-5, 5), None])


COLUMNS = {
    "small": (pa.int32(), number),
    "big": (pa.int64(), lambda at: at * 3),
    "wide": (pa.uint64(), lambda at: rng.choice([0, 2**63, 2**64 - 1, at])),
    "score": (pa.float64(), real),
    "rate": (pa.float32(), real),
    "city": (pa.string(), lambda at: rng.choice(CITIES + [None])),
    "name": (pa.string(), lambda at: f"n{at:05}" if at % 7 else None),
    "flag": (pa.bool_(), lambda at: rng.choice([True, False, None])),
    "price": (pa.decimal128(12, 2), lambda at: decimal.Decimal(rng.randint(-500, 500)).scaleb(-2)),
    "huge": (pa.decimal128(30, 3), lambda at: decimal.Decimal(rng.randint(-(10**29), 10**29)).scaleb(-3)),
    "day": (pa.date32(), lambda at: DAY + datetime.timedelta(days=at // 10)),
    "moment": (pa.timestamp("us"), lambda at: datetime.datetime(2024, 1, 1) + datetime.timedelta(milliseconds=at * 500)),
    "clock": (pa.time64("us"), lambda at: datetime.time(rng.randint(0, 23), rng.randint(0, 59), 30)),
}


def literal(column, value):
    kind = COLUMNS[column][0]
    if pa.types.is_floating(kind):
        if rng.random() < 0.5 and value is not None and math.isfinite(value):
            value += rng.choice([0.0, 0.25])
        return f"'{value}'" if not math.isfinite(value) else repr(float(value))
    if pa.types.is_integer(kind):
        return str(value + rng.choice([0, 0, 1])) if rng.random() < 0.8 else f"{value}.5"
    if pa.types.is_decimal(kind):
        return str(value + rng.choice([0, 0, decimal.Decimal("0.005")]))
    if pa.types.is_boolean(kind):
        return str(value).lower()
    text = value.isoformat(" ") if isinstance(value, datetime.datetime) else str(value)
    return "'" + text.replace("'", "''") + "'"


def test(table):
    column = rng.choice(list(COLUMNS))
    values = [value for value in table[column][:50] if value is not None]
    rng.shuffle(values)
    one = lambda: literal(column, rng.choice(values))
    kind = rng.randint(0, 7)
    if kind == 0:
        return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
    if kind == 1:
        return f"{column} {rng.choice(['', 'NOT '])}IN ({', '.join(one() for _ in range(rng.randint(1, 4)))})"
    if kind == 2:
        return f"{column} {rng.choice(['', 'NOT '])}BETWEEN {one()} AND {one()}"
    if kind == 3 and pa.types.is_string(COLUMNS[column][0]):
        prefix = rng.choice(values)[: rng.randint(0, 5)].replace("'", "''")
        return f"{column} {rng.choice(['', 'NOT '])}LIKE '{prefix}%'"
    sign = rng.choice(["=", "=", "=", "<>", "<", "<=", ">", ">="])
    return f"{column} {sign} {one()}" if rng.random() < 0.9 else f"{one()} {sign} {column}"


def predicate(table, depth):
    kind = rng.randint(0, 3) if depth else 3
    if kind == 0:
        return "(" + " AND ".join(predicate(table, depth - 1) for _ in range(rng.randint(2, 3))) + ")"
    if kind == 1:
        return "(" + " OR ".join(predicate(table, depth - 1) for _ in range(rng.randint(2, 3))) + ")"
    if kind == 2:
        return "NOT (" + predicate(table, depth - 1) + ")"
    return test(table)


cases = []
for number_of_table in range(4):
    table = {"rid": list(range(ROWS))}
    for name, (kind, make) in COLUMNS.items():
        table[name] = [make(at) for at in range(ROWS)]
    if number_of_table % 2:
        # Rows in another order, which are found as well.
        order = list(range(ROWS))
        rng.shuffle(order)
        table = {name: [values[at] for at in order] for name, values in table.items()}
        table["rid"] = list(range(ROWS))
    types = [("rid", pa.int64())] + [(name, kind) for name, (kind, _) in COLUMNS.items()]
    rows = pa.table({name: pa.array(table[name], kind) for name, kind in types})
    arrow = f"arrow{number_of_table}.parquet"
    pq.write_table(
        rows,
        arrow,
        row_group_size=700,
        write_page_index=number_of_table != 3,
        data_page_size=500,
        write_batch_size=50,
        use_dictionary=number_of_table != 2,
        data_page_version=["1.0", "2.0"][number_of_table % 2],
    )
    theirs = f"duckdb{number_of_table}.parquet"
    duckdb.sql(f"COPY (FROM '{arrow}') TO '{theirs}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
    for _ in range(60):
        wanted = predicate(table, rng.randint(0, 2))
        found = duckdb.sql(f"SELECT rid FROM '{arrow}' WHERE {wanted} ORDER BY rid").fetchall()
        for file in [arrow, theirs, f"ours{number_of_table}.parquet"]:
            cases.append((file, wanted, ",".join(str(rid) for (rid,) in found)))
with open("cases.tsv", "w", encoding="utf-8", newline="") as out:
    out.writelines("\t".join(case) + "\n" for case in cases)
