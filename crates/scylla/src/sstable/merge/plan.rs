//! What a merge needs to know of the table: how its columns are sorted and stored.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::mem::discriminant;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Error, Limit, Limits, Result};

use crate::sstable::TableColumns;
use crate::sstable::batch::{Cells, ClusteringColumn, Entries, EntryKind, MutationBatch, Values, number_of};
use crate::sstable::compare::Comparator;

/// The columns of a table.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) clustering: Vec<(Comparator, Option<u32>)>,
    /// The static columns, and then the others.
    pub(super) columns: Vec<Column>,
    pub(super) statics: usize,
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    fixed: Option<u32>,
    /// What sorts its cells, if an entry has several.
    pub(super) paths: Option<Comparator>,
    pub(super) is_counter: bool,
}

impl Plan {
    pub(super) fn new(table: &TableColumns) -> Result<Plan> {
        let mut plan = Plan { clustering: Vec::new(), columns: Vec::new(), statics: table.statics.len() };
        for key in &table.clustering {
            let at = |error: Error| error.at(|place| place.column = Some(key.name.clone()));
            plan.clustering.push((Comparator::new(&key.kind).map_err(at)?, key.kind.fixed_bytes()));
        }
        for column in table.cells() {
            let name = || crate::sstable::elements::name(&column.name);
            let at = |error: Error| error.at(|place| place.column = Some(name()));
            plan.columns.push(Column {
                fixed: column.kind.fixed_bytes(),
                paths: Comparator::of_paths(&column.kind).map_err(at)?,
                is_counter: column.kind.is_counter(),
            });
        }
        Ok(plan)
    }

    /// A batch of the table with nothing in it.
    pub(super) fn batch(&self) -> MutationBatch {
        let mut batch = MutationBatch::default();
        let new = |fixed| ClusteringColumn { values: Values::of(fixed), ..ClusteringColumn::default() };
        batch.entries.clustering = self.clustering.iter().map(|(_, fixed)| new(*fixed)).collect();
        let new = |fixed| Cells { values: Values::of(fixed), ..Cells::default() };
        batch.columns = self.columns.iter().map(|column| new(column.fixed)).collect();
        batch
    }

    /// The columns of static rows, or of others.
    pub(super) fn columns_of(&self, kind: EntryKind) -> core::ops::Range<usize> {
        if kind == EntryKind::Static { 0..self.statics } else { self.statics..self.columns.len() }
    }

    /// Checks that a batch is one of the table, and that its arrays have the lengths that they must have.
    pub(super) fn check(&self, batch: &MutationBatch) -> Result<()> {
        let is_of =
            |values: &Values, fixed: Option<u32>| discriminant(values) == discriminant(&Values::of(fixed));
        let (partitions, entries) = (&batch.partitions, &batch.entries);
        let count = entries.kinds.len();
        let is_right = partitions.keys.len() == partitions.ends.len()
            && partitions.ends.last().map_or(0, |end| usize_of_u32(*end)) == count
            && partitions.ends.is_sorted()
            && entries.timestamps.len() == count
            && entries.clustering.len() == self.clustering.len()
            && batch.columns.len() == self.columns.len()
            && (entries.clustering.iter().zip(&self.clustering))
                .all(|(column, (_, fixed))| column.values.len() == count && is_of(&column.values, *fixed))
            && batch.columns.iter().zip(&self.columns).all(|(cells, column)| {
                cells.values.len() == cells.len()
                    && is_of(&cells.values, column.fixed)
                    && cells.paths.len() == if column.paths.is_some() { cells.len() } else { 0 }
            });
        if is_right { Ok(()) } else { Err(Error::misuse("a batch that is not one of the table")) }
    }

    /// Compares the places of two entries in their partition.
    pub(super) fn compare(
        &self,
        (left, left_at): (&Entries, usize),
        (right, right_at): (&Entries, usize),
    ) -> Ordering {
        let kind = |entries: &Entries, at: usize| entries.kinds.get(at).copied().unwrap_or(EntryKind::Row);
        let (left_kind, right_kind) = (kind(left, left_at), kind(right, right_at));
        if left_kind == EntryKind::Static || right_kind == EntryKind::Static {
            return (right_kind == EntryKind::Static).cmp(&(left_kind == EntryKind::Static));
        }
        let columns = self.clustering.len();
        let (left_size, right_size) = (size(left, left_at, columns), size(right, right_at, columns));
        for (at, (comparator, _)) in self.clustering.iter().enumerate().take(left_size.min(right_size)) {
            let (left, right) = (&left.clustering[at], &right.clustering[at]);
            let found = compare_values(comparator, (left, left_at), (right, right_at));
            if found.is_ne() {
                return found;
            }
        }
        let (left_side, right_side) = (side(left_kind), side(right_kind));
        match left_size.cmp(&right_size) {
            Ordering::Equal => left_side.cmp(&right_side),
            // A bound of fewer values is before all rows that begin with them, or after all of them.
            Ordering::Less => left_side,
            Ordering::Greater => right_side.reverse(),
        }
    }

    /// Checks the values of an entry that take long to compare.
    pub(super) fn check_entry(&self, entries: &Entries, at: usize) -> Result<()> {
        for ((comparator, _), column) in self.clustering.iter().zip(&entries.clustering) {
            if let Values::Strings(strings) = &column.values {
                comparator.check(strings.get(at).unwrap_or_default())?;
            }
        }
        Ok(())
    }

    /// Bytes of the entry's clustering values that are strings.
    pub(super) fn bytes_of(&self, entries: &Entries, at: usize) -> usize {
        let mut bytes = 0;
        for column in &entries.clustering {
            if let Values::Strings(strings) = &column.values {
                bytes += strings.range(at).map_or(0, |range| range.len());
            }
        }
        bytes
    }

    /// Bytes of the cursors of so many inputs, which are allocated at once.
    pub(super) fn check_cursors(&self, inputs: usize, cursor_bytes: usize, limits: &Limits) -> Result<()> {
        let bytes = u64_of(inputs).saturating_mul(u64_of(self.columns.len() * cursor_bytes));
        limits.check(Limit::TotalBytes, bytes)
    }
}

/// The number of clustering values that an entry has.
fn size(entries: &Entries, at: usize, columns: usize) -> usize {
    match entries.prefixes.is_empty() {
        true => columns,
        false => entries.prefixes.get(number_of(at)).map_or(columns, |size| usize_of_u32(size).min(columns)),
    }
}

/// Where an entry is, seen from a row with the same values.
pub(super) fn side(kind: EntryKind) -> Ordering {
    match kind {
        EntryKind::ExclusiveEnd | EntryKind::InclusiveStart | EntryKind::ExclusiveEndInclusiveStart => {
            Ordering::Less
        }
        EntryKind::Row | EntryKind::Static => Ordering::Equal,
        EntryKind::InclusiveEnd | EntryKind::ExclusiveStart | EntryKind::InclusiveEndExclusiveStart => {
            Ordering::Greater
        }
    }
}

/// Null comes first, and then, unless the order is reversed, no bytes.
#[inline]
fn compare_values(
    comparator: &Comparator,
    (left, left_at): (&ClusteringColumn, usize),
    (right, right_at): (&ClusteringColumn, usize),
) -> Ordering {
    let has = |list: &[u32], at: usize| !list.is_empty() && list.binary_search(&number_of(at)).is_ok();
    let (left_is_null, right_is_null) = (has(&left.nulls, left_at), has(&right.nulls, right_at));
    if left_is_null || right_is_null {
        return right_is_null.cmp(&left_is_null);
    }
    let (left_is_empty, right_is_empty) = (has(&left.empties, left_at), has(&right.empties, right_at));
    if left_is_empty || right_is_empty {
        let found = right_is_empty.cmp(&left_is_empty);
        return if comparator.is_reversed() { found.reverse() } else { found };
    }
    comparator.compare_at((&left.values, left_at), (&right.values, right_at))
}
