//! AVX-512: values are narrowed to bytes or 16 bits by one instruction, and `pext` joins their bits: eight values, or four.
//! Wider ones are packed by the portable form, compiled with wider vectors.

use super::generic;
use core::arch::x86_64::*;

/// Numbers that are narrowed at a time.
const NARROWED: usize = 64;

/// Ones in the low `width` bits of each lane of `lane` bits.
#[inline(always)]
fn mask(width: u32, lane: u32) -> u64 {
    let one = u64::MAX >> (64 - width);
    (0..64 / lane).fold(0, |mask, number| mask | one << (number * lane))
}

#[target_feature(enable = "bmi2")]
pub(super) fn u8(width: u32, values: &[u8], out: &mut [u8]) {
    let mask = mask(width, 8);
    generic::u8_by(width, values, out, |eight| _pext_u64(u64::from_le_bytes(eight), mask));
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi2")]
pub(super) fn u32(width: u32, values: &[u32], out: &mut [u8]) {
    let done = match width {
        1..=8 => bytes(width, values, out),
        9..=15 => halves(width, values, out),
        _ => 0,
    };
    generic::u32(width, &values[done..], &mut out[done / 8 * width as usize..]);
}

/// Numbers of at most 32 bits are narrowed to those.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq,bmi2")]
pub(super) fn u64(width: u32, values: &[u64], out: &mut [u8]) {
    if width > 32 {
        return generic::u64(width, values, out);
    }
    for (values, out) in values.chunks(NARROWED).zip(out.chunks_mut(NARROWED / 8 * width as usize)) {
        let mut low = [0u32; NARROWED];
        for (low, value) in low.iter_mut().zip(values) {
            *low = *value as u32;
        }
        if width == 32 {
            out.copy_from_slice(&crate::plain::as_bytes(&low)[..out.len()]);
        } else {
            u32(width, &low[..values.len()], out);
        }
    }
}

/// Widths up to 8. Returns how many values were packed: complete groups of sixteen, as long as there is room for each
/// store.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
fn bytes(width: u32, values: &[u32], out: &mut [u8]) -> usize {
    let (mask, step) = (mask(width, 8), width as usize);
    let mut done = 0;
    for sixteen in values.as_chunks::<16>().0 {
        let Some(to) = out.get_mut(done / 8 * step..).and_then(|out| out.get_mut(..step + 8)) else { break };
        // SAFETY: a chunk is 64 bytes.
        let narrow = _mm512_cvtepi32_epi8(unsafe { _mm512_loadu_si512(sixteen.as_ptr().cast()) });
        let low = _pext_u64(_mm_extract_epi64::<0>(narrow) as u64, mask);
        let high = _pext_u64(_mm_extract_epi64::<1>(narrow) as u64, mask);
        to[..8].copy_from_slice(&low.to_le_bytes());
        to[step..step + 8].copy_from_slice(&high.to_le_bytes());
        done += 16;
    }
    done
}

/// Widths from 9 to 15: four values take `4 * width` bits of a word, eight take `width` bytes, which are more than a word.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
fn halves(width: u32, values: &[u32], out: &mut [u8]) -> usize {
    let (mask, step) = (mask(width, 16), width as usize);
    let mut done = 0;
    for eight in values.as_chunks::<8>().0 {
        let Some(to) = out.get_mut(done / 8 * step..).and_then(|out| out.first_chunk_mut::<16>()) else {
            break;
        };
        // SAFETY: a chunk is 32 bytes.
        let narrow = _mm256_cvtepi32_epi16(unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) });
        let low = _pext_u64(_mm_extract_epi64::<0>(narrow) as u64, mask);
        let high = _pext_u64(_mm_extract_epi64::<1>(narrow) as u64, mask);
        // 36 to 60 bits of each.
        to[..8].copy_from_slice(&(low | high << (4 * width)).to_le_bytes());
        to[8..].copy_from_slice(&(high >> (64 - 4 * width)).to_le_bytes());
        done += 8;
    }
    done
}
