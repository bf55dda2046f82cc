//! Rows on their way to the cluster: cells as the native protocol holds them, one after the other.

use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::{Error, Result, cast};
use marquetry_scylla::bridge::{Cell, MappedBatch, Mapping, Nulls};
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;

/// Some rows, and the object that they are from.
#[derive(Debug)]
pub(crate) struct Block {
    object: Arc<str>,
    bytes: Bytes,
    rows: Vec<RowStart>,
    /// They have only cells of the partition key and of static columns.
    is_static: bool,
}

#[derive(Debug, Clone, Copy)]
struct RowStart {
    /// The row's number in its object.
    number: u64,
    start: usize,
}

impl Block {
    /// Rows that lie end to end: the number of each, and where it begins.
    pub(crate) fn of(object: Arc<str>, bytes: Bytes, rows: impl IntoIterator<Item = (u64, usize)>) -> Block {
        let rows = rows.into_iter().map(|(number, start)| RowStart { number, start }).collect();
        Block { object, bytes, rows, is_static: false }
    }

    /// The name of the object.
    pub(crate) fn object(&self) -> &Arc<str> {
        &self.object
    }

    /// Whether the rows have only cells of the partition key and of static columns.
    pub(crate) fn is_static(&self) -> bool {
        self.is_static
    }

    /// The rows: number and cells.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, Bytes)> + '_ {
        let ends = self.rows.iter().skip(1).map(|row| row.start).chain([self.bytes.len()]);
        self.rows.iter().zip(ends).map(|(row, end)| (row.number, self.bytes.slice(row.start..end)))
    }
}

/// Rows of a block: enough to make handing it to another thread cheap.
pub(crate) const BLOCK_ROWS: usize = 1024;
/// Bytes of a block, but for what the last row has more: a few of them are a small part of any program's memory.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
/// The bytes of a cell's length, which stands before its value.
const LENGTH_BYTES: usize = 4;
/// The length of a null.
const NULL: i32 = -1;
/// The longest partition key in bytes: its length has 16 bits in both servers.
const PARTITION_KEY_BYTES_MAX: usize = 65_535;
/// What a component of a composite partition key has beside its bytes: a length and a separator.
const COMPONENT_BYTES: usize = 3;

/// Makes blocks of rows.
#[derive(Debug)]
pub(crate) struct Filling {
    rules: Rules,
    bytes: Vec<u8>,
    rows: Vec<RowStart>,
    is_static: bool,
}

impl Filling {
    pub(crate) fn new(mapping: &Mapping, row_bytes_max: usize) -> Filling {
        let rules = Rules::new(mapping, row_bytes_max);
        Filling { rules, bytes: Vec::new(), rows: Vec::new(), is_static: false }
    }

    /// Adds rows of a batch from `next` on, until the block is full or the batch ends; the row after them. `row_number` is that of
    /// the batch's first row among all rows.
    ///
    /// # Errors
    ///
    /// Why a row cannot be one of the table, with its number and column. Those before it are in the block.
    pub(crate) fn add(
        &mut self,
        mapping: &Mapping,
        batch: &mut MappedBatch,
        mut next: usize,
        row_number: u64,
    ) -> Result<usize> {
        while next < batch.rows() && !self.is_full() {
            let in_batch = cast::u64_of(next);
            let number = batch.first_row().saturating_add(in_batch);
            let start = self.bytes.len();
            let is_static = mapping.is_static_row(batch, next)?;
            if is_static != self.is_static && !self.rows.is_empty() {
                break;
            }
            self.is_static = is_static;
            let added = self
                .row(mapping, batch, next, row_number.saturating_add(in_batch))
                .and_then(|()| if is_static { Ok(()) } else { self.rules.check(&self.bytes[start..]) });
            if let Err(error) = added {
                self.bytes.truncate(start);
                return Err(error.at(|place| place.row = Some(number)));
            }
            self.rows.push(RowStart { number, start });
            next += 1;
        }
        Ok(next)
    }

    fn row(&mut self, mapping: &Mapping, batch: &mut MappedBatch, row: usize, row_number: u64) -> Result<()> {
        let is_static = self.is_static;
        let is_sent = |column: &usize| !is_static || mapping.is_of_partition(*column);
        for column in (0..mapping.columns().len()).filter(is_sent) {
            let at = self.bytes.len();
            self.bytes.extend_from_slice(&NULL.to_be_bytes());
            let start = self.bytes.len();
            if mapping.write_cell(column, batch, row, row_number, &mut self.bytes)? == Cell::Null {
                continue;
            }
            let length = self.bytes.len() - start;
            let length = i32::try_from(length).map_err(|_| {
                Error::conversion(format!("a value of {length} bytes is longer than CQL's protocol can say"))
            })?;
            self.bytes[at..start].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    /// When the block should be handed on before another row is added.
    fn is_full(&self) -> bool {
        self.rows.len() >= BLOCK_ROWS || self.bytes.len() >= BLOCK_BYTES
    }

    /// The block, if there are rows in it. The next one begins.
    pub(crate) fn take(&mut self, object: &Arc<str>) -> Option<Block> {
        if self.rows.is_empty() {
            return None;
        }
        let rows = std::mem::take(&mut self.rows);
        let capacity = self.bytes.len().min(BLOCK_BYTES);
        let bytes = std::mem::replace(&mut self.bytes, Vec::with_capacity(capacity));
        let is_static = self.is_static;
        Some(Block { object: Arc::clone(object), bytes: Bytes::from(bytes), rows, is_static })
    }
}

/// What a row must be to be a row of the table, beside what a mapping looks at: value by value.
#[derive(Debug)]
struct Rules {
    /// The columns' names.
    columns: Vec<String>,
    /// The positions of a composite partition key's columns.
    composite_key: Vec<usize>,
    /// The largest row in bytes.
    row_bytes_max: usize,
}

impl Rules {
    fn new(mapping: &Mapping, row_bytes_max: usize) -> Rules {
        let key = &mapping.table().partition_key;
        Rules {
            columns: mapping.columns().iter().map(|column| column.name.as_str().to_owned()).collect(),
            composite_key: if key.len() > 1 { key.clone() } else { Vec::new() },
            row_bytes_max,
        }
    }

    fn check(&self, row: &[u8]) -> Result<()> {
        if !self.composite_key.is_empty() {
            self.check_key(row)?;
        }
        if row.len() <= self.row_bytes_max {
            return Ok(());
        }
        let lengths = Cells(row).map(|cell| cell.map_or(0, <[u8]>::len)).enumerate();
        let (column, length) = lengths.max_by_key(|(_, length)| *length).unwrap_or_default();
        let message = format!(
            "the row has {} bytes, {length} of them in this column; the cluster takes {}",
            row.len(),
            self.row_bytes_max
        );
        Err(self.refuse(column, message))
    }

    fn check_key(&self, row: &[u8]) -> Result<()> {
        let mut bytes = 0;
        for (column, cell) in Cells(row).enumerate().filter(|(column, _)| self.composite_key.contains(column))
        {
            bytes += cell.map_or(0, <[u8]>::len) + COMPONENT_BYTES;
            if bytes > PARTITION_KEY_BYTES_MAX {
                let message = format!(
                    "the partition key has more than {PARTITION_KEY_BYTES_MAX} bytes, the most that the databases take"
                );
                return Err(self.refuse(column, message));
            }
        }
        Ok(())
    }

    fn refuse(&self, column: usize, message: String) -> Error {
        Error::conversion(message).at(|place| place.column = self.columns.get(column).cloned())
    }
}

/// A row as the driver sends it.
#[derive(Debug)]
pub(crate) struct PackedRow {
    pub(crate) cells: Bytes,
    pub(crate) nulls: Nulls,
}

impl SerializeRow for PackedRow {
    fn serialize(
        &self,
        context: &RowSerializationContext<'_>,
        writer: &mut RowWriter<'_>,
    ) -> Result<(), SerializationError> {
        let mut cells = Cells(&self.cells);
        // The types were checked against the table's before the statement was prepared.
        for _ in context.columns() {
            let cell = cells.next().ok_or_else(|| SerializationError::new(WrongCellCount))?;
            let to = writer.make_cell_writer();
            match (cell, self.nulls) {
                (Some(value), _) => to.set_value(value).map_err(SerializationError::new)?,
                (None, Nulls::Unset) => to.set_unset(),
                (None, Nulls::Null) => to.set_null(),
            };
        }
        if cells.next().is_some() { Err(SerializationError::new(WrongCellCount)) } else { Ok(()) }
    }

    fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }
}

/// A row has not as many cells as the statement has markers.
#[derive(Debug)]
struct WrongCellCount;

impl std::fmt::Display for WrongCellCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a row has not as many cells as the statement has columns")
    }
}

impl std::error::Error for WrongCellCount {}

/// The cells of a row; `None` for nulls. It ends early where the bytes are no whole cell, which [`Filling`] never makes.
struct Cells<'a>(&'a [u8]);

impl<'a> Iterator for Cells<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        let (length, rest) = self.0.split_first_chunk::<LENGTH_BYTES>()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            self.0 = rest;
            return Some(None);
        };
        let (value, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(Some(value))
    }
}

#[cfg(test)]
mod tests;
