//! Selections of a row group's rows.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bitmap, Budget, Error, Release, Result, Segmented};
use marquetry_kernels::bits;

/// Rows of a block. Ranges of a block are pairs of `u16`.
const BLOCK_ROWS: u64 = 1 << 16;
/// The same, as a length in memory.
const BLOCK_BITS: usize = 1 << 16;
/// Bytes of a block's bitmap.
const BLOCK_BYTES: usize = BLOCK_BITS / 8;
/// Maximum ranges of a block: with more, its bitmap is smaller.
const RANGES_MAX: usize = BLOCK_BYTES / size_of::<[u16; 2]>();
/// Maximum rows: the format's own numbers are signed.
const ROWS_MAX: u64 = i64::MAX.cast_unsigned();
/// The cost of adding a range, of converting a block to or from a bitmap, and of combining one block of each of two
/// selections.
const RANGE_UNITS: u64 = 30;
const TURN_UNITS: u64 = 8_000;
const COMBINE_UNITS: u64 = 20_000;

/// The selected rows of a row group, counted from its first.
///
/// They are kept in blocks of 65,536 rows, each as ranges or as a bitmap, whichever is smaller. Blocks without a row
/// take no memory, and any number of consecutive full blocks takes as much as one. So a selection of a few rows among
/// billions is small, and one of every other row takes a bit per row.
///
/// Rows are added in order, by [`push`](RowSelection::push) and [`push_bits`](RowSelection::push_bits); two selections are combined in
/// slices by a [`Combining`]. All of them charge a budget.
///
/// ```
/// # fn main() -> marquetry_base::Result<()> {
/// use marquetry_base::Budget;
/// use marquetry_parquet::batch::{Combine, RowSelection};
///
/// let mut budget = Budget::unlimited();
/// let mut cheap = RowSelection::none();
/// cheap.push(10..20, &mut budget)?;
/// cheap.push(1_000_000..2_000_000, &mut budget)?;
/// let recent = RowSelection::of(15..1_000_100)?;
///
/// let mut both = cheap.combine(recent, Combine::Intersection);
/// let both = loop {
///     if let Some(both) = both.step(&mut Budget::default())? {
///         break both;
///     }
/// };
/// assert_eq!(both.rows(), 5 + 100);
/// assert_eq!(both.next_run(0), Some(15..20));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct RowSelection {
    /// In order; none is empty.
    blocks: Segmented<Block>,
    rows: u64,
    /// Rows before it can no longer be added.
    end: u64,
}

/// Rows that begin at a multiple of [`BLOCK_ROWS`].
#[derive(Debug, Clone)]
struct Block {
    first: u64,
    rows: Rows,
}

#[derive(Debug, Clone)]
enum Rows {
    /// This many consecutive blocks, all of whose rows are selected.
    All(u64),
    /// Ranges: the first and the last row of each. They are in order, and do not touch.
    Ranges(Vec<[u16; 2]>),
    /// A bit a row.
    Bits(Box<[u8]>),
}

/// How two selections are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Combine {
    /// Rows of either.
    Union,
    /// Rows of both.
    Intersection,
    /// Rows of the first that the second does not have.
    Difference,
}

impl Release for RowSelection {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        (self.rows, self.end) = (0, 0);
        self.blocks.release(budget)
    }
}

impl Release for Block {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match &mut self.rows {
            Rows::All(_) => true,
            Rows::Ranges(ranges) => ranges.release(budget),
            Rows::Bits(bits) => core::mem::take(bits).into_vec().release(budget),
        }
    }
}

impl RowSelection {
    /// No row.
    pub fn none() -> RowSelection {
        RowSelection::default()
    }

    /// One range of rows.
    ///
    /// # Errors
    ///
    /// `Misuse` for a range that ends before it begins.
    pub fn of(rows: Range<u64>) -> Result<RowSelection> {
        let mut selection = RowSelection::none();
        selection.push(rows, &mut Budget::unlimited())?;
        Ok(selection)
    }

    /// The number of selected rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// True if no row is selected.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes that it takes, approximately.
    pub fn held(&self) -> usize {
        self.blocks.len() * (size_of::<Block>() + BLOCK_BYTES / 2)
    }

    /// Adds a range of rows after all others. The work is bounded, whatever the range.
    ///
    /// # Errors
    ///
    /// `Misuse` for a range that begins before the end of what was added, or ends before it begins.
    pub fn push(&mut self, rows: Range<u64>, budget: &mut Budget<'_>) -> Result<()> {
        self.check_order(&rows)?;
        budget.charge_units(RANGE_UNITS);
        let mut at = rows.start;
        while at < rows.end {
            let first = at - at % BLOCK_ROWS;
            let whole = rows.end - rows.end % BLOCK_ROWS;
            if at == first && at < whole {
                self.push_all(first, (whole - first) / BLOCK_ROWS);
                at = whole;
            } else {
                let end = rows.end.min(first + BLOCK_ROWS);
                self.push_part(first, at - first..end - first, budget);
                at = end;
            }
        }
        self.rows += rows.end - rows.start;
        self.end = rows.end;
        Ok(())
    }

    /// Adds the rows from `first` on whose bits are set. The work grows with the bits: pass at most 65,536 at a time if
    /// steps must be short.
    ///
    /// # Errors
    ///
    /// `Misuse` if `first` is before the end of what was added, or the bits reach beyond what a `u64` counts.
    pub fn push_bits(&mut self, first: u64, bitmap: &Bitmap, budget: &mut Budget<'_>) -> Result<()> {
        let end = first.checked_add(u64_of(bitmap.len())).ok_or_else(beyond)?;
        self.check_order(&(first..end))?;
        self.add_bits(first, bitmap.bytes(), bitmap.offset()..bitmap.offset() + bitmap.len(), budget)?;
        self.end = end;
        Ok(())
    }

    /// Whether a row is selected.
    pub fn contains(&self, row: u64) -> bool {
        self.next_run(row).is_some_and(|run| run.start == row)
    }

    /// The next run of selected rows at or after `from`. The next run may follow immediately: runs end at the end of a
    /// block at the latest.
    pub fn next_run(&self, from: u64) -> Option<Range<u64>> {
        let at = self.blocks.partition_point(|block| block.end() <= from);
        let found = self.blocks.get(at)?.next_run(from);
        // None is empty, so the next one has a run.
        found.or_else(|| self.blocks.get(at + 1)?.next_run(from))
    }

    /// The number of selected rows before `row`. The work is proportional to the blocks.
    pub fn rows_before(&self, row: u64) -> u64 {
        let whole = self.blocks.partition_point(|block| block.end() <= row);
        let before: u64 = self.blocks.iter().take(whole).map(Block::count).sum();
        before + self.blocks.get(whole).map_or(0, |block| block.count_before(row))
    }

    /// The maximum cost of [`after`](RowSelection::after), which counts words of bitmaps and the rows of the last
    /// block.
    pub(crate) fn units_of(rows: usize) -> u64 {
        u64_of(rows / 2) + TURN_UNITS
    }

    /// The row after the next `count` selected rows from `from` on; the end of all if there are fewer.
    pub(crate) fn after(&self, from: u64, mut count: u64) -> u64 {
        let mut at = from;
        let start = self.blocks.partition_point(|block| block.end() <= from);
        for block in self.blocks.iter_from(start) {
            if count == 0 {
                break;
            }
            let here = block.count() - block.count_before(at);
            if here <= count {
                (at, count) = (block.end(), count - here);
                continue;
            }
            while let Some(run) = block.next_run(at).filter(|_| count > 0) {
                let taken = count.min(run.end - run.start);
                (at, count) = (run.start + taken, count - taken);
            }
        }
        at
    }

    /// Sets the bit of each wanted row of `rows`, whose first one has bit 0 of `out`: bits enough for all, none of them set.
    pub(crate) fn bits_of(&self, rows: Range<u64>, out: &mut [u8]) -> Result<()> {
        let start = self.blocks.partition_point(|block| block.end() <= rows.start);
        for block in self.blocks.iter_from(start).take_while(|block| block.first < rows.end) {
            let part = rows.start.max(block.first)..rows.end.min(block.end());
            let length = |rows: u64| usize_of(rows).ok_or_else(beyond);
            match &block.rows {
                Rows::Bits(bits) => {
                    let (from, to) = (length(part.start - block.first)?, length(part.start - rows.start)?);
                    bits::copy(bits, from, out, to, length(part.end - part.start)?).map_err(|_| beyond())?;
                }
                Rows::All(_) | Rows::Ranges(_) => {
                    let mut at = part.start;
                    while let Some(run) = block.next_run(at).filter(|run| run.start < part.end) {
                        at = run.end.min(part.end);
                        let (to, count) = (length(run.start - rows.start)?, length(at - run.start)?);
                        bits::fill(out, to, count, true).map_err(|_| beyond())?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Where the last selected row ends.
    pub fn end(&self) -> u64 {
        let last = self.blocks.last();
        last.and_then(|block| match &block.rows {
            Rows::All(_) => Some(block.end()),
            Rows::Ranges(ranges) => ranges.last().map(|[_, last]| block.first + u64::from(*last) + 1),
            Rows::Bits(bits) => {
                let byte = bits.iter().rposition(|&byte| byte != 0)?;
                Some(block.first + u64_of(byte * 8) + u64::from(8 - bits[byte].leading_zeros()))
            }
        })
        .unwrap_or(0)
    }

    /// Starts to combine it with another.
    pub fn combine(self, other: RowSelection, how: Combine) -> Combining {
        Combining { sides: [self, other], how, at: 0, made: RowSelection::none() }
    }

    fn check_order(&self, rows: &Range<u64>) -> Result<()> {
        if rows.start < self.end || rows.end < rows.start || rows.end > ROWS_MAX {
            let message = format!("the rows {rows:?} selected after those before {}", self.end);
            return Err(Error::misuse(message));
        }
        Ok(())
    }

    fn push_all(&mut self, first: u64, blocks: u64) {
        match self.blocks.last_mut() {
            Some(Block { first: before, rows: Rows::All(count) })
                if *before + *count * BLOCK_ROWS == first =>
            {
                *count += blocks;
            }
            _ => self.blocks.push(Block { first, rows: Rows::All(blocks) }),
        }
    }

    /// Adds part of a block, less than all of it.
    fn push_part(&mut self, first: u64, part: Range<u64>, budget: &mut Budget<'_>) {
        let row = |row: u64| u16::try_from(row).unwrap_or(u16::MAX);
        let range = [row(part.start), row(part.end - 1)];
        if self.blocks.last().is_none_or(|block| block.first != first) {
            self.blocks.push(Block { first, rows: Rows::Ranges(Vec::new()) });
        }
        let Some(block) = self.blocks.last_mut() else { return };
        match &mut block.rows {
            Rows::Ranges(ranges) => match ranges.last_mut() {
                Some([_, last]) if part.start > 0 && *last == row(part.start - 1) => *last = range[1],
                _ => ranges.push(range),
            },
            Rows::Bits(bits) => fill(bits, range),
            Rows::All(_) => {}
        }
        match &block.rows {
            Rows::Ranges(ranges) if ranges[..] == [[0, u16::MAX]] => {
                self.blocks.pop();
                self.push_all(first, 1);
            }
            Rows::Ranges(ranges) if ranges.len() > RANGES_MAX => {
                let bits = bits_of(ranges);
                block.rows = Rows::Bits(bits);
                budget.charge_units(TURN_UNITS);
            }
            _ => {}
        }
    }

    /// Adds bits of a bitmap, block by block.
    fn add_bits(
        &mut self,
        first: u64,
        from: &[u8],
        range: Range<usize>,
        budget: &mut Budget<'_>,
    ) -> Result<()> {
        let (mut row, mut bit) = (first, range.start);
        while bit < range.end {
            let block = row - row % BLOCK_ROWS;
            let left = usize_of(block + BLOCK_ROWS - row).unwrap_or(BLOCK_BITS);
            let count = left.min(range.end - bit);
            let ones = bits::count_ones(from, bit, count).map_err(|_| beyond())?;
            if ones > 0 {
                if self.blocks.last().is_none_or(|last| last.first != block) {
                    self.blocks.push(Block { first: block, rows: Rows::Ranges(Vec::new()) });
                }
                let at = usize_of(row - block).unwrap_or(0);
                if let Some(last) = self.blocks.last_mut() {
                    let mut bits = match core::mem::replace(&mut last.rows, Rows::All(0)) {
                        Rows::Bits(bits) => bits,
                        Rows::Ranges(ranges) => bits_of(&ranges),
                        Rows::All(_) => return Err(Error::internal("rows added to a whole block")),
                    };
                    bits::copy(from, bit, &mut bits, at, count).map_err(|_| beyond())?;
                    last.rows = Rows::Bits(bits);
                }
                budget.charge_units(TURN_UNITS);
                self.rows += u64_of(ones);
                self.shrink(budget);
            }
            (row, bit) = (row + u64_of(count), bit + count);
        }
        Ok(())
    }

    /// Converts the last block's bitmap to ranges, if they are smaller.
    fn shrink(&mut self, budget: &mut Budget<'_>) {
        let Some(Block { first, rows: Rows::Bits(bits) }) = self.blocks.last_mut() else { return };
        // A range begins where a bit is set, and the one before is not.
        let (mut before, mut ranges) = (0, 0);
        for word in words(bits) {
            ranges += (word & !((word << 1) | before)).count_ones();
            before = word >> 63;
        }
        if usize_of(ranges.into()).is_none_or(|ranges| ranges > RANGES_MAX) {
            return;
        }
        budget.charge_units(TURN_UNITS);
        let (first, mut list, mut at) = (*first, Vec::new(), 0);
        while let Some((start, end)) = next_bits(bits, at) {
            let row = |row: usize| u16::try_from(row).unwrap_or(u16::MAX);
            list.push([row(start), row(end - 1)]);
            at = end;
        }
        if list[..] == [[0, u16::MAX]] {
            self.blocks.pop();
            self.push_all(first, 1);
        } else if let Some(block) = self.blocks.last_mut() {
            block.rows = Rows::Ranges(list);
        }
    }
}

impl Block {
    fn end(&self) -> u64 {
        match self.rows {
            Rows::All(blocks) => self.first + blocks * BLOCK_ROWS,
            _ => self.first + BLOCK_ROWS,
        }
    }

    fn count(&self) -> u64 {
        self.count_before(self.end())
    }

    /// Its rows before one that is not beyond its end.
    fn count_before(&self, row: u64) -> u64 {
        let before = row.saturating_sub(self.first);
        match &self.rows {
            Rows::All(_) => before,
            Rows::Ranges(ranges) => {
                let whole = ranges.partition_point(|[_, last]| u64::from(*last) < before);
                let length = |[first, last]: &[u16; 2]| u64::from(*last) - u64::from(*first) + 1;
                let part = ranges.get(whole).map_or(0, |[first, _]| before.saturating_sub((*first).into()));
                ranges[..whole].iter().map(length).sum::<u64>() + part
            }
            Rows::Bits(bits) => {
                let before = usize_of(before).unwrap_or(BLOCK_BITS).min(BLOCK_BITS);
                u64_of(bits::count_ones(bits, 0, before).unwrap_or(0))
            }
        }
    }

    fn next_run(&self, from: u64) -> Option<Range<u64>> {
        let at = from.saturating_sub(self.first);
        match &self.rows {
            Rows::All(_) => Some(self.first + at..self.end()),
            Rows::Ranges(ranges) => {
                let found = ranges.partition_point(|[_, last]| u64::from(*last) < at);
                let [first, last] = ranges.get(found)?.map(u64::from);
                Some(self.first + first.max(at)..self.first + last + 1)
            }
            Rows::Bits(bits) => {
                let (start, end) = next_bits(bits, usize_of(at)?)?;
                Some(self.first + u64_of(start)..self.first + u64_of(end))
            }
        }
    }
}

/// Two selections that are being combined: see [`RowSelection::combine`].
#[derive(Debug)]
pub struct Combining {
    sides: [RowSelection; 2],
    how: Combine,
    /// Rows before it are done.
    at: u64,
    made: RowSelection,
}

/// What a selection has in a block.
enum Part<'a> {
    None,
    All,
    Some(&'a Rows),
}

impl Combining {
    /// Combines up to a block of 65,536 rows at a time. Returns the selection once it is complete; `None` if the budget
    /// is spent first.
    ///
    /// # Errors
    ///
    /// None, except for bugs.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<Option<RowSelection>> {
        while let Some(end) = self.combine_block(budget)? {
            self.at = end;
            if budget.is_spent() {
                return Ok(None);
            }
        }
        Ok(Some(core::mem::take(&mut self.made)))
    }

    /// Combines the following blocks while each side has blocks of one kind. Returns where they end; `None` after the
    /// last.
    fn combine_block(&mut self, budget: &mut Budget<'_>) -> Result<Option<u64>> {
        let Combining { sides, how, at, made } = self;
        let next = |side: &RowSelection| side.blocks.partition_point(|block| block.end() <= *at);
        let found = [&sides[0], &sides[1]].map(|side| side.blocks.get(next(side)));
        let Some(start) = found.iter().flatten().map(|block| block.first.max(*at)).min() else {
            return Ok(None);
        };
        // Up to where one of them ends, or begins.
        let borders = found.iter().flatten().flat_map(|block| [block.first, block.end()]);
        let Some(end) = borders.filter(|&border| border > start).min() else { return Ok(None) };
        let [left, right] = found.map(|block| match block {
            Some(block) if block.first <= start => match &block.rows {
                Rows::All(_) => Part::All,
                rows => Part::Some(rows),
            },
            _ => Part::None,
        });
        budget.charge_units(RANGE_UNITS);
        let rows = match (*how, left, right) {
            (Combine::Intersection, Part::None, _) | (_, Part::None, Part::None) => None,
            (Combine::Intersection, _, Part::None) | (Combine::Difference, Part::None, _) => None,
            (Combine::Difference, _, Part::All) => None,
            (Combine::Union, Part::All, _) | (Combine::Union, _, Part::All) => Some(None),
            (Combine::Intersection, Part::All, Part::All) | (Combine::Difference, Part::All, Part::None) => {
                Some(None)
            }
            (Combine::Union | Combine::Difference, Part::Some(rows), Part::None)
            | (Combine::Union, Part::None, Part::Some(rows))
            | (Combine::Intersection, Part::Some(rows), Part::All)
            | (Combine::Intersection, Part::All, Part::Some(rows)) => {
                budget.charge_units(TURN_UNITS);
                Some(Some(rows.clone()))
            }
            (how, left, Part::Some(right)) => {
                budget.charge_units(COMBINE_UNITS);
                let mut bits = match left {
                    Part::None => vec![0; BLOCK_BYTES].into_boxed_slice(),
                    Part::All => vec![u8::MAX; BLOCK_BYTES].into_boxed_slice(),
                    Part::Some(rows) => rows.bits(),
                };
                for (out, other) in bits.iter_mut().zip(&*right.bits()) {
                    *out = match how {
                        Combine::Union => *out | other,
                        Combine::Intersection => *out & other,
                        Combine::Difference => *out & !other,
                    };
                }
                Some(Some(Rows::Bits(bits)))
            }
        };
        match rows {
            None => {}
            Some(None) => made.push(start..end, budget)?,
            Some(Some(rows)) => {
                let block = Block { first: start, rows };
                let count = block.count();
                if count > 0 {
                    made.blocks.push(block);
                    made.rows += count;
                    made.shrink(budget);
                }
            }
        }
        made.end = end;
        Ok(Some(end))
    }
}

impl Rows {
    fn bits(&self) -> Box<[u8]> {
        match self {
            Rows::All(_) => vec![u8::MAX; BLOCK_BYTES].into_boxed_slice(),
            Rows::Ranges(ranges) => bits_of(ranges),
            Rows::Bits(bits) => bits.clone(),
        }
    }
}

fn bits_of(ranges: &[[u16; 2]]) -> Box<[u8]> {
    let mut bits = vec![0; BLOCK_BYTES].into_boxed_slice();
    ranges.iter().for_each(|range| fill(&mut bits, *range));
    bits
}

/// Sets the bits from the first to the last of a range.
fn fill(bits: &mut [u8], [first, last]: [u16; 2]) {
    let (first, last) = (usize::from(first), usize::from(last));
    // A block has room for every `u16`.
    let _ = bits::fill(bits, first, last + 1 - first, true);
}

/// The bits in words.
fn words(bits: &[u8]) -> impl Iterator<Item = u64> {
    bits.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_le_bytes))
}

/// The first run of set bits at or after `from`.
fn next_bits(bits: &[u8], from: usize) -> Option<(usize, usize)> {
    let find = |from: usize, flip: u64| {
        let first = from / 64;
        let mut mask = u64::MAX << (from % 64);
        for (number, word) in words(bits.get(first * 8..)?).enumerate() {
            let found = (word ^ flip) & mask;
            if found != 0 {
                return Some((first + number) * 64 + found.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    };
    let start = find(from, 0)?;
    Some((start, find(start, u64::MAX).unwrap_or(bits.len() * 8)))
}

fn beyond() -> Error {
    Error::misuse("rows selected beyond what can be counted")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Xorshift.
    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % bound
        }
    }

    fn all_runs(selection: &RowSelection) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        let mut at = 0;
        while let Some(run) = selection.next_run(at) {
            at = run.end;
            match runs.last_mut() {
                Some(last) if last.end == run.start => last.end = run.end,
                _ => runs.push(run),
            }
        }
        runs
    }

    /// A selection of ranges and bitmaps, and its expected rows.
    fn make(random: &mut Random, end: u64) -> (RowSelection, Vec<bool>) {
        let mut model = vec![false; usize_of(end).unwrap()];
        let (mut selection, mut at) = (RowSelection::none(), 0);
        let budget = &mut Budget::unlimited();
        while at < end {
            let longest = [3, 70, 5000, 200_000][usize_of(random.below(4)).unwrap()];
            let length = 1 + random.below(longest);
            let to = end.min(at + length);
            let part = usize_of(at).unwrap()..usize_of(to).unwrap();
            match random.below(4) {
                0 => {}
                1 => {
                    selection.push(at..to, budget).unwrap();
                    model[part].fill(true);
                }
                kind => {
                    for row in &mut model[part.clone()] {
                        *row = random.below(if kind == 2 { 2 } else { 100 }) == 0;
                    }
                    let bits: Bitmap = model[part].iter().copied().collect();
                    selection.push_bits(at, &bits, budget).unwrap();
                }
            }
            at = to;
        }
        (selection, model)
    }

    fn check(selection: &RowSelection, model: &[bool]) {
        let runs = all_runs(selection);
        let mut found = vec![false; model.len()];
        for run in &runs {
            found[usize_of(run.start).unwrap()..usize_of(run.end).unwrap()].fill(true);
        }
        assert!(found == model);
        let rows: u64 = runs.iter().map(|run| run.end - run.start).sum();
        assert_eq!(selection.rows(), rows);
        assert_eq!(selection.end(), runs.last().map_or(0, |run| run.end));
        let mut at = 0;
        while at < model.len() {
            let part = at..model.len().min(at + 1000);
            let mut bits = [0; 125];
            selection.bits_of(u64_of(part.start)..u64_of(part.end), &mut bits).unwrap();
            assert!(part.clone().all(|row| bits::get(&bits, row - at) == Some(model[row])));
            at = part.end;
        }
        let (mut at, mut counted) = (0, 0);
        while counted < rows {
            let next = selection.after(at, 777);
            assert_eq!(selection.rows_before(next), (counted + 777).min(rows));
            (at, counted) = (next, counted + 777);
        }
    }

    #[test]
    fn random_selections_and_their_combinations() {
        let mut random = Random(42);
        for end in [1, 100, 65_535, 65_536, 65_537, 200_000, 700_000] {
            for _ in 0..6 {
                let (left, is_left) = make(&mut random, end);
                let (right, is_right) = make(&mut random, end);
                check(&left, &is_left);
                for how in [Combine::Union, Combine::Intersection, Combine::Difference] {
                    let expected: Vec<bool> = is_left
                        .iter()
                        .zip(&is_right)
                        .map(|(&left, &right)| match how {
                            Combine::Union => left | right,
                            Combine::Intersection => left & right,
                            Combine::Difference => left & !right,
                        })
                        .collect();
                    let mut combining = left.clone().combine(right.clone(), how);
                    let (mut steps, mut made) = (0, None);
                    while made.is_none() {
                        let mut budget = Budget::new(1);
                        made = combining.step(&mut budget).unwrap();
                        assert!(budget.spent() <= COMBINE_UNITS + 3 * TURN_UNITS);
                        steps += 1;
                        assert!(steps < 100);
                    }
                    check(&made.unwrap(), &expected);
                }
            }
        }
    }

    #[test]
    fn what_is_long_is_small() {
        let mut selection = RowSelection::of(5..ROWS_MAX - 70_000).unwrap();
        assert!(selection.blocks.len() <= 3);
        assert_eq!(selection.rows(), ROWS_MAX - 70_005);
        assert!(selection.push(7..9, &mut Budget::unlimited()).is_err());
        selection.push(ROWS_MAX - 10..ROWS_MAX - 5, &mut Budget::unlimited()).unwrap();
        assert_eq!(selection.next_run(ROWS_MAX - 60_000), Some(ROWS_MAX - 10..ROWS_MAX - 5));
        // Every other row is a bitmap, however it comes.
        let mut selection = RowSelection::none();
        for row in (0..65_536).step_by(2) {
            selection.push(row..row + 1, &mut Budget::unlimited()).unwrap();
        }
        assert!(matches!(selection.blocks[0].rows, Rows::Bits(_)));
        // A few rows are ranges.
        let mut selection = RowSelection::none();
        let bits: Bitmap = (0..65_536).map(|row| row % 1000 < 500).collect();
        selection.push_bits(65_536, &bits, &mut Budget::unlimited()).unwrap();
        assert!(matches!(&selection.blocks[0].rows, Rows::Ranges(ranges) if ranges.len() == 66));
    }
}
