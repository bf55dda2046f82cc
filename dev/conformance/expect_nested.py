#!/usr/bin/env python3
"""The oracle of nested reading: what pyarrow reads as records, in a form that Rust can check cheaply.

    expect_nested.py OUT.json FILE...     one JSON array, one entry a file, in the order given
    expect_nested.py OUT.json @LIST       the same; LIST holds one path a line

For every field of the root the entry holds a CRC-32 (zlib's) over the canonical bytes of all its rows, and the first rows
in clear. A slot's canonical bytes are

    n                               a null
    { FIELD... }                    a struct
    [ ELEMENT... ]                  a list
    < KEY VALUE... >                a map
    v LENGTH(u32, LE) VALUE         a leaf's value: the bytes that `expect.py` defines, in the same normal forms

They are computed from Arrow's arrays by their offsets and validity, never from Python objects, which lose types.

A projection is some of the leaves. Of each there is the same again, for the fields that have any of them, pruned here: a struct
loses the fields without a wanted leaf, a map without keys is a list of its values, a map without values holds keys alone.

Entry: {"file", "rows", "fields": [FIELD...], "projections": [{"leaves": [...], "fields": [FIELD...]}]} or {"file", "error"}.
FIELD: {"name", "crc32", "head": [text...]} or {"name", "error"} when pyarrow reads the file but not that field.

For a field that pyarrow cannot read, the oracle is what the writer was given, where a file of Arrow's beside it has that, else
DuckDB: "oracle": "given" or "duckdb", "pyarrow_error".
"""

import os
import random
import sys
import zlib

import numpy as np
import pyarrow as pa

from expect import CannotExpress, main, one_line, open_file, physical

HEAD_ROWS = 5
# A row in "head" is cut to this many characters.
HEAD_ROW_CHARACTERS_MAX = 400
# Of a file with more rows than this, no projection is made: they cost as much as the whole each.
PROJECTED_ROWS_MAX = 10_000
RANDOM_PROJECTIONS = 3
SINGLE_PROJECTIONS = 6


# ---------------------------------------------------------------------------------------------------------
# One file


def expect_file(path):
    """The entry of one file. Never raises: what pyarrow refuses becomes an "error"."""
    try:
        reader = open_file(path)
        groups = reader.metadata.num_row_groups
        rows = sum(reader.metadata.row_group(group).num_rows for group in range(groups))
        leaves = len(reader.schema)
        fields, first = [], 0
        for name, count in zip(reader.schema_arrow.names, top_level(reader), strict=True):
            fields.append(Field(path, reader, name, range(first, first + count), rows))
            first += count
        entry = {"file": path, "rows": rows, "fields": [field.expect(range(leaves)) for field in fields]}
        wanted = projections(os.path.basename(path), leaves) if rows <= PROJECTED_ROWS_MAX else []
        entry["projections"] = [
            {"leaves": some, "fields": [field.expect(some) for field in fields if set(some) & set(field.leaves)]}
            for some in wanted
        ]
        return entry
    except Exception as error:  # the oracle's "cannot read" is data, whatever its type
        return {"file": path, "error": one_line(error)}


def top_level(reader):
    """How many leaves each of the root's fields has. A group without leaves is no field of pyarrow's."""
    counts = [leaf_count(field.type) for field in reader.schema_arrow]
    if sum(counts) != len(reader.schema):
        raise CannotExpress(f"{len(reader.schema)} leaves were read as {reader.schema_arrow}")
    return counts


def leaf_count(kind):
    if isinstance(kind, pa.BaseExtensionType):
        return leaf_count(kind.storage_type)
    if pa.types.is_struct(kind):
        return sum(leaf_count(field.type) for field in kind)
    if pa.types.is_map(kind):
        return leaf_count(kind.key_type) + leaf_count(kind.item_type)
    if is_list(kind):
        return leaf_count(kind.value_type)
    return 1


def is_list(kind):
    checks = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_list_view,
              pa.types.is_large_list_view)  # fmt: skip
    return any(check(kind) for check in checks)


def projections(name, leaves):
    """Random subsets of the leaves, and some leaves alone; the same ones for the same file name."""
    if leaves < 2:
        return []
    chance = random.Random(name)
    some = [sorted(chance.sample(range(leaves), chance.randint(1, leaves - 1))) for _ in range(RANDOM_PROJECTIONS)]
    alone = [[leaf] for leaf in sorted(chance.sample(range(leaves), min(leaves, SINGLE_PROJECTIONS)))]
    return [list(leaves) for leaves in sorted({tuple(leaves) for leaves in some + alone})]


def count(chunks):
    return sum(len(chunk) for chunk in chunks)


class Field:
    """A field of the root: read once, told for each projection."""

    def __init__(self, path, reader, name, leaves, rows):
        self.path, self.reader, self.name, self.leaves, self.rows = path, reader, name, leaves, rows
        self.second = {}
        try:
            try:
                self.chunks = self.read(reader)
            except (OSError, pa.ArrowException) as error:
                self.second = {"oracle": "duckdb", "pyarrow_error": one_line(error)}
                given = path.removesuffix(".parquet") + ".arrow"
                if os.path.exists(given):
                    self.chunks, self.second["oracle"] = self.read_given(given), "given"
                else:
                    self.chunks = self.read_with_duckdb()
            if count(self.chunks) != rows:
                raise CannotExpress(f"{count(self.chunks)} rows, the row groups say {rows}")
            # The leaves' values are the same in every projection.
            self.values = [leaf_slots(self, number, chunk) for number, chunk in enumerate(self.chunks)]
            self.error = None
        except Exception as error:
            self.error = one_line(error) + (f", after {self.second['pyarrow_error']}" if self.second else "")

    def read(self, reader):
        leaves = {"column_indices": list(self.leaves), "use_threads": False}
        try:
            chunks = reader.reader.read_all(**leaves).column(0).chunks
        except pa.ArrowNotImplementedError:
            # pyarrow does not put some nested columns of several row groups together.
            groups = range(reader.metadata.num_row_groups)
            chunks = [chunk for at in groups for chunk in reader.reader.read_row_group(at, **leaves).column(0).chunks]
        if count(chunks) != self.rows:
            raise pa.ArrowException(f"pyarrow gives {count(chunks)} rows, the row groups say {self.rows}")
        return chunks

    def read_given(self, given):
        with pa.ipc.open_file(given) as table:
            return table.read_all().column(self.name).chunks

    def read_with_duckdb(self):
        import duckdb

        name, file = self.name.replace('"', '""'), self.path.replace("'", "''")
        with duckdb.connect(config={"threads": 1}) as connection:
            query = f"SELECT \"{name}\" FROM read_parquet('{file}', file_row_number = true) ORDER BY file_row_number"
            return connection.sql(query).to_arrow_table().column(0).chunks

    def expect(self, wanted):
        if self.error:
            return {"name": self.name, "error": self.error}
        crc, head, wanted = 0, [], set(wanted)
        for chunk, values in zip(self.chunks, self.values, strict=True):
            rows, _ = slots(chunk, iter(zip(self.leaves, values, strict=True)), wanted)
            for row in rows:
                crc = zlib.crc32(row, crc)
            head += [clear(row)[:HEAD_ROW_CHARACTERS_MAX] for row in rows[: HEAD_ROWS - len(head)]]
        return {"name": self.name, "crc32": crc, "head": head} | self.second


# ---------------------------------------------------------------------------------------------------------
# Slots of Arrow arrays


def leaf_slots(field, number, chunk):
    """The canonical bytes of each slot of each leaf of a chunk, leaf by leaf."""
    arrays, seconds = leaf_arrays(chunk), None

    def read_seconds(at):
        nonlocal seconds
        if seconds is None:
            seconds = leaf_arrays(field.read(open_file(field.path, int96_unit="s"))[number])
        return seconds[at]

    return [
        value_slots(field.reader.schema.column(index), array, lambda at=at: read_seconds(at))
        for at, (index, array) in enumerate(zip(field.leaves, arrays, strict=True))
    ]


def leaf_arrays(array):
    """The leaves of an array, as they are: with the slots that a null or an offset above them hides."""
    array = plain(array)
    if pa.types.is_struct(array.type):
        return [leaf for at in range(array.type.num_fields) for leaf in leaf_arrays(array.field(at))]
    if pa.types.is_map(array.type):
        return leaf_arrays(array.keys) + leaf_arrays(array.items)
    if is_list(array.type):
        return leaf_arrays(array.values)
    return [array]


def plain(array):
    """Through extension types, dictionaries and views."""
    while True:
        if isinstance(array.type, pa.BaseExtensionType):
            array = array.storage
        elif pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        elif pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
            array = array.cast(pa.large_binary())
        else:
            return array


def value_slots(leaf, array, read_seconds):
    valid = validity(array)
    lengths, data, _ = physical(leaf, array, valid, read_seconds)
    data, ends, out, at = data.tobytes(), np.cumsum(lengths).tolist(), [], 0
    ends = iter(ends)
    for is_there in valid.tolist():
        if is_there:
            end = next(ends)
            out.append(b"v" + (end - at).to_bytes(4, "little") + data[at:end])
            at = end
        else:
            out.append(b"n")
    return out


def validity(array):
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


def slots(array, leaves, wanted):
    """The canonical bytes of each slot of an array, and whether any leaf of it is wanted. Takes its leaves from `leaves`."""
    array = plain(array)
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [slots(array.field(at), leaves, wanted) for at in range(kind.num_fields)]
        fields = [field for field, is_wanted in fields if is_wanted]
        if not fields:
            return [], False
        there = [b"{" + b"".join(row) + b"}" for row in zip(*fields, strict=True)]
    elif pa.types.is_map(kind):
        keys, has_keys = slots(array.keys, leaves, wanted)
        items, has_items = slots(array.items, leaves, wanted)
        if has_keys and has_items:
            entries = [key + item for key, item in zip(keys, items, strict=True)]
        elif has_keys or has_items:
            entries = keys if has_keys else items
        else:
            return [], False
        there = joined(array, entries, b"<>" if has_keys else b"[]")
    elif is_list(kind):
        elements, is_wanted = slots(array.values, leaves, wanted)
        if not is_wanted:
            return [], False
        there = joined(array, elements, b"[]")
    else:
        leaf, values = next(leaves)
        return values, leaf in wanted
    if array.null_count:
        there = [slot if is_there else b"n" for slot, is_there in zip(there, validity(array).tolist(), strict=True)]
    return there, True


def joined(array, elements, brackets):
    """The slots of a list or a map."""
    kind, opening, closing = array.type, brackets[:1], brackets[1:]
    if pa.types.is_fixed_size_list(kind):
        # `values` has the elements of the whole array, of which this may be a slice.
        starts = [(array.offset + at) * kind.list_size for at in range(len(array))]
        ends = [start + kind.list_size for start in starts]
    elif pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        starts = array.offsets.to_pylist()
        ends = [start + size for start, size in zip(starts, array.sizes.to_pylist(), strict=True)]
    else:
        offsets = array.offsets.to_pylist()
        starts, ends = offsets[:-1], offsets[1:]
    return [opening + b"".join(elements[start:end]) + closing for start, end in zip(starts, ends, strict=True)]


# ---------------------------------------------------------------------------------------------------------
# For people


def clear(row):
    """Canonical bytes as text: values in hex."""
    out, at = [], 0
    while at < len(row):
        sign = row[at : at + 1]
        at += 1
        if sign == b"v":
            length = int.from_bytes(row[at : at + 4], "little")
            out.append(row[at + 4 : at + 4 + length].hex() + ",")
            at += 4 + length
        else:
            out.append(sign.decode() + ("," if sign == b"n" else ""))
    return "".join(out)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], expect_file, __doc__))
