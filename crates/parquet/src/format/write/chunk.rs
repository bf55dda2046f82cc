//! Writes a column chunk (`ColumnChunk`, `ColumnMetaData`, `Statistics`).

use alloc::vec::Vec;

use crate::format::{
    BoundingBox, ColumnChunk, Compression, GeospatialStatistics, KeyValue, SizeStatistics, Statistics,
};
use crate::schema::{Leaf, PhysicalType, Schema};
use crate::thrift::Kind;
use crate::thrift::{FieldWriter, Writer};

/// Where the parts of a chunk that follow its pages are: offset and bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChunkPlaces {
    /// The offset index.
    pub(crate) offset_index: Option<(u64, u32)>,
    /// The column index.
    pub(crate) column_index: Option<(u64, u32)>,
}

/// Writes a chunk; `metadata` holds its metadata as written by [`write_chunk_metadata`].
pub(crate) fn write_chunk(
    writer: &mut Writer,
    file_path: Option<&str>,
    places: ChunkPlaces,
    metadata: impl FnOnce(&mut Writer),
) {
    writer.structure(|fields| {
        if let Some(path) = file_path {
            fields.binary(1, path.as_bytes());
        }
        // Required, and deprecated: "all implementations should write 0".
        fields.u64(2, 0);
        metadata(fields.head(3, Kind::Struct));
        if let Some((offset, bytes)) = places.offset_index {
            fields.u64(4, offset);
            fields.u32(5, bytes);
        }
        if let Some((offset, bytes)) = places.column_index {
            fields.u64(6, offset);
            fields.u32(7, bytes);
        }
    });
}

/// Writes the `ColumnMetaData` of a leaf.
pub(crate) fn write_chunk_metadata(writer: &mut Writer, schema: &Schema, leaf: &Leaf, chunk: &ColumnChunk) {
    writer.structure(|fields| {
        fields.i32(1, number_of(leaf.physical_type));
        let encodings = chunk.encodings.iter();
        fields.list(2, Kind::I32, encodings, |writer, encoding| writer.i64(encoding.number().into()));
        fields.list(3, Kind::Binary, path(schema, leaf).into_iter(), |writer, name| {
            writer.binary(name.as_bytes());
        });
        fields.i32(4, chunk.compression.number());
        fields.u64(5, chunk.values);
        fields.u64(6, chunk.uncompressed_bytes);
        fields.u64(7, chunk.compressed_bytes);
        if !chunk.key_values.is_empty() {
            fields.list(8, Kind::Struct, chunk.key_values.iter(), write_key_value);
        }
        fields.u64(9, chunk.data_page_offset);
        if let Some(offset) = chunk.dictionary_page_offset {
            fields.u64(11, offset);
        }
        if let Some(statistics) = &chunk.statistics {
            fields.structure(12, |fields| statistics_fields(fields, statistics));
        }
        if !chunk.encoding_stats.is_empty() {
            fields.list(13, Kind::Struct, chunk.encoding_stats.iter(), |writer, stats| {
                writer.structure(|fields| {
                    fields.i32(1, stats.page_type);
                    fields.i32(2, stats.encoding.number());
                    fields.i32(3, stats.count);
                });
            });
        }
        if let Some((offset, bytes)) = chunk.bloom_filter {
            fields.u64(14, offset);
            if let Some(bytes) = bytes {
                fields.u32(15, bytes);
            }
        }
        if let Some(sizes) = &chunk.size_statistics {
            fields.structure(16, |fields| size_fields(fields, sizes));
        }
        if let Some(places) = &chunk.geospatial_statistics {
            fields.structure(17, |fields| geospatial_fields(fields, places));
        }
    });
}

/// Writes `KeyValue`.
fn write_key_value(writer: &mut Writer, pair: &KeyValue) {
    writer.structure(|fields| {
        fields.binary(1, pair.key.as_bytes());
        if let Some(value) = &pair.value {
            fields.shared(2, value);
        }
    });
}

pub(super) fn statistics_fields(fields: &mut FieldWriter<'_>, statistics: &Statistics) {
    if let Some(max) = &statistics.deprecated_max {
        fields.shared(1, max);
    }
    if let Some(min) = &statistics.deprecated_min {
        fields.shared(2, min);
    }
    if let Some(nulls) = statistics.null_count {
        fields.u64(3, nulls);
    }
    if let Some(distinct) = statistics.distinct_count {
        fields.u64(4, distinct);
    }
    if let Some(max) = &statistics.max_value {
        fields.shared(5, max);
    }
    if let Some(min) = &statistics.min_value {
        fields.shared(6, min);
    }
    if let Some(is_exact) = statistics.is_max_value_exact {
        fields.bool(7, is_exact);
    }
    if let Some(is_exact) = statistics.is_min_value_exact {
        fields.bool(8, is_exact);
    }
    if let Some(nans) = statistics.nan_count {
        fields.u64(9, nans);
    }
}

fn size_fields(fields: &mut FieldWriter<'_>, sizes: &SizeStatistics) {
    if let Some(bytes) = sizes.unencoded_byte_array_data_bytes {
        fields.u64(1, bytes);
    }
    let histograms = [(2, &sizes.repetition_level_histogram), (3, &sizes.definition_level_histogram)];
    for (id, histogram) in histograms {
        if !histogram.is_empty() {
            fields.list(id, Kind::I64, histogram.iter(), |writer, count| writer.u64(*count));
        }
    }
}

fn geospatial_fields(fields: &mut FieldWriter<'_>, statistics: &GeospatialStatistics) {
    if let Some(BoundingBox { x, y, z, m }) = statistics.bounding_box {
        fields.structure(1, |fields| {
            for (id, side) in [(1, Some(x)), (3, Some(y)), (5, z), (7, m)] {
                if let Some((min, max)) = side {
                    fields.double(id, min);
                    fields.double(id + 1, max);
                }
            }
        });
    }
    if !statistics.geospatial_types.is_empty() {
        let types = statistics.geospatial_types.iter();
        fields.list(2, Kind::I32, types, |writer, code| writer.i64((*code).into()));
    }
}

/// The names from the root's child down to a leaf. (They do not follow from [`Leaf::path`]: a name may contain dots.)
pub(in crate::format) fn path<'a>(schema: &'a Schema, leaf: &Leaf) -> Vec<&'a str> {
    let mut names = Vec::new();
    let mut at = leaf.node;
    while at != 0 {
        let node = &schema.nodes()[at];
        names.push(node.name_in_file());
        at = node.parent;
    }
    names.reverse();
    names
}

/// The number of a physical type (`Type`).
pub(in crate::format) fn number_of(physical_type: PhysicalType) -> i32 {
    match physical_type {
        PhysicalType::Boolean => 0,
        PhysicalType::Int32 => 1,
        PhysicalType::Int64 => 2,
        PhysicalType::Int96 => 3,
        PhysicalType::Float => 4,
        PhysicalType::Double => 5,
        PhysicalType::ByteArray => 6,
        PhysicalType::FixedLenByteArray(_) => 7,
    }
}

impl Compression {
    /// Its number (`CompressionCodec`).
    fn number(self) -> i32 {
        match self {
            Compression::Uncompressed => 0,
            Compression::Codec(codec) => codec.number(),
            Compression::Unknown(number) => number,
        }
    }
}
