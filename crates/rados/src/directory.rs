//! Tables of several objects that are written: `rados://pool/prefix/`.
//!
//! RADOS cannot rename objects, so they have their names as soon as each of them is complete. What was written is removed again if the table does
//! not come to its end.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marquetry_base::{Bytes, Detail, Error, Result};
use marquetry_io::store::{NewObject, NewObjects};
use marquetry_io::{ByteSink, SCHEMA_FILE};

use crate::names::{has_extension, path_of};
use crate::pool::Pool;
use crate::written::Written;

/// A directory that is being written.
pub(crate) struct NewPoolDirectory {
    pool: Pool,
    /// What the names of its objects begin with: empty, or with a slash at the end.
    prefix: String,
    replaces: bool,
    /// Objects that were there, and are replaced.
    replaced: BTreeSet<String>,
    kept: Arc<Mutex<Kept>>,
}

/// Objects that were written. Dropped before the directory is committed, those are removed that are new.
struct Kept {
    pool: Pool,
    new: BTreeSet<String>,
    others: BTreeSet<String>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        for name in &self.new {
            // Nobody is left who could be told.
            let _ = self.pool.remove(name);
        }
    }
}

impl NewPoolDirectory {
    pub(crate) fn create(
        pool: Pool,
        prefix: String,
        path: &Path,
        (replaces, extensions): (bool, &'static [&'static str]),
    ) -> Result<NewPoolDirectory> {
        let there = pool.list(&prefix)?;
        if !replaces && !there.is_empty() {
            return Err(Error::io("the directory is not empty").with(Detail::AlreadyExists));
        }
        if path.to_string_lossy().contains(['*', '?', '[']) {
            return Err(Error::unsupported("names of objects in RADOS with *, ? and ["));
        }
        if let Some(other) = there.iter().find(|name| !is_of_table(&name[prefix.len()..], extensions)) {
            let message = format!("it contains {other}, which is not a Parquet file and is not replaced");
            return Err(Error::io(message));
        }
        let kept = Kept { pool: pool.clone(), new: BTreeSet::new(), others: BTreeSet::new() };
        let (replaced, kept) = (there.into_iter().collect(), Arc::new(Mutex::new(kept)));
        Ok(NewPoolDirectory { pool, prefix, replaces, replaced, kept })
    }
}

/// Whether an object below a directory has a name as those that are written.
fn is_of_table(below: &str, extensions: &[&str]) -> bool {
    let names: Vec<&str> = below.split('/').collect();
    let Some((name, directories)) = names.split_last() else { return false };
    let is_file = has_extension(name, extensions) || *name == SCHEMA_FILE;
    is_file && directories.iter().all(|name| name.find('=').is_some_and(|at| at > 0))
}

impl NewObjects for NewPoolDirectory {
    fn create(&mut self, place: &Path) -> Result<Box<dyn NewObject>> {
        let names: Option<Vec<&str>> = place.iter().map(|name| name.to_str()).collect();
        let names = names.ok_or_else(|| Error::misuse("a name that is not UTF-8"))?;
        let name = format!("{}{}", self.prefix, names.join("/"));
        let path = path_of(self.pool.name(), &name);
        let object = Written::new(self.pool.clone(), name.clone(), &path, self.replaces);
        let is_new = !self.replaced.contains(&name);
        Ok(Box::new(Member { object: Box::new(object), name, is_new, kept: Arc::clone(&self.kept) }))
    }

    fn kept(&self) -> Option<Vec<(PathBuf, PathBuf)>> {
        None
    }

    fn scratch(&self) -> Option<&Path> {
        None
    }

    fn commit(self: Box<Self>) -> Result<()> {
        if Arc::strong_count(&self.kept) > 1 {
            return Err(Error::misuse("a directory of which an object is being written"));
        }
        let overwritten = {
            let mut kept = locked(&self.kept);
            kept.new.clear();
            std::mem::take(&mut kept.others)
        };
        for old in self.replaced.difference(&overwritten) {
            match self.pool.remove(old) {
                Err(error) if error.detail() != Some(Detail::NotFound) => {
                    let message = format!(
                        "all objects are there, and so is still {old}, which they replace: {}",
                        error.message()
                    );
                    return Err(error.reworded(message));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// An object of a directory.
struct Member {
    object: Box<Written>,
    name: String,
    is_new: bool,
    kept: Arc<Mutex<Kept>>,
}

impl ByteSink for Member {
    fn name(&self) -> &str {
        self.object.name()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.object.append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        self.object.read(range)
    }
}

impl NewObject for Member {
    fn readable(&self) -> Option<PathBuf> {
        None
    }

    fn scratch(&self) -> Option<&Path> {
        None
    }

    fn commit(self: Box<Self>) -> Result<()> {
        self.object.commit()?;
        let mut kept = locked(&self.kept);
        let names = if self.is_new { &mut kept.new } else { &mut kept.others };
        names.insert(self.name);
        Ok(())
    }
}

/// Nothing panics while it is locked.
fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
