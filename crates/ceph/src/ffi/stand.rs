//! What stands in for the shim where there is no OSD: tests and fuzzing call the class through its door, with the functions that C++ passes.

use core::ffi::{c_int, c_void};

use marquetry_base::Result;
use marquetry_base::cast::usize_of;

use super::{ENOENT, Functions, marquetry_ceph_call};
use crate::{Method, RadosObject};

/// What a function returns that fails (`-ETIMEDOUT`): the class returns it for no reason of its own.
pub const FAILED: c_int = -110;

/// What a call came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// What it returned: 0, or a negative errno.
    pub errno: c_int,
    /// The bytes that were added to the answer.
    pub answer: Vec<u8>,
    /// Whether one of the functions failed.
    pub has_failed: bool,
}

/// Calls a method by [`marquetry_ceph_call`], as the shim does: `object` answers the functions, which return [`FAILED`] for any of its errors, and for
/// an answer of more than `answer_bytes_max` bytes. Methods that only read have no functions that write.
pub fn call_by_functions(
    method: Method,
    object: &mut dyn RadosObject,
    request: &[u8],
    answer_bytes_max: usize,
) -> Called {
    let (number, writes) = match method {
        Method::Describe => (1, false),
        Method::Query => (2, false),
        Method::Stats => (3, false),
        Method::Merge => (4, true),
        Method::Compress => (5, true),
        Method::Split => (6, false),
        Method::Index => (7, true),
        Method::Transform => (8, false),
    };
    let mut stand = Stand { object, answer: Vec::new(), answer_bytes_max, has_failed: false };
    let functions = Functions {
        context: (&raw mut stand).cast(),
        stat: Some(stat),
        read: Some(read),
        append: Some(append),
        write: if writes { Some(write) } else { None },
        entry: Some(entry),
        set_entry: if writes { Some(set_entry) } else { None },
    };
    // SAFETY: the functions are those below, for a context that is theirs, and lives longer than the call; the request is a slice.
    let errno = unsafe { marquetry_ceph_call(number, &raw const functions, request.as_ptr(), request.len()) };
    Called { errno, answer: stand.answer, has_failed: stand.has_failed }
}

/// The context of the functions.
struct Stand<'a> {
    object: &'a mut dyn RadosObject,
    answer: Vec<u8>,
    answer_bytes_max: usize,
    has_failed: bool,
}

impl Stand<'_> {
    /// What a function returns.
    fn errno<T>(&mut self, result: &Result<T>) -> c_int {
        if result.is_ok() { 0 } else { self.fail() }
    }

    fn fail(&mut self) -> c_int {
        self.has_failed = true;
        FAILED
    }
}

/// The context as what it is.
///
/// # Safety
///
/// It is that of `call_by_functions`, during its call, and what an earlier call of this function returned is not used any more.
unsafe fn stand<'a>(context: *mut c_void) -> &'a mut Stand<'a> {
    // SAFETY: as the caller promises.
    unsafe { &mut *context.cast::<Stand<'a>>() }
}

unsafe extern "C" fn stat(context: *mut c_void, length: *mut u64) -> c_int {
    // SAFETY: `Osd` passes the context, to one function at a time.
    let stand = unsafe { stand(context) };
    let found = stand.object.length();
    if let Ok(found) = &found {
        // SAFETY: `Osd` passes a place for a number.
        unsafe { length.write(*found) };
    }
    stand.errno(&found)
}

unsafe extern "C" fn read(context: *mut c_void, offset: u64, length: u64, into: *mut u8) -> c_int {
    // SAFETY: `Osd` passes the context, to one function at a time.
    let stand = unsafe { stand(context) };
    let Some(length) = usize_of(length) else { return stand.fail() };
    // SAFETY: `Osd` passes a slice of so many bytes, which nothing else uses meanwhile.
    let into = unsafe { core::slice::from_raw_parts_mut(into, length) };
    let done = stand.object.read(offset, into);
    stand.errno(&done)
}

unsafe extern "C" fn append(context: *mut c_void, bytes: *const u8, length: usize) -> c_int {
    // SAFETY: `answered` passes the context, and a slice of so many bytes.
    let (stand, bytes) = unsafe { (stand(context), core::slice::from_raw_parts(bytes, length)) };
    if bytes.len() > stand.answer_bytes_max.saturating_sub(stand.answer.len()) {
        return stand.fail();
    }
    stand.answer.extend_from_slice(bytes);
    0
}

unsafe extern "C" fn write(context: *mut c_void, offset: u64, bytes: *const u8, length: usize) -> c_int {
    // SAFETY: `Osd` passes the context, to one function at a time, and a slice of so many bytes.
    let (stand, bytes) = unsafe { (stand(context), core::slice::from_raw_parts(bytes, length)) };
    let done = stand.object.write(offset, bytes);
    stand.errno(&done)
}

unsafe extern "C" fn entry(
    context: *mut c_void,
    key: *const u8,
    length: usize,
    put: unsafe extern "C" fn(sink: *mut c_void, bytes: *const u8, length: usize),
    sink: *mut c_void,
) -> c_int {
    // SAFETY: `Osd` passes the context, to one function at a time, and a key of so many bytes.
    let (stand, key) = unsafe { (stand(context), core::slice::from_raw_parts(key, length)) };
    let Ok(key) = core::str::from_utf8(key) else { return stand.fail() };
    match stand.object.entry(key) {
        Ok(Some(found)) => {
            // SAFETY: `put` takes the sink that came with it, and bytes, of which as many are there.
            unsafe { put(sink, found.as_ptr(), found.len()) };
            0
        }
        Ok(None) => -ENOENT,
        Err(_) => stand.fail(),
    }
}

unsafe extern "C" fn set_entry(
    context: *mut c_void,
    key: *const u8,
    length: usize,
    bytes: *const u8,
    bytes_length: usize,
) -> c_int {
    // SAFETY: `Osd` passes the context, to one function at a time, a key, and bytes, of which as many are there as it says.
    let (stand, key, bytes) = unsafe {
        (
            stand(context),
            core::slice::from_raw_parts(key, length),
            core::slice::from_raw_parts(bytes, bytes_length),
        )
    };
    let Ok(key) = core::str::from_utf8(key) else { return stand.fail() };
    let done = stand.object.set_entry(key, bytes);
    stand.errno(&done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call;

    #[test]
    fn the_door_gives_what_the_engine_answers_or_what_failed() {
        let bytes: &[u8] = b"nothing that would be a file";
        for method in [Method::Describe, Method::Query, Method::Stats, Method::Split, Method::Transform] {
            let expected = call(method, &mut { bytes }, b"MQQ1");
            let called = call_by_functions(method, &mut { bytes }, b"MQQ1", usize::MAX);
            assert_eq!(
                called,
                Called { errno: 0, answer: expected.clone(), has_failed: false },
                "{method:?}"
            );
            // No room for the last byte.
            let called = call_by_functions(method, &mut { bytes }, b"MQQ1", expected.len() - 1);
            assert_eq!((called.errno, called.has_failed), (FAILED, true), "{method:?}");
        }
    }
}
