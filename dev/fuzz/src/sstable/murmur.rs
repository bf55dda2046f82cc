//! The hash of partition keys, written a second time; and keys of a token that is chosen.

const FACTORS: [u64; 2] = [0x87c3_7b91_1142_53d5, 0x4cf5_ad43_2745_937f];
const ENDS: [u64; 2] = [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53];

/// MurmurHash3 of 128 bits, with the tail's bytes taken with their signs, as Java has them.
pub fn hash(key: &[u8]) -> [u64; 2] {
    let (mut a, mut b) = (0_u64, 0_u64);
    let mut chunks = key.chunks_exact(16);
    for chunk in &mut chunks {
        let word = |at: usize| u64::from_le_bytes(chunk[at..at + 8].try_into().expect("eight bytes"));
        a ^= word(0).wrapping_mul(FACTORS[0]).rotate_left(31).wrapping_mul(FACTORS[1]);
        a = a.rotate_left(27).wrapping_add(b).wrapping_mul(5).wrapping_add(0x52dc_e729);
        b ^= word(8).wrapping_mul(FACTORS[1]).rotate_left(33).wrapping_mul(FACTORS[0]);
        b = b.rotate_left(31).wrapping_add(a).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let mut words = [0_u64; 2];
    for (at, byte) in chunks.remainder().iter().enumerate() {
        words[at / 8] ^= (i64::from(*byte as i8) as u64) << (at % 8 * 8);
    }
    a ^= words[0].wrapping_mul(FACTORS[0]).rotate_left(31).wrapping_mul(FACTORS[1]);
    b ^= words[1].wrapping_mul(FACTORS[1]).rotate_left(33).wrapping_mul(FACTORS[0]);
    (a, b) = (a ^ key.len() as u64, b ^ key.len() as u64);
    a = a.wrapping_add(b);
    b = b.wrapping_add(a);
    (a, b) = (finish(a), finish(b));
    a = a.wrapping_add(b);
    [a, b.wrapping_add(a)]
}

fn finish(mut word: u64) -> u64 {
    for factor in ENDS {
        word = (word ^ (word >> 33)).wrapping_mul(factor);
    }
    word ^ (word >> 33)
}

/// A key of 16 bytes whose token is this one, another for each `seed`: the hash, backwards.
pub fn key_of(token: i64, seed: u64) -> Vec<u8> {
    // (The second word before the end is free.)
    let b = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let a = unfinish((token as u64).wrapping_sub(finish(b)));
    let b = b.wrapping_sub(a);
    let a = a.wrapping_sub(b);
    let (a, b) = (a ^ 16, b ^ 16);
    let fifth = inverse(5);
    // Both begin with zero.
    let second = b.wrapping_sub(0x3849_5ab5).wrapping_mul(fifth).wrapping_sub(a).rotate_right(31);
    let first = a.wrapping_sub(0x52dc_e729).wrapping_mul(fifth).rotate_right(27);
    let first = first.wrapping_mul(inverse(FACTORS[1])).rotate_right(31).wrapping_mul(inverse(FACTORS[0]));
    let second = second.wrapping_mul(inverse(FACTORS[0])).rotate_right(33).wrapping_mul(inverse(FACTORS[1]));
    [first.to_le_bytes(), second.to_le_bytes()].concat()
}

fn unfinish(mut word: u64) -> u64 {
    word ^= word >> 33;
    for factor in [ENDS[1], ENDS[0]] {
        word = word.wrapping_mul(inverse(factor));
        word ^= word >> 33;
    }
    word
}

/// What gives 1 with an odd number, modulo 2^64.
fn inverse(odd: u64) -> u64 {
    (0..6).fold(odd, |found, _| found.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(found))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_scylla::sstable::murmur3_token;

    #[test]
    fn keys_have_the_tokens_they_were_made_for() {
        for token in [0, 1, -1, 77, i64::MAX, i64::MIN + 1, 0x1234_5678_9abc_def0] {
            for seed in 0..5 {
                let key = key_of(token, seed);
                assert_eq!((hash(&key)[0] as i64, murmur3_token(&key)), (token, token));
            }
        }
        for length in 0..70_u8 {
            let key: Vec<u8> = (0..length).map(|at| at.wrapping_mul(151)).collect();
            let token = if length == 0 { i64::MIN } else { hash(&key)[0] as i64 };
            assert_eq!(murmur3_token(&key), token);
        }
    }
}
