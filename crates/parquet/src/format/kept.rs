//! What is kept of a footer that is read for some columns.

use marquetry_base::{Budget, Error, Release, Result, Segmented, release_all};

use super::columns::{Chooser, FooterColumns, Keep};
use super::{RowGroup, SortingColumn};
use crate::schema::{Element, Glance, SchemaBuilder};
use crate::thrift::{Reader, Skipper, Thrift};

/// What is kept of a footer, and what is skipped of it.
#[derive(Debug)]
pub(super) struct Kept {
    chooser: Chooser,
    /// Elements that follow in a group of which nothing is wanted.
    hidden: u64,
    /// What became of the element that was read last.
    last: Last,
    /// Leaves of the file, and which of them are kept.
    file_leaves: usize,
    leaves: Segmented<usize>,
    /// The length of the list that is read, one for each leaf, and the next of those that are kept.
    length: usize,
    next: usize,
    /// What skips what is not wanted, and how much of the list is being skipped by it; none if that is nothing.
    pub(super) skipper: Skipper,
    skipped: usize,
    /// Chunks of this row group, row groups so far, and the first that has another number than there are leaves.
    chunks: usize,
    groups: usize,
    mismatch: Option<(usize, usize)>,
}

/// What became of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    /// It is in a group of which nothing is wanted.
    Hidden,
    /// Nothing of it is wanted, and it has ended: it or the group that ends with it.
    Skipped,
    /// It is kept: of a group, only some of what is in it, or everything.
    Leaf,
    Part,
    Group,
}

impl Release for Kept {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.leaves], budget)
    }
}

impl Kept {
    /// Of a footer that is read for these columns.
    pub(super) fn new(columns: FooterColumns) -> Kept {
        Kept::by(Chooser::new(columns))
    }

    fn by(chooser: Chooser) -> Kept {
        Kept {
            chooser,
            hidden: 0,
            last: Last::Skipped,
            file_leaves: 0,
            leaves: Segmented::new(),
            length: 0,
            next: 0,
            skipper: Skipper::new(),
            skipped: 0,
            chunks: 0,
            groups: 0,
            mismatch: None,
        }
    }

    /// Reads the next element of the schema below the root. `None` if it is not kept.
    pub(super) fn element(&mut self, reader: &mut Reader<'_>) -> Thrift<Option<Element>> {
        let mut ahead = reader.clone();
        let Glance { name, is_leaf, children } = Glance::read(&mut ahead)?;
        if self.hidden > 0 {
            self.hidden = self.hidden - 1 + u64::from(children);
            self.file_leaves += usize::from(is_leaf);
            self.last = if self.hidden == 0 { Last::Skipped } else { Last::Hidden };
            *reader = ahead;
            return Ok(None);
        }
        let keep = self.chooser.look(name, !is_leaf);
        if keep == Keep::Nothing {
            self.file_leaves += usize::from(is_leaf);
            self.hidden = children.into();
            self.last = if self.hidden == 0 { Last::Skipped } else { Last::Hidden };
            *reader = ahead;
            return Ok(None);
        }
        let element = Element::read(reader)?;
        let is_part = keep == Keep::Part && element.can_be_cut();
        if keep == Keep::Part && !is_part {
            self.chooser.keep_whole();
        }
        if is_leaf {
            self.leaves.push(self.file_leaves);
            self.file_leaves += 1;
        }
        self.last = match is_part {
            _ if is_leaf => Last::Leaf,
            true => Last::Part,
            false => Last::Group,
        };
        Ok(Some(element))
    }

    /// Adds what was read last to the schema; `element` is `None` if it is not kept.
    pub(super) fn build(&mut self, building: &mut SchemaBuilder, element: Option<Element>) -> Result<()> {
        match element {
            Some(element) => {
                building.add_part(element, self.last == Last::Part)?;
                if matches!(self.last, Last::Part | Last::Group) {
                    self.chooser.open();
                }
            }
            None => building.leave_out(self.last == Last::Skipped)?,
        }
        self.chooser.close(building.depth());
        Ok(())
    }

    /// Once all of the schema is read: what to read it again with, if that is needed to find all columns.
    ///
    /// # Errors
    ///
    /// `Misuse` if the file lacks a column.
    pub(super) fn end_schema(&mut self) -> Result<Option<Kept>> {
        if let Some(again) = self.chooser.again() {
            return Ok(Some(Kept::by(again)));
        }
        self.chooser.check()?;
        Ok(None)
    }

    /// Leaves of the file, as far as they were looked at.
    pub(super) fn file_leaves(&self) -> usize {
        self.file_leaves
    }

    /// Begins a list that has an element for each leaf.
    pub(super) fn begin_list(&mut self, length: usize) {
        (self.length, self.next) = (length, 0);
    }

    /// How many elements of the list are not wanted before the next that is; `left` are left of it.
    pub(super) fn unwanted(&self, left: usize) -> usize {
        let position = self.length - left.min(self.length);
        self.leaves.get(self.next).map_or(left, |leaf| left.min(leaf.saturating_sub(position)))
    }

    /// An element of the list was read.
    pub(super) fn took(&mut self) {
        self.next += 1;
    }

    /// Skips so many elements of the list, which start at `at` in the file.
    pub(super) fn skip(&mut self, what: &'static str, at: u64, count: usize) {
        self.skipper.begin(what, at, count);
        self.skipped = count;
    }

    /// Whether some are being skipped.
    pub(super) fn is_skipping(&self) -> bool {
        self.skipped > 0
    }

    /// How many elements of the list were skipped.
    pub(super) fn skipped(&mut self) -> usize {
        core::mem::take(&mut self.skipped)
    }

    /// Whether the row group at hand has chunks already.
    pub(super) fn has_chunks(&self) -> bool {
        self.chunks > 0
    }

    /// A row group has so many chunks.
    pub(super) fn count_chunks(&mut self, chunks: usize) {
        self.begin_list(chunks);
        self.chunks = self.chunks.saturating_add(chunks);
    }

    /// A row group ends.
    pub(super) fn end_group(&mut self) {
        let chunks = core::mem::take(&mut self.chunks);
        if chunks != self.file_leaves && self.mismatch.is_none() {
            self.mismatch = Some((self.groups, chunks));
        }
        self.groups += 1;
    }

    /// The first row group that has another number of chunks than the file has leaves, which are so many.
    pub(super) fn mismatch(&self) -> Option<(usize, usize, usize)> {
        self.mismatch.map(|(group, chunks)| (group, chunks, self.file_leaves))
    }

    /// What a row group is sorted by, as far as these columns are kept.
    pub(super) fn sorting_columns(&self, group: &mut RowGroup) {
        keep_sorting_columns(group, &self.leaves);
    }
}

/// Keeps what a row group is sorted by up to the first column that is not kept, and numbers those columns as they are
/// among the kept `leaves`.
pub(crate) fn keep_sorting_columns(group: &mut RowGroup, leaves: &Segmented<usize>) {
    let place = |column: &SortingColumn| {
        let wanted = usize::try_from(column.column).ok()?;
        let at = leaves.partition_point(|leaf| *leaf < wanted);
        leaves.get(at).filter(|leaf| **leaf == wanted)?;
        u32::try_from(at).ok()
    };
    let mut kept = 0;
    for column in &mut group.sorting_columns {
        let Some(at) = place(column) else { break };
        (column.column, kept) = (at, kept + 1);
    }
    group.sorting_columns.truncate(kept);
}

/// The error for a row group of another number of chunks than there are leaves.
pub(super) fn wrong_chunks(group: usize, chunks: usize, leaves: usize) -> Error {
    let error = Error::corrupt(alloc::format!(
        "a row group of {chunks} column chunks, in a schema of {leaves} leaves"
    ));
    error.at(|place| place.row_group = Some(marquetry_base::cast::u64_of(group)))
}
