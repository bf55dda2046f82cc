//! A directory of Parquet files as a destination.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Detail, Error, Faults, Result};
use marquetry_io::files::PARQUET_EXTENSIONS;
use marquetry_io::shown;
use marquetry_io::store::{Found, LocalFiles, NewObjects, Store};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::WriteOptions;

use super::ParquetOptions;
use super::open_file::{OpenFile, OpenObject, Shape};
use super::partition::Partitioning;
use crate::files::Files;
use crate::stage::{Guard, Stage};
use crate::{Cancel, ColumnPath, Destination, Source, Table, Wants, Written};

/// How a directory of Parquet files is written.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DirectoryOptions {
    /// How each file is written.
    pub parquet: ParquetOptions,
    /// Create a directory for each value of these columns, named as Hive does:
    /// `year=2024/month=2/part-00000.parquet`. The columns are not stored in the files. Rows are sorted by them
    /// first, so only one file is open, however many directories there are. A table without rows becomes one file
    /// without rows, in the directory for null: `year=__HIVE_DEFAULT_PARTITION__`.
    pub partition_by: Vec<ColumnPath>,
    /// The most rows of a file.
    pub file_rows: Option<NonZeroU64>,
    /// The approximate bytes of a file; fewer than 4 KiB count as that. How well the rows compress is learned from the
    /// first row group of the first file, which may therefore have several, and then from each file for the next one.
    pub file_bytes: Option<NonZeroU64>,
}

/// A new directory of Parquet files, which appears when all of its files are complete and on disk. A directory that
/// it replaces may contain only Parquet files and directories such as `year=2024`.
///
/// Complete files are held open without a name until then, as many as half of what the process may have open; further
/// ones are in a hidden directory, which only a process that is killed leaves behind. A program that would rather hold
/// more of them open calls [`allow_many_files`](marquetry_io::blocking::allow_many_files).
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
    open: Option<Open>,
}

/// What is being written.
struct Open {
    table: Table,
    shape: Shape,
    /// Where files end that are to have a number of bytes.
    sizing: Option<Sizing>,
    partitioning: Option<Partitioning>,
    directory: Box<dyn NewObjects>,
    /// The file at hand.
    file: Option<OpenObject>,
    /// The directory at hand, and files that are begun in it.
    below: PathBuf,
    number: usize,
    /// The values of the columns that are in the path at hand, and those of the files that are whole.
    constants: Vec<Option<Values>>,
    kept: Vec<Vec<Option<Values>>>,
    written: Written,
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
            open: None,
        })
    }

    fn open(&mut self) -> Result<(&mut Open, &DirectoryOptions)> {
        match &mut self.open {
            Some(open) => Ok((open, &self.options)),
            None => Err(Error::internal("a directory that is not open")),
        }
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
        let sizing = self.options.file_bytes.map(|most| {
            let sizing = Sizing::new(most, (&schema, &options), (self.threads, &self.cancel));
            options.row_group_bytes = options.row_group_bytes.min(sizing.first_row_group_bytes());
            sizing
        });
        let shape = Shape::new(schema, options, faults, (self.threads, &self.cancel))?;
        let overwrite = self.options.parquet.overwrite;
        let store = self.cancel.of_store(&self.store);
        let directory = store.create_directory(&self.path, overwrite, &PARQUET_EXTENSIONS)?;
        let wants = Wants {
            order: partitioning.as_ref().map(Partitioning::order).unwrap_or_default(),
            scratch: directory.scratch().map(Path::to_path_buf),
            can_verify: directory.kept().is_some(),
            ..Wants::default()
        };
        self.open = Some(Open {
            table: table.clone(),
            shape,
            sizing,
            partitioning,
            directory,
            file: None,
            below: PathBuf::new(),
            number: 0,
            constants: Vec::new(),
            kept: Vec::new(),
            written: Written::default(),
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

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.guard.expect(Stage::New)?;
        let begun = self.begin_directory(table);
        self.guard.then(Stage::Begun, begun)
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let written = self.open().and_then(|(open, options)| open.write(&batch, options));
        self.guard.then(Stage::Begun, written)
    }

    fn drain(&mut self) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let drained = self.open().and_then(|(open, _)| open.drain());
        self.guard.then(Stage::Begun, drained)
    }

    fn finish(&mut self) -> Result<Written> {
        self.guard.expect(Stage::Begun)?;
        let written = self.open().and_then(|(open, _)| open.finish());
        self.guard.then(Stage::Finished, written)
    }

    fn written(&self) -> Result<Option<Box<dyn Source>>> {
        self.guard.expect(Stage::Finished)?;
        let Some(open) = &self.open else { return Ok(None) };
        let names: Vec<&str> = open.partitioning.as_ref().map(Partitioning::names).unwrap_or_default();
        let Some(kept) = open.directory.kept() else { return Ok(None) };
        let files = kept.into_iter().zip(&open.kept).map(|((place, readable), constants)| {
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
            Some(open) => open.directory.commit(),
            None => Err(Error::internal("a directory that is not open")),
        };
        self.guard.then(Stage::Committed, committed)
    }
}

impl Open {
    fn finish(&mut self) -> Result<Written> {
        // A table without rows has a schema. The names of its partition columns are those of directories, for null.
        if self.written.files == 0 && self.file.is_none() {
            if let Some(partitioning) = &self.partitioning {
                (self.below, self.constants) = partitioning.of_no_rows();
            }
            self.begin_file()?;
        }
        self.end_file()?;
        Ok(self.written)
    }

    fn write(&mut self, batch: &Batch, options: &DirectoryOptions) -> Result<()> {
        let mut start = 0;
        while start < batch.rows {
            let mut end = batch.rows;
            if let Some(partitioning) = &self.partitioning {
                let constants =
                    partitioning.constants(batch, start).map_err(|error| first(&mut self.file, error))?;
                end = (start + 1..end).find(|row| !partitioning.is_same(batch, start, *row)).unwrap_or(end);
                // Different bits may have one name (a decimal with leading zeros): then they have files of their own.
                if constants != self.constants {
                    let below =
                        partitioning.directory(batch, start).map_err(|error| first(&mut self.file, error))?;
                    self.end_file()?;
                    if below != self.below {
                        (self.below, self.number) = (below, 0);
                    }
                    self.constants = constants;
                }
            }
            if let (Some(most), Some(file)) = (options.file_rows, &self.file)
                && file.rows() >= most.get()
            {
                self.end_file()?;
            }
            if self.file.is_none() {
                self.begin_file()?;
            }
            let Some(file) = &mut self.file else {
                return Err(Error::internal("a file that is not open"));
            };
            if let Some(most) = options.file_rows {
                let room = usize_of(most.get() - file.rows()).unwrap_or(usize::MAX);
                end = end.min(start.saturating_add(room));
            }
            if let Some(sizing) = &self.sizing {
                end = end.min(start.saturating_add(sizing.room(file.rows())));
            }
            let part = batch.slice(start..end);
            file.write(match &self.partitioning {
                Some(partitioning) => partitioning.kept(part),
                None => part,
            })
            // Its number is that in one of the files.
            .map_err(Error::without_row)?;
            start = end;
            if let Some(sizing) = &mut self.sizing
                && sizing.is_reached(file).map_err(Error::without_row)?
            {
                let written = self.end_file()?;
                if let Some(sizing) = &mut self.sizing {
                    sizing.learned = Some((written.rows, written.bytes));
                }
            }
        }
        Ok(())
    }

    /// Waits until the rows so far are with their columns.
    fn drain(&mut self) -> Result<()> {
        self.file.as_mut().map_or(Ok(()), OpenFile::drain).map_err(Error::without_row)
    }

    /// Begins the next file of the directory at hand.
    fn begin_file(&mut self) -> Result<()> {
        let place = self.below.join(format!("part-{:05}.parquet", self.number));
        self.number += 1;
        let file = self.directory.create(&place)?;
        if let Some(shape) = self.sizing.as_mut().and_then(Sizing::shape) {
            self.shape = shape;
        }
        self.file = Some(OpenFile::new(&self.shape, file, self.directory.scratch())?);
        Ok(())
    }

    /// Ends the file at hand, if there is one. Returns what was written of it.
    fn end_file(&mut self) -> Result<Written> {
        let Some(mut file) = self.file.take() else { return Ok(Written::default()) };
        // (Its rows are numbered for themselves.)
        file.finish().map_err(Error::without_row)?;
        let written = file.written()?;
        self.written.rows += written.rows;
        self.written.files += 1;
        self.written.bytes += written.bytes;
        self.written.row_groups += written.row_groups;
        self.kept.push(self.constants.clone());
        file.file.commit()?;
        Ok(written)
    }
}

/// Where files end that are to have a number of bytes.
///
/// What is open of a file counts as it is before compression, and its dictionaries as if no rows followed; a small file
/// is open up to its end. So the rows of a file are those by which the one before it would have had the right size. Of
/// the first file, the first row group is ended when it would be the whole file if nothing were compressed; its size
/// says how many rows the file has. None of this depends on the number of threads.
struct Sizing {
    most: u64,
    /// By how much a file may seem larger than it is: all that may be open.
    slack: u64,
    /// Rows, and the bytes that they took.
    learned: Option<(u64, u64)>,
    /// Files of which something is known.
    shape: Option<Shape>,
}

/// Less is mostly the file's end.
const FILE_BYTES_MIN: u64 = 4 << 10;
/// Rows that are written at a time while nothing is learned. A row group ends with them, because the writer takes as many at
/// a time, at least.
const LEARNING_ROWS: usize = 8 << 10;

impl Sizing {
    /// Of files with these columns and options.
    fn new(
        most: NonZeroU64,
        (schema, options): (&Arc<Schema>, &WriteOptions),
        (threads, cancel): (usize, &Cancel),
    ) -> Sizing {
        let most = most.get().max(FILE_BYTES_MIN);
        let open = u64_of(options.page_bytes).saturating_add(u64_of(options.dictionary_bytes));
        let slack = open.saturating_mul(u64_of(schema.leaves().len()));
        // What is wrong with them is wrong with those of the first file, too, and reported there.
        let shape =
            Shape::new(Arc::clone(schema), options.clone(), Faults::default(), (threads, cancel)).ok();
        Sizing { most, slack, learned: None, shape }
    }

    /// The size of the first file's row groups: the first one ends before the file seems to have all its bytes.
    fn first_row_group_bytes(&self) -> u64 {
        self.most - self.most / 8
    }

    /// How files are to be written from now on, where that changes.
    fn shape(&mut self) -> Option<Shape> {
        self.learned.and_then(|_| self.shape.take())
    }

    /// The most rows to write before it is asked again whether the file ends.
    fn room(&self, rows: u64) -> usize {
        match self.rows() {
            None => LEARNING_ROWS,
            Some(all) if rows < all => usize_of(all - rows).unwrap_or(usize::MAX),
            Some(_) => usize::MAX,
        }
    }

    /// The rows of a file, by what is learned.
    fn rows(&self) -> Option<u64> {
        let (rows, bytes) = self.learned?;
        let all = u128::from(rows) * u128::from(self.most) / u128::from(bytes.max(1));
        Some(u64::try_from(all).unwrap_or(u64::MAX))
    }

    /// Whether a file ends with the rows that it has.
    fn is_reached(&mut self, file: &mut OpenObject) -> Result<bool> {
        if self.learned.is_none() {
            if file.written()?.row_groups == 0 {
                return file.has_reached(self.most);
            }
            let Written { rows, bytes, .. } = file.written()?;
            self.learned = Some((rows, bytes));
            // The rest would be a small row group.
            return Ok(bytes >= self.most / 4 * 3);
        }
        // Rows may have become smaller, or larger.
        let has_rows = self.rows().is_some_and(|rows| file.rows() >= rows);
        Ok(has_rows && file.has_reached(self.most / 4 * 3)?
            || file.has_reached(self.most.saturating_add(self.slack))?)
    }
}

/// The error to report after rows were found to be at fault: that of earlier ones, if there is one.
fn first(file: &mut Option<OpenObject>, error: Error) -> Error {
    match file.as_mut().map_or(Ok(()), OpenFile::drain) {
        Err(earlier) => earlier.without_row(),
        Ok(()) => error,
    }
}
