//! The definitions that tables had when SSTables of them were linked: a table may be dropped, and another one get its name, before they are
//! converted. They are files in the directory for work: `definitions/ks/t-f34b….cql`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use marquetry_base::{Error, Result};
use marquetry_io::failed;

/// The last definition of each table, by its place.
#[derive(Debug)]
pub(super) struct Definitions {
    root: PathBuf,
    /// What is known to be in files.
    kept: BTreeMap<String, String>,
}

impl Definitions {
    pub(super) fn new(root: PathBuf) -> Definitions {
        Definitions { root, kept: BTreeMap::new() }
    }

    /// The last definition that was kept of the table at a place, `ks/t-f34b…`.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn of(&mut self, place: &str) -> Result<Option<&String>> {
        if !self.kept.contains_key(place) {
            let path = self.path(place);
            match fs::read_to_string(&path) {
                Ok(text) => drop(self.kept.insert(place.to_owned(), text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(cannot("read", &path, error)),
            }
        }
        Ok(self.kept.get(place))
    }

    /// Keeps the definition of a table. It is on disk then.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn keep(&mut self, place: &str, text: &str) -> Result<()> {
        if self.of(place)?.is_some_and(|kept| kept == text) {
            return Ok(());
        }
        let path = self.path(place);
        let hidden = path.with_extension("new");
        let write = || -> io::Result<()> {
            fs::create_dir_all(path.parent().unwrap_or(&self.root))?;
            let mut file = fs::File::create(&hidden)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&hidden, &path)
        };
        write().map_err(|error| cannot("written", &path, error))?;
        self.kept.insert(place.to_owned(), text.to_owned());
        Ok(())
    }

    /// Removes those of tables that are gone.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn release(&mut self, is_there: impl Fn(&str) -> bool) -> Result<()> {
        let all = marquetry_io::files::list(&self.root).unwrap_or_default();
        for (path, _) in all {
            let inside = path.strip_prefix(&self.root).unwrap_or(&path).with_extension("");
            let place = inside.to_string_lossy();
            if !is_there(&place) {
                fs::remove_file(&path).map_err(|error| cannot("removed", &path, error))?;
                self.kept.remove(&*place);
            }
        }
        Ok(())
    }

    fn path(&self, place: &str) -> PathBuf {
        self.root.join(format!("{place}.cql"))
    }
}

fn cannot(done: &str, path: &Path, error: io::Error) -> Error {
    failed(done, &path.display().to_string(), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_there_later() {
        let folder = tempfile::tempdir().unwrap();
        let new = || Definitions::new(folder.path().join("definitions"));
        let mut definitions = new();
        assert_eq!(definitions.of("ks/t-0"), Ok(None));
        definitions.release(|_| false).unwrap();
        for (place, text) in [("ks/t-0", "one"), ("ks/t-0", "two"), ("ks/t-1", "other"), ("ks/t-1", "other")]
        {
            definitions.keep(place, text).unwrap();
        }
        let mut again = new();
        assert_eq!(again.of("ks/t-0").unwrap().map(String::as_str), Some("two"));
        again.release(|place| place == "ks/t-1").unwrap();
        for mut definitions in [again, new()] {
            assert_eq!(definitions.of("ks/t-0"), Ok(None));
            assert_eq!(definitions.of("ks/t-1").unwrap().map(String::as_str), Some("other"));
        }
    }
}
