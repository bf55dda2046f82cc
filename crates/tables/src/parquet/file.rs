//! One Parquet file as a destination.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Error, Faults, Result};
use marquetry_io::shown;
use marquetry_io::store::{LocalFiles, Store};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::Schema;

use super::ParquetOptions;
use super::open_file::{OpenFile, OpenObject, Shape};
use crate::files::Files;
use crate::stage::{Guard, Stage};
use crate::subject::check_nothing_at;
use crate::{Cancel, Destination, Source, Table, Wants, Written};

/// A new Parquet file, which appears under its name when it is complete and on disk.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
/// use marquetry_tables::{CopyOptions, Source, copy};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips: Arc<dyn Source> = Arc::new(Files::open(["trips/"], &FilesOptions::default())?);
/// let mut file = NewParquetFile::new("trips.parquet", ParquetOptions::default())?;
/// let copied = copy(&trips, &mut file, &CopyOptions::default(), &mut |_| {})?;
/// println!("{} rows in {} bytes", copied.rows, copied.written.bytes);
/// # Ok(())
/// # }
/// ```
pub struct NewParquetFile {
    store: Arc<dyn Store>,
    path: PathBuf,
    name: String,
    options: ParquetOptions,
    guard: Guard,
    cancel: Cancel,
    threads: usize,
    /// What is being written, and its schema.
    open: Option<(Box<OpenObject>, Arc<Schema>)>,
}

impl NewParquetFile {
    /// A local file at `path`. Nothing is created yet.
    ///
    /// # Errors
    ///
    /// `Io` with [`AlreadyExists`](marquetry_base::Detail::AlreadyExists) if something exists at `path`, unless it may be replaced; `Misuse` for
    /// invalid options.
    pub fn new(path: impl AsRef<Path>, options: ParquetOptions) -> Result<NewParquetFile> {
        NewParquetFile::new_in(Arc::new(LocalFiles), path, options)
    }

    /// The same for a file of any store.
    ///
    /// # Errors
    ///
    /// As [`NewParquetFile::new`].
    pub fn new_in(
        store: Arc<dyn Store>,
        path: impl AsRef<Path>,
        options: ParquetOptions,
    ) -> Result<NewParquetFile> {
        let path = path.as_ref().to_path_buf();
        let name = shown(&path.to_string_lossy());
        options.check()?;
        if !options.overwrite {
            check_nothing_at(&*store, &path)?;
        }
        Ok(NewParquetFile {
            store,
            path,
            name,
            options,
            guard: Guard::default(),
            cancel: Cancel::new(),
            threads: 1,
            open: None,
        })
    }

    fn begin_file(&mut self, table: &Table) -> Result<Wants> {
        let mut faults = Faults::default();
        let mut options = self.options.of_table(&table.schema, table, &mut faults);
        if !table.order.is_empty() {
            options.sorting_columns.clone_from(&table.order);
        }
        // Before a file is made.
        let shape = Shape::new(Arc::clone(&table.schema), options, faults, (self.threads, &self.cancel))?;
        let file = self.cancel.of_store(&self.store).create(&self.path, self.options.overwrite)?;
        let scratch = file.scratch().map(Path::to_path_buf);
        let can_verify = file.readable().is_some();
        let open = Box::new(OpenFile::new(&shape, file, scratch.as_deref())?);
        self.open = Some((open, Arc::clone(shape.schema())));
        Ok(Wants { scratch, can_verify, keep_dictionaries: true, ..Wants::default() })
    }

    fn open(&mut self) -> Result<&mut OpenObject> {
        match &mut self.open {
            Some((open, _)) => Ok(open),
            None => Err(Error::internal("a file that is not open")),
        }
    }
}

impl Destination for NewParquetFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn cancelled_by(&mut self, cancel: &Cancel) {
        self.cancel = cancel.clone();
    }

    fn set_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.guard.expect(Stage::New)?;
        let begun = self.begin_file(table);
        self.guard.then(Stage::Begun, begun)
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let written = self.open().and_then(|open| open.write(batch));
        self.guard.then(Stage::Begun, written)
    }

    fn drain(&mut self) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let drained = self.open().and_then(OpenFile::drain);
        self.guard.then(Stage::Begun, drained)
    }

    fn finish(&mut self) -> Result<Written> {
        self.guard.expect(Stage::Begun)?;
        let written = self.open().and_then(|open| open.finish().and_then(|()| open.written()));
        self.guard.then(Stage::Finished, written)
    }

    fn written(&self) -> Result<Option<Box<dyn Source>>> {
        self.guard.expect(Stage::Finished)?;
        let Some((open, schema)) = &self.open else { return Ok(None) };
        let Some(readable) = open.file.readable() else { return Ok(None) };
        let file = (readable, self.name.clone(), Vec::new());
        let written =
            Files::of_written(&self.store, [file].into_iter(), schema, &[], self.options.write.limits)?;
        Ok(Some(Box::new(written)))
    }

    fn commit(&mut self) -> Result<()> {
        self.guard.expect(Stage::Finished)?;
        let committed = match self.open.take() {
            Some((open, _)) => open.file.commit(),
            None => Err(Error::internal("a file that is not open")),
        };
        self.guard.then(Stage::Committed, committed)
    }
}
