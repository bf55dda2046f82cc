#!/usr/bin/env python3
"""Compares a Parquet file with the delimited text that it was made of: compare_text.py TEXT PARQUET DELIMITER

The text is read by Python's csv module, the file by pyarrow and by DuckDB.
"""

import csv
import sys

import duckdb
import pyarrow.parquet as pq


def same(field, value):
    if field == "":
        return value is None
    if isinstance(value, str):
        return value == field
    if isinstance(value, int):
        return str(value) == field
    return value == float(field)


def main():
    text, parquet, delimiter = sys.argv[1:]
    with open(text, newline="", encoding="utf-8") as file:
        expected = list(csv.reader(file, delimiter=delimiter, quoting=csv.QUOTE_NONE))
    columns = [column.to_pylist() for column in pq.read_table(parquet).columns]
    by_pyarrow = list(zip(*columns))
    by_duckdb = duckdb.sql(f"SELECT * FROM read_parquet('{parquet}')").fetchall()
    for name, rows in [("pyarrow", by_pyarrow), ("DuckDB", by_duckdb)]:
        assert len(rows) == len(expected), (name, len(rows), len(expected))
        for number, (fields, row) in enumerate(zip(expected, rows)):
            assert len(fields) == len(row), (name, number)
            for field, value in zip(fields, row):
                assert same(field, value), (name, number, field, value)


if __name__ == "__main__":
    main()
