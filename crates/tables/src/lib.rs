//! Tables: where rows come from, where they go, and the one function that copies between the two.
//!
//! * [`Source`]: a table that rows are read from, in pieces that several threads may read at once;
//! * [`Destination`]: a table that rows are written to, which appears as a whole or not at all;
//! * [`Cancel`]: how what is going on is ended early.
//!
//! What travels between them is a Parquet schema and column batches; nothing else couples the sources to the destinations.
#![forbid(unsafe_code)]

mod cancel;
mod destination;
mod source;

pub use cancel::Cancel;
pub use destination::{Destination, Wants, Written};
pub use source::{Batches, Key, Piece, PieceOptions, Source, Table};
