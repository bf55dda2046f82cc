//! The list `mutation.cells`, read: what is not like its row, by column.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Bytes, Error, Limit, Limits, Price, Result};
use marquetry_parquet::batch::{Batch, Value};

use super::encode::LeafReader;
use super::plan::CellLeaves;
use crate::sstable::batch::{Expiry, NO_DELETION_TIME, number_of};

/// The price of an exception that is read, and of its bytes.
const LISTED_PRICE: Price = Price { kib: 200, kilovalue: 150 << 10 };
/// Rows between two looks at the budget.
const SLICE_ROWS: usize = 512;

/// The definition levels of an exception, and of something that it says.
const EXCEPTION: u8 = 2;
const PRESENT: u8 = 3;

/// An exception.
#[derive(Debug, Clone, Default)]
pub(super) struct Listed {
    pub(super) row: u32,
    /// 0 for the row's marker, or else the name's number and 1.
    place: u32,
    pub(super) path: Option<Range<usize>>,
    pub(super) value: Option<Range<usize>>,
    pub(super) write_time: Option<i64>,
    pub(super) expiry: Option<Expiry>,
    pub(super) local_deletion: Option<u32>,
    pub(super) deleted_at: Option<i64>,
}

/// All exceptions of a batch.
#[derive(Debug)]
pub(super) struct List {
    readers: Vec<LeafReader>,
    all: Vec<Listed>,
    /// Bytes of paths and values.
    pub(super) bytes: Vec<u8>,
    /// By place: where the exceptions of each end in `order`.
    ends: Vec<u32>,
    order: Vec<u32>,
    row: u32,
    rows: usize,
    sorted: Option<usize>,
}

impl List {
    pub(super) fn new(batch: &Batch, leaves: &CellLeaves, places: usize) -> List {
        let column =
            |(leaf, _): (usize, _)| batch.columns.get(leaf).map(|column| LeafReader::new(column, PRESENT));
        List {
            readers: leaves.all().filter_map(column).collect(),
            all: Vec::new(),
            bytes: Vec::new(),
            ends: alloc::vec![0; places + 1],
            order: Vec::new(),
            row: 0,
            rows: batch.rows,
            sorted: None,
        }
    }

    /// Reads until the budget is spent: then false.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for a list that no mapping makes.
    pub(super) fn step(
        &mut self,
        leaves: &CellLeaves,
        names: &BTreeMap<Bytes, u32>,
        limits: &Limits,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        while usize_of_u32(self.row) < self.rows {
            let (before, bytes) = (self.all.len(), self.bytes.len());
            for _ in 0..SLICE_ROWS {
                if usize_of_u32(self.row) < self.rows {
                    self.read_row(leaves, names)?;
                    self.row += 1;
                }
            }
            limits.check(Limit::TotalBytes, u64_of(self.bytes.len()))?;
            budget.charge(LISTED_PRICE, self.bytes.len() - bytes, self.all.len() - before + SLICE_ROWS / 8);
            if budget.is_spent() {
                return Ok(false);
            }
        }
        let mut at = match self.sorted {
            Some(at) => at,
            None => {
                // From how many each place has to where they begin.
                let mut next = 0;
                for end in &mut self.ends {
                    next += core::mem::replace(end, next);
                }
                self.order.resize(self.all.len(), 0);
                0
            }
        };
        while at < self.all.len() {
            let end = self.all.len().min(at + 8 * SLICE_ROWS);
            for (number, listed) in self.all[at..end].iter().enumerate() {
                let place = &mut self.ends[usize_of_u32(listed.place)];
                self.order[usize_of_u32(*place)] = number_of(at + number);
                *place += 1;
            }
            budget.charge(LISTED_PRICE, 0, (end - at) / 8);
            at = end;
            self.sorted = Some(at);
            if budget.is_spent() && at < self.all.len() {
                return Ok(false);
            }
        }
        self.sorted = Some(at);
        Ok(true)
    }

    fn read_row(&mut self, leaves: &CellLeaves, names: &BTreeMap<Bytes, u32>) -> Result<()> {
        loop {
            let first = self.readers.first().ok_or_else(|| Error::internal("a list without columns"))?;
            if first.definition()? < EXCEPTION {
                for reader in &mut self.readers {
                    reader.take()?;
                }
            } else {
                let listed = self.read_one(leaves, names)?;
                self.ends[usize_of_u32(listed.place)] += 1;
                self.all.push(listed);
            }
            if self.readers.first().is_none_or(|first| first.repetition() == 0) {
                return Ok(());
            }
        }
    }

    fn read_one(&mut self, leaves: &CellLeaves, names: &BTreeMap<Bytes, u32>) -> Result<Listed> {
        let mut listed = Listed { row: self.row, ..Listed::default() };
        let (mut ttl, mut expires_at) = (None, None);
        let List { readers, bytes, .. } = self;
        for (reader, (leaf, _)) in readers.iter_mut().zip(leaves.all()) {
            let Some(value) = reader.take()? else { continue };
            let leaf = Some(leaf);
            match value {
                Value::Bytes(name) if leaf == Some(leaves.column) => {
                    let number = names.get(name).copied().ok_or_else(|| {
                        let name = alloc::string::String::from_utf8_lossy(name);
                        Error::corrupt(alloc::format!("a cell of {name:?}, which is no column of the table"))
                    })?;
                    listed.place = number + 1;
                }
                Value::Bytes(part) => {
                    let start = bytes.len();
                    bytes.extend_from_slice(part);
                    let range = Some(start..bytes.len());
                    if leaf == leaves.path {
                        listed.path = range;
                    } else {
                        listed.value = range;
                    }
                }
                Value::Int32(value) => ttl = Some(seconds(value.into())?),
                Value::Int64(value) if leaf == leaves.write_time => listed.write_time = Some(value),
                Value::Int64(value) if leaf == leaves.expires_at => expires_at = Some(seconds(value)?),
                Value::Int64(value) if leaf == leaves.deleted_at => listed.deleted_at = Some(value),
                Value::Int64(value) => listed.local_deletion = Some(seconds(value)?),
                _ => return Err(Error::misuse("a list of cells of other types")),
            }
        }
        listed.expiry = expiry(ttl, expires_at)?;
        Ok(listed)
    }

    /// The exceptions of a place, from the one with this number on, that are of this row; and the number after them.
    pub(super) fn of_row(&self, place: usize, at: &mut usize, row: u32) -> Range<usize> {
        let end = self.ends.get(place).map_or(0, |end| usize_of_u32(*end));
        let start = *at;
        while *at < end && self.get(*at).is_some_and(|listed| listed.row == row) {
            *at += 1;
        }
        start..*at
    }

    /// The row of the exception of a place with this number; `None` after its last.
    pub(super) fn row_at(&self, place: usize, at: usize) -> Option<usize> {
        let end = self.ends.get(place).map_or(0, |end| usize_of_u32(*end));
        if at < end { self.get(at).map(|listed| usize_of_u32(listed.row)) } else { None }
    }

    /// Where the exceptions of a place begin.
    pub(super) fn start_of(&self, place: usize) -> usize {
        place.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |end| usize_of_u32(*end))
    }

    pub(super) fn get(&self, at: usize) -> Option<&Listed> {
        self.all.get(usize_of_u32(*self.order.get(at)?))
    }

    pub(super) fn slice(&self, range: &Option<Range<usize>>) -> Option<&[u8]> {
        self.bytes.get(range.clone()?)
    }
}

/// When something expires, by its two columns.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for a time without a TTL.
pub(super) fn expiry(ttl: Option<u32>, expires_at: Option<u32>) -> Result<Option<Expiry>> {
    match (ttl, expires_at) {
        (Some(ttl), at) => Ok(Some(Expiry { ttl, local_deletion: at.unwrap_or(NO_DELETION_TIME) })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Error::corrupt("something that expires, without a TTL")),
    }
}

/// Seconds since 1970 as SSTables have them.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for others.
pub(super) fn seconds(value: i64) -> Result<u32> {
    u32::try_from(value).map_err(|_| Error::corrupt("a time in seconds of more than 32 bits"))
}
