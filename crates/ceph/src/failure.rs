//! Errors of others.

use arrow_schema::ArrowError;
use marquetry_base::Error;

/// An error of arrow-rs, which was given nothing that it should refuse.
pub(crate) fn of_arrow(error: ArrowError) -> Error {
    Error::internal(format!("Arrow: {error}")).caused_by(error)
}
