//! Schemas that are written from what their fields mean.
//!
//! Lists and maps are written in the one shape that the format recommends (`LogicalTypes.md`, "Nested Types"), whatever
//! shape they were read from. That never changes a level: the shapes differ only in required nodes.

use alloc::vec::Vec;

use marquetry_base::Segmented;

use super::{ConvertedType, Leaf, LogicalType, Node, NodeKind, PhysicalType, Repetition, Schema};

/// A field that is written.
#[derive(Debug)]
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    /// As [`Node::is_numbered`].
    pub(super) is_numbered: bool,
    pub(super) field_id: Option<i32>,
    pub(super) is_nullable: bool,
    /// Of leaves and structs; lists and maps have theirs by kind.
    pub(super) logical_type: Option<LogicalType>,
    pub(super) converted_type: Option<ConvertedType>,
    pub(super) is_older_only: bool,
    pub(super) kind: FieldKind,
}

/// What a [`Field`] holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldKind {
    Leaf(PhysicalType),
    Struct,
    List,
    Map,
}

impl<'a> Field<'a> {
    /// A field as a node of another schema has it.
    pub(super) fn of(node: &'a Node, is_nullable: bool, kind: FieldKind) -> Field<'a> {
        let is_annotated = matches!(kind, FieldKind::Leaf(_) | FieldKind::Struct);
        Field {
            name: &node.name,
            is_numbered: node.is_numbered,
            field_id: node.field_id,
            is_nullable,
            logical_type: node.logical_type.clone().filter(|_| is_annotated),
            converted_type: node.converted_type.filter(|_| is_annotated),
            is_older_only: node.is_older_only && is_annotated,
            kind,
        }
    }
}

/// Writes fields as a schema, one by one: each is begun, and each but a leaf is ended after what is in it.
#[derive(Debug)]
pub(super) struct Writer {
    schema: Schema,
    /// The structs, lists and maps that are begun.
    open: Vec<Open>,
}

/// A struct, list or map that is begun.
#[derive(Debug, Clone, Copy)]
struct Open {
    kind: FieldKind,
    /// Its node, and the node that its fields are in: of a list or map, the repeated group.
    node: usize,
    inner: usize,
    /// The levels there.
    definition: u16,
    repetition: u16,
    /// Fields so far.
    fields: usize,
}

/// The converted types LIST and MAP.
const CONVERTED_LIST: ConvertedType = ConvertedType(3);
const CONVERTED_MAP: ConvertedType = ConvertedType(1);

impl Writer {
    /// A schema whose root has this name, with nothing below it yet.
    pub(super) fn new(name: &str) -> Writer {
        let schema = Schema { nodes: Segmented::new(), leaves: Segmented::new() };
        let mut writer = Writer { schema, open: Vec::new() };
        writer.node(plain(name, Repetition::Required, 0));
        let kind = FieldKind::Struct;
        writer.open.push(Open { kind, node: 0, inner: 0, definition: 0, repetition: 0, fields: 0 });
        writer
    }

    /// Begins a field. Returns its node.
    pub(super) fn begin(&mut self, field: Field<'_>) -> usize {
        let (mut name, mut around) = (field.name, (0, 0, 0));
        if let Some(open) = self.open.last_mut() {
            name = match (open.kind, open.fields) {
                (FieldKind::List, _) => "element",
                (FieldKind::Map, 0) => "key",
                (FieldKind::Map, _) => "value",
                _ => field.name,
            };
            open.fields += 1;
            around = (open.inner, open.definition, open.repetition);
        }
        let (parent, definition, repetition) = around;
        let definition = definition + u16::from(field.is_nullable);
        let own = if field.is_nullable { Repetition::Optional } else { Repetition::Required };
        let (logical_type, converted_type) = match field.kind {
            FieldKind::Leaf(_) | FieldKind::Struct => (field.logical_type, field.converted_type),
            FieldKind::List => (Some(LogicalType::List), Some(CONVERTED_LIST)),
            FieldKind::Map => (Some(LogicalType::Map), Some(CONVERTED_MAP)),
        };
        let node = self.node(Node {
            logical_type,
            converted_type,
            is_older_only: field.is_older_only,
            field_id: field.field_id,
            is_numbered: field.is_numbered && name == field.name,
            ..plain(name, own, parent)
        });
        let mut open = Open { kind: field.kind, node, inner: node, definition, repetition, fields: 0 };
        match field.kind {
            FieldKind::Leaf(physical_type) => {
                let leaf = self.schema.leaves.len();
                self.schema.nodes[node].kind = NodeKind::Leaf { leaf };
                let (definition_max, repetition_max) = (definition, repetition);
                self.schema.leaves.push(Leaf { node, physical_type, definition_max, repetition_max });
                return node;
            }
            FieldKind::Struct => {}
            FieldKind::List | FieldKind::Map => {
                let name = if field.kind == FieldKind::List { "list" } else { "key_value" };
                open.inner = self.node(plain(name, Repetition::Repeated, node));
                (open.definition, open.repetition) = (definition + 1, repetition + 1);
            }
        }
        self.open.push(open);
        node
    }

    /// Ends the struct, list or map that was begun last and is not ended.
    pub(super) fn end(&mut self) {
        let end = self.schema.nodes.len();
        for group in self.open.pop().into_iter().flat_map(|open| [open.node, open.inner]) {
            self.schema.nodes[group].kind = NodeKind::Group { end };
        }
    }

    /// The schema, once all fields are ended.
    pub(super) fn finish(mut self) -> Schema {
        while !self.open.is_empty() {
            self.end();
        }
        self.schema
    }

    fn node(&mut self, node: Node) -> usize {
        let at = self.schema.nodes.len();
        self.schema.nodes.push(Node { kind: NodeKind::Group { end: at + 1 }, ..node });
        at
    }
}

/// A node without an annotation.
fn plain(name: &str, repetition: Repetition, parent: usize) -> Node {
    Node {
        name: name.into(),
        is_numbered: false,
        repetition,
        logical_type: None,
        converted_type: None,
        is_older_only: false,
        field_id: None,
        parent,
        kind: NodeKind::Group { end: 0 },
    }
}
