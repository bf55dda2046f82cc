//! A slice of a page: levels and values, into the batch.

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Error, Price, Result};

use super::super::builder::Builder;
use super::super::data_page::{Levels, RUN_PRICE, before_value};
use super::super::selected::{LONG_RUN_ROWS, MIXED_ROWS_MAX, Mixed, MixedBits};
use super::super::values::ValueDecoder;
use super::super::work::Work;
use super::{
    ColumnReader, Expects, FIXED_KEEP_PRICE, FIXED_SPREAD_PRICE, KEEP_PRICE, LEVEL_PRICE, LOOK_UNITS,
    RUN_UNITS, SEEN_RUN_UNITS, SLICE_ROWS_MAX, SLICE_ROWS_MIN, SLICE_UNITS, SPREAD_PRICE, buffers_of,
    too_many_rows,
};
use crate::encoding::Decoded;
use crate::growing::SLICE_BYTES;
use crate::schema::PhysicalType;

/// Rows that are stepped over at a time, and how many cost a unit: their levels are counted by runs and words.
const SKIPPED_ROWS_MAX: usize = 256 << 10;
const SKIPPED_ROWS_A_UNIT: usize = 32;

impl ColumnReader {
    /// Decodes one slice of the current page of a nested leaf. False when the batch must end first.
    pub(super) fn decode_nested(&mut self, target: usize, work: &mut Work<'_, '_>) -> Result<bool> {
        let (Expects::Values(page), Some(nested)) = (&mut self.expects, &mut self.nested) else {
            return Err(Error::internal("no page to decode"));
        };
        if !page.prepare(&mut self.last_value, work.budget)? {
            return Ok(true);
        }
        let dictionary = self.dictionary.as_ref();
        let price = page.values.price(dictionary);
        let affordable = work.budget.values_left(price).clamp(SLICE_ROWS_MIN, SLICE_ROWS_MAX);
        let mut affordable = affordable.min(self.builder.slice_entries());
        if page.behind > 0 && page.entries_left + nested.ahead() == 0 {
            page.skip_values(&self.builder, affordable, price, work)?;
            return Ok(true);
        }
        if nested.ahead() == 0 {
            let entries = page.entries_left.min(affordable);
            let Levels::Nested(levels) = &mut page.levels else {
                return Err(Error::internal("a nested leaf without levels"));
            };
            let decoded = nested.decode_ahead(levels, entries)?;
            work.budget.charge_units(LEVEL_PRICE.of(0, entries * 2));
            work.budget.charge(RUN_PRICE, 0, levels.take_runs());
            let Some(entries) = decoded else { return Ok(true) };
            page.entries_left -= entries;
        }
        let (mut wanted, mut is_mixed) = (u64::MAX, false);
        if let Some(selected) = &mut self.selected {
            let begins = nested.begins_row();
            let position = self.chunk.rows - self.chunk.rows_left;
            let run = selected.next(position);
            let is_next = run.as_ref().is_some_and(|run| run.start == position);
            if if begins { !is_next } else { !selected.takes_row } {
                let gap = run.map_or(usize::MAX, |run| usize_of(run.start - position).unwrap_or(usize::MAX));
                let entries = nested.within(gap, affordable);
                page.behind += nested.values_in(entries);
                let (_, _, rows) = nested.take(entries);
                self.chunk.rows_left =
                    self.chunk.rows_left.checked_sub(rows as u64).ok_or_else(too_many_rows)?;
                selected.takes_row &= rows == 0;
                work.budget.charge_units(LEVEL_PRICE.of(0, entries) + SLICE_UNITS);
                return Ok(true);
            }
            wanted = if is_next { run.map_or(0, |run| run.end - run.start) } else { 0 };
            if page.behind > 0 {
                page.skip_values(&self.builder, affordable, price, work)?;
                return Ok(true);
            }
            if is_next && wanted < LONG_RUN_ROWS {
                let some = affordable.min(MIXED_ROWS_MAX);
                let rows = nested.rows_in(nested.within(target - self.builder.rows, some));
                let mixed = selected.look(position, rows)?;
                work.budget.charge_units(LOOK_UNITS + u64_of(mixed.runs) * SEEN_RUN_UNITS);
                // A row's entries, on the average of those that are looked at.
                let entries = nested.within(rows, some).div_ceil(rows.max(1));
                if is_worth_dropping(mixed, entries, &page.values, price, &self.builder) {
                    (is_mixed, wanted, affordable) = (true, u64_of(mixed.rows), some);
                }
            }
        }
        let is_admitted =
            self.builder.admits_dictionary(buffers_of(dictionary)) || !page.values.is_dictionary();
        let is_heavy = self.builder.is_heavy(page.values.chunk());
        if nested.begins_row() && (is_heavy || self.builder.is_large() || !is_admitted) {
            return Ok(false);
        }
        if !is_admitted {
            return Err(Error::corrupt("a dictionary in the middle of a row"));
        }
        if nested.begins_row() && self.chunk.rows_left == 0 {
            return Err(too_many_rows());
        }
        // Where a row is large, it is taken slice by slice; a batch ends only between rows. So it is in a slice of large values.
        let rows_max = self.chunk.rows_left.min(wanted);
        let rows_max = usize_of(rows_max).unwrap_or(usize::MAX).min(target - self.builder.rows);
        let entries = nested.within(rows_max, affordable);
        let left = self.builder.entries_left();
        let entries = if entries > left { nested.whole_rows(entries, left) } else { entries };
        let there = nested.values_in(entries);
        if !self.builder.prepare_levels(entries, nested.repetition_max > 0, &mut work.memory, work.budget)?
            || !self.builder.prepare(there, &mut work.memory, work.budget)?
        {
            return Ok(true);
        }
        // Room has its price.
        let slice = there.min(work.budget.values_left(price).max(SLICE_ROWS_MIN));
        let decoded = page.values.decode(&mut self.builder, dictionary, slice, &mut work.memory)?;
        let entries = if decoded.values < there { nested.entries_of(decoded.values) } else { entries };
        let definition_max = nested.definition_max;
        let (definition, repetition, rows) = nested.take(entries);
        let mut taken = rows;
        match &mut self.selected {
            Some(selected) if is_mixed => {
                let mut keep: MixedBits = [0; _];
                taken = selected.keep_entries(definition.len(), repetition, &mut keep)?;
                let levels = (definition, repetition);
                self.builder.add_mixed_levels(levels, definition_max, decoded.values, &keep)?;
                charge_kept(entries, decoded, self.column.physical_type, work.budget);
            }
            Some(selected) => {
                selected.takes_row |= rows > 0;
                self.builder.add_levels(definition, repetition)?;
            }
            None => self.builder.add_levels(definition, repetition)?,
        }
        self.chunk.rows_left -= rows as u64;
        self.builder.rows += taken;
        page.is_used |= entries > 0;
        page.charge_runs(work.budget);
        work.budget.charge(price, decoded.bytes, decoded.values);
        work.budget.charge_units(SLICE_UNITS);
        Ok(true)
    }

    /// Decodes one slice of the current page. False when the batch must end first.
    pub(super) fn decode(&mut self, target: usize, work: &mut Work<'_, '_>) -> Result<bool> {
        let Expects::Values(page) = &mut self.expects else {
            return Err(Error::internal("no page to decode"));
        };
        if !page.prepare(&mut self.last_value, work.budget)? {
            return Ok(true);
        }
        let dictionary = self.dictionary.as_ref();
        let price = page.values.price(dictionary);
        let affordable = work.budget.values_left(price).clamp(SLICE_ROWS_MIN, SLICE_ROWS_MAX);
        let (mut wanted, mut is_mixed) = (usize::MAX, false);
        if let Some(selected) = &mut self.selected {
            let position = self.chunk.rows - self.chunk.rows_left;
            let run = selected.next(position).unwrap_or(u64::MAX..u64::MAX);
            let gap = usize_of(run.start - position).unwrap_or(usize::MAX).min(page.entries_left);
            if gap > 0 {
                let (rows, there) = page.skip_levels(gap.min(SKIPPED_ROWS_MAX))?;
                page.behind += there;
                page.entries_left -= rows;
                self.chunk.rows_left = self.chunk.rows_left.saturating_sub(rows as u64);
                page.charge_runs(work.budget);
                work.budget.charge_units((rows / SKIPPED_ROWS_A_UNIT) as u64 + SLICE_UNITS);
                return Ok(true);
            }
            if page.behind > 0 {
                page.skip_values(&self.builder, affordable, price, work)?;
                return Ok(true);
            }
            wanted = usize_of(run.end - run.start).unwrap_or(usize::MAX);
            if run.end - run.start < LONG_RUN_ROWS {
                let rows = (target - self.builder.rows).min(page.entries_left).min(affordable);
                let mixed = selected.look(position, rows)?;
                work.budget.charge_units(LOOK_UNITS + u64_of(mixed.runs) * SEEN_RUN_UNITS);
                if is_worth_dropping(mixed, 1, &page.values, price, &self.builder) {
                    (is_mixed, wanted) = (true, mixed.rows);
                }
            }
        }
        if self.builder.is_heavy(page.values.chunk()) {
            return Ok(false);
        }
        let wants_indices = self.column.keep_dictionaries
            && page.values.is_dictionary()
            && dictionary.is_some_and(|entries| entries.kept().is_some());
        let has_values = !matches!(page.values, ValueDecoder::Nothing);
        if has_values && self.builder.holds_indices.is_some_and(|holds| holds != wants_indices) {
            return Ok(false);
        }
        if !self.builder.admits_dictionary(buffers_of(dictionary)) && page.values.is_dictionary() {
            return Ok(false);
        }
        let rows = (target - self.builder.rows).min(page.entries_left).min(affordable).min(wanted);
        let rows = page.values.slice_values(&self.builder, rows);
        if !self.builder.prepare(rows, &mut work.memory, work.budget)? {
            return Ok(true);
        }
        // Room has its price.
        let rows = rows.min(work.budget.values_left(price).max(SLICE_ROWS_MIN));
        let at = self.builder.rows;
        // Rows of pages that are left out are null, in required columns, too.
        let marks_nulls = self.column.is_nullable || self.judged.is_some();
        let (rows, there) = page.levels_of(&mut self.builder, rows, marks_nulls)?;
        if there > 0
            && self.builder.holds_indices.is_none()
            && !self.builder.hold(wants_indices, &mut work.memory, work.budget)?
        {
            page.keep_ahead(&mut self.builder, at..at + rows, 0)?;
            return Ok(true);
        }
        if there < rows && !self.builder.clear_wide_null(&mut work.memory, work.budget)? {
            page.keep_ahead(&mut self.builder, at..at + rows, 0)?;
            return Ok(true);
        }
        let decoded = page.values.decode(&mut self.builder, dictionary, there, &mut work.memory)?;
        // Rows behind the values that are there come again.
        let done = if decoded.values < there && there < rows {
            before_value(self.builder.validity(at + rows)?, at, rows, decoded.values)
        } else {
            rows - (there - decoded.values)
        };
        page.keep_ahead(&mut self.builder, at + done..at + rows, done)?;
        match &self.selected {
            Some(selected) if is_mixed => {
                self.builder.end_mixed_slice(done, decoded.values, selected.bits(), marks_nulls)?;
                charge_kept(done, decoded, self.column.physical_type, work.budget);
            }
            _ => self.builder.end_slice(done, decoded.values)?,
        }
        page.entries_left -= done;
        page.is_used |= done > 0;
        self.chunk.rows_left = self.chunk.rows_left.saturating_sub(done as u64);
        if page.entries_left == 0 && page.nulls_left.is_some_and(|nulls| nulls > 0) {
            return Err(Error::corrupt("a page with fewer nulls than its header says"));
        }
        page.charge_runs(work.budget);
        work.budget.charge(price, decoded.bytes, decoded.values);
        if decoded.values < done {
            match self.column.physical_type {
                PhysicalType::Int96 | PhysicalType::FixedLenByteArray(_) => {
                    let bytes = decoded.bytes.max(self.builder.spread_bytes(done));
                    work.budget.charge(FIXED_SPREAD_PRICE, bytes, done);
                }
                _ => work.budget.charge(SPREAD_PRICE, 0, done),
            }
        }
        work.budget.charge_units(LEVEL_PRICE.of(0, rows) + SLICE_UNITS);
        Ok(true)
    }
}

/// Whether it costs less to decode rows that are not wanted, and to drop them, than to take each run by itself. A row has so many
/// `entries`, about.
fn is_worth_dropping(
    mixed: Mixed,
    entries: usize,
    values: &ValueDecoder,
    price: Price,
    builder: &Builder,
) -> bool {
    let Mixed { rows, wanted, runs } = mixed;
    // Of a wide value, a part may be out of reach already.
    if builder.value_width() > SLICE_BYTES {
        return false;
    }
    // What is built stays in the batch, also where nothing points to it.
    if matches!(values, ValueDecoder::DeltaByteArray(_)) && wanted < rows / 2 {
        return false;
    }
    let dropped = (rows - wanted) * entries;
    // Where stepping over a value decodes it, too, it is decoded in any case.
    let decoded = if values.skips_freely() { price.of(dropped * builder.value_width(), dropped) } else { 0 };
    runs > 1 && decoded + KEEP_PRICE.of(0, rows * entries) < u64_of(runs) * RUN_UNITS
}

/// Charges for rows, or entries, of which some were dropped.
fn charge_kept(entries: usize, decoded: Decoded, physical_type: PhysicalType, budget: &mut Budget<'_>) {
    budget.charge(KEEP_PRICE, 0, entries);
    if let PhysicalType::Int96 | PhysicalType::FixedLenByteArray(_) = physical_type {
        budget.charge(FIXED_KEEP_PRICE, decoded.bytes, decoded.values);
    }
}
