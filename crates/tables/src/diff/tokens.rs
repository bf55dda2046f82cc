//! Tables whose rows come in the order of tokens, as those of clusters and of SSTables do: they are matched by their keys as they come, without being sorted.
//!
//! A key is compared as the bytes that servers have of it, which a load of the rows would send.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{Error, Limits, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch};
use marquetry_scylla::bridge::{BoundBatch, Cell, Mapping, MappingOptions};
use marquetry_scylla::cql::TableName;
use marquetry_scylla::sstable::compare::Comparator;
use marquetry_scylla::sstable::marshal::MarshalType;
use marquetry_scylla::sstable::{KeyColumn, TableColumns, murmur3_token};

use crate::described::columns_of;
use crate::{ColumnPath, Table};

/// The key that two such tables share.
#[derive(Debug, Clone)]
pub(super) struct TokenOrder {
    /// What makes bytes of the key's columns of either table: those of the partition key, and then the clustering columns.
    mappings: [Arc<Mapping>; 2],
    /// How many columns the partition key has.
    partition: usize,
    clustering: Arc<[Comparator]>,
}

impl TokenOrder {
    /// The order of two tables, if both have it, the same key, and types of which a load makes values. `wanted` is the key that rows are to
    /// be matched by; none is as good as the tables' own.
    pub(super) fn of(tables: [&Table; 2], wanted: &[ColumnPath], limits: &Limits) -> Option<TokenOrder> {
        let keys = |table: &Table| columns_of(table).filter(|_| table.is_in_token_order);
        let (one, other) = (keys(tables[0])?, keys(tables[1])?);
        let is_same = are_alike(&one.partition_key, &other.partition_key)
            && are_alike(&one.clustering, &other.clustering);
        if !is_same {
            return None;
        }
        let clustering = one.clustering.iter().map(|key| Comparator::new(&key.kind));
        let order = TokenOrder {
            partition: one.partition_key.len(),
            clustering: clustering.collect::<Result<_>>().ok()?,
            mappings: [mapping(tables[0], one, limits)?, mapping(tables[1], other, limits)?],
        };
        // Whether a name was quoted makes no difference.
        let parts = |path: &ColumnPath| path.parts.iter().map(|part| part.text.clone()).collect::<Vec<_>>();
        let is_own = wanted.iter().map(parts).eq(order.key().iter().map(parts));
        (wanted.is_empty() || is_own).then_some(order)
    }

    /// The columns of the partition key, and then the clustering columns.
    pub(super) fn key(&self) -> Vec<ColumnPath> {
        let columns = self.mappings[0].columns().iter();
        columns.map(|column| ColumnPath::of([column.name.as_str()])).collect()
    }

    /// The keys of a batch of the first or the second table, which has all columns of its schema.
    ///
    /// # Errors
    ///
    /// Those of [`BoundBatch::write_cell`], of a key that no server would have.
    pub(super) fn keys_of(&self, side: usize, batch: &Batch) -> Result<Keys> {
        let mapping = &self.mappings[side];
        let leaves = mapping.leaves().into_iter().map(|leaf| batch.columns.get(leaf).cloned());
        let lacks = || Error::internal("a batch that lacks columns of its key");
        let columns: Vec<ColumnBatch> = leaves.collect::<Option<_>>().ok_or_else(lacks)?;
        let of_key =
            Batch { row_group: batch.row_group, first_row: batch.first_row, rows: batch.rows, columns };
        let mapped = mapping.assemble(of_key)?;
        let mut mapped = mapping.bind(&mapped, 0)?;
        let mut keys = Keys { parts_of_row: 1 + self.clustering.len(), ..Keys::default() };
        for row in 0..batch.rows {
            self.add(&mut mapped, row, &mut keys)?;
        }
        Ok(keys)
    }

    fn add(&self, batch: &mut BoundBatch<'_>, row: usize, keys: &mut Keys) -> Result<()> {
        let start = keys.bytes.len();
        for column in 0..self.partition {
            let lengthed = keys.bytes.len();
            if self.partition > 1 {
                keys.bytes.extend([0, 0]);
            }
            let first = keys.bytes.len();
            batch.write_cell(column, row, &mut keys.bytes)?;
            if self.partition > 1 {
                let length = u16::try_from(keys.bytes.len() - first)
                    .map_err(|_| Error::corrupt("a part of a partition key of more than 65,535 bytes"))?;
                keys.bytes[lengthed..first].copy_from_slice(&length.to_be_bytes());
                keys.bytes.push(0);
            }
        }
        keys.tokens.push(murmur3_token(&keys.bytes[start..]));
        keys.parts.push(Some(start..keys.bytes.len()));
        for column in self.partition..self.partition + self.clustering.len() {
            let start = keys.bytes.len();
            let cell = batch.write_cell(column, row, &mut keys.bytes)?;
            let end = keys.bytes.len();
            keys.parts.push((cell == Cell::Value).then_some(start..end));
        }
        Ok(())
    }

    /// The order of two rows: by their tokens, partition keys and clustering columns. A partition without a row is after its rows.
    pub(super) fn compare(&self, one: KeyOfRow<'_>, other: KeyOfRow<'_>) -> Ordering {
        let partitions = one.token.cmp(&other.token).then_with(|| one.part(0).cmp(&other.part(0)));
        let clustering = || {
            let compared = self.clustering.iter().enumerate().map(|(at, comparator)| {
                match (one.part(at + 1), other.part(at + 1)) {
                    (Some(one), Some(other)) => comparator.compare(one, other),
                    (one, other) => one.is_none().cmp(&other.is_none()),
                }
            });
            compared.into_iter().find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
        };
        partitions.then_with(clustering)
    }
}

/// The keys of a batch's rows, as servers have them.
#[derive(Debug, Default)]
pub(super) struct Keys {
    bytes: Vec<u8>,
    tokens: Vec<i64>,
    /// Of each row the bytes of its partition key, and those of its clustering columns, or none of one that is null.
    parts: Vec<Option<Range<usize>>>,
    parts_of_row: usize,
}

/// A row's key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyOfRow<'a> {
    token: i64,
    bytes: &'a [u8],
    parts: &'a [Option<Range<usize>>],
}

impl Keys {
    pub(super) fn row(&self, row: usize) -> Option<KeyOfRow<'_>> {
        let parts = self.parts.chunks_exact(self.parts_of_row.max(1)).nth(row)?;
        Some(KeyOfRow { token: *self.tokens.get(row)?, bytes: &self.bytes, parts })
    }

    /// The key of the last row alone.
    pub(super) fn last(&self) -> Keys {
        let mut last = Keys { parts_of_row: self.parts_of_row, ..Keys::default() };
        if let Some(key) = self.tokens.len().checked_sub(1).and_then(|row| self.row(row)) {
            last.tokens.push(key.token);
            for part in 0..key.parts.len() {
                let start = last.bytes.len();
                last.bytes.extend_from_slice(key.part(part).unwrap_or_default());
                last.parts.push(key.part(part).map(|_| start..last.bytes.len()));
            }
        }
        last
    }
}

impl<'a> KeyOfRow<'a> {
    fn part(self, part: usize) -> Option<&'a [u8]> {
        self.bytes.get(self.parts.get(part)?.clone()?)
    }
}

/// What makes bytes of a table's key.
pub(super) fn mapping(table: &Table, mut columns: TableColumns, limits: &Limits) -> Option<Arc<Mapping>> {
    columns.statics.clear();
    columns.regulars.clear();
    let name = TableName::parse("t").ok()?;
    let (mut definition, types) = columns.definition(&name).ok()?;
    let names = definition.columns.iter().map(|column| column.name.as_str().to_owned()).collect();
    // A row that is a partition without rows has no values for clustering columns.
    definition.clustering.clear();
    let options = MappingOptions { columns: Some(names), limits: *limits, ..MappingOptions::default() };
    let options = options.defined_by(&definition, types);
    Mapping::new(&table.schema, name, &options).ok().map(Arc::new)
}

/// Whether columns have the same names and types.
fn are_alike(one: &[KeyColumn], other: &[KeyColumn]) -> bool {
    let is_same = |(one, other): (&KeyColumn, &KeyColumn)| {
        one.name == other.name && is_same_type(&one.kind, &other.kind)
    };
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}

/// Whether two types are the same: of user-defined ones the fields are, whatever they are called, and whatever keyspace they are in. It
/// recurses as deep as names of types do.
fn is_same_type(one: &MarshalType, other: &MarshalType) -> bool {
    use MarshalType as M;
    match (one, other) {
        (M::List(one), M::List(other))
        | (M::Set(one), M::Set(other))
        | (M::Frozen(one), M::Frozen(other))
        | (M::Reversed(one), M::Reversed(other)) => is_same_type(one, other),
        (M::Vector(one, length), M::Vector(other, other_length)) => {
            length == other_length && is_same_type(one, other)
        }
        (M::Map(key, value), M::Map(other_key, other_value)) => {
            is_same_type(key, other_key) && is_same_type(value, other_value)
        }
        (M::Tuple(one), M::Tuple(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same_type(one, other))
        }
        (M::User { fields: one, .. }, M::User { fields: other, .. }) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|((name, one), (other_name, other))| name == other_name && is_same_type(one, other))
        }
        (one, other) => one == other,
    }
}
