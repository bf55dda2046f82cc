//! Files that are written: one that appears when it is whole, and one that nobody ever sees.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Result};

use super::{read_at, zeroed};
use crate::sink::Sink;
use crate::source::beyond_end;

/// A file that appears under its name only once it is whole: until then it stands beside it, under a hidden name of its own.
///
/// Dropped before [`NewFile::commit`], it is removed: whatever goes wrong, there is never half a file of that name, and one that was
/// there before stays.
#[derive(Debug)]
pub struct NewFile {
    file: Option<fs::File>,
    temporary: PathBuf,
    path: PathBuf,
    name: String,
}

impl NewFile {
    /// Begins a file that shall be at `path`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Source`](marquetry_base::ErrorKind::Source) where no file can be made in that directory, or `path` is one.
    pub fn create(path: impl AsRef<Path>) -> Result<NewFile> {
        let path = path.as_ref().to_owned();
        let name = path.display().to_string();
        let Some(file_name) = path.file_name().filter(|_| !path.is_dir()) else {
            return Err(Error::source(format!("cannot write {name}: it is a directory")));
        };
        let (file, temporary) = make_beside(&path, file_name, OpenOptions::new().write(true))
            .map_err(|error| cannot_write(&name, &error))?;
        Ok(NewFile { file: Some(file), temporary, path, name })
    }

    /// Gives the file its name, once all of it is on the disk. It replaces a file of that name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Source`](marquetry_base::ErrorKind::Source). Then the file is removed, unless it has its name already.
    pub fn commit(mut self) -> Result<()> {
        let Some(file) = self.file.take() else { return Err(Error::internal("a file that is gone")) };
        let sync = file.sync_all();
        drop(file);
        let renamed = sync.and_then(|()| fs::rename(&self.temporary, &self.path));
        if let Err(error) = renamed {
            let _ = fs::remove_file(&self.temporary);
            return Err(cannot_write(&self.name, &error));
        }
        sync_directory(directory(&self.path)).map_err(|error| cannot_write(&self.name, &error))
    }
}

impl Sink for NewFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(file) = &mut self.file else { return Err(Error::internal("a file that is gone")) };
        file.write_all(bytes).map_err(|error| cannot_write(&self.name, &error))
    }

    fn read(&mut self, _range: Range<u64>) -> Result<Bytes> {
        Err(Error::source(format!("{} is being written, and cannot be read", self.name)))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            // Who drops it has other trouble already.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// A file without a name, for what a machine wants to have out of memory for a while. It is gone with its last user, whatever becomes
/// of the process.
#[derive(Debug)]
pub struct SpillFile {
    file: fs::File,
    name: String,
    length: u64,
    /// Where a file that is open has to keep its name.
    #[cfg(not(unix))]
    path: PathBuf,
}

impl SpillFile {
    /// A file in a directory: where there is room for as much as is written, and not in memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Source`](marquetry_base::ErrorKind::Source) where no file can be made there.
    pub fn create_in(directory: impl AsRef<Path>) -> Result<SpillFile> {
        let path = directory.as_ref().join("spill");
        let name = format!("a temporary file in {}", directory.as_ref().display());
        let cannot = |error: &io::Error| cannot_write(&name, error);
        let mut options = OpenOptions::new();
        let (file, path) = make_beside(&path, "spill".as_ref(), options.read(true).write(true))
            .map_err(|error| cannot(&error))?;
        #[cfg(unix)]
        fs::remove_file(&path).map_err(|error| cannot(&error))?;
        Ok(SpillFile {
            file,
            name,
            length: 0,
            #[cfg(not(unix))]
            path,
        })
    }
}

impl Sink for SpillFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| cannot_write(&self.name, &error))?;
        self.length += u64_of(bytes.len());
        Ok(())
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        if range.start > range.end || range.end > self.length {
            return Err(beyond_end(&self.name, &range, self.length));
        }
        let mut bytes = zeroed(range.end - range.start)?;
        let mut filled = 0;
        while filled < bytes.len() {
            match read_at(&self.file, &mut bytes[filled..], range.start + u64_of(filled)) {
                Ok(0) => return Err(Error::source(format!("{} became shorter", self.name))),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::source(format!("cannot read {}: {error}", self.name))),
            }
        }
        // Where reads move the place of writes, it is put back.
        #[cfg(not(unix))]
        io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.length))
            .map_err(|error| cannot_write(&self.name, &error))?;
        Ok(Bytes::from(bytes))
    }
}

#[cfg(not(unix))]
impl Drop for SpillFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Names tried before it is given up: so many files of one process do not stand in one directory.
const TRIES: u32 = 1000;

/// Makes a file in the directory of `path`, under a name that nobody has: hidden, as readers of directories leave those out.
fn make_beside(
    path: &Path,
    file_name: &std::ffi::OsStr,
    options: &mut OpenOptions,
) -> io::Result<(fs::File, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut last = None;
    for _ in 0..TRIES {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut hidden = OsString::from(".");
        hidden.push(file_name);
        hidden.push(format!(".{}-{number}.part", std::process::id()));
        let temporary = path.with_file_name(hidden);
        match options.create_new(true).open(&temporary) {
            Ok(file) => return Ok((file, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
}

/// The directory of a path; of a mere name, the current one.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// A name is on the disk once its directory is.
#[cfg(unix)]
fn sync_directory(directory: &Path) -> io::Result<()> {
    fs::File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

fn cannot_write(name: &str, error: &io::Error) -> Error {
    Error::source(format!("cannot write {name}: {error}"))
}
