//! Object stores and HTTP servers, beside the local file system.

mod address;
mod ahead;
mod allowance;
mod connect;
mod directory;
mod failure;
mod find;
mod profile;
mod runtime;
mod source;
mod upload;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use marquetry_base::{Detail, Error, Result};
use object_store::ObjectStoreExt;
use object_store::path::Path as Key;

use super::{Found, IsCancelled, LocalFiles, NewObject, NewObjects, ObjectStream, Store};
use crate::{ByteSource, ObjectVersion};

use address::{ObjectAddress, Scheme};
use ahead::Ahead;
use connect::{Clients, Remote, Use};
use directory::NewRemoteDirectory;
use failure::failed;
use runtime::{Cancelled, wait};
use source::{Opened, RemoteSource, RemoteStream, WholeStream};
use upload::{NewRemoteObject, already_exists};

/// How long what a look at an object found is good for opening it: the request need not be made twice.
const LOOKED: Duration = Duration::from_secs(2);
/// Objects of which that is kept: 64 KiB each.
const LOOKED_MAX: usize = 64;

/// Local files by their paths, and objects by their addresses: `s3://bucket/key`, `gs://bucket/key`,
/// `az://container/key`, and, to be read, `https://host/path` and `http://host/path`.
///
/// * Credentials and endpoints are those of the environment, by the variables of each cloud's own tools:
///   `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`, `AWS_ENDPOINT_URL`, `AWS_PROFILE` with its files;
///   `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`; `GOOGLE_APPLICATION_CREDENTIALS`; or of the machine's own service.
///   `AWS_SKIP_SIGNATURE=true` (`AZURE_…`, `GOOGLE_…`) reads public data. HTTP without TLS needs an address that says `http://`.
/// * A key is taken as it is written; nothing in it is decoded. What ends in a slash is a directory; so is what is no object
///   and has objects below it. Objects without bytes that stand for directories are none. Patterns are those of [`files::find`](crate::files::find); all objects below what precedes
///   the first of `*?[{` are listed.
/// * Whatever is read is of the version that was opened (its ETag); an object that was changed since is an error.
/// * An object that is written appears when it is committed: small ones by one request, others by a multipart upload, which is
///   removed if anything fails. That no other object is replaced is a condition of the request for small ones, and is looked
///   for right before the last request of others. Each object has a random token in its metadata (`marquetry`), by which it
///   is known if the answer to the last request is lost. A process that is killed leaves an incomplete upload, which stores
///   list and remove by rules of theirs.
/// * The objects of a directory appear one after the other, when all are uploaded; see
///   [`create_directory`](Store::create_directory). If one cannot, those that appeared are deleted again, unless they
///   replaced others. What they replace and does not have the name of one is deleted last.
///
/// `gs://` was never tried with a real server.
///
/// ```no_run
/// use marquetry_io::store::{Store, Stores};
///
/// # fn main() -> marquetry_base::Result<()> {
/// for path in Stores::new().find("s3://bucket/trips/*.parquet".as_ref(), &["parquet"])? {
///     println!("{}", path.display());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Stores {
    shared: Arc<Shared>,
    cancelled: Cancelled,
}

/// What stores have in common that differ in what cancels them.
#[derive(Debug, Default)]
struct Shared {
    clients: Clients,
    /// What was looked at, and may be opened next.
    looked: Mutex<HashMap<PathBuf, Looked>>,
    /// What was found, and will be opened.
    ahead: Mutex<Ahead>,
}

/// What was found of an object a moment ago.
#[derive(Debug)]
struct Looked {
    when: Instant,
    opened: Opened,
    /// It was opened since: whoever opens it next asks anew. Only who knows its version can still use its end.
    is_taken: bool,
}

impl Default for Stores {
    fn default() -> Stores {
        Stores::new()
    }
}

impl Stores {
    /// Local files, and objects as the environment describes their stores.
    pub fn new() -> Stores {
        Stores { shared: Arc::default(), cancelled: Cancelled::never() }
    }

    /// The same, whose requests fail soon after `is_cancelled`.
    pub fn cancelled_by(is_cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Stores {
        Stores { cancelled: Cancelled::by(is_cancelled), ..Stores::new() }
    }

    /// Whether a path is the address of an object, rather than of a file of the local file system.
    pub fn is_remote(path: &Path) -> bool {
        address::is_remote(path)
    }

    /// An object that is read. `None` for a path of the local file system.
    fn remote(&self, path: &Path) -> Result<Option<Remote>> {
        let address = ObjectAddress::parse(path)?;
        address
            .map(|address| self.shared.clients.connect(&address, Use::Reading, &self.cancelled))
            .transpose()
    }

    /// An object that is written.
    fn writable(&self, path: &Path) -> Result<Option<Remote>> {
        let Some(address) = ObjectAddress::parse(path)? else { return Ok(None) };
        if address.scheme == Scheme::Http {
            let error = Error::unsupported("objects of HTTP servers can only be read").with(Detail::Address);
            return Err(error.at(|place| place.object = Some(address.name)));
        }
        self.shared.clients.connect(&address, Use::Writing, &self.cancelled).map(Some)
    }

    /// Opens an object, or takes what was just found of it. `None` if its server reads no ranges.
    fn opened(&self, remote: &Remote, path: &Path) -> Result<Option<Opened>> {
        if let Some(looked) = self.looked().get_mut(path).filter(|looked| !looked.is_taken) {
            looked.is_taken = true;
            return Ok(Some(looked.opened.clone()));
        }
        self.ask(remote, path, true)
    }

    /// Opens an object, and keeps what is found of it for whoever opens it next.
    fn looked_at(&self, remote: &Remote, path: &Path) -> Result<Option<Opened>> {
        if let Some(looked) = self.looked().get(path).filter(|looked| !looked.is_taken) {
            return Ok(Some(looked.opened.clone()));
        }
        self.ask(remote, path, false)
    }

    /// Asks for an object's version and end.
    fn ask(&self, remote: &Remote, path: &Path, is_taken: bool) -> Result<Option<Opened>> {
        let ask = |next: &Path| source::ask(&self.remote(next).ok()??).ok();
        let asked = self.ahead().take(path, ask);
        let asked = asked.map_or_else(|| source::ask(remote), Ok)?;
        let opened = source::opened(remote, &asked)?;
        if let Some(opened) = &opened {
            let mut all = self.looked();
            while all.len() >= LOOKED_MAX
                && let Some(oldest) = all.iter().min_by_key(|(_, looked)| looked.when)
            {
                let oldest = oldest.0.clone();
                all.remove(&oldest);
            }
            let looked = Looked { when: Instant::now(), opened: opened.clone(), is_taken };
            all.insert(path.to_path_buf(), looked);
        }
        Ok(opened)
    }

    /// What was found a moment ago.
    fn looked(&self) -> MutexGuard<'_, HashMap<PathBuf, Looked>> {
        let mut looked = self.shared.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.retain(|_, looked| looked.when.elapsed() < LOOKED);
        looked
    }

    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.shared.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was found of an object that will be another one.
    fn forget(&self, path: &Path) {
        self.looked().remove(path);
        self.ahead().look(path);
    }

    fn look_at(&self, remote: &Remote, path: &Path) -> Result<Found> {
        if remote.address.is_directory() {
            return Ok(match find::has_any(remote)? {
                true => Found::Directory { is_empty: false },
                false if remote.key.is_root() => Found::Directory { is_empty: true },
                false => Found::Nothing,
            });
        }
        if let Some(bytes) = self.ahead().look(path) {
            return Ok(Found::Object { bytes });
        }
        match self.looked_at(remote, path) {
            Ok(Some(opened)) => Ok(Found::Object { bytes: opened.version.bytes() }),
            // It is read from its start to its end.
            Ok(None) => Ok(Found::Stream),
            Err(error) if error.detail() == Some(Detail::NotFound) => {
                let is_directory = remote.address.scheme != Scheme::Http && find::has_any(remote)?;
                Ok(if is_directory { Found::Directory { is_empty: false } } else { Found::Nothing })
            }
            Err(error) => Err(error),
        }
    }
}

impl Store for Stores {
    fn is_collective(&self, path: &Path) -> bool {
        match ObjectAddress::parse(path) {
            Ok(None) => crate::files::is_collective(path),
            Ok(Some(address)) if address.scheme == Scheme::Http => false,
            Ok(Some(address)) if find::is_pattern(&address.key) => true,
            _ => matches!(self.look(path), Ok(Found::Directory { .. })),
        }
    }

    fn cancellable(&self, is_cancelled: IsCancelled) -> Option<Arc<dyn Store>> {
        let cancelled = self.cancelled.or(move || is_cancelled());
        Some(Arc::new(Stores { shared: Arc::clone(&self.shared), cancelled }))
    }

    fn look(&self, path: &Path) -> Result<Found> {
        match self.remote(path)? {
            Some(remote) => self.look_at(&remote, path),
            None => LocalFiles.look(path),
        }
    }

    fn find(&self, path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
        let Some(address) = ObjectAddress::parse(path)? else { return LocalFiles.find(path, extensions) };
        if address.scheme == Scheme::Http {
            return Ok(vec![path.to_path_buf()]);
        }
        let connect =
            |address: &ObjectAddress| self.shared.clients.connect(address, Use::Reading, &self.cancelled);
        let found = if find::is_pattern(&address.key) {
            let root = connect(&address.with_key(&find::fixed(&address.key)));
            let found = root.and_then(|root| find::matches(&root, &address.key, extensions));
            // What is listed is not what was asked for.
            found.map_err(|error| error.replaced(|place| place.object = Some(address.name.clone())))?
        } else {
            let remote = connect(&address)?;
            let is_directory =
                address.is_directory() || matches!(self.look_at(&remote, path)?, Found::Directory { .. });
            if !is_directory {
                return Ok(vec![path.to_path_buf()]);
            }
            find::below(&remote, extensions)?
        };
        self.ahead().found(&found);
        Ok(found.into_keys().collect())
    }

    fn list(&self, directory: &Path) -> Result<Vec<(PathBuf, u64)>> {
        let Some(remote) = self.remote(directory)? else { return LocalFiles.list(directory) };
        if remote.address.scheme == Scheme::Http {
            let error = Error::unsupported("an HTTP server lists no directories").with(Detail::Address);
            return Err(remote.about(error));
        }
        let listed = find::list(&remote)?.into_iter();
        let path = |key: &Key| PathBuf::from(remote.address.with_key(key.as_ref()).name);
        let mut found: Vec<(PathBuf, u64)> = listed.map(|(key, bytes)| (path(&key), bytes)).collect();
        found.sort();
        Ok(found)
    }

    fn open(&self, path: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        let Some(remote) = self.remote(path)? else { return LocalFiles.open(path) };
        let opened = self.opened(&remote, path)?.ok_or_else(|| source::without_ranges(&remote))?;
        let version = opened.version.clone();
        Ok((Box::new(RemoteSource::new(remote, opened)), version))
    }

    fn reopen(&self, path: &Path, version: &ObjectVersion) -> Result<Box<dyn ByteSource + Send>> {
        match self.remote(path)? {
            Some(remote) => {
                let looked = self.looked();
                let same = looked.get(path).filter(|looked| looked.opened.version == *version);
                let opened = same.map(|looked| looked.opened.clone());
                let opened = opened.unwrap_or_else(|| Opened::again(version.clone()));
                Ok(Box::new(RemoteSource::new(remote, opened)))
            }
            None => LocalFiles.reopen(path, version),
        }
    }

    fn stream(&self, path: &Path, is_cancelled: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        let Some(mut remote) = self.remote(path)? else { return LocalFiles.stream(path, is_cancelled) };
        let is_cancelled = Mutex::new(is_cancelled);
        let is_cancelled = move || is_cancelled.lock().unwrap_or_else(PoisonError::into_inner)();
        remote.cancelled = remote.cancelled.or(is_cancelled);
        if let Some(opened) = self.opened(&remote, path)? {
            let version = Some(opened.version.clone());
            let reader = Box::new(RemoteStream::new(RemoteSource::new(remote, opened)));
            return Ok(ObjectStream { reader, version });
        }
        Ok(ObjectStream { reader: Box::new(WholeStream::open(remote)?), version: None })
    }

    fn create(&self, path: &Path, replaces: bool) -> Result<Box<dyn NewObject>> {
        let Some(remote) = self.writable(path)? else { return LocalFiles.create(path, replaces) };
        if remote.address.is_directory() {
            let error = Error::misuse("a directory, where an object is to be created");
            return Err(remote.about(error));
        }
        // A bucket that is not there is reported before anything is written. Who may only write may go on.
        self.forget(path);
        match self.look(path) {
            Ok(Found::Object { .. }) if !replaces => return Err(remote.about(already_exists())),
            Err(error) if error.detail() != Some(Detail::PermissionDenied) => return Err(error),
            _ => {}
        }
        self.forget(path);
        Ok(Box::new(NewRemoteObject::new(remote, replaces)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let Some(remote) = self.writable(path)? else { return LocalFiles.remove(path) };
        self.forget(path);
        let asked = remote.clone();
        let removed = wait(&remote.cancelled, async move { asked.store.delete(&asked.key).await })?;
        match removed {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(failed("removed", &remote.address, &error)),
        }
    }

    fn create_directory(
        &self,
        path: &Path,
        replaces: bool,
        extensions: &'static [&'static str],
    ) -> Result<Box<dyn NewObjects>> {
        match self.writable(path)? {
            Some(remote) => {
                // The key as the store knows it: without the slash.
                let key: Key = remote.key.clone();
                let directory = remote.with_key(key);
                Ok(Box::new(NewRemoteDirectory::create(directory, replaces, extensions)?))
            }
            None => LocalFiles.create_directory(path, replaces, extensions),
        }
    }
}
