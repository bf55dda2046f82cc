//! The files of one directory at a time.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use marquetry_base::cast::usize_of;
use marquetry_base::{Error, Result};
use marquetry_io::store::NewObjects;
use marquetry_parquet::batch::{Batch, Values};

use super::open_file::{OpenFile, OpenObject, Shape};
use super::partition::Partitioning;
use super::sizing::Sizing;
use crate::Written;

/// Writes of which it is remembered where they begin in their file: more than may be under way.
const RECENT_MAX: usize = 8;

/// Files as they are made, in all directories.
pub(super) struct NewFiles {
    /// Files of which it is not known yet how well their rows compress, and later ones.
    first: Shape,
    later: Shape,
    /// The most rows of a file.
    rows_max: Option<NonZeroU64>,
    /// Bytes of pages that each file may have in memory, where several are open.
    pub(super) held_bytes: u64,
    pub(super) directory: Box<dyn NewObjects>,
    /// How many files there are in directories of which several are open; and that several are.
    numbers: HashMap<PathBuf, usize>,
    pub(super) are_many: bool,
    /// The values of the columns that are in the paths of files that are complete.
    pub(super) kept: Vec<Vec<Option<Values>>>,
    pub(super) written: Written,
}

impl NewFiles {
    pub(super) fn new(
        first: Shape,
        later: Shape,
        rows_max: Option<NonZeroU64>,
        directory: Box<dyn NewObjects>,
    ) -> NewFiles {
        let held_bytes = later.options().held_bytes_max;
        NewFiles {
            first,
            later,
            rows_max,
            held_bytes,
            directory,
            numbers: HashMap::new(),
            are_many: false,
            kept: Vec::new(),
            written: Written::default(),
        }
    }

    /// Bytes of pages that all open files together may have in memory.
    pub(super) fn held_bytes_max(&self) -> u64 {
        self.later.options().held_bytes_max
    }

    /// Makes them appear.
    pub(super) fn commit(self) -> Result<()> {
        self.directory.commit()
    }
}

/// A directory, and its open file.
pub(super) struct Folder {
    below: PathBuf,
    /// Files that are begun in it, where it is the only one that is open.
    number: usize,
    /// The values of the columns that are in the path.
    constants: Vec<Option<Values>>,
    file: Option<OpenObject>,
    sizing: Option<Sizing>,
    /// The file's first rows of its last writes, and the numbers of these.
    recent: VecDeque<(u64, u64)>,
}

impl Folder {
    pub(super) fn new(sizing: Option<Sizing>) -> Folder {
        Folder {
            below: PathBuf::new(),
            number: 0,
            constants: Vec::new(),
            file: None,
            sizing,
            recent: VecDeque::new(),
        }
    }

    /// One of many.
    pub(super) fn of(below: PathBuf, constants: Vec<Option<Values>>, sizing: Option<Sizing>) -> Folder {
        Folder { below, constants, ..Folder::new(sizing) }
    }

    pub(super) fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Goes on in another directory, or with other values that have the same name there (a decimal with leading zeros):
    /// they have files of their own.
    pub(super) fn enter(
        &mut self,
        below: PathBuf,
        constants: Vec<Option<Values>>,
        files: &mut NewFiles,
    ) -> Result<()> {
        self.end_file(files)?;
        if below != self.below {
            self.number = files.numbers.get(&below).copied().unwrap_or(0);
            self.below = below;
        }
        self.constants = constants;
        Ok(())
    }

    /// Writes rows that come directory by directory.
    pub(super) fn write_sorted(
        &mut self,
        batch: &Batch,
        partitioning: &Partitioning,
        files: &mut NewFiles,
    ) -> Result<()> {
        let mut start = 0;
        while start < batch.rows {
            let constants = partitioning.constants(batch, start).map_err(|error| self.first(error))?;
            let is_other = |row: &usize| !partitioning.is_same(batch, start, *row);
            let end = (start + 1..batch.rows).find(is_other).unwrap_or(batch.rows);
            if constants != self.constants {
                let below = partitioning.directory(batch, start).map_err(|error| self.first(error))?;
                self.enter(below, constants, files)?;
            }
            let part = partitioning.kept(batch.slice(start..end));
            self.write(&part, files).map_err(Error::without_row)?;
            start = end;
        }
        Ok(())
    }

    /// Writes rows of this directory, whose numbers are of no meaning in errors.
    pub(super) fn write(&mut self, batch: &Batch, files: &mut NewFiles) -> Result<()> {
        let mut start = 0;
        while start < batch.rows {
            if let (Some(most), Some(file)) = (files.rows_max, &self.file)
                && file.rows() >= most.get()
            {
                self.end_file(files)?;
            }
            if self.file.is_none() {
                self.begin_file(files)?;
            }
            let Some(file) = &mut self.file else {
                return Err(Error::internal("a file that is not open"));
            };
            let mut end = batch.rows;
            if let Some(most) = files.rows_max {
                let room = usize_of(most.get() - file.rows()).unwrap_or(usize::MAX);
                end = end.min(start.saturating_add(room));
            }
            if let Some(sizing) = &self.sizing {
                end = end.min(start.saturating_add(sizing.room(file.rows())));
            }
            file.write(batch.slice(start..end))?;
            start = end;
            if let Some(sizing) = &mut self.sizing
                && sizing.is_reached(file)?
            {
                let written = self.end_file(files)?;
                if let Some(sizing) = &mut self.sizing {
                    sizing.learn(&written);
                }
            }
        }
        Ok(())
    }

    /// The same for one of many directories: this is that write of all. Whether a file was begun.
    pub(super) fn write_numbered(
        &mut self,
        batch: &Batch,
        number: u64,
        files: &mut NewFiles,
    ) -> Result<bool> {
        let had_file = self.has_file();
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back((self.file.as_ref().map_or(0, OpenFile::rows), number));
        self.write(batch, files)?;
        Ok(!had_file && self.has_file())
    }

    /// The number of the write in which the file's error is that was returned last; the last one if it is not one of a row.
    pub(super) fn failed_in(&self) -> Option<u64> {
        let last = self.recent.back()?.1;
        let Some(row) = self.file.as_ref().and_then(OpenFile::failed_row) else { return Some(last) };
        let found = self.recent.iter().rev().find(|(start, _)| *start <= row);
        Some(found.map_or(last, |(_, number)| *number))
    }

    /// Has at most so many bytes of pages in memory from now on.
    pub(super) fn hold_at_most(&mut self, bytes: u64) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.hold_at_most(bytes))
    }

    /// Waits until the rows so far are with their columns.
    pub(super) fn drain(&mut self) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), OpenFile::drain).map_err(Error::without_row)
    }

    /// The error to report after rows were found to be at fault: that of earlier ones, if there is one.
    fn first(&mut self, error: Error) -> Error {
        self.drain().map_or_else(|earlier| earlier, |()| error)
    }

    /// Begins the next file.
    pub(super) fn begin_file(&mut self, files: &mut NewFiles) -> Result<()> {
        let number = match files.are_many {
            true => files.numbers.entry(self.below.clone()).or_default(),
            false => &mut self.number,
        };
        let place = self.below.join(format!("part-{number:05}.parquet"));
        *number += 1;
        if let Some((_, last)) = self.recent.pop_back() {
            self.recent = VecDeque::from([(0, last)]);
        }
        let file = files.directory.create(&place)?;
        let has_learned = self.sizing.as_ref().is_some_and(Sizing::has_learned);
        let shape = if has_learned { &files.later } else { &files.first };
        let scratch: Option<&Path> = files.directory.scratch();
        self.file = Some(match files.are_many {
            true => OpenFile::of_many(shape, file, scratch)?,
            false => OpenFile::new(shape, file, scratch)?,
        });
        if files.are_many { self.hold_at_most(files.held_bytes) } else { Ok(()) }
    }

    /// Ends the file at hand, if there is one. Returns what was written of it.
    pub(super) fn end_file(&mut self, files: &mut NewFiles) -> Result<Written> {
        let Some(file) = &mut self.file else { return Ok(Written::default()) };
        // (Its rows are numbered for themselves.)
        file.finish().map_err(Error::without_row)?;
        let Some(file) = self.file.take() else { return Ok(Written::default()) };
        let written = file.written()?;
        files.written.rows += written.rows;
        files.written.files += 1;
        files.written.bytes += written.bytes;
        files.written.row_groups += written.row_groups;
        files.kept.push(self.constants.clone());
        file.file.commit()?;
        Ok(written)
    }
}
