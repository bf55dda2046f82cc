//! Tries on disk, made key by key in their order, no node across the end of a page.
//!
//! Only the nodes on the path to the last key are open. When a key leaves one, the node is complete, and with what is below it a *branch*.
//! A branch is held as long as it fits a page, so that it can be written there together; then its node's children are written, each
//! branch to one page, and only the node itself is held further. So memory is a page for each open node at most, and a walk from
//! the root to a leaf reads few pages. (What nodes are, `BtiFormat.md` says; [`node`](crate::sstable::index) reads them.)

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{low_u8, u64_of, usize_of};
use marquetry_base::{Budget, Error, Price, Release, Result};

/// Bytes of a page.
pub(super) const PAGE_BYTES: usize = 4 << 10;
/// The price of a byte of a key, each of which may be a node, and of a key.
const KEY_PRICE: Price = Price { kib: 60 << 10, kilovalue: 300 << 10 };
/// Bytes of the largest payload: a byte of hash and a position, or a position and a deletion.
const PAYLOAD_BYTES: usize = 20;

/// What a node points to.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Payload {
    bits: u8,
    length: u8,
    bytes: [u8; PAYLOAD_BYTES],
}

impl Payload {
    /// A payload of these flags, which are not 0, and bytes.
    pub(super) fn new(bits: u8, of: &[u8]) -> Payload {
        let mut bytes = [0; PAYLOAD_BYTES];
        let length = of.len().min(PAYLOAD_BYTES);
        bytes[..length].copy_from_slice(&of[..length]);
        Payload { bits, length: low_u8(u64_of(length)), bytes }
    }

    fn is_some(&self) -> bool {
        self.bits != 0
    }

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

/// A child: written, or in the same branch.
#[derive(Debug, Clone, Copy)]
enum Link {
    Written(u64),
    Held(usize),
}

/// A complete node of a branch. Its children are before it.
#[derive(Debug, Default)]
struct Node {
    payload: Payload,
    children: Vec<(u8, Link)>,
}

/// A node on the path to the last key, and the branches of its children that are held.
#[derive(Debug, Default)]
struct Open {
    node: Node,
    held: Vec<Node>,
    /// At most as many bytes as those take.
    held_bytes: usize,
    /// The first of its children that are written.
    first_written: Option<u64>,
}

/// Makes a trie.
#[derive(Debug, Default)]
pub(super) struct TrieWriter {
    path: Vec<Open>,
    key: Vec<u8>,
    /// Bytes that were written, up to this position in the file.
    written: Vec<u8>,
    position: u64,
    positions: Vec<u64>,
    scratch: Vec<u8>,
}

impl TrieWriter {
    /// Begins a trie at this position of its file.
    pub(super) fn begin(&mut self, position: u64) {
        self.path.clear();
        self.key.clear();
        self.position = position;
    }

    /// Adds a key, which is greater than the one before.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](marquetry_base::ErrorKind::Internal) if it is not.
    pub(super) fn add(&mut self, key: &[u8], payload: Payload, budget: &mut Budget<'_>) -> Result<()> {
        let common = self.key.iter().zip(key).take_while(|(left, right)| left == right).count();
        let is_first = self.path.is_empty();
        let is_greater =
            is_first || (key.len() > common && self.key.get(common).is_none_or(|byte| *byte < key[common]));
        if !is_greater {
            return Err(Error::internal("keys of a trie that are not in order"));
        }
        budget.charge(KEY_PRICE, self.key.len().saturating_sub(common) + key.len() - common, 1);
        self.close_to(common + 1)?;
        if is_first {
            self.path.push(Open::default());
        }
        self.path.resize_with(key.len() + 1, Open::default);
        self.key.truncate(common);
        self.key.extend_from_slice(&key[common..]);
        if let Some(last) = self.path.last_mut() {
            last.node.payload = payload;
        }
        Ok(())
    }

    /// Writes the rest of the trie; returns where its root is.
    ///
    /// # Errors
    ///
    /// As [`TrieWriter::add`]'s.
    pub(super) fn finish(&mut self, budget: &mut Budget<'_>) -> Result<u64> {
        budget.charge(KEY_PRICE, self.key.len(), 1);
        self.close_to(1)?;
        let Some(root) = self.path.pop() else { return Err(Error::internal("a trie without keys")) };
        let branch = self.complete(root)?;
        self.key.clear();
        self.place(branch.0)
    }

    /// What was written since it was taken last.
    pub(super) fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.written)
    }

    /// Completes the nodes of the path after the first `length`.
    fn close_to(&mut self, length: usize) -> Result<()> {
        while self.path.len() > length {
            let Some(open) = self.path.pop() else { break };
            let (mut nodes, bytes) = self.complete(open)?;
            let byte = self.key.get(self.path.len().saturating_sub(1)).copied();
            let (Some(parent), Some(byte)) = (self.path.last_mut(), byte) else {
                return Err(Error::internal("a node of a trie without a parent"));
            };
            let before = parent.held.len();
            if before == 0 {
                parent.held = nodes;
            } else {
                for (_, link) in nodes.iter_mut().flat_map(|node| &mut node.children) {
                    if let Link::Held(number) = link {
                        *number += before;
                    }
                }
                parent.held.append(&mut nodes);
            }
            parent.held_bytes += bytes;
            parent.node.children.push((byte, Link::Held(parent.held.len() - 1)));
            // They will not fit a page with their parent. So no step writes more than some pages, and no node holds more.
            if parent.held_bytes > PAGE_BYTES
                && let Some(mut parent) = self.path.pop()
            {
                self.write_children(&mut parent)?;
                self.path.push(parent);
            }
        }
        Ok(())
    }

    /// Makes a branch of an open node, which fits a page; with at most as many bytes as it takes.
    fn complete(&mut self, mut open: Open) -> Result<(Vec<Node>, usize)> {
        let mut bytes = open.held_bytes + self.size_of(&open);
        if bytes > PAGE_BYTES {
            self.write_children(&mut open)?;
            bytes = self.size_of(&open);
        }
        let Open { node, mut held, .. } = open;
        held.push(node);
        Ok((held, bytes))
    }

    /// Writes the branches of a node's children that are held.
    fn write_children(&mut self, open: &mut Open) -> Result<()> {
        let mut held = core::mem::take(&mut open.held);
        let mut start = 0;
        for (_, link) in &mut open.node.children {
            let Link::Held(number) = *link else { continue };
            // The branch of this child: what follows the one before it.
            let mut nodes: Vec<Node> =
                held.iter_mut().skip(start).take(number + 1 - start).map(core::mem::take).collect();
            for (_, link) in nodes.iter_mut().flat_map(|node| &mut node.children) {
                if let Link::Held(number) = link {
                    *number -= start;
                }
            }
            start = number + 1;
            let place = self.place(nodes)?;
            open.first_written = Some(open.first_written.map_or(place, |first| first.min(place)));
            *link = Link::Written(place);
        }
        open.held_bytes = 0;
        Ok(())
    }

    /// At most as many bytes as a node takes, wherever its branch is written in the next pages.
    fn size_of(&self, open: &Open) -> usize {
        let held = u64_of(open.held_bytes + 2 * PAGE_BYTES);
        let written = open.first_written.map_or(0, |first| self.position.saturating_sub(first));
        Form::new(&open.node, written + held).bytes(&open.node)
    }

    /// Writes a branch: to one page, if it fits one; or else as it comes.
    fn place(&mut self, nodes: Vec<Node>) -> Result<u64> {
        let mut bytes = core::mem::take(&mut self.scratch);
        for _ in 0..2 {
            bytes.clear();
            self.serialize(&nodes, 0..nodes.len(), &mut bytes)?;
            if bytes.len() <= self.page_left() {
                break;
            }
            if bytes.len() <= PAGE_BYTES {
                self.pad();
            }
        }
        if bytes.len() > self.page_left() {
            return self.place_each(&nodes);
        }
        self.append(&bytes);
        self.scratch = bytes;
        self.positions.last().copied().ok_or_else(|| Error::internal("a branch without nodes"))
    }

    /// Writes node after node, each to one page.
    fn place_each(&mut self, nodes: &[Node]) -> Result<u64> {
        let mut positions = Vec::new();
        for number in 0..nodes.len() {
            for _ in 0..2 {
                self.positions.clone_from(&positions);
                let mut bytes = Vec::new();
                self.serialize(nodes, number..number + 1, &mut bytes)?;
                if bytes.len() <= self.page_left() {
                    self.append(&bytes);
                    positions.clone_from(&self.positions);
                    break;
                }
                self.pad();
            }
            if positions.len() <= number {
                return Err(Error::internal("a node of a trie that is larger than a page"));
            }
        }
        positions.last().copied().ok_or_else(|| Error::internal("a branch without nodes"))
    }

    /// Bytes of a range of nodes, if the first is written here; those before have their positions already.
    fn serialize(&mut self, nodes: &[Node], range: Range<usize>, bytes: &mut Vec<u8>) -> Result<()> {
        self.positions.truncate(range.start);
        for node in nodes.iter().take(range.end).skip(range.start) {
            let at = self.position + u64_of(bytes.len());
            let distance = |link: &Link| match link {
                Link::Written(place) => at.checked_sub(*place),
                Link::Held(number) => self.positions.get(*number).and_then(|place| at.checked_sub(*place)),
            };
            let distances: Option<Vec<u64>> = node.children.iter().map(|(_, link)| distance(link)).collect();
            let distances = distances.ok_or_else(|| Error::internal("a node of a trie after its parent"))?;
            let farthest = distances.iter().copied().max().unwrap_or(0);
            Form::new(node, farthest).write(node, &distances, bytes);
            self.positions.push(at);
        }
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) {
        self.written.extend_from_slice(bytes);
        self.position += u64_of(bytes.len());
    }

    fn page_left(&self) -> usize {
        PAGE_BYTES - usize_of(self.position % u64_of(PAGE_BYTES)).unwrap_or(0)
    }

    fn pad(&mut self) {
        let left = self.page_left();
        if left < PAGE_BYTES {
            self.written.resize(self.written.len() + left, 0);
            self.position += u64_of(left);
        }
    }
}

/// How a node is stored: the fewest bytes that its children and their distances allow.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Leaf,
    /// A child near by, instead of a payload: four bits of distance, or twelve.
    Near,
    Next,
    /// A child: eight bits, or sixteen.
    Single8,
    Single16,
    /// Some children: their bytes, and distances of so many bits.
    Sparse(u8),
    /// Most bytes from the first to the last.
    Dense(u8),
}

const SPARSE_BITS: [u8; 5] = [8, 12, 16, 24, 40];
const DENSE_BITS: [u8; 6] = [12, 16, 24, 32, 40, 64];

impl Form {
    fn new(node: &Node, farthest: u64) -> Form {
        let fits = |bits: u8| bits >= 64 || farthest >> bits == 0;
        if node.children.is_empty() {
            return Form::Leaf;
        }
        if node.children.len() == 1 {
            match () {
                () if fits(4) && !node.payload.is_some() => return Form::Near,
                () if fits(8) => return Form::Single8,
                () if fits(12) && !node.payload.is_some() => return Form::Next,
                () if fits(16) => return Form::Single16,
                () => {}
            }
        }
        let sparse = SPARSE_BITS.iter().copied().find(|bits| fits(*bits)).map(Form::Sparse);
        let dense = DENSE_BITS.iter().copied().find(|bits| fits(*bits)).map(Form::Dense);
        let bytes = |form: Option<Form>| form.map_or(usize::MAX, |form| form.bytes(node));
        match (sparse, dense) {
            (Some(sparse), _) if node.children.len() == 1 || bytes(Some(sparse)) < bytes(dense) => sparse,
            (_, dense) => dense.unwrap_or(Form::Dense(64)),
        }
    }

    /// Bytes of a node in this form.
    fn bytes(self, node: &Node) -> usize {
        let payload = if node.payload.is_some() { usize::from(node.payload.length) } else { 0 };
        let children = match self {
            Form::Leaf => 1,
            Form::Near => 2,
            Form::Next | Form::Single8 => 3,
            Form::Single16 => 4,
            Form::Sparse(bits) => {
                2 + node.children.len() + (usize::from(bits) * node.children.len()).div_ceil(8)
            }
            Form::Dense(bits) => 3 + (usize::from(bits) * span(node)).div_ceil(8),
        };
        children + payload
    }

    fn number(self) -> u8 {
        let at = |all: &[u8], bits: u8| all.iter().position(|it| *it == bits).unwrap_or(0);
        match self {
            Form::Leaf => 0,
            Form::Near => 1,
            Form::Single8 => 2,
            Form::Next => 3,
            Form::Single16 => 4,
            Form::Sparse(bits) => 5 + low_u8(u64_of(at(&SPARSE_BITS, bits))),
            Form::Dense(bits) => 10 + low_u8(u64_of(at(&DENSE_BITS, bits))),
        }
    }

    fn write(self, node: &Node, distances: &[u64], out: &mut Vec<u8>) {
        let first = node.children.first().map_or(0, |(byte, _)| *byte);
        let nearest = distances.first().copied().unwrap_or(0);
        let head = |low: u8| self.number() << 4 | low;
        let bits = node.payload.bits;
        match self {
            Form::Leaf => out.push(head(bits)),
            Form::Near => out.extend([head(low_u8(nearest)), first]),
            Form::Next => out.extend([head(low_u8(nearest >> 8)), low_u8(nearest), first]),
            Form::Single8 => out.extend([head(bits), first, low_u8(nearest)]),
            Form::Single16 => out.extend([head(bits), first, low_u8(nearest >> 8), low_u8(nearest)]),
            Form::Sparse(width) => {
                out.extend([head(bits), low_u8(u64_of(node.children.len()))]);
                out.extend(node.children.iter().map(|(byte, _)| *byte));
                push_numbers(distances.iter().copied(), width, out);
            }
            Form::Dense(width) => {
                let span = span(node);
                out.extend([head(bits), first, low_u8(u64_of(span - 1))]);
                let mut children = node.children.iter().zip(distances).peekable();
                let all = (0..span).map(|at| {
                    let is_it = |((byte, _), _): &(&(u8, Link), &u64)| usize::from(*byte - first) == at;
                    children.next_if(|child| is_it(child)).map_or(0, |(_, distance)| *distance)
                });
                push_numbers(all, width, out);
            }
        }
        if bits != 0 {
            out.extend(node.payload.bytes());
        }
    }
}

/// Bytes from the first child's to the last's.
fn span(node: &Node) -> usize {
    let byte = |child: Option<&(u8, Link)>| child.map_or(0, |(byte, _)| usize::from(*byte));
    byte(node.children.last()) - byte(node.children.first()) + 1
}

/// Numbers of so many bits, big-endian; of twelve bits two in three bytes.
fn push_numbers(numbers: impl Iterator<Item = u64>, bits: u8, out: &mut Vec<u8>) {
    let mut half = None;
    for number in numbers {
        if bits != 12 {
            let bytes = number.to_be_bytes();
            out.extend(bytes.get(8 - usize::from(bits / 8)..).unwrap_or_default());
            continue;
        }
        match half.take() {
            None => {
                out.extend([low_u8(number >> 4), low_u8(number << 4)]);
                half = Some(out.len() - 1);
            }
            Some(at) => {
                if let Some(byte) = out.get_mut(at) {
                    *byte |= low_u8(number >> 8);
                }
                out.push(low_u8(number));
            }
        }
    }
}

impl Release for TrieWriter {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_the_smallest() {
        let node = |children: &[u8], bits: u8| Node {
            payload: Payload::new(bits, &[1]),
            children: children.iter().map(|byte| (*byte, Link::Written(0))).collect(),
        };
        let of = |children: &[u8], bits: u8, farthest: u64| Form::new(&node(children, bits), farthest);
        assert_eq!(of(&[], 1, 0), Form::Leaf);
        assert_eq!(of(&[7], 0, 15), Form::Near);
        assert_eq!(of(&[7], 1, 15), Form::Single8);
        assert_eq!(of(&[7], 0, 256), Form::Next);
        assert_eq!(of(&[7], 1, 256), Form::Single16);
        assert_eq!(of(&[7], 0, 1 << 16), Form::Sparse(24));
        assert_eq!(of(&[7, 200], 0, 200), Form::Sparse(8));
        assert_eq!(of(&[7, 8, 9, 10, 11], 0, 300), Form::Dense(12));
        assert_eq!(of(&[7, 8], 0, 1 << 45), Form::Dense(64));
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(of(&all, 0, 1 << 20), Form::Dense(24));
    }
}
