//! Dictionaries: each value once, and its number wherever it stands.

use alloc::vec::Vec;

use marquetry_base::{Budget, Result};

use super::encoder::{Body, Slice};
use crate::encoding::other_type;
use crate::schema::PhysicalType;

/// The dictionary of a column chunk, while it is built.
#[derive(Debug)]
pub struct DictionaryBuilder {
    physical: PhysicalType,
    limits: DictionaryLimits,
}

/// Bounds of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DictionaryLimits {
    /// Entries.
    pub entries: usize,
    /// Bytes of its page.
    pub bytes: usize,
}

/// What [`DictionaryBuilder::intern`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interned {
    /// Values that have an index now.
    pub values: usize,
    /// The value behind them is new, and there is no room for it.
    pub full: bool,
}

impl DictionaryBuilder {
    /// An empty dictionary of values of a type; BOOLEAN has none.
    pub fn new(physical: PhysicalType, limits: DictionaryLimits) -> DictionaryBuilder {
        DictionaryBuilder { physical, limits }
    }

    /// Adds the indices of values to `indices`, values to the dictionary where they are new. It stops where the budget is spent,
    /// but never without having done something, and where the dictionary is full.
    ///
    /// # Errors
    ///
    /// `Misuse` for values of another type; when memory cannot be had.
    pub fn intern(
        &mut self,
        values: Slice<'_>,
        indices: &mut Vec<u32>,
        budget: &mut Budget<'_>,
    ) -> Result<Interned> {
        let _ = (values, indices, budget, self.physical, self.limits);
        Err(other_type())
    }

    /// Entries.
    pub fn len(&self) -> usize {
        0
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of its page.
    pub fn bytes(&self) -> usize {
        0
    }

    /// Bytes of memory that it takes.
    pub fn held(&self) -> usize {
        0
    }

    /// Entries in a row, from number `first` on: some of them, all if they are held together. For the bounds of a chunk whose every
    /// value is in its dictionary. `None` beyond the end.
    pub fn entries(&self, first: usize) -> Option<Slice<'_>> {
        let _ = first;
        None
    }

    /// The body of the dictionary's page. `None` where the budget was spent before; then it is to be called again. With the
    /// body the dictionary is empty, for the next chunk.
    ///
    /// # Errors
    ///
    /// When memory cannot be had.
    pub fn finish(&mut self, budget: &mut Budget<'_>) -> Result<Option<Body>> {
        let _ = budget;
        Ok(None)
    }
}
