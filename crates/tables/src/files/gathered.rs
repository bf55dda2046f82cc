//! Many files together: found, with their footers read and their schemas joined.

use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Detail, Error, Limits, Result, Segmented};
use marquetry_io::ObjectVersion;
use marquetry_io::files::PARQUET_EXTENSIONS;
use marquetry_io::store::Store;
use marquetry_parquet::batch::Values;
use marquetry_parquet::format::{FileMetaData, FooterColumns, KeyValue};
use marquetry_parquet::read::Conform;
use marquetry_parquet::schema::{Column, Plan as _, Schema, Unified, Union};

use super::any::AnyFile;
use super::format::{FormatFile, FoundFile};
use super::hive::Partitions;
use super::look::{LikelyParquet, Looked, look};
use super::options::FilesOptions;
use super::parquet::ParquetFile;
use super::parquet_rows::ParquetRows;
use super::part::Part;
use super::replaced::Replaced;
use crate::key_values::are_writes;
use crate::project::Conformed;
use crate::source::Numbered;
use crate::subject::{name_of, named};
use crate::{Address, Batches, Cancel, ColumnPath, Note, PieceOptions};

/// Bytes of footers that are kept: read, they take some times as much.
const KEPT_FOOTERS_BYTES: u64 = 4 << 20;

/// Columns for which files are opened, at most; for more, everything is read.
const NEEDED_MAX: usize = 1000;

/// Files, and what they have in common.
///
/// ```no_run
/// use marquetry_tables::files::{FilesOptions, Gathered};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips = Gathered::read(&["trips/".into()], &FilesOptions::default())?;
/// for file in &trips.files {
///     println!("{}: {:?} rows", file.name(), file.rows());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub struct Gathered {
    /// The files, in the order of their rows.
    pub files: Vec<DataFile>,
    /// Their schemas joined by name, with the differences.
    pub unified: Unified,
    /// The columns in their paths.
    pub partitions: Vec<Column>,
    /// The different schemas that they have.
    pub(super) schemas: Vec<FileSchema>,
    /// What all of them say of themselves: the same value under the same key.
    pub(super) key_values: Vec<KeyValue>,
    /// Some of them were opened for some of their columns.
    pub(super) is_partial: bool,
    /// Files whose rows are writes, of the mapping `full`.
    pub(super) of_writes: usize,
}

/// One schema that files have.
#[derive(Debug)]
pub(super) struct FileSchema {
    what: Described,
    /// The first file that has it.
    pub(super) file: usize,
}

/// What a file says of its rows.
#[derive(Debug, Clone)]
enum Described {
    Footer(Arc<FileMetaData>),
    Schema(Arc<Schema>),
}

impl Described {
    fn schema(&self) -> &Arc<Schema> {
        match self {
            Described::Footer(metadata) => &metadata.schema,
            Described::Schema(schema) => schema,
        }
    }
}

impl FileSchema {
    pub(super) fn schema(&self) -> &Arc<Schema> {
        self.what.schema()
    }

    /// The footer of the first file that has it, if that is a Parquet file.
    pub(super) fn footer(&self) -> Option<&Arc<FileMetaData>> {
        match &self.what {
            Described::Footer(metadata) => Some(metadata),
            Described::Schema(_) => None,
        }
    }
}

/// A file of many.
#[derive(Debug)]
pub struct DataFile {
    name: String,
    bytes: Option<u64>,
    rows: Option<u64>,
    /// Its schema's number.
    pub(super) schema: usize,
    /// The values of the columns in its path, in the order of these. `None` for null.
    pub(super) constants: Vec<Option<Values>>,
    kind: Kind,
}

enum Kind {
    /// A Parquet file. Its footer is kept while those of all do not take much; else it is read again when its turn comes.
    Parquet {
        store: Arc<dyn Store>,
        path: PathBuf,
        version: ObjectVersion,
        /// The columns that its footer is read for, if not all.
        columns: Option<FooterColumns>,
        limits: Limits,
        row_groups: usize,
        opened: Option<Box<ParquetFile>>,
    },
    /// One of another format.
    Other(Box<dyn FormatFile>),
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Parquet { path, .. } => write!(f, "Parquet({path:?})"),
            Kind::Other(file) => write!(f, "Other({:?})", file.name()),
        }
    }
}

/// A file that was opened, and its values of the columns in the paths.
pub(super) struct Opened {
    pub(super) file: AnyFile,
    pub(super) constants: Vec<Option<Values>>,
}

/// The files that paths name, path by path: in directories, those with one of the options'
/// [`extensions`](FilesOptions::extensions). A directory without a Parquet file is searched for files of the other formats.
///
/// # Errors
///
/// `Io` for a directory or a pattern without a file, or one that cannot be read.
pub fn find(paths: &[PathBuf], options: &FilesOptions) -> Result<Vec<PathBuf>> {
    let others: Vec<&str> = options.formats.iter().flat_map(|format| format.extensions()).copied().collect();
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        let mut found = find_in(path, options.extensions, options);
        // Parquet files are found whatever the format of the others is said to be.
        for extensions in [&others[..], &PARQUET_EXTENSIONS] {
            let is_missing = match &found {
                Ok(found) => found.is_empty(),
                Err(error) => error.detail() == Some(Detail::NotFound),
            };
            if is_missing && !extensions.is_empty() && extensions != options.extensions {
                found = find_in(path, extensions, options).or(found);
            }
        }
        let is_missing = |error: &Error| error.detail() == Some(Detail::NotFound);
        let found = match found {
            // The error names them all.
            Err(error) if is_missing(&error) && !others.is_empty() => {
                let all = [options.extensions, &PARQUET_EXTENSIONS, &others].concat();
                find_in(path, &all, options)?
            }
            found => found?,
        };
        if found.is_empty() {
            let error = Error::io("no file but the destination itself").with(Detail::NotFound);
            return Err(named(error, &name_of(path)));
        }
        all.extend(found);
    }
    Ok(all)
}

/// The files that a path names, but for what is to be written, unless that is named itself.
fn find_in(path: &Path, extensions: &[&str], options: &FilesOptions) -> Result<Vec<PathBuf>> {
    let mut found = options.store.find(path, extensions)?;
    // What is named itself is replaced by what is made of it.
    let replaced = options.destination.as_ref().and_then(Replaced::at).filter(|replaced| !replaced.has(path));
    if let Some(replaced) = replaced {
        found.retain(|file| !replaced.has(file));
    }
    Ok(found)
}

/// The columns that files may be opened for.
fn needed(options: &FilesOptions) -> Option<&[ColumnPath]> {
    let needed = options.needed.as_deref().or(options.columns.as_deref())?;
    // What a name with a number means depends on all names.
    let is_clear = |column: &ColumnPath| !column.dotted().contains('#');
    // Where no column is wanted, rows are counted: of files that can be read, so all of a footer is looked at.
    ((1..=NEEDED_MAX).contains(&needed.len()) && needed.iter().all(is_clear)).then_some(needed)
}

impl Gathered {
    /// Finds files and reads their footers. With [`FilesOptions::union`], columns in paths may be missing from some.
    ///
    /// # Errors
    ///
    /// As [`find`] and [`ParquetFile::open`]; `Conversion` for paths that do not fit together.
    pub fn read(paths: &[PathBuf], options: &FilesOptions) -> Result<Gathered> {
        let store = options.cancel.of_store(&options.store);
        let options = &FilesOptions { store, ..options.clone() };
        let found = find(paths, options)?;
        let Partitions { columns, values } = Partitions::of(&found, options.hive, options.union)?;
        // Each format gets all of its files at once.
        let mut of_formats: Vec<Vec<FoundFile>> = options.formats.iter().map(|_| Vec::new()).collect();
        let mut looked = Vec::with_capacity(found.len());
        for path in &found {
            looked.push(match look(path, options)? {
                Looked::Parquet(file) => Ok(file),
                Looked::Other { format, file } => {
                    if let Some(files) = of_formats.get_mut(format) {
                        files.push(file);
                    }
                    Err(format)
                }
            });
        }
        if let Some(needed) = needed(options)
            && let Ok(parquet) =
                looked.iter().map(|looked| looked.as_ref().map_err(drop)).collect::<Result<Vec<_>, ()>>()
        {
            let names = needed.iter().map(ColumnPath::dotted);
            let footers = FooterColumns::new(names).allow_missing();
            let open = |(file, constants): (&LikelyParquet, &Vec<Option<Values>>)| {
                options.cancel.check()?;
                let file = AnyFile::Parquet(file.clone().open(Some(&footers), options.limits)?);
                Ok(Opened { file, constants: constants.clone() })
            };
            let some = Gathered::of(parquet.into_iter().zip(&values).map(open), columns.clone());
            // Whatever is wrong is found again when everything is read.
            if let Ok(some) = some
                && needed.iter().all(|column| some.can_do_with(column))
            {
                return Ok(some);
            }
        }
        let mut others: Vec<std::vec::IntoIter<Box<dyn FormatFile>>> = Vec::new();
        for (format, files) in options.formats.iter().zip(of_formats) {
            let opened = if files.is_empty() { Vec::new() } else { format.open(&options.store, files)? };
            others.push(opened.into_iter());
        }
        let open = |(looked, constants): (Result<LikelyParquet, usize>, _)| {
            options.cancel.check()?;
            let file = match looked {
                Ok(file) => AnyFile::Parquet(file.open(None, options.limits)?),
                Err(format) => {
                    let file = others.get_mut(format).and_then(Iterator::next);
                    AnyFile::Other(file.ok_or_else(|| Error::internal("a file that was not opened"))?)
                }
            };
            Ok(Opened { file, constants })
        };
        Gathered::of(looked.into_iter().zip(values).map(open), columns)
    }

    /// Whether a column is what it would be if files had been opened for all: a field that a file lacks is null where its group
    /// is, and nothing else of the group may have been read.
    fn can_do_with(&self, column: &ColumnPath) -> bool {
        let dotted = column.dotted();
        // Exactly: where names differ in case, or by what a list is written with, others that are not here may be meant.
        let is_it = |path: &str| {
            path.strip_prefix(&*dotted).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let is_in = |schema: &Arc<Schema>| {
            column
                .leaves(schema)
                .is_ok_and(|leaves| leaves.iter().all(|leaf| is_it(&schema.leaf_path(*leaf))))
        };
        let is_nested = dotted.contains('.');
        is_in(&self.unified.schema) && (!is_nested || self.schemas.iter().all(|file| is_in(file.schema())))
    }

    /// Files that were opened, and the columns that stand in no file.
    pub(super) fn of(
        opened: impl Iterator<Item = Result<Opened>>,
        partitions: Vec<Column>,
    ) -> Result<Gathered> {
        let mut union = Union::new();
        let mut schemas: Vec<FileSchema> = Vec::new();
        let mut by_fingerprint: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut files = Vec::new();
        let (mut kept_bytes, mut is_partial, mut of_writes) = (0_u64, false, 0);
        let mut key_values: Vec<KeyValue> = Vec::new();
        for (number, opened) in opened.enumerate() {
            let Opened { file, constants } = opened?;
            let what = match &file {
                AnyFile::Parquet(file) => Described::Footer(Arc::clone(file.metadata())),
                AnyFile::Other(file) => Described::Schema(Arc::clone(file.schema())),
            };
            let said = match &what {
                Described::Footer(metadata) => Some(&metadata.key_values),
                Described::Schema(_) => None,
            };
            of_writes += usize::from(said.is_some_and(|said| said.iter().any(are_writes)));
            if number == 0 {
                key_values.extend(said.into_iter().flat_map(Segmented::iter).cloned());
            } else {
                key_values.retain(|kept| said.is_some_and(|said| said.iter().any(|it| it == kept)));
            }
            let known = by_fingerprint.entry(fingerprint(what.schema())).or_default();
            let is_same = |&&schema: &&usize| schemas[schema].schema() == what.schema();
            let schema = match known.iter().find(is_same) {
                Some(schema) => *schema,
                None => {
                    known.push(schemas.len());
                    union.add(Arc::clone(what.schema()));
                    schemas.push(FileSchema { what: what.clone(), file: number });
                    schemas.len() - 1
                }
            };
            let is_first = schemas[schema].file == number;
            files.push(match file {
                AnyFile::Parquet(file) => {
                    let metadata = file.metadata();
                    kept_bytes = kept_bytes.saturating_add(metadata.footer_bytes);
                    let row_groups = metadata.row_groups.len();
                    is_partial |= metadata.is_partial;
                    let (name, rows, bytes) =
                        (file.name().to_string(), Some(metadata.rows), Some(file.bytes()));
                    let (store, path, version) =
                        (Arc::clone(file.store()), file.path().to_path_buf(), file.version().clone());
                    let (columns, limits) = (file.columns().cloned(), file.limits());
                    let opened = (is_first || kept_bytes <= KEPT_FOOTERS_BYTES).then(|| Box::new(file));
                    let kind = Kind::Parquet { store, path, version, columns, limits, row_groups, opened };
                    DataFile { name, rows, bytes, schema, constants, kind }
                }
                AnyFile::Other(file) => {
                    let (name, rows, bytes) = (file.name().to_string(), file.rows(), file.bytes());
                    DataFile { name, rows, bytes, schema, constants, kind: Kind::Other(file) }
                }
            });
        }
        let unified = union.with(partitions.iter().cloned()).plan().at_once()?;
        Ok(Gathered { files, schemas, unified, partitions, key_values, is_partial, of_writes })
    }

    /// The same, with all columns of the files.
    pub(super) fn complete(&self) -> Result<Gathered> {
        let open = |file: &DataFile| {
            let constants = file.constants.clone();
            Ok(Opened { file: AnyFile::Parquet(file.complete()?), constants })
        };
        Gathered::of(self.files.iter().map(open), self.partitions.clone())
    }

    /// A name for all of them: `a.parquet`, or `a.parquet and 2 more files`.
    pub fn name(&self) -> String {
        match &*self.files {
            [] => "no file".to_string(),
            [only] => only.name.clone(),
            [first, _] => format!("{} and 1 more file", first.name),
            [first, others @ ..] => format!("{} and {} more files", first.name, others.len()),
        }
    }

    /// The number of different schemas.
    pub fn schemas(&self) -> usize {
        self.schemas.len()
    }

    /// The name of the first file with a schema, given the schema's number in differences.
    pub fn name_of(&self, schema: usize) -> &str {
        self.schemas.get(schema).map_or("", |schema| &self.files[schema.file].name)
    }
}

impl DataFile {
    /// Its path, as a name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its length in bytes, if known.
    pub fn bytes(&self) -> Option<u64> {
        self.bytes
    }

    /// Its number of rows, if known; for Parquet files it is.
    pub fn rows(&self) -> Option<u64> {
        self.rows
    }

    /// Its row groups, if it is a Parquet file.
    pub fn row_groups(&self) -> Option<usize> {
        match &self.kind {
            Kind::Parquet { row_groups, .. } => Some(*row_groups),
            Kind::Other(_) => None,
        }
    }

    /// What is to be known of how it is read.
    pub(super) fn note(&self) -> Option<Note> {
        match &self.kind {
            Kind::Parquet { .. } => None,
            Kind::Other(file) => file.note(),
        }
    }

    /// The lines of rows, if it is a text that can be read again.
    pub(super) fn lines_of(&self, rows: &[u64], cancel: &Cancel) -> Option<Vec<u64>> {
        match &self.kind {
            Kind::Parquet { .. } => None,
            Kind::Other(file) => file.lines_of(rows, cancel),
        }
    }

    /// Where it is, if it is a Parquet file, and its version.
    pub(super) fn place(&self) -> Option<(&Arc<dyn Store>, &Path, &ObjectVersion)> {
        match &self.kind {
            Kind::Parquet { store, path, version, .. } => Some((store, path, version)),
            Kind::Other(_) => None,
        }
    }

    /// What changes with its content, wherever it is opened, if it is a Parquet file that is no local one.
    pub(super) fn tag(&self) -> Option<&str> {
        let (_, path, version) = self.place()?;
        Address::parse(path).scheme().map(|_| version.tag())
    }

    /// Whether it is a Parquet file; other formats count the bytes that they read themselves.
    pub(super) fn is_parquet(&self) -> bool {
        matches!(self.kind, Kind::Parquet { .. })
    }

    /// The value of a column in its path, as unambiguous text. `None` for null.
    pub fn constant(&self, number: usize) -> Option<String> {
        self.constants.get(number)?.as_ref().map(constant_text)
    }

    /// The parts of it that can be read independently; all of it where its footer is not at hand.
    pub(super) fn pieces(&self, conform: &Conform) -> Vec<Part> {
        match &self.kind {
            Kind::Parquet { opened: Some(file), .. } => file.pieces(conform),
            Kind::Parquet { row_groups, .. } => {
                vec![Part { groups: 0..*row_groups, rows: self.rows, bytes: self.bytes, splits: true }]
            }
            Kind::Other(file) => {
                vec![Part { groups: 0..0, rows: self.rows, bytes: self.bytes, splits: file.splits() }]
            }
        }
    }

    /// Checks that its rows can be read so, as far as that is known before.
    pub(super) fn check(&self, (conform, constants): Plan) -> Result<()> {
        if let Kind::Parquet { .. } = &self.kind {
            let options = PieceOptions::default();
            self.parquet()?.reader(0..0, conform, constants, &options)?;
        }
        Ok(())
    }

    /// Opens some row groups of it, or all of what has none, as rows of another schema.
    pub(super) fn open(
        &self,
        groups: &Range<usize>,
        schema: &FileSchema,
        plan: Plan,
        options: &PieceOptions,
    ) -> Result<Box<dyn Batches>> {
        match (&self.kind, &schema.what) {
            (Kind::Other(file), _) => Conformed::open(plan, options, |leaves, options| {
                Ok(Box::new(Numbered::new(file.open(leaves, options)?, 0)))
            }),
            (Kind::Parquet { .. }, _) => {
                Ok(Box::new(ParquetRows::open(self.parquet()?, groups.clone(), plan, options)?))
            }
        }
    }

    /// The Parquet file with its footer.
    pub(super) fn parquet(&self) -> Result<ParquetFile> {
        match &self.kind {
            Kind::Parquet { opened: Some(file), .. } => Ok(ParquetFile::clone(file)),
            Kind::Parquet { store, path, version, columns, limits, .. } => {
                ParquetFile::again(&self.name, (store, path), columns.as_ref(), *limits, version)
            }
            Kind::Other(_) => Err(Error::internal("a file that is no Parquet file")),
        }
    }

    /// The Parquet file with all of its footer.
    fn complete(&self) -> Result<ParquetFile> {
        match &self.kind {
            Kind::Parquet { store, path, version, limits, .. } => {
                ParquetFile::again(&self.name, (store, path), None, *limits, version)
            }
            Kind::Other(_) => Err(Error::internal("a file that is no Parquet file")),
        }
    }
}

/// The value of a column in a path, as unambiguous text.
pub(super) fn constant_text(values: &Values) -> String {
    match values {
        Values::ByteArray(values) => String::from_utf8_lossy(values.get(0)).into_owned(),
        other => format!("{other:?}"),
    }
}

/// How a file is read as another schema, and its values of the columns that are not in it.
pub(super) type Plan = (Arc<Conform>, Vec<Option<Values>>);

/// A number that equal schemas have, and others hardly.
pub(super) fn fingerprint(schema: &Schema) -> u64 {
    let mut hasher = DefaultHasher::new();
    for node in schema.nodes() {
        node.name.hash(&mut hasher);
        (node.repetition, node.parent, node.field_id).hash(&mut hasher);
        node.logical_type.as_ref().map(discriminant).hash(&mut hasher);
    }
    for leaf in schema.leaves() {
        leaf.physical_type.hash(&mut hasher);
    }
    hasher.finish()
}
