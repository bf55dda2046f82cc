//! Files by other writers become the same record batches as in parquet-rs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, IntervalDayTimeType, IntervalMonthDayNanoType};
use arrow_array::{
    Array, ArrayRef, Int32Array, ListArray, MapArray, RecordBatch, StringArray, StringViewArray, StructArray,
};
use arrow_schema::{DataType, Field, Fields, IntervalUnit};
use marquetry_arrow::{ArrowOptions, ToArrow};
use marquetry_base::{Bytes, ErrorKind, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::{ByteSources, drive, memory::Memory};
use marquetry_parquet::batch::{Batch, Layout};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::schema::TimeUnit;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};

use crate::common::{self, FILE};

/// Folders of the corpus.
const FOLDERS: &[&str] =
    &["parquet-testing/data", "parquet-testing/data/geospatial", "parquet-testing/shredded_variant", "real"];

/// Files that cannot become record batches here, and the kind of the error.
const NOT_OURS: &[(&str, ErrorKind)] = &[
    // README of parquet-testing: the CRC is wrong.
    ("datapage_v1-corrupt-checksum.parquet", ErrorKind::Corrupt),
    ("rle-dict-uncompressed-corrupt-checksum.parquet", ErrorKind::Corrupt),
    // Years beyond the range of nanoseconds: parquet-rs wraps around. Compared in microseconds below.
    ("int96_from_spark.parquet", ErrorKind::Conversion),
    // Two keys of 1 GiB each, beyond the default limits.
    ("large_string_map.brotli.parquet", ErrorKind::LimitExceeded),
];

/// Files that parquet-rs does not read correctly, and what results.
const NOT_THEIRS: &[(&str, &str)] = &[
    ("dict-page-offset-zero.parquet", "Expected list element type of I64 but got I16"),
    ("nation.dict-malformed.parquet", "Invalid page header"),
    // The footer says that the file has no rows, and parquet-rs believes it. Its row group has six; pyarrow reads them too.
    ("repeated_no_annotation.parquet", "6 rows, not 0"),
];

#[test]
fn the_corpus_reads_equal_to_parquet_rs() {
    let (mut equal, mut wrong) = (0, Vec::new());
    for path in FOLDERS.iter().flat_map(|folder| corpus(folder)) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match check(&path, &name) {
            Ok(true) => equal += 1,
            Ok(false) => {}
            Err(error) => wrong.push(format!("{name}: {error}")),
        }
    }
    println!("{equal} files are equal to parquet-rs");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_comparison_sees_differences() {
    let numbers = |numbers: Vec<Option<i32>>| Arc::new(Int32Array::from(numbers)) as ArrayRef;
    let list = |lists: [Vec<Option<i32>>; 2]| {
        Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists.map(Some))) as ArrayRef
    };
    let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
    let view = |text: &str| Arc::new(StringViewArray::from(vec![text])) as ArrayRef;
    let pair = |array: ArrayRef| {
        let field = Arc::new(Field::new("f", array.data_type().clone(), true));
        Arc::new(StructArray::from(vec![(field, array)])) as ArrayRef
    };
    assert!(same(&numbers(vec![Some(1), None]), &numbers(vec![Some(1), None])).is_ok());
    assert!(same(&numbers(vec![Some(1), None]), &numbers(vec![Some(1), Some(0)])).is_err());
    assert!(same(&numbers(vec![Some(1)]), &numbers(vec![Some(2)])).is_err());
    assert!(same(&numbers(vec![Some(1)]), &numbers(vec![Some(1), Some(1)])).is_err());
    assert!(same(&view("a"), &text("a")).is_ok());
    assert!(same(&view("a"), &text("b")).is_err());
    assert!(same(&pair(view("a")), &pair(text("b"))).is_err());
    let (one, other) = (vec![Some(1)], vec![Some(1), Some(2)]);
    assert!(same(&list([one.clone(), other.clone()]), &list([one.clone(), other.clone()])).is_ok());
    assert!(same(&list([one.clone(), other.clone()]), &list([other, one])).is_err());
}

#[test]
fn timestamps_beyond_nanoseconds() {
    let is_it = |path: &PathBuf| path.ends_with("int96_from_spark.parquet");
    let Some(path) = corpus(FOLDERS[0]).into_iter().find(is_it) else { return };
    let file = Bytes::from(std::fs::read(path).unwrap());
    let metadata = common::footer(&file).unwrap();
    let options = ArrowOptions { int96_unit: TimeUnit::Micros, ..ArrowOptions::default() };
    let mut to_arrow = ToArrow::with_options(&metadata.schema, None, options).unwrap();
    let theirs = theirs(&file, ArrowReaderOptions::new().with_schema(Arc::clone(to_arrow.schema()))).unwrap();
    let ours = batches(&file, &metadata, ReadOptions::default()).unwrap();
    assert_eq!(ours.len(), 1);
    assert_eq!(to_arrow.record_batch(&ours[0]).unwrap(), theirs);
    assert_eq!(theirs.num_rows(), 6);
}

/// Compares a file; false if either implementation is expected to fail.
fn check(path: &Path, name: &str) -> Result<bool, String> {
    let file = Bytes::from(std::fs::read(path).map_err(|error| error.to_string())?);
    let expected = NOT_OURS.iter().find(|(file, _)| *file == name).map(|(_, kind)| *kind);
    let ours = match (read(&file, ReadOptions::default()), expected) {
        (Err(error), Some(kind)) if error.kind() == kind => return Ok(false),
        (ours, None) => ours.map_err(|error| format!("ours: {error:?}"))?,
        (Ok(_), Some(_)) => return Err("it can be read after all".to_owned()),
        (Err(error), Some(_)) => return Err(format!("ours: {error:?}")),
    };
    // However it was read, it becomes the same.
    let dense = ReadOptions { layout: Layout::Dense, ..ReadOptions::default() };
    if read(&file, dense).map_err(|error| format!("dense: {error:?}"))? != ours {
        return Err("read as dense values, it becomes something else".to_owned());
    }
    let kept = ReadOptions { keep_dictionaries: true, ..ReadOptions::default() };
    let kept = read(&file, kept).map_err(|error| format!("with dictionaries: {error:?}"))?;
    // Batches may end elsewhere: ours end where a writer abandoned its dictionary.
    for column in 0..ours.first().map_or(0, |(_, batch)| batch.num_columns()) {
        let of = |batches: &[(usize, RecordBatch)]| {
            let arrays: Vec<ArrayRef> =
                batches.iter().map(|(_, batch)| plain(batch.column(column))).collect();
            let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
            arrow_select::concat::concat(&arrays).unwrap()
        };
        same(&of(&kept), &of(&ours)).map_err(|error| format!("with dictionaries: {error}"))?;
    }

    let expected = NOT_THEIRS.iter().find(|(file, _)| *file == name).map(|(_, why)| why);
    match (compare(&file, &ours), expected) {
        (Err(error), Some(why)) if error.contains(why) => Ok(false),
        (Ok(()), Some(_)) => Err("parquet-rs reads it after all".to_owned()),
        (compared, _) => compared.map(|()| true),
    }
}

/// Compares record batches with those of parquet-rs.
fn compare(file: &Bytes, ours: &[(usize, RecordBatch)]) -> Result<(), String> {
    // An Arrow schema stored by the writer is not applied here either.
    let theirs = theirs(file, ArrowReaderOptions::new().with_skip_arrow_metadata(true))
        .map_err(|error| format!("parquet-rs: {error}"))?;
    let rows: usize = ours.iter().map(|(_, batch)| batch.num_rows()).sum();
    if rows != theirs.num_rows() {
        return Err(format!("{rows} rows, not {}", theirs.num_rows()));
    }
    for (first_row, batch) in ours {
        let theirs = theirs.slice(*first_row, batch.num_rows());
        if batch.num_columns() != theirs.num_columns() {
            return Err(format!("{} columns, not {}", batch.num_columns(), theirs.num_columns()));
        }
        for (number, field) in batch.schema().fields().iter().enumerate() {
            same_field(field, theirs.schema().field(number))?;
            same(batch.column(number), theirs.column(number))
                .map_err(|error| format!("{} from row {first_row}: {error}", field.name()))?;
        }
    }
    Ok(())
}

/// Record batches, and their first rows.
fn read(file: &Bytes, options: ReadOptions) -> Result<Vec<(usize, RecordBatch)>> {
    let metadata = common::footer(file)?;
    let mut to_arrow = ToArrow::new(&metadata.schema, None)?;
    batches(file, &metadata, options)?
        .iter()
        .map(|batch| Ok((usize::try_from(batch.first_row).unwrap(), to_arrow.record_batch(batch)?)))
        .collect()
}

/// All batches of a file in memory.
fn batches(file: &Bytes, metadata: &Arc<FileMetaData>, options: ReadOptions) -> Result<Vec<Batch>> {
    let sources = ByteSources::new().with(FILE, Memory::new("file", file.clone()));
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options)?;
    let mut batches = Vec::new();
    while let Some(batch) = drive(&mut reader, &sources)? {
        batches.push(batch);
    }
    Ok(batches)
}

/// The files in a folder of the corpus; none, and the skip is recorded, if the folder is missing.
fn corpus(folder: &str) -> Vec<PathBuf> {
    let Some(folder) = marquetry_testing::corpus_file(folder) else { return Vec::new() };
    let entries = std::fs::read_dir(&folder).unwrap();
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect();
    files.sort();
    files
}

/// All rows, as parquet-rs reads them.
fn theirs(file: &Bytes, options: ArrowReaderOptions) -> Result<RecordBatch, String> {
    let read = || -> parquet::errors::Result<RecordBatch> {
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options)?;
        let schema = Arc::clone(builder.schema());
        let batches = builder.with_batch_size(1 << 16).build()?.collect::<Result<Vec<_>, _>>()?;
        Ok(arrow_select::concat::concat_batches(&schema, &batches)?)
    };
    let read = std::panic::AssertUnwindSafe(read);
    std::panic::catch_unwind(read).map_err(|_| "it panics".to_owned())?.map_err(|error| error.to_string())
}

fn same_field(ours: &Field, theirs: &Field) -> Result<(), String> {
    let id = |field: &Field| field.metadata().get("PARQUET:field_id").cloned();
    let is_nullable = theirs.is_nullable() || *theirs.data_type() == DataType::Null;
    if (ours.name(), ours.is_nullable(), id(ours)) != (theirs.name(), is_nullable, id(theirs)) {
        return Err(format!("{ours:?}, not {theirs:?}"));
    }
    match (ours.data_type(), theirs.data_type()) {
        (DataType::List(ours), DataType::List(theirs))
        | (DataType::Map(ours, _), DataType::Map(theirs, _)) => same_field(ours, theirs),
        (DataType::Struct(ours), DataType::Struct(theirs)) => {
            ours.iter().zip(theirs).try_for_each(|(ours, theirs)| same_field(ours, theirs))
        }
        _ => Ok(()),
    }
}

/// Compares values; types may differ where this crate differs on purpose.
fn same(ours: &ArrayRef, theirs: &ArrayRef) -> Result<(), String> {
    use DataType::{BinaryView, Interval, List, Map, Struct, Utf8View};
    let (our_type, their_type) = (ours.data_type(), theirs.data_type());
    if ours.len() != theirs.len() {
        return Err(format!("{} slots of {our_type}, not {}", ours.len(), theirs.len()));
    }
    if let Some(slot) = (0..ours.len()).find(|&slot| ours.is_null(slot) != theirs.is_null(slot)) {
        return Err(format!("slot {slot} of {our_type}: null is {}", ours.is_null(slot)));
    }
    let there = || (0..ours.len()).filter(|&slot| !ours.is_null(slot));
    let unequal = |slot: Option<usize>| match slot {
        Some(slot) => Err(format!("slot {slot} of {our_type}, {their_type}: other values")),
        None => Ok(()),
    };
    match (our_type, their_type) {
        (Utf8View, DataType::Utf8) => {
            let (ours, theirs) = (ours.as_string_view(), theirs.as_string::<i32>());
            unequal(there().find(|&slot| ours.value(slot) != theirs.value(slot)))
        }
        // We treat ENUM as text.
        (Utf8View, DataType::Binary) => {
            let (ours, theirs) = (ours.as_string_view(), theirs.as_binary::<i32>());
            unequal(there().find(|&slot| ours.value(slot).as_bytes() != theirs.value(slot)))
        }
        (BinaryView, DataType::Binary) => {
            let (ours, theirs) = (ours.as_binary_view(), theirs.as_binary::<i32>());
            unequal(there().find(|&slot| ours.value(slot) != theirs.value(slot)))
        }
        // They leave out the months.
        (Interval(IntervalUnit::MonthDayNano), Interval(IntervalUnit::DayTime)) => {
            let ours = ours.as_primitive::<IntervalMonthDayNanoType>();
            let theirs = theirs.as_primitive::<IntervalDayTimeType>();
            unequal(there().find(|&slot| {
                let (ours, theirs) = (ours.value(slot), theirs.value(slot));
                (ours.days, ours.nanoseconds) != (theirs.days, i64::from(theirs.milliseconds) * 1_000_000)
            }))
        }
        (List(_), List(_)) => {
            let (ours, theirs) = (ours.as_list::<i32>(), theirs.as_list::<i32>());
            unequal(there().find(|&slot| ours.value_length(slot) != theirs.value_length(slot)))?;
            same(&elements(ours.offsets(), ours.values()), &elements(theirs.offsets(), theirs.values()))
        }
        (Map(..), Map(..)) => {
            let (ours, theirs) = (ours.as_map(), theirs.as_map());
            unequal(there().find(|&slot| ours.value_length(slot) != theirs.value_length(slot)))?;
            let (our_pairs, their_pairs): (ArrayRef, ArrayRef) =
                (Arc::new(ours.entries().clone()), Arc::new(theirs.entries().clone()));
            same(&elements(ours.offsets(), &our_pairs), &elements(theirs.offsets(), &their_pairs))
        }
        (Struct(_), Struct(_)) => {
            let (our_fields, their_fields) = (ours.as_struct().columns(), theirs.as_struct().columns());
            if our_fields.len() != their_fields.len() {
                return Err(format!("{our_type}, not {their_type}"));
            }
            // Below a null, values are arbitrary.
            our_fields.iter().zip(their_fields).try_for_each(|(our_field, their_field)| {
                there().try_for_each(|slot| same(&our_field.slice(slot, 1), &their_field.slice(slot, 1)))
            })
        }
        _ if our_type == their_type && ours.to_data() == theirs.to_data() => Ok(()),
        _ => Err(format!("{our_type} {ours:?}, not {their_type} {theirs:?}")),
    }
}

/// The elements of a list's or map's slots.
fn elements(offsets: &[i32], elements: &ArrayRef) -> ArrayRef {
    let place = |at: i32| usize::try_from(at).unwrap();
    let (first, last) = (place(offsets[0]), place(offsets[offsets.len() - 1]));
    elements.slice(first, last - first)
}

/// The array with all dictionaries looked up.
fn plain(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            arrow_select::take::take(dictionary.values(), dictionary.keys(), None).unwrap()
        }
        DataType::Struct(fields) => {
            let found = array.as_struct();
            let columns: Vec<ArrayRef> = found.columns().iter().map(plain).collect();
            let fields: Fields =
                fields.iter().zip(&columns).map(|(field, column)| retyped(field, column)).collect();
            Arc::new(
                StructArray::try_new_with_length(fields, columns, found.nulls().cloned(), found.len())
                    .unwrap(),
            )
        }
        DataType::List(field) => {
            let found = array.as_list::<i32>();
            let values = plain(found.values());
            let field = retyped(field, &values);
            Arc::new(ListArray::new(field, found.offsets().clone(), values, found.nulls().cloned()))
        }
        DataType::Map(field, is_sorted) => {
            let found = array.as_map();
            let entries: ArrayRef = Arc::new(found.entries().clone());
            let entries = plain(&entries);
            let field = retyped(field, &entries);
            let entries = entries.as_struct().clone();
            let (offsets, nulls) = (found.offsets().clone(), found.nulls().cloned());
            Arc::new(MapArray::new(field, offsets, entries, nulls, *is_sorted))
        }
        _ => Arc::clone(array),
    }
}

/// The field of an array that is looked up. It has no metadata, because a dictionary's lacks the extension type.
fn retyped(field: &Field, array: &ArrayRef) -> Arc<Field> {
    Arc::new(Field::new(field.name(), array.data_type().clone(), field.is_nullable()))
}
