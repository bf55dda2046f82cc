//! The row that an error names is that of the object that it names.

use marquetry_base::ErrorKind;
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::sort::KEY_BYTES_MAX;
use marquetry_scylla::bridge::MappingOptions;
use marquetry_scylla::cql::{KeySpec, TableName};
use marquetry_tables::parquet::{DirectoryOptions, NewParquetDirectory, NewParquetFile, ParquetOptions};
use marquetry_tables::text::{Format, TextFormat, TextOptions, TextOutput, TextOutputOptions};
use marquetry_tables::{ColumnPath, CqlText, CqlTextOptions, Destination, copy};

use super::*;

/// Copies to CQL, of which a text of no bytes cannot be the partition key. Returns the error and what was written.
fn to_cql(source: &Arc<dyn Source>, options: &CopyOptions) -> (Error, String) {
    let mapping = MappingOptions { key: Some(KeySpec::parse("text").unwrap()), ..MappingOptions::default() };
    let mut text = Vec::new();
    let table = TableName::parse("ks.t").unwrap();
    let mut cql = CqlText::new(&mut text, table, CqlTextOptions::of(mapping));
    let error = copy(source, &mut cql, options, &mut |_| {}).unwrap_err();
    drop(cql);
    (error, String::from_utf8(text).unwrap())
}

const BAD: [&[(i32, &str)]; 2] = [
    &[(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")],
    &[(6, "f"), (7, "g"), (8, "h"), (9, ""), (10, "i")],
];

#[test]
fn of_a_parquet_file_in_text() {
    let folder = tempfile::tempdir().unwrap();
    let [good, bad] = ["good.parquet", "bad.parquet"].map(|name| folder.path().join(name));
    for (path, rows) in [&good, &bad].into_iter().zip(BAD) {
        written(path, schema(), batch(rows).unwrap(), &[]);
    }
    let source = files([&good, &bad]);
    let (error, text) = to_cql(&source, &CopyOptions::default());
    assert_eq!((error.kind(), place(&error)), (ErrorKind::Conversion, (bad.to_str(), Some(3))));
    assert_eq!(text.matches("INSERT").count(), 8);
    // After a sort nobody can look up the row.
    let by_text = SortingColumn { column: 1, descending: true, nulls_first: false };
    let (error, _) = to_cql(&source, &options(|it| it.sort = vec![by_text]));
    assert_eq!((error.place().row, error.place().row_group), (None, None));
    assert_eq!(error.place().object.as_deref(), Some(&*source.table().name));
}

#[test]
fn of_a_text_file_in_text() {
    let folder = tempfile::tempdir().unwrap();
    let line = |row: &(i32, &str)| format!("{},\"{}\"\n", row.0, row.1);
    let csv = BAD.map(|rows| format!("n,text\n{}", rows.iter().map(line).collect::<String>()));
    let line = |row: &(i32, &str)| format!("{{\"n\": {}, \"text\": \"{}\"}}\n", row.0, row.1);
    let json = BAD.map(|rows| rows.iter().map(line).collect::<String>());
    for (texts, extension) in [(csv, "csv"), (json, "jsonl")] {
        let [good, bad] = ["good", "bad"].map(|name| folder.path().join(format!("{name}.{extension}")));
        for (path, text) in [&good, &bad].into_iter().zip(texts) {
            std::fs::write(path, text).unwrap();
        }
        let mut options = FilesOptions::default();
        options.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
        let source: Arc<dyn Source> = Arc::new(Files::open([&good, &bad], &options).unwrap());
        let (error, text) = to_cql(&source, &CopyOptions::default());
        assert_eq!((error.kind(), place(&error)), (ErrorKind::Conversion, (bad.to_str(), Some(3))));
        assert_eq!(text.matches("INSERT").count(), 8, "{extension}");
    }
}

#[test]
fn of_a_custom_source() {
    let (error, _) = to_cql(&Given::new(BAD.map(<[_]>::to_vec).to_vec()).source(), &CopyOptions::default());
    assert_eq!(place(&error), (Some("piece 1"), Some(3)));
}

/// A sorter numbers rows as it gets them, over all pieces.
#[test]
fn of_a_key_that_is_too_long_to_be_sorted() {
    let long: &'static str = "x".repeat(KEY_BYTES_MAX + 1).leak();
    let mut rows = BAD.map(<[_]>::to_vec).to_vec();
    rows[1][3].1 = long;
    let folder = tempfile::tempdir().unwrap();
    let mut file = NewParquetFile::new(folder.path().join("a.parquet"), ParquetOptions::default()).unwrap();
    let by_text = SortingColumn { column: 1, descending: false, nulls_first: false };
    let sorted = options(|it| it.sort = vec![by_text]);
    let error = copy(&Given::new(rows.clone()).source(), &mut file, &sorted, &mut |_| {}).unwrap_err();
    assert_eq!((error.kind(), place(&error)), (ErrorKind::LimitExceeded, (Some("piece 1"), Some(3))));
    // The last batch is sorted after all rows were taken.
    rows[1].truncate(4);
    let mut file = NewParquetFile::new(folder.path().join("a.parquet"), ParquetOptions::default()).unwrap();
    let error = copy(&Given::new(rows).source(), &mut file, &sorted, &mut |_| {}).unwrap_err();
    assert_eq!(place(&error), (Some("piece 1"), Some(3)));
}

/// Found before rows are sorted by what their directories are.
#[test]
fn of_a_directory_that_cannot_be_named() {
    let long: &'static str = "x".repeat(300).leak();
    let mut rows = BAD.map(<[_]>::to_vec).to_vec();
    rows[1][3].1 = long;
    let folder = tempfile::tempdir().unwrap();
    let mut by_text = DirectoryOptions::default();
    by_text.partition_by = ColumnPath::parse_list("text").unwrap();
    let mut directory = NewParquetDirectory::new(folder.path().join("d"), by_text).unwrap();
    let error = copy(&Given::new(rows).source(), &mut directory, &CopyOptions::default(), &mut |_| {});
    let error = error.unwrap_err();
    assert_eq!((error.kind(), place(&error)), (ErrorKind::Conversion, (Some("piece 1"), Some(3))));
    assert_eq!(error.place().column.as_deref(), Some("text"));
}

/// The same after so many directories that rows are sorted, for all reasons why a value makes no name.
#[test]
fn of_a_directory_that_is_one_of_many_and_cannot_be_named() {
    const ROWS: usize = 50;
    let text = |bad: &[u8]| {
        let mut all: Vec<Vec<u8>> = (0..ROWS).map(|row| format!("text {row}").into_bytes()).collect();
        all[ROWS - 3] = bad.to_vec();
        let values: Values = all.iter().collect();
        (values, LogicalType::String)
    };
    let mut decimals: Vec<Vec<u8>> = (1..=50).map(|row: u8| vec![row]).collect();
    decimals[ROWS - 3] = vec![1; 110];
    let decimals: Values = decimals.iter().collect();
    for (values, logical_type) in [
        text(&[b'x'; 251]),
        text(&[b'/'; 84]),
        text("ä".repeat(126).as_bytes()),
        text(b"\xff"),
        text(&[b"n".repeat(70), vec![0xc3]].concat()),
        (decimals, LogicalType::Decimal { precision: 300, scale: 0 }),
    ] {
        let leaf = |name: &str, physical, logical| {
            FieldDef::new(name, FieldType::Leaf(physical, logical)).required()
        };
        let fields = [
            leaf("value", PhysicalType::ByteArray, Some(logical_type)),
            leaf("n", PhysicalType::Int32, None),
        ];
        let schema = Arc::new(Schema::of_fields(&fields).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let mut by_value = DirectoryOptions::default();
        by_value.partition_by = ColumnPath::parse_list("value").unwrap();
        let mut directory = NewParquetDirectory::new(folder.path().join("d"), by_value).unwrap();
        directory.begin(&Table::new("made", schema)).unwrap();
        let numbers = vec![0; ROWS];
        let batch = Batch::of_values([values, numbers.into()]).unwrap();
        // (The longest that is right, before.)
        directory.write(batch.slice(0..ROWS - 3)).unwrap();
        let mut rest = batch.slice(ROWS - 3..ROWS);
        rest.first_row = 47;
        let error = directory.write(rest).unwrap_err();
        assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(47)), "{error}");
        assert_eq!(error.place().column.as_deref(), Some("value"));
    }
}

/// What is wrong with a row comes before what is wrong with a later one of the same batch, whose directory has no name.
#[test]
fn of_the_first_of_two_that_are_wrong() {
    let long: &'static str = "x".repeat(5_000).leak();
    for threads in [1, 8] {
        let leaf = |name: &str| {
            let text = FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String));
            FieldDef::new(name, text).required()
        };
        let schema = Arc::new(Schema::of_fields(&[leaf("name"), leaf("text")]).unwrap());
        for (bad_name, bad_text, kind, column) in
            [(10, 5, ErrorKind::LimitExceeded, "text"), (5, 10, ErrorKind::Conversion, "name")]
        {
            let of = |bad: usize| -> Values {
                (0..20).map(|row| if row == bad { long } else { ["a", "b", "c"][row % 3] }).collect()
            };
            let folder = tempfile::tempdir().unwrap();
            let mut by_name = DirectoryOptions::default();
            by_name.partition_by = ColumnPath::parse_list("name").unwrap();
            by_name.parquet.write.limits.value_bytes = 4_000;
            let mut directory = NewParquetDirectory::new(folder.path().join("d"), by_name).unwrap();
            directory.set_threads(threads);
            directory.begin(&Table::new("made", Arc::clone(&schema))).unwrap();
            let error = directory.write(Batch::of_values([of(bad_name), of(bad_text)]).unwrap()).unwrap_err();
            assert_eq!((error.kind(), error.place().column.as_deref()), (kind, Some(column)), "{error}");
        }
    }
}

/// A batch that contradicts itself is found by the call that has it, though the writer knows no row.
#[test]
fn of_a_batch_that_no_file_can_hold() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = NewParquetFile::new(folder.path().join("a.parquet"), ParquetOptions::default()).unwrap();
    file.begin(&Table::new("made", schema())).unwrap();
    file.write(batch(BAD[0]).unwrap()).unwrap();
    let mut bad = batch(BAD[1]).unwrap();
    let entries: Values = vec![1, 2].into();
    bad.columns[0].values = Values::Dictionary(vec![0, 1, 2, 0, 0].into(), Arc::new(entries));
    let error = file.write(bad).unwrap_err();
    assert_eq!((error.kind(), error.place().row), (ErrorKind::Misuse, None));
    assert_eq!(error.place().column.as_deref(), Some("n"));
}

#[test]
fn of_a_parquet_file_in_csv_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let [good, bad] = ["good.parquet", "bad.parquet"].map(|name| folder.path().join(name));
    let texts: [[&[u8]; 3]; 2] = [[b"a", b"b", b"c"], [b"d", b"e", b"\xff"]];
    for (path, texts) in [&good, &bad].into_iter().zip(texts) {
        let batch = Batch::of_values([vec![1, 2, 3].into(), texts.into_iter().collect()]).unwrap();
        written(path, schema(), batch, &[]);
    }
    for format in [Format::Csv, Format::Tsv, Format::JsonLines] {
        let mut text = Vec::new();
        let mut output = TextOutput::new(&mut text, format, TextOutputOptions::default());
        let error =
            copy(&files([&good, &bad]), &mut output, &CopyOptions::default(), &mut |_| {}).unwrap_err();
        assert_eq!((error.kind(), place(&error)), (ErrorKind::Conversion, (bad.to_str(), Some(2))));
    }
}
