//! XXH64 with the seed 0: the hash of Parquet's Bloom filters (BloomFilter.md, "Hash Function").
//!
//! Byte strings of any length are hashed by the crate `twox-hash`. For values of four and eight bytes the function is
//! only a handful of products, computed for several values at once if the processor can multiply 64-bit lanes.
//!
//! Speed: products of 64 bits bound it, each of which takes three of 32 bits with AVX2. `docs/bench/kernels.md`
//! has its distance from a copy of as many bytes (`make bench-kernels`).
//!
//! NEON: it has no products of 64 bits, so the portable form is that of general registers.

use core::hash::Hasher;

use twox_hash::XxHash64;

use crate::cpu::{Isa, dispatch, isa};
use crate::error::Error;

/// The hash of bytes.
#[inline]
#[must_use]
pub fn of_bytes(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

/// The hashes of values of four bytes, as they are in memory.
///
/// # Errors
///
/// `Mismatch` if `values` and `out` differ in length.
pub fn of_fours(values: &[u32], out: &mut [u64]) -> Result<(), Error> {
    of_fours_with(isa(), values, out)
}

/// The hashes of values of eight bytes, as they are in memory.
///
/// # Errors
///
/// `Mismatch` if `values` and `out` differ in length.
pub fn of_eights(values: &[u64], out: &mut [u64]) -> Result<(), Error> {
    of_eights_with(isa(), values, out)
}

/// The hash of bytes that arrive in pieces.
#[derive(Debug, Clone)]
pub struct Pieces(XxHash64);

impl Default for Pieces {
    /// The hash of no bytes.
    fn default() -> Pieces {
        Pieces(XxHash64::with_seed(0))
    }
}

impl Pieces {
    /// Appends a piece.
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The hash of all pieces so far.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

fn of_fours_with(isa: Isa, values: &[u32], out: &mut [u64]) -> Result<(), Error> {
    if values.len() != out.len() {
        return Err(Error::Mismatch);
    }
    // No contract beyond the features.
    dispatch!(isa,
        avx512: of_fours_avx512(values, out),
        avx2: of_fours_avx2(values, out),
        portable: of_fours_portable(values, out),
    );
    Ok(())
}

fn of_eights_with(isa: Isa, values: &[u64], out: &mut [u64]) -> Result<(), Error> {
    if values.len() != out.len() {
        return Err(Error::Mismatch);
    }
    // No contract beyond the features.
    dispatch!(isa,
        avx512: of_eights_avx512(values, out),
        avx2: of_eights_avx2(values, out),
        portable: of_eights_portable(values, out),
    );
    Ok(())
}

/// The algorithm's constants.
const PRIME_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME_4: u64 = 0x85eb_ca77_c2b2_ae63;
const PRIME_5: u64 = 0x27d4_eb2f_1656_67c5;

#[inline(always)]
fn of_four(value: u32) -> u64 {
    let hash = PRIME_5.wrapping_add(4) ^ u64::from(value).wrapping_mul(PRIME_1);
    mixed(hash.rotate_left(23).wrapping_mul(PRIME_2).wrapping_add(PRIME_3))
}

#[inline(always)]
fn of_eight(value: u64) -> u64 {
    let round = value.wrapping_mul(PRIME_2).rotate_left(31).wrapping_mul(PRIME_1);
    let hash = PRIME_5.wrapping_add(8) ^ round;
    mixed(hash.rotate_left(27).wrapping_mul(PRIME_1).wrapping_add(PRIME_4))
}

#[inline(always)]
fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(PRIME_2);
    hash = (hash ^ hash >> 29).wrapping_mul(PRIME_3);
    hash ^ hash >> 32
}

macro_rules! loops {
    ($portable:ident, $avx2:ident, $avx512:ident, $one:ident, $type:ty) => {
        #[inline(always)]
        fn $portable(values: &[$type], out: &mut [u64]) {
            for (to, &value) in out.iter_mut().zip(values) {
                *to = $one(value);
            }
        }

        // Compiled again for lanes: intrinsics would not improve on it.
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,bmi1,bmi2")]
        fn $avx2(values: &[$type], out: &mut [u64]) {
            $portable(values, out);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        fn $avx512(values: &[$type], out: &mut [u64]) {
            $portable(values, out);
        }
    };
}
loops!(of_fours_portable, of_fours_avx2, of_fours_avx512, of_four, u32);
loops!(of_eights_portable, of_eights_avx2, of_eights_avx512, of_eight, u64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn the_known_hashes() {
        assert_eq!(of_bytes(b""), 0xef46_db37_51d8_e999);
        assert_eq!(of_bytes(b"a"), 0xd24e_c4f1_a98c_6e5b);
        assert_eq!(of_bytes(b"Nobody inspects the spammish repetition"), 0xfbce_a83c_8a37_8bf1);
    }

    #[test]
    fn numbers_are_hashed_as_their_bytes() {
        let mut random = Random::new(83);
        for _ in 0..rounds(200) {
            let eights: Vec<u64> = (0..random.below(70)).map(|_| random.next()).collect();
            let fours: Vec<u32> = eights.iter().map(|&value| value as u32).collect();
            for isa in Isa::all() {
                let mut out = vec![0; eights.len()];
                of_eights_with(isa, &eights, &mut out).unwrap();
                assert!(eights.iter().zip(&out).all(|(value, hash)| of_bytes(&value.to_le_bytes()) == *hash));
                of_fours_with(isa, &fours, &mut out).unwrap();
                assert!(fours.iter().zip(&out).all(|(value, hash)| of_bytes(&value.to_le_bytes()) == *hash));
            }
        }
        assert_eq!(of_fours(&[1], &mut []), Err(Error::Mismatch));
        assert_eq!(of_eights(&[], &mut [1]), Err(Error::Mismatch));
    }

    #[test]
    fn pieces_are_hashed_as_the_whole() {
        let mut random = Random::new(89);
        let bytes = random.bytes(300);
        for length in [0, 1, 31, 32, 33, 64, 300] {
            for first in 0..=length {
                let second = first + random.below(length - first + 1);
                let mut pieces = Pieces::default();
                let parts = [&bytes[..first], &bytes[first..second], &bytes[second..length]];
                parts.into_iter().for_each(|part| pieces.add(part));
                assert_eq!(pieces.finish(), of_bytes(&bytes[..length]), "{first}, {second} of {length}");
            }
        }
    }
}
