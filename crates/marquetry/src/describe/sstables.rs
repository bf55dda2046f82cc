//! What is known of SSTables, for programs.

use std::collections::BTreeMap;

use marquetry_base::print;
use marquetry_scylla::sstable::batch::NO_DELETION_TIME;
use marquetry_scylla::sstable::statistics::Histogram;
use marquetry_tables::sstables::{
    ColumnRole, Facts, LargePartition, SstableDescription, SstablesDescription,
};
use serde::Serialize;

/// A description of SSTables as a JSON object. Keys are stable. Sizes are bytes; write times are microseconds since 1970, local deletion
/// times, TTLs and times when something may be dropped are seconds.
pub fn sstables_json<'a>(
    described: &'a SstablesDescription,
    largest: Option<&'a [LargePartition]>,
) -> impl Serialize + use<'a> {
    SstablesJson {
        name: &described.name,
        table: described.table.as_deref(),
        definition: described.definition.as_deref(),
        left_out: &described.left_out,
        columns: described.columns.iter().map(ColumnJson::of).collect(),
        total: FactsJson::of(&described.total),
        sstables: described.sstables.iter().map(SstableJson::of).collect(),
        largest_partitions: largest.map(|largest| largest.iter().map(PartitionJson::of).collect()),
    }
}

#[derive(Serialize)]
struct SstablesJson<'a> {
    name: &'a str,
    table: Option<&'a str>,
    definition: Option<&'a str>,
    left_out: &'a [String],
    columns: Vec<ColumnJson<'a>>,
    total: FactsJson,
    sstables: Vec<SstableJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    largest_partitions: Option<Vec<PartitionJson<'a>>>,
}

#[derive(Serialize)]
struct ColumnJson<'a> {
    name: &'a str,
    r#type: &'a str,
    role: &'static str,
    is_descending: bool,
}

impl<'a> ColumnJson<'a> {
    fn of(column: &'a marquetry_tables::sstables::DescribedColumn) -> ColumnJson<'a> {
        let role = match column.role {
            ColumnRole::PartitionKey => "partition_key",
            ColumnRole::Clustering => "clustering",
            ColumnRole::Static => "static",
            _ => "regular",
        };
        ColumnJson { name: &column.name, r#type: &column.kind, role, is_descending: column.is_descending }
    }
}

#[derive(Serialize)]
struct SstableJson<'a> {
    name: &'a str,
    version: &'a str,
    format: &'a str,
    components: BTreeMap<&'a str, u64>,
    compression: Option<CompressionJson<'a>>,
    partitioner: &'a str,
    level: i32,
    repaired_at: Option<i64>,
    host_id: Option<String>,
    token_space_coverage: Option<f64>,
    #[serde(flatten)]
    facts: FactsJson,
}

impl<'a> SstableJson<'a> {
    fn of(sstable: &'a SstableDescription) -> SstableJson<'a> {
        let uuid = |bytes: [u8; 16]| {
            let mut text = Vec::new();
            print::uuid(&mut text, &bytes);
            String::from_utf8_lossy(&text).into_owned()
        };
        SstableJson {
            name: &sstable.name,
            version: &sstable.version,
            format: &sstable.format,
            components: sstable.components.iter().map(|(name, bytes)| (name.as_str(), *bytes)).collect(),
            compression: sstable.compression.as_ref().map(|it| CompressionJson {
                class: &it.class,
                chunk_bytes: it.chunk_bytes,
                data_bytes: it.data_bytes,
            }),
            partitioner: &sstable.partitioner,
            level: sstable.level,
            repaired_at: sstable.repaired_at,
            host_id: sstable.host_id.map(uuid),
            token_space_coverage: sstable.token_space_coverage.filter(|share| share.is_finite()),
            facts: FactsJson::of(&sstable.facts),
        }
    }
}

#[derive(Serialize)]
struct CompressionJson<'a> {
    class: &'a str,
    chunk_bytes: u32,
    data_bytes: u64,
}

#[derive(Serialize)]
struct FactsJson {
    partitions: u64,
    rows: u64,
    cells: u64,
    droppable: u64,
    droppable_from: Option<u64>,
    droppable_to: Option<u64>,
    has_partition_deletions: Option<bool>,
    timestamp_min: Option<i64>,
    timestamp_max: Option<i64>,
    local_deletion_time_min: Option<u32>,
    local_deletion_time_max: Option<u32>,
    ttl_min: Option<u32>,
    ttl_max: Option<u32>,
    data_bytes: u64,
    uncompressed_bytes: u64,
    bytes: u64,
    partition_bytes: PercentilesJson,
    partition_cells: PercentilesJson,
}

impl FactsJson {
    fn of(facts: &Facts) -> FactsJson {
        let known = |at: u32| Some(at).filter(|at| *at != NO_DELETION_TIME);
        FactsJson {
            partitions: facts.partitions,
            rows: facts.rows,
            cells: facts.cells,
            droppable: facts.droppable,
            droppable_from: facts.droppable_times.map(|(from, _)| from),
            droppable_to: facts.droppable_times.map(|(_, to)| to),
            has_partition_deletions: facts.has_partition_deletions,
            timestamp_min: facts.timestamps.map(|(least, _)| least),
            timestamp_max: facts.timestamps.map(|(_, greatest)| greatest),
            local_deletion_time_min: known(facts.local_deletion_times.0),
            local_deletion_time_max: known(facts.local_deletion_times.1),
            ttl_min: facts.ttls.map(|(least, _)| least),
            ttl_max: facts.ttls.map(|(_, greatest)| greatest),
            data_bytes: facts.data_bytes,
            uncompressed_bytes: facts.uncompressed_bytes,
            bytes: facts.bytes,
            partition_bytes: PercentilesJson::of(&facts.partition_sizes),
            partition_cells: PercentilesJson::of(&facts.partition_cells),
        }
    }
}

/// Upper bounds: a histogram has no more.
#[derive(Serialize)]
struct PercentilesJson {
    p50: u64,
    p99: u64,
    max: u64,
}

impl PercentilesJson {
    fn of(histogram: &Histogram) -> PercentilesJson {
        PercentilesJson {
            p50: histogram.percentile(50),
            p99: histogram.percentile(99),
            max: histogram.most(),
        }
    }
}

#[derive(Serialize)]
struct PartitionJson<'a> {
    sstable: &'a str,
    key: &'a str,
    token: i64,
    bytes: u64,
    rows: u64,
    cells: u64,
}

impl<'a> PartitionJson<'a> {
    fn of(partition: &'a LargePartition) -> PartitionJson<'a> {
        PartitionJson {
            sstable: &partition.sstable,
            key: &partition.key,
            token: partition.token,
            bytes: partition.bytes,
            rows: partition.rows,
            cells: partition.cells,
        }
    }
}
