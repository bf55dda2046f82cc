//! The tree of types: groups and leaves, their repetition, logical types and levels.
//!
//! Source: parquet-format's `README.md` (Nested Encoding), `LogicalTypes.md`, and `SchemaElement` of `parquet.thrift`.

mod build;
mod field;
mod make;
mod meaning;
mod paths;
mod project;
mod shape;
mod types;
mod union;
mod unique;
mod widen;

use alloc::string::String;

use marquetry_base::Segmented;

pub(crate) use build::{ELEMENT_FIELDS, Element, SchemaBuilder};
pub use make::{FieldDef, FieldType};
pub use meaning::Meaning;
pub(crate) use paths::Paths;
pub use project::{PathError, PathPart, Projection};
#[cfg(test)]
pub(crate) use shape::tests::schema as of_lines;
pub use shape::{Repeated, Shape, ShapeKind};
pub use types::{ConvertedType, EdgeAlgorithm, LogicalType, PhysicalType, Repetition, TimeUnit};
pub use union::{Column, Difference, DifferenceKind, Unified, Union};
pub(crate) use widen::{LeafType, Widening};

/// A schema: its nodes depth-first, the root first, and its leaves in the order of their column chunks.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    nodes: Segmented<Node>,
    leaves: Segmented<Leaf>,
}

/// A group or a leaf of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The field's name, by which it is found. The root's name is meaningless.
    pub name: String,
    /// The name ends in a number that makes it [unique](Schema::with_unique_names), and that is not in the file.
    pub is_numbered: bool,
    /// How often it occurs in its parent. The root is required.
    pub repetition: Repetition,
    /// The writer's annotation: the newer `logicalType`, or else the older `converted_type`.
    pub logical_type: Option<LogicalType>,
    /// The older annotation, as stored.
    pub converted_type: Option<ConvertedType>,
    /// The writer gave only the older annotation, and so it is written: DuckDB and Polars take a TIMESTAMP without a
    /// `logicalType` for local time.
    pub is_older_only: bool,
    /// The number that the original schema gave it.
    pub field_id: Option<i32>,
    /// The parent's index in [`Schema::nodes`]; the root is its own parent.
    pub parent: usize,
    /// Group or leaf.
    pub kind: NodeKind,
}

/// What a node holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// A group: its descendants are the nodes after it up to `end`.
    Group {
        /// The index of the first node that is not below it.
        end: usize,
    },
    /// A leaf.
    Leaf {
        /// Its index in [`Schema::leaves`].
        leaf: usize,
    },
}

/// A leaf, which has a column chunk per row group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Its node's index in [`Schema::nodes`].
    pub node: usize,
    /// How values are held.
    pub physical_type: PhysicalType,
    /// The definition level of a value that is present.
    pub definition_max: u16,
    /// The largest repetition level.
    pub repetition_max: u16,
}

impl Schema {
    /// All nodes, depth-first, the root first.
    pub fn nodes(&self) -> &Segmented<Node> {
        &self.nodes
    }

    /// All leaves, in the order of a row group's column chunks.
    pub fn leaves(&self) -> &Segmented<Leaf> {
        &self.leaves
    }

    /// The node of a leaf.
    pub fn node_of(&self, leaf: &Leaf) -> &Node {
        &self.nodes[leaf.node]
    }

    /// The indices of a group's children; none for a leaf or an invalid index.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let end = match self.nodes.get(node).map(|node| node.kind) {
            Some(NodeKind::Group { end }) => end,
            _ => 0,
        };
        let mut next = node + 1;
        core::iter::from_fn(move || {
            if next >= end {
                return None;
            }
            let child = next;
            next = match self.nodes[child].kind {
                NodeKind::Group { end } => end,
                NodeKind::Leaf { .. } => child + 1,
            };
            Some(child)
        })
    }

    /// The leaves below a node; for a leaf, itself.
    pub fn leaves_of(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let end = match self.nodes.get(node).map(|node| node.kind) {
            Some(NodeKind::Group { end }) => end,
            Some(NodeKind::Leaf { .. }) => node + 1,
            None => node,
        };
        let from = node.min(end);
        self.nodes.iter_from(from).take(end - from).filter_map(|node| match node.kind {
            NodeKind::Leaf { leaf } => Some(leaf),
            NodeKind::Group { .. } => None,
        })
    }

    /// Releases a leaf or a node; false if none is left. Afterwards it is no longer a usable schema.
    pub(crate) fn pop(&mut self) -> bool {
        self.leaves.pop().is_some() || self.nodes.pop().is_some()
    }

    /// The root's child with that name; the first, if there are several.
    pub fn child_of_root(&self, name: &str) -> Option<usize> {
        self.children(0).find(|&child| self.nodes[child].name == name)
    }
}

impl Leaf {
    /// True for a column that is a child of the root and not repeated: it has one value or null per row.
    pub fn is_flat(&self) -> bool {
        self.repetition_max == 0 && self.definition_max <= 1
    }
}
