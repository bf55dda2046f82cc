//! Measures how fast SSTables become Parquet on one core, and what the prices of mapping are: `cargo run --release -p marquetry-scylla
//! --example mutation_mapping [THOUSANDS]`.
//!
//! Of the tables of `sstable_scan`: the scan to batches of writes, the mapping of those to batches of Parquet, and writing them (to memory,
//! compressed by ZSTD); then all three together, as bytes of uncompressed SSTable a second. And the mapping back.
#![allow(clippy::cast_possible_truncation, reason = "numbers here are small")]

#[path = "../tests/sstable/files.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod files;
#[allow(dead_code, reason = "the scan uses more of it")]
mod tables;

use std::sync::Arc;
use std::time::{Duration, Instant};

use files::OBJECT;
use marquetry_base::{Budget, Bytes, Machine, Object, Step};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::Batch;
use marquetry_parquet::write::{Fed, FileWriter, WriteOptions};
use marquetry_scylla::bridge::mutations::{
    MapStep, Mapper, MapperOptions, MutationMapping, Present, UnmapStep, Unmapper,
};
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::{DataOptions, DataReader, Packing, TableColumns, Version};
use tables::{Steps, Table, drive, lz4, tables};

/// The prices that the mapping of a table, or the way back, is mostly of.
const PRICES: &[(&str, &str)] = &[
    ("(int, int)", "bridge/mutations/cells.rs PASS_PRICE"),
    ("(int, int)", "bridge/mutations/work.rs ROW_PRICE"),
    ("(int, int)", "bridge/mutations/keys.rs KEY_PRICE"),
    ("(int, int)", "bridge/mutations/back.rs LOOK_PRICE"),
    ("(int, int)", "bridge/mutations/back.rs VALUE_PRICE"),
    ("(int, int, int), 10,000 rows a partition", "bridge/mutations/keys.rs REPEAT_PRICE"),
    ("two ints with times of their own", "bridge/mutations/survey.rs VOTE_PRICE"),
    ("two ints with times of their own", "bridge/mutations/exceptions.rs LOOK_PRICE"),
    ("set of 8 ints", "bridge/mutations/cells.rs READ_PRICE"),
    ("10 ints, 9 deleted", "bridge/mutations/exceptions.rs LIST_PRICE"),
    ("10 ints, 9 deleted", "bridge/mutations/listed.rs LISTED_PRICE"),
    ("text of 1,000", "bridge/mutations/cells.rs TEXT_PRICE"),
];

const ROUNDS: usize = 5;

fn main() {
    let thousands = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1000);
    println!(
        "| table | scan, MB/s | map, MB/s | write, MB/s | all, MB/s | rows/s, millions | Parquet, bytes a row | SSTable | map, ns/unit | longest step, µs | back, MB/s | back, ns/unit |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for table in tables(thousands * 1000) {
        measure(&table);
    }
}

fn measure(table: &Table) {
    let (file, info) = lz4(&table.data);
    let packing = Packing::Compressed(Arc::new(info));
    let version = Version::parse("mc").expect("known");
    let columns = Arc::new(TableColumns::new(&[&table.statistics.header], None).expect("columns"));
    let mut options = MapperOptions::default();
    options.present = Present { ttls: false, deletions: false, write_times: true };
    if table.name.contains("times of their own") || table.name.contains("deleted") {
        options.present = Present::ALL;
    }
    let (mut scan, mut map, mut back) = (Steps::default(), Steps::default(), Steps::default());
    let mut best = [Duration::MAX; 4];
    let mut size = 0;
    for _ in 0..ROUNDS {
        let codecs = Arc::new(StandardCodecs::default());
        let header = &table.statistics.header;
        let mut reader =
            DataReader::new(OBJECT, version, header, packing.clone(), codecs, DataOptions::default())
                .expect("a reader");
        let mut batches: Vec<MutationBatch> = Vec::new();
        let mut cpu = [cpu_time(); 5];
        scan.round(|steps| drive(&mut reader, &file, steps, |_, batch| batches.push(batch)));
        cpu[1] = cpu_time();
        let mut mapper =
            Mapper::new(MutationMapping::Full, Arc::clone(&columns), &options).expect("a mapper");
        let mut made = Vec::new();
        map.round(|steps| mapped(&mut mapper, batches, steps, &mut made));
        cpu[2] = cpu_time();
        size = written(&mapper, &made);
        cpu[3] = cpu_time();
        let limits = marquetry_base::Limits::DEFAULT;
        let mut unmapper = Unmapper::new(Arc::clone(&columns), mapper.schema(), limits).expect("an inverse");
        back.round(|steps| unmapped(&mut unmapper, made, steps));
        cpu[4] = cpu_time();
        for (best, ends) in best.iter_mut().zip(cpu.windows(2)) {
            *best = (*best).min(ends[1] - ends[0]);
        }
    }
    let [scan, mapping, writing, unmapping] = best;
    let (stepping, units) = map.sum();
    let (stepping_back, back_units) = back.sum();
    let bytes = table.data.len() as f64;
    let speed = |time: Duration| bytes / time.as_secs_f64() / 1e6;
    let all = scan + mapping + writing;
    println!(
        "| {} | {:.0} | {:.0} | {:.0} | {:.0} | {:.1} | {:.1} | {:.1} | {:.2} | {:.0} | {:.0} | {:.2} |",
        table.name,
        speed(scan),
        speed(mapping),
        speed(writing),
        speed(all),
        table.rows as f64 / all.as_secs_f64() / 1e6,
        size as f64 / table.rows as f64,
        file.len() as f64 / table.rows as f64,
        stepping.as_secs_f64() * 1e9 / units as f64,
        map.longest().as_secs_f64() * 1e6,
        speed(unmapping),
        stepping_back.as_secs_f64() * 1e9 / back_units as f64,
    );
    for (_, price) in PRICES.iter().filter(|(name, _)| *name == table.name) {
        println!("| … mostly {price} |");
    }
}

/// What this thread has worked, on Linux: whatever else runs there, MB/s are of one core.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.expect("a system that counts what threads work"))
}

fn mapped(
    mapper: &mut Mapper,
    batches: Vec<MutationBatch>,
    steps: &mut Vec<(Duration, u64)>,
    made: &mut Vec<Batch>,
) {
    let mut batches = batches.into_iter();
    loop {
        let mut budget = Budget::default();
        let begin = Instant::now();
        let step = mapper.step(&mut budget).expect("good batches");
        steps.push((begin.elapsed(), budget.spent()));
        match step {
            MapStep::Ready(batch) => made.push(batch),
            MapStep::Need => match batches.next() {
                Some(batch) => mapper.feed(batch).expect("a batch that fits"),
                None => mapper.finish(),
            },
            MapStep::Yield => {}
            MapStep::Done => return,
        }
        drop(mapper.recycle());
    }
}

fn unmapped(unmapper: &mut Unmapper, batches: Vec<Batch>, steps: &mut Vec<(Duration, u64)>) {
    let mut batches = batches.into_iter();
    loop {
        let mut budget = Budget::default();
        let begin = Instant::now();
        let step = unmapper.step(&mut budget).expect("good batches");
        steps.push((begin.elapsed(), budget.spent()));
        match step {
            UnmapStep::Ready(_) | UnmapStep::Yield => {}
            UnmapStep::Need => match batches.next() {
                Some(batch) => unmapper.feed(batch).expect("a batch that fits"),
                None => unmapper.finish(),
            },
            UnmapStep::Done => return,
        }
    }
}

/// The size of the file.
fn written(mapper: &Mapper, batches: &[Batch]) -> usize {
    let codecs = Arc::new(StandardCodecs::default());
    let options = WriteOptions { key_values: mapper.key_values().expect("pairs"), ..WriteOptions::default() };
    let mut writer =
        FileWriter::new(Object(1), Arc::clone(mapper.schema()), codecs, options).expect("a writer");
    let mut size = 0;
    let mut batches = batches.iter();
    loop {
        match writer.step(&mut Budget::default()).expect("good batches") {
            Step::Ready(_) => match batches.next() {
                Some(batch) => assert_eq!(writer.feed(batch.clone()).expect("rows"), Fed::Taken),
                None => writer.finish(),
            },
            Step::Append(_, bytes) => size += Bytes::len(&bytes),
            Step::Yield => {}
            Step::Done => return size,
            Step::Need(_) => panic!("a writer that reads"),
        }
    }
}
