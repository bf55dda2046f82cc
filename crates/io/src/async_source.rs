//! Where an asynchronous driver gets an object's bytes.

use std::future::{Future, Ready, ready};
use std::ops::Range;

use marquetry_base::{Bytes, Result};

use crate::memory::Memory;
use crate::source::ByteSource;

/// The bytes of one object, to be had without waiting: a [`ByteSource`] whose answers are futures.
///
/// Futures own what they need, and begin when they are first polled. Dropping one cancels its read, or lets it end with nobody
/// to see it. They are named, so that a driver may change threads exactly where they may; who has no name for one boxes it
/// (`Pin<Box<dyn Future<Output = …> + Send>>`).
pub trait AsyncByteSource {
    /// Gives the object's length.
    type Length: Future<Output = Result<u64>> + Unpin;
    /// Gives bytes.
    type Read: Future<Output = Result<Bytes>> + Unpin;

    /// What people call it: a path, an address. Part of every error.
    fn name(&self) -> &str;

    /// The object's length in bytes.
    ///
    /// # Errors
    ///
    /// The future's: as [`ByteSource::length`]'s.
    fn length(&self) -> Self::Length;

    /// The bytes of `range`, all of them.
    ///
    /// # Errors
    ///
    /// The future's: as [`ByteSource::read`]'s.
    fn read(&self, range: Range<u64>) -> Self::Read;
}

/// Memory has its answers ready.
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
