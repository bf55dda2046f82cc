//! `marquetry cql`: files as CQL text.

use std::io;
use std::path::PathBuf;

use clap::Args;

use marquetry::scylla::cql::TableName;
use marquetry::tables::{CopyOptions, CqlParts, CqlText, CqlTextOptions, copy};
use marquetry::{OutputFormat, Target};

use crate::args::{RowArgs, ThreadArgs};
use crate::failure::{Failure, Outcome};
use crate::output::Interrupted;
use crate::progress::{Goes, Progress};
use crate::table_args::{Hive, TableArgs, noted, say_notes};
use crate::text::{Format, TextArgs};

/// Print rows as CQL: CREATE TYPE and CREATE TABLE, then one INSERT per row
#[derive(Debug, Args)]
#[command(
    long_about = "Print Parquet files as CQL for ScyllaDB and Cassandra: CREATE TABLE, then one INSERT per row. Lists, maps and groups become lists, \
maps and user-defined types, for which CREATE TYPE comes first.

Several files become one table: see --union and --hive. A directory means all Parquet files below it (*.parquet, *.parq, *.pq), or all CSV, TSV and JSON lines if there are none, \
sorted by name, bytewise; names that begin with a dot or an underscore are skipped. Everything that can be wrong before \
the first row (names, types, the key, a file that differs) is reported before the first line is printed. After a later error, \
the output so far is complete statements, and the exit code reports the error.",
    after_help = "\
Examples:
  marquetry cql trips.parquet --table ks.trips --key-row-number id | cqlsh
  marquetry cql trips.parquet --table ks.trips --key '(a, b), c' --schema-only
  marquetry cql trips/ --table ks.trips --key trip --columns trip,fare,tip"
)]
pub(crate) struct Cql {
    /// Parquet files, directories, patterns ('trips/**/*.parquet'), CSV or JSON lines, SSTables (sstable:DIR); or a table, cql://HOST/KEYSPACE.TABLE
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Table name; as in CQL, names without double quotes are folded to lower case
    #[arg(long, value_name = "[KEYSPACE.]TABLE")]
    table: String,

    /// Print only the CREATE TYPE and CREATE TABLE
    #[arg(long, conflicts_with = "data_only")]
    schema_only: bool,

    /// Print only the INSERTs
    #[arg(long)]
    data_only: bool,

    #[command(flatten)]
    rows: RowArgs,

    #[command(flatten)]
    threads: ThreadArgs,

    /// No progress bar
    #[arg(long, short)]
    quiet: bool,
}

/// What is printed of files, and how.
pub(crate) struct Options {
    table: TableName,
    parts: CqlParts,
    rows: RowArgs,
    threads: ThreadArgs,
    quiet: bool,
}

impl Options {
    /// Schema and data, with a row number as the key, of files' own columns.
    pub(crate) fn row_numbers(table: TableName, name: &str) -> Options {
        let text = TextArgs { from: Some(Format::Parquet), ..TextArgs::default() };
        let table_args = TableArgs { hive: Hive::Off, text, ..TableArgs::default() };
        let rows =
            RowArgs { key_row_number: Some(name.to_string()), table: table_args, ..RowArgs::default() };
        Options { table, parts: CqlParts::All, rows, threads: ThreadArgs::default(), quiet: false }
    }
}

impl Cql {
    pub(crate) fn run(self, interrupted: Interrupted) -> Outcome {
        let table = table_name(&self.table)?;
        let parts = match (self.schema_only, self.data_only) {
            (true, _) => CqlParts::Schema,
            (_, true) => CqlParts::Rows,
            _ => CqlParts::All,
        };
        let target = Target::parse("-", Some(OutputFormat::Cql))?;
        let (rows, threads) = (self.rows.going_to(&target), self.threads);
        let options = Options { table, parts, rows, threads, quiet: self.quiet };
        print(&self.files, &options, interrupted)
    }
}

/// The name that `--table` gives.
pub(crate) fn table_name(text: &str) -> Outcome<TableName> {
    TableName::parse(text).map_err(|error| Failure::usage(format!("--table '{text}': {error}")))
}

/// Prints files as CQL.
pub(crate) fn print(files: &[PathBuf], options: &Options, interrupted: Interrupted) -> Outcome {
    let Options { table, parts, rows, threads, quiet } = options;
    let mapping = rows.mapping_options()?;
    let source = rows.table.open(files, &interrupted)?;
    rows.expect_key(source.table())?;
    if !quiet {
        say_notes(source.table());
    }
    let text = CqlTextOptions::of(mapping).only(*parts);
    let mut text = CqlText::new(io::stdout(), table.clone(), text).named("standard output");
    let mut copying = CopyOptions::default();
    copying.limit = if *parts == CqlParts::Schema { Some(0) } else { rows.limit };
    (copying.threads, copying.cancel) = (threads.get(), interrupted.cancel());
    let bar = Progress::of_copy(source.table(), &copying, false, *quiet, Goes::ToStdout);
    copy(&source, &mut text, &copying, &mut |copied| bar.copied(copied))?;
    noted(Vec::new(), &copying.lost, *quiet);
    Ok(())
}
