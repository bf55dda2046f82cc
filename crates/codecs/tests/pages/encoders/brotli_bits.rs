//! Brotli streams that no encoder writes. RFC 7932, section 9.

/// Bits in Brotli's order: the least significant first.
#[derive(Default)]
pub(crate) struct Bits {
    pub(crate) bytes: Vec<u8>,
    pending: u64,
    count: u32,
}

impl Bits {
    /// A stream with a window of 2^24 bytes.
    pub(crate) fn stream() -> Bits {
        let mut bits = Bits::default();
        bits.push(0b1111, 4);
        bits
    }

    pub(crate) fn push(&mut self, value: u64, count: u32) {
        self.pending |= value << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.pending.to_le_bytes()[0]);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    fn align(&mut self) {
        self.push(0, (8 - self.count % 8) % 8);
    }

    /// The last metablock, which is empty; the stream.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.push(0b11, 2);
        self.align();
        self.bytes
    }

    /// A metablock that is not compressed.
    pub(crate) fn stored(&mut self, plain: &[u8]) {
        self.push(0, 1);
        self.length(plain.len());
        self.push(1, 1);
        self.align();
        self.bytes.extend_from_slice(plain);
    }

    /// A metablock of metadata, empty.
    pub(crate) fn metadata(&mut self) {
        self.push(0b00_0110, 6);
        self.align();
    }

    /// A metablock of one byte of metadata.
    pub(crate) fn metadata_byte(&mut self) {
        // Not the last; no nibbles; one byte says how long it is, less one.
        self.push(0b01_0110, 6);
        self.push(0, 8);
        self.align();
        self.push(0, 8);
    }

    /// A metablock of copies of two bytes, each from a place of its own, between `4 << log` and `6 << log` bytes back.
    pub(crate) fn far(&mut self, log: u32, distances: &[u64]) {
        self.push(0, 1);
        self.length(2 * distances.len());
        self.push(0, 1);
        self.push(0, 3 + 6 + 2 + 2);
        self.symbol(u64::from(b'x'), 8);
        // No literals, and a distance, whose symbol says that so many bits follow.
        self.symbol(128, 10);
        self.symbol(u64::from(16 + 2 * log), 6);
        distances.iter().for_each(|distance| self.push(distance & ((2 << log) - 1), log + 1));
    }

    fn length(&mut self, length: usize) {
        let length = u64::try_from(length - 1).unwrap();
        // In 4, 5 or 6 nibbles, the last of which must not be superfluous.
        let nibbles = (length.checked_ilog2().unwrap_or(0) / 4 + 1).max(4);
        self.push(u64::from(nibbles - 4), 2);
        self.push(length, 4 * nibbles);
    }

    /// The number of block types or trees.
    pub(crate) fn number(&mut self, number: u64) {
        if number == 1 {
            return self.push(0, 1);
        }
        let log = (number - 1).ilog2();
        self.push(1, 1);
        self.push(u64::from(log), 3);
        self.push(number - 1 - (1 << log), log);
    }

    /// A prefix code of one symbol, which then takes no bits.
    pub(crate) fn symbol(&mut self, symbol: u64, bits: u32) {
        self.push(0b00_01, 4);
        self.push(symbol, bits);
    }

    /// A metablock that becomes `length` bytes, of one block type and one tree of each kind. All its commands have one
    /// symbol, all its literals `x`, all its distances the last one.
    pub(crate) fn metablock(&mut self, length: usize, command: u64) {
        self.push(0, 1);
        self.length(length);
        self.push(0, 1);
        // No block types, no direct distances, one context mode, one tree each.
        self.push(0, 3 + 6 + 2 + 2);
        self.symbol(u64::from(b'x'), 8);
        self.symbol(command, 10);
        self.symbol(0, 6);
    }

    /// A metablock that becomes `length` bytes and switches block types whenever it can: of literals, commands and
    /// distances with `all`, otherwise only of literals. Each switch takes two bits, which follow here.
    pub(crate) fn switching(&mut self, length: usize, all: bool, command: u64, extra: u64, extra_bits: u32) {
        self.push(0, 1);
        self.length(length);
        self.push(0, 1);
        for two in [true, all, all] {
            self.number(if two { 2 } else { 1 });
            if two {
                // The other type; blocks of one, counted by code 0 with two bits.
                self.symbol(1, 2);
                self.symbol(0, 5);
                self.push(0, 2);
            }
        }
        self.push(0, 6 + 4 + 2);
        self.symbol(u64::from(b'x'), 8);
        (0..if all { 2 } else { 1 }).for_each(|_| self.symbol(command, 10));
        self.symbol(0, 6);
        self.push(extra, extra_bits);
        let changes = if all { length - 3 } else { length - 1 };
        (0..changes).for_each(|_| self.push(0, 2));
    }

    /// A metablock of one byte, with these numbers of block types of literals and of commands, and of trees of
    /// literals.
    pub(crate) fn wide(&mut self, literal_types: u64, command_types: u64, literal_trees: u64) {
        self.push(0, 1);
        self.length(1);
        self.push(0, 1);
        for types in [literal_types, command_types, 1] {
            self.number(types);
            if types > 1 {
                // Types switch to type 0, after 16,625 + 0 at first: symbol 25, with 24 bits.
                let alphabet = types + 1;
                self.symbol(2, alphabet.ilog2() + 1);
                self.symbol(25, 5);
                self.push(0, 24);
            }
        }
        self.push(0, 6);
        (0..literal_types).for_each(|_| self.push(0, 2));
        self.number(literal_trees);
        if literal_trees > 1 {
            // A context map of zeros, in one run if there are many.
            let contexts = 64 * literal_types;
            let run = contexts.ilog2();
            assert_eq!(contexts, 1 << run);
            self.push(1, 1);
            self.push(15, 4);
            self.symbol(u64::from(run), (literal_trees + 15).ilog2() + 1);
            self.push(0, run);
            self.push(1, 1);
        }
        self.number(1);
        (0..literal_trees).for_each(|_| self.symbol(u64::from(b'x'), 8));
        // One literal, then a copy that is never executed.
        (0..command_types).for_each(|_| self.symbol(8, 10));
        self.symbol(0, 6);
    }
}
