//! What the asynchronous drivers share: a machine, its reads and appends, and when other tasks get the thread.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Bytes, Error, Machine, Object, Price, Result, Step};

use crate::failure::named;
use crate::objects::Objects;
use crate::schedule::{Answer, Ask, ReadAhead, Schedule};

/// Units charged for a demand beside the step that made it: reads are planned, started and handed over.
const DEMAND_UNITS: u64 = 2_000;
/// Units charged for an append beside the step that made it.
const APPEND_UNITS: u64 = 500;
/// Units charged for starting a read or an append.
const BEGIN_UNITS: u64 = 1_000;

/// A machine that is being driven. Its host polls it, and lets other tasks run when told to.
pub(crate) struct Driving<M, P: Objects> {
    machine: M,
    objects: P,
    schedule: Schedule,
    reads: Vec<Flight<P::Read>>,
    lengths: Vec<(Object, P::Length)>,
    appends: Appends<P::Append>,
    /// Bytes that wait to be appended, and those of one append, at most.
    ahead: ReadAhead,
    /// True while the machine waits for an answer.
    waits: bool,
    /// True once the machine has nothing more to do.
    is_done: bool,
    /// Units left until other tasks run.
    units_left: u64,
    /// Bytes of reads and appends that may still start before other tasks run; and in a whole turn.
    bytes_left: u64,
    turn_bytes: u64,
    /// The price of starting a read or an append, by its length.
    byte_price: Price,
}

/// A read in flight.
struct Flight<F> {
    object: Object,
    range: Range<u64>,
    future: F,
}

/// What the machine has written and is not yet appended.
struct Appends<F> {
    queue: VecDeque<(Object, Bytes)>,
    /// One for each object, at most.
    flights: Vec<(Object, usize, F)>,
    /// Bytes of both.
    bytes: u64,
}

/// What [`Driving::poll`] answers.
pub(crate) enum Event<T> {
    /// A product.
    Product(T),
    /// Other tasks should run.
    Turn,
    /// Nothing more will come.
    Done,
}

impl<M: Machine, P: Objects> Driving<M, P> {
    /// Starts reads and appends of at most `turn_bytes` (but at least one) per turn. Where the system copies from or to
    /// its cache at once, on this thread, that counts towards the turn at `byte_price`.
    pub(crate) fn new(machine: M, objects: P, ahead: ReadAhead, turn_bytes: u64, byte_price: Price) -> Self {
        Driving {
            machine,
            objects,
            schedule: Schedule::new(ahead),
            reads: Vec::new(),
            lengths: Vec::new(),
            appends: Appends { queue: VecDeque::new(), flights: Vec::new(), bytes: 0 },
            ahead,
            waits: false,
            is_done: false,
            units_left: Budget::DEFAULT_UNITS,
            bytes_left: turn_bytes,
            turn_bytes,
            byte_price,
        }
    }

    pub(crate) fn machine(&self) -> &M {
        &self.machine
    }

    pub(crate) fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Works until the next event, for one step's budget at most. Pending while nothing can be done before a read or an
    /// append ends.
    ///
    /// Nothing is lost if a caller stops polling in between.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event<M::Product>>> {
        loop {
            if self.units_left == 0 {
                self.units_left = Budget::DEFAULT_UNITS;
                self.bytes_left = self.turn_bytes;
                return Poll::Ready(Ok(Event::Turn));
            }
            let mut moved = self.begin()?;
            if moved || self.waits || !self.appends.is_empty() {
                moved |= self.collect(cx)?;
            }
            if self.is_full() {
                if self.goes_on(moved, !self.appends.queue.is_empty()) {
                    continue;
                }
                return Poll::Pending;
            }
            if self.is_done {
                self.is_done = false;
                return Poll::Ready(Ok(Event::Done));
            }
            if self.waits && !self.hand_over()? {
                if self.goes_on(moved, self.schedule.has_more()) {
                    continue;
                }
                if self.reads.is_empty() && self.lengths.is_empty() && self.appends.is_empty() {
                    return Poll::Ready(Err(Error::internal("a machine waits for what nobody reads")));
                }
                return Poll::Pending;
            }
            self.waits = false;
            let mut budget = Budget::new(self.units_left);
            let step = self.machine.step(&mut budget);
            self.units_left = budget.left();
            match step.map_err(|error| self.named(error))? {
                Step::Ready(product) => {
                    self.units_left = 0;
                    return Poll::Ready(Ok(Event::Product(product)));
                }
                Step::Done => self.is_done = true,
                Step::Yield => self.units_left = 0,
                Step::Append(object, bytes) => {
                    if let Err(reason) = self.objects.may_append(object) {
                        return Poll::Ready(Err(self.refuse(object, 0..0, reason)));
                    }
                    self.appends.push(object, bytes);
                    // Also of a machine that charges nothing for it.
                    self.units_left = self.units_left.saturating_sub(APPEND_UNITS);
                }
                Step::Need(demand) => {
                    self.schedule.want(demand)?;
                    self.charge(DEMAND_UNITS);
                    self.waits = true;
                }
            }
        }
    }

    /// True while the machine has to wait for appends to complete.
    fn is_full(&self) -> bool {
        !self.appends.is_empty() && (self.is_done || self.appends.bytes >= self.ahead.ahead_bytes)
    }

    /// Whether to look again at once instead of waiting: if something completed, which may have made room, or if more
    /// can start once other tasks have run.
    fn goes_on(&mut self, moved: bool, has_more: bool) -> bool {
        let others_first = self.bytes_left == 0;
        if has_more && others_first {
            self.units_left = 0;
        }
        moved || (has_more && others_first)
    }

    /// Starts appends and reads as long as there is room for them and it is our turn. True if any were started.
    fn begin(&mut self) -> Result<bool> {
        let mut any = false;
        while self.bytes_left > 0 {
            let Some((object, piece)) = self.appends.next(self.ahead.piece_bytes) else { break };
            any = true;
            let bytes = piece.len();
            self.begins(u64_of(bytes));
            match self.objects.append(object, piece) {
                Ok(future) => self.appends.flights.push((object, bytes, future)),
                Err(reason) => return Err(self.refuse(object, 0..0, reason)),
            }
        }
        // A spill object may be read where it is still being written.
        while self.bytes_left > 0 && self.appends.is_empty() {
            let Some(ask) = self.schedule.begin() else { break };
            any = true;
            match ask {
                Ask::Length(object) => match self.objects.length(object) {
                    Ok(future) => self.lengths.push((object, future)),
                    Err(error) => self.schedule.length_arrived(object, Err(error)),
                },
                Ask::Read(object, range) => {
                    self.begins(range.end - range.start);
                    match self.objects.read(object, range.clone()) {
                        Ok(future) => self.reads.push(Flight { object, range, future }),
                        Err(error) => self.schedule.arrived(object, &range, Err(error)),
                    }
                }
            }
        }
        Ok(any)
    }

    /// Charges for a read or an append of this many bytes.
    fn begins(&mut self, bytes: u64) {
        self.charge(BEGIN_UNITS + self.byte_price.of(usize_of(bytes).unwrap_or(usize::MAX), 0));
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }

    /// Collects completed reads and appends, and drops reads no longer wanted. True if any completed.
    fn collect(&mut self, cx: &mut Context<'_>) -> Result<bool> {
        let schedule = &mut self.schedule;
        let in_flight = self.reads.len() + self.lengths.len() + self.appends.flights.len();
        if let Err((object, reason)) = self.appends.collect(cx) {
            return Err(self.refuse(object, 0..0, reason));
        }
        self.lengths.retain_mut(|(object, future)| match Pin::new(future).poll(cx) {
            Poll::Ready(found) => {
                schedule.length_arrived(*object, found);
                false
            }
            Poll::Pending => true,
        });
        self.reads.retain_mut(|flight| {
            if !schedule.is_flying(flight.object, &flight.range) {
                return false;
            }
            match Pin::new(&mut flight.future).poll(cx) {
                Poll::Ready(bytes) => {
                    schedule.arrived(flight.object, &flight.range, bytes);
                    false
                }
                Poll::Pending => true,
            }
        });
        Ok(self.reads.len() + self.lengths.len() + self.appends.flights.len() < in_flight)
    }

    /// Hands the machine the bytes that it waits for. True if there were any.
    fn hand_over(&mut self) -> Result<bool> {
        let mut any = false;
        while let Some(answer) = self.schedule.answer() {
            any = true;
            match answer {
                Answer::Length(object, Ok(length)) => self.machine.supply_length(object, length),
                Answer::Bytes(object, range, Ok(bytes)) => self.machine.supply(object, range, bytes),
                Answer::Length(object, Err(reason)) => Err(self.refuse(object, 0..0, reason)),
                Answer::Bytes(object, range, Err(reason)) => Err(self.refuse(object, range, reason)),
            }
            .map_err(|error| self.named(error))?;
        }
        Ok(any)
    }

    /// Reports a failed read or append to the machine, and returns the machine's error.
    fn refuse(&mut self, object: Object, range: Range<u64>, reason: Error) -> Error {
        (self.waits, self.is_done) = (false, false);
        self.appends.clear();
        self.machine.fail(object, range, reason.clone());
        self.machine.step(&mut Budget::default()).err().unwrap_or(reason)
    }

    /// Charges for the driver's own work, but leaves one unit for the machine: each turn has a step.
    fn charge(&mut self, units: u64) {
        self.units_left = self.units_left.saturating_sub(units).max(1);
    }

    fn named(&self, error: Error) -> Error {
        named(error, self.objects.only())
    }
}

impl<F: Future<Output = Result<()>> + Unpin> Appends<F> {
    fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.flights.is_empty()
    }

    fn push(&mut self, object: Object, bytes: Bytes) {
        if !bytes.is_empty() {
            self.bytes += u64_of(bytes.len());
            self.queue.push_back((object, bytes));
        }
    }

    /// The next bytes to append, at most `piece_bytes`: the first that wait for an object to which nothing is being appended.
    fn next(&mut self, piece_bytes: u64) -> Option<(Object, Bytes)> {
        let flights = &self.flights;
        let is_free = |object: Object| flights.iter().all(|(other, ..)| *other != object);
        let at = self.queue.iter().position(|(object, _)| is_free(*object))?;
        let (object, bytes) = self.queue.get_mut(at)?;
        let object = *object;
        let piece_bytes = usize_of(piece_bytes.max(1)).unwrap_or(usize::MAX);
        if bytes.len() > piece_bytes {
            return Some((object, bytes.split_to(piece_bytes)));
        }
        self.queue.remove(at)
    }

    /// Collects completed appends.
    fn collect(&mut self, cx: &mut Context<'_>) -> Result<(), (Object, Error)> {
        let mut wrong = Ok(());
        let bytes_left = &mut self.bytes;
        self.flights.retain_mut(|(object, bytes, future)| match Pin::new(future).poll(cx) {
            Poll::Ready(Ok(())) => {
                *bytes_left -= u64_of(*bytes);
                false
            }
            Poll::Ready(Err(reason)) => {
                wrong = Err((*object, reason));
                false
            }
            Poll::Pending => true,
        });
        wrong
    }

    /// Drops what waits and what is in flight.
    fn clear(&mut self) {
        self.queue.clear();
        self.flights.clear();
        self.bytes = 0;
    }
}
