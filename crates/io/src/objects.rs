//! What an asynchronous driver reads and writes: sources, or sinks.

use std::future::{Future, Ready};
use std::ops::Range;

use marquetry_base::{Bytes, Error, Object, Result};

use crate::async_sink::AsyncByteSink;
use crate::async_source::AsyncByteSource;
use crate::sink::ByteSinks;
use crate::source::ByteSources;

/// The objects of a machine that is being driven: [`ByteSources`], or [`ByteSinks`]. No other type can be.
pub trait Objects {
    /// Resolves to an object's length.
    type Length: Future<Output = Result<u64>> + Unpin;
    /// Resolves to the bytes read.
    type Read: Future<Output = Result<Bytes>> + Unpin;
    /// Resolves when the bytes are appended.
    type Append: Future<Output = Result<()>> + Unpin;

    /// The name of the only object, if there is only one: then it is the one that an error is about.
    fn only(&self) -> Option<&str>;

    /// An object's length.
    ///
    /// # Errors
    ///
    /// `Misuse` if there is no such object, or no object has a length yet.
    fn length(&mut self, object: Object) -> Result<Self::Length>;

    /// The bytes of a range.
    ///
    /// # Errors
    ///
    /// `Misuse` if there is no such object.
    fn read(&mut self, object: Object, range: Range<u64>) -> Result<Self::Read>;

    /// Whether bytes can be appended to an object at all.
    ///
    /// # Errors
    ///
    /// `Misuse` if they cannot.
    fn may_append(&mut self, object: Object) -> Result<()>;

    /// Adds bytes to an object's end.
    ///
    /// # Errors
    ///
    /// `Misuse` if there is no such object.
    fn append(&mut self, object: Object, bytes: Bytes) -> Result<Self::Append>;
}

impl<S: AsyncByteSource> Objects for ByteSources<S> {
    type Length = S::Length;
    type Read = S::Read;
    type Append = Ready<Result<()>>;

    fn only(&self) -> Option<&str> {
        ByteSources::only(self).map(AsyncByteSource::name)
    }

    fn length(&mut self, object: Object) -> Result<S::Length> {
        self.get(object).map(AsyncByteSource::length)
    }

    fn read(&mut self, object: Object, range: Range<u64>) -> Result<S::Read> {
        self.get(object).map(|source| source.read(range))
    }

    fn may_append(&mut self, object: Object) -> Result<()> {
        Err(Error::misuse(format!("the machine writes to object {}, and this driver only reads", object.0)))
    }

    fn append(&mut self, object: Object, _bytes: Bytes) -> Result<Self::Append> {
        Err(Error::internal(format!("object {} is only read", object.0)))
    }
}

impl<S: AsyncByteSink> Objects for ByteSinks<S> {
    type Length = Ready<Result<u64>>;
    type Read = S::Read;
    type Append = S::Append;

    fn only(&self) -> Option<&str> {
        ByteSinks::only(self).map(AsyncByteSink::name)
    }

    fn length(&mut self, _object: Object) -> Result<Self::Length> {
        Err(Error::misuse("this driver reads only what was written"))
    }

    fn read(&mut self, object: Object, range: Range<u64>) -> Result<S::Read> {
        self.get(object).map(|sink| sink.read(range))
    }

    fn may_append(&mut self, object: Object) -> Result<()> {
        self.get(object).map(|_| ())
    }

    fn append(&mut self, object: Object, bytes: Bytes) -> Result<S::Append> {
        self.get(object).map(|sink| sink.append(bytes))
    }
}
