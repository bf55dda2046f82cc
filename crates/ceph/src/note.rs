//! What a call of `compress` leaves for the one after it: a note in the object, between the bytes that it wrote and the footer, which nothing
//! refers to.
//!
//! ```text
//! note     version (u8) · codec (i32) · level (i64) · checksum of the footer after it (u32) · stage (u8) · numbers of the stage
//! object   … │ note │ its length (u32) · its checksum (u32) · "MQN1" │ footer
//! ```

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Codec, Error, Result};
use marquetry_kernels::crc32::crc32;
use marquetry_parquet::format::{Compression, FileMetaData};

use crate::host::Host;
use crate::page::{Target, Written};

/// How a note ends: what it is, and the version of its encoding.
const MAGIC: [u8; 4] = *b"MQN1";
/// Length, checksum and magic.
const TAIL_BYTES: usize = 12;
/// Bytes of a note, at most: eight for each page. It is written by each call.
const NOTE_BYTES_MAX: usize = 1 << 20;
/// The level of a note without one.
const NO_LEVEL: i64 = i64::MIN;

/// How far a compression is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) target: Target,
    pub(crate) stage: Stage,
}

/// What is being done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stage {
    Pages(Pages),
    Move(Move),
    /// All is done, and the pages, which grew, stay where they are.
    Stays,
}

/// Pages are written after those of the object, which are all in use still.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Pages {
    /// Where the first of them is.
    pub(crate) start: u64,
    /// How many pages there are of each chunk, in the order of the row groups; the last one may have more.
    pub(crate) counts: Vec<u32>,
    pub(crate) written: Vec<Written>,
    /// Chunks that are complete.
    pub(crate) chunks: u32,
    /// Bytes of the chunk after them that are done, as the object has them.
    pub(crate) offset: u64,
    /// Bytes of Bloom filters and bounds of pages that were copied, after all pages.
    pub(crate) copied: u64,
}

/// The pages that are in use are moved to the object's beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move {
    /// Where they are.
    pub(crate) from: u64,
    pub(crate) length: u64,
    /// Bytes that were copied.
    pub(crate) done: u64,
}

impl Pages {
    /// Where the next byte goes.
    pub(crate) fn end(&self) -> u64 {
        let pages: u64 = self.written.iter().map(|page| u64::from(page.bytes)).sum();
        self.start.saturating_add(pages).saturating_add(self.copied)
    }
}

impl Note {
    /// The note before the footer, if it is one about that: and where it begins.
    pub(crate) fn find(
        host: &mut Host<'_>,
        metadata: &FileMetaData,
        footer: &[u8],
    ) -> Result<Option<(Note, u64)>> {
        let end = metadata.footer_start;
        let Some(tail_start) = end.checked_sub(u64_of(TAIL_BYTES)) else { return Ok(None) };
        let tail = host.read(&(tail_start..end))?;
        let [l0, l1, l2, l3, c0, c1, c2, c3, magic @ ..] = &tail[..] else { return Ok(None) };
        let length = usize_of_u32(u32::from_le_bytes([*l0, *l1, *l2, *l3]));
        if *magic != MAGIC || length > NOTE_BYTES_MAX {
            return Ok(None);
        }
        let Some(start) = tail_start.checked_sub(u64_of(length)) else { return Ok(None) };
        let bytes = host.read(&(start..tail_start))?;
        if crc32(0, &bytes) != u32::from_le_bytes([*c0, *c1, *c2, *c3]) {
            return Ok(None);
        }
        let Some((note, of_footer)) = Note::parse(&bytes) else { return Ok(None) };
        let is_whole = match &note.stage {
            Stage::Pages(pages) => pages.end() == start,
            Stage::Stays => true,
            Stage::Move(moved) => {
                moved.done <= moved.length && moved.from.saturating_add(moved.length) <= start
            }
        };
        Ok((is_whole && of_footer == crc32(0, footer)).then_some((note, start)))
    }

    /// Its bytes, with what ends it, before this footer.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` for too many pages.
    pub(crate) fn bytes(&self, footer: &[u8]) -> Result<Vec<u8>> {
        let mut bytes = vec![1];
        let codec = match self.target.compression {
            Compression::Codec(codec) => codec.number(),
            Compression::Uncompressed | Compression::Unknown(_) => 0,
        };
        bytes.extend_from_slice(&codec.to_le_bytes());
        bytes.extend_from_slice(&self.target.level.map_or(NO_LEVEL, i64::from).to_le_bytes());
        bytes.extend_from_slice(&crc32(0, footer).to_le_bytes());
        match &self.stage {
            Stage::Stays => bytes.push(3),
            Stage::Move(Move { from, length, done }) => {
                bytes.push(2);
                for number in [from, length, done] {
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
            }
            Stage::Pages(pages) => {
                bytes.push(1);
                for number in [pages.start, pages.offset, pages.copied] {
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
                for number in [pages.chunks, count(pages.counts.len())?, count(pages.written.len())?] {
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
                for number in &pages.counts {
                    bytes.extend_from_slice(&number.to_le_bytes());
                }
                for Written { bytes: page, growth } in &pages.written {
                    bytes.extend_from_slice(&page.to_le_bytes());
                    bytes.extend_from_slice(&growth.to_le_bytes());
                }
            }
        }
        if bytes.len() > NOTE_BYTES_MAX {
            return Err(Error::too_large("an object of so many pages, to be compressed"));
        }
        let (length, checksum) = (count(bytes.len())?, crc32(0, &bytes));
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes.extend_from_slice(&MAGIC);
        Ok(bytes)
    }

    fn parse(bytes: &[u8]) -> Option<(Note, u32)> {
        let mut rest = Rest(bytes);
        let [1] = rest.take::<1>()? else { return None };
        let compression = match i32::from_le_bytes(rest.take()?) {
            0 => Compression::Uncompressed,
            number => Compression::Codec(CODECS.into_iter().find(|codec| codec.number() == number)?),
        };
        let level = match i64::from_le_bytes(rest.take()?) {
            NO_LEVEL => None,
            level => Some(i32::try_from(level).ok()?),
        };
        let footer = u32::from_le_bytes(rest.take()?);
        let stage = match rest.take::<1>()? {
            [1] => {
                let [start, offset, copied] = [rest.u64()?, rest.u64()?, rest.u64()?];
                let [chunks, counts, written] = [rest.u32()?, rest.u32()?, rest.u32()?];
                // As many as there are bytes for, whatever it says.
                let counts = (0..counts).map(|_| rest.u32()).collect::<Option<Vec<u32>>>()?;
                let page = |rest: &mut Rest<'_>| {
                    let bytes = rest.u32()?;
                    Some(Written { bytes, growth: i32::from_le_bytes(rest.take()?) })
                };
                let written = (0..written).map(|_| page(&mut rest)).collect::<Option<Vec<Written>>>()?;
                let pages: u64 = counts.iter().map(|count| u64::from(*count)).sum();
                if pages != u64_of(written.len()) {
                    return None;
                }
                Stage::Pages(Pages { start, counts, written, chunks, offset, copied })
            }
            [2] => Stage::Move(Move { from: rest.u64()?, length: rest.u64()?, done: rest.u64()? }),
            [3] => Stage::Stays,
            _ => return None,
        };
        Some((Note { target: Target { compression, level }, stage }, footer)).filter(|_| rest.0.is_empty())
    }
}

/// All codecs.
const CODECS: [Codec; 7] =
    [Codec::Snappy, Codec::Gzip, Codec::Lzo, Codec::Brotli, Codec::Lz4, Codec::Zstd, Codec::Lz4Raw];

/// Bytes that are not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}

fn count(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::too_large("an object of so many pages, to be compressed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written() {
        let written = vec![Written { bytes: 70, growth: -1 }, Written { bytes: 9, growth: 2 }];
        let pages = Pages { start: 4000, counts: vec![2, 0], written, chunks: 1, offset: 17, copied: 3 };
        let moved = Move { from: 9000, length: 70, done: 7 };
        for stage in [Stage::Pages(pages), Stage::Move(moved), Stage::Stays] {
            for level in [None, Some(-7)] {
                let target = Target { compression: Compression::Codec(Codec::Zstd), level };
                let note = Note { target, stage: stage.clone() };
                let bytes = note.bytes(b"a footer").unwrap();
                let body = &bytes[..bytes.len() - TAIL_BYTES];
                assert_eq!(Note::parse(body), Some((note, crc32(0, b"a footer"))));
                for length in 0..body.len() {
                    assert_eq!(Note::parse(&body[..length]), None);
                }
            }
        }
    }
}
