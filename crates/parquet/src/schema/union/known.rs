//! The fields that a union knows.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Result, Segmented};

use super::super::field::{Field, FieldKind};
use super::super::names::NAME_PRICE;
use super::super::walk::{Holds, Visit, Walk};
use super::super::widen::LeafType;
use super::super::{ConvertedType, LogicalType, PhysicalType, Schema, Shape};
use super::difference::DifferenceKind;

/// The fields that a union knows, with the root, which is a struct, first.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) entries: Segmented<Entry>,
}

/// No entry.
pub(super) const NONE: usize = usize::MAX;

/// A field.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Arc<str>,
    /// As [`Node::is_numbered`](super::super::Node::is_numbered), in all sources that have it.
    is_numbered: bool,
    pub(super) field_id: Option<i32>,
    pub(super) is_nullable: bool,
    pub(super) logical_type: Option<LogicalType>,
    converted_type: Option<ConvertedType>,
    is_older_only: bool,
    pub(super) kind: KnownKind,
    /// The next field of the struct around it.
    pub(super) next: usize,
    /// The first and the last source that have it.
    pub(super) first: usize,
    pub(super) last: usize,
    /// A source that has the struct around it, but not the field.
    pub(super) without: Option<usize>,
    /// The source whose type differed last, and its type.
    typed: Option<(usize, String)>,
    pub(super) widened: Option<DifferenceKind>,
    pub(super) wrong: Option<DifferenceKind>,
}

/// What an [`Entry`] holds.
#[derive(Debug)]
pub(super) enum KnownKind {
    Leaf(PhysicalType),
    Struct(Group),
    /// Its element.
    List(usize),
    /// Its key, its value, and whether it has values.
    Map([usize; 2], bool),
}

/// The fields of a struct, and an index of their names.
#[derive(Debug)]
pub(super) struct Group {
    first: usize,
    last_field: usize,
    by_name: BTreeMap<Arc<str>, usize>,
    /// The last source that has the struct.
    last: Option<usize>,
}

/// What becomes of what is in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Joined {
    /// It is joined to what is known.
    Known,
    /// No other source has it.
    New,
    /// It is passed over.
    Passed,
}

impl Group {
    const EMPTY: Group = Group { first: NONE, last_field: NONE, by_name: BTreeMap::new(), last: None };
}

impl Known {
    /// The root alone.
    pub(super) fn new() -> Known {
        let mut root = Entry::new("".into(), 0);
        root.kind = KnownKind::Struct(Group::EMPTY);
        Known { entries: Segmented::from_iter([root]) }
    }

    /// A source has this struct. Returns the last that had it before.
    pub(super) fn enter_struct(&mut self, entry: usize, source: usize) -> Option<usize> {
        match &mut self.entries[entry].kind {
            KnownKind::Struct(group) => group.last.replace(source),
            _ => None,
        }
    }

    /// The last source that has this struct; `None` for another kind.
    pub(super) fn last_of(&self, entry: usize) -> Option<usize> {
        match &self.entries[entry].kind {
            KnownKind::Struct(group) => group.last,
            _ => None,
        }
    }

    /// The first field in a struct, a list's element, a map's key.
    pub(super) fn first_in(&self, entry: usize) -> usize {
        match &self.entries[entry].kind {
            KnownKind::Leaf(_) => NONE,
            KnownKind::Struct(group) => group.first,
            KnownKind::List(element) => *element,
            KnownKind::Map([key, _], _) => *key,
        }
    }

    /// The field of a struct with this name.
    pub(super) fn find(&self, entry: usize, name: &str, budget: &mut Budget<'_>) -> Option<usize> {
        let KnownKind::Struct(group) = &self.entries[entry].kind else { return None };
        let compared = usize_of_u32(group.by_name.len().max(1).ilog2()) + 2;
        budget.charge(NAME_PRICE, name.len().saturating_mul(compared), compared);
        group.by_name.get(name).copied()
    }

    /// Adds a field to a struct.
    pub(super) fn add_to_struct(&mut self, around: usize, name: &str, source: usize) -> usize {
        let (at, name) = (self.entries.len(), Arc::<str>::from(name));
        let mut before = NONE;
        if let KnownKind::Struct(group) = &mut self.entries[around].kind {
            group.by_name.insert(Arc::clone(&name), at);
            before = core::mem::replace(&mut group.last_field, at);
            if before == NONE {
                group.first = at;
            }
        }
        if let Some(before) = self.entries.get_mut(before) {
            before.next = at;
        }
        self.entries.push(Entry::new(name, source));
        at
    }

    /// The entry of a list's element, a map's key or value, by its place from 1 on; and whether it was known before.
    pub(super) fn add_to_list(
        &mut self,
        around: usize,
        place: usize,
        name: &str,
        source: usize,
    ) -> (usize, bool) {
        let (at, mut before) = (self.entries.len(), NONE);
        let slot = match &mut self.entries[around].kind {
            KnownKind::Map([key, value], _) if place > 1 => {
                before = *key;
                value
            }
            KnownKind::List(first) | KnownKind::Map([first, _], _) => first,
            KnownKind::Leaf(_) | KnownKind::Struct(_) => return (around, true),
        };
        if *slot != NONE {
            return (*slot, true);
        }
        *slot = at;
        if let Some(before) = self.entries.get_mut(before) {
            before.next = at;
        }
        self.entries.push(Entry::new(name.into(), source));
        (at, false)
    }

    /// Makes a variant one that is not shredded (`VariantEncoding.md`).
    pub(super) fn unshred(&mut self, entry: usize, source: usize) {
        self.entries[entry].kind = KnownKind::Struct(Group { last: Some(source), ..Group::EMPTY });
        for name in ["metadata", "value"] {
            let at = self.add_to_struct(entry, name, source);
            self.entries[at].kind = KnownKind::Leaf(PhysicalType::ByteArray);
        }
    }

    /// Joins a source's field to the one of the same name and place.
    pub(super) fn join(
        &mut self,
        entry: usize,
        field: &Field<'_>,
        has_values: bool,
        source: usize,
    ) -> Joined {
        let into = &mut self.entries[entry];
        into.is_nullable |= field.is_nullable;
        into.is_numbered &= field.is_numbered;
        if into.field_id != field.field_id {
            into.field_id = None;
        }
        if into.wrong.is_some() {
            return Joined::Passed;
        }
        match (&mut into.kind, field.kind) {
            (KnownKind::Leaf(physical), FieldKind::Leaf(other)) => {
                let one = LeafType::new(*physical, into.logical_type.as_ref());
                let two = LeafType::new(other, field.logical_type.as_ref());
                // As newer writers have it, if one of them is new.
                into.is_older_only &= field.is_older_only;
                if one == two {
                    if into.converted_type != field.converted_type {
                        into.converted_type = None;
                    }
                    return Joined::Known;
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
                        into.widen(types, source);
                        Joined::Known
                    }
                    None => into.clash(types, source),
                }
            }
            (KnownKind::Struct(_), FieldKind::Struct) => {
                let are_variants = [&into.logical_type, &field.logical_type]
                    .map(|logical| matches!(logical, Some(LogicalType::Variant { .. })));
                if are_variants != [true, true] && into.logical_type != field.logical_type {
                    let types = (describe_group(&into.logical_type), describe_group(&field.logical_type));
                    return into.clash(types, source);
                }
                Joined::Known
            }
            (KnownKind::List(_), FieldKind::List) => Joined::Known,
            (KnownKind::Map(_, with), FieldKind::Map) if *with == has_values => Joined::Known,
            (KnownKind::Map(_, with), FieldKind::Map) => {
                let (map, keys) = ("a map".into(), "a map without values".into());
                let types = if *with { (map, keys) } else { (keys, map) };
                into.clash(types, source)
            }
            (one, other) => {
                let types = (one.describe(&into.logical_type), describe(other, &field.logical_type));
                let is_null = |logical: &Option<LogicalType>| *logical == Some(LogicalType::Unknown);
                if matches!(other, FieldKind::Leaf(_)) && is_null(&field.logical_type) {
                    into.is_nullable = true;
                    into.widen(types, source);
                    Joined::Known
                } else if matches!(one, KnownKind::Leaf(_)) && is_null(&into.logical_type) {
                    into.widen(types, source);
                    // No other source had what is in it.
                    let field_id = into.field_id;
                    into.adopt(field, has_values);
                    (into.is_nullable, into.field_id) = (true, field_id);
                    Joined::New
                } else {
                    into.clash(types, source)
                }
            }
        }
    }

    /// Releases something small. True once nothing is left.
    pub(super) fn release(&mut self) -> bool {
        match self.entries.last_mut() {
            None => true,
            Some(Entry { kind: KnownKind::Struct(group), .. }) if !group.by_name.is_empty() => {
                group.by_name.pop_first();
                false
            }
            Some(_) => {
                self.entries.pop();
                false
            }
        }
    }
}

impl Entry {
    fn new(name: Arc<str>, source: usize) -> Entry {
        Entry {
            name,
            is_numbered: false,
            field_id: None,
            is_nullable: false,
            logical_type: None,
            converted_type: None,
            is_older_only: false,
            kind: KnownKind::Leaf(PhysicalType::Int32),
            next: NONE,
            first: source,
            last: source,
            without: None,
            typed: None,
            widened: None,
            wrong: None,
        }
    }

    /// Makes it what a source's field is, with nothing in it yet.
    pub(super) fn adopt(&mut self, field: &Field<'_>, has_values: bool) {
        (self.field_id, self.is_numbered) = (field.field_id, field.is_numbered);
        self.is_nullable |= field.is_nullable;
        self.logical_type.clone_from(&field.logical_type);
        (self.converted_type, self.is_older_only) = (field.converted_type, field.is_older_only);
        self.kind = match field.kind {
            FieldKind::Leaf(physical_type) => KnownKind::Leaf(physical_type),
            FieldKind::Struct => KnownKind::Struct(Group::EMPTY),
            FieldKind::List => KnownKind::List(NONE),
            FieldKind::Map => KnownKind::Map([NONE; 2], has_values),
        };
    }

    /// It as it is written, and whether it is a leaf.
    pub(super) fn field(&self) -> (Field<'_>, bool) {
        let kind = match &self.kind {
            KnownKind::Leaf(physical_type) => FieldKind::Leaf(*physical_type),
            KnownKind::Struct(_) => FieldKind::Struct,
            KnownKind::List(_) => FieldKind::List,
            KnownKind::Map(..) => FieldKind::Map,
        };
        let field = Field {
            name: &self.name,
            is_numbered: self.is_numbered,
            field_id: self.field_id,
            is_nullable: self.is_nullable,
            logical_type: self.logical_type.clone(),
            converted_type: self.converted_type,
            is_older_only: self.is_older_only,
            kind,
        };
        (field, matches!(kind, FieldKind::Leaf(_)))
    }

    fn widen(&mut self, (one, other): (String, String), source: usize) {
        let one = self.typed.take().unwrap_or((self.first, one));
        self.typed = Some((source, other.clone()));
        self.widened.get_or_insert(DifferenceKind::Widened { one, other: (source, other) });
    }

    fn clash(&mut self, (one, other): (String, String), source: usize) -> Joined {
        let one = self.typed.take().unwrap_or((self.first, one));
        self.wrong.get_or_insert(DifferenceKind::Clash { one, other: (source, other) });
        Joined::Passed
    }
}

impl KnownKind {
    fn describe(&self, logical: &Option<LogicalType>) -> String {
        describe(
            match self {
                KnownKind::Leaf(physical) => FieldKind::Leaf(*physical),
                KnownKind::Struct(_) => FieldKind::Struct,
                KnownKind::List(_) => FieldKind::List,
                KnownKind::Map(..) => FieldKind::Map,
            },
            logical,
        )
    }
}

fn describe(kind: FieldKind, logical: &Option<LogicalType>) -> String {
    match kind {
        FieldKind::Leaf(physical) => LeafType::new(physical, logical.as_ref()).describe(),
        FieldKind::Struct => describe_group(logical),
        FieldKind::List => "a list".into(),
        FieldKind::Map => "a map".into(),
    }
}

fn describe_group(logical: &Option<LogicalType>) -> String {
    match logical {
        Some(logical) => alloc::format!("a group {logical}"),
        None => "a group".into(),
    }
}

/// Whether a source's variant is shredded like the one that is known: the same fields of the same types, in the same
/// order. Found out in steps.
#[derive(Debug)]
pub(super) struct Alike {
    /// The known variant.
    pub(super) entry: usize,
    walk: Walk,
    /// The next field in each known struct or list around it, and whether it is a struct.
    open: Vec<(usize, bool)>,
}

impl Alike {
    pub(super) fn new(variant: Shape<'_>, entry: usize) -> Alike {
        Alike { entry, walk: Walk::of(variant), open: Vec::new() }
    }

    /// Compares a field; `None` until it is known.
    pub(super) fn step(&mut self, schema: &Schema, known: &Known) -> Result<Option<bool>> {
        let visit = self.walk.next(schema, None)?;
        let (at, is_named) = match self.open.last() {
            None => (self.entry, false),
            Some(open) => *open,
        };
        match visit {
            None => return Ok(Some(true)),
            Some(Visit::Skipped) => {}
            Some(Visit::End) => {
                // Of the variant, too: then all are compared.
                let is_all = self.open.is_empty();
                if !is_all && at != NONE {
                    return Ok(Some(false));
                }
                self.open.pop();
                return Ok((is_all || self.open.is_empty()).then_some(true));
            }
            Some(Visit::Field(shape, holds)) => {
                let Some(entry) = known.entries.get(at) else { return Ok(Some(false)) };
                let node = &schema.nodes[shape.node];
                let is_alike = match (&entry.kind, holds) {
                    (KnownKind::Leaf(physical), Holds::Leaf) => {
                        let one = LeafType::new(*physical, entry.logical_type.as_ref());
                        LeafType::of(schema, shape.leaves().start) == Some(one)
                    }
                    (KnownKind::Struct(_), Holds::Struct) => {
                        self.open.is_empty() || entry.logical_type == node.logical_type
                    }
                    (KnownKind::List(_), Holds::List(_)) => true,
                    _ => false,
                };
                if !is_alike || (is_named && *entry.name != *node.name) {
                    return Ok(Some(false));
                }
                if let Some((next, _)) = self.open.last_mut() {
                    *next = entry.next;
                }
                if !matches!(holds, Holds::Leaf) {
                    self.open.push((known.first_in(at), matches!(holds, Holds::Struct)));
                }
            }
        }
        Ok(None)
    }
}
