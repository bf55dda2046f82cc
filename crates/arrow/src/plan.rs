//! How the fields of an Arrow schema are made.

use arrow_schema::FieldRef;

/// A field, and how it is assembled.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) field: FieldRef,
    pub(crate) kind: PlanKind,
}

/// How a field is assembled.
#[derive(Debug)]
pub(crate) enum PlanKind {
    /// Of a leaf's values.
    Leaf { leaf: usize, path: String },
    /// Of its fields.
    Struct(Vec<Plan>),
    /// Of its elements.
    List(Box<Plan>),
    /// Of its keys and values, and the name of both together.
    Map { entries: FieldRef, key: Box<Plan>, value: Box<Plan> },
}
