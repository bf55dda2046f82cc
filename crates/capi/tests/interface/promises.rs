//! What the guide promises of machines: what stays until it is taken, what is released in slices, what a wrong array is answered with.

use core::ffi::c_void;
use core::ptr::{null, null_mut};
use std::ffi::CString;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, FixedSizeListArray, Int64Array, ListArray, RecordBatch,
    StringArray, StringViewArray, StructArray,
};
use marquetry_c::abi::*;
use marquetry_c::{bytes, cql, machine, marquetry_machine, metadata, reader, records, stream, writer};

use crate::common;
use crate::common::host::{borrowed, call, defaults, footer, next, supply, write};

fn strings(rows: usize) -> RecordBatch {
    let texts = (0..rows).map(|it| format!("a text that is longer than a view holds, number {it}"));
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from_iter_values(0..i64::try_from(rows).unwrap())) as ArrayRef),
        ("text", Arc::new(StringViewArray::from_iter_values(texts)) as ArrayRef),
    ])
    .unwrap()
}

fn events(machine: *mut marquetry_machine) -> Vec<(marquetry_event_kind, i64)> {
    let (mut events, mut count) = (null(), 0);
    call(|error| records::marquetry_events(machine, &mut events, &mut count, error)).unwrap();
    borrowed(events, count).iter().map(|event| (event.kind, event.integer)).collect()
}

#[test]
fn events_stay_until_they_are_fetched() {
    let file = write(&[strings(30_000)], null()).unwrap();
    let metadata = footer(&file).unwrap();
    let read = |steps_before: usize| {
        let mut made = null_mut();
        call(|error| records::marquetry_records_new(metadata, null(), &mut made, error)).unwrap();
        let mut all = Vec::new();
        while next(made, &file).unwrap() == marquetry_status::Ready {
            for _ in 0..steps_before {
                let again = call(|error| machine::marquetry_step(made, null(), error)).unwrap();
                assert_eq!(again, marquetry_status::Ready);
            }
            let found = events(made);
            assert_eq!(events(made), found, "fetched again");
            all.extend(found);
        }
        assert_eq!(machine::marquetry_machine_free(made), marquetry_status::Ok);
        all
    };
    let all = read(0);
    assert_eq!(all.iter().filter(|(kind, _)| *kind == marquetry_event_kind::EndRecord).count(), 30_000);
    assert!(read(3) == all, "other events");
    metadata::marquetry_metadata_free(metadata);
}

/// Machines of each kind, in the middle of their work.
fn machines(file: &[u8]) -> Vec<(&'static str, *mut marquetry_machine)> {
    let metadata = footer(file).unwrap();
    let mut made = Vec::new();
    let mut add = |name, work: &dyn Fn(&mut *mut marquetry_machine) -> marquetry_status| {
        let mut machine = null_mut();
        assert_eq!(work(&mut machine), marquetry_status::Ok);
        made.push((name, machine));
        machine
    };
    let footers = add("footer", &|it| marquetry_c::footer::marquetry_footer_new(null(), it, null_mut()));
    assert_eq!(next(footers, file).unwrap(), marquetry_status::Ready);
    let batches = add("batches", &|it| reader::marquetry_reader_new(metadata, null(), it, null_mut()));
    assert_eq!(next(batches, file).unwrap(), marquetry_status::Ready);
    let predicate = CString::new("text LIKE 'a text that%' AND id >= 5").unwrap();
    let options = marquetry_reader_options {
        struct_size: size_of::<marquetry_reader_options>(),
        predicate: predicate.as_ptr(),
        ..defaults()
    };
    let search = add("search", &|it| reader::marquetry_reader_new(metadata, &options, it, null_mut()));
    let budget = marquetry_budget { struct_size: size_of::<marquetry_budget>(), units: 30_000, ..defaults() };
    for _ in 0..6 {
        if call(|error| machine::marquetry_step(search, &budget, error)).unwrap() == marquetry_status::Need {
            supply(search, file).unwrap();
        }
    }
    let records = add("events", &|it| records::marquetry_records_new(metadata, null(), it, null_mut()));
    assert_eq!(next(records, file).unwrap(), marquetry_status::Ready);
    let options = marquetry_cql_options {
        struct_size: size_of::<marquetry_cql_options>(),
        table: c"t".as_ptr(),
        only_rows: 1,
        ..defaults()
    };
    let text = add("text", &|it| cql::marquetry_cql_new(metadata, null(), &options, it, null_mut()));
    assert_eq!(next(text, file).unwrap(), marquetry_status::Ready);
    let schema = FFI_ArrowSchema::try_from(strings(1).schema_ref().as_ref()).unwrap();
    let options = marquetry_writer_options {
        struct_size: size_of::<marquetry_writer_options>(),
        compression: c"none".as_ptr(),
        page_bytes: 32 << 10,
        ..defaults()
    };
    let written = add("writer", &|it| writer::marquetry_writer_new(&schema, &options, it, null_mut()));
    for _ in 0..4 {
        while next(written, &[]).unwrap() == marquetry_status::Append {
            let mut some = marquetry_bytes { data: null(), length: 0, owner: null_mut() };
            // Nothing is made for NULL, and what is to be appended stays.
            let nowhere = call(|error| machine::marquetry_take_append(written, null_mut(), error));
            assert_eq!(nowhere.unwrap_err().0, marquetry_error_kind::Misuse);
            call(|error| machine::marquetry_take_append(written, &mut some, error)).unwrap();
            bytes::marquetry_bytes_release(&mut some);
        }
        let mut array = FFI_ArrowArray::new(&StructArray::from(strings(30_000)).to_data());
        call(|error| writer::marquetry_feed(written, &mut array, error)).unwrap();
    }
    metadata::marquetry_metadata_free(metadata);
    made
}

#[test]
fn a_machine_that_is_being_released_can_only_be_released_further() {
    let file = write(&[strings(50_000)], null()).unwrap();
    for (name, machine) in machines(&file) {
        let release = |units: u64| {
            let budget = marquetry_budget { struct_size: size_of::<marquetry_budget>(), units, ..defaults() };
            call(|error| machine::marquetry_machine_release(machine, &budget, error)).unwrap()
        };
        let mut slices = 1;
        let mut status = release(1);
        // Every other call is the host's fault, whatever it would have answered before.
        let (mut array, mut schema) = (FFI_ArrowArray::empty(), FFI_ArrowSchema::empty());
        let mut some = marquetry_bytes { data: null(), length: 0, owner: null_mut() };
        let (mut wants, mut events, mut count, mut number) = (null(), null(), 0, 0);
        let mut info = marquetry_field_info {
            struct_size: size_of::<marquetry_field_info>(),
            path: marquetry_text { data: null(), length: 0 },
            column: 0,
        };
        let mut taken = null_mut();
        let calls = [
            ("step", call(|error| machine::marquetry_step(machine, null(), error))),
            ("wants", call(|error| machine::marquetry_wants(machine, &mut wants, &mut count, error))),
            (
                "supply",
                call(|error| {
                    machine::marquetry_supply(machine, 0, 0, file.as_ptr(), 9, None, null_mut(), error)
                }),
            ),
            ("length", call(|error| machine::marquetry_supply_length(machine, 0, 9, error))),
            ("fail", call(|error| machine::marquetry_fail(machine, null(), error))),
            ("error", call(|error| machine::marquetry_machine_error(machine, error))),
            ("append", call(|error| machine::marquetry_take_append(machine, &mut some, error))),
            ("text", call(|error| cql::marquetry_take_text(machine, &mut some, error))),
            (
                "metadata",
                call(|error| marquetry_c::footer::marquetry_take_metadata(machine, &mut taken, error)),
            ),
            (
                "batch",
                call(|error| {
                    reader::marquetry_take_batch(machine, &mut array, null_mut(), null_mut(), error)
                }),
            ),
            ("schema", call(|error| reader::marquetry_reader_schema(machine, &mut schema, error))),
            ("events", call(|error| records::marquetry_events(machine, &mut events, &mut count, error))),
            ("fields", call(|error| records::marquetry_records_fields(machine, &mut number, error))),
            ("field", call(|error| records::marquetry_records_field(machine, 0, &mut info, error))),
            ("feed", call(|error| writer::marquetry_feed(machine, &mut array, error))),
            ("finish", call(|error| writer::marquetry_finish(machine, error))),
        ];
        for (what, done) in calls {
            let said = "a machine that is being released: it can only be released further, or freed";
            let misuse = (marquetry_error_kind::Misuse, said.to_string());
            assert_eq!(done, Err(misuse), "{what} of {name}");
        }
        while status != marquetry_status::Done {
            status = release(1);
            slices += 1;
        }
        assert!(slices > 1 || name == "footer", "{name} in one slice");
        // The search has pages and batches, the writer the pages of 120,000 rows.
        assert!(!matches!(name, "writer") || slices > 100, "{name} in {slices} slices");
        assert_eq!(machine::marquetry_machine_free(machine), marquetry_status::Ok);
    }
}

extern "C" fn read_at(context: *mut c_void, offset: u64, data: *mut u8, length: usize) -> i32 {
    // SAFETY: the test's own vector.
    let file = unsafe { &*context.cast::<Vec<u8>>() };
    let offset = usize::try_from(offset).unwrap();
    // SAFETY: so many bytes are there, as `read_at` is promised.
    unsafe { data.copy_from_nonoverlapping(file[offset..offset + length].as_ptr(), length) };
    0
}

#[test]
fn a_streams_footer_has_the_limits_of_its_options() {
    let mut file = write(&[strings(10)], null()).unwrap();
    let mut open = |memory_bytes_max: u64| {
        let mut made = arrow_array::ffi_stream::FFI_ArrowArrayStream::empty();
        let options = marquetry_reader_options {
            struct_size: size_of::<marquetry_reader_options>(),
            memory_bytes_max,
            ..defaults()
        };
        let (length, context) = (file.len() as u64, (&raw mut file).cast());
        call(|error| {
            let stream = (&raw mut made).cast();
            stream::marquetry_stream_new(Some(read_at), context, length, &options, stream, error)
        })
    };
    assert_eq!(open(0).unwrap(), marquetry_status::Ok);
    let limited = open(100).unwrap_err();
    assert_eq!(limited.0, marquetry_error_kind::LimitExceeded, "{}", limited.1);
}

#[test]
fn row_groups_without_wanted_rows_are_not_looked_at() {
    let options = marquetry_writer_options {
        struct_size: size_of::<marquetry_writer_options>(),
        row_group_rows: 1000,
        page_rows: 100,
        ..defaults()
    };
    let file = write(&[strings(50_000)], &options).unwrap();
    let metadata = footer(&file).unwrap();
    let needs = |rows: &[marquetry_rows], predicate: Option<&core::ffi::CStr>| {
        let options = marquetry_reader_options {
            struct_size: size_of::<marquetry_reader_options>(),
            rows: rows.as_ptr(),
            rows_count: rows.len(),
            predicate: predicate.map_or(null(), core::ffi::CStr::as_ptr),
            ..defaults()
        };
        let mut made = null_mut();
        call(|error| reader::marquetry_reader_new(metadata, &options, &mut made, error)).unwrap();
        let (mut needs, mut found) = (0, 0);
        loop {
            match call(|error| machine::marquetry_step(made, null(), error)).unwrap() {
                marquetry_status::Need => {
                    needs += 1;
                    supply(made, &file).unwrap();
                }
                marquetry_status::Ready => found += common::host::take(made).unwrap().num_rows(),
                marquetry_status::Done => break,
                _ => {}
            }
        }
        machine::marquetry_machine_free(made);
        (needs, found)
    };
    let one = [marquetry_rows { start: 30_150, end: 30_250 }];
    let (of_one, found) = needs(&one, None);
    assert_eq!(found, 100);
    // One of the fifty row groups: its page indexes, its pages.
    assert!(of_one <= 6, "{of_one} demands for rows of one row group");
    let two = [one[0], marquetry_rows { start: 49_999, end: 50_000 }];
    let (of_two, found) = needs(&two, None);
    assert_eq!(found, 101);
    assert!(of_two <= 2 * of_one, "{of_two} demands for two, {of_one} for one");
    let (judged, found) = needs(&two, Some(c"text LIKE 'a text%'"));
    assert_eq!(found, 101);
    assert!(judged <= 20, "{judged} demands for two row groups that are tested");
    metadata::marquetry_metadata_free(metadata);
}

/// `struct ArrowArray`, as a host that gets it wrong writes it.
#[repr(C)]
struct Raw {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Raw,
    dictionary: *mut Raw,
    release: *const c_void,
    private_data: *mut c_void,
}

impl Raw {
    fn child(&mut self, at: usize) -> &mut Raw {
        // SAFETY: the test asks for children that Arrow has exported.
        unsafe { &mut **self.children.add(at) }
    }

    fn set_child(&mut self, at: usize, child: *mut Raw) {
        let count = usize::try_from(self.n_children).unwrap();
        // Those that are there stay Arrow's, which frees them.
        let mut own: Vec<*mut Raw> = borrowed(self.children, count).to_vec();
        own[at] = child;
        self.children = Vec::leak(own).as_mut_ptr();
    }

    fn set_buffer(&mut self, at: usize, buffer: *const c_void) {
        // SAFETY: as above, of buffers.
        unsafe { *self.buffers.add(at) = buffer };
    }
}

fn odd() -> RecordBatch {
    let words = ["short", "a text that is longer than a view holds", "another text that is as long"];
    let texts: ArrayRef = Arc::new(StringArray::from(words.to_vec()));
    let nested: ArrayRef = Arc::new(StructArray::from(RecordBatch::try_from_iter([("in", texts)]).unwrap()));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), Some(2)]),
        Some(vec![]),
        Some(vec![Some(3)]),
    ]);
    let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..3).map(|row| Some(vec![Some(row), Some(row)])),
        2,
    );
    let dictionary: DictionaryArray<Int32Type> = ["x", "y", "x"].into_iter().collect();
    RecordBatch::try_from_iter_with_nullable([
        ("number", Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])) as ArrayRef, true),
        ("text", Arc::new(StringArray::from(words.to_vec())) as ArrayRef, true),
        ("view", Arc::new(StringViewArray::from(words.to_vec())) as ArrayRef, true),
        ("list", Arc::new(lists) as ArrayRef, true),
        ("fixed", Arc::new(fixed) as ArrayRef, true),
        ("group", nested, true),
        ("words", Arc::new(dictionary) as ArrayRef, true),
    ])
    .unwrap()
}

static BACKWARDS: [i32; 4] = [0, 5, 3, 5];
static NEGATIVE: [i32; 4] = [-5, 0, 3, 5];
static BEYOND: [i32; 4] = [0, 1, 2, 400];
static LENGTHS: [i64; 1] = [-1];
static KEYS: [i32; 3] = [0, 9, 0];

#[test]
fn a_wrong_array_is_a_misuse_that_names_the_column() {
    type Spoil = fn(&mut Raw);
    fn at<T>(values: &'static [T]) -> *const c_void {
        values.as_ptr().cast()
    }
    let cases: &[(&str, &str, Spoil)] = &[
        ("fine", "", |_| {}),
        ("fewer children", "-", |it| it.n_children = 6),
        ("no children", "-", |it| it.children = null_mut()),
        ("children below zero", "-", |it| it.n_children = -1),
        ("a child that is NULL", "text", |it| it.set_child(1, null_mut())),
        ("a child that was released", "text", |it| it.child(1).release = null()),
        ("a length below zero", "number", |it| it.child(0).length = -3),
        ("a length beyond all memory", "number", |it| it.child(0).length = i64::MAX),
        ("an offset below zero", "number", |it| it.child(0).offset = -1),
        ("an offset beyond all memory", "number", |it| it.child(0).offset = i64::MAX - 1),
        ("a shorter child", "number", |it| it.child(0).length = 2),
        ("more nulls than slots", "number", |it| it.child(0).null_count = 4),
        ("nulls below -1", "number", |it| it.child(0).null_count = -2),
        ("nulls without a bitmap", "number", |it| it.child(0).set_buffer(0, null())),
        ("other nulls than the bitmap's", "number", |it| it.child(0).null_count = 2),
        ("no values", "number", |it| it.child(0).set_buffer(1, null())),
        ("no buffers", "number", |it| it.child(0).buffers = null_mut()),
        ("fewer buffers", "number", |it| it.child(0).n_buffers = 1),
        ("more buffers", "number", |it| it.child(0).n_buffers = 3),
        ("buffers below zero", "number", |it| it.child(0).n_buffers = -1),
        ("no offsets", "text", |it| it.child(1).set_buffer(1, null())),
        ("offsets that are not aligned", "text", |it| {
            it.child(1).set_buffer(1, at(&BACKWARDS).wrapping_byte_add(1));
        }),
        ("offsets backwards", "text", |it| it.child(1).set_buffer(1, at(&BACKWARDS))),
        ("offsets below zero", "text", |it| it.child(1).set_buffer(1, at(&NEGATIVE))),
        ("no bytes", "text", |it| it.child(1).set_buffer(2, null())),
        ("no views", "view", |it| it.child(2).set_buffer(1, null())),
        ("no lengths of buffers", "view", |it| it.child(2).set_buffer(3, null())),
        ("a buffer of less than nothing", "view", |it| it.child(2).set_buffer(3, at(&LENGTHS))),
        ("no buffer of views", "view", |it| it.child(2).set_buffer(2, null())),
        ("fewer than the buffers of views", "view", |it| it.child(2).n_buffers = 2),
        ("views without buffers", "view", |it| it.child(2).n_buffers = 3),
        ("lists backwards", "list", |it| it.child(3).set_buffer(1, at(&BACKWARDS))),
        ("lists beyond their elements", "list.item", |it| it.child(3).set_buffer(1, at(&BEYOND))),
        ("lists of two children", "list", |it| it.child(3).n_children = 2),
        ("fewer elements than lists of two", "fixed.item", |it| it.child(4).child(0).length = 5),
        ("nested", "group", |it| it.child(5).child(0).set_buffer(1, at(&BACKWARDS))),
        ("a dictionary where none is", "number", |it| it.child(0).dictionary = it.child(6).dictionary),
        ("no dictionary", "words", |it| it.child(6).dictionary = null_mut()),
        ("keys beyond the dictionary", "words", |it| it.child(6).set_buffer(1, at(&KEYS))),
        ("rows that are null", "", |it| it.null_count = 1),
    ];
    let schema = FFI_ArrowSchema::try_from(odd().schema_ref().as_ref()).unwrap();
    for &(name, column, spoil) in cases {
        let mut made = null_mut();
        call(|error| writer::marquetry_writer_new(&schema, null(), &mut made, error)).unwrap();
        while call(|error| machine::marquetry_step(made, null(), error)).unwrap() != marquetry_status::Ready {
        }
        let mut array = FFI_ArrowArray::new(&StructArray::from(odd()).to_data());
        let raw: *mut FFI_ArrowArray = &raw mut array;
        // SAFETY: both are `struct ArrowArray`, and the test has it alone.
        spoil(unsafe { &mut *raw.cast::<Raw>() });
        let done = call(|error| writer::marquetry_feed(made, &mut array, error));
        // Values are looked at by steps.
        let done = done.and_then(|_| next(made, &[]));
        assert!(array.is_released(), "{name}: it was taken");
        match done {
            Ok(_) => assert_eq!(name, "fine"),
            Err((kind, text)) => {
                assert_eq!(kind, marquetry_error_kind::Misuse, "{name}: {text}");
                assert!(
                    text.starts_with("not an array of the writer's schema") || name == "rows that are null"
                );
                match column {
                    "" => assert!(name != "fine", "{text}"),
                    // Of the table as a whole.
                    "-" => assert!(!text.contains("column"), "{name}: {text}"),
                    column => assert!(text.contains(&format!("column {column}")), "{name}: {text}"),
                }
                let again = call(|error| machine::marquetry_step(made, null(), error)).unwrap_err();
                assert_eq!(again, (kind, text), "the writer has failed");
            }
        }
        assert_eq!(machine::marquetry_machine_free(made), marquetry_status::Ok);
    }
}
