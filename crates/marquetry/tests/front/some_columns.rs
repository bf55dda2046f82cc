//! Some columns of a file that an Arrow writer made have the types that they have among all.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, DictionaryArray, DurationSecondArray, LargeStringArray, RecordBatch, StringArray, StructArray,
};
use arrow_schema::{DataType, Field, Schema, TimeUnit};

/// `id string, long large_string, kind dictionary, span duration(s), place struct<name: string, zip: large_string>`.
fn batch() -> RecordBatch {
    let kinds: DictionaryArray<arrow_array::types::Int8Type> =
        ["a kind", "another", "a kind"].into_iter().collect();
    let names: ArrayRef = Arc::new(StringArray::from(vec!["Oslo", "Rome", "Łódź"]));
    let zips: ArrayRef = Arc::new(LargeStringArray::from(vec!["0150", "00100", "90-001"]));
    let field = |name: &str, array: &ArrayRef| Arc::new(Field::new(name, array.data_type().clone(), true));
    let place = StructArray::from(vec![(field("name", &names), names), (field("zip", &zips), zips)]);
    let columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
        ("long", Arc::new(LargeStringArray::from(vec!["x", "y", "z"]))),
        ("kind", Arc::new(kinds)),
        ("span", Arc::new(DurationSecondArray::from(vec![1, 2, 3]))),
        ("place", Arc::new(place)),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn written(path: &Path) -> RecordBatch {
    let batch = batch();
    let mut writer = marquetry::create_arrow(path, &batch.schema()).unwrap();
    writer.write_arrow(&batch).unwrap();
    writer.finish().unwrap();
    batch
}

fn types(schema: &Schema) -> Vec<DataType> {
    schema.fields().iter().map(|field| field.data_type().clone()).collect()
}

#[test]
fn columns_keep_their_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let batch = written(&path);
    let open = || marquetry::open(&path).unwrap();
    for names in
        [&["span", "id"][..], &["kind"], &["place", "long"], &["long", "kind", "id", "span", "place"]]
    {
        let batches = open().columns(names).unwrap().record_batches().unwrap();
        let found: Vec<RecordBatch> = batches.map(Result::unwrap).collect();
        let [found] = &*found else { panic!("{} batches", found.len()) };
        for name in names {
            assert_eq!(found.column_by_name(name), batch.column_by_name(name), "{name} of {names:?}");
        }
    }
    // A field of a group, of which there are fewer than the Arrow schema has.
    let schema = open().columns(["place.zip"]).unwrap().arrow_schema().unwrap();
    let DataType::Struct(fields) = schema.field(0).data_type() else { panic!("{schema}") };
    assert_eq!(
        (fields.len(), fields[0].name().as_str(), fields[0].data_type()),
        (1, "zip", &DataType::LargeUtf8)
    );
}

#[test]
fn other_names_and_types_are_not_the_writers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    written(&path);
    let open = || marquetry::open(&path).unwrap();
    // The names of two columns change places, which the Arrow schema does not know.
    let renamed = open().rename("span=id, id=span").unwrap().columns(["span", "id"]).unwrap();
    assert_eq!(types(&renamed.arrow_schema().unwrap()), [DataType::Utf8View, DataType::Int64]);
    // Those that were chosen, before the columns are, or after.
    let days = |table: marquetry::Reader| types(&table.arrow_schema().unwrap());
    assert_eq!(days(open().types("span=int").unwrap().columns(["span"]).unwrap()), [DataType::Int32]);
    assert_eq!(days(open().columns(["span"]).unwrap().types("span=int").unwrap()), [DataType::Int32]);
    assert_eq!(days(open().columns(["span"]).unwrap()), [DataType::Duration(TimeUnit::Second)]);
}
