//! Cancelling a copy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use marquetry_base::{Error, Result};
use marquetry_io::store::Store;

/// A flag that cancels work from any thread. It is checked between batches, and by whatever waits for others: by
/// [sources](crate::PieceOptions::cancel) and by [destinations](crate::Destination::cancelled_by).
///
/// ```
/// use marquetry_tables::Cancel;
///
/// let cancel = Cancel::new();
/// let elsewhere = cancel.clone();
/// std::thread::spawn(move || elsewhere.cancel()).join().unwrap();
/// assert!(cancel.check().is_err());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// What cancels this, too.
    parents: Vec<Arc<Cancel>>,
}

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Wraps a flag that is set elsewhere, such as by a signal handler.
    pub fn of_flag(flag: Arc<AtomicBool>) -> Cancel {
        Cancel { flag, parents: Vec::new() }
    }

    /// For a part of the work, which can end alone: set with this one, or by itself.
    pub(crate) fn child(&self) -> Cancel {
        Cancel { flag: Arc::default(), parents: vec![Arc::new(self.clone())] }
    }

    /// Set with this one, or with another.
    pub(crate) fn or(&self, other: &Cancel) -> Cancel {
        let parents = vec![Arc::new(self.clone()), Arc::new(other.clone())];
        Cancel { flag: Arc::default(), parents }
    }

    /// A store of which what waits ends when this is set.
    pub(crate) fn of_store(&self, store: &Arc<dyn Store>) -> Arc<dyn Store> {
        let cancel = self.clone();
        store.cancellable(Arc::new(move || cancel.is_set())).unwrap_or_else(|| Arc::clone(store))
    }

    /// Cancels the work.
    pub fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    /// Whether the work was cancelled.
    pub fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed) || self.parents.iter().any(|parent| parent.is_set())
    }

    /// Fails once the work was cancelled.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cancelled`](marquetry_base::ErrorKind::Cancelled).
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::cancelled()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_work_ends_with_all_or_alone() {
        let all = Cancel::new();
        let (one, other) = (all.child(), all.child());
        one.cancel();
        assert_eq!([&all, &one, &other].map(Cancel::is_set), [false, true, false]);
        all.clone().cancel();
        assert!(other.check().is_err() && other.child().is_set());
        let (this, that) = (Cancel::new(), Cancel::new());
        let either = this.or(&that);
        assert!(!either.is_set());
        that.cancel();
        assert!(either.is_set() && !this.is_set() && this.or(&that).is_set());
    }
}
