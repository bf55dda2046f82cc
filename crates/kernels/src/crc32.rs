//! Page checksums: CRC-32 as in gzip (polynomial 0x04C11DB7), the content of `PageHeader.crc`.
//!
//! Speed: the products without carry bound it. `docs/bench/kernels.md` has its distance from a copy of as many
//! bytes (`make bench-kernels`).

/// The checksum of `bytes` appended to the bytes whose checksum is `initial`. The checksum of no bytes is 0.
#[must_use]
pub fn crc32(initial: u32, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(initial);
    hasher.update(bytes);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};

    #[test]
    fn the_check_value_and_any_split() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(7, b""), 7);
        let mut random = Random::new(61);
        let bytes = random.bytes(rounds(1000));
        let naive = !bytes.iter().fold(!0u32, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
        });
        for split in 0..=bytes.len() {
            assert_eq!(crc32(crc32(0, &bytes[..split]), &bytes[split..]), naive);
        }
    }
}
