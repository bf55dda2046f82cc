//! `ARROW:schema`: the writers' types are restored as their own readers restore them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date64Type, Int8Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use marquetry_arrow::{ArrowOptions, ToArrow, stored_schema};
use marquetry_base::{Bytes, ErrorKind, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::{ByteSources, drive, memory::Memory};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{self, FILE};

/// Reads a file of one row group as one record batch, its own Arrow schema applied.
fn read(bytes: &Bytes, metadata: &Arc<FileMetaData>, keep_dictionaries: bool) -> Result<RecordBatch> {
    let sources = ByteSources::new().with(FILE, Memory::new("file", bytes.clone()));
    let options = ReadOptions { keep_dictionaries, ..ReadOptions::default() };
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options)?;
    let mut to_arrow = ToArrow::of_file(metadata, None, ArrowOptions::default())?;
    let batch = drive(&mut reader, &sources)?.expect("a batch");
    let made = to_arrow.record_batch(&batch)?;
    assert!(keep_dictionaries || made.schema() == *to_arrow.schema());
    Ok(made)
}

/// Files that `stored.py` writes: each column's name. `None` without pyarrow.
fn written_by_pyarrow(folder: &Path) -> Option<Vec<PathBuf>> {
    let python = marquetry_testing::python()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored.py");
    let status = Command::new(python).arg(script).arg(folder).status().expect("Python runs");
    assert!(status.success(), "{status}");
    let files = std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|it| it == "parquet")).collect();
    files.sort();
    Some(files)
}

#[test]
fn what_pyarrow_had_comes_back_as_to_pyarrow() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(files) = written_by_pyarrow(folder.path()) else { return };
    let mut wrong = Vec::new();
    for path in &files {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let bytes = Bytes::from(std::fs::read(path).unwrap());
        let metadata = common::footer(&bytes).unwrap();
        let ours = read(&bytes, &metadata, false).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let stream = File::open(path.with_extension("arrow")).unwrap();
        let theirs = arrow_ipc::reader::StreamReader::try_new(stream, None).unwrap().next().unwrap().unwrap();
        match name.as_str() {
            // pyarrow keeps days; parquet-rs restores the type, and so do we.
            "date64" => {
                assert_eq!(theirs.column(0).data_type(), &DataType::Date32);
                let dates = ours.column(0).as_primitive::<Date64Type>();
                assert_eq!((dates.value(0), dates.is_null(1)), (86_400_000, true));
            }
            // pyarrow loses the size of the offsets.
            "dictionary_large" => {
                let wanted = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::LargeUtf8));
                assert_eq!(ours.column(0).data_type(), &wanted);
                let keys = ours.column(0).as_dictionary::<Int8Type>();
                assert_eq!(keys.keys().iter().collect::<Vec<_>>(), [Some(0), Some(1), None, Some(1)]);
                assert_eq!(keys.values().as_string::<i64>().iter().flatten().collect::<Vec<_>>(), ["x", "y"]);
            }
            // pyarrow names a map's entries after the map, and leaves a tensor's element unnamed.
            "map" | "tensor" => {
                let (ours, theirs) = (ours.column(0), theirs.column(0));
                assert!(ours.data_type().equals_datatype(theirs.data_type()), "{name}");
                let values = |array: &dyn Array| match array.data_type() {
                    DataType::Map(..) => format!("{:?}", array.as_map().entries().columns()),
                    _ => format!("{:?}", array.as_fixed_size_list().values()),
                };
                assert_eq!((ours.nulls(), values(ours)), (theirs.nulls(), values(theirs)), "{name}");
            }
            _ if ours.schema() != theirs.schema() => {
                wrong.push(format!("{name}: {:?}\nwhere pyarrow has {:?}", ours.schema(), theirs.schema()));
            }
            _ if ours.columns() != theirs.columns() => {
                wrong.push(format!("{name}: {ours:?}\nis to pyarrow {theirs:?}"))
            }
            _ => {}
        }
        // Kept dictionaries hold the same values.
        let kept = read(&bytes, &metadata, true).unwrap_or_else(|error| panic!("{name}, kept: {error:?}"));
        for (kept, plain) in kept.columns().iter().zip(ours.columns()) {
            let of = |array: &dyn Array| (array.len(), array.logical_null_count());
            assert_eq!(of(kept), of(plain), "{name}");
        }
    }
    println!("{} columns", files.len());
    assert!(files.len() > 30);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_parquet_rs_had_comes_back() {
    use arrow_array::*;
    use arrow_schema::{Field, Schema};
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(TimestampSecondArray::from(vec![Some(1), None]).with_timezone("Asia/Tokyo")),
        Arc::new(TimestampSecondArray::from(vec![Some(1), None])),
        Arc::new(Time32SecondArray::from(vec![Some(1), None])),
        Arc::new(Date64Array::from(vec![Some(86_400_000), None])),
        Arc::new(DurationNanosecondArray::from(vec![Some(5), None])),
        Arc::new(LargeStringArray::from(vec![Some("a"), None])),
        Arc::new(StringArray::from(vec![Some("a"), None])),
        Arc::new(LargeBinaryArray::from(vec![Some(&b"a"[..]), None])),
        Arc::new(DictionaryArray::<Int8Type>::from_iter([Some("a"), None])),
        Arc::new(Decimal256Array::from(vec![Some(5.into()), None]).with_precision_and_scale(9, 2).unwrap()),
        Arc::new(UInt8Array::from(vec![Some(5), None])),
    ];
    let fields: Vec<Field> = arrays
        .iter()
        .enumerate()
        .map(|(at, array)| {
            Field::new(format!("c{at}"), array.data_type().clone(), true)
                .with_metadata([("key".to_owned(), at.to_string())])
        })
        .collect();
    let metadata = [("mine".to_owned(), "yes".to_owned())];
    let schema = Arc::new(Schema::new(fields).with_metadata(metadata));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, Arc::clone(&schema), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let bytes = Bytes::from(bytes);
    let footer = common::footer(&bytes).unwrap();
    assert_eq!(stored_schema(&footer).unwrap().as_ref().map(|it| it.fields()), Some(schema.fields()));
    let ours = read(&bytes, &footer, false).unwrap();
    assert_eq!(ours.columns(), batch.columns());
    assert_eq!(ours.schema().fields(), schema.fields());
    assert_eq!(ours.schema().metadata(), schema.metadata());
    let theirs =
        ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap().build().unwrap().next().unwrap().unwrap();
    assert_eq!(ours.columns(), theirs.columns());
    // Without the stored schema, the type follows only from the file.
    let plain = ToArrow::new(&footer.schema, None).unwrap();
    assert_eq!(plain.schema().field(0).data_type(), &DataType::Int64);
    assert_eq!(plain.schema().field(5).data_type(), &DataType::Utf8View);
}

/// A small file by parquet-rs with a stored schema, and the message of that schema.
fn small_file() -> (Bytes, FileMetaData, Vec<u8>) {
    use arrow_array::*;
    let list: ArrayRef = Arc::new(LargeListArray::from_iter_primitive::<types::Int32Type, _, _>([
        Some(vec![Some(1), None]),
        None,
    ]));
    let text: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::from_iter([Some("a"), None]));
    let time: ArrayRef =
        Arc::new(TimestampMicrosecondArray::from(vec![Some(1), None]).with_timezone("Asia/Tokyo"));
    let batch = RecordBatch::try_from_iter([("list", list), ("text", text), ("time", time)]).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let bytes = Bytes::from(bytes);
    let metadata = common::footer(&bytes).unwrap().as_ref().clone();
    let message = STANDARD.decode(metadata.key_values[0].value.as_ref().unwrap()).unwrap();
    (bytes, metadata, message)
}

#[test]
fn a_broken_stored_schema_does_not_keep_a_file_from_being_read() {
    let (bytes, mut metadata, message) = small_file();
    let plain = ToArrow::new(&metadata.schema, None).unwrap();
    for (value, part) in [
        (b"\xff no base 64".to_vec(), "ARROW:schema: "),
        (b"".to_vec(), "ARROW:schema: "),
        (STANDARD.encode(&message[..message.len() / 2]).into_bytes(), "ARROW:schema: "),
    ] {
        metadata.key_values[0].value = Some(value.into());
        let error = stored_schema(&metadata).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().starts_with(part), "{error}");
        let to_arrow = ToArrow::of_file(&metadata, None, ArrowOptions::default()).unwrap();
        assert_eq!(to_arrow.stored_schema_error(), Some(&error));
        assert_eq!(to_arrow.schema().fields(), plain.schema().fields());
        assert_eq!(read(&bytes, &Arc::new(metadata.clone()), false).unwrap().num_rows(), 2);
    }
    metadata.key_values = Vec::new().into();
    assert_eq!(stored_schema(&metadata).unwrap(), None);
    assert_eq!(
        ToArrow::of_file(&metadata, None, ArrowOptions::default()).unwrap().stored_schema_error(),
        None
    );
}

#[test]
fn every_change_of_a_byte_of_a_stored_schema() {
    let (bytes, mut metadata, message) = small_file();
    let (mut applied, mut left, mut refused) = (0, 0, 0);
    for at in 0..message.len() {
        for change in [1, 2, 3, 5, 8, 0x10, 0x7f, 0x80, 0xff] {
            let mut message = message.clone();
            message[at] ^= change;
            metadata.key_values[0].value = Some(STANDARD.encode(&message).into());
            let metadata = Arc::new(metadata.clone());
            match ToArrow::of_file(&metadata, None, ArrowOptions::default()).unwrap().stored_schema_error() {
                Some(_) => left += 1,
                None => applied += 1,
            }
            match read(&bytes, &metadata, at % 2 == 0) {
                Ok(batch) => assert_eq!(batch.num_rows(), 2),
                // For example, a list whose length differs from the type's.
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Conversion, "{error:?}");
                    refused += 1;
                }
            }
        }
    }
    println!("{applied} applied, {left} left, {refused} refused");
    assert!(applied > 100 && left > 100);
}
