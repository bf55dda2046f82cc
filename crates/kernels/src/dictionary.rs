//! Bit-packed dictionary indices straight to values: the inner loop of PLAIN_DICTIONARY and RLE_DICTIONARY pages.
//!
//! Speed: the look-up bounds it, as in [`gather`], and not the unpacking. `docs/bench/kernels.md` has its
//! distance from a copy of as many bytes (`make bench-kernels`).

use crate::cpu::{Isa, isa};
use crate::error::{Error, need_bits};
use crate::unpack::{bits_through, u32_with};
use crate::{Plain, gather};

/// Indices unpacked at a time, on the stack.
const PIECE: usize = 512;

/// Unpacks `out.len()` indices of `width` bits, beginning with index `first` of the run that `input` begins with, and
/// looks them up.
///
/// # Errors
///
/// `Width` above 32; `Short` if `input` ends before index `first + out.len()`; `OutOfRange` if an index is outside the
/// dictionary: then `out` holds some of the values.
pub fn decode<T: Plain>(
    width: u32,
    input: &[u8],
    first: usize,
    dict: &[T],
    out: &mut [T],
) -> Result<(), Error> {
    decode_with(isa(), width, input, first, dict, out)
}

/// The same with a dictionary in segments.
///
/// # Errors
///
/// As [`decode`].
pub fn decode_segmented<T: Plain>(
    width: u32,
    input: &[u8],
    first: usize,
    dict: gather::Segmented<'_, T>,
    out: &mut [T],
) -> Result<(), Error> {
    if width > 32 {
        return Err(Error::Width { width: width as usize });
    }
    need_bits(bits_through(width, first, out.len()), input.len())?;
    let isa = isa();
    let mut indices = [0u32; PIECE];
    let mut at = first;
    for out in out.chunks_mut(PIECE) {
        let indices = &mut indices[..out.len()];
        u32_with(isa, width, input, at, indices)?;
        dict.values_with(isa, indices, out)?;
        at += out.len();
    }
    Ok(())
}

fn decode_with<T: Plain>(
    isa: Isa,
    width: u32,
    input: &[u8],
    first: usize,
    dict: &[T],
    out: &mut [T],
) -> Result<(), Error> {
    if width > 32 {
        return Err(Error::Width { width: width as usize });
    }
    need_bits(bits_through(width, first, out.len()), input.len())?;
    // If the dictionary has an entry for every number of `width` bits, no index needs a check.
    let complete = 1u64 << width <= dict.len() as u64;
    let mut indices = [0u32; PIECE];
    let mut at = first;
    for out in out.chunks_mut(PIECE) {
        let indices = &mut indices[..out.len()];
        u32_with(isa, width, input, at, indices)?;
        if complete {
            // SAFETY: every index is below `1 << width`, which is at most `dict.len()`.
            unsafe { gather::lookup(dict, indices, out) };
        } else {
            gather::values_with(isa, dict, indices, out)?;
        }
        at += out.len();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, pack, rounds};
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn decodes_as_unpacking_and_looking_up_do() {
        let mut random = Random::new(21);
        for width in 0..=if cfg!(miri) { 6 } else { 20u32 } {
            for round in 0..rounds(12) {
                // Complete, one entry short, and many short.
                let entries = match round % 3 {
                    0 => 1usize << width,
                    1 => ((1usize << width) - 1).max(1),
                    _ => 1 + random.below(1 << width.min(10)),
                };
                let dict: Vec<u64> =
                    (0..entries as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
                let count = random.below(1300);
                let first = random.below(20);
                let indices: Vec<u64> = (0..first + count).map(|_| random.below(entries) as u64).collect();
                let mut packed = pack(&indices, width as usize);
                for isa in Isa::all() {
                    let mut out = vec![0; count];
                    decode_with(isa, width, &packed, first, &dict, &mut out).unwrap();
                    for (value, &index) in out.iter().zip(&indices[first..]) {
                        assert_eq!(*value, dict[index as usize]);
                    }
                    let segments: Vec<Vec<u64>> = dict.chunks(1 << 4).map(<[u64]>::to_vec).collect();
                    let segmented = gather::Segmented::new(&segments, 4).unwrap();
                    let mut again = vec![0; count];
                    decode_segmented(width, &packed, first, segmented, &mut again).unwrap();
                    assert_eq!(again, out);
                    let narrow: Vec<i32> = dict.iter().map(|&v| v as i32).collect();
                    let mut out = vec![0; count];
                    decode_with(isa, width, &packed, first, &narrow, &mut out).unwrap();
                    for (value, &index) in out.iter().zip(&indices[first..]) {
                        assert_eq!(*value, narrow[index as usize]);
                    }
                }
                if count > 0 && (entries as u64) < 1 << width {
                    packed.fill(0xff);
                    for isa in Isa::all() {
                        let refused = decode_with(isa, width, &packed, first, &dict, &mut vec![0; count]);
                        assert_eq!(refused, Err(Error::OutOfRange { index: (1 << width) - 1, entries }));
                    }
                }
            }
        }
    }

    #[test]
    fn refuses() {
        let mut out = [0u32; 9];
        assert_eq!(decode(33, &[0; 99], 0, &[1], &mut out), Err(Error::Width { width: 33 }));
        let one = [vec![1u32]];
        let one = gather::Segmented::new(&one, 0).unwrap();
        let width = decode_segmented(33, &[0; 99], 0, one, &mut out);
        assert_eq!(width, Err(Error::Width { width: 33 }));
        let short = decode_segmented(8, &[0; 8], 0, one, &mut out);
        assert_eq!(short, Err(Error::Short { needed: 9, given: 8 }));
        let beyond = decode_segmented(8, &[1; 9], 0, one, &mut out);
        assert_eq!(beyond, Err(Error::OutOfRange { index: 1, entries: 1 }));
        assert_eq!(decode(8, &[0; 8], 0, &[1], &mut out), Err(Error::Short { needed: 9, given: 8 }));
        assert_eq!(decode(0, &[], 0, &[], &mut out), Err(Error::OutOfRange { index: 0, entries: 0 }));
        assert_eq!(decode(0, &[], 0, &[5u32], &mut out), Ok(()));
        assert_eq!(out, [5; 9]);
    }
}
