//! The memory that a machine may take: what is allocated by a size in the file is admitted here first.

use marquetry_base::cast::u64_of;
use marquetry_base::{Limit, Result};

/// Memory that a part of a machine may take, within what all of its parts may.
///
/// A part admits what it is about to allocate. What it has released in the meantime is noticed when it is counted again,
/// which costs more than admitting; so that is done once after something was admitted or released, not at every slice.
#[derive(Debug)]
pub(crate) struct Memory {
    /// Bytes that all parts may hold, and the limit that says so: see [`Limits::total_of`](marquetry_base::Limits::total_of).
    limit: Limit,
    most: u64,
    /// Bytes that the other parts hold.
    others: u64,
    /// Bytes of this part: those held when they were last counted, and those admitted since.
    held: u64,
    is_counted: bool,
}

impl Memory {
    /// For a part that holds `held` bytes, of a machine whose other parts hold `others`.
    ///
    /// # Errors
    ///
    /// The limit, if they are too many already.
    pub(crate) fn new((limit, most): (Limit, u64), others: u64, held: u64) -> Result<Memory> {
        limit.check(most, others.saturating_add(held))?;
        Ok(Memory { limit, most, others, held, is_counted: true })
    }

    /// For what has another limit, or is made of bytes that are there.
    pub(crate) fn unlimited() -> Memory {
        Memory { limit: Limit::TotalBytes, most: u64::MAX, others: 0, held: 0, is_counted: true }
    }

    /// Admits `bytes` that are about to be allocated.
    ///
    /// # Errors
    ///
    /// The limit, if they are too many.
    pub(crate) fn admit(&mut self, bytes: usize) -> Result<()> {
        if bytes > 0 {
            self.held = self.held.saturating_add(u64_of(bytes));
            self.is_counted = false;
        }
        self.limit.check(self.most, self.others.saturating_add(self.held))
    }

    /// Takes over bytes that were another part's.
    pub(crate) fn move_here(&mut self, bytes: usize) {
        self.others = self.others.saturating_sub(u64_of(bytes));
        self.held = self.held.saturating_add(u64_of(bytes));
    }

    /// Hands bytes over to another part.
    pub(crate) fn move_away(&mut self, bytes: usize) {
        self.others = self.others.saturating_add(u64_of(bytes));
        self.held = self.held.saturating_sub(u64_of(bytes));
    }

    /// Notes that something was released, or taken in small parts: it must be counted again.
    pub(crate) fn changed(&mut self) {
        self.is_counted = false;
    }

    /// True while nothing was admitted, released or taken since it was counted.
    #[inline]
    pub(crate) fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// Takes in the bytes that the part holds now.
    ///
    /// # Errors
    ///
    /// The limit, if they are too many.
    pub(crate) fn count(&mut self, held: u64) -> Result<()> {
        (self.held, self.is_counted) = (held, true);
        self.limit.check(self.most, self.others.saturating_add(held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_admitted_counts_until_it_is_counted_again() {
        let limit = (Limit::Expansion, 100);
        assert!(Memory::new(limit, 60, 41).is_err());
        let mut memory = Memory::new(limit, 50, 10).unwrap();
        memory.admit(30).unwrap();
        assert!(memory.admit(11).is_err() && !memory.is_counted());
        memory.count(20).unwrap();
        memory.admit(30).unwrap();
        let error = memory.admit(1).unwrap_err();
        assert_eq!(error.message(), "101 is more than the limit expansion of 100");
        assert!(memory.count(51).is_err());
        assert!(Memory::unlimited().admit(usize::MAX).is_ok());
    }
}
