//! Parts of a schema, by the paths of their fields.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Error, Result};

use super::field::{Field, FieldKind, Writer};
use super::{LogicalType, Schema, Shape, ShapeKind};

/// Part of a schema: some columns, complete or in part.
///
/// A path leads from a column down to a field: fields of groups by their names; `element` is a list's element, `key`
/// and `value` are a map's, and a field of a list's element can be named without `element`. So a list `items` of
/// groups with a field `price` has `items.price`, which is `items.element.price`, and, as the format spells it,
/// `items.list.element.price`.
///
/// Columns are in the order in which they are added, and fields below them in the order of the schema. A map's keys
/// alone are a map without values, and its values alone a list.
///
/// This is planning work and is not sliced: [`Projection::new`] and [`Projection::schema`] take about a microsecond
/// per column, 0.1 s for a hundred thousand. A host that must not stall does this on another thread for wide schemas,
/// or reads leaves by their indices ([`ReadOptions::leaves`](crate::read::ReadOptions::leaves)), for which no
/// projection is needed.
#[derive(Debug)]
pub struct Projection<'a> {
    schema: &'a Schema,
    columns: BTreeMap<&'a str, usize>,
    /// Columns' nodes, in the order of the projection.
    chosen: Vec<usize>,
    /// Those of them that are selected completely.
    whole: BTreeSet<usize>,
    /// Those that are selected at least in part.
    known: BTreeSet<usize>,
    is_wanted: Vec<bool>,
    /// The shapes of columns that paths led into, by node.
    shapes: BTreeMap<usize, Shape>,
    /// The indices of the fields of groups that paths led into, by the group's node.
    fields: BTreeMap<usize, BTreeMap<&'a str, usize>>,
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

impl<'a> Projection<'a> {
    /// An empty projection.
    pub fn new(schema: &'a Schema) -> Projection<'a> {
        let mut columns = BTreeMap::new();
        for node in schema.children(0) {
            columns.entry(schema.nodes[node].name.as_str()).or_insert(node);
        }
        Projection {
            schema,
            columns,
            chosen: Vec::new(),
            whole: BTreeSet::new(),
            known: BTreeSet::new(),
            is_wanted: alloc::vec![false; schema.leaves.len()],
            shapes: BTreeMap::new(),
            fields: BTreeMap::new(),
        }
    }

    /// Adds what a path names. A name that is not found exactly is looked up in lower case, as in CQL.
    ///
    /// # Errors
    ///
    /// [`PathError`]; the projection is then unchanged.
    pub fn add(&mut self, path: &[PathPart]) -> Result<(), PathError> {
        let (column, used) =
            longest(path, |name| self.columns.get(name).copied()).ok_or_else(|| no_such_field(path, None))?;
        let rest = &path[used..];
        if rest.is_empty() {
            return self.add_column(column);
        }
        let shape = match self.shapes.remove(&column) {
            Some(known) => known,
            None => {
                let shape = self.schema.shape(column, |_| true).map_err(PathError::Broken)?;
                shape.ok_or_else(|| PathError::Broken(Error::internal("no shape of all leaves")))?
            }
        };
        let found = self.below(&shape, rest);
        self.shapes.insert(column, shape);
        let leaves = found?;
        if self.whole.contains(&column) || leaves.clone().all(|leaf| self.is_wanted[leaf]) {
            return Err(PathError::Twice);
        }
        self.is_wanted[leaves].fill(true);
        if self.known.insert(column) {
            self.chosen.push(column);
        }
        Ok(())
    }

    /// Adds a complete column, by its node: a child of the root.
    ///
    /// # Errors
    ///
    /// [`PathError::Twice`].
    pub fn add_column(&mut self, node: usize) -> Result<(), PathError> {
        if !self.whole.insert(node) {
            return Err(PathError::Twice);
        }
        for leaf in self.schema.leaves_of(node) {
            self.is_wanted[leaf] = true;
        }
        if self.known.insert(node) {
            self.chosen.push(node);
        }
        Ok(())
    }

    /// Whether any part of a node of the schema is in the projection.
    pub fn has(&self, node: usize) -> bool {
        self.whole.contains(&node) || self.schema.leaves_of(node).any(|leaf| self.is_wanted[leaf])
    }

    /// The schema of the projection alone.
    ///
    /// # Errors
    ///
    /// As [`Schema::shape`].
    pub fn schema(&self) -> Result<Schema> {
        let root = self.schema.nodes.first().map_or("schema", |root| root.name.as_str());
        let mut writer = Writer::new(root);
        for &node in &self.chosen {
            let Some(shape) = self.schema.shape(node, |leaf| self.is_wanted[leaf])? else { continue };
            let mut field: Field<()> = Field::of(self.schema, &shape);
            if !self.whole.contains(&node) {
                drop_empty(&mut field);
            }
            writer.add(&field, &mut |_, _| {});
        }
        Ok(writer.finish())
    }

    /// The field of a group that a path begins with, and how many of the path's parts name it.
    fn field_of<'s>(
        &mut self,
        group: &Shape,
        fields: &'s [Shape],
        path: &[PathPart],
    ) -> Option<(&'s Shape, usize)> {
        let nodes = &self.schema.nodes;
        let by_name = self.fields.entry(group.node).or_insert_with(|| {
            // The first of a name counts.
            let places = fields.iter().enumerate().rev();
            places.map(|(place, field)| (nodes[field.node].name.as_str(), place)).collect()
        });
        longest(path, |wanted| fields.get(*by_name.get(wanted)?))
    }

    /// The leaves that the rest of a path names. It recurses as deep as shapes are.
    fn below(&mut self, shape: &Shape, path: &[PathPart]) -> Result<Range<usize>, PathError> {
        if path.is_empty() {
            return Ok(shape.leaves.clone());
        }
        let is = |name: &str, part: Option<&PathPart>| part.is_some_and(|part| part.text == name);
        match &shape.kind {
            ShapeKind::Leaf => Err(no_such_field(path, Some(shape.node))),
            ShapeKind::Struct(_) if is_variant(self.schema.nodes[shape.node].logical_type.as_ref()) => {
                Err(PathError::Variant { node: shape.node })
            }
            ShapeKind::Struct(fields) => {
                let (field, used) = self
                    .field_of(shape, fields, path)
                    .ok_or_else(|| no_such_field(path, Some(shape.node)))?;
                self.below(field, &path[used..])
            }
            ShapeKind::List(_, element) => {
                // A group's own field takes precedence over the list's name for its element.
                if let ShapeKind::Struct(fields) = &element.kind
                    && self.field_of(element, fields, path).is_some()
                {
                    return self.below(element, path);
                }
                let inner = if is("list", path.first()) { &path[1..] } else { path };
                match &element.kind {
                    _ if is("element", inner.first()) => self.below(element, &inner[1..]),
                    ShapeKind::List(..) | ShapeKind::Map(..) => self.below(element, path),
                    ShapeKind::Struct(_) => Err(no_such_field(path, Some(element.node))),
                    ShapeKind::Leaf => Err(no_such_field(path, Some(shape.node))),
                }
            }
            ShapeKind::Map(_, key, value) => {
                let path = if is("key_value", path.first()) { &path[1..] } else { path };
                match (path.first(), value) {
                    (Some(part), _) if part.text == "key" => self.below(key, &path[1..]),
                    (Some(part), Some(value)) if part.text == "value" => self.below(value, &path[1..]),
                    _ => Err(no_such_field(path, Some(shape.node))),
                }
            }
        }
    }
}

fn is_variant(logical_type: Option<&LogicalType>) -> bool {
    matches!(logical_type, Some(LogicalType::Variant { .. }))
}

/// The field named by the longest prefix of a path, and the number of parts in that prefix.
fn longest<T>(path: &[PathPart], find: impl Fn(&str) -> Option<T>) -> Option<(T, usize)> {
    let first_whole = path.iter().take_while(|part| !part.is_whole).count();
    let parts_max = first_whole.max(1).min(path.len());
    let names = (1..=parts_max).rev().map(|parts| (dotted(&path[..parts]), parts));
    let names: Vec<(String, usize)> = names.collect();
    let exact = names.iter().find_map(|(name, parts)| Some((find(name)?, *parts)));
    exact.or_else(|| names.iter().find_map(|(name, parts)| Some((find(&name.to_ascii_lowercase())?, *parts))))
}

fn dotted(path: &[PathPart]) -> String {
    path.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".")
}

fn no_such_field(path: &[PathPart], node: Option<usize>) -> PathError {
    PathError::NoSuchField { name: dotted(path), node }
}

/// Empty groups are only selected with the complete column.
fn drop_empty(field: &mut Field<()>) -> bool {
    match &mut field.kind {
        FieldKind::Leaf(_) => true,
        FieldKind::Struct(fields) => {
            fields.list.retain_mut(drop_empty);
            !fields.list.is_empty()
        }
        FieldKind::List(element) => drop_empty(element),
        FieldKind::Map(key, value) => {
            if value.as_mut().is_some_and(|value| !drop_empty(value)) {
                *value = None;
            }
            drop_empty(key)
        }
    }
}

#[cfg(test)]
mod tests;
