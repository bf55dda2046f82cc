//! Rows on their way to the cluster: cells as the native protocol holds them, one after the other.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::num::NonZeroU64;
use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::{Error, Result, cast};
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::{BoundBatch, Cell, Mapping, Nulls};
use marquetry_scylla::cql::CqlType;
use marquetry_tables::stamps::{RowStamps, write_time_after};
use marquetry_tables::{Distinct, DistinctCounter};
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;

use crate::hidden::{Hidden, unseen};
use crate::rate::Rate;
use crate::statement::RowStatement;

/// Some rows, and the object that they are from.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) from: Arc<Origin>,
    bytes: Bytes,
    rows: Vec<RowStart>,
    /// They have only cells of the partition key and of static columns.
    pub(crate) is_static: bool,
}

/// Where rows are from.
#[derive(Debug)]
pub(crate) struct Origin {
    /// The name of the object.
    pub(crate) object: Arc<str>,
    /// The batch, if rows of it may be wanted again: those that are rejected.
    pub(crate) batch: Option<Batch>,
}

#[derive(Debug, Clone, Copy)]
struct RowStart {
    id: RowId,
    start: usize,
}

/// Which row it is, and when it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RowId {
    /// Its number in its object.
    pub(crate) number: u64,
    /// Its number among all rows.
    pub(crate) ordinal: u64,
    /// Its place in its batch; `usize::MAX` for a row that is not kept.
    pub(crate) in_batch: usize,
    /// Its write time.
    pub(crate) write_time_us: i64,
}

impl Block {
    /// Rows that lie end to end, and where each begins.
    pub(crate) fn of(
        from: Arc<Origin>,
        bytes: Bytes,
        rows: impl IntoIterator<Item = (RowId, usize)>,
    ) -> Block {
        let rows = rows.into_iter().map(|(id, start)| RowStart { id, start }).collect();
        Block { from, bytes, rows, is_static: false }
    }

    /// The rows, with their cells.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (RowId, Bytes)> + '_ {
        let ends = self.rows.iter().skip(1).map(|row| row.start).chain([self.bytes.len()]);
        self.rows.iter().zip(ends).map(|(row, end)| (row.id, self.bytes.slice(row.start..end)))
    }
}

/// Rows of a block: enough to make handing it to another thread cheap.
pub(crate) const BLOCK_ROWS: usize = 1024;
/// Bytes of a block, but for what the last row has more: a few of them are a small part of any program's memory.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
/// How many rows and bytes a block has, but for what the last row has more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockSize {
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
}

/// Blocks that pass in a second at the rate that is asked for: what is wrong with a row is found when its block is through, and so is whatever
/// waits for all that were handed over.
const BLOCKS_PER_SECOND: u64 = 16;

impl BlockSize {
    /// Smaller blocks for loads that are slow on purpose.
    pub(crate) fn of(rate: Rate) -> BlockSize {
        let size = |most: usize, rate: Option<NonZeroU64>| {
            let part = rate.map_or(u64::MAX, |rate| (rate.get() / BLOCKS_PER_SECOND).max(1));
            usize::try_from(part).unwrap_or(usize::MAX).min(most)
        };
        BlockSize { rows: size(BLOCK_ROWS, rate.rows), bytes: size(BLOCK_BYTES, rate.bytes) }
    }
}

/// The bytes of a cell's length, which stands before its value.
const LENGTH_BYTES: usize = 4;
/// The length of a null.
const NULL: i32 = -1;
/// The value of a collection without items: their number.
const NO_ITEMS: [u8; 4] = [0; 4];
/// The bytes of a TTL.
const TTL_BYTES: i32 = 4;
/// The longest partition key in bytes: its length has 16 bits in both servers.
const PARTITION_KEY_BYTES_MAX: usize = 65_535;
/// What a component of a composite partition key has beside its bytes: a length and a separator.
const COMPONENT_BYTES: usize = 3;

/// Makes blocks of rows.
#[derive(Debug)]
pub(crate) struct Filling {
    rules: Rules,
    /// The columns of the mapping, in the order of the statement's markers.
    columns: Vec<usize>,
    /// For each of them, whether an empty value is the same as null, which is left unset.
    empty_is_unset: Vec<bool>,
    binds_ttl: bool,
    /// Partitions that have only static values have a statement of their own.
    has_statics: bool,
    /// The first row's write time, and how much later each next one's is, unless a column says when they were written.
    first_write_time_us: i64,
    write_time_step_us: i64,
    bytes: Vec<u8>,
    rows: Vec<RowStart>,
    is_static: bool,
    block: BlockSize,
    /// Of each cell of the statement, whether it is one of the key's.
    are_of_key: Vec<bool>,
    /// Of each, until when what is written is not seen; empty if all is.
    hidden_until: Vec<Option<i64>>,
    keys: Keys,
}

/// The keys of rows, of which different ones are counted.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    counter: DistinctCounter,
    rows: u64,
}

impl Keys {
    /// Counts a row; its key is something to be hashed.
    pub(crate) fn add(&mut self, key: impl Hash) {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        self.counter.add(hasher.finish());
        self.rows += 1;
    }

    /// How many rows there were, and how many different keys they have.
    pub(crate) fn count(&self) -> (u64, Distinct) {
        (self.rows, self.counter.count())
    }
}

/// The cells of a row that are its key's.
struct KeyOf<'a> {
    row: &'a [u8],
    are_of_key: &'a [bool],
}

impl Hash for KeyOf<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        for (cell, _) in Cells(self.row).zip(self.are_of_key).filter(|(_, is_of_key)| **is_of_key) {
            cell.hash(hasher);
        }
    }
}

/// A row that cannot be one of the table, by its place in its batch.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) in_batch: usize,
    pub(crate) error: Error,
}

impl Filling {
    pub(crate) fn new(
        mapping: &Mapping,
        statement: &RowStatement,
        nulls: Nulls,
        (row_bytes_max, block): (usize, BlockSize),
        (first_write_time_us, write_time_step_us): (i64, i64),
    ) -> Filling {
        // Of these, CQL keeps nothing if they are empty: what is written then is a tombstone for what was there.
        let is_collection = |column: &usize| {
            let column = mapping.columns().get(*column);
            column.is_some_and(|it| {
                matches!(it.cql_type, CqlType::List(_) | CqlType::Set(_) | CqlType::Map(..))
            })
        };
        Filling {
            rules: Rules::new(mapping, &statement.columns, row_bytes_max),
            columns: statement.columns.clone(),
            empty_is_unset: statement
                .columns
                .iter()
                .map(|column| nulls == Nulls::Unset && is_collection(column))
                .collect(),
            binds_ttl: statement.binds_ttl,
            has_statics: statement.statics.is_some(),
            first_write_time_us,
            write_time_step_us,
            bytes: Vec::new(),
            rows: Vec::new(),
            is_static: false,
            block,
            are_of_key: statement
                .columns
                .iter()
                .map(|column| mapping.columns().get(*column).is_some_and(|it| it.in_key))
                .collect(),
            hidden_until: Vec::new(),
            keys: Keys::default(),
        }
    }

    /// The same, for rows with write times of their own: those that have a value that the cluster would not show are no rows of the table.
    pub(crate) fn beside(mut self, hidden: &Hidden) -> Filling {
        self.hidden_until = self.rules.columns.iter().map(|name| hidden.until(name)).collect();
        self
    }

    /// How many rows there were, but for those of static columns alone, and how many different keys they have.
    pub(crate) fn keys(&self) -> (u64, Distinct) {
        self.keys.count()
    }

    /// Adds rows of a batch from `next` on, until the block is full or the batch ends; the row after them. `first_ordinal` is that of
    /// the batch's first row among all rows, with which it is bound.
    ///
    /// # Errors
    ///
    /// Why a row cannot be one of the table, with its number and column. Those before it are in the block.
    pub(crate) fn add(
        &mut self,
        batch: &mut BoundBatch<'_>,
        stamps: &RowStamps,
        mut next: usize,
        first_ordinal: u64,
    ) -> Result<usize, Unfit> {
        while next < batch.rows() && !self.is_full() {
            let in_batch = cast::u64_of(next);
            let number = batch.first_row().saturating_add(in_batch);
            let ordinal = first_ordinal.saturating_add(in_batch);
            let start = self.bytes.len();
            let is_static = self.has_statics && batch.is_static_row(next);
            if is_static != self.is_static && !self.rows.is_empty() {
                break;
            }
            self.is_static = is_static;
            match self.row(batch, stamps, next, ordinal) {
                Ok(write_time_us) => {
                    let id = RowId { number, ordinal, in_batch: next, write_time_us };
                    self.rows.push(RowStart { id, start });
                }
                Err(error) => {
                    self.bytes.truncate(start);
                    // The row is counted from the file's beginning, and a text has no row groups.
                    let error = error.replaced(|place| (place.row, place.row_group) = (Some(number), None));
                    return Err(Unfit { in_batch: next, error });
                }
            }
            next += 1;
        }
        Ok(next)
    }

    /// Appends a row's cells; its write time.
    fn row(
        &mut self,
        batch: &mut BoundBatch<'_>,
        stamps: &RowStamps,
        row: usize,
        ordinal: u64,
    ) -> Result<i64> {
        let (first, is_static, mapping) = (self.bytes.len(), self.is_static, batch.mapping());
        let columns = self.columns.iter().zip(&self.empty_is_unset).enumerate();
        let mut hidden: Option<(i64, usize)> = None;
        for (cell, (column, empty_is_unset)) in
            columns.filter(|(_, (column, _))| !is_static || mapping.is_of_partition(**column))
        {
            let at = self.bytes.len();
            self.bytes.extend_from_slice(&NULL.to_be_bytes());
            let start = self.bytes.len();
            if batch.write_cell(*column, row, &mut self.bytes)? == Cell::Null {
                continue;
            }
            if *empty_is_unset && self.bytes[start..] == NO_ITEMS {
                self.bytes.truncate(start);
                continue;
            }
            let length = self.bytes.len() - start;
            let length = i32::try_from(length).map_err(|_| {
                Error::conversion(format!("a value of {length} bytes is longer than CQL's protocol can say"))
            })?;
            self.bytes[at..start].copy_from_slice(&length.to_be_bytes());
            let until = self.hidden_until.get(cell).copied().flatten();
            hidden = hidden.max(until.map(|until| (until, cell)));
        }
        if !is_static {
            self.rules.check(&self.bytes[first..])?;
            self.keys.add(KeyOf { row: &self.bytes[first..], are_of_key: &self.are_of_key });
        }
        if self.binds_ttl {
            match stamps.ttl(row)? {
                Some(seconds) => {
                    self.bytes.extend_from_slice(&TTL_BYTES.to_be_bytes());
                    self.bytes.extend_from_slice(&seconds.to_be_bytes());
                }
                None => self.bytes.extend_from_slice(&NULL.to_be_bytes()),
            }
        }
        let write_time_us = match stamps.write_time_us(row)? {
            Some(write_time_us) => {
                // A row with lists has a time of its own each time that it is sent.
                write_time_after(write_time_us, 0, self.write_time_step_us)?
            }
            None => write_time_after(self.first_write_time_us, ordinal, self.write_time_step_us)?,
        };
        match hidden.filter(|(until, _)| write_time_us <= *until) {
            Some((until, cell)) => {
                let name = self.rules.columns.get(cell).map_or("", String::as_str);
                Err(unseen(name, until, write_time_us))
            }
            None => Ok(write_time_us),
        }
    }

    fn is_full(&self) -> bool {
        self.rows.len() >= self.block.rows || self.bytes.len() >= self.block.bytes
    }

    /// The rows that were added since the last time, if any.
    pub(crate) fn take(&mut self, from: &Arc<Origin>) -> Option<Block> {
        if self.rows.is_empty() {
            return None;
        }
        // The next block is probably about as large.
        let capacity = self.bytes.len().min(BLOCK_BYTES);
        let rows = std::mem::take(&mut self.rows);
        let bytes = std::mem::replace(&mut self.bytes, Vec::with_capacity(capacity));
        let is_static = self.is_static;
        Some(Block { from: Arc::clone(from), bytes: Bytes::from(bytes), rows, is_static })
    }
}

/// What a row must be to be a row of the table, beside what a mapping looks at: value by value.
#[derive(Debug)]
struct Rules {
    /// The names of the cells' columns.
    columns: Vec<String>,
    /// The places of a composite partition key's cells.
    composite_key: Vec<usize>,
    /// The largest row in bytes.
    row_bytes_max: usize,
}

impl Rules {
    /// The rules of a row whose cells are those of these columns of the mapping.
    fn new(mapping: &Mapping, columns: &[usize], row_bytes_max: usize) -> Rules {
        let key = &mapping.table().partition_key;
        let name =
            |column: &usize| mapping.columns().get(*column).map(|column| column.name.as_str().to_owned());
        let is_of_key = |at: &usize| columns.get(*at).is_some_and(|column| key.contains(column));
        Rules {
            columns: columns.iter().filter_map(name).collect(),
            composite_key: if key.len() > 1 {
                (0..columns.len()).filter(is_of_key).collect()
            } else {
                Vec::new()
            },
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
    /// Cells of columns: that of a TTL is after them.
    pub(crate) columns: usize,
}

impl SerializeRow for PackedRow {
    fn serialize(
        &self,
        context: &RowSerializationContext<'_>,
        writer: &mut RowWriter<'_>,
    ) -> Result<(), SerializationError> {
        let mut cells = Cells(&self.cells);
        // The types were checked against the table's before the statement was prepared.
        for at in 0..context.columns().len() {
            let cell = cells.next().ok_or_else(|| SerializationError::new(WrongCellCount))?;
            let to = writer.make_cell_writer();
            match (cell, self.nulls) {
                (Some(value), _) => to.set_value(value).map_err(SerializationError::new)?,
                // Without a TTL a row has the table's default.
                (None, Nulls::Null) if at < self.columns => to.set_null(),
                (None, _) => to.set_unset(),
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
