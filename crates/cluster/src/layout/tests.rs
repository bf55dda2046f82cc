//! Rows laid and read again without a server, and what the document says.

use std::sync::Arc;

use marquetry_base::{Budget, Error, ErrorKind, Result};
use marquetry_parquet::batch::{Batch, Layout, Value, Values};
use marquetry_parquet::record::{RecordSink as _, ShredOptions, Shredder};
use marquetry_parquet::schema::{
    FieldDef, FieldType, LogicalType, PhysicalType, Plan as _, Schema, TimeUnit,
};
use marquetry_scylla::bridge::MappingOptions;
use marquetry_scylla::cql::{KeySpec, TableName};
use marquetry_tables::Batches;

use super::description::Description;
use super::laying::Laying;
use super::reading::{Unlaid, Unlaying};
use super::{Planned, TableLayout};

fn leaf(name: &str, physical: PhysicalType, logical: Option<LogicalType>) -> FieldDef {
    FieldDef::new(name, FieldType::Leaf(physical, logical))
}

fn text(name: &str) -> FieldDef {
    leaf(name, PhysicalType::ByteArray, Some(LogicalType::String))
}

fn list(name: &str, element: FieldDef) -> FieldDef {
    FieldDef::new(name, FieldType::List(Box::new(element)))
}

fn schema(fields: &[FieldDef]) -> Arc<Schema> {
    Arc::new(Schema::of_fields(fields).unwrap())
}

fn described(layout: TableLayout, schema: &Arc<Schema>, key: &str) -> Description {
    Description::new(layout, schema, &KeySpec::parse(key).unwrap()).unwrap()
}

/// Rows of `id`, `city`, `fare` and `stops`.
fn trips() -> (Arc<Schema>, Batch) {
    let id = leaf("id", PhysicalType::Int64, None).required();
    let stops = list("stops", leaf("element", PhysicalType::Int32, None));
    let schema = schema(&[id, text("city"), leaf("fare", PhysicalType::Double, None), stops]);
    let options = ShredOptions { layout: Layout::Spaced, ..ShredOptions::default() };
    let mut rows = Shredder::plan(Arc::clone(&schema), None, options).at_once().unwrap();
    let fields: Vec<usize> = rows.program().roots().collect();
    for id in 7..10 {
        rows.start_record().unwrap();
        rows.value(fields[0], Value::Int64(id)).unwrap();
        if id != 8 {
            rows.value(fields[1], Value::Bytes(b"Rome")).unwrap();
            rows.start_list(fields[3]).unwrap();
            rows.value(fields[3] + 1, Value::Int32(3)).unwrap();
            rows.null(fields[3] + 1).unwrap();
            rows.value(fields[3] + 1, Value::Int32(-1)).unwrap();
            rows.end_list(fields[3]).unwrap();
        }
        rows.end_record().unwrap();
    }
    (schema, rows.take(&mut Budget::unlimited()).unwrap().unwrap())
}

struct Once(Option<Batch>);

impl Batches for Once {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(self.0.take())
    }
}

/// Rows of a table as those that they hold, of these columns.
fn unlaid(described: &Description, numbers: &[usize], (schema, laid): (&Schema, Batch)) -> Result<Batch> {
    let plan = Unlaying::new(described, numbers, schema)?;
    let mut rows = Unlaid::new(Box::new(Once(Some(laid))), Arc::new(plan), "rows".to_owned())?;
    rows.next()?.ok_or_else(|| Error::internal("no rows"))
}

#[test]
fn rows_are_the_same_there_and_back() {
    let (schema, batch) = trips();
    for layout in [TableLayout::Wide, TableLayout::Blob] {
        let described = described(layout, &schema, "id");
        let laying = Laying::new(&described, &schema, None).unwrap();
        let laid = laying.lay(&batch).unwrap();
        laid.check(laying.schema()).unwrap();
        assert_eq!(laid.columns.len(), if layout == TableLayout::Wide { 4 } else { 2 });
        let back = unlaid(&described, &[0, 1, 2, 3], (laying.schema(), laid.clone())).unwrap();
        assert_eq!(back, batch);
        let some = unlaid(&described, &[2, 3], (laying.schema(), laid)).unwrap();
        assert_eq!(some.columns[0].nulls, 3);
        assert_eq!(some.columns[1].levels, batch.columns[3].levels);
    }
}

/// As many rows at a time as some bytes of cells, and at least one: none is empty because those before it are large.
#[test]
fn cells_are_made_some_at_a_time() {
    const ROWS: usize = 12;
    let id = leaf("id", PhysicalType::Int64, None).required();
    let [stops, names] =
        [list("stops", leaf("element", PhysicalType::Int32, None)), list("names", text("element"))];
    let schema = schema(&[id, stops, names]);
    let options = ShredOptions { batch_rows: usize::MAX, batch_bytes: usize::MAX, layout: Layout::Spaced };
    let mut rows = Shredder::plan(Arc::clone(&schema), None, options).at_once().unwrap();
    let fields: Vec<usize> = rows.program().roots().collect();
    for row in 0..ROWS {
        rows.start_record().unwrap();
        rows.value(fields[0], Value::Int64(row.try_into().unwrap())).unwrap();
        rows.start_list(fields[1]).unwrap();
        rows.value(fields[1] + 1, Value::Int32(row.try_into().unwrap())).unwrap();
        rows.end_list(fields[1]).unwrap();
        rows.start_list(fields[2]).unwrap();
        rows.value(fields[2] + 1, Value::Bytes(&vec![b'a' + u8::try_from(row).unwrap(); 600_000])).unwrap();
        rows.end_list(fields[2]).unwrap();
        rows.end_record().unwrap();
    }
    let batch = rows.take(&mut Budget::unlimited()).unwrap().unwrap();
    for layout in [TableLayout::Wide, TableLayout::Blob] {
        let described = described(layout, &schema, "id");
        let laying = Laying::new(&described, &schema, None).unwrap();
        for (bytes_max, rows_max) in [(1, 5), (2 << 20, 8)] {
            let mut next = 0;
            while next < ROWS {
                let laid = laying.lay_within(&batch.slice(next..ROWS), bytes_max).unwrap();
                laid.check(laying.schema()).unwrap();
                assert!((1..=rows_max).contains(&laid.rows), "{} rows", laid.rows);
                let expected = batch.slice(next..next + laid.rows);
                next += laid.rows;
                let back = unlaid(&described, &[0, 1, 2], (laying.schema(), laid)).unwrap();
                assert_eq!((back.first_row, back.rows), (expected.first_row, expected.rows));
                let values = |batch: &Batch| -> Vec<Values> {
                    batch.columns.iter().map(|column| column.values.clone()).collect()
                };
                assert!(values(&back) == values(&expected), "other values");
            }
        }
        assert_eq!(laying.lay_within(&batch, usize::MAX).unwrap().rows, ROWS);
    }
}

/// Rows of a column that may be null, in a table where it never is.
#[test]
fn nulls_are_errors_of_their_rows() {
    let id = || leaf("id", PhysicalType::Int64, None).required();
    let fare = || leaf("fare", PhysicalType::Double, None);
    let (never, may_be) = (schema(&[id(), fare().required()]), schema(&[id(), fare()]));
    let mut batch = Batch::of_values([vec![1_i64, 2, 3].into(), vec![0.5, 0.0, -0.0].into()]).unwrap();
    batch.first_row = 100;
    (batch.columns[1].nulls, batch.columns[1].validity) =
        (1, Some([true, false, true].into_iter().collect()));
    for layout in [TableLayout::Wide, TableLayout::Blob] {
        let described = described(layout, &never, "id");
        let laying = Laying::new(&described, &may_be, None).unwrap();
        let unfit = laying.unfit(&batch).unwrap();
        let [only] = &*unfit else { panic!("{unfit:?}") };
        assert_eq!((only.in_batch, only.error.kind()), (1, ErrorKind::Conversion));
        assert_eq!(only.error.place().row, Some(101));
        assert_eq!(only.error.place().column.as_deref(), Some("fare"));
        assert_eq!(laying.lay(&batch).unwrap_err().kind(), ErrorKind::Internal);
        let laid = laying.lay(&batch.slice(2..3)).unwrap();
        let back = unlaid(&described, &[0, 1], (laying.schema(), laid)).unwrap();
        assert_eq!(Value::of_values(&back.columns[1].values, 0), Some(Value::Double(-0.0)));
    }
}

/// The record in the document, byte for byte.
#[test]
fn the_example_of_the_document() {
    let (schema, batch) = trips();
    let described = described(TableLayout::Blob, &schema, "id");
    let laid = Laying::new(&described, &schema, None).unwrap().lay(&batch).unwrap();
    let Some(Value::Bytes(record)) = Value::of_values(&laid.columns[1].values, 0) else {
        panic!("no record")
    };
    let hex: Vec<String> = record.iter().map(|byte| format!("{byte:02x}")).collect();
    let document =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/layouts.md")).unwrap();
    assert!(document.contains(&format!("\n{}\n", hex.join(" "))), "{hex:?}");
}

/// What the document says of the comment's size.
#[test]
fn a_comment_of_many_columns() {
    for (columns, kilobytes) in [(57, 2..6), (1000, 50..90)] {
        let named = |at: usize| text(&format!("actor{at}countrycode"));
        let schema = schema(&(0..columns).map(named).collect::<Vec<_>>());
        let comment = described(TableLayout::Wide, &schema, "actor0countrycode").text().unwrap();
        assert!(kilobytes.contains(&(comment.len() / 1000)), "{columns}: {}", comment.len());
    }
}

#[test]
fn types_of_cql_and_back() {
    let millis = |unit| Some(LogicalType::Timestamp { is_adjusted_to_utc: true, unit });
    let unsigned = |bit_width| Some(LogicalType::Integer { bit_width, is_signed: false });
    let decimal = Some(LogicalType::Decimal { precision: 9, scale: 2 });
    let fields = [
        leaf("id", PhysicalType::Int32, None).required(),
        leaf("b", PhysicalType::Int64, millis(TimeUnit::Millis)),
        leaf("c", PhysicalType::Int64, millis(TimeUnit::Nanos)),
        leaf("d", PhysicalType::Int32, unsigned(32)),
        leaf("e", PhysicalType::Int64, unsigned(64)),
        leaf("f", PhysicalType::Int32, decimal.clone()),
        leaf("g", PhysicalType::FixedLenByteArray(5), decimal),
        leaf("h", PhysicalType::FixedLenByteArray(2), Some(LogicalType::Float16)),
        leaf("i", PhysicalType::Int96, None),
        list("j", text("element")),
    ];
    let schema = schema(&fields);
    let key = Some(KeySpec::parse("id").unwrap());
    let options = MappingOptions { key, ..MappingOptions::default() };
    let planned = Planned::new(Some(TableLayout::Wide), &schema, options).unwrap().unwrap();
    let mapping = planned.mapping(TableName::parse("ks.t").unwrap(), None).unwrap();
    let types: Vec<String> = mapping.columns().iter().map(|column| column.cql_type.to_string()).collect();
    assert_eq!(
        types,
        ["int", "timestamp", "bigint", "bigint", "varint", "decimal", "decimal", "blob", "blob", "blob"]
    );
    assert!(planned.definition(&mapping).unwrap().comment.unwrap().contains("\ncolumn 9 c9 j\n"));
    // As a server's columns are read.
    let described = described(TableLayout::Wide, &schema, "id");
    let read = self::schema(&[
        leaf("id", PhysicalType::Int32, None),
        leaf("c1", PhysicalType::Int64, millis(TimeUnit::Millis)),
        leaf("c2", PhysicalType::Int64, None),
        leaf("c3", PhysicalType::Int64, None),
        text("c4"),
        text("c5"),
        text("c6"),
        leaf("c7", PhysicalType::ByteArray, None),
        leaf("c8", PhysicalType::ByteArray, None),
        leaf("c9", PhysicalType::ByteArray, None),
    ]);
    let bytes = |bytes: &[u8]| [bytes].into_iter().collect::<Values>();
    let rows = |large: i64, decimal: &str| {
        Batch::of_values([
            vec![1_i32].into(),
            vec![-1_i64].into(),
            vec![i64::MIN].into(),
            vec![large].into(),
            bytes(b"18446744073709551615"),
            bytes(decimal.as_bytes()),
            bytes(b"-0.02"),
            bytes(&[0, 60]),
            bytes(&[7; 12]),
            bytes(&[1, 1, 1, 1, 1, b'x']),
        ])
        .unwrap()
    };
    let all: Vec<usize> = (0..10).collect();
    let back = unlaid(&described, &all, (&read, rows(u32::MAX.into(), "1.50"))).unwrap();
    back.check(&schema).unwrap();
    let value = |column: usize| Value::of_values(&back.columns[column].values, 0);
    assert_eq!(
        (value(1), value(3), value(4)),
        (Some(Value::Int64(-1)), Some(Value::Int32(-1)), Some(Value::Int64(-1)))
    );
    assert_eq!(
        (value(5), value(6)),
        (Some(Value::Int32(150)), Some(Value::Bytes(&[255, 255, 255, 255, 254])))
    );
    assert_eq!((value(7), value(9)), (Some(Value::Bytes(&[0, 60])), Some(Value::Bytes(b"x"))));
    assert!(matches!(back.columns[8].values, Values::Int96(_)));
    // What the rows could not have had.
    for wrong in [rows(1 << 32, "1.50"), rows(1, "1.505"), rows(1, "99999999")] {
        let error = unlaid(&described, &all, (&read, wrong)).unwrap_err();
        assert_eq!((error.kind(), error.place().row), (ErrorKind::Corrupt, Some(0)), "{error}");
        assert!(error.message().ends_with("in the row with id = 1"), "{error}");
    }
}
