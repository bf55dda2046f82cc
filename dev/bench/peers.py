#!/usr/bin/env python3
"""Contestants of the reading benchmark that live in Python packages: pyarrow, DuckDB, Polars; and programs that print records.

    peers.py NAME PRODUCT FILE        NAME: pyarrow | duckdb | polars    PRODUCT: arrow | dictionary | records
    peers.py PROGRAM records FILE     PROGRAM: the path of `marquetry`

Arrow: each reads all columns into Arrow arrays (Polars: into its own, which have Arrow's layout), batch by batch, and drops a batch before
it asks for the next, in the fastest of the ways that its package offers on one thread. What was tried, and lost or drew:

* pyarrow: `read`, `read_row_group`, `iter_batches` of other sizes, `pre_buffer=True`, the system's and jemalloc's memory pools;
* DuckDB: `to_arrow_table` (materialises), readers of larger batches, Arrow string views, unordered results;
* Polars: `read_parquet` of bytes, of a path, with each `parallel=`, `low_memory`; `scan_parquet` collected in memory or streaming.

Records: each prints the file as JSON lines to /dev/null. A program's time is all of it, from its start to its end.

The protocol is that of src/protocol.rs.
"""

import io
import json
import os
import struct
import subprocess
import sys
import tempfile
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
            yield batch

    return pa.__version__, batches


def duckdb_reader(path, product):
    """DuckDB reads files by name: the bytes stay in the page cache, which the first, untimed, rounds fill."""
    import duckdb

    only(product, "arrow")
    load(path)
    connection = duckdb.connect(config={"threads": 1})
    quoted = path.replace("'", "''")

    def batches():
        result = connection.sql(f"SELECT * FROM read_parquet('{quoted}')")
        for batch in result.to_arrow_reader(DUCKDB_BATCH_ROWS):
            yield batch

    return duckdb.__version__, batches


def polars_reader(path, product):
    import polars as pl

    only(product, "arrow")
    bytes_ = load(path)

    def batches():
        for frame in pl.scan_parquet(io.BytesIO(bytes_)).collect_batches():
            yield frame

    return pl.__version__, batches


def load(path):
    with open(path, "rb") as file:
        return file.read()


def only(product, expected):
    if product != expected:
        raise ValueError(f"this contestant has no product {product!r}")


def sum_of(table):
    """The proof of reading, as make_files.py and make_nested.py define it; it may be slow."""
    if not isinstance(table, (pa.Table, pa.RecordBatch)):
        table = table.to_arrow()
    return sum(column_sum(column) for column in table.columns)


def column_sum(column):
    if isinstance(column, pa.ChunkedArray):
        return sum(column_sum(chunk) for chunk in column.chunks)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = column.drop_null()
    if len(column) == 0:
        return 0
    if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
        elements = column.flatten()
        return len(column) + len(elements) + column_sum(elements)
    if pa.types.is_map(column.type):
        # The same slots as a list's, but there are no keys without an entry.
        first, behind = column.offsets[0].as_py(), column.offsets[-1].as_py()
        keys, items = (part.slice(first, behind - first) for part in (column.keys, column.items))
        # As a list of structs, its elements count twice: as elements, and as structs.
        return len(column) + 2 * len(keys) + column_sum(keys) + column_sum(items)
    if pa.types.is_struct(column.type):
        return len(column) + sum(column_sum(field) for field in column.flatten())
    if pa.types.is_float32(column.type):
        bits = column.to_numpy().view(np.uint32).astype(np.uint64)
    elif pa.types.is_floating(column.type):
        bits = column.to_numpy().view(np.uint64)
    elif pa.types.is_boolean(column.type):
        return pa.compute.sum(column).as_py()
    elif pa.types.is_integer(column.type):
        bits = column.to_numpy().astype(np.int64).view(np.uint64)
    else:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
            column = column.cast(pa.string())
        column = column.cast(pa.binary())
        width = len(column[0].as_py())
        if pa.compute.binary_length(column).unique().to_pylist() != [width]:
            raise ValueError("strings of several widths")
        # A slice's bytes are where its first offset says, also where a cast has left the others before them.
        start = int(np.frombuffer(column.buffers()[1], dtype=np.int32)[column.offset])
        data = np.frombuffer(column.buffers()[2], dtype=np.uint8, count=len(column) * width, offset=start)
        bits = np.ascontiguousarray(data.reshape(-1, width)[:, :8]).view(np.uint64)
    return int(bits.sum(dtype=np.uint64))


def pyarrow_records(path):
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)

    def print_to(out):
        with open(out, "w") as out:
            for batch in pq.ParquetFile(path, pre_buffer=False).iter_batches(PYARROW_BATCH_ROWS, use_threads=False):
                for row in batch.to_pylist():
                    out.write(json.dumps(row, default=str, ensure_ascii=False))
                    out.write("\n")

    return pa.__version__, in_process(print_to)


def duckdb_records(path):
    import duckdb

    connection = duckdb.connect(config={"threads": 1, "preserve_insertion_order": True})
    quoted = path.replace("'", "''")

    def print_to(out):
        connection.sql(f"COPY (SELECT * FROM read_parquet('{quoted}')) TO '{out}' (FORMAT json, USE_TMP_FILE false)")

    return duckdb.__version__, in_process(print_to)


def polars_records(path):
    import polars as pl

    def print_to(out):
        pl.scan_parquet(path).sink_ndjson(out)

    return pl.__version__, in_process(print_to)


def program_records(program, path):
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]

    def run(out):
        wall = time.monotonic_ns()
        with open(out, "w") as out:
            process = subprocess.Popen([program, "rows", "--quiet", "--format", "jsonl", path], stdout=out)
            # Not Popen.wait: only this tells what the program took.
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise ValueError(f"{program} ended with {process.returncode}")
        return time.monotonic_ns() - wall, int((usage.ru_utime + usage.ru_stime) * 1e9)

    return version, run


def in_process(print_to):
    """A function that prints to a file as one that says what wall and CPU time that took."""

    def run(out):
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        print_to(out)
        return time.monotonic_ns() - wall, time.process_time_ns() - cpu

    return run


def sum_of_json(value):
    """What a value of JSON counts, as make_nested.py defines it."""
    if value is None:
        return 0
    if isinstance(value, float):
        return struct.unpack("<Q", struct.pack("<d", value))[0]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return sum(int(c) for c in value if "0" <= c <= "9")
    if isinstance(value, dict):
        return sum(sum_of_json(name) + sum_of_json(field) for name, field in value.items())
    return sum(sum_of_json(element) for element in value)


def serve_records(run):
    rows = 0
    for line in sys.stdin:
        total = 0
        if line.strip() == "check":
            with tempfile.TemporaryDirectory() as folder:
                out = os.path.join(folder, "lines")
                wall, cpu = run(out)
                with open(out) as lines:
                    rows = 0
                    for line in lines:
                        total += sum_of_json(json.loads(line))
                        rows += 1
        else:
            # Nobody counts these lines: they are as many as when it was checked.
            wall, cpu = run("/dev/null")
        print(wall, cpu, rows, total % 2**64, flush=True)


def serve_batches(batches):
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


def main():
    name, product, path = sys.argv[1:]
    if product == "records":
        records = {"pyarrow": pyarrow_records, "duckdb": duckdb_records, "polars": polars_records}
        version, run = records[name](path) if name in records else program_records(name, path)
        print("ready", version, flush=True)
        serve_records(run)
    else:
        version, batches = {"pyarrow": pyarrow_reader, "duckdb": duckdb_reader, "polars": polars_reader}[name](path, product)
        print("ready", version, flush=True)
        serve_batches(batches)


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        print("error", repr(error).replace("\n", " "), flush=True)
        sys.exit(1)
