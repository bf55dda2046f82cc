//! What the host passes in, and where answers are written.

use core::ffi::{CStr, c_char};

use marquetry_base::{Error, Result};

/// A type that may cross the border as bytes: a `repr(C)` struct of numbers, pointers and functions that may be NULL, which begins with
/// `struct_size`.
///
/// # Safety
///
/// Any bytes that the host's compiler makes of such a struct are a value of it, and so are zeros.
pub(crate) unsafe trait BySize: Copy {}

macro_rules! sized {
    ($($name:ident),*) => { $(
        // SAFETY: it is such a struct: see abi.rs.
        unsafe impl BySize for crate::abi::$name {}
    )* };
}

sized!(
    marquetry_budget,
    marquetry_footer_options,
    marquetry_reader_options,
    marquetry_sstable_options,
    marquetry_writer_options,
    marquetry_column_options,
    marquetry_cql_options
);

/// Options; `None` if they are NULL. What the host does not know is 0; what it knows and this library does not must be.
pub(crate) fn options<T: BySize>(given: *const T) -> Result<Option<T>, Error> {
    if given.is_null() {
        return Ok(None);
    }
    // SAFETY: the host promises a struct that begins with its size.
    let size = unsafe { *given.cast::<usize>() };
    if !is_size(size) {
        return Err(Error::misuse(format!("a struct_size of {size}: it must be the struct's sizeof")));
    }
    // SAFETY: the host promises `size` bytes; zeros are a value, and so is what the host's compiler made.
    unsafe {
        let mut value: T = core::mem::zeroed();
        let bytes: *mut u8 = (&raw mut value).cast();
        bytes.copy_from_nonoverlapping(given.cast(), size.min(size_of::<T>()));
        for at in size_of::<T>()..size {
            if *given.cast::<u8>().add(at) != 0 {
                let message = "options that this version of the library does not know".to_string();
                return Err(Error::unsupported(message));
            }
        }
        Ok(Some(value))
    }
}

/// The same; all are 0 if they are NULL.
pub(crate) fn options_or_default<T: BySize>(given: *const T) -> Result<T> {
    // SAFETY: zeros are a value.
    Ok(options(given)?.unwrap_or_else(|| unsafe { core::mem::zeroed() }))
}

/// Whether it can be the size of a struct that begins with a `size_t`, of any version. Half a pointer is never taken for one.
fn is_size(size: usize) -> bool {
    (size_of::<usize>()..=1 << 16).contains(&size) && size.is_multiple_of(align_of::<usize>())
}

/// Writes an answer to a struct of the host's, which begins with its size: as much as there is room for. The size stays.
pub(crate) fn answer<T: Copy>(out: *mut T, value: T) -> Result<()> {
    if out.is_null() {
        return Err(Error::misuse("an answer is to be written to NULL"));
    }
    const START: usize = size_of::<usize>();
    // SAFETY: the host promises a struct that begins with its size, of so many bytes. Only bytes are copied.
    unsafe {
        let size = *out.cast::<usize>();
        if !is_size(size) {
            return Err(Error::misuse(format!("a struct_size of {size}: it must be the struct's sizeof")));
        }
        let bytes = size.min(size_of::<T>()) - START;
        let (from, to) = ((&raw const value).cast::<u8>(), out.cast::<u8>());
        to.add(START).copy_from_nonoverlapping(from.add(START), bytes);
        for at in size_of::<T>()..size {
            to.add(at).write(0);
        }
    }
    Ok(())
}

/// Writes an answer.
pub(crate) fn put<T>(out: *mut T, value: T) -> Result<()> {
    if out.is_null() {
        return Err(nowhere());
    }
    // SAFETY: the host promises that it is NULL or that a value can be written there. What is there is not dropped.
    unsafe { out.write(value) };
    Ok(())
}

/// Writes what `make` makes for the host to own. Nothing is made for NULL.
pub(crate) fn put_new<T>(out: *mut T, make: impl FnOnce() -> Result<T>) -> Result<()> {
    if out.is_null() {
        return Err(nowhere());
    }
    put(out, make()?)
}

fn nowhere() -> Error {
    Error::misuse("an answer is to be written to NULL")
}

/// An array of the host's; empty if it is NULL and says that it has no elements.
pub(crate) fn array<'a, T>(start: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if start.is_null() {
        return Err(Error::misuse(format!("{count} {what} at NULL")));
    }
    if !start.is_aligned() || count > isize::MAX.unsigned_abs() / size_of::<T>().max(1) {
        return Err(Error::misuse(format!("{what}: not an array of {count}")));
    }
    // SAFETY: the host promises so many values, which stay as they are during the call; the checks are those of `from_raw_parts`.
    Ok(unsafe { core::slice::from_raw_parts(start, count) })
}

/// A text of the host's; `None` if it is NULL.
pub(crate) fn text<'a>(given: *const c_char, what: &str) -> Result<Option<&'a str>> {
    if given.is_null() {
        return Ok(None);
    }
    // SAFETY: the host promises a text that ends with NUL, which stays as it is during the call.
    let text = unsafe { CStr::from_ptr(given) };
    text.to_str().map(Some).map_err(|_| Error::misuse(format!("{what} that is not UTF-8")))
}

/// Texts of the host's.
pub(crate) fn texts<'a>(start: *const *const c_char, count: usize, what: &str) -> Result<Vec<&'a str>> {
    let given = array(start, count, what)?;
    let one = |&given: &*const c_char| {
        text(given, what)?.ok_or_else(|| Error::misuse(format!("one of the {what} is NULL")))
    };
    given.iter().map(one).collect()
}

/// A switch of the host's.
pub(crate) fn flag(given: i32, name: &'static str) -> Result<bool> {
    match given {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(Error::option(name, format!("{other}, which is neither 0 nor 1"))),
    }
}

/// A number of the host's, whose 0 means a default.
pub(crate) fn or_default(given: u64, default: usize, name: &'static str) -> Result<usize> {
    match given {
        0 => Ok(default),
        given => usize::try_from(given).map_err(|_| Error::option(name, "more than memory can have")),
    }
}
