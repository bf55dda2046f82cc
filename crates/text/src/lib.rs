//! Text as tables: delimited text (CSV, TSV), and JSON lines.
//!
//! Machines that neither read files nor wait: see [`read`] for how a text becomes batches. Types are inferred, or given as
//! [`Columns`] in CQL's words; what is inferred loses nothing (`007` is text).
//!
//! Delimited text is split here, not by a crate: what is found are places in the text, eight bytes at a time, and a column's values are
//! parsed one after the other, straight into its array; text stays where it was read. JSON is taken apart here, too, a token at a time, for
//! a line may be as long as a row may be, and no step may be; its values go into a [`Shredder`](marquetry_parquet::record::Shredder).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod columns;
mod options;
mod parse;
pub mod read;
mod scalar;

pub use columns::{Column, ColumnType, Columns};
pub use options::{Format, Header, Quote, TextOptions};
pub use scalar::Scalar;
