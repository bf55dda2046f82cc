//! What an asynchronous driver reads and writes: sources, or sinks.

use std::future::{Future, Ready};
use std::ops::Range;

use marquetry_base::{Bytes, Error, Object, Result};

use crate::async_sink::AsyncByteSink;
use crate::async_source::AsyncByteSource;
use crate::sink::ByteSinks;
use crate::source::ByteSources;

/// The objects of a machine that is being driven.
pub(crate) trait Objects {
    type Length: Future<Output = Result<u64>> + Unpin;
    type Read: Future<Output = Result<Bytes>> + Unpin;
    type Append: Future<Output = Result<()>> + Unpin;

    /// The name of the only object, where there is only one: then it is the one that an error is about.
    fn only(&self) -> Option<&str>;

    fn length(&mut self, object: Object) -> Result<Self::Length>;

    fn read(&mut self, object: Object, range: Range<u64>) -> Result<Self::Read>;

    /// Whether bytes can be appended to an object at all.
    fn may_append(&mut self, object: Object) -> Result<()>;

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
