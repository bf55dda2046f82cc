//! What the machines of a text answer that they should not.

use std::fmt;

use marquetry_base::{Error, ErrorKind, Result, Step};
use marquetry_parquet::write::Fed;

/// Checks that a machine took what it asked for.
///
/// # Errors
///
/// `Internal` if it did not.
pub(super) fn fed<T>(fed: Fed<T>) -> Result<()> {
    match fed {
        Fed::Taken => Ok(()),
        Fed::Full(_) => Err(Error::internal("a machine that asked for bytes has no room")),
    }
}

/// The error for a step that the machine cannot make.
pub(super) fn unexpected<T: fmt::Debug>(step: &Step<T>) -> Error {
    Error::new(ErrorKind::Internal, format!("an unexpected step of a text's machine: {step:?}"))
}
