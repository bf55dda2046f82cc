//! Pieces of sorted rows, merged.

use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Error, Price, Result};

use super::pieces::{Piece, Prefix, SKIPPED_MIN, compare_tails};

/// The price of comparing two rows: their keys are rarely in the first-level cache.
const COMPARE_PRICE: Price = Price::per_kilovalue(8 << 10);

/// Looking behind a common prefix costs as much as this many comparisons; and so does looking at a piece for the first time.
const HEAD_COMPARISONS: usize = 90;

/// Comparisons between two checks of the budget.
const COMPARISONS_AT_ONCE: usize = 1024;

/// A row of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    /// The batch.
    pub(super) source: u32,
    /// The row.
    pub(super) row: u32,
}

/// Pieces, in the order in which their rows arrived. The first row of each takes part in the comparison.
#[derive(Debug, Default)]
pub(super) struct Merge {
    cursors: Vec<Cursor>,
    tree: LoserTree,
    /// The length of the prefix that all keys share; what follows distinguishes them.
    skip: usize,
    /// No key is longer than its prefix, so that rows of equal heads are equal.
    are_heads_whole: bool,
    /// The number of cursors that were measured for that, and that are in the tree.
    measured: usize,
    built: usize,
}

#[derive(Debug, Default)]
struct Cursor {
    piece: Piece,
    at: usize,
    /// Leading bytes that the keys of all pieces which stand here share, as far as that is known.
    common: usize,
}

/// Why picking ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Picked {
    /// As many rows as requested were picked.
    Enough,
    /// The budget is spent.
    Spent,
    /// This piece has no more rows. It is replaced by another, or [ended](Merge::go_on).
    Exhausted(usize),
    /// No piece has.
    All,
}

impl Merge {
    /// A merge of pieces which [`Merge::replace`] adds later. Of each, how many leading bytes all the keys share that it will ever have.
    pub(super) fn of_empty(commons: impl Iterator<Item = usize>) -> Merge {
        let cursors: Vec<Cursor> = commons.map(|common| Cursor { common, ..Cursor::default() }).collect();
        let tree = LoserTree::new(cursors.len());
        Merge { tree, cursors, skip: usize::MAX, are_heads_whole: true, measured: 0, built: 0 }
    }

    /// A merge of pieces; each ends with its last row.
    pub(super) fn of(pieces: Vec<Piece>) -> Merge {
        // All keys of a piece share what its first and its last share.
        let cursor = |piece: Piece| {
            let common = piece.common(0, &piece, piece.len().saturating_sub(1));
            Cursor { piece, at: 0, common }
        };
        let cursors: Vec<Cursor> = pieces.into_iter().map(cursor).collect();
        let are_heads_whole = cursors.iter().all(|cursor| cursor.piece.is_whole());
        let tree = LoserTree::new(cursors.len());
        Merge { tree, cursors, skip: usize::MAX, are_heads_whole, measured: 0, built: 0 }
    }

    /// Pieces.
    pub(super) fn len(&self) -> usize {
        self.cursors.len()
    }

    /// Replaces a piece that is exhausted or missing. Once the merge has begun, [`Merge::go_on`] must follow.
    pub(super) fn replace(&mut self, cursor: usize, piece: Piece) {
        self.are_heads_whole &= piece.is_whole();
        if let Some(found) = self.cursors.get_mut(cursor) {
            *found = Cursor { piece, at: 0, common: found.common };
        }
    }

    /// Takes the replacement of an exhausted piece into account, or its end.
    pub(super) fn go_on(&mut self, cursor: usize, budget: &mut Budget<'_>) {
        let head =
            self.cursors.get(cursor).map_or(Prefix::MAX, |found| found.piece.head(found.at, self.skip));
        self.replay(cursor, head, budget);
        budget.charge(COMPARE_PRICE, 0, self.tree.depth());
    }

    /// Compares all first rows. False if the budget is spent first.
    pub(super) fn build(&mut self, budget: &mut Budget<'_>) -> bool {
        if !self.measure(budget) {
            return false;
        }
        while let Some(cursor) = self.cursors.get(self.built) {
            let (cursors, head) = (&self.cursors, cursor.piece.head(cursor.at, self.skip));
            self.tree.insert(self.built, head, |a, b| is_less_beyond(cursors, a, b, budget));
            self.built += 1;
            budget.charge(COMPARE_PRICE, 0, 2 + HEAD_COMPARISONS);
            if budget.is_spent() {
                return self.built == self.cursors.len();
            }
        }
        true
    }

    /// Finds the prefix that all keys share. False if the budget is spent first.
    fn measure(&mut self, budget: &mut Budget<'_>) -> bool {
        while let (Some(first), Some(next)) = (self.cursors.first(), self.cursors.get(self.measured)) {
            let common = first.piece.common(0, &next.piece, 0).min(next.common);
            self.skip = self.skip.min(common);
            self.measured += 1;
            budget.charge(COMPARE_PRICE, 0, 2 + self.skip / 4);
            // Whole heads decide as they are.
            let is_useless = self.skip < SKIPPED_MIN || self.are_heads_whole;
            if self.measured == self.cursors.len() && is_useless {
                self.skip = 0;
            }
            if budget.is_spent() {
                return self.measured == self.cursors.len();
            }
        }
        true
    }

    /// How many leading bytes all keys share, once it is built; zero if there are few, or if that is of no use.
    pub(super) fn common(&self) -> usize {
        self.skip
    }

    /// Picks rows in order, until there are `most`. With `may_end`, an exhausted piece has ended.
    ///
    /// # Errors
    ///
    /// `Internal` before it is built.
    pub(super) fn pick(
        &mut self,
        picks: &mut Vec<Pick>,
        most: usize,
        may_end: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Picked> {
        if self.built < self.cursors.len() {
            return Err(Error::internal("rows picked of a merge that is not begun"));
        }
        let each = self.tree.depth() + 1 + if self.skip > 0 { HEAD_COMPARISONS } else { 0 };
        while picks.len() < most {
            let until = most.min(picks.len() + (COMPARISONS_AT_ONCE / each).max(1));
            let first = picks.len();
            let ended = self.pick_some(picks, until, may_end, budget);
            budget.charge(COMPARE_PRICE, 0, (picks.len() - first) * each);
            if let Some(ended) = ended {
                return Ok(ended);
            }
            if budget.is_spent() && picks.len() < most {
                return Ok(Picked::Spent);
            }
        }
        Ok(Picked::Enough)
    }

    fn pick_some(
        &mut self,
        picks: &mut Vec<Pick>,
        until: usize,
        may_end: bool,
        budget: &mut Budget<'_>,
    ) -> Option<Picked> {
        while picks.len() < until {
            let winner = self.tree.winner();
            let found = self.cursors.get_mut(winner).filter(|cursor| cursor.at < cursor.piece.len());
            let Some(cursor) = found else { return Some(Picked::All) };
            let source = cursor.piece.source;
            picks.push(Pick { source, row: cursor.piece.row(cursor.at) });
            if self.are_heads_whole {
                // Rows of the piece that are equal to one that won have won, too.
                let equal = cursor.piece.equal_after(cursor.at, until - picks.len());
                picks
                    .extend((1..=equal).map(|next| Pick { source, row: cursor.piece.row(cursor.at + next) }));
                cursor.at += equal;
            }
            cursor.at += 1;
            if cursor.at == cursor.piece.len() && !may_end {
                return Some(Picked::Exhausted(winner));
            }
            let head = cursor.piece.head(cursor.at, self.skip);
            self.replay(winner, head, budget);
            if budget.left() == 0 {
                break;
            }
        }
        None
    }

    /// Has the next row of a piece, or its end, take the place of the winner.
    #[inline]
    fn replay(&mut self, cursor: usize, head: Prefix, budget: &mut Budget<'_>) {
        let cursors = &self.cursors;
        // The end of a piece has the greatest head, and comes after a row that has it, too. Matches are among lesser ones.
        if self.are_heads_whole && head < Prefix::MAX {
            self.tree.replay(cursor, head, |a, b| a < b);
        } else {
            self.tree.replay(cursor, head, |a, b| is_less_beyond(cursors, a, b, budget));
        }
    }

    /// Removes the last piece, so that many are released one by one.
    pub(super) fn pop(&mut self) -> Option<Piece> {
        self.cursors.pop().map(|cursor| cursor.piece)
    }
}

/// Whether the next row of one piece comes before that of another, if their heads are equal. Equal rows keep their
/// order; an ended piece comes last.
#[cold]
fn is_less_beyond(cursors: &[Cursor], a: usize, b: usize, budget: &mut Budget<'_>) -> bool {
    let (Some(of_a), Some(of_b)) = (cursors.get(a), cursors.get(b)) else { return a < b };
    let has_row = |cursor: &Cursor| cursor.at < cursor.piece.len();
    match (has_row(of_a), has_row(of_b)) {
        (true, true) => {
            let order = compare_tails(of_a.piece.tail(of_a.at), of_b.piece.tail(of_b.at), budget);
            if order.is_eq() { a < b } else { order.is_lt() }
        }
        (a_has, b_has) => a_has && !b_has,
    }
}

/// A tournament that knows the least of many contestants. To replace the winner, only the matches that it won are
/// repeated.
#[derive(Debug, Default)]
struct LoserTree {
    /// The winner, then the loser of each match. Match `n` is between the winners of `2n` and `2n + 1`; the contestants
    /// follow all matches.
    nodes: Vec<Contestant>,
}

/// A contestant and its head; heads that differ decide a match.
#[derive(Debug, Clone, Copy)]
struct Contestant {
    head: Prefix,
    number: usize,
}

/// No contestant has reached the match yet.
const NOBODY: Contestant = Contestant { head: 0, number: usize::MAX };

impl LoserTree {
    fn new(contestants: usize) -> LoserTree {
        LoserTree { nodes: alloc::vec![NOBODY; contestants] }
    }

    fn depth(&self) -> usize {
        usize_of_u32(self.nodes.len().max(1).ilog2()) + 1
    }

    fn winner(&self) -> usize {
        self.nodes.first().map_or(0, |winner| winner.number)
    }

    /// Adds a contestant, each once: it plays up to a match where it must wait for the other, or to the end. `is_less`
    /// decides if heads are equal.
    fn insert(&mut self, number: usize, head: Prefix, mut is_less: impl FnMut(usize, usize) -> bool) {
        let mut winner = Contestant { head, number };
        let mut node = (number + self.nodes.len()) / 2;
        while node > 0 {
            let other = self.nodes[node];
            if other.number == NOBODY.number {
                self.nodes[node] = winner;
                return;
            }
            if other.head < winner.head || (other.head == winner.head && is_less(other.number, winner.number))
            {
                self.nodes[node] = winner;
                winner = other;
            }
            node /= 2;
        }
        self.nodes[0] = winner;
    }

    /// The last winner has a new head: its matches are repeated.
    #[inline]
    fn replay(&mut self, number: usize, head: Prefix, mut is_less: impl FnMut(usize, usize) -> bool) {
        let mut winner = Contestant { head, number };
        let mut node = (number + self.nodes.len()) / 2;
        while node > 0 {
            let other = self.nodes[node];
            let is_beaten = match other.head == winner.head {
                false => other.head < winner.head,
                true => is_less(other.number, winner.number),
            };
            // The winner is unpredictable, so it is chosen without a branch.
            self.nodes[node] = if is_beaten { winner } else { other };
            winner = if is_beaten { other } else { winner };
            node /= 2;
        }
        self.nodes[0] = winner;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_wins() {
        for contestants in [1, 2, 3, 5, 8, 13, 100] {
            let mut state = 7_u64;
            let mut lists: Vec<Vec<u64>> = (0..contestants)
                .map(|_| {
                    let length = (state >> 7) % 9;
                    let mut list: Vec<u64> = (0..length)
                        .map(|_| {
                            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            (state >> 33) % 20
                        })
                        .collect();
                    list.sort_unstable_by(|a, b| b.cmp(a));
                    list
                })
                .collect();
            let mut expected: Vec<(u64, usize)> = lists
                .iter()
                .enumerate()
                .flat_map(|(at, list)| list.iter().map(move |value| (*value, at)))
                .collect();
            expected.sort_unstable();
            // Heads distinguish the tens; the rest is looked up.
            let key = |lists: &[Vec<u64>], at: usize| (lists[at].last().copied().unwrap_or(u64::MAX), at);
            let head = |lists: &[Vec<u64>], at: usize| Prefix::from(key(lists, at).0 / 10);
            let mut tree = LoserTree::new(contestants);
            (0..contestants)
                .for_each(|at| tree.insert(at, head(&lists, at), |a, b| key(&lists, a) < key(&lists, b)));
            for least in expected {
                let winner = tree.winner();
                assert_eq!((lists[winner].pop().unwrap(), winner), least);
                tree.replay(winner, head(&lists, winner), |a, b| key(&lists, a) < key(&lists, b));
            }
        }
    }
}
