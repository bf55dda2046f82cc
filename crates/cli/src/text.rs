//! Text as the command line has it: CSV, TSV and JSON lines.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use marquetry::base::{Limits, Result};
use marquetry::tables::text::{self, Columns, TextFormat, TextOptions};

use crate::failure::{Failure, Outcome, plain};
use crate::output::Interrupted;

/// How text is read.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TextArgs {
    /// Input format, whatever the files' names and first bytes
    ///
    /// By default, names that end in .csv, .tsv, .tab, .jsonl and .ndjson are text, compressed or not (.csv.gz,
    /// .jsonl.zst, .tsv.bz2). Files with other names, pipes and standard input are what they begin as: Parquet, JSON lines
    /// or CSV, compressed with gzip, bzip2, zstd or not. Text is UTF-8. Parquet from a pipe is kept in a temporary file
    /// without a name, because it is read from its end.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "CSV and JSON lines")]
    pub(crate) from: Option<Format>,

    /// Field delimiter [default: detected from the first rows of CSV: , tab ; or |]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter, help_heading = "CSV and JSON lines")]
    pub(crate) delimiter: Option<u8>,

    /// Quote character, or 'none' [default: " for CSV, none for TSV]
    #[arg(long, value_name = "CHARACTER", value_parser = quote, help_heading = "CSV and JSON lines")]
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

    /// Columns and their types: 'id bigint, name text, tags list<text>'
    ///
    /// Types are CQL's: boolean, tinyint, smallint, int, bigint, float, double, text, blob, uuid, date, time, timestamp; and
    /// decimal(p, s), timestamp(6) and timestamp(9) (in micro- and nanoseconds), localtimestamp(3, 6 or 9)
    /// (without a zone); for JSON also list<…>, map<…, …> and struct<name type, …>. By default types are
    /// inferred: bigint, double, boolean, date, timestamps in ISO 8601, otherwise text. Values that would lose
    /// something, such as 007, are text. A JSON field with both numbers and text must be declared as text.
    #[arg(long, value_name = "COLUMNS", help_heading = "CSV and JSON lines")]
    pub(crate) schema: Option<String>,

    /// File with the columns and their types, as in --schema
    #[arg(long, value_name = "FILE", conflicts_with = "schema", help_heading = "CSV and JSON lines")]
    pub(crate) schema_file: Option<PathBuf>,

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
    /// It does if none of its fields is a number, a date, true or false (an error if two are equal); with
    /// --schema, if it has those names (an error if it has some of them, and others)
    #[default]
    Auto,
    /// It does; a second column x is renamed x_2, and a column without a name gets column and its number
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

/// Reads a delimiter.
fn delimiter(text: &str) -> Result<u8, String> {
    match text {
        "tab" | "\\t" => Ok(b'\t'),
        _ => character(text),
    }
}

fn quote(text: &str) -> Result<text::Quote, String> {
    if text.is_empty() || text == "none" {
        Ok(text::Quote::None)
    } else {
        character(text).map(text::Quote::Character)
    }
}

fn character(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte @ (1..=9 | 11 | 12 | 14..=127)] => Ok(*byte),
        _ => Err("it must be one ASCII character, and not a line end".to_string()),
    }
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

impl TextArgs {
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
    pub(crate) fn format(&self, limits: Limits, interrupted: &Interrupted) -> Outcome<TextFormat> {
        let mut options = TextOptions::default();
        options.delimiter = self.delimiter;
        options.quote = self.quote.unwrap_or_default();
        options.header = match self.header {
            Header::Auto => text::Header::Auto,
            Header::Yes => text::Header::Yes,
            Header::No => text::Header::No,
        };
        options.nulls.clone_from(&self.null);
        options.short_rows = self.short_rows == ShortRows::Null;
        options.schema = self.columns()?;
        if self.infer_all {
            options.infer_bytes = u64::MAX;
        }
        options.limits = limits;
        let mut format = TextFormat::new(options);
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
