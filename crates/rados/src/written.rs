//! An object that is written at once.

use std::ops::Range;
use std::path::{Path, PathBuf};

use marquetry_base::{Bytes, Error, Result};
use marquetry_io::store::NewObject;
use marquetry_io::{ByteSink, shown};

use crate::pool::Pool;

/// Bytes of an object that is written, at most: what an OSD takes at once by default (`osd_max_write_size`).
const OBJECT_BYTES_MAX: usize = 90 << 20;

/// An object that is being written: in memory, until it is committed.
pub(crate) struct Written {
    pool: Pool,
    object: String,
    shown: String,
    bytes: Vec<u8>,
    replaces: bool,
}

impl Written {
    pub(crate) fn new(pool: Pool, object: String, path: &Path, replaces: bool) -> Written {
        Written { pool, object, shown: shown(&path.to_string_lossy()), bytes: Vec::new(), replaces }
    }

    fn about(&self, error: Error) -> Error {
        error.at(|place| place.object = Some(self.shown.clone()))
    }
}

impl ByteSink for Written {
    fn name(&self) -> &str {
        &self.shown
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if self.bytes.len() + bytes.len() > OBJECT_BYTES_MAX {
            let message = format!(
                "an object of more than {OBJECT_BYTES_MAX} bytes is not written in RADOS; tables are directories of smaller ones"
            );
            return Err(self.about(Error::too_large(message)));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        let (start, end) = (usize::try_from(range.start).ok(), usize::try_from(range.end).ok());
        let bytes = start.zip(end).and_then(|(start, end)| self.bytes.get(start..end));
        match bytes {
            Some(bytes) => Ok(Bytes::copy_from_slice(bytes)),
            None => Err(self.about(Error::io(format!("bytes {range:?} were not written")))),
        }
    }
}

impl NewObject for Written {
    fn readable(&self) -> Option<PathBuf> {
        None
    }

    fn scratch(&self) -> Option<&Path> {
        None
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let written = self.pool.write(&self.object, &self.bytes, self.replaces);
        written.map_err(|error| self.about(error))
    }
}
