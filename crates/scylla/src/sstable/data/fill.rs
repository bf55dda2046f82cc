//! Adding to a batch: values, and what the last one ended with.

use alloc::vec::Vec;

use crate::sstable::batch::{Cells, MutationBatch, Strings, Values, number_of};

/// Notes what adding a string moves, if there is no room.
#[inline]
pub(super) fn note_growth(moved: &mut usize, strings: &Strings, bytes: usize) {
    if strings.bytes.capacity() - strings.bytes.len() < bytes {
        *moved += strings.bytes.len();
    }
}

/// Adds a value whose length is right.
#[inline]
pub(crate) fn push_value(values: &mut Values, value: &[u8]) {
    match values {
        Values::Four(values) => values.push(i32::from_be_bytes(array(value))),
        Values::Eight(values) => values.push(i64::from_be_bytes(array(value))),
        Values::Strings(strings) => strings.push(value),
        Values::One(values) => values.push(u8::from_be_bytes(array(value))),
        Values::Sixteen(values) => values.push(array(value)),
        Values::None(count) => *count += 1,
    }
}

#[inline]
fn array<const N: usize>(value: &[u8]) -> [u8; N] {
    value.try_into().unwrap_or([0; N])
}

/// Adds a value of no bytes.
pub(crate) fn push_empty(cells: &mut Cells, number: u32, is_alive: bool) {
    if is_alive && !matches!(cells.values, Values::Strings(_) | Values::None(_)) {
        cells.empties.push(number);
    }
    cells.values.push_nothing();
}

/// Begins a batch with the partition that the last one ended with.
pub(in crate::sstable) fn continue_partition(last: &MutationBatch, next: &mut MutationBatch) {
    let Some(number) = last.partitions.ends.len().checked_sub(1) else { return };
    next.partitions.keys.push(last.partitions.keys.get(number).unwrap_or_default());
    next.partitions.offsets.push(last.partitions.offsets.get(number).copied().unwrap_or_default());
    next.partitions.ends.push(0);
    let deletions = &last.partitions.deletions;
    if deletions.at.last().copied() == Some(number_of(number))
        && let Some(deletion) = deletions.values.last()
    {
        next.partitions.deletions.push(0, *deletion);
    }
}

/// Begins a batch with the entry that the last one ended with, which is a row.
pub(in crate::sstable) fn continue_entry(last: &MutationBatch, next: &mut MutationBatch) {
    let (from, to) = (&last.entries, &mut next.entries);
    let Some(number) = from.kinds.len().checked_sub(1) else { return };
    let entry = number_of(number);
    to.kinds.extend(from.kinds.last());
    to.timestamps.extend(from.timestamps.last());
    let mut bytes = Vec::new();
    for (from, to) in from.clustering.iter().zip(&mut to.clustering) {
        bytes.clear();
        from.values.append_bytes(number, &mut bytes);
        push_value(&mut to.values, &bytes);
        to.nulls.extend((from.nulls.last() == Some(&entry)).then_some(0));
        to.empties.extend((from.empties.last() == Some(&entry)).then_some(0));
    }
    if let Some(expiry) = from.expiries.get(entry) {
        to.expiries.push(0, expiry);
    }
    if let Some(deletion) = from.deletions.get(entry) {
        to.deletions.push(0, deletion);
    }
    if let Some(deletion) = from.shadowables.get(entry) {
        to.shadowables.push(0, deletion);
    }
    if let Some(end) = next.partitions.ends.last_mut() {
        *end = 1;
    }
}
