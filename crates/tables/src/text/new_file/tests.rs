//! Rows go to text and come back.

use std::fs;

use marquetry_base::{Bitmap, Bytes, Detail, ErrorKind};
use marquetry_parquet::batch::{ByteArrays, ColumnBatch, FixedBytes, Layout, Levels, Values};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, TimeUnit};

use super::*;
use crate::text::TextOutput;
use crate::{Cancel, CopyOptions, copy};

/// One batch as a source.
struct One {
    table: Table,
    pieces: [Piece; 1],
    batch: Batch,
}

impl Source for One {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(Once(Some(self.batch.clone()))))
    }
}

struct Once(Option<Batch>);

impl Batches for Once {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(self.0.take())
    }
}

/// A table of columns: each its name, its type, and its values.
fn table(columns: Vec<(&str, FieldType, Values)>) -> Arc<dyn Source> {
    let mut fields = Vec::new();
    let mut values = Vec::new();
    for (name, field_type, of_column) in columns {
        fields.push(FieldDef::new(name, field_type));
        values.push(of_column);
    }
    let mut batch = Batch::of_values(values).unwrap();
    // The last row is null, in all columns but the first.
    for column in batch.columns.iter_mut().skip(1) {
        column.validity = Some((0..batch.rows).map(|row| row + 1 < batch.rows).collect::<Bitmap>());
        column.nulls = 1;
    }
    source(Schema::of_fields(&fields).unwrap(), batch)
}

fn source(schema: Schema, batch: Batch) -> Arc<dyn Source> {
    let table = Table::new("rows", Arc::new(schema));
    Arc::new(One { table, pieces: [Piece::of("rows, piece 0")], batch })
}

fn leaf(physical: PhysicalType, logical: impl Into<Option<LogicalType>>) -> FieldType {
    FieldType::Leaf(physical, logical.into())
}

fn texts<T: AsRef<[u8]>>(texts: &[T]) -> Values {
    let bytes: Vec<u8> = texts.iter().flat_map(|text| text.as_ref().to_vec()).collect();
    Values::ByteArray(
        ByteArrays::from_lengths(Bytes::from(bytes), texts.iter().map(|it| it.as_ref().len())).unwrap(),
    )
}

fn fixed<const N: usize>(values: &[[u8; N]]) -> Values {
    Values::FixedLenByteArray(FixedBytes::new(N, values.len(), values.concat().into()))
}

const AWKWARD: [&str; 12] = [
    "plain",
    "",
    "a,b;c|d\te",
    "say \"hi\"",
    "\"",
    "two\nlines",
    "carriage\r\nreturn",
    " spaces around ",
    "NULL",
    "東京 \u{1f600} \u{feff}é",
    "\\N \\t \u{1b}[31m",
    "nobody sees it",
];

/// Every type that is read back bit by bit, with its awkward values, and a null.
fn every_type() -> Arc<dyn Source> {
    let timestamp = |unit, is_adjusted_to_utc| {
        leaf(PhysicalType::Int64, LogicalType::Timestamp { unit, is_adjusted_to_utc })
    };
    let decimal = |physical, precision, scale| leaf(physical, LogicalType::Decimal { precision, scale });
    let integer = |bit_width| leaf(PhysicalType::Int32, LogicalType::Integer { bit_width, is_signed: true });
    let rows = AWKWARD.len();
    let ints = |ends: [i32; 2]| -> Values {
        [0, 1, -1, ends[0], ends[1]].into_iter().cycle().take(rows).collect::<Vec<i32>>().into()
    };
    let longs = |ends: [i64; 2]| -> Values {
        [0, 1, -1, ends[0], ends[1]].into_iter().cycle().take(rows).collect::<Vec<i64>>().into()
    };
    let doubles = [0.0, -0.0, 0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324, 1e22];
    let floats = [0.0, -0.0, 0.1, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, 1e-45, 16_777_217.0];
    let doubles: Vec<f64> = doubles.into_iter().cycle().take(rows).collect();
    let floats: Vec<f32> = floats.into_iter().cycle().take(rows).collect();
    let wide = 99_999_999_999_999_999_999_999_999_999_999_999_999_i128;
    let wides: Vec<[u8; 16]> =
        [0, 1, -1, wide, -wide].into_iter().cycle().take(rows).map(i128::to_be_bytes).collect();
    let uuids: Vec<[u8; 16]> = (0..rows).map(|row| [u8::try_from(row * 20).unwrap(); 16]).collect();
    let threes: Vec<[u8; 3]> = (0..rows).map(|row| [u8::try_from(row).unwrap(), 0, 255]).collect();
    let blobs: Vec<Vec<u8>> = (0..rows).map(|row| vec![0xa5; row]).collect();
    // From the year 1 to 9999.
    let days = ints([-719_162, 2_932_896]);
    let seconds = [-62_135_596_800_i64, 253_402_300_799];
    let of_seconds = |unit: i64| longs(seconds.map(|second| second * unit + 1));
    let booleans = Values::Boolean((0..rows).map(|row| row % 3 == 0).collect::<Bitmap>());
    table(vec![
        ("n,\"o\"", leaf(PhysicalType::Int64, None), longs([i64::MIN, i64::MAX])),
        ("text", leaf(PhysicalType::ByteArray, LogicalType::String), texts(&AWKWARD)),
        ("enum", leaf(PhysicalType::ByteArray, LogicalType::Enum), texts(&AWKWARD)),
        ("boolean", leaf(PhysicalType::Boolean, None), booleans),
        ("tiny", integer(8), ints([-128, 127])),
        ("small", integer(16), ints([-32_768, 32_767])),
        ("int", leaf(PhysicalType::Int32, None), ints([i32::MIN, i32::MAX])),
        ("float", leaf(PhysicalType::Float, None), floats.into()),
        ("double", leaf(PhysicalType::Double, None), doubles.into()),
        ("d9", decimal(PhysicalType::Int32, 9, 2), ints([-999_999_999, 999_999_999])),
        ("d18", decimal(PhysicalType::Int64, 18, 18), longs([1 - 10_i64.pow(18), 10_i64.pow(18) - 1])),
        ("d38", decimal(PhysicalType::FixedLenByteArray(16), 38, 10), fixed(&wides)),
        ("date", leaf(PhysicalType::Int32, LogicalType::Date), days),
        (
            "time",
            leaf(PhysicalType::Int64, LogicalType::Time { unit: TimeUnit::Nanos, is_adjusted_to_utc: false }),
            [0, 1, 86_399_999_999_999].into_iter().cycle().take(rows).collect::<Vec<i64>>().into(),
        ),
        ("ms", timestamp(TimeUnit::Millis, true), of_seconds(1000)),
        ("us", timestamp(TimeUnit::Micros, false), of_seconds(1_000_000)),
        ("ns", timestamp(TimeUnit::Nanos, true), longs([i64::MIN, i64::MAX])),
        ("uuid", leaf(PhysicalType::FixedLenByteArray(16), LogicalType::Uuid), fixed(&uuids)),
        ("blob", leaf(PhysicalType::ByteArray, None), texts(&blobs)),
        ("three", leaf(PhysicalType::FixedLenByteArray(3), None), fixed(&threes)),
    ])
}

fn verified() -> CopyOptions {
    CopyOptions { verify: true, ..CopyOptions::default() }
}

/// What a table is as text, without a file.
fn printed(from: &Arc<dyn Source>, format: Format) -> Vec<u8> {
    let mut text = Vec::new();
    let mut out = TextOutput::new(&mut text, format, TextOutputOptions::default());
    copy(from, &mut out, &CopyOptions::default(), &mut |_| {}).unwrap();
    drop(out);
    text
}

#[test]
fn every_type_is_read_back_bit_by_bit() {
    let folder = tempfile::tempdir().unwrap();
    let from = every_type();
    for (name, format) in [
        ("a.csv", Format::Csv),
        ("a.csv.gz", Format::Csv),
        ("a.CSV.ZST", Format::Csv),
        ("a.jsonl", Format::JsonLines),
        ("a.jsonl.zst", Format::JsonLines),
    ] {
        let path = folder.path().join(name);
        let mut to = NewTextFile::new(&path, format, TextOutputOptions::default()).unwrap();
        let copied = copy(&from, &mut to, &verified(), &mut |_| {}).unwrap();
        assert_eq!((copied.rows, copied.written.files), (12, 1), "{name}");
        assert_eq!(copied.written.bytes, fs::metadata(&path).unwrap().len(), "{name}");
        // By its name alone, it is the same text.
        let mut options = TextOptions::default();
        options.schema = fit::readable(&from.table().schema, format).ok();
        let file = TextFile::open_all(
            &(Arc::new(LocalFiles) as Arc<dyn Store>),
            &[(path, format)],
            &options,
            &Cancel::new(),
        )
        .unwrap()
        .remove(0);
        let pieces = [Piece::of("again")];
        let table = Table::new("again", Arc::clone(file.schema()));
        let again: Arc<dyn Source> = Arc::new(ReadBack { table, pieces, file });
        let (text, before) = (printed(&again, format), printed(&from, format));
        assert_eq!(String::from_utf8_lossy(&text), String::from_utf8_lossy(&before), "{name}");
    }
}

#[test]
fn null_is_nothing_and_empty_text_is_quoted() {
    let ids = leaf(PhysicalType::Int32, None);
    let name = leaf(PhysicalType::ByteArray, LogicalType::String);
    let names = texts(&["a,\"b\"", "", "c\nd", "null"]);
    let from = table(vec![("id", ids, vec![1, 2, 3, 4].into()), ("name", name, names)]);
    let text = |format| String::from_utf8(printed(&from, format)).unwrap();
    assert_eq!(text(Format::Csv), "id,name\n1,\"a,\"\"b\"\"\"\n2,\"\"\n3,\"c\nd\"\n4,\n");
    let lines = "{\"id\":1,\"name\":\"a,\\\"b\\\"\"}\n{\"id\":2,\"name\":\"\"}\n{\"id\":3,\"name\":\"c\\nd\"}\n\
                 {\"id\":4,\"name\":null}\n";
    assert_eq!(text(Format::JsonLines), lines);
}

/// In a table of one column, null is an empty line.
#[test]
fn one_column_of_nulls_and_empty_text() {
    let folder = tempfile::tempdir().unwrap();
    let name = leaf(PhysicalType::ByteArray, LogicalType::String);
    let schema = Schema::of_fields(&[FieldDef::new("name", name)]).unwrap();
    let mut batch = Batch::of_values([texts(&["", "x", "x", ""])]).unwrap();
    batch.columns[0].validity = Some([true, false, true, true].into_iter().collect::<Bitmap>());
    batch.columns[0].nulls = 1;
    let from = source(schema, batch);
    assert_eq!(printed(&from, Format::Csv), b"name\n\"\"\n\nx\n\"\"\n");
    let mut to =
        NewTextFile::new(folder.path().join("a.csv"), Format::Csv, TextOutputOptions::default()).unwrap();
    copy(&from, &mut to, &verified(), &mut |_| {}).unwrap();
}

#[test]
fn tsv_refuses_what_it_cannot_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tsv");
    let copied = |names: &[&str]| {
        let name = leaf(PhysicalType::ByteArray, LogicalType::String);
        let ids: Vec<i64> = (0..).take(names.len()).collect();
        let id = leaf(PhysicalType::Int64, None);
        let from = table(vec![("id", id, ids.into()), ("name", name, texts(names))]);
        let options = TextOutputOptions { overwrite: true, ..TextOutputOptions::default() };
        let mut to = NewTextFile::new(&path, Format::Tsv, options)?;
        copy(&from, &mut to, &verified(), &mut |_| {})
    };
    copied(&["a \"b\"", "c,d", "e"]).unwrap();
    let text = "id\tname\n0\ta \"b\"\n1\tc,d\n2\t\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    for bad in ["", "a\tb", "a\nb"] {
        let error = copied(&["a", bad, "c"]).unwrap_err();
        assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(1)), "{error}");
        assert_eq!(error.place().object.as_deref(), Some("rows, piece 0"));
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "what was there stays");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Lists and structs: `[1, 2]`, `[]`, null, and a struct of nulls.
fn nested() -> (Schema, Batch) {
    let int = || leaf(PhysicalType::Int32, None);
    let list = FieldType::List(Box::new(FieldDef::new("element", int())));
    let place = FieldType::Struct(vec![FieldDef::new("x", int())], None);
    let fields = [FieldDef::new("tags", list), FieldDef::new("place", place), FieldDef::new("id", int())];
    let column =
        |leaf, values: Vec<i32>, nulls, definition: Vec<u8>, repetition: Option<Vec<u8>>| ColumnBatch {
            leaf,
            rows: 3,
            nulls,
            validity: None,
            values: values.into(),
            layout: Layout::Dense,
            levels: Some(Levels { definition: definition.into(), repetition: repetition.map(Into::into) }),
            provisional: false,
        };
    let mut id = Batch::of_values([vec![1, 2, 3].into()]).unwrap().columns.remove(0);
    id.leaf = 2;
    let columns = vec![
        column(0, vec![1, 2], 2, vec![3, 3, 1, 0], Some(vec![0, 1, 0, 0])),
        column(1, vec![7], 2, vec![2, 1, 0], None),
        id,
    ];
    (Schema::of_fields(&fields).unwrap(), Batch { row_group: 0, first_row: 0, rows: 3, columns })
}

#[test]
fn nested_columns_are_for_json_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (schema, batch) = nested();
    let from = source(schema, batch);
    let to = |name: &str, format| {
        let mut to =
            NewTextFile::new(folder.path().join(name), format, TextOutputOptions::default()).unwrap();
        copy(&from, &mut to, &verified(), &mut |_| {})
    };
    for (name, format) in [("a.csv", Format::Csv), ("a.tsv", Format::Tsv)] {
        let error = to(name, format).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conversion);
        // All of them at once.
        assert!(
            error.message().ends_with("cannot hold nested columns (tags, place); JSON lines can"),
            "{error}"
        );
        assert_eq!(error.place().object.as_deref(), Some("rows"));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    assert_eq!(to("a.jsonl", Format::JsonLines).unwrap().rows, 3);
    assert_eq!(
        fs::read_to_string(folder.path().join("a.jsonl")).unwrap(),
        "{\"tags\":[1,2],\"place\":{\"x\":7},\"id\":1}\n{\"tags\":[],\"place\":{\"x\":null},\"id\":2}\n\
         {\"tags\":null,\"place\":null,\"id\":3}\n"
    );
    let mut text = Vec::new();
    let options = TextOutputOptions { nested_as_json: true, ..TextOutputOptions::default() };
    copy(&from, &mut TextOutput::new(&mut text, Format::Csv, options), &CopyOptions::default(), &mut |_| {})
        .unwrap();
    assert!(text.starts_with(b"tags,place,id\n\"[1,2]\",\"{\"\"x\"\":7}\",1\n"));
}

/// What is required in a nested column, and the physical type of nulls, make no difference.
#[test]
fn what_can_be_null_makes_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let int = |name| FieldDef::new(name, leaf(PhysicalType::Int32, None));
    let around = |field: FieldDef| FieldType::Struct(vec![field], None);
    let fields = [
        FieldDef::new("both", around(int("x").required())).required(),
        FieldDef::new("outer", around(int("x"))).required(),
        FieldDef::new("inner", around(int("x").required())),
        FieldDef::new("tags", FieldType::List(Box::new(int("element").required()))).required(),
        FieldDef::new("none", leaf(PhysicalType::Double, LogicalType::Unknown)),
    ];
    let mut batch = Batch::of_values([
        vec![1, 2].into(),
        vec![3, 0].into(),
        vec![0, 4].into(),
        vec![5, 6].into(),
        vec![0.0, 0.0].into(),
    ])
    .unwrap();
    for (column, is_there) in [(1, [true, false]), (2, [false, true]), (4, [false, false])] {
        batch.columns[column].validity = Some(is_there.into_iter().collect::<Bitmap>());
        batch.columns[column].nulls = is_there.iter().filter(|it| !**it).count();
    }
    let tags = &mut batch.columns[3];
    // Two elements, and none.
    tags.levels = Some(Levels { definition: vec![1, 1, 0].into(), repetition: Some(vec![0, 1, 0].into()) });
    (tags.nulls, tags.layout) = (1, Layout::Dense);
    let from = source(Schema::of_fields(&fields).unwrap(), batch);
    let path = folder.path().join("a.jsonl");
    let mut to = NewTextFile::new(&path, Format::JsonLines, TextOutputOptions::default()).unwrap();
    copy(&from, &mut to, &verified(), &mut |_| {}).unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "{\"both\":{\"x\":1},\"outer\":{\"x\":3},\"inner\":null,\"tags\":[5,6],\"none\":null}\n\
         {\"both\":{\"x\":2},\"outer\":{\"x\":null},\"inner\":{\"x\":4},\"tags\":[],\"none\":null}\n"
    );
}

#[test]
fn what_is_wrong_with_names_is_said_at_once() {
    let int = || leaf(PhysicalType::Int32, None);
    let list = FieldType::List(Box::new(FieldDef::new("element", int())));
    let schema = Schema::of_fields(&[FieldDef::new("a\tb", int()), FieldDef::new("tags", list)]).unwrap();
    let table = Table::new("rows", Arc::new(schema));
    let error = fit::check(&table, Format::Tsv, false).unwrap_err();
    assert!(
        error.message().contains("contains a tab") && error.message().contains("nested columns"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_verified_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let copied = |field_type, values: Values, options: &CopyOptions| {
        let from = table(vec![("a", field_type, values)]);
        let mut to = NewTextFile::new(&path, Format::Csv, TextOutputOptions::default()).unwrap();
        copy(&from, &mut to, options, &mut |_| {})
    };
    let decimal = |precision| LogicalType::Decimal { precision, scale: 2 };
    let unusual = || leaf(PhysicalType::ByteArray, decimal(40));
    let bytes = || [&[0xff][..], &[2]].into_iter().collect::<Values>();
    let error = copied(unusual(), bytes(), &verified()).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Option("verify")));
    let (what, place) = ("text is not read back as BYTE_ARRAY DECIMAL(40, 2), bit by bit", error.place());
    assert_eq!(
        (error.message(), place.column.as_deref(), place.object.as_deref()),
        (what, Some("a"), Some("rows"))
    );
    // An INT96 of another day's nanoseconds is the same point in time; halves can be NaN, too.
    let odd = [(PhysicalType::Int96, None, vec![0xff; 24]), (HALF.0, HALF.1, vec![1, 0x7c, 0, 0])];
    for (physical, logical, bytes) in odd {
        let fixed = FixedBytes::new(bytes.len() / 2, 2, bytes.into());
        let values = match physical {
            PhysicalType::Int96 => Values::Int96(fixed),
            _ => Values::FixedLenByteArray(fixed),
        };
        let error = copied(FieldType::Leaf(physical, logical), values, &verified()).unwrap_err();
        assert_eq!(error.detail(), Some(Detail::Option("verify")), "{error}");
        assert_eq!(error.place().column.as_deref(), Some("a"));
    }
    // NaNs of other bits are the same word.
    let nans: Vec<f64> = vec![1.5, f64::from_bits(0xfff8_0000_0000_0000)];
    let error = copied(leaf(PhysicalType::Double, None), nans.into(), &verified()).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Option("verify")));
    assert!(!path.exists());
    copied(unusual(), bytes(), &CopyOptions::default()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\n-0.01\n0.02\n");
    // Fewer digits are read in another number of bytes, and have the same values.
    fs::remove_file(&path).unwrap();
    copied(leaf(PhysicalType::ByteArray, decimal(5)), bytes(), &verified()).unwrap();
    fs::remove_file(&path).unwrap();
    copied(leaf(PhysicalType::Int64, decimal(5)), vec![-1_i64, 99_999].into(), &verified()).unwrap();
}

const HALF: (PhysicalType, Option<LogicalType>) =
    (PhysicalType::FixedLenByteArray(2), Some(LogicalType::Float16));

#[test]
fn what_is_there_is_replaced_only_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "mine").unwrap();
    let refused = NewTextFile::new(&path, Format::Csv, TextOutputOptions::default()).unwrap_err();
    assert_eq!(refused.detail(), Some(Detail::AlreadyExists));
    let options = TextOutputOptions { overwrite: true, ..TextOutputOptions::default() };
    let mut to = NewTextFile::new(&path, Format::Csv, options).unwrap();
    let from = table(vec![("a", leaf(PhysicalType::Int32, None), vec![1].into())]);
    to.begin(from.table()).unwrap();
    to.write(Batch::of_values([vec![1].into()]).unwrap()).unwrap();
    assert_eq!(to.begin(from.table()).unwrap_err().kind(), ErrorKind::Misuse);
    to.finish().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    to.commit().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "a\n1\n");
}
