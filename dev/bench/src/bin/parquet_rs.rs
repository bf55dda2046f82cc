//! parquet-rs as a contestant: `bench-parquet-rs PRODUCT FILE [BATCH_ROWS]`.
//!
//! Strings are read as views, which is the fastest of the forms that it offers.
#![forbid(unsafe_code)]
// Offsets of Arrow arrays are never negative.
#![allow(clippy::cast_sign_loss)]

use std::process::ExitCode;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, cast::downcast_array};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use marquetry_bench::protocol::{Count, Product, Sum, refuse, serve, sum};
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType as PhysicalType, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

/// The best of 1,024 … 131,072 in most cases: dense values like to stay in the first-level cache.
const BATCH_ROWS_DENSE: usize = 1_024;

/// The best of 1,024 … 131,072 in most cases: arrays are allocated anew for each batch.
const BATCH_ROWS_ARROW: usize = 32_768;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (product, path, batch_rows) = match &arguments[..] {
        [product, path] => (product, path, None),
        [product, path, batch_rows] => (product, path, Some(batch_rows.parse())),
        _ => return refuse("usage: bench-parquet-rs PRODUCT FILE [BATCH_ROWS]"),
    };
    let Some(product) = Product::from_name(product) else {
        return refuse(&format!("no product is called {product}"));
    };
    let batch_rows = match (batch_rows, product) {
        (Some(Ok(batch_rows)), _) => batch_rows,
        (Some(Err(error)), _) => return refuse(&format!("BATCH_ROWS: {error}")),
        (None, Product::Dense) => BATCH_ROWS_DENSE,
        (None, _) => BATCH_ROWS_ARROW,
    };
    let file = match std::fs::read(path) {
        Ok(file) => Bytes::from(file),
        Err(error) => return refuse(&format!("{path}: {error}")),
    };
    serve(parquet_version(), |check| {
        let found = match product {
            Product::Dense => read_dense(&file, batch_rows, check),
            Product::Arrow | Product::Dictionary => read_arrow(&file, product, batch_rows, check),
            Product::Records => return Err("this contestant prints no records".to_owned()),
        };
        found.map_err(|error| error.to_string())
    })
}

fn parquet_version() -> &'static str {
    parquet::file::properties::DEFAULT_CREATED_BY.trim_start_matches("parquet-rs version ")
}

/// The low-level column readers, into buffers that are reused.
fn read_dense(file: &Bytes, batch_rows: usize, check: bool) -> Result<Count, ParquetError> {
    let mut count = Count::default();
    let reader = SerializedFileReader::new(file.clone())?;
    for group in 0..reader.num_row_groups() {
        match reader.get_row_group(group)?.get_column_reader(0)? {
            ColumnReader::Int32ColumnReader(chunk) => {
                read_chunk(chunk, batch_rows, check, &mut count, Sum::bits)?
            }
            ColumnReader::Int64ColumnReader(chunk) => {
                read_chunk(chunk, batch_rows, check, &mut count, Sum::bits)?
            }
            ColumnReader::DoubleColumnReader(chunk) => {
                read_chunk(chunk, batch_rows, check, &mut count, Sum::bits)?
            }
            ColumnReader::FloatColumnReader(chunk) => {
                read_chunk(chunk, batch_rows, check, &mut count, Sum::bits)?
            }
            ColumnReader::BoolColumnReader(chunk) => {
                read_chunk(chunk, batch_rows, check, &mut count, Sum::bits)?
            }
            ColumnReader::FixedLenByteArrayColumnReader(chunk) => {
                let bits = |value: &FixedLenByteArray| value.data().bits();
                read_chunk(chunk, batch_rows, check, &mut count, bits)?;
            }
            ColumnReader::ByteArrayColumnReader(chunk) => {
                read_chunk(chunk, batch_rows, check, &mut count, |value: &ByteArray| value.data().bits())?;
            }
            _ => return Err(ParquetError::General("a type that no case has".to_owned())),
        }
    }
    Ok(count)
}

fn read_chunk<T: PhysicalType>(
    mut reader: ColumnReaderImpl<T>,
    batch_rows: usize,
    check: bool,
    count: &mut Count,
    bits: impl Fn(&T::T) -> u64,
) -> Result<(), ParquetError> {
    let mut values = Vec::with_capacity(batch_rows);
    let mut levels = Vec::with_capacity(batch_rows);
    loop {
        values.clear();
        levels.clear();
        let (rows, _, _) = reader.read_records(batch_rows, Some(&mut levels), None, &mut values)?;
        if rows == 0 {
            return Ok(());
        }
        count.rows += rows as u64;
        if check {
            count.sum = values.iter().fold(count.sum, |sum, value| sum.wrapping_add(bits(value)));
        }
    }
}

fn read_arrow(file: &Bytes, product: Product, batch_rows: usize, check: bool) -> Result<Count, ParquetError> {
    let mut builder = ParquetRecordBatchReaderBuilder::try_new(file.clone())?;
    let fields = builder.schema().fields().iter();
    let wanted: Vec<_> = fields.map(|field| Arc::new(wanted(field, product))).collect();
    if !wanted.iter().eq(builder.schema().fields()) {
        let options = ArrowReaderOptions::new().with_schema(Arc::new(Schema::new(wanted)));
        builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options)?;
    }
    let mut count = Count::default();
    for batch in builder.with_batch_size(batch_rows).build()? {
        let batch = batch?;
        count.rows += batch.num_rows() as u64;
        if check {
            for column in batch.columns() {
                count.sum = count.sum.wrapping_add(sum_of(column)?);
            }
        }
    }
    Ok(count)
}

/// A field with its strings, however deep, as they are wanted.
fn wanted(field: &Field, product: Product) -> Field {
    let below = |field: &Arc<Field>| Arc::new(wanted(field, product));
    let data_type = match field.data_type() {
        DataType::Utf8 if product == Product::Dictionary => {
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
        }
        DataType::Utf8 => DataType::Utf8View,
        DataType::List(element) => DataType::List(below(element)),
        DataType::Map(entries, is_sorted) => DataType::Map(below(entries), *is_sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(below).collect()),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

fn sum_of(column: &ArrayRef) -> Result<u64, ParquetError> {
    Ok(match column.data_type() {
        DataType::Int32 => sum(column.as_primitive::<Int32Type>().iter().flatten()),
        DataType::Int64 => sum(column.as_primitive::<Int64Type>().iter().flatten()),
        DataType::Float64 => sum(column.as_primitive::<Float64Type>().iter().flatten()),
        DataType::Float32 => sum(column.as_primitive::<Float32Type>().iter().flatten()),
        DataType::Boolean => sum(column.as_boolean().iter().flatten()),
        DataType::FixedSizeBinary(_) => sum(column.as_fixed_size_binary().iter().flatten()),
        DataType::Utf8View => sum(column.as_string_view().iter().flatten().map(str::as_bytes)),
        DataType::Dictionary(_, _) => {
            let column: arrow_array::DictionaryArray<Int32Type> = downcast_array(column.as_ref());
            let values = column.values().as_string::<i32>();
            let keys = column.keys().iter().flatten().filter_map(|key| usize::try_from(key).ok());
            sum(keys.map(|key| values.value(key).as_bytes()))
        }
        DataType::List(_) => {
            let list = column.as_list::<i32>();
            let there = (0..list.len()).filter(|&slot| list.is_valid(slot)).count() as u64;
            // What is in the offsets' range: nothing else, for a null list has no elements.
            let offsets = list.value_offsets();
            let (first, behind) = (offsets[0], offsets[list.len()]);
            let elements = list.values().slice(first as usize, (behind - first) as usize);
            (there + elements.len() as u64).wrapping_add(sum_of(&elements)?)
        }
        DataType::Map(..) => {
            let map = column.as_map();
            let there = (0..map.len()).filter(|&slot| map.is_valid(slot)).count() as u64;
            let (first, behind) = (map.value_offsets()[0], map.value_offsets()[map.len()]);
            let entries: ArrayRef = Arc::new(map.entries().slice(first as usize, (behind - first) as usize));
            (there + entries.len() as u64).wrapping_add(sum_of(&entries)?)
        }
        DataType::Struct(_) => {
            let group = column.as_struct();
            let there = (0..group.len()).filter(|&slot| group.is_valid(slot)).count() as u64;
            let fields = group.columns().iter().map(sum_of);
            fields.collect::<Result<Vec<_>, _>>()?.into_iter().fold(there, u64::wrapping_add)
        }
        other => return Err(ParquetError::General(format!("a product that no case has: {other}"))),
    })
}
