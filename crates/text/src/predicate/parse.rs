//! From words to a predicate.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::Budget;
use marquetry_parquet::prune::{Accepts, Predicate, Quantifier, Ranges, Test};
use marquetry_parquet::schema::{
    FieldAt, LogicalType, Meaning, PathError, PathPart, Paths, Schema, Shape, ShapeKind,
};

use super::error::PredicateError;
use super::literal::{Comparing, ValueType};
use super::tokens::{Kind, Literal, Token, Tokens};

/// Maximum parentheses within each other: hosts have small stacks.
pub(super) const DEPTH_MAX: usize = 64;
/// Names that an error lists, at most.
const NAMES_SHOWN: usize = 20;
/// Words that are no bare names.
const WORDS: [&str; 8] = ["and", "between", "in", "is", "like", "not", "null", "or"];

type Parsed<T> = Result<T, PredicateError>;

pub(super) struct Parser<'a> {
    tokens: Tokens<'a>,
    /// The word at hand.
    token: Token,
    schema: &'a Schema,
    paths: Paths,
    /// Parentheses that are open.
    depth: usize,
}

/// A column as it is written, and the field that it is.
struct Column<'a> {
    at: Range<usize>,
    text: String,
    shape: Shape<'a>,
    /// See [`FieldAt::slot`].
    slot: u16,
}

/// A column's values, as far as they can be compared.
struct Values {
    leaf: usize,
    value_type: ValueType,
}

fn error<T>(at: Range<usize>, message: impl Into<String>) -> Parsed<T> {
    Err(PredicateError { at, message: message.into() })
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, schema: &'a Schema) -> Parsed<Parser<'a>> {
        let mut tokens = Tokens::new(text);
        let token = tokens.next()?;
        Ok(Parser { tokens, token, schema, paths: Paths::default(), depth: 0 })
    }

    pub(super) fn parse(mut self) -> Parsed<Predicate> {
        let predicate = self.disjunction()?;
        match self.token.kind {
            Kind::End => Ok(predicate),
            _ => error(self.token.at, "the predicate ends before this; AND or OR may be missing"),
        }
    }

    fn next(&mut self) -> Parsed<Token> {
        let next = self.tokens.next()?;
        Ok(core::mem::replace(&mut self.token, next))
    }

    /// Takes the word at hand if it is this one.
    fn takes_word(&mut self, word: &str) -> Parsed<bool> {
        let is_it = self.is_word(word);
        if is_it {
            self.next()?;
        }
        Ok(is_it)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token.kind, Kind::Name(name, false) if name.eq_ignore_ascii_case(word))
    }

    fn takes_sign(&mut self, sign: &str) -> Parsed<bool> {
        let is_it = matches!(self.token.kind, Kind::Sign(found) if found == sign);
        if is_it {
            self.next()?;
        }
        Ok(is_it)
    }

    fn disjunction(&mut self) -> Parsed<Predicate> {
        let mut parts = vec![self.conjunction()?];
        while self.takes_word("or")? {
            parts.push(self.conjunction()?);
        }
        Ok(one_or(parts, Predicate::Or))
    }

    fn conjunction(&mut self) -> Parsed<Predicate> {
        let mut parts = vec![self.negation()?];
        while self.takes_word("and")? {
            parts.push(self.negation()?);
        }
        Ok(one_or(parts, Predicate::And))
    }

    fn negation(&mut self) -> Parsed<Predicate> {
        let mut is_negated = false;
        while self.takes_word("not")? {
            is_negated = !is_negated;
        }
        let open = self.token.at.clone();
        let predicate = if self.takes_sign("(")? {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return error(open, format!("more than {DEPTH_MAX} parentheses within each other"));
            }
            let inside = self.disjunction()?;
            if !self.takes_sign(")")? {
                return match self.token.kind {
                    Kind::End => error(open, "a parenthesis that is not closed"),
                    _ => error(self.token.at.clone(), "a ')' is expected here, or AND or OR"),
                };
            }
            self.depth -= 1;
            inside
        } else {
            self.test()?
        };
        Ok(if is_negated { predicate.not() } else { predicate })
    }

    fn test(&mut self) -> Parsed<Predicate> {
        if let Kind::Literal(_) = &self.token.kind {
            return self.mirrored();
        }
        let column = self.column()?;
        if let Kind::Sign(sign) = self.token.kind
            && let Some(comparing) = Comparing::of(sign)
        {
            self.next()?;
            let values = self.values(&column)?;
            let (literal, at) = self.literal(&column)?;
            return values.test(comparing, &literal, at);
        }
        if self.takes_word("is")? {
            let are_wanted = !self.takes_word("not")?;
            if !self.takes_word("null")? {
                return error(self.token.at.clone(), "NULL is expected here, or NOT NULL");
            }
            return self.nulls(&column, are_wanted);
        }
        let is_negated = self.takes_word("not")?;
        let predicate = if self.takes_word("in")? {
            self.list(&column)?
        } else if self.takes_word("between")? {
            self.between(&column)?
        } else if self.takes_word("like")? {
            self.like(&column)?
        } else if is_negated {
            return error(self.token.at.clone(), "IN, BETWEEN or LIKE is expected here");
        } else {
            return self.bare(&column);
        };
        Ok(if is_negated { predicate.not() } else { predicate })
    }

    /// A test with the literal on the left side.
    fn mirrored(&mut self) -> Parsed<Predicate> {
        let Token { kind: Kind::Literal(literal), at } = self.next()? else {
            return error(self.token.at.clone(), "a literal is expected here");
        };
        let Some(comparing) = self.sign() else {
            return error(self.token.at.clone(), "a comparison is expected here: =, <>, <, <=, > or >=");
        };
        self.next()?;
        let column = self.column()?;
        self.values(&column)?.test(comparing.mirrored(), &literal, at)
    }

    fn sign(&self) -> Option<Comparing> {
        match self.token.kind {
            Kind::Sign(sign) => Comparing::of(sign),
            _ => None,
        }
    }

    fn list(&mut self, column: &Column<'a>) -> Parsed<Predicate> {
        let values = self.values(column)?;
        if !self.takes_sign("(")? {
            return error(self.token.at.clone(), "a '(' is expected here");
        }
        let mut sets = Vec::new();
        loop {
            let (literal, at) = self.literal(column)?;
            sets.push(values.ranges(Comparing::Equal, &literal, at)?);
            if self.takes_sign(")")? {
                break;
            }
            if !self.takes_sign(",")? {
                return error(self.token.at.clone(), "a ',' or a ')' is expected here");
            }
        }
        Ok(values.accepting(Ranges::union(sets, values.value_type.comparison())))
    }

    fn between(&mut self, column: &Column<'a>) -> Parsed<Predicate> {
        let values = self.values(column)?;
        let (first, at) = self.literal(column)?;
        let from = values.ranges(Comparing::GreaterOrEqual, &first, at)?;
        if !self.takes_word("and")? {
            return error(self.token.at.clone(), "AND is expected here: BETWEEN a AND b");
        }
        let (last, at) = self.literal(column)?;
        let to = values.ranges(Comparing::LessOrEqual, &last, at)?;
        Ok(values.accepting(from.intersection(&to)))
    }

    fn like(&mut self, column: &Column<'a>) -> Parsed<Predicate> {
        let values = self.values(column)?;
        if !values.value_type.is_text() {
            let what = values.value_type.with_article();
            return error(column.at.clone(), format!("LIKE is for texts, and {:?} is {what}", column.text));
        }
        let (literal, at) = self.literal(column)?;
        let Literal::Text(pattern) = literal else {
            return error(at, "a pattern in single quotes is expected here: LIKE 'prefix%'");
        };
        let (prefix, is_open) = match pattern.strip_suffix('%') {
            Some(prefix) => (prefix, true),
            None => (&*pattern, false),
        };
        if prefix.contains(['%', '_']) {
            return error(at, "only a prefix can be searched for: LIKE 'prefix%', without other '%' and '_'");
        }
        let prefix = prefix.as_bytes().to_vec().into();
        Ok(values.accepting(if is_open { Ranges::with_prefix(prefix) } else { Ranges::of_bytes(prefix) }))
    }

    /// A column that is a test by itself.
    fn bare(&mut self, column: &Column<'a>) -> Parsed<Predicate> {
        let values = self.values(column)?;
        if values.value_type.meaning != Meaning::Boolean {
            let what = values.value_type.with_article();
            let message = format!("{:?} is {what}, so a comparison is expected here", column.text);
            return error(self.token.at.clone(), message);
        }
        Ok(values.accepting(Ranges::of_keys(1, 1)))
    }

    /// The literal at hand.
    fn literal(&mut self, column: &Column<'a>) -> Parsed<(Literal, Range<usize>)> {
        if self.is_word("null") {
            let message = format!("nothing compares with NULL; {} IS NULL asks for it", column.text);
            return error(self.token.at.clone(), message);
        }
        let Token { kind, at } = self.next()?;
        match kind {
            Kind::Literal(literal) => Ok((literal, at)),
            Kind::Name(name, true) => {
                error(at, format!("a literal is expected here; a text is put in single quotes: '{name}'"))
            }
            Kind::Name(name, false) => {
                let message = format!(
                    "{name:?} is no literal; a text is put in single quotes, and columns are not compared with each other"
                );
                error(at, message)
            }
            Kind::Sign(_) | Kind::End => error(at, "a literal is expected here"),
        }
    }

    /// The column at hand.
    fn column(&mut self) -> Parsed<Column<'a>> {
        let mut at = self.token.at.clone();
        let (mut parts, mut text) = (Vec::new(), String::new());
        loop {
            let token = self.next()?;
            match token.kind {
                Kind::Name(name, is_whole) if is_whole || !is_reserved(&name) => {
                    if !parts.is_empty() {
                        text.push('.');
                    }
                    text.push_str(&name);
                    at.end = token.at.end;
                    parts.push(PathPart { text: name, is_whole });
                }
                Kind::Name(name, _) => {
                    let message = format!(
                        "a column is expected here; one that is called {name:?} is put in double quotes"
                    );
                    return error(token.at, message);
                }
                Kind::End if parts.is_empty() => return error(token.at, "a column is expected here"),
                _ => return error(token.at, "a column is expected here"),
            }
            if !self.takes_sign(".")? {
                break;
            }
        }
        match self.paths.find(self.schema, &parts, &mut Budget::unlimited()) {
            Ok(Some(FieldAt { shape, slot, .. })) => Ok(Column { at, text, shape, slot }),
            Ok(None) => error(at, "the table has too many columns"),
            Err(found) => error(at, self.fault(&text, &found)),
        }
    }

    /// The names of the fields of a group, or of the columns, as many as a message has room for.
    fn names_in(&self, node: usize) -> String {
        let nodes = self.schema.nodes();
        let children = self.schema.children(node).take(NAMES_SHOWN + 1);
        let mut names: Vec<&str> = children.map(|child| &*nodes[child].name).collect();
        if names.len() > NAMES_SHOWN {
            names[NAMES_SHOWN] = "…";
        }
        names.join(", ")
    }

    /// Why there is no such column.
    fn fault(&self, text: &str, fault: &PathError) -> String {
        match fault {
            PathError::NoSuchField { name, node: None } => {
                format!("there is no column {name:?}; its columns are {}", self.names_in(0))
            }
            PathError::NoSuchField { name, node: Some(node) } => {
                let place = self.schema.path(*node);
                match self.names_in(*node) {
                    names if names.is_empty() => format!("{place:?} holds values, and no field {name:?}"),
                    names => format!("{place:?} has no field {name:?}; it holds {names}"),
                }
            }
            PathError::Variant { .. } => format!("{text:?} is in a VARIANT, whose parts cannot be compared"),
            PathError::Twice => format!("{text:?} is named twice"),
            PathError::Broken(error) => error.message().to_owned(),
        }
    }

    /// The values of a column: itself, or the elements of a list.
    fn values(&self, column: &Column<'a>) -> Parsed<Values> {
        let mut shape = column.shape;
        loop {
            let kind = shape.kind();
            match kind.map_err(|error| PredicateError {
                at: column.at.clone(),
                message: error.message().to_owned(),
            })? {
                ShapeKind::Leaf => break,
                ShapeKind::List(_, element) => shape = element,
                ShapeKind::Map(..) => {
                    let message =
                        format!("{0:?} is a map: {0}.key or {0}.value can be compared", column.text);
                    return error(column.at.clone(), message);
                }
                ShapeKind::Struct(_) => {
                    let what = match self.schema.nodes()[shape.node].logical_type {
                        Some(LogicalType::Variant { .. }) => "a VARIANT, which cannot be compared".to_owned(),
                        _ => format!("a struct; its fields can be compared: {}", self.names_in(shape.node)),
                    };
                    return error(column.at.clone(), format!("{:?} is {what}", column.text));
                }
            }
        }
        let Some(leaf) = self.schema.leaves_of(shape.node).next() else {
            return error(column.at.clone(), format!("{:?} has no values", column.text));
        };
        let physical_type = self.schema.leaves()[leaf].physical_type;
        let meaning = Meaning::of(physical_type, self.schema.nodes()[shape.node].logical_type.as_ref());
        Ok(Values { leaf, value_type: ValueType { meaning, physical_type } })
    }

    /// A test of which of a field's slots are null.
    fn nulls(&self, column: &Column<'a>, are_wanted: bool) -> Parsed<Predicate> {
        let Some(leaf) = self.schema.leaves_of(column.shape.node).next() else {
            return error(column.at.clone(), format!("{:?} has no values", column.text));
        };
        let accepts = Accepts::Nulls { slot: column.slot, definition: column.shape.definition, are_wanted };
        Ok(Predicate::Test(Test { leaf, quantifier: Quantifier::Any, accepts }))
    }
}

impl Values {
    /// The values that compare so with a literal, which is at a place.
    fn ranges(&self, comparing: Comparing, literal: &Literal, at: Range<usize>) -> Parsed<Ranges> {
        self.value_type.ranges(comparing, literal).map_err(|message| PredicateError { at, message })
    }

    fn test(&self, comparing: Comparing, literal: &Literal, at: Range<usize>) -> Parsed<Predicate> {
        Ok(self.accepting(self.ranges(comparing, literal, at)?))
    }

    fn accepting(&self, ranges: Ranges) -> Predicate {
        Predicate::Test(Test::accepting(self.leaf, ranges))
    }
}

fn is_reserved(name: &str) -> bool {
    WORDS.iter().any(|word| name.eq_ignore_ascii_case(word))
}

fn one_or(mut parts: Vec<Predicate>, all: fn(Vec<Predicate>) -> Predicate) -> Predicate {
    match parts.len() {
        1 => parts.remove(0),
        _ => all(parts),
    }
}
