//! How a copy is ended early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use marquetry_base::{Error, Result};

/// A wish that may be made on any thread: to end what is going on. Whoever works looks at it between two batches.
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
    /// Not wished yet.
    pub fn new() -> Cancel {
        Cancel::default()
    }

    /// Wished when this flag is set, as a signal handler does.
    pub fn of_flag(flag: Arc<AtomicBool>) -> Cancel {
        Cancel(flag)
    }

    /// Wishes the end.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the end is wished.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails once the end is wished.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Cancelled`](marquetry_base::ErrorKind::Cancelled).
    pub fn check(&self) -> Result<()> {
        if self.is_set() { Err(Error::cancelled()) } else { Ok(()) }
    }
}
