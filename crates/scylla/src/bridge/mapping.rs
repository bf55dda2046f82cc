//! From a Parquet schema to a CQL table.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Detail, Error, Faults, Limits, Result, cast};
use marquetry_parquet::batch::{Assembler, Batch, ColumnBatch};
use marquetry_parquet::schema::{LogicalType, Node, NodeKind, Schema, TimeUnit};

use super::batch::{Assembling, MappedBatch, MappedValues};
use super::convert::Conversion;
use super::leaf::LeafPlan;
use super::list::list;
use super::plan::{NestedColumn, Planner};
use super::render::Rules;
use super::value::Value;
use super::{DuplicateKeys, MappingOptions, NullElements, Nulls};
use crate::cql::ddl::KeyError;
use crate::cql::{ColumnDef, CqlType, Name, Order, TableDef, TableName, TypeDef};

/// What a column of a batch costs, besides what its assembler does.
const COLUMN_UNITS: u64 = 100;

/// How the columns of a Parquet file become the columns of a CQL table.
///
/// Files of one table have a mapping each, because the same column may be a different leaf in each; the table is the
/// same when [`Mapping::table`] is equal.
#[derive(Debug, Clone)]
pub struct Mapping {
    table: TableDef,
    types: Vec<TypeDef>,
    columns: Vec<MappedColumn>,
    plans: Vec<ColumnPlan>,
    /// Of each column whether it is static; empty if none is.
    statics: Vec<bool>,
    nulls: Nulls,
    null_elements: NullElements,
    duplicate_keys: DuplicateKeys,
    /// If there are variants.
    schema: Arc<Schema>,
    limits: Limits,
}

/// A column of the table, and where its values come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedColumn {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub cql_type: CqlType,
    /// Where its values come from.
    pub source: ColumnSource,
    /// Whether it is in the primary key.
    pub in_key: bool,
}

/// Where a column's values come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnSource {
    /// The rows are counted.
    RowNumber,
    /// A leaf of the Parquet schema.
    Leaf {
        /// Its index in the schema.
        leaf: usize,
        /// Its position in [`Mapping::leaves`], and so in a batch.
        position: usize,
    },
    /// A nested field of the Parquet schema.
    Nested {
        /// Its node's index in the schema.
        node: usize,
        /// The position of its first leaf in [`Mapping::leaves`], and so in a batch. The others follow it.
        position: usize,
    },
}

/// How a column is converted and checked.
#[derive(Debug, Clone)]
struct ColumnPlan {
    kind: ColumnKind,
    key: KeyRole,
}

#[derive(Debug, Clone)]
pub(super) enum ColumnKind {
    RowNumber,
    Flat(LeafPlan),
    Nested(Box<NestedColumn>),
}

/// What the primary key requires of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyRole {
    None,
    /// No null.
    Clustering,
    /// No null, and not too long.
    Partition,
    /// No null, not empty, and not too long.
    WholePartition,
}

/// The longest partition key in bytes: its length has 16 bits in both servers.
const PARTITION_KEY_BYTES_MAX: usize = 65_535;

impl Mapping {
    /// Maps the columns of `schema` to those of `table`, and checks everything that can be checked before the first
    /// row. This is planning work, in one call.
    ///
    /// # Errors
    ///
    /// All errors are reported together: a single one as it is, several as one whose message lists them, each with its
    /// column, and whose kind is the first one's.
    ///
    /// * `Misuse`: a name in [`MappingOptions`] that is not a column, or repeats one; no key; a key of a type that
    ///   cannot be in a key; a row number with the name of a column.
    /// * `Conversion`: a column or field whose name CQL does not allow, two with the same name, a duration in a set or
    ///   as the key of a map, a column that an [existing](MappingOptions::existing) table lacks, or whose type cannot
    ///   hold the values, and a missing column of such a table's primary key.
    /// * `Unsupported`: a group without fields; collections more than 32 deep.
    /// * `Corrupt`, `LimitExceeded`: as for [`Shape::kind`](marquetry_parquet::schema::Shape::kind).
    pub fn new(schema: &Arc<Schema>, table: TableName, options: &MappingOptions) -> Result<Mapping> {
        let mut faults = Faults::default();
        let fields: Vec<(usize, &Node)> =
            schema.children(0).filter_map(|child| Some((child, schema.nodes().get(child)?))).collect();
        let chosen = match &options.columns {
            Some(wanted) => choose(&fields, wanted, &mut faults),
            None => fields.clone(),
        };
        let mut planner = Planner::new(schema, options, &table);
        let mut made = Columns::with_capacity(chosen.len() + 1);
        if let Some(name) = &options.row_number {
            if chosen.iter().any(|&(_, node)| node.name == name.as_str()) {
                let message = format!("the row number cannot be called {name}: a column of the file is");
                faults.add(Error::misuse(message));
            } else {
                planner.row_number(name);
                made.push(name.clone(), CqlType::Bigint, ColumnKind::RowNumber, ColumnSource::RowNumber);
            }
        }
        for (number, &(at, node)) in chosen.iter().enumerate() {
            match Name::new(&node.name) {
                Ok(name) => made.plan(&mut planner, schema, (at, node), name),
                Err(error) => faults.add(Error::conversion(format!(
                    "CQL cannot have the name of column {} (of {}): {error}; choose others with --columns",
                    number + 1,
                    chosen.len()
                ))),
            }
        }
        let planned = planner.finish(&mut faults);
        let Columns { mut columns, mut plans, .. } = made;
        let names: Vec<Name> = columns.iter().map(|column| column.name.clone()).collect();
        let mut seen = BTreeSet::new();
        for name in names.iter().filter(|name| !seen.insert(*name)) {
            let name = name.as_str();
            faults.add(Error::conversion(format!("two columns of the file are called {name:?}")));
        }
        let (partition_key, clustering) = resolve_key(options, &names, &fields, &mut faults);
        let whole = if partition_key.len() == 1 { KeyRole::WholePartition } else { KeyRole::Partition };
        let roles = partition_key.iter().map(|at| (*at, whole));
        for (at, role) in roles.chain(clustering.iter().map(|(at, _)| (*at, KeyRole::Clustering))) {
            if let (Some(column), Some(plan)) = (columns.get_mut(at), plans.get_mut(at)) {
                faults.take(put_in_key(column, plan, role));
            }
        }
        faults.into_result()?;
        let is_static = |name: &Name| options.existing.as_ref().is_some_and(|it| it.statics.contains(name));
        let mut statics: Vec<bool> = columns.iter().map(|column| is_static(&column.name)).collect();
        if !statics.contains(&true) {
            statics.clear();
        }
        let table = TableDef {
            table,
            if_not_exists: false,
            columns: columns
                .iter()
                .map(|column| ColumnDef {
                    name: column.name.clone(),
                    cql_type: column.cql_type.clone(),
                    is_static: is_static(&column.name),
                })
                .collect(),
            partition_key,
            clustering,
            comment: comment(&planned.leaves, options),
        };
        table.check().map_err(|error| Error::misuse(error.to_string()))?;
        Ok(Mapping {
            limits: options.limits,
            table,
            types: planned.types,
            columns,
            plans,
            statics,
            nulls: options.nulls,
            null_elements: options.null_elements,
            duplicate_keys: options.duplicate_keys,
            schema: Arc::clone(schema),
        })
    }

    /// The table: its `Display` is the `CREATE TABLE`. Its comment says what the types cannot: units, and which times
    /// are not adjusted to UTC.
    pub fn table(&self) -> &TableDef {
        &self.table
    }

    /// The user-defined types that the columns need, each before those that use it. Their `Display` is the `CREATE
    /// TYPE`. For an [existing](MappingOptions::existing) table they are the keyspace's.
    ///
    /// A type is named after the table and the names down to its group, such as `trips_place`, with a number appended
    /// if that name is taken.
    pub fn types(&self) -> &[TypeDef] {
        &self.types
    }

    /// The table's columns, in the order of [`TableDef::columns`] and of an `INSERT`: the row number first, if any,
    /// then the file's.
    pub fn columns(&self) -> &[MappedColumn] {
        &self.columns
    }

    /// The leaves that batches must have, in this order, unless they have all leaves of the schema: for
    /// [`ReadOptions::leaves`](marquetry_parquet::read::ReadOptions::leaves).
    pub fn leaves(&self) -> Vec<usize> {
        let mut leaves = Vec::new();
        for (column, plan) in self.columns.iter().zip(&self.plans) {
            match (&column.source, &plan.kind) {
                (ColumnSource::Leaf { leaf, .. }, _) => leaves.push(*leaf),
                (_, ColumnKind::Nested(nested)) => leaves.extend_from_slice(&nested.leaves),
                _ => {}
            }
        }
        leaves
    }

    /// Prepares a batch for writing: assembles nested columns from their leaves.
    ///
    /// # Errors
    ///
    /// `Misuse`: a batch of other leaves. `Corrupt`, naming the leaf: leaves whose levels contradict each other.
    /// `LimitExceeded`: more than 2³¹ − 1 elements.
    pub fn assemble(&self, batch: Batch) -> Result<MappedBatch> {
        let mut assembling = self.assembling(batch);
        match self.step_assembling(&mut assembling, &mut Budget::unlimited())? {
            Some(mapped) => Ok(mapped),
            None => Err(Error::internal("a budget without an end is spent")),
        }
    }

    /// Begins to make a batch ready for writing, in steps.
    pub fn assembling(&self, batch: Batch) -> Assembling {
        let Batch { row_group, first_row, rows, columns } = batch;
        let batches = columns.into_iter().map(Some).collect();
        let columns = Vec::with_capacity(self.columns.len());
        let (taken, nested, used) = (0, None, Vec::new());
        Assembling { rows, first_row, row_group, batches, taken, nested, used, columns }
    }

    /// Does part of the work that [`Mapping::assembling`] began. Returns `None` if the budget is spent: call again.
    ///
    /// # Errors
    ///
    /// Those of [`Mapping::assemble`].
    pub fn step_assembling(
        &self,
        assembling: &mut Assembling,
        budget: &mut Budget<'_>,
    ) -> Result<Option<MappedBatch>> {
        while let Some((column, plan)) =
            self.columns.get(assembling.columns.len()).zip(self.plans.get(assembling.columns.len()))
        {
            let row_group = assembling.row_group;
            let place = |error: Error| {
                error.at(|place| {
                    place.column = Some(column.name.as_str().to_string());
                    place.row_group = Some(cast::u64_of(row_group));
                })
            };
            let made = match (&column.source, &plan.kind) {
                (ColumnSource::Leaf { leaf, .. }, _) => {
                    MappedValues::Flat(Box::new(assembling.take(*leaf).map_err(place)?))
                }
                (_, ColumnKind::Nested(nested)) => {
                    if assembling.nested.is_none() {
                        let taken = nested.leaves.iter().map(|&leaf| assembling.take(leaf));
                        let batches: Vec<ColumnBatch> = taken.collect::<Result<_>>().map_err(place)?;
                        let (schema, leaves) = (Arc::clone(&self.schema), Arc::from(&nested.leaves[..]));
                        let assembler = Assembler::new(schema, nested.node, Some(leaves), &self.limits);
                        assembling.nested = Some(Box::new((batches, assembler)));
                    }
                    let rows = assembling.rows;
                    let Some((batches, assembler)) = assembling.nested.as_deref_mut() else {
                        return Err(Error::internal("a column that nothing assembles"));
                    };
                    let batches = &*batches;
                    let column_of = |leaf| batches.get(nested.leaves.binary_search(&leaf).ok()?);
                    // Rows of errors are counted from the batch's first.
                    let of_rows = Batch { row_group, first_row: 0, rows, columns: Vec::new() };
                    let Some(array) = assembler.step(&of_rows, &column_of, budget).map_err(place)? else {
                        return Ok(None);
                    };
                    if let Some(assembled) = assembling.nested.take() {
                        assembling.used.push(assembled.0);
                    }
                    MappedValues::Nested(Box::new(array))
                }
                _ => MappedValues::RowNumber,
            };
            assembling.columns.push(made);
            budget.charge_units(COLUMN_UNITS);
            if budget.is_spent() && assembling.columns.len() < self.columns.len() {
                return Ok(None);
            }
        }
        let Assembling { rows, first_row, row_group, .. } = *assembling;
        let columns = core::mem::take(&mut assembling.columns);
        Ok(Some(MappedBatch { rows, first_row, row_group, columns }))
    }

    /// Whether a column has one value in a partition: it is in the partition key, or static.
    pub fn is_of_partition(&self, column: usize) -> bool {
        self.table.partition_key.contains(&column) || self.is_static(column)
    }

    pub(super) fn is_static(&self, column: usize) -> bool {
        self.statics.get(column) == Some(&true)
    }

    pub(super) fn has_statics(&self) -> bool {
        !self.statics.is_empty()
    }

    pub(super) fn kind_of(&self, column: usize) -> Option<(&ColumnKind, KeyRole)> {
        self.plans.get(column).map(|plan| (&plan.kind, plan.key))
    }

    pub(super) fn nulls(&self) -> Nulls {
        self.nulls
    }

    pub(super) fn rules(&self) -> Rules<'_> {
        Rules {
            null_elements: self.null_elements,
            duplicate_keys: self.duplicate_keys,
            schema: &self.schema,
            limits: self.limits,
        }
    }

    /// An error at a value.
    #[cold]
    pub(super) fn at(&self, column: usize, batch: &MappedBatch, row: usize, error: Error) -> Error {
        let mut name = self.columns.get(column).map(|column| column.name.as_str().to_string());
        // The renderer reports the path below the column.
        if let (Some(name), Some(path)) = (&mut name, &error.place().column) {
            name.push_str(path);
        }
        let named = match name {
            Some(name) => error.replaced(|place| place.column = Some(name)),
            None => error,
        };
        named.at(|place| {
            place.row = batch.first_row.checked_add(cast::u64_of(row));
            place.row_group = Some(cast::u64_of(batch.row_group));
        })
    }
}

impl KeyRole {
    /// Checks a value that is not null.
    #[inline]
    pub(super) fn check(self, value: &Value<'_>) -> Result<()> {
        if !self.is_of_partition() {
            return Ok(());
        }
        match value.as_bytes() {
            Some(bytes) => self.check_length(bytes.len()),
            None => Ok(()),
        }
    }

    /// Whether the value's bytes are part of the partition key.
    #[inline]
    pub(super) fn is_of_partition(self) -> bool {
        matches!(self, KeyRole::Partition | KeyRole::WholePartition)
    }

    /// Checks the length in bytes of a value that is not null.
    pub(super) fn check_length(self, length: usize) -> Result<()> {
        // Both servers: "Key may not be empty". A composite key never is, whatever its parts are.
        if length == 0 && self == KeyRole::WholePartition {
            return Err(Error::conversion("the partition key is empty"));
        }
        if length > PARTITION_KEY_BYTES_MAX && self.is_of_partition() {
            return Err(Error::conversion(format!(
                "a partition key of {length} bytes, more than {PARTITION_KEY_BYTES_MAX}"
            )));
        }
        Ok(())
    }
}

#[cold]
pub(super) fn null_key() -> Error {
    Error::conversion("a column of the primary key is null").with(Detail::AdmittedBy(&["where"]))
}

/// Columns of a table during planning.
struct Columns {
    columns: Vec<MappedColumn>,
    plans: Vec<ColumnPlan>,
    /// The number of their leaves.
    position: usize,
}

impl Columns {
    fn with_capacity(capacity: usize) -> Columns {
        Columns { columns: Vec::with_capacity(capacity), plans: Vec::with_capacity(capacity), position: 0 }
    }

    fn push(&mut self, name: Name, cql_type: CqlType, kind: ColumnKind, source: ColumnSource) {
        self.columns.push(MappedColumn { name, cql_type, source, in_key: false });
        self.plans.push(ColumnPlan { kind, key: KeyRole::None });
    }

    /// Plans a field of the schema, a child of its root. The planner collects the errors.
    fn plan(&mut self, planner: &mut Planner<'_>, schema: &Schema, (at, node): (usize, &Node), name: Name) {
        let leaf = match node.kind {
            NodeKind::Leaf { leaf } => {
                schema.leaves().get(leaf).filter(|leaf| leaf.is_flat()).map(|found| (leaf, found))
            }
            NodeKind::Group { .. } => None,
        };
        if let Some((leaf, found)) = leaf {
            let planned = planner.flat(&name, node.logical_type.as_ref(), found);
            let source = ColumnSource::Leaf { leaf, position: self.position };
            self.position += 1;
            return self.push(name, planned.cql_type(), ColumnKind::Flat(planned), source);
        }
        match planner.column(at, &name) {
            Some((nested, cql_type)) => {
                let source = ColumnSource::Nested { node: at, position: self.position };
                self.position += nested.leaves.len();
                self.push(name, cql_type, ColumnKind::Nested(Box::new(nested)), source);
            }
            // A placeholder, so that the key can be looked up; the mapping fails in any case.
            None => self.push(name, CqlType::Blob, ColumnKind::RowNumber, ColumnSource::RowNumber),
        }
    }
}

/// The columns of the primary key, by position: those of the partition key, and the clustering columns.
fn resolve_key(
    options: &MappingOptions,
    names: &[Name],
    fields: &[(usize, &Node)],
    faults: &mut Faults,
) -> (Vec<usize>, Vec<(usize, Order)>) {
    let none = (Vec::new(), Vec::new());
    let key = match (&options.key, &options.row_number) {
        (Some(key), _) => key,
        (None, Some(_)) => return (alloc::vec![0], Vec::new()),
        (None, None) => {
            faults.add(Error::misuse("the table needs a primary key: columns or a row number"));
            return none;
        }
    };
    let mut is_whole = true;
    for part in key.parts().filter(|part| part.resolve(names).is_none()) {
        is_whole = false;
        let name = &part.text;
        faults.add(if options.existing.is_some() {
            Error::conversion(format!(
                "the rows have no column {name:?}, which is in the table's primary key"
            ))
        } else if fields.iter().any(|(_, node)| node.name == *name) {
            Error::misuse(format!("the key names {name:?}, which is not among the columns that are taken"))
        } else {
            let error = KeyError::NoSuchColumn { name: name.clone() };
            Error::misuse(format!("{error}; there are {}", list(names)))
        });
    }
    if !is_whole {
        return none;
    }
    faults.take(key.resolve(names).map_err(|error| Error::misuse(error.to_string()))).unwrap_or(none)
}

/// Makes a column part of the primary key.
fn put_in_key(column: &mut MappedColumn, plan: &mut ColumnPlan, role: KeyRole) -> Result<()> {
    column.in_key = true;
    plan.key = role;
    let name = &column.name;
    match &plan.kind {
        ColumnKind::Flat(LeafPlan { conversion: Conversion::AlwaysNull, .. }) => {
            Err(Error::misuse(format!("{name} cannot be in the key: its type UNKNOWN is always null")))
        }
        // A flat one is refused later, with the same message as for any table.
        ColumnKind::Nested(nested) if nested.plan.has_duration() => {
            Err(Error::misuse(format!("{name} cannot be in the key: it has durations, which have no order")))
        }
        ColumnKind::Nested(_) => {
            column.cql_type = column.cql_type.clone().frozen();
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The fields with the requested names, in their order. The work is proportional to the number of names.
fn choose<'s>(
    fields: &[(usize, &'s Node)],
    wanted: &[String],
    faults: &mut Faults,
) -> Vec<(usize, &'s Node)> {
    let mut by_name: BTreeMap<&str, Field<'s>> = BTreeMap::new();
    for &(at, node) in fields {
        let field =
            by_name.entry(&node.name).or_insert(Field { at, node, is_ambiguous: false, is_chosen: false });
        field.is_ambiguous |= field.at != at;
    }
    let mut chosen: Vec<(usize, &Node)> = Vec::with_capacity(wanted.len());
    let mut missing: Vec<&String> = Vec::new();
    for name in wanted {
        let folded = || name.to_ascii_lowercase();
        let found = if by_name.contains_key(name.as_str()) {
            by_name.get_mut(name.as_str())
        } else {
            by_name.get_mut(folded().as_str())
        };
        let Some(field) = found else {
            missing.push(name);
            continue;
        };
        if field.is_ambiguous {
            let message = format!("two columns of the file are called {:?}", field.node.name);
            faults.add(Error::conversion(message));
        } else if core::mem::replace(&mut field.is_chosen, true) {
            faults.add(Error::misuse(format!("the column {:?} is wanted twice", field.node.name)));
        } else {
            chosen.push((field.at, field.node));
        }
    }
    if !missing.is_empty() {
        let there = list(fields.iter().map(|(_, node)| &node.name));
        let what = if missing.len() == 1 { "there is no column" } else { "there are no columns" };
        let missing = list(missing.iter().map(|name| format!("{name:?}")));
        faults.add(Error::misuse(format!("{what} {missing}; there are {there}")));
    }
    chosen
}

/// A field while some are chosen.
struct Field<'s> {
    /// The node's index.
    at: usize,
    node: &'s Node,
    /// Another has the same name.
    is_ambiguous: bool,
    is_chosen: bool,
}

/// A comment with what the columns' types cannot express, by the paths of leaves.
fn comment(leaves: &[(String, LogicalType)], options: &MappingOptions) -> Option<String> {
    let mut sentences = Vec::new();
    let mut note = |what: &str, is_meant: &dyn Fn(&LogicalType) -> bool| {
        let meant = leaves.iter().filter(|(_, logical_type)| is_meant(logical_type));
        let paths: Vec<&str> = meant.map(|(path, _)| path.as_str()).collect();
        if !paths.is_empty() {
            sentences.push(format!("{what}: {}.", paths.join(", ")));
        }
    };
    if !options.timestamps_as_millis {
        let of = |wanted| move |it: &LogicalType| matches!(it, LogicalType::Timestamp { unit, .. } if *unit == wanted);
        note("Microseconds since 1970-01-01 00:00", &of(TimeUnit::Micros));
        note("Nanoseconds since 1970-01-01 00:00", &of(TimeUnit::Nanos));
    }
    note("Local time, not adjusted to UTC", &|it| {
        matches!(
            it,
            LogicalType::Timestamp { is_adjusted_to_utc: false, .. }
                | LogicalType::Time { is_adjusted_to_utc: false, .. }
        )
    });
    note("Variants as JSON", &|it| matches!(it, LogicalType::Variant { .. }));
    if sentences.is_empty() { None } else { Some(sentences.join(" ")) }
}
