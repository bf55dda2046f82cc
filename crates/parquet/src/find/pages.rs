//! The pages of a column chunk that can have rows which pass a test.

use alloc::sync::Arc;
use core::cmp::Ordering;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Price, Release, Result, release_all};

use crate::batch::RowSelection;
use crate::format::{ColumnIndex, OffsetIndex};
use crate::prune::{Accepts, BOUND_BYTES_MAX, Bound, LeafOrder, NAN_KEY, Order, Ranges, Test, Verdict};
use crate::read::{PageBloom, PageSet};
use crate::schema::Schema;

/// The price of judging a page by its bounds; of long ones, by their bytes as well.
const JUDGE_PRICE: Price = Price { kib: 400, kilovalue: 60 << 10 };
/// Bytes of a bound that is not long, and of long bounds that are looked at together.
const SHORT_BYTES: usize = 64;
const LONG_BYTES_MAX: usize = 64 << 10;
/// Bytes of a page's long bounds beyond which pages are not searched, but judged one after the other: a search is done in one go.
const SEARCHED_BYTES_MAX: usize = 4 << 10;
/// What a search among the pages costs.
const SEARCH_UNITS: u64 = 1_000;
/// Pages that are judged before the budget is looked at again, and what it costs to see which of them a Bloom filter leaves.
const JUDGED_AT_ONCE: usize = 256;
const LOOK_UNITS: u64 = 500;
/// Bytes of the Bloom filters of pages that are read for a value, at most: of more pages they are not asked.
const ROW_BYTES_MAX: u64 = 4 << 20;

/// The page index of a column chunk, and what was found out about it.
#[derive(Debug)]
pub(super) struct ChunkPages {
    pub(super) offset_index: Arc<OffsetIndex>,
    column_index: Option<ColumnIndex>,
    order: LeafOrder,
    group_rows: u64,
    /// How the bounds ascend: all pages have both. The index may claim what is not so.
    sorted: Option<Sorted>,
    /// Pages whose order was checked.
    checked: usize,
    /// Bytes of the index in the file: bounds share them.
    encoded_bytes: usize,
    /// The Bloom filters of the pages, if there are any.
    bloom: Option<PageBloom>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sorted {
    Up,
    Down,
}

impl ChunkPages {
    pub(super) fn new(
        offset_index: OffsetIndex,
        column_index: Option<ColumnIndex>,
        order: LeafOrder,
        group_rows: u64,
        encoded_bytes: usize,
    ) -> ChunkPages {
        use crate::format::BoundaryOrder::{Ascending, Descending};
        let sorted = column_index.as_ref().and_then(|index| match index.boundary_order {
            Ascending => Some(Sorted::Up),
            Descending => Some(Sorted::Down),
            _ => None,
        });
        ChunkPages {
            offset_index: Arc::new(offset_index),
            column_index,
            order,
            group_rows,
            sorted,
            checked: 0,
            encoded_bytes,
            bloom: None,
        }
    }

    /// The same with the Bloom filters of its pages, if they are of as many, and not too many.
    pub(super) fn with_bloom(self, bloom: Option<PageBloom>) -> ChunkPages {
        let pages = self.len();
        let is_useful = |bloom: &PageBloom| bloom.pages() == pages && bloom.row_bytes() <= ROW_BYTES_MAX;
        ChunkPages { bloom: bloom.filter(is_useful), ..self }
    }

    /// The Bloom filters of its pages.
    pub(super) fn bloom(&self) -> Option<PageBloom> {
        self.bloom
    }

    /// Pages.
    pub(super) fn len(&self) -> usize {
        self.offset_index.pages.len()
    }

    /// Whether it has bounds.
    pub(super) fn has_bounds(&self) -> bool {
        self.column_index.is_some()
    }

    /// Approximate bytes that it takes.
    pub(super) fn held(&self) -> usize {
        // Two bounds of a page, with what they are kept in, and its place.
        self.len().saturating_mul(96).saturating_add(self.encoded_bytes)
    }

    /// The rows of a page.
    fn rows(&self, page: usize) -> Range<u64> {
        let pages = &self.offset_index.pages;
        let first = pages.get(page).map_or(self.group_rows, |page| page.first_row);
        let end = pages.get(page + 1).map_or(self.group_rows, |page| page.first_row);
        first..end.max(first)
    }

    /// Bytes from the first of these pages to the last.
    fn bytes(&self, pages: &Range<usize>) -> u64 {
        let pages = self.offset_index.pages.get(pages.start).zip(
            pages
                .end
                .checked_sub(1)
                .filter(|last| *last >= pages.start)
                .and_then(|last| self.offset_index.pages.get(last)),
        );
        pages.map_or(0, |(first, last)| {
            (last.offset.saturating_add(last.compressed_bytes.into())).saturating_sub(first.offset)
        })
    }

    /// Checks that the bounds are sorted, where the index says so. False if the budget is spent first.
    pub(super) fn check(&mut self, budget: &mut Budget<'_>) -> bool {
        let Some(index) = &self.column_index else { return true };
        while let Some(sorted) = self.sorted
            && self.checked < index.pages()
        {
            let (end, bytes) = at_once(index, self.checked..index.pages());
            budget.charge(JUDGE_PRICE, bytes, end - self.checked);
            let is_sorted = (self.checked..end).all(|page| {
                if long_bytes(index, page) > SEARCHED_BYTES_MAX {
                    return false;
                }
                let known = self.order.of_page(index, page);
                let (Some(min), Some(max), Some(order)) = (known.min, known.max, self.order.order()) else {
                    return false;
                };
                let Some(before) = page.checked_sub(1).map(|before| self.order.of_page(index, before)) else {
                    return true;
                };
                let (before, after) = match sorted {
                    Sorted::Up => ((before.min, before.max), (Some(min), Some(max))),
                    Sorted::Down => ((Some(min), Some(max)), (before.min, before.max)),
                };
                let is_up = |before: Option<Bound<'_>>, after: Option<Bound<'_>>| {
                    let compared = before
                        .zip(after)
                        .and_then(|(before, after)| order.compare(before.value, after.value));
                    compared.is_some_and(Ordering::is_le)
                };
                is_up(before.0, after.0) && is_up(before.1, after.1)
            });
            self.checked = end;
            if !is_sorted {
                self.sorted = None;
            }
            if budget.is_spent() && self.sorted.is_some() && self.checked < index.pages() {
                return false;
            }
        }
        true
    }

    /// The pages, once they are [checked](ChunkPages::check), that can have a value in the ranges: where bounds are sorted, they are between two that are
    /// searched for. Adds the bytes of long ones that were looked at.
    fn candidates(
        &self,
        index: &ColumnIndex,
        ranges: &Ranges,
        order: Order,
        searched: &core::cell::Cell<usize>,
    ) -> Range<usize> {
        let place = |page: usize| {
            searched.set(searched.get() + long_bytes(index, page));
            ranges.place(&self.order.of_page(index, page), order)
        };
        let (before, after) = match self.sorted {
            None => return 0..index.pages(),
            Some(Sorted::Up) => (Ordering::Less, Ordering::Greater),
            Some(Sorted::Down) => (Ordering::Greater, Ordering::Less),
        };
        let first = partition_point(0..index.pages(), |page| place(page) == before);
        first..partition_point(first..index.pages(), |page| place(page) != after)
    }
}

impl Release for ChunkPages {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.column_index, &mut self.offset_index], budget)
    }
}

/// The end of the pages that are judged before the budget is looked at again, one at least, and the bytes of their long bounds.
fn at_once(index: &ColumnIndex, pages: Range<usize>) -> (usize, usize) {
    let (mut end, mut bytes) = (pages.start, 0);
    while end < pages.end && end - pages.start < JUDGED_AT_ONCE && bytes < LONG_BYTES_MAX {
        bytes += long_bytes(index, end);
        end += 1;
    }
    (end, bytes)
}

/// Bytes of a page's bounds beyond those of short ones. (The longest are not looked at.)
fn long_bytes(index: &ColumnIndex, page: usize) -> usize {
    let beyond = |bound: &[u8]| bound.len().min(BOUND_BYTES_MAX).saturating_sub(SHORT_BYTES);
    beyond(index.min_values.get(page)) + beyond(index.max_values.get(page))
}

/// The first number for which something does not hold that holds for all before.
fn partition_point(numbers: Range<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let Range { start: mut low, end: mut high } = numbers;
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Collects the rows of pages that can have a row which passes a test.
#[derive(Debug, Default)]
pub(super) struct Judging {
    /// The pages that are still to be judged, once they are known.
    pages: Option<Range<usize>>,
    rows: RowSelection,
    /// Pages that are left out: by their bounds, and by their Bloom filters.
    pub(super) pruned: u64,
    pub(super) pruned_by_bloom: u64,
}

/// What came of a step.
pub(super) enum Judgement {
    /// The budget is spent.
    Yield,
    /// The Bloom filters of the pages should be asked first: judge again with their answer.
    Ask(PageBloom),
    /// The rows.
    Rows(RowSelection),
}

/// What the Bloom filters of pages say about a test.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked<'a> {
    /// They are not to be asked, or say nothing.
    Never,
    /// They were not asked: it takes so many hashes.
    NotYet(usize),
    /// The pages that they leave.
    Pages(&'a PageSet),
}

impl Judging {
    /// Judges pages, until the budget is spent.
    pub(super) fn step(
        &mut self,
        (test, asked): (&Test, Asked<'_>),
        chunk: &ChunkPages,
        schema: &Schema,
        budget: &mut Budget<'_>,
    ) -> Result<Judgement> {
        let index = chunk.column_index.as_ref();
        let is_flat = schema.leaves().get(test.leaf).is_some_and(|leaf| leaf.repetition_max == 0);
        let pages = match &mut self.pages {
            Some(pages) => pages,
            None => {
                budget.charge_units(SEARCH_UNITS);
                let searched = core::cell::Cell::new(0);
                let found = match (index, &test.accepts, chunk.order.order()) {
                    // NaNs are not between bounds, and keys of INT96 need not be in the order of theirs.
                    (Some(index), Accepts::Values(ranges), Some(order))
                        if order != Order::Int96
                            && !(order.is_floating() && ranges.has_key(NAN_KEY))
                            && is_flat =>
                    {
                        chunk.candidates(index, ranges, order, &searched)
                    }
                    _ => 0..chunk.len(),
                };
                budget.charge(JUDGE_PRICE, searched.get(), 0);
                // A few pages are less to read than what the filters of all have to say.
                if let (Asked::NotYet(hashes), Some(bloom)) = (asked, chunk.bloom)
                    && chunk.bytes(&found)
                        > bloom.row_bytes().saturating_mul(u64_of(hashes).min(bloom.blocks().into()))
                {
                    return Ok(Judgement::Ask(bloom));
                }
                self.pruned = u64_of(chunk.len() - found.len());
                self.pages.insert(found)
            }
        };
        while pages.start < pages.end {
            let (end, bytes) = match index {
                Some(index) => at_once(index, pages.clone()),
                None => (pages.end.min(pages.start + JUDGED_AT_ONCE), 0),
            };
            let mut judged = 0;
            for page in core::mem::replace(&mut pages.start, end)..end {
                if matches!(asked, Asked::Pages(left) if !left.contains(page)) {
                    self.pruned_by_bloom += 1;
                    continue;
                }
                judged += 1;
                let verdict = match index {
                    Some(index) => {
                        let mut known = chunk.order.of_page(index, page);
                        let rows = chunk.rows(page);
                        let has_values = known.nulls.is_some_and(|nulls| nulls < rows.end - rows.start);
                        // A page of nothing but nulls counts all of its rows; in lists, some writers count fewer.
                        known.is_only_nulls &= !(is_flat && has_values);
                        test.judge(&known, &chunk.order, schema)
                    }
                    None => Verdict::Some,
                };
                match verdict {
                    Verdict::None => self.pruned += 1,
                    _ => self.rows.push(chunk.rows(page), budget)?,
                }
            }
            budget.charge_units(LOOK_UNITS);
            budget.charge(JUDGE_PRICE, bytes, judged);
            if budget.is_spent() && pages.start < pages.end {
                return Ok(Judgement::Yield);
            }
        }
        Ok(Judgement::Rows(core::mem::take(&mut self.rows)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{BoundaryOrder, ColumnOrder};
    use crate::schema::PhysicalType;
    use alloc::vec::Vec;

    /// Bounds that differ only in their last bytes: a search among long ones would be one step.
    #[test]
    fn long_bounds_are_paid_by_the_byte_and_not_searched() {
        const PAGES: usize = 200;
        for (length, is_searched) in [(8, true), (500, true), (20_000, false)] {
            let bound = |page: usize| -> Vec<u8> {
                let mut bound = alloc::vec![b'x'; length];
                bound[length - 1] = page.to_le_bytes()[0];
                bound
            };
            let index = ColumnIndex {
                null_pages: (0..PAGES).map(|_| false).collect(),
                min_values: (0..PAGES).map(bound).collect(),
                max_values: (0..PAGES).map(bound).collect(),
                boundary_order: BoundaryOrder::Ascending,
                ..ColumnIndex::default()
            };
            let (end, bytes) = at_once(&index, 0..PAGES);
            assert!(end > 0 && bytes <= LONG_BYTES_MAX + 2 * length, "{bytes} bytes of {end} pages");
            assert_eq!(bytes, end * 2 * length.saturating_sub(SHORT_BYTES));
            let order = LeafOrder::new(PhysicalType::ByteArray, None, Some(ColumnOrder::TypeDefined), false);
            let mut pages = ChunkPages::new(OffsetIndex::default(), Some(index), order, 1000, 0);
            let mut spent = 0;
            loop {
                let mut budget = Budget::new(0);
                let is_checked = pages.check(&mut budget);
                assert!(budget.spent() <= JUDGE_PRICE.of(LONG_BYTES_MAX + 2 * length, JUDGED_AT_ONCE));
                spent += budget.spent();
                if is_checked {
                    break;
                }
            }
            assert_eq!(pages.sorted.is_some(), is_searched, "{length}");
            if is_searched {
                let long = length.saturating_sub(SHORT_BYTES);
                assert!(spent >= JUDGE_PRICE.of(PAGES * 2 * long, PAGES), "{spent} units");
            }
        }
    }
}
