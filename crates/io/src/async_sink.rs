//! Where an asynchronous driver puts what a machine writes.

use std::future::Future;
use std::ops::Range;

use marquetry_base::{Bytes, Result};

/// The end of one object, to which bytes are added without waiting: a [`ByteSink`](crate::ByteSink) whose answers are futures.
///
/// Futures own what they need. Dropping one cancels it, or lets it complete unobserved; how many of its bytes were added is then not
/// known. The driver starts an append only after the previous one has completed, and reads only what has been added.
pub trait AsyncByteSink {
    /// Adds bytes.
    type Append: Future<Output = Result<()>> + Unpin;
    /// Gives bytes.
    type Read: Future<Output = Result<Bytes>> + Unpin;

    /// What people call it: a path, an address. Part of every error.
    fn name(&self) -> &str;

    /// Adds bytes to the object's end.
    ///
    /// # Errors
    ///
    /// The future's: as [`ByteSink::append`](crate::ByteSink::append)'s.
    fn append(&mut self, bytes: Bytes) -> Self::Append;

    /// Bytes that were added before, all of the range: of a spill object, which is written to be read again.
    ///
    /// # Errors
    ///
    /// The future's: as [`ByteSink::read`](crate::ByteSink::read)'s.
    fn read(&mut self, range: Range<u64>) -> Self::Read;
}

impl<S: AsyncByteSink + ?Sized> AsyncByteSink for &mut S {
    type Append = S::Append;
    type Read = S::Read;

    fn name(&self) -> &str {
        (**self).name()
    }

    fn append(&mut self, bytes: Bytes) -> S::Append {
        (**self).append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> S::Read {
        (**self).read(range)
    }
}

impl<S: AsyncByteSink + ?Sized> AsyncByteSink for Box<S> {
    type Append = S::Append;
    type Read = S::Read;

    fn name(&self) -> &str {
        (**self).name()
    }

    fn append(&mut self, bytes: Bytes) -> S::Append {
        (**self).append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> S::Read {
        (**self).read(range)
    }
}
