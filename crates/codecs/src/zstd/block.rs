//! A compressed block. RFC 8878, section 3.1.1.3.

use marquetry_base::{Codec, Error, Result};
use marquetry_kernels::plain;

use super::bits::MARGIN;
use super::literals::Literals;
use super::sequences::Sequences;
use super::window::{PART_BYTES, SLACK, Target};
use super::work::{BLOCK_BYTES_MAX, BLOCK_TOO_LONG, Work, reserve};
use crate::block::Fault;

/// A compressed block: its bytes as they arrive, and how far it is decoded.
#[derive(Debug, Default)]
pub(super) struct Block {
    expect: Expect,
    /// A margin, its bytes, and room to copy too much.
    buffer: Vec<u8>,
    /// Bytes that it has, and those that are there.
    length: usize,
    filled: usize,
    literals: Literals,
    sequences: Sequences,
    /// Bytes that it may still become.
    left: usize,
}

#[derive(Debug, Clone, Copy, Default)]
enum Expect {
    #[default]
    Bytes,
    Literals,
    Sequences,
    /// The literals after the last sequence.
    Rest,
}

/// Bytes of a block that are taken at a time.
const INPUT_BYTES: usize = 32 << 10;

impl Block {
    /// Bytes of memory that it takes, at the most.
    pub(super) const BYTES_MAX: usize = 2 * (BLOCK_BYTES_MAX + SLACK) + MARGIN;

    /// Bytes of memory.
    pub(super) fn held(&self) -> usize {
        self.buffer.capacity() + self.literals.held()
    }

    /// Forgets the frame before.
    pub(super) fn begin_frame(&mut self) -> Result<()> {
        self.literals.begin_frame()?;
        self.sequences.begin_frame();
        reserve(&mut self.buffer, MARGIN + BLOCK_BYTES_MAX + SLACK)
    }

    /// Begins a block of `length` bytes that becomes at most `most`.
    pub(super) fn begin(&mut self, length: usize, most: usize, work: &mut Work) {
        let bytes = MARGIN + length + SLACK;
        if self.buffer.len() < bytes {
            work.fresh(bytes - self.buffer.len());
            self.buffer.resize(bytes, 0);
        }
        (self.expect, self.length, self.filled, self.left) = (Expect::Bytes, length, 0, most);
    }

    /// Goes on; the bytes of `input` consumed, and what comes next.
    pub(super) fn decode(
        &mut self,
        input: &[u8],
        target: &mut Target<'_>,
        work: &mut Work,
    ) -> Result<(usize, Next)> {
        let mut consumed = 0;
        let end = MARGIN + self.length;
        loop {
            if work.is_tired() {
                return Ok((consumed, Next::Tired));
            }
            match self.expect {
                Expect::Bytes => {
                    let input = &input[consumed..];
                    let bytes = input.len().min(self.length - self.filled).min(INPUT_BYTES);
                    let at = MARGIN + self.filled;
                    plain::copy(&input[..bytes], &mut self.buffer[at..at + bytes]);
                    work.bytes(bytes);
                    (consumed, self.filled) = (consumed + bytes, self.filled + bytes);
                    if self.filled < self.length {
                        if bytes == 0 {
                            return Ok((consumed, Next::Input));
                        }
                        continue;
                    }
                    let begun = self.literals.begin(&self.buffer, MARGIN..end, self.left, work);
                    let at = begun.map_err(error)?;
                    self.sequences.section = at..end;
                    self.expect = Expect::Literals;
                }
                Expect::Literals => {
                    if !self.literals.decode(&self.buffer, work).map_err(error)? {
                        return Ok((consumed, Next::Tired));
                    }
                    self.sequences.begin(&self.buffer, work).map_err(error)?;
                    self.expect = Expect::Sequences;
                }
                Expect::Sequences => {
                    let Block { buffer, literals, sequences, left, .. } = self;
                    let before = target.at;
                    let is_done = sequences.execute(buffer, literals, target, *left, work);
                    *left -= target.at - before;
                    if !is_done? {
                        return Ok((consumed, Next::Tired));
                    }
                    self.expect = Expect::Rest;
                }
                Expect::Rest => {
                    let count = self.literals.left();
                    if count == 0 {
                        return Ok((consumed, Next::Done));
                    }
                    if count > self.left {
                        return Err(target.bad(BLOCK_TOO_LONG));
                    }
                    if count > target.room() {
                        return Err(target.page.too_long());
                    }
                    let count = count.min(PART_BYTES);
                    work.bytes(count);
                    self.literals.append(&self.buffer, target, count);
                    self.left -= count;
                }
            }
        }
    }
}

/// Why a block stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// It needs more input.
    Input,
    /// Enough was done.
    Tired,
    /// It is complete.
    Done,
}

fn error(fault: Fault) -> Error {
    fault.into_error(Codec::Zstd)
}
