//! A page's bytes in the file: which are consumed, and their checksum.

use alloc::format;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Input, Price, Result};

use crate::going::Going;
use crate::growing::SLICE_BYTES;
use crate::read::options::LargePages;
use crate::read::work::Work;

/// A CRC's price: 64 bytes a nanosecond at best, 4 at worst.
const CRC_PRICE: Price = Price::per_kib(100);

/// The bytes of a page's body that are not consumed yet.
pub(super) struct Packed {
    /// Where they are: those of the last chunk, too, if that is kept in the input.
    pub(super) range: Range<u64>,
    /// Bytes that are needed from where they start on.
    pub(super) needs: u64,
    /// The CRC that all should have, if that is to be checked; what it is so far, and up to where.
    crc: Option<u32>,
    sum: u32,
    checked: u64,
    checking: Checking,
}

/// When a body's bytes are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checking {
    /// Before its values leave, while all of it is kept.
    Whole,
    /// Before its values leave: it is being read for that alone, and will be read again.
    Alone,
    /// It was read alone, and was right; this is the second time.
    Again,
    /// As it is taken apart.
    Along,
}

impl Packed {
    /// The bytes of a body in `range`, whose CRC is `crc`, if that is to be checked. The body `fits` a window, or is longer; its values
    /// may or may not leave before all of it is read.
    pub(super) fn new(
        range: Range<u64>,
        crc: Option<u32>,
        (fits, leaves_early): (bool, bool),
        (verify_first_bytes, large_pages): (u64, LargePages),
    ) -> Packed {
        let bytes = range.end - range.start;
        let checking = if fits || (crc.is_some() && bytes <= verify_first_bytes) {
            Checking::Whole
        } else if crc.is_some() && large_pages == LargePages::ReadTwice && leaves_early {
            Checking::Alone
        } else {
            Checking::Along
        };
        let needs = if checking == Checking::Whole { bytes } else { 0 };
        Packed { checked: range.start, range, needs, crc, sum: 0, checking }
    }

    /// How many they are.
    pub(super) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// The bytes without which it does not go on, and where those end that are worth asking for with them.
    pub(super) fn needed(&self) -> (Range<u64>, u64) {
        let (from, bytes, end) = match self.checking {
            // What follows the page is wanted after it was read again.
            Checking::Alone => (self.checked, 1, self.range.end),
            _ => (self.range.start, self.needs, u64::MAX),
        };
        (from..from.saturating_add(bytes), end)
    }

    /// Checks the CRC where that is to be done before the values leave.
    pub(super) fn check_first(&mut self, work: &mut Work<'_, '_>) -> Result<Going> {
        let whole = self.range.clone();
        match self.checking {
            Checking::Whole if work.input.missing(whole.clone()).is_some() => Ok(Going::Need(())),
            Checking::Whole => self.check(whole.end, work),
            Checking::Alone => {
                let start = self.checked;
                let checked = self.check(whole.end, work)?;
                work.input.release(start..self.checked);
                if checked == Going::Done(()) {
                    (self.sum, self.checked, self.checking) = (0, whole.start, Checking::Again);
                }
                Ok(checked)
            }
            Checking::Again | Checking::Along => Ok(Going::Done(())),
        }
    }

    /// True while values leave before the CRC is known to be right.
    pub(super) fn is_unverified(&self) -> bool {
        self.checking == Checking::Along && self.is_unchecked()
    }

    /// True while bytes are left to be checked.
    pub(super) fn is_unchecked(&self) -> bool {
        self.crc.is_some() && self.checked < self.range.end
    }

    /// Up to where they are checked.
    pub(super) fn checked(&self) -> u64 {
        self.checked
    }

    /// Computes the CRC up to `end`, in slices; at the body's end it must be right.
    pub(super) fn check(&mut self, end: u64, work: &mut Work<'_, '_>) -> Result<Going> {
        let Some(expected) = self.crc else { return Ok(Going::Done(())) };
        while self.checked < end {
            let slice = work.input.segment(self.checked, (end - self.checked).min(u64_of(SLICE_BYTES)));
            if slice.is_empty() {
                return Ok(Going::Need(()));
            }
            self.sum = marquetry_kernels::crc32::crc32(self.sum, &slice);
            self.checked += u64_of(slice.len());
            work.budget.charge(CRC_PRICE, slice.len(), 0);
            if self.checked < end && work.budget.is_spent() {
                return Ok(Going::Yield);
            }
        }
        if self.checked == self.range.end && self.sum != expected {
            let sum = self.sum;
            return Err(Error::checksum(match self.checking {
                Checking::Again => format!(
                    "the page's CRC is {sum:08x} where it was {expected:08x} before: the file has changed"
                ),
                _ => format!("the page's CRC is {sum:08x}, its header says {expected:08x}"),
            }));
        }
        Ok(Going::Done(()))
    }

    /// Consumes the bytes before `at`, and releases them.
    pub(super) fn consume(&mut self, at: u64, input: &mut Input) {
        let start = self.range.start;
        self.range.start = start.max(at);
        input.release(start..self.range.start);
    }
}
