//! Nodes of tries: what `BtiFormat.md` of Cassandra describes as "Trie nodes".

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};

use crate::sstable::elements::{Cursor, Fault};

/// A page of nodes: no node crosses the end of one.
pub(super) const PAGE_BYTES: u64 = 4 << 10;

/// What is looked for in a node.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wanted {
    /// The child of this byte, and the first of a greater one.
    From(u8),
    /// The first child of a greater byte.
    After(u8),
    /// The first child.
    First,
}

/// What there is of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node {
    /// The node has no children.
    pub(super) is_leaf: bool,
    /// The child of the very byte.
    pub(super) same: Option<u64>,
    /// The first child of a greater byte, or of any.
    pub(super) next: Option<(u8, u64)>,
    /// What the node points to, if it does.
    pub(super) payload: Option<Payload>,
}

/// Where a partition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Payload {
    /// The lowest byte of the second half of the key's hash, if it is there.
    pub(super) hash: Option<u8>,
    /// A place in Rows.db; or, if it is negative, the complement of one in the data.
    pub(super) position: i64,
}

/// How children are stored.
#[derive(Debug, Clone, Copy)]
enum Children<'a> {
    None,
    /// One, at a distance.
    Single(u8, u64),
    /// Their bytes, and as many distances.
    Sparse(&'a [u8], Distances<'a>),
    /// The first of their bytes; a distance of zero is no child.
    Dense(u8, Distances<'a>),
}

/// Distances of so many bits each.
#[derive(Debug, Clone, Copy)]
struct Distances<'a> {
    bits: usize,
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Distances<'a> {
    fn read(cursor: &mut Cursor<'a>, bits: usize, count: usize) -> Result<Distances<'a>, Fault> {
        Ok(Distances { bits, count, bytes: cursor.take((bits * count).div_ceil(8))? })
    }

    fn get(&self, at: usize) -> u64 {
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        if self.bits == 12 {
            // Two in three bytes.
            let start = 3 * at / 2;
            let two = number(self.bytes.get(start..start + 2).unwrap_or_default());
            return if at.is_multiple_of(2) { two >> 4 } else { two & 0xfff };
        }
        let width = self.bits / 8;
        number(self.bytes.get(width * at..width * (at + 1)).unwrap_or_default())
    }
}

impl Children<'_> {
    /// The first child whose byte is at least `least`: its byte, and how far before the node it is.
    fn first(&self, least: u8) -> Option<(u8, u64)> {
        match *self {
            Children::None => None,
            Children::Single(byte, distance) => (byte >= least).then_some((byte, distance)),
            Children::Sparse(bytes, distances) => {
                let at = bytes.partition_point(|byte| *byte < least);
                bytes.get(at).map(|byte| (*byte, distances.get(at)))
            }
            Children::Dense(start, distances) => {
                let from = usize::from(least.saturating_sub(start));
                let at = (from..distances.count).find(|at| distances.get(*at) > 0)?;
                let byte = u8::try_from(usize::from(start) + at).ok()?;
                Some((byte, distances.get(at)))
            }
        }
    }
}

/// Reads the node at `at` of its file.
pub(super) fn read(cursor: &mut Cursor<'_>, at: u64, wanted: Wanted) -> Result<Node, Fault> {
    let head = cursor.u8()?;
    let (kind, low) = (head >> 4, head & 0xf);
    let children = match kind {
        0 => Children::None,
        // A chain's links have their distance in place of a payload.
        1 => Children::Single(cursor.u8()?, u64::from(low)),
        3 => {
            let distance = u64::from(low) << 8 | u64::from(cursor.u8()?);
            Children::Single(cursor.u8()?, distance)
        }
        2 => Children::Single(cursor.u8()?, u64::from(cursor.u8()?)),
        4 => Children::Single(cursor.u8()?, u64::from(cursor.u16()?)),
        5..=9 => {
            let count = usize::from(cursor.u8()?);
            let bytes = cursor.take(count)?;
            let bits = [8, 12, 16, 24, 40][usize::from(kind) - 5];
            if count == 0 || !bytes.is_sorted_by(|a, b| a < b) {
                return Err(Error::corrupt("a node whose children are not in order").into());
            }
            Children::Sparse(bytes, Distances::read(cursor, bits, count)?)
        }
        _ => {
            let (start, count) = (cursor.u8()?, usize::from(cursor.u8()?) + 1);
            let bits = [12, 16, 24, 32, 40, 64][usize::from(kind) - 10];
            Children::Dense(start, Distances::read(cursor, bits, count)?)
        }
    };
    let bits = if matches!(kind, 1 | 3) { 0 } else { low };
    let payload = if bits == 0 { None } else { Some(payload(cursor, bits)?) };
    // Children are before their parents.
    let place = |distance: u64| {
        let place = at.checked_sub(distance).filter(|_| distance > 0);
        place.ok_or_else(|| Fault::from(Error::corrupt("a node whose child is not before it")))
    };
    let child = |least: u8| {
        let child = children.first(least);
        child.map(|(byte, distance)| Ok::<_, Fault>((byte, place(distance)?))).transpose()
    };
    let after = |byte: u8| byte.checked_add(1).map_or(Ok(None), child);
    let (same, next) = match wanted {
        Wanted::First => (None, child(0)?),
        Wanted::After(byte) => (None, after(byte)?),
        Wanted::From(byte) => match child(byte)? {
            Some((first, place)) if first == byte => (Some(place), after(byte)?),
            other => (None, other),
        },
    };
    Ok(Node { is_leaf: matches!(children, Children::None), same, next, payload })
}

/// A position in as few bytes as it needs, with its sign, perhaps after a byte of the key's hash.
fn payload(cursor: &mut Cursor<'_>, bits: u8) -> Result<Payload, Fault> {
    let (hash, length) = match bits.checked_sub(7) {
        Some(length) if length > 0 => (Some(cursor.u8()?), usize::from(length)),
        _ => (None, usize::from(bits)),
    };
    let bytes = cursor.take(length)?;
    let mut word = [if bytes[0] >= 0x80 { 0xff } else { 0 }; 8];
    let start = word.len().saturating_sub(bytes.len());
    word[start..].copy_from_slice(bytes);
    debug_assert!(u64_of(bytes.len()) <= 8);
    Ok(Payload { hash, position: i64::from_be_bytes(word) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(bytes: &[u8], wanted: Wanted) -> Node {
        let read = read(&mut Cursor::new(bytes), 10_000, wanted);
        read.unwrap_or_else(|_| panic!("{bytes:?}"))
    }

    /// Each kind of node, as the document describes it.
    #[test]
    fn nodes_of_every_kind() {
        let at = |distance: u64| 10_000 - distance;
        let (hash, position) = (Some(7), !5);
        let payload = Some(Payload { hash, position });
        assert_eq!(
            node(&[0x08, 7, 0xfa], Wanted::First),
            Node { is_leaf: true, same: None, next: None, payload }
        );
        let lone = node(&[0x02, 0x01, 0x02], Wanted::First).payload;
        assert_eq!(lone, Some(Payload { hash: None, position: 0x102 }));
        // One child of 0x20, at 3, 0x123, 200 and 0x1234.
        for (bytes, distance) in [
            (&[0x13, 0x20][..], 3),
            (&[0x31, 0x23, 0x20], 0x123),
            (&[0x20, 0x20, 200], 200),
            (&[0x40, 0x20, 0x12, 0x34], 0x1234),
        ] {
            let of = |wanted| {
                let node = node(bytes, wanted);
                (node.same, node.next)
            };
            let child = Some((0x20, at(distance)));
            assert_eq!(of(Wanted::First), (None, child));
            assert_eq!(of(Wanted::From(0x20)), (Some(at(distance)), None));
            assert_eq!(of(Wanted::From(0x1f)), (None, child));
            assert_eq!(of(Wanted::From(0x21)), (None, None));
            assert_eq!(of(Wanted::After(0x20)), (None, None));
        }
        // Children of 0x10, 0x20 and 0x22 at the distances 1, 2 and 3.
        let sparse: [&[u8]; 5] = [
            &[1, 2, 3],
            &[0, 0x10, 0x02, 0, 0x30],
            &[0, 1, 0, 2, 0, 3],
            &[0, 0, 1, 0, 0, 2, 0, 0, 3],
            &[0, 0, 0, 0, 1, 0, 0, 0, 0, 2, 0, 0, 0, 0, 3],
        ];
        for (kind, distances) in (5..).zip(sparse) {
            let bytes = [&[kind << 4, 3, 0x10, 0x20, 0x22], distances].concat();
            let of = |wanted| {
                let node = node(&bytes, wanted);
                (node.same, node.next)
            };
            assert_eq!(of(Wanted::First), (None, Some((0x10, at(1)))), "{kind}");
            assert_eq!(of(Wanted::From(0x20)), (Some(at(2)), Some((0x22, at(3)))));
            assert_eq!(of(Wanted::From(0x21)), (None, Some((0x22, at(3)))));
            assert_eq!(of(Wanted::From(0x23)), (None, None));
            assert_eq!(of(Wanted::From(0xff)), (None, None));
        }
        // Children of 0xfd and 0xff, at 1 and 2, none of 0xfe.
        let dense: [&[u8]; 6] = [
            &[0, 0x10, 0, 0, 0x20],
            &[0, 1, 0, 0, 0, 2],
            &[0, 0, 1, 0, 0, 0, 0, 0, 2],
            &[0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2],
            &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
            &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2],
        ];
        for (kind, distances) in (10..).zip(dense) {
            let bytes = [&[kind << 4 | 8, 0xfd, 2], distances, &[7, 0xfa]].concat();
            let of = |wanted| {
                let node = node(&bytes, wanted);
                assert_eq!((node.payload, node.is_leaf), (payload, false), "{kind}");
                (node.same, node.next)
            };
            assert_eq!(of(Wanted::First), (None, Some((0xfd, at(1)))));
            assert_eq!(of(Wanted::From(0xfe)), (None, Some((0xff, at(2)))));
            assert_eq!(of(Wanted::From(0xfd)), (Some(at(1)), Some((0xff, at(2)))));
            assert_eq!(of(Wanted::After(0xfd)), (None, Some((0xff, at(2)))));
            assert_eq!(of(Wanted::After(0xff)), (None, None));
        }
    }

    #[test]
    fn children_are_in_order_and_before_their_parents() {
        let refused =
            |bytes: &[u8]| matches!(read(&mut Cursor::new(bytes), 2, Wanted::First), Err(Fault::Bad(_)));
        assert!(refused(&[0x50, 2, 9, 9, 1, 2]));
        assert!(refused(&[0x50, 0]));
        assert!(refused(&[0x20, 9, 3]));
        assert!(refused(&[0x20, 9, 0]));
        assert!(!refused(&[0x20, 9, 2]));
        assert!(matches!(read(&mut Cursor::new(&[0x20, 9]), 2, Wanted::First), Err(Fault::Short)));
    }
}
