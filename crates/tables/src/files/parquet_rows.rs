//! The rows of a Parquet file: read by one thread, or by several, column by column.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, ErrorKind, Result};
use marquetry_io::{ByteSource, drive};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::read::{Conform, ConformReader, Conformer};

use super::columns::SideBySide;
use super::parquet::{ParquetFile, Sources};
use crate::{Batches, PieceOptions};

/// With fewer values than this, one thread is enough.
const FEW_VALUES: u64 = 1 << 17;

/// Batches of a file's rows.
///
/// Several threads read columns side by side. Where one fails, it is not known whether one thread alone would have found
/// another error first, so one reads all of it again, up to where the rows were handed out, and goes on from there: what
/// it finds is the error, whatever the number of threads.
pub(super) struct ParquetRows {
    of: Rows,
    how: How,
    left: u64,
    /// Rows that were handed out.
    done: u64,
}

/// Rows of a file.
struct Rows {
    file: ParquetFile,
    groups: Range<usize>,
    conform: Arc<Conform>,
    constants: Vec<Option<Values>>,
    options: PieceOptions,
}

enum How {
    OneByOne(Box<ConformReader>, Sources),
    SideBySide(SideBySide, Box<Conformer>),
}

impl Rows {
    /// Whether there is work for several threads.
    fn is_worth_several(&self) -> bool {
        let groups = &self.file.metadata().row_groups;
        let rows: u64 =
            self.groups.clone().filter_map(|group| groups.get(group)).map(|group| group.rows).sum();
        let rows = rows.min(self.options.limit.unwrap_or(u64::MAX));
        let values = rows.saturating_mul(u64_of(self.conform.reads().len()));
        self.options.threads > 1 && self.conform.reads().len() > 1 && values >= FEW_VALUES
    }

    fn one_by_one(&self) -> Result<How> {
        let (conform, constants) = (Arc::clone(&self.conform), self.constants.clone());
        let reader = self.file.reader(self.groups.clone(), conform, constants, &self.options)?;
        let sources = self.file.sources(&self.options.cancel)?;
        if self.options.limit.is_none() {
            let source = sources.get(ParquetFile::object())?;
            source.will_read(&mut self.file.chunks(self.groups.clone(), &self.conform));
        }
        Ok(How::OneByOne(Box::new(reader), sources))
    }

    fn side_by_side(&self) -> Result<How> {
        let open = || {
            let mut read = self.file.read_options(self.groups.clone(), &self.options);
            let (conform, constants) = (Arc::clone(&self.conform), self.constants.clone());
            let conformer = Conformer::new(conform, constants, read.layout, read.keep_dictionaries)?;
            read.batch_rows = conformer.batch_rows(read.batch_rows)?;
            let leaves: Vec<usize> = self.conform.reads().iter().copied().collect();
            let PieceOptions { threads, cancel, .. } = &self.options;
            let columns = SideBySide::new(&self.file, &leaves, &read, *threads, cancel)?;
            Ok(How::SideBySide(columns, Box::new(conformer)))
        };
        open().map_err(|error| self.file.named(error))
    }
}

impl How {
    fn next(&mut self) -> Result<Option<Batch>> {
        match self {
            How::OneByOne(reader, sources) => drive(&mut **reader, sources),
            How::SideBySide(columns, conformer) => {
                let Some(batch) = columns.next()? else { return Ok(None) };
                conformer.feed(batch)?;
                let made = conformer.step(&mut Budget::unlimited())?;
                made.map(Some).ok_or_else(|| Error::internal("a budget without an end is spent"))
            }
        }
    }
}

impl ParquetRows {
    /// Opens row groups as rows of another schema.
    pub(super) fn open(
        file: ParquetFile,
        groups: Range<usize>,
        (conform, constants): (Arc<Conform>, Vec<Option<Values>>),
        options: &PieceOptions,
    ) -> Result<ParquetRows> {
        let left = options.limit.unwrap_or(u64::MAX);
        let of = Rows { file, groups, conform, constants, options: options.clone() };
        let how = if of.is_worth_several() { of.side_by_side()? } else { of.one_by_one()? };
        Ok(ParquetRows { of, how, left, done: 0 })
    }

    fn next_rows(&mut self) -> Result<Option<Batch>> {
        match (self.how.next(), &self.how) {
            (Err(error), How::SideBySide(..)) if error.kind() != ErrorKind::Cancelled => {
                self.how = self.of.one_by_one()?;
            }
            (next, _) => return next,
        }
        let mut again = 0;
        loop {
            self.of.options.cancel.check()?;
            let Some(batch) = self.how.next()? else { return Ok(None) };
            let rows = u64_of(batch.rows);
            if again + rows > self.done {
                let known = usize::try_from(self.done - again).unwrap_or(usize::MAX);
                return Ok(Some(batch.slice(known.min(batch.rows)..batch.rows)));
            }
            again += rows;
        }
    }
}

impl Batches for ParquetRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let next = self.next_rows().map_err(|error| self.of.file.named(error))?;
        let Some(mut batch) = next else { return Ok(None) };
        if u64_of(batch.rows) > self.left {
            batch = batch.slice(0..usize::try_from(self.left).unwrap_or(usize::MAX));
        }
        let rows = u64_of(batch.rows);
        (self.left, self.done) = (self.left - rows, self.done + rows);
        Ok(Some(batch))
    }
}

#[cfg(test)]
mod tests;
