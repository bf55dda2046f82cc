//! What can be read only once has one reader.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::sync::{Mutex, MutexGuard, PoisonError};

use marquetry_base::{Error, Result};

/// Pipes, devices and standard input that are being read: two readers would each get a part.
static CLAIMED: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// The right to read something that can be read only once, until it is dropped.
#[derive(Debug)]
pub(super) struct Claim((u64, u64));

impl Claim {
    /// # Errors
    ///
    /// `Misuse` if it is claimed already.
    pub(super) fn of(metadata: &Metadata) -> Result<Claim> {
        let identity = identity(metadata);
        if claimed().insert(identity) {
            return Ok(Claim(identity));
        }
        Err(Error::misuse("it can be read only once, and is read here twice"))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        claimed().remove(&self.0);
    }
}

fn claimed() -> MutexGuard<'static, BTreeSet<(u64, u64)>> {
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Device and inode.
#[cfg(unix)]
pub(super) fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Only standard input is known to be no regular file.
#[cfg(not(unix))]
pub(super) fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}
