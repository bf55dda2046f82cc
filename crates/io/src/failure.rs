//! The system's errors as the workspace's.

use std::io;
use std::path::Path;

use marquetry_base::{Detail, Error, ErrorKind};

use crate::pattern::is_pattern;
use crate::shown::shown;

/// What the system reports about an object, as an [`Error`]: what could not be done with it (`opened`, `read at byte 7`), where
/// that is (the object's name), what exactly is wrong, where a program may act on it, and the system's error as its cause.
///
/// ```
/// use marquetry_base::{Detail, ErrorKind};
/// use std::error::Error;
///
/// let system = std::fs::read("nowhere/a.parquet").unwrap_err();
/// let error = marquetry_io::failed("opened", "nowhere/a.parquet", system);
/// assert_eq!((error.kind(), error.detail()), (ErrorKind::Io, Some(Detail::NotFound)));
/// assert_eq!(error.message(), "no such file or directory; there is no directory nowhere");
/// assert_eq!(error.place().object.as_deref(), Some("nowhere/a.parquet"));
/// assert!(error.source().unwrap().is::<std::io::Error>());
/// ```
pub fn failed(done: &str, object: &str, cause: io::Error) -> Error {
    // What one of this crate's readers reports.
    if let Some(error) = cause.get_ref().and_then(|cause| cause.downcast_ref::<Error>()) {
        return error.clone().at(|place| place.object = Some(shown(object)));
    }
    let detail = match cause.kind() {
        io::ErrorKind::NotFound => Some(Detail::NotFound),
        io::ErrorKind::AlreadyExists => Some(Detail::AlreadyExists),
        io::ErrorKind::PermissionDenied => Some(Detail::PermissionDenied),
        _ => None,
    };
    let message = match (detail, cause.get_ref()) {
        // Of the system's own words; where a library found other words, they say more.
        (Some(Detail::NotFound), None) => format!("no such file or directory{}", without_directory(object)),
        (Some(Detail::AlreadyExists), None) => "it already exists".to_owned(),
        (Some(Detail::PermissionDenied), None) => format!("it could not be {done}: permission denied"),
        _ => format!("it could not be {done}: {}", said(&cause)),
    };
    let error = Error::io(message).at(|place| place.object = Some(shown(object))).caused_by(cause);
    match detail {
        Some(detail) => error.with(detail),
        None => error,
    }
}

/// What is said more of a local path that is not there, if a directory of it is missing: which.
pub(crate) fn without_directory(path: &str) -> String {
    if path.contains("://") {
        return String::new();
    }
    let is_missing = |directory: &&Path| {
        // A pattern is no directory.
        let is_named = !directory.as_os_str().is_empty() && !is_pattern(directory);
        is_named && directory.try_exists().is_ok_and(|exists| !exists)
    };
    // The last is the first of the path.
    match Path::new(path).ancestors().skip(1).filter(is_missing).last() {
        Some(directory) => format!("; there is no directory {}", directory.display()),
        None => String::new(),
    }
}

/// What the system says, without its number, which is of no use to people: the cause has it.
pub fn said(cause: &io::Error) -> String {
    let text = cause.to_string();
    let number = cause.raw_os_error().map(|number| format!(" (os error {number})"));
    match number.and_then(|number| text.strip_suffix(&number).map(str::to_owned)) {
        Some(plain) => plain,
        None => text,
    }
}

/// An error about an object that is not the system's.
pub(crate) fn about(object: &str, message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::io(message).at(|place| place.object = Some(shown(object)))
}

/// Says which object an error is about, where there is only one and the error does not say so itself.
pub(crate) fn named(error: Error, only: Option<&str>) -> Error {
    match only {
        Some(name) if error.kind() != ErrorKind::Io || error.place().object.is_none() => {
            error.at(|place| place.object = Some(name.to_owned()))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_numbers_are_the_causes() {
        let full = io::Error::from_raw_os_error(28);
        let numbered = full.to_string();
        let error = failed("written", "a", full);
        assert_eq!(format!("{} (os error 28)", said(&io::Error::from_raw_os_error(28))), numbered);
        assert!(!error.message().contains("28"), "{error}");
        let cause = std::error::Error::source(&error).and_then(|it| it.downcast_ref::<io::Error>());
        assert_eq!(cause.and_then(io::Error::raw_os_error), Some(28));
        assert_eq!(said(&io::Error::other("odd (os error 7)")), "odd (os error 7)");
    }

    #[test]
    fn what_a_program_may_act_on_is_a_detail() {
        let detail = |kind: io::ErrorKind| failed("opened", "a", kind.into()).detail();
        assert_eq!(detail(io::ErrorKind::NotFound), Some(Detail::NotFound));
        assert_eq!(detail(io::ErrorKind::AlreadyExists), Some(Detail::AlreadyExists));
        assert_eq!(detail(io::ErrorKind::PermissionDenied), Some(Detail::PermissionDenied));
        assert_eq!(detail(io::ErrorKind::BrokenPipe), None);
    }

    #[test]
    fn of_a_missing_path_the_first_missing_directory_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let of =
            |name: &str| failed("opened", &path(name), io::ErrorKind::NotFound.into()).message().to_owned();
        assert_eq!(of("a.parquet"), "no such file or directory");
        assert_eq!(
            of("no/such/a.parquet"),
            format!("no such file or directory; there is no directory {}", path("no"))
        );
        assert_eq!(without_directory(&path("a*/b.parquet")), "");
        assert_eq!(without_directory("s3://bucket/a.parquet"), "");
    }

    #[test]
    fn what_is_said_more_exactly_stays() {
        let taken = io::Error::new(io::ErrorKind::AlreadyExists, "notes.txt is there");
        let error = failed("written", "a", taken);
        assert_eq!(error.message(), "it could not be written: notes.txt is there");
        assert_eq!(error.detail(), Some(Detail::AlreadyExists));
        assert_eq!(
            failed("written", "a", io::ErrorKind::AlreadyExists.into()).message(),
            "it already exists"
        );
    }
}
