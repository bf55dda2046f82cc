//! Sorts any number of rows.
//!
//! A row's [`Keys`] become one byte string that compares as the row does. A batch is *stored*: values are spread to their
//! rows, and the rows of nested leaves are found. It is then sorted in *pieces* of at most 1,024 rows, each in one go: by the
//! bytes of their keys in which they differ, if these are few, and by comparison otherwise. Some ten thousand rows, which are still in the cache,
//! become a *block*: a loser tree picks rows from all their pieces, mostly by the first 16 bytes of their keys, the picked
//! rows are gathered column by column, and their strings are copied out of the pages. Columns that come with small dictionaries are moved as
//! indices of one dictionary, to which each of theirs adds its entries once. Then the blocks are merged in the same way, by keys
//! that are made again, a few hundred rows of each block at a time: rows that are gathered are near each other.
//!
//! Blocks that exceed the memory limit become a *run*, by that merge: a Parquet file, PLAIN and LZ4, appended to one
//! spill object. A run is half of what fits into memory, so that one can be written while the next is collected.
//! `BatchReader` reads runs back in small row groups, and the same tree merges them with the blocks that are left, in several passes if
//! there are too many. The sort is stable: pieces, blocks and runs are numbered in the order in which their rows arrived.
//!
//! Source: Knuth, *The Art of Computer Programming*, volume 3, 5.4.1, for runs and the loser
//! tree. Keys that compare as bytes, with rows that follow them, are also in DuckDB and in arrow-rs's row format.

mod collected;
mod dictionaries;
mod gather;
mod group;
mod key;
mod merge;
mod pieces;
mod producer;
mod run;
mod sorter;
mod stored;
mod work;

use marquetry_base::Budget;

pub use key::{KEY_BYTES_MAX, KEY_COLUMNS_MAX, Keys};
pub use sorter::{SortOptions, Sorted, Sorter};
pub use work::SortWork;

/// Whether the rest of a budget pays for what is done in one go, or nothing of it is spent yet.
fn is_paid_for(units: u64, budget: &Budget<'_>) -> bool {
    budget.spent() == 0 || budget.left() >= units
}
