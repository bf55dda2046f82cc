#!/usr/bin/env python3
"""Writes the nested files that the reading benchmark reads, and the tables that are printed as JSON lines.

    make_nested.py OUT [--scale 0.05]        the files, and OUT/nested.json, which is as OUT/cases.json of make_files.py

The `sum` of a table is the sum, modulo 2^64, of what is in it: each value that is not null counts as make_files.py says; a list or map that
is not null counts 1 and its elements, each of them 1 more; a struct that is not null counts 1.

The `sum` of a table that is printed is, of its JSON lines: an integer's value, a float's 64 bits, 1 for true, and of strings and of a map's
keys the sum of the decimal digits in them. So it does not matter how times and maps are written.
"""

import argparse
import hashlib
import json
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import make_files
import peers

ROW_GROUP_ROWS = 1_000_000
NULL_PART = 0.1
SPARSE_PART = 0.1  # of the rows of a sparse column, those that have a list
DISTINCT = 1_000
WIDE_LISTS, WIDE_STRUCTS, WIDE_FIELDS = 200, 200, 10

MILLION = 1_000_000


def cases():
    """Every case in the order of the report."""
    plain = {"encoding": "PLAIN", "codec": "UNCOMPRESSED"}
    yield case("list<int64>", short_list(integers), 4 * MILLION, **plain)
    yield case("list<int64>", short_list(integers), 4 * MILLION, encoding="RLE_DICTIONARY", codec="SNAPPY")
    yield case("list<int64>", short_list(integers), 4 * MILLION, encoding="PLAIN", codec="SNAPPY", page="V2")
    yield case("list<int64>", short_list(integers), 2 * MILLION, encoding="PLAIN", codec="ZSTD")
    yield case("list<int64> required", required_list, 4 * MILLION, **plain)
    yield case("list<int64> 1000 elements", long_list, 10_000, **plain)
    yield case("list<int64> 90 % null", sparse_list, 10 * MILLION, **plain)
    yield case("list<string>", short_list(strings), 4 * MILLION, **plain)
    yield case("list<string>", short_list(few_strings), 4 * MILLION, encoding="RLE_DICTIONARY", codec="SNAPPY")
    yield case("list<list<int32>>", short_list(short_list(small_integers)), 2 * MILLION, **plain)
    yield case("list<struct<int64,string>>", short_list(pairs), 2 * MILLION, **plain)
    yield case("map<string,int64>", short_map(integers), 2 * MILLION, **plain)
    yield case("map<string,struct<int64,double>>", short_map(points), 2 * MILLION, **plain)
    yield case("struct 3 deep", deep_struct, 5 * MILLION, **plain)
    yield case("struct 3 deep", deep_struct, 5 * MILLION, encoding="RLE_DICTIONARY", codec="SNAPPY")
    yield case(f"{WIDE_LISTS} lists", wide_lists, 40_000, encoding="PLAIN", codec="SNAPPY")
    yield case(f"{WIDE_STRUCTS * WIDE_FIELDS} leaves in {WIDE_STRUCTS} lists<struct>", wide_structs, 4_000, encoding="PLAIN", codec="SNAPPY")
    yield case("flat table", trips, MILLION, encoding="default", codec="SNAPPY", products=("records",))
    yield case("nested table", events, MILLION // 2, encoding="default", codec="SNAPPY", products=("records",))


def case(what, make, rows, encoding, codec, page="V1", products=("arrow",)):
    words = [what] + ([] if encoding == "default" else [encoding]) + [codec] + ([page] if page != "V1" else [])
    name = " ".join(words)
    file = "nested-" + "".join(c if c.isalnum() else "-" for c in name.lower()) + ".parquet"
    return {"name": name, "file": file, "make": make, "rows": rows, "encoding": encoding, "codec": codec, "page": page, "products": list(products)}


# Columns: functions of a random generator and a number of slots.


def integers(rng, rows):
    return pa.array(rng.integers(0, 1 << 20, rows), mask=nulls(rng, rows))


def small_integers(rng, rows):
    return pa.array(rng.integers(0, 1 << 20, rows).astype(np.int32), mask=nulls(rng, rows))


def doubles(rng, rows):
    return pa.array(np.round(rng.normal(size=rows), 4), mask=nulls(rng, rows))


def strings(rng, rows):
    return text(make_files.string_bytes(rng, "string8", rows), nulls(rng, rows))


def few_strings(rng, rows):
    distinct = make_files.string_bytes(np.random.default_rng(11), "string8", DISTINCT)
    return text(distinct[rng.integers(0, DISTINCT, rows)], nulls(rng, rows))


def text(data, mask):
    """Text of one width from bytes; the null ones are of no bytes."""
    rows, width = data.shape
    there = np.ones(rows, dtype=bool) if mask is None else ~mask
    offsets = np.concatenate([[0], np.cumsum(np.where(there, width, 0))]).astype(np.int32)
    validity = None if mask is None else bits(there)
    return pa.Array.from_buffers(pa.string(), rows, [validity, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data[there]))])


def nulls(rng, rows):
    return rng.random(rows) < NULL_PART


def bits(there):
    return pa.py_buffer(np.packbits(there, bitorder="little"))


def lists(rng, lengths, mask, element):
    """Lists of those lengths; the null ones have no elements."""
    if mask is not None:
        lengths = np.where(mask, 0, lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = element(rng, int(offsets[-1]))
    validity = None if mask is None else bits(~mask)
    type_ = pa.list_(pa.field("element", values.type))
    return pa.ListArray.from_buffers(type_, len(lengths), [validity, pa.py_buffer(offsets)], children=[values])


def short_list(element):
    return lambda rng, rows: lists(rng, rng.integers(0, 4, rows), nulls(rng, rows), element)


def required_list(rng, rows):
    element = lambda rng, rows: pa.array(rng.integers(0, 1 << 20, rows))  # noqa: E731
    values = lists(rng, rng.integers(0, 4, rows), None, element)
    return values.cast(pa.list_(pa.field("element", pa.int64(), nullable=False)))


def long_list(rng, rows):
    return lists(rng, np.full(rows, 1_000), None, integers)


def sparse_list(rng, rows):
    return lists(rng, rng.integers(0, 4, rows), rng.random(rows) >= SPARSE_PART, integers)


def short_map(value):
    def make(rng, rows):
        mask = nulls(rng, rows)
        lengths = np.where(mask, 0, rng.integers(0, 4, rows))
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        entries = int(offsets[-1])
        keys = text(make_files.string_bytes(rng, "string8", entries), None)
        values = value(rng, entries)
        fields = [pa.field("key", pa.string(), nullable=False), pa.field("value", values.type)]
        pairs = pa.StructArray.from_arrays([keys, values], fields=fields)
        buffers = [bits(~mask), pa.py_buffer(offsets)]
        return pa.MapArray.from_buffers(pa.map_(pa.string(), values.type), rows, buffers, children=[pairs])

    return make


def struct(rng, rows, **fields):
    arrays = [make(rng, rows) for make in fields.values()]
    return pa.StructArray.from_arrays(arrays, names=list(fields), mask=pa.array(nulls(rng, rows)))


def pairs(rng, rows):
    return struct(rng, rows, number=integers, text=strings)


def points(rng, rows):
    return struct(rng, rows, number=integers, part=doubles)


def deep_struct(rng, rows):
    inner = lambda rng, rows: struct(rng, rows, number=integers, part=doubles)  # noqa: E731
    middle = lambda rng, rows: struct(rng, rows, inner=inner, number=integers)  # noqa: E731
    return struct(rng, rows, middle=middle, number=integers)


# Tables: columns by name.


def wide_lists(rng, rows):
    return {f"list{letters(at)}": short_list(integers)(rng, rows) for at in range(WIDE_LISTS)}


def wide_structs(rng, rows):
    fields = {f"field{letters(at)}": [integers, strings, doubles, small_integers][at % 4] for at in range(WIDE_FIELDS)}
    element = lambda rng, rows: struct(rng, rows, **fields)  # noqa: E731
    return {f"list{letters(at)}": short_list(element)(rng, rows) for at in range(WIDE_STRUCTS)}


def trips(rng, rows):
    return make_files.table_group(0, rows)


def events(rng, rows):
    words = np.array(["click", "scroll", "purchase", "“search”", "sign up\tand in"], dtype=object)
    word = lambda rng, rows: pa.array(words[rng.integers(0, len(words), rows)], pa.string(), mask=nulls(rng, rows))  # noqa: E731
    item = lambda rng, rows: struct(rng, rows, sku=strings, name=word, amount=small_integers, price=doubles)  # noqa: E731
    place = lambda rng, rows: struct(rng, rows, latitude=doubles, longitude=doubles)  # noqa: E731
    return {
        "id": pa.array(np.arange(rows)),
        "kind": word(rng, rows),
        "tags": short_list(word)(rng, rows),
        "numbers": short_list(integers)(rng, rows),
        "items": short_list(item)(rng, rows),
        "counts": short_map(integers)(rng, rows),
        "from": struct(rng, rows, place=place, name=word),
    }


def letters(number):
    """A number in letters, for names in which no digits are to be: `aab`."""
    return "".join(chr(97 + number // 26**place % 26) for place in (2, 1, 0))


def sum_of_lines(table):
    """The sum of a table's JSON lines."""
    return sum(peers.sum_of_json(json.loads(json.dumps(row, default=str))) for row in table.to_pylist()) % 2**64


def write(item, out, scale):
    print(f"writing {item['file']}", file=sys.stderr, flush=True)
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(item["file"].encode()).digest()[:8], "little"))
    rows = max(int(item["rows"] * scale), 1)
    made = item["make"](rng, rows)
    table = made if isinstance(made, pa.Table) else pa.table(made if isinstance(made, dict) else {"v": made})
    options = {
        "compression": "NONE" if item["codec"] == "UNCOMPRESSED" else item["codec"],
        "data_page_version": "2.0" if item["page"] == "V2" else "1.0",
        "use_dictionary": item["encoding"] != "PLAIN",
        "row_group_size": ROW_GROUP_ROWS,
    }
    temporary = out / (item["file"] + ".tmp")
    pq.write_table(table, temporary, **options)
    temporary.rename(out / item["file"])
    total = sum_of_lines(table) if item["products"] == ["records"] else peers.sum_of(table)
    about = {key: value for key, value in item.items() if key != "make"}
    return {**about, "rows": rows, "sum": total % 2**64, "bytes": (out / item["file"]).stat().st_size}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the rows, for a quick look")
    arguments = parser.parse_args()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    programs = b"".join(pathlib.Path(module.__file__).read_bytes() for module in (make_files, peers)) + pathlib.Path(__file__).read_bytes()
    stamp = {"program": hashlib.sha256(programs).hexdigest(), "scale": arguments.scale, "pyarrow": pa.__version__}
    make_files.make(out, "nested", "nested", stamp, lambda: (write(item, out, arguments.scale) for item in cases()))


if __name__ == "__main__":
    main()
