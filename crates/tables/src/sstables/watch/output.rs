//! The destination: which files are in it, and whose it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Detail, Error, Result};
use marquetry_io::failed;
use marquetry_io::store::{Found, Store};

use super::links::SstableId;
use super::options::is_remote;
use super::state::one_line;
use crate::sstables::component::read_text;

/// The file that says whose the destination is. Readers of directories pass names over that begin so.
const OWNER_FILE: &str = "_marquetry_watch";

/// The most bytes of it.
const OWNER_BYTES_MAX: u64 = 1 << 16;

/// A directory of Parquet files, one an SSTable.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) store: Arc<dyn Store>,
    root: PathBuf,
    /// The files that are there, by where their tables are.
    files: BTreeMap<String, BTreeSet<SstableId>>,
}

impl Output {
    /// Lists what is there.
    ///
    /// # Errors
    ///
    /// `Io` if that cannot be listed, or a local directory cannot be created.
    pub(super) fn open(store: &Arc<dyn Store>, root: &Path) -> Result<Output> {
        let mut output = Output { store: Arc::clone(store), root: trimmed(root), files: BTreeMap::new() };
        if !is_remote(&output.root) {
            create_directories(&output.root)?;
        }
        for (path, _) in output.store.list(&output.root)? {
            let inside = path.strip_prefix(&output.root).unwrap_or(&path);
            if let Some(id) = SstableId::of_file(&inside.to_string_lossy()) {
                output.add(&id);
            }
        }
        Ok(output)
    }

    /// Makes the destination that of an owner, or sees that it is.
    ///
    /// # Errors
    ///
    /// `Misuse` if it is another's; `Io`.
    pub(super) fn claim(&self, owner: &str, data: &Path) -> Result<()> {
        let path = self.root.join(OWNER_FILE);
        if let Found::Object { .. } = self.store.look(&path)? {
            return self.expect_owner(&path, owner);
        }
        let text = format!("{owner}\nmarquetry watch of {}\n", one_line(&data.display().to_string()));
        let made = self.store.create(&path, false).and_then(|mut made| {
            made.append(text.as_bytes())?;
            made.commit()
        });
        match made {
            Err(error) if error.detail() == Some(Detail::AlreadyExists) => self.expect_owner(&path, owner),
            made => made,
        }
    }

    fn expect_owner(&self, path: &Path, owner: &str) -> Result<()> {
        let text = read_text(&*self.store, path, OWNER_BYTES_MAX)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let mut lines = text.lines();
        if lines.next() == Some(owner) {
            return Ok(());
        }
        let whose = one_line(lines.next().unwrap_or("somebody else"));
        let what = format!(
            "the destination is that of another watcher ({whose}); name another one, or remove this file if that watcher is gone"
        );
        Err(Error::misuse(what).at(|place| place.object = Some(path.display().to_string())))
    }

    /// Where a file is, or will be.
    pub(super) fn path_of(&self, id: &SstableId) -> PathBuf {
        self.root.join(id.file())
    }

    /// Creates the directory that a file will be in, where directories are created.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn create_directory_of(&self, id: &SstableId) -> Result<()> {
        match is_remote(&self.root) {
            true => Ok(()),
            false => create_directories(&self.root.join(&id.place)),
        }
    }

    pub(super) fn contains(&self, id: &SstableId) -> bool {
        self.files.get(&id.place).is_some_and(|files| files.contains(id))
    }

    /// A file has appeared.
    pub(super) fn add(&mut self, id: &SstableId) {
        self.files.entry(id.place.clone()).or_default().insert(id.clone());
    }

    /// The files of a table.
    pub(super) fn of_table(&self, place: &str) -> impl Iterator<Item = &SstableId> {
        self.files.get(place).into_iter().flatten()
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn remove(&mut self, id: &SstableId) -> Result<PathBuf> {
        let path = self.path_of(id);
        self.store.remove(&path)?;
        if let Some(files) = self.files.get_mut(&id.place) {
            files.remove(id);
        }
        Ok(path)
    }
}

/// A name that nobody else has.
pub(super) fn new_owner() -> String {
    let random = || RandomState::new().hash_one((std::process::id(), std::time::SystemTime::now()));
    format!("{:016x}{:016x}", random(), random())
}

/// A path without slashes at its end: joining adds one.
fn trimmed(path: &Path) -> PathBuf {
    match path.to_str() {
        Some(text) if text.len() > 1 => PathBuf::from(text.trim_end_matches('/')),
        _ => path.to_path_buf(),
    }
}

/// Creates a directory and those above it, so that they survive a loss of power.
fn create_directories(path: &Path) -> Result<()> {
    let create = |path: &Path| -> io::Result<()> {
        let mut missing: Vec<&Path> = path.ancestors().take_while(|above| !above.exists()).collect();
        missing.retain(|above| !above.as_os_str().is_empty());
        fs::create_dir_all(path)?;
        #[cfg(unix)]
        for made in missing {
            let above = made.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
            fs::File::open(above)?.sync_all()?;
        }
        Ok(())
    };
    create(path).map_err(|error| failed("created", &path.display().to_string(), error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;
    use marquetry_io::store::LocalFiles;

    #[test]
    fn files_are_known_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("a/b/");
        let store: Arc<dyn Store> = Arc::new(LocalFiles);
        let id = SstableId { place: "ks/t-0".into(), stem: "nb-1-big".into(), digest: 5 };
        let mut output = Output::open(&store, &root).unwrap();
        assert!(!output.contains(&id));
        output.create_directory_of(&id).unwrap();
        fs::write(output.path_of(&id), "x").unwrap();
        fs::write(output.path_of(&id).with_file_name("other.parquet"), "x").unwrap();
        output = Output::open(&store, &root).unwrap();
        assert!(output.contains(&id));
        assert_eq!(output.of_table("ks/t-0").count(), 1);
        let removed = output.remove(&id).unwrap();
        assert!(!removed.exists() && !output.contains(&id));
        assert_eq!(output.of_table("ks/u-0").count(), 0);
    }

    #[test]
    fn a_destination_has_one_owner() {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(LocalFiles);
        let output = Output::open(&store, folder.path()).unwrap();
        let (ours, theirs) = (new_owner(), new_owner());
        assert_ne!(ours, theirs);
        output.claim(&ours, "data".as_ref()).unwrap();
        output.claim(&ours, "data".as_ref()).unwrap();
        let error = output.claim(&theirs, "other".as_ref()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        assert!(error.message().contains("marquetry watch of data"), "{error}");
        fs::remove_file(folder.path().join(OWNER_FILE)).unwrap();
        output.claim(&theirs, "other".as_ref()).unwrap();
    }
}
