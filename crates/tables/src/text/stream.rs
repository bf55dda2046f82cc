//! The bytes of a text: of a file or of anything that can be read, decompressed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use marquetry_base::{Bytes, Error, Pool, Result};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

use super::compression::Compression;

/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;
/// Bytes of compressed text that are read at a time.
const COMPRESSED_BYTES: usize = 128 << 10;

/// A text that is read from its start to its end.
pub(super) struct Stream {
    name: String,
    reader: Box<dyn Read + Send>,
    pool: Pool<u8>,
    /// What was read, of what can be read only once.
    kept: Option<Vec<Bytes>>,
    /// Of that, what is read again.
    again: VecDeque<Bytes>,
}

/// Whether a path means standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl Stream {
    /// Opens a file that is compressed in this way.
    ///
    /// # Errors
    ///
    /// `Io` where it cannot be read.
    pub(super) fn open(path: &Path, compression: Compression, name: &str) -> Result<Stream> {
        let cannot_read = |error| marquetry_io::failed("read", name, error);
        let file = File::open(path).map_err(cannot_read)?;
        if file.metadata().map_err(cannot_read)?.is_dir() {
            return Err(Error::io("a directory, where a file is needed"));
        }
        Ok(match compression {
            Compression::Gzip => {
                let reader = BufReader::with_capacity(COMPRESSED_BYTES, file);
                Stream::new(name, Box::new(Gzip(MultiGzDecoder::new(reader))))
            }
            Compression::Zstd => Stream::new(name, Box::new(Zstd::new(file)?)),
            Compression::None => Stream::new(name, Box::new(file)),
        })
    }

    /// What this has; `name` is what errors call it.
    pub(super) fn new(name: &str, reader: Box<dyn Read + Send>) -> Stream {
        Stream { name: name.to_string(), reader, pool: Pool::new(), kept: None, again: VecDeque::new() }
    }

    /// The same, of what can be read only once: what is read is kept, until it is read [again](Stream::again).
    pub(super) fn once(name: &str, reader: Box<dyn Read + Send>) -> Stream {
        Stream { kept: Some(Vec::new()), ..Stream::new(name, reader) }
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
        let mut buffer = self.pool.take(READ_BYTES)?;
        let length = loop {
            match self.reader.read(&mut buffer[..READ_BYTES]) {
                Ok(length) => break length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(marquetry_io::failed("read", &self.name, error)),
            }
        };
        let bytes = Bytes::from_owner(self.pool.share(buffer, length));
        if length == 0 {
            return Ok(None);
        }
        if let Some(kept) = &mut self.kept {
            kept.push(bytes.clone());
        }
        Ok(Some(bytes))
    }
}

/// Decompresses members of gzip, one after the other.
struct Gzip(MultiGzDecoder<BufReader<File>>);

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
    file: File,
    context: DCtx<'static>,
    compressed: Vec<u8>,
    at: usize,
    /// The last frame has ended.
    is_between: bool,
}

impl Zstd {
    fn new(file: File) -> Result<Zstd> {
        let mut context = DCtx::try_create().ok_or_else(|| Error::out_of_memory(0))?;
        context.init().map_err(|_| Error::internal("zstd does not begin"))?;
        Ok(Zstd { file, context, compressed: Vec::new(), at: 0, is_between: true })
    }
}

impl Read for Zstd {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.at == self.compressed.len() {
                self.compressed.resize(COMPRESSED_BYTES, 0);
                let read = self.file.read(&mut self.compressed);
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
