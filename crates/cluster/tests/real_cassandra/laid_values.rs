//! The layouts `wide` and `blob`: every type of Parquet, value by value and bit by bit; and rows that cannot be in a table.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Budget, Detail, ErrorKind, Result};
use marquetry_cluster::{
    CqlOptions, CqlTable, LaidSource, MaxErrors, OpenedTable, TableLayout, UnloadOptions,
};
use marquetry_parquet::batch::{Batch, Layout, Value};
use marquetry_parquet::record::{FieldForm, RecordSink as _, ShredOptions, Shredder};
use marquetry_parquet::schema::{
    FieldDef, FieldType, LogicalType, PhysicalType, Plan as _, Schema, TimeUnit,
};
use marquetry_scylla::bridge::MappingOptions;
use marquetry_scylla::cql::KeySpec;
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::{
    Batches, CopyOptions, Destination as _, Filter, Piece, PieceOptions, Source, Table, copy, count, filter,
};
use scylla::value::CqlValue;

use crate::made::{Cell, Made, int, text};
use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    every_type_of_parquet(server);
    keys_of_other_types(server);
    a_null_is_an_error_of_its_row(server);
    rows_that_are_no_records_are_refused(server);
}

const LAYOUTS: [TableLayout; 2] = [TableLayout::Wide, TableLayout::Blob];

/// Rows that are there.
struct Rows(Table, [Piece; 1], Batch);

impl Rows {
    /// So many rows of these fields, of which the values are at the ends of what their types have.
    fn of(fields: &[FieldDef], rows: usize) -> Arc<dyn Source> {
        let schema = Arc::new(Schema::of_fields(fields).unwrap());
        let options = ShredOptions { layout: Layout::Spaced, ..ShredOptions::default() };
        let mut shredder = Shredder::plan(Arc::clone(&schema), None, options).at_once().unwrap();
        let roots: Vec<usize> = shredder.program().roots().collect();
        for row in 0..rows {
            shredder.start_record().unwrap();
            roots.iter().for_each(|root| field(&mut shredder, &schema, *root, row));
            shredder.end_record().unwrap();
        }
        let batch = shredder.take(&mut Budget::unlimited()).unwrap().unwrap();
        Arc::new(Rows(Table::new("rows", schema), [Piece::of("rows")], batch))
    }
}

struct Once(Option<Batch>);

impl Source for Rows {
    fn table(&self) -> &Table {
        &self.0
    }

    fn pieces(&self) -> &[Piece] {
        &self.1
    }

    fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(Once(Some(self.2.clone()))))
    }
}

impl Batches for Once {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(self.0.take())
    }
}

/// A field of a row; one that may be null is, in the first row.
fn field(shredder: &mut Shredder, schema: &Schema, field: usize, row: usize) {
    let program = Arc::clone(shredder.program());
    let (form, is_nullable) = program.form(field).unwrap();
    let node = program.fields().get(field).unwrap().node;
    let logical = schema.nodes()[node].logical_type.clone();
    if is_nullable && (row == 0 || logical == Some(LogicalType::Unknown)) {
        return shredder.null(field).unwrap();
    }
    let children: Vec<usize> = program.children(field).collect();
    match form {
        FieldForm::Leaf(physical) => {
            // What has another name than a key.
            let is_key = schema.nodes()[node].name == "id";
            let some = ends(physical, logical.as_ref());
            let value = if is_key {
                Owned::Int32(i32::try_from(row).unwrap())
            } else {
                some[row % some.len()].clone()
            };
            shredder.value(field, value.value()).unwrap();
        }
        FieldForm::Struct => {
            shredder.start_struct(field).unwrap();
            children.iter().for_each(|child| self::field(shredder, schema, *child, row / 2));
            shredder.end_struct(field).unwrap();
        }
        FieldForm::List | FieldForm::Map => {
            let is_map = form == FieldForm::Map;
            if is_map {
                shredder.start_map(field).unwrap()
            } else {
                shredder.start_list(field).unwrap()
            }
            for item in 0..(row - 1) % 4 {
                children.iter().for_each(|child| self::field(shredder, schema, *child, item));
            }
            if is_map { shredder.end_map(field).unwrap() } else { shredder.end_list(field).unwrap() }
        }
    }
}

#[derive(Clone)]
enum Owned {
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Float(u32),
    Double(u64),
    Bytes(Vec<u8>),
}

impl Owned {
    fn value(&self) -> Value<'_> {
        match self {
            Owned::Boolean(value) => Value::Boolean(*value),
            Owned::Int32(value) => Value::Int32(*value),
            Owned::Int64(value) => Value::Int64(*value),
            Owned::Float(bits) => Value::Float(f32::from_bits(*bits)),
            Owned::Double(bits) => Value::Double(f64::from_bits(*bits)),
            Owned::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}

/// Values at the ends of what a type has.
fn ends(physical: PhysicalType, logical: Option<&LogicalType>) -> Vec<Owned> {
    let ints = |values: &[i32]| values.iter().copied().map(Owned::Int32).collect();
    let longs = |values: &[i64]| values.iter().copied().map(Owned::Int64).collect();
    let bytes = |values: &[&[u8]]| values.iter().map(|value| Owned::Bytes(value.to_vec())).collect();
    match (physical, logical) {
        (PhysicalType::Boolean, _) => vec![Owned::Boolean(true), Owned::Boolean(false)],
        (PhysicalType::Int32, Some(LogicalType::Integer { bit_width: 8, is_signed: true })) => {
            ints(&[-128, 127, 0])
        }
        (PhysicalType::Int32, Some(LogicalType::Integer { bit_width: 16, is_signed: true })) => {
            ints(&[-32_768, 32_767, 0])
        }
        (PhysicalType::Int32, Some(LogicalType::Integer { bit_width: 8, .. })) => ints(&[0, 255]),
        (PhysicalType::Int32, Some(LogicalType::Integer { bit_width: 16, .. })) => ints(&[0, 65_535]),
        // The third has more digits than DECIMAL(9, 2) says.
        (PhysicalType::Int32, _) => ints(&[0, i32::MIN, i32::MAX, -1]),
        (PhysicalType::Int64, _) => longs(&[0, i64::MIN, i64::MAX, -1]),
        // NaN with a payload, and the smallest number.
        (PhysicalType::Float, _) => [0, 0x8000_0000, 0xffc0_1234, 0x7f80_0000, 1].map(Owned::Float).to_vec(),
        (PhysicalType::Double, _) => {
            [0, 1 << 63, 0xfff8_0000_0000_1234, 0x7ff0 << 48, 1].map(Owned::Double).to_vec()
        }
        (PhysicalType::ByteArray, Some(LogicalType::String | LogicalType::Enum | LogicalType::Json)) => {
            let long = "ab".repeat(100_000);
            bytes(&[b"", b"\0", "é\u{1f600}\n".as_bytes(), long.as_bytes()])
        }
        (PhysicalType::ByteArray, Some(LogicalType::Decimal { .. })) => {
            bytes(&[&[0], &[0x80], &[0x7f], &[0xff, 0x7f], &[0x63, 0x0f, 0xff, 0xc1, 0x6f, 0x0f, 0xff, 0xff]])
        }
        (PhysicalType::ByteArray, _) => bytes(&[&[], &[0], &(0..=255).collect::<Vec<u8>>()]),
        (PhysicalType::FixedLenByteArray(16), Some(LogicalType::Decimal { .. })) => {
            let most = 10_i128.pow(38) - 1;
            [0, most, -most, -1, 255].iter().map(|it| Owned::Bytes(it.to_be_bytes().to_vec())).collect()
        }
        (PhysicalType::FixedLenByteArray(_) | PhysicalType::Int96, _) => {
            let width = physical.width().unwrap();
            let some = (1..=u8::MAX).cycle().take(width).collect();
            // Of the second, half a number: minus zero.
            let mut high = vec![0; width];
            high[width - 1] = 0x80;
            [vec![0; width], high, vec![0xff; width], some].map(Owned::Bytes).to_vec()
        }
    }
}

/// Each type of Parquet, and what is nested.
fn fields() -> Vec<FieldDef> {
    use LogicalType as L;
    use PhysicalType as P;
    let integer = |bit_width, is_signed| L::Integer { bit_width, is_signed };
    let decimal = |precision, scale| L::Decimal { precision, scale };
    let time = |unit| L::Time { is_adjusted_to_utc: false, unit };
    let timestamp = |is_adjusted_to_utc, unit| L::Timestamp { is_adjusted_to_utc, unit };
    let leaves = [
        (P::Boolean, None),
        (P::Int32, None),
        (P::Int32, Some(integer(8, true))),
        (P::Int32, Some(integer(16, true))),
        (P::Int32, Some(integer(32, true))),
        (P::Int32, Some(integer(8, false))),
        (P::Int32, Some(integer(16, false))),
        (P::Int32, Some(integer(32, false))),
        (P::Int64, None),
        (P::Int64, Some(integer(64, true))),
        (P::Int64, Some(integer(64, false))),
        (P::Float, None),
        (P::Double, None),
        (P::FixedLenByteArray(2), Some(L::Float16)),
        (P::Int32, Some(L::Date)),
        (P::Int32, Some(time(TimeUnit::Millis))),
        (P::Int64, Some(time(TimeUnit::Micros))),
        (P::Int64, Some(time(TimeUnit::Nanos))),
        (P::Int64, Some(timestamp(true, TimeUnit::Millis))),
        (P::Int64, Some(timestamp(false, TimeUnit::Millis))),
        (P::Int64, Some(timestamp(true, TimeUnit::Micros))),
        (P::Int64, Some(timestamp(false, TimeUnit::Nanos))),
        (P::Int96, None),
        (P::Int32, Some(decimal(9, 2))),
        (P::Int64, Some(decimal(18, 18))),
        (P::FixedLenByteArray(16), Some(decimal(38, 10))),
        (P::ByteArray, Some(decimal(20, 3))),
        (P::FixedLenByteArray(25), Some(decimal(60, 2))),
        (P::ByteArray, Some(L::String)),
        (P::ByteArray, Some(L::Enum)),
        (P::ByteArray, Some(L::Json)),
        (P::ByteArray, Some(L::Bson)),
        (P::ByteArray, Some(L::Geometry { crs: None })),
        (P::ByteArray, None),
        (P::FixedLenByteArray(3), None),
        (P::FixedLenByteArray(16), Some(L::Uuid)),
        (P::FixedLenByteArray(12), Some(L::Interval)),
        (P::Int32, Some(L::Unknown)),
    ];
    let leaf = |name: String, (physical, logical)| FieldDef::new(name, FieldType::Leaf(physical, logical));
    let text = || leaf("element".to_owned(), (P::ByteArray, Some(L::String)));
    let double = |name: &str| leaf(name.to_owned(), (P::Double, None));
    let list = |name: &str, element| FieldDef::new(name, FieldType::List(Box::new(element)));
    let key = leaf("key".to_owned(), (P::ByteArray, None)).required();
    let pairs = FieldType::Map(Box::new(key.clone()), Some(Box::new(double("value"))));
    let group = |fields, logical| FieldType::Struct(fields, logical);
    let bytes = |name: &str| leaf(name.to_owned(), (P::ByteArray, None)).required();
    let variant = group(vec![bytes("metadata"), bytes("value")], Some(L::Variant { version: Some(1) }));
    let mut fields = vec![leaf("id".to_owned(), (P::Int32, None)).required()];
    fields.extend(leaves.into_iter().enumerate().map(|(at, it)| leaf(format!("leaf {at}"), it)));
    fields.extend([
        list("lists", text()),
        list("lists of lists", list("element", double("element"))),
        FieldDef::new("maps", pairs),
        FieldDef::new("sets", FieldType::Map(Box::new(key), None)),
        FieldDef::new("groups", group(vec![double("a"), list("b", text())], None)),
        FieldDef::new("variants", variant),
    ]);
    fields
}

/// Each row by its `id`, the first column: of each leaf the levels, and the bits of the values.
fn bits(source: &Arc<dyn Source>) -> BTreeMap<i32, Vec<String>> {
    let mut rows = BTreeMap::new();
    for piece in 0..source.pieces().len() {
        let mut batches = source.open(piece, &PieceOptions::default()).unwrap();
        while let Some(batch) = batches.next().unwrap() {
            batch.check(&source.table().schema).unwrap();
            for row in 0..batch.rows {
                let one = batch.slice(row..row + 1);
                let Some(Value::Int32(id)) = Value::of_values(&one.columns[0].values, 0) else {
                    panic!("no id")
                };
                let leaf = |column: &marquetry_parquet::batch::ColumnBatch| {
                    let there = if column.is_null(0) { 0 } else { column.values.len() };
                    let values: Vec<String> = (0..there)
                        .map(|at| match Value::of_values(&column.values, at) {
                            Some(Value::Float(value)) => format!("{:x}", value.to_bits()),
                            Some(Value::Double(value)) => format!("{:x}", value.to_bits()),
                            other => format!("{other:?}"),
                        })
                        .collect();
                    format!("{:?} {values:?}", column.levels)
                };
                assert!(rows.insert(id, one.columns.iter().map(leaf).collect()).is_none(), "{id} twice");
            }
        }
    }
    rows
}

fn creating(layout: TableLayout, key: &str) -> CqlOptions {
    let key = Some(KeySpec::parse(key).unwrap());
    let mut options = CqlOptions::create(MappingOptions { key, ..MappingOptions::default() });
    options.layout = Some(layout);
    options
}

fn open(server: &Server, table: &str) -> Arc<dyn Source> {
    match OpenedTable::open(server.address(table), &UnloadOptions::default()).unwrap() {
        OpenedTable::Laid(table) => Arc::new(LaidSource::clone(&table)),
        other => panic!("{other:?}"),
    }
}

fn load(table: &mut CqlTable, source: &Arc<dyn Source>) -> Result<u64> {
    copy(source, table, &CopyOptions::default(), &mut |_| {}).map(|copied| copied.rows)
}

fn every_type_of_parquet(server: &Server) {
    let source = Rows::of(&fields(), 12);
    let expected = bits(&source);
    for layout in LAYOUTS {
        let table = format!("{}_parquet", layout.name());
        assert_eq!(load(&mut CqlTable::new(server.address(&table), creating(layout, "id")), &source), Ok(12));
        let back = open(server, &table);
        let nodes = |source: &Arc<dyn Source>| {
            let nodes = source.table().schema.nodes().iter();
            nodes
                .map(|it| (it.name.clone(), it.repetition, it.logical_type.clone(), it.kind))
                .collect::<Vec<_>>()
        };
        assert!(nodes(&back) == nodes(&source), "{table}: {:?}", nodes(&back));
        let found = bits(&back);
        assert_eq!(found.len(), expected.len());
        for (id, leaves) in &expected {
            for (leaf, (found, expected)) in found[id].iter().zip(leaves).enumerate() {
                let name = source.table().schema.leaf_path(leaf);
                assert!(
                    found == expected,
                    "{table}, row {id}, {name}: {found:.200}, and it was {expected:.200}"
                );
            }
        }
    }
}

/// The partitions that a key names are found by what the rows call it, whatever holds it.
fn keys_of_other_types(server: &Server) {
    let leaf = |name: &str, physical, logical| {
        FieldDef::new(name, FieldType::Leaf(physical, Some(logical))).required()
    };
    let fields = [
        FieldDef::new("id", FieldType::Leaf(PhysicalType::Int32, None)).required(),
        leaf("day", PhysicalType::Int32, LogicalType::Date),
        leaf("half", PhysicalType::FixedLenByteArray(2), LogicalType::Float16),
        leaf("n", PhysicalType::Int32, LogicalType::Integer { bit_width: 32, is_signed: false }),
        leaf("price", PhysicalType::Int32, LogicalType::Decimal { precision: 9, scale: 2 }),
    ];
    let source = Rows::of(&fields, 12);
    let all = bits(&source);
    for (key, predicate, pieces, rows) in [
        ("day, id", "day = '1970-01-01'", Some(1), 3),
        ("day, id", "day IN ('1969-12-31', '1970-01-01')", Some(2), 6),
        ("half, id", "half = 0.0", None, 6),
        ("n, id", "n = 4294967295", Some(1), 3),
        ("price, id", "price = -0.01", None, 3),
    ] {
        for layout in LAYOUTS {
            let table = "laid_by_key";
            server.run(&format!("DROP TABLE IF EXISTS {KEYSPACE}.{table}"));
            load(&mut CqlTable::new(server.address(table), creating(layout, key)), &source).unwrap();
            let back = open(server, table);
            assert_eq!(bits(&back), all, "{key}");
            let some = filter(&back, &Filter::new(predicate)).unwrap();
            assert_eq!(count(&some, &Default::default()), Ok(rows), "{predicate}");
            assert!(pieces.is_none_or(|pieces| some.pieces().len() == pieces), "{predicate}");
        }
    }
}

fn a_null_is_an_error_of_its_row(server: &Server) {
    let required = |name: &str, logical| {
        let physical =
            if logical == Some(LogicalType::String) { PhysicalType::ByteArray } else { PhysicalType::Int32 };
        FieldDef::new(name, FieldType::Leaf(physical, logical)).required()
    };
    let first = Rows::of(&[required("id", None), required("v", Some(LogicalType::String))], 0);
    let row = |at: i32| vec![int(at), if at % 4 == 3 { Cell::Null } else { text("v") }];
    let more = Made::new(&[("id", "int"), ("v", "text")], (0..10).map(row)).shared();
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.parquet");
    for layout in LAYOUTS {
        let table = format!("{}_never_null", layout.name());
        assert_eq!(load(&mut CqlTable::new(server.address(&table), creating(layout, "id")), &first), Ok(0));
        // All rows before it are there.
        let error =
            load(&mut CqlTable::new(server.address(&table), CqlOptions::default()), &more).unwrap_err();
        assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(3)), "{error}");
        assert_eq!(error.place().column.as_deref(), Some("v"), "{error}");
        assert_eq!(server.count(&table), 3);
        // Or it is rejected, as it came.
        let mut options = CqlOptions::default();
        (options.rejects, options.max_errors) = (Some(bad.clone()), MaxErrors::Rows(2));
        let mut into = CqlTable::new(server.address(&table), options);
        load(&mut into, &more).unwrap();
        assert_eq!(into.progress().map(|it| (it.rows, it.rejected)), Some((8, 2)));
        assert_eq!(server.count(&table), 8);
        let rejected: Arc<dyn Source> =
            Arc::new(Files::open([Path::new(&bad)], &FilesOptions::default()).unwrap());
        assert_eq!(bits(&rejected).into_keys().collect::<Vec<_>>(), [3, 7]);
        std::fs::remove_file(&bad).unwrap();
        // A column is called as the rows call it.
        let wrong =
            Made::new(&[("id", "int"), ("v", "text")], [vec![int(1), Cell::Bytes(vec![0xff])]]).shared();
        let loaded = load(&mut CqlTable::new(server.address(&table), CqlOptions::default()), &wrong);
        match layout {
            TableLayout::Wide => assert_eq!(loaded.unwrap_err().place().column.as_deref(), Some("v")),
            // Records have bytes.
            _ => assert_eq!(loaded, Ok(1)),
        }
        // Columns that are chosen are there.
        let mut options = CqlOptions::default();
        options.mapping.columns = Some(vec!["id".to_owned(), "v".to_owned(), "w".to_owned()]);
        let error = load(&mut CqlTable::new(server.address(&table), options), &more).unwrap_err();
        assert_eq!(error.detail(), Some(Detail::Option("columns")), "{error}");
    }
}

/// Whatever has the columns of the table that holds records is not one of it; but for the same table's, by its comment.
fn rows_that_are_no_records_are_refused(server: &Server) {
    let rows =
        || Made::new(&[("id", "int"), ("record", "blob")], [vec![int(77), Cell::Bytes(vec![1, 1, b'v'])]]);
    let options = || {
        let mut options = creating(TableLayout::Rows, "id");
        options.layout = None;
        options
    };
    let load = |rows: Made| rows.load(&mut CqlTable::new(server.address("blob_never_null"), options())).1;
    let before = server.count("blob_never_null");
    let error = load(rows()).unwrap_err();
    assert_eq!(
        (error.kind(), error.detail()),
        (ErrorKind::Refused, Some(Detail::Option("create"))),
        "{error}"
    );
    assert_eq!(server.count("blob_never_null"), before);
    let comment = server.value(&format!(
        "SELECT comment FROM system_schema.tables WHERE keyspace_name = '{KEYSPACE}' AND table_name = 'blob_never_null'"
    ));
    let Some(CqlValue::Text(comment)) = comment else { panic!("{comment:?}") };
    let made = format!("CREATE TABLE a.b (id int PRIMARY KEY, record blob) WITH comment = '{comment}';");
    load(rows().made_by(&made)).unwrap();
    let one = filter(&open(server, "blob_never_null"), &Filter::new("id = 77 AND v = 'v'")).unwrap();
    assert_eq!(count(&one, &Default::default()), Ok(1));
}
