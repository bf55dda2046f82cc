//! Options of a writer.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Codec, Error, Limit, Limits, Object, Result};

use super::chooser::DICTIONARY_BYTES;
use super::encoder::Encoder;
use super::page::STORED_BYTES_MIN;
use crate::bloom::{BLOCK_BYTES, FILTER_BYTES_MAX};
use crate::format::{Compression, Encoding, KeyValue, SortingColumn};
use crate::schema::{Leaf, LogicalType, PhysicalType, Schema};

/// How a [`FileWriter`](super::FileWriter) writes.
///
/// The defaults use what readers have supported for ten years: V1 pages, SNAPPY, and encodings of the format's second
/// version. One of the tested readers, fastparquet, misreads DELTA_BINARY_PACKED, which is chosen for integers that it
/// suits. For fastparquet, set another encoding for such columns.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// How columns that are not in [`WriteOptions::columns`] are written.
    pub column: ColumnOptions,
    /// How individual columns are written, by the index of their leaf.
    pub columns: BTreeMap<usize, ColumnOptions>,
    /// The kind of data pages.
    pub page_version: PageVersion,
    /// Maximum rows of a page. Pages in DELTA_BINARY_PACKED end with one of its blocks, up to 255 rows earlier.
    pub page_rows: usize,
    /// Maximum bytes of a page before compression, without its header; a single row may take more. Exact for PLAIN
    /// strings and for numbers, approximate for other encodings.
    pub page_bytes: usize,
    /// The approximate limit of a dictionary in bytes: a larger one is abandoned, and the rest of the column chunk is
    /// written without it. A reader of a single row reads the dictionary, too.
    pub dictionary_bytes: usize,
    /// Maximum bytes, before compression, that a reader decompresses to come to a row of all columns. Each column's pages, and its dictionary,
    /// get an equal part of them, of 8 KiB at least, and are no larger than that, whatever [`WriteOptions::page_bytes`] and
    /// [`WriteOptions::dictionary_bytes`] say. It is for who reads a few thousand rows at a time and keeps nothing in between, as an object
    /// class of Ceph does. The default is no bound, `usize::MAX`.
    pub begun_bytes_max: usize,
    /// Maximum rows of a row group.
    pub row_group_rows: u64,
    /// The approximate bytes of a row group, encoded and compressed: it ends with the rows that reach this.
    pub row_group_bytes: u64,
    /// Maximum bytes of the footer; by default [`FOOTER_BYTES_MAX`], beyond which other readers stop. Chunks that come when half of it is
    /// written are described without what readers can do without: encoding and size statistics. If that is not enough, it is an error, as
    /// soon as that is known. Larger row groups make a smaller footer.
    pub footer_bytes_max: u64,
    /// Write the checksum of each page.
    pub crc: bool,
    /// Write the page index: the pages' positions and bounds.
    pub page_index: bool,
    /// Write a footer locator, by which readers find a few of very many columns without reading the footer
    /// (`docs/locator.md`). The file is larger by about the footer's size; other readers do not notice it. A file with a
    /// group that has no fields gets none.
    pub locator: bool,
    /// Declares that the rows of every row group are sorted by these columns, until
    /// [`FileWriter::withdraw_order`](super::FileWriter::withdraw_order). This is not checked.
    pub sorting_columns: Vec<SortingColumn>,
    /// Key-value metadata. By default a key has at most 65,000 bytes, as names have: see [`WriteOptions::limits`].
    pub key_values: Vec<KeyValue>,
    /// The writer's name and version; by default the library's own.
    pub created_by: Option<String>,
    /// An object to which pages of the open row group may be moved, and from which they are read back when it ends,
    /// so that memory does not grow with row groups. `None`: they stay in memory.
    pub spill: Option<Object>,
    /// The approximate bytes of pages held before they are moved to [`WriteOptions::spill`]. With very many columns it
    /// is 1 KiB per column, but at most four times this.
    pub held_bytes_max: u64,
    /// The limits of the file's readers: what they would refuse is refused here, or written in another way. The default
    /// is the readers'; with [`Limits::TRUSTED`], only readers that trust the file read what is beyond it.
    ///
    /// * Values, rows, names, nesting, pages and footers beyond them are errors. A row counts with all that it takes in
    ///   memory: a file that is far smaller than its largest row is refused ([`Limits::expansion`]).
    /// * A page with a row of 64 MiB or more is not compressed if that would make it more than eight times smaller. It
    ///   is a V2 page then, because V1 pages have no choice. (Several columns whose shorter rows compress as well may
    ///   together be refused.)
    /// * A dictionary is abandoned before readers would refuse it, but not within a row, which is an error then.
    /// * Memory is counted for rows of more than 1 MiB, and in a file that is far smaller than its pages, for a page of
    ///   each column. Readers may still refuse a footer or the pages of many columns that exceed
    ///   [`Limits::total_bytes`].
    /// * A chunk of so many pages that its column index or its offset index would be too long has none.
    pub limits: Limits,
}

/// The largest footer that pyarrow and Spark read: their Thrift libraries take no longer message (`thrift_string_size_limit`,
/// `MaxMessageSize`).
pub const FOOTER_BYTES_MAX: u64 = 100_000_000;

/// How one column is written.
#[derive(Debug, Clone)]
pub struct ColumnOptions {
    /// How its pages are compressed.
    pub compression: Compression,
    /// The codec's level; its own default if `None`.
    pub level: Option<i32>,
    /// The encoding of its values. `None`: chosen from them. [`Encoding::RleDictionary`] is abandoned if the
    /// dictionary becomes too large.
    pub encoding: Option<Encoding>,
    /// The encoding of values that do not fit the dictionary that [`encoding`](ColumnOptions::encoding) asks for. `None`:
    /// chosen from the first values, which are kept and tried for it: that costs more than to write a few thousand rows.
    pub fallback: Option<Encoding>,
    /// Whether a dictionary may be chosen.
    pub dictionary: bool,
    /// Write the bounds of its values, for chunks and, with the page index, for pages; for geometries, the bounding
    /// box of each chunk.
    pub bounds: bool,
    /// Bounds of BYTE_ARRAY are truncated to this many bytes, at most 4,096.
    pub bounds_bytes_max: usize,
    /// Write a Bloom filter of each chunk's values. BOOLEAN has none.
    pub bloom: Option<BloomOptions>,
    /// Write a Bloom filter of each page's values, if there is a page index, too. BOOLEAN has none.
    pub page_bloom: Option<PageBloomOptions>,
}

/// Options of a Bloom filter.
///
/// It is as small as possible: the next power of two of the bytes that the chunk's distinct values need. At a rate of
/// 0.01 a value needs 10.5 bits, so a million distinct values need 2 MiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BloomOptions {
    /// The target false-positive rate: more than 0 and less than 1.
    pub fpp: f64,
    /// Maximum bytes of its blocks, a power of two from 32 to 128 Mi. If more would be needed, the false-positive rate
    /// is higher.
    pub bytes_max: u32,
}

/// Options of the Bloom filters of pages: see [`PageBloom`](crate::read::PageBloom).
///
/// All filters of a chunk have the same number of blocks: the smallest power of two that keeps the rate for each page.
/// At a rate of 0.01 a value needs 10.5 bits of the fullest page's filter, so a page of 4,096 distinct values has 8 KiB.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PageBloomOptions {
    /// The target false-positive rate of each page: more than 0 and less than 1.
    pub fpp: f64,
    /// Maximum bytes of a page's filter, a power of two from 32 to 128 Ki. If more would be needed, the false-positive
    /// rate is higher.
    pub page_bytes_max: u32,
    /// Maximum bytes of all filters of a chunk, which are held until its row group ends. If more would be needed, the
    /// chunk has none.
    pub bytes_max: u64,
}

/// The kind of data pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PageVersion {
    /// `DATA_PAGE`, which every reader reads.
    #[default]
    V1,
    /// `DATA_PAGE_V2`: levels are not compressed.
    V2,
}

/// Maximum bytes of a page's filter: it is kept in one go.
const PAGE_FILTER_BYTES_MAX: u32 = 128 << 10;
/// The longest bounds. A host never waits for the comparison of two of them.
const BOUNDS_BYTES_MAX: usize = 4096;
/// Bytes of a structure of the metadata besides its name: what is left of [`Limits::structure_bytes`] is for the names on
/// the way to a leaf, or for any other name.
const BESIDE_NAME_BYTES: u64 = 536;
/// Characters of a name that an error shows.
const NAME_CHARS_SHOWN: usize = 40;
/// Maximum columns that rows are declared to be sorted by. Readers accept a structure of 64 KiB by default; and each row
/// group has them, written in one go.
const SORTING_COLUMNS_MAX: usize = 4096;
/// The least part of [`WriteOptions::begun_bytes_max`] that a column's pages get: of smaller ones, headers and entries of the page index are much.
const BEGUN_PART_MIN: usize = 8 << 10;
/// The largest page size that can be set: readers take it as a signed number of 32 bits.
const PAGE_BYTES_MAX: usize = 1 << 30;

impl Default for WriteOptions {
    fn default() -> WriteOptions {
        WriteOptions {
            column: ColumnOptions::default(),
            columns: BTreeMap::new(),
            page_version: PageVersion::V1,
            // As in Arrow C++ and parquet-rs: the page index is worth little if pages are much larger.
            page_rows: 20_000,
            // The usual 1 MiB, but as one allocation that no host dislikes.
            page_bytes: 896 << 10,
            dictionary_bytes: DICTIONARY_BYTES,
            begun_bytes_max: usize::MAX,
            // As in Arrow C++ and parquet-rs.
            row_group_rows: 1 << 20,
            // Memory for wide tables, or long strings, before the row group is written.
            row_group_bytes: 256 << 20,
            footer_bytes_max: FOOTER_BYTES_MAX,
            crc: true,
            page_index: true,
            locator: false,
            sorting_columns: Vec::new(),
            key_values: Vec::new(),
            created_by: None,
            spill: None,
            held_bytes_max: 64 << 20,
            limits: Limits::DEFAULT,
        }
    }
}

impl Default for ColumnOptions {
    fn default() -> ColumnOptions {
        ColumnOptions {
            compression: Compression::Codec(Codec::Snappy),
            level: None,
            encoding: None,
            fallback: None,
            dictionary: true,
            bounds: true,
            bounds_bytes_max: 64,
            bloom: None,
            page_bloom: None,
        }
    }
}

impl Default for BloomOptions {
    /// As the format's document recommends; the maximum exceeds what a million values need at a rate of 10⁻⁶.
    fn default() -> BloomOptions {
        BloomOptions { fpp: 0.01, bytes_max: 16 << 20 }
    }
}

impl Default for PageBloomOptions {
    /// The rate is that of [`BloomOptions`]; 64 KiB are enough for a page of 20,000 distinct values at a rate of 0.001, and
    /// 32 MiB for a chunk of 16 million distinct values at a rate of 0.01, in pages of 4,096.
    fn default() -> PageBloomOptions {
        PageBloomOptions { fpp: 0.01, page_bytes_max: 64 << 10, bytes_max: 32 << 20 }
    }
}

impl WriteOptions {
    /// How a leaf is written.
    pub fn of(&self, leaf: usize) -> &ColumnOptions {
        self.columns.get(&leaf).unwrap_or(&self.column)
    }

    /// Pages and dictionaries get their parts of [`WriteOptions::begun_bytes_max`], in a file of so many leaves.
    pub(super) fn bound_begun(&mut self, leaves: usize) {
        let parts = leaves.saturating_mul(2).max(1);
        let part = (self.begun_bytes_max / parts).max(BEGUN_PART_MIN);
        self.page_bytes = self.page_bytes.min(part);
        self.dictionary_bytes = self.dictionary_bytes.min(part);
    }

    /// The bytes of a dictionary beyond which it is abandoned: as it is written, and as it is read. A row may still add to
    /// it.
    pub(super) fn dictionary_max(&self) -> (usize, usize) {
        (self.dictionary_bytes, usize_of(self.limits.dictionary_bytes / 2).unwrap_or(usize::MAX))
    }

    /// Whether a page may be stored without compression of which the values of one row take so many bytes.
    pub(super) fn may_store(&self, bytes: u64) -> bool {
        bytes >= STORED_BYTES_MIN && self.limits.expansion < Limits::TRUSTED.expansion
    }

    /// Checks what does not depend on single columns, of which there may be many.
    pub(super) fn check(&self, schema: &Schema) -> Result<()> {
        let leaves = schema.leaves().len();
        if self.page_rows == 0 || self.row_group_rows == 0 {
            return Err(Error::misuse("pages or row groups of no rows"));
        }
        if self.page_bytes > PAGE_BYTES_MAX || self.dictionary_bytes > PAGE_BYTES_MAX {
            return Err(Error::misuse(format!("pages or dictionaries of more than {PAGE_BYTES_MAX} bytes")));
        }
        if let Some((leaf, _)) = self.columns.range(leaves..).next() {
            return Err(Error::misuse(format!("options of leaf {leaf} of {leaves}")));
        }
        if self.sorting_columns.len() > SORTING_COLUMNS_MAX {
            let count = self.sorting_columns.len();
            return Err(Error::too_large(format!(
                "rows sorted by {count} columns, of {SORTING_COLUMNS_MAX} at most"
            )));
        }
        self.limits.check(Limit::PageBytes, u64_of(self.page_bytes))?;
        check_names("a writer's name", self.created_by.as_ref().map_or(0, String::len), &self.limits)?;
        for column in &self.sorting_columns {
            if u64::from(column.column) >= u64_of(leaves) {
                return Err(Error::misuse(format!("sorted by leaf {} of {leaves}", column.column)));
            }
        }
        self.column.check()
    }
}

impl ColumnOptions {
    /// Checks that a leaf can be written so, for readers with these limits: what the first steps of a
    /// [`FileWriter`](super::FileWriter) check of each leaf, for a host that reports all mismatches at once.
    ///
    /// # Errors
    ///
    /// `Misuse` for a leaf that does not exist, options that contradict themselves, an encoding that its type does not
    /// have, or a Bloom filter of BOOLEAN; `Unsupported` for a leaf that cannot be written; `LimitExceeded` for names that
    /// are too long together (more than 65,000 bytes by default), and for values that are too wide or nested too deep.
    pub fn check_leaf(&self, schema: &Schema, leaf: usize, limits: &Limits) -> Result<()> {
        let Some(found) = schema.leaves().get(leaf) else {
            return Err(Error::misuse(format!("leaf {leaf} of {}", schema.leaves().len())));
        };
        check_path(schema, found, limits)?;
        let checked = check_width(found, limits)
            .and_then(|()| self.check())
            .and_then(|()| check_leaf(schema, leaf, self, limits))
            .and_then(|()| {
                let mut given = self.encoding.into_iter().chain(self.fallback);
                given.try_for_each(|encoding| Encoder::new(encoding, found.physical_type).map(drop))
            });
        checked.map_err(|error| error.at(|place| place.column = Some(schema.path(found.node))))
    }

    fn check(&self) -> Result<()> {
        if self.bounds_bytes_max > BOUNDS_BYTES_MAX {
            return Err(Error::misuse(format!("bounds of more than {BOUNDS_BYTES_MAX} bytes")));
        }
        let has_dictionary = self.encoding == Some(Encoding::RleDictionary);
        if self.fallback.is_some_and(|fallback| !has_dictionary || fallback == Encoding::RleDictionary) {
            return Err(Error::misuse("an encoding instead of a dictionary that is not asked for"));
        }
        let chunks = self.bloom.map(|bloom| (bloom.fpp, bloom.bytes_max, FILTER_BYTES_MAX));
        let pages = self.page_bloom.map(|bloom| (bloom.fpp, bloom.page_bytes_max, PAGE_FILTER_BYTES_MAX));
        for (fpp, bytes_max, most) in chunks.into_iter().chain(pages) {
            if !(fpp > 0.0 && fpp < 1.0) {
                return Err(Error::misuse(format!("a Bloom filter of a rate of {fpp}, not between 0 and 1")));
            }
            if !bytes_max.is_power_of_two() || !(BLOCK_BYTES..=most).contains(&bytes_max) {
                return Err(Error::misuse(format!(
                    "a Bloom filter of {bytes_max} bytes at most, not a power of two from 32 to {most}"
                )));
            }
        }
        match self.compression {
            Compression::Unknown(number) => Err(Error::misuse(format!("the unknown codec {number}"))),
            Compression::Uncompressed | Compression::Codec(_) => Ok(()),
        }
    }
}

/// Checks that a leaf can be written with these options, and the groups that begin with it.
fn check_leaf(schema: &Schema, leaf: usize, options: &ColumnOptions, limits: &Limits) -> Result<()> {
    let begin = leaf.checked_sub(1).map_or(0, |before| schema.leaves()[before].node + 1);
    let leaf = &schema.leaves()[leaf];
    let has_bloom = options.bloom.is_some() || options.page_bloom.is_some();
    if has_bloom && leaf.physical_type == PhysicalType::Boolean {
        return Err(Error::misuse("a Bloom filter of BOOLEAN, which has two values"));
    }
    for node in (begin..=leaf.node).filter_map(|at| schema.nodes().get(at)) {
        if let Some(
            LogicalType::Geometry { crs: Some(crs) } | LogicalType::Geography { crs: Some(crs), .. },
        ) = &node.logical_type
        {
            check_names("a field with its coordinate system", crs.len() + node.name.len(), limits)?;
        }
        if let Some(LogicalType::Unrecognised { number, has_fields: true }) = node.logical_type {
            let why = format!("writing the unknown logical type {number}, which is more than a name");
            return Err(Error::unsupported(why));
        }
    }
    if leaf.definition_max > u16::from(u8::MAX) || leaf.repetition_max > u16::from(u8::MAX) {
        return Err(Error::unsupported("writing a column of more than 255 levels"));
    }
    Ok(())
}

/// Checks that readers accept a leaf's values, if all have the same width.
fn check_width(leaf: &Leaf, limits: &Limits) -> Result<()> {
    let PhysicalType::FixedLenByteArray(width) = leaf.physical_type else { return Ok(()) };
    limits.check(Limit::ValueBytes, width.into())
}

/// Checks the names on the way to a leaf, and how many they are. The error has no place: that would be a copy of all of
/// them.
fn check_path(schema: &Schema, leaf: &Leaf, limits: &Limits) -> Result<()> {
    let (mut bytes, mut at, mut depth) = (0, leaf.node, 0);
    while let Some(node) = schema.nodes().get(at).filter(|_| at != 0) {
        (bytes, at, depth) = (bytes + node.name.len() + 1, node.parent, depth + 1);
    }
    let is_too_long = bytes > name_bytes_max(limits).saturating_add(1);
    if !is_too_long && depth <= u64::from(limits.nesting) + 1 {
        return Ok(());
    }
    let start: String = schema.node_of(leaf).name.chars().take(NAME_CHARS_SHOWN).collect();
    if is_too_long {
        return check_names(
            &format!("the path of a column named {start:?}…"),
            bytes.saturating_sub(1),
            limits,
        );
    }
    let what = format!("a column named {start:?} in {depth} levels; readers accept {}", limits.nesting);
    Err(Error::limit(Limit::Nesting, what))
}

/// Maximum bytes of the names on the way to a leaf, and of any other name.
fn name_bytes_max(limits: &Limits) -> usize {
    usize_of(limits.structure_bytes.saturating_sub(BESIDE_NAME_BYTES)).unwrap_or(usize::MAX)
}

/// Checks the length of a name.
pub(super) fn check_names(what: &str, bytes: usize, limits: &Limits) -> Result<()> {
    let most = name_bytes_max(limits);
    if bytes <= most {
        return Ok(());
    }
    Err(Error::limit(Limit::StructureBytes, format!("{what} of {bytes} bytes; readers accept {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_begun_with_a_row_is_shared_by_all_columns() {
        let bounded = |begun_bytes_max, leaves| {
            let mut options = WriteOptions { begun_bytes_max, ..WriteOptions::default() };
            options.bound_begun(leaves);
            (options.page_bytes, options.dictionary_bytes)
        };
        let unbounded = WriteOptions::default();
        assert_eq!(bounded(usize::MAX, 100_000), (unbounded.page_bytes, unbounded.dictionary_bytes));
        // A page and a dictionary of each column.
        assert_eq!(bounded(512 << 10, 16), (16 << 10, 16 << 10));
        assert_eq!(bounded(512 << 10, 1), (256 << 10, 256 << 10));
        assert_eq!(bounded(512 << 10, 0), (512 << 10, 512 << 10));
        // Not less than what is worth a header.
        assert_eq!(bounded(512 << 10, 1000), (BEGUN_PART_MIN, BEGUN_PART_MIN));
        // What is smaller stays so.
        let mut small = WriteOptions { page_bytes: 100, dictionary_bytes: 0, ..WriteOptions::default() };
        small.begun_bytes_max = 512 << 10;
        small.bound_begun(1);
        assert_eq!((small.page_bytes, small.dictionary_bytes), (100, 0));
    }
}
