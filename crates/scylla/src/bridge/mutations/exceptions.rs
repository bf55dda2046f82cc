//! What is not like its row: the list `mutation.cells`.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Bytes, Price, Result, Segmented};
use marquetry_parquet::batch::ColumnBatch;
use marquetry_parquet::schema::PhysicalType;

use super::leaf::{LeafBuilder, Store, null_list};
use super::plan::CellLeaves;
use super::rows::{NO_ROW, Rows, ruled_out};
use super::shape::Multi;
use super::survey::{Survey, Walk};
use crate::sstable::batch::{
    Cells, Deletion, Expiry, MutationBatch, NO_DELETION_TIME, NO_TIMESTAMP, Values, number_of,
};

/// The price of a cell that is looked at, and of one that is listed.
const LOOK_PRICE: Price = Price::per_kilovalue(10 << 10);
const LIST_PRICE: Price = Price::per_kilovalue(80 << 10);
/// Cells, or exceptions, between two looks at the budget.
const SLICE: usize = 1024;

/// The definition level of an exception, and of something that it says.
const EXCEPTION: u8 = 2;
const PRESENT: u8 = 3;

/// The exceptions of a batch.
#[derive(Debug, Default)]
pub(super) struct Exceptions {
    all: Segmented<Exception>,
    /// How many each row has, and then where its next one comes in `order`. Empty if there are none.
    places: Vec<u32>,
    order: Vec<u32>,
    /// The buffers that values and paths are in.
    sources: Segmented<Bytes>,
    /// The column that is being looked at: the next cell, and the row of the one before it, if that is not in the natural columns.
    cell: usize,
    dead_of: Option<u32>,
    emitting: Option<Emitting>,
}

/// Something that is not like its row.
#[derive(Debug, Clone, Copy)]
struct Exception {
    row: u32,
    /// The name's number; [`MARKER`].
    column: u32,
    what: What,
    path: Piece,
    value: Piece,
}

/// The number of no column: of what says that a row exists.
const MARKER: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
enum What {
    /// It is alive: its write time and its expiry, if they are not the row's.
    Alive(Option<i64>, Option<Expiry>),
    /// It is deleted: its write time, if it is not the row's, and when the server deleted it.
    Dead(Option<i64>, u32),
    /// All of it was deleted, or of the row, in a way that no longer counts.
    Deletion(Deletion),
}

/// A path or a value.
#[derive(Debug, Clone, Copy)]
enum Piece {
    None,
    /// Up to 16 bytes.
    Short([u8; 16], u8),
    Shared {
        source: u32,
        start: u32,
        end: u32,
    },
}

impl Piece {
    fn short(bytes: &[u8]) -> Piece {
        let mut short = [0; 16];
        let length = bytes.len().min(16);
        short[..length].copy_from_slice(&bytes[..length]);
        Piece::Short(short, u8::try_from(length).unwrap_or_default())
    }

    fn of(source: u32, bytes: &[u8], range: Range<usize>) -> Piece {
        match bytes.get(range.clone()) {
            Some(bytes) if bytes.len() <= 16 => Piece::short(bytes),
            _ => Piece::Shared { source, start: number_of(range.start), end: number_of(range.end) },
        }
    }
}

/// A column whose cells are looked at.
pub(super) struct Looked<'a> {
    /// Its number among all names.
    pub(super) name: u32,
    pub(super) multi: Multi,
    pub(super) cells: &'a Cells,
    pub(super) values: &'a Bytes,
    pub(super) paths: &'a Bytes,
    /// Cells whose values the natural columns do not have, or not exactly.
    pub(super) raws: &'a [u32],
    /// Cells that must be listed, but for their values.
    pub(super) listed: &'a [u32],
    /// Cells that the natural columns do not have at all.
    pub(super) absent: &'a [u32],
}

impl Exceptions {
    /// What rows have besides cells: markers that are not like most cells, and shadowable deletions.
    pub(super) fn add_rows(
        &mut self,
        batch: &MutationBatch,
        rows: &Rows,
        survey: &Survey,
        budget: &mut Budget<'_>,
    ) {
        let entries = &batch.entries;
        for (at, deletion) in entries.shadowables.at.iter().zip(&entries.shadowables.values) {
            self.add(rows, rows.of(*at), MARKER, What::Deletion(*deletion), Piece::None, Piece::None);
        }
        budget.charge(LOOK_PRICE, 0, entries.shadowables.at.len());
        if !survey.has_outvoted {
            return;
        }
        let mut own = Walk::from(&entries.expiries, 0);
        for (entry, time) in entries.timestamps.iter().enumerate() {
            let number = number_of(entry);
            let expiry = own.take(number).unwrap_or(Expiry::NEVER);
            let (most, most_expiry) = (survey.times[entry], survey.expiry(entry));
            if *time == NO_TIMESTAMP || (*time == most && expiry == most_expiry) {
                continue;
            }
            let what =
                What::Alive((*time != most).then_some(*time), (expiry != most_expiry).then_some(expiry));
            self.add(rows, rows.of(number), MARKER, what, Piece::None, Piece::None);
        }
        budget.charge(LOOK_PRICE, 0, entries.timestamps.len());
    }

    /// A value of a key column that the natural columns cannot have, in these rows.
    pub(super) fn add_key(&mut self, rows: &Rows, of: Range<usize>, name: u32, value: Option<&[u8]>) {
        let value = match value {
            None => Piece::None,
            Some(value) if value.len() <= 16 => Piece::short(value),
            Some(value) => {
                let source = number_of(self.sources.len());
                self.sources.push(Bytes::copy_from_slice(value));
                Piece::Shared { source, start: 0, end: number_of(value.len()) }
            }
        };
        for row in of {
            self.add(rows, number_of(row), name, What::Alive(None, None), Piece::None, value);
        }
    }

    /// Looks at the cells of a column; false if the budget is spent first.
    pub(super) fn add_cells(
        &mut self,
        column: &Looked<'_>,
        batch: &MutationBatch,
        rows: &Rows,
        survey: &Survey,
        budget: &mut Budget<'_>,
    ) -> bool {
        let cells = column.cells;
        let has_any = survey.has_outvoted
            || column.multi == Multi::List
            || !cells.timestamps.is_empty()
            || !cells.expiries.is_empty()
            || !cells.tombstones.is_empty()
            || !column.raws.is_empty()
            || !column.listed.is_empty()
            || !column.absent.is_empty();
        if self.cell == 0 {
            for (at, deletion) in cells.deletions.at.iter().zip(&cells.deletions.values) {
                self.add(
                    rows,
                    rows.of(*at),
                    column.name,
                    What::Deletion(*deletion),
                    Piece::None,
                    Piece::None,
                );
            }
            budget.charge(LIST_PRICE, 0, cells.deletions.at.len());
        }
        if !has_any {
            return true;
        }
        let sources = number_of(self.sources.len());
        if self.cell == 0 {
            self.sources.push(column.values.clone());
            self.sources.push(column.paths.clone());
        }
        let sources = if self.cell == 0 { sources } else { sources - 2 };
        while self.cell < cells.len() {
            let end = cells.len().min(self.cell + SLICE);
            let before = self.all.len();
            self.add_slice(column, batch, rows, survey, end, sources);
            budget.charge(LOOK_PRICE, 0, end - self.cell);
            budget.charge(LIST_PRICE, 0, self.all.len() - before);
            self.cell = end;
            if budget.is_spent() && end < cells.len() {
                return false;
            }
        }
        (self.cell, self.dead_of) = (0, None);
        true
    }

    fn add_slice(
        &mut self,
        column: &Looked<'_>,
        batch: &MutationBatch,
        rows: &Rows,
        survey: &Survey,
        end: usize,
        sources: u32,
    ) {
        let cells = column.cells;
        let start = self.cell;
        let mut times = Walk::from(&cells.timestamps, start);
        let mut expiries = Walk::from(&cells.expiries, start);
        let mut tombstones = Walk::from(&cells.tombstones, start);
        let mut raws = Numbers::from(column.raws, start);
        let mut listed = Numbers::from(column.listed, start);
        let mut absent = Numbers::from(column.absent, start);
        let mut empties = Numbers::from(&cells.empties, start);
        for cell in start..end {
            let number = number_of(cell);
            let entry_number = cells.entries[cell];
            let entry = usize_of_u32(entry_number);
            let time = times.take(number).unwrap_or_else(|| batch.entries.timestamps[entry]);
            let time = (time != survey.times[entry]).then_some(time);
            let own_expiry = expiries.take(number);
            let local_deletion = tombstones.take(number);
            let is_absent = absent.take(number);
            let (is_raw, is_listed) = (raws.take(number) || is_absent, listed.take(number));
            let is_empty = empties.take(number);
            let path = || match column.multi {
                Multi::No => Piece::None,
                _ => Piece::of(sources + 1, column.paths, cells.paths.range(cell).unwrap_or_default()),
            };
            if let Some(local_deletion) = local_deletion {
                let what = What::Dead(time, local_deletion);
                self.add(rows, rows.of(entry_number), column.name, what, path(), Piece::None);
                self.dead_of = Some(entry_number);
                continue;
            }
            let expiry = if survey.expiries.is_empty() {
                None
            } else {
                let own =
                    own_expiry.or_else(|| batch.entries.expiries.get(entry_number)).unwrap_or(Expiry::NEVER);
                (own != survey.expiry(entry)).then_some(own)
            };
            let follows_dead = self.dead_of.take() == Some(entry_number) && column.multi != Multi::No;
            let is_like_row = time.is_none() && expiry.is_none();
            if is_like_row && !is_raw && !is_listed && !follows_dead && column.multi != Multi::List {
                continue;
            }
            if is_absent {
                // What is listed next says where it belongs, as for a deleted cell.
                self.dead_of = Some(entry_number);
            }
            let value = if is_raw { raw(column, cell, is_empty, sources) } else { Piece::None };
            self.add(rows, rows.of(entry_number), column.name, What::Alive(time, expiry), path(), value);
        }
    }

    fn add(&mut self, rows: &Rows, row: u32, column: u32, what: What, path: Piece, value: Piece) {
        if row == NO_ROW {
            return;
        }
        if self.places.is_empty() {
            self.places.resize(rows.count, 0);
        }
        if let Some(count) = self.places.get_mut(usize_of_u32(row)) {
            *count += 1;
        }
        self.all.push(Exception { row, column, what, path, value });
    }

    /// The columns of the list; `None` if the budget is spent first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for what the statistics of the SSTables rule out.
    pub(super) fn finish(
        &mut self,
        leaves: &CellLeaves,
        names: &[Bytes],
        rows: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Vec<ColumnBatch>>> {
        if self.emitting.is_none() {
            if self.all.is_empty() {
                let levels = alloc::vec![0; rows].into();
                budget.charge(LOOK_PRICE, rows, leaves.count());
                let made = leaves.all().map(|(leaf, physical)| null_list(leaf, &levels, physical)).collect();
                return Ok(Some(made));
            }
            self.begin(leaves, names, budget)?;
        }
        let Some(emitting) = &mut self.emitting else { return Ok(None) };
        while emitting.placed < self.all.len() {
            let end = self.all.len().min(emitting.placed + SLICE);
            for (number, exception) in self.all.iter_from(emitting.placed).take(SLICE).enumerate() {
                let Some(place) = self.places.get_mut(usize_of_u32(exception.row)) else { continue };
                if let Some(order) = self.order.get_mut(usize_of_u32(*place)) {
                    *order = number_of(emitting.placed + number);
                }
                *place += 1;
            }
            budget.charge(LOOK_PRICE, 0, end - emitting.placed);
            emitting.placed = end;
            if budget.is_spent() {
                return Ok(None);
            }
        }
        while emitting.next < self.order.len() {
            let end = self.order.len().min(emitting.next + SLICE);
            for number in &self.order[emitting.next..end] {
                if let Some(exception) = self.all.get(usize_of_u32(*number)) {
                    emitting.add(exception, &self.sources)?;
                }
            }
            budget.charge(LIST_PRICE, core::mem::take(&mut emitting.copied), end - emitting.next);
            emitting.next = end;
            if budget.is_spent() && end < self.order.len() {
                return Ok(None);
            }
        }
        let made = emitting.finish(leaves, rows)?;
        budget.charge(LOOK_PRICE, rows, leaves.count());
        *self = Exceptions::default();
        Ok(Some(made))
    }

    /// From how many exceptions each row has to where they begin.
    fn begin(&mut self, leaves: &CellLeaves, names: &[Bytes], budget: &mut Budget<'_>) -> Result<()> {
        let mut next = 0;
        for place in &mut self.places {
            next += core::mem::replace(place, next);
        }
        self.order.resize(self.all.len(), 0);
        budget.charge(LOOK_PRICE, self.all.len(), self.places.len());
        self.emitting = Some(Emitting::new(leaves, names, self.all.len() + self.places.len())?);
        Ok(())
    }
}

/// The columns that are being filled.
#[derive(Debug)]
struct Emitting {
    placed: usize,
    next: usize,
    /// The row of the last exception.
    row: Option<u32>,
    /// Bytes of strings since the last charge.
    copied: usize,
    column: LeafBuilder,
    path: Option<LeafBuilder>,
    write_time: Option<LeafBuilder>,
    ttl: Option<LeafBuilder>,
    expires_at: Option<LeafBuilder>,
    local_deletion_time: Option<LeafBuilder>,
    deleted_at: Option<LeafBuilder>,
    value: LeafBuilder,
    names: Vec<Bytes>,
}

impl Emitting {
    fn new(leaves: &CellLeaves, names: &[Bytes], entries: usize) -> Result<Emitting> {
        let new = |physical: PhysicalType| -> Result<LeafBuilder> {
            let mut leaf = LeafBuilder::new(physical, PRESENT, true);
            leaf.reserve(entries)?;
            Ok(leaf)
        };
        let optional = |leaf: Option<usize>, physical| leaf.map(|_| new(physical)).transpose();
        let mut column = new(PhysicalType::ByteArray)?;
        column.set_buffers(names);
        Ok(Emitting {
            placed: 0,
            next: 0,
            row: None,
            copied: 0,
            column,
            path: optional(leaves.path, PhysicalType::ByteArray)?,
            write_time: optional(leaves.write_time, PhysicalType::Int64)?,
            ttl: optional(leaves.ttl, PhysicalType::Int32)?,
            expires_at: optional(leaves.expires_at, PhysicalType::Int64)?,
            local_deletion_time: optional(leaves.local_deletion_time, PhysicalType::Int64)?,
            deleted_at: optional(leaves.deleted_at, PhysicalType::Int64)?,
            value: new(PhysicalType::ByteArray)?,
            names: names.to_vec(),
        })
    }

    fn builders(&mut self) -> impl Iterator<Item = &mut LeafBuilder> {
        [Some(&mut self.column)]
            .into_iter()
            .chain([
                self.path.as_mut(),
                self.write_time.as_mut(),
                self.ttl.as_mut(),
                self.expires_at.as_mut(),
                self.local_deletion_time.as_mut(),
                self.deleted_at.as_mut(),
            ])
            .chain([Some(&mut self.value)])
            .flatten()
    }

    fn add(&mut self, exception: &Exception, sources: &Segmented<Bytes>) -> Result<()> {
        let repetition = u8::from(self.row == Some(exception.row));
        let next_row = self.row.map_or(0, |row| usize_of_u32(row) + 1);
        let gap = usize_of_u32(exception.row).saturating_sub(next_row);
        if repetition == 0 && gap > 0 {
            self.builders().for_each(|leaf| leaf.push_nulls(0, gap));
        }
        self.row = Some(exception.row);
        match self.names.get(usize_of_u32(exception.column)) {
            Some(name) => {
                self.column.values.push_view(name, exception.column, 0);
                self.column.close(repetition);
            }
            None => self.column.push_null(EXCEPTION, repetition),
        }
        let (mut time, mut expiry, mut local, mut deleted_at) = (None, None, None, None);
        match exception.what {
            What::Alive(own_time, own_expiry) => (time, expiry) = (own_time, own_expiry),
            What::Dead(own_time, local_deletion) => (time, local) = (own_time, Some(local_deletion)),
            What::Deletion(deletion) => {
                (local, deleted_at) = (Some(deletion.local_deletion), Some(deletion.timestamp));
            }
        }
        number(&mut self.write_time, time, repetition, "one write time")?;
        let expires_at = expiry.map(|expiry| expiry.local_deletion).filter(|at| *at != NO_DELETION_TIME);
        number(&mut self.expires_at, expires_at.map(i64::from), repetition, "no TTL")?;
        number(&mut self.local_deletion_time, local.map(i64::from), repetition, "no deletion")?;
        number(&mut self.deleted_at, deleted_at, repetition, "no deletion")?;
        match (&mut self.ttl, expiry) {
            (Some(leaf), Some(expiry)) => {
                if let Store::Int32(values) = &mut leaf.values {
                    // TTLs have 31 bits.
                    values.push(i32::try_from(expiry.ttl).unwrap_or(i32::MAX));
                }
                leaf.close(repetition);
            }
            (Some(leaf), None) => leaf.push_null(EXCEPTION, repetition),
            (None, Some(_)) => return Err(ruled_out("no TTL")),
            (None, None) => {}
        }
        if let Some(leaf) = &mut self.path {
            piece(leaf, exception.path, sources, repetition, &mut self.copied);
        }
        piece(&mut self.value, exception.value, sources, repetition, &mut self.copied);
        Ok(())
    }

    fn finish(&mut self, leaves: &CellLeaves, rows: usize) -> Result<Vec<ColumnBatch>> {
        let gap = rows - self.row.map_or(0, |row| usize_of_u32(row) + 1).min(rows);
        let numbers = leaves.all().map(|(leaf, _)| leaf);
        let mut made = Vec::new();
        for (builder, leaf) in self.builders().zip(numbers) {
            builder.push_nulls(0, gap);
            made.push(builder.finish(leaf, rows)?);
        }
        Ok(made)
    }
}

fn number(
    leaf: &mut Option<LeafBuilder>,
    value: Option<i64>,
    repetition: u8,
    says: &'static str,
) -> Result<()> {
    match (leaf, value) {
        (Some(leaf), Some(value)) => {
            if let Store::Int64(values) = &mut leaf.values {
                values.push(value);
            }
            leaf.close(repetition);
        }
        (Some(leaf), None) => leaf.push_null(EXCEPTION, repetition),
        (None, Some(_)) => return Err(ruled_out(says)),
        (None, None) => {}
    }
    Ok(())
}

fn piece(
    leaf: &mut LeafBuilder,
    piece: Piece,
    sources: &Segmented<Bytes>,
    repetition: u8,
    copied: &mut usize,
) {
    match piece {
        Piece::None => return leaf.push_null(EXCEPTION, repetition),
        Piece::Short(bytes, length) => leaf.values.push_bytes(&bytes[..usize::from(length)], None),
        Piece::Shared { source, start, end } => {
            let range = usize_of_u32(start)..usize_of_u32(end);
            let source = sources.get(usize_of_u32(source)).filter(|source| range.end <= source.len());
            let bytes = source.map(|source| source.slice(range)).unwrap_or_default();
            *copied += bytes.len().min(4 << 10);
            leaf.values.push_bytes(&bytes, Some(&bytes));
        }
    }
    leaf.close(repetition);
}

/// The bytes of a value.
fn raw(column: &Looked<'_>, cell: usize, is_empty: bool, sources: u32) -> Piece {
    if is_empty {
        return Piece::short(&[]);
    }
    match &column.cells.values {
        Values::Strings(strings) => {
            Piece::of(sources, column.values, strings.range(cell).unwrap_or_default())
        }
        numbers => {
            let mut bytes = Vec::new();
            numbers.append_bytes(cell, &mut bytes);
            Piece::short(&bytes)
        }
    }
}

/// A walk along numbers of cells, beside one along all cells.
struct Numbers<'a>(&'a [u32]);

impl<'a> Numbers<'a> {
    fn from(numbers: &'a [u32], cell: usize) -> Numbers<'a> {
        let skipped = numbers.partition_point(|at| usize_of_u32(*at) < cell);
        Numbers(numbers.get(skipped..).unwrap_or_default())
    }

    #[inline]
    fn take(&mut self, cell: u32) -> bool {
        match self.0 {
            [at, later @ ..] if *at == cell => {
                self.0 = later;
                true
            }
            _ => false,
        }
    }
}
