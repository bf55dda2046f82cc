//! What a schema means: structs, lists and maps, by the format's rules, whatever shape the writer gave them.
//!
//! Source: `LogicalTypes.md`, "Nested Types", with its backward-compatibility rules.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use marquetry_base::{Error, Result};

use super::{LogicalType, NodeKind, Repetition, Schema};

/// A field and what it means: a view of a schema, made in constant time, however much is below it.
///
/// Its *slots* are the positions where it can occur: one per row for a field of the root, one per element below a
/// list. A slot is null when its entry's definition level is below [`Shape::definition`].
#[derive(Clone, Copy)]
pub struct Shape<'a> {
    /// The node with the field's name, logical type and repetition.
    pub node: usize,
    /// Whether a slot can be null.
    pub is_nullable: bool,
    /// The definition level from which on the field is present.
    pub definition: u16,
    /// The repetition level up to which an entry begins a slot.
    pub repetition: u16,
    /// The groups around it and itself, except those of lists, which count as repetition levels. A list may be one
    /// node, two or three, and must not be too deep only because it is written in the longest form.
    depth: u16,
    /// It is the list that a repeated field without annotation is, not the element.
    is_repeated: bool,
    schema: &'a Schema,
    /// The leaves that count, ascending. `None`: all.
    only: Option<&'a [usize]>,
}

/// What a [`Shape`] holds.
#[derive(Debug, Clone)]
pub enum ShapeKind<'a> {
    /// A value.
    Leaf,
    /// Fields.
    Struct(Fields<'a>),
    /// Elements.
    List(Repeated, Shape<'a>),
    /// Keys and values; a map without values is a set of keys.
    Map(Repeated, Shape<'a>, Option<Shape<'a>>),
}

/// The levels of the repeated field of a list or a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    /// The definition level from which on an element is present.
    pub definition: u16,
    /// The repetition level of a further element.
    pub repetition: u16,
}

/// The fields of a struct, in order.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    /// The struct.
    around: Shape<'a>,
    next: usize,
    end: usize,
}

/// A [`Shape`] without its schema: for work that keeps its place between steps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    node: usize,
    is_nullable: bool,
    definition: u16,
    repetition: u16,
    depth: u16,
    is_repeated: bool,
}

/// The largest depth in a schema with shapes: many recurse over them, and hosts have stacks of 128 KiB. With the leaf,
/// it is what [`Limits::DEFAULT`](marquetry_base::Limits::DEFAULT) allows anyway.
const DEPTH_MAX: u16 = 65;
/// Maximum nesting of lists, likewise.
const LISTS_MAX: u16 = DEPTH_MAX - 1;

impl Schema {
    /// The shape of a child of the root, by its node's index.
    pub fn shape(&self, node: usize) -> Shape<'_> {
        Spot::ROOT.of(self, None).field(node)
    }

    /// The only child of a group, if that is repeated: what a LIST and a MAP have.
    fn only_repeated_child(&self, node: usize) -> Option<usize> {
        let mut children = self.children(node);
        match (children.next(), children.next()) {
            (Some(only), None) if self.nodes[only].repetition == Repetition::Repeated => Some(only),
            _ => None,
        }
    }

    fn wrong(&self, node: usize, why: &str) -> Error {
        Error::corrupt(String::from(why)).at(|place| place.column = Some(self.path(node)))
    }

    /// Names from the root's child down to a node, joined with dots. It is put together here: thousands of leaves may
    /// be below groups of long names, so their paths can be many times the schema.
    pub fn path(&self, node: usize) -> String {
        let mut names = Vec::new();
        let mut at = node;
        while let Some(found) = self.nodes.get(at).filter(|_| at != 0) {
            names.push(found.name.as_str());
            at = found.parent;
        }
        names.reverse();
        names.join(".")
    }

    /// The [path](Schema::path) of a leaf, by its number; empty for a leaf that does not exist.
    pub fn leaf_path(&self, leaf: usize) -> String {
        self.leaves.get(leaf).map_or_else(String::new, |leaf| self.path(leaf.node))
    }
}

impl<'a> Shape<'a> {
    /// The part of it that has these leaves, which must be ascending; `None` if none of them is below it. A map without
    /// its keys is a list of its values. A group without any leaf is a part of whatever is around it.
    pub fn only(self, leaves: &'a [usize]) -> Option<Shape<'a>> {
        Shape { only: Some(leaves), ..self }.wanted()
    }

    /// The schema that it is of.
    pub fn schema(self) -> &'a Schema {
        self.schema
    }

    /// The leaves that it was made with, if not all.
    pub(crate) fn projection(self) -> Option<&'a [usize]> {
        self.only
    }

    /// The leaves below it, which are consecutive in the schema. In a projection, only its leaves count.
    pub fn leaves(self) -> Range<usize> {
        self.schema.leaves_of(self.node)
    }

    /// The first leaf in the projection, whose levels determine this shape as well as any other leaf's. `None` for an
    /// empty struct.
    pub fn first_leaf(self) -> Option<usize> {
        let leaves = self.leaves();
        match self.only {
            None => Some(leaves.start).filter(|_| !leaves.is_empty()),
            Some(only) => {
                let first = only.get(only.partition_point(|&leaf| leaf < leaves.start))?;
                leaves.contains(first).then_some(*first)
            }
        }
    }

    /// The columns below it among those of its projection.
    pub(crate) fn columns(self) -> Range<usize> {
        let leaves = self.leaves();
        let Some(only) = self.only else { return leaves };
        let before = |end: usize| only.partition_point(|&leaf| leaf < end);
        before(leaves.start)..before(leaves.end)
    }

    /// What it holds.
    ///
    /// # Errors
    ///
    /// `Corrupt` for LIST and MAP groups that no rule makes one; `LimitExceeded` for more than 65 nested groups, not
    /// counting lists, or more than 64 nested lists, whatever limit the schema was read with; `Misuse` for a node that
    /// does not exist.
    pub fn kind(self) -> Result<ShapeKind<'a>> {
        let schema = self.schema;
        let Some(found) = schema.nodes.get(self.node) else {
            return Err(Error::misuse(format!("node {} of {}", self.node, schema.nodes.len())));
        };
        if self.is_repeated {
            // A repeated field without annotation is a required list of required elements.
            let (repeated, inside) = self.repeated();
            return Ok(ShapeKind::List(repeated, inside));
        }
        if self.depth > DEPTH_MAX || self.repetition > LISTS_MAX {
            let error = Error::too_large(format!("a record of more than {DEPTH_MAX} levels"));
            return Err(error.at(|place| place.column = Some(schema.path(self.node))));
        }
        match (&found.kind, &found.logical_type) {
            (NodeKind::Leaf { .. }, _) => Ok(ShapeKind::Leaf),
            (NodeKind::Group { .. }, Some(LogicalType::List)) => self.list(),
            (NodeKind::Group { .. }, Some(LogicalType::Map | LogicalType::MapKeyValue))
                if schema.only_repeated_child(self.node).is_some() =>
            {
                self.map()
            }
            // A MAP annotation on any other group: the group is what can be read.
            (&NodeKind::Group { end }, _) => {
                Ok(ShapeKind::Struct(Fields { around: self, next: self.node + 1, end }))
            }
        }
    }

    /// A field in this struct, with its own repetition.
    fn field(self, node: usize) -> Shape<'a> {
        let repetition = self.schema.nodes.get(node).map(|node| node.repetition);
        let is_nullable = repetition == Some(Repetition::Optional);
        Shape {
            node,
            is_nullable,
            definition: self.definition + u16::from(is_nullable),
            depth: self.depth + 1,
            is_repeated: repetition == Some(Repetition::Repeated),
            ..self
        }
    }

    /// The levels of a repeated field in this one, and its element, if that is this node itself.
    fn repeated(self) -> (Repeated, Shape<'a>) {
        let (definition, repetition) = (self.definition + 1, self.repetition + 1);
        let (is_nullable, is_repeated) = (false, false);
        (
            Repeated { definition, repetition },
            Shape { definition, repetition, is_nullable, is_repeated, ..self },
        )
    }

    fn list(self) -> Result<ShapeKind<'a>> {
        let (schema, node) = (self.schema, self.node);
        let middle = schema
            .only_repeated_child(node)
            .ok_or_else(|| schema.wrong(node, "a LIST that is not one repeated field"))?;
        let (repeated, inside) = self.repeated();
        let mut children = schema.children(middle);
        let (first, second) = (children.next(), children.next());
        let is_element_itself = match (first, second) {
            // Rule 1: not a group. (Or an empty group, which can only be an element itself.)
            (None, _) => true,
            // Rule 2: several fields.
            (_, Some(_)) => true,
            // Rules 3 and 4: its only field is repeated, or its name says so.
            (Some(only), None) => {
                let name = &schema.nodes[middle].name;
                schema.nodes[only].repetition == Repetition::Repeated
                    || name == "array"
                    || name.strip_suffix("_tuple").is_some_and(|stem| stem == schema.nodes[node].name)
            }
        };
        // The nodes of a list are not counted, but its elements' fields are.
        let element = match first {
            // Rule 5: the usual shape.
            Some(only) if !is_element_itself => Shape { depth: self.depth, ..inside.field(only) },
            _ => Shape { node: middle, ..inside },
        };
        Ok(ShapeKind::List(repeated, element))
    }

    fn map(self) -> Result<ShapeKind<'a>> {
        let (schema, node) = (self.schema, self.node);
        let middle = schema
            .only_repeated_child(node)
            .ok_or_else(|| Error::internal("a MAP that is not one repeated field"))?;
        let (repeated, inside) = self.repeated();
        let entry = Shape { depth: inside.depth + 1, ..inside };
        let mut children = schema.children(middle);
        let (key, value) = match (children.next(), children.next(), children.next()) {
            (Some(key), value, None) => (entry.field(key), value.map(|value| entry.field(value))),
            _ => return Err(schema.wrong(node, "a MAP whose entries are not a key and a value")),
        };
        Ok(match (key.wanted(), value.and_then(Shape::wanted)) {
            (None, Some(value)) => ShapeKind::List(repeated, value),
            (_, value) => ShapeKind::Map(repeated, key, value),
        })
    }

    /// Whether it is in its projection.
    pub(super) fn is_wanted(self) -> bool {
        let Some(only) = self.only else { return true };
        let leaves = self.leaves();
        // A group without leaves is in it.
        let first = only.get(only.partition_point(|&leaf| leaf < leaves.start));
        leaves.is_empty() || first.is_some_and(|first| *first < leaves.end)
    }

    /// Itself, if it is in its projection.
    fn wanted(self) -> Option<Shape<'a>> {
        self.is_wanted().then_some(self)
    }

    pub(crate) fn spot(self) -> Spot {
        let Shape { node, is_nullable, definition, repetition, depth, is_repeated, .. } = self;
        Spot { node, is_nullable, definition, repetition, depth, is_repeated }
    }
}

impl Spot {
    /// Its node.
    pub(crate) fn node(self) -> usize {
        self.node
    }

    /// The root, as the struct that a row is.
    pub(crate) const ROOT: Spot =
        Spot { node: 0, is_nullable: false, definition: 0, repetition: 0, depth: 0, is_repeated: false };

    /// The shape there, of the schema and the leaves that it was made of.
    pub(crate) fn of<'a>(self, schema: &'a Schema, only: Option<&'a [usize]>) -> Shape<'a> {
        let Spot { node, is_nullable, definition, repetition, depth, is_repeated } = self;
        Shape { node, is_nullable, definition, repetition, depth, is_repeated, schema, only }
    }
}

impl<'a> Fields<'a> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.clone().next().is_none()
    }

    /// The next field, which may not be in the projection.
    pub(crate) fn any(&mut self) -> Option<Shape<'a>> {
        if self.next >= self.end {
            return None;
        }
        let child = self.next;
        self.next = self.around.schema.end_of(child);
        Some(self.around.field(child))
    }

    /// The node of the next field, if there is one.
    pub(crate) fn next_node(&self) -> usize {
        self.next
    }

    /// The fields of the struct `around`, from this node on.
    pub(crate) fn from(around: Shape<'a>, next: usize) -> Fields<'a> {
        Fields { around, next, end: around.schema.end_of(around.node) }
    }

    /// One of them, by its node.
    pub(crate) fn field(&self, node: usize) -> Shape<'a> {
        self.around.field(node)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Shape<'a>;

    fn next(&mut self) -> Option<Shape<'a>> {
        loop {
            if let Some(field) = self.any()?.wanted() {
                return Some(field);
            }
        }
    }
}

impl fmt::Debug for Shape<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spot().fmt(f)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Leaf, Node, PhysicalType};
    use super::*;
    use alloc::string::ToString;
    use alloc::vec;

    /// A schema from lines of `depth repetition name [LIST|MAP|MKV]`; a line without deeper ones after it is an INT32.
    pub(crate) fn schema(lines: &[(usize, char, &str, &str)]) -> Schema {
        let mut nodes = vec![Node {
            name: "root".into(),
            is_numbered: false,
            repetition: Repetition::Required,
            logical_type: None,
            converted_type: None,
            is_older_only: false,
            field_id: None,
            parent: 0,
            kind: NodeKind::Group { end: lines.len() + 1 },
        }];
        let mut leaves = Vec::new();
        let mut levels = vec![(0usize, 0u16, 0u16)];
        for (at, &(depth, repetition, name, annotation)) in lines.iter().enumerate() {
            levels.truncate(depth);
            let (parent, definition, repeats) = levels[depth - 1];
            let repetition = match repetition {
                '1' => Repetition::Required,
                '?' => Repetition::Optional,
                _ => Repetition::Repeated,
            };
            let definition = definition + u16::from(repetition != Repetition::Required);
            let repeats = repeats + u16::from(repetition == Repetition::Repeated);
            let end = (at + 1..lines.len()).find(|&next| lines[next].0 <= depth).unwrap_or(lines.len()) + 1;
            let kind = if end == at + 2 && annotation != "GROUP" {
                leaves.push(Leaf {
                    node: at + 1,
                    physical_type: PhysicalType::Int32,
                    definition_max: definition,
                    repetition_max: repeats,
                });
                NodeKind::Leaf { leaf: leaves.len() - 1 }
            } else {
                NodeKind::Group { end }
            };
            let logical_type = match annotation {
                "LIST" => Some(LogicalType::List),
                "MAP" => Some(LogicalType::Map),
                "MKV" => Some(LogicalType::MapKeyValue),
                _ => None,
            };
            nodes.push(Node {
                name: name.into(),
                is_numbered: false,
                repetition,
                logical_type,
                converted_type: None,
                is_older_only: false,
                field_id: None,
                parent,
                kind,
            });
            levels.push((at + 1, definition, repeats));
        }
        Schema { nodes: nodes.into(), leaves: leaves.into() }
    }

    /// A shape in words.
    pub(in crate::schema) fn words(shape: Shape<'_>) -> String {
        let inner = match shape.kind().unwrap() {
            ShapeKind::Leaf => "int".to_string(),
            ShapeKind::Struct(fields) => {
                let fields: Vec<String> = fields
                    .map(|field| format!("{}: {}", shape.schema().nodes()[field.node].name, words(field)))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
            ShapeKind::List(_, element) => format!("[{}]", words(element)),
            ShapeKind::Map(_, key, Some(value)) => {
                format!("<{} -> {}>", words(key), words(value))
            }
            ShapeKind::Map(_, key, None) => format!("<{}>", words(key)),
        };
        let nullable = if shape.is_nullable { "?" } else { "" };
        format!("{inner}{nullable}@{}", shape.definition)
    }

    fn meaning(lines: &[(usize, char, &str, &str)]) -> String {
        let schema = schema(lines);
        words(schema.shape(1))
    }

    #[test]
    fn the_documents_examples() {
        assert_eq!(meaning(&[(1, '*', "num", "")]), "[int@1]@0");
        assert_eq!(
            meaning(&[(1, '*', "my_list", ""), (2, '1', "num", ""), (2, '?', "str", "")]),
            "[{num: int@1, str: int?@2}@1]@0"
        );
        // The usual shape.
        let usual = [(1, '?', "my_list", "LIST"), (2, '*', "list", ""), (3, '?', "element", "")];
        assert_eq!(meaning(&usual), "[int?@3]?@1");
        // Rule 1.
        assert_eq!(meaning(&[(1, '?', "my_list", "LIST"), (2, '*', "element", "")]), "[int@2]?@1");
        // Rule 2.
        let tuple =
            [(1, '?', "my_list", "LIST"), (2, '*', "element", ""), (3, '1', "str", ""), (3, '1', "num", "")];
        assert_eq!(meaning(&tuple), "[{str: int@2, num: int@2}@2]?@1");
        // Rule 3.
        let nested = [(1, '?', "my_list", "LIST"), (2, '*', "array", "LIST"), (3, '*', "array", "")];
        assert_eq!(meaning(&nested), "[[int@3]@2]?@1");
        // Rule 4, both names.
        for name in ["array", "my_list_tuple"] {
            assert_eq!(
                meaning(&[(1, '?', "my_list", "LIST"), (2, '*', name, ""), (3, '1', "str", "")]),
                "[{str: int@2}@2]?@1"
            );
        }
        // Rule 5.
        assert_eq!(
            meaning(&[(1, '?', "my_list", "LIST"), (2, '*', "element", ""), (3, '1', "str", "")]),
            "[int@2]?@1"
        );
        // Maps.
        let map = [(1, '?', "m", "MKV"), (2, '*', "map", ""), (3, '1', "key", ""), (3, '?', "value", "")];
        assert_eq!(meaning(&map), "<int@2 -> int?@3>?@1");
        let inner = [(1, '1', "m", "MAP"), (2, '*', "key_value", "MKV"), (3, '1', "key", "")];
        assert_eq!(meaning(&inner), "<int@1>@0");
    }

    #[test]
    fn groups_that_are_neither() {
        let wrong = |lines: &[(usize, char, &str, &str)]| schema(lines).shape(1).kind().unwrap_err();
        let error = wrong(&[(1, '?', "l", "LIST"), (2, '1', "list", ""), (3, '1', "element", "")]);
        assert_eq!(
            (error.message(), error.place().column.as_deref()),
            ("a LIST that is not one repeated field", Some("l"))
        );
        let three = [
            (1, '?', "m", "MAP"),
            (2, '*', "kv", ""),
            (3, '1', "a", ""),
            (3, '1', "b", ""),
            (3, '1', "c", ""),
        ];
        assert_eq!(wrong(&three).message(), "a MAP whose entries are not a key and a value");
    }

    #[test]
    fn projections_cut_anywhere() {
        let schema = schema(&[
            (1, '?', "s", ""),
            (2, '?', "a", ""),
            (2, '?', "l", "LIST"),
            (3, '*', "list", ""),
            (4, '1', "element", ""),
            (5, '1', "b", ""),
            (5, '1', "c", ""),
            (2, '?', "m", "MAP"),
            (3, '*', "key_value", ""),
            (4, '1', "key", ""),
            (4, '?', "value", ""),
        ]);
        let cut = |leaves: &[usize]| schema.shape(1).only(leaves).map(words);
        assert_eq!(cut(&[2, 4]).unwrap(), "{l: [{c: int@3}@3]?@2, m: [int?@4]?@2}?@1");
        assert_eq!(cut(&[0]).unwrap(), "{a: int?@2}?@1");
        assert_eq!(cut(&[3]).unwrap(), "{m: <int@3>?@2}?@1");
        assert_eq!(cut(&[]), None);
    }
}
