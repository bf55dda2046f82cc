"""Writes a file of each type that ARROW:schema is for, and beside it, as an Arrow stream, what pyarrow reads of it: `stored.py OUTDIR`."""

import decimal
import sys

import pyarrow as pa
import pyarrow.parquet as pq

folder = sys.argv[1]
half = decimal.Decimal("1.5")


def dictionary(index, values, ordered=False):
    return pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1], index), values, ordered=ordered)


columns = {
    "utf8": pa.array(["a", None, "a text that is longer than a view holds"]),
    "large_utf8": pa.array(["a", None], pa.large_utf8()),
    "utf8_view": pa.array(["a", None], pa.string_view()),
    "binary": pa.array([b"a", None], pa.binary()),
    "large_binary": pa.array([b"a", None], pa.large_binary()),
    "binary_view": pa.array([b"a", None], pa.binary_view()),
    "fixed_binary": pa.array([b"aa", None], pa.binary(2)),
    "dictionary": dictionary(pa.int32(), pa.array(["x", "y"])),
    "dictionary_int8": dictionary(pa.int8(), pa.array(["x", "y"])),
    "dictionary_ordered": dictionary(pa.int16(), pa.array(["x", "y"]), ordered=True),
    "dictionary_large": dictionary(pa.int8(), pa.array(["x", "y"], pa.large_utf8())),
    "dictionary_binary": dictionary(pa.int8(), pa.array([b"x", b"y"])),
    "dictionary_int64": dictionary(pa.int8(), pa.array([1, 2])),
    "dictionary_time": dictionary(pa.int8(), pa.array([1, 2], pa.timestamp("us", "UTC"))),
    "duration_s": pa.array([1, None], pa.duration("s")),
    "duration_ms": pa.array([1, None], pa.duration("ms")),
    "duration_us": pa.array([1, None], pa.duration("us")),
    "duration_ns": pa.array([1, None], pa.duration("ns")),
    "zone": pa.array([1, None], pa.timestamp("us", "Europe/Berlin")),
    "zone_ns": pa.array([1, None], pa.timestamp("ns", "+02:00")),
    "zone_s": pa.array([1, None], pa.timestamp("s", "Asia/Tokyo")),
    "local_s": pa.array([1, None], pa.timestamp("s")),
    "date64": pa.array([86_400_000, None], pa.date64()),
    "time32_s": pa.array([1, None], pa.time32("s")),
    "decimal32": pa.array([half, None], pa.decimal32(5, 1)),
    "decimal64": pa.array([half, None], pa.decimal64(12, 1)),
    "decimal256": pa.array([half, None], pa.decimal256(20, 1)),
    "large_list": pa.array([[1], [2, None], None, []], pa.large_list(pa.int32())),
    "fixed_list": pa.array([[1, 2], [3, None], None], pa.list_(pa.int16(), 2)),
    "nested_list": pa.array(
        [["a"], None], pa.large_list(pa.field("x", pa.large_utf8(), metadata={"k": "v"}))
    ),
    "list_of_dictionaries": pa.array([["a", "b", "a"], None], pa.list_(pa.dictionary(pa.int32(), pa.utf8()))),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.large_utf8(), pa.duration("us"))),
    "struct": pa.array(
        [{"a": "x", "b": None}, None],
        pa.struct([pa.field("a", pa.large_utf8(), metadata={"m": "1"}), pa.field("b", pa.duration("us"))]),
    ),
    "uint32": pa.array([1, None], pa.uint32()),
    "float16": pa.array([1, None], pa.float16()),
    "null": pa.nulls(2),
    "uuid": pa.array([b"0" * 16, None], pa.uuid()),
    "json": pa.array(["{}", None], pa.json_(pa.large_utf8())),
    "bool8": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())),
    "tensor": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int32(), [2]), pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2))
    ),
}
for name, array in columns.items():
    field = pa.field(name, array.type, metadata={"of": "the field"})
    table = pa.table([array], schema=pa.schema([field], metadata={"of": "the schema"}))
    path = f"{folder}/{name}.parquet"
    pq.write_table(table, path)
    read = pq.read_table(path).combine_chunks()
    with pa.ipc.new_stream(f"{folder}/{name}.arrow", read.schema) as stream:
        stream.write_table(read)
