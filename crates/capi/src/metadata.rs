//! What a footer says.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowSchema;
use marquetry_arrow::{ArrowOptions, ToArrow};
use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};
use marquetry_parquet::format::{ColumnChunk, Compression, KeyValue};
use marquetry_parquet::prune::LeafOrder;
use marquetry_parquet::schema::PhysicalType;

use crate::abi::{
    marquetry_chunk_info, marquetry_column_info, marquetry_file_info, marquetry_physical_type,
    marquetry_status, marquetry_text,
};
use crate::error::answer;
use crate::footer::Metadata;
use crate::handles::{self, call, create, marquetry_error, marquetry_metadata};
use crate::text::{Text, no_text};
use crate::{arguments, reserve};

const CREATED_BY: u8 = 0;
const PATH: u8 = 1;
const KEY: u8 = 2;

impl Metadata {
    fn lend(&mut self, what: u8, number: usize, text: &str) -> Result<marquetry_text> {
        match self.texts.entry((what, number)) {
            Entry::Occupied(made) => Ok(made.get().lent()),
            Entry::Vacant(place) => Ok(place.insert(Text::new(text)?).lent()),
        }
    }
}

fn with<R>(metadata: *const marquetry_metadata, work: impl FnOnce(&mut Metadata) -> Result<R>) -> Result<R> {
    call(|| handles::with::<Metadata, _>(metadata, work))
}

fn index(given: u64, count: usize, what: &str) -> Result<usize> {
    let at = usize::try_from(given).ok().filter(|&at| at < count);
    at.ok_or_else(|| Error::misuse(format!("{what} {given} of {count}")))
}

/// Says what a file has.
///
/// * `metadata`: in, borrowed. Texts in `info` are borrowed from it.
/// * `info`: out; `struct_size` must be set.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_metadata_file(
    metadata: *const marquetry_metadata,
    info: *mut marquetry_file_info,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with(metadata, |metadata| {
        let file = Arc::clone(&metadata.file);
        let created_by = match &file.created_by {
            Some(text) => metadata.lend(CREATED_BY, 0, text)?,
            None => no_text(),
        };
        let found = marquetry_file_info {
            struct_size: 0,
            rows: file.rows,
            row_groups: u64_of(file.row_groups.len()),
            columns: u64_of(file.schema.leaves().len()),
            key_values: u64_of(file.key_values.len()),
            file_bytes: file.file_bytes(),
            created_by,
        };
        arguments::answer(info, found)
    });
    answer(done, error)
}

/// The number of a column, by its path: the one with exactly this path, or else in lower case.
///
/// * `metadata`: in, borrowed.
/// * `path`: in, borrowed: names with dots. It must lead to a leaf.
/// * `column`: out.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_metadata_find_column(
    metadata: *const marquetry_metadata,
    path: *const core::ffi::c_char,
    column: *mut u64,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with(metadata, |metadata| {
        let path = arguments::text(path, "a path")?.ok_or_else(|| Error::misuse("a path that is NULL"))?;
        let leaves = crate::reader::leaves_at(&metadata.file.schema, path)?;
        match leaves[..] {
            [leaf] => arguments::put(column, u64_of(leaf)),
            _ => Err(Error::misuse(format!("{path} is a group of {} columns", leaves.len()))),
        }
    });
    answer(done, error)
}

/// Says what a column is.
///
/// * `metadata`: in, borrowed. Texts in `info` are borrowed from it.
/// * `column`: from 0.
/// * `info`: out; `struct_size` must be set.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_metadata_column(
    metadata: *const marquetry_metadata,
    column: u64,
    info: *mut marquetry_column_info,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with(metadata, |metadata| {
        let file = Arc::clone(&metadata.file);
        let at = index(column, file.schema.leaves().len(), "column")?;
        let leaf = &file.schema.leaves()[at];
        let (physical_type, type_length) = match leaf.physical_type {
            PhysicalType::Boolean => (marquetry_physical_type::Boolean, 0),
            PhysicalType::Int32 => (marquetry_physical_type::Int32, 0),
            PhysicalType::Int64 => (marquetry_physical_type::Int64, 0),
            PhysicalType::Int96 => (marquetry_physical_type::Int96, 0),
            PhysicalType::Float => (marquetry_physical_type::Float, 0),
            PhysicalType::Double => (marquetry_physical_type::Double, 0),
            PhysicalType::ByteArray => (marquetry_physical_type::ByteArray, 0),
            PhysicalType::FixedLenByteArray(length) => (marquetry_physical_type::FixedLenByteArray, length),
        };
        let found = marquetry_column_info {
            struct_size: 0,
            path: metadata.lend(PATH, at, &file.schema.leaf_path(at))?,
            physical_type,
            type_length,
            definition_level_max: leaf.definition_max.into(),
            repetition_level_max: leaf.repetition_max.into(),
            field_id: file.schema.node_of(leaf).field_id.map_or(-1, i64::from),
        };
        arguments::answer(info, found)
    });
    answer(done, error)
}

/// The rows of a row group.
///
/// * `metadata`: in, borrowed.
/// * `row_group`: from 0.
/// * `first_row`, `rows`: out; either may be NULL.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_metadata_row_group(
    metadata: *const marquetry_metadata,
    row_group: u64,
    first_row: *mut u64,
    rows: *mut u64,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with(metadata, |metadata| {
        let groups = &metadata.file.row_groups;
        let group = &groups[index(row_group, groups.len(), "row group")?];
        if !first_row.is_null() {
            arguments::put(first_row, group.first_row)?;
        }
        if rows.is_null() { Ok(()) } else { arguments::put(rows, group.rows) }
    });
    answer(done, error)
}

/// Says what a column chunk is, and what its statistics say. Bounds that cannot be relied on, because the format's older writers ordered them
/// otherwise, are left out.
///
/// * `metadata`: in, borrowed. Bounds in `info` are borrowed from it.
/// * `row_group`, `column`: from 0.
/// * `info`: out; `struct_size` must be set.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_metadata_chunk(
    metadata: *const marquetry_metadata,
    row_group: u64,
    column: u64,
    info: *mut marquetry_chunk_info,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with(metadata, |metadata| {
        let file = &metadata.file;
        let group = &file.row_groups[index(row_group, file.row_groups.len(), "row group")?];
        let at = index(column, group.columns.len(), "column")?;
        let chunk: &ColumnChunk = &group.columns[at];
        let order = LeafOrder::of(file, at).ok_or_else(|| Error::internal("a chunk of no leaf"))?;
        let known = order.of_chunk(chunk);
        let none = (core::ptr::null(), 0);
        let bound = |bytes: Option<&[u8]>| bytes.map_or(none, |bytes| (bytes.as_ptr(), bytes.len()));
        let (min, max) = (known.min.map(|bound| bound.value), known.max.map(|bound| bound.value));
        let ((min, min_length), (max, max_length)) = (bound(min), bound(max));
        let count = |count: Option<u64>| count.and_then(|count| i64::try_from(count).ok()).unwrap_or(-1);
        let found = marquetry_chunk_info {
            struct_size: 0,
            values: chunk.values,
            offset: chunk.first_page_offset(),
            compressed_bytes: chunk.compressed_bytes,
            uncompressed_bytes: chunk.uncompressed_bytes,
            codec: codec_number(chunk.compression),
            nulls: count(known.nulls),
            distinct: count(chunk.statistics.as_ref().and_then(|statistics| statistics.distinct_count)),
            min,
            min_length,
            max,
            max_length,
        };
        arguments::answer(info, found)
    });
    answer(done, error)
}

fn codec_number(compression: Compression) -> i32 {
    use marquetry_base::Codec;
    match compression {
        Compression::Uncompressed => 0,
        Compression::Codec(Codec::Snappy) => 1,
        Compression::Codec(Codec::Gzip) => 2,
        Compression::Codec(Codec::Lzo) => 3,
        Compression::Codec(Codec::Brotli) => 4,
        Compression::Codec(Codec::Lz4) => 5,
        Compression::Codec(Codec::Zstd) => 6,
        Compression::Codec(Codec::Lz4Raw) => 7,
        Compression::Unknown(number) => number,
        _ => -1,
    }
}

/// A pair of key-value metadata.
///
/// * `metadata`: in, borrowed.
/// * `number`: from 0.
/// * `key`: out, borrowed from the metadata.
/// * `value`, `value_length`: out, borrowed from the metadata; NULL if the key has no value. Bytes: some writers store no text.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_metadata_key_value(
    metadata: *const marquetry_metadata,
    number: u64,
    key: *mut marquetry_text,
    value: *mut *const u8,
    value_length: *mut usize,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with(metadata, |metadata| {
        let file = Arc::clone(&metadata.file);
        let at = index(number, file.key_values.len(), "pair")?;
        let pair: &KeyValue = &file.key_values[at];
        arguments::put(key, metadata.lend(KEY, at, &pair.key)?)?;
        let bytes = pair.value.as_deref();
        arguments::put(value, bytes.map_or(core::ptr::null(), <[u8]>::as_ptr))?;
        arguments::put(value_length, bytes.map_or(0, <[u8]>::len))
    });
    answer(done, error)
}

/// The file's schema as Arrow's, with the types that its writer stored, if it did.
///
/// * `metadata`: in, borrowed.
/// * `schema`: out, owned by the host: its `release`.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_metadata_schema(
    metadata: *const marquetry_metadata,
    schema: *mut FFI_ArrowSchema,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with(metadata, |metadata| {
        reserve::section(|| {
            let to_arrow = ToArrow::of_file(&metadata.file, None, ArrowOptions::default())?;
            arguments::put(schema, reserve::kept(crate::reader::exported(to_arrow.schema())?)?)
        })
    });
    answer(done, error)
}

/// Another handle of the same metadata, for another thread.
///
/// * `metadata`: in, borrowed.
/// * `other`: out, owned by the host.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_metadata_share(
    metadata: *const marquetry_metadata,
    other: *mut *mut marquetry_metadata,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with(metadata, |metadata| {
        arguments::put_new(other, || create(Metadata::new(Arc::clone(&metadata.file))))
    });
    answer(done, error)
}

/// Frees metadata. `metadata`: in, owned; NULL does nothing. Readers that were made with it go on.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_metadata_free(metadata: *mut marquetry_metadata) -> marquetry_status {
    answer(call(|| handles::free::<Metadata>(metadata)), core::ptr::null_mut())
}
