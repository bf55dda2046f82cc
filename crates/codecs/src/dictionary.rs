//! Pages that refer to a dictionary: bytes that precede each page, as it were.
//!
//! ScyllaDB compresses the chunks of SSTables with them. LZ4 takes the last 64 KiB of a dictionary as they are. ZSTD takes one that
//! was trained, with its tables, or any other bytes; the library knows which, and does all of it.

use marquetry_base::{Budget, Codec, Decompressor, Error, Limit, Price, Progress, Result, Status};

use crate::lz4::{HISTORY_BYTES, Lz4Raw};
use crate::pieces::Pieces;

/// The longest dictionary, which is copied in one go. ScyllaDB's have some 100 KiB.
const DICTIONARY_BYTES_MAX: usize = 1 << 20;

/// Refuses a dictionary that is too long.
pub(crate) fn check_length(codec: Codec, dictionary: &[u8]) -> Result<()> {
    if dictionary.len() > DICTIONARY_BYTES_MAX {
        let (name, bytes) = (codec.name(), dictionary.len());
        return Err(Error::limit(
            Limit::DictionaryBytes,
            format!("a dictionary of {bytes} bytes for {name}"),
        ));
    }
    Ok(())
}

/// The decompressor of LZ4 blocks that refer to a dictionary.
///
/// A match refers to bytes that are just before others in memory, so pages are decoded into a buffer of its own, which begins with the
/// dictionary, and copied from there.
#[derive(Debug)]
pub(crate) struct Lz4WithDictionary {
    inner: Pieces<Lz4Raw>,
    dictionary: Vec<u8>,
    /// What matches may refer to, and room.
    buffer: Vec<u8>,
    /// The end of what was produced, and of what the host has been given of it.
    at: usize,
    given: usize,
    is_over: bool,
}

/// Room in the buffer, beside the bytes that matches refer to.
const ROOM_BYTES: usize = 64 << 10;

/// The price of copying a byte.
const GIVE_PRICE: Price = Price::per_kib(150);

impl Lz4WithDictionary {
    pub(crate) fn new(dictionary: &[u8]) -> Result<Lz4WithDictionary> {
        let dictionary = &dictionary[dictionary.len().saturating_sub(HISTORY_BYTES)..];
        let mut buffer = Vec::new();
        let bytes = HISTORY_BYTES + ROOM_BYTES;
        buffer.try_reserve_exact(bytes).map_err(|_| Error::out_of_memory(bytes))?;
        buffer.resize(bytes, 0);
        Ok(Lz4WithDictionary {
            inner: Pieces::new(Lz4Raw::after(dictionary.len())),
            dictionary: dictionary.to_vec(),
            buffer,
            at: 0,
            given: 0,
            is_over: false,
        })
    }

    /// Copies what was produced to the host's room; returns how many bytes.
    fn give(&mut self, output: &mut [u8], budget: &mut Budget<'_>) -> usize {
        let bytes = output.len().min(self.at - self.given);
        if bytes == 0 {
            // (Nothing is charged: who has spent something must have done something.)
            return 0;
        }
        output[..bytes].copy_from_slice(&self.buffer[self.given..self.given + bytes]);
        budget.charge(GIVE_PRICE, bytes, 0);
        self.given += bytes;
        bytes
    }
}

impl Decompressor for Lz4WithDictionary {
    fn start(&mut self, compressed: usize, uncompressed: usize, _whole: bool) -> Result<()> {
        // (At the end of what matches may refer to, so that the buffer is moved as often as any other.)
        (self.at, self.given, self.is_over) = (0, 0, false);
        self.inner.start(compressed, uncompressed, false)
    }

    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        history: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        if history > output.len() {
            return Err(Error::misuse("a decompressor's output is shorter than what it produced before"));
        }
        let (mut consumed, mut produced) = (0, 0);
        let status = loop {
            produced += self.give(&mut output[history + produced..], budget);
            if self.given < self.at {
                break Status::NeedRoom;
            }
            if self.is_over {
                break Status::End;
            }
            if budget.is_spent() && budget.spent() > 0 && consumed + produced > 0 {
                break Status::Yield;
            }
            if self.at == 0 {
                // A page begins.
                let bytes = self.dictionary.len();
                self.buffer[..bytes].copy_from_slice(&self.dictionary);
                budget.charge(GIVE_PRICE, bytes, 1);
                (self.at, self.given) = (bytes, bytes);
            } else if self.at == self.buffer.len() {
                self.buffer.copy_within(self.at - HISTORY_BYTES.., 0);
                budget.charge(GIVE_PRICE, HISTORY_BYTES, 1);
                (self.at, self.given) = (HISTORY_BYTES, HISTORY_BYTES);
            }
            let progress = self.inner.step(&input[consumed..], last, &mut self.buffer, self.at, budget)?;
            consumed += progress.consumed;
            self.at += progress.produced;
            match progress.status {
                Status::End => self.is_over = true,
                // It has more room once this was given, unless that is all there may be.
                Status::NeedRoom if progress.produced > 0 || self.at == self.buffer.len() => {}
                status if self.given == self.at => break status,
                Status::NeedRoom => {}
                status => {
                    produced += self.give(&mut output[history + produced..], budget);
                    break if self.given < self.at { Status::NeedRoom } else { status };
                }
            }
        };
        Ok(Progress { consumed, produced, status })
    }

    /// 0: it has a window of its own.
    fn history_bytes(&self) -> usize {
        0
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.buffer.capacity() + self.dictionary.capacity()
    }
}

const _: () = assert!(DICTIONARY_BYTES_MAX >= HISTORY_BYTES);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StandardCodecs;
    use marquetry_base::{Codecs, ErrorKind};

    /// Trained by zstd's own command on rows like those of [`text`].
    const TRAINED: &[u8] = include_bytes!("../tests/dictionaries/trained.zstd");

    fn text(rows: usize) -> Vec<u8> {
        let places = ["cellar", "roof", "hall", "garden", "kitchen"];
        let row = |at: usize| {
            let (place, value) = (places[at * 7 % 5], at * 31 % 60);
            format!(
                "{{\"sensor\":\"north-{at}\",\"place\":\"{place}\",\"value\":{value}.5,\"unit\":\"celsius\"}}\n"
            )
        };
        (0..rows).map(row).collect::<String>().into_bytes()
    }

    /// Decompresses with room, input and budgets of any size.
    fn decompressed(
        codec: Codec,
        dictionary: &[u8],
        page: &[u8],
        bytes: usize,
        (piece, units): (usize, u64),
    ) -> Result<Vec<u8>> {
        let mut decompressor = StandardCodecs::default().decompressor_with_dictionary(codec, dictionary)?;
        // The second page shows that nothing of the first is left.
        let mut output = vec![0; bytes];
        for _ in 0..2 {
            output.fill(0);
            decompressor.start(page.len(), bytes, true)?;
            let (mut consumed, mut produced) = (0_usize, 0_usize);
            loop {
                let end = page.len().min(consumed.saturating_add(piece));
                let (input, last) = (&page[consumed..end], end == page.len());
                let mut budget = Budget::new(units);
                let progress = decompressor.step(input, last, &mut output, produced, &mut budget)?;
                assert!(budget.spent() <= units.saturating_add(500_000), "{} units", budget.spent());
                (consumed, produced) = (consumed + progress.consumed, produced + progress.produced);
                match progress.status {
                    Status::End => break,
                    Status::NeedInput if last && progress.consumed + progress.produced == 0 => {
                        return Err(Error::corrupt("it ends early"));
                    }
                    Status::NeedRoom if progress.consumed + progress.produced == 0 => {
                        return Err(Error::corrupt("it is too long"));
                    }
                    _ => {}
                }
            }
            assert_eq!(produced, bytes);
        }
        Ok(output)
    }

    fn zstd(text: &[u8], dictionary: &[u8]) -> Vec<u8> {
        let mut context = zstd_safe::CCtx::create();
        context.load_dictionary(dictionary).unwrap();
        let mut page = vec![0; zstd_safe::compress_bound(text.len())];
        let length = context.compress2(&mut page[..], text).unwrap();
        page.truncate(length);
        page
    }

    const MANNERS: [(usize, u64); 4] = [(usize::MAX, u64::MAX), (1, 1), (700, 0), (10, 30_000)];

    #[test]
    fn lz4_as_another_library_writes_it() {
        // Longer than a match reaches, shorter, and next to nothing.
        for dictionary in [text(2_000), text(100), b"cellar".to_vec()] {
            for rows in [0, 1, 7, 300, 4_000] {
                let text = text(rows);
                let page = lz4_flex::block::compress_with_dict(&text, &dictionary);
                for manner in MANNERS {
                    let read = decompressed(Codec::Lz4Raw, &dictionary, &page, text.len(), manner);
                    assert!(read.unwrap() == text, "{rows} rows, {} bytes, {manner:?}", dictionary.len());
                }
                if rows == 1 && dictionary.len() > 100 {
                    assert!(page.len() < 40, "the dictionary is not used: {}", page.len());
                    // Another dictionary gives other bytes, and none at all an error.
                    let other = vec![b'x'; dictionary.len()];
                    let read = decompressed(Codec::Lz4Raw, &other, &page, text.len(), MANNERS[0]);
                    assert!(read.unwrap() != text);
                    let read = decompressed(Codec::Lz4Raw, b"x", &page, text.len(), MANNERS[0]);
                    assert_eq!(read.unwrap_err().kind(), ErrorKind::Corrupt);
                }
            }
        }
    }

    #[test]
    fn zstd_with_dictionaries_that_were_trained_and_others() {
        for dictionary in [TRAINED, &text(1_000), b"a dictionary of a few bytes"] {
            for rows in [0, 1, 7, 300, 4_000] {
                let text = text(rows);
                let page = zstd(&text, dictionary);
                for manner in MANNERS {
                    let read = decompressed(Codec::Zstd, dictionary, &page, text.len(), manner);
                    assert!(read.unwrap() == text, "{rows} rows, {} bytes, {manner:?}", dictionary.len());
                }
            }
        }
        let page = zstd(&text(1), TRAINED);
        assert!(page.len() < 60, "the dictionary is not used: {}", page.len());
        let other = decompressed(Codec::Zstd, &text(1_000), &page, text(1).len(), MANNERS[0]);
        assert_eq!(other.unwrap_err().kind(), ErrorKind::Corrupt);
    }

    #[test]
    fn what_is_refused() {
        let codecs = StandardCodecs::default();
        let kind = |codec, dictionary: &[u8]| {
            codecs.decompressor_with_dictionary(codec, dictionary).err().map(|error| error.kind())
        };
        assert_eq!(kind(Codec::Snappy, b"x"), Some(ErrorKind::Unsupported));
        let long = vec![7; DICTIONARY_BYTES_MAX + 1];
        assert_eq!(kind(Codec::Zstd, &long), Some(ErrorKind::LimitExceeded));
        assert_eq!(kind(Codec::Lz4Raw, &long[1..]), None);
        // Its magic number says that it has tables.
        assert_eq!(kind(Codec::Zstd, &TRAINED[..40]), Some(ErrorKind::Corrupt));
        let mut zstd = codecs.decompressor_with_dictionary(Codec::Zstd, TRAINED).unwrap();
        assert_eq!(zstd.start(1 << 20, 4 << 20, true).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
