//! The local file system.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marquetry_base::{Bytes, Error, Result};

use super::{Found, NewObject, NewObjects, ObjectStream, Store};
use crate::blocking::{File, FileStream, NewDirectory, NewFile};
use crate::failure::failed;
use crate::{ByteSink, ByteSource, ObjectVersion, files};

/// Local files, by their paths.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalFiles;

impl Store for LocalFiles {
    fn look(&self, path: &Path) -> Result<Found> {
        let cannot = |error: io::Error| failed("read", &path.display().to_string(), error);
        match fs::metadata(path) {
            Ok(found) if found.is_file() => Ok(Found::Object { bytes: found.len() }),
            Ok(found) if found.is_dir() => {
                let mut entries = fs::read_dir(path).map_err(cannot)?;
                Ok(Found::Directory { is_empty: entries.next().is_none() })
            }
            Ok(_) => Ok(Found::Stream),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Nothing),
            Err(error) => Err(cannot(error)),
        }
    }

    fn find(&self, path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
        files::find(path, extensions)
    }

    fn list(&self, directory: &Path) -> Result<Vec<(PathBuf, u64)>> {
        files::list(directory)
    }

    fn open(&self, path: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        let file = File::open(path)?;
        let version = file.version().clone();
        Ok((Box::new(file), version))
    }

    fn stream(&self, path: &Path, is_cancelled: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        let stream = FileStream::open(path, is_cancelled)?;
        let version = stream.version().cloned();
        Ok(ObjectStream { reader: Box::new(stream), version })
    }

    fn create(&self, path: &Path, replaces: bool) -> Result<Box<dyn NewObject>> {
        Ok(Box::new(LocalFile { file: NewFile::create(path)?, goes_to: GoesTo::Path { replaces } }))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("removed", &path.display().to_string(), error))
            }
            _ => Ok(()),
        }
    }

    fn create_directory(
        &self,
        path: &Path,
        replaces: bool,
        extensions: &'static [&'static str],
    ) -> Result<Box<dyn NewObjects>> {
        let directory = NewDirectory::create(path, replaces, extensions)?;
        let scratch = directory.path().to_path_buf();
        Ok(Box::new(LocalDirectory {
            directory: Arc::new(Mutex::new(directory)),
            scratch,
            replaces,
            extensions,
        }))
    }
}

/// A file that is written.
struct LocalFile {
    file: NewFile,
    goes_to: GoesTo,
}

/// Where a file goes when it is complete.
enum GoesTo {
    /// To its path, in place of another one if it `replaces`.
    Path { replaces: bool },
    /// To a place in a directory.
    Directory(Arc<Mutex<NewDirectory>>, PathBuf),
}

impl ByteSink for LocalFile {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        self.file.read(range)
    }
}

impl NewObject for LocalFile {
    fn readable(&self) -> Option<PathBuf> {
        Some(self.file.temporary().to_path_buf())
    }

    fn scratch(&self) -> Option<&Path> {
        Some(self.file.path())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        match self.goes_to {
            GoesTo::Path { replaces: true } => self.file.replace(),
            GoesTo::Path { replaces: false } => self.file.commit(),
            GoesTo::Directory(directory, place) => locked(&directory).keep(self.file, place),
        }
    }
}

/// A directory of files that are written.
struct LocalDirectory {
    directory: Arc<Mutex<NewDirectory>>,
    scratch: PathBuf,
    replaces: bool,
    extensions: &'static [&'static str],
}

impl NewObjects for LocalDirectory {
    fn create(&mut self, place: &Path) -> Result<Box<dyn NewObject>> {
        let file = locked(&self.directory).file(place)?;
        let goes_to = GoesTo::Directory(Arc::clone(&self.directory), place.to_path_buf());
        Ok(Box::new(LocalFile { file, goes_to }))
    }

    fn kept(&self) -> Option<Vec<(PathBuf, PathBuf)>> {
        let directory = locked(&self.directory);
        Some(directory.kept().map(|(place, readable)| (place.to_path_buf(), readable)).collect())
    }

    fn scratch(&self) -> Option<&Path> {
        Some(&self.scratch)
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let directory = Arc::into_inner(self.directory)
            .ok_or_else(|| Error::misuse("a directory of which an object is being written"))?;
        let directory = directory.into_inner().unwrap_or_else(PoisonError::into_inner);
        if self.replaces { directory.replace(self.extensions) } else { directory.commit() }
    }
}

/// Nothing panics while it is locked.
fn locked(directory: &Mutex<NewDirectory>) -> MutexGuard<'_, NewDirectory> {
    directory.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_is_gone_and_what_is_gone_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "").unwrap();
        LocalFiles.remove(&path).unwrap();
        assert_eq!(LocalFiles.look(&path), Ok(Found::Nothing));
        LocalFiles.remove(&path).unwrap();
        let error = LocalFiles.remove(folder.path()).unwrap_err();
        assert_eq!(error.place().object.as_deref(), folder.path().to_str());
    }
}
