#!/usr/bin/env python3
"""Whole programs of the peers: DuckDB, Polars and pyarrow, each with all its threads and its defaults.

    peers_whole.py NAME TASK IN OUT [COLUMN]     one task, from the process's start to its end
    peers_whole.py NAME version
    peers_whole.py check TASK IN OUT [COLUMN]    whether OUT holds the rows of IN (IN a Parquet file): its number of rows, or an error

TASK: `csv-parquet`, `parquet-csv`, `parquet-jsonl`, `parquet-zstd`, `sort` (by COLUMN), `partition` (by COLUMN, OUT a directory). Parquet is
written with SNAPPY, and with ZSTD at level 3 in `parquet-zstd`. Of the ways that a package has, the one that was fastest here and needs least
memory is taken: streams where there are any.
"""

import json
import os
import sys

ZSTD_LEVEL = 3


def duckdb(task, source, out, column):
    import duckdb

    connection = duckdb.connect()
    # In the order of the input, which is DuckDB's default and what the others do, too.
    read = f"read_csv('{source}')" if task == "csv-parquet" else f"read_parquet('{source}')"
    query = f"SELECT * FROM {read}" + (f" ORDER BY {column}" if task == "sort" else "")
    options = {
        "csv-parquet": "FORMAT parquet, COMPRESSION snappy",
        "parquet-csv": "FORMAT csv, HEADER",
        "parquet-jsonl": "FORMAT json",
        "parquet-zstd": f"FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL {ZSTD_LEVEL}",
        "sort": "FORMAT parquet, COMPRESSION snappy",
        "partition": f"FORMAT parquet, COMPRESSION snappy, PARTITION_BY ({column})",
    }
    connection.execute(f"COPY ({query}) TO '{out}' ({options[task]})")


def texts(source):
    """The columns of a CSV that are text: codes such as 010 are numbers for Polars and pyarrow, unless they are told."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pq.read_schema(source.replace(".csv", ".parquet"))
    return [field.name for field in schema if pa.types.is_string(field.type)]


def polars(task, source, out, column):
    import polars as pl

    overrides = dict.fromkeys(texts(source), pl.String) if task == "csv-parquet" else None
    frame = pl.scan_csv(source, try_parse_dates=True, schema_overrides=overrides) if task == "csv-parquet" else pl.scan_parquet(source)
    if task == "csv-parquet":
        frame.sink_parquet(out, compression="snappy")
    elif task == "parquet-csv":
        frame.sink_csv(out)
    elif task == "parquet-jsonl":
        frame.sink_ndjson(out)
    elif task == "parquet-zstd":
        frame.sink_parquet(out, compression="zstd", compression_level=ZSTD_LEVEL)
    elif task == "sort":
        frame.sort(column, maintain_order=True).sink_parquet(out, compression="snappy")
    else:
        frame.sink_parquet(pl.PartitionBy(out, key=column, include_key=False), compression="snappy", mkdir=True)


def pyarrow(task, source, out, column):
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.dataset as ds
    import pyarrow.parquet as pq

    if task == "sort":
        pq.write_table(pq.read_table(source).sort_by(column), out, compression="snappy")
        return
    if task == "partition":
        options = ds.ParquetFileFormat().make_write_options(compression="snappy")
        schema = ds.dataset(source).schema
        partitioning = ds.partitioning(pa.schema([schema.field(column)]), flavor="hive")
        ds.write_dataset(ds.dataset(source), out, format="parquet", file_options=options, partitioning=partitioning)
        return
    if task == "csv-parquet":
        types = dict.fromkeys(texts(source), pa.string())
        batches = pa.csv.open_csv(source, convert_options=pa.csv.ConvertOptions(column_types=types))
    else:
        batches = ds.dataset(source).scanner(batch_size=1 << 17)
        batches = pa.RecordBatchReader.from_batches(batches.projected_schema, batches.to_batches())
    if task == "parquet-csv":
        with pa.csv.CSVWriter(out, batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return
    codec = {"compression": "zstd", "compression_level": ZSTD_LEVEL} if task == "parquet-zstd" else {"compression": "snappy"}
    with pq.ParquetWriter(out, batches.schema, **codec) as writer:
        # A batch of the CSV reader is a block of text; row groups of so few rows would be no product of worth.
        waiting, rows = [], 0
        for batch in batches:
            waiting.append(batch)
            rows += batch.num_rows
            if rows >= 1 << 20:
                writer.write_table(pa.Table.from_batches(waiting))
                waiting, rows = [], 0
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting))


def check(task, source, out, column):
    """Rows, and what a sum over each number and the lengths of each text say, of IN and OUT, by DuckDB."""
    import duckdb

    kind = "csv" if task == "parquet-csv" else "json" if task == "parquet-jsonl" else "parquet"
    target = f"{out}/**/*.parquet" if task == "partition" else out
    reads = {
        "csv": f"read_csv('{target}', all_varchar = true)",
        "json": f"read_json('{target}', format = 'newline_delimited')",
        "parquet": f"read_parquet('{target}'" + (", hive_partitioning = true)" if task == "partition" else ")"),
    }
    connection = duckdb.connect()
    columns = connection.execute(f"DESCRIBE SELECT * FROM read_parquet('{source}')").fetchall()

    def total(name, type_):
        name = f'"{name}"'
        if type_ == "VARCHAR":
            # A CSV has one word for an empty string and for a null, and the writers differ in which it is.
            return f"coalesce(sum(strlen(CAST({name} AS VARCHAR))), 0)"
        if type_.startswith("TIMESTAMP"):
            return f"sum(epoch_us(CAST({name} AS TIMESTAMP)))"
        if type_ == "DOUBLE":
            return f"round(sum(CAST({name} AS DOUBLE)), 0)"
        return f"sum(CAST({name} AS BIGINT))"

    sums = ", ".join(["count(*)"] + [total(name, type_) for name, type_, *_ in columns])
    want = connection.execute(f"SELECT {sums} FROM read_parquet('{source}')").fetchone()
    got = connection.execute(f"SELECT {sums} FROM {reads[kind]}").fetchone()
    if want != got:
        differing = [name for (name, *_), w, g in zip(columns, want[1:], got[1:]) if w != g]
        raise ValueError(f"{got[0]} rows, not {want[0]}; other values in {', '.join(differing) or 'no column'}")
    if task == "sort":
        unsorted = connection.execute(
            f'SELECT count(*) FROM (SELECT "{column}" AS v, lag("{column}") OVER (ORDER BY file_row_number) AS before'
            f" FROM read_parquet('{target}', file_row_number = true)) WHERE before > v"
        ).fetchone()[0]
        if unsorted:
            raise ValueError(f"{unsorted} rows are out of order")
    print(got[0])


def version(name):
    module = __import__(name)
    print(getattr(module, "__version__", "?"))


def main():
    name, task, *rest = sys.argv[1:]
    if task == "version":
        version(name)
        return
    source, out = rest[:2]
    column = rest[2] if len(rest) > 2 else None
    {"duckdb": duckdb, "polars": polars, "pyarrow": pyarrow, "check": check}[name](task, source, out, column)


if __name__ == "__main__":
    main()
