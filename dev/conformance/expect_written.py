#!/usr/bin/env python3
"""What DuckDB, Polars and fastparquet read from files, held against what pyarrow reads from them.

    expect_written.py OUT.json FILE...     one JSON array, one entry a file, in the order given
    expect_written.py OUT.json @LIST       the same; LIST holds one path a line

Entry: {"file", "columns": {reader: columns that were compared}, "wrong": [text...]}. Values are compared as Python has them: times cut to
microseconds, for not every reader has finer ones; bytes and text alike; NaN equal to NaN.

What a reader does not read, whoever wrote it, is named in `cannot_read`, and is left out there.
"""

import itertools
import math
import os
import sys

import duckdb
import fastparquet
import polars as pl
import pyarrow.parquet as pq

from expect import main, one_line
from plain import plain


def cannot_read(reader, column, kind, encodings, codec, is_v2, is_mixed, is_paged, values):
    """Why a column is left out, or None. What a reader says is an error of its own; the rest comes out wrong without a word."""
    match reader:
        case "duckdb" if kind == "FIXED_LEN_BYTE_ARRAY" and "BYTE_STREAM_SPLIT" in encodings:
            return "DuckDB 2.0 says so"
        case "polars" if kind == "FIXED_LEN_BYTE_ARRAY" and encodings & {"BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"}:
            return "Polars 2.1 says so"
        case "polars" if kind == "BOOLEAN" and "_map_" in column:
            return "of a map's equal keys it keeps the last, and there are only two booleans"
        case "polars" if "BYTE_STREAM_SPLIT" in encodings and column.count("_") == 4:
            return "it panics at some short pages of what is nested three deep, in files by pyarrow, too"
        case "fastparquet":
            is_nullable = not column.endswith("_required")
            return not_by_fastparquet(column, kind, encodings, codec, is_v2, is_mixed, is_paged, is_nullable, values)
    return None


def not_by_fastparquet(column, kind, encodings, codec, is_v2, is_mixed, is_paged, is_nullable, values):
    """The same of fastparquet 2026.9."""
    is_delta = "DELTA_BINARY_PACKED" in encodings
    # RLE of levels is no encoding of values, but of booleans.
    is_rle = kind == "BOOLEAN" and "PLAIN" not in encodings
    if not column.endswith(("_required", "_optional")):
        return "it reads structs and lists of lists as columns of other names, if at all"
    if encodings & {"BYTE_STREAM_SPLIT", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"}:
        return "it says so"
    if codec == "LZ4":
        return "it takes the deprecated LZ4 for bare blocks, and says that they are invalid"
    if is_mixed and is_nullable and kind in ("INT32", "INT64"):
        return "in a file with structs it takes the counts of nulls of other columns, and fails where there are none"
    if is_v2 and is_nullable and kind in ("INT32", "INT64", "BOOLEAN") and (is_paged or is_delta or is_rle):
        return "it fails to put nulls of several pages of V2 together, and says that it has no deltas and runs with nulls there"
    if is_v2 and kind == "INT64" and is_delta:
        return "it takes them for INT32 in pages of V2"
    if is_delta and is_wide(values):
        return "it unpacks deltas of 29 bits and more wrongly, and dies of those of 57 and more"
    if not is_v2 and is_rle:
        return "in pages of V1 it takes the length of the runs for a part of them"
    if kind == "FIXED_LEN_BYTE_ARRAY":
        return "it strips zeros from the ends of values"
    return None


def is_wide(values):
    """Whether deltas may be packed in 29 bits or more, wherever blocks begin."""
    there = [value for value in values if value is not None]
    deltas = [after - before for before, after in itertools.pairwise(there)]
    return bool(deltas) and max(deltas) - min(deltas) >= 1 << 28


def expect_file(path):
    """The entry of one file. Never raises: what a reader refuses is wrong."""
    wrong, columns = [], {}
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        table = file.read(use_threads=False)
        expected = {name: plain(table.column(name).to_pylist()) for name in table.column_names}
    except Exception as error:  # what pyarrow refuses is wrong, whatever its type
        return {"file": path, "columns": columns, "wrong": [f"pyarrow: {one_line(error)}"]}
    groups = [file.metadata.row_group(at) for at in range(file.metadata.num_row_groups)]
    chunks = [group.column(at) for group in groups for at in range(file.metadata.num_columns)]
    name = os.path.basename(path)
    # pyarrow has one name for both kinds of LZ4.
    codec = name.split("-")[1]
    is_v2, is_mixed = "-V2-" in name, name.startswith("all-")
    # Only files of one type are written in short pages.
    is_paged = not name.startswith(("all-", "flat-"))
    # All leaves of a field are of one type: maps have keys like their values.
    kinds = {}
    for chunk in chunks:
        field = chunk.path_in_schema.split(".")[0]
        _, encodings = kinds.get(field, (None, set()))
        kinds[field] = (chunk.physical_type, encodings | set(chunk.encodings))
    for reader in (with_duckdb, with_polars, with_fastparquet):
        name = reader.__name__.removeprefix("with_")
        columns[name] = 0
        how = (codec, is_v2, is_mixed, is_paged)
        wanted = [column for column, values in expected.items() if cannot_read(name, column, *kinds[column], *how, values) is None]
        if not wanted:
            continue
        try:
            for column, values in reader(path, wanted):
                columns[name] += 1
                found = plain(values)
                if found != expected[column]:
                    at = next((at for at, pair in enumerate(zip(found, expected[column])) if pair[0] != pair[1]), len(found))
                    wrong.append(f"{name}: column {column}, {len(found)} rows of {len(expected[column])}: row {at} is "
                                 f"{found[at:at + 1]}, not {expected[column][at:at + 1]}")  # fmt: skip
        except (Exception, pl.exceptions.PanicException) as error:  # the same
            wrong.append(f"{name}: {one_line(error)}")
    return {"file": path, "columns": columns, "wrong": wrong}


def with_duckdb(path, columns):
    with duckdb.connect(config={"threads": 1}) as connection:
        file, names = path.replace("'", "''"), ", ".join(f'"{column}"' for column in columns)
        table = connection.sql(f"SELECT {names} FROM read_parquet('{file}')").to_arrow_table()
        for column in columns:
            yield column, table.column(column).to_pylist()


def with_polars(path, columns):
    table = pl.read_parquet(path, columns=columns, use_pyarrow=False, parallel="none")
    for column in columns:
        # Not Python's lists: Polars makes dictionaries of some maps, which have each key once.
        yield column, table.get_column(column).to_arrow().to_pylist()


def with_fastparquet(path, columns):
    file = fastparquet.ParquetFile(path)
    for column in columns:
        values = file.to_pandas(columns=[column])[column].tolist()
        # pandas has no other null for numbers; those written have no NaN.
        yield column, [None if isinstance(value, float) and math.isnan(value) else value for value in values]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], expect_file, __doc__))
