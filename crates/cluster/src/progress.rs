//! How far a load is.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::cluster::Created;

/// How far a load is. It may be read on any thread while rows are copied, as one that draws a bar does, and after an error.
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
    /// Rows that the cluster has acknowledged. Rows with one key are counted each.
    pub rows: u64,
    /// Their bytes, as the protocol holds them.
    pub bytes: u64,
    /// Rows that were sent again, counted each time.
    pub retries: u64,
}

impl LoadProgress {
    /// What was loaded so far. Other rows may have arrived too: those in flight.
    pub fn loaded(&self) -> Loaded {
        Loaded {
            rows: self.0.rows.load(Ordering::Relaxed),
            bytes: self.0.bytes.load(Ordering::Relaxed),
            retries: self.0.retries.load(Ordering::Relaxed),
        }
    }

    /// Whether the table takes rows: all that can be wrong before the first one is found.
    pub fn has_begun(&self) -> bool {
        self.0.has_begun.load(Ordering::Relaxed)
    }

    /// How the table came to be there, once that is known, where it was to be made.
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
