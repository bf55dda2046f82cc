//! Text as the command line has it: CSV, TSV and JSON lines.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use marquetry_base::{Limits, Result};
use marquetry_tables::text::{self, Columns, TextFormat, TextOptions};

use crate::failure::{Failure, Outcome, plain};
use crate::output::Interrupted;

/// How text is read.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TextArgs {
    /// What the files are, whatever their names end in; '-' is standard input then
    ///
    /// Without it, names that end in .csv, .tsv, .tab, .jsonl and .ndjson are text, compressed ones too (.csv.gz, .jsonl.zst), and all
    /// others are Parquet files. Text is UTF-8.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "CSV and JSON lines")]
    pub(crate) from: Option<Format>,

    /// What stands between fields [default: of CSV what the first rows suggest: , tab ; or |]
    #[arg(long, value_name = "CHARACTER", value_parser = delimiter, help_heading = "CSV and JSON lines")]
    pub(crate) delimiter: Option<u8>,

    /// What may stand around fields, or 'none' [default: " of CSV, none of TSV]
    #[arg(long, value_name = "CHARACTER", value_parser = quote, help_heading = "CSV and JSON lines")]
    pub(crate) quote: Option<text::Quote>,

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
        _ => Err("one character of ASCII is needed, that ends no line".to_string()),
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
        None => &marquetry_io::files::PARQUET_EXTENSIONS,
        Some(format) => format.extensions(),
    }
}

/// What another value of an option of the library's would do.
pub(crate) fn hint(option: &str) -> Option<&'static str> {
    Some(match option {
        "header" => "--header no takes it for a row, --header yes for the names of columns",
        "infer_bytes" => "--infer-all looks at all rows first, --schema gives the columns and their types",
        "schema" => "--schema gives the columns and their types",
        "short_rows" => {
            "--short-rows null takes missing fields for null, --schema gives columns that the first row lacks"
        }
        _ => return None,
    })
}
