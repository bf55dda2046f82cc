//! The parts that Marquetry's benchmarks share.
//!
//! A comparison is a *driver* (`src/main.rs`) and *contestants*: processes that hold a file's bytes in memory, read it when they are told to, and
//! answer how long that took ([`protocol`]). Contestants take [`turns`], so that what disturbs the machine disturbs all of them;
//! [`bars`] say what is good, [`stats`] turns their times into medians with confidence intervals, [`report`] into JSON and Markdown, [`chart`] into a picture.
//! Where Marquetry's reader takes part is [`ours`]. [`stall`] times a reader's calls one by one, [`prices`] the work that a budget
//! is charged for, both at the [`level`] of kernels that is asked for, with the [`allocator`] told what they need; [`lateness`] is what a timer sees of a reader on its thread;
//! [`program`] watches whole programs; [`sstables`] are made by Cassandra's writer; a [`server`] is a whole one; [`find`] and [`wide`] say what look-ups and wide tables are measured on, [`gdelt`] makes
//! events, [`kernels`] are timed one by one.
#![forbid(unsafe_code)]

pub mod allocator;
pub mod bars;
pub mod chart;
pub mod clock;
pub mod find;
pub mod gdelt;
pub mod kernels;
pub mod lateness;
pub mod level;
pub mod ours;
pub mod prices;
pub mod program;
pub mod protocol;
pub mod report;
pub mod server;
pub mod sstables;
pub mod stall;
pub mod stats;
pub mod turns;
pub mod wide;
