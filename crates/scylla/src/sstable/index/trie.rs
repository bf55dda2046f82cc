//! Partitions.db: a trie of the partitions' keys, and Rows.db, which large partitions have an entry in.
//!
//! A key in the trie is 0x40, its token with the sign bit inverted (so that it is ordered as bytes), and more that tells keys of the same
//! token apart; of which only so much is there as no other key shares. So a search by token finds where a partition must be, and the key
//! itself, in the data, says whether it is there. What follows the token differs between `da`, `ms` and `mt`, and is never looked at: keys
//! of one token are rare, and are tried one after the other.
//!
//! Sources: Cassandra's `BtiFormat.md`, and ScyllaDB's `sstables/trie`.

use alloc::vec::Vec;

use marquetry_base::cast::bits_u64;
use marquetry_base::{Budget, Error, Limits, Object, Release, Result, release_all};

use super::node::{self, Node, PAGE_BYTES, Payload, Wanted};
use super::search::{Candidate, Expected, Move, Target};
use crate::sstable::elements::{ELEMENT_PRICE, Elements, Going};
use crate::sstable::token::murmur3_token;

/// Bytes of a key in the trie up to the end of its token.
const TOKEN_END: usize = 9;
/// The byte before a token.
const TOKEN_MARK: u8 = 0x40;
/// Three numbers: where the first and the last key are, after the trie; how many keys there are; and where the root is.
const FOOTER_BYTES: u64 = 24;
/// The most nodes from the root to a leaf. Only keys of one token have more than nine in common, and only if they have as many bytes in common,
/// too; so this is more than any table needs, and keeps the path below a mebibyte.
const DEPTH_MAX: usize = 32 << 10;

/// A search in Partitions.db.
#[derive(Debug)]
pub(super) struct TrieSearch {
    partitions: Elements,
    rows: Elements,
    footer: Option<Footer>,
    target: Target,
    /// The target's first bytes, as the trie has them.
    bytes: [u8; TOKEN_END],
    /// The nodes from the root down to the next one, each with the byte that leads on.
    path: Vec<(u64, u8)>,
    state: State,
    /// The partition that was found before, and the entry in Rows.db. Both are in the order of the keys; so no leaf is visited twice.
    before: Option<u64>,
    rows_before: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Footer {
    /// Where the trie ends.
    end: u64,
    root: u64,
    /// The tokens of the first and of the last partition, once their keys have been read.
    ends: Option<(i64, i64)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// From the root.
    Start,
    /// Down to the target: this node next.
    Down(u64),
    /// Down to the first leaf.
    First(u64),
    /// Up to the next node that has a greater child.
    Up,
    /// A leaf, whose entry in Rows.db has its place.
    Rows { at: u64, is_answer: bool },
    /// A leaf was found.
    Found,
    /// There is none.
    End,
}

impl TrieSearch {
    pub(super) fn new(partitions: Object, rows: Object, limits: &Limits) -> TrieSearch {
        TrieSearch {
            partitions: Elements::in_blocks(partitions, "Partitions.db", PAGE_BYTES, limits),
            rows: Elements::in_blocks(rows, "Rows.db", PAGE_BYTES, limits),
            footer: None,
            target: Target::Token(i64::MIN),
            bytes: [0; TOKEN_END],
            path: Vec::new(),
            state: State::Start,
            before: None,
            rows_before: None,
        }
    }

    pub(super) fn elements(&mut self) -> [&mut Elements; 2] {
        [&mut self.partitions, &mut self.rows]
    }

    /// Begins to search.
    pub(super) fn begin(&mut self, target: Target) {
        self.bytes = [TOKEN_MARK; TOKEN_END];
        self.bytes[1..].copy_from_slice(&token_bytes(target.token()));
        (self.target, self.state) = (target, State::Start);
        (self.before, self.rows_before) = (None, None);
        self.path.clear();
    }

    /// Goes on to the partition after the one that was found.
    pub(super) fn go_on(&mut self) {
        // What a key was looked for in is left.
        self.target = Target::Token(self.target.token());
        self.state = State::Up;
    }

    /// Goes on to another partition whose key may be the target's.
    pub(super) fn go_on_among_equals(&mut self) {
        self.state = State::Up;
    }

    /// Reads a node, or an entry of Rows.db.
    pub(super) fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Going<Move>> {
        for elements in [&mut self.partitions, &mut self.rows] {
            if let Going::Need(demand) = elements.length() {
                return Ok(Going::Need(demand));
            }
        }
        let footer = match self.footer {
            Some(footer) if footer.ends.is_some() => footer,
            _ => {
                let read = match self.footer {
                    None => self.read_footer(budget)?,
                    Some(footer) => self.read_ends(footer, budget)?,
                };
                return Ok(read.map(|footer| {
                    self.footer = Some(footer);
                    Move::On
                }));
            }
        };
        match self.state {
            State::Start => self.state = State::Down(footer.root),
            State::Down(at) => return self.down(at, footer, budget),
            State::First(at) => return self.first(at, footer, budget),
            State::Up => return self.up(footer, budget),
            State::Rows { at, is_answer } => return self.read_rows(at, is_answer, budget),
            State::Found => return Err(Error::internal("a search that has ended goes on")),
            State::End => return Ok(Going::Done(Move::End)),
        }
        Ok(Going::Done(Move::On))
    }

    fn read_footer(&mut self, budget: &mut Budget<'_>) -> Result<Going<Footer>> {
        let elements = &mut self.partitions;
        let length = match elements.length() {
            Going::Done(length) => length,
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        if length == 0 {
            return Err(elements.corrupt("no partition, but there are data", 0));
        }
        let Some(start) = length.checked_sub(FOOTER_BYTES) else {
            return Err(elements.corrupt("a file too short for its end", 0));
        };
        if elements.at() != start {
            elements.seek(start..length);
        }
        let read = elements.next(budget, |cursor| {
            let (end, _, root) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
            Ok(Footer { end, root, ends: None })
        })?;
        match read {
            Going::Done(footer) if footer.root < footer.end && footer.end <= start => Ok(Going::Done(footer)),
            Going::Done(_) => Err(elements.corrupt("a root that is not before the keys", start)),
            Going::Need(demand) => Ok(Going::Need(demand)),
        }
    }

    /// The keys of the first and of the last partition, which follow the trie.
    fn read_ends(&mut self, footer: Footer, budget: &mut Budget<'_>) -> Result<Going<Footer>> {
        let elements = &mut self.partitions;
        let start = elements.component_bytes().saturating_sub(FOOTER_BYTES);
        if elements.at() != footer.end || elements.left() != start - footer.end {
            elements.seek(footer.end..start);
        }
        let read = elements.next(budget, |cursor| {
            let (first, last) = (cursor.short_bytes()?, cursor.short_bytes()?);
            Ok((murmur3_token(first), murmur3_token(last), first.len() + last.len()))
        })?;
        Ok(read.map(|(first, last, bytes)| {
            budget.charge(ELEMENT_PRICE, bytes, 1);
            Footer { ends: Some((first, last)), ..footer }
        }))
    }

    /// The tokens of the first and of the last partition, once they are known.
    pub(super) fn ends(&self) -> Option<(i64, i64)> {
        self.footer.and_then(|footer| footer.ends)
    }

    /// A node, which must not cross a page's end.
    fn node(
        &mut self,
        at: u64,
        wanted: Wanted,
        footer: Footer,
        budget: &mut Budget<'_>,
    ) -> Result<Going<Node>> {
        let end = (at / PAGE_BYTES + 1).saturating_mul(PAGE_BYTES).min(footer.end);
        if self.partitions.at() != at || self.partitions.left() != end - at {
            self.partitions.seek(at..end);
        }
        let read = self.partitions.next(budget, |cursor| node::read(cursor, at, wanted))?;
        if let Going::Done(node) = &read
            && node.is_leaf != node.payload.is_some()
        {
            return Err(self
                .partitions
                .corrupt("a node that is no leaf, but has a partition; or one of neither", at));
        }
        Ok(read)
    }

    fn down(&mut self, at: u64, footer: Footer, budget: &mut Budget<'_>) -> Result<Going<Move>> {
        // The token ends here: all below have it.
        let Some(&byte) = self.bytes.get(self.path.len()) else {
            self.state = State::First(at);
            return Ok(Going::Done(Move::On));
        };
        let node = match self.node(at, Wanted::From(byte), footer, budget)? {
            Going::Done(node) => node,
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        if let Some(payload) = node.payload {
            // Other keys that have these first bytes would be in the trie, too.
            return self.leaf(at, payload, false);
        }
        match (node.same, node.next) {
            (Some(child), _) => self.descend(at, byte, State::Down(child))?,
            _ if self.is_key() => self.state = State::End,
            (None, Some((byte, child))) => self.descend(at, byte, State::First(child))?,
            (None, None) => self.state = State::Up,
        }
        Ok(Going::Done(Move::On))
    }

    fn first(&mut self, at: u64, footer: Footer, budget: &mut Budget<'_>) -> Result<Going<Move>> {
        let node = match self.node(at, Wanted::First, footer, budget)? {
            Going::Done(node) => node,
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        match (node.payload, node.next) {
            (Some(payload), _) => return self.leaf(at, payload, true),
            (None, Some((byte, child))) => self.descend(at, byte, State::First(child))?,
            (None, None) => return Err(self.partitions.corrupt("a node without children", at)),
        }
        Ok(Going::Done(Move::On))
    }

    fn up(&mut self, footer: Footer, budget: &mut Budget<'_>) -> Result<Going<Move>> {
        // A key that was not found is not outside of what has its token.
        let Some(&(at, byte)) = self.path.last().filter(|_| !self.is_key() || self.path.len() > TOKEN_END)
        else {
            self.state = State::End;
            return Ok(Going::Done(Move::On));
        };
        let node = match self.node(at, Wanted::After(byte), footer, budget)? {
            Going::Done(node) => node,
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        self.path.pop();
        if let Some((byte, child)) = node.next {
            self.descend(at, byte, State::First(child))?;
        }
        Ok(Going::Done(Move::On))
    }

    fn is_key(&self) -> bool {
        matches!(self.target, Target::Key { .. })
    }

    fn descend(&mut self, at: u64, byte: u8, state: State) -> Result<()> {
        if self.path.len() >= DEPTH_MAX {
            let error = Error::unsupported("keys of one token that have many thousands of bytes in common");
            return Err(self.partitions.fault(error.at_offset(at)));
        }
        self.path.push((at, byte));
        self.state = state;
        Ok(())
    }

    /// A leaf. `is_answer`: its token is known not to be less than the target's.
    fn leaf(&mut self, at: u64, payload: Payload, is_answer: bool) -> Result<Going<Move>> {
        let is_other = match &self.target {
            Target::Key { hash, .. } => payload.hash.is_some_and(|byte| byte != *hash),
            Target::Token(_) | Target::Last => false,
        };
        let rows = u64::try_from(payload.position);
        if let Ok(rows) = rows {
            self.follow(self.rows_before, rows, at)?;
            self.rows_before = Some(rows);
        }
        if is_other {
            if rows.is_err() {
                let position = bits_u64(!payload.position);
                self.follow(self.before, position, at)?;
                self.before = Some(position);
            }
            self.state = State::Up;
            return Ok(Going::Done(Move::On));
        }
        match rows {
            Ok(rows) => {
                self.state = State::Rows { at: rows, is_answer };
                Ok(Going::Done(Move::On))
            }
            Err(_) => self.found(bits_u64(!payload.position), at, is_answer),
        }
    }

    /// The entry of a partition in Rows.db: its key, where it is in the data, and more, of its rows.
    fn read_rows(&mut self, at: u64, is_answer: bool, budget: &mut Budget<'_>) -> Result<Going<Move>> {
        let length = match self.rows.length() {
            Going::Done(length) => length,
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        if at >= length {
            return Err(self.rows.corrupt("a partition's entry beyond the end", at));
        }
        if self.rows.at() != at {
            self.rows.seek(at..length);
        }
        let read = self.rows.next(budget, |cursor| {
            cursor.short_bytes()?;
            cursor.vint()
        })?;
        match read {
            Going::Done(position) => self.found(position, at, is_answer),
            Going::Need(demand) => Ok(Going::Need(demand)),
        }
    }

    fn found(&mut self, position: u64, at: u64, is_answer: bool) -> Result<Going<Move>> {
        self.state = State::Found;
        self.follow(self.before, position, at)?;
        self.before = Some(position);
        let prefix: Vec<u8> = self.path.iter().take(TOKEN_END).map(|(_, byte)| *byte).collect();
        Ok(Going::Done(Move::To(Candidate { position, expected: Expected::Prefix(prefix), is_answer })))
    }

    /// Fails for a leaf that is not after the one before it.
    fn follow(&self, before: Option<u64>, place: u64, at: u64) -> Result<()> {
        match before {
            Some(before) if before >= place => {
                Err(self.partitions.corrupt("partitions that do not follow each other", at))
            }
            _ => Ok(()),
        }
    }
}

/// A token as bytes that are ordered as tokens are.
fn token_bytes(token: i64) -> [u8; 8] {
    (bits_u64(token) ^ 1 << 63).to_be_bytes()
}

/// Whether a key's token begins with what leads to its leaf.
pub(super) fn has_prefix(token: i64, prefix: &[u8]) -> bool {
    match prefix.split_first() {
        Some((mark, token_prefix)) => *mark == TOKEN_MARK && token_bytes(token).starts_with(token_prefix),
        None => true,
    }
}

impl Release for TrieSearch {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.path, &mut self.partitions, &mut self.rows], budget)
    }
}

const _: () = assert!(TOKEN_END == 1 + size_of::<i64>());
const _: () = assert!(DEPTH_MAX * size_of::<(u64, u8)>() < 1 << 20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_ordered_as_bytes() {
        let tokens = [i64::MIN, -5, -1, 0, 1, 300, i64::MAX];
        assert!(tokens.map(token_bytes).is_sorted());
        assert!(has_prefix(-1, &[0x40, 0x7f, 0xff]) && !has_prefix(0, &[0x40, 0x7f]));
    }
}
