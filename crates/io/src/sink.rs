//! Where a driver puts what a machine writes.

use std::collections::BTreeMap;
use std::ops::Range;

use marquetry_base::{Budget, Bytes, Error, Machine, Object, Priority, Result, Step, Want};

use crate::failure::named;

/// The end of one object, to which bytes are appended by blocking writes.
pub trait ByteSink {
    /// The object's name for people: a path, an address. Part of every error.
    fn name(&self) -> &str;

    /// Adds bytes to the object's end.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io). How many of the bytes were added is then unknown.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Reads bytes that were appended before, the whole range: for spill objects, which are written to be read again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io), also if the sink cannot be read.
    fn read(&mut self, range: Range<u64>) -> Result<Bytes>;
}

impl<S: ByteSink + ?Sized> ByteSink for &mut S {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        (**self).append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        (**self).read(range)
    }
}

impl<S: ByteSink + ?Sized> ByteSink for Box<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        (**self).append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        (**self).read(range)
    }
}

/// Which sink each of a machine's objects has.
#[derive(Debug)]
pub struct ByteSinks<S> {
    by_object: BTreeMap<Object, S>,
}

impl<S> ByteSinks<S> {
    /// No sinks yet.
    pub fn new() -> ByteSinks<S> {
        ByteSinks { by_object: BTreeMap::new() }
    }

    /// Adds a sink, which replaces any that `object` had.
    #[must_use]
    pub fn with(mut self, object: Object, sink: S) -> ByteSinks<S> {
        self.by_object.insert(object, sink);
        self
    }

    pub(crate) fn get(&mut self, object: Object) -> Result<&mut S> {
        self.by_object
            .get_mut(&object)
            .ok_or_else(|| Error::misuse(format!("the driver was given no sink for object {}", object.0)))
    }

    /// The only sink, where there is only one: then it is the one that an error is about.
    #[cfg(any(feature = "tokio", feature = "uring"))]
    pub(crate) fn only(&self) -> Option<&S> {
        match self.by_object.len() {
            1 => self.by_object.values().next(),
            _ => None,
        }
    }
}

impl<S> Default for ByteSinks<S> {
    fn default() -> ByteSinks<S> {
        ByteSinks::new()
    }
}

/// Runs a machine that writes up to its next product; a machine that takes batches asks for the next batch in this
/// way. `None` when everything is written.
///
/// What the machine reads is what it wrote before. Every step gets an unlimited budget, because nothing else wants
/// the thread.
///
/// # Errors
///
/// The machine's errors. A sink's failure is reported to the machine ([`Machine::fail`]), so that it stays failed.
/// [`Misuse`](marquetry_base::ErrorKind::Misuse) for an object without a sink, and for machines that ask for an object's length.
pub fn drive_into<M: Machine, S: ByteSink>(
    machine: &mut M,
    sinks: &mut ByteSinks<S>,
) -> Result<Option<M::Product>> {
    run(machine, sinks, u64::MAX, || Ok(()))
}

/// As [`drive_into`], but asks every 20 milliseconds or so whether to go on: a batch of large values may take minutes to
/// compress.
///
/// # Errors
///
/// As [`drive_into`], and what `go_on` returns.
pub fn drive_into_while<M: Machine, S: ByteSink>(
    machine: &mut M,
    sinks: &mut ByteSinks<S>,
    go_on: impl FnMut() -> Result<()>,
) -> Result<Option<M::Product>> {
    run(machine, sinks, ASKED_AFTER_UNITS, go_on)
}

/// Units between two questions whether to go on.
const ASKED_AFTER_UNITS: u64 = 20_000_000;

fn run<M: Machine, S: ByteSink>(
    machine: &mut M,
    sinks: &mut ByteSinks<S>,
    units: u64,
    mut go_on: impl FnMut() -> Result<()>,
) -> Result<Option<M::Product>> {
    loop {
        go_on()?;
        match machine.step(&mut Budget::new(units))? {
            Step::Ready(product) => return Ok(Some(product)),
            Step::Done => return Ok(None),
            Step::Yield => {}
            Step::Append(object, bytes) => {
                let appended = sinks.get(object).and_then(|sink| sink.append(&bytes));
                if let Err(reason) = appended {
                    machine.fail(object, 0..0, reason.clone());
                    return Err(reason);
                }
            }
            Step::Need(demand) => {
                let mut is_answered = false;
                for want in demand.wants {
                    match want {
                        Want::Length(_) => {
                            return Err(Error::misuse("this driver reads only what was written"));
                        }
                        Want::Range(_, _, Priority::Soon) => {}
                        Want::Range(object, range, Priority::Now) => {
                            let sink = sinks.get(object)?;
                            match sink.read(range.clone()) {
                                Ok(bytes) => machine
                                    .supply(object, range, bytes)
                                    .map_err(|error| named(error, Some(sink.name())))?,
                                Err(reason) => {
                                    machine.fail(object, range, reason.clone());
                                    return Err(reason);
                                }
                            }
                            is_answered = true;
                        }
                    }
                }
                if !is_answered {
                    return Err(Error::internal("a machine waits for nothing"));
                }
            }
        }
    }
}
