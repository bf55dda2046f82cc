//! Infers the columns of delimited text from its first rows.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Detail, Error, Faults, Price, Release as _, Result, Step};
use marquetry_parquet::schema::TimeUnit;
use marquetry_parquet::write::Fed;

use super::super::place::{Place, at_line, shown};
use super::super::window::{Filled, PIECE_BYTES, Window};
use super::naming::{NAME_PRICE, Naming, lower_names, see};
use super::scan::{Dialect, Scanned, Scanner, Strip};
use super::style::{REWRITE_TIMES, Rewrite, Style};
use super::{BYTE_ORDER_MARK, Form, FormColumn};
use crate::columns::NAME_BYTES_MAX;
use crate::options::{Format, Header, TextOptions, Wanted, is_wanted_as_text};
use crate::scalar::Kinds;
use crate::{Column, ColumnType, Columns, Scalar, Types};

/// The price of finding out what a field could be.
pub(crate) const SEE_PRICE: Price = Price { kib: 3 << 10, kilovalue: 40 << 10 };
/// Fields that are examined between two checks of the budget.
const FIELDS_SLICE: usize = 64;
/// Rows by which the delimiter is chosen.
const GUESS_ROWS: usize = 100;
/// Hive's default delimiter. Nothing else in a text is this control character.
const HIVE_DELIMITER: u8 = 1;
/// Possible delimiters, the most likely first.
const DELIMITERS: [u8; 5] = [HIVE_DELIMITER, b',', b'\t', b';', b'|'];

/// What is known about a delimited text after sampling.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    dialect: Dialect,
    has_header: bool,
    /// Nothing tells the first row, which was taken for a header, from the others.
    is_header_guessed: bool,
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) kinds: Vec<Kinds>,
    nulls: Vec<Vec<u8>>,
    schema: Option<Columns>,
    types: Types,
    /// Shared: a sample is small.
    wanted: Arc<Vec<(String, Wanted)>>,
    style: Option<Style>,
    timestamp_unit: Option<TimeUnit>,
}

/// Looks at the first rows of a text.
#[derive(Debug)]
pub(crate) struct Sampler {
    options: TextOptions,
    nulls: Vec<Vec<u8>>,
    style: Option<Style>,
    window: Window,
    state: State,
    dialect: Dialect,
    scanner: Scanner,
    strip: Strip,
    has_header: bool,
    is_header_guessed: bool,
    /// The fields of the header that are empty, ascending.
    unnamed: Vec<usize>,
    names: Vec<Arc<str>>,
    kinds: Vec<Kinds>,
    place: Place,
    /// The names in the given schema, and the same in lower case.
    schema_names: Vec<Arc<str>>,
    known: Option<BTreeSet<String>>,
}

#[derive(Debug)]
enum State {
    /// Nothing has been looked at.
    Start,
    /// Finds the delimiter that gives the most fields: tries one after the other, piece by piece.
    Guessing { guesses: Vec<Guess>, next: usize },
    /// Looks for the first row.
    First,
    /// The first row was found, but is not joined, or only checked up to here.
    Found { checked: Option<Place> },
    /// Examines whether the first row is a header.
    Naming(Naming),
    /// Releases the memory used for that.
    Releasing(Naming),
    /// Looks for rows.
    Rows,
    /// Examines the fields of the strip, from this row and column on.
    Seeing { row: usize, column: usize },
    /// Counts the lines of what was examined.
    Counting,
    /// Compares the header that was found with the rows, from this column on: whether it is one.
    Judging { column: usize },
    /// It is none: numbers the columns, then releases their names.
    Numbering(Naming),
    /// The sample is complete.
    End,
}

/// A delimiter that is tried.
#[derive(Debug)]
struct Guess {
    delimiter: u8,
    scanner: Scanner,
    strip: Strip,
    rows: usize,
    is_over: bool,
    is_wrong: bool,
}

impl Sampler {
    pub(crate) fn new(format: Format, options: &TextOptions) -> Result<Sampler> {
        options.check(format)?;
        let (delimiter, quote) = options.separators(format).unwrap_or_default();
        let row_bytes = options.row_bytes();
        let dialect = Dialect {
            delimiter: delimiter.unwrap_or(b','),
            quote,
            comment: options.comment,
            may_be_short: options.short_rows,
            is_trimmed: options.trim,
            skips_empty: options.skip_empty,
        };
        let nulls = match &*options.nulls {
            [] => alloc::vec![Vec::new()],
            given => given.iter().map(|text| text.as_bytes().to_vec()).collect(),
        };
        let columns = options.schema.as_ref().map(Columns::as_slice);
        Ok(Sampler {
            schema_names: columns.into_iter().flatten().map(|column| column.name.as_str().into()).collect(),
            known: columns
                .map(|columns| columns.iter().map(|column| column.name.to_ascii_lowercase()).collect()),
            options: TextOptions { delimiter, ..options.clone() },
            nulls,
            style: Style::of(options),
            window: Window::new(PIECE_BYTES, row_bytes),
            state: State::Start,
            dialect,
            scanner: Scanner::new(dialect, 0, 0, row_bytes),
            strip: Strip::default(),
            has_header: false,
            is_header_guessed: false,
            unnamed: Vec::new(),
            names: Vec::new(),
            kinds: Vec::new(),
            place: Place::default(),
        })
    }

    pub(crate) fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        self.window.feed(bytes)
    }

    pub(crate) fn finish(&mut self) {
        self.window.finish();
    }

    /// The result, once it is complete.
    fn sample(&mut self) -> Sample {
        Sample {
            dialect: self.dialect,
            has_header: self.has_header,
            is_header_guessed: self.is_header_guessed,
            names: core::mem::take(&mut self.names),
            kinds: core::mem::take(&mut self.kinds),
            nulls: core::mem::take(&mut self.nulls),
            schema: self.options.schema.take(),
            types: core::mem::take(&mut self.options.types),
            wanted: Arc::new(core::mem::take(&mut self.options.wanted)),
            style: self.style.take(),
            timestamp_unit: self.options.timestamp_unit,
        }
    }

    /// Goes on until enough of the text was seen, or more bytes are needed: `None`.
    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Option<Sample>>> {
        loop {
            if matches!(self.state, State::End) {
                return Ok(Step::Ready(Some(self.sample())));
            }
            // Nothing more of the text is looked at.
            if matches!(self.state, State::Judging { .. } | State::Numbering(_)) {
                self.judge(budget);
                if budget.is_spent() && !matches!(self.state, State::End) {
                    return Ok(Step::Yield);
                }
                continue;
            }
            match self.window.fill(budget)? {
                Filled::Ready => {}
                Filled::Room => return Ok(Step::Ready(None)),
                Filled::Yield => return Ok(Step::Yield),
            }
            self.advance(budget)?;
            if budget.is_spent() && !matches!(self.state, State::End) {
                return Ok(Step::Yield);
            }
        }
    }

    /// Does a slice of work on a filled window.
    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        match &mut self.state {
            State::Start => self.start(),
            State::Guessing { .. } => self.guess(budget)?,
            State::First => {
                let scanned = self.scan(1, budget)?;
                if self.strip.rows() > 0 {
                    self.state = State::Found { checked: None };
                } else if scanned == Scanned::End {
                    self.end_without_rows()?;
                } else if self.is_exhausted() {
                    self.next_piece(budget)?;
                }
            }
            State::Found { checked } => {
                if !self.window.is_whole() {
                    self.window.join(budget)?;
                    return Ok(());
                }
                let (until, offset) = (self.scanner.row(), self.window.offset());
                let text = self.window.bytes();
                if let Some(checked) = checked {
                    if checked.check(&text, until, offset, budget)? {
                        self.state = State::Naming(Naming::new());
                    }
                } else if self.place.count(&text, self.strip.start(0), budget) {
                    // Errors report the line that the row begins in.
                    *checked = Some(self.place);
                }
            }
            State::Naming(_) => self.name(budget)?,
            State::Releasing(naming) => {
                if naming.release(budget) {
                    self.state = match (self.options.schema.is_some(), self.has_header) {
                        (true, _) => State::End,
                        (false, true) => State::Counting,
                        // The first row is an ordinary one.
                        (false, false) => State::Seeing { row: 0, column: 0 },
                    };
                }
            }
            State::Rows => {
                let scanned = self.scan(usize::MAX, budget)?;
                let is_over = scanned == Scanned::End || self.is_exhausted();
                if scanned == Scanned::Full || (is_over && self.strip.rows() > 0) {
                    self.state = State::Seeing { row: 0, column: 0 };
                } else if scanned == Scanned::End {
                    self.state = State::Judging { column: 0 };
                } else if is_over {
                    self.next_piece(budget)?;
                }
            }
            State::Seeing { .. } => {
                if !self.window.is_whole() {
                    self.window.join(budget)?;
                } else if self.see(budget) {
                    self.state = State::Counting;
                }
            }
            State::Counting => {
                let text = self.window.bytes();
                if self.place.count(&text, self.scanner.row(), budget) {
                    self.strip.keep_row(0);
                    self.state = State::Rows;
                    if self.is_exhausted() {
                        self.next_piece(budget)?;
                    }
                }
            }
            State::Judging { .. } | State::Numbering(_) | State::End => {}
        }
        Ok(())
    }

    /// All of the last piece was scanned, and more follows.
    fn is_exhausted(&self) -> bool {
        let view = self.window.view();
        !view.is_last && self.scanner.at() >= view.end()
    }

    /// Continues with the next piece, unless enough was examined.
    fn next_piece(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let row = self.scanner.row();
        // Lines without anything are counted here.
        if self.window.is_whole() && !self.place.count(&self.window.bytes(), row, budget) {
            return Ok(());
        }
        let read = self.window.offset() + u64_of(self.window.view().end());
        if matches!(self.state, State::Rows) && read >= self.options.infer_bytes {
            self.state = State::Judging { column: 0 };
            return Ok(());
        }
        self.window.advance(row).map_err(|error| at_line(self.place.line(), error))?;
        if row > 0 {
            self.scanner.shift(row);
            self.strip.keep_row(row);
            self.place.shift(row);
        }
        Ok(())
    }

    fn start(&mut self) {
        let view = self.window.view();
        let at = if view.text.starts_with(&BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        self.place.at = at;
        let (dialect, row_bytes) = (self.dialect, self.options.row_bytes());
        let scanner = |delimiter| Scanner::new(Dialect { delimiter, ..dialect }, 0, at, row_bytes);
        self.state = match self.options.delimiter {
            Some(delimiter) => {
                self.scanner = scanner(delimiter);
                State::First
            }
            None => {
                let (decimal, comment) = (self.options.decimal, self.options.comment);
                let delimiters = DELIMITERS
                    .into_iter()
                    .filter(|delimiter| *delimiter != decimal && Some(*delimiter) != comment);
                let guess = |delimiter| Guess {
                    delimiter,
                    scanner: scanner(delimiter),
                    strip: Strip::default(),
                    rows: 0,
                    is_over: false,
                    is_wrong: false,
                };
                State::Guessing { guesses: delimiters.map(guess).collect(), next: 0 }
            }
        };
    }

    /// Tries a delimiter on a slice, or chooses one: the one that gives the first rows the most fields, the same number
    /// in each.
    fn guess(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let State::Guessing { guesses, next } = &mut self.state else { return Ok(()) };
        let view = self.window.view();
        if let Some(guess) = guesses.get_mut(*next) {
            if guess.is_over {
                *next += 1;
                return Ok(());
            }
            let (at, fields) = (guess.scanner.at(), guess.strip.fields());
            let scanned = guess.scanner.scan(view, GUESS_ROWS - guess.rows, &mut guess.strip);
            let found = guess.strip.fields().saturating_sub(fields);
            guess.scanner.charge(at, found, budget);
            guess.rows += guess.strip.rows();
            guess.strip.keep_row(0);
            guess.is_wrong = scanned.is_err();
            let is_end = scanned.is_ok_and(|scanned| scanned == Scanned::End);
            guess.is_over = guess.is_wrong || guess.rows >= GUESS_ROWS || is_end;
            if guess.is_over || guess.scanner.at() >= view.end() {
                *next += 1;
            }
            return Ok(());
        }
        // If no row has ended yet, more is needed.
        let is_known = guesses.iter().any(|guess| guess.rows > 0 && !guess.is_wrong);
        if !is_known && guesses.iter().any(|guess| !guess.is_over) {
            *next = 0;
            let advanced = self.window.advance(0);
            return advanced.map_err(|error| at_line(self.place.line(), error));
        }
        let fields = |guess: &Guess| if guess.is_wrong { 0 } else { guess.scanner.columns() };
        let found = guesses.iter().map(|guess| (fields(guess), guess.delimiter));
        // The first of equals; the usual one, if none is found.
        let best = found.rev().max_by_key(|(fields, _)| *fields).filter(|(fields, _)| *fields > 1);
        let usual = || guesses.iter().map(|it| it.delimiter).find(|it| *it != HIVE_DELIMITER);
        let best = best.map(|(_, found)| found).or_else(usual).unwrap_or(b',');
        self.dialect.delimiter = best;
        // From the start: what follows may be in pieces.
        if self.window.join(budget)? {
            self.scanner = Scanner::new(self.dialect, 0, self.place.at, self.options.row_bytes());
            self.state = State::First;
        }
        Ok(())
    }

    fn scan(&mut self, rows_max: usize, budget: &mut Budget<'_>) -> Result<Scanned> {
        let (at, fields) = (self.scanner.at(), self.strip.fields());
        let scanned = self.scanner.scan(self.window.view(), rows_max, &mut self.strip);
        let found = self.strip.fields().saturating_sub(fields);
        self.scanner.charge(at, found, budget);
        scanned.map_err(|wrong| {
            // For a row that began in an earlier piece, nothing is left to count.
            let text = self.window.bytes();
            let mut place = self.place;
            if self.window.is_whole() {
                place.count(&text, wrong.at, &mut Budget::unlimited());
            }
            at_line(place.line(), wrong.error)
        })
    }

    fn end_without_rows(&mut self) -> Result<()> {
        match &self.options.schema {
            Some(_) => {
                self.names = core::mem::take(&mut self.schema_names);
                self.state = State::End;
                Ok(())
            }
            None => Err(Error::corrupt("it has no rows, so its columns are not known")
                .with(Detail::AdmittedBy(&["schema"]))),
        }
    }

    /// Examines some fields of the first row, decides whether it is a header, or names some columns.
    fn name(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let State::Naming(naming) = &mut self.state else { return Ok(()) };
        let (text, fields) = (self.window.bytes(), self.strip.fields());
        let slice = naming.given.len()..fields.min(naming.given.len() + FIELDS_SLICE);
        let line = self.place.line();
        if !slice.is_empty() {
            for column in slice {
                let field = self.strip.field(&self.dialect, &text, 0, column);
                budget.charge(NAME_PRICE, field.text.len().min(NAME_BYTES_MAX), 1);
                let nulls = &self.nulls;
                naming.look(
                    &field,
                    &self.dialect,
                    (self.style.as_ref(), nulls),
                    self.known.as_ref(),
                    line,
                )?;
                if budget.is_spent() {
                    break;
                }
            }
            return Ok(());
        }
        let Some(is_header) = naming.is_header else {
            let is_header = match (self.options.header, &self.options.schema) {
                (Header::Yes, _) => true,
                (Header::No, _) => false,
                (Header::Auto, Some(_)) => naming.is_known,
                (Header::Auto, None) => naming.is_text,
            };
            if let (false, Header::Auto, Some(schema)) =
                (is_header, self.options.header, &self.options.schema)
                && let Some(error) = naming.almost_header(schema)
            {
                return Err(at_line(line, error));
            }
            if let (true, Some(bytes)) = (is_header, naming.too_long) {
                let what =
                    format!("a name of {bytes} bytes, more than {NAME_BYTES_MAX} (is a line end missing?)");
                let error = match self.options.header {
                    Header::Auto => Error::corrupt(what).with(Detail::AdmittedBy(&["header"])),
                    Header::Yes | Header::No => Error::corrupt(what),
                };
                return Err(at_line(line, error));
            }
            if let (true, Header::Auto, None, Some(twice)) =
                (is_header, self.options.header, &self.options.schema, &naming.twice)
            {
                let twice = shown(twice.as_bytes());
                let what = format!(
                    "{twice} appears twice in the first row, which may be a row like the others, or names of columns"
                );
                return Err(at_line(line, Error::corrupt(what).with(Detail::AdmittedBy(&["header"]))));
            }
            naming.is_header = Some(is_header);
            return Ok(());
        };
        let is_given = self.options.schema.is_some() && !is_header;
        while !is_given && naming.names.len() < fields {
            naming.name_next(is_header, budget);
            if budget.is_spent() {
                return Ok(());
            }
        }
        self.names = core::mem::take(&mut naming.names);
        self.unnamed = core::mem::take(&mut naming.unnamed);
        self.has_header = is_header;
        if is_given {
            let columns = self.schema_names.len();
            let is_short = self.dialect.may_be_short && fields < columns;
            if columns != fields && !is_short {
                let what = format!("{fields} fields, where the schema has {columns} columns");
                return Err(at_line(line, Error::corrupt(what).with(Detail::AdmittedBy(&["schema"]))));
            }
            self.names = core::mem::take(&mut self.schema_names);
        }
        self.kinds = alloc::vec![Kinds::ANY; self.names.len()];
        self.state = State::Releasing(core::mem::replace(naming, Naming::new()));
        Ok(())
    }

    /// Compares the header with some columns' values. It is one for certain where a column's values are narrower than text, or where it
    /// has the name of a column that is known. Otherwise a row of values is as likely: it is taken for that if one of its
    /// fields is empty; but the index that other programs write has no name.
    fn judge(&mut self, budget: &mut Budget<'_>) {
        match &mut self.state {
            State::Judging { column } => {
                let is_guess = self.has_header && self.options.header == Header::Auto;
                if !is_guess || self.options.schema.is_some() {
                    self.state = State::End;
                    return;
                }
                while let (Some(kinds), Some(name)) = (self.kinds.get(*column), self.names.get(*column)) {
                    let is_unnamed = self.unnamed.binary_search(column).is_ok();
                    budget.charge(NAME_PRICE, name.len(), 1);
                    if !is_unnamed && (!kinds.is_text() || self.options.has_column(name)) {
                        self.state = State::End;
                        return;
                    }
                    *column += 1;
                    if budget.is_spent() {
                        return;
                    }
                }
                let has_index =
                    *self.unnamed == [0] && self.kinds.first().is_some_and(|kinds| kinds.has_values());
                if self.unnamed.is_empty() || has_index {
                    self.is_header_guessed = true;
                    self.state = State::End;
                } else {
                    let given = core::mem::take(&mut self.names);
                    self.state = State::Numbering(Naming { given, ..Naming::new() });
                }
            }
            State::Numbering(naming) => {
                while self.has_header {
                    let column = naming.names.len();
                    let Some((name, kinds)) = naming.given.get(column).zip(self.kinds.get_mut(column)) else {
                        self.names = core::mem::take(&mut naming.names);
                        self.has_header = false;
                        break;
                    };
                    // It is a value like the others.
                    if self.unnamed.binary_search(&column).is_err() {
                        see(kinds, name.as_bytes(), self.style.as_ref());
                    }
                    naming.name_next(false, budget);
                    if budget.is_spent() {
                        return;
                    }
                }
                if naming.release(budget) {
                    self.state = State::End;
                }
            }
            _ => {}
        }
    }

    /// Examines some fields of the strip. False if some are left.
    fn see(&mut self, budget: &mut Budget<'_>) -> bool {
        let State::Seeing { row, column } = &mut self.state else { return true };
        let text = self.window.bytes();
        while *row < self.strip.rows() {
            let (mut bytes, first) = (0, *column);
            while *column < self.kinds.len() && *column - first < FIELDS_SLICE && bytes < 4096 {
                let field = self.strip.field(&self.dialect, &text, *row, *column);
                let is_null = match field.is_quoted {
                    true => field.text.is_empty(),
                    false => super::is_null(&self.nulls, &field),
                };
                if !is_null {
                    see(&mut self.kinds[*column], field.text, self.style.as_ref());
                    bytes += field.text.len().min(crate::parse::VALUE_BYTES_MAX);
                }
                *column += 1;
            }
            let times = if self.style.is_some() { REWRITE_TIMES } else { 1 };
            budget.charge(SEE_PRICE, times * bytes, times * (*column - first));
            if *column == self.kinds.len() {
                (*row, *column) = (*row + 1, 0);
            }
            if budget.is_spent() {
                return *row == self.strip.rows();
            }
        }
        true
    }
}

impl Sample {
    /// Whether the first row was taken for a header although nothing tells it from the others.
    pub(crate) fn is_header_guessed(&self) -> bool {
        self.is_header_guessed
    }

    /// Whether another text has the same columns, in any order, whatever their types.
    pub(crate) fn is_like(&self, other: &Sample) -> bool {
        self.schema == other.schema && self.places_in(other).is_some()
    }

    /// Where each column is in another text; `None` unless both have the same.
    fn places_in(&self, other: &Sample) -> Option<Vec<usize>> {
        if self.names == other.names {
            return Some((0..self.names.len()).collect());
        }
        let places: BTreeMap<&str, usize> = other.names.iter().map(|name| &**name).zip(0..).collect();
        let are_as_many = self.names.len() == other.names.len();
        self.names
            .iter()
            .map(|name| places.get(&**name).copied())
            .collect::<Option<_>>()
            .filter(|_| are_as_many)
    }

    /// Adds the values of another text with the same columns.
    pub(crate) fn join(&mut self, other: &Sample) {
        let places = self.places_in(other).unwrap_or_default();
        for (kinds, place) in self.kinds.iter_mut().zip(places) {
            *kinds = other.kinds.get(place).map_or(*kinds, |more| kinds.join(*more));
        }
    }

    /// The form of the text, with the column types of another sample, or those that were given.
    ///
    /// # Errors
    ///
    /// `Misuse` if given columns differ from the header's.
    pub(crate) fn form(&self, types: &Sample) -> Result<Form> {
        let columns = match &self.schema {
            None => {
                let mut faults = Faults::default();
                let places = self.places_in(types).unwrap_or_default();
                let kinds = places.into_iter().filter_map(|place| types.kinds.get(place));
                let columns = self.names.iter().zip(kinds).enumerate().map(|(field, (name, kinds))| {
                    let given = faults.take(self.types.scalar_of(name)).flatten();
                    let inferred = kinds.scalar_in(self.timestamp_unit);
                    // Numbers with another decimal mark than a point are no text that others read.
                    let is_readable = inferred != Scalar::Double || self.rewrite_of(inferred) == Rewrite::No;
                    let is_wanted =
                        given.is_none() && is_readable && is_wanted_as_text(&self.wanted, name, inferred);
                    let scalar = if is_wanted { Scalar::Text } else { given.unwrap_or(inferred) };
                    FormColumn {
                        name: Arc::clone(name),
                        scalar,
                        is_given: given.is_some() || is_wanted,
                        is_of_numbers: is_wanted && inferred == Scalar::Double && self.is_exact(name),
                        rewrite: self.rewrite_of(scalar),
                        field,
                    }
                });
                let columns = columns.collect();
                faults.into_result()?;
                columns
            }
            Some(schema) => self.given(schema)?,
        };
        Ok(Form {
            dialect: self.dialect,
            has_header: self.has_header,
            fields: self.names.len(),
            columns,
            nulls: self.nulls.clone(),
            style: self.style.clone(),
        })
    }

    /// Whether a column is wanted for exact numbers.
    fn is_exact(&self, name: &str) -> bool {
        // A number with a fraction is text then, and an integer is not.
        !is_wanted_as_text(&self.wanted, name, Scalar::Integer(64))
    }

    fn rewrite_of(&self, scalar: Scalar) -> Rewrite {
        self.style.as_ref().map_or(Rewrite::No, |style| style.rewrite_of(scalar))
    }

    fn given(&self, schema: &Columns) -> Result<Vec<FormColumn>> {
        let mut exact = BTreeMap::new();
        let mut lower = BTreeMap::new();
        for (field, name) in self.names.iter().enumerate().rev() {
            exact.insert(Arc::clone(name), field);
            lower.insert(name.to_ascii_lowercase(), field);
        }
        let mut taken = alloc::vec![false; self.names.len()];
        let mut column = |(at, column): (usize, &Column)| {
            let Column { name, column_type } = column;
            let ColumnType::Scalar(scalar) = *column_type else {
                let what = "delimited text has no lists, maps or structs";
                let error = Error::option("schema", what);
                return Err(error.at(|place| place.column = Some(name.clone())));
            };
            let known =
                || exact.get(name.as_str()).or_else(|| lower.get(&name.to_ascii_lowercase())).copied();
            let field = if self.has_header { known() } else { Some(at) };
            let field = field.ok_or_else(|| self.missing(name, schema))?;
            if let Some(taken) = taken.get_mut(field) {
                *taken = true;
            }
            let rewrite = self.rewrite_of(scalar);
            let name = name.as_str().into();
            Ok(FormColumn { name, scalar, is_given: true, is_of_numbers: false, rewrite, field })
        };
        let columns = schema.as_slice().iter().enumerate().map(&mut column).collect::<Result<Vec<_>>>()?;
        match taken.iter().position(|taken| !taken) {
            Some(field) => {
                let name = &self.names[field];
                Err(Error::option("schema", format!("the header's column {name:?} is missing from it")))
            }
            None => Ok(columns),
        }
    }

    /// The error for a column of the schema that is missing from the header, which may have another one instead.
    #[cold]
    fn missing(&self, name: &str, schema: &Columns) -> Error {
        let known = lower_names(schema);
        let other = self.names.iter().find(|other| !known.contains(&other.to_ascii_lowercase()));
        let what = match other {
            Some(other) => format!("the header has {other:?} where the schema has {name:?}"),
            None => format!("its column {name:?} is missing from the header"),
        };
        Error::option("schema", what)
    }
}

impl Form {
    /// The columns, as a schema would define them.
    pub(crate) fn columns(&self) -> Columns {
        let column = |column: &FormColumn| Column {
            name: column.name.to_string(),
            column_type: ColumnType::Scalar(column.scalar),
        };
        self.columns.iter().map(column).collect::<Vec<_>>().into()
    }

    /// The type of a column.
    pub(crate) fn scalar(&self, column: usize) -> Scalar {
        self.columns.get(column).map_or(Scalar::Text, |column| column.scalar)
    }
}
