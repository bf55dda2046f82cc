//! What machines write, put into files on tokio's threads for blocking work.

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use marquetry_base::{Bytes, Error, Machine, Price, Result};

use super::{Driven, Lanes, Offload};
use crate::async_sink::AsyncByteSink;
use crate::blocking;
use crate::driving::Driving;
use crate::schedule::ReadAhead;
use crate::sink::{ByteSink, ByteSinks};

/// Drives a machine that writes on tokio, on a runtime of any flavour.
///
/// Between two steps of the default budget, and after each product, tokio's driver is polled and other tasks run. The machine goes on
/// while bytes are being appended, until [`ReadAhead::ahead_bytes`] wait.
///
/// ```
/// # use marquetry_base::{Budget, Bytes, Error, Machine, Object, Result, Step};
/// # const FILE: Object = Object(0);
/// # /// Writes what it is fed.
/// # #[derive(Default)]
/// # struct Writer(Vec<Bytes>, bool);
/// # impl Writer {
/// #     fn feed(&mut self, bytes: &'static [u8]) { self.0.push(Bytes::from_static(bytes)); }
/// #     fn finish(&mut self) { self.1 = true; }
/// # }
/// # impl Machine for Writer {
/// #     type Product = ();
/// #     fn step(&mut self, _: &mut Budget<'_>) -> Result<Step<()>> {
/// #         Ok(match self.0.pop() {
/// #             Some(bytes) => Step::Append(FILE, bytes),
/// #             None if self.1 => Step::Done,
/// #             None => Step::Ready(()),
/// #         })
/// #     }
/// #     fn supply(&mut self, _: Object, _: std::ops::Range<u64>, _: Bytes) -> Result<()> { Ok(()) }
/// #     fn supply_length(&mut self, _: Object, _: u64) -> Result<()> { Ok(()) }
/// #     fn fail(&mut self, _: Object, _: std::ops::Range<u64>, _: Error) {}
/// # }
/// use marquetry_io::{ByteSinks, tokio};
///
/// # let writer = Writer::default();
/// # let path = std::env::temp_dir().join(format!("marquetry-io-tokio-into-{}", std::process::id()));
/// # let mut rows = [&b"one "[..], b"two"].into_iter();
/// # let runtime = ::tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let mut file = tokio::NewFile::create(&path).await?;
/// let mut writing = tokio::drive_into(writer, ByteSinks::new().with(FILE, &mut file));
/// // Each product asks for more rows.
/// while writing.next().await?.is_some() {
///     match rows.next() {
///         Some(more) => writing.machine_mut().feed(more),
///         None => writing.machine_mut().finish(),
///     }
/// }
/// drop(writing);
/// // Until here there is no file of that name.
/// file.commit().await?;
/// # assert_eq!(std::fs::read(&path).unwrap(), b"one two");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), Error>(())
/// # }).unwrap();
/// ```
pub fn drive_into<M: Machine, S: AsyncByteSink>(machine: M, sinks: ByteSinks<S>) -> Driven<M, ByteSinks<S>> {
    drive_into_ahead(machine, sinks, ReadAhead::default())
}

/// The same, with another bound on what waits to be appended, and on the bytes of one append.
pub fn drive_into_ahead<M: Machine, S: AsyncByteSink>(
    machine: M,
    sinks: ByteSinks<S>,
    ahead: ReadAhead,
) -> Driven<M, ByteSinks<S>> {
    // Other threads write: starting an append takes little time on this one.
    Driven(Driving::new(machine, sinks, ahead, u64::MAX, Price::per_kib(0)))
}

/// Any of this module's sinks: `ByteSinks::new().with(FILE, &mut file as &mut Sink).with(SPILL, &mut spill)`.
pub type Sink = dyn AsyncByteSink<Append = Offload<()>, Read = Offload<Bytes>> + Send;

/// A file that appears under its name only once it is whole: [`blocking::NewFile`], written on tokio's threads for blocking work.
pub type NewFile = OffloadedSink<blocking::NewFile>;

/// A file without a name, for what a machine moves out of memory for a while: [`blocking::SpillFile`], on tokio's threads for blocking work.
pub type SpillFile = OffloadedSink<blocking::SpillFile>;

impl NewFile {
    /// Begins a file that will be at `path`.
    ///
    /// # Errors
    ///
    /// As [`blocking::NewFile::create`]'s; `Misuse` outside of a tokio runtime.
    pub async fn create(path: impl AsRef<Path>) -> Result<NewFile> {
        let path = path.as_ref().to_owned();
        let creating = Arc::<Lanes>::default().offload(move || blocking::NewFile::create(path));
        creating.await.map(OffloadedSink::new)
    }

    /// Gives the file its name, once all of it is on the disk, unless somebody has that name by now. Dropped before its end, it leaves the
    /// whole file, or nothing.
    ///
    /// # Errors
    ///
    /// As [`blocking::NewFile::commit`]'s.
    pub async fn commit(self) -> Result<()> {
        self.end(blocking::NewFile::commit).await
    }

    /// The same, in place of a file of that name, if there is one.
    ///
    /// # Errors
    ///
    /// As [`blocking::NewFile::replace`]'s.
    pub async fn replace(self) -> Result<()> {
        self.end(blocking::NewFile::replace).await
    }
}

impl SpillFile {
    /// A file in the directory of `path`.
    ///
    /// # Errors
    ///
    /// As [`blocking::SpillFile::create_beside`]'s; `Misuse` outside of a tokio runtime.
    pub async fn create_beside(path: impl AsRef<Path>) -> Result<SpillFile> {
        let path = path.as_ref().to_owned();
        let creating = Arc::<Lanes>::default().offload(move || blocking::SpillFile::create_beside(path));
        creating.await.map(OffloadedSink::new)
    }
}

/// A blocking sink, used on tokio's threads for blocking work.
#[derive(Debug)]
pub struct OffloadedSink<S> {
    name: String,
    /// `None` once it is committed.
    sink: Arc<Mutex<Option<S>>>,
    lanes: Arc<Lanes>,
}

impl<S: ByteSink> OffloadedSink<S> {
    /// Wraps a blocking sink.
    pub fn new(sink: S) -> OffloadedSink<S> {
        let name = sink.name().to_owned();
        OffloadedSink { name, sink: Arc::new(Mutex::new(Some(sink))), lanes: Arc::default() }
    }
}

impl<S: Send + 'static> OffloadedSink<S> {
    /// Does blocking work with the sink.
    fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Option<S>) -> Result<T> + Send + 'static,
    ) -> Offload<T> {
        let sink = Arc::clone(&self.sink);
        // One thread has it at a time: the driver appends one piece after the other.
        self.lanes.offload(move || work(&mut sink.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn end(self, end: impl FnOnce(S) -> Result<()> + Send + 'static) -> Offload<()> {
        self.with(move |sink| sink.take().map_or_else(|| Err(gone()), end))
    }
}

impl<S: ByteSink + Send + 'static> AsyncByteSink for OffloadedSink<S> {
    type Append = Offload<()>;
    type Read = Offload<Bytes>;

    fn name(&self) -> &str {
        &self.name
    }

    fn append(&mut self, bytes: Bytes) -> Offload<()> {
        self.with(move |sink| sink.as_mut().ok_or_else(gone)?.append(&bytes))
    }

    fn read(&mut self, range: Range<u64>) -> Offload<Bytes> {
        self.with(move |sink| sink.as_mut().ok_or_else(gone)?.read(range))
    }
}

fn gone() -> Error {
    Error::internal("a sink is used after it was committed")
}
