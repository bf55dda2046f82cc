"""What a run of the generators leaves behind: files, one manifest a writer, and what could not be written."""

import json
import os
import sys

import pyarrow.parquet as pq


class Manifest:
    """Collects one writer's files in `directory`, and its refusals.

    `DIRECTORY/manifest.json`: {"writer", "version", "files": [{"file", "rows", "created_by", "case", "codec",
    "page_version", "encodings", "encodings_found", "types", ...}], "not_written": [{"feature", "error"}]}.
    "encodings" is what was asked for, "encodings_found" what the footers' column metadata says.
    """

    def __init__(self, out, writer, version):
        self.directory = os.path.join(out, writer)
        self.writer, self.version = writer, version
        self.files, self.not_written = [], []
        os.makedirs(self.directory, exist_ok=True)
        for old in os.listdir(self.directory):
            if old.endswith(".parquet") or old == "manifest.json":
                os.remove(os.path.join(self.directory, old))

    def write(self, name, write, **about):
        """Calls `write(path)`; a refusal is noted and the file left out. True if the file was written."""
        path = os.path.join(self.directory, name + ".parquet")
        try:
            write(path)
        except Exception as error:  # whatever the peer raises is its refusal
            if os.path.exists(path):
                os.remove(path)
            self.refuse(name, error)
            return False
        self.files.append({"file": name + ".parquet", **about, **self.found(path)})
        return True

    def refuse(self, feature, error):
        text = " ".join(f"{type(error).__name__}: {error}".split())
        self.not_written.append({"feature": feature, "error": text[:300]})
        print(f"{self.writer}: not written: {feature}: {text[:160]}", file=sys.stderr)

    def found(self, path):
        """Footer facts as pyarrow's metadata reader reports them, or why it could not."""
        try:
            metadata = pq.read_metadata(path)
        except Exception as error:
            return {"metadata_error": str(error)}
        encodings, codecs, types = set(), set(), set()
        for group in range(metadata.num_row_groups):
            for index in range(metadata.num_columns):
                chunk = metadata.row_group(group).column(index)
                encodings.update(chunk.encodings)
                codecs.add(chunk.compression)
                types.add(chunk.physical_type)
        return {
            "rows": metadata.num_rows,
            "row_groups": metadata.num_row_groups,
            "created_by": metadata.created_by,
            "encodings_found": sorted(encodings),
            "codecs_found": sorted(codecs),
            "physical_types": sorted(types),
        }

    def close(self):
        probe = os.path.join(self.directory, "probe.parquet")
        if os.path.exists(probe):
            os.remove(probe)
        with open(os.path.join(self.directory, "manifest.json"), "w", encoding="utf-8") as file:
            body = {"writer": self.writer, "version": self.version, "files": self.files, "not_written": self.not_written}
            json.dump(body, file, indent=1, sort_keys=True)
        size = sum(os.path.getsize(os.path.join(self.directory, entry["file"])) for entry in self.files)
        print(f"{self.writer} {self.version}: {len(self.files)} files, {size / 1e6:.1f} MB, {len(self.not_written)} refused")
