"""Random JSON lines, and whether a Parquet file has what they say, through Python's json and pyarrow's eyes.

json_lines.py make FOLDER FILES: FOLDER/0.jsonl and so on, of nested values, fields that are missing, and numbers of any size.
json_lines.py check FOLDER FILES: whether FOLDER/0.parquet and so on have the same values, bit by bit.
"""

import json
import math
import pathlib
import random
import sys

SCALARS = ["integer", "double", "text", "boolean"]
INTEGERS = [0, -1, 2**63 - 1, -(2**63), 2**53 + 1]
DOUBLES = [0.5, -0.0, 1e300, 5e-324, 1.7976931348623157e308, 0.9554680239214713]
# Names and texts that JSON has to escape, or may.
CHARACTERS = 'ab"\\\n\t\u0000é😀/. '


def any_type(rng, depth):
    kind = rng.choice(SCALARS + ["list", "struct"] if depth < 3 else SCALARS)
    if kind == "list":
        return ["list", any_type(rng, depth + 1)]
    if kind == "struct":
        return {rng.choice(CHARACTERS) + str(field): any_type(rng, depth + 1) for field in range(rng.randint(1, 3))}
    return kind


def any_value(rng, type_, nulls):
    if rng.random() < nulls:
        return None
    match type_:
        case "integer":
            return rng.choice(INTEGERS + [rng.randint(-1000, 1000)])
        case "double":
            return rng.choice(DOUBLES + [rng.random(), rng.random() * 10.0 ** rng.randint(-300, 300)])
        case "text":
            # No text is taken for a date.
            return "t" + "".join(rng.choice(CHARACTERS) for _ in range(rng.randint(0, 5)))
        case "boolean":
            return rng.random() < 0.5
        case ["list", element]:
            return [any_value(rng, element, nulls) for _ in range(rng.randint(0, 3))]
        case _:
            # One field is always there: of an object that never has one nobody knows the type.
            return {name: any_value(rng, field, nulls) for name, field in type_.items() if name == next(iter(type_)) or rng.random() >= nulls / 2}


def table(seed):
    """The type and the values of a file's rows, and how they are written: what `seed` makes of them."""
    rng = random.Random(seed)
    # The first column is always there: a table has one.
    type_ = {"id": "integer"} | {f"c{column}": any_type(rng, 0) for column in range(rng.randint(1, 4))}
    nulls = rng.choice([0, 0.1, 0.4])
    rows = [{"id": row} | {name: any_value(rng, field, nulls) for name, field in type_.items() if name != "id"} for row in range(rng.choice([1, 3, 200]))]
    return rng, type_, rows


def written(rng, rows):
    end = rng.choice(["\n", "\r\n", "\n\n"])
    separators = rng.choice([(",", ":"), (" ,\t", " : ")])
    return end.join(json.dumps(row, ensure_ascii=rng.random() < 0.5, separators=separators) for row in rows) + rng.choice(["", "\n"])


def same(found, value, type_):
    """Whether a value was found; what a struct does not have is null."""
    if value is None or found is None:
        return found is value
    if isinstance(type_, dict):
        return all(same(found.get(name), value.get(name), field) for name, field in type_.items())
    if isinstance(value, list):
        return len(found) == len(value) and all(map(same, found, value, [type_[1]] * len(value)))
    if isinstance(value, float):
        return found == value and math.copysign(1, found) == math.copysign(1, value)
    return type(found) is type(value) and found == value


def main():
    what, folder, files = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    for seed in range(files):
        rng, type_, rows = table(seed)
        if what == "make":
            (folder / f"{seed}.jsonl").write_text(written(rng, rows), newline="")
            continue
        import pyarrow.parquet

        found = pyarrow.parquet.ParquetFile(folder / f"{seed}.parquet").read().to_pylist()
        assert len(found) == len(rows), f"{seed}: {len(found)} rows of {len(rows)}"
        for number, (row, expected) in enumerate(zip(found, rows)):
            assert same(row, expected, type_), f"{seed}, line {number + 1}: {row}, which was {expected}"


main()
