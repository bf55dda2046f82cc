//! A format for tests: the last eight bytes say where a text starts and how long it is; lines are its products.

use std::ops::Range;

use marquetry_base::{Budget, Bytes, Demand, Error, Input, Machine, Object, Priority, Result, Step, Want};

pub(crate) const FILE: Object = Object(0);
const TRAILER_BYTES: u64 = 8;

/// Reads the text in pieces of a few bytes, and wants the next piece early.
#[derive(Debug, Default)]
pub(crate) struct Toy {
    length: Option<u64>,
    text: Option<Range<u64>>,
    input: Input,
    failed: Option<Error>,
    /// All that was supplied, in order.
    pub(crate) supplied: Vec<Range<u64>>,
    /// Reported failures.
    pub(crate) failures: Vec<Range<u64>>,
}

/// An object of the toy format.
pub(crate) fn object(text: &str) -> Vec<u8> {
    let mut object = b"header".to_vec();
    let start = u32::try_from(object.len()).unwrap();
    object.extend_from_slice(text.as_bytes());
    object.extend(start.to_le_bytes());
    object.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
    object
}

const PIECE_BYTES: u64 = 4;

impl Machine for Toy {
    type Product = Bytes;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Bytes>> {
        budget.charge_units(1);
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(length) = self.length else { return Ok(Step::Need(Demand::length(FILE))) };
        let Some(text) = self.text.clone() else {
            let Some(start) = length.checked_sub(TRAILER_BYTES) else {
                let error = Error::corrupt("too short");
                self.failed = Some(error.clone());
                return Err(error);
            };
            let Some(trailer) = self.input.contiguous(start..length)? else {
                return Ok(Step::Need(Demand::now(FILE, start..length)));
            };
            let number = |at: usize| u64::from(u32::from_le_bytes(trailer[at..at + 4].try_into().unwrap()));
            self.text = Some(number(0)..number(0) + number(4));
            return Ok(Step::Yield);
        };
        if text.is_empty() {
            return Ok(Step::Done);
        }
        let piece = text.start..text.end.min(text.start + PIECE_BYTES);
        let Some(bytes) = self.input.contiguous(piece.clone())? else {
            let mut demand = Demand::now(FILE, piece.clone());
            if piece.end < text.end {
                let next = piece.end..text.end.min(piece.end + PIECE_BYTES);
                demand.push(Want::Range(FILE, next, Priority::Soon));
            }
            return Ok(Step::Need(demand));
        };
        self.text = Some(piece.end..text.end);
        Ok(Step::Ready(bytes))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        assert_eq!(object, FILE);
        assert_eq!(range.end - range.start, u64::try_from(bytes.len()).unwrap());
        self.supplied.push(range.clone());
        self.input.supply(range.start, bytes)
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        assert_eq!(object, FILE);
        self.length = Some(length);
        Ok(())
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        assert_eq!(object, FILE);
        self.failures.push(range);
        self.failed = Some(reason.at(|place| place.column = Some("text".to_owned())));
    }
}
