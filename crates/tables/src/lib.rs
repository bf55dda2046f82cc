//! Tables: sources of rows, destinations for rows, and the one function that copies between them.
//!
//! * [`Source`]: a table that rows are read from, in pieces that several threads can read in parallel;
//! * [`Destination`]: a table that rows are written to, which appears complete or not at all;
//! * [`copy`]: copies rows from a source to a destination; sorts and verifies on request;
//! * [`Reading`]: the rows of a source, batch by batch;
//! * [`CqlText`]: a destination that writes CQL statements;
//! * [`Cancel`]: cancels work in progress.
//!
//! What travels is a Parquet schema and column batches; nothing else couples the sources to the destinations.
#![forbid(unsafe_code)]

mod cancel;
mod copy;
mod cql_text;
mod destination;
mod digest;
mod entries;
mod progress;
mod reading;
mod sorting;
mod source;

pub use cancel::Cancel;
pub use copy::{Copied, CopyOptions, Event, copy};
pub use cql_text::{CqlParts, CqlText, CqlTextOptions};
pub use destination::{Destination, Wants, Written};
pub use progress::Progress;
pub use reading::{Reading, ReadingOptions};
pub use sorting::SORT_MEMORY_BYTES;
pub use source::{Batches, Key, Piece, PieceOptions, Source, Table};
