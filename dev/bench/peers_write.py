#!/usr/bin/env python3
"""Contestants of the writing benchmark that live in Python packages: pyarrow, DuckDB, Polars.

    peers_write.py NAME FILE ENCODING CODEC FOLDER

FILE is read into the package's own table before anything is timed. Each writes it whole, on one thread, in row groups of 1,048,576 rows,
with statistics of column chunks, and neither page index nor checksums: pyarrow and Polars into memory, DuckDB, which writes only
files, into one in FOLDER, which is in memory. ENCODING `default` is what the package chooses.

The protocol is that of src/protocol.rs; `check` answers with the number of rows that pyarrow finds in what was written, and no sum,
`run` with the number of bytes.
"""

import io
import os
import sys
import time

os.environ["POLARS_MAX_THREADS"] = "1"

import pyarrow as pa  # noqa: E402 (Polars reads its environment when it is imported)
import pyarrow.parquet as pq  # noqa: E402

ROW_GROUP_ROWS = 1 << 20
ZSTD_LEVEL = 1


def pyarrow_writer(path, encoding, codec, _):
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    table = pq.read_table(path, use_threads=False).combine_chunks()
    options = {"compression": "none" if codec == "UNCOMPRESSED" else codec.lower(), "row_group_size": ROW_GROUP_ROWS, "store_schema": False}
    if codec == "ZSTD":
        options["compression_level"] = ZSTD_LEVEL
    if encoding == "RLE_DICTIONARY":
        options["use_dictionary"] = True
    elif encoding != "default":
        options |= {"use_dictionary": False, "column_encoding": encoding}

    # The same memory for each file: what is measured is writing, not how memory grows.
    room = pa.allocate_buffer(2 * table.nbytes + (64 << 20))

    def write():
        sink = pa.FixedSizeBufferWriter(room)
        pq.write_table(table, sink, **options)
        return room.slice(0, sink.tell())

    return pa.__version__, write


def duckdb_writer(path, encoding, codec, folder):
    import duckdb

    only_default(encoding)
    connection = duckdb.connect(config={"threads": 1})
    connection.sql(f"CREATE TABLE t AS SELECT * FROM read_parquet('{path}')")
    out = os.path.join(folder, f"duckdb-{os.getpid()}.parquet")
    level = f", COMPRESSION_LEVEL {ZSTD_LEVEL}" if codec == "ZSTD" else ""
    statement = f"COPY t TO '{out}' (FORMAT parquet, COMPRESSION {codec}, ROW_GROUP_SIZE {ROW_GROUP_ROWS}{level})"

    def write():
        connection.execute(statement)
        return FileOf(out)

    return duckdb.__version__, write


def polars_writer(path, encoding, codec, _):
    import polars as pl

    only_default(encoding)
    frame = pl.read_parquet(path)
    level = ZSTD_LEVEL if codec == "ZSTD" else None

    def write():
        sink = io.BytesIO()
        frame.write_parquet(sink, compression=codec.lower(), compression_level=level, row_group_size=ROW_GROUP_ROWS)
        return sink.getbuffer()

    return pl.__version__, write


class FileOf:
    """A file's bytes, which are removed with it."""

    def __init__(self, path):
        self.path = path

    def __len__(self):
        return os.path.getsize(self.path)

    def __del__(self):
        os.remove(self.path)


def only_default(encoding):
    if encoding != "default":
        raise ValueError("this contestant cannot be told an encoding")


def rows_of(written):
    source = written.path if isinstance(written, FileOf) else pa.BufferReader(pa.py_buffer(written))
    return pq.read_table(source, use_threads=False).num_rows


def main():
    name, path, encoding, codec, folder = sys.argv[1:]
    writers = {"pyarrow": pyarrow_writer, "duckdb": duckdb_writer, "polars": polars_writer}
    version, write = writers[name](path, encoding, codec, folder)
    print("ready", version, flush=True)
    rows = 0
    for line in sys.stdin:
        wall, cpu = time.monotonic_ns(), time.process_time_ns()
        written = write()
        wall, cpu = time.monotonic_ns() - wall, time.process_time_ns() - cpu
        if line.strip() == "check":
            rows = rows_of(written)
            print(wall, cpu, rows, 0, flush=True)
        else:
            print(wall, cpu, rows, len(written), flush=True)
        written = None


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        print("error", repr(error).replace("\n", " "), flush=True)
        sys.exit(1)
