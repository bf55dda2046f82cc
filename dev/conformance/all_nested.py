#!/usr/bin/env python3
"""Writes nested.parquet: every scalar Parquet type inside of lists, maps and groups, and nested columns of all kinds.

    all_nested.py OUT.parquet

The scalars are those of all_types.py. The file is committed as crates/cluster/tests/data/nested.parquet; what it must become in
CQL are constants of crates/cluster/tests/real_cassandra/nested.rs, in the same order of columns and rows.
"""

import decimal
import sys

import pyarrow
import pyarrow.parquet

import all_types
from all_types import ROWS


def scalars():
    """A group of all scalars, row by row; and of each a list and a map: all values in row 0, none in row 1, null in the others."""
    columns = list(all_types.columns())
    fields = [pyarrow.field(name, array.type) for name, array, _ in columns]
    yield "everything", pyarrow.StructArray.from_arrays([array for _, array, _ in columns], fields=fields)
    for name, array, _ in columns:
        values = array.drop_null()
        offsets = pyarrow.array([0] + [len(values)] * ROWS, pyarrow.int32())
        mask = pyarrow.array([False, False] + [True] * (ROWS - 2))
        item = pyarrow.field(name, array.type)
        yield f"list_{name}", pyarrow.ListArray.from_arrays(offsets, values, pyarrow.list_(item), mask=mask)
        numbers = pyarrow.array(range(len(values)), pyarrow.int32())
        if len(values) and name not in NOT_IN_MAPS:
            yield f"map_{name}", pyarrow.MapArray.from_arrays(offsets, numbers, values, mask=mask)
        if name in IN_KEYS:
            yield f"keys_{name}", pyarrow.MapArray.from_arrays(offsets, values, numbers, mask=mask)


    # Sets inside of another type, which servers take as they come. (Durations have no order.)
    sorted_columns = [it for it in columns if it[0] not in {"interval", "unknown"}]
    lists = []
    for name, array, _ in sorted_columns:
        values = array.drop_null()
        # As they are, then backwards.
        order = list(range(len(values))) + list(range(len(values)))[::-1]
        offsets = pyarrow.array([0, len(values), len(order)] + [len(order)] * (ROWS - 2), pyarrow.int32())
        lists.append(pyarrow.ListArray.from_arrays(offsets, values.take(order), pyarrow.list_(pyarrow.field(name, array.type))))
    fields = [pyarrow.field(f"of_{name}", array.type) for (name, _, _), array in zip(sorted_columns, lists)]
    yield "sorted", pyarrow.StructArray.from_arrays(lists, fields=fields)


# Their annotation is written afterwards, by the name of the leaf, and in maps that is always `value`.
NOT_IN_MAPS = {"decimal_bytes", "enum", "bson", "int96", "interval"}
# The keys of a map, too: no value is there twice.
IN_KEYS = {"uint64", "double", "minus zero", "decimal_76_76", "string", "uuid", "binary", "date", "timestamp_ms_utc"}


def shapes():
    """Nested in each other, with what is empty, null and odd at each level."""
    inner = pyarrow.struct([
        pyarrow.field("Flight Date", pyarrow.date32()),
        pyarrow.field("select", pyarrow.map_(pyarrow.string(), pyarrow.list_(pyarrow.int64()))),
    ])
    stop = pyarrow.struct([
        pyarrow.field("name", pyarrow.string()),
        pyarrow.field("bytes", pyarrow.binary()),
        pyarrow.field("inner", inner),
        pyarrow.field("groups", pyarrow.list_(pyarrow.struct([pyarrow.field("n", pyarrow.int32())]))),
    ])
    odd = "it's \"quoted\"\n{}[]:, Grüße 🚀"
    stops = [
        [
            {
                "name": odd,
                "bytes": b"\0'\xff",
                "inner": {"Flight Date": 20412, "select": [(odd, [1, -2]), ("", []), ("null", None)][:2]},
                "groups": [{"n": 1}, {"n": None}],
            },
            {"name": "", "bytes": b"", "inner": {"Flight Date": None, "select": []}, "groups": []},
            {"name": None, "bytes": None, "inner": None, "groups": None},
        ],
        [],
        None,
        [{"name": "x", "bytes": None, "inner": {"Flight Date": -1, "select": None}, "groups": [{"n": 2}]}],
        None,
        None,
    ]
    yield "stops", pyarrow.array(stops, pyarrow.list_(stop))
    yield "place", pyarrow.array([stop_list[0] if stop_list else None for stop_list in stops], stop)
    key = pyarrow.struct([pyarrow.field("a", pyarrow.int32()), pyarrow.field("b", pyarrow.list_(pyarrow.string()))])
    by_group = [[({"a": 1, "b": ["x", "y"]}, "1"), ({"a": 1, "b": []}, "2"), ({"a": None, "b": None}, "3")], [], None, None, None, None]
    yield "by_group", pyarrow.array(by_group, pyarrow.map_(key, pyarrow.string()))
    in_set = [[["b", "a", "b"], [], ["a", "b"], ["c"]], [], None, [[]], None, None]
    yield "sets", pyarrow.array(in_set, pyarrow.list_(pyarrow.list_(pyarrow.string())))
    deep = [[[[[1, 2], []], []], []], [], None, [[[[-1]]]], None, None]
    yield "deep", pyarrow.array(deep, pyarrow.list_(pyarrow.list_(pyarrow.list_(pyarrow.list_(pyarrow.int16())))))
    prices = [decimal.Decimal("1.10"), decimal.Decimal("-0.05")]
    yield "prices", pyarrow.array([[prices, prices[1:]], None, [], [[]], None, None], pyarrow.list_(pyarrow.list_(pyarrow.decimal128(9, 2))))
    # For a key: never null.
    keys = [{"part": f"k{row}", "ids": [row, -row], "by": [("x", row)] if row else []} for row in range(ROWS)]
    part = pyarrow.struct([
        pyarrow.field("part", pyarrow.string()),
        pyarrow.field("ids", pyarrow.list_(pyarrow.int64())),
        pyarrow.field("by", pyarrow.map_(pyarrow.string(), pyarrow.int32())),
    ])
    yield "key", pyarrow.array(keys, part)
    yield "ids", pyarrow.array([[row, row + 1] if row else [] for row in range(ROWS)], pyarrow.list_(pyarrow.int64()))


def main(arguments):
    if len(arguments) != 1:
        sys.exit(__doc__)
    columns = [("id", pyarrow.array(range(ROWS), pyarrow.int32()))] + list(scalars()) + list(shapes())
    table = pyarrow.table([array for _, array in columns], names=[name for name, _ in columns])
    # Elements keep their names, by which the annotations are found. Two row groups.
    pyarrow.parquet.write_table(table, arguments[0], row_group_size=4, store_schema=False, use_compliant_nested_type=False)
    all_types.annotate(arguments[0], {name: changes for name, _, changes in all_types.columns() if changes})


if __name__ == "__main__":
    main(sys.argv[1:])
