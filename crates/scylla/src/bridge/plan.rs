//! Maps nested columns to lists, sets, maps and user-defined types.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::num::NonZeroU32;

use marquetry_base::{Detail, Error, Faults, Result, cast};
use marquetry_parquet::schema::{Leaf, LogicalType, NodeKind, Schema, Shape, ShapeKind};

use super::MappingOptions;
use super::convert::Conversion;
use super::leaf::LeafPlan;
use super::list::list;
use crate::cql::types::NESTING_MAX;
use crate::cql::{CqlType, Name, TableName, TypeDef};

/// A nested column, and how it is mapped.
#[derive(Debug, Clone)]
pub(super) struct NestedColumn {
    /// Its node in the schema.
    pub(super) node: usize,
    pub(super) plan: Plan,
    /// The leaves below it, in the schema's order.
    pub(super) leaves: Vec<usize>,
}

/// What a field is mapped to.
#[derive(Debug, Clone)]
pub(super) enum Plan {
    Leaf(LeafPlan),
    /// A VARIANT, as JSON.
    Variant,
    List(Box<Plan>),
    Set(Box<Plan>),
    /// Of so many elements, and whether all values of their type have one length.
    Vector(Box<Plan>, usize, bool),
    /// Of keys and values.
    Map(Box<Plan>, Box<Plan>),
    /// Of all the type's fields, in its order.
    Udt(Vec<Field>),
    /// Of all the type's members, in its order.
    Tuple(Vec<Field>),
    /// Of months, days and nanoseconds.
    Duration([Part; 3]),
}

/// A field of a user-defined type, or a member of a tuple.
#[derive(Debug, Clone)]
pub(super) struct Field {
    /// Of a tuple: that of the group's field.
    pub(super) name: Name,
    /// The name as written in a literal, followed by a colon and a space. Of a tuple: nothing.
    pub(super) label: Vec<u8>,
    /// Its index among the fields of the group. `None`: the group lacks it.
    pub(super) source: Option<(usize, Plan)>,
}

/// A part of a duration.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// Its index among the fields of the group.
    pub(super) at: usize,
    pub(super) leaf: LeafPlan,
}

impl Plan {
    /// Whether it contains a duration.
    pub(super) fn has_duration(&self) -> bool {
        match self {
            Plan::Leaf(leaf) => leaf.cql_type() == CqlType::Duration,
            Plan::Variant => false,
            Plan::Duration(_) => true,
            Plan::List(element) | Plan::Set(element) | Plan::Vector(element, ..) => element.has_duration(),
            Plan::Map(key, value) => key.has_duration() || value.has_duration(),
            Plan::Udt(fields) | Plan::Tuple(fields) => {
                fields.iter().filter_map(|field| field.source.as_ref()).any(|(_, plan)| plan.has_duration())
            }
        }
    }
}

/// Plans the nested columns of a table, one after the other.
#[derive(Debug)]
pub(super) struct Planner<'a> {
    schema: &'a Schema,
    options: &'a MappingOptions,
    table: &'a TableName,
    /// The paths of [`MappingOptions::sets`] and whether each was found.
    sets: BTreeMap<String, usize>,
    found: Vec<bool>,
    /// The paths of lists, if sets are requested.
    lists: Vec<String>,
    existing: BTreeMap<&'a Name, &'a TypeDef>,
    existing_columns: BTreeMap<&'a Name, &'a CqlType>,
    /// The types' names, and how many there are with each.
    type_names: BTreeMap<String, usize>,
    types: Vec<TypeDef>,
    leaves: Vec<(String, LogicalType)>,
    faults: Faults,
    /// The columns that the existing table lacks.
    missing: Vec<String>,
    /// Some parts were given up.
    is_partial: bool,
    /// The path of the current field: names joined with dots.
    path: String,
    /// Lists that it is in, below the last name.
    elements: usize,
}

/// What a planner has found in all columns.
#[derive(Debug)]
pub(super) struct Planned {
    /// The types, each before those that need it.
    pub(super) types: Vec<TypeDef>,
    /// The paths of leaves and variants with a logical type.
    pub(super) leaves: Vec<(String, LogicalType)>,
}

/// Maximum characters of a type's name, without the number that may be appended: as many as a table's name may have.
const TYPE_CHARS_MAX: usize = 192;

impl<'a> Planner<'a> {
    pub(super) fn new(schema: &'a Schema, options: &'a MappingOptions, table: &'a TableName) -> Planner<'a> {
        let mut sets = BTreeMap::new();
        // The path itself, and in lower case if no other path is that.
        for (at, path) in options.sets.iter().enumerate() {
            sets.insert(path.clone(), at);
        }
        for (at, path) in options.sets.iter().enumerate() {
            sets.entry(path.to_ascii_lowercase()).or_insert(at);
        }
        let existing = options.existing.as_ref();
        Planner {
            schema,
            options,
            table,
            sets,
            found: alloc::vec![false; options.sets.len()],
            lists: Vec::new(),
            existing: existing.iter().flat_map(|it| &it.types).map(|it| (&it.name, it)).collect(),
            existing_columns: existing
                .iter()
                .flat_map(|it| &it.columns)
                .map(|(name, cql_type)| (name, cql_type))
                .collect(),
            type_names: BTreeMap::new(),
            types: Vec::new(),
            leaves: Vec::new(),
            faults: Faults::default(),
            missing: Vec::new(),
            is_partial: false,
            path: String::new(),
            elements: 0,
        }
    }

    /// Plans a flat column, and records its logical type. What an existing table's column cannot hold is an error in the end.
    pub(super) fn flat(&mut self, name: &Name, logical_type: Option<&LogicalType>, leaf: &Leaf) -> LeafPlan {
        let noted = logical_type.map(|logical_type| (name.as_str().to_string(), logical_type.clone()));
        self.leaves.extend(noted);
        self.enter(name);
        let wanted = self.wanted(name);
        self.leaf_plan(leaf, unfrozen(wanted))
    }

    /// Notes the column of row numbers.
    pub(super) fn row_number(&mut self, name: &Name) {
        self.enter(name);
        if let Some(wanted) = self.wanted(name) {
            self.expect(unfrozen(Some(wanted)), CqlType::Bigint);
        }
    }

    /// Plans a nested column, a child of the root. `None` if that fails; [`Planner::finish`] reports why, with the
    /// path. The errors are those of [`Shape::kind`]; `Unsupported` for a group without fields, and for collections
    /// more than 32 deep; `Conversion` for what CQL does not allow: a field's name, two fields with the same name, a
    /// duration in a set or as a key, and what the existing table's types cannot hold.
    pub(super) fn column(&mut self, node: usize, name: &Name) -> Option<(NestedColumn, CqlType)> {
        self.enter(name);
        match self.try_column(node, name) {
            Ok(planned) => Some(planned),
            Err(error) => {
                self.give_up(error);
                None
            }
        }
    }

    fn try_column(&mut self, node: usize, name: &Name) -> Result<(NestedColumn, CqlType)> {
        let shape = self.schema.shape(node);
        let wanted = self.wanted(name);
        let (plan, mut cql_type) = self.field(shape, &mut alloc::vec![self.name_of(shape)], wanted, 0)?;
        if let Some(wanted) = wanted {
            cql_type = wanted.clone();
        } else if self.options.frozen {
            cql_type = cql_type.frozen();
        }
        Ok((NestedColumn { node, plan, leaves: shape.leaves().collect() }, cql_type))
    }

    /// The result, once all columns are planned. Adds `Misuse` for paths in [`MappingOptions::sets`] that are not
    /// lists.
    pub(super) fn finish(self, faults: &mut Faults) -> Planned {
        if !self.missing.is_empty() {
            faults.add(Error::conversion(format!("missing from the table: {}", list(&self.missing))));
        }
        faults.append(self.faults);
        // The list may be in a part that was given up.
        if !self.is_partial {
            for (path, _) in self.options.sets.iter().zip(&self.found).filter(|(_, found)| !**found) {
                faults.add(Error::misuse(format!(
                    "{path:?} is to be a set, but no list is called so; there are {}",
                    list(&self.lists)
                )));
            }
        }
        Planned { types: self.types, leaves: self.leaves }
    }

    /// Begins a column.
    fn enter(&mut self, name: &Name) {
        self.path.clear();
        self.path.push_str(name.as_str());
        self.elements = 0;
    }

    /// The type of a column in the existing table. If the table lacks it, that is an error in the end.
    fn wanted(&mut self, name: &Name) -> Option<&'a CqlType> {
        self.options.existing.as_ref()?;
        let wanted = self.existing_columns.get(name).copied();
        if wanted.is_none() {
            self.missing.push(name.to_string());
        }
        wanted
    }

    /// Records why a part cannot be planned. Planning continues, to find further errors.
    fn give_up(&mut self, error: Error) {
        self.is_partial = true;
        self.faults.add(error);
    }

    /// Plans a field. `names` are the names down to it, its own included; `depth` is how deep its type is nested in
    /// another's text. It recurses as deep as schemas with shapes are.
    fn field(
        &mut self,
        shape: Shape<'a>,
        names: &mut Vec<&'a str>,
        wanted: Option<&'a CqlType>,
        depth: usize,
    ) -> Result<(Plan, CqlType)> {
        if depth > NESTING_MAX {
            let message = format!(
                "types more than {NESTING_MAX} deep in each other, with what is frozen counted twice"
            );
            return Err(self.at(Error::unsupported(message)));
        }
        let wanted = unfrozen(wanted);
        match shape.kind()? {
            ShapeKind::Leaf => self.leaf(shape, wanted),
            ShapeKind::Struct(_) if self.is_variant(shape) => {
                self.note(shape);
                Ok((Plan::Variant, self.expect(wanted, CqlType::Text)))
            }
            ShapeKind::Struct(fields) => self.group(&fields.collect::<Vec<_>>(), names, wanted, depth),
            ShapeKind::List(_, element) => match wanted {
                Some(CqlType::Vector(wanted, length)) => self.vector(element, names, wanted, *length, depth),
                _ => self.list(shape, element, false, names, wanted, depth),
            },
            ShapeKind::Map(_, key, None) => self.list(shape, key, true, names, wanted, depth),
            ShapeKind::Map(_, key, Some(value)) => {
                let (wanted_key, wanted_value) = match wanted {
                    None => (None, None),
                    Some(CqlType::Map(key, value)) => (Some(&**key), Some(&**value)),
                    Some(other) => return Err(self.misfit(other, "a map")),
                };
                let (key, key_type) = self.below("key", names, |it, names| {
                    let (key, key_type) = it.field(key, names, wanted_key, depth + 2)?;
                    it.refuse_duration(&key_type, "as the key of a map")?;
                    Ok((key, key_type))
                })?;
                let (value, value_type) =
                    self.below("value", names, |it, names| it.field(value, names, wanted_value, depth + 2))?;
                let plan = Plan::Map(Box::new(key), Box::new(value));
                Ok((plan, CqlType::Map(Box::new(key_type), Box::new(value_type))))
            }
        }
    }

    fn leaf(&mut self, shape: Shape<'a>, wanted: Option<&CqlType>) -> Result<(Plan, CqlType)> {
        let leaf = self.schema.nodes().get(shape.node).and_then(|node| match node.kind {
            NodeKind::Leaf { leaf } => self.schema.leaves().get(leaf),
            NodeKind::Group { .. } => None,
        });
        let Some(leaf) = leaf else {
            return Err(Error::internal("a leaf that the schema does not have"));
        };
        self.note(shape);
        let planned = self.leaf_plan(leaf, wanted);
        Ok((Plan::Leaf(planned), planned.cql_type()))
    }

    /// How a leaf's values become those of the existing table's type, if there is one. It is an error in the end if none of them can.
    fn leaf_plan(&mut self, leaf: &Leaf, wanted: Option<&CqlType>) -> LeafPlan {
        if let Some(planned) = LeafPlan::of(self.schema, leaf, self.options, wanted) {
            return planned;
        }
        let own = Conversion::of(self.schema, leaf, self.options);
        self.expect(wanted, own.cql_type());
        LeafPlan { conversion: own, cast: None }
    }

    /// A list, or a map's keys alone.
    fn list(
        &mut self,
        shape: Shape<'a>,
        element: Shape<'a>,
        is_keys: bool,
        names: &mut Vec<&'a str>,
        wanted: Option<&'a CqlType>,
        depth: usize,
    ) -> Result<(Plan, CqlType)> {
        let is_named = self.take_set(shape, names);
        let (is_set, wanted) = match wanted {
            None => (is_keys || is_named, None),
            Some(CqlType::Set(element)) => (true, Some(&**element)),
            Some(CqlType::List(element)) => (false, Some(&**element)),
            Some(other) => return Err(self.misfit(other, if is_keys { "a set" } else { "a list" })),
        };
        // Types are named after names that a person chose: elements have none.
        let length = self.path.len();
        self.path.push_str(if is_keys { ".key" } else { ".element" });
        self.elements += 1;
        let (element, cql_type) = self.field(element, names, wanted, depth + 2)?;
        self.elements -= 1;
        if is_set {
            self.refuse_duration(&cql_type, "in a set")?;
        }
        self.path.truncate(length);
        let (element, cql_type) = (Box::new(element), Box::new(cql_type));
        Ok(if is_set {
            (Plan::Set(element), CqlType::Set(cql_type))
        } else {
            (Plan::List(element), CqlType::List(cql_type))
        })
    }

    /// A list that becomes a vector.
    fn vector(
        &mut self,
        element: Shape<'a>,
        names: &mut Vec<&'a str>,
        wanted: &'a CqlType,
        length: NonZeroU32,
        depth: usize,
    ) -> Result<(Plan, CqlType)> {
        let before = self.path.len();
        self.path.push_str(".element");
        self.elements += 1;
        let planned = self.field(element, names, Some(wanted), depth + 1);
        self.elements -= 1;
        let (plan, cql_type) = planned?;
        self.path.truncate(before);
        let elements = cast::usize_of_u32(length.get());
        let is_sized = wanted.fixed_bytes().is_some();
        Ok((Plan::Vector(Box::new(plan), elements, is_sized), CqlType::Vector(Box::new(cql_type), length)))
    }

    fn group(
        &mut self,
        fields: &[Shape<'a>],
        names: &mut Vec<&'a str>,
        wanted: Option<&'a CqlType>,
        depth: usize,
    ) -> Result<(Plan, CqlType)> {
        // Before all that is wrong with it as a group, which its fields may be.
        if let Some(map @ CqlType::Map(..)) = wanted {
            return Err(self.misfit(map, "a group"));
        }
        if fields.is_empty() {
            return Err(
                self.at(Error::unsupported("a group without fields, of which no column tells anything"))
            );
        }
        let mut named = BTreeMap::new();
        for (at, &field) in fields.iter().enumerate() {
            let text: &'a str = match self.schema.nodes().get(field.node) {
                Some(node) => &node.name,
                None => return Err(Error::internal("a field that the schema does not have")),
            };
            let name = Name::new(text).map_err(|error| {
                let message = format!("CQL cannot have the name of field {} of the group: {error}", at + 1);
                self.at(Error::conversion(message))
            })?;
            if named.insert(name.clone(), at).is_some() {
                let message = format!("two fields of the group are called {text:?}");
                return Err(self.at(Error::conversion(message)));
            }
        }
        match wanted {
            None => self.new_type(fields, names),
            Some(CqlType::Udt { name, .. }) => self.existing_type(name, fields, &named, names),
            Some(CqlType::Tuple(members)) => self.tuple(members, fields, names, depth),
            Some(CqlType::Duration) => self.duration(fields),
            Some(other) => Err(self.misfit(other, "a group")),
        }
    }

    fn new_type(&mut self, fields: &[Shape<'a>], names: &mut Vec<&'a str>) -> Result<(Plan, CqlType)> {
        let name = self.type_name(names)?;
        let mut planned = Vec::with_capacity(fields.len());
        let mut types = Vec::with_capacity(fields.len());
        for (at, &field) in fields.iter().enumerate() {
            let text = self.name_of(field);
            let field_plan = self.below(text, names, |it, names| it.field(field, names, None, 1));
            let (plan, cql_type) = field_plan.unwrap_or_else(|error| {
                self.give_up(error);
                (Plan::Leaf(LeafPlan::NOTHING), CqlType::Blob)
            });
            let name = Name::new(text).map_err(|error| Error::conversion(error.to_string()))?;
            let label = format!("{name}: ").into_bytes();
            types.push((name.clone(), cql_type));
            planned.push(Field { name, label, source: Some((at, plan)) });
        }
        let keyspace = self.table.keyspace.clone();
        self.types.push(TypeDef { keyspace, name: name.clone(), if_not_exists: false, fields: types });
        Ok((Plan::Udt(planned), CqlType::Udt { keyspace: None, name }))
    }

    /// The fields of an existing type, found by name.
    fn existing_type(
        &mut self,
        name: &'a Name,
        fields: &[Shape<'a>],
        named: &BTreeMap<Name, usize>,
        names: &mut Vec<&'a str>,
    ) -> Result<(Plan, CqlType)> {
        let Some(found) = self.existing.get(name).copied() else {
            return Err(self.at(Error::conversion(format!("the keyspace does not have the type {name}"))));
        };
        let has: BTreeSet<&Name> = found.fields.iter().map(|(name, _)| name).collect();
        for missing in named.keys().filter(|name| !has.contains(name)) {
            let message = format!("the type {name} of the table has no field {missing}");
            self.give_up(self.at(Error::conversion(message)));
        }
        let mut planned = Vec::with_capacity(found.fields.len());
        for (field, cql_type) in &found.fields {
            let label = format!("{field}: ").into_bytes();
            let source = match named.get(field).and_then(|&at| Some((at, *fields.get(at)?))) {
                Some((at, shape)) => {
                    let text = self.name_of(shape);
                    let field_plan =
                        self.below(text, names, |it, names| it.field(shape, names, Some(cql_type), 1));
                    let field_plan = field_plan.map_err(|error| self.give_up(error)).ok();
                    field_plan.map(|(plan, _)| (at, plan))
                }
                None => None,
            };
            planned.push(Field { name: field.clone(), label, source });
        }
        // Several columns may have the same type.
        if self.type_names.insert(name.as_str().to_string(), 1).is_none() {
            self.types.push(found.clone());
        }
        Ok((Plan::Udt(planned), CqlType::Udt { keyspace: None, name: name.clone() }))
    }

    /// The members of an existing column's tuple, found by number: those that the group lacks at its end are null.
    fn tuple(
        &mut self,
        members: &'a [CqlType],
        fields: &[Shape<'a>],
        names: &mut Vec<&'a str>,
        depth: usize,
    ) -> Result<(Plan, CqlType)> {
        let mut numbered: Vec<Option<Shape<'a>>> = alloc::vec![None; members.len()];
        let mut ats = alloc::vec![0; members.len()];
        for (at, &field) in fields.iter().enumerate() {
            let name = self.name_of(field);
            match member_number(name).and_then(|number| Some((number, numbered.get_mut(number)?))) {
                Some((number, slot)) => {
                    *slot = Some(field);
                    ats[number] = at;
                }
                None => {
                    let message = format!(
                        "the table has {} there, whose members are called _0 to _{}; the group has a field {name:?}",
                        CqlType::Tuple(members.to_vec()),
                        members.len().saturating_sub(1)
                    );
                    self.give_up(self.at(Error::conversion(message)));
                }
            }
        }
        let mut planned = Vec::with_capacity(members.len());
        for (number, (member, shape)) in members.iter().zip(&numbered).enumerate() {
            let name =
                Name::new(&format!("_{number}")).map_err(|error| Error::conversion(error.to_string()))?;
            let source = match shape {
                Some(shape) => {
                    let text = self.name_of(*shape);
                    let plan =
                        self.below(text, names, |it, names| it.field(*shape, names, Some(member), depth + 2));
                    plan.map_err(|error| self.give_up(error)).ok().map(|(plan, _)| (ats[number], plan))
                }
                // Other programs count from one: that is not to be one member off.
                None if numbered.iter().skip(number).any(Option::is_some) => {
                    let message = format!("the group lacks _{number}, and has members of a tuple after it");
                    return Err(self.at(Error::conversion(message)));
                }
                None => None,
            };
            planned.push(Field { name, label: Vec::new(), source });
        }
        Ok((Plan::Tuple(planned), CqlType::Tuple(members.to_vec())))
    }

    /// A group of months, days and nanoseconds.
    fn duration(&mut self, fields: &[Shape<'a>]) -> Result<(Plan, CqlType)> {
        let mut parts = [("months", CqlType::Int), ("days", CqlType::Int), ("nanoseconds", CqlType::Bigint)]
            .map(|(name, cql_type)| (name, cql_type, None));
        for (at, &field) in fields.iter().enumerate() {
            let name = self.name_of(field);
            let leaf = match self.schema.nodes().get(field.node).map(|node| &node.kind) {
                Some(NodeKind::Leaf { leaf }) => self.schema.leaves().get(*leaf),
                _ => None,
            };
            let part = parts.iter_mut().find(|part| part.0 == name);
            let planned = part.zip(leaf).and_then(|(part, leaf)| {
                let planned = LeafPlan::of(self.schema, leaf, self.options, Some(&part.1))?;
                planned.conversion.is_integer().then(|| part.2 = Some((at, planned)))
            });
            if planned.is_none() {
                return Err(self.misfit(&CqlType::Duration, "a group"));
            }
        }
        let part = |at: usize| {
            let (name, _, found) = &parts[at];
            let (at, leaf) = (*found)?;
            Some(Part { name, at, leaf })
        };
        match (part(0), part(1), part(2)) {
            (Some(months), Some(days), Some(nanos)) => {
                Ok((Plan::Duration([months, days, nanos]), CqlType::Duration))
            }
            _ => Err(self.misfit(&CqlType::Duration, "a group")),
        }
    }

    /// A unique name for a group's type: the table's name and those of the columns and fields down to it.
    ///
    /// It needs no quotes, even if those do: some drivers fail on a keyspace with a quoted type inside another.
    fn type_name(&mut self, names: &[&str]) -> Result<Name> {
        let mut text = String::new();
        for name in core::iter::once(self.table.table.as_str()).chain(names.iter().copied()) {
            text.push_str(if text.is_empty() { "" } else { "_" });
            let letters = name.chars().take(TYPE_CHARS_MAX).map(|c| c.to_ascii_lowercase());
            text.extend(letters.map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }));
        }
        if !text.starts_with(|c: char| c.is_ascii_lowercase()) {
            text.insert(0, 't');
        }
        text.truncate(TYPE_CHARS_MAX);
        loop {
            let count = self.type_names.entry(text.clone()).or_insert(0);
            *count += 1;
            if *count == 1 {
                break;
            }
            // That name may be taken, too: then counting continues.
            text = format!("{text}_{count}");
        }
        Name::new_type(&text).map_err(|error| self.at(Error::conversion(error.to_string())))
    }

    fn name_of(&self, shape: Shape<'a>) -> &'a str {
        self.schema.nodes().get(shape.node).map_or("", |node| &node.name)
    }

    fn is_variant(&self, shape: Shape<'a>) -> bool {
        let node = self.schema.nodes().get(shape.node);
        node.is_some_and(|node| matches!(node.logical_type, Some(LogicalType::Variant { .. })))
    }

    /// Runs `plan` one name deeper.
    fn below<T>(
        &mut self,
        name: &'a str,
        names: &mut Vec<&'a str>,
        plan: impl FnOnce(&mut Planner<'a>, &mut Vec<&'a str>) -> Result<T>,
    ) -> Result<T> {
        let length = self.path.len();
        self.path.push('.');
        self.path.push_str(name);
        names.push(name);
        let elements = core::mem::take(&mut self.elements);
        let planned = plan(self, names);
        self.elements = elements;
        names.pop();
        self.path.truncate(length);
        planned
    }

    /// Whether a list becomes a set.
    fn take_set(&mut self, shape: Shape<'a>, names: &[&str]) -> bool {
        if self.sets.is_empty() {
            return false;
        }
        self.lists.push(self.path.clone());
        // Without `element` before the names of fields; with it; and as in the file.
        let short = names.join(".") + &".element".repeat(self.elements);
        let in_file = self.schema.path(shape.node);
        let mut is_set = false;
        for path in [&short, &self.path, &in_file] {
            if let Some(found) = self.sets.get(path).and_then(|&at| self.found.get_mut(at)) {
                (*found, is_set) = (true, true);
            }
        }
        is_set
    }

    fn note(&mut self, shape: Shape<'a>) {
        let logical_type = self.schema.nodes().get(shape.node).and_then(|node| node.logical_type.as_ref());
        if let Some(logical_type) = logical_type {
            self.leaves.push((self.path.clone(), logical_type.clone()));
        }
    }

    /// Records an error if the existing table's column does not have this type.
    fn expect(&mut self, wanted: Option<&CqlType>, found: CqlType) -> CqlType {
        if let Some(wanted) = wanted.filter(|wanted| **wanted != found) {
            self.faults.add(self.misfit(wanted, &found.to_string()));
        }
        found
    }

    /// CQL refuses durations there, because they have no order. (It allows them inside other types there.)
    fn refuse_duration(&self, cql_type: &CqlType, place: &str) -> Result<()> {
        if *cql_type == CqlType::Duration {
            return Err(self.at(Error::conversion(format!("CQL allows no duration {place}"))));
        }
        Ok(())
    }

    #[cold]
    fn misfit(&self, table: &CqlType, values: &str) -> Error {
        let message = format!("the table has {table} there, the values are {values}");
        // Whoever wants their usual text can ask for it, and say what integers count.
        let is_count = matches!(table, CqlType::Timestamp)
            && matches!(values, "tinyint" | "smallint" | "int" | "bigint");
        let is_text = matches!(table, CqlType::Text | CqlType::Ascii) && CqlType::parse(values).is_ok();
        let is_group = values == "a group";
        let is_map = matches!(table, CqlType::Map(..)) && is_group;
        let error = if matches!(table, CqlType::Duration) && is_group {
            Error::conversion(format!("{message} of others than months, days and nanoseconds"))
        } else if is_map {
            Error::conversion(format!("{message}: the objects of JSON are maps where their type says so"))
        } else if is_count {
            let units =
                "timestamp is of milliseconds, timestamp(6) of microseconds, timestamp(9) of nanoseconds";
            Error::conversion(format!("{message}, which do not say their unit: {units}"))
        } else {
            Error::conversion(message)
        };
        self.at(if is_text || is_count || is_map {
            error.with(Detail::AdmittedBy(&["types"]))
        } else {
            error
        })
    }

    #[cold]
    fn at(&self, error: Error) -> Error {
        error.at(|place| place.column = Some(self.path.clone()))
    }
}

/// The number of a tuple's member, by the name that it has in a group.
fn member_number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix('_')?;
    let number = digits.parse().ok()?;
    // As it is printed, and nothing else that parses.
    (format!("{number}") == digits).then_some(number)
}

fn unfrozen(mut cql_type: Option<&CqlType>) -> Option<&CqlType> {
    while let Some(CqlType::Frozen(inner)) = cql_type {
        cql_type = Some(&**inner);
    }
    cql_type
}
