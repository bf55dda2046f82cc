//! Cancelling a copy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use marquetry_base::{Error, Result};

/// A flag that cancels work from any thread. It is checked between batches, and by whatever
/// [waits](crate::Destination::cancelled_by) for others.
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
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A flag that is not set.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Wraps a flag that is set elsewhere, such as by a signal handler.
    pub fn of_flag(flag: Arc<AtomicBool>) -> Cancel {
        Cancel(flag)
    }

    /// Cancels the work.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the work was cancelled.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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
