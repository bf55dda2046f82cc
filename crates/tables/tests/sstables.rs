//! SSTables as a source: pieces, limits, and what is known before rows are read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_tables::sstables::{MutationMapping, Sstables, SstablesOptions};
use marquetry_tables::{DiffOptions, Reading, ReadingOptions, Source, diff};

/// Small ones that Cassandra wrote, with the tests of the command.
fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../cli/tests/data/sstables/ks/t-0123456789abcdef0123456789abcdef")
}

fn open(path: &Path, piece_bytes: u64) -> Arc<dyn Source> {
    let mut options = SstablesOptions::default();
    options.piece_bytes = piece_bytes;
    Arc::new(Sstables::open(path, &options).unwrap())
}

fn rows(source: &Arc<dyn Source>, options: ReadingOptions) -> usize {
    let mut reading = Reading::new(Arc::clone(source), options).unwrap();
    let mut rows = 0;
    while let Some((_, batch)) = reading.next_batch().unwrap() {
        rows += batch.rows;
    }
    rows
}

fn expect_same(a: &Arc<dyn Source>, b: &Arc<dyn Source>) {
    let found = diff([a, b], &DiffOptions::default(), &mut |_| {}).unwrap();
    assert!(found.are_rows_equal() && found.schema.is_none(), "{found:?}");
}

#[test]
fn pieces_are_the_table() {
    let whole = open(&small(), u64::MAX);
    assert_eq!((whole.pieces().len(), rows(&whole, ReadingOptions::default())), (1, 16));
    let pieces = open(&small(), 1);
    assert!(pieces.pieces().len() > 1, "{:?}", pieces.pieces());
    expect_same(&whole, &pieces);
    // Large ones, if they are there: by every kind of index.
    let Some(folders) = marquetry_testing::sstables() else { return };
    for name in ["5.0.9-da-lz4/simple", "5.0.9-oa-zstd/simple", "3.11.10-md-lz4/mix", "4.1.10-nb-snappy/mix"]
    {
        let path = folders[0].join(name);
        let pieces = open(&path, 5_000);
        assert!(pieces.pieces().len() > 3, "{name}: {}", pieces.pieces().len());
        expect_same(&open(&path, u64::MAX), &pieces);
    }
}

#[test]
fn batches_are_as_small_as_they_should_be() {
    let source = open(&small(), u64::MAX);
    let mut options = ReadingOptions::default();
    options.piece.limit = Some(5);
    assert_eq!(rows(&source, options.clone()), 5);
    options.piece.batch_rows = Some(2);
    let mut reading = Reading::new(source, options).unwrap();
    let mut sizes = Vec::new();
    while let Some((_, batch)) = reading.next_batch().unwrap() {
        sizes.push(batch.rows);
    }
    assert_eq!(sizes, [2, 2, 1]);
}

#[test]
fn what_is_known_before_rows_are_read() {
    let source = open(&small(), u64::MAX);
    let table = source.table();
    let key = table.key.as_ref().unwrap();
    assert_eq!((&*key.partition, key.clustering.len()), (&[0][..], 1));
    assert!(key.clustering[0].column == 1 && key.clustering[0].descending);
    assert_eq!(table.bytes, Some(302));
    let known = |key: &str| table.key_values.iter().any(|it| it.key == key);
    assert!(known("marquetry.mapping"));
    let mut options = SstablesOptions::default();
    options.mapping = MutationMapping::Logical;
    let logical = Sstables::open(&small(), &options).unwrap();
    let schema = &logical.table().schema;
    let names: Vec<&str> = schema.children(0).map(|node| &*schema.nodes()[node].name).collect();
    assert_eq!(names, ["pk", "ck", "st", "v", "tags"]);
}
