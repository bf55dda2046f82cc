//! One schema from many: fields with the same name are the same field.
//!
//! Source: none in the format. The models are DuckDB's `union_by_name` and Spark's `mergeSchema`, except that names
//! are compared exactly, and that no type is widened if that could lose something.

mod difference;
mod known;

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Result, Segmented};

use super::field::{Field, FieldKind, Writer};
use super::walk::{Holds, Visit, Walk};
use super::{FIELD_PRICE, LogicalType, PhysicalType, Plan, Schema, Shape};
pub use difference::{Difference, DifferenceKind};
use known::{Alike, Joined, Known, KnownKind, NONE};

/// Joins schemas by the names of their fields, at every level.
///
/// * A field suits the rows of every source: it is nullable if it is nullable in one of them, or missing from one.
/// * Fields are in the order in which they first occur.
/// * The spelling of lists and maps makes no difference; the union uses the format's own.
/// * The narrower type becomes the wider one if nothing can be lost: integers become wider integers, FLOAT becomes
///   DOUBLE, decimals of one scale the one of the largest precision, ENUM and JSON become STRING, fixed lengths any
///   length. UNKNOWN, whose values are all null, becomes the others' type.
/// * A VARIANT that is shredded differently in the sources becomes one that is not shredded.
/// * A field that cannot be joined is not an error here but a [`Difference`], because a host may not want the field.
///
/// The work is proportional to the fields of all schemas. For many files, join each different schema once.
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Plan, Schema, Union};
///
/// # fn main() -> Result<(), marquetry_base::Error> {
/// let int = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None));
/// let mut union = Union::new();
/// for fields in [[int("a"), int("b")], [int("b"), int("c")]] {
///     union.add(Arc::new(Schema::of_fields(&fields)?));
/// }
/// // All at once; or in steps, like all that is planned.
/// let unified = union.plan().at_once()?;
/// assert_eq!((unified.schema.leaves().len(), unified.differences.len()), (3, 2));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Union {
    sources: VecDeque<Arc<Schema>>,
    columns: Vec<Column>,
}

/// A flat column that is in no schema, but has a known value for each source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The physical type of its values.
    pub physical_type: PhysicalType,
    /// What they mean.
    pub logical_type: Option<LogicalType>,
}

/// The result of a union.
#[derive(Debug)]
pub struct Unified {
    /// The joint schema. A field that cannot be read from all sources has the type of its first source.
    pub schema: Arc<Schema>,
    /// The differences between sources, in the order of the schema.
    pub differences: Segmented<Difference>,
}

impl Union {
    /// An empty union.
    pub fn new() -> Union {
        Union::default()
    }

    /// Adds a schema and returns its number.
    pub fn add(&mut self, schema: Arc<Schema>) -> usize {
        self.sources.push_back(schema);
        self.sources.len() - 1
    }

    /// Adds columns after all others; they replace columns of the same name. All of them are nullable.
    #[must_use]
    pub fn with(mut self, columns: impl IntoIterator<Item = Column>) -> Union {
        self.columns.extend(columns);
        self
    }

    /// The plan of the joint schema. It has no errors: see [`Difference`].
    pub fn plan(self) -> UnionPlan {
        let name = self.sources.front().and_then(|schema| schema.nodes.first());
        let writer = Writer::new(name.map_or("schema", |root| root.name.as_str()));
        UnionPlan {
            union: self,
            known: Known::new(),
            source: 0,
            at: At::Column(1),
            open: Vec::new(),
            writer,
            differences: Segmented::new(),
        }
    }
}

/// The [`Plan`] of a [`Union`].
#[derive(Debug)]
pub struct UnionPlan {
    union: Union,
    known: Known,
    /// The number of the source at hand, the first of those that are left.
    source: usize,
    at: At,
    /// The known structs, lists and maps that the source's fields are joined to; or those that are written.
    open: Vec<Open>,
    writer: Writer,
    differences: Segmented<Difference>,
}

/// What is done next.
#[derive(Debug)]
enum At {
    /// The source's column with this node is looked at.
    Column(usize),
    /// It is checked that a column has a meaning, then it is joined.
    Check(usize, Walk),
    Join(usize, Walk),
    /// The same; first it is found out whether a variant is shredded as the one that is known.
    Alike(usize, Walk, Alike),
    /// Fields are written.
    Write,
    /// What is known is released.
    Release,
}

/// A known struct, list or map.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Its entry; [`NONE`] of one that is passed over.
    entry: usize,
    /// Of a struct: the last source before that had it.
    before: Option<usize>,
    /// Fields of it that were met; or the entry of the next that is written.
    fields: usize,
}

/// Fields between two looks at the budget.
const FIELDS_SLICE: usize = 32;

impl Plan for UnionPlan {
    type Made = Unified;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Option<Unified>> {
        loop {
            for _ in 0..FIELDS_SLICE {
                budget.charge(FIELD_PRICE, 0, 1);
                if self.next(budget)? {
                    let schema = core::mem::replace(&mut self.writer, Writer::new("")).finish();
                    let differences = core::mem::take(&mut self.differences);
                    return Ok(Some(Unified { schema: Arc::new(schema), differences }));
                }
                // Looking for names is charged, too.
                if budget.left() == 0 {
                    break;
                }
            }
            if budget.is_spent() {
                return Ok(None);
            }
        }
    }
}

impl UnionPlan {
    /// Does a small part. True after the last.
    fn next(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        let schema = self.union.sources.front().cloned();
        match (&mut self.at, schema) {
            (At::Column(node), Some(schema)) => {
                if *node == 1 {
                    let before = self.known.enter_struct(0, self.source);
                    self.open.push(Open { entry: 0, before, fields: 0 });
                }
                self.at = match *node < schema.nodes.len() {
                    true => At::Check(*node, Walk::of(schema.shape(*node))),
                    false => {
                        self.open.clear();
                        self.union.sources.pop_front();
                        self.source += 1;
                        At::Column(1)
                    }
                };
            }
            (At::Column(_), None) => {
                self.open.push(Open { entry: 0, before: None, fields: self.known.first_in(0) });
                self.at = At::Write;
            }
            (At::Check(node, walk), Some(schema)) => match walk.next(&schema, None) {
                Ok(Some(_)) => {}
                Ok(None) => self.at = At::Join(*node, Walk::of(schema.shape(*node))),
                Err(error) => {
                    let node = *node;
                    self.at = At::Column(schema.end_of(node));
                    self.broken(&schema.nodes[node].name, error, budget);
                }
            },
            (At::Join(node, walk), Some(schema)) => match walk.next(&schema, None)? {
                None => self.at = At::Column(schema.end_of(*node)),
                Some(Visit::Field(shape, holds)) => self.field(shape, holds, budget),
                Some(Visit::End) => self.end(),
                Some(Visit::Skipped) => {}
            },
            (At::Alike(_, _, alike), Some(schema)) => {
                if let Some(is_alike) = alike.step(&schema, &self.known)? {
                    let At::Alike(node, walk, alike) = core::mem::replace(&mut self.at, At::Write) else {
                        return Err(Error::internal("a comparison that is none"));
                    };
                    self.at = At::Join(node, walk);
                    if is_alike {
                        self.enter_struct(alike.entry);
                    } else {
                        self.known.unshred(alike.entry, self.source);
                        self.open.push(PASSED);
                    }
                }
            }
            (At::Write, _) => self.write(),
            (At::Release, _) => return Ok(self.known.release()),
            (At::Check(..) | At::Join(..) | At::Alike(..), None) => {
                return Err(Error::internal("a source that is gone"));
            }
        }
        Ok(false)
    }

    fn enter_struct(&mut self, entry: usize) {
        let before = self.known.enter_struct(entry, self.source);
        self.open.push(Open { entry, before, fields: 0 });
    }

    /// Joins a column that has no meaning.
    fn broken(&mut self, name: &str, error: Error, budget: &mut Budget<'_>) {
        let source = self.source;
        let wrong = DifferenceKind::Broken { source, error };
        if let Some((entry, is_known)) = self.entry(name, budget) {
            let entry = &mut self.known.entries[entry];
            if !is_known {
                entry.logical_type = Some(LogicalType::Unknown);
                entry.kind = KnownKind::Leaf(PhysicalType::Int32);
            } else {
                entry.field_id = None;
            }
            entry.is_nullable = true;
            entry.wrong.get_or_insert(wrong);
        }
    }

    /// The entry of a field of this name in the struct at hand, and whether it was known before. `None` if the source
    /// has two of the name.
    fn entry(&mut self, name: &str, budget: &mut Budget<'_>) -> Option<(usize, bool)> {
        let open = self.open.last()?;
        let (around, before, source) = (open.entry, open.before, self.source);
        match self.known.find(around, name, budget) {
            None => {
                let entry = self.known.add_to_struct(around, name, source);
                let added = &mut self.known.entries[entry];
                added.without = before;
                added.is_nullable |= before.is_some();
                Some((entry, false))
            }
            Some(entry) => {
                let known = &mut self.known.entries[entry];
                if known.last == source {
                    known.wrong.get_or_insert(DifferenceKind::Twice { source });
                    return None;
                }
                if Some(known.last) != before {
                    known.without = known.without.or(before);
                }
                known.last = source;
                Some((entry, true))
            }
        }
    }

    /// Joins a field of the source. What is in it follows, until [`Visit::End`].
    fn field(&mut self, shape: Shape<'_>, holds: Holds, budget: &mut Budget<'_>) {
        let is_leaf = matches!(holds, Holds::Leaf);
        let Some(open) = self.open.last_mut() else { return };
        open.fields += 1;
        let (around, place) = (open.entry, open.fields);
        let schema = shape.schema();
        let name = &schema.nodes[shape.node].name;
        let found = if around == NONE {
            None
        } else if let KnownKind::Struct(_) = self.known.entries[around].kind {
            self.entry(name, budget)
        } else {
            Some(self.known.add_to_list(around, place, name, self.source))
        };
        let Some((entry, is_known)) = found else {
            // Twice, or in what is passed over.
            return self.open.extend((!is_leaf).then_some(PASSED));
        };
        let kind = match holds {
            Holds::Leaf => FieldKind::Leaf(schema.leaves[shape.leaves().start].physical_type),
            Holds::Struct => FieldKind::Struct,
            Holds::List(_) => FieldKind::List,
            Holds::Map(..) => FieldKind::Map,
        };
        let field = Field::of(&schema.nodes[shape.node], shape.is_nullable, kind);
        let has_values = matches!(holds, Holds::Map(_, true));
        let joined = if is_known {
            self.known.join(entry, &field, has_values, self.source)
        } else {
            self.known.entries[entry].adopt(&field, has_values);
            Joined::New
        };
        match (joined, is_leaf) {
            (_, true) => {}
            (Joined::Passed, false) => self.open.push(PASSED),
            (_, false) if kind == FieldKind::Struct => {
                let is_variant = matches!(field.logical_type, Some(LogicalType::Variant { .. }));
                if !is_variant || joined == Joined::New {
                    return self.enter_struct(entry);
                }
                match core::mem::replace(&mut self.at, At::Write) {
                    At::Join(node, walk) => {
                        self.at = At::Alike(node, walk, Alike::new(shape, entry));
                    }
                    other => self.at = other,
                }
            }
            (_, false) => self.open.push(Open { entry, before: None, fields: 0 }),
        }
    }

    /// The end of a struct, list or map; the last is of the column, in the root.
    fn end(&mut self) {
        if self.open.len() > 1 {
            self.open.pop();
        }
    }

    /// Writes the next field, or the end of one.
    fn write(&mut self) {
        let Some(open) = self.open.last_mut() else {
            self.at = At::Release;
            return;
        };
        if open.fields == NONE {
            let is_root = open.entry == 0;
            self.open.pop();
            if is_root {
                self.write_columns();
            } else {
                self.writer.end();
            }
            return;
        }
        let (around, at) = (open.entry, open.fields);
        open.fields = self.known.entries[at].next;
        let last = self.known.last_of(around);
        let entry = &mut self.known.entries[at];
        let is_replaced = |column: &Column| *column.name == *entry.name;
        if around == 0 && self.union.columns.iter().any(is_replaced) {
            return;
        }
        if let Some(last) = last {
            // Fields that the last source lacks may be null.
            if entry.last != last {
                entry.without = entry.without.or(Some(last));
            }
            entry.is_nullable |= entry.without.is_some();
        }
        let (field, is_leaf) = entry.field();
        let node = self.writer.begin(field);
        let missing = entry.without.map(|without| DifferenceKind::Missing { with: entry.first, without });
        let kinds = [missing, entry.widened.take(), entry.wrong.take()];
        self.differences.extend(kinds.into_iter().flatten().map(|kind| Difference { node, kind }));
        if !is_leaf {
            let fields = self.known.first_in(at);
            self.open.push(Open { entry: at, before: None, fields });
        }
    }

    /// The columns beside the sources, which are few.
    fn write_columns(&mut self) {
        for column in &self.union.columns {
            self.writer.begin(Field {
                name: &column.name,
                is_numbered: false,
                field_id: None,
                is_nullable: true,
                logical_type: column.logical_type.clone(),
                converted_type: None,
                is_older_only: false,
                kind: FieldKind::Leaf(column.physical_type),
            });
        }
    }
}

/// What is in something that the union leaves out.
const PASSED: Open = Open { entry: NONE, before: None, fields: 0 };

#[cfg(test)]
pub(super) mod tests;
