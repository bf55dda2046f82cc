//! What a search is asked for, and what it answers.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use super::report::Structures;
use crate::batch::RowSelection;
use crate::format::OffsetIndex;
use crate::read::ReadOptions;

/// Options of a [`RowFinder`](super::RowFinder).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FindOptions {
    /// How columns are read; of its row groups rows are found. Its leaves do not matter.
    pub read: ReadOptions,
    /// What is used to leave out row groups and pages.
    pub structures: Structures,
    /// Leaves whose pages are located, too, in row groups with rows that are found: those that will be read.
    pub locate: Vec<usize>,
    /// Rows that are wanted: when so many are found, it is done.
    pub limit: u64,
    /// Ranges of the file's rows, ascending: row groups that have none of them are left out, and nothing of them is read. Of the others all
    /// rows are searched. Empty: no row group is left out.
    pub ranges: Vec<Range<u64>>,
    /// Rows of the first row group before this one are not searched: where a search goes on that was [stopped](super::RowFinder::stop).
    pub first_row: u64,
    /// Keep what the tested columns have in the rows that are found, for [`RowFinder::take_tested`](super::RowFinder::take_tested): a host
    /// that wants these columns, too, need not read them once more.
    pub keep_tested: bool,
}

impl Default for FindOptions {
    fn default() -> FindOptions {
        let (read, structures) = (ReadOptions::default(), Structures::default());
        FindOptions {
            read,
            structures,
            locate: Vec::new(),
            limit: u64::MAX,
            ranges: Vec::new(),
            first_row: 0,
            keep_tested: false,
        }
    }
}

/// The rows of a row group for which a predicate is true.
#[derive(Debug)]
pub struct Found {
    /// The row group.
    pub row_group: usize,
    /// Its rows; at least one. What [`BatchReader::select`](crate::read::BatchReader::select) takes.
    pub rows: RowSelection,
    /// Where the pages of leaves are, as far as that was read: of the leaves that are tested, and of
    /// [`FindOptions::locate`]. What [`BatchReader::locate`](crate::read::BatchReader::locate) takes.
    pub pages: Vec<(usize, Arc<OffsetIndex>)>,
}

/// Where a search is that was [stopped](super::RowFinder::stop).
#[derive(Debug)]
pub struct Stopped {
    /// The row group that it was in.
    pub row_group: usize,
    /// The first of its rows that was not searched; its number of rows if all were.
    pub next_row: u64,
    /// What it found in the rows before, if anything.
    pub found: Option<Found>,
}
