//! What a file tells of values before they are read: bounds and counts, and which of them can be trusted.
//!
//! [`LeafOrder`] knows how a leaf's values are ordered, and makes of the statistics of a column chunk, a page header or a page index
//! what can be relied on: [`Known`]. Whatever the format says must be ignored is not in it, and neither is what contradicts
//! itself, since statistics are hints: nothing in this module is an error.

mod order;
mod statistics;

pub use order::Order;
pub use statistics::{Bound, Known, LeafOrder};
