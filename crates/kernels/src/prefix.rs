//! Common prefixes of byte strings.
//!
//! Speed: the branch at the first difference bounds it, mispredicted where lengths vary. `docs/bench/kernels.md`
//! has its distance from a copy of as many bytes (`make bench-kernels`).

/// The length of the common prefix, in bytes.
#[inline]
#[must_use]
pub fn common(a: &[u8], b: &[u8]) -> usize {
    let (a, b) = (&a[..a.len().min(b.len())], &b[..b.len().min(a.len())]);
    let (words, rest) = a.as_chunks::<8>();
    let (others, other_rest) = b.as_chunks::<8>();
    for (at, (word, other)) in words.iter().zip(others).enumerate() {
        let differ = u64::from_le_bytes(*word) ^ u64::from_le_bytes(*other);
        if differ != 0 {
            return at * 8 + differ.trailing_zeros() as usize / 8;
        }
    }
    words.len() * 8 + rest.iter().zip(other_rest).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths() {
        let all: std::vec::Vec<u8> = (0..50).collect();
        for length in 0..50 {
            for other in 0..50 {
                assert_eq!(common(&all[..length], &all[..other]), length.min(other));
                let mut changed = all[..other].to_vec();
                for at in 0..other {
                    changed[at] ^= 0x80;
                    assert_eq!(common(&all[..length], &changed), length.min(at));
                    changed[at] ^= 0x80;
                }
            }
        }
    }
}
