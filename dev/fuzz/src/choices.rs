//! Arbitrary bytes as choices.

use marquetry_conformance::hostile::Random;

/// Choices, made of bytes from the first on. Where none are left, each choice is 0, which always is the plainest one: so every
/// input means something, and a shorter one something simpler.
#[derive(Debug, Clone)]
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    /// Choices by these bytes.
    pub fn new(bytes: &'a [u8]) -> Choices<'a> {
        Choices { bytes }
    }

    /// True when all further choices are 0.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((&first, rest)) => {
                self.bytes = rest;
                first
            }
            None => 0,
        }
    }

    /// A word of up to eight bytes, little-endian.
    pub fn word(&mut self, bytes: usize) -> u64 {
        (0..bytes).fold(0, |word, at| word | u64::from(self.byte()) << (8 * at))
    }

    /// A number below `bound`, of as many bytes as that has; 0 where it is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bytes = match bound {
            0 | 1 => 0,
            2..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        };
        (self.word(bytes) as usize).checked_rem(bound).unwrap_or(0)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u8) -> bool {
        self.byte() % times.max(1) == times.max(1) - 1
    }

    /// One of several, the first the plainest.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    /// A number of any magnitude, mostly one that stands at the edge of something.
    pub fn number(&mut self) -> i64 {
        const EDGES: [i64; 16] = [
            0,
            1,
            -1,
            i8::MAX as i64,
            i8::MIN as i64,
            255,
            256,
            i16::MAX as i64,
            u16::MAX as i64,
            i32::MAX as i64,
            i32::MIN as i64,
            u32::MAX as i64,
            i64::MAX,
            i64::MIN,
            1 << 40,
            (1 << 31) + 7,
        ];
        match self.byte() % 6 {
            0 => i64::from(self.byte() as i8),
            1 => EDGES[self.below(EDGES.len())],
            2 => 1i64.wrapping_shl(self.byte().into()).wrapping_add(i64::from(self.byte() % 3) - 1),
            3 => i64::from(self.word(2) as i16),
            4 => i64::from(self.word(4) as i32),
            _ => self.word(8) as i64,
        }
    }

    /// Bytes as they stand, at most so many.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let length = self.below(most + 1).min(self.bytes.len());
        let (taken, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        taken
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.bytes)
    }

    /// Random numbers, where there are too many choices for the input to have them all.
    pub fn random(&mut self) -> Random {
        let mut random = Random(self.word(3) << 8 | 0x51);
        random.number();
        random
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_end_in_zeros() {
        let mut choices = Choices::new(&[7, 3, 1, 2]);
        assert_eq!(choices.below(5), 2);
        assert!(choices.once_in(4));
        assert_eq!(choices.below(1000), 513);
        assert!(choices.is_empty());
        assert_eq!((choices.number(), choices.below(9), choices.bytes(4)), (0, 0, &[][..]));
        assert!(!choices.once_in(2));
        assert_eq!(choices.random().number(), choices.random().number());
    }
}
