//! What a load has done so far, counted by the tasks that send.

use std::sync::atomic::{AtomicU64, Ordering};

use marquetry_base::cast::u64_of;
use marquetry_tables::{Doing, Written};

/// Counts that tasks add to while another thread reads them.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    rows: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
    rejected: AtomicU64,
    in_flight: AtomicU64,
    in_flight_max: AtomicU64,
}

impl Counts {
    /// What is acknowledged. Rows in flight may have arrived as well.
    pub(crate) fn written(&self) -> Written {
        let mut written = Written::default();
        written.rows = self.rows.load(Ordering::Relaxed);
        written.bytes = self.bytes.load(Ordering::Relaxed);
        written.retries = self.retries.load(Ordering::Relaxed);
        written.rejected = self.rejected.load(Ordering::Relaxed);
        written
    }

    /// What is being done.
    pub(crate) fn doing(&self) -> Doing {
        let mut doing = Doing::default();
        doing.written = self.written();
        doing.in_flight = self.in_flight.load(Ordering::Relaxed);
        doing.in_flight_max = self.in_flight_max.load(Ordering::Relaxed);
        doing
    }

    /// So many rows are in flight, of at most so many.
    pub(crate) fn set_in_flight(&self, rows: usize, most: usize) {
        self.in_flight.store(u64_of(rows), Ordering::Relaxed);
        self.in_flight_max.store(u64_of(most), Ordering::Relaxed);
    }

    /// So many rows were rejected in all.
    pub(crate) fn set_rejected(&self, rows: u64) {
        self.rejected.store(rows, Ordering::Relaxed);
    }

    /// A row was acknowledged.
    pub(crate) fn add_row(&self, bytes: u64) {
        self.rows.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A row is sent again.
    pub(crate) fn add_retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }
}
