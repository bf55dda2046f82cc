//! SSTables of real Cassandras: what is read of them is what Cassandra's own tool, sstabledump, prints.
//!
//! That tool takes three seconds a file, so only some files are compared with it in every run, and all in `make soak`. Of all others the sum is
//! compared that they had when they were (`expected.txt`, which `MARQUETRY_UPDATE=1` writes anew).
#![allow(clippy::cast_possible_truncation, reason = "tests run where addresses have 64 bits")]

mod compacted;
mod craft;
mod crafted;
#[path = "../../../../dev/conformance/src/hostile.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests of Parquet, which use more of it")]
mod driver;
mod dump;
mod files;
mod hostile;
mod index;
mod json;
mod mapping;
mod random;
mod scylla_chunks;
mod soak;
mod values;
mod whole;
mod writing;
mod written;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use dump::Dump;
use files::{Files, data_files};
use json::Json;
use marquetry_scylla::cql::CqlType;
use marquetry_scylla::sstable::batch::{Continues, Values};
use marquetry_scylla::sstable::counter;
use marquetry_scylla::sstable::marshal::MarshalType;

/// The Data.db of all SSTables.
fn fixtures() -> Option<Vec<PathBuf>> {
    let folders = marquetry_testing::sstables()?;
    let files: Vec<PathBuf> = folders.iter().flat_map(|folder| data_files(folder)).collect();
    assert!(!files.is_empty(), "no SSTables in {folders:?}");
    Some(files)
}

/// The last four parts of a path: version and compressor, table, file.
fn name_of(path: &Path) -> String {
    let parts: Vec<_> =
        path.components().rev().take(3).map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

fn dumped(path: &Path) -> Json {
    let files = Files::open(path);
    let statistics = files.read_statistics().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut dump = Dump::new(&statistics.header);
    let read = files.read(&statistics, |batch| dump.add(batch));
    read.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    dump.into_json()
}

fn text(json: &Json) -> String {
    let mut text = String::new();
    json.write(&mut text);
    text
}

/// Compares what we read with what Cassandra's tool prints.
fn compare(path: &Path, script: &Path) {
    let output = Command::new(script).arg("dump").arg(path).output().expect("the tool");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    // Where rows are, counts only what the tool has read. What has expired depends on the time. Counters are printed as a constant.
    let mut ignored = vec!["position", "expired", "table kind"];
    let statistics = Files::open(path).read_statistics().expect("statistics");
    let header = &statistics.header;
    if header.statics.iter().chain(&header.regulars).any(|column| column.kind.is_counter()) {
        ignored.push("value");
    }
    let theirs = text(&Json::parse(&printed).without(&ignored));
    let ours = text(&dumped(path).without(&ignored));
    if ours != theirs {
        let same = ours
            .bytes()
            .zip(theirs.bytes())
            .position(|(a, b)| a != b)
            .unwrap_or(ours.len().min(theirs.len()));
        let part = |text: &str| text.chars().skip(same.saturating_sub(200)).take(400).collect::<String>();
        panic!("{}:\nwe read    {}\nit prints  {}", path.display(), part(&ours), part(&theirs));
    }
}

/// A sum of what is in each folder of SSTables.
fn sums() -> Option<BTreeMap<String, u32>> {
    let mut sums = BTreeMap::new();
    for path in fixtures()? {
        let name = name_of(&path);
        let folder = name.rsplit_once('/').expect("a folder").0.to_string();
        let sum = sums.entry(folder).or_insert(0);
        *sum = marquetry_kernels::crc32(*sum, text(&dumped(&path)).as_bytes());
    }
    Some(sums)
}

#[test]
fn what_is_read_is_as_it_was() {
    let Some(sums) = sums() else { return };
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sstable/expected.txt");
    let lines: String = sums.iter().map(|(name, sum)| format!("{sum:08x} {name}\n")).collect();
    if std::env::var_os("MARQUETRY_UPDATE").is_some() {
        std::fs::write(&file, &lines).expect("a file");
    }
    let expected = std::fs::read_to_string(&file).expect("expected.txt");
    let expected: BTreeMap<&str, &str> =
        expected.lines().filter_map(|line| line.split_once(' ')).map(|(sum, name)| (name, sum)).collect();
    for (name, sum) in &sums {
        let sum = format!("{sum:08x}");
        assert_eq!(
            expected.get(name.as_str()),
            Some(&sum.as_str()),
            "{name}: see what the tests against sstabledump say"
        );
    }
}

#[test]
fn some_are_what_sstabledump_prints() {
    let (Some(all), Some(script)) = (fixtures(), marquetry_testing::sstabledump()) else { return };
    let some = [
        "5.0.9-oa-zstd/mix/oa-2",
        "5.0.9-da-none/wide/da-2",
        "3.11.10-md-lz4/mix/md-2",
        "legacy_mc_clust_compact/",
        "legacy_mc_simple_counter_compact/",
    ];
    for path in all.iter().filter(|path| some.iter().any(|name| name_of(path).contains(name))) {
        compare(path, &script);
    }
}

#[test]
#[ignore = "soak: sstabledump takes some seconds a file"]
fn all_are_what_sstabledump_prints() {
    let (Some(all), Some(script)) = (fixtures(), marquetry_testing::sstabledump()) else { return };
    for path in all {
        compare(&path, &script);
    }
}

/// sstabledump does not read counters. `schema.py`, beside the files, says what they are.
#[test]
fn counters_are_what_was_counted() {
    let Some(all) = fixtures() else { return };
    for path in all.iter().filter(|path| name_of(path).contains("/cnt/")) {
        let files = Files::open(path);
        let statistics = files.read_statistics().unwrap();
        assert_eq!(statistics.header.regulars[0].kind, MarshalType::Native(CqlType::Counter));
        let mut found = BTreeMap::new();
        files
            .read(&statistics, |batch| {
                for partition in 0..batch.partitions.ends.len() {
                    let key = batch.partitions.keys.get(partition).unwrap();
                    let key = i32::from_be_bytes(key.try_into().unwrap());
                    for entry in batch.entries_of(partition) {
                        let Values::Four(clustering) = &batch.entries.clustering[0].values else { panic!() };
                        for (column, cells) in batch.columns.iter().enumerate() {
                            let at = cells.entries.iter().position(|of| *of as usize == entry).unwrap();
                            let mut value = Vec::new();
                            cells.values.append_bytes(at, &mut value);
                            let is_deleted = cells.tombstones.get(at as u32).is_some();
                            let total = if is_deleted { None } else { Some(counter::total(&value).unwrap()) };
                            found.insert((key, clustering[entry], column), total);
                        }
                    }
                }
            })
            .unwrap();
        let mut expected = BTreeMap::new();
        for number in 0..20 {
            expected.insert((number % 4, number, 0), Some(i64::from(number)));
            expected.insert((number % 4, number, 1), Some(-1));
        }
        expected.insert((1, 1, 0), Some(6));
        expected.insert((2, 2, 1), None);
        assert_eq!(found, expected, "{}", path.display());
    }
}

/// What Statistics.db says of an SSTable is what is in it.
#[test]
fn statistics_are_of_what_is_in_the_data() {
    let Some(all) = fixtures() else { return };
    for path in &all {
        let files = Files::open(path);
        let statistics = files.read_statistics().unwrap();
        assert!(statistics.partitioner.ends_with("Partitioner"), "{}", statistics.partitioner);
        let (mut partitions, mut rows, mut first, mut last) = (0, 0, None, Vec::new());
        files
            .read(&statistics, |batch| {
                let (goes_on, row_goes_on) = match batch.continues {
                    Continues::Nothing => (0, 0),
                    Continues::Partition => (1, 0),
                    Continues::Entry => (1, 1),
                };
                partitions += batch.partitions.ends.len() as u64 - goes_on;
                rows -= row_goes_on;
                rows += batch.entries.kinds.iter().map(|kind| i64::from(kind.is_row())).sum::<i64>();
                let keys = &batch.partitions.keys;
                first.get_or_insert_with(|| keys.get(0).unwrap().to_vec());
                last = keys.get(keys.len() - 1).unwrap().to_vec();
            })
            .unwrap();
        let stats = &statistics.stats;
        assert_eq!(stats.partition_sizes.count(), partitions, "{}", path.display());
        // Cassandra counts rows of static columns in some versions only.
        assert!(stats.rows <= rows, "{}: {} of {rows}", path.display(), stats.rows);
        if let Some((start, end)) = &stats.key_range {
            assert_eq!((Some(start), end), (first.as_ref(), &last), "{}", path.display());
        }
        assert!(stats.timestamp_min <= stats.timestamp_max);
        assert!(statistics.header.timestamp_min <= stats.timestamp_min, "{}", path.display());
    }
}
