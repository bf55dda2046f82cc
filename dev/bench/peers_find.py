#!/usr/bin/env python3
"""Look-ups by the peers that are Python packages: the query engines DuckDB, Polars, DataFusion and pyarrow's dataset, and Vortex, on one
thread each.

    peers_find.py NAME FILE COLUMN KEYS [MODE]  looks the first KEYS of the file's keys up in a column, and prints the times
    peers_find.py NAME version

What can be kept between look-ups is kept: a connection and a prepared query, a dataset with its metadata, a lazy frame, a mapped file.
The file's bytes come from the page cache. Each looks for the key column alone, or with the mode `rows` for all columns; with the mode
`cold` it opens the file for each look-up. A look-up is run twice for each key, and the second time counts.

Vortex has a file of its own, which is made of the Parquet file when it is missing.
"""

import json
import os
import sys
import time

os.environ["POLARS_MAX_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"

STRING_BYTES = 124
MASK = (1 << 64) - 1


def string(number):
    """As `find.rs` makes it."""
    text = f"{number:012}"
    state = (number * 0x9E37_79B9_7F4A_7C15 & MASK) | 1
    while len(text) < STRING_BYTES:
        state ^= state << 13 & MASK
        state ^= state >> 7
        state ^= state << 17 & MASK
        text += chr(ord("a") + state % 26)
    return text


def value(column, number):
    if column == "string":
        return string(number)
    return float(number) if column in ("float", "double") else number


def duckdb(path, column, wanted):
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.execute("SET parquet_metadata_cache = true")
    columns = ", ".join(f'"{name}"' for name in wanted)
    query = f"SELECT {columns} FROM read_parquet('{path}') WHERE \"{column}\" = ?"
    return lambda key: len(connection.execute(query, [key]).fetchall())


def polars(path, column, wanted):
    import polars as pl

    frame = pl.scan_parquet(path).select(wanted)
    kind = {"int32": pl.Int32, "int64": pl.Int64, "float": pl.Float32, "double": pl.Float64, "string": pl.String}[column]
    return lambda key: frame.filter(pl.col(column) == pl.lit(key, kind)).collect().height


def pyarrow(path, column, wanted):
    import pyarrow as pa
    import pyarrow.dataset as ds

    pa.set_cpu_count(1)
    dataset = ds.dataset(path, format="parquet")
    for fragment in dataset.get_fragments():
        fragment.ensure_complete_metadata()
    kind = dataset.schema.field(column).type
    return lambda key: dataset.to_table(columns=wanted, filter=ds.field(column) == pa.scalar(key, kind)).num_rows


def datafusion(path, column, wanted):
    from datafusion import SessionConfig, SessionContext, col, lit
    import pyarrow as pa

    options = {
        "datafusion.execution.target_partitions": "1",
        "datafusion.execution.parquet.pushdown_filters": "true",
        "datafusion.execution.parquet.bloom_filter_on_read": "true",
    }
    context = SessionContext(SessionConfig(options))
    context.register_parquet("t", path)
    table = context.table("t")
    kind = table.schema().field(column).type
    kind = pa.string() if column == "string" else kind
    columns = [col(name) for name in wanted]
    return lambda key: sum(
        batch.num_rows for batch in table.filter(col(column) == lit(pa.scalar(key, kind))).select(*columns).collect()
    )


def vortex(path, column, wanted):
    import vortex as vx
    import vortex.expr as ve

    # The one that asks works, too.
    vx.set_worker_threads(0)
    file = vx.open(vortex_file(path), memory_map=True)
    kinds = {"int32": (vx.int_, 32), "int64": (vx.int_, 64), "float": (vx.float_, 32), "double": (vx.float_, 64)}
    kind = vx.utf8() if column == "string" else kinds[column][0](kinds[column][1])
    return lambda key: len(file.scan(wanted, expr=ve.column(column) == ve.literal(kind, key)).read_all())


def vortex_file(path):
    """Makes Vortex's file, in batches as large as Parquet's row groups need not be."""
    import pyarrow.parquet as pq
    import vortex as vx

    made = path.removesuffix(".parquet") + ".vortex"
    if not os.path.exists(made):
        file = pq.ParquetFile(path)
        batches = pq.ParquetFile(path).iter_batches(batch_size=65536)
        import pyarrow as pa

        vx.io.write(pa.RecordBatchReader.from_batches(file.schema_arrow, batches), made + ".unfinished")
        os.rename(made + ".unfinished", made)
    return made


FINDERS = {"duckdb": duckdb, "polars": polars, "pyarrow": pyarrow, "datafusion": datafusion, "vortex": vortex}
COLUMNS = ["int32", "int64", "float", "double", "string"]


def version(name):
    import importlib.metadata

    return importlib.metadata.version({"vortex": "vortex-data"}.get(name, name))


def main():
    name = sys.argv[1]
    if sys.argv[2:] == ["version"]:
        print(version(name))
        return
    path, column, count = sys.argv[2], sys.argv[3], int(sys.argv[4])
    mode = sys.argv[5] if len(sys.argv) > 5 else "memory"
    wanted = COLUMNS if mode == "rows" else [column]
    if name == "vortex":
        vortex_file(path)
    with open(path.removesuffix(".parquet") + ".keys.json") as keys:
        keys = json.load(keys)[:count]
    start = time.perf_counter()
    find = FINDERS[name](path, column, wanted)
    opened = time.perf_counter() - start
    if mode == "cold":
        find = lambda key: FINDERS[name](path, column, wanted)(key)
    times = {"member": [], "absent": []}
    for number, row in keys:
        key = value(column, number)
        find(key)
        start = time.perf_counter()
        found = find(key)
        took = time.perf_counter() - start
        if found != (row is not None):
            sys.exit(f"{name}: {found} rows of {key}")
        times["absent" if row is None else "member"].append(took * 1e6)
    for kind, micros in times.items():
        micros.sort()
        median, late = micros[len(micros) // 2], micros[len(micros) * 99 // 100]
        times[kind] = {"median": median, "p99": late, "count": len(micros)}
    print(json.dumps({"version": version(name), "open": opened * 1e6, "times": times}))


if __name__ == "__main__":
    main()
