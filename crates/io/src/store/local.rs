//! The local file system.

use std::any::Any;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use marquetry_base::{Bytes, Error, Result};

use super::{Found, NewObject, NewObjects, ObjectStream, Store};
use crate::blocking::{File, FileStream, NewDirectory, NewFile};
use crate::failure::failed;
use crate::{ByteSink, ByteSource, files};

/// Local files, by their paths. `-` is standard input, as a stream.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalFiles;

impl Store for LocalFiles {
    fn look(&self, path: &Path) -> Result<Found> {
        if is_standard_input(path) {
            return Ok(Found::Stream);
        }
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

    fn open(&self, path: &Path) -> Result<Box<dyn ByteSource + Send>> {
        Ok(Box::new(File::open(path)?))
    }

    fn stream(&self, path: &Path, is_cancelled: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        let stream = match is_standard_input(path) {
            true => FileStream::stdin(is_cancelled)?,
            false => FileStream::open(path, is_cancelled)?,
        };
        let version = stream.version().cloned();
        Ok(ObjectStream { reader: Box::new(stream), version })
    }

    fn create(&self, path: &Path, replaces: bool) -> Result<Box<dyn NewObject>> {
        Ok(Box::new(LocalFile { file: NewFile::create(path)?, replaces }))
    }

    fn create_directory(
        &self,
        path: &Path,
        replaces: bool,
        extensions: &'static [&'static str],
    ) -> Result<Box<dyn NewObjects>> {
        let directory = NewDirectory::create(path, replaces, extensions)?;
        Ok(Box::new(LocalDirectory { directory, replaces, extensions }))
    }
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// A file that is written.
struct LocalFile {
    file: NewFile,
    replaces: bool,
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
        if self.replaces { self.file.replace() } else { self.file.commit() }
    }
}

/// A directory of files that are written.
struct LocalDirectory {
    directory: NewDirectory,
    replaces: bool,
    extensions: &'static [&'static str],
}

impl NewObjects for LocalDirectory {
    fn create(&mut self, place: &Path) -> Result<Box<dyn NewObject>> {
        Ok(Box::new(LocalFile { file: self.directory.file(place)?, replaces: false }))
    }

    fn keep(&mut self, object: Box<dyn NewObject>, place: PathBuf) -> Result<()> {
        let object: Box<dyn Any> = object;
        let local = object.downcast::<LocalFile>();
        let local = local.map_err(|_| Error::internal("an object of another store"))?;
        self.directory.keep(local.file, place)
    }

    fn kept(&self) -> Option<Vec<(PathBuf, PathBuf)>> {
        Some(self.directory.kept().map(|(place, readable)| (place.to_path_buf(), readable)).collect())
    }

    fn scratch(&self) -> Option<&Path> {
        Some(self.directory.path())
    }

    fn commit(self: Box<Self>) -> Result<()> {
        if self.replaces { self.directory.replace(self.extensions) } else { self.directory.commit() }
    }
}
