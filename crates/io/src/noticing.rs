//! What others change in directories, as the kernel reports it: Linux's inotify.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use marquetry_base::Result;

#[cfg(target_os = "linux")]
use linux::Watches;
#[cfg(not(target_os = "linux"))]
use other::Watches;

/// Reports which names appear, disappear or are written in directories, without looking at them again and again.
///
/// Only the directories that are [watched](Noticing::watch), not those below them. A file counts as changed when it gets its name, when a
/// program that wrote it closes it, and when it loses its name; not with each byte that is written.
///
/// ```no_run
/// use std::time::Duration;
///
/// use marquetry_io::Noticing;
///
/// # fn main() -> marquetry_base::Result<()> {
/// let mut noticing = Noticing::new()?;
/// noticing.watch("incoming".as_ref())?;
/// loop {
///     for path in noticing.wait(Duration::from_secs(60))?.changed {
///         println!("{}", path.display());
///     }
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Noticing {
    watches: Watches,
}

/// What was reported.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Noticed {
    /// Paths in directories that are watched. A directory itself if it was removed, or moved away: then it is not watched any more.
    pub changed: BTreeSet<PathBuf>,
    /// More changed than the kernel kept: look at everything.
    pub has_lost: bool,
}

impl Noticed {
    /// Whether nothing was reported.
    pub fn is_empty(&self) -> bool {
        self.changed.is_empty() && !self.has_lost
    }
}

impl Noticing {
    /// Watches nothing yet.
    ///
    /// # Errors
    ///
    /// `Unsupported` on systems other than Linux; `Io` if the kernel refuses.
    pub fn new() -> Result<Noticing> {
        Ok(Noticing { watches: Watches::new()? })
    }

    /// Whether the kernel reports all changes below a path: those that another machine makes on a network's file system it does not know.
    ///
    /// # Errors
    ///
    /// `Io` if the file system cannot be looked at.
    pub fn is_complete_for(&self, path: &Path) -> Result<bool> {
        self.watches.is_complete_for(path)
    }

    /// Watches a directory. One that is watched already stays so.
    ///
    /// # Errors
    ///
    /// `Io`, also for what is not a directory, and where the kernel's limit of watches is reached.
    pub fn watch(&mut self, directory: &Path) -> Result<()> {
        self.watches.add(directory)
    }

    /// Waits until something is reported, but not longer than `at_most`; may return earlier with nothing, after a signal.
    ///
    /// # Errors
    ///
    /// `Io` if the kernel cannot be asked.
    pub fn wait(&mut self, at_most: Duration) -> Result<Noticed> {
        self.watches.wait(at_most)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::ffi::OsStr;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};
    use rustix::fs::statfs;
    use rustix::io::Errno;

    use super::{Duration, Noticed, Path, PathBuf, Result};
    use crate::failure::{about, failed};

    /// Bytes of events that are read at a time: some hundred.
    const BUFFER_BYTES: usize = 16 << 10;

    /// Numbers of file systems that others change without this kernel (`magic.h` of Linux): NFS, SMB, CIFS, FUSE, 9P, Ceph, AFS, GFS2,
    /// OCFS2, Lustre.
    const REMOTE: &[u32] = &[
        0x6969,
        0x517b,
        0xff53_4d42,
        0xfe53_4d42,
        0x6573_5546,
        0x0102_1997,
        0x00c3_6400,
        0x5346_414f,
        0x0116_1970,
        0x7461_636f,
        0x0bd0_0bd0,
    ];

    #[derive(Debug)]
    pub(super) struct Watches {
        inotify: OwnedFd,
        directories: BTreeMap<i32, PathBuf>,
    }

    impl Watches {
        pub(super) fn new() -> Result<Watches> {
            let made = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
            let inotify = made.map_err(|errno| failed("started", "inotify", errno.into()))?;
            Ok(Watches { inotify, directories: BTreeMap::new() })
        }

        pub(super) fn is_complete_for(&self, path: &Path) -> Result<bool> {
            let found = statfs(path);
            let found =
                found.map_err(|errno| failed("looked at", &path.display().to_string(), errno.into()))?;
            // The number is one of 32 bits, in a word whose width and sign depend on the machine.
            Ok(!REMOTE.iter().any(|kind| i128::from(found.f_type) & 0xffff_ffff == i128::from(*kind)))
        }

        pub(super) fn add(&mut self, directory: &Path) -> Result<()> {
            let flags = WatchFlags::CREATE
                | WatchFlags::MOVED_TO
                | WatchFlags::MOVED_FROM
                | WatchFlags::DELETE
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            let name = directory.display().to_string();
            let added = add_watch(&self.inotify, directory, flags).map_err(|errno| match errno {
                Errno::NOSPC => about(
                    &name,
                    "the kernel watches no more directories: raise the sysctl fs.inotify.max_user_watches",
                ),
                errno => failed("watched", &name, errno.into()),
            });
            self.directories.insert(added?, directory.to_path_buf());
            Ok(())
        }

        pub(super) fn wait(&mut self, at_most: Duration) -> Result<Noticed> {
            let cannot = |errno: Errno| failed("read", "inotify", io::Error::from(errno));
            let timeout = Timespec {
                tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: at_most.subsec_nanos().into(),
            };
            let mut noticed = Noticed::default();
            match poll(&mut [PollFd::new(&self.inotify, PollFlags::IN)], Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => return Ok(noticed),
                Ok(_) => {}
                Err(errno) => return Err(cannot(errno)),
            }
            let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
            let mut reader = Reader::new(&self.inotify, &mut buffer);
            loop {
                let event = match reader.next() {
                    Ok(event) => event,
                    Err(Errno::AGAIN) => return Ok(noticed),
                    Err(Errno::INTR) => continue,
                    Err(errno) => return Err(cannot(errno)),
                };
                let kind = event.events();
                if kind.contains(ReadFlags::QUEUE_OVERFLOW) {
                    noticed.has_lost = true;
                    continue;
                }
                let Some(directory) = self.directories.get(&event.wd()) else { continue };
                match event.file_name() {
                    Some(name) => {
                        noticed.changed.insert(directory.join(OsStr::from_bytes(name.to_bytes())));
                    }
                    None => {
                        noticed.changed.insert(directory.clone());
                    }
                }
                if kind.contains(ReadFlags::IGNORED) {
                    self.directories.remove(&event.wd());
                }
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use marquetry_base::Error;

    use super::{Duration, Noticed, Path, Result};

    #[derive(Debug)]
    pub(super) enum Watches {}

    impl Watches {
        pub(super) fn new() -> Result<Watches> {
            Err(Error::unsupported("this system's way to report what changes in directories"))
        }

        pub(super) fn is_complete_for(&self, _: &Path) -> Result<bool> {
            match *self {}
        }

        pub(super) fn add(&mut self, _: &Path) -> Result<()> {
            match *self {}
        }

        pub(super) fn wait(&mut self, _: Duration) -> Result<Noticed> {
            match *self {}
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::fs;

    const LONG: Duration = Duration::from_secs(20);
    const NOT_AT_ALL: Duration = Duration::ZERO;

    /// All that is reported until `is_enough`.
    fn until(noticing: &mut Noticing, is_enough: impl Fn(&BTreeSet<PathBuf>) -> bool) -> BTreeSet<PathBuf> {
        let mut all = BTreeSet::new();
        while !is_enough(&all) {
            let noticed = noticing.wait(LONG).unwrap();
            assert!(!noticed.is_empty(), "nothing more is reported than {all:?}");
            all.extend(noticed.changed);
        }
        all
    }

    #[test]
    fn names_that_appear_and_disappear_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        fs::create_dir(&a).unwrap();
        fs::create_dir(&b).unwrap();
        let mut noticing = Noticing::new().unwrap();
        assert!(noticing.is_complete_for(&a).unwrap());
        noticing.watch(&a).unwrap();
        assert!(noticing.wait(NOT_AT_ALL).unwrap().is_empty());
        fs::write(a.join("one"), "1").unwrap();
        fs::write(b.join("unseen"), "1").unwrap();
        until(&mut noticing, |all| all.contains(&a.join("one")));
        // Watched once more, it is not reported twice or under another name.
        noticing.watch(&a).unwrap();
        fs::rename(b.join("unseen"), a.join("two")).unwrap();
        until(&mut noticing, |all| all.contains(&a.join("two")));
        fs::remove_file(a.join("one")).unwrap();
        let all = until(&mut noticing, |all| all.contains(&a.join("one")));
        assert!(all.iter().all(|path| path.starts_with(&a)), "{all:?}");
    }

    #[test]
    fn directories_that_are_removed_are_reported_and_can_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        fs::create_dir(&gone).unwrap();
        let mut noticing = Noticing::new().unwrap();
        noticing.watch(&gone).unwrap();
        fs::remove_dir(&gone).unwrap();
        until(&mut noticing, |all| all.contains(&gone));
        while !noticing.wait(NOT_AT_ALL).unwrap().is_empty() {}
        assert!(noticing.watch(&gone).is_err());
        fs::create_dir(&gone).unwrap();
        noticing.watch(&gone).unwrap();
        fs::write(gone.join("new"), "").unwrap();
        until(&mut noticing, |all| all.contains(&gone.join("new")));
    }

    #[test]
    fn only_directories_are_watched() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = Noticing::new().unwrap().watch(&file).unwrap_err();
        assert_eq!(error.place().object.as_deref(), file.to_str());
    }
}
