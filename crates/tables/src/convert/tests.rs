use marquetry_base::ErrorKind;
use marquetry_parquet::batch::{FixedBytes, Levels};
use marquetry_parquet::scalar::int96_of_nanos;
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, Meaning, PhysicalType};
use marquetry_text::{ColumnType, Scalar};

use super::*;
use crate::row_order::RowOrder;
use crate::{Reading, ReadingOptions};

/// A table of these batches.
struct Given(Table, Vec<Piece>, Vec<Batch>);

impl Source for Given {
    fn table(&self) -> &Table {
        &self.0
    }

    fn pieces(&self) -> &[Piece] {
        &self.1
    }

    fn open(&self, piece: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(Once(Some(self.2[piece].clone()))))
    }
}

struct Once(Option<Batch>);

impl Batches for Once {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(self.0.take())
    }
}

/// A column of one type, whose second row is null.
fn nullable(scalar: Scalar, values: Values) -> Arc<dyn Source> {
    let rows = values.len();
    let mut validity = vec![0xff; rows.div_ceil(8)];
    validity[0] &= !2;
    let schema = Schema::of_fields(&[FieldDef::new("a", scalar.field_type())]).unwrap();
    let mut batch = Batch::of_values([values]).unwrap();
    batch.columns[0].validity = Some(Bitmap::new(validity.into(), 0, rows));
    batch.columns[0].nulls = 1;
    Arc::new(Given(Table::new("given", Arc::new(schema)), vec![Piece::of("part")], vec![batch]))
}

/// What values become, printed.
fn converted_to(scalar: Scalar, values: Values, to: &str) -> Result<Vec<String>> {
    let source = convert(&nullable(scalar, values), &format!("a={to}").parse().unwrap())?;
    let schema = Arc::clone(&source.table().schema);
    let meaning = schema.meaning_of(&schema.leaves()[0]);
    let mut reading = Reading::new(source, ReadingOptions::default())?;
    let (_, batch) = reading.next_batch()?.unwrap();
    let print = |row: usize| {
        if batch.columns[0].is_null(row) {
            return "null".to_string();
        }
        let mut out = Vec::new();
        let value = Value::of_values(&batch.columns[0].values, row).unwrap();
        match print::value(&mut out, meaning, value) {
            Shown::Text(text) => text.to_string(),
            _ => String::from_utf8(out).unwrap(),
        }
    };
    Ok((0..batch.rows).map(print).collect())
}

/// A value between a null and another one; and what it becomes.
#[track_caller]
fn becomes(from: &str, text: &str, to: &str, expected: Option<&str>) {
    let scalar = scalar_of(from);
    let texts = [text, "", text].map(|text| (!text.is_empty()).then_some(text.as_bytes()));
    let values = scalar.values(texts.into_iter()).unwrap_or_else(|_| panic!("{text} is not {from}"));
    match (converted_to(scalar, values, to), expected) {
        (Ok(found), Some(expected)) => assert_eq!(found, [expected, "null", expected], "{from} to {to}"),
        (Err(error), None) => {
            assert_eq!(error.kind(), ErrorKind::Conversion, "{error}");
            let place = error.place();
            assert_eq!((place.row, place.object.as_deref()), (Some(0), Some("part")), "{from} to {to}");
            assert!(error.message().contains(&format!("does not fit {}", scalar_of(to).with_article())));
        }
        (found, _) => panic!("{text} of {from} to {to}: {found:?}, not {expected:?}"),
    }
}

fn scalar_of(word: &str) -> Scalar {
    let types: Types = format!("a={word}").parse().unwrap();
    match types.as_slice()[0].column_type {
        ColumnType::Scalar(scalar) => scalar,
        _ => panic!("{word}"),
    }
}

#[test]
fn numbers() {
    for (from, text, to, expected) in [
        ("bigint", "127", "tinyint", Some("127")),
        ("bigint", "128", "tinyint", None),
        ("bigint", "-128", "tinyint", Some("-128")),
        ("int", "-1", "bigint", Some("-1")),
        ("int", "-1", "uint32", None),
        ("bigint", "4294967295", "uint32", Some("4294967295")),
        ("uint32", "4294967295", "bigint", Some("4294967295")),
        ("uint32", "4294967295", "int", None),
        ("uint64", "18446744073709551615", "bigint", None),
        ("uint64", "18446744073709551615", "decimal(20)", Some("18446744073709551615")),
        ("uint64", "255", "uint8", Some("255")),
        ("uint64", "256", "uint8", None),
        ("bigint", "9007199254740992", "double", Some("9007199254740992.0")),
        ("bigint", "9007199254740993", "double", None),
        ("int", "0", "double", Some("0.0")),
        ("decimal(4, 1)", "0.0", "float16", Some("0.0")),
        ("int", "16777217", "float", None),
        ("int", "16777216", "float", Some("16777216.0")),
        ("int", "2048", "float16", Some("2048.0")),
        ("int", "2049", "float16", None),
        ("int", "12", "decimal(4, 2)", Some("12.00")),
        ("int", "123", "decimal(4, 2)", None),
        ("decimal(6, 2)", "12.00", "int", Some("12")),
        ("decimal(6, 2)", "12.01", "int", None),
        (
            "decimal(30, 2)",
            "-1234567890123456789012345678.00",
            "decimal(28)",
            Some("-1234567890123456789012345678"),
        ),
        ("decimal(6, 2)", "12.50", "decimal(30, 1)", Some("12.5")),
        ("decimal(6, 2)", "12.55", "decimal(30, 1)", None),
        ("decimal(6, 2)", "0.10", "double", Some("0.1")),
        ("decimal(38, 0)", "99999999999999999999999999999999999999", "float", Some("1e+38")),
        ("double", "3", "int", Some("3")),
        ("double", "3.5", "int", None),
        ("double", "NaN", "int", None),
        ("double", "1e30", "bigint", None),
        ("double", "0.1", "decimal(3, 2)", Some("0.10")),
        ("double", "0.125", "decimal(3, 2)", None),
        ("double", "1e-7", "decimal(9, 8)", Some("0.00000010")),
        ("double", "1e20", "decimal(21)", Some("100000000000000000000")),
        ("double", "0.1", "float", Some("0.1")),
        ("double", "1e39", "float", None),
        ("double", "NaN", "float", Some("NaN")),
        ("float", "-Infinity", "double", Some("-Infinity")),
        ("float", "0.1", "double", Some("0.10000000149011612")),
        ("float16", "1.5", "float", Some("1.5")),
        ("double", "65520", "float16", None),
        ("float", "2.75", "text", Some("2.75")),
        ("text", " 7 ", "uint16", Some("7")),
        ("text", "many", "uint16", None),
        ("text", "12.3456", "decimal(6, 2)", None),
    ] {
        becomes(from, text, to, expected);
    }
}

#[test]
fn times() {
    for (from, text, to, expected) in [
        ("timestamp(6)", "2024-02-29T01:02:03.004Z", "timestamp", Some("2024-02-29T01:02:03.004Z")),
        ("timestamp(6)", "2024-02-29T01:02:03.0041Z", "timestamp", None),
        ("timestamp(3)", "2024-02-29T01:02:03.004Z", "timestamp(9)", Some("2024-02-29T01:02:03.004000000Z")),
        ("timestamp(3)", "3024-02-29T01:02:03.004Z", "timestamp(9)", None),
        ("localtimestamp(6)", "1969-12-31 23:59:59.5", "timestamp", Some("1969-12-31T23:59:59.500Z")),
        ("timestamp(6)", "2024-02-29T00:00Z", "date", Some("2024-02-29")),
        ("timestamp(6)", "2024-02-29T00:01Z", "date", None),
        ("localtimestamp(9)", "1969-12-31T00:00", "date", Some("1969-12-31")),
        ("date", "1600-01-01", "timestamp", Some("1600-01-01T00:00:00.000Z")),
        ("date", "1600-01-01", "timestamp(9)", None),
        ("date", "2024-02-29", "text", Some("2024-02-29")),
        ("time", "01:02:03.004", "time(3)", Some("01:02:03.004")),
        ("time", "01:02:03.0045", "time(3)", None),
        ("time(3)", "23:59:59.999", "utctime(9)", Some("23:59:59.999000000")),
        ("int96", "2024-02-29 01:02:03.000004", "timestamp(6)", Some("2024-02-29T01:02:03.000004Z")),
        ("int96", "2024-02-29 01:02:03.000004", "timestamp", None),
        ("int96", "2024-02-29", "date", Some("2024-02-29")),
        ("localtimestamp(6)", "2024-02-29 01:02:03", "int96", Some("2024-02-29T01:02:03.000000000")),
        ("text", "2024-02-29T01:02:03+01:00", "timestamp", Some("2024-02-29T00:02:03.000Z")),
        ("text", "29.2.2024", "date", None),
        // An integer counts the unit that is said, whatever it counts.
        ("bigint", "1709168523004", "timestamp", Some("2024-02-29T01:02:03.004Z")),
        ("bigint", "1709168523004000", "timestamp(6)", Some("2024-02-29T01:02:03.004000Z")),
        ("bigint", "-1", "timestamp(9)", Some("1969-12-31T23:59:59.999999999Z")),
        ("int", "-1000", "timestamp", Some("1969-12-31T23:59:59.000Z")),
        ("smallint", "7", "timestamp", Some("1970-01-01T00:00:00.007Z")),
    ] {
        becomes(from, text, to, expected);
    }
}

#[test]
fn texts_and_bytes() {
    let uuid = "00112233-4455-6677-8899-aabbccddeeff";
    let hex = "0x00112233445566778899aabbccddeeff";
    for (from, text, to, expected) in [
        ("uuid", uuid, "text", Some(uuid)),
        ("text", uuid, "uuid", Some(uuid)),
        ("text", "0011", "uuid", None),
        ("uuid", uuid, "blob", Some(hex)),
        ("blob", hex, "uuid", Some(uuid)),
        ("blob", "0x00", "uuid", None),
        ("fixed(16)", hex, "uuid", Some(uuid)),
        ("blob", "0x00ff", "fixed(2)", Some("0x00ff")),
        ("fixed(2)", "0x00ff", "fixed(3)", None),
        ("blob", "0x00ff", "text", Some("0x00ff")),
        ("text", "0x00ff", "blob", Some("0x00ff")),
        ("text", "00ff", "blob", None),
        ("boolean", "true", "text", Some("true")),
        ("text", "FALSE", "boolean", Some("false")),
        ("interval", "P1M2DT3.004S", "text", Some("P1M2DT3.004S")),
        ("text", "P1M2DT3.004S", "interval", Some("P1M2DT3.004S")),
        ("text", "{}", "json", Some("{}")),
        ("enum", "RED", "text", Some("RED")),
    ] {
        becomes(from, text, to, expected);
    }
}

#[test]
fn what_has_no_conversion_is_said_at_once_with_unknown_names() {
    let field = |name: &str, word: &str| FieldDef::new(name, scalar_of(word).field_type());
    let list = FieldDef::new("l", FieldType::List(Box::new(field("element", "int"))));
    let schema =
        Schema::of_fields(&[field("a", "date"), field("b", "boolean"), field("c", "int"), list]).unwrap();
    let source: Arc<dyn Source> = Arc::new(Given(Table::new("t", Arc::new(schema)), vec![], vec![]));
    let refused = |types: &str| convert(&source, &types.parse().unwrap()).err().unwrap();
    let error = refused("a=int, b=double, d=int, c=bigint, e=int, l=text, l.element=uuid");
    let said = error.to_string();
    for part in [
        "date has no conversion to int (column a)",
        "boolean has no conversion to double (column b)",
        "there is no column \"d\"; its columns are a, b, c, l",
        "there is no column \"e\"",
        "a list has no conversion to text (column l)",
        "int has no conversion to uuid (column l.list.element)",
    ] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    assert_eq!(error.parts().len(), 6, "{said}");
    // What changes nothing is the same source.
    let same = convert(&source, &"c=int, a=date, l=list<int>".parse().unwrap()).unwrap();
    assert!(Arc::ptr_eq(&same, &source));
    // Leaves below lists, by path and by the type of the whole.
    for types in ["l.element=bigint", "l=list<bigint>"] {
        let converted = convert(&source, &types.parse().unwrap()).unwrap();
        let schema = &converted.table().schema;
        assert_eq!(
            schema.meaning_of(&schema.leaves()[3]),
            Meaning::Integer { bit_width: 64, is_signed: true }
        );
    }
}

#[test]
fn columns_that_do_not_change_are_shared_and_lists_keep_their_levels() {
    let element = FieldDef::new("element", FieldType::Leaf(PhysicalType::Int32, None));
    let tags = FieldDef::new("tags", FieldType::List(Box::new(element)));
    let text = FieldDef::new("t", Scalar::Text.field_type());
    let schema = Arc::new(Schema::of_fields(&[tags, text]).unwrap());
    let values = Values::Int32(vec![1, 2, 300].into());
    // [1, 2], null, [null, 300]
    let levels =
        Levels { definition: vec![3, 3, 0, 2, 3].into(), repetition: Some(vec![0, 1, 0, 0, 1].into()) };
    let texts: Values = ["a", "b", "c"].into_iter().collect();
    let mut batch = Batch::of_values([texts.clone(), texts]).unwrap();
    batch.columns[0].values = values;
    (batch.columns[0].layout, batch.columns[0].levels, batch.columns[0].nulls) =
        (Layout::Dense, Some(levels), 2);
    let pieces = vec![Piece { first_row: Some(10), ..Piece::of("p") }];
    let source: Arc<dyn Source> = Arc::new(Given(Table::new("t", schema), pieces, vec![batch.clone()]));
    let converted = convert(&source, &"tags.element=text".parse().unwrap()).unwrap();
    let next = converted.open(0, &PieceOptions::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(next.columns[0].levels, batch.columns[0].levels);
    assert_eq!(next.columns[0].values, ["1", "2", "300"].into_iter().collect());
    assert_eq!(next.columns[1], batch.columns[1]);
    let (Values::ByteArray(new), Values::ByteArray(old)) =
        (&next.columns[1].values, &batch.columns[1].values)
    else {
        panic!()
    };
    assert!(std::ptr::eq(new.views().as_ptr(), old.views().as_ptr()), "shared");
    let narrow = convert(&source, &"tags.element=tinyint".parse().unwrap()).unwrap();
    let error = narrow.open(0, &PieceOptions::default()).unwrap().next().unwrap_err();
    assert_eq!(error.place().row, Some(12));
    assert_eq!(error.place().column.as_deref(), Some("tags.list.element"));
    assert_eq!(error.message(), "300 does not fit a tinyint");
    // Columns of which nothing is wanted are not converted, nor read.
    let only = project(&narrow, &ColumnPath::parse_list("t").unwrap()).unwrap();
    assert_eq!(only.open(0, &PieceOptions::default()).unwrap().next().unwrap().unwrap().columns.len(), 1);
}

#[test]
fn dictionaries_stay_and_unused_entries_may_be_anything() {
    let dictionary: Values = ["1", "x", "3"].into_iter().collect();
    let of = |indices: Vec<u32>| Values::Dictionary(indices.into(), Arc::new(dictionary.clone()));
    let found = converted_to(Scalar::Text, of(vec![0, 1, 2, 0]), "int").unwrap();
    assert_eq!(found, ["1", "null", "3", "1"]);
    let error = converted_to(Scalar::Text, of(vec![0, 0, 2, 1]), "int").unwrap_err();
    assert_eq!((error.message(), error.place().row), ("\"x\" does not fit an int", Some(3)));
}

#[test]
fn the_error_is_that_of_the_first_row() {
    // An entry's place in the dictionary means nothing.
    let dictionary: Values = ["x", "1", "y"].into_iter().collect();
    let of = |indices: Vec<u32>| Values::Dictionary(indices.into(), Arc::new(dictionary.clone()));
    let error = converted_to(Scalar::Text, of(vec![1, 0, 1, 2, 0]), "int").unwrap_err();
    assert_eq!(
        (error.message(), error.place().row),
        ("\"y\" does not fit an int", Some(3)),
        "the second is null"
    );
    // Nor does which column is converted first; in a row, the first column's.
    let field = |name: &str| FieldDef::new(name, Scalar::Text.field_type()).required();
    let error_of = |a: [&str; 3], b: [&str; 3]| {
        let schema = Arc::new(Schema::of_fields(&[field("a"), field("b")]).unwrap());
        let batch = Batch::of_values([a, b].map(|values| values.into_iter().collect::<Values>())).unwrap();
        let source: Arc<dyn Source> =
            Arc::new(Given(Table::new("t", schema), vec![Piece::of("")], vec![batch]));
        let converted = convert(&source, &"a=int, b=int".parse().unwrap()).unwrap();
        let error = converted.open(0, &PieceOptions::default()).unwrap().next().unwrap_err();
        (error.place().row.unwrap(), error.place().column.clone().unwrap())
    };
    assert_eq!(error_of(["1", "2", "x"], ["1", "y", "z"]), (1, "b".to_string()));
    assert_eq!(error_of(["1", "x", "3"], ["1", "y", "z"]), (1, "a".to_string()));
}

#[test]
fn an_order_goes_on_while_different_values_stay_different() {
    let field = |name: &str, word: &str| FieldDef::new(name, scalar_of(word).field_type()).required();
    let kept = |from: [&str; 2], types: &str| {
        let schema = Schema::of_fields(&[field("a", from[0]), field("b", from[1])]).unwrap();
        let mut table = Table::new("t", Arc::new(schema));
        let by = |column| SortingColumn { column, descending: false, nulls_first: false };
        table.order = vec![by(0), by(1)];
        let source: Arc<dyn Source> = Arc::new(Given(table, vec![], vec![]));
        convert(&source, &types.parse().unwrap()).unwrap().table().order.len()
    };
    // Two doubles may be rounded to one float: then b begins again among equal ones.
    assert_eq!(kept(["double", "int"], "a=float"), 1);
    assert_eq!(kept(["float", "int"], "a=float16"), 1);
    assert_eq!(kept(["double", "double"], "b=float"), 2, "nothing follows");
    assert_eq!(kept(["double", "int"], "a=bigint"), 1, "-0 and 0");
    assert_eq!(kept(["float", "int"], "a=double"), 2);
    assert_eq!(kept(["bigint", "int"], "a=float"), 2, "integers are held exactly");
    assert_eq!(kept(["timestamp(6)", "int"], "a=date"), 2);
    assert_eq!(kept(["int", "int"], "a=text"), 0, "10 is before 9");
    assert_eq!(kept(["decimal(9, 2)", "int"], "a=double"), 0);
}

/// What is copied from such a table is in the order that it says.
#[test]
fn rows_that_become_equal_are_not_in_order_by_later_columns() {
    let field = |name: &str, word: &str| FieldDef::new(name, scalar_of(word).field_type()).required();
    let schema = Schema::of_fields(&[field("a", "double"), field("b", "int")]).unwrap();
    let mut table = Table::new("t", Arc::new(schema));
    let by = |column| SortingColumn { column, descending: false, nulls_first: false };
    table.order = vec![by(0), by(1)];
    let doubles = Values::Double(vec![1.0, 1.000_000_000_1].into());
    let batch = Batch::of_values([doubles, Values::Int32(vec![5, 1].into())]).unwrap();
    let source: Arc<dyn Source> = Arc::new(Given(table, vec![Piece::of("")], vec![batch]));
    let converted = convert(&source, &"a=float".parse().unwrap()).unwrap();
    let batch = converted.open(0, &PieceOptions::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(batch.columns[0].values, Values::Float(vec![1.0, 1.0].into()));
    let table = converted.table();
    let mut order = RowOrder::new(&table.schema, &table.order).unwrap();
    assert_eq!(order.first_misplaced(&batch).unwrap(), None);
}

#[test]
fn odd_forms_are_read() {
    // A decimal in bytes of any length, and an INT96 with more than a day's nanoseconds.
    let logical = LogicalType::Decimal { scale: 2, precision: 30 };
    let field = FieldDef::new("a", FieldType::Leaf(PhysicalType::ByteArray, Some(logical))).required();
    let old = FieldDef::new("b", FieldType::Leaf(PhysicalType::Int96, None)).required();
    let schema = Arc::new(Schema::of_fields(&[field, old]).unwrap());
    let decimals: Values = [&[0x00, 0xff][..], &[0xff; 20], &[]].into_iter().collect();
    let times: Vec<u8> =
        [0, 1_000_000, -86_400_000_000_000].iter().flat_map(|it| int96_of_nanos(*it).unwrap()).collect();
    let batch = Batch::of_values([decimals, Values::Int96(FixedBytes::new(12, 3, times.into()))]).unwrap();
    let source: Arc<dyn Source> = Arc::new(Given(Table::new("t", schema), vec![Piece::of("")], vec![batch]));
    let converted = convert(&source, &"a=decimal(9, 2), b=timestamp".parse().unwrap()).unwrap();
    let next = converted.open(0, &PieceOptions::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(next.columns[0].values, Values::Int32(vec![255, -1, 0].into()));
    assert_eq!(next.columns[1].values, Values::Int64(vec![0, 1, -86_400_000].into()));
    let error = convert(&source, &"a=decimal(2, 2)".parse().unwrap()).unwrap();
    let error = error.open(0, &PieceOptions::default()).unwrap().next().unwrap_err();
    assert_eq!(
        (error.message(), error.place().object.as_deref()),
        ("2.55 does not fit a decimal(2, 2)", Some("t"))
    );
}

/// A source of two columns that leaves out what is not wanted, and says what it was asked for.
struct Asked(Given, std::sync::Mutex<Vec<String>>);

impl Source for Asked {
    fn table(&self) -> &Table {
        self.0.table()
    }

    fn pieces(&self) -> &[Piece] {
        self.0.pieces()
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        self.0.open(piece, options)
    }

    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        self.1.lock().unwrap().extend(columns.iter().map(ColumnPath::dotted));
        Ok(None)
    }
}

#[test]
fn columns_are_chosen_by_their_new_names_and_left_out_by_the_source() {
    let field = |name: &str| FieldDef::new(name, Scalar::Integer(32).field_type()).required();
    let place = FieldDef::new("p.q", FieldType::Struct(vec![field("x"), field("y")], None)).required();
    let schema = Arc::new(Schema::of_fields(&[field("a"), field("b"), place]).unwrap());
    let numbers = |from: i32| Values::Int32(vec![from, from + 1].into());
    let batch = Batch::of_values([numbers(0), numbers(10), numbers(20), numbers(30)]).unwrap();
    let source = Arc::new(Asked(
        Given(Table::new("t", schema), vec![Piece::of("p")], vec![batch]),
        std::sync::Mutex::default(),
    ));
    let all: Arc<dyn Source> = source.clone();
    let renamed = rename(&all, &"a=b, b=a, p.q=place".parse().unwrap()).unwrap();
    let chosen = project(&renamed, &ColumnPath::parse_list("place.y, a").unwrap()).unwrap();
    assert_eq!(*source.1.lock().unwrap(), ["p.q.y", "b"]);
    let schema = &chosen.table().schema;
    assert_eq!([schema.leaf_path(0), schema.leaf_path(1)], ["place.y", "a"]);
    let batch = chosen.open(0, &PieceOptions::default()).unwrap().next().unwrap().unwrap();
    assert_eq!([&batch.columns[0].values, &batch.columns[1].values], [&numbers(30), &numbers(10)]);
    // Fields with other names, too.
    let names =
        Rename::of([("p.q.x", "z"), ("a", "b"), ("b", "a")].map(|(old, new)| (old.into(), new.into())));
    let fields = rename(&all, &names).unwrap();
    let chosen = project(&fields, &ColumnPath::parse_list("p.q.z, b").unwrap()).unwrap();
    assert_eq!([0, 1].map(|leaf| chosen.table().schema.leaf_path(leaf)), ["p.q.z", "b"]);
    let batch = chosen.open(0, &PieceOptions::default()).unwrap().next().unwrap().unwrap();
    assert_eq!([&batch.columns[0].values, &batch.columns[1].values], [&numbers(20), &numbers(0)]);
    let both = project(&fields, &ColumnPath::parse_list("p.q.y, p.q.z").unwrap()).unwrap();
    assert_eq!(both.table().schema.leaves().len(), 2);
    let error = project(&renamed, &ColumnPath::parse_list("p").unwrap()).err().unwrap().to_string();
    assert!(error.contains("there is no column \"p\"; its columns are b, a, place"), "{error}");
}

#[test]
fn names_change_and_two_columns_may_swap_theirs() {
    let field = |name: &str| FieldDef::new(name, Scalar::Integer(32).field_type());
    let schema = Schema::of_fields(&[field("a"), field("b"), field("c.d")]).unwrap();
    let source: Arc<dyn Source> = Arc::new(Given(Table::new("t", Arc::new(schema)), vec![], vec![]));
    let names = |names: &str| -> Result<String> {
        let renamed = rename(&source, &names.parse()?)?;
        let schema = &renamed.table().schema;
        Ok(schema.children(0).map(|node| schema.nodes()[node].name.clone()).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(names("a=b, b=a, c.d=e").unwrap(), "b a e");
    assert_eq!(names("A=x").unwrap(), "x b c.d");
    for (given, said) in [
        ("a=b", "two columns would be called \"b\""),
        ("a=x, a=y", "the column \"a\" gets two names"),
        ("x=y, z=w", "there is no column \"x\"; its columns are a, b, c.d; there is no column \"z\""),
    ] {
        let error = names(given).unwrap_err().to_string();
        assert!(error.contains(said), "{given}: {error}");
    }
}
