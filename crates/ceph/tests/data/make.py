#!/usr/bin/env python3
"""Makes pyarrow.arrows, an Arrow IPC stream, and pyarrow.arrow, a file of the same record batches, beside itself (pyarrow 26.0.1)."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
from pyarrow import ipc

PLACE = pa.struct([("lat", pa.float32()), ("lon", pa.float32())])
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("fare", pa.float64()),
        ("day", pa.date32()),
        ("tags", pa.list_(pa.string())),
        ("place", PLACE),
        ("kind", pa.dictionary(pa.int8(), pa.string())),
        ("note", pa.string_view()),
        ("price", pa.decimal128(20, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("is", pa.bool_()),
        ("none", pa.null()),
        ("key", pa.binary(4)),
    ]
)


def batch(ids):
    def note(i):
        return f"a note that is longer than a view, {i}" if i % 2 else "short"

    columns = [
        pa.array(ids, pa.int64()),
        pa.array([None if i % 7 == 3 else f"city {i % 5}" for i in ids], pa.string()),
        pa.array([None if i % 3 == 0 else i / 4 for i in ids], pa.float64()),
        pa.array(ids, pa.int32()).cast(pa.date32()),
        pa.array([None if i % 4 == 0 else [f"tag {k}" for k in range(i % 3)] for i in ids], pa.list_(pa.string())),
        pa.array([{"lat": i / 2, "lon": -i / 2} for i in ids], PLACE),
        pa.DictionaryArray.from_arrays(pa.array([i % 2 for i in ids], pa.int8()), pa.array(["a", "b"])),
        pa.array([note(i) for i in ids], pa.string_view()),
        pa.array([Decimal(i) for i in ids], pa.decimal128(20, 2)),
        pa.array([i * 1000 for i in ids], pa.int64()).cast(pa.timestamp("us", "UTC")),
        pa.array([i % 2 == 0 for i in ids], pa.bool_()),
        pa.nulls(len(ids)),
        pa.array([bytes([i % 256] * 4) for i in ids], pa.binary(4)),
    ]
    return pa.record_batch(columns, schema=SCHEMA)


def main():
    batches = [batch(list(range(30))), batch([]), batch(list(range(30, 50)))]
    for name, new in [("pyarrow.arrows", ipc.new_stream), ("pyarrow.arrow", ipc.new_file)]:
        with pa.OSFile(str(Path(__file__).with_name(name)), "wb") as sink, new(sink, SCHEMA) as writer:
            for one in batches:
                writer.write_batch(one)


if __name__ == "__main__":
    main()
