//! The progress of a destination.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a destination has written so far. Any thread may read it while rows are copied, for instance to draw a
/// progress bar.
///
/// ```
/// use marquetry_tables::Progress;
///
/// let progress = Progress::default();
/// let elsewhere = progress.clone();
/// progress.add(3, 120);
/// assert_eq!((elsewhere.rows(), elsewhere.bytes()), (3, 120));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl Progress {
    /// Rows that were written.
    pub fn rows(&self) -> u64 {
        self.0.rows.load(Ordering::Relaxed)
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Adds to both counts.
    pub fn add(&self, rows: u64, bytes: u64) {
        self.0.rows.fetch_add(rows, Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
