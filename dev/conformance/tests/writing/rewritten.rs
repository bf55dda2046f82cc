//! Files that were read and written again hold the same.

use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::leaves::sums;
use marquetry_conformance::shared::SharedWriter;
use marquetry_conformance::written::{self, Written};
use marquetry_parquet::batch::{Batch, Layout};
use marquetry_parquet::format::Compression;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{ColumnOptions, Fed, FileWriter, PageVersion, Room, WriteOptions};

use crate::given::{self, Flavour, SHAPES, TYPES};

/// Units that a step of a shared writer, or of a worker after it, may charge beyond its budget: the choice of an encoding.
const SLICE_UNITS_MAX: u64 = 215_000;

/// Where pages are moved to.
pub(crate) const SPILL: Object = Object(7);

/// All batches of a file.
pub(crate) fn batches(bytes: &Bytes, options: ReadOptions) -> Result<(Arc<Schema>, Vec<Batch>)> {
    let metadata = canonical::metadata(bytes, Manner::KIND)?;
    let schema = Arc::clone(&metadata.schema);
    let mut reader = BatchReader::new(FILE, metadata, Arc::new(StandardCodecs::default()), options)?;
    let mut batches = Vec::new();
    canonical::read(&mut reader, bytes, Manner::KIND, |batch| batches.push(batch))?;
    Ok((schema, batches))
}

/// Writes batches. By a host that is kind they are written twice: the second time, workers share the columns' work, and what
/// comes of it is the same.
pub(crate) fn write(
    schema: &Arc<Schema>,
    batches: &[Batch],
    options: WriteOptions,
    manner: Manner,
) -> Result<Written> {
    let writer = || {
        let codecs = Arc::new(StandardCodecs::default());
        FileWriter::new(FILE, Arc::clone(schema), codecs, options.clone())
    };
    let alone = written::write(&mut writer()?, manner, feeding(batches, |writer: &mut FileWriter| writer));
    if manner.budget == u64::MAX {
        for (workers, ahead, budget) in [(1, 0, u64::MAX), (3, 3, 10_000), (8, 20, 2_000_000)] {
            let mut shared = SharedWriter::new(writer()?, workers, ahead, u64_of(ahead))?;
            let manner = Manner { budget, ..manner };
            let shared = written::write(
                &mut shared,
                manner,
                feeding(batches, |shared: &mut SharedWriter| &mut shared.writer),
            );
            match (&alone, &shared) {
                (Ok(alone), Ok(shared)) => {
                    let units = shared.report.units_max;
                    assert!(units <= budget.saturating_add(SLICE_UNITS_MAX), "a step of {units} units");
                    let is_same = alone.object(FILE) == shared.object(FILE);
                    assert!(is_same, "{workers} workers, {ahead} ahead: another file, of {options:?}");
                }
                (alone, shared) => assert_eq!(alone.as_ref().err(), shared.as_ref().err()),
            }
        }
    }
    alone
}

/// Feeds batches to a writer that is in a host.
fn feeding<M>(
    batches: &[Batch],
    writer: impl Fn(&mut M) -> &mut FileWriter,
) -> impl FnMut(&mut M, Room) -> Result<()> {
    let mut left = batches.iter();
    move |host, _room| {
        match left.next() {
            Some(batch) => assert_eq!(writer(host).feed(batch.clone())?, Fed::Taken),
            None => writer(host).finish(),
        }
        Ok(())
    }
}

/// Reads a file, writes it with these options, reads that, and compares. The new file.
pub(crate) fn rewrite(
    bytes: &Bytes,
    read: ReadOptions,
    write_options: WriteOptions,
    manner: Manner,
) -> Result<Bytes> {
    let (schema, before) = batches(bytes, read.clone())?;
    let written = write(&schema, &before, write_options, manner)?;
    let file = written.object(FILE);
    let (again, after) = batches(&file, ReadOptions { keep_dictionaries: false, ..read })?;
    assert_eq!(sums(&schema, &before), sums(&again, &after));
    assert_eq!(schema.leaves(), again.leaves());
    assert_eq!(schema.nodes().len(), again.nodes().len());
    Ok(file)
}

pub(crate) fn plain() -> ColumnOptions {
    ColumnOptions { compression: Compression::Uncompressed, ..ColumnOptions::default() }
}

/// Writes tables of a flavour in batches of several sizes, and reads them.
fn check(schema: &Arc<Schema>, options: &WriteOptions, manner: Manner, rows: &[usize]) {
    for flavour in [Flavour::Few, Flavour::Ascending, Flavour::Random] {
        for layout in [Layout::Spaced, Layout::Dense] {
            let batches: Vec<Batch> = (3..)
                .zip(rows)
                .map(|(seed, &rows)| given::batch(schema, rows, flavour, layout, seed))
                .collect();
            let written = write(schema, &batches, options.clone(), manner).unwrap();
            let file = written.object(FILE);
            let (again, after) = self::batches(&file, ReadOptions::default()).unwrap();
            for (before, after) in sums(schema, &batches).iter().zip(sums(&again, &after)) {
                assert_eq!(*before, after, "{flavour:?} {layout:?} {options:?}");
            }
        }
    }
}

#[test]
fn every_type_and_shape() {
    let schema = given::schema(&TYPES, &SHAPES);
    for page_version in [PageVersion::V1, PageVersion::V2] {
        let options = WriteOptions { column: plain(), page_version, ..WriteOptions::default() };
        check(&schema, &options, Manner::KIND, &[1, 3000, 0, 5, 700]);
    }
}

#[test]
fn small_pages_and_row_groups() {
    let schema = given::schema(&TYPES, &SHAPES);
    let small =
        WriteOptions { column: plain(), page_rows: 7, row_group_rows: 100, ..WriteOptions::default() };
    check(&schema, &small, Manner::KIND, &[250, 1, 99]);
    let short =
        WriteOptions { column: plain(), page_bytes: 50, row_group_bytes: 5000, ..WriteOptions::default() };
    check(&schema, &short, Manner::KIND, &[250, 1, 99]);
}

#[test]
fn spilled() {
    let schema = given::schema(&TYPES, &SHAPES);
    let options = WriteOptions {
        column: plain(),
        spill: Some(SPILL),
        held_bytes_max: 1000,
        row_group_rows: 6000,
        ..WriteOptions::default()
    };
    check(&schema, &options, Manner::KIND, &[250; 40]);
    check(&schema, &options, Manner::DISORDERLY, &[250; 10]);
}

/// However little may be held, there is an end.
#[test]
fn spilled_at_once() {
    let schema = given::schema(&TYPES, &SHAPES);
    for held_bytes_max in [0, 1, 2] {
        let options =
            WriteOptions { column: plain(), spill: Some(SPILL), held_bytes_max, ..WriteOptions::default() };
        check(&schema, &options, Manner::KIND, &[20, 1, 30]);
    }
}
