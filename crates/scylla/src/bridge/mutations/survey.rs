//! What rows as a whole have: the write time of most of their cells, and when all that is alive in them has expired.
//!
//! For the write time, a row's marker and its cells vote, one after the other, by the algorithm of Boyer and Moore: what more than half of
//! them have wins; if nothing does, something that one of them has. A row expires with the last of its marker and cells, or not at all if
//! one of them does not: so a reader who looks at rows only leaves out none that is alive.

use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Price};

use crate::sstable::batch::{EntryKind, Expiry, MutationBatch, NO_TIMESTAMP, Sparse, number_of};

/// The price of a cell that is looked at.
const VOTE_PRICE: Price = Price::per_kilovalue(8 << 10);
/// Cells between two looks at the budget.
const SLICE_CELLS: usize = 4096;

/// What rows have, by entry.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The write time of most of its cells and marker; [`NO_TIMESTAMP`] for none.
    pub(super) times: Vec<i64>,
    /// When the last of them expires.
    pub(super) expiries: Vec<Expiry>,
    /// Rows without marker in which a cell is alive. Empty if all rows have markers.
    pub(super) alive: Vec<bool>,
    /// A cell that is like its row may have another write time, or expiry, than most.
    pub(super) has_outvoted: bool,
    time_weights: Vec<u32>,
    /// Whether anything alive was seen in a row.
    is_seen: Vec<bool>,
    column: usize,
    cell: usize,
    is_begun: bool,
}

impl Survey {
    /// Counts votes until the budget is spent: then false.
    pub(super) fn step(&mut self, batch: &MutationBatch, budget: &mut Budget<'_>) -> bool {
        if !self.is_begun {
            self.begin(batch, budget);
        }
        while let Some(cells) = batch.columns.get(self.column) {
            let is_needed =
                !self.time_weights.is_empty() || !self.is_seen.is_empty() || !self.alive.is_empty();
            let end = if is_needed { cells.len().min(self.cell + SLICE_CELLS) } else { cells.len() };
            if is_needed {
                self.count(batch, end);
                budget.charge(VOTE_PRICE, 0, end - self.cell);
            }
            self.cell = end;
            if end == cells.len() {
                (self.column, self.cell) = (self.column + 1, 0);
                budget.charge_units(8);
            }
            if budget.is_spent() && self.column < batch.columns.len() {
                return false;
            }
        }
        self.has_outvoted = (!self.time_weights.is_empty()
            && (self.times.iter().zip(&batch.entries.timestamps))
                .any(|(most, own)| most != own && *own != NO_TIMESTAMP))
            || (!self.is_seen.is_empty() && self.is_an_expiry_outvoted(batch));
        budget.charge(VOTE_PRICE, 0, self.times.len());
        true
    }

    fn begin(&mut self, batch: &MutationBatch, budget: &mut Budget<'_>) {
        self.is_begun = true;
        let entries = &batch.entries;
        let count = entries.kinds.len();
        self.times.clone_from(&entries.timestamps);
        let markers = || entries.timestamps.iter().map(|time| u32::from(*time != NO_TIMESTAMP));
        if batch.columns.iter().any(|cells| !cells.timestamps.is_empty()) {
            self.time_weights.extend(markers());
        }
        let has_own = batch.columns.iter().any(|cells| !cells.expiries.is_empty());
        if has_own || !entries.expiries.is_empty() {
            self.expiries.resize(count, Expiry::NEVER);
            for (at, expiry) in entries.expiries.at.iter().zip(&entries.expiries.values) {
                if let Some(of) = self.expiries.get_mut(usize_of_u32(*at)) {
                    *of = *expiry;
                }
            }
        }
        if has_own {
            self.is_seen.extend(markers().map(|marker| marker > 0));
        }
        let lacks_marker =
            |(kind, time): (&EntryKind, &i64)| *kind == EntryKind::Row && *time == NO_TIMESTAMP;
        if entries.kinds.iter().zip(&entries.timestamps).any(lacks_marker) {
            self.alive.resize(count, false);
        }
        budget.charge(VOTE_PRICE, 0, count + batch.columns.len());
    }

    fn count(&mut self, batch: &MutationBatch, end: usize) {
        let Some(cells) = batch.columns.get(self.column) else { return };
        let mut times = Walk::from(&cells.timestamps, self.cell);
        let mut expiries = Walk::from(&cells.expiries, self.cell);
        let mut tombstones = Walk::from(&cells.tombstones, self.cell);
        for cell in self.cell..end {
            let number = number_of(cell);
            let entry = usize_of_u32(cells.entries[cell]);
            let is_dead = tombstones.take(number).is_some();
            let own_time = times.take(number);
            let own_expiry = expiries.take(number);
            if let Some(weight) = self.time_weights.get_mut(entry) {
                let time = own_time.unwrap_or(batch.entries.timestamps[entry]);
                vote(&mut self.times[entry], weight, time);
            }
            if is_dead {
                continue;
            }
            if let Some(alive) = self.alive.get_mut(entry) {
                *alive = true;
            }
            if let Some(is_seen) = self.is_seen.get_mut(entry) {
                let expiry = own_expiry
                    .unwrap_or_else(|| batch.entries.expiries.get(number_of(entry)).unwrap_or(Expiry::NEVER));
                let last = &mut self.expiries[entry];
                let when = |expiry: &Expiry| (expiry.local_deletion, expiry.ttl);
                if !core::mem::replace(is_seen, true) || when(&expiry) > when(last) {
                    *last = expiry;
                }
            }
        }
    }

    fn is_an_expiry_outvoted(&self, batch: &MutationBatch) -> bool {
        let mut own = Walk::from(&batch.entries.expiries, 0);
        self.expiries
            .iter()
            .enumerate()
            .any(|(entry, most)| *most != own.take(number_of(entry)).unwrap_or(Expiry::NEVER))
    }

    /// When the last of an entry expires.
    #[inline]
    pub(super) fn expiry(&self, entry: usize) -> Expiry {
        self.expiries.get(entry).copied().unwrap_or(Expiry::NEVER)
    }
}

#[inline]
fn vote<T: PartialEq>(most: &mut T, weight: &mut u32, value: T) {
    if *most == value {
        *weight += 1;
    } else if *weight == 0 {
        (*most, *weight) = (value, 1);
    } else {
        *weight -= 1;
    }
}

/// A walk along a sparse list, beside one along all cells.
#[derive(Debug)]
pub(super) struct Walk<'a, T> {
    at: &'a [u32],
    values: &'a [T],
}

impl<'a, T: Copy> Walk<'a, T> {
    /// From the cell with this number on.
    pub(super) fn from(list: &'a Sparse<T>, cell: usize) -> Walk<'a, T> {
        let skipped = list.at.partition_point(|at| usize_of_u32(*at) < cell);
        Walk {
            at: list.at.get(skipped..).unwrap_or_default(),
            values: list.values.get(skipped..).unwrap_or_default(),
        }
    }

    /// What the cell with this number has.
    #[inline]
    pub(super) fn take(&mut self, cell: u32) -> Option<T> {
        match (self.at, self.values) {
            ([at, later @ ..], [value, values @ ..]) if *at == cell => {
                (self.at, self.values) = (later, values);
                Some(*value)
            }
            _ => None,
        }
    }
}
