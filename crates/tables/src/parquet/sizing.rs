//! Where files end that are to have a number of bytes.

use std::num::NonZeroU64;

use marquetry_base::Result;
use marquetry_base::cast::{u64_of, usize_of};
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::WriteOptions;

use super::open_file::OpenObject;
use crate::Written;

/// Where files end that are to have a number of bytes.
///
/// What is open of a file counts as it is before compression, and its dictionaries as if no rows followed; a small file
/// is open up to its end. So the rows of a file are those by which the one before it would have had the right size. Of
/// the first file, the first row group is ended when it would be the whole file if nothing were compressed; its size
/// says how many rows the file has. None of this depends on the number of threads.
#[derive(Clone)]
pub(super) struct Sizing {
    most: u64,
    /// By how much a file may seem larger than it is: all that may be open.
    slack: u64,
    /// Rows, and the bytes that they took.
    learned: Option<(u64, u64)>,
}

/// Less is mostly the file's end.
const FILE_BYTES_MIN: u64 = 4 << 10;
/// Rows that are written at a time while nothing is learned. A row group ends with them, because the writer takes as many at
/// a time, at least.
const LEARNING_ROWS: usize = 8 << 10;

impl Sizing {
    /// Of files with these columns and options.
    pub(super) fn new(most: NonZeroU64, schema: &Schema, options: &WriteOptions) -> Sizing {
        let most = most.get().max(FILE_BYTES_MIN);
        let open = u64_of(options.page_bytes).saturating_add(u64_of(options.dictionary_bytes));
        let slack = open.saturating_mul(u64_of(schema.leaves().len()));
        Sizing { most, slack, learned: None }
    }

    /// The size of the first file's row groups: the first one ends before the file seems to have all its bytes.
    pub(super) fn first_row_group_bytes(&self) -> u64 {
        self.most - self.most / 8
    }

    /// Whether it is known how well rows compress.
    pub(super) fn has_learned(&self) -> bool {
        self.learned.is_some()
    }

    /// A file has ended, and is an example for the next one.
    pub(super) fn learn(&mut self, written: &Written) {
        self.learned = Some((written.rows, written.bytes));
    }

    /// The most rows to write before it is asked again whether the file ends.
    pub(super) fn room(&self, rows: u64) -> usize {
        match self.rows() {
            None => LEARNING_ROWS,
            Some(all) if rows < all => usize_of(all - rows).unwrap_or(usize::MAX),
            Some(_) => usize::MAX,
        }
    }

    /// The rows of a file, by what is learned.
    fn rows(&self) -> Option<u64> {
        let (rows, bytes) = self.learned?;
        let all = u128::from(rows) * u128::from(self.most) / u128::from(bytes.max(1));
        Some(u64::try_from(all).unwrap_or(u64::MAX))
    }

    /// Whether a file ends with the rows that it has.
    pub(super) fn is_reached(&mut self, file: &mut OpenObject) -> Result<bool> {
        if self.learned.is_none() {
            if file.written()?.row_groups == 0 {
                return file.has_reached(self.most);
            }
            let Written { rows, bytes, .. } = file.written()?;
            self.learned = Some((rows, bytes));
            // The rest would be a small row group.
            return Ok(bytes >= self.most / 4 * 3);
        }
        // Rows may have become smaller, or larger.
        let has_rows = self.rows().is_some_and(|rows| file.rows() >= rows);
        Ok(has_rows && file.has_reached(self.most / 4 * 3)?
            || file.has_reached(self.most.saturating_add(self.slack))?)
    }
}
