//! What was read from a pipe, kept in a file without a name.

use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Result};

use super::{Found, NewObject, NewObjects, ObjectStream, Store};
use crate::blocking::SpillFile;
use crate::failure::failed;
use crate::{ByteSink, ByteSource, ObjectVersion};

/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;

/// A store of one object, which was read from its start to its end (a pipe, standard input) and is kept in a file
/// without a name in the system's temporary directory, so that any range of it can be read. Every path leads to it.
///
/// ```
/// use std::path::Path;
///
/// use marquetry_io::store::{Found, Spooled, Store};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let kept = Spooled::read("standard input", &b"hello"[..])?;
/// assert_eq!(kept.look(Path::new("-"))?, Found::Object { bytes: 5 });
/// let (source, _) = kept.open(Path::new("-"))?;
/// assert_eq!(&source.read(1..5)?[..], b"ello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Spooled {
    name: String,
    version: ObjectVersion,
    file: Arc<Mutex<SpillFile>>,
}

impl Spooled {
    /// Reads all of it. `name` is what errors call it.
    ///
    /// # Errors
    ///
    /// `Io` if it cannot be read, or the file not be written.
    pub fn read(name: impl Into<String>, mut reader: impl Read) -> Result<Spooled> {
        let name = name.into();
        let mut file = SpillFile::create(None)?;
        let mut buffer = vec![0; READ_BYTES];
        let mut bytes = 0;
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => {
                    file.append(buffer.get(..read).unwrap_or_default())?;
                    bytes += u64_of(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed("read", &name, error)),
            }
        }
        Ok(Spooled::of(name, file, bytes))
    }
}

impl Spooled {
    /// What was written to such a file, and has this length. `name` is what errors call it.
    pub fn of(name: impl Into<String>, file: SpillFile, bytes: u64) -> Spooled {
        let version = ObjectVersion::new(bytes, "");
        Spooled { name: name.into(), version, file: Arc::new(Mutex::new(file)) }
    }
}

impl fmt::Debug for Spooled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spooled").field("name", &self.name).field("bytes", &self.version.bytes()).finish()
    }
}

impl ByteSource for Spooled {
    fn name(&self) -> &str {
        &self.name
    }

    fn length(&self) -> Result<u64> {
        Ok(self.version.bytes())
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        // A read leaves nothing behind that another one could find half done.
        self.file.lock().unwrap_or_else(PoisonError::into_inner).read(range)
    }
}

impl Store for Spooled {
    fn look(&self, _: &Path) -> Result<Found> {
        Ok(Found::Object { bytes: self.version.bytes() })
    }

    fn find(&self, path: &Path, _: &[&str]) -> Result<Vec<PathBuf>> {
        Ok(vec![path.to_path_buf()])
    }

    fn open(&self, _: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        Ok((Box::new(self.clone()), self.version.clone()))
    }

    fn stream(&self, _: &Path, _: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        let reader = Box::new(FromStart { kept: self.clone(), at: 0 });
        Ok(ObjectStream { reader, version: Some(self.version.clone()) })
    }

    fn create(&self, _: &Path, _: bool) -> Result<Box<dyn NewObject>> {
        Err(self.read_only())
    }

    fn create_directory(&self, _: &Path, _: bool, _: &'static [&'static str]) -> Result<Box<dyn NewObjects>> {
        Err(self.read_only())
    }
}

impl Spooled {
    fn read_only(&self) -> Error {
        Error::misuse("what came through a pipe is not written to")
            .at(|place| place.object = Some(self.name.clone()))
    }
}

/// Reads it from its start to its end.
struct FromStart {
    kept: Spooled,
    at: u64,
}

impl Read for FromStart {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let end = self.kept.version.bytes().min(self.at.saturating_add(u64_of(buffer.len())));
        let bytes = ByteSource::read(&self.kept, self.at..end).map_err(io::Error::other)?;
        let read = bytes.len();
        buffer.get_mut(..read).unwrap_or_default().copy_from_slice(&bytes);
        self.at = end;
        Ok(read)
    }
}
