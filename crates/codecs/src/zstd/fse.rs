//! Finite state entropy: distributions, and the tables that are built of them. RFC 8878, section 4.1.

use marquetry_base::cast::bits_i32;

/// The most symbols of a distribution: those of weights of a Huffman tree, of which more would not fit the library's
/// memory for a table of 32 states.
pub(super) const SYMBOLS_MAX: usize = 92;

/// The smallest table, as a power of two.
const LOG_MIN: u32 = 5;
/// The largest that a description can name.
const LOG_MAX: u32 = 15;

/// How often each symbol occurs in a table of `1 << log` states; -1 stands for less than once.
#[derive(Debug)]
pub(super) struct Distribution {
    counts: [i16; SYMBOLS_MAX],
    pub(super) symbols: usize,
    pub(super) log: u32,
}

impl Distribution {
    /// Reads a description, of at most `symbols_max` symbols, at the start of `bytes`. Returns it and its length; `None`
    /// if it is invalid.
    ///
    /// As the library does it to the letter: a description that ends with its block is read as if its last four bytes
    /// were followed by themselves, and the library may take what comes of it.
    pub(super) fn read(bytes: &[u8], symbols_max: usize) -> Option<(Distribution, usize)> {
        let mut padded = [0; 8];
        let length = bytes.len();
        let bytes = match padded.get_mut(..length) {
            Some(start) => {
                start.copy_from_slice(bytes);
                &padded[..]
            }
            None => bytes,
        };
        let mut reader = Reader { bytes, at: 0, bits: 0, used: 0 };
        reader.load();
        let log = (reader.bits & 15) + LOG_MIN;
        if log > LOG_MAX {
            return None;
        }
        reader.skip(4);
        let mut counts = [0; SYMBOLS_MAX];
        // What is left of the table, and one.
        let (mut left, mut threshold, mut width) = ((1i32 << log) + 1, 1i32 << log, log + 1);
        let (mut symbol, mut is_zero) = (0, false);
        loop {
            if is_zero {
                symbol += reader.zeros();
                if symbol >= symbols_max {
                    return None;
                }
                reader.advance();
            }
            let most = 2 * threshold - 1 - left;
            let low = bits_i32(reader.bits & ((1 << (width - 1)) - 1));
            let is_short = low < most;
            let is_high = !is_short && reader.bits >> (width - 1) & 1 == 1;
            reader.used += if is_short { width - 1 } else { width };
            let count = if is_high { low + threshold - most } else { low } - 1;
            left -= count.abs();
            *counts.get_mut(symbol).filter(|_| symbol < symbols_max)? = i16::try_from(count).ok()?;
            symbol += 1;
            is_zero = count == 0;
            if left < threshold {
                if left <= 1 {
                    break;
                }
                width = left.ilog2() + 1;
                threshold = 1 << (width - 1);
            }
            if symbol >= symbols_max {
                return None;
            }
            reader.advance();
        }
        if left != 1 || reader.used > 32 {
            return None;
        }
        let read = reader.at + usize::try_from(reader.used.div_ceil(8)).unwrap_or(usize::MAX);
        (read <= length).then_some((Distribution { counts, symbols: symbol, log }, read))
    }

    /// A known one.
    pub(super) fn of(known: &[i16], log: u32) -> Distribution {
        let mut counts = [0; SYMBOLS_MAX];
        counts[..known.len()].copy_from_slice(known);
        Distribution { counts, symbols: known.len(), log }
    }
}

/// The bits of a description: the next one is the lowest.
struct Reader<'bytes> {
    bytes: &'bytes [u8],
    /// Where the last four bytes were loaded from.
    at: usize,
    /// What is left of them.
    bits: u32,
    /// Bits of them that are read.
    used: u32,
}

impl Reader<'_> {
    fn load(&mut self) {
        let word = self.bytes.get(self.at..).and_then(|bytes| bytes.first_chunk());
        self.bits = word.map_or(0, |&word| u32::from_le_bytes(word)) >> self.used;
    }

    fn skip(&mut self, bits: u32) {
        self.bits >>= bits;
        self.used += bits;
    }

    /// Loads what follows the bits that are read; near the end, the last four bytes.
    fn advance(&mut self) {
        let (bytes, last) = (usize::try_from(self.used >> 3).unwrap_or(0), self.bytes.len() - 4);
        if self.at + bytes <= last {
            self.at += bytes;
            self.used &= 7;
        } else {
            self.end(last - self.at);
        }
        self.load();
    }

    /// The last four bytes, `bytes` further on, are the ones to read from.
    fn end(&mut self, bytes: usize) {
        let bits = u32::try_from(8 * bytes).unwrap_or(0);
        self.used = self.used.wrapping_sub(bits) & 31;
        self.at += bytes;
    }

    /// The number of symbols that do not occur: threes, and what is less.
    fn zeros(&mut self) -> usize {
        /// More threes are not read from four bytes at once.
        const THREES_MAX: u32 = 12;
        let threes = |bits: u32| (!bits | 1 << 31).trailing_zeros() >> 1;
        let mut symbols = 0;
        while threes(self.bits) >= THREES_MAX && symbols <= SYMBOLS_MAX {
            symbols += 3 * 12;
            if self.at + 7 <= self.bytes.len() {
                self.at += 3;
            } else {
                // Three bytes further on would be beyond the last four: so much more of those is read.
                let last = self.bytes.len() - 4;
                self.used = (self.used + u32::try_from(8 * (self.at + 3 - last)).unwrap_or(0)) & 31;
                self.at = last;
            }
            self.load();
        }
        let more = threes(self.bits);
        symbols += 3 * usize::try_from(more).unwrap_or(0);
        self.skip(2 * more);
        symbols += usize::try_from(self.bits & 3).unwrap_or(0);
        self.used += 2;
        symbols
    }
}

/// A state of a table: what it stands for, and what follows it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    /// The least value; as many bits as `more` says are added.
    pub(super) base: u32,
    /// The next state; as many bits as `bits` says are added.
    pub(super) next: u16,
    pub(super) more: u8,
    pub(super) bits: u8,
}

/// The most states of a table.
pub(super) const STATES_MAX: usize = 512;

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    states: Box<[State; STATES_MAX]>,
    pub(super) log: u8,
}

impl Default for Table {
    fn default() -> Table {
        Table { states: Box::new([State::default(); STATES_MAX]), log: 0 }
    }
}

impl Table {
    /// The state of this number, which is below `1 << log`.
    #[inline(always)]
    pub(super) fn state(&self, number: usize) -> &State {
        &self.states[number % STATES_MAX]
    }

    /// Makes it a table of one state, whose value is always the same.
    pub(super) fn set_single(&mut self, (base, more): (u32, u8)) {
        self.states[0] = State { base, next: 0, more, bits: 0 };
        self.log = 0;
    }

    /// Builds it of a distribution, whose table has at most [`STATES_MAX`] states. `values` are the least values of the
    /// symbols, and the bits that are added to them.
    pub(super) fn build(&mut self, distribution: &Distribution, value: impl Fn(usize) -> (u32, u8)) {
        let Distribution { counts, symbols, log } = distribution;
        let counts = &counts[..*symbols];
        let size = 1usize << log;
        let states = &mut self.states[..size];
        let mut next = [0u16; SYMBOLS_MAX];
        // Symbols that occur less than once are at the end.
        let mut end = size;
        for (symbol, &count) in (0u32..).zip(counts) {
            if count < 0 {
                end -= 1;
                states[end].base = symbol;
            }
            next[usize::try_from(symbol).unwrap_or(0)] = count.unsigned_abs();
        }
        let (step, mut at) = ((size >> 1) + (size >> 3) + 3, 0);
        for (symbol, &count) in (0u32..).zip(counts) {
            for _ in 0..count.max(0) {
                states[at].base = symbol;
                at = (at + step) & (size - 1);
                while at >= end {
                    at = (at + step) & (size - 1);
                }
            }
        }
        for state in states {
            let symbol = usize::try_from(state.base).unwrap_or(0);
            let number = next[symbol];
            next[symbol] += 1;
            let bits = log - number.checked_ilog2().unwrap_or(0);
            let (base, more) = value(symbol);
            let next = (u32::from(number) << bits).wrapping_sub(1 << log);
            let [low, high, ..] = next.to_le_bytes();
            let [bits, ..] = bits.to_le_bytes();
            *state = State { base, next: u16::from_le_bytes([low, high]), more, bits };
        }
        [self.log, ..] = log.to_le_bytes();
    }
}
