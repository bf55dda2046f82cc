//! The progress of a load.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::cluster::Created;

/// The progress of a load. Any thread may read it while rows are copied, for instance to draw a progress bar, and
/// after an error.
///
/// ```no_run
/// # fn copy(table: &mut marquetry_cluster::CqlTable) {}
/// # fn watch(table: &mut marquetry_cluster::CqlTable) {
/// let progress = table.progress();
/// std::thread::spawn(move || println!("{} rows so far", progress.loaded().rows));
/// copy(table);
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct LoadProgress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    rows: AtomicU64,
    bytes: AtomicU64,
    retries: AtomicU64,
    created: OnceLock<Created>,
    has_begun: AtomicBool,
}

/// What a load has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// Rows that the cluster has acknowledged. Several rows with one key count as several.
    pub rows: u64,
    /// Their bytes, as the protocol holds them.
    pub bytes: u64,
    /// Rows that were sent again, counted each time.
    pub retries: u64,
}

impl LoadProgress {
    /// What was loaded so far. Rows in flight may have arrived as well.
    pub fn loaded(&self) -> Loaded {
        Loaded {
            rows: self.0.rows.load(Ordering::Relaxed),
            bytes: self.0.bytes.load(Ordering::Relaxed),
            retries: self.0.retries.load(Ordering::Relaxed),
        }
    }

    /// Whether the table takes rows: everything that can be wrong before the first row was checked.
    pub fn has_begun(&self) -> bool {
        self.0.has_begun.load(Ordering::Relaxed)
    }

    /// How the table came to exist, once known, if it was to be created.
    pub fn created(&self) -> Option<Created> {
        self.0.created.get().copied()
    }

    pub(crate) fn note_begun(&self) {
        self.0.has_begun.store(true, Ordering::Relaxed);
    }

    pub(crate) fn note_created(&self, created: Created) {
        // A load makes its table once.
        let _ = self.0.created.set(created);
    }

    pub(crate) fn note_row(&self, bytes: u64) {
        self.0.rows.fetch_add(1, Ordering::Relaxed);
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn note_retry(&self) {
        self.0.retries.fetch_add(1, Ordering::Relaxed);
    }
}
