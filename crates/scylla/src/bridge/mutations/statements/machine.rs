//! The machine: batches in, the statements of one row out.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use super::out::{RowStatements, push};
use super::pack;
use super::ranges::{Bound, slices};
use super::row::{Making, Shape};
use super::texts::{Kind, StatementTexts};
use crate::cql::TableName;
use crate::sstable::TableColumns;
use crate::sstable::batch::{Continues, Deletion, EntryKind, MutationBatch, number_of};

/// Makes statements of batches of writes, of a table: those of one row at a time.
///
/// ```text
/// next(at, out)  ->  true: the statements of a row | false: it needs a batch
/// feed(batch)        the next batch of the table; rows must not be continued from one to the next, as an Unmapper's are not
/// finish()           there is no more
/// ```
#[derive(Debug)]
pub struct Statements {
    texts: StatementTexts,
    shape: Shape,
    fed: Option<Fed>,
    /// A range of deleted rows that has begun.
    open: Option<(Bound, Deletion)>,
    rows: u64,
    making: Making,
}

/// A batch, and how far it was read.
#[derive(Debug)]
struct Fed {
    batch: MutationBatch,
    partition: usize,
    /// The next entry.
    entry: usize,
    /// The partition's key was read.
    is_begun: bool,
    /// The partition key, and after it the clustering values, as they are bound.
    key: Vec<u8>,
    partition_key_bytes: usize,
}

impl Statements {
    /// Statements for a table of this name with these columns.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for counters, and for names that CQL does not allow.
    pub fn new(columns: &Arc<TableColumns>, table: &TableName) -> Result<Statements> {
        if let Some(counter) = columns.cells().find(|column| column.kind.is_counter()) {
            let name = String::from_utf8_lossy(&counter.name).into_owned();
            return Err(Error::unsupported(format!(
                "the counter {name:?} cannot be written with its write time: CQL only adds to counters, at the time when it does; \
                 to add the sums to those of a table, print them with --mapping logical"
            )));
        }
        Ok(Statements {
            texts: StatementTexts::new(columns, table)?,
            shape: Shape::new(columns),
            fed: None,
            open: None,
            rows: 0,
            making: Making::default(),
        })
    }

    /// The same for servers that know the function SCYLLA_TIMEUUID_LIST_INDEX, as ScyllaDB's do: elements of lists that are not frozen keep
    /// their keys, and deleted ones are deleted. Then all statements can be sent again, and in any order.
    #[must_use]
    pub fn with_list_keys(mut self) -> Statements {
        self.making.keeps_list_keys = true;
        self
    }

    /// The texts of the statements.
    pub fn texts(&self) -> &StatementTexts {
        &self.texts
    }

    /// The rows of the mapping that were read so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Takes the next batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for a batch of other columns, one that was not asked for, and one that goes on
    /// with a row of the batch before.
    pub fn feed(&mut self, batch: MutationBatch) -> Result<()> {
        let is_other = batch.columns.len() != self.shape.columns.len()
            || batch.entries.clustering.len() != self.shape.reversed.len();
        if self.fed.is_some() || is_other || batch.continues == Continues::Entry {
            return Err(Error::misuse(
                "a batch that was not asked for, is of another table, or continues a row",
            ));
        }
        self.making.begin(batch.columns.len());
        self.fed = Some(Fed {
            batch,
            partition: 0,
            entry: 0,
            is_begun: false,
            key: Vec::new(),
            partition_key_bytes: 0,
        });
        Ok(())
    }

    /// Takes notice that there is no further batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) if a range of deleted rows has begun and not ended.
    pub fn finish(&mut self) -> Result<()> {
        match self.open.take() {
            Some(_) => Err(endless()),
            None => Ok(()),
        }
    }

    /// The statements of the next row that has any, in `out`, as of `at`, in seconds since 1970. False: the batch has none any more.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for batches that contradict themselves, and
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for what CQL cannot say; with the row.
    pub fn next(&mut self, at: u32, out: &mut RowStatements) -> Result<bool> {
        out.statements.clear();
        out.values.clear();
        out.key.clear();
        out.is_range = false;
        let Some(mut fed) = self.fed.take() else { return Ok(false) };
        while out.statements.is_empty() {
            out.row = self.rows;
            out.key.clear();
            let row = self.rows;
            let is_left = self.advance(&mut fed, at, out);
            if !is_left.map_err(|error| error.at(|place| place.row = Some(row)))? {
                return Ok(false);
            }
        }
        self.fed = Some(fed);
        Ok(true)
    }

    /// Goes on by a partition's beginning, or an entry; false at the batch's end.
    fn advance(&mut self, fed: &mut Fed, at: u32, out: &mut RowStatements) -> Result<bool> {
        if fed.partition >= fed.batch.partitions.ends.len() {
            return match self.making.is_done(&fed.batch) {
                true => Ok(false),
                false => Err(Error::corrupt("cells of no row")),
            };
        }
        let entries = fed.batch.entries_of(fed.partition);
        if !fed.is_begun {
            self.begin(fed, entries.is_empty(), out)?;
        } else if fed.entry < entries.end {
            let entry = fed.entry;
            fed.entry += 1;
            self.entry(fed, entry, at, out)?;
        } else {
            fed.partition += 1;
            fed.is_begun = false;
        }
        Ok(true)
    }

    /// Begins a partition.
    fn begin(&mut self, fed: &mut Fed, is_bare: bool, out: &mut RowStatements) -> Result<()> {
        fed.is_begun = true;
        let key = fed.batch.partitions.keys.get(fed.partition);
        let key = key.ok_or_else(|| Error::corrupt("a partition without a key"))?;
        fed.key.clear();
        self.shape.bind_key(key, &mut fed.key)?;
        fed.partition_key_bytes = fed.key.len();
        if fed.partition == 0 && fed.batch.continues == Continues::Partition {
            return Ok(());
        }
        if self.open.take().is_some() {
            return Err(endless());
        }
        let deletion = fed.batch.partitions.deletions.get(number_of(fed.partition));
        if let Some(deletion) = deletion {
            out.values.extend_from_slice(&fed.key);
            push(out, 0, Kind::DeletePartition, deletion.timestamp);
        }
        self.rows += u64::from(deletion.is_some() || is_bare);
        Ok(())
    }

    fn entry(&mut self, fed: &mut Fed, entry: usize, at: u32, out: &mut RowStatements) -> Result<()> {
        let corrupt = || Error::corrupt("an entry that is not there");
        let kind = *fed.batch.entries.kinds.get(entry).ok_or_else(corrupt)?;
        self.rows += if kind.is_boundary() { 2 } else { 1 };
        fed.key.truncate(fed.partition_key_bytes);
        if kind.is_row() {
            if kind == EntryKind::Row {
                self.shape.bind_clustering(&fed.batch, entry, &mut fed.key)?;
                out.key.extend_from_slice(&fed.key);
            }
            return self.making.row(&self.shape, &fed.batch, (entry, at), &fed.key, out);
        }
        let deletion = fed.batch.entries.deletions.get(number_of(entry));
        let deletion = deletion.ok_or_else(|| Error::corrupt("a bound of a range that is not deleted"))?;
        let values = self.shape.bound_values(&fed.batch, entry)?;
        let (ends, starts) = match kind {
            EntryKind::InclusiveStart => (None, Some((false, deletion))),
            EntryKind::ExclusiveStart => (None, Some((true, deletion))),
            EntryKind::InclusiveEnd => (Some(true), None),
            EntryKind::ExclusiveEnd => (Some(false), None),
            _ => {
                let starts = fed.batch.entries.starts.get(number_of(entry));
                let starts =
                    starts.ok_or_else(|| Error::corrupt("a bound of a range that is not deleted"))?;
                let is_after = kind == EntryKind::InclusiveEndExclusiveStart;
                (Some(is_after), Some((is_after, starts)))
            }
        };
        if let Some(is_after) = ends {
            out.is_range = true;
            let (start, of) = self.open.take().ok_or_else(beginless)?;
            if of.timestamp != deletion.timestamp {
                return Err(Error::corrupt("a range of deleted rows that ends with another deletion"));
            }
            let end = Bound { values: values.clone(), is_after };
            self.range(&start, &end, of, &fed.key, out)?;
        }
        if let Some((is_after, of)) = starts {
            if self.open.is_some() {
                return Err(endless());
            }
            self.open = Some((Bound { values, is_after }, of));
        }
        Ok(())
    }

    fn range(
        &self,
        start: &Bound,
        end: &Bound,
        of: Deletion,
        key: &[u8],
        out: &mut RowStatements,
    ) -> Result<()> {
        if start.values.is_empty() && end.values.is_empty() && self.shape.statics > 0 {
            // `DELETE` of a partition is of its static columns, too. Rows below some value, and those that are not, are all rows.
            let middle = self.shape.middle.as_ref().ok_or_else(|| {
                Error::unsupported(
                    "a deletion of all rows of a partition and of no static column, which CQL cannot say",
                )
            })?;
            let bound = Bound { values: alloc::vec![middle.clone()], is_after: false };
            self.range(start, &bound, of, key, out)?;
            return self.range(&bound, end, of, key, out);
        }
        for (slice, values) in slices(start, end, &self.shape.reversed)? {
            let at = out.values.len();
            out.values.extend_from_slice(key);
            for value in values {
                pack::bytes(&mut out.values, value)?;
            }
            push(out, at, Kind::Range(slice), of.timestamp);
        }
        Ok(())
    }
}

fn endless() -> Error {
    Error::corrupt("a range of deleted rows begins and does not end: not all rows of the mapping are here")
}

fn beginless() -> Error {
    Error::corrupt("a range of deleted rows ends and does not begin: not all rows of the mapping are here")
}
