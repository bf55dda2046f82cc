//! A thousand rows with their keys, in order.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Error, Price, Result};
use marquetry_kernels::prefix;

use super::key::Keys;
use crate::batch::ColumnBatch;
use crate::prune::compare_bytes;

/// Maximum rows of a piece, and values of their keys: a piece is created and sorted in one go.
const PIECE_ROWS: usize = 1024;
const PIECE_VALUES: usize = 4096;
/// Maximum rows of a piece that is sorted already: the next ones of each source are at hand, and should stay in the cache.
const SORTED_ROWS: usize = 256;
/// Bytes of a prefix that may differ for rows to be sorted byte by byte: each takes a pass over all of them.
const DIGITS_MAX: usize = 6;
/// Bytes of keys beyond their prefixes after which a piece ends.
const TAIL_BYTES: usize = 32 << 10;
/// The cost of a piece, approximately: if the budget has less left, the piece waits for the next one.
const PIECE_UNITS: u64 = 170_000;

/// A common prefix of all keys is skipped if it has at least this many bytes: what follows it is farther away.
pub(super) const SKIPPED_MIN: usize = 4;
/// Bytes after their prefixes in which a common prefix of keys is looked for.
const COMMON_BYTES_MAX: usize = 4 << 10;

/// The prices of creating keys, by values and bytes, and of sorting them, by comparisons.
const KEY_PRICE: Price = Price { kib: 600, kilovalue: 12 << 10 };
const SORT_PRICE: Price = Price { kib: 100, kilovalue: 4 << 10 };
/// The price of comparing two keys beyond their prefixes, which may be anywhere in memory.
const TAIL_PRICE: Price = Price { kib: 150, kilovalue: 60 << 10 };

/// The first bytes of a key, as one number: if two differ, they are ordered as the keys are. Most do.
pub(super) type Prefix = u128;
const PREFIX_BYTES: usize = size_of::<Prefix>();

/// A row of the batch that a piece is of.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The halves of the prefix: this way a row takes 24 bytes instead of 32.
    prefix: [u64; 2],
    row: u32,
}

/// Rows of one batch, in the order of their keys.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// The batch.
    pub(super) source: u32,
    entries: Vec<Entry>,
    /// The first of the rows.
    first: u32,
    /// The rest of each key after its prefix, in the order of the rows, and where each ends; empty if no key is longer.
    tails: Vec<u8>,
    tail_ends: Vec<u32>,
}

impl Piece {
    /// Whether the rest of a budget pays for a piece, or nothing of it is spent yet.
    pub(super) fn is_paid_for(budget: &Budget<'_>) -> bool {
        super::is_paid_for(PIECE_UNITS, budget)
    }

    /// Creates a piece of the rows from `rows.start` on, as many as fit, in one go. Rows that are sorted already keep
    /// their order; there are fewer of them in a piece.
    ///
    /// # Errors
    ///
    /// Those of [`Keys::append`], with the number of the row in the batch.
    pub(super) fn new(
        keys: &Keys,
        columns: &[ColumnBatch],
        source: u32,
        rows: Range<usize>,
        is_sorted: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Piece> {
        let rows_max = if is_sorted { SORTED_ROWS } else { PIECE_ROWS };
        let number =
            |row: usize| u32::try_from(row).map_err(|_| Error::misuse("a batch of more than 2^32 rows"));
        let most = rows_max.min(PIECE_VALUES / keys.len()).max(1);
        let mut piece = Piece { source, first: number(rows.start)?, ..Piece::default() };
        piece.entries.reserve_exact(most.min(rows.len()));
        let end = rows.end.min(rows.start.saturating_add(most));
        let (mut key, mut bytes) = (Vec::new(), 0);
        if let Some(prefixes) = keys.prefixes(columns, rows.start..end)? {
            for (row, prefix) in (piece.first..).zip(prefixes) {
                piece.entries.push(Entry { prefix: halves(prefix), row });
            }
        } else {
            for row in rows.start..end {
                key.clear();
                keys.append(columns, row, &mut key)
                    .map_err(|error| error.at(|place| place.row = Some(u64_of(row))))?;
                bytes += key.len();
                let (prefix, tail) = split(&key);
                // Once one key has a rest, all have an entry for it.
                if !tail.is_empty() && piece.tail_ends.is_empty() {
                    piece.tail_ends.resize(piece.entries.len(), 0);
                }
                piece.entries.push(Entry { prefix, row: number(row)? });
                if !tail.is_empty() || !piece.tail_ends.is_empty() {
                    piece.tails.extend_from_slice(tail);
                    piece.tail_ends.push(number(piece.tails.len())?);
                }
                if piece.tails.len() >= TAIL_BYTES {
                    break;
                }
            }
        }
        budget.charge(KEY_PRICE, bytes, piece.len() * (1 + keys.len()));
        if !is_sorted {
            piece.sort(budget);
        }
        Ok(piece)
    }

    fn sort(&mut self, budget: &mut Budget<'_>) {
        // Keys that begin alike are compared from where they differ.
        let skip = self.shared();
        if !self.is_whole() {
            budget.charge(SORT_PRICE, self.tails.len(), self.len());
        }
        let prefix = self.prefix(0);
        let mut entries = core::mem::take(&mut self.entries);
        if skip > 0 {
            entries.iter_mut().for_each(|entry| entry.prefix = halves(self.head_of(entry, skip)));
        }
        let rounds = usize_of_u32(entries.len().max(2).ilog2()) + 1;
        budget.charge(SORT_PRICE, self.tails.len() * rounds, entries.len() * rounds);
        let by_tail = |a: &Entry, b: &Entry| {
            compare_bytes(self.tail_of(a.row), self.tail_of(b.row)).then(a.row.cmp(&b.row))
        };
        if sort_by_digits(&mut entries) {
            if !self.is_whole() {
                entries
                    .chunk_by_mut(|a, b| a.prefix == b.prefix)
                    .for_each(|equal| equal.sort_unstable_by(by_tail));
            }
        } else {
            entries.sort_unstable_by(|a, b| a.prefix.cmp(&b.prefix).then_with(|| by_tail(a, b)));
        }
        if skip > 0 {
            let left = PREFIX_BYTES.saturating_sub(skip);
            let shared = if left > 0 { prefix & (Prefix::MAX << (8 * left)) } else { prefix };
            for entry in &mut entries {
                let rest = if left > 0 { joined(entry.prefix) >> (8 * skip) } else { 0 };
                entry.prefix = halves(shared | rest);
            }
        }
        self.entries = entries;
    }

    /// How many leading bytes all keys share, if that is of use.
    fn shared(&self) -> usize {
        if self.is_whole() {
            return 0;
        }
        let common = |at: usize| self.common(0, self, at);
        let shared = (1..self.len()).map(common).min().unwrap_or(0);
        if shared < SKIPPED_MIN { 0 } else { shared }
    }

    /// Rows.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key is longer than its prefix.
    pub(super) fn is_whole(&self) -> bool {
        self.tail_ends.is_empty()
    }

    /// How many rows after one have the same prefix, up to `most`.
    pub(super) fn equal_after(&self, at: usize, most: usize) -> usize {
        let Some((first, rest)) = self.entries.get(at..).and_then(<[Entry]>::split_first) else { return 0 };
        rest.iter().take(most).take_while(|entry| entry.prefix == first.prefix).count()
    }

    /// The row of the batch that is the `at`-th.
    pub(super) fn row(&self, at: usize) -> u32 {
        self.entries.get(at).map_or(0, |entry| entry.row)
    }

    /// The prefix of a row's key; for no row, the greatest value.
    pub(super) fn prefix(&self, at: usize) -> Prefix {
        self.entries.get(at).map_or(Prefix::MAX, |entry| joined(entry.prefix))
    }

    /// The part of a row's key after `skip` bytes, in the form of a prefix: if all keys begin with the same `skip`
    /// bytes, it decides as well as a prefix.
    pub(super) fn head(&self, at: usize, skip: usize) -> Prefix {
        match self.entries.get(at) {
            Some(entry) if skip > 0 => self.head_of(entry, skip),
            _ => self.prefix(at),
        }
    }

    fn head_of(&self, entry: &Entry, skip: usize) -> Prefix {
        let tail = self.tail_of(entry.row);
        let (_, next) = tail.split_at(tail.len().min(skip.saturating_sub(PREFIX_BYTES)));
        let mut bytes = [0; PREFIX_BYTES];
        let there = next.len().min(PREFIX_BYTES);
        bytes[..there].copy_from_slice(&next[..there]);
        let next = Prefix::from_be_bytes(bytes);
        match PREFIX_BYTES.checked_sub(skip) {
            Some(left @ 1..) => joined(entry.prefix) << (8 * skip) | next >> (8 * left),
            _ => next,
        }
    }

    /// How many leading bytes the keys of two rows share, as far as they are examined.
    pub(super) fn common(&self, at: usize, other: &Piece, other_at: usize) -> usize {
        let differ = self.prefix(at) ^ other.prefix(other_at);
        if differ != 0 {
            return usize_of_u32(differ.leading_zeros() / 8);
        }
        let tail = self.tail(at);
        let looked_at = tail.get(..COMMON_BYTES_MAX).unwrap_or(tail);
        PREFIX_BYTES + prefix::common(looked_at, other.tail(other_at))
    }

    /// The rest of a row's key after its prefix.
    pub(super) fn tail(&self, at: usize) -> &[u8] {
        self.entries.get(at).map_or(&[], |entry| self.tail_of(entry.row))
    }

    fn tail_of(&self, row: u32) -> &[u8] {
        let at = usize_of_u32(row - self.first);
        let end_of = |at: usize| self.tail_ends.get(at).map_or(0, |end| usize_of_u32(*end));
        let start = at.checked_sub(1).map_or(0, end_of);
        self.tails.get(start..end_of(at)).unwrap_or_default()
    }

    /// Bytes of memory.
    pub(super) fn held(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.tails.capacity()
            + self.tail_ends.capacity() * size_of::<u32>()
    }
}

/// Sorts by prefix, a byte after the other, from the last one that differs: rows of equal prefixes stay as they are. False,
/// and nothing is done, if so many bytes differ that comparisons are faster.
fn sort_by_digits(entries: &mut Vec<Entry>) -> bool {
    let Some(least) = entries.iter().map(|entry| joined(entry.prefix)).min() else { return true };
    // Beyond the least one: numbers around zero differ in all bytes, their distances in the last ones.
    let beyond = |entry: &Entry| joined(entry.prefix) - least;
    let differ = entries.iter().fold(0, |differ, entry| differ | beyond(entry));
    let digits = (0..Prefix::BITS).step_by(8).filter(|shift| (differ >> shift) & 0xff != 0);
    if digits.clone().count() > DIGITS_MAX {
        return false;
    }
    let mut sorted = entries.clone();
    for shift in digits {
        let digit = |entry: &Entry| usize::from((beyond(entry) >> shift).to_le_bytes()[0]);
        let mut places = [0_usize; 256];
        entries.iter().for_each(|entry| places[digit(entry)] += 1);
        let mut end = 0;
        for place in &mut places {
            end += core::mem::replace(place, end);
        }
        for entry in &*entries {
            let place = &mut places[digit(entry)];
            sorted[*place] = *entry;
            *place += 1;
        }
        core::mem::swap(entries, &mut sorted);
    }
    true
}

/// The prefix of a key, padded with zeros if the key is shorter, and the rest. No key is a prefix of another, so
/// padding makes no two keys equal.
fn split(key: &[u8]) -> ([u64; 2], &[u8]) {
    let half = |start: usize| {
        let part = key.get(start..key.len().min(start + 8)).unwrap_or_default();
        let mut bytes = [0; 8];
        bytes[..part.len()].copy_from_slice(part);
        u64::from_be_bytes(bytes)
    };
    ([half(0), half(8)], key.get(PREFIX_BYTES..).unwrap_or_default())
}

fn joined([high, low]: [u64; 2]) -> Prefix {
    Prefix::from(high) << 64 | Prefix::from(low)
}

fn halves(prefix: Prefix) -> [u64; 2] {
    let [high, low]: [[u8; 8]; 2] = bytemuck::cast(prefix.to_be_bytes());
    [high, low].map(u64::from_be_bytes)
}

/// Compares the rests of two keys whose prefixes are equal.
pub(super) fn compare_tails(a: &[u8], b: &[u8], budget: &mut Budget<'_>) -> Ordering {
    let both = a.len().min(b.len());
    if both > 0 {
        budget.charge(TAIL_PRICE, both, 1);
    }
    compare_bytes(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{ByteArrays, Layout, Values};
    use crate::format::SortingColumn;
    use alloc::format;
    use alloc::string::String;

    fn strings(all: &[String]) -> ColumnBatch {
        let bytes = all.concat().into_bytes();
        ColumnBatch {
            leaf: 0,
            rows: all.len(),
            nulls: 0,
            validity: None,
            values: Values::ByteArray(
                ByteArrays::from_lengths(bytes.into(), all.iter().map(String::len)).unwrap(),
            ),
            layout: Layout::Dense,
            levels: None,
            provisional: false,
        }
    }

    fn keys() -> Keys {
        use crate::schema::Plan as _;
        let column = crate::hive::HiveType::Text.column("a");
        let schema = crate::schema::Union::new().with([column]).plan().at_once().unwrap().schema;
        let by = SortingColumn { column: 0, descending: false, nulls_first: false };
        Keys::new(&schema, &[by]).unwrap()
    }

    #[test]
    fn rows_are_in_order_and_equal_ones_as_they_came() {
        let all: Vec<String> =
            (0..3000).map(|n| format!("a key that is longer than its prefix {}", n * 37 % 50)).collect();
        let column = [strings(&all)];
        let mut budget = Budget::new(0);
        let mut piece = Piece::new(&keys(), &column, 3, 10..3000, false, &mut budget).unwrap();
        let rows: Vec<usize> = (0..piece.len()).map(|at| usize_of_u32(piece.row(at))).collect();
        let mut expected: Vec<usize> = (10..10 + piece.len()).collect();
        expected.sort_by_key(|row| &all[*row]);
        assert_eq!(rows, expected);
        assert!(piece.len() == PIECE_ROWS && budget.spent() < PIECE_UNITS, "{budget:?}");
        assert!(piece.held() < 200_000);
        piece.entries.clear();
        assert_eq!((piece.prefix(0), piece.tail(0), piece.source), (Prefix::MAX, &[][..], 3));
    }

    #[test]
    fn keys_that_begin_alike() {
        for alike in [0, 3, 7, 14, 15, 16, 30] {
            let all: Vec<String> = (0..200)
                .map(|n| format!("{}{:02}{}", "x".repeat(alike), n * 37 % 50, "y".repeat(20)))
                .collect();
            let column = [strings(&all)];
            let piece = Piece::new(&keys(), &column, 0, 0..200, false, &mut Budget::unlimited()).unwrap();
            let mut expected: Vec<usize> = (0..200).collect();
            expected.sort_by_key(|row| &all[*row]);
            for (at, row) in expected.iter().enumerate() {
                assert_eq!(usize_of_u32(piece.row(at)), *row, "{alike}");
                let key = [&piece.prefix(at).to_be_bytes()[..], piece.tail(at)].concat();
                assert_eq!(key, [&[1], all[*row].as_bytes(), &[0, 0]].concat(), "{alike}");
            }
        }
    }

    #[test]
    fn equal_rows_are_counted() {
        let all: Vec<String> = ["b", "a", "b", "b", "c"].map(String::from).to_vec();
        let piece = Piece::new(&keys(), &[strings(&all)], 0, 0..5, false, &mut Budget::unlimited()).unwrap();
        let counts = [0, 1, 2, 3, 4, 5].map(|at| piece.equal_after(at, 9));
        assert_eq!((counts, piece.equal_after(1, 1)), ([0, 2, 1, 0, 0, 0], 1));
    }

    #[test]
    fn heads_behind_what_is_common() {
        let all: Vec<String> = ["x".repeat(20) + "abc", "x".repeat(20) + "abd" + &"y".repeat(40)].to_vec();
        let piece = Piece::new(&keys(), &[strings(&all)], 0, 0..2, true, &mut Budget::unlimited()).unwrap();
        // The byte before each value, and the equal bytes.
        assert_eq!(piece.common(0, &piece, 1), 1 + 22);
        assert_eq!(piece.common(1, &piece, 1), 1 + 63 + 2);
        for skip in 0..=23 {
            for (row, text) in all.iter().enumerate() {
                let mut key = [&[1], text.as_bytes(), &[0; 20]].concat();
                key.drain(..skip);
                assert_eq!(piece.head(row, skip).to_be_bytes(), key[..16], "{row}, {skip}");
            }
            assert!(piece.head(0, skip) <= piece.head(1, skip));
        }
        assert!(piece.head(0, 23) < piece.head(1, 23) && piece.head(0, 8) < piece.head(1, 8));
        assert_eq!(piece.head(2, 9), Prefix::MAX);
    }

    #[test]
    fn what_is_sorted_stays() {
        let all: Vec<String> = ["b", "a"].map(String::from).to_vec();
        let piece = Piece::new(&keys(), &[strings(&all)], 0, 0..2, true, &mut Budget::unlimited()).unwrap();
        assert_eq!((piece.row(0), piece.row(1), piece.tail(1)), (0, 1, &[][..]));
    }

    #[test]
    fn a_piece_ends_behind_a_long_key() {
        let all: Vec<String> = (0..10).map(|n| format!("{}{}", "x".repeat(60_000), 9 - n)).collect();
        let mut budget = Budget::new(0);
        let piece = Piece::new(&keys(), &[strings(&all)], 0, 0..10, false, &mut budget).unwrap();
        assert_eq!((piece.len(), piece.row(0)), (1, 0));
        assert!(budget.spent() < 250_000, "{budget:?}");
    }
}
