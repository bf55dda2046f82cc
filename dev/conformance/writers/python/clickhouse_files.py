#!/usr/bin/env python3
"""Writes files with ClickHouse's own Parquet writer (the package chdb): OUT/clickhouse/*.parquet.

    clickhouse_files.py OUT
"""

import sys
from pathlib import Path

import chdb

FLAT = """
SELECT number AS n, toUInt8(number) AS u8, toUInt16(number * 999) AS u16, toUInt32(number * 99999999) AS u32,
    number * 1234567890123456789 AS u64, toInt8(number - 100) AS i8, toInt16(-number) AS i16, toInt32(-number) AS i32,
    toInt64(-number) AS i64, toInt128(number) * toInt128('-1000000000000000000000000000') AS i128,
    toUInt128(number) AS u128, toInt256(-number) AS i256, toUInt256(number) AS u256, toFloat32(number / 3) AS f32,
    sqrt(number) AS f64, number % 2 = 0 AS b, toString(number) AS s, toFixedString(toString(number % 10), 3) AS fs,
    toDate(number * 100) AS d, toDate32(toInt32(number) * 1000 - 25000) AS d32,
    toDateTime(number * 1000000, 'UTC') AS dt, toDateTime64(number * 1.5, 0, 'UTC') AS dt0,
    toDateTime64(number * 1.5, 3, 'UTC') AS dt3, toDateTime64(number * 1.5, 6, 'UTC') AS dt6,
    toDateTime64(number * 1.5, 9, 'UTC') AS dt9, toDecimal32(number / 7, 3) AS dec32,
    toDecimal64(number / 7, 5) AS dec64, toDecimal128(number / 7, 10) AS dec128, toDecimal256(number / 7, 20) AS dec256,
    toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') AS uuid, toIPv4('1.2.3.4') AS ip4, toIPv6('2001:db8::1') AS ip6,
    CAST(number % 3, 'Enum8(\\'a\\' = 0, \\'b\\' = 1, \\'c\\' = 2)') AS e8, toLowCardinality(toString(number % 3)) AS lc,
    CAST(if(number % 4 = 0, NULL, toString(number % 3)), 'LowCardinality(Nullable(String))') AS lcn,
    if(number % 3 = 0, NULL, number) AS nn, if(number % 3 = 0, NULL, toString(number)) AS ns
FROM numbers({rows})"""
NESTED = """
SELECT number AS n, range(number % 5) AS a, arrayMap(x -> toString(x), range(number % 4)) AS sa,
    arrayMap(x -> if(x % 2 = 0, NULL, x), range(number % 4)) AS na, arrayMap(x -> range(x), range(number % 4)) AS aa,
    arrayMap(x -> arrayMap(y -> arrayMap(z -> toString(z), range(y)), range(x)), range(number % 4)) AS aaa,
    tuple(number, toString(number)) AS t,
    CAST(tuple(number, [toString(number)], tuple(1.5, NULL)),
        'Tuple(a UInt64, b Array(String), c Tuple(x Float64, y Nullable(Int8)))') AS nt,
    map('k', number, 'l', number * 2) AS m,
    CAST(map(number, [tuple(number, 'x')]), 'Map(UInt64, Array(Tuple(p UInt32, q String)))') AS mm,
    arrayMap(x -> tuple(x, toString(x)), range(number % 3)) AS at,
    CAST(range(number % 3), 'Array(LowCardinality(String))') AS alc, CAST(map(), 'Map(String, String)') AS e
FROM numbers({rows})"""

# The settings' names without `output_format_parquet_`.
WAYS = {
    "": {},
    "none": {"compression_method": "none"},
    "snappy": {"compression_method": "snappy"},
    "lz4": {"compression_method": "lz4"},
    "brotli": {"compression_method": "brotli"},
    "gzip": {"compression_method": "gzip"},
    "pages": {"data_page_size": 100, "batch_size": 10},
    "row_groups": {"row_group_size": 17},
    "no_dictionary": {"max_dictionary_size": 0},
    "as_bytes": {"string_as_string": 0, "fixed_string_as_fixed_byte_array": 0, "enum_as_byte_array": 0,
                 "datetime_as_uint32": 1, "date_as_uint16": 1},
    "bloom": {"write_bloom_filter": 1, "write_page_index": 1, "write_checksums": 1},
}  # fmt: skip


def main(out):
    folder = Path(out).resolve() / "clickhouse"
    folder.mkdir(parents=True, exist_ok=True)
    for name, query in (("flat", FLAT), ("nested", NESTED)):
        for way, settings in WAYS.items():
            write(folder / f"{name}{'_' * bool(way)}{way}.parquet", query.format(rows=100), settings)
        write(folder / f"{name}_no_rows.parquet", query.format(rows=0), {})
        write(folder / f"{name}_few.parquet", query.format(rows=20), {"compression_method": "brotli"})
    write(folder / "geo.parquet", "SELECT (number, 2.5)::Point AS p, [(0, 0), (1, 1)]::Array(Point) AS l FROM numbers(3)", {})


def write(path, query, settings):
    path.unlink(missing_ok=True)
    settings = [f"output_format_parquet_{name} = {value!r}" for name, value in settings.items()]
    settings.append("max_block_size = 17" if "row_group" in path.name else "max_threads = 1")
    chdb.query(f"INSERT INTO FUNCTION file('{path}', 'Parquet') {query} SETTINGS {', '.join(settings)}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
