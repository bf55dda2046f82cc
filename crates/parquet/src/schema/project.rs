//! Parts of a schema, by the paths of their fields.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Error, Result, Segmented};

use super::field::{Field, FieldKind, Writer};
use super::paths::{PathError, PathPart, Paths};
use super::walk::{Holds, Visit, Walk};
use super::{FIELD_PRICE, Plan, Schema, Shape};

/// Part of a schema: some columns, complete or in part.
///
/// [`Paths`] find what paths lead to.
///
/// Columns are in the order in which they are added, and fields below them in the order of the schema. A map's keys
/// alone are a map without values, and its values alone a list.
///
/// ```text
/// add(path, budget) -> Some(()) | None    one path after the other; None: the budget is spent, call again
/// plan()                                  the plan of the schema of what was added
/// ```
#[derive(Debug)]
pub struct Projection {
    schema: Arc<Schema>,
    /// Columns' nodes, in the order of the projection.
    chosen: Segmented<usize>,
    /// The nodes of those that are selected at least in part, and completely.
    known: Set,
    whole: Set,
    leaves: Set,
    paths: Paths,
}

/// A set of numbers that are not large.
#[derive(Debug, Default)]
struct Set {
    words: Segmented<u64>,
}

impl Set {
    /// Adds a range.
    fn insert(&mut self, range: Range<usize>) {
        while self.words.len() * 64 < range.end {
            self.words.push(0);
        }
        for (word, mask) in words_of(range) {
            self.words[word] |= mask;
        }
    }

    fn has_any(&self, range: Range<usize>) -> bool {
        words_of(range).any(|(word, mask)| self.words.get(word).is_some_and(|word| word & mask != 0))
    }

    fn has_all(&self, range: Range<usize>) -> bool {
        words_of(range).all(|(word, mask)| self.words.get(word).is_some_and(|word| word & mask == mask))
    }

    fn has(&self, number: usize) -> bool {
        self.has_any(number..number + 1)
    }
}

/// The words that hold a range, each with the bits of it there.
fn words_of(range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let (first, behind) = (range.start / 64, range.end.div_ceil(64));
    let behind = if range.is_empty() { first } else { behind };
    (first..behind).map(move |word| {
        let low = if word == range.start / 64 { u64::MAX << (range.start % 64) } else { u64::MAX };
        let past = (word + 1) * 64 - range.end.min((word + 1) * 64);
        (word, low & (u64::MAX >> past))
    })
}

impl Projection {
    /// An empty projection.
    pub fn new(schema: Arc<Schema>) -> Projection {
        Projection {
            schema,
            chosen: Segmented::new(),
            known: Set::default(),
            whole: Set::default(),
            leaves: Set::default(),
            paths: Paths::default(),
        }
    }

    /// Adds what a path names. A name that is not found exactly is looked up in lower case, as in CQL. Returns `None`
    /// if the budget is spent first: call again, with the same path.
    ///
    /// # Errors
    ///
    /// [`PathError`]; the projection is then unchanged.
    pub fn add(&mut self, path: &[PathPart], budget: &mut Budget<'_>) -> Result<Option<()>, PathError> {
        let schema = Arc::clone(&self.schema);
        let Some((column, rest)) = self.paths.column(&schema, path, budget)? else { return Ok(None) };
        if rest.is_empty() {
            return self.add_column(column).map(Some);
        }
        let Some(found) = self.paths.below(schema.shape(column), rest, budget)? else { return Ok(None) };
        let leaves = found.shape.leaves();
        if self.whole.has(column) || self.leaves.has_all(leaves.clone()) {
            return Err(PathError::Twice);
        }
        self.leaves.insert(leaves);
        self.choose(column);
        Ok(Some(()))
    }

    /// Adds a complete column, by its node: a child of the root.
    ///
    /// # Errors
    ///
    /// [`PathError::Twice`].
    pub fn add_column(&mut self, node: usize) -> Result<(), PathError> {
        if self.whole.has(node) {
            return Err(PathError::Twice);
        }
        self.whole.insert(node..node + 1);
        self.leaves.insert(self.schema.leaves_of(node));
        self.choose(node);
        Ok(())
    }

    /// Adds a field, by its node, with everything in it and as much of its column as leads to it.
    ///
    /// # Errors
    ///
    /// [`PathError::Twice`].
    pub fn add_field(&mut self, node: usize) -> Result<(), PathError> {
        let mut column = node;
        while let Some(parent) = self.schema.nodes.get(column).map(|node| node.parent).filter(|it| *it != 0) {
            column = parent;
        }
        if column == node {
            return self.add_column(node);
        }
        let leaves = self.schema.leaves_of(node);
        if self.whole.has(column) || self.leaves.has_all(leaves.clone()) {
            return Err(PathError::Twice);
        }
        self.leaves.insert(leaves);
        self.choose(column);
        Ok(())
    }

    fn choose(&mut self, column: usize) {
        if !self.known.has(column) {
            self.known.insert(column..column + 1);
            self.chosen.push(column);
        }
    }

    /// Whether any part of a node of the schema is in the projection.
    pub fn has(&self, node: usize) -> bool {
        self.whole.has(node) || self.leaves.has_any(self.schema.leaves_of(node))
    }

    /// The plan of the schema of the projection alone. Its errors are those of [`Shape::kind`].
    pub fn plan(self) -> ProjectionPlan {
        let root = self.schema.nodes.first().map_or("schema", |root| root.name.as_str());
        ProjectionPlan {
            writer: Writer::new(root),
            projection: self,
            leaves: Vec::new(),
            next_leaf: 0,
            columns: 0,
            walk: None,
            depth: 0,
            skipped: None,
        }
    }
}

/// The [`Plan`] of the schema of a [`Projection`].
#[derive(Debug)]
pub struct ProjectionPlan {
    projection: Projection,
    writer: Writer,
    /// The leaves of the projection, as far as they are gathered.
    leaves: Vec<usize>,
    next_leaf: usize,
    /// Columns that are begun, and the walk over the last of them.
    columns: usize,
    walk: Option<Walk>,
    /// The structs, lists and maps around the next field, and how many are around a group that is left out.
    depth: usize,
    skipped: Option<usize>,
}

/// Fields between two looks at the budget.
const FIELDS_SLICE: usize = 64;

impl Plan for ProjectionPlan {
    type Made = Schema;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Option<Schema>> {
        let schema = Arc::clone(&self.projection.schema);
        loop {
            let mut is_done = false;
            for _ in 0..FIELDS_SLICE {
                if self.next_leaf < schema.leaves.len() {
                    if self.next_leaf == 0 {
                        self.reserve()?;
                    }
                    if self.projection.leaves.has(self.next_leaf) {
                        self.leaves.push(self.next_leaf);
                    }
                    self.next_leaf += 1;
                } else if self.field(&schema)? {
                    is_done = true;
                    break;
                }
            }
            budget.charge(FIELD_PRICE, 0, FIELDS_SLICE);
            if is_done {
                return Ok(Some(core::mem::replace(&mut self.writer, Writer::new("")).finish()));
            }
            if budget.is_spent() {
                return Ok(None);
            }
        }
    }
}

impl ProjectionPlan {
    /// Allocates the list of leaves.
    fn reserve(&mut self) -> Result<()> {
        let words = self.projection.leaves.words.iter();
        let count = words.map(|word| usize_of_u32(word.count_ones())).sum::<usize>();
        let bytes = count.saturating_mul(size_of::<usize>());
        self.leaves.try_reserve_exact(count).map_err(|_| Error::out_of_memory(bytes))
    }

    /// Writes the next field, or its end. True after the last.
    fn field(&mut self, schema: &Schema) -> Result<bool> {
        let Some(walk) = &mut self.walk else {
            let Some(&column) = self.projection.chosen.get(self.columns) else { return Ok(true) };
            self.walk = Some(Walk::of(schema.shape(column)));
            return Ok(false);
        };
        let Some(visit) = walk.next(schema, Some(&self.leaves))? else {
            (self.walk, self.columns) = (None, self.columns + 1);
            return Ok(false);
        };
        match visit {
            Visit::Skipped => {}
            Visit::End => {
                // The last is of the column, which is in nothing.
                if let Some(depth) = self.depth.checked_sub(1) {
                    self.depth = depth;
                    match self.skipped {
                        None => self.writer.end(),
                        Some(skipped) if skipped == depth => self.skipped = None,
                        Some(_) => {}
                    }
                }
            }
            Visit::Field(shape, holds) => {
                // Groups without leaves are only selected with the complete column.
                let is_left_out = shape.leaves().is_empty() && {
                    let column = self.projection.chosen.get(self.columns);
                    column.is_some_and(|&column| !self.projection.whole.has(column))
                };
                if is_left_out && self.skipped.is_none() && !matches!(holds, Holds::Leaf) {
                    self.skipped = Some(self.depth);
                }
                if self.skipped.is_none() {
                    begin(&mut self.writer, shape, holds)?;
                }
                self.depth += usize::from(!matches!(holds, Holds::Leaf));
            }
        }
        Ok(false)
    }
}

fn begin(writer: &mut Writer, shape: Shape<'_>, holds: Holds) -> Result<()> {
    let schema = shape.schema();
    let kind = match holds {
        Holds::Leaf => {
            let leaf = schema.leaves.get(shape.leaves().start);
            let leaf = leaf.ok_or_else(|| Error::internal("a shape without its leaf"))?;
            FieldKind::Leaf(leaf.physical_type)
        }
        Holds::Struct => FieldKind::Struct,
        Holds::List(_) => FieldKind::List,
        Holds::Map(..) => FieldKind::Map,
    };
    let field = Field::of(&schema.nodes[shape.node], shape.is_nullable, kind);
    // A column is called as it was asked for.
    let is_column = schema.nodes[shape.node].parent == 0;
    writer.begin(Field { is_numbered: field.is_numbered && !is_column, ..field });
    Ok(())
}

#[cfg(test)]
mod tests;
