//! Checksums of data that is not compressed (CRC.db), and of a whole Data.db (Digest.crc32).

use core::ops::Range;

use marquetry_base::{
    Budget, Bytes, Error, Failed, Limit, Limits, Machine, Object, Release, Result, Segmented, Step,
};

use super::elements::{Elements, Going, need};

/// What CRC.db holds: a checksum for each chunk of the data.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Checksums {
    /// Bytes of a chunk; the last one has fewer.
    pub chunk_bytes: u32,
    /// The CRC-32 of each chunk.
    pub sums: Segmented<u32>,
}

/// Reads CRC.db: one product.
///
/// Asks for the object's length, then for its bytes from start to end.
#[derive(Debug)]
pub struct ChecksumsReader {
    elements: Elements,
    expects: Expects,
    made: Checksums,
    failed: Failed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    ChunkBytes,
    Sums,
    Nothing,
}

impl ChecksumsReader {
    /// A reader of the CRC.db that `object` is.
    pub fn new(object: Object, limits: Limits) -> ChecksumsReader {
        ChecksumsReader {
            elements: Elements::new(object, "CRC.db", (Limit::FooterBytes, limits.footer_bytes), &limits),
            expects: Expects::ChunkBytes,
            made: Checksums { chunk_bytes: 0, sums: Segmented::new() },
            failed: Failed::default(),
        }
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Checksums>> {
        if let Going::Need(demand) = self.elements.length() {
            return need(demand);
        }
        loop {
            if self.expects == Expects::Nothing {
                return Ok(Step::Done);
            }
            if self.expects == Expects::Sums && self.elements.left() == 0 {
                self.expects = Expects::Nothing;
                let empty = Checksums { chunk_bytes: 0, sums: Segmented::new() };
                return Ok(Step::Ready(core::mem::replace(&mut self.made, empty)));
            }
            let number = match self.elements.next(budget, |cursor| cursor.u32())? {
                Going::Done(number) => number,
                Going::Need(demand) => return need(demand),
            };
            match self.expects {
                Expects::ChunkBytes if number == 0 => {
                    return Err(self.elements.corrupt("checksums of chunks of no bytes", 0));
                }
                Expects::ChunkBytes => (self.made.chunk_bytes, self.expects) = (number, Expects::Sums),
                Expects::Sums => self.made.sums.push(number),
                Expects::Nothing => return Err(Error::internal("an element after the last")),
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
    }
}

impl Machine for ChecksumsReader {
    type Product = Checksums;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Checksums>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        match self.expects {
            Expects::Nothing => self.elements.check_object(object),
            _ => self.elements.supply(object, &range, bytes),
        }
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        if let Err(error) = self.elements.supply_length(object, length)? {
            self.failed.set(error);
        }
        Ok(())
    }

    fn fail(&mut self, object: Object, _range: Range<u64>, reason: Error) {
        if self.elements.check_object(object).is_ok() {
            self.failed.set(reason);
        }
    }
}

impl Release for Checksums {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.sums.release(budget)
    }
}

impl Release for ChecksumsReader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        self.made.release(budget) && self.elements.release(budget)
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
