"""What pyarrow and DuckDB say of files' metadata, as JSON: `expect_metadata.py OUT.json GENERATED_DIR FILE...`.

First writes files of their own into GENERATED_DIR: with page indexes, sorting columns, NaNs, geometries."""

import datetime
import decimal
import json
import pathlib
import struct
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

PACKED = {"INT32": "<i", "INT64": "<q", "FLOAT": "<f", "DOUBLE": "<d"}


def generate(folder):
    rows = 3000
    table = pa.table(
        {
            "sorted": pa.array(range(rows), pa.int64()),
            "text": pa.array([None if row % 7 == 0 else f"text {row % 91}" for row in range(rows)]),
            "float": pa.array([float("nan") if row % 50 == 3 else row * -0.5 for row in range(rows)], pa.float32()),
            "zero": pa.array([0.0 if row % 2 else -0.0 for row in range(rows)]),
            "nulls": pa.array([None] * 2000 + list(range(rows - 2000)), pa.int32()),
            "unsigned": pa.array([row * 1_400_000 for row in range(rows)], pa.uint32()),
            "decimal": pa.array([decimal.Decimal(row - 1500) / 100 for row in range(rows)], pa.decimal128(30, 2)),
            "half": pa.array([row / 2 for row in range(rows)], pa.float16()),
            "time": pa.array([datetime.datetime(2024, 1, 1) + datetime.timedelta(row) for row in range(rows)]),
            "list": pa.array([[row, None] if row % 3 else None for row in range(rows)], pa.list_(pa.int16())),
            "texts": pa.array([["a" * (row % 5)] * (row % 4) for row in range(rows)], pa.list_(pa.string())),
        }
    )
    for version in ("1.0", "2.0"):
        pq.write_table(
            table,
            folder / f"pyarrow_{version}.parquet",
            data_page_version=version,
            write_page_index=True,
            data_page_size=2000,
            write_batch_size=100,
            row_group_size=1100,
            sorting_columns=[pq.SortingColumn(0), pq.SortingColumn(1, True, True)],
        )
    connection = duckdb.connect()
    geometry = "('POINT Z (' || i || ' ' || (i * 2) || ' ' || (-i) || ')')::GEOMETRY"
    connection.execute(
        f"COPY (SELECT i, CASE WHEN i % 5 = 0 THEN NULL ELSE {geometry} END AS place, 'text ' || i AS name,"
        f" CASE WHEN i % 9 = 0 THEN 'nan'::DOUBLE ELSE i / 3 END AS number FROM range(500) t(i))"
        f" TO '{folder}/duckdb.parquet' (FORMAT parquet, ROW_GROUP_SIZE 200, GEOPARQUET_VERSION 'V2')"
    )


def raw(column, value):
    """A bound as PLAIN, in hexadecimal; None for types whose raw form pyarrow does not give."""
    if value is None:
        return None
    if column.physical_type in PACKED:
        return struct.pack(PACKED[column.physical_type], value).hex()
    if column.physical_type == "BOOLEAN":
        return "01" if value else "00"
    return value.hex() if isinstance(value, bytes) else value.encode().hex()


def by_pyarrow(path):
    try:
        metadata = pq.read_metadata(path)
    except Exception as error:
        return {"error": str(error)}
    groups = []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = []
        for at in range(group.num_columns):
            try:
                column = group.column(at)
                statistics = column.statistics
            except Exception as error:
                columns.append({"error": str(error)})
                continue
            known = {"values": column.num_values, "indexes": [column.has_offset_index, column.has_column_index]}
            if statistics is not None:
                known["nulls"] = statistics.null_count if statistics.has_null_count else None
                known["distinct"] = statistics.distinct_count if statistics.has_distinct_count else None
                if statistics.has_min_max:
                    known["bounds"] = [raw(column, statistics.min_raw), raw(column, statistics.max_raw)]
            if column.is_geo_stats_set:
                geo = column.geo_statistics
                known["types"] = geo.geospatial_types
                sides = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax", "mmin", "mmax")
                known["box"] = [getattr(geo, side) for side in sides]
            columns.append(known)
        sorting = [[it.column_index, it.descending, it.nulls_first] for it in group.sorting_columns]
        groups.append({"rows": group.num_rows, "sorting": sorting, "columns": columns})
    return {"groups": groups}


def by_duckdb(path):
    """NaNs and whether bounds are exact, which pyarrow does not tell; and geometries as text."""
    connection = duckdb.connect()
    try:
        counts = connection.execute(
            "SELECT row_group_id, column_id, stats_nan_count, min_is_exact, max_is_exact"
            f" FROM parquet_metadata('{path}') ORDER BY ALL"
        ).fetchall()
        described = connection.execute(f"DESCRIBE SELECT * FROM '{path}'").fetchall()
        geometries = [name for name, kind, *_ in described if kind.startswith("GEO")]
        texts = {
            name: [row[0] for row in connection.execute(f'SELECT "{name}"::VARCHAR FROM \'{path}\'').fetchall()]
            for name in geometries
        }
        return {"counts": counts, "geometries": texts}
    except Exception as error:
        return {"error": str(error)}


out, folder, *files = sys.argv[1:]
generate(pathlib.Path(folder))
files += sorted(str(path) for path in pathlib.Path(folder).glob("*.parquet"))
answers = [{"file": path, "pyarrow": by_pyarrow(path), "duckdb": by_duckdb(path)} for path in files]
pathlib.Path(out).write_text(json.dumps(answers))
