"""Files by Polars: its codecs and its types; encodings and page versions are its own choice."""

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from . import data
from .manifest import Manifest

CODECS = ["uncompressed", "snappy", "gzip", "zstd", "lz4", "brotli"]
ROWS = 2000
PATTERNS = ["none", "some", "runs", "first", "all"]

# Arrow types that Polars has no type for, or that it turns into another one of this list.
LEFT_OUT = {"date64", "time32_s", "time32_ms", "time64_us", "timestamp_s", "duration_s", "uuid", "json", "bool8", "decimal256_76",
            "decimal32_5", "decimal64_18", "fixed_1", "fixed_5", "fixed_16", "large_string", "large_binary"}  # fmt: skip


def generate(out):
    manifest = Manifest(out, "polars", pl.__version__)
    pools, apart = probe(manifest)
    if apart:
        # pyarrow refuses the whole file for their sake: they get one of their own.
        write(manifest, "unreadable_by_pyarrow", frame(apart, ROWS, None), "snappy", sorted(apart))
    frames = {
        "wide": frame(pools, ROWS, None),
        "narrow": frame(pools, ROWS, 19),
    }
    types = sorted(pools)
    for codec in CODECS:
        for case, table in frames.items():
            write(manifest, case, table, codec, types, row_group_size=1100, data_page_size=2048)
    for rows in (0, 1, 33, 129):
        write(manifest, f"rows_{rows}", frame(pools, rows, None), "zstd", types)
    for case, table in frames.items():
        write(manifest, f"{case}_defaults", table, "zstd", types)
        write(manifest, f"{case}_statistics_full", table, "snappy", types, statistics="full")
        write(manifest, f"{case}_statistics_none", table, "snappy", types, statistics=False)
    rows, random = 100_000, data.rng("polars large")
    large = pl.DataFrame({
        "id": range(rows),
        "score": random.normal(0, 100, rows),
        "name": [f"name {pick}" for pick in random.integers(0, 20_000, rows).tolist()],
        "city": pl.Series([f"city {pick}" for pick in random.integers(0, 30, rows).tolist()], dtype=pl.Categorical),
        "flag": random.random(rows) < 0.02,
    })  # fmt: skip
    for codec in ("zstd", "uncompressed"):
        write(manifest, "large", large, codec, ["Int64", "Float64", "String", "Categorical", "Boolean"])
    manifest.close()


def own_series():
    """Polars' own types, as functions from an Arrow column of another type."""
    return {
        "categorical": ("string", lambda series: series.cast(pl.Categorical)),
        "enum": ("string", lambda series: series.cast(pl.Enum(series.drop_nulls().unique(maintain_order=True)))),
        "int128": ("int64", lambda series: series.cast(pl.Int128) * pl.Series([1_000_003], dtype=pl.Int128)),
        "uint128": ("uint64", lambda series: series.cast(pl.UInt128) * pl.Series([1_000_003], dtype=pl.UInt128)),
        "time": ("time64_ns", lambda series: series),
    }


def probe(manifest):
    """Two maps, name to a function (rows, pattern, distinct) -> Series: types that Polars writes and pyarrow reads
    back, and types that only Polars reads."""
    types, kept, apart = data.arrow_types(), {}, {}

    def imported(name):
        return lambda rows, pattern, distinct: pl.Series(pa_column(types, name, rows, pattern, distinct))

    def converted(source, convert):
        return lambda rows, pattern, distinct: convert(pl.Series(pa_column(types, source, rows, pattern, distinct)))

    makers = {name: imported(name) for name in types if name not in LEFT_OUT}
    makers |= {name: converted(source, convert) for name, (source, convert) in own_series().items()}
    for name, make in makers.items():
        path = f"{manifest.directory}/probe.parquet"
        try:
            for rows, pattern in ((50, "some"), (0, "none")):
                pl.DataFrame({"c": make(rows, pattern, None)}).write_parquet(path)
        except (Exception, pl.exceptions.PanicException) as error:
            # A panic of its Rust side derives from BaseException; an interrupt must still end the run.
            manifest.refuse(f"type {name}", error)
            continue
        try:
            pq.read_table(path)
            kept[name] = make
        except pa.ArrowException as error:
            manifest.refuse(f"type {name}: written, but pyarrow does not read it", error)
            apart[name] = make
    return kept, apart


def pa_column(types, name, rows, pattern, distinct):
    return data.column(name, types[name], rows, pattern, distinct if rows else None)


def frame(pools, rows, distinct):
    columns = {}
    for name, make in pools.items():
        for pattern in PATTERNS:
            columns[f"{name}__{pattern}"] = make(rows, pattern, distinct)
    return pl.DataFrame(columns)


def write(manifest, case, table, codec, types, **options):
    manifest.write(
        f"{case}_{codec}",
        lambda path: table.write_parquet(path, compression=codec, **options),
        case=case, codec=codec, page_version="chosen by Polars", encodings=["chosen by Polars"], types=types,
    )  # fmt: skip
