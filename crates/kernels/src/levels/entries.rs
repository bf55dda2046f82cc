//! Entries, and which of them are slots.

use crate::error::Error;

/// The levels of entries.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    /// The definition level of each entry.
    pub definition: &'a [u8],
    /// The repetition level of each entry. `None` if all are 0.
    pub repetition: Option<&'a [u8]>,
}

/// Which entries are slots: those of at most this repetition level and at least this definition level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The highest repetition level of a slot.
    pub repetition: u8,
    /// The lowest definition level of a slot.
    pub definition: u8,
}

impl<'a> Entries<'a> {
    /// The number of entries.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.definition.len()
    }

    /// True when there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.definition.is_empty()
    }

    /// The entries from `first` on, at most `count`. Entries without a repetition level are left out.
    #[must_use]
    pub fn part(self, first: usize, count: usize) -> Entries<'a> {
        let cut = |levels: &'a [u8]| {
            let rest = levels.get(first..).unwrap_or_default();
            &rest[..count.min(rest.len())]
        };
        let definition = cut(self.definition);
        match self.repetition.map(cut) {
            None => Entries { definition, repetition: None },
            Some(repetition) => {
                let both = definition.len().min(repetition.len());
                Entries { definition: &definition[..both], repetition: Some(&repetition[..both]) }
            }
        }
    }

    #[inline]
    pub(super) fn check(self) -> Result<(), Error> {
        match self.repetition {
            Some(repetition) if repetition.len() != self.definition.len() => Err(Error::Mismatch),
            _ => Ok(()),
        }
    }
}
