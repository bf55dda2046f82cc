//! A host that does everything the contract allows to be hard on a machine.

use std::ops::Range;

use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Bytes, Error, Machine, Object, Priority, Result, Step, Want};

/// How a hostile host behaves.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// Seeds all that is random.
    pub seed: u64,
    /// Units of each step's budget. 0: spent before the step begins.
    pub budget: u64,
    /// Pieces of a supplied range, in bytes, at most.
    pub piece_bytes: u64,
    /// Answer only a part of what is asked for, the rest later.
    pub late: bool,
    /// Supply pieces in a random order.
    pub shuffled: bool,
    /// Supply bytes around and across what was asked for, and the same bytes twice.
    pub generous: bool,
}

impl Manner {
    /// A host as one would wish: everything at once, and no bound on a step.
    pub const KIND: Manner = Manner {
        seed: 1,
        budget: u64::MAX,
        piece_bytes: u64::MAX,
        late: false,
        shuffled: false,
        generous: false,
    };

    /// One byte at a time, and a budget of one unit.
    pub const ONE_BYTE: Manner =
        Manner { seed: 2, budget: 1, piece_bytes: 1, late: true, shuffled: false, generous: false };

    /// Small pieces, out of order, late, some twice; no budget at all.
    pub const DISORDERLY: Manner =
        Manner { seed: 3, budget: 0, piece_bytes: 700, late: true, shuffled: true, generous: true };

    /// The default budget, and pieces of network size.
    pub const USUAL: Manner = Manner {
        seed: 4,
        budget: Budget::DEFAULT_UNITS,
        piece_bytes: 64 << 10,
        late: true,
        shuffled: true,
        generous: false,
    };
}

/// What a run took.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Steps.
    pub steps: u64,
    /// Units charged in the largest step.
    pub units_max: u64,
    /// Units charged in all.
    pub units: u64,
}

/// Steps without an answer or a supply after which a machine is taken to hang. A step makes progress even without a
/// budget: no test's machine has more work than this.
const IDLE_STEPS_MAX: u64 = 50_000_000;

/// Drives a machine over an object's bytes to its end, handing its products to `take`.
///
/// Also checks the contract: a demand is repeated the same when nothing was supplied, `Done` and errors stay.
///
/// # Errors
///
/// The machine's.
///
/// # Panics
///
/// When the machine breaks the contract.
pub fn run<M: Machine>(
    machine: &mut M,
    object: Object,
    bytes: &Bytes,
    manner: Manner,
    take: impl FnMut(M::Product) -> Result<()>,
) -> Result<Report>
where
    M::Product: std::fmt::Debug + PartialEq,
{
    run_over(machine, &[(object, bytes.clone())], manner, take)
}

/// As [`run`], over several objects.
///
/// # Errors
///
/// The machine's.
///
/// # Panics
///
/// When the machine breaks the contract.
pub fn run_over<M: Machine>(
    machine: &mut M,
    objects: &[(Object, Bytes)],
    manner: Manner,
    mut take: impl FnMut(M::Product) -> Result<()>,
) -> Result<Report>
where
    M::Product: std::fmt::Debug + PartialEq,
{
    let bytes_of = |wanted: Object| {
        let found = objects.iter().find(|(object, _)| *object == wanted);
        found.map(|(_, bytes)| bytes).expect("one of the objects")
    };
    let mut report = Report::default();
    let mut random = Random(manner.seed | 1);
    let mut idle = 0;
    loop {
        match step(machine, manner, &mut report)? {
            Step::Yield => {
                idle += 1;
                assert!(idle < IDLE_STEPS_MAX, "a machine that yields for ever");
            }
            Step::Ready(product) => {
                idle = 0;
                take(product)?;
            }
            Step::Done => {
                assert_eq!(
                    step(machine, manner, &mut report)?,
                    Step::Done,
                    "a machine that goes on after its end"
                );
                return Ok(report);
            }
            Step::Append(..) => panic!("a reader that writes"),
            Step::Need(demand) => {
                idle = 0;
                assert!(!demand.is_empty(), "a machine that waits for nothing");
                let again = loop {
                    match step(machine, manner, &mut report)? {
                        Step::Yield => {}
                        other => break other,
                    }
                };
                assert_eq!(again, Step::Need(demand.clone()), "asked again, the answer is another");
                let mut pieces = Vec::new();
                for want in &demand.wants {
                    match want {
                        Want::Length(object) => {
                            machine.supply_length(*object, bytes_of(*object).len() as u64)?;
                        }
                        Want::Range(object, range, priority) => {
                            assert!(!range.is_empty(), "a demand for nothing");
                            if *priority == Priority::Now || random.below(2) == 0 {
                                let parts = split(range, manner.piece_bytes, &mut random);
                                pieces.extend(parts.into_iter().map(|part| (*object, part)));
                            }
                        }
                    }
                }
                let is_beyond =
                    |(object, piece): &(Object, Range<u64>)| piece.end > bytes_of(*object).len() as u64;
                if let Some((object, beyond)) = pieces.iter().find(|piece| is_beyond(piece)).cloned() {
                    machine.fail(
                        object,
                        beyond.clone(),
                        Error::io(format!("the object ends before {}", beyond.end)),
                    );
                    continue;
                }
                if manner.shuffled {
                    for last in (1..pieces.len()).rev() {
                        pieces.swap(last, random.index(last + 1));
                    }
                }
                if manner.late {
                    pieces.truncate(1 + random.index(pieces.len()));
                }
                for (object, mut piece) in pieces {
                    let bytes = bytes_of(object);
                    if manner.generous {
                        piece.start -= piece.start.min(random.below(40));
                        piece.end = (piece.end + random.below(40)).min(bytes.len() as u64);
                    }
                    supply(machine, object, bytes, &piece)?;
                    if manner.generous && random.below(4) == 0 {
                        supply(machine, object, bytes, &piece)?;
                    }
                }
            }
        }
    }
}

/// A step of a machine, with the manner's budget.
pub(crate) fn step<M: Machine>(
    machine: &mut M,
    manner: Manner,
    report: &mut Report,
) -> Result<Step<M::Product>>
where
    M::Product: std::fmt::Debug + PartialEq,
{
    let mut budget = Budget::new(manner.budget);
    let step = machine.step(&mut budget);
    report.steps += 1;
    report.units += budget.spent();
    report.units_max = report.units_max.max(budget.spent());
    if let Err(error) = &step {
        let again = machine.step(&mut Budget::unlimited());
        assert_eq!(again.as_ref().err(), Some(error), "an error that does not stay");
    }
    step
}

fn supply<M: Machine>(machine: &mut M, object: Object, bytes: &Bytes, range: &Range<u64>) -> Result<()> {
    machine.supply(object, range.clone(), part(bytes, range))
}

/// A range of an object's bytes.
///
/// # Panics
///
/// When the range reaches beyond them, as slices do.
pub fn part(bytes: &Bytes, range: &Range<u64>) -> Bytes {
    let index = |at: u64| usize_of(at).expect("an offset in memory");
    bytes.slice(index(range.start)..index(range.end))
}

/// Cuts a range into pieces of random sizes.
pub(crate) fn split(range: &Range<u64>, piece_bytes: u64, random: &mut Random) -> Vec<Range<u64>> {
    let mut pieces = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let most = piece_bytes.min(range.end - at);
        let length = if piece_bytes == u64::MAX { most } else { 1 + random.below(most) };
        pieces.push(at..at + length);
        at += length;
    }
    pieces
}

/// Xorshift: enough for choices in tests.
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    /// A number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.number().to_le_bytes()[4]
    }

    /// An index below `bound`; 0 when that is 0.
    pub fn index(&mut self, bound: usize) -> usize {
        usize_of(self.below(bound as u64)).unwrap_or(0)
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.number() >> 11).checked_rem(bound).unwrap_or(0)
    }
}
