"""Files by fastparquet: its codecs, INT96 times, object encodings and categories."""

from decimal import Decimal

import fastparquet
import numpy as np
import pandas as pd

from . import data
from .manifest import Manifest

CODECS = ["UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW", "BROTLI"]
ROWS = 1500


def generate(out):
    manifest = Manifest(out, "fastparquet", fastparquet.__version__)
    columns = probe(manifest)
    for codec in CODECS:
        for has_nulls in (True, False):
            case = "nullable" if has_nulls else "required"
            write(manifest, f"{case}_{codec.lower()}", pd.DataFrame(columns), codec, has_nulls=has_nulls)
    # Columns with nulls can only be written as nullable ones.
    with_nulls = pd.DataFrame({name: punched(name, series) for name, series in columns.items()})
    for codec in CODECS:
        write(manifest, f"nulls_{codec.lower()}", with_nulls, codec, has_nulls=True)
    stamps = {name: series for name, series in columns.items() if name.startswith("datetime")}
    for codec in ("SNAPPY", "GZIP"):
        write(manifest, f"int96_{codec.lower()}", pd.DataFrame(stamps), codec, times="int96")
    for rows in (0, 1, 9):
        write(manifest, f"rows_{rows}", pd.DataFrame(columns).iloc[:rows], "SNAPPY")
    objects(manifest)
    rows, random = 100_000, data.rng("fastparquet large")
    large = pd.DataFrame({"id": np.arange(rows), "score": random.normal(0, 1, rows),
                          "name": pd.Categorical([f"name {pick}" for pick in random.integers(0, 300, rows)])})  # fmt: skip
    write(manifest, "large_gzip", large, "GZIP", row_group_offsets=60_000)
    manifest.close()


def candidates():
    columns = {"bool": pd.Series(data.rng("bool").random(ROWS) < 0.5)}
    for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
        random, info = data.rng(kind), np.iinfo(kind)
        values = random.integers(info.min, info.max, ROWS, dtype=kind, endpoint=True)
        values[:4] = [info.min, info.max, 0, 1]
        columns[kind] = pd.Series(values)
    for kind in (16, 32, 64):
        columns[f"float{kind}"] = pd.Series(data.floats(getattr(data.pa, f"float{kind}")())(data.rng(f"float{kind}"), ROWS).to_numpy())
    seconds = data.rng("datetimes").integers(-(10**9), 4 * 10**9, ROWS)
    for unit, factor in (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)):
        columns[f"datetime_{unit}"] = pd.Series((seconds * factor + 3 * (factor > 1)).view(f"M8[{unit}]"))
        columns[f"timedelta_{unit}"] = pd.Series((seconds * factor).view(f"m8[{unit}]"))
    columns["datetime_us_utc"] = pd.Series((seconds * 10**6).view("M8[us]")).dt.tz_localize("UTC")
    columns["datetime_ns_zone"] = pd.Series((seconds * 10**9).view("M8[ns]")).dt.tz_localize("UTC").dt.tz_convert("Europe/Tallinn")
    texts = data.texts(data.rng("fastparquet texts"), ROWS)
    columns["string"] = pd.Series(texts, dtype=object)
    columns["string_dtype"] = pd.Series(texts, dtype="str")
    columns["bytes"] = pd.Series(data.binaries(data.pa.binary())(data.rng("bytes"), ROWS).to_pylist(), dtype=object)
    columns["category"] = pd.Series(pd.Categorical([texts[pick] for pick in data.rng("categories").integers(0, 40, ROWS)]))
    columns["category_wide"] = pd.Series(pd.Categorical([texts[pick] for pick in data.rng("wide").integers(0, 1200, ROWS)]))
    columns["category_one"] = pd.Series(pd.Categorical(["the only one"] * ROWS))
    columns["category_int"] = pd.Series(pd.Categorical(data.rng("ints").integers(0, 300, ROWS) * 1000))
    for kind in ("Int8", "Int32", "Int64", "UInt16", "Float64"):
        columns[f"masked_{kind}"] = pd.Series(data.rng(kind).integers(0, 100, ROWS)).astype(kind)
    columns["masked_boolean"] = columns["bool"].astype("boolean")
    return columns


def probe(manifest):
    """The columns that fastparquet writes."""
    kept = {}
    for name, series in candidates().items():
        path = f"{manifest.directory}/probe.parquet"
        try:
            for some in (series, punched(name, series)):
                fastparquet.write(path, some.to_frame("c"), compression="SNAPPY")
            kept[name] = series
        except Exception as error:
            manifest.refuse(f"type {name}", error)
    return kept


def punched(name, series):
    """The series with nulls, where its dtype can hold them; NaN is fastparquet's null for floats."""
    if series.dtype.kind in "biu" and not pd.api.types.is_extension_array_dtype(series.dtype):
        return series
    pattern = ["some", "runs", "first", "half"][len(name) % 4]
    mask = data.null_mask(pattern, data.rng(name), len(series))
    return series.mask(pd.Series(mask))


def objects(manifest):
    """`object_encoding`: what fastparquet makes of Python objects when it is told."""
    rows, texts = 600, data.texts(data.rng("objects"), 600)
    cases = {
        "utf8": texts,
        "bytes": [text.encode() for text in texts],
        "json": [{"key": row, "text": text} for row, text in enumerate(texts)],
        "bool": [row % 3 == 0 for row in range(rows)],
        "int": [row * 7 - 100 for row in range(rows)],
        "int32": [row * 7 - 100 for row in range(rows)],
        "float": [row / 8 for row in range(rows)],
        "decimal": [Decimal(row) / 8 for row in range(rows)],
        "bson": [{"key": row} for row in range(rows)],
    }
    for encoding, values in cases.items():
        holed = [None if row % 9 == 4 else value for row, value in enumerate(values)]
        table = pd.DataFrame({"full": pd.Series(values, dtype=object), "holed": pd.Series(holed, dtype=object)})
        write(manifest, f"object_{encoding}", table, "SNAPPY", object_encoding=encoding)
    fixed = pd.DataFrame({"fixed": pd.Series([f"{row:08}".encode() for row in range(rows)], dtype=object)})
    write(manifest, "fixed_text", fixed, "SNAPPY", object_encoding="bytes", fixed_text={"fixed": 8})


def write(manifest, case, table, codec, **options):
    asked = {"row_group_offsets": 800, "write_index": False, **options}
    manifest.write(
        case,
        lambda path: fastparquet.write(path, table, compression=codec, **asked),
        case=case, codec=codec, page_version="v1", encodings=["chosen by fastparquet"], types=[str(kind) for kind in table.dtypes],
    )  # fmt: skip
