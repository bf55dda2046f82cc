//! The bytes of a text file, in pieces: of files, of standard input, unpacked where the name says that they are packed.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Limits, Pool, Result};
use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Bytes of a piece: what stays in a core's cache, with what is made of it.
const PIECE_BYTES: usize = 512 << 10;
/// Bytes of a piece for each column of a wide table, and of such a piece at most: so that some rows of it are worked on together.
const COLUMN_BYTES: usize = 512;
const WIDE_PIECE_BYTES_MAX: usize = 32 << 20;
/// Bytes of packed text that are read at a time.
const PACKED_BYTES: usize = 128 << 10;

/// A text that is read from its start to its end.
pub(super) struct Stream {
    reader: Box<dyn Read + Send>,
    name: String,
    /// Bytes that were handed out, but for what came back.
    offset: u64,
    is_ended: bool,
    piece_bytes: usize,
    pool: Pool<u8>,
    limits: Limits,
    /// What was read, of what can be read only once.
    kept: Option<Vec<Bytes>>,
}

/// A piece of a text.
pub(super) struct Piece {
    pub(super) bytes: Bytes,
    /// Where it begins in the text.
    pub(super) offset: u64,
    /// Nothing follows it.
    pub(super) is_last: bool,
}

/// Whether a path means standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl Stream {
    /// Opens a file, or standard input.
    ///
    /// # Errors
    ///
    /// `Source` where it cannot be read.
    pub(super) fn open(path: &Path, name: &str, limits: Limits) -> Result<Stream> {
        let failed = |error: io::Error| cannot_read(name, error);
        let reader: Box<dyn Read + Send> = if is_stdin(path) {
            Box::new(io::stdin())
        } else {
            let file = File::open(path).map_err(failed)?;
            if file.metadata().map_err(failed)?.is_dir() {
                let message = "a directory, where a file is needed";
                return Err(Error::io(message).at(|place| place.object = Some(name.to_owned())));
            }
            let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
            match ending.as_deref().and_then(|ending| ending.to_str()) {
                Some("gz") => {
                    Box::new(Gzip(MultiGzDecoder::new(BufReader::with_capacity(PACKED_BYTES, file))))
                }
                Some("zst") => Box::new(Zstd::new(file)?),
                _ => Box::new(file),
            }
        };
        let (name, pool) = (name.to_string(), Pool::new());
        let kept = is_stdin(path).then(Vec::new);
        Ok(Stream { reader, name, offset: 0, is_ended: false, piece_bytes: PIECE_BYTES, pool, limits, kept })
    }

    /// Reads all that was read again, and goes on.
    pub(super) fn again(mut self) -> Stream {
        let kept = self.kept.take().unwrap_or_default();
        let before = Kept { pieces: kept.into() };
        Stream { reader: Box::new(before.chain(self.reader)), offset: 0, is_ended: false, ..self }
    }

    /// Reads pieces that have some rows of so many columns.
    pub(super) fn with_columns(mut self, columns: usize) -> Stream {
        self.piece_bytes = columns.saturating_mul(COLUMN_BYTES).clamp(PIECE_BYTES, WIDE_PIECE_BYTES_MAX);
        self
    }

    /// The next piece, which begins with the rest of the one before: what was no whole row.
    ///
    /// # Errors
    ///
    /// `Source` where it cannot be read on; `LimitExceeded` for a rest that is longer than a value may be.
    pub(super) fn next(&mut self, rest: &[u8]) -> Result<Piece> {
        if u64_of(rest.len()) > self.limits.value_bytes {
            let most = self.limits.value_bytes;
            return Err(Error::new(
                marquetry_base::ErrorKind::LimitExceeded,
                format!("a row of more than {most} bytes (is a quote not closed, or a line end missing?)"),
            ));
        }
        let length = self.piece_bytes.max(rest.len().saturating_mul(2));
        let mut bytes = self.pool.take_memory(length)?;
        bytes.clear();
        bytes.extend_from_slice(rest);
        let wanted = length - rest.len();
        let offset = self.offset - u64_of(rest.len());
        if !self.is_ended {
            let before = bytes.len();
            let read = (&mut self.reader).take(u64_of(wanted)).read_to_end(&mut bytes);
            let read = read.map_err(|error| cannot_read(&self.name, error))?;
            self.is_ended = read < wanted;
            self.offset += u64_of(read);
            if let Some(kept) = &mut self.kept {
                kept.push(Bytes::copy_from_slice(&bytes[before..]));
            }
        }
        let length = bytes.len();
        // Rows keep the memory, and give it back.
        let bytes = Bytes::from_owner(self.pool.share(bytes, length));
        Ok(Piece { bytes, offset, is_last: self.is_ended })
    }
}

fn cannot_read(name: &str, error: io::Error) -> Error {
    marquetry_io::failed("read", name, error)
}

/// Pieces that are read again.
struct Kept {
    pieces: VecDeque<Bytes>,
}

impl Read for Kept {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(first) = self.pieces.front_mut() else { return Ok(0) };
        let part = first.split_to(first.len().min(out.len()));
        out[..part.len()].copy_from_slice(&part);
        if first.is_empty() {
            self.pieces.pop_front();
        }
        Ok(part.len())
    }
}

/// Unpacks members of gzip, one after the other.
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

/// Unpacks frames of Zstandard, one after the other.
struct Zstd {
    file: File,
    context: DCtx<'static>,
    packed: Vec<u8>,
    at: usize,
    /// The last frame has ended.
    is_between: bool,
}

impl Zstd {
    fn new(file: File) -> Result<Zstd> {
        let mut context = DCtx::try_create().ok_or_else(|| Error::out_of_memory(0))?;
        context.init().map_err(|_| Error::internal("zstd does not begin"))?;
        Ok(Zstd { file, context, packed: Vec::new(), at: 0, is_between: true })
    }
}

impl Read for Zstd {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.at == self.packed.len() {
                self.packed.resize(PACKED_BYTES, 0);
                let read = self.file.read(&mut self.packed)?;
                self.packed.truncate(read);
                self.at = 0;
            }
            let is_end = self.packed.is_empty();
            if is_end && self.is_between {
                return Ok(0);
            }
            let mut input = InBuffer::around(&self.packed);
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
