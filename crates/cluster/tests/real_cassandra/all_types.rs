//! A file with every scalar type, edge values and nulls, both loaded and printed as CQL, reads back equal to constants.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Limits, Object};
use marquetry_cluster::{BatchSource, ConnectOptions, Created, LoadOptions, Loaded, Loader};
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::File;
use marquetry_io::{ByteSources, drive};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_scylla::bridge::{InsertWriter, Mapping, MappingOptions, Nulls};
use marquetry_scylla::cql::{KeySpec, Name, TableName};
use scylla::value::CqlValue;

use crate::expected::{self, ROWS};
use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    loaded(server);
    printed(server, "printed_unset", Nulls::Unset);
    printed(server, "printed_null", Nulls::Null);
    numbered(server);
}

fn loaded(server: &Server) {
    let address = server.address("loaded");
    let (mapping, batches) = open(address.table(), &by_id(Nulls::Unset), false);
    assert_columns(&mapping);
    let mut loader = Loader::connect(address, &ConnectOptions::default()).unwrap();
    assert_eq!(loader.create_table(mapping.table(), mapping.types()).unwrap(), Created::New);
    assert_eq!(loader.create_table(mapping.table(), mapping.types()).unwrap(), Created::AlreadyThere);
    let rows = BatchSource::new("all_types.parquet", mapping, batches);
    let loaded = loader.load(Box::new(rows), &LoadOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(loaded, Loaded { rows: ROWS as u64, ..loaded });
    assert_rows(server, "loaded");
}

fn printed(server: &Server, table: &str, nulls: Nulls) {
    let name = TableName::parse(&format!("{KEYSPACE}.{table}")).unwrap();
    // As the command prints: with dictionaries kept.
    let (mapping, batches) = open(&name, &by_id(nulls), true);
    assert_columns(&mapping);
    server.run(&mapping.table().to_string());
    let mut writer = InsertWriter::new(&*mapping);
    let mut statements = 0;
    for batch in batches {
        let batch = mapping.assemble(batch.unwrap()).unwrap();
        for row in 0..batch.rows() {
            let mut out = Vec::new();
            writer.write(&batch, row..row + 1, batch.first_row(), &mut out, usize::MAX).unwrap();
            let statement = String::from_utf8(out).unwrap();
            assert!(statement.starts_with("INSERT INTO ") && statement.ends_with(";\n"), "{statement}");
            server.run(&statement);
            statements += 1;
        }
    }
    assert_eq!(statements, ROWS);
    assert_rows(server, table);
}

/// The row number as the key, from a number on, and only some rows and columns.
fn numbered(server: &Server) {
    let address = server.address("numbered");
    let options = MappingOptions {
        row_number: Some(Name::new("n").unwrap()),
        columns: Some(vec!["enum".to_owned()]),
        ..MappingOptions::default()
    };
    let (mapping, batches) = open(address.table(), &options, true);
    let mut loader = Loader::connect(address, &ConnectOptions::default()).unwrap();
    assert_eq!(loader.create_table(mapping.table(), mapping.types()).unwrap(), Created::New);
    // Five of six rows: beyond the first row group, which has four.
    let rows = BatchSource::new("all_types.parquet", mapping, batches).numbered_from(100).limited_to(5);
    assert_eq!(loader.load(Box::new(rows), &LoadOptions::default(), &mut |_| {}).unwrap().rows, 5);
    let read: BTreeMap<i64, Option<CqlValue>> = server
        .select(&format!("SELECT * FROM {KEYSPACE}.numbered"))
        .into_iter()
        .map(|row| match row["n"] {
            Some(CqlValue::BigInt(number)) => (number, row["enum"].clone()),
            ref other => panic!("{other:?}"),
        })
        .collect();
    let text = |text: &str| Some(CqlValue::Text(text.to_owned()));
    let expected = [text("HEARTS"), text(""), text("'"), text("SPADES"), None];
    assert_eq!(read, (100..).zip(expected).collect());
}

fn by_id(nulls: Nulls) -> MappingOptions {
    MappingOptions { key: Some(KeySpec::parse("id").unwrap()), nulls, ..MappingOptions::default() }
}

type Batches = Box<dyn Iterator<Item = marquetry_base::Result<Batch>> + Send>;

fn open(table: &TableName, options: &MappingOptions, keep_dictionaries: bool) -> (Arc<Mapping>, Batches) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/all_types.parquet");
    let file = ByteSources::new().with(Object(0), File::open(path).unwrap());
    let metadata = drive(&mut FooterReader::new(Object(0), Limits::DEFAULT), &file).unwrap().unwrap();
    let mapping = Arc::new(Mapping::new(&metadata.schema, table.clone(), options).unwrap());
    let options = ReadOptions {
        leaves: Some(mapping.leaves()),
        // Batches end within row groups too.
        batch_rows: 3,
        keep_dictionaries,
        ..ReadOptions::default()
    };
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(Object(0), metadata, codecs, options).unwrap();
    (mapping, Box::new(std::iter::from_fn(move || drive(&mut reader, &file).transpose())))
}

fn assert_columns(mapping: &Mapping) {
    let mapped: Vec<_> =
        mapping.columns().iter().map(|column| (column.name.as_str(), column.cql_type.to_string())).collect();
    let expected: Vec<_> =
        expected::columns().iter().map(|column| (column.name, column.cql_type.to_owned())).collect();
    assert_eq!(mapped, expected);
}

fn assert_rows(server: &Server, table: &str) {
    let columns = expected::columns();
    let rows = server.select(&format!("SELECT * FROM {KEYSPACE}.{table}"));
    assert_eq!(rows.len(), ROWS);
    for read in rows {
        let Some(CqlValue::Int(id)) = read["id"] else { panic!("{:?}", read["id"]) };
        let row = usize::try_from(id).unwrap();
        assert_eq!(read.len(), columns.len());
        for column in &columns {
            let (read, expected) = (&read[column.name], &column.values[row]);
            assert!(
                expected::same(read, expected),
                "{table}.{} of row {row}: {read:?}, not {expected:?}",
                column.name
            );
        }
    }
}
