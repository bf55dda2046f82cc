#!/usr/bin/env python3
"""Writes tables whose files' schemas differ: OUTDIR/case_N/part-*.parquet, and OUTDIR/case_N/whole.parquet of all their rows.

    generate_union.py OUTDIR FIRST COUNT

A case is its number: a run with the same peers gives the same files.
"""

import sys

from generators import union_files

if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    union_files.generate(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
