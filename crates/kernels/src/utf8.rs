//! UTF-8 validity, tens of bytes a nanosecond.
//!
//! Speed: some twenty operations for each register of bytes bound it; loads do where all is ASCII.
//! `docs/bench/kernels.md` has its distance from a copy of as many bytes (`make bench-kernels`).

/// Whether all of `bytes` is UTF-8.
///
/// Consecutive strings can be checked together only if none of them begins within a character; see [`is_boundary`].
#[must_use]
pub fn valid(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok()
}

/// The position of the first byte that is not UTF-8; everything before it is. `None` if all bytes are valid.
#[must_use]
pub fn error_at(bytes: &[u8]) -> Option<usize> {
    simdutf8::compat::from_utf8(bytes).err().map(|error| error.valid_up_to())
}

/// Whether a byte can begin a character: it is not a continuation byte.
#[inline]
#[must_use]
pub fn is_boundary(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};
    use std::string::String;

    #[test]
    fn agrees_with_the_standard_library() {
        let mut random = Random::new(71);
        for _ in 0..rounds(3000) {
            let text: String = (0..random.below(90))
                .filter_map(|_| char::from_u32((random.next() >> random.below(40) >> 11) as u32 & 0x1f_ffff))
                .collect();
            let mut bytes = text.into_bytes();
            if random.below(2) == 0 && !bytes.is_empty() {
                let at = random.below(bytes.len());
                bytes[at] ^= 1 << random.below(8);
            }
            let oracle = core::str::from_utf8(&bytes);
            assert_eq!(valid(&bytes), oracle.is_ok());
            assert_eq!(error_at(&bytes), oracle.err().map(|error| error.valid_up_to()));
        }
        assert!(is_boundary(b'a') && is_boundary(0xc3) && !is_boundary(0xa9));
    }
}
