//! Arrow's C stream, for hosts that may wait.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array as _, RecordBatch, StructArray};
use marquetry_base::cast::usize_of;
use marquetry_base::{
    Budget, Bytes, Demand, Detail, Error, ErrorKind, Limits, Machine as _, Priority, Result, Step, Want,
};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::FooterReader;

use crate::abi::{marquetry_reader_options, marquetry_status};
use crate::error::answer;
use crate::footer::limits;
use crate::handles::{boxed, call, call_of_steps, guarded, marquetry_error};
use crate::machine::FILE;
use crate::reader::{BatchesMachine, Wanted, exported};
use crate::text::Text;
use crate::{arguments, reserve};

/// Reads `length` bytes at `offset` of a file into `data`. 0, or another number if that failed. It may wait.
pub type marquetry_read_at =
    Option<extern "C" fn(context: *mut c_void, offset: u64, data: *mut u8, length: usize) -> i32>;

/// Where bytes are read.
struct Source {
    read_at: extern "C" fn(*mut c_void, u64, *mut u8, usize) -> i32,
    context: *mut c_void,
    length: u64,
}

// SAFETY: the host promises that a stream, and so its `read_at`, may be used on any thread, one at a time.
unsafe impl Send for Source {}

/// `struct ArrowArrayStream` of Arrow's C Stream Interface.
#[repr(C)]
#[derive(Debug)]
pub struct CStream {
    get_schema: Option<extern "C" fn(*mut CStream, *mut FFI_ArrowSchema) -> c_int>,
    get_next: Option<extern "C" fn(*mut CStream, *mut FFI_ArrowArray) -> c_int>,
    get_last_error: Option<extern "C" fn(*mut CStream) -> *const c_char>,
    release: Option<extern "C" fn(*mut CStream)>,
    private_data: *mut c_void,
}

/// What a stream of Arrow's leads to.
struct Stream {
    source: Source,
    reader: BatchesMachine,
    /// The number and the text of the error that it has failed with.
    failed: Option<(c_int, Text)>,
    is_poisoned: bool,
}

impl Source {
    fn read(&self, start: u64, end: u64) -> Result<Bytes> {
        let wrong = || Error::internal("a range beyond the file's end");
        let length =
            end.checked_sub(start).filter(|_| end <= self.length).and_then(usize_of).ok_or_else(wrong)?;
        let mut bytes: Vec<u8> = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length))?;
        bytes.resize(length, 0);
        match (self.read_at)(self.context, start, bytes.as_mut_ptr(), length) {
            0 => Ok(Bytes::from(bytes)),
            code => Err(Error::io(format!("read_at failed with {code}")).at_offset(start)),
        }
    }

    /// Answers what cannot be done without.
    fn answer(&self, demand: Demand, mut supply: impl FnMut(u64, u64, Bytes) -> Result<()>) -> Result<()> {
        for want in demand.wants {
            if let Want::Range(_, range, Priority::Now) = want {
                supply(range.start, range.end, self.read(range.start, range.end)?)?;
            }
        }
        Ok(())
    }

    fn footer(&self, limits: Limits) -> Result<Arc<FileMetaData>> {
        let mut footer = FooterReader::new(FILE, limits);
        footer.supply_length(FILE, self.length)?;
        loop {
            match footer.step(&mut Budget::unlimited())? {
                Step::Ready(metadata) => return Ok(metadata),
                Step::Need(demand) => {
                    self.answer(demand, |start, end, bytes| footer.supply(FILE, start..end, bytes))?;
                }
                Step::Yield => {}
                Step::Append(..) | Step::Done => return Err(Error::internal("a footer that has no end")),
            }
        }
    }
}

impl Stream {
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            match self.reader.step(&mut Budget::unlimited())? {
                Step::Ready(converted) => {
                    let made = converted.record_batch()?.clone();
                    self.reader.took(converted);
                    return Ok(Some(made));
                }
                Step::Need(demand) => {
                    let reader = &mut self.reader;
                    self.source.answer(demand, |start, end, bytes| reader.supply(start..end, bytes))?;
                }
                Step::Yield => {}
                Step::Append(..) => return Err(Error::internal("a reader that writes")),
                Step::Done => return Ok(None),
            }
        }
    }
}

/// What Arrow's functions return: numbers of `errno.h`, the same on all systems.
const EIO: i32 = 5;
const ENOMEM: i32 = 12;
const EINVAL: i32 = 22;

fn errno(error: &Error) -> i32 {
    match (error.kind(), error.detail()) {
        (_, Some(Detail::OutOfMemory(_))) => ENOMEM,
        (ErrorKind::Io, _) => EIO,
        _ => EINVAL,
    }
}

/// What a struct of Arrow's leads to: a stream, and whether a call of it is at work, which `read_at` may call again.
struct Held {
    phase: AtomicU8,
    stream: UnsafeCell<Stream>,
}

/// Nobody is in a call.
const IDLE: u8 = 0;
/// A call is at work.
const BUSY: u8 = 1;
/// A call is at work during which the stream was released: it frees the stream at its end.
const RELEASED: u8 = 2;

/// A call of a stream, which has it alone.
struct Use {
    held: *mut Held,
}

impl Use {
    /// `None` if the stream was released, or another call of it is at work.
    ///
    /// # Safety
    ///
    /// The host promises a stream that [`marquetry_stream_new`] has made, or that was released.
    unsafe fn begin(stream: *mut CStream) -> Option<Use> {
        // SAFETY: the caller's promise. While it is not released, its data is the box that was made for it.
        let held = unsafe {
            let stream = stream.as_ref()?;
            stream.release?;
            stream.private_data.cast::<Held>()
        };
        // SAFETY: as above; of what is shared only the phase is looked at.
        let phase = unsafe { &held.as_ref()?.phase };
        phase.compare_exchange(IDLE, BUSY, Ordering::Acquire, Ordering::Relaxed).ok()?;
        Some(Use { held })
    }

    fn stream(&mut self) -> &mut Stream {
        // SAFETY: the box is freed at the end of this use at the earliest, and nobody else has the stream while the phase is not idle.
        unsafe { &mut *(*self.held).stream.get() }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        // SAFETY: as in `stream`.
        let phase = unsafe { &(*self.held).phase };
        if phase.compare_exchange(BUSY, IDLE, Ordering::Release, Ordering::Acquire).is_err() {
            // SAFETY: it was released during this call, which is over: nobody else has the box.
            unsafe { drop_held(self.held) };
        }
    }
}

/// Frees a stream. After a bug, what it left is left alone.
///
/// # Safety
///
/// A box that [`marquetry_stream_new`] has made, which nobody uses any more.
unsafe fn drop_held(held: *mut Held) {
    // SAFETY: the caller's promise.
    unsafe {
        if !(*(*held).stream.get()).is_poisoned {
            let _ = guarded(|| drop(Box::from_raw(held)));
        }
    }
}

extern "C" fn get_schema(stream: *mut CStream, out: *mut FFI_ArrowSchema) -> c_int {
    // SAFETY: the host's promise, as Arrow's specification has it.
    let Some(mut begun) = (unsafe { Use::begin(stream) }) else { return EINVAL };
    let stream = begun.stream();
    let schema = Arc::clone(stream.reader.schema());
    stream.answer(move |_| reserve::section(|| arguments::put(out, reserve::kept(exported(&schema)?)?)))
}

extern "C" fn get_next(stream: *mut CStream, out: *mut FFI_ArrowArray) -> c_int {
    // SAFETY: the host's promise, as Arrow's specification has it.
    let Some(mut begun) = (unsafe { Use::begin(stream) }) else { return EINVAL };
    begun.stream().answer(|stream| {
        let array = match stream.read()? {
            // What was released already says that nothing more comes.
            None => FFI_ArrowArray::empty(),
            Some(batch) => reserve::section(|| FFI_ArrowArray::new(&StructArray::from(batch).to_data())),
        };
        arguments::put(out, reserve::kept(array)?)
    })
}

extern "C" fn get_last_error(stream: *mut CStream) -> *const c_char {
    const IN_USE: &core::ffi::CStr =
        c"a stream that is in use: by another thread, or by the call that read_at is called from";
    // SAFETY: the host's promise, as Arrow's specification has it.
    let is_released = unsafe { stream.as_ref() }.is_none_or(|stream| stream.release.is_none());
    // SAFETY: as above.
    match unsafe { Use::begin(stream) } {
        None if is_released => core::ptr::null(),
        None => IN_USE.as_ptr(),
        // The text stays where it is until the stream is released.
        Some(mut begun) => {
            begun.stream().failed.as_ref().map_or(core::ptr::null(), |(_, text)| text.lent().data)
        }
    }
}

extern "C" fn release(stream: *mut CStream) {
    // SAFETY: the host's promise: a stream that was made here and is released once, because its `release` is NULL afterwards.
    let held = unsafe {
        let Some(released) = stream.as_mut() else { return };
        if released.release.take().is_none() {
            return;
        }
        core::mem::replace(&mut released.private_data, core::ptr::null_mut()).cast::<Held>()
    };
    // SAFETY: the box is there until it is freed, here or at the end of the call that is at work.
    let Some(phase) = (unsafe { held.as_ref() }).map(|held| &held.phase) else { return };
    if phase.swap(RELEASED, Ordering::AcqRel) == IDLE {
        // SAFETY: nobody is in a call, and no other can begin: the struct leads nowhere.
        unsafe { drop_held(held) };
    }
}

impl Stream {
    /// Does something with the stream. An error, a bug included, is the stream's from then on.
    fn answer(&mut self, work: impl FnOnce(&mut Stream) -> Result<()>) -> c_int {
        if let Some((code, _)) = &self.failed {
            return *code;
        }
        let done = call_of_steps(|| {
            guarded(|| work(&mut *self)).unwrap_or_else(|bug| {
                self.is_poisoned = true;
                Err(bug)
            })
        });
        let Err(error) = done else { return 0 };
        let code = errno(&error);
        // If there is no memory for the text, there is none.
        let text = call(|| Text::new(&error.to_string())).unwrap_or_default();
        self.failed = Some((code, text));
        code
    }
}

/// Opens a file as Arrow's stream, which reads what it needs by `read_at`: when it is opened, the footer, and the rest in `get_next`. For hosts that may
/// wait. An error of the stream is the same in all later calls.
///
/// * `read_at`, `context`: called by this function and by the stream's, until it is released. It must not call that stream: such a call fails with
///   `EINVAL`. If it releases the stream, that is freed at the end of the call that is at work.
/// * `file_bytes`: the file's length.
/// * `options`: in, borrowed; NULL: the defaults, all rows of all columns. `keep_dictionaries` is refused, because a stream has one schema.
/// * `stream`: out, owned by the host: its `release`. One thread at a time.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_stream_new(
    read_at: marquetry_read_at,
    context: *mut c_void,
    file_bytes: u64,
    options: *const marquetry_reader_options,
    stream: *mut CStream,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = call_of_steps(|| {
        if stream.is_null() {
            return Err(Error::misuse("a stream is to be written to NULL"));
        }
        let read_at = read_at.ok_or_else(|| Error::misuse("a read_at that is NULL"))?;
        let source = Source { read_at, context, length: file_bytes };
        let given = arguments::options_or_default(options)?;
        let metadata = source.footer(limits(given.memory_bytes_max))?;
        let wanted = reserve::section(|| Wanted::of(&metadata, options))?;
        if wanted.options.keep_dictionaries {
            return Err(Error::option("keep_dictionaries", "a stream has one schema"));
        }
        let reader = reserve::section(|| BatchesMachine::new(&metadata, wanted))?;
        let opened = Stream { source, reader, failed: None, is_poisoned: false };
        let opened = boxed(Held { phase: AtomicU8::new(IDLE), stream: UnsafeCell::new(opened) })?;
        let opened = Box::into_raw(reserve::kept(opened)?);
        let made = CStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release),
            private_data: opened.cast(),
        };
        arguments::put(stream, made)
    });
    answer(done, error)
}

/// The library's version: `0.1.0`. It ends with a NUL and is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_version() -> *const core::ffi::c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
