//! Where a driver gets an object's bytes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{Bytes, Error, Object, Result};

use crate::failure::about;

/// The bytes of one object, read by blocking.
///
/// The object does not change while it is read: its length stays what was first returned, and a source whose object
/// shrank fails.
pub trait ByteSource {
    /// The object's name for people: a path, an address. Part of every error.
    fn name(&self) -> &str;

    /// The object's length in bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io).
    fn length(&self) -> Result<u64>;

    /// The bytes of `range`, all of them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io), also if the object ends before the range does;
    /// [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) where the memory cannot be allocated.
    fn read(&self, range: Range<u64>) -> Result<Bytes>;

    /// Says which ranges will be read, the most urgent first, so that a source whose reads wait for long can fetch
    /// several at a time, and ahead. A hint: any range may be read, or not be read, and what fails is reported by the
    /// read. Does nothing unless a source has a use for it.
    fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
        let _ = ranges;
    }
}

impl<S: ByteSource + ?Sized> ByteSource for &S {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn length(&self) -> Result<u64> {
        (**self).length()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        (**self).read(range)
    }

    fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
        (**self).will_read(ranges);
    }
}

impl<S: ByteSource + ?Sized> ByteSource for Box<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn length(&self) -> Result<u64> {
        (**self).length()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        (**self).read(range)
    }

    fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
        (**self).will_read(ranges);
    }
}

impl<S: ByteSource + ?Sized> ByteSource for Arc<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn length(&self) -> Result<u64> {
        (**self).length()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        (**self).read(range)
    }

    fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
        (**self).will_read(ranges);
    }
}

/// What identifies an object and its content: if it changes, so did the object, as far as its store can tell (a file
/// that is written twice within a tick of the file system's clock need not have two versions).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectVersion {
    bytes: u64,
    tag: String,
}

impl ObjectVersion {
    /// The version of an object of this length. The tag changes whenever the content does: an ETag; a file's time of
    /// modification and what tells it from other files.
    pub fn new(bytes: u64, tag: impl Into<String>) -> ObjectVersion {
        ObjectVersion { bytes, tag: tag.into() }
    }

    /// The object's length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Checks that an object with this version still has it.
    ///
    /// # Errors
    ///
    /// `Io` if it has another one now.
    pub fn expect(&self, now: &ObjectVersion) -> Result<()> {
        let message = match (self.bytes, now.bytes) {
            _ if self == now => return Ok(()),
            (before, now) if before == now => CHANGED.to_owned(),
            (before, now) => format!("{CHANGED}: it had {before} bytes, and now has {now}"),
        };
        Err(Error::io(message))
    }

    /// What changes with the content.
    pub fn tag(&self) -> &str {
        &self.tag
    }
}

/// What is wrong with an object that is another one by now.
pub(crate) const CHANGED: &str = "it was changed while it was read";

/// Which source each of a machine's objects has.
#[derive(Debug, Clone)]
pub struct ByteSources<S> {
    by_object: BTreeMap<Object, S>,
}

impl<S> ByteSources<S> {
    /// No sources yet.
    pub fn new() -> ByteSources<S> {
        ByteSources { by_object: BTreeMap::new() }
    }

    /// Adds a source, which replaces any that `object` had.
    #[must_use]
    pub fn with(mut self, object: Object, source: S) -> ByteSources<S> {
        self.by_object.insert(object, source);
        self
    }

    /// The source of `object`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) if it has none.
    pub fn get(&self, object: Object) -> Result<&S> {
        self.by_object
            .get(&object)
            .ok_or_else(|| Error::misuse(format!("the driver was given no source for object {}", object.0)))
    }

    /// The source, if there is only one: then every error is about it.
    pub(crate) fn only(&self) -> Option<&S> {
        match self.by_object.len() {
            1 => self.by_object.values().next(),
            _ => None,
        }
    }
}

impl<S> Default for ByteSources<S> {
    fn default() -> ByteSources<S> {
        ByteSources::new()
    }
}

/// The error for a range that reaches beyond an object's end.
pub(crate) fn beyond_end(name: &str, range: &Range<u64>, length: u64) -> Error {
    about(name, format!("bytes {} to {} could not be read: it has {length} bytes", range.start, range.end))
}

/// The error for an object that ends earlier than it did when it was opened.
#[cfg(any(feature = "blocking", feature = "uring"))]
pub(crate) fn shrank(name: &str, length: u64, at: u64) -> Error {
    about(
        name,
        format!("it shrank while it was read: it had {length} bytes and now ends at byte {at} or before"),
    )
}

/// The error for an empty path.
#[cfg(any(feature = "blocking", feature = "uring"))]
pub(crate) fn nameless() -> Error {
    Error::io("a file without a name: the path is empty")
}

/// What a path may lead to.
#[cfg(any(feature = "blocking", feature = "uring"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    Regular,
    Directory,
    Pipe,
    Socket,
    Device,
}

#[cfg(any(feature = "blocking", feature = "uring"))]
impl FileKind {
    /// Fails with what it is, unless it is a regular file: machines read from the end of an object and from its
    /// middle.
    pub(crate) fn expect_regular(self) -> Result<(), &'static str> {
        match self {
            FileKind::Regular => Ok(()),
            FileKind::Directory => Err("it is a directory"),
            FileKind::Pipe => {
                Err("it is a pipe, which cannot be read from its end; write it to a file first")
            }
            FileKind::Socket => Err("it is a socket"),
            FileKind::Device => Err("it is a device, not a regular file"),
        }
    }
}
