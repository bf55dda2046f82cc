//! What all machines share: steps, demands, supplies, errors.

use core::ffi::{c_char, c_void};
use core::ptr::null;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Error, Machine as _, Object, Priority, Release, Result, Step, Want};
use marquetry_parquet::read::FooterReader;

use crate::abi::{marquetry_budget, marquetry_bytes, marquetry_status, marquetry_want, marquetry_want_kind};
use crate::bytes::{Lent, hand_over, marquetry_release};
use crate::cql::Cql;
use crate::error::answer;
use crate::footer::Metadata;
use crate::handles::{self, Kind, call, call_of_steps, create, marquetry_error, marquetry_machine};
use crate::reader::{BatchesMachine, Converted};
use crate::records::Events;
use crate::sstable::Sstable;
use crate::writer::Writer;
use crate::{arguments, reserve};

/// The only object of a machine: the file.
pub(crate) const FILE: Object = Object(0);

/// What a machine is.
#[expect(clippy::large_enum_variant, reason = "there is one for each handle, which is behind a box")]
pub(crate) enum Work {
    Footer(FooterReader),
    Batches(BatchesMachine),
    Events(Events),
    Writer(Writer),
    Cql(Cql),
    Sstable(Sstable),
}

/// What a step made, and the host has not taken yet.
pub(crate) enum Product {
    Metadata(Metadata),
    Batch(Converted),
    /// Events stay in the machine, until the step after they were fetched.
    Events {
        are_fetched: bool,
    },
    /// Room for what is fed.
    Room,
    Text(Bytes),
}

/// What a handle of a machine leads to.
pub(crate) struct Machine {
    pub(crate) work: Work,
    pub(crate) product: Option<Product>,
    append: Option<Bytes>,
    wants: Vec<marquetry_want>,
    failed: Option<Error>,
    is_released: bool,
}

impl Kind for Machine {
    type Handle = marquetry_machine;
    const NUMBER: u64 = 2;
    const NAME: &'static str = "a machine";
}

/// Makes a machine, as the constructors do.
pub(crate) fn make(
    out: *mut *mut marquetry_machine,
    error: *mut *mut marquetry_error,
    work: impl FnOnce() -> Result<Work>,
) -> marquetry_status {
    let made = call(|| {
        arguments::put(out, core::ptr::null_mut())?;
        let (product, append, failed, is_released) = (None, None, None, false);
        let machine = Machine { work: work()?, product, append, wants: Vec::new(), failed, is_released };
        arguments::put_new(out, || create(machine))
    });
    answer(made, error)
}

/// Does something with a machine, unless it is being released or has failed. Errors that are not the host's own are the machine's from then on.
pub(crate) fn with_machine<R>(
    machine: *const marquetry_machine,
    work: impl FnOnce(&mut Machine) -> Result<R>,
) -> Result<R> {
    call(|| on(machine, work))
}

fn on<R>(machine: *const marquetry_machine, work: impl FnOnce(&mut Machine) -> Result<R>) -> Result<R> {
    handles::with::<Machine, _>(machine, |machine| {
        machine.check_not_released()?;
        if let Some(error) = &machine.failed {
            return Err(error.clone());
        }
        let done = work(machine);
        if let Some(bytes) = reserve::refused() {
            machine.failed = Some(Error::out_of_memory(bytes));
        }
        done
    })
}

impl Machine {
    /// Fails the machine for good.
    pub(crate) fn fail<R>(&mut self, error: Error) -> Result<R> {
        self.failed.get_or_insert(error.clone());
        Err(error)
    }

    fn check_not_released(&self) -> Result<()> {
        match self.is_released {
            false => Ok(()),
            true => Err(Error::misuse(
                "a machine that is being released: it can only be released further, or freed",
            )),
        }
    }

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<marquetry_status> {
        if self.append.is_some() {
            return Ok(marquetry_status::Append);
        }
        match self.product {
            Some(Product::Events { are_fetched: true } | Product::Room) => self.product = None,
            Some(_) => return Ok(marquetry_status::Ready),
            None => {}
        }
        self.wants.clear();
        let step = match &mut self.work {
            Work::Footer(reader) => {
                reader.step(budget).map(|step| step.map(|it| Product::Metadata(Metadata::new(it))))
            }
            Work::Batches(reader) => reader.step(budget).map(|step| step.map(Product::Batch)),
            Work::Events(events) => {
                events.step(budget).map(|step| step.map(|()| Product::Events { are_fetched: false }))
            }
            Work::Writer(writer) => writer.step(budget).map(|step| step.map(|()| Product::Room)),
            Work::Cql(cql) => cql.step(budget).map(|step| step.map(Product::Text)),
            Work::Sstable(sstable) => sstable.step(budget).map(|step| step.map(Product::Batch)),
        };
        match step {
            Err(error) => self.fail(error),
            Ok(Step::Ready(product)) => {
                self.product = Some(product);
                Ok(marquetry_status::Ready)
            }
            Ok(Step::Append(_, bytes)) => {
                self.append = Some(bytes);
                Ok(marquetry_status::Append)
            }
            Ok(Step::Need(demand)) => {
                for want in demand.wants {
                    let bytes = self.wants.len() * size_of::<marquetry_want>();
                    if self.wants.try_reserve(1).is_err() {
                        return self.fail(Error::out_of_memory(bytes));
                    }
                    self.wants.push(match want {
                        Want::Length(object) => marquetry_want {
                            kind: marquetry_want_kind::Length,
                            object: object.0,
                            start: 0,
                            end: 0,
                        },
                        Want::Range(object, range, priority) => {
                            let kind = match priority {
                                Priority::Now => marquetry_want_kind::Now,
                                Priority::Soon => marquetry_want_kind::Soon,
                            };
                            marquetry_want { kind, object: object.0, start: range.start, end: range.end }
                        }
                    });
                }
                Ok(marquetry_status::Need)
            }
            Ok(Step::Yield) => Ok(marquetry_status::Yield),
            Ok(Step::Done) => Ok(marquetry_status::Done),
        }
    }

    fn supply(&mut self, object: Object, start: u64, bytes: Bytes) -> Result<()> {
        if object != FILE && !matches!(self.work, Work::Sstable(_)) {
            return Err(Error::misuse(format!("bytes of object {}: the file is object 0", object.0)));
        }
        let length = u64_of(bytes.len());
        let end =
            start.checked_add(length).ok_or_else(|| Error::misuse("bytes beyond the end of any file"))?;
        match &mut self.work {
            Work::Footer(reader) => reader.supply(object, start..end, bytes),
            Work::Batches(reader) => reader.supply(start..end, bytes),
            Work::Events(events) => events.reader.supply(start..end, bytes),
            Work::Cql(cql) => cql.reader.supply(start..end, bytes),
            Work::Sstable(sstable) => sstable.reader.supply(object, start..end, bytes),
            Work::Writer(_) => Err(Error::misuse("bytes for a machine that writes")),
        }
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        match &mut self.work {
            Work::Footer(reader) => reader.supply_length(object, length),
            Work::Sstable(sstable) => sstable.reader.supply_length(object, length),
            _ => Err(Error::misuse("a length for a machine that did not ask for one")),
        }
    }

    fn release(&mut self, budget: &mut Budget<'_>) -> marquetry_status {
        self.is_released = true;
        self.wants = Vec::new();
        let (product, is_done) = match &mut self.product {
            Some(Product::Batch(batch)) => (true, batch.release(budget)),
            Some(Product::Metadata(metadata)) => (true, metadata.file.release(budget)),
            Some(Product::Text(text)) => (true, text.release(budget)),
            Some(Product::Events { .. } | Product::Room) | None => (false, true),
        };
        if is_done {
            self.product = None;
        }
        // A step releases one thing after the other, as far as the budget goes.
        if !is_done || (product && budget.is_spent()) || !self.append.release(budget) {
            return marquetry_status::Yield;
        }
        let is_done = match &mut self.work {
            Work::Footer(reader) => reader.release(budget),
            Work::Batches(reader) => reader.release(budget),
            Work::Events(events) => events.release(budget),
            Work::Cql(cql) => cql.release(budget),
            Work::Writer(writer) => writer.release(budget),
            Work::Sstable(sstable) => sstable.release(budget),
        };
        if is_done { marquetry_status::Done } else { marquetry_status::Yield }
    }
}

/// Does something with the budget that the host gives.
pub(crate) fn with_budget<R>(
    given: *const marquetry_budget,
    work: impl FnOnce(&mut Budget<'_>) -> Result<R>,
) -> Result<R> {
    let Some(given) = arguments::options(given)? else { return work(&mut Budget::default()) };
    let units = if given.units == 0 { Budget::DEFAULT_UNITS } else { given.units };
    match given.need_preempt {
        None => work(&mut Budget::new(units)),
        Some(need_preempt) => {
            let mut ask = || need_preempt(given.context) != 0;
            work(&mut Budget::with_preempt(units, &mut ask))
        }
    }
}

/// Works until there is an answer or the budget is spent.
///
/// After `ERROR` the machine stays failed and answers with the same error again, unless the error is of kind `MISUSE` and about this call alone.
/// What a step made and nobody took (a batch, bytes to append, text, metadata, events that were not fetched) is answered again.
///
/// * `machine`: in, borrowed.
/// * `budget`: in, borrowed; NULL: the default.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_step(
    machine: *mut marquetry_machine,
    budget: *const marquetry_budget,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = call_of_steps(|| on(machine, |machine| with_budget(budget, |budget| machine.step(budget))));
    answer(done, error)
}

/// What the machine wants, after `NEED`: the most urgent first. One that is `NOW` or `LENGTH` must be supplied before it can go on.
///
/// * `machine`: in, borrowed.
/// * `wants`, `count`: out; the array is borrowed from the machine until its next step or until it is freed.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_wants(
    machine: *mut marquetry_machine,
    wants: *mut *const marquetry_want,
    count: *mut usize,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| {
        arguments::put(wants, if machine.wants.is_empty() { null() } else { machine.wants.as_ptr() })?;
        arguments::put(count, machine.wants.len())
    });
    answer(done, error)
}

/// Supplies bytes of a file: all of a range that is wanted or a piece of it, in any order. They are not copied.
///
/// * `machine`: in, borrowed.
/// * `object`: 0, the file; of an SSTable, the number of the file in `marquetry_sstable_options`.
/// * `offset`: where the bytes start in the file.
/// * `data`, `length`: in, borrowed until `release` is called. They must not change meanwhile: arrays may point into them.
/// * `release`, `context`: called once with `context`, `data` and `length` when the library does not need the bytes any more: also if this call
///   fails, and on whatever thread that is. NULL: the bytes stay for as long as the process, or all that was made of them.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_supply(
    machine: *mut marquetry_machine,
    object: u32,
    offset: u64,
    data: *const u8,
    length: usize,
    release: marquetry_release,
    context: *mut c_void,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    // Made first, so that it is released in any case.
    let lent = Lent::new(data, length, release, context);
    let done = with_machine(machine, |machine| machine.supply(Object(object), offset, lent.into_bytes()?));
    answer(done, error)
}

/// Answers a want of the kind `LENGTH` with the length of that file in bytes.
///
/// * `machine`: in, borrowed.
/// * `object`: 0, the file; of an SSTable, the number of the file in `marquetry_sstable_options`.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_supply_length(
    machine: *mut marquetry_machine,
    object: u32,
    length: u64,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    answer(with_machine(machine, |machine| machine.supply_length(Object(object), length)), error)
}

/// Reports that input or output failed: bytes that cannot be read, or appended. The machine fails with this reason.
///
/// * `machine`: in, borrowed.
/// * `reason`: in, borrowed during the call; NULL: none is given.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_fail(
    machine: *mut marquetry_machine,
    reason: *const c_char,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| {
        let reason = arguments::text(reason, "a reason")?.unwrap_or("input or output failed");
        machine.failed = Some(Error::io(reason.to_string()));
        Ok(())
    });
    answer(done, error)
}

/// The error that the machine has failed with.
///
/// * `machine`: in, borrowed.
/// * `error`: out, owned by the host; NULL is written if the machine has not failed.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_machine_error(
    machine: *mut marquetry_machine,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let failed = call(|| {
        arguments::put(error, core::ptr::null_mut())?;
        handles::with::<Machine, _>(machine, |machine| {
            machine.check_not_released()?;
            Ok(machine.failed.clone())
        })
    });
    match failed {
        Ok(None) => marquetry_status::Ok,
        Ok(Some(found)) => {
            answer::<()>(Err(found), error);
            marquetry_status::Ok
        }
        Err(misuse) => answer::<()>(Err(misuse), error),
    }
}

/// Takes the bytes that a writer wants to append to the file, after `APPEND`. They are the file's next, in order.
///
/// * `machine`: in, borrowed.
/// * `bytes`: out, owned by the host: `marquetry_bytes_release`.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_take_append(
    machine: *mut marquetry_machine,
    bytes: *mut marquetry_bytes,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| {
        let Some(append) = &machine.append else {
            return Err(Error::misuse("nothing is to be appended"));
        };
        arguments::put_new(bytes, || hand_over(append.clone()))?;
        machine.append = None;
        Ok(())
    });
    answer(done, error)
}

/// Releases what a machine holds, as much as the budget pays for: `YIELD` means that there is more, `DONE` that freeing it is cheap. For hosts
/// that must not stall; others free it at once. Afterwards it can only be released further, or freed.
///
/// * `machine`: in, borrowed.
/// * `budget`: in, borrowed; NULL: the default.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_machine_release(
    machine: *mut marquetry_machine,
    budget: *const marquetry_budget,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = call(|| {
        handles::with::<Machine, _>(machine, |machine| {
            with_budget(budget, |budget| Ok(machine.release(budget)))
        })
    });
    answer(done, error)
}

/// Frees a machine. `machine`: in, owned; NULL does nothing. Batches, bytes and metadata that were taken stay.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_machine_free(machine: *mut marquetry_machine) -> marquetry_status {
    answer(call(|| handles::free::<Machine>(machine)), core::ptr::null_mut())
}
