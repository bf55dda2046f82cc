//! Text as tables: delimited text (CSV, TSV), and JSON lines.
//!
//! Machines that neither read files nor wait: [`read`] describes how a text becomes batches. Types are inferred, or
//! given as [`Columns`] in CQL's syntax; inferred types lose nothing (`007` is text).
//!
//! Delimited text is split here rather than by a crate. Splitting finds positions in the text, eight bytes at a time. A
//! column's values are then parsed one after the other, straight into its array; text stays in the memory it was read
//! into. JSON is parsed here, too, a token at a time, because a line may be as long as a row may be, but no step may;
//! its values go into a [`Shredder`](marquetry_parquet::record::Shredder).
//!
//! [`predicate`] parses conditions on the columns of any table: `price >= 2.5 AND name LIKE 'a%'`.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod columns;
mod options;
mod parse;
pub mod predicate;
pub mod read;
mod scalar;
mod timestamp_format;
mod types;
mod value;

pub use columns::{Column, ColumnType, Columns};
pub use marquetry_base::parse::unix_seconds;
pub use options::{Format, Header, Quote, TextOptions, Wanted, character};
pub use scalar::Scalar;
pub use timestamp_format::TimestampFormat;
pub use types::{TypeOf, Types};
