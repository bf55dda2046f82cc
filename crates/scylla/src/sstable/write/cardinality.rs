//! How many partitions there are, roughly, as compactions count them: the sketch that Statistics.db has.
//!
//! HyperLogLog++ of stream-lib 2.5, with 2^13 registers of five bits, six of them in a word of 32 bits (`HyperLogLogPlus.java`,
//! `RegisterSet.java`). That library also has a sparse form for few keys; readers take either.

use alloc::vec::Vec;

use marquetry_base::cast::{low_u8, usize_of};

/// Bits of a hash that choose a register, and of the sparse form, which is not written.
const BITS: u32 = 13;
const SPARSE_BITS: u8 = 25;
const REGISTERS: usize = 1 << BITS;
const REGISTER_BITS: u32 = 5;
const REGISTERS_A_WORD: usize = 6;
const WORDS: usize = REGISTERS / REGISTERS_A_WORD + 1;
/// The version of the form, negative.
const FORM: i32 = -2;

/// The sketch.
#[derive(Debug)]
pub(super) struct Cardinality {
    registers: Vec<u8>,
}

impl Cardinality {
    pub(super) fn new() -> Cardinality {
        Cardinality { registers: alloc::vec![0; REGISTERS] }
    }

    /// Counts a key.
    pub(super) fn add(&mut self, key: &[u8]) {
        let hash = murmur2(key);
        let register = usize_of(hash >> (64 - BITS)).unwrap_or(0);
        let zeros = (hash << BITS | 1 << (BITS - 1)).leading_zeros();
        let rank = low_u8(u64::from(zeros)) + 1;
        if let Some(most) = self.registers.get_mut(register) {
            *most = rank.min((1 << REGISTER_BITS) - 1).max(*most);
        }
    }

    /// Its bytes, after their length.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = FORM.to_be_bytes().to_vec();
        bytes.extend([low_u8(u64::from(BITS)), SPARSE_BITS, 0]);
        // Seven bits a byte, the low ones first.
        let length = WORDS * 4;
        bytes.extend([
            low_u8(marquetry_base::cast::u64_of(length & 0x7f)) | 0x80,
            low_u8(marquetry_base::cast::u64_of(length >> 7)),
        ]);
        for word in self.registers.chunks(REGISTERS_A_WORD) {
            let packed =
                word.iter().rev().fold(0_u32, |packed, rank| packed << REGISTER_BITS | u32::from(*rank));
            bytes.extend(packed.to_be_bytes());
        }
        bytes
    }
}

const _: () = assert!(WORDS * 4 < 1 << 14);

/// MurmurHash2 of 64 bits, as Cassandra has it (`MurmurHash.hash2_64`): the bytes after the last eight are taken with their sign.
fn murmur2(key: &[u8]) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |word: u64| {
        let word = word.wrapping_mul(FACTOR);
        (word ^ word >> 47).wrapping_mul(FACTOR)
    };
    let mut hash = FACTOR.wrapping_mul(marquetry_base::cast::u64_of(key.len()));
    let (words, rest) = key.as_chunks::<8>();
    for word in words {
        hash = (hash ^ mix(u64::from_le_bytes(*word))).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        for (at, byte) in rest.iter().enumerate().rev() {
            hash ^= i64::from(byte.cast_signed()).cast_unsigned() << (8 * at);
        }
        hash = hash.wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(FACTOR);
    hash ^ hash >> 47
}
