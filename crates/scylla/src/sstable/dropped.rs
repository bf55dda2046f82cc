//! Cells of a column that was dropped once, and added again: those of before are not there any more.
//!
//! Servers keep the time at which a column was dropped, and skip its older cells wherever they read them (`DeserializationHelper.java` of
//! Cassandra, `mp_row_consumer` of ScyllaDB); compactions drop them.

use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;

use super::batch::{Cells, NO_TIMESTAMP, Sparse, Strings, Values, number_of};

/// Leaves out the cells, and the deletions of collections, with a write time at or before this one. `rows` has the write times of entries.
pub(super) fn leave_out_before(dropped_at: i64, cells: &mut Cells, rows: &[i64]) {
    cells.deletions = kept(&cells.deletions, |_, deletion| deletion.timestamp > dropped_at);
    let mut own = cells.timestamps.at.iter().zip(&cells.timestamps.values).peekable();
    let mut is_new: Vec<bool> = Vec::with_capacity(cells.len());
    for (number, entry) in cells.entries.iter().enumerate() {
        let written = own.next_if(|(at, _)| **at == number_of(number)).map(|(_, written)| *written);
        let of_row = || rows.get(usize_of_u32(*entry)).copied().unwrap_or(NO_TIMESTAMP);
        is_new.push(written.unwrap_or_else(of_row) > dropped_at);
    }
    if is_new.contains(&false) {
        *cells = some(cells, &is_new);
    }
}

/// Some of the cells.
fn some(cells: &Cells, is_kept: &[bool]) -> Cells {
    let mut count = 0;
    let numbers: Vec<u32> = is_kept
        .iter()
        .map(|is_kept| {
            let number = count;
            count += u32::from(*is_kept);
            number
        })
        .collect();
    let number = |at: u32| {
        let at = usize_of_u32(at);
        is_kept.get(at).filter(|is_kept| **is_kept).and_then(|_| numbers.get(at)).copied()
    };
    Cells {
        entries: chosen(&cells.entries, is_kept),
        values: match &cells.values {
            Values::None(_) => Values::None(usize_of_u32(count)),
            Values::One(values) => Values::One(chosen(values, is_kept)),
            Values::Four(values) => Values::Four(chosen(values, is_kept)),
            Values::Eight(values) => Values::Eight(chosen(values, is_kept)),
            Values::Sixteen(values) => Values::Sixteen(chosen(values, is_kept)),
            Values::Strings(strings) => Values::Strings(chosen_strings(strings, is_kept)),
        },
        paths: chosen_strings(&cells.paths, is_kept),
        timestamps: renumbered(&cells.timestamps, number),
        expiries: renumbered(&cells.expiries, number),
        tombstones: renumbered(&cells.tombstones, number),
        empties: cells.empties.iter().filter_map(|at| number(*at)).collect(),
        // By entry.
        deletions: cells.deletions.clone(),
    }
}

fn chosen<T: Copy>(values: &[T], is_kept: &[bool]) -> Vec<T> {
    values.iter().zip(is_kept).filter(|(_, is_kept)| **is_kept).map(|(value, _)| *value).collect()
}

fn chosen_strings(strings: &Strings, is_kept: &[bool]) -> Strings {
    let mut chosen = Strings::default();
    let kept = is_kept.iter().enumerate().filter(|(_, is_kept)| **is_kept);
    kept.filter_map(|(number, _)| strings.get(number)).for_each(|string| chosen.push(string));
    chosen
}

fn renumbered<T: Copy>(list: &Sparse<T>, number: impl Fn(u32) -> Option<u32>) -> Sparse<T> {
    let mut renumbered = Sparse::default();
    for (at, value) in list.at.iter().zip(&list.values) {
        if let Some(at) = number(*at) {
            renumbered.push(at, *value);
        }
    }
    renumbered
}

fn kept<T: Copy>(list: &Sparse<T>, is_kept: impl Fn(u32, &T) -> bool) -> Sparse<T> {
    let mut kept = Sparse::default();
    for (at, value) in list.at.iter().zip(&list.values).filter(|(at, value)| is_kept(**at, value)) {
        kept.push(*at, *value);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sstable::batch::{Deletion, Expiry};

    #[test]
    fn cells_of_before_are_left_out_with_all_that_is_theirs() {
        let sparse = |list: &[(u32, i64)]| {
            let mut sparse = Sparse::default();
            list.iter().for_each(|(at, value)| sparse.push(*at, *value));
            sparse
        };
        let strings = |list: &[&str]| {
            let mut strings = Strings::default();
            list.iter().for_each(|string| strings.push(string.as_bytes()));
            strings
        };
        let expiry = |ttl| Expiry { ttl, local_deletion: 9 };
        let deletion = |timestamp| Deletion { timestamp, local_deletion: 1 };
        // Rows of the times 10 and 30; the column was dropped at 20.
        let rows = [10, 30];
        let mut cells = Cells {
            entries: alloc::vec![0, 0, 1, 1],
            values: Values::Four(alloc::vec![1, 2, 3, 4]),
            paths: strings(&["a", "bb", "c", "dd"]),
            timestamps: sparse(&[(1, 21), (2, 20)]),
            expiries: Sparse {
                at: alloc::vec![0, 1, 2],
                values: alloc::vec![expiry(1), expiry(2), expiry(3)],
            },
            tombstones: Sparse { at: alloc::vec![2, 3], values: alloc::vec![5, 6] },
            empties: alloc::vec![0, 3],
            deletions: Sparse { at: alloc::vec![0, 1], values: alloc::vec![deletion(20), deletion(29)] },
        };
        leave_out_before(20, &mut cells, &rows);
        let left = Cells {
            entries: alloc::vec![0, 1],
            values: Values::Four(alloc::vec![2, 4]),
            paths: strings(&["bb", "dd"]),
            timestamps: sparse(&[(0, 21)]),
            expiries: Sparse { at: alloc::vec![0], values: alloc::vec![expiry(2)] },
            tombstones: Sparse { at: alloc::vec![1], values: alloc::vec![6] },
            empties: alloc::vec![1],
            deletions: Sparse { at: alloc::vec![1], values: alloc::vec![deletion(29)] },
        };
        assert_eq!(cells, left);
        leave_out_before(20, &mut cells, &rows);
        assert_eq!(cells, left);
    }
}
