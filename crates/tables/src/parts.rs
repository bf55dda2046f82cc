//! A copy into a directory that can go on after whatever ended it: files appear one by one, and a state says which rows are in them.

mod rows;
mod state;

use std::fs;
use std::io::ErrorKind as IoKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Detail, Error, Result};
use marquetry_io::blocking::NewFile;
use marquetry_io::state_file::Lock;
use marquetry_io::{ByteSink, SCHEMA_FILE, failed};
use marquetry_parquet::batch::Batch;

use crate::copy::{Copied, CopyOptions, copy};
use crate::parquet::{NewParquetFile, ParquetOptions};
use crate::{Cancel, Destination, Source, TABLE_SCHEMA_KEY, Table, Wants, Written};
use rows::{PartOf, name_of};
use state::{Part, State, of_state, table_of};

/// A copy of a table, whose pieces are [token ranges](crate::Piece::tokens), into a directory of Parquet files. Each file has the rows of some token
/// ranges, and appears when it is complete. A file of state says which ranges are in files that appeared; after whatever ended
/// the copy, another one reads the rest. So each row that was there all the time is in exactly one file, also if the servers split their ring
/// otherwise meanwhile: what is remembered are intervals.
///
/// 1. [`Parts::open`] reads the state, and locks it;
/// 2. the source is opened without the rows of [`Parts::done`];
/// 3. [`Parts::copy`] copies.
///
/// Unlike a [`NewParquetDirectory`](crate::parquet::NewParquetDirectory), the directory is there before it is complete.
#[derive(Debug)]
pub struct Parts {
    path: PathBuf,
    directory: PathBuf,
    options: String,
    /// The table that they are of, once known.
    source: Option<String>,
    parts: Vec<Part>,
    is_finished: bool,
    _lock: Lock,
}

/// Pieces whose rows are in one file: of those that are about 32 MiB large for a cluster's servers, files of a row group or so.
const PIECES_OF_A_FILE: usize = 8;

impl Parts {
    /// Reads the state of a copy that goes on, or begins one. `options` is what else says which rows there are.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `state`: a copy that is there and is not to go on, is another one, or goes on in another process; `Io` with
    /// [`Detail::AlreadyExists`] for a directory that is not empty when a copy begins; `Io` and `Corrupt` for a state that cannot be
    /// read.
    pub fn open(state: &Path, directory: &Path, resume: bool, options: &str) -> Result<Parts> {
        let lock = Lock::take(state, "state")?;
        // `trips/` is `trips`.
        let directory = &*directory.components().collect::<PathBuf>();
        let name = state.display().to_string();
        let wrong = |what: String| Error::option("state", what);
        let mut parts = Parts {
            path: state.to_path_buf(),
            directory: directory.to_path_buf(),
            options: options.to_owned(),
            source: None,
            parts: Vec::new(),
            is_finished: false,
            _lock: lock,
        };
        let text = match fs::read_to_string(state) {
            Ok(text) => text,
            Err(error) if error.kind() == IoKind::NotFound => {
                parts.expect_empty()?;
                return Ok(parts);
            }
            Err(error) => return Err(failed("read", &name, error)),
        };
        let read = state::read(&text)
            .map_err(|what| Error::corrupt(what).at(|place| place.object = Some(name.clone())))?;
        if !resume {
            let how =
                if read.is_finished { "was finished; remove it to copy again" } else { "was not finished" };
            return Err(wrong(format!("{name} has the state of a copy that {how}"))
                .with(Detail::AdmittedBy(&["resume"])));
        }
        if read.directory != directory.display().to_string() {
            let what = format!(
                "{name} has the state of a copy into {}, and not {}",
                read.directory,
                directory.display()
            );
            return Err(wrong(what));
        }
        if read.options != options {
            return Err(wrong(format!(
                "{name} has the state of a copy with other options: it goes on with those that it began with"
            )));
        }
        (parts.source, parts.is_finished) = (Some(read.source), read.is_finished);
        for part in read.parts {
            // It was written down before its file appeared, which it then did not; or somebody removed it.
            let is_there = part.file.as_ref().is_none_or(|file| directory.join(file).is_file());
            parts.is_finished &= is_there;
            if is_there {
                part.check(directory)?;
                parts.parts.push(part);
            }
        }
        parts.expect_own()?;
        Ok(parts)
    }

    /// The tokens whose rows are in files: ranges that ascend, in order.
    pub fn done(&self) -> Vec<RangeInclusive<i64>> {
        let mut done: Vec<RangeInclusive<i64>> = self.parts.iter().map(|part| part.tokens.clone()).collect();
        done.sort_unstable_by_key(|tokens| *tokens.start());
        done
    }

    /// The rows that are in files.
    pub fn rows(&self) -> u64 {
        self.parts.iter().map(|part| part.rows).sum()
    }

    /// The files.
    pub fn files(&self) -> u64 {
        u64_of(self.parts.iter().filter(|part| part.file.is_some()).count())
    }

    /// Whether all rows are in files.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Copies the source's rows, which are all but those of [`done`](Parts::done). `report` gets what was copied so far by this call.
    ///
    /// # Errors
    ///
    /// As [`copy`](crate::copy()); `Misuse` for another table than the one that the copy began with, for pieces that are no token ranges, and
    /// for a limit and an order, which parts do not have.
    pub fn copy(
        &mut self,
        source: &Arc<dyn Source>,
        parquet: &ParquetOptions,
        options: &CopyOptions,
        report: &mut dyn FnMut(&Copied),
    ) -> Result<Copied> {
        let table = source.table();
        self.expect(table)?;
        let none = |option: &'static str| {
            Error::option(option, "a copy in parts, which can go on, takes rows as they come")
        };
        if options.limit.is_some() {
            return Err(none("limit"));
        }
        if !options.sort.is_empty() {
            return Err(none("sort"));
        }
        let mut copied = Copied::default();
        if self.is_finished {
            return Ok(copied);
        }
        let directory = self.directory.display().to_string();
        fs::create_dir_all(&self.directory).map_err(|error| failed("created", &directory, error))?;
        // It says that the directory is complete, which it is no more if a file was removed.
        self.remove_schema()?;
        self.save()?;
        let mut first = 0;
        while first < source.pieces().len() {
            let some = PartOf::new(Arc::clone(source), first, PIECES_OF_A_FILE)?;
            first += some.pieces.len();
            let tokens = some.tokens.clone();
            let file = name_of(&tokens);
            let mut parquet = parquet.clone();
            // What is there is of the part that is written now, or somebody else's.
            parquet.overwrite = false;
            let part = Part { file: Some(file.clone()), tokens, rows: 0, bytes: 0 };
            let destination = NewParquetFile::new(self.directory.join(file), parquet)?;
            let mut destination = OfPart { file: destination, part: Some(part), parts: self };
            let some: Arc<dyn Source> = Arc::new(some);
            let before = copied;
            let of_part = copy(&some, &mut destination, options, &mut |now| report(&sum(&before, now)))?;
            copied = sum(&before, &of_part);
            if of_part.rows == 0 {
                // There is no file of it.
                copied.written = before.written;
            }
        }
        if self.files() == 0 {
            copied.written.files += self.write_empty(table, parquet)?;
        }
        self.write_schema(table)?;
        self.is_finished = true;
        self.save()?;
        Ok(copied)
    }

    /// Writes a file without rows, so that the directory of a table that has none is one, too; how many files there are now.
    fn write_empty(&mut self, table: &Table, parquet: &ParquetOptions) -> Result<u64> {
        let Some(last) = self.parts.last_mut() else { return Ok(0) };
        let name = name_of(&last.tokens);
        let parquet = ParquetOptions { overwrite: false, ..parquet.clone() };
        let mut file = NewParquetFile::new(self.directory.join(&name), parquet)?;
        file.begin(table)?;
        (last.file, last.bytes) = (Some(name), file.finish()?.bytes);
        self.save()?;
        file.commit()?;
        Ok(1)
    }

    fn expect_empty(&self) -> Result<()> {
        let has_entries = fs::read_dir(&self.directory).is_ok_and(|mut entries| entries.next().is_some());
        match has_entries {
            true => {
                let error = Error::io("the directory is not empty").with(Detail::AlreadyExists);
                Err(error.at(|place| place.object = Some(self.directory.display().to_string())))
            }
            false => Ok(()),
        }
    }

    /// Fails for a Parquet file in the directory that is none of the copy's: whoever reads the directory has its rows, too.
    fn expect_own(&self) -> Result<()> {
        let about = |error| failed("read", &self.directory.display().to_string(), error);
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == IoKind::NotFound => return Ok(()),
            entries => entries.map_err(about)?,
        };
        for entry in entries {
            let entry = entry.map_err(about)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_own = self.parts.iter().any(|part| part.file.as_deref() == Some(&*name));
            if name.ends_with(".parquet") && !name.starts_with('.') && !is_own {
                let what = "this copy did not write it: move it elsewhere, so that the directory has the table's rows only";
                return Err(of_state(what, &entry.path()));
            }
        }
        Ok(())
    }

    /// The table is the one that the copy began with.
    fn expect(&mut self, table: &Table) -> Result<()> {
        let is = format!(
            "{} ({}, schema {:016x})",
            table_of(&table.name),
            table.identity.as_deref().unwrap_or("no identity"),
            table.fingerprint()
        );
        match &self.source {
            Some(was) if *was != is => {
                let what = format!(
                    "{} has the state of a copy of another table: {was}, and not {is}",
                    self.path.display()
                );
                Err(Error::option("state", what))
            }
            _ => {
                self.source = Some(is);
                Ok(())
            }
        }
    }

    /// Writes the statements that make the table beside the files, if there are any.
    fn write_schema(&self, table: &Table) -> Result<()> {
        let statements = table.key_values.iter().find(|it| it.key == TABLE_SCHEMA_KEY);
        let Some(statements) = statements.and_then(|it| it.value.as_ref()) else { return Ok(()) };
        let mut file = NewFile::create(self.directory.join(SCHEMA_FILE))?;
        file.append(statements)?;
        file.replace()
    }

    fn remove_schema(&self) -> Result<()> {
        let path = self.directory.join(SCHEMA_FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != IoKind::NotFound => {
                Err(failed("removed", &path.display().to_string(), error))
            }
            _ => Ok(()),
        }
    }

    fn save(&self) -> Result<()> {
        let state = State {
            source: self.source.clone().unwrap_or_default(),
            directory: self.directory.display().to_string(),
            options: self.options.clone(),
            parts: self.parts.clone(),
            is_finished: self.is_finished,
        };
        let mut file = NewFile::create(&self.path)?;
        file.append(state.text().as_bytes())?;
        file.replace()
    }
}

/// What two copies did.
fn sum(before: &Copied, now: &Copied) -> Copied {
    let mut sum = *before;
    sum.rows += now.rows;
    sum.bytes_read += now.bytes_read;
    sum.verified += now.verified;
    // All parts have one counter of these.
    sum.values_lost = now.values_lost;
    let (written, more) = (&mut sum.written, &now.written);
    written.rows += more.rows;
    written.bytes += more.bytes;
    written.files += more.files;
    written.row_groups += more.row_groups;
    sum
}

/// The file of a part: it is written down in the state before it appears.
struct OfPart<'a> {
    file: NewParquetFile,
    part: Option<Part>,
    parts: &'a mut Parts,
}

impl Destination for OfPart<'_> {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn cancelled_by(&mut self, cancel: &Cancel) {
        self.file.cancelled_by(cancel);
    }

    fn set_threads(&mut self, threads: usize) {
        self.file.set_threads(threads);
    }

    fn set_sorting(&mut self, memory_bytes: Option<u64>) {
        self.file.set_sorting(memory_bytes);
    }

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.file.begin(table)
    }

    fn rows_from(&mut self, object: &str) {
        self.file.rows_from(object);
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        if let Some(part) = &mut self.part {
            part.rows += u64_of(batch.rows);
        }
        self.file.write(batch)
    }

    fn drain(&mut self) -> Result<()> {
        self.file.drain()
    }

    fn finish(&mut self) -> Result<Written> {
        let written = self.file.finish()?;
        if let Some(part) = &mut self.part {
            part.bytes = written.bytes;
        }
        Ok(written)
    }

    fn written(&self) -> Result<Option<Box<dyn Source>>> {
        self.file.written()
    }

    fn commit(&mut self) -> Result<()> {
        let Some(mut part) = self.part.take() else {
            return Err(Error::misuse("a part that was written before"));
        };
        let has_rows = part.rows > 0;
        if !has_rows {
            part.file = None;
        }
        self.parts.parts.push(part);
        let appeared = self.parts.save().and_then(|()| if has_rows { self.file.commit() } else { Ok(()) });
        if appeared.is_err() {
            // Its rows are not there. The file of the state may have it: it counts if its file is there.
            self.parts.parts.pop();
        }
        appeared
    }

    fn settle(&mut self) {
        self.file.settle();
    }
}

#[cfg(test)]
mod tests;
