//! Rows on their way from a source to the cluster: cells as the native protocol holds them, one after the other.

use bytes::Bytes;
use marquetry_base::Error;
use marquetry_scylla::cql::{CqlType, Name, TypeDef};
use scylla::serialize::SerializationError;
use scylla::serialize::row::{RowSerializationContext, SerializeRow};
use scylla::serialize::writers::RowWriter;

use crate::options::Nulls;

/// Where rows come from: a Parquet file, for one. It is used on a thread of its own, and may wait.
pub trait RowSource: Send {
    /// The name of what rows are numbered in, for messages: the file's.
    fn name(&self) -> &str;

    /// The columns that the rows have, in the order of their cells, each with the CQL type of its values.
    fn columns(&self) -> &[(Name, CqlType)];

    /// The user-defined types of the columns: cells have their fields, in their order. None unless told.
    fn types(&self) -> &[TypeDef] {
        &[]
    }

    /// Adds rows until `block` [is full](RowBlock::is_full) or there are no more; `Ok(false)` says that there are
    /// none after those added. A row may be as large as it is: the loader refuses it where it is too large.
    ///
    /// # Errors
    ///
    /// Why rows cannot be read or made, with the place. The block is then dropped, with all its rows.
    fn fill(&mut self, block: &mut RowBlock) -> Result<bool, Error>;
}

/// Some rows. A source adds them cell by cell: [`RowBlock::start_row`], then [`RowBlock::cell`] for each column.
#[derive(Debug, Default)]
pub struct RowBlock {
    bytes: Vec<u8>,
    rows: Vec<RowStart>,
}

#[derive(Debug, Clone, Copy)]
struct RowStart {
    number: u64,
    start: usize,
}

/// Rows of a block: enough to make handing it to another thread cheap.
const BLOCK_ROWS: usize = 1024;
/// Bytes of a block, but for what the last row has more: a few of them are a small part of any program's memory.
const BLOCK_BYTES: usize = 1 << 20;
/// The bytes of a cell's length, which stands before its value.
const LENGTH_BYTES: usize = 4;
/// The length of a null.
const NULL: i32 = -1;
/// The longest partition key in bytes: its length has 16 bits in both servers.
const PARTITION_KEY_BYTES_MAX: usize = 65_535;

impl RowBlock {
    /// Starts a row, counted from 0 in the source.
    pub fn start_row(&mut self, number: u64) {
        self.rows.push(RowStart { number, start: self.bytes.len() });
    }

    /// Adds the row's next cell. `write` appends the value as the native protocol serialises it (without its length)
    /// and returns true, or returns false for a null.
    ///
    /// # Errors
    ///
    /// What `write` returns, and a conversion error for a value of 2 GiB or more.
    pub fn cell(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<bool, Error>) -> Result<(), Error> {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&NULL.to_be_bytes());
        let start = self.bytes.len();
        if !write(&mut self.bytes)? {
            self.bytes.truncate(start);
            return Ok(());
        }
        let length =
            self.bytes.len().checked_sub(start).ok_or_else(|| Error::internal("a cell shrank the row"))?;
        let length = i32::try_from(length).map_err(|_| {
            Error::conversion(format!("a value of {length} bytes is longer than CQL's protocol can say"))
        })?;
        self.bytes[at..start].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    /// True when the block should be handed on before another row is added.
    pub fn is_full(&self) -> bool {
        self.rows.len() >= BLOCK_ROWS || self.bytes.len() >= BLOCK_BYTES
    }

    /// Checks every row against the table's rules, and makes the block ready to be sent.
    ///
    /// # Errors
    ///
    /// The first row that the servers would refuse, by number, and its column.
    pub(crate) fn check(self, rules: &Rules<'_>) -> Result<ReadyBlock, Error> {
        for nth in 0..self.rows.len() {
            let row = self.rows[nth];
            rules
                .check(&self.bytes[row.start..self.row_end(nth)])
                .map_err(|error| error.at(|place| place.row = Some(row.number)))?;
        }
        Ok(ReadyBlock { bytes: Bytes::from(self.bytes), rows: self.rows })
    }

    fn row_end(&self, nth: usize) -> usize {
        self.rows.get(nth + 1).map_or(self.bytes.len(), |next| next.start)
    }
}

/// Rows that the table can take.
#[derive(Debug)]
pub(crate) struct ReadyBlock {
    bytes: Bytes,
    rows: Vec<RowStart>,
}

impl ReadyBlock {
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows: number and cells.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, Bytes)> + '_ {
        let ends = self.rows.iter().skip(1).map(|row| row.start).chain([self.bytes.len()]);
        self.rows.iter().zip(ends).map(|(row, end)| (row.number, self.bytes.slice(row.start..end)))
    }
}

/// What a row must be to be a row of the table.
#[derive(Debug)]
pub(crate) struct Rules<'a> {
    /// The columns' names.
    pub(crate) columns: &'a [(Name, CqlType)],
    /// The positions of the partition key's columns.
    pub(crate) partition_key: Vec<usize>,
    /// The positions of the clustering columns.
    pub(crate) clustering: Vec<usize>,
    /// The largest row in bytes.
    pub(crate) row_bytes_max: usize,
}

impl Rules<'_> {
    fn check(&self, row: &[u8]) -> Result<(), Error> {
        let mut partition_key_bytes = 0;
        let mut largest = (0, 0);
        let mut count = 0;
        for (nth, cell) in Cells(row).enumerate() {
            count += 1;
            let length = cell.map_or(0, <[u8]>::len);
            if length > largest.1 {
                largest = (nth, length);
            }
            let in_partition_key = self.partition_key.contains(&nth);
            if cell.is_none() && (in_partition_key || self.clustering.contains(&nth)) {
                return Err(self.refuse(nth, "a column of the primary key is null"));
            }
            if in_partition_key {
                // The components of a composite key have a length and a separator each; the servers refuse an empty
                // key, which a composite one never is.
                let composite = self.partition_key.len() > 1;
                if length == 0 && !composite {
                    return Err(
                        self.refuse(nth, "the partition key is empty, and neither database takes that")
                    );
                }
                partition_key_bytes += length + if composite { 3 } else { 0 };
                if partition_key_bytes > PARTITION_KEY_BYTES_MAX {
                    let message = format!(
                        "the partition key has more than {PARTITION_KEY_BYTES_MAX} bytes, the most that the databases take"
                    );
                    return Err(self.refuse(nth, message));
                }
            }
        }
        if count != self.columns.len() {
            return Err(Error::internal(format!(
                "a row has {count} cells for {} columns",
                self.columns.len()
            )));
        }
        if row.len() > self.row_bytes_max {
            let message = format!(
                "the row has {} bytes, {} of them in this column; the cluster takes {}",
                row.len(),
                largest.1,
                self.row_bytes_max
            );
            return Err(self.refuse(largest.0, message));
        }
        Ok(())
    }

    fn refuse(&self, column: usize, message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
        let name = self.columns.get(column).map(|(name, _)| name.as_str().to_owned());
        Error::conversion(message).at(|place| place.column = name)
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
        // The types were checked against the table's when the statement was prepared.
        for _ in context.columns() {
            let cell = cells.next().ok_or_else(|| SerializationError::new(WrongCellCount))?;
            let to = writer.make_cell_writer();
            match (cell, self.nulls) {
                (Some(value), _) => to.set_value(value).map_err(SerializationError::new)?,
                (None, Nulls::Unset) => to.set_unset(),
                (None, Nulls::Tombstone) => to.set_null(),
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

/// The cells of a row; `None` for nulls. It ends early where the bytes are no whole cell, which [`RowBlock`] never
/// makes.
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
mod tests {
    use super::*;

    fn columns() -> Vec<(Name, CqlType)> {
        ["a", "B", "c"].iter().map(|name| (Name::new(name).unwrap(), CqlType::Blob)).collect()
    }

    fn block(rows: &[[Option<&[u8]>; 3]]) -> RowBlock {
        let mut block = RowBlock::default();
        for (number, row) in (100..).zip(rows) {
            block.start_row(number);
            for cell in row {
                block
                    .cell(|out| {
                        out.extend_from_slice(cell.unwrap_or(b"left over"));
                        Ok(cell.is_some())
                    })
                    .unwrap();
            }
        }
        block
    }

    /// The first error of the rows under a partition key and clustering columns.
    fn refusal(partition_key: &[usize], clustering: &[usize], rows: &[[Option<&[u8]>; 3]]) -> Option<String> {
        let columns = columns();
        let rules = Rules {
            columns: &columns,
            partition_key: partition_key.to_vec(),
            clustering: clustering.to_vec(),
            row_bytes_max: 70_000,
        };
        block(rows).check(&rules).err().map(|error| error.to_string())
    }

    #[test]
    fn cells_come_back() {
        let columns = columns();
        let rules =
            Rules { columns: &columns, partition_key: vec![0], clustering: vec![], row_bytes_max: 100 };
        let rows = [[Some(b"k".as_slice()), None, Some(b"")], [Some(b"l"), Some(b"xyz"), None]];
        let ready = block(&rows).check(&rules).unwrap();
        let got: Vec<(u64, Bytes)> = ready.rows().collect();
        assert_eq!(got.len(), 2);
        for (nth, (number, cells)) in got.iter().enumerate() {
            assert_eq!(*number, 100 + nth as u64);
            assert_eq!(Cells(cells).collect::<Vec<_>>(), rows[nth]);
        }
    }

    #[test]
    fn keys_are_checked() {
        let whole: [Option<&[u8]>; 3] = [Some(b"k"), Some(b"l"), Some(b"")];
        assert_eq!(refusal(&[0], &[1], &[whole, [Some(b"k"), Some(b""), None]]), None);
        assert_eq!(
            refusal(&[0], &[1], &[whole, [None, Some(b"l"), None]]).unwrap(),
            "a column of the primary key is null (column a, row 101)"
        );
        assert_eq!(
            refusal(&[0], &[1], &[whole, [Some(b"k"), None, None]]).unwrap(),
            "a column of the primary key is null (column B, row 101)"
        );
        assert_eq!(
            refusal(&[2], &[], &[whole]).unwrap(),
            "the partition key is empty, and neither database takes that (column c, row 100)"
        );
        // A component of a composite key may be empty.
        assert_eq!(refusal(&[2, 0], &[], &[whole]), None);
        let long = [b'x'; 65_536];
        assert_eq!(refusal(&[0], &[], &[[Some(&long[1..]), None, None]]), None);
        let error = "the partition key has more than 65535 bytes, the most that the databases take (column a, row 100)";
        assert_eq!(refusal(&[0], &[], &[[Some(&long), None, None]]).unwrap(), error);
        assert_eq!(refusal(&[0, 1], &[], &[[Some(&long[7..]), Some(b""), None]]), None);
        assert!(refusal(&[0, 1], &[], &[[Some(&long[6..]), Some(b""), None]]).is_some());
    }

    #[test]
    fn large_rows_are_refused_by_their_largest_column() {
        let (small, large) = ([0; 30_000], [0; 39_988]);
        assert_eq!(refusal(&[0], &[], &[[Some(b"k"), Some(&small), Some(&large[1..])]]), None);
        assert_eq!(
            refusal(&[0], &[], &[[Some(b"k"), Some(&small), Some(&large)]]).unwrap(),
            "the row has 70001 bytes, 39988 of them in this column; the cluster takes 70000 (column c, row 100)"
        );
    }

    #[test]
    fn blocks_are_full_by_rows_or_bytes() {
        let mut block = RowBlock::default();
        for number in 0..BLOCK_ROWS {
            assert!(!block.is_full());
            block.start_row(number as u64);
        }
        assert!(block.is_full());
        let mut block = RowBlock::default();
        block.start_row(0);
        block
            .cell(|out| {
                out.resize(BLOCK_BYTES, 0);
                Ok(true)
            })
            .unwrap();
        assert!(block.is_full());
    }
}
