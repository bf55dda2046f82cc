//! Bloom filters of chunks, asked about one test after the other.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Budget, Bytes, Machine, Object, Result, Step};

use super::dispensable;
use super::program::{Known, Program};
use crate::format::FileMetaData;
use crate::prune::{Counts, Verdict};
use crate::read::{BloomPlace, BloomProbe};

/// What it costs to look at a test, at a hash, and at a part of a filter that is at hand.
const TEST_UNITS: u64 = 100;
const HASH_UNITS: u64 = 20;
const PART_UNITS: u64 = 150;
/// What it costs to make a probe.
const PROBE_UNITS: u64 = 2_000;

/// Parts of a Bloom filter that are kept, at most.
const FILTER_PARTS_MAX: usize = 256;
/// Filters whose blocks are located, at most.
const FILTERS_MAX: usize = 1 << 12;

/// What is known of a file's Bloom filters.
#[derive(Default)]
pub(super) struct Blooms {
    /// Where their blocks are, by row group and leaf.
    places: BTreeMap<(usize, usize), BloomPlace>,
    /// Those that are corrupt, or of a kind that is not known.
    distrusted: BTreeSet<(usize, usize)>,
    /// What was read of the last one: several tests may ask it, one after the other.
    of: (usize, usize),
    parts: Vec<(Range<u64>, Bytes)>,
}

impl Blooms {
    /// Forgets what was read: what is warm is where filters are.
    pub(super) fn start(&mut self) {
        self.of = (0, 0);
        self.parts = Vec::new();
    }

    /// Keeps what was supplied, for the tests to come.
    pub(super) fn keep(&mut self, range: Range<u64>, bytes: Bytes) {
        if self.parts.len() < FILTER_PARTS_MAX {
            self.parts.push((range, bytes));
        }
    }

    /// A probe for hashes of a leaf's values in a row group.
    fn probe(
        &mut self,
        (object, metadata): (Object, &Arc<FileMetaData>),
        chunk: (usize, usize),
        hashes: &[u64],
        budget: &mut Budget<'_>,
    ) -> Result<BloomProbe> {
        if self.of != chunk {
            (self.of, self.parts) = (chunk, Vec::new());
        }
        let parts = self.parts.len() as u64;
        budget.charge_units(PROBE_UNITS + HASH_UNITS * hashes.len() as u64 + PART_UNITS * parts);
        let mut probe = BloomProbe::new(object, metadata, chunk.0, chunk.1, hashes.to_vec())?;
        if let Some(place) = self.places.get(&chunk) {
            probe = probe.located(*place);
        }
        for (range, bytes) in &self.parts {
            Machine::supply(&mut probe, object, range.clone(), bytes.clone())?;
        }
        Ok(probe)
    }
}

/// A row group whose filters are being asked.
pub(super) struct Asking {
    row_group: usize,
    /// The tests that a filter can say something about, and the one that is next.
    tests: Vec<usize>,
    next: usize,
    /// What would be known if none of their values were there.
    hoped: Known,
    probe: Option<Box<Probing>>,
}

struct Probing {
    probe: BloomProbe,
    /// Answers that are still to come.
    left: usize,
}

impl Asking {
    /// Of a row group's tests that nothing is known about. `hashes` are those of the values of each test, if it is of few.
    pub(super) fn new(
        row_group: usize,
        (program, known, hashes): (&Program, &Known, &[Option<Vec<u64>>]),
        metadata: &FileMetaData,
        (blooms, counts): (&Blooms, &mut Counts),
        budget: &mut Budget<'_>,
    ) -> Asking {
        let group = &metadata.row_groups[row_group];
        let (mut tests, mut hoped) = (Vec::new(), known.clone());
        let mut looked = program.tests.len();
        for (number, test) in program.tests.iter().enumerate() {
            if known.tests()[number] != Verdict::Some || hashes[number].is_none() {
                continue;
            }
            if group.columns.get(test.leaf).is_none_or(|chunk| chunk.bloom_filter.is_none()) {
                counts.absent += 1;
            } else if blooms.distrusted.contains(&(row_group, test.leaf)) {
                counts.distrusted += 1;
            } else {
                tests.push(number);
                looked += hoped.learn(program, number, Verdict::None);
            }
        }
        budget.charge_units(TEST_UNITS * looked as u64);
        Asking { row_group, tests, next: 0, hoped, probe: None }
    }

    /// The probe that is at work.
    pub(super) fn probe(&mut self) -> Option<&mut BloomProbe> {
        self.probe.as_mut().map(|probing| &mut probing.probe)
    }

    /// Asks, and learns. Ready: whether it is now known that the row group has no row. As soon as the filters that are left cannot
    /// decide that any more, they are not asked.
    pub(super) fn step(
        &mut self,
        file: (Object, &Arc<FileMetaData>),
        (program, known, hashes): (&Program, &mut Known, &[Option<Vec<u64>>]),
        (blooms, counts): (&mut Blooms, &mut Counts),
        budget: &mut Budget<'_>,
    ) -> Result<Step<bool>> {
        while let Some(&test) = self.tests.get(self.next)
            && self.hoped.verdict() == Verdict::None
        {
            let chunk = (self.row_group, program.tests[test].leaf);
            let answer = match &mut self.probe {
                None => {
                    let hashes = hashes[test].as_deref().unwrap_or_default();
                    match blooms.probe(file, chunk, hashes, budget) {
                        Ok(probe) => {
                            self.probe = Some(Box::new(Probing { probe, left: hashes.len() }));
                            continue;
                        }
                        Err(error) => Err(error),
                    }
                }
                Some(probing) => match probing.probe.step(budget) {
                    Ok(Step::Ready(is_there)) => {
                        probing.left = probing.left.saturating_sub(1);
                        if !is_there && probing.left > 0 {
                            if budget.is_spent() {
                                return Ok(Step::Yield);
                            }
                            continue;
                        }
                        Ok(is_there)
                    }
                    Ok(Step::Done) => Ok(false),
                    Ok(Step::Need(demand)) => return Ok(Step::Need(demand)),
                    Ok(Step::Yield | Step::Append(..)) => return Ok(Step::Yield),
                    Err(error) => Err(error),
                },
            };
            let place = self.probe.take().and_then(|probing| probing.probe.place());
            if let Some(place) = place.filter(|_| blooms.places.len() < FILTERS_MAX) {
                blooms.places.insert(chunk, place);
            }
            self.next += 1;
            let mut looked = 0;
            match answer {
                Ok(false) => {
                    looked += known.learn(program, test, Verdict::None);
                    if known.verdict() == Verdict::None {
                        counts.pruned += 1;
                        return Ok(Step::Ready(true));
                    }
                }
                Ok(true) => {
                    counts.undecided += 1;
                    looked += self.hoped.learn(program, test, Verdict::Some);
                }
                // It is not needed to find rows.
                Err(error) if dispensable(&error) => {
                    blooms.distrusted.insert(chunk);
                    counts.distrusted += 1;
                    looked += self.hoped.learn(program, test, Verdict::Some);
                }
                Err(error) => return Err(error),
            }
            budget.charge_units(TEST_UNITS * looked as u64);
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
        Ok(Step::Ready(false))
    }
}
