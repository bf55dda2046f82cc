//! From the ring, the tablets and the servers' estimates to the token ranges that are read as pieces.

use std::ops::RangeInclusive;

use marquetry_base::cast::u64_of;

/// What a server says of a range of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Estimate {
    /// The last token before the range, and its last token; where that is not greater, the range goes on with the least token.
    pub(super) after: i64,
    pub(super) end: i64,
    pub(super) bytes: u64,
}

/// How a table is split.
#[derive(Debug, Clone, Copy)]
pub(super) struct Splitting {
    pub(super) piece_bytes: u64,
    /// Pieces that keep all readers busy.
    pub(super) pieces_wanted: u32,
}

/// Pieces where nobody estimates what is in them.
const PIECES_UNKNOWN: u32 = 64;
/// The most pieces: each costs a request, whatever is in it.
const PIECES_MAX: usize = 65_536;
/// Fewer bytes are not worth a piece, however many readers there are.
const PIECE_BYTES_MIN: u64 = 256 << 10;
/// The number of all tokens.
const TOKENS: u128 = 1 << 64;

/// The token ranges of the pieces, in order, of what is in `wanted`, whose ranges ascend.
///
/// They end where ranges of replicas do, at `borders`: tokens that ranges end with. What is estimated to be large is split.
pub(super) fn pieces(
    borders: &[i64],
    estimates: &[Estimate],
    wanted: &[RangeInclusive<i64>],
    splitting: Splitting,
) -> Vec<RangeInclusive<i64>> {
    // No partition has the least token. A range that ends with it would be all of the ring, and come again and again:
    // servers take that token for the ring's end.
    let mut ends: Vec<i64> = borders.iter().copied().filter(|end| *end != i64::MIN).collect();
    ends.push(i64::MAX);
    ends.sort_unstable();
    ends.dedup();
    // More ranges than pieces: several of them are one.
    let together = ends.len().div_ceil(PIECES_MAX).max(1);
    let last = ends.len() - 1;
    let ends = ends.iter().enumerate().filter(|(at, _)| (at + 1) % together == 0 || *at == last);
    let ends: Vec<i64> = ends.map(|(_, end)| *end).collect();
    let density = Density::new(estimates);
    let mut pieces = Vec::new();
    let mut start = Some(i64::MIN);
    for end in ends {
        let Some(first) = start else { break };
        start = end.checked_add(1);
        if first > end {
            continue;
        }
        let segment = first..=end;
        let parts = density.parts(&segment, splitting);
        for part in split(&segment, parts) {
            let wanted = wanted.iter().filter_map(|wanted| intersection(wanted, &part));
            pieces.extend(wanted.filter(|piece| *piece.end() != i64::MIN));
        }
    }
    // Ranges around the ring come in the order that they are wanted in; each piece is one of them.
    pieces.sort_unstable_by_key(|piece| *piece.start());
    pieces
}

/// What of some pieces is in `wanted`, in so many pieces at least, if there are tokens enough.
pub(super) fn within(
    pieces: impl Iterator<Item = RangeInclusive<i64>>,
    wanted: &[RangeInclusive<i64>],
    at_least: u64,
) -> Vec<RangeInclusive<i64>> {
    let both = pieces.flat_map(|piece| {
        wanted.iter().filter_map(|wanted| intersection(wanted, &piece)).collect::<Vec<_>>()
    });
    let mut both: Vec<RangeInclusive<i64>> = both.collect();
    both.sort_unstable_by_key(|piece| *piece.start());
    let parts = at_least.div_ceil(u64_of(both.len()).max(1));
    both.iter().flat_map(|piece| split(piece, parts)).filter(|piece| *piece.end() != i64::MIN).collect()
}

/// The ends of tablets: the last token of each, as `system.tablets` lists them.
pub(super) fn tablet_borders(last_tokens: &[Option<i64>]) -> Vec<i64> {
    last_tokens.iter().flatten().copied().collect()
}

/// Bytes by token.
struct Density {
    /// First token, last token, bytes; ascending.
    known: Vec<(i64, i64, u64)>,
    total: u64,
}

impl Density {
    fn new(estimates: &[Estimate]) -> Density {
        let mut known = Vec::new();
        for Estimate { after, end, bytes } in estimates.iter().copied() {
            match after.checked_add(1) {
                Some(first) if after < end => known.push((first, end, bytes)),
                first => {
                    // Around the ring.
                    let parts = [first.map(|first| (first, i64::MAX)), Some((i64::MIN, end))];
                    let all: u128 = parts.iter().flatten().map(|(first, end)| width(*first, *end)).sum();
                    for (first, end) in parts.into_iter().flatten() {
                        known.push((first, end, share(bytes, width(first, end), all)));
                    }
                }
            }
        }
        known.sort_unstable();
        let total = known.iter().fold(0, |sum, (_, _, bytes)| bytes.saturating_add(sum));
        Density { known, total }
    }

    fn bytes(&self, segment: &RangeInclusive<i64>) -> u64 {
        let of = |(first, end, bytes): &(i64, i64, u64)| {
            let both = (*first).max(*segment.start())..=(*end).min(*segment.end());
            if both.is_empty() {
                0
            } else {
                share(*bytes, width(*both.start(), *both.end()), width(*first, *end))
            }
        };
        self.known.iter().map(of).fold(0, u64::saturating_add)
    }

    /// How many pieces a segment is worth.
    fn parts(&self, segment: &RangeInclusive<i64>, splitting: Splitting) -> u64 {
        let width = width(*segment.start(), *segment.end());
        // Estimates are made now and then: of a new table there are none, or they say that it is empty.
        let wanted = match self.total {
            0 => u64::from(PIECES_UNKNOWN.max(splitting.pieces_wanted)),
            total => total.div_ceil(PIECE_BYTES_MIN).min(u64::from(splitting.pieces_wanted)),
        };
        let by_width = share(wanted, width, TOKENS).max(1);
        self.bytes(segment).div_ceil(splitting.piece_bytes.max(1)).max(by_width)
    }
}

/// The number of tokens from one to another, which is not less.
fn width(first: i64, end: i64) -> u128 {
    (i128::from(end) - i128::from(first) + 1).unsigned_abs()
}

/// A part of a number, rounded to the nearest.
fn share(of: u64, part: u128, all: u128) -> u64 {
    let all = all.max(1);
    u64::try_from(u128::from(of).saturating_mul(part).saturating_add(all / 2) / all).unwrap_or(u64::MAX)
}

/// A range as so many of about the same number of tokens.
fn split(range: &RangeInclusive<i64>, parts: u64) -> Vec<RangeInclusive<i64>> {
    let all = width(*range.start(), *range.end());
    let parts = u128::from(parts).clamp(1, all);
    let parts = parts.min(u128::try_from(PIECES_MAX).unwrap_or(1));
    let at = |part: u128| {
        let offset = i128::try_from(all * part / parts).unwrap_or(i128::MAX);
        i64::try_from(i128::from(*range.start()).saturating_add(offset)).ok()
    };
    (0..parts)
        .filter_map(|part| {
            let end = match part + 1 == parts {
                true => *range.end(),
                false => at(part + 1)?.checked_sub(1)?,
            };
            Some(at(part)?..=end)
        })
        .collect()
}

fn intersection(one: &RangeInclusive<i64>, other: &RangeInclusive<i64>) -> Option<RangeInclusive<i64>> {
    let both = (*one.start()).max(*other.start())..=(*one.end()).min(*other.end());
    (!both.is_empty()).then_some(both)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: &[RangeInclusive<i64>] = &[i64::MIN..=i64::MAX];
    const MIB: u64 = 1 << 20;

    fn splitting(pieces_wanted: u32) -> Splitting {
        Splitting { piece_bytes: 32 * MIB, pieces_wanted }
    }

    /// Each token is in one piece, and pieces ascend.
    fn check(pieces: &[RangeInclusive<i64>], wanted: &[RangeInclusive<i64>]) {
        assert!(pieces.iter().all(|piece| !piece.is_empty()), "{pieces:?}");
        assert!(pieces.windows(2).all(|two| two[0].end() < two[1].start()), "{pieces:?}");
        let tokens = |ranges: &[RangeInclusive<i64>]| {
            ranges.iter().map(|range| width(*range.start(), *range.end())).sum::<u128>()
        };
        assert_eq!(tokens(pieces), tokens(wanted));
        for piece in pieces {
            assert!(
                wanted.iter().any(|wanted| intersection(wanted, piece).as_ref() == Some(piece)),
                "{piece:?}"
            );
        }
    }

    #[test]
    fn without_estimates_there_are_many() {
        let made = pieces(&[7], &[], ALL, splitting(8));
        check(&made, ALL);
        assert_eq!(made.len(), 64);
        assert!(made.iter().any(|piece| *piece.end() == 7));
        assert_eq!(pieces(&[], &[], ALL, splitting(256)).len(), 256);
        let nothing = [Estimate { after: 0, end: 0, bytes: 0 }];
        assert_eq!(pieces(&[], &nothing, ALL, splitting(8)).len(), 64);
    }

    #[test]
    fn large_ranges_are_split() {
        // One node with one token: around the ring.
        let one = |bytes| [Estimate { after: 5, end: 5, bytes }];
        assert_eq!(pieces(&[5], &one(1), ALL, splitting(8)).len(), 2);
        let made = pieces(&[5], &one(MIB), ALL, splitting(8));
        check(&made, ALL);
        assert_eq!(made.len(), 4);
        let made = pieces(&[5], &one(32 * 100 * MIB), ALL, splitting(8));
        check(&made, ALL);
        assert!((100..104).contains(&made.len()), "{}", made.len());
        // Half of the ring has all.
        let half = [
            Estimate { after: i64::MIN, end: -1, bytes: 320 * MIB },
            Estimate { after: -1, end: i64::MAX, bytes: 0 },
        ];
        let made = pieces(&[-1], &half, ALL, splitting(2));
        check(&made, ALL);
        assert_eq!(made.iter().filter(|piece| *piece.start() < 0).count(), 10);
        assert_eq!(made.len(), 11);
    }

    #[test]
    fn only_what_is_wanted() {
        for wanted in [vec![-4..=5], vec![i64::MIN..=-5, 6..=i64::MAX], vec![], vec![i64::MAX..=i64::MAX]] {
            let made = pieces(&[-100, 0, 100], &[], &wanted, splitting(8));
            check(&made, &wanted);
        }
        // A border within.
        assert_eq!(
            pieces(&[0], &[Estimate { after: 0, end: 0, bytes: 1 }], &[-4..=5], splitting(1)),
            [-4..=0, 1..=5]
        );
    }

    #[test]
    fn a_share_of_the_pieces_is_several() {
        let all = [i64::MIN..=-10, -9..=9, 10..=i64::MAX];
        let share = |wanted: &[RangeInclusive<i64>], at_least| within(all.iter().cloned(), wanted, at_least);
        assert_eq!(share(ALL, 1), all);
        assert_eq!(share(&[-9..=9], 1), [-9..=9]);
        // Pieces are cut where the share is, and end where they did.
        assert_eq!(share(&[-20..=-1, 5..=12], 1), [-20..=-10, -9..=-1, 5..=9, 10..=12]);
        assert_eq!(share(&[0..=7], 4), [0..=1, 2..=3, 4..=5, 6..=7]);
        // No more than there are tokens, and never the least token alone, which servers take for the ring's end.
        assert_eq!(share(&[3..=4], 4), [3..=3, 4..=4]);
        assert_eq!(share(&[i64::MIN..=i64::MIN + 1], 4), [i64::MIN + 1..=i64::MIN + 1]);
        assert_eq!(share(&[], 4), []);
        for at_least in [1, 2, 3, 7, 50] {
            let made = share(&[-1_000..=1_000], at_least);
            check(&made, &[-1_000..=1_000]);
            assert!(u64_of(made.len()) >= at_least, "{made:?}");
        }
    }

    #[test]
    fn borders_anywhere() {
        let ends = [i64::MIN, i64::MIN + 1, -3, -3, -2, i64::MAX - 1, i64::MAX];
        let made = pieces(&ends, &[], ALL, splitting(1));
        check(&made, ALL);
        assert_eq!(*made[0].end(), i64::MIN + 1);
        // A node may own the least token, which no partition has.
        let made = pieces(&[i64::MIN, 0], &[], ALL, splitting(1));
        check(&made, ALL);
        assert!(made.iter().all(|piece| *piece.end() > i64::MIN), "{made:?}");
        assert_eq!(pieces(&[i64::MIN], &[], &[i64::MIN..=i64::MIN], splitting(1)), []);
        let many: Vec<i64> = (0..200_000).collect();
        let made = pieces(&many, &[Estimate { after: 0, end: 0, bytes: 1 }], ALL, splitting(1));
        check(&made, ALL);
        assert!(made.len() <= PIECES_MAX, "{}", made.len());
    }

    /// By ScyllaDB's documents; no server of it is here.
    #[test]
    fn tablets_end_ranges() {
        let tablets = tablet_borders(&[Some(-4_611_686_018_427_387_905), Some(-1), None, Some(i64::MAX)]);
        let known = [Estimate { after: i64::MIN, end: i64::MAX, bytes: 1 }];
        let made = pieces(&tablets, &known, ALL, splitting(1));
        check(&made, ALL);
        assert_eq!(made.len(), 3);
        assert_eq!(*made[0].end(), -4_611_686_018_427_387_905);
    }
}
