//! The machines that read.
//!
//! | machine | from | to |
//! |---|---|---|
//! | [`FooterReader`] | a file's end | its metadata |
//! | [`BatchReader`] | column chunks | batches of rows |
//! | [`ConformReader`] | column chunks | batches of rows of a schema that many files have |
//! | [`PageScanner`] | one column chunk | its page headers |
//! | [`PageIndexReader`] | the page index | each chunk's pages: where they are, and what bounds their values have |
//! | [`BloomProbe`] | a Bloom filter | whether a chunk may have a value |
//! | [`PageBloomProbe`] | the Bloom filters of pages | which pages may have a value |
//!
//! # From the file's end to a batch
//!
//! 1. [`FooterReader`] asks for the file's length, its last 64 KiB, and the rest of the footer if that
//!    was not all. It parses one schema element or column chunk at a time, as bytes arrive, so a large
//!    footer takes many small steps. Structures that are long, or cut by the border of two pieces, are
//!    skimmed first (`format/skim.rs`), as are long page headers and indexes. Fields of an unexpected
//!    type are skipped, as Thrift's own readers do. The footer's length is compared with the room for
//!    it before anything is added to it. If it is read for some columns, the others are skipped
//!    (`thrift/skip.rs`), or a locator finds them without the footer (`LocatorReader`).
//! 2. [`BatchReader`] starts one `ColumnReader` per column and row group. All share one `Input`, the
//!    bytes not yet consumed. A demand names what the waiting column needs now, and what the next ones
//!    will want soon.
//! 3. `PageReader` takes a chunk apart: header, CRC, decompression, each piece by piece out of the
//!    input. The page's body becomes a `Stream`, supplied a *chunk* at a time: decoders take what the
//!    chunk has, and say how many bytes they need in one piece to go on. A page that fits a window
//!    ([`ReadOptions::window_bytes`]) is one chunk. For a longer page each window starts with what was
//!    not consumed of the window before, and with what the codec may refer to; of an uncompressed page,
//!    a chunk is a slice of the input. Levels, and pages whose values are several streams, are held in
//!    segments (`Opening`). A value longer than a window is joined in memory of its own, which is
//!    allocated when an eighth of the value has arrived (`Joining`); one that came in one piece of an
//!    uncompressed page is shared.
//! 4. `ValueDecoder` decodes slices of at most 8,192 rows straight into the batch's arrays, as many as
//!    the budget pays for. The definition levels of a flat column become a validity bitmap without ever
//!    being numbers.
//! 5. `Builder` holds the batch: `Layout::Dense` is what the file holds; `Layout::Spaced` is Arrow's
//!    layout, with one slot per row, to which the values of each slice are moved as soon as they are
//!    decoded. Byte strings are Arrow views that point into the pages.
//! 6. A dictionary is decoded in slices, from as many chunks as its page arrives in; each chunk becomes
//!    a buffer of its strings' views. Most dictionaries are one array, and may be handed out
//!    (`keep_dictionaries`). One of 1 MiB or more is kept in segments, and its values are looked up.
//!
//! A nested leaf decodes its levels ahead of its values (`NestedLeaf`), because a row's end is known
//! only when the next row begins.
//!
//! # Sizes
//!
//! No array is 1 MiB or larger unless a single row is: arrays grow as values arrive, moved in slices,
//! and a test counts what is allocated. A batch ends early
//!
//! * where an array would be larger than that, or a row group ends;
//! * where the strings of a column would keep more than 16 MiB of pages alive;
//! * where a kept dictionary gives way to plain values;
//! * in a nested leaf, whose rows may be of any size, before a row that would begin after 512 KiB, at
//!   16 bytes per entry.
//!
//! Columns that have decoded more than the batch takes keep the rest for the next batch, so arrays are
//! never joined. What a reader is done with (a page in segments, a dictionary, at the end its columns)
//! it frees in slices, within the budget; what a host drops is the host's own work.
//!
//! Whatever is allocated by a size in the file (windows, segments, dictionaries, arrays, joined values
//! and joined arrays) is admitted by the reader's limit first (`Memory`). A decompressor that wants a
//! window says so before it allocates it ([`Status::NeedMemory`](marquetry_base::Status::NeedMemory)),
//! and wants no larger one than its page has bytes. What a column holds is counted exactly, once after
//! something was admitted or released, and again by the reader when it is the column's turn.
//!
//! # Indexes, filters, and files that differ
//!
//! [`PageIndexReader`] reads where pages are and what bounds they have. Ranges that are close together
//! are one request, and everything it hands out was checked against the footer. Which bounds can be
//! trusted is decided in [`prune`](crate::prune). [`BloomProbe`] reads a filter's header and one block
//! of 32 bytes per hash. [`PageBloomProbe`] reads 32 bytes per page and hash, in one piece; it believes nothing that was not
//! announced for this very chunk, or whose CRC is another (`docs/page-bloom.md`).
//!
//! Files whose schemas differ become one table in three steps, each usable alone.
//! [`Union`](crate::schema::Union) joins schemas by name and reports where they differ; a difference is
//! no error there, because a host may not want the column that differs.
//! [`Projection`](crate::schema::Projection) keeps the columns that are wanted. [`Conform`] plans how
//! the leaves of one schema are read as those of another: as they are, with other definition levels (a
//! table of at most 256 bytes), widened, null, or as one value; [`ConformReader`] applies the plan to a
//! `BatchReader`'s batches. A leaf below a list that a file lacks takes its levels from one that the
//! file has, which is read for that if need be. Where file and table agree, batches pass untouched.

mod bloom;
mod body;
mod builder;
mod column;
mod conform;
mod data_page;
mod decompressors;
mod dictionary;
mod footer;
mod index;
mod judge;
mod levels;
mod locator;
mod opening;
mod options;
mod page;
mod page_bloom;
mod reader;
mod released;
mod scan;
mod selected;
mod skip;
mod values;
mod windowed;
mod work;

pub use bloom::{BloomPlace, BloomProbe};
pub use conform::{Conform, ConformPlan, ConformReader, Conformer};
pub use footer::FooterReader;
pub use index::{ChunkIndex, PageIndexReader};
pub(crate) use judge::PageTests;
pub use options::{LargePages, ReadOptions};
pub use page_bloom::{PageBloom, PageBloomProbe, PageSet};
pub use reader::BatchReader;
pub use scan::{PageInfo, PageScanner};
