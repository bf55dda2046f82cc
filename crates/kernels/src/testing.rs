//! What the tests share: a small random generator and naive bit packing.

use std::vec::Vec;

/// xorshift64*: seeded, repeatable.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 11) as usize % bound.max(1)
    }

    pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
        (0..n).map(|_| (self.next() >> 32) as u8).collect()
    }
}

/// Bit `i` of an LSB-first bitmap.
pub(crate) fn bit(bytes: &[u8], i: usize) -> bool {
    bytes[i / 8] >> (i % 8) & 1 == 1
}

/// Value `i` of an LSB-first bit-packed run, bit by bit.
pub(crate) fn packed(bytes: &[u8], width: usize, i: usize) -> u64 {
    (0..width).map(|k| (bit(bytes, i * width + k) as u64) << k).sum()
}

/// LSB-first bit packing, bit by bit.
pub(crate) fn pack(values: &[u64], width: usize) -> Vec<u8> {
    let mut out = std::vec![0u8; (values.len() * width).div_ceil(8)];
    for (i, value) in values.iter().enumerate() {
        for k in 0..width {
            let at = i * width + k;
            out[at / 8] |= ((value >> k & 1) as u8) << (at % 8);
        }
    }
    out
}

/// Fewer rounds under Miri, which is a thousand times slower.
pub(crate) const fn rounds(n: usize) -> usize {
    if cfg!(miri) { n.div_ceil(50) } else { n }
}
