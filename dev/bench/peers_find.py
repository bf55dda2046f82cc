#!/usr/bin/env python3
"""Look-ups by the peers that are query engines: DuckDB, Polars and pyarrow's dataset, on one thread each.

    peers_find.py NAME FILE COLUMN KEYS     looks the first KEYS of the file's keys up in a column, and prints the times
    peers_find.py NAME version

What can be kept between look-ups is kept: a connection and a prepared query, a dataset with its metadata, a lazy frame. The file's bytes
come from the page cache. Each looks for the key column alone. A look-up is run twice for each key, and the second time counts.
"""

import json
import os
import sys
import time

os.environ["POLARS_MAX_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

STRING_BYTES = 124
MASK = (1 << 64) - 1


def string(number):
    """As `find.rs` makes it."""
    text = f"{number:012}"
    state = (number * 0x9E37_79B9_7F4A_7C15 & MASK) | 1
    while len(text) < STRING_BYTES:
        state ^= state << 13 & MASK
        state ^= state >> 7
        state ^= state << 17 & MASK
        text += chr(ord("a") + state % 26)
    return text


def value(column, number):
    if column == "string":
        return string(number)
    return float(number) if column in ("float", "double") else number


def duckdb(path, column):
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET parquet_metadata_cache = true")
    query = f"SELECT \"{column}\" FROM read_parquet('{path}') WHERE \"{column}\" = ?"
    return lambda key: len(connection.execute(query, [key]).fetchall())


def polars(path, column):
    import polars as pl

    frame = pl.scan_parquet(path).select(column)
    kind = {"int32": pl.Int32, "int64": pl.Int64, "float": pl.Float32, "double": pl.Float64, "string": pl.String}[column]
    return lambda key: frame.filter(pl.col(column) == pl.lit(key, kind)).collect().height


def pyarrow(path, column):
    import pyarrow as pa
    import pyarrow.dataset as ds

    pa.set_cpu_count(1)
    dataset = ds.dataset(path, format="parquet")
    for fragment in dataset.get_fragments():
        fragment.ensure_complete_metadata()
    kind = dataset.schema.field(column).type
    return lambda key: dataset.to_table(columns=[column], filter=ds.field(column) == pa.scalar(key, kind)).num_rows


def version(name):
    return __import__(name).__version__


def main():
    name = sys.argv[1]
    if sys.argv[2:] == ["version"]:
        print(version(name))
        return
    path, column, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
    with open(path.removesuffix(".parquet") + ".keys.json") as keys:
        keys = json.load(keys)[:count]
    start = time.perf_counter()
    find = {"duckdb": duckdb, "polars": polars, "pyarrow": pyarrow}[name](path, column)
    opened = time.perf_counter() - start
    times = {"member": [], "absent": []}
    for number, row in keys:
        key = value(column, number)
        find(key)
        start = time.perf_counter()
        found = find(key)
        took = time.perf_counter() - start
        if found != (row is not None):
            sys.exit(f"{name}: {found} rows of {key}")
        times["absent" if row is None else "member"].append(took * 1e6)
    for kind, micros in times.items():
        micros.sort()
        median, late = micros[len(micros) // 2], micros[len(micros) * 99 // 100]
        times[kind] = {"median": median, "p99": late, "count": len(micros)}
    print(json.dumps({"version": version(name), "open": opened * 1e6, "times": times}))


if __name__ == "__main__":
    main()
