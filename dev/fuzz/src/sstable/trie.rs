//! Tries as Partitions.db has them, in any of the ways in which nodes can be stored.

use marquetry_conformance::hostile::Random;

const PAGE_BYTES: usize = 4096;

/// A leaf: its key, and what it points to.
#[derive(Debug, Clone)]
pub struct Leaf {
    /// Bytes that are no other key's first bytes. Only so many are written as tell it from its neighbours.
    pub key: Vec<u8>,
    /// A place in Rows.db, or the complement of one in the data.
    pub position: i64,
    /// The byte of the key's hash, if it is written.
    pub hash: Option<u8>,
}

/// Writes the leaves, in the order of their keys; returns where the root is.
///
/// # Panics
///
/// For no leaves.
pub fn write(leaves: &[Leaf], file: &mut Vec<u8>, random: &mut Random) -> usize {
    let shared = |a: &[u8], b: &[u8]| a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let lengths: Vec<usize> = (0..leaves.len())
        .map(|at| {
            let key = &leaves[at].key;
            let before = at.checked_sub(1).map_or(0, |before| shared(key, &leaves[before].key));
            let after = leaves.get(at + 1).map_or(0, |after| shared(key, &after.key));
            // Now and then more than is needed.
            (before.max(after) + 1 + random.index(12) / 10).min(key.len())
        })
        .collect();
    node(leaves, &lengths, 0, file, random)
}

fn node(leaves: &[Leaf], lengths: &[usize], depth: usize, file: &mut Vec<u8>, random: &mut Random) -> usize {
    if lengths[0] == depth {
        return place(file, |_| leaf(&leaves[0]));
    }
    let mut children = Vec::new();
    let mut start = 0;
    while start < leaves.len() {
        let byte = leaves[start].key[depth];
        let end = start + leaves[start..].iter().take_while(|leaf| leaf.key[depth] == byte).count();
        children.push((byte, node(&leaves[start..end], &lengths[start..end], depth + 1, file, random)));
        start = end;
    }
    let choice = random.number();
    place(file, |at| inner(&children, at, choice))
}

/// Writes a node so that it does not cross a page's end.
fn place(file: &mut Vec<u8>, node: impl Fn(usize) -> Vec<u8>) -> usize {
    loop {
        let bytes = node(file.len());
        if file.len() % PAGE_BYTES + bytes.len() <= PAGE_BYTES {
            let at = file.len();
            file.extend(bytes);
            return at;
        }
        file.resize(file.len().next_multiple_of(PAGE_BYTES), 0);
    }
}

fn leaf(leaf: &Leaf) -> Vec<u8> {
    let bytes = leaf.position.to_be_bytes();
    let fits = |length: usize| leaf.position << (64 - 8 * length) >> (64 - 8 * length) == leaf.position;
    let length = (1..8).find(|length| fits(*length)).unwrap_or(7);
    let number = &bytes[8 - length..];
    match leaf.hash {
        Some(hash) => [&[7 + length as u8, hash], number].concat(),
        None => [&[length as u8], number].concat(),
    }
}

fn inner(children: &[(u8, usize)], at: usize, choice: u64) -> Vec<u8> {
    let farthest = children.iter().map(|(_, child)| at - child).max().expect("a child");
    let (first, last) = (children[0].0, children[children.len() - 1].0);
    let fits = |bits: u32| bits == 64 || farthest < 1 << bits;
    let mut ways: Vec<Vec<u8>> = Vec::new();
    if let [(byte, _)] = children {
        if fits(4) {
            ways.push(vec![0x10 | farthest as u8, *byte]);
        }
        if fits(8) {
            ways.push(vec![0x20, *byte, farthest as u8]);
        }
        if fits(12) {
            ways.push(vec![0x30 | (farthest >> 8) as u8, farthest as u8, *byte]);
        }
        if fits(16) {
            ways.push(vec![0x40, *byte, (farthest >> 8) as u8, farthest as u8]);
        }
    }
    for (kind, bits) in (5..).zip([8, 12, 16, 24, 40]) {
        if fits(bits) && children.len() < 256 {
            let bytes: Vec<u8> = children.iter().map(|(byte, _)| *byte).collect();
            let distances: Vec<usize> = children.iter().map(|(_, child)| at - child).collect();
            ways.push([&[kind << 4, children.len() as u8], &bytes[..], &packed(&distances, bits)].concat());
        }
    }
    for (kind, bits) in (10..).zip([12, 16, 24, 32, 40, 64]) {
        if fits(bits) {
            let mut distances = vec![0; usize::from(last - first) + 1];
            children.iter().for_each(|(byte, child)| distances[usize::from(byte - first)] = at - child);
            ways.push([&[kind << 4, first, last - first], &packed(&distances, bits)[..]].concat());
        }
    }
    let chosen = choice as usize % ways.len();
    // A node of 64 bits for each of 256 bytes would be half a page.
    ways.swap_remove(if ways[chosen].len() > 600 { 0 } else { chosen })
}

fn packed(distances: &[usize], bits: u32) -> Vec<u8> {
    if bits == 12 {
        let pair = |pair: &[usize]| {
            let (a, b) = (pair[0], pair.get(1).copied());
            let mut bytes = vec![(a >> 4) as u8, (a << 4) as u8 | (b.unwrap_or(0) >> 8) as u8];
            bytes.extend(b.map(|b| b as u8));
            bytes
        };
        return distances.chunks(2).flat_map(pair).collect();
    }
    let bytes = bits as usize / 8;
    distances.iter().flat_map(|distance| (*distance as u64).to_be_bytes()[8 - bytes..].to_vec()).collect()
}
