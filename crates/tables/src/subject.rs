//! What an error is about.

use marquetry_base::Error;

/// Adds the object's name to an error, unless it has one.
pub(crate) fn named(error: Error, name: &str) -> Error {
    error.at(|place| place.object = (!name.is_empty()).then(|| name.to_string()))
}
