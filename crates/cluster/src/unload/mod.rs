//! A live table as a source of rows.
//!
//! ```text
//! CqlSource ── opening: schema, estimates, ring ──► pieces: token ranges, in order
//!     │
//!     └─ open a piece ──► Pages: a task of the runtime asks for pages, one ahead of what is taken
//!                            │ a bounded channel
//!                         Rows: the calling thread makes writes of them (SelectedRows), and those Parquet (Mapper)
//! ```

mod ahead;
mod describe;
mod equal;
mod estimates;
mod options;
mod pace;
mod pages;
mod ranges;
mod requests;
mod rows;
mod source;

pub(crate) use estimates::is_scylla;
pub use options::{PAGE_BYTES, PIECE_BYTES, UnloadOptions};
pub use source::CqlSource;
pub(crate) use source::definition;
