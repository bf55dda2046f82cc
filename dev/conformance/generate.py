#!/usr/bin/env python3
"""Writes the conformance files with the Python peers: pyarrow, DuckDB, Polars, fastparquet.

    generate.py OUTDIR [WRITER...]

Each writer gets a directory OUTDIR/WRITER with its files and a manifest.json (see generators/manifest.py). The
values are seeded by the names of the cases: a run with the same peers gives the same files. parquet-rs' files
come from the binary `generate_rs` of this package.
"""

import importlib
import os
import sys
import time

# Before the peers are imported: one thread each, so that row order and files do not depend on the machine.
os.environ["POLARS_MAX_THREADS"] = "1"

WRITERS = ["pyarrow", "duckdb", "polars", "fastparquet"]


def main(arguments):
    unknown = [writer for writer in arguments[1:] if writer not in WRITERS]
    if not arguments or unknown:
        print(__doc__ if not arguments else f"no such writer: {unknown}; there are {WRITERS}", file=sys.stderr)
        return 2
    for writer in arguments[1:] or WRITERS:
        began = time.monotonic()
        importlib.import_module(f"generators.{writer}_files").generate(arguments[0])
        print(f"  in {time.monotonic() - began:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
