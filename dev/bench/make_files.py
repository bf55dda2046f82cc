#!/usr/bin/env python3
"""Writes the files that the reading benchmark reads: one column a file, the same bytes on every machine.

    make_files.py OUT [--scale 0.05]              the comparison's files, and OUT/cases.json
    make_files.py OUT [--scale 0.05] --table      a mixed table of 1 and of 10 million rows for the text benchmark, and OUT/tables.json

cases.json lists what was written, in the order of the report:
`{"scale", "pyarrow", "cases": [{"name", "file", "type", "rows", "nulls", "sum", "products"}]}`.

`sum` is what a contestant must find when it is asked to prove that it read everything: the sum, modulo 2^64, of all values that are
not null, a value being its 64 bits (INT32: sign-extended), or the first eight bytes of a string, little-endian.
A directory that already holds the same cases, written by the same program, is left as it is.
"""

import argparse
import hashlib
import json
import pathlib
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP_ROWS = 1_000_000
DISTINCT = 1_000  # of the dictionary-encoded columns: an index is ten bits
INT_VALUES = 1 << 20
COMMON_INTS = 256  # every second integer is one of these, so that a block codec finds something
STRING80_TOKENS = 4_096  # likewise; an 80-byte string is ten tokens of eight bytes
NULL_PART = 0.1
NULL_RUN_ROWS = 1_000  # clustered nulls come in runs of this many rows

MILLION = 1_000_000
ROWS = {"int32": 20 * MILLION, "int64": 20 * MILLION, "double": 20 * MILLION, "string8": 20 * MILLION, "string80": 5 * MILLION}
ROWS_SLOW_CODEC = 10 * MILLION  # GZIP and ZSTD: their time is the codec's

ARROW = {"int32": pa.int32(), "int64": pa.int64(), "double": pa.float64(), "string8": pa.string(), "string80": pa.string()}


def cases():
    """Every case in the order of the report."""
    both = ["dense", "arrow"]
    for type_ in ["int32", "int64", "string8", "string80"]:
        for encoding in ["PLAIN", "RLE_DICTIONARY"]:
            for codec in ["UNCOMPRESSED", "SNAPPY"]:
                kept = ["dictionary"] if encoding == "RLE_DICTIONARY" and type_.startswith("string") else []
                yield case(type_, encoding, codec, products=both + kept)
    yield case("int64", "PLAIN", "UNCOMPRESSED", nulls="random")
    yield case("int64", "PLAIN", "UNCOMPRESSED", nulls="clustered")
    yield case("int64", "RLE_DICTIONARY", "SNAPPY", nulls="random")
    yield case("int32", "DELTA_BINARY_PACKED", "UNCOMPRESSED")
    yield case("int64", "DELTA_BINARY_PACKED", "UNCOMPRESSED")
    yield case("double", "BYTE_STREAM_SPLIT", "UNCOMPRESSED")
    for codec in ["GZIP", "ZSTD"]:
        yield case("int64", "PLAIN", codec)
        yield case("string8", "PLAIN", codec)
    yield case("int64", "PLAIN", "SNAPPY", page="V2")
    yield case("int64", "PLAIN", "UNCOMPRESSED", nulls="random", page="V2")


def case(type_, encoding, codec, nulls="none", page="V1", products=("dense", "arrow")):
    words = [type_, encoding, codec]
    words += [f"nulls-{nulls}"] if nulls != "none" else []
    words += [page] if page != "V1" else []
    name = " ".join(words)
    return {
        "name": name,
        "file": name.replace(" ", "-").lower() + ".parquet",
        "type": type_,
        "encoding": encoding,
        "codec": codec,
        "nulls": nulls,
        "page": page,
        "products": list(products),
    }


def ascii_digits(numbers, digits):
    """Each number as that many decimal digits, zero-padded: an array of (n, digits) bytes."""
    out = np.empty((len(numbers), digits), dtype=np.uint8)
    for place in range(digits):
        out[:, digits - 1 - place] = 48 + numbers % 10
        numbers = numbers // 10
    return out


def string_bytes(rng, type_, rows):
    """Fixed-width random text as an array of (rows, width) bytes."""
    if type_ == "string8":
        return ascii_digits(rng.integers(0, 10**8, rows), 8)
    tokens = ascii_digits(np.random.default_rng(7).integers(0, 10**8, STRING80_TOKENS), 8)
    return tokens[rng.integers(0, STRING80_TOKENS, rows * 10)].reshape(rows, 80)


def values(rng, item, rows):
    """One row group's values as a numpy array: integers, doubles, or (rows, width) bytes."""
    type_ = item["type"]
    if item["encoding"] == "RLE_DICTIONARY":
        fixed = np.random.default_rng(11)
        if type_.startswith("string"):
            distinct = string_bytes(fixed, type_, DISTINCT)
        else:
            distinct = fixed.integers(0, INT_VALUES, DISTINCT)
        return distinct[rng.integers(0, DISTINCT, rows)]
    if item["encoding"] == "DELTA_BINARY_PACKED":
        return np.cumsum(rng.integers(-100, 101, rows))
    if type_.startswith("string"):
        return string_bytes(rng, type_, rows)
    if type_ == "double":
        return rng.normal(size=rows)
    common = np.random.default_rng(5).integers(0, INT_VALUES, COMMON_INTS)
    return np.where(rng.random(rows) < 0.5, common[rng.integers(0, COMMON_INTS, rows)], rng.integers(0, INT_VALUES, rows))


def null_mask(rng, kind, rows):
    """True where a row is null; None for a required column."""
    if kind == "none":
        return None
    if kind == "random":
        return rng.random(rows) < NULL_PART
    runs = rng.random(rows // NULL_RUN_ROWS + 1) < NULL_PART
    return np.repeat(runs, NULL_RUN_ROWS)[:rows]


def arrow_array(item, data, mask):
    if not item["type"].startswith("string"):
        return pa.array(data.astype(ARROW[item["type"]].to_pandas_dtype()), mask=mask)
    rows, width = data.shape
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))])


def sum_of(data, mask):
    """The proof of reading, as the module's text defines it."""
    if data.dtype == np.uint8:
        data = np.ascontiguousarray(data[:, :8])
    bits = data.view(np.uint64).reshape(-1)
    return int(bits.sum(dtype=np.uint64) if mask is None else bits[~mask].sum(dtype=np.uint64))


def write(item, out, scale):
    print(f"writing {item['file']}", file=sys.stderr, flush=True)
    slow = item["codec"] in ("GZIP", "ZSTD")
    rows = int((ROWS_SLOW_CODEC if slow else ROWS[item["type"]]) * scale)
    schema = pa.schema([pa.field("v", ARROW[item["type"]], nullable=item["nulls"] != "none")])
    options = {
        "compression": "NONE" if item["codec"] == "UNCOMPRESSED" else item["codec"],
        "data_page_version": "2.0" if item["page"] == "V2" else "1.0",
        "use_dictionary": item["encoding"] == "RLE_DICTIONARY",
    }
    if item["encoding"] in ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"):
        options["column_encoding"] = {"v": item["encoding"]}
    seed = int.from_bytes(hashlib.sha256(item["type"].encode()).digest()[:4], "little")
    total, nulls = 0, 0
    temporary = out / (item["file"] + ".tmp")
    with pq.ParquetWriter(temporary, schema, **options) as writer:
        for group, start in enumerate(range(0, rows, ROW_GROUP_ROWS)):
            rng = np.random.default_rng([seed, group])
            count = min(ROW_GROUP_ROWS, rows - start)
            data = values(rng, item, count)
            mask = null_mask(rng, item["nulls"], count)
            total = (total + sum_of(data, mask)) % 2**64
            nulls += 0 if mask is None else int(mask.sum())
            table = pa.table([arrow_array(item, data, mask)], schema=schema)
            writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
    column = pq.ParquetFile(temporary).metadata.row_group(0).column(0)
    if item["encoding"] not in column.encodings:
        sys.exit(f"{item['name']}: pyarrow wrote {column.encodings} instead")
    temporary.rename(out / item["file"])
    return {**item, "rows": rows, "null_rows": nulls, "sum": total, "bytes": (out / item["file"]).stat().st_size}


def tables(out, scale):
    """The mixed table, twice: the second has ten times the rows of the first, in row groups of the same size."""
    for millions in [1, 10]:
        rows = int(millions * MILLION * scale)
        name = f"table-{millions}m.parquet"
        print(f"writing {name}", file=sys.stderr, flush=True)
        group_rows = int(MILLION * scale)
        with pq.ParquetWriter(out / (name + ".tmp"), table_group(0, 0).schema) as writer:
            for start in range(0, rows, group_rows):
                writer.write_table(table_group(start, min(group_rows, rows - start)), row_group_size=group_rows)
        (out / (name + ".tmp")).rename(out / name)
        yield {"file": name, "rows": rows}


def table_group(start, rows):
    """Rows of something like taxi trips: numbers, times, doubles with few digits, words, nulls."""
    rng = np.random.default_rng([23, start])
    words = np.array(["cash", "credit card", "disputed", "driver's account", "no charge", "unknown — “?”"], dtype=object)
    notes = np.array([f"note {number:05}, it's long enough to be text" for number in range(5_000)], dtype=object)
    picked_up_ms = 1_700_000_000_000 + np.cumsum(rng.integers(0, 2_000, rows))
    few = lambda values: np.round(values, 2)  # noqa: E731
    columns = {
        "id": pa.array(np.arange(start, start + rows)),
        "picked_up": pa.array(picked_up_ms, pa.timestamp("ms", tz="UTC")),
        "day": pa.array((picked_up_ms // 86_400_000).astype(np.int32), pa.int32()).cast(pa.date32()),
        "passengers": pa.array(rng.integers(1, 7, rows).astype(np.int32), mask=rng.random(rows) < 0.05),
        "distance_km": pa.array(few(rng.exponential(5.0, rows))),
        "fare": pa.array(few(rng.gamma(3.0, 6.0, rows)), mask=rng.random(rows) < 0.01),
        "latitude": pa.array(rng.normal(40.7, 0.05, rows)),
        "shared": pa.array(rng.random(rows) < 0.2),
        "payment": pa.array(words[rng.integers(0, len(words), rows)], pa.string()),
        "note": pa.array(notes[rng.integers(0, len(notes), rows)], pa.string(), mask=rng.random(rows) < 0.5),
    }
    return pa.table(columns)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the rows, for a quick look")
    parser.add_argument("--table", action="store_true", help="the text benchmark's table instead")
    arguments = parser.parse_args()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    program = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    stamp = {"program": program, "scale": arguments.scale, "pyarrow": pa.__version__}
    if arguments.table:
        make(out, "tables", stamp, lambda: tables(out, arguments.scale))
    else:
        make(out, "cases", stamp, lambda: (write(item, out, arguments.scale) for item in cases()))


def make(out, what, stamp, written):
    """Writes the files and their listing, unless they are there."""
    listing = out / f"{what}.json"
    if listing.exists():
        old = json.loads(listing.read_text())
        same = all(old.get(key) == value for key, value in stamp.items())
        if same and all((out / item["file"]).exists() for item in old[what]):
            return
        listing.unlink()
    listing.write_text(json.dumps({**stamp, what: list(written())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
