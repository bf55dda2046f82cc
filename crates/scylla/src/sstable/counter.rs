//! Counters: a cell's value is a list of shards, one for each node that counted.
//!
//! A value begins with the number of entries of its header, and the entries: the numbers of the shards that are *local* or *global* (those
//! have 2^15 added, in two's complement). Then come the shards: the node's identifier of 16 bytes, a clock and a count, of eight bytes each.
//! (Cassandra: `CounterContext.java`; ScyllaDB writes only global shards.)

use alloc::vec::Vec;
use core::cmp::Ordering;

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

/// What a shard is, by the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Another node counted it, with Cassandra before 2.1.
    Remote,
    /// This node counted it, with Cassandra before 2.1.
    Local,
    /// All nodes have the same.
    Global,
}

/// The shards of a value with what they are, sorted by their nodes.
fn sorted(value: &[u8]) -> Result<Vec<(Shard, Kind)>> {
    let mut all: Vec<(Shard, Kind)> = shards(value)?.map(|shard| (shard, Kind::Remote)).collect();
    let (count, rest) = value.split_first_chunk::<2>().unwrap_or((&[0; 2], &[]));
    let count = i16::from_be_bytes(*count);
    for entry in rest.chunks_exact(2).take(usize::from(count.unsigned_abs())) {
        let entry = i16::from_be_bytes([entry[0], entry[1]]);
        let (number, kind) = match u16::try_from(entry) {
            // A negative number of entries: local shards came from another node, and are not local here.
            Ok(_) if count < 0 => continue,
            Ok(number) => (number, Kind::Local),
            Err(_) => (entry.wrapping_sub(i16::MIN).unsigned_abs(), Kind::Global),
        };
        if let Some((_, of)) = all.get_mut(usize::from(number)) {
            *of = kind;
        }
    }
    // They are already, but for some of ScyllaDB's.
    all.sort_by_key(|(shard, _)| shard.node);
    Ok(all)
}

/// The value that two values of a counter come to, as servers merge them: of each node the shard that counts, by the order of their nodes.
///
/// A global shard counts before a local one, and that before a remote one. Of two of a kind the one with the later clock counts, and then
/// the one that counted more; but local ones are added. (Clocks of remote shards can be negative, from before Cassandra 0.8; those
/// that are less count more.)
///
/// # Errors
///
/// As [`shards`]'.
pub fn merge(left: &[u8], right: &[u8]) -> Result<Vec<u8>> {
    let (left, right) = (sorted(left)?, sorted(right)?);
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    let mut merged: Vec<(Shard, Kind)> = Vec::new();
    while let (Some((of_left, _)), Some((of_right, _))) = (left.peek(), right.peek()) {
        let next = match of_left.node.cmp(&of_right.node) {
            Ordering::Less => left.next(),
            Ordering::Greater => right.next(),
            Ordering::Equal => left.next().zip(right.next()).map(|(left, right)| merge_shards(left, right)),
        };
        merged.extend(next);
    }
    merged.extend(left.chain(right));
    Ok(written(&merged))
}

fn merge_shards(left: (Shard, Kind), right: (Shard, Kind)) -> (Shard, Kind) {
    if left.1 != right.1 {
        return if left.1 > right.1 { left } else { right };
    }
    let (of_left, of_right) = (left.0, right.0);
    match left.1 {
        Kind::Local => {
            let clock = of_left.clock.wrapping_add(of_right.clock);
            let count = of_left.count.wrapping_add(of_right.count);
            (Shard { clock, count, ..of_left }, Kind::Local)
        }
        _ if of_left.clock == of_right.clock => {
            if of_left.count > of_right.count {
                left
            } else {
                right
            }
        }
        Kind::Global => {
            if of_left.clock > of_right.clock {
                left
            } else {
                right
            }
        }
        Kind::Remote => {
            let (of_left, of_right) = (of_left.clock, of_right.clock);
            let is_later = match (of_left >= 0, of_right > 0) {
                (true, true) => of_left >= of_right,
                (false, false) => of_left < of_right,
                (is_positive, _) => !is_positive,
            };
            if is_later { left } else { right }
        }
    }
}

fn written(shards: &[(Shard, Kind)]) -> Vec<u8> {
    let listed = shards.iter().enumerate().filter(|(_, (_, kind))| *kind != Kind::Remote);
    let mut value = Vec::with_capacity(2 + (2 + SHARD_BYTES) * shards.len());
    // There are fewer than this counts, or their values could not have been read.
    value.extend(i16::try_from(listed.clone().count()).unwrap_or(i16::MAX).to_be_bytes());
    for (number, (_, kind)) in listed {
        let number = i16::try_from(number).unwrap_or(i16::MAX);
        let entry = if *kind == Kind::Global { number.wrapping_add(i16::MIN) } else { number };
        value.extend(entry.to_be_bytes());
    }
    for (shard, _) in shards {
        value.extend(shard.node);
        value.extend(shard.clock.to_be_bytes());
        value.extend(shard.count.to_be_bytes());
    }
    value
}

/// What a counter's value comes to: the sum of its shards, as servers add them.
///
/// # Errors
///
/// As [`shards`]'.
pub fn total(value: &[u8]) -> Result<i64> {
    Ok(shards(value)?.fold(0, |sum, shard| sum.wrapping_add(shard.count)))
}

/// Whether it has shards of Cassandra before 2.1, which are local or remote ones. False for what is not a counter's.
pub(super) fn has_legacy_shards(value: &[u8]) -> bool {
    sorted(value).is_ok_and(|shards| shards.iter().any(|(_, kind)| *kind != Kind::Global))
}

/// A value of a counter that comes to this: one global shard, of no node.
pub fn of_total(count: i64) -> Vec<u8> {
    written(&[(Shard { node: [0; 16], clock: 1, count }, Kind::Global)])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of these shards: their node, clock, count, and whether they are local (`l`), global (`g`) or remote.
    fn value(shards: &[(u8, i64, i64, char)]) -> Vec<u8> {
        let kind = |kind: char| match kind {
            'g' => Kind::Global,
            'l' => Kind::Local,
            _ => Kind::Remote,
        };
        let shard = |(node, clock, count, of): &(u8, i64, i64, char)| {
            (Shard { node: [*node; 16], clock: *clock, count: *count }, kind(*of))
        };
        written(&shards.iter().map(shard).collect::<Vec<_>>())
    }

    #[test]
    fn shards_are_merged_as_servers_do() {
        let left = [
            (1, 5, 7, 'g'),
            (3, 2, 10, 'l'),
            (4, 9, 1, 'r'),
            (5, 3, 3, 'g'),
            (6, -5, 1, 'r'),
            (9, 1, 1, 'g'),
        ];
        let right =
            [(1, 6, 2, 'g'), (2, 1, 1, 'r'), (3, 4, 5, 'l'), (4, 1, 8, 'l'), (5, 3, 4, 'g'), (6, -4, 2, 'r')];
        let merged = [
            (1, 6, 2, 'g'),
            (2, 1, 1, 'r'),
            (3, 6, 15, 'l'),
            (4, 1, 8, 'l'),
            (5, 3, 4, 'g'),
            (6, -5, 1, 'r'),
            (9, 1, 1, 'g'),
        ];
        assert_eq!(merge(&value(&left), &value(&right)), Ok(value(&merged)));
        assert_eq!(merge(&value(&right), &value(&left)), Ok(value(&merged)));
        assert_eq!(merge(&value(&left), &value(&[])), Ok(value(&left)));
        assert_eq!(total(&value(&merged)), Ok(2 + 1 + 15 + 8 + 4 + 1 + 1));
    }

    /// The number of entries is negative where local shards came from another node.
    #[test]
    fn local_shards_of_another_node_are_remote() {
        let mut local = value(&[(1, 5, 7, 'l')]);
        local[..2].copy_from_slice(&(-1_i16).to_be_bytes());
        assert_eq!(merge(&local, &value(&[(1, 9, 8, 'r')])), Ok(value(&[(1, 9, 8, 'r')])));
        assert_eq!(merge(&local, &value(&[(1, 2, 8, 'r')])), Ok(value(&[(1, 5, 7, 'r')])));
        assert!(merge(&local[..5], &local).is_err());
    }

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
