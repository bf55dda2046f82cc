//! Pieces of sorted rows, merged.

use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Error, Price, Result};

use super::pieces::{Piece, Prefix, compare_tails};

/// What a comparison of two rows costs: their keys are rarely in the first-level cache.
const COMPARE_PRICE: Price = Price::per_kilovalue(6 << 10);

/// Picks that are made before the budget is asked.
const PICKS_AT_ONCE: usize = 64;

/// A row of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    /// The batch.
    pub(super) source: u32,
    /// The row.
    pub(super) row: u32,
}

/// Pieces, in the order that their rows came in, the first rows of which are compared.
#[derive(Debug, Default)]
pub(super) struct Merge {
    cursors: Vec<Cursor>,
    /// The keys' prefixes of the next rows.
    heads: Vec<Prefix>,
    tree: LoserTree,
    /// Cursors that are in the tree, while it is built.
    built: usize,
}

#[derive(Debug, Default)]
struct Cursor {
    piece: Piece,
    at: usize,
}

/// Why picking ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Picked {
    /// There are as many as were wanted.
    Enough,
    /// The budget is spent.
    Spent,
    /// This piece has no more rows. It is replaced by another, or [ended](Merge::go_on).
    Exhausted(usize),
    /// No piece has.
    All,
}

impl Merge {
    /// A merge of so many pieces that are still to come, by [`Merge::replace`].
    pub(super) fn of_empty(pieces: usize) -> Merge {
        Merge::of((0..pieces).map(|_| Piece::default()).collect())
    }

    /// A merge of pieces.
    pub(super) fn of(pieces: Vec<Piece>) -> Merge {
        let heads = pieces.iter().map(|piece| piece.prefix(0)).collect();
        let cursors: Vec<Cursor> = pieces.into_iter().map(|piece| Cursor { piece, at: 0 }).collect();
        Merge { tree: LoserTree::new(cursors.len()), cursors, heads, built: 0 }
    }

    /// Pieces.
    pub(super) fn len(&self) -> usize {
        self.cursors.len()
    }

    /// Puts a piece in the place of one that is exhausted, or not yet there. Once the merge is begun [`Merge::go_on`] follows.
    pub(super) fn replace(&mut self, cursor: usize, piece: Piece) {
        if let (Some(head), Some(found)) = (self.heads.get_mut(cursor), self.cursors.get_mut(cursor)) {
            *head = piece.prefix(0);
            *found = Cursor { piece, at: 0 };
        }
    }

    /// Takes what an exhausted piece has become into account: another piece, or the end.
    pub(super) fn go_on(&mut self, cursor: usize, budget: &mut Budget<'_>) {
        let (cursors, heads) = (&self.cursors, &self.heads);
        self.tree.replay(cursor, |a, b| is_less(cursors, heads, a, b, budget));
        budget.charge(COMPARE_PRICE, 0, self.tree.depth());
    }

    /// Compares all first rows. False when the budget is spent before.
    pub(super) fn build(&mut self, budget: &mut Budget<'_>) -> bool {
        while self.built < self.cursors.len() {
            let (cursors, heads) = (&self.cursors, &self.heads);
            self.tree.insert(self.built, |a, b| is_less(cursors, heads, a, b, budget));
            self.built += 1;
            budget.charge(COMPARE_PRICE, 0, 2);
            if budget.is_spent() {
                return self.built == self.cursors.len();
            }
        }
        true
    }

    /// Picks rows in order, until there are `most`. Where `may_end`, exhausted pieces have ended.
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
        let mut since = 0;
        while picks.len() < most {
            let winner = self.tree.winner();
            let Some(cursor) = self.cursors.get_mut(winner).filter(|cursor| cursor.at < cursor.piece.len())
            else {
                return Ok(Picked::All);
            };
            picks.push(Pick { source: cursor.piece.source, row: cursor.piece.row(cursor.at) });
            cursor.at += 1;
            self.heads[winner] = cursor.piece.prefix(cursor.at);
            if cursor.at == cursor.piece.len() && !may_end {
                return Ok(Picked::Exhausted(winner));
            }
            let (cursors, heads) = (&self.cursors, &self.heads);
            self.tree.replay(winner, |a, b| is_less(cursors, heads, a, b, budget));
            budget.charge(COMPARE_PRICE, 0, self.tree.depth() + 1);
            since += 1;
            if since >= PICKS_AT_ONCE || budget.left() == 0 {
                since = 0;
                if budget.is_spent() && picks.len() < most {
                    return Ok(Picked::Spent);
                }
            }
        }
        Ok(Picked::Enough)
    }

    /// Takes the last piece: of many that are let go of.
    pub(super) fn pop(&mut self) -> Option<Piece> {
        self.heads.pop();
        self.cursors.pop().map(|cursor| cursor.piece)
    }
}

/// Whether the next row of one piece comes before that of another. Equal ones are as they came; an end is behind all.
#[inline]
fn is_less(cursors: &[Cursor], heads: &[Prefix], a: usize, b: usize, budget: &mut Budget<'_>) -> bool {
    let (head_a, head_b) = (&heads[a], &heads[b]);
    if head_a != head_b {
        return head_a < head_b;
    }
    is_less_beyond(&cursors[a], &cursors[b], a < b, budget)
}

fn is_less_beyond(a: &Cursor, b: &Cursor, is_before: bool, budget: &mut Budget<'_>) -> bool {
    let has_row = |cursor: &Cursor| cursor.at < cursor.piece.len();
    match (has_row(a), has_row(b)) {
        (true, true) => {
            let order = compare_tails(a.piece.tail(a.at), b.piece.tail(b.at), budget);
            if order.is_eq() { is_before } else { order.is_lt() }
        }
        (a_has, b_has) => a_has && !b_has,
    }
}

/// A tournament of many contestants of which the least is known: to put another in its place, only those are compared that it has beaten.
#[derive(Debug, Default)]
struct LoserTree {
    /// The winner; then, for each match, who lost it. Match `n` has the winners of `2n` and `2n + 1`, contestants stand behind all matches.
    nodes: Vec<u32>,
}

/// Nobody has come to a match yet.
const NOBODY: u32 = u32::MAX;

impl LoserTree {
    fn new(contestants: usize) -> LoserTree {
        LoserTree { nodes: alloc::vec![NOBODY; contestants] }
    }

    fn depth(&self) -> usize {
        usize_of_u32(self.nodes.len().max(1).ilog2()) + 1
    }

    fn winner(&self) -> usize {
        self.nodes.first().map_or(0, |winner| usize_of_u32(*winner))
    }

    /// Lets a contestant in, each once: up to a match where it waits for the other, or to the end.
    fn insert(&mut self, contestant: usize, mut is_less: impl FnMut(usize, usize) -> bool) {
        let mut winner = contestant;
        let mut node = (contestant + self.nodes.len()) / 2;
        while node > 0 {
            let other = self.nodes[node];
            if other == NOBODY {
                self.nodes[node] = number(winner);
                return;
            }
            if is_less(usize_of_u32(other), winner) {
                self.nodes[node] = number(winner);
                winner = usize_of_u32(other);
            }
            node /= 2;
        }
        self.nodes[0] = number(winner);
    }

    /// The last winner has become another: its matches are held again.
    #[inline]
    fn replay(&mut self, contestant: usize, mut is_less: impl FnMut(usize, usize) -> bool) {
        let mut winner = contestant;
        let mut node = (contestant + self.nodes.len()) / 2;
        while node > 0 {
            let other = usize_of_u32(self.nodes[node]);
            if is_less(other, winner) {
                self.nodes[node] = number(winner);
                winner = other;
            }
            node /= 2;
        }
        self.nodes[0] = number(winner);
    }
}

/// So many pieces do not fit into memory.
fn number(contestant: usize) -> u32 {
    u32::try_from(contestant).unwrap_or(NOBODY)
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
            let key = |lists: &[Vec<u64>], at: usize| (lists[at].last().copied().unwrap_or(u64::MAX), at);
            let mut tree = LoserTree::new(contestants);
            (0..contestants).for_each(|at| tree.insert(at, |a, b| key(&lists, a) < key(&lists, b)));
            for least in expected {
                let winner = tree.winner();
                assert_eq!((lists[winner].pop().unwrap(), winner), least);
                tree.replay(winner, |a, b| key(&lists, a) < key(&lists, b));
            }
        }
    }
}
