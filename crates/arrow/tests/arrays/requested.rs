//! Types that are asked for instead of a file's own: the same values in another layout.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, Int32Type, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, DictionaryArray, FixedSizeListArray, Int64Array, LargeStringArray,
    ListArray, RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use marquetry_arrow::{ArrowOptions, StringLayout, ToArrow};
use marquetry_base::{Bytes, ErrorKind, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::{ByteSources, drive, memory::Memory};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

use crate::common::{self, FILE};

const LAYOUTS: [StringLayout; 3] = [StringLayout::View, StringLayout::Offset32, StringLayout::Offset64];

/// Strings of all lengths, nulls among them.
fn texts() -> Vec<Option<&'static str>> {
    let all = [
        Some(""),
        None,
        Some("a"),
        Some("twelve bytes"),
        Some("żółw 🐢"),
        Some("more than a view has in it"),
    ];
    all.into_iter().cycle().take(300).collect()
}

/// A table with strings in all kinds of columns.
fn table() -> RecordBatch {
    let texts = texts();
    let text: ArrayRef = Arc::new(StringArray::from(texts.clone()));
    let large: ArrayRef = Arc::new(LargeStringArray::from(texts.clone()));
    let view: ArrayRef = Arc::new(StringViewArray::from(texts.clone()));
    let bytes: ArrayRef = Arc::new(BinaryArray::from_iter(texts.iter().map(|text| text.map(str::as_bytes))));
    let kind: ArrayRef = Arc::new(texts.iter().copied().collect::<DictionaryArray<Int32Type>>());
    let element = |data_type: &DataType| Arc::new(Field::new("item", data_type.clone(), true));
    let offsets = OffsetBuffer::from_lengths([2; 100]);
    let list = ListArray::new(element(text.data_type()), offsets, text.slice(0, 200), None);
    let fixed = FixedSizeListArray::new(element(text.data_type()), 3, Arc::clone(&text), None);
    let place = StructArray::from(vec![
        (element(text.data_type()), text.slice(0, 100)),
        (
            Arc::new(Field::new("id", DataType::Int64, true)),
            Arc::new(Int64Array::from_iter_values(0..100)) as ArrayRef,
        ),
    ]);
    let first = |array: ArrayRef| array.slice(0, 100);
    RecordBatch::try_from_iter([
        ("text", first(text)),
        ("large", first(large)),
        ("view", first(view)),
        ("bytes", first(bytes)),
        ("kind", first(kind)),
        ("list", Arc::new(list) as ArrayRef),
        ("fixed", Arc::new(fixed) as ArrayRef),
        ("place", Arc::new(place) as ArrayRef),
    ])
    .unwrap()
}

fn written(table: &RecordBatch, dictionary: bool) -> Bytes {
    let properties = WriterProperties::builder().set_dictionary_enabled(dictionary).build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties)).unwrap();
    writer.write(table).unwrap();
    writer.close().unwrap();
    bytes.into()
}

/// The only batch of a file.
fn batch(bytes: &Bytes, metadata: &Arc<FileMetaData>) -> Result<Batch> {
    let sources = ByteSources::new().with(FILE, Memory::new("file", bytes.clone()));
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, ReadOptions::default())?;
    Ok(drive(&mut reader, &sources)?.expect("a batch"))
}

/// The values of an array as text, whatever its layout is.
fn values(array: &dyn Array) -> Vec<Option<String>> {
    fn of<T: ByteArrayType>(array: &dyn Array) -> Vec<Option<String>>
    where
        T::Native: AsRef<[u8]>,
    {
        let text = |value: &T::Native| String::from_utf8_lossy(value.as_ref()).into_owned();
        array.as_bytes::<T>().iter().map(|value| value.map(text)).collect()
    }
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    match array.data_type() {
        DataType::Utf8 => of::<Utf8Type>(array),
        DataType::LargeUtf8 => of::<LargeUtf8Type>(array),
        DataType::Binary => of::<BinaryType>(array),
        DataType::LargeBinary => of::<LargeBinaryType>(array),
        DataType::Utf8View => {
            array.as_string_view().iter().map(|value| value.map(|value| text(value.as_bytes()))).collect()
        }
        DataType::BinaryView => array.as_binary_view().iter().map(|value| value.map(text)).collect(),
        DataType::Dictionary(..) => {
            let of = array.as_dictionary::<Int32Type>();
            let entries = values(of.values());
            of.keys_iter().map(|key| key.and_then(|key| entries[key].clone())).collect()
        }
        DataType::List(_) => values(array.as_list::<i32>().values()),
        DataType::LargeList(_) => values(array.as_list::<i64>().values()),
        DataType::FixedSizeList(..) => values(array.as_fixed_size_list().values()),
        DataType::Struct(_) => values(array.as_struct().column(0)),
        other => panic!("{other}"),
    }
}

/// The type of the strings in a column.
fn string_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            field.data_type()
        }
        DataType::Struct(fields) => fields[0].data_type(),
        other => other,
    }
}

#[test]
fn strings_have_the_layout_that_is_said() {
    let table = table();
    for dictionary in [false, true] {
        let bytes = written(&table, dictionary);
        let metadata = common::footer(&bytes).unwrap();
        let batch = batch(&bytes, &metadata).unwrap();
        for layout in LAYOUTS {
            let of_file = || ToArrow::of_file(&metadata, None, ArrowOptions::default()).unwrap();
            let of_schema = || ToArrow::new(&metadata.schema, None).unwrap();
            for (is_stored, to_arrow) in [(true, of_file()), (false, of_schema())] {
                let mut to_arrow = to_arrow.with_strings(layout);
                let made = to_arrow.record_batch(&batch).unwrap();
                assert_eq!(made.schema(), *to_arrow.schema());
                let (text, of_bytes) = match layout {
                    StringLayout::View => (DataType::Utf8View, DataType::BinaryView),
                    StringLayout::Offset32 => (DataType::Utf8, DataType::Binary),
                    _ => (DataType::LargeUtf8, DataType::LargeBinary),
                };
                for (field, (made, wanted)) in
                    made.schema().fields().iter().zip(made.columns().iter().zip(table.columns()))
                {
                    assert_eq!(values(made), values(wanted), "{field:?} as {layout:?}");
                    match field.name().as_str() {
                        "kind" if is_stored => assert_eq!(made.data_type(), wanted.data_type()),
                        "bytes" => assert_eq!(made.data_type(), &of_bytes),
                        _ => assert_eq!(string_type(made.data_type()), &text, "{field:?}"),
                    }
                }
            }
        }
    }
}

#[test]
fn what_is_asked_for_is_given_if_it_is_another_layout() {
    let table = table();
    let bytes = written(&table, true);
    let metadata = common::footer(&bytes).unwrap();
    let batch = batch(&bytes, &metadata).unwrap();
    let mut to_arrow = ToArrow::of_file(&metadata, None, ArrowOptions::default()).unwrap();
    let own = Arc::clone(to_arrow.schema());
    let item = |data_type: DataType| Arc::new(Field::new("item", data_type, true));
    let asked = [
        ("text", DataType::Utf8View, true),
        ("large", DataType::Dictionary(Box::new(DataType::Int16), Box::new(DataType::Utf8)), true),
        ("view", DataType::LargeUtf8, true),
        // Not text.
        ("bytes", DataType::Utf8, false),
        ("kind", DataType::Utf8, true),
        ("list", DataType::LargeList(item(DataType::Utf8View)), true),
        // Of another length.
        ("fixed", DataType::FixedSizeList(item(DataType::Utf8), 4), false),
        // With another number of fields.
        ("place", DataType::Struct(vec![item(DataType::LargeUtf8)].into()), false),
    ];
    let fields = |other: usize| {
        let name = |at: usize, name: &str| if at == other { "other".to_owned() } else { name.to_owned() };
        let fields = asked.iter().enumerate();
        fields
            .map(|(at, (of, data_type, _))| Field::new(name(at, of), data_type.clone(), true))
            .collect::<Vec<_>>()
    };
    // Nothing is changed by what cannot be.
    for wrong in [fields(3), fields(usize::MAX)[1..].to_vec(), Vec::new()] {
        let error = to_arrow.request(&Schema::new(wrong)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert_eq!(*to_arrow.schema(), own);
    }
    to_arrow.request(&Schema::new(fields(usize::MAX))).unwrap();
    assert_eq!(to_arrow.schema().metadata(), own.metadata());
    let made = to_arrow.record_batch(&batch).unwrap();
    assert_eq!(made.schema(), *to_arrow.schema());
    for (at, (name, data_type, is_given)) in asked.iter().enumerate() {
        let given = made.column(at).data_type();
        let wanted = if *is_given { data_type } else { own.field(at).data_type() };
        assert!(given.equals_datatype(wanted), "{name}: {given}, not {wanted}");
        if *name == "large" {
            continue;
        }
        assert_eq!(values(made.column(at)), values(table.column(at)), "{name}");
    }
    // Its own types again.
    to_arrow.request(&own).unwrap();
    assert_eq!(*to_arrow.schema(), own);
    assert_eq!(to_arrow.record_batch(&batch).unwrap().schema(), own);
}

#[test]
fn text_as_bytes_is_the_same_text() {
    let table = table();
    for dictionary in [false, true] {
        let bytes = written(&table, dictionary);
        let metadata = common::footer(&bytes).unwrap();
        let batch = batch(&bytes, &metadata).unwrap();
        for to_arrow in [
            ToArrow::new(&metadata.schema, None).unwrap(),
            ToArrow::of_file(&metadata, None, ArrowOptions::default()).unwrap(),
        ] {
            let schema = Arc::clone(to_arrow.schema());
            let mut to_arrow = to_arrow.with_text_as_bytes();
            assert_eq!(*to_arrow.schema(), schema);
            let made = to_arrow.record_batch(&batch).unwrap();
            for (at, field) in schema.fields().iter().enumerate() {
                let column = made.column(at);
                assert_eq!(values(column), values(table.column(at)), "{field:?}");
                // A view is laid out in the same way; all else is what the schema says.
                let (said, is) = (string_type(field.data_type()), string_type(column.data_type()));
                let wanted = if *said == DataType::Utf8View { &DataType::BinaryView } else { said };
                assert_eq!(is, wanted, "{field:?}");
            }
        }
    }
}
