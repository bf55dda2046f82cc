//! Orders that are claimed: by sources, and by what is written.

use marquetry_base::ErrorKind;
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_tables::parquet::{DirectoryOptions, NewParquetDirectory, NewParquetFile, ParquetOptions};
use marquetry_tables::{ColumnPath, Table, copy};

use super::*;

const BY_N: SortingColumn = SortingColumn { column: 0, descending: false, nulls_first: false };
const BY_TEXT: SortingColumn = SortingColumn { column: 1, descending: false, nulls_first: false };

fn in_order() -> Given {
    Given::new(vec![vec![(1, "a"), (2, "a"), (3, "b")], vec![(3, "c"), (9, "c")]]).ordered_by(&[BY_N])
}

/// The second row of the second piece belongs before the first.
fn lying() -> Given {
    Given::new(vec![vec![(1, "a"), (2, "a"), (3, "b")], vec![(5, "c"), (4, "c")]]).ordered_by(&[BY_N])
}

#[test]
fn an_order_is_stated_by_the_row_groups_that_have_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |given: Given, row_group_rows: u64| {
        let path = folder.path().join("a.parquet");
        let mut parquet = ParquetOptions::default();
        parquet.write.row_group_rows = row_group_rows;
        parquet.overwrite = true;
        let mut file = NewParquetFile::new(&path, parquet).unwrap();
        let copied = copy(&given.source(), &mut file, &CopyOptions::default(), &mut |_| {}).unwrap();
        assert_eq!(copied.rows, 5);
        stated(&path)
    };
    assert_eq!(write(in_order(), 100), [vec![BY_N]]);
    assert_eq!(write(in_order(), 2), [vec![BY_N], vec![BY_N], vec![BY_N]]);
    assert_eq!(write(lying(), 100), [vec![]]);
    assert_eq!(write(lying(), 2), [vec![BY_N], vec![], vec![]]);
}

#[test]
fn verification_finds_a_source_that_lies() {
    let folder = tempfile::tempdir().unwrap();
    let verified = options(|it| it.verify = true);
    let path = folder.path().join("a.parquet");
    let mut file = NewParquetFile::new(&path, ParquetOptions::default()).unwrap();
    let error = copy(&lying().source(), &mut file, &verified, &mut |_| {}).unwrap_err();
    assert_eq!((error.kind(), place(&error)), (ErrorKind::Corrupt, (Some("piece 1"), Some(1))));
    drop(file);
    assert!(is_empty(folder.path()));

    // Within a piece, and from one to the next.
    for (rows, object, row) in [
        (vec![vec![(2, ""), (1, "")]], "piece 0", 1),
        (vec![vec![(1, ""), (2, ""), (1, "")]], "piece 0", 2),
        (vec![vec![(1, ""), (2, "")], vec![(1, "")]], "piece 1", 0),
    ] {
        let mut file = NewParquetFile::new(&path, ParquetOptions::default()).unwrap();
        let source = Given::new(rows).ordered_by(&[BY_N]).source();
        let error = copy(&source, &mut file, &verified, &mut |_| {}).unwrap_err();
        assert_eq!(place(&error), (Some(object), Some(row)));
    }

    // Rows that are sorted anew have the order that is asked for, whatever the source claims.
    let mut file = NewParquetFile::new(&path, ParquetOptions::default()).unwrap();
    let sorted = options(|it| (it.verify, it.sort) = (true, vec![BY_N]));
    copy(&lying().source(), &mut file, &sorted, &mut |_| {}).unwrap();
    assert_eq!(stated(&path), [vec![BY_N]]);
    std::fs::remove_file(&path).unwrap();
    let mut file = NewParquetFile::new(&path, ParquetOptions::default()).unwrap();
    copy(&in_order().source(), &mut file, &verified, &mut |_| {}).unwrap();
    assert_eq!(stated(&path), [vec![BY_N]]);
}

#[test]
fn the_footer_of_a_file_is_not_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let rows = batch(&[(1, "a"), (7, "b"), (5, "c")]).unwrap();
    let from = written(&folder.path().join("lies.parquet"), schema(), rows, &[BY_TEXT, BY_N]);
    let other = batch(&[(1, "a"), (7, "b"), (5, "c")]).unwrap();
    let lies = written(&folder.path().join("lies too.parquet"), schema(), other, &[BY_N]);
    assert_eq!(files([&lies]).table().order, [BY_N]);
    let to = folder.path().join("to.parquet");
    let mut file = NewParquetFile::new(&to, ParquetOptions::default()).unwrap();
    let verified = options(|it| it.verify = true);
    let error = copy(&files([&lies]), &mut file, &verified, &mut |_| {}).unwrap_err();
    assert_eq!((error.kind(), place(&error)), (ErrorKind::Corrupt, (lies.to_str(), Some(2))));
    let mut file = NewParquetFile::new(&to, ParquetOptions::default()).unwrap();
    copy(&files([&lies]), &mut file, &CopyOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(stated(&to), [vec![]]);
    // A claim that is true is kept.
    std::fs::remove_file(&to).unwrap();
    let mut file = NewParquetFile::new(&to, ParquetOptions::default()).unwrap();
    copy(&files([&from]), &mut file, &verified, &mut |_| {}).unwrap();
    assert_eq!(stated(&to), [vec![BY_TEXT, BY_N]]);
}

#[test]
fn each_file_of_a_directory_states_what_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d");
    let mut by_text = DirectoryOptions::default();
    by_text.partition_by = ColumnPath::parse_list("text").unwrap();
    let mut directory = NewParquetDirectory::new(&path, by_text.clone()).unwrap();
    copy(&lying().source(), &mut directory, &CopyOptions::default(), &mut |_| {}).unwrap();
    let of = |text: &str| stated(&path.join(format!("text={text}/part-00000.parquet")));
    assert_eq!([of("a"), of("b"), of("c")], [[vec![BY_N]], [vec![BY_N]], [vec![]]]);

    let verified = options(|it| it.verify = true);
    let mut directory = NewParquetDirectory::new(folder.path().join("e"), by_text.clone()).unwrap();
    let error = copy(&lying().source(), &mut directory, &verified, &mut |_| {}).unwrap_err();
    assert_eq!(place(&error), (Some("piece 1"), Some(1)));
    let mut directory = NewParquetDirectory::new(folder.path().join("e"), by_text).unwrap();
    copy(&in_order().source(), &mut directory, &verified, &mut |_| {}).unwrap();
}

/// What cannot be compared is not stated.
#[test]
fn an_order_is_stated_up_to_what_cannot_be_checked() {
    let leaf = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None)).required();
    let fields = [leaf("n"), FieldDef::new("list", FieldType::List(Box::new(leaf("element")))).required()];
    let mut table = Table::new("nested", Arc::new(Schema::of_fields(&fields).unwrap()));
    table.order = vec![BY_N, SortingColumn { column: 1, ..BY_N }];
    let source: Arc<dyn Source> = Arc::new(Given { table, names: Vec::new(), rows: Vec::new() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let mut file = NewParquetFile::new(&path, ParquetOptions::default()).unwrap();
    copy(&source, &mut file, &options(|it| it.verify = true), &mut |_| {}).unwrap();
    assert!(stated(&path).iter().all(|order| *order == [BY_N]));
    // One of a column that there is not is no order at all.
    let source = in_order().ordered_by(&[SortingColumn { column: 2, ..BY_N }]).source();
    let mut file = NewParquetFile::new(folder.path().join("b.parquet"), ParquetOptions::default()).unwrap();
    let error = copy(&source, &mut file, &CopyOptions::default(), &mut |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
}
