//! From two schemas to a plan.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

use marquetry_base::{Error, ErrorKind, Result};

use super::{Conform, LeafPlan, LeafSource, LevelPlan, Structure, Variant, VariantPart};
use crate::schema::{LeafType, LogicalType, PhysicalType, Schema, Shape, ShapeKind, Widening};

impl Conform {
    /// How files of the schema `from` are read as `to`. The columns named in `constants` are not read; each has one
    /// value in all rows, which is passed to [`ConformReader::new`](super::ConformReader::new), such as a value from
    /// the file's path.
    ///
    /// This is planning work, once for each different schema: about two microseconds per field, in one call.
    ///
    /// # Errors
    ///
    /// `Conversion`, naming the column and both types: a type that cannot become the other without loss; a required
    /// field that is nullable in the file or missing from it. `Corrupt` and `LimitExceeded` as [`Schema::shape`];
    /// `Misuse` for a constant that is not a flat column.
    pub fn new(from: &Schema, to: &Schema, constants: &[&str]) -> Result<Conform> {
        let mut columns: BTreeMap<&str, Option<usize>> = BTreeMap::new();
        for node in from.children(0) {
            columns.entry(&from.nodes()[node].name).and_modify(|twice| *twice = None).or_insert(Some(node));
        }
        let numbers: BTreeMap<&str, usize> =
            constants.iter().enumerate().map(|(number, name)| (*name, number)).collect();
        let mut planner = Planner {
            from,
            to,
            column: None,
            leaves: Vec::with_capacity(to.leaves().len()),
            reads: Vec::new(),
            place_of: alloc::vec![None; from.leaves().len()],
            structures: Vec::new(),
            variants: Vec::new(),
        };
        let mut constant_types = alloc::vec![None; constants.len()];
        let root = Slot {
            definition: 0,
            repetition: 0,
            map: alloc::vec![0],
            leaves: 0..from.leaves().len(),
            structure: Cell::new(None),
        };
        for node in to.children(0) {
            let name = to.nodes()[node].name.as_str();
            let shape = to.shape(node, |_| true)?.ok_or_else(|| Error::internal("no shape of all leaves"))?;
            if let Some(&number) = numbers.get(name) {
                constant_types[number] = Some(planner.constant(&shape, number)?);
                continue;
            }
            let found = match columns.get(name) {
                None => None,
                Some(Some(node)) => from.shape(*node, |_| true)?,
                Some(None) => return Err(planner.wrong(&shape, "is twice in the file".to_string())),
            };
            planner.column = found.as_ref().map(|shape| shape.node);
            planner.field(found.as_ref(), &shape, &root)?;
        }
        let constants = constant_types.into_iter().collect::<Option<Vec<_>>>();
        let constants =
            constants.ok_or_else(|| Error::misuse("a constant that is no column of the schema"))?;
        planner.finish(constants)
    }
}

struct Planner<'s> {
    from: &'s Schema,
    to: &'s Schema,
    /// The file's column that is being planned.
    column: Option<usize>,
    leaves: Vec<LeafPlan>,
    reads: Vec<usize>,
    /// Where each leaf of the file is read.
    place_of: Vec<Option<usize>>,
    structures: Vec<Wanted>,
    variants: Vec<Variant>,
}

/// A structure whose leaf is not chosen yet.
struct Wanted {
    leaves: Range<usize>,
    map: Vec<u8>,
    repetition: u16,
}

/// Where a field stands: the rows, the slots of a group, or the elements of a list.
struct Slot {
    /// The level from which on there is a slot in the other schema.
    definition: u16,
    repetition: u16,
    /// For each definition level of the file up to a slot's, that of the other schema.
    map: Vec<u8>,
    /// The file's leaves there.
    leaves: Range<usize>,
    /// Its structure, once it is needed.
    structure: Cell<Option<usize>>,
}

impl Planner<'_> {
    /// Plans a field and all below it. It recurses, as deep as shapes are.
    fn field(&mut self, from: Option<&Shape>, to: &Shape, slot: &Slot) -> Result<()> {
        let Some(from) = from.filter(|from| !is_null(self.from, from) || self.is_alike_kind(from, to)) else {
            return self.missing(to, slot);
        };
        if from.leaves.is_empty() && !to.leaves.is_empty() {
            // A group of nothing tells nothing of itself.
            return match (&to.kind, to.is_nullable) {
                (ShapeKind::Struct(fields), false) => {
                    fields.iter().try_for_each(|field| self.field(None, field, slot))
                }
                _ => self.missing(to, slot),
            };
        }
        let mut map = slot.map.clone();
        let definition = level(to.definition)?;
        match (from.is_nullable, to.is_nullable) {
            (true, true) => map.push(definition),
            (true, false) => {
                return Err(self.wrong(to, "may be null in the file, and is required".to_string()));
            }
            (false, true) => {
                if let Some(last) = map.last_mut() {
                    *last = definition;
                }
            }
            (false, false) => {}
        }
        let here = |definition, repetition, map| Slot {
            definition,
            repetition,
            map,
            leaves: from.leaves.clone(),
            structure: Cell::new(None),
        };
        match (&from.kind, &to.kind) {
            (ShapeKind::Leaf, ShapeKind::Leaf) => self.leaf(from, to, map),
            (ShapeKind::Struct(fields), ShapeKind::Struct(wanted)) => {
                let one = self.from.nodes()[from.node].logical_type.as_ref();
                let other = self.to.nodes()[to.node].logical_type.as_ref();
                match (is_variant(one), is_variant(other)) {
                    (true, true) if !self.is_alike(fields, wanted) => {
                        return self.variant(from, wanted, map);
                    }
                    (true, true) => {}
                    _ if one != other => return Err(self.clash(from, to)),
                    _ => {}
                }
                let mut by_name: BTreeMap<&str, Option<&Shape>> = BTreeMap::new();
                for field in fields {
                    let name = self.from.nodes()[field.node].name.as_str();
                    by_name.entry(name).and_modify(|twice| *twice = None).or_insert(Some(field));
                }
                let slot = here(to.definition, to.repetition, map);
                for field in wanted {
                    match by_name.get(self.to.nodes()[field.node].name.as_str()) {
                        Some(None) => return Err(self.wrong(field, "is twice in the file".to_string())),
                        found => self.field(found.copied().flatten(), field, &slot)?,
                    }
                }
                Ok(())
            }
            (ShapeKind::List(_, element), ShapeKind::List(repeated, wanted))
            // A map's values without their keys.
            | (ShapeKind::Map(_, _, Some(element)), ShapeKind::List(repeated, wanted)) => {
                map.push(level(repeated.definition)?);
                self.field(Some(element), wanted, &here(repeated.definition, repeated.repetition, map))
            }
            (ShapeKind::Map(_, key, value), ShapeKind::Map(repeated, wanted_key, wanted_value)) => {
                map.push(level(repeated.definition)?);
                let slot = here(repeated.definition, repeated.repetition, map);
                self.field(Some(key), wanted_key, &slot)?;
                match wanted_value {
                    Some(wanted) => self.field(value.as_deref(), wanted, &slot),
                    None => Ok(()),
                }
            }
            _ => Err(self.clash(from, to)),
        }
    }

    fn leaf(&mut self, from: &Shape, to: &Shape, map: Vec<u8>) -> Result<()> {
        let (Some(one), Some(other)) =
            (LeafType::of(self.from, from.leaves.start), LeafType::of(self.to, to.leaves.start))
        else {
            return Err(Error::internal("a shape without its leaf"));
        };
        let Some(widening) = one.widen(&other) else { return Err(self.clash(from, to)) };
        let read = self.read(from.leaves.start);
        let levels = self.levels(from.leaves.start, to.leaves.start, map);
        self.push(to.leaves.start, LeafSource::Read { read, widening, levels })
    }

    /// What becomes of the definition levels of a leaf of the file.
    fn levels(&self, from: usize, to: usize, map: Vec<u8>) -> LevelPlan {
        let is_same = map.iter().enumerate().all(|(at, level)| at == usize::from(*level));
        match (self.from.leaves()[from].is_flat(), self.to.leaves()[to].is_flat()) {
            (true, true) => LevelPlan::Keep,
            (true, false) => LevelPlan::OfFlat(map.into()),
            (false, _) if is_same => LevelPlan::Keep,
            (false, _) => LevelPlan::Map(map.into()),
        }
    }

    /// A field missing from the file.
    fn missing(&mut self, to: &Shape, slot: &Slot) -> Result<()> {
        if !to.is_nullable {
            return Err(self.wrong(to, "is required, and not in the file".to_string()));
        }
        let structure = match slot.structure.get() {
            // Each row is a slot.
            _ if slot.definition == 0 && slot.repetition == 0 => None,
            Some(known) => Some(known),
            None => {
                self.structures.push(Wanted {
                    leaves: slot.leaves.clone(),
                    map: slot.map.clone(),
                    repetition: slot.repetition,
                });
                let number = self.structures.len() - 1;
                slot.structure.set(Some(number));
                Some(number)
            }
        };
        to.leaves.clone().try_for_each(|leaf| self.push(leaf, LeafSource::Null(structure)))
    }

    fn constant(&mut self, to: &Shape, number: usize) -> Result<PhysicalType> {
        match self.to.leaves().get(to.leaves.start) {
            Some(leaf) if to.kind == ShapeKind::Leaf && leaf.is_flat() => {
                self.push(to.leaves.start, LeafSource::Constant(number))?;
                Ok(leaf.physical_type)
            }
            _ => Err(Error::misuse("a constant that is not a flat column")),
        }
    }

    /// A variant that is shredded otherwise, as one that is not shredded.
    fn variant(&mut self, from: &Shape, wanted: &[Shape], map: Vec<u8>) -> Result<()> {
        let name = |schema: &Schema, shape: &Shape| schema.nodes()[shape.node].name.clone();
        let ShapeKind::Struct(fields) = &from.kind else {
            return Err(Error::internal("a variant that is no group"));
        };
        let metadata = fields.iter().find(|field| name(self.from, field) == "metadata");
        let metadata = metadata.filter(|field| field.kind == ShapeKind::Leaf && !field.is_nullable);
        let [one, two] = wanted else { return Err(self.clash_of_variants(wanted)) };
        let Some(metadata) = metadata else {
            return Err(self.wrong(one, "is a variant without metadata in the file".to_string()));
        };
        let Some(column) = self.column else { return Err(Error::internal("a variant in no column")) };
        let leaves = from.leaves.clone();
        let shape = self.from.shape(column, |leaf| leaves.contains(&leaf))?;
        let shape = shape.ok_or_else(|| Error::internal("no shape of a variant"))?;
        let reads = leaves.clone().map(|leaf| self.read(leaf)).collect();
        let variant = self.variants.len();
        let metadata_read = self.read(metadata.leaves.start);
        self.variants.push(Variant { shape, node: from.node, leaves, reads, metadata: metadata_read });
        for (field, part) in [(one, VariantPart::Metadata), (two, VariantPart::Value)] {
            let expected = if part == VariantPart::Metadata { "metadata" } else { "value" };
            let is_bytes = LeafType::of(self.to, field.leaves.start)
                .is_some_and(|leaf| leaf.logical.is_none() && leaf.physical == PhysicalType::ByteArray);
            if name(self.to, field) != expected || field.kind != ShapeKind::Leaf || !is_bytes {
                return Err(self.clash_of_variants(wanted));
            }
            let mut map = map.clone();
            if let Some(last) = map.last_mut() {
                *last = level(field.definition)?;
            }
            let levels = self.levels(metadata.leaves.start, field.leaves.start, map);
            self.push(field.leaves.start, LeafSource::Variant { variant, part, levels })?;
        }
        Ok(())
    }

    /// Where a leaf of the file is read.
    fn read(&mut self, leaf: usize) -> usize {
        let reads = &mut self.reads;
        *self.place_of[leaf].get_or_insert_with(|| {
            reads.push(leaf);
            reads.len() - 1
        })
    }

    /// The leaves of the other schema are planned in its order.
    fn push(&mut self, leaf: usize, source: LeafSource) -> Result<()> {
        let found = &self.to.leaves()[leaf];
        if leaf != self.leaves.len() {
            return Err(Error::internal("a leaf out of order"));
        }
        self.leaves.push(LeafPlan {
            physical_type: found.physical_type,
            is_flat: found.is_flat(),
            has_repetition: found.repetition_max > 0,
            source,
        });
        Ok(())
    }

    fn finish(mut self, constants: Vec<PhysicalType>) -> Result<Conform> {
        let mut structures = Vec::with_capacity(self.structures.len());
        for wanted in core::mem::take(&mut self.structures) {
            // A leaf that is read anyway costs nothing; of the others one below few lists has few entries.
            let anyway = wanted.leaves.clone().find(|&leaf| self.place_of[leaf].is_some());
            let leaves = self.from.leaves();
            let cheapest = || wanted.leaves.clone().min_by_key(|&leaf| leaves[leaf].repetition_max);
            let leaf = anyway.or_else(cheapest).ok_or_else(|| Error::internal("a slot without a leaf"))?;
            let mut definition = wanted.map;
            let highest = definition.last().copied().unwrap_or(0);
            definition.resize(usize::from(leaves[leaf].definition_max) + 1, highest);
            let read = self.read(leaf);
            structures.push(Structure { read, definition: definition.into(), repetition: wanted.repetition });
        }
        let is_as_it_is = |(number, plan): (usize, &LeafPlan)| {
            matches!(&plan.source, LeafSource::Read { read, widening: Widening::None, levels: LevelPlan::Keep }
                if *read == number && self.reads[*read] == number)
        };
        let is_identity =
            self.reads.len() == self.leaves.len() && self.leaves.iter().enumerate().all(is_as_it_is);
        Ok(Conform {
            is_identity,
            leaves: self.leaves,
            reads: self.reads,
            structures,
            variants: self.variants,
            constants,
        })
    }

    /// Whether variants are shredded alike: the same fields of the same types.
    fn is_alike(&self, from: &[Shape], to: &[Shape]) -> bool {
        from.len() == to.len() && from.iter().zip(to).all(|(from, to)| self.is_alike_field(from, to))
    }

    fn is_alike_field(&self, from: &Shape, to: &Shape) -> bool {
        self.from.nodes()[from.node].name == self.to.nodes()[to.node].name && self.is_alike_kind(from, to)
    }

    fn is_alike_kind(&self, from: &Shape, to: &Shape) -> bool {
        match (&from.kind, &to.kind) {
            (ShapeKind::Leaf, ShapeKind::Leaf) => {
                LeafType::of(self.from, from.leaves.start) == LeafType::of(self.to, to.leaves.start)
            }
            (ShapeKind::Struct(one), ShapeKind::Struct(other)) => self.is_alike(one, other),
            (ShapeKind::List(_, one), ShapeKind::List(_, other)) => self.is_alike_kind(one, other),
            _ => false,
        }
    }

    /// An error about a field of the other schema.
    fn wrong(&self, to: &Shape, what: String) -> Error {
        let path = self.to.path(to.node);
        Error::new(ErrorKind::Conversion, format!("the column {path:?} {what}"))
            .at(|place| place.column = Some(path))
    }

    fn clash(&self, from: &Shape, to: &Shape) -> Error {
        let (one, other) = (describe(self.from, from), describe(self.to, to));
        self.wrong(to, format!("is {one} in the file, which cannot be read as {other}"))
    }

    fn clash_of_variants(&self, to: &[Shape]) -> Error {
        match to.first() {
            Some(field) => self.wrong(field, "is of a variant that is shredded otherwise in the file".into()),
            None => Error::misuse("a variant of nothing"),
        }
    }
}

/// UNKNOWN: all values are null.
fn is_null(schema: &Schema, shape: &Shape) -> bool {
    shape.kind == ShapeKind::Leaf
        && LeafType::of(schema, shape.leaves.start).is_some_and(|leaf| leaf.is_null())
}

fn is_variant(logical_type: Option<&LogicalType>) -> bool {
    matches!(logical_type, Some(LogicalType::Variant { .. }))
}

fn describe(schema: &Schema, shape: &Shape) -> String {
    match &shape.kind {
        ShapeKind::Leaf => match LeafType::of(schema, shape.leaves.start) {
            Some(leaf) => leaf.describe(),
            None => "a leaf".into(),
        },
        ShapeKind::Struct(_) => match &schema.nodes()[shape.node].logical_type {
            Some(logical) => format!("a group {logical}"),
            None => "a group".into(),
        },
        ShapeKind::List(..) => "a list".into(),
        ShapeKind::Map(_, _, Some(_)) => "a map".into(),
        ShapeKind::Map(_, _, None) => "a map without values".into(),
    }
}

fn level(level: u16) -> Result<u8> {
    u8::try_from(level).map_err(|_| Error::too_large("more than 255 levels of nesting"))
}
