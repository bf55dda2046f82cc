//! What a parser of Data.db needs to know of the header: lengths, and what numbers are stored as differences from.

use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::cast::{bits_i64, low_u32};
use marquetry_base::{Error, Limit, Limits, Result};

use crate::sstable::batch::{
    Cells, ClusteringColumn, Deletion, MutationBatch, NO_DELETION_TIME, NO_TIMESTAMP, Values,
};
use crate::sstable::elements::name;
use crate::sstable::statistics::{HeaderColumn, SerializationHeader};
use crate::sstable::version::Version;

/// How rows of an SSTable are stored.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    timestamp_min: i64,
    local_deletion_min: u32,
    ttl_min: u32,
    /// Local deletion times are unsigned.
    pub(super) is_unsigned: bool,
    /// Fixed lengths of the clustering columns.
    pub(super) clustering: Vec<Option<u32>>,
    /// The static columns, and then the others.
    pub(super) columns: Vec<Column>,
    /// How many of them are static.
    pub(super) statics: usize,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// The length of its values, if that is fixed.
    pub(super) fixed: Option<u32>,
    /// It has a cell for each element.
    pub(super) is_complex: bool,
}

/// A time of a deletion that was not.
const NOT_DELETED: i64 = NO_TIMESTAMP;

impl Layout {
    /// The layout of an SSTable of this version, with this header.
    pub(super) fn new(version: Version, header: &SerializationHeader, limits: &Limits) -> Result<Layout> {
        let columns = header.statics.iter().chain(&header.regulars);
        let mut layout = Layout {
            timestamp_min: header.timestamp_min,
            local_deletion_min: header.local_deletion_min,
            ttl_min: header.ttl_min,
            is_unsigned: version.has_unsigned_deletion_time(),
            clustering: Vec::new(),
            columns: Vec::new(),
            statics: header.statics.len(),
        };
        for column in columns {
            layout.columns.push(Column::new(column, limits)?);
        }
        for kind in &header.clustering {
            let fixed = kind.fixed_bytes();
            limits.check(Limit::StructureBytes, u64::from(fixed.unwrap_or(0)))?;
            layout.clustering.push(fixed);
        }
        Ok(layout)
    }

    /// A batch for such rows, with nothing in it.
    pub(super) fn batch(&self) -> MutationBatch {
        let mut batch = MutationBatch::default();
        let clustering = self.clustering.iter();
        batch.entries.clustering = clustering
            .map(|fixed| ClusteringColumn { values: Values::of(*fixed), ..ClusteringColumn::default() })
            .collect();
        batch.columns = self
            .columns
            .iter()
            .map(|column| Cells { values: Values::of(column.fixed), ..Cells::default() })
            .collect();
        batch
    }

    /// Whether a batch is one for such rows.
    pub(super) fn fits(&self, batch: &MutationBatch) -> bool {
        let same = |values: &Values, fixed: Option<u32>| {
            core::mem::discriminant(values) == core::mem::discriminant(&Values::of(fixed))
        };
        batch.columns.len() == self.columns.len()
            && batch.entries.clustering.len() == self.clustering.len()
            && batch
                .columns
                .iter()
                .zip(&self.columns)
                .all(|(cells, column)| same(&cells.values, column.fixed))
            && batch
                .entries
                .clustering
                .iter()
                .zip(&self.clustering)
                .all(|(of, fixed)| same(&of.values, *fixed))
    }

    /// The columns of static rows, or of others.
    pub(super) fn columns_of(&self, is_static: bool) -> core::ops::Range<usize> {
        if is_static { 0..self.statics } else { self.statics..self.columns.len() }
    }

    /// A write time from its difference.
    #[inline]
    pub(super) fn timestamp(&self, difference: u64) -> i64 {
        self.timestamp_min.wrapping_add(bits_i64(difference))
    }

    /// A local deletion time from its difference. Servers compute both in 32 bits, and store them with their sign or without it.
    #[inline]
    pub(super) fn local_deletion(&self, difference: u64) -> Result<u32> {
        let seconds = self.local_deletion_min.wrapping_add(low_32(difference)?);
        Ok(if seconds == 0x7fff_ffff && !self.is_unsigned { NO_DELETION_TIME } else { seconds })
    }

    /// A TTL from its difference.
    #[inline]
    pub(super) fn ttl(&self, difference: u64) -> Result<u32> {
        let ttl = self.ttl_min.wrapping_add(low_32(difference)?);
        if ttl > 0x7fff_ffff { Err(Error::corrupt("a negative TTL")) } else { Ok(ttl) }
    }

    /// A deletion from its differences; `None` if it is of nothing.
    #[inline]
    pub(super) fn deletion(&self, timestamp: u64, local: u64) -> Result<Option<Deletion>> {
        let deletion =
            Deletion { timestamp: self.timestamp(timestamp), local_deletion: self.local_deletion(local)? };
        Ok(Some(deletion).filter(|deletion| deletion.timestamp != NOT_DELETED))
    }
}

impl Column {
    fn new(column: &HeaderColumn, limits: &Limits) -> Result<Column> {
        let at = |error: Error| error.at(|place| place.column = Some(column_name(column)));
        let fixed = column.kind.fixed_bytes();
        limits.check(Limit::ValueBytes, u64::from(fixed.unwrap_or(0))).map_err(at)?;
        Ok(Column { fixed, is_complex: column.kind.is_multi_cell() })
    }

    /// The length of its values, if that is fixed.
    pub(super) fn fixed_bytes(self) -> Option<u64> {
        self.fixed.map(u64::from)
    }
}

fn column_name(column: &HeaderColumn) -> String {
    name(&column.name)
}

/// The low half of a number whose high half must be a sign.
fn low_32(number: u64) -> Result<u32> {
    match number >> 32 {
        0 | 0xffff_ffff => Ok(low_u32(number)),
        _ => Err(Error::corrupt("a time in seconds of more than 32 bits")),
    }
}

/// Columns of which rows say in a bitmap which are there; more are listed.
pub(super) const BITMAP_COLUMNS_MAX: usize = 63;
