//! Footers that were read and written again are the same.

use std::path::PathBuf;
use std::sync::Arc;

use marquetry_base::{Bytes, ErrorKind};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::{self, BYTE_ARRAY, Column, Struct, Table, V};
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::written;
use marquetry_parquet::format::{FileMetaData, MAGIC};
use marquetry_parquet::schema::LogicalType;
use marquetry_parquet::write::{FileWriter, FooterWriter, WriteOptions};

fn corpus() -> Vec<PathBuf> {
    let Some(corpus) = files::corpus() else { return Vec::new() };
    let folders = [
        "parquet-testing/data",
        "parquet-testing/data/geospatial",
        "parquet-testing/shredded_variant",
        "real",
    ];
    folders.iter().flat_map(|folder| files::parquet_files(&corpus.join(folder))).collect()
}

/// A file that is nothing but this footer, and what it took to write it.
fn write(metadata: &Arc<FileMetaData>, manner: Manner) -> (Bytes, u64, usize) {
    let mut writer = FooterWriter::new(FILE, Arc::clone(metadata)).unwrap();
    let written = written::write(&mut writer, manner, |_, ()| Ok(())).unwrap();
    let file = [&MAGIC[..], &written.object(FILE)].concat();
    (file.into(), written.report.units_max, written.piece_bytes_max)
}

/// The same, wherever it stands.
fn at_the_start(metadata: &FileMetaData) -> FileMetaData {
    FileMetaData { footer_start: 0, footer_bytes: 0, ..metadata.clone() }
}

/// Whether all of a footer is known, so that all of it can be written.
fn is_known(metadata: &FileMetaData) -> bool {
    let mut chunks = metadata.row_groups.iter().flat_map(|group| &group.columns);
    metadata.encryption.is_none()
        && !chunks.any(|chunk| chunk.encrypted)
        && !metadata
            .schema
            .nodes()
            .iter()
            .any(|node| matches!(node.logical_type, Some(LogicalType::Unrecognised { has_fields: true, .. })))
}

/// What nobody knows is written again where all of it is known: that it is there. It is read alike in one piece and in many.
#[test]
fn unknown_logical_types() {
    let empty = || V::Struct(Struct::default());
    for (value, has_fields) in [(empty(), false), (V::Struct(Struct::of([(3, empty())])), true)] {
        let unknown = V::Struct(Struct::of([(2555, value)]));
        let file = Table::new([Column::required("a", BYTE_ARRAY).with(10, unknown)]).write();
        let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
        assert!(metadata == canonical::metadata(&file, Manner::DISORDERLY).unwrap());
        let expected = Some(LogicalType::Unrecognised { number: 2555, has_fields });
        assert_eq!(metadata.schema.nodes()[1].logical_type, expected);

        let schema = Arc::clone(&metadata.schema);
        let codecs = Arc::new(StandardCodecs::default());
        let mut writer = FileWriter::new(FILE, schema, codecs, WriteOptions::default()).unwrap();
        let written = written::write(&mut writer, Manner::KIND, |writer, _room| {
            writer.finish();
            Ok(())
        });
        if has_fields {
            let error = written.expect_err("a type that is not wholly known");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains("2555"), "{error}");
        } else {
            let again = canonical::metadata(&written.unwrap().object(FILE), Manner::KIND).unwrap();
            assert_eq!(again.schema.nodes()[1].logical_type, expected);
        }
    }
}

#[test]
fn footers_of_the_corpus() {
    let mut count = 0;
    for path in corpus() {
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        let Ok(metadata) = canonical::metadata(&bytes, Manner::KIND) else { continue };
        if !is_known(&metadata) {
            println!("not all of it is known: {}", path.display());
            continue;
        }
        let (kind, ..) = write(&metadata, Manner::KIND);
        let again = canonical::metadata(&kind, Manner::KIND).unwrap();
        assert!(at_the_start(&metadata) == at_the_start(&again), "{}", path.display());
        let (slow, units, piece) = write(&metadata, Manner::DISORDERLY);
        assert!(slow == kind, "{}: budgets change what is written", path.display());
        assert!(piece < 1 << 20 && units < 50_000, "{}: {units} units, {piece} bytes", path.display());
        count += 1;
    }
    println!("{count} footers");
    assert!(count == 0 || count > 90, "{count} footers");
}

/// A wide footer leaves in small pieces and steps.
#[test]
fn a_hundred_thousand_columns() {
    let columns: Vec<craft::Column> =
        (0..100_000).map(|number| craft::Column::required(&format!("c{number}"), craft::INT64)).collect();
    let bytes = Table::new(columns).write();
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let (file, units, piece) = write(&metadata, Manner { budget: 1, ..Manner::KIND });
    let again = canonical::metadata(&file, Manner::KIND).unwrap();
    assert!(at_the_start(&metadata) == at_the_start(&again));
    println!("{} bytes, largest step {units} units, largest piece {piece} bytes", file.len());
    assert!(units < 10_000 && piece < 128 << 10);
}
