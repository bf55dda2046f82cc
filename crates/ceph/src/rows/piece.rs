//! Pieces of a row object: each a table of rows, in what the Skyhook project wraps all that it stores in.
//!
//! ```text
//! object   piece …
//! piece    length (u32) · FB_Meta   (as Ceph encodes a list of buffers)
//! FB_Meta  format of the data (i32) · data · its length (u64) · whether it is deleted (bool) · …
//! Table    …, data_schema, …, delete_vector, rows, nrows
//! Record   RID (u64) · nullbits ([u64]) · data (a FlexBuffer)
//! ```
//!
//! Source: `fb_meta.fbs`, `skyhookv2.fbs` and `sky_tabular_flatflex_writer.cc` of github.com/uccross/skyhookdm-ceph-cls.

use arrow_array::RecordBatch;
use flatbuffers::{FlatBufferBuilder, WIPOffset};
use marquetry_base::cast::{low_u32, u64_of};
use marquetry_base::{Error, Result};

use super::flat::{Table, Vector};
use super::flex::{self, Row, Value};
use super::types::{COLUMNS_MAX, Cells, Column, Type, columns_of, text_of};

/// `SFT_FLATBUF_FLEX_ROW`.
const FLEX_ROWS: i32 = 1;

/// The fields of `FB_Meta`, of `Table`, and of `Record`, by number.
const BLOB_FORMAT: usize = 0;
const BLOB_DATA: usize = 1;
const BLOB_SIZE: usize = 2;
const BLOB_DELETED: usize = 3;
const BLOB_COMPRESSION: usize = 6;
const FORMAT_TYPE: usize = 0;
const VERSION: usize = 1;
const STRUCTURE_VERSION: usize = 2;
const SCHEMA_VERSION: usize = 3;
const DATA_SCHEMA: usize = 4;
const DB_SCHEMA: usize = 5;
const TABLE_NAME: usize = 6;
const DELETE_VECTOR: usize = 7;
const ROWS: usize = 8;
const ROW_COUNT: usize = 9;
const RID: usize = 0;
const NULL_BITS: usize = 1;
const DATA: usize = 2;

/// A table of rows, which nobody has looked at beyond its head.
pub(super) struct Piece<'a> {
    pub(super) columns: Vec<Column>,
    rows: Vector<'a>,
    deleted: &'a [u8],
}

impl<'a> Piece<'a> {
    /// The table in a piece, without its length; `None` for one that is deleted.
    pub(super) fn of(bytes: &'a [u8]) -> Result<Option<Piece<'a>>> {
        let meta = Table::root(bytes)?;
        if meta.bool(BLOB_DELETED)? {
            return Ok(None);
        }
        let (format, compression) = (meta.i32(BLOB_FORMAT)?, meta.i32(BLOB_COMPRESSION)?);
        if format != FLEX_ROWS || compression != 0 {
            let message = format!("a piece of format {format} and compression {compression} in a row object");
            return Err(Error::unsupported(message));
        }
        let table = Table::root(meta.bytes(BLOB_DATA)?)?;
        let rows = table.vector(ROWS, 4)?;
        if usize::try_from(table.u32(ROW_COUNT)?).ok() != Some(rows.length) {
            return Err(Error::corrupt("a table of rows that has another number of them than it says"));
        }
        let columns = columns_of(table.text(DATA_SCHEMA)?)?;
        Ok(Some(Piece { columns, rows, deleted: table.bytes(DELETE_VECTOR)? }))
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.length
    }

    /// A row, of which no value has been looked at; `None` if it is deleted.
    pub(super) fn record(&self, index: usize) -> Result<Option<Record<'a>>> {
        if self.deleted.get(index).is_some_and(|deleted| *deleted != 0) {
            return Ok(None);
        }
        let record = self.rows.table(index)?;
        let nulls = record.vector(NULL_BITS, 8)?;
        let nulls = [nulls.u64(0)?, nulls.u64(1)?];
        Ok(Some(Record { nulls, row: Row::of(record.bytes(DATA)?)? }))
    }
}

/// A row of a piece.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    nulls: [u64; 2],
    row: Row<'a>,
}

impl<'a> Record<'a> {
    /// The value at a place of the row.
    #[inline]
    pub(super) fn value(&self, at: usize) -> Result<Value<'a>> {
        if self.is_null(at) { Ok(Value::Null) } else { self.row.get(at) }
    }

    /// How long the text at a place is; 0 if there is none.
    pub(super) fn text_length(&self, at: usize) -> Result<usize> {
        if self.is_null(at) { Ok(0) } else { self.row.text_length(at) }
    }

    /// The first column's bit is the highest one.
    #[inline]
    fn is_null(&self, at: usize) -> bool {
        self.nulls.get(at / 64).is_some_and(|bits| bits >> (63 - at % 64) & 1 == 1)
    }
}

/// A piece of these rows, with its length. The first of them gets this number.
pub(crate) fn write(batch: &RecordBatch, first_rid: u64) -> Result<Vec<u8>> {
    let schema = batch.schema();
    if schema.fields().len() > COLUMNS_MAX {
        return Err(Error::unsupported(format!("rows of more than {COLUMNS_MAX} columns")));
    }
    let mut columns = Vec::new();
    for (at, field) in schema.fields().iter().enumerate() {
        let data_type = Type::of_arrow(field)?;
        let (is_nullable, name) = (field.is_nullable(), field.name().clone());
        columns.push(Column { at, data_type, is_nullable, name });
    }
    let cells: Vec<Cells<'_>> = batch.columns().iter().map(Cells::of).collect();
    let mut builder = FlatBufferBuilder::new();
    let (mut records, mut row_bytes) = (Vec::with_capacity(batch.num_rows()), Vec::new());
    for row in 0..batch.num_rows() {
        let (mut values, mut nulls) = (Vec::with_capacity(cells.len()), [0_u64; 2]);
        for (at, (cells, column)) in cells.iter().zip(&columns).enumerate() {
            let value = cells.get(row)?;
            if value == Value::Null {
                nulls[at / 64] |= 1 << (63 - at % 64);
            }
            values.push(if value == Value::Null { in_place_of_null(column.data_type) } else { value });
        }
        flex::write(&values, &mut row_bytes);
        let data = builder.create_vector(row_bytes.as_slice());
        let nulls = builder.create_vector(&nulls);
        let start = builder.start_table();
        builder.push_slot::<u64>(slot(RID), first_rid + u64_of(row), 0);
        builder.push_slot_always::<WIPOffset<_>>(slot(DATA), data);
        builder.push_slot_always::<WIPOffset<_>>(slot(NULL_BITS), nulls);
        records.push(builder.end_table(start));
    }
    let rows = builder.create_vector(&records);
    let deleted = builder.create_vector(&vec![0_u8; batch.num_rows()]);
    let table_name = builder.create_string("*");
    let data_schema = builder.create_string(&text_of(&columns)?);
    let start = builder.start_table();
    builder.push_slot_always::<i32>(slot(FORMAT_TYPE), FLEX_ROWS);
    builder.push_slot_always::<i32>(slot(VERSION), 2);
    builder.push_slot_always::<i32>(slot(STRUCTURE_VERSION), 1);
    builder.push_slot_always::<i32>(slot(SCHEMA_VERSION), 1);
    builder.push_slot_always::<WIPOffset<_>>(slot(DATA_SCHEMA), data_schema);
    builder.push_slot_always::<WIPOffset<_>>(slot(DB_SCHEMA), table_name);
    builder.push_slot_always::<WIPOffset<_>>(slot(TABLE_NAME), table_name);
    builder.push_slot_always::<WIPOffset<_>>(slot(DELETE_VECTOR), deleted);
    builder.push_slot_always::<WIPOffset<_>>(slot(ROWS), rows);
    builder.push_slot_always::<u32>(slot(ROW_COUNT), low_u32(u64_of(batch.num_rows())));
    let table = builder.end_table(start);
    builder.finish_minimal(table);

    let mut meta = FlatBufferBuilder::new();
    let data = meta.create_vector(builder.finished_data());
    let start = meta.start_table();
    meta.push_slot::<u64>(slot(BLOB_SIZE), u64_of(builder.finished_data().len()), 0);
    meta.push_slot_always::<WIPOffset<_>>(slot(BLOB_DATA), data);
    meta.push_slot_always::<i32>(slot(BLOB_FORMAT), FLEX_ROWS);
    let root = meta.end_table(start);
    meta.finish_minimal(root);
    let data = meta.finished_data();
    let length = u32::try_from(data.len()).map_err(|_| Error::too_large("a piece of rows"))?;
    Ok([&length.to_le_bytes(), data].concat())
}

/// Where a vtable has a field.
fn slot(field: usize) -> u16 {
    u16::try_from(4 + 2 * field).unwrap_or(u16::MAX)
}

/// What stands in the place of a null, so that the columns after it are where they are.
fn in_place_of_null(data_type: Type) -> Value<'static> {
    match data_type {
        Type::Bool => Value::Bool(false),
        Type::Float | Type::Double => Value::Float(0.0),
        Type::Date => Value::Text("0000-00-00"),
        Type::String => Value::Text(""),
        Type::Uint8 | Type::Uint16 | Type::Uint32 | Type::Uint64 | Type::Uchar => Value::Uint(0),
        Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64 | Type::Char => Value::Int(0),
    }
}
