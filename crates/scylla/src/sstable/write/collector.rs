//! What Statistics.db will say of the rows, counted as they are written (`MetadataCollector.java`).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::cardinality::Cardinality;
use super::clustering::{Clustering, ClusteringOrder};
use crate::sstable::batch::{Deletion, EntryKind, Expiry, NO_DELETION_TIME};

/// The bounds of partitions' sizes: 155 of them since version `oa`, up to 3.5 TB, and 150 before; and of their cells.
const SIZE_BOUNDS: usize = 155;
const LEGACY_SIZE_BOUNDS: usize = 150;
const CELL_BOUNDS: usize = 118;
/// Tombstones are counted by the minute, and the counts are merged to so many at the end.
pub(super) const TOMBSTONE_BINS: usize = 100;
const TOMBSTONE_SECONDS: u32 = 60;
/// Times that are held before they are merged.
const TOMBSTONE_TIMES: usize = 4096;

/// Least and greatest of a number; none yet if they are the wrong way round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range<T> {
    pub(super) least: T,
    pub(super) greatest: T,
}

impl<T: Ord + Copy> Range<T> {
    fn new(above: T, below: T) -> Range<T> {
        Range { least: above, greatest: below }
    }

    #[inline]
    fn add(&mut self, value: T) {
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// Both, if there was any.
    pub(super) fn get(&self) -> Option<(T, T)> {
        (self.least <= self.greatest).then_some((self.least, self.greatest))
    }
}

/// Numbers of things by their size.
#[derive(Debug)]
pub(super) struct Counts {
    bounds: Vec<u64>,
    counts: Vec<u64>,
}

impl Counts {
    fn new(bounds: usize) -> Counts {
        // Each bound is a fifth more than the one before, rounded.
        let mut all = alloc::vec![1_u64];
        while all.len() < bounds {
            let last = all.last().copied().unwrap_or(1);
            let next = (last.saturating_mul(12) + 5) / 10;
            all.push(next.max(last + 1));
        }
        Counts { counts: alloc::vec![0; bounds + 1], bounds: all }
    }

    fn add(&mut self, size: u64) {
        let at = self.bounds.partition_point(|bound| *bound < size);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
    }

    /// Its bytes: each count with the bound of the one before it, the first with its own.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(u32::try_from(self.counts.len()).unwrap_or(0).to_be_bytes());
        for (at, count) in self.counts.iter().enumerate() {
            out.extend(self.bounds.get(at.saturating_sub(1)).copied().unwrap_or(0).to_be_bytes());
            out.extend(count.to_be_bytes());
        }
    }
}

/// Counts.
#[derive(Debug)]
pub(super) struct Collector {
    pub(super) sizes: Counts,
    pub(super) cells: Counts,
    pub(super) timestamps: Range<i64>,
    pub(super) local_deletions: Range<u32>,
    pub(super) ttls: Range<u32>,
    tombstones: BTreeMap<u32, u64>,
    pub(super) clustering_min: Option<Clustering>,
    pub(super) clustering_max: Option<Clustering>,
    pub(super) cardinality: Cardinality,
    pub(super) columns: i64,
    pub(super) rows: i64,
    pub(super) has_partition_deletions: bool,
    pub(super) has_legacy_shards: bool,
    pub(super) first_key: Option<Vec<u8>>,
    pub(super) last_key: Vec<u8>,
    pub(super) partitions: u64,
    partition_cells: u64,
}

impl Collector {
    pub(super) fn new(is_legacy: bool) -> Collector {
        Collector {
            sizes: Counts::new(if is_legacy { LEGACY_SIZE_BOUNDS } else { SIZE_BOUNDS }),
            cells: Counts::new(CELL_BOUNDS),
            timestamps: Range::new(i64::MAX, i64::MIN),
            local_deletions: Range::new(u32::MAX, 0),
            ttls: Range::new(u32::MAX, 0),
            tombstones: BTreeMap::new(),
            clustering_min: None,
            clustering_max: None,
            cardinality: Cardinality::new(),
            columns: 0,
            rows: 0,
            has_partition_deletions: false,
            has_legacy_shards: false,
            first_key: None,
            last_key: Vec::new(),
            partitions: 0,
            partition_cells: 0,
        }
    }

    pub(super) fn partition(&mut self, key: &[u8], deletion: Option<Deletion>) {
        self.cardinality.add(key);
        self.first_key.get_or_insert_with(|| key.to_vec());
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.partitions += 1;
        self.partition_cells = 0;
        if let Some(deletion) = deletion {
            self.has_partition_deletions = true;
            self.deletion(deletion);
        }
    }

    pub(super) fn end_partition(&mut self, bytes: u64) {
        self.sizes.add(bytes);
        self.cells.add(self.partition_cells);
    }

    pub(super) fn deletion(&mut self, deletion: Deletion) {
        self.timestamps.add(deletion.timestamp);
        self.local_deletion(deletion.local_deletion);
    }

    #[inline]
    fn local_deletion(&mut self, seconds: u32) {
        self.local_deletions(seconds, 1);
    }

    #[inline]
    fn local_deletions(&mut self, seconds: u32, count: u64) {
        self.local_deletions.add(seconds);
        if seconds != NO_DELETION_TIME {
            self.tombstone(seconds, count);
        }
    }

    fn tombstone(&mut self, seconds: u32, count: u64) {
        let minute = seconds.checked_next_multiple_of(TOMBSTONE_SECONDS).unwrap_or(seconds);
        *self.tombstones.entry(minute).or_insert(0) += count;
        if self.tombstones.len() > TOMBSTONE_TIMES {
            self.merge_tombstones(TOMBSTONE_TIMES / 2);
        }
    }

    /// What says that a row exists.
    #[inline]
    pub(super) fn liveness(&mut self, timestamp: i64, expiry: Option<Expiry>) {
        self.timestamps.add(timestamp);
        let expiry = expiry.unwrap_or(Expiry::NEVER);
        self.ttls.add(expiry.ttl);
        self.local_deletion(expiry.local_deletion);
    }

    /// A cell.
    #[inline]
    pub(super) fn cell(&mut self, timestamp: i64, life: Expiry) {
        self.partition_cells += 1;
        self.liveness(timestamp, Some(life));
    }

    /// Cells that live as their row does: at least one.
    #[inline]
    pub(super) fn cells_as_row(&mut self, count: u64, timestamp: i64, expiry: Option<Expiry>) {
        let life = expiry.unwrap_or(Expiry::NEVER);
        self.partition_cells += count;
        self.timestamps.add(timestamp);
        self.ttls.add(life.ttl);
        self.local_deletions(life.local_deletion, count);
    }

    /// A row, with so many columns.
    pub(super) fn row(&mut self, columns: usize) {
        self.rows += 1;
        self.columns = self.columns.saturating_add(i64::try_from(columns).unwrap_or(i64::MAX));
    }

    /// The clustering values of a row, or of a bound. They are in order within a partition, so only the first and the last matter.
    pub(super) fn clustering(&mut self, order: &ClusteringOrder, clustering: &Clustering) {
        let (is_start, is_end) = match clustering.kind {
            EntryKind::Row => (true, true),
            EntryKind::InclusiveStart | EntryKind::ExclusiveStart => (true, false),
            EntryKind::InclusiveEnd | EntryKind::ExclusiveEnd => (false, true),
            EntryKind::Static
            | EntryKind::ExclusiveEndInclusiveStart
            | EntryKind::InclusiveEndExclusiveStart => (false, false),
        };
        let replace = |held: &mut Option<Clustering>, wanted: Ordering| match held {
            None => *held = Some(clustering.clone()),
            Some(held) if order.compare(clustering, held) == wanted => held.clone_from(clustering),
            Some(_) => {}
        };
        if is_start {
            replace(&mut self.clustering_min, Ordering::Less);
        }
        if is_end {
            replace(&mut self.clustering_max, Ordering::Greater);
        }
    }

    /// When tombstones can be dropped, in at most so many bins as the format has.
    pub(super) fn tombstones(&mut self) -> &BTreeMap<u32, u64> {
        self.merge_tombstones(TOMBSTONE_BINS);
        &self.tombstones
    }

    /// Merges the times that are nearest to each other, until there are at most so many.
    fn merge_tombstones(&mut self, most: usize) {
        let Some(excess) = self.tombstones.len().checked_sub(most).filter(|excess| *excess > 0) else {
            return;
        };
        let times: Vec<u32> = self.tombstones.keys().copied().collect();
        let mut gaps: Vec<(u32, u32)> = times.windows(2).map(|pair| (pair[1] - pair[0], pair[0])).collect();
        gaps.sort_unstable();
        gaps.truncate(excess);
        gaps.sort_unstable_by_key(|(_, start)| *start);
        // From the start: what a time was merged to may be merged further.
        let next =
            |times: &BTreeMap<u32, u64>, after: u32| times.range(after..).nth(1).map(|(time, _)| *time);
        for (_, start) in gaps {
            let Some((&time, _)) = self.tombstones.range(..=start).next_back() else { continue };
            let Some(other) = next(&self.tombstones, time) else { continue };
            let (left, right) = (self.tombstones.remove(&time), self.tombstones.remove(&other));
            let (left, right) = (left.unwrap_or(0), right.unwrap_or(0));
            let sum = u128::from(time) * u128::from(left) + u128::from(other) * u128::from(right);
            let mean = sum / u128::from((left + right).max(1));
            let mean = u32::try_from(mean).unwrap_or(other);
            *self.tombstones.entry(mean).or_insert(0) += left + right;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_those_of_servers() {
        let counts = Counts::new(SIZE_BOUNDS);
        assert_eq!(counts.bounds[..12], [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17]);
        assert_eq!(counts.bounds.last(), Some(&3_520_571_548_412));
        assert_eq!(counts.bounds[LEGACY_SIZE_BOUNDS - 1], 1_414_838_745_986);
    }

    #[test]
    fn tombstones_are_merged_to_few_bins() {
        let mut collector = Collector::new(false);
        for number in 0..20_000_u32 {
            collector.deletion(Deletion { timestamp: 0, local_deletion: number * 61 });
        }
        let bins = collector.tombstones();
        assert!(bins.len() <= TOMBSTONE_BINS && bins.len() > 10, "{}", bins.len());
        assert_eq!(bins.values().sum::<u64>(), 20_000);
    }
}
