//! A directory that appears when everything in it is complete.

use std::fs::{self, OpenOptions};
use std::path::Path;

use marquetry_base::{Error, Result};
use marquetry_io::blocking::HiddenDirectory;
use marquetry_io::shown;
use marquetry_scylla::sstable::FileName;

use crate::subject::named;

/// Files beside SSTables.
const OTHER_FILES: [&str; 2] = ["schema.cql", "manifest.json"];

/// A directory that has a hidden name until it is complete. Dropping it removes it.
pub(super) struct Hidden {
    /// It is locked while this lives.
    directory: HiddenDirectory,
    is_left: bool,
}

impl Hidden {
    /// Creates one; what a process that was killed left for the same path is removed.
    pub(super) fn create(beside: &Path) -> Result<Hidden> {
        let directory =
            HiddenDirectory::create(beside, is_of_sstables).map_err(|error| failed(beside, error))?;
        Ok(Hidden { directory, is_left: false })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Gives it its name. If it cannot have it, what was written stays, under the hidden name.
    pub(super) fn appear(mut self, path: &Path) -> Result<()> {
        sync(self.path()).map_err(|error| failed(path, error))?;
        // Of an empty directory that is there, the name is taken over.
        let renamed = fs::rename(self.path(), path);
        self.is_left = true;
        renamed.map_err(|error| {
            // Under another name no later copy takes it for one that a killed process left.
            let hidden = self.path().with_extension("complete");
            let is_moved = fs::rename(self.path(), &hidden).is_ok();
            let hidden = if is_moved { &hidden } else { self.path() };
            let hidden = shown(&hidden.to_string_lossy());
            let message =
                format!("the SSTables are complete, in {hidden}, but could not be given this name: {error}");
            named(Error::io(message), &shown(&path.to_string_lossy()))
        })?;
        sync(parent_of(path)).map_err(|error| {
            let message =
                format!("the SSTables are in place, but their directory could not be synced: {error}");
            named(Error::io(message), &shown(&path.to_string_lossy()))
        })
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if !self.is_left {
            // What cannot be removed has a hidden name, which no reader takes for a table.
            let _ = fs::remove_dir_all(self.path());
        }
    }
}

/// Whether there is nothing in a directory but what this writes.
fn is_of_sstables(hidden: &Path) -> bool {
    let is_one = |entry: std::io::Result<fs::DirEntry>| {
        let Ok(name) = entry.map(|entry| entry.file_name()) else { return false };
        let name = name.to_string_lossy();
        matches!(FileName::parse(&name), Ok(Some(_))) || OTHER_FILES.contains(&&*name)
    };
    fs::read_dir(hidden).is_ok_and(|mut entries| entries.all(is_one))
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Why another directory could not be given this name, as far as that can be seen before.
pub(super) fn cannot_be_replaced(path: &Path) -> Option<&'static str> {
    let found = fs::symlink_metadata(path).ok()?;
    if found.is_symlink() {
        return Some("a symbolic link");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        if fs::metadata(parent_of(path)).is_ok_and(|parent| parent.dev() != found.dev()) {
            return Some("a mount point");
        }
    }
    None
}

/// Waits until a directory is on disk.
fn sync(directory: &Path) -> std::io::Result<()> {
    if cfg!(unix) { OpenOptions::new().read(true).open(directory)?.sync_all() } else { Ok(()) }
}

pub(super) fn failed(path: &Path, error: std::io::Error) -> Error {
    marquetry_io::failed("written", &path.to_string_lossy(), error)
}
