//! Errors: kind, place, text.

use core::ptr::without_provenance_mut;

use marquetry_base::{Detail, Error, ErrorKind, Result};

use crate::abi::{marquetry_error_info, marquetry_error_kind, marquetry_status};
use crate::allocator::is_asking;
use crate::arguments;
use crate::handles::{self, Kind, create, marquetry_error};
use crate::text::{Text, no_text};

/// What a handle of an error leads to.
pub(crate) struct Failure {
    kind: marquetry_error_kind,
    message: Text,
    display: Text,
    column: Option<Text>,
    numbers: [i64; 4],
}

impl Kind for Failure {
    type Handle = marquetry_error;
    const NUMBER: u64 = 1;
    const NAME: &'static str = "an error";
}

/// Errors that need no memory. Their handles are numbers of no handle in the table.
const FIXED: [(usize, marquetry_error_kind, &str); 2] = [
    (OUT_OF_MEMORY, marquetry_error_kind::OutOfMemory, "out of memory\0"),
    (ASKING, marquetry_error_kind::Misuse, "a call of the library from a function of its allocator\0"),
];
/// There is no memory for an error.
const OUT_OF_MEMORY: usize = 2;
/// The allocator must not be asked for memory.
const ASKING: usize = 4;

fn kind_of(error: &Error) -> marquetry_error_kind {
    match (error.kind(), error.detail()) {
        (_, Some(Detail::OutOfMemory(_))) => marquetry_error_kind::OutOfMemory,
        (ErrorKind::Corrupt, _) => marquetry_error_kind::Corrupt,
        (ErrorKind::Unsupported, _) => marquetry_error_kind::Unsupported,
        (ErrorKind::LimitExceeded, _) => marquetry_error_kind::LimitExceeded,
        (ErrorKind::Io | ErrorKind::Refused | ErrorKind::Cancelled, _) => marquetry_error_kind::Io,
        (ErrorKind::Misuse, _) => marquetry_error_kind::Misuse,
        (ErrorKind::Conversion, _) => marquetry_error_kind::Conversion,
        _ => marquetry_error_kind::Internal,
    }
}

impl Failure {
    fn new(error: &Error) -> Result<Failure> {
        let place = error.place();
        let number = |at: Option<u64>| at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1);
        Ok(Failure {
            kind: kind_of(error),
            message: Text::new(error.message())?,
            display: Text::new(&error.to_string())?,
            column: place.column.as_deref().map(Text::new).transpose()?,
            numbers: [place.row_group, place.page, place.row, place.offset].map(number),
        })
    }
}

/// Answers a call: the status, and the error if there is one.
pub(crate) fn answer<T: Answer>(done: Result<T>, out: *mut *mut marquetry_error) -> marquetry_status {
    match done {
        Ok(done) => done.status(),
        Err(error) => {
            if !out.is_null() {
                let fixed = if is_asking() { ASKING } else { OUT_OF_MEMORY };
                let made = handles::call(|| create(Failure::new(&error)?));
                // SAFETY: the host promises that it is NULL or that a pointer can be written there.
                unsafe { out.write(made.unwrap_or_else(|_| without_provenance_mut(fixed))) };
            }
            marquetry_status::Error
        }
    }
}

/// What a call answers if it has not failed.
pub(crate) trait Answer {
    fn status(self) -> marquetry_status;
}

impl Answer for () {
    fn status(self) -> marquetry_status {
        marquetry_status::Ok
    }
}

impl Answer for marquetry_status {
    fn status(self) -> marquetry_status {
        self
    }
}

/// Says what an error is.
///
/// * `error`: in, borrowed. Texts in `info` are borrowed from it, until it is freed.
/// * `info`: out; `struct_size` must be set.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_error_get(
    error: *const marquetry_error,
    info: *mut marquetry_error_info,
) -> marquetry_status {
    if let Some(&(_, kind, text)) = FIXED.iter().find(|(number, ..)| *number == error.addr()) {
        let text = crate::abi::marquetry_text { data: text.as_ptr().cast(), length: text.len() - 1 };
        let nowhere = marquetry_error_info {
            struct_size: 0,
            kind,
            message: text,
            display: text,
            column: no_text(),
            row_group: -1,
            page: -1,
            row: -1,
            offset: -1,
        };
        return answer(handles::call(|| arguments::answer(info, nowhere)), core::ptr::null_mut());
    }
    let work = |failure: &mut Failure| {
        let [row_group, page, row, offset] = failure.numbers;
        let column = failure.column.as_ref().map_or(no_text(), Text::lent);
        let (message, display) = (failure.message.lent(), failure.display.lent());
        let kind = failure.kind;
        let found = marquetry_error_info {
            struct_size: 0,
            kind,
            message,
            display,
            column,
            row_group,
            page,
            row,
            offset,
        };
        arguments::answer(info, found)
    };
    answer(handles::call(|| handles::with::<Failure, _>(error, work)), core::ptr::null_mut())
}

/// Frees an error. `error`: in, owned; NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_error_free(error: *mut marquetry_error) -> marquetry_status {
    if FIXED.iter().any(|(number, ..)| *number == error.addr()) {
        return marquetry_status::Ok;
    }
    answer(handles::call(|| handles::free::<Failure>(error)), core::ptr::null_mut())
}
