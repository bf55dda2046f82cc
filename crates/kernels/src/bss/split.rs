//! The inverse: values to streams.

use super::{transpose, word};
use crate::cpu::{Isa, dispatch, isa};
use crate::error::Error;

/// Writes byte `k` of value `i` to `out[k * stride + i]`, for values of `width` bytes, one after the other.
///
/// # Errors
///
/// `Width` of 0; `Mismatch` if `values` ends within a value; `Short` if `out` has not room for `width` streams of `stride`
/// bytes, or `stride` is less than the number of values.
pub fn split(width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> Result<(), Error> {
    split_with(isa(), width, values, stride, out)
}

fn split_with(isa: Isa, width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> Result<(), Error> {
    if width == 0 {
        return Err(Error::Width { width });
    }
    if !values.len().is_multiple_of(width) {
        return Err(Error::Mismatch);
    }
    let count = values.len() / width;
    let needed = width.saturating_mul(stride.max(count));
    if stride < count || out.len() < needed {
        return Err(Error::Short { needed, given: out.len() });
    }
    // No contract beyond the features.
    let done = dispatch!(isa,
        avx512: super::avx512::split(width, values, stride, out),
        avx2: super::avx2::split(width, values, stride, out),
        portable: groups(width, values, stride, out),
    );
    for (i, value) in values.chunks_exact(width).enumerate().skip(done) {
        for (k, &byte) in value.iter().enumerate() {
            out[k * stride + i] = byte;
        }
    }
    Ok(())
}

/// Splits values by transposing eight words; returns how many were done.
#[inline(always)]
pub(super) fn groups(width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    match width {
        4 => fours(values, stride, out),
        8.. => by_eights(width, values, stride, out),
        _ => 0,
    }
}

/// Sixteen values of four bytes at a time: each word is one of the first eight and one of the second.
#[inline(always)]
fn fours(values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let mut done = 0;
    for sixteen in values.as_chunks::<64>().0 {
        let words = transpose(core::array::from_fn(|i| {
            let [a, b, c, d, ..] = word(sixteen, i * 4).to_le_bytes();
            let second = i * 4 + 32;
            let [e, f, g, h] =
                [sixteen[second], sixteen[second + 1], sixteen[second + 2], sixteen[second + 3]];
            u64::from_le_bytes([a, b, c, d, e, f, g, h])
        }));
        for (k, word) in words.into_iter().enumerate() {
            out[k % 4 * stride + done + k / 4 * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        done += 16;
    }
    done
}

/// Eight bytes of eight values at a time; the last eight bytes may overlap those before.
#[inline(always)]
fn by_eights(width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let mut done = 0;
    for eight in values.chunks_exact(width * 8) {
        let mut k = 0;
        loop {
            let words = transpose(core::array::from_fn(|i| word(eight, i * width + k)));
            for (j, word) in words.into_iter().enumerate() {
                out[(k + j) * stride + done..][..8].copy_from_slice(&word.to_le_bytes());
            }
            if k + 8 == width {
                break;
            }
            k = (k + 8).min(width - 8);
        }
        done += 8;
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};
    use std::vec;

    #[test]
    fn every_width_and_length() {
        let mut random = Random::new(45);
        for isa in Isa::all() {
            for width in 1..20 {
                for count in (0..rounds(100)).chain([128, 200]) {
                    let values = random.bytes(width * count);
                    for stride in [count, count + 5] {
                        let mut out = vec![0xa5; width * stride];
                        split_with(isa, width, &values, stride, &mut out).unwrap();
                        for (at, &byte) in out.iter().enumerate() {
                            let (k, i) = (at / stride, at % stride);
                            assert_eq!(byte, if i < count { values[i * width + k] } else { 0xa5 });
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn refuses() {
        assert_eq!(split(0, &[], 0, &mut []), Err(Error::Width { width: 0 }));
        assert_eq!(split(4, &[0; 7], 2, &mut [0; 8]), Err(Error::Mismatch));
        assert_eq!(split(4, &[0; 8], 1, &mut [0; 8]), Err(Error::Short { needed: 8, given: 8 }));
        assert_eq!(split(4, &[0; 8], 2, &mut [0; 7]), Err(Error::Short { needed: 8, given: 7 }));
    }
}
