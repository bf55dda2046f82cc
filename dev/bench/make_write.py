#!/usr/bin/env python3
"""Lists what the writing benchmark writes, and makes the tables that `make_files.py` does not.

    make_write.py OUT [--scale 0.05] [--flights FILE]

`OUT` holds the files of make_files.py. OUT/write.json: `{"scale", "cases": [{"name", "group", "file", "rows", "sum", "encoding", "codec"}]}`.
A case's table is what its file holds, read before anything is timed. `encoding` is `default` where each writer chooses.
"""

import argparse
import json
import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# Which file of make_files.py has values that suit an encoding.
TABLES = {
    "PLAIN": "{}-plain-uncompressed.parquet",
    "RLE_DICTIONARY": "{}-rle_dictionary-uncompressed.parquet",
    "DELTA_BINARY_PACKED": "{}-delta_binary_packed-uncompressed.parquet",
    "DELTA_LENGTH_BYTE_ARRAY": "{}-plain-uncompressed.parquet",
    "DELTA_BYTE_ARRAY": "{}-plain-uncompressed.parquet",
}
ENCODINGS = {
    "int32": ["PLAIN", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"],
    "int64": ["PLAIN", "RLE_DICTIONARY", "DELTA_BINARY_PACKED"],
    "string8": ["PLAIN", "RLE_DICTIONARY", "DELTA_LENGTH_BYTE_ARRAY"],
    "string80": ["PLAIN", "RLE_DICTIONARY", "DELTA_BYTE_ARRAY"],
}
GDELT_ROWS = 500_000


def gdelt(rows):
    """57 columns like those of GDELT's events: ids, dates, codes of few values, scores, places, addresses."""
    random = np.random.default_rng(57)
    codes = np.array([f"{n:03d}" for n in range(300)])
    countries = np.array(["USA", "GBR", "CHN", "RUS", "FRA", "DEU", "IND", "BRA", "", "ISR", "EGY", "IRN"])
    places = np.array([f"Place {n}, Region {n % 97}, Country {n % 13}" for n in range(20_000)])
    columns = {
        "GlobalEventID": np.arange(rows, dtype=np.int64) + 410_000_000,
        "Day": (20130000 + random.integers(0, 365, rows)).astype(np.int32),
        "MonthYear": np.full(rows, 201307, dtype=np.int32),
        "Year": np.full(rows, 2013, dtype=np.int32),
        "FractionDate": 2013 + random.integers(0, 365, rows) / 365,
    }
    for actor in ("Actor1", "Actor2"):
        columns[actor + "Code"] = codes[random.integers(0, 300, rows)]
        columns[actor + "Name"] = places[random.integers(0, 3_000, rows)]
        for field in ("CountryCode", "KnownGroupCode", "EthnicCode", "Religion1Code", "Religion2Code", "Type1Code", "Type2Code", "Type3Code"):
            columns[actor + field] = countries[random.integers(0, len(countries), rows) * (random.random(rows) < 0.4)]
    columns["IsRootEvent"] = random.integers(0, 2, rows).astype(np.int32)
    for field in ("EventCode", "EventBaseCode", "EventRootCode"):
        columns[field] = codes[random.integers(0, 200, rows)]
    columns["QuadClass"] = random.integers(1, 5, rows).astype(np.int32)
    columns["GoldsteinScale"] = random.integers(-100, 101, rows) / 10
    for field in ("NumMentions", "NumSources", "NumArticles"):
        columns[field] = random.geometric(0.2, rows).astype(np.int32)
    columns["AvgTone"] = random.normal(0, 4, rows)
    for geo in ("Actor1Geo", "Actor2Geo", "ActionGeo"):
        place = random.integers(0, len(places), rows)
        columns[geo + "_Type"] = (place % 5).astype(np.int32)
        columns[geo + "_Fullname"] = places[place]
        columns[geo + "_CountryCode"] = countries[place % len(countries)]
        columns[geo + "_ADM1Code"] = codes[place % 300]
        columns[geo + "_Lat"] = np.round(place / 250 - 40, 4)
        columns[geo + "_Long"] = np.round(place / 60 - 170, 4)
        columns[geo + "_FeatureID"] = (place * 7919 % 1_000_003).astype(np.int32)
    columns["DATEADDED"] = np.full(rows, 20130701, dtype=np.int32)
    columns["SOURCEURL"] = np.array([f"http://news.example/{n % 997}/{n * 2654435761 % 2**32:08x}.html" for n in range(rows)])
    return pa.table(columns)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--flights", type=pathlib.Path)
    arguments = parser.parse_args()
    out = arguments.out
    known = {case["file"]: case for case in json.loads((out / "cases.json").read_text())["cases"]}
    cases = []
    for type_, encodings in ENCODINGS.items():
        for encoding in encodings:
            file = TABLES[encoding].format(type_)
            for codec in ("UNCOMPRESSED", "SNAPPY"):
                case = {"name": f"{type_} {encoding} {codec}", "group": "one column", "file": file, "encoding": encoding, "codec": codec}
                cases.append(case | {key: known[file][key] for key in ("rows", "sum")})
    table = out / f"write-gdelt.parquet"
    rows = int(GDELT_ROWS * arguments.scale)
    if not table.exists() or pq.read_metadata(table).num_rows != rows:
        pq.write_table(gdelt(rows), table, compression="snappy")
    tables = [("gdelt", table)] + ([("flights", arguments.flights)] if arguments.flights else [])
    for name, table in tables:
        rows = pq.read_metadata(table).num_rows
        for codec in ("SNAPPY", "ZSTD"):
            case = {"name": f"{name} {codec}", "group": "tables, encodings chosen by the writer", "file": str(table.absolute())}
            cases.append(case | {"encoding": "default", "codec": codec, "rows": rows})
    (out / "write.json").write_text(json.dumps({"scale": arguments.scale, "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
