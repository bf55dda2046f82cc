//! A table that a server is asked for: the `SELECT`, and what its answer becomes.
//!
//! A [`Selection`] says which columns are selected, and has the statement's text. [`SelectedRows`] makes batches of writes
//! ([`MutationBatch`](crate::sstable::batch::MutationBatch)) of the rows that come: the same form that SSTables are read into, so a
//! [`Mapper`](crate::bridge::mutations::Mapper) makes the same columns of Parquet of both, and types are converted in one place.
//!
//! A row of an answer and a write are not the same thing:
//!
//! | of an answer | becomes |
//! |---|---|
//! | the values of static columns, in each row of a partition | one static entry, before its rows |
//! | a row without clustering values | a partition with a static entry and nothing else |
//! | a list, set, map or user-defined type that is not frozen | a cell for each element, with its path; those of lists, which no server tells, are made up, and ascend |
//! | a counter | a value of one shard |
//! | a null | no cell |
//!
//! # Times
//!
//! With [`Times`], write times (`WRITETIME`) and times to live (`TTL`) are selected, too. What a server does not tell:
//!
//! * **Whether a row has a marker** (which keeps a row alive whose values are all deleted), and when it was written. Nearly all rows have one,
//!   because an `INSERT` writes it, so each row gets one here: as old as its oldest value, so that it hides nothing that was written since, and
//!   expiring with its last value if all of them expire. A row without a value has a marker for certain; its time is that of the unload.
//! * **The TTL that a value was written with**: `TTL` is what is left of it. So a cell's TTL is what was left when it was read, and it
//!   expires at that time plus what was left, which is right whenever it is read.
//! * **Times of elements**, if they are not selected ([`Times::Cells`]): they are as their row's.
//! * **What was deleted.**

mod cells;
mod rows;
mod selection;
#[cfg(test)]
mod tests;
mod times;

pub use rows::SelectedRows;
pub use selection::{Dialect, Part, Selection, Times};
