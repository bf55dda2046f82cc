//! The natural columns of a column of the table that has cells.

use alloc::vec::Vec;
use core::mem;

use marquetry_base::cast::{bits_u32, bits_u64, u64_of, usize_of_u32};
use marquetry_base::{Budget, Bytes, Error, Price, Result};
use marquetry_kernels::{strings, utf8};
use marquetry_parquet::batch::{ByteArrays, ColumnBatch, FixedBytes, Values as Parquet};

use super::decode::{Decoder, Effort, Found, Progress};
use super::leaf::{LeafBuilder, Source, bits_of, flat, validity_of};
use super::plan::ColumnPlan;
use super::rows::{NO_ROW, Rows};
use super::shape::{Form, Kind, Multi, Shapes};
use crate::sstable::batch::{Cells, Values, number_of};

/// The price of a value that is passed on in its array.
const PASS_PRICE: Price = Price::per_kilovalue(4 << 10);
/// The price of a value or element that is read.
const READ_PRICE: Price = Price::per_kilovalue(30 << 10);
/// The price of text that is checked.
const TEXT_PRICE: Price = Price::per_kib(80);
/// Elements that are read between two looks at the budget; and bytes of text.
const SLICE_ELEMENTS: usize = 512;
const SLICE_BYTES: usize = 128 << 10;
/// Bytes of an array of text that are checked at once, and not value by value.
const CHARACTER_BYTES: usize = 4;

/// A column of the table on its way to Parquet.
#[derive(Debug)]
pub(super) struct Filling {
    way: Way,
    /// Cells whose values are not in the natural columns, or not exactly.
    pub(super) raws: Vec<u32>,
    /// Cells whose paths are not in them.
    pub(super) listed: Vec<u32>,
    /// Cells that are not in the natural columns at all: their paths cannot be there.
    pub(super) absent: Vec<u32>,
    /// Values that the natural columns have null for, or lack, because they cannot hold them.
    pub(super) lost: u64,
    /// Bytes of values and of paths.
    pub(super) values: Bytes,
    pub(super) paths: Bytes,
}

#[derive(Debug)]
enum Way {
    /// The array is passed on. Of text, what is before this byte is UTF-8.
    Array { checked: usize },
    /// Value by value.
    Values(Reading),
}

/// A column that is read value by value.
#[derive(Debug)]
struct Reading {
    leaves: Vec<LeafBuilder>,
    decoder: Decoder,
    cell: usize,
    /// Rows that are complete.
    rows: usize,
    /// The row that cells are being added to.
    open: Option<Open>,
    /// A value that is not read completely, and the row it is of.
    within: Option<(usize, Phase)>,
    /// Values that the leaves cannot hold.
    lost: u64,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    row: usize,
    /// Its first cell.
    first: usize,
    /// A key of it is inexact. Then all its cells are listed, because it may be the same in the natural column as another one.
    lists_all: bool,
    /// Elements so far; of a user-defined type, fields.
    elements: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Of the key of a map.
    Key,
    Value,
}

impl Filling {
    /// Begins with a column. Bytes of its strings are shared from now on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) for more bytes than views can point into.
    pub(super) fn new(plan: &ColumnPlan, cells: &mut Cells) -> Result<Filling> {
        let values = match &mut cells.values {
            Values::Strings(strings) => Bytes::from(mem::take(&mut strings.bytes)),
            _ => Bytes::new(),
        };
        let paths = Bytes::from(mem::take(&mut cells.paths.bytes));
        for bytes in [&values, &paths] {
            Source { bytes, buffer: 0 }.check()?;
        }
        let is_array = plan.multi == Multi::No
            && matches!(
                (plan.shapes.leaf(), &cells.values),
                (Some(Kind::Int | Kind::Float), Values::Four(_))
                    | (Some(Kind::Bigint | Kind::Timestamp | Kind::Double), Values::Eight(_))
                    | (Some(Kind::Uuid), Values::Sixteen(_))
                    | (Some(Kind::Boolean), Values::One(_))
                    | (Some(Kind::Text | Kind::Bytes), Values::Strings(_))
            );
        let way = match is_array {
            true => Way::Array { checked: 0 },
            false => Way::Values(Reading::new(plan, cells, &values, &paths)?),
        };
        let (raws, listed, absent) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Filling { way, raws, listed, absent, lost: 0, values, paths })
    }

    /// Goes on; the columns once they are complete, `None` if the budget is spent first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for fields of a user-defined type that are not in order.
    pub(super) fn step(
        &mut self,
        plan: &ColumnPlan,
        cells: &mut Cells,
        rows: &Rows,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Vec<ColumnBatch>>> {
        if let Way::Array { checked } = &mut self.way {
            if plan.shapes.leaf() == Some(Kind::Text) {
                match check_text(&self.values, checked, budget) {
                    None => return Ok(None),
                    Some(true) if are_characters(cells, &self.values, budget) => {}
                    Some(_) => {
                        let reading = Reading::new(plan, cells, &self.values, &self.paths)?;
                        self.way = Way::Values(reading);
                        return self.step(plan, cells, rows, budget);
                    }
                }
            }
            budget.charge(PASS_PRICE, 0, cells.len() + 16);
            return Ok(Some(alloc::vec![self.pass_on(plan, cells, rows)]));
        }
        let Filling { way: Way::Values(reading), raws, listed, absent, lost, values, paths } = self else {
            return Err(Error::internal("a column in two ways"));
        };
        let sources = Sources {
            values: Source { bytes: values, buffer: 0 },
            paths: Source { bytes: paths, buffer: 1 },
        };
        let mut notes = Notes { raws, listed, absent };
        if !reading.run(plan, cells, rows, sources, &mut notes, budget)? {
            return Ok(None);
        }
        *lost = reading.lost;
        reading.finish(plan, rows.count, budget).map(Some)
    }

    /// The array of a simple column, without what is not alive.
    fn pass_on(&mut self, plan: &ColumnPlan, cells: &mut Cells, rows: &Rows) -> ColumnBatch {
        let gone = merged(&cells.tombstones.at, &cells.empties);
        // A value of no bytes is nothing that a number's column can hold.
        self.raws.clone_from(&cells.empties);
        let is_alive = |cell: &&u32| cells.tombstones.at.binary_search(cell).is_err();
        self.lost = u64_of(cells.empties.iter().filter(is_alive).count());
        let is_float = matches!(plan.shapes.leaf(), Some(Kind::Float | Kind::Double));
        let is_string = matches!(cells.values, Values::Strings(_));
        let values: Parquet = match &mut cells.values {
            Values::Four(values) => {
                let values = without(mem::take(values), &gone);
                match is_float {
                    true => values
                        .into_iter()
                        .map(|bits| f32::from_bits(bits_u32(bits)))
                        .collect::<Vec<_>>()
                        .into(),
                    false => values.into(),
                }
            }
            Values::Eight(values) => {
                let values = without(mem::take(values), &gone);
                match is_float {
                    true => values
                        .into_iter()
                        .map(|bits| f64::from_bits(bits_u64(bits)))
                        .collect::<Vec<_>>()
                        .into(),
                    false => values.into(),
                }
            }
            Values::Sixteen(values) => {
                let values = without(mem::take(values), &gone);
                let count = values.len();
                Parquet::FixedLenByteArray(FixedBytes::new(16, count, values.into_flattened().into()))
            }
            Values::One(values) => {
                let odd = values.iter().enumerate().filter(|(_, value)| **value > 1);
                let odd: Vec<u32> = odd.map(|(cell, _)| number_of(cell)).collect();
                self.raws = merged(&self.raws, &odd);
                Parquet::Boolean(bits_of(&without(values.clone(), &gone)))
            }
            Values::Strings(strings) => {
                let mut views = Vec::with_capacity(strings.ends.len() - gone.len().min(strings.ends.len()));
                let (mut start, mut gone) = (0, gone.iter().copied().peekable());
                for (cell, end) in strings.ends.iter().enumerate() {
                    if gone.peek().is_some_and(|gone| usize_of_u32(*gone) == cell) {
                        gone.next();
                    } else {
                        let range = usize_of_u32(start)..usize_of_u32(*end);
                        views.push(strings::view(self.values.get(range).unwrap_or_default(), 0, start));
                    }
                    start = *end;
                }
                let buffers = alloc::vec![self.values.clone()];
                Parquet::ByteArray(ByteArrays::new(views.into(), buffers.into()))
            }
            Values::None(_) => Parquet::ByteArray(ByteArrays::default()),
        };
        debug_assert!(is_string || values.len() + gone.len() == cells.entries.len());
        let mut gone = gone.into_iter().peekable();
        let alive = cells.entries.iter().enumerate().filter_map(|(cell, entry)| {
            let is_gone = gone.next_if(|gone| usize_of_u32(*gone) == cell).is_some();
            (!is_gone).then(|| rows.of(*entry))
        });
        flat(plan.first_leaf, rows.count, values, || validity_of(rows.count, alive))
    }
}

/// Looks whether all of it is UTF-8. `None` if the budget is spent first.
pub(super) fn check_text(bytes: &[u8], checked: &mut usize, budget: &mut Budget<'_>) -> Option<bool> {
    while *checked < bytes.len() {
        let mut end = bytes.len().min(*checked + SLICE_BYTES);
        if end < bytes.len() {
            let begins = |back: &usize| bytes.get(end - back).is_some_and(|byte| utf8::is_boundary(*byte));
            end -= (0..CHARACTER_BYTES).find(begins).unwrap_or(0);
        }
        budget.charge(TEXT_PRICE, end - *checked, 1);
        if !utf8::valid(&bytes[*checked..end]) {
            return Some(false);
        }
        *checked = end;
        if budget.is_spent() && end < bytes.len() {
            return None;
        }
    }
    Some(true)
}

/// Whether each value begins with a character, if all of them together are UTF-8.
fn are_characters(cells: &Cells, bytes: &[u8], budget: &mut Budget<'_>) -> bool {
    let Values::Strings(strings) = &cells.values else { return false };
    budget.charge(PASS_PRICE, 0, strings.len());
    strings.ends.iter().all(|end| bytes.get(usize_of_u32(*end)).is_none_or(|byte| utf8::is_boundary(*byte)))
}

/// Ascending numbers of both lists.
pub(super) fn merged(one: &[u32], other: &[u32]) -> Vec<u32> {
    if one.is_empty() || other.is_empty() {
        return [one, other].concat();
    }
    let mut all = [one, other].concat();
    all.sort_unstable();
    all.dedup();
    all
}

/// Values but those with these numbers, which ascend.
pub(super) fn without<T: Copy>(mut values: Vec<T>, gone: &[u32]) -> Vec<T> {
    let Some(first) = gone.first() else { return values };
    let mut to = usize_of_u32(*first).min(values.len());
    for (number, at) in gone.iter().enumerate() {
        let from = values.len().min(usize_of_u32(*at) + 1);
        let end = gone.get(number + 1).map_or(values.len(), |next| usize_of_u32(*next).min(values.len()));
        if from < end {
            values.copy_within(from..end, to);
            to += end - from;
        }
    }
    values.truncate(to);
    values
}

#[derive(Clone, Copy)]
struct Sources<'a> {
    values: Source<'a>,
    paths: Source<'a>,
}

struct Notes<'a> {
    raws: &'a mut Vec<u32>,
    listed: &'a mut Vec<u32>,
    absent: &'a mut Vec<u32>,
}

impl Reading {
    fn new(plan: &ColumnPlan, cells: &Cells, values: &Bytes, paths: &Bytes) -> Result<Reading> {
        let leaves = plan.shapes.leaves.iter().map(|leaf| {
            let mut builder = LeafBuilder::new(leaf.kind.physical(), leaf.definition, leaf.repetition > 0);
            builder.set_buffers(&[values.clone(), paths.clone()]);
            builder.reserve(cells.len()).map(|()| builder)
        });
        Ok(Reading {
            leaves: leaves.collect::<Result<_>>()?,
            decoder: Decoder::default(),
            cell: 0,
            rows: 0,
            open: None,
            within: None,
            lost: 0,
        })
    }

    /// Reads cells until the budget is spent: then false.
    fn run(
        &mut self,
        plan: &ColumnPlan,
        cells: &Cells,
        rows: &Rows,
        sources: Sources<'_>,
        notes: &mut Notes<'_>,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let mut dead = cells.tombstones.at.partition_point(|at| usize_of_u32(*at) < self.cell);
        let mut empty = cells.empties.partition_point(|at| usize_of_u32(*at) < self.cell);
        loop {
            let mut work = Effort::new(SLICE_ELEMENTS);
            while work.is_left() && self.cell < cells.len() {
                let number = number_of(self.cell);
                if self.within.is_none() {
                    work.take(1);
                    if cells.tombstones.at.get(dead) == Some(&number) {
                        dead += 1;
                        self.cell += 1;
                        continue;
                    }
                    let row = rows.of(cells.entries[self.cell]);
                    if row == NO_ROW {
                        self.cell += 1;
                        continue;
                    }
                    self.open_row(plan, usize_of_u32(row));
                }
                let is_empty = cells.empties.get(empty) == Some(&number);
                if !self.cell(plan, cells, is_empty, sources, notes, &mut work)? {
                    break;
                }
                empty += usize::from(is_empty);
                self.cell += 1;
            }
            budget.charge(READ_PRICE, 0, work.done());
            if self.cell == cells.len() {
                return Ok(true);
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }

    /// Makes this row the one that cells are added to.
    fn open_row(&mut self, plan: &ColumnPlan, row: usize) {
        if self.open.is_some_and(|open| open.row == row) {
            return;
        }
        self.close_row(plan);
        let gap = row.saturating_sub(self.rows);
        for leaf in &mut self.leaves {
            leaf.push_nulls(0, gap);
        }
        self.rows += gap;
        self.open = Some(Open { row, first: self.cell, lists_all: false, elements: 0 });
    }

    fn close_row(&mut self, plan: &ColumnPlan) {
        let Some(open) = self.open.take() else { return };
        self.rows = open.row + 1;
        match &plan.shapes.root().form {
            Form::Fields(fields) if plan.multi == Multi::User => {
                null_fields(&mut self.leaves, &plan.shapes, fields.get(open.elements..).unwrap_or_default());
            }
            _ if open.elements == 0 => self.leaves.iter_mut().for_each(|leaf| leaf.push_null(0, 0)),
            _ => {}
        }
    }

    /// Reads a cell, or goes on with it. False if there is more of it.
    fn cell(
        &mut self,
        plan: &ColumnPlan,
        cells: &Cells,
        is_empty: bool,
        sources: Sources<'_>,
        notes: &mut Notes<'_>,
        work: &mut Effort,
    ) -> Result<bool> {
        let mut number = [0; 16];
        let (value, range) = match &cells.values {
            Values::Strings(strings) => (sources.values, strings.range(self.cell).unwrap_or_default()),
            _ if is_empty => (sources.values, 0..0),
            numbers => {
                let length = number_bytes(numbers, self.cell, &mut number);
                (Source { bytes: &number, buffer: 0 }, 0..length)
            }
        };
        let Some(open) = self.open else { return Err(Error::internal("a cell of no row")) };
        let shapes = &plan.shapes;
        let at = number_of(self.cell);
        match (plan.multi, &shapes.root().form) {
            (Multi::List, Form::List(element)) => {
                let repetition = if open.elements == 0 { 0 } else { shapes.nodes[*element].repetition };
                let found = self.read(shapes, *element, value, range, repetition, Phase::Value, work);
                let Some(found) = found else { return Ok(false) };
                self.value_or_null(shapes, *element, repetition, found, at, notes);
                self.count();
            }
            (Multi::Set, Form::List(element)) => {
                let repetition = if open.elements == 0 { 0 } else { shapes.nodes[*element].repetition };
                let path = cells.paths.range(self.cell).unwrap_or_default();
                let found = self.read(shapes, *element, sources.paths, path, repetition, Phase::Key, work);
                let Some(found) = found else { return Ok(false) };
                match found {
                    Found::Nothing => notes.absent.push(at),
                    found => self.note_key(found, at, notes),
                }
                // A set's cells have no values.
                if !range.is_empty() {
                    notes.raws.push(at);
                }
                if found != Found::Nothing {
                    self.count();
                }
            }
            (Multi::Map, Form::Map(key, element)) => {
                let repetition = if open.elements == 0 { 0 } else { shapes.nodes[*key].repetition };
                if self.within.is_none_or(|(_, phase)| phase == Phase::Key) {
                    let path = cells.paths.range(self.cell).unwrap_or_default();
                    let found = self.read(shapes, *key, sources.paths, path, repetition, Phase::Key, work);
                    match found {
                        None => return Ok(false),
                        Some(Found::Nothing) => {
                            notes.absent.push(at);
                            return Ok(true);
                        }
                        Some(found) => self.note_key(found, at, notes),
                    }
                }
                let found = self.read(shapes, *element, value, range, repetition, Phase::Value, work);
                let Some(found) = found else { return Ok(false) };
                self.value_or_null(shapes, *element, repetition, found, at, notes);
                self.count();
            }
            (Multi::User, Form::Fields(fields)) => {
                let path = cells.paths.range(self.cell).and_then(|range| sources.paths.bytes.get(range));
                let field =
                    path.and_then(|path| path.try_into().ok()).map(u16::from_be_bytes).map(usize::from);
                let Some((field, node)) = field.and_then(|field| Some((field, *fields.get(field)?))) else {
                    // Not a field of the type, as far as it is known.
                    notes.absent.push(at);
                    self.lost += 1;
                    return Ok(true);
                };
                if self.within.is_none() {
                    let Some(skipped) = fields.get(open.elements..field) else {
                        return Err(Error::corrupt("fields of a user-defined type that are not in order"));
                    };
                    null_fields(&mut self.leaves, shapes, skipped);
                }
                let found = self.read(shapes, node, value, range, 0, Phase::Value, work);
                if let Some(open) = &mut self.open {
                    open.elements = if found.is_some() { field + 1 } else { field };
                }
                let Some(found) = found else { return Ok(false) };
                self.value_or_null(shapes, node, 0, found, at, notes);
            }
            // A type without fields.
            (Multi::User, _) => notes.absent.push(at),
            _ => {
                let found = self.read(shapes, 0, value, range, 0, Phase::Value, work);
                let Some(found) = found else { return Ok(false) };
                self.value_or_null(shapes, 0, 0, found, at, notes);
                self.count();
            }
        }
        Ok(true)
    }

    /// Notes what must be listed as this cell's key is exact or not.
    fn note_key(&mut self, found: Found, at: u32, notes: &mut Notes<'_>) {
        let Some(open) = &mut self.open else { return };
        if found == Found::Inexact && !open.lists_all {
            open.lists_all = true;
            notes.listed.extend(number_of(open.first)..at);
        }
        if open.lists_all {
            notes.listed.push(at);
        }
    }

    fn count(&mut self) {
        if let Some(open) = &mut self.open {
            open.elements += 1;
        }
    }

    /// Begins to read a value, or goes on with it; `None` if there is more of it.
    #[expect(clippy::too_many_arguments, reason = "where a value is, and where it goes")]
    #[inline]
    fn read(
        &mut self,
        shapes: &Shapes,
        node: usize,
        source: Source<'_>,
        range: core::ops::Range<usize>,
        repetition: u8,
        phase: Phase,
        work: &mut Effort,
    ) -> Option<Found> {
        let progress = match self.within {
            Some((within, of)) if (within, of) == (node, phase) => {
                self.decoder.run(shapes, source, &mut self.leaves, work)
            }
            _ => self.decoder.begin(shapes, node, source, range, repetition, &mut self.leaves, work),
        };
        match progress {
            Progress::Done(found) => {
                self.within = None;
                self.lost += self.decoder.lost(found);
                Some(found)
            }
            Progress::More => {
                self.within = Some((node, phase));
                None
            }
        }
    }

    /// Notes what a value is not exactly, and adds a null for one that is nothing.
    fn value_or_null(
        &mut self,
        shapes: &Shapes,
        node: usize,
        repetition: u8,
        found: Found,
        cell: u32,
        notes: &mut Notes<'_>,
    ) {
        if found == Found::Exact {
            return;
        }
        notes.raws.push(cell);
        if found == Found::Nothing {
            let shape = &shapes.nodes[node];
            for leaf in &mut self.leaves[shape.leaves.clone()] {
                leaf.push_null(shape.definition - 1, repetition);
            }
        }
    }

    fn finish(
        &mut self,
        plan: &ColumnPlan,
        rows: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Vec<ColumnBatch>> {
        self.close_row(plan);
        let gap = rows.saturating_sub(self.rows);
        let mut made = Vec::new();
        for (number, leaf) in self.leaves.iter_mut().enumerate() {
            leaf.push_nulls(0, gap);
            budget.charge(PASS_PRICE, 0, leaf.entries() / 8);
            made.push(leaf.finish(plan.first_leaf + number, rows)?);
        }
        Ok(made)
    }
}

fn null_fields(leaves: &mut [LeafBuilder], shapes: &Shapes, fields: &[usize]) {
    for field in fields {
        let shape = &shapes.nodes[*field];
        for leaf in &mut leaves[shape.leaves.clone()] {
            leaf.push_null(shape.definition - 1, 0);
        }
    }
}

/// The bytes of a number, and how many they are.
#[inline]
pub(super) fn number_bytes(values: &Values, at: usize, bytes: &mut [u8; 16]) -> usize {
    match values {
        Values::One(values) => {
            bytes[0] = values.get(at).copied().unwrap_or_default();
            1
        }
        Values::Four(values) => {
            bytes[..4].copy_from_slice(&values.get(at).copied().unwrap_or_default().to_be_bytes());
            4
        }
        Values::Eight(values) => {
            bytes[..8].copy_from_slice(&values.get(at).copied().unwrap_or_default().to_be_bytes());
            8
        }
        Values::Sixteen(values) => {
            *bytes = values.get(at).copied().unwrap_or_default();
            16
        }
        Values::None(_) | Values::Strings(_) => 0,
    }
}
