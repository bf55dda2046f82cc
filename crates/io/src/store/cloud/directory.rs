//! Directories of objects that are written, and appear when all of them are complete.
//!
//! Stores cannot rename a directory, so its objects appear one after the other. All of them were sent by then, and only the
//! requests that give them their names remain. If one of those fails, the objects that appeared are removed again; unless
//! they replaced others, which nothing brings back: then the error says how many there are.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marquetry_base::{Bytes, Detail, Error, Result};
use object_store::path::Path as Key;
use object_store::{MultipartUpload, ObjectStoreExt};

use super::connect::Remote;
use super::failure::failed;
use super::find::{has_any, is_hive_name, list};
use super::runtime::{Cancelled, wait};
use super::upload::{Missed, Upload, not_readable, remove};
use crate::ByteSink;
use crate::SCHEMA_FILE;
use crate::files::has_extension;
use crate::store::{NewObject, NewObjects};

/// Bytes of small objects that wait in memory until the directory appears. Those of further ones are uploaded before.
const WAITING_BYTES: u64 = 32 << 20;
/// Objects that are named, or removed, at a time.
const AT_A_TIME: usize = 8;

/// A directory that is written.
pub(super) struct NewRemoteDirectory {
    /// Its key ends in no slash.
    directory: Remote,
    replaces: bool,
    extensions: &'static [&'static str],
    kept: Arc<Mutex<Kept>>,
}

/// Objects that are complete, and appear with the directory. Dropped before, their uploads are removed.
#[derive(Default)]
struct Kept {
    uploads: Vec<(Key, Upload)>,
    waiting_bytes: u64,
    /// Uploads of objects that were dropped before they were complete.
    given_up: Vec<Box<dyn MultipartUpload>>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let kept = self.uploads.iter_mut().filter_map(|(_, upload)| upload.give_up());
        remove(kept.chain(self.given_up.drain(..)));
    }
}

/// What became of objects that were to appear.
#[derive(Default)]
struct Named {
    appeared: Vec<Key>,
    /// The first error.
    error: Option<Error>,
    /// Objects that may have appeared, or not, and uploads that may be left.
    unknown: usize,
    left: usize,
}

impl NewRemoteDirectory {
    /// Starts a directory.
    ///
    /// # Errors
    ///
    /// `Io` if it has objects that it does not replace.
    pub(super) fn create(
        directory: Remote,
        replaces: bool,
        extensions: &'static [&'static str],
    ) -> Result<NewRemoteDirectory> {
        let new = NewRemoteDirectory { directory, replaces, extensions, kept: Arc::default() };
        new.replaced()?;
        Ok(new)
    }

    /// The objects that are there, and are replaced.
    fn replaced(&self) -> Result<Vec<Key>> {
        let refused = |what: String| self.directory.about(Error::io(what));
        if !self.replaces {
            return match has_any(&self.directory)? {
                true => Err(refused("the directory is not empty".to_owned()).with(Detail::AlreadyExists)),
                false => Ok(Vec::new()),
            };
        }
        let there: Vec<Key> = list(&self.directory)?.into_iter().map(|(key, _)| key).collect();
        match there.iter().find(|key| !self.is_of_table(key)) {
            Some(other) => {
                let above = self.directory.key.as_ref().len() + usize::from(!self.directory.key.is_root());
                let other = other.as_ref().get(above..).unwrap_or_default();
                let what = format!("it contains {other}, which is not a Parquet file and is not replaced");
                Err(refused(what))
            }
            None => Ok(there),
        }
    }

    /// Whether an object has a name as those that are written.
    fn is_of_table(&self, key: &Key) -> bool {
        let names: Vec<&str> = key.as_ref().split('/').skip(self.directory.key.parts_count()).collect();
        let Some((name, directories)) = names.split_last() else { return false };
        let is_file = has_extension(Path::new(name), self.extensions) || *name == SCHEMA_FILE;
        is_file && directories.iter().all(|name| is_hive_name(name))
    }

    /// Gives the objects their names, until one fails.
    fn name_all(&self, uploads: Vec<(Key, Upload)>) -> Named {
        let mut named = Named::default();
        let mut uploads = uploads.into_iter();
        while named.error.is_none() {
            let some: Vec<(Key, Upload)> = uploads.by_ref().take(AT_A_TIME).collect();
            if some.is_empty() {
                break;
            }
            let done: Vec<(Key, Result<(), Missed>)> = std::thread::scope(|scope| {
                let threads: Vec<_> = some
                    .into_iter()
                    .map(|(key, upload)| (key, scope.spawn(move || upload.appear())))
                    .collect();
                let died = || Err(Error::internal("a thread that names an object died").into());
                threads
                    .into_iter()
                    .map(|(key, thread)| (key, thread.join().unwrap_or_else(|_| died())))
                    .collect()
            });
            for (key, done) in done {
                match done {
                    Ok(()) => named.appeared.push(key),
                    Err(Missed { error, may_be_there }) => {
                        named.error.get_or_insert(error);
                        named.unknown += usize::from(may_be_there);
                    }
                }
            }
        }
        named.left = remove(uploads.filter_map(|(_, mut upload)| upload.give_up()));
        named
    }

    /// Deletes objects. How many are left, and why.
    fn delete(&self, keys: Vec<Key>) -> Option<(usize, Error)> {
        let mut left = None;
        for some in keys.chunks(AT_A_TIME) {
            let deletions = some.iter().map(|key| {
                let (store, key) = (Arc::clone(&self.directory.store), key.clone());
                async move { store.delete(&key).await }
            });
            let deletions: Vec<_> = deletions.collect();
            let deleted = wait(&Cancelled::never(), futures_util::future::join_all(deletions));
            let errors: Vec<Error> = match deleted {
                Ok(deleted) => deleted
                    .into_iter()
                    .filter_map(|deleted| match deleted {
                        Ok(()) | Err(object_store::Error::NotFound { .. }) => None,
                        Err(error) => Some(failed("deleted", &self.directory.address, &error)),
                    })
                    .collect(),
                Err(error) => some.iter().map(|_| error.clone()).collect(),
            };
            for error in errors {
                left = match left {
                    None => Some((1, error)),
                    Some((number, first)) => Some((number + 1, first)),
                };
            }
        }
        left
    }
}

impl NewObjects for NewRemoteDirectory {
    fn create(&mut self, place: &Path) -> Result<Box<dyn NewObject>> {
        let names: Option<Vec<&str>> = place.iter().map(|name| name.to_str()).collect();
        let names = names.ok_or_else(|| self.directory.about(Error::misuse("a name that is not UTF-8")))?;
        let above = self.directory.key.as_ref().split('/').filter(|name| !name.is_empty());
        let key = above.chain(names).collect::<Vec<_>>().join("/");
        let key = Key::parse(&key).map_err(|_| {
            self.directory
                .about(Error::misuse(format!("a name that no object can have: {}", place.display())))
        })?;
        let upload = Upload::new(self.directory.with_key(key.clone()), self.replaces);
        let name = upload.name().to_owned();
        Ok(Box::new(Member { key, upload: Some(upload), name, kept: Arc::clone(&self.kept) }))
    }

    fn kept(&self) -> Option<Vec<(PathBuf, PathBuf)>> {
        None
    }

    fn scratch(&self) -> Option<&Path> {
        None
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let mut kept = std::mem::take(&mut *locked(&self.kept));
        if Arc::strong_count(&self.kept) > 1 {
            return Err(Error::misuse("a directory of which an object is being written"));
        }
        // Others may have come meanwhile.
        let replaced = self.replaced()?;
        let all = kept.uploads.len();
        let Named { appeared, error, unknown, left } = self.name_all(std::mem::take(&mut kept.uploads));
        if let Some(error) = error {
            let number = appeared.len();
            let there = match self.replaces {
                true => number,
                false => self.delete(appeared).map_or(0, |(left, _)| left),
            };
            let mut message = error.message().to_owned();
            if there > 0 || unknown > 0 {
                message += &format!("; {there} of {all} objects are there");
            }
            if unknown > 0 {
                message += &format!(", and {unknown} more may be");
            }
            if left > 0 {
                message += &format!("; {left} incomplete uploads could not be removed");
            }
            return Err(error.reworded(message));
        }
        let new: BTreeSet<Key> = appeared.into_iter().collect();
        let old: Vec<Key> = replaced.into_iter().filter(|key| !new.contains(key)).collect();
        match self.delete(old) {
            None => Ok(()),
            Some((left, error)) => {
                let message = format!(
                    "all {all} objects are there, and so are still {left} of those that they replace: {}",
                    error.message()
                );
                Err(error.reworded(message))
            }
        }
    }
}

/// An object of a directory.
struct Member {
    key: Key,
    /// Until it is complete.
    upload: Option<Upload>,
    name: String,
    kept: Arc<Mutex<Kept>>,
}

impl Member {
    fn upload(&mut self) -> Result<&mut Upload> {
        self.upload.as_mut().ok_or_else(|| Error::internal("an object that is complete is written"))
    }
}

impl ByteSink for Member {
    fn name(&self) -> &str {
        &self.name
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.upload()?.append(bytes)
    }

    fn read(&mut self, _: Range<u64>) -> Result<Bytes> {
        Err(not_readable(&self.name))
    }
}

impl NewObject for Member {
    fn readable(&self) -> Option<PathBuf> {
        None
    }

    fn scratch(&self) -> Option<&Path> {
        None
    }

    fn commit(mut self: Box<Self>) -> Result<()> {
        let kept = Arc::clone(&self.kept);
        let upload = self.upload()?;
        let waiting_bytes = locked(&kept).waiting_bytes.saturating_add(upload.held());
        if upload.is_multipart() || waiting_bytes > WAITING_BYTES {
            upload.complete_parts()?;
        }
        let mut kept = locked(&kept);
        kept.waiting_bytes += upload.held();
        kept.uploads.extend(self.upload.take().map(|upload| (self.key.clone(), upload)));
        Ok(())
    }
}

impl Drop for Member {
    /// Its upload is removed with the others.
    fn drop(&mut self) {
        let given_up = self.upload.as_mut().and_then(Upload::give_up);
        locked(&self.kept).given_up.extend(given_up);
    }
}

/// Nothing panics while it is locked.
fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
