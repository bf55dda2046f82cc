//! From two schemas to a plan.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Budget, Error, ErrorKind, Result, Segmented};

use super::{Conform, LeafPlan, LeafSource, Structure, Variant, VariantPart};
use crate::batch::store;
use crate::schema::{
    FIELD_PRICE, Fields, Holds, LeafType, LogicalType, Named, Names, PhysicalType, Plan, Schema, Shape,
    ShapeKind, Spot, Visit, Walk, Widening,
};

impl Conform {
    /// The plan of how files of the schema `from` are read as `to`. The columns named in `constants` are not read; each
    /// has one value in all rows, which is passed to [`ConformReader::new`](super::ConformReader::new), such as a value
    /// from the file's path. It is made once for each different schema. Its errors are:
    ///
    /// `Conversion`, naming the column and both types: a type that cannot become the other without loss; a required
    /// field that is nullable in the file or missing from it. `Corrupt` and `LimitExceeded` as [`Shape::kind`];
    /// `Misuse` for a constant that is not a flat column.
    pub fn plan(from: Arc<Schema>, to: Arc<Schema>, constants: &[&str]) -> ConformPlan {
        let root = Slot {
            definition: 0,
            repetition: 0,
            map: alloc::vec![0],
            leaves: 0..from.leaves().len(),
            structure: None,
        };
        let columns =
            Open::Fields { from: Some(Spot::ROOT), to: Spot::ROOT, next: 1, names: Some(Names::of(0)) };
        ConformPlan {
            conform: Conform::empty(from, to),
            open: alloc::vec![(root, columns)],
            column: None,
            place_of: Segmented::new(),
            wanted: Segmented::new(),
            constants: constants.iter().map(|name| (String::from(*name), None)).collect(),
            choosing: Choosing::default(),
        }
    }

    fn empty(from: Arc<Schema>, to: Arc<Schema>) -> Conform {
        Conform {
            from,
            to,
            leaves: Segmented::new(),
            reads: Segmented::new(),
            maps: Segmented::new(),
            structures: Segmented::new(),
            variants: Vec::new(),
            constants: Vec::new(),
            is_identity: true,
            rows_max: usize::MAX,
            null_bytes_max: 0,
        }
    }
}

/// The [`Plan`] of a [`Conform`].
#[derive(Debug)]
pub struct ConformPlan {
    conform: Conform,
    /// The structs, lists and maps around the next field, and where their fields stand.
    open: Vec<(Slot, Open)>,
    /// The file's column that is being planned.
    column: Option<usize>,
    /// Where each leaf of the file is read, as far as leaves are known.
    place_of: Segmented<Option<usize>>,
    /// Structures whose leaves are not chosen yet.
    wanted: Segmented<Wanted>,
    /// The constants, and their types, once they are found.
    constants: Vec<(String, Option<PhysicalType>)>,
    choosing: Choosing,
}

/// What is left of a field of the other schema.
#[derive(Debug)]
enum Open {
    /// The fields of a struct from a node on, and the index of what the file has there, if it has the struct.
    Fields { from: Option<Spot>, to: Spot, next: usize, names: Option<Names> },
    /// An element, a key, a value: each with what the file has there.
    Shapes([Option<(Option<Spot>, Spot)>; 2]),
    /// Leaves that are missing from the file, which are null in each row, or in each slot of a structure.
    Missing(Range<usize>, Option<usize>),
    /// A variant; first it is found out whether it is shredded alike.
    Alike { from: Spot, to: Spot, alike: Alike },
    /// The leaves of a variant that are not read yet.
    Leaves(usize, Range<usize>),
}

/// Where a field stands: the rows, the slots of a group, or the elements of a list.
#[derive(Debug, Clone)]
struct Slot {
    /// The level from which on there is a slot in the other schema.
    definition: u16,
    repetition: u16,
    /// For each definition level of the file up to a slot's, that of the other schema.
    map: Vec<u8>,
    /// The file's leaves there.
    leaves: Range<usize>,
    /// Its structure, once it is needed.
    structure: Option<usize>,
}

/// A structure whose leaf is not chosen yet.
#[derive(Debug)]
struct Wanted {
    leaves: Range<usize>,
    map: Vec<u8>,
    repetition: u16,
}

/// The choice of a leaf for the next structure.
#[derive(Debug, Default)]
struct Choosing {
    /// Leaves that were looked at.
    looked: usize,
    /// The best of them, and whether it is read anyway.
    best: Option<usize>,
}

/// Fields between two looks at the budget.
const FIELDS_SLICE: usize = 32;

impl Plan for ConformPlan {
    type Made = Conform;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Option<Conform>> {
        let (from, to) = (Arc::clone(&self.conform.from), Arc::clone(&self.conform.to));
        loop {
            for _ in 0..FIELDS_SLICE {
                budget.charge(FIELD_PRICE, 0, 1);
                if self.next(&from, &to, budget)? {
                    let empty = Conform::empty(from, to);
                    return Ok(Some(core::mem::replace(&mut self.conform, empty)));
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

impl ConformPlan {
    /// Does a small part. True after the last.
    fn next(&mut self, from: &Schema, to: &Schema, budget: &mut Budget<'_>) -> Result<bool> {
        let is_root = self.open.len() == 1;
        let Some((_, open)) = self.open.last_mut() else { return self.choose() };
        match open {
            Open::Fields { from: found, to: around, next, names } => {
                let found = *found;
                if let (Some(found), Some(names)) = (found, &mut *names)
                    && !names.step(from, found.node(), budget)
                {
                    return Ok(false);
                }
                let mut fields = Fields::from(around.of(to, None), *next);
                let field = fields.any();
                *next = fields.next_node();
                let Some(field) = field else {
                    self.open.pop();
                    return Ok(false);
                };
                let name = to.nodes()[field.node].name.as_str();
                if is_root && let Some(at) = self.constants.iter().position(|(constant, _)| constant == name)
                {
                    return self.constant(field, at).map(|()| false);
                }
                let named = names.as_ref().map_or(Named::None, |names| names.find(from, name, budget));
                let inside = found.map(|found| Fields::from(found.of(from, None), 0));
                let found = match (named, inside) {
                    (Named::One(node), Some(inside)) => Some(inside.field(node)),
                    (Named::Several(_), _) => return Err(wrong(field, "is twice in the file".to_string())),
                    _ => None,
                };
                if is_root {
                    self.column = found.map(|shape| shape.node);
                }
                self.field(found, field)?;
            }
            Open::Shapes(left) => {
                let first = left[0].take();
                left.swap(0, 1);
                match first {
                    Some((found, wanted)) => {
                        let found = found.map(|spot| spot.of(from, None));
                        self.field(found, wanted.of(to, None))?;
                    }
                    None => drop(self.open.pop()),
                }
            }
            Open::Missing(leaves, structure) => match leaves.next() {
                Some(leaf) => {
                    let source = LeafSource::Null(*structure);
                    self.push(leaf, source)?;
                }
                None => drop(self.open.pop()),
            },
            Open::Alike { from: found, to: wanted, alike } => {
                if let Some(is_alike) = alike.step(from, to)? {
                    let (found, wanted) = (found.of(from, None), wanted.of(to, None));
                    let Some((slot, _)) = self.open.pop() else { return Ok(false) };
                    if is_alike {
                        self.enter_struct(slot, Some(found), wanted);
                    } else {
                        self.variant(found, wanted, slot.map)?;
                    }
                }
            }
            Open::Leaves(variant, leaves) => match leaves.next() {
                Some(leaf) => {
                    let variant = *variant;
                    let read = self.read(leaf);
                    if let Some(variant) = self.conform.variants.get_mut(variant) {
                        variant.reads.push(read);
                    }
                }
                None => drop(self.open.pop()),
            },
        }
        Ok(false)
    }

    /// Plans a field. What is in it follows.
    fn field(&mut self, from: Option<Shape<'_>>, to: Shape<'_>) -> Result<()> {
        let Some(from) = from else { return self.missing(to) };
        let (kind, wanted) = (from.kind()?, to.kind()?);
        if let ShapeKind::Leaf = kind
            && type_of(from).is_some_and(|leaf| leaf.is_null())
            && !(matches!(wanted, ShapeKind::Leaf) && type_of(from) == type_of(to))
        {
            return self.missing(to);
        }
        let leaves = from.leaves();
        if leaves.is_empty() && !to.leaves().is_empty() {
            // A group of nothing tells nothing of itself.
            return match (wanted, to.is_nullable) {
                (ShapeKind::Struct(_), false) => {
                    let slot = self.open.last().map(|(slot, _)| slot.clone());
                    let slot = slot.ok_or_else(|| Error::internal("a field in nothing"))?;
                    self.enter_struct(slot, None, to);
                    Ok(())
                }
                _ => self.missing(to),
            };
        }
        let mut map = self.open.last().map_or_else(Vec::new, |(slot, _)| slot.map.clone());
        let definition = level(to.definition)?;
        match (from.is_nullable, to.is_nullable) {
            (true, true) => map.push(definition),
            (true, false) => {
                return Err(wrong(to, "may be null in the file, and is required".to_string()));
            }
            (false, true) => {
                if let Some(last) = map.last_mut() {
                    *last = definition;
                }
            }
            (false, false) => {}
        }
        let here =
            |definition, repetition, map| Slot { definition, repetition, map, leaves, structure: None };
        match (kind, wanted) {
            (ShapeKind::Leaf, ShapeKind::Leaf) => return self.leaf(from, to, map),
            (ShapeKind::Struct(_), ShapeKind::Struct(_)) => {
                let one = from.schema().nodes()[from.node].logical_type.as_ref();
                let other = to.schema().nodes()[to.node].logical_type.as_ref();
                let slot = here(to.definition, to.repetition, map);
                match (is_variant(one), is_variant(other)) {
                    (true, true) => {
                        let alike = Alike::new(from, to);
                        self.open.push((slot, Open::Alike { from: from.spot(), to: to.spot(), alike }));
                    }
                    _ if one != other => return Err(clash(from, to)),
                    _ => self.enter_struct(slot, Some(from), to),
                }
            }
            (ShapeKind::List(_, element), ShapeKind::List(repeated, wanted))
            // A map's values without their keys.
            | (ShapeKind::Map(_, _, Some(element)), ShapeKind::List(repeated, wanted)) => {
                map.push(level(repeated.definition)?);
                let slot = here(repeated.definition, repeated.repetition, map);
                let pair = Some((Some(element.spot()), wanted.spot()));
                self.open.push((slot, Open::Shapes([pair, None])));
            }
            (ShapeKind::Map(_, key, value), ShapeKind::Map(repeated, wanted_key, wanted_value)) => {
                map.push(level(repeated.definition)?);
                let slot = here(repeated.definition, repeated.repetition, map);
                let keys = Some((Some(key.spot()), wanted_key.spot()));
                let values = wanted_value.map(|wanted| (value.map(Shape::spot), wanted.spot()));
                self.open.push((slot, Open::Shapes([keys, values])));
            }
            _ => return Err(clash(from, to)),
        }
        Ok(())
    }

    /// Plans the fields of a struct that the file has, or has not.
    fn enter_struct(&mut self, slot: Slot, from: Option<Shape<'_>>, to: Shape<'_>) {
        let names = from.map(|from| Names::of(from.node));
        let (from, next) = (from.map(Shape::spot), to.node + 1);
        self.open.push((slot, Open::Fields { from, to: to.spot(), next, names }));
    }

    fn leaf(&mut self, from: Shape<'_>, to: Shape<'_>, map: Vec<u8>) -> Result<()> {
        let (Some(one), Some(other)) = (type_of(from), type_of(to)) else {
            return Err(Error::internal("a shape without its leaf"));
        };
        let Some(widening) = one.widen(&other) else { return Err(clash(from, to)) };
        let (of, at) = (from.leaves().start, to.leaves().start);
        let read = self.read(of);
        let map = self.map(of, at, map);
        self.push(at, LeafSource::Read { read, widening, map })
    }

    /// What becomes of the definition levels of a leaf of the file: the number of a map, unless they stay.
    fn map(&mut self, from: usize, to: usize, map: Vec<u8>) -> Option<usize> {
        let is_same = map.iter().enumerate().all(|(at, level)| at == usize::from(*level));
        let Conform { from: file, to: other, maps, .. } = &mut self.conform;
        let is_flat = |schema: &Schema, leaf| schema.leaves().get(leaf).is_some_and(|leaf| leaf.is_flat());
        let stays = if is_flat(file, from) { is_flat(other, to) } else { is_same };
        if stays {
            return None;
        }
        // The leaves of a group have few different ones.
        let first = maps.len().saturating_sub(MAPS_SHARED);
        let known = maps.iter_from(first).position(|known: &alloc::boxed::Box<[u8]>| **known == *map);
        if known.is_none() {
            maps.push(map.into());
        }
        Some(known.map_or(maps.len() - 1, |at| first + at))
    }

    /// A field missing from the file.
    fn missing(&mut self, to: Shape<'_>) -> Result<()> {
        if !to.is_nullable {
            return Err(wrong(to, "is required, and not in the file".to_string()));
        }
        let Some((slot, _)) = self.open.last_mut() else { return Ok(()) };
        // Each row is a slot.
        if slot.structure.is_none() && (slot.definition, slot.repetition) != (0, 0) {
            slot.structure = Some(self.wanted.len());
            let (leaves, map, repetition) = (slot.leaves.clone(), slot.map.clone(), slot.repetition);
            self.wanted.push(Wanted { leaves, map, repetition });
        }
        let slot = slot.clone();
        let missing = Open::Missing(to.leaves(), slot.structure);
        self.open.push((slot, missing));
        Ok(())
    }

    fn constant(&mut self, to: Shape<'_>, number: usize) -> Result<()> {
        let leaf = to.leaves().start;
        match (to.kind()?, to.schema().leaves().get(leaf)) {
            (ShapeKind::Leaf, Some(found)) if found.is_flat() => {
                self.push(leaf, LeafSource::Constant(number))?;
                self.constants[number].1 = Some(found.physical_type);
                Ok(())
            }
            _ => Err(Error::misuse("a constant that is not a flat column")),
        }
    }

    /// A variant that is shredded otherwise, as one that is not shredded.
    fn variant(&mut self, from: Shape<'_>, to: Shape<'_>, map: Vec<u8>) -> Result<()> {
        let name = |shape: Shape<'_>| shape.schema().nodes()[shape.node].name.clone();
        let (ShapeKind::Struct(mut fields), ShapeKind::Struct(mut wanted)) = (from.kind()?, to.kind()?)
        else {
            return Err(Error::internal("a variant that is no group"));
        };
        // It is the first but for writers that are strange, and never far.
        let metadata = fields.by_ref().take(FIELDS_SLICE).find(|field| name(*field) == "metadata");
        let metadata = metadata.filter(|field| is_leaf(*field) && !field.is_nullable);
        let (one, two) = match (wanted.next(), wanted.next(), wanted.next()) {
            (Some(one), Some(two), None) => (one, two),
            (one, ..) => return Err(clash_of_variants(one)),
        };
        let Some(metadata) = metadata else {
            return Err(wrong(one, "is a variant without metadata in the file".to_string()));
        };
        let Some(column) = self.column else { return Err(Error::internal("a variant in no column")) };
        let (leaves, metadata_leaf) = (from.leaves(), metadata.leaves().start);
        let (variant, metadata) = (self.conform.variants.len(), self.read(metadata_leaf));
        let reads = Segmented::new();
        self.conform.variants.push(Variant {
            column,
            node: from.node,
            leaves: leaves.clone(),
            reads,
            metadata,
        });
        for (field, part) in [(one, VariantPart::Metadata), (two, VariantPart::Value)] {
            let expected = if part == VariantPart::Metadata { "metadata" } else { "value" };
            let is_bytes = type_of(field)
                .is_some_and(|leaf| leaf.logical.is_none() && leaf.physical == PhysicalType::ByteArray);
            if name(field) != expected || !is_leaf(field) || !is_bytes {
                return Err(clash_of_variants(Some(one)));
            }
            let mut map = map.clone();
            if let Some(last) = map.last_mut() {
                *last = level(field.definition)?;
            }
            let map = self.map(metadata_leaf, field.leaves().start, map);
            self.push(field.leaves().start, LeafSource::Variant { variant, part, map })?;
        }
        let slot = Slot { definition: 0, repetition: 0, map, leaves: leaves.clone(), structure: None };
        self.open.push((slot, Open::Leaves(variant, leaves)));
        Ok(())
    }

    /// Where a leaf of the file is read.
    fn read(&mut self, leaf: usize) -> usize {
        let reads = &mut self.conform.reads;
        while self.place_of.len() <= leaf {
            self.place_of.push(None);
        }
        *self.place_of[leaf].get_or_insert_with(|| {
            reads.push(leaf);
            reads.len() - 1
        })
    }

    /// The leaves of the other schema are planned in its order.
    fn push(&mut self, leaf: usize, source: LeafSource) -> Result<()> {
        let conform = &mut self.conform;
        if leaf != conform.leaves.len() {
            return Err(Error::internal("a leaf out of order"));
        }
        let found =
            conform.to.leaves().get(leaf).ok_or_else(|| Error::internal("a leaf that is not there"))?;
        let plan = LeafPlan {
            physical_type: found.physical_type,
            is_flat: found.is_flat(),
            has_repetition: found.repetition_max > 0,
            source,
        };
        conform.is_identity &= matches!(
            plan.source,
            LeafSource::Read { read, widening: Widening::None, map: None }
                if read == leaf && conform.reads.get(read) == Some(&leaf)
        );
        if plan.is_flat {
            // What is read may become larger.
            conform.rows_max = conform.rows_max.min(store::rows_max(plan.physical_type));
            if let LeafSource::Null(_) | LeafSource::Constant(_) = plan.source {
                conform.null_bytes_max = conform.null_bytes_max.max(store::value_bytes(plan.physical_type));
            }
        }
        conform.leaves.push(plan);
        Ok(())
    }

    /// Chooses a leaf for the next structure, looking at one after the other. True once all are chosen.
    fn choose(&mut self) -> Result<bool> {
        let Some(wanted) = self.wanted.get(self.conform.structures.len()) else { return self.finish() };
        let leaves = self.conform.from.leaves();
        let leaf = wanted.leaves.start + self.choosing.looked;
        // A leaf that is read anyway costs nothing; of the others one below few lists has few entries.
        let is_read = self.place_of.get(leaf).is_some_and(Option::is_some) && wanted.leaves.contains(&leaf);
        if !is_read && leaf < wanted.leaves.end {
            let lists = |leaf: usize| leaves.get(leaf).map_or(0, |leaf| leaf.repetition_max);
            if self.choosing.best.is_none_or(|best| lists(leaf) < lists(best)) {
                self.choosing.best = Some(leaf);
            }
            self.choosing.looked += 1;
            return Ok(false);
        }
        let best = if is_read { Some(leaf) } else { self.choosing.best };
        let leaf = best.ok_or_else(|| Error::internal("a slot without a leaf"))?;
        let mut definition = wanted.map.clone();
        let highest = definition.last().copied().unwrap_or(0);
        let levels = leaves.get(leaf).map_or(0, |leaf| leaf.definition_max);
        definition.resize(usize::from(levels) + 1, highest);
        let repetition = wanted.repetition;
        let read = self.read(leaf);
        self.conform.structures.push(Structure { read, definition: definition.into(), repetition });
        self.choosing = Choosing::default();
        Ok(false)
    }

    fn finish(&mut self) -> Result<bool> {
        let constants = self.constants.iter().map(|(_, physical_type)| *physical_type);
        let constants = constants.collect::<Option<Vec<_>>>();
        let conform = &mut self.conform;
        conform.constants =
            constants.ok_or_else(|| Error::misuse("a constant that is no column of the schema"))?;
        conform.is_identity &= conform.reads.len() == conform.leaves.len();
        Ok(true)
    }
}

/// Maps of levels that are compared with the next one.
const MAPS_SHARED: usize = 4;

/// Whether variants are shredded alike: the same fields of the same types. Found out in steps.
#[derive(Debug)]
struct Alike {
    walks: [Walk; 2],
    /// Of what is around the next fields, whether it is a struct.
    open: Vec<bool>,
}

impl Alike {
    fn new(from: Shape<'_>, to: Shape<'_>) -> Alike {
        Alike { walks: [Walk::of(from), Walk::of(to)], open: Vec::new() }
    }

    /// Compares a field; `None` until it is known.
    fn step(&mut self, from: &Schema, to: &Schema) -> Result<Option<bool>> {
        let [one, other] = &mut self.walks;
        Ok(match (one.next(from, None)?, other.next(to, None)?) {
            (None, None) => Some(true),
            (Some(Visit::End), Some(Visit::End)) => {
                self.open.pop();
                None
            }
            (Some(Visit::Field(one, holds)), Some(Visit::Field(other, other_holds))) => {
                let is_named = self.open.last() == Some(&true);
                let name = |shape: Shape<'_>| shape.schema().nodes()[shape.node].name.clone();
                let is_alike = match (holds, other_holds) {
                    (Holds::Leaf, Holds::Leaf) => type_of(one) == type_of(other),
                    (Holds::Struct, Holds::Struct) | (Holds::List(_), Holds::List(_)) => {
                        self.open.push(matches!(holds, Holds::Struct));
                        true
                    }
                    _ => false,
                };
                (!is_alike || is_named && name(one) != name(other)).then_some(false)
            }
            _ => Some(false),
        })
    }
}

/// The type of a leaf.
fn type_of(shape: Shape<'_>) -> Option<LeafType> {
    LeafType::of(shape.schema(), shape.leaves().start)
}

fn is_leaf(shape: Shape<'_>) -> bool {
    matches!(shape.kind(), Ok(ShapeKind::Leaf))
}

fn is_variant(logical_type: Option<&LogicalType>) -> bool {
    matches!(logical_type, Some(LogicalType::Variant { .. }))
}

/// An error about a field of the other schema.
fn wrong(to: Shape<'_>, what: String) -> Error {
    let path = to.schema().path(to.node);
    Error::new(ErrorKind::Conversion, format!("the column {path:?} {what}"))
        .at(|place| place.column = Some(path))
}

fn clash(from: Shape<'_>, to: Shape<'_>) -> Error {
    match (describe(from), describe(to)) {
        (Ok(one), Ok(other)) => wrong(to, format!("is {one} in the file, which cannot be read as {other}")),
        (Err(error), _) | (_, Err(error)) => error,
    }
}

fn clash_of_variants(field: Option<Shape<'_>>) -> Error {
    match field {
        Some(field) => wrong(field, "is of a variant that is shredded otherwise in the file".into()),
        None => Error::misuse("a variant of nothing"),
    }
}

fn describe(shape: Shape<'_>) -> Result<String> {
    Ok(match shape.kind()? {
        ShapeKind::Leaf => match LeafType::of(shape.schema(), shape.leaves().start) {
            Some(leaf) => leaf.describe(),
            None => "a leaf".into(),
        },
        ShapeKind::Struct(_) => match &shape.schema().nodes()[shape.node].logical_type {
            Some(logical) => format!("a group {logical}"),
            None => "a group".into(),
        },
        ShapeKind::List(..) => "a list".into(),
        ShapeKind::Map(_, _, Some(_)) => "a map".into(),
        ShapeKind::Map(_, _, None) => "a map without values".into(),
    })
}

fn level(level: u16) -> Result<u8> {
    u8::try_from(level).map_err(|_| Error::too_large("more than 255 levels of nesting"))
}
