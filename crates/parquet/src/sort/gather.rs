//! Gathering rows picked from many batches into one.

use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Bitmap, Budget, Error, Price, Result};
use marquetry_kernels::levels as kernel;

use super::collected::{Collected, push_bit, room};
use super::is_paid_for;
use super::merge::Pick;
use super::stored::{Starts, Stored};
use crate::batch::{ColumnBatch, Layout, Levels};
use crate::growing::{ROOM_PRICE, SLICE_BYTES as COPIED_BYTES};
use crate::schema::{Leaf, PhysicalType, Schema};

/// The prices of a value, and of a string, taken from anywhere in memory; of a nested column's row, and of each of its
/// entries.
const VALUE_PRICE: Price = Price::per_kilovalue(20 << 10);
const STRING_PRICE: Price = Price::per_kilovalue(36 << 10);
const ROW_PRICE: Price = Price::per_kilovalue(40 << 10);
const ENTRY_PRICE: Price = Price::per_kilovalue(3 << 10);
/// As many entries cost as much as a row.
const ROW_ENTRIES: usize = 14;
/// The price of looking at a batch's column.
const SOURCE_PRICE: Price = Price::per_kilovalue(8 << 10);

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
    columns: Vec<ColumnBatch>,
    open: Option<Open>,
}

/// The current column.
#[derive(Debug)]
struct Open {
    values: Collected,
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

impl Gathering {
    /// A batch of `rows` rows.
    pub(super) fn new(rows: usize, schema: &Schema) -> Result<Gathering> {
        Ok(Gathering { rows, columns: room(schema.leaves().len())?, open: None })
    }

    /// Does part of the work. Returns the columns once all are done. `picks` are the rows.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn step(
        &mut self,
        schema: &Schema,
        sources: &[Stored],
        picks: &[Pick],
        budget: &mut Budget<'_>,
    ) -> Result<Option<Vec<ColumnBatch>>> {
        let picks = picks.get(..self.rows).ok_or_else(|| Error::internal("fewer rows than were picked"))?;
        while let Some(leaf) = schema.leaves().get(self.columns.len()) {
            let column = self.columns.len();
            if let [pick] = picks {
                self.columns.push(one_row(column, sources, *pick)?);
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
                none => none.insert(Open::new(leaf, column, sources, picks, budget)?),
            };
            let is_done = match is_nested(leaf) {
                true => open.take_entries(leaf, column, sources, picks, budget)?,
                false => open.take_rows(leaf, column, sources, picks, budget)?,
            };
            if is_done && let Some(open) = self.open.take() {
                self.columns.push(open.finish(leaf, column));
            }
            if budget.is_spent() && self.columns.len() < schema.leaves().len() {
                return Ok(None);
            }
        }
        Ok(Some(core::mem::take(&mut self.columns)))
    }
}

impl Open {
    fn new(
        leaf: &Leaf,
        column: usize,
        sources: &[Stored],
        picks: &[Pick],
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
            values: Collected::new(leaf.physical_type, values, sources.len())?,
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
        leaf: &Leaf,
        column: usize,
        sources: &[Stored],
        picks: &[Pick],
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let columns = || sources.iter().map(|source| source.columns.get(column));
        let has_nulls = columns().flatten().any(|found| found.validity.is_some());
        let of_values =
            if leaf.physical_type == PhysicalType::ByteArray { STRING_PRICE } else { VALUE_PRICE };
        let of_validity = if has_nulls { VALUE_PRICE.kilovalue } else { 0 };
        let price = Price::per_kilovalue(of_values.kilovalue + of_validity);
        let affordable = budget.values_left(price).clamp(SLICE_ROWS_MIN, SLICE_ROWS_MAX);
        let until = picks.len().min(self.rows + affordable);
        let part = &picks[self.rows..until];
        let values = columns().map(|found| found.map(|found| &found.values));
        let (taken, bytes) = self.values.pick(values, part)?;
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
                let (complete, bytes) = self.values.extend(&batch.values, next..value_until, source)?;
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

    fn finish(self, leaf: &Leaf, column: usize) -> ColumnBatch {
        let is_nested = is_nested(leaf);
        let validity =
            (self.nulls > 0 && !is_nested).then(|| Bitmap::new(self.validity.into(), 0, self.bits));
        ColumnBatch {
            leaf: column,
            rows: self.rows,
            nulls: self.nulls,
            validity,
            values: self.values.finish(),
            layout: if is_nested { Layout::Dense } else { Layout::Spaced },
            levels: is_nested.then(|| Levels {
                definition: self.definition.into(),
                repetition: (leaf.repetition_max > 0).then(|| self.repetition.into()),
            }),
            provisional: false,
        }
    }
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

fn no_starts() -> Error {
    Error::internal("a nested column of which it is not known where rows begin")
}
