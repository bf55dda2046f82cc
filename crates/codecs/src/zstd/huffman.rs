//! Huffman trees of literals. RFC 8878, section 4.2.

use marquetry_base::cast::{low_u8, low_u32, usize_of_u32};

use super::bits::{Backward, Word};
use super::fse::{self, Distribution, Table};
use crate::block::Fault;

/// The longest code. (The RFC says 11; the library reads 12.)
const CODE_BITS_MAX: u32 = 12;
const CODES: usize = 1 << CODE_BITS_MAX;
const SYMBOLS: usize = 256;

/// Symbols that are read from one look at a stream.
pub(super) const SYMBOLS_AT_ONCE: usize = 4;

/// The largest table of weights, as a power of two, and the most symbols of each size that the library has memory for.
const WEIGHTS_LOG_MAX: u32 = 6;
const WEIGHTS_MAX: usize = 12;

/// The cost of reading a tree and of building its table, in elements: 255 weights, 256 codes, 4,096 entries.
pub(super) const TREE_ELEMENTS: usize = 6_000;

const BAD: Fault = Fault::Malformed("the literals of a block have a bad tree");

/// A tree, as a table: for each of the next bits, the symbol, and in its low byte the number of bits of its code.
#[derive(Debug)]
pub(super) struct Tree {
    codes: Box<[u16; CODES]>,
    log: u32,
    weights: Table,
}

impl Default for Tree {
    fn default() -> Tree {
        Tree { codes: Box::new([0; CODES]), log: 0, weights: Table::default() }
    }
}

impl Tree {
    /// Reads a tree's description at the start of a range of the buffer, and returns its length.
    pub(super) fn read(&mut self, buffer: &[u8], start: usize, end: usize) -> Result<usize, Fault> {
        let mut weights = [0; SYMBOLS];
        let bytes = buffer.get(start..end).ok_or(BAD)?;
        let (&head, bytes) = bytes.split_first().ok_or(BAD)?;
        let head = usize::from(head);
        let (count, length) = match head.checked_sub(127) {
            Some(count) => {
                let length = count.div_ceil(2);
                let bytes = bytes.get(..length).ok_or(BAD)?;
                for (pair, byte) in weights.chunks_exact_mut(2).zip(bytes) {
                    pair.copy_from_slice(&[byte >> 4, byte & 15]);
                }
                (count, length)
            }
            None if head > bytes.len() => return Err(BAD),
            None => (self.read_weights(&mut weights, buffer, start + 1, start + 1 + head)?, head),
        };
        self.build(&mut weights, count)?;
        Ok(1 + length)
    }

    /// Reads weights that are compressed, and returns how many.
    fn read_weights(
        &mut self,
        weights: &mut [u8; SYMBOLS],
        buffer: &[u8],
        start: usize,
        end: usize,
    ) -> Result<usize, Fault> {
        let (distribution, length) = Distribution::read(&buffer[start..end], fse::SYMBOLS_MAX).ok_or(BAD)?;
        let Distribution { symbols, log, .. } = distribution;
        if log > WEIGHTS_LOG_MAX || (log == WEIGHTS_LOG_MAX && symbols > WEIGHTS_MAX) {
            return Err(BAD);
        }
        let table = &mut self.weights;
        table.build(&distribution, |symbol| (u32::try_from(symbol).unwrap_or(0), 0));
        let mut bits = Backward::new(buffer, start + length..end).ok_or(BAD)?;
        let mut read = |count| {
            let mut word = Word { bits: bits.ahead(buffer), taken: 0 };
            let value = word.take(count);
            bits.skip(word.taken);
            (usize_of_u32(value), bits.is_overrun())
        };
        // Two states take turns.
        let (mut one, _) = read(table.log);
        let (mut other, is_overrun) = read(table.log);
        if is_overrun {
            return Err(BAD);
        }
        let mut count = 0;
        // The last weight follows from the others.
        while count + 2 < SYMBOLS {
            let state = table.state(one);
            weights[count] = low_u8(state.base.into());
            count += 1;
            let (more, is_overrun) = read(state.bits);
            if is_overrun {
                weights[count] = low_u8(table.state(other).base.into());
                return Ok(count + 1);
            }
            one = usize::from(state.next) + more;
            (one, other) = (other, one);
        }
        Err(BAD)
    }

    /// Builds the table of `count` weights and the last one.
    fn build(&mut self, weights: &mut [u8; SYMBOLS], count: usize) -> Result<(), Fault> {
        let mut ranks = [0usize; CODE_BITS_MAX as usize + 1];
        let mut total = 0u32;
        for &weight in &weights[..count] {
            *ranks.get_mut(usize::from(weight)).ok_or(BAD)? += 1;
            total += (1 << weight) >> 1;
        }
        let log = total.checked_ilog2().ok_or(BAD)? + 1;
        if log > CODE_BITS_MAX {
            return Err(BAD);
        }
        let rest = (1 << log) - total;
        if !rest.is_power_of_two() {
            return Err(BAD);
        }
        let last = rest.ilog2() + 1;
        weights[count] = low_u8(last.into());
        ranks[usize_of_u32(last)] += 1;
        // The longest codes come in pairs.
        if ranks[1] < 2 || ranks[1] % 2 == 1 {
            return Err(BAD);
        }
        // Symbols by weight: the longest codes are first.
        let mut starts = [0usize; CODE_BITS_MAX as usize + 2];
        for weight in 1..ranks.len() {
            starts[weight + 1] = starts[weight] + (ranks[weight] << (weight - 1));
        }
        for (symbol, &weight) in (0u16..).zip(&weights[..=count]) {
            if weight > 0 {
                let start = &mut starts[usize::from(weight)];
                let codes = 1 << (weight - 1);
                let entry = symbol << 8 | u16::from(low_u8(u64::from(log) + 1) - weight);
                self.codes[*start..*start + codes].fill(entry);
                *start += codes;
            }
        }
        self.log = log;
        Ok(())
    }

    /// Decodes as many symbols as `to` has room for, at most [`SYMBOLS_AT_ONCE`].
    #[inline(always)]
    pub(super) fn decode(&self, bits: &mut Backward, buffer: &[u8], to: &mut [u8]) {
        let (mut word, mut taken) = (bits.ahead(buffer), 0);
        for to in to {
            let entry = self.codes[usize_of_u32(low_u32(word >> (64 - self.log))) % CODES];
            word <<= entry & 15;
            taken += usize::from(entry & 15);
            [_, *to] = entry.to_le_bytes();
        }
        bits.skip(taken);
    }
}
