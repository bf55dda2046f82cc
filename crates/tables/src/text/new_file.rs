//! One text file as a destination.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Limits, Result};
use marquetry_io::shown;
use marquetry_io::store::{LocalFiles, NewObject, Store};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::Schema;

use super::compression::{Compression, Compressor};
use super::fit;
use super::output::{Lines, TextOutputOptions};
use super::{Format, Header, TextFile, TextOptions};
use crate::gather::not_written;
use crate::stage::{Guard, Stage};
use crate::subject::check_nothing_at;
use crate::{Batches, Cancel, Destination, Piece, PieceOptions, Source, Table, Wants, Written};

/// A new CSV, TSV or JSON lines file, which appears under its name when it is complete and on disk. It is compressed if
/// its name ends in `.gz` or `.zst`. Values are written as [`TextOutput`](super::TextOutput) writes them.
///
/// Its output can be verified if all columns have types that a text is read back as bit by bit; see
/// [`Scalar`](super::Scalar). Which parts of nested columns can be null, and how decimals are held, does not matter. So geometries, variants, maps
/// without values and decimals of more than 38 digits cannot, nor can NaNs and INT96 of other bits than the usual ones, nor,
/// in CSV and TSV, a column without a name.
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry_parquet::batch::Batch;
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
/// use marquetry_tables::text::{Format, NewTextFile, TextOutputOptions};
/// use marquetry_tables::{Destination, Table};
///
/// # fn main() -> marquetry_base::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("trips.jsonl");
/// let mut trips = NewTextFile::new(&path, Format::JsonLines, TextOutputOptions::default())?;
///
/// // What `copy` does with the table of its source, and then with its rows:
/// let schema = Schema::of_fields(&[FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None))])?;
/// trips.begin(&Table::new("trips.parquet", Arc::new(schema)))?;
/// trips.write(Batch::of_values([vec![1_i64, 2].into()])?)?;
/// trips.finish()?;
/// assert!(!path.exists());
/// trips.commit()?;
/// assert_eq!(std::fs::read(&path).unwrap(), b"{\"id\":1}\n{\"id\":2}\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct NewTextFile {
    store: Arc<dyn Store>,
    path: PathBuf,
    name: String,
    format: Format,
    options: TextOutputOptions,
    threads: usize,
    guard: Guard,
    cancel: Cancel,
    state: State,
}

/// How far the file is.
enum State {
    New,
    Open(Box<Lines<Compressor<Appending>>>, Arc<Schema>),
    /// All of it is written; with its schema, and a leaf of which some NaNs or INT96 have odd bits.
    Closed(Box<dyn NewObject>, Arc<Schema>, Option<usize>),
    Ended,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            State::New => "New",
            State::Open(..) => "Open",
            State::Closed(..) => "Closed",
            State::Ended => "Ended",
        })
    }
}

impl NewTextFile {
    /// A local file at `path`. Nothing is created yet.
    ///
    /// # Errors
    ///
    /// `Io` with [`AlreadyExists`](marquetry_base::Detail::AlreadyExists) if something exists at `path`, unless it may be replaced.
    pub fn new(path: impl AsRef<Path>, format: Format, options: TextOutputOptions) -> Result<NewTextFile> {
        NewTextFile::new_in(Arc::new(LocalFiles), path, format, options)
    }

    /// The same for a file of any store.
    ///
    /// # Errors
    ///
    /// As [`NewTextFile::new`].
    pub fn new_in(
        store: Arc<dyn Store>,
        path: impl AsRef<Path>,
        format: Format,
        options: TextOutputOptions,
    ) -> Result<NewTextFile> {
        let path = path.as_ref().to_path_buf();
        let name = shown(&path.to_string_lossy());
        if !options.overwrite {
            check_nothing_at(&*store, &path)?;
        }
        let (guard, cancel, state) = (Guard::default(), Cancel::new(), State::New);
        Ok(NewTextFile { store, path, name, format, options, threads: 1, guard, cancel, state })
    }

    fn begin_file(&mut self, table: &Table) -> Result<Wants> {
        // Before a file is made.
        fit::check(table, self.format, self.options.nested_as_json)?;
        let compression = Compression::by_name(&self.path);
        let object = self.cancel.of_store(&self.store).create(&self.path, self.options.overwrite)?;
        let scratch = object.scratch().map(Path::to_path_buf);
        let is_readable = object.readable().is_some();
        let to = Compressor::new(compression, Appending { object, bytes: 0 }).map_err(not_written)?;
        let mut lines = Lines::new(to, self.format, self.options.clone());
        lines.set_threads(self.threads);
        let wants = lines.begin(table)?;
        self.state = State::Open(Box::new(lines), Arc::clone(&table.schema));
        let unverifiable = if is_readable { fit::readable(&table.schema, self.format).err() } else { None };
        let can_verify = is_readable && unverifiable.is_none();
        Ok(Wants { scratch, can_verify, unverifiable, ..wants })
    }

    fn write_rows(&mut self, batch: Batch) -> Result<()> {
        match &mut self.state {
            State::Open(lines, _) => lines.write(batch),
            _ => Err(Error::internal("a file that is not open")),
        }
    }

    fn close(&mut self) -> Result<Written> {
        self.drain()?;
        let State::Open(lines, schema) = std::mem::replace(&mut self.state, State::Ended) else {
            return Err(Error::internal("a file that is not open"));
        };
        let (rows, odd_bits) = (lines.rows(), lines.odd_bits());
        let Appending { object, bytes } = lines.into_writer()?.finish().map_err(not_written)?;
        self.state = State::Closed(object, schema, odd_bits);
        Ok(Written { rows, bytes, files: 1, ..Written::default() })
    }
}

impl Destination for NewTextFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn cancelled_by(&mut self, cancel: &Cancel) {
        self.cancel = cancel.clone();
    }

    fn set_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    fn rows_from(&mut self, object: &str) {
        if let State::Open(lines, _) = &mut self.state {
            lines.rows_from(object);
        }
    }

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.guard.expect(Stage::New)?;
        let begun = self.begin_file(table);
        self.guard.then(Stage::Begun, begun)
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let written = self.write_rows(batch);
        self.guard.then(Stage::Begun, written)
    }

    fn drain(&mut self) -> Result<()> {
        match &mut self.state {
            State::Open(lines, _) => lines.drain(),
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<Written> {
        self.guard.expect(Stage::Begun)?;
        let closed = self.close();
        self.guard.then(Stage::Finished, closed)
    }

    /// The file, read with the types that it was written from.
    ///
    /// # Errors
    ///
    /// As [`TextFile::open_all`]; `Misuse` for the option `verify` if there were NaNs or INT96 of unusual bits, which
    /// no text holds.
    fn written(&self) -> Result<Option<Box<dyn Source>>> {
        self.guard.expect(Stage::Finished)?;
        let State::Closed(object, schema, odd_bits) = &self.state else { return Ok(None) };
        let Some(readable) = object.readable() else { return Ok(None) };
        let columns = fit::readable(schema, self.format)?;
        if let Some(leaf) = odd_bits {
            let what = "there are NaNs or INT96 whose bits text does not hold, so rows cannot be compared bit by bit";
            let column = Some(schema.leaf_path(*leaf));
            return Err(Error::option("verify", what).at(|place| place.column = column));
        }
        let mut options = TextOptions::default();
        options.delimiter = (self.format == Format::Csv).then_some(b',');
        options.header = Header::Yes;
        options.schema = Some(columns);
        options.limits = Limits::TRUSTED;
        let compression = Compression::by_name(&self.path);
        let file =
            TextFile::of_written(&self.name, (&self.store, &readable), compression, self.format, &options)?;
        let table = Table::new(self.name.clone(), Arc::clone(file.schema()));
        let piece = Piece { splits: true, ..Piece::of(self.name.clone()) };
        Ok(Some(Box::new(ReadBack { table, pieces: [piece], file })))
    }

    fn commit(&mut self) -> Result<()> {
        self.guard.expect(Stage::Finished)?;
        let committed = match std::mem::replace(&mut self.state, State::Ended) {
            State::Closed(object, ..) => object.commit(),
            _ => Err(Error::internal("a file that is not closed")),
        };
        self.guard.then(Stage::Committed, committed)
    }
}

/// A new object, for what compresses and gathers. Its errors are the causes of the writer's.
struct Appending {
    object: Box<dyn NewObject>,
    bytes: u64,
}

impl Write for Appending {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.object.append(text).map_err(io::Error::other)?;
        self.bytes += u64_of(text.len());
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A text file that was just written, as a source.
struct ReadBack {
    table: Table,
    pieces: [Piece; 1],
    file: TextFile,
}

impl Source for ReadBack {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, _: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(self.file.read(None, options)?))
    }
}

#[cfg(test)]
mod tests;
