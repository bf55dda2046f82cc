//! Many files as one table: found, their footers read, their schemas joined.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::discriminant;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};

use marquetry_base::{Error, Limits, Segmented};
use marquetry_io::files;
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::format::{ARROW_SCHEMA_KEY, FileMetaData, KeyValue};
use marquetry_parquet::hive::{HiveType, Partition};
use marquetry_parquet::read::Conform;
use marquetry_parquet::schema::{Column, Schema, Unified, Union};

use crate::columns::{self, Chosen};
use crate::failure::{Failure, Outcome};
use crate::input::{self, LimitArgs, ParquetFile};
use crate::numbers::plural;
use crate::output::Interrupted;
use crate::text::{self, Format, TextArgs, TextFile, TextRows};

/// Which files are read together, and which of their columns.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TableArgs {
    /// Take these columns, in this order; a dot leads into nested ones: a,b.c
    ///
    /// Names are separated by commas. A dot leads to a field of a group; 'element' is what a list holds, and may be left out before
    /// a field's name; 'key' and 'value' are what a map holds. A name that has a comma or a dot, a space or a quote at an end, or
    /// nothing in it stands in double quotes, which are doubled inside: 'a,"b,c","d.e".f,""'. But where names have dots in them,
    /// the longest that there is is meant, without quotes too. A name that no column has exactly is looked for in lower case.
    #[arg(long, value_name = "A,B.C,…", help_heading = "Rows and columns")]
    pub(crate) columns: Option<String>,

    /// Take the columns that a file names, one a line, as --columns has them
    #[arg(long, value_name = "FILE", conflicts_with = "columns", help_heading = "Rows and columns")]
    pub(crate) columns_file: Option<PathBuf>,

    /// Files may differ: columns that one has not are null there, and narrower numbers become wide ones
    ///
    /// Columns are the same where their names are, at every level, in whatever order; lists and maps may be spelt in any way, and be
    /// optional here and required there, with or without this option. With it, a column may also be missing, and have types of which
    /// one type holds all values: integers, FLOAT and DOUBLE, decimals of one scale, STRING and ENUM and JSON. Other types stay
    /// an error.
    #[arg(long, help_heading = "Files")]
    pub(crate) union: bool,

    /// What directories like 'year=2024' are: columns typed by their values, columns of text, or just names
    ///
    /// They are columns wherever they stand in a path, behind the files' own columns; one of the same name in the files gives
    /// way. 'auto': bigint, if all values are integers written as usual (not 07), or date, if all are like 2024-02-29, else text.
    /// __HIVE_DEFAULT_PARTITION__ is null.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Files")]
    pub(crate) hive: Hive,

    #[command(flatten)]
    pub(crate) text: TextArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// What directories like `year=2024` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Hive {
    /// Columns: bigint, date or text, by their values
    #[default]
    Auto,
    /// Columns of text
    Text,
    /// Just names
    Off,
}

/// Files, and what they have in common.
pub(crate) struct Gathered {
    pub(crate) files: Vec<DataFile>,
    /// The different schemas that they have.
    pub(crate) sources: Vec<Source>,
    pub(crate) unified: Unified,
    /// The columns that are in their paths.
    pub(crate) partitions: Vec<Column>,
    /// What all of them say of themselves: the same value under the same key.
    key_values: Vec<KeyValue>,
}

/// One schema that files have.
pub(crate) struct Source {
    /// The footer of the first file that has it, or the schema itself, where that is text.
    what: Told,
    /// That file.
    pub(crate) file: usize,
}

/// What tells a schema.
enum Told {
    Footer(Arc<FileMetaData>),
    Text(Arc<Schema>),
}

impl Source {
    fn schema(&self) -> &Schema {
        match &self.what {
            Told::Footer(metadata) => &metadata.schema,
            Told::Text(schema) => schema,
        }
    }
}

/// A file of many. Its footer is kept while that of all does not take much; else it is read again when its turn comes.
pub(crate) struct DataFile {
    pub(crate) name: String,
    path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) rows: u64,
    pub(crate) row_groups: usize,
    /// Its schema among the sources.
    pub(crate) source: usize,
    metadata: Option<Arc<FileMetaData>>,
    /// What it is if it is text, whose rows nobody knows before they are read.
    text: Option<TextFile>,
    /// The values of the columns in its path, in the order of these. `None` for null.
    constants: Vec<Option<Values>>,
    limits: Limits,
}

/// Bytes of footers that are kept: read, they take some times as much.
const KEPT_FOOTERS_BYTES: u64 = 4 << 20;

impl Gathered {
    /// Finds files, and reads their footers; of text the first rows.
    pub(crate) fn read(
        paths: &[PathBuf],
        hive: Hive,
        allow_without: bool,
        text_args: &TextArgs,
        limits: Limits,
        interrupted: &Interrupted,
    ) -> Outcome<Gathered> {
        let found = find_as(paths, text_args.from)?;
        let (partitions, mut constants) = match hive {
            Hive::Off => (Vec::new(), vec![Vec::new(); found.len()]),
            Hive::Auto | Hive::Text => partitions(&found, hive == Hive::Text, allow_without)?,
        };
        let formats = found.iter().map(|path| (path.clone(), text_args.format_of(path)));
        let texts: Vec<_> = formats.filter(|(_, format)| *format != Format::Parquet).collect();
        if let (true, Some(option)) = (texts.is_empty(), text_args.given()) {
            return Err(Failure::usage(format!(
                "{option} is for CSV and JSON lines; --from says that files are such"
            )));
        }
        let mut texts = text::open(&texts, text_args, limits, interrupted)?.into_iter();
        let mut union = Union::new();
        let mut sources: Vec<Source> = Vec::new();
        let mut by_fingerprint: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut files = Vec::with_capacity(found.len());
        let mut kept_bytes = 0_u64;
        let mut key_values: Vec<KeyValue> = Vec::new();
        for (number, path) in found.into_iter().enumerate() {
            interrupted.check()?;
            let constants = std::mem::take(&mut constants[number]);
            let mut file = match text_args.format_of(&path) {
                Format::Parquet => DataFile::parquet(path, limits, constants)?,
                _ => match texts.next() {
                    Some(text) => DataFile::text(path, text, limits, constants),
                    None => return Err(Failure::bug("a text that was not opened")),
                },
            };
            let said = file.metadata.as_ref().map(|metadata| &metadata.key_values);
            if number == 0 {
                key_values.extend(said.into_iter().flat_map(Segmented::iter).cloned());
            } else {
                key_values.retain(|kept| said.is_some_and(|said| said.iter().any(|it| it == kept)));
            }
            let told = match (&file.metadata, &file.text) {
                (Some(metadata), _) => Told::Footer(Arc::clone(metadata)),
                (None, Some(text)) => Told::Text(Arc::clone(&text.schema)),
                (None, None) => return Err(Failure::bug("a file of nothing")),
            };
            let new = Source { what: told, file: number };
            let known = by_fingerprint.entry(fingerprint(new.schema())).or_default();
            let is_same = |&&source: &&usize| sources[source].schema() == new.schema();
            file.source = match known.iter().find(is_same) {
                Some(source) => *source,
                None => {
                    known.push(sources.len());
                    union.add(new.schema());
                    sources.push(new);
                    sources.len() - 1
                }
            };
            let is_first = sources[file.source].file == number;
            kept_bytes =
                kept_bytes.saturating_add(file.metadata.as_ref().map_or(0, |metadata| metadata.footer_bytes));
            if !is_first && kept_bytes > KEPT_FOOTERS_BYTES {
                file.metadata = None;
            }
            files.push(file);
        }
        Ok(Gathered { files, sources, unified: union.finish_with(&partitions), partitions, key_values })
    }

    /// What is told about all of them.
    pub(crate) fn subject(&self) -> String {
        subject(&self.files)
    }

    /// The file that a source is told by.
    pub(crate) fn name_of(&self, source: usize) -> &str {
        self.sources.get(source).map_or("", |source| &self.files[source.file].name)
    }
}

/// Files that are read as one table.
pub(crate) struct Dataset {
    schema: Schema,
    files: Vec<DataFile>,
    sources: Vec<Source>,
    /// How each source is read as the schema.
    conforms: Vec<Arc<Conform>>,
    /// Of the columns in the paths, those that are in the schema.
    constants: Vec<usize>,
    /// What all files say of themselves.
    key_values: Vec<KeyValue>,
    /// The names of the columns.
    pub(crate) names: Vec<String>,
    /// What may be large in the files.
    pub(crate) limits: Limits,
}

/// Keys under which writers keep what they know of the columns: it holds for these columns only.
const SCHEMA_KEYS: [&str; 8] = [
    ARROW_SCHEMA_KEY,
    "avro.schema",
    "iceberg.schema",
    "org.apache.spark.sql.parquet.row.metadata",
    "pandas",
    "parquet.avro.schema",
    "parquet.proto.descriptor",
    "thrift.descriptor",
];

impl Dataset {
    /// Opens files as one table. Whatever can be wrong before the first row is found here.
    pub(crate) fn open(paths: &[PathBuf], args: &TableArgs, interrupted: &Interrupted) -> Outcome<Dataset> {
        let limits = args.limits.limits();
        let wanted = columns::wanted(args)?;
        let gathered = Gathered::read(paths, args.hive, args.union, &args.text, limits, interrupted)?;
        let Chosen { schema, names } = columns::choose(&gathered, wanted.as_deref(), args.union)?;
        let Gathered { files, sources, unified, partitions, key_values } = gathered;
        // Files of one schema have it as they spell it.
        let schema = match (schema, &*sources, partitions.is_empty()) {
            (Some(schema), ..) => schema,
            (None, [only], true) => only.schema().clone(),
            (None, ..) => unified.schema,
        };
        let constants: Vec<usize> = (0..partitions.len())
            .filter(|&number| schema.child_of_root(&partitions[number].name).is_some())
            .collect();
        let constant_names: Vec<&str> =
            constants.iter().map(|&number| partitions[number].name.as_str()).collect();
        let conform = |source: &Source| {
            let conform = Conform::new(source.schema(), &schema, &constant_names);
            conform.map(Arc::new).map_err(|error| Failure::about(&files[source.file].name, &error))
        };
        let conforms = sources.iter().map(conform).collect::<Outcome<Vec<_>>>()?;
        let dataset = Dataset { schema, files, sources, conforms, constants, key_values, names, limits };
        // What cannot be read at all is known by the schema.
        for source in &dataset.sources {
            let file = &dataset.files[source.file];
            if file.text.is_none() {
                dataset.reader(file, None, false)?;
            }
        }
        Ok(dataset)
    }

    /// An engine's error as that of all files.
    pub(crate) fn failure(&self, error: &Error) -> Failure {
        crate::input::failure(&subject(&self.files), error, self.limits)
    }

    /// What an error is about that is told of all files.
    pub(crate) fn subject(&self) -> String {
        subject(&self.files)
    }

    /// The schema that all batches have.
    pub(crate) fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The footer of a file that is the whole table, in all of its columns and no others.
    pub(crate) fn only_footer(&self) -> Option<&Arc<FileMetaData>> {
        match (&*self.files, &*self.sources) {
            ([_], [Source { what: Told::Footer(metadata), .. }]) if metadata.schema == self.schema => {
                Some(metadata)
            }
            _ => None,
        }
    }

    /// What all files say of themselves, and what holds for a file of these columns.
    pub(crate) fn key_values_of(&self, schema: &Schema) -> impl Iterator<Item = &KeyValue> {
        let has_all = matches!(&*self.sources, [only] if only.schema() == schema);
        self.key_values.iter().filter(move |it| has_all || !SCHEMA_KEYS.contains(&&*it.key))
    }

    /// The files, in order.
    pub(crate) fn files(&self) -> &[DataFile] {
        &self.files
    }

    /// The rows of all files, and of what a limit leaves of them; as many as there may be, where nobody knows.
    pub(crate) fn rows(&self, limit: Option<u64>) -> u64 {
        self.known_rows(limit).unwrap_or(limit.unwrap_or(u64::MAX))
    }

    /// The rows of all files, and of what a limit leaves of them. `None` where a file is text, of which nobody knows.
    pub(crate) fn known_rows(&self, limit: Option<u64>) -> Option<u64> {
        if self.files.iter().any(|file| file.text.is_some()) {
            return None;
        }
        let total = self.files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.rows));
        Some(total.min(limit.unwrap_or(u64::MAX)))
    }

    /// Reads a file's rows, up to `limit` of them; dictionaries are kept as such on request.
    pub(crate) fn read(&self, file: &DataFile, limit: Option<u64>, keep_dictionaries: bool) -> Outcome<Rows> {
        if let Some(text) = &file.text {
            let conform = Arc::clone(&self.conforms[file.source]);
            let rows = text.read(conform, self.constants_of(file), limit);
            return rows.map(|rows| Rows::Text(Box::new(rows))).map_err(|error| file.failure(&error));
        }
        let (opened, reader) = self.reader(file, limit, keep_dictionaries)?;
        opened.rows(reader, limit).map(|rows| Rows::Parquet(Box::new(rows)))
    }

    fn constants_of(&self, file: &DataFile) -> Vec<Option<Values>> {
        self.constants.iter().map(|&at| file.constants.get(at).cloned().flatten()).collect()
    }

    fn reader(
        &self,
        file: &DataFile,
        limit: Option<u64>,
        keep_dictionaries: bool,
    ) -> Outcome<(ParquetFile, marquetry_parquet::read::ConformReader)> {
        let opened = file.open(&self.sources[file.source])?;
        let conform = Arc::clone(&self.conforms[file.source]);
        let reader = opened.reader(conform, self.constants_of(file), limit, keep_dictionaries)?;
        Ok((opened, reader))
    }
}

/// Batches of a file's rows.
pub(crate) enum Rows {
    Parquet(Box<input::Rows>),
    Text(Box<TextRows>),
}

impl Rows {
    /// The next batch, cut to what is left of the limit. `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>, Error> {
        match self {
            Rows::Parquet(rows) => rows.next(),
            Rows::Text(rows) => rows.next(),
        }
    }
}

impl DataFile {
    /// A Parquet file, whose footer is read.
    fn parquet(path: PathBuf, limits: Limits, constants: Vec<Option<Values>>) -> Outcome<DataFile> {
        let ParquetFile { name, bytes, metadata, .. } = ParquetFile::open(&path, limits)?;
        let (rows, row_groups) = (metadata.rows, metadata.row_groups.len());
        let metadata = Some(metadata);
        Ok(DataFile {
            name,
            path,
            bytes,
            rows,
            row_groups,
            source: 0,
            metadata,
            text: None,
            constants,
            limits,
        })
    }

    /// A text.
    fn text(path: PathBuf, text: TextFile, limits: Limits, constants: Vec<Option<Values>>) -> DataFile {
        let bytes = std::fs::metadata(&path).map_or(0, |found| found.len());
        let (name, text) = (text.name.clone(), Some(text));
        DataFile {
            name,
            path,
            bytes,
            rows: 0,
            row_groups: 0,
            source: 0,
            metadata: None,
            text,
            constants,
            limits,
        }
    }

    /// The file with its footer.
    fn open(&self, source: &Source) -> Outcome<ParquetFile> {
        if let Some(metadata) = &self.metadata {
            return Ok(ParquetFile::known(
                &self.name,
                &self.path,
                self.bytes,
                Arc::clone(metadata),
                self.limits,
            ));
        }
        let opened = ParquetFile::open(&self.path, self.limits)?;
        if (opened.bytes, opened.metadata.rows) != (self.bytes, self.rows)
            || opened.metadata.schema != *source.schema()
        {
            let message = format!("{}: the file was changed while it was read", self.name);
            return Err(Failure::unreachable(message));
        }
        Ok(opened)
    }

    /// The value of a column in its path, in words that tell it from others. `None` for null.
    pub(crate) fn constant(&self, number: usize) -> Option<String> {
        self.constants.get(number)?.as_ref().map(|values| match values {
            Values::ByteArray(values) => String::from_utf8_lossy(values.get(0)).into_owned(),
            other => format!("{other:?}"),
        })
    }

    /// An engine's error as this file's.
    pub(crate) fn failure(&self, error: &Error) -> Failure {
        match self.text {
            Some(_) => text::failure(&self.name, error, self.limits),
            None => input::failure(&self.name, error, self.limits),
        }
    }
}

/// `a.parquet`, or `a.parquet and 2 more files`.
fn subject(files: &[DataFile]) -> String {
    match files {
        [] => "no file".to_string(),
        [only] => only.name.clone(),
        [first, others @ ..] => format!("{} and {}", first.name, plural(others.len(), "more file")),
    }
}

/// The Parquet files that paths name, each path's in order.
pub(crate) fn find(paths: &[PathBuf]) -> Outcome<Vec<PathBuf>> {
    find_as(paths, None)
}

/// The files that paths name, each path's in order; of directories those of a format.
fn find_as(paths: &[PathBuf], format: Option<Format>) -> Outcome<Vec<PathBuf>> {
    let mut all = Vec::with_capacity(paths.len());
    for path in paths {
        let name = path.to_string_lossy();
        if crate::input::has_scheme(&name) {
            // Who opens it says that addresses are none.
            all.push(path.clone());
            continue;
        }
        let found =
            files::find(path, text::extensions(format)).map_err(|error| Failure::about(&name, &error))?;
        all.extend(found);
    }
    Ok(all)
}

/// The columns in the paths of files, and each file's values of them.
type Partitions = (Vec<Column>, Vec<Vec<Option<Values>>>);

fn partitions(paths: &[PathBuf], is_text: bool, allow_without: bool) -> Outcome<Partitions> {
    let mut names: Vec<String> = Vec::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    // For each file, the values that its path has.
    let mut all: Vec<Vec<(usize, Option<String>)>> = Vec::with_capacity(paths.len());
    for path in paths {
        let mut of_file: Vec<(usize, Option<String>)> = Vec::new();
        for partition in partitions_of(path)? {
            let number = *numbers.entry(partition.name.clone()).or_insert_with(|| {
                names.push(partition.name.clone());
                names.len() - 1
            });
            if of_file.iter().any(|(known, _)| *known == number) {
                return Err(Failure::refused(format!(
                    "{}: the path has {:?} twice; --hive off takes directories for names only",
                    path.display(),
                    partition.name
                )));
            }
            of_file.push((number, partition.value));
        }
        all.push(of_file);
    }
    if !allow_without && let Some(short) = all.iter().position(|of_file| of_file.len() < names.len()) {
        let has = |number: usize| all[short].iter().any(|(known, _)| *known == number);
        let missing = (0..names.len()).find(|&number| !has(number)).unwrap_or(0);
        let with = all.iter().position(|of_file| of_file.iter().any(|(known, _)| *known == missing));
        return Err(Failure::refused(format!(
            "{}: the path has no {:?}, which that of {} has; --union reads it as null there, --hive off takes directories for \
             names only",
            paths[short].display(),
            format!("{}=…", names[missing]),
            paths[with.unwrap_or(0)].display()
        )));
    }
    let mut texts: Vec<Vec<&str>> = vec![Vec::new(); names.len()];
    for (number, value) in all.iter().flatten() {
        texts[*number].extend(value.as_deref());
    }
    let types: Vec<HiveType> = texts
        .iter()
        .map(|values| if is_text { HiveType::Text } else { HiveType::of(values.iter().copied()) })
        .collect();
    let columns = names.iter().zip(&types).map(|(name, hive_type)| hive_type.column(name)).collect();
    let constants = all.iter().map(|of_file| {
        let mut values = vec![None; names.len()];
        for (number, value) in of_file {
            values[*number] = value.as_deref().and_then(|value| types[*number].value(value));
        }
        values
    });
    Ok((columns, constants.collect()))
}

/// What the directories of a path say.
fn partitions_of(path: &Path) -> Outcome<Vec<Partition>> {
    let mut found = Vec::new();
    for component in path.parent().into_iter().flat_map(Path::components) {
        let Component::Normal(name) = component else { continue };
        if !name.as_encoded_bytes().contains(&b'=') {
            continue;
        }
        let wrong = |why: &str| {
            let hint = "--hive off takes directories for names only";
            Failure::refused(format!("{}: {why}; {hint}", path.display()))
        };
        let text = name.to_str().ok_or_else(|| wrong("a directory whose name is not UTF-8"))?;
        found.extend(Partition::of(text).map_err(|error| wrong(error.message()))?);
    }
    Ok(found)
}

/// A number that equal schemas have, and others hardly.
fn fingerprint(schema: &Schema) -> u64 {
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
