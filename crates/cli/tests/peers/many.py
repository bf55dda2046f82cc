"""Writes tables of many files into a folder, and the rows that the peers read of them, as lines of JSON, beside each.

    many.py FOLDER

FOLDER/NAME/table is a table; FOLDER/NAME/*.jsonl the rows, sorted, by each peer.
"""

import datetime
import decimal
import json
import os
import sys

import duckdb
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq


def plain(value):
    """As the command writes it."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, (datetime.date, decimal.Decimal)):
        return str(value)
    return value


def keep(folder, peer, rows):
    lines = sorted(json.dumps(plain(row), sort_keys=True, ensure_ascii=False) for row in rows)
    with open(os.path.join(folder, f"{peer}.jsonl"), "w") as file:
        file.writelines(line + "\n" for line in lines)


def by_duckdb(folder):
    rows = duckdb.sql(
        f"FROM read_parquet('{folder}/table/**/*.parquet', hive_partitioning = true, union_by_name = true)"
    ).fetch_arrow_table()
    keep(folder, "duckdb", rows.to_pylist())


def by_pyarrow(folder, types):
    partitioning = pa.dataset.partitioning(pa.schema(types), flavor="hive")
    table = pa.dataset.dataset(f"{folder}/table", format="parquet", partitioning=partitioning).to_table()
    keep(folder, "pyarrow", table.to_pylist())


def written_by_pyarrow(folder):
    table = pa.table({
        "id": list(range(40)),
        "year": [2020 + at % 3 for at in range(40)],
        "city": [["Paris", "New York/NY", "a=b %41", "Århus", None][at % 5] for at in range(40)],
        "tags": [["x"] * (at % 3) for at in range(40)],
    })
    types = [("year", pa.int64()), ("city", pa.string())]
    partitioning = pa.dataset.partitioning(pa.schema(types), flavor="hive")
    pa.dataset.write_dataset(table, f"{folder}/table", format="parquet", partitioning=partitioning)
    by_duckdb(folder)
    by_pyarrow(folder, types)


def written_by_duckdb(folder):
    duckdb.sql(
        f"""COPY (SELECT range AS id, DATE '2024-02-28' + (range % 3)::INTEGER AS day, range % 2 AS part,
            {{'x': range, 'l': [range, NULL]}} AS s FROM range(30))
            TO '{folder}/table' (FORMAT parquet, PARTITION_BY (day, part))"""
    )
    by_duckdb(folder)


def of_differing_schemas(folder):
    parts = [
        {"id": pa.array([1, 2], pa.int32()), "s": pa.array([{"x": 1, "y": "a"}, None]), "f": pa.array([1.5, None], pa.float32())},
        {"s": pa.array([{"y": "b", "z": [1]}]), "id": pa.array([3], pa.int64()), "extra": pa.array(["e"])},
        {"id": pa.array([4], pa.int16()), "f": pa.array([2.25], pa.float64()), "s": pa.array([{"x": None, "y": None}], pa.struct([("x", pa.int64()), ("y", pa.string())]))},
        {"id": pa.array([5], pa.int64()), "extra": pa.nulls(1)},
    ]  # fmt: skip
    for number, columns in enumerate(parts):
        os.makedirs(f"{folder}/table/p={number}")
        pq.write_table(pa.table(columns), f"{folder}/table/p={number}/a.parquet")
    by_duckdb(folder)


if __name__ == "__main__":
    for write in (written_by_pyarrow, written_by_duckdb, of_differing_schemas):
        folder = os.path.join(sys.argv[1], write.__name__)
        os.makedirs(folder)
        write(folder)
