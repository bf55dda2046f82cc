//! Compressed text: which names and first bytes mean it, and the writer that makes it.

use std::io::{self, Write};
use std::path::Path;

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

/// How the bytes of a text file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Gzip,
    Bzip2,
    Zstd,
}

impl Compression {
    /// By the ending of a name: `.gz`, `.bz2`, `.zst`, in any case.
    pub(super) fn by_name(path: &Path) -> Compression {
        let ending = path.extension().map(|ending| ending.to_ascii_lowercase());
        match ending.as_deref().and_then(|ending| ending.to_str()) {
            Some("gz") => Compression::Gzip,
            Some("bz2") => Compression::Bzip2,
            Some("zst") => Compression::Zstd,
            _ => Compression::None,
        }
    }

    /// By the first bytes of a text. No text in UTF-8 begins so, but for bzip2's: that a text begins with `BZh91` and then
    /// goes on like this is left to chance.
    pub(super) fn by_start(start: &[u8]) -> Compression {
        match start {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => Compression::Bzip2,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }
}

/// The most bytes of which a compression is known.
pub(super) const MAGIC_BYTES_MAX: usize = 10;

/// The levels that the tools `gzip` and `zstd` have by default.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// Compresses what is written to it.
pub(super) enum Compressor<W: Write> {
    None(W),
    Gzip(Even<GzEncoder<W>>),
    Bzip2(Even<BzEncoder<W>>),
    Zstd(Even<Zstd<W>>),
}

impl<W: Write> Compressor<W> {
    /// # Errors
    ///
    /// If there is no memory for a compressor.
    pub(super) fn new(compression: Compression, to: W) -> io::Result<Compressor<W>> {
        Ok(match compression {
            Compression::None => Compressor::None(to),
            Compression::Gzip => {
                Compressor::Gzip(Even::new(GzEncoder::new(to, flate2::Compression::new(GZIP_LEVEL))))
            }
            Compression::Bzip2 => {
                Compressor::Bzip2(Even::new(BzEncoder::new(to, bzip2::Compression::best())))
            }
            Compression::Zstd => Compressor::Zstd(Even::new(Zstd::new(to)?)),
        })
    }

    /// Writes the end of the compressed data, and returns what it was written to.
    ///
    /// # Errors
    ///
    /// The writer's.
    pub(super) fn finish(self) -> io::Result<W> {
        match self {
            Compressor::None(to) => Ok(to),
            Compressor::Gzip(encoder) => encoder.into_inner()?.finish(),
            Compressor::Bzip2(encoder) => encoder.into_inner()?.finish(),
            Compressor::Zstd(encoder) => encoder.into_inner()?.finish(),
        }
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match self {
            Compressor::None(to) => to.write(text),
            Compressor::Gzip(encoder) => encoder.write(text),
            Compressor::Bzip2(encoder) => encoder.write(text),
            Compressor::Zstd(encoder) => encoder.write(text),
        }
    }

    /// Compressors keep what they hold: ending a block early would make the file larger.
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Compressor::None(to) => to.flush(),
            Compressor::Gzip(_) | Compressor::Bzip2(_) | Compressor::Zstd(_) => Ok(()),
        }
    }
}

/// Writes in pieces of one length, whatever the lengths of what is written to it: what a compressor makes of a text depends
/// on them.
pub(super) struct Even<W> {
    to: W,
    piece: Vec<u8>,
}

/// The length of a piece.
const PIECE_BYTES: usize = 64 << 10;

impl<W: Write> Even<W> {
    fn new(to: W) -> Even<W> {
        Even { to, piece: Vec::with_capacity(PIECE_BYTES) }
    }

    /// Writes the last piece, and returns what it was written to.
    fn into_inner(mut self) -> io::Result<W> {
        self.to.write_all(&self.piece)?;
        Ok(self.to)
    }
}

impl<W: Write> Write for Even<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let taken = text.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&text[..taken]);
        if self.piece.len() == PIECE_BYTES {
            self.to.write_all(&self.piece)?;
            self.piece.clear();
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One frame of Zstandard, with a checksum.
pub(super) struct Zstd<W: Write> {
    to: W,
    context: CCtx<'static>,
    compressed: Vec<u8>,
}

impl<W: Write> Zstd<W> {
    fn new(to: W) -> io::Result<Zstd<W>> {
        let mut context = CCtx::try_create().ok_or(io::ErrorKind::OutOfMemory)?;
        for parameter in [CParameter::CompressionLevel(ZSTD_LEVEL), CParameter::ChecksumFlag(true)] {
            context.set_parameter(parameter).map_err(failed)?;
        }
        let compressed = vec![0; CCtx::out_size()];
        Ok(Zstd { to, context, compressed })
    }

    fn finish(mut self) -> io::Result<W> {
        loop {
            let mut output = OutBuffer::around(&mut self.compressed[..]);
            let left = self.context.end_stream(&mut output).map_err(failed)?;
            self.to.write_all(output.as_slice())?;
            if left == 0 {
                return Ok(self.to);
            }
        }
    }
}

impl<W: Write> Write for Zstd<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut input = InBuffer::around(text);
        while input.pos() < text.len() {
            let mut output = OutBuffer::around(&mut self.compressed[..]);
            self.context.compress_stream(&mut output, &mut input).map_err(failed)?;
            self.to.write_all(output.as_slice())?;
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

fn failed(code: zstd_safe::ErrorCode) -> io::Error {
    io::Error::other(zstd_safe::get_error_name(code))
}
