//! A Parquet file: opened, its footer read, its rows read batch by batch.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Codecs, Error, Limits, Machine, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::File;
use marquetry_io::store::{Found, LocalFiles, Store};
use marquetry_io::{ByteSource, ByteSources, ObjectVersion, drive};
use marquetry_parquet::batch::Values;
use marquetry_parquet::format::{FileMetaData, FooterColumns};
use marquetry_parquet::read::{Conform, ConformReader, FooterReader, ReadOptions};

use super::part::Part;
use crate::subject::{is_stdin, name_of, renamed};
use crate::{Cancel, PieceOptions};

/// The only object of each machine here.
pub(super) const FILE: Object = Object(0);
/// Bytes to read of a column chunk at a time when few rows are wanted: a page's usual size.
const FEW_ROWS_READ_BYTES: u64 = 1 << 20;
/// Rows that are few.
const FEW_ROWS: u64 = 100_000;
/// Bytes of a file that are worth a piece of their own.
const PIECE_BYTES: u64 = 8 << 20;
/// Leaves of a schema from which on a file is one piece: each piece has the state of all of its columns.
const WIDE_LEAVES: usize = 4096;

/// A Parquet file whose footer was read.
///
/// It is not kept open, because one table may have thousands of files.
///
/// ```no_run
/// use marquetry_base::Limits;
/// use marquetry_tables::files::ParquetFile;
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips = ParquetFile::open("trips.parquet".as_ref(), Limits::default())?;
/// println!("{} row groups in {} bytes", trips.metadata().row_groups.len(), trips.bytes());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ParquetFile {
    name: String,
    store: Arc<dyn Store>,
    path: PathBuf,
    version: ObjectVersion,
    metadata: Arc<FileMetaData>,
    /// The columns that the footer was read for, if not all.
    columns: Option<FooterColumns>,
    limits: Limits,
}

impl ParquetFile {
    /// Opens a local file and reads its footer.
    ///
    /// # Errors
    ///
    /// `Io` if it cannot be read ([`NotFound`](marquetry_base::Detail::NotFound) if it does not exist); `Corrupt` if it is not a Parquet file;
    /// `LimitExceeded` if its footer exceeds the limits.
    pub fn open(path: &Path, limits: Limits) -> Result<ParquetFile> {
        let local: Arc<dyn Store> = Arc::new(LocalFiles);
        ParquetFile::open_in(&local, path, limits)
    }

    /// The same for a file of any store. The path `-` is standard input, which must be a regular file then.
    ///
    /// # Errors
    ///
    /// As [`ParquetFile::open`].
    pub fn open_in(store: &Arc<dyn Store>, path: &Path, limits: Limits) -> Result<ParquetFile> {
        ParquetFile::open_as(name_of(path), (store, path), None, limits)
    }

    /// The same for a file that people know by another name; and, if it may be so, for those of these columns that it has.
    pub(super) fn open_as(
        name: String,
        (store, path): (&Arc<dyn Store>, &Path),
        columns: Option<&FooterColumns>,
        limits: Limits,
    ) -> Result<ParquetFile> {
        let read = || {
            check_path(&**store, path)?;
            let (sources, version) = sources(&**store, path)?;
            let mut footer = match columns {
                Some(columns) => FooterReader::of_columns(FILE, limits, columns.clone()),
                None => FooterReader::new(FILE, limits),
            };
            let metadata = drive(&mut footer, &sources)?;
            let mut metadata =
                metadata.ok_or_else(|| Error::internal("a footer's reader ended without a footer"))?;
            if let Some(schema) = metadata.schema.with_unique_names() {
                Arc::make_mut(&mut metadata).schema = Arc::new(schema);
            }
            Ok((version, metadata))
        };
        let (version, metadata) = read().map_err(|error| renamed(error, &name))?;
        let (store, path) = (Arc::clone(store), path.to_path_buf());
        Ok(ParquetFile { name, store, path, version, metadata, columns: columns.cloned(), limits })
    }

    /// Its path, as a name for messages; bytes that are not UTF-8 are replaced.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The store that it is in.
    pub(super) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Its path there.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.version.bytes()
    }

    /// The columns that its footer was read for, if not all.
    pub(super) fn columns(&self) -> Option<&FooterColumns> {
        self.columns.as_ref()
    }

    /// What it was when it was opened.
    pub(super) fn version(&self) -> &ObjectVersion {
        &self.version
    }

    /// Its footer; as far as [columns that are needed](super::FilesOptions::needed) go, if it was opened for those. Fields of the same name have [unique names](marquetry_parquet::schema::Schema::with_unique_names).
    pub fn metadata(&self) -> &Arc<FileMetaData> {
        &self.metadata
    }

    /// The limits that it is read with.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// The object by which machines that read this file must refer to it.
    pub const fn object() -> Object {
        FILE
    }

    /// Runs a machine that reads this file to its end.
    ///
    /// # Errors
    ///
    /// The machine's, and those of `each`; `Io` if the file cannot be read, or was changed.
    pub fn run<M: Machine, E: From<Error>>(
        &self,
        mut machine: M,
        mut each: impl FnMut(M::Product) -> Result<(), E>,
    ) -> Result<(), E> {
        let sources = self.sources(&Cancel::new())?;
        while let Some(product) = drive(&mut machine, &sources).map_err(|error| self.named(error))? {
            each(product)?;
        }
        Ok(())
    }

    /// Runs a machine that reads this file up to the first product that is wanted. `None` if there is none.
    ///
    /// # Errors
    ///
    /// The machine's; `Io` if the file cannot be read, or was changed.
    pub fn find<M: Machine>(
        &self,
        mut machine: M,
        mut is_wanted: impl FnMut(&M::Product) -> bool,
    ) -> Result<Option<M::Product>> {
        let sources = self.sources(&Cancel::new())?;
        loop {
            match drive(&mut machine, &sources).map_err(|error| self.named(error))? {
                Some(product) if !is_wanted(&product) => {}
                found => return Ok(found),
            }
        }
    }

    /// Row groups that are worth reading by a thread of their own, one after the other, if these columns are read.
    pub(super) fn pieces(&self, conform: &Conform) -> Vec<Part> {
        let groups = &self.metadata.row_groups;
        let rows = u128::from(self.metadata.rows.max(1));
        let leaves = self.metadata.schema.leaves().len();
        let mut pieces: Vec<Part> = Vec::new();
        for (number, group) in groups.iter().enumerate() {
            let bytes = match self.metadata.is_partial || conform.reads().len() < leaves {
                // As many bytes of the file as it has rows: chunks are many, and need not be looked at.
                false => u128::from(self.bytes()) * u128::from(group.rows) / rows,
                true => {
                    let chunks = conform.reads().iter().filter_map(|leaf| group.columns.get(*leaf));
                    chunks.map(|chunk| u128::from(chunk.compressed_bytes)).sum()
                }
            };
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            match pieces.last_mut() {
                Some(Part { groups, rows: Some(rows), bytes: Some(all), .. })
                    if leaves >= WIDE_LEAVES || *all < PIECE_BYTES =>
                {
                    groups.end = number + 1;
                    (*rows, *all) = (rows.saturating_add(group.rows), all.saturating_add(bytes));
                }
                _ => {
                    let (groups, rows) = (number..number + 1, Some(group.rows));
                    pieces.push(Part { groups, rows, bytes: Some(bytes), splits: leaves > 1 });
                }
            }
        }
        pieces
    }

    /// Where the column chunks begin that will be read, in that order, and as much of them as is read at a time.
    pub(super) fn chunks(&self, groups: Range<usize>, conform: &Conform) -> impl Iterator<Item = Range<u64>> {
        let read_bytes = ReadOptions::default().read_bytes;
        groups.filter_map(|number| self.metadata.row_groups.get(number)).flat_map(move |group| {
            let chunks = conform.reads().iter().filter_map(|leaf| group.columns.get(*leaf));
            chunks.map(move |chunk| {
                let start = chunk.first_page_offset();
                start..start.saturating_add(chunk.compressed_bytes.min(read_bytes))
            })
        })
    }

    /// A reader of row groups as rows of another schema.
    pub(super) fn reader(
        &self,
        groups: Range<usize>,
        conform: Arc<Conform>,
        constants: Vec<Option<Values>>,
        options: &PieceOptions,
    ) -> Result<ConformReader> {
        let read = self.read_options(groups, options);
        let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::new(self.limits));
        ConformReader::new(FILE, Arc::clone(&self.metadata), codecs, read, conform, constants)
            .map_err(|error| self.named(error))
    }

    pub(super) fn read_options(&self, groups: Range<usize>, options: &PieceOptions) -> ReadOptions {
        let mut read = ReadOptions {
            keep_dictionaries: options.keep_dictionaries,
            limits: self.limits,
            row_groups: Some(groups.clone()),
            ..ReadOptions::default()
        };
        if let Some(rows) = options.batch_rows {
            read.batch_rows = rows.max(1);
        }
        if let Some(limit) = options.limit {
            // Only the row groups that have them, and no more of each page than needed.
            let all = &self.metadata.row_groups;
            let end = all.get(groups.start).map_or(0, |group| group.first_row).saturating_add(limit);
            let wanted = all.partition_point(|group| group.first_row < end);
            read.row_groups = Some(groups.start..groups.end.min(wanted.max(groups.start)));
            read.batch_rows = read.batch_rows.min(usize::try_from(limit).unwrap_or(usize::MAX)).max(1);
            if limit < FEW_ROWS {
                read.read_bytes = FEW_ROWS_READ_BYTES;
            }
        }
        if let Some(bytes) = options.batch_bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
            read.batch_bytes = read.batch_bytes.min(bytes);
        }
        read
    }

    /// Reads the footer again, of a file that had this name and this version.
    ///
    /// # Errors
    ///
    /// `Io` where it is another file by now.
    pub(super) fn again(
        name: &str,
        place: (&Arc<dyn Store>, &Path),
        columns: Option<&FooterColumns>,
        limits: Limits,
        version: &ObjectVersion,
    ) -> Result<ParquetFile> {
        let opened = ParquetFile::open_as(name.to_owned(), place, columns, limits)?;
        version.expect(&opened.version).map_err(|error| opened.named(error))?;
        Ok(opened)
    }

    /// Opens it again, for its pages. What waits for them ends when `cancel` is set.
    pub(super) fn sources(&self, cancel: &Cancel) -> Result<Sources> {
        let open = || {
            if !is_stdin(&self.path) {
                let source = cancel.of_store(&self.store).reopen(&self.path, &self.version)?;
                return Ok(ByteSources::new().with(FILE, source));
            }
            let (sources, version) = sources(&*self.store, &self.path)?;
            self.version.expect(&version)?;
            Ok(sources)
        };
        open().map_err(|error| self.named(error))
    }

    pub(super) fn named(&self, error: Error) -> Error {
        renamed(error, &self.name)
    }
}

/// The bytes of the file.
pub(super) type Sources = ByteSources<Box<dyn ByteSource + Send>>;

fn sources(store: &dyn Store, path: &Path) -> Result<(Sources, ObjectVersion)> {
    let (source, version): (Box<dyn ByteSource + Send>, _) = if is_stdin(path) {
        let file = File::stdin()?;
        let version = file.version().clone();
        (Box::new(file), version)
    } else {
        store.open(path)?
    };
    Ok((ByteSources::new().with(FILE, source), version))
}

/// The mistakes that people make with paths, in their words.
fn check_path(store: &dyn Store, path: &Path) -> Result<()> {
    if is_stdin(path) {
        return Ok(());
    }
    match store.look(path)? {
        Found::Directory { .. } => Err(Error::io("a directory, where a file is needed")),
        Found::Object { bytes: 0 } => Err(Error::corrupt("an empty file, not a Parquet file")),
        _ => Ok(()),
    }
}
