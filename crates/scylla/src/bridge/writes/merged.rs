//! Several rows of one key as one.

use alloc::vec::Vec;
use core::cmp::Ordering;

use marquetry_base::Result;

use super::elements::Cellular;
use super::record::{Record, Slot};
use crate::sstable::batch::Deletion;
use crate::sstable::compare::Comparator;
use crate::sstable::merge::{Life, Marker, Ties, compare_cells, deletes, later};

/// Of two cells that differ in their values alone the greater one counts, in all servers.
const TIES: Ties = Ties::GreaterValue;
/// Cells of a column beyond twice those that were compared last, before they are compared again.
const MORE: usize = 64;

/// What is known of a column that has cells.
#[derive(Debug)]
pub(super) struct ColumnForm {
    pub(super) cellular: Cellular,
    /// Of the paths of cells; of one cell, and of lists' elements, there are none to compare.
    pub(super) paths: Option<Comparator>,
}

/// A row that is merged of several.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) marker: Marker,
    /// Of the columns of its kind.
    pub(super) columns: Vec<MergedColumn>,
}

#[derive(Debug, Default)]
pub(super) struct MergedColumn {
    pub(super) deletion: Option<Deletion>,
    pub(super) cells: Vec<MergedCell>,
    /// Cells when they were compared last.
    compared: usize,
}

#[derive(Debug, Clone)]
pub(super) struct MergedCell {
    pub(super) path: Vec<u8>,
    pub(super) timestamp: i64,
    pub(super) life: Life,
    pub(super) value: Vec<u8>,
}

impl Merged {
    pub(super) fn new(columns: usize) -> Merged {
        let columns = (0..columns).map(|_| MergedColumn::default()).collect();
        Merged { marker: Marker::NONE, columns }
    }

    /// Adds a record, of which the cells come next.
    pub(super) fn add(
        &mut self,
        record: &Record<'_>,
        forms: &[ColumnForm],
        now_s: u32,
        clustering: usize,
    ) -> Result<()> {
        let mut rest = record.rest;
        if !record.is_static {
            let marker = Marker { timestamp: record.write_time_us, expiry: record.expiry };
            if marker.supersedes(self.marker, TIES) {
                self.marker = marker;
            }
            for _ in 0..clustering {
                rest.next()?;
            }
        }
        let (timestamp, life) = (record.write_time_us, record.life());
        for (column, form) in self.columns.iter_mut().zip(forms) {
            let slot = rest.next()?;
            if slot != Slot::Unset && form.cellular != Cellular::One {
                let deletion = replaced(timestamp, now_s);
                column.deletion = deletion.map_or(column.deletion, |it| later(Some(it), column.deletion));
            }
            let cell = |path: &[u8], life: Life, value: &[u8]| MergedCell {
                path: path.to_vec(),
                timestamp,
                life,
                value: value.to_vec(),
            };
            match slot {
                Slot::Unset => {}
                Slot::Deleted if form.cellular == Cellular::One => {
                    column.cells.push(cell(&[], Life::Dead(now_s), &[]));
                }
                Slot::Deleted => {}
                Slot::Value(value) => form.cellular.for_each(value, |path, value| {
                    column.cells.push(cell(path, life, value));
                    Ok(())
                })?,
            }
            if column.cells.len() > 2 * column.compared + MORE {
                column.compare(form);
            }
        }
        Ok(())
    }

    /// Leaves of each cell the one that counts.
    pub(super) fn finish(&mut self, forms: &[ColumnForm]) {
        for (column, form) in self.columns.iter_mut().zip(forms) {
            column.compare(form);
        }
    }
}

impl MergedColumn {
    fn compare(&mut self, form: &ColumnForm) {
        let deletion = self.deletion;
        self.cells.retain(|cell| !deletes(deletion, cell.timestamp));
        if form.cellular != Cellular::List {
            let order = |left: &MergedCell, right: &MergedCell| {
                form.paths.as_ref().map_or(Ordering::Equal, |order| order.compare(&left.path, &right.path))
            };
            self.cells.sort_by(|left, right| order(left, right).then_with(|| counts_more(right, left)));
            self.cells.dedup_by(|later, first| order(first, later).is_eq());
        }
        self.compared = self.cells.len();
    }
}

/// Which of two cells counts.
fn counts_more(left: &MergedCell, right: &MergedCell) -> Ordering {
    compare_cells((left.timestamp, left.life), (right.timestamp, right.life), TIES)
        .then_with(|| left.value.cmp(&right.value))
}

/// What a new value of a column of several cells deletes: all that is older.
pub(super) fn replaced(write_time_us: i64, now_s: u32) -> Option<Deletion> {
    // The least write time is none.
    let timestamp = write_time_us.checked_sub(1).filter(|timestamp| *timestamp > i64::MIN)?;
    Some(Deletion { timestamp, local_deletion: now_s })
}
