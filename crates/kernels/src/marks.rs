//! Where four bytes are in a text, 64 bytes at a time.
//!
//! Source: Langdale and Lemire, "Parsing Gigabytes of JSON per Second", VLDB Journal 28 (2019), 3.1, for masks of
//! structural characters and the prefix sum of quotes.
//!
//! Speed: four comparisons for each register of bytes bound it, and the stores of the masks.
//! `docs/bench/kernels.md` has its distance from a copy of as many bytes (`make bench-kernels`).
//!
//! NEON: counted in its loop, not measured, a byte takes 0.9 instructions.

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(target_arch = "aarch64")]
mod neon;

use crate::cpu::{Isa, dispatch, isa};

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 64;

/// Finds the bytes in as many whole blocks of `text` as there are, and `out` has room for; returns how many. In each mask of `out[i]`, bit
/// `n` stands for byte `n` of block `i`.
#[must_use]
pub fn find(text: &[u8], bytes: [u8; 4], out: &mut [[u64; 4]]) -> usize {
    find_with(isa(), text, bytes, out)
}

/// For each bit, whether the number of bits that are set up to and including it is odd.
#[inline]
#[must_use]
pub fn parity(bits: u64) -> u64 {
    (0..6).fold(bits, |bits, shift| bits ^ (bits << (1 << shift)))
}

fn find_with(isa: Isa, text: &[u8], bytes: [u8; 4], out: &mut [[u64; 4]]) -> usize {
    let (blocks, _) = text.as_chunks::<BLOCK_BYTES>();
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::find_avx512(blocks, bytes, out),
        avx2: x86::find_avx2(blocks, bytes, out),
        neon: neon::find(blocks, bytes, out),
        portable: find_baseline(blocks, bytes, out),
    );
    blocks.len().min(out.len())
}

/// What every processor of the target has.
fn find_baseline(blocks: &[[u8; BLOCK_BYTES]], bytes: [u8; 4], out: &mut [[u64; 4]]) {
    #[cfg(target_arch = "x86_64")]
    x86::find_sse2(blocks, bytes, out);
    #[cfg(not(target_arch = "x86_64"))]
    find_portable(blocks, bytes, out);
}

#[cfg(any(not(target_arch = "x86_64"), test))]
fn find_portable(blocks: &[[u8; BLOCK_BYTES]], bytes: [u8; 4], out: &mut [[u64; 4]]) {
    for (block, masks) in blocks.iter().zip(out) {
        let (words, _) = block.as_chunks::<8>();
        for (byte, mask) in bytes.iter().zip(masks) {
            *mask = words.iter().rev().fold(0, |mask, word| {
                let equal = zeros(u64::from_le_bytes(*word) ^ (u64::from(*byte) * ONES));
                // The highest bits of the bytes, in the highest byte.
                mask << 8 | ((equal >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56)
            });
        }
    }
}

/// Eight bytes of 1.
pub const ONES: u64 = u64::MAX / 255;

/// The highest bit of each byte that is zero, and of no other byte.
#[inline]
#[must_use]
pub fn zeros(word: u64) -> u64 {
    const LOW: u64 = 0x7f * ONES;
    !(((word & LOW) + LOW) | word | LOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn bits_stand_for_bytes() {
        let mut random = Random::new(83);
        for _ in 0..rounds(300) {
            let length = random.below(300);
            let text: Vec<u8> = (0..length)
                .map(|_| [b',', b'"', b'\n', 0x80, random.next() as u8][random.below(5)])
                .collect();
            let bytes = [b',', b'"', b'\r', [b'\n', 0x80, 0][random.below(3)]];
            for isa in Isa::all().into_iter().map(Some).chain([None]) {
                for room in [0, 1, 3, 5] {
                    let mut out = vec![[7; 4]; room];
                    let found = match isa {
                        Some(isa) => find_with(isa, &text, bytes, &mut out),
                        None => {
                            find_portable(text.as_chunks().0, bytes, &mut out);
                            (length / 64).min(room)
                        }
                    };
                    assert_eq!(found, (length / 64).min(room));
                    for (masks, block) in out[..found].iter().zip(text.chunks(64)) {
                        for (byte, mask) in bytes.iter().zip(masks) {
                            let expected =
                                block.iter().rev().fold(0, |bits, b| bits << 1 | u64::from(b == byte));
                            assert_eq!(*mask, expected, "{isa:?}");
                        }
                    }
                    assert!(out[found..].iter().all(|masks| *masks == [7; 4]));
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_zero() {
        for byte in 0..=255_u8 {
            for place in 0..8 {
                let mut bytes = [0x80, 1, 0x7f, 0xff, 2, 0x81, 3, 0xfe];
                bytes[place] = byte;
                let found = zeros(u64::from_le_bytes(bytes));
                assert_eq!(found, if byte == 0 { 0x80 << (8 * place) } else { 0 });
            }
        }
    }

    #[test]
    fn parities() {
        for bits in [0, 1, 0b1001, 0b11, u64::MAX, 1 << 63, 0x1234_5678_9abc_def0] {
            let expected = (0..64).fold(0, |all, bit| {
                all | u64::from((bits & (u64::MAX >> (63 - bit))).count_ones() % 2) << bit
            });
            assert_eq!(parity(bits), expected, "{bits:x}");
        }
    }
}
