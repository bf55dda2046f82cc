//! What the asynchronous drivers share: a machine, the reads it waits for, and when other tasks get the thread.

use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Error, Machine, Object, Price, Result, Step};

use crate::async_source::AsyncByteSource;
use crate::failure::named;
use crate::schedule::{Answer, Ask, ReadAhead, Schedule};
use crate::source::ByteSources;

/// Units charged for a demand beside the step that made it: reads are planned, started and handed over.
const DEMAND_UNITS: u64 = 2_000;
/// Units that a read costs.
const READ_UNITS: u64 = 1_000;

/// A machine that is being driven. Its host polls it, and lets other tasks run when told to.
pub(crate) struct Driving<M, S: AsyncByteSource> {
    machine: M,
    sources: ByteSources<S>,
    schedule: Schedule,
    reads: Vec<Flight<S::Read>>,
    lengths: Vec<(Object, S::Length)>,
    /// True while the machine waits for an answer.
    waits: bool,
    /// Units left until other tasks run.
    units_left: u64,
    /// Bytes of reads that may still start before other tasks run; and in a whole turn.
    bytes_left: u64,
    turn_bytes: u64,
    /// The price of starting a read, by its length.
    read_price: Price,
}

/// A read in flight.
struct Flight<F> {
    object: Object,
    range: Range<u64>,
    future: F,
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

impl<M: Machine, S: AsyncByteSource> Driving<M, S> {
    /// Starts reads of at most `turn_bytes` (but at least one read) per turn. Where the system reads cached data at
    /// once, on this thread, that counts towards the turn at `read_price`.
    pub(crate) fn new(
        machine: M,
        sources: ByteSources<S>,
        read_ahead: ReadAhead,
        turn_bytes: u64,
        read_price: Price,
    ) -> Self {
        Driving {
            machine,
            sources,
            schedule: Schedule::new(read_ahead),
            reads: Vec::new(),
            lengths: Vec::new(),
            waits: false,
            units_left: Budget::DEFAULT_UNITS,
            bytes_left: turn_bytes,
            turn_bytes,
            read_price,
        }
    }

    pub(crate) fn machine(&self) -> &M {
        &self.machine
    }

    /// Works until the next event, for one step's budget at most. Pending while nothing can be done before a read
    /// ends.
    ///
    /// Nothing is lost if a caller stops polling in between.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Event<M::Product>>> {
        loop {
            if self.units_left == 0 {
                self.units_left = Budget::DEFAULT_UNITS;
                self.bytes_left = self.turn_bytes;
                return Poll::Ready(Ok(Event::Turn));
            }
            let mut moved = self.begin();
            if moved || self.waits {
                moved |= self.collect(cx);
            }
            if self.waits && !self.hand_over()? {
                if self.schedule.has_more() && (moved || self.bytes_left == 0) {
                    // Data that arrived may have made room; or other tasks come first.
                    if self.bytes_left == 0 {
                        self.units_left = 0;
                    }
                    continue;
                }
                if self.reads.is_empty() && self.lengths.is_empty() {
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
                Step::Done => return Poll::Ready(Ok(Event::Done)),
                Step::Yield => self.units_left = 0,
                Step::Append(object, _) => {
                    let message =
                        format!("the machine writes to object {}, and this driver only reads", object.0);
                    return Poll::Ready(Err(Error::misuse(message)));
                }
                Step::Need(demand) => {
                    self.schedule.want(demand)?;
                    self.charge(DEMAND_UNITS);
                    self.waits = true;
                }
            }
        }
    }

    /// Starts reads as long as there is room for them and it is our turn. True if any were started.
    fn begin(&mut self) -> bool {
        let mut any = false;
        while self.bytes_left > 0 {
            let Some(ask) = self.schedule.begin() else { break };
            any = true;
            match ask {
                Ask::Length(object) => match self.sources.get(object) {
                    Ok(source) => self.lengths.push((object, source.length())),
                    Err(error) => self.schedule.length_arrived(object, Err(error)),
                },
                Ask::Read(object, range) => {
                    let bytes = range.end - range.start;
                    self.charge(READ_UNITS + self.read_price.of(usize_of(bytes).unwrap_or(usize::MAX), 0));
                    self.bytes_left = self.bytes_left.saturating_sub(bytes);
                    match self.sources.get(object) {
                        Ok(source) => {
                            let future = source.read(range.clone());
                            self.reads.push(Flight { object, range, future });
                        }
                        Err(error) => self.schedule.arrived(object, &range, Err(error)),
                    }
                }
            }
        }
        any
    }

    /// Collects completed reads, and drops those no longer wanted. True if any completed.
    fn collect(&mut self, cx: &mut Context<'_>) -> bool {
        let schedule = &mut self.schedule;
        let in_flight = self.reads.len() + self.lengths.len();
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
        self.reads.len() + self.lengths.len() < in_flight
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

    /// Reports a failed read to the machine, and returns the machine's error.
    fn refuse(&mut self, object: Object, range: Range<u64>, reason: Error) -> Error {
        self.waits = false;
        self.machine.fail(object, range, reason.clone());
        self.machine.step(&mut Budget::default()).err().unwrap_or(reason)
    }

    /// Charges for the driver's own work, but leaves one unit for the machine: each turn has a step.
    fn charge(&mut self, units: u64) {
        self.units_left = self.units_left.saturating_sub(units).max(1);
    }

    fn named(&self, error: Error) -> Error {
        named(error, self.sources.only().map(AsyncByteSource::name))
    }
}
