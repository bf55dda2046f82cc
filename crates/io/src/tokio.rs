//! The driver for tokio, and files read and written on tokio's threads for blocking work.
//!
//! [`drive`] is for machines that read, [`drive_into`] for machines that write.
//!
//! ```
//! # use marquetry_base::{Budget, Bytes, Demand, Error, Machine, Object, Result, Step};
//! # /// Counts the bytes of an object.
//! # struct Counter(Object, Option<u64>);
//! # impl Machine for Counter {
//! #     type Product = u64;
//! #     fn step(&mut self, _: &mut Budget<'_>) -> Result<Step<u64>> {
//! #         Ok(match self.1 {
//! #             None => Step::Need(Demand::length(self.0)),
//! #             Some(u64::MAX) => Step::Done,
//! #             Some(length) => { self.1 = Some(u64::MAX); Step::Ready(length) }
//! #         })
//! #     }
//! #     fn supply(&mut self, _: Object, _: std::ops::Range<u64>, _: Bytes) -> Result<()> { Ok(()) }
//! #     fn supply_length(&mut self, _: Object, length: u64) -> Result<()> { self.1 = Some(length); Ok(()) }
//! #     fn fail(&mut self, _: Object, _: std::ops::Range<u64>, _: Error) {}
//! # }
//! use marquetry_io::{ByteSources, tokio};
//!
//! # let machine = Counter(Object(0), None);
//! # let path = std::env::temp_dir().join(format!("marquetry-io-tokio-{}", std::process::id()));
//! # std::fs::write(&path, "seven b").unwrap();
//! # let runtime = ::tokio::runtime::Builder::new_current_thread().build().unwrap();
//! # runtime.block_on(async {
//! let file = tokio::File::open(&path).await?;
//! let mut products = tokio::drive(machine, ByteSources::new().with(Object(0), file));
//! while let Some(product) = products.next().await? {
//!     assert_eq!(product, 7);
//! }
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), Error>(())
//! # }).unwrap();
//! ```

use std::collections::VecDeque;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::thread::available_parallelism;

use ::tokio::runtime::Handle;
use ::tokio::sync::oneshot;
use ::tokio::task::yield_now;
use marquetry_base::{Bytes, Error, Machine, Price, Result};

mod write;

pub use write::{NewFile, OffloadedSink, Sink, SpillFile, drive_into, drive_into_ahead};

use crate::async_source::AsyncByteSource;
use crate::blocking;
use crate::driving::{Driving, Event};
use crate::objects::Objects;
use crate::schedule::ReadAhead;
use crate::source::{ByteSource, ByteSources};

/// Drives a machine on tokio, on a runtime of any flavour.
///
/// Between two steps of the default budget, and after each product, tokio's driver is polled and other tasks run.
/// Ranges are read in pieces, ahead of the machine. The future of [`Driven::next`] is `Send` if machine and sources
/// are.
pub fn drive<M: Machine, S: AsyncByteSource>(
    machine: M,
    sources: ByteSources<S>,
) -> Driven<M, ByteSources<S>> {
    drive_ahead(machine, sources, ReadAhead::default())
}

/// The same, with another limit on what is read ahead.
pub fn drive_ahead<M: Machine, S: AsyncByteSource>(
    machine: M,
    sources: ByteSources<S>,
    read_ahead: ReadAhead,
) -> Driven<M, ByteSources<S>> {
    // Other threads read: starting as many reads as there is room for takes little time of this one.
    Driven(Driving::new(machine, sources, read_ahead, u64::MAX, Price::per_kib(0)))
}

/// A machine that is driven on tokio, with the sources that it reads or the sinks that it writes. Dropping it cancels
/// what is in flight.
pub struct Driven<M, O: Objects>(Driving<M, O>);

impl<M: Machine, O: Objects> Driven<M, O> {
    /// The next product; `None` when nothing more will come, and all that was written is appended. A machine that writes
    /// asks for more to write by its products. Dropping the future before its end loses nothing.
    ///
    /// # Errors
    ///
    /// As for [`drive`](crate::drive()) and [`drive_into`](crate::drive_into()).
    pub async fn next(&mut self) -> Result<Option<M::Product>> {
        loop {
            match poll_fn(|cx| self.0.poll(cx)).await? {
                Event::Product(product) => return Ok(Some(product)),
                Event::Done => return Ok(None),
                // tokio wakes a task that yields only after it has checked timers and I/O.
                Event::Turn => yield_now().await,
            }
        }
    }

    /// The machine.
    pub fn machine(&self) -> &M {
        self.0.machine()
    }

    /// The machine, to feed it.
    pub fn machine_mut(&mut self) -> &mut M {
        self.0.machine_mut()
    }
}

/// A local file, read on tokio's threads for blocking work (tokio has no other way to read files).
pub type File = Offloaded<blocking::File>;

impl File {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// As for [`blocking::File::open`]; `Misuse` outside a tokio runtime.
    pub async fn open(path: impl AsRef<Path>) -> Result<File> {
        let path: PathBuf = path.as_ref().to_owned();
        let opening = Arc::<Lanes>::default().offload(move || blocking::File::open(path));
        opening.await.map(Offloaded::new)
    }
}

/// The most reads of a source that run at the same time, each on its own thread.
const LANES_MAX: usize = 4;

/// As many as there are processors besides the one for the reactor's thread, which waits for milliseconds if threads
/// must take turns.
fn lanes() -> usize {
    static LANES: OnceLock<usize> = OnceLock::new();
    *LANES.get_or_init(|| {
        let processors = available_parallelism().map_or(1, NonZeroUsize::get);
        (processors - 1).clamp(1, LANES_MAX)
    })
}

/// A blocking source, read on a few of tokio's threads for blocking work, in order. Clones share it.
#[derive(Debug)]
pub struct Offloaded<S> {
    source: Arc<S>,
    lanes: Arc<Lanes>,
}

impl<S> Offloaded<S> {
    /// Wraps a blocking source.
    pub fn new(source: S) -> Offloaded<S> {
        Offloaded { source: Arc::new(source), lanes: Arc::default() }
    }
}

impl<S> Clone for Offloaded<S> {
    fn clone(&self) -> Offloaded<S> {
        Offloaded { source: Arc::clone(&self.source), lanes: Arc::clone(&self.lanes) }
    }
}

impl<S: ByteSource + Send + Sync + 'static> AsyncByteSource for Offloaded<S> {
    type Length = Offload<u64>;
    type Read = Offload<Bytes>;

    fn name(&self) -> &str {
        self.source.name()
    }

    fn length(&self) -> Offload<u64> {
        let source = Arc::clone(&self.source);
        self.lanes.offload(move || source.length())
    }

    fn read(&self, range: Range<u64>) -> Offload<Bytes> {
        let source = Arc::clone(&self.source);
        self.lanes.offload(move || source.read(range))
    }
}

/// Requests, in order, and the threads that execute them.
#[derive(Default)]
struct Lanes(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    running: usize,
}

/// Executes a request and sends its result; does nothing if the result is no longer awaited.
type Job = Box<dyn FnOnce() + Send>;

impl Lanes {
    fn offload<T: Send + 'static>(
        self: &Arc<Self>,
        ask: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Offload<T> {
        let Ok(runtime) = Handle::try_current() else {
            return Offload(Err(Error::misuse("a tokio file is used outside a tokio runtime")));
        };
        let (tell, told) = oneshot::channel();
        let job = Box::new(move || {
            if !tell.is_closed() {
                let found = catch_unwind(AssertUnwindSafe(ask));
                // The receiver may be gone.
                let _ =
                    tell.send(found.unwrap_or_else(|_| Err(Error::internal("a source or a sink panicked"))));
            }
        });
        let mut queue = self.lock();
        queue.jobs.push_back(job);
        if queue.running < lanes() {
            queue.running += 1;
            let lane = Lane { lanes: Arc::clone(self), is_running: true };
            drop(queue);
            runtime.spawn_blocking(move || lane.work());
        }
        Offload(Ok(told))
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Lanes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lanes").finish_non_exhaustive()
    }
}

/// A thread that works until no request is left.
struct Lane {
    lanes: Arc<Lanes>,
    is_running: bool,
}

impl Lane {
    fn work(mut self) {
        while let Some(job) = self.next() {
            job();
        }
    }

    fn next(&mut self) -> Option<Job> {
        let mut queue = self.lanes.lock();
        let job = queue.jobs.pop_front();
        if job.is_none() {
            queue.running -= 1;
            self.is_running = false;
        }
        job
    }
}

impl Drop for Lane {
    /// A runtime that shuts down drops what it has not started, and reports it to whoever waits.
    fn drop(&mut self) {
        if self.is_running {
            let mut queue = self.lanes.lock();
            queue.running -= 1;
            if queue.running == 0 {
                queue.jobs.clear();
            }
        }
    }
}

/// The answer of a blocking source. Dropping it cancels the request if no thread has started it.
#[derive(Debug)]
pub struct Offload<T>(Result<oneshot::Receiver<Result<T>>>);

impl<T> Future for Offload<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        match &mut self.0 {
            Ok(told) => Pin::new(told).poll(cx).map(|told| {
                told.unwrap_or_else(|_| {
                    Err(Error::io("the tokio runtime was shut down before a read or an append had ended"))
                })
            }),
            Err(error) => Poll::Ready(Err(error.clone())),
        }
    }
}
