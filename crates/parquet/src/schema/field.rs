//! A schema as a tree of what its fields mean, and the schema that is written for such a tree.
//!
//! Lists and maps are written in the one shape that the format recommends (`LogicalTypes.md`, "Nested Types"), whatever
//! shape they were read from. That never changes a level: the shapes differ only in required nodes.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::Segmented;

use super::{
    ConvertedType, Leaf, LogicalType, Node, NodeKind, PhysicalType, Repetition, Schema, Shape, ShapeKind,
};

/// A field.
#[derive(Debug)]
pub(super) struct Field<M> {
    pub(super) name: String,
    pub(super) field_id: Option<i32>,
    pub(super) is_nullable: bool,
    /// Of leaves and structs; lists and maps have theirs by kind.
    pub(super) logical_type: Option<LogicalType>,
    pub(super) converted_type: Option<ConvertedType>,
    pub(super) is_older_only: bool,
    pub(super) kind: FieldKind<M>,
    /// What else its user keeps about it.
    pub(super) marks: M,
}

/// What a [`Field`] holds.
#[derive(Debug)]
pub(super) enum FieldKind<M> {
    Leaf(PhysicalType),
    Struct(Fields<M>),
    List(Box<Field<M>>),
    Map(Box<Field<M>>, Option<Box<Field<M>>>),
}

/// The fields of a struct, and an index of their names.
#[derive(Debug)]
pub(super) struct Fields<M> {
    pub(super) list: Vec<Field<M>>,
    pub(super) by_name: BTreeMap<String, usize>,
    /// In a union: the last source that has the struct.
    pub(super) last: Option<usize>,
}

impl<M> Default for Fields<M> {
    fn default() -> Fields<M> {
        Fields { list: Vec::new(), by_name: BTreeMap::new(), last: None }
    }
}

impl<M: Default> Field<M> {
    /// The field that a shape of `schema` describes. It recurses as deep as shapes are.
    pub(super) fn of(schema: &Schema, shape: &Shape) -> Field<M> {
        let node = &schema.nodes[shape.node];
        let below = |shape: &Shape| Box::new(Field::of(schema, shape));
        let kind = match &shape.kind {
            // A shape's leaf is in its node's range of leaves.
            ShapeKind::Leaf => FieldKind::Leaf(schema.leaves[shape.leaves.start].physical_type),
            ShapeKind::Struct(fields) => FieldKind::Struct(Fields {
                list: fields.iter().map(|field| Field::of(schema, field)).collect(),
                ..Fields::default()
            }),
            ShapeKind::List(_, element) => FieldKind::List(below(element)),
            ShapeKind::Map(_, key, value) => {
                FieldKind::Map(below(key), value.as_ref().map(|value| below(value)))
            }
        };
        let is_annotated = matches!(kind, FieldKind::Leaf(_) | FieldKind::Struct(_));
        Field {
            name: node.name.clone(),
            field_id: node.field_id,
            is_nullable: shape.is_nullable,
            logical_type: node.logical_type.clone().filter(|_| is_annotated),
            converted_type: node.converted_type.filter(|_| is_annotated),
            is_older_only: node.is_older_only && is_annotated,
            kind,
            marks: M::default(),
        }
    }
}

/// Writes fields as a schema.
pub(super) struct Writer {
    schema: Schema,
}

/// The converted types LIST and MAP.
const CONVERTED_LIST: ConvertedType = ConvertedType(3);
const CONVERTED_MAP: ConvertedType = ConvertedType(1);

/// Where a node is added.
#[derive(Clone, Copy)]
struct Place {
    parent: usize,
    definition: u16,
    repetition: u16,
}

impl Writer {
    /// A schema whose root has this name, with nothing below it yet.
    pub(super) fn new(name: &str) -> Writer {
        let mut writer = Writer { schema: Schema { nodes: Segmented::new(), leaves: Segmented::new() } };
        let root = Named::of(name);
        writer.node(root, Repetition::Required, 0, None);
        writer
    }

    /// Adds a child of the root. `told` is called with the node of each field.
    pub(super) fn add<M>(&mut self, field: &Field<M>, told: &mut impl FnMut(usize, &Field<M>)) {
        self.field(field, &field.name, Place { parent: 0, definition: 0, repetition: 0 }, told);
    }

    pub(super) fn finish(mut self) -> Schema {
        self.close(0);
        self.schema
    }

    /// It recurses, as deep as shapes are.
    fn field<M>(
        &mut self,
        field: &Field<M>,
        name: &str,
        place: Place,
        told: &mut impl FnMut(usize, &Field<M>),
    ) {
        let repetition = if field.is_nullable { Repetition::Optional } else { Repetition::Required };
        let place = Place { definition: place.definition + u16::from(field.is_nullable), ..place };
        let named = |annotation, converted_type| Named {
            name,
            field_id: field.field_id,
            annotation,
            converted_type,
            is_older_only: false,
        };
        match &field.kind {
            FieldKind::Leaf(physical_type) => {
                let named = named(field.logical_type.clone(), field.converted_type);
                let named = Named { is_older_only: field.is_older_only, ..named };
                let node = self.node(named, repetition, place.parent, Some(self.schema.leaves.len()));
                told(node, field);
                self.schema.leaves.push(Leaf {
                    node,
                    physical_type: *physical_type,
                    definition_max: place.definition,
                    repetition_max: place.repetition,
                });
            }
            FieldKind::Struct(fields) => {
                let named = named(field.logical_type.clone(), field.converted_type);
                let named = Named { is_older_only: field.is_older_only, ..named };
                let node = self.node(named, repetition, place.parent, None);
                told(node, field);
                for field in &fields.list {
                    self.field(field, &field.name, Place { parent: node, ..place }, told);
                }
                self.close(node);
            }
            FieldKind::List(element) => {
                let named = named(Some(LogicalType::List), Some(CONVERTED_LIST));
                let node = self.node(named, repetition, place.parent, None);
                told(node, field);
                let below = self.repeated("list", node, place);
                self.field(element, "element", below, told);
                self.close(below.parent);
                self.close(node);
            }
            FieldKind::Map(key, value) => {
                let named = named(Some(LogicalType::Map), Some(CONVERTED_MAP));
                let node = self.node(named, repetition, place.parent, None);
                told(node, field);
                let below = self.repeated("key_value", node, place);
                self.field(key, "key", below, told);
                if let Some(value) = value {
                    self.field(value, "value", below, told);
                }
                self.close(below.parent);
                self.close(node);
            }
        }
    }

    /// Adds the repeated group of a list or map. Returns where its contents are added.
    fn repeated(&mut self, name: &str, parent: usize, place: Place) -> Place {
        let named = Named::of(name);
        let node = self.node(named, Repetition::Repeated, parent, None);
        Place { parent: node, definition: place.definition + 1, repetition: place.repetition + 1 }
    }

    fn node(
        &mut self,
        named: Named<'_>,
        repetition: Repetition,
        parent: usize,
        leaf: Option<usize>,
    ) -> usize {
        let at = self.schema.nodes.len();
        self.schema.nodes.push(Node {
            name: named.name.into(),
            is_numbered: false,
            repetition,
            logical_type: named.annotation,
            converted_type: named.converted_type,
            is_older_only: named.is_older_only,
            field_id: named.field_id,
            parent,
            kind: match leaf {
                Some(leaf) => NodeKind::Leaf { leaf },
                None => NodeKind::Group { end: at + 1 },
            },
        });
        at
    }

    /// All that was added since is below this group.
    fn close(&mut self, group: usize) {
        let end = self.schema.nodes.len();
        self.schema.nodes[group].kind = NodeKind::Group { end };
    }
}

struct Named<'a> {
    name: &'a str,
    field_id: Option<i32>,
    annotation: Option<LogicalType>,
    converted_type: Option<ConvertedType>,
    is_older_only: bool,
}

impl Named<'_> {
    /// Without an annotation.
    fn of(name: &str) -> Named<'_> {
        Named { name, field_id: None, annotation: None, converted_type: None, is_older_only: false }
    }
}
