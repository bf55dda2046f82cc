"""Whether CSV and JSON lines have the rows of a Parquet file, through pyarrow's and Python's eyes.

text_out.py make FILE: a Parquet file of awkward texts, numbers, times and nulls.
text_out.py check FILE CSV JSONL: whether both have the same values.
"""

import json
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

AWKWARD = ["plain", "", "a,b", 'say "hi"', '"', "two\nlines", "cr\r\nlf", " spaces ", "NULL", "nan", "東京 😀", None]


def make(path):
    rows = 5000
    pick = lambda values: [values[row * 7 % len(values)] for row in range(rows)]
    table = pa.table({
        "id": pa.array(range(rows), pa.int64()),
        "text": pa.array(pick(AWKWARD), pa.string()),
        "n,\"o\"": pa.array(pick([0, 1, -1, None, 2**63 - 1, -2**63]), pa.int64()),
        "float": pa.array(pick([0.0, -0.0, 0.1, None, 5e-324, 1.7976931348623157e308, 1e22]), pa.float64()),
        "flag": pa.array(pick([True, None, False]), pa.bool_()),
        "at": pa.array(pick([0, None, 1, -1, 253402300799999999]), pa.timestamp("us")),
        "day": pa.array(pick([0, None, -719162, 2932896]), pa.date32()),
    })
    pq.write_table(table, path, row_group_size=999)


def check(path, csv, jsonl):
    table = pq.read_table(path)
    convert = pa.csv.ConvertOptions(
        column_types=table.schema,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=["true"],
        false_values=["false"],
    )
    parse = pa.csv.ParseOptions(newlines_in_values=True)
    read = pa.csv.read_csv(csv, convert_options=convert, parse_options=parse)
    assert read.schema.equals(table.schema), read.schema
    bits = lambda value: value.hex() if isinstance(value, float) else value
    for name in table.column_names:
        want, got = table[name].to_pylist(), read[name].to_pylist()
        for row, (one, other) in enumerate(zip(want, got, strict=True)):
            assert bits(one) == bits(other), f"{csv}: {name}, row {row}: {one!r}, {other!r}"
    with open(jsonl, encoding="utf-8", newline="\n") as lines:
        for row, (want, line) in enumerate(zip(table.to_pylist(), lines, strict=True)):
            got = json.loads(line)
            assert list(got) == table.column_names, line
            for name in table.column_names:
                one = want[name]
                if name == "at" and one is not None:
                    one = one.isoformat(timespec="microseconds")
                elif name == "day" and one is not None:
                    one = one.isoformat()
                assert bits(one) == bits(got[name]), f"{jsonl}: {name}, row {row}: {one!r}, {got[name]!r}"


{"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])
