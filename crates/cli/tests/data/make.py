"""Writes the small files beside it (pyarrow 26): run `python make.py` in this folder. They are checked in."""

import datetime
import decimal
import struct
import uuid

import pyarrow as pa
import pyarrow.parquet as pq

day = datetime.date(1970, 1, 1)
plain = {"compression": "NONE", "store_schema": False}


def types():
    """A row of usual values, one of extreme ones, one of nulls."""
    inf = float("inf")
    columns = {
        "id": pa.array([1, 2, 3], pa.int32()),
        "flag": pa.array([True, False, None]),
        "tiny": pa.array([1, -128, None], pa.int8()),
        "big": pa.array([1, -(2**63), None], pa.int64()),
        "ubig": pa.array([1, 2**64 - 1, None], pa.uint64()),
        "single": pa.array([0.1, -inf, None], pa.float32()),
        "double": pa.array([0.1 + 0.2, inf, None], pa.float64()),
        "nan": pa.array([1 / 3, float("nan"), None], pa.float64()),
        "price": pa.array([decimal.Decimal("12.30"), decimal.Decimal("-0.01"), None], pa.decimal128(38, 2)),
        "day": pa.array([datetime.date(2024, 2, 29), datetime.date(1, 1, 1), None], pa.date32()),
        "clock": pa.array([datetime.time(3, 4, 5, 678000), datetime.time(23, 59, 59, 999999), None], pa.time64("us")),
        "at_ms": pa.array([1_709_175_845_678, -1, None], pa.timestamp("ms", "UTC")),
        "at_us": pa.array([1_709_175_845_678_901, -1, None], pa.timestamp("us", "UTC")),
        "local_us": pa.array([1_709_175_845_678_901, -1, None], pa.timestamp("us")),
        "Text": pa.array(["it's", 'a "b",\nc', None]),
        "raw": pa.array([b"\x00\xff", b"", None]),
        "uid": pa.array([uuid.UUID(int=1).bytes, uuid.UUID(int=2**128 - 1).bytes, None], pa.uuid()),
    }
    table = pa.table(columns)
    schema = table.schema.set(0, table.schema.field("id").with_nullable(False))
    pq.write_table(table.cast(schema), "types.parquet", **plain)


def texts(values):
    """Texts, whatever their bytes."""
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len(value))
    buffers = [None, pa.py_buffer(struct.pack(f"<{len(offsets)}i", *offsets)), pa.py_buffer(b"".join(values))]
    return pa.Array.from_buffers(pa.string(), len(values), buffers)


def bad_text():
    """Row 2 is not UTF-8."""
    table = pa.table({"id": pa.array([0, 1, 2, 3]), "text": texts([b"a", b"b", b"c\xff", b"d"])})
    pq.write_table(table, "bad_text.parquet", write_statistics=False, **plain)


def names():
    """Columns with names that mislead lists, terminals and CQL."""
    odd = ["id", "a,b", 'q"uote', "do.t", "new\nline", " lead", "Case", "case", "select", "esc\x1b[31m", "rtl\u202e", ""]
    pq.write_table(pa.table([pa.array([at]) for at in range(len(odd))], names=odd), "names.parquet", **plain)
    # Two of one name.
    pq.write_table(pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "a", "b"]), "twice.parquet", **plain)


def many():
    """So many rows that no pipe holds them, in a file of a few hundred bytes."""
    table = pa.table({"answer": pa.array([42] * 300_000, pa.int32())})
    pq.write_table(table, "many.parquet", **plain)


def several():
    """Files that can be read together, and one that cannot."""
    pq.write_table(pa.table({"a": pa.array([1, 2]), "b": pa.array(["x", "y"])}), "one.parquet", **plain)
    pq.write_table(pa.table({"b": pa.array(["z"]), "a": pa.array([3])}), "reordered.parquet", **plain)
    pq.write_table(pa.table({"a": pa.array([1.5]), "b": pa.array(["x"])}), "other_type.parquet", **plain)
    pq.write_table(pa.table({"a": pa.array([1]), "c": pa.array(["x"])}), "other_name.parquet", **plain)


def bounds():
    """Two row groups, so that bounds must be joined; long texts; unsigned numbers beyond the signed ones."""
    table = pa.table({
        "u": pa.array([1, 2**31, 5, 7], pa.uint32()),
        "d": pa.array([decimal.Decimal(n) for n in ("-1.5", "2.5", "100.0", None or "3.0")], pa.decimal128(20, 1)),
        "t": pa.array(["b" * 100, "c", "a", None]),
        "o": pa.array([None, None, 1, 2], pa.int16()),
    })
    pq.write_table(table, "bounds.parquet", row_group_size=2, data_page_version="2.0", **plain)


def nested():
    """One flat column beside nested ones."""
    table = pa.table({
        "id": pa.array([1, 2]),
        "tags": pa.array([["a", "b"], []]),
        "place": pa.array([{"lat": 1.5, "lon": 2.5}, None]),
    })
    pq.write_table(table, "nested.parquet", **plain)


def nested_others():
    """Nested columns of other types than those of nested.parquet; text in a list that is not UTF-8; two fields of one name."""
    table = pa.table({
        "id": pa.array([3]),
        "tags": pa.array([[1, None]]),
        "place": pa.array([{"lat": 1.5, "lon": 2.5, "height": 3.5}]),
    })
    pq.write_table(table, "nested_other.parquet", **plain)
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3]), texts([b"a", b"b", b"c\xff"]))
    table = pa.table({"id": pa.array([0, 1]), "list": lists})
    pq.write_table(table, "nested_bad_text.parquet", write_statistics=False, **plain)
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(pa.table({"id": pa.array([1]), "s": pa.array([[0]]), "t": twice}), "nested_twice.parquet", **plain)


def nested_cql():
    """Nested columns for CQL: some that it can hold, and in each of the last four columns a row that it cannot."""
    stop = pa.struct([
        pa.field("name", pa.string()),
        pa.field("At", pa.timestamp("us", "UTC")),
        pa.field("fares", pa.map_(pa.string(), pa.list_(pa.decimal128(9, 2)))),
        pa.field("select", pa.struct([pa.field("a b", pa.bool_())])),
    ])
    fare = decimal.Decimal("2.50")
    bad = pa.StructArray.from_arrays([texts([b"a", b"b\xff"])], names=["word"])
    table = pa.table({
        "id": pa.array([0, 1, 2], pa.int32()),
        "stops": pa.array([
            [{"name": "it's", "At": 1, "fares": [("x", [fare, -fare]), ("", [])], "select": {"a b": True}}, {"name": ""}],
            [],
            None,
        ], pa.list_(stop)),
        "Place": pa.array([{"lat": 1.5, "tags": [["b", "a"], []]}, {"lat": None, "tags": None}, None]),
        "tags": pa.array([["b", "a", "b"], [], ["x", None]]),
        "prices": pa.array([[], None, [("a", decimal.Decimal("1.50")), ("b", None)]], pa.map_(pa.string(), pa.decimal128(5, 2))),
        "twice": pa.array([[("b", 1)], [("it's", 1), ("b", 2), ("it's", 3)], None], pa.map_(pa.string(), pa.int32())),
        "bad": pa.ListArray.from_arrays(pa.array([0, 1, 2, 2]), bad),
    })
    pq.write_table(table, "nested_cql.parquet", write_statistics=False, **plain)


def long_page():
    """34 million zeros in a page of 272 MB, which are 9 KB of ZSTD."""
    rows = 34_000_000
    table = pa.table({"n": pa.array(memoryview(bytes(8 * rows)).cast("q"), pa.int64())})
    pq.write_table(
        table, "long_page.parquet", row_group_size=rows, max_rows_per_page=rows, write_batch_size=rows,
        data_page_size=1 << 30, compression="zstd", use_dictionary=False, store_schema=False,
    )


def described():
    """What a file says of itself: of its columns, and of anything."""
    of_columns = {"ARROW:schema": "(not looked at)", "pandas": "{}"}
    table = pa.table({"id": pa.array([1, 2], pa.int64()), "part": pa.array(["a", "b"])})
    with pq.ParquetWriter("described.parquet", table.schema, **plain) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"owner": "me", "made": "now", **of_columns})


for write in (types, bad_text, names, many, several, bounds, nested, nested_others, nested_cql, long_page, described):
    write()
