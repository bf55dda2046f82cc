#!/usr/bin/env python3
"""Writes the files that the stall benchmark reads.

    make_stall.py OUT [--mib 64] [--scale 0.25] --list           prints what there is to write
    make_stall.py OUT [--mib 64] [--scale 0.25] --case NAME      one of them

`[{"name", "file", "group", "cost_bar", "memory_mib"}]`. Usual files are those of the reading benchmark, with that part
of its rows, and some of its nested ones. Adversarial ones are what no writer should write: a page of `mib` MiB, a dictionary of a fifth of that, a value of
half of it, and so on. `cost_bar` is the largest multiple of an unlimited reading's time that bounded steps may cost, `memory_mib` the most
memory that a reading may take.
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
import make_nested

MIB = 1 << 20
COST_BARS = {"GZIP": 1.15, "BROTLI": 1.15}
COST_BAR = 1.05
MEMORY_MIB = 64  # where values follow each other in one stream; else the page as well
ROWS_A_CALL = 1 << 20


class Case:
    def __init__(self, name, group, write, **more):
        self.name, self.group, self.write, self.more = name, group, write, more

    def listing(self, stamp):
        # A file of another size or maker has another name.
        version = hashlib.sha256(json.dumps([stamp, self.name]).encode()).hexdigest()[:8]
        plain = "".join(c if c.isalnum() else "-" for c in self.name.lower())
        return {"name": self.name, "group": self.group, "file": f"stall-{plain}-{version}.parquet", **self.more}


def cases(mib, scale):
    yield from usual(scale)
    yield from pages(mib)
    yield from others(mib)


# Usual files.


def usual(scale):
    items = list(make_files.cases())
    items += [make_files.case("int64", "PLAIN", "BROTLI"), make_files.case("string8", "PLAIN", "BROTLI")]
    items.append(make_files.case("string80", "PLAIN", "ZSTD"))
    for item in items:
        yield Case(item["name"], "usual", lambda path, item=item: write_usual(item, path, scale), cost_bar=COST_BARS.get(item["codec"], COST_BAR))
    for item in make_nested.cases():
        if item["products"] == ["arrow"] and not item["name"].startswith("2000"):
            yield Case(item["name"], "usual", lambda path, item=item: write_nested(item, path, scale), cost_bar=COST_BARS.get(item["codec"], COST_BAR))


def write_usual(item, path, scale):
    make_files.write({**item, "file": path.name}, path.parent, scale)


def write_nested(item, path, scale):
    make_nested.write({**item, "file": path.name}, path.parent, scale)


# One page.


def pages(mib):
    codecs = ["UNCOMPRESSED", "SNAPPY", "LZ4_RAW", "ZSTD", "GZIP", "BROTLI"]
    few = ["UNCOMPRESSED", "ZSTD"]
    yield from one_page(mib, "int64", "PLAIN", integers, codecs, one_stream=True)
    yield from one_page(mib, "string", "PLAIN", strings, codecs, one_stream=True)
    yield from one_page(mib, "boolean", "PLAIN", booleans, ["SNAPPY"], one_stream=True, values=8)
    yield from one_page(mib, "boolean", "RLE", booleans, ["UNCOMPRESSED"], one_stream=True, values=8)
    yield from one_page(mib, "fixed[37]", "PLAIN", fixed, few, one_stream=True)
    yield from one_page(mib, "int64", "DELTA_BINARY_PACKED", integers, few, one_stream=True)
    yield from one_page(mib, "int64 of 64 bits", "DELTA_BINARY_PACKED", wide_integers, ["UNCOMPRESSED"], one_stream=True)
    yield from one_page(mib, "string", "DELTA_LENGTH_BYTE_ARRAY", strings, few)
    yield from one_page(mib, "string", "DELTA_BYTE_ARRAY", sorted_strings, few)
    yield from one_page(mib, "double", "BYTE_STREAM_SPLIT", doubles, few)
    yield from one_page(mib, "fixed[37]", "BYTE_STREAM_SPLIT", fixed, ["UNCOMPRESSED"])
    yield from one_page(mib, "int64", "RLE_DICTIONARY", few_integers, few, one_stream=True)
    yield from one_page(mib, "string", "RLE_DICTIONARY", few_strings, few, one_stream=True)
    yield from one_page(mib, "int64 of one value", "RLE_DICTIONARY", one_integer, ["UNCOMPRESSED"], one_stream=True)
    yield from one_page(mib, "int64 nulls", "PLAIN", null_integers, ["UNCOMPRESSED", "SNAPPY"])
    yield from one_page(mib, "int64 nulls V2", "PLAIN", null_integers, ["SNAPPY"], page="2.0", one_stream=True)
    yield from one_page(mib, "int64 all null", "PLAIN", no_integers, ["SNAPPY"])
    yield from one_page(mib, "list<int64>", "PLAIN", lists, ["UNCOMPRESSED", "SNAPPY"])
    yield from one_page(mib, "text of 4-byte characters", "PLAIN", wide_text, few, one_stream=True)
    yield from one_page(mib, "strings of 100 KB", "PLAIN", long_strings, few, one_stream=True)


def one_page(mib, what, encoding, make, codecs, page="1.0", one_stream=False, values=1):
    for codec in codecs:
        memory = MEMORY_MIB + (0 if one_stream else mib)
        write = lambda path, codec=codec: write_page(path, make, mib * values, encoding, codec, page)  # noqa: E731
        piece = {"in_one_piece": "a window that copies refer back in, by 16 MiB at most"} if codec == "BROTLI" else {}
        yield Case(f"a page of {what} {encoding} {codec}", "adversarial", write, memory_mib=memory, **piece)


def write_page(path, make, mib, encoding, codec, page="1.0", dictionary_bytes=MIB):
    """A column chunk of one page, made of slices, so that making it takes not much more memory than the page."""
    compression = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}.get(codec, codec)
    # A page ends where it is larger than this, at the end of a batch.
    options = {"data_page_size": 2**31 - 1, "write_batch_size": ROWS_A_CALL, "compression": compression, "data_page_version": page}
    options |= {"use_dictionary": encoding == "RLE_DICTIONARY", "dictionary_pagesize_limit": dictionary_bytes, "write_statistics": False}
    if compression == "BROTLI":
        options["compression_level"] = 4
    if encoding not in ("PLAIN", "RLE_DICTIONARY"):
        options["column_encoding"] = {"v": encoding}
    rng = np.random.default_rng(17)
    slices = list(make(rng, mib * MIB))
    table = pa.table({"v": pa.chunked_array(slices)})
    # More rows than this a page does not have.
    pq.write_table(table, path, row_group_size=len(table), max_rows_per_page=max(len(table), 1), **options)


def sliced(values_bytes, make):
    """Slices of about a million values of so many bytes each."""

    def slices(rng, total):
        left = total // values_bytes
        while left > 0:
            count = min(left, ROWS_A_CALL)
            yield make(rng, count)
            left -= count

    return slices


COMMON = np.random.default_rng(5).integers(0, 1 << 20, 256)


def some_integers(rng, count):
    return np.where(rng.random(count) < 0.5, COMMON[rng.integers(0, 256, count)], rng.integers(0, 1 << 20, count))


def text_of(rng, count, width):
    data = make_files.ascii_digits(rng.integers(0, 10**8, count * (width // 8)), 8).reshape(count, width)
    return make_nested.text(data, None)


def fixed_array(rng, count):
    return pa.Array.from_buffers(pa.binary(37), count, [None, pa.py_buffer(rng.bytes(37 * count))])


def sorted_array(rng, count):
    numbers = np.sort(rng.integers(0, 10**8, count))
    prefix = np.broadcast_to(np.frombuffer(b"https://example.com/", np.uint8), (count, 20))
    return make_nested.text(np.hstack([prefix, make_files.ascii_digits(numbers, 8)]), None)


def list_array(rng, count):
    lengths = rng.integers(0, 5, max(count // 2, 1))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    nulls = pa.array(rng.random(len(lengths)) < 0.1)
    elements = pa.array(rng.integers(0, 1 << 20, offsets[-1]), mask=rng.random(offsets[-1]) < 0.1)
    return pa.ListArray.from_arrays(pa.array(offsets), elements, mask=nulls)


def wide_text_array(rng, count):
    """Texts of a thousand characters of four bytes each."""
    text = "".join(rng.choice(list("𝄞😀🀄𐍈"), 1000)).encode()
    return make_nested.text(np.tile(np.frombuffer(text, np.uint8), (count, 1)), None)


integers = sliced(8, lambda rng, count: pa.array(some_integers(rng, count)))
wide_integers = sliced(8, lambda rng, count: pa.array(rng.integers(-(2**63), 2**63 - 1, count)))
few_integers = sliced(8, lambda rng, count: pa.array(rng.integers(0, 1000, count)))
one_integer = sliced(8, lambda rng, count: pa.array(np.full(count, 7)))
null_integers = sliced(8, lambda rng, count: pa.array(some_integers(rng, count), mask=rng.random(count) < 0.1))
no_integers = sliced(8, lambda rng, count: pa.nulls(count, pa.int64()))
doubles = sliced(8, lambda rng, count: pa.array(rng.normal(size=count)))
booleans = sliced(8, lambda rng, count: pa.array(rng.random(count) < 0.5))
strings = sliced(12, lambda rng, count: text_of(rng, count, 8))
few_strings = sliced(12, lambda rng, count: make_nested.few_strings(rng, count))
sorted_strings = sliced(32, sorted_array)
fixed = sliced(37, fixed_array)
lists = sliced(8, list_array)
# Slices of fewer, for what a million of them take.
wide_text = lambda rng, total: (wide_text_array(rng, 1000) for _ in range(total // 4_004_000))  # noqa: E731
long_strings = lambda rng, total: (text_of(rng, 100, 100_000) for _ in range(total // 10_000_400))  # noqa: E731


# What is large in another way.


def others(mib):
    part = max(mib // 5, 1)
    yield Case(
        f"a dictionary of {part} MiB of int64",
        "adversarial",
        lambda path: write_page(path, distinct_integers, part, "RLE_DICTIONARY", "UNCOMPRESSED", dictionary_bytes=2**31 - 1),
        memory_mib=MEMORY_MIB + 2 * part,
    )
    yield Case(
        f"a dictionary of {part} MiB of strings",
        "adversarial",
        lambda path: write_page(path, distinct_strings, part, "RLE_DICTIONARY", "SNAPPY", dictionary_bytes=2**31 - 1),
        memory_mib=MEMORY_MIB + 3 * part,
    )
    half = max(mib // 2, 1)
    for encoding, codec in [("PLAIN", "UNCOMPRESSED"), ("PLAIN", "SNAPPY"), ("DELTA_LENGTH_BYTE_ARRAY", "ZSTD"), ("DELTA_BYTE_ARRAY", "UNCOMPRESSED")]:
        write = lambda path, encoding=encoding, codec=codec: write_page(path, one_string, half, encoding, codec)  # noqa: E731
        yield Case(f"one string of {half} MiB {encoding} {codec}", "adversarial", write, memory_mib=MEMORY_MIB + 2 * half, in_one_piece="a value, which is one slice")
    columns = min(100_000, 1_600 * mib)
    of_columns = {"memory_mib": 1024, "in_one_piece": "a batch's list of its columns"}
    yield Case(f"{columns} columns", "adversarial", lambda path: write_columns(path, columns), **of_columns)
    values = min(10_000_000, 10_000 * mib)
    yield Case(f"{values} pages of one value", "adversarial", lambda path: write_small_pages(path, values), memory_mib=MEMORY_MIB)
    groups = min(1_000_000, 1_000 * mib)
    yield Case(f"{groups} empty row groups", "adversarial", lambda path: write_empty_groups(path, groups), memory_mib=1024)


def distinct_integers(rng, total):
    yield pa.array(rng.permutation(total // 8))


def distinct_strings(rng, total):
    # A length and eight bytes each.
    yield make_nested.text(make_files.ascii_digits(rng.permutation(total // 12), 8), None)


def one_string(rng, total):
    yield pa.array([make_files.ascii_digits(rng.integers(0, 10**8, total // 8), 8).tobytes().decode()])


def write_columns(path, columns):
    column = pa.array([1, 2, 3], pa.int32())
    table = pa.table({f"column {number}": column for number in range(columns)})
    pq.write_table(table, path, use_dictionary=False, compression="NONE", store_schema=False)


def write_small_pages(path, values):
    table = pa.table({"v": pa.array(np.arange(values))})
    options = {"data_page_size": 1, "write_batch_size": 1, "use_dictionary": False, "compression": "NONE", "write_statistics": False}
    pq.write_table(table, path, row_group_size=values, **options)


def write_empty_groups(path, groups):
    empty = pa.table({"v": pa.array([], pa.int64())})
    with pq.ParquetWriter(path, empty.schema, compression="NONE") as writer:
        for _ in range(groups):
            writer.write_table(empty)
        writer.write_table(pa.table({"v": pa.array([1, 2, 3])}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--mib", type=int, default=64, help="the size of what is large")
    parser.add_argument("--scale", type=float, default=0.25, help="the part of the rows of usual files")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--list", action="store_true")
    what.add_argument("--case")
    arguments = parser.parse_args()
    out = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    program = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    stamp = {"mib": arguments.mib, "scale": arguments.scale, "pyarrow": pa.__version__}
    if arguments.list:
        print(json.dumps([case.listing([program, stamp]) for case in cases(arguments.mib, arguments.scale)]))
        return
    for case in cases(arguments.mib, arguments.scale):
        if case.name == arguments.case:
            path = out / case.listing([program, stamp])["file"]
            print(f"writing {path.name}", file=sys.stderr, flush=True)
            # Makers write other files first; what has its name is whole.
            unfinished = path.with_name("unfinished-" + path.name)
            case.write(unfinished)
            unfinished.rename(path)
            return
    parser.error(f"no case is called {arguments.case}")


if __name__ == "__main__":
    main()
