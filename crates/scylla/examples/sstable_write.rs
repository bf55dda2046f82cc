//! Measures how fast batches become SSTables on one core, and what the writer's prices are: `cargo run --release -p marquetry-scylla
//! --example sstable_write [THOUSANDS]`.
//!
//! The tables are those of `sstable_scan`, in the order of tokens. Only steps of the writer are timed; the best of some rounds is reported,
//! step by step: rows and bytes (uncompressed) a second, and nanoseconds for each unit charged.
#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

#[path = "../tests/sstable/files.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod files;
#[allow(dead_code, reason = "another example uses more of it")]
mod tables;

use std::sync::Arc;
use std::time::Instant;

use marquetry_base::{Budget, Bytes};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::compression_info::Compressor;
use marquetry_scylla::sstable::write::{SstableWriter, WriteCompression, WriteOptions, WriteStep};
use marquetry_scylla::sstable::{DataOptions, DataReader, Packing, TableColumns, Version, murmur3_token};
use tables::{Steps, Table, tables};

/// Small partitions: their keys are hashed, and are in the filter and the index.
const PARTITIONS: &str = "sstable/write/mod.rs PARTITION_PRICE, sstable/write/filter.rs KEY_PRICE, sstable/write/trie.rs KEY_PRICE";
const NAMED: [&str; 7] = [
    "sstable/write/mod.rs PARTITION_PRICE",
    "sstable/write/filter.rs KEY_PRICE",
    "sstable/write/trie.rs KEY_PRICE",
    "sstable/write/mod.rs ROW_PRICE",
    "sstable/write/rows.rs LOOK_PRICE",
    "sstable/write/rows.rs CELL_PRICE",
    "sstable/write/out.rs COPY_PRICE",
];

const ROUNDS: usize = 9;

fn main() {
    let thousands: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(200);
    println!(
        "| price | table | version | rows/s, millions | MB/s | ns/unit | dearest step, ns/unit | longest step, µs |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|");
    for table in tables(thousands * 1000) {
        let (columns, batches) = sorted(&table);
        let price = match table.name {
            "(int, int)" => PARTITIONS,
            name if name.starts_with('(') => NAMED[3],
            name if name.contains(",000") => NAMED[6],
            name if name.contains("deleted") => NAMED[4],
            _ => NAMED[5],
        };
        for (version, compressor) in [("nb", None), ("nb", Some(Compressor::Lz4)), ("da", None)] {
            let mut options = WriteOptions::new(Version::parse(version).expect("known")).expect("written");
            options.compression = compressor.map(WriteCompression::new);
            let mut steps = Steps::default();
            for _ in 0..ROUNDS {
                steps.round(|steps| write(&columns, &options, &batches, steps));
            }
            let name = format!("{version}, {}", compressor.map_or("none", Compressor::name));
            steps.report(price, table.name, &name, table.rows, table.data.len());
        }
    }
}

/// The batches of a table, whose partitions are in the order of their tokens.
fn sorted(table: &Table) -> (TableColumns, Vec<MutationBatch>) {
    let header = &table.statistics.header;
    let columns = TableColumns::new(&[header], None).expect("columns");
    // Partitions begin where a reader says so; their bytes are put into order, and read again.
    let read = |data: &[u8]| {
        let (version, codecs) = (Version::parse("mc").expect("known"), Arc::new(StandardCodecs::default()));
        let options = DataOptions::default();
        let mut reader =
            DataReader::new(files::OBJECT, version, header, Packing::Plain(None), codecs, options)
                .expect("a reader");
        let (bytes, mut batches) = (Bytes::copy_from_slice(data), Vec::new());
        while let Some(batch) = files::next(&mut reader, &bytes).expect("data") {
            batches.push(batch);
        }
        batches
    };
    let mut starts: Vec<(i64, u64)> = Vec::new();
    for batch in read(&table.data) {
        for (number, offset) in batch.partitions.offsets.iter().enumerate() {
            if starts.last().is_none_or(|last| last.1 != *offset) {
                starts.push((murmur3_token(batch.partitions.keys.get(number).expect("a key")), *offset));
            }
        }
    }
    let ends = starts.iter().skip(1).map(|start| start.1).chain([table.data.len() as u64]);
    let mut parts: Vec<(i64, u64, u64)> =
        starts.iter().zip(ends).map(|(start, end)| (start.0, start.1, end)).collect();
    parts.sort_unstable();
    let data: Vec<u8> =
        parts.iter().flat_map(|part| &table.data[part.1 as usize..part.2 as usize]).copied().collect();
    (columns, read(&data))
}

fn write(
    columns: &TableColumns,
    options: &WriteOptions,
    batches: &[MutationBatch],
    steps: &mut Vec<(std::time::Duration, u64)>,
) {
    let mut writer =
        SstableWriter::new(columns, options.clone(), &StandardCodecs::default()).expect("a writer");
    let mut batches = batches.iter().cloned();
    loop {
        let mut budget = Budget::default();
        let begin = Instant::now();
        let step = writer.step(&mut budget).expect("sorted");
        steps.push((begin.elapsed(), budget.spent()));
        match step {
            WriteStep::Append(..) | WriteStep::Yield => {}
            WriteStep::Need => match batches.next() {
                Some(batch) => writer.feed(batch).expect("of the table"),
                None => writer.finish(),
            },
            WriteStep::Done => return,
        }
    }
}
