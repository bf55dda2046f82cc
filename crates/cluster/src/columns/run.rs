//! Cells that follow each other: all that is kept of those that a table answers with.

use marquetry_base::Bytes;
use marquetry_base::cast::u64_of;

/// A cell: where it begins in the file, and its bytes.
pub(super) type Cell = (u64, Bytes);

/// The cells of a range, from the first that comes on, as long as each begins where the one before ends, up to the one that reaches the range's end.
///
/// They are looked at page by page. So whatever is in the table, no more is held of it than the range has, a cell, and a page.
#[derive(Debug)]
pub(super) struct Run {
    end: u64,
    cells: Vec<Cell>,
    is_over: bool,
}

impl Run {
    /// None yet, of a range that ends here.
    pub(super) fn until(end: u64) -> Run {
        Run { end, cells: Vec::new(), is_over: false }
    }

    /// Takes cells, in the order of the table. Nothing that comes after one that does not follow, or is empty, belongs to it.
    pub(super) fn add(&mut self, page: impl IntoIterator<Item = Cell>) {
        for (offset, bytes) in page {
            let follows = self.cells.last().is_none_or(|last| end_of(last) == offset);
            self.is_over |= !follows || bytes.is_empty();
            if self.is_over {
                return;
            }
            self.cells.push((offset, bytes));
            self.is_over = self.cells.last().is_some_and(|last| end_of(last) >= self.end);
        }
    }

    /// Whether another page cannot change it.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// The cells.
    pub(super) fn into_cells(self) -> Vec<Cell> {
        self.cells
    }
}

/// Where the cell after one begins.
pub(super) fn end_of((offset, bytes): &Cell) -> u64 {
    offset.saturating_add(u64_of(bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(of: &[(u64, usize)]) -> Vec<Cell> {
        of.iter().map(|(offset, length)| (*offset, Bytes::from(vec![0; *length]))).collect()
    }

    /// The places of what is kept of some pages, and how many of them are asked for.
    fn kept(end: u64, pages: &[&[(u64, usize)]]) -> (Vec<u64>, usize) {
        let (mut run, mut asked) = (Run::until(end), 0);
        for page in pages {
            run.add(cells(page));
            asked += 1;
            if run.is_over() {
                break;
            }
        }
        (run.into_cells().iter().map(|(offset, _)| *offset).collect(), asked)
    }

    #[test]
    fn cells_that_follow_each_other_are_kept() {
        assert_eq!(
            kept(40, &[&[(0, 10), (10, 10)], &[(20, 10)], &[(30, 10)], &[]]),
            (vec![0, 10, 20, 30], 3)
        );
        // The first may begin after the range's start; the last may end after its end.
        assert_eq!(kept(20, &[&[(5, 10), (15, 10), (25, 10)], &[(35, 10)]]), (vec![5, 15], 1));
        assert_eq!(kept(20, &[&[], &[(5, 10)], &[]]), (vec![5], 3));
    }

    /// Cells of some MiB at 0, 1, 2 …, of which a head says that they are a map: the second is the last that is looked at.
    #[test]
    fn what_does_not_follow_is_not_kept() {
        let overlapping: Vec<(u64, usize)> = (0..16).map(|offset| (offset, 100)).collect();
        assert_eq!(kept(1 << 40, &[&overlapping[..], &overlapping[..]]), (vec![0], 1));
        assert_eq!(kept(1 << 40, &[&[(0, 10)], &[(11, 10)], &[(21, 10)]]), (vec![0], 2));
        assert_eq!(kept(1 << 40, &[&[(0, 10), (10, 0)], &[(10, 10)]]), (vec![0], 1));
        assert_eq!(kept(1 << 40, &[&[(7, 0)], &[(8, 10)]]), (vec![], 1));
        // Nothing follows the last that there can be.
        assert_eq!(kept(u64::MAX, &[&[(u64::MAX - 1, 10), (u64::MAX, 10)]]), (vec![u64::MAX - 1], 1));
    }
}
