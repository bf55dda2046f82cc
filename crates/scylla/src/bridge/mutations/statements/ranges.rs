//! Ranges of deleted rows as `DELETE` can say them.
//!
//! A range begins and ends before or after all rows with some first clustering values, in the table's order. `DELETE` takes rows whose first
//! clustering values are the same, and whose next one is between two values, in the order of values. So a range may need several of them:
//!
//! ```text
//! from (1, 5) to (3, 2)    c1 = 1 AND c2 >= 5;   c1 > 1 AND c1 < 3;   c1 = 3 AND c2 <= 2
//! ```
//!
//! `(c1, c2) >= (1, 5)` would say it in one, but only where both columns are sorted in the same direction.

use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use super::texts::{Edge, Slice};
use crate::sstable::batch::number_of;

/// A place between rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    /// The first clustering values.
    pub(super) values: Vec<Vec<u8>>,
    /// It is after the rows with these values, not before them.
    pub(super) is_after: bool,
}

/// What a `DELETE` is to delete: with what is bound after the partition key, in order.
pub(super) type Sliced<'a> = (Slice, Vec<&'a [u8]>);

/// The slices that are the rows between two places. `reversed` says of each clustering column whether it is sorted in descending order.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) if the end is before the start.
pub(super) fn slices<'a>(start: &'a Bound, end: &'a Bound, reversed: &[bool]) -> Result<Vec<Sliced<'a>>> {
    let same = start.values.iter().zip(&end.values).take_while(|(one, other)| one == other).count();
    let (first, last) = (start.values.len(), end.values.len());
    if (first == same && start.is_after) || (last == same && !end.is_after) {
        return Err(Error::corrupt("a range of deleted rows that ends before it begins"));
    }
    let mut made = Vec::new();
    let mut add = |prefix: &'a [Vec<u8>],
                   from: Option<(&'a Vec<u8>, bool)>,
                   to: Option<(&'a Vec<u8>, bool)>| {
        let is_reversed = reversed.get(prefix.len()).copied().unwrap_or(false);
        let (least, greatest) = if is_reversed { (to, from) } else { (from, to) };
        let edge = |end: Option<(&Vec<u8>, bool)>| match end {
            None => Edge::Open,
            Some((_, true)) => Edge::Inclusive,
            Some((_, false)) => Edge::Exclusive,
        };
        let slice = Slice { prefix: number_of(prefix.len()), least: edge(least), greatest: edge(greatest) };
        let ends = [least, greatest].into_iter().flatten().map(|(value, _)| value);
        made.push((slice, prefix.iter().chain(ends).map(Vec::as_slice).collect()));
    };
    // The value of a bound at a place, and whether rows with it are in the range.
    let from = |at: usize| start.values.get(at).map(|value| (value, at + 1 == first && !start.is_after));
    let to = |at: usize| end.values.get(at).map(|value| (value, at + 1 == last && end.is_after));
    for at in (same + 1..first).rev() {
        add(start.values.get(..at).unwrap_or_default(), from(at), None);
    }
    add(start.values.get(..same).unwrap_or_default(), from(same), to(same));
    for at in same + 1..last {
        add(end.values.get(..at).unwrap_or_default(), None, to(at));
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use marquetry_base::ErrorKind;
    use marquetry_base::cast::usize_of_u32;

    fn bound(values: &[u8], is_after: bool) -> Bound {
        Bound { values: values.iter().map(|value| alloc::vec![*value]).collect(), is_after }
    }

    fn said(start: &Bound, end: &Bound, reversed: &[bool]) -> String {
        let mut text = String::new();
        for (slice, values) in slices(start, end, reversed).unwrap() {
            let mut values = values.into_iter().map(|value| value[0]);
            let mut clauses: Vec<String> =
                (1..=slice.prefix).map(|at| format!("c{at}={}", values.next().unwrap())).collect();
            for (edge, with, without) in [(slice.least, ">=", ">"), (slice.greatest, "<=", "<")] {
                let sign = match edge {
                    Edge::Open => continue,
                    Edge::Inclusive => with,
                    Edge::Exclusive => without,
                };
                clauses.push(format!("c{}{sign}{}", slice.prefix + 1, values.next().unwrap()));
            }
            assert_eq!(values.next(), None);
            text.push_str(&format!("{}{}", if text.is_empty() { "" } else { "; " }, clauses.join(" ")));
        }
        text
    }

    #[test]
    fn ranges_are_slices() {
        let up = [false; 3];
        for (start, end, slices) in [
            (bound(&[], false), bound(&[], true), ""),
            (bound(&[1], false), bound(&[1], true), "c1=1"),
            (bound(&[1], true), bound(&[], true), "c1>1"),
            (bound(&[], false), bound(&[4], false), "c1<4"),
            (bound(&[1], false), bound(&[4], true), "c1>=1 c1<=4"),
            (bound(&[1], true), bound(&[4], false), "c1>1 c1<4"),
            (bound(&[1, 5], false), bound(&[1], true), "c1=1 c2>=5"),
            (bound(&[1], false), bound(&[1, 5], false), "c1=1 c2<5"),
            (bound(&[1, 5], true), bound(&[1, 7], true), "c1=1 c2>5 c2<=7"),
            (bound(&[1, 5], false), bound(&[3], true), "c1=1 c2>=5; c1>1 c1<=3"),
            (bound(&[1, 5], false), bound(&[3, 2], true), "c1=1 c2>=5; c1>1 c1<3; c1=3 c2<=2"),
            (
                bound(&[1, 5, 8], true),
                bound(&[3, 2, 9], false),
                "c1=1 c2=5 c3>8; c1=1 c2>5; c1>1 c1<3; c1=3 c2<2; c1=3 c2=2 c3<9",
            ),
            (bound(&[1, 5, 8], false), bound(&[1, 5, 8], true), "c1=1 c2=5 c3=8"),
        ] {
            assert_eq!(said(&start, &end, &up), slices);
        }
    }

    #[test]
    fn descending_columns_turn_ends_around() {
        let mixed = [false, true];
        assert_eq!(said(&bound(&[1, 5], false), &bound(&[1], true), &mixed), "c1=1 c2<=5");
        assert_eq!(
            said(&bound(&[1, 5], true), &bound(&[3, 2], true), &mixed),
            "c1=1 c2<5; c1>1 c1<3; c1=3 c2>=2"
        );
        assert_eq!(said(&bound(&[9], true), &bound(&[4], true), &[true]), "c1>=4 c1<9");
    }

    /// All rows of two columns, and whether the slices have those that the range has.
    #[test]
    fn slices_have_the_rows_of_the_range() {
        let values = 0..4_u8;
        let mut bounds = Vec::new();
        for is_after in [false, true] {
            bounds.push(bound(&[], is_after));
            for one in values.clone() {
                bounds.push(bound(&[one], is_after));
                bounds.extend(values.clone().map(|other| bound(&[one, other], is_after)));
            }
        }
        for reversed in [[false, false], [true, false], [false, true], [true, true]] {
            // Where something is in the table's order.
            let rank = |at: usize, value: u8| if reversed[at] { 10 - value } else { value };
            let place = |bound: &Bound| {
                let mut place: Vec<u8> =
                    bound.values.iter().enumerate().map(|(at, value)| rank(at, value[0])).collect();
                place.resize(2, if bound.is_after { 99 } else { 0 });
                (place, bound.is_after)
            };
            for (start, end) in bounds.iter().flat_map(|one| bounds.iter().map(move |other| (one, other))) {
                if place(start) >= place(end) {
                    continue;
                }
                let made = match slices(start, end, &reversed) {
                    Ok(made) => made,
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corrupt);
                        continue;
                    }
                };
                for row in values.clone().flat_map(|one| values.clone().map(move |other| [one, other])) {
                    let ranks = alloc::vec![rank(0, row[0]), rank(1, row[1])];
                    let after_start =
                        place(start) < (ranks.clone(), true) && !(place(start).0 == ranks && start.is_after);
                    let before_end = place(end).0 > ranks || (place(end).0 == ranks && end.is_after);
                    let is_in = made.iter().filter(|(slice, bound)| has(slice, bound, &row)).count();
                    assert_eq!(is_in, usize::from(after_start && before_end), "{start:?} {end:?} {row:?}");
                }
            }
        }
    }

    fn has(slice: &Slice, bound: &[&[u8]], row: &[u8; 2]) -> bool {
        let mut bound = bound.iter().map(|value| value[0]);
        let prefix = usize_of_u32(slice.prefix);
        let is_prefix = row.iter().take(prefix).all(|value| bound.next() == Some(*value));
        let mut is_within = |edge: Edge, is_beyond: fn(u8, u8) -> bool| match edge {
            Edge::Open => true,
            Edge::Inclusive => {
                bound.next().is_some_and(|end| end == row[prefix] || is_beyond(end, row[prefix]))
            }
            Edge::Exclusive => bound.next().is_some_and(|end| is_beyond(end, row[prefix])),
        };
        is_prefix
            && is_within(slice.least, |end, value| end < value)
            && is_within(slice.greatest, |end, value| end > value)
    }
}
