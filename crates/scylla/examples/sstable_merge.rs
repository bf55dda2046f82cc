//! Measures how fast batches of SSTables are merged on one core, and what its prices are: `cargo run --release -p marquetry-scylla
//! --example sstable_merge [THOUSANDS]`.
//!
//! Tables are merged with themselves, so that every cell has two versions that are equal to the last byte; and two halves, whose partitions
//! or rows alternate, with each other. Only steps of the merger are timed. The best of some rounds is reported, step by step: rows and
//! bytes (of one input, uncompressed) a second, and nanoseconds for each unit charged.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "numbers here are small")]

#[path = "../tests/sstable/files.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod files;
#[allow(dead_code, reason = "another example uses more of it")]
mod tables;

use std::sync::Arc;
use std::time::Instant;

use marquetry_base::{Budget, Bytes};
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::{Cells, ClusteringColumn, EntryKind, MutationBatch, Strings, Values};
use marquetry_scylla::sstable::merge::{MergeOptions, MergeStep, Merger, Partitioner};
use marquetry_scylla::sstable::{DataOptions, Packing, Version};
use tables::{Steps, craft, tables};

const ROWS: &[&str] = &["sstable/merge/row.rs ROW_PRICE", "sstable/merge/mod.rs ORDER_PRICE"];
const CELLS: &[&str] = &["sstable/merge/output.rs CELL_PRICE", "sstable/merge/row.rs COLUMN_PRICE"];
const COMPARED: &[&str] = &["sstable/merge/row.rs COMPARE_PRICE"];
const PARTS: &[&str] = &["sstable/merge/output.rs PART_PRICE"];
const COPIED: &[&str] = &["sstable/merge/output.rs COPY_PRICE", "sstable/merge/output.rs ENTRY_PRICE"];

const ROUNDS: usize = 9;

fn main() {
    let thousands: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(300);
    println!(
        "| price | table | inputs | rows/s, millions | MB/s | ns/unit | dearest step, ns/unit | longest step, µs |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|");
    for table in tables(thousands * 1000) {
        let version = Version::parse("mc").expect("known");
        let codecs = Arc::new(marquetry_codecs::StandardCodecs::default());
        let (header, packing) = (&table.statistics.header, Packing::Plain(None));
        let options = DataOptions::default();
        let reader = marquetry_scylla::sstable::DataReader::new(
            files::OBJECT,
            version,
            header,
            packing,
            codecs,
            options,
        );
        let (mut reader, mut batches) = (reader.expect("a reader"), Vec::new());
        let bytes = Bytes::from(table.data.clone());
        while let Some(batch) = files::next(&mut reader, &bytes).expect("data") {
            batches.push(batch);
        }
        let columns = Arc::new(TableColumns::new(&[header], None).expect("columns"));
        let price = match table.name {
            name if name.starts_with('(') => ROWS,
            name if name.contains(",000,000") => PARTS,
            name if name.contains(",000") => COMPARED,
            _ => CELLS,
        };
        let size = (table.rows, table.data.len());
        let twice = [&batches[..], &batches[..]];
        merge(price, table.name, "twice the same", &columns, &twice, None, size);
        merge(price, table.name, "twice the same, what is alive", &columns, &twice, Some(5), size);
        if table.name == "(int, int)" {
            let price: &[&str] = &["sstable/merge/mod.rs LOOK_PRICE"];
            merge(price, table.name, "one, what is alive", &columns, &[&batches], Some(5), size);
        }
    }
    let statistics = craft::statistics("Int32Type", &["Int32Type"], &[], &[("v", "Int32Type")]);
    let columns = Arc::new(TableColumns::new(&[&statistics.header], None).expect("columns"));
    let count = thousands * 1000;
    for (name, rows_each, price) in [
        ("(int, int), each second partition", 1, &["sstable/merge/mod.rs TOKEN_PRICE"][..]),
        ("(int, int), each second run of 8 partitions", 1, COPIED),
        ("(int, int, int), each second row", 10_000, &["sstable/merge/mod.rs ORDER_PRICE"][..]),
        ("(int, int, int), each second run of 100 rows", 10_000, COPIED),
    ] {
        let run = if name.contains("of 100") {
            100
        } else if name.contains("of 8") {
            8
        } else {
            1
        };
        let half = |half: usize| (0..count).filter(move |row| row / run % 2 == half);
        let halves = [ints(half(0), rows_each), ints(half(1), rows_each)];
        let partitioner =
            if rows_each == 1 && run == 1 { "alternating, alive" } else { "alternating, as they are" };
        let live_at = partitioner.ends_with("alive").then_some(5);
        merge(price, name, partitioner, &columns, &[&halves[0], &halves[1]], live_at, (count, 12 * count));
    }
}

/// Rows of two ints and a value, so many a partition.
fn ints(rows: impl Iterator<Item = usize>, rows_each: usize) -> Vec<MutationBatch> {
    let new = || {
        let mut batch = MutationBatch::default();
        let four = || Values::Four(Vec::new());
        batch.entries.clustering = vec![ClusteringColumn { values: four(), ..ClusteringColumn::default() }];
        batch.columns = vec![Cells { values: four(), ..Cells::default() }];
        batch
    };
    let push = |strings: &mut Strings, bytes: &[u8]| {
        strings.bytes.extend(bytes);
        strings.ends.push(strings.bytes.len() as u32);
    };
    let (mut batches, mut batch, mut last) = (Vec::new(), new(), None);
    for row in rows {
        let partition = row / rows_each;
        if batch.entries.kinds.len() == 8192 {
            batch.is_open = last == Some(partition);
            let full = std::mem::replace(&mut batch, new());
            if full.is_open {
                batch.continues = marquetry_scylla::sstable::batch::Continues::Partition;
                last = None;
            }
            batches.push(full);
        }
        if last != Some(partition) {
            last = Some(partition);
            push(&mut batch.partitions.keys, &(partition as u32).to_be_bytes());
            batch.partitions.offsets.push(0);
            batch.partitions.ends.push(0);
        }
        let entry = batch.entries.kinds.len() as u32;
        batch.entries.kinds.push(EntryKind::Row);
        batch.entries.timestamps.push(row as i64);
        let Values::Four(clustering) = &mut batch.entries.clustering[0].values else { panic!() };
        clustering.push(row as i32);
        batch.columns[0].entries.push(entry);
        let Values::Four(values) = &mut batch.columns[0].values else { panic!() };
        values.push(row as i32);
        *batch.partitions.ends.last_mut().expect("a partition") = entry + 1;
    }
    batches.push(batch);
    batches
}

fn merge(
    prices: &[&str],
    name: &str,
    kind: &str,
    columns: &Arc<TableColumns>,
    inputs: &[&[MutationBatch]],
    live_at: Option<u32>,
    (rows, bytes): (usize, usize),
) {
    let mut best = Steps::default();
    for _ in 0..ROUNDS {
        let mut options = MergeOptions::default();
        // The keys of these tables ascend.
        options.partitioner = Partitioner::ByteOrdered;
        options.live_at = live_at;
        let mut merger = Merger::new(Arc::clone(columns), inputs.len(), options).expect("a merger");
        let mut inputs: Vec<_> = inputs.iter().map(|batches| batches.iter()).collect();
        let mut merged = 0;
        best.round(|steps| {
            loop {
                let mut budget = Budget::default();
                let start = Instant::now();
                let step = merger.step(&mut budget).expect("sorted");
                steps.push((start.elapsed(), budget.spent()));
                match step {
                    MergeStep::Ready(batch) => {
                        merged += batch.entries.kinds.len();
                        merger.recycle(batch);
                    }
                    MergeStep::Need(input) => match inputs[input].next() {
                        Some(batch) => merger.feed(input, batch.clone()).expect("room"),
                        None => merger.finish(input),
                    },
                    MergeStep::Yield => {}
                    MergeStep::Done => break,
                }
            }
        });
        assert!(merged >= rows, "{merged} of {rows}");
    }
    best.report(&prices.join(", "), name, kind, rows, bytes);
}
