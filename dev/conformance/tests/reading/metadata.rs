//! What a footer says of its column chunks is what parquet-rs finds in it: sizes and places, bounds and counts, sorting, and
//! what writers kept beside.

use marquetry_base::Bytes;
use marquetry_parquet::format::{ColumnOrder, FileMetaData, KeyValue, RowGroup, Statistics};
use parquet::basic::{ColumnOrder as TheirOrder, Type};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataReader, RowGroupMetaData};

/// Footers that parquet-rs does not read: a part of its error.
const NOT_BY_PARQUET_RS: &[&str] = &[
    // dict-page-offset-zero.parquet and fastparquet's files without rows: an empty list of another type than the format's,
    // which is no list of anything.
    "Expected list element type of I64 but got I16",
    "Expected list element type of Struct but got Byte",
];

/// Compares; says how many column chunks.
pub(crate) fn compare(bytes: &Bytes, metadata: &FileMetaData) -> Result<usize, String> {
    let theirs = match ParquetMetaDataReader::new().parse_and_finish(bytes) {
        Ok(theirs) => theirs,
        Err(error) if NOT_BY_PARQUET_RS.iter().any(|part| error.to_string().contains(part)) => return Ok(0),
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
    let mut chunks = 0;
    for (number, (ours, theirs)) in metadata.row_groups.iter().zip(theirs.row_groups()).enumerate() {
        row_group(ours, theirs).map_err(|error| format!("row group {number}: {error}"))?;
        chunks += ours.columns.len();
    }
    Ok(chunks)
}

fn row_group(ours: &RowGroup, theirs: &RowGroupMetaData) -> Result<(), String> {
    same("rows", signed(ours.rows), theirs.num_rows())?;
    same("bytes", signed(ours.uncompressed_bytes), theirs.total_byte_size())?;
    same("columns", ours.columns.len(), theirs.num_columns())?;
    let sorting = ours.sorting_columns.iter();
    let sorting = sorting.map(|by| (i64::from(by.column), by.descending, by.nulls_first)).collect::<Vec<_>>();
    let their_sorting = theirs.sorting_columns().into_iter().flatten();
    let their_sorting = their_sorting.map(|by| (i64::from(by.column_idx), by.descending, by.nulls_first));
    same("sorting columns", sorting, their_sorting.collect())?;
    for (ours, theirs) in ours.columns.iter().zip(theirs.columns()) {
        column(ours, theirs).map_err(|error| format!("{}: {error}", theirs.column_path()))?;
    }
    Ok(())
}

fn column(ours: &marquetry_parquet::format::ColumnChunk, theirs: &ColumnChunkMetaData) -> Result<(), String> {
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

fn keys(ours: &[KeyValue]) -> Vec<(String, Option<String>)> {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
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
