//! Counters: a cell's value is a list of shards, one for each node that counted.
//!
//! A value begins with the number of entries of its header, and the entries: the numbers of the shards that are *local* or *global* (those
//! have 2^15 added, in two's complement). Then come the shards: the node's identifier of 16 bytes, a clock and a count, of eight bytes each.
//! (Cassandra: `CounterContext.java`; ScyllaDB writes only global shards.)

use marquetry_base::{Error, Result};

/// A shard of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// The node's identifier.
    pub node: [u8; 16],
    /// The greater is the later.
    pub clock: i64,
    /// What the node counted.
    pub count: i64,
}

const SHARD_BYTES: usize = 16 + 8 + 8;

/// The shards of a counter's value.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) if it is not a counter's.
pub fn shards(value: &[u8]) -> Result<impl ExactSizeIterator<Item = Shard> + Clone + '_> {
    let bad = || Error::corrupt("a value that is not a counter's");
    let (count, rest) = value.split_first_chunk::<2>().ok_or_else(bad)?;
    let entries = usize::from(i16::from_be_bytes(*count).unsigned_abs());
    let shards = rest.get(2 * entries..).ok_or_else(bad)?;
    if !shards.len().is_multiple_of(SHARD_BYTES) {
        return Err(bad());
    }
    Ok(shards.chunks_exact(SHARD_BYTES).map(|shard| {
        let number = |from: usize| shard[from..].first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes));
        Shard { node: *shard.first_chunk().unwrap_or(&[0; 16]), clock: number(16), count: number(24) }
    }))
}

/// What a counter's value comes to: the sum of its shards, as servers add them.
///
/// # Errors
///
/// As [`shards`]'.
pub fn total(value: &[u8]) -> Result<i64> {
    Ok(shards(value)?.fold(0, |sum, shard| sum.wrapping_add(shard.count)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn shards_are_added() {
        let mut value: Vec<u8> = [0, 2, 0x80, 0, 0x80, 1].to_vec();
        for (node, clock, count) in [(1_u8, 5_i64, 7_i64), (2, 1, -3)] {
            value.extend([node; 16]);
            value.extend(clock.to_be_bytes());
            value.extend(count.to_be_bytes());
        }
        let all: Vec<Shard> = shards(&value).unwrap().collect();
        assert_eq!(all[1], Shard { node: [2; 16], clock: 1, count: -3 });
        assert_eq!(total(&value), Ok(4));
        assert_eq!(total(&[0, 0]), Ok(0));
        for end in [0, 1, 3, 5, 7, value.len() - 1] {
            assert!(total(&value[..end]).is_err(), "{end}");
        }
    }
}
