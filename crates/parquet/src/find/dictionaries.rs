//! Dictionaries of chunks that have nothing but dictionary-encoded pages: they list every value.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Error, Result, Step};

use super::program::{Known, Program};
use super::reading::Reading;
use crate::format::{ColumnChunk, Encoding, FileMetaData};
use crate::prune::{Accepts, Counts, LeafOrder, Matcher, Quantifier, SLICE_VALUES, SliceBits, Verdict};

/// What it costs to look at a test, and whether a dictionary is worth it.
const TEST_UNITS: u64 = 150;
/// What it costs to make a matcher, beside its ranges.
const MATCHER_UNITS: u64 = 500;
/// And for each range.
const RANGE_UNITS: u64 = 30;
/// A dictionary is asked if it has at most a part of the bytes of the pages that are to be read: one in so many. Pages cannot be read
/// without it, so it costs no more than one more round of requests.
const WORTH: u64 = 2;

/// Bytes of the dictionary page of a chunk, if that is certain to list every value of the chunk. `pages` is the number of data pages, if
/// that is known.
///
/// The encoding statistics count pages, and so are exact, if all data pages among them are dictionary-encoded. Without them, the list of
/// encodings decides where it has nothing but dictionaries and what levels are encoded by: of parquet-mr's "1.0" pages, dictionary
/// page included, PLAIN_DICTIONARY is the only encoding of values, until a dictionary becomes too large and PLAIN is added. Writers of
/// RLE_DICTIONARY list PLAIN for the dictionary page itself, mostly: then the list says nothing.
fn dictionary_bytes(chunk: &ColumnChunk, pages: Option<usize>) -> Option<u64> {
    /// Of the format's `PageType`.
    const DATA_PAGES: [i32; 2] = [0, 3];
    let is_dictionary =
        |encoding: &Encoding| matches!(encoding, Encoding::RleDictionary | Encoding::PlainDictionary);
    // BIT_PACKED and RLE are of levels: values that they are of, booleans, have no dictionary.
    let may_be_listed = |encoding: &Encoding| {
        is_dictionary(encoding) || matches!(encoding, Encoding::Rle | Encoding::BitPacked)
    };
    let mut data =
        chunk.encoding_stats.iter().filter(|stats| DATA_PAGES.contains(&stats.page_type)).peekable();
    let is_certain = if chunk.encoding_stats.is_empty() {
        chunk.encodings.iter().any(is_dictionary) && chunk.encodings.iter().all(may_be_listed)
    } else {
        let is_listed = chunk.encodings.iter().all(|it| may_be_listed(it) || *it == Encoding::Plain);
        let (mut count, mut is_only) = (0_u64, data.peek().is_some() && is_listed);
        for stats in data {
            is_only &= is_dictionary(&stats.encoding) || stats.count == 0;
            count += u64::from(stats.count.unsigned_abs());
        }
        is_only && count > 0 && pages.is_none_or(|pages| u64_of(pages) == count)
    };
    let start = chunk.dictionary_page_offset.filter(|start| is_certain && *start > 0 && !chunk.encrypted)?;
    chunk.data_page_offset.checked_sub(start).filter(|bytes| *bytes > 0)
}

/// A row group whose dictionaries are being asked.
pub(super) struct Asking {
    pub(super) reading: Box<Reading>,
    /// The tests that a dictionary can say something about, those of a leaf together, and the one that is next.
    tests: Vec<usize>,
    next: usize,
    /// What would be known if none of their values, or all of them, were there.
    hoped: [Known; 2],
    /// Entries that were looked at for the next test, and whether some pass, and some do not.
    looked: usize,
    seen: [bool; 2],
    /// One was asked.
    has_asked: bool,
    /// Something was learned that does not decide.
    pub(super) has_learned: bool,
}

impl Asking {
    /// Of the tests that nothing is known about in a row group that is about to be read. The reading itself, if no dictionary is worth it.
    pub(super) fn new(
        reading: Box<Reading>,
        (program, known): (&Program, &Known),
        metadata: &FileMetaData,
        pages_of: impl Fn(usize) -> Option<usize>,
        counts: &mut Counts,
        budget: &mut Budget<'_>,
    ) -> Result<Asking, Box<Reading>> {
        let group = &metadata.row_groups[reading.row_group];
        let rows = reading.wanted.as_ref().map_or(group.rows, |rows| rows.rows());
        let chunks = program.leaves.iter().filter_map(|leaf| group.columns.get(*leaf));
        let bytes: u64 = chunks.map(|chunk| chunk.compressed_bytes).fold(0, u64::saturating_add);
        // About.
        let spared = u64::try_from(u128::from(bytes) * u128::from(rows) / u128::from(group.rows.max(1)));
        let spared = spared.unwrap_or(u64::MAX);
        let (mut tests, mut looked) = (Vec::new(), program.tests.len());
        for (number, test) in program.tests.iter().enumerate() {
            let Accepts::Values(_) = test.accepts else { continue };
            if known.tests()[number] != Verdict::Some {
                continue;
            }
            let is_repeated =
                metadata.schema.leaves().get(test.leaf).is_none_or(|leaf| leaf.repetition_max > 0);
            let chunk = group.columns.get(test.leaf);
            let bytes = chunk.and_then(|chunk| dictionary_bytes(chunk, pages_of(test.leaf)));
            // An empty list passes a test of all of its elements.
            let can_decide = !(is_repeated && test.quantifier == Quantifier::All);
            if !(can_decide && bytes.is_some_and(|bytes| bytes.saturating_mul(WORTH) <= spared)) {
                counts.absent += 1;
                continue;
            }
            tests.push(number);
        }
        if tests.is_empty() {
            budget.charge_units(TEST_UNITS * u64_of(looked));
            return Err(reading);
        }
        let mut hoped = [known.clone(), known.clone()];
        for number in &tests {
            looked += hoped[0].learn(program, *number, Verdict::None);
            looked += hoped[1].learn(program, *number, Verdict::All);
        }
        budget.charge_units(TEST_UNITS * u64_of(looked));
        tests.sort_by_key(|number| program.tests[*number].leaf);
        let asking = Asking {
            reading,
            tests,
            next: 0,
            hoped,
            looked: 0,
            seen: [false; 2],
            has_asked: false,
            has_learned: false,
        };
        if asking.can_decide() { Ok(asking) } else { Err(asking.reading) }
    }

    /// Whether the dictionaries that are left can decide about the row group.
    fn can_decide(&self) -> bool {
        self.hoped[0].verdict() == Verdict::None || self.hoped[1].verdict() == Verdict::All
    }

    /// Asks, and learns. Ready: what is now known of the row group.
    pub(super) fn step(
        &mut self,
        (program, known, matchers): (&Program, &mut Known, &mut [Option<Matcher>]),
        (metadata, uses_statistics): (&FileMetaData, bool),
        counts: &mut Counts,
        budget: &mut Budget<'_>,
    ) -> Result<Step<Verdict>> {
        while let Some(&number) = self.tests.get(self.next)
            && self.can_decide()
        {
            let test = &program.tests[number];
            let column = program.leaves.binary_search(&test.leaf);
            let column = column.map_err(|_| Error::internal("a test of no column"))?;
            let reader = &mut self.reading.reader;
            let mut verdict = None;
            if reader.dictionary(column).is_none() {
                match reader.read_dictionary(column, budget)? {
                    Step::Ready(true) => {}
                    // The footer speaks of one that is not there.
                    Step::Ready(false) => {
                        counts.absent += 1;
                        verdict = Some(Verdict::Some);
                    }
                    Step::Need(demand) => return Ok(Step::Need(demand)),
                    _ => return Ok(Step::Yield),
                }
                if budget.is_spent() {
                    return Ok(Step::Yield);
                }
            }
            let verdict = match verdict {
                Some(verdict) => verdict,
                None => {
                    let leaf = metadata.schema.leaves().get(test.leaf);
                    let leaf = leaf.ok_or_else(|| Error::internal("a test of no leaf"))?;
                    let matcher = match (&mut matchers[number], &test.accepts) {
                        (Some(matcher), _) => matcher,
                        (none, Accepts::Values(ranges)) => {
                            budget.charge_units(MATCHER_UNITS + RANGE_UNITS * u64_of(ranges.len()));
                            none.insert(Matcher::new(&metadata.schema, leaf, ranges)?)
                        }
                        _ => return Err(Error::internal("a test of no values")),
                    };
                    let entries = reader.dictionary(column);
                    let entries = entries.ok_or_else(|| Error::internal("no dictionary"))?;
                    let mut bits: SliceBits = [0; SLICE_VALUES / 64];
                    while self.looked < entries.len() && self.seen != [true; 2] {
                        let Some(count) = entries.test(self.looked, matcher, &mut bits, budget)? else {
                            self.seen = [true; 2];
                            break;
                        };
                        let passed: usize = bits.iter().map(|word| usize_of_u32(word.count_ones())).sum();
                        self.seen = [self.seen[0] || passed > 0, self.seen[1] || passed < count];
                        self.looked += count;
                        if budget.is_spent() && self.looked < entries.len() {
                            return Ok(Step::Yield);
                        }
                    }
                    // An entry need not be one of the values, so some may be none.
                    let of_values = match self.seen {
                        [false, _] => Verdict::None,
                        [true, false] => Verdict::All,
                        [true, true] => Verdict::Some,
                    };
                    let order = LeafOrder::of(metadata, test.leaf);
                    let order = order.ok_or_else(|| Error::internal("a test of no leaf"))?;
                    let chunk = &metadata.row_groups[self.reading.row_group].columns[test.leaf];
                    let nulls = if uses_statistics { order.of_chunk(chunk) } else { order.of_nothing() };
                    self.has_asked = true;
                    test.judge_values(of_values, &nulls, &metadata.schema)
                }
            };
            (self.next, self.looked, self.seen) = (self.next + 1, 0, [false; 2]);
            let mut looked = 0;
            if verdict != Verdict::Some {
                looked += known.learn(program, number, verdict);
                self.has_learned = true;
            }
            for hoped in &mut self.hoped {
                looked += hoped.learn(program, number, verdict);
            }
            budget.charge_units(TEST_UNITS * u64_of(looked));
            if known.verdict() != Verdict::Some {
                break;
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
        let verdict = known.verdict();
        match verdict {
            Verdict::Some if self.has_asked => counts.undecided += 1,
            Verdict::Some => {}
            Verdict::None | Verdict::All => counts.pruned += 1,
        }
        Ok(Step::Ready(verdict))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::PageEncodingStats;
    use Encoding::{BitPacked, DeltaBinaryPacked, Plain, PlainDictionary, Rle, RleDictionary};

    fn bytes(encodings: &[Encoding], stats: &[(i32, Encoding, i32)], pages: Option<usize>) -> Option<u64> {
        let stats = stats
            .iter()
            .map(|(page_type, encoding, count)| PageEncodingStats {
                page_type: *page_type,
                encoding: *encoding,
                count: *count,
            })
            .collect();
        let chunk = ColumnChunk {
            encodings: encodings.to_vec(),
            encoding_stats: stats,
            dictionary_page_offset: Some(4),
            data_page_offset: 104,
            ..ColumnChunk::default()
        };
        dictionary_bytes(&chunk, pages)
    }

    #[test]
    fn only_what_is_certain_is_believed() {
        // parquet-mr's first version, and what became of it once a dictionary was too large.
        assert_eq!(bytes(&[Rle, BitPacked, PlainDictionary], &[], None), Some(100));
        assert_eq!(bytes(&[Rle, BitPacked, PlainDictionary, Plain], &[], None), None);
        // Its second version lists PLAIN for the dictionary page; DuckDB lists data pages alone.
        assert_eq!(bytes(&[Rle, RleDictionary, Plain], &[], None), None);
        assert_eq!(bytes(&[RleDictionary], &[], None), Some(100));
        assert_eq!(bytes(&[Rle, Plain], &[], None), None);
        // Statistics count pages.
        let listed = [Plain, Rle, RleDictionary];
        let dictionary = (2, Plain, 1);
        assert_eq!(bytes(&listed, &[dictionary, (0, RleDictionary, 7)], None), Some(100));
        assert_eq!(bytes(&listed, &[dictionary, (3, RleDictionary, 7)], Some(7)), Some(100));
        assert_eq!(bytes(&listed, &[dictionary, (3, RleDictionary, 7)], Some(8)), None);
        assert_eq!(bytes(&listed, &[dictionary, (0, RleDictionary, 7), (0, Plain, 1)], None), None);
        assert_eq!(bytes(&listed, &[dictionary, (0, RleDictionary, 7), (0, Plain, 0)], None), Some(100));
        assert_eq!(bytes(&listed, &[dictionary], None), None);
        assert_eq!(bytes(&listed, &[dictionary, (0, RleDictionary, 0)], None), None);
        // They contradict the list.
        let listed = [Plain, Rle, RleDictionary, DeltaBinaryPacked];
        assert_eq!(bytes(&listed, &[dictionary, (0, RleDictionary, 7)], None), None);
    }
}
