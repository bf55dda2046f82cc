//! CompressionInfo.db: how Data.db is compressed, and where its chunks begin.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Codec, Error, Limit, Limits, Object, Release, Result, Segmented};

use super::elements::{ComponentReader, Elements, Going, Parser};
use super::version::Version;

/// What CompressionInfo.db holds (`CompressionMetadata.java`).
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct CompressionInfo {
    /// The compressor.
    pub compressor: Compressor,
    /// Its options, as they are stored, but for the [dictionary](CompressionInfo::dictionary).
    pub options: Vec<(String, String)>,
    /// The bytes that ScyllaDB's compressors with dictionaries refer back to.
    pub dictionary: Vec<u8>,
    dictionary_parts: u32,
    /// Bytes of a chunk, uncompressed; the last one has fewer.
    pub chunk_bytes: u32,
    /// A chunk of as many bytes or more is stored as it is. `None` in versions where none is.
    pub compressed_bytes_max: Option<u32>,
    /// Bytes of the data, uncompressed.
    pub data_bytes: u64,
    /// Where each chunk begins in Data.db. It is followed by its checksum.
    pub offsets: Segmented<u64>,
}

/// A compressor of chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compressor {
    /// `LZ4Compressor`: the uncompressed length in four bytes, little-endian, and a block.
    Lz4,
    /// `SnappyCompressor`: a raw block.
    Snappy,
    /// `DeflateCompressor`: a zlib stream.
    Deflate,
    /// `ZstdCompressor`: a frame.
    Zstd,
    /// `NoopCompressor`: bytes as they are, with checksums.
    #[default]
    Noop,
    /// ScyllaDB's `LZ4WithDictsCompressor` (by its documents: `sstable-compression-dicts.md`).
    Lz4WithDictionary,
    /// ScyllaDB's `ZstdWithDictsCompressor` (by its documents).
    ZstdWithDictionary,
}

const COMPRESSORS: &[(&str, Compressor)] = &[
    ("LZ4Compressor", Compressor::Lz4),
    ("SnappyCompressor", Compressor::Snappy),
    ("DeflateCompressor", Compressor::Deflate),
    ("ZstdCompressor", Compressor::Zstd),
    ("NoopCompressor", Compressor::Noop),
    ("LZ4WithDictsCompressor", Compressor::Lz4WithDictionary),
    ("ZstdWithDictsCompressor", Compressor::ZstdWithDictionary),
];

impl Compressor {
    /// The compressor of a class, with its package or without it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for one that is not known.
    pub fn parse(class: &str) -> Result<Compressor> {
        let name = class.rsplit('.').next().unwrap_or(class);
        match COMPRESSORS.iter().find(|(known, _)| *known == name) {
            Some((_, compressor)) => Ok(*compressor),
            None => Err(Error::unsupported(format!("data compressed by {class}"))),
        }
    }

    /// The name of its class.
    pub fn name(self) -> &'static str {
        COMPRESSORS.iter().find(|(_, known)| *known == self).map_or("", |(name, _)| name)
    }

    /// The codec of a chunk's bytes, after the length that LZ4 has before them. `None` if they are as they are.
    pub fn codec(self) -> Option<Codec> {
        match self {
            Compressor::Lz4 | Compressor::Lz4WithDictionary => Some(Codec::Lz4Raw),
            Compressor::Snappy => Some(Codec::Snappy),
            Compressor::Deflate => Some(Codec::Zlib),
            Compressor::Zstd | Compressor::ZstdWithDictionary => Some(Codec::Zstd),
            Compressor::Noop => None,
        }
    }
}

/// The options that a dictionary is stored in, in parts: `.dictionary.00000000` and so on.
const DICTIONARY: &[u8] = b".dictionary.";
/// The option of ScyllaDB that says which chunks are stored as they are (by its documents: `sstable-raw-chunks.md`).
const SAVING_PERCENT: &str = "min_compression_saving_percent";
/// The most options: Cassandra's compressors have two or three; a dictionary of a mebibyte takes 17.
const OPTIONS_MAX: u32 = 1024;

impl CompressionInfo {
    /// The number of chunks, with those at the end that are empty: compaction writes one.
    pub fn chunks(&self) -> usize {
        self.offsets.len()
    }

    /// The bytes of a chunk in Data.db, which has `file_bytes`; its checksum of four bytes follows them.
    pub fn chunk(&self, number: usize, file_bytes: u64) -> Option<Range<u64>> {
        let start = *self.offsets.get(number)?;
        let next = self.offsets.get(number + 1).copied().unwrap_or(file_bytes);
        Some(start..next.checked_sub(CHECKSUM_BYTES)?)
    }

    /// The bytes of the data, uncompressed, that a chunk holds.
    pub fn chunk_data(&self, number: usize) -> Range<u64> {
        let start = u64_of(number).saturating_mul(u64::from(self.chunk_bytes));
        let end = start.saturating_add(u64::from(self.chunk_bytes));
        start.min(self.data_bytes)..end.min(self.data_bytes)
    }

    /// The option of ScyllaDB as a length of chunks, if it is there.
    fn raw_bytes_min(&self, elements: &Elements) -> Result<Option<u32>> {
        let Some((_, percent)) = self.options.iter().find(|(name, _)| name == SAVING_PERCENT) else {
            return Ok(None);
        };
        match percent.parse::<u8>() {
            Ok(0) => Ok(None),
            Ok(percent) if percent < 100 => {
                let bytes = (u64::from(self.chunk_bytes) * u64::from(100 - percent)).div_ceil(100);
                Ok(u32::try_from(bytes).ok())
            }
            _ => {
                let message = format!("{SAVING_PERCENT} is {percent}");
                Err(elements.fault(Error::corrupt(message).at_offset(elements.at())))
            }
        }
    }

    /// Whether a chunk of so many bytes in the file is stored as it is.
    pub fn is_raw(&self, file_bytes: u64) -> bool {
        self.compressor == Compressor::Noop
            || self.compressed_bytes_max.is_some_and(|most| file_bytes >= u64::from(most))
    }
}

/// Bytes of the checksum after a chunk.
pub const CHECKSUM_BYTES: u64 = 4;
/// The most empty chunks at the end of a file. Cassandra writes one when it ends a file twice, as compaction does.
pub(super) const EMPTY_CHUNKS_MAX: usize = 16;

/// Reads CompressionInfo.db.
pub type CompressionInfoReader = ComponentReader<CompressionInfoParser>;

/// What a [`CompressionInfoReader`] has read.
#[derive(Debug)]
pub struct CompressionInfoParser {
    version: Version,
    expects: Expects,
    made: CompressionInfo,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    Compressor,
    Options { left: u32 },
    Lengths,
    Offsets { left: u32 },
}

impl CompressionInfoReader {
    /// A reader of the CompressionInfo.db that `object` is, of an SSTable of this version.
    pub fn new(object: Object, version: Version, limits: Limits) -> CompressionInfoReader {
        let limit = (Limit::FooterBytes, limits.footer_bytes);
        let elements = Elements::new(object, "CompressionInfo.db", limit, &limits);
        let parser =
            CompressionInfoParser { version, expects: Expects::Compressor, made: CompressionInfo::default() };
        ComponentReader::of(elements, parser)
    }
}

impl Parser for CompressionInfoParser {
    type Product = CompressionInfo;

    fn next(
        &mut self,
        elements: &mut Elements,
        budget: &mut Budget<'_>,
    ) -> Result<Going<Option<CompressionInfo>>> {
        if let Expects::Offsets { left: 0 } = self.expects {
            return Ok(Going::Done(Some(core::mem::take(&mut self.made))));
        }
        Ok(self.next_element(elements, budget)?.map(|expects| {
            self.expects = expects;
            None
        }))
    }
}

impl CompressionInfoParser {
    /// Reads one element, and says what comes next.
    fn next_element(&mut self, elements: &mut Elements, budget: &mut Budget<'_>) -> Result<Going<Expects>> {
        let CompressionInfoParser { version, made, .. } = self;
        let has_most = version.has_max_compressed_length();
        match self.expects {
            Expects::Compressor => {
                let read = elements.next(budget, |cursor| {
                    let compressor = Compressor::parse(cursor.short_text()?)?;
                    let options = cursor.count()?;
                    if options > OPTIONS_MAX {
                        return Err(Error::corrupt(format!("{options} options of a compressor")).into());
                    }
                    Ok((compressor, options))
                })?;
                Ok(match read {
                    Going::Done((compressor, left)) => {
                        made.compressor = compressor;
                        Going::Done(if left == 0 { Expects::Lengths } else { Expects::Options { left } })
                    }
                    Going::Need(demand) => Going::Need(demand),
                })
            }
            Expects::Options { left } => {
                // Parts of a dictionary are bytes: they are kept apart, in their order.
                let read = elements.next(budget, |cursor| {
                    let (key, value) = (cursor.short_bytes()?, cursor.short_bytes()?);
                    Ok((key.to_vec(), value.to_vec()))
                })?;
                let (key, value) = match read {
                    Going::Done(option) => option,
                    Going::Need(demand) => return Ok(Going::Need(demand)),
                };
                if let Some(number) = key.strip_prefix(DICTIONARY) {
                    // Parts are in their order, because the servers' maps are.
                    let number = core::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
                    if number != Some(made.dictionary_parts) {
                        let at = elements.at();
                        return Err(elements.corrupt("a dictionary whose parts are not in their order", at));
                    }
                    made.dictionary_parts += 1;
                    made.dictionary.extend(value);
                } else {
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).to_string();
                    made.options.push((text(&key), text(&value)));
                }
                Ok(Going::Done(if left == 1 {
                    Expects::Lengths
                } else {
                    Expects::Options { left: left - 1 }
                }))
            }
            Expects::Lengths => {
                let read = elements.next(budget, |cursor| {
                    let chunk_bytes = cursor.count()?;
                    let most = if has_most { Some(cursor.count()?) } else { None };
                    Ok((chunk_bytes, most, cursor.u64()?, cursor.count()?))
                })?;
                let (chunk_bytes, most, data_bytes, chunks) = match read {
                    Going::Done(lengths) => lengths,
                    Going::Need(demand) => return Ok(Going::Need(demand)),
                };
                (made.chunk_bytes, made.compressed_bytes_max, made.data_bytes) =
                    (chunk_bytes, most, data_bytes);
                self.check_lengths(elements, chunks)?;
                if most.is_none() {
                    self.made.compressed_bytes_max = self.made.raw_bytes_min(elements)?;
                }
                Ok(Going::Done(Expects::Offsets { left: chunks }))
            }
            Expects::Offsets { left } => {
                let read = elements.next(budget, |cursor| cursor.u64())?;
                Ok(match read {
                    Going::Done(offset) => {
                        let least = made.offsets.last().map_or(0, |last| last.saturating_add(CHECKSUM_BYTES));
                        let is_first = made.offsets.is_empty();
                        if offset < least || (is_first && offset != 0) {
                            let at = elements.at() - 8;
                            return Err(elements.corrupt("chunks that are not one after the other", at));
                        }
                        made.offsets.push(offset);
                        Going::Done(Expects::Offsets { left: left - 1 })
                    }
                    Going::Need(demand) => Going::Need(demand),
                })
            }
        }
    }

    fn check_lengths(&self, elements: &Elements, chunks: u32) -> Result<()> {
        let (made, at) = (&self.made, elements.at());
        // Compressors of Cassandra take powers of two; only zero would make no sense at all.
        if made.chunk_bytes == 0 {
            return Err(elements.corrupt("chunks of no bytes", at));
        }
        let least = made.data_bytes.div_ceil(u64::from(made.chunk_bytes));
        if !(least..=least + u64_of(EMPTY_CHUNKS_MAX)).contains(&u64::from(chunks)) {
            let message = format!(
                "{chunks} chunks of {} bytes for {} bytes of data",
                made.chunk_bytes, made.data_bytes
            );
            return Err(elements.fault(Error::corrupt(message).at_offset(at)));
        }
        if elements.left() != 8 * u64_of(usize_of_u32(chunks)) {
            return Err(elements.corrupt("another number of chunks than there is room for", at));
        }
        Ok(())
    }
}

impl Release for CompressionInfo {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.offsets.release(budget)
    }
}

impl Release for CompressionInfoParser {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.made.release(budget)
    }
}
