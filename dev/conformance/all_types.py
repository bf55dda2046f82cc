#!/usr/bin/env python3
"""Writes all_types.parquet: a column of every scalar Parquet type, with edge values and nulls.

    all_types.py OUT.parquet

It is written by pyarrow, whose footer is then changed where a column has a type that pyarrow does not write (ENUM,
BSON, INTERVAL, INT96). The file is committed as crates/cluster/tests/data/all_types.parquet; the values that it must
become in CQL are constants of crates/cluster/tests/real_cassandra/expected.rs, in the same order of columns and rows.
"""

import decimal
import math
import struct
import sys

import numpy
import pyarrow
import pyarrow.parquet

ROWS = 6

# Changes of a SchemaElement: field ids and values (parquet.thrift).
TYPE, CONVERTED_TYPE, SCALE, PRECISION = 1, 6, 7, 8
INT96 = {TYPE: 3}
ENUM, BSON, INTERVAL = {CONVERTED_TYPE: 4}, {CONVERTED_TYPE: 20}, {CONVERTED_TYPE: 21}
DECIMAL_BYTES = {CONVERTED_TYPE: 5, SCALE: 3, PRECISION: 30}

# Julian day number of 1970-01-01.
EPOCH_JULIAN = 2440588


def int96(day, nanos):
    """A timestamp as Impala and Hive write it: nanoseconds of the day, then the Julian day."""
    return struct.pack("<qi", nanos, day + EPOCH_JULIAN)


def interval(months, days, millis):
    return struct.pack("<III", months, days, millis)


def decimals(precision, scale, digits):
    kind = pyarrow.decimal128 if precision <= 38 else pyarrow.decimal256
    context = decimal.Context(prec=100)
    values = [None if d is None else decimal.Decimal(d).scaleb(-scale, context) for d in digits]
    return pyarrow.array(values, kind(precision, scale))


def integers(kind, *values):
    return pyarrow.array(values, kind)


def columns():
    """Name, array, and the annotation that pyarrow does not write. The last row is null but for the key."""
    utc, local = "UTC", None
    i32, i64 = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
    day_ns = 86_400_000_000_000
    yield "id", pyarrow.array(range(ROWS), pyarrow.int32()), None
    yield "Boolean", pyarrow.array([True, False, True, None, False, None]), None
    yield "int8", integers(pyarrow.int8(), -128, 127, 0, -1, None, None), None
    yield "int16", integers(pyarrow.int16(), -32768, 32767, 0, -1, None, None), None
    yield "int32", integers(pyarrow.int32(), *i32, 0, -1, None, None), None
    yield "int64", integers(pyarrow.int64(), *i64, 0, -1, None, None), None
    yield "uint8", integers(pyarrow.uint8(), 255, 128, 0, 1, None, None), None
    yield "uint16", integers(pyarrow.uint16(), 65535, 32768, 0, 1, None, None), None
    yield "uint32", integers(pyarrow.uint32(), 2**32 - 1, 2**31, 0, 1, None, None), None
    yield "uint64", integers(pyarrow.uint64(), 2**64 - 1, 2**63, 0, 127, 128, None), None
    yield "float16", pyarrow.array(
        numpy.array([0.5, -65504, 2**-24, math.inf, math.nan, 0], "float16"), mask=numpy.array([0, 0, 0, 0, 0, 1], bool)
    ), None
    yield "float", pyarrow.array(
        [0.1, 3.4028234663852886e38, 1e-45, -math.inf, math.nan, None], pyarrow.float32()
    ), None
    yield "double", pyarrow.array([0.1, 1.7976931348623157e308, 5e-324, math.inf, math.nan, None]), None
    yield "minus zero", pyarrow.array([-0.0, 0.0, 1e21, 1e-7, 123456789.125, None]), None
    yield "decimal_9_2", decimals(9, 2, [999999999, -999999999, 0, 110, -1, None]), None
    yield "decimal_18_0", decimals(18, 0, [10**18 - 1, -(10**18) + 1, 0, 1000, None, None]), None
    yield "decimal_38_10", decimals(38, 10, [10**38 - 1, -(10**38) + 1, 0, 128, -128, None]), None
    yield "decimal_76_76", decimals(76, 76, [10**76 - 1, -(10**76) + 1, 0, 1, None, None]), None
    # As few bytes as a number needs, and more.
    yield "decimal_bytes", pyarrow.array(
        [b"\x7f", b"\x80", b"\0\0\0\x01", b"\xff\xff\x7f", b"\0" * 15 + b"\x80", None]
    ), DECIMAL_BYTES
    yield "string", pyarrow.array(
        ["", "it's \"quoted\"", "a\nb\r\t\\n\0$$--/*", "Grüße 🚀 \u2028", "x" * 5000, None]
    ), None
    yield "enum", pyarrow.array([b"HEARTS", b"", b"'", b"SPADES", None, None]), ENUM
    yield "json", pyarrow.array(['{"a": [1, "it\'s"]}', "null", '""', "[]", None, None]).cast(pyarrow.json_()), None
    yield "uuid", pyarrow.array(
        [bytes(16), b"\xff" * 16, bytes(range(16)), bytes.fromhex("550e8400e29b41d4a716446655440000"), None, None],
        pyarrow.binary(16),
    ).cast(pyarrow.uuid()), None
    yield "binary", pyarrow.array([b"", b"\0", bytes(range(256)), b"not \xff UTF-8", b"'", None]), None
    yield "fixed", pyarrow.array([b"abc", b"\0\0\0", b"\xff\xff\xff", None, None, None], pyarrow.binary(3)), None
    yield "bson", pyarrow.array([b"\x05\0\0\0\0", b"", None, None, None, None]), BSON
    yield "date", integers(pyarrow.int32(), 0, -1, 20412, *i32, None).cast(pyarrow.date32()), None
    millis = integers(pyarrow.int32(), 0, 86_399_999, 1, None, None, None)
    yield "time_millis", millis.cast(pyarrow.time32("ms")), None
    micros = integers(pyarrow.int64(), 0, day_ns // 1000 - 1, 1, None, None, None)
    yield "time_micros", micros.cast(pyarrow.time64("us")), None
    yield "time_nanos", integers(pyarrow.int64(), 0, day_ns - 1, 1, None, None, None).cast(pyarrow.time64("ns")), None
    for unit in ("ms", "us", "ns"):
        for zone in (utc, local):
            name = f"timestamp_{unit}_{'local' if zone is None else 'utc'}"
            values = integers(pyarrow.int64(), 0, -1, *i64, 1_763_596_800_123, None)
            yield name, values.cast(pyarrow.timestamp(unit, zone)), None
    yield "int96", pyarrow.array(
        [int96(0, 0), int96(-1, day_ns - 1_000_000), int96(20412, 3_723_004_000_000), int96(-700_000, 0), None, None],
        pyarrow.binary(12),
    ), INT96
    yield "interval", pyarrow.array(
        [interval(*parts) for parts in [(0, 0, 0), (1, 2, 3), (2**31 - 1, 2**31 - 1, 2**32 - 1), (0, 0, 1)]] + [None, None],
        pyarrow.binary(12),
    ), INTERVAL
    yield "unknown", pyarrow.nulls(ROWS), None


class Compact:
    """Thrift's compact protocol, as a tree that is written as it was read: structs are {field id: (type, value)}."""

    TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def zigzag(self):
        value = self.varint()
        return value >> 1 ^ -(value & 1)

    def read(self, kind):
        if kind in (self.TRUE, self.FALSE):
            return None
        if kind == self.BYTE:
            return self.take(1)
        if kind == self.DOUBLE:
            return self.take(8)
        if kind == self.BINARY:
            return self.take(self.varint())
        if kind in (self.LIST, self.SET):
            head = self.take(1)[0]
            count = self.varint() if head >> 4 == 15 else head >> 4
            # In lists, booleans are a byte each.
            return head & 15, [self.take(1) if head & 15 < 3 else self.read(head & 15) for _ in range(count)]
        if kind == self.STRUCT:
            fields, field = {}, 0
            while head := self.take(1)[0]:
                field = field + (head >> 4) if head >> 4 else self.zigzag()
                fields[field] = (head & 15, self.read(head & 15))
            return fields
        return self.zigzag()

    @staticmethod
    def number(value):
        out = bytearray()
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        return bytes(out) + bytes([value])

    @classmethod
    def write(cls, kind, value):
        if kind in (cls.TRUE, cls.FALSE):
            return b""
        if kind in (cls.BYTE, cls.DOUBLE):
            return value
        if kind == cls.BINARY:
            return cls.number(len(value)) + value
        if kind in (cls.LIST, cls.SET):
            of, items = value
            count = len(items)
            head = bytes([count << 4 | of]) if count < 15 else bytes([15 << 4 | of]) + cls.number(count)
            return head + b"".join(item if of < 3 else cls.write(of, item) for item in items)
        if kind == cls.STRUCT:
            out, last = b"", 0
            for field in sorted(value):
                of, item = value[field]
                step = field - last
                out += bytes([step << 4 | of]) if step < 16 else bytes([of]) + cls.number(field << 1)
                out += cls.write(of, item)
                last = field
            return out + b"\0"
        return cls.number(value << 1 ^ value >> 63)


def annotate(path, changes):
    """Changes the footer's schema: the columns named get another physical or converted type."""
    data = open(path, "rb").read()
    length = struct.unpack("<I", data[-8:-4])[0]
    footer = Compact(data[-8 - length : -8]).read(Compact.STRUCT)
    i32 = 5
    for element in footer[2][1][1]:  # FileMetaData.schema
        for field, value in changes.get(element[4][1].decode(), {}).items():  # SchemaElement.name
            element[field] = (i32, value)
            if field == TYPE:
                del element[2]  # type_length
    for group in footer[4][1][1]:  # FileMetaData.row_groups
        for chunk in group[1][1][1]:  # RowGroup.columns
            metadata = chunk[3][1]
            change = changes.get(metadata[3][1][1][-1].decode(), {})  # path_in_schema
            if TYPE in change:
                metadata[1] = (i32, change[TYPE])
    changed = Compact.write(Compact.STRUCT, footer)
    with open(path, "wb") as file:
        file.write(data[: -8 - length] + changed + struct.pack("<I", len(changed)) + b"PAR1")


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    described = list(columns())
    for name, array, _ in described:
        assert len(array) == ROWS, name
    fields = [pyarrow.field(name, array.type, nullable=name != "id") for name, array, _ in described]
    table = pyarrow.Table.from_arrays([array for _, array, _ in described], schema=pyarrow.schema(fields))
    pyarrow.parquet.write_table(
        table,
        arguments[0],
        version="2.6",
        compression="NONE",
        use_dictionary=["string", "int32"],
        # Those of a column whose type is changed would not be that type's.
        write_statistics=False,
        store_schema=False,
        store_decimal_as_integer=True,
        # Two row groups: rows are numbered in the file, not in these.
        row_group_size=4,
    )
    annotate(arguments[0], {name: change for name, _, change in described if change})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
