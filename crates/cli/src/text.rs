//! Text as the command line has it: CSV, TSV and JSON lines.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use marquetry::base::{Limits, Result};
use marquetry::parquet::schema::TimeUnit;
use marquetry::tables::text::{self, Columns, TextFormat, TextOptions, Types};

use crate::failure::{Failure, Outcome, plain};
use crate::numbers::parse_number;
use crate::output::Interrupted;

/// How text is read.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TextArgs {
    /// Input format, whatever the files' names and first bytes; Parquet files beside text are still found by theirs
    ///
    /// By default, names that end in .csv, .tsv, .tab, .jsonl and .ndjson are text, compressed or not (.csv.gz,
    /// .jsonl.zst, .tsv.bz2). Files with other names, pipes and standard input are what they begin as: Parquet, JSON lines
    /// or CSV, compressed with gzip, bzip2, zstd or not. Text is UTF-8. Parquet from a pipe is kept in a temporary file
    /// without a name, because it is read from its end.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "CSV and JSON lines")]
    pub(crate) from: Option<Format>,

    #[command(flatten)]
    pub(crate) form: FormArgs,

    /// The unit of inferred timestamps, where the destination has one
    #[arg(skip)]
    pub(crate) timestamp_unit: Option<TimeUnit>,

    /// Columns and their types: 'id bigint, name text, tags list<text>'
    ///
    /// Types are CQL's: boolean, tinyint, smallint, int, bigint, float, double, text, blob, uuid, date, time, timestamp; and
    /// decimal(p, s), timestamp(6) and timestamp(9) (in micro- and nanoseconds), localtimestamp(3, 6 or 9)
    /// (without a zone); for JSON also list<…>, map<…, …> and struct<name type, …>; and Parquet's uint8 to uint64, float16,
    /// time(3 or 6), utctime(3, 6 or 9), interval, int96, json, bson, enum, fixed(bytes), unknown (only nulls). By default
    /// types are inferred: bigint, double, boolean, date, timestamps in ISO 8601, otherwise text. Values that would lose
    /// something, such as 007, are text. A JSON field with both numbers and text must be declared as text: --types does
    /// that for some columns. `marquetry show FILE --schema` prints what is inferred. Of SSTables it is CQL, or a file of it, with
    /// the CREATE TABLE, which names key columns and leaves dropped ones out; 'none' for no schema.cql.
    #[arg(long, value_name = "COLUMNS", help_heading = "CSV and JSON lines")]
    pub(crate) schema: Option<String>,

    /// File with the columns and their types, as in --schema
    #[arg(long, value_name = "FILE", conflicts_with = "schema", help_heading = "CSV and JSON lines")]
    pub(crate) schema_file: Option<PathBuf>,
}

/// What the rows of a text look like.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FormArgs {
    /// Field delimiter: one character, \t or \x01 [default: detected from the first rows of CSV: , tab ; | or \x01]
    #[arg(long, value_name = "CHARACTER", value_parser = text::character, help_heading = "CSV and JSON lines")]
    pub(crate) delimiter: Option<u8>,

    /// Quote character, or 'none' [default: " for CSV, none for TSV]
    #[arg(long, value_name = "CHARACTER", help_heading = "CSV and JSON lines")]
    pub(crate) quote: Option<text::Quote>,

    /// Header row: whether the first row names the columns
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "CSV and JSON lines")]
    pub(crate) header: Header,

    /// Text that means null, unless quoted [default: empty text]
    ///
    /// Can be given several times: --null NA --null ''
    #[arg(long, value_name = "TEXT", help_heading = "CSV and JSON lines")]
    pub(crate) null: Vec<String>,

    /// Handling of rows with too few fields
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "CSV and JSON lines")]
    pub(crate) short_rows: ShortRows,

    /// Lines to skip before the header
    #[arg(long, value_name = "N", value_parser = parse_number::<u64>, default_value_t, hide_default_value = true, help_heading = "CSV and JSON lines")]
    pub(crate) skip: u64,

    /// Character that begins lines that are comments, which are skipped, except inside quotes
    #[arg(long, value_name = "CHARACTER", value_parser = text::character, help_heading = "CSV and JSON lines")]
    pub(crate) comment: Option<u8>,

    /// Encoding of the text: windows-1252, utf-16le, shift_jis, … [default: utf-8]
    ///
    /// The names are those of the WHATWG's Encoding Standard. Bytes that are not of the encoding are an error with their line.
    #[arg(long, value_name = "NAME", help_heading = "CSV and JSON lines")]
    pub(crate) text_encoding: Option<String>,

    /// Decimal mark of numbers in CSV [default: .]
    #[arg(long, value_name = "CHARACTER", value_parser = text::character, help_heading = "CSV and JSON lines")]
    pub(crate) decimal: Option<u8>,

    /// Form of dates and timestamps in CSV, as in strptime: '%d.%m.%Y %H:%M'
    ///
    /// %Y %y year, %m month, %b %B its English name, %d %e day, %H hour, %I %p hour with AM or PM, %M minute, %S second, %f
    /// up to nine digits of its fraction, %z offset (+0100, +01:00, Z), %Z UTC or GMT, %a %A weekday, %s seconds since 1970;
    /// %F is %Y-%m-%d, %D %m/%d/%y, %T %H:%M:%S, %R %H:%M, %% a percent sign. Numbers may lack leading zeros, a space
    /// stands for several. ISO 8601 is read, too.
    #[arg(long, value_name = "FORMAT", help_heading = "CSV and JSON lines")]
    pub(crate) timestamp_format: Option<String>,

    /// Spaces around fields of CSV are dropped, except inside quotes
    #[arg(long, help_heading = "CSV and JSON lines")]
    pub(crate) trim: bool,

    /// Type inference from all rows, not only the first 16 MiB; reads each file twice
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
    /// One JSON object per line
    Jsonl,
}

/// Whether the first row names the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Header {
    /// It does if none of its fields is a value, such as a number, a date, true, 007 or \N (an error if two are equal); with
    /// --schema, if it has those names (an error if it has some of them, and others). Where all rows are text, nothing tells
    /// names from values: it is said that they are taken for names, unless one but the first is empty
    #[default]
    Auto,
    /// It does; a second column x is called x#2, and a column without a name gets column and its number
    Yes,
    /// It is data; columns are named column1, column2, …
    No,
}

/// What a row of fewer fields than the ones before is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ShortRows {
    /// An error
    #[default]
    Error,
    /// Missing fields are null
    Null,
}

impl Format {
    /// The format of text that it is. `None` of Parquet.
    fn of_text(self) -> Option<text::Format> {
        match self {
            Format::Parquet => None,
            Format::Csv => Some(text::Format::Csv),
            Format::Tsv => Some(text::Format::Tsv),
            Format::Jsonl => Some(text::Format::JsonLines),
        }
    }
}

impl FormArgs {
    /// An option that is given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.delimiter.is_some(), "--delimiter"),
            (self.quote.is_some(), "--quote"),
            (self.header != Header::Auto, "--header"),
            (!self.null.is_empty(), "--null"),
            (self.infer_all, "--infer-all"),
            (self.short_rows != ShortRows::Error, "--short-rows"),
            (self.skip > 0, "--skip"),
            (self.comment.is_some(), "--comment"),
            (self.text_encoding.is_some(), "--text-encoding"),
            (self.decimal.is_some(), "--decimal"),
            (self.timestamp_format.is_some(), "--timestamp-format"),
            (self.trim, "--trim"),
        ];
        given.into_iter().find(|given| given.0).map(|given| given.1)
    }
}

impl TextArgs {
    /// An option that is given and is for text only.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let schema = self.schema.is_some().then_some("--schema");
        let file = self.schema_file.is_some().then_some("--schema-file");
        self.form.given().or(schema).or(file)
    }

    fn columns(&self) -> Outcome<Option<Columns>> {
        let (text, subject) = match (&self.schema, &self.schema_file) {
            (Some(text), _) => (text.clone(), "--schema".to_string()),
            (None, Some(path)) => {
                let name = path.display().to_string();
                let text = fs::read_to_string(path).map_err(|error| {
                    Failure::unreachable(format!("{name}: {}", plain(&error.to_string())))
                })?;
                (text, name)
            }
            (None, None) => return Ok(None),
        };
        let columns: Result<Columns> = text.parse();
        columns.map(Some).map_err(|error| Failure::usage(format!("{subject}: {}", error.message())))
    }

    /// The files that are text, wherever files are read.
    pub(crate) fn format(
        &self,
        types: &Types,
        limits: Limits,
        interrupted: &Interrupted,
    ) -> Outcome<TextFormat> {
        let mut options = TextOptions::default();
        options.delimiter = self.form.delimiter;
        options.quote = self.form.quote.unwrap_or_default();
        options.header = match self.form.header {
            Header::Auto => text::Header::Auto,
            Header::Yes => text::Header::Yes,
            Header::No => text::Header::No,
        };
        options.nulls.clone_from(&self.form.null);
        options.short_rows = self.form.short_rows == ShortRows::Null;
        options.schema = self.columns()?;
        options.types = types.clone();
        if self.form.infer_all {
            options.infer_bytes = u64::MAX;
        }
        options.limits = limits;
        options.trim = self.form.trim;
        options.comment = self.form.comment;
        options.timestamp_unit = self.timestamp_unit;
        options.decimal = self.form.decimal.unwrap_or(options.decimal);
        options.timestamp_format = self.form.timestamp_format.as_deref().map(str::parse).transpose()?;
        let mut format = TextFormat::new(options);
        format.preparing.skip_lines = self.form.skip;
        format.preparing.encoding = self.form.text_encoding.as_deref().map(str::parse).transpose()?;
        format.format = self.from.and_then(Format::of_text);
        format.cancel = interrupted.cancel();
        Ok(format)
    }
}

/// The endings of files of a format, as directories are searched for them.
pub(crate) fn extensions(format: Option<Format>) -> &'static [&'static str] {
    match format.and_then(Format::of_text) {
        None => &marquetry::io::files::PARQUET_EXTENSIONS,
        Some(format) => format.extensions(),
    }
}
