//! Bytes that cross the border, in neither direction copied.

use core::ffi::c_void;
use core::ptr::{null, null_mut};

use marquetry_base::{Bytes, Error, Result};

use crate::abi::{marquetry_bytes, marquetry_status};
use crate::handles::{boxed, guarded};
use crate::reserve;

/// Called once when nothing needs supplied bytes any more: on whatever thread releases them last, from any function of the library or from the
/// release function of an Arrow array. It must not use the handle that is being used.
pub type marquetry_release = Option<extern "C" fn(context: *mut c_void, data: *const u8, length: usize)>;

/// Bytes of the host's.
pub(crate) struct Lent {
    data: *const u8,
    length: usize,
    release: marquetry_release,
    context: *mut c_void,
}

// SAFETY: the host promises that the bytes stay as they are until they are released, and that `release` may be called on any thread.
unsafe impl Send for Lent {}
// SAFETY: as above; they are only read.
unsafe impl Sync for Lent {}

impl Lent {
    pub(crate) fn new(
        data: *const u8,
        length: usize,
        release: marquetry_release,
        context: *mut c_void,
    ) -> Lent {
        Lent { data, length, release, context }
    }

    /// As bytes, which are released with the last of them.
    pub(crate) fn into_bytes(self) -> Result<Bytes> {
        if self.data.is_null() && self.length > 0 {
            return Err(Error::misuse(format!("{} bytes at NULL", self.length)));
        }
        if isize::try_from(self.length).is_err() {
            return Err(Error::misuse("more bytes than memory can have"));
        }
        if self.length == 0 {
            return Ok(Bytes::new());
        }
        Ok(Bytes::from_owner(self))
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: the host promises so many bytes until they are released; `into_bytes` has checked pointer and length.
        unsafe { core::slice::from_raw_parts(self.data, self.length) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            release(self.context, self.data, self.length);
        }
    }
}

/// Hands bytes over.
pub(crate) fn hand_over(bytes: Bytes) -> Result<marquetry_bytes> {
    let owner = reserve::kept(boxed(bytes)?)?;
    let (data, length) = (owner.as_ptr(), owner.len());
    Ok(marquetry_bytes { data, length, owner: Box::into_raw(owner).cast() })
}

/// Releases bytes that the library handed over, and empties the struct, so that a second call does nothing.
///
/// * `bytes`: in and out, owned by the host. NULL does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_bytes_release(bytes: *mut marquetry_bytes) -> marquetry_status {
    if bytes.is_null() {
        return marquetry_status::Ok;
    }
    let empty = marquetry_bytes { data: null(), length: 0, owner: null_mut() };
    // SAFETY: the host promises a struct that the library filled, or that was released.
    let owner: *mut Bytes = unsafe { bytes.replace(empty) }.owner.cast();
    if owner.is_null() {
        return marquetry_status::Ok;
    }
    // SAFETY: from `hand_over`; the struct does not have it any more.
    match guarded(|| drop(unsafe { Box::from_raw(owner) })) {
        Ok(()) => marquetry_status::Ok,
        Err(_) => marquetry_status::Error,
    }
}
