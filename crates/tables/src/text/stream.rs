//! The bytes of a text: of a file or of anything that can be read, decompressed.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read};
use std::path::Path;

use bzip2::bufread::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Pool, Result};
use marquetry_io::ObjectVersion;
use marquetry_io::blocking::FileStream;
use marquetry_io::store::{ObjectStream, Store};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

use super::compression::{Compression, MAGIC_BYTES_MAX};
use super::prepare::{Prepared, Preparing};
use crate::bytes_read::CountedReader;
use crate::subject::is_stdin;
use crate::{BytesRead, Cancel};

/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;
/// Bytes of compressed text that are read at a time.
const COMPRESSED_BYTES: usize = 128 << 10;

pub(super) type Reader = Box<dyn Read + Send>;

/// A text that is read from its start to its end.
pub(super) struct Stream {
    name: String,
    reader: Reader,
    cancel: Cancel,
    pool: Pool<u8>,
    is_over: bool,
    /// Of a file that can be read again.
    version: Option<ObjectVersion>,
    /// What was read, of what can be read only once.
    kept: Option<Vec<Bytes>>,
    /// Of that, what is read again.
    again: VecDeque<Bytes>,
    /// What is done with the bytes.
    prepared: Option<Box<Prepared>>,
}

impl Stream {
    /// Opens what a store has at a path: a file, a pipe, standard input; `name` is what errors call it. Reading ends early
    /// if it is cancelled. The bytes are counted before they are decompressed.
    ///
    /// # Errors
    ///
    /// `Io` where it cannot be read; `Misuse` for what can be read only once, and is being read.
    pub(super) fn open(
        store: &dyn Store,
        path: &Path,
        compression: Compression,
        name: &str,
        (cancel, bytes_read): (&Cancel, &BytesRead),
    ) -> Result<Stream> {
        let asked = cancel.clone();
        let is_cancelled = Box::new(move || asked.is_set());
        let ObjectStream { reader, version } = match is_stdin(path) {
            true => ObjectStream { reader: Box::new(FileStream::stdin(is_cancelled)?), version: None },
            false => store.stream(path, is_cancelled)?,
        };
        let reader = Box::new(CountedReader { reader, bytes_read: bytes_read.clone() });
        let stream = Stream::once(name, reader, compression, cancel)?;
        Ok(match version {
            Some(_) => Stream { version, kept: None, ..stream },
            None => stream,
        })
    }

    /// What can be read only once: what is read is kept, until it is read [again](Stream::again).
    ///
    /// # Errors
    ///
    /// `Io` where it cannot be read.
    pub(super) fn once(
        name: &str,
        mut reader: Reader,
        compression: Compression,
        cancel: &Cancel,
    ) -> Result<Stream> {
        let (name, cancel) = (name.to_string(), cancel.clone());
        let mut compression = compression;
        if compression == Compression::None {
            let start = start(&mut reader).map_err(|error| not_read(&name, &cancel, error))?;
            compression = Compression::by_start(&start);
            reader = Box::new(io::Cursor::new(start).chain(reader));
        }
        let reader = decompressing(compression, reader)?;
        let (pool, again) = (Pool::new(), VecDeque::new());
        Ok(Stream {
            name,
            reader,
            cancel,
            pool,
            is_over: false,
            version: None,
            kept: Some(Vec::new()),
            again,
            prepared: None,
        })
    }

    /// The same text, prepared.
    pub(super) fn prepared(self, preparing: &Preparing) -> Stream {
        let prepared = (!preparing.is_nothing()).then(|| Box::new(Prepared::new(preparing)));
        Stream { prepared, ..self }
    }

    /// What the file was when it was opened. `None` for what can be read only once.
    pub(super) fn version(&self) -> Option<&ObjectVersion> {
        self.version.as_ref()
    }

    /// Reads what was read again, and goes on.
    pub(super) fn again(mut self) -> Stream {
        self.again = self.kept.take().unwrap_or_default().into();
        self
    }

    /// The next bytes. `None` at the end.
    ///
    /// # Errors
    ///
    /// `Io` where it cannot be read on.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>> {
        if let Some(bytes) = self.again.pop_front() {
            return Ok(Some(bytes));
        }
        let next = match &mut self.prepared {
            None => self.read()?,
            Some(_) => self.read_prepared()?,
        };
        if let (Some(bytes), Some(kept)) = (&next, &mut self.kept) {
            kept.push(bytes.clone());
        }
        Ok(next)
    }

    /// The next bytes that are left, prepared.
    fn read_prepared(&mut self) -> Result<Option<Bytes>> {
        loop {
            let read = self.read()?;
            let Some(prepared) = &mut self.prepared else { return Ok(read) };
            match prepared.next(read.as_deref())? {
                Some(bytes) if bytes.is_empty() => {}
                next => return Ok(next.map(Bytes::from)),
            }
        }
    }

    fn read(&mut self) -> Result<Option<Bytes>> {
        if self.is_over {
            return Ok(None);
        }
        let mut buffer = self.pool.take(READ_BYTES)?;
        // What comes in small parts, as from a pipe, is gathered: each piece keeps all of its buffer.
        let mut length = 0;
        while length < READ_BYTES {
            match self.reader.read(&mut buffer[length..READ_BYTES]) {
                Ok(0) => {
                    self.is_over = true;
                    break;
                }
                Ok(read) => length += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(not_read(&self.name, &self.cancel, error)),
            }
        }
        let bytes = Bytes::from_owner(self.pool.share(buffer, length));
        Ok((length > 0).then_some(bytes))
    }
}

/// What a reader's bytes are when they are decompressed.
pub(super) fn decompressing(compression: Compression, reader: Reader) -> Result<Reader> {
    let buffered = |reader| BufReader::with_capacity(COMPRESSED_BYTES, reader);
    Ok(match compression {
        Compression::Gzip => Box::new(Gzip(MultiGzDecoder::new(buffered(reader)))),
        Compression::Bzip2 => Box::new(MultiBzDecoder::new(buffered(reader))),
        Compression::Zstd => Box::new(Zstd::new(reader)?),
        Compression::None => reader,
    })
}

/// The first bytes, of which compressed text is known.
fn start(reader: &mut Reader) -> io::Result<Vec<u8>> {
    let mut start = Vec::with_capacity(MAGIC_BYTES_MAX);
    reader.take(u64_of(MAGIC_BYTES_MAX)).read_to_end(&mut start)?;
    Ok(start)
}

/// The error for a read that failed, maybe because it was cancelled.
fn not_read(name: &str, cancel: &Cancel, error: io::Error) -> Error {
    cancel.check().err().unwrap_or_else(|| marquetry_io::failed("read", name, error))
}

/// Decompresses members of gzip, one after the other.
struct Gzip(MultiGzDecoder<BufReader<Reader>>);

impl Read for Gzip {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out).map_err(|error| {
            let what = match error.kind() {
                io::ErrorKind::UnexpectedEof => "the gzip data are cut off",
                // The decoder does not tell a wrong header from a wrong checksum, but in words.
                io::ErrorKind::InvalidInput => {
                    return io::Error::new(error.kind(), format!("not gzip data, or damaged: {error}"));
                }
                _ => return error,
            };
            io::Error::new(error.kind(), what)
        })
    }
}

/// Decompresses frames of Zstandard, one after the other.
struct Zstd {
    reader: Reader,
    context: DCtx<'static>,
    compressed: Vec<u8>,
    at: usize,
    /// The last frame has ended.
    is_between: bool,
}

impl Zstd {
    fn new(reader: Reader) -> Result<Zstd> {
        let mut context = DCtx::try_create().ok_or_else(|| Error::out_of_memory(0))?;
        context.init().map_err(|_| Error::internal("zstd does not begin"))?;
        Ok(Zstd { reader, context, compressed: Vec::new(), at: 0, is_between: true })
    }
}

impl Read for Zstd {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.at == self.compressed.len() {
                self.compressed.resize(COMPRESSED_BYTES, 0);
                let read = self.reader.read(&mut self.compressed);
                self.compressed.truncate(*read.as_ref().unwrap_or(&0));
                self.at = 0;
                read?;
            }
            let is_end = self.compressed.is_empty();
            if is_end && self.is_between {
                return Ok(0);
            }
            let mut input = InBuffer::around(&self.compressed);
            input.set_pos(self.at);
            let mut output = OutBuffer::around(&mut *out);
            let hint = self.context.decompress_stream(&mut output, &mut input).map_err(|code| {
                io::Error::new(io::ErrorKind::InvalidData, zstd_safe::get_error_name(code).to_string())
            })?;
            self.at = input.pos();
            self.is_between = hint == 0;
            if output.pos() > 0 {
                return Ok(output.pos());
            }
            if is_end && !self.is_between {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the zstd frame is cut off"));
            }
        }
    }
}
