//! Files that were read and written again hold the same.

use std::sync::Arc;

use marquetry_base::{Bytes, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE, with_bytes};
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::written::{self, Written};
use marquetry_parquet::format::Compression;
use marquetry_parquet::read::{Batch, BatchReader, ColumnBatch, Layout, ReadOptions};
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{ColumnOptions, Fed, FileWriter, PageVersion, WriteOptions};

use crate::given::{self, Flavour, SHAPES, TYPES};

/// Where pages are moved to.
pub(crate) const SPILL: Object = Object(7);

/// What a leaf holds, whatever its batches, pages and encodings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LeafSum {
    pub(crate) path: String,
    pub(crate) rows: u64,
    pub(crate) nulls: u64,
    pub(crate) levels: u32,
    pub(crate) values: u32,
}

impl LeafSum {
    pub(crate) fn add(&mut self, column: &ColumnBatch) {
        let (mut levels, mut values) = (
            crc32fast::Hasher::new_with_initial(self.levels),
            crc32fast::Hasher::new_with_initial(self.values),
        );
        self.rows += column.rows as u64;
        self.nulls += column.nulls as u64;
        match &column.levels {
            Some(of) => {
                for entry in 0..of.definition.len() {
                    let repetition = of.repetition.as_ref().map_or(0, |levels| levels[entry]);
                    levels.update(&[of.definition[entry], repetition]);
                }
            }
            None => (0..column.rows).for_each(|row| levels.update(&[u8::from(column.is_null(row))])),
        }
        let is_spaced = column.levels.is_none() && column.layout == Layout::Spaced;
        for index in (0..column.values.len()).filter(|&index| !is_spaced || !column.is_null(index)) {
            with_bytes(&column.values, index, |bytes| {
                values.update(&u64::try_from(bytes.len()).unwrap().to_le_bytes());
                values.update(bytes);
            });
        }
        (self.levels, self.values) = (levels.finalize(), values.finalize());
    }
}

/// All batches of a file.
pub(crate) fn batches(bytes: &Bytes, options: ReadOptions) -> Result<(Arc<Schema>, Vec<Batch>)> {
    let metadata = canonical::metadata(bytes, Manner::KIND)?;
    let schema = Arc::new(metadata.schema.clone());
    let mut reader = BatchReader::new(FILE, metadata, Arc::new(StandardCodecs::default()), options)?;
    let mut batches = Vec::new();
    canonical::read(&mut reader, bytes, Manner::KIND, |batch| batches.push(batch))?;
    Ok((schema, batches))
}

pub(crate) fn sums(schema: &Schema, batches: &[Batch]) -> Vec<LeafSum> {
    let named = schema.leaves().iter().map(|leaf| LeafSum { path: leaf.path.clone(), ..LeafSum::default() });
    let mut sums: Vec<LeafSum> = named.collect();
    for batch in batches {
        for (sum, column) in sums.iter_mut().zip(&batch.columns) {
            sum.add(column);
        }
    }
    sums
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
