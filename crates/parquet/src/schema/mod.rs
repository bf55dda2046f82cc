//! The tree of types: groups and leaves, their repetition, logical types and levels.
//!
//! Source: parquet-format's `README.md` (Nested Encoding), `LogicalTypes.md`, and `SchemaElement` of `parquet.thrift`.

mod build;
mod change;
mod field;
mod make;
mod meaning;
mod names;
mod paths;
mod plan;
mod project;
mod shape;
mod types;
mod union;
mod unique;
mod walk;
mod widen;

use alloc::string::String;
use core::ops::Range;

use marquetry_base::{Budget, Release, Segmented, release_all};

pub(crate) use build::{ELEMENT_FIELDS, Element, Glance, SchemaBuilder};
pub use make::{FieldDef, FieldType};
pub use meaning::Meaning;
pub(crate) use names::{Named, Names};
pub use paths::{FieldAt, PathError, PathPart, Paths};
pub(crate) use plan::FIELD_PRICE;
pub use plan::Plan;
pub use project::{Projection, ProjectionPlan};
pub(crate) use shape::Spot;
#[cfg(test)]
pub(crate) use shape::tests::schema as of_lines;
pub use shape::{Fields, Repeated, Shape, ShapeKind};
pub use types::{ConvertedType, EdgeAlgorithm, LogicalType, PhysicalType, Repetition, TimeUnit};
pub use union::{Column, Difference, DifferenceKind, Unified, Union, UnionPlan};
pub(crate) use walk::{Holds, Visit, Walk};
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
        let end = self.end_of(node);
        core::iter::successors(Some(node.saturating_add(1)), |&child| Some(self.end_of(child)))
            .take_while(move |&child| child < end)
    }

    /// The leaves below a node; for a leaf, itself. They are consecutive.
    pub fn leaves_of(&self, node: usize) -> Range<usize> {
        match self.nodes.get(node).map(|node| node.kind) {
            Some(NodeKind::Leaf { leaf }) => leaf..leaf + 1,
            Some(NodeKind::Group { end }) => {
                let before = |node: usize| self.leaves.partition_point(|leaf| leaf.node < node);
                before(node)..before(end)
            }
            None => 0..0,
        }
    }

    /// A schema of the root, without anything below it.
    pub(crate) fn root_alone(&self) -> Schema {
        let root = self.nodes.first().cloned();
        let root = root.map(|root| Node { kind: NodeKind::Group { end: 1 }, ..root });
        Schema { nodes: root.into_iter().collect(), leaves: Segmented::new() }
    }

    /// The first node after a node and all below it.
    pub(crate) fn end_of(&self, node: usize) -> usize {
        match self.nodes.get(node).map(|node| node.kind) {
            Some(NodeKind::Group { end }) => end,
            _ => node + 1,
        }
    }

    /// The root's child with that name; the first, if there are several.
    pub fn child_of_root(&self, name: &str) -> Option<usize> {
        self.children(0).find(|&child| self.nodes[child].name == name)
    }
}

impl Release for Schema {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.leaves, &mut self.nodes], budget)
    }
}

impl Node {
    /// Whether a part of a group's children can be left out, and the others mean what they meant: it is a plain group.
    pub(crate) fn can_be_cut(&self) -> bool {
        self.repetition != Repetition::Repeated
            && self.converted_type.is_none()
            && self.logical_type.is_none()
    }
}

impl Release for Leaf {}

impl Release for Node {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.name.release(budget)
    }
}

impl Leaf {
    /// True for a column that is a child of the root and not repeated: it has one value or null per row.
    pub fn is_flat(&self) -> bool {
        self.repetition_max == 0 && self.definition_max <= 1
    }
}
