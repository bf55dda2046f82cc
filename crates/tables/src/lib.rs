//! Tables: where rows come from, where they go, and the one function that copies between the two.
//!
//! * [`Source`]: a table that rows are read from, in pieces that several threads may read at once;
//! * [`Destination`]: a table that rows are written to, which appears as a whole or not at all;
//! * [`copy`]: the one way that rows travel from a source to a destination; sorted and verified on request;
//! * [`Reading`]: the rows of a source, for whoever wants them one batch after the other;
//! * [`CqlText`]: a destination, CQL statements;
//! * [`Cancel`]: how what is going on is ended early.
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
