"""Files by DuckDB: its codecs, both of its Parquet versions (V2 brings the delta encodings), and its types."""

import duckdb

from .manifest import Manifest

CODECS = ["uncompressed", "snappy", "gzip", "zstd", "lz4_raw", "brotli"]
VERSIONS = ["V1", "V2"]
ROWS = 5000

# SQL of a value from the key `k` (BIGINT, 0..) and its 64-bit hash `h`.
TYPES = {
    "boolean": "h % 3 = 0",
    "tinyint": "(h % 256)::INTEGER::BIGINT - 128",
    "smallint": "(h % 65536)::BIGINT - 32768",
    "integer": "(h % 4294967296)::BIGINT - 2147483648",
    "integer_rising": "k * 3 - 100",
    "bigint": "(h::HUGEINT - 9223372036854775808)",
    "bigint_rising": "k * 1000 + 1700000000000",
    "utinyint": "h % 256",
    "usmallint": "h % 65536",
    "uinteger": "h % 4294967296",
    "ubigint": "h",
    "hugeint": "h::HUGEINT * 1000003 - 77",
    "uhugeint": "h::UHUGEINT * 1000003",
    "float": "CASE k % 50 WHEN 1 THEN 'nan' WHEN 2 THEN 'inf' WHEN 3 THEN '-inf' WHEN 4 THEN '-0' ELSE ((h % 1000000) / 100.0 - 5000)::VARCHAR END",
    "double": "CASE k % 50 WHEN 1 THEN 'nan' WHEN 2 THEN 'inf' WHEN 3 THEN '-inf' WHEN 4 THEN '-0' ELSE (h / 1e7 - 5e11)::VARCHAR END",
    "decimal_4": "(h % 19999)::INTEGER / 10 - 999.9",
    "decimal_9": "((h % 1999999999)::BIGINT - 999999999)::DECIMAL(18,0) / 100",
    "decimal_18": "((h % 1999999999999999999)::HUGEINT - 999999999999999999)::DECIMAL(38,0) * 0.001",
    "decimal_38": "(h::HUGEINT * 4611686018427387904 - k)::DECIMAL(38,0) * 0.1",
    "varchar": "CASE k % 11 WHEN 0 THEN '' WHEN 1 THEN repeat('ä', (h % 30)::INTEGER) WHEN 2 THEN '😀' || h WHEN 3 THEN 'a' || chr(0) || 'b' "
    "WHEN 4 THEN 'twelve bytes' WHEN 5 THEN 'thirteen byte' ELSE 'shared/prefix/' || (h % 100000) END",
    "blob": "CASE k % 5 WHEN 0 THEN ''::BLOB WHEN 1 THEN '\\x00\\xFF'::BLOB ELSE unhex(md5(h::VARCHAR)) END",
    "uuid": "md5(h::VARCHAR)",
    "date": "DATE '1970-01-01' + ((h % 4000000)::INTEGER - 700000)",
    "time": "TIME '00:00:00' + to_microseconds((h % 86400000000)::BIGINT)",
    "time_ns": "TIME '00:00:00' + to_microseconds((h % 86400000000)::BIGINT)",
    "timetz": "TIME '00:00:00' + to_microseconds((h % 86400000000)::BIGINT)",
    "timestamp": "make_timestamp((h % 200000000000000000)::BIGINT - 100000000000000000)",
    "timestamp_s": "make_timestamp((h % 200000000000)::BIGINT * 1000000 - 100000000000000000)",
    "timestamp_ms": "make_timestamp((h % 200000000000000)::BIGINT * 1000 - 100000000000000000)",
    "timestamp_ns": "make_timestamp_ns((h % 9000000000000000000)::BIGINT - 4500000000000000000)",
    "timestamptz": "make_timestamp((h % 200000000000000000)::BIGINT - 100000000000000000)",
    "interval": "to_months((h % 100)::INTEGER) + to_days((h % 31)::INTEGER) + to_milliseconds((h % 86400000)::BIGINT)",
    "enum": "CASE h % 4 WHEN 0 THEN 'small' WHEN 1 THEN 'medium' WHEN 2 THEN 'large' ELSE 'extra large' END",
    "json": "'{\"k\":' || k || ',\"v\":[true,null,\"' || (h % 100) || '\"]}'",
    "bit": "'1' || bin((h % 100000)::BIGINT)",
    "time_ns_2": "TIME '23:59:59.999999'",
    "bignum": "h",
    "geometry": "'POINT (' || (k % 180) || ' ' || (h % 90) || ')'",
    "null": "NULL",
}  # fmt: skip

# VARIANT of one type, which DuckDB shreds, and of several.
VARIANTS = {
    "variant_integer": "k",
    "variant_text": "'text ' || (h % 300)",
    "variant_struct": "{'a': k, 'b': 'x' || (h % 7), 'c': [h % 5, NULL, k]}",
    "variant_mixed": "CASE k % 5 WHEN 0 THEN k::VARIANT WHEN 1 THEN ('s' || h)::VARIANT WHEN 2 THEN [k, k + 1]::VARIANT "
    "WHEN 3 THEN {'a': {'b': k % 3 = 0}}::VARIANT ELSE (k / 4.0)::DECIMAL(18,3)::VARIANT END",
}  # fmt: skip

SQL_TYPES = {"integer_rising": "INTEGER", "bigint_rising": "BIGINT", "decimal_4": "DECIMAL(4,1)", "decimal_9": "DECIMAL(9,2)",
             "decimal_18": "DECIMAL(18,3)", "decimal_38": "DECIMAL(38,1)", "time_ns_2": "TIME_NS", "null": "INTEGER",
             **dict.fromkeys(VARIANTS, "VARIANT"), "enum": "ENUM ('small', 'medium', 'large', 'extra large')"}  # fmt: skip

# SQL of "this row is null" from the row's number `i`.
PATTERNS = {"none": "false", "some": "hash(i * 7919) % 6 = 0", "runs": "(i // 130) % 2 = 0", "first": "i < 2100"}


def generate(out):
    manifest = Manifest(out, "duckdb", duckdb.__version__)
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("SET preserve_insertion_order = true; SET TimeZone = 'UTC'")
    types = probe(connection, manifest)
    select = {
        "wide": query(types, ROWS, "i"),
        "narrow": query(types, ROWS, "(hash(i) % 23)::BIGINT"),
    }
    # No type brings a dictionary of more than half the rows, so the wide file is the one without.
    for codec in CODECS:
        for version in VERSIONS:
            for case in ("wide", "narrow") if codec != "brotli" else ("narrow",):
                options = {"dictionary_size_limit": 1} if case == "wide" else {}
                copy(manifest, connection, case, select[case], codec, version, sorted(types), **options)
    for version in VERSIONS:
        copy(manifest, connection, "defaults", select["wide"], "snappy", version, sorted(types))
        for rows in (0, 1, 100):
            copy(manifest, connection, f"rows_{rows}", query(types, rows, "i"), "snappy", version, sorted(types))
        stamps = {name: sql for name, sql in types.items() if name.startswith("timestamp")}
        copy(manifest, connection, "int96", query(stamps, ROWS, "i"), "snappy", version, sorted(stamps), write_timestamp_as_int96="true")
        copy(manifest, connection, "small_pages", select["narrow"], "zstd", version, sorted(types), data_page_size_limit=1024,
             row_group_size=8192)  # fmt: skip
        variants = query(VARIANTS, 500, "i")
        copy(manifest, connection, "variant", variants, "zstd", version, ["VARIANT"])
        copy(manifest, connection, "bloom_filter", select["narrow"], "zstd", version, sorted(types), write_bloom_filter="true")
        large = f"""SELECT i AS id, (i * 7919 % 100003)::INTEGER AS number, 'user-' || (hash(i) % 50000) AS name,
                    (hash(i) % 1000000) / 1000.0::DOUBLE AS score, CASE WHEN i % 10 = 0 THEN NULL ELSE 'city ' || i % 40 END AS city,
                    TIMESTAMP '2024-01-01' + to_seconds(i) AS time FROM range(100000) t(i)"""
        copy(manifest, connection, "large", large, "zstd", version, ["BIGINT", "INTEGER", "VARCHAR", "DOUBLE", "TIMESTAMP"],
             row_group_size=40_960)  # fmt: skip
    manifest.close()


def sql_type(name):
    return SQL_TYPES.get(name, name.upper())


def probe(connection, manifest):
    """The types that this DuckDB both makes and writes to Parquet."""
    kept = {}
    for name in TYPES:
        try:
            connection.execute(f"CREATE OR REPLACE TEMP TABLE probe AS {query({name: TYPES[name]}, 300, 'i')}")
            connection.execute(f"COPY probe TO '{manifest.directory}/probe.parquet' (FORMAT parquet)")
            kept[name] = TYPES[name]
        except duckdb.Error as error:
            manifest.refuse(f"type {sql_type(name)}", error)
    return kept


def query(types, rows, key):
    columns = ["i AS row_number"]
    for name, sql in types.items():
        for pattern, is_null in PATTERNS.items():
            value = f"({sql})::{sql_type(name)}"
            columns.append(f"CASE WHEN {is_null} THEN NULL ELSE {value} END AS {name}__{pattern}")
    inner = f"SELECT i, {key} AS k, hash({key} + 12345) AS h FROM range({rows}) t(i)"
    return f"SELECT {', '.join(columns)} FROM ({inner}) ORDER BY i"


def copy(manifest, connection, case, select, codec, version, types, **options):
    # Row groups are whole vectors of 2,048 rows: this is the smallest one.
    asked = {"codec": f"'{codec}'", "parquet_version": version, "row_group_size": 2048, **options}
    text = ", ".join(f"{name} {value}" for name, value in asked.items())
    manifest.write(
        f"{case}_{codec}_{version.lower()}",
        lambda path: connection.execute(f"COPY ({select}) TO '{path}' (FORMAT parquet, {text})"),
        case=case, codec=codec, page_version=f"parquet_version {version}", encodings=["chosen by DuckDB"], types=types,
    )  # fmt: skip
