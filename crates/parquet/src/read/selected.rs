//! The rows that a column is to read of its chunk, and the pages that have some.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Error, Release, Result, release_all};
use marquetry_kernels::bits;

use crate::batch::RowSelection;
use crate::format::{OffsetIndex, PageLocation};

/// Pages that are looked at, at most, to find how far those reach that are wanted and follow each other.
const PAGES_AHEAD: usize = 64;
/// Ranges of wanted pages that are asked for early, at most.
const RANGES_AHEAD: usize = 16;

/// Rows that are looked at together, at most, where some of them are wanted.
pub(super) const MIXED_ROWS_MAX: usize = 1024;
/// Rows of a run which is worth a slice of its own, whatever is around it.
pub(super) const LONG_RUN_ROWS: u64 = 64;

/// A bit for each of the rows, or entries, that are looked at together.
pub(super) type MixedBits = [u8; MIXED_ROWS_MAX / 8];

/// Rows of which some are wanted: the first and the last are, and their bits say which others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mixed {
    pub(super) rows: usize,
    /// Those that are wanted, and the runs that they are in.
    pub(super) wanted: usize,
    pub(super) runs: usize,
}

/// What is wanted of a column chunk.
#[derive(Debug)]
pub(super) struct Selected {
    rows: Arc<RowSelection>,
    pages: Option<Arc<OffsetIndex>>,
    /// Rows of the chunk.
    chunk_rows: u64,
    /// The rows that were asked for last: from `from` on, the first that are wanted are `run`.
    from: u64,
    run: Range<u64>,
    /// The page that is being read, where it is known where pages are.
    page: usize,
    /// The rows that were [looked at](Selected::look) last.
    bits: Box<MixedBits>,
    /// Of a nested leaf: the row that was begun last is wanted.
    pub(super) takes_row: bool,
}

impl Release for Selected {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.rows, &mut self.pages], budget)
    }
}

impl Selected {
    /// These rows of a chunk of `chunk_rows`, whose pages are where `pages` says, if that is known.
    pub(super) fn new(rows: Arc<RowSelection>, pages: Option<Arc<OffsetIndex>>, chunk_rows: u64) -> Selected {
        let pages = pages.filter(|pages| !pages.pages.is_empty());
        Selected {
            rows,
            pages,
            chunk_rows,
            from: 0,
            run: 0..0,
            page: 0,
            bits: Box::new([0; MIXED_ROWS_MAX / 8]),
            takes_row: false,
        }
    }

    /// The first wanted rows that follow each other, at or behind `position`.
    pub(super) fn next(&mut self, position: u64) -> Option<Range<u64>> {
        if position < self.from || position >= self.run.end {
            self.from = position;
            self.run = self.rows.next_run(position).unwrap_or(u64::MAX..u64::MAX);
        }
        (self.run.start < u64::MAX).then(|| self.run.start.max(position)..self.run.end)
    }

    /// Looks at the rows from `position` on, which is wanted: up to the last wanted one of `rows`, or of [`MIXED_ROWS_MAX`].
    pub(super) fn look(&mut self, position: u64, rows: usize) -> Result<Mixed> {
        let rows = rows.min(MIXED_ROWS_MAX);
        self.bits.fill(0);
        self.rows.bits_of(position..position.saturating_add(u64_of(rows)), &mut self.bits[..])?;
        let (mut mixed, mut before) = (Mixed { rows: 0, wanted: 0, runs: 0 }, 0);
        for (at, word) in self.bits.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            // A run begins where a bit is set, and the one before is not.
            mixed.runs += usize_of_u32((word & !((word << 1) | before)).count_ones());
            mixed.wanted += usize_of_u32(word.count_ones());
            before = word >> 63;
            if word != 0 {
                mixed.rows = at * 64 + 64 - usize_of_u32(word.leading_zeros());
            }
        }
        Ok(mixed)
    }

    /// Sets the bits of those of the next `entries` entries of a nested leaf that are in a wanted row; the rows that begin are the first of
    /// those that were [looked at](Selected::look) last. How many of them are wanted.
    pub(super) fn keep_entries(
        &mut self,
        entries: usize,
        repetition: &[u8],
        keep: &mut MixedBits,
    ) -> Result<usize> {
        let too_many = |_| Error::internal("more entries than are looked at together");
        if repetition.is_empty() {
            bits::copy(&self.bits[..], 0, keep, 0, entries).map_err(too_many)?;
            if let Some(last) = entries.checked_sub(1) {
                self.takes_row = bits::get(&self.bits[..], last) == Some(true);
            }
            return bits::count_ones(keep, 0, entries).map_err(too_many);
        }
        let mut of_rows = [0u8; MIXED_ROWS_MAX + 1];
        bits::unpack_bool(&self.bits[..], 0, &mut of_rows[1..]).map_err(too_many)?;
        // The row that was begun before, then those that begin.
        of_rows[0] = u8::from(self.takes_row);
        let (mut row, mut takes) = (0, [0u8; MIXED_ROWS_MAX]);
        for (taken, &level) in takes.iter_mut().zip(repetition) {
            row += usize::from(level == 0);
            *taken = of_rows[row];
        }
        self.takes_row = of_rows[row] == 1;
        bits::from_levels(takes.get(..entries).unwrap_or(&takes), 1, keep, 0).map_err(too_many)?;
        Ok(of_rows[1..=row].iter().map(|&taken| usize::from(taken)).sum())
    }

    /// A bit for each of the rows that were [looked at](Selected::look) last: whether it is wanted.
    pub(super) fn bits(&self) -> &MixedBits {
        &self.bits
    }

    /// True where none of the `rows` rows from `position` on is wanted.
    pub(super) fn passes(&mut self, position: u64, rows: u64) -> bool {
        self.next(position).is_none_or(|run| run.start - position >= rows)
    }

    /// Where the first page is, where that is known.
    pub(super) fn first_page(&self) -> Option<PageLocation> {
        self.pages.as_ref()?.pages.first().copied()
    }

    /// Goes on to the page of the next wanted row from `position` on: its number, and where it is. `None` if that is not known, or no
    /// row is wanted any more.
    pub(super) fn seek(&mut self, position: u64) -> Option<(usize, PageLocation)> {
        let row = self.next(position)?.start;
        self.page = self.page_with(row);
        Some((self.page, *self.pages.as_ref()?.pages.get(self.page)?))
    }

    /// The row behind the last of the page that is being read, where it is known where pages are.
    pub(super) fn page_end(&self) -> Option<u64> {
        self.pages.as_ref().map(|_| self.rows_end(self.page))
    }

    /// Where those pages end that are wanted and follow each other, from this one on; about `bytes` of them.
    pub(super) fn wanted_end(&self, page: usize, bytes: u64) -> Option<u64> {
        self.wanted_run(page, bytes).map(|(_, range)| range.end)
    }

    /// Where those pages are that will be wanted after what ends at `wanted_end`: about `bytes` of them.
    pub(super) fn wanted_ahead(&self, wanted_end: u64, bytes: u64) -> Vec<Range<u64>> {
        let (mut ranges, mut asked, mut row) = (Vec::new(), 0, self.page_end().unwrap_or(u64::MAX));
        for _ in 0..RANGES_AHEAD {
            let Some(run) = self.rows.next_run(row).filter(|_| asked < bytes) else { break };
            let Some((last, range)) = self.wanted_run(self.page_with(run.start), bytes - asked) else {
                break;
            };
            // An index that lies could lead back.
            row = self.rows_end(last).max(run.end);
            if range.start >= wanted_end && !range.is_empty() {
                asked += range.end - range.start;
                ranges.push(range);
            }
        }
        ranges
    }

    /// The last of the pages that are wanted and follow each other, from this one on, and where they are.
    fn wanted_run(&self, page: usize, bytes: u64) -> Option<(usize, Range<u64>)> {
        let pages = &self.pages.as_ref()?.pages;
        let end = |page: &PageLocation| page.offset.saturating_add(page.compressed_bytes.into());
        let start = pages.get(page)?.offset;
        let (mut last, mut reached) = (page, end(pages.get(page)?));
        for (number, next) in pages.iter().enumerate().skip(page + 1).take(PAGES_AHEAD) {
            let run = self.rows.next_run(next.first_row);
            let is_wanted = run.is_some_and(|run| run.start < self.rows_end(number));
            if !is_wanted || next.offset != reached || reached - start >= bytes {
                break;
            }
            (last, reached) = (number, end(next));
        }
        Some((last, start..reached))
    }

    /// The page that has a row.
    fn page_with(&self, row: u64) -> usize {
        let Some(pages) = &self.pages else { return 0 };
        pages.pages.partition_point(|page| page.first_row <= row).saturating_sub(1)
    }

    /// The row behind the last of a page.
    fn rows_end(&self, page: usize) -> u64 {
        let next = self.pages.as_ref().and_then(|pages| pages.pages.get(page + 1));
        next.map_or(self.chunk_rows, |next| next.first_row)
    }
}
