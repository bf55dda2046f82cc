//! Decoding of literals and matches that can stop anywhere: what Snappy, LZ4 and LZO have in common.

use marquetry_base::{Codec, Error, Limit};
use marquetry_kernels::lz::{Output, Run};
use marquetry_kernels::plain;

use crate::page::corrupt;

/// A decoder of one block at a time.
///
/// It decodes complete elements by a kernel; those that the kernel leaves (near an end, long or invalid) it decodes
/// itself, with care.
pub(crate) trait Block: Send + Default {
    /// Continues to decode. Returns the bytes consumed and why it stopped. What it leaves of `input` is the start of an
    /// element, shorter than [`HEAD_BYTES_MAX`](crate::pieces::HEAD_BYTES_MAX).
    fn decode(&mut self, input: &[u8], room: &mut Room<'_>) -> Result<(usize, Stop), Fault>;

    /// True if the block may end here.
    fn may_end(&self) -> bool;
}

/// Why a decoder stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It needs more input.
    Input,
    /// The room is full, and more follows.
    Room,
    /// It reached [`Room::until`].
    Until,
}

/// What a decoder writes to.
#[derive(Debug)]
pub(crate) struct Room<'page> {
    /// Earlier output, as far as it is kept, followed by room.
    pub(crate) output: &'page mut [u8],
    /// Where the room starts.
    pub(crate) at: usize,
    /// Where it ends.
    pub(crate) end: usize,
    /// Where to stop, give or take an element.
    pub(crate) until: usize,
    /// Elements decoded, and other work in terms of elements.
    pub(crate) elements: usize,
    /// The number of elements to stop after, give or take one.
    pub(crate) elements_max: usize,
}

/// What is wrong with a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// A match refers to nothing, or to bytes before the block.
    Distance { distance: usize, produced: usize },
    /// A match refers to bytes that the host no longer keeps.
    Window { distance: usize, kept: usize },
    /// Anything else.
    Malformed(&'static str),
}

impl Fault {
    pub(crate) fn into_error(self, codec: Codec) -> Error {
        match self {
            Fault::Distance { distance, produced } => corrupt(
                codec,
                format_args!("a copy from {distance} bytes back where its block has {produced} bytes"),
            ),
            Fault::Window { distance, kept } => Error::limit(
                Limit::WindowBytes,
                format!(
                    "a copy from {distance} bytes back in a {} page of which a window of {kept} bytes is kept",
                    codec.name()
                ),
            ),
            Fault::Malformed(what) => corrupt(codec, what),
        }
    }
}

impl Room<'_> {
    /// Runs a kernel and returns the bytes that it consumed. `produced` is the number of bytes since the block's start,
    /// which matches may refer to.
    pub(crate) fn run(&mut self, produced: &mut usize, kernel: impl FnOnce(Output<'_>) -> Run) -> usize {
        let output = Output {
            output: &mut self.output[..self.end],
            start: self.at.saturating_sub(*produced),
            at: self.at,
            until: self.until,
        };
        let run = kernel(output);
        self.at += run.produced;
        self.elements += run.elements;
        *produced += run.produced;
        run.consumed
    }

    /// Why no other element can start; `None` if one can.
    pub(crate) fn stop(&self) -> Option<Stop> {
        if self.at >= self.end {
            return Some(Stop::Room);
        }
        (self.at >= self.until || self.is_tired()).then_some(Stop::Until)
    }

    /// True if enough was done: for loops that decode elements without producing bytes.
    pub(crate) fn is_tired(&self) -> bool {
        self.elements >= self.elements_max
    }

    /// Writes a literal.
    pub(crate) fn literal(&mut self, byte: u8) {
        self.output[self.at] = byte;
        self.at += 1;
        self.elements += 1;
    }

    /// Writes literals, at most `left`, and returns how many.
    pub(crate) fn literals(&mut self, input: &[u8], left: usize) -> usize {
        let length = left.min(input.len()).min(self.left());
        plain::copy(&input[..length], &mut self.output[self.at..self.at + length]);
        self.at += length;
        self.elements += 1;
        length
    }

    /// Copies from `distance` back, at most `left` bytes, and returns how many.
    pub(crate) fn copy(&mut self, distance: usize, left: usize, produced: usize) -> Result<usize, Fault> {
        if distance == 0 || distance > produced {
            return Err(Fault::Distance { distance, produced });
        }
        if distance > self.at {
            return Err(Fault::Window { distance, kept: self.at });
        }
        let length = left.min(self.left());
        repeat(self.output, self.at, distance, length);
        self.at += length;
        self.elements += 1;
        Ok(length)
    }

    fn left(&self) -> usize {
        self.end.min(self.until).saturating_sub(self.at)
    }
}

/// Below this length a loop over bytes is faster than a call.
const CALL_BYTES_MIN: usize = 24;

/// Copies `length` bytes from `distance` back; the copy may read bytes that it wrote itself. `1 <= distance <= at`.
pub(crate) fn repeat(output: &mut [u8], at: usize, distance: usize, length: usize) {
    if length <= distance {
        output.copy_within(at - distance..at - distance + length, at);
    } else if length < CALL_BYTES_MIN {
        for to in at..at + length {
            output[to] = output[to - distance];
        }
    } else {
        // Each copy doubles what can be copied next; beyond a few KiB that would only leave the cache.
        const PERIODS_BYTES_MAX: usize = 8 << 10;
        let (mut period, mut done) = (distance, 0);
        while done < length {
            let take = period.min(length - done);
            output.copy_within(at + done - period..at + done - period + take, at + done);
            done += take;
            if period < PERIODS_BYTES_MAX {
                period *= 2;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_as_byte_by_byte() {
        for distance in 1..70 {
            for length in [0, 1, 2, 5, 23, 24, 25, 63, 64, 65, 200, 20_000] {
                let mut output: Vec<u8> = (0..70 + length).map(|at: usize| at.to_le_bytes()[0]).collect();
                let mut expected = output.clone();
                for to in 70..70 + length {
                    expected[to] = expected[to - distance];
                }
                repeat(&mut output, 70, distance, length);
                assert!(output == expected, "{distance} {length}");
            }
        }
    }
}
