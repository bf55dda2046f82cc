//! Deflate's symbols. RFC 1951.
//!
//! Codes are looked up in tables of up to 2^11 (literals and lengths) and 2^8 (distances) entries; further tables for
//! the longer codes follow them. An entry has everything that is known of a symbol, so that one addition and one shift
//! decode it.
//!
//! Speed: the length of a symbol bounds a run, which the next one's place waits for: a look-up, a shift, an
//! addition. `docs/bench/kernels.md` has its distance from a copy of as many bytes (`make bench-kernels`).

use super::{Bits, Output, Run, SLACK, copy_match};

/// Decoding tables of a block's two codes.
#[derive(Debug, Clone)]
pub struct Tables {
    literals: Table<LITERALS_SIZE>,
    distances: Table<DISTANCES_SIZE>,
}

/// A symbol, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A byte.
    Literal(u8),
    /// A match.
    Match {
        /// Its length in bytes.
        length: usize,
        /// How far back it is.
        distance: usize,
    },
    /// The block's end.
    End,
    /// More bits are needed than are available.
    Short,
    /// Bits that are no code of a literal or length.
    BadLiteral,
    /// Bits that are no code of a distance.
    BadDistance,
}

/// Why lengths do not form a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadCode {
    /// There are more codes than the lengths have bits for.
    Oversubscribed,
    /// Some bit patterns have no meaning. (That is allowed for a code of one symbol: its other bit has no meaning.)
    Incomplete,
}

/// The symbol that ends a block.
pub const END_SYMBOL: usize = 256;

/// The symbol of the shortest length.
const FIRST_LENGTH: usize = END_SYMBOL + 1;

/// The longest code.
pub const CODE_BITS_MAX: usize = 15;

/// Literals and lengths with a meaning, and those that a code may have.
pub const LITERALS_MAX: usize = 286;

/// Distances that mean something.
pub const DISTANCES_MAX: usize = 30;

const LITERALS_BITS: u32 = 11;
const DISTANCES_BITS: u32 = 8;

/// At most 2,342 and 402 entries are in use (zlib's `enough` counts them). Powers of two, so that an index is in the table
/// by a mask.
const LITERALS_SIZE: usize = 1 << 12;
const DISTANCES_SIZE: usize = 1 << 9;

/// The format of an entry: bits 0 to 4 are the number of bits that the symbol takes, extra ones included; bits 8 to 11
/// how many of them are the code, or index a further table; bits 16 to 30 are the symbol's base value, or where the
/// further table starts.
const USED_MASK: u32 = 0x1f;
const CODE_SHIFT: u32 = 8;
const CODE_MASK: u32 = 0xf;
const BASE_SHIFT: u32 = 16;
const LITERAL: u32 = 1 << 31;
/// Neither a literal nor a length: one of the next two, or bad.
const OTHER: u32 = 1 << 15;
const FURTHER: u32 = 1 << 14;
const END: u32 = 1 << 13;

#[derive(Debug, Clone)]
struct Table<const SIZE: usize> {
    bits: u32,
    entries: [u32; SIZE],
}

const LENGTH_BASES: [u16; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
    227, 258,
];
const LENGTH_EXTRA: [u8; 29] =
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];

impl Default for Tables {
    fn default() -> Self {
        Self::new()
    }
}

impl Tables {
    /// Tables of no codes.
    #[must_use]
    pub const fn new() -> Tables {
        Tables {
            literals: Table { bits: 0, entries: [OTHER; LITERALS_SIZE] },
            distances: Table { bits: 0, entries: [OTHER; DISTANCES_SIZE] },
        }
    }

    /// Sets the code of literals and lengths to the one with these code lengths. Lengths above 15, and symbols beyond
    /// the 288th, are cut off.
    ///
    /// # Errors
    ///
    /// For lengths that do not form a code.
    pub fn set_literals(&mut self, lengths: &[u8]) -> Result<(), BadCode> {
        self.literals.build(lengths, LITERALS_BITS, |symbol| match symbol {
            0..END_SYMBOL => LITERAL | (symbol as u32) << BASE_SHIFT,
            END_SYMBOL => OTHER | END,
            FIRST_LENGTH..LITERALS_MAX => {
                let at = symbol - FIRST_LENGTH;
                u32::from(LENGTH_BASES[at]) << BASE_SHIFT | u32::from(LENGTH_EXTRA[at])
            }
            _ => OTHER,
        })
    }

    /// Sets the code of distances to the one with these code lengths. Lengths above 15, and symbols beyond the 288th,
    /// are cut off.
    ///
    /// # Errors
    ///
    /// For lengths that do not form a code.
    pub fn set_distances(&mut self, lengths: &[u8]) -> Result<(), BadCode> {
        self.distances.build(lengths, DISTANCES_BITS, |symbol| match symbol {
            0..4 => (symbol as u32 + 1) << BASE_SHIFT,
            4..DISTANCES_MAX => {
                let extra = symbol as u32 / 2 - 1;
                ((2 + symbol as u32 % 2) << extra).wrapping_add(1) << BASE_SHIFT | extra
            }
            _ => OTHER,
        })
    }

    /// Decodes a symbol. If there is none, `bits` is unchanged. (An incomplete code looks like one that ends in zeros,
    /// which is then longer than the available bits.)
    pub fn symbol(&self, bits: &mut Bits) -> Symbol {
        let (mut buffer, mut used) = (bits.buffer, 0);
        let entry = self.literals.entry(&mut buffer, &mut used);
        if entry & OTHER != 0 {
            if entry & END == 0 {
                let whole = used + (entry & USED_MASK) <= bits.count;
                return if whole { Symbol::BadLiteral } else { Symbol::Short };
            }
            return match bits.take(used + (entry & USED_MASK)) {
                true => Symbol::End,
                false => Symbol::Short,
            };
        }
        if entry & LITERAL != 0 {
            return match bits.take(used + (entry & USED_MASK)) {
                true => Symbol::Literal((entry >> BASE_SHIFT) as u8),
                false => Symbol::Short,
            };
        }
        let length = value(entry, buffer);
        buffer >>= entry & USED_MASK;
        used += entry & USED_MASK;
        if used > bits.count {
            return Symbol::Short;
        }
        let entry = self.distances.entry(&mut buffer, &mut used);
        if entry & OTHER != 0 {
            let whole = used + (entry & USED_MASK) <= bits.count;
            return if whole { Symbol::BadDistance } else { Symbol::Short };
        }
        let distance = value(entry, buffer);
        match bits.take(used + (entry & USED_MASK)) {
            true => Symbol::Match { length, distance },
            false => Symbol::Short,
        }
    }
}

/// Bytes of input that an easy symbol needs: a load of eight.
const INPUT_MIN: usize = 8;

/// Room that easy symbols need: three literals or the longest match.
const ROOM_MIN: usize = 258 + SLACK;

/// Decodes symbols while they are easy, up to the block's end, which is not: see [`super`].
#[must_use]
pub fn run(input: &[u8], to: Output<'_>, bits: &mut Bits, tables: &Tables) -> Run {
    let Output { output, start, at, until } = to;
    let mut run = Run::default();
    let (Some(in_last), Some(room_last)) =
        (input.len().checked_sub(INPUT_MIN), output.len().checked_sub(ROOM_MIN))
    else {
        return run;
    };
    if start > at || at > room_last || bits.count > 63 {
        return run;
    }
    let out_last = room_last.min(until.saturating_sub(1));
    let (from, out) = (input.as_ptr(), output.as_mut_ptr());
    let (mut ip, mut op) = (0, at);
    let (mut buffer, mut count) = (bits.buffer, bits.count);
    while ip <= in_last && op <= out_last {
        // SAFETY: `ip + 8 <= input.len()`.
        buffer |= u64::from_le(unsafe { from.add(ip).cast::<u64>().read_unaligned() }) << count;
        ip += (63 - count as usize) >> 3;
        // 56 to 63 bits; those above are the input's next ones, and will be read again.
        count |= 56;
        let mut used = 0;
        let mut rest = buffer;
        let mut entry = tables.literals.entry(&mut rest, &mut used);
        if entry & LITERAL != 0 {
            // Three codes of literals take 45 bits at most.
            // SAFETY: `op + 3 <= output.len()`, as `ROOM_MIN` bytes are left.
            unsafe { *out.add(op) = (entry >> BASE_SHIFT) as u8 };
            op += 1;
            run.elements += 1;
            rest >>= entry & USED_MASK;
            used += entry & USED_MASK;
            (buffer, count) = (rest, count - used);
            used = 0;
            entry = tables.literals.entry(&mut rest, &mut used);
            if entry & LITERAL != 0 {
                // SAFETY: as above.
                unsafe { *out.add(op) = (entry >> BASE_SHIFT) as u8 };
                op += 1;
                run.elements += 1;
                rest >>= entry & USED_MASK;
                used += entry & USED_MASK;
                (buffer, count) = (rest, count - used);
                used = 0;
                entry = tables.literals.entry(&mut rest, &mut used);
                if entry & LITERAL != 0 {
                    // SAFETY: as above.
                    unsafe { *out.add(op) = (entry >> BASE_SHIFT) as u8 };
                    op += 1;
                    run.elements += 1;
                    rest >>= entry & USED_MASK;
                    used += entry & USED_MASK;
                    (buffer, count) = (rest, count - used);
                    continue;
                }
            }
            // A match takes up to 48 bits: if fewer may be left, more are read before it is decoded.
            if count < 48 {
                if entry & OTHER != 0 {
                    break;
                }
                continue;
            }
            if op > out_last {
                break;
            }
        }
        if entry & OTHER != 0 {
            break;
        }
        let length = value(entry, rest);
        rest >>= entry & USED_MASK;
        used += entry & USED_MASK;
        let entry = tables.distances.entry(&mut rest, &mut used);
        let distance = value(entry, rest);
        if entry & OTHER != 0 || distance.wrapping_sub(1) >= op - start {
            break;
        }
        rest >>= entry & USED_MASK;
        used += entry & USED_MASK;
        // SAFETY: `1 <= distance <= op`; a length is at most 258, and `op <= out_last`, which is followed by 258 bytes
        // and SLACK.
        unsafe { copy_match(out, op, distance, length) };
        op += length;
        run.elements += 1;
        (buffer, count) = (rest, count - used);
    }
    // Returns complete bytes to the input, as if they had not been read.
    let back = (count >> 3).min(ip as u32);
    ip -= back as usize;
    count -= 8 * back;
    *bits = Bits { buffer: buffer & ((1 << count) - 1), count };
    run.consumed = ip;
    run.produced = op - at;
    run
}

/// The base value of an entry's symbol plus its extra bits, which follow the code in `buffer`.
#[inline(always)]
fn value(entry: u32, buffer: u64) -> usize {
    let bits = buffer & ((1 << (entry & USED_MASK)) - 1);
    (entry >> BASE_SHIFT) as usize + (bits >> (entry >> CODE_SHIFT & CODE_MASK)) as usize
}

impl<const SIZE: usize> Table<SIZE> {
    /// The entry of the next code. If it is in a further table, the bits of the first one are dropped and counted.
    #[inline(always)]
    fn entry(&self, buffer: &mut u64, used: &mut u32) -> u32 {
        let entry = self.entries[(*buffer & ((1 << self.bits) - 1)) as usize & (SIZE - 1)];
        if entry & FURTHER == 0 {
            return entry;
        }
        *buffer >>= self.bits;
        *used += self.bits;
        let index = *buffer & ((1 << (entry >> CODE_SHIFT & CODE_MASK)) - 1);
        self.entries[((entry >> BASE_SHIFT) as usize + index as usize) & (SIZE - 1)]
    }

    fn build(&mut self, lengths: &[u8], bits_max: u32, symbol: impl Fn(usize) -> u32) -> Result<(), BadCode> {
        const SYMBOLS_MAX: usize = 288;
        let lengths = &lengths[..lengths.len().min(SYMBOLS_MAX)];
        let mut counts = [0u16; CODE_BITS_MAX + 1];
        for &length in lengths {
            if length > 0 {
                counts[usize::from(length).min(CODE_BITS_MAX)] += 1;
            }
        }
        let longest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        // How many codes of each length are left; all of them must be in use.
        let mut left = 1i32;
        for &count in &counts[1..] {
            left = left * 2 - i32::from(count);
            if left < 0 {
                return Err(BadCode::Oversubscribed);
            }
        }
        if left > 0 && longest > 1 {
            return Err(BadCode::Incomplete);
        }
        self.bits = bits_max.min(longest.max(1) as u32);
        let first_size = 1usize << self.bits;
        if left > 0 {
            self.entries[..first_size].fill(OTHER | 1);
        }
        // Symbols in the order of their codes: by length, then by number.
        let mut offsets = [0u16; CODE_BITS_MAX + 2];
        for length in 1..=CODE_BITS_MAX {
            offsets[length + 1] = offsets[length] + counts[length];
        }
        let mut sorted = [0u16; SYMBOLS_MAX];
        for (number, &length) in lengths.iter().enumerate() {
            if length > 0 {
                let offset = &mut offsets[usize::from(length).min(CODE_BITS_MAX)];
                sorted[usize::from(*offset)] = number as u16;
                *offset += 1;
            }
        }
        // Codes are read from their highest bit on, so they are stored reversed.
        let (mut code, mut next) = (0usize, 0usize);
        let (mut further_start, mut further_bits, mut further_end) = (0usize, 0u32, first_size);
        let mut further_of = usize::MAX;
        for length in 1..=longest {
            for nth in 0..counts[length] {
                let entry = symbol(usize::from(sorted[next]));
                next += 1;
                if length as u32 <= self.bits {
                    // The extra bits were counted already.
                    let entry = entry + length as u32 + ((length as u32) << CODE_SHIFT);
                    self.entries[code & (SIZE - 1)] = entry;
                } else {
                    let first = code & (first_size - 1);
                    if first != further_of {
                        // As large as the codes with the same first bits need.
                        further_of = first;
                        further_start = further_end;
                        further_bits = length as u32 - self.bits;
                        let mut room = (1i32 << further_bits) - i32::from(counts[length] - nth);
                        while room > 0 && further_bits + self.bits < longest as u32 {
                            further_bits += 1;
                            room = room * 2 - i32::from(counts[(further_bits + self.bits) as usize]);
                        }
                        further_end = further_start + (1 << further_bits);
                        self.entries[first & (SIZE - 1)] = FURTHER
                            | OTHER
                            | (further_start as u32) << BASE_SHIFT
                            | further_bits << CODE_SHIFT;
                    }
                    let rest = length as u32 - self.bits;
                    let entry = entry + rest + (rest << CODE_SHIFT);
                    let mut at = code >> self.bits;
                    while at < 1 << further_bits {
                        self.entries[(further_start + at) & (SIZE - 1)] = entry;
                        at += 1 << rest;
                    }
                }
                code = next_code(code, length);
            }
            if (length as u32) < self.bits {
                // A short code is followed by arbitrary bits.
                self.entries.copy_within(..1 << length, 1 << length);
            }
        }
        Ok(())
    }
}

/// The code after one of `length` bits: one is added at the highest bit, because codes are stored reversed.
#[inline]
fn next_code(code: usize, length: usize) -> usize {
    let zeros = !code & ((1 << length) - 1);
    match zeros.checked_ilog2() {
        Some(highest) => code & ((1 << highest) - 1) | 1 << highest,
        None => 0,
    }
}
