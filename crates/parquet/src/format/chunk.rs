//! A column chunk and what it holds (`ColumnChunk`, `ColumnMetaData`, `Statistics`, …), read.

use alloc::boxed::Box;
use alloc::string::String;

use marquetry_base::Bytes;

use super::{
    ColumnChunk, Compression, Encoding, KeyValue, PageEncodingStats, SortingColumn, Statistics,
    statistics as more,
};
use crate::thrift::{Fields, Kind, Reader, Stop, Thrift, Wanted};

pub(super) const KEY_VALUE_FIELDS: Fields = &[(1, Wanted::Scalar), (2, Wanted::Bytes)];
pub(super) const COLUMN_CHUNK_FIELDS: Fields = &[
    (1, Wanted::Scalar),
    (3, Wanted::Struct(COLUMN_METADATA_FIELDS)),
    (4, Wanted::Scalar),
    (5, Wanted::Scalar),
    (6, Wanted::Scalar),
    (7, Wanted::Scalar),
    (8, Wanted::Struct(&[])),
    (9, Wanted::Struct(&[])),
];
const COLUMN_METADATA_FIELDS: Fields = &[
    (2, Wanted::Scalars),
    (4, Wanted::Scalar),
    (5, Wanted::Scalar),
    (6, Wanted::Scalar),
    (7, Wanted::Scalar),
    (8, Wanted::Structs(KEY_VALUE_FIELDS)),
    (9, Wanted::Scalar),
    (11, Wanted::Scalar),
    (12, Wanted::Struct(STATISTICS_FIELDS)),
    (13, Wanted::Structs(&[(1, Wanted::Scalar), (2, Wanted::Scalar), (3, Wanted::Scalar)])),
    (14, Wanted::Scalar),
    (15, Wanted::Scalar),
    (16, Wanted::Struct(more::SIZE_FIELDS)),
    (17, Wanted::Struct(more::GEOSPATIAL_FIELDS)),
];
/// The known fields of `Statistics`, with bounds of any length, and with short ones.
const STATISTICS_FIELDS: Fields = &statistics_fields(Wanted::Bytes);
pub(super) const SHORT_STATISTICS_FIELDS: Fields = &statistics_fields(Wanted::Short);

const fn statistics_fields(bound: Wanted) -> [(i16, Wanted); 9] {
    [
        (1, bound),
        (2, bound),
        (3, Wanted::Scalar),
        (4, Wanted::Scalar),
        (5, bound),
        (6, bound),
        (7, Wanted::Scalar),
        (8, Wanted::Scalar),
        (9, Wanted::Scalar),
    ]
}

pub(super) fn column_chunk(reader: &mut Reader<'_>) -> Thrift<ColumnChunk> {
    let mut chunk = ColumnChunk::default();
    let (mut has_metadata, mut column_index, mut offset_index) = (false, (None, None), (None, None));
    reader.structure(|reader, field| {
        match field.id {
            1 => chunk.file_path = Some(reader.expect(field, Kind::Binary, Reader::string)?),
            3 => {
                reader.expect(field, Kind::Struct, |reader| column_metadata(reader, &mut chunk))?;
                has_metadata = true;
            }
            4 => offset_index.0 = Some(reader.expect(field, Kind::I64, unsigned)?),
            5 => offset_index.1 = Some(reader.expect(field, Kind::I32, unsigned_32)?),
            6 => column_index.0 = Some(reader.expect(field, Kind::I64, unsigned)?),
            7 => column_index.1 = Some(reader.expect(field, Kind::I32, unsigned_32)?),
            8 | 9 => {
                chunk.encrypted = true;
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if !has_metadata && !chunk.encrypted {
        return reader.corrupt("a column chunk without metadata");
    }
    // Zero bytes: a writer's way of saying none.
    chunk.column_index = column_index.0.zip(column_index.1).filter(|(_, bytes)| *bytes > 0);
    chunk.offset_index = offset_index.0.zip(offset_index.1).filter(|(_, bytes)| *bytes > 0);
    Ok(chunk)
}

fn column_metadata(reader: &mut Reader<'_>, chunk: &mut ColumnChunk) -> Thrift<()> {
    let (mut codec, mut values, mut uncompressed, mut compressed, mut data_page) =
        (None, None, None, None, None);
    let mut bloom = (None, None);
    reader.structure(|reader, field| {
        match field.id {
            2 => {
                chunk.encodings =
                    reader.expect(field, Kind::List, |reader| reader.each(Kind::I32, encoding))?
            }
            4 => codec = Some(Compression::from_thrift(reader.expect(field, Kind::I32, Reader::i32)?)),
            5 => values = Some(reader.expect(field, Kind::I64, unsigned)?),
            6 => uncompressed = Some(reader.expect(field, Kind::I64, unsigned)?),
            7 => compressed = Some(reader.expect(field, Kind::I64, unsigned)?),
            8 => {
                chunk.key_values =
                    reader.expect(field, Kind::List, |reader| reader.each(Kind::Struct, key_value))?;
            }
            9 => data_page = Some(reader.expect(field, Kind::I64, unsigned)?),
            11 => {
                // Negative: a writer's way of saying none.
                let offset = reader.expect(field, Kind::I64, Reader::i64)?;
                chunk.dictionary_page_offset = u64::try_from(offset).ok();
            }
            12 => chunk.statistics = Some(Box::new(reader.expect(field, Kind::Struct, statistics)?)),
            13 => {
                chunk.encoding_stats = reader
                    .expect(field, Kind::List, |reader| reader.each(Kind::Struct, page_encoding_stats))?;
            }
            14 => bloom.0 = Some(reader.expect(field, Kind::I64, unsigned)?),
            15 => bloom.1 = Some(reader.expect(field, Kind::I32, unsigned_32)?),
            16 => {
                let sizes = reader.expect(field, Kind::Struct, more::size_statistics)?;
                chunk.size_statistics = Some(Box::new(sizes));
            }
            17 => {
                let places = reader.expect(field, Kind::Struct, more::geospatial_statistics)?;
                chunk.geospatial_statistics = Some(Box::new(places));
            }
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let missing = |why| Stop::Corrupt(reader.at(), why);
    chunk.compression = codec.ok_or_else(|| missing("a column chunk without a codec"))?;
    chunk.values = values.ok_or_else(|| missing("a column chunk without a number of values"))?;
    chunk.uncompressed_bytes =
        uncompressed.ok_or_else(|| missing("a column chunk without its uncompressed size"))?;
    chunk.compressed_bytes =
        compressed.ok_or_else(|| missing("a column chunk without its compressed size"))?;
    chunk.data_page_offset =
        data_page.ok_or_else(|| missing("a column chunk without its first page's offset"))?;
    chunk.bloom_filter = bloom.0.map(|offset| (offset, bloom.1));
    Ok(())
}

/// Reads `Statistics`.
fn statistics(reader: &mut Reader<'_>) -> Thrift<Statistics> {
    statistics_with(reader, |reader| reader.bytes().map(Some))
}

/// Reads `Statistics`, but not long bounds.
pub(super) fn short_statistics(reader: &mut Reader<'_>) -> Thrift<Statistics> {
    statistics_with(reader, |reader| reader.short_bytes())
}

/// Checks `Statistics` as if they were read, and keeps nothing of them.
pub(super) fn check_statistics(reader: &mut Reader<'_>) -> Thrift<()> {
    statistics_with(reader, |reader| reader.binary().map(|_| None)).map(drop)
}

fn statistics_with(
    reader: &mut Reader<'_>,
    bound: fn(&mut Reader<'_>) -> Thrift<Option<Bytes>>,
) -> Thrift<Statistics> {
    let mut statistics = Statistics::default();
    // Invalid counts are treated as unknown: statistics are hints, and old writers left garbage in them.
    let count = |reader: &mut Reader<'_>, field| -> Thrift<Option<u64>> {
        Ok(u64::try_from(reader.expect(field, Kind::I64, Reader::i64)?).ok())
    };
    reader.structure(|reader, field| {
        match field.id {
            1 => statistics.deprecated_max = reader.expect(field, Kind::Binary, bound)?,
            2 => statistics.deprecated_min = reader.expect(field, Kind::Binary, bound)?,
            3 => statistics.null_count = count(reader, field)?,
            4 => statistics.distinct_count = count(reader, field)?,
            5 => statistics.max_value = reader.expect(field, Kind::Binary, bound)?,
            6 => statistics.min_value = reader.expect(field, Kind::Binary, bound)?,
            7 => statistics.is_max_value_exact = Some(reader.bool(field)?),
            8 => statistics.is_min_value_exact = Some(reader.bool(field)?),
            9 => statistics.nan_count = count(reader, field)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(statistics)
}

/// Reads an `Encoding`.
pub(super) fn encoding(reader: &mut Reader<'_>) -> Thrift<Encoding> {
    Ok(Encoding::from_thrift(reader.i32()?))
}

pub(super) fn key_value(reader: &mut Reader<'_>) -> Thrift<KeyValue> {
    let mut pair = KeyValue { key: String::new(), value: None };
    reader.structure(|reader, field| {
        match field.id {
            1 => pair.key = reader.expect(field, Kind::Binary, lossy_string)?,
            2 => pair.value = Some(reader.expect(field, Kind::Binary, Reader::bytes)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(pair)
}

pub(super) fn sorting_column(reader: &mut Reader<'_>) -> Thrift<SortingColumn> {
    let mut column = SortingColumn { column: 0, descending: false, nulls_first: false };
    reader.structure(|reader, field| {
        match field.id {
            1 => column.column = reader.expect(field, Kind::I32, unsigned_32)?,
            2 => column.descending = reader.bool(field)?,
            3 => column.nulls_first = reader.bool(field)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(column)
}

fn page_encoding_stats(reader: &mut Reader<'_>) -> Thrift<PageEncodingStats> {
    let mut stats = PageEncodingStats { page_type: 0, encoding: Encoding::Plain, count: 0 };
    reader.structure(|reader, field| {
        match field.id {
            1 => stats.page_type = reader.expect(field, Kind::I32, Reader::i32)?,
            2 => stats.encoding = reader.expect(field, Kind::I32, encoding)?,
            3 => stats.count = reader.expect(field, Kind::I32, Reader::i32)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(stats)
}

pub(super) fn unsigned(reader: &mut Reader<'_>) -> Thrift<u64> {
    let number = reader.i64()?;
    u64::try_from(number).or_else(|_| reader.corrupt("a negative count, size or offset"))
}

pub(super) fn unsigned_32(reader: &mut Reader<'_>) -> Thrift<u32> {
    let number = reader.i32()?;
    u32::try_from(number).or_else(|_| reader.corrupt("a negative count, size or offset"))
}

/// Text that only people read: invalid UTF-8 is replaced.
pub(super) fn lossy_string(reader: &mut Reader<'_>) -> Thrift<String> {
    Ok(String::from_utf8_lossy(reader.binary()?).into_owned())
}
