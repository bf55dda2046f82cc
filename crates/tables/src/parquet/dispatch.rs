//! Rows in any order, to the directories that they belong to.

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Error, ErrorKind, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Values};
use marquetry_parquet::schema::Schema;
use marquetry_parquet::sort::SortOptions;

use super::folder::{Folder, NewFiles};
use super::gathered::{Gathered, Plain};
use super::lookup::{Lookup, Number, UNKNOWN};
use super::partition::Partitioning;
use super::sizing::Sizing;
use crate::sorting::Sorting;
use crate::subject::of_rows;
use crate::{Cancel, Table};

/// Directories whose files are open at a time, at most. Each has a file, and a second one if its pages do not fit into
/// memory: 64 together, of the 256 and more that systems let a process have open.
const OPEN_MAX: usize = 32;
/// Columns of all open files, at most: each has buffers, and a dictionary.
const OPEN_COLUMNS_MAX: usize = 2048;
/// Rows, or bytes, of a directory that are gathered before they are written: fewer cost more for each.
const GATHERED_ROWS: usize = 4096;
const GATHERED_BYTES: u64 = 1 << 20;
/// Bytes of all rows that are gathered, at most.
const GATHERED_BYTES_MAX: u64 = 16 << 20;
/// Rows that are gathered before their bytes are looked at, at most.
const CHUNK_ROWS: usize = 256;

/// Writes the rows of the first directories to files that are open side by side. Rows of further ones are sorted, and
/// written directory by directory at the end.
pub(super) struct Dispatch {
    schema: Arc<Schema>,
    /// The table's name: that of the object that rows are of.
    name: String,
    lookup: Lookup,
    directories: Vec<Directory>,
    further: Further,
    sizing: Option<Sizing>,
    host: Host,
    /// Writes so far: the first one that fails is that of the error, whatever the threads.
    writes: u64,
    /// Of the batch at hand: each row's directory.
    numbers: Vec<Number>,
    /// The dictionaries of the last batch.
    dictionaries: Vec<Weak<Values>>,
}

/// What sorting may use.
pub(super) struct Host {
    pub(super) memory_bytes: u64,
    pub(super) threads: usize,
    pub(super) cancel: Cancel,
    pub(super) scratch: Option<PathBuf>,
}

struct Directory {
    folder: Folder,
    gathered: Gathered,
    /// Of the batch at hand.
    rows: Vec<u32>,
}

/// Rows of directories whose files are not open.
struct Further {
    gathered: Gathered,
    rows: Vec<u32>,
    sorting: Option<Sorting>,
}

impl Dispatch {
    pub(super) fn new(
        partitioning: &Partitioning,
        table: &Table,
        sizing: Option<Sizing>,
        host: Host,
    ) -> Dispatch {
        let columns = partitioning.schema().leaves().len().max(1);
        let most = (OPEN_COLUMNS_MAX / columns).clamp(1, OPEN_MAX);
        let gathered = Gathered::new(&table.schema);
        Dispatch {
            schema: Arc::clone(&table.schema),
            name: table.name.clone(),
            lookup: Lookup::new(partitioning.leaves(), most),
            directories: Vec::new(),
            further: Further { gathered, rows: Vec::new(), sorting: None },
            sizing,
            host,
            writes: 0,
            numbers: Vec::new(),
            dictionaries: Vec::new(),
        }
    }

    /// Takes rows.
    pub(super) fn write(
        &mut self,
        batch: &Batch,
        partitioning: &Partitioning,
        files: &mut NewFiles,
    ) -> Result<()> {
        files.are_many = true;
        let looked_at: Vec<usize> = partitioning.leaves().collect();
        let plain = match Plain::of(batch.clone(), &self.schema, &looked_at) {
            Ok(plain) => plain,
            Err(error) => return Err(self.after_others(error, files)),
        };
        let dictionaries = dictionaries_of(plain.batch());
        let is_same = |(before, now): (&Weak<Values>, &Weak<Values>)| before.ptr_eq(now);
        let are_same = dictionaries.len() == self.dictionaries.len()
            && self.dictionaries.iter().zip(&dictionaries).all(is_same);
        if !are_same {
            // Each directory would keep its own, until it gets rows again.
            for directory in &mut self.directories {
                directory.gathered.look_up()?;
            }
            self.dictionaries = dictionaries;
        }
        let mut numbers = std::mem::take(&mut self.numbers);
        let found = self.find(&plain, partitioning, &mut numbers);
        self.numbers = numbers;
        let mut gathered: u64 = self.directories.iter().map(|directory| directory.gathered.bytes()).sum();
        for number in 0..self.directories.len() {
            self.gather(number, (&plain, partitioning), &mut gathered, files)?;
        }
        if let Err(error) = self.further.sort(&plain, (&self.schema, partitioning), &self.host) {
            let error = of_rows(error.without_row(), &self.name);
            return Err(self.after_others(error, files));
        }
        found.map_err(|error| self.after_others(error, files))
    }

    /// The error to report where one was found that is not of a write: rows before it may be at fault, too.
    fn after_others(&mut self, error: Error, files: &mut NewFiles) -> Error {
        self.drain(files).map_or_else(|earlier| earlier, |()| error)
    }

    /// Gathers a directory's rows of a batch, and writes what becomes too much. `gathered` are the bytes of all directories.
    fn gather(
        &mut self,
        number: usize,
        (batch, partitioning): (&Plain, &Partitioning),
        gathered: &mut u64,
        files: &mut NewFiles,
    ) -> Result<()> {
        let rows = std::mem::take(&mut self.directories[number].rows);
        for some in rows.chunks(chunk_rows(batch)) {
            let before = self.directories[number].gathered.bytes();
            let taken = self.directories[number].gathered.take(batch, partitioning.kept_leaves(), some);
            if let Err(error) = taken {
                return Err(self.after_others(error, files));
            }
            let bytes = self.directories[number].gathered.bytes();
            *gathered += bytes - before;
            if *gathered > GATHERED_BYTES_MAX {
                self.write_all(files)?;
                *gathered = 0;
            } else if bytes >= GATHERED_BYTES {
                self.write_gathered(number, files)?;
                *gathered -= bytes;
            }
        }
        let Directory { gathered: found, rows: none, .. } = &mut self.directories[number];
        *none = rows;
        if found.rows() >= GATHERED_ROWS {
            *gathered -= found.bytes();
            self.write_gathered(number, files)?;
        }
        Ok(())
    }

    /// Finds the directory of each row, and makes those that are new, as long as there may be more. After an error, those
    /// of the rows before it.
    fn find(&mut self, plain: &Plain, partitioning: &Partitioning, numbers: &mut Vec<Number>) -> Result<()> {
        self.directories.iter_mut().for_each(|directory| directory.rows.clear());
        self.further.rows.clear();
        let batch = plain.batch();
        let was_full = self.lookup.is_full();
        self.lookup.find(plain, numbers)?;
        for (at, number) in (0_u32..).zip(numbers.iter()) {
            let (mut number, row) = (*number, usize_of_u32(at));
            if number == UNKNOWN && !was_full {
                // It may be that of an earlier row of this batch.
                number = self.lookup.find_one(plain, row)?;
                if number == UNKNOWN && !self.lookup.is_full() {
                    let below = partitioning.directory(batch, row)?;
                    let constants = partitioning.constants(batch, row)?;
                    number = self.lookup.add(plain, row)?;
                    let folder = Folder::of(below, constants, self.sizing.clone());
                    let gathered = Gathered::new(partitioning.schema());
                    self.directories.push(Directory { folder, gathered, rows: Vec::new() });
                }
            }
            match self.directories.get_mut(usize_of_u32(number)).filter(|_| number != UNKNOWN) {
                Some(directory) => directory.rows.push(at),
                None => {
                    // What makes no name is found before it is sorted, because then nobody knows which row it is of.
                    if partitioning.may_make_no_name(batch, row) {
                        partitioning.directory(batch, row)?;
                    }
                    self.further.rows.push(at);
                }
            }
        }
        Ok(())
    }

    /// Writes the rows that were gathered for a directory.
    fn write_gathered(&mut self, number: usize, files: &mut NewFiles) -> Result<()> {
        let Some(directory) = self.directories.get_mut(number).filter(|found| found.gathered.rows() > 0)
        else {
            return Ok(());
        };
        let batch = directory.gathered.finish();
        self.writes += 1;
        match directory.folder.write_numbered(&batch, self.writes, files) {
            Ok(false) => Ok(()),
            Ok(true) => self.share_memory(files),
            Err(error) => Err(self.first(number, error)),
        }
    }

    /// Open files share what may be held, half of it or more; so do those that take their places.
    fn share_memory(&mut self, files: &mut NewFiles) -> Result<()> {
        let open = self.directories.iter().filter(|directory| directory.folder.has_file()).count();
        let open = u64::try_from(open.next_power_of_two()).unwrap_or(u64::MAX);
        files.held_bytes = files.held_bytes_max() / open;
        let bytes = files.held_bytes;
        self.directories.iter_mut().try_for_each(|directory| directory.folder.hold_at_most(bytes))
    }

    /// The error to report after the last write to a directory has failed: that of the first write that fails, as if
    /// each had ended before the next one began.
    fn first(&mut self, number: usize, error: Error) -> Error {
        let is_cancelled = error.kind() == ErrorKind::Cancelled;
        let mut first = (self.directories[number].folder.failed_in(), error);
        for other in 0..self.directories.len() {
            if is_cancelled || other == number {
                continue;
            }
            let folder = &mut self.directories[other].folder;
            if let Err(error) = folder.drain()
                && folder.failed_in() < first.0
            {
                first = (folder.failed_in(), error);
            }
        }
        of_rows(first.1.without_row(), &self.name)
    }

    /// Writes all that was gathered.
    fn write_all(&mut self, files: &mut NewFiles) -> Result<()> {
        (0..self.directories.len()).try_for_each(|number| self.write_gathered(number, files))
    }

    /// The same, and finds out what is wrong with it.
    fn drain_directories(&mut self, files: &mut NewFiles) -> Result<()> {
        self.write_all(files)?;
        for number in 0..self.directories.len() {
            if let Err(error) = self.directories[number].folder.drain() {
                return Err(self.first(number, error));
            }
        }
        Ok(())
    }

    /// Writes all that was gathered, and finds out what is wrong with it, and with what is sorted.
    pub(super) fn drain(&mut self, files: &mut NewFiles) -> Result<()> {
        self.drain_directories(files)?;
        match &mut self.further.sorting {
            Some(sorting) => sorting.drain().map_err(|error| of_rows(error.without_row(), &self.name)),
            None => Ok(()),
        }
    }

    /// Ends all files, and writes the rows of further directories through `folder`.
    pub(super) fn finish(
        &mut self,
        partitioning: &Partitioning,
        folder: &mut Folder,
        files: &mut NewFiles,
    ) -> Result<()> {
        // Before any file ends: what is wrong with the rows of another one comes first.
        self.drain_directories(files)?;
        for number in 0..self.directories.len() {
            if let Err(error) = self.directories[number].folder.end_file(files) {
                return Err(self.first(number, error));
            }
        }
        self.directories.clear();
        files.are_many = false;
        let Some(mut sorting) = self.further.sorting.take() else { return Ok(()) };
        let mut rest = || {
            while let Some(batch) = sorting.next()? {
                self.host.cancel.check()?;
                folder.write_sorted(&batch, partitioning, files)?;
            }
            folder.end_file(files)
        };
        rest().map_err(|error| of_rows(error.without_row(), &self.name))?;
        files.written.sorted_by_way_of = Some(sorting.spilled_bytes());
        Ok(())
    }
}

fn dictionaries_of(batch: &Batch) -> Vec<Weak<Values>> {
    let dictionary = |column: &ColumnBatch| match &column.values {
        Values::Dictionary(_, entries) => Arc::downgrade(entries),
        _ => Weak::new(),
    };
    batch.columns.iter().map(dictionary).collect()
}

/// Rows that are gathered before their bytes are looked at.
fn chunk_rows(batch: &Plain) -> usize {
    batch.rows_of(GATHERED_BYTES).clamp(1, CHUNK_ROWS)
}

impl Further {
    /// Hands the rows over to be sorted, if there are any.
    fn sort(
        &mut self,
        batch: &Plain,
        (schema, partitioning): (&Arc<Schema>, &Partitioning),
        host: &Host,
    ) -> Result<()> {
        let sorting = match &mut self.sorting {
            Some(sorting) => sorting,
            None if self.rows.is_empty() => return Ok(()),
            none => {
                let (threads, by) = ((host.threads, &host.cancel), partitioning.order());
                let scratch = host.scratch.as_deref();
                let sort = SortOptions { memory_bytes: host.memory_bytes, ..SortOptions::default() };
                none.insert(Sorting::new(schema, &by, sort, threads, scratch)?)
            }
        };
        for some in self.rows.chunks(chunk_rows(batch)) {
            self.gathered.take(batch, 0..schema.leaves().len(), some)?;
            if self.gathered.bytes() >= GATHERED_BYTES {
                sorting.push(self.gathered.finish(), 0)?;
            }
        }
        match self.gathered.rows() {
            0 => Ok(()),
            _ => sorting.push(self.gathered.finish(), 0),
        }
    }
}
