#!/usr/bin/env python3
"""Contestants of the benchmark of the package for Python, each on one thread; a reading ends when the whole table has been dropped.

    peers_python.py NAME FILE    NAME: marquetry-pyarrow | marquetry-polars | marquetry-duckdb | pyarrow | polars

The protocol is that of src/protocol.rs. `marquetry` is found by PYTHONPATH.
"""

import os
import sys

os.environ["POLARS_MAX_THREADS"] = "1"

import pyarrow as pa  # noqa: E402 (Polars reads its environment when it is imported)
from peers import serve_batches  # noqa: E402


def marquetry_pyarrow(path):
    import marquetry as mq

    return mq.__version__, lambda: mq.open(path).threads(0).to_arrow()


def marquetry_polars(path):
    import marquetry as mq
    import polars as pl  # noqa: F401 (so that its import is not in the first reading)

    return mq.__version__, lambda: mq.open(path).threads(0).to_polars()


def marquetry_duckdb(path):
    import duckdb
    import marquetry as mq

    connection = duckdb.connect(config={"threads": 1})

    class Counted:
        """DuckDB keeps no rows of a stream: it counts them, which is the least that it does with them."""

        def __init__(self):
            self.rows = connection.from_arrow(mq.open(path).threads(0)).aggregate("count(*)").fetchall()[0][0]

        def __len__(self):
            return self.rows

        def to_arrow(self):
            return connection.from_arrow(mq.open(path).threads(0)).to_arrow_table()

    return mq.__version__, Counted


def pyarrow(path):
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    return pa.__version__, lambda: pq.read_table(path, use_threads=False, pre_buffer=False)


def polars(path):
    import polars as pl

    return pl.__version__, lambda: pl.read_parquet(path)


def main():
    name, path = sys.argv[1:]
    contestants = {
        "marquetry-pyarrow": marquetry_pyarrow,
        "marquetry-polars": marquetry_polars,
        "marquetry-duckdb": marquetry_duckdb,
        "pyarrow": pyarrow,
        "polars": polars,
    }
    version, read = contestants[name](path)
    print("ready", version, flush=True)
    serve_batches(lambda: iter((read(),)))


if __name__ == "__main__":
    try:
        main()
    except Exception as error:
        print("error", repr(error).replace("\n", " "), flush=True)
        sys.exit(1)
