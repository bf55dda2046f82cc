//! Cells moved from one batch to another: of rows that go on in the next batch, and of static rows.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of_u32};

use crate::sstable::batch::{Cells, Sparse, Strings, Values, number_of};

/// Cells that are moved between two looks at the budget, and bytes of their values.
const SLICE_CELLS: usize = 2048;
pub(super) const SLICE_BYTES: usize = 64 << 10;

/// Appends some cells, as ones of this entry.
pub(super) fn append_cells(from: &Cells, range: Range<usize>, entry: u32, to: &mut Cells) {
    append_values(&from.values, range.clone(), &mut to.values);
    append_heads(from, range, entry, to);
}

/// Appends what some cells have besides values.
fn append_heads(from: &Cells, range: Range<usize>, entry: u32, to: &mut Cells) {
    let base = to.entries.len();
    to.entries.resize(base + range.len(), entry);
    if !from.paths.is_empty() {
        append_strings(&from.paths, range.clone(), &mut to.paths);
    }
    append_sparse(&from.timestamps, &range, base, &mut to.timestamps);
    append_sparse(&from.expiries, &range, base, &mut to.expiries);
    append_sparse(&from.tombstones, &range, base, &mut to.tombstones);
    let empties = part(&from.empties, &range);
    let shifted = from.empties[empties].iter().map(|at| number_of(usize_of_u32(*at) - range.start + base));
    to.empties.extend(shifted);
}

/// Appends some values to an array of the same kind.
pub(super) fn append_values(from: &Values, range: Range<usize>, to: &mut Values) {
    match (from, to) {
        (Values::None(_), Values::None(count)) => *count += range.len(),
        (Values::One(from), Values::One(to)) => to.extend_from_slice(from.get(range).unwrap_or_default()),
        (Values::Four(from), Values::Four(to)) => to.extend_from_slice(from.get(range).unwrap_or_default()),
        (Values::Eight(from), Values::Eight(to)) => to.extend_from_slice(from.get(range).unwrap_or_default()),
        (Values::Sixteen(from), Values::Sixteen(to)) => {
            to.extend_from_slice(from.get(range).unwrap_or_default())
        }
        (Values::Strings(from), Values::Strings(to)) => append_strings(from, range, to),
        _ => {}
    }
}

/// Appends the next part of a string, which is long; true once it is complete.
pub(super) fn append_part(
    from: &Strings,
    at: usize,
    done: &mut usize,
    part: usize,
    to: &mut Strings,
) -> bool {
    let range = from.range(at).unwrap_or_default();
    if *done == 0 {
        to.bytes.reserve_exact(range.len());
    }
    let end = range.end.min(range.start + *done + part);
    to.bytes.extend_from_slice(from.bytes.get(range.start + *done..end).unwrap_or_default());
    *done = end - range.start;
    if end == range.end {
        *done = 0;
        to.ends.push(number_of(to.bytes.len()));
    }
    end == range.end
}

/// Moves some of these cells, as many as a slice has, and returns where the others begin. Of a long value a part is moved.
pub(super) fn move_cells(
    from: &Cells,
    range: Range<usize>,
    part: &mut usize,
    entry: u32,
    to: &mut Cells,
) -> usize {
    let start = range.start;
    let mut end = range.end.min(start + SLICE_CELLS);
    if let (Values::Strings(values), Values::Strings(into)) = (&from.values, &mut to.values) {
        let first = values.range(start).unwrap_or_default();
        if first.len() > SLICE_BYTES && !range.is_empty() {
            if append_part(values, start, part, SLICE_BYTES, into) {
                append_heads(from, start..start + 1, entry, to);
                return start + 1;
            }
            return start;
        }
        let most = first.start + SLICE_BYTES;
        let fitting =
            values.ends.get(start..end).unwrap_or_default().partition_point(|end| usize_of_u32(*end) <= most);
        end = end.min(start + fitting);
    }
    append_cells(from, start..end, entry, to);
    end
}

fn append_strings(from: &Strings, range: Range<usize>, to: &mut Strings) {
    if range.is_empty() {
        return;
    }
    let start = from.range(range.start).unwrap_or_default().start;
    let end = from.range(range.end - 1).unwrap_or_default().end;
    let base = to.bytes.len();
    to.bytes.extend_from_slice(from.bytes.get(start..end).unwrap_or_default());
    let ends = from.ends.get(range).unwrap_or_default();
    to.ends.extend(ends.iter().map(|end| number_of(usize_of_u32(*end) - start + base)));
}

fn append_sparse<T: Copy>(from: &Sparse<T>, range: &Range<usize>, base: usize, to: &mut Sparse<T>) {
    for at in part(&from.at, range) {
        to.push(number_of(usize_of_u32(from.at[at]) - range.start + base), from.values[at]);
    }
}

/// Where the numbers of a range are in an ascending list.
fn part(at: &[u32], range: &Range<usize>) -> Range<usize> {
    let before = |end: usize| at.partition_point(|at| usize_of_u32(*at) < end);
    before(range.start)..before(range.end)
}

/// Removes the first cells of a column.
pub(super) fn drop_first(cells: &mut Cells, count: usize) {
    if count == 0 {
        return;
    }
    cells.entries.drain(..count);
    match &mut cells.values {
        Values::None(values) => *values -= count,
        Values::One(values) => drop(values.drain(..count)),
        Values::Four(values) => drop(values.drain(..count)),
        Values::Eight(values) => drop(values.drain(..count)),
        Values::Sixteen(values) => drop(values.drain(..count)),
        Values::Strings(strings) => drop_strings(strings, count),
    }
    drop_strings(&mut cells.paths, count);
    let first = number_of(count);
    drop_sparse(&mut cells.timestamps, first);
    drop_sparse(&mut cells.expiries, first);
    drop_sparse(&mut cells.tombstones, first);
    cells.empties.retain(|at| *at >= first);
    cells.empties.iter_mut().for_each(|at| *at -= first);
}

fn drop_strings(strings: &mut Strings, count: usize) {
    if strings.ends.len() < count {
        return;
    }
    let end = strings.range(count - 1).unwrap_or_default().end;
    strings.bytes.drain(..end);
    strings.ends.drain(..count);
    let end = number_of(end);
    strings.ends.iter_mut().for_each(|at| *at -= end);
}

fn drop_sparse<T>(list: &mut Sparse<T>, first: u32) {
    let gone = list.at.partition_point(|at| *at < first);
    list.at.drain(..gone);
    list.values.drain(..gone);
    list.at.iter_mut().for_each(|at| *at -= first);
}

/// An array for values of the same kind.
pub(super) fn empty_like(values: &Values) -> Values {
    match values {
        Values::None(_) => Values::None(0),
        Values::One(_) => Values::One(Vec::new()),
        Values::Four(_) => Values::Four(Vec::new()),
        Values::Eight(_) => Values::Eight(Vec::new()),
        Values::Sixteen(_) => Values::Sixteen(Vec::new()),
        Values::Strings(_) => Values::Strings(Strings::default()),
    }
}

/// About the bytes that a column's cells take.
pub(super) fn bytes_of(cells: &Cells) -> u64 {
    let values = match &cells.values {
        Values::None(_) => 0,
        Values::One(values) => values.len(),
        Values::Four(values) => 4 * values.len(),
        Values::Eight(values) => 8 * values.len(),
        Values::Sixteen(values) => 16 * values.len(),
        Values::Strings(strings) => strings.bytes.len() + 4 * strings.ends.len(),
    };
    let sparse =
        12 * cells.timestamps.at.len() + 12 * cells.expiries.at.len() + 8 * cells.tombstones.at.len();
    u64_of(values + sparse + 4 * cells.entries.len() + cells.paths.bytes.len() + 4 * cells.paths.ends.len())
}
