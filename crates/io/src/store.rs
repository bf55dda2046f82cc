//! Where objects with names are: a file system, a bucket of an object store.

use std::fmt::Debug;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Error, Result};

use crate::{ByteSink, ByteSource, ObjectVersion};

#[cfg(feature = "object-store")]
mod cloud;
mod local;
mod search;
mod spooled;

#[cfg(feature = "object-store")]
pub use cloud::Stores;
pub use local::LocalFiles;
pub use search::{FoundRows, Search, Searched, SearchedAggregates, SearchedObject, Searching};
pub use spooled::Spooled;

/// A place where objects have paths: found, opened, and created so that they appear whole.
///
/// Whoever reads or writes files does so through a store, so another store is one implementation of this. A path is
/// spelled as the store's users write it, all of it: `trips/a.parquet`, `s3://bucket/trips/a.parquet`. It names the
/// object in messages, too.
///
/// All calls wait. A store that needs a runtime keeps that on a thread of its own.
///
/// ```
/// use marquetry_io::store::{Found, LocalFiles, Store};
///
/// # fn main() -> marquetry_base::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("greeting.txt");
/// let store = LocalFiles;
/// let mut object = store.create(&path, false)?;
/// object.append(b"hello")?;
/// assert_eq!(store.look(&path)?, Found::Nothing);
/// object.commit()?;
/// assert_eq!(store.look(&path)?, Found::Object { bytes: 5 });
/// let (source, version) = store.open(&path)?;
/// assert_eq!((&source.read(1..5)?[..], version.bytes()), (&b"ello"[..], 5));
/// # Ok(())
/// # }
/// ```
pub trait Store: Debug + Send + Sync {
    /// The same store, of which what waits fails soon after `is_cancelled`, too: its calls, and what they open or create.
    /// `None` if they do not wait for long, as those of a file system.
    fn cancellable(&self, is_cancelled: IsCancelled) -> Option<Arc<dyn Store>> {
        let _ = is_cancelled;
        None
    }

    /// Whether all of its objects are Parquet files, so that nobody needs to look at what they begin with.
    fn holds_parquet(&self) -> bool {
        false
    }

    /// What a path leads to.
    ///
    /// # Errors
    ///
    /// `Io` if that cannot be found out.
    fn look(&self, path: &Path) -> Result<Found>;

    /// Whether a path is a pattern or a directory, so that its objects are not named one by one. What cannot be looked at is neither.
    fn is_collective(&self, path: &Path) -> bool {
        crate::files::is_collective(path)
    }

    /// The objects that a path names: itself, those below a directory whose names end in one of `extensions`, or those
    /// that match a pattern, as [`files::find`](crate::files::find) says; sorted by name, bytewise.
    ///
    /// # Errors
    ///
    /// `Io` for what cannot be looked through, and a directory or a pattern without an object; `Misuse` for an invalid
    /// pattern.
    fn find(&self, path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>>;

    /// All objects below a directory with their lengths, whatever their names, sorted.
    ///
    /// # Errors
    ///
    /// `Io` for what cannot be looked through; `Unsupported` by a store without directories.
    fn list(&self, directory: &Path) -> Result<Vec<(PathBuf, u64)>> {
        let error = Error::unsupported("this store has no directories that can be listed");
        Err(error.at(|place| place.object = Some(crate::shown(&directory.to_string_lossy()))))
    }

    /// Opens an object, of which any range can be read, and tells its version.
    ///
    /// # Errors
    ///
    /// `Io` if it cannot be opened, or can be read only from its start to its end.
    fn open(&self, path: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)>;

    /// Opens an object that had this version when it was opened before.
    ///
    /// # Errors
    ///
    /// As [`Store::open`]; `Io` if it has another version by now. A store that would have to ask for that may leave it to
    /// the first read.
    fn reopen(&self, path: &Path, version: &ObjectVersion) -> Result<Box<dyn ByteSource + Send>> {
        let (source, now) = self.open(path)?;
        let expected = version.expect(&now);
        expected.map_err(|error| error.at(|place| place.object = Some(source.name().to_owned())))?;
        Ok(source)
    }

    /// Opens an object that is read from its start to its end. A read that waits fails soon after `is_cancelled`.
    ///
    /// # Errors
    ///
    /// `Io` if it cannot be opened; `Misuse` if it can be read only once, and is being read.
    fn stream(&self, path: &Path, is_cancelled: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream>;

    /// Whether this object, if it is a Parquet file, can be [searched](Store::search) where it is. `None` if objects of its kind never
    /// are; an error if they are, and this one is not.
    fn searches(&self, path: &Path) -> Option<Result<()>> {
        let _ = path;
        None
    }

    /// Searches Parquet objects where they are, so that only rows travel that are wanted. All of them can be [searched](Store::searches).
    /// What waits for them fails soon after `is_cancelled`.
    ///
    /// # Errors
    ///
    /// Why it cannot be begun; `Unsupported` by a store that does not search.
    fn search(&self, search: Search, is_cancelled: IsCancelled) -> Result<Box<dyn Searching>> {
        let _ = (search, is_cancelled);
        Err(Error::unsupported("this store does not search objects"))
    }

    /// Starts an object that will appear at `path`, in place of one that is there if it `replaces`.
    ///
    /// # Errors
    ///
    /// `Io` if no object can be created there.
    fn create(&self, path: &Path, replaces: bool) -> Result<Box<dyn NewObject>>;

    /// Removes an object. One that is not there is no error.
    ///
    /// # Errors
    ///
    /// `Io` if it cannot be removed; `Unsupported` by a store that removes nothing.
    fn remove(&self, path: &Path) -> Result<()> {
        let error = Error::unsupported("this store removes no objects");
        Err(error.at(|place| place.object = Some(crate::shown(&path.to_string_lossy()))))
    }

    /// Starts a directory of objects that will appear at `path`. There must be none, or an empty one; or, if it
    /// `replaces`, one that contains only objects whose names end in one of `extensions` and directories with Hive's
    /// names (`year=2024`).
    ///
    /// # Errors
    ///
    /// `Io` if there is anything else, or no directory can be created.
    fn create_directory(
        &self,
        path: &Path,
        replaces: bool,
        extensions: &'static [&'static str],
    ) -> Result<Box<dyn NewObjects>>;
}

/// Whether what waits should not wait any more.
pub type IsCancelled = Arc<dyn Fn() -> bool + Send + Sync>;

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// Nothing has this path.
    Nothing,
    /// An object.
    Object {
        /// Its length.
        bytes: u64,
    },
    /// A directory.
    Directory {
        /// Whether nothing is in it.
        is_empty: bool,
    },
    /// What can be read only once, from its start to its end, or not at all: a pipe, a device.
    Stream,
}

/// An object that is read from its start to its end.
pub struct ObjectStream {
    /// Its bytes.
    pub reader: Box<dyn Read + Send>,
    /// What identifies its content. `None` for what can be read only once.
    pub version: Option<ObjectVersion>,
}

/// An object that is written, and appears under its path once it is committed. Dropped before, it leaves nothing.
pub trait NewObject: ByteSink + Send {
    /// A path in the same store by which what was written can be read before it is committed. `None` if it cannot be
    /// read.
    fn readable(&self) -> Option<PathBuf>;

    /// A path of the local file system beside which temporary files belong. `None`: the system's temporary directory.
    fn scratch(&self) -> Option<&Path>;

    /// Makes it appear, complete and safe from a loss of power; an object of a directory, with the others of that.
    ///
    /// # Errors
    ///
    /// `Io`, with [`AlreadyExists`](marquetry_base::Detail::AlreadyExists) if another object is at its path by now and
    /// it does not replace that.
    fn commit(self: Box<Self>) -> Result<()>;
}

/// A directory of objects that are written, and appear together. Dropped before it is committed, it leaves nothing.
pub trait NewObjects: Send {
    /// Starts the object that will be at `place` in the directory. It is kept once it is
    /// [committed](NewObject::commit), and appears with the directory.
    ///
    /// # Errors
    ///
    /// `Io` if none can be created.
    fn create(&mut self, place: &Path) -> Result<Box<dyn NewObject>>;

    /// The objects that are kept, in that order: their places, and a path in the same store by which each can be read
    /// before the directory is committed. `None` if they cannot be read.
    fn kept(&self) -> Option<Vec<(PathBuf, PathBuf)>>;

    /// As [`NewObject::scratch`].
    fn scratch(&self) -> Option<&Path>;

    /// Makes the directory appear, with all objects that are kept.
    ///
    /// # Errors
    ///
    /// As [`NewObject::commit`]; `Misuse` while an object of it is being written.
    fn commit(self: Box<Self>) -> Result<()>;
}
