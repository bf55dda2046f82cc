//! What a load has done so far, counted by the tasks that send.

use std::sync::atomic::{AtomicU64, Ordering};

use marquetry_tables::Written;

/// Counts that tasks add to while another thread reads them.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    rows: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
}

impl Counts {
    /// What is acknowledged. Rows in flight may have arrived as well.
    pub(crate) fn written(&self) -> Written {
        let mut written = Written::default();
        written.rows = self.rows.load(Ordering::Relaxed);
        written.bytes = self.bytes.load(Ordering::Relaxed);
        written.retries = self.retries.load(Ordering::Relaxed);
        written
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
