//! Every implementation compared with bit-by-bit unpacking.

use super::*;
use crate::testing::{Random, packed, rounds};
use std::vec;
use std::vec::Vec;

/// Exactly the required bytes, so that a read beyond them is a read beyond an allocation.
fn exact(bytes: &[u8], width: u32, values: usize) -> Vec<u8> {
    bytes[..(values * width as usize).div_ceil(8)].to_vec()
}

#[test]
fn u32_every_width_length_and_start() {
    let mut random = Random::new(1);
    let bytes = random.bytes(32 * 200 / 8 + 64);
    let lengths: Vec<usize> =
        if cfg!(miri) { vec![0, 1, 7, 33] } else { (0..80).chain([127, 150]).collect() };
    for isa in Isa::all() {
        for width in (0..=32).step_by(if cfg!(miri) { 5 } else { 1 }) {
            let oracle: Vec<u32> = (0..180).map(|i| packed(&bytes, width as usize, i) as u32).collect();
            for &length in &lengths {
                for first in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 24] {
                    let input = exact(&bytes, width, first + length);
                    let mut out = vec![u32::MAX; length];
                    u32_with(isa, width, &input, first, &mut out).unwrap();
                    assert_eq!(out, oracle[first..first + length], "{isa:?} {width} {first}");
                }
            }
        }
    }
}

#[test]
fn u8_every_width_length_and_start() {
    let mut random = Random::new(7);
    let bytes = random.bytes(8 * 330 / 8);
    let lengths: Vec<usize> = if cfg!(miri) { vec![0, 1, 9, 70] } else { (0..=200).chain([300]).collect() };
    let mut shifted = vec![0; bytes.len() + 8];
    for isa in Isa::all() {
        for width in 0..=8 {
            let oracle: Vec<u8> = (0..330).map(|i| packed(&bytes, width as usize, i) as u8).collect();
            for &length in &lengths {
                for first in [0, 1, 2, 5, 7, 8, 9, 24] {
                    let input = exact(&bytes, width, first + length);
                    // Not a byte is written before or after the values.
                    let mut out = vec![0xa5; length + 80];
                    u8_with(isa, width, &input, first, &mut out[40..40 + length]).unwrap();
                    assert_eq!(
                        out[40..40 + length],
                        oracle[first..first + length],
                        "{isa:?} {width} {first}"
                    );
                    assert!(out[..40].iter().chain(&out[40 + length..]).all(|&byte| byte == 0xa5));
                    // From any address, with bytes to spare.
                    let at = length % 8;
                    shifted[at..at + bytes.len()].copy_from_slice(&bytes);
                    let mut out = vec![0xa5; length];
                    u8_with(isa, width, &shifted[at..], first, &mut out).unwrap();
                    assert_eq!(out, oracle[first..first + length], "{isa:?} {width} {first}");
                }
            }
        }
    }
    assert_eq!(u8_from(9, &bytes, 0, &mut [0]), Err(Error::Width { width: 9 }));
    assert_eq!(u8_from(3, &bytes[..2], 3, &mut [0; 3]), Err(Error::Short { needed: 3, given: 2 }));
}

#[test]
fn u64_every_width_length_and_start() {
    let mut random = Random::new(2);
    let bytes = random.bytes(64 * 120 / 8 + 64);
    let lengths: Vec<usize> = if cfg!(miri) { vec![0, 1, 9, 17] } else { (0..41).chain([64, 100]).collect() };
    for isa in Isa::all() {
        for width in (0..=64).step_by(if cfg!(miri) { 9 } else { 1 }) {
            let oracle: Vec<u64> = (0..120).map(|i| packed(&bytes, width as usize, i)).collect();
            for &length in &lengths {
                for first in [0, 1, 3, 6, 7, 8, 13] {
                    let input = exact(&bytes, width, first + length);
                    let mut out = vec![u64::MAX; length];
                    u64_with(isa, width, &input, first, &mut out).unwrap();
                    assert_eq!(out, oracle[first..first + length], "{isa:?} {width} {first}");
                }
            }
        }
    }
}

#[test]
fn long_runs_with_bytes_to_spare() {
    let mut random = Random::new(3);
    for _ in 0..rounds(200) {
        let bytes = random.bytes(9000);
        let width = random.below(33) as u32;
        let count = random.below(2000);
        let first = random.below(200);
        for isa in Isa::all() {
            let mut out = vec![0; count];
            u32_with(isa, width, &bytes, first, &mut out).unwrap();
            for (i, value) in out.iter().enumerate() {
                assert_eq!(u64::from(*value), packed(&bytes, width as usize, first + i));
            }
            let mut wide = vec![0; count / 2];
            u64_with(isa, width * 2, &bytes, first / 2, &mut wide).unwrap();
            for (i, value) in wide.iter().enumerate() {
                assert_eq!(*value, packed(&bytes, width as usize * 2, first / 2 + i));
            }
        }
    }
}

#[test]
fn msb_first() {
    // Encodings.md: the numbers 0 to 7 at width 3, packed from the most significant bit.
    let mut out = [0u16; 8];
    msb_u16(3, &[0b0000_0101, 0b0011_1001, 0b0111_0111], 0, &mut out).unwrap();
    assert_eq!(out, [0, 1, 2, 3, 4, 5, 6, 7]);
    let mut random = Random::new(5);
    let bytes = random.bytes(200);
    for width in 0..=16usize {
        for first in 0..10 {
            let count = 70;
            let mut out = vec![9u16; count];
            msb_u16(width as u32, &bytes[..((first + count) * width).div_ceil(8)], first, &mut out).unwrap();
            for (i, value) in out.iter().enumerate() {
                let naive = (0..width).fold(0u16, |value, k| {
                    let bit = (first + i) * width + k;
                    value << 1 | u16::from(bytes[bit / 8] >> (7 - bit % 8) & 1)
                });
                assert_eq!(*value, naive);
            }
        }
    }
}

#[test]
fn too_short_and_too_wide_are_refused_untouched() {
    for isa in Isa::all() {
        for width in 1..=32 {
            for length in 1..40 {
                let needed = (length * width as usize).div_ceil(8);
                let mut out = vec![7u32; length];
                let short = u32_with(isa, width, &vec![0; needed - 1], 0, &mut out);
                assert_eq!(short, Err(Error::Short { needed, given: needed - 1 }));
                assert!(out.iter().all(|&value| value == 7));
            }
        }
        assert_eq!(u32_with(isa, 33, &[0; 100], 0, &mut [0; 4]), Err(Error::Width { width: 33 }));
        assert_eq!(u64_with(isa, 65, &[0; 100], 0, &mut [0; 4]), Err(Error::Width { width: 65 }));
        let far = u32_with(isa, 8, &[0; 100], usize::MAX / 4, &mut [0; 4]);
        assert!(matches!(far, Err(Error::Short { .. })));
        let overflow = u64_with(isa, 64, &[0; 100], usize::MAX - 2, &mut [0; 4]);
        assert_eq!(overflow, Err(Error::Short { needed: usize::MAX, given: 100 }));
    }
    assert_eq!(msb_u16(17, &[0; 9], 0, &mut [0; 1]), Err(Error::Width { width: 17 }));
    assert_eq!(msb_u16(4, &[0; 1], 1, &mut [0; 2]), Err(Error::Short { needed: 2, given: 1 }));
}
