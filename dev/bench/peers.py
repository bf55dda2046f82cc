#!/usr/bin/env python3
"""Contestants of the reading benchmark that live in Python packages: pyarrow, DuckDB, Polars.

    peers.py NAME PRODUCT FILE        NAME: pyarrow | duckdb | polars    PRODUCT: arrow | dictionary

Each reads the whole column into Arrow arrays (Polars: into its own, which have Arrow's layout), batch by batch, and drops a batch before
it asks for the next, in the fastest of the ways that its package offers on one thread. What was tried, and lost or drew:

* pyarrow: `read`, `read_row_group`, `iter_batches` of other sizes, `pre_buffer=True`, the system's and jemalloc's memory pools;
* DuckDB: `to_arrow_table` (materialises), readers of larger batches, Arrow string views, unordered results;
* Polars: `read_parquet` of bytes, of a path, with each `parallel=`, `low_memory`; `scan_parquet` collected in memory or streaming.

The protocol is that of src/protocol.rs.
"""

import io
import os
import sys
import time

os.environ["POLARS_MAX_THREADS"] = "1"

import numpy as np  # noqa: E402 (Polars reads its environment when it is imported)
import pyarrow as pa  # noqa: E402
import pyarrow.compute  # noqa: E402

PYARROW_BATCH_ROWS = 32_768
DUCKDB_BATCH_ROWS = 8_192


def pyarrow_reader(path, product):
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    bytes_ = pa.py_buffer(load(path))
    kept = ["v"] if product == "dictionary" else None

    def batches():
        file = pq.ParquetFile(pa.BufferReader(bytes_), read_dictionary=kept, pre_buffer=False)
        for batch in file.iter_batches(PYARROW_BATCH_ROWS, use_threads=False):
            yield batch.column(0)

    return pa.__version__, batches


def duckdb_reader(path, product):
    """DuckDB reads files by name: the bytes stay in the page cache, which the first, untimed, rounds fill."""
    import duckdb

    only(product, "arrow")
    load(path)
    connection = duckdb.connect(config={"threads": 1})
    quoted = path.replace("'", "''")

    def batches():
        result = connection.sql(f"SELECT v FROM read_parquet('{quoted}')")
        for batch in result.to_arrow_reader(DUCKDB_BATCH_ROWS):
            yield batch.column(0)

    return duckdb.__version__, batches


def polars_reader(path, product):
    import polars as pl

    only(product, "arrow")
    bytes_ = load(path)

    def batches():
        for frame in pl.scan_parquet(io.BytesIO(bytes_)).collect_batches():
            yield frame.to_series(0)

    return pl.__version__, batches


def load(path):
    with open(path, "rb") as file:
        return file.read()


def only(product, expected):
    if product != expected:
        raise ValueError(f"this contestant has no product {product!r}")


def sum_of(column):
    """The proof of reading, as make_files.py defines it; it may be slow."""
    if not isinstance(column, pa.Array):
        column = column.to_arrow()
    if isinstance(column, pa.ChunkedArray):
        return sum(sum_of(chunk) for chunk in column.chunks)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = column.drop_null()
    if pa.types.is_floating(column.type):
        bits = column.to_numpy().view(np.uint64)
    elif pa.types.is_integer(column.type):
        bits = column.to_numpy().astype(np.int64).view(np.uint64)
    else:
        column = column.cast(pa.string()).cast(pa.binary())
        width = len(column[0].as_py())
        if pa.compute.binary_length(column).unique().to_pylist() != [width]:
            raise ValueError("strings of several widths")
        data = np.frombuffer(column.buffers()[2], dtype=np.uint8, count=len(column) * width, offset=column.offset * width)
        bits = np.ascontiguousarray(data.reshape(-1, width)[:, :8]).view(np.uint64)
    return int(bits.sum(dtype=np.uint64))


def main():
    name, product, path = sys.argv[1:]
    version, batches = {"pyarrow": pyarrow_reader, "duckdb": duckdb_reader, "polars": polars_reader}[name](path, product)
    print("ready", version, flush=True)
    for line in sys.stdin:
        check = line.strip() == "check"
        rows, total = 0, 0
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        for batch in batches():
            rows += len(batch)
            if check:
                total = (total + sum_of(batch)) % 2**64
        batch = None  # dropping the last batch is part of the reading
        print(time.monotonic_ns() - wall, time.process_time_ns() - cpu, rows, total, flush=True)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        print("error", repr(error).replace("\n", " "), flush=True)
        sys.exit(1)
