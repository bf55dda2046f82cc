//! Rows as text, to any writer.

use std::io::Write;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Limits, Result};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::print::{Csv, InvalidUtf8, JsonLines, Tsv};
use marquetry_parquet::scalar::{float_of_half, int96_nanos, int96_of_nanos};
use marquetry_parquet::schema::{Meaning, Schema};

use super::Format;
use super::fit;
use super::printing::{Print, Printing, Taken};
use crate::gather::Gather;
use crate::stage::{Guard, Stage};
use crate::{Destination, Table, Wants, Written};

/// How rows are written as text.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TextOutputOptions {
    /// What becomes of text that is not UTF-8.
    pub invalid_utf8: InvalidUtf8,
    /// Write nested columns as JSON in CSV and TSV, which have no form of their own for them. Otherwise such columns are
    /// an error.
    pub nested_as_json: bool,
    /// What may be large in nested columns.
    pub limits: Limits,
    /// Of a file: replace, and so delete, what is there.
    pub overwrite: bool,
}

/// A table as CSV, TSV or JSON lines, to any writer: standard output, a `Vec<u8>`, a socket. For files there is
/// [`NewTextFile`](super::NewTextFile).
///
/// Values are written as [`marquetry_parquet::print`] has them, so that [`TextFile`](super::TextFile) reads them back:
///
/// * CSV has a line of names, and quotes where they are needed; null is nothing, and empty text is `""`;
/// * TSV has a line of names and no quotes: text with a tab or a line end, and empty text, are errors;
/// * JSON lines have all columns in each line. Without rows there is no line, and a reader must be given the columns.
///
/// Names of columns that look like values (`2024`, `true`) read as names only with [`Header::Yes`](super::Header): other
/// writers put everything in quotes, so that quotes around such a name would tell readers nothing.
///
/// It is written in pieces of some 128 KiB, each of which ends with a complete line; memory is bounded, whatever the
/// number of rows. Text cannot be taken back: after an error the output is the lines of all rows before the faulty one;
/// if dropped before it is finished, those of some rows, from the first.
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry_parquet::batch::Batch;
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
/// use marquetry_tables::text::{Format, TextOutput, TextOutputOptions};
/// use marquetry_tables::{Destination, Table};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let mut text = Vec::new();
/// let mut trips = TextOutput::new(&mut text, Format::Csv, TextOutputOptions::default());
///
/// // What `copy` does with the table of its source, and then with its rows:
/// let schema = Schema::of_fields(&[FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None))])?;
/// trips.begin(&Table::new("trips.parquet", Arc::new(schema)))?;
/// trips.write(Batch::of_values([vec![1_i64, 2].into()])?)?;
/// trips.finish()?;
/// drop(trips);
/// assert_eq!(text, b"id\n1\n2\n");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TextOutput<W: Write> {
    name: String,
    guard: Guard,
    lines: Lines<W>,
}

impl<W: Write> TextOutput<W> {
    /// Text of this format. Nothing is written yet.
    pub fn new(writer: W, format: Format, options: TextOutputOptions) -> TextOutput<W> {
        let lines = Lines::new(writer, format, options);
        TextOutput { name: "text".to_owned(), guard: Guard::default(), lines }
    }

    /// The writer's name in messages: `standard output`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> TextOutput<W> {
        self.name = name.into();
        self
    }
}

impl<W: Write + Send> Destination for TextOutput<W> {
    fn name(&self) -> &str {
        &self.name
    }

    fn set_threads(&mut self, threads: usize) {
        self.lines.set_threads(threads);
    }

    fn rows_from(&mut self, object: &str) {
        self.lines.rows_from(object);
    }

    /// Writes the names of the columns, if the format has a line for them.
    ///
    /// # Errors
    ///
    /// About the source, everything that the format cannot hold, at once: `Conversion`, or `Unsupported` for what JSON
    /// has no form for. Nothing is written then.
    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.guard.expect(Stage::New)?;
        let begun = self.lines.begin(table);
        self.guard.then(Stage::Begun, begun)
    }

    /// Writes the rows' lines.
    ///
    /// # Errors
    ///
    /// `Conversion`, with row and column, for text that is not UTF-8 or that the format cannot hold; the lines of the
    /// rows before it are written. `Io` if the writer fails, with its [`std::io::Error`] as the
    /// [cause](std::error::Error::source).
    fn write(&mut self, batch: Batch) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let written = self.lines.write(batch);
        self.guard.then(Stage::Begun, written)
    }

    fn drain(&mut self) -> Result<()> {
        self.lines.drain()
    }

    fn finish(&mut self) -> Result<Written> {
        self.guard.expect(Stage::Begun)?;
        let flushed = self.lines.drain().and_then(|()| self.lines.out.flush());
        self.guard.then(Stage::Finished, flushed)?;
        Ok(self.lines.written)
    }

    /// The rows and bytes of the lines so far, of which the last may not be written yet.
    fn progress(&self) -> Option<Written> {
        self.lines.printer.is_some().then_some(self.lines.written)
    }

    fn commit(&mut self) -> Result<()> {
        self.guard.expect(Stage::Finished)?;
        self.guard.then(Stage::Committed, Ok(()))
    }
}

/// Rows as lines, and where they go.
#[derive(Debug)]
pub(super) struct Lines<W: Write> {
    format: Format,
    options: TextOutputOptions,
    /// `None` before `begin`. It prints on the caller's thread, until there is enough to do for several.
    printer: Option<Printer>,
    threads: usize,
    printing: Option<Printing>,
    /// The object that the rows come from.
    subject: Arc<str>,
    schema: Option<Arc<Schema>>,
    out: Gather<W>,
    written: Written,
    /// A leaf of which some NaNs or INT96 have other bits than those that a text is read as.
    odd_bits: Option<usize>,
    /// Of the leaves.
    meanings: Vec<Meaning>,
}

/// Bytes of lines that are printed between two looks at how much was gathered.
const LINES_BYTES: usize = 64 << 10;
/// Batches of fewer values than this are not worth another thread.
const FEW_VALUES: usize = 8 << 10;

impl<W: Write> Lines<W> {
    pub(super) fn new(writer: W, format: Format, options: TextOutputOptions) -> Lines<W> {
        Lines {
            format,
            options,
            printer: None,
            threads: 1,
            printing: None,
            subject: Arc::from(""),
            schema: None,
            out: Gather::new(writer),
            written: Written::default(),
            odd_bits: None,
            meanings: Vec::new(),
        }
    }

    /// Prints on so many threads. The text is the same.
    pub(super) fn set_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// Says where the next rows come from.
    pub(super) fn rows_from(&mut self, object: &str) {
        self.subject = Arc::from(object);
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.written.rows
    }

    /// A leaf of which some NaNs or INT96 have other bits than those that a text is read as.
    pub(super) fn odd_bits(&self) -> Option<usize> {
        self.odd_bits
    }

    /// Writes what was gathered, and returns the writer.
    pub(super) fn into_writer(self) -> Result<W> {
        self.out.into_writer()
    }

    pub(super) fn begin(&mut self, table: &Table) -> Result<Wants> {
        let TextOutputOptions { invalid_utf8, nested_as_json, limits, .. } = &self.options;
        fit::check(table, self.format, *nested_as_json)?;
        let (schema, out) = (&table.schema, self.out.text());
        self.meanings = schema.leaves().iter().map(|leaf| schema.meaning_of(leaf)).collect();
        let printer = Printer::new(self.format, schema, *invalid_utf8, limits)
            .map_err(|error| error.at(|place| place.object = Some(table.name.clone())))?;
        printer.header(out);
        self.schema = Some(Arc::clone(schema));
        self.written.bytes += u64_of(self.out.text().len());
        self.printer = Some(printer);
        // What a dictionary holds is made into text once.
        Ok(Wants { keep_dictionaries: true, ..Wants::default() })
    }

    pub(super) fn write(&mut self, batch: Batch) -> Result<()> {
        let Some(printer) = &mut self.printer else {
            return Err(Error::internal("rows for text that has not begun"));
        };
        let rows = u64_of(batch.rows);
        if self.odd_bits.is_none() {
            let mut columns = self.meanings.iter().zip(&batch.columns);
            let odd = columns.find(|(meaning, column)| has_odd_bits(**meaning, &column.values));
            self.odd_bits = odd.map(|(_, column)| column.leaf);
        }
        let is_large = batch.rows.saturating_mul(batch.columns.len()) >= FEW_VALUES;
        if self.printing.is_some() || (self.threads > 1 && is_large) {
            return self.hand_over(batch);
        }
        printer.feed(batch)?;
        loop {
            let text = self.out.text();
            let before = text.len();
            let is_done = printer.write(text, LINES_BYTES)?;
            self.written.bytes += u64_of(text.len() - before);
            self.out.end_unit()?;
            if is_done {
                self.written.rows += rows;
                return Ok(());
            }
        }
    }

    /// Writes the lines of all rows that were taken.
    pub(super) fn drain(&mut self) -> Result<()> {
        while self.take_lines()? {}
        Ok(())
    }

    /// Has a batch printed by one of the threads.
    fn hand_over(&mut self, batch: Batch) -> Result<()> {
        if self.printing.is_none() {
            let schema = self.schema.as_ref().ok_or_else(|| Error::internal("lines without a schema"))?;
            let TextOutputOptions { invalid_utf8, limits, .. } = &self.options;
            let printers =
                (0..self.threads).map(|_| Printer::new(self.format, schema, *invalid_utf8, limits));
            self.printing = Some(Printing::start(printers.collect::<Result<Vec<_>>>()?)?);
        }
        while self.printing.as_ref().is_some_and(Printing::is_full) {
            self.take_lines()?;
        }
        let subject = Arc::clone(&self.subject);
        self.printing.as_mut().map_or(Ok(()), |printing| printing.put(batch, &subject))
    }

    /// Writes the next lines that threads have printed. False if there are none left.
    fn take_lines(&mut self) -> Result<bool> {
        let Some(printing) = &mut self.printing else { return Ok(false) };
        match printing.take()? {
            Taken::Lines(lines) => {
                self.written.bytes += u64_of(lines.len());
                self.out.units(&lines)?;
                printing.reuse(lines);
            }
            Taken::End(rows) => self.written.rows += u64_of(rows),
            Taken::Nothing => return Ok(false),
        }
        Ok(true)
    }
}

/// The engine's machine for a format.
#[derive(Debug)]
enum Printer {
    Csv(Box<Csv>),
    Tsv(Box<Tsv>),
    Json(Box<JsonLines>),
}

impl Printer {
    fn new(
        format: Format,
        schema: &Arc<Schema>,
        invalid_utf8: InvalidUtf8,
        limits: &Limits,
    ) -> Result<Printer> {
        match format {
            Format::Csv => Csv::new(schema, invalid_utf8, limits).map(|csv| Printer::Csv(Box::new(csv))),
            Format::Tsv => Tsv::new(schema, invalid_utf8, limits).map(|tsv| Printer::Tsv(Box::new(tsv))),
            Format::JsonLines => {
                JsonLines::new(schema, invalid_utf8, limits).map(|lines| Printer::Json(Box::new(lines)))
            }
            other => Err(Error::unsupported(format!("writing text as {other:?}"))),
        }
    }

    /// Appends the line of names, if the format has one.
    fn header(&self, out: &mut Vec<u8>) {
        match self {
            Printer::Csv(csv) => csv.header(out),
            Printer::Tsv(tsv) => tsv.header(out),
            Printer::Json(_) => {}
        }
    }
}

impl Print for Printer {
    fn feed(&mut self, batch: Batch) -> Result<()> {
        match self {
            Printer::Csv(lines) => lines.feed(batch),
            Printer::Tsv(lines) => lines.feed(batch),
            Printer::Json(lines) => lines.feed(batch),
        }
    }

    fn write(&mut self, out: &mut Vec<u8>, bytes: usize) -> Result<bool> {
        match self {
            Printer::Csv(lines) => lines.write(out, bytes),
            Printer::Tsv(lines) => lines.write(out, bytes),
            Printer::Json(lines) => lines.write(out, bytes),
        }
    }
}

/// All NaNs are the same word, and an INT96 is a point in time, however it is stored.
fn has_odd_bits(meaning: Meaning, values: &Values) -> bool {
    match values {
        Values::Float(values) => values.iter().any(|it| it.is_nan() && it.to_bits() != f32::NAN.to_bits()),
        Values::Double(values) => values.iter().any(|it| it.is_nan() && it.to_bits() != f64::NAN.to_bits()),
        Values::FixedLenByteArray(values) if meaning == Meaning::Float16 => {
            let is_odd = |half: &[u8]| match half {
                [low, high] => {
                    float_of_half(u16::from_le_bytes([*low, *high])).is_nan() && [*low, *high] != HALF_NAN
                }
                _ => true,
            };
            (0..values.len()).any(|at| is_odd(values.get(at)))
        }
        Values::Int96(values) => {
            let usual = |it: &[u8]| Some(int96_of_nanos(int96_nanos(it.try_into().ok()?)).as_ref()? == it);
            (0..values.len()).any(|at| usual(values.get(at)) != Some(true) && values.get(at) != [0; 12])
        }
        Values::Dictionary(_, dictionary) => has_odd_bits(meaning, dictionary),
        _ => false,
    }
}

/// The binary16 that NaN is read as.
const HALF_NAN: [u8; 2] = 0x7e00_u16.to_le_bytes();
