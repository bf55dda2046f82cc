//! A directory that others do not see yet.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::directory::lock_directory;
use super::write::{beside, remove_abandoned};

/// A new directory with a hidden name beside the one that it will be: `.out.1234-0.part` for `out`. It is locked while this lives, so that a directory
/// that a killed process left can be told from one that is written.
///
/// Dropping it leaves the directory where it is.
#[derive(Debug)]
pub struct HiddenDirectory {
    path: PathBuf,
    _lock: Option<File>,
}

impl HiddenDirectory {
    /// Creates one for `path`, and removes those that killed processes left for the same path, if `is_own` says that what is in them is what this
    /// caller writes.
    ///
    /// # Errors
    ///
    /// If no directory can be created there.
    pub fn create(path: &Path, is_own: impl Fn(&Path) -> bool) -> io::Result<HiddenDirectory> {
        remove_abandoned(path, |hidden, kind| kind.is_dir() && is_own(hidden));
        let make = |hidden: &Path| {
            fs::create_dir(hidden)?;
            lock_directory(hidden)
        };
        let (lock, path) = beside(path, make)?;
        Ok(HiddenDirectory { path, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_and_what_others_write_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let make = |name: &str, file: &str| {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join(file), "").unwrap();
        };
        make(".out.123-0.part", "own");
        make(".out.123-1.part", "other");
        make(".else.123-0.part", "own");
        let is_own = |hidden: &Path| hidden.join("own").exists();
        let first = HiddenDirectory::create(&path, is_own).unwrap();
        fs::write(first.path().join("own"), "").unwrap();
        let second = HiddenDirectory::create(&path, is_own).unwrap();
        assert!(first.path().exists() && second.path().exists());
        let there = |name: &str| folder.path().join(name).exists();
        assert_eq!(
            [".out.123-0.part", ".out.123-1.part", ".else.123-0.part"].map(there),
            [false, true, true]
        );
        let left = first.path().to_path_buf();
        drop(first);
        drop(HiddenDirectory::create(&path, is_own).unwrap());
        assert!(!left.exists());
    }
}
