//! What all objects together may fetch ahead of who reads them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes that are fetched, or wait to be read, ahead of who reads, of all objects.
const BYTES: u64 = 128 << 20;
/// Requests at a time, of all objects.
const REQUESTS: usize = 32;

/// Bytes and requests that objects share. What is needed at once is counted, too, but never refused: so nobody waits for
/// another object's reader.
#[derive(Debug, Clone)]
pub(super) struct Allowance {
    bytes: u64,
    requests: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: u64,
    requests: usize,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance::of(BYTES, REQUESTS)
    }
}

impl Allowance {
    /// So many bytes and requests.
    pub(super) fn of(bytes: u64, requests: usize) -> Allowance {
        Allowance { bytes, requests, taken: Arc::default() }
    }

    /// Takes bytes and a request, if there are so many left.
    pub(super) fn take_ahead(&self, bytes: u64) -> Option<(Held, Asking)> {
        let taken = self.taken();
        let has_room = taken.bytes.saturating_add(bytes) <= self.bytes && taken.requests < self.requests;
        has_room.then(|| self.count(taken, bytes))
    }

    /// Takes bytes and a request, whatever is left.
    pub(super) fn take_now(&self, bytes: u64) -> (Held, Asking) {
        self.count(self.taken(), bytes)
    }

    fn count(&self, mut taken: MutexGuard<'_, Taken>, bytes: u64) -> (Held, Asking) {
        taken.bytes = taken.bytes.saturating_add(bytes);
        taken.requests += 1;
        (Held { bytes, of: self.clone() }, Asking { of: self.clone() })
    }

    /// Nothing panics while it is locked.
    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that are taken until this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    bytes: u64,
    of: Allowance,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        taken.bytes = taken.bytes.saturating_sub(self.bytes);
    }
}

/// A request, until this is dropped.
#[derive(Debug)]
pub(super) struct Asking {
    of: Allowance,
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut taken = self.of.taken();
        taken.requests = taken.requests.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_there_again() {
        let allowance = Allowance::of(10, 2);
        let (held, asking) = allowance.take_ahead(7).unwrap();
        assert!(allowance.take_ahead(4).is_none());
        let now = allowance.take_now(100);
        assert!(allowance.take_ahead(0).is_none());
        drop((asking, now));
        assert!(allowance.take_ahead(4).is_none());
        let (_, other) = allowance.take_ahead(3).unwrap();
        drop((held, other));
        assert!(allowance.take_ahead(10).is_some());
    }
}
