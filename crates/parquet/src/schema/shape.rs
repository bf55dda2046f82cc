//! What a schema means: structs, lists and maps, by the format's rules, whatever shape the writer gave them.
//!
//! Source: `LogicalTypes.md`, "Nested Types", with its backward-compatibility rules.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Error, Result};

use super::{LogicalType, NodeKind, Repetition, Schema};

/// A field and what it means.
///
/// Its *slots* are the positions where it can occur: one per row for a field of the root, one per element below a
/// list. A slot is null when its entry's definition level is below [`Shape::definition`].
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// The node with the field's name, logical type and repetition.
    pub node: usize,
    /// Whether a slot can be null.
    pub is_nullable: bool,
    /// The definition level from which on the field is present.
    pub definition: u16,
    /// The repetition level up to which an entry begins a slot.
    pub repetition: u16,
    /// The leaves below it, which are consecutive in the schema. In a projection, only its leaves count.
    pub leaves: Range<usize>,
    /// Leaf, struct, list or map.
    pub kind: ShapeKind,
}

/// What a [`Shape`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum ShapeKind {
    /// A value.
    Leaf,
    /// Fields.
    Struct(Vec<Shape>),
    /// Elements.
    List(Repeated, Box<Shape>),
    /// Keys and values; a map without values is a set of keys.
    Map(Repeated, Box<Shape>, Option<Box<Shape>>),
}

/// The levels of the repeated field of a list or a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeated {
    /// The definition level from which on an element is present.
    pub definition: u16,
    /// The repetition level of a further element.
    pub repetition: u16,
}

/// The levels around a node.
#[derive(Debug, Clone, Copy)]
struct Levels {
    definition: u16,
    repetition: u16,
    /// The groups around it and itself, except those of lists, which count as repetition levels. A list may be one
    /// node, two or three, and must not be too deep only because it is written in the longest form.
    depth: u16,
}

/// The largest depth in a schema with shapes: they recurse, and hosts have stacks of 128 KiB. With the leaf, it is what
/// [`Limits::DEFAULT`](marquetry_base::Limits::DEFAULT) allows anyway.
const DEPTH_MAX: u16 = 65;
/// Maximum nesting of lists, likewise.
const LISTS_MAX: u16 = DEPTH_MAX - 1;

impl Schema {
    /// The shape of a child of the root, by its node's index, with only those leaves for which `wanted` returns true.
    /// `None` if there are none.
    ///
    /// # Errors
    ///
    /// `Corrupt` for LIST and MAP groups that no rule makes one; `LimitExceeded` for more than 65 nested groups, not
    /// counting lists, or more than 64 nested lists, whatever limit the schema was read with.
    pub fn shape(&self, node: usize, wanted: impl Fn(usize) -> bool) -> Result<Option<Shape>> {
        let shape = self.field(node, Levels { definition: 0, repetition: 0, depth: 1 })?;
        Ok(shape.project(&wanted))
    }

    /// A field in its parent, with its own repetition.
    fn field(&self, node: usize, outer: Levels) -> Result<Shape> {
        match self.nodes[node].repetition {
            Repetition::Required => self.inner(node, outer, false),
            Repetition::Optional => {
                self.inner(node, Levels { definition: outer.definition + 1, ..outer }, true)
            }
            // A repeated field without annotation is a required list of required elements.
            Repetition::Repeated => {
                let (repeated, inner) = repeated(outer);
                let element = self.inner(node, inner, false)?;
                Ok(Shape {
                    node,
                    is_nullable: false,
                    definition: outer.definition,
                    repetition: outer.repetition,
                    leaves: element.leaves.clone(),
                    kind: ShapeKind::List(repeated, Box::new(element)),
                })
            }
        }
    }

    /// What a node is, apart from its own repetition. `levels` are those of a slot that is present.
    fn inner(&self, node: usize, levels: Levels, is_nullable: bool) -> Result<Shape> {
        if levels.depth > DEPTH_MAX || levels.repetition > LISTS_MAX {
            let error = Error::too_large(format!("a record of more than {DEPTH_MAX} levels"));
            return Err(error.at(|place| place.column = Some(self.path(node))));
        }
        let found = &self.nodes[node];
        let below = Levels { depth: levels.depth + 1, ..levels };
        let kind = match (&found.kind, &found.logical_type) {
            (NodeKind::Leaf { .. }, _) => ShapeKind::Leaf,
            (NodeKind::Group { .. }, Some(LogicalType::List)) => self.list(node, levels)?,
            (NodeKind::Group { .. }, Some(LogicalType::Map | LogicalType::MapKeyValue))
                if self.only_repeated_child(node).is_some() =>
            {
                self.map(node, below)?
            }
            // A MAP annotation on any other group: the group is what can be read.
            (NodeKind::Group { .. }, _) => ShapeKind::Struct(
                self.children(node).map(|child| self.field(child, below)).collect::<Result<Vec<_>>>()?,
            ),
        };
        Ok(Shape {
            node,
            is_nullable,
            definition: levels.definition,
            repetition: levels.repetition,
            leaves: self.leaf_range(node),
            kind,
        })
    }

    fn list(&self, node: usize, levels: Levels) -> Result<ShapeKind> {
        let middle = self
            .only_repeated_child(node)
            .ok_or_else(|| self.wrong(node, "a LIST that is not one repeated field"))?;
        let (repeated, inner) = repeated(levels);
        let mut children = self.children(middle);
        let (first, second) = (children.next(), children.next());
        let is_element_itself = match (first, second) {
            // Rule 1: not a group. (Or an empty group, which can only be an element itself.)
            (None, _) => true,
            // Rule 2: several fields.
            (_, Some(_)) => true,
            // Rules 3 and 4: its only field is repeated, or its name says so.
            (Some(only), None) => {
                let name = &self.nodes[middle].name;
                self.nodes[only].repetition == Repetition::Repeated
                    || name == "array"
                    || name.strip_suffix("_tuple").is_some_and(|stem| stem == self.nodes[node].name)
            }
        };
        let element = match first {
            // Rule 5: the usual shape.
            Some(only) if !is_element_itself => self.field(only, inner)?,
            _ => self.inner(middle, inner, false)?,
        };
        Ok(ShapeKind::List(repeated, Box::new(element)))
    }

    fn map(&self, node: usize, levels: Levels) -> Result<ShapeKind> {
        let middle = self
            .only_repeated_child(node)
            .ok_or_else(|| Error::internal("a MAP that is not one repeated field"))?;
        let (repeated, inner) = repeated(levels);
        let inner = Levels { depth: inner.depth + 1, ..inner };
        let children: Vec<usize> = self.children(middle).take(3).collect();
        let (key, value) = match children[..] {
            [key] => (key, None),
            [key, value] => (key, Some(value)),
            _ => return Err(self.wrong(node, "a MAP whose entries are not a key and a value")),
        };
        let key = self.field(key, inner)?;
        let value = value.map(|value| self.field(value, inner).map(Box::new)).transpose()?;
        Ok(ShapeKind::Map(repeated, Box::new(key), value))
    }

    /// The only child of a group, if that is repeated: what a LIST and a MAP have.
    fn only_repeated_child(&self, node: usize) -> Option<usize> {
        let mut children = self.children(node);
        match (children.next(), children.next()) {
            (Some(only), None) if self.nodes[only].repetition == Repetition::Repeated => Some(only),
            _ => None,
        }
    }

    fn leaf_range(&self, node: usize) -> Range<usize> {
        let mut leaves = self.leaves_of(node);
        match leaves.next() {
            Some(first) => first..first + 1 + leaves.count(),
            None => 0..0,
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

impl Shape {
    /// The shape with only those leaves for which `wanted` returns true. A map without its keys is a list of its
    /// values.
    fn project(self, wanted: &impl Fn(usize) -> bool) -> Option<Shape> {
        let project = |shape: Box<Shape>| shape.project(wanted).map(Box::new);
        let kind = match self.kind {
            ShapeKind::Leaf => wanted(self.leaves.start).then_some(ShapeKind::Leaf),
            ShapeKind::Struct(fields) => {
                let was_empty = fields.is_empty();
                let fields: Vec<Shape> =
                    fields.into_iter().filter_map(|field| field.project(wanted)).collect();
                (was_empty || !fields.is_empty()).then_some(ShapeKind::Struct(fields))
            }
            ShapeKind::List(repeated, element) => {
                project(element).map(|element| ShapeKind::List(repeated, element))
            }
            ShapeKind::Map(repeated, key, value) => match (project(key), value.and_then(project)) {
                (Some(key), value) => Some(ShapeKind::Map(repeated, key, value)),
                (None, Some(value)) => Some(ShapeKind::List(repeated, value)),
                (None, None) => None,
            },
        }?;
        Some(Shape { kind, ..self })
    }

    /// The first leaf in the projection, whose levels determine this shape as well as any other leaf's. `None` for an
    /// empty struct.
    pub fn first_leaf(&self) -> Option<usize> {
        match &self.kind {
            ShapeKind::Leaf => Some(self.leaves.start),
            ShapeKind::Struct(fields) => fields.iter().find_map(Shape::first_leaf),
            ShapeKind::List(_, element) => element.first_leaf(),
            ShapeKind::Map(_, key, value) => {
                key.first_leaf().or_else(|| value.as_ref().and_then(|value| value.first_leaf()))
            }
        }
    }
}

/// The levels of a repeated field's elements.
fn repeated(outer: Levels) -> (Repeated, Levels) {
    let (definition, repetition) = (outer.definition + 1, outer.repetition + 1);
    (Repeated { definition, repetition }, Levels { definition, repetition, ..outer })
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
    pub(in crate::schema) fn words(schema: &Schema, shape: &Shape) -> String {
        let inner = match &shape.kind {
            ShapeKind::Leaf => "int".to_string(),
            ShapeKind::Struct(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|field| format!("{}: {}", schema.nodes()[field.node].name, words(schema, field)))
                    .collect();
                format!("{{{}}}", fields.join(", "))
            }
            ShapeKind::List(_, element) => format!("[{}]", words(schema, element)),
            ShapeKind::Map(_, key, Some(value)) => {
                format!("<{} -> {}>", words(schema, key), words(schema, value))
            }
            ShapeKind::Map(_, key, None) => format!("<{}>", words(schema, key)),
        };
        let nullable = if shape.is_nullable { "?" } else { "" };
        format!("{inner}{nullable}@{}", shape.definition)
    }

    fn meaning(lines: &[(usize, char, &str, &str)]) -> String {
        let schema = schema(lines);
        words(&schema, &schema.shape(1, |_| true).unwrap().unwrap())
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
        let wrong = |lines: &[(usize, char, &str, &str)]| schema(lines).shape(1, |_| true).unwrap_err();
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
        let cut = |leaves: &[usize]| {
            let shape = schema.shape(1, |leaf| leaves.contains(&leaf)).unwrap();
            shape.map(|shape| words(&schema, &shape))
        };
        assert_eq!(cut(&[2, 4]).unwrap(), "{l: [{c: int@3}@3]?@2, m: [int?@4]?@2}?@1");
        assert_eq!(cut(&[0]).unwrap(), "{a: int?@2}?@1");
        assert_eq!(cut(&[3]).unwrap(), "{m: <int@3>?@2}?@1");
        assert_eq!(cut(&[]), None);
    }
}
