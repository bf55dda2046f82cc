//! A directory of Parquet files as a destination.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Detail, Error, Faults, Result};
use marquetry_io::SCHEMA_FILE;
use marquetry_io::files::PARQUET_EXTENSIONS;
use marquetry_io::shown;
use marquetry_io::store::{Found, LocalFiles, Store};
use marquetry_parquet::batch::Batch;

use super::ParquetOptions;
use super::dispatch::{Dispatch, Host};
use super::folder::{Folder, NewFiles};
use super::open_file::Shape;
use super::partition::Partitioning;
use super::sizing::Sizing;
use crate::files::Files;
use crate::sorting::MEMORY_BYTES;
use crate::stage::{Guard, Stage};
use crate::{Cancel, ColumnPath, Destination, Source, TABLE_SCHEMA_KEY, Table, Wants, Written};

/// How a directory of Parquet files is written.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DirectoryOptions {
    /// How each file is written.
    pub parquet: ParquetOptions,
    /// Create a directory for each value of these columns, named as Hive does:
    /// `year=2024/month=2/part-00000.parquet`. The columns are not stored in the files. The files of the first 32
    /// directories are written side by side (of fewer, where there are more than 64 columns); rows of further ones are
    /// sorted by these columns first, and written one file after the other. So memory is bounded, however many
    /// directories there are. Rows of a directory keep their order. A table without rows becomes one file without rows,
    /// in the directory for null: `year=__HIVE_DEFAULT_PARTITION__`.
    pub partition_by: Vec<ColumnPath>,
    /// The most rows of a file.
    pub file_rows: Option<NonZeroU64>,
    /// The approximate bytes of a file; fewer than 4 KiB count as that. How well the rows compress is learned from the
    /// first row group of the first file, which may therefore have several, and then from each file for the next one.
    /// Each of the directories that are written side by side learns for itself.
    pub file_bytes: Option<NonZeroU64>,
}

/// A new directory of Parquet files, which appears when all of its files are complete and on disk. A directory that
/// it replaces may contain only Parquet files, directories such as `year=2024`, and a `schema.cql`: rows of a table of a live
/// cluster come with the statements that make it, which are written to that file.
///
/// Complete files are held open without a name until then, as many as half of what the process may have open, less two
/// for each file that is being written; further ones are in a hidden directory, which only a process that is killed
/// leaves behind. A program that would rather hold more of them open calls
/// [`allow_many_files`](marquetry_io::blocking::allow_many_files).
///
/// ```
/// use marquetry_tables::parquet::{DirectoryOptions, NewParquetDirectory};
/// use marquetry_tables::{ColumnPath, Destination};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let mut options = DirectoryOptions::default();
/// options.partition_by = ColumnPath::parse_list("year, month")?;
/// let trips = NewParquetDirectory::new("trips/", options)?; // the destination of a `copy`
/// assert_eq!(trips.name(), "trips/");
/// # Ok(())
/// # }
/// ```
pub struct NewParquetDirectory {
    store: Arc<dyn Store>,
    path: PathBuf,
    name: String,
    options: DirectoryOptions,
    guard: Guard,
    cancel: Cancel,
    threads: usize,
    /// How much memory there is to sort rows; `None` if the copy does.
    sorting_bytes: Option<u64>,
    open: Option<Open>,
}

/// What is being written.
struct Open {
    table: Table,
    partitioning: Option<Partitioning>,
    /// If rows come in any order, those that are not written yet.
    dispatch: Option<Dispatch>,
    /// The directory at hand, where rows come directory by directory.
    folder: Folder,
    files: NewFiles,
}

impl NewParquetDirectory {
    /// A local directory at `path`. Nothing is created yet.
    ///
    /// # Errors
    ///
    /// `Io` with [`Detail::AlreadyExists`] if something other than an empty directory exists at `path`, unless it may
    /// be replaced; `Misuse` for invalid options.
    pub fn new(path: impl AsRef<Path>, options: DirectoryOptions) -> Result<NewParquetDirectory> {
        NewParquetDirectory::new_in(Arc::new(LocalFiles), path, options)
    }

    /// The same for a directory of any store.
    ///
    /// # Errors
    ///
    /// As [`NewParquetDirectory::new`].
    pub fn new_in(
        store: Arc<dyn Store>,
        path: impl AsRef<Path>,
        options: DirectoryOptions,
    ) -> Result<NewParquetDirectory> {
        let path = path.as_ref().to_path_buf();
        let name = shown(&path.to_string_lossy());
        options.parquet.check()?;
        // What cannot be looked at is left to the directory's creation.
        let has_entries = matches!(store.look(&path), Ok(Found::Directory { is_empty: false }));
        if !options.parquet.overwrite && has_entries {
            let error = Error::io("the directory is not empty").with(Detail::AlreadyExists);
            return Err(error.at(|place| place.object = Some(name)));
        }
        Ok(NewParquetDirectory {
            store,
            path,
            name,
            options,
            guard: Guard::default(),
            cancel: Cancel::new(),
            threads: 1,
            sorting_bytes: Some(MEMORY_BYTES),
            open: None,
        })
    }

    fn open(&mut self) -> Result<&mut Open> {
        self.open.as_mut().ok_or_else(|| Error::internal("a directory that is not open"))
    }

    fn begin_directory(&mut self, table: &Table) -> Result<Wants> {
        let mut faults = Faults::default();
        let partitioning = match &*self.options.partition_by {
            [] => None,
            by => Partitioning::new(by, table, &mut faults),
        };
        let schema = match &partitioning {
            Some(partitioning) => Arc::clone(partitioning.schema()),
            None => Arc::clone(&table.schema),
        };
        let mut options = self.options.parquet.of_table(&schema, table, &mut faults);
        let order = match &partitioning {
            Some(partitioning) => partitioning.order_of_files(&table.order),
            None => table.order.clone(),
        };
        if !order.is_empty() {
            options.sorting_columns = order;
        }
        // Before a directory is made.
        let sizing = self.options.file_bytes.map(|most| Sizing::new(most, &schema, &options));
        let later = Shape::new(schema, options, faults, (self.threads, &self.cancel))?;
        let first = match &sizing {
            Some(sizing) => later.with_row_group_bytes(sizing.first_row_group_bytes()),
            None => later.clone(),
        };
        let overwrite = self.options.parquet.overwrite;
        let store = self.cancel.of_store(&self.store);
        let directory = store.create_directory(&self.path, overwrite, &PARQUET_EXTENSIONS)?;
        let scratch = directory.scratch().map(Path::to_path_buf);
        let dispatch = match (&partitioning, self.sorting_bytes) {
            (Some(partitioning), Some(memory_bytes)) => {
                let host = Host {
                    memory_bytes,
                    threads: self.threads,
                    cancel: self.cancel.clone(),
                    scratch: scratch.clone(),
                };
                Some(Dispatch::new(partitioning, table, sizing.clone(), host))
            }
            _ => None,
        };
        let order = partitioning.as_ref().filter(|_| dispatch.is_none()).map(Partitioning::order);
        let wants = Wants {
            order: order.unwrap_or_default(),
            reorders: dispatch.is_some(),
            // Directories are made of values.
            keep_dictionaries: partitioning.is_none() || dispatch.is_some(),
            scratch,
            can_verify: directory.kept().is_some(),
            ..Wants::default()
        };
        self.open = Some(Open {
            table: table.clone(),
            partitioning,
            dispatch,
            folder: Folder::new(sizing),
            files: NewFiles::new(first, later, self.options.file_rows, directory),
        });
        Ok(wants)
    }
}

impl Destination for NewParquetDirectory {
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
        self.sorting_bytes = memory_bytes;
    }

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.guard.expect(Stage::New)?;
        let begun = self.begin_directory(table);
        self.guard.then(Stage::Begun, begun)
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let written = self.open().and_then(|open| open.write(&batch));
        self.guard.then(Stage::Begun, written)
    }

    fn drain(&mut self) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let drained = self.open().and_then(Open::drain);
        self.guard.then(Stage::Begun, drained)
    }

    fn finish(&mut self) -> Result<Written> {
        self.guard.expect(Stage::Begun)?;
        let written = self.open().and_then(Open::finish);
        self.guard.then(Stage::Finished, written)
    }

    fn written(&self) -> Result<Option<Box<dyn Source>>> {
        self.guard.expect(Stage::Finished)?;
        let Some(open) = &self.open else { return Ok(None) };
        let names: Vec<&str> = open.partitioning.as_ref().map(Partitioning::names).unwrap_or_default();
        let Some(kept) = open.files.directory.kept() else { return Ok(None) };
        let files = kept.into_iter().zip(&open.files.kept).map(|((place, readable), constants)| {
            (readable, shown(&self.path.join(place).to_string_lossy()), constants.clone())
        });
        let written = Files::of_written(
            &self.store,
            files,
            &open.table.schema,
            &names,
            self.options.parquet.write.limits,
        )?;
        Ok(Some(Box::new(written)))
    }

    fn commit(&mut self) -> Result<()> {
        self.guard.expect(Stage::Finished)?;
        let committed = match self.open.take() {
            Some(open) => open.files.commit(),
            None => Err(Error::internal("a directory that is not open")),
        };
        self.guard.then(Stage::Committed, committed)
    }
}

impl Open {
    fn write(&mut self, batch: &Batch) -> Result<()> {
        match (&self.partitioning, &mut self.dispatch) {
            (Some(partitioning), Some(dispatch)) => dispatch.write(batch, partitioning, &mut self.files),
            (Some(partitioning), None) => self.folder.write_sorted(batch, partitioning, &mut self.files),
            (None, _) => self.folder.write(batch, &mut self.files).map_err(Error::without_row),
        }
    }

    /// Finds out what is wrong with the rows so far.
    fn drain(&mut self) -> Result<()> {
        match &mut self.dispatch {
            Some(dispatch) => dispatch.drain(&mut self.files),
            None => self.folder.drain(),
        }
    }

    fn finish(&mut self) -> Result<Written> {
        if let (Some(partitioning), Some(dispatch)) = (&self.partitioning, &mut self.dispatch) {
            dispatch.finish(partitioning, &mut self.folder, &mut self.files)?;
        }
        // A table without rows has a schema. The names of its partition columns are those of directories, for null.
        if self.files.written.files == 0 && !self.folder.has_file() {
            if let Some(partitioning) = &self.partitioning {
                let (below, constants) = partitioning.of_no_rows();
                self.folder.enter(below, constants, &mut self.files)?;
            }
            self.folder.begin_file(&mut self.files)?;
        }
        self.folder.end_file(&mut self.files)?;
        self.write_schema()?;
        Ok(self.files.written)
    }

    /// Writes the statements that make the table beside its files, if it has them.
    fn write_schema(&mut self) -> Result<()> {
        let statements = self.table.key_values.iter().find(|it| it.key == TABLE_SCHEMA_KEY);
        let Some(statements) = statements.and_then(|it| it.value.as_ref()) else { return Ok(()) };
        let mut file = self.files.directory.create(Path::new(SCHEMA_FILE))?;
        file.append(statements)?;
        file.commit()
    }
}
