//! What an error is about.

use std::path::Path;

use marquetry_base::{Detail, Error, ErrorKind, Result};
use marquetry_io::shown;
use marquetry_io::store::{Found, Store};

/// Adds the object's name to an error, unless it has one.
pub(crate) fn named(error: Error, name: &str) -> Error {
    error.at(|place| place.object = (!name.is_empty()).then(|| name.to_string()))
}

/// Names the object that rows come from in an error about them; other errors of writing are the destination's.
pub(crate) fn of_rows(error: Error, subject: &str) -> Error {
    match error.kind() {
        ErrorKind::Conversion | ErrorKind::Corrupt => named(error, subject),
        _ => error,
    }
}

/// Names the object of an error anew: what is written is read again by a path that nobody else knows.
pub(crate) fn renamed(error: Error, name: &str) -> Error {
    error.replaced(|place| place.object = (!name.is_empty()).then(|| name.to_string()))
}

/// Whether a path means standard input, in any store.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// What people call what is at a path: the path, without what nobody may see; what is not UTF-8 in it is replaced.
pub(crate) fn name_of(path: &Path) -> String {
    if is_stdin(path) { "standard input".to_string() } else { shown(&path.to_string_lossy()) }
}

/// Checks that nothing is at the path of a new object. What cannot be looked at is left to the object's creation.
///
/// # Errors
///
/// `Io` with [`Detail::AlreadyExists`].
pub(crate) fn check_nothing_at(store: &dyn Store, path: &Path) -> Result<()> {
    match store.look(path) {
        Ok(Found::Nothing) | Err(_) => Ok(()),
        Ok(_) => Err(named(
            Error::io("already exists").with(Detail::AlreadyExists),
            &shown(&path.to_string_lossy()),
        )),
    }
}
