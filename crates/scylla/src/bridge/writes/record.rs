//! Records of rows: what is sorted.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Bytes, Error, Result};
use marquetry_parquet::batch::{Batch, ByteArrays, Values};
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};

use crate::sstable::batch::{Expiry, NO_DELETION_TIME};
use crate::sstable::merge::Life;

/// The lengths of a cell that has none: it was not written, or is deleted.
const UNSET: u32 = u32::MAX;
const DELETED: u32 = u32::MAX - 1;
/// The most bytes of a value: lengths beyond are those without one.
const VALUE_BYTES_MAX: usize = 0x7fff_ffff;

/// Records of rows, and the keys by which they are sorted: batches of two columns of bytes.
#[derive(Debug, Default)]
pub struct RowRecords {
    keys: Column,
    records: Column,
}

#[derive(Debug, Default)]
struct Column {
    bytes: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
}

impl Column {
    fn close(&mut self) {
        self.ends.push(self.bytes.len());
    }

    fn take(&mut self) -> Result<Values> {
        let bytes = Bytes::from(core::mem::take(&mut self.bytes));
        let mut start = 0;
        let lengths: Vec<usize> = core::mem::take(&mut self.ends)
            .into_iter()
            .map(|end| end - core::mem::replace(&mut start, end))
            .collect();
        ByteArrays::from_lengths(bytes, lengths).map(Values::ByteArray)
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let range = core::mem::replace(&mut start, *end)..*end;
            self.bytes.get(range).unwrap_or_default()
        })
    }

    fn truncate(&mut self) {
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }
}

impl RowRecords {
    /// The schema of the batches.
    ///
    /// # Errors
    ///
    /// None that a caller could cause.
    pub fn schema() -> Result<Arc<Schema>> {
        let bytes = |name| FieldDef::new(name, FieldType::Leaf(PhysicalType::ByteArray, None)).required();
        Schema::of_fields(&[bytes("key"), bytes("record")]).map(Arc::new)
    }

    /// How they are sorted.
    pub fn order() -> [SortingColumn; 1] {
        [SortingColumn { column: 0, descending: false, nulls_first: false }]
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.records.ends.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.records.ends.is_empty()
    }

    /// Bytes of all keys and records.
    pub fn bytes(&self) -> usize {
        self.keys.bytes.len() + self.records.bytes.len()
    }

    /// Adds a record and its key, as they are.
    pub fn push(&mut self, key: &[u8], record: &[u8]) {
        let (keys, records) = self.parts();
        keys.extend_from_slice(key);
        records.extend_from_slice(record);
        self.close();
    }

    /// All keys and records.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.keys.iter().zip(self.records.iter())
    }

    /// Drops what was added.
    pub fn clear(&mut self) {
        for column in [&mut self.keys, &mut self.records] {
            column.bytes.clear();
            column.ends.clear();
        }
    }

    /// Others, with room for as many.
    #[must_use]
    pub fn another(&self) -> RowRecords {
        let another = |column: &Column| Column {
            bytes: Vec::with_capacity(column.bytes.len()),
            ends: Vec::with_capacity(column.ends.len()),
        };
        RowRecords { keys: another(&self.keys), records: another(&self.records) }
    }

    /// Takes what was added, as a batch.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` for a record of 4 GiB or more.
    pub fn take(&mut self) -> Result<Batch> {
        Batch::of_values([self.keys.take()?, self.records.take()?])
    }

    /// The keys and records of a batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for a batch of something else.
    pub fn of(batch: &Batch) -> Result<impl Iterator<Item = (&[u8], &[u8])>> {
        let strings = |column: usize| match batch.columns.get(column).map(|column| &column.values) {
            Some(Values::ByteArray(strings)) => Ok(strings),
            _ => Err(Error::misuse("a batch that is none of records of rows")),
        };
        Ok(strings(0)?.iter().zip(strings(1)?.iter()))
    }

    /// The key and the record that are being made.
    pub(super) fn parts(&mut self) -> (&mut Vec<u8>, &mut Vec<u8>) {
        (&mut self.keys.bytes, &mut self.records.bytes)
    }

    /// Ends a record.
    pub(super) fn close(&mut self) {
        self.keys.close();
        self.records.close();
    }

    /// Drops what was added since the last record.
    pub(super) fn truncate(&mut self) {
        self.keys.truncate();
        self.records.truncate();
    }
}

/// A cell of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot<'a> {
    Unset,
    Deleted,
    Value(&'a [u8]),
}

/// Adds what is at the beginning of a record.
pub(super) fn push_head(
    out: &mut Vec<u8>,
    is_static: bool,
    write_time_us: i64,
    expiry: Option<Expiry>,
    key: &[u8],
) {
    let expiry = expiry.unwrap_or(Expiry::NEVER);
    // As slices: byte by byte they take several times as long.
    out.push(u8::from(is_static));
    out.extend_from_slice(&write_time_us.to_be_bytes());
    out.extend_from_slice(&expiry.ttl.to_be_bytes());
    out.extend_from_slice(&expiry.local_deletion.to_be_bytes());
    push_length(out, key.len());
    out.extend_from_slice(key);
}

/// Adds a value of `length` bytes, which the caller appends.
pub(super) fn push_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&u32::try_from(length).unwrap_or(DELETED - 1).to_be_bytes());
}

pub(super) fn push_unset(out: &mut Vec<u8>) {
    out.extend_from_slice(&UNSET.to_be_bytes());
}

pub(super) fn push_deleted(out: &mut Vec<u8>) {
    out.extend_from_slice(&DELETED.to_be_bytes());
}

/// Writes the length of the value that was added since `at`, where four bytes were left for it.
///
/// # Errors
///
/// `LimitExceeded` for a value of 2 GiB and more.
pub(super) fn set_length(out: &mut [u8], at: usize) -> Result<()> {
    let length = out.len().saturating_sub(at + 4);
    if length > VALUE_BYTES_MAX {
        return Err(Error::conversion("a value of 2 GiB or more, which servers do not store"));
    }
    let length = u32::try_from(length).unwrap_or(DELETED - 1);
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// A record, as it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) is_static: bool,
    pub(super) write_time_us: i64,
    pub(super) expiry: Option<Expiry>,
    pub(super) key: &'a [u8],
    /// The clustering values, and then the cells.
    pub(super) rest: Rest<'a>,
}

/// What follows of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a>(&'a [u8]);

impl<'a> Record<'a> {
    pub(super) fn read(record: &'a [u8]) -> Result<Record<'a>> {
        let mut rest = Rest(record);
        let [kind] = rest.array()?;
        let write_time_us = i64::from_be_bytes(rest.array()?);
        let expiry = Expiry {
            ttl: u32::from_be_bytes(rest.array()?),
            local_deletion: u32::from_be_bytes(rest.array()?),
        };
        let key = match rest.next()? {
            Slot::Value(key) => key,
            _ => return Err(broken()),
        };
        let expiry = (expiry.local_deletion != NO_DELETION_TIME).then_some(expiry);
        Ok(Record { is_static: kind == 1, write_time_us, expiry, key, rest })
    }

    /// How its cells live.
    pub(super) fn life(&self) -> Life {
        self.expiry.map_or(Life::Live, Life::Expiring)
    }
}

impl<'a> Rest<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>().ok_or_else(broken)?;
        self.0 = rest;
        Ok(*array)
    }

    /// The next value or cell.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Slot<'a>> {
        match u32::from_be_bytes(self.array()?) {
            UNSET => Ok(Slot::Unset),
            DELETED => Ok(Slot::Deleted),
            length => {
                let (value, rest) = self.0.split_at_checked(usize_of_u32(length)).ok_or_else(broken)?;
                self.0 = rest;
                Ok(Slot::Value(value))
            }
        }
    }
}

fn broken() -> Error {
    Error::misuse("a record of a row that is none")
}
