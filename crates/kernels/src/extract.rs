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

/// See [`by`].
#[cfg(target_arch = "aarch64")]
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn neon(word: u64, mask: u64) -> u64 {
    by(word, mask, |word, mask| halves(word, mask))
}

/// As [`steps`], but within each byte, where a product without carry has the parities. Then, of two bytes, of two pairs of bytes and of two
/// halves of the word, the upper one's bits are moved down to those of the lower one.
#[cfg(target_arch = "aarch64")]
#[inline]
#[target_feature(enable = "neon")]
fn halves(word: u64, mask: u64) -> u64 {
    use core::arch::aarch64::*;
    let (mut word, mask) = (vcreate_u8(word), vcreate_u8(mask));
    let mut zeros = vmvn_u8(mask);
    let below = vdup_n_p8(0xfe);
    macro_rules! steps {
        ($($by:literal)+) => { $(
            let odd = vreinterpret_u8_p8(vmul_p8(vreinterpret_p8_u8(zeros), below));
            let moved = vand_u8(word, odd);
            // Where bits arrive, there are none.
            word = vsra_n_u8::<$by>(veor_u8(word, moved), moved);
            zeros = vand_u8(zeros, odd);
        )+ };
    }
    steps!(1 2 4);
    let _ = zeros;
    let ones = vcnt_u8(mask);
    // A shift takes its count from the lowest byte of its lane, where that of the lower part is. One to the left by less than nothing
    // is one to the right.
    let down = vreinterpret_s16_u8(vadd_u8(ones, vdup_n_u8(8_u8.wrapping_neg())));
    let word = vreinterpret_u16_u8(word);
    let upper = vand_u16(word, vdup_n_u16(0xff << 8));
    let word = vreinterpret_u32_u16(vorr_u16(veor_u16(word, upper), vshl_u16(upper, down)));
    let ones = vpaddl_u8(ones);
    let down = vreinterpret_s32_u16(vadd_u16(ones, vdup_n_u16(16_u16.wrapping_neg())));
    let upper = vand_u32(word, vdup_n_u32(0xffff << 16));
    let word = vreinterpret_u64_u32(vorr_u32(veor_u32(word, upper), vshl_u32(upper, down)));
    let ones = vpaddl_u16(ones);
    let down = vreinterpret_s64_u32(vadd_u32(ones, vdup_n_u32(32_u32.wrapping_neg())));
    let upper = vand_u64(word, vdup_n_u64(0xffff_ffff << 32));
    vget_lane_u64::<0>(vorr_u64(veor_u64(word, upper), vshl_u64(upper, down)))
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
            #[cfg(target_arch = "aarch64")]
            if crate::cpu::isa().level() >= crate::cpu::Level::Neon {
                // SAFETY: the level proves the features.
                assert_eq!(unsafe { (neon(word, mask), halves(word & mask, mask)) }, (expected, expected));
            }
        }
        assert_eq!((portable(0, 0), portable(u64::MAX, 0), portable(u64::MAX, 1 << 63)), (0, 0, 1));
    }
}
