//! What goes in comes out, through the functions of the C interface.

use core::ffi::c_void;
use core::ptr::{null, null_mut};
use std::ffi::CString;
use std::sync::Arc;

use arrow_array::builder::FixedSizeBinaryBuilder;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::types::Int32Type;
use arrow_array::{Array as _, ArrayRef, Int64Array, ListArray, RecordBatch, StringViewArray, StructArray};
use arrow_schema::{DataType, Field};
use marquetry_c::abi::*;
use marquetry_c::{bytes, cql, machine, metadata, reader, records, stream, writer};

use crate::common;
use crate::common::host::{LENT, borrowed, call, defaults, footer, give_back, next, read, write};

fn table(rows: i64) -> RecordBatch {
    let lists =
        (0..rows).map(|row| (row % 5 != 0).then(|| (0..row % 3).map(|it| Some(i32::try_from(it).unwrap()))));
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef, false),
        (
            "name",
            Arc::new(StringViewArray::from_iter(
                (0..rows).map(|it| (it % 7 != 0).then(|| format!("the name of row {it}"))),
            )) as ArrayRef,
            true,
        ),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists)) as ArrayRef, true),
    ])
    .unwrap()
}

fn rows(batches: &[RecordBatch]) -> usize {
    batches.iter().map(RecordBatch::num_rows).sum()
}

fn ids(batches: &[RecordBatch]) -> Vec<i64> {
    let ids = batches.iter().flat_map(|batch| {
        batch.column_by_name("id").unwrap().as_any().downcast_ref::<Int64Array>().unwrap().values().to_vec()
    });
    ids.collect()
}

#[test]
fn a_file_is_written_and_read() {
    let table = table(20_000);
    let (zstd, path) = (CString::new("ZSTD").unwrap(), CString::new("id").unwrap());
    let column = marquetry_column_options {
        struct_size: size_of::<marquetry_column_options>(),
        path: path.as_ptr(),
        has_level: 0,
        bloom_filter: 1,
        ..defaults()
    };
    let columns = [&raw const column];
    let options = marquetry_writer_options {
        struct_size: size_of::<marquetry_writer_options>(),
        compression: zstd.as_ptr(),
        has_level: 1,
        level: 3,
        row_group_rows: 7000,
        page_rows: 500,
        columns: columns.as_ptr(),
        columns_count: 1,
        ..defaults()
    };
    let file = write(&[table.slice(0, 12_345), table.slice(12_345, 7_655)], &options).unwrap();
    let batches = read(&file, null()).unwrap();
    let all = batches.iter().map(|it| it.columns().to_vec());
    assert_eq!(rows(&batches), 20_000);
    let mut row = 0;
    for batch in all {
        let length = batch[0].len();
        let wanted = table.slice(row, length);
        assert_eq!(batch[0].to_data(), wanted.column(0).to_data());
        assert_eq!(batch[1].to_data(), wanted.column(1).to_data());
        // The field of the elements has another name in the file.
        let [ours, theirs] =
            [&batch[2], wanted.column(2)].map(|it| it.as_any().downcast_ref::<ListArray>().unwrap());
        assert!(ours.iter().eq(theirs.iter()));
        row += length;
    }

    let metadata = footer(&file).unwrap();
    let mut info = marquetry_file_info {
        struct_size: size_of::<marquetry_file_info>(),
        rows: 0,
        row_groups: 0,
        columns: 0,
        key_values: 0,
        file_bytes: 0,
        created_by: marquetry_text { data: null(), length: 0 },
    };
    call(|error| metadata::marquetry_metadata_file(metadata, &mut info, error)).unwrap();
    assert_eq!((info.rows, info.row_groups, info.columns), (20_000, 3, 3));
    assert_eq!(info.file_bytes, file.len() as u64);
    let mut chunk = marquetry_chunk_info {
        struct_size: size_of::<marquetry_chunk_info>(),
        min: null(),
        max: null(),
        ..defaults()
    };
    call(|error| metadata::marquetry_metadata_chunk(metadata, 1, 0, &mut chunk, error)).unwrap();
    let min = borrowed(chunk.min, chunk.min_length);
    assert_eq!((min, chunk.nulls, chunk.codec), (&7000_i64.to_le_bytes()[..], 0, 6));
    let wrong =
        call(|error| metadata::marquetry_metadata_chunk(metadata, 3, 0, &mut chunk, error)).unwrap_err();
    assert_eq!(wrong, (marquetry_error_kind::Misuse, "row group 3 of 3".to_string()));
    // A host that was compiled when the struct had less.
    let mut older = marquetry_file_info { struct_size: 16, rows: 0, row_groups: 7, ..info };
    call(|error| metadata::marquetry_metadata_file(metadata, &mut older, error)).unwrap();
    assert_eq!((older.rows, older.row_groups), (20_000, 7));
    metadata::marquetry_metadata_free(metadata);
}

#[test]
fn rows_are_selected_by_number_and_by_predicate() {
    let options = marquetry_writer_options {
        struct_size: size_of::<marquetry_writer_options>(),
        row_group_rows: 3000,
        page_rows: 100,
        ..defaults()
    };
    let file = write(&[table(10_000)], &options).unwrap();
    let predicate = CString::new("id >= 2990 AND id < 3010 OR name = 'the name of row 9001'").unwrap();
    let columns = [CString::new("id").unwrap(), CString::new("list").unwrap()];
    let paths: Vec<_> = columns.iter().map(|it| it.as_ptr()).collect();
    let mut wanted = marquetry_reader_options {
        struct_size: size_of::<marquetry_reader_options>(),
        predicate: predicate.as_ptr(),
        columns: paths.as_ptr(),
        columns_count: 2,
        ..defaults()
    };
    let expected: Vec<i64> = (2990..3010).chain([9001]).collect();
    let batches = read(&file, &wanted).unwrap();
    assert_eq!((ids(&batches), batches[0].num_columns()), (expected, 2));

    let ranges = [
        marquetry_rows { start: 5, end: 8 },
        marquetry_rows { start: 2999, end: 3001 },
        marquetry_rows { start: 9_999, end: 10_000 },
    ];
    (wanted.rows, wanted.rows_count) = (ranges.as_ptr(), 3);
    assert_eq!(ids(&read(&file, &wanted).unwrap()), [2999, 3000]);
    wanted.predicate = null();
    assert_eq!(ids(&read(&file, &wanted).unwrap()), [5, 6, 7, 2999, 3000, 9_999]);
    let wrong = [marquetry_rows { start: 5, end: 10_001 }];
    (wanted.rows, wanted.rows_count) = (wrong.as_ptr(), 1);
    assert_eq!(read(&file, &wanted).unwrap_err().0, marquetry_error_kind::Misuse);
    (wanted.rows, wanted.rows_count) = (null(), 1);
    assert_eq!(read(&file, &wanted).unwrap_err().1, "1 rows at NULL");
}

#[test]
fn records_are_events() {
    let file = write(&[table(1000)], null()).unwrap();
    let metadata = footer(&file).unwrap();
    let mut reader = null_mut();
    call(|error| records::marquetry_records_new(metadata, null(), &mut reader, error)).unwrap();
    metadata::marquetry_metadata_free(metadata);
    let mut text = String::new();
    while next(reader, &file).unwrap() == marquetry_status::Ready {
        let (mut events, mut count) = (null(), 0);
        call(|error| records::marquetry_events(reader, &mut events, &mut count, error)).unwrap();
        for event in borrowed(events, count) {
            match event.kind {
                marquetry_event_kind::StartRecord => text.push('{'),
                marquetry_event_kind::EndRecord => text.push_str("}\n"),
                marquetry_event_kind::StartList => text.push('['),
                marquetry_event_kind::EndList => text.push(']'),
                marquetry_event_kind::Null => text.push_str(" null"),
                marquetry_event_kind::Int64 | marquetry_event_kind::Int32 => {
                    text.push_str(&format!(" {}", event.integer))
                }
                marquetry_event_kind::Bytes => {
                    let bytes = borrowed(event.data, event.length);
                    text.push_str(&format!(" {:?}", core::str::from_utf8(bytes).unwrap()));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    machine::marquetry_machine_free(reader);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1000);
    assert_eq!(lines[0], "{ 0 null null}");
    assert_eq!(lines[8], "{ 8 \"the name of row 8\"[ 0 1]}");
    assert_eq!(lines[999], "{ 999 \"the name of row 999\"[]}");
}

#[test]
fn cql_is_text() {
    let file = write(&[table(3000)], null()).unwrap();
    let metadata = footer(&file).unwrap();
    let (name, key) = (CString::new("ks.names").unwrap(), CString::new("id").unwrap());
    let options = marquetry_cql_options {
        struct_size: size_of::<marquetry_cql_options>(),
        table: name.as_ptr(),
        key: key.as_ptr(),
        ..defaults()
    };
    let mut machine = null_mut();
    call(|error| cql::marquetry_cql_new(metadata, null(), &options, &mut machine, error)).unwrap();
    let mut text = Vec::new();
    while next(machine, &file).unwrap() == marquetry_status::Ready {
        let mut some = marquetry_bytes { data: null(), length: 0, owner: null_mut() };
        call(|error| cql::marquetry_take_text(machine, &mut some, error)).unwrap();
        text.extend_from_slice(borrowed(some.data, some.length));
        bytes::marquetry_bytes_release(&mut some);
        bytes::marquetry_bytes_release(&mut some);
    }
    machine::marquetry_machine_free(machine);
    metadata::marquetry_metadata_free(metadata);
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("CREATE TABLE ks.names (\n    id bigint,\n    name text,\n    list list<int>,\n    PRIMARY KEY (id)\n);\n"), "{text:.200}");
    assert_eq!(text.matches("INSERT INTO ks.names").count(), 3000);
    assert!(text.contains("(8, 'the name of row 8', [0, 1]);\n"), "{text:.600}");
}

/// What Arrow's own code would panic about.
#[test]
fn a_schema_whose_formats_lack_children_is_a_misuse() {
    let schema = |format: &str, children: Vec<FFI_ArrowSchema>, values: Option<&str>| {
        let values = values.map(|values| FFI_ArrowSchema::try_new(values, Vec::new(), None).unwrap());
        FFI_ArrowSchema::try_new(format, children, values).unwrap().with_name("c").unwrap()
    };
    let entries = || schema("+s", vec![schema("u", Vec::new(), None)], None);
    let wrong = [
        schema("+l", Vec::new(), None),
        schema("+L", Vec::new(), None),
        schema("+vl", Vec::new(), None),
        schema("+w:3", Vec::new(), None),
        schema("+r", Vec::new(), None),
        schema("+m", Vec::new(), None),
        schema("+m", vec![entries()], None),
        schema("i", vec![entries()], None),
        schema("f", Vec::new(), Some("u")),
        schema("u", Vec::new(), Some("u")),
        schema("+l", vec![entries()], Some("u")),
    ];
    for column in wrong {
        let root = FFI_ArrowSchema::try_new("+s", vec![column], None).unwrap();
        let mut machine = null_mut();
        let (kind, said) =
            call(|error| writer::marquetry_writer_new(&root, null(), &mut machine, error)).unwrap_err();
        assert_eq!(kind, marquetry_error_kind::Misuse, "{said}");
        assert!(said.contains("not a schema: ") && said.contains("(column c"), "{said}");
        assert!(machine.is_null());
    }
}

#[test]
fn bytes_beyond_the_files_end_are_a_misuse() {
    let file = write(&[table(100)], null()).unwrap();
    let metadata = footer(&file).unwrap();
    let mut machine = null_mut();
    call(|error| reader::marquetry_reader_new(metadata, null(), &mut machine, error)).unwrap();
    let supply = |offset: u64, length: usize| {
        let (release, bytes) = (Some(give_back as extern "C" fn(_, _, _)), file.as_ptr());
        LENT.set(LENT.get() + 1);
        call(|error| machine::marquetry_supply(machine, 0, offset, bytes, length, release, null_mut(), error))
    };
    let end = file.len() as u64;
    for (offset, length) in [(end, 4), (end - 10, 20), (end + 100_000, 7), (1 << 62, 7)] {
        let (kind, said) = supply(offset, length).unwrap_err();
        assert_eq!((kind, said.contains("of a file of ")), (marquetry_error_kind::Misuse, true), "{said}");
    }
    supply(0, file.len()).unwrap();
    // That was of those calls alone.
    assert_eq!(next(machine, &file).unwrap(), marquetry_status::Ready);
    machine::marquetry_machine_free(machine);
    metadata::marquetry_metadata_free(metadata);
    assert_eq!(LENT.get(), 0);
}

/// Nulls take room in a nested value as CQL text has it, which they do not in the file.
#[test]
fn the_limit_of_memory_is_that_of_cql_text_too() {
    let mut values = FixedSizeBinaryBuilder::with_capacity(3000, 1000);
    values.append_value([7; 1000]).unwrap();
    values.append_nulls(2999);
    let field = |name: &str, data_type: &DataType| Arc::new(Field::new(name, data_type.clone(), true));
    let values = Arc::new(values.finish()) as ArrayRef;
    let structs = StructArray::from(vec![(field("value", values.data_type()), values)]);
    let of = field("element", structs.data_type());
    let offsets =
        ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![None; 3000])]).offsets().clone();
    let lists = ListArray::new(of, offsets, Arc::new(structs), None);
    let ids = Arc::new(Int64Array::from_iter_values(0..1)) as ArrayRef;
    let list = Arc::new(lists) as ArrayRef;
    let table = RecordBatch::try_from_iter_with_nullable([("id", ids, false), ("list", list, true)]).unwrap();
    let file = write(&[table], null()).unwrap();
    let text = |memory_bytes_max: u64| {
        let metadata = footer(&file).unwrap();
        let (name, key) = (c"t".as_ptr(), c"id".as_ptr());
        let struct_size = size_of::<marquetry_cql_options>();
        let text = marquetry_cql_options { struct_size, table: name, key, only_rows: 1, ..defaults() };
        let struct_size = size_of::<marquetry_reader_options>();
        let rows = marquetry_reader_options { struct_size, memory_bytes_max, ..defaults() };
        let mut machine = null_mut();
        call(|error| cql::marquetry_cql_new(metadata, &rows, &text, &mut machine, error)).unwrap();
        let done = next(machine, &file);
        machine::marquetry_machine_free(machine);
        metadata::marquetry_metadata_free(metadata);
        done
    };
    assert_eq!(text(0).unwrap(), marquetry_status::Ready);
    let (kind, said) = text(1 << 20).unwrap_err();
    assert_eq!(kind, marquetry_error_kind::LimitExceeded, "{said}");
    assert!(said.contains("limit total_bytes of 1048576 (column list"), "{said}");
}

extern "C" fn read_at(context: *mut c_void, offset: u64, data: *mut u8, length: usize) -> i32 {
    // SAFETY: the test's own vector.
    let file = unsafe { &*context.cast::<Vec<u8>>() };
    let offset = usize::try_from(offset).unwrap();
    match file.get(offset..offset + length) {
        Some(bytes) => {
            // SAFETY: so many bytes are there, as `read_at` is promised.
            unsafe { data.copy_from_nonoverlapping(bytes.as_ptr(), length) };
            0
        }
        None => 5,
    }
}

#[test]
fn a_streams_error_stays() {
    use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
    let mut file = write(&[table(20_000)], null()).unwrap();
    let open = |file: &mut Vec<u8>| {
        let mut made = FFI_ArrowArrayStream::empty();
        let (length, context) = (file.len() as u64, (&raw mut *file).cast());
        call(|error| {
            stream::marquetry_stream_new(
                Some(read_at),
                context,
                length,
                null(),
                (&raw mut made).cast(),
                error,
            )
        })
        .unwrap();
        RecordBatchStreamReader::try_new(made).unwrap()
    };
    let batches: Vec<RecordBatch> = open(&mut file).map(Result::unwrap).collect();
    assert_eq!(rows(&batches), 20_000);
    let mut opened = open(&mut file);
    // The file is shorter than it was.
    file.truncate(1000);
    let first = opened.next().unwrap().unwrap_err().to_string();
    assert!(first.contains("read_at failed with 5"), "{first}");
    assert_eq!(opened.next().unwrap().unwrap_err().to_string(), first);
}

/// `struct ArrowArrayStream`, as C has it.
#[repr(C)]
struct ArrayStream {
    get_schema: *const c_void,
    get_next: Option<extern "C" fn(*mut ArrayStream, *mut arrow_array::ffi::FFI_ArrowArray) -> i32>,
    get_last_error: Option<extern "C" fn(*mut ArrayStream) -> *const core::ffi::c_char>,
    release: Option<extern "C" fn(*mut ArrayStream)>,
    private_data: *mut c_void,
}

/// What a `read_at` that calls its own stream has.
struct Again {
    file: Vec<u8>,
    stream: *mut ArrayStream,
    /// What `get_next` and `get_last_error` answered.
    answers: Vec<(i32, String)>,
    releases: bool,
}

extern "C" fn read_at_again(context: *mut c_void, offset: u64, data: *mut u8, length: usize) -> i32 {
    // SAFETY: the test's own.
    unsafe {
        let again = &mut *context.cast::<Again>();
        if let Some(stream) = again.stream.as_mut() {
            let mut array = arrow_array::ffi::FFI_ArrowArray::empty();
            let answer = stream.get_next.unwrap()(stream, &raw mut array);
            let text = std::ffi::CStr::from_ptr(stream.get_last_error.unwrap()(stream));
            again.answers.push((answer, text.to_string_lossy().into_owned()));
            if again.releases {
                stream.release.unwrap()(stream);
                again.stream = null_mut();
            }
        }
        read_at((&raw mut again.file).cast(), offset, data, length)
    }
}

/// A call from `read_at` is an error of that call alone; a stream that is released there is freed when the call that reads is over.
#[test]
fn a_stream_is_not_called_from_its_read_at() {
    const EINVAL: i32 = 22;
    for releases in [false, true] {
        let file = write(&[table(20_000)], null()).unwrap();
        let length = file.len() as u64;
        let mut again = Again { file, stream: null_mut(), answers: Vec::new(), releases };
        let mut made = ArrayStream {
            get_schema: null(),
            get_next: None,
            get_last_error: None,
            release: None,
            private_data: null_mut(),
        };
        let context: *mut Again = &raw mut again;
        let at: *mut ArrayStream = &raw mut made;
        call(|error| {
            stream::marquetry_stream_new(
                Some(read_at_again),
                context.cast(),
                length,
                null(),
                at.cast(),
                error,
            )
        })
        .unwrap();
        // SAFETY: the test's own, as Arrow's specification has it.
        unsafe {
            (*context).stream = at;
            let mut array = arrow_array::ffi::FFI_ArrowArray::empty();
            let next = (*at).get_next.unwrap();
            assert_eq!(next(at, &raw mut array), 0);
            assert!(!array.is_released());
            let answers = &(*context).answers;
            assert!(!answers.is_empty());
            for (answer, text) in answers {
                assert_eq!(*answer, EINVAL);
                assert!(text.starts_with("a stream that is in use"), "{text}");
            }
            assert_eq!((*at).release.is_none(), releases);
            if !releases {
                // Afterwards it goes on.
                (*context).stream = null_mut();
                assert_eq!(next(at, &raw mut array), 0);
                assert!((*at).get_last_error.unwrap()(at).is_null());
                (*at).release.unwrap()(at);
            }
        }
    }
}

/// A file as the Rust reader and Arrow's hand-over have it.
fn read_in_rust(file: &[u8]) -> marquetry_base::Result<Vec<RecordBatch>> {
    use marquetry_base::{Bytes, Limits, Object};
    use marquetry_io::{ByteSources, drive, memory::Memory};
    use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
    let sources = ByteSources::new().with(Object(0), Memory::new("file", Bytes::copy_from_slice(file)));
    let metadata = drive(&mut FooterReader::new(Object(0), Limits::DEFAULT), &sources)?.unwrap();
    let codecs = Arc::new(marquetry_codecs::StandardCodecs::default());
    let mut to_arrow =
        marquetry_arrow::ToArrow::of_file(&metadata, None, marquetry_arrow::ArrowOptions::default())?;
    let mut reader = BatchReader::new(Object(0), metadata, codecs, ReadOptions::default())?;
    let mut batches = Vec::new();
    while let Some(batch) = drive(&mut reader, &sources)? {
        batches.push(to_arrow.record_batch(&batch)?);
    }
    Ok(batches)
}

#[test]
fn the_corpus_is_the_same_as_in_rust() {
    let Some(corpus) = marquetry_testing::corpus() else { return };
    let (mut same, mut errors) = (0, 0);
    for entry in std::fs::read_dir(corpus.join("parquet-testing/data")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "parquet") {
            continue;
        }
        let file = std::fs::read(&path).unwrap();
        match (read(&file, null()), read_in_rust(&file)) {
            (Ok(ours), Ok(theirs)) => {
                // Metadata of the schema has no order in C.
                assert_eq!(ours.len(), theirs.len(), "{}", path.display());
                for (ours, theirs) in ours.iter().zip(&theirs) {
                    assert!(ours.columns() == theirs.columns(), "{}", path.display());
                    assert!(ours.schema().fields() == theirs.schema().fields(), "{}", path.display());
                }
                same += 1;
            }
            (Err(ours), Err(theirs)) => {
                let theirs = theirs.to_string().replace(", file)", ")").replace(" (file)", "");
                assert_eq!(ours.1, theirs, "{}", path.display());
                errors += 1;
            }
            (ours, theirs) => panic!("{}: {:?}, {:?}", path.display(), ours.is_ok(), theirs.is_ok()),
        }
    }
    assert!(same > 40 && errors > 0, "{same} are the same, {errors} are errors");
}

#[test]
fn ranges_may_come_in_pieces_backwards_and_twice() {
    let file = write(&[table(9000)], null()).unwrap();
    let metadata = footer(&file).unwrap();
    let mut reader = null_mut();
    call(|error| marquetry_c::reader::marquetry_reader_new(metadata, null(), &mut reader, error)).unwrap();
    metadata::marquetry_metadata_free(metadata);
    let budget = marquetry_budget { struct_size: size_of::<marquetry_budget>(), units: 1, ..defaults() };
    let (mut batches, mut needs) = (Vec::new(), 0);
    loop {
        match call(|error| machine::marquetry_step(reader, &budget, error)).unwrap() {
            marquetry_status::Yield => {}
            marquetry_status::Ready => batches.push(common::host::take(reader).unwrap()),
            marquetry_status::Done => break,
            marquetry_status::Need => {
                needs += 1;
                let (mut wants, mut count) = (null(), 0);
                call(|error| machine::marquetry_wants(reader, &mut wants, &mut count, error)).unwrap();
                let wants: Vec<marquetry_want> = borrowed(wants, count).to_vec();
                for want in wants.iter().rev() {
                    let range = usize::try_from(want.start).unwrap()..usize::try_from(want.end).unwrap();
                    let pieces: Vec<usize> = range.clone().step_by(1000).collect();
                    for start in pieces.into_iter().rev().flat_map(|start| [start, start]) {
                        let piece = &file[start..range.end.min(start + 1000)];
                        let (at, data, length) = (start as u64, piece.as_ptr(), piece.len());
                        call(|error| {
                            machine::marquetry_supply(reader, 0, at, data, length, None, null_mut(), error)
                        })
                        .unwrap();
                    }
                }
            }
            other => panic!("{other:?}"),
        }
    }
    machine::marquetry_machine_free(reader);
    assert_eq!((rows(&batches), needs > 0), (9000, true));
    assert_eq!(ids(&batches), (0..9000).collect::<Vec<i64>>());
}

/// Files with bytes that are wrong: the same rows or the same error as in Rust, and never a bug.
#[test]
fn broken_files_are_the_same_as_in_rust() {
    let options = marquetry_writer_options {
        struct_size: size_of::<marquetry_writer_options>(),
        compression: c"zstd".as_ptr(),
        row_group_rows: 60,
        no_crc: 1,
        ..defaults()
    };
    let whole = write(&[table(100)], &options).unwrap();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |end: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 33).unwrap() % end
    };
    let (mut read_well, mut errors) = (0, 0);
    for _ in 0..3000 {
        let mut file = whole.clone();
        for _ in 0..1 + below(3) {
            let at = below(file.len() - 8);
            file[at] = u8::try_from(below(256)).unwrap();
        }
        match (read(&file, null()), read_in_rust(&file)) {
            (Ok(ours), Ok(theirs)) => {
                let columns = |batches: &[RecordBatch]| {
                    batches.iter().map(|it| it.columns().to_vec()).collect::<Vec<_>>()
                };
                assert!(columns(&ours) == columns(&theirs));
                read_well += 1;
            }
            (Err(ours), Err(theirs)) => {
                let theirs = theirs.to_string().replace(", file)", ")").replace(" (file)", "");
                assert!(ours.0 != marquetry_error_kind::Internal && ours.1 == theirs, "{ours:?} {theirs}");
                errors += 1;
            }
            (ours, theirs) => panic!("{:?}, {:?}", ours.map(|_| ()), theirs.map(|_| ())),
        }
    }
    assert!(read_well > 100 && errors > 100, "{read_well} were read, {errors} were not");
}
