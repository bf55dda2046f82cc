//! Faults that are planted, so that a harness which would find none is noticed.
//!
//! They stand between a target and what it tests, in this crate alone, and only where the thread has let one in.

use std::cell::Cell;

thread_local! {
    static PLANTED: Cell<Option<Canary>> = const { Cell::new(None) };
}

/// A planted fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canary {
    /// A value comes out wrong, where a host hands over a piece of a certain size.
    Bytes,
    /// Every so often, a step works longer than it may.
    Units,
    /// Work costs a tenth of its price.
    Price,
    /// Much memory is held where much was produced.
    Memory,
    /// An index is out of bounds, once in a long while.
    Panic,
}

impl Canary {
    /// Those that can be planted in any machine.
    pub const OF_MACHINES: &'static [Canary] = &[Canary::Bytes, Canary::Units, Canary::Memory, Canary::Panic];

    /// The canary of a name: `bytes`, `units`, `price`, `memory`, `panic`.
    pub fn of(name: &str) -> Option<Canary> {
        Some(match name {
            "bytes" => Canary::Bytes,
            "units" => Canary::Units,
            "price" => Canary::Price,
            "memory" => Canary::Memory,
            "panic" => Canary::Panic,
            _ => return None,
        })
    }
}

/// Lets a fault into what this thread runs from now on; `None` takes it out again.
pub fn plant(canary: Option<Canary>) {
    PLANTED.set(canary);
}

/// Whether this fault is in.
pub fn is_planted(canary: Canary) -> bool {
    PLANTED.get() == Some(canary)
}
