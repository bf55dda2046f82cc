//! Tokens of partition keys, by which partitions are sorted.

/// The token of a partition key, as Cassandra's and ScyllaDB's `Murmur3Partitioner` has it.
///
/// It is the first half of MurmurHash3 (x64, 128 bits, seed 0), but for one thing: bytes after the last block of 16 are taken with a
/// sign, as Java has bytes. The least number is the token of the empty key, and of no other.
///
/// ```
/// use marquetry_scylla::sstable::murmur3_token;
///
/// // SELECT token(k): of the text '123'.
/// assert_eq!(murmur3_token(b"123"), -7468325962851647638);
/// ```
pub fn murmur3_token(key: &[u8]) -> i64 {
    if key.is_empty() {
        return i64::MIN;
    }
    token_of(murmur3_hash(key))
}

/// The token that a hash is.
pub(super) fn token_of([first, _]: [u64; 2]) -> i64 {
    match first.cast_signed() {
        i64::MIN => i64::MAX,
        token => token,
    }
}

const FACTORS: [u64; 2] = [0x87c3_7b91_1142_53d5, 0x4cf5_ad43_2745_937f];

/// Both halves of the hash. Bloom filters use them, too.
pub(super) fn murmur3_hash(key: &[u8]) -> [u64; 2] {
    let (mut first, mut second) = (0_u64, 0_u64);
    let (blocks, tail) = key.as_chunks::<16>();
    for block in blocks {
        first ^= scramble_first(word(block, 0));
        first = first.rotate_left(27).wrapping_add(second).wrapping_mul(5).wrapping_add(0x52dc_e729);
        second ^= scramble_second(word(block, 8));
        second = second.rotate_left(31).wrapping_add(first).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    if tail.len() > 8 {
        second ^= scramble_second(signed_word(&tail[8..]));
    }
    if !tail.is_empty() {
        first ^= scramble_first(signed_word(&tail[..tail.len().min(8)]));
    }
    let length = u64::try_from(key.len()).unwrap_or(u64::MAX);
    (first, second) = (first ^ length, second ^ length);
    first = first.wrapping_add(second);
    second = second.wrapping_add(first);
    (first, second) = (finish(first), finish(second));
    first = first.wrapping_add(second);
    [first, second.wrapping_add(first)]
}

/// Eight bytes of a block.
fn word(block: &[u8; 16], from: usize) -> u64 {
    block[from..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// At most eight bytes, little-endian, each with its sign: a negative one inverts all bits above it.
fn signed_word(bytes: &[u8]) -> u64 {
    bytes.iter().enumerate().fold(0, |word, (at, byte)| {
        let signed = i64::from(byte.cast_signed()).cast_unsigned();
        word ^ (signed << (8 * at))
    })
}

fn scramble_first(word: u64) -> u64 {
    word.wrapping_mul(FACTORS[0]).rotate_left(31).wrapping_mul(FACTORS[1])
}

fn scramble_second(word: u64) -> u64 {
    word.wrapping_mul(FACTORS[1]).rotate_left(33).wrapping_mul(FACTORS[0])
}

/// Lets every bit depend on every other.
fn finish(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that the tests of ScyllaDB's Python driver have.
    #[test]
    fn tokens_are_those_of_servers() {
        let repeated = [0x00, 0xff, 0x10, 0xfa, 0x99].repeat(10);
        let cases: [(&[u8], i64); 5] = [
            (b"123", -7468325962851647638),
            (&repeated, 5837342703291459765),
            (&[0xfe; 8], -8927430733708461935),
            (&[0x10; 8], 1446172840243228796),
            (b"9223372036854775807", 7162290910810015547),
        ];
        for (key, token) in cases {
            assert_eq!(murmur3_token(key), token, "{key:?}");
        }
    }

    #[test]
    fn the_least_token_is_of_the_empty_key() {
        assert_eq!(murmur3_token(&[]), i64::MIN);
    }
}
