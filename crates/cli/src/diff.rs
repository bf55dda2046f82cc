//! `marquetry diff`: whether two tables are the same, and where they are not.

mod compared;
mod json;
mod lines;

use std::fs::{self, File};
use std::io::Read;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use marquetry::base::Detail;
use marquetry::io::files::find;
use marquetry::tables::text::Format as TextFormat;
use marquetry::tables::{Address, ColumnPath, DiffOptions, Source, diff};

use crate::args::ThreadArgs;
use crate::failure::{Failure, Outcome};
use crate::numbers::{parse_bytes, parse_number};
use crate::output::{Interrupted, Output};
use crate::progress::Progress;
use crate::table::printable;
use crate::table_args::TableArgs;
use crate::text::{Format, TextArgs, extensions};
use compared::Compared;

/// Compare two tables by value and print their differences
#[derive(Debug, Args)]
#[command(
    long_about = "Compare two tables by value and print their differences.

Columns are matched by name, whatever their order. Their types may differ, if their values can be compared exactly: integers with \
integers, decimals and floats; decimals of any scale; floats of any width; times of any unit, in UTC or local, and INT96; text \
with text, bytes with text, UUIDs with their text. All NaNs are equal, and 0 equals -0. VARIANT columns are compared as JSON. How \
files are written (encodings, codecs, pages, row groups) makes no difference.

Schemas that differ in types, nullability, field ids, the spelling of lists, or the order of columns are reported, but only count \
with --strict. A column that one table lacks, or whose values cannot be compared, always counts; --columns chooses others.

Rows are compared in order, or with --key by key, in whatever order they are. For each column that differs, the number of different \
rows is printed, and the values of the first ones.

The exit code is 0 if the rows are equal, 1 if there is a difference, and 3 if a table cannot be read, even if the reason is that it \
is corrupt.

The options of CSV and JSON lines are for the table that is text by its name. With --from, they are for both, except a table of Parquet files (by their first bytes) beside one that is text.",
    after_help = "\
Examples:
  marquetry diff trips.parquet copy.parquet
  marquetry diff trips/ 'copies/*.parquet' --columns id,fare
  marquetry diff monday.parquet tuesday.parquet --key 'day, trip'
  marquetry diff events.csv events.parquet --short-rows null
  marquetry diff a.parquet b.parquet --json | jq .rows"
)]
pub(crate) struct Diff {
    /// First table: a Parquet file, a directory, a pattern, CSV or JSON lines
    #[arg(value_name = "A")]
    a: PathBuf,

    /// Second table
    #[arg(value_name = "B")]
    b: PathBuf,

    /// Key columns: rows with the same key are compared, whatever their order
    ///
    /// Names are written as in --columns; a key column need not be named there. Both tables are sorted by the key, in bounded memory. Of
    /// several rows with the same key, the first is compared with the first, and so on; they are counted. Null equals
    /// null.
    #[arg(long, value_name = "A,B,…", help_heading = "Comparison")]
    key: Option<String>,

    /// Approximate memory for sorting by the key; more rows go to temporary files [default: 512M]
    #[arg(
        long,
        value_parser = parse_bytes::<NonZeroU64>,
        value_name = "BYTES",
        requires = "key",
        help_heading = "Comparison"
    )]
    sort_memory: Option<NonZeroU64>,

    /// Exit code 1 for schemas that differ, even if the rows are equal
    #[arg(long, help_heading = "Comparison")]
    strict: bool,

    #[command(flatten)]
    table: TableArgs,

    /// Number of rows to print for each column that differs
    #[arg(
        long,
        value_parser = parse_number::<usize>,
        value_name = "N",
        allow_negative_numbers = true,
        default_value_t = 3
    )]
    show: usize,

    /// JSON output: one object on a line, with stable keys
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    threads: ThreadArgs,

    /// No progress bar
    #[arg(long, short)]
    quiet: bool,
}

impl Diff {
    pub(crate) fn run(&self, interrupted: Interrupted) -> Outcome {
        let mut output = Output::new(interrupted);
        let compared = self.compare(output.interrupted(), output_of(self.json));
        let (compared, text) = compared.map_err(Failure::of_input)?;
        output.text().extend_from_slice(text.as_bytes());
        output.flush()?;
        let Compared { names: [a, b], found, .. } = &compared;
        match (found.are_rows_equal(), found.schema.is_none() || !self.strict) {
            (true, true) => Ok(()),
            (true, false) => Err(Failure::refused(format!("the schemas of {a} and {b} differ"))),
            (false, _) => Err(Failure::refused(format!("{a} and {b} differ"))),
        }
    }

    /// Compares the tables, and puts what is found into words.
    fn compare(
        &self,
        interrupted: &Interrupted,
        in_words: fn(&Compared) -> Outcome<String>,
    ) -> Outcome<(Compared, String)> {
        let key = self.key.as_deref().map(ColumnPath::parse_list).transpose();
        let key = key.map_err(|error| error.with(Detail::Option("key")))?.unwrap_or_default();
        let open = |path: &PathBuf, table: &TableArgs| -> Outcome<Arc<dyn Source>> {
            let rename = table.renamed()?;
            let columns = table.wanted()?.map(|columns| with_key(columns, &key, rename.names()));
            table.open_columns(std::slice::from_ref(path), columns, interrupted)
        };
        let [for_a, for_b] = self.tables();
        let sources = [open(&self.a, &for_a)?, open(&self.b, &for_b)?];
        let names = [&self.a, &self.b].map(|path| printable(&Address::parse(path).to_string()));
        let limits = self.table.limits.limits();
        let mut options = DiffOptions::default();
        (options.rows_shown, options.cancel) = (self.show, interrupted.cancel());
        options.threads = self.threads.get();
        (options.key, options.limits) = (key, limits);
        if let Some(bytes) = self.sort_memory {
            options.sort_memory_bytes = bytes.get();
        }
        // Rows are passed once, and once more if they are sorted.
        let times = if options.key.is_empty() { 1 } else { 2 };
        let progress = Progress::of_diff(&sources.each_ref().map(|source| source.table()), times, self.quiet);
        let bytes_read = options.bytes_read.clone();
        let found =
            diff(sources.each_ref(), &options, &mut |rows| progress.compared(rows, bytes_read.get()))?;
        progress.clear();
        let compared = Compared { sources, names, found, limits };
        let text = in_words(&compared)?;
        Ok((compared, text))
    }

    /// How each table is read: as asked, but without the options of text if only the other one is text.
    fn tables(&self) -> [TableArgs; 2] {
        let from = self.table.text.from;
        let are_parquet = [&self.a, &self.b].map(|path| is_parquet(path, from));
        are_parquet.map(|is_parquet| {
            let mut table = self.table.clone();
            if is_parquet && are_parquet.contains(&false) {
                table.text = TextArgs::default();
            }
            table
        })
    }
}

/// The form of the output.
fn output_of(is_json: bool) -> fn(&Compared) -> Outcome<String> {
    if is_json { json::write } else { lines::write }
}

/// The columns that are read: those that are asked for, and those of the key.
fn with_key(
    mut columns: Vec<ColumnPath>,
    key: &[ColumnPath],
    renamed: &[(String, String)],
) -> Vec<ColumnPath> {
    for path in key {
        // Columns are chosen by the names that they have in the file.
        let before = renamed.iter().find(|(_, new)| *new == path.dotted());
        let path = &before.map_or_else(|| path.clone(), |(old, _)| ColumnPath::of([old]));
        let name = path.dotted();
        let is_read = |column: &ColumnPath| {
            name.strip_prefix(&column.dotted()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if !columns.iter().any(is_read) {
            columns.push(path.clone());
        }
    }
    columns
}

/// Whether a table is of Parquet files: unless their names say that they are text, or, with a format that is to be read
/// whatever the names are, if they begin as Parquet files do. The first file of several decides.
fn is_parquet(path: &Path, from: Option<Format>) -> bool {
    let by_name =
        |path: &Path| path.file_name().and_then(|name| TextFormat::by_name(name.to_str()?)).is_none();
    let found = find(path, extensions(from)).ok().and_then(|found| found.into_iter().next());
    let Some(first) = found else {
        // Of what is elsewhere there is the name. Where there is no file, opening it says so.
        return Address::parse(path).scheme().is_none() || (from.is_none() && by_name(path));
    };
    match from {
        None => by_name(&first),
        Some(_) => begins_as_parquet(&first),
    }
}

/// Whether a file begins as Parquet files do, encrypted ones too. What can be read only once is not looked into.
fn begins_as_parquet(path: &Path) -> bool {
    if !fs::metadata(path).is_ok_and(|found| found.is_file()) {
        return false;
    }
    let mut magic = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && matches!(&magic, b"PAR1" | b"PARE")
}
