//! The driver for io_uring, one thread per core, on the runtime [compio](https://docs.rs/compio), and files read
//! through it.
//!
//! Reads are submitted to the kernel and arrive in the memory that the machine then keeps: the only copy is the one
//! out of the system's cache, and no other thread is involved. Where io_uring is missing or not allowed (other
//! systems, most containers' rules, `kernel.io_uring_disabled`), compio reads with threads instead; [`is_native`]
//! reports which.
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
//! use marquetry_io::{ByteSources, uring};
//!
//! # let machine = Counter(Object(0), None);
//! # let path = std::env::temp_dir().join(format!("marquetry-io-uring-{}", std::process::id()));
//! # std::fs::write(&path, "seven b").unwrap();
//! # compio::runtime::Runtime::new().unwrap().block_on(async {
//! let file = uring::File::open(&path).await?;
//! let mut products = uring::drive(machine, ByteSources::new().with(Object(0), file));
//! while let Some(product) = products.next().await? {
//!     assert_eq!(product, 7);
//! }
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), Error>(())
//! # }).unwrap();
//! ```

use std::future::{Ready, poll_fn, ready};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::fs;
use compio::io::AsyncReadAt;
use compio::runtime::Runtime;
use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bytes, Error, Machine, Price, Result};

mod write;

pub use write::{NewFile, Sink, SpillFile, drive_into, drive_into_ahead};

use crate::async_source::AsyncByteSource;
use crate::driving::{Driving, Event};
use crate::failure::{about, failed};
use crate::objects::Objects;
use crate::schedule::ReadAhead;
use crate::source::{ByteSources, FileKind, beyond_end, nameless, shrank};

/// Bytes of reads that start before other tasks run: usually one read. The kernel reads cached data when the read is
/// submitted, on the submitting thread: sixteen reads in one go would block it for milliseconds.
const TURN_BYTES: u64 = 256 << 10;
/// The price of such a read: a copy from uncached to new memory.
const READ_PRICE: Price = Price::per_kib(400);

/// Drives a machine on compio, on the calling thread.
///
/// Between two steps of the default budget, and after each product, timers and I/O are checked and other tasks run: a
/// machine is never polled twice without that, whatever the runtime's `event_interval`. Ranges are read in pieces,
/// ahead of the machine.
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
    Driven(Driving::new(machine, sources, read_ahead, TURN_BYTES, READ_PRICE))
}

/// True if this thread's runtime reads through io_uring; false if it reads with threads, or outside a compio runtime.
pub fn is_native() -> bool {
    Runtime::try_with_current(|runtime| runtime.driver_type().is_iouring()).unwrap_or(false)
}

/// A machine that is driven on compio, with the sources that it reads or the sinks that it writes. Dropping it cancels
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
                Event::Turn => turn().await,
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

/// Lets all other tasks run: requests are submitted, and tasks whose I/O or timer is due run before this one.
///
/// Being woken at once would not do: compio polls up to 61 tasks, or two of them 61 times in turn, before it looks for timers.
async fn turn() {
    // Outside a runtime there are no other tasks.
    let _ = Runtime::try_with_current(|runtime| runtime.poll_with(Some(Duration::ZERO)));
    // A completed read of ours wakes us before timers are checked, so we are at the end of the queue only the second
    // time.
    let mut passes = 0;
    poll_fn(|cx| {
        if passes == 2 {
            return Poll::Ready(());
        }
        passes += 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A local file, open for reading by this thread. Clones share it.
#[derive(Debug, Clone)]
pub struct File {
    file: fs::File,
    name: Rc<str>,
    length: u64,
}

impl File {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](marquetry_base::ErrorKind::Io) if it cannot be opened, or is not a regular file; `Misuse`
    /// outside a compio runtime.
    pub async fn open(path: impl AsRef<Path>) -> Result<File> {
        let path = path.as_ref();
        if Runtime::try_with_current(|_| ()).is_err() {
            return Err(Error::misuse("a compio file is opened outside a compio runtime"));
        }
        if path.as_os_str().is_empty() {
            return Err(nameless());
        }
        let name = path.display().to_string();
        let cannot = |error: io::Error| failed("opened", &name, error);
        // Checked before opening, which waits for a writer if the path is a named pipe; and after, because the path
        // may lead to another file by then.
        let before = fs::metadata(path).await.map_err(cannot)?;
        kind(&before).expect_regular().map_err(|what| about(&name, what))?;
        let file = fs::File::open(path).await.map_err(cannot)?;
        let metadata = file.metadata().await.map_err(cannot)?;
        kind(&metadata).expect_regular().map_err(|what| about(&name, what))?;
        Ok(File { file, length: metadata.len(), name: name.into() })
    }
}

impl AsyncByteSource for File {
    type Length = Ready<Result<u64>>;
    type Read = Pin<Box<dyn Future<Output = Result<Bytes>>>>;

    fn name(&self) -> &str {
        &self.name
    }

    /// The file's length when it was opened.
    fn length(&self) -> Self::Length {
        ready(Ok(self.length))
    }

    fn read(&self, range: Range<u64>) -> Self::Read {
        Box::pin(read(self.clone(), range))
    }
}

async fn read(source: File, range: Range<u64>) -> Result<Bytes> {
    let File { file, name, length } = source;
    // This also bounds the allocation by the file's length.
    if range.start > range.end || range.end > length {
        return Err(beyond_end(&name, &range, length));
    }
    let bytes = usize_of(range.end - range.start).ok_or_else(|| Error::out_of_memory(usize::MAX))?;
    let mut buffer = Vec::new();
    buffer.try_reserve_exact(bytes).map_err(|_| Error::out_of_memory(bytes))?;
    while buffer.len() < bytes {
        let filled = buffer.len();
        let at = range.start + u64_of(filled);
        let BufResult(read, slice) = file.read_at(buffer.slice(filled..bytes), at).await;
        buffer = slice.into_inner();
        match read {
            Ok(0) => return Err(shrank(&name, length, at)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(&format!("read at byte {at}"), &name, error)),
        }
    }
    Ok(Bytes::from(buffer))
}

fn kind(metadata: &fs::Metadata) -> FileKind {
    match () {
        () if metadata.is_file() => FileKind::Regular,
        () if metadata.is_dir() => FileKind::Directory,
        () => special(metadata),
    }
}

#[cfg(unix)]
fn special(metadata: &fs::Metadata) -> FileKind {
    use std::os::unix::fs::FileTypeExt;
    let kind = metadata.file_type();
    match () {
        () if kind.is_fifo() => FileKind::Pipe,
        () if kind.is_socket() => FileKind::Socket,
        () => FileKind::Device,
    }
}

#[cfg(not(unix))]
fn special(_: &fs::Metadata) -> FileKind {
    FileKind::Device
}
