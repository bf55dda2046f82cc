//! From a Parquet schema to a CQL table.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;

use marquetry_base::{Error, Result, cast};
use marquetry_parquet::read::{Batch, Layout, Values};
use marquetry_parquet::schema::{LogicalType, Node, NodeKind, Schema, TimeUnit};

use super::convert::{Conversion, Source, Value};
use super::{Cell, MappingOptions, Nulls, cell};
use crate::cql::ddl::KeyError;
use crate::cql::identifier::find_duplicate;
use crate::cql::{ColumnDef, CqlType, Name, TableDef, TableName};

/// How the columns of a Parquet file become the columns of a CQL table.
///
/// Files of one table have a mapping each, because the same column may be another leaf in each; the table is the same
/// when [`Mapping::table`] is equal.
#[derive(Debug, Clone)]
pub struct Mapping {
    table: TableDef,
    columns: Vec<MappedColumn>,
    plans: Vec<Plan>,
    nulls: Nulls,
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
        /// Its position in [`Mapping::leaves`], so in a batch.
        position: usize,
    },
}

/// How a column is converted and checked.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// `None` for the row number.
    conversion: Option<Conversion>,
    key: KeyRole,
}

/// What the primary key asks of a column.
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

/// A column's values of one batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound<'a> {
    /// The bytes of the validity bitmap and its first bit in them.
    validity: Option<(&'a [u8], usize)>,
    pub(super) indices: Option<&'a [u32]>,
    /// Of the batch, or of the dictionary.
    pub(super) source: Source<'a>,
    /// Values of the dictionary.
    pub(super) dictionary_length: usize,
    pub(super) key: KeyRole,
}

/// The longest partition key in bytes: its length has 16 bits in both servers.
const PARTITION_KEY_BYTES_MAX: usize = 65_535;

impl Mapping {
    /// Maps the columns of `schema` to those of `table`, and checks everything that can be wrong before the first row.
    ///
    /// # Errors
    ///
    /// * `Misuse`: a name in [`MappingOptions`] that is no column, or names one twice; no key; a key of a type that
    ///   cannot be one; a row number with the name of a column.
    /// * `Conversion`: a column whose name CQL cannot have, two columns of one name.
    /// * `Unsupported`: columns that are nested.
    pub fn new(schema: &Schema, table: TableName, options: &MappingOptions) -> Result<Mapping> {
        let fields: Vec<&Node> = schema.children(0).filter_map(|child| schema.nodes().get(child)).collect();
        let chosen = match &options.columns {
            Some(wanted) => choose(&fields, wanted)?,
            None => fields.clone(),
        };
        let leaves = flat_leaves(schema, &chosen)?;

        let mut columns = Vec::with_capacity(chosen.len() + 1);
        let mut plans = Vec::with_capacity(chosen.len() + 1);
        let mut add = |name: Name, conversion: Option<Conversion>, source| {
            let cql_type = conversion.map_or(CqlType::Bigint, Conversion::cql_type);
            columns.push(MappedColumn { name, cql_type, source, in_key: false });
            plans.push(Plan { conversion, key: KeyRole::None });
        };
        if let Some(name) = &options.row_number {
            if chosen.iter().any(|node| node.name == name.as_str()) {
                let message = format!("the row number cannot be called {name}: a column of the file is");
                return Err(Error::misuse(message));
            }
            add(name.clone(), None, ColumnSource::RowNumber);
        }
        for (position, (node, leaf)) in chosen.iter().zip(leaves).enumerate() {
            let name = Name::new(&node.name).map_err(|error| {
                let number = position + 1;
                Error::conversion(format!(
                    "CQL cannot have the name of column {number} (of {}): {error}; choose others with --columns",
                    chosen.len()
                ))
            })?;
            let Some(physical_type) = schema.leaves().get(leaf).map(|leaf| leaf.physical_type) else {
                return Err(Error::internal("a leaf that the schema does not have"));
            };
            let conversion = Conversion::of(physical_type, node.logical_type.as_ref(), options);
            add(name, Some(conversion), ColumnSource::Leaf { leaf, position });
        }
        let names: Vec<Name> = columns.iter().map(|column| column.name.clone()).collect();
        if let Some((_, second)) = find_duplicate(&names) {
            let name = names[second].as_str();
            return Err(Error::conversion(format!("two columns of the file are called {name:?}")));
        }

        let (partition_key, clustering) = match (&options.key, &options.row_number) {
            (Some(key), _) => key.resolve(&names).map_err(|error| {
                let is_left_out = |name: &str| fields.iter().any(|node| node.name == name);
                match &error {
                    KeyError::NoSuchColumn { name } if is_left_out(name) => Error::misuse(format!(
                        "the key names {name:?}, which is not among the columns that are taken"
                    )),
                    KeyError::NoSuchColumn { .. } => {
                        Error::misuse(format!("{error}; there are {}", list(&names)))
                    }
                    _ => Error::misuse(error.to_string()),
                }
            })?,
            (None, Some(_)) => (alloc::vec![0], Vec::new()),
            (None, None) => {
                return Err(Error::misuse("the table needs a primary key: columns or a row number"));
            }
        };
        let whole = if partition_key.len() == 1 { KeyRole::WholePartition } else { KeyRole::Partition };
        let roles = partition_key.iter().map(|at| (*at, whole));
        for (at, role) in roles.chain(clustering.iter().map(|(at, _)| (*at, KeyRole::Clustering))) {
            columns[at].in_key = true;
            plans[at].key = role;
            if plans[at].conversion == Some(Conversion::AlwaysNull) {
                let name = &columns[at].name;
                return Err(Error::misuse(format!(
                    "{name} cannot be in the key: its type UNKNOWN is always null"
                )));
            }
        }
        let table = TableDef {
            table,
            if_not_exists: false,
            columns: columns
                .iter()
                .map(|column| ColumnDef {
                    name: column.name.clone(),
                    cql_type: column.cql_type.clone(),
                    is_static: false,
                })
                .collect(),
            partition_key,
            clustering,
            comment: comment(&chosen, options),
        };
        table.check().map_err(|error| Error::misuse(error.to_string()))?;
        Ok(Mapping { table, columns, plans, nulls: options.nulls })
    }

    /// The table: its `Display` is the `CREATE TABLE`. The comment tells what the types do not: units, and which times
    /// are not adjusted to UTC.
    pub fn table(&self) -> &TableDef {
        &self.table
    }

    /// The table's columns, in the order of [`TableDef::columns`] and of an `INSERT`: the row number first, where there
    /// is one, then the file's.
    pub fn columns(&self) -> &[MappedColumn] {
        &self.columns
    }

    /// The leaves that batches must have, in this order: for
    /// [`ReadOptions::leaves`](marquetry_parquet::read::ReadOptions::leaves).
    pub fn leaves(&self) -> Vec<usize> {
        let leaf = |column: &MappedColumn| match column.source {
            ColumnSource::RowNumber => None,
            ColumnSource::Leaf { leaf, .. } => Some(leaf),
        };
        self.columns.iter().filter_map(leaf).collect()
    }

    /// Appends one value as the native protocol (versions 3 to 5) serialises it, without its length. A null appends
    /// nothing.
    ///
    /// `column` is a position in [`Mapping::columns`], `row` one in the batch, and `row_number` the value of a row
    /// number's column.
    ///
    /// # Errors
    ///
    /// `Conversion`, with row and column: a value that cannot be held; a null in the key, or an empty partition key.
    /// `Misuse`: a column or row that is not there, a batch of other leaves or of the layout `Dense` with nulls. `out`
    /// is then as it was.
    pub fn write_cell(
        &self,
        column: usize,
        batch: &Batch,
        row: usize,
        row_number: u64,
        out: &mut Vec<u8>,
    ) -> Result<Cell> {
        let bound = self.bind(column, batch, row_number)?;
        if row >= batch.rows {
            return Err(Error::misuse(format!("row {row} of a batch of {} rows", batch.rows)));
        }
        let place = |error| self.at(column, batch, row, error);
        if bound.is_null(row) {
            return if bound.key == KeyRole::None { Ok(Cell::Null) } else { Err(place(null_key())) };
        }
        // The row's number is given, not counted.
        let index = if self.plans[column].conversion.is_none() { Ok(0) } else { bound.index(row) };
        let value = index.and_then(|index| bound.source.value(index)).map_err(place)?;
        bound.key.check(&value).map_err(place)?;
        cell::write(out, &value);
        Ok(Cell::Value)
    }

    pub(super) fn nulls(&self) -> Nulls {
        self.nulls
    }

    /// A column's values in a batch.
    ///
    /// # Errors
    ///
    /// `Misuse`, when the batch is not of this mapping.
    pub(super) fn bind<'b>(
        &self,
        column: usize,
        batch: &'b Batch,
        first_row_number: u64,
    ) -> Result<Bound<'b>> {
        let Some((plan, source)) =
            self.plans.get(column).zip(self.columns.get(column).map(|column| column.source))
        else {
            return Err(Error::misuse(format!("column {column} of {}", self.columns.len())));
        };
        let (conversion, leaf, position) = match (plan.conversion, source) {
            (Some(conversion), ColumnSource::Leaf { leaf, position }) => (conversion, leaf, position),
            _ => {
                let source = Source::RowNumber(first_row_number);
                return Ok(Bound {
                    validity: None,
                    indices: None,
                    source,
                    dictionary_length: 0,
                    key: plan.key,
                });
            }
        };
        let wrong = |why: &'static str| {
            let name = self.columns[column].name.as_str().to_string();
            Err(Error::misuse(why).at(|place| place.column = Some(name)))
        };
        let Some(values) = batch.columns.get(position).filter(|values| values.leaf == leaf) else {
            return wrong("the batch has not the leaves of Mapping::leaves");
        };
        if values.layout == Layout::Dense && values.validity.is_some() {
            return wrong("the batch has the layout Dense; Spaced is needed");
        }
        let has_rows = |length| length >= batch.rows;
        if !has_rows(values.values.len())
            || !values.validity.as_ref().is_none_or(|validity| has_rows(validity.len()))
        {
            return wrong("the batch has not as many values as rows");
        }
        let (indices, of, dictionary_length) = match &values.values {
            Values::Dictionary(indices, dictionary) => (Some(&**indices), &**dictionary, dictionary.len()),
            of => (None, of, 0),
        };
        let Some(source) = conversion.bind(of) else {
            return wrong("the batch has not the types of the schema");
        };
        let validity = values.validity.as_ref().map(|validity| (&**validity.bytes(), validity.offset()));
        Ok(Bound { validity, indices, source, dictionary_length, key: plan.key })
    }

    /// An error at a value.
    #[cold]
    pub(super) fn at(&self, column: usize, batch: &Batch, row: usize, error: Error) -> Error {
        error.at(|place| {
            place.column = self.columns.get(column).map(|column| column.name.as_str().to_string());
            place.row = batch.first_row.checked_add(cast::u64_of(row));
            place.row_group = Some(cast::u64_of(batch.row_group));
        })
    }
}

impl Bound<'_> {
    pub(super) fn has_nulls(&self) -> bool {
        self.validity.is_some()
    }

    #[inline]
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.validity.is_some_and(|(bytes, offset)| {
            let bit = offset + row;
            bytes[bit / 8] >> (bit % 8) & 1 == 0
        })
    }

    /// Where the row's value stands in the source.
    #[inline]
    pub(super) fn index(&self, row: usize) -> Result<usize> {
        let Some(indices) = self.indices else { return Ok(row) };
        let index = cast::usize_of_u32(indices[row]);
        if index < self.dictionary_length {
            Ok(index)
        } else {
            Err(Error::misuse("an index beyond its dictionary"))
        }
    }
}

impl KeyRole {
    /// Checks a value that is not null.
    #[inline]
    pub(super) fn check(self, value: &Value<'_>) -> Result<()> {
        if matches!(self, KeyRole::None | KeyRole::Clustering) {
            return Ok(());
        }
        match value.as_bytes() {
            // Both servers: "Key may not be empty". A composite key never is, whatever its parts.
            Some([]) if self == KeyRole::WholePartition => {
                Err(Error::conversion("the partition key is empty"))
            }
            Some(bytes) if bytes.len() > PARTITION_KEY_BYTES_MAX => {
                let length = bytes.len();
                Err(Error::conversion(format!(
                    "a partition key of {length} bytes, more than {PARTITION_KEY_BYTES_MAX}"
                )))
            }
            _ => Ok(()),
        }
    }
}

#[cold]
pub(super) fn null_key() -> Error {
    Error::conversion("a column of the primary key is null")
}

/// The fields of the names wanted, in their order. The work grows with the number of names, not with its square.
fn choose<'s>(fields: &[&'s Node], wanted: &[String]) -> Result<Vec<&'s Node>> {
    let mut by_name: BTreeMap<&str, Field<'s>> = BTreeMap::new();
    for &node in fields {
        let field =
            by_name.entry(&node.name).or_insert(Field { node, is_ambiguous: false, is_chosen: false });
        field.is_ambiguous |= !core::ptr::eq(field.node, node);
    }
    let mut chosen: Vec<&Node> = Vec::with_capacity(wanted.len());
    for name in wanted {
        let folded = || name.to_ascii_lowercase();
        let found = if by_name.contains_key(name.as_str()) {
            by_name.get_mut(name.as_str())
        } else {
            by_name.get_mut(folded().as_str())
        };
        let Some(field) = found else {
            let there = list(fields.iter().map(|node| &node.name));
            return Err(Error::misuse(format!("there is no column {name:?}; there are {there}")));
        };
        if field.is_ambiguous {
            return Err(Error::conversion(format!(
                "two columns of the file are called {:?}",
                field.node.name
            )));
        }
        if core::mem::replace(&mut field.is_chosen, true) {
            return Err(Error::misuse(format!("the column {:?} is wanted twice", field.node.name)));
        }
        chosen.push(field.node);
    }
    Ok(chosen)
}

/// A field while some are chosen.
struct Field<'s> {
    node: &'s Node,
    /// Another has the same name.
    is_ambiguous: bool,
    is_chosen: bool,
}

/// The leaves that fields are.
fn flat_leaves(schema: &Schema, fields: &[&Node]) -> Result<Vec<usize>> {
    let leaf_of = |node: &Node| match node.kind {
        NodeKind::Leaf { leaf } if schema.leaves().get(leaf).is_some_and(|leaf| leaf.is_flat()) => Some(leaf),
        _ => None,
    };
    let nested: Vec<&String> =
        fields.iter().filter(|node| leaf_of(node).is_none()).map(|node| &node.name).collect();
    if !nested.is_empty() {
        let message = format!(
            "nested columns cannot be turned into CQL yet: {}; choose others with --columns",
            list(nested)
        );
        return Err(Error::unsupported(message));
    }
    Ok(fields.iter().filter_map(|node| leaf_of(node)).collect())
}

/// Names in a message, not too many.
fn list(names: impl IntoIterator<Item = impl Display>) -> String {
    const NAMES_MAX: usize = 20;
    let mut text = String::new();
    for (at, name) in names.into_iter().enumerate() {
        if at == NAMES_MAX {
            text.push_str(", …");
            break;
        }
        text.push_str(if at == 0 { "" } else { ", " });
        text.push_str(&name.to_string());
    }
    if text.is_empty() { "none".to_string() } else { text }
}

/// What the columns' types do not tell.
fn comment(fields: &[&Node], options: &MappingOptions) -> Option<String> {
    let mut sentences = Vec::new();
    let mut note = |what: &str, is_meant: &dyn Fn(&LogicalType) -> bool| {
        let meant = fields.iter().filter(|node| node.logical_type.as_ref().is_some_and(is_meant));
        let names: Vec<&str> = meant.map(|node| node.name.as_str()).collect();
        if !names.is_empty() {
            sentences.push(format!("{what}: {}.", names.join(", ")));
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
    if sentences.is_empty() { None } else { Some(sentences.join(" ")) }
}
