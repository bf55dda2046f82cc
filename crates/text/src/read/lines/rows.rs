//! The rows of JSON lines, in batches.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Detail, Error, ErrorKind, Limit, Price, Result, Step};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::record::{RecordSink, Shredder, Value};
use marquetry_parquet::write::Fed;

use super::super::place::{Start, shown};
use super::json::{Text, Token, Tokens};
use super::plan::{Becomes, Made, Names, Planner};
use super::{Lines, Next, no_object};
use crate::Scalar;
use crate::parse::{self, VALUE_BYTES_MAX};
use crate::scalar::is_word;
use crate::value::with_value;

/// The price of splitting a line, besides what the shredder charges for its values.
pub(crate) const READ_PRICE: Price = Price { kib: 4 << 10, kilovalue: 40 << 10 };
/// Bytes of a line that are looked at at once.
const SLICE_BYTES: usize = 1 << 10;
/// Maximum bytes of a value that is not a string.
const VALUE_BYTES: u64 = 16;
/// All integers up to this one are exact as doubles: 2^53.
const DOUBLE_INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// Reads rows of a form.
#[derive(Debug)]
pub(crate) struct Rows {
    lines: Lines,
    tokens: Tokens,
    is_in_line: bool,
    /// Leaves that are returned, in order, if not all are.
    reads: Option<Vec<usize>>,
    shredder: Shredder,
    fields: Vec<Becomes>,
    /// Those of the line are the first.
    names: Vec<Names>,
    is_given: bool,
    open: Vec<Open>,
    /// The field that the next value belongs to, if it is in an object.
    field: usize,
    /// A value that is kept as written, and its depth.
    raw: Option<(usize, usize)>,
    blob: Option<Blob>,
    values: u64,
    values_max: u64,
    is_taking: bool,
    /// The line of the first row of the batch.
    first_line: u64,
}

/// An open object or array.
#[derive(Debug, Clone, Copy)]
enum Open {
    /// Fields with these names; the next one is expected to be `due`.
    Object {
        field: Option<usize>,
        names: usize,
        due: usize,
    },
    Map {
        field: usize,
        key: usize,
        value: usize,
    },
    List {
        field: usize,
        element: usize,
    },
    /// A map as it is printed: an array of entries.
    Entries {
        field: usize,
        key: usize,
        value: usize,
    },
    /// `{"key": …, "value": …}`; the parts that it had.
    Entry {
        key: usize,
        value: usize,
        parts: u8,
    },
}

/// A long blob, whose digits are parsed in slices.
#[derive(Debug)]
struct Blob {
    field: usize,
    text: Bytes,
    at: usize,
    bytes: Vec<u8>,
}

/// What is wrong with an entry of a map.
const ENTRY: &str = "a map is an object, or an array of entries: {\"key\": …, \"value\": …}, the key first";

impl Rows {
    /// The rows that were planned.
    pub(crate) fn of(planner: &mut Planner) -> Result<Rows> {
        let (lines, Made { shredder, fields, names }, reads) = planner.take()?;
        Ok(Rows {
            lines,
            tokens: Tokens::default(),
            is_in_line: false,
            reads,
            shredder,
            fields,
            names,
            is_given: planner.form.is_given,
            open: Vec::new(),
            field: 0,
            raw: None,
            blob: None,
            values: 0,
            values_max: (planner.limits.page_bytes / VALUE_BYTES).max(1),
            is_taking: false,
            first_line: 0,
        })
    }

    pub(crate) fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        self.lines.feed(bytes)
    }

    pub(crate) fn finish(&mut self) {
        self.lines.window.finish();
    }

    /// Begins again, at another place of the text, once all rows were handed out.
    pub(crate) fn restart(&mut self, start: Start) {
        self.lines.restart(start);
    }

    /// The line of the first row of the last batch.
    pub(crate) fn line(&self) -> u64 {
        self.first_line
    }

    /// Goes on until a batch is ready, or more bytes are needed: `None`.
    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Option<Batch>>> {
        loop {
            if self.is_taking {
                let Some(mut batch) = self.shredder.take(budget)? else { return Ok(Step::Yield) };
                self.is_taking = false;
                if let Some(reads) = &self.reads {
                    let column = |leaf: &usize| batch.columns.get(*leaf).cloned();
                    batch.columns = reads.iter().filter_map(column).collect();
                }
                return Ok(Step::Ready(Some(batch)));
            }
            if self.is_in_line {
                let read = self.read(budget);
                self.shredder.charge(budget);
                if read.map_err(|error| self.lines.numbered(error))? {
                    self.lines.end_line();
                    (self.is_in_line, self.is_taking) = (false, self.shredder.is_full());
                }
            } else {
                match self.lines.next(budget)? {
                    Next::Line => {
                        if self.shredder.rows() == 0 {
                            self.first_line = self.lines.place.line();
                        }
                        self.lines.begin(&mut self.tokens).map_err(|error| self.lines.numbered(error))?;
                        self.open.clear();
                        (self.values, self.is_in_line) = (0, true);
                    }
                    Next::Room => return Ok(Step::Ready(None)),
                    Next::Yield => return Ok(Step::Yield),
                    Next::End if self.shredder.rows() > 0 => self.is_taking = true,
                    Next::End => return Ok(Step::Done),
                    Next::Piece => self.lines.next_piece()?,
                }
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
    }

    /// Reads a slice of the line. True after its end.
    fn read(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        if self.blob.is_some() {
            self.read_blob(budget)?;
            return Ok(false);
        }
        let text = self.lines.text.clone();
        let (from, mut tokens) = (self.tokens.at(), 0);
        let until = from + SLICE_BYTES;
        let is_end = loop {
            let token = self.tokens.next(&text, until).map_err(|wrong| self.lines.refused(&wrong))?;
            tokens += 1;
            match token {
                Some(Token::End) => break true,
                Some(token) => self.token(&text, token)?,
                None => break false,
            }
            if self.tokens.at() >= until || self.blob.is_some() {
                break false;
            }
        };
        budget.charge(READ_PRICE, self.tokens.at() - from, tokens);
        Ok(is_end)
    }

    #[inline]
    fn token(&mut self, text: &Bytes, token: Token) -> Result<()> {
        if let Some((start, depth)) = self.raw {
            if self.tokens.depth() > depth {
                return Ok(());
            }
            self.raw = None;
            return self.raw(text, start..self.tokens.at());
        }
        let field = match self.open.last() {
            Some(Open::List { element, .. }) => *element,
            Some(&Open::Entries { field, key, value }) => return self.entry(&token, field, key, value),
            Some(_) => self.field,
            None => return self.root(text, &token),
        };
        match token {
            Token::Key(name) => return self.key(text, &name),
            Token::ObjectEnd | Token::ArrayEnd => return self.close(),
            _ => {}
        }
        self.values += 1;
        if self.values > self.values_max {
            let what = format!("a row of more than {} values", self.values_max);
            let error = Error::new(ErrorKind::LimitExceeded, what);
            return Err(error.with(Detail::Limit(Limit::PageBytes)));
        }
        let Some(&plan) = self.fields.get(field) else { return Err(Error::internal("no such field")) };
        match (token, plan) {
            (Token::Null, _) => kept(self.shredder.null(field)),
            (Token::String(string), Becomes::Leaf(scalar, is_given)) => match scalar {
                Scalar::Text | Scalar::Date | Scalar::Timestamp { .. } => {
                    self.string(text, field, scalar, &string)
                }
                _ if is_given => self.string(text, field, scalar, &string),
                // NaN and infinities among numbers.
                Scalar::Double if is_word(self.tokens.chars(text, &string)) => {
                    self.string(text, field, scalar, &string)
                }
                _ => Err(self.misfit(field, "a string")),
            },
            (Token::Number(part), Becomes::Leaf(scalar, true)) => self.parsed(field, scalar, &text[part]),
            (Token::Number(part), Becomes::Leaf(scalar, false)) => self.number(field, scalar, &text[part]),
            (Token::Boolean(value), Becomes::Leaf(Scalar::Boolean, _)) => {
                kept(self.shredder.value(field, Value::Boolean(value)))
            }
            (Token::Boolean(value), Becomes::Leaf(scalar, true)) => {
                self.parsed(field, scalar, if value { b"true" } else { b"false" })
            }
            (Token::ObjectStart | Token::ArrayStart, Becomes::Leaf(_, true)) => {
                self.field = field;
                self.raw = Some((self.tokens.at() - 1, self.tokens.depth() - 1));
                Ok(())
            }
            (Token::ObjectStart, Becomes::Struct(names)) => {
                self.open.push(Open::Object { field: Some(field), names, due: 0 });
                kept(self.shredder.start_struct(field))
            }
            (Token::ObjectStart, Becomes::Map { key, value }) => {
                self.open.push(Open::Map { field, key, value });
                kept(self.shredder.start_map(field))
            }
            (Token::ArrayStart, Becomes::Map { key, value }) => {
                self.open.push(Open::Entries { field, key, value });
                kept(self.shredder.start_map(field))
            }
            (Token::ArrayStart, Becomes::List { element }) => {
                self.open.push(Open::List { field, element });
                kept(self.shredder.start_list(field))
            }
            (token, _) => {
                let found = match token {
                    Token::ObjectStart => "an object",
                    Token::ArrayStart => "an array",
                    Token::String(_) => "a string",
                    Token::Boolean(true) => "true",
                    Token::Boolean(false) => "false",
                    _ => "a number",
                };
                Err(self.misfit(field, found))
            }
        }
    }

    /// An entry of a map, or the map's end.
    fn entry(&mut self, token: &Token, field: usize, key: usize, value: usize) -> Result<()> {
        match token {
            Token::ArrayEnd => self.close(),
            Token::ObjectStart => {
                self.open.push(Open::Entry { key, value, parts: 0 });
                Ok(())
            }
            _ => Err(self.refused(field, ENTRY.to_string())),
        }
    }

    /// The line's value.
    fn root(&mut self, text: &[u8], token: &Token) -> Result<()> {
        match token {
            Token::ObjectStart => {
                self.open.push(Open::Object { field: None, names: 0, due: 0 });
                self.shredder.start_record()
            }
            _ => Err(no_object(&text[self.lines.line()], "")),
        }
    }

    fn key(&mut self, text: &Bytes, name: &Text) -> Result<()> {
        let chars = self.tokens.chars(text, name);
        match self.open.last_mut() {
            Some(Open::Object { field: of, names, due }) => {
                let Some(names) = self.names.get(*names) else { return Err(Error::internal("no names")) };
                // Most objects have their fields in the same order.
                let at = match names.list.get(*due) {
                    Some((name, _)) if name.as_bytes() == chars => Some(*due),
                    _ => core::str::from_utf8(chars).ok().and_then(|name| names.by_name.get(name)).copied(),
                };
                if let Some((at, (_, field))) = at.and_then(|at| Some((at, names.list.get(at)?))) {
                    *due = at + 1;
                    self.field = *field;
                    return Ok(());
                }
                let path = of.map(|of| self.path(of));
                let (what, options): (_, &[_]) = match self.is_given {
                    true => (format!("the field {} is missing from the schema", shown(chars)), &["schema"]),
                    false => {
                        (format!("no line before has a field {}", shown(chars)), &["infer_bytes", "schema"])
                    }
                };
                let error = Error::conversion(what).with(Detail::AdmittedBy(options));
                Err(error.at(|place| place.column = path))
            }
            Some(Open::Map { key, value, .. }) => {
                let (key, value) = (*key, *value);
                self.field = value;
                let Some(&Becomes::Leaf(scalar, _)) = self.fields.get(key) else {
                    return Err(Error::internal("a key that is no value"));
                };
                self.string(text, key, scalar, name)
            }
            Some(Open::Entry { key, value, parts }) => {
                self.field = match (chars, *parts) {
                    (b"key", 0) => *key,
                    (b"value", 1) => *value,
                    _ => {
                        let field = *key;
                        return Err(self.refused(field, ENTRY.to_string()));
                    }
                };
                *parts += 1;
                Ok(())
            }
            _ => Err(Error::internal("a name in no object")),
        }
    }

    /// An object or an array ends.
    fn close(&mut self) -> Result<()> {
        let ended = match self.open.pop() {
            Some(Open::Entries { field, .. }) => self.shredder.end_map(field),
            Some(Open::Entry { parts: 2, .. }) => Ok(()),
            // Null may be left out, as everywhere.
            Some(Open::Entry { value, parts: 1, .. }) => self.shredder.null(value),
            Some(Open::Entry { key, .. }) => Err(self.refused(key, ENTRY.to_string())),
            Some(Open::Object { field: Some(field), .. }) => self.shredder.end_struct(field),
            Some(Open::Object { field: None, .. }) => self.shredder.end_record(),
            Some(Open::Map { field, .. }) => self.shredder.end_map(field),
            Some(Open::List { field, .. }) => self.shredder.end_list(field),
            None => Err(Error::internal("the end of what is not open")),
        };
        kept(ended)
    }

    /// A value from a string.
    fn string(&mut self, text: &Bytes, field: usize, scalar: Scalar, string: &Text) -> Result<()> {
        let Some(bytes) = self.long(text, string) else {
            let chars = self.tokens.chars(text, string);
            let shredder = &mut self.shredder;
            return match with_value(scalar, chars, |value| shredder.value(field, value)) {
                Some(done) => kept(done),
                None => Err(self.no_value(field, scalar, self.tokens.chars(text, string))),
            };
        };
        match scalar {
            _ if scalar.is_text() => kept(self.shredder.shared(field, bytes)),
            // Spaces around such a long blob are not part of it.
            _ if scalar.is_blob()
                && matches!(bytes[..], [b'0', b'x' | b'X', ..])
                && bytes.len().is_multiple_of(2) =>
            {
                let mut blob = Blob { field, text: bytes, at: 2, bytes: Vec::new() };
                let length = blob.text.len() / 2;
                blob.bytes.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length))?;
                self.blob = Some(blob);
                Ok(())
            }
            _ => Err(self.no_value(field, scalar, &bytes)),
        }
    }

    /// The characters of a long string, which are shared instead of being copied.
    fn long(&mut self, text: &Bytes, string: &Text) -> Option<Bytes> {
        match string {
            Text::Plain(part) if part.len() > VALUE_BYTES_MAX => Some(text.slice(part.clone())),
            Text::Built if self.tokens.built().len() > VALUE_BYTES_MAX => {
                Some(self.tokens.take_built().into())
            }
            _ => None,
        }
    }

    /// A slice of a long blob.
    fn read_blob(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let Some(mut blob) = self.blob.take() else { return Ok(()) };
        let end = blob.text.len().min(blob.at + VALUE_BYTES_MAX);
        budget.charge(READ_PRICE, end - blob.at, 0);
        if parse::hex(&blob.text[blob.at..end], &mut blob.bytes).is_none() {
            return Err(self.no_value(blob.field, Scalar::Blob, &blob.text));
        }
        blob.at = end;
        if end == blob.text.len() {
            return kept(self.shredder.shared(blob.field, blob.bytes.into()));
        }
        self.blob = Some(blob);
        Ok(())
    }

    fn number(&mut self, field: usize, scalar: Scalar, number: &[u8]) -> Result<()> {
        match scalar {
            Scalar::Integer(64) => match parse::json_integer(number) {
                Some(Some(value)) => kept(self.shredder.value(field, Value::Int64(value))),
                _ => Err(self.misfit(field, &shown_number(number))),
            },
            Scalar::Double => {
                let is_integer = parse::json_integer(number).is_some();
                match parse::double(number) {
                    Some(value) if !is_integer || value.abs() <= DOUBLE_INTEGER_MAX => {
                        kept(self.shredder.value(field, Value::Double(value)))
                    }
                    _ => {
                        let what = format!("{} does not fit a double; only text holds it", shown(number));
                        Err(self.refused(field, what))
                    }
                }
            }
            _ => Err(self.misfit(field, &shown_number(number))),
        }
    }

    /// A value that is kept as written.
    fn raw(&mut self, text: &Bytes, part: core::ops::Range<usize>) -> Result<()> {
        let field = match self.open.last() {
            Some(Open::List { element, .. }) => *element,
            _ => self.field,
        };
        match self.fields.get(field) {
            Some(Becomes::Leaf(scalar, _)) if scalar.is_text() && part.len() > VALUE_BYTES_MAX => {
                kept(self.shredder.shared(field, text.slice(part)))
            }
            Some(Becomes::Leaf(scalar, _)) => self.parsed(field, *scalar, &text[part]),
            _ => Err(Error::internal("a value of what is none")),
        }
    }

    /// A value from its text.
    fn parsed(&mut self, field: usize, scalar: Scalar, text: &[u8]) -> Result<()> {
        let is_short = text.len() <= VALUE_BYTES_MAX || scalar.is_text();
        let shredder = &mut self.shredder;
        match is_short.then(|| with_value(scalar, text, |value| shredder.value(field, value))).flatten() {
            Some(done) => kept(done),
            None => Err(self.no_value(field, scalar, text)),
        }
    }

    #[cold]
    fn no_value(&self, field: usize, scalar: Scalar, text: &[u8]) -> Error {
        self.refused(field, format!("{} is not {}", shown(text), scalar.with_article()))
    }

    #[cold]
    fn misfit(&self, field: usize, found: &str) -> Error {
        let wanted = match self.fields.get(field) {
            Some(Becomes::Leaf(scalar, _)) => scalar.with_article(),
            Some(Becomes::List { .. }) => "a list".to_string(),
            _ => "an object".to_string(),
        };
        self.refused(field, format!("{found}, where {wanted} is expected"))
    }

    #[cold]
    fn refused(&self, field: usize, what: String) -> Error {
        let error = Error::conversion(what).at(|place| place.column = Some(self.path(field)));
        let is_given = self.is_given || matches!(self.fields.get(field), Some(Becomes::Leaf(_, true)));
        if is_given { error } else { error.with(Detail::AdmittedBy(&["infer_bytes", "types"])) }
    }

    fn path(&self, field: usize) -> String {
        self.shredder.path(field).unwrap_or_default()
    }
}

fn shown_number(number: &[u8]) -> String {
    String::from_utf8_lossy(&number[..number.len().min(64)]).into_owned()
}

/// What the shredder considers misuse is an error in the line.
#[inline]
fn kept(done: Result<()>) -> Result<()> {
    done.map_err(|error| match error.kind() {
        ErrorKind::Misuse => {
            let place = error.place().clone();
            Error::corrupt(error.message().to_string()).at(|at| at.column = place.column)
        }
        _ => error,
    })
}
