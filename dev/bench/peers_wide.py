#!/usr/bin/env python3
"""Wide tables by the peers that are Python packages, on one thread each.

    peers_wide.py make FILE COLUMNS STATISTICS KIND pyarrow     writes a file, as bench-wide-files does
    peers_wide.py NAME FILE COLUMNS KIND TASK ROUNDS            does a task once, then so often, and prints the CPU time of each

The tasks are those of `wide.rs`: `open` (the whole metadata), `open10` (for ten columns), `read10`. The file is in the page cache. What is best of what
was tried: pyarrow with a mapped file, which it opens whole in any case (`read_schema` reads the whole footer, too); DuckDB asked for no row, with
its cache of metadata off; Polars' `read_parquet_schema`, and its engine in memory for ten columns.
"""

import json
import os
import sys
import time

os.environ["POLARS_MAX_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

GROUPS, GROUP_ROWS, WANTED = 10, 10, 10
WORDS = ["x", "price", "sensor_reading", "temperature", "f", "open_interest_total", "volume", "embedding"]


def name(column):
    """As `wide.rs` makes it."""
    return f"{WORDS[column * 7 // 3 % len(WORDS)]}_{column}"


def number(column, row):
    return (column * 31 + row * 17) % 1000 if row % GROUP_ROWS >= column % 5 else None


def wanted(columns):
    count = min(WANTED, columns)
    return [name(at * columns // count) for at in range(count)]


def make(path, columns, statistics, kind):
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"float64": pa.float64(), "string": pa.string(), "binary": pa.binary()}
    of = {
        "float64": lambda n: None if n is None else float(n),
        "string": lambda n: None if n is None else f"value {n}",
        "binary": lambda n: None if n is None else f"value {n}".encode(),
    }[kind]
    schema = pa.schema([(name(column), kinds[kind]) for column in range(columns)])
    with pq.ParquetWriter(
        path + ".unfinished", schema, write_statistics=statistics != "none", write_page_index=statistics == "page"
    ) as writer:
        for group in range(GROUPS):
            rows = range(group * GROUP_ROWS, (group + 1) * GROUP_ROWS)
            arrays = [pa.array([of(number(column, row)) for row in rows], kinds[kind]) for column in range(columns)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema), row_group_size=GROUP_ROWS)
    os.rename(path + ".unfinished", path)


def total(values):
    return sum(0 if value is None else int(value) if isinstance(value, float) else len(value) for value in values)


def pyarrow(path, columns):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)

    def open_whole():
        return pq.ParquetFile(path, memory_map=True).metadata.num_columns

    def read():
        table = pq.ParquetFile(path, memory_map=True).read(columns=wanted(columns), use_threads=False)
        return lambda: sum(total(column.to_pylist()) for column in table.columns)

    return {"open": open_whole, "open10": open_whole, "read10": read}


def duckdb(path, columns):
    import duckdb

    def query(what, limit=""):
        connection = duckdb.connect()
        connection.execute("SET threads = 1")
        return connection.execute(f"SELECT {what} FROM read_parquet('{path}') {limit}")

    some = ", ".join(f'"{one}"' for one in wanted(columns))

    def read():
        found = query(some).fetchnumpy()
        return lambda: sum(total(column.tolist()) for column in found.values())

    return {
        "open": lambda: len(query("*", "LIMIT 0").description),
        "open10": lambda: len(query(some, "LIMIT 0").description),
        "read10": read,
    }


def polars(path, columns):
    import polars as pl

    some = wanted(columns)

    def read():
        found = pl.read_parquet(path, columns=some)
        return lambda: sum(total(column.to_list()) for column in found.get_columns())

    return {
        "open": lambda: len(pl.read_parquet_schema(path)),
        "open10": lambda: pl.scan_parquet(path).select(some).head(0).collect().width,
        "read10": read,
    }


def main():
    if sys.argv[1] == "make":
        path, columns, statistics, kind, _ = sys.argv[2:]
        make(path, int(columns), statistics, kind)
        print("{}")
        return
    package, path, columns, _, task, rounds = sys.argv[1:]
    run = {"pyarrow": pyarrow, "duckdb": duckdb, "polars": polars}[package](path, int(columns))[task]
    proof = run()
    if callable(proof):
        proof = proof()
    seconds = []
    for _ in range(int(rounds)):
        start = time.process_time()
        run()
        seconds.append(time.process_time() - start)
    version = __import__(package).__version__
    print(json.dumps({"version": version, "seconds": seconds, "proof": proof}))


if __name__ == "__main__":
    main()
