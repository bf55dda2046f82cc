"""Files by pyarrow: every flat type x encoding x codec x page version, and the edges."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from . import data
from .manifest import Manifest

CODECS = ["NONE", "SNAPPY", "GZIP", "ZSTD", "LZ4"]
PAGE_VERSIONS = ["1.0", "2.0"]

# Many pages a chunk and several row groups, from few rows.
ROWS = 1500
SMALL_PAGES = {"row_group_size": 900, "data_page_size": 1024, "write_batch_size": 64}

DELTA_INTS = "DELTA_BINARY_PACKED"
COLUMN_ENCODINGS = ["PLAIN", DELTA_INTS, "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT", "RLE"]

# In each family a type appears once for each of these.
PATTERNS = ["required", "some", "runs"]


def generate(out):
    manifest = Manifest(out, "pyarrow", pa.__version__)
    types = data.arrow_types()
    matrix(manifest, types, probe(types, manifest), "", {})
    decimals = {name: pool for name, pool in types.items() if name.startswith("decimal")}
    as_integers = {"store_decimal_as_integer": True}
    matrix(manifest, decimals, probe(decimals, manifest, **as_integers), "decimal_int_", as_integers)
    int96(manifest, types)
    null_patterns(manifest, types)
    sizes(manifest, types)
    deltas(manifest)
    dictionaries(manifest)
    long_strings(manifest)
    shapes(manifest)
    large(manifest)
    options(manifest, types)
    manifest.close()


def write(table, path, **arguments):
    for_all = {"compression": "NONE", "use_dictionary": False, "version": "2.6", **SMALL_PAGES}
    pq.write_table(table, path, **{**for_all, **arguments})


# ---------------------------------------------------------------------------------------------------------
# Type x encoding x codec x page version


def probe(types, manifest, **arguments):
    """Encoding to the types that pyarrow writes with it; "DICTIONARY" is one of the encodings."""
    allowed = {encoding: [] for encoding in [*COLUMN_ENCODINGS, "DICTIONARY"]}
    for name, pool in types.items():
        array = data.column(name, pool, 100)
        table = pa.table({"c": array})
        for encoding in allowed:
            asked = {"use_dictionary": True} if encoding == "DICTIONARY" else {"column_encoding": {"c": encoding}}
            try:
                sink = io.BytesIO()
                write(table, sink, **asked, **arguments)
                pq.read_table(io.BytesIO(sink.getvalue()))
            except Exception as error:
                # An encoding that the format does not define for the type is no gap of the writer.
                if encoding in ("PLAIN", "DICTIONARY"):
                    manifest.refuse(f"{name} as {encoding}", error)
                continue
            chunk = pq.read_metadata(io.BytesIO(sink.getvalue())).row_group(0).column(0)
            found = set(chunk.encodings)
            wanted = "RLE_DICTIONARY" if encoding == "DICTIONARY" else encoding
            # The writer may answer with another encoding and no error: booleans and nulls have no dictionary.
            if encoding == "RLE" and chunk.physical_type != "BOOLEAN":
                continue
            if wanted in found:
                allowed[encoding].append(name)
    return allowed


def families(allowed):
    """(family, {column suffix: (encoding, types)}, distinct values, write options)."""
    plain = {"PLAIN": allowed["PLAIN"]}
    dictionary = {"DICTIONARY": allowed["DICTIONARY"]}
    delta = {encoding: allowed[encoding] for encoding in COLUMN_ENCODINGS if encoding.startswith("DELTA")}
    split = {"BYTE_STREAM_SPLIT": allowed["BYTE_STREAM_SPLIT"], "RLE": allowed["RLE"]}
    return [
        ("plain", plain, None, {}),
        ("dictionary", dictionary, 37, {}),
        # The dictionary outgrows its limit inside a chunk: dictionary pages first, then PLAIN.
        ("fallback", dictionary, None, {"dictionary_pagesize_limit": 700}),
        ("delta", delta, None, {}),
        ("split", split, None, {}),
    ]  # fmt: skip


def matrix(manifest, types, allowed, prefix, arguments):
    tables = {}
    for turn, codec in enumerate(CODECS):
        for version, page_version in enumerate(PAGE_VERSIONS):
            for family, columns, distinct, extra in families(allowed):
                if family not in tables:
                    tables[family] = family_table(types, columns, distinct)
                table, encodings = tables[family]
                asked = {"use_dictionary": True} if "DICTIONARY" in columns else {"column_encoding": encodings}
                write_case(manifest, prefix + family, table, codec, page_version, sorted(columns),
                           # Options that leave the values alone take turns.
                           write_page_checksum=turn % 2 == 0, write_page_index=(turn + version) % 2 == 0,
                           store_schema=(turn + version) % 3 > 0, **asked, **extra, **arguments)  # fmt: skip
    for page_version in PAGE_VERSIONS:
        write_case(manifest, prefix + "plain", tables["plain"][0], "BROTLI", page_version, ["PLAIN"], **arguments)


def write_case(manifest, case, table, codec, page_version, encodings, **arguments):
    version = f"v{page_version[0]}"
    manifest.write(
        f"{case}_{codec.lower()}_{version}",
        lambda path: write(table, path, compression=codec, data_page_version=page_version, **arguments),
        case=case, codec=codec, page_version=version, encodings=encodings,
        types=sorted({field.name.split("__")[0] for field in table.schema}),
    )  # fmt: skip


def family_table(types, columns, distinct):
    fields, arrays, encodings = [], [], {}
    for encoding, names in columns.items():
        for name in names:
            for pattern in PATTERNS:
                if name == "null" and pattern != "some":
                    continue
                full = f"{name}__{encoding.lower()}__{pattern}"
                array = data.column(name, types[name], ROWS, pattern, distinct)
                fields.append(pa.field(full, array.type, nullable=pattern != "required"))
                arrays.append(array)
                encodings[full] = encoding
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields)), encodings


def int96(manifest, types):
    """INT96 timestamps, plain and dictionary; the seconds' range is Arrow's nanoseconds'."""
    for encoding, distinct in (("PLAIN", None), ("DICTIONARY", 23)):
        columns = {}
        for name in ("timestamp_ns", "timestamp_ns_zone"):
            for pattern in PATTERNS:
                columns[f"{name}__{pattern}"] = data.column(name, types[name], ROWS, pattern, distinct)
        for name, unit in (("timestamp_us", "us"), ("timestamp_ms", "ms")):
            bound = data.I64.max // 10**9 * {"us": 10**6, "ms": 10**3}[unit]
            pool = data.ints(pa.timestamp(unit), -bound, bound)
            columns[f"{name}__some"] = data.column(name, pool, ROWS, "some", distinct)
        for page_version in PAGE_VERSIONS:
            write_case(manifest, f"int96_{encoding.lower()}", pa.table(columns), "SNAPPY", page_version, [encoding],
                       use_deprecated_int96_timestamps=True, use_dictionary=encoding == "DICTIONARY")  # fmt: skip


# ---------------------------------------------------------------------------------------------------------
# Nulls and sizes

ONE_OF_EACH = ["bool", "int32", "int64", "float32", "float64", "float16", "string", "binary", "fixed_5", "fixed_16",
               "decimal128_38", "timestamp_us", "date32", "uint64", "int8"]  # fmt: skip


def null_patterns(manifest, types):
    patterns = ["none", "sparse", "half", "alternate", "first", "last", "runs", "all"]
    for distinct, encoding in ((None, "PLAIN"), (5, "DICTIONARY")):
        columns = {f"{name}__{pattern}": data.column(name, types[name], 2500, pattern, distinct)
                   for pattern in patterns for name in ONE_OF_EACH}  # fmt: skip
        for codec, page_version in (("NONE", "1.0"), ("NONE", "2.0"), ("SNAPPY", "1.0"), ("ZSTD", "2.0")):
            write_case(manifest, f"nulls_{encoding.lower()}", pa.table(columns), codec, page_version, [encoding],
                       use_dictionary=encoding == "DICTIONARY", row_group_size=2000, data_page_size=512)  # fmt: skip
    delta = {}
    for pattern in patterns:
        for name, encoding in (("int32", DELTA_INTS), ("int64", DELTA_INTS), ("string", "DELTA_LENGTH_BYTE_ARRAY"),
                               ("binary", "DELTA_BYTE_ARRAY"), ("float64", "BYTE_STREAM_SPLIT"), ("bool", "RLE")):  # fmt: skip
            delta[f"{name}__{pattern}"] = (data.column(name, types[name], 2500, pattern), encoding)
    table = pa.table({name: array for name, (array, _) in delta.items()})
    for page_version in PAGE_VERSIONS:
        write_case(manifest, "nulls_delta", table, "NONE", page_version, ["DELTA", "BYTE_STREAM_SPLIT", "RLE"],
                   column_encoding={name: encoding for name, (_, encoding) in delta.items()},
                   row_group_size=2000, data_page_size=512)  # fmt: skip


def sizes(manifest, types):
    """No row, one row, and counts around the sizes of delta blocks, miniblocks and bit-packed groups."""
    for rows in (0, 1, 2, 7, 8, 9, 31, 32, 33, 127, 128, 129, 130, 255, 256, 257, 258, 1025):
        page_version = PAGE_VERSIONS[rows % 2]
        columns = {f"{name}__{pattern}": data.column(name, types[name], rows, pattern)
                   for name in ONE_OF_EACH for pattern in ("none", "some")}  # fmt: skip
        encodings = {}
        for name, array in list(columns.items()):
            kind = array.type
            if pa.types.is_int32(kind) or pa.types.is_int64(kind):
                choice = DELTA_INTS
            elif pa.types.is_string(kind):
                choice = "DELTA_BYTE_ARRAY"
            elif pa.types.is_binary(kind):
                choice = "DELTA_LENGTH_BYTE_ARRAY"
            else:
                continue
            columns[f"{name}__delta"], encodings[f"{name}__delta"] = array, choice
        write_case(manifest, f"rows_{rows}", pa.table(columns), "SNAPPY", page_version, ["PLAIN", "DELTA"],
                   column_encoding=encodings)  # fmt: skip
        if rows in (0, 1, 9):
            write_case(manifest, f"rows_{rows}_dictionary", pa.table(columns), "ZSTD", page_version, ["DICTIONARY"],
                       use_dictionary=True)  # fmt: skip
    empty = pa.table({name: data.column(name, types[name], 0) for name in ONE_OF_EACH})

    def no_row_group(path):
        pq.ParquetWriter(path, empty.schema).close()

    def empty_row_groups(path):
        full = pa.table({name: data.column(name, types[name], 10) for name in ONE_OF_EACH})
        with pq.ParquetWriter(path, full.schema) as writer:
            for table in (empty, full, empty, full, empty):
                writer.write_table(table)

    manifest.write("row_groups_none", no_row_group, case="row_groups_none")
    manifest.write("row_groups_empty", empty_row_groups, case="row_groups_empty")


# ---------------------------------------------------------------------------------------------------------
# Encodings at their edges


def integer_series(dtype, rows):
    """Series that take the delta encoding to its corners: overflowing deltas, runs, every bit width."""
    info, at, random = np.iinfo(dtype), np.arange(rows, dtype=dtype), data.rng("deltas")
    bits = info.bits
    widths = np.concatenate([random.integers(0, 1 << min(width, 62), 64) for width in range(bits)])
    return {
        "constant": np.full(rows, -7, dtype),
        "rising": at * 3,
        "falling": -at * 5,
        "runs": at // 100,
        "steps": (at // 129) * 1000 + at % 2,
        "min_max": np.where(at % 2 == 0, info.min, info.max).astype(dtype),
        "max_min_rare": np.where(at % 67 == 0, info.min, np.where(at % 71 == 0, info.max, at)).astype(dtype),
        "random": random.integers(info.min, info.max, rows, dtype=dtype, endpoint=True),
        "sorted": np.sort(random.integers(info.min, info.max, rows, dtype=dtype, endpoint=True)),
        "every_width": np.resize(widths, rows).astype(dtype),
        "outlier_in_miniblock": np.where(at % 32 == 31, info.max // 3, 1).astype(dtype),
        "negative_small": (-(at % 5)).astype(dtype),
        "times": (np.cumsum(random.integers(0, 2000, rows)) + (1_700_000_000 if bits == 32 else 1_700_000_000_000)).astype(dtype),
    }  # fmt: skip


def deltas(manifest):
    columns = {}
    for dtype in ("int32", "int64"):
        for name, values in integer_series(dtype, 3000).items():
            columns[f"{dtype}_{name}"] = pa.array(values)
            mask = data.null_mask("some", data.rng(name), len(values))
            columns[f"{dtype}_{name}_nulls"] = pa.array(values, mask=mask)
    table = pa.table(columns)
    for page_version in PAGE_VERSIONS:
        encodings = {name: DELTA_INTS for name in columns}
        write_case(manifest, "delta_series", table, "NONE", page_version, [DELTA_INTS], column_encoding=encodings, data_page_size=4000)
        write_case(manifest, "dictionary_series", table, "LZ4", page_version, ["DICTIONARY"], use_dictionary=True)
    random = data.rng("string series")
    words = sorted(data.texts(random, 2000))
    series = {
        "sorted": words,
        "reversed": words[::-1],
        "equal": ["the same value again and again"] * 2000,
        "empty": [""] * 2000,
        "growing": ["x" * (row % 70) for row in range(2000)],
        "prefix_then_none": [("common prefix " * 3 if row % 2 else "") + str(row % 17) for row in range(2000)],
        "urls": [f"https://example.org/item/{row // 20}/photo-{row % 20}.jpg" for row in range(2000)],
    }
    strings = {}
    for name, values in series.items():
        strings[f"{name}__delta_length_byte_array"] = strings[f"{name}__delta_byte_array"] = pa.array(values)
    fixed = pa.array([f"{row:08}".encode() for row in range(2000)], pa.binary(8))
    strings["fixed__delta_byte_array"] = fixed
    for page_version in PAGE_VERSIONS:
        encodings = {name: name.split("__")[1].upper() for name in strings}
        write_case(manifest, "delta_strings", pa.table(strings), "NONE", page_version, sorted(set(encodings.values())),
                   column_encoding=encodings)  # fmt: skip


def dictionaries(manifest):
    """Index widths: 1 entry (0 bits), 2 (1 bit), ... 255, 256, 257, ... and 70,000 entries (17 bits)."""
    random = data.rng("dictionaries")
    columns = {}
    for entries in (1, 2, 3, 4, 5, 8, 9, 16, 17, 100, 255, 256, 257, 1000, 1500):
        picks = random.integers(0, entries, 3000)
        columns[f"int64_{entries}"] = pa.array(picks * 1_000_003)
        columns[f"string_{entries}"] = pa.array([f"entry {pick}" for pick in picks])
        columns[f"string_{entries}_nulls"] = pa.array([None if pick % 7 == 3 else f"entry {pick}" for pick in picks.tolist()])
        columns[f"runs_{entries}"] = pa.array(np.repeat(picks, 20)[:3000].astype(np.int32))
    for page_version in PAGE_VERSIONS:
        write_case(manifest, "dictionary_widths", pa.table(columns), "NONE", page_version, ["DICTIONARY"],
                   use_dictionary=True, row_group_size=3000)  # fmt: skip
    picks = np.concatenate([np.arange(70_000), random.integers(0, 70_000, 40_000)])
    wide = pa.table({"int32": picks.astype(np.int32) * 7, "string": pa.array([f"key-{pick}" for pick in picks.tolist()])})
    for page_version in PAGE_VERSIONS:
        write_case(manifest, "dictionary_70000", wide, "SNAPPY", page_version, ["DICTIONARY"], use_dictionary=True,
                   row_group_size=200_000, data_page_size=64 * 1024, dictionary_pagesize_limit=8 << 20)  # fmt: skip


def long_strings(manifest):
    random = data.rng("long strings")
    megabyte = "".join(random.choice(list("abcdefgh"), 1 << 20))
    values = ["short", None, megabyte, "", "x" * 70_000, megabyte[: 1 << 19], "end", None, megabyte[::-1]]
    kinds = ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
    table = pa.table({kind.lower(): pa.array(values) for kind in kinds})
    encodings = {kind.lower(): kind for kind in kinds}
    for codec, page_version in (("ZSTD", "1.0"), ("ZSTD", "2.0"), ("LZ4", "1.0"), ("SNAPPY", "2.0")):
        write_case(manifest, "long_strings", table, codec, page_version, kinds, column_encoding=encodings)
        write_case(manifest, "long_strings_dictionary", table, codec, page_version, ["DICTIONARY"], use_dictionary=True,
                   dictionary_pagesize_limit=16 << 20)  # fmt: skip


# ---------------------------------------------------------------------------------------------------------
# Shapes of files


def shapes(manifest):
    at = pa.array(np.arange(3000))
    manifest.write("row_groups_60", lambda path: write(pa.table({"a": at, "b": at.cast(pa.string())}), path, row_group_size=50),
                   case="row_groups_60")  # fmt: skip
    wide = pa.table({f"column_{index:03}": pa.array(np.arange(20) * index) for index in range(500)})
    manifest.write("columns_500", lambda path: write(wide, path), case="columns_500")
    names = ["", " ", "with space", "with.dot", 'quote"', "semi;colon", "ÜberSpalte", "列", "😀", "select", "a" * 300, "a\nb", "MiXeD", "mixed"]
    arrays = [pa.array([index, None, -index]) for index in range(len(names))]
    manifest.write("names", lambda path: write(pa.table(arrays, names=names), path), case="names")
    twice = pa.table([pa.array([1, 2]), pa.array(["x", "y"]), pa.array([3.5, None])], names=["a", "a", "b"])
    manifest.write("names_twice", lambda path: write(twice, path), case="names_twice")
    many = at.take(pa.array(np.arange(3000)))
    manifest.write("pages_of_one_row", lambda path: write(pa.table({"a": many, "b": many.cast(pa.string())}), path,
                   max_rows_per_page=1, row_group_size=1000, write_batch_size=1), case="pages_of_one_row")  # fmt: skip
    struct = pa.array([None if row % 5 == 0 else {"a": row, "b": None if row % 3 == 0 else f"text {row}",
                       "inner": None if row % 7 == 0 else {"c": row / 4}} for row in range(1000)])  # fmt: skip
    for page_version in PAGE_VERSIONS:
        write_case(manifest, "struct", pa.table({"s": struct, "flat": pa.array(range(1000))}), "SNAPPY", page_version, ["PLAIN"])


def large(manifest):
    """A hundred thousand rows with pages of the default size."""
    rows, random = 100_000, data.rng("large")
    columns = {
        "id": pa.array(np.arange(rows)),
        "int32": pa.array(random.integers(-(10**6), 10**6, rows, dtype=np.int32), mask=random.random(rows) < 0.1),
        "double": pa.array(random.normal(0, 1e3, rows), mask=random.random(rows) < 0.5),
        "float": pa.array(random.normal(0, 1e3, rows).astype(np.float32)),
        "bool": pa.array(random.random(rows) < 0.01),
        "city": pa.array(np.array(["Tallinn", "Tartu", "Narva", "a rather long name of a place", ""])[random.integers(0, 5, rows)]),
        "key": pa.array([f"user-{pick:07}" for pick in random.integers(0, 10**6, rows).tolist()]),
        "time": pa.array(np.cumsum(random.integers(0, 10**6, rows)) + 1_700_000_000_000_000, pa.timestamp("us")),
    }
    table = pa.table(columns)
    whole = {"row_group_size": 1 << 20, "data_page_size": 1 << 20, "write_batch_size": 1024}
    delta = {"id": DELTA_INTS, "int32": DELTA_INTS, "time": DELTA_INTS, "key": "DELTA_BYTE_ARRAY",
             "city": "DELTA_LENGTH_BYTE_ARRAY", "double": "BYTE_STREAM_SPLIT", "float": "BYTE_STREAM_SPLIT", "bool": "RLE"}  # fmt: skip
    write_case(manifest, "large_plain", table, "NONE", "1.0", ["PLAIN"], **whole)
    write_case(manifest, "large_plain", table, "GZIP", "2.0", ["PLAIN"], **whole)
    for page_version in PAGE_VERSIONS:
        write_case(manifest, "large_dictionary", table, "SNAPPY", page_version, ["DICTIONARY"], use_dictionary=True, **whole)
        write_case(manifest, "large_delta", table, "ZSTD", page_version, sorted(set(delta.values())), column_encoding=delta, **whole)


def options(manifest, types):
    """Options that add parts to a file, and the older format versions."""
    base = {name: data.column(name, types[name], 1200, "some", 50) for name in ONE_OF_EACH}
    table = pa.table(base)
    cases = {
        "page_index": {"write_page_index": True},
        "statistics_none": {"write_statistics": False},
        "format_1_0": {"version": "1.0", "coerce_timestamps": "ms", "allow_truncated_timestamps": True},
        "format_2_4": {"version": "2.4"},
        "flavor_spark": {"flavor": "spark"},
        "bloom_filter": {"bloom_filter_options": {"int64": {"ndv": 100, "fpp": 0.05}, "string": {"ndv": 100, "fpp": 0.05}}},
        "sorting_columns": {"sorting_columns": [pq.SortingColumn(0), pq.SortingColumn(2, descending=True)]},
        "content_defined_chunks": {"use_content_defined_chunking": True},
        "gzip_level_9": {"compression": "GZIP", "compression_level": 9},
        "zstd_level_19": {"compression": "ZSTD", "compression_level": 19},
        "codec_each_column": {"compression": dict(zip(ONE_OF_EACH, (CODECS * 3), strict=False))},
    }
    for name, arguments in cases.items():
        for page_version in PAGE_VERSIONS:
            manifest.write(
                f"option_{name}_v{page_version[0]}",
                lambda path, arguments=arguments, page_version=page_version: write(
                    table, path, **{"use_dictionary": True, "data_page_version": page_version, **arguments}
                ),
                case=name, page_version=f"v{page_version[0]}",
            )  # fmt: skip
    meta = table.replace_schema_metadata({"key": "value", "long": "x" * 20_000, "empty": ""})
    manifest.write("option_key_values", lambda path: write(meta, path, store_schema=False), case="key_values")
