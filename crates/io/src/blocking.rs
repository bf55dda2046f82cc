//! Local files: read by blocking positional reads, or from start to end, and written.
//!
//! Each read allocates its own memory, of which the machine keeps what it needs. Files are not mapped into memory:
//! a mapped file that shrinks kills the process, its read errors are signals rather than errors, and a slow disk
//! would stall a step where no budget counts it.

use std::fs::{self, Metadata};
use std::io;
use std::ops::Range;
use std::path::Path;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bytes, Error, Result};

use crate::failure::{about, failed};
use crate::source::{ByteSource, FileKind, ObjectVersion, beyond_end, nameless, shrank};

mod directory;
mod hidden;
mod stream;
mod write;

pub use directory::{NewDirectory, allow_many_files};
pub use hidden::HiddenDirectory;
pub use stream::FileStream;
pub use write::{NewFile, SpillFile};

/// A local file, open for reading.
///
/// Any number of threads may read it at the same time: reads do not share a position. (On Windows they move it, but
/// none uses it.)
#[derive(Debug)]
pub struct File {
    file: fs::File,
    name: String,
    length: u64,
    version: ObjectVersion,
}

impl File {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io) if it cannot be opened, or is not a regular file. A pipe is
    /// not: machines read from the end of an object and from its middle.
    pub fn open(path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() {
            return Err(nameless());
        }
        let name = path.display().to_string();
        let cannot = |error: io::Error| failed("opened", &name, error);
        // Checked before opening, which waits for a writer if the path is a named pipe; and after, because the path
        // may lead to another file by then.
        let before = fs::metadata(path).map_err(cannot)?;
        expect_regular(&before).map_err(|what| about(&name, what))?;
        let file = fs::File::open(path).map_err(cannot)?;
        File::of(file, name)
    }

    /// Standard input, if that is a regular file (`< trips.parquet`). It is read by the descriptor that is open
    /// already: a sandbox may forbid to open it again by a path. Ranges count from the file's start, whatever was read
    /// of it before.
    ///
    /// # Errors
    ///
    /// As [`File::open`].
    pub fn stdin() -> Result<File> {
        let name = "standard input";
        let file = stream::stdin().map_err(|error| failed("opened", name, error))?;
        File::of(file, name.to_owned())
    }

    fn of(file: fs::File, name: String) -> Result<File> {
        let metadata = file.metadata().map_err(|error| failed("opened", &name, error))?;
        expect_regular(&metadata).map_err(|what| about(&name, what))?;
        let version = stream::version_of(&metadata);
        Ok(File { file, length: metadata.len(), name, version })
    }

    /// What identified the file and its content when it was opened.
    pub fn version(&self) -> &ObjectVersion {
        &self.version
    }
}

impl ByteSource for File {
    fn name(&self) -> &str {
        &self.name
    }

    /// The file's length when it was opened.
    fn length(&self) -> Result<u64> {
        Ok(self.length)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        // This also bounds the allocation by the file's length.
        if range.start > range.end || range.end > self.length {
            return Err(beyond_end(&self.name, &range, self.length));
        }
        let length = usize_of(range.end - range.start).ok_or_else(|| Error::out_of_memory(usize::MAX))?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length))?;
        while bytes.len() < length {
            let at = range.start + u64_of(bytes.len());
            match read_more(&self.file, &mut bytes, length, at) {
                Ok(0) => return Err(shrank(&self.name, self.length, at)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(failed(&format!("read at byte {at}"), &self.name, error));
                }
            }
        }
        bytes.truncate(length);
        Ok(Bytes::from(bytes))
    }
}

/// Fails with what it is, unless it is a regular file.
fn expect_regular(metadata: &Metadata) -> Result<(), &'static str> {
    let kind = metadata.file_type();
    let kind = match () {
        () if kind.is_file() => FileKind::Regular,
        () if kind.is_dir() => FileKind::Directory,
        () => special(kind),
    };
    kind.expect_regular()
}

#[cfg(unix)]
fn special(kind: fs::FileType) -> FileKind {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if kind.is_fifo() => FileKind::Pipe,
        () if kind.is_socket() => FileKind::Socket,
        () => FileKind::Device,
    }
}

#[cfg(not(unix))]
fn special(_: fs::FileType) -> FileKind {
    FileKind::Device
}

/// Memory for `length` bytes.
///
/// `vec!` gets large zeroed memory from the system without touching it, but aborts if there is none. So a fallible
/// allocation is tried first; `black_box` keeps it from being optimised away.
pub(crate) fn zeroed(length: u64) -> Result<Vec<u8>> {
    let length = usize_of(length).ok_or_else(|| Error::out_of_memory(usize::MAX))?;
    let mut probe = Vec::<u8>::new();
    probe.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length))?;
    drop(std::hint::black_box(probe));
    Ok(vec![0; length])
}

/// Appends what is at a position of a file, up to `length` bytes in all, or more if more were allocated: to memory that need not be cleared before.
#[cfg(unix)]
fn read_more(file: &fs::File, bytes: &mut Vec<u8>, _length: usize, at: u64) -> io::Result<usize> {
    Ok(rustix::io::pread(file, rustix::buffer::spare_capacity(bytes), at)?)
}

#[cfg(windows)]
fn read_more(file: &fs::File, bytes: &mut Vec<u8>, length: usize, at: u64) -> io::Result<usize> {
    let start = bytes.len();
    bytes.resize(length, 0);
    let read = read_at(file, &mut bytes[start..], at);
    bytes.truncate(start + read.as_ref().map_or(0, |read| *read));
    read
}

#[cfg(unix)]
fn read_at(file: &fs::File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, bytes, at)
}

#[cfg(windows)]
fn read_at(file: &fs::File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, bytes, at)
}
