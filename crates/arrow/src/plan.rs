//! How the fields of an Arrow schema are built.

use arrow_schema::FieldRef;

/// A field, and how it is assembled.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The node of the schema.
    pub(crate) node: usize,
    pub(crate) field: FieldRef,
    pub(crate) kind: PlanKind,
}

/// How a field is assembled.
#[derive(Debug)]
pub(crate) enum PlanKind {
    /// Of a leaf's values.
    Leaf(usize),
    /// Of its fields.
    Struct(Vec<Plan>),
    /// Of its elements.
    List(Box<Plan>),
    /// The fields of its keys, its values, and the struct of both.
    Map { entries: FieldRef, key: Box<Plan>, value: Box<Plan> },
}
