//! Gathering rows picked from many batches into one.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Bitmap, Budget, Error, Price, Result};
use marquetry_kernels::levels as kernel;

use super::collected::{Collected, Held, Order, push_bit, room};
use super::dictionaries::Entries;
use super::is_paid_for;
use super::merge::Pick;
use super::stored::{Rows, Starts, Stored, no_values};
use crate::batch::{Batch, ColumnBatch, Layout, Levels, Values};
use crate::growing::{ROOM_PRICE, SLICE_BYTES as COPIED_BYTES};
use crate::schema::{Leaf, PhysicalType, Schema};

/// The prices of a value, of a string, and of an index, taken from anywhere in memory; of a nested column's row, and of each of its
/// entries.
const VALUE_PRICE: Price = Price::per_kilovalue(20 << 10);
const STRING_PRICE: Price = Price::per_kilovalue(36 << 10);
const INDEX_PRICE: Price = Price::per_kilovalue(8 << 10);
const ROW_PRICE: Price = Price::per_kilovalue(40 << 10);
const ENTRY_PRICE: Price = Price::per_kilovalue(3 << 10);
/// As many entries cost as much as a row.
const ROW_ENTRIES: usize = 14;
/// The price of looking at a batch's column.
const SOURCE_PRICE: Price = Price::per_kilovalue(8 << 10);

/// As many rows are brought into the order of where they come from.
const ORDERED_ROWS_MIN: usize = 1024;
/// Minimum and maximum rows that are gathered together.
const SLICE_ROWS_MIN: usize = 256;
const SLICE_ROWS_MAX: usize = 8192;
/// Bytes of a nested column's entries that are gathered together, counting at least 16 bytes per entry.
const SLICE_BYTES: usize = 256 << 10;
/// Bytes of a nested column after which a batch ends, counted in the same way.
const BATCH_BYTES: usize = 512 << 10;
const ENTRY_BYTES: usize = size_of::<u128>();

/// A column of one row, which may be as large as any: it is not copied.
fn one_row(column: usize, sources: &[Stored], pick: Pick) -> Result<ColumnBatch> {
    let stored = sources.get(usize_of_u32(pick.source));
    let Some((stored, found)) = stored.and_then(|stored| Some((stored, stored.columns.get(column)?))) else {
        return Err(Error::internal("a row of a batch that is missing"));
    };
    let row = usize_of_u32(pick.row);
    let one = match &found.levels {
        None => found.slice(row..row + 1),
        Some(levels) => {
            let starts = stored.starts(column).ok_or_else(no_starts)?;
            let (entries, values) = (starts.entries(pick.row), starts.values(pick.row));
            found.part_of_nested(levels, 1, entries.0..entries.1, values.0..values.1)
        }
    };
    Ok(ColumnBatch { leaf: column, provisional: false, ..one })
}

/// What columns become whose dictionaries are kept.
#[derive(Debug, Clone)]
pub(super) enum Kept {
    /// Indices, as they are.
    Indices,
    /// Dictionaries of these entries, if all batches have indices, and if they `stay`; otherwise values.
    Values { entries: Entries, stay: bool },
}

/// Finds, column by column, how many of the rows a batch may have so that none of its arrays is large.
#[derive(Debug)]
pub(super) struct Measuring {
    column: usize,
    rows: usize,
}

impl Measuring {
    pub(super) fn new(picks: usize) -> Measuring {
        Measuring { column: 0, rows: picks }
    }

    /// The rows, once all columns were looked at.
    pub(super) fn step(
        &mut self,
        schema: &Schema,
        sources: &[Stored],
        picks: &[Pick],
        budget: &mut Budget<'_>,
    ) -> Option<usize> {
        while let Some(leaf) = schema.leaves().get(self.column) {
            if is_nested(leaf) && leaf.repetition_max > 0 {
                if !is_paid_for(ENTRY_PRICE.of(0, 2 * self.rows), budget) {
                    return None;
                }
                let mut entries = 0;
                let entries_max = entries_of(BATCH_BYTES, leaf);
                for (row, pick) in picks.iter().enumerate().take(self.rows) {
                    entries += starts_of(sources, pick, self.column).map_or(0, |starts| {
                        let (start, end) = starts.entries(pick.row);
                        end - start
                    });
                    if entries > entries_max && row > 0 {
                        self.rows = row;
                        break;
                    }
                }
                budget.charge(ENTRY_PRICE, 0, 2 * self.rows);
            }
            self.column += 1;
            budget.charge(ENTRY_PRICE, 0, 1);
            if budget.is_spent() && self.column < schema.leaves().len() {
                return None;
            }
        }
        Some(self.rows)
    }
}

/// A batch that is being gathered.
#[derive(Debug)]
pub(super) struct Gathering {
    rows: usize,
    kept: Kept,
    columns: Vec<ColumnBatch>,
    indices: Vec<Option<Vec<u16>>>,
    /// Of many rows that come from far.
    order: Option<Order>,
    open: Option<Open>,
}

/// The current column.
#[derive(Debug)]
struct Open {
    values: Gathered,
    /// Rows that are taken.
    rows: usize,
    validity: Vec<u8>,
    bits: usize,
    nulls: usize,
    /// For a nested column: the levels so far, and the entries and values of the current row that were taken.
    definition: Vec<u8>,
    repetition: Vec<u8>,
    in_row: (usize, usize),
}

/// What is gathered of a column.
#[derive(Debug)]
enum Gathered {
    Values(Collected),
    Narrow(Vec<u16>),
    Indices(Vec<u32>, Arc<Values>),
}

impl Gathering {
    /// A batch of `rows` rows.
    pub(super) fn new(rows: usize, schema: &Schema, kept: Kept) -> Result<Gathering> {
        let leaves = schema.leaves().len();
        let indices = room(if matches!(kept, Kept::Indices) { leaves } else { 0 })?;
        Ok(Gathering { rows, kept, columns: room(leaves)?, indices, order: None, open: None })
    }

    /// Does part of the work. Returns the rows once all columns are done. `picks` are the rows, and `first` the number of the first.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn step(
        &mut self,
        schema: &Schema,
        sources: &[Stored],
        picks: &[Pick],
        first: u64,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Rows>> {
        let picks = picks.get(..self.rows).ok_or_else(|| Error::internal("fewer rows than were picked"))?;
        // What is in the cache is gathered as it comes.
        let is_far = matches!(self.kept, Kept::Values { .. });
        if is_far && self.order.is_none() && picks.len() >= ORDERED_ROWS_MIN.max(sources.len()) {
            if !is_paid_for(INDEX_PRICE.of(0, picks.len()), budget) {
                return Ok(None);
            }
            budget.charge(INDEX_PRICE, 0, picks.len());
            self.order = Some(Order::of(picks, sources.len())?);
        }
        while let Some(leaf) = schema.leaves().get(self.columns.len()) {
            let column = self.columns.len();
            if let [pick] = picks
                && indices_of(sources, pick, column).is_none()
            {
                self.columns.push(one_row(column, sources, *pick)?);
                self.push_indices(None);
                budget.charge(ROW_PRICE, 0, 4);
                if budget.is_spent() && self.columns.len() < schema.leaves().len() {
                    return Ok(None);
                }
                continue;
            }
            // Each row is looked at to find the number of entries.
            let to_open = ENTRY_PRICE.of(0, 4 * picks.len());
            if self.open.is_none() && is_nested(leaf) && !is_paid_for(to_open, budget) {
                return Ok(None);
            }
            let open = match &mut self.open {
                Some(open) => open,
                none => none.insert(Open::new((leaf, column), sources, picks, &self.kept, budget)?),
            };
            let is_done = match is_nested(leaf) {
                true => open.take_entries(leaf, column, sources, picks, budget)?,
                false => {
                    let how = (&self.kept, self.order.as_ref());
                    open.take_rows((leaf, column), sources, picks, how, budget)?
                }
            };
            if is_done && let Some(open) = self.open.take() {
                let (column, indices) = open.finish(leaf, column);
                self.columns.push(column);
                self.push_indices(indices);
            }
            if budget.is_spent() && self.columns.len() < schema.leaves().len() {
                return Ok(None);
            }
        }
        let columns = core::mem::take(&mut self.columns);
        let batch = Batch { row_group: 0, first_row: first, rows: self.rows, columns };
        Ok(Some(Rows { batch, indices: core::mem::take(&mut self.indices) }))
    }

    fn push_indices(&mut self, indices: Option<Vec<u16>>) {
        if matches!(self.kept, Kept::Indices) {
            self.indices.push(indices);
        }
    }
}

impl Gathered {
    /// Room for values of a column, or for indices if each of the batches has them.
    fn new(
        (leaf, column): (&Leaf, usize),
        values: usize,
        sources: &[Stored],
        kept: &Kept,
    ) -> Result<Gathered> {
        // A batch without columns is one that was used up.
        let mut has_columns = sources.iter().filter(|source| !source.columns.is_empty());
        let are_indices = has_columns.all(|source| source.indices(column).is_some());
        match kept {
            Kept::Indices if are_indices => Ok(Gathered::Narrow(room(values)?)),
            Kept::Values { entries, stay: true } if are_indices => {
                let entries = entries.get(column).and_then(Option::as_ref).ok_or_else(no_entries)?;
                Ok(Gathered::Indices(room(values)?, Arc::clone(entries)))
            }
            _ => Ok(Gathered::Values(Collected::new(leaf.physical_type, values, sources.len())?)),
        }
    }
}

impl Open {
    fn new(
        (leaf, column): (&Leaf, usize),
        sources: &[Stored],
        picks: &[Pick],
        kept: &Kept,
        budget: &mut Budget<'_>,
    ) -> Result<Open> {
        let (mut entries, mut values) = (0, picks.len());
        if is_nested(leaf) {
            values = 0;
            for pick in picks {
                let Some(starts) = starts_of(sources, pick, column) else { return Err(no_starts()) };
                let (start, end) = starts.entries(pick.row);
                entries += end - start;
                let (start, end) = starts.values(pick.row);
                values += end - start;
            }
            budget.charge(ENTRY_PRICE, 0, 4 * picks.len());
        }
        let repetitions = if leaf.repetition_max > 0 { entries } else { 0 };
        Ok(Open {
            values: Gathered::new((leaf, column), values, sources, kept)?,
            rows: 0,
            validity: Vec::new(),
            bits: 0,
            nulls: 0,
            definition: room(entries)?,
            repetition: room(repetitions)?,
            in_row: (0, 0),
        })
    }

    /// Takes rows of a flat column. True once all are taken.
    fn take_rows(
        &mut self,
        (leaf, column): (&Leaf, usize),
        sources: &[Stored],
        picks: &[Pick],
        (kept, order): (&Kept, Option<&Order>),
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let columns = || sources.iter().map(|source| source.columns.get(column));
        let has_nulls = columns().flatten().any(|found| found.validity.is_some());
        let of_values = match (&self.values, leaf.physical_type) {
            (Gathered::Narrow(_) | Gathered::Indices(..), _) => INDEX_PRICE,
            (_, PhysicalType::ByteArray) => STRING_PRICE,
            _ => VALUE_PRICE,
        };
        let of_validity = if has_nulls { VALUE_PRICE.kilovalue } else { 0 };
        let price = Price::per_kilovalue(of_values.kilovalue + of_validity);
        let affordable = budget.values_left(price).clamp(SLICE_ROWS_MIN, SLICE_ROWS_MAX);
        let until = picks.len().min(self.rows + affordable);
        let part = &picks[self.rows..until];
        let order = order.filter(|_| part.len() == picks.len());
        let (taken, bytes) = self.values.take(column, sources, (part, order), kept)?;
        let part = &part[..taken];
        budget.charge(price, 0, part.len());
        budget.charge(ROOM_PRICE, bytes, 0);
        budget.charge(SOURCE_PRICE, 0, sources.len());
        if has_nulls {
            let mut validity: Vec<Option<&Bitmap>> = room(sources.len())?;
            validity.extend(columns().map(|found| found?.validity.as_ref()));
            for pick in part {
                let of_batch = validity.get(usize_of_u32(pick.source)).copied().flatten();
                let is_there = of_batch.is_none_or(|bits| bits.get(usize_of_u32(pick.row)));
                push_bit(&mut self.validity, &mut self.bits, is_there);
                self.nulls += usize::from(!is_there);
            }
        }
        self.rows += taken;
        Ok(self.rows == picks.len())
    }

    /// Takes entries of a nested column. True once all are taken.
    fn take_entries(
        &mut self,
        leaf: &Leaf,
        column: usize,
        sources: &[Stored],
        picks: &[Pick],
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let definition_max = u8::try_from(leaf.definition_max).unwrap_or(u8::MAX);
        // A value that is longer than a slice is taken alone.
        let mut left = budget.values_left(ENTRY_PRICE).min(entries_of(SLICE_BYTES, leaf)).max(1);
        while left > 0 {
            let Some(pick) = picks.get(self.rows) else { return Ok(true) };
            let source = usize_of_u32(pick.source);
            let found = sources
                .get(source)
                .and_then(|stored| Some((stored.columns.get(column)?, stored.starts(column)?)));
            let Some((batch, starts)) = found else { return Err(no_starts()) };
            let levels = batch.levels.as_ref().ok_or_else(no_starts)?;
            let ((start, end), (value, value_end)) = (starts.entries(pick.row), starts.values(pick.row));
            let (start, value) = (start + self.in_row.0, value + self.in_row.1);
            let until = end.min(start + left);
            let definition = &levels.definition[start..until];
            let value_until = match until == end {
                true => value_end,
                false => value + kernel::count(definition, definition_max),
            };
            let mut next = value;
            while next < value_until {
                let Gathered::Values(values) = &mut self.values else { return Err(no_entries()) };
                let (complete, bytes) = values.extend(&batch.values, next..value_until, source)?;
                budget.charge(ROOM_PRICE, bytes, 0);
                next += complete;
                if complete == 0 {
                    return Ok(false);
                }
            }
            self.definition.extend_from_slice(definition);
            if let (Some(repetition), true) = (&levels.repetition, leaf.repetition_max > 0) {
                self.repetition.extend_from_slice(&repetition[start..until]);
            }
            self.nulls += definition.len() - (value_until - value);
            budget.charge(ROW_PRICE, 0, 1);
            budget.charge(ENTRY_PRICE, 0, definition.len());
            left = left.saturating_sub(definition.len() + ROW_ENTRIES);
            if until == end {
                self.rows += 1;
                self.in_row = (0, 0);
            } else {
                self.in_row = (self.in_row.0 + definition.len(), self.in_row.1 + (value_until - value));
            }
        }
        Ok(self.rows == picks.len())
    }

    /// The column, and its indices if it has them instead of values.
    fn finish(self, leaf: &Leaf, column: usize) -> (ColumnBatch, Option<Vec<u16>>) {
        let is_nested = is_nested(leaf);
        let (values, indices) = match self.values {
            Gathered::Values(values) => (values.finish(), None),
            Gathered::Narrow(indices) => (no_values(), Some(indices)),
            Gathered::Indices(indices, entries) => (Values::Dictionary(indices.into(), entries), None),
        };
        let validity =
            (self.nulls > 0 && !is_nested).then(|| Bitmap::new(self.validity.into(), 0, self.bits));
        let column = ColumnBatch {
            leaf: column,
            rows: self.rows,
            nulls: self.nulls,
            validity,
            values,
            layout: if is_nested { Layout::Dense } else { Layout::Spaced },
            levels: is_nested.then(|| Levels {
                definition: self.definition.into(),
                repetition: (leaf.repetition_max > 0).then(|| self.repetition.into()),
            }),
            provisional: false,
        };
        (column, indices)
    }
}

impl Gathered {
    /// Takes rows of a flat column, all of them or about a slice of their bytes: returns how many, and the bytes that were copied.
    fn take(
        &mut self,
        column: usize,
        sources: &[Stored],
        (picks, order): (&[Pick], Option<&Order>),
        kept: &Kept,
    ) -> Result<(usize, usize)> {
        match self {
            Gathered::Values(values) => {
                let entries = match kept {
                    Kept::Values { entries, .. } => entries.get(column).and_then(Option::as_deref),
                    Kept::Indices => None,
                };
                values.pick(sources.iter().map(|source| held(column, source, entries)), (picks, order))
            }
            Gathered::Narrow(out) => {
                let all = narrow(column, sources)?;
                out.extend(picks.iter().map(|pick| all[usize_of_u32(pick.source)][usize_of_u32(pick.row)]));
                Ok((picks.len(), 0))
            }
            Gathered::Indices(out, _) => {
                let all = narrow(column, sources)?;
                let of = |source: usize, row: u32| u32::from(all[source][usize_of_u32(row)]);
                match order {
                    Some(order) => order.place(picks.len(), out, of),
                    None => out.extend(picks.iter().map(|pick| of(usize_of_u32(pick.source), pick.row))),
                }
                Ok((picks.len(), 0))
            }
        }
    }
}

/// A batch's values, or those of its dictionary and the indices.
fn held<'a>(column: usize, source: &'a Stored, entries: Option<&'a Values>) -> Option<Held<'a>> {
    let values = &source.columns.get(column)?.values;
    match source.indices(column) {
        // Where there are no entries, these are values of another type, which are refused.
        Some(indices) => Some((entries.unwrap_or(values), Some(indices))),
        None => Some((values, None)),
    }
}

/// The indices of each batch.
fn narrow(column: usize, sources: &[Stored]) -> Result<Vec<&[u16]>> {
    let mut all = room(sources.len())?;
    all.extend(sources.iter().map(|source| source.indices(column).unwrap_or_default()));
    Ok(all)
}

/// The number of entries that fit into `bytes`, none of them longer than what is copied at a time.
fn entries_of(bytes: usize, leaf: &Leaf) -> usize {
    let width = leaf.physical_type.width().unwrap_or(0);
    if width > COPIED_BYTES { 0 } else { bytes / width.max(ENTRY_BYTES) }
}

/// Whether a leaf has levels, rather than only validity.
fn is_nested(leaf: &Leaf) -> bool {
    leaf.repetition_max > 0 || leaf.definition_max > 1
}

fn starts_of<'a>(sources: &'a [Stored], pick: &Pick, column: usize) -> Option<&'a Starts> {
    sources.get(usize_of_u32(pick.source))?.starts(column)
}

fn indices_of<'a>(sources: &'a [Stored], pick: &Pick, column: usize) -> Option<&'a [u16]> {
    sources.get(usize_of_u32(pick.source))?.indices(column)
}

fn no_entries() -> Error {
    Error::internal("indices of a dictionary that is not there")
}

fn no_starts() -> Error {
    Error::internal("a nested column of which it is not known where rows begin")
}
