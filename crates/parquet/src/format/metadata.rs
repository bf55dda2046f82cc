//! The footer's structures, with the names of `parquet.thrift`, as Rust types.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use marquetry_base::{Budget, Bytes, Codec, Release, Segmented, release_all};

use super::{GeospatialStatistics, SizeStatistics};
use crate::schema::Schema;

/// The footer (`FileMetaData`).
#[derive(Debug, Clone, PartialEq)]
pub struct FileMetaData {
    /// The format's version, 1 or 2. It says nothing about which features the file uses.
    pub version: i32,
    /// The tree of types, shared with what is planned of it.
    pub schema: Arc<Schema>,
    /// Rows in the file.
    pub rows: u64,
    /// The row groups, in order.
    pub row_groups: Segmented<RowGroup>,
    /// The writer's key-value metadata.
    pub key_values: Segmented<KeyValue>,
    /// The writer's name and version.
    pub created_by: Option<String>,
    /// How the bounds of each leaf's statistics are ordered; empty if the writer did not say.
    pub column_orders: Segmented<ColumnOrder>,
    /// How columns are encrypted, if some are and the footer is not.
    pub encryption: Option<EncryptionAlgorithm>,
    /// Where the footer starts, after the pages and everything else.
    pub footer_start: u64,
    /// The footer's length in bytes, without its length and magic.
    pub footer_bytes: u64,
    /// It was read [for some columns](super::FooterColumns), and the file has others.
    pub is_partial: bool,
}

impl FileMetaData {
    /// The file's length in bytes: its footer is the end.
    pub fn file_bytes(&self) -> u64 {
        /// The footer's length and the magic.
        const TAIL_BYTES: u64 = 8;
        self.footer_start.saturating_add(self.footer_bytes).saturating_add(TAIL_BYTES)
    }
}

impl Release for FileMetaData {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let FileMetaData { row_groups, key_values, schema, column_orders, created_by, .. } = self;
        release_all(&mut [row_groups, key_values, schema, column_orders, created_by], budget)
    }
}

/// A horizontal part of the table (`RowGroup`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RowGroup {
    /// One chunk per leaf of the schema, in its order.
    pub columns: Segmented<ColumnChunk>,
    /// Bytes of the column data, before compression.
    pub uncompressed_bytes: u64,
    /// Rows.
    pub rows: u64,
    /// The first row's number in the file: the sum of the rows of all previous groups.
    pub first_row: u64,
    /// The columns that the rows are sorted by.
    pub sorting_columns: Vec<SortingColumn>,
    /// Where the first page starts, if the writer stored it; not used.
    pub file_offset: Option<u64>,
    /// Bytes of the column data in the file, if the writer stored it; not used.
    pub compressed_bytes: Option<u64>,
    /// The group's number in the file, if the writer stored it; not used.
    pub ordinal: Option<i16>,
}

impl Release for RowGroup {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.columns, &mut self.sorting_columns], budget)
    }
}

/// One leaf's data in one row group (`ColumnChunk` and `ColumnMetaData`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnChunk {
    /// Another file that holds the data (deprecated, and not supported when set).
    pub file_path: Option<String>,
    /// How pages are compressed.
    pub compression: Compression,
    /// The encodings used, levels' included.
    pub encodings: Vec<Encoding>,
    /// Values, nulls included; repeated columns have more than rows.
    pub values: u64,
    /// Bytes of all pages with their headers, before compression.
    pub uncompressed_bytes: u64,
    /// Bytes of all pages with their headers, in the file.
    pub compressed_bytes: u64,
    /// Where the first data page starts.
    pub data_page_offset: u64,
    /// Where the dictionary page starts, if the writer stored it.
    pub dictionary_page_offset: Option<u64>,
    /// Bounds and counts.
    pub statistics: Option<Box<Statistics>>,
    /// Sizes of values, and the counts of each level.
    pub size_statistics: Option<Box<SizeStatistics>>,
    /// The extent of geometries.
    pub geospatial_statistics: Option<Box<GeospatialStatistics>>,
    /// The number of pages in each encoding.
    pub encoding_stats: Vec<PageEncodingStats>,
    /// The Bloom filter's offset, and length, if the writer stored it.
    pub bloom_filter: Option<(u64, Option<u32>)>,
    /// The column index's offset and length.
    pub column_index: Option<(u64, u32)>,
    /// The offset index's offset and length.
    pub offset_index: Option<(u64, u32)>,
    /// The column's key-value metadata.
    pub key_values: Vec<KeyValue>,
    /// True if the column, or its metadata, is encrypted.
    pub encrypted: bool,
}

impl ColumnChunk {
    /// Where the chunk's first page starts: the dictionary's, if there is one.
    ///
    /// Some writers set a dictionary offset of 0, or one after the data: both mean that there is no dictionary. If a
    /// row group without rows has only a dictionary page, Arrow C++ sets a data offset of 0, where the magic is and no
    /// page can start.
    pub fn first_page_offset(&self) -> u64 {
        match self.dictionary_page_offset {
            Some(offset) if offset > 0 && (offset < self.data_page_offset || self.data_page_offset == 0) => {
                offset
            }
            _ => self.data_page_offset,
        }
    }
}

impl Release for ColumnChunk {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let parts: &mut [&mut dyn Release] = &mut [
            &mut self.file_path,
            &mut self.encodings,
            &mut self.encoding_stats,
            &mut self.key_values,
            &mut self.statistics,
            &mut self.size_statistics,
            &mut self.geospatial_statistics,
        ];
        release_all(parts, budget)
    }
}

/// Bounds and counts of a column chunk or page (`Statistics`).
///
/// Bounds are PLAIN-encoded values, without a length for BYTE_ARRAY. Long ones share the bytes that the host
/// supplied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The smallest value or a lower bound, in the column's order.
    pub min_value: Option<Bytes>,
    /// The largest value or an upper bound, in the column's order.
    pub max_value: Option<Bytes>,
    /// The deprecated bounds, min and max, in signed order.
    pub deprecated_min: Option<Bytes>,
    /// See [`Statistics::deprecated_min`].
    pub deprecated_max: Option<Bytes>,
    /// Nulls.
    pub null_count: Option<u64>,
    /// Distinct values.
    pub distinct_count: Option<u64>,
    /// NaNs, of floating-point columns.
    pub nan_count: Option<u64>,
    /// Whether `min_value` occurs in the column; unknown if absent.
    pub is_min_value_exact: Option<bool>,
    /// Whether `max_value` occurs in the column; unknown if absent.
    pub is_max_value_exact: Option<bool>,
}

impl Release for Statistics {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Statistics { min_value, max_value, deprecated_min, deprecated_max, .. } = self;
        release_all(&mut [min_value, max_value, deprecated_min, deprecated_max], budget)
    }
}

/// A key and a value (`KeyValue`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyValue {
    /// The key.
    pub key: String,
    /// The value, if any. The format says text, but some writers store bytes, so it is bytes here. Long values share
    /// the bytes that the host supplied, if they arrived in one piece.
    pub value: Option<Bytes>,
}

impl Release for KeyValue {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.key, &mut self.value], budget)
    }
}

/// A column that a row group is sorted by (`SortingColumn`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortingColumn {
    /// The leaf's index.
    pub column: u32,
    /// Descending, not ascending.
    pub descending: bool,
    /// Nulls before values.
    pub nulls_first: bool,
}

/// How many pages of a chunk have an encoding (`PageEncodingStats`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageEncodingStats {
    /// `PageType` of the format.
    pub page_type: i32,
    /// The encoding.
    pub encoding: Encoding,
    /// Pages.
    pub count: i32,
}

/// The order of a leaf's bounds (`ColumnOrder`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnOrder {
    /// The order that the type defines.
    TypeDefined,
    /// IEEE 754's total order.
    Ieee754Total,
    /// INT96 timestamps, chronologically.
    Int96Timestamp,
    /// An algorithm that this version does not know.
    Unknown(i16),
}

/// How pages and metadata are encrypted (`EncryptionAlgorithm`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncryptionAlgorithm {
    /// AES-GCM for all.
    AesGcmV1,
    /// AES-GCM for metadata, AES-CTR for pages.
    AesGcmCtrV1,
    /// An algorithm that this version does not know.
    Unknown(i16),
}

/// How a column chunk is compressed (`CompressionCodec`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    Uncompressed,
    /// With a codec.
    Codec(Codec),
    /// With a codec that this version does not know.
    Unknown(i32),
}

impl Compression {
    pub(super) fn from_thrift(number: i32) -> Compression {
        match number {
            0 => Compression::Uncompressed,
            1 => Compression::Codec(Codec::Snappy),
            2 => Compression::Codec(Codec::Gzip),
            3 => Compression::Codec(Codec::Lzo),
            4 => Compression::Codec(Codec::Brotli),
            5 => Compression::Codec(Codec::Lz4),
            6 => Compression::Codec(Codec::Zstd),
            7 => Compression::Codec(Codec::Lz4Raw),
            _ => Compression::Unknown(number),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Compression::Uncompressed => f.write_str("UNCOMPRESSED"),
            Compression::Codec(codec) => f.write_str(codec.name()),
            Compression::Unknown(number) => write!(f, "CODEC {number}"),
        }
    }
}

/// How values or levels are encoded (`Encoding`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Encoding {
    /// Values as they are, in order.
    Plain,
    /// The deprecated name of RLE_DICTIONARY, and of PLAIN in dictionary pages.
    PlainDictionary,
    /// Run-length and bit-packed runs.
    Rle,
    /// The deprecated bit-packing of levels, most significant bit first.
    BitPacked,
    /// Deltas of integers in bit-packed blocks.
    DeltaBinaryPacked,
    /// Lengths as deltas, then the bytes.
    DeltaLengthByteArray,
    /// Lengths of shared prefixes as deltas, then suffixes.
    DeltaByteArray,
    /// Indices into the dictionary.
    RleDictionary,
    /// The bytes of values in separate streams: first, second, …
    ByteStreamSplit,
    /// Adaptive lossless floating-point.
    Alp,
    /// An encoding that this version does not know.
    Unknown(i32),
}

impl Encoding {
    /// Whether a page's values are several streams, or are preceded by one, so that readers hold all of the page.
    pub(crate) fn has_streams(self) -> bool {
        use Encoding::{Alp, ByteStreamSplit, DeltaByteArray, DeltaLengthByteArray};
        matches!(self, DeltaLengthByteArray | DeltaByteArray | ByteStreamSplit | Alp)
    }

    pub(super) fn from_thrift(number: i32) -> Encoding {
        match number {
            0 => Encoding::Plain,
            2 => Encoding::PlainDictionary,
            3 => Encoding::Rle,
            4 => Encoding::BitPacked,
            5 => Encoding::DeltaBinaryPacked,
            6 => Encoding::DeltaLengthByteArray,
            7 => Encoding::DeltaByteArray,
            8 => Encoding::RleDictionary,
            9 => Encoding::ByteStreamSplit,
            10 => Encoding::Alp,
            _ => Encoding::Unknown(number),
        }
    }

    pub(crate) fn number(self) -> i32 {
        match self {
            Encoding::Plain => 0,
            Encoding::PlainDictionary => 2,
            Encoding::Rle => 3,
            Encoding::BitPacked => 4,
            Encoding::DeltaBinaryPacked => 5,
            Encoding::DeltaLengthByteArray => 6,
            Encoding::DeltaByteArray => 7,
            Encoding::RleDictionary => 8,
            Encoding::ByteStreamSplit => 9,
            Encoding::Alp => 10,
            Encoding::Unknown(number) => number,
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Encoding::Plain => "PLAIN",
            Encoding::PlainDictionary => "PLAIN_DICTIONARY",
            Encoding::Rle => "RLE",
            Encoding::BitPacked => "BIT_PACKED",
            Encoding::DeltaBinaryPacked => "DELTA_BINARY_PACKED",
            Encoding::DeltaLengthByteArray => "DELTA_LENGTH_BYTE_ARRAY",
            Encoding::DeltaByteArray => "DELTA_BYTE_ARRAY",
            Encoding::RleDictionary => "RLE_DICTIONARY",
            Encoding::ByteStreamSplit => "BYTE_STREAM_SPLIT",
            Encoding::Alp => "ALP",
            Encoding::Unknown(number) => return write!(f, "ENCODING {number}"),
        })
    }
}

impl Release for SortingColumn {}
impl Release for PageEncodingStats {}
impl Release for ColumnOrder {}
impl Release for Encoding {}
