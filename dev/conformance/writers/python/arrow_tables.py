#!/usr/bin/env python3
"""Small Arrow tables for other programs to write: OUT/*.arrow, of every flat type, and of random nested ones.

    arrow_tables.py OUT [NESTED]         NESTED tables of random schemas, 120 of them where it is not said
"""

import sys
from pathlib import Path

import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from generators import data, nested_files  # noqa: E402

ROWS = 60
# What Arrow Go does not write.
NOT_NESTED = ("view", "duration", "decimal32", "decimal64")


def main(out, nested=120):
    out = Path(out)
    out.mkdir(parents=True, exist_ok=True)
    types = data.arrow_types()
    for name, pool in types.items():
        values = data.column(name, pool, ROWS)
        nulls = data.np.arange(ROWS) % 4 == 1
        save(out / f"flat_{name}.arrow", pa.table({name: values, f"{name}_o": data.with_nulls(values, nulls)}))
    pools = {name: pool(data.rng(f"nested pool of {name}"), ROWS) for name, pool in types.items()}
    pools = {name: pool for name, pool in pools.items() if not any(no in str(pool.type) for no in NOT_NESTED)}
    for case in range(int(nested)):
        table = nested_files.Maker(data.rng(f"table {case}"), pools).table().slice(0, ROWS)
        save(out / f"nested_{case:03}.arrow", table)


def save(path, table):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
