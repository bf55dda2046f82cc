//! What a Parquet file holds besides data: the structures of `parquet.thrift`, read and written.

mod bloom;
mod chunk;
mod columns;
mod index;
mod kept;
pub(crate) mod locator;
mod metadata;
mod page;
mod page_bloom;
mod parse;
mod statistics;
pub(crate) mod write;

pub(crate) use bloom::BLOOM_HEADER_BYTES_MAX;
pub use bloom::BloomFilterHeader;
pub use columns::FooterColumns;
pub(crate) use columns::{Chooser, Keep};
pub use index::{BoundaryOrder, ByteStrings, ColumnIndex, OffsetIndex, PageLocation};
pub(crate) use index::{ColumnIndexParser, OffsetIndexParser};
pub(crate) use kept::keep_sorting_columns;
pub use metadata::{
    ColumnChunk, ColumnOrder, Compression, Encoding, EncryptionAlgorithm, FileMetaData, KeyValue,
    PageEncodingStats, RowGroup, SortingColumn, Statistics,
};
pub use page::{DataPageHeader, DataPageHeaderV2, DictionaryPageHeader, PageHeader, PageKind};
pub use page_bloom::PAGE_BLOOM_KEY;
pub(crate) use page_bloom::PageBloomPlace;
pub(crate) use parse::FooterParser;
pub use statistics::{BoundingBox, GeospatialStatistics, SizeStatistics};

/// The key of a footer's metadata under which Arrow's writers store their schema.
pub const ARROW_SCHEMA_KEY: &str = "ARROW:schema";
/// The four bytes that a file begins and ends with.
pub const MAGIC: [u8; 4] = *b"PAR1";
/// What a file with an encrypted footer begins and ends with.
pub const MAGIC_ENCRYPTED: [u8; 4] = *b"PARE";
/// The footer's length (`u32`, little-endian) and the magic, at the end of the file.
pub const FOOTER_TAIL_BYTES: u64 = 8;
/// The smallest file: magic, an empty footer's length and magic.
pub const FILE_BYTES_MIN: u64 = 12;
