//! The clustering values of a row or bound, and their order.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;

use marquetry_base::{Error, Result};

use crate::sstable::batch::{EntryKind, MutationBatch, Values, number_of};
use crate::sstable::compare::Comparator;
use crate::sstable::vint;
use marquetry_base::cast::usize_of_u32;

/// The most bytes of a value: its length has 16 bits in statistics.
const VALUE_BYTES_MAX: usize = 0xffff;

/// Values of a clustering prefix (`ClusteringPrefix.java`).
#[derive(Debug, PartialEq)]
pub(super) struct Clustering {
    pub(super) kind: EntryKind,
    values: Vec<Part>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Null,
    At(Range<usize>),
}

impl Clone for Clustering {
    fn clone(&self) -> Clustering {
        Clustering { kind: self.kind, values: self.values.clone(), bytes: self.bytes.clone() }
    }

    /// Memory is used again: this is done for each row.
    fn clone_from(&mut self, other: &Clustering) {
        self.kind = other.kind;
        self.values.clone_from(&other.values);
        self.bytes.clone_from(&other.bytes);
    }
}

impl Default for Clustering {
    fn default() -> Clustering {
        Clustering { kind: EntryKind::Static, values: Vec::new(), bytes: Vec::new() }
    }
}

impl Clustering {
    /// Reads the values of an entry.
    pub(super) fn read(&mut self, batch: &MutationBatch, entry: usize) {
        self.values.clear();
        self.bytes.clear();
        self.kind = batch.entries.kinds.get(entry).copied().unwrap_or(EntryKind::Static);
        let number = number_of(entry);
        let columns = match self.kind {
            EntryKind::Static => 0,
            EntryKind::Row => batch.entries.clustering.len(),
            _ => batch.entries.prefixes.get(number).map_or(batch.entries.clustering.len(), usize_of_u32),
        };
        for column in batch.entries.clustering.iter().take(columns) {
            if column.nulls.binary_search(&number).is_ok() {
                self.values.push(Part::Null);
                continue;
            }
            let start = self.bytes.len();
            let is_empty = !matches!(column.values, Values::Strings(_))
                && !column.empties.is_empty()
                && column.empties.binary_search(&number).is_ok();
            if !is_empty {
                column.values.append_bytes(entry, &mut self.bytes);
            }
            self.values.push(Part::At(start..self.bytes.len()));
        }
    }

    /// The number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Bytes of all values.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// A value; `None` if it is null.
    pub(super) fn value(&self, number: usize) -> Option<&[u8]> {
        match self.values.get(number)? {
            Part::Null => None,
            Part::At(range) => self.bytes.get(range.clone()),
        }
    }

    /// Writes the values, each group of 32 after what says which are null or empty.
    pub(super) fn write_values(&self, fixed: &[Option<u32>], out: &mut Vec<u8>) {
        for (group, values) in self.values.chunks(32).enumerate() {
            let header = (0..values.len()).fold(0_u64, |header, at| {
                let bits = match self.value(group * 32 + at) {
                    None => 2,
                    Some([]) => 1,
                    Some(_) => 0,
                };
                header | bits << (2 * at)
            });
            vint::push_unsigned(out, header);
            for at in 0..values.len() {
                let number = group * 32 + at;
                let Some(value) = self.value(number).filter(|value| !value.is_empty()) else { continue };
                if fixed.get(number).copied().flatten().is_none() {
                    vint::push_unsigned(out, marquetry_base::cast::u64_of(value.len()));
                }
                out.extend_from_slice(value);
            }
        }
    }

    /// Writes it as a bound is: its kind, the number of its values, and these.
    pub(super) fn write_bound(&self, fixed: &[Option<u32>], out: &mut Vec<u8>) {
        out.push(number_of_kind(self.kind));
        out.extend(u16::try_from(self.values.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.write_values(fixed, out);
    }

    /// Writes it as indexes have it: its kind, and of a bound the number of its values.
    pub(super) fn write_prefix(&self, fixed: &[Option<u32>], out: &mut Vec<u8>) {
        match self.kind {
            EntryKind::Row => {
                out.push(number_of_kind(EntryKind::Row));
                self.write_values(fixed, out);
            }
            _ => self.write_bound(fixed, out),
        }
    }
}

/// The number that the format has for a kind.
pub(super) fn number_of_kind(kind: EntryKind) -> u8 {
    match kind {
        EntryKind::ExclusiveEnd => 0,
        EntryKind::InclusiveStart => 1,
        EntryKind::ExclusiveEndInclusiveStart => 2,
        EntryKind::Static => 3,
        EntryKind::Row => 4,
        EntryKind::InclusiveEndExclusiveStart => 5,
        EntryKind::InclusiveEnd => 6,
        EntryKind::ExclusiveStart => 7,
    }
}

/// Where a kind is beside rows that have its values: before, among, after them.
pub(super) fn side(kind: EntryKind) -> Ordering {
    match kind {
        EntryKind::ExclusiveEnd | EntryKind::InclusiveStart | EntryKind::ExclusiveEndInclusiveStart => {
            Ordering::Less
        }
        EntryKind::Static => Ordering::Less,
        EntryKind::Row => Ordering::Equal,
        EntryKind::InclusiveEndExclusiveStart | EntryKind::InclusiveEnd | EntryKind::ExclusiveStart => {
            Ordering::Greater
        }
    }
}

/// Compares clustering values as servers do (`ClusteringComparator.java`).
#[derive(Debug)]
pub(super) struct ClusteringOrder {
    columns: Vec<Comparator>,
}

impl ClusteringOrder {
    pub(super) fn new(columns: Vec<Comparator>) -> ClusteringOrder {
        ClusteringOrder { columns }
    }

    /// Checks that values are not too long to be stored, or to be compared.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for values of more than 64 KiB, which servers have not, and whose
    /// lengths have no room in statistics; and as [`Comparator::check`]'s.
    pub(super) fn check(&self, clustering: &Clustering) -> Result<()> {
        for (number, column) in self.columns.iter().enumerate() {
            if let Some(value) = clustering.value(number) {
                if value.len() > VALUE_BYTES_MAX {
                    let bytes = value.len();
                    return Err(Error::unsupported(alloc::format!(
                        "a clustering value of {bytes} bytes; 65,535 can be stored"
                    )));
                }
                column.check(value)?;
            }
        }
        Ok(())
    }

    pub(super) fn compare(&self, left: &Clustering, right: &Clustering) -> Ordering {
        let columns = self.columns.iter().take(left.len().min(right.len())).enumerate();
        for (number, column) in columns {
            let found = match (left.value(number), right.value(number)) {
                (Some(left), Some(right)) => column.compare(left, right),
                (left, right) => left.is_some().cmp(&right.is_some()),
            };
            if found.is_ne() {
                return found;
            }
        }
        match left.len().cmp(&right.len()) {
            Ordering::Equal => side(left.kind).cmp(&side(right.kind)),
            Ordering::Less => side(left.kind),
            Ordering::Greater => side(right.kind).reverse(),
        }
    }
}
