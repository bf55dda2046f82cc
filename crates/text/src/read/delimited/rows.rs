//! The rows of delimited text, in batches.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Detail, Error, Result, Step};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout};
use marquetry_parquet::write::Fed;

use super::super::place::{Place, Start, at_line, line_ends, shown};
use super::super::window::{Filled, PIECE_BYTES, Window};
use super::column::{Fill, Filling, Source, Store};
use super::scan::{Dialect, Scanned, Scanner, Strip, Wrong};
use super::{BYTE_ORDER_MARK, Form};

/// Bytes of a piece per column of a wide table, and the maximum: so that several rows of it are processed together.
const COLUMN_BYTES: usize = 512;
const WIDE_PIECE_BYTES_MAX: usize = 32 << 20;
/// The cost of a column of a batch, whatever is in it.
const COLUMN_UNITS: u64 = 250;

/// Reads rows of a form.
#[derive(Debug)]
pub(crate) struct Rows {
    form: Arc<Form>,
    /// The columns to read, and memory for each.
    reads: Vec<(usize, Store)>,
    batch_rows: usize,
    window: Window,
    scanner: Scanner,
    /// The current batch's rows, in strips; the index of the strip that is being filled; and the number of rows.
    strips: Vec<Strip>,
    open: usize,
    found: usize,
    /// The position up to which the text is checked.
    place: Place,
    state: State,
    /// An error that ends the text, reported once the rows before it are processed.
    wrong: Option<Wrong>,
    columns: Vec<ColumnBatch>,
    filling: Option<Filling>,
    rows: u64,
    /// A batch, until it is taken.
    ready: Option<Batch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing has been looked at.
    Start,
    /// Looks for the header.
    Header,
    /// Looks for rows.
    Rows,
    /// Joins and checks them: this strip is next.
    Checking(usize),
    /// Their columns are filled.
    Columns,
    /// The last row was handed out.
    End,
}

impl Form {
    /// Bytes of a piece of the text.
    pub(crate) fn piece_bytes(&self) -> usize {
        self.fields.saturating_mul(COLUMN_BYTES).clamp(PIECE_BYTES, WIDE_PIECE_BYTES_MAX)
    }

    /// What decides where rows end, whether there is a header, and whether an empty line is a row.
    pub(crate) fn splits(&self) -> (Dialect, bool, bool) {
        (self.dialect, self.has_header, self.fields == 1 && !self.dialect.skips_empty)
    }
}

impl Rows {
    /// A reader of these columns.
    pub(crate) fn new(form: Arc<Form>, reads: &[usize], batch_rows: usize, row_bytes: u64) -> Rows {
        let piece_bytes = form.piece_bytes();
        let reads = reads.iter().map(|column| (*column, Store::of(form.scalar(*column)))).collect();
        Rows {
            scanner: Scanner::new(form.dialect, form.fields, 0, row_bytes),
            form,
            reads,
            batch_rows: batch_rows.max(1),
            window: Window::new(piece_bytes, row_bytes),
            strips: alloc::vec![Strip::default()],
            open: 0,
            found: 0,
            place: Place::default(),
            state: State::Start,
            wrong: None,
            columns: Vec::new(),
            filling: None,
            rows: 0,
            ready: None,
        }
    }

    pub(crate) fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        self.window.feed(bytes)
    }

    pub(crate) fn finish(&mut self) {
        self.window.finish();
    }

    /// Begins again, at another place of the text.
    pub(crate) fn restart(&mut self, start: Start) {
        self.window.restart(start.offset);
        self.scanner = Scanner::new(self.form.dialect, self.form.fields, 0, self.scanner.row_bytes());
        self.strips.iter_mut().for_each(Strip::clear);
        (self.open, self.found, self.rows) = (0, 0, 0);
        self.place = Place { at: 0, lines: start.lines };
        self.state = match (start.offset, self.form.has_header && !start.is_after_header) {
            (0, _) => State::Start,
            (_, true) => State::Header,
            (_, false) => State::Rows,
        };
    }

    /// The line that the first row of the last batch begins in.
    pub(crate) fn line(&self) -> u64 {
        self.strips.first().map_or(0, |strip| strip.line)
    }

    /// Goes on until a batch is ready, or more bytes are needed: `None`.
    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Option<Batch>>> {
        loop {
            if self.state == State::End {
                return Ok(Step::Done);
            }
            match self.window.fill(budget)? {
                Filled::Ready => {}
                Filled::Room => return Ok(Step::Ready(None)),
                Filled::Yield => return Ok(Step::Yield),
            }
            self.advance(budget)?;
            if let Some(batch) = self.ready.take() {
                return Ok(Step::Ready(Some(batch)));
            }
            if budget.is_spent() && self.state != State::End {
                return Ok(Step::Yield);
            }
        }
    }

    /// Does a slice of work on a filled window.
    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        match self.state {
            State::Start => {
                let view = self.window.view();
                if view.text.starts_with(&BYTE_ORDER_MARK) {
                    let (dialect, at) = (self.form.dialect, BYTE_ORDER_MARK.len());
                    self.scanner = Scanner::new(dialect, self.form.fields, at, self.scanner.row_bytes());
                    self.place.at = at;
                }
                self.state = if self.form.has_header { State::Header } else { State::Rows };
            }
            State::Header => {
                let scanned = self.scan(1, budget);
                if self.strips[0].rows() > 0 {
                    self.strips[0].keep_row(0);
                    (self.found, self.state) = (0, State::Rows);
                    if !self.window.is_whole() {
                        // A long header: what follows it is scanned in one piece.
                        self.state = State::Checking(0);
                    }
                } else if self.wrong.is_some() || scanned == Scanned::End {
                    self.state = State::Checking(0);
                } else if self.is_exhausted() {
                    // It may be preceded by empty lines and comments.
                    let (row, text, offset) = (self.scanner.row(), self.window.bytes(), self.window.offset());
                    if !self.window.is_whole() || self.place.check(&text, row, offset, budget)? {
                        self.next_piece()?;
                    }
                }
            }
            State::Rows => {
                let scanned = self.scan(self.batch_rows - self.found, budget);
                let is_over = self.wrong.is_some() || scanned == Scanned::End || self.is_exhausted();
                if is_over || self.found >= self.batch_rows {
                    self.state = State::Checking(0);
                } else if scanned == Scanned::Full {
                    self.open += 1;
                    if self.open == self.strips.len() {
                        self.strips.push(Strip::default());
                    }
                }
            }
            State::Checking(strip) => self.check(strip, budget)?,
            State::Columns => self.fill(budget)?,
            State::End => {}
        }
        Ok(())
    }

    fn scan(&mut self, rows_max: usize, budget: &mut Budget<'_>) -> Scanned {
        let strip = &mut self.strips[self.open];
        let (at, fields, rows) = (self.scanner.at(), strip.fields(), strip.rows());
        let scanned = self.scanner.scan(self.window.view(), rows.saturating_add(rows_max), strip);
        self.scanner.charge(at, strip.fields().saturating_sub(fields), budget);
        self.found += strip.rows() - rows;
        scanned.unwrap_or_else(|wrong| {
            self.wrong = Some(wrong);
            Scanned::Slice
        })
    }

    /// All of the last piece was scanned, and more follows.
    fn is_exhausted(&self) -> bool {
        let view = self.window.view();
        !view.is_last && self.scanner.at() >= view.end()
    }

    /// Continues with the next piece, once the last one was scanned.
    fn next_piece(&mut self) -> Result<()> {
        if !self.is_exhausted() {
            return Ok(());
        }
        let row = self.scanner.row();
        self.window.advance(row).map_err(|error| at_line(self.place.line(), error))?;
        if row > 0 {
            self.scanner.shift(row);
            self.strips[0].keep_row(row);
            self.place.shift(row.min(self.place.at));
        }
        Ok(())
    }

    /// Checks the rows that were found, and counts their lines. Then they become a batch, if there are any.
    fn check(&mut self, strip: usize, budget: &mut Budget<'_>) -> Result<()> {
        // While the window has several pieces, only the header may have been found.
        let is_joined = self.window.is_whole() || (self.found == 0 && self.scanner.row() == 0);
        if !is_joined {
            self.window.join(budget)?;
            return Ok(());
        }
        let until = self.wrong.as_ref().map_or(self.scanner.row(), |wrong| wrong.at);
        if self.window.is_whole() {
            let text = self.window.bytes();
            let until = match self.strips.get(strip).filter(|it| strip <= self.open && it.rows() > 0) {
                Some(next) => next.start(0),
                None => until,
            };
            if !self.place.check(&text, until, self.window.offset(), budget)? {
                return Ok(());
            }
            if strip <= self.open {
                self.strips[strip].line = self.place.line();
                self.state = State::Checking(strip + 1);
                return Ok(());
            }
        }
        if let Some(Wrong { error, .. }) = self.wrong.take() {
            return Err(at_line(self.place.line(), error));
        }
        let view = self.window.view();
        if self.found > 0 {
            self.columns = Vec::with_capacity(self.reads.len());
            self.state = State::Columns;
        } else if view.is_last && self.scanner.at() >= view.end() {
            self.state = State::End;
        } else {
            self.state = State::Rows;
            self.next_piece()?;
        }
        Ok(())
    }

    /// Fills columns. After the last one the batch is ready.
    fn fill(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let text = self.window.bytes();
        while let Some((number, store)) = self.reads.get_mut(self.columns.len()) {
            let Some(column) = self.form.columns.get(*number) else {
                return Err(Error::internal("a column that the form lacks"));
            };
            let strips = &self.strips[..=self.open];
            let source = Source { form: &self.form, column, text: &text, strips, rows: self.found };
            let mut filling = match self.filling.take() {
                Some(filling) => filling,
                None => Filling::new(self.found, store, budget)?,
            };
            match filling.step(source, budget)? {
                Fill::Done => {}
                Fill::Yield => {
                    self.filling = Some(filling);
                    return Ok(());
                }
                Fill::Misfit { strip, row } => {
                    let number = *number;
                    return Err(self.misfit(&text, strip, row, number));
                }
            }
            let nulls = filling.nulls;
            let (values, validity) = filling.finish(source, store)?;
            self.columns.push(ColumnBatch {
                leaf: *number,
                rows: self.found,
                nulls,
                validity,
                values,
                layout: Layout::Spaced,
                levels: None,
                provisional: false,
            });
            budget.charge_units(COLUMN_UNITS);
            if budget.is_spent() && self.columns.len() < self.reads.len() {
                return Ok(());
            }
        }
        let columns = core::mem::take(&mut self.columns);
        self.ready = Some(Batch { row_group: 0, first_row: self.rows, rows: self.found, columns });
        self.rows += u64_of(self.found);
        self.found = 0;
        // The start of an incomplete row is kept.
        if self.open == 0 {
            self.strips[0].keep_row(0);
        } else if let [first, others @ ..] = &mut self.strips[..]
            && let Some(last) = others.get(self.open - 1)
        {
            first.continue_row(last, 0);
            others.iter_mut().for_each(Strip::clear);
        }
        self.open = 0;
        self.state = State::Rows;
        Ok(())
    }

    /// The error for a value that does not have its column's type.
    fn misfit(&self, text: &Bytes, strip: usize, row: usize, number: usize) -> Error {
        let (Some(strip), Some(column)) = (self.strips.get(strip), self.form.columns.get(number)) else {
            return Error::internal("a misfit that is nowhere");
        };
        let field = strip.field(&self.form.dialect, text, row, column.field);
        let line = strip.line + line_ends(&text[strip.start(0)..strip.start(row)]);
        let error = Error::conversion(alloc::format!(
            "{} is not {}",
            shown(field.text),
            column.scalar.with_article()
        ));
        let error = error.at(|place| place.column = Some((*column.name).into()));
        // The sample suggested the type.
        at_line(
            line,
            if column.is_given { error } else { error.with(Detail::AdmittedBy(&["infer_bytes", "types"])) },
        )
    }
}
