//! Summary.db: a sample of Index.db.
//!
//! It has numbers of the sampling, where each sample begins, the samples (a key, and where its entry is in Index.db), and the first and the
//! last key. The positions are little-endian, all else is not. (`IndexSummary.java`, `IndexSummaryComponent.java`.)

use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Limit, Limits, Object, Release, Result, Segmented, release_all};

use crate::sstable::elements::{ComponentReader, ELEMENT_PRICE, Elements, Going, Parser};
use crate::sstable::token::murmur3_token;

/// What Summary.db holds, as far as it helps to find partitions by their tokens.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Entries of Index.db from one sample to the next, at least.
    pub interval: u32,
    /// The samples, in the order of Index.db.
    pub samples: Segmented<Sample>,
    /// The first partition key.
    pub first_key: Vec<u8>,
    /// The last partition key.
    pub last_key: Vec<u8>,
}

/// An entry of Index.db.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The [token](murmur3_token) of its key, which says something only if the SSTable's partitioner is Murmur3Partitioner.
    pub token: i64,
    /// Where it is in Index.db.
    pub offset: u64,
}

impl Summary {
    /// Where to look in Index.db for the first key that has this token or a greater one: no entry before has.
    pub(super) fn offset_of(&self, token: i64) -> u64 {
        let before = self.samples.partition_point(|sample| sample.token < token);
        before.checked_sub(1).and_then(|at| self.samples.get(at)).map_or(0, |sample| sample.offset)
    }

    /// The tokens of the first and of the last partition, if it has their keys.
    pub(super) fn ends(&self) -> Option<(i64, i64)> {
        let has_keys = !self.first_key.is_empty() && !self.last_key.is_empty();
        has_keys.then(|| (murmur3_token(&self.first_key), murmur3_token(&self.last_key)))
    }
}

/// Reads Summary.db.
pub type SummaryReader = ComponentReader<SummaryParser>;

/// What a [`SummaryReader`] has read.
#[derive(Debug)]
pub struct SummaryParser {
    expects: Expects,
    /// Where samples begin: bytes from the beginning of this list.
    starts: Segmented<u32>,
    /// The bytes of the list and of the samples.
    bytes: u64,
    made: Summary,
}

#[derive(Debug, Clone, Copy)]
enum Expects {
    Header,
    Starts { left: u32 },
    Samples { next: usize },
    Keys,
}

/// Bytes of a sample's offset.
const OFFSET_BYTES: u64 = 8;

impl SummaryReader {
    /// A reader of the Summary.db that `object` is.
    pub fn new(object: Object, limits: Limits) -> SummaryReader {
        let limit = (Limit::PageIndexBytes, limits.page_index_bytes);
        let parser = SummaryParser {
            expects: Expects::Header,
            starts: Segmented::new(),
            bytes: 0,
            made: Summary::default(),
        };
        ComponentReader::of(Elements::new(object, "Summary.db", limit, &limits), parser)
    }
}

impl Parser for SummaryParser {
    type Product = Summary;

    fn next(&mut self, elements: &mut Elements, budget: &mut Budget<'_>) -> Result<Going<Option<Summary>>> {
        let going = match self.expects {
            Expects::Header => self.header(elements, budget)?,
            Expects::Starts { left: 0 } => Going::Done(Expects::Samples { next: 0 }),
            Expects::Starts { left } => self.start(elements, budget, left)?,
            Expects::Samples { next } if next == self.starts.len() => Going::Done(Expects::Keys),
            Expects::Samples { next } => self.sample(elements, budget, next)?,
            Expects::Keys => {
                let read = elements.next(budget, |cursor| {
                    let mut key = || {
                        let length = cursor.count()?;
                        cursor.long(u64::from(length)).map(<[u8]>::to_vec)
                    };
                    Ok((key()?, key()?))
                })?;
                return Ok(read.map(|(first, last)| {
                    let mut made = core::mem::take(&mut self.made);
                    (made.first_key, made.last_key) = (first, last);
                    Some(made)
                }));
            }
        };
        Ok(going.map(|expects| {
            self.expects = expects;
            None
        }))
    }
}

impl SummaryParser {
    fn header(&mut self, elements: &mut Elements, budget: &mut Budget<'_>) -> Result<Going<Expects>> {
        let read = elements.next(budget, |cursor| {
            let (interval, count, bytes) = (cursor.count()?, cursor.count()?, cursor.u64()?);
            // What share of all samples was kept, and how many there were.
            cursor.take(4 + 4)?;
            Ok((interval, count, bytes))
        })?;
        let (interval, count, bytes) = match read {
            Going::Done(header) => header,
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        let least = u64::from(count).saturating_mul(4 + OFFSET_BYTES);
        if bytes < least || bytes > elements.left() {
            return Err(elements.corrupt("another number of samples than there is room for", 0));
        }
        (self.made.interval, self.bytes) = (interval, bytes);
        Ok(Going::Done(Expects::Starts { left: count }))
    }

    fn start(
        &mut self,
        elements: &mut Elements,
        budget: &mut Budget<'_>,
        left: u32,
    ) -> Result<Going<Expects>> {
        let at = elements.at();
        let start = match elements.next(budget, |cursor| cursor.u32())? {
            Going::Done(start) => start.swap_bytes(),
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        let is_right = match self.starts.last() {
            // Samples follow the list.
            None => u64::from(start) == u64::from(left) * 4,
            Some(last) => u64::from(start) >= u64::from(*last) + OFFSET_BYTES,
        };
        if !is_right || u64::from(start) + OFFSET_BYTES > self.bytes {
            return Err(elements.corrupt("samples that are not one after the other", at));
        }
        self.starts.push(start);
        Ok(Going::Done(Expects::Starts { left: left - 1 }))
    }

    fn sample(
        &mut self,
        elements: &mut Elements,
        budget: &mut Budget<'_>,
        next: usize,
    ) -> Result<Going<Expects>> {
        let at = elements.at();
        let start = self.starts.get(next).copied().map_or(0, u64::from);
        let end = self.starts.get(next + 1).copied().map_or(self.bytes, u64::from);
        let key_bytes = end.saturating_sub(start).saturating_sub(OFFSET_BYTES);
        let read = elements.next(budget, |cursor| {
            let token = murmur3_token(cursor.long(key_bytes)?);
            Ok(Sample { token, offset: cursor.u64()?.swap_bytes() })
        })?;
        let sample = match read {
            Going::Done(sample) => sample,
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        budget.charge(ELEMENT_PRICE, usize::try_from(key_bytes).unwrap_or(usize::MAX), 1);
        let last = self.made.samples.last();
        if last.is_some_and(|last| last.offset >= sample.offset) || (last.is_none() && sample.offset != 0) {
            let message = "samples of entries that are not one after the other";
            return Err(elements.fault(Error::corrupt(message).at_offset(at)));
        }
        self.made.samples.push(sample);
        Ok(Going::Done(Expects::Samples { next: next + 1 }))
    }
}

impl Release for Sample {}

impl Release for Summary {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.samples.release(budget)
    }
}

impl Release for SummaryParser {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.starts, &mut self.made], budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_entry_before_an_offset_has_the_token() {
        let mut summary = Summary::default();
        assert_eq!(summary.offset_of(5), 0);
        for (token, offset) in [(-7, 0), (5, 100), (5, 200), (9, 300)] {
            summary.samples.push(Sample { token, offset });
        }
        let offsets = [i64::MIN, -7, -6, 5, 6, 9, 10, i64::MAX].map(|token| summary.offset_of(token));
        assert_eq!(offsets, [0, 0, 0, 0, 200, 200, 300, 300]);
    }
}
