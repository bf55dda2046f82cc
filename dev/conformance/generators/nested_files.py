"""Nested files of random schemas, up to four deep, by pyarrow and DuckDB: a case is its number, and always the same file."""

import io

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from . import data
from .manifest import Manifest

DEPTH_MAX = 4
# Slots of one array: lists of lists must not grow without bound.
SLOTS_MAX = 4000
# Values of a type that all its arrays choose from.
POOL_VALUES = 500

PYARROW_CODECS = ["NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4", "BROTLI"]
DUCKDB_CODECS = ["uncompressed", "snappy", "gzip", "zstd", "lz4_raw", "brotli"]

# Of these, what DuckDB takes from Arrow as it is.
DUCKDB_LEAVES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
                 "string", "binary", "date32", "timestamp_us", "timestamp_us_utc", "time64_us", "decimal128_5",
                 "decimal128_9", "decimal128_18", "decimal128_38", "uuid", "dictionary_string"]  # fmt: skip

ENCODINGS = {
    "BOOLEAN": ["RLE"],
    "INT32": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "INT64": ["DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "FLOAT": ["BYTE_STREAM_SPLIT"],
    "DOUBLE": ["BYTE_STREAM_SPLIT"],
    "BYTE_ARRAY": ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"],
    "FIXED_LEN_BYTE_ARRAY": ["DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"],
}


def generate(out, first, count, duckdb_every=4):
    """Cases `first` to `first + count`; one in `duckdb_every` is DuckDB's."""
    manifest = Manifest(out, "nested", f"pyarrow {pa.__version__}, DuckDB {duckdb.__version__}")
    types = data.arrow_types()
    pools = {name: pool(data.rng(f"nested pool of {name}"), POOL_VALUES) for name, pool in types.items()}
    # pyarrow does not write views in lists.
    pools = {name: pool for name, pool in pools.items() if pool.type not in (pa.string_view(), pa.binary_view())}
    for case in range(first, first + count):
        random = data.rng(f"nested case {case}")
        if case % duckdb_every == 0:
            maker = Maker(random, {name: pools[name] for name in DUCKDB_LEAVES}, is_duckdb=True)
            write_with_duckdb(manifest, random, f"duckdb_{case:06}", maker.table())
        else:
            write_with_pyarrow(manifest, random, f"pyarrow_{case:06}", Maker(random, pools).table())
    manifest.close()


# ---------------------------------------------------------------------------------------------------------
# Random tables


class Maker:
    """Makes a random table, type and values at once: each node draws its type, its nulls and its lengths."""

    def __init__(self, random, pools, is_duckdb=False):
        self.random, self.pools, self.is_duckdb = random, pools, is_duckdb
        self.key = 0

    def table(self):
        rows = int(self.random.choice([0, 1, 2, 30, 200, 1000, 3000], p=[0.03, 0.05, 0.05, 0.27, 0.4, 0.15, 0.05]))
        fields, arrays = [], []
        for number in range(int(self.random.integers(1, 4))):
            # Most are nested as deep as may be.
            depth = int(self.random.choice([0, 1, 2, 3, 4], p=[0.05, 0.15, 0.25, 0.25, 0.3]))
            nullable = self.chance(0.7)
            array = self.array(depth, rows, nullable)
            fields.append(pa.field(f"c{number}", array.type, nullable))
            arrays.append(array)
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def chance(self, probability):
        return self.random.random() < probability

    def array(self, depth, slots, nullable):
        """An array `depth` deep in its deepest branch, with nulls only if `nullable`."""
        if depth == 0:
            return self.leaf(slots, nullable)
        mask = self.mask(slots, nullable)
        kind = self.random.choice(["struct", "list", "map"], p=[0.4, 0.42, 0.18])
        if kind == "struct":
            return self.struct(depth, slots, mask)
        if kind == "map":
            return self.map(depth, slots, mask)
        if self.chance(0.08) and slots * 3 <= SLOTS_MAX:
            return self.fixed_list(depth, slots, mask)
        return self.list(depth, slots, mask)

    def mask(self, slots, nullable):
        """Which slots are null, as Arrow wants it."""
        if not nullable:
            return None
        share = self.random.choice([0.0, 0.05, 0.3, 0.7, 1.0], p=[0.15, 0.3, 0.35, 0.17, 0.03])
        mask = self.random.random(slots) < share
        if self.chance(0.2):
            # In runs, so that whole pages are null.
            mask = np.repeat(mask[::50], 50)[:slots]
        return pa.array(mask, pa.bool_())

    def leaf(self, slots, nullable, name=None):
        name = name or str(self.random.choice(list(self.pools)))
        pool = self.pools[name]
        distinct = int(self.random.choice([1, 3, 40, len(pool)]))
        picks = self.random.integers(0, distinct, slots)
        mask = self.mask(slots, nullable)
        if pa.types.is_null(pool.type):
            # Nothing but nulls: for a field that has none, another type.
            return pa.nulls(slots) if nullable else self.leaf(slots, nullable, "int32")
        indices = pa.array(picks, pa.int64(), mask=None if mask is None else mask.to_numpy(zero_copy_only=False))
        return data.pick(pool, indices)

    def struct(self, depth, slots, mask):
        count = int(self.random.choice([1, 2, 3, 5], p=[0.3, 0.35, 0.25, 0.1]))
        deepest = int(self.random.integers(0, count))
        fields, arrays = [], []
        for number in range(count):
            nullable = self.chance(0.6)
            below = depth - 1 if number == deepest else int(self.random.integers(0, depth)) if self.chance(0.3) else 0
            array = self.array(below, slots, nullable)
            fields.append(pa.field(f"f{number}", array.type, nullable))
            arrays.append(array)
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)

    def offsets(self, slots, mask):
        """Of lists of random lengths; what a null hides is nearly always empty."""
        mean = self.random.choice([0.3, 1.0, 3.0])
        if slots * mean > SLOTS_MAX:
            mean = max(SLOTS_MAX / slots / 2, 0.05)
        lengths = self.random.geometric(1 / (1 + mean), slots) - 1
        if slots and self.chance(0.25):
            # Some that are longer than pages.
            lengths[self.random.integers(0, slots, 2)] = self.random.integers(50, 600, 2)
        if mask is not None and not self.chance(0.1):
            lengths[mask.to_numpy(zero_copy_only=False)] = 0
        return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)

    def list(self, depth, slots, mask):
        offsets = self.offsets(slots, mask)
        nullable = self.chance(0.6)
        values = self.array(depth - 1, int(offsets[-1]), nullable)
        field = pa.field("element", values.type, nullable)
        if self.chance(0.1):
            large = pa.array(offsets, pa.int64())
            return pa.LargeListArray.from_arrays(large, values, type=pa.large_list(field), mask=mask)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=pa.list_(field), mask=mask)

    def fixed_list(self, depth, slots, mask):
        size = int(self.random.integers(1, 4))
        nullable = self.chance(0.6)
        values = self.array(depth - 1, slots * size, nullable)
        kind = pa.list_(pa.field("element", values.type, nullable), size)
        return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=mask)

    def map(self, depth, slots, mask):
        offsets = self.offsets(slots, mask)
        entries, nullable = int(offsets[-1]), self.chance(0.6)
        if self.is_duckdb:
            # DuckDB wants a map's keys to differ.
            keys = pa.array(np.arange(entries), pa.int32())
        elif self.chance(0.85):
            keys = self.leaf(entries, False)
        else:
            keys = self.array(min(depth - 1, 2), entries, False)
        values = self.array(depth - 1, entries, nullable)
        kind = pa.map_(pa.field("key", keys.type, False), pa.field("value", values.type, nullable))
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, values, type=kind, mask=mask)


# ---------------------------------------------------------------------------------------------------------
# Files


def write_with_pyarrow(manifest, random, name, table):
    def choose(*values):
        return values[int(random.integers(0, len(values)))]

    dictionaries, encodings, decimals_as_integers = [], {}, choose(True, False)
    for path, physical_type in leaves(table, decimals_as_integers):
        choice = choose("dictionary", "dictionary", "plain", "other", "other")
        if choice == "dictionary" and physical_type != "BOOLEAN":
            dictionaries.append(path)
        elif choice == "other" and physical_type in ENCODINGS:
            encodings[path] = choose(*ENCODINGS[physical_type])
    options = {
        "compression": choose(*PYARROW_CODECS),
        "data_page_version": choose("1.0", "2.0"),
        "data_page_size": choose(64, 64, 300, 2000, 1 << 20),
        "write_batch_size": choose(1, 7, 64, 1024),
        "dictionary_pagesize_limit": choose(100, 1000, 1 << 20),
        "use_dictionary": dictionaries,
        "column_encoding": encodings or None,
        "write_page_index": choose(True, False),
        "write_page_checksum": choose(True, False),
        # With Arrow's schema, pyarrow reads back neither nulls of fixed-size lists nor dictionaries from DELTA encodings.
        "store_schema": choose(True, True, False) and not any(no in str(table.schema) for no in ("fixed_size", "dictionary<")),
        "use_compliant_nested_type": choose(True, False),
        "store_decimal_as_integer": decimals_as_integers,
        "use_content_defined_chunking": choose(False, False, False, True),
        "max_rows_per_page": choose(20_000, 20_000, 1, 33),
        "version": "2.6",
    }
    row_group_size = choose(1, 17, 300, 100_000) if len(table) <= 200 else choose(90, 700, 100_000)
    has_empty_group = choose(True, False, False, False)

    def write(path):
        tables = [table]
        if has_empty_group:
            tables += [table.slice(0, 0), table.slice(len(table) // 2)]
        with pq.ParquetWriter(path, table.schema, **options) as writer:
            for part in tables:
                writer.write_table(part, row_group_size=row_group_size)
        # pyarrow does not read back all that it writes (DELTA_BYTE_ARRAY pages without a value, in lists).
        with pa.ipc.new_file(path.removesuffix(".parquet") + ".arrow", table.schema) as given:
            for part in tables:
                given.write_table(part)

    manifest.write(name, write, case=name, schema=str(table.schema))


def leaves(table, decimals_as_integers):
    """(path, physical type) of each leaf, as pyarrow will write them."""
    sink = io.BytesIO()
    pq.write_table(table.slice(0, 0), sink, store_decimal_as_integer=decimals_as_integers)
    schema = pq.ParquetFile(io.BytesIO(sink.getvalue())).schema
    return [(schema.column(at).path, schema.column(at).physical_type) for at in range(len(schema))]


def write_with_duckdb(manifest, random, name, table):
    def choose(*values):
        return values[int(random.integers(0, len(values)))]

    options = {
        "codec": f"'{choose(*DUCKDB_CODECS)}'",
        "parquet_version": choose("V1", "V2"),
        "row_group_size": choose(2048, 100_000),
        "data_page_size_limit": choose(512, 1 << 20),
        "dictionary_size_limit": choose(1, 100, 10_000),
    }
    text = ", ".join(f"{key} {value}" for key, value in options.items())

    def write(path):
        # Another database each time: an internal error, of which some schemas make one, ends it for good.
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.execute("SET preserve_insertion_order = true; SET TimeZone = 'UTC'")
            connection.register("nested_case", table)
            connection.execute(f"COPY (SELECT * FROM nested_case) TO '{path}' (FORMAT parquet, {text})")

    manifest.write(name, write, case=name, schema=str(table.schema))
