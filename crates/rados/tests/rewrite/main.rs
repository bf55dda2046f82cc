//! Objects that the class changes bit by bit: whenever they are read, they have the same rows.

mod compress;
mod index;
mod osd;
mod split;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use marquetry::Writer;
use marquetry::arrow::FromArrow;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_base::{Error, Fields, Result};
use marquetry_ceph::{Method, RadosObject, call, change};
use marquetry_parquet::format::Compression;
use marquetry_rados::{Asked, Change, Execute, Query, Recoding};

/// Trips in three row groups, with dictionaries, nulls, lists and Bloom filters.
fn trips(rows: u32, compression: Compression) -> Vec<u8> {
    let id = |row: u32| i64::from(row.wrapping_mul(0x9e37_79b1) >> 8);
    let city = |row: u32| (!row.is_multiple_of(5)).then(|| format!("a city, number {}", row % 100));
    let fare = |row: u32| (!row.is_multiple_of(7)).then(|| f64::from(row % 4000) / 8.0);
    let mut tags = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        match row % 4 {
            0 => tags.append_null(),
            n => tags.append_value((1..n).map(|tag| Some(format!("tag {tag} of {row}")))),
        }
    }
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from_iter_values((0..rows).map(id)))),
        ("fare", Arc::new(Float64Array::from_iter((0..rows).map(fare)))),
        ("city", Arc::new(StringArray::from_iter((0..rows).map(city)))),
        ("tags", Arc::new(tags.finish())),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let mut options = ParquetOptions::default();
    (options.write.row_group_rows, options.write.page_rows) = (u64::from(rows / 3), 1000);
    options.write.column.compression = compression;
    written(&batch, options)
}

/// The bytes of a file of these rows.
fn written(batch: &RecordBatch, options: ParquetOptions) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
    let path = folder.path().join("written.parquet");
    let mut writer = Writer::with(&path, schema, options).unwrap();
    writer.write_arrow(batch).unwrap();
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// An object in memory, whose OSD sends no answer of a call that wrote.
#[derive(Clone)]
struct Object {
    bytes: Vec<u8>,
    entries: BTreeMap<String, Vec<u8>>,
    /// What calls write, which is undone if they fail.
    has_written: bool,
    calls: u64,
    /// The calls after which all fail.
    fails_after: u64,
    bytes_max: usize,
    read: u64,
    /// The share of a call that writes, whatever its request says.
    share: u64,
    /// The units that the last of them took, if it answered.
    units: u64,
}

impl Object {
    fn new(bytes: Vec<u8>) -> Object {
        let entries = BTreeMap::new();
        let bytes_max = usize::MAX;
        let (fails_after, share) = (u64::MAX, 300_000);
        let (has_written, calls, read, units) = (false, 0, 0, 0);
        Object { bytes, entries, has_written, calls, fails_after, bytes_max, read, share, units }
    }

    fn changed(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>> {
        self.calls += 1;
        if self.calls > self.fails_after {
            return Err(Error::io("the client is gone"));
        }
        let before = self.clone();
        self.has_written = false;
        // Small steps, whatever the request says.
        let mut request = request.to_vec();
        for (field, value) in [(6_u16, self.share), (7, self.share / 10)] {
            request.extend_from_slice(&field.to_le_bytes());
            request.extend_from_slice(&[0, 0, 8, 0, 0, 0]);
            request.extend_from_slice(&value.to_le_bytes());
        }
        let answer = change(Method::of(method).unwrap(), self, &request);
        match &answer {
            Err(_) => *self = Object { calls: self.calls, ..before },
            Ok(answer) => {
                let fields = Fields::of(answer, *b"MQA1").unwrap().map(Result::unwrap);
                let work = fields.filter(|field| field.number == 4).map(|field| field.bytes[..8].to_vec());
                self.units = work.map(|units| u64::from_le_bytes(units.try_into().unwrap())).max().unwrap();
            }
        }
        answer
    }
}

impl RadosObject for Object {
    fn length(&mut self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.read += into.len() as u64;
        self.bytes.as_slice().read(offset, into)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = usize::try_from(offset).unwrap();
        if at + bytes.len() > self.bytes_max {
            return Err(Error::too_large("an object that is too large"));
        }
        self.bytes.resize(self.bytes.len().max(at + bytes.len()), 0);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.has_written = true;
        Ok(())
    }

    fn entry(&mut self, key: &str) -> Result<Option<Vec<u8>>> {
        let entry = self.entries.get(key).cloned();
        self.read += entry.as_ref().map_or(0, Vec::len) as u64;
        Ok(entry)
    }

    fn set_entry(&mut self, key: &str, bytes: &[u8]) -> Result<()> {
        self.entries.insert(key.to_owned(), bytes.to_vec());
        self.has_written = true;
        Ok(())
    }
}

impl Change for Object {
    fn step(&mut self, method: &str, request: &[u8]) -> Result<Vec<u8>> {
        let answer = self.changed(method, request)?;
        Ok(if self.has_written { Vec::new() } else { answer })
    }

    fn finish(&mut self, method: &str, request: &[u8], length: u64) -> Result<()> {
        self.changed(method, request)?;
        self.bytes.truncate(usize::try_from(length).unwrap());
        Ok(())
    }
}

impl Execute for &mut Object {
    fn execute(&mut self, request: &[u8], _version: Option<u64>) -> Result<(Vec<u8>, u64)> {
        Ok((call(Method::Query, *self, request), 1))
    }
}

fn rows_of(folder: &Path, bytes: &[u8]) -> RecordBatch {
    let path = folder.join("read.parquet");
    std::fs::write(&path, bytes).unwrap();
    let reader = marquetry::open(&path).unwrap();
    let batches: Vec<RecordBatch> = reader.record_batches().unwrap().map(|batch| batch.unwrap()).collect();
    concat_batches(&reader.arrow_schema().unwrap(), &batches).unwrap()
}

fn found(object: &mut Object, predicate: &str) -> u64 {
    let asked = Asked::new().predicate(predicate).counted();
    Query::new(object, &asked).map(|answer| answer.unwrap().rows).sum()
}

fn by(codec: &str, level: Option<i32>) -> Recoding {
    Recoding { codec: codec.to_owned(), level }
}
