//! A host in Rust, over the functions of the C interface.

use core::ffi::c_void;
use core::ptr::{null, null_mut};
use std::cell::Cell;

use arrow_array::RecordBatch;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::{Array as _, StructArray};
use marquetry_c::abi::*;
use marquetry_c::{
    error::{marquetry_error_free, marquetry_error_get},
    footer::*,
    machine::*,
    marquetry_error, marquetry_machine, marquetry_metadata,
    reader::*,
    writer::*,
};

thread_local! {
    /// Pieces that this thread supplied and were not released: tests run side by side.
    pub(crate) static LENT: Cell<i64> = const { Cell::new(0) };
}

pub(crate) extern "C" fn give_back(_context: *mut c_void, _data: *const u8, _length: usize) {
    LENT.set(LENT.get() - 1);
}

/// What the library lends.
pub(crate) fn borrowed<'a, T>(start: *const T, count: usize) -> &'a [T] {
    // SAFETY: what the library has just said is there, and stays until the next step.
    if count == 0 { &[] } else { unsafe { core::slice::from_raw_parts(start, count) } }
}

/// Options that are all defaults, and answers that are not there yet.
pub(crate) fn defaults<T>() -> T {
    // SAFETY: asked for the structs of the interface alone, whose zeros are values.
    unsafe { core::mem::zeroed() }
}

/// What an error says; it is freed.
pub(crate) fn said(error: *mut marquetry_error) -> (marquetry_error_kind, String) {
    let mut info = empty_info();
    assert_eq!(marquetry_error_get(error, &mut info), marquetry_status::Ok);
    // SAFETY: a text of the error, which ends with a NUL.
    let text = unsafe { core::ffi::CStr::from_ptr(info.display.data) }.to_str().unwrap().to_string();
    assert_eq!(marquetry_error_free(error), marquetry_status::Ok);
    (info.kind, text)
}

pub(crate) fn empty_info() -> marquetry_error_info {
    let text = marquetry_text { data: null(), length: 0 };
    marquetry_error_info {
        struct_size: size_of::<marquetry_error_info>(),
        kind: marquetry_error_kind::Internal,
        message: text,
        display: text,
        column: text,
        row_group: 0,
        page: 0,
        row: 0,
        offset: 0,
    }
}

/// Calls a function that takes a place for an error.
pub(crate) fn call(
    work: impl FnOnce(*mut *mut marquetry_error) -> marquetry_status,
) -> Result<marquetry_status, (marquetry_error_kind, String)> {
    let mut error = null_mut();
    match work(&mut error) {
        marquetry_status::Error => Err(said(error)),
        status => {
            assert!(error.is_null());
            Ok(status)
        }
    }
}

fn index(at: u64) -> usize {
    usize::try_from(at).unwrap()
}

/// Supplies what a machine wants now.
pub(crate) fn supply(
    machine: *mut marquetry_machine,
    file: &[u8],
) -> Result<(), (marquetry_error_kind, String)> {
    supply_of(machine, &[file])
}

/// The same of several files, whose numbers are those of their objects.
fn supply_of<F: AsRef<[u8]>>(
    machine: *mut marquetry_machine,
    files: &[F],
) -> Result<(), (marquetry_error_kind, String)> {
    let (mut wants, mut count) = (null(), 0);
    call(|error| marquetry_wants(machine, &mut wants, &mut count, error))?;
    let wants = borrowed(wants, count).to_vec();
    for want in wants {
        let file = files[usize::try_from(want.object).unwrap()].as_ref();
        match want.kind {
            marquetry_want_kind::Length => {
                call(|error| marquetry_supply_length(machine, want.object, file.len() as u64, error))?;
            }
            marquetry_want_kind::Now => {
                let Some(bytes) = file.get(index(want.start)..index(want.end)) else {
                    return call(|error| marquetry_fail(machine, c"beyond the file's end".as_ptr(), error))
                        .map(drop);
                };
                LENT.set(LENT.get() + 1);
                call(|error| {
                    let release = Some(give_back as extern "C" fn(_, _, _));
                    marquetry_supply(
                        machine,
                        want.object,
                        want.start,
                        bytes.as_ptr(),
                        bytes.len(),
                        release,
                        null_mut(),
                        error,
                    )
                })?;
            }
            marquetry_want_kind::Soon => {}
        }
    }
    Ok(())
}

/// Steps to a product, to bytes that are to be appended, or to the end.
pub(crate) fn next(
    machine: *mut marquetry_machine,
    file: &[u8],
) -> Result<marquetry_status, (marquetry_error_kind, String)> {
    next_of(machine, &[file])
}

/// The same of several files.
pub(crate) fn next_of<F: AsRef<[u8]>>(
    machine: *mut marquetry_machine,
    files: &[F],
) -> Result<marquetry_status, (marquetry_error_kind, String)> {
    loop {
        match call(|error| marquetry_step(machine, null(), error))? {
            marquetry_status::Yield => {}
            marquetry_status::Need => supply_of(machine, files)?,
            status => return Ok(status),
        }
    }
}

/// The metadata of a file.
pub(crate) fn footer(file: &[u8]) -> Result<*mut marquetry_metadata, (marquetry_error_kind, String)> {
    let (mut machine, mut metadata) = (null_mut(), null_mut());
    call(|error| marquetry_footer_new(null(), &mut machine, error))?;
    let read = next(machine, file);
    let taken = read.and_then(|_| call(|error| marquetry_take_metadata(machine, &mut metadata, error)));
    assert_eq!(marquetry_machine_free(machine), marquetry_status::Ok);
    taken.map(|_| metadata)
}

/// A batch that a reader has.
pub(crate) fn take(machine: *mut marquetry_machine) -> Result<RecordBatch, (marquetry_error_kind, String)> {
    let (mut array, mut schema) = (FFI_ArrowArray::empty(), FFI_ArrowSchema::empty());
    call(|error| marquetry_take_batch(machine, &mut array, &mut schema, null_mut(), error))?;
    // SAFETY: both are the library's.
    let data = unsafe { from_ffi(array, &schema) }.unwrap();
    data.validate_full().unwrap();
    Ok(RecordBatch::from(StructArray::from(data)))
}

/// All rows that options want of a file.
pub(crate) fn read(
    file: &[u8],
    options: *const marquetry_reader_options,
) -> Result<Vec<RecordBatch>, (marquetry_error_kind, String)> {
    let metadata = footer(file)?;
    let mut machine = null_mut();
    let made = call(|error| marquetry_reader_new(metadata, options, &mut machine, error));
    assert_eq!(marquetry_c::metadata::marquetry_metadata_free(metadata), marquetry_status::Ok);
    made?;
    let mut batches = Vec::new();
    let done = loop {
        match next(machine, file) {
            Ok(marquetry_status::Ready) => match take(machine) {
                Ok(batch) => batches.push(batch),
                Err(error) => break Err(error),
            },
            Ok(_) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    assert_eq!(marquetry_machine_free(machine), marquetry_status::Ok);
    done.map(|()| batches)
}

/// A file of some batches.
pub(crate) fn write(
    batches: &[RecordBatch],
    options: *const marquetry_writer_options,
) -> Result<Vec<u8>, (marquetry_error_kind, String)> {
    let schema = FFI_ArrowSchema::try_from(batches[0].schema_ref().as_ref()).unwrap();
    let mut machine = null_mut();
    call(|error| marquetry_writer_new(&schema, options, &mut machine, error))?;
    let (mut file, mut fed) = (Vec::new(), 0);
    let done = loop {
        match next(machine, &[]) {
            Err(error) => break Err(error),
            Ok(marquetry_status::Append) => {
                let mut bytes = marquetry_bytes { data: null(), length: 0, owner: null_mut() };
                call(|error| marquetry_take_append(machine, &mut bytes, error))?;
                file.extend_from_slice(borrowed(bytes.data, bytes.length));
                marquetry_c::bytes::marquetry_bytes_release(&mut bytes);
            }
            Ok(marquetry_status::Ready) if fed < batches.len() => {
                let mut array = FFI_ArrowArray::new(&StructArray::from(batches[fed].clone()).to_data());
                if let Err(error) = call(|error| marquetry_feed(machine, &mut array, error)) {
                    break Err(error);
                }
                assert!(array.is_released());
                fed += 1;
            }
            Ok(marquetry_status::Ready) => drop(call(|error| marquetry_finish(machine, error))?),
            Ok(_) => break Ok(()),
        }
    };
    assert_eq!(marquetry_machine_free(machine), marquetry_status::Ok);
    done.map(|()| file)
}
