#!/usr/bin/env python3
"""Makes what the benchmark of whole programs reads: two tables, each as Parquet and as CSV.

    make_whole.py OUT --flights FILE [--scale 0.05]

OUT/whole.json lists them: `{"scale", "tables": [{"name", "parquet", "csv", "rows", "sort", "partition"}]}`.

flights: twelve million rows, the demo's three million and three more times the same, some years later. gdelt: the 57 columns of make_write.py.
Both are written by pyarrow, in row groups of 1,048,576 rows.
"""

import argparse
import json
import pathlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from make_write import gdelt

ROW_GROUP_ROWS = 1 << 20
FLIGHTS_COPIES = 4
GDELT_ROWS = 2_000_000
YEAR = 366 * 24 * 3600 * 1_000_000


def flights(path, scale):
    """The demo's flights, several times over, and the hour of each to partition by."""
    once = pq.read_table(path)
    once = once.slice(0, int(once.num_rows * scale))
    copies = []
    for copy in range(FLIGHTS_COPIES):
        date = once["date"].cast(pa.int64())
        later = pc.add(date, copy * YEAR).cast(once.schema.field("date").type)
        copies.append(once.set_column(once.schema.get_field_index("date"), "date", later))
    table = pa.concat_tables(copies)
    hour = pc.hour(table["date"])
    return table.append_column("hour", hour.cast(pa.int32())).combine_chunks()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--flights", type=pathlib.Path, required=True)
    parser.add_argument("--scale", type=float, default=1.0)
    arguments = parser.parse_args()
    tables = [
        ("flights", "delay", "hour", lambda: flights(arguments.flights, arguments.scale)),
        ("gdelt", "SOURCEURL", "QuadClass", lambda: gdelt(int(GDELT_ROWS * arguments.scale))),
    ]
    listing = []
    for name, sort, partition, make in tables:
        parquet, csv = (f"whole-{name}.{extension}" for extension in ("parquet", "csv"))
        if not (arguments.out / csv).exists():
            table = make()
            pq.write_table(table, arguments.out / parquet, compression="snappy", row_group_size=ROW_GROUP_ROWS)
            unfinished = arguments.out / f"{csv}.new"
            pa.csv.write_csv(table, unfinished)
            unfinished.rename(arguments.out / csv)
        rows = pq.read_metadata(arguments.out / parquet).num_rows
        listing.append({"name": name, "parquet": parquet, "csv": csv, "rows": rows, "sort": sort, "partition": partition})
    (arguments.out / "whole.json").write_text(json.dumps({"scale": arguments.scale, "tables": listing}, indent=1))


if __name__ == "__main__":
    main()
