//! Objects of pools as files: `rados://pool/name`.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use marquetry_base::{Bytes, Detail, Error, ErrorKind, Result};
use marquetry_io::store::{
    Found, IsCancelled, NewObject, NewObjects, ObjectStream, Search, SearchedObject, Searching, Store,
};
use marquetry_io::{ByteSource, ObjectVersion, shown};

use crate::asked::Asked;
use crate::directory::NewPoolDirectory;
use crate::names::{configuration, directory, is_of_table, parts_of, path_of};
use crate::objects::Stored;
use crate::pool::{Pool, whole};
use crate::search::search;
use crate::written::Written;

/// Bytes that are read at a time of an object that is read from its start.
const STREAM_BYTES: u64 = 4 << 20;

/// Objects of a Ceph cluster by their addresses, `rados://pool/name`, and everything else where it is.
///
/// * The cluster is the one of `CEPH_CONF`, or of `/etc/ceph/ceph.conf`; it is connected to when it is first needed.
/// * RADOS has no directories: objects whose names begin so, and go on with a slash, are in one. To find them, all names of the pool are
///   listed. Patterns are refused.
/// * Whatever is read is of the version that was opened, or that was looked at up to two seconds before; an object that was changed since is an
///   error.
/// * An object is written at once when it is committed, so it appears whole, or not at all. It has 90 MiB at most. RADOS cannot rename, so the
///   objects of a directory appear one after the other, each of them whole; if not all are written, they are removed again, except those that
///   replaced others.
/// * Parquet objects are searched in their OSDs, by the object class, where that is allowed.
#[derive(Debug, Clone)]
pub struct RadosObjects {
    others: Arc<dyn Store>,
    /// The cluster's, if it is not that of the environment.
    configuration: Option<String>,
    pools: Arc<Mutex<BTreeMap<String, Pool>>>,
    /// Of each pool of which it was asked, why its objects cannot be searched where they are; `None` if they can.
    searched: Arc<Mutex<BTreeMap<String, Option<Error>>>>,
}

impl RadosObjects {
    /// Beside a store that has all other paths.
    pub fn beside(others: Arc<dyn Store>) -> RadosObjects {
        RadosObjects { others, configuration: None, pools: Arc::default(), searched: Arc::default() }
    }

    /// Those of the cluster that this configuration describes.
    #[must_use]
    pub fn configured(self, configuration: impl Into<String>) -> RadosObjects {
        RadosObjects { configuration: Some(configuration.into()), ..self }
    }

    /// Those of a pool that is open, under whatever cluster that is.
    #[cfg(test)]
    pub(crate) fn of(pool: Pool) -> RadosObjects {
        let objects = RadosObjects::beside(Arc::new(marquetry_io::store::LocalFiles));
        objects.pools.lock().unwrap_or_else(PoisonError::into_inner).insert(pool.name().to_owned(), pool);
        objects
    }

    /// The pool and the name of an address; `None` for another store's.
    fn address(&self, path: &Path) -> Result<Option<(Pool, String)>> {
        let parts = path.to_str().map(parts_of).transpose().map_err(|error| about(path, error))?;
        let Some((pool, name)) = parts.flatten() else { return Ok(None) };
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = pools.get(pool) {
            return Ok(Some((open.clone(), name.to_owned())));
        }
        let open = Pool::open(&self.configuration.clone().unwrap_or_else(configuration), pool)?;
        pools.insert(pool.to_owned(), open.clone());
        Ok(Some((open, name.to_owned())))
    }
}

impl Store for RadosObjects {
    fn cancellable(&self, is_cancelled: IsCancelled) -> Option<Arc<dyn Store>> {
        let others = self.others.cancellable(is_cancelled)?;
        Some(Arc::new(RadosObjects { others, ..self.clone() }))
    }

    fn is_collective(&self, path: &Path) -> bool {
        match self.address(path) {
            Ok(None) => self.others.is_collective(path),
            _ => matches!(self.look(path), Ok(Found::Directory { .. })),
        }
    }

    fn look(&self, path: &Path) -> Result<Found> {
        let Some((pool, name)) = self.address(path)? else { return self.others.look(path) };
        if !name.is_empty() && !name.ends_with('/') {
            match pool.look(&name) {
                Ok(found) => return Ok(Found::Object { bytes: found.bytes }),
                Err(error) if error.detail() == Some(Detail::NotFound) => {}
                Err(error) => return Err(about(path, error)),
            }
        }
        let below = pool.list(&directory(&name)).map_err(|error| about(path, error))?;
        Ok(if below.is_empty() { Found::Nothing } else { Found::Directory { is_empty: false } })
    }

    fn find(&self, path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
        let Some((pool, name)) = self.address(path)? else { return self.others.find(path, extensions) };
        if !name.is_empty() && !name.ends_with('/') {
            match pool.look(&name) {
                Ok(_) => return Ok(vec![path.to_path_buf()]),
                Err(error) if error.detail() == Some(Detail::NotFound) => {}
                Err(error) => return Err(about(path, error)),
            }
        }
        let prefix = directory(&name);
        let names = pool.list(&prefix).map_err(|error| about(path, error))?;
        if names.is_empty() {
            return Err(about(
                path,
                match name.contains(['*', '?', '[', '{']) {
                    true => Error::unsupported("patterns of objects in RADOS are not supported yet"),
                    false => Error::io("there is no such object").with(Detail::NotFound),
                },
            ));
        }
        let is_meant = |name: &String| is_of_table(&name[prefix.len()..], extensions);
        let found: Vec<PathBuf> =
            names.into_iter().filter(is_meant).map(|name| path_of(pool.name(), &name)).collect();
        if found.is_empty() {
            return Err(about(
                path,
                Error::io("there is no object of that kind below it").with(Detail::NotFound),
            ));
        }
        Ok(found)
    }

    fn list(&self, path: &Path) -> Result<Vec<(PathBuf, u64)>> {
        let Some((pool, name)) = self.address(path)? else { return self.others.list(path) };
        let names = pool.list(&directory(&name)).map_err(|error| about(path, error))?;
        let sized = |name: String| -> Result<(PathBuf, u64)> {
            Ok((path_of(pool.name(), &name), pool.stat(&name)?.bytes))
        };
        names.into_iter().map(sized).collect()
    }

    fn open(&self, path: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        let Some((pool, name)) = self.address(path)? else { return self.others.open(path) };
        let object = Opened::open(pool, name, path)?;
        let version = object.version();
        Ok((Box::new(object), version))
    }

    fn reopen(&self, path: &Path, version: &ObjectVersion) -> Result<Box<dyn ByteSource + Send>> {
        let Some((pool, name)) = self.address(path)? else { return self.others.reopen(path, version) };
        // Each read has the version that the object has then, so nobody is asked for it before.
        Ok(Box::new(Opened::again(pool, name, path, version)?))
    }

    fn stream(&self, path: &Path, is_cancelled: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        let Some((pool, name)) = self.address(path)? else { return self.others.stream(path, is_cancelled) };
        let object = Opened::open(pool, name, path)?;
        let version = Some(object.version());
        let reader = Streamed { object, at: 0, read: Bytes::new(), is_cancelled };
        Ok(ObjectStream { reader: Box::new(reader), version })
    }

    fn searches(&self, path: &Path) -> Option<Result<()>> {
        let (pool, name) = match self.address(path) {
            Ok(Some(address)) => address,
            Ok(None) => return self.others.searches(path),
            Err(error) => return Some(Err(error)),
        };
        let known = self.searched.lock().unwrap_or_else(PoisonError::into_inner).get(pool.name()).cloned();
        let refused = known.unwrap_or_else(|| {
            // A query of no rows: what the class says of the object does not matter, only that it says something.
            let request = Asked::new().counted().request(None, Some(0));
            let refused = pool.execute(&name, "query", &request).err();
            let refused = refused.filter(|error| error.kind() == ErrorKind::Unsupported);
            let mut searched = self.searched.lock().unwrap_or_else(PoisonError::into_inner);
            searched.insert(pool.name().to_owned(), refused.clone());
            refused
        });
        Some(refused.map_or(Ok(()), |error| Err(about(path, error))))
    }

    fn search(&self, wanted: Search, is_cancelled: IsCancelled) -> Result<Box<dyn Searching>> {
        for object in &wanted.objects {
            if self.address(&object.path)?.is_none() {
                let error = Error::internal("an object of another store is searched in RADOS");
                return Err(about(&object.path, error));
            }
        }
        let store = self.clone();
        search(wanted, is_cancelled, move |object: &SearchedObject| match store.address(&object.path)? {
            Some((pool, name)) => pool.reach(&name),
            None => Err(Error::internal("an address that is another store's by now")),
        })
    }

    fn create(&self, path: &Path, replaces: bool) -> Result<Box<dyn NewObject>> {
        let Some((pool, name)) = self.address(path)? else { return self.others.create(path, replaces) };
        if !replaces && pool.stat(&name).is_ok() {
            let error = Error::io("it already exists").with(Detail::AlreadyExists);
            return Err(about(path, error));
        }
        Ok(Box::new(Written::new(pool, name, path, replaces)))
    }

    fn remove(&self, path: &Path) -> Result<()> {
        let Some((pool, name)) = self.address(path)? else { return self.others.remove(path) };
        match pool.remove(&name) {
            Err(error) if error.detail() != Some(Detail::NotFound) => Err(about(path, error)),
            _ => Ok(()),
        }
    }

    fn create_directory(
        &self,
        path: &Path,
        replaces: bool,
        extensions: &'static [&'static str],
    ) -> Result<Box<dyn NewObjects>> {
        let Some((pool, name)) = self.address(path)? else {
            return self.others.create_directory(path, replaces, extensions);
        };
        let created = NewPoolDirectory::create(pool, directory(&name), path, (replaces, extensions));
        Ok(Box::new(created.map_err(|error| about(path, error))?))
    }
}

fn about(path: &Path, error: Error) -> Error {
    error.at(|place| place.object = Some(shown(&path.to_string_lossy())))
}

/// An object of one version.
struct Opened {
    pool: Pool,
    object: String,
    shown: String,
    bytes: u64,
    version: u64,
}

impl Opened {
    fn open(pool: Pool, name: String, path: &Path) -> Result<Opened> {
        let found = pool.opened(&name).map_err(|error| about(path, error))?;
        Opened::of(pool, name, path, found)
    }

    /// One that had this version when it was opened before.
    fn again(pool: Pool, name: String, path: &Path, version: &ObjectVersion) -> Result<Opened> {
        let tag = version.tag().parse();
        let tag = tag.map_err(|_| about(path, Error::internal("a version that is not one of RADOS")))?;
        Opened::of(pool, name, path, Stored { bytes: version.bytes(), version: tag })
    }

    fn of(pool: Pool, object: String, path: &Path, found: Stored) -> Result<Opened> {
        // Objects are read side by side.
        let pool = pool.apart().map_err(|error| about(path, error))?;
        let shown = shown(&path.to_string_lossy());
        Ok(Opened { pool, object, shown, bytes: found.bytes, version: found.version })
    }

    fn version(&self) -> ObjectVersion {
        ObjectVersion::new(self.bytes, self.version.to_string())
    }
}

impl ByteSource for Opened {
    fn name(&self) -> &str {
        &self.shown
    }

    fn length(&self) -> Result<u64> {
        Ok(self.bytes)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let named = |error: Error| error.at(|place| place.object = Some(self.shown.clone()));
        let (bytes, version) = self.pool.read_some(&self.object, range.clone()).map_err(named)?;
        if version != self.version {
            let now = ObjectVersion::new(self.bytes, version.to_string());
            self.version().expect(&now).map_err(named)?;
        }
        whole(&self.object, &range, bytes).map_err(named)
    }
}

/// An object that is read from its start.
struct Streamed {
    object: Opened,
    at: u64,
    read: Bytes,
    is_cancelled: Box<dyn Fn() -> bool + Send>,
}

impl Read for Streamed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.read.is_empty() && self.at < self.object.bytes {
            if (self.is_cancelled)() {
                return Err(io::Error::other(Error::cancelled()));
            }
            let end = self.object.bytes.min(self.at + STREAM_BYTES);
            self.read = ByteSource::read(&self.object, self.at..end).map_err(io::Error::other)?;
            self.at = end;
        }
        let some = into.len().min(self.read.len());
        into[..some].copy_from_slice(&self.read.split_to(some));
        Ok(some)
    }
}
