//! The statements of one row.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Error, Result};

use super::out::{RowStatements, push};
use super::pack;
use super::texts::Kind;
use crate::bridge::mutations::shape::Multi;
use crate::cql::CqlType;
use crate::sstable::TableColumns;
use crate::sstable::batch::{
    Cells, EntryKind, Expiry, MutationBatch, NO_DELETION_TIME, NO_TIMESTAMP, number_of,
};
use crate::sstable::marshal::MarshalType;

/// The longest TTL that servers take: 20 years.
const TTL_MAX: u32 = 20 * 365 * 24 * 60 * 60;
/// The TTL of a row marker that has expired.
const EXPIRED_TTL: u32 = 1;

/// What is known of a table's columns.
#[derive(Debug)]
pub(super) struct Shape {
    /// What each column of the partition key, and each clustering column, can have.
    partition_key: Vec<KeyRule>,
    clustering: Vec<KeyRule>,
    /// Of each clustering column whether it is sorted in descending order.
    pub(super) reversed: Vec<bool>,
    /// Static columns, and then the others.
    pub(super) columns: Vec<ColumnShape>,
    pub(super) statics: usize,
    /// A value of the first clustering column, whichever; none, for types that nobody has rows sorted by.
    pub(super) middle: Option<Vec<u8>>,
}

#[derive(Debug)]
pub(super) struct ColumnShape {
    pub(super) multi: Multi,
    /// How many fields a user-defined type has that is not frozen.
    pub(super) fields: usize,
}

impl Shape {
    pub(super) fn new(columns: &TableColumns) -> Shape {
        let column = |kind: &MarshalType| ColumnShape {
            multi: Multi::of(kind),
            fields: match kind {
                MarshalType::User { fields, .. } => fields.len(),
                _ => 0,
            },
        };
        Shape {
            partition_key: columns.partition_key.iter().map(|key| KeyRule::of(&key.kind)).collect(),
            clustering: columns.clustering.iter().map(|key| KeyRule::of(&key.kind)).collect(),
            reversed: columns.clustering.iter().map(|key| key.kind.is_reversed()).collect(),
            columns: columns.cells().map(|it| column(&it.kind)).collect(),
            statics: columns.statics.len(),
            middle: columns.clustering.first().and_then(|key| some_value(&key.kind)),
        }
    }

    /// Binds a partition key, which is as SSTables have it.
    pub(super) fn bind_key(&self, mut key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if let [rule] = &*self.partition_key {
            rule.check(key)?;
            return pack::bytes(out, key);
        }
        for rule in &self.partition_key {
            let wrong = || Error::corrupt("a partition key of other columns");
            let (length, rest) = key.split_first_chunk::<2>().ok_or_else(wrong)?;
            let length = usize::from(u16::from_be_bytes(*length));
            let (value, rest) = rest.split_at_checked(length).ok_or_else(wrong)?;
            key = rest.split_first().ok_or_else(wrong)?.1;
            rule.check(value)?;
            pack::bytes(out, value)?;
        }
        Ok(())
    }

    /// Binds the clustering values of a row.
    pub(super) fn bind_clustering(
        &self,
        batch: &MutationBatch,
        entry: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        for (column, rule) in self.clustering.iter().enumerate() {
            pack::value(out, |out| {
                let start = out.len();
                clustering_value(batch, column, entry, out)?;
                rule.check(out.get(start..).unwrap_or_default())
            })?;
        }
        Ok(())
    }

    /// The clustering values of a bound, of which there may be less than columns.
    pub(super) fn bound_values(&self, batch: &MutationBatch, entry: usize) -> Result<Vec<Vec<u8>>> {
        let prefix = batch.entries.prefixes.get(number_of(entry));
        let prefix = prefix.map_or(self.reversed.len(), usize_of_u32).min(self.reversed.len());
        let value = |(column, rule): (usize, &KeyRule)| {
            let mut value = Vec::new();
            clustering_value(batch, column, entry, &mut value)?;
            rule.check(&value)?;
            Ok(value)
        };
        self.clustering.iter().enumerate().take(prefix).map(value).collect()
    }
}

/// What a key can have besides any bytes of the type that Parquet has for it: servers refuse other keys, so they are refused here, by their row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyRule {
    Any,
    Ascii,
    Timeuuid,
}

impl KeyRule {
    fn of(kind: &MarshalType) -> KeyRule {
        match kind {
            MarshalType::Native(CqlType::Ascii) => KeyRule::Ascii,
            MarshalType::Native(CqlType::Timeuuid) => KeyRule::Timeuuid,
            MarshalType::Reversed(inner) => KeyRule::of(inner),
            _ => KeyRule::Any,
        }
    }

    fn check(self, value: &[u8]) -> Result<()> {
        // An empty value is one of any type.
        let refused = match self {
            KeyRule::Ascii if !value.is_ascii() => "a key that is not ASCII, of a column of the type ascii",
            KeyRule::Timeuuid if value.get(6).is_some_and(|version| version >> 4 != 1) => {
                "a key that is a UUID of another version than 1, of a column of the type timeuuid"
            }
            _ => return Ok(()),
        };
        Err(Error::conversion(refused))
    }
}

/// A value of a type.
fn some_value(kind: &MarshalType) -> Option<Vec<u8>> {
    let MarshalType::Native(native) = kind else {
        return match kind {
            MarshalType::Reversed(inner) | MarshalType::Frozen(inner) => some_value(inner),
            // Of no elements.
            MarshalType::List(_) | MarshalType::Set(_) | MarshalType::Map(..) => Some(alloc::vec![0; 4]),
            _ => None,
        };
    };
    Some(match native {
        CqlType::Text | CqlType::Ascii | CqlType::Blob => Vec::new(),
        CqlType::Boolean | CqlType::Tinyint | CqlType::Varint => alloc::vec![0],
        CqlType::Smallint => alloc::vec![0; 2],
        CqlType::Int | CqlType::Float | CqlType::Date | CqlType::Inet => alloc::vec![0; 4],
        CqlType::Decimal => alloc::vec![0; 5],
        CqlType::Bigint | CqlType::Double | CqlType::Timestamp | CqlType::Time => alloc::vec![0; 8],
        CqlType::Uuid => alloc::vec![0; 16],
        // Of version 1.
        CqlType::Timeuuid => alloc::vec![0, 0, 0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0, 0, 0, 0, 0],
        _ => return None,
    })
}

fn clustering_value(batch: &MutationBatch, column: usize, entry: usize, out: &mut Vec<u8>) -> Result<()> {
    let column = batch.entries.clustering.get(column);
    let column = column.ok_or_else(|| Error::corrupt("a clustering column that is not there"))?;
    let number = number_of(entry);
    if column.nulls.binary_search(&number).is_ok() {
        return Err(Error::unsupported(
            "a row whose clustering value is null, as tables made without CQL have; CQL cannot write it",
        ));
    }
    if column.empties.binary_search(&number).is_err() {
        column.values.append_bytes(entry, out);
    }
    Ok(())
}

/// What a cell is as of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Life {
    /// It is there for so many seconds; 0: it does not expire.
    Alive(u32),
    /// It is deleted, or has expired.
    Dead,
}

impl Life {
    pub(super) fn of(cells: &Cells, cell: usize, of_row: Option<Expiry>, at: u32) -> Life {
        let number = number_of(cell);
        if cells.tombstones.get(number).is_some() {
            return Life::Dead;
        }
        Life::left(cells.expiries.get(number).or(of_row), at)
    }

    fn left(expiry: Option<Expiry>, at: u32) -> Life {
        match expiry {
            Some(Expiry { ttl: 1.., local_deletion }) if local_deletion != NO_DELETION_TIME => {
                match local_deletion.checked_sub(at) {
                    Some(left @ 1..) => Life::Alive(left.min(TTL_MAX)),
                    _ => Life::Dead,
                }
            }
            _ => Life::Alive(0),
        }
    }
}

/// The write time of a cell.
pub(super) fn time_of(cells: &Cells, cell: usize, of_row: i64) -> Result<i64> {
    match cells.timestamps.get(number_of(cell)).unwrap_or(of_row) {
        NO_TIMESTAMP => Err(Error::corrupt("a cell without a write time")),
        time => Ok(time),
    }
}

/// Appends a cell's value.
pub(super) fn append(cells: &Cells, cell: usize, out: &mut Vec<u8>) {
    if cells.empties.binary_search(&number_of(cell)).is_err() {
        cells.values.append_bytes(cell, out);
    }
}

/// A row whose statements are made, and what is used again for the next one.
#[derive(Debug, Default)]
pub(super) struct Making {
    /// Of each column the next cell.
    cells: Vec<usize>,
    groups: Vec<Group>,
    /// Groups of this row.
    used: usize,
    /// Values of groups, as they are bound.
    pub(super) values: Vec<u8>,
    /// Elements of lists have statements of their own, by their keys.
    pub(super) keeps_list_keys: bool,
}

/// What was written at one time with one TTL, without what has statements of its own.
#[derive(Debug, Default)]
struct Group {
    time: i64,
    ttl: u32,
    has_marker: bool,
    /// Columns, ascending, and where their values are; nulls are nowhere.
    cells: Vec<(usize, Option<Range<usize>>)>,
}

/// The row that is worked on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) batch: &'a MutationBatch,
    pub(super) entry: u32,
    /// The time of its marker, or [`NO_TIMESTAMP`].
    pub(super) time: i64,
    pub(super) expiry: Option<Expiry>,
    pub(super) at: u32,
    /// Its key, as it is bound.
    pub(super) key: &'a [u8],
}

impl Making {
    /// Begins a batch of so many columns.
    pub(super) fn begin(&mut self, columns: usize) {
        self.cells.clear();
        self.cells.resize(columns, 0);
    }

    /// Whether all cells of a batch were of its rows.
    pub(super) fn is_done(&self, batch: &MutationBatch) -> bool {
        batch.columns.iter().zip(&self.cells).all(|(cells, next)| cells.len() == *next)
    }

    /// Adds the statements of an entry that is a row, static or not.
    pub(super) fn row(
        &mut self,
        shape: &Shape,
        batch: &MutationBatch,
        (entry, at): (usize, u32),
        key: &[u8],
        out: &mut RowStatements,
    ) -> Result<()> {
        let number = number_of(entry);
        let is_static = batch.entries.kinds.get(entry) == Some(&EntryKind::Static);
        let time = batch.entries.timestamps.get(entry).copied().unwrap_or(NO_TIMESTAMP);
        let row = Row { batch, entry: number, time, expiry: batch.entries.expiries.get(number), at, key };
        self.used = 0;
        self.values.clear();
        let shadowable = batch.entries.shadowables.get(number).filter(|it| time <= it.timestamp);
        for deletion in batch.entries.deletions.get(number).into_iter().chain(shadowable) {
            let start = out.values.len();
            out.values.extend_from_slice(key);
            let kind = if is_static { Kind::DeleteStatics } else { Kind::DeleteRow };
            push(out, start, kind, deletion.timestamp);
        }
        if time != NO_TIMESTAMP && !is_static {
            let ttl = match Life::left(row.expiry, at) {
                Life::Alive(ttl) => ttl,
                Life::Dead => EXPIRED_TTL,
            };
            self.group(time, Some(ttl)).has_marker = true;
        }
        for (column, shape) in shape.columns.iter().enumerate() {
            let (Some(cells), Some(next)) = (batch.columns.get(column), self.cells.get_mut(column)) else {
                return Err(Error::corrupt("a column that is not there"));
            };
            let start = *next;
            let own = cells.entries.get(start..).unwrap_or_default();
            let end = start + own.iter().take_while(|of| **of == number).count();
            *next = end;
            match shape.multi {
                Multi::No => self.simple(&row, column, cells, start..end)?,
                _ => self.complex(shape, &row, column, start..end, out)?,
            }
        }
        self.finish(shape, key, is_static, out);
        Ok(())
    }

    fn simple(&mut self, row: &Row<'_>, column: usize, cells: &Cells, range: Range<usize>) -> Result<()> {
        for cell in range {
            let time = time_of(cells, cell, row.time)?;
            match Life::of(cells, cell, row.expiry, row.at) {
                Life::Dead => self.add(time, None, column, None),
                Life::Alive(ttl) => {
                    let start = self.values.len();
                    pack::value(&mut self.values, |out| {
                        append(cells, cell, out);
                        Ok(())
                    })?;
                    self.add(time, Some(ttl), column, Some(start));
                }
            }
        }
        Ok(())
    }

    /// Adds a column to the group of a time and a TTL: null, or the value that begins at a place. A null has no TTL.
    pub(super) fn add(&mut self, time: i64, ttl: Option<u32>, column: usize, value: Option<usize>) {
        let end = self.values.len();
        self.group(time, ttl).cells.push((column, value.map(|start| start..end)));
    }

    fn group(&mut self, time: i64, ttl: Option<u32>) -> &mut Group {
        let used = self.groups.iter().take(self.used);
        let found = used.clone().position(|it| it.time == time && ttl.is_none_or(|ttl| ttl == it.ttl));
        let at = found.unwrap_or(self.used);
        if at == self.used {
            self.used += 1;
            if at == self.groups.len() {
                self.groups.push(Group::default());
            }
            let group = &mut self.groups[at];
            (group.time, group.ttl, group.has_marker) = (time, ttl.unwrap_or(0), false);
            group.cells.clear();
        }
        &mut self.groups[at]
    }

    /// Adds the statements of the groups.
    fn finish(&self, shape: &Shape, key: &[u8], is_static: bool, out: &mut RowStatements) {
        let columns = if is_static { 0..shape.statics } else { shape.statics..shape.columns.len() };
        for group in self.groups.iter().take(self.used) {
            let start = out.values.len();
            if group.has_marker {
                out.values.extend_from_slice(key);
            } else {
                pack::ttl(&mut out.values, group.ttl);
            }
            let mut cells = group.cells.iter().peekable();
            for column in columns.clone() {
                match cells.next_if(|cell| cell.0 == column) {
                    None => pack::unset(&mut out.values),
                    Some((_, None)) => pack::null(&mut out.values),
                    Some((_, Some(value))) => {
                        out.values.extend_from_slice(self.values.get(value.clone()).unwrap_or_default());
                    }
                }
            }
            if group.has_marker {
                pack::ttl(&mut out.values, group.ttl);
            } else {
                out.values.extend_from_slice(key);
            }
            let kind = match (group.has_marker, is_static) {
                (true, _) => Kind::Insert,
                (false, true) => Kind::UpdateStatics,
                (false, false) => Kind::Update,
            };
            push(out, start, kind, group.time);
        }
    }
}
