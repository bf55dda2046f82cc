//! `marquetry show`: what is in a file, from its footer alone.

mod bounds;
mod details;
mod json;
mod pages;
mod summary;
mod text;
mod why;

use std::path::PathBuf;

use clap::Args;

use marquetry::io::files::{PARQUET_EXTENSIONS, is_collective};
use marquetry::io::store::LocalFiles;
use marquetry::tables::Address;
use marquetry::tables::files::{self, Gathered, ParquetFile};
use marquetry::tables::text::{Column, Columns, columns_of};

use crate::failure::{Failure, Outcome};
use crate::output::{Interrupted, Output};
use crate::table_args::{LimitArgs, TableArgs, not_parquet};
use crate::terminal::Terminal;
use crate::text::{FormArgs, Format, TextArgs};

/// Describe Parquet files: schema, sizes, encodings, statistics
#[derive(Debug, Args)]
#[command(
    long_about = "Describe Parquet files: rows, size, writer, the schema as a tree, and for every column its encodings, \
codec, sizes, nulls, minimum and maximum. Only the footer is read (with --pages also page headers; with --why also a page of each \
column chunk), so files of any size are fast. Nested and encrypted columns are included.

Bounds are shown if the format says that they can be trusted: the deprecated ones of unsigned columns and text cannot. \
A bound that the writer truncated ends in an ellipsis. With --pages, the page index is shown with the headers, if there is one.

For a directory or a pattern, and with --summary for any files, it describes the files together: rows, sizes, the columns in \
their paths, their schemas joined by name, their differences, and each file on a line.",
    after_help = "\
Examples:
  marquetry show trips.parquet
  marquetry show trips/
  marquetry show --pages fare_amount trips.parquet
  marquetry show --why trips.parquet
  marquetry show --schema trips.csv > schema.txt
  marquetry show --json trips.parquet | jq '.columns[] | {path, compressed_bytes}'"
)]
pub(crate) struct Show {
    /// Parquet files, directories, patterns ('trips/year=*/**/*.parquet')
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Summary of all files together; the default for directories and patterns
    #[arg(long, conflicts_with_all = ["pages", "json"])]
    summary: bool,

    /// Pages of one column, named by its dotted path in the schema tree
    #[arg(long, value_name = "COLUMN")]
    pages: Option<String>,

    /// Size of each column's first values in every encoding: why columns are encoded as they are
    ///
    /// This reads values: a page, or several, of each column chunk.
    #[arg(long, conflicts_with_all = ["pages", "json", "summary"])]
    why: bool,

    /// Columns and their types in the words that --schema and --types take, one per line
    ///
    /// Of CSV and JSON lines: what is inferred. Saved and edited, --schema-file reads it again.
    #[arg(long, conflicts_with_all = ["pages", "json", "summary", "why"])]
    schema: bool,

    /// Input format for --schema, whatever the files' names
    #[arg(long, value_enum, value_name = "FORMAT", requires = "schema", help_heading = "CSV and JSON lines")]
    from: Option<Format>,

    #[command(flatten)]
    form: FormArgs,

    /// Types of some columns, for --schema: as other commands take them
    #[arg(long, value_name = "COLUMN=TYPE,…", requires = "schema", help_heading = "CSV and JSON lines")]
    types: Vec<String>,

    /// JSON output with everything: one object per file, each on a line
    ///
    /// Keys are stable. Sizes and offsets are bytes. A bound has its bytes in hexadecimal and, where its order is defined, its
    /// text.
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    limits: LimitArgs,
}

impl Show {
    pub(crate) fn run(&self, interrupted: Interrupted) -> Outcome {
        let mut addresses = self.files.iter().map(|path| Address::parse(path.as_path()));
        if let Some(url) = addresses.find(|address| address.scheme().is_some()) {
            return Err(Failure::usage(format!("{url}: only local files can be shown")));
        }
        let terminal = Terminal::of_stdout();
        let mut output = Output::new(interrupted);
        if self.schema {
            let text = TextArgs { from: self.from, form: self.form.clone(), ..TextArgs::default() };
            let types = self.types.clone();
            let table = TableArgs { limits: self.limits, text, types, ..TableArgs::default() };
            let source = table.open(&self.files, output.interrupted())?;
            let columns = columns_of(source.table())?;
            output.text().extend_from_slice(schema_text(&columns).as_bytes());
            return output.flush();
        }
        if let Some(option) = self.form.given() {
            return Err(Failure::usage(format!("{option} is for --schema")));
        }
        let is_plain = self.pages.is_none() && !self.json && !self.why;
        if self.summary || (is_plain && self.files.iter().any(|path| is_collective(path))) {
            // What can be shown of files is what Parquet files have.
            let text = TextArgs { from: Some(Format::Parquet), ..TextArgs::default() };
            let table = TableArgs { union: true, limits: self.limits, text, ..TableArgs::default() };
            let options = table.options(output.interrupted())?;
            let gathered = Gathered::read(&self.files, &options).map_err(not_parquet)?;
            summary::print(&gathered, terminal, output.text());
            return output.flush();
        }
        let found = files::find(&LocalFiles, &self.files, &PARQUET_EXTENSIONS)?;
        for (nth, path) in found.into_iter().enumerate() {
            let file = ParquetFile::open(&path, self.limits.limits());
            let file = file.map_err(not_parquet)?;
            let out = output.text();
            if nth > 0 && !self.json {
                out.push(b'\n');
            }
            let mut fault = None;
            match (&self.pages, self.json) {
                _ if self.why => why::print(&file, terminal, out)?,
                (None, false) => text::print(&file, terminal, out),
                (None, true) => json::print(&file, out)?,
                (Some(column), as_json) => fault = pages::print(&file, column, as_json, terminal, out)?,
            }
            output.flush()?;
            if let Some(fault) = fault {
                return Err(fault);
            }
        }
        Ok(())
    }
}

/// Columns, each on a line, as `--schema-file` reads them.
fn schema_text(columns: &Columns) -> String {
    let one = |column: &Column| Columns::from(vec![column.clone()]).to_string();
    columns.as_slice().iter().map(one).collect::<Vec<_>>().join(",\n") + "\n"
}
