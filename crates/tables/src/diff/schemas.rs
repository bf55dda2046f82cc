//! Which columns of two tables are compared, and how their schemas differ.

use std::collections::HashMap;
use std::ops::Range;

use marquetry_base::{Error, Result};
use marquetry_parquet::schema::{LogicalType, Meaning, Schema, Shape, ShapeKind};
use marquetry_scylla::sstable::marshal::MarshalType;

use super::cells::{CellPair, Live};
use super::found::SchemaDifferences;
use super::leaves::LeafPair;
use super::numbers::has_numbers_as_text;
use super::options::DiffOptions;
use super::values::{are_comparable, loaded};
use crate::Table;
use crate::described::columns_of;
use crate::subject::named;

/// The columns that two tables share, and what differs in their schemas.
pub(super) struct Paired {
    pub(super) differences: SchemaDifferences,
    pub(super) columns: Vec<ColumnPair>,
}

/// A column that both tables have.
pub(super) struct ColumnPair {
    pub(super) name: String,
    /// Its index among the columns of each table.
    pub(super) column: [usize; 2],
    /// Its leaves in each schema.
    pub(super) leaves: [Range<usize>; 2],
    /// The leaves that are compared.
    pub(super) pairs: Vec<LeafPair>,
    /// The VARIANTs that are compared: by the JSON that they stand for, because equal variants may have different bytes.
    pub(super) variants: Vec<VariantPair>,
    /// Instead of all these: the cells that loads make of them.
    pub(super) cells: Option<CellPair>,
}

/// A VARIANT of the first table, and that of the second that it is compared with.
pub(super) struct VariantPair {
    /// Its node in each schema, and the leaves below that.
    pub(super) nodes: [usize; 2],
    pub(super) leaves: [Range<usize>; 2],
}

/// Finds the columns that two tables share. Where a table says that a column's text are CQL's decimals or varints, they are compared as numbers,
/// also with integers and decimals.
///
/// # Errors
///
/// Those of [`Shape::kind`], with the name of the table.
pub(super) fn pair([a, b]: [&Table; 2], options: &DiffOptions) -> Result<Paired> {
    let mut pairing = Pairing {
        tables: [&a.name, &b.name],
        as_loaded: options.as_loaded,
        is_loaded_into: [a.identity.is_some(), b.identity.is_some() || a.identity.is_none()],
        keeps_nulls: options.keeps_nulls,
        ..Pairing::default()
    };
    let columns = |schema: &Schema| schema.children(0).collect::<Vec<_>>();
    let all = [columns(&a.schema), columns(&b.schema)];
    let shapes =
        [&a.schema, &b.schema].map(|schema| columns(schema).into_iter().map(|node| schema.shape(node)));
    let live = Live::of([a, b], &options.limits).filter(|_| options.as_loaded);
    let mut paired = Vec::new();
    for [in_a, in_b] in pairing.matched("", shapes) {
        let nodes = [in_a.node, in_b.node];
        let name = a.schema.nodes()[in_a.node].name.clone();
        pairing.has_numbers_as_text = [a, b].map(|table| has_numbers_as_text(table, &name));
        let is_whole = !options.as_loaded || [a, b].iter().all(|table| is_whole(table, &name));
        pairing.empty_is_null = !is_whole && !matches!(in_a.kind(), Ok(ShapeKind::Leaf));
        pairing.is_collection = matches!(in_a.kind(), Ok(ShapeKind::List(..) | ShapeKind::Map(..)));
        let before = pairing.counted();
        pairing.field(&name, [in_a, in_b])?;
        let is_paired = pairing.counted() == before;
        let cells = live.as_ref().and_then(|live| {
            let pairs = (is_paired && pairing.variants.is_empty()).then_some(&*pairing.pairs);
            live.pair([a, b], &name, pairs, options.keeps_nulls)
        });
        if cells.is_some() {
            // A load takes what else cannot be compared, and makes nulls of fields that are missing.
            pairing.forget(before);
        }
        let column =
            [0, 1].map(|side: usize| all[side].iter().position(|node| *node == nodes[side]).unwrap_or(0));
        paired.push(ColumnPair {
            name,
            column,
            leaves: [in_a.leaves(), in_b.leaves()],
            pairs: std::mem::take(&mut pairing.pairs),
            variants: std::mem::take(&mut pairing.variants),
            cells,
        });
    }
    Ok(Paired { differences: pairing.found, columns: paired })
}

/// Whether a column is one value to the servers: of a type that is none of several cells. It is unless the table says otherwise.
fn is_whole(table: &Table, column: &str) -> bool {
    let Some(columns) = columns_of(table) else { return true };
    let kind = columns.cells().find(|cell| *cell.name == *column.as_bytes()).map(|cell| &cell.kind);
    !matches!(
        kind,
        Some(MarshalType::List(_) | MarshalType::Set(_) | MarshalType::Map(..) | MarshalType::User { .. })
    )
}

#[derive(Default)]
struct Pairing<'a> {
    tables: [&'a str; 2],
    found: SchemaDifferences,
    /// What can be missing around the field at hand, in both tables: each nullable field, and each list.
    steps: u16,
    /// The number that each definition level of either table has among these steps.
    levels: [Vec<u16>; 2],
    /// Whether what is text in the column at hand are numbers, in either table.
    has_numbers_as_text: [bool; 2],
    as_loaded: bool,
    /// Which of the tables rows would be loaded into: those of a cluster, or else the second.
    is_loaded_into: [bool; 2],
    keeps_nulls: bool,
    /// The column at hand is not frozen, so that it is null if it has nothing inside.
    empty_is_null: bool,
    /// It is a list, a set or a map.
    is_collection: bool,
    /// Of the column at hand.
    pairs: Vec<LeafPair>,
    variants: Vec<VariantPair>,
}

impl Pairing<'_> {
    /// How many fields there are that are not compared: those of either table alone, and those of other types.
    fn counted(&self) -> [usize; 3] {
        let [in_a, in_b] = &self.found.only;
        [in_a.len(), in_b.len(), self.found.incomparable.len()]
    }

    /// Forgets those that were found after so many.
    fn forget(&mut self, [in_a, in_b, incomparable]: [usize; 3]) {
        self.found.only[0].truncate(in_a);
        self.found.only[1].truncate(in_b);
        self.found.incomparable.truncate(incomparable);
    }

    /// The fields of two structs that have the same name, in the order of the first.
    fn matched<'s>(
        &mut self,
        around: &str,
        [a, b]: [impl Iterator<Item = Shape<'s>>; 2],
    ) -> Vec<[Shape<'s>; 2]> {
        let name = |shape: &Shape<'s>| shape.schema().nodes()[shape.node].name.as_str();
        let (in_a, in_b): (Vec<_>, Vec<_>) = (a.collect(), b.collect());
        let by_name: HashMap<&str, usize> =
            in_b.iter().enumerate().map(|(at, shape)| (name(shape), at)).collect();
        let mut is_matched = vec![false; in_b.len()];
        let (mut both, mut places) = (Vec::new(), Vec::new());
        for shape in in_a {
            match by_name.get(name(&shape)) {
                Some(&at) => {
                    is_matched[at] = true;
                    places.push(at);
                    both.push([shape, in_b[at]]);
                }
                None => self.found.only[0].push(below(around, name(&shape))),
            }
        }
        let only_in_b = in_b.iter().zip(&is_matched).filter(|(_, is_matched)| !**is_matched);
        self.found.only[1].extend(only_in_b.map(|(shape, _)| below(around, name(shape))));
        if !places.is_sorted() {
            self.found.reordered.push(around.to_string());
        }
        both
    }

    /// Pairs a field, and what is in it. It recurses as deep as schemas with shapes are.
    fn field(&mut self, path: &str, shapes: [Shape<'_>; 2]) -> Result<()> {
        let kind = |side: usize| shapes[side].kind().map_err(|error| named(error, self.tables[side]));
        let kinds = [kind(0)?, kind(1)?];
        let texts = describe(shapes, &kinds);
        let outside = (self.steps, [0, 1].map(|side: usize| self.levels[side].len()));
        self.step(shapes.map(|shape| shape.is_nullable));
        let is_paired = match kinds {
            [ShapeKind::Leaf, ShapeKind::Leaf] => self.leaf(shapes)?,
            _ if shapes.iter().all(|shape| is_variant(*shape)) => {
                let (nodes, leaves) = (shapes.map(|shape| shape.node), shapes.map(|shape| shape.leaves()));
                self.variants.push(VariantPair { nodes, leaves });
                true
            }
            _ if shapes.iter().any(|shape| is_variant(*shape)) => false,
            [ShapeKind::Struct(in_a), ShapeKind::Struct(in_b)] => {
                for both in self.matched(path, [in_a, in_b]) {
                    let name = &both[0].schema().nodes()[both[0].node].name;
                    self.field(&below(path, name), both)?;
                }
                true
            }
            [ShapeKind::List(_, in_a), ShapeKind::List(_, in_b)] => {
                self.step([true, true]);
                self.field(&below(path, "element"), [in_a, in_b])?;
                true
            }
            [ShapeKind::Map(_, key_a, None), ShapeKind::Map(_, key_b, None)] => {
                self.step([true, true]);
                self.field(&below(path, "key"), [key_a, key_b])?;
                true
            }
            [ShapeKind::Map(_, key_a, Some(value_a)), ShapeKind::Map(_, key_b, Some(value_b))] => {
                self.step([true, true]);
                self.field(&below(path, "key"), [key_a, key_b])?;
                self.field(&below(path, "value"), [value_a, value_b])?;
                true
            }
            _ => false,
        };
        self.steps = outside.0;
        self.levels.iter_mut().zip(outside.1).for_each(|(levels, length)| levels.truncate(length));
        if !is_paired {
            self.found.incomparable.push((path.to_string(), texts));
        } else if texts[0] != texts[1] {
            self.found.fields.push((path.to_string(), texts));
        }
        Ok(())
    }

    /// Something that can be missing, in the tables whose levels count it.
    fn step(&mut self, counts: [bool; 2]) {
        for (levels, counts) in self.levels.iter_mut().zip(counts) {
            levels.extend(counts.then_some(self.steps));
        }
        self.steps += 1;
    }

    /// Pairs two leaves; false if their values cannot be compared.
    fn leaf(&mut self, shapes: [Shape<'_>; 2]) -> Result<bool> {
        let leaves = shapes.map(|shape| shape.leaves().start);
        let found = |side: usize| {
            let schema = shapes[side].schema();
            let leaf = schema.leaves().get(leaves[side]);
            let leaf = leaf.ok_or_else(|| Error::internal("a leaf without its place"))?;
            Ok::<_, Error>((leaf.physical_type, schema.meaning_of(leaf).read_as(leaf.physical_type)))
        };
        let (mut in_a, mut in_b) = (found(0)?, found(1)?);
        if self.as_loaded {
            [in_a.1, in_b.1] = loaded([in_a.1, in_b.1]);
        }
        let meanings = [in_a.1, in_b.1];
        let is_text = [0, 1].map(|side: usize| self.has_numbers_as_text[side] && meanings[side].is_text());
        let is_number = |side: usize| {
            is_text[side] || matches!(meanings[side], Meaning::Integer { .. } | Meaning::Decimal { .. })
        };
        let are_numbers = is_text.contains(&true) && is_number(0) && is_number(1);
        if !are_numbers && !are_comparable(meanings[0], meanings[1]) {
            return Ok(false);
        }
        let is_alike = in_a == in_b;
        let levels = self.levels.each_ref().map(|levels| [&levels[..], &[self.steps]].concat());
        let narrows = self.as_loaded
            && match meanings {
                [Meaning::Float, Meaning::Double] => self.is_loaded_into[0],
                [Meaning::Double, Meaning::Float] => self.is_loaded_into[1],
                _ => false,
            };
        // What is missing first: the column itself, or, of a collection, its first element.
        let kept = self.keeps_nulls.then_some(u16::from(self.empty_is_null && self.is_collection));
        let empty_is_null = self.empty_is_null;
        self.pairs.push(LeafPair {
            leaves,
            meanings,
            are_numbers,
            narrows,
            is_alike,
            empty_is_null,
            kept,
            levels,
        });
        Ok(true)
    }
}

fn below(around: &str, name: &str) -> String {
    if around.is_empty() { name.to_string() } else { format!("{around}.{name}") }
}

fn is_variant(shape: Shape<'_>) -> bool {
    matches!(shape.schema().nodes()[shape.node].logical_type, Some(LogicalType::Variant { .. }))
}

/// Two fields in words, which are the same if the fields are.
fn describe(shapes: [Shape<'_>; 2], kinds: &[ShapeKind<'_>; 2]) -> [String; 2] {
    let ids = shapes.map(|shape| shape.schema().nodes()[shape.node].field_id);
    let spellings = [spelling(shapes[0], &kinds[0]), spelling(shapes[1], &kinds[1])];
    [0, 1].map(|side: usize| {
        let shape = shapes[side];
        let what = match &kinds[side] {
            ShapeKind::Leaf => type_of(shape),
            ShapeKind::Struct(_) if is_variant(shape) => "VARIANT".to_string(),
            ShapeKind::Struct(_) => "group".to_string(),
            ShapeKind::List(..) => "LIST".to_string(),
            ShapeKind::Map(_, _, Some(_)) => "MAP".to_string(),
            ShapeKind::Map(_, _, None) => "MAP without values".to_string(),
        };
        let mut text = format!("{} {what}", if shape.is_nullable { "optional" } else { "required" });
        if let ([Some(in_a), Some(in_b)], true) = (&spellings, spellings[0] != spellings[1]) {
            text += &format!(" of {}", if side == 0 { in_a } else { in_b });
        }
        if ids[0] != ids[1] {
            text += &ids[side].map_or(", no field id".to_string(), |id| format!(", field id {id}"));
        }
        text
    })
}

/// A leaf's type; without an annotation that only repeats the physical type.
fn type_of(shape: Shape<'_>) -> String {
    let schema = shape.schema();
    let Some(leaf) = schema.leaves().get(shape.leaves().start) else { return String::new() };
    let logical_type = schema.node_of(leaf).logical_type.as_ref();
    let plain = Meaning::of(leaf.physical_type, None);
    match logical_type.filter(|logical| Meaning::of(leaf.physical_type, Some(logical)) != plain) {
        Some(logical_type) => format!("{} {logical_type}", leaf.physical_type),
        None => leaf.physical_type.to_string(),
    }
}

/// How a list or a map is spelt: the nodes between it and what it holds.
fn spelling(shape: Shape<'_>, kind: &ShapeKind<'_>) -> Option<String> {
    let inside = match kind {
        ShapeKind::List(_, element) => element.node,
        ShapeKind::Map(_, key, _) => key.node,
        ShapeKind::Leaf | ShapeKind::Struct(_) => return None,
    };
    let nodes = shape.schema().nodes();
    let mut names = Vec::new();
    let mut at = inside;
    while at != shape.node && at != 0 {
        names.push(nodes[at].name.as_str());
        at = nodes[at].parent;
    }
    names.reverse();
    Some(if names.is_empty() { "a repeated field".to_string() } else { names.join(".") })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType};

    use super::*;

    /// A load makes FLOAT of DOUBLE only where the table has that: into DOUBLE a FLOAT goes as it is.
    #[test]
    fn floats_are_narrowed_where_they_are_loaded_into() {
        let table = |physical: PhysicalType, is_live: bool| {
            let field = FieldDef::new("v", FieldType::Leaf(physical, None));
            let mut made = Table::new("t", Arc::new(Schema::of_fields(&[field]).unwrap()));
            made.identity = is_live.then(|| "7".to_owned());
            made
        };
        let narrows = |a: (PhysicalType, bool), b: (PhysicalType, bool)| {
            let options = DiffOptions { as_loaded: true, ..DiffOptions::default() };
            let (a, b) = (table(a.0, a.1), table(b.0, b.1));
            pair([&a, &b], &options).unwrap().columns[0].pairs[0].narrows
        };
        let (float, double) = (PhysicalType::Float, PhysicalType::Double);
        assert!(narrows((double, false), (float, true)) && narrows((double, false), (float, false)));
        assert!(narrows((float, true), (double, false)) && narrows((float, true), (double, true)));
        assert!(!narrows((float, false), (double, true)) && !narrows((float, false), (double, false)));
        assert!(!narrows((double, true), (float, false)));
    }
}
