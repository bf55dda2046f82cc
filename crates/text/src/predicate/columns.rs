//! Columns and fields by their names.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use marquetry_base::Budget;
use marquetry_parquet::prune::Comparison;
use marquetry_parquet::schema::{
    FieldAt, LogicalType, Meaning, NodeKind, PathError, PathPart, Paths, PhysicalType, Schema, ShapeKind,
};

use super::error::{PredicateError, excerpt};
use super::lexer::{Token, is_in_name, is_reserved};
use crate::Scalar;

/// The columns of a schema.
pub(super) struct Columns<'a> {
    schema: &'a Schema,
    paths: Paths,
}

/// A column, or a field of one, as it is named in the text.
pub(super) struct Column<'a> {
    pub(super) written: &'a str,
    at: Range<usize>,
    pub(super) field: FieldAt<'a>,
}

/// A leaf whose values are compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leaf {
    pub(super) leaf: usize,
    /// Of its slots, as [`FieldAt::slot`].
    pub(super) slot: u16,
    /// What its values are read as.
    pub(super) meaning: Meaning,
    pub(super) physical_type: PhysicalType,
    /// The schema gives an annotation that this version does not know.
    is_unrecognised: bool,
}

/// Maximum parts of a path: more than a schema is deep, with dots in some names.
const PARTS_MAX: usize = 256;

impl<'a> Columns<'a> {
    pub(super) fn of(schema: &'a Schema) -> Columns<'a> {
        Columns { schema, paths: Paths::default() }
    }

    /// The column or field with this path.
    pub(super) fn find(&mut self, written: &'a str, at: Range<usize>) -> Result<Column<'a>, PredicateError> {
        let path = path(written);
        if path.len() > PARTS_MAX {
            return Err(PredicateError { at, message: format!("a path of more than {PARTS_MAX} names") });
        }
        match self.paths.find(self.schema, &path, &mut Budget::unlimited()) {
            Ok(Some(field)) => Ok(Column { written, at, field }),
            Ok(None) => Err(PredicateError { at, message: "a budget without an end is spent".into() }),
            Err(error) => Err(PredicateError { at, message: self.why_not(error) }),
        }
    }

    fn why_not(&self, error: PathError) -> String {
        let schema = self.schema;
        match error {
            PathError::NoSuchField { name, node: None } => {
                format!("there is no column {}: {}", quoted(&name), self.others(0, &name, "columns"))
            }
            PathError::NoSuchField { name, node: Some(node) } => {
                let (place, name) = (excerpt(&schema.path(node)), &name);
                let Some(found) = schema.nodes().get(node) else { return place };
                match (found.kind, &found.logical_type) {
                    (NodeKind::Leaf { .. }, _) => {
                        format!("{place} holds values, and no field {}", quoted(name))
                    }
                    (_, Some(LogicalType::List)) => {
                        format!("{place} is a list, of which only {place}.element is a part")
                    }
                    (_, Some(LogicalType::Map | LogicalType::MapKeyValue)) => {
                        format!("{place} is a map, whose parts are {place}.key and {place}.value")
                    }
                    _ => {
                        let others = self.others(node, name, "fields");
                        format!("{place} has no field {}: {others}", quoted(name))
                    }
                }
            }
            PathError::Variant { node } => {
                format!("{} is a VARIANT, whose parts cannot be compared", excerpt(&schema.path(node)))
            }
            PathError::Twice => "it is named twice".into(),
            PathError::Broken(error) => error.to_string(),
        }
    }

    /// What somebody could have meant, and what there is.
    fn others(&self, node: usize, missing: &str, what: &str) -> String {
        let names = || self.schema.children(node).map(|node| self.schema.nodes()[node].name.as_str());
        let first = missing.split('.').next().unwrap_or("");
        let near = names().take(COMPARED_MAX).filter_map(|name| {
            let errors =
                errors_between(missing, name).into_iter().chain(errors_between(first, name)).min()?;
            Some((errors, name))
        });
        // Of several, the one with more letters in common.
        let near = near.min_by_key(|(errors, name)| (*errors, Reverse(name.len())));
        let hint = near.map_or_else(String::new, |(_, name)| format!("did you mean {}? ", quoted(name)));
        format!("{hint}{}", listed("", names(), what))
    }
}

impl<'a> Column<'a> {
    /// The leaf whose values are compared: its own, or that of its elements.
    pub(super) fn leaf(&self) -> Result<Leaf, PredicateError> {
        let FieldAt { mut shape, mut slot } = self.field;
        let mut holds = "is";
        loop {
            match shape.kind().map_err(|error| self.fail(error.to_string()))? {
                ShapeKind::Leaf => break,
                ShapeKind::List(repeated, element) => {
                    (shape, slot, holds) =
                        (element, repeated.definition, "is a list, whose elements are each");
                }
                ShapeKind::Struct(fields) => {
                    let (schema, name) = (shape.schema(), excerpt(self.written));
                    let logical_type = schema.nodes().get(shape.node).and_then(|it| it.logical_type.as_ref());
                    if let Some(LogicalType::Variant { .. }) = logical_type {
                        return Err(self.fail(format!("{name} {holds} a VARIANT, which cannot be compared")));
                    }
                    let names = fields.filter_map(|it| Some(schema.nodes().get(it.node)?.name.as_str()));
                    let fields = listed(&format!("{name}."), names, "fields");
                    return Err(
                        self.fail(format!("{name} {holds} a struct, and a field is compared: {fields}"))
                    );
                }
                ShapeKind::Map(_, _, value) => {
                    let name = excerpt(self.written);
                    let or_value = value.map_or_else(String::new, |_| format!(" or {name}.value"));
                    return Err(self.fail(format!("{name} {holds} a map: compare {name}.key{or_value}")));
                }
            }
        }
        let (schema, leaf) = (shape.schema(), shape.leaves().start);
        let found = schema.leaves().get(leaf).ok_or_else(|| self.fail("a shape without its leaf".into()))?;
        let (physical_type, meaning) = (found.physical_type, schema.meaning_of(found));
        Ok(Leaf {
            leaf,
            slot,
            meaning: meaning.read_as(physical_type),
            physical_type,
            is_unrecognised: meaning == Meaning::Unrecognised,
        })
    }

    /// The first leaf in it, whose levels say where it is null.
    pub(super) fn first_leaf(&self) -> Result<usize, PredicateError> {
        let leaf = self.field.shape.first_leaf();
        leaf.ok_or_else(|| self.fail(format!("{} has no fields", excerpt(self.written))))
    }

    /// Checks that one value of the leaf can be less than another. The error is at what asks for it.
    pub(super) fn check_order(&self, leaf: Leaf, asks: Token) -> Result<(), PredicateError> {
        if (leaf.comparison() != Comparison::Equality && !leaf.is_unrecognised)
            || leaf.meaning == Meaning::Null
        {
            return Ok(());
        }
        let name = excerpt(self.written);
        let message = match leaf.is_unrecognised {
            true => {
                format!("the order of {name} is not known, because its type is not: only =, <> and IN work")
            }
            false => format!("{name} is {}, which has no order: only =, <> and IN work", leaf.type_name()),
        };
        Err(PredicateError { at: asks.at(), message })
    }

    fn fail(&self, message: String) -> PredicateError {
        PredicateError { at: self.at.clone(), message }
    }
}

impl Leaf {
    pub(super) fn comparison(self) -> Comparison {
        Comparison::of(self.meaning, self.physical_type)
    }

    /// Its type with an article, as texts have it.
    pub(super) fn type_name(self) -> String {
        if let Some(scalar) = Scalar::of_meaning(self.meaning, self.physical_type) {
            return if scalar == Scalar::Text { "text".into() } else { scalar.with_article() };
        }
        match (self.meaning, self.physical_type) {
            (Meaning::Decimal { precision, scale }, _) => format!("a decimal({precision}, {scale})"),
            (Meaning::Geometry, _) => "a geometry".into(),
            (Meaning::Geography, _) => "a geography".into(),
            (Meaning::Null, _) => "always null".into(),
            (_, PhysicalType::FixedLenByteArray(bytes)) => format!("a fixed({bytes})"),
            (_, other) => other.to_string(),
        }
    }
}

/// The names of a path that the lexer found.
pub(super) fn path(written: &str) -> Vec<PathPart> {
    let (mut parts, mut rest) = (Vec::new(), written);
    while parts.len() <= PARTS_MAX {
        let is_whole = rest.starts_with('"');
        let text = match rest.strip_prefix('"') {
            None => {
                let (name, after) = rest.split_at(rest.find('.').unwrap_or(rest.len()));
                rest = after;
                name.to_string()
            }
            Some(mut inner) => {
                let mut name = String::new();
                loop {
                    let (before, after) = inner.split_once('"').unwrap_or((inner, ""));
                    name.push_str(before);
                    match after.strip_prefix('"') {
                        Some(more) => inner = more,
                        None => {
                            rest = after;
                            break name;
                        }
                    }
                    name.push('"');
                }
            }
        };
        parts.push(PathPart { text, is_whole });
        match rest.strip_prefix('.') {
            Some(more) => rest = more,
            None => break,
        }
    }
    parts
}

/// A name as a predicate has it.
fn quoted(name: &str) -> String {
    let is_bare = name.starts_with(|c: char| is_in_name(c) && !c.is_ascii_digit())
        && name.chars().all(is_in_name)
        && !is_reserved(name);
    let short = excerpt(name);
    if is_bare { short } else { format!("\"{}\"", short.replace('"', "\"\"")) }
}

/// Names that an error lists. A table of a thousand columns is no help on one line.
const LISTED_MAX: usize = 20;

fn listed<'a>(before: &str, mut names: impl Iterator<Item = &'a str>, what: &str) -> String {
    let list: Vec<String> =
        names.by_ref().take(LISTED_MAX).map(|name| format!("{before}{}", quoted(name))).collect();
    match (list.len(), names.count()) {
        (0, _) => format!("there are no {what}"),
        (_, 0) => format!("the {what} are {}", list.join(", ")),
        (_, more) => format!("the {what} are {} and {more} more", list.join(", ")),
    }
}

/// Names that a missing one is compared with, and their characters, at most.
const COMPARED_MAX: usize = 10_000;
const COMPARED_CHARS_MAX: usize = 40;

/// The typing errors between two names, whatever their case (Levenshtein). `None` if there are too many for them to be
/// the same.
fn errors_between(wanted: &str, name: &str) -> Option<usize> {
    let letters = |text: &str| -> Option<Vec<char>> {
        let mut letters = Vec::new();
        for c in text.chars() {
            (letters.len() < COMPARED_CHARS_MAX).then_some(())?;
            letters.push(c.to_ascii_lowercase());
        }
        Some(letters)
    };
    let (wanted, name) = (letters(wanted)?, letters(name)?);
    let most = wanted.len().div_ceil(3).min(wanted.len().saturating_sub(1));
    if wanted.len().abs_diff(name.len()) > most {
        return None;
    }
    let mut row: Vec<usize> = (0..=name.len()).collect();
    for (at, letter) in wanted.iter().enumerate() {
        let (mut diagonal, mut left) = (at, at + 1);
        for (place, other) in row.iter_mut().skip(1).zip(&name) {
            left = (diagonal + usize::from(letter != other)).min(*place + 1).min(left + 1);
            diagonal = core::mem::replace(place, left);
        }
        row[0] = at + 1;
    }
    row.last().copied().filter(|errors| *errors <= most)
}
