//! Errors as exceptions: classes of `marquetry._errors`, one for each kind, with the place as fields.

use marquetry::base::{Detail, ErrorKind};
use marquetry::{CopyWords, Error};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

/// An exception for an error.
pub(crate) fn raised(py: Python<'_>, error: &Error) -> PyErr {
    match exception(py, error) {
        Ok(exception) => PyErr::from_value(exception),
        Err(failed) => failed,
    }
}

fn exception<'py>(py: Python<'py>, error: &Error) -> PyResult<Bound<'py, PyAny>> {
    let place = error.place();
    let fields = PyDict::new(py);
    fields.set_item("message", error.message())?;
    fields.set_item("address", place.object.as_deref())?;
    let of_place = PyDict::new(py);
    of_place.set_item("row_group", place.row_group)?;
    of_place.set_item("column", place.column.as_deref())?;
    of_place.set_item("page", place.page)?;
    of_place.set_item("row", place.row)?;
    of_place.set_item("offset", place.offset)?;
    fields.set_item("place", of_place)?;
    if let Some(Detail::Limit(limit)) = error.detail() {
        fields.set_item("limit", limit.name())?;
    }
    if let Some(Detail::Option(option)) = error.detail() {
        fields.set_item("option", spelled(option))?;
    }
    if let Some(Detail::AdmittedBy(options)) = error.detail() {
        fields.set_item("admitted_by", options.iter().map(|option| spelled(option)).collect::<Vec<_>>())?;
    }
    let parts = error.parts().iter().map(|part| exception(py, part)).collect::<PyResult<Vec<_>>>()?;
    fields.set_item("parts", parts)?;
    class(py, class_of(error))?.call((error.to_string(),), Some(&fields))
}

/// An option as an argument of Python's, where one that is a word of the language has an underscore.
fn spelled(option: &str) -> &str {
    match CopyWords::word_for(option) {
        "from" => "from_",
        word => word,
    }
}

/// The class of an error: by its kind, and where Python has a class for the detail, by that.
fn class_of(error: &Error) -> &'static str {
    match (error.kind(), error.detail()) {
        (ErrorKind::Io, Some(Detail::NotFound)) => "NotFound",
        (ErrorKind::Io, Some(Detail::AlreadyExists)) => "AlreadyExists",
        (ErrorKind::Io, Some(Detail::PermissionDenied)) => "PermissionDenied",
        (ErrorKind::Io, _) => "InputOutputError",
        (ErrorKind::Corrupt, _) => "InvalidFile",
        (ErrorKind::Unsupported, _) => "Unsupported",
        (ErrorKind::LimitExceeded, _) => "LimitExceeded",
        (ErrorKind::Misuse, _) => "InvalidArgument",
        (ErrorKind::Conversion, _) => "ConversionError",
        (ErrorKind::Refused, _) => "Refused",
        (ErrorKind::Cancelled, _) => "Cancelled",
        (ErrorKind::Internal, _) => "InternalError",
        _ => "Error",
    }
}

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyType>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("marquetry._errors").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?.cast_into::<PyType>()?)
}

/// A mistake of the caller's that only the door sees.
pub(crate) fn misuse(py: Python<'_>, message: impl Into<String>) -> PyErr {
    raised(py, &Error::misuse(message.into()))
}
