//! Batches as partitions of the model.

use marquetry_scylla::sstable::batch::{
    Continues, Deletion as BatchDeletion, EntryKind, Expiry, MutationBatch, NO_TIMESTAMP, Sparse,
};
use marquetry_scylla::sstable::murmur3_token;

use crate::model::{Cell, Deletion, Life, Marker, Partition, Place, Row, Sstable};

/// What a table's rows are like.
pub(crate) trait Shape {
    type Place: Place;
    /// The path of a cell.
    type Name: Ord + Clone + std::fmt::Debug;

    fn place(&self, batch: &MutationBatch, entry: usize) -> Self::Place;
    fn name(&self, column: usize, path: &[u8]) -> Self::Name;
    fn columns_of(&self, is_static: bool) -> std::ops::Range<usize>;
    fn is_complex(&self, column: usize) -> bool;
}

/// The partition that was read last, and its entry.
type Last<P> = Option<((i64, Vec<u8>), Option<P>)>;

fn number(count: usize) -> u32 {
    u32::try_from(count).expect("small")
}

/// The partitions that batches have. Fails if they are not in order, or do not go on as they say.
pub(crate) fn read<S: Shape>(batches: &[MutationBatch], shape: &S) -> Sstable<S::Place, S::Name> {
    let mut sstable = Sstable::new();
    // The partition, the entry, and the start of the range that were read last.
    let mut last: Last<S::Place> = None;
    let mut open: Option<(S::Place, Deletion)> = None;
    let mut is_open = false;
    for batch in batches {
        assert!(batch.continues == Continues::Nothing || is_open, "a batch that goes on with nothing");
        is_open = batch.is_open;
        let mut seen = vec![0_usize; batch.columns.len()];
        for number_of_partition in 0..batch.partitions.ends.len() {
            let key = batch.partitions.keys.get(number_of_partition).expect("a key").to_vec();
            let key = (murmur3_token(&key), key);
            let at = number(number_of_partition);
            let deletion = batch.partitions.deletions.get(at).map(|it| (it.timestamp, it.local_deletion));
            if number_of_partition == 0 && batch.continues != Continues::Nothing {
                assert_eq!(last.as_ref().map(|last| &last.0), Some(&key), "the same partition");
                assert_eq!(sstable[&key].deletion, deletion);
            } else {
                assert!(last.as_ref().is_none_or(|last| last.0 < key), "partitions in order");
                assert_eq!(open, None, "a range that ends");
                sstable.insert(key.clone(), Partition { deletion, ..Partition::default() });
                last = Some((key.clone(), None));
            }
            let partition = sstable.get_mut(&key).expect("a partition");
            for entry in batch.entries_of(number_of_partition) {
                let place = shape.place(batch, entry);
                let goes_on = entry == 0 && batch.continues == Continues::Entry;
                let before = last.take().and_then(|last| last.1);
                let is_next =
                    if goes_on { before.as_ref() == Some(&place) } else { before.as_ref() < Some(&place) };
                assert!(is_next, "rows in order: {before:?}, {place:?}");
                last = Some((key.clone(), Some(place.clone())));
                if batch.entries.kinds[entry].is_row() {
                    read_row(batch, entry, &mut seen, partition.rows.entry(place).or_default(), shape);
                } else {
                    read_bound(batch, entry, place, &mut open, &mut partition.ranges);
                }
            }
        }
        for (cells, seen) in batch.columns.iter().zip(seen) {
            assert_eq!(cells.entries.len(), seen, "cells that are of no row");
        }
    }
    assert_eq!(open, None, "a range that ends");
    sstable
}

fn read_bound<P: Place>(
    batch: &MutationBatch,
    entry: usize,
    place: P,
    open: &mut Option<(P, Deletion)>,
    ranges: &mut Vec<(P, P, Deletion)>,
) {
    let at = number(entry);
    let times = |list: &Sparse<BatchDeletion>| list.get(at).map(|it| (it.timestamp, it.local_deletion));
    let first = times(&batch.entries.deletions).expect("a deletion");
    let kind = batch.entries.kinds[entry];
    let starts = match kind {
        EntryKind::InclusiveStart | EntryKind::ExclusiveStart => {
            assert_eq!(*open, None);
            Some(first)
        }
        _ => {
            let (start, deletion) = open.take().expect("an open range");
            assert_eq!(deletion, first);
            ranges.push((start, place.clone(), deletion));
            times(&batch.entries.starts)
        }
    };
    assert_eq!(times(&batch.entries.starts).is_some(), kind.is_boundary());
    *open = starts.map(|deletion| (place, deletion));
}

fn read_row<S: Shape>(
    batch: &MutationBatch,
    entry: usize,
    seen: &mut [usize],
    row: &mut Row<S::Name>,
    shape: &S,
) {
    let at = number(entry);
    let times = |list: &Sparse<BatchDeletion>| list.get(at).map(|it| (it.timestamp, it.local_deletion));
    let timestamp = batch.entries.timestamps[entry];
    let expiry = batch.entries.expiries.get(at).map(|expiry| (expiry.ttl, expiry.local_deletion));
    row.marker = (timestamp != NO_TIMESTAMP).then_some(Marker { timestamp, expiry });
    (row.deletion, row.shadowable) = (times(&batch.entries.deletions), times(&batch.entries.shadowables));
    let is_static = batch.entries.kinds[entry] == EntryKind::Static;
    for column in shape.columns_of(is_static) {
        let cells = &batch.columns[column];
        if let Some(deletion) = times(&cells.deletions) {
            assert_eq!(row.complex.insert(column, deletion), None);
        }
        while cells.entries.get(seen[column]) == Some(&at) {
            let cell_at = number(seen[column]);
            let mut value = Vec::new();
            cells.values.append_bytes(seen[column], &mut value);
            if cells.empties.contains(&cell_at) {
                value.clear();
            }
            let mut life = match cells.expiries.get(cell_at) {
                Some(Expiry::NEVER) => Life::Live,
                Some(expiry) => Life::Expiring(expiry.ttl, expiry.local_deletion),
                None => expiry.map_or(Life::Live, |(ttl, local)| Life::Expiring(ttl, local)),
            };
            if let Some(local) = cells.tombstones.get(cell_at) {
                life = Life::Dead(local);
                value.clear();
            }
            let path =
                if shape.is_complex(column) { cells.paths.get(seen[column]).expect("a path") } else { &[] };
            let timestamp = cells.timestamps.get(cell_at).unwrap_or(timestamp);
            let name = (column, shape.name(column, path));
            let later = row.cells.range(name.clone()..).next();
            assert!(later.is_none_or(|((other, _), _)| *other != column), "cells in order");
            row.cells.insert(name, Cell { timestamp, life, value });
            seen[column] += 1;
        }
    }
}
