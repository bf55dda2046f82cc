//! The SSTables of real Cassandras: each table usually has two, and those of all versions are as the replicas of one table.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::batch::{EntryKind, MutationBatch};
use marquetry_scylla::sstable::compare::Comparator;
use marquetry_scylla::sstable::merge::{MergeOptions, Partitioner};

use crate::files::{Files, data_files};
use crate::model::{Place, Sstable, live_of_all, merge_all};
use crate::read::{Shape, read};
use crate::{Host, PLAIN, merged};

/// The clustering values of an entry, which compare as the table's do.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    kind: EntryKind,
    pub(crate) values: Vec<Option<Vec<u8>>>,
    comparators: Arc<Vec<Comparator>>,
}

impl Key {
    fn side(&self) -> i8 {
        match self.kind {
            EntryKind::ExclusiveEnd
            | EntryKind::InclusiveStart
            | EntryKind::ExclusiveEndInclusiveStart
            | EntryKind::Static => -1,
            EntryKind::Row => 0,
            EntryKind::InclusiveEnd | EntryKind::ExclusiveStart | EntryKind::InclusiveEndExclusiveStart => 1,
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        let found = self.is_static().cmp(&other.is_static()).reverse();
        let mut found = found;
        for ((left, right), comparator) in self.values.iter().zip(&other.values).zip(&*self.comparators) {
            found = found.then_with(|| match (left, right) {
                (Some(left), Some(right)) => comparator.compare(left, right),
                (left, right) => left.is_some().cmp(&right.is_some()),
            });
        }
        found.then_with(|| match self.values.len().cmp(&other.values.len()) {
            Ordering::Less => self.side().cmp(&0),
            Ordering::Equal => self.side().cmp(&other.side()),
            Ordering::Greater => 0.cmp(&other.side()),
        })
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl Place for Key {
    fn is_static(&self) -> bool {
        self.kind == EntryKind::Static
    }
}

/// The path of a cell, which compares as the column's do.
#[derive(Debug, Clone)]
pub(crate) struct PathKey {
    pub(crate) bytes: Vec<u8>,
    comparator: Option<Arc<Comparator>>,
}

impl Ord for PathKey {
    fn cmp(&self, other: &PathKey) -> Ordering {
        match &self.comparator {
            Some(comparator) => comparator.compare(&self.bytes, &other.bytes),
            None => Ordering::Equal,
        }
    }
}

impl PartialOrd for PathKey {
    fn partial_cmp(&self, other: &PathKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for PathKey {
    fn eq(&self, other: &PathKey) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for PathKey {}

/// The tables of fixtures.
pub(crate) struct Tables {
    columns: Arc<TableColumns>,
    comparators: Arc<Vec<Comparator>>,
    paths: Vec<Option<Arc<Comparator>>>,
}

impl Tables {
    pub(crate) fn new(columns: &Arc<TableColumns>) -> Tables {
        let comparator = |kind| Comparator::new(kind).expect("a sorted type");
        Tables {
            comparators: Arc::new(columns.clustering.iter().map(|key| comparator(&key.kind)).collect()),
            paths: columns
                .cells()
                .map(|column| Comparator::of_paths(&column.kind).expect("sorted").map(Arc::new))
                .collect(),
            columns: Arc::clone(columns),
        }
    }
}

impl Shape for Tables {
    type Place = Key;
    type Name = PathKey;

    fn place(&self, batch: &MutationBatch, entry: usize) -> Key {
        let at = u32::try_from(entry).expect("small");
        let kind = batch.entries.kinds[entry];
        let all = if kind == EntryKind::Static { 0 } else { batch.entries.clustering.len() };
        let size = batch.entries.prefixes.get(at).map_or(all, |size| size as usize);
        let value = |column: &marquetry_scylla::sstable::batch::ClusteringColumn| {
            let mut bytes = Vec::new();
            if !column.empties.contains(&at) {
                column.values.append_bytes(entry, &mut bytes);
            }
            (!column.nulls.contains(&at)).then_some(bytes)
        };
        let values = batch.entries.clustering.iter().take(size).map(value).collect();
        Key { kind, values, comparators: Arc::clone(&self.comparators) }
    }

    fn name(&self, column: usize, path: &[u8]) -> PathKey {
        PathKey { bytes: path.to_vec(), comparator: self.paths[column].clone() }
    }

    fn columns_of(&self, is_static: bool) -> std::ops::Range<usize> {
        let statics = self.columns.statics.len();
        if is_static { 0..statics } else { statics..statics + self.columns.regulars.len() }
    }

    fn is_complex(&self, column: usize) -> bool {
        self.paths[column].is_some()
    }
}

/// SSTables of one table.
pub(crate) struct Table {
    pub(crate) columns: Arc<TableColumns>,
    pub(crate) inputs: Vec<Vec<MutationBatch>>,
    partitioner: Partitioner,
    is_counter: bool,
}

pub(crate) fn open(paths: &[PathBuf]) -> Table {
    let files: Vec<Files> = paths.iter().map(|path| Files::open(path)).collect();
    let statistics: Vec<_> = files.iter().map(|files| files.read_statistics().expect("statistics")).collect();
    let headers: Vec<_> = statistics.iter().map(|statistics| &statistics.header).collect();
    let columns = Arc::new(TableColumns::new(&headers, None).expect("one table"));
    let (mut inputs, mut partitioner) = (Vec::new(), Partitioner::Murmur3);
    for (files, statistics) in files.iter().zip(&statistics) {
        partitioner = Partitioner::of_class(&statistics.partitioner).unwrap_or(Partitioner::Other);
        let map = columns.index_of(&statistics.header).expect("a header of the table");
        let mut batches = Vec::new();
        let take = |batch: &MutationBatch| batches.push(map.apply(batch.clone()).expect("a batch of it"));
        files.read(statistics, take).expect("data");
        inputs.push(batches);
    }
    let is_counter = columns.cells().any(|column| column.kind.is_counter());
    Table { columns, inputs, partitioner, is_counter }
}

fn check(name: &str, paths: &[PathBuf]) {
    let table = open(paths);
    if table.partitioner != Partitioner::Murmur3 {
        // The model sorts by tokens.
        return;
    }
    let shape = Tables::new(&table.columns);
    let read_all: Vec<Sstable<_, _>> = table.inputs.iter().map(|batches| read(batches, &shape)).collect();
    let all = merge_all(&read_all, table.is_counter);
    assert!(!all.is_empty(), "{name}");
    let merge = |live_at, host| {
        let mut options = MergeOptions::default();
        options.live_at = live_at;
        let merged = merged(&table.columns, table.inputs.clone(), &options, host);
        merged.unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let out = merge(None, PLAIN);
    assert!(read(&out, &shape) == all, "{name}");
    assert!(merge(None, Host { units: 0, is_early: true }) == out, "{name}: another host");
    // What was inserted with a TTL expires in between.
    for now in [0, 1_750_000_000, 1_900_000_000, u32::MAX - 1] {
        let found = read(&merge(Some(now), PLAIN), &shape);
        assert!(found == live_of_all(&all, now), "{name} at {now}");
    }
}

/// The folder's name, and that of the one it is in.
fn name_of(folder: &Path) -> String {
    let parts: Vec<_> = folder.iter().rev().take(2).map(|part| part.to_string_lossy()).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join("/")
}

#[test]
fn tables_of_several_sstables() {
    let Some(folders) = marquetry_testing::sstables() else { return };
    let mut tables: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    for file in folders.iter().flat_map(|folder| data_files(folder)) {
        tables.entry(file.parent().expect("a folder").to_path_buf()).or_default().push(file);
    }
    for (folder, files) in &tables {
        check(&name_of(folder), files);
    }
    // The same statements were run in every version of Cassandra, so their files are as those of as many nodes.
    // (But those of `mix`, whose type is of another keyspace in each.)
    for name in ["wide", "simple", "cnt"] {
        let of_name = tables.iter().filter(|(folder, _)| folder.ends_with(name));
        let files: Vec<PathBuf> = of_name.flat_map(|(_, files)| files.iter().cloned()).collect();
        assert!(files.len() > 4, "{name}");
        check(name, &files);
    }
}
