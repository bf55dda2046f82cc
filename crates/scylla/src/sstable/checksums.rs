//! Checksums of data that is not compressed (CRC.db), and of a whole Data.db (Digest.crc32).

use marquetry_base::{Budget, Error, Limit, Limits, Object, Release, Result, Segmented};

use super::elements::{ComponentReader, Elements, Going, Parser};

/// What CRC.db holds: a checksum for each chunk of the data.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Checksums {
    /// Bytes of a chunk; the last one has fewer.
    pub chunk_bytes: u32,
    /// The CRC-32 of each chunk.
    pub sums: Segmented<u32>,
}

/// Reads CRC.db.
pub type ChecksumsReader = ComponentReader<ChecksumsParser>;

/// What a [`ChecksumsReader`] has read.
#[derive(Debug)]
pub struct ChecksumsParser {
    made: Checksums,
}

impl ChecksumsReader {
    /// A reader of the CRC.db that `object` is.
    pub fn new(object: Object, limits: Limits) -> ChecksumsReader {
        let elements = Elements::new(object, "CRC.db", (Limit::FooterBytes, limits.footer_bytes), &limits);
        ComponentReader::of(elements, ChecksumsParser { made: Checksums::default() })
    }
}

impl Parser for ChecksumsParser {
    type Product = Checksums;

    fn next(&mut self, elements: &mut Elements, budget: &mut Budget<'_>) -> Result<Going<Option<Checksums>>> {
        let made = &mut self.made;
        // No chunks have no bytes, so that says whether the first number was read.
        if made.chunk_bytes > 0 && elements.left() == 0 {
            return Ok(Going::Done(Some(core::mem::take(made))));
        }
        let number = match elements.next(budget, |cursor| cursor.u32())? {
            Going::Done(number) => number,
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        match made.chunk_bytes {
            0 if number == 0 => return Err(elements.corrupt("checksums of chunks of no bytes", 0)),
            0 => made.chunk_bytes = number,
            _ => made.sums.push(number),
        }
        Ok(Going::Done(None))
    }
}

impl Release for Checksums {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.sums.release(budget)
    }
}

impl Release for ChecksumsParser {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.made.release(budget)
    }
}

/// The CRC-32 of Data.db that Digest.crc32 says: a decimal number.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for anything else.
pub fn parse_digest(text: &[u8]) -> Result<u32> {
    let number = core::str::from_utf8(text).ok().and_then(|text| text.trim().parse().ok());
    number.ok_or_else(|| {
        Error::corrupt("a digest that is not a number of 32 bits")
            .at(|place| place.object = Some("Digest.crc32".into()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests() {
        assert_eq!(parse_digest(b"4294967295\n"), Ok(u32::MAX));
        for text in [&b""[..], b"-1", b"4294967296", b"\xff", b"12 13"] {
            assert!(parse_digest(text).is_err());
        }
    }
}
