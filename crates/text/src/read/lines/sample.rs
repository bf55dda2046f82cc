//! Infers the columns of JSON lines from the first lines.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Detail, Error, Price, Result, Step};
use marquetry_parquet::schema::TimeUnit;
use marquetry_parquet::write::Fed;

use super::super::place::shown;
use super::json::{Text, Token, Tokens};
use super::{Form, Lines, Next, no_object};
use crate::columns::NAME_BYTES_MAX;
use crate::options::{TextOptions, Wanted, is_wanted_as_text};
use crate::parse;
use crate::scalar::Kinds;
use crate::{Column, ColumnType, Columns, Scalar, Types};

/// The price of examining a line.
pub(crate) const SEE_PRICE: Price = Price { kib: 6 << 10, kilovalue: 60 << 10 };
/// Bytes of a line that are looked at at once.
const SLICE_BYTES: usize = 1 << 10;
/// Maximum columns, fields of structs included.
const FIELDS_MAX: usize = 100_000;
/// Maximum levels of a line.
const DEPTH_MAX: usize = 127;
/// How many fields objects may lack per field that they have, on average, as long as new ones keep coming; and the total
/// that is always allowed. Each missing field is a null that must be written: if each object had new fields, the table
/// would grow with the square of their number.
const MISSING_PER_VALUE: u64 = 256;
const MISSING_MIN: u64 = 16_000_000;
/// Fields keep coming if so many fifths of them, or fewer, were known after a quarter to a half of the objects.
const KNOWN_FIFTHS: usize = 3;

/// What is known about JSON lines after sampling.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    /// What was found; the first is the line.
    nodes: Vec<Node>,
    schema: Option<Columns>,
    types: Types,
    wanted: Arc<Vec<(String, Wanted)>>,
    timestamp_unit: Option<TimeUnit>,
    comment: Option<u8>,
}

/// What values have in common.
#[derive(Debug, Clone, Default)]
enum Node {
    /// Only nulls.
    #[default]
    Nothing,
    Boolean(Kinds),
    Number(Kinds),
    String(Kinds),
    /// The elements.
    List(usize),
    Object(Box<Fields>),
    /// Whatever it is: its type was given.
    Given(Box<ColumnType>),
}

/// The fields of objects, in order of first appearance.
#[derive(Debug, Clone, Default)]
struct Fields {
    list: Vec<(Arc<str>, usize)>,
    by_name: BTreeMap<Arc<str>, usize>,
}

/// Looks at lines.
#[derive(Debug)]
pub(crate) struct Sampler {
    lines: Lines,
    infer_bytes: u64,
    sample: Sample,
    tokens: Tokens,
    is_in_line: bool,
    /// A line was seen.
    has_rows: bool,
    is_over: bool,
    open: Vec<Open>,
    /// Fields that objects had, and lacked.
    values: u64,
    missing: u64,
    /// Fields that were known after a power of two of objects: the last one, and the one before.
    known: [usize; 2],
    /// Objects that have ended.
    objects: u64,
    /// The depth of a value whose type was given, while it is passed over.
    passed: Option<usize>,
}

/// An object or an array that is open.
#[derive(Debug, Clone, Copy)]
struct Open {
    node: usize,
    /// For an object, its last field, and how many fields it had; for an array, its elements' node.
    field: usize,
    fields: usize,
    is_list: bool,
}

impl Sampler {
    pub(crate) fn new(options: &TextOptions) -> Sampler {
        let (schema, types) = (options.schema.clone(), options.types.clone());
        let (timestamp_unit, comment) = (options.timestamp_unit, options.comment);
        let wanted = Arc::new(options.wanted.clone());
        let nodes = alloc::vec![Node::Nothing];
        let sample = Sample { nodes, schema, types, wanted, timestamp_unit, comment };
        Sampler {
            lines: Lines::new(options.row_bytes(), comment),
            infer_bytes: options.infer_bytes,
            // Given columns need no examination.
            is_over: sample.schema.is_some(),
            sample,
            tokens: Tokens::default(),
            is_in_line: false,
            has_rows: false,
            open: Vec::new(),
            values: 0,
            missing: 0,
            known: [0; 2],
            objects: 0,
            passed: None,
        }
    }

    pub(crate) fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        self.lines.feed(bytes)
    }

    pub(crate) fn finish(&mut self) {
        self.lines.window.finish();
    }

    /// The result, once it is complete.
    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Option<Sample>>> {
        while !self.is_over {
            if self.is_in_line {
                let seen = self.see(budget).map_err(|error| self.lines.numbered(error))?;
                if seen {
                    self.lines.end_line();
                    (self.is_in_line, self.has_rows) = (false, true);
                }
            } else {
                match self.lines.next(budget)? {
                    Next::Line => {
                        self.lines.begin(&mut self.tokens).map_err(|error| self.lines.numbered(error))?;
                        self.open.clear();
                        self.is_in_line = true;
                    }
                    Next::Room => return Ok(Step::Ready(None)),
                    Next::Yield => return Ok(Step::Yield),
                    Next::End => self.is_over = true,
                    Next::Piece => {
                        let read = self.lines.window.offset() + u64_of(self.lines.searched);
                        if read >= self.infer_bytes && self.has_rows {
                            self.is_over = true;
                        } else {
                            self.lines.next_piece()?;
                        }
                    }
                }
            }
            if budget.is_spent() && !self.is_over {
                return Ok(Step::Yield);
            }
        }
        Ok(Step::Ready(Some(core::mem::take(&mut self.sample))))
    }

    /// Sees a slice of the line. True after its end.
    fn see(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
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
            if self.tokens.at() >= until {
                break false;
            }
        };
        budget.charge(SEE_PRICE, self.tokens.at() - from, tokens);
        Ok(is_end)
    }

    fn token(&mut self, text: &[u8], token: Token) -> Result<()> {
        if let Some(depth) = self.passed {
            if self.tokens.depth() == depth {
                self.passed = None;
            }
            return Ok(());
        }
        let node = match self.open.last() {
            None => 0,
            Some(open) if open.is_list => open.field,
            Some(Open { node, field, .. }) => match self.sample.nodes.get(*node) {
                Some(Node::Object(fields)) => fields.list.get(*field).map_or(0, |(_, node)| *node),
                _ => 0,
            },
        };
        match token {
            Token::Key(name) => return self.key(text, &name),
            Token::ObjectEnd | Token::ArrayEnd => return self.close(),
            Token::ObjectStart | Token::ArrayStart if self.is_given(node) => {
                self.passed = Some(self.tokens.depth() - 1);
            }
            _ if self.is_given(node) => {}
            Token::ObjectStart => return self.start(node, false),
            _ if self.open.is_empty() => {
                let line = self.lines.line();
                return Err(no_object(&text[line], ""));
            }
            Token::ArrayStart => return self.start(node, true),
            Token::Null | Token::End => {}
            Token::Boolean(_) => {
                self.scalar(node, "true or false", Node::Boolean, Kinds::see_boolean)?;
            }
            Token::Number(part) => {
                let number = &text[part];
                match parse::json_integer(number) {
                    Some(Some(value)) => {
                        self.scalar(node, "a number", Node::Number, |kinds| kinds.see_integer(value))?;
                    }
                    Some(None) => {
                        let number = shown(number);
                        let what =
                            format!("{number} does not fit a signed integer of 64 bits; only text holds it");
                        return Err(self.located(Error::conversion(what)));
                    }
                    None if parse::is_too_large(number) => {
                        let number = shown(number);
                        let what = format!("{number} is too large for a double; only text holds it");
                        return Err(self.located(Error::conversion(what)));
                    }
                    None => self.scalar(node, "a number", Node::Number, Kinds::see_double)?,
                }
            }
            Token::String(string) => {
                let seen = self.tokens.chars(text, &string);
                let mut one = Kinds::ANY;
                one.see_text(seen);
                // NaN and infinities among numbers.
                let of = match self.sample.nodes.get(node) {
                    Some(Node::Number(_)) if one.is_words() => Node::Number,
                    _ => Node::String,
                };
                self.scalar(node, "a string", of, |kinds| *kinds = kinds.join(one))?;
            }
        }
        Ok(())
    }

    fn is_given(&self, node: usize) -> bool {
        matches!(self.sample.nodes.get(node), Some(Node::Given(_)))
    }

    fn scalar(
        &mut self,
        at: usize,
        words: &'static str,
        of: impl FnOnce(Kinds) -> Node,
        see: impl FnOnce(&mut Kinds),
    ) -> Result<()> {
        let Some(node) = self.sample.nodes.get_mut(at) else { return Err(Error::internal("no such node")) };
        let mut kinds = match *node {
            Node::Nothing => Kinds::ANY,
            Node::Boolean(kinds) | Node::Number(kinds) | Node::String(kinds) => kinds,
            Node::List(_) | Node::Object(_) | Node::Given(_) => return Err(self.clash(at, words)),
        };
        see(&mut kinds);
        let new = of(kinds);
        let is_same = match (&*node, &new) {
            (Node::Nothing, _) => true,
            // All strings so far were NaN and infinities.
            (Node::String(kinds), Node::Number(_)) if kinds.is_words() => true,
            (node, new) => node.words() == new.words(),
        };
        // Integers that a binary64 cannot hold, mixed with fractions.
        let is_held = !matches!(new, Node::Number(kinds) if kinds.is_text());
        if !is_same || !is_held {
            return Err(self.clash(at, words));
        }
        *node = new;
        Ok(())
    }

    #[cold]
    fn clash(&self, node: usize, words: &str) -> Error {
        let before = self.sample.nodes.get(node).map_or("", Node::words);
        self.located(clash(before, words))
    }

    /// The names of the current field, joined with dots.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in self.open.iter().filter(|open| !open.is_list) {
            if let Some(Node::Object(fields)) = self.sample.nodes.get(open.node)
                && let Some((name, _)) = fields.list.get(open.field)
            {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
        }
        path
    }

    /// An error about the current value.
    #[cold]
    fn located(&self, error: Error) -> Error {
        let path = self.path();
        // The line itself has no name.
        let option: &'static [&'static str] = if path.is_empty() { &["schema"] } else { &["types"] };
        let error = if error.detail().is_some() { error } else { error.with(Detail::AdmittedBy(option)) };
        if path.is_empty() { error } else { error.at(|place| place.column = Some(path)) }
    }

    /// Begins an object or an array.
    fn start(&mut self, at: usize, is_list: bool) -> Result<()> {
        if self.open.len() == DEPTH_MAX {
            let what = format!("values nested more than {DEPTH_MAX} deep: the recursion limit");
            return Err(Error::unsupported(what));
        }
        let next = self.sample.nodes.len();
        match self.sample.nodes.get_mut(at) {
            Some(node @ Node::Nothing) if is_list => {
                *node = Node::List(next);
                self.sample.nodes.push(Node::Nothing);
            }
            Some(node @ Node::Nothing) => *node = Node::Object(Box::default()),
            _ => {}
        }
        let field = match self.sample.nodes.get(at) {
            Some(Node::List(element)) if is_list => *element,
            Some(Node::Object(_)) if !is_list => usize::MAX,
            _ => return Err(self.clash(at, if is_list { "an array" } else { "an object" })),
        };
        self.open.push(Open { node: at, field, fields: 0, is_list });
        Ok(())
    }

    fn key(&mut self, text: &[u8], name: &Text) -> Result<()> {
        let name = self.tokens.chars(text, name);
        let next = self.sample.nodes.len();
        let Some(open) = self.open.last_mut() else { return Err(Error::internal("a name in no object")) };
        let Some(Node::Object(fields)) = self.sample.nodes.get_mut(open.node) else {
            return Err(Error::internal("a name of what is no object"));
        };
        open.fields += 1;
        self.values += 1;
        // Most objects have their fields in the same order.
        let due = open.field.wrapping_add(1);
        if fields.list.get(due).is_some_and(|(known, _)| known.as_bytes() == name) {
            open.field = due;
            return Ok(());
        }
        if name.len() > NAME_BYTES_MAX {
            let what = format!("a name of {} bytes, more than {NAME_BYTES_MAX}", name.len());
            return Err(Error::unsupported(what));
        }
        let name = core::str::from_utf8(name).map_err(|_| Error::internal("a name that is not UTF-8"))?;
        if let Some(&known) = fields.by_name.get(name) {
            open.field = known;
            return Ok(());
        }
        if next > FIELDS_MAX {
            return Err(Error::unsupported(format!("more than {FIELDS_MAX} fields")));
        }
        open.field = fields.list.len();
        let name: Arc<str> = name.into();
        fields.by_name.insert(Arc::clone(&name), fields.list.len());
        fields.list.push((name, next));
        self.sample.nodes.push(Node::Nothing);
        if !self.sample.types.is_empty() {
            let path = self.path();
            if let Some(given) = self.sample.types.of(&path) {
                let given = Node::Given(Box::new(given.clone()));
                self.sample.nodes.truncate(next);
                self.sample.nodes.push(given);
            }
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let Some(Node::Object(fields)) = self.sample.nodes.get(open.node) else { return Ok(()) };
        // A line also lacks what is below its missing fields.
        let all = if self.open.is_empty() { self.sample.nodes.len() } else { fields.list.len() };
        self.missing += u64_of(all.saturating_sub(open.fields));
        let fields = self.sample.nodes.len();
        self.objects += 1;
        if self.objects.is_power_of_two() {
            self.known = [fields, self.known[0]];
        }
        let is_growing = 5 * self.known[1] <= KNOWN_FIFTHS * fields;
        if is_growing && self.missing > MISSING_MIN + MISSING_PER_VALUE * self.values {
            let what = format!(
                "objects with ever new fields, {} in all so far: if these names are data, a schema can declare a map; if \
                 not, it can name the fields",
                fields - 1
            );
            return Err(self.located(Error::conversion(what)));
        }
        Ok(())
    }
}

#[cold]
fn clash(before: &str, words: &str) -> Error {
    let what = match before == words {
        true => format!("{words}: only text holds all of the numbers exactly"),
        false => format!("{words}, where the lines before have {before}: only text holds both"),
    };
    Error::conversion(what).with(Detail::AdmittedBy(&["types"]))
}

impl Node {
    fn words(&self) -> &'static str {
        match self {
            Node::Nothing => "null",
            Node::Boolean(_) => "true or false",
            Node::Number(_) => "a number",
            Node::String(_) => "a string",
            Node::List(_) => "an array",
            Node::Object(_) => "an object",
            Node::Given(_) => "a value of a given type",
        }
    }
}

impl Sample {
    /// Adds the values of another text.
    ///
    /// # Errors
    ///
    /// `Conversion` for values that have no common type.
    pub(crate) fn join(&mut self, other: &Sample) -> Result<()> {
        // Pairs of nodes, and the path of fields that leads to them.
        let mut pairs = alloc::vec![(0, 0, String::new())];
        while let Some((to, from, path)) = pairs.pop() {
            let Some(theirs) = other.nodes.get(from) else { continue };
            let next = self.nodes.len();
            let Some(ours) = self.nodes.get_mut(to) else { continue };
            let clashes = |ours: &Node| {
                let error = clash(ours.words(), theirs.words());
                if path.is_empty() { error } else { error.at(|place| place.column = Some(path.clone())) }
            };
            match (&mut *ours, theirs) {
                (_, Node::Nothing) | (Node::Given(_), _) => {}
                (Node::Nothing, Node::Given(_)) => *ours = theirs.clone(),
                (Node::Boolean(one), Node::Boolean(other)) | (Node::String(one), Node::String(other)) => {
                    *one = one.join(*other);
                }
                (Node::Number(one), Node::Number(other)) => {
                    let joined = one.join(*other);
                    if joined.is_text() {
                        return Err(clashes(ours));
                    }
                    *one = joined;
                }
                // NaN and infinities among numbers.
                (Node::Number(one), Node::String(other))
                    if other.is_words() && !one.join(*other).is_text() =>
                {
                    *one = one.join(*other);
                }
                (Node::String(one), Node::Number(other)) if one.is_words() && !one.join(*other).is_text() => {
                    *ours = Node::Number(one.join(*other));
                }
                (Node::Nothing, Node::Boolean(_) | Node::Number(_) | Node::String(_)) => {
                    *ours = theirs.clone()
                }
                (Node::List(one), Node::List(other)) => pairs.push((*one, *other, path)),
                (Node::Nothing, Node::List(other)) => {
                    *ours = Node::List(next);
                    self.nodes.push(Node::Nothing);
                    pairs.push((next, *other, path));
                }
                (Node::Nothing | Node::Object(_), Node::Object(others)) => {
                    if let Node::Nothing = ours {
                        *ours = Node::Object(Box::default());
                    }
                    let mut new = 0;
                    if let Node::Object(fields) = ours {
                        for (name, node) in &others.list {
                            let known = fields.by_name.get(name).and_then(|at| fields.list.get(*at));
                            let at = known.map(|(_, node)| *node).unwrap_or_else(|| {
                                fields.by_name.insert(Arc::clone(name), fields.list.len());
                                fields.list.push((Arc::clone(name), next + new));
                                new += 1;
                                next + new - 1
                            });
                            let below =
                                if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
                            pairs.push((at, *node, below));
                        }
                    }
                    self.nodes.resize_with(next + new, Node::default);
                }
                _ => return Err(clashes(ours)),
            }
        }
        Ok(())
    }

    /// The columns that were found or given, and which were given.
    ///
    /// # Errors
    ///
    /// `Corrupt` if there are no rows, or a struct without fields.
    pub(crate) fn form(&self) -> Result<Form> {
        let comment = self.comment;
        match (&self.schema, self.nodes.first()) {
            (Some(schema), _) => {
                Ok(Form { columns: schema.clone(), is_given: true, given: Vec::new(), comment })
            }
            (None, Some(Node::Object(fields))) => {
                let mut numbered = Numbered::default();
                let columns = fields.list.iter().map(|(name, node)| self.column(*node, name, &mut numbered));
                let columns = columns.collect::<Result<Vec<_>>>()?.into();
                Ok(Form { columns, is_given: false, given: numbered.given, comment })
            }
            (None, _) => {
                let error = Error::corrupt("it has no rows, so its columns are not known");
                Err(error.with(Detail::AdmittedBy(&["schema"])))
            }
        }
    }

    /// A column of the table, which may be wanted as text.
    fn column(&self, node: usize, name: &str, numbered: &mut Numbered) -> Result<Column> {
        let first = numbered.next;
        let mut column_type = self.column_type(node, name, numbered)?;
        if let (ColumnType::Scalar(inferred), false) =
            (&column_type, matches!(self.nodes.get(node), Some(Node::Given(_))))
            && is_wanted_as_text(&self.wanted, name, *inferred)
        {
            column_type = ColumnType::Scalar(Scalar::Text);
            // It takes numbers and words, too, as a type that was given does.
            numbered.given.push(first..numbered.next);
        }
        Ok(Column { name: name.to_string(), column_type })
    }

    fn fields(&self, fields: &Fields, numbered: &mut Numbered) -> Result<Vec<Column>> {
        let column = |(name, node): &(Arc<str>, usize)| {
            Ok(Column { name: name.to_string(), column_type: self.column_type(*node, name, numbered)? })
        };
        fields.list.iter().map(column).collect()
    }

    /// It recurses, as deep as lines are read.
    fn column_type(&self, node: usize, name: &str, numbered: &mut Numbered) -> Result<ColumnType> {
        if let Some(Node::Given(given)) = self.nodes.get(node) {
            let first = numbered.next;
            numbered.next += fields_of(given);
            numbered.given.push(first..numbered.next);
            return Ok(ColumnType::clone(given));
        }
        numbered.next += 1;
        Ok(match self.nodes.get(node) {
            // Text holds any later value.
            None | Some(Node::Nothing | Node::Given(_)) => ColumnType::Scalar(Scalar::Text),
            Some(Node::Boolean(kinds) | Node::Number(kinds) | Node::String(kinds)) => {
                ColumnType::Scalar(kinds.scalar_in(self.timestamp_unit))
            }
            Some(Node::List(element)) => {
                ColumnType::List(Box::new(self.column_type(*element, name, numbered)?))
            }
            Some(Node::Object(fields)) if fields.list.is_empty() => {
                let what = "objects without a field, which Parquet cannot hold";
                let error = Error::corrupt(what).with(Detail::AdmittedBy(&["types"]));
                return Err(error.at(|place| place.column = Some(name.to_string())));
            }
            Some(Node::Object(fields)) => ColumnType::Struct(self.fields(fields, numbered)?),
        })
    }
}

/// Fields, numbered each before those in it, and the ranges of those whose types were given.
#[derive(Debug, Default)]
struct Numbered {
    next: usize,
    given: Vec<Range<usize>>,
}

/// How many fields a type has, with itself.
fn fields_of(column_type: &ColumnType) -> usize {
    1 + match column_type {
        ColumnType::Scalar(_) => 0,
        ColumnType::List(element) => fields_of(element),
        ColumnType::Map(_, value) => 1 + fields_of(value),
        ColumnType::Struct(fields) => fields.iter().map(|field| fields_of(&field.column_type)).sum(),
    }
}
