//! Rows put in order, whatever their number.
//!
//! A row's [`Keys`] are made one string of bytes, so that all that is compared later are bytes. Rows are held as they come, in batches, of
//! which a thousand rows each are sorted by their keys; a tree of losers picks the rows of all in order; and the rows that were picked
//! are gathered, column by column, a batch at a time. What is more than may be held is written as a *run* (a Parquet file in a spill
//! object); runs are merged by the same tree. Rows that are equal stay as they came.
//!
//! Source: Knuth, *The Art of Computer Programming*, volume 3, 5.4.1, for runs and the tree of losers. Keys that compare as bytes, and rows that
//! travel behind them, are what DuckDB and arrow-rs's row format do.

mod collected;
mod gather;
mod key;
mod merge;
mod pieces;
mod producer;
mod sorter;
mod stored;

use marquetry_base::Budget;

pub use key::{KEY_BYTES_MAX, Keys};
pub use sorter::{SortOptions, Sorted, Sorter};

/// Whether the rest of a budget pays for what is done at once, or nothing is spent of it yet.
fn is_paid_for(units: u64, budget: &Budget<'_>) -> bool {
    budget.spent() == 0 || budget.left() >= units
}
