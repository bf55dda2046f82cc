//! Batches as lines of text.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Range;

use marquetry_base::cast::usize_of;
use marquetry_base::{Detail, Error, ErrorKind, Failed, Limit, Limits, Result, print};

use super::InvalidUtf8;
use super::columns::{BatchColumns, Columns};
use super::form::{CommaSeparated, Form, Json, TabSeparated, Unprintable};
use crate::batch::{Array, Batch};
use crate::schema::Schema;

/// Rows as JSON lines: one object per row, with all columns in the schema's order.
///
/// 1. [`feed`](JsonLines::feed) a batch;
/// 2. [`write`](JsonLines::write) until it returns true: all rows of the batch are written; then feed the next.
///
/// Only complete lines are appended, even if the next row fails. Errors are sticky: a row cannot be skipped. A row of
/// about [`Limits::value_bytes`] or more, which readers of text refuse, is an error.
#[derive(Debug)]
pub struct JsonLines(Lines<Json>);

/// Rows as comma-separated values (RFC 4180, with `
/// ` as the line end). Text is quoted if it must be, and if it is empty, to distinguish it from null; nested columns
/// are JSON.
///
/// It is used like [`JsonLines`], after [`header`](Csv::header).
#[derive(Debug)]
pub struct Csv(Lines<CommaSeparated>);

/// Rows as tab-separated values, without quotes and escapes. So text with a tab or a line end, and empty text, which nothing would tell
/// from null, are errors; nested columns are JSON.
///
/// It is used as [`JsonLines`] is, after [`header`](Tsv::header).
#[derive(Debug)]
pub struct Tsv(Lines<TabSeparated>);

impl JsonLines {
    /// For batches of all leaves of `schema`.
    ///
    /// # Errors
    ///
    /// As [`Columns::new`].
    pub fn new(schema: &Arc<Schema>, invalid_utf8: InvalidUtf8, limits: &Limits) -> Result<JsonLines> {
        Ok(JsonLines(Lines::new(schema, invalid_utf8, limits)?))
    }

    /// Takes a batch.
    ///
    /// # Errors
    ///
    /// Those of [`Columns::visit`]; `Misuse` if rows of the last batch are left.
    pub fn feed(&mut self, batch: Batch) -> Result<()> {
        self.0.feed(batch)
    }

    /// Appends lines until there are about `bytes` more: at most one line beyond that, or [`LINES_TOGETHER`] in a table
    /// of more than [`WIDE_COLUMNS`] columns. True if no row of the batch is left.
    ///
    /// # Errors
    ///
    /// Those of [`BatchColumns::json`], after all lines before the row.
    pub fn write(&mut self, out: &mut Vec<u8>, bytes: usize) -> Result<bool> {
        self.0.write(out, bytes)
    }
}

impl Csv {
    /// For batches of all leaves of `schema`.
    ///
    /// # Errors
    ///
    /// As [`Columns::new`].
    pub fn new(schema: &Arc<Schema>, invalid_utf8: InvalidUtf8, limits: &Limits) -> Result<Csv> {
        Ok(Csv(Lines::new(schema, invalid_utf8, limits)?))
    }

    /// Appends the line of the columns' names.
    pub fn header(&self, out: &mut Vec<u8>) {
        let schema = &self.0.columns.schema;
        for (at, node) in schema.children(0).enumerate() {
            let name = &schema.nodes()[node].name;
            if at > 0 {
                out.push(b',');
            } else if name.starts_with(BYTE_ORDER_MARK) {
                // Without quotes, readers would take it for that of the file.
                out.extend([b"\"", name.replace('"', "\"\"").as_bytes(), b"\""].concat());
                continue;
            }
            print::csv_field(out, name);
        }
        out.push(b'\n');
    }

    /// As [`JsonLines::feed`].
    ///
    /// # Errors
    ///
    /// Those of [`JsonLines::feed`].
    pub fn feed(&mut self, batch: Batch) -> Result<()> {
        self.0.feed(batch)
    }

    /// As [`JsonLines::write`].
    ///
    /// # Errors
    ///
    /// Those of [`JsonLines::write`].
    pub fn write(&mut self, out: &mut Vec<u8>, bytes: usize) -> Result<bool> {
        self.0.write(out, bytes)
    }
}

impl Tsv {
    /// For batches of all leaves of `schema`.
    ///
    /// # Errors
    ///
    /// As [`Columns::new`]; `Conversion` for names of columns that no line of TSV holds: with tabs or line ends, a first one
    /// that begins with a byte order mark, or a single one that is empty.
    pub fn new(schema: &Arc<Schema>, invalid_utf8: InvalidUtf8, limits: &Limits) -> Result<Tsv> {
        let count = schema.children(0).count();
        for (at, node) in schema.children(0).enumerate() {
            let name = &schema.nodes()[node].name;
            let what = if name.contains(['\t', '\n', '\r']) {
                "TSV has no quotes, and this name has a tab or a line end"
            } else if at == 0 && name.starts_with(BYTE_ORDER_MARK) {
                "TSV has no quotes, and this name begins as a file's byte order mark does"
            } else if count == 1 && name.is_empty() {
                "TSV has no quotes, and the only column has no name: nothing would tell its line from none"
            } else {
                continue;
            };
            return Err(Error::conversion(what).at(|place| place.column = Some(name.clone())));
        }
        Ok(Tsv(Lines::new(schema, invalid_utf8, limits)?))
    }

    /// Appends the line of the columns' names.
    pub fn header(&self, out: &mut Vec<u8>) {
        let schema = &self.0.columns.schema;
        for (at, node) in schema.children(0).enumerate() {
            if at > 0 {
                out.push(b'\t');
            }
            out.extend_from_slice(schema.nodes()[node].name.as_bytes());
        }
        out.push(b'\n');
    }

    /// As [`JsonLines::feed`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn feed(&mut self, batch: Batch) -> Result<()> {
        self.0.feed(batch)
    }

    /// As [`JsonLines::write`].
    ///
    /// # Errors
    ///
    /// As there, and `Conversion` for text that TSV cannot hold.
    pub fn write(&mut self, out: &mut Vec<u8>, bytes: usize) -> Result<bool> {
        self.0.write(out, bytes)
    }
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A wider table is printed column by column, some rows at a time: otherwise each of its values is a cache miss. With
/// fewer columns, row by row is a seventh faster.
pub const WIDE_COLUMNS: usize = 1000;

/// Rows of such a table that are printed together. With only 8, each page of memory was still a miss in the TLB.
pub const LINES_TOGETHER: usize = 64;

#[derive(Debug)]
struct Lines<F> {
    columns: Columns,
    fed: Option<Fed>,
    /// The most bytes of a row.
    row_bytes: usize,
    /// Lines that are printed together; kept to reuse their memory.
    together: Vec<Vec<u8>>,
    failed: Failed,
    form: PhantomData<F>,
}

#[derive(Debug)]
struct Fed {
    batch: Batch,
    arrays: Vec<Array>,
    /// The next row.
    next: usize,
}

impl<F: Form> Lines<F> {
    fn new(schema: &Arc<Schema>, invalid_utf8: InvalidUtf8, limits: &Limits) -> Result<Lines<F>> {
        let columns = Columns::of_form::<F>(schema, invalid_utf8, limits)?;
        let row_bytes = usize_of(limits.value_bytes.saturating_sub(ROW_MARGIN_BYTES)).unwrap_or(usize::MAX);
        let (together, failed) = (Vec::new(), Failed::default());
        Ok(Lines { columns, fed: None, row_bytes, together, failed, form: PhantomData })
    }

    fn feed(&mut self, batch: Batch) -> Result<()> {
        self.failed.check()?;
        if self.fed.is_some() {
            return Err(Error::misuse("a batch fed before the rows of the last are written"));
        }
        let arrays = self.columns.assemble(&batch).map_err(|error| self.failed.set(error))?;
        self.fed = Some(Fed { batch, arrays, next: 0 });
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>, bytes: usize) -> Result<bool> {
        self.failed.check()?;
        let Some(fed) = &mut self.fed else { return Ok(true) };
        let enough = out.len().saturating_add(bytes.max(1));
        let (next, together, row_bytes) = (&mut fed.next, &mut self.together, self.row_bytes);
        let written = self.columns.visit_assembled(&fed.batch, &fed.arrays, |columns| {
            while *next < columns.rows() && out.len() < enough {
                if columns.len() < WIDE_COLUMNS {
                    line::<F>(columns, *next, row_bytes, out)?;
                    *next += 1;
                } else {
                    let rows = *next..columns.rows().min(*next + LINES_TOGETHER);
                    *next = rows.end;
                    lines_together::<F>(columns, rows, (together, row_bytes), out)?;
                }
            }
            Ok(*next == columns.rows())
        });
        let is_done = written.flatten().map_err(|error| self.failed.set(error))?;
        if is_done {
            self.fed = None;
        }
        Ok(is_done)
    }
}

/// Appends a row's line, or nothing if it cannot be printed.
fn line<F: Form>(
    columns: &mut BatchColumns<'_>,
    row: usize,
    row_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    if columns.is_empty() {
        out.extend_from_slice(F::EMPTY_LINE);
        return Ok(());
    }
    for column in 0..columns.len() {
        let written = columns.field::<F>(row, column, out);
        let written = written.and_then(|()| check_row(out.len() - start, row_bytes));
        if let Err(why) = written {
            out.truncate(start);
            return Err(columns.error(row, column, why));
        }
    }
    out.extend_from_slice(F::LINE_END);
    Ok(())
}

/// What reads a text may count a little more than the row itself.
const ROW_MARGIN_BYTES: u64 = 4096;

/// Fails if a row is longer than those that are read by default: before the next column is added to it.
#[inline]
fn check_row(bytes: usize, row_bytes: usize) -> Result<(), Unprintable> {
    if bytes <= row_bytes {
        return Ok(());
    }
    let what = alloc::format!("a row of more than {row_bytes} bytes of text");
    Err(Error::new(ErrorKind::LimitExceeded, what).with(Detail::Limit(Limit::ValueBytes)).into())
}

/// Appends the lines of some rows, up to the first that cannot be printed. It goes column by column, so that what a
/// column needs stays in the cache.
fn lines_together<F: Form>(
    columns: &mut BatchColumns<'_>,
    rows: Range<usize>,
    (lines, row_bytes): (&mut Vec<Vec<u8>>, usize),
    out: &mut Vec<u8>,
) -> Result<()> {
    lines.resize_with(LINES_TOGETHER, Vec::new);
    lines.iter_mut().for_each(Vec::clear);
    let mut wrong: Option<(usize, usize, Unprintable)> = None;
    for column in 0..columns.len() {
        for (row, line) in rows.clone().zip(&mut *lines) {
            let written = columns.field::<F>(row, column, line);
            if let Err(why) = written.and_then(|()| check_row(line.len(), row_bytes))
                && wrong.as_ref().is_none_or(|(first, ..)| row < *first)
            {
                wrong = Some((row, column, why));
            }
        }
    }
    let whole = wrong.as_ref().map_or(rows.len(), |(row, ..)| row - rows.start);
    for line in &lines[..whole] {
        out.extend_from_slice(line);
        out.extend_from_slice(F::LINE_END);
    }
    wrong.map_or(Ok(()), |(row, column, why)| Err(columns.error(row, column, why)))
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "numbers here are small")]
mod tests;
