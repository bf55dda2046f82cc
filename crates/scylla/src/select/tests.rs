use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use marquetry_base::{Budget, ErrorKind};

use super::*;
use crate::bridge::mutations::{
    Batch, MapStep, Mapper, MapperOptions, MutationMapping, ParquetValues as Parquet,
};
use crate::cql::{Definitions, TableName};
use crate::sstable::batch::{Continues, EntryKind, Expiry, MutationBatch, NO_TIMESTAMP, Values};
use crate::sstable::{TableColumns, counter};

type Cell = Option<Vec<u8>>;

const NOW: u32 = 1_000_000;
const UNKNOWN: i64 = 77;

fn selection(definition: &str, times: Times) -> Arc<Selection> {
    let made = Definitions::parse(definition).unwrap();
    let columns = TableColumns::of_table(&made.tables[0], &made.types).unwrap();
    Arc::new(Selection::new(Arc::new(columns), times).unwrap())
}

fn int(value: i32) -> Cell {
    Some(value.to_be_bytes().to_vec())
}

fn big(value: i64) -> Cell {
    Some(value.to_be_bytes().to_vec())
}

fn text(value: &str) -> Cell {
    Some(value.as_bytes().to_vec())
}

/// Values one after the other, each with its length.
fn values(all: &[Cell]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in all {
        let length = value.as_ref().map_or(-1, |value| i32::try_from(value.len()).unwrap());
        bytes.extend(length.to_be_bytes());
        bytes.extend(value.iter().flatten());
    }
    bytes
}

/// A collection of so many elements.
fn collection(count: i32, all: &[Cell]) -> Cell {
    Some([&count.to_be_bytes()[..], &values(all)].concat())
}

fn push(rows: &mut SelectedRows, row: &[Cell]) -> marquetry_base::Result<()> {
    let row: Vec<Option<&[u8]>> = row.iter().map(Option::as_deref).collect();
    rows.push(&row, NOW)
}

fn gathered(selection: &Arc<Selection>, all: &[Vec<Cell>]) -> MutationBatch {
    let mut rows = SelectedRows::new(Arc::clone(selection), UNKNOWN);
    all.iter().for_each(|row| push(&mut rows, row).unwrap());
    rows.take().unwrap()
}

/// The rows in batches of so many, as the logical mapping has them.
fn mapped(selection: &Arc<Selection>, all: &[Vec<Cell>], batch_rows: usize) -> Vec<Batch> {
    mapped_as(MutationMapping::Logical, selection, all, batch_rows).0
}

/// The same by another mapping, and how many values of which columns are lost.
fn mapped_as(
    kind: MutationMapping,
    selection: &Arc<Selection>,
    all: &[Vec<Cell>],
    batch_rows: usize,
) -> (Vec<Batch>, BTreeMap<String, u64>) {
    let mut rows = SelectedRows::new(Arc::clone(selection), UNKNOWN);
    let mut parts = all.chunks(batch_rows);
    let columns = Arc::clone(selection.columns());
    let mut mapper = Mapper::new(kind, columns, &MapperOptions::default()).unwrap();
    let (mut batches, mut lost) = (Vec::new(), BTreeMap::new());
    loop {
        for (name, values) in mapper.take_lost() {
            *lost.entry(name).or_default() += values;
        }
        match mapper.step(&mut Budget::unlimited()).unwrap() {
            MapStep::Ready(batch) => batches.push(batch),
            MapStep::Need => match parts.next() {
                Some(part) => {
                    part.iter().for_each(|row| push(&mut rows, row).unwrap());
                    mapper.feed(rows.take().unwrap()).unwrap();
                }
                None => mapper.finish(),
            },
            MapStep::Yield => {}
            MapStep::Done => return (batches, lost),
        }
    }
}

/// The numbers of a column, nulls left out, and how many rows there are.
fn numbers(batches: &[Batch], leaf: usize) -> (Vec<i32>, usize) {
    let mut all = Vec::new();
    for batch in batches {
        let Parquet::Int32(values) = &batch.columns[leaf].values else { panic!("no integers") };
        all.extend_from_slice(values);
    }
    (all, batches.iter().map(|batch| batch.rows).sum())
}

const EVERYTHING: &str = "CREATE TYPE k.u (a int, b text);
    CREATE TABLE k.t (p int, q text, c int, d text, s int static, v int, l list<int>, e set<text>, m map<text, int>, u u, f frozen<list<int>>,
    PRIMARY KEY ((p, q), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)";

/// Of [`EVERYTHING`]: p, q, c, d, s, f, v, e, l, m, u.
fn everything(c: i32) -> Vec<Cell> {
    vec![
        int(1),
        text("q"),
        int(c),
        text("d"),
        int(5),
        collection(1, &[int(9)]),
        int(7),
        collection(2, &[text("x"), text("yy")]),
        collection(3, &[int(3), int(1), int(2)]),
        collection(1, &[text("k"), int(8)]),
        Some(values(&[None, text("b")])),
    ]
}

#[test]
fn statements() {
    let table = TableName::parse("k.\"T\"").unwrap();
    let definition = "CREATE TABLE t (p int, \"Q\" int, c int, s int static, v int, l list<int>, PRIMARY KEY ((p, \"Q\"), c))";
    let text = |times, part, dialect| selection(definition, times).statement(&table, part, dialect);
    let plain = Dialect::default();
    assert_eq!(
        text(Times::None, Part::Tokens, plain),
        "SELECT p, \"Q\", c, s, v, l FROM k.\"T\" WHERE token(p, \"Q\") > ? AND token(p, \"Q\") <= ?"
    );
    assert_eq!(
        text(Times::Cells, Part::Partition, plain),
        "SELECT p, \"Q\", c, s, v, l, WRITETIME(s), TTL(s), WRITETIME(v), TTL(v) FROM k.\"T\" WHERE p = ? AND \"Q\" = ?"
    );
    let scylla = Dialect { bypasses_cache: true, timeout_seconds: Some(60) };
    let all = text(Times::Elements, Part::Tokens, scylla);
    assert!(all.contains("TTL(v), WRITETIME(l), TTL(l) FROM"), "{all}");
    assert!(all.ends_with(" AND token(p, \"Q\") <= ? BYPASS CACHE USING TIMEOUT 60s"), "{all}");
    assert_eq!(selection(definition, Times::Elements).width(), 6 + 2 * 3);
}

#[test]
fn values_are_taken_apart() {
    let selection = selection(EVERYTHING, Times::None);
    let names: Vec<_> = selection.columns().cells().map(|column| column.name.clone()).collect();
    assert_eq!(names, [b"s", b"f", b"v", b"e", b"l", b"m", b"u"]);
    let batch = gathered(&selection, &[everything(2), everything(1)]);
    assert_eq!(batch.partitions.keys.bytes, [&b"\0\x04\0\0\0\x01\0"[..], b"\0\x01q\0"].concat());
    assert_eq!(batch.entries.kinds, [EntryKind::Static, EntryKind::Row, EntryKind::Row]);
    assert_eq!((batch.partitions.ends.as_slice(), batch.partitions.offsets.len()), (&[3][..], 1));
    assert_eq!(batch.entries.clustering[0].values, Values::Four(vec![0, 2, 1]));
    assert_eq!(batch.columns[0].entries, [0]);
    assert_eq!(batch.columns[2].values, Values::Four(vec![7, 7]));
    let elements = |column: usize| {
        let cells = &batch.columns[column];
        let Values::Strings(values) = &cells.values else { panic!("{cells:?}") };
        let pair = |at| (cells.paths.get(at).unwrap().to_vec(), values.get(at).unwrap().to_vec());
        (0..cells.len()).filter(|at| cells.entries[*at] == 1).map(pair).collect::<Vec<_>>()
    };
    assert_eq!(elements(3), [(b"x".to_vec(), vec![]), (b"yy".to_vec(), vec![])]);
    let list = elements(4);
    assert_eq!(list.iter().map(|(_, value)| value[3]).collect::<Vec<_>>(), [3, 1, 2]);
    // Paths are UUIDs of times that ascend.
    assert!(list.iter().all(|(path, _)| path[6] >> 4 == 1 && path[8] >> 6 == 2));
    let order = crate::sstable::compare::Comparator::of_paths(&selection.columns().regulars[3].kind);
    let order = order.unwrap().unwrap();
    assert!(list.windows(2).all(|two| order.compare(&two[0].0, &two[1].0).is_lt()));
    assert_eq!(elements(5), [(b"k".to_vec(), 8_i32.to_be_bytes().to_vec())]);
    assert_eq!(elements(6), [(vec![0, 1], b"b".to_vec())]);
    assert!(batch.entries.timestamps.iter().all(|time| *time == NO_TIMESTAMP));
}

#[test]
fn static_rows_and_partitions() {
    let definition = "CREATE TABLE t (p int, c int, s int static, v int, PRIMARY KEY (p, c))";
    let selection = selection(definition, Times::None);
    let row = |p, c, s, v| vec![int(p), c, s, v];
    let all = [
        row(1, int(1), int(10), int(11)),
        row(1, int(2), int(10), None),
        // Nothing but a static value; nothing but static values that are null.
        row(2, None, int(20), None),
        row(3, None, None, None),
        // No static value.
        row(4, int(1), None, int(41)),
        row(5, None, int(50), None),
        // The same key again would be the same partition, and is another here.
        row(6, int(1), int(60), int(61)),
        row(6, int(2), int(60), int(62)),
        row(6, int(3), int(60), int(63)),
    ];
    let batch = gathered(&selection, &all);
    use EntryKind::{Row, Static};
    let kinds = [Static, Row, Row, Static, Static, Row, Static, Static, Row, Row, Row];
    assert_eq!(batch.entries.kinds, kinds);
    assert_eq!(batch.partitions.ends, [3, 4, 5, 6, 7, 11]);
    // However they come, a row of an answer is a row.
    for batch_rows in 1..=all.len() {
        let batches = mapped(&selection, &all, batch_rows);
        assert_eq!(numbers(&batches, 0), (vec![1, 1, 2, 3, 4, 5, 6, 6, 6], 9), "{batch_rows}");
        assert_eq!(numbers(&batches, 2).0, [10, 10, 20, 50, 60, 60, 60], "{batch_rows}");
        assert_eq!(numbers(&batches, 3).0, [11, 41, 61, 62, 63], "{batch_rows}");
    }
}

#[test]
fn a_batch_says_what_it_goes_on_with() {
    let selection = selection("CREATE TABLE t (p int, c int, PRIMARY KEY (p, c))", Times::None);
    let mut rows = SelectedRows::new(Arc::clone(&selection), UNKNOWN);
    assert!(rows.take().is_none());
    let mut take = |all: &[(i32, i32)]| {
        all.iter().for_each(|(p, c)| push(&mut rows, &[int(*p), int(*c)]).unwrap());
        let batch = rows.take().unwrap();
        (batch.continues, batch.partitions.ends.len(), batch.is_open)
    };
    assert_eq!(take(&[(1, 1), (1, 2)]), (Continues::Nothing, 1, true));
    assert_eq!(take(&[(1, 3), (2, 1)]), (Continues::Partition, 2, true));
    assert_eq!(take(&[(3, 1)]), (Continues::Nothing, 1, true));
}

#[test]
fn nulls_and_empty_values() {
    let definition = "CREATE TABLE t (p text PRIMARY KEY, i int, v text, t frozen<tuple<int, text>>)";
    let selection = selection(definition, Times::None);
    // p, i, t, v: all there are sorted by name.
    let batch = gathered(
        &selection,
        &[
            vec![text(""), Some(vec![]), Some(vec![]), text("")],
            vec![text("x"), None, None, None],
            vec![text("y"), int(1), Some(values(&[int(1), None])), text("z")],
        ],
    );
    assert_eq!(batch.partitions.keys.ends, [0, 1, 2]);
    assert_eq!((&batch.columns[0].entries[..], &batch.columns[0].empties[..]), (&[0, 2][..], &[0][..]));
    assert_eq!(batch.columns[0].values, Values::Four(vec![0, 1]));
    assert_eq!((batch.columns[2].len(), batch.columns[2].empties.len()), (2, 0));
}

#[test]
fn counters_are_shards() {
    let selection = selection("CREATE TABLE t (p int PRIMARY KEY, n counter)", Times::Cells);
    let batch = gathered(&selection, &[vec![int(1), big(-42), big(5), None]]);
    let Values::Strings(values) = &batch.columns[0].values else { panic!() };
    assert_eq!(counter::total(values.get(0).unwrap()), Ok(-42));
    assert_eq!(batch.entries.timestamps, [NO_TIMESTAMP]);
    assert_eq!(batch.columns[0].timestamps.get(0), Some(5));
    let mut rows = SelectedRows::new(selection, UNKNOWN);
    let error = push(&mut rows, &[int(1), int(7), None, None]).unwrap_err();
    assert_eq!((error.kind(), error.place().column.as_deref()), (ErrorKind::Corrupt, Some("n")));
}

#[test]
fn rows_have_markers_as_old_as_their_oldest_value() {
    let definition = "CREATE TABLE t (p int PRIMARY KEY, a int, b int)";
    let selection = selection(definition, Times::Cells);
    let row = |p, a: Option<(i64, Option<i32>)>, b: Option<(i64, Option<i32>)>| {
        let value = |cell: Option<(i64, Option<i32>)>| cell.and_then(|_| int(1));
        let times = |cell: Option<(i64, Option<i32>)>| {
            [cell.and_then(|(time, _)| big(time)), cell.and_then(|(_, ttl)| ttl).and_then(int)]
        };
        [vec![int(p), value(a), value(b)], times(a).to_vec(), times(b).to_vec()].concat()
    };
    let batch = gathered(
        &selection,
        &[
            row(1, Some((10, None)), Some((10, None))),
            row(2, Some((20, Some(60))), Some((10, Some(90)))),
            row(3, Some((20, Some(60))), Some((30, None))),
            row(4, None, None),
            row(5, None, Some((-5, Some(0)))),
        ],
    );
    assert_eq!(batch.entries.timestamps, [10, 10, 20, UNKNOWN, -5]);
    let ttl = |seconds: u32| Expiry { ttl: seconds, local_deletion: NOW + seconds };
    assert_eq!(batch.entries.expiries.at, [1, 4]);
    // One that expires within this second is not one that never does.
    assert_eq!(batch.entries.expiries.values, [ttl(90), ttl(1)]);
    let [a, b] = &batch.columns[..] else { panic!() };
    assert_eq!((&a.timestamps.at[..], &a.timestamps.values[..]), (&[1][..], &[20][..]));
    assert_eq!((&a.expiries.at[..], &a.expiries.values[..]), (&[1, 2][..], &[ttl(60), ttl(60)][..]));
    assert_eq!((&b.timestamps.at[..], &b.timestamps.values[..]), (&[2][..], &[30][..]));
    assert!(b.expiries.is_empty());
}

#[test]
fn elements_have_times_of_their_own() {
    let definition = "CREATE TYPE k.u (a int, b int, c int); CREATE TABLE k.t (p int PRIMARY KEY, l list<int>, m map<int, int>, u u)";
    let all = selection(definition, Times::Elements);
    let list = collection(2, &[int(1), int(2)]);
    let map = collection(2, &[int(1), int(10), int(2), int(20)]);
    let user = Some(values(&[int(1), None, int(3)]));
    let row = |times_of_user: &[Cell]| {
        let count = i32::try_from(times_of_user.len()).unwrap();
        vec![
            int(0),
            list.clone(),
            map.clone(),
            user.clone(),
            collection(2, &[big(10), big(20)]),
            collection(2, &[None, int(60)]),
            collection(2, &[big(30), big(10)]),
            None,
            collection(count, times_of_user),
            None,
        ]
    };
    // Times of those fields that have values, or of all fields.
    for times in [&[big(40), big(10)][..], &[big(40), None, big(10)]] {
        let batch = gathered(&all, &[row(times)]);
        assert_eq!(batch.entries.timestamps, [10]);
        let times = |column: usize| {
            let cells = &batch.columns[column];
            (0..2).map(|cell| cells.timestamps.get(cell).unwrap_or(10)).collect::<Vec<_>>()
        };
        assert_eq!([times(0), times(1), times(2)], [[10, 20], [30, 10], [40, 10]]);
        assert_eq!(batch.columns[0].expiries.at, [1]);
    }
    let mut rows = SelectedRows::new(Arc::clone(&all), UNKNOWN);
    let wrong = push(&mut rows, &row(&[big(1), big(2), big(3), big(4)])).unwrap_err();
    assert!(wrong.to_string().contains("write times of other elements"), "{wrong}");
    // Where servers do not tell them, they are as their row's.
    let some = selection(definition, Times::Cells);
    let batch = gathered(&some, &[vec![int(0), list, map, user]]);
    assert_eq!(batch.entries.timestamps, [UNKNOWN]);
    assert!(batch.columns.iter().all(|cells| cells.timestamps.is_empty() && cells.expiries.is_empty()));
}

/// Whatever a server answers: an error, or rows, and no panic.
#[test]
fn anything_may_come() {
    let selection = selection(EVERYTHING, Times::None);
    let good = everything(1);
    let try_row = |row: &[Cell]| {
        let mut rows = SelectedRows::new(Arc::clone(&selection), UNKNOWN);
        match push(&mut rows, row) {
            Ok(()) => drop(mapped(&selection, &[row.to_vec()], 1)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
        }
    };
    for column in 0..good.len() {
        let bytes = good[column].clone().unwrap();
        for end in 0..bytes.len() {
            let mut row = good.clone();
            row[column] = Some(bytes[..end].to_vec());
            try_row(&row);
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut row = good.clone();
                row[column] = Some(bytes.clone()).map(|mut bytes| {
                    bytes[at] = value;
                    bytes
                });
                try_row(&row);
            }
        }
        let mut row = good.clone();
        row[column] = None;
        try_row(&row);
        row[column] = Some([&bytes[..], &[0; 9]].concat());
        try_row(&row);
    }
    try_row(&good[1..]);
    let bad = |column: usize, value: Cell| {
        let mut row = good.clone();
        row[column] = value;
        push(&mut SelectedRows::new(Arc::clone(&selection), UNKNOWN), &row).unwrap_err().message().to_string()
    };
    assert_eq!(bad(0, None), "a null in a partition key");
    assert_eq!(bad(0, Some(vec![0; 70_000])), "a partition key of more than 64 KiB");
    assert_eq!(bad(6, Some(vec![0; 3])), "a value of another length than its type's");
    assert_eq!(bad(8, collection(1, &[None])), "a null in a collection that is not frozen");
    assert_eq!(bad(8, collection(i32::MAX, &[int(1)])), "a collection with fewer elements than it says");
    assert!(bad(10, Some(values(&[None, None, int(1)]))).contains("more fields than the type had"));
}

/// What columns cannot hold becomes null in them, and is counted: each value of no bytes, of those in collections, too.
#[test]
fn values_of_no_bytes_are_counted() {
    const TABLE: &str = "CREATE TYPE k.u (a int, b text);
        CREATE TABLE k.t (p int, c bigint, s int static, x set<int> static, b boolean, d date, i int, t text, l list<int>, m map<text, int>,
        f frozen<list<int>>, u u, z inet, PRIMARY KEY (p, c))";
    let selection = selection(TABLE, Times::None);
    let names: Vec<String> =
        selection.columns().cells().map(|column| String::from_utf8(column.name.clone()).unwrap()).collect();
    let nothing = || Some(Vec::new());
    // The columns with a value; others are null.
    let row = |p: Cell, c: Cell, with: &[(&str, Cell)]| {
        let cell = |name: &String| with.iter().find(|(it, _)| it == name).and_then(|(_, cell)| cell.clone());
        [vec![p, c], names.iter().map(cell).collect()].concat()
    };
    let rows = [
        row(
            int(1),
            big(1),
            &[("s", nothing()), ("x", collection(2, &[nothing(), int(4)])), ("i", nothing())],
        ),
        row(
            int(1),
            big(2),
            &[("s", nothing()), ("x", collection(2, &[nothing(), int(4)])), ("t", nothing())],
        ),
        row(int(2), nothing(), &[("i", int(7)), ("b", nothing()), ("d", nothing()), ("z", nothing())]),
        row(
            nothing(),
            big(4),
            &[
                ("l", collection(3, &[int(1), nothing(), nothing()])),
                ("m", collection(2, &[text("a"), nothing(), text("b"), int(5)])),
                ("f", collection(3, &[int(1), nothing(), None])),
                ("u", Some(values(&[nothing(), nothing()]))),
            ],
        ),
        // Text that is not UTF-8 has no form, either.
        row(int(5), big(5), &[("t", Some(vec![0xff])), ("i", nothing())]),
    ];
    let expected = [
        ("b", 1),
        ("c", 1),
        ("d", 1),
        ("f", 1),
        ("i", 2),
        ("l", 2),
        ("m", 1),
        ("p", 1),
        ("s", 2),
        ("t", 1),
        ("u", 1),
        ("x", 2),
        ("z", 1),
    ];
    for batch_rows in [1, 2, 100] {
        let (batches, lost) = mapped_as(MutationMapping::Logical, &selection, &rows, batch_rows);
        assert_eq!(batches.iter().map(|batch| batch.rows).sum::<usize>(), rows.len());
        let lost: Vec<(&str, u64)> = lost.iter().map(|(name, values)| (&**name, *values)).collect();
        assert_eq!(lost, expected, "{batch_rows}");
        // They are nulls, as `s` is in the rows of the first partition.
        assert_eq!(batches[0].columns[2].nulls, batches[0].rows, "{batch_rows}");
        let (_, lost) = mapped_as(MutationMapping::Full, &selection, &rows, batch_rows);
        assert!(lost.is_empty(), "{lost:?}");
    }
    // What has no such value loses nothing.
    let (_, lost) = mapped_as(
        MutationMapping::Logical,
        &self::selection(EVERYTHING, Times::None),
        &[everything(3), everything(2)],
        1,
    );
    assert!(lost.is_empty(), "{lost:?}");
}
