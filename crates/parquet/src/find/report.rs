//! What a search used, and what came of it.

/// The structures that a search may use, beside the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Structures {
    /// The statistics of column chunks.
    pub statistics: bool,
    /// Bloom filters of column chunks.
    pub bloom: bool,
    /// The page index.
    pub index: bool,
    /// Bloom filters of pages.
    pub page_bloom: bool,
}

impl Default for Structures {
    fn default() -> Structures {
        Structures { statistics: true, bloom: true, index: true, page_bloom: true }
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
    /// Pages about which bounds in the page index decided, once for each test; chunks that have none are absent.
    pub index: Counts,
    /// Pages about which their Bloom filters decided, once for each test that asked them; chunks that have none are absent.
    pub page_bloom: Counts,
    /// Rows whose values were read and tested.
    pub tested: u64,
    /// Rows that were found.
    pub found: u64,
    /// Bytes that were supplied.
    pub bytes: u64,
    /// Pieces in which they were.
    pub reads: u64,
}

/// How often a structure helped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// It is not there.
    pub absent: u64,
    /// It did not decide.
    pub undecided: u64,
    /// It decided, so that no value had to be looked at.
    pub pruned: u64,
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

    fn numbers(&mut self) -> [&mut u64; 18] {
        let Report { row_groups, rows, tested, found, bytes, reads, .. } = self;
        let [a, b, c, d] = [&mut self.statistics, &mut self.bloom, &mut self.index, &mut self.page_bloom]
            .map(|counts| [&mut counts.absent, &mut counts.undecided, &mut counts.pruned]);
        let ([a1, a2, a3], [b1, b2, b3], [c1, c2, c3], [d1, d2, d3]) = (a, b, c, d);
        [row_groups, rows, a1, a2, a3, b1, b2, b3, c1, c2, c3, d1, d2, d3, tested, found, bytes, reads]
    }
}
