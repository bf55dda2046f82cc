//! The layout `columns`: a Parquet file within a table.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Detail, ErrorKind, Result};
use marquetry_cluster::{ColumnsTable, CqlOptions, CqlTable, NewColumns, OpenedTable, UnloadOptions};
use marquetry_io::store::Store;
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_parquet::write::BloomOptions;
use marquetry_tables::files::{Files, FilesOptions, ParquetFile};
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::{
    ColumnPath, CopyOptions, Destination, DiffOptions, Filter, PieceOptions, Source, Table, copy, count,
    diff, filter, project,
};
use scylla::value::CqlValue;

use crate::made::{Made, int};
use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    a_file_there_and_back(server);
    every_type_there_and_back(server);
    a_column_costs_its_partitions(server);
    versions_take_the_place_of_others(server);
    of_two_writers_the_first_wins(server);
    what_is_left_is_dropped(server);
    what_is_missing_is_said(server);
    later_formats_are_refused(server);
    other_tables_are_refused(server);
}

const ROWS: i64 = 120_000;

fn creating() -> CqlOptions {
    let mut options = CqlOptions::default();
    options.create = true;
    options
}

fn parquet(overwrite: bool) -> ParquetOptions {
    let mut options = ParquetOptions::default();
    options.write.row_group_rows = 50_000;
    options.write.page_rows = 5_000;
    options.bloom = vec![(ColumnPath::of(["b"]), BloomOptions::default())];
    options.overwrite = overwrite;
    options
}

fn table_of_rows() -> Table {
    let leaf = |name| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, None)).required();
    Table::new("rows", Arc::new(Schema::of_fields(&[leaf("a"), leaf("b"), leaf("c")]).unwrap()))
}

/// Rows: their numbers, what looks random, and `salt`.
fn write(destination: &mut dyn Destination, salt: i64) -> Result<()> {
    destination.begin(&table_of_rows())?;
    for first in (0..ROWS).step_by(10_000) {
        let rows = || first..first + 10_000;
        let scattered = rows().map(|row| scattered(row, salt)).collect::<Vec<i64>>();
        let same = rows().map(|_| salt).collect::<Vec<i64>>();
        let batch = Batch::of_values([rows().collect::<Vec<i64>>().into(), scattered.into(), same.into()])?;
        destination.write(batch)?;
    }
    destination.finish()?;
    destination.commit()
}

fn scattered(row: i64, salt: i64) -> i64 {
    (row ^ salt).wrapping_mul(0x5851_f42d_4c95_7f2d).rotate_left(23).wrapping_mul(0x1405_7b7e_f767_814f)
}

fn new_file(server: &Server, table: &str, options: CqlOptions, overwrite: bool) -> NewParquetFile {
    let store = NewColumns::new(server.address(table), options);
    let name = store.name().to_owned();
    NewParquetFile::new_in(Arc::new(store), name, parquet(overwrite)).unwrap()
}

fn open(server: &Server, table: &str) -> Result<ColumnsTable> {
    match OpenedTable::open(server.address(table), &UnloadOptions::default())? {
        OpenedTable::Columns(table) => Ok(table),
        other => panic!("{other:?}"),
    }
}

fn files(table: &ColumnsTable) -> Result<Arc<dyn Source>> {
    let mut options = FilesOptions::default();
    options.store = Arc::new(table.clone());
    Ok(Arc::new(Files::open([table.name()], &options)?))
}

/// The bytes of the file, from its start to its end.
fn bytes(table: &ColumnsTable) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut stream = table.stream(Path::new(""), Box::new(|| false)).unwrap();
    stream.reader.read_to_end(&mut bytes).unwrap();
    bytes
}

/// The same rows as a local file.
fn local(folder: &Path, salt: i64) -> Vec<u8> {
    let path = folder.join(format!("{salt}.parquet"));
    write(&mut NewParquetFile::new(&path, parquet(false)).unwrap(), salt).unwrap();
    std::fs::read(path).unwrap()
}

/// The versions that have partitions, but for what says which is current.
fn versions(server: &Server, table: &str) -> Vec<CqlValue> {
    let keys = server
        .select(&format!("SELECT DISTINCT version, column_number, row_group, shard FROM {KEYSPACE}.{table}"));
    let mut versions: Vec<CqlValue> = keys.into_iter().filter_map(|key| key["version"].clone()).collect();
    versions.retain(|version| !matches!(version, CqlValue::Uuid(id) if id.is_nil()));
    versions.sort_unstable_by_key(|version| format!("{version:?}"));
    versions.dedup();
    versions
}

/// A version as CQL writes it.
fn text(version: &CqlValue) -> String {
    match version {
        CqlValue::Uuid(id) => id.to_string(),
        other => panic!("{other:?}"),
    }
}

fn a_file_there_and_back(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let error = write(&mut new_file(server, "col", CqlOptions::default(), false), 1).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["create"])), "{error}");
    write(&mut new_file(server, "col", creating(), false), 1).unwrap();
    let table = open(server, "col").unwrap();
    let expected = local(folder.path(), 1);
    assert!(bytes(&table) == expected);
    let source = files(&table).unwrap();
    assert_eq!(source.table().rows, Some(120_000));
    assert_eq!(count(&source, &Default::default()).unwrap(), 120_000);
    // Any ranges.
    let (file, version) = table.open(Path::new("any")).unwrap();
    assert_eq!(version.bytes(), u64::try_from(expected.len()).unwrap());
    let mut at = 7_u64;
    for _ in 0..60 {
        at = (at * 48_271 + 11) % (version.bytes() - 10);
        let end = version.bytes().min(at + at % 400_000 + 1);
        let range = usize::try_from(at).unwrap()..usize::try_from(end).unwrap();
        assert!(file.read(at..end).unwrap()[..] == expected[range], "{at} to {end}");
    }
    assert!(file.read(0..version.bytes() + 1).is_err());
    // Found by the index, the filter and the statistics.
    let wanted = Filter::new(format!("b = {}", scattered(77_777, 1)));
    let found = filter(&source, &wanted).unwrap();
    assert_eq!(count(&found, &Default::default()).unwrap(), 1);
    let report = wanted.report();
    assert!(report.bloom.pruned == 2 && report.tested == 50_000, "{report:?}");
    let wanted = Filter::new("a = 77777");
    assert_eq!(count(&filter(&source, &wanted).unwrap(), &Default::default()).unwrap(), 1);
    let report = wanted.report();
    assert!(report.statistics.pruned == 2 && report.tested <= 5_000, "{report:?}");
    // Pages are compressed already.
    let compression = server.select(&format!(
        "SELECT compression FROM system_schema.tables WHERE keyspace_name = '{KEYSPACE}' AND table_name = 'col'"
    ));
    assert!(format!("{compression:?}").contains("false"), "{compression:?}");
}

fn every_type_there_and_back(server: &Server) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in ["all_types", "nested"] {
        let path = data.join(name).with_extension("parquet");
        let source: Arc<dyn Source> = Arc::new(Files::open([path], &FilesOptions::default()).unwrap());
        let table = format!("col_{name}");
        let store = NewColumns::new(server.address(&table), creating());
        let path = store.name().to_owned();
        let mut file = NewParquetFile::new_in(Arc::new(store), path, ParquetOptions::default()).unwrap();
        copy(&source, &mut file, &CopyOptions::default(), &mut |_| {}).unwrap();
        let back = files(&open(server, &table).unwrap()).unwrap();
        let found = diff([&source, &back], &DiffOptions::default(), &mut |_| {}).unwrap();
        assert!(found.are_rows_equal(), "{name}");
    }
}

/// What reading one column asks for is in the partitions of its chunks.
fn a_column_costs_its_partitions(server: &Server) {
    let table = open(server, "col").unwrap();
    let source = files(&table).unwrap();
    let (before, _) = table.requested();
    let one = project(&source, &[ColumnPath::of(["b"])]).unwrap();
    for piece in 0..one.pieces().len() {
        let mut batches = one.open(piece, &PieceOptions::default()).unwrap();
        while batches.next().unwrap().is_some() {}
    }
    let (cells, read) = table.requested();
    let of_column = server.select(&format!(
        "SELECT column_number, file_offset, bytes FROM {KEYSPACE}.col WHERE column_number = 1 ALLOW FILTERING"
    ));
    let bytes: usize = of_column
        .iter()
        .map(|cell| match &cell["bytes"] {
            Some(CqlValue::Blob(bytes)) => bytes.len(),
            other => panic!("{other:?}"),
        })
        .sum();
    assert!(of_column.len() > 3, "{}", of_column.len());
    // Each cell once, and no other.
    assert_eq!(cells - before, u64::try_from(of_column.len()).unwrap());
    let file = ParquetFile::open_in(
        &(Arc::new(table.clone()) as Arc<dyn Store>),
        Path::new("any"),
        marquetry_base::Limits::DEFAULT,
    )
    .unwrap();
    let chunks =
        file.metadata().row_groups.iter().map(|group| group.columns.get(1).unwrap().compressed_bytes);
    assert_eq!(u64::try_from(bytes).unwrap(), chunks.sum::<u64>());
    assert!(read < file.bytes(), "{read} of {}", file.bytes());
}

fn versions_take_the_place_of_others(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let old = open(server, "col").unwrap();
    let source = files(&old).unwrap();
    let was = versions(server, "col");
    assert_eq!(was.len(), 1);
    let error = write(&mut new_file(server, "col", CqlOptions::default(), false), 2).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::AlreadyExists), "{error}");
    assert_eq!(versions(server, "col"), was);
    write(&mut new_file(server, "col", CqlOptions::default(), true), 2).unwrap();
    assert!(bytes(&open(server, "col").unwrap()) == local(folder.path(), 2));
    let now = versions(server, "col");
    assert!(now.len() == 1 && now != was, "{now:?}");
    // Who reads the old one is not given rows of the new one.
    let mut batches = source.open(0, &PieceOptions::default()).unwrap();
    let error = batches.next().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    assert!(error.message().contains("another version"), "{error}");
}

fn of_two_writers_the_first_wins(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let begin = |salt: i64| {
        let mut file = new_file(server, "col", CqlOptions::default(), true);
        file.begin(&table_of_rows()).unwrap();
        let column = || (0..100).map(|_| salt).collect::<Vec<i64>>();
        file.write(Batch::of_values([column().into(), column().into(), column().into()]).unwrap()).unwrap();
        file.finish().unwrap();
        file
    };
    let (mut one, mut other) = (begin(3), begin(4));
    one.commit().unwrap();
    let current = bytes(&open(server, "col").unwrap());
    let error = other.commit().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert!(bytes(&open(server, "col").unwrap()) == current);
    assert_eq!(versions(server, "col").len(), 1);
    // The first version of all, too.
    server.run(&format!("TRUNCATE {KEYSPACE}.col"));
    let error = files(&open(server, "col").unwrap()).map(drop).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::NotFound), "{error}");
    let (mut one, mut other) = (begin(5), begin(6));
    other.commit().unwrap();
    assert_eq!(one.commit().unwrap_err().kind(), ErrorKind::Refused);
    assert_eq!(versions(server, "col").len(), 1);
    write(&mut new_file(server, "col", CqlOptions::default(), true), 7).unwrap();
    assert!(bytes(&open(server, "col").unwrap()) == local(folder.path(), 7));
}

/// What writers leave that are killed: before they say so no more, and after.
fn what_is_left_is_dropped(server: &Server) {
    let (left, going_on) = ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222");
    for version in [left, going_on] {
        for column in [-2, 0, 1] {
            server.run(&format!(
                "INSERT INTO {KEYSPACE}.col (version, column_number, row_group, shard, file_offset, bytes) VALUES ({version}, {column}, 0, 0, 0, 0xff)"
            ));
        }
    }
    let lease = i64::from_str_radix("2222222222224222", 16).unwrap() >> 1 | 1;
    server.run(&format!(
        "INSERT INTO {KEYSPACE}.col (version, column_number, row_group, shard, file_offset, bytes)
         VALUES (00000000-0000-0000-0000-000000000000, -1, 0, 0, {lease}, 0xff) USING TTL 600"
    ));
    // Of more writers than a page of the table's rows has.
    for other in 1..40 {
        server.run(&format!(
            "INSERT INTO {KEYSPACE}.col (version, column_number, row_group, shard, file_offset, bytes)
             VALUES (00000000-0000-0000-0000-000000000000, -1, 0, 0, {other}, 0xff) USING TTL 600"
        ));
    }
    let current = bytes(&open(server, "col").unwrap());
    write(&mut new_file(server, "col", CqlOptions::default(), true), 7).unwrap();
    assert!(bytes(&open(server, "col").unwrap()) == current);
    let there: Vec<String> = versions(server, "col").iter().map(text).collect();
    assert_eq!(there.len(), 2, "{there:?}");
    assert!(there.iter().any(|version| version == going_on), "{there:?}");
    server.run(&format!(
        "DELETE FROM {KEYSPACE}.col WHERE version = 00000000-0000-0000-0000-000000000000 AND column_number = -1
         AND row_group = 0 AND shard = 0 AND file_offset > 0"
    ));
    write(&mut new_file(server, "col", CqlOptions::default(), true), 7).unwrap();
    assert_eq!(versions(server, "col").len(), 1);
}

fn what_is_missing_is_said(server: &Server) {
    let cells = server.select(&format!(
        "SELECT version, row_group, file_offset, bytes FROM {KEYSPACE}.col WHERE column_number = 1 ALLOW FILTERING"
    ));
    let cells = cells.iter().map(|cell| {
        match (&cell["file_offset"], &cell["version"], &cell["row_group"], &cell["bytes"]) {
            (
                Some(CqlValue::BigInt(offset)),
                Some(version),
                Some(CqlValue::Int(row_group)),
                Some(CqlValue::Blob(bytes)),
            ) => (*offset, text(version), *row_group, bytes),
            other => panic!("{other:?}"),
        }
    });
    let first = cells.filter(|(_, _, row_group, _)| *row_group == 0);
    let (offset, version, row_group, whole) = first.max_by_key(|(offset, ..)| *offset).unwrap();
    let cell = format!(
        "version = {version} AND column_number = 1 AND row_group = {row_group} AND shard = 0 AND file_offset = {offset}"
    );
    let read = |table: &ColumnsTable, column: &str| -> Result<()> {
        let one = project(&files(table)?, &[ColumnPath::of([column])])?;
        for piece in 0..one.pieces().len() {
            let mut batches = one.open(piece, &PieceOptions::default())?;
            while batches.next()?.is_some() {}
        }
        Ok(())
    };
    let expect = |message: &str| {
        let table = open(server, "col").unwrap();
        // The others are there.
        read(&table, "a").unwrap();
        let error = read(&table, "b").unwrap_err();
        assert_eq!(
            (error.kind(), error.place().offset),
            (ErrorKind::Corrupt, u64::try_from(offset).ok()),
            "{error}"
        );
        for part in [message, &version, "column_number = 1"] {
            assert!(error.message().contains(part), "{error}");
        }
        assert_eq!(error.place().object.as_deref(), Some(table.name()));
    };
    // The last of its chunk, with a byte that is another one's.
    let hex: String = whole.iter().map(|byte| format!("{byte:02x}")).collect();
    server.run(&format!("UPDATE {KEYSPACE}.col SET bytes = 0x{hex}00 WHERE {cell}"));
    expect("elsewhere by its map");
    server.run(&format!("DELETE FROM {KEYSPACE}.col WHERE {cell}"));
    expect("lacks a cell");
    // Nothing of the map.
    server.run(&format!(
        "DELETE FROM {KEYSPACE}.col WHERE version = {version} AND column_number = -1 AND row_group = 0 AND shard = 0"
    ));
    let error = files(&open(server, "col").unwrap()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
}

fn later_formats_are_refused(server: &Server) {
    let head: String = "marquetry-columns 2\n".bytes().map(|byte| format!("{byte:02x}")).collect();
    server.run(&format!(
        "UPDATE {KEYSPACE}.col SET bytes = 0x{head} WHERE version = 00000000-0000-0000-0000-000000000000 AND column_number = -1
         AND row_group = 0 AND shard = 0 AND file_offset = 0"
    ));
    let error = files(&open(server, "col").unwrap()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let error = write(&mut new_file(server, "col", CqlOptions::default(), true), 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
}

fn other_tables_are_refused(server: &Server) {
    server.run(&format!("CREATE TABLE {KEYSPACE}.no_col (k int PRIMARY KEY, bytes blob)"));
    let error = write(&mut new_file(server, "no_col", CqlOptions::default(), true), 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let error = write(&mut new_file(server, "no_col", creating(), true), 1).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::AlreadyExists), "{error}");
    let opened = OpenedTable::open(server.address("no_col"), &UnloadOptions::default()).unwrap();
    assert!(matches!(opened, OpenedTable::Rows(_)), "{opened:?}");
    // Rows are not added to what a file is in.
    let made = Made::new(&[("k", "int")], [vec![int(1)]]);
    let error = made.load(&mut CqlTable::new(server.address("col"), CqlOptions::default())).1.unwrap_err();
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["layout"])), "{error}");
}
