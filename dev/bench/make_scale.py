#!/usr/bin/env python3
"""Writes the files that the benchmark of scale reads: the same rows, more and more of them.

    make_scale.py OUT [--scale 0.05] [--megabytes 10000]

--megabytes is the largest file's size. Nothing is written if there is no room for all files: some 2 GB, and a tenth more than the sizes up to the
largest (13 GB).

OUT/scale.json lists them: `{"scale", "megabytes", "pyarrow", "cases": [{"axis", "size", "file", "rows", "sum", "bytes"}]}`; `size` counts what the axis is
named after, and `sum` is as make_files.py has it, over all columns. A directory that already holds the same cases, written by the same program,
is left as it is.
"""

import argparse
import hashlib
import pathlib
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from make_files import ascii_digits, make, sum_of

MB = 1_000_000
MEGABYTES = [10, 100, 1_000, 10_000]
COLUMNS = [10, 100, 1_000, 10_000, 100_000]
ROW_GROUPS = [1, 10, 100, 1_000, 10_000]

GROUP_ROWS = 500_000  # of the files of many bytes: two numbers and two words a row, 19 bytes
WORDS = 1_000
FEW_ROWS = 1_000  # a column's in the files of many columns, and a row group's in those of many row groups
FEW_COLUMNS = 10


def cases(scale, megabytes):
    for size in MEGABYTES:
        if size <= megabytes:
            yield "megabytes", size, lambda out, size=size: write(out, large(size * scale), GROUP_ROWS)
    for columns in counts(COLUMNS, scale):
        yield "columns", columns, lambda out, columns=columns: write(out, numbers(columns, 1), FEW_ROWS)
    for groups in counts(ROW_GROUPS, scale):
        yield "row groups", groups, lambda out, groups=groups: write(out, numbers(FEW_COLUMNS, groups), FEW_ROWS)


def counts(sizes, scale):
    """Each once: in a quick look some are the same."""
    return sorted({max(1, int(size * scale)) for size in sizes})


def bytes_of_all(scale, megabytes):
    """About what the files take: values of eight bytes, and metadata."""
    large = sum(size * MB for size in MEGABYTES if size <= megabytes)
    columns = sum(COLUMNS) * (8 * FEW_ROWS + 300)
    groups = sum(ROW_GROUPS) * FEW_COLUMNS * (8 * FEW_ROWS + 200)
    return int(1.05 * scale * (large + columns + groups))


def large(megabytes):
    """Row groups of numbers, which are PLAIN, and words, which are in dictionaries, until there are that many bytes."""
    words = ascii_digits(np.random.default_rng(11).integers(0, 10**8, WORDS), 8)
    rows = max(1, int(megabytes * MB / 18.5))
    for start in range(0, rows, GROUP_ROWS):
        rng = np.random.default_rng([29, start])
        count = min(GROUP_ROWS, rows - start)
        data = {"a": rng.integers(0, 1 << 62, count), "b": rng.normal(size=count)}
        data |= {name: words[rng.integers(0, WORDS, count)] for name in ["c", "d"]}
        yield data


def numbers(columns, groups):
    """Row groups of so many columns of numbers."""
    for group in range(groups):
        data = np.random.default_rng([31, group]).integers(0, 1 << 62, (columns, FEW_ROWS))
        yield {f"c{column}": data[column] for column in range(columns)}


def arrow_array(data):
    if data.dtype != np.uint8:
        return pa.array(data)
    rows, width = data.shape
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))])


def write(path, groups, group_rows):
    rows, total, writer = 0, 0, None
    for data in groups:
        table = pa.table([arrow_array(values) for values in data.values()], names=list(data))
        if writer is None:
            strings = [name for name, values in data.items() if values.dtype == np.uint8]
            writer = pq.ParquetWriter(path, table.schema, compression="NONE", use_dictionary=strings or False)
        writer.write_table(table, row_group_size=group_rows)
        rows += table.num_rows
        total = (total + sum(sum_of(values, None) for values in data.values())) % 2**64
    writer.close()
    return rows, total


def written(out, scale, megabytes):
    # What is there is of other sizes, or was made otherwise.
    for old in out.glob("scale-*.parquet"):
        old.unlink()
    needed, free = bytes_of_all(scale, megabytes), shutil.disk_usage(out).free
    if needed > free:
        sys.exit(f"make_scale.py: {out} has {free / 1e9:.1f} GB of free space, and the files take {needed / 1e9:.1f} GB: try a smaller --megabytes")
    for axis, size, make_file in cases(scale, megabytes):
        name = f"scale-{axis.replace(' ', '-')}-{size}.parquet"
        print(f"writing {name}", file=sys.stderr, flush=True)
        temporary = out / (name + ".tmp")
        rows, total = make_file(temporary)
        temporary.rename(out / name)
        yield {"axis": axis, "size": size, "file": name, "rows": rows, "sum": total, "bytes": (out / name).stat().st_size}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1.0, help="a part of everything, for a quick look")
    parser.add_argument("--megabytes", type=int, default=MEGABYTES[-1], help="the largest file's size")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    program = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    stamp = {"program": program, "scale": arguments.scale, "megabytes": arguments.megabytes, "pyarrow": pa.__version__}
    make(arguments.out, "scale", "cases", stamp, lambda: written(arguments.out, arguments.scale, arguments.megabytes))


if __name__ == "__main__":
    main()
