//! `marquetry rows`: the rows of files, for people and for other programs.

use std::hash::{BuildHasher, RandomState};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use marquetry::base::cast::u64_of;
use marquetry::base::print::without_zeros;
use marquetry::base::{Detail, Error, ErrorKind, Limits, Result};
use marquetry::parquet::batch::{Batch, Value};
use marquetry::parquet::print::{self, BatchColumns, Columns, Shown};
use marquetry::parquet::schema::{Meaning, Plan as _, Projection};
use marquetry::tables::text::{self, TextOutput, TextOutputOptions};
use marquetry::tables::{
    Aggregates, ColumnPath, CopyOptions, Reading, ReadingOptions, Source, Table as SourceTable, aggregate,
    copy, offset, sample,
};

use crate::args::{InvalidUtf8, ThreadArgs};
use crate::failure::{Failure, Outcome, say};
use crate::numbers::{parse_number, plural, thousands};
use crate::output::{Interrupted, Output};
use crate::progress::{Goes, Progress, rows_wanted};
use crate::table::{Side, Table, is_harmful, printable};
use crate::table_args::{TableArgs, noted, say_more_notes, say_notes};
use crate::terminal::Terminal;

/// Rows that a table shows unless told otherwise.
const TABLE_ROWS: u64 = 10;

/// Rows that a table lays out at a time, so that a long one takes no more memory than a short one.
const TABLE_BLOCK_ROWS: usize = 1000;

/// Print rows of Parquet files: as a table, as JSON lines, or as CSV
#[derive(Debug, Args)]
#[command(
    long_about = "Print rows of Parquet files: as a table for people, or as JSON lines or CSV for other programs.

Several files are printed as one table: see --union and --hive. A directory means all Parquet files below it \
(*.parquet, *.parq, *.pq), or all CSV, TSV and JSON lines if there are none, sorted by name, bytewise; names that begin with a dot or an underscore are skipped.",
    after_long_help = "\
How values are written:
  integers, floats   all digits; of floats, as few as read back to the same bits
  NaN, Infinity      these words; strings in JSON, which has no such numbers
  decimals           all digits; strings in JSON, so that no reader rounds them
  dates, times       ISO 8601: 2024-02-29, 03:04:05.678, and together
                     2024-02-29T03:04:05.678Z; without the Z where the file has
                     local times, or INT96
  intervals          ISO 8601: P1M2DT3.004S
  geometries         well-known text: POINT Z (1 2 3); what is none, as bytes
  bytes              0x and hexadecimal digits; in a table, a column whose bytes
                     are all readable UTF-8 as text in quotes: 'text'
  null               null; in CSV nothing, where empty text is \"\"

Nested columns are written as JSON, in tables and CSV too:
  structs            objects: {\"lat\":1.5,\"lon\":null}
  lists              arrays: [1,2,null]; so are repeated fields
  maps               arrays of entries: [{\"key\":1,\"value\":\"a\"}], whatever
                     the keys are; of maps without values, arrays of the keys
  VARIANT            the JSON that it stands for; there decimals are numbers,
                     and bytes base 64

CSV is RFC 4180 with a header line and \\n line ends.

Examples:
  marquetry rows trips.parquet
  marquetry rows --columns vendor,fare_amount --limit 100 trips.parquet
  marquetry rows --format jsonl trips.parquet | jq .fare_amount
  marquetry rows --aggregate 'count(*), avg(fare)' --group-by city trips/
  marquetry rows --sample 1000 --seed 7 --format csv trips/
  marquetry rows --columns 'id,items.price' 'orders/year=2024/**/*.parquet'"
)]
pub(crate) struct RowsCommand {
    /// Parquet files, directories, patterns ('trips/year=*/**/*.parquet'), CSV or JSON lines, SSTables (sstable:DIR); or a table, cql://HOST/KEYSPACE.TABLE
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    printing: Printing,
}

/// How rows are printed, and which.
#[derive(Debug, Args)]
pub(crate) struct Printing {
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Maximum number of rows [default: 10 in a table, otherwise all]
    #[arg(
        long,
        short = 'n',
        value_parser = parse_number::<u64>,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Rows and columns"
    )]
    pub(crate) limit: Option<u64>,

    /// Rows to skip before the first that is printed
    #[arg(long, value_parser = parse_number::<u64>, default_value_t, value_name = "N", help_heading = "Rows and columns")]
    offset: u64,

    /// Random sample of so many rows, in the files' order
    ///
    /// All rows are equally likely, and none is printed twice. Of Parquet files only the pages with chosen rows are read, if there is a
    /// page index. Of CSV and JSON lines, and with --where of any files, all rows are read once, and the sample is of those
    /// that match; it is held in memory.
    #[arg(
        long,
        value_parser = parse_number::<u64>,
        value_name = "N",
        allow_negative_numbers = true,
        conflicts_with_all = ["limit", "offset"],
        help_heading = "Rows and columns"
    )]
    sample: Option<u64>,

    /// Number that decides which rows --sample chooses: the same ones each time [default: others each time]
    #[arg(long, value_parser = parse_number::<u64>, value_name = "N", requires = "sample", help_heading = "Rows and columns")]
    seed: Option<u64>,

    /// Aggregates instead of rows, by name: 'count(*), avg(fare)'; also sum, min, max
    ///
    /// count(x) counts values that are not null; all others leave nulls out. With --where, or of find, they are of the rows that match. Of objects of a
    /// Ceph that has the object class, they are computed there.
    #[arg(long, value_name = "LIST", value_parser = parse_aggregates, conflicts_with_all = ["columns", "columns_file", "sample"], help_heading = "Rows and columns")]
    aggregate: Option<Aggregates>,

    /// Columns by whose values --aggregate makes groups: a row for each
    #[arg(long, value_name = "COLUMN,…", requires = "aggregate", help_heading = "Rows and columns")]
    group_by: Option<String>,

    #[command(flatten)]
    pub(crate) table: TableArgs,

    /// Handling of text that is not UTF-8
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Values")]
    invalid_utf8: InvalidUtf8,

    #[command(flatten)]
    pub(crate) threads: ThreadArgs,

    /// No progress bar, and no note of what a table leaves out
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

fn parse_aggregates(text: &str) -> std::result::Result<Aggregates, String> {
    Aggregates::parse(text).map_err(|error| error.message().to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Aligned columns, cut to the terminal's width
    Table,
    /// One JSON object per line
    Jsonl,
    /// Comma-separated values
    Csv,
}

impl RowsCommand {
    pub(crate) fn run(&self, interrupted: Interrupted) -> Outcome {
        let source = self.printing.table.open(&self.files, &interrupted)?;
        if !self.printing.quiet {
            say_notes(source.table());
        }
        self.printing.print(source, interrupted)
    }
}

impl Printing {
    pub(crate) fn print(&self, source: Arc<dyn Source>, interrupted: Interrupted) -> Outcome {
        let source = match &self.aggregate {
            Some(aggregates) => {
                let groups = self.group_by.as_deref().map(ColumnPath::parse_list).transpose();
                let groups = groups.map_err(|error| error.with(Detail::Option("group_by")))?;
                let made = aggregate(&source, &aggregates.clone().by(groups.unwrap_or_default()))?;
                if !self.quiet {
                    say_more_notes(made.table(), source.table());
                }
                made
            }
            None => source,
        };
        let source = match self.sample {
            // Hashers are made with numbers at random.
            Some(rows) => {
                sample(&source, rows, self.seed.unwrap_or_else(|| RandomState::new().hash_one(())))?
            }
            None => offset(&source, self.offset),
        };
        match self.format {
            Format::Table => self.print_table(source, interrupted),
            Format::Jsonl => self.print_lines(&source, text::Format::JsonLines, &interrupted),
            Format::Csv => self.print_lines(&source, text::Format::Csv, &interrupted),
        }
    }

    /// Prints lines, as `copy` writes them; but nested columns of CSV are JSON.
    fn print_lines(
        &self,
        source: &Arc<dyn Source>,
        format: text::Format,
        interrupted: &Interrupted,
    ) -> Outcome {
        let mut options = TextOutputOptions::default();
        options.invalid_utf8 = self.invalid_utf8.into();
        options.nested_as_json = true;
        options.limits = self.table.limits.limits();
        let mut lines = TextOutput::new(io::stdout(), format, options).named("standard output");
        let mut copying = CopyOptions::default();
        (copying.limit, copying.cancel) = (self.limit, interrupted.cancel());
        copying.threads = self.threads.get();
        let bar = Progress::of_copy(source.table(), &copying, false, self.quiet, Goes::ToStdout);
        let copied = copy(source, &mut lines, &copying, &mut |copied| bar.copied(copied));
        noted(Vec::new(), &copying.lost, self.quiet);
        copied.map(drop).map_err(|error| failure(&source.table().name, &error))
    }

    /// Prints a table for people.
    fn print_table(&self, source: Arc<dyn Source>, interrupted: Interrupted) -> Outcome {
        let table = source.table().clone();
        let limit = Some(self.limit.or(self.sample).unwrap_or(TABLE_ROWS));
        let (all, wanted) = (table.rows, rows_wanted(&table, limit));
        let columns = Columns::new(&table.schema, self.invalid_utf8.into(), &self.table.limits.limits());
        let columns = columns.map_err(|error| Failure::about(&table.name, &error))?;
        let names = table.schema.children(0).map(|node| table.schema.nodes()[node].name.clone()).collect();
        let is_of_nothing = columns.is_empty();
        let mut printer = TablePrinter::new(columns, names, self.invalid_utf8.into());
        let mut options = ReadingOptions::default();
        (options.threads, options.cancel) = (self.threads.get(), interrupted.cancel());
        options.piece.limit = limit;
        let lost = options.piece.lost.clone();
        let mut reading = Reading::new(source, options)?;
        let mut output = Output::new(interrupted);
        let mut done = 0;
        loop {
            let printed = match reading.next_batch() {
                Ok(None) => break,
                Ok(Some((piece, batch))) => {
                    done += u64_of(batch.rows);
                    printer.batch(reading.name_of(piece), &batch, &mut output)
                }
                Err(error) => Err(error.into()),
            };
            if printed.is_err() {
                printer.end_block(output.text());
                output.flush()?;
                return printed;
            }
        }
        printer.end(output.text());
        let is_terminal = io::stdout().is_terminal();
        let left_out = match all {
            _ if is_of_nothing => {
                let at_least = if all.is_none() && done == wanted { "at least " } else { "" };
                let rows = all.unwrap_or(done);
                format!("{at_least}{} without columns", plural(rows, "row"))
            }
            // A program that says how many rows it wants needs no note of it.
            _ if self.sample.is_some() || (!is_terminal && self.limit.is_some()) => String::new(),
            Some(all) if done < all => {
                format!("{} of {}; --limit N shows more", thousands(done), plural(all, "row"))
            }
            // Of text nobody knows how much more there is.
            None if done == wanted && done == 1 => "the first row; --limit N shows more".to_string(),
            None if done == wanted => format!("the first {} rows; --limit N shows more", thousands(done)),
            _ => String::new(),
        };
        let notice = notice(left_out, printer.columns_left_out);
        if !notice.is_empty() && is_terminal {
            output.text().extend_from_slice(format!("({notice})\n").as_bytes());
        }
        output.flush()?;
        if !notice.is_empty() && !is_terminal && !self.quiet {
            say("marquetry", &format!("note: {notice}"));
        }
        noted(Vec::new(), &lost, self.quiet);
        Ok(())
    }
}

/// What a table left out, of rows and of columns.
fn notice(mut line: String, columns_left_out: usize) -> String {
    if columns_left_out > 0 {
        let columns = plural(columns_left_out, "more column");
        let separator = if line.is_empty() { "" } else { "; " };
        line.push_str(&format!("{separator}{columns} did not fit, --columns chooses"));
    }
    line
}

/// The failure that an error is which came up while values were printed.
fn failure(file: &str, error: &Error) -> Failure {
    // A value's, not those of a file of text.
    if error.detail() != Some(Detail::NotUtf8) || error.kind() != ErrorKind::Conversion {
        return Failure::about(file, error);
    }
    let place = error.place();
    let file = place.object.as_deref().unwrap_or(file);
    Failure::refused(format!(
        "{file}: the text is not UTF-8; --invalid-utf8 replace or blob prints it (column {}, row {})",
        place.column.as_deref().unwrap_or_default(),
        place.row.unwrap_or_default()
    ))
}

/// The text of single values of one column, as JSON; bytes that are no text as what they are.
pub(crate) struct ColumnText(Columns);

impl ColumnText {
    /// Of a column, by its number in the table.
    pub(crate) fn new(table: &SourceTable, column: usize, limits: &Limits) -> Outcome<ColumnText> {
        let failed = |error: Error| Failure::about(&table.name, &error);
        let mut only = Projection::new(Arc::clone(&table.schema));
        if let Some(node) = table.schema.children(0).nth(column) {
            // It is the only one.
            let _ = only.add_column(node);
        }
        let schema = only.plan().at_once().map_err(failed)?;
        Ok(ColumnText(Columns::new(&schema.into(), print::InvalidUtf8::Bytes, limits).map_err(failed)?))
    }

    /// The column's value in a batch of one row, which has the leaves of the column alone.
    pub(crate) fn of(&mut self, file: &str, row: &Batch) -> Outcome<String> {
        let mut text = Vec::new();
        let printed = self.0.visit(row, |columns| columns.json(0, 0, &mut text));
        printed.flatten().map_err(|error| failure(file, &error))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

struct TablePrinter {
    columns: Columns,
    names: Vec<String>,
    invalid_utf8: print::InvalidUtf8,
    block: Block,
    columns_left_out: usize,
}

/// Rows that are laid out together.
#[derive(Default)]
struct Block {
    rows: Vec<Vec<Cell>>,
    /// Printed so far.
    blocks: usize,
    scratch: Vec<u8>,
}

/// A cell of a table.
#[derive(Default)]
struct Cell {
    text: String,
    /// Bytes as the text that they are, if they can be read as one.
    readable: Option<String>,
    /// Numbers stand at the right.
    is_number: bool,
    /// Dates and the like are not cut.
    is_whole: bool,
    is_null: bool,
}

impl TablePrinter {
    fn new(columns: Columns, names: Vec<String>, invalid_utf8: print::InvalidUtf8) -> TablePrinter {
        TablePrinter { columns, names, invalid_utf8, block: Block::default(), columns_left_out: 0 }
    }

    fn batch(&mut self, file: &str, batch: &Batch, output: &mut Output) -> Outcome {
        let TablePrinter { columns, names, invalid_utf8, block, columns_left_out } = self;
        let visited = columns.visit(batch, |columns| -> Outcome {
            for row in 0..batch.rows {
                let cells = block.cells(columns, row, *invalid_utf8);
                block.rows.push(cells.map_err(|error| failure(file, &error))?);
                if block.rows.len() == TABLE_BLOCK_ROWS {
                    *columns_left_out = block.print(names, output.text());
                }
                output.end_unit()?;
            }
            Ok(())
        });
        visited.map_err(|error| failure(file, &error))?
    }

    /// Prints the rows that were gathered, if there are any.
    fn end_block(&mut self, out: &mut Vec<u8>) {
        if !self.block.rows.is_empty() {
            self.columns_left_out = self.block.print(&self.names, out);
        }
    }

    /// Prints what is left; a table without rows has its titles.
    fn end(&mut self, out: &mut Vec<u8>) {
        if !self.block.rows.is_empty() || self.block.blocks == 0 {
            self.columns_left_out = self.block.print(&self.names, out);
        }
    }
}

/// Bytes without a logical type that are UTF-8, all of whose characters can be seen: in quotes, as predicates take them.
fn readable(meaning: Meaning, value: Value<'_>) -> Option<String> {
    let (Meaning::Bytes, Value::Bytes(bytes)) = (meaning, value) else { return None };
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.contains(is_harmful))?;
    Some(format!("'{}'", text.replace('\'', "''")))
}

impl Block {
    /// A row.
    fn cells(
        &mut self,
        columns: &mut BatchColumns<'_>,
        row: usize,
        invalid_utf8: print::InvalidUtf8,
    ) -> Result<Vec<Cell>> {
        (0..columns.len()).map(|column| self.cell(columns, row, column, invalid_utf8)).collect()
    }

    fn cell(
        &mut self,
        columns: &mut BatchColumns<'_>,
        row: usize,
        column: usize,
        invalid_utf8: print::InvalidUtf8,
    ) -> Result<Cell> {
        self.scratch.clear();
        match columns.cell(row, column)? {
            print::Cell::Null => Ok(Cell { text: "null".to_string(), is_null: true, ..Cell::default() }),
            print::Cell::Value(meaning, value) => {
                let (text, is_whole) = match print::value(&mut self.scratch, meaning, value) {
                    Shown::Text(text) => (printable(text), false),
                    Shown::NotText(bytes) => {
                        (printable(&invalid_utf8.text(bytes).unwrap_or_default()), false)
                    }
                    Shown::Wkt => (String::from_utf8_lossy(&self.scratch).into_owned(), false),
                    Shown::Boolean | Shown::Number | Shown::Word => {
                        let text = String::from_utf8_lossy(&self.scratch);
                        let text = if meaning.is_time() { without_zeros(&text) } else { text.into_owned() };
                        (text, !matches!(meaning, Meaning::Boolean | Meaning::Bytes | Meaning::Bson))
                    }
                };
                let readable = readable(meaning, value);
                Ok(Cell { text, readable, is_number: meaning.is_number(), is_whole, ..Cell::default() })
            }
            print::Cell::Nested => {
                columns.json(row, column, &mut self.scratch)?;
                // What is harmful is escaped in it already.
                let text = String::from_utf8_lossy(&self.scratch).into_owned();
                Ok(Cell { text, ..Cell::default() })
            }
        }
    }

    /// Prints the rows as a table; says how many columns found no room.
    fn print(&mut self, names: &[String], out: &mut Vec<u8>) -> usize {
        self.blocks += 1;
        if names.is_empty() {
            self.rows.clear();
            return 0;
        }
        // Older files have text as bytes; but half a column as text and half of it as digits is neither.
        for at in 0..names.len() {
            if self.rows.iter().all(|cells| cells[at].is_null || cells[at].readable.is_some()) {
                for cell in self.rows.iter_mut().map(|cells| &mut cells[at]) {
                    cell.text = cell.readable.take().unwrap_or_else(|| std::mem::take(&mut cell.text));
                }
            }
        }
        let all = |at: usize, of: fn(&Cell) -> bool| {
            self.rows.iter().all(|cells| cells[at].is_null || of(&cells[at]))
                && self.rows.iter().any(|cells| !cells[at].is_null)
        };
        let side = |at: usize| match (all(at, |cell| cell.is_number), all(at, |cell| cell.is_whole)) {
            (true, _) => Side::Right,
            (false, true) => Side::LeftWhole,
            (false, false) => Side::Left,
        };
        let titles = names.iter().enumerate().map(|(at, name)| (name.clone(), side(at)));
        let mut table = Table::new(titles.collect::<Vec<_>>());
        // A long table shows the titles again, but to people only.
        table.is_titled = self.blocks == 1 || io::stdout().is_terminal();
        for cells in self.rows.drain(..) {
            table.push(cells.into_iter().map(|cell| cell.text).collect());
        }
        table.print(Terminal::of_stdout(), out)
    }
}
