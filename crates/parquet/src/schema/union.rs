//! One schema from many: fields with the same name are the same field.
//!
//! Source: none in the format. The models are DuckDB's `union_by_name` and Spark's `mergeSchema`, except that names
//! are compared exactly, and that no type is widened if that could lose something.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::collections::btree_map::Entry;
use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use super::field::{Field, FieldKind, Fields, Writer};
use super::widen::LeafType;
use super::{LogicalType, PhysicalType, Schema};

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
/// The work is proportional to the fields of all schemas: a microsecond or two for each, in one call. For many files,
/// join each different schema once; a host that must not stall does this on another thread for wide schemas.
#[derive(Debug, Default)]
pub struct Union {
    root: Fields<Marks>,
    name: Option<String>,
    sources: usize,
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
    pub schema: Schema,
    /// The differences between sources, in the order of the schema.
    pub differences: Vec<Difference>,
}

/// A difference between sources in one field.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The field's node in [`Unified::schema`].
    pub node: usize,
    /// What it is.
    pub kind: DifferenceKind,
}

/// How sources differ. They are numbered from 0 in the order in which they were added.
#[derive(Debug, Clone, PartialEq)]
pub enum DifferenceKind {
    /// The field is missing from one source, and null there.
    Missing {
        /// The first that has it.
        with: usize,
        /// The first that lacks it, but has the struct around it.
        without: usize,
    },
    /// The types differ, and one type holds both.
    Widened {
        /// A source, and its type in words.
        one: (usize, String),
        /// Another source, and its type.
        other: (usize, String),
    },
    /// The types differ, and no type holds both.
    Clash {
        /// A source, and its type in words.
        one: (usize, String),
        /// Another source, and its type.
        other: (usize, String),
    },
    /// A source has two fields of this name in the same struct, which is ambiguous.
    Twice {
        /// Which.
        source: usize,
    },
    /// In one source, the field has no meaning in the format.
    Broken {
        /// Which.
        source: usize,
        /// Why.
        error: Error,
    },
}

impl DifferenceKind {
    /// Whether the field can be read from all sources nevertheless.
    pub fn is_bridged(&self) -> bool {
        matches!(self, DifferenceKind::Missing { .. } | DifferenceKind::Widened { .. })
    }
}

/// What a union knows of a field besides its type.
#[derive(Debug, Default)]
struct Marks {
    /// The first and the last source that have it.
    first: usize,
    last: usize,
    /// A source that has the struct around it, but not the field.
    without: Option<usize>,
    /// The source whose type differed last, and its type.
    typed: Option<(usize, String)>,
    widened: Option<Box<DifferenceKind>>,
    wrong: Option<Box<DifferenceKind>>,
}

impl Union {
    /// An empty union.
    pub fn new() -> Union {
        Union::default()
    }

    /// Adds a schema and returns its number.
    pub fn add(&mut self, schema: &Schema) -> usize {
        let source = self.sources;
        self.sources += 1;
        if self.name.is_none() {
            self.name = schema.nodes.first().map(|root| root.name.clone());
        }
        let fields = schema.children(0).map(|node| match read(schema, node) {
            Ok(field) => field,
            Err(error) => broken(schema.nodes[node].name.clone(), source, error),
        });
        merge_fields(&mut self.root, fields, source);
        source
    }

    /// The joint schema, with these columns after the others; they replace columns of the same name. All of them are
    /// nullable.
    pub fn finish_with(mut self, columns: &[Column]) -> Unified {
        let names: BTreeSet<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        self.root.list.retain(|field| !names.contains(field.name.as_str()));
        let last = self.root.last.unwrap_or(0);
        self.root.list.extend(columns.iter().map(|column| Field {
            name: column.name.clone(),
            field_id: None,
            is_nullable: true,
            logical_type: column.logical_type.clone(),
            converted_type: None,
            is_older_only: false,
            kind: FieldKind::Leaf(column.physical_type),
            marks: Marks { last, ..Marks::default() },
        }));
        self.finish()
    }

    /// The joint schema.
    pub fn finish(mut self) -> Unified {
        settle_fields(&mut self.root);
        let mut writer = Writer::new(self.name.as_deref().unwrap_or("schema"));
        let mut differences = Vec::new();
        for field in &self.root.list {
            writer.add(field, &mut |node, field| {
                let marks = &field.marks;
                let missing =
                    marks.without.map(|without| DifferenceKind::Missing { with: marks.first, without });
                let others = [&marks.widened, &marks.wrong].map(|kind| kind.as_deref().cloned());
                let kinds = missing.into_iter().chain(others.into_iter().flatten());
                differences.extend(kinds.map(|kind| Difference { node, kind }));
            });
        }
        Unified { schema: writer.finish(), differences }
    }
}

fn read(schema: &Schema, node: usize) -> Result<Field<Marks>> {
    let shape = schema.shape(node, |_| true)?;
    let shape = shape.ok_or_else(|| Error::internal("no shape of all leaves"))?;
    Ok(Field::of(schema, &shape))
}

/// A field in place of one that has no meaning.
fn broken(name: String, source: usize, error: Error) -> Field<Marks> {
    let wrong = Some(Box::new(DifferenceKind::Broken { source, error }));
    Field {
        name,
        field_id: None,
        is_nullable: true,
        logical_type: Some(LogicalType::Unknown),
        converted_type: None,
        is_older_only: false,
        kind: FieldKind::Leaf(PhysicalType::Int32),
        marks: Marks { wrong, ..Marks::default() },
    }
}

/// Joins the fields of a struct in one source to its fields in the others. This function and those below it recurse as
/// deep as shapes are.
fn merge_fields(into: &mut Fields<Marks>, fields: impl IntoIterator<Item = Field<Marks>>, source: usize) {
    let before = into.last.replace(source);
    for mut field in fields {
        match into.by_name.entry(field.name.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(into.list.len());
                adopt(&mut field, source);
                field.marks.without = before;
                field.is_nullable |= before.is_some();
                into.list.push(field);
            }
            Entry::Occupied(entry) => {
                let known = &mut into.list[*entry.get()];
                if known.marks.last == source {
                    known.marks.wrong.get_or_insert(Box::new(DifferenceKind::Twice { source }));
                    continue;
                }
                if Some(known.marks.last) != before {
                    known.marks.without = known.marks.without.or(before);
                }
                known.marks.last = source;
                merge(known, field, source);
            }
        }
    }
}

/// Adopts a field that no earlier source had, with everything below it.
fn adopt(field: &mut Field<Marks>, source: usize) {
    (field.marks.first, field.marks.last) = (source, source);
    match &mut field.kind {
        FieldKind::Leaf(_) => {}
        FieldKind::Struct(fields) => {
            let list = core::mem::take(&mut fields.list);
            merge_fields(fields, list, source);
        }
        FieldKind::List(element) => adopt(element, source),
        FieldKind::Map(key, value) => {
            adopt(key, source);
            if let Some(value) = value {
                adopt(value, source);
            }
        }
    }
}

/// Joins a source's field to the one of the same name and place.
fn merge(into: &mut Field<Marks>, mut field: Field<Marks>, source: usize) {
    into.is_nullable |= field.is_nullable;
    if into.field_id != field.field_id {
        into.field_id = None;
    }
    if let Some(wrong) = field.marks.wrong.take() {
        into.marks.wrong.get_or_insert(wrong);
        return;
    }
    if into.marks.wrong.is_some() {
        return;
    }
    match (&mut into.kind, field.kind) {
        (FieldKind::Leaf(physical), FieldKind::Leaf(other)) => {
            let one = LeafType::new(*physical, into.logical_type.as_ref());
            let two = LeafType::new(other, field.logical_type.as_ref());
            // As newer writers have it, if one of them is new.
            into.is_older_only &= field.is_older_only;
            if one == two {
                if into.converted_type != field.converted_type {
                    into.converted_type = None;
                }
                return;
            }
            let joined = match (one.is_null(), two.is_null()) {
                (_, true) => Some(one.clone()),
                (true, false) => Some(two.clone()),
                (false, false) => one.join(&two),
            };
            let types = (one.describe(), two.describe());
            match joined {
                Some(joined) => {
                    into.is_nullable |= one.is_null() || two.is_null();
                    *physical = joined.physical;
                    into.logical_type = joined.logical;
                    (into.converted_type, into.is_older_only) = (None, false);
                    widened(&mut into.marks, types, source);
                }
                None => clash(&mut into.marks, types, source),
            }
        }
        (FieldKind::Struct(fields), FieldKind::Struct(others)) => {
            let are_variants = [&into.logical_type, &field.logical_type]
                .map(|logical| matches!(logical, Some(LogicalType::Variant { .. })));
            if are_variants != [true, true] && into.logical_type != field.logical_type {
                let types = (describe_group(&into.logical_type), describe_group(&field.logical_type));
                return clash(&mut into.marks, types, source);
            }
            if are_variants == [true, true] && !is_alike(&fields.list, &others.list) {
                *fields = unshredded(source);
                return;
            }
            merge_fields(fields, others.list, source);
        }
        (FieldKind::List(into), FieldKind::List(element)) => merge(into, *element, source),
        (FieldKind::Map(key, value), FieldKind::Map(other_key, other_value)) => match (value, other_value) {
            (Some(value), Some(other)) => {
                merge(key, *other_key, source);
                merge(value, *other, source);
            }
            (None, None) => merge(key, *other_key, source),
            (value, _) => {
                let (with, without) = ("a map".into(), "a map without values".into());
                let types = if value.is_some() { (with, without) } else { (without, with) };
                clash(&mut into.marks, types, source);
            }
        },
        (one, other) => {
            let is_null = |kind: &FieldKind<Marks>, logical: &Option<LogicalType>| {
                matches!(kind, FieldKind::Leaf(_)) && *logical == Some(LogicalType::Unknown)
            };
            let types = (describe(one, &into.logical_type), describe(&other, &field.logical_type));
            if is_null(&other, &field.logical_type) {
                into.is_nullable = true;
                widened(&mut into.marks, types, source);
            } else if is_null(one, &into.logical_type) {
                into.is_nullable = true;
                into.logical_type = field.logical_type;
                (into.converted_type, into.is_older_only) = (field.converted_type, field.is_older_only);
                widened(&mut into.marks, types, source);
                into.kind = other;
                // No other source had what is below it.
                let (first, last) = (into.marks.first, into.marks.last);
                adopt(into, source);
                (into.marks.first, into.marks.last) = (first, last);
            } else {
                clash(&mut into.marks, types, source);
            }
        }
    }
}

fn widened(marks: &mut Marks, (one, other): (String, String), source: usize) {
    let one = marks.typed.take().unwrap_or((marks.first, one));
    marks.typed = Some((source, other.clone()));
    marks.widened.get_or_insert(Box::new(DifferenceKind::Widened { one, other: (source, other) }));
}

fn clash(marks: &mut Marks, (one, other): (String, String), source: usize) {
    let one = marks.typed.take().unwrap_or((marks.first, one));
    marks.wrong.get_or_insert(Box::new(DifferenceKind::Clash { one, other: (source, other) }));
}

fn describe(kind: &FieldKind<Marks>, logical: &Option<LogicalType>) -> String {
    match kind {
        FieldKind::Leaf(physical) => LeafType::new(*physical, logical.as_ref()).describe(),
        FieldKind::Struct(_) => describe_group(logical),
        FieldKind::List(_) => "a list".into(),
        FieldKind::Map(..) => "a map".into(),
    }
}

fn describe_group(logical: &Option<LogicalType>) -> String {
    match logical {
        Some(logical) => alloc::format!("a group {logical}"),
        None => "a group".into(),
    }
}

/// Whether variants are shredded alike: the same fields of the same types.
fn is_alike(one: &[Field<Marks>], other: &[Field<Marks>]) -> bool {
    let field = |(a, b): (&Field<Marks>, &Field<Marks>)| a.name == b.name && is_alike_kind(a, b);
    one.len() == other.len() && one.iter().zip(other).all(field)
}

fn is_alike_kind(a: &Field<Marks>, b: &Field<Marks>) -> bool {
    match (&a.kind, &b.kind) {
        (FieldKind::Leaf(one), FieldKind::Leaf(two)) => {
            LeafType::new(*one, a.logical_type.as_ref()) == LeafType::new(*two, b.logical_type.as_ref())
        }
        (FieldKind::Struct(one), FieldKind::Struct(two)) => {
            a.logical_type == b.logical_type && is_alike(&one.list, &two.list)
        }
        (FieldKind::List(one), FieldKind::List(two)) => is_alike_kind(one, two),
        _ => false,
    }
}

/// The fields of a variant that is not shredded (`VariantEncoding.md`).
fn unshredded(source: usize) -> Fields<Marks> {
    let mut fields = Fields::default();
    let both = ["metadata", "value"].map(|name| Field {
        name: name.into(),
        field_id: None,
        is_nullable: false,
        logical_type: None,
        converted_type: None,
        is_older_only: false,
        kind: FieldKind::Leaf(PhysicalType::ByteArray),
        marks: Marks::default(),
    });
    merge_fields(&mut fields, both, source);
    fields
}

/// Fields that the last source lacks may be null.
fn settle_fields(fields: &mut Fields<Marks>) {
    for field in &mut fields.list {
        if Some(field.marks.last) != fields.last {
            field.marks.without = field.marks.without.or(fields.last);
        }
        field.is_nullable |= field.marks.without.is_some();
        settle(field);
    }
}

fn settle(field: &mut Field<Marks>) {
    match &mut field.kind {
        FieldKind::Leaf(_) => {}
        FieldKind::Struct(fields) => settle_fields(fields),
        FieldKind::List(element) => settle(element),
        FieldKind::Map(key, value) => {
            settle(key);
            if let Some(value) = value {
                settle(value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
