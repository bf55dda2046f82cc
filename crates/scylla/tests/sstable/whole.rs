//! The machine that reads all components of one SSTable.

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Budget, Bytes, ErrorKind, Object, Release, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::mutations::{
    Mapper, MapperOptions, MutationMapping, SstableOptions, SstableReader,
};
use marquetry_scylla::cql::{Definitions, TableName};
use marquetry_scylla::sstable::{Component, FileName, parse_toc};

use crate::driver::{self, Manner};
use crate::files::{Files, next_over};
use crate::mapping::{mapped, read};
use crate::{fixtures, name_of};

/// The most that a step costs beyond its budget: as of a mapper, whose steps are the dearest.
const SLICE_UNITS_MAX: u64 = 450_000;

type Given = (Vec<(FileName, Object)>, Vec<(Object, Bytes)>);

/// All files of an SSTable, which are objects of any numbers.
fn given(data: &Path) -> Given {
    let file_name = data.file_name().and_then(|name| name.to_str()).unwrap();
    let name = FileName::parse(file_name).unwrap().unwrap();
    let folder = data.parent().unwrap();
    let toc = parse_toc(&std::fs::read(folder.join(name.of(&Component::Toc))).unwrap()).unwrap();
    let mut given: Given = Default::default();
    for (number, component) in toc.into_iter().enumerate() {
        let object = Object(u32::try_from(40 - number).unwrap());
        let bytes = std::fs::read(folder.join(name.of(&component))).unwrap();
        given.0.push((FileName { component, ..name.clone() }, object));
        given.1.push((object, Bytes::from(bytes)));
    }
    given
}

fn reader(given: &Given, options: SstableOptions) -> Result<SstableReader> {
    SstableReader::new(&given.0, Arc::new(StandardCodecs::default()), options)
}

fn all(given: &Given, options: SstableOptions) -> Result<Vec<Batch>> {
    let mut reader = reader(given, options)?;
    let mut batches = Vec::new();
    while let Some(batch) = next_over(&mut reader, &given.1, |_, _| {})? {
        batch.check(reader.schema().unwrap()).unwrap();
        batches.push(batch);
    }
    assert!(reader.schema().is_some());
    Ok(batches)
}

#[test]
fn it_reads_what_its_machines_read() {
    let Some(fixtures) = fixtures() else { return };
    for path in fixtures {
        let (columns, present, writes) = read(&Files::open(&path));
        let mut options = MapperOptions::default();
        options.present = present;
        let mut mapper = Mapper::new(MutationMapping::Full, Arc::new(columns), &options).unwrap();
        let expected = mapped(&mut mapper, writes, 1 << 50);
        let given = given(&path);
        // Of ScyllaDB's, which say what key columns are called, there are none here.
        assert!(all(&given, SstableOptions::default()).unwrap() == expected, "{}", path.display());
    }
}

#[test]
fn hosts_of_every_manner_get_the_same() {
    let Some(fixtures) = fixtures() else { return };
    let some =
        ["5.0.9-oa-zstd/mix/oa-2", "5.0.9-da-none/wide/da-2", "3.11.10-md-lz4/cnt", "legacy_mc_simple/"];
    let chosen: Vec<_> =
        fixtures.iter().filter(|path| some.iter().any(|name| name_of(path).contains(name))).collect();
    assert!(chosen.len() >= 3);
    for path in chosen {
        let given = given(path);
        let expected = all(&given, SstableOptions::default()).unwrap();
        for manner in [Manner::ONE_BYTE, Manner::DISORDERLY, Manner::USUAL] {
            let data = given.1.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
            if manner.piece_bytes == 1 && data > 200_000 {
                continue;
            }
            let mut reader = reader(&given, SstableOptions::default()).unwrap();
            let mut batches = Vec::new();
            let report = driver::run_over(&mut reader, &given.1, manner, |batch| {
                batches.push(batch);
                Ok(())
            });
            let units = report.unwrap().units_max;
            assert!(batches == expected, "{}, {manner:?}", path.display());
            assert!(units <= manner.budget + SLICE_UNITS_MAX, "{units} units, {}", path.display());
            while !reader.release(&mut Budget::new(0)) {}
        }
    }
}

fn first(name: &str) -> Option<std::path::PathBuf> {
    Some(fixtures()?.into_iter().find(|path| name_of(path).contains(name)).unwrap())
}

#[test]
fn a_definition_names_keys_and_leaves_out_what_it_lacks() {
    let Some(path) = first("5.0.9-oa-zstd/simple/") else { return };
    let given = given(&path);
    let names = |options: SstableOptions| {
        let mut reader = reader(&given, options)?;
        next_over(&mut reader, &given.1, |_, _| {})?;
        let schema = reader.schema().unwrap();
        Ok::<_, marquetry_base::Error>(
            (0..schema.leaves().len()).map(|leaf| schema.leaf_path(leaf)).collect::<Vec<_>>(),
        )
    };
    let made_up = names(SstableOptions::default()).unwrap();
    assert_eq!(made_up[0], "pk0");
    let statistics = Files::open(&path).read_statistics().unwrap();
    let columns = marquetry_scylla::sstable::TableColumns::new(&[&statistics.header], None).unwrap();
    let (mut table, types) = columns.definition(&TableName::parse("ks.t").unwrap()).unwrap();
    assert_eq!(types.len(), 0);
    table.columns[0].name = marquetry_scylla::cql::Name::new("the_key").unwrap();
    let dropped = table.columns.pop().unwrap().name.as_str().to_string();
    let text = table.to_string();
    let with = |text: &str, table: Option<&str>| {
        let mut options = SstableOptions::default();
        options.definitions = Some(Definitions::parse(text).unwrap());
        options.table = table.map(|name| TableName::parse(name).unwrap());
        names(options)
    };
    let named = with(&text, None).unwrap();
    assert_eq!(named[0], "the_key");
    assert!(made_up.contains(&dropped) && !named.contains(&dropped), "{named:?}");
    let others = format!("CREATE TABLE ks.u (a int PRIMARY KEY); {text}");
    assert_eq!(with(&others, Some("ks.t")).unwrap(), named);
    assert_eq!(with(&others, Some("t")).unwrap(), named);
    for (text, table) in
        [(&*others, Some("ks.u")), (&others, Some("ks.v")), ("CREATE TABLE u (a int PRIMARY KEY)", None)]
    {
        assert_eq!(with(text, table).unwrap_err().kind(), ErrorKind::Misuse, "{table:?}");
    }
}

#[test]
fn files_that_are_no_sstable_are_misuses() {
    let Some(path) = first("5.0.9-oa-zstd/simple/") else { return };
    let whole = given(&path);
    let without = |component: &Component| {
        let (mut names, bytes) = whole.clone();
        names.retain(|(name, _)| name.component != *component);
        (names, bytes)
    };
    let failed = |given: &Given| {
        let error = all(given, SstableOptions::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        error.to_string()
    };
    assert!(failed(&without(&Component::Data)).contains("Data.db"));
    assert!(failed(&without(&Component::Statistics)).contains("Statistics.db"));
    assert!(failed(&without(&Component::CompressionInfo)).contains("is listed in TOC.txt"));
    let mut twice = whole.clone();
    twice.0.push(twice.0[0].clone());
    assert!(failed(&twice).contains("given twice"));
    let mut mixed = whole.clone();
    mixed.0[1].0.id = "9".to_string();
    assert!(failed(&mixed).contains("several SSTables"));
    assert_eq!(failed(&Given::default()), "an SSTable of no files");
    // What reading does not need may be missing, and TOC.txt, too.
    let lean = without(&Component::Toc);
    assert!(
        all(&lean, SstableOptions::default()).unwrap() == all(&whole, SstableOptions::default()).unwrap()
    );
    assert!(reader(&whole, SstableOptions::default()).unwrap().schema().is_none());
}

#[test]
fn corrupt_components_are_errors_which_name_them() {
    let Some(path) = first("5.0.9-oa-zstd/simple/") else { return };
    let whole = given(&path);
    for (component, kind) in [
        (Component::Data, ErrorKind::Corrupt),
        (Component::Digest, ErrorKind::Corrupt),
        (Component::Statistics, ErrorKind::Corrupt),
        (Component::CompressionInfo, ErrorKind::Corrupt),
        (Component::Toc, ErrorKind::Corrupt),
    ] {
        let (names, mut bytes) = whole.clone();
        let object = names.iter().find(|(name, _)| name.component == component).unwrap().1;
        let of = bytes.iter_mut().find(|(its, _)| *its == object).unwrap();
        of.1 = of.1.iter().map(|byte| !byte).collect::<Vec<u8>>().into();
        let error = all(&(names, bytes), SstableOptions::default()).unwrap_err();
        assert_eq!(
            (error.kind(), error.place().object.as_deref()),
            (kind, Some(component.name())),
            "{error}"
        );
    }
}
