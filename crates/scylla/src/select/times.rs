//! What is known of a row's times, and what its marker is given.

use alloc::vec::Vec;

use crate::sstable::batch::{Expiry, MutationBatch, NO_TIMESTAMP, number_of};

/// The times of a cell, as they are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Timed {
    /// They were selected. If not, nobody knows.
    pub(super) is_known: bool,
    pub(super) write_time: Option<i64>,
    /// What is left, in seconds.
    pub(super) ttl: Option<u32>,
}

/// The cells of one entry, until all of them are there.
#[derive(Debug, Default)]
pub(super) struct RowTimes {
    cells: Vec<(usize, u32, Timed)>,
}

/// What an entry has of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    /// A row marker.
    Assumed,
    /// None: static rows and counters have none.
    Missing,
}

impl RowTimes {
    /// Adds a cell: its column, its number there.
    pub(super) fn add(&mut self, column: usize, cell: u32, timed: Timed) {
        self.cells.push((column, cell, timed));
    }

    /// Gives the entry, which is the last one, and its cells their times.
    ///
    /// `now` is when the row was read, in seconds since 1970; `unknown` a write time for what has none.
    pub(super) fn finish(&mut self, batch: &mut MutationBatch, marker: Marker, now: u32, unknown: i64) {
        let expiry = |timed: &Timed| {
            // One that expires within this second still does.
            timed.ttl.map(|ttl| Expiry { ttl: ttl.max(1), local_deletion: now.saturating_add(ttl.max(1)) })
        };
        let oldest = self.cells.iter().filter_map(|(_, _, timed)| timed.write_time).min();
        let (own_time, own_expiry) = match marker {
            Marker::Missing => (NO_TIMESTAMP, None),
            Marker::Assumed => {
                // What does not expire is the last.
                let when =
                    |expiry: &Option<Expiry>| expiry.map_or(u64::MAX, |it| u64::from(it.local_deletion));
                let last = self.cells.iter().map(|(_, _, timed)| expiry(timed)).max_by_key(when);
                (oldest.unwrap_or(unknown), last.flatten())
            }
        };
        let entry = number_of(batch.entries.kinds.len().saturating_sub(1));
        batch.entries.timestamps.push(own_time);
        if let Some(own) = own_expiry {
            batch.entries.expiries.push(entry, own);
        }
        for (column, cell, timed) in self.cells.drain(..) {
            let Some(cells) = batch.columns.get_mut(column) else { continue };
            let time = timed.write_time.unwrap_or(oldest.unwrap_or(unknown));
            if time != own_time {
                cells.timestamps.push(cell, time);
            }
            let of_cell = expiry(&timed);
            // What is not known is as its row.
            if timed.is_known && of_cell != own_expiry {
                cells.expiries.push(cell, of_cell.unwrap_or(Expiry::NEVER));
            }
        }
    }
}
