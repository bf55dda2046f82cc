//! What a search used, and what came of it.

use crate::prune::Counts;

/// The structures that a search may use, beside the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Structures {
    /// The statistics of column chunks, and those in the headers of pages.
    pub statistics: bool,
    /// Bloom filters of column chunks.
    pub bloom: bool,
    /// Dictionaries, of chunks that have nothing but dictionary-encoded pages.
    pub dictionary: bool,
    /// The page index.
    pub index: bool,
    /// Bloom filters of pages.
    pub page_bloom: bool,
}

impl Default for Structures {
    fn default() -> Structures {
        Structures { statistics: true, bloom: true, dictionary: true, index: true, page_bloom: true }
    }
}

/// What a search did so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Row groups that it has come to, and their rows.
    pub row_groups: u64,
    /// See [`Report::row_groups`].
    pub rows: u64,
    /// Row groups about which the statistics of chunks decided.
    pub statistics: Counts,
    /// Row groups about which Bloom filters decided.
    pub bloom: Counts,
    /// Row groups about which dictionaries decided; tests of chunks that have none which says what all values are, or one that is too
    /// large, are absent.
    pub dictionary: Counts,
    /// Pages about which bounds in the page index decided, once for each test; chunks that have none are absent.
    pub index: Counts,
    /// Pages about which their Bloom filters decided, once for each test that asked them; chunks that have none are absent.
    pub page_bloom: Counts,
    /// Pages about which the statistics in their headers decided, where chunks have no bounds in a page index.
    pub page_statistics: Counts,
    /// Rows whose values were read and tested. Those of pages that were left out by their headers count, too.
    pub tested: u64,
    /// Rows that were found.
    pub found: u64,
    /// Bytes that were supplied.
    pub bytes: u64,
    /// Pieces in which they were.
    pub reads: u64,
}

impl Report {
    /// Rows that were read and tested, and those of them that were found.
    pub fn of_tested(tested: u64, found: u64) -> Report {
        Report { rows: tested, tested, found, ..Report::default() }
    }

    /// Adds what another part of a search did.
    pub fn add(&mut self, other: &Report) {
        for (sum, more) in self.numbers().into_iter().zip(other.clone().numbers()) {
            *sum = sum.saturating_add(*more);
        }
    }

    /// What was done since it was as `before`.
    #[must_use]
    pub fn since(&self, before: &Report) -> Report {
        let mut since = *self;
        for (more, known) in since.numbers().into_iter().zip(before.clone().numbers()) {
            *more = more.saturating_sub(*known);
        }
        since
    }

    /// Its numbers, in an order that does not change, for a report that crosses from one program to another.
    pub fn to_numbers(mut self) -> [u64; 30] {
        self.numbers().map(|number| *number)
    }

    /// The report with these numbers. Those that are missing are 0, and more are left out.
    pub fn of_numbers(numbers: &[u64]) -> Report {
        let mut report = Report::default();
        for (number, known) in report.numbers().into_iter().zip(numbers) {
            *number = *known;
        }
        report
    }

    fn numbers(&mut self) -> [&mut u64; 30] {
        let Report { row_groups, rows, tested, found, bytes, reads, .. } = self;
        let [a, b, c, d, e, f] = [
            &mut self.statistics,
            &mut self.bloom,
            &mut self.dictionary,
            &mut self.index,
            &mut self.page_bloom,
            &mut self.page_statistics,
        ]
        .map(|Counts { absent, undecided, pruned, distrusted }| [absent, undecided, pruned, distrusted]);
        let ([a1, a2, a3, a4], [b1, b2, b3, b4], [c1, c2, c3, c4]) = (a, b, c);
        let ([d1, d2, d3, d4], [e1, e2, e3, e4], [f1, f2, f3, f4]) = (d, e, f);
        [
            row_groups, rows, a1, a2, a3, a4, b1, b2, b3, b4, c1, c2, c3, c4, d1, d2, d3, d4, e1, e2, e3, e4,
            f1, f2, f3, f4, tested, found, bytes, reads,
        ]
    }
}
