//! The bits of a word that a mask selects, moved together.

/// The bits of `word` where `mask` has ones, moved together. `some` does so where neither all bits nor all of the ones are selected.
#[inline(always)]
pub(crate) fn by(word: u64, mask: u64, some: impl FnOnce(u64, u64) -> u64) -> u64 {
    let word = word & mask;
    if mask == u64::MAX || word == 0 {
        return word;
    }
    if word == mask {
        // At least one.
        return u64::MAX >> (64 - mask.count_ones());
    }
    some(word, mask)
}

/// See [`by`].
#[inline(always)]
pub(crate) fn portable(word: u64, mask: u64) -> u64 {
    by(word, mask, steps)
}

/// Each bit moves by the number of zeros below it in the mask: those with an odd number by one place, then those with an odd half of it by
/// two, and so on (Warren, "Hacker's Delight", 7-4). `word` has ones only where `mask` has.
#[inline(always)]
fn steps(mut word: u64, mask: u64) -> u64 {
    let mut zeros = !mask;
    for step in 0..6 {
        let odd = crate::marks::parity(zeros) << 1;
        word = word & !odd | (word & odd) >> (1 << step);
        // Every second zero.
        zeros &= odd;
    }
    word
}

/// See [`by`]. For processors whose `pext` is slow.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,popcnt,bmi1,pclmulqdq")]
pub(crate) fn avx2(word: u64, mask: u64) -> u64 {
    by(word, mask, |word, mask| products(word, mask))
}

/// As [`steps`]: a product without carry has the parities.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2,pclmulqdq")]
pub(crate) fn products(word: u64, mask: u64) -> u64 {
    use core::arch::x86_64::*;
    let below = _mm_cvtsi64_si128(-2);
    let (mut word, mut zeros) = (_mm_cvtsi64_si128(word as i64), _mm_cvtsi64_si128(!mask as i64));
    macro_rules! steps {
        ($($by:literal)+) => { $(
            let odd = _mm_clmulepi64_si128::<0>(zeros, below);
            let moved = _mm_srli_epi64::<$by>(_mm_and_si128(word, odd));
            word = _mm_or_si128(_mm_andnot_si128(odd, word), moved);
            zeros = _mm_and_si128(zeros, odd);
        )+ };
    }
    steps!(1 2 4 8 16 32);
    let _ = zeros;
    _mm_cvtsi128_si64(word) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};

    #[test]
    fn bits_are_moved_together() {
        let mut random = Random::new(121);
        for round in 0..rounds(4000) {
            let (word, mask) = match round % 5 {
                0 => (random.next(), u64::MAX),
                1 => (u64::MAX, random.next()),
                2 => (random.next() & random.next(), random.next() | random.next() | random.next()),
                3 => (random.next(), random.next() & random.next() & random.next()),
                _ => (random.next(), random.next()),
            };
            let (mut expected, mut at) = (0, 0);
            for bit in (0..64).filter(|bit| mask >> bit & 1 == 1) {
                expected |= (word >> bit & 1) << at;
                at += 1;
            }
            assert_eq!(portable(word, mask), expected);
            assert_eq!(steps(word & mask, mask), expected);
            #[cfg(target_arch = "x86_64")]
            if crate::cpu::isa().level() >= crate::cpu::Level::Avx2 {
                // SAFETY: the level proves the features.
                assert_eq!(unsafe { avx2(word, mask) }, expected);
            }
        }
        assert_eq!((portable(0, 0), portable(u64::MAX, 0), portable(u64::MAX, 1 << 63)), (0, 0, 1));
    }
}
