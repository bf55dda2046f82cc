#!/usr/bin/env python3
"""The files of `make bench-door`, by pyarrow: make_door.py FOLDER ROWS"""

import random
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def main(folder: Path, rows: int) -> None:
    pick = random.Random(1)
    numbers = pa.table({
        "a": pa.array([pick.getrandbits(62) for _ in range(rows)], pa.int64()),
        "b": pa.array([pick.random() for _ in range(rows)], pa.float64()),
        "c": pa.array([None if row % 10 == 0 else pick.getrandbits(30) for row in range(rows)], pa.int32()),
    })
    words = [f"word {number} of some" for number in range(1000)]
    strings = pa.table({
        "few": pa.array([pick.choice(words) for _ in range(rows)]),
        "many": pa.array([f"{pick.getrandbits(60):x} and more" for _ in range(rows)]),
    })
    nested = pa.table({
        "id": pa.array(range(rows)),
        "list": pa.array([None if row % 9 == 0 else list(range(row % 5)) for row in range(rows)]),
        "pair": pa.array([{"x": row, "y": str(row % 100)} for row in range(rows)]),
    })
    files = {
        "plain": (numbers, {"use_dictionary": False, "compression": "none"}),
        "snappy": (numbers, {"use_dictionary": False, "compression": "snappy"}),
        "dictionary": (strings.select(["few"]), {"compression": "none"}),
        "strings": (strings, {"use_dictionary": False, "compression": "none"}),
        "zstd": (strings, {"compression": "zstd"}),
        "nested": (nested, {"compression": "snappy"}),
    }
    for name, (table, options) in files.items():
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=100_000, **options)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
