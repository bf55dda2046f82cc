//! What an error is about.

use std::path::Path;

use marquetry_base::{Detail, Error, Result};
use marquetry_io::store::{Found, Store};

/// Adds the object's name to an error, unless it has one.
pub(crate) fn named(error: Error, name: &str) -> Error {
    error.at(|place| place.object = (!name.is_empty()).then(|| name.to_string()))
}

/// Checks that nothing is at the path of a new object. What cannot be looked at is left to the object's creation.
///
/// # Errors
///
/// `Io` with [`Detail::AlreadyExists`].
pub(crate) fn check_nothing_at(store: &dyn Store, path: &Path) -> Result<()> {
    match store.look(path) {
        Ok(Found::Nothing) | Err(_) => Ok(()),
        Ok(_) => {
            Err(named(Error::io("already exists").with(Detail::AlreadyExists), &path.display().to_string()))
        }
    }
}
