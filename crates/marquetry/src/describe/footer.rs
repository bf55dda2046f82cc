//! Everything that a footer says, as JSON.

use marquetry_base::print::bytes as hex;
use marquetry_parquet::format::{
    ColumnChunk, ColumnOrder, EncryptionAlgorithm, GeospatialStatistics, KeyValue, RowGroup, SizeStatistics,
    Statistics,
};
use marquetry_parquet::geometry;
use marquetry_parquet::prune::Known;
use marquetry_parquet::schema::{Leaf, LogicalType, NodeKind, Repetition, Schema};
use marquetry_tables::files::ParquetFile;
use serde::Serialize;

use super::bounds::ColumnStatistics;

/// The footer of a Parquet file as a JSON object: schema, key-value metadata, columns, row groups with the statistics of their column chunks.
/// Keys are stable. Sizes and offsets are bytes; bounds are texts that say all of the value.
pub fn footer_json(file: &ParquetFile) -> impl Serialize {
    FileJson::of(file)
}

#[derive(Serialize)]
struct FileJson<'a> {
    file: &'a str,
    bytes: u64,
    format_version: i32,
    created_by: Option<&'a str>,
    rows: u64,
    footer_bytes: u64,
    /// Of files with encrypted columns.
    #[serde(skip_serializing_if = "Option::is_none")]
    encryption: Option<String>,
    key_values: Vec<KeyValueJson<'a>>,
    schema: Vec<NodeJson<'a>>,
    columns: Vec<ColumnJson>,
    row_groups: Vec<RowGroupJson<'a>>,
}

#[derive(Serialize)]
struct KeyValueJson<'a> {
    key: &'a str,
    /// Where it is UTF-8.
    value: Option<&'a str>,
    /// Where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_hex: Option<String>,
}

/// A node of a schema, as JSON: a column, a group, or the root.
#[derive(Debug, Serialize)]
pub struct NodeJson<'a> {
    name: &'a str,
    /// 0 for the root.
    depth: usize,
    repetition: &'static str,
    /// `null` for groups.
    physical_type: Option<String>,
    logical_type: Option<String>,
    /// Of GEOMETRY and GEOGRAPHY, where the writer named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    crs: Option<&'a str>,
    converted_type: Option<i32>,
    field_id: Option<i32>,
}

/// A column over all row groups.
#[derive(Serialize)]
struct ColumnJson {
    path: String,
    physical_type: String,
    logical_type: Option<String>,
    definition_level_max: u16,
    repetition_level_max: u16,
    order: Option<String>,
    codecs: Vec<String>,
    encodings: Vec<String>,
    compressed_bytes: u64,
    uncompressed_bytes: u64,
    values: u64,
    nulls: Option<u64>,
    nans: Option<u64>,
    /// Of a file with one row group, if the writer counted them.
    distinct: Option<u64>,
    min: Option<String>,
    max: Option<String>,
    is_min_exact: Option<bool>,
    is_max_exact: Option<bool>,
}

#[derive(Serialize)]
struct RowGroupJson<'a> {
    first_row: u64,
    rows: u64,
    uncompressed_bytes: u64,
    compressed_bytes: Option<u64>,
    file_offset: Option<u64>,
    ordinal: Option<i16>,
    sorting_columns: Vec<SortingJson>,
    columns: Vec<ChunkJson<'a>>,
}

#[derive(Serialize)]
struct SortingJson {
    path: Option<String>,
    descending: bool,
    nulls_first: bool,
}

#[derive(Serialize)]
struct ChunkJson<'a> {
    path: String,
    codec: String,
    encodings: Vec<String>,
    values: u64,
    compressed_bytes: u64,
    uncompressed_bytes: u64,
    dictionary_page_offset: Option<u64>,
    data_page_offset: u64,
    statistics: Option<StatisticsJson>,
    size_statistics: Option<SizesJson<'a>>,
    geospatial_statistics: Option<GeospatialJson>,
    encoding_stats: Vec<EncodingStatsJson>,
    bloom_filter_offset: Option<u64>,
    bloom_filter_bytes: Option<u32>,
    column_index_offset: Option<u64>,
    column_index_bytes: Option<u32>,
    offset_index_offset: Option<u64>,
    offset_index_bytes: Option<u32>,
    key_values: Vec<KeyValueJson<'a>>,
    file_path: Option<&'a str>,
    encrypted: bool,
}

#[derive(Serialize)]
struct EncodingStatsJson {
    page_type: i32,
    encoding: String,
    pages: i32,
}

#[derive(Serialize)]
struct SizesJson<'a> {
    unencoded_byte_array_data_bytes: Option<u64>,
    repetition_level_histogram: &'a [u64],
    definition_level_histogram: &'a [u64],
}

#[derive(Serialize)]
struct GeospatialJson {
    bounding_box: Option<BoxJson>,
    /// ISO WKB codes.
    geospatial_types: Vec<i32>,
    /// The names of those that are known.
    geospatial_type_names: Vec<String>,
}

/// What is not there, or is not finite, which JSON has no numbers for, is `null`.
#[derive(Serialize)]
struct BoxJson {
    xmin: f64,
    xmax: f64,
    ymin: f64,
    ymax: f64,
    zmin: Option<f64>,
    zmax: Option<f64>,
    mmin: Option<f64>,
    mmax: Option<f64>,
}

/// What the statistics of a column chunk or a page say, as JSON: `min` and `max` are what can be trusted, as text; the bytes are there in any case.
#[derive(Debug, Serialize)]
pub struct StatisticsJson {
    min: Option<String>,
    max: Option<String>,
    null_count: Option<u64>,
    distinct_count: Option<u64>,
    nan_count: Option<u64>,
    min_value_hex: Option<String>,
    max_value_hex: Option<String>,
    is_min_value_exact: Option<bool>,
    is_max_value_exact: Option<bool>,
    deprecated_min_hex: Option<String>,
    deprecated_max_hex: Option<String>,
}

impl<'a> FileJson<'a> {
    fn of(file: &'a ParquetFile) -> FileJson<'a> {
        let metadata = &**file.metadata();
        let leaves = metadata.schema.leaves().iter().enumerate();
        FileJson {
            file: file.name(),
            bytes: file.bytes(),
            format_version: metadata.version,
            created_by: metadata.created_by.as_deref(),
            rows: metadata.rows,
            footer_bytes: metadata.footer_bytes,
            encryption: metadata.encryption.map(encryption_name),
            key_values: metadata.key_values.iter().map(KeyValueJson::of).collect(),
            schema: schema_json(&metadata.schema),
            columns: leaves.map(|(index, leaf)| ColumnJson::of(file, index, leaf)).collect(),
            row_groups: metadata.row_groups.iter().map(|group| RowGroupJson::of(file, group)).collect(),
        }
    }
}

/// The nodes of a schema, as JSON: the root, and each before what is below it.
pub fn schema_json(schema: &Schema) -> Vec<NodeJson<'_>> {
    let mut depths = vec![0; schema.nodes().len()];
    let mut nodes = Vec::with_capacity(depths.len());
    for (at, node) in schema.nodes().iter().enumerate() {
        if at > 0 {
            depths[at] = depths[node.parent] + 1;
        }
        nodes.push(NodeJson {
            name: node.name_in_file(),
            depth: depths[at],
            repetition: match node.repetition {
                Repetition::Required => "required",
                Repetition::Optional => "optional",
                Repetition::Repeated => "repeated",
            },
            physical_type: match node.kind {
                NodeKind::Leaf { leaf } => Some(schema.leaves()[leaf].physical_type.to_string()),
                NodeKind::Group { .. } => None,
            },
            logical_type: node.logical_type.as_ref().map(ToString::to_string),
            crs: match &node.logical_type {
                Some(LogicalType::Geometry { crs } | LogicalType::Geography { crs, .. }) => crs.as_deref(),
                _ => None,
            },
            converted_type: node.converted_type.map(|converted| converted.0),
            field_id: node.field_id,
        });
    }
    nodes
}

impl ColumnJson {
    fn of(file: &ParquetFile, index: usize, leaf: &Leaf) -> ColumnJson {
        let metadata = &**file.metadata();
        let statistics = ColumnStatistics::of(metadata, index, leaf);
        let known = statistics.map(|it| it.of_column(metadata, index)).unwrap_or_default();
        let text = |bound| statistics.and_then(|it| it.exact_text(bound));
        let chunks = || metadata.row_groups.iter().filter_map(|group| group.columns.get(index));
        let sum = |of: fn(&ColumnChunk) -> u64| chunks().map(of).fold(0_u64, u64::saturating_add);
        let mut codecs: Vec<String> = chunks().map(|chunk| chunk.compression.to_string()).collect();
        codecs.sort();
        codecs.dedup();
        let mut encodings: Vec<_> = chunks().flat_map(|chunk| chunk.encodings.iter().copied()).collect();
        encodings.sort();
        encodings.dedup();
        ColumnJson {
            path: metadata.schema.path(leaf.node),
            physical_type: leaf.physical_type.to_string(),
            logical_type: metadata.schema.node_of(leaf).logical_type.as_ref().map(ToString::to_string),
            definition_level_max: leaf.definition_max,
            repetition_level_max: leaf.repetition_max,
            order: metadata.column_orders.get(index).map(|order| order_name(*order)),
            codecs,
            encodings: encodings.iter().map(ToString::to_string).collect(),
            compressed_bytes: sum(|chunk| chunk.compressed_bytes),
            uncompressed_bytes: sum(|chunk| chunk.uncompressed_bytes),
            values: sum(|chunk| chunk.values),
            nulls: known.nulls,
            nans: known.nans,
            distinct: known.distinct,
            min: text(known.min),
            max: text(known.max),
            is_min_exact: known.min.and_then(|bound| bound.is_exact),
            is_max_exact: known.max.and_then(|bound| bound.is_exact),
        }
    }
}

impl<'a> RowGroupJson<'a> {
    fn of(file: &'a ParquetFile, group: &'a RowGroup) -> RowGroupJson<'a> {
        let leaves = file.metadata().schema.leaves();
        RowGroupJson {
            first_row: group.first_row,
            rows: group.rows,
            uncompressed_bytes: group.uncompressed_bytes,
            compressed_bytes: group.compressed_bytes,
            file_offset: group.file_offset,
            ordinal: group.ordinal,
            sorting_columns: group
                .sorting_columns
                .iter()
                .map(|sorting| SortingJson {
                    path: leaves
                        .get(marquetry_base::cast::usize_of_u32(sorting.column))
                        .map(|leaf| file.metadata().schema.path(leaf.node)),
                    descending: sorting.descending,
                    nulls_first: sorting.nulls_first,
                })
                .collect(),
            columns: leaves
                .iter()
                .zip(&group.columns)
                .enumerate()
                .map(|(index, (leaf, chunk))| ChunkJson::of(file, index, leaf, chunk))
                .collect(),
        }
    }
}

impl<'a> ChunkJson<'a> {
    fn of(file: &'a ParquetFile, index: usize, leaf: &'a Leaf, chunk: &'a ColumnChunk) -> ChunkJson<'a> {
        let shown = ColumnStatistics::of(file.metadata(), index, leaf);
        ChunkJson {
            path: file.metadata().schema.path(leaf.node),
            codec: chunk.compression.to_string(),
            encodings: chunk.encodings.iter().map(ToString::to_string).collect(),
            values: chunk.values,
            compressed_bytes: chunk.compressed_bytes,
            uncompressed_bytes: chunk.uncompressed_bytes,
            dictionary_page_offset: chunk.dictionary_page_offset,
            data_page_offset: chunk.data_page_offset,
            statistics: chunk.statistics.as_deref().zip(shown).map(|(statistics, shown)| {
                StatisticsJson::of(statistics, shown.order.of_chunk(chunk), &shown)
            }),
            size_statistics: chunk.size_statistics.as_deref().map(SizesJson::of),
            geospatial_statistics: chunk.geospatial_statistics.as_deref().map(GeospatialJson::of),
            encoding_stats: chunk
                .encoding_stats
                .iter()
                .map(|stats| EncodingStatsJson {
                    page_type: stats.page_type,
                    encoding: stats.encoding.to_string(),
                    pages: stats.count,
                })
                .collect(),
            bloom_filter_offset: chunk.bloom_filter.map(|(offset, _)| offset),
            bloom_filter_bytes: chunk.bloom_filter.and_then(|(_, bytes)| bytes),
            column_index_offset: chunk.column_index.map(|(offset, _)| offset),
            column_index_bytes: chunk.column_index.map(|(_, bytes)| bytes),
            offset_index_offset: chunk.offset_index.map(|(offset, _)| offset),
            offset_index_bytes: chunk.offset_index.map(|(_, bytes)| bytes),
            key_values: chunk.key_values.iter().map(KeyValueJson::of).collect(),
            file_path: chunk.file_path.as_deref(),
            encrypted: chunk.encrypted,
        }
    }
}

impl StatisticsJson {
    /// What statistics say, and what of it holds.
    pub fn of(statistics: &Statistics, known: Known<'_>, shown: &ColumnStatistics) -> StatisticsJson {
        let hexed = |bytes: &Option<marquetry_base::Bytes>| bytes.as_deref().map(to_hex);
        StatisticsJson {
            min: shown.exact_text(known.min),
            max: shown.exact_text(known.max),
            null_count: statistics.null_count,
            distinct_count: statistics.distinct_count,
            nan_count: statistics.nan_count,
            min_value_hex: hexed(&statistics.min_value),
            max_value_hex: hexed(&statistics.max_value),
            is_min_value_exact: statistics.is_min_value_exact,
            is_max_value_exact: statistics.is_max_value_exact,
            deprecated_min_hex: hexed(&statistics.deprecated_min),
            deprecated_max_hex: hexed(&statistics.deprecated_max),
        }
    }
}

impl<'a> KeyValueJson<'a> {
    fn of(pair: &'a KeyValue) -> KeyValueJson<'a> {
        let value = pair.value.as_deref();
        let text = value.and_then(|bytes| std::str::from_utf8(bytes).ok());
        KeyValueJson { key: &pair.key, value: text, value_hex: value.filter(|_| text.is_none()).map(to_hex) }
    }
}

impl<'a> SizesJson<'a> {
    fn of(sizes: &'a SizeStatistics) -> SizesJson<'a> {
        SizesJson {
            unencoded_byte_array_data_bytes: sizes.unencoded_byte_array_data_bytes,
            repetition_level_histogram: &sizes.repetition_level_histogram,
            definition_level_histogram: &sizes.definition_level_histogram,
        }
    }
}

impl GeospatialJson {
    fn of(statistics: &GeospatialStatistics) -> GeospatialJson {
        let codes = &statistics.geospatial_types;
        GeospatialJson {
            bounding_box: statistics.bounding_box.map(|it| BoxJson {
                xmin: it.x.0,
                xmax: it.x.1,
                ymin: it.y.0,
                ymax: it.y.1,
                zmin: it.z.map(|z| z.0),
                zmax: it.z.map(|z| z.1),
                mmin: it.m.map(|m| m.0),
                mmax: it.m.map(|m| m.1),
            }),
            geospatial_types: codes.clone(),
            geospatial_type_names: codes.iter().filter_map(|code| geometry_name(*code)).collect(),
        }
    }
}

/// The name of an ISO WKB code: `Point Z`. `None` for one that is not known.
pub fn geometry_name(code: i32) -> Option<String> {
    let (name, dimensions) = geometry::type_name(code)?;
    Some(format!("{name} {dimensions}").trim_end().to_string())
}

/// The name of an order of values.
pub fn order_name(order: ColumnOrder) -> String {
    match order {
        ColumnOrder::TypeDefined => "type_defined".to_string(),
        ColumnOrder::Ieee754Total => "ieee754_total".to_string(),
        ColumnOrder::Int96Timestamp => "int96_timestamp".to_string(),
        ColumnOrder::Unknown(number) => format!("unknown {number}"),
    }
}

/// The name of an algorithm of encryption.
pub fn encryption_name(algorithm: EncryptionAlgorithm) -> String {
    match algorithm {
        EncryptionAlgorithm::AesGcmV1 => "AES_GCM_V1".to_string(),
        EncryptionAlgorithm::AesGcmCtrV1 => "AES_GCM_CTR_V1".to_string(),
        EncryptionAlgorithm::Unknown(number) => format!("unknown {number}"),
    }
}

/// Bytes as hexadecimal digits, after `0x`.
pub fn to_hex(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    hex(&mut out, bytes);
    String::from_utf8_lossy(&out).into_owned()
}
