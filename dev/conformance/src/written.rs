//! What machines write, collected by a host that does all that the contract allows.

use std::collections::BTreeMap;

use marquetry_base::cast::usize_of;
use marquetry_base::{Bytes, Machine, Object, Priority, Result, Step, Want};

use crate::hostile::{Manner, Random, Report, split, step};

/// The objects that a machine wrote, and what it took.
#[derive(Debug, Default)]
pub struct Written {
    /// Each object's bytes.
    pub objects: BTreeMap<Object, Vec<u8>>,
    /// Steps and units.
    pub report: Report,
    /// Bytes of the largest piece.
    pub piece_bytes_max: usize,
}

impl Written {
    /// One object's bytes; none if nothing was written to it.
    pub fn object(&self, object: Object) -> Bytes {
        self.objects.get(&object).cloned().unwrap_or_default().into()
    }
}

/// Steps without a product, an append or a demand after which a machine is taken to hang.
const IDLE_STEPS_MAX: u64 = 5_000_000;

/// Drives a machine that writes to its end. `ready` is told of each product, and gives the machine what it wants next.
///
/// # Errors
///
/// The machine's, and those of `ready`.
///
/// # Panics
///
/// When the machine breaks the contract.
pub fn write<M: Machine>(
    machine: &mut M,
    manner: Manner,
    mut ready: impl FnMut(&mut M, M::Product) -> Result<()>,
) -> Result<Written>
where
    M::Product: std::fmt::Debug + PartialEq,
{
    let mut written = Written::default();
    let mut random = Random(manner.seed | 1);
    let mut idle = 0;
    loop {
        idle += 1;
        assert!(idle < IDLE_STEPS_MAX, "a machine that yields for ever");
        match step(machine, manner, &mut written.report)? {
            Step::Yield => continue,
            Step::Ready(product) => ready(machine, product)?,
            Step::Append(object, bytes) => {
                assert!(!bytes.is_empty(), "nothing is appended");
                written.piece_bytes_max = written.piece_bytes_max.max(bytes.len());
                written.objects.entry(object).or_default().extend_from_slice(&bytes);
            }
            Step::Need(demand) => {
                assert!(!demand.is_empty(), "a machine that waits for nothing");
                let again = step(machine, manner, &mut written.report)?;
                assert_eq!(again, Step::Need(demand.clone()), "asked again, the answer is another");
                let mut pieces = Vec::new();
                for want in demand.wants {
                    let Want::Range(object, range, priority) = want else {
                        panic!("a writer that asks for a length")
                    };
                    if priority == Priority::Now || random.below(2) == 0 {
                        let cut = split(&range, manner.piece_bytes, &mut random);
                        pieces.extend(cut.into_iter().map(|piece| (object, piece)));
                    }
                }
                if manner.shuffled {
                    (1..pieces.len()).rev().for_each(|last| pieces.swap(last, random.index(last + 1)));
                }
                if manner.late {
                    pieces.truncate(1 + random.index(pieces.len()));
                }
                for (object, piece) in pieces {
                    let index = |at: u64| usize_of(at).expect("an offset in memory");
                    let found = written.objects.get(&object).map_or(&[][..], Vec::as_slice);
                    let bytes = Bytes::copy_from_slice(&found[index(piece.start)..index(piece.end)]);
                    machine.supply(object, piece, bytes)?;
                }
            }
            Step::Done => {
                let again = step(machine, manner, &mut written.report)?;
                assert_eq!(again, Step::Done, "a machine that goes on after its end");
                return Ok(written);
            }
        }
        idle = 0;
    }
}
