//! Sorting rows on their way.

use std::env;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Bytes, Error, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::SpillFile;
use marquetry_io::{ByteSink, ByteSinks, drive_into};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::sort::{SortOptions, Sorted, Sorter};
use marquetry_parquet::write::Fed;

use crate::{Cancel, CopyOptions};

/// The bytes of rows that are sorted in memory by default.
pub const SORT_MEMORY_BYTES: u64 = 512 << 20;

/// The spill object, for rows beyond the memory limit.
const SPILL: Object = Object(0);

/// Rows that are being sorted.
pub(crate) struct Sorting {
    sorter: Sorter,
    spill: Stoppable,
}

impl Sorting {
    /// Sorts by leaves of a schema. Rows beyond the memory limit go to a nameless file beside `scratch`.
    ///
    /// # Errors
    ///
    /// As for [`Sorter::new`]; and if no file can be created there.
    pub(crate) fn new(
        schema: &Arc<Schema>,
        by: &[SortingColumn],
        options: &CopyOptions,
        scratch: Option<&Path>,
    ) -> Result<Sorting> {
        let sort = SortOptions { memory_bytes: options.sort_memory_bytes, ..SortOptions::default() };
        let sorter = Sorter::new(Arc::clone(schema), by, Arc::new(StandardCodecs::default()), SPILL, sort)?;
        let file = match scratch {
            Some(path) => SpillFile::create_beside(path)?,
            None => SpillFile::create_beside(env::temp_dir().join("marquetry"))?,
        };
        Ok(Sorting { sorter, spill: Stoppable { file, cancel: options.cancel.clone() } })
    }

    /// Takes rows.
    pub(crate) fn push(&mut self, batch: Batch) -> Result<()> {
        match drive_into(&mut self.sorter, &mut ByteSinks::new().with(SPILL, &mut self.spill))? {
            Some(Sorted::Room) => {}
            _ => return Err(Error::internal("a sorter that has no room for rows")),
        }
        match self.sorter.feed(batch)? {
            Fed::Taken => Ok(()),
            Fed::Full(_) => Err(Error::internal("a sorter that asked for rows has no room for them")),
        }
    }

    /// The next rows in order, after all were taken. `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>> {
        self.sorter.finish();
        match drive_into(&mut self.sorter, &mut ByteSinks::new().with(SPILL, &mut self.spill))? {
            Some(Sorted::Rows(batch)) => Ok(Some(batch)),
            Some(Sorted::Room) => Err(Error::internal("a sorter that wants more rows than there are")),
            None => Ok(None),
        }
    }

    /// The bytes that were spilled.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.sorter.spilled_bytes()
    }
}

/// The spill file. Operations on it may take long, and end if the work is cancelled.
struct Stoppable {
    file: SpillFile,
    cancel: Cancel,
}

impl ByteSink for Stoppable {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.cancel.check()?;
        self.file.append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        self.cancel.check()?;
        self.file.read(range)
    }
}
