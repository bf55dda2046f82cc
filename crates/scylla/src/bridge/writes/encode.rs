//! From rows of a mapping to records.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use super::record::{RowRecords, push_deleted, push_head, push_length, push_unset, set_length};
use super::sorted::Sorted;
use crate::bridge::{BoundBatch, Cell, Mapping, Nulls};
use crate::cql::{CqlType, TableDef, TypeDef};
use crate::sstable::batch::Expiry;
use crate::sstable::marshal::MarshalType;
use crate::sstable::write::{Comparable, push_escaped};
use crate::sstable::{TableColumns, murmur3_token};

/// The most bytes of a partition key, and of a clustering value: their lengths have 16 bits.
const KEY_BYTES_MAX: usize = 65_535;
/// The value of a collection without elements.
const NO_ITEMS: [u8; 4] = [0; 4];

/// When a row was written, and when it expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowStamp {
    /// Its write time: microseconds since 1970 by convention.
    pub write_time_us: i64,
    /// When it expires. `None`: never.
    pub expiry: Option<Expiry>,
}

/// Makes records of rows: see the [module](super).
#[derive(Debug, Clone)]
pub struct RowEncoder {
    columns: Arc<TableColumns>,
    partition: Vec<Source>,
    clustering: Vec<Source>,
    statics: Vec<CellSource>,
    regulars: Vec<CellSource>,
    comparable: Comparable,
    /// A null deletes what was there.
    deletes_nulls: bool,
    /// The partition key, the clustering values with their lengths, and a value that is sorted.
    key: Vec<u8>,
    values: Vec<u8>,
    unsorted: Vec<u8>,
}

/// Where the values of a column are from.
#[derive(Debug, Clone)]
struct Source {
    /// Its number in the mapping.
    column: usize,
    sorted: Option<Sorted>,
    name: String,
    is_float: bool,
}

/// A column that has cells. `None`: the rows do not have it.
#[derive(Debug, Clone)]
struct CellSource {
    source: Option<Source>,
    /// Without elements it is null.
    is_collection: bool,
}

impl RowEncoder {
    /// For rows of a table that the mapping makes, or of the one that is `defined`, which the mapping is for.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for counters, whose cells are not values that can be written; for
    /// keys of types that are not sorted; and for user-defined types that are not known.
    pub fn new(mapping: &Mapping, defined: Option<(&TableDef, &[TypeDef])>) -> Result<RowEncoder> {
        let (table, types) = defined.unwrap_or((mapping.table(), mapping.types()));
        let columns = TableColumns::of_table(table, types)?;
        if let Some(counter) = columns.cells().find(|column| column.kind.is_counter()) {
            let name = String::from_utf8_lossy(&counter.name).into_owned();
            let error = Error::unsupported(
                "counters cannot be made of rows: what they store is who counted how much, and not a number",
            );
            return Err(error.at(|place| place.column = Some(name)));
        }
        let places: BTreeMap<&str, usize> =
            mapping.columns().iter().enumerate().map(|(at, column)| (column.name.as_str(), at)).collect();
        let source = |name: &str, kind: &MarshalType| {
            let Some(&column) = places.get(name) else { return Ok(None) };
            let is_float = matches!(kind, MarshalType::Native(CqlType::Float | CqlType::Double));
            Ok::<_, Error>(Some(Source {
                column,
                sorted: Sorted::of(kind)?,
                name: name.to_string(),
                is_float,
            }))
        };
        let of_key = |name: &str, kind: &MarshalType| {
            let inner = match kind {
                MarshalType::Reversed(inner) => inner,
                kind => kind,
            };
            source(name, inner)?
                .ok_or_else(|| Error::misuse(format!("the rows have no column {name}, which is in the key")))
        };
        let cells = |all: &[crate::sstable::statistics::HeaderColumn]| {
            let cell = |column: &crate::sstable::statistics::HeaderColumn| {
                let name = core::str::from_utf8(&column.name).unwrap_or_default();
                let is_collection =
                    matches!(column.kind, MarshalType::List(_) | MarshalType::Set(_) | MarshalType::Map(..));
                Ok(CellSource { source: source(name, &column.kind)?, is_collection })
            };
            all.iter().map(cell).collect::<Result<Vec<_>>>()
        };
        let of_keys = |all: &[crate::sstable::KeyColumn]| {
            all.iter().map(|key| of_key(&key.name, &key.kind)).collect::<Result<Vec<_>>>()
        };
        let kinds: Vec<MarshalType> = columns.clustering.iter().map(|column| column.kind.clone()).collect();
        Ok(RowEncoder {
            partition: of_keys(&columns.partition_key)?,
            clustering: of_keys(&columns.clustering)?,
            statics: cells(&columns.statics)?,
            regulars: cells(&columns.regulars)?,
            comparable: Comparable::new(&kinds)?,
            deletes_nulls: mapping.nulls() == Nulls::Null,
            columns: Arc::new(columns),
            key: Vec::new(),
            values: Vec::new(),
            unsorted: Vec::new(),
        })
    }

    /// The columns of the table.
    pub fn columns(&self) -> &Arc<TableColumns> {
        &self.columns
    }

    /// Adds the record of a row, and another one of its static columns if they have values.
    ///
    /// # Errors
    ///
    /// As [`BoundBatch::write_cell`]'s, with row and column; `Conversion` for keys of more than 65,535 bytes. Nothing is added then.
    pub fn add(
        &mut self,
        batch: &mut BoundBatch<'_>,
        row: usize,
        stamp: RowStamp,
        records: &mut RowRecords,
    ) -> Result<()> {
        let added = self.try_add(batch, row, stamp, records);
        if added.is_err() {
            records.truncate();
        }
        added.map_err(|error| {
            let number = batch.first_row().saturating_add(marquetry_base::cast::u64_of(row));
            error.at(|place| place.row = place.row.or(Some(number)))
        })
    }

    fn try_add(
        &mut self,
        batch: &mut BoundBatch<'_>,
        row: usize,
        stamp: RowStamp,
        records: &mut RowRecords,
    ) -> Result<()> {
        let mut cells = Cells { batch, row };
        self.partition_key(&mut cells)?;
        let is_static_only = cells.batch.is_static_row(row);
        if is_static_only || !self.statics.is_empty() {
            self.begin(true, stamp, records);
            let has_cells =
                write_cells(&self.statics, self.deletes_nulls, &mut self.unsorted, &mut cells, records)?;
            if has_cells {
                records.close();
            } else {
                records.truncate();
            }
        }
        if is_static_only {
            return Ok(());
        }
        self.begin(false, stamp, records);
        for (number, source) in self.clustering.iter().enumerate() {
            self.values.clear();
            cells.write(source, &mut self.unsorted, &mut self.values)?;
            let value = &mut self.values;
            if value.len() > KEY_BYTES_MAX {
                return Err(too_long("a clustering value", value.len(), &source.name));
            }
            let (key, record) = records.parts();
            push_length(record, value.len());
            record.extend_from_slice(value);
            if source.is_float {
                settle_nan(value);
            }
            let pushed = self.comparable.push_value(number, value, key);
            pushed.map_err(|error| error.at(|place| place.column = Some(source.name.clone())))?;
        }
        Comparable::push_row_end(records.parts().0);
        write_cells(&self.regulars, self.deletes_nulls, &mut self.unsorted, &mut cells, records)?;
        records.close();
        Ok(())
    }

    /// Makes the partition key as it is stored.
    fn partition_key(&mut self, cells: &mut Cells<'_, '_>) -> Result<()> {
        self.key.clear();
        if let [source] = &*self.partition {
            cells.write(source, &mut self.unsorted, &mut self.key)?;
        } else {
            for source in &self.partition {
                self.values.clear();
                cells.write(source, &mut self.unsorted, &mut self.values)?;
                let length = u16::try_from(self.values.len())
                    .map_err(|_| too_long("a part of the partition key", self.values.len(), &source.name))?;
                self.key.extend_from_slice(&length.to_be_bytes());
                self.key.extend_from_slice(&self.values);
                self.key.push(0);
            }
        }
        match self.key.len() {
            ..=KEY_BYTES_MAX => Ok(()),
            length => {
                let name = self.partition.last().map_or("", |source| &source.name);
                Err(too_long("the partition key", length, name))
            }
        }
    }

    /// Begins a record, and its key.
    fn begin(&self, is_static: bool, stamp: RowStamp, records: &mut RowRecords) {
        let (key, record) = records.parts();
        // Numbers with a sign, as bytes without one.
        key.extend_from_slice(&(murmur3_token(&self.key) ^ i64::MIN).to_be_bytes());
        push_escaped(&self.key, key);
        if is_static {
            // Before all rows, which begin with other bytes.
            key.push(0);
        }
        push_head(record, is_static, stamp.write_time_us, stamp.expiry, &self.key);
    }
}

/// A row of a batch.
struct Cells<'a, 'b> {
    batch: &'a mut BoundBatch<'b>,
    row: usize,
}

impl Cells<'_, '_> {
    /// Adds the value of a column as it is stored.
    fn write(&mut self, source: &Source, unsorted: &mut Vec<u8>, out: &mut Vec<u8>) -> Result<Cell> {
        let Some(sorted) = &source.sorted else {
            return self.batch.write_cell(source.column, self.row, out);
        };
        unsorted.clear();
        let cell = self.batch.write_cell(source.column, self.row, unsorted)?;
        if cell.is_value() {
            let pushed = sorted.push(unsorted, out);
            pushed.map_err(|error| error.at(|place| place.column = Some(source.name.clone())))?;
        }
        Ok(cell)
    }
}

/// Adds cells to the record that is being made. False if all are unset.
fn write_cells(
    columns: &[CellSource],
    deletes_nulls: bool,
    unsorted: &mut Vec<u8>,
    cells: &mut Cells<'_, '_>,
    records: &mut RowRecords,
) -> Result<bool> {
    let (_, record) = records.parts();
    let mut has_cells = false;
    for column in columns {
        let Some(source) = &column.source else {
            push_unset(record);
            continue;
        };
        let at = record.len();
        record.extend_from_slice(&[0; 4]);
        let cell = cells.write(source, unsorted, record)?;
        let is_null = cell == Cell::Null || column.is_collection && record.get(at + 4..) == Some(&NO_ITEMS);
        if is_null {
            record.truncate(at);
            if deletes_nulls { push_deleted(record) } else { push_unset(record) }
        } else {
            set_length(record, at)
                .map_err(|error| error.at(|place| place.column = Some(source.name.clone())))?;
        }
        has_cells |= !is_null || deletes_nulls;
    }
    Ok(has_cells)
}

/// Servers take all numbers that are none for one.
fn settle_nan(value: &mut [u8]) {
    let is_nan = match (value.first_chunk::<4>(), value.first_chunk::<8>()) {
        (Some(bytes), _) if value.len() == 4 => f32::from_be_bytes(*bytes).is_nan(),
        (_, Some(bytes)) if value.len() == 8 => f64::from_be_bytes(*bytes).is_nan(),
        _ => false,
    };
    if let (true, [first, rest @ ..]) = (is_nan, value) {
        *first = 0x7f;
        rest.fill(0xff);
    }
}

#[cold]
fn too_long(what: &str, length: usize, column: &str) -> Error {
    let message = format!("{what} of {length} bytes; servers store {KEY_BYTES_MAX}");
    Error::conversion(message).at(|place| place.column = Some(column.to_string()))
}
