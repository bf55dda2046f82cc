//! `marquetry rows`: the rows of files, for people and for other programs.

use std::ops::Range;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Limits};
use marquetry_parquet::batch::{Array, Assembler, Batch, ColumnBatch, Layout, Values};
use marquetry_parquet::schema::{NodeKind, Schema};
use marquetry_tables::{Reading, ReadingOptions, Source, Table as SourceTable};

use crate::args::InvalidUtf8;
use crate::calendar::without_zeros;
use crate::cells::{Cells, Memo};
use crate::failure::{Failure, Outcome};
use crate::json;
use crate::nested::{self, NestedColumn, Unprintable, View};
use crate::numbers::{plural, thousands};
use crate::output::{Interrupted, Output};
use crate::progress::{Goes, Progress};
use crate::table::{Side, Table, printable};
use crate::table_args::TableArgs;
use crate::terminal::Terminal;
use crate::value::{Meaning, Raw, Shown, hex};

/// Rows that a table shows unless told otherwise.
const TABLE_ROWS: u64 = 10;

/// Rows that a table lays out at a time, so that a long one takes no more memory than a short one.
const TABLE_BLOCK_ROWS: usize = 1000;

/// Print rows of Parquet files: as a table, as JSON lines, or as CSV
#[derive(Debug, Args)]
#[command(
    long_about = "Print rows of Parquet files: as a table for people, or as JSON lines or CSV for other programs.

Several files are printed as one table: see --union and --hive. A directory means all Parquet files below it \
(*.parquet, *.parq, *.pq), sorted by name, bytewise; names that begin with a dot or an underscore are skipped.",
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
  bytes              0x and hexadecimal digits
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
  marquetry rows --columns 'id,items.price' 'orders/year=2024/**/*.parquet'"
)]
pub(crate) struct RowsCommand {
    /// Parquet files, directories, patterns ('trips/year=*/**/*.parquet'), CSV or JSON lines
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    /// Maximum number of rows [default: 10 in a table, otherwise all]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Rows and columns")]
    limit: Option<u64>,

    #[command(flatten)]
    table: TableArgs,

    /// Handling of text that is not UTF-8
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Values")]
    invalid_utf8: InvalidUtf8,

    /// No progress bar
    #[arg(long, short)]
    quiet: bool,
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
        let source = self.table.open(&self.files, &interrupted)?;
        let table = source.table().clone();
        let mut fields = fields(&table, self.table.limits.limits())?;
        let limit = self.limit.or((self.format == Format::Table).then_some(TABLE_ROWS));
        let (all, wanted) = (table.rows, rows_wanted(&table, limit));
        let progress = Progress::new(wanted, self.quiet || self.format == Format::Table, Goes::ToStdout);
        let mut options = ReadingOptions::default();
        options.cancel = interrupted.cancel();
        options.piece.limit = limit;
        // What a dictionary holds is written as JSON once.
        options.piece.keep_dictionaries = self.format == Format::Jsonl;
        let mut reading = Reading::new(source, options)?;
        let mut output = Output::new(interrupted);
        let mut printer = Printer::new(self.format, &table, self.invalid_utf8);
        printer.start(output.text());
        let mut done = 0;
        loop {
            let printed = match reading.next() {
                Ok(None) => break,
                Ok(Some((piece, batch))) => {
                    done += u64_of(batch.rows);
                    printer.batch(reading.name_of(piece), &batch, &mut fields, &mut output)
                }
                Err(error) => Err(error.into()),
            };
            if printed.is_err() {
                printer.end_block(output.text());
                output.flush()?;
                return printed;
            }
            progress.update(done, output.bytes());
        }
        printer.end(output.text());
        if self.format == Format::Table {
            let left_out = match all {
                Some(all) if done < all => {
                    format!("{} of {} rows; --limit N shows more", thousands(done), thousands(all))
                }
                // Of text nobody knows how much more there is.
                None if done == wanted => format!("the first {} rows; --limit N shows more", thousands(done)),
                _ => String::new(),
            };
            notice(left_out, printer.columns_left_out, output.text());
        }
        output.flush()
    }
}

/// What a table left out, of rows and of columns.
fn notice(mut line: String, columns_left_out: usize, out: &mut Vec<u8>) {
    if columns_left_out > 0 {
        let columns = plural(columns_left_out, "more column");
        let separator = if line.is_empty() { "" } else { "; " };
        line.push_str(&format!("{separator}{columns} did not fit, --columns chooses"));
    }
    if !line.is_empty() {
        out.extend_from_slice(format!("({line})\n").as_bytes());
    }
}

/// The rows of a table that a limit leaves; as many as there may be, where nobody knows.
pub(crate) fn rows_wanted(table: &SourceTable, limit: Option<u64>) -> u64 {
    table.rows.unwrap_or(u64::MAX).min(limit.unwrap_or(u64::MAX))
}

/// The leaf of a child of the root that has one value or null a row. `None` for what is nested or repeated.
fn flat_leaf(schema: &Schema, node: usize) -> Option<usize> {
    match schema.nodes()[node].kind {
        NodeKind::Leaf { leaf } if schema.leaves()[leaf].is_flat() => Some(leaf),
        _ => None,
    }
}

/// A column of a file.
enum Field {
    Flat(Meaning, Memo),
    /// The leaves in a batch, which stand one after the other there as in the schema, and what makes an array of them.
    Nested(Range<usize>, Box<Assembler>),
}

fn fields(table: &SourceTable, limits: Limits) -> Outcome<Vec<Field>> {
    let schema = &table.schema;
    let columns = schema.children(0).count();
    let field = |node: usize| match flat_leaf(schema, node) {
        Some(leaf) => Ok(Field::Flat(Meaning::of(schema, &schema.leaves()[leaf]), Memo::of(columns))),
        None => {
            let shape = nested::shape(schema, node)?;
            let assembler = Assembler::new(schema, &shape, &limits)?;
            Ok(Field::Nested(shape.leaves, Box::new(assembler)))
        }
    };
    let failed = |error: Error| Failure::about(&table.name, &error);
    schema.children(0).map(|node| field(node).map_err(failed)).collect()
}

/// The text of single values, as JSON; bytes that are no text as what they are.
pub(crate) struct RowText {
    fields: Vec<Field>,
}

impl RowText {
    pub(crate) fn new(table: &SourceTable, limits: Limits) -> Outcome<RowText> {
        Ok(RowText { fields: fields(table, limits)? })
    }

    /// The value of a column in a row of a batch.
    pub(crate) fn of(
        &mut self,
        table: &SourceTable,
        file: &str,
        batch: &Batch,
        row: usize,
        column: usize,
    ) -> Outcome<String> {
        let only = batch.slice(row..row + 1);
        let arrays = arrays(file, &only, &mut self.fields)?;
        let views = views(&table.schema, file, &only, &arrays)?;
        let mut columns = columns(&only, &mut self.fields, &views);
        let printer = Printer::new(Format::Jsonl, table, InvalidUtf8::Blob);
        let mut text = Vec::new();
        let Some(found) = columns.get_mut(column) else {
            return Err(Failure::bug("a column that is not there"));
        };
        if let Err(why) = printer.jsonl_field(column, found, 0, &mut text) {
            return Err(printer.failure(file, only.first_row, column, why));
        }
        // What JSON has before a value: a brace or a comma, the name, a colon.
        let before = printer.json_keys[column].len();
        Ok(String::from_utf8_lossy(text.get(before..).unwrap_or_default()).into_owned())
    }
}

/// A column of a batch. Its values are asked for in the order of the rows.
enum Column<'a> {
    /// Values that stand one after the other need a cursor; spaced ones stand at their row.
    Flat {
        column: &'a ColumnBatch,
        meaning: Meaning,
        cursor: usize,
        /// Its values, or the dictionary's.
        cells: Cells<'a>,
        memo: &'a mut Memo,
    },
    Nested(Box<NestedColumn<'a>>),
}

/// The nested columns of a batch.
fn arrays(file: &str, batch: &Batch, fields: &mut [Field]) -> Outcome<Vec<Array>> {
    let mut arrays = Vec::new();
    let mut next = 0;
    for field in fields {
        let Field::Nested(leaves, assembler) = field else {
            next += 1;
            continue;
        };
        let columns = batch.columns.get(next..next + leaves.len()).unwrap_or_default();
        next += leaves.len();
        let column_of = |leaf: usize| columns.get(leaf.checked_sub(leaves.start)?);
        arrays.push(assembler.assemble(batch, &column_of).map_err(|error| Failure::about(file, &error))?);
    }
    Ok(arrays)
}

/// What is needed to print the nested columns.
fn views<'a>(schema: &'a Schema, file: &str, batch: &Batch, arrays: &'a [Array]) -> Outcome<Vec<View<'a>>> {
    let view = |array: &'a Array| {
        let view = View::new(schema, array);
        view.map_err(|error| nested_failure(schema, file, batch, array.node, error))
    };
    arrays.iter().map(view).collect()
}

fn nested_failure(schema: &Schema, file: &str, batch: &Batch, node: usize, error: Error) -> Failure {
    Failure::about(
        file,
        &error.at(|place| {
            let name = || schema.path(node);
            place.column.get_or_insert_with(name);
            place.row_group.get_or_insert(u64_of(batch.row_group));
        }),
    )
}

fn columns<'a>(batch: &'a Batch, fields: &'a mut [Field], views: &'a [View<'a>]) -> Vec<Column<'a>> {
    let mut leaves = batch.columns.iter();
    let mut views = views.iter();
    let column = |field: &'a mut Field| match field {
        Field::Flat(meaning, memo) => leaves.next().map(|column| {
            let (meaning, values) = match &column.values {
                Values::Dictionary(_, dictionary) => {
                    memo.begin(dictionary);
                    (*meaning, &**dictionary)
                }
                values => (*meaning, values),
            };
            Column::Flat { column, meaning, cursor: 0, cells: Cells::new(values, meaning), memo }
        }),
        Field::Nested(below, _) => {
            if let Some(last) = below.len().checked_sub(1) {
                leaves.nth(last);
            }
            views.next().map(|view| Column::Nested(Box::new(NestedColumn::new(view))))
        }
    };
    fields.iter_mut().filter_map(column).collect()
}

/// A value that cannot be printed: its row in the batch, its column, and why.
type Wrong = (usize, usize, Unprintable);

/// Columns of a table that is printed column by column, some rows at a time: each of its values is a cache miss otherwise. With
/// fewer columns row by row is a seventh quicker.
const WIDE_COLUMNS: usize = 1000;

/// Rows of such a table that are printed together. With 8 each page of memory still was a miss of the translation buffer.
const LINES_TOGETHER: usize = 64;

struct Printer<'a> {
    format: Format,
    schema: &'a Schema,
    names: Vec<&'a str>,
    /// What stands before each value: `{"name":`.
    json_keys: Vec<json::Piece>,
    invalid_utf8: InvalidUtf8,
    scratch: Vec<u8>,
    /// Of rows that are printed together; kept for their room.
    lines: Vec<Vec<u8>>,
    block: Vec<Vec<Cell>>,
    blocks: usize,
    columns_left_out: usize,
}

/// A cell of a table.
struct Cell {
    text: String,
    /// Numbers stand at the right.
    is_number: bool,
    /// Dates and the like are not cut.
    is_whole: bool,
    is_null: bool,
}

impl<'a> Printer<'a> {
    fn new(format: Format, table: &'a SourceTable, invalid_utf8: InvalidUtf8) -> Printer<'a> {
        let schema = &*table.schema;
        let names: Vec<&str> = schema.children(0).map(|node| schema.nodes()[node].name.as_str()).collect();
        Printer {
            format,
            schema,
            json_keys: names.iter().enumerate().map(|(at, name)| json::field(at, name)).collect(),
            names,
            invalid_utf8,
            scratch: Vec::new(),
            lines: Vec::new(),
            block: Vec::new(),
            blocks: 0,
            columns_left_out: 0,
        }
    }

    /// CSV's header line.
    fn start(&self, out: &mut Vec<u8>) {
        if self.format != Format::Csv {
            return;
        }
        for (at, name) in self.names.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            csv_text(out, name);
        }
        out.push(b'\n');
    }

    fn batch(&mut self, file: &str, batch: &Batch, fields: &mut [Field], output: &mut Output) -> Outcome {
        let arrays = arrays(file, batch, fields)?;
        let views = views(self.schema, file, batch, &arrays)?;
        let mut columns = columns(batch, fields, &views);
        let mut next = 0;
        while next < batch.rows {
            let rows = next..batch.rows.min(next + LINES_TOGETHER);
            next = rows.end;
            let printed = match self.format {
                Format::Table => self.table_rows(rows, &mut columns, output),
                Format::Jsonl | Format::Csv if columns.len() < WIDE_COLUMNS => {
                    self.lines(rows, &mut columns, output)
                }
                Format::Jsonl | Format::Csv => self.wide_lines(rows, &mut columns, output),
            };
            if let Some((row, column, why)) = printed? {
                return Err(self.failure(file, batch.first_row + u64_of(row), column, why));
            }
        }
        Ok(())
    }

    /// A value that cannot be printed.
    fn failure(&self, file: &str, row: u64, column: usize, why: Unprintable) -> Failure {
        let name = self.names[column];
        match why {
            Unprintable::NotText(node) => {
                let column = node.map_or_else(|| name.to_string(), |node| self.schema.path(node));
                Failure::refused(format!(
                    "{}: the text is not UTF-8; --invalid-utf8 replace or blob prints it (column {column}, row {row})",
                    file
                ))
            }
            Unprintable::Engine(error) => Failure::about(
                file,
                &error.at(|place| {
                    place.column.get_or_insert_with(|| name.to_string());
                    place.row = Some(row);
                }),
            ),
        }
    }

    /// Prints rows as lines, up to the first that cannot be printed.
    fn lines(
        &self,
        rows: Range<usize>,
        columns: &mut [Column<'_>],
        output: &mut Output,
    ) -> Outcome<Option<Wrong>> {
        for row in rows {
            let out = output.text();
            let start = out.len();
            for (at, column) in columns.iter_mut().enumerate() {
                if let Err(why) = self.field(at, column, row, out) {
                    out.truncate(start);
                    return Ok(Some((row, at, why)));
                }
            }
            self.end_line(out);
            output.end_unit()?;
        }
        Ok(None)
    }

    /// The same for a wide table, column by column, so that what a column needs is at hand.
    fn wide_lines(
        &mut self,
        rows: Range<usize>,
        columns: &mut [Column<'_>],
        output: &mut Output,
    ) -> Outcome<Option<Wrong>> {
        let mut lines = std::mem::take(&mut self.lines);
        lines.resize_with(LINES_TOGETHER, Vec::new);
        lines.iter_mut().for_each(Vec::clear);
        let mut wrong: Option<Wrong> = None;
        for (at, column) in columns.iter_mut().enumerate() {
            for (row, line) in rows.clone().zip(&mut lines) {
                if let Err(why) = self.field(at, column, row, line)
                    && wrong.as_ref().is_none_or(|(first, ..)| row < *first)
                {
                    wrong = Some((row, at, why));
                }
            }
        }
        let whole = wrong.as_ref().map_or(rows.len(), |(row, ..)| row - rows.start);
        for line in &lines[..whole] {
            output.text().extend_from_slice(line);
            self.end_line(output.text());
            output.end_unit()?;
        }
        self.lines = lines;
        Ok(wrong)
    }

    #[inline]
    fn field(
        &self,
        at: usize,
        column: &mut Column<'_>,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Unprintable> {
        match self.format {
            Format::Jsonl => self.jsonl_field(at, column, row, out),
            _ => self.csv_field(at, column, row, out),
        }
    }

    fn end_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.format == Format::Jsonl { b"}\n" } else { b"\n" });
    }

    /// As [`Printer::field`].
    fn jsonl_field(
        &self,
        at: usize,
        column: &mut Column<'_>,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Unprintable> {
        let before = &self.json_keys[at];
        match column {
            Column::Flat { column, cursor, cells, memo, .. } => match place_of(column, row, cursor) {
                Some(place) => {
                    let written = match &column.values {
                        Values::Dictionary(indices, _) => indices
                            .get(place)
                            .and_then(|&index| memo.write(cells, index, before, self.invalid_utf8, out)),
                        _ => {
                            before.write(out);
                            cells.write(place, self.invalid_utf8, out)
                        }
                    };
                    written.ok_or(Unprintable::NotText(None))
                }
                None => {
                    before.write(out);
                    out.extend_from_slice(b"null");
                    Ok(())
                }
            },
            Column::Nested(column) => {
                before.write(out);
                column.write(row, self.invalid_utf8, out)
            }
        }
    }

    /// As [`Printer::field`]. A null is nothing.
    fn csv_field(
        &self,
        at: usize,
        column: &mut Column<'_>,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Unprintable> {
        if at > 0 {
            out.push(b',');
        }
        match column {
            Column::Flat { column, meaning, cursor, .. } => {
                let Some(raw) = value_at(column, row, cursor) else { return Ok(()) };
                let start = out.len();
                match meaning.show(raw, out) {
                    Shown::Boolean | Shown::Number | Shown::Word => {}
                    Shown::Wkt if out[start..].contains(&b',') => {
                        out.insert(start, b'"');
                        out.push(b'"');
                    }
                    Shown::Wkt => {}
                    Shown::Text(text) => csv_text(out, text),
                    Shown::NotText(bytes) => {
                        csv_text(out, &self.invalid_utf8.text(bytes).ok_or(Unprintable::NotText(None))?);
                    }
                }
            }
            Column::Nested(column) if column.is_null(row) => {}
            Column::Nested(column) => {
                let mut json = Vec::new();
                column.write(row, self.invalid_utf8, &mut json)?;
                csv_text(out, &String::from_utf8_lossy(&json));
            }
        }
        Ok(())
    }

    /// As [`Printer::lines`], into the table.
    fn table_rows(
        &mut self,
        rows: Range<usize>,
        columns: &mut [Column<'_>],
        output: &mut Output,
    ) -> Outcome<Option<Wrong>> {
        for row in rows {
            let mut cells = Vec::with_capacity(columns.len());
            for (at, column) in columns.iter_mut().enumerate() {
                match self.cell(column, row) {
                    Ok(cell) => cells.push(cell),
                    Err(why) => return Ok(Some((row, at, why))),
                }
            }
            self.block.push(cells);
            if self.block.len() == TABLE_BLOCK_ROWS {
                self.end_block(output.text());
            }
            output.end_unit()?;
        }
        Ok(None)
    }

    fn cell(&mut self, column: &mut Column<'_>, row: usize) -> Result<Cell, Unprintable> {
        let null = || Cell { text: "null".to_string(), is_number: false, is_whole: false, is_null: true };
        self.scratch.clear();
        match column {
            Column::Flat { column, meaning, cursor, .. } => {
                let Some(raw) = value_at(column, row, cursor) else { return Ok(null()) };
                let is_number = meaning.is_number(raw);
                let (text, is_whole) = match meaning.show(raw, &mut self.scratch) {
                    Shown::Text(text) => (printable(text), false),
                    Shown::NotText(bytes) => {
                        let text = self.invalid_utf8.text(bytes).ok_or(Unprintable::NotText(None))?;
                        (printable(&text), false)
                    }
                    Shown::Wkt => (String::from_utf8_lossy(&self.scratch).into_owned(), false),
                    Shown::Boolean | Shown::Number | Shown::Word => {
                        let text = String::from_utf8_lossy(&self.scratch);
                        let text = if meaning.is_time() { without_zeros(&text) } else { text.into_owned() };
                        (text, *meaning != Meaning::Plain || is_number)
                    }
                };
                Ok(Cell { text, is_number, is_whole, is_null: false })
            }
            Column::Nested(column) if column.is_null(row) => Ok(null()),
            Column::Nested(column) => {
                column.write(row, self.invalid_utf8, &mut self.scratch)?;
                // What is harmful is escaped in it already.
                let text = String::from_utf8_lossy(&self.scratch).into_owned();
                Ok(Cell { text, is_number: false, is_whole: false, is_null: false })
            }
        }
    }

    /// Prints the rows of a table that were gathered, if there are any.
    fn end_block(&mut self, out: &mut Vec<u8>) {
        if !self.block.is_empty() {
            self.print_block(out);
        }
    }

    /// Prints what is left; a table without rows has its titles.
    fn end(&mut self, out: &mut Vec<u8>) {
        if !self.block.is_empty() || (self.format == Format::Table && self.blocks == 0) {
            self.print_block(out);
        }
    }

    fn print_block(&mut self, out: &mut Vec<u8>) {
        self.blocks += 1;
        let all = |at: usize, of: fn(&Cell) -> bool| {
            self.block.iter().all(|cells| cells[at].is_null || of(&cells[at]))
                && self.block.iter().any(|cells| !cells[at].is_null)
        };
        let side = |at: usize| match (all(at, |cell| cell.is_number), all(at, |cell| cell.is_whole)) {
            (true, _) => Side::Right,
            (false, true) => Side::LeftWhole,
            (false, false) => Side::Left,
        };
        let titles = self.names.iter().enumerate().map(|(at, name)| (name.to_string(), side(at)));
        let mut table = Table::new(titles.collect::<Vec<_>>());
        for cells in self.block.drain(..) {
            table.push(cells.into_iter().map(|cell| cell.text).collect());
        }
        self.columns_left_out = table.print(Terminal::of_stdout(), out);
    }
}

/// The value of a row, or `None` for a null.
fn value_at<'a>(column: &'a ColumnBatch, row: usize, cursor: &mut usize) -> Option<Raw<'a>> {
    Raw::of_values(&column.values, place_of(column, row, cursor)?)
}

/// Where a row's value stands, or `None` for a null.
#[inline]
fn place_of(column: &ColumnBatch, row: usize, cursor: &mut usize) -> Option<usize> {
    if column.is_null(row) {
        return None;
    }
    let at = match column.layout {
        Layout::Spaced => row,
        Layout::Dense => *cursor,
    };
    *cursor += 1;
    Some(at)
}

/// A field: in quotes where it must be (RFC 4180), and where it is empty, which nothing else tells from null.
fn csv_text(out: &mut Vec<u8>, text: &str) {
    if !text.is_empty() && !text.contains([',', '"', '\r', '\n']) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for (at, part) in text.split('"').enumerate() {
        if at > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part.as_bytes());
    }
    out.push(b'"');
}

impl InvalidUtf8 {
    /// Such text as it is to be printed. `None` where that is an error.
    pub(crate) fn text(self, bytes: &[u8]) -> Option<String> {
        match self {
            InvalidUtf8::Error => None,
            InvalidUtf8::Replace => Some(String::from_utf8_lossy(bytes).into_owned()),
            InvalidUtf8::Blob => {
                let mut out = Vec::new();
                hex(&mut out, bytes);
                Some(String::from_utf8_lossy(&out).into_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_fields_are_quoted_where_they_must_be() {
        let csv = |text| {
            let mut out = Vec::new();
            csv_text(&mut out, text);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(csv("plain text"), "plain text");
        assert_eq!(csv(""), "\"\"");
        assert_eq!(csv("a,b"), "\"a,b\"");
        assert_eq!(csv("say \"hi\"\n"), "\"say \"\"hi\"\"\n\"");
    }

    /// Wide tables are printed another way; the lines are the same, and so is the first that cannot be printed.
    #[test]
    fn wide_tables_have_the_same_lines() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        for (name, wanted) in [
            ("types.parquet", None),
            ("many.parquet", None),
            ("nested.parquet", None),
            ("bad_text.parquet", Some(2)),
        ] {
            let interrupted = Interrupted::listen().unwrap();
            let args = TableArgs::default();
            let path = folder.join(name);
            let source = args.open(std::slice::from_ref(&path), &interrupted).unwrap();
            let (table, file) = (source.table().clone(), name);
            let mut fields = fields(&table, Limits::DEFAULT).unwrap();
            let mut reading = Reading::new(source, ReadingOptions::default()).unwrap();
            let (_, batch) = reading.next().unwrap().unwrap();
            let batch = batch.slice(0..batch.rows.min(1000));
            let arrays = arrays(file, &batch, &mut fields).unwrap();
            let views = views(&table.schema, file, &batch, &arrays).unwrap();
            for format in [Format::Csv, Format::Jsonl] {
                let mut printer = Printer::new(format, &table, InvalidUtf8::Error);
                for (from, to) in [(0, batch.rows.min(LINES_TOGETHER)), (1, 2), (0, 0)] {
                    let [mut one, mut other] = [(); 2].map(|()| Output::new(Interrupted::listen().unwrap()));
                    let lines =
                        printer.lines(from..to, &mut columns(&batch, &mut fields, &views), &mut one).unwrap();
                    let wide = printer
                        .wide_lines(from..to, &mut columns(&batch, &mut fields, &views), &mut other)
                        .unwrap();
                    assert_eq!(one.text(), other.text(), "{name}");
                    assert_eq!(lines, wide, "{name}");
                    assert_eq!(wide.map(|(row, ..)| row), wanted.filter(|row| *row < to), "{name}");
                }
            }
        }
    }
}
