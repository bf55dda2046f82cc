//! Arrow's C stream, for hosts that may wait.

use core::ffi::c_void;
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Bytes, Demand, Error, Limits, Machine as _, Priority, Result, Step, Want};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::FooterReader;

use crate::abi::{marquetry_reader_options, marquetry_status};
use crate::error::answer;
use crate::handles::{call, marquetry_error};
use crate::machine::FILE;
use crate::reader::{BatchesMachine, Wanted};
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

struct Stream {
    source: Source,
    reader: BatchesMachine,
    schema: SchemaRef,
    failed: Option<Error>,
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

    fn footer(&self) -> Result<Arc<FileMetaData>> {
        let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
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
                Step::Ready(batch) => return self.reader.record_batch(&batch).map(Some),
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

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // An error, a bug included, is the stream's from then on.
        if self.failed.is_none() {
            match call(|| reserve::kept(self.read()?)) {
                Ok(batch) => return batch.map(Ok),
                Err(error) => self.failed = Some(error),
            }
        }
        let error = self.failed.clone()?;
        Some(Err(ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Opens a file as Arrow's stream, which reads what it needs by `read_at`: when it is opened, the footer, and the rest in `get_next`. For hosts that may
/// wait. An error of the stream is the same in all later calls.
///
/// * `read_at`, `context`: called by this function and by the stream's, until it is released.
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
    stream: *mut FFI_ArrowArrayStream,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = call(|| {
        let read_at = read_at.ok_or_else(|| Error::misuse("a read_at that is NULL"))?;
        let source = Source { read_at, context, length: file_bytes };
        let metadata = source.footer()?;
        let wanted = Wanted::of(&metadata, options)?;
        if wanted.options.keep_dictionaries {
            return Err(Error::option("keep_dictionaries", "a stream has one schema"));
        }
        let reader = BatchesMachine::new(&metadata, wanted)?;
        let schema = Arc::clone(reader.schema());
        let opened = Stream { source, reader, schema, failed: None };
        let made = reserve::section(|| FFI_ArrowArrayStream::new(Box::new(opened)));
        arguments::put(stream, reserve::kept(made)?)
    });
    answer(done, error)
}

/// The library's version: `0.1.0`. It ends with a NUL and is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_version() -> *const core::ffi::c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
