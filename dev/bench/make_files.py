#!/usr/bin/env python3
"""Writes the files that the reading benchmark reads: one column a file, the same bytes on every machine.

    make_files.py OUT [--scale 0.05]              the comparison's files, and OUT/cases.json
    make_files.py OUT [--scale 0.05] --table      a mixed table of 1 and of 10 million rows for the text benchmark, and OUT/tables.json

cases.json lists what was written, in the order of the report:
`{"scale", "pyarrow", "cases": [{"name", "file", "type", "rows", "nulls", "sum", "products"}]}`.

`sum` is what a contestant must find when it is asked to prove that it read everything: the sum, modulo 2^64, of all values that are
not null, a value being its 64 bits (INT32: sign-extended; FLOAT and BOOLEAN: zeros before theirs), or the first eight bytes of a string,
little-endian.
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
NULL_PARTS = {"random": 0.1, "clustered": 0.1, "half": 0.5}
NULL_RUN_ROWS = 1_000  # clustered nulls come in runs of this many rows

MILLION = 1_000_000
ROWS = {type_: 20 * MILLION for type_ in ["int32", "int64", "float", "double", "boolean", "string8"]}
ROWS |= {"fixed16": 10 * MILLION, "string80": 5 * MILLION}
ROWS_SLOW_CODEC = 10 * MILLION  # GZIP and ZSTD: their time is the codec's

ARROW = {"int32": pa.int32(), "int64": pa.int64(), "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_()}
ARROW |= {"fixed16": pa.binary(16), "string8": pa.string(), "string80": pa.string()}
WIDTHS = {"fixed16": 16, "string8": 8, "string80": 80}  # of the types whose values are byte strings


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
    yield case("int64", "PLAIN", "UNCOMPRESSED", nulls="half")
    yield case("int64", "RLE_DICTIONARY", "SNAPPY", nulls="half")
    yield case("double", "PLAIN", "SNAPPY", nulls="half")
    for encoding in ["PLAIN", "BYTE_STREAM_SPLIT"]:
        yield case("float", encoding, "UNCOMPRESSED")
    for encoding in ["PLAIN", "RLE"]:
        yield case("boolean", encoding, "UNCOMPRESSED")
    for encoding in ["PLAIN", "RLE_DICTIONARY", "BYTE_STREAM_SPLIT"]:
        yield case("fixed16", encoding, "UNCOMPRESSED")
    yield case("fixed16", "PLAIN", "SNAPPY")
    for encoding in ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]:
        yield case("string8", encoding, "UNCOMPRESSED")
        yield case("string80", encoding, "UNCOMPRESSED")
    for type_ in ["int64", "string8", "string80"]:
        yield case(type_, "PLAIN", "LZ4_RAW")
    for level in [1, 9, 19]:
        yield case("int64", "PLAIN", "ZSTD", level=level)
        yield case("string80", "PLAIN", "ZSTD", level=level)


def case(type_, encoding, codec, nulls="none", page="V1", level=None, products=("dense", "arrow")):
    words = [type_, encoding, codec]
    words += [f"level-{level}"] if level is not None else []
    words += [f"nulls-{nulls}"] if nulls != "none" else []
    words += [page] if page != "V1" else []
    name = " ".join(words)
    return {
        "name": name,
        "file": name.replace(" ", "-").lower() + ".parquet",
        "type": type_,
        "encoding": encoding,
        "codec": codec,
        "level": level,
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
    """Random text of one width, or random bytes, as an array of (rows, width) bytes."""
    if type_ == "fixed16":
        return rng.integers(0, 256, (rows, 16), dtype=np.uint8)
    if type_ == "string8":
        return ascii_digits(rng.integers(0, 10**8, rows), 8)
    tokens = ascii_digits(np.random.default_rng(7).integers(0, 10**8, STRING80_TOKENS), 8)
    return tokens[rng.integers(0, STRING80_TOKENS, rows * 10)].reshape(rows, 80)


def values(rng, item, rows):
    """One row group's values as a numpy array: integers, numbers with a fraction, booleans, or (rows, width) bytes."""
    type_ = item["type"]
    if item["encoding"] == "RLE_DICTIONARY":
        fixed = np.random.default_rng(11)
        if type_ in WIDTHS:
            distinct = string_bytes(fixed, type_, DISTINCT)
        else:
            distinct = fixed.integers(0, INT_VALUES, DISTINCT)
        return distinct[rng.integers(0, DISTINCT, rows)]
    if item["encoding"] == "DELTA_BINARY_PACKED":
        return np.cumsum(rng.integers(-100, 101, rows))
    if item["encoding"] == "DELTA_BYTE_ARRAY":
        # In order, so that a string begins as the one before.
        width = WIDTHS[type_]
        return np.sort(string_bytes(rng, type_, rows).view(f"S{width}"), axis=0).view(np.uint8).reshape(rows, width)
    if type_ in WIDTHS:
        return string_bytes(rng, type_, rows)
    if type_ in ("float", "double"):
        return rng.normal(size=rows).astype(np.float32 if type_ == "float" else np.float64)
    if type_ == "boolean":
        return rng.random(rows) < 0.3
    common = np.random.default_rng(5).integers(0, INT_VALUES, COMMON_INTS)
    return np.where(rng.random(rows) < 0.5, common[rng.integers(0, COMMON_INTS, rows)], rng.integers(0, INT_VALUES, rows))


def null_mask(rng, kind, rows):
    """True where a row is null; None for a required column."""
    if kind == "none":
        return None
    if kind != "clustered":
        return rng.random(rows) < NULL_PARTS[kind]
    runs = rng.random(rows // NULL_RUN_ROWS + 1) < NULL_PARTS[kind]
    return np.repeat(runs, NULL_RUN_ROWS)[:rows]


def arrow_array(item, data, mask):
    if item["type"] not in WIDTHS:
        return pa.array(data.astype(ARROW[item["type"]].to_pandas_dtype()), mask=mask)
    rows, width = data.shape
    if item["type"] == "fixed16":
        return pa.Array.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(np.ascontiguousarray(data))])
    offsets = np.arange(0, (rows + 1) * width, width, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))])


def sum_of(data, mask):
    """The proof of reading, as the module's text defines it."""
    if data.dtype == np.uint8:
        data = np.ascontiguousarray(data[:, :8])
    if data.dtype == np.float32:
        data = data.view(np.uint32).astype(np.uint64)
    if data.dtype == np.bool_:
        data = data.astype(np.uint64)
    bits = data.view(np.uint64).reshape(-1)
    return int(bits.sum(dtype=np.uint64) if mask is None else bits[~mask].sum(dtype=np.uint64))


def write(item, out, scale):
    print(f"writing {item['file']}", file=sys.stderr, flush=True)
    slow = item["codec"] in ("GZIP", "ZSTD")
    rows = int((ROWS_SLOW_CODEC if slow else ROWS[item["type"]]) * scale)
    schema = pa.schema([pa.field("v", ARROW[item["type"]], nullable=item["nulls"] != "none")])
    options = {
        "compression": {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}.get(item["codec"], item["codec"]),
        "compression_level": item["level"],
        "data_page_version": "2.0" if item["page"] == "V2" else "1.0",
        "use_dictionary": item["encoding"] == "RLE_DICTIONARY",
    }
    if item["encoding"] not in ("PLAIN", "RLE_DICTIONARY"):
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
        make(out, "tables", "tables", stamp, lambda: tables(out, arguments.scale))
    else:
        make(out, "cases", "cases", stamp, lambda: (write(item, out, arguments.scale) for item in cases()))


def make(out, name, what, stamp, written):
    """Writes the files and their listing, `what` of NAME.json, unless they are there."""
    listing = out / f"{name}.json"
    if listing.exists():
        old = json.loads(listing.read_text())
        same = all(old.get(key) == value for key, value in stamp.items())
        if same and all((out / item["file"]).exists() for item in old[what]):
            return
        listing.unlink()
    listing.write_text(json.dumps({**stamp, what: list(written())}, indent=1) + "\n")


if __name__ == "__main__":
    main()
