//! What machines write, put into files by io_uring.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;

use compio::BufResult;
use compio::buf::{IntoInner, IoBuf};
use compio::driver::ToSharedFd;
use compio::driver::op::{ReadAt, WriteAt};
use compio::runtime::fd::AsyncFd;
use compio::runtime::{Runtime, spawn_blocking, submit};
use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Machine, Price, Result};

use super::{Driven, TURN_BYTES};
use crate::async_sink::AsyncByteSink;
use crate::blocking;
use crate::driving::Driving;
use crate::failure::{about, failed};
use crate::schedule::ReadAhead;
use crate::sink::{ByteSink, ByteSinks};
use crate::source::beyond_end;

/// The price of an append: a copy to new pages of the system's cache, on the thread that submits it.
const APPEND_PRICE: Price = Price::per_kib(400);

/// Drives a machine that writes on compio, on the thread that it is called on.
///
/// Between two steps of the default budget, and after each product, timers and I/O that are due are looked for and other tasks
/// run. The machine goes on while bytes are being appended, until [`ReadAhead::ahead_bytes`] wait.
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
/// use marquetry_io::{ByteSinks, uring};
///
/// # let writer = Writer::default();
/// # let path = std::env::temp_dir().join(format!("marquetry-io-uring-into-{}", std::process::id()));
/// # let mut rows = [&b"one "[..], b"two"].into_iter();
/// # let runtime = compio::runtime::Runtime::new().unwrap();
/// # runtime.block_on(async {
/// let mut file = uring::NewFile::create(&path).await?;
/// let mut writing = uring::drive_into(writer, ByteSinks::new().with(FILE, &mut file));
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
    Driven(Driving::new(machine, sinks, ahead, TURN_BYTES, APPEND_PRICE))
}

/// Any of this module's sinks: `ByteSinks::new().with(FILE, &mut file as &mut Sink).with(SPILL, &mut spill)`.
pub type Sink = dyn AsyncByteSink<Append = Appending, Read = Reading>;

type Appending = Pin<Box<dyn Future<Output = Result<()>>>>;
type Reading = Pin<Box<dyn Future<Output = Result<Bytes>>>>;

/// A file that appears under its name only once it is whole, as [`blocking::NewFile`] does. Appends use io_uring;
/// creating the file and giving it its name is blocking work, on compio's threads.
#[derive(Debug)]
pub struct NewFile {
    file: blocking::NewFile,
    end: End,
}

impl NewFile {
    /// Begins a file that will be at `path`.
    ///
    /// # Errors
    ///
    /// As [`blocking::NewFile::create`]'s; `Misuse` outside of a compio runtime.
    pub async fn create(path: impl AsRef<Path>) -> Result<NewFile> {
        let path = path.as_ref().to_owned();
        let file = offload(move || blocking::NewFile::create(path)).await?;
        let end = End::of(file.file(), ByteSink::name(&file))?;
        Ok(NewFile { file, end })
    }

    /// Gives the file its name, once all of it is on the disk, unless somebody has that name by now. Dropped before its end, it leaves the
    /// whole file, or nothing.
    ///
    /// # Errors
    ///
    /// As [`blocking::NewFile::commit`]'s.
    pub async fn commit(self) -> Result<()> {
        let file = self.file;
        offload(move || file.commit()).await
    }

    /// The same, in place of a file of that name, if there is one.
    ///
    /// # Errors
    ///
    /// As [`blocking::NewFile::replace`]'s.
    pub async fn replace(self) -> Result<()> {
        let file = self.file;
        offload(move || file.replace()).await
    }
}

impl AsyncByteSink for NewFile {
    type Append = Appending;
    type Read = Reading;

    fn name(&self) -> &str {
        &self.end.name
    }

    fn append(&mut self, bytes: Bytes) -> Appending {
        self.end.append(bytes)
    }

    fn read(&mut self, _range: Range<u64>) -> Reading {
        let error = about(&self.end.name, "it is being written, and cannot be read");
        Box::pin(async move { Err(error) })
    }
}

/// A file without a name, for what a machine moves out of memory for a while, as [`blocking::SpillFile`] is.
#[derive(Debug)]
pub struct SpillFile {
    end: End,
    /// Where a file that is open keeps its name, this removes it at last.
    _file: blocking::SpillFile,
}

impl SpillFile {
    /// A file in the directory of `path`.
    ///
    /// # Errors
    ///
    /// As [`blocking::SpillFile::create_beside`]'s; `Misuse` outside of a compio runtime.
    pub async fn create_beside(path: impl AsRef<Path>) -> Result<SpillFile> {
        let path = path.as_ref().to_owned();
        let file = offload(move || blocking::SpillFile::create_beside(path)).await?;
        let end = End::of(file.file(), ByteSink::name(&file))?;
        Ok(SpillFile { end, _file: file })
    }
}

impl AsyncByteSink for SpillFile {
    type Append = Appending;
    type Read = Reading;

    fn name(&self) -> &str {
        &self.end.name
    }

    fn append(&mut self, bytes: Bytes) -> Appending {
        self.end.append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> Reading {
        self.end.read(range)
    }
}

/// The end of a file.
#[derive(Debug)]
struct End {
    file: AsyncFd<fs::File>,
    name: Rc<str>,
    /// Where the next append goes.
    at: u64,
}

impl End {
    /// The same open file, by a descriptor that the runtime knows.
    fn of(file: &fs::File, name: &str) -> Result<End> {
        let file = file.try_clone().and_then(AsyncFd::new);
        let file = file.map_err(|error| failed("written", name, error))?;
        Ok(End { file, name: name.into(), at: 0 })
    }

    fn append(&mut self, mut bytes: Bytes) -> Appending {
        let (file, name, mut at) = (self.file.clone(), Rc::clone(&self.name), self.at);
        self.at += u64_of(bytes.len());
        Box::pin(async move {
            while !bytes.is_empty() {
                let BufResult(written, buffer) =
                    submit(WriteAt::new(file.to_shared_fd(), at, bytes)).await.into_inner();
                bytes = buffer;
                match written {
                    Ok(0) => return Err(failed("written", &name, io::ErrorKind::WriteZero.into())),
                    Ok(written) => {
                        bytes = Bytes::slice(&bytes, written..);
                        at += u64_of(written);
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed("written", &name, error)),
                }
            }
            Ok(())
        })
    }

    fn read(&self, range: Range<u64>) -> Reading {
        let (file, name, length) = (self.file.clone(), Rc::clone(&self.name), self.at);
        Box::pin(async move {
            if range.start > range.end || range.end > length {
                return Err(beyond_end(&name, &range, length));
            }
            let mut bytes = blocking::zeroed(range.end - range.start)?;
            let mut filled = 0;
            while filled < bytes.len() {
                let read =
                    ReadAt::new(file.to_shared_fd(), range.start + u64_of(filled), bytes.slice(filled..));
                let BufResult(read, buffer) = submit(read).await.into_inner();
                bytes = buffer.into_inner();
                match read {
                    Ok(0) => return Err(about(&name, "it became shorter")),
                    Ok(read) => filled += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(failed("read", &name, error)),
                }
            }
            Ok(Bytes::from(bytes))
        })
    }
}

/// Does blocking work on one of compio's threads.
async fn offload<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    if Runtime::try_with_current(|_| ()).is_err() {
        return Err(Error::misuse("a file is written by compio outside of a compio runtime"));
    }
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(_) => Err(Error::internal("a thread that was to wait for a file panicked, or was cancelled")),
    }
}
