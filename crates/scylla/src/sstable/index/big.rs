//! Index.db: an entry a partition, in the order of the data.
//!
//! An entry has the partition's key, its position in the data, and, after its length, what is where in a large partition, which is skipped.
//! (`RowIndexEntry.java`; `sstables-3-index.rst` of ScyllaDB.) All versions but those with tries have the same.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Limits, Object, Release, Result};

use super::search::{Candidate, Expected, Move, Target};
use super::summary::Summary;
use crate::sstable::elements::{ELEMENT_PRICE, Elements, Going};
use crate::sstable::token::murmur3_token;

/// What is asked for at a time: the entries from one sample to the next take about as much.
const BLOCK_BYTES: u64 = 4 << 10;

/// A search in Index.db.
#[derive(Debug)]
pub(super) struct BigSearch {
    elements: Elements,
    summary: Option<Arc<Summary>>,
    is_murmur3: bool,
    target: Target,
    /// The target was found, so the next entry is the answer, whatever its key.
    is_found: bool,
    /// Where entries are read from, once the length is known.
    start: Option<u64>,
    /// The entry before: its position in the data, and its token.
    before: Option<(u64, i64)>,
    /// The last entry so far, where the last one is searched for.
    last: Option<Candidate>,
}

/// What is read of an entry.
struct Entry {
    token: i64,
    position: u64,
    /// Bytes after it that are skipped.
    more: u64,
    /// Its key, if it is the answer.
    key: Option<Vec<u8>>,
    key_bytes: usize,
}

impl BigSearch {
    pub(super) fn new(
        index: Object,
        summary: Option<Arc<Summary>>,
        is_murmur3: bool,
        limits: &Limits,
    ) -> BigSearch {
        BigSearch {
            elements: Elements::in_blocks(index, "Index.db", BLOCK_BYTES, limits),
            summary,
            is_murmur3,
            target: Target::Token(i64::MIN),
            is_found: false,
            start: Some(0),
            before: None,
            last: None,
        }
    }

    /// The tokens of the first and of the last partition, if the summary says them.
    pub(super) fn ends(&self) -> Option<(i64, i64)> {
        self.summary.as_ref().and_then(|summary| summary.ends())
    }

    pub(super) fn elements(&mut self) -> &mut Elements {
        &mut self.elements
    }

    /// Begins to search.
    pub(super) fn begin(&mut self, target: Target) {
        // Without the order of Murmur3Partitioner, all entries are looked at.
        let offset = match (&self.summary, self.is_murmur3) {
            (Some(summary), true) => summary.offset_of(target.token()),
            _ => 0,
        };
        (self.target, self.is_found, self.start, self.before) = (target, false, Some(offset), None);
    }

    /// Goes on to the partition after the one that was found.
    pub(super) fn go_on(&mut self) {
        self.is_found = true;
    }

    /// Reads an entry.
    pub(super) fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Going<Move>> {
        let length = match self.elements.length() {
            Going::Done(length) => length,
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        if let Some(start) = self.start.take() {
            if length == 0 {
                return Err(self.elements.corrupt("no entry, but there are data", 0));
            }
            if start >= length {
                return Err(self.elements.corrupt("a sample of an entry beyond the end", start));
            }
            self.elements.seek(start..length);
        }
        if self.elements.left() == 0 {
            return Ok(Going::Done(self.last.take().map_or(Move::End, Move::To)));
        }
        let at = self.elements.at();
        let BigSearch { elements, target, is_murmur3, is_found, .. } = self;
        let (target, is_murmur3, is_found) = (&*target, *is_murmur3, *is_found);
        let read = elements.next(budget, |cursor| {
            let key = cursor.short_bytes()?;
            let (position, more) = (cursor.vint()?, cursor.vint()?);
            let token = if is_murmur3 { murmur3_token(key) } else { 0 };
            let is_it = is_found
                || match target {
                    Target::Token(wanted) => token >= *wanted,
                    Target::Key { key: wanted, .. } => key == &wanted[..],
                    Target::Last => true,
                };
            Ok(Entry { token, position, more, key: is_it.then(|| key.to_vec()), key_bytes: key.len() })
        })?;
        let entry = match read {
            Going::Done(entry) => entry,
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        // Its hash is computed, too.
        budget.charge(ELEMENT_PRICE, entry.key_bytes, 1);
        self.check(&entry, at)?;
        if entry.more > self.elements.left() {
            return Err(self.elements.corrupt("an entry that goes on beyond the end", at));
        }
        self.elements.skip(entry.more);
        self.before = Some((entry.position, entry.token));
        let position = entry.position;
        let candidate = |key| Candidate { position, expected: Expected::Key(key), is_answer: true };
        Ok(Going::Done(match entry.key.map(candidate) {
            Some(candidate) if matches!(self.target, Target::Last) => {
                self.last = Some(candidate);
                Move::On
            }
            Some(candidate) => Move::To(candidate),
            None if is_murmur3 && entry.token > self.target.token() => Move::End,
            None => Move::On,
        }))
    }

    /// Entries are in the order of the data, and of their tokens.
    fn check(&self, entry: &Entry, at: u64) -> Result<()> {
        let fault = |message: &'static str| Err(self.elements.fault(Error::corrupt(message).at_offset(at)));
        match self.before {
            None if at == 0 && entry.position != 0 => {
                fault("a first partition that is not where the data begin")
            }
            Some((position, _)) if position >= entry.position => {
                fault("partitions that do not follow each other")
            }
            Some((_, token)) if token > entry.token => {
                fault("partitions that are not in the order of their tokens")
            }
            _ => Ok(()),
        }
    }
}

impl Release for BigSearch {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.elements.release(budget)
    }
}
