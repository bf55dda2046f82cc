//! The lowest bits of a word, spread to the ones of a mask: the inverse of [`extract`](crate::extract).

use crate::marks::parity;

/// The lowest bits of `word`, spread to the ones of `mask`. `some` does so where neither all bits nor none are selected.
#[inline(always)]
pub(super) fn by(word: u64, mask: u64, some: impl FnOnce(u64, u64) -> u64) -> u64 {
    if mask == u64::MAX || mask == 0 {
        return word & mask;
    }
    some(word, mask)
}

/// See [`by`].
#[inline(always)]
pub(super) fn portable(word: u64, mask: u64) -> u64 {
    by(word, mask, steps)
}

/// Each bit moves by the number of zeros below its place: the steps of [`extract`](crate::extract) in turn, from the longest on (Warren,
/// "Hacker's Delight", 7-5). A bit at a time, as many bits as are set, took three times as long where nine tenths are.
#[inline(always)]
fn steps(mut word: u64, mask: u64) -> u64 {
    let (mut zeros, mut places, mut moved) = (!mask, mask, [0; 6]);
    for (step, moved) in moved.iter_mut().enumerate() {
        let odd = parity(zeros) << 1;
        *moved = places & odd;
        places = places ^ *moved | *moved >> (1 << step);
        // Every second zero.
        zeros &= odd;
    }
    for (step, moved) in moved.into_iter().enumerate().rev() {
        word = word & !moved | word << (1 << step) & moved;
    }
    word & mask
}

/// See [`by`]: an instruction does it, which some processors have in microcode.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "bmi2")]
pub(super) fn bmi2(word: u64, mask: u64) -> u64 {
    core::arch::x86_64::_pdep_u64(word, mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};

    #[test]
    fn bits_are_spread_as_they_were_moved_together() {
        let mut random = Random::new(123);
        for round in 0..rounds(4000) {
            let word = random.next();
            let mask = match round % 5 {
                0 => u64::MAX,
                1 => 0,
                2 => random.next() & random.next() & random.next(),
                3 => random.next() | random.next() | random.next(),
                _ => random.next(),
            };
            let (mut expected, mut next) = (0, 0);
            for place in (0..64).filter(|place| mask >> place & 1 == 1) {
                expected |= (word >> next & 1) << place;
                next += 1;
            }
            assert_eq!(portable(word, mask), expected, "{word:x} {mask:x}");
            assert_eq!(steps(word, mask), expected, "{word:x} {mask:x}");
            // Back again, but for those that had no place.
            let kept = if next == 64 { word } else { word & ((1 << next) - 1) };
            assert_eq!(crate::extract::portable(expected, mask), kept);
        }
    }
}
