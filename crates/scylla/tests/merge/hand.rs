//! Rules by hand, one by one.

use std::sync::Arc;

use marquetry_base::{Budget, ErrorKind};
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::merge::{Liveness, MergeOptions, MergeStep, Merger, Partitioner, Ties};
use marquetry_scylla::sstable::murmur3_token;

use crate::form::{Position, STATIC, Sstable, Writer, read, table};
use crate::model::{self, Cell, Deletion, Life, Marker};
use crate::{PLAIN, merged};

type Partition = model::Partition<Position, i64>;
type Row = model::Row<i64>;

fn key(number: i32) -> (i64, Vec<u8>) {
    let key = number.to_be_bytes().to_vec();
    (murmur3_token(&key), key)
}

/// The columns `a`, an int; `m`, a map.
const INT: usize = 2;
const MAP: usize = 5;

fn cell(timestamp: i64, life: Life, value: u8) -> Cell {
    let is_dead = matches!(life, Life::Dead(_));
    Cell { timestamp, life, value: if is_dead { Vec::new() } else { vec![0, 0, 0, value] } }
}

fn marker(timestamp: i64) -> Option<Marker> {
    Some(Marker { timestamp, expiry: None })
}

/// A partition of one row.
fn of(row: Row) -> Partition {
    let mut partition = Partition::default();
    partition.rows.insert((0, 0), row);
    partition
}

fn with(cells: &[((usize, i64), Cell)]) -> Row {
    Row { cells: cells.iter().cloned().collect(), ..Row::default() }
}

fn ranges(ranges: &[(Position, Position, Deletion)]) -> Partition {
    Partition { ranges: ranges.to_vec(), ..Partition::default() }
}

fn batches(partition: Partition) -> Vec<MutationBatch> {
    Writer::write(&Sstable::from([(key(1), partition)]), false, &mut || false)
}

fn run(versions: Vec<Partition>, options: &MergeOptions) -> Partition {
    let inputs = versions.into_iter().map(batches).collect();
    let out = merged(&table(false), inputs, options, PLAIN).unwrap();
    read(&out, false).remove(&key(1)).unwrap_or_default()
}

fn merge(versions: Vec<Partition>) -> Partition {
    let reversed = run(versions.iter().rev().cloned().collect(), &MergeOptions::default());
    let merged = run(versions, &MergeOptions::default());
    assert_eq!(merged, reversed, "the order of inputs means nothing");
    merged
}

fn live(versions: Vec<Partition>, now: u32) -> Partition {
    let mut options = MergeOptions::default();
    options.live_at = Some(now);
    run(versions, &options)
}

#[test]
fn the_newest_cell_counts_and_then_the_one_that_is_gone_and_then_the_greater() {
    let ascending = [
        cell(1, Life::Dead(9), 0),
        cell(2, Life::Live, 3),
        // Greater as unsigned bytes.
        Cell { timestamp: 2, life: Life::Live, value: vec![0xff, 0, 0, 0] },
        cell(2, Life::Expiring(5, 100), 9),
        cell(2, Life::Expiring(5, 101), 1),
        cell(2, Life::Expiring(4, 101), 0),
        cell(2, Life::Expiring(4, 101), 7),
        cell(2, Life::Dead(50), 0),
        cell(2, Life::Dead(51), 0),
        cell(3, Life::Live, 0),
    ];
    for (at, less) in ascending.iter().enumerate() {
        for more in &ascending[at + 1..] {
            let versions = [less, more].map(|cell| of(with(&[((INT, 0), cell.clone())])));
            assert_eq!(merge(versions.to_vec()).rows[&(0, 0)].cells[&(INT, 0)], *more, "{less:?}");
        }
    }
    // Up to Cassandra 5.0, TTLs mean nothing.
    let mut options = MergeOptions::default();
    options.ties = Ties::GreaterValue;
    let versions = [ascending[4].clone(), ascending[5].clone()].map(|cell| of(with(&[((INT, 0), cell)])));
    let found = run(versions.to_vec(), &options);
    assert_eq!(found.rows[&(0, 0)].cells[&(INT, 0)], ascending[4]);
}

#[test]
fn deletions_delete_what_is_as_old() {
    let row = |timestamp| {
        let mut row =
            with(&[((INT, 0), cell(timestamp, Life::Live, 1)), ((MAP, 1), cell(timestamp, Life::Live, 1))]);
        row.marker = marker(timestamp);
        row
    };
    let deletion = (5, 100);
    let of_row = of(Row { deletion: Some(deletion), ..Row::default() });
    let of_partition = Partition { deletion: Some(deletion), ..Partition::default() };
    let of_range = ranges(&[((0, -1), (0, 1), deletion)]);
    for deleted in [of_row, of_partition, of_range] {
        assert_eq!(merge(vec![of(row(5)), deleted.clone()]), deleted);
        assert_eq!(live(vec![of(row(5)), deleted.clone()], 0), Partition::default());
        let found = merge(vec![of(row(6)), deleted.clone()]);
        assert_eq!(found.rows[&(0, 0)].cells.len(), 2);
        assert_eq!(live(vec![of(row(6)), deleted], 0), of(row(6)));
    }
    // A new value of a map replaces the old one.
    let mut replaced = with(&[((MAP, 2), cell(6, Life::Live, 2))]);
    replaced.complex.insert(MAP, deletion);
    let found = merge(vec![of(row(5)), of(replaced.clone())]);
    let mut expected = replaced;
    expected.marker = marker(5);
    expected.cells.insert((INT, 0), cell(5, Life::Live, 1));
    assert_eq!(found, of(expected));
}

#[test]
fn deletions_that_are_deleted_themselves_are_gone() {
    let mut inner = Row { deletion: Some((5, 100)), ..Row::default() };
    inner.complex.insert(MAP, (4, 100));
    assert_eq!(merge(vec![of(inner.clone()), of(Row::default())]).rows[&(0, 0)].complex.len(), 0);
    let outer = Partition { deletion: Some((5, 100)), ..Partition::default() };
    assert_eq!(merge(vec![of(inner.clone()), outer.clone()]), outer);
    // Of equal times, the later local one counts.
    let inner = of(Row { deletion: Some((5, 101)), ..Row::default() });
    assert_eq!(merge(vec![inner.clone(), outer]).rows, inner.rows);
}

#[test]
fn a_shadowable_deletion_ends_with_a_newer_row_marker() {
    let deleted = of(Row { shadowable: Some((5, 100)), ..Row::default() });
    let mut row = with(&[((INT, 0), cell(3, Life::Live, 1)), ((MAP, 1), cell(6, Life::Live, 1))]);
    row.marker = marker(5);
    let found = merge(vec![deleted.clone(), of(row.clone())]);
    assert_eq!(found.rows[&(0, 0)].cells.keys().copied().collect::<Vec<_>>(), [(MAP, 1)]);
    assert_eq!((found.rows[&(0, 0)].marker, found.rows[&(0, 0)].shadowable), (None, Some((5, 100))));
    row.marker = marker(6);
    assert_eq!(merge(vec![deleted.clone(), of(row.clone())]), of(row.clone()));
    // Another deletion stays.
    let mut both = row.clone();
    both.deletion = Some((4, 100));
    let found = merge(vec![deleted, of(both)]);
    assert_eq!(found.rows[&(0, 0)].deletion, Some((4, 100)));
    assert_eq!(found.rows[&(0, 0)].cells.len(), 1);
}

#[test]
fn ranges_are_cut_where_the_newest_changes() {
    let (old, new, newer) = ((3, 100), (5, 100), (7, 100));
    let bound = |at: i64| (0, 4 * at - 1);
    let found = merge(vec![
        ranges(&[(bound(0), bound(4), new)]),
        ranges(&[(bound(2), bound(6), old), (bound(6), bound(8), newer)]),
        ranges(&[(bound(3), bound(7), newer)]),
    ]);
    // Equal ranges that meet are one.
    assert_eq!(found.ranges, [(bound(0), bound(3), new), (bound(3), bound(8), newer)]);
    // Ranges of whole prefixes, and of all rows.
    let all = ((i64::MIN, 0), (i64::MAX, 0), old);
    let prefix = ((0, i64::MIN), (0, i64::MAX), new);
    let found = merge(vec![ranges(&[all]), ranges(&[prefix])]);
    assert_eq!(found.ranges, [(all.0, prefix.0, old), prefix, (prefix.1, all.1, old)]);
    // A partition's deletion that is newer.
    let mut deleted = ranges(&[]);
    deleted.deletion = Some((6, 100));
    let found = merge(vec![ranges(&[(bound(0), bound(4), new), (bound(4), bound(6), newer)]), deleted]);
    assert_eq!(found.ranges, [(bound(4), bound(6), newer)]);
}

#[test]
fn alive_is_a_row_of_which_anything_is() {
    let expiring = |timestamp, local| Some(Marker { timestamp, expiry: Some((10, local)) });
    let with_marker = |marker| of(Row { marker, ..Row::default() });
    // It expires at that second.
    assert_eq!(live(vec![with_marker(expiring(1, 100))], 99), with_marker(expiring(1, 100)));
    assert_eq!(live(vec![with_marker(expiring(1, 100))], 100), Partition::default());
    // A cell of a row that was never inserted.
    let mut row = with(&[((INT, 0), cell(1, Life::Live, 1))]);
    assert_eq!(live(vec![of(row.clone())], 0), of(row.clone()));
    // The marker expires, the cell does not.
    row.marker = expiring(1, 100);
    let found = live(vec![of(row.clone())], 100);
    assert_eq!(found, of(Row { marker: None, ..row.clone() }));
    // A static row alone; its marker means nothing.
    let mut partition = Partition::default();
    let value = cell(1, Life::Expiring(5, 50), 1);
    partition.rows.insert(STATIC, with(&[((0, 0), value)]));
    assert_eq!(live(vec![partition.clone()], 49), partition);
    assert_eq!(live(vec![partition], 50), Partition::default());
}

/// Cassandra moves the row of a view so: the marker is one that has expired, and the cells are left.
#[test]
fn the_rows_of_views_live_by_their_markers() {
    let mut row = with(&[((INT, 0), cell(7, Life::Live, 1)), ((MAP, 1), cell(7, Life::Live, 1))]);
    row.marker = marker(5);
    let with_marker = |marker| of(Row { marker, ..row.clone() });
    let moved =
        Row { marker: Some(Marker { timestamp: 5, expiry: Some((0x7fff_ffff, 100)) }), ..Row::default() };
    let expiring = with_marker(Some(Marker { timestamp: 5, expiry: Some((10, 100)) }));
    let shadowed = of(Row { shadowable: Some((5, 100)), ..Row::default() });
    let lives = |versions: &[Partition], liveness, now| {
        let mut options = MergeOptions::default();
        (options.live_at, options.liveness) = (Some(now), liveness);
        run(versions.to_vec(), &options) != Partition::default()
    };
    let of_all = |versions: &[Partition]| {
        [Liveness::Anything, Liveness::NotMoved, Liveness::NotExpired, Liveness::Marker]
            .map(|liveness| lives(versions, liveness, 100))
    };
    assert_eq!(of_all(&[with_marker(marker(5))]), [true; 4]);
    assert_eq!(of_all(&[with_marker(marker(5)), of(moved.clone())]), [true, false, false, false]);
    assert_eq!(of_all(&[of(moved.clone()), with_marker(marker(6))]), [true; 4]);
    assert_eq!(of_all(std::slice::from_ref(&expiring)), [true, true, false, false]);
    assert!(lives(&[expiring], Liveness::Marker, 99));
    assert_eq!(of_all(&[with_marker(marker(5)), shadowed]), [true, true, false, false]);
    assert_eq!(of_all(&[with_marker(None)]), [true, true, true, false]);
    // It is not an error of the clock of who reads.
    assert!(lives(&[with_marker(marker(5)), of(moved)], Liveness::NotMoved, 99));
    // Static rows have no markers.
    let mut partition = Partition::default();
    partition.rows.insert(STATIC, with(&[((0, 0), cell(1, Life::Live, 1))]));
    assert_eq!(of_all(&[partition]), [true; 4]);
}

#[test]
fn what_is_not_in_order_is_refused() {
    let sstable = |number| Sstable::from([(key(number), of(Row { marker: marker(1), ..Row::default() }))]);
    let one = |number| Writer::write(&sstable(number), false, &mut || false);
    let (mut first, mut last) = (1, 2);
    if key(first) > key(last) {
        (first, last) = (last, first);
    }
    let run = |batches: Vec<MutationBatch>| {
        let error = merged(&table(false), vec![batches, one(5)], &MergeOptions::default(), PLAIN);
        error.map_err(|error| error.kind())
    };
    assert!(run([one(first), one(last)].concat()).is_ok());
    assert_eq!(run([one(last), one(first)].concat()).unwrap_err(), ErrorKind::Corrupt);
    // A range that does not end.
    let mut batch = batches(ranges(&[((0, -1), (0, 1), (5, 100))]));
    batch[0].entries.kinds.truncate(1);
    batch[0].entries.timestamps.truncate(1);
    batch[0].partitions.ends = vec![1];
    for column in &mut batch[0].entries.clustering {
        let marquetry_scylla::sstable::batch::Values::Four(values) = &mut column.values else { panic!() };
        values.truncate(1);
    }
    let inputs = vec![batch, batches(of(Row { marker: marker(1), ..Row::default() }))];
    let error = merged(&table(false), inputs, &MergeOptions::default(), PLAIN).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn a_host_is_held_to_the_contract() {
    let batch = batches(of(Row { marker: marker(1), ..Row::default() })).remove(0);
    let new = || Merger::new(Arc::clone(&table(false)), 1, MergeOptions::default()).unwrap();
    let misuse =
        |result: marquetry_base::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Misuse);
    let mut merger = new();
    assert_eq!(merger.step(&mut Budget::default()), Ok(MergeStep::Need(0)));
    assert_eq!(merger.step(&mut Budget::default()), Ok(MergeStep::Need(0)));
    misuse(merger.feed(1, batch.clone()));
    merger.feed(0, batch.clone()).unwrap();
    misuse(merger.feed(0, batch.clone()));
    assert_eq!(merger.step(&mut Budget::default()), Ok(MergeStep::Ready(batch.clone())));
    merger.finish(0);
    assert_eq!(merger.step(&mut Budget::default()), Ok(MergeStep::Done));
    misuse(merger.feed(0, batch.clone()));
    // Batches of another table, and those that go on with nothing.
    let mut other = batch.clone();
    other.columns.pop();
    misuse(new().feed(0, other));
    let mut other = batch;
    other.continues = marquetry_scylla::sstable::batch::Continues::Partition;
    misuse(new().feed(0, other));
    assert_eq!(
        Merger::new(table(false), 0, MergeOptions::default()).unwrap().step(&mut Budget::default()),
        Ok(MergeStep::Done)
    );
    assert_eq!(
        Partitioner::of_class("org.apache.cassandra.dht.RandomPartitioner").unwrap_err().kind(),
        ErrorKind::Unsupported
    );
}
