//! Text as a source of rows: delimited (CSV, TSV), and JSON lines.
//!
//! Delimited text is taken apart here, not by a crate: what is found are places in the text, eight bytes at a time, and a column's
//! values are parsed one after the other, straight into its array; text stays where it was read. JSON is read by `serde_json`,
//! value by value, into a [`Shredder`](marquetry_parquet::record::Shredder).

mod csv;
mod delimited;
mod jsonl;
mod kind;
mod parse;
mod stream;
mod types;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Args, ValueEnum};

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, ErrorKind, Limits, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::record::Value;
use marquetry_parquet::schema::Schema;

use marquetry_tables::files::{FileFormat, FormatFile};
use marquetry_tables::{Batches, PieceOptions};

use crate::failure::plain;
use crate::output::Interrupted;
use kind::{Kind, Kinds};
use stream::{Stream, is_stdin};
use types::Told;

/// Bytes of a text that are looked at before its columns have types.
const SAMPLE_BYTES: u64 = 16 << 20;
/// Rows of a batch.
const BATCH_ROWS: usize = 8192;

/// How text is read.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TextArgs {
    /// What the files are, whatever their names end in; '-' is standard input then
    ///
    /// Without it, names that end in .csv, .tsv, .tab, .jsonl and .ndjson are text, packed ones too (.csv.gz, .jsonl.zst), and all
    /// others are Parquet files. Text is UTF-8.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "CSV and JSON lines")]
    pub(crate) from: Option<Format>,

    /// What stands between fields [default: of CSV what the first rows suggest: , tab ; or |]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter, help_heading = "CSV and JSON lines")]
    pub(crate) delimiter: Option<u8>,

    /// What may stand around fields, or 'none' [default: " of CSV, none of TSV]
    #[arg(long, value_name = "CHARACTER", value_parser = quote, help_heading = "CSV and JSON lines")]
    pub(crate) quote: Option<Quote>,

    /// Whether the first row names the columns
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "CSV and JSON lines")]
    pub(crate) header: Header,

    /// What stands for null, where no quotes are around it [default: nothing]
    ///
    /// May be given several times: --null NA --null ''
    #[arg(long, value_name = "TEXT", help_heading = "CSV and JSON lines")]
    pub(crate) null: Vec<String>,

    /// What a row of fewer fields than the ones before is
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "CSV and JSON lines")]
    pub(crate) short_rows: ShortRows,

    /// The columns and their types: 'id bigint, name text, tags list<text>'
    ///
    /// Types are CQL's: boolean, tinyint, smallint, int, bigint, float, double, text, blob, uuid, date, time, timestamp; and
    /// decimal(p, s), timestamp(6) and timestamp(9) (of micro- and nanoseconds), localtimestamp(3, 6 or 9) (of no zone); of JSON,
    /// list<…>, map<…, …> and struct<name type, …>, too. Without it types are inferred: bigint, double, boolean, date, timestamps in ISO
    /// 8601, else text; what would lose something, as 007 would, is text. A text of numbers and others is text only if that is told.
    #[arg(long, value_name = "COLUMNS", help_heading = "CSV and JSON lines")]
    pub(crate) schema: Option<String>,

    /// The same from a file
    #[arg(long, value_name = "FILE", conflicts_with = "schema", help_heading = "CSV and JSON lines")]
    pub(crate) schema_file: Option<PathBuf>,

    /// Read each file twice, to infer the types from all rows, not from the first 16 MiB
    #[arg(long, help_heading = "CSV and JSON lines")]
    pub(crate) infer_all: bool,
}

/// What files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Parquet files
    Parquet,
    /// Delimited text, with quotes
    Csv,
    /// Tab-separated text, without quotes
    Tsv,
    /// A JSON object a line
    Jsonl,
}

/// Whether the first row names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Header {
    /// If no field of it is a number, a date, true or false (and an error, if two are the same); with --schema, if it has those names
    #[default]
    Auto,
    /// It does: of columns of the same name x the second is x_2, and one without a name is column and its number
    Yes,
    /// It is a row as the others: columns are column1, column2, …
    No,
}

/// What a row of fewer fields than the ones before is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ShortRows {
    /// An error
    #[default]
    Error,
    /// A row whose other fields are null
    Null,
}

/// A character around fields, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quote(Option<u8>);

/// Reads a delimiter.
fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => character(text),
    }
}

fn quote(text: &str) -> Result<Quote, String> {
    if text.is_empty() || text == "none" {
        Ok(Quote(None))
    } else {
        character(text).map(|it| Quote(Some(it)))
    }
}

fn character(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte @ (1..=9 | 11 | 12 | 14..=127)] => Ok(*byte),
        _ => Err("one character of ASCII is needed, that ends no line".to_string()),
    }
}

/// How delimited text is read.
#[derive(Debug)]
struct Rules {
    /// `None`: what the first rows suggest.
    delimiter: Option<u8>,
    quote: Option<u8>,
    header: Header,
    nulls: Vec<Vec<u8>>,
    may_be_short: bool,
}

impl TextArgs {
    /// What a file is, by its name or as it is told.
    pub(crate) fn format_of(&self, path: &Path) -> Format {
        self.from.unwrap_or_else(|| by_name(path).unwrap_or(Format::Parquet))
    }

    /// An option that is given and is for text only.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.delimiter.is_some(), "--delimiter"),
            (self.quote.is_some(), "--quote"),
            (self.header != Header::Auto, "--header"),
            (!self.null.is_empty(), "--null"),
            (self.schema.is_some(), "--schema"),
            (self.schema_file.is_some(), "--schema-file"),
            (self.infer_all, "--infer-all"),
            (self.short_rows != ShortRows::Error, "--short-rows"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }

    /// The files that are text, wherever files are read.
    pub(crate) fn format(&self, limits: Limits, interrupted: &Interrupted) -> TextFormat {
        TextFormat { args: self.clone(), limits, interrupted: interrupted.clone() }
    }

    fn told(&self) -> Result<Option<Vec<Told>>> {
        let (text, subject) = match (&self.schema, &self.schema_file) {
            (Some(text), _) => (text.clone(), "--schema".to_string()),
            (None, Some(path)) => {
                let name = path.display().to_string();
                let text = fs::read_to_string(path)
                    .map_err(|error| named(Error::io(plain(&error.to_string())).caused_by(error), &name))?;
                (text, name)
            }
            (None, None) => return Ok(None),
        };
        types::parse(&text).map(Some).map_err(|error| Error::misuse(format!("{subject}: {error}")))
    }

    fn rules(&self, format: Format) -> Result<Rules> {
        let is_tsv = format == Format::Tsv;
        let quote = self.quote.map_or((!is_tsv).then_some(b'"'), |quote| quote.0);
        let delimiter = self.delimiter.or(is_tsv.then_some(b'\t'));
        if delimiter.is_some() && delimiter == quote {
            return Err(Error::misuse("--delimiter and --quote are the same character"));
        }
        let nulls = match &*self.null {
            [] => vec![Vec::new()],
            given => given.iter().map(|text| text.as_bytes().to_vec()).collect(),
        };
        let may_be_short = self.short_rows == ShortRows::Null;
        Ok(Rules { delimiter, quote, header: self.header, nulls, may_be_short })
    }
}

/// What a file is by the ending of its name.
fn by_name(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?.to_ascii_lowercase();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    Some(match name.rsplit_once('.')?.1 {
        "csv" => Format::Csv,
        "tsv" | "tab" => Format::Tsv,
        "jsonl" | "ndjson" => Format::Jsonl,
        _ => return None,
    })
}

/// The endings of files of a format, as directories are looked through for them.
pub(crate) fn extensions(format: Option<Format>) -> &'static [&'static str] {
    match format {
        None | Some(Format::Parquet) => &marquetry_io::files::PARQUET_EXTENSIONS,
        Some(Format::Csv) => &["csv", "csv.gz", "csv.zst"],
        Some(Format::Tsv) => &["tsv", "tab", "csv", "tsv.gz", "tsv.zst"],
        Some(Format::Jsonl) => &["jsonl", "ndjson", "jsonl.gz", "jsonl.zst"],
    }
}

/// A text file as a table.
struct TextFile {
    name: String,
    path: PathBuf,
    schema: Arc<Schema>,
    form: Form,
    limits: Limits,
    /// What is read only once: standard input, from its start.
    once: Option<Mutex<Option<Stream>>>,
}

#[derive(Clone)]
enum Form {
    Delimited(Arc<csv::Form>),
    Lines(Arc<jsonl::Form>),
}

/// A text that was looked at.
struct Sampled {
    path: PathBuf,
    name: String,
    what: Sample,
    once: Option<Mutex<Option<Stream>>>,
}

enum Sample {
    Delimited(csv::Sample),
    Lines,
}

/// Opens texts, and says what their columns are: of all that have the same ones, what holds the values of all.
///
/// # Errors
///
/// What cannot be read; texts whose first rows are none; a `--schema` that cannot be.
fn open(
    paths: &[(PathBuf, Format)],
    args: &TextArgs,
    limits: Limits,
    interrupted: &Interrupted,
) -> Result<Vec<TextFile>> {
    let told = args.told()?;
    if paths.iter().filter(|(path, _)| is_stdin(path)).count() > 1 {
        return Err(Error::misuse("standard input is there only once"));
    }
    let mut lines = jsonl::Seen::default();
    let mut sampled = Vec::with_capacity(paths.len());
    for (path, format) in paths {
        let name =
            if is_stdin(path) { "standard input".to_string() } else { path.to_string_lossy().into_owned() };
        if args.infer_all && is_stdin(path) {
            return Err(Error::misuse(
                "--infer-all reads twice, and standard input can be read once: write it to a file first",
            ));
        }
        let stream = Stream::open(path, &name, limits).map_err(|error| named(error, &name))?;
        let mut sampler = Sampler { stream, format: *format, args, told: told.as_deref(), interrupted };
        let rules = args.rules(*format)?;
        let what = sampler.run(&rules, &mut lines).map_err(|error| named(error, &name))?;
        let once = is_stdin(path).then(|| Mutex::new(Some(sampler.stream.again())));
        sampled.push(Sampled { path: path.clone(), name, what, once });
    }
    let mut files = Vec::with_capacity(sampled.len());
    let kinds = joined(&sampled);
    for (number, Sampled { path, name, what, once }) in sampled.into_iter().enumerate() {
        let failed = |error: Error| named(error, &name);
        let (form, columns) = match what {
            Sample::Delimited(sample) => {
                let form = sample.form(&kinds[number], told.as_deref()).map_err(failed)?;
                let columns = form.columns.iter().map(csv::Column::told).collect();
                (Some(form), columns)
            }
            Sample::Lines => match &told {
                Some(told) => (None, told.clone()),
                None => (None, lines.columns().map_err(failed)?),
            },
        };
        let fields: Vec<_> = columns.iter().map(Told::field).collect();
        let schema = Arc::new(Schema::of_fields(&fields).map_err(failed)?);
        let form = match form {
            Some(form) => Form::Delimited(Arc::new(form)),
            None => {
                let form = jsonl::Form { columns, schema: Arc::clone(&schema), is_told: told.is_some() };
                Form::Lines(Arc::new(form))
            }
        };
        files.push(TextFile { name, path, schema, form, limits, once });
    }
    Ok(files)
}

/// For each delimited text the kinds of its columns, taking all texts with the same names together.
fn joined(sampled: &[Sampled]) -> Vec<Vec<Kinds>> {
    let mut together: Vec<(&[String], Vec<Kinds>)> = Vec::new();
    let mut number_of = Vec::with_capacity(sampled.len());
    for text in sampled {
        let Sample::Delimited(sample) = &text.what else {
            number_of.push(None);
            continue;
        };
        let known = together.iter().position(|(names, _)| *names == sample.names);
        number_of.push(Some(known.unwrap_or(together.len())));
        match known.and_then(|known| together.get_mut(known)) {
            Some((_, kinds)) => {
                kinds.iter_mut().zip(&sample.kinds).for_each(|(kind, more)| *kind = kind.join(*more));
            }
            None => together.push((&sample.names, sample.kinds.clone())),
        }
    }
    number_of
        .into_iter()
        .map(|number| number.map_or_else(Vec::new, |number| together[number].1.clone()))
        .collect()
}

/// Looks at a text.
struct Sampler<'a> {
    stream: Stream,
    format: Format,
    args: &'a TextArgs,
    told: Option<&'a [Told]>,
    interrupted: &'a Interrupted,
}

impl Sampler<'_> {
    fn run(&mut self, rules: &Rules, lines: &mut jsonl::Seen) -> Result<Sample> {
        let mut sample = None;
        let mut line = 0;
        let mut rest = marquetry_base::Bytes::new();
        loop {
            self.interrupted.cancel().check()?;
            let piece = self.stream.next(&rest)?;
            let added = match (self.format, &mut sample) {
                (Format::Jsonl, _) if self.told.is_some() => return Ok(Sample::Lines),
                (Format::Jsonl, _) => lines.add(&piece, &mut line),
                (_, Some(sample)) => csv::Sample::add(sample, &piece),
                (_, none) => match csv::Sample::begin(&piece, rules, self.told) {
                    Ok(Some(begun)) if self.told.is_some() => return Ok(Sample::Delimited(begun)),
                    Ok(Some(begun)) => none.insert(begun).add(&piece),
                    Ok(None) => Ok(0),
                    Err(error) => Err(error),
                },
            };
            let at = added?;
            let is_enough = !self.args.infer_all && piece.offset + u64_of(piece.bytes.len()) >= SAMPLE_BYTES;
            if piece.is_last || (is_enough && (sample.is_some() || self.format == Format::Jsonl)) {
                return Ok(match sample {
                    Some(sample) => Sample::Delimited(sample),
                    None => Sample::Lines,
                });
            }
            rest = piece.bytes.slice(at..);
        }
    }
}

/// The files that are text.
pub(crate) struct TextFormat {
    args: TextArgs,
    limits: Limits,
    interrupted: Interrupted,
}

impl FileFormat for TextFormat {
    fn is_of(&self, path: &Path) -> bool {
        self.args.format_of(path) != Format::Parquet
    }

    fn open(&self, paths: &[PathBuf]) -> Result<Vec<Box<dyn FormatFile>>> {
        let formats = paths.iter().map(|path| (path.clone(), self.args.format_of(path)));
        let files = open(&formats.collect::<Vec<_>>(), &self.args, self.limits, &self.interrupted)?;
        Ok(files.into_iter().map(|file| Box::new(file) as Box<dyn FormatFile>).collect())
    }
}

impl FormatFile for TextFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn bytes(&self) -> Option<u64> {
        fs::metadata(&self.path).ok().filter(fs::Metadata::is_file).map(|found| found.len())
    }

    /// Standard input only once.
    fn open(&self, leaves: &[usize], options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let stream = match &self.once {
            None => Stream::open(&self.path, &self.name, self.limits)?,
            Some(once) => {
                once.lock().unwrap_or_else(PoisonError::into_inner).take().ok_or_else(|| {
                    Error::misuse("standard input can be read once: write it to a file first")
                })?
            }
        };
        let limit = options.limit.unwrap_or(u64::MAX);
        let rows =
            options.batch_rows.unwrap_or(BATCH_ROWS).min(usize::try_from(limit).unwrap_or(usize::MAX)).max(1);
        let reader = match &self.form {
            Form::Delimited(form) => {
                Reader::Delimited(Box::new(csv::Reader::new(Arc::clone(form), stream, leaves, rows)?))
            }
            Form::Lines(form) => Reader::Lines(Box::new(jsonl::Reader::new(form, stream, leaves, rows)?)),
        };
        Ok(Box::new(TextRows { reader, name: self.name.clone(), left: limit }))
    }
}

enum Reader {
    Delimited(Box<csv::Reader>),
    Lines(Box<jsonl::Reader>),
}

impl Reader {
    fn next(&mut self) -> Result<Option<Batch>> {
        match self {
            Reader::Delimited(reader) => reader.next(),
            Reader::Lines(reader) => reader.next(),
        }
    }
}

/// Batches of a text's rows.
struct TextRows {
    reader: Reader,
    name: String,
    left: u64,
}

impl Batches for TextRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(mut batch) = self.reader.next().map_err(|error| named(error, &self.name))? else {
            return Ok(None);
        };
        if u64_of(batch.rows) > self.left {
            batch = batch.slice(0..usize::try_from(self.left).unwrap_or(usize::MAX));
        }
        self.left -= u64_of(batch.rows);
        Ok(Some(batch))
    }
}

fn named(error: Error, name: &str) -> Error {
    error.at(|place| place.object = Some(name.to_string()))
}

/// An error in a line, which is counted from 1.
fn at_line(line: u64, what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("line {line}: {what}"))
}

/// Characters of a value that an error shows.
const SHOWN_CHARS_MAX: usize = 60;

/// A value as an error shows it.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if short.len() < text.len() { format!("{short:?}…") } else { format!("{short:?}") }
}

/// The value that a text is, of this kind. `None` if it is none.
fn with_value<R>(kind: Kind, text: &[u8], take: impl FnOnce(Value<'_>) -> R) -> Option<R> {
    let bare = text.trim_ascii();
    Some(match kind {
        Kind::Boolean => take(Value::Boolean(parse::boolean(bare)?)),
        Kind::Integer(64) => take(Value::Int64(parse::integer(bare)?)),
        Kind::Integer(bits) => {
            let (value, room) = (parse::integer(bare)?, 1_i64 << (bits - 1));
            let value = (-room..room).contains(&value).then(|| i32::try_from(value).ok()).flatten()?;
            take(Value::Int32(value))
        }
        Kind::Float => take(Value::Float(parse::float(bare)?)),
        Kind::Double => take(Value::Double(parse::double(bare)?)),
        Kind::Text => take(Value::Bytes(text)),
        Kind::Blob => {
            let mut bytes = Vec::new();
            parse::blob(bare, &mut bytes)?;
            take(Value::Bytes(&bytes))
        }
        Kind::Date => take(Value::Int32(parse::date(bare)?)),
        Kind::Time => take(Value::Int64(parse::time(bare)?)),
        Kind::Timestamp { unit, is_instant } => {
            let found = parse::timestamp(bare)?;
            // What has no zone is taken for UTC, but nothing that has one for a clock's reading.
            (is_instant || found.offset.is_none()).then_some(())?;
            take(Value::Int64(found.in_unit(unit)?))
        }
        Kind::Uuid => take(Value::Bytes(&parse::uuid(bare)?)),
        Kind::Decimal { precision, scale } => {
            let value = parse::decimal(bare, precision, scale)?;
            match precision {
                0..=9 => take(Value::Int32(i32::try_from(value).ok()?)),
                10..=18 => take(Value::Int64(i64::try_from(value).ok()?)),
                _ => take(Value::Bytes(&value.to_be_bytes())),
            }
        }
    })
}
