//! Files that are written: one that appears when it is complete, and a temporary one without a name.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Result};

use super::{read_at, zeroed};
use crate::failure::{about, failed, said};
use crate::sink::ByteSink;
use crate::source::beyond_end;

/// A file that appears under its name only once it is complete.
///
/// Until then it has no name at all, where the system allows that (Linux, on most file systems), so that nothing is
/// left of it whatever happens to the process. Elsewhere, and at the moment when it replaces another file, it has a
/// hidden name in the same directory. A process killed then leaves that hidden file, which readers skip and the next
/// `NewFile` of that name removes.
///
/// A symbolic link at that name is followed: the file appears where the link leads, and the link stays. A file that
/// replaces another has its mode, and its owner and group if this process may give files to them; otherwise those who
/// could not read the old one cannot read the new one either.
///
/// Dropping it before it is committed removes it: whatever goes wrong, no half-written file has that name, and an
/// existing file stays.
#[derive(Debug)]
pub struct NewFile {
    file: fs::File,
    /// Where it can be read.
    temporary: PathBuf,
    /// Whether that is a hidden name. Then the file is locked, where files can be: its process lives.
    is_named: bool,
    path: PathBuf,
    name: String,
    /// If it is one of a directory that counts those that are being written: its mark there.
    counted: Option<Arc<()>>,
}

impl NewFile {
    /// Starts a file that will appear at `path`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io) if no file can be created in that directory, or if something
    /// other than a file exists at `path`.
    pub fn create(path: impl AsRef<Path>) -> Result<NewFile> {
        let name = path.as_ref().display().to_string();
        let path = followed(path.as_ref()).map_err(|error| cannot_write(&name, error))?;
        let found = fs::metadata(&path).ok();
        if path.file_name().is_none() || found.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(about(&name, "it is a directory"));
        }
        // A device or a pipe would be replaced by a file, which nobody wants of `/dev/null`.
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            return Err(about(&name, "it is neither a file nor a directory, and is not replaced"));
        }
        remove_abandoned(&path, |_, kind| kind.is_file());
        let created = match nameless::create_in(directory(&path)) {
            Some((file, temporary)) => NewFile::with(file, temporary, false, path, name),
            None => NewFile::hidden(path, name)?,
        };
        // From the start: where it has a hidden name, others could read it until it is complete.
        created.take_access().map_err(|error| cannot_write(&created.name, error))?;
        Ok(created)
    }

    /// A file with a hidden name.
    fn hidden(path: PathBuf, name: String) -> Result<NewFile> {
        let make = |hidden: &Path| {
            let file = OpenOptions::new().write(true).create_new(true).open(hidden)?;
            lock_new(&file, hidden)?;
            Ok(file)
        };
        let (file, temporary) = beside(&path, make).map_err(|error| cannot_write(&name, error))?;
        Ok(NewFile::with(file, temporary, true, path, name))
    }

    /// Wraps a file that is already open.
    pub(super) fn with(
        file: fs::File,
        temporary: PathBuf,
        is_named: bool,
        path: PathBuf,
        name: String,
    ) -> NewFile {
        NewFile { file, temporary, is_named, path, name, counted: None }
    }

    /// Counts by a mark until it is complete, or dropped.
    pub(super) fn count_by(&mut self, mark: Option<Arc<()>>) {
        self.counted = mark;
    }

    /// Waits until all of it is on disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// The file itself.
    pub(crate) fn file(&self) -> &fs::File {
        &self.file
    }

    /// Whether it has a hidden name, removed on drop.
    pub(super) fn is_named(&self) -> bool {
        self.is_named
    }

    /// Keeps that name on drop.
    pub(super) fn leave(&mut self) {
        self.is_named = false;
    }

    /// Where it will appear: the path that it was created with, with links followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it can be read until it has its name.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Syncs the file and gives it its name, unless another file has that name by now.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io), also if a file of that name exists. Then this file is
    /// removed; but if only its directory cannot be synced, it is in place, complete and synced, and the message says
    /// that its name may not survive a power failure.
    pub fn commit(mut self) -> Result<()> {
        self.add().map_err(|error| cannot_write(&self.name, error))?;
        in_place(&self.name, sync_directory(directory(&self.path)))
    }

    /// The same, but replaces an existing file of that name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io). Then this file is removed and the existing one stays; but if
    /// only the directory cannot be synced, this one is in place, as after [`commit`](NewFile::commit).
    pub fn replace(mut self) -> Result<()> {
        self.put().map_err(|error| cannot_write(&self.name, error))?;
        in_place(&self.name, sync_directory(directory(&self.path)))
    }

    /// Takes over the mode and the owners of the file that it replaces, if there is one.
    fn take_access(&self) -> io::Result<()> {
        match fs::metadata(&self.path) {
            Ok(replaced) => take_access(&self.file, &replaced),
            Err(_) => Ok(()),
        }
    }

    fn add(&mut self) -> io::Result<()> {
        self.file.sync_all()?;
        // Linking replaces nothing. The hidden name is removed when this is dropped.
        let linked = match self.is_named {
            true => fs::hard_link(&self.temporary, &self.path),
            false => nameless::link(&self.temporary, &self.path),
        };
        match linked {
            // Some file systems have no links.
            Err(error) if self.is_named && error.kind() != io::ErrorKind::AlreadyExists => {
                if fs::symlink_metadata(&self.path).is_ok() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                fs::rename(&self.temporary, &self.path)?;
                self.is_named = false;
            }
            linked => linked?,
        }
        Ok(())
    }

    fn put(&mut self) -> io::Result<()> {
        self.take_access()?;
        self.file.sync_all()?;
        if !self.is_named {
            // Renaming replaces an existing file, but needs a name. Where files cannot be locked, nobody removes it.
            let _ = self.file.try_lock();
            let ((), hidden) = beside(&self.path, |hidden| nameless::link(&self.temporary, hidden))?;
            (self.temporary, self.is_named) = (hidden, true);
        }
        fs::rename(&self.temporary, &self.path)?;
        self.is_named = false;
        Ok(())
    }
}

/// Files without a name.
#[cfg(target_os = "linux")]
pub(super) mod nameless {
    use std::fs;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};

    /// A nameless file in a directory, and the path to read it by; `None` if the system has no such files.
    pub(in super::super) fn create_in(directory: &Path) -> Option<(fs::File, PathBuf)> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = fs::File::from(openat(CWD, directory, flags, Mode::from_raw_mode(0o666)).ok()?);
        let place = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        // It gets its name through that path, which needs /proc.
        place.exists().then_some((file, place))
    }

    /// Gives it a name that is free.
    pub(in super::super) fn link(place: &Path, path: &Path) -> io::Result<()> {
        Ok(linkat(CWD, place, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) mod nameless {
    use std::fs;
    use std::io;
    use std::path::{Path, PathBuf};

    pub(in super::super) fn create_in(_: &Path) -> Option<(fs::File, PathBuf)> {
        None
    }

    pub(in super::super) fn link(_: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl ByteSink for NewFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| cannot_write(&self.name, error))
    }

    fn read(&mut self, _range: Range<u64>) -> Result<Bytes> {
        Err(about(&self.name, "it is being written, and cannot be read"))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.is_named {
            // Who drops it has other trouble already.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// A file without a name, for what a machine wants out of memory for a while. The system frees it with its last user,
/// whatever happens to the process.
#[derive(Debug)]
pub struct SpillFile {
    file: fs::File,
    name: String,
    length: u64,
    /// Its path, on systems where an open file must keep its name.
    #[cfg(not(unix))]
    path: PathBuf,
}

impl SpillFile {
    /// Creates a file [beside](SpillFile::create_beside) a path, or in the system's temporary directory if there is
    /// none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io) if no file can be created there.
    pub fn create(beside: Option<&Path>) -> Result<SpillFile> {
        match beside {
            Some(path) => SpillFile::create_beside(path),
            None => SpillFile::create_beside(std::env::temp_dir().join("marquetry")),
        }
    }

    /// Creates a file in the directory of `path`: on the disk where the output goes, not in memory.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io) if no file can be created there.
    pub fn create_beside(path: impl AsRef<Path>) -> Result<SpillFile> {
        let path = path.as_ref();
        let name = format!("a temporary file in {}", directory(path).display());
        let cannot = |error: io::Error| cannot_write(&name, error);
        let make = |hidden: &Path| OpenOptions::new().read(true).write(true).create_new(true).open(hidden);
        let named = || {
            let (file, path) = beside(path, make)?;
            #[cfg(unix)]
            fs::remove_file(&path)?;
            Ok((file, path))
        };
        #[cfg_attr(unix, expect(unused_variables, reason = "it has no path any more"))]
        let (file, path) = nameless::create_in(directory(path)).map_or_else(named, Ok).map_err(cannot)?;
        Ok(SpillFile {
            file,
            name,
            length: 0,
            #[cfg(not(unix))]
            path,
        })
    }
}

impl SpillFile {
    /// The file itself.
    #[cfg(feature = "uring")]
    pub(crate) fn file(&self) -> &fs::File {
        &self.file
    }
}

impl ByteSink for SpillFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|error| cannot_write(&self.name, error))?;
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
                Ok(0) => return Err(about(&self.name, "it became shorter")),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed("read", &self.name, error)),
            }
        }
        // If reads move the position of writes, it is restored.
        #[cfg(not(unix))]
        io::Seek::seek(&mut self.file, io::SeekFrom::Start(self.length))
            .map_err(|error| cannot_write(&self.name, error))?;
        Ok(Bytes::from(bytes))
    }
}

#[cfg(not(unix))]
impl Drop for SpillFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Names tried before giving up: one process never has this many hidden files in one directory.
const TRIES: u32 = 1000;

/// Creates something in the directory of `path` under a free, hidden name, which readers of directories skip.
pub(super) fn beside<T>(path: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let mut last = None;
    for _ in 0..TRIES {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let mut hidden = OsString::from(".");
        hidden.push(path.file_name().unwrap_or_default());
        hidden.push(format!(".{}-{number}.part", std::process::id()));
        let temporary = path.with_file_name(hidden);
        match make(&temporary) {
            Ok(made) => return Ok((made, temporary)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => last = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(last.unwrap_or_else(|| io::ErrorKind::AlreadyExists.into()))
}

/// Whether a name is one that [`beside`] gives for `path`.
pub(super) fn is_hidden_name(name: &OsStr, path: &Path) -> bool {
    let number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    let own = path.file_name().unwrap_or_default().as_encoded_bytes();
    let numbers = name.as_encoded_bytes().strip_prefix(b".").and_then(|rest| rest.strip_prefix(own));
    let numbers = numbers.and_then(|rest| rest.strip_prefix(b".")?.strip_suffix(b".part"));
    numbers.is_some_and(|numbers| {
        let mut parts = numbers.split(|byte| *byte == b'-');
        matches!((parts.next(), parts.next(), parts.next()), (Some(a), Some(b), None) if number(a) && number(b))
    })
}

/// Locks what was just created under a hidden name. If that has gone, another process took it for abandoned: then
/// another name must be tried. False where it cannot be locked; then nobody takes it for abandoned, either.
pub(super) fn lock_new(created: &fs::File, hidden: &Path) -> io::Result<bool> {
    match created.try_lock() {
        Ok(()) if fs::symlink_metadata(hidden).is_ok() => Ok(true),
        Ok(()) | Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(fs::TryLockError::Error(_)) => Ok(false),
    }
}

/// Removes what has a hidden name for `path`, is of the kind wanted, and belongs to a process that was killed: nobody
/// holds its lock. Nobody asked for this, so failures are not reported.
pub(super) fn remove_abandoned(path: &Path, is_wanted: impl Fn(&Path, fs::FileType) -> bool) {
    let Ok(entries) = fs::read_dir(directory(path)) else { return };
    for entry in entries.flatten() {
        let hidden = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        // Opening a pipe would wait.
        if !(kind.is_file() || kind.is_dir()) || !is_hidden_name(&entry.file_name(), path) {
            continue;
        }
        // A network's file system locks only files that are open for writing.
        let opened = OpenOptions::new().write(true).open(&hidden).or_else(|_| fs::File::open(&hidden));
        if let Ok(lock) = opened
            && lock.try_lock().is_ok()
            && is_same(&lock, &hidden)
            && is_wanted(&hidden, kind)
        {
            let _ = if kind.is_dir() { fs::remove_dir_all(&hidden) } else { fs::remove_file(&hidden) };
        }
    }
}

/// Whether an open file still has this name, which another may have by now.
#[cfg(unix)]
fn is_same(open: &fs::File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let place = |found: &fs::Metadata| (found.dev(), found.ino());
    let (Ok(open), Ok(named)) = (open.metadata(), fs::symlink_metadata(path)) else { return false };
    place(&open) == place(&named)
}

#[cfg(not(unix))]
fn is_same(_: &fs::File, path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// Links that are followed, as many as Linux follows.
const LINKS_MAX: usize = 40;

/// Where a path leads if it is a symbolic link, whether or not something is there; otherwise the path.
pub(super) fn followed(path: &Path) -> io::Result<PathBuf> {
    // With a slash at its end, a path is never a link.
    let mut path: PathBuf = path.components().collect();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(target) => path = directory(&path).join(target),
            // No link, or nothing.
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("symbolic links lead in a circle, or there are too many"))
}

/// Gives a file or a directory the mode of the one that it replaces, and the owner and the group if that is permitted.
/// Otherwise group and others get only what both had, so that nobody gains access by another group.
#[cfg(unix)]
pub(super) fn take_access(file: &fs::File, replaced: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let owners = |found: &fs::Metadata| (found.uid(), found.gid());
    let mut own = file.metadata()?;
    if owners(&own) != owners(replaced) {
        let (user, group) = owners(replaced);
        // A file can often be given to a group where it cannot be given to a user.
        if fchown(file, Some(user), Some(group)).is_err() {
            let _ = fchown(file, None, Some(group));
        }
        own = file.metadata()?;
    }
    let mut mode = replaced.mode() & 0o7777;
    if own.gid() != replaced.gid() {
        let both = mode >> 3 & mode & 0o7;
        mode = mode & 0o700 | both << 3 | both;
    } else if own.uid() != replaced.uid() {
        mode &= 0o777;
    }
    if own.mode() & 0o7777 == mode {
        return Ok(());
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
pub(super) fn take_access(_: &fs::File, _: &fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// The directory of a path; the current one for a bare name.
pub(super) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Syncs a directory: a name is on disk once its directory is.
#[cfg(unix)]
pub(super) fn sync_directory(directory: &Path) -> io::Result<()> {
    fs::File::open(directory)?.sync_all()
}

#[cfg(not(unix))]
pub(super) fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The result of a commit, by that of syncing the directory where the output has its name already.
pub(super) fn in_place(name: &str, synced: io::Result<()>) -> Result<()> {
    synced.map_err(|cause| {
        let what = format!(
            "it is complete and in place, but its name may not survive a power failure: its directory could not be \
             synced: {}",
            said(&cause)
        );
        about(name, what).caused_by(cause)
    })
}

pub(super) fn cannot_write(name: &str, error: io::Error) -> Error {
    failed("written", name, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    fn mode(path: &Path) -> u32 {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[cfg(unix)]
    #[test]
    fn what_replaces_a_file_has_its_mode() {
        use std::os::unix::fs::{PermissionsExt, chown};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for (wanted, nameless) in [(0o600, true), (0o640, false), (0o664, true)] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
            let mut file = match nameless {
                true => NewFile::create(&path).unwrap(),
                false => NewFile::hidden(path.clone(), "a".to_string()).unwrap(),
            };
            file.append(b"new").unwrap();
            file.replace().unwrap();
            assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), wanted));
        }
        // Nobody else's business, even before it is complete.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(mode(NewFile::create(&path).unwrap().temporary()), 0o600);
        // Only who may give files away keeps the owner.
        if chown(&path, Some(12_345), Some(12_346)).is_ok() {
            use std::os::unix::fs::MetadataExt;
            NewFile::create(&path).unwrap().replace().unwrap();
            let found = fs::metadata(&path).unwrap();
            assert_eq!((found.uid(), found.gid(), mode(&path)), (12_345, 12_346, 0o600));
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("there")).unwrap();
        fs::write(path("there/target"), "old").unwrap();
        symlink("there/target", path("link")).unwrap();
        symlink("link", path("second")).unwrap();
        symlink("there/nothing", path("dangling")).unwrap();
        symlink("circle", path("circle")).unwrap();
        let new = |name: &str| {
            let mut file = NewFile::create(path(name)).unwrap();
            file.append(name.as_bytes()).unwrap();
            file
        };
        let text = |name: &str| fs::read_to_string(path(name)).unwrap();
        assert!(new("second").commit().is_err(), "its target exists");
        assert_eq!(text("there/target"), "old");
        new("second").replace().unwrap();
        new("dangling").commit().unwrap();
        assert_eq!(
            (text("there/target"), text("there/nothing")),
            ("second".to_string(), "dangling".to_string())
        );
        for name in ["link", "second", "dangling"] {
            assert!(fs::symlink_metadata(path(name)).unwrap().is_symlink(), "{name}");
        }
        assert!(NewFile::create(path("circle")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_not_replaced() {
        let error = NewFile::create("/dev/null").unwrap_err();
        assert!(error.message().contains("neither a file nor a directory"), "{error}");
    }

    /// What stands for files without a name where there are none.
    #[test]
    fn files_with_a_hidden_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let hidden = |text: &[u8]| {
            let mut file = NewFile::hidden(path.clone(), "a".to_string()).unwrap();
            file.append(text).unwrap();
            assert_eq!(fs::read(file.temporary()).unwrap(), text);
            file
        };
        let names = || fs::read_dir(folder.path()).unwrap().count();
        drop(hidden(b"nobody's"));
        assert_eq!(names(), 0);
        hidden(b"first").commit().unwrap();
        assert!(hidden(b"second").commit().is_err());
        assert_eq!((fs::read(&path).unwrap(), names()), (b"first".to_vec(), 1));
        hidden(b"third").replace().unwrap();
        assert_eq!((fs::read(&path).unwrap(), names()), (b"third".to_vec(), 1));
    }

    /// As a process leaves it that is killed.
    #[test]
    fn what_is_abandoned_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let names = || {
            let mut names: Vec<_> =
                fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
            names.sort();
            names
        };
        for name in [".a.123-0.part", ".a.123-1.part", ".b.123-0.part"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join(".a.123-2.part")).unwrap();
        let busy = OpenOptions::new().write(true).open(folder.path().join(".a.123-1.part")).unwrap();
        busy.try_lock().unwrap();
        let file = NewFile::create(&path).unwrap();
        assert_eq!(
            names(),
            [".a.123-1.part", ".a.123-2.part", ".b.123-0.part"],
            "the others are none of its"
        );
        drop(busy);
        file.replace().unwrap();
        assert_eq!(names(), [".a.123-1.part", ".a.123-2.part", ".b.123-0.part", "a"]);
        let at_work = NewFile::hidden(path.clone(), "a".to_string()).unwrap();
        drop(NewFile::create(&path).unwrap());
        assert!(at_work.temporary().exists() && names().len() == 4, "{:?}", names());
        at_work.replace().unwrap();
        assert_eq!(names(), [".a.123-2.part", ".b.123-0.part", "a"]);
    }

    /// A file that replaces another is locked before it has a name.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_being_replaced_is_locked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let mut file = NewFile::create(&path).unwrap();
        fs::create_dir(&path).unwrap();
        file.put().unwrap_err();
        assert!(file.is_named, "its last step fails: a file cannot be renamed to a directory");
        fs::remove_dir(&path).unwrap();
        drop(NewFile::create(&path).unwrap());
        assert!(file.temporary().exists());
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_in_place_is_reported_as_such() {
        let cause = io::Error::from_raw_os_error(5);
        let error = in_place("a", Err(cause)).unwrap_err();
        assert!(error.message().starts_with("it is complete and in place"), "{error}");
        assert_eq!(error.kind(), marquetry_base::ErrorKind::Io);
        assert!(std::error::Error::source(&error).is_some());
    }
}
