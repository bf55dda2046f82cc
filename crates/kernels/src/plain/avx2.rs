//! AVX2: four vectors at a time, to where they are aligned.

use core::arch::x86_64::*;

/// Bytes of a vector.
const WIDTH: usize = 32;

/// Bytes a block.
const BLOCK: usize = 4 * WIDTH;

/// Copies most of `from` to `to`, which is as long, from the start on. Returns how many bytes, of fewer than a vector none.
#[target_feature(enable = "avx2")]
pub(super) fn blocks(from: &[u8], to: &mut [u8]) -> usize {
    let (Some(first), Some(start)) = (from.first_chunk::<WIDTH>(), to.first_chunk_mut()) else { return 0 };
    *start = *first;
    // What follows is aligned: a store that reaches into the next line of the cache takes as long as two.
    let mut done = to.as_ptr().addr().wrapping_neg() % WIDTH;
    for (from, to) in from[done..].as_chunks::<BLOCK>().0.iter().zip(to[done..].as_chunks_mut::<BLOCK>().0) {
        // SAFETY: `k < 4`, and a block has four vectors.
        let load = |k: usize| unsafe { _mm256_loadu_si256(from.as_ptr().add(k * WIDTH).cast()) };
        let vectors = [load(0), load(1), load(2), load(3)];
        for (k, vector) in vectors.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().add(k * WIDTH).cast(), vector) };
        }
        done += BLOCK;
    }
    done
}
