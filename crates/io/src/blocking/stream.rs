//! What is read from its start to its end: files, pipes, standard input.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

use marquetry_base::{Error, Result};

use crate::failure::failed;
use crate::source::{ObjectVersion, nameless};

mod once;
mod waiting;

use once::Claim;
use waiting::Waiting;

/// A local file, pipe or standard input, which is read once, from its start to its end.
///
/// A read waits as long as a pipe is silent, but not beyond its cancellation: it then fails. Opening a named pipe does
/// not wait for a writer; the first read does. (Both hold on Linux. On other Unix systems opening waits, and elsewhere
/// reading does, too.)
///
/// Whatever is not a regular file can be read only once, by one reader: as long as a stream of it exists, another one
/// cannot be opened.
///
/// ```
/// use std::io::Read;
///
/// use marquetry_io::blocking::FileStream;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("trips.csv");
/// std::fs::write(&path, "id\n1\n")?;
/// let mut stream = FileStream::open(&path, || false)?;
/// let mut text = String::new();
/// stream.read_to_string(&mut text)?;
/// assert_eq!(text, "id\n1\n");
/// assert_eq!(FileStream::open(&path, || false)?.version(), stream.version());
/// # Ok(())
/// # }
/// ```
pub struct FileStream {
    file: fs::File,
    /// `None` for a regular file, which never waits for anybody.
    waiting: Option<Waiting>,
    version: Option<ObjectVersion>,
    _claim: Option<Claim>,
}

impl FileStream {
    /// Opens a file or a pipe. `/dev/stdin` is standard input, unless that is a regular file. A read that waits fails
    /// soon after `is_cancelled`.
    ///
    /// # Errors
    ///
    /// `Io` if it cannot be opened, or is a directory; `Misuse` if it can be read only once, and is being read.
    pub fn open(
        path: impl AsRef<Path>,
        is_cancelled: impl Fn() -> bool + Send + 'static,
    ) -> Result<FileStream> {
        let path = path.as_ref();
        if path.as_os_str().is_empty() {
            return Err(nameless());
        }
        let name = path.display().to_string();
        let cannot = |error: io::Error| failed("opened", &name, error);
        let is_regular = fs::metadata(path).map_err(cannot)?.is_file();
        if path == Path::new("/dev/stdin") && !is_regular {
            return FileStream::stdin(is_cancelled);
        }
        let file = if is_regular { fs::File::open(path) } else { waiting::open(path) };
        let file = file.map_err(cannot)?;
        // The path may lead to another file by now.
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_dir() {
            return Err(Error::io("it is a directory").at(|place| place.object = Some(name)));
        }
        if metadata.is_file() {
            let version = Some(version_of(&metadata));
            return Ok(FileStream { file, waiting: None, version, _claim: None });
        }
        let claim = Claim::of(&metadata).map_err(|error| error.at(|place| place.object = Some(name)))?;
        let waiting = Some(Waiting::of_new(is_cancelled));
        Ok(FileStream { file, waiting, version: None, _claim: Some(claim) })
    }

    /// Standard input, from where it is. What other readers of this process hold in buffers is lost to this one.
    ///
    /// # Errors
    ///
    /// `Io` if there is none; `Misuse` if it is being read.
    pub fn stdin(is_cancelled: impl Fn() -> bool + Send + 'static) -> Result<FileStream> {
        let name = "standard input";
        let cannot = |error: io::Error| failed("opened", name, error);
        let file = waiting::stdin().map_err(cannot)?;
        let claim = Claim::of(&file.metadata().map_err(cannot)?);
        let claim = claim.map_err(|error| error.at(|place| place.object = Some(name.to_owned())))?;
        let waiting = Some(Waiting::of_shared(is_cancelled));
        Ok(FileStream { file, waiting, version: None, _claim: Some(claim) })
    }

    /// What identifies the file and its content, when it was opened. `None` if it can be read only once.
    pub fn version(&self) -> Option<&ObjectVersion> {
        self.version.as_ref()
    }
}

impl std::fmt::Debug for FileStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileStream").field("file", &self.file).field("version", &self.version).finish()
    }
}

impl Read for FileStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &mut self.waiting {
            Some(waiting) => waiting.read(&mut self.file, bytes),
            None => self.file.read(bytes),
        }
    }
}

/// Standard input, by a descriptor of its own.
pub(super) fn stdin() -> io::Result<fs::File> {
    waiting::stdin()
}

/// The version of a regular file: its time of modification, and its device and inode.
pub(super) fn version_of(metadata: &Metadata) -> ObjectVersion {
    let modified = metadata.modified().ok().map(|time| time.duration_since(SystemTime::UNIX_EPOCH));
    let identity = once::identity(metadata);
    ObjectVersion::new(metadata.len(), format!("{modified:?} {identity:?}"))
}

#[cfg(test)]
mod tests;
