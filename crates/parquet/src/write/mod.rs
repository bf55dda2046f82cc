//! The machines that write, and their parts.
//!
//! | machine | from | to |
//! |---|---|---|
//! | [`FileWriter`] | batches | a file |
//! | [`FooterWriter`] | metadata | a file's end |
//!
//! [`encoder`], [`dictionary`] and [`chooser`] create the bodies of pages of values; they can be used alone.
//!
//! # From a batch to the file's end
//!
//! 1. [`FileWriter`] takes batches as readers return them: dense or spaced, with validity or levels, with dictionaries.
//!    A batch passes through the columns in strips of 8,192 to 65,536 rows, each about a sixteenth of a row group's
//!    bytes. So row groups end near their bounds, whatever the size of batches, and a column's dictionary stays in the
//!    caches.
//! 2. `ColumnWriter` takes a strip in parts of at most 1,024 entries and 64 KiB (`write/part.rs`), which end with a row
//!    if possible. Values go to the encoder or the dictionary, levels to their encoders, and bounds and histograms are
//!    updated. A page ends only between rows. A single value that is longer goes to the encoder in slices of its own.
//! 3. `PageMaker`, one for all columns, turns bodies into pages: it joins, compresses and computes the CRC in slices,
//!    and prepends the header. Bodies have a little room in front (`encoding/output.rs`): levels that are runs, and the
//!    header, are written there, before plain values, so nothing has to be joined. The encoding is chosen ([`chooser`])
//!    from the chunk's first 8,192 values or 64 KiB, which are kept unencoded until then (`write/sample.rs`), so the
//!    choice does not depend on how values are passed. A dictionary is judged by the number of values that the chunk
//!    may have. If a batch has a dictionary of its own, its entries are looked up, not its values
//!    (`write/translation.rs`); the chunk's dictionary becomes the same.
//! 4. Pages wait for the end of their row group, because a column chunk is contiguous and its dictionary comes first.
//!    They wait in memory, or in a spill object that the host provides. Those of the first column are written at once,
//!    unless its dictionary is still in use. A dictionary that grows too large, or saves nothing, is abandoned between
//!    two pages; if its first page saves nothing, that page is encoded again without it. If even the open pages are too
//!    much, columns take turns in ending theirs.
//! 5. `GroupSteps` writes the chunks. What the footer and the page index will contain about them is serialized as
//!    Thrift at once and kept in that form: a few hundred bytes per chunk. Only the indexes' positions are filled in at
//!    the end (`write/group.rs`, `format/write/`). Bloom filters follow the chunks of their row group.
//! 6. A Bloom filter starts as hashes (`write/bloom.rs`): of a dictionary's entries, once, or else of each value. They
//!    are kept while they take no more memory than the filter of all rows that the row group may have, then inserted
//!    into that filter, which is folded at the end.
//! 7. Bloom filters of pages are collected in the same way, page by page (`write/page_bloom.rs`), and kept until the row
//!    group ends. Then they are written block by block, after the chunk's own filter.
//!
//! The work of columns may be done elsewhere ([`FileWriter::share`]): each is handed out as [`ColumnWork`], and the writer
//! decides what depends on all of them (`write/file/sharing.rs`). The file is the same.
//!
//! The file does not depend on how the work was split into steps. Thrift structures are written from the same types
//! that they are read into; long strings are shared, not copied. Bounds are kept in the form in which they may be
//! written (64 bytes of a string): truncation keeps the order, so nothing longer is ever compared.
//!
//! Rows that are not columns yet arrive as the events that assembly emits: a [`Shredder`](crate::record::Shredder)
//! turns them into levels and values. Its arrays grow in pieces of 128 KiB, which are joined, in slices, only if a row
//! was large enough to need several.

mod bloom;
pub mod chooser;
mod chunk;
mod coding;
mod column;
pub mod dictionary;
pub mod encoder;
mod file;
mod footer;
mod geospatial;
mod group;
mod locator;
mod long_rows;
mod options;
mod out;
mod page;
mod page_bloom;
mod part;
pub(crate) mod released;
mod sample;
mod sharing;
mod statistics;
mod translation;
mod work;

pub use file::{Fed, FileWriter, Room};
pub use footer::FooterWriter;
pub use options::{
    BloomOptions, ColumnOptions, FOOTER_BYTES_MAX, PageBloomOptions, PageVersion, WriteOptions,
};
pub use work::{ColumnWork, ColumnWorker};
