//! `marquetry diff`: whether two tables are the same, and where they are not.

mod compared;
mod json;
mod lines;

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::Args;

use marquetry::base::Detail;
use marquetry::tables::{Address, ColumnPath, DiffOptions, diff};

use crate::args::ThreadArgs;
use crate::failure::{Failure, Outcome};
use crate::numbers::{parse_bytes, parse_number};
use crate::output::{Interrupted, Output};
use crate::progress::Progress;
use crate::table::printable;
use crate::table_args::{TableArgs, say_notes};
use compared::Compared;

/// Compare two tables by value and print their differences
#[derive(Debug, Args)]
#[command(
    long_about = "Compare two tables by value and print their differences.

Columns are matched by name, whatever their order. Their types may differ, if their values can be compared exactly: integers with \
integers, decimals and floats; decimals of any scale; floats of any width; times of any unit, in UTC or local, and INT96; text \
with text, bytes with text, UUIDs with their text. All NaNs are equal, and 0 equals -0. A VARIANT is compared as JSON. How \
files are written (encodings, codecs, pages, row groups) makes no difference.

Schemas that differ in types, nullability, field ids, the spelling of lists, or the order of columns are reported, but only count \
with --strict. A column that one table lacks, or whose values cannot be compared, always counts; --columns chooses others.

Rows are compared in order, or with --key by key, in whatever order they are; those of a table of a cluster by its key, unless another is given. \
They are compared as they are once loaded: FLOAT and DOUBLE with the digits of FLOAT, microseconds with the bigint that they become, text with what it is read as, sets in order, \
and a collection that is empty and not frozen as null. For each column that differs, the number of different rows is printed, and the values of the first ones.

The exit code is 0 if the rows are equal, 1 if there is a difference, and 3 if a table cannot be read, even if the reason is that it \
is corrupt.

The options of CSV and JSON lines are for both tables, or for the one that is text. A --rename of a column that only one table has is for that one.",
    after_help = "\
Examples:
  marquetry diff trips.parquet copy.parquet
  marquetry diff trips/ 'copies/*.parquet' --columns id,fare
  marquetry diff monday.parquet tuesday.parquet --key 'day, trip'
  marquetry diff events.csv events.parquet --short-rows null
  marquetry diff a.parquet b.parquet --json | jq .rows"
)]
pub(crate) struct Diff {
    /// First table: a Parquet file, a directory, a pattern, CSV or JSON lines, SSTables (sstable:DIR), a table of a cluster
    /// (cql://HOST/KEYSPACE.TABLE)
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
        alias = "sort-memory",
        value_parser = parse_bytes::<NonZeroU64>,
        value_name = "BYTES",
        help_heading = "Comparison"
    )]
    memory: Option<NonZeroU64>,

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
        let mut key = key.map_err(|error| error.with(Detail::Option("key")))?.unwrap_or_default();
        let sources = self.table.open_pair([&self.a, &self.b], &mut key, interrupted)?;
        if self.memory.is_some() && key.is_empty() {
            return Err(Failure::usage("--memory is for rows that are matched by key: --key"));
        }
        sources.iter().for_each(|source| say_notes(source.table()));
        let names = [&self.a, &self.b].map(|path| printable(&Address::parse(path).to_string()));
        let limits = self.table.limits.limits();
        let mut options = DiffOptions::default();
        (options.rows_shown, options.cancel) = (self.show, interrupted.cancel());
        options.threads = self.threads.get();
        let is_live = |path: &PathBuf| Address::parse(path).scheme() == Some("cql");
        options.as_loaded = [&self.a, &self.b].into_iter().any(is_live);
        (options.key, options.limits) = (key, limits);
        if let Some(bytes) = self.memory {
            options.memory_bytes = bytes.get();
        }
        // Rows are passed once, and once more if they are sorted.
        let times = if options.key.is_empty() { 1 } else { 2 };
        let progress =
            Progress::of_tables(&sources.each_ref().map(|source| source.table()), times, self.quiet);
        let bytes_read = options.bytes_read.clone();
        let found = diff(sources.each_ref(), &options, &mut |rows| progress.passed(rows, bytes_read.get()))?;
        progress.clear();
        let compared = Compared { sources, names, found, limits };
        let text = in_words(&compared)?;
        Ok((compared, text))
    }
}

/// The form of the output.
fn output_of(is_json: bool) -> fn(&Compared) -> Outcome<String> {
    if is_json { json::write } else { lines::write }
}
