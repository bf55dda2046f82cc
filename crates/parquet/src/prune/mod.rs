//! What a file says about values before they are read: bounds and counts, and which of them are trustworthy.
//!
//! [`LeafOrder`] knows how a leaf's values are ordered, and extracts what is reliable ([`Known`]) from the statistics
//! of a column chunk, a page header or a page index. It leaves out what the format says must be ignored, and what
//! contradicts itself. Statistics are hints: nothing in this module is an error.

mod counts;
mod evaluate;
mod matcher;
mod order;
mod predicate;
mod ranges;
mod statistics;

pub use counts::Counts;
pub use evaluate::Evaluator;
pub(crate) use matcher::{Matcher, SLICE_VALUES, SliceBits, order_of};
pub use order::Order;
pub(crate) use order::compare_bytes;
pub use predicate::{Accepts, Predicate, Quantifier, Test};
pub(crate) use predicate::{Operation, compile};
pub use ranges::{Comparison, NAN_KEY, Ranges, Verdict, double_key};
pub(crate) use statistics::{BOUND_BYTES_MAX, DECIMAL_BOUND_BYTES_MAX};
pub use statistics::{Bound, Known, LeafOrder};
