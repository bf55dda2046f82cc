//! Where an asynchronous driver gets an object's bytes.

use std::future::{Future, Ready, ready};
use std::ops::Range;

use marquetry_base::{Bytes, Result};

use crate::memory::Memory;
use crate::source::ByteSource;

/// The bytes of one object, read without blocking: a [`ByteSource`] that answers with futures.
///
/// Futures own what they need, and start when first polled. Dropping one cancels its read, or lets it end unseen.
/// Their types are named, so that a driver is `Send` exactly if they are; a future whose type has no name can be
/// boxed (`Pin<Box<dyn Future<Output = …> + Send>>`).
pub trait AsyncByteSource {
    /// Resolves to the object's length.
    type Length: Future<Output = Result<u64>> + Unpin;
    /// Resolves to the bytes read.
    type Read: Future<Output = Result<Bytes>> + Unpin;

    /// The object's name for people: a path, an address. Part of every error.
    fn name(&self) -> &str;

    /// The object's length in bytes.
    ///
    /// # Errors
    ///
    /// From the future: as for [`ByteSource::length`].
    fn length(&self) -> Self::Length;

    /// The bytes of `range`, all of them.
    ///
    /// # Errors
    ///
    /// From the future: as for [`ByteSource::read`].
    fn read(&self, range: Range<u64>) -> Self::Read;
}

/// Memory answers at once.
impl AsyncByteSource for Memory {
    type Length = Ready<Result<u64>>;
    type Read = Ready<Result<Bytes>>;

    fn name(&self) -> &str {
        ByteSource::name(self)
    }

    fn length(&self) -> Self::Length {
        ready(ByteSource::length(self))
    }

    fn read(&self, range: Range<u64>) -> Self::Read {
        ready(ByteSource::read(self, range))
    }
}
