//! Tables of JSON lines: an object a line, whose fields are columns.
//!
//! Source: RFC 8259, and what is common of <https://jsonlines.org>: UTF-8, a value a line, lines of nothing passed over.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, ErrorKind, Result};
use marquetry_kernels::utf8;
use marquetry_parquet::batch::{Batch, Layout};
use marquetry_parquet::record::{RecordSink, ShredOptions, Shredder, Value};
use marquetry_parquet::schema::Schema;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::kind::{Kind, Kinds};
use super::stream::{Piece, Stream};
use super::types::{Told, ToldType};
use super::{shown, with_value};

/// What values seen so far have in common.
#[derive(Debug, Default)]
pub(super) enum Seen {
    /// Nothing but nulls.
    #[default]
    Nothing,
    Boolean(Kinds),
    Number(Kinds),
    String(Kinds),
    List(Box<Seen>),
    Object(Fields),
}

/// The fields of objects, in the order in which they were first seen.
#[derive(Debug, Default)]
pub(super) struct Fields {
    list: Vec<(String, Seen)>,
    by_name: HashMap<String, usize>,
}

/// Columns at most.
const FIELDS_MAX: usize = 100_000;

impl Seen {
    /// Takes the whole lines of a piece into account; says where the rest begins. `lines` counts those before.
    ///
    /// # Errors
    ///
    /// `Corrupt` for a line that is no object; `Conversion` for values that no type holds.
    pub(super) fn add(&mut self, piece: &Piece, lines: &mut u64) -> Result<usize> {
        let end = whole_lines(piece);
        each_line(&piece.bytes[..end], piece.offset, lines, |line| {
            if !matches!(self, Seen::Object(_)) {
                *self = Seen::Object(Fields::default());
            }
            check_object(line)?;
            let mut json = serde_json::Deserializer::from_str(line);
            let mut wrong = None;
            // The root, and what it is called.
            let seen = See { seen: &mut *self, wrong: &mut wrong };
            let done = seen.deserialize(&mut json).and_then(|()| json.end());
            done.map_err(|error| wrong.take().unwrap_or_else(|| refused(&error)))
        })?;
        Ok(end)
    }

    /// The columns that were seen.
    ///
    /// # Errors
    ///
    /// `Corrupt` where there are none, or a group of none.
    pub(super) fn columns(&self) -> Result<Vec<Told>> {
        match self {
            Seen::Object(fields) if !fields.list.is_empty() => fields.told(),
            _ => Err(Error::corrupt("it has no field, so its columns are not known; --schema tells them")),
        }
    }

    fn told(&self, name: &str) -> Result<ToldType> {
        Ok(match self {
            // Text holds whatever may come.
            Seen::Nothing => ToldType::Leaf(Kind::Text),
            Seen::Boolean(kinds) | Seen::Number(kinds) | Seen::String(kinds) => ToldType::Leaf(kinds.kind()),
            Seen::List(element) => ToldType::List(Box::new(element.told(name)?)),
            Seen::Object(fields) if fields.list.is_empty() => {
                let what = "objects without a field, which Parquet cannot hold; --schema tells what they are";
                return Err(Error::corrupt(what).at(|place| place.column = Some(name.to_string())));
            }
            Seen::Object(fields) => ToldType::Struct(fields.told()?),
        })
    }

    fn words(&self) -> &'static str {
        match self {
            Seen::Nothing => "null",
            Seen::Boolean(_) => "true or false",
            Seen::Number(_) => "a number",
            Seen::String(_) => "a string",
            Seen::List(_) => "an array",
            Seen::Object(_) => "an object",
        }
    }
}

impl Fields {
    fn told(&self) -> Result<Vec<Told>> {
        let told =
            |(name, seen): &(String, Seen)| Ok(Told { name: name.clone(), told_type: seen.told(name)? });
        self.list.iter().map(told).collect()
    }

    fn field(&mut self, name: &str) -> Option<&mut Seen> {
        if let Some(&at) = self.by_name.get(name) {
            return self.list.get_mut(at).map(|(_, seen)| seen);
        }
        if self.list.len() == FIELDS_MAX {
            return None;
        }
        self.by_name.insert(name.to_string(), self.list.len());
        self.list.push((name.to_string(), Seen::Nothing));
        self.list.last_mut().map(|(_, seen)| seen)
    }
}

/// Where the last whole line of a piece ends.
fn whole_lines(piece: &Piece) -> usize {
    match piece.bytes.iter().rposition(|byte| *byte == b'\n') {
        _ if piece.is_last => piece.bytes.len(),
        Some(last) => last + 1,
        None => 0,
    }
}

/// Calls for each line that is not empty, and puts its number into errors.
fn each_line(
    text: &[u8],
    offset: u64,
    lines: &mut u64,
    mut each: impl FnMut(&str) -> Result<()>,
) -> Result<()> {
    let mut at = 0;
    while at < text.len() {
        at += next_line(&text[at..], offset + u64_of(at), *lines, &mut each)?;
        *lines += 1;
    }
    Ok(())
}

/// Calls for the first line, if it is not empty; says how long it is.
fn next_line(
    text: &[u8],
    offset: u64,
    lines: u64,
    each: &mut impl FnMut(&str) -> Result<()>,
) -> Result<usize> {
    let length = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |end| end + 1);
    let mut line = &text[..length];
    if offset == 0 {
        line = line.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(line);
    }
    let numbered = |error: Error| {
        let place = error.place().clone();
        at_line_of(lines + 1, error.kind(), error.message()).at(|at| *at = place)
    };
    if let Some(wrong) = utf8::error_at(line) {
        let error = Error::corrupt("bytes that are not UTF-8").at_offset(offset + u64_of(wrong));
        return Err(numbered(error));
    }
    let line = std::str::from_utf8(line.trim_ascii()).unwrap_or_default();
    if !line.is_empty() {
        each(line).map_err(numbered)?;
    }
    Ok(length)
}

fn check_object(line: &str) -> Result<()> {
    match line.starts_with('{') {
        true => Ok(()),
        false => {
            let hint = if line.starts_with('[') { "; `jq -c '.[]'` makes lines of an array" } else { "" };
            Err(Error::corrupt(format!("{} is no object: each line is one{hint}", shown(line.as_bytes()))))
        }
    }
}

fn at_line_of(line: u64, kind: ErrorKind, what: &str) -> Error {
    Error::new(kind, format!("line {line}: {what}"))
}

/// What serde says of a line, without its own count of lines.
fn refused(error: &serde_json::Error) -> Error {
    let said = error.to_string();
    let what = said.split(" at line ").next().unwrap_or_default();
    let hint =
        if error.is_eof() { "; an object ends on its line: `jq -c .` makes lines of others" } else { "" };
    Error::corrupt(format!("{what}, at its character {}{hint}", error.column()))
}

/// Takes a value into account.
struct See<'a> {
    seen: &'a mut Seen,
    wrong: &'a mut Option<Error>,
}

impl See<'_> {
    fn scalar<E: serde::de::Error>(
        self,
        words: &str,
        of: impl FnOnce(Kinds) -> Seen,
        see: impl FnOnce(&mut Kinds),
    ) -> Result<(), E> {
        let mut kinds = match &*self.seen {
            Seen::Nothing => Kinds::ANY,
            Seen::Boolean(kinds) | Seen::Number(kinds) | Seen::String(kinds) => *kinds,
            Seen::List(_) | Seen::Object(_) => return self.clash(words),
        };
        see(&mut kinds);
        let new = of(kinds);
        let is_same = matches!(*self.seen, Seen::Nothing) || new.words() == self.seen.words();
        // Integers that a binary64 does not hold, beside fractions.
        let is_held = !matches!(new, Seen::Number(kinds) if kinds.is_text());
        if !is_same || !is_held {
            return self.clash(words);
        }
        *self.seen = new;
        Ok(())
    }

    fn clash<E: serde::de::Error>(self, words: &str) -> Result<(), E> {
        let before = self.seen.words();
        let what = match before == words {
            true => format!("{words}, and no type holds all of the numbers exactly; text in --schema does"),
            false => format!("{words}, where the lines before have {before}; text in --schema holds both"),
        };
        *self.wrong = Some(Error::conversion(what));
        Err(E::custom("a clash"))
    }

    fn named<E>(wrong: &mut Option<Error>, name: &str, done: Result<(), E>) -> Result<(), E> {
        if done.is_err()
            && let Some(error) = wrong.take()
        {
            // From the inside out.
            let path = match &error.place().column {
                Some(inner) => format!("{name}.{inner}"),
                None => name.to_string(),
            };
            let renamed = Error::new(error.kind(), error.message().to_string());
            *wrong = Some(renamed.at(|place| place.column = Some(path)));
        }
        done
    }
}

impl<'de> DeserializeSeed<'de> for See<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for See<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<(), E> {
        self.scalar("true or false", Seen::Boolean, Kinds::see_boolean)
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        self.scalar("a number", Seen::Number, |kinds| kinds.see_integer(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => {
                *self.wrong = Some(Error::conversion(format!(
                    "{value} is beyond 64 bits with a sign; text in --schema holds it"
                )));
                Err(E::custom("too large"))
            }
        }
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<(), E> {
        self.scalar("a number", Seen::Number, Kinds::see_double)
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        self.scalar("a string", Seen::String, |kinds| kinds.see_text(value.as_bytes()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        if matches!(self.seen, Seen::Nothing) {
            *self.seen = Seen::List(Box::default());
        }
        let Seen::List(element) = self.seen else { return self.clash("an array") };
        while array.next_element_seed(See { seen: element, wrong: self.wrong })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        if matches!(self.seen, Seen::Nothing) {
            *self.seen = Seen::Object(Fields::default());
        }
        let Seen::Object(fields) = self.seen else { return self.clash("an object") };
        while let Some(name) = object.next_key::<std::borrow::Cow<'_, str>>()? {
            let Some(seen) = fields.field(&name) else {
                *self.wrong =
                    Some(Error::new(ErrorKind::LimitExceeded, format!("more than {FIELDS_MAX} fields")));
                return Err(A::Error::custom("too many"));
            };
            let done = object.next_value_seed(See { seen, wrong: self.wrong });
            See::named(self.wrong, &name, done)?;
        }
        Ok(())
    }
}

/// How lines are rows.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) columns: Vec<Told>,
    pub(super) schema: Arc<Schema>,
    /// The types are told, not inferred.
    pub(super) is_told: bool,
}

/// What becomes of a value: for each field of the shredder's program.
#[derive(Debug)]
enum Plan {
    Leaf(Kind),
    List { element: usize },
    Map { key: usize, value: usize },
    Struct(Names),
}

/// The fields of objects.
#[derive(Debug, Default)]
struct Names {
    list: Vec<(String, usize)>,
    by_name: HashMap<String, usize>,
}

/// Rows of a text.
pub(super) struct Reader {
    stream: Stream,
    piece: Piece,
    at: usize,
    lines: u64,
    /// Leaves that are read, in their order.
    reads: Vec<usize>,
    rows: Rows,
}

/// Rows, and what they are put into.
struct Rows {
    shredder: Shredder,
    plans: Vec<Plan>,
    root: Names,
    is_told: bool,
    /// Why a line is refused, if that is not serde's to say.
    wrong: Option<Error>,
}

impl Reader {
    /// Begins to read.
    ///
    /// # Errors
    ///
    /// As the stream, and as [`Shredder::new`].
    pub(super) fn new(form: &Form, mut stream: Stream, reads: &[usize], batch_rows: usize) -> Result<Reader> {
        let leaves: Vec<usize> = (0..form.schema.leaves().len()).collect();
        let options = ShredOptions { batch_rows, layout: Layout::Spaced, ..ShredOptions::default() };
        let shredder = Shredder::new(Arc::clone(&form.schema), &leaves, options)?;
        let mut plans: Vec<Plan> = Vec::new();
        let program = Arc::clone(shredder.program());
        let fields = |of: usize| program.fields().get(of).map_or(&[][..], |field| &field.children);
        let names = |told: &[Told], fields: &[usize], todo: &mut Vec<(usize, ToldType)>| {
            let mut names = Names::default();
            for (told, &field) in told.iter().zip(fields) {
                names.by_name.insert(told.name.clone(), names.list.len());
                names.list.push((told.name.clone(), field));
                todo.push((field, told.told_type.clone()));
            }
            names
        };
        let mut todo = Vec::new();
        let root = names(&form.columns, program.roots(), &mut todo);
        plans.resize_with(program.fields().len(), || Plan::Leaf(Kind::Text));
        while let Some((field, told)) = todo.pop() {
            let children = fields(field);
            plans[field] = match told {
                ToldType::Leaf(kind) => Plan::Leaf(kind),
                ToldType::List(element) => {
                    todo.extend(children.iter().map(|child| (*child, (*element).clone())));
                    Plan::List { element: children.first().copied().unwrap_or_default() }
                }
                ToldType::Map(key, value) => {
                    let [key_field, value_field] = *children else {
                        return Err(Error::internal("a map that has no values"));
                    };
                    todo.push((key_field, ToldType::Leaf(key)));
                    todo.push((value_field, *value));
                    Plan::Map { key: key_field, value: value_field }
                }
                ToldType::Struct(told) => Plan::Struct(names(&told, children, &mut todo)),
            };
        }
        let piece = stream.next(&[])?;
        let rows = Rows { shredder, plans, root, is_told: form.is_told, wrong: None };
        Ok(Reader { stream, piece, at: 0, lines: 0, reads: reads.to_vec(), rows })
    }

    /// The next rows. `None` after the last.
    ///
    /// # Errors
    ///
    /// `Corrupt` for a line that is no object; `Conversion` for a value that is not what its column holds; the stream's.
    pub(super) fn next(&mut self) -> Result<Option<Batch>> {
        let mut end = whole_lines(&self.piece);
        loop {
            while self.at < end && !self.rows.shredder.is_full() {
                let (text, offset) = (&self.piece.bytes[self.at..end], self.piece.offset + u64_of(self.at));
                self.at += next_line(text, offset, self.lines, &mut |line| self.rows.line(line))?;
                self.lines += 1;
            }
            if self.rows.shredder.is_full() || (self.piece.is_last && self.rows.shredder.rows() > 0) {
                break;
            }
            if self.piece.is_last {
                return Ok(None);
            }
            self.piece = self.stream.next(&self.piece.bytes[self.at..])?;
            self.at = 0;
            end = whole_lines(&self.piece);
        }
        let batch = self.rows.shredder.take(&mut Budget::unlimited())?;
        let mut batch = batch.ok_or_else(|| Error::internal("a budget without an end is spent"))?;
        if self.reads.len() != batch.columns.len() || !self.reads.is_sorted() {
            batch.columns = self.reads.iter().map(|leaf| batch.columns[*leaf].clone()).collect();
        }
        Ok(Some(batch))
    }
}

impl Rows {
    fn line(&mut self, line: &str) -> Result<()> {
        check_object(line)?;
        let mut json = serde_json::Deserializer::from_str(line);
        self.shredder.start_record()?;
        let done = json.deserialize_map(Record(self)).and_then(|()| json.end());
        done.map_err(|error| self.wrong.take().unwrap_or_else(|| refused(&error)))?;
        self.shredder.end_record()
    }

    /// Keeps an error of ours, which serde cannot carry.
    fn keep<T, E: serde::de::Error>(&mut self, done: Result<T>) -> Result<T, E> {
        done.map_err(|error| {
            // What a shredder takes for a misuse is what the line has.
            self.wrong = Some(match error.kind() {
                ErrorKind::Misuse => {
                    let place = error.place().clone();
                    Error::corrupt(error.message().to_string()).at(|at| *at = place)
                }
                _ => error,
            });
            E::custom("refused")
        })
    }

    fn refuse<T, E: serde::de::Error>(&mut self, field: usize, what: &str) -> Result<T, E> {
        let path = self.path(field);
        let hint = match self.is_told {
            true => "",
            false => "; --infer-all looks at all lines first, --schema tells the types",
        };
        let error = Error::conversion(format!("{what}{hint}")).at(|place| place.column = Some(path));
        self.keep(Err(error))
    }

    fn path(&self, field: usize) -> String {
        self.shredder.path(field).unwrap_or_default()
    }

    fn misfit<T, E: serde::de::Error>(&mut self, field: usize, found: &str) -> Result<T, E> {
        let wanted = match &self.plans[field] {
            Plan::Leaf(kind) => kind.name(),
            Plan::List { .. } => "list".to_string(),
            Plan::Map { .. } | Plan::Struct(_) => "object".to_string(),
        };
        self.refuse(field, &format!("{found}, where {wanted} is to be"))
    }

    /// The fields of an object.
    fn fields<'de, A: MapAccess<'de>>(
        &mut self,
        mut object: A,
        names: &Names,
        of: Option<usize>,
    ) -> Result<(), A::Error> {
        // Most objects have their fields in the same order.
        let mut due = 0;
        while let Some(found) = object.next_key_seed(Key { names, due })? {
            match found {
                Ok(at) => {
                    due = at + 1;
                    let (rows, field) = (&mut *self, names.list[at].1);
                    object.next_value_seed(One { rows, field })?;
                }
                Err(name) => {
                    let name = shown(name.as_bytes());
                    let what = match self.is_told {
                        true => format!("the field {name} is not in --schema"),
                        false => format!(
                            "no line before has a field {name}; --infer-all looks at all lines first, --schema tells the fields"
                        ),
                    };
                    let path = of.map(|of| self.path(of));
                    return self.keep(Err(Error::conversion(what).at(|place| place.column = path)));
                }
            }
        }
        Ok(())
    }
}

/// A line's object.
struct Record<'a>(&'a mut Rows);

impl<'de> Visitor<'de> for Record<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, object: A) -> Result<(), A::Error> {
        let names = std::mem::take(&mut self.0.root);
        let done = self.0.fields(object, &names, None);
        self.0.root = names;
        done
    }
}

/// The name of a field: its place among those that are known, or itself.
struct Key<'a> {
    names: &'a Names,
    due: usize,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Result<usize, String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = Result<usize, String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field's name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        if self.names.list.get(self.due).is_some_and(|(due, _)| due == name) {
            return Ok(Ok(self.due));
        }
        Ok(self.names.by_name.get(name).copied().ok_or_else(|| name.to_string()))
    }
}

/// All integers up to this one are doubles: 2^53.
const DOUBLE_INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// A value of a field.
struct One<'a> {
    rows: &'a mut Rows,
    field: usize,
}

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.rows.plans[self.field] {
            // What is told may be written in another way than its own.
            Plan::Leaf(kind) if self.rows.is_told => {
                let raw = <&RawValue as serde::Deserialize>::deserialize(deserializer)?;
                self.raw(kind, raw.get())
            }
            // Of a number's digits serde keeps no more than a double holds.
            Plan::Leaf(Kind::Double) => {
                let raw = <&RawValue as serde::Deserialize>::deserialize(deserializer)?;
                self.double(raw.get())
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl One<'_> {
    fn raw<E: serde::de::Error>(self, kind: Kind, raw: &str) -> Result<(), E> {
        let string;
        let text = match raw.as_bytes() {
            b"null" => return self.null(),
            [b'"', ..] => {
                string = serde_json::from_str::<std::borrow::Cow<'_, str>>(raw).map_err(E::custom)?;
                &*string
            }
            _ => raw,
        };
        self.text(kind, text)
    }

    /// A double, or an integer that is one.
    fn double<E: serde::de::Error>(self, raw: &str) -> Result<(), E> {
        match raw.as_bytes() {
            b"null" => return self.null(),
            [b'-' | b'0'..=b'9', ..] => {}
            [b'"', ..] => return self.rows.misfit(self.field, "a string"),
            [b'[', ..] => return self.rows.misfit(self.field, "an array"),
            [b'{', ..] => return self.rows.misfit(self.field, "an object"),
            _ => return self.rows.misfit(self.field, raw),
        }
        let value = raw.parse().unwrap_or(f64::INFINITY);
        let is_integer = !raw.contains(['.', 'e', 'E']);
        if value.is_infinite() || is_integer && value.abs() > DOUBLE_INTEGER_MAX {
            let what = format!("{} is no double; text in --schema holds it", shown(raw.as_bytes()));
            return self.rows.refuse(self.field, &what);
        }
        self.value(Value::Double(value))
    }

    fn null<E: serde::de::Error>(self) -> Result<(), E> {
        let done = self.rows.shredder.null(self.field);
        self.rows.keep(done)
    }

    /// A value from its text.
    fn text<E: serde::de::Error>(self, kind: Kind, text: &str) -> Result<(), E> {
        let shredder = &mut self.rows.shredder;
        match with_value(kind, text.as_bytes(), |value| shredder.value(self.field, value)) {
            Some(done) => self.rows.keep(done),
            None => {
                let what = format!("{} is no {}", shown(text.as_bytes()), kind.name());
                self.rows.refuse(self.field, &what)
            }
        }
    }

    fn value<E: serde::de::Error>(self, value: Value<'_>) -> Result<(), E> {
        let done = self.rows.shredder.value(self.field, value);
        self.rows.keep(done)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.null()
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<(), E> {
        match self.rows.plans[self.field] {
            Plan::Leaf(Kind::Boolean) => self.value(Value::Boolean(value)),
            _ => self.rows.misfit(self.field, if value { "true" } else { "false" }),
        }
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<(), E> {
        match self.rows.plans[self.field] {
            Plan::Leaf(Kind::Integer(64)) => self.value(Value::Int64(value)),
            _ => self.rows.misfit(self.field, &value.to_string()),
        }
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<(), E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => self.rows.misfit(self.field, &value.to_string()),
        }
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<(), E> {
        self.rows.misfit(self.field, &value.to_string())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        match self.rows.plans[self.field] {
            Plan::Leaf(Kind::Text) => self.value(Value::Bytes(value.as_bytes())),
            Plan::Leaf(kind @ (Kind::Date | Kind::Timestamp { .. })) => self.text(kind, value),
            _ => self.rows.misfit(self.field, "a string"),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<(), A::Error> {
        let Plan::List { element } = self.rows.plans[self.field] else {
            return self.rows.misfit(self.field, "an array");
        };
        let done = self.rows.shredder.start_list(self.field);
        self.rows.keep(done)?;
        while array.next_element_seed(One { rows: &mut *self.rows, field: element })?.is_some() {}
        let done = self.rows.shredder.end_list(self.field);
        self.rows.keep(done)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let One { rows, field } = self;
        match &mut rows.plans[field] {
            Plan::Struct(names) => {
                let names = std::mem::take(names);
                let done = rows.shredder.start_struct(field);
                rows.keep(done)?;
                rows.fields(object, &names, Some(field))?;
                rows.plans[field] = Plan::Struct(names);
                let done = rows.shredder.end_struct(field);
                rows.keep(done)
            }
            Plan::Map { key, value } => {
                let (key, value) = (*key, *value);
                let done = rows.shredder.start_map(field);
                rows.keep(done)?;
                let Plan::Leaf(kind) = rows.plans[key] else { return rows.misfit(field, "an object") };
                while let Some(name) = object.next_key::<std::borrow::Cow<'_, str>>()? {
                    One { rows: &mut *rows, field: key }.text(kind, &name)?;
                    object.next_value_seed(One { rows: &mut *rows, field: value })?;
                }
                let done = rows.shredder.end_map(field);
                rows.keep(done)
            }
            _ => rows.misfit(field, "an object"),
        }
    }
}
