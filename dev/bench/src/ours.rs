//! Marquetry's own part in the reading benchmark: the one place that knows its reader.

use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::{Error, Limits, Object};
use marquetry_codecs::StandardCodecs;
use marquetry_io::memory::Memory;
use marquetry_io::{Sources, drive};
use marquetry_parquet::read::{BatchReader, ColumnBatch, FooterReader, Layout, ReadOptions, Values};

use crate::protocol::{Count, Product, sum};

const FILE: Object = Object(0);

/// Reads the file's only column once, from the first row group to the last, and lets go of each batch before asking for the next.
///
/// * [`Product::Dense`]: dense values and definition levels (or the validity made of them), whatever the encoding was;
/// * [`Product::Arrow`]: arrays that an Arrow consumer takes as they are, strings flat or as views;
/// * [`Product::Dictionary`]: the same, but a dictionary stays a dictionary: indices, and its values once.
///
/// `check` asks for [`Count::sum`] too, which [`crate::protocol::Sum`] computes; that call is not timed.
///
/// # Errors
/// What the reader reports, as text for the driver to print.
pub fn read(file: &Bytes, product: Product, check: bool) -> Result<Count, String> {
    try_read(file, product, check).map_err(|error| error.to_string())
}

fn try_read(file: &Bytes, product: Product, check: bool) -> Result<Count, Error> {
    let sources = Sources::new().with(FILE, Memory::new("file", file.clone()));
    let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
    let metadata = drive(&mut footer, &sources)?.ok_or_else(|| Error::internal("no metadata"))?;
    let options = ReadOptions {
        layout: if product == Product::Dense { Layout::Dense } else { Layout::Spaced },
        keep_dictionaries: product == Product::Dictionary,
        // Arrow's strings are UTF-8; Arrow C++ takes the file's word for it, parquet-rs does not.
        verify_utf8: product != Product::Dense,
        ..ReadOptions::default()
    };
    let mut reader = BatchReader::new(FILE, metadata, Arc::new(StandardCodecs::default()), options)?;
    let mut count = Count::default();
    while let Some(batch) = drive(&mut reader, &sources)? {
        count.rows += batch.rows as u64;
        if check {
            for column in &batch.columns {
                count.sum = count.sum.wrapping_add(column_sum(column, &column.values));
            }
        }
    }
    Ok(count)
}

/// The proof of reading a column: its values that are there.
fn column_sum(column: &ColumnBatch, values: &Values) -> u64 {
    let there = |index: &usize| column.layout == Layout::Dense || !column.is_null(*index);
    let indices = (0..values.len()).filter(there);
    match values {
        Values::Int32(values) => sum(indices.map(|index| values[index])),
        Values::Int64(values) => sum(indices.map(|index| values[index])),
        Values::Double(values) => sum(indices.map(|index| values[index])),
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
