//! Values that are read in parts.

use alloc::vec::Vec;

use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Error, Release};

use crate::sstable::batch::Strings;
use crate::sstable::elements::{Cursor, Fault};

/// Bytes that are read in one go.
pub(super) const SLICE_BYTES: usize = 16 << 10;
/// The shortest value for which memory is not allocated before a part of it is there.
const LARGE_BYTES: usize = 256 << 10;
/// Which part of it that is: an eighth.
const PART: usize = 8;

/// What was read of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// All of it.
    Cell,
    /// All but its value.
    Part,
}

/// A value that is read in parts; and the numbers of a row's columns, which may be many, too.
#[derive(Debug, Default)]
pub(super) struct Large {
    pub(super) column: usize,
    pub(super) listed: Vec<u32>,
    bytes: usize,
    left: usize,
    /// What came before memory for all of it was allocated, and how much of that is still to be copied.
    pieces: Vec<Vec<u8>>,
    next: usize,
    is_allocated: bool,
}

impl Large {
    /// Begins a value of a column.
    pub(super) fn begin(&mut self, column: usize, bytes: u64) {
        let bytes = usize_of(bytes).unwrap_or(usize::MAX);
        (self.column, self.bytes, self.left, self.next) = (column, bytes, bytes, 0);
        self.pieces.clear();
        self.is_allocated = bytes < LARGE_BYTES;
    }

    /// Reads a part of it, and adds it to its column's strings. True if it is the last.
    pub(super) fn part(
        &mut self,
        cursor: &mut Cursor<'_>,
        strings: &mut Strings,
        moved: &mut usize,
    ) -> Result<bool, Fault> {
        if !self.is_allocated && (self.bytes - self.left) >= self.bytes / PART {
            let grown = strings.bytes.try_reserve_exact(self.bytes);
            grown.map_err(|_| Fault::Bad(Error::out_of_memory(self.bytes)))?;
            *moved += strings.bytes.len();
            self.is_allocated = true;
        }
        if self.is_allocated && self.next < self.pieces.len() {
            let piece = core::mem::take(&mut self.pieces[self.next]);
            *moved += piece.len();
            strings.bytes.extend_from_slice(&piece);
            self.next += 1;
            return Ok(false);
        }
        let available = cursor.left().min(self.left).min(SLICE_BYTES);
        if available == 0 && self.left > 0 {
            return Err(Fault::Short);
        }
        let part = cursor.take(available)?;
        self.left -= available;
        if self.is_allocated {
            strings.bytes.extend_from_slice(part);
        } else {
            self.pieces.push(part.to_vec());
        }
        let is_done = self.left == 0 && self.is_allocated;
        if is_done {
            strings.close();
            self.pieces = Vec::new();
        }
        Ok(is_done)
    }
}

impl Release for Large {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.pieces.release(budget) && self.listed.release(budget)
    }
}
