#!/usr/bin/env python3
"""Makes DIR/expected.json: what the files by other writers in DIR hold, one entry a file of *.parquet.

    expect.py DIR [FILE...]        FILE: only these, by their path from DIR

An entry is one of `../expect_nested.py`, without projections: pyarrow's reading. Where pyarrow lacks a codec or a type, a
folder's twins.txt names for a file (first word) another one (second word) of the same values that pyarrow reads. A field that
neither reads is an error here, so that nothing goes unchecked in silence. Encrypted files are expected to be Unsupported.
"""

import json
import multiprocessing
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import expect_nested  # noqa: E402


def main(folder, names):
    folder = Path(folder)
    twins = {}
    for path in sorted(folder.glob("**/twins.txt")):
        for line in path.read_text().splitlines():
            file, twin = line.split()
            twins[path.parent / file] = path.parent / twin
    files = [folder / name for name in names] or [
        file for file in sorted(folder.glob("**/*.parquet")) if "twins" not in file.parts
    ]
    with multiprocessing.Pool(2) as pool:
        entries = pool.map(expect_nested.expect_file, [str(twins.get(file, file)) for file in files], chunksize=4)
    wrong = []
    for file, entry in zip(files, entries, strict=True):
        entry["file"] = str(file.relative_to(folder))
        entry.pop("projections", None)
        if is_encrypted(entry):
            entry.pop("fields", None)
            entry["error"] = "Unsupported"
        wrong += [f"{entry['file']}: {error}" for error in errors(entry)]
    (folder / "expected.json").write_text(one_a_line(entries))
    print(f"{len(entries)} files", *wrong, sep="\n")
    return 1 if wrong else 0


def is_encrypted(entry):
    return any("decrypt" in error for error in errors(entry))


def errors(entry):
    """Why pyarrow, and DuckDB in its place, read a file or its fields not."""
    if entry.get("error") == "Unsupported":
        return []
    fields = [f"{field['name']}: {field['error']}" for field in entry.get("fields", []) if "error" in field]
    return fields + ([entry["error"]] if "error" in entry else [])


def one_a_line(entries):
    """JSON with a field a line, so that a change can be read."""
    lines = []
    for entry in entries:
        fields = entry.pop("fields", None)
        text = json.dumps(entry, ensure_ascii=False)
        if fields is not None:
            rows = ",\n  ".join(json.dumps(field, ensure_ascii=False) for field in fields)
            text = f'{text[:-1]}, "fields": [\n  {rows}]}}'
        lines.append(text)
    return "[\n" + ",\n".join(lines) + "\n]\n"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
