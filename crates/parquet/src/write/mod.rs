//! The machines that write, and what they are made of.
//!
//! | machine | from | to |
//! |---|---|---|
//! | [`FileWriter`] | batches | a file |
//! | [`FooterWriter`] | metadata | a file's end |
//!
//! [`encoder`], [`dictionary`] and [`chooser`] make the bodies of pages of values; they can be used alone.

mod bloom;
pub mod chooser;
mod chunk;
mod coding;
mod column;
pub mod dictionary;
pub mod encoder;
mod file;
mod footer;
mod geospatial;
mod group;
mod options;
mod out;
mod page;
mod part;
mod sample;
mod statistics;

pub use file::{Fed, FileWriter, Room};
pub use footer::FooterWriter;
pub use options::{BloomOptions, ColumnOptions, PageVersion, WriteOptions};
pub(crate) use part::{Maxima, check as check_column};
