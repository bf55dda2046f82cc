//! `marquetry cql`: files as CQL text.

use std::path::PathBuf;

use clap::Args;

use marquetry_base::cast::u64_of;
use marquetry_scylla::bridge::{InsertWriter, Mapping};
use marquetry_scylla::cql::TableName;

use crate::args::RowArgs;
use crate::dataset::{Dataset, Hive, TableArgs};
use crate::failure::{Failure, Outcome};
use crate::output::{Interrupted, Output, WRITE_BYTES};
use crate::progress::{Goes, Progress};
use crate::text::{Format, TextArgs};

/// Print Parquet files as CQL: CREATE TYPE and CREATE TABLE, then one INSERT a row
#[derive(Debug, Args)]
#[command(
    long_about = "Print Parquet files as CQL for ScyllaDB and Cassandra: CREATE TABLE, then one INSERT a row. Lists, maps and groups become lists, \
maps and user-defined types, for which CREATE TYPE comes first.

Several files become one table: see --union and --hive. A directory stands for all Parquet files below it (*.parquet, *.parq, *.pq), \
in the order of their names; names that begin with a dot or an underscore are passed over. Everything that can be wrong before \
the first row (names, types, the key, a file that differs) is found before the first line is printed. If something is \
wrong later, what was printed before is whole statements, and the exit code says so.",
    after_help = "\
Examples:
  marquetry cql trips.parquet --table ks.trips --key-row-number id | cqlsh
  marquetry cql trips.parquet --table ks.trips --key '(a, b), c' --schema-only
  marquetry cql trips/ --table ks.trips --key trip --columns trip,fare,tip"
)]
pub(crate) struct Cql {
    /// Parquet files, directories of them, and patterns ('trips/**/*.parquet'); or CSV and JSON lines
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The table; as in CQL, names without double quotes are folded to lower case
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

    /// No progress bar
    #[arg(long, short)]
    quiet: bool,
}

/// What is printed of files, and how.
pub(crate) struct Options {
    table: TableName,
    schema: bool,
    data: bool,
    rows: RowArgs,
    quiet: bool,
}

impl Options {
    /// Schema and data, with a row number as the key, of files' own columns.
    pub(crate) fn row_numbers(table: TableName, name: &str) -> Options {
        let text = TextArgs { from: Some(Format::Parquet), ..TextArgs::default() };
        let table_args = TableArgs { hive: Hive::Off, text, ..TableArgs::default() };
        let rows =
            RowArgs { key_row_number: Some(name.to_string()), table: table_args, ..RowArgs::default() };
        Options { table, schema: true, data: true, rows, quiet: false }
    }
}

impl Cql {
    pub(crate) fn run(self, interrupted: Interrupted) -> Outcome {
        let table = TableName::parse(&self.table)
            .map_err(|error| Failure::usage(format!("--table '{}': {error}", self.table)))?;
        let options = Options {
            table,
            schema: !self.data_only,
            data: !self.schema_only,
            rows: self.rows,
            quiet: self.quiet,
        };
        print(&self.files, &options, interrupted)
    }
}

/// Prints files as CQL.
pub(crate) fn print(files: &[PathBuf], options: &Options, interrupted: Interrupted) -> Outcome {
    options.rows.expect_key()?;
    let mapping_options = options.rows.mapping_options()?;
    let dataset = Dataset::open(files, &options.rows.table, &interrupted)?;
    let mapping = options.rows.mapping(&dataset, &options.table, &mapping_options)?;
    let mut output = Output::new(interrupted);
    if options.schema {
        let types = mapping.types().iter().map(ToString::to_string);
        let table = mapping.table().to_string();
        output.text().extend(types.chain([table]).flat_map(String::into_bytes));
    }
    if options.data {
        let printed = print_rows(&dataset, &mapping, options, &mut output);
        // What came before the trouble is whole statements, and is wanted.
        if matches!(printed, Err(Failure::Said(..))) {
            output.flush()?;
        }
        printed?;
    }
    output.flush()
}

/// Bytes of statements that are printed at a time, for each column: the shortest of statements have about 10.
const WIDE_ROW_COLUMN_BYTES: usize = 160;

fn print_rows(dataset: &Dataset, mapping: &Mapping, options: &Options, output: &mut Output) -> Outcome {
    let wanted = dataset.rows(options.rows.limit);
    let progress = Progress::new(wanted, options.quiet, Goes::ToStdout);
    let mut done = 0;
    for file in dataset.files() {
        if done == wanted {
            break;
        }
        let first_row_number = done;
        let mut writer = InsertWriter::new(mapping);
        // The columns are looked up once a call, so a call should print some rows of a wide table too.
        let bytes_max = WRITE_BYTES.max(mapping.columns().len() * WIDE_ROW_COLUMN_BYTES);
        let mut rows = dataset.read(file, Some(wanted - done), true)?;
        while let Some(batch) = rows.next().map_err(|error| file.failure(&error))? {
            let batch = mapping.assemble(batch).map_err(|error| file.failure(&error))?;
            let number = first_row_number + batch.first_row();
            let mut next = 0;
            while next < batch.rows() {
                let written = writer
                    .write(&batch, next..batch.rows(), number, output.text(), bytes_max)
                    .map_err(|error| file.failure(&error))?;
                if written.next_row <= next {
                    return Err(Failure::bug("a writer of statements makes no progress"));
                }
                next = written.next_row;
                output.end_unit()?;
            }
            done += u64_of(batch.rows());
            progress.update(done, output.bytes());
        }
    }
    Ok(())
}
