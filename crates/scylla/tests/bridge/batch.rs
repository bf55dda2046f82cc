//! Hand-made batches, and what they are written as.

use std::sync::Arc;

use marquetry_base::{Buffer, Result};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, FixedBytes, Layout, Values};
use marquetry_scylla::bridge::{Cell, InsertWriter, MappedBatch, Mapping, MappingOptions};
use marquetry_scylla::cql::{KeySpec, Name, TableName};

use crate::schema::{Field, metadata};

/// A mapping to the table `t`.
pub(crate) fn mapping(fields: &[Field], options: &MappingOptions) -> Result<Mapping> {
    Mapping::new(&metadata(fields).schema, TableName::parse("t").unwrap(), options)
}

/// The rows are counted in a column `n`, the key.
pub(crate) fn numbered() -> MappingOptions {
    MappingOptions { row_number: Some(Name::new("n").unwrap()), ..MappingOptions::default() }
}

/// With this key.
pub(crate) fn keyed(key: &str) -> MappingOptions {
    MappingOptions { key: Some(KeySpec::parse(key).unwrap()), ..MappingOptions::default() }
}

/// A batch of row group 2 whose first row is the file's row 1000. A column's rows are null where `valid` has a 0.
pub(crate) fn batch(columns: Vec<(Values, Option<&[u8]>)>) -> Batch {
    let rows = columns.first().map_or(0, |(values, _)| values.len());
    let column = |(leaf, (values, valid)): (usize, (Values, Option<&[u8]>))| {
        let nulls = valid.map_or(0, |valid| valid.iter().filter(|bit| **bit == 0).count());
        let validity = valid.map(|valid| valid.iter().map(|bit| *bit == 1).collect());
        ColumnBatch {
            leaf,
            rows,
            nulls,
            validity,
            values,
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        }
    };
    Batch {
        row_group: 2,
        first_row: 1000,
        rows,
        columns: columns.into_iter().enumerate().map(column).collect(),
    }
}

pub(crate) fn int32(values: &[i32]) -> Values {
    Values::Int32(values.to_vec().into())
}

pub(crate) fn int64(values: &[i64]) -> Values {
    Values::Int64(values.to_vec().into())
}

pub(crate) fn fixed(values: &[&[u8]]) -> Values {
    Values::FixedLenByteArray(fixed_bytes(values))
}

pub(crate) fn fixed_bytes(values: &[&[u8]]) -> FixedBytes {
    FixedBytes::new(values[0].len(), values.len(), values.concat().into())
}

pub(crate) fn bytes<T: AsRef<[u8]>>(values: &[T]) -> Values {
    let mut buffer = b"before".to_vec();
    let view = |value: &T| {
        let value = value.as_ref();
        let mut view = [0; 16];
        view[..4].copy_from_slice(&(value.len() as u32).to_le_bytes());
        if value.len() <= 12 {
            view[4..4 + value.len()].copy_from_slice(value);
        } else {
            view[4..8].copy_from_slice(&value[..4]);
            view[12..].copy_from_slice(&(buffer.len() as u32).to_le_bytes());
            buffer.extend_from_slice(value);
        }
        u128::from_le_bytes(view)
    };
    let views: Vec<u128> = values.iter().map(view).collect();
    Values::ByteArray(ByteArrays::new(Buffer::from(views), Arc::new(vec![buffer.into()])))
}

pub(crate) fn dictionary(indices: &[u32], values: &Arc<Values>) -> Values {
    Values::Dictionary(indices.to_vec().into(), Arc::clone(values))
}

/// The batch as the mapping has it.
pub(crate) fn mapped(mapping: &Mapping, batch: &Batch) -> MappedBatch {
    mapping.assemble(batch.clone()).unwrap()
}

/// All rows as text.
pub(crate) fn text(mapping: &Mapping, batch: &Batch) -> Result<String> {
    let mut out = Vec::new();
    let batch = mapping.assemble(batch.clone())?;
    let written = InsertWriter::new(mapping).write(&batch, 0..batch.rows(), 0, &mut out, usize::MAX)?;
    assert_eq!(written.next_row, batch.rows());
    Ok(String::from_utf8(out).unwrap())
}

/// One cell; `None` for a null. Earlier contents of the buffer stay.
pub(crate) fn cell(mapping: &Mapping, column: usize, batch: &Batch, row: usize) -> Result<Option<Vec<u8>>> {
    let mut out = b"before".to_vec();
    let batch = mapping.assemble(batch.clone())?;
    let cell = mapping.bind(&batch, 0)?.write_cell(column, row, &mut out);
    let added = out.strip_prefix(b"before").unwrap().to_vec();
    match cell {
        Ok(Cell::Value) => Ok(Some(added)),
        nothing => {
            assert_eq!(added, []);
            nothing.map(|_| None)
        }
    }
}
