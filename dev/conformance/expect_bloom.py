#!/usr/bin/env python3
"""What DuckDB finds by the Bloom filters of files, and what pyarrow tells of them.

    expect_bloom.py OUT.json FILE...     one JSON array, one entry a file, in the order given

Columns are flat, and named after their types: int32, int64, float, double, bytes (text). Entry: {"file", "chunks", "filters": chunks
that have one, by pyarrow where it tells, "present": values that were looked for in a row group that has them, "missed": those that DuckDB would pass
over, "absent": values that were looked for in a row group that has them not, "found": those that DuckDB would look for}.
"""

import json
import sys

import duckdb
import pyarrow.parquet as pq

# Different values of a chunk that are looked for, and others.
VALUES_MAX = 20

TYPES = {"int32": "INTEGER", "int64": "BIGINT", "float": "FLOAT", "double": "DOUBLE", "bytes": "VARCHAR"}


def literal(value, kind):
    text = repr(value) if isinstance(value, float) else str(value)
    return "'" + text.replace("'", "''") + f"'::{TYPES[kind]}"


def other(kind, number):
    """A value that no file has."""
    match kind:
        case "int32" | "int64":
            return 1_000_000_007 + 97 * number
        case "float" | "double":
            return -(number + 0.5)
        case _:
            return f"nobody wrote this {number}"


def excluded(connection, path, column, value, kind):
    """Whether each row group is passed over."""
    query = f"SELECT row_group_id, bloom_filter_excludes FROM parquet_bloom_probe('{path}', '{column}', {literal(value, kind)})"
    return dict(connection.execute(query).fetchall())


def expect_file(connection, path):
    file = pq.ParquetFile(path)
    metadata = file.metadata
    entry = {"file": path, "chunks": metadata.num_row_groups * metadata.num_columns, "filters": 0}
    entry |= {"present": 0, "missed": 0, "absent": 0, "found": 0}
    told = connection.execute(f"SELECT count(bloom_filter_offset), min(bloom_filter_length) FROM parquet_metadata('{path}')").fetchone()
    entry["filters"] = told[0] if told[1] > 32 else 0
    for at, column in enumerate(file.schema_arrow.names):
        kind = column.split("_")[0]
        groups = [set(file.read_row_group(group, columns=[column]).column(0).to_pylist()) - {None} for group in range(metadata.num_row_groups)]
        for group, values in enumerate(groups):
            for value in sorted(values)[:VALUES_MAX]:
                entry["present"] += 1
                entry["missed"] += excluded(connection, path, column, value, kind)[group]
        for number in range(VALUES_MAX):
            passed = excluded(connection, path, column, other(kind, number + 1000 * at), kind)
            entry["absent"] += len(passed)
            entry["found"] += len(passed) - sum(passed.values())
    return entry


def main(arguments):
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    connection = duckdb.connect()
    entries = [expect_file(connection, path) for path in arguments[1:]]
    with open(arguments[0], "w", encoding="utf-8") as out:
        json.dump(entries, out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
