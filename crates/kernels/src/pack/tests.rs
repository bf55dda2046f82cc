//! Every implementation compared with bit-by-bit packing.

use super::*;
use crate::testing::{Random, pack, rounds};
use std::vec;
use std::vec::Vec;

fn lengths() -> impl Iterator<Item = usize> {
    let all: Vec<usize> =
        if cfg!(miri) { vec![0, 1, 9, 33] } else { (0..70).chain([96, 127, 128, 300]).collect() };
    all.into_iter()
}

/// Packs into memory with other contents, of exactly the required length and with some to spare.
fn check(expected: &[u8], packer: impl Fn(&mut [u8]) -> Result<usize, Error>, what: &str) {
    for spare in [0, 1, 7, 15, 16, 20] {
        // From any address, and not a byte is written before or after.
        let (at, end) = (40 + spare % 8, 40 + spare % 8 + expected.len() + spare);
        let mut out = vec![0xa5; end + 40];
        assert_eq!(packer(&mut out[at..end]), Ok(expected.len()), "{what}");
        assert_eq!(&out[at..at + expected.len()], expected, "{what}");
        assert!(out[..at].iter().chain(&out[end..]).all(|&byte| byte == 0xa5), "{what}");
    }
    if !expected.is_empty() {
        let mut out = vec![0xa5; expected.len() - 1];
        let short = Error::Short { needed: expected.len(), given: expected.len() - 1 };
        assert_eq!(packer(&mut out), Err(short), "{what}");
        assert!(out.iter().all(|&byte| byte == 0xa5));
    }
}

#[test]
fn every_width_and_length() {
    let mut random = Random::new(61);
    let wide: Vec<u64> = (0..300).map(|_| random.next()).collect();
    let narrow: Vec<u32> = wide.iter().map(|&value| value as u32).collect();
    let bytes: Vec<u8> = wide.iter().map(|&value| value as u8).collect();
    for isa in Isa::all() {
        for width in (0..=64u32).step_by(if cfg!(miri) { 7 } else { 1 }) {
            for length in lengths() {
                let what = std::format!("{isa:?} {length} of {width}");
                let expected = pack(&wide[..length], width as usize);
                check(&expected, |out| u64_with(isa, width, &wide[..length], out), &what);
                if width <= 32 {
                    check(&expected, |out| u32_with(isa, width, &narrow[..length], out), &what);
                }
                if width <= 8 {
                    check(&expected, |out| u8_with(isa, width, &bytes[..length], out), &what);
                }
            }
        }
    }
}

#[test]
fn every_byte_and_every_length_of_bytes() {
    let values: Vec<u8> = (0..512).map(|at| (at * 167 % 256) as u8).collect();
    let wide: Vec<u64> = values.iter().map(|&value| u64::from(value) | 0xabcd_ef00).collect();
    let narrow: Vec<u32> = wide.iter().map(|&value| value as u32).collect();
    let lengths = (0..=200).chain([256, 512]).step_by(if cfg!(miri) { 29 } else { 1 });
    for length in lengths {
        for width in 1..=8 {
            let expected = pack(&wide[..length], width as usize);
            for isa in Isa::all() {
                let what = std::format!("{isa:?} {length} of {width}");
                check(&expected, |out| u8_with(isa, width, &values[..length], out), &what);
                check(&expected, |out| u32_with(isa, width, &narrow[..length], out), &what);
            }
        }
    }
}

#[test]
fn what_is_packed_is_unpacked() {
    let mut random = Random::new(62);
    for _ in 0..rounds(300) {
        let (width, length) = (random.below(65) as u32, random.below(1000));
        let values: Vec<u64> =
            (0..length).map(|_| if width == 0 { 0 } else { random.next() >> (64 - width) }).collect();
        let mut packed = vec![0; (length * width as usize).div_ceil(8)];
        u64(width, &values, &mut packed).unwrap();
        let mut again = vec![1; length];
        crate::unpack::u64(width, &packed, &mut again).unwrap();
        assert_eq!(values, again);
    }
}

#[test]
fn too_wide() {
    assert_eq!(u8(9, &[0; 8], &mut [0; 100]), Err(Error::Width { width: 9 }));
    assert_eq!(u32(33, &[0; 8], &mut [0; 100]), Err(Error::Width { width: 33 }));
    assert_eq!(u64(65, &[0; 8], &mut [0; 100]), Err(Error::Width { width: 65 }));
}
