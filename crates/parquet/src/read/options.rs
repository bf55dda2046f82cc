//! Options of a reader.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::Limits;

use crate::batch::Layout;
use crate::batch::store::{row_bytes, rows_max};
use crate::schema::Leaf;

/// What a [`BatchReader`](super::BatchReader) reads, and how.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The leaves to read, by index, in this order. `None`: all of them.
    pub leaves: Option<Vec<usize>>,
    /// The row groups to read. `None`: all of them.
    pub row_groups: Option<Range<usize>>,
    /// The most rows of a batch. A batch has fewer at the end of a row group, if values are large, and if an array
    /// would take 1 MiB or more: 65,472 rows of strings, 131,008 of 8 bytes. Only the values of a single row may take
    /// more.
    pub batch_rows: usize,
    /// The approximate bytes of a batch's values, in all columns: a wide table's batches have fewer rows.
    pub batch_bytes: usize,
    /// The layout of columns with nulls.
    pub layout: Layout,
    /// Hand out dictionary-encoded pages of flat columns as indices and dictionary, not as values. Dictionaries of
    /// more than 65,535 entries are not handed out, because a batch uses only a few of them.
    pub keep_dictionaries: bool,
    /// Check the CRCs of pages that have one.
    pub verify_crc: bool,
    /// A page with a CRC and at most this many compressed bytes is kept until its CRC is checked; only then are its
    /// values handed out. The same holds for all pages that fit a window. Larger ones are read as
    /// [`large_pages`](ReadOptions::large_pages) says.
    pub verify_first_bytes: u64,
    /// How pages are read that have a CRC and are too large to be kept until it is checked.
    pub large_pages: LargePages,
    /// The bytes of a page that are decompressed at a time: a larger page is read through windows of about this size.
    /// A longer value gets a window of its own.
    pub window_bytes: usize,
    /// Check that the values of STRING, ENUM and JSON columns are UTF-8, as Arrow's strings must be. If off, the
    /// caller must check them.
    pub verify_utf8: bool,
    /// The bytes to request at a time from a larger column chunk. A host may supply them in pieces. The reader drops what it
    /// was supplied, so what it takes to free a buffer is a part of its step: a host whose steps must be short reads 128 KiB at a time.
    pub read_bytes: u64,
    /// Limits on sizes in the file and on memory.
    pub limits: Limits,
}

/// How a page is read that has a CRC and more compressed bytes than [`ReadOptions::verify_first_bytes`].
///
/// Pages without a CRC are not affected, nor is any page if [`ReadOptions::verify_crc`] is off: nothing is known of them that could be
/// checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum LargePages {
    /// The reader asks for the page's bytes once to compute the CRC, drops them, and asks for them again to decode them. No value of
    /// the page leaves before the CRC is known to be right, and memory stays bounded by [`ReadOptions::read_bytes`]. The CRC is
    /// computed again the second time, so that a file that changes in between is an error, at the latest at the page's end.
    ///
    /// Dictionaries, and pages whose values are several streams, are read once: none of their values leaves before all bytes are read.
    #[default]
    ReadTwice,
    /// The reader asks for the page's bytes once, and hands out its values before the CRC is known, in batches that are marked
    /// [`provisional`](crate::batch::ColumnBatch::provisional). If the CRC is wrong, the reader fails at the end of the page, and the
    /// values were wrong, too. For hosts that want the first rows at once and can take them back.
    Provisional,
}

impl ReadOptions {
    /// The most rows of a batch of these leaves: [`batch_rows`](ReadOptions::batch_rows), or fewer, by their types, for
    /// [`batch_bytes`](ReadOptions::batch_bytes) and the size of an array. Readers of some leaves each that are given this as
    /// their `batch_rows` return batches of as many rows as one reader of all of the leaves.
    pub fn batch_rows_of<'a>(&self, leaves: impl IntoIterator<Item = &'a Leaf>) -> usize {
        let (mut bytes, mut rows) = (0_usize, self.batch_rows);
        for leaf in leaves {
            bytes = bytes.saturating_add(row_bytes(leaf));
            rows = rows.min(rows_max(leaf.physical_type));
        }
        rows.min(self.batch_bytes / bytes.max(1)).max(1)
    }
}

/// The default of [`ReadOptions::window_bytes`]: no usual page is much larger, and the memory for it stays below 1 MiB.
const WINDOW_BYTES: usize = 960 << 10;

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            leaves: None,
            row_groups: None,
            // A batch's column of 8-byte values is 64 KiB: it stays in a core's second-level cache.
            batch_rows: 8192,
            // 7,456 rows of a thousand columns of 8 bytes; 74 rows of a hundred thousand.
            batch_bytes: 64 << 20,
            layout: Layout::Spaced,
            keep_dictionaries: false,
            verify_crc: true,
            // As many as are asked for at a time.
            verify_first_bytes: 8 << 20,
            large_pages: LargePages::ReadTwice,
            window_bytes: WINDOW_BYTES,
            verify_utf8: false,
            read_bytes: 8 << 20,
            limits: Limits::DEFAULT,
        }
    }
}
