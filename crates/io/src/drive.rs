//! The blocking driver: steps a machine, reads what it asks for, steps it again.

use std::ops::Range;

use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Bytes, Demand, Error, Machine, Object, Priority, Result, Step, Want};

use crate::GAP_BYTES_MAX;
use crate::failure::named;
use crate::source::{ByteSource, ByteSources};

/// Ranges are joined into reads of at most this size: the memory of a read is held until the last of its ranges is
/// released. A single range may be longer.
const JOINED_BYTES_MAX: u64 = 8 << 20;

/// Works a machine up to its next product. `None` when nothing more will come.
///
/// Ranges close to each other are joined into one read; each is supplied exactly as it was asked for. Ranges that are
/// only worth fetching early ([`Priority::Soon`]) are read if they are within or next to what is needed now.
/// Otherwise they are left to the source ([`ByteSource::will_read`]): one that is far away fetches them meanwhile; of a
/// local file, the system's own read-ahead covers the rest.
///
/// Every step gets an unlimited budget, because nothing else wants the thread.
///
/// # Errors
///
/// The machine's errors, with the object's name if there is only one object. A source's failure is reported to the
/// machine ([`Machine::fail`]; for a length, with the empty range), so that the machine stays failed and can add what
/// it was reading. [`Misuse`](marquetry_base::ErrorKind::Misuse) for an object without a source, and for machines
/// that write: see [`drive_into`](crate::drive_into). [`Internal`](marquetry_base::ErrorKind::Internal) for a machine
/// that asks for nothing, or again for bytes that it was just given.
pub fn drive<M: Machine, S: ByteSource>(
    machine: &mut M,
    sources: &ByteSources<S>,
) -> Result<Option<M::Product>> {
    let mut answered = None;
    loop {
        let step = machine
            .step(&mut Budget::unlimited())
            .map_err(|error| named(error, sources.only().map(ByteSource::name)))?;
        match step {
            Step::Ready(product) => return Ok(Some(product)),
            Step::Done => return Ok(None),
            Step::Yield => {}
            Step::Append(object, _) => {
                return Err(Error::misuse(format!(
                    "the machine writes to object {}, and this driver only reads",
                    object.0
                )));
            }
            Step::Need(demand) => {
                if answered.as_ref() == Some(&demand) {
                    return Err(Error::internal("a machine asks again for all that it was just given"));
                }
                if let Err(refusal) = answer(machine, sources, &demand)? {
                    machine.fail(refusal.object, refusal.range, refusal.reason.clone());
                    return match machine.step(&mut Budget::unlimited()) {
                        Err(error) => Err(named(error, sources.only().map(ByteSource::name))),
                        Ok(_) => Err(refusal.reason),
                    };
                }
                answered = Some(demand);
            }
        }
    }
}

/// A request that a source could not answer.
struct Refusal {
    object: Object,
    range: Range<u64>,
    reason: Error,
}

/// One read, and the wanted ranges that it answers.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    object: Object,
    range: Range<u64>,
    wants: Vec<(Range<u64>, Priority)>,
}

/// Answers everything that is needed now. The outer error is the machine's, the inner one a source's.
fn answer<M: Machine, S: ByteSource>(
    machine: &mut M,
    sources: &ByteSources<S>,
    demand: &Demand,
) -> Result<Result<(), Refusal>> {
    let reads = plan(demand);
    let mut asked = !reads.is_empty();
    for want in &demand.wants {
        if let Want::Length(object) = *want {
            asked = true;
            match sources.get(object).and_then(ByteSource::length) {
                Ok(length) => machine
                    .supply_length(object, length)
                    .map_err(|error| named(error, sources.only().map(ByteSource::name)))?,
                Err(reason) => return Ok(Err(Refusal { object, range: 0..0, reason })),
            }
        }
    }
    if !asked {
        return Err(Error::internal("a machine waits for nothing"));
    }
    foresee(sources, demand, &reads);
    for read in reads {
        let source = match sources.get(read.object) {
            Ok(source) => source,
            Err(reason) => {
                let range = read.wants.into_iter().next().map_or(read.range, |(range, _)| range);
                return Ok(Err(Refusal { object: read.object, range, reason }));
            }
        };
        let joined = source.read(read.range.clone());
        for (range, priority) in read.wants {
            let bytes = match &joined {
                Ok(bytes) => part(bytes, &read.range, &range),
                // A range read along may have caused the failure; read alone, each range gets its own error.
                Err(_) if priority == Priority::Soon => continue,
                Err(error) if range == read.range => Err(error.clone()),
                Err(_) => source.read(range.clone()),
            };
            match bytes {
                Ok(bytes) => {
                    machine
                        .supply(read.object, range, bytes)
                        .map_err(|error| named(error, sources.only().map(ByteSource::name)))?;
                }
                Err(reason) => return Ok(Err(Refusal { object: read.object, range, reason })),
            }
        }
    }
    Ok(Ok(()))
}

/// Tells the sources what is read now and will be next: some fetch several ranges at a time.
fn foresee<S: ByteSource>(sources: &ByteSources<S>, demand: &Demand, reads: &[Read]) {
    let mut objects: Vec<Object> = reads.iter().map(|read| read.object).collect();
    objects.dedup();
    for object in objects {
        let now = reads.iter().filter(|read| read.object == object).map(|read| read.range.clone());
        let soon = demand.wants.iter().filter_map(|want| match want {
            Want::Range(its, range, Priority::Soon) if *its == object => Some(range.clone()),
            _ => None,
        });
        if let Ok(source) = sources.get(object) {
            source.will_read(&mut now.chain(soon));
        }
    }
}

/// Joins the ranges that are needed now to reads, in order of position, and adds those worth fetching early that lie
/// within or directly after them.
fn plan(demand: &Demand) -> Vec<Read> {
    let wanted = |priority: Priority| {
        let mut wants: Vec<_> = demand
            .wants
            .iter()
            .filter_map(|want| match want {
                Want::Range(object, range, its) if *its == priority => Some((*object, range.clone())),
                _ => None,
            })
            .collect();
        wants.sort_by_key(|(object, range)| (*object, range.start, range.end));
        wants
    };
    let mut reads: Vec<Read> = Vec::new();
    for (object, range) in wanted(Priority::Now) {
        match reads.last_mut() {
            Some(read) if read.object == object && read.reaches(&range, GAP_BYTES_MAX) => {
                read.join(range, Priority::Now);
            }
            _ => reads.push(Read { object, range: range.clone(), wants: vec![(range, Priority::Now)] }),
        }
    }
    for (object, range) in wanted(Priority::Soon) {
        if let Some(read) = reads.iter_mut().find(|read| read.object == object && read.reaches(&range, 0)) {
            read.join(range, Priority::Soon);
        }
    }
    reads
}

impl Read {
    /// True when `range` starts within the read or at most `gap` bytes after it, and a joined read is not too long.
    fn reaches(&self, range: &Range<u64>, gap: u64) -> bool {
        let end = self.range.end.max(range.end);
        range.start >= self.range.start
            && range.start.saturating_sub(self.range.end) <= gap
            && (end == self.range.end || end - self.range.start <= JOINED_BYTES_MAX)
    }

    fn join(&mut self, range: Range<u64>, priority: Priority) {
        self.range.end = self.range.end.max(range.end);
        self.wants.push((range, priority));
    }
}

/// The bytes of `range`, out of those read for `whole`.
fn part(bytes: &Bytes, whole: &Range<u64>, range: &Range<u64>) -> Result<Bytes> {
    let start = range.start.checked_sub(whole.start).and_then(usize_of);
    let end = range.end.checked_sub(whole.start).and_then(usize_of);
    match (start, end) {
        (Some(start), Some(end)) if start <= end && end <= bytes.len() => Ok(bytes.slice(start..end)),
        _ => Err(Error::internal(format!("a source gave {} bytes for {whole:?}", bytes.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Object = Object(1);
    const B: Object = Object(2);

    fn reads(wants: &[(Object, Range<u64>, Priority)]) -> Vec<(Object, Range<u64>, usize)> {
        let mut demand = Demand::default();
        for (object, range, priority) in wants {
            demand.push(Want::Range(*object, range.clone(), *priority));
        }
        plan(&demand).into_iter().map(|read| (read.object, read.range, read.wants.len())).collect()
    }

    #[test]
    fn neighbours_are_read_at_once() {
        use Priority::Now;
        assert_eq!(
            reads(&[(A, 20..30, Now), (A, 0..10, Now), (B, 10..20, Now)]),
            [(A, 0..30, 2), (B, 10..20, 1)]
        );
        // Overlapping, nested, the same.
        assert_eq!(
            reads(&[(A, 0..100, Now), (A, 10..20, Now), (A, 90..120, Now), (A, 10..20, Now)]),
            [(A, 0..120, 4)]
        );
        // As far as the gap is small and the whole is not too long.
        let far = 10 + GAP_BYTES_MAX;
        assert_eq!(reads(&[(A, 0..10, Now), (A, far..far + 1, Now)]).len(), 1);
        assert_eq!(reads(&[(A, 0..10, Now), (A, far + 1..far + 2, Now)]).len(), 2);
        let long = JOINED_BYTES_MAX;
        assert_eq!(reads(&[(A, 0..long - 1, Now), (A, long - 1..long, Now)]).len(), 1);
        assert_eq!(reads(&[(A, 0..long, Now), (A, long..long + 1, Now)]).len(), 2);
        assert_eq!(reads(&[(A, 0..9 * long, Now), (A, 5..10, Now)]), [(A, 0..9 * long, 2)]);
    }

    #[test]
    fn what_comes_next_is_read_along() {
        use Priority::{Now, Soon};
        assert_eq!(reads(&[(A, 0..10, Now), (A, 10..50, Soon), (A, 50..60, Soon)]), [(A, 0..60, 3)]);
        assert_eq!(reads(&[(A, 0..10, Now), (A, 11..50, Soon), (B, 10..50, Soon)]), [(A, 0..10, 1)]);
        assert_eq!(reads(&[(A, 20..30, Now), (A, 0..20, Soon)]), [(A, 20..30, 1)]);
        assert_eq!(reads(&[(A, 0..10, Now), (A, 10..JOINED_BYTES_MAX + 1, Soon)]), [(A, 0..10, 1)]);
        assert_eq!(reads(&[(A, 0..10, Soon)]), []);
    }
}
