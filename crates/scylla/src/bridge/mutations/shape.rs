//! The natural Parquet type of each CQL type, and what a decoder needs to know of it.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::calendar::TimeUnit;
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType};

use crate::cql::CqlType;
use crate::sstable::marshal::MarshalType;

/// A column's type as a tree: nodes in an array, the column itself first.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shapes {
    pub(super) nodes: Vec<Shape>,
    /// The leaves, in the order of the schema.
    pub(super) leaves: Vec<LeafShape>,
}

/// A node: a value, or a group of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    /// The definition level at which it is not null.
    pub(super) definition: u8,
    /// The repetition level of an element of the list that it is in, but for the list's first.
    pub(super) repetition: u8,
    /// It is never null: a key of a map.
    pub(super) is_required: bool,
    /// The leaves below it.
    pub(super) leaves: Range<usize>,
    pub(super) form: Form,
}

/// What a node holds; other nodes by their number.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    Leaf(Kind),
    /// Three leaves: months, days, nanoseconds.
    Duration,
    /// A list or a set.
    List(usize),
    Map(usize, usize),
    /// A tuple or a user-defined type.
    Fields(Vec<usize>),
    Vector {
        element: usize,
        count: u32,
        /// The length of an element, if that is fixed.
        element_bytes: Option<u32>,
    },
}

/// What a leaf holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LeafShape {
    pub(super) kind: Kind,
    /// The definition level of a value.
    pub(super) definition: u8,
    /// The largest repetition level.
    pub(super) repetition: u8,
}

/// How a value is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Tinyint,
    Smallint,
    Int,
    Bigint,
    Float,
    Double,
    Text,
    /// Bytes, of `blob`, and of types that CQL cannot name.
    Bytes,
    Uuid,
    Date,
    Time,
    Timestamp,
    Inet,
    Decimal,
    Varint,
    Counter,
}

impl Kind {
    fn of(native: &CqlType) -> Kind {
        match native {
            CqlType::Boolean => Kind::Boolean,
            CqlType::Tinyint => Kind::Tinyint,
            CqlType::Smallint => Kind::Smallint,
            CqlType::Int => Kind::Int,
            CqlType::Bigint => Kind::Bigint,
            CqlType::Float => Kind::Float,
            CqlType::Double => Kind::Double,
            CqlType::Text | CqlType::Ascii => Kind::Text,
            CqlType::Uuid | CqlType::Timeuuid => Kind::Uuid,
            CqlType::Date => Kind::Date,
            CqlType::Time => Kind::Time,
            CqlType::Timestamp => Kind::Timestamp,
            CqlType::Inet => Kind::Inet,
            CqlType::Decimal => Kind::Decimal,
            CqlType::Varint => Kind::Varint,
            CqlType::Counter => Kind::Counter,
            _ => Kind::Bytes,
        }
    }

    pub(super) fn physical(self) -> PhysicalType {
        match self {
            Kind::Boolean => PhysicalType::Boolean,
            Kind::Tinyint | Kind::Smallint | Kind::Int | Kind::Date => PhysicalType::Int32,
            Kind::Bigint | Kind::Time | Kind::Timestamp | Kind::Counter => PhysicalType::Int64,
            Kind::Float => PhysicalType::Float,
            Kind::Double => PhysicalType::Double,
            Kind::Uuid => PhysicalType::FixedLenByteArray(16),
            Kind::Text | Kind::Bytes | Kind::Inet | Kind::Decimal | Kind::Varint => PhysicalType::ByteArray,
        }
    }

    fn logical(self) -> Option<LogicalType> {
        let integer = |bit_width| LogicalType::Integer { bit_width, is_signed: true };
        Some(match self {
            Kind::Tinyint => integer(8),
            Kind::Smallint => integer(16),
            Kind::Text | Kind::Inet | Kind::Decimal | Kind::Varint => LogicalType::String,
            Kind::Uuid => LogicalType::Uuid,
            Kind::Date => LogicalType::Date,
            Kind::Time => LogicalType::Time { is_adjusted_to_utc: false, unit: TimeUnit::Nanos },
            Kind::Timestamp => LogicalType::Timestamp { is_adjusted_to_utc: true, unit: TimeUnit::Millis },
            _ => return None,
        })
    }

    pub(super) fn field_type(self) -> FieldType {
        FieldType::Leaf(self.physical(), self.logical())
    }
}

/// What has a cell for each element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Multi {
    /// Nothing: a column of one cell.
    No,
    List,
    Set,
    Map,
    User,
}

impl Multi {
    pub(super) fn of(kind: &MarshalType) -> Multi {
        match kind {
            MarshalType::List(_) => Multi::List,
            MarshalType::Set(_) => Multi::Set,
            MarshalType::Map(..) => Multi::Map,
            MarshalType::User { .. } => Multi::User,
            _ => Multi::No,
        }
    }
}

/// The same of a column of one leaf, as bytes.
pub(super) fn as_bytes(name: &str, shapes: &Shapes) -> (Shapes, FieldDef) {
    let mut shapes = shapes.clone();
    shapes.leaves.iter_mut().for_each(|leaf| leaf.kind = Kind::Bytes);
    shapes.nodes.iter_mut().for_each(|node| node.form = Form::Leaf(Kind::Bytes));
    (shapes, FieldDef::new(name, Kind::Bytes.field_type()))
}

impl Shapes {
    /// The tree of a column of this name and type that is a nullable child of a group at this definition level, and the field
    /// of the schema.
    pub(super) fn new(name: &str, kind: &MarshalType, definition: u8, repetition: u8) -> (Shapes, FieldDef) {
        let mut shapes = Shapes { nodes: Vec::new(), leaves: Vec::new() };
        let (_, field_type) = shapes.add(kind, definition, repetition, false);
        (shapes, FieldDef::new(name, field_type))
    }

    /// The column itself.
    pub(super) fn root(&self) -> &Shape {
        &self.nodes[0]
    }

    /// The kind of a column that is one leaf.
    pub(super) fn leaf(&self) -> Option<Kind> {
        match self.root().form {
            Form::Leaf(kind) => Some(kind),
            _ => None,
        }
    }

    /// Adds a node below one at definition level `above`, and all below it. It recurses as deep as names of types do.
    fn add(
        &mut self,
        kind: &MarshalType,
        above: u8,
        repetition: u8,
        is_required: bool,
    ) -> (usize, FieldType) {
        let definition = above.saturating_add(u8::from(!is_required));
        let number = self.nodes.len();
        let first_leaf = self.leaves.len();
        let form = Form::Duration;
        self.nodes.push(Shape { definition, repetition, is_required, leaves: 0..0, form });
        let (form, field_type) = self.form(kind, definition, repetition);
        let shape = &mut self.nodes[number];
        shape.leaves = first_leaf..self.leaves.len();
        shape.form = form;
        (number, field_type)
    }

    fn form(&mut self, kind: &MarshalType, definition: u8, repetition: u8) -> (Form, FieldType) {
        let element_levels = (definition.saturating_add(1), repetition.saturating_add(1));
        match kind {
            MarshalType::Native(CqlType::Duration) => {
                let part = |name: &str, kind: Kind| FieldDef::new(name, kind.field_type()).required();
                let fields =
                    [part("months", Kind::Int), part("days", Kind::Int), part("nanoseconds", Kind::Bigint)];
                for kind in [Kind::Int, Kind::Int, Kind::Bigint] {
                    self.leaves.push(LeafShape { kind, definition, repetition });
                }
                (Form::Duration, FieldType::Struct(fields.into(), None))
            }
            MarshalType::Native(native) => self.leaf_of(Kind::of(native), definition, repetition),
            MarshalType::List(element) | MarshalType::Set(element) => {
                let (node, field_type) = self.add(element, element_levels.0, element_levels.1, false);
                let element = FieldDef::new("element", field_type);
                (Form::List(node), FieldType::List(Box::new(element)))
            }
            MarshalType::Vector(element, count) => {
                let element_bytes = element.fixed_bytes();
                let (node, field_type) = self.add(element, element_levels.0, element_levels.1, false);
                let element = FieldDef::new("element", field_type);
                let form = Form::Vector { element: node, count: count.get(), element_bytes };
                (form, FieldType::List(Box::new(element)))
            }
            MarshalType::Map(key, value) => {
                let (key, key_type) = self.add(key, element_levels.0, element_levels.1, true);
                let (value, value_type) = self.add(value, element_levels.0, element_levels.1, false);
                let key_field = FieldDef::new("key", key_type).required();
                let value_field = FieldDef::new("value", value_type);
                let field_type = FieldType::Map(Box::new(key_field), Some(Box::new(value_field)));
                (Form::Map(key, value), field_type)
            }
            MarshalType::Tuple(members) => {
                let names = (0..members.len()).map(|number| format!("_{number}"));
                self.fields(names.zip(members), definition, repetition)
            }
            MarshalType::User { fields, .. } if !fields.is_empty() => {
                let fields = fields.iter().map(|(name, kind)| (name.clone(), kind));
                self.fields(fields, definition, repetition)
            }
            MarshalType::Frozen(inner) | MarshalType::Reversed(inner) => {
                self.form(inner, definition, repetition)
            }
            MarshalType::User { .. }
            | MarshalType::Empty
            | MarshalType::Composite(_)
            | MarshalType::DynamicComposite(_) => self.leaf_of(Kind::Bytes, definition, repetition),
        }
    }

    fn leaf_of(&mut self, kind: Kind, definition: u8, repetition: u8) -> (Form, FieldType) {
        self.leaves.push(LeafShape { kind, definition, repetition });
        (Form::Leaf(kind), kind.field_type())
    }

    fn fields<'a>(
        &mut self,
        fields: impl Iterator<Item = (String, &'a MarshalType)>,
        definition: u8,
        repetition: u8,
    ) -> (Form, FieldType) {
        let (mut nodes, mut defs) = (Vec::new(), Vec::new());
        for (name, kind) in fields {
            let (node, field_type) = self.add(kind, definition, repetition, false);
            nodes.push(node);
            defs.push(FieldDef::new(name, field_type));
        }
        (Form::Fields(nodes), FieldType::Struct(defs, None))
    }
}
