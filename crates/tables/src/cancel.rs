//! Cancelling a copy.

use std::fmt;
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
#[derive(Clone, Default)]
pub struct Cancel {
    flag: Arc<AtomicBool>,
    /// What is asked whether it is set, too.
    asked: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
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
        Cancel { flag, ..Cancel::default() }
    }

    /// Set once `asked` says so, too. It is asked whenever the work looks whether it was cancelled, on the thread that looks:
    /// often, and so must answer at once. A host that has no other thread to set a flag can look for its signals there.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// use marquetry_tables::Cancel;
    ///
    /// let ends = Instant::now() + Duration::from_millis(1);
    /// let cancel = Cancel::when(move || Instant::now() >= ends);
    /// while !cancel.is_set() {}
    /// ```
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Cancel {
        Cancel { asked: Some(Arc::new(asked)), ..Cancel::default() }
    }

    /// For a part of the work, which can end alone: set with this one, or by itself.
    pub(crate) fn child(&self) -> Cancel {
        Cancel { parents: vec![Arc::new(self.clone())], ..Cancel::default() }
    }

    /// Set with this one, or with another.
    pub(crate) fn or(&self, other: &Cancel) -> Cancel {
        Cancel { parents: vec![Arc::new(self.clone()), Arc::new(other.clone())], ..Cancel::default() }
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
        self.flag.load(Ordering::Relaxed)
            || self.asked.as_ref().is_some_and(|asked| asked())
            || self.parents.iter().any(|parent| parent.is_set())
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

impl fmt::Debug for Cancel {
    /// Nothing is asked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancel")
            .field("flag", &self.flag)
            .field("parents", &self.parents)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_ends_all_parts() {
        let ends = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&ends);
        let all = Cancel::when(move || asked.load(Ordering::Relaxed));
        let part = all.child().or(&Cancel::new());
        assert!(!all.is_set() && part.check().is_ok());
        ends.store(true, Ordering::Relaxed);
        assert!(all.is_set() && part.check().is_err() && !Cancel::new().is_set());
    }

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
