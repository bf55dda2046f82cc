//! What readers hold of long rows: a row is never divided, and of a small file readers hold little, so a file may be too
//! small for a row that compresses to next to nothing.

use alloc::format;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Limit, Limits, Result};

use super::part::Part;
use crate::batch::Maxima;
use crate::schema::PhysicalType;

/// Bytes of a column that readers hold in any case, about: [`Limits::total_of`] allows for them.
const COLUMN_BYTES: u64 = 1 << 20;
/// Values of larger pages are put together beside them: the readers' default windows.
const WINDOW_BYTES: u64 = 960 << 10;
/// Bytes that readers hold besides the rows: windows, and input that was read ahead.
const BESIDE_BYTES: u64 = 24 << 20;
/// Memory for a long string is allocated when this part of it has arrived.
const ARRIVED_PART: u64 = 8;
/// Arrays whose length is estimated have room for this part more.
const ROOM_PART: u64 = 16;

/// A row of a column, as far as it was taken.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LongRow {
    entries: u64,
    values: u64,
    bytes: u64,
    longest: u64,
}

/// What a reader holds of a chunk, besides what it holds of any.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    /// Bytes of the largest row, until all columns have theirs; and of the largest page, or the dictionary.
    row: u64,
    page: u64,
    dictionary: u64,
    /// Bytes that are there twice while the row is put together.
    twice: u64,
    /// The number of that row in the row group.
    number: u64,
    /// The same of what is no larger than readers hold in any case: of a larger page, as much as that.
    small_row: u64,
    small_page: u64,
    small_dictionary: u64,
}

/// What a reader holds of all columns of a row group; and of the row group where that is the most.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeldOfAll {
    bytes: u64,
    twice: u64,
    /// The same with all that is small: of a thousand columns that is much, too.
    with_small: u64,
    /// The column that takes the most, its bytes, and its row in the file.
    column: usize,
    column_bytes: u64,
    row: u64,
}

/// The rows of a page whose encoding is not known before its end.
#[derive(Debug, Default)]
pub(super) struct LongRows {
    /// Bytes of the values of the longest.
    pub(super) bytes: u64,
    in_place: Held,
    in_dictionary: Held,
}

impl LongRows {
    /// Takes note of a row.
    pub(super) fn add(&mut self, row: &LongRow, of: (PhysicalType, Maxima), number: u64) {
        self.bytes = self.bytes.max(row.bytes);
        self.in_place.add_row(row, of, number, false);
        self.in_dictionary.add_row(row, of, number, true);
    }
}

impl LongRow {
    /// Adds a part of the row; of a part of several rows, which is small, all.
    pub(super) fn add(&mut self, part: &Part) {
        self.entries += u64_of(part.entries.len());
        self.values += u64_of(part.values);
        self.bytes += u64_of(part.bytes);
        if part.values == 1 {
            self.longest = self.longest.max(u64_of(part.bytes));
        }
    }

    /// Bytes of its arrays, and of those that are there twice at some time. Strings of a dictionary are views into that.
    fn held(&self, physical_type: PhysicalType, maxima: Maxima, is_dictionary: bool) -> (u64, u64) {
        let is_nested = maxima.repetition > 0;
        let levels = if is_nested { 2 * self.entries } else { 0 };
        let (array, strings) = match physical_type {
            PhysicalType::ByteArray => {
                (self.values * u64_of(size_of::<u128>()), if is_dictionary { 0 } else { self.bytes })
            }
            _ => (self.bytes, 0),
        };
        let longest = if is_dictionary { 0 } else { self.longest };
        let array = array + array / ROOM_PART;
        (levels + array + strings, array.max(self.entries).max(longest / ARRIVED_PART))
    }
}

impl Held {
    /// Takes note of a row of a page that is encoded by a dictionary, or is not.
    fn add_row(
        &mut self,
        row: &LongRow,
        (physical_type, maxima): (PhysicalType, Maxima),
        number: u64,
        is_dictionary: bool,
    ) {
        // Most rows are short.
        if row.bytes + row.entries < COLUMN_BYTES / u64_of(size_of::<u128>()) {
            return;
        }
        let (bytes, twice) = row.held(physical_type, maxima, is_dictionary);
        if bytes <= COLUMN_BYTES {
            self.small_row = self.small_row.max(bytes);
        } else if bytes > self.row {
            (self.row, self.number) = (bytes, number);
            self.twice = self.twice.max(twice);
        }
    }

    /// Takes note of the rows of a page.
    pub(super) fn add_rows(&mut self, rows: &LongRows, is_dictionary: bool) {
        let held = if is_dictionary { &rows.in_dictionary } else { &rows.in_place };
        if held.row > self.row {
            (self.row, self.number) = (held.row, held.number);
        }
        self.twice = self.twice.max(held.twice);
        self.small_row = self.small_row.max(held.small_row);
    }

    /// Takes note of a page: whether readers hold all of it as long as they decode it, or a window.
    pub(super) fn add_page(&mut self, bytes: usize, is_held: bool) {
        let bytes = u64_of(bytes);
        if bytes > COLUMN_BYTES && is_held {
            self.page = self.page.max(bytes);
        }
        self.small_page = self.small_page.max(bytes.min(COLUMN_BYTES));
    }

    /// Takes note of the dictionary, decoded.
    pub(super) fn add_dictionary(&mut self, bytes: usize) {
        match u64_of(bytes) {
            bytes if bytes > COLUMN_BYTES => self.dictionary = bytes,
            bytes => self.small_dictionary = bytes,
        }
    }

    /// Bytes of what is small, at the least: short values stay in their page.
    fn small(&self) -> u64 {
        let row = if self.small_page > WINDOW_BYTES { self.small_row } else { 0 };
        row + self.small_page + self.small_dictionary
    }
}

impl HeldOfAll {
    /// Adds a column of a row group that begins with a row of the file.
    pub(super) fn add(&mut self, column: usize, held: &Held, first_row: u64) {
        let bytes = held.row + held.page + held.dictionary;
        self.bytes += bytes;
        self.twice = self.twice.max(held.twice);
        self.with_small += bytes.max(held.small());
        if bytes > self.column_bytes {
            (self.column, self.column_bytes) = (column, bytes);
            self.row = first_row + held.number;
        }
    }

    /// What is more of two row groups.
    pub(super) fn max(self, other: HeldOfAll) -> HeldOfAll {
        let with_small = self.with_small.max(other.with_small);
        HeldOfAll { with_small, ..if other.all() > self.all() { other } else { self } }
    }

    fn all(&self) -> u64 {
        self.bytes + self.twice
    }

    /// Checks that readers hold as much of a file of so many bytes. Also says the column and the row that take the most, if
    /// a long row is the reason.
    pub(super) fn check(
        &self,
        limits: &Limits,
        file_bytes: u64,
        columns: usize,
    ) -> Result<(), (Error, Option<(usize, u64)>)> {
        let of_file = |limit| match limit {
            Limit::Expansion => format!(" of a file of {file_bytes} bytes"),
            _ => alloc::string::String::new(),
        };
        let refused = |what: &str, asked: u64, limit: Limit, most: u64| {
            let (of_file, limit_name) = (of_file(limit), limit.name());
            let what = format!(
                "{what}: it would take {asked} bytes to read, and readers hold {most}{of_file} (the limit {limit_name})"
            );
            Error::limit(limit, what)
        };
        let (limit, mut most) = limits.total_of(file_bytes, 0);
        if limit == Limit::TotalBytes {
            most = most.saturating_sub(COLUMN_BYTES.saturating_mul(u64_of(columns)).min(most / 4));
        }
        let asked = self.all().saturating_add(BESIDE_BYTES);
        if self.bytes > 0 && asked > most {
            return Err((refused("a long row", asked, limit, most), Some((self.column, self.row))));
        }
        // Only of a small file: one with more than 4 GiB of open pages is large, and is written for readers that trust it.
        let (limit, most) = limits.total_of(file_bytes, u64_of(columns));
        if limit == Limit::Expansion && self.with_small > most {
            let what = format!("a row group of {columns} columns");
            return Err((refused(&what, self.with_small, limit, most), None));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(values: usize, bytes: usize) -> LongRow {
        let mut row = LongRow::default();
        row.add(&Part { entries: 0..values, rows: 1, values, bytes });
        row
    }

    #[test]
    fn long_rows_count_and_others_do_not() {
        let flat = Maxima { definition: 1, repetition: 0 };
        let mut held = Held::default();
        let flat = (PhysicalType::ByteArray, flat);
        held.add_row(&row(1, 1000), flat, 3, false);
        held.add_page(900_000, true);
        let mut all = HeldOfAll::default();
        all.add(0, &held, 10);
        assert_eq!(all.all(), 0);

        let mut rows = LongRows::default();
        rows.add(&row(1, 160 << 20), flat, 5);
        rows.add(&row(1, 16 << 20), flat, 6);
        held.add_rows(&rows, true);
        assert_eq!((held.row, held.twice), (0, 0));
        held.add_rows(&rows, false);
        all.add(7, &held, 10);
        // A view, with its room.
        assert_eq!((all.bytes, all.twice), ((160 << 20) + 17, 20 << 20));
        assert!(all.check(&Limits::DEFAULT, 1, 8).is_ok());
        all.add(8, &held, 10);
        let (error, place) = all.check(&Limits::DEFAULT, 1 << 20, 8).unwrap_err();
        assert_eq!(
            (error.detail(), place),
            (Some(marquetry_base::Detail::Limit(Limit::Expansion)), Some((7, 15)))
        );
        assert!(all.check(&Limits::DEFAULT, 16 << 20, 8).is_ok());
        assert!(all.check(&Limits::TRUSTED, 1, 8).is_ok());
        let total = Limits { total_bytes: 300 << 20, ..Limits::TRUSTED };
        assert!(all.check(&total, 1 << 40, 8).is_err());
    }

    #[test]
    fn what_is_small_counts_where_there_is_much_of_it() {
        let columns = |pages: usize, strings: usize| {
            let mut held = Held::default();
            let flat = (PhysicalType::ByteArray, Maxima { definition: 0, repetition: 0 });
            held.add_row(&row(1, strings), flat, 0, false);
            held.add_page(pages, false);
            let mut all = HeldOfAll::default();
            (0..1_400).for_each(|column| all.add(column, &held, 0));
            all.check(&Limits::DEFAULT, 1 << 20, 1_400)
        };
        // Short strings stay in their page; longer ones are put together beside it.
        assert!(columns(900_000, 900_000).is_ok());
        let (error, place) = columns(1 << 20, 1_000_000).unwrap_err();
        assert_eq!((error.detail(), place), (Some(marquetry_base::Detail::Limit(Limit::Expansion)), None));
    }
}
