//! What calls cost, and what they may.
//!
//! Every call of a machine, in every target, goes through [`call`]. It fails where the call charges more than its budget and one slice,
//! allocates a large piece without need, or asks the allocator more often than its units pay for. Those are counts, the same in every
//! run. [Timed](time), it also notes the calls that took long; whether that is too long is judged by who replays an input
//! ([`Costs::faults`]).

use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use marquetry_base::{Budget, Release};
use marquetry_testing::memory;

use crate::canary::{Canary, is_planted};

/// Units that a call may charge beyond its budget, for the slice that it was in the middle of. A window of 1 MiB that others
/// held, too, is freed in one: 131,172 after what else is in the slice.
pub const SLICE_UNITS_MAX: u64 = 150_000;

/// A ZSTD block that refers to nothing far back is decoded at once, whatever is left of the budget.
pub const BLOCK_UNITS_MAX: u64 = 222_600;

/// How often a call may allocate, grow or free memory, whatever it charges: what a slice is in the middle of, and an error.
const ALLOCATIONS_FREE: u64 = 1_000;

/// Units that pay for one of these: each takes some 20 ns, and a unit is to take 1.5 ns at the most.
const ALLOCATION_UNITS: u64 = 8;

/// Units of a column, where something is made of a schema in one call.
const COLUMN_UNITS: u64 = 80;

/// What may be large.
struct Exception {
    /// A part of the name of a function that asks for it, or of its file's.
    names: [&'static str; 2],
    /// How large it may be.
    most: Most,
    #[expect(dead_code, reason = "it is for who reads this")]
    why: &'static str,
}

/// How large an exception may be.
enum Most {
    /// As what a machine may hold: the limits admit it.
    Held,
    /// So many times the bytes that were supplied.
    Supplied(u64),
    /// So many bytes.
    Bytes(u64),
}

const fn exception(names: [&'static str; 2], most: Most, why: &'static str) -> Exception {
    Exception { names, most, why }
}

const EXCEPTIONS: &[Exception] = &[
    // Decision 22: what a batch hands out is one slice.
    exception(["growing::Joining", "parquet/src/growing.rs"], Most::Held, "a value that came in parts"),
    exception(["batch::store", "batch/store.rs"], Most::Held, "a row's array that came in parts"),
    exception(["read::builder::Builder::join"; 2], Most::Held, "the same, where that is inlined"),
    exception(["record::column", "record/column.rs"], Most::Held, "an array of a batch that is shredded"),
    exception(["record::shred", "record/shred.rs"], Most::Held, "a value that is shredded"),
    exception(["record::Records::run"; 2], Most::Held, "both, where they are inlined, and nothing has lines"),
    exception(
        ["index::Walk", "parquet/src/format/index.rs"],
        Most::Supplied(1),
        "a bound that came in parts",
    ),
    exception(["text::read::window", "text/src/read/window.rs"], Most::Supplied(2), "a row of a text"),
    exception(["read::lines::sample", "read/lines/sample.rs"], Most::Supplied(64), "the columns of a text"),
    exception(["read::delimited::sample", "read/delimited/sample.rs"], Most::Supplied(64), "likewise"),
    exception(["read::lines::plan", "read/lines/plan.rs"], Most::Supplied(64), "likewise"),
    // Made in one call, not mended yet.
    exception(["read::delimited::rows", "read/delimited/rows.rs"], Most::Supplied(64), "likewise"),
    exception(["compress::brotli", "compress/brotli.rs"], Most::Bytes(BROTLI_BYTES), "the library's own"),
    exception(["zstd::window", "zstd/window.rs"], Most::Held, "a frame's window"),
    exception(["zstd::frame::Frame::begin"; 2], Most::Held, "the same, where that is inlined"),
    exception(["zstd_safe::rust_allocator"; 2], Most::Bytes(ZSTD_BYTES), "the library's own"),
];

/// The largest piece that the library for ZSTD allocates: a window of 2 MiB, because frames that may refer farther back are not its own, with
/// room for blocks and their literals.
const ZSTD_BYTES: u64 = 3 << 20;

/// The largest piece that the library for Brotli allocates: for its largest window.
const BROTLI_BYTES: u64 = 32 << 20;

/// Time of a unit, at the most: half as much again as a price may be worth.
const UNIT_NANOS_MAX: f64 = 1.5 * 1.5;

/// Time of a call that charges next to nothing, at the most.
const FREE_NANOS: f64 = 100_000.0;

/// A call that is shorter is not noted.
const NOTED: Duration = Duration::from_micros(75);

/// A call that took long.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// What was called.
    pub what: &'static str,
    /// What it charged.
    pub units: u64,
    /// The thread's CPU time.
    pub time: Duration,
}

/// What the calls of a run cost.
#[derive(Debug, Clone, Default)]
pub struct Costs {
    /// Of each kind of call, the most units, and the most requests to the allocator.
    pub most: BTreeMap<&'static str, (u64, u64)>,
    /// The most bytes held, beside those that there were before.
    pub peak_bytes: u64,
    /// Calls that took long, by their number, if they were timed.
    pub long: BTreeMap<u64, Call>,
    calls: u64,
}

/// Bytes that were supplied, and that may be held, where a target does not say.
const ANY_BYTES: (u64, u64) = (8 << 20, 64 << 20);

thread_local! {
    static IS_TIMED: Cell<bool> = const { Cell::new(false) };
    /// Bytes that were supplied, and that may be held.
    static BYTES: Cell<(u64, u64)> = const { Cell::new(ANY_BYTES) };
    static COSTS: RefCell<Costs> = RefCell::new(Costs::default());
}

/// A piece of memory that has glibc join what was freed before: larger than what it keeps aside, smaller than what it maps.
const PUT_OFF_BYTES: usize = 100 << 10;

/// Begins to measure what is held, with so many bytes supplied and so many that may be held: what is large is measured by them, too.
pub fn start(supplied: u64, held: u64) {
    BYTES.set((supplied, held));
    // What made the input has freed much, and glibc puts off a part of that until a larger piece is freed: not in a call.
    drop(std::hint::black_box(Vec::<u8>::with_capacity(PUT_OFF_BYTES)));
    memory::start();
}

/// Changes how many bytes may be held, once it is known.
pub fn allow(held: u64) {
    BYTES.set((BYTES.get().0, held));
}

/// Allows more bytes to be held than so far.
pub fn allow_more(bytes: u64) {
    let (supplied, held) = BYTES.get();
    BYTES.set((supplied, held.saturating_add(bytes)));
}

/// The most bytes that were held since [`start`].
///
/// # Panics
///
/// When they were more than may be.
pub fn check_peak() {
    let (supplied, allowed) = BYTES.replace(ANY_BYTES);
    let peak = memory::taken().peak_bytes;
    assert!(peak <= allowed, "{peak} bytes held, with {supplied} supplied: {allowed} are allowed");
}

/// Releases what is no longer wanted, as a host does that must not stall: in slices. What is left is cheap to drop.
///
/// # Panics
///
/// When a call costs more than it may.
pub fn release(what: &'static str, units: u64, mut thing: impl Release) {
    while !call(what, 0, &mut Budget::new(units), |budget| thing.release(budget)) {}
    call_free(what, || drop(thing));
}

/// Times the thread's calls from now on, or no longer.
pub fn time(is_timed: bool) {
    IS_TIMED.set(is_timed);
}

/// What the calls cost since this was last asked.
pub fn taken() -> Costs {
    COSTS.take()
}

/// A call of a machine with a budget. `at_once` is what it may do without looking at what is left.
///
/// # Panics
///
/// When it costs more than it may.
pub fn call<T>(
    what: &'static str,
    at_once: u64,
    budget: &mut Budget<'_>,
    work: impl FnOnce(&mut Budget<'_>) -> T,
) -> T {
    let (left, spent) = (budget.left(), budget.spent());
    let result = measured(what, budget, |budget| match is_planted(Canary::Price) {
        false => work(budget),
        // Every price is a tenth of what it was.
        true => {
            let mut cheap = Budget::new(budget.left().saturating_mul(10));
            let result = work(&mut cheap);
            budget.charge_units(cheap.spent() / 10);
            result
        }
    });
    let spent = budget.spent() - spent;
    let most = left.max(at_once).saturating_add(SLICE_UNITS_MAX);
    assert!(spent <= most, "{what}: {spent} units, with a budget of {left}");
    result
}

/// A call of a machine that has no budget: it charges nothing, so it may do next to nothing.
///
/// # Panics
///
/// When it costs more than it may.
pub fn call_free<T>(what: &'static str, work: impl FnOnce() -> T) -> T {
    measured(what, &mut Budget::new(0), |_budget| work())
}

/// A call that makes something of a schema of so many columns, without a budget: it may do a little for each. (Those that do
/// more are [plans](marquetry_parquet::schema::Plan), which have one.)
///
/// # Panics
///
/// When it costs more than it may.
pub fn made_of<T>(what: &'static str, columns: usize, work: impl FnOnce() -> T) -> T {
    measured(what, &mut Budget::new(0), |budget| {
        budget.charge_units(COLUMN_UNITS.saturating_mul(columns as u64));
        work()
    })
}

fn measured<T>(what: &'static str, budget: &mut Budget<'_>, work: impl FnOnce(&mut Budget<'_>) -> T) -> T {
    let before = (budget.spent(), memory::taken().calls);
    let start = IS_TIMED.get().then(thread_time);
    let result = memory::watched(|| work(budget));
    let time = start.map(|start| thread_time().saturating_sub(start)).unwrap_or_default();
    let taken = memory::taken();
    let (units, allocations) = (budget.spent() - before.0, taken.calls - before.1);
    COSTS.with_borrow_mut(|costs| {
        let most = costs.most.entry(what).or_default();
        *most = (most.0.max(units), most.1.max(allocations));
        costs.peak_bytes = costs.peak_bytes.max(taken.peak_bytes);
        costs.calls += 1;
        if time >= NOTED {
            costs.long.insert(costs.calls, Call { what, units, time });
        }
    });
    let paid = ALLOCATIONS_FREE + units / ALLOCATION_UNITS;
    assert!(allocations <= paid, "{what}: {allocations} requests to the allocator, on {units} units");
    for (bytes, trace) in &taken.large {
        check_large(what, *bytes, trace);
    }
    result
}

fn check_large(what: &str, bytes: usize, trace: &Backtrace) {
    let trace = trace.to_string();
    let (supplied, held) = BYTES.get();
    let is_named = |names: &[&str]| names.iter().any(|name| trace.contains(name));
    let may_be = |most: &Most| match most {
        Most::Held => held,
        Most::Supplied(times) => supplied.saturating_mul(*times),
        Most::Bytes(bytes) => *bytes,
    };
    let exceptions = EXCEPTIONS.iter().filter(|it| is_named(&it.names));
    if exceptions.map(|it| may_be(&it.most)).max().is_none_or(|most| bytes as u64 > most) {
        // Functions have names or files, as they were built.
        let is_ours = |line: &&str| line.contains("/crates/") || line.contains("marquetry_parquet::");
        let ours: Vec<&str> = trace.lines().filter(is_ours).map(str::trim).take(8).collect();
        panic!("{what}: {bytes} bytes at once, by {ours:#?}");
    }
}

impl Costs {
    /// Takes the shorter of the times that a replay took. Costs of another run are not comparable.
    pub fn replayed(&mut self, again: &Costs) {
        self.long.retain(|number, call| {
            let again = again.long.get(number);
            call.time = again.map_or(Duration::ZERO, |again| call.time.min(again.time));
            again.is_some()
        });
    }

    /// Calls that took longer than their units are worth.
    pub fn faults(&self) -> impl Iterator<Item = &Call> {
        self.long.values().filter(|call| call.debt() > 1.0)
    }
}

impl Call {
    /// The time as a multiple of what the units are worth.
    pub fn debt(&self) -> f64 {
        self.time.as_nanos() as f64 / FREE_NANOS.max(self.units as f64 * UNIT_NANOS_MAX)
    }
}

fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
