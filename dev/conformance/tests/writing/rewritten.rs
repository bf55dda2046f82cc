//! Files that were read and written again hold the same.

use std::sync::Arc;

use marquetry_base::{Bytes, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::leaves::sums;
use marquetry_conformance::written::{self, Written};
use marquetry_parquet::batch::{Batch, Layout};
use marquetry_parquet::format::Compression;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{ColumnOptions, Fed, FileWriter, PageVersion, WriteOptions};

use crate::given::{self, Flavour, SHAPES, TYPES};

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

/// Writes batches.
pub(crate) fn write(
    schema: &Arc<Schema>,
    batches: &[Batch],
    options: WriteOptions,
    manner: Manner,
) -> Result<Written> {
    let codecs = Arc::new(StandardCodecs::default());
    let mut writer = FileWriter::new(FILE, Arc::clone(schema), codecs, options)?;
    let mut left = batches.iter();
    written::write(&mut writer, manner, |writer, _room| {
        match left.next() {
            Some(batch) => assert_eq!(writer.feed(batch.clone())?, Fed::Taken),
            None => writer.finish(),
        }
        Ok(())
    })
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
