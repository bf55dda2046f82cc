//! What a reader is asked for.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::Limits;

use super::Layout;

/// What a [`BatchReader`](super::BatchReader) reads, and how.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The leaves to read, by index, in the order wanted. `None`: all of them.
    pub leaves: Option<Vec<usize>>,
    /// The row groups to read. `None`: all of them.
    pub row_groups: Option<Range<usize>>,
    /// Rows of a batch, at most. Fewer come at the end of a row group, and where values are large.
    pub batch_rows: usize,
    /// Where values stand in columns with nulls.
    pub layout: Layout,
    /// Hand out dictionary-encoded pages as indices and dictionary, not as values.
    pub keep_dictionaries: bool,
    /// Check pages' CRCs, where they have one.
    pub verify_crc: bool,
    /// Bytes to ask for at a time in one column chunk, when the chunk is larger.
    pub read_bytes: u64,
    /// Bounds.
    pub limits: Limits,
}

impl Default for ReadOptions {
    fn default() -> ReadOptions {
        ReadOptions {
            leaves: None,
            row_groups: None,
            // A batch's column of 8-byte values is 64 KiB: it stays in a core's second-level cache.
            batch_rows: 8192,
            layout: Layout::Spaced,
            keep_dictionaries: false,
            verify_crc: true,
            read_bytes: 8 << 20,
            limits: Limits::DEFAULT,
        }
    }
}
