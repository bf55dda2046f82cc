//! BYTE_STREAM_SPLIT (Encodings.md, "Byte Stream Split"): byte `k` of value `i` is at `k * values_total + i`.
//!
//! Speed: the shuffles of the transposition bound it. `docs/bench/kernels.md` has its distance from a copy of as
//! many bytes (`make bench-kernels`).
//!
//! NEON: counted in its loops, not measured, values of 2 bytes take 0.7 instructions each to join and 0.4 to split, those of 4 0.9 and 0.5,
//! those of 8 3.1 and 2.4, and others 4.6 and 5.3 for each eight bytes. (The portable form: 21 to join eight.)

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;

use crate::cpu::{Isa, dispatch, isa};
use crate::error::Error;
use crate::plain::{Plain, as_bytes_mut};
use generic::{transpose, word};

/// Joins values `first..first + out.len()` of a page body that holds `values_total`.
///
/// # Errors
///
/// As [`decode`].
pub fn values<T: Plain>(
    streams: &[u8],
    values_total: usize,
    first: usize,
    out: &mut [T],
) -> Result<(), Error> {
    decode(size_of::<T>(), streams, values_total, first, as_bytes_mut(out))
}

/// Joins values of `width` bytes, from value `first` on, as many as `out` has room for, value after value.
///
/// # Errors
///
/// `Width` of 0; `Mismatch` if `out` ends within a value; `Short` if `streams` holds fewer than `values_total` values,
/// or the requested ones go beyond those.
pub fn decode(
    width: usize,
    streams: &[u8],
    values_total: usize,
    first: usize,
    out: &mut [u8],
) -> Result<(), Error> {
    decode_with(isa(), width, streams, values_total, first, out)
}

fn decode_with(
    isa: Isa,
    width: usize,
    streams: &[u8],
    total: usize,
    first: usize,
    out: &mut [u8],
) -> Result<(), Error> {
    if width == 0 {
        return Err(Error::Width { width });
    }
    if !out.len().is_multiple_of(width) {
        return Err(Error::Mismatch);
    }
    let count = out.len() / width;
    let needed = total.saturating_mul(width);
    if needed > streams.len() {
        return Err(Error::Short { needed, given: streams.len() });
    }
    if total.checked_sub(first).is_none_or(|left| left < count) {
        let needed = first.saturating_add(count).saturating_mul(width);
        return Err(Error::Short { needed, given: total * width });
    }
    if count == 0 {
        // Then a value may be of any width.
        return Ok(());
    }
    let stream = |k: usize| &streams[k * total + first..][..count];
    match width {
        1 => out.copy_from_slice(stream(0)),
        2 => fixed(isa, [stream(0), stream(1)], out),
        4 => fixed(isa, core::array::from_fn::<_, 4, _>(stream), out),
        8 => fixed(isa, core::array::from_fn::<_, 8, _>(stream), out),
        _ => any(isa, width, &streams[first..], total, out),
    }
    Ok(())
}

/// The widths that are machine words. Every stream holds `out.len() / W` bytes.
fn fixed<const W: usize>(isa: Isa, streams: [&[u8]; W], out: &mut [u8]) {
    let done = match W {
        // No contract beyond the features.
        2 | 4 | 8 => dispatch!(isa,
            avx512: avx2::blocks(streams, out),
            avx2: avx2::blocks(streams, out),
            neon: neon::blocks(streams, out),
            portable: 0,
        ),
        _ => 0,
    };
    words(streams.map(|stream| &stream[done..]), &mut out[done * W..]);
}

/// The portable twin: by transposition of eight bytes of eight streams, or of sixteen of four; the rest byte by byte,
/// which the compiler turns into vectors for pairs only.
fn words<const W: usize>(streams: [&[u8]; W], out: &mut [u8]) {
    let (values, _) = out.as_chunks_mut::<W>();
    let streams = streams.map(|stream| &stream[..values.len()]);
    let mut done = 0;
    match W {
        8 => {
            for values in values.as_chunks_mut::<8>().0 {
                let words = transpose(core::array::from_fn(|k| word(streams[k], done)));
                for (value, word) in values.iter_mut().zip(words) {
                    value.copy_from_slice(&word.to_le_bytes());
                }
                done += 8;
            }
        }
        4 => {
            for values in values.as_chunks_mut::<16>().0 {
                let words = transpose(core::array::from_fn(|k| word(streams[k % 4], done + k / 4 * 8)));
                // Each word holds a value of the first eight and one of the second.
                for (i, word) in words.into_iter().enumerate() {
                    values[i].copy_from_slice(&(word as u32).to_le_bytes());
                    values[i + 8].copy_from_slice(&((word >> 32) as u32).to_le_bytes());
                }
                done += 16;
            }
        }
        _ => {}
    }
    for (i, value) in values.iter_mut().enumerate().skip(done) {
        for k in 0..W {
            value[k] = streams[k][i];
        }
    }
}

/// Values gathered stream by stream while their part of `out` is in the first-level cache.
const PIECE: usize = 256;

/// Any width; `streams` begins at the first value of stream 0, and the next stream's lies `total` bytes on.
fn any(isa: Isa, width: usize, streams: &[u8], total: usize, out: &mut [u8]) {
    let done = match width {
        ..8 => 0,
        // No contract beyond the features.
        _ => dispatch!(isa,
            avx512: avx2::by_eights(width, streams, total, out),
            avx2: avx2::by_eights(width, streams, total, out),
            neon: neon::by_eights(width, streams, total, out),
            portable: by_eights(width, streams, total, out),
        ),
    };
    for (piece, out) in out[done * width..].chunks_mut(width * PIECE).enumerate() {
        let count = out.len() / width;
        for k in 0..width {
            let stream = &streams[k * total + done + piece * PIECE..][..count];
            for (value, &byte) in out.chunks_exact_mut(width).zip(stream) {
                value[k] = byte;
            }
        }
    }
}

/// Joins eight values of eight streams at a time, in general registers; the last eight streams may overlap those before.
/// Returns the number of complete values. (A byte at a time took nearly twice as long.)
fn by_eights(width: usize, streams: &[u8], total: usize, out: &mut [u8]) -> usize {
    let mut done = 0;
    for out in out.chunks_exact_mut(width * 8) {
        let mut k = 0;
        loop {
            let words = core::array::from_fn(|i| word(streams, (k + i) * total + done));
            for (i, word) in transpose(words).into_iter().enumerate() {
                out[i * width + k..][..8].copy_from_slice(&word.to_le_bytes());
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

/// Writes byte `k` of value `i` to `out[k * stride + i]`, for values of `width` bytes, one after the other.
///
/// # Errors
///
/// `Width` of 0; `Mismatch` if `values` ends within a value; `Short` if `out` has no room for `width` streams of `stride`
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
    if count == 0 {
        // Then a value may be of any width.
        return Ok(());
    }
    // No contract beyond the features.
    let done = dispatch!(isa,
        avx512: avx512::split(width, values, stride, out),
        avx2: avx2::split(width, values, stride, out),
        neon: neon::split(width, values, stride, out),
        portable: generic::split(width, values, stride, out),
    );
    for (i, value) in values.chunks_exact(width).enumerate().skip(done) {
        for (k, &byte) in value.iter().enumerate() {
            out[k * stride + i] = byte;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};
    use std::vec;

    #[test]
    fn every_width_length_and_start() {
        let mut random = Random::new(41);
        for isa in Isa::all() {
            for width in 1..20 {
                for total in (0..rounds(100)).chain([130, 300]) {
                    let streams = random.bytes(width * total);
                    let first = random.below(total + 1);
                    let count = random.below(total - first + 1);
                    for (first, count) in [(0, total), (first, count)] {
                        let mut out = vec![0; count * width];
                        decode_with(isa, width, &streams, total, first, &mut out).unwrap();
                        for i in 0..count {
                            for k in 0..width {
                                assert_eq!(out[i * width + k], streams[k * total + first + i]);
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn typed() {
        // 1.0 and -2.0: exponents and signs lie in the last stream.
        let mut out = [0f32; 2];
        values(&[0, 0, 0, 0, 0x80, 0, 0x3f, 0xc0], 2, 0, &mut out).unwrap();
        assert_eq!(out, [1.0, -2.0]);
        let mut last = [0f32; 1];
        values(&[0, 0, 0, 0, 0x80, 0, 0x3f, 0xc0], 2, 1, &mut last).unwrap();
        assert_eq!(last, [-2.0]);
    }

    #[test]
    fn refuses() {
        assert_eq!(decode(0, &[], 0, 0, &mut []), Err(Error::Width { width: 0 }));
        assert_eq!(decode(4, &[0; 8], 2, 0, &mut [0; 7]), Err(Error::Mismatch));
        assert_eq!(decode(4, &[0; 7], 2, 0, &mut [0; 4]), Err(Error::Short { needed: 8, given: 7 }));
        assert_eq!(decode(4, &[0; 8], 2, 1, &mut [0; 8]), Err(Error::Short { needed: 12, given: 8 }));
        assert!(decode(4, &[0; 8], 2, usize::MAX, &mut [0; 8]).is_err());
        assert!(decode(4, &[0; 8], usize::MAX, 0, &mut [0; 8]).is_err());
        assert_eq!(decode(usize::MAX, &[], 0, 0, &mut []), Ok(()));
    }

    #[test]
    fn split_at_every_width_and_length() {
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
    fn split_refuses() {
        assert_eq!(split(0, &[], 0, &mut []), Err(Error::Width { width: 0 }));
        assert_eq!(split(4, &[0; 7], 2, &mut [0; 8]), Err(Error::Mismatch));
        assert_eq!(split(4, &[0; 8], 1, &mut [0; 8]), Err(Error::Short { needed: 8, given: 8 }));
        assert_eq!(split(4, &[0; 8], 2, &mut [0; 7]), Err(Error::Short { needed: 8, given: 7 }));
        assert_eq!(split(usize::MAX, &[], 0, &mut []), Ok(()));
    }
}
