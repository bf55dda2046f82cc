#!/usr/bin/env python3
"""Writes nested files of random schemas: OUTDIR/nested/*.parquet, and a manifest.json beside them.

    generate_nested.py OUTDIR FIRST COUNT

A case is its number: a run with the same peers gives the same files.
"""

import sys

from generators import nested_files

if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    nested_files.generate(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
