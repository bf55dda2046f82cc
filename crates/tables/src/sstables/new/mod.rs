//! SSTables as a destination: a new directory of them, for `nodetool import` or `nodetool refresh`.

mod buckets;
mod encoding;
mod files;
mod hidden;
mod manifest;
mod options;
mod rows;
mod writing;

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Detail, Error, ErrorKind, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::shown;
use marquetry_parquet::batch::Batch;
use marquetry_scylla::bridge::mutations::{MutationMapping, UnmapStep, Unmapper};
use marquetry_scylla::cql::TableName;
use marquetry_scylla::sstable::TableColumns;
use marquetry_scylla::sstable::write::SstableWriter;

use crate::key_values::{TABLE_NAME_KEY, TABLE_SCHEMA_KEY, name_of};
use crate::sorting::MEMORY_BYTES;
use crate::stage::{Guard, Stage};
use crate::subject::named;
use crate::{Cancel, Described, Destination, Table, Wants, Written};

pub use manifest::ManifestOptions;
pub use options::{NewSstablesOptions, PlainRowsOptions};

use files::NewFiles;
use hidden::{Hidden, cannot_be_replaced, failed};
use rows::{PlainRows, expect_no_options};
use writing::Writing;

/// A new directory of SSTables, which appears when all of them are complete and on disk; beside them is a `schema.cql`, if the
/// table can be made by CQL.
///
/// Rows of the mapping `full` are the writes that they are; they must be in the order of tokens, as other SSTables and Parquet files made of them have
/// them. Other rows become writes as `INSERT` statements would make them ([`PlainRowsOptions`]), and are sorted, with a file for those that do not fit
/// into memory. Until it is committed, files are in a hidden directory beside it.
pub struct NewSstables {
    path: PathBuf,
    name: String,
    options: NewSstablesOptions,
    guard: Guard,
    cancel: Cancel,
    threads: usize,
    memory_bytes: u64,
    open: Option<Box<Open>>,
    notes: Vec<String>,
}

/// What is being written.
struct Open {
    rows: Rows,
    writing: Writing,
    /// Rows that were taken.
    taken: u64,
    schema: Option<String>,
    /// The table's name, where a manifest wants it.
    table: Option<TableName>,
}

/// What rows are.
enum Rows {
    /// Writes.
    Full(Box<FullRows>),
    /// What becomes writes.
    Plain(Box<PlainRows>),
}

/// Rows of the mapping `full`.
struct FullRows {
    unmapper: Unmapper,
    /// The object that rows come from, and those of the last batches: an error may be about a row of one before.
    subject: Arc<str>,
    subjects: VecDeque<Arc<str>>,
    /// Batches that were taken.
    batches: u64,
}

/// Batches whose objects are known: more than those that the unmapper knows the rows of.
const SUBJECTS_KNOWN: usize = 16;

impl FullRows {
    fn new(unmapper: Unmapper) -> FullRows {
        FullRows { unmapper, subject: Arc::from(""), subjects: VecDeque::new(), batches: 0 }
    }

    /// Makes writes of rows, and of what is left of those before them.
    fn write(&mut self, batch: Option<Batch>, writing: &mut Writing, cancel: &Cancel) -> Result<()> {
        let made = self.unmap(batch, writing, cancel);
        if made.is_err() {
            // What was wrong with earlier writes comes first.
            self.settle(writing)?;
        }
        made
    }

    fn unmap(&mut self, mut batch: Option<Batch>, writing: &mut Writing, cancel: &Cancel) -> Result<()> {
        loop {
            cancel.check()?;
            match self.unmapper.step(&mut Budget::unlimited())? {
                UnmapStep::Ready(writes) => {
                    writing.put(writes).map_err(|error| self.placed(error, writing.entry()))?;
                }
                UnmapStep::Need => match batch.take() {
                    Some(batch) => {
                        if self.subjects.len() == SUBJECTS_KNOWN {
                            self.subjects.pop_front();
                        }
                        self.subjects.push_back(Arc::clone(&self.subject));
                        self.batches += 1;
                        self.unmapper.feed(batch)?;
                    }
                    None => return Ok(()),
                },
                UnmapStep::Yield => {}
                UnmapStep::Done => return Ok(()),
            }
        }
    }

    /// Waits until all writes that were made are written.
    fn settle(&self, writing: &mut Writing) -> Result<()> {
        let settled = writing.settle().map(|_| ());
        settled.map_err(|error| self.placed(error, writing.entry()))
    }

    /// Adds the row to an error about an entry.
    fn placed(&self, error: Error, entry: Option<u64>) -> Error {
        let is_of_rows = [ErrorKind::Conversion, ErrorKind::Unsupported, ErrorKind::LimitExceeded];
        let row = entry.filter(|_| is_of_rows.contains(&error.kind()));
        let Some((batch, row)) = row.and_then(|entry| self.unmapper.row_of(entry)) else { return error };
        let back = self.batches.checked_sub(batch + 1).and_then(|back| usize::try_from(back).ok());
        let subject = back.and_then(|back| self.subjects.iter().rev().nth(back));
        named(error.at(|place| place.row = Some(row)), subject.map_or("", |subject| &**subject))
    }
}

impl NewSstables {
    /// SSTables in a directory at `path`, which does not exist, or has nothing in it. Nothing is created yet.
    ///
    /// # Errors
    ///
    /// `Misuse` with [`AlreadyExists`](Detail::AlreadyExists) if something is there; `Unsupported` for a path of an object store, and for a
    /// symbolic link or a mount point, whose place a complete directory cannot take; `Misuse` for a path without a name.
    pub fn new(path: impl AsRef<Path>, options: NewSstablesOptions) -> Result<NewSstables> {
        let path = path.as_ref().to_path_buf();
        let name = shown(&path.to_string_lossy());
        let about = |error: Error| named(error, &name);
        if path.to_string_lossy().contains("://") {
            return Err(about(Error::unsupported(
                "SSTables are written to a local directory: copy it to the store when it is complete",
            )));
        }
        if path.file_name().is_none() {
            return Err(about(Error::misuse("a new directory for SSTables needs a name")));
        }
        let is_free = match fs::read_dir(&path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        };
        if !is_free {
            return Err(about(
                Error::misuse("there is something already: SSTables go to a new directory, or an empty one")
                    .with(Detail::AlreadyExists),
            ));
        }
        if let Some(why) = cannot_be_replaced(&path) {
            return Err(about(Error::unsupported(format!(
                "{why}: SSTables go to a new directory, which takes its name when it is complete"
            ))));
        }
        options.write()?;
        Ok(NewSstables {
            path,
            name,
            options,
            guard: Guard::default(),
            cancel: Cancel::new(),
            threads: 1,
            memory_bytes: MEMORY_BYTES,
            open: None,
            notes: Vec::new(),
        })
    }

    fn begin_directory(&mut self, table: &Table) -> Result<Wants> {
        let options = self.options.write()?;
        let (rows, columns, schema, name) = match Described::of(table)? {
            Some(Described { mapping: MutationMapping::Full, columns }) => {
                expect_no_options(&self.options.rows)?;
                let columns = Arc::new(columns);
                let unmapper = Unmapper::new(Arc::clone(&columns), &table.schema, self.options.limits)
                    .map_err(|error| named(error, &table.name))?
                    .in_order();
                let (schema, note) = schema_of(table, &columns);
                self.notes.extend(note);
                (Rows::Full(Box::new(FullRows::new(unmapper))), columns, schema, name_of(table))
            }
            _ => {
                let memory_bytes = self.memory_bytes;
                let rows = PlainRows::new(table, &self.options.rows, memory_bytes, self.threads, &self.path)?;
                let (columns, schema) = (Arc::clone(rows.columns()), rows.statements().to_owned());
                let name = rows.table().clone();
                (Rows::Plain(Box::new(rows)), columns, Some(schema), Some(name))
            }
        };
        let name = name.filter(|_| self.options.manifest.is_some());
        if self.options.manifest.is_some() && name.as_ref().is_none_or(|name| name.keyspace.is_none()) {
            let what = "a manifest names the table, with its keyspace, and neither is known";
            return Err(named(Error::option("manifest", what), &table.name));
        }
        self.notes.extend(self.options.note().map(str::to_owned));
        // What the version cannot have of such a table is said before anything is created.
        SstableWriter::new(&columns, options.clone(), &StandardCodecs::default())?;
        let files = NewFiles::new(Hidden::create(&self.path)?, columns, options);
        let writing = Writing::new(files, self.threads, &self.cancel);
        self.open = Some(Box::new(Open { rows, writing, taken: 0, schema, table: name }));
        Ok(Wants::default())
    }

    fn open(&mut self) -> Result<(&mut Open, &Cancel)> {
        match &mut self.open {
            Some(open) => Ok((open, &self.cancel)),
            None => Err(Error::internal("SSTables that are not open")),
        }
    }

    fn commit_directory(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else { return Err(Error::internal("SSTables that are not open")) };
        let files = open.writing.into_files()?;
        if let Some(schema) = &open.schema {
            create(&files.directory.path().join("schema.cql"), schema)?;
        }
        if let (Some(options), Some(table)) = (&self.options.manifest, &open.table) {
            let text = manifest::text(options, self.options.tablets, table, &files.sstables);
            create(&files.directory.path().join("manifest.json"), &text)?;
        }
        if files.written.files == 0 {
            let left = if open.schema.is_some() { "schema.cql alone" } else { "nothing" };
            self.notes
                .push(format!("there was nothing to write: no SSTables, and {left} in the new directory"));
        }
        files.directory.appear(&self.path)
    }
}

impl Destination for NewSstables {
    fn name(&self) -> &str {
        &self.name
    }

    fn cancelled_by(&mut self, cancel: &Cancel) {
        self.cancel = cancel.clone();
    }

    fn set_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    fn set_sorting(&mut self, memory_bytes: Option<u64>) {
        self.memory_bytes = memory_bytes.unwrap_or(MEMORY_BYTES);
    }

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.guard.expect(Stage::New)?;
        let begun = self.begin_directory(table);
        self.guard.then(Stage::Begun, begun)
    }

    fn rows_from(&mut self, object: &str) {
        match self.open.as_deref_mut().map(|open| &mut open.rows) {
            Some(Rows::Plain(plain)) => plain.rows_from(object),
            Some(Rows::Full(full)) => full.subject = Arc::from(object),
            None => {}
        }
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let rows = u64_of(batch.rows);
        let written = self.open().and_then(|(open, cancel)| {
            match &mut open.rows {
                Rows::Full(full) => full.write(Some(batch), &mut open.writing, cancel)?,
                Rows::Plain(plain) => plain.write(batch, cancel)?,
            }
            open.taken += rows;
            Ok(())
        });
        self.guard.then(Stage::Begun, written)
    }

    fn drain(&mut self) -> Result<()> {
        let cancel = &self.cancel;
        match self.open.as_deref_mut() {
            Some(Open { rows: Rows::Plain(plain), .. }) => plain.take_rest(cancel),
            Some(Open { rows: Rows::Full(full), writing, .. }) => full.settle(writing),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<Written> {
        self.guard.expect(Stage::Begun)?;
        let written = self.open().and_then(|(open, cancel)| {
            match &mut open.rows {
                Rows::Full(full) => {
                    full.unmapper.finish();
                    full.write(None, &mut open.writing, cancel)?;
                    full.settle(&mut open.writing)?;
                }
                Rows::Plain(plain) => plain.finish(&mut open.writing, cancel)?,
            }
            let files = open.writing.settle()?;
            files.finish(cancel)?;
            files.written.rows = open.taken;
            let joined = match &open.rows {
                // A static row may be one of none that was taken.
                Rows::Plain(plain) if plain.columns().statics.is_empty() => {
                    open.taken.saturating_sub(files.rows)
                }
                _ => 0,
            };
            Ok((files.written, joined))
        });
        let written = written.map(|(written, joined)| {
            if joined > 0 {
                let (taken, keys) = (written.rows, written.rows - joined);
                self.notes.push(format!(
                    "{taken} rows have {keys} keys: rows with the same key are one row of the table"
                ));
            }
            written
        });
        self.guard.then(Stage::Finished, written)
    }

    fn commit(&mut self) -> Result<()> {
        self.guard.expect(Stage::Finished)?;
        let committed = self.commit_directory();
        self.guard.then(Stage::Committed, committed)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// Writes a file beside the SSTables, and waits until it is on disk.
fn create(path: &Path, text: &str) -> Result<()> {
    let written = File::create_new(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| failed(path, error))
}

/// The statements that make the table; or why there are none.
fn schema_of(table: &Table, columns: &TableColumns) -> (Option<String>, Option<String>) {
    let value = |key: &str| {
        let found = table.key_values.iter().find(|it| it.key == key)?;
        found.value.as_ref().and_then(|value| std::str::from_utf8(value).ok())
    };
    if let Some(schema) = value(TABLE_SCHEMA_KEY) {
        return (Some(schema.to_owned()), None);
    }
    let without = |why: String| (None, Some(format!("no schema.cql beside the SSTables: {why}")));
    let Some(name) = value(TABLE_NAME_KEY) else {
        return without("the table's name is not known".to_owned());
    };
    let parsed = TableName::parse(name).map_err(|error| error.to_string());
    match parsed.and_then(|name| columns.definition(&name).map_err(|error| error.message().to_owned())) {
        Ok((made, types)) => {
            let types = types.iter().map(|made| format!("{made};\n"));
            (Some(types.chain([format!("{made};\n")]).collect()), None)
        }
        Err(why) => without(why),
    }
}
