//! The portable twins: transpositions of eight words.

/// Splits values by transposing eight words; returns how many were done.
#[inline(always)]
pub(super) fn split(width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> usize {
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

/// The eight bytes from `at` on.
#[inline(always)]
pub(super) fn word(stream: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&stream[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Byte `j` of word `i` becomes byte `i` of word `j`.
#[inline(always)]
pub(super) fn transpose(mut words: [u64; 8]) -> [u64; 8] {
    // Blocks of 4 × 4 bytes change places across the diagonal, then of 2 × 2, then bytes.
    for i in [0, 1, 2, 3] {
        exchange::<4>(&mut words, i, 0x0000_0000_ffff_ffff);
    }
    for i in [0, 1, 4, 5] {
        exchange::<2>(&mut words, i, 0x0000_ffff_0000_ffff);
    }
    for i in [0, 2, 4, 6] {
        exchange::<1>(&mut words, i, 0x00ff_00ff_00ff_00ff);
    }
    words
}

/// The upper bytes of each `2 * DISTANCE` in word `i` for the lower ones in word `i + DISTANCE`; `mask` has the lower.
#[inline(always)]
fn exchange<const DISTANCE: usize>(words: &mut [u64; 8], i: usize, mask: u64) {
    let shift = 8 * DISTANCE;
    let change = (words[i] >> shift ^ words[i + DISTANCE]) & mask;
    words[i + DISTANCE] ^= change;
    words[i] ^= change << shift;
}
