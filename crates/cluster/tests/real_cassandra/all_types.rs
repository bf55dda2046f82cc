//! A file with every scalar type, edge values and nulls, both loaded and printed as CQL, reads back equal to constants.

use std::collections::BTreeMap;
use std::sync::Arc;

use marquetry_cluster::{CqlOptions, CqlTable, Created};
use marquetry_scylla::bridge::{InsertWriter, Mapping, MappingOptions, Nulls};
use marquetry_scylla::cql::{KeySpec, Name, TableName};
use marquetry_tables::{CopyOptions, CqlParts, CqlText, CqlTextOptions, Destination, Source, copy};
use scylla::value::CqlValue;

use crate::expected::{self, ROWS};
use crate::made::{FileSource, load};
use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    loaded(server);
    printed(server, "printed_unset", Nulls::Unset);
    printed(server, "printed_null", Nulls::Null);
    numbered(server);
}

fn loaded(server: &Server) {
    let address = server.address("loaded");
    let (mapping, source) = open(address.table(), &by_id(Nulls::Unset));
    assert_columns(&mapping);
    let source: Arc<dyn Source> = source;
    for created in [Created::New, Created::AlreadyThere] {
        let mut table = CqlTable::new(address.clone(), CqlOptions::create(by_id(Nulls::Unset)));
        assert_eq!(table.created(), None);
        let (loaded, ended) = load(&mut table, &source);
        assert_eq!(ended, Ok(ROWS as u64));
        assert_eq!((loaded.rows, table.created()), (ROWS as u64, Some(created)));
        assert_rows(server, "loaded");
    }
    // Its types and its key are known.
    let mut table = CqlTable::new(address, CqlOptions::default());
    assert_eq!(load(&mut table, &source).1, Ok(ROWS as u64));
    assert_rows(server, "loaded");
}

fn printed(server: &Server, table: &str, nulls: Nulls) {
    let name = TableName::parse(&format!("{KEYSPACE}.{table}")).unwrap();
    let (mapping, source) = open(&name, &by_id(nulls));
    assert_columns(&mapping);
    server.run(&mapping.table().to_string());
    let mut writer = InsertWriter::new(mapping);
    let (mut statements, mut text) = (0, String::new());
    // As the command prints: with dictionaries kept.
    for batch in source.batches(true) {
        let batch = writer.mapping().assemble(batch).unwrap();
        for row in 0..batch.rows() {
            let mut out = Vec::new();
            writer.write(&batch, row..row + 1, batch.first_row(), &mut out, usize::MAX).unwrap();
            let statement = String::from_utf8(out).unwrap();
            assert!(statement.starts_with("INSERT INTO ") && statement.ends_with(";\n"), "{statement}");
            server.run(&statement);
            statements += 1;
            text.push_str(&statement);
        }
    }
    // So does the destination.
    let mut copied = Vec::new();
    let options = CqlTextOptions::of(by_id(nulls)).only(CqlParts::Rows);
    let mut destination = CqlText::new(&mut copied, name, options);
    let source: Arc<dyn Source> = source;
    copy(&source, &mut destination, &CopyOptions::default(), &mut |_| {}).unwrap();
    drop(destination);
    assert_eq!(String::from_utf8(copied).unwrap(), text);
    assert_eq!(statements, ROWS);
    assert_rows(server, table);
}

/// The row number as the key, and only some rows and columns.
fn numbered(server: &Server) {
    let options = MappingOptions {
        row_number: Some(Name::new("n").unwrap()),
        columns: Some(vec!["enum".to_owned()]),
        ..MappingOptions::default()
    };
    let mut table = CqlTable::new(server.address("numbered"), CqlOptions::create(options));
    let source: Arc<dyn Source> = FileSource::open("all_types.parquet");
    // Five of six rows: beyond the first row group, which has four.
    let mut only = CopyOptions::default();
    only.limit = Some(5);
    assert_eq!(copy(&source, &mut table, &only, &mut |_| {}).unwrap().rows, 5);
    assert_eq!(table.progress().unwrap().rows, 5);
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
    assert_eq!(read, (0..).zip(expected).collect());
}

fn by_id(nulls: Nulls) -> MappingOptions {
    MappingOptions { key: Some(KeySpec::parse("id").unwrap()), nulls, ..MappingOptions::default() }
}

fn open(table: &TableName, options: &MappingOptions) -> (Mapping, Arc<FileSource>) {
    let source = FileSource::open("all_types.parquet");
    (Mapping::new(&source.table().schema, table.clone(), options).unwrap(), source)
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
