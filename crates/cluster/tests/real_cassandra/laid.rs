//! The layouts `wide` and `blob`: rows in other rows.

use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Detail, ErrorKind, Result};
use marquetry_cluster::{
    CqlOptions, CqlTable, Created, LaidSource, MaxErrors, OpenedTable, StateOptions, TableLayout,
    UnloadOptions,
};
use marquetry_scylla::bridge::MappingOptions;
use marquetry_scylla::cql::KeySpec;
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::{
    Cancel, ColumnPath, CopyOptions, Destination as _, DiffOptions, Filter, Source, copy, count, diff,
    filter, project,
};
use scylla::value::CqlValue;

use crate::made::{Cell, Made, int, text};
use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    every_type_there_and_back(server);
    rows_are_grouped(server);
    a_load_of_records_goes_on(server);
    rejected_rows_are_as_they_came(server);
    damage_is_said(server);
    what_cannot_be_is_refused(server);
}

const LAYOUTS: [TableLayout; 2] = [TableLayout::Wide, TableLayout::Blob];

fn creating(layout: TableLayout, key: &str) -> CqlOptions {
    let key = Some(KeySpec::parse(key).unwrap());
    let mut options = CqlOptions::create(MappingOptions { key, ..MappingOptions::default() });
    options.layout = Some(layout);
    options
}

fn open(server: &Server, table: &str) -> Result<Arc<dyn Source>> {
    match OpenedTable::open(server.address(table), &UnloadOptions::default())? {
        OpenedTable::Laid(table) => Ok(Arc::new(LaidSource::clone(&table))),
        other => panic!("{other:?}"),
    }
}

fn file(path: impl AsRef<Path>) -> Arc<dyn Source> {
    Arc::new(Files::open([path.as_ref()], &FilesOptions::default()).unwrap())
}

fn load(table: &mut CqlTable, source: &Arc<dyn Source>) -> Result<u64> {
    copy(source, table, &CopyOptions::default(), &mut |_| {}).map(|copied| copied.rows)
}

fn assert_same(one: &Arc<dyn Source>, other: &Arc<dyn Source>, key: &str) {
    let mut options = DiffOptions::default();
    options.key = ColumnPath::parse_list(key).unwrap();
    let found = diff([one, other], &options, &mut |_| {}).unwrap();
    assert!(found.are_rows_equal(), "{found:?}");
    assert!(found.schema.only.iter().all(Vec::is_empty), "{:?}", found.schema.only);
}

fn every_type_there_and_back(server: &Server) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folder = tempfile::tempdir().unwrap();
    for layout in LAYOUTS {
        for name in ["all_types", "nested"] {
            let source = file(data.join(name).with_extension("parquet"));
            let table = format!("{}_{name}", layout.name());
            for created in [Created::New, Created::AlreadyThere] {
                let mut into = CqlTable::new(server.address(&table), creating(layout, "id"));
                assert_eq!(load(&mut into, &source), Ok(6));
                assert_eq!(into.created(), Some(created));
            }
            // It is known what the table is.
            assert_eq!(
                load(&mut CqlTable::new(server.address(&table), CqlOptions::default()), &source),
                Ok(6)
            );
            let back = open(server, &table).unwrap();
            assert_eq!(back.table().schema, source.table().schema, "{table}");
            assert_eq!(back.table().key_columns().len(), 1);
            assert_same(&source, &back, "id");
            // A file of it is as the one that it was made of.
            let path = folder.path().join(&table).with_extension("parquet");
            let mut new = NewParquetFile::new(&path, ParquetOptions::default()).unwrap();
            copy(&back, &mut new, &CopyOptions::default(), &mut |_| {}).unwrap();
            assert_eq!(file(&path).table().schema, source.table().schema);
            assert_same(&source, &file(&path), "id");
            // Each column alone, in any order.
            for node in source.table().schema.children(0) {
                let name = &source.table().schema.nodes()[node].name;
                let columns = [ColumnPath::of([&**name]), ColumnPath::of(["id"])];
                let columns = if name == "id" { &columns[1..] } else { &columns[..] };
                assert_same(&project(&source, columns).unwrap(), &project(&back, columns).unwrap(), "id");
            }
        }
    }
}

fn events() -> Arc<dyn Source> {
    let row = |at: i32| {
        let note = if at % 3 == 0 { Cell::Null } else { text(&format!("note {at}")) };
        vec![int(at), int(at % 10), note]
    };
    Made::new(&[("Event Id", "int"), ("day", "int"), ("note", "text")], (0..1000).map(row)).shared()
}

fn rows_are_grouped(server: &Server) {
    let source = events();
    for layout in LAYOUTS {
        let table = format!("{}_events", layout.name());
        let mut into = CqlTable::new(server.address(&table), creating(layout, "day, \"Event Id\" DESC"));
        assert_eq!(load(&mut into, &source), Ok(1000));
        let days = server.select(&format!("SELECT DISTINCT day FROM {KEYSPACE}.{table}"));
        assert_eq!(days.len(), 10);
        let first = server.select(&format!("SELECT * FROM {KEYSPACE}.{table} WHERE day = 4 LIMIT 1"));
        assert_eq!(first[0]["Event Id"], Some(CqlValue::Int(994)));
        let names: Vec<&str> = first[0].keys().map(String::as_str).collect();
        match layout {
            TableLayout::Wide => {
                assert_eq!(names, ["Event Id", "c2", "day"]);
                assert_eq!(first[0]["c2"], Some(CqlValue::Text("note 994".to_owned())));
            }
            _ => {
                assert_eq!(names, ["Event Id", "day", "record"]);
                let record = [&[1, 1, 8][..], b"note 994"].concat();
                assert_eq!(first[0]["record"], Some(CqlValue::Blob(record)));
            }
        }
        let back = open(server, &table).unwrap();
        assert_same(&source, &back, "\"Event Id\"");
        assert_eq!(count(&back, &Default::default()).unwrap(), 1000);
        // Only the partition that the key names is read.
        let some = filter(&back, &Filter::new("day = 4 AND note IS NULL")).unwrap();
        assert_eq!((some.pieces().len(), count(&some, &Default::default()).unwrap()), (1, 33));
        let one = filter(&back, &Filter::new("day IN (3, 4) AND \"Event Id\" = 994")).unwrap();
        assert_eq!((one.pieces().len(), count(&one, &Default::default()).unwrap()), (2, 1));
        let none = filter(&back, &Filter::new("note = 'note 500'")).unwrap();
        assert_eq!(count(&none, &Default::default()).unwrap(), 1);
    }
}

fn a_load_of_records_goes_on(server: &Server) {
    let rows = || {
        let row = |at: i32| vec![int(at), text(&format!("row {at}"))];
        Made::new(&[("k", "int"), ("v", "text")], (0..20_000).map(row)).shared()
    };
    let folder = tempfile::tempdir().unwrap();
    let options = |resume| {
        let mut options = creating(TableLayout::Blob, "k");
        let mut state = StateOptions::new(folder.path().join("load.state"));
        state.resume = resume;
        options.state = Some(state);
        options
    };
    let mut table = CqlTable::new(server.address("blob_resumed"), options(false));
    let (cancel, mut copying) = (Cancel::new(), CopyOptions::default());
    copying.cancel = cancel.clone();
    let ended = copy(&rows(), &mut table, &copying, &mut |copied| {
        if copied.written.rows > 3000 {
            cancel.cancel();
        }
    });
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    drop(table);
    let mut table = CqlTable::new(server.address("blob_resumed"), options(true));
    load(&mut table, &rows()).unwrap();
    let sent = table.progress().unwrap().rows;
    assert!(sent < 19_000, "{sent}");
    assert_same(&rows(), &open(server, "blob_resumed").unwrap(), "k");
}

fn rejected_rows_are_as_they_came(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.parquet");
    let row = |at: i32| vec![if at == 7 { Cell::Null } else { int(at) }, text("v")];
    let source = Made::new(&[("k", "int"), ("v", "text")], (0..10).map(row)).shared();
    for layout in LAYOUTS {
        let mut options = creating(layout, "k");
        options.rejects = Some(bad.clone());
        options.max_errors = MaxErrors::Rows(1);
        let mut table = CqlTable::new(server.address(&format!("{}_rejects", layout.name())), options);
        load(&mut table, &source).unwrap();
        assert_eq!(table.progress().map(|it| (it.rows, it.rejected)), Some((9, 1)));
        let names: Vec<String> = {
            let rejected = file(&bad);
            let schema = &rejected.table().schema;
            schema.children(0).map(|node| schema.nodes()[node].name.clone()).collect()
        };
        assert_eq!(names, ["k", "v", "error"]);
        std::fs::remove_file(&bad).unwrap();
    }
}

fn damage_is_said(server: &Server) {
    let read = |column: &str| {
        let source = open(server, "blob_events")?;
        let some = project(&source, &[ColumnPath::of([column])])?;
        count(&filter(&some, &Filter::new(format!("\"{column}\" IS NOT NULL")))?, &Default::default())
    };
    server.run(&format!(
        "UPDATE {KEYSPACE}.blob_events SET record = 0x010109616263 WHERE day = 4 AND \"Event Id\" = 994"
    ));
    let error = read("note").unwrap_err();
    assert_eq!((error.kind(), error.place().offset), (ErrorKind::Corrupt, Some(3)), "{error}");
    assert_eq!(error.place().column.as_deref(), Some("note"));
    assert!(error.place().row.is_some() && error.place().object.is_some(), "{error}");
    let said = "a value that goes on after the cell's end, in the row with ";
    assert!(error.message().contains(said), "{error}");
    assert!(error.message().contains("Event Id = 994") && error.message().contains("day = 4"), "{error}");
    // Keys are keys.
    assert_eq!(read("day"), Ok(1000));
    server.run(&format!("DELETE record FROM {KEYSPACE}.blob_events WHERE day = 4 AND \"Event Id\" = 994"));
    assert!(read("note").unwrap_err().message().contains("a row without a record"));
    // What the comment says is looked at.
    for (comment, kind) in
        [("marquetry-layout 2 blob", ErrorKind::Unsupported), ("marquetry-layout 1 blob", ErrorKind::Corrupt)]
    {
        server.run(&format!("ALTER TABLE {KEYSPACE}.blob_events WITH comment = '{comment}'"));
        assert_eq!(open(server, "blob_events").map(drop).unwrap_err().kind(), kind);
    }
    server.run(&format!("ALTER TABLE {KEYSPACE}.wide_events DROP c2"));
    let error = open(server, "wide_events").map(drop).unwrap_err();
    assert!(
        error.kind() == ErrorKind::Corrupt && error.message().contains("lacks the column \"c2\""),
        "{error}"
    );
}

fn what_cannot_be_is_refused(server: &Server) {
    let row = |at: i32| vec![int(at), text("v")];
    let rows = |v: &str| Made::new(&[("k", "int"), (v, "text")], (0..10).map(row)).shared();
    let begin = |options: CqlOptions, table: &str, source: &Arc<dyn Source>| {
        load(&mut CqlTable::new(server.address(table), options), source).unwrap_err()
    };
    let mut keyless = creating(TableLayout::Blob, "k");
    keyless.mapping.key = None;
    let error = begin(keyless, "refused", &rows("v"));
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["key"])), "{error}");
    let mut frozen = creating(TableLayout::Wide, "k");
    frozen.mapping.frozen = true;
    let error = begin(frozen, "refused", &rows("v"));
    assert_eq!(error.detail(), Some(Detail::Option("frozen")), "{error}");
    // A table of another layout, and of other rows.
    let other = |layout| {
        let mut options = CqlOptions::default();
        options.layout = Some(layout);
        options
    };
    for (table, layout) in [("blob_rejects", TableLayout::Rows), ("blob_rejects", TableLayout::Wide)] {
        let error = begin(other(layout), table, &rows("v"));
        assert_eq!(
            (error.kind(), error.detail()),
            (ErrorKind::Refused, Some(Detail::Option("layout"))),
            "{error}"
        );
    }
    let error = begin(CqlOptions::default(), "blob_rejects", &rows("w"));
    assert!(
        error.message().contains("the table has no such column") && error.message().contains("lack"),
        "{error}"
    );
    let error = begin(creating(TableLayout::Blob, "k"), "blob_rejects", &rows("w"));
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let ints = Made::new(&[("k", "int"), ("v", "int")], (0..10).map(|at| vec![int(at); 2])).shared();
    let error = begin(CqlOptions::default(), "blob_rejects", &ints);
    assert!(error.message().contains("BYTE_ARRAY (STRING), and the rows as INT32"), "{error}");
    let mut options = UnloadOptions::default();
    options.with_metadata = true;
    let error = OpenedTable::open(server.address("blob_rejects"), &options).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Option("with_metadata")), "{error}");
    // Of `wide`, columns may be missing.
    let keys = Made::new(&[("k", "int")], (20..30).map(|at| vec![int(at)])).shared();
    assert_eq!(
        load(&mut CqlTable::new(server.address("wide_rejects"), CqlOptions::default()), &keys),
        Ok(10)
    );
    assert_eq!(count(&open(server, "wide_rejects").unwrap(), &Default::default()).unwrap(), 19);
    let error = begin(CqlOptions::default(), "blob_rejects", &keys);
    assert!(error.message().contains("the rows lack this column"), "{error}");
}
