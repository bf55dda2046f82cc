//! The door to C++: one function, which the shim `class/cls_marquetry.cc` calls for each method of the class.
//!
//! A panic, which is a bug, ends here: the call answers `-EIO`, and the OSD goes on. `class/marquetry_ceph.h` is the same interface in C.

#[doc(hidden)]
pub mod stand;

use core::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, ErrorKind, Result};

use crate::host::ENTRY_BYTES_MAX;
use crate::{Method, RadosObject, call_in_parts, change};

/// `EIO`, `EINVAL`, `ENOENT`, `ENODATA`, `EFBIG`, `EBADMSG` and `EOPNOTSUPP`, as on every Linux.
const EIO: c_int = 5;
const EINVAL: c_int = 22;
const ENOENT: c_int = 2;
const ENODATA: c_int = 61;
const EFBIG: c_int = 27;
const EBADMSG: c_int = 74;
const EOPNOTSUPP: c_int = 95;

/// The object of a call, and where its answer goes (`struct marquetry_ceph_object`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Functions {
    /// Passed to the functions.
    pub context: *mut c_void,
    /// The object's length in bytes.
    pub stat: Option<unsafe extern "C" fn(context: *mut c_void, length: *mut u64) -> c_int>,
    /// Bytes of the object.
    pub read:
        Option<unsafe extern "C" fn(context: *mut c_void, offset: u64, length: u64, into: *mut u8) -> c_int>,
    /// Adds bytes to the answer, after those before.
    pub append: Option<unsafe extern "C" fn(context: *mut c_void, bytes: *const u8, length: usize) -> c_int>,
    /// Writes bytes of the object; `None` in a method that only reads.
    pub write: Option<
        unsafe extern "C" fn(context: *mut c_void, offset: u64, bytes: *const u8, length: usize) -> c_int,
    >,
    /// Hands an entry of the object's omap to `put`, with `sink`.
    pub entry: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            key: *const u8,
            length: usize,
            put: unsafe extern "C" fn(sink: *mut c_void, bytes: *const u8, length: usize),
            sink: *mut c_void,
        ) -> c_int,
    >,
    /// Writes an entry of the object's omap; `None` in a method that only reads.
    pub set_entry: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            key: *const u8,
            length: usize,
            bytes: *const u8,
            bytes_length: usize,
        ) -> c_int,
    >,
}

/// Answers a call: 0, or a negative errno.
///
/// # Safety
///
/// `object` points to a struct whose functions are those of its documentation, and `request` to `length` bytes, or is NULL; both for as long as
/// the call takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marquetry_ceph_call(
    method: u32,
    object: *const Functions,
    request: *const u8,
    length: usize,
) -> c_int {
    let method = match method {
        1 => Method::Describe,
        2 => Method::Query,
        3 => Method::Stats,
        4 => Method::Merge,
        5 => Method::Compress,
        6 => Method::Split,
        7 => Method::Index,
        8 => Method::Transform,
        _ => return -EINVAL,
    };
    if object.is_null() || request.is_null() && length > 0 {
        return -EINVAL;
    }
    // SAFETY: it is not NULL, and the caller promises that it points to such a struct, of which this is a copy.
    let functions = unsafe { object.read() };
    let request = if request.is_null() {
        &[]
    } else {
        // SAFETY: it is not NULL, and the caller promises that so many bytes are there, which nobody changes during the call.
        unsafe { core::slice::from_raw_parts(request, length) }
    };
    // What a panic leaves behind is dropped: all of it was made for this call.
    catch_unwind(AssertUnwindSafe(|| answered(method, functions, request))).unwrap_or(-EIO)
}

fn answered(method: Method, functions: Functions, request: &[u8]) -> c_int {
    let Some(append) = functions.append else { return -EINVAL };
    let mut object = Osd { functions, errno: 0 };
    let (answer, data) = match method {
        // An OSD undoes what was written only if the call fails, and clients get no answer then.
        Method::Merge | Method::Compress | Method::Index => match change(method, &mut object, request) {
            Err(error) if object.errno == 0 => return errno_of(&error),
            changed => (changed.unwrap_or_default(), Vec::new()),
        },
        Method::Describe | Method::Query | Method::Stats | Method::Split | Method::Transform => {
            call_in_parts(method, &mut object, request)
        }
    };
    if object.errno < 0 {
        return object.errno;
    }
    for part in [answer, data].iter().filter(|part| !part.is_empty()) {
        // SAFETY: the caller of `marquetry_ceph_call` promises that it takes bytes, of which as many are there as it is given.
        let errno = unsafe { append(functions.context, part.as_ptr(), part.len()) };
        if errno < 0 {
            return errno;
        }
    }
    0
}

fn errno_of(error: &Error) -> c_int {
    match error.kind() {
        ErrorKind::Corrupt => -EBADMSG,
        ErrorKind::Unsupported => -EOPNOTSUPP,
        ErrorKind::LimitExceeded => -EFBIG,
        ErrorKind::Misuse | ErrorKind::Conversion => -EINVAL,
        _ => -EIO,
    }
}

/// The object that an OSD has opened for a call.
struct Osd {
    functions: Functions,
    /// What went wrong first.
    errno: c_int,
}

impl Osd {
    fn failed(&mut self, errno: c_int, what: &'static str) -> Error {
        if self.errno == 0 {
            self.errno = errno;
        }
        Error::io(what)
    }
}

impl RadosObject for Osd {
    fn length(&mut self) -> Result<u64> {
        let Functions { context, stat: Some(stat), .. } = self.functions else {
            return Err(self.failed(-EINVAL, "no function for the object's length"));
        };
        let mut length = 0;
        // SAFETY: the caller of `marquetry_ceph_call` promises that it takes the context, and writes a number, for which there is room.
        match unsafe { stat(context, &raw mut length) } {
            errno if errno < 0 => Err(self.failed(errno, "the object's length is not known")),
            _ => Ok(length),
        }
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        let Functions { context, read: Some(read), .. } = self.functions else {
            return Err(self.failed(-EINVAL, "no function that reads the object"));
        };
        // SAFETY: the caller of `marquetry_ceph_call` promises that it takes the context, and writes as many bytes at most, for which there
        // is room.
        match unsafe { read(context, offset, u64_of(into.len()), into.as_mut_ptr()) } {
            errno if errno < 0 => Err(self.failed(errno, "the object could not be read")),
            _ => Ok(()),
        }
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let Functions { context, write: Some(write), .. } = self.functions else {
            return Err(self.failed(-EINVAL, "no function that writes the object"));
        };
        // SAFETY: the caller of `marquetry_ceph_call` promises that it takes the context, and bytes, of which as many are there.
        match unsafe { write(context, offset, bytes.as_ptr(), bytes.len()) } {
            errno if errno < 0 => Err(self.failed(errno, "the object could not be written")),
            _ => Ok(()),
        }
    }

    fn entry(&mut self, key: &str) -> Result<Option<Vec<u8>>> {
        let Functions { context, entry: Some(entry), .. } = self.functions else { return Ok(None) };
        let mut found: Vec<u8> = Vec::new();
        // SAFETY: the caller of `marquetry_ceph_call` promises that it takes the context, and a key, of which as many bytes are there, and calls
        // `put` with the sink, which is the vector above, before it returns.
        match unsafe { entry(context, key.as_ptr(), key.len(), put, (&raw mut found).cast()) } {
            // There is none, or the pool has no omap.
            errno if [-ENOENT, -ENODATA, -EOPNOTSUPP].contains(&errno) => Ok(None),
            errno if errno < 0 => Err(self.failed(errno, "the object's omap could not be read")),
            _ => Ok(Some(found)),
        }
    }

    fn set_entry(&mut self, key: &str, bytes: &[u8]) -> Result<()> {
        let Functions { context, set_entry: Some(set_entry), .. } = self.functions else {
            return Err(self.failed(-EINVAL, "no function that writes the object's omap"));
        };
        // SAFETY: the caller of `marquetry_ceph_call` promises that it takes the context, and a key and bytes, of which as many are there.
        match unsafe { set_entry(context, key.as_ptr(), key.len(), bytes.as_ptr(), bytes.len()) } {
            errno if errno < 0 => Err(self.failed(errno, "the object's omap could not be written")),
            _ => Ok(()),
        }
    }
}

/// Adds bytes to the vector that `sink` is.
unsafe extern "C" fn put(sink: *mut c_void, bytes: *const u8, length: usize) {
    if sink.is_null() || bytes.is_null() {
        return;
    }
    // SAFETY: it is not NULL, so it is what `Osd::entry` passed, which nothing else uses meanwhile; and the caller passes as many bytes.
    let (found, bytes) =
        unsafe { (&mut *sink.cast::<Vec<u8>>(), core::slice::from_raw_parts(bytes, length)) };
    // What is longer than any of ours is not looked at: it need not be here in full.
    found.extend_from_slice(&bytes[..length.min(ENTRY_BYTES_MAX + 1)]);
}

#[cfg(test)]
mod tests {
    use core::ptr::null;

    use super::*;

    /// An object that has a length and cannot be read, and the answer.
    struct Broken {
        answer: Vec<u8>,
    }

    unsafe extern "C" fn stat(_: *mut c_void, length: *mut u64) -> c_int {
        // SAFETY: `Osd::length` passes a place for a number.
        unsafe { length.write(1000) };
        0
    }

    unsafe extern "C" fn read(_: *mut c_void, _: u64, _: u64, _: *mut u8) -> c_int {
        -61
    }

    unsafe extern "C" fn append(context: *mut c_void, bytes: *const u8, length: usize) -> c_int {
        // SAFETY: the context is `Broken`, of which nobody else has a reference during the call, and the bytes are those of an answer.
        let (broken, bytes) =
            unsafe { (&mut *context.cast::<Broken>(), core::slice::from_raw_parts(bytes, length)) };
        broken.answer.extend_from_slice(bytes);
        0
    }

    #[test]
    fn what_the_osd_reports_is_what_the_call_returns() {
        let mut broken = Broken { answer: Vec::new() };
        let context = (&raw mut broken).cast();
        let functions = Functions {
            context,
            stat: Some(stat),
            read: Some(read),
            append: Some(append),
            write: None,
            entry: None,
            set_entry: None,
        };
        let asked = |method, functions: *const Functions, request: &[u8]| {
            // SAFETY: the functions are those above, for a context that lives longer; the request is a slice.
            unsafe { marquetry_ceph_call(method, functions, request.as_ptr(), request.len()) }
        };
        assert_eq!(asked(2, &raw const functions, b"MQQ1"), -61);
        assert_eq!(asked(9, &raw const functions, b"MQQ1"), -EINVAL);
        assert_eq!(asked(2, null(), b"MQQ1"), -EINVAL);
        let without = Functions { read: None, ..functions };
        assert_eq!(asked(2, &raw const without, b"MQQ1"), -EINVAL);
        // What is wrong with the request is an answer.
        assert_eq!(asked(2, &raw const functions, b"HTTP"), 0);
        assert_eq!(broken.answer[..4], crate::ANSWER);
        // Of a call that writes, an errno is all that there is.
        broken.answer.clear();
        assert_eq!(asked(4, &raw const functions, b"HTTP"), -EOPNOTSUPP);
        assert_eq!(asked(4, &raw const functions, b"MQQ1"), -EINVAL);
        assert!(broken.answer.is_empty());
    }
}
