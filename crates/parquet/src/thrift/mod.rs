//! The Thrift compact protocol, in which Parquet's structures are encoded: reading, skimming and writing.
//!
//! The structures themselves are in [`format`](mod@crate::format).

mod alike;
mod ends;
mod read;
mod skim;
mod skip;
mod write;

pub use read::{Field, Kind, Reader, Stop, Thrift};
pub(crate) use skim::{ANY, Fields, READ_PRICE, Skim, WHOLE_BYTES_MAX, Wanted, first_fault};
pub(crate) use skip::Skipper;
pub(crate) use write::{Fields as FieldWriter, Writer};
