//! Versions and parts: the keys of partitions.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;

use marquetry_base::cast::bits_i64;

/// A version of the file: a random UUID.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Version([u8; 16]);

impl Version {
    /// That in the key of the partition that is about the table. No file has it.
    pub(super) const NONE: Version = Version([0; 16]);

    /// One that no other file has.
    pub(super) fn random() -> Version {
        // The keys of each hasher are random.
        let random = || RandomState::new().hash_one(std::process::id()).to_be_bytes();
        let (mut bytes, (high, low)) = ([0; 16], (random(), random()));
        bytes[..8].copy_from_slice(&high);
        bytes[8..].copy_from_slice(&low);
        // What tells people that it is random: version 4, variant 1.
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Version(bytes)
    }

    pub(super) fn of_bytes(bytes: &[u8]) -> Option<Version> {
        bytes.try_into().ok().map(Version)
    }

    /// Reads what `Display` writes.
    pub(super) fn parse(text: &str) -> Option<Version> {
        let digits: String = text.chars().filter(|c| *c != '-').collect();
        let is_hexadecimal = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_hexadecimal)?;
        Some(Version(number.to_be_bytes()))
    }

    pub(super) fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The number of the row that says that somebody writes it: positive.
    pub(super) fn lease(&self) -> i64 {
        let mut high = [0; 8];
        high.copy_from_slice(&self.0[..8]);
        bits_i64(u64::from_be_bytes(high) >> 1) | 1
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let hyphen = if [4, 6, 8, 10].contains(&at) { "-" } else { "" };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What a partition holds of a version, as its key says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Part {
    /// The leaf whose pages are in it, from 0; or one of the numbers below.
    pub(super) column: i32,
    /// The row group, from 0; 0 of what belongs to none.
    pub(super) row_group: i32,
    /// A column chunk of more than a partition's bytes goes on in the next shard.
    pub(super) shard: i32,
}

/// Of [`Version::NONE`], which version is current; of others, where the parts of the file are.
pub(super) const MAP: i32 = -1;
/// The footer, and whatever is in no other part.
pub(super) const FOOTER: i32 = -2;
/// The page indexes of a row group.
pub(super) const INDEXES: i32 = -3;
/// The Bloom filters of a row group.
pub(super) const FILTERS: i32 = -4;

impl Part {
    pub(super) const MAP: Part = Part { column: MAP, row_group: 0, shard: 0 };
    pub(super) const FOOTER: Part = Part { column: FOOTER, row_group: 0, shard: 0 };
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { column, row_group, shard } = self;
        write!(f, "column_number = {column}, row_group = {row_group}, shard = {shard}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_print_as_they_parse() {
        let (one, other) = (Version::random(), Version::random());
        assert_ne!(one, other);
        let text = one.to_string();
        assert_eq!((text.len(), &text[14..15]), (36, "4"));
        assert!("89ab".contains(&text[19..20]), "{text}");
        assert_eq!(Version::parse(&text), Some(one));
        assert_eq!(Version::of_bytes(one.as_bytes()), Some(one));
        assert_eq!(Version::NONE.to_string(), "00000000-0000-0000-0000-000000000000");
        for wrong in ["", "1", "+0000000000000000000000000000001", &text[1..]] {
            assert_eq!(Version::parse(wrong), None, "{wrong}");
        }
        assert!((0..100).all(|_| Version::random().lease() > 0));
    }
}
