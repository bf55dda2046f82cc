//! Prefix codes: their descriptions (RFC 7932, section 3), and the tables that decode them.

use marquetry_base::cast::{low_u8, usize_of_u32};
use marquetry_kernels::lz::Bits;

use crate::block::Fault;

/// Prefix codes, by their numbers.
///
/// A code is a table indexed by the next eight bits, followed by tables for longer codes. An entry has the symbol in
/// bits 4 to 13 and the number of bits in the lowest four; or, if the highest bit is set, where the second table
/// starts, counted from the code's start, and the number of bits that index it.
#[derive(Debug, Default)]
pub(crate) struct Codes {
    entries: Vec<u16>,
    starts: Vec<u32>,
}

/// The longest code.
const CODE_BITS_MAX: usize = 15;

/// The largest alphabet: that of commands.
const SYMBOLS_MAX: usize = 704;

const FIRST_BITS: u32 = 8;
const FIRST_SIZE: usize = 1 << FIRST_BITS;
const FURTHER: u16 = 1 << 15;

impl Codes {
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.starts.clear();
    }

    /// Bytes of memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<u16>() + self.starts.capacity() * size_of::<u32>()
    }

    /// Where the code with this number starts, for [`Codes::symbol`].
    #[inline]
    pub(crate) fn start(&self, number: u8) -> usize {
        usize_of_u32(self.place(number))
    }

    /// The same, as it is stored.
    #[inline]
    pub(crate) fn place(&self, number: u8) -> u32 {
        self.starts.get(usize::from(number)).copied().unwrap_or(0)
    }

    /// The next symbol and its number of bits: more than are available if it is incomplete.
    #[inline(always)]
    pub(crate) fn symbol(&self, start: usize, buffer: u64) -> (u16, u32) {
        let entry = self.entries[start + usize::from(low_u8(buffer))];
        if entry & FURTHER == 0 {
            return (entry >> 4, u32::from(entry & 15));
        }
        let index = low_u8(buffer >> FIRST_BITS) & ((1 << (entry & 15)) - 1);
        let entry = self.entries[start + usize::from((entry & !FURTHER) >> 4) + usize::from(index)];
        (entry >> 4, FIRST_BITS + u32::from(entry & 15))
    }

    /// Reads a symbol of the code with this number. `None` if it is incomplete.
    pub(crate) fn read(&self, number: u8, bits: &mut Bits) -> Option<usize> {
        let (symbol, used) = self.symbol(self.start(number), bits.buffer);
        bits.take(used).then_some(usize::from(symbol))
    }

    /// Adds a code of one symbol, which takes no bits.
    fn push_single(&mut self, symbol: usize) {
        self.begin();
        self.entries.resize(self.entries.len() + FIRST_SIZE, entry(symbol, 0));
    }

    /// Adds a code with these code lengths, which must use up all bit patterns.
    fn push(&mut self, lengths: &[u8]) {
        let mut counts = [0u16; CODE_BITS_MAX + 1];
        for &length in lengths {
            counts[usize::from(length)] += 1;
        }
        counts[0] = 0;
        let longest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        let mut offsets = [0usize; CODE_BITS_MAX + 2];
        for length in 1..=CODE_BITS_MAX {
            offsets[length + 1] = offsets[length] + usize::from(counts[length]);
        }
        let mut sorted = [0usize; SYMBOLS_MAX];
        for (symbol, &length) in lengths.iter().enumerate() {
            if length > 0 {
                let offset = &mut offsets[usize::from(length)];
                sorted[*offset] = symbol;
                *offset += 1;
            }
        }
        self.begin();
        let start = self.entries.len();
        self.entries.resize(start + FIRST_SIZE, 0);
        // Codes are read from their highest bit on, so they are stored reversed.
        let (mut code, mut next) = (0usize, 0);
        let (mut further_of, mut further_start, mut further_bits) = (usize::MAX, 0, 0);
        for length in 1..=longest {
            for nth in 0..counts[length] {
                let symbol = sorted[next];
                next += 1;
                if length <= 8 {
                    self.entries[start + code] = entry(symbol, length);
                } else {
                    let first = code & (FIRST_SIZE - 1);
                    if first != further_of {
                        // As large as the codes with the same first bits need.
                        (further_of, further_start, further_bits) =
                            (first, self.entries.len() - start, length - 8);
                        let mut room = (1i32 << further_bits) - i32::from(counts[length] - nth);
                        while room > 0 && further_bits + 8 < longest {
                            further_bits += 1;
                            room = room * 2 - i32::from(counts[further_bits + 8]);
                        }
                        self.entries.resize(start + further_start + (1 << further_bits), 0);
                        self.entries[start + first] = FURTHER | entry(further_start, further_bits);
                    }
                    let mut at = code >> 8;
                    while at < 1 << further_bits {
                        self.entries[start + further_start + at] = entry(symbol, length - 8);
                        at += 1 << (length - 8);
                    }
                }
                code = next_code(code, length);
            }
            if length < 8 {
                // A short code is followed by arbitrary bits.
                self.entries.copy_within(start..start + (1 << length), start + (1 << length));
            }
        }
        for length in longest + 1..8 {
            self.entries.copy_within(start..start + (1 << length), start + (1 << length));
        }
    }

    fn begin(&mut self) {
        self.starts.push(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
    }
}

fn entry(value: usize, bits: usize) -> u16 {
    u16::try_from(value << 4 | bits).unwrap_or(0)
}

/// The code after one of `length` bits: one is added at the highest bit, because codes are stored reversed.
fn next_code(code: usize, length: usize) -> usize {
    let zeros = !code & ((1 << length) - 1);
    match zeros.checked_ilog2() {
        Some(highest) => code & ((1 << highest) - 1) | 1 << highest,
        None => 0,
    }
}

/// Reads a code's description, resumably.
#[derive(Debug)]
pub(crate) struct CodeReader {
    expect: Expect,
    /// The lengths of the codes of lengths.
    code_lengths: [u8; CODE_LENGTHS_ORDER.len()],
    /// The code of lengths: for each five bits, the symbol and its number of bits.
    lengths_code: [(u8, u8); 1 << CODE_LENGTH_BITS_MAX],
    lengths: [u8; SYMBOLS_MAX],
}

#[derive(Debug, Clone, Copy)]
enum Expect {
    /// The kind of description, and a simple one.
    Start,
    /// The lengths of the codes of lengths, from this one on. `space` is what they leave of 32.
    CodeLengths { at: usize, space: i32, codes: usize },
    /// The lengths, from this symbol's on. `space` is what they leave of 32,768.
    Lengths { symbol: usize, space: i32, previous: u8, repeat: usize, repeated: u8 },
}

/// The order in which the code lengths of the code of lengths are stored.
const CODE_LENGTHS_ORDER: [u8; 18] = [1, 2, 3, 4, 0, 5, 17, 6, 16, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const CODE_LENGTH_BITS_MAX: usize = 5;

/// The code that those lengths are written in, for each four bits: the length, and the number of bits.
const CODE_LENGTHS_CODE: [(u8, u32); 16] = [
    (0, 2),
    (4, 2),
    (3, 2),
    (2, 3),
    (0, 2),
    (4, 2),
    (3, 2),
    (1, 4),
    (0, 2),
    (4, 2),
    (3, 2),
    (2, 3),
    (0, 2),
    (4, 2),
    (3, 2),
    (5, 4),
];

const SPACE: i32 = 32;
const LENGTHS_SPACE: i32 = 1 << CODE_BITS_MAX;

/// The assumed length before the first one, for repetitions.
const PREVIOUS: u8 = 8;

/// Symbols of the code of lengths that repeat the length before, or zero.
const REPEAT_PREVIOUS: usize = 16;

/// The cost of adding a code, in elements.
pub(crate) const CODE_ELEMENTS: usize = 60;

impl Default for CodeReader {
    fn default() -> CodeReader {
        CodeReader {
            expect: Expect::Start,
            code_lengths: [0; CODE_LENGTHS_ORDER.len()],
            lengths_code: [(0, 0); 1 << CODE_LENGTH_BITS_MAX],
            lengths: [0; SYMBOLS_MAX],
        }
    }
}

impl CodeReader {
    /// Forgets a description half read.
    pub(crate) fn reset(&mut self) {
        self.expect = Expect::Start;
    }

    /// Continues to read the description of a code of `symbols` symbols; true once it was added to `codes`. `fill`
    /// reads more bits; if there are too few, the next call continues.
    pub(crate) fn read(
        &mut self,
        symbols: usize,
        bits: &mut Bits,
        mut fill: impl FnMut(&mut Bits),
        codes: &mut Codes,
        elements: &mut usize,
    ) -> Result<bool, Fault> {
        loop {
            fill(bits);
            let mut ahead = *bits;
            match self.expect {
                Expect::Start => {
                    let Some(kind) = number(&mut ahead, 2) else { return Ok(false) };
                    if kind == 1 {
                        let Some(simple) = simple(symbols, &mut ahead) else { return Ok(false) };
                        *bits = ahead;
                        *elements += CODE_ELEMENTS;
                        self.add_simple(simple, symbols, codes)?;
                        return Ok(true);
                    }
                    self.code_lengths.fill(0);
                    self.expect = Expect::CodeLengths { at: kind, space: SPACE, codes: 0 };
                }
                Expect::CodeLengths { at, space, codes: found } => {
                    if at == CODE_LENGTHS_ORDER.len() || space <= 0 {
                        if found != 1 && space != 0 {
                            return Err(Fault::Malformed("the lengths of a prefix code have a bad code"));
                        }
                        self.make_lengths_code(found);
                        self.lengths[..symbols].fill(0);
                        *elements += CODE_ELEMENTS / 4;
                        self.expect = Expect::Lengths {
                            symbol: 0,
                            space: LENGTHS_SPACE,
                            previous: PREVIOUS,
                            repeat: 0,
                            repeated: 0,
                        };
                        continue;
                    }
                    let (length, used) = CODE_LENGTHS_CODE[usize::from(ahead.buffer.to_le_bytes()[0] & 15)];
                    if !ahead.take(used) {
                        return Ok(false);
                    }
                    self.code_lengths[usize::from(CODE_LENGTHS_ORDER[at])] = length;
                    let (space, found) =
                        if length > 0 { (space - (SPACE >> length), found + 1) } else { (space, found) };
                    self.expect = Expect::CodeLengths { at: at + 1, space, codes: found };
                }
                Expect::Lengths { symbol, space, .. } if symbol == symbols || space <= 0 => {
                    if space != 0 {
                        return Err(Fault::Malformed("a prefix code's lengths make no code"));
                    }
                    *elements += CODE_ELEMENTS + symbols / 8;
                    codes.push(&self.lengths[..symbols]);
                    self.expect = Expect::Start;
                    return Ok(true);
                }
                Expect::Lengths { .. } => {
                    *elements += 1;
                    if !self.length(symbols, &mut ahead)? {
                        return Ok(false);
                    }
                }
            }
            *bits = ahead;
        }
    }

    /// Reads a length, or a repetition; false if there are too few bits.
    fn length(&mut self, symbols: usize, bits: &mut Bits) -> Result<bool, Fault> {
        let Expect::Lengths { symbol, space, previous, repeat, repeated } = self.expect else {
            return Ok(false);
        };
        let (code, used) = self.lengths_code[usize::from(bits.buffer.to_le_bytes()[0] & 31)];
        if !bits.take(used.into()) {
            return Ok(false);
        }
        let code_number = usize::from(code);
        if code_number < REPEAT_PREVIOUS {
            self.lengths[symbol] = code;
            let (space, previous) = match code {
                0 => (space, previous),
                _ => (space - (LENGTHS_SPACE >> code), code),
            };
            self.expect = Expect::Lengths { symbol: symbol + 1, space, previous, repeat: 0, repeated };
            return Ok(true);
        }
        let (length, extra) = if code_number == REPEAT_PREVIOUS { (previous, 2) } else { (0, 3) };
        let Some(more) = number(bits, extra) else { return Ok(false) };
        // A repetition that follows one of the same length multiplies it.
        let before = if length == repeated { repeat } else { 0 };
        let times = if before > 0 { (before - 2) << extra } else { 0 } + more + 3;
        let added = times - before;
        let Some(lengths) = self.lengths[..symbols].get_mut(symbol..symbol + added) else {
            return Err(Fault::Malformed("a prefix code has more lengths than symbols"));
        };
        lengths.fill(length);
        let taken = match length {
            0 => 0,
            _ => i32::try_from(added).unwrap_or(i32::MAX / 2).saturating_mul(LENGTHS_SPACE >> length),
        };
        self.expect = Expect::Lengths {
            symbol: symbol + added,
            space: space.saturating_sub(taken),
            previous,
            repeat: times,
            repeated: length,
        };
        Ok(true)
    }

    fn make_lengths_code(&mut self, codes: usize) {
        if codes == 1 {
            let symbol = self.code_lengths.iter().position(|&length| length > 0).unwrap_or(0);
            self.lengths_code.fill((u8::try_from(symbol).unwrap_or(0), 0));
            return;
        }
        let mut code = 0;
        for length in 1..=CODE_LENGTH_BITS_MAX {
            for (symbol, _) in
                self.code_lengths.iter().enumerate().filter(|&(_, &l)| usize::from(l) == length)
            {
                let entry = (u8::try_from(symbol).unwrap_or(0), u8::try_from(length).unwrap_or(0));
                self.lengths_code.iter_mut().skip(code).step_by(1 << length).for_each(|to| *to = entry);
                code = next_code(code, length);
            }
        }
    }

    fn add_simple(&mut self, simple: Simple, symbols: usize, codes: &mut Codes) -> Result<(), Fault> {
        let Simple { symbols: chosen, count, deep } = simple;
        let chosen = &chosen[..count];
        let twice = |at: usize| chosen[..at].contains(&chosen[at]);
        if (0..count).any(|at| chosen[at] >= symbols || twice(at)) {
            return Err(Fault::Malformed("a prefix code has a repeated symbol, or one out of range"));
        }
        let lengths: &[u8] = match (count, deep) {
            (1, _) => {
                codes.push_single(chosen[0]);
                return Ok(());
            }
            (2, _) => &[1, 1],
            (3, _) => &[1, 2, 2],
            (_, false) => &[2, 2, 2, 2],
            (_, true) => &[1, 2, 3, 3],
        };
        self.lengths[..symbols].fill(0);
        for (&symbol, &length) in chosen.iter().zip(lengths) {
            self.lengths[symbol] = length;
        }
        codes.push(&self.lengths[..symbols]);
        Ok(())
    }
}

/// A code of one to four symbols.
struct Simple {
    symbols: [usize; 4],
    count: usize,
    /// Four symbols, of which one has a code of one bit.
    deep: bool,
}

fn simple(symbols: usize, bits: &mut Bits) -> Option<Simple> {
    let count = number(bits, 2)? + 1;
    let width = usize::BITS - (symbols - 1).leading_zeros();
    let mut chosen = [0; 4];
    for symbol in &mut chosen[..count] {
        *symbol = number(bits, width)?;
    }
    let deep = count == 4 && number(bits, 1)? == 1;
    Some(Simple { symbols: chosen, count, deep })
}

/// The next `count` bits, at most 32. `None` if there are fewer.
pub(crate) fn number(bits: &mut Bits, count: u32) -> Option<usize> {
    let value = bits.buffer & ((1 << count) - 1);
    bits.take(count).then(|| usize::try_from(value).unwrap_or(usize::MAX))
}
