//! Tables whose rows come in the order of tokens, as those of clusters do: they are matched by their keys as they come, without being sorted.

use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{ColumnBatch, Value};
use marquetry_scylla::cql::CqlType;
use marquetry_scylla::sstable::marshal::MarshalType;
use marquetry_scylla::sstable::{KeyColumn, murmur3_token};

use crate::{ColumnPath, Described, Table};

/// The key that two such tables share.
#[derive(Debug, Clone)]
pub(super) struct TokenOrder {
    /// The names and types of the partition key's columns.
    partition: Vec<(String, CqlType)>,
    /// The names of the clustering columns, and whether they are sorted in descending order.
    clustering: Vec<(String, bool)>,
}

/// Where a row's partition is: its token, and its key as servers have it.
pub(super) type Partition = (i64, Vec<u8>);

impl TokenOrder {
    /// The order of two tables, if both have it, the same key, and only types whose bytes and order are simple: partition keys of integers, text,
    /// bytes, UUIDs, dates and times, and clustering columns of these but UUIDs. `wanted` is the key that rows are to be matched by; none is as
    /// good as the tables' own.
    pub(super) fn of(tables: [&Table; 2], wanted: &[ColumnPath]) -> Option<TokenOrder> {
        let own = |table: &Table| {
            let described = Described::of(table).ok().flatten().filter(|_| table.is_in_token_order)?;
            let partition = described.columns.partition_key.iter().map(of_partition);
            let clustering = described.columns.clustering.iter().map(of_clustering);
            Some(TokenOrder {
                partition: partition.collect::<Option<_>>()?,
                clustering: clustering.collect::<Option<_>>()?,
            })
        };
        let (one, other) = (own(tables[0])?, own(tables[1])?);
        let is_same = one.partition == other.partition && one.clustering == other.clustering;
        let key = one.key();
        let is_wanted = wanted.is_empty() || wanted == key;
        (is_same && is_wanted).then_some(one)
    }

    /// The columns of the partition key, and then the clustering columns.
    pub(super) fn key(&self) -> Vec<ColumnPath> {
        let clustering = self.clustering.iter().map(|(name, _)| name);
        self.partition
            .iter()
            .map(|(name, _)| name)
            .chain(clustering)
            .map(|name| ColumnPath::of([name.as_str()]))
            .collect()
    }

    /// How many columns the partition key has.
    pub(super) fn partition_columns(&self) -> usize {
        self.partition.len()
    }

    /// Whether a clustering column is sorted in descending order.
    pub(super) fn is_descending(&self, clustering: usize) -> bool {
        self.clustering.get(clustering).is_some_and(|(_, is_descending)| *is_descending)
    }

    /// The partition of a row, by the columns of its partition key.
    pub(super) fn partition(&self, columns: &[&ColumnBatch], row: usize) -> Result<Partition> {
        let lacks = || Error::corrupt("a row without a partition key");
        let mut stored = Vec::new();
        for ((_, native), column) in self.partition.iter().zip(columns) {
            let value =
                Value::of_values(&column.values, row).filter(|_| !column.is_null(row)).ok_or_else(lacks)?;
            let start = stored.len();
            if self.partition.len() > 1 {
                stored.extend([0, 0]);
            }
            let first = stored.len();
            append(native, value, &mut stored).ok_or_else(lacks)?;
            if self.partition.len() > 1 {
                let length = u16::try_from(stored.len() - first).map_err(|_| lacks())?;
                stored[start..first].copy_from_slice(&length.to_be_bytes());
                stored.push(0);
            }
        }
        Ok((murmur3_token(&stored), stored))
    }
}

fn of_partition(key: &KeyColumn) -> Option<(String, CqlType)> {
    use CqlType as T;
    let MarshalType::Native(native) = &key.kind else { return None };
    let is_simple = matches!(
        native,
        T::Text
            | T::Ascii
            | T::Blob
            | T::Uuid
            | T::Timeuuid
            | T::Tinyint
            | T::Smallint
            | T::Int
            | T::Bigint
            | T::Timestamp
            | T::Date
            | T::Time
            | T::Boolean
    );
    is_simple.then(|| (key.name.clone(), native.clone()))
}

fn of_clustering(key: &KeyColumn) -> Option<(String, bool)> {
    use CqlType as T;
    let (kind, is_descending) = match &key.kind {
        MarshalType::Reversed(inner) => (&**inner, true),
        kind => (kind, false),
    };
    let MarshalType::Native(native) = kind else { return None };
    let is_natural = matches!(
        native,
        T::Text
            | T::Ascii
            | T::Blob
            | T::Tinyint
            | T::Smallint
            | T::Int
            | T::Bigint
            | T::Timestamp
            | T::Date
            | T::Time
            | T::Boolean
    );
    is_natural.then(|| (key.name.clone(), is_descending))
}

/// Appends a value as servers store it.
fn append(native: &CqlType, value: Value<'_>, out: &mut Vec<u8>) -> Option<()> {
    match (native, value) {
        (CqlType::Boolean, Value::Boolean(value)) => out.push(value.into()),
        (CqlType::Tinyint, Value::Int32(value)) => out.extend(i8::try_from(value).ok()?.to_be_bytes()),
        (CqlType::Smallint, Value::Int32(value)) => out.extend(i16::try_from(value).ok()?.to_be_bytes()),
        (CqlType::Int, Value::Int32(value)) => out.extend(value.to_be_bytes()),
        // Days from the middle of the range.
        (CqlType::Date, Value::Int32(value)) => out.extend((value ^ i32::MIN).to_be_bytes()),
        (CqlType::Bigint | CqlType::Timestamp | CqlType::Time, Value::Int64(value)) => {
            out.extend(value.to_be_bytes())
        }
        (
            CqlType::Text | CqlType::Ascii | CqlType::Blob | CqlType::Uuid | CqlType::Timeuuid,
            Value::Bytes(value),
        ) => {
            out.extend_from_slice(value);
        }
        _ => return None,
    }
    Some(())
}
