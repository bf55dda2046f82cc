//! Bounds on what a machine takes from a file.

use crate::{Error, Limit, Result};

/// Bounds that keep a hostile or broken file from using more than it should. The defaults are safe for a server and
/// wide enough for the files that real writers make. Exceeding one is an error that names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The footer's length in bytes.
    pub footer_bytes: u64,
    /// A page header's length in bytes.
    pub page_header_bytes: u64,
    /// The bytes held of one metadata structure (a field of the schema, a column chunk, a page header), without
    /// statistics' bounds and without key-value metadata. This also limits names and paths.
    pub structure_bytes: u64,
    /// The length in bytes of a column chunk's column index, and of its offset index.
    pub page_index_bytes: u64,
    /// A page's length in bytes, compressed or not.
    pub page_bytes: u64,
    /// A dictionary's length in bytes, decoded.
    pub dictionary_bytes: u64,
    /// One value's length in bytes.
    pub value_bytes: u64,
    /// A decompressor's window in bytes.
    pub window_bytes: u64,
    /// Levels of nesting in a schema.
    pub nesting: u32,
    /// Bytes a machine holds in all: input not yet consumed, pages, dictionaries, batches being filled.
    pub total_bytes: u64,
    /// Bytes a reader holds in all for each byte of its file, besides an allowance that every file has: a small file has
    /// no reason to need [`total_bytes`](Limits::total_bytes). See [`Limits::total_of`].
    pub expansion: u64,
}

/// One mebibyte.
const MIB: u64 = 1 << 20;

/// Bytes that may be held of any file, however small: one page, value or dictionary may have as many.
const BASE_BYTES: u64 = 256 * MIB;
/// Bytes that may be held besides for each column: a page and a batch of it, which compress to next to nothing where
/// most values are the same.
const COLUMN_BYTES: u64 = 2 * MIB;
/// Bytes for all columns together, at most.
const COLUMNS_BYTES_MAX: u64 = 1024 * MIB;

impl Limits {
    /// The safe defaults.
    pub const DEFAULT: Limits = Limits {
        // A footer of 100,000 columns and ten row groups, with statistics, takes nearly 150 MB.
        footer_bytes: 256 * MIB,
        // Headers carry statistics, whose bounds some writers do not truncate.
        page_header_bytes: 16 * MIB,
        // Most take some hundred bytes; descriptions of coordinate systems take thousands.
        structure_bytes: 64 << 10,
        // A chunk of a million pages, with bounds of 16 bytes, has indexes of some 40 MB. In memory they take up to
        // ten times that.
        page_index_bytes: 64 * MIB,
        // Writers aim at 1 MiB; one huge value makes a huge page.
        page_bytes: 256 * MIB,
        // Most writers abandon dictionaries at 1 to 2 MiB; some allow much more.
        dictionary_bytes: 256 * MIB,
        // Cassandra's own ceiling for a value is 2 GiB, but it advises less than 1 MiB.
        value_bytes: 256 * MIB,
        // zstd's own default ceiling for a decoder is 128 MiB (window log 27).
        window_bytes: 128 * MIB,
        nesting: 64,
        total_bytes: 4096 * MIB,
        expansion: 16,
    };

    /// Only the bounds of the format itself, and one for each metadata structure: for files from a trusted source.
    pub const TRUSTED: Limits = Limits {
        footer_bytes: i32::MAX as u64,
        page_header_bytes: i32::MAX as u64,
        // A structure is parsed in one go, so it needs a bound.
        structure_bytes: MIB,
        page_index_bytes: i32::MAX as u64,
        page_bytes: i32::MAX as u64,
        dictionary_bytes: i32::MAX as u64,
        value_bytes: i32::MAX as u64,
        window_bytes: 1 << 31,
        nesting: 1024,
        total_bytes: u64::MAX,
        expansion: u64::MAX,
    };

    /// Bytes that a reader of so many columns may hold in all of a file of `file_bytes`, and the limit that says so:
    /// [`Limits::total_bytes`], or, if it is less, [`Limits::expansion`] times the file, 256 MiB, and 2 MiB for each
    /// column (1 GiB for all of them at most).
    ///
    /// ```
    /// use marquetry_base::{Limit, Limits};
    ///
    /// assert_eq!(Limits::DEFAULT.total_of(1 << 20, 3), (Limit::Expansion, (256 + 16 + 6) << 20));
    /// assert_eq!(Limits::DEFAULT.total_of(1 << 40, 3), (Limit::TotalBytes, 4 << 30));
    /// ```
    pub const fn total_of(&self, file_bytes: u64, columns: u64) -> (Limit, u64) {
        let columns = columns.saturating_mul(COLUMN_BYTES);
        let columns = if columns < COLUMNS_BYTES_MAX { columns } else { COLUMNS_BYTES_MAX };
        let expanded = self.expansion.saturating_mul(file_bytes).saturating_add(BASE_BYTES + columns);
        if expanded < self.total_bytes {
            (Limit::Expansion, expanded)
        } else {
            (Limit::TotalBytes, self.total_bytes)
        }
    }

    /// The bound that `limit` names.
    pub const fn of(&self, limit: Limit) -> u64 {
        match limit {
            Limit::FooterBytes => self.footer_bytes,
            Limit::PageHeaderBytes => self.page_header_bytes,
            Limit::StructureBytes => self.structure_bytes,
            Limit::PageIndexBytes => self.page_index_bytes,
            Limit::PageBytes => self.page_bytes,
            Limit::DictionaryBytes => self.dictionary_bytes,
            Limit::ValueBytes => self.value_bytes,
            Limit::WindowBytes => self.window_bytes,
            Limit::Nesting => self.nesting as u64,
            Limit::TotalBytes => self.total_bytes,
            Limit::Expansion => self.expansion,
        }
    }

    /// Checks what is asked for against a limit.
    ///
    /// # Errors
    ///
    /// As [`Limit::check`]'s.
    pub fn check(&self, limit: Limit, asked: u64) -> Result<()> {
        limit.check(self.of(limit), asked)
    }
}

impl Limit {
    /// Checks what is asked for against `most`: the limit's bound, where whoever checks has only that.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LimitExceeded`](crate::ErrorKind::LimitExceeded) with [`Detail::Limit`](crate::Detail::Limit), naming the limit, its
    /// bound and what was asked.
    #[inline]
    pub fn check(self, most: u64, asked: u64) -> Result<()> {
        if asked <= most { Ok(()) } else { Err(self.exceeded(most, asked)) }
    }

    #[cold]
    fn exceeded(self, most: u64, asked: u64) -> Error {
        Error::limit(self, alloc::format!("{asked} is more than the limit {} of {most}", self.name()))
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Detail, ErrorKind};
    use alloc::string::ToString;

    #[test]
    fn an_exceeded_limit_is_named() {
        let limits = Limits { nesting: 3, ..Limits::DEFAULT };
        assert!(limits.check(Limit::Nesting, 3).is_ok());
        let error = limits.check(Limit::Nesting, 4).unwrap_err();
        assert_eq!(
            (error.kind(), error.detail()),
            (ErrorKind::LimitExceeded, Some(Detail::Limit(Limit::Nesting)))
        );
        assert_eq!(error.to_string(), "4 is more than the limit nesting of 3");
    }
}
