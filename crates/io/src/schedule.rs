//! What the asynchronous drivers read, in which pieces and in which order: everything that can be decided without a
//! runtime.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bytes, Demand, Error, Object, Priority, Result, Want};

use crate::GAP_BYTES_MAX;

/// How far ahead of a machine the asynchronous drivers read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAhead {
    /// The most bytes of one read; longer ranges take several. Cached data are copied by the thread that reads them,
    /// so this also bounds how long that thread is busy.
    pub piece_bytes: u64,
    /// The most bytes in flight or waiting for the machine: this many that the machine needs now, and this many again
    /// that are worth fetching early.
    pub ahead_bytes: u64,
}

impl Default for ReadAhead {
    fn default() -> ReadAhead {
        // Of 64 KiB to 1 MiB, the largest whose copy takes less than a step's time; and sixteen of these keep a disk
        // busy.
        ReadAhead { piece_bytes: 256 << 10, ahead_bytes: 4 << 20 }
    }
}

/// Wants of one demand that are considered. A demand may name more: a machine continues as soon as one of them is
/// answered, and asks again.
const WANTS_MAX: usize = 1024;

/// A request to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    /// The length of an object.
    Length(Object),
    /// Bytes of an object.
    Read(Object, Range<u64>),
}

/// An answer for the machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    /// An object's length, or why it cannot be read.
    Length(Object, Result<u64>),
    /// Bytes of an object, or why they cannot be read.
    Bytes(Object, Range<u64>, Result<Bytes>),
}

/// Turns a machine's demands into reads, and their results into answers.
///
/// 1. [`want`](Schedule::want): the machine's demand, which replaces the one before;
/// 2. [`begin`](Schedule::begin) returns what to read, as long as there is room for it;
/// 3. [`arrived`](Schedule::arrived) and [`length_arrived`](Schedule::length_arrived) take the results;
/// 4. [`answer`](Schedule::answer) returns what to hand to the machine: of each range that it needs now, the bytes
///    from its start on, in order. Data that arrive early stay here until they are needed.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    read_ahead: ReadAhead,
    /// The current demand.
    demand: Demand,
    /// Its ranges, joined where they touch each other.
    now: Vec<Span>,
    soon: Vec<Span>,
    /// The state of all known segments, by their start. None overlaps another.
    segments: BTreeMap<(Object, u64), Segment>,
    lengths: BTreeMap<Object, Length>,
    /// Reads to start, the most urgent first.
    queue: VecDeque<(Object, Range<u64>, Priority)>,
    /// True after a read failed that several wants shared: from then on each is read alone, so that each gets its own
    /// error.
    apart: bool,
}

type Span = (Object, Range<u64>);

#[derive(Debug)]
struct Segment {
    end: u64,
    state: State,
    /// How urgently the current demand wants it.
    wanted: Option<Priority>,
}

#[derive(Debug)]
enum State {
    Flying,
    Here(Bytes),
    Failed(Error),
    /// The machine has it.
    Given,
}

#[derive(Debug)]
enum Length {
    Wanted,
    Flying,
    Here(Result<u64>),
    Given,
}

impl Segment {
    /// Bytes of memory that it takes.
    fn held(&self, start: u64) -> u64 {
        match self.state {
            State::Flying | State::Here(_) => self.end - start,
            State::Failed(_) | State::Given => 0,
        }
    }
}

impl Schedule {
    pub(crate) fn new(read_ahead: ReadAhead) -> Schedule {
        let piece_bytes = read_ahead.piece_bytes.max(1);
        Schedule { read_ahead: ReadAhead { piece_bytes, ..read_ahead }, ..Schedule::default() }
    }

    /// Takes a demand, which replaces the one before. Reads in flight that are no longer wanted are dropped when
    /// their room is needed.
    ///
    /// # Errors
    ///
    /// `Internal` for a demand that needs nothing, and for one that was just answered.
    pub(crate) fn want(&mut self, mut demand: Demand) -> Result<()> {
        demand.wants.truncate(WANTS_MAX);
        let is_answered = self.is_answered();
        if is_answered && demand == self.demand {
            return Err(Error::internal("a machine asks again for all that it was just given"));
        }
        self.demand = demand;
        let now = spans(&self.demand, Priority::Now);
        // A machine may ask for all of a range until it has all of it. One that asks for something else, or again for
        // what it has, has released what it was given.
        let is_repeated = now == self.now && !is_answered;
        self.now = now;
        self.soon = spans(&self.demand, Priority::Soon);
        let asked: Vec<Object> = self.demand.wants.iter().filter_map(length_of).collect();
        if self.now.is_empty() && asked.is_empty() {
            return Err(Error::internal("a machine waits for nothing"));
        }
        self.lengths.retain(|object, length| asked.contains(object) && !matches!(length, Length::Given));
        for object in asked {
            self.lengths.entry(object).or_insert(Length::Wanted);
        }
        let (now, soon) = (&self.now, &self.soon);
        self.segments.retain(|(object, start), segment| {
            segment.wanted = priority(now, soon, *object, &(*start..segment.end));
            match segment.state {
                State::Flying | State::Here(_) => true,
                State::Failed(_) => segment.wanted.is_some(),
                State::Given => is_repeated,
            }
        });
        self.plan();
        Ok(())
    }

    /// What to start next; `None` if nothing is left, or there is no room now.
    pub(crate) fn begin(&mut self) -> Option<Ask> {
        let wanted = self.lengths.iter_mut().find(|(_, length)| matches!(length, Length::Wanted));
        if let Some((object, length)) = wanted {
            *length = Length::Flying;
            return Some(Ask::Length(*object));
        }
        let (_, range, priority) = self.queue.front()?;
        let (bytes, priority) = (range.end - range.start, *priority);
        if !self.make_room(bytes, priority) {
            return None;
        }
        let (object, range, _) = self.queue.pop_front()?;
        let segment = Segment { end: range.end, state: State::Flying, wanted: Some(priority) };
        self.segments.insert((object, range.start), segment);
        Some(Ask::Read(object, range))
    }

    /// True while something waits to be started, whether or not there is room.
    pub(crate) fn has_more(&self) -> bool {
        !self.queue.is_empty() || self.lengths.values().any(|length| matches!(length, Length::Wanted))
    }

    /// True while this read is wanted. One that is not may be cancelled.
    pub(crate) fn is_flying(&self, object: Object, range: &Range<u64>) -> bool {
        self.segments
            .get(&(object, range.start))
            .is_some_and(|segment| segment.end == range.end && matches!(segment.state, State::Flying))
    }

    /// Takes the result of a read.
    pub(crate) fn arrived(&mut self, object: Object, range: &Range<u64>, bytes: Result<Bytes>) {
        if !self.is_flying(object, range) {
            return;
        }
        let bytes = bytes.and_then(|bytes| match u64_of(bytes.len()) == range.end - range.start {
            true => Ok(bytes),
            false => Err(Error::internal(format!("a source gave {} bytes for {range:?}", bytes.len()))),
        });
        let state = match bytes {
            Ok(bytes) => State::Here(bytes),
            Err(_) if !self.apart && self.is_shared(object, range) => {
                self.apart = true;
                self.segments.remove(&(object, range.start));
                self.plan();
                return;
            }
            Err(error) => State::Failed(error),
        };
        if let Some(segment) = self.segments.get_mut(&(object, range.start)) {
            segment.state = state;
        }
    }

    /// Takes the result of a request for a length.
    pub(crate) fn length_arrived(&mut self, object: Object, found: Result<u64>) {
        if let Some(length @ Length::Flying) = self.lengths.get_mut(&object) {
            *length = Length::Here(found);
        }
    }

    /// The next answer for the machine; `None` if it has to wait.
    pub(crate) fn answer(&mut self) -> Option<Answer> {
        for (object, length) in &mut self.lengths {
            if let Length::Here(found) = length {
                let found = found.clone();
                *length = Length::Given;
                return Some(Answer::Length(*object, found));
            }
        }
        let (object, start, range) = self.demand.wants.iter().find_map(|want| match want {
            Want::Range(object, range, Priority::Now) => {
                let (start, range) = self.ready(*object, range)?;
                Some((*object, start, range))
            }
            _ => None,
        })?;
        self.give(object, start, range)
    }

    /// The first part of `range` that the machine has not been given, and the start of its segment, if it has
    /// arrived.
    fn ready(&self, object: Object, range: &Range<u64>) -> Option<(u64, Range<u64>)> {
        let at = self.given_up_to(object, range);
        let (start, segment) = self.segment_at(object, at).filter(|_| at < range.end)?;
        match segment.state {
            State::Here(_) | State::Failed(_) => Some((start, at..segment.end.min(range.end))),
            State::Flying | State::Given => None,
        }
    }

    /// The first byte of `range` that the machine has not been given.
    fn given_up_to(&self, object: Object, range: &Range<u64>) -> u64 {
        let mut at = range.start;
        while let Some((_, segment)) = self.segment_at(object, at).filter(|_| at < range.end) {
            match segment.state {
                State::Given => at = segment.end,
                _ => break,
            }
        }
        at
    }

    /// The segment with the byte at `at`, and where it starts.
    fn segment_at(&self, object: Object, at: u64) -> Option<(u64, &Segment)> {
        let (&(its, start), segment) = self.segments.range(..=(object, at)).next_back()?;
        (its == object && at < segment.end).then_some((start, segment))
    }

    /// Takes `range` out of the segment at `start`.
    fn give(&mut self, object: Object, start: u64, range: Range<u64>) -> Option<Answer> {
        let segment = self.segments.remove(&(object, start))?;
        let bytes = match segment.state {
            State::Here(bytes) => bytes,
            State::Failed(error) => return Some(Answer::Bytes(object, range, Err(error))),
            State::Flying | State::Given => return None,
        };
        for rest in [start..range.start, range.end..segment.end] {
            // What was read along and is not wanted is dropped.
            if let (false, Some(wanted)) = (rest.is_empty(), priority(&self.now, &self.soon, object, &rest)) {
                let state = State::Here(part(&bytes, start, &rest));
                let segment = Segment { end: rest.end, state, wanted: Some(wanted) };
                self.segments.insert((object, rest.start), segment);
            }
        }
        let given = Segment { end: range.end, state: State::Given, wanted: Some(Priority::Now) };
        self.segments.insert((object, range.start), given);
        let bytes = part(&bytes, start, &range);
        Some(Answer::Bytes(object, range, Ok(bytes)))
    }

    /// True when everything that the demand needs now was given.
    fn is_answered(&self) -> bool {
        !self.demand.is_empty()
            && self.lengths.values().all(|length| matches!(length, Length::Given))
            && self.now.iter().all(|(object, range)| self.given_up_to(*object, range) >= range.end)
    }

    /// Decides what to read of what is wanted and neither here nor in flight.
    fn plan(&mut self) {
        self.queue.clear();
        let mut early = VecDeque::new();
        let gap = if self.apart { 0 } else { GAP_BYTES_MAX };
        for (object, span) in joined(self.now.iter().chain(&self.soon).cloned().collect(), gap) {
            for hole in self.holes(object, &span) {
                for piece in self.pieces(object, hole) {
                    match priority(&self.now, &self.soon, object, &piece) {
                        Some(Priority::Now) => self.queue.push_back((object, piece, Priority::Now)),
                        Some(Priority::Soon) => early.push_back((object, piece, Priority::Soon)),
                        None => {}
                    }
                }
            }
        }
        self.queue.append(&mut early);
    }

    /// The parts of `span` of which nothing is known.
    fn holes(&self, object: Object, span: &Range<u64>) -> Vec<Range<u64>> {
        let mut holes = Vec::new();
        let before = self.segments.range(..(object, span.start)).next_back();
        let reaches_in = before.filter(|((its, _), _)| *its == object).map(|(_, segment)| segment.end);
        let mut at = span.start.max(reaches_in.unwrap_or(0));
        for (&(_, start), segment) in self.segments.range((object, span.start)..(object, span.end)) {
            if start > at {
                holes.push(at..start);
            }
            at = segment.end;
        }
        if at < span.end {
            holes.push(at..span.end);
        }
        holes
    }

    /// Cuts a hole into reads.
    fn pieces(&self, object: Object, hole: Range<u64>) -> Vec<Range<u64>> {
        let mut borders: Vec<u64> = Vec::new();
        if self.apart {
            let ranges = self.demand.wants.iter().filter_map(|want| range_of(want, object));
            borders.extend(ranges.flat_map(|range| [range.start, range.end]));
            borders.sort_unstable();
        }
        let mut pieces = Vec::new();
        let mut at = hole.start;
        while at < hole.end {
            let border = borders.get(borders.partition_point(|&border| border <= at));
            let end = at.saturating_add(self.read_ahead.piece_bytes).min(hole.end);
            let end = border.map_or(end, |&border| end.min(border));
            pieces.push(at..end);
            at = end;
        }
        pieces
    }

    /// True when a want reaches into `range`, but does not cover it.
    fn is_shared(&self, object: Object, range: &Range<u64>) -> bool {
        self.demand.wants.iter().filter_map(|want| range_of(want, object)).any(|want| {
            want.start < range.end
                && range.start < want.end
                && (want.start > range.start || want.end < range.end)
        })
    }

    /// True if there is room for a read. What the demand no longer wants gives way to what is worth fetching early.
    fn make_room(&mut self, bytes: u64, priority: Priority) -> bool {
        let ahead_bytes = self.read_ahead.ahead_bytes;
        loop {
            let is_now = |segment: &Segment| segment.wanted == Some(Priority::Now);
            let alike = self
                .segments
                .iter()
                .filter(|(_, segment)| is_now(segment) == (priority == Priority::Now))
                .map(|((_, start), segment)| segment.held(*start));
            let held: u64 = alike.sum();
            if held == 0 || held.saturating_add(bytes) <= ahead_bytes {
                return true;
            }
            if priority == Priority::Now {
                let is_flying = |segment: &Segment| is_now(segment) && matches!(segment.state, State::Flying);
                // The machine waits for this one.
                return !self.segments.values().any(is_flying);
            }
            let idle = self.segments.iter().find(|(_, segment)| segment.wanted.is_none());
            let Some(key) = idle.map(|(key, _)| *key) else { return false };
            self.segments.remove(&key);
        }
    }
}

/// The ranges of a demand that have this priority, sorted, those that touch joined.
fn spans(demand: &Demand, wanted: Priority) -> Vec<Span> {
    let of = |want: &Want| match want {
        Want::Range(object, range, priority) if *priority == wanted && !range.is_empty() => {
            Some((*object, range.clone()))
        }
        _ => None,
    };
    joined(demand.wants.iter().filter_map(of).collect(), 0)
}

/// Sorts spans by position, and joins those with at most `gap` bytes between them.
fn joined(mut spans: Vec<Span>, gap: u64) -> Vec<Span> {
    spans.sort_unstable_by_key(|(object, range)| (*object, range.start));
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for (object, range) in spans {
        match joined.last_mut() {
            Some((its, last)) if *its == object && range.start.saturating_sub(last.end) <= gap => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push((object, range)),
        }
    }
    joined
}

/// How urgently some of `range` is wanted.
fn priority(now: &[Span], soon: &[Span], object: Object, range: &Range<u64>) -> Option<Priority> {
    let overlaps = |spans: &[Span]| {
        let at = spans.partition_point(|(its, span)| (*its, span.end) <= (object, range.start));
        spans.get(at).is_some_and(|(its, span)| *its == object && span.start < range.end)
    };
    match () {
        () if overlaps(now) => Some(Priority::Now),
        () if overlaps(soon) => Some(Priority::Soon),
        () => None,
    }
}

/// The bytes of `range`, out of `bytes`, which begin at `start`.
fn part(bytes: &Bytes, start: u64, range: &Range<u64>) -> Bytes {
    let index = |at: u64| usize_of(at - start).unwrap_or(usize::MAX).min(bytes.len());
    bytes.slice(index(range.start)..index(range.end))
}

fn length_of(want: &Want) -> Option<Object> {
    match want {
        Want::Length(object) => Some(*object),
        Want::Range(..) => None,
    }
}

fn range_of(want: &Want, object: Object) -> Option<&Range<u64>> {
    match want {
        Want::Range(its, range, _) if *its == object => Some(range),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
