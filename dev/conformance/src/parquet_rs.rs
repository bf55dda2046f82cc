//! What parquet-rs makes of a file's metadata: footer, statistics, and page index; and of its [values].

pub mod values;

use std::sync::Arc;

use marquetry_base::{Bytes, Segmented};
use marquetry_parquet::format::{
    BoundaryOrder, ColumnChunk, ColumnIndex, ColumnOrder, FileMetaData, KeyValue, OffsetIndex, RowGroup,
    Statistics,
};
use parquet::basic::{ColumnOrder as TheirOrder, Type};
use parquet::bloom_filter::Sbbf;
use parquet::column::reader::ColumnReader;
use parquet::file::metadata::{
    ColumnChunkMetaData, LevelHistogram, PageIndexPolicy, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::canonical;

/// How much was compared.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compared {
    /// Column chunks.
    pub chunks: usize,
    /// Size statistics.
    pub sizes: usize,
    /// Bounding boxes of geometries.
    pub boxes: usize,
    /// Column chunks with an index.
    pub indexes: usize,
    /// Pages of these.
    pub pages: usize,
}

impl std::ops::AddAssign for Compared {
    fn add_assign(&mut self, other: Compared) {
        self.chunks += other.chunks;
        self.sizes += other.sizes;
        self.boxes += other.boxes;
        self.indexes += other.indexes;
        self.pages += other.pages;
    }
}

/// Footers that parquet-rs does not read: a part of its error.
const NOT_BY_PARQUET_RS: &[&str] = &[
    // dict-page-offset-zero.parquet and fastparquet's files without rows: an empty list of another type than the format's,
    // which is no list of anything.
    "Expected list element type of I64 but got I16",
    "Expected list element type of Struct but got Byte",
];

/// Compares all that the footer and the page index say.
///
/// # Errors
///
/// What differs, or what either of the two cannot read.
pub fn compare(bytes: &Bytes, metadata: &Arc<FileMetaData>) -> Result<Compared, String> {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Optional);
    let theirs = match reader.parse_and_finish(bytes) {
        Ok(theirs) => theirs,
        Err(error) if NOT_BY_PARQUET_RS.iter().any(|part| error.to_string().contains(part)) => {
            return Ok(Compared::default());
        }
        Err(error) => return Err(format!("parquet-rs does not read its metadata: {error}")),
    };
    let file = theirs.file_metadata();
    same("created_by", metadata.created_by.as_deref(), file.created_by())?;
    same("version", metadata.version, file.version())?;
    same("key-value metadata", keys(&metadata.key_values), their_keys(file.key_value_metadata()))?;
    let orders: Vec<TheirOrder> = file.column_orders().cloned().unwrap_or_default();
    same("column orders", metadata.column_orders.len(), orders.len())?;
    for (ours, theirs) in metadata.column_orders.iter().zip(&orders) {
        let is_same = match ours {
            ColumnOrder::TypeDefined => matches!(theirs, TheirOrder::TYPE_DEFINED_ORDER(_)),
            ColumnOrder::Ieee754Total => matches!(theirs, TheirOrder::IEEE_754_TOTAL_ORDER),
            ColumnOrder::Int96Timestamp => matches!(theirs, TheirOrder::INT96_TIMESTAMP_ORDER),
            ColumnOrder::Unknown(_) => matches!(theirs, TheirOrder::UNKNOWN),
        };
        same("column order", is_same, true).map_err(|error| format!("{error}: {ours:?}, {theirs:?}"))?;
    }
    same("row groups", metadata.row_groups.len(), theirs.num_row_groups())?;
    let mut compared = Compared::default();
    let mut indexes = canonical::indexes(bytes, metadata)
        .map_err(|error| format!("its page index: {error:?}"))?
        .into_iter()
        .peekable();
    for (number, (ours, group)) in metadata.row_groups.iter().zip(theirs.row_groups()).enumerate() {
        row_group(ours, group).map_err(|error| format!("row group {number}: {error}"))?;
        let their_indexes = theirs.page_index_for_row_group(number);
        for (leaf, (chunk, theirs)) in ours.columns.iter().zip(group.columns()).enumerate() {
            let here = |error| format!("row group {number}: {}: {error}", theirs.column_path());
            column(chunk, theirs).map_err(here)?;
            sizes(chunk, theirs).map_err(here)?;
            places(chunk, theirs).map_err(here)?;
            compared.chunks += 1;
            compared.sizes += usize::from(chunk.size_statistics.is_some());
            let places = chunk.geospatial_statistics.as_ref();
            compared.boxes += usize::from(places.is_some_and(|it| it.bounding_box.is_some()));
            let ours = indexes.next_if(|index| (index.row_group, index.leaf) == (number, leaf));
            let (their_offsets, their_bounds) =
                (their_indexes.offset_index(leaf), their_indexes.column_index(leaf));
            let (Some(ours), Some(their_offsets)) = (&ours, their_offsets) else {
                same("an offset index", ours.is_some(), their_offsets.is_some()).map_err(here)?;
                continue;
            };
            compared.indexes += 1;
            compared.pages += ours.offset_index.pages.len();
            offset_index(&ours.offset_index, their_offsets).map_err(here)?;
            match (&ours.column_index, their_bounds) {
                (Some(ours), Some(theirs)) => column_index(ours, theirs).map_err(here)?,
                (ours, theirs) => same("a column index", ours.is_some(), theirs.is_some()).map_err(here)?,
            }
        }
    }
    match indexes.next() {
        None => Ok(compared),
        Some(index) => Err(format!("an index of a chunk that is not there: {index:?}")),
    }
}

/// What the Bloom filter of a chunk says to parquet-rs: whether it may have a value, given as PLAIN has it, without its
/// length.
///
/// # Errors
///
/// What it cannot read; where there is no filter.
pub fn bloom_filter(bytes: &Bytes, row_group: usize, leaf: usize) -> Result<Told, String> {
    let theirs = ParquetMetaDataReader::new().parse_and_finish(bytes).map_err(|error| error.to_string())?;
    let chunk = theirs.row_group(row_group).column(leaf);
    let filter = Sbbf::read_from_column_chunk(chunk, bytes).map_err(|error| error.to_string())?;
    let filter = filter.ok_or("no Bloom filter")?;
    Ok(Box::new(move |value: &[u8]| filter.check(value)))
}

/// What parquet-rs reads of a flat, required column of floating-point numbers, all row groups one after the other.
///
/// # Errors
///
/// What it cannot read.
pub fn floats(bytes: &Bytes, leaf: usize) -> Result<Vec<f64>, String> {
    let reader = SerializedFileReader::new(bytes.clone()).map_err(|error| error.to_string())?;
    let mut all = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|error| error.to_string())?;
        let rows = usize::try_from(group.metadata().num_rows()).map_err(|error| error.to_string())?;
        let read = match group.get_column_reader(leaf).map_err(|error| error.to_string())? {
            ColumnReader::FloatColumnReader(mut column) => {
                let mut values = Vec::new();
                let read = column.read_records(rows, None, None, &mut values);
                all.extend(values.into_iter().map(f64::from));
                read
            }
            ColumnReader::DoubleColumnReader(mut column) => column.read_records(rows, None, None, &mut all),
            _ => return Err("a column of another type".to_owned()),
        };
        read.map_err(|error| error.to_string())?;
    }
    Ok(all)
}

/// See [`bloom_filter`].
pub type Told = Box<dyn Fn(&[u8]) -> bool>;

fn row_group(ours: &RowGroup, theirs: &RowGroupMetaData) -> Result<(), String> {
    same("rows", signed(ours.rows), theirs.num_rows())?;
    same("bytes", signed(ours.uncompressed_bytes), theirs.total_byte_size())?;
    same("columns", ours.columns.len(), theirs.num_columns())?;
    let sorting = ours.sorting_columns.iter();
    let sorting = sorting.map(|by| (i64::from(by.column), by.descending, by.nulls_first)).collect::<Vec<_>>();
    let their_sorting = theirs.sorting_columns().into_iter().flatten();
    let their_sorting = their_sorting.map(|by| (i64::from(by.column_idx), by.descending, by.nulls_first));
    same("sorting columns", sorting, their_sorting.collect())
}

fn column(ours: &ColumnChunk, theirs: &ColumnChunkMetaData) -> Result<(), String> {
    same("file path", ours.file_path.as_deref(), theirs.file_path())?;
    same("values", signed(ours.values), theirs.num_values())?;
    same("compressed bytes", signed(ours.compressed_bytes), theirs.compressed_size())?;
    same("uncompressed bytes", signed(ours.uncompressed_bytes), theirs.uncompressed_size())?;
    same("data page offset", signed(ours.data_page_offset), theirs.data_page_offset())?;
    same("dictionary page offset", ours.dictionary_page_offset.map(signed), theirs.dictionary_page_offset())?;
    let bloom = ours.bloom_filter.map(|(offset, length)| (signed(offset), length.map(i64::from)));
    let their_bloom = theirs.bloom_filter_offset();
    let their_bloom = their_bloom.map(|offset| (offset, theirs.bloom_filter_length().map(i64::from)));
    same("Bloom filter", bloom, their_bloom)?;
    let index = |place: Option<(u64, u32)>| place.map(|(offset, length)| offset..offset + u64::from(length));
    same("column index", index(ours.column_index), theirs.column_index_range())?;
    same("offset index", index(ours.offset_index), theirs.offset_index_range())?;
    let none = Statistics::default();
    let ours = ours.statistics.as_deref().unwrap_or(&none);
    let Some(theirs) = theirs.statistics() else { return same("statistics", ours, &none) };
    same("nulls", ours.null_count, theirs.null_count_opt())?;
    same("distinct values", ours.distinct_count, theirs.distinct_count_opt())?;
    if theirs.is_min_max_deprecated() {
        same("deprecated min", ours.deprecated_min.as_deref(), theirs.min_bytes_opt())?;
        return same("deprecated max", ours.deprecated_max.as_deref(), theirs.max_bytes_opt());
    }
    same("min_value", ours.min_value.as_deref(), theirs.min_bytes_opt())?;
    same("max_value", ours.max_value.as_deref(), theirs.max_bytes_opt())?;
    if matches!(theirs.physical_type(), Type::BOOLEAN | Type::INT32 | Type::INT64 | Type::INT96) {
        // Of these parquet-rs keeps no more.
        return Ok(());
    }
    same("NaNs", ours.nan_count, theirs.nan_count_opt())?;
    // Where a writer does not say, parquet-rs has one or the other.
    let exact =
        [(ours.is_min_value_exact, theirs.min_is_exact()), (ours.is_max_value_exact, theirs.max_is_exact())];
    exact.into_iter().try_for_each(|(ours, theirs)| same("is exact", ours.unwrap_or(theirs), theirs))
}

fn sizes(chunk: &ColumnChunk, theirs: &ColumnChunkMetaData) -> Result<(), String> {
    let ours = chunk.size_statistics.as_deref().cloned().unwrap_or_default();
    let unencoded = theirs.unencoded_byte_array_data_bytes();
    same("unencoded bytes", ours.unencoded_byte_array_data_bytes.map(signed), unencoded)?;
    let levels =
        |levels: Option<&LevelHistogram>| levels.map(|levels| levels.values().to_vec()).unwrap_or_default();
    let histogram = |counts: &[u64]| counts.iter().copied().map(signed).collect::<Vec<i64>>();
    let (definition, repetition) = (&ours.definition_level_histogram, &ours.repetition_level_histogram);
    same("definition levels", histogram(definition), levels(theirs.definition_level_histogram()))?;
    same("repetition levels", histogram(repetition), levels(theirs.repetition_level_histogram()))
}

fn places(chunk: &ColumnChunk, theirs: &ColumnChunkMetaData) -> Result<(), String> {
    let ours = chunk.geospatial_statistics.as_deref().cloned().unwrap_or_default();
    let theirs = theirs.geo_statistics();
    let types = theirs.and_then(|it| it.geospatial_types().cloned()).unwrap_or_default();
    same("geometries' types", ours.geospatial_types, types)?;
    let ours = ours.bounding_box.map(|it| (it.x, it.y, it.z, it.m));
    let theirs = theirs.and_then(|it| it.bounding_box()).map(|it| {
        let (x, y) = ((it.get_xmin(), it.get_xmax()), (it.get_ymin(), it.get_ymax()));
        (x, y, it.get_zmin().zip(it.get_zmax()), it.get_mmin().zip(it.get_mmax()))
    });
    same("bounding box", ours, theirs)
}

fn offset_index(ours: &OffsetIndex, theirs: &OffsetIndexMetaData) -> Result<(), String> {
    let pages = ours.pages.iter();
    let pages =
        pages.map(|page| (signed(page.offset), i64::from(page.compressed_bytes), signed(page.first_row)));
    let their_pages = theirs.page_locations().iter();
    let their_pages =
        their_pages.map(|page| (page.offset, i64::from(page.compressed_page_size), page.first_row_index));
    same("places of pages", pages.collect::<Vec<_>>(), their_pages.collect())?;
    let counts = |counts: &Segmented<u64>| counts.iter().copied().map(signed).collect::<Vec<i64>>();
    let unencoded = ours.unencoded_byte_array_data_bytes.as_ref().map(counts);
    same("unencoded bytes of pages", unencoded.as_ref(), theirs.unencoded_byte_array_data_bytes())
}

fn column_index(ours: &ColumnIndex, theirs: &ColumnIndexMetaData) -> Result<(), String> {
    let order = match theirs.get_boundary_order().map(|order| order as i32) {
        Some(1) => BoundaryOrder::Ascending,
        Some(2) => BoundaryOrder::Descending,
        _ => BoundaryOrder::Unordered,
    };
    same("order of bounds", ours.boundary_order, order)?;
    // Counts that are not known, parquet-mr has written as -1. Of no page, none are known.
    let known = |counts: Option<&Vec<i64>>| {
        counts.filter(|counts| !counts.is_empty() && counts.iter().all(|&count| count >= 0)).cloned()
    };
    let counts = |counts: &Option<Segmented<u64>>| {
        counts.as_ref().map(|it| it.iter().copied().map(signed).collect::<Vec<i64>>())
    };
    same("nulls of pages", counts(&ours.null_counts), known(theirs.null_counts()))?;
    same("NaNs of pages", counts(&ours.nan_counts), known(theirs.nan_counts()))?;
    for page in 0..ours.pages() {
        let here = |error| format!("page {page}: {error}");
        same("null", ours.null_pages[page], theirs.is_null_page(page)).map_err(here)?;
        if ours.null_pages[page] {
            continue;
        }
        let bounds = (Some(ours.min_values.get(page).to_vec()), Some(ours.max_values.get(page).to_vec()));
        same("bounds", bounds, page_bounds(theirs, page)).map_err(here)?;
        let their_levels = |levels: Option<&[i64]>| levels.map(<[i64]>::to_vec).unwrap_or_default();
        let (definition, repetition) = (ours.definition_levels(page), ours.repetition_levels(page));
        let (their_definition, their_repetition) =
            (theirs.definition_level_histogram(page), theirs.repetition_level_histogram(page));
        same("definition levels", definition.map(signed).collect(), their_levels(their_definition))
            .map_err(here)?;
        same("repetition levels", repetition.map(signed).collect(), their_levels(their_repetition))
            .map_err(here)?;
    }
    Ok(())
}

/// Bounds of a page, as PLAIN.
fn page_bounds(index: &ColumnIndexMetaData, page: usize) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
    macro_rules! numbers {
        ($index:expr) => {
            (
                $index.min_value(page).map(|value| value.to_le_bytes().to_vec()),
                $index.max_value(page).map(|value| value.to_le_bytes().to_vec()),
            )
        };
    }
    match index {
        ColumnIndexMetaData::BOOLEAN(index) => {
            let byte = |value: Option<&bool>| value.map(|value| vec![u8::from(*value)]);
            (byte(index.min_value(page)), byte(index.max_value(page)))
        }
        ColumnIndexMetaData::INT32(index) => numbers!(index),
        ColumnIndexMetaData::INT64(index) => numbers!(index),
        ColumnIndexMetaData::FLOAT(index) => numbers!(index),
        ColumnIndexMetaData::DOUBLE(index) => numbers!(index),
        ColumnIndexMetaData::INT96(index) => {
            let bytes = |value: &parquet::data_type::Int96| {
                value.data().iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
            };
            (index.min_value(page).map(bytes), index.max_value(page).map(bytes))
        }
        ColumnIndexMetaData::BYTE_ARRAY(index) | ColumnIndexMetaData::FIXED_LEN_BYTE_ARRAY(index) => {
            (index.min_value(page).map(<[u8]>::to_vec), index.max_value(page).map(<[u8]>::to_vec))
        }
    }
}

fn keys(ours: &Segmented<KeyValue>) -> Vec<(String, Option<String>)> {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    ours.iter().map(|pair| (pair.key.clone(), pair.value.as_ref().map(text))).collect()
}

fn their_keys(theirs: Option<&Vec<parquet::file::metadata::KeyValue>>) -> Vec<(String, Option<String>)> {
    theirs.into_iter().flatten().map(|pair| (pair.key.clone(), pair.value.clone())).collect()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, ours: T, theirs: T) -> Result<(), String> {
    if ours == theirs { Ok(()) } else { Err(format!("{what}: {ours:?}, parquet-rs has {theirs:?}")) }
}
