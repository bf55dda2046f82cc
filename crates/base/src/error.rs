//! Errors, sorted by blame, with the place where they occurred.

use alloc::borrow::Cow;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::Limit;

/// The result type of the workspace.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Whose fault an [`Error`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file's: it contradicts its format or itself.
    Corrupt,
    /// Nobody's: the file uses a part of the format that is not supported.
    Unsupported,
    /// The file's or the host's: a [`Limits`](crate::Limits) value is exceeded.
    LimitExceeded,
    /// The host's: input or output failed, as [`Machine::fail`](crate::Machine::fail) reported.
    Io,
    /// The caller's: the machine was used against its contract, or asked for something impossible.
    Misuse,
    /// The data's: a value does not fit the type that it is converted to.
    Conversion,
    /// The other side's: a server was reached, and refuses or fails.
    Refused,
    /// Nobody's: the caller cancelled the work.
    Cancelled,
    /// Ours: a check found a bug.
    Internal,
}

/// What exactly is wrong, where a program may act on it. A kind says whose fault an error is; a detail, what to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Detail {
    /// This limit is exceeded; a higher one would admit the file.
    Limit(Limit),
    /// More than the format, a layout in memory or this library can take at all. No limit would admit it.
    TooLarge,
    /// The allocator refused this many bytes.
    OutOfMemory(usize),
    /// A checksum differs from the one stored.
    Checksum,
    /// The file or a part of it is encrypted.
    Encrypted,
    /// This encoding, by the format's number (`Encoding` in parquet.thrift), is not known.
    Encoding(i32),
    /// This codec, by the format's number (`CompressionCodec` in parquet.thrift), is not known or not available.
    Codec(i32),
    /// Text is not UTF-8.
    NotUtf8,
    /// The object does not exist.
    NotFound,
    /// The object already exists and may not be replaced.
    AlreadyExists,
    /// Whoever runs this may not use the object so.
    PermissionDenied,
    /// Another value of one of these options of the caller's would admit it. Named as in the API, the most fitting first:
    /// `short_rows`, `schema`.
    AdmittedBy(&'static [&'static str]),
    /// The address is of a kind that is not supported.
    Address,
    /// This feature of the package `marquetry` is not compiled in; a build with it would admit it: `object-store`, `tls`.
    Feature(&'static str),
    /// This option of the caller's is wrong. Named as in the API: `sort`, `partition_by`.
    Option(&'static str),
}

/// Where an error occurred, as far as is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The name of the file or object, where the host gave one.
    pub object: Option<String>,
    /// The row group, counted from 0.
    pub row_group: Option<u64>,
    /// The column's path, dotted.
    pub column: Option<String>,
    /// The page in its column chunk, counted from 0, dictionary pages included.
    pub page: Option<u64>,
    /// The row in that file or object, counted from 0, whatever part of it was read. `None` where it is not known, as
    /// of rows that were sorted.
    pub row: Option<u64>,
    /// The byte in the file.
    pub offset: Option<u64>,
}

/// A typed error: kind, message, place. Cloning it is cheap, and it is one pointer large.
///
/// Two errors are equal where kind, detail, message and place are; what caused them is not compared.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    detail: Option<Detail>,
    message: Cow<'static, str>,
    place: Place,
    cause: Option<Arc<dyn core::error::Error + Send + Sync>>,
    /// The errors that this one lists, and the number of those that it does not.
    parts: Vec<Error>,
    parts_unlisted: usize,
}

impl PartialEq for Inner {
    fn eq(&self, other: &Inner) -> bool {
        (self.kind, self.detail, &self.message, &self.place, &self.parts)
            == (other.kind, other.detail, &other.message, &other.place, &other.parts)
    }
}

impl Eq for Inner {}

impl Error {
    /// An error of `kind` at a place not yet known.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Error {
        Error(Arc::new(Inner {
            kind,
            detail: None,
            message: message.into(),
            place: Place::default(),
            cause: None,
            parts: Vec::new(),
            parts_unlisted: 0,
        }))
    }

    /// Several errors as one, which lists them, and the number of further ones that are not kept. It has the kind of
    /// the first, and the detail and the object that all of them have.
    pub fn all(parts: Vec<Error>, unlisted: usize) -> Error {
        let kind = parts.first().map_or(ErrorKind::Internal, Error::kind);
        let shared = parts.first().filter(|first| parts.iter().all(|part| part.detail() == first.detail()));
        let detail = shared.and_then(Error::detail);
        let shared = parts
            .first()
            .filter(|first| parts.iter().all(|part| part.place().object == first.place().object));
        let object = shared.and_then(|first| first.place().object.clone());
        let mut message = String::new();
        for part in &parts {
            // What all have in common is said once.
            let mut listed = part.clone();
            let inner = Arc::make_mut(&mut listed.0);
            if detail.is_some() {
                inner.detail = None;
            }
            if object.is_some() {
                inner.place.object = None;
            }
            message.push_str(if message.is_empty() { "" } else { "; " });
            message.push_str(&listed.to_string());
        }
        if unlisted > 0 {
            message.push_str(&alloc::format!("; and {unlisted} more"));
        }
        let mut all = Error::new(kind, message);
        let inner = Arc::make_mut(&mut all.0);
        (inner.detail, inner.place.object) = (detail, object);
        (inner.parts, inner.parts_unlisted) = (parts, unlisted);
        all
    }

    /// The file contradicts its format or itself.
    pub fn corrupt(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Corrupt, message)
    }

    /// The file uses a part of the format that is not supported.
    pub fn unsupported(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Unsupported, message)
    }

    /// The caller broke the contract.
    pub fn misuse(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Misuse, message)
    }

    /// Input or output failed.
    pub fn io(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Io, message)
    }

    /// A value does not fit the type that it is converted to.
    pub fn conversion(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Conversion, message)
    }

    /// A server was reached, and refuses or fails.
    pub fn refused(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Refused, message)
    }

    /// A check found a bug in this library.
    pub fn internal(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Internal, message)
    }

    /// More than `limit` admits.
    pub fn limit(limit: Limit, message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::LimitExceeded, message).with(Detail::Limit(limit))
    }

    /// More than the format, a layout in memory or this library can take at all.
    pub fn too_large(message: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::LimitExceeded, message).with(Detail::TooLarge)
    }

    /// A checksum differs from the one stored.
    pub fn checksum(message: impl Into<Cow<'static, str>>) -> Error {
        Error::corrupt(message).with(Detail::Checksum)
    }

    /// The file or a part of it is encrypted.
    pub fn encrypted(message: impl Into<Cow<'static, str>>) -> Error {
        Error::unsupported(message).with(Detail::Encrypted)
    }

    /// The allocator refused.
    pub fn out_of_memory(bytes: usize) -> Error {
        Error::new(ErrorKind::LimitExceeded, alloc::format!("{bytes} bytes of memory could not be allocated"))
            .with(Detail::OutOfMemory(bytes))
    }

    /// The caller cancelled the work.
    pub fn cancelled() -> Error {
        Error::new(ErrorKind::Cancelled, "cancelled")
    }

    /// One of the caller's options is wrong. `name` is as in the API, in `snake_case`.
    pub fn option(name: &'static str, message: impl Into<Cow<'static, str>>) -> Error {
        Error::misuse(message).with(Detail::Option(name))
    }

    /// Adds what exactly is wrong.
    #[must_use]
    pub fn with(mut self, detail: Detail) -> Error {
        Arc::make_mut(&mut self.0).detail = Some(detail);
        self
    }

    /// Adds the cause, which [`core::error::Error::source`] returns.
    #[must_use]
    pub fn caused_by(mut self, cause: impl core::error::Error + Send + Sync + 'static) -> Error {
        Arc::make_mut(&mut self.0).cause = Some(Arc::new(cause));
        self
    }

    /// Blames somebody else: where a layer knows better whose fault it is. All else stays.
    #[must_use]
    pub fn blamed(mut self, kind: ErrorKind) -> Error {
        Arc::make_mut(&mut self.0).kind = kind;
        self
    }

    /// Says what is wrong in other words. All else stays, but for the [parts](Error::parts), of which these words speak.
    #[must_use]
    pub fn reworded(mut self, message: impl Into<Cow<'static, str>>) -> Error {
        let inner = Arc::make_mut(&mut self.0);
        inner.message = message.into();
        (inner.parts, inner.parts_unlisted) = (Vec::new(), 0);
        self
    }

    /// Whose fault it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What exactly is wrong, where a program may act on it.
    pub fn detail(&self) -> Option<Detail> {
        self.0.detail
    }

    /// What is wrong, for people, without the place. Programs decide by [`Error::kind`] and [`Error::detail`].
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The errors that it lists ([`Faults`](crate::Faults)), each with its own detail and place; empty for a single
    /// error.
    pub fn parts(&self) -> &[Error] {
        &self.0.parts
    }

    /// The number of further errors, which it does not list.
    pub fn parts_unlisted(&self) -> usize {
        self.0.parts_unlisted
    }

    /// Where it occurred.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Changes what is known of the place: where an outer layer counts or names otherwise than the inner one did.
    #[must_use]
    pub fn replaced(mut self, change: impl FnOnce(&mut Place)) -> Error {
        change(&mut Arc::make_mut(&mut self.0).place);
        self
    }

    /// Fills in what is not yet known about the place. What an inner layer filled in stays.
    #[must_use]
    pub fn at(mut self, fill: impl FnOnce(&mut Place)) -> Error {
        let mut outer = Place::default();
        fill(&mut outer);
        let place = &mut Arc::make_mut(&mut self.0).place;
        place.object = place.object.take().or(outer.object);
        place.row_group = place.row_group.or(outer.row_group);
        place.column = place.column.take().or(outer.column);
        place.page = place.page.or(outer.page);
        place.row = place.row.or(outer.row);
        place.offset = place.offset.or(outer.offset);
        self
    }

    /// Leaves out the row and the row group, where their numbers would mislead.
    #[must_use]
    pub fn without_row(mut self) -> Error {
        let place = &mut Arc::make_mut(&mut self.0).place;
        (place.row, place.row_group) = (None, None);
        self
    }

    /// Fills in the byte offset.
    #[must_use]
    pub fn at_offset(self, offset: u64) -> Error {
        self.at(|place| place.offset = Some(offset))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Detail::Option(name)) = self.0.detail {
            write!(f, "{name}: ")?;
        }
        f.write_str(&self.0.message)?;
        let place = self.place();
        let mut separator = " (";
        let mut part = |f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>| {
            f.write_str(separator)?;
            separator = ", ";
            f.write_fmt(text)
        };
        if let Some(column) = &place.column {
            part(f, format_args!("column {column}"))?;
        }
        if let Some(row) = place.row {
            part(f, format_args!("row {row}"))?;
        }
        if let Some(row_group) = place.row_group {
            part(f, format_args!("row group {row_group}"))?;
        }
        if let Some(page) = place.page {
            part(f, format_args!("page {page}"))?;
        }
        if let Some(offset) = place.offset {
            part(f, format_args!("byte {offset}"))?;
        }
        if let Some(object) = &place.object {
            part(f, format_args!("{object}"))?;
        }
        if *place == Place::default() { Ok(()) } else { f.write_str(")") }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl core::error::Error for Error {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        self.0.cause.as_deref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_small() {
        assert_eq!(size_of::<Error>(), size_of::<usize>());
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn inner_places_win() {
        let error = Error::corrupt("bad level").at(|place| place.page = Some(3)).at(|place| {
            place.page = Some(9);
            place.column = Some("a.b".to_string());
        });
        assert_eq!(error.to_string(), "bad level (column a.b, page 3)");
        assert_eq!(error.clone().at_offset(7).to_string(), "bad level (column a.b, page 3, byte 7)");
        assert_eq!(Error::misuse("no").to_string(), "no");
    }

    #[test]
    fn detail_and_cause_survive_what_outer_layers_change() {
        let error = Error::checksum("bad page").caused_by(Error::io("gone")).at(|place| place.row = Some(3));
        let outer = error
            .clone()
            .replaced(|place| place.row = Some(1003))
            .blamed(ErrorKind::Io)
            .reworded("a bad page")
            .at_offset(7);
        assert_eq!(outer.to_string(), "a bad page (row 1003, byte 7)");
        assert_eq!((outer.kind(), outer.detail()), (ErrorKind::Io, Some(Detail::Checksum)));
        let cause = core::error::Error::source(&outer).map(ToString::to_string);
        assert_eq!(cause.as_deref(), Some("gone"));
        assert_eq!(error.to_string(), "bad page (row 3)");
    }
}
