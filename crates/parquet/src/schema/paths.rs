//! Fields by their paths.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::{Budget, Error};

use super::names::{Named, Names};
use super::{LogicalType, Schema, Shape, ShapeKind};

/// Finds the fields of a schema by their paths.
///
/// A path leads from a column down to a field: fields of groups by their names; `element` is a list's element, `key`
/// and `value` are a map's, and a field of a list's element can be named without `element`. So a list `items` of
/// groups with a field `price` has `items.price`, which is `items.element.price`, and, as the format spells it,
/// `items.list.element.price`.
///
/// It keeps an index of the names that it looked among, so the schema is always the same.
#[derive(Debug, Default)]
pub struct Paths {
    /// The fields of groups that paths led into, by the group's node, and the columns, by the root's.
    names: BTreeMap<usize, Names>,
}

/// A field that a path leads to.
#[derive(Debug, Clone, Copy)]
pub struct FieldAt<'a> {
    /// The field.
    pub shape: Shape<'a>,
    /// The definition level from which on there is a [slot](Shape) of it: that of an element of the innermost list or
    /// map around it; 0 in none.
    pub slot: u16,
}

/// A part of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPart {
    /// A name, or part of one: if names contain dots, the longest name that consecutive parts form wins.
    pub text: String,
    /// Whether it is a complete name, whatever follows.
    pub is_whole: bool,
}

/// Why a path leads nowhere.
#[derive(Debug, Clone, PartialEq)]
pub enum PathError {
    /// No field has this name.
    NoSuchField {
        /// The part of the path that was not found, joined with dots.
        name: String,
        /// The field where it was looked for; `None` for the columns.
        node: Option<usize>,
    },
    /// Everything that it leads to is already in the projection.
    Twice,
    /// It leads into a VARIANT, which can only be selected as a whole.
    Variant {
        /// Its node.
        node: usize,
    },
    /// A column on the way has no meaning in the format.
    Broken(Error),
}

/// What is found, or that the budget is spent before it is: then `None`.
type Found<T> = Result<Option<T>, PathError>;

impl Paths {
    /// The field that a path leads to. A name that is not found exactly is looked up in lower case, as in CQL. Returns
    /// `None` if the budget is spent first: call again, with the same path.
    ///
    /// # Errors
    ///
    /// [`PathError`], but never [`PathError::Twice`].
    pub fn find<'a>(
        &mut self,
        schema: &'a Schema,
        path: &[PathPart],
        budget: &mut Budget<'_>,
    ) -> Result<Option<FieldAt<'a>>, PathError> {
        let Some((column, rest)) = self.column(schema, path, budget)? else { return Ok(None) };
        self.below(schema.shape(column), rest, budget)
    }

    /// The column that a path begins with, by its node, and the rest of the path.
    pub(super) fn column<'p>(
        &mut self,
        schema: &Schema,
        path: &'p [PathPart],
        budget: &mut Budget<'_>,
    ) -> Found<(usize, &'p [PathPart])> {
        let Some(found) = self.child_of(schema, 0, path, budget) else { return Ok(None) };
        let (column, used) = found.ok_or_else(|| no_such_field(path, None))?;
        Ok(Some((column, &path[used..])))
    }

    /// The field that the rest of a path leads to from a column.
    pub(super) fn below<'a>(
        &mut self,
        column: Shape<'a>,
        path: &[PathPart],
        budget: &mut Budget<'_>,
    ) -> Found<FieldAt<'a>> {
        let schema = column.schema();
        let is = |name: &str, part: Option<&PathPart>| part.is_some_and(|part| part.text == name);
        let (mut shape, mut slot, mut path) = (column, 0, path);
        while !path.is_empty() {
            match shape.kind().map_err(PathError::Broken)? {
                ShapeKind::Leaf => return Err(no_such_field(path, Some(shape.node))),
                ShapeKind::Struct(_) if is_variant(schema.nodes[shape.node].logical_type.as_ref()) => {
                    return Err(PathError::Variant { node: shape.node });
                }
                ShapeKind::Struct(fields) => {
                    let Some(found) = self.child_of(schema, shape.node, path, budget) else {
                        return Ok(None);
                    };
                    let (field, used) = found.ok_or_else(|| no_such_field(path, Some(shape.node)))?;
                    (shape, path) = (fields.field(field), &path[used..]);
                }
                ShapeKind::List(repeated, element) => {
                    let kind = element.kind().map_err(PathError::Broken)?;
                    // A group's own field takes precedence over the list's name for its element.
                    let is_field = matches!(kind, ShapeKind::Struct(_))
                        && match self.child_of(schema, element.node, path, budget) {
                            None => return Ok(None),
                            Some(field) => field.is_some(),
                        };
                    let inner = if is("list", path.first()) { &path[1..] } else { path };
                    path = match kind {
                        _ if is_field => path,
                        _ if is("element", inner.first()) => &inner[1..],
                        ShapeKind::List(..) | ShapeKind::Map(..) => path,
                        ShapeKind::Struct(_) => return Err(no_such_field(path, Some(element.node))),
                        ShapeKind::Leaf => return Err(no_such_field(path, Some(shape.node))),
                    };
                    (shape, slot) = (element, repeated.definition);
                }
                ShapeKind::Map(repeated, key, value) => {
                    path = if is("key_value", path.first()) { &path[1..] } else { path };
                    let part = path.first().map(|part| part.text.as_str());
                    shape = match (part, value) {
                        (Some("key"), _) => key,
                        (Some("value"), Some(value)) => value,
                        _ => return Err(no_such_field(path, Some(shape.node))),
                    };
                    (slot, path) = (repeated.definition, &path[1..]);
                }
            }
        }
        Ok(Some(FieldAt { shape, slot }))
    }

    /// The child of a group that a path begins with, and how many of the path's parts name it. `None` if the budget is
    /// spent first.
    fn child_of(
        &mut self,
        schema: &Schema,
        group: usize,
        path: &[PathPart],
        budget: &mut Budget<'_>,
    ) -> Option<Option<(usize, usize)>> {
        let names = self.names.entry(group).or_insert_with(|| Names::of(group));
        if !names.step(schema, group, budget) {
            return None;
        }
        Some(longest(path, |wanted| match names.find(schema, wanted, budget) {
            Named::None => None,
            // The first of a name counts.
            Named::One(node) | Named::Several(node) => Some(node),
        }))
    }
}

fn is_variant(logical_type: Option<&LogicalType>) -> bool {
    matches!(logical_type, Some(LogicalType::Variant { .. }))
}

/// The field named by the longest prefix of a path, and the number of parts in that prefix.
fn longest<T>(path: &[PathPart], mut find: impl FnMut(&str) -> Option<T>) -> Option<(T, usize)> {
    let first_whole = path.iter().take_while(|part| !part.is_whole).count();
    let parts_max = first_whole.max(1).min(path.len());
    // All of it is put together once, and its beginnings are looked up.
    let (mut all, mut ends) = (String::new(), Vec::with_capacity(parts_max));
    for part in &path[..parts_max] {
        if !ends.is_empty() {
            all.push('.');
        }
        all.push_str(&part.text);
        ends.push(all.len());
    }
    let mut find_in = |all: &str| {
        let beginnings = ends.iter().enumerate().rev();
        beginnings.filter_map(|(at, end)| Some((find(all.get(..*end)?)?, at + 1))).next()
    };
    let exact = find_in(&all);
    exact.or_else(|| find_in(&all.to_ascii_lowercase()))
}

fn dotted(path: &[PathPart]) -> String {
    path.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".")
}

fn no_such_field(path: &[PathPart], node: Option<usize>) -> PathError {
    PathError::NoSuchField { name: dotted(path), node }
}
