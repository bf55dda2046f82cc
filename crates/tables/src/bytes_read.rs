//! How far the reading of input is.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use marquetry_base::cast::u64_of;

/// Counts the bytes that were read of the input, as it is stored: those of a compressed text before it is decompressed. All
/// clones are one counter. For [`PieceOptions::bytes_read`](crate::PieceOptions).
///
/// ```
/// use marquetry_tables::BytesRead;
///
/// let counter = BytesRead::default();
/// counter.clone().add(100);
/// assert_eq!(counter.get(), 100);
/// ```
#[derive(Debug, Clone, Default)]
pub struct BytesRead(Arc<AtomicU64>);

impl BytesRead {
    /// Adds bytes.
    pub fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts what is read.
pub(crate) struct CountedReader<R> {
    pub(crate) reader: R,
    pub(crate) bytes_read: BytesRead,
}

impl<R: Read> Read for CountedReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(out)?;
        self.bytes_read.add(u64_of(read));
        Ok(read)
    }
}
