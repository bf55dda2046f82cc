//! Everything that does not fit is reported at once, before the first row.

use marquetry_base::{Detail, ErrorKind};
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_parquet::write::BloomOptions;
use marquetry_tables::parquet::{DirectoryOptions, NewParquetDirectory, ParquetOptions};
use marquetry_tables::{ColumnPath, Destination, SortBy, copy, project};

use super::*;

/// A file of a row with these columns.
fn file(folder: &Path, name: &str, columns: &[(&str, PhysicalType)]) -> PathBuf {
    let field =
        |(name, physical): &(&str, _)| FieldDef::new(*name, FieldType::Leaf(*physical, None)).required();
    let schema = Schema::of_fields(&columns.iter().map(field).collect::<Vec<_>>()).unwrap();
    let values = columns.iter().map(|(_, physical)| match physical {
        PhysicalType::Int32 => vec![1].into(),
        PhysicalType::Int64 => vec![1_i64].into(),
        _ => ["a"].into_iter().collect(),
    });
    written(&folder.join(name), Arc::new(schema), Batch::of_values(values).unwrap(), &[])
}

/// What each error of several says, about which object.
fn parts(error: &Error) -> Vec<(Option<Detail>, Option<&str>)> {
    error.parts().iter().map(|part| (part.detail(), part.place().object.as_deref())).collect()
}

#[test]
fn files_that_differ_in_several_ways() {
    use PhysicalType::{ByteArray, Int32, Int64};
    let folder = tempfile::tempdir().unwrap();
    let a = file(folder.path(), "a.parquet", &[("id", Int32), ("x", Int32), ("y", Int32), ("z", Int32)]);
    let b = file(folder.path(), "b.parquet", &[("id", Int32), ("x", Int64), ("y", ByteArray), ("z", Int32)]);
    let c = file(folder.path(), "c.parquet", &[("id", Int32), ("x", Int32), ("y", Int32)]);
    let open = |options: &FilesOptions| Files::open([&a, &b, &c], options).err();
    let error = open(&FilesOptions::default()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Conversion);
    let (in_b, in_c) = (b.to_str(), c.to_str());
    let (x, y) = (Some(Detail::AdmittedBy(&["union", "columns"])), Some(Detail::AdmittedBy(&["columns"])));
    let z = x;
    assert_eq!(parts(&error), [(x, in_b), (y, in_b), (z, in_c)]);
    for name in ["\"x\"", "\"y\"", "\"z\""] {
        assert!(error.message().contains(name), "{error}");
    }
    // What is admitted or not chosen is no fault.
    let mut options = FilesOptions::default();
    options.union = true;
    let only = open(&options).unwrap();
    assert_eq!((only.detail(), only.place().object.as_deref(), only.parts().len()), (y, in_b, 0));
    options.columns = Some(ColumnPath::parse_list("z, x, id").unwrap());
    assert!(open(&options).is_none());
    // Columns that are missing from all, together with differences of those that are not.
    options.union = false;
    options.columns = Some(ColumnPath::parse_list("p, id, z, q").unwrap());
    let error = open(&options).unwrap();
    assert_eq!((error.kind(), error.parts().len()), (ErrorKind::Misuse, 3));
    assert_eq!(parts(&error)[2], (z, in_c));
    assert_eq!(error.message().matches("its columns are").count(), 1, "{error}");
}

#[test]
fn very_many_differences_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..50).map(|number| format!("c{number}")).collect();
    let all: Vec<(&str, PhysicalType)> = names.iter().map(|name| (&**name, PhysicalType::Int32)).collect();
    let wide = file(folder.path(), "a.parquet", &all);
    let narrow = file(folder.path(), "b.parquet", &all[..1]);
    let error = Files::open([&wide, &narrow], &FilesOptions::default()).err().unwrap();
    assert_eq!(error.parts().len() + error.parts_unlisted(), 49);
    assert!(error.parts().len() <= 20 && error.message().ends_with(" more"), "{error}");
    assert_eq!(
        (error.detail(), error.place().object.as_deref()),
        (Some(Detail::AdmittedBy(&["union", "columns"])), narrow.to_str())
    );
}

#[test]
fn paths_that_lack_columns() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["x=1/y=1", "x=1", "y=2"].map(|place| {
        let place = folder.path().join(place);
        std::fs::create_dir_all(&place).unwrap();
        file(&place, "a.parquet", &[("id", PhysicalType::Int32)])
    });
    let error = Files::open(&paths, &FilesOptions::default()).err().unwrap();
    let missing = Some(Detail::AdmittedBy(&["union", "hive"]));
    assert_eq!(parts(&error), [(missing, paths[1].to_str()), (missing, paths[2].to_str())]);
}

/// Found at once, and not when there are so many directories that rows have to be sorted by it.
#[test]
fn columns_without_an_order_make_no_directories() {
    let unrecognised = LogicalType::Unrecognised { number: 99, has_fields: false };
    for logical_type in [unrecognised, LogicalType::Unknown] {
        let leaf = |name: &str, logical| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, logical));
        let fields = [leaf("n", Some(logical_type)), leaf("m", None)];
        let schema = Arc::new(Schema::of_fields(&fields).unwrap());
        let folder = tempfile::tempdir().unwrap();
        let mut by_n = DirectoryOptions::default();
        by_n.partition_by = ColumnPath::parse_list("n").unwrap();
        let mut directory = NewParquetDirectory::new(folder.path().join("d"), by_n).unwrap();
        let error = directory.begin(&Table::new("made", schema)).unwrap_err();
        assert_eq!((error.kind(), error.detail()), (ErrorKind::Misuse, Some(Detail::Option("partition_by"))));
        assert!(error.message().contains("makes no names"), "{error}");
        assert!(is_empty(folder.path()));
    }
}

/// As many as rows are sorted by.
#[test]
fn columns_of_directories_are_not_too_many() {
    let leaf = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None));
    let names: Vec<String> = (0..1_026).map(|number| format!("c{number}")).collect();
    let schema = Schema::of_fields(&names.iter().map(|name| leaf(name)).collect::<Vec<_>>()).unwrap();
    let table = Table::new("made", Arc::new(schema));
    let folder = tempfile::tempdir().unwrap();
    for (count, is_right) in [(1_024, true), (1_025, false)] {
        let mut by_all = DirectoryOptions::default();
        by_all.partition_by = ColumnPath::parse_list(&names[..count].join(",")).unwrap();
        let mut directory = NewParquetDirectory::new(folder.path().join("d"), by_all).unwrap();
        let begun = directory.begin(&table);
        assert_eq!(begun.is_ok(), is_right, "{:?}", begun.err());
    }
}

#[test]
fn options_for_single_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = |text: &str| ColumnPath::parse(text).unwrap();
    let mut wrong = DirectoryOptions::default();
    wrong.partition_by = ColumnPath::parse_list("none, n, n").unwrap();
    wrong.parquet.encodings = vec![
        (path("nobody"), Encoding::Plain),
        (path("n"), Encoding::DeltaByteArray),
        (path("text"), Encoding::DeltaByteArray),
    ];
    wrong.parquet.bloom = vec![(path("nothing"), BloomOptions::default())];
    let mut directory = NewParquetDirectory::new(folder.path().join("d"), wrong).unwrap();
    let source = Given::new(vec![vec![(1, "a")]]).source();
    let error = copy(&source, &mut directory, &CopyOptions::default(), &mut |_| {}).unwrap_err();
    let details: Vec<Option<Detail>> = error.parts().iter().map(Error::detail).collect();
    let wanted = ["partition_by", "partition_by", "encoding", "encoding", "bloom"];
    assert_eq!(details, wanted.map(|option| Some(Detail::Option(option))), "{error}");
    assert_eq!((error.kind(), error.parts()[3].place().column.as_deref()), (ErrorKind::Misuse, Some("n")));
    assert_eq!(error.message().matches("columns are").count(), 1, "{error}");
    drop(directory);
    assert!(is_empty(folder.path()));

    // One fault is itself, and what is known without a table is found without one.
    let mut one = ParquetOptions::default();
    one.bloom = vec![(path("nothing"), BloomOptions::default())];
    let mut wrong = DirectoryOptions::default();
    wrong.parquet = one;
    let mut directory = NewParquetDirectory::new(folder.path().join("d"), wrong.clone()).unwrap();
    let error = copy(&source, &mut directory, &CopyOptions::default(), &mut |_| {}).unwrap_err();
    assert_eq!((error.detail(), error.parts().len()), (Some(Detail::Option("bloom")), 0));
    wrong.parquet.bloom[0].1.fpp = 2.0;
    (wrong.parquet.write.column.compression, wrong.parquet.write.column.level) =
        (Compression::Uncompressed, Some(3));
    let error = NewParquetDirectory::new(folder.path().join("d"), wrong).err().unwrap();
    let details: Vec<Option<Detail>> = error.parts().iter().map(Error::detail).collect();
    assert_eq!(details, ["level", "bloom_fpp"].map(|option| Some(Detail::Option(option))));
}

#[test]
fn columns_to_sort_by_and_to_choose() {
    let by = SortBy::parse_list("nobody, n, n desc, nothing").unwrap();
    let error = SortBy::resolve(&by, &schema()).unwrap_err();
    assert_eq!((error.parts().len(), error.detail()), (3, Some(Detail::Option("sort"))));
    assert!(error.message().contains("nobody") && error.message().contains("nothing"), "{error}");
    let source = Given::new(Vec::new()).source();
    let error = project(&source, &ColumnPath::parse_list("p, n, q, n").unwrap()).err().unwrap();
    assert_eq!((error.parts().len(), error.detail()), (3, Some(Detail::Option("columns"))));
    assert_eq!(error.place().object.as_deref(), Some("given"));
}
