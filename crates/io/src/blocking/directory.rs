//! Directories that are written: all of their files appear together, when all are complete.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Detail, Result};

use crate::SCHEMA_FILE;
use crate::failure::about;

use super::write::{
    NewFile, beside, cannot_write, directory, followed, in_place, lock_new, nameless, remove_abandoned,
    sync_directory, take_access,
};

/// A directory of files that appears under its name only once all of them are complete.
///
/// Until then the files have no name at all, where the system allows that (Linux, on most file systems), so nothing
/// is left of them whatever happens to the process. At the end they are linked into a directory with a hidden name,
/// which then gets its own name in one step. Only a process killed between the two leaves that hidden directory,
/// which readers skip and the next `NewDirectory` of that name removes. Where files must have names, they are in the
/// hidden directory earlier; and where complete ones, and twice as many as are being written, reach half of what this
/// process may have open ([`allow_many_files`] raises that limit).
///
/// A symbolic link at that name is followed, and stays. What is replaced, if only an empty directory, passes its mode
/// on, and its owner and group as [`NewFile`] does: directories and files to those of the same name, files without such
/// a one take after the first that is found. A mount point cannot be replaced, and is refused at the start.
///
/// Dropping it before it is committed removes everything.
#[derive(Debug)]
pub struct NewDirectory {
    path: PathBuf,
    name: String,
    /// Complete files without a name, with their paths in the directory.
    waiting: Vec<(NewFile, PathBuf)>,
    /// Files that may be open: those that wait, and for each that is being written two, because it may have another one
    /// for what does not fit into memory.
    open_max: usize,
    /// Shared by the files that are being written, which are counted by that.
    written: Arc<()>,
    /// The directory of files that have a name.
    hidden: Option<Hidden>,
    /// The directories in it.
    made: BTreeSet<PathBuf>,
    /// The places of all files that were kept, in the order of that.
    kept: Vec<PathBuf>,
    /// What files that replace none of the same name have the mode of.
    like: Option<fs::Metadata>,
}

/// A directory with a hidden name. While it is locked, a living process is working in it.
#[derive(Debug)]
struct Hidden {
    path: PathBuf,
    /// `None` if directories cannot be locked.
    _lock: Option<fs::File>,
}

impl NewDirectory {
    /// Starts a directory that will appear at `path`. There must be none, or an empty one; or, if it `replaces`, one
    /// that contains nothing but files whose names end in one of `extensions`, directories with Hive's names
    /// (`year=2024`), and a [`SCHEMA_FILE`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io) if there is anything else, or no directory can be created.
    pub fn create(path: impl AsRef<Path>, replaces: bool, extensions: &[&str]) -> Result<NewDirectory> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let refused = |why: String| about(&name, why);
        // `.` has a name of its own.
        let path = match fs::metadata(path) {
            Ok(found) if !found.is_dir() => {
                return Err(refused("it is a file, not a directory".to_string()).with(Detail::AlreadyExists));
            }
            Ok(_) => {
                let path = fs::canonicalize(path).map_err(|error| cannot_write(&name, error))?;
                match first_other(&path, replaces, extensions).map_err(|error| cannot_write(&name, error))? {
                    None if is_mount_point(&path) => {
                        return Err(refused(
                            "it is a mount point, which no directory can replace: name a directory in it"
                                .to_string(),
                        ));
                    }
                    None => path,
                    Some(other) if replaces => {
                        let other = other.display();
                        return Err(refused(format!(
                            "it contains {other}, which is not a Parquet file and is not replaced"
                        )));
                    }
                    Some(_) => return Err(refused(NOT_EMPTY.to_string()).with(Detail::AlreadyExists)),
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                followed(path).map_err(|error| cannot_write(&name, error))?
            }
            Err(error) => return Err(cannot_write(&name, error)),
        };
        if path.file_name().is_none() {
            return Err(refused("it cannot be created as a directory".to_string()));
        }
        if !directory(&path).is_dir() {
            let missing = format!("there is no directory {}", directory(&path).display());
            return Err(refused(missing).with(Detail::NotFound));
        }
        // What has anything else in it is not this code's.
        remove_abandoned(&path, |hidden, kind| {
            kind.is_dir() && matches!(first_other(hidden, true, extensions), Ok(None))
        });
        Ok(NewDirectory {
            like: first_file(&path),
            path,
            name,
            waiting: Vec::new(),
            open_max: files_max() / 2,
            written: Arc::default(),
            hidden: None,
            made: BTreeSet::new(),
            kept: Vec::new(),
        })
    }

    /// Where the directory will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a file that will appear at `place` in the directory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io).
    pub fn file(&mut self, place: &Path) -> Result<NewFile> {
        let path = self.path.join(place);
        let name = path.display().to_string();
        let mut new = match nameless::create_in(directory(&self.path)) {
            Some((file, temporary)) => NewFile::with(file, temporary, false, path, name),
            None => self.file_with_name(place, path, &name).map_err(|error| cannot_write(&name, error))?,
        };
        new.count_by(Some(Arc::clone(&self.written)));
        Ok(new)
    }

    fn file_with_name(&mut self, place: &Path, path: PathBuf, name: &str) -> io::Result<NewFile> {
        let hidden = self.place(place)?;
        let file = OpenOptions::new().write(true).create_new(true).open(&hidden)?;
        Ok(NewFile::with(file, hidden, true, path, name.to_string()))
    }

    /// Keeps a complete file. It is on disk before the directory gets its name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io).
    pub fn keep(&mut self, mut file: NewFile, place: PathBuf) -> Result<()> {
        file.count_by(None);
        self.kept.push(place.clone());
        let kept = || {
            let replaced = fs::metadata(self.path.join(&place)).ok().filter(fs::Metadata::is_file);
            if let Some(replaced) = replaced.as_ref().or(self.like.as_ref()) {
                take_access(file.file(), replaced)?;
            }
            Ok(())
        };
        let kept = kept().and_then(|()| {
            if file.is_named() {
                // The directory manages its name from now on.
                file.leave();
                return file.sync();
            }
            self.waiting.push((file, place));
            let written = Arc::strong_count(&self.written) - 1;
            if self.waiting.len() + 2 * written >= self.open_max { self.name_all() } else { Ok(()) }
        });
        kept.map_err(|error| cannot_write(&self.name, error))
    }

    /// The files that were kept: their places in the directory, and where each can be read before the directory has its name.
    pub fn kept(&self) -> impl Iterator<Item = (&Path, PathBuf)> {
        // Those that wait are the last.
        let named = self.kept.len() - self.waiting.len().min(self.kept.len());
        let hidden = self.hidden.as_ref().map_or(Path::new(""), |hidden| &hidden.path);
        let named_ones = self.kept[..named].iter().map(|place| (place.as_path(), hidden.join(place)));
        let waiting =
            self.waiting.iter().map(|(file, place)| (place.as_path(), file.temporary().to_path_buf()));
        named_ones.chain(waiting)
    }

    /// Gives the directory its name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io), also if something has appeared at its path meanwhile. Then
    /// nothing is left; but if only the directory that it is in cannot be synced, it is in place and complete, and the
    /// message says that its name may not survive a power failure.
    pub fn commit(mut self) -> Result<()> {
        let added = self.add().map_err(|error| match error.kind() {
            // Another process was faster.
            io::ErrorKind::DirectoryNotEmpty
            | io::ErrorKind::AlreadyExists
            | io::ErrorKind::NotADirectory => {
                about(&self.name, NOT_EMPTY).with(Detail::AlreadyExists).caused_by(error)
            }
            _ => cannot_write(&self.name, error),
        });
        added.and_then(|()| in_place(&self.name, sync_directory(directory(&self.path))))
    }

    /// The same, but replaces an existing directory, if its contents are those that [`NewDirectory::create`] may
    /// replace.
    ///
    /// # Errors
    ///
    /// As [`commit`](NewDirectory::commit)'s; then the existing directory stays.
    pub fn replace(mut self, extensions: &[&str]) -> Result<()> {
        self.put(extensions).map_err(|error| cannot_write(&self.name, error))?;
        in_place(&self.name, sync_directory(directory(&self.path)))
    }

    fn add(&mut self) -> io::Result<()> {
        let hidden = self.finish()?;
        // It may replace an empty directory, and nothing else.
        fs::rename(&hidden, &self.path)?;
        self.hidden = None;
        Ok(())
    }

    fn put(&mut self, extensions: &[&str]) -> io::Result<()> {
        if fs::symlink_metadata(&self.path).is_err() {
            match self.add() {
                // Another process was faster.
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
                added => return added,
            }
        }
        if let Some(other) = first_other(&self.path, true, extensions)? {
            return Err(meanwhile(&self.path, &other));
        }
        self.take_place(extensions)
    }

    /// Exchanges places with the existing directory.
    fn take_place(&mut self, extensions: &[&str]) -> io::Result<()> {
        let hidden = self.finish()?;
        exchange(&hidden, &self.path)?;
        // The old directory has the hidden name now and is removed with this one, unless something was put there
        // since it was checked.
        if let Some(other) = left_over(&hidden, extensions)? {
            exchange(&hidden, &self.path)?;
            return Err(meanwhile(&hidden, &other));
        }
        Ok(())
    }

    /// Puts all files into the hidden directory and syncs it.
    fn finish(&mut self) -> io::Result<PathBuf> {
        self.name_all()?;
        let hidden = self.hidden()?;
        if self.made.len() > SYNCED_APART_MAX {
            write_back(&fs::File::open(&hidden)?);
        }
        for below in &self.made {
            sync_directory(&hidden.join(below))?;
            take_access_of_directory(&hidden.join(below), &self.path.join(below))?;
        }
        sync_directory(&hidden)?;
        take_access_of_directory(&hidden, &self.path)?;
        Ok(hidden)
    }

    /// Links all nameless files into the hidden directory, once they are on disk.
    fn name_all(&mut self) -> io::Result<()> {
        if let (Some((file, _)), true) = (self.waiting.first(), self.waiting.len() > SYNCED_APART_MAX) {
            write_back(file.file());
        }
        for (file, _) in &self.waiting {
            file.sync()?;
        }
        for (file, place) in std::mem::take(&mut self.waiting) {
            nameless::link(file.temporary(), &self.place(&place)?)?;
        }
        Ok(())
    }

    /// The hidden directory.
    fn hidden(&mut self) -> io::Result<PathBuf> {
        if let Some(hidden) = &self.hidden {
            return Ok(hidden.path.clone());
        }
        let is_replacing = fs::symlink_metadata(&self.path).is_ok();
        let (lock, path) = beside(&self.path, |hidden| {
            // What is in it may not be for everybody, which is settled at the end.
            if is_replacing {
                create_private(hidden)?
            } else {
                fs::create_dir(hidden)?
            }
            lock_directory(hidden)
        })?;
        self.hidden = Some(Hidden { path: path.clone(), _lock: lock });
        Ok(path)
    }

    /// A path in it, whose directory exists.
    fn place(&mut self, place: &Path) -> io::Result<PathBuf> {
        let hidden = self.hidden()?;
        let mut below = PathBuf::new();
        for name in place.parent().into_iter().flat_map(Path::components) {
            below.push(name);
            if self.made.insert(below.clone()) {
                fs::create_dir(hidden.join(&below))?;
            }
        }
        Ok(hidden.join(place))
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        if let Some(hidden) = &self.hidden {
            // The caller already has another error.
            let _ = fs::remove_dir_all(&hidden.path);
        }
    }
}

/// Raises the number of files that this process may have open as far as the system allows, so that more of them can
/// wait without a name. That is for programs to decide: no library of this workspace does so by itself.
pub fn allow_many_files() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let maximum = getrlimit(Resource::Nofile).maximum;
        // If that is not allowed, the limit stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Files that this process may have open, capped because each takes system memory.
fn files_max() -> usize {
    const MOST: usize = 1 << 17;
    #[cfg(target_os = "linux")]
    let current = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(target_os = "linux"))]
    let current = Some(0);
    current.and_then(|current| usize::try_from(current).ok()).unwrap_or(MOST).min(MOST)
}

/// The most files and directories that are synced one by one. With more, the whole file system is synced first, which
/// takes one commit of its journal instead of one each.
const SYNCED_APART_MAX: usize = 16;

/// Syncs the whole file system. Errors are reported when the files are synced afterwards.
fn write_back(any: &fs::File) {
    #[cfg(target_os = "linux")]
    let _ = rustix::fs::syncfs(any);
    #[cfg(not(target_os = "linux"))]
    let _ = any;
}

/// Opens and locks a hidden directory that was just created; `None` where directories cannot be opened or locked.
pub(super) fn lock_directory(hidden: &Path) -> io::Result<Option<fs::File>> {
    match fs::File::open(hidden) {
        Ok(lock) => Ok(lock_new(&lock, hidden)?.then_some(lock)),
        // Another process took it for abandoned.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => Ok(None),
    }
}

/// Why a directory is refused where none may be replaced.
const NOT_EMPTY: &str = "the directory is not empty";

/// Creates a directory that only its owner can look into.
fn create_private(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Gives a directory the mode and the owners of the one that it replaces, if there is one.
#[cfg(unix)]
fn take_access_of_directory(new: &Path, replaced: &Path) -> io::Result<()> {
    match fs::metadata(replaced) {
        Ok(replaced) if replaced.is_dir() => take_access(&fs::File::open(new)?, &replaced),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn take_access_of_directory(_: &Path, _: &Path) -> io::Result<()> {
    Ok(())
}

/// The first file that is found in a directory.
fn first_file(path: &Path) -> Option<fs::Metadata> {
    fs::read_dir(path).ok()?.flatten().find_map(|entry| {
        let kind = entry.file_type().ok()?;
        if kind.is_dir() {
            first_file(&entry.path())
        } else {
            entry.metadata().ok().filter(|_| kind.is_file())
        }
    })
}

/// Whether another file system, or another place of one, is mounted at a directory.
#[cfg(target_os = "linux")]
fn is_mount_point(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    // Where the system does not know, moving the directory into place fails in the end.
    statx(CWD, path, AtFlags::empty(), StatxFlags::BASIC_STATS).is_ok_and(|found| {
        StatxAttributes::from_bits_retain(found.stx_attributes.bits()).contains(StatxAttributes::MOUNT_ROOT)
    })
}

#[cfg(not(target_os = "linux"))]
fn is_mount_point(_: &Path) -> bool {
    false
}

/// The first entry of a directory that may not be replaced: any entry, unless it `replaces`.
fn first_other(path: &Path, replaces: bool, extensions: &[&str]) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        let path = entry.path();
        let has_extension = path
            .extension()
            .and_then(OsStr::to_str)
            .is_some_and(|found| extensions.iter().any(|known| found.eq_ignore_ascii_case(known)));
        let other = match () {
            () if !replaces => Some(path),
            () if kind.is_file() && (has_extension || name == SCHEMA_FILE) => None,
            () if kind.is_dir() && name.as_encoded_bytes().contains(&b'=') => {
                first_other(&path, true, extensions)?
            }
            () => Some(path),
        };
        if other.is_some() {
            return Ok(other);
        }
    }
    Ok(None)
}

/// The first entry of a directory that was replaced, and may not be. Its hidden name is not locked, so another process may
/// take it for abandoned and remove it meanwhile; but only if it has no such entry.
fn left_over(replaced: &Path, extensions: &[&str]) -> io::Result<Option<PathBuf>> {
    match first_other(replaced, true, extensions) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found,
    }
}

/// Something that is not replaced was put into a directory while its replacement was written.
fn meanwhile(directory: &Path, other: &Path) -> io::Error {
    let name = other.strip_prefix(directory).unwrap_or(other).display();
    io::Error::other(format!(
        "{name} was put there meanwhile, which is not a Parquet file and is not replaced"
    ))
}

/// Exchanges two directories: atomically, where the system can.
#[cfg(target_os = "linux")]
fn exchange(hidden: &Path, path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, hidden, CWD, path, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        // Some file systems cannot.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => exchange_in_steps(hidden, path),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(hidden: &Path, path: &Path) -> io::Result<()> {
    exchange_in_steps(hidden, path)
}

/// The same, through a third name: the old directory has a hidden name for a moment.
fn exchange_in_steps(hidden: &Path, path: &Path) -> io::Result<()> {
    // Its name is not one that may be taken for abandoned.
    let mut old = path.as_os_str().to_os_string();
    old.push(".old");
    let ((), aside) = beside(Path::new(&old), |aside| fs::rename(path, aside))?;
    if let Err(error) = fs::rename(hidden, path) {
        // Put it back.
        let _ = fs::rename(&aside, path);
        return Err(error);
    }
    fs::rename(aside, hidden)
}

#[cfg(test)]
mod tests;
