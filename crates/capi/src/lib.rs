//! Marquetry for C and C++: `libmarquetry`.
//!
//! The host owns I/O, memory and time. It creates a *machine*, calls [`marquetry_step`](machine::marquetry_step), and does what the returned
//! [status](abi::marquetry_status) asks for: there are no callbacks in the flow, no threads and no waiting. `docs/c.md` is the guide,
//! `include/marquetry.h` the interface, which cbindgen generates from here and a test compares.
//!
//! | module | what it has |
//! |---|---|
//! | [`abi`] | the types that cross the border: statuses, options, what is asked for |
//! | [`machine`] | steps, demands, supplies: what all machines share |
//! | [`footer`], [`metadata`] | the footer, and what is in it |
//! | [`reader`] | batches, as Arrow arrays |
//! | [`records`] | records as events |
//! | [`writer`] | a file from Arrow arrays |
//! | [`sstable`] | batches of an SSTable, as Arrow arrays |
//! | [`cql`] | a file as `CREATE TABLE` and `INSERT` statements |
//! | [`stream`] | Arrow's C stream, for hosts that may wait |
//! | [`error`] | errors |
//! | [`allocator`] | the host's allocator |
//!
//! # Handles
//!
//! A handle is a number in the shape of a pointer: where in a table that is never freed (`handles.rs`), and the how many-th handle there. So
//! NULL, a handle of another kind, one that was freed, and any other address are errors, without a look at memory that may not be there. Of a
//! handle only one thread has the use at a time; a second one gets an error. A panic, which is a bug, poisons the handle: all that it can still
//! do is be freed, and then what is in it is left alone (it leaks), because code that cleans up after a bug may run into it again.
//!
//! # Safety
//!
//! Every exported function takes raw pointers, which the host promises are NULL or point to what their type says, for as long as the function's
//! documentation says. They are `extern "C"` and not marked `unsafe` each: nobody calls them from Rust but the tests.
#![allow(non_camel_case_types, reason = "the names are those of the header")]
#![allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "a C function has no other arguments; the section Safety above"
)]

pub mod abi;
pub mod allocator;
mod arguments;
mod arrays;
pub mod bytes;
pub mod cql;
pub mod error;
pub mod footer;
mod handles;
pub mod machine;
pub mod metadata;
pub mod reader;
pub mod records;
mod reserve;
pub mod sstable;
pub mod stream;
mod text;
pub mod writer;

pub use handles::{marquetry_error, marquetry_machine, marquetry_metadata};
