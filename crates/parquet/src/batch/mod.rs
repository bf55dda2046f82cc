//! Batches of rows, column by column, as readers return and writers accept them.
//!
//! A [`Batch`] has one [`ColumnBatch`] per leaf. Values are [dense or spaced](Layout); nested leaves keep their
//! [`Levels`], from which an [`Assembler`] builds [`Array`]s in Arrow's layout.

mod array;
mod assembler;
mod check;
mod columns;
mod selection;
mod slice;
pub(crate) mod store;
mod value;
mod values;

pub use array::{Array, ArrayKind};
pub use assembler::Assembler;
pub(crate) use check::{Maxima, check_column};
pub use columns::{Batch, ColumnBatch, Layout, Levels};
pub use selection::{Combine, Combining, RowSelection};
pub use slice::Slice;
pub use value::Value;
pub use values::{ByteArrays, FixedBytes, INLINE_BYTES_MAX, Values};
