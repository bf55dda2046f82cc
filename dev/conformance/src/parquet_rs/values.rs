//! What parquet-rs reads of a file's columns: levels and values, column chunk by column chunk.

use std::sync::Arc;

use marquetry_base::Bytes;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::schema::Leaf;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType, FixedLenByteArray, Int96};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::{NOT_BY_PARQUET_RS, same};
use crate::leaves::{self, LeafSum};

/// Rows that are asked for at once.
const ROWS: usize = 1000;

/// Compares all values and levels of a file with what we read of it; says how many columns there are.
///
/// # Errors
///
/// What differs, or what either of the two cannot read.
pub fn compare(bytes: &Bytes, metadata: &Arc<FileMetaData>) -> Result<usize, String> {
    let reader = match SerializedFileReader::new(bytes.clone()) {
        Ok(reader) => reader,
        Err(error) if NOT_BY_PARQUET_RS.iter().any(|part| error.to_string().contains(part)) => return Ok(0),
        Err(error) => return Err(format!("parquet-rs does not read it: {error}")),
    };
    let ours = leaves::of_file(bytes, metadata).map_err(|error| format!("{error:?}"))?;
    for (number, (leaf, ours)) in metadata.schema.leaves().iter().zip(&ours).enumerate() {
        let path = metadata.schema.path(leaf.node);
        let theirs = leaf_sum(&reader, number, leaf, &path).map_err(|error| format!("{path}: {error}"))?;
        same("column", ours, &theirs)?;
    }
    Ok(ours.len())
}

/// The sum of a leaf, all row groups one after the other.
fn leaf_sum(
    reader: &SerializedFileReader<Bytes>,
    number: usize,
    leaf: &Leaf,
    path: &str,
) -> Result<LeafSum, String> {
    let mut sum = LeafSum::new(path);
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(|error| error.to_string())?;
        let column = group.get_column_reader(number).map_err(|error| error.to_string())?;
        let added = match column {
            ColumnReader::BoolColumnReader(column) => add(column, leaf, &mut sum),
            ColumnReader::Int32ColumnReader(column) => add(column, leaf, &mut sum),
            ColumnReader::Int64ColumnReader(column) => add(column, leaf, &mut sum),
            ColumnReader::Int96ColumnReader(column) => add(column, leaf, &mut sum),
            ColumnReader::FloatColumnReader(column) => add(column, leaf, &mut sum),
            ColumnReader::DoubleColumnReader(column) => add(column, leaf, &mut sum),
            ColumnReader::ByteArrayColumnReader(column) => add(column, leaf, &mut sum),
            ColumnReader::FixedLenByteArrayColumnReader(column) => add(column, leaf, &mut sum),
        };
        added.map_err(|error| error.to_string())?;
    }
    Ok(sum)
}

/// Adds a column chunk.
fn add<T>(mut column: ColumnReaderImpl<T>, leaf: &Leaf, sum: &mut LeafSum) -> parquet::errors::Result<()>
where
    T: DataType,
    T::T: Plain,
{
    let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        definition.clear();
        repetition.clear();
        values.clear();
        let (rows, found, entries) =
            column.read_records(ROWS, Some(&mut definition), Some(&mut repetition), &mut values)?;
        if rows == 0 {
            return Ok(());
        }
        sum.rows += rows as u64;
        sum.nulls += (entries - found) as u64;
        let level =
            |levels: &[i16], entry: usize| levels.get(entry).map_or(0, |&level| level.to_le_bytes()[0]);
        if leaf.is_flat() {
            let is_null = |entry| u16::from(level(&definition, entry)) < leaf.definition_max;
            sum.add_flat((0..entries).map(is_null));
        } else {
            sum.add_levels((0..entries).map(|entry| (level(&definition, entry), level(&repetition, entry))));
        }
        let mut of_values = sum.values();
        values.iter().for_each(|value| value.with_plain(|bytes| of_values.add(bytes)));
        sum.values = of_values.0.finalize();
    }
}

/// A value that has a form in PLAIN, where a boolean is a byte.
trait Plain {
    fn with_plain(&self, take: impl FnMut(&[u8]));
}

macro_rules! plain {
    ($($type:ty: $value:ident => $bytes:expr),* $(,)?) => {
        $(
            impl Plain for $type {
                fn with_plain(&self, mut take: impl FnMut(&[u8])) {
                    let $value = self;
                    take($bytes);
                }
            }
        )*
    };
}

plain! {
    bool: value => &[u8::from(*value)],
    i32: value => &value.to_le_bytes(),
    i64: value => &value.to_le_bytes(),
    f32: value => &value.to_le_bytes(),
    f64: value => &value.to_le_bytes(),
    Int96: value => &value.data().iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>(),
    ByteArray: value => value.data(),
    FixedLenByteArray: value => value.data(),
}
