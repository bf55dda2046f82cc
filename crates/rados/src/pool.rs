//! A pool of a cluster, and its objects.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bytes, Detail, Error, Result};
use marquetry_io::files::PARQUET_EXTENSIONS;
use marquetry_io::store::IsCancelled;
use marquetry_io::{failed, shown};

use crate::CLASS;
use crate::asked::{Asked, merge_request};
use crate::librados::{BYTES_MAX, Cluster, fits};
use crate::looked::Looked;
use crate::names::{configuration, directory, is_of_table, no_address, parts_of};
use crate::objects::{Objects, Pools, Stored};
use crate::query::{Answer, Execute, Query};

/// Bytes of a file that is merged, at most: a request has few more.
const MERGED_BYTES_MAX: u64 = (4 << 20) - 64;

/// A pool of a cluster. Clones share the connection; calls wait, one after the other, but those of different queries, and reads of objects that
/// were opened through a store, need not wait for each other.
#[derive(Clone)]
pub struct Pool {
    cluster: Arc<dyn Pools>,
    context: Arc<Mutex<Box<dyn Objects>>>,
    name: Arc<str>,
    class: Arc<str>,
    is_cancelled: Option<IsCancelled>,
    looked: Arc<Mutex<Looked>>,
}

impl Pool {
    /// Connects to the cluster that a configuration (`/etc/ceph/ceph.conf`) describes, as the user `client.admin` or the one
    /// that `CEPH_ARGS` names.
    ///
    /// # Errors
    ///
    /// `Unsupported` if librados is not installed; `Io` if the cluster cannot be reached, or has no such pool.
    pub fn open(configuration: &str, pool: &str) -> Result<Pool> {
        Pool::of(Arc::new(Arc::new(Cluster::open(configuration)?)), pool)
    }

    /// A pool of a cluster that is connected to.
    pub(crate) fn of(cluster: Arc<dyn Pools>, pool: &str) -> Result<Pool> {
        let context = Arc::new(Mutex::new(cluster.open(pool)?));
        let (name, class, looked) = (pool.into(), CLASS.into(), Arc::default());
        Ok(Pool { cluster, context, name, class, is_cancelled: None, looked })
    }

    /// The pool of an address, `rados://pool/name`, in the cluster that `CEPH_CONF` describes, or `/etc/ceph/ceph.conf`; and the name.
    ///
    /// # Errors
    ///
    /// `Misuse` for what is no such address; those of [`Pool::open`].
    pub fn at(address: &str) -> Result<(Pool, String)> {
        let (pool, name) = parts_of(address)?.ok_or_else(no_address)?;
        Ok((Pool::open(&configuration(), pool)?, name.to_owned()))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same, whose objects are reached by the class of another name: by another build of it, say, beside the one that is in use.
    #[must_use]
    pub fn by_class(self, name: &str) -> Pool {
        Pool { class: name.into(), ..self }
    }

    /// The same, whose changes of many calls end with `Cancelled` before the next call once `is_cancelled` says so: [`Pool::compress`],
    /// [`index`](Pool::index), [`parts`](Pool::parts), [`split`](Pool::split) and [`transform`](Pool::transform).
    #[must_use]
    pub fn cancellable(self, is_cancelled: IsCancelled) -> Pool {
        Pool { is_cancelled: Some(is_cancelled), ..self }
    }

    /// `Cancelled` if it was.
    pub(crate) fn check(&self) -> Result<()> {
        let is_cancelled = self.is_cancelled.as_ref().is_some_and(|is_cancelled| is_cancelled());
        if is_cancelled { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// The same with a handle of its own: who uses it does not wait for calls of others.
    ///
    /// # Errors
    ///
    /// As [`Pool::open`].
    pub(crate) fn apart(&self) -> Result<Pool> {
        let context = self.cluster.open(&self.name)?;
        Ok(Pool { context: Arc::new(Mutex::new(context)), ..self.clone() })
    }

    /// The class's name.
    pub(crate) fn class(&self) -> &str {
        &self.class
    }

    /// What is known of an object.
    ///
    /// # Errors
    ///
    /// `Io`, with [`NotFound`](Detail::NotFound) if there is none.
    pub fn stat(&self, object: &str) -> Result<Stored> {
        self.locked(|context| context.stat(object))
    }

    /// The same, or what was found a moment ago if nobody has opened the object since; it is kept for whoever [opens](Pool::opened) it next.
    pub(crate) fn look(&self, object: &str) -> Result<Stored> {
        if let Some(stored) = self.looked().look(object) {
            return Ok(stored);
        }
        let stored = self.stat(object)?;
        self.looked().found(object, stored);
        Ok(stored)
    }

    /// What is known of an object that is opened: what a [look](Pool::look) at it has found a moment ago, once.
    pub(crate) fn opened(&self, object: &str) -> Result<Stored> {
        let looked = self.looked().take(object);
        looked.map_or_else(|| self.stat(object), Ok)
    }

    fn looked(&self) -> MutexGuard<'_, Looked> {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of an object, all that are asked for, and its version.
    ///
    /// # Errors
    ///
    /// `Io`, also if the object ends before.
    pub fn read(&self, object: &str, range: Range<u64>) -> Result<(Bytes, u64)> {
        let (bytes, version) = self.read_some(object, range.clone())?;
        Ok((whole(object, &range, bytes)?, version))
    }

    /// The same, and as many of them as there are.
    pub(crate) fn read_some(&self, object: &str, range: Range<u64>) -> Result<(Vec<u8>, u64)> {
        let length = range.end.saturating_sub(range.start);
        let length = usize_of(length).filter(|length| u64_of(*length) <= BYTES_MAX);
        let length = length.ok_or_else(|| Error::too_large(format!("a read of {range:?} at once")))?;
        let mut bytes = vec![0; length];
        let (read, version) = self.locked(|context| context.read(object, range.start, &mut bytes))?;
        bytes.truncate(read);
        Ok((bytes, version))
    }

    /// Writes an object of these bytes at once, in place of one that is there if it `replaces`: with that, its index and its attributes go.
    ///
    /// # Errors
    ///
    /// `Io`, with [`AlreadyExists`](Detail::AlreadyExists) if there is one, and it does not replace that; and if the cluster
    /// refuses it: one of more than `osd_max_write_size` (90 MiB), say.
    pub fn write(&self, object: &str, bytes: &[u8], replaces: bool) -> Result<()> {
        self.written(object, bytes, replaces).map(|_| ())
    }

    /// The same: the version that it has then.
    pub(crate) fn written(&self, object: &str, bytes: &[u8], replaces: bool) -> Result<u64> {
        if !fits(bytes) {
            return Err(Error::too_large(format!("an object of {} bytes", bytes.len())));
        }
        self.changing(object, |context| context.write_full(object, bytes, replaces))
    }

    /// Removes an object.
    ///
    /// # Errors
    ///
    /// `Io`, with [`NotFound`](Detail::NotFound) if there is none.
    pub fn remove(&self, object: &str) -> Result<()> {
        self.changing(object, |context| context.remove(object))
    }

    /// The names of the objects that begin so, sorted. All names of the pool are looked at: RADOS has no directories.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.locked(|context| context.list(prefix))
    }

    /// The Parquet objects that a name stands for, as commands that read a table understand it: the object of that name, or all below it.
    ///
    /// # Errors
    ///
    /// `Io`, with [`NotFound`](Detail::NotFound) if there is none.
    pub fn parquet_objects(&self, name: &str) -> Result<Vec<String>> {
        if !name.is_empty() && !name.ends_with('/') {
            match self.stat(name) {
                Err(error) if error.detail() == Some(Detail::NotFound) => {}
                found => return found.map(|_| vec![name.to_owned()]),
            }
        }
        let prefix = directory(name);
        let mut names = self.list(&prefix)?;
        names.retain(|name| is_of_table(&name[prefix.len()..], &PARQUET_EXTENSIONS));
        if names.is_empty() {
            return Err(Error::io("there is no such object, and none below it").with(Detail::NotFound));
        }
        Ok(names)
    }

    /// Queries an object where it is.
    ///
    /// # Errors
    ///
    /// `Io` if the pool is not there any more. What else is wrong, the query's answers say.
    pub fn query(&self, object: &str, asked: &Asked) -> Result<Query<impl Execute + Send + use<>>> {
        Ok(Query::new(self.reach(object)?, asked))
    }

    /// What calls the class on an object, with a handle of its own.
    pub(crate) fn reach(&self, object: &str) -> Result<OneObject> {
        let context = self.cluster.open(&self.name)?;
        Ok(OneObject { context, object: object.to_owned(), class: Arc::clone(&self.class) })
    }

    /// Queries objects where they are, as many at a time as there are threads, which wait for different OSDs. Each answer is handed to
    /// `each`, with the object's place in the list: those of one object in order, those of different ones as they come. If it returns
    /// false, no more is asked. A limit is one of each object.
    ///
    /// # Errors
    ///
    /// The first one of a query, after which no more is asked; and that of `each`.
    pub fn query_all(
        &self,
        objects: &[String],
        asked: &Asked,
        threads: usize,
        mut each: impl FnMut(usize, Answer) -> Result<bool>,
    ) -> Result<()> {
        let next = AtomicUsize::new(0);
        let threads = threads.clamp(1, objects.len().max(1));
        let work = |answers: SyncSender<(usize, Result<Answer>)>| {
            // Each takes the next object that nobody has taken, until nobody wants an answer any more.
            while let Some((at, object)) = take(&next, objects) {
                let query = self.query(object, asked);
                let (query, error) =
                    query.map_or_else(|error| (None, Some(Err(error))), |query| (Some(query), None));
                for answer in query.into_iter().flatten().chain(error) {
                    if answers.send((at, answer)).is_err() {
                        return;
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let (answers, received) = sync_channel(threads);
            for _ in 0..threads {
                let answers = answers.clone();
                scope.spawn(|| work(answers));
            }
            drop(answers);
            // Threads that still send notice when this is dropped, at the latest at the end of the call that they wait for.
            for (at, answer) in received {
                if !each(at, answer?)? {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Calls a method of the class on an object, for requests of one's own.
    ///
    /// # Errors
    ///
    /// As [`Execute::execute`].
    pub fn execute(&self, object: &str, method: &str, request: &[u8]) -> Result<Vec<u8>> {
        self.execute_at(object, method, request, None)
    }

    /// The same, of the object if it has that version, unless the work was cancelled.
    pub(crate) fn execute_at(
        &self,
        object: &str,
        method: &str,
        request: &[u8],
        version: Option<u64>,
    ) -> Result<Vec<u8>> {
        self.check()?;
        Ok(self.locked(|context| context.execute(object, (&self.class, method), request, version))?.0)
    }

    /// Adds the rows of a Parquet file to a Parquet object, in its OSD: only the file travels, and a new footer is written there. The object is
    /// as it was until then, whatever happens. The file has the same columns, and 4 MiB at most. If `version` is given, the object must have it.
    ///
    /// # Errors
    ///
    /// `Misuse` for a file of other columns; `Corrupt` for what is no Parquet file; `LimitExceeded` for too large a file; `Unsupported` if there is
    /// no class, or for files that are encrypted or have bounds in another order; `Io`, with
    /// [`NotFound`](Detail::NotFound) if there is no object, and if it has another version. After `Io` for another reason, such as a connection
    /// that was lost, the rows may have been added: who tries again without a version may add them twice.
    pub fn merge(&self, object: &str, file: &[u8], version: Option<u64>) -> Result<()> {
        self.merged(object, file, version).map(|_| ())
    }

    /// The same: the version that it has then.
    pub(crate) fn merged(&self, object: &str, file: &[u8], version: Option<u64>) -> Result<u64> {
        let request = merge_request(file);
        let method = (&*self.class, "merge");
        self.changing(object, |context| context.change(object, method, &request, (version, None)))
    }

    /// The same, of a file at a path: how many bytes it has.
    ///
    /// # Errors
    ///
    /// As [`Pool::merge`]; `Io` if the file cannot be read.
    pub fn merge_file(&self, object: &str, path: &Path) -> Result<u64> {
        let name = path.to_string_lossy();
        let not_read = |error| failed("read", &name, error);
        let mut bytes = Vec::new();
        let mut some = File::open(path).map_err(not_read)?.take(MERGED_BYTES_MAX + 1);
        some.read_to_end(&mut bytes).map_err(not_read)?;
        if u64_of(bytes.len()) > MERGED_BYTES_MAX {
            let error = Error::too_large(format!("more than {MERGED_BYTES_MAX} bytes to merge: copy them"));
            return Err(error.at(|place| place.object = Some(shown(&name))));
        }
        self.merge(object, &bytes, None)?;
        Ok(u64_of(bytes.len()))
    }

    /// Does what changes an object: what was found of it before is forgotten.
    pub(crate) fn changing<T>(
        &self,
        object: &str,
        work: impl FnOnce(&mut dyn Objects) -> Result<T>,
    ) -> Result<T> {
        let changed = self.locked(work);
        self.looked().take(object);
        changed
    }

    pub(crate) fn locked<T>(&self, work: impl FnOnce(&mut dyn Objects) -> Result<T>) -> Result<T> {
        // A panic in between left nothing half done: librados has no part of it.
        work(&mut **self.context.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// All bytes that were asked for.
pub(crate) fn whole(object: &str, range: &Range<u64>, bytes: Vec<u8>) -> Result<Bytes> {
    let length = range.end.saturating_sub(range.start);
    if u64_of(bytes.len()) < length {
        let message =
            format!("{length} bytes from {} on were asked for, and {} are there", range.start, bytes.len());
        return Err(Error::io(message).at(|place| place.object = Some(object.to_owned())));
    }
    Ok(Bytes::from(bytes))
}

/// The next object that nobody has taken, and its place.
fn take<'a>(next: &AtomicUsize, objects: &'a [String]) -> Option<(usize, &'a String)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    objects.get(at).map(|object| (at, object))
}

/// An object of a pool, with a handle of its own.
pub(crate) struct OneObject {
    context: Box<dyn Objects>,
    object: String,
    class: Arc<str>,
}

impl Execute for OneObject {
    fn execute(&mut self, request: &[u8], version: Option<u64>) -> Result<(Vec<u8>, u64)> {
        self.context.execute(&self.object, (&self.class, "query"), request, version)
    }
}
