//! Bitmaps in Arrow's order: bit `i` is bit `i % 8` of byte `i / 8`. Every range may begin and end at any bit.
//!
//! Speed: loads and stores bound what is done by words; of ranges that are not aligned, a shift more for each
//! word. `docs/bench/kernels.md` has its distance from a copy of as many bytes (`make bench-kernels`).
//!
//! NEON: counted in its loops, not measured, levels of a byte take 0.4 instructions each, bits that become bytes 0.4. Of counts, the
//! portable form is compiled to vectors.

use crate::cpu::{Isa, dispatch, isa};
use crate::error::{Error, need_bits};
use crate::plain;

/// Bit `bit`; `None` beyond the bitmap.
#[inline]
#[must_use]
pub fn get(bitmap: &[u8], bit: usize) -> Option<bool> {
    bitmap.get(bit / 8).map(|byte| byte >> (bit % 8) & 1 == 1)
}

/// Sets bit `bit` to `value`.
///
/// # Errors
///
/// `Short` if the bitmap is too short.
#[inline]
pub fn set(bitmap: &mut [u8], bit: usize, value: bool) -> Result<(), Error> {
    need(bitmap, bit, 1)?;
    let byte = &mut bitmap[bit / 8];
    *byte = *byte & !(1 << (bit % 8)) | u8::from(value) << (bit % 8);
    Ok(())
}

/// Up to 64 bits from `bit` on. The other bits of the result, and those beyond the bitmap, are zero.
#[inline]
#[must_use]
pub fn word(bitmap: &[u8], bit: usize, count: usize) -> u64 {
    match count {
        0 => 0,
        _ => read(bitmap, bit, count.min(64)),
    }
}

/// Copies `count` bits.
///
/// # Errors
///
/// `Short` if either bitmap is too short; nothing is copied then.
pub fn copy(src: &[u8], src_bit: usize, dst: &mut [u8], dst_bit: usize, count: usize) -> Result<(), Error> {
    need(src, src_bit, count)?;
    need(dst, dst_bit, count)?;
    if src_bit.is_multiple_of(8) && dst_bit.is_multiple_of(8) {
        let (from, to, bytes) = (src_bit / 8, dst_bit / 8, count / 8);
        plain::copy(&src[from..from + bytes], &mut dst[to..to + bytes]);
        let done = bytes * 8;
        write(dst, dst_bit + done, count - done, |i, n| read(src, src_bit + done + i, n));
        return Ok(());
    }
    write(dst, dst_bit, count, |i, n| read(src, src_bit + i, n));
    Ok(())
}

/// Sets `count` bits to `value`.
///
/// # Errors
///
/// `Short` if the bitmap is too short; nothing is set then.
pub fn fill(bitmap: &mut [u8], bit: usize, count: usize, value: bool) -> Result<(), Error> {
    need(bitmap, bit, count)?;
    let head = ((8 - bit % 8) % 8).min(count);
    let bytes = (count - head) / 8;
    let word = if value { u64::MAX } else { 0 };
    write(bitmap, bit, head, |_, _| word);
    let from = (bit + head) / 8;
    bitmap[from..from + bytes].fill(word as u8);
    let done = head + bytes * 8;
    write(bitmap, bit + done, count - done, |_, _| word);
    Ok(())
}

/// How many of `count` bits are set.
///
/// # Errors
///
/// `Short` if the bitmap is too short.
pub fn count_ones(bitmap: &[u8], bit: usize, count: usize) -> Result<usize, Error> {
    need(bitmap, bit, count)?;
    Ok(count_with(isa(), bitmap, bit, count))
}

/// A definition level as stored in memory: `u8` or `u16`.
pub trait Level: crate::Plain + Ord {}
impl Level for u8 {}
impl Level for u16 {}

/// Sets bit `dst_bit + i` if `levels[i]` is at least `present`, and clears it otherwise. Returns how many are set.
///
/// If `present` is the column's maximum definition level, this is the validity of the leaf's values; with a lower one,
/// that of a group around it.
///
/// # Errors
///
/// `Short` if the bitmap is too short; nothing is set then.
pub fn from_levels<L: Level>(
    levels: &[L],
    present: L,
    dst: &mut [u8],
    dst_bit: usize,
) -> Result<usize, Error> {
    from_levels_with(isa(), levels, present, dst, dst_bit)
}

/// Expands bits to bytes: `out[i]` is 1 if bit `bit + i` is set, else 0. (PLAIN BOOLEAN values are bits.)
///
/// # Errors
///
/// `Short` if the bitmap is too short; then `out` is unchanged.
pub fn unpack_bool(bitmap: &[u8], bit: usize, out: &mut [u8]) -> Result<(), Error> {
    unpack_bool_with(isa(), bitmap, bit, out)
}

#[inline]
fn need(bitmap: &[u8], bit: usize, count: usize) -> Result<(), Error> {
    need_bits(bit.checked_add(count), bitmap.len())
}

/// `count` bits, 1 to 64, from `bit` on; the higher bits are zero. Bits beyond the bitmap read as zero.
#[inline(always)]
pub(crate) fn read(bitmap: &[u8], bit: usize, count: usize) -> u64 {
    let (at, shift) = (bit / 8, bit % 8);
    let low = match bitmap.get(at..at + 8) {
        Some(bytes) => u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
        None => last(bitmap, at),
    };
    let mut word = low >> shift;
    if shift + count > 64 {
        let ninth = bitmap.get(at + 8).copied().unwrap_or(0);
        word |= u64::from(ninth) << (64 - shift);
    }
    word & (u64::MAX >> (64 - count))
}

/// The up to seven bytes from `at` to the end.
#[inline(never)]
fn last(bitmap: &[u8], at: usize) -> u64 {
    let rest = bitmap.get(at..).unwrap_or_default();
    rest.iter().take(8).enumerate().fold(0, |word, (i, &byte)| word | u64::from(byte) << (i * 8))
}

/// Writes `count` bits: `bits(i, n)` returns `n` of them, 1 to 64, from the `i`th on (higher bits are dropped). The
/// caller has checked that they fit into `dst`.
#[inline(always)]
pub(crate) fn write(dst: &mut [u8], bit: usize, count: usize, mut bits: impl FnMut(usize, usize) -> u64) {
    let mut done = 0;
    // To a byte's beginning, …
    let head = ((8 - bit % 8) % 8).min(count);
    if head > 0 {
        merge(&mut dst[bit / 8], bits(0, head) as u8, bit % 8, head);
        done = head;
    }
    // … then complete words, …
    let (words, _) = dst[(bit + done) / 8..].as_chunks_mut::<8>();
    for word in words.iter_mut().take((count - done) / 64) {
        *word = bits(done, 64).to_le_bytes();
        done += 64;
    }
    // … and the rest: in a word, where there is one, so that its length does not decide how often a loop goes round; else by bytes.
    let rest = count - done;
    if rest > 0
        && let Some(word) = dst[(bit + done) / 8..].first_chunk_mut::<8>()
    {
        let mask = u64::MAX >> (64 - rest);
        *word = (u64::from_le_bytes(*word) & !mask | bits(done, rest) & mask).to_le_bytes();
        return;
    }
    while done < count {
        let n = (count - done).min(8);
        merge(&mut dst[(bit + done) / 8], bits(done, n) as u8, 0, n);
        done += n;
    }
}

/// Replaces `count` bits of a byte, from bit `at` on.
#[inline(always)]
fn merge(byte: &mut u8, bits: u8, at: usize, count: usize) {
    let mask = (u8::MAX >> (8 - count)) << at;
    *byte = *byte & !mask | bits << at & mask;
}

fn count_with(isa: Isa, bitmap: &[u8], bit: usize, count: usize) -> usize {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::count_avx512(bitmap, bit, count),
        avx2: x86::count_avx2(bitmap, bit, count),
        portable: count_portable(bitmap, bit, count),
    )
}

#[inline(always)]
fn count_portable(bitmap: &[u8], bit: usize, count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let head = ((8 - bit % 8) % 8).min(count);
    let mut ones = if head > 0 { read(bitmap, bit, head).count_ones() as usize } else { 0 };
    let (words, _) = bitmap[(bit + head) / 8..].as_chunks::<8>();
    let whole = (count - head) / 64;
    ones += words[..whole].iter().map(|word| u64::from_le_bytes(*word).count_ones() as usize).sum::<usize>();
    let done = head + whole * 64;
    if done < count {
        ones += read(bitmap, bit + done, count - done).count_ones() as usize;
    }
    ones
}

fn from_levels_with<L: Level>(
    isa: Isa,
    levels: &[L],
    present: L,
    dst: &mut [u8],
    dst_bit: usize,
) -> Result<usize, Error> {
    need(dst, dst_bit, levels.len())?;
    // No contract beyond the features.
    Ok(dispatch!(isa,
        avx512: x86::levels_avx512(levels, present, dst, dst_bit),
        avx2: x86::levels_avx2(levels, present, dst, dst_bit),
        neon: neon::levels(levels, present, dst, dst_bit),
        portable: levels_portable(levels, present, dst, dst_bit, pack),
    ))
}

/// Levels are compared to bytes of 0 and 1, which `pack` makes a word of.
#[inline(always)]
fn levels_portable<L: Level>(
    levels: &[L],
    present: L,
    dst: &mut [u8],
    dst_bit: usize,
    pack: impl Fn(&[u8; 64]) -> u64,
) -> usize {
    let mut ones = 0;
    write(dst, dst_bit, levels.len(), |i, n| {
        let mut bytes = [0u8; 64];
        for (byte, level) in bytes.iter_mut().zip(&levels[i..i + n]) {
            *byte = u8::from(*level >= present);
        }
        let word = pack(&bytes);
        ones += word.count_ones() as usize;
        word
    });
    ones
}

/// Bit `i` of the result is byte `i`, which is 0 or 1: one multiplication packs eight of them to a byte.
#[inline(always)]
pub(crate) fn pack(bytes: &[u8; 64]) -> u64 {
    let (eights, _) = bytes.as_chunks::<8>();
    let mut packed = [0u8; 8];
    for (to, eight) in packed.iter_mut().zip(eights) {
        *to = (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
    }
    u64::from_le_bytes(packed)
}

fn unpack_bool_with(isa: Isa, bitmap: &[u8], bit: usize, out: &mut [u8]) -> Result<(), Error> {
    need(bitmap, bit, out.len())?;
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::bools_avx512(bitmap, bit, out),
        avx2: x86::bools_avx2(bitmap, bit, out),
        neon: neon::bools(bitmap, bit, out),
        portable: bools_portable(bitmap, bit, out),
    );
    Ok(())
}

#[inline(always)]
fn bools_portable(bitmap: &[u8], bit: usize, out: &mut [u8]) {
    for (piece, out) in out.chunks_mut(64).enumerate() {
        let word = read(bitmap, bit + piece * 64, out.len());
        for (i, to) in out.iter_mut().enumerate() {
            *to = (word >> i & 1) as u8;
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use super::*;

    /// The portable form, with an instruction for the words.
    #[target_feature(enable = "neon")]
    pub(super) fn levels<L: Level>(levels: &[L], present: L, dst: &mut [u8], dst_bit: usize) -> usize {
        levels_portable(levels, present, dst, dst_bit, |bytes| crate::neon::pack(bytes))
    }

    /// Of bytes that are all the same, each is tested for a bit of its own.
    #[target_feature(enable = "neon")]
    pub(super) fn bools(bitmap: &[u8], bit: usize, out: &mut [u8]) {
        for (piece, out) in out.chunks_mut(64).enumerate() {
            let bools = crate::neon::bools(read(bitmap, bit + piece * 64, out.len()));
            match <&mut [u8; 64]>::try_from(&mut *out) {
                Ok(out) => crate::neon::store(bools, out),
                Err(_) => {
                    let mut padded = [0; 64];
                    crate::neon::store(bools, &mut padded);
                    out.copy_from_slice(&padded[..out.len()]);
                }
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! The portable twins compiled with wider vectors, and the comparisons and expansions for which masks are faster.

    use super::*;
    use core::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,popcnt,bmi1,bmi2")]
    pub(super) fn count_avx512(bitmap: &[u8], bit: usize, count: usize) -> usize {
        count_portable(bitmap, bit, count)
    }

    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
    pub(super) fn count_avx2(bitmap: &[u8], bit: usize, count: usize) -> usize {
        count_portable(bitmap, bit, count)
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt,bmi1,bmi2")]
    pub(super) fn levels_avx512<L: Level>(levels: &[L], present: L, dst: &mut [u8], dst_bit: usize) -> usize {
        let mut ones = 0;
        let wide = size_of::<L>() == 2;
        let bytes = crate::plain::as_bytes(levels);
        let threshold = crate::plain::as_bytes(core::slice::from_ref(&present));
        let threshold = match *threshold {
            [low, high] => _mm512_set1_epi16(u16::from_le_bytes([low, high]) as i16),
            _ => _mm512_set1_epi8(threshold[0] as i8),
        };
        write(dst, dst_bit, levels.len(), |i, n| {
            let mask = u64::MAX >> (64 - n);
            let word = if wide {
                let at: *const i16 = bytes[i * 2..][..n * 2].as_ptr().cast();
                // SAFETY: the masks select the slice's `n` levels; masked-out levels are not accessed. The upper
                // pointer is computed with wrapping arithmetic, because it may be beyond them.
                let (low, high) = unsafe {
                    (
                        _mm512_maskz_loadu_epi16(mask as u32, at),
                        _mm512_maskz_loadu_epi16((mask >> 32) as u32, at.wrapping_add(32)),
                    )
                };
                u64::from(_mm512_cmpge_epu16_mask(low, threshold))
                    | u64::from(_mm512_cmpge_epu16_mask(high, threshold)) << 32
            } else {
                // SAFETY: the mask selects the slice's `n` levels; masked-out levels are not accessed.
                let all = unsafe { _mm512_maskz_loadu_epi8(mask, bytes[i..][..n].as_ptr().cast()) };
                _mm512_cmpge_epu8_mask(all, threshold)
            } & mask;
            ones += word.count_ones() as usize;
            word
        });
        ones
    }

    /// 64 levels: compared (a level is at least the threshold if it is the maximum of both), then a mask of the bytes'
    /// signs.
    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
    pub(super) fn levels_avx2<L: Level>(levels: &[L], present: L, dst: &mut [u8], dst_bit: usize) -> usize {
        let mut ones = 0;
        let threshold = crate::plain::as_bytes(core::slice::from_ref(&present));
        let threshold = match *threshold {
            [low, high] => _mm256_set1_epi16(u16::from_le_bytes([low, high]) as i16),
            _ => _mm256_set1_epi8(threshold[0] as i8),
        };
        write(dst, dst_bit, levels.len(), |i, n| {
            let mut padded = [L::ZERO; 64];
            let levels: &[L] = if n == 64 {
                &levels[i..i + 64]
            } else {
                padded[..n].copy_from_slice(&levels[i..i + n]);
                &padded
            };
            let (vectors, _) = crate::plain::as_bytes(levels).as_chunks::<32>();
            let bytes = |k: usize| {
                // SAFETY: a chunk is 32 bytes.
                let load = |k: usize| unsafe { _mm256_loadu_si256(vectors[k].as_ptr().cast()) };
                if size_of::<L>() == 1 {
                    let all = load(k);
                    return _mm256_cmpeq_epi8(_mm256_max_epu8(all, threshold), all);
                }
                let [low, high] = [load(2 * k), load(2 * k + 1)]
                    .map(|all| _mm256_cmpeq_epi16(_mm256_max_epu16(all, threshold), all));
                // Packing interleaves the 128-bit halves; the permutation puts them in order.
                _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(low, high))
            };
            let [low, high] = [bytes(0), bytes(1)].map(|all| _mm256_movemask_epi8(all) as u32);
            let word = (u64::from(low) | u64::from(high) << 32) & (u64::MAX >> (64 - n));
            ones += word.count_ones() as usize;
            word
        });
        ones
    }

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn bools_avx512(bitmap: &[u8], bit: usize, out: &mut [u8]) {
        let whole = if bit.is_multiple_of(8) { bitmap.get(bit / 8..).unwrap_or_default() } else { &[] };
        let done = crate::unpack::avx512::bits(whole, out);
        for (piece, out) in out[done..].chunks_mut(64).enumerate() {
            let word = read(bitmap, bit + done + piece * 64, out.len());
            let bytes = _mm512_maskz_mov_epi8(word, _mm512_set1_epi8(1));
            let mask = u64::MAX >> (64 - out.len());
            // SAFETY: the mask selects `out.len()` bytes; masked-out bytes are not accessed.
            unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), mask, bytes) };
        }
    }

    #[target_feature(enable = "avx2,bmi1,bmi2")]
    pub(super) fn bools_avx2(bitmap: &[u8], bit: usize, out: &mut [u8]) {
        for (piece, out) in out.chunks_mut(64).enumerate() {
            let word = read(bitmap, bit + piece * 64, out.len());
            let mut bytes = [0u8; 64];
            let (halves, _) = bytes.as_chunks_mut::<32>();
            for (half, word) in halves.iter_mut().zip([word as u32, (word >> 32) as u32]) {
                // SAFETY: a chunk is 32 bytes.
                unsafe { _mm256_storeu_si256(half.as_mut_ptr().cast(), crate::unpack::avx2::bools(word)) };
            }
            match <&mut [u8; 64]>::try_from(&mut *out) {
                Ok(out) => *out = bytes,
                Err(_) => out.copy_from_slice(&bytes[..out.len()]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, bit, rounds};
    use std::vec::Vec;

    /// Every combination of two bit offsets, with lengths around bytes, words and vectors.
    fn ranges() -> impl Iterator<Item = (usize, usize, usize)> {
        let lengths: Vec<usize> =
            if cfg!(miri) { [0, 1, 9, 70].into() } else { (0..150).chain([191, 192, 193, 600]).collect() };
        let step = if cfg!(miri) { 5 } else { 1 };
        let offsets = move || (0..9).step_by(step);
        lengths.into_iter().flat_map(move |n| offsets().flat_map(move |a| offsets().map(move |b| (a, b, n))))
    }

    #[test]
    fn copies_and_fills() {
        let mut random = Random::new(51);
        let src = random.bytes(90);
        let before = random.bytes(90);
        for (from, to, n) in ranges() {
            let mut dst = before.clone();
            copy(&src[..(from + n).div_ceil(8)], from, &mut dst, to, n).unwrap();
            for i in 0..dst.len() * 8 {
                let expected =
                    if (to..to + n).contains(&i) { bit(&src, i - to + from) } else { bit(&before, i) };
                assert_eq!(get(&dst, i), Some(expected), "{from} {to} {n} {i}");
            }
            let mut filled = before.clone();
            fill(&mut filled, to, n, from % 2 == 0).unwrap();
            for i in 0..dst.len() * 8 {
                let expected = if (to..to + n).contains(&i) { from % 2 == 0 } else { bit(&before, i) };
                assert_eq!(bit(&filled, i), expected);
            }
        }
    }

    #[test]
    fn counts() {
        let mut random = Random::new(52);
        let src = random.bytes(90);
        for (from, _, n) in ranges().filter(|range| range.1 == 0) {
            let naive = (from..from + n).filter(|&i| bit(&src, i)).count();
            for isa in Isa::all() {
                assert_eq!(count_with(isa, &src[..(from + n).div_ceil(8)], from, n), naive);
            }
            assert_eq!(count_ones(&src, from, n), Ok(naive));
        }
    }

    fn levels_of<L: Level>(make: impl Fn(u64) -> L, thresholds: &[u64]) {
        let mut random = Random::new(53);
        let before = random.bytes(90);
        for (_, to, n) in ranges().filter(|range| range.0 == 0) {
            for &present in thresholds {
                let levels: Vec<L> = (0..n).map(|_| make(random.next() % (present + 2))).collect();
                for isa in Isa::all() {
                    let mut dst = before.clone();
                    let ones = from_levels_with(isa, &levels, make(present), &mut dst, to).unwrap();
                    assert_eq!(ones, levels.iter().filter(|&&level| level >= make(present)).count());
                    for i in 0..dst.len() * 8 {
                        let expected = match i.checked_sub(to).and_then(|i| levels.get(i)) {
                            Some(level) => *level >= make(present),
                            None => bit(&before, i),
                        };
                        assert_eq!(bit(&dst, i), expected, "{isa:?} {to} {n} {i}");
                    }
                }
            }
        }
    }

    #[test]
    fn levels_to_bits() {
        levels_of(|level| level as u8, &[1, 3, 200]);
        levels_of(|level| level as u16, &[1, 2, 300, 40000]);
    }

    #[test]
    fn bools() {
        let mut random = Random::new(54);
        let src = random.bytes(90);
        for (from, _, n) in ranges().filter(|range| range.1 == 0) {
            for isa in Isa::all() {
                let mut out = std::vec![7; n];
                unpack_bool_with(isa, &src[..(from + n).div_ceil(8)], from, &mut out).unwrap();
                for (i, byte) in out.iter().enumerate() {
                    assert_eq!(*byte, u8::from(bit(&src, from + i)));
                }
            }
        }
    }

    #[test]
    fn single_bits() {
        let mut bitmap = [0u8; 3];
        for i in 0..24 {
            set(&mut bitmap, i, i % 3 == 0).unwrap();
        }
        set(&mut bitmap, 3, false).unwrap();
        for i in 0..24 {
            assert_eq!(get(&bitmap, i), Some(i % 3 == 0 && i != 3));
        }
        assert_eq!(get(&bitmap, 24), None);
        assert_eq!(set(&mut bitmap, 24, true), Err(Error::Short { needed: 4, given: 3 }));
    }

    #[test]
    fn refusals_change_nothing() {
        let mut random = Random::new(55);
        for _ in 0..rounds(300) {
            let bytes = random.below(20);
            let from = random.below(bytes * 8 + 20);
            let n = (bytes * 8).saturating_sub(from) + 1 + random.below(9);
            let mut dst = std::vec![0x55; bytes];
            assert!(fill(&mut dst, from, n, true).is_err());
            assert!(copy(&[0xff; 40], 0, &mut dst, from, n).is_err());
            assert!(from_levels(&std::vec![1u8; n], 1, &mut dst, from).is_err());
            assert!(count_ones(&dst, from, n).is_err());
            assert!(copy(&dst, from, &mut [0; 90], 0, n).is_err());
            assert!(unpack_bool(&dst, from, &mut std::vec![0; n]).is_err());
            assert!(dst.iter().all(|&byte| byte == 0x55));
        }
        assert!(count_ones(&[0; 9], usize::MAX, 2).is_err());
        assert!(fill(&mut [0; 9], 8, usize::MAX, true).is_err());
    }
}
