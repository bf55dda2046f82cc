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
mod levels;
mod opening;
mod options;
mod page;
mod reader;
mod released;
mod scan;
mod values;
mod windowed;

use core::ops::Range;

use marquetry_base::{Bytes, Error, Result};

pub use bloom::BloomProbe;
pub use conform::{Conform, ConformReader, Conformer};
pub use footer::FooterReader;
pub use index::{ChunkIndex, PageIndexReader};
pub use options::ReadOptions;
pub use reader::BatchReader;
pub use scan::{PageInfo, PageScanner};

/// Checks what a host supplies: as many bytes as it says, inside the object where its length is known.
pub(crate) fn check_supply(range: &Range<u64>, bytes: &Bytes, object_length: Option<u64>) -> Result<()> {
    if range.end.checked_sub(range.start) != Some(bytes.len() as u64) {
        return Err(Error::misuse(alloc::format!("{} bytes supplied as the range {range:?}", bytes.len())));
    }
    if object_length.is_some_and(|length| range.end > length) {
        return Err(Error::misuse(alloc::format!("bytes supplied beyond the object's end: {range:?}")));
    }
    Ok(())
}
