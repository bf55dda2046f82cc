#!/usr/bin/env python3
"""Compares what Marquetry wrote of record batches with these: incoming.py FOLDER

For each NAME.arrow, a stream of Arrow's IPC, there is a NAME.ours, a Parquet file.
"""

import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

# pyarrow reads a map's entries under the names of the format, and a list's element, too.
NAMES = {"map", "tensor"}


def main():
    folder = pathlib.Path(sys.argv[1])
    files = sorted(folder.glob("*.ours"))
    for path in files:
        with pa.ipc.open_stream(path.with_suffix(".arrow")) as stream:
            expected = stream.read_all()
        found = pq.read_table(path)
        for name in expected.column_names:
            ours, theirs = found[name], expected[name]
            if path.stem not in NAMES:
                assert ours.type == theirs.type, (path.stem, ours.type, theirs.type)
            assert ours.to_pylist() == theirs.to_pylist(), (path.stem, ours, theirs)
    print(len(files), "files")


if __name__ == "__main__":
    main()
