//! Marquetry's own part in the reading benchmark: the one place that knows its reader.

use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::{Error, Limits, Object};
use marquetry_codecs::StandardCodecs;
use marquetry_io::memory::Memory;
use marquetry_io::{ByteSources, drive};
use marquetry_parquet::batch::{Array, ArrayKind, Assembler, ColumnBatch, Layout, Values};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};

use crate::protocol::{Count, Product, sum};

const FILE: Object = Object(0);

/// Reads the file once, all columns, from the first row group to the last, and lets go of each batch before asking for the next.
///
/// * [`Product::Dense`]: dense values and definition levels (or the validity made of them), whatever the encoding was;
/// * [`Product::Arrow`]: arrays that an Arrow consumer takes as they are, strings flat or as views;
/// * [`Product::Dictionary`]: the same, but a dictionary stays a dictionary: indices, and its values once.
///
/// A batch has `batch_rows` rows, whatever bytes they take, or as many as it has by default, which is the best of 1,024 … 16,384.
///
/// `check` asks for [`Count::sum`] too, which [`crate::protocol::Sum`] computes; that call is not timed.
///
/// # Errors
/// What the reader reports, as text for the driver to print; and that [`Product::Records`] is the command's, not the reader's.
pub fn read(file: &Bytes, product: Product, batch_rows: Option<usize>, check: bool) -> Result<Count, String> {
    try_read(file, product, batch_rows, check).map_err(|error| error.to_string())
}

fn try_read(file: &Bytes, product: Product, batch_rows: Option<usize>, check: bool) -> Result<Count, Error> {
    if product == Product::Records {
        return Err(Error::misuse("records are printed by the command"));
    }
    let sources = ByteSources::new().with(FILE, Memory::new("file", file.clone()));
    let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
    let metadata = drive(&mut footer, &sources)?.ok_or_else(|| Error::internal("no metadata"))?;
    let options = ReadOptions {
        batch_rows: batch_rows.unwrap_or(ReadOptions::default().batch_rows),
        batch_bytes: batch_rows.map_or(ReadOptions::default().batch_bytes, |_| usize::MAX),
        layout: if product == Product::Dense { Layout::Dense } else { Layout::Spaced },
        keep_dictionaries: product == Product::Dictionary,
        // Arrow's strings are UTF-8; Arrow C++ takes the file's word for it, parquet-rs does not.
        verify_utf8: product != Product::Dense,
        ..ReadOptions::default()
    };
    // Flat columns are Arrow arrays as they come; nested ones are assembled.
    let schema = &metadata.schema;
    let is_nested = |node: &usize| schema.leaves_of(*node).any(|leaf| !schema.leaves()[leaf].is_flat());
    let nested = schema.children(0).filter(is_nested);
    let mut assemblers: Vec<Assembler> =
        nested.map(|node| Assembler::new(Arc::clone(schema), node, None, &Limits::DEFAULT)).collect();
    let mut reader =
        BatchReader::new(FILE, Arc::clone(&metadata), Arc::new(StandardCodecs::default()), options)?;
    let mut count = Count::default();
    while let Some(batch) = drive(&mut reader, &sources)? {
        count.rows += batch.rows as u64;
        if check {
            for column in batch.columns.iter().filter(|column| column.levels.is_none()) {
                count.sum = count.sum.wrapping_add(column_sum(column, &column.values));
            }
        }
        // A batch of arrays is whole before it is let go.
        let mut arrays = Vec::with_capacity(assemblers.len());
        for assembler in &mut assemblers {
            arrays.push(assembler.assemble(&batch, &|leaf| batch.columns.get(leaf))?);
        }
        if check {
            let sums = arrays.iter().map(|array| array_sum(array, &|_| true));
            count.sum = sums.fold(count.sum, u64::wrapping_add);
        }
    }
    Ok(count)
}

/// The proof of reading a column: its values that are there.
fn column_sum(column: &ColumnBatch, values: &Values) -> u64 {
    values_sum(values, &|index| column.layout == Layout::Dense || !column.is_null(index))
}

/// The proof of reading an array; `is_there` tells of the slots of the structs around it.
fn array_sum(array: &Array, is_there: &dyn Fn(usize) -> bool) -> u64 {
    let is_there = |slot: usize| is_there(slot) && array.validity.as_ref().is_none_or(|bits| bits.get(slot));
    let there = (0..array.length).filter(|&slot| is_there(slot)).count() as u64;
    // No struct is around elements whose nulls could hide them.
    let elements = |array: &Array| (array.length as u64).wrapping_add(array_sum(array, &|_| true));
    match &array.kind {
        ArrayKind::Values(values) => values_sum(values, &is_there),
        ArrayKind::Struct(fields) => {
            fields.iter().map(|field| array_sum(field, &is_there)).fold(there, u64::wrapping_add)
        }
        ArrayKind::List(_, element) => there.wrapping_add(elements(element)),
        // An entry is an element, and a struct.
        ArrayKind::Map(_, key, value) => {
            let value = value.as_ref().map_or(0, |value| elements(value));
            there.wrapping_add(elements(key)).wrapping_add(value)
        }
    }
}

fn values_sum(values: &Values, is_there: &dyn Fn(usize) -> bool) -> u64 {
    let indices = (0..values.len()).filter(|&index| is_there(index));
    match values {
        Values::Boolean(values) => sum(indices.map(|index| values.get(index))),
        Values::Int32(values) => sum(indices.map(|index| values[index])),
        Values::Int64(values) => sum(indices.map(|index| values[index])),
        Values::Float(values) => sum(indices.map(|index| values[index])),
        Values::Double(values) => sum(indices.map(|index| values[index])),
        Values::FixedLenByteArray(values) => sum(indices.map(|index| values.get(index))),
        Values::ByteArray(values) => sum(indices.map(|index| values.get(index))),
        Values::Dictionary(keys, entries) => match &**entries {
            Values::Int32(entries) => sum(indices.map(|index| entries[keys[index] as usize])),
            Values::Int64(entries) => sum(indices.map(|index| entries[keys[index] as usize])),
            Values::Double(entries) => sum(indices.map(|index| entries[keys[index] as usize])),
            Values::ByteArray(entries) => sum(indices.map(|index| entries.get(keys[index] as usize))),
            _ => u64::MAX,
        },
        // A type that no file of this benchmark has: the proof fails.
        _ => u64::MAX,
    }
}
