"""Files of one table whose schemas differ, and the table as one file: a case is its number, and always the same files.

A case is a folder: `part-N.parquet`, and `whole.parquet`, which has the rows of all parts, as pyarrow makes them of Python's
values: what a part has not is None there.
"""

import datetime
import decimal
import os

import pyarrow as pa
import pyarrow.parquet as pq

from . import data

DEPTH_MAX = 4
ROWS_MAX = 40

# From the narrowest to the widest. What Parquet has no narrower carrier for stays out.
LADDERS = [
    [pa.int8(), pa.int16(), pa.int32(), pa.int64()],
    [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()],
    [pa.uint8(), pa.int16(), pa.int32()],
    [pa.uint16(), pa.uint32(), pa.int64()],
    [pa.float32(), pa.float64()],
    [pa.decimal128(5, 2), pa.decimal128(12, 2), pa.decimal128(30, 2)],
    [pa.binary(3), pa.binary(20), pa.binary()],
    [pa.string()],
    [pa.bool_()],
    [pa.date32()],
    [pa.timestamp("us")],
]


def generate(out, first, count):
    """Cases `first` to `first + count`."""
    for case in range(first, first + count):
        random = data.rng(f"union case {case}")
        folder = os.path.join(out, f"case_{case:06}")
        os.makedirs(folder)
        maker = Maker(random)
        whole = maker.struct(0, at_least=2)
        parts = [narrowed(random, whole, False) for _ in range(int(random.integers(2, 5)))]
        rows, union = [], None
        for number, part in enumerate(parts):
            values = [maker.fields(part) for _ in range(int(random.integers(0, ROWS_MAX)))]
            rows += values
            union = part if union is None else joined(union, part)
            write(random, os.path.join(folder, f"part-{number}.parquet"), schema_of(random, part, values), values)
        union = pa.struct(union)
        pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(union)), os.path.join(folder, "whole.parquet"))


def write(random, path, schema, rows):
    chosen = lambda options: options[int(random.integers(len(options)))]  # noqa: E731
    pq.write_table(
        pa.Table.from_pylist(rows, schema=schema),
        path,
        use_compliant_nested_type=bool(random.integers(2)),
        use_dictionary=bool(random.integers(2)),
        data_page_version=chosen(["1.0", "2.0"]),
        compression=chosen(["NONE", "SNAPPY", "ZSTD"]),
        row_group_size=chosen([7, 1000]),
        data_page_size=chosen([10, 1 << 20]),
        store_decimal_as_integer=bool(random.integers(2)),
        store_schema=False,
    )


# ---------------------------------------------------------------------------------------------------------
# Types


class Maker:
    def __init__(self, random):
        self.random = random
        self.fields_made = 0

    def type(self, depth):
        kind = int(self.random.integers(10)) if depth < DEPTH_MAX else 0
        if kind == 7:
            return pa.list_(self.type(depth + 1))
        if kind == 8:
            return pa.map_(pa.string(), self.type(depth + 1))
        if kind in (5, 6, 9):
            return self.struct(depth + 1, at_least=1)
        ladder = LADDERS[int(self.random.integers(len(LADDERS)))]
        return ladder[-1]

    def struct(self, depth, at_least):
        fields = []
        for _ in range(int(self.random.integers(at_least, 6))):
            self.fields_made += 1
            fields.append(pa.field(f"f{self.fields_made}", self.type(depth)))
        return pa.struct(fields)

    def fields(self, struct):
        return {field.name: self.value(field) for field in struct}

    def value(self, field):
        random = self.random
        if pa.types.is_null(field.type) or (field.nullable and random.integers(5) == 0):
            return None
        kind = field.type
        if pa.types.is_struct(kind):
            return self.fields(kind)
        if pa.types.is_list(kind):
            count = int(random.integers(4))
            if pa.types.is_null(kind.value_type):
                return [None] * count
            return [self.value(kind.value_field) for _ in range(count)]
        if pa.types.is_map(kind):
            return [(f"k{at}", self.value(kind.item_field)) for at in range(int(random.integers(3)))]
        if pa.types.is_boolean(kind):
            return bool(random.integers(2))
        if pa.types.is_integer(kind):
            bits = kind.bit_width
            low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if pa.types.is_signed_integer(kind) else (0, 2**bits)
            return low + int.from_bytes(random.bytes(8), "little") % (high - low)
        if pa.types.is_floating(kind):
            return float(int(random.integers(-(2**20), 2**20))) / 8
        if pa.types.is_decimal(kind):
            unscaled = int.from_bytes(random.bytes(16), "little") % 10**kind.precision
            return decimal.Decimal(unscaled * (-1) ** int(random.integers(2))).scaleb(-kind.scale)
        if pa.types.is_fixed_size_binary(kind):
            return random.bytes(kind.byte_width)
        if pa.types.is_binary(kind):
            return random.bytes(int(random.integers(30)))
        if pa.types.is_string(kind):
            return "x" * int(random.integers(20)) + str(int(random.integers(100)))
        if pa.types.is_date(kind):
            return datetime.date(1970, 1, 1) + datetime.timedelta(days=int(random.integers(-1000, 1000)))
        if pa.types.is_timestamp(kind):
            return datetime.datetime(2000, 1, 1) + datetime.timedelta(microseconds=int(random.integers(10**9)))
        raise TypeError(kind)


decimal.getcontext().prec = 60


def narrowed(random, kind, is_key):
    """A type that `kind` holds: fewer fields, in another order, narrower leaves, some of them required."""
    if pa.types.is_struct(kind):
        fields = [field for field in kind if random.integers(4)] or [kind.field(0)]
        order = random.permutation(len(fields)) if random.integers(3) == 0 else range(len(fields))
        made = []
        for at in order:
            field = fields[int(at)]
            inner = pa.null() if random.integers(15) == 0 else narrowed(random, field.type, False)
            made.append(pa.field(field.name, inner, nullable=pa.types.is_null(inner) or bool(random.integers(3))))
        return pa.struct(made)
    if pa.types.is_list(kind):
        inner = pa.null() if random.integers(10) == 0 else narrowed(random, kind.value_type, False)
        nullable = pa.types.is_null(inner) or bool(random.integers(3))
        return pa.list_(pa.field(["element", "item"][int(random.integers(2))], inner, nullable=nullable))
    if pa.types.is_map(kind):
        inner = narrowed(random, kind.item_type, False)
        return pa.map_(kind.key_type, pa.field("value", inner, nullable=bool(random.integers(3))))
    ladders = [ladder for ladder in LADDERS if ladder[-1] == kind]
    ladder = ladders[int(random.integers(len(ladders)))]
    return ladder[int(random.integers(len(ladder)))] if random.integers(3) == 0 else kind


def schema_of(random, part, values):
    return pa.schema(list(part))


# ---------------------------------------------------------------------------------------------------------
# The union, as the format's reader should make it


def joined(one, other):
    """The type that holds both; fields in the order in which they are first seen."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    if pa.types.is_struct(one):
        fields = []
        for field in one:
            at = other.get_field_index(field.name)
            fields.append(pa.field(field.name, joined(field.type, other.field(at).type) if at >= 0 else field.type))
        fields += [pa.field(field.name, field.type) for field in other if one.get_field_index(field.name) < 0]
        return pa.struct(fields)
    if pa.types.is_list(one):
        return pa.list_(joined(one.value_type, other.value_type))
    if pa.types.is_map(one):
        return pa.map_(one.key_type, joined(one.item_type, other.item_type))
    if pa.types.is_decimal(one):
        return pa.decimal128(max(one.precision, other.precision), one.scale)
    if pa.types.is_integer(one):
        return integer(one, other)
    for ladder in LADDERS:
        if one in ladder and other in ladder:
            if pa.types.is_fixed_size_binary(one) or pa.types.is_fixed_size_binary(other):
                return pa.binary()
            return ladder[max(ladder.index(one), ladder.index(other))]
    raise TypeError(f"{one} and {other}")


def integer(one, other):
    signed = [pa.types.is_signed_integer(kind) for kind in (one, other)]
    bits = [one.bit_width, other.bit_width]
    if signed[0] == signed[1]:
        width = max(bits)
        return {True: {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()},
                False: {8: pa.uint8(), 16: pa.uint16(), 32: pa.uint32(), 64: pa.uint64()}}[signed[0]][width]  # fmt: skip
    unsigned = bits[signed.index(False)]
    width = max(bits[signed.index(True)], unsigned * 2)
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[width]
