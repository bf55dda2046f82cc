//! From Statistics.db to [`Statistics`].

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{bits_i32, bits_i64, low_u32, u64_of};
use marquetry_base::{Budget, Error, Limit, Limits, Object, Release, Result};

use super::{
    CommitLogInterval, CommitLogPosition, HeaderColumn, Histogram, SerializationHeader, Statistics, Stats,
    release_columns,
};
use crate::sstable::batch::NO_DELETION_TIME;
use crate::sstable::elements::{ComponentReader, Cursor, Elements, Fault, Going, Parser, text};
use crate::sstable::marshal::MarshalType;
use crate::sstable::version::Version;

/// Microseconds and seconds of 2015-09-22T00:00:00Z: what the least times are stored as differences from (`EncodingStats.java`).
const TIMESTAMP_EPOCH: i64 = 1_442_880_000_000_000;
const DELETION_TIME_EPOCH: u32 = 1_442_880_000;

/// The most components: Cassandra and ScyllaDB have four.
const COMPONENTS_MAX: u32 = 16;
const CHECKSUM_BYTES: u64 = 4;

/// Numbers of components (`MetadataType.java`).
const VALIDATION: u32 = 0;
const STATS: u32 = 2;
const HEADER: u32 = 3;

/// Reads Statistics.db.
pub type StatisticsReader = ComponentReader<StatisticsParser>;

/// What a [`StatisticsReader`] has read.
#[derive(Debug)]
pub struct StatisticsParser {
    version: Version,
    nesting_max: u32,
    expects: Expects,
    /// The components: their numbers, and their bytes without checksums.
    components: Vec<(u32, Range<u64>)>,
    next: usize,
    made: Box<Made>,
}

/// What was read so far.
#[derive(Debug, Default)]
struct Made {
    validation: Option<(String, f64)>,
    stats: Stats,
    has_stats: bool,
    timestamp_min: i64,
    local_deletion_min: u32,
    ttl_min: u32,
    key: Option<MarshalType>,
    clustering: Vec<MarshalType>,
    statics: Vec<HeaderColumn>,
    regulars: Vec<HeaderColumn>,
    /// The types of the clustering columns that the statistics' own slice has, and the lengths of those values.
    slice_types: Vec<MarshalType>,
}

#[derive(Debug, Clone, PartialEq)]
enum Expects {
    /// How many components there are.
    Count,
    /// Where they are.
    Contents {
        count: u32,
        sum: u32,
    },
    /// The checksum of a component's bytes.
    Checksum {
        left: Range<u64>,
        sum: u32,
    },
    /// The next component.
    Component,
    Validation,
    PartitionSizes {
        left: Option<u32>,
    },
    PartitionCells {
        left: Option<u32>,
    },
    /// Times, TTLs and the compression ratio.
    Times,
    Tombstones {
        left: Option<u32>,
    },
    LevelAndRepair,
    ClusteringMin {
        left: Option<u32>,
    },
    ClusteringMax {
        left: Option<u32>,
    },
    SliceTypes {
        left: Option<u64>,
    },
    /// A bound of the slice: what values follow.
    SliceBound {
        is_end: bool,
    },
    SliceValues {
        is_end: bool,
        at: u16,
        count: u16,
        header: u64,
    },
    Totals,
    Intervals {
        left: Option<u32>,
    },
    Origin,
    KeyRange,
    HeaderStart,
    HeaderKey,
    HeaderClustering {
        left: Option<u64>,
    },
    HeaderStatics {
        left: Option<u64>,
    },
    HeaderRegulars {
        left: Option<u64>,
    },
}

impl StatisticsReader {
    /// A reader of the Statistics.db that `object` is, of an SSTable of this version.
    pub fn new(object: Object, version: Version, limits: Limits) -> StatisticsReader {
        let limit = (Limit::PageIndexBytes, limits.page_index_bytes);
        let parser = StatisticsParser {
            version,
            nesting_max: limits.nesting,
            expects: Expects::Count,
            components: Vec::new(),
            next: 0,
            made: Box::default(),
        };
        ComponentReader::of(Elements::new(object, "Statistics.db", limit, &limits), parser)
    }
}

impl Parser for StatisticsParser {
    type Product = Statistics;

    fn next(
        &mut self,
        elements: &mut Elements,
        budget: &mut Budget<'_>,
    ) -> Result<Going<Option<Statistics>>> {
        if self.expects == Expects::Component && self.next == self.components.len() {
            return self.finish(elements).map(|statistics| Going::Done(Some(statistics)));
        }
        Ok(self.next_element(elements, budget)?.map(|()| None))
    }
}

impl StatisticsParser {
    /// Reads one element, and says what comes next.
    fn next_element(&mut self, elements: &mut Elements, budget: &mut Budget<'_>) -> Result<Going<()>> {
        let StatisticsParser { version, nesting_max, made, .. } = self;
        let (version, nesting_max) = (*version, *nesting_max);
        let stats = &mut made.stats;
        let going = match &mut self.expects {
            Expects::Count | Expects::Contents { .. } => return self.contents(elements, budget),
            Expects::Checksum { left, sum } => {
                if left.is_empty() {
                    let (sum, end) = (*sum, left.end);
                    elements.seek(end..end + CHECKSUM_BYTES);
                    let stored = match elements.next(budget, |cursor| cursor.u32())? {
                        Going::Done(stored) => stored,
                        Going::Need(demand) => return Ok(Going::Need(demand)),
                    };
                    if stored != sum {
                        let message =
                            format!("a component's checksum is {sum:08x}, but {stored:08x} is stored");
                        return Err(elements.fault(Error::checksum(message).at_offset(end)));
                    }
                    return self.enter(elements);
                }
                return Ok(match elements.checksum(budget, left, sum) {
                    Some(demand) => Going::Need(demand),
                    None => Going::Done(()),
                });
            }
            Expects::Component => {
                let (_, range) = self.components[self.next].clone();
                if version.has_metadata_checksum() {
                    self.expects = Expects::Checksum { left: range, sum: 0 };
                    return Ok(Going::Done(()));
                }
                return self.enter(elements);
            }
            Expects::Validation => elements
                .next(budget, |cursor| Ok((cursor.short_text()?.to_string(), cursor.f64()?)))?
                .map(|read| {
                    made.validation = Some(read);
                    Expects::Component
                }),
            Expects::PartitionSizes { left } => {
                let read = list(elements, budget, *left, bucket)?;
                read.map(|read| match push(read, &mut stats.partition_sizes.buckets) {
                    None => Expects::PartitionCells { left: None },
                    left => Expects::PartitionSizes { left },
                })
            }
            Expects::PartitionCells { left } => {
                let read = list(elements, budget, *left, bucket)?;
                read.map(|read| match push(read, &mut stats.partition_cells.buckets) {
                    None => {
                        shift(&mut stats.partition_sizes);
                        shift(&mut stats.partition_cells);
                        Expects::Times
                    }
                    left => Expects::PartitionCells { left },
                })
            }
            Expects::Times => elements
                .next(budget, |cursor| times(cursor, version, stats))?
                .map(|()| Expects::Tombstones { left: None }),
            Expects::Tombstones { left } => {
                let read = list(elements, budget, *left, |cursor| tombstones(cursor, version))?;
                // The histogram begins with the most bins it may have.
                read.map(|read| match push(read, &mut stats.tombstone_drop_times) {
                    None => Expects::LevelAndRepair,
                    left => Expects::Tombstones { left },
                })
            }
            Expects::LevelAndRepair => {
                let read = elements.next(budget, |cursor| Ok((bits_i32(cursor.u32()?), cursor.i64()?)))?;
                read.map(|(level, repaired_at)| {
                    (stats.level, stats.repaired_at) = (level, repaired_at);
                    match version.has_legacy_min_max() {
                        true => Expects::ClusteringMin { left: None },
                        false => Expects::SliceTypes { left: None },
                    }
                })
            }
            Expects::ClusteringMin { left } => {
                let read = clustering_value(elements, budget, *left)?;
                read.map(|read| match push(read, &mut stats.clustering_min) {
                    None => Expects::ClusteringMax { left: None },
                    left => Expects::ClusteringMin { left },
                })
            }
            Expects::ClusteringMax { left } => {
                let read = clustering_value(elements, budget, *left)?;
                read.map(|read| match push(read, &mut stats.clustering_max) {
                    None => Expects::Totals,
                    left => Expects::ClusteringMax { left },
                })
            }
            Expects::SliceTypes { left } => {
                let read = vint_list(elements, budget, *left, |cursor| kind(cursor, nesting_max))?;
                read.map(|read| match push(read, &mut made.slice_types) {
                    None => Expects::SliceBound { is_end: false },
                    left => Expects::SliceTypes { left },
                })
            }
            Expects::SliceBound { is_end } => {
                let is_end = *is_end;
                let most = made.slice_types.len();
                let read = elements.next(budget, |cursor| {
                    // What kind of bound it is does not matter: the values are in it or beside it.
                    let (_, count) = (cursor.u8()?, cursor.u16()?);
                    if usize::from(count) > most {
                        return Err(Error::corrupt("a bound of more values than there are columns").into());
                    }
                    Ok(count)
                })?;
                read.map(|count| Expects::SliceValues { is_end, at: 0, count, header: 0 })
            }
            Expects::SliceValues { is_end, at, count, header } => {
                let (is_end, at, count) = (*is_end, *at, *count);
                if at == count {
                    self.expects =
                        if is_end { Expects::Totals } else { Expects::SliceBound { is_end: true } };
                    return Ok(Going::Done(()));
                }
                let fixed = made.slice_types[usize::from(at)].fixed_bytes();
                let before = *header;
                let read = elements.next(budget, |cursor| {
                    let header = if at % 32 == 0 { cursor.vint()? } else { before };
                    Ok((slice_value(cursor, header, at, fixed)?, header))
                })?;
                read.map(|(value, header)| {
                    let values = if is_end { &mut stats.clustering_max } else { &mut stats.clustering_min };
                    values.push(value);
                    Expects::SliceValues { is_end, at: at + 1, count, header }
                })
            }
            Expects::Totals => elements.next(budget, |cursor| totals(cursor, version, stats))?.map(|()| {
                match version.has_commit_log_intervals() {
                    true => Expects::Intervals { left: None },
                    false => Expects::Origin,
                }
            }),
            Expects::Intervals { left } => {
                let read = list(elements, budget, *left, |cursor| {
                    Ok(CommitLogInterval { start: position(cursor)?, end: position(cursor)? })
                })?;
                read.map(|read| match push(read, &mut stats.commit_log_intervals) {
                    None => Expects::Origin,
                    left => Expects::Intervals { left },
                })
            }
            Expects::Origin => elements
                .next(budget, |cursor| origin(cursor, version, stats))?
                .map(|()| if version.has_key_range() { Expects::KeyRange } else { Expects::Component }),
            Expects::KeyRange => {
                let read = elements.next(budget, |cursor| {
                    let range = (cursor.vint_bytes()?.to_vec(), cursor.vint_bytes()?.to_vec());
                    Ok((range, cursor.f64()?))
                })?;
                read.map(|(range, coverage)| {
                    (stats.key_range, stats.token_space_coverage) = (Some(range), Some(coverage));
                    Expects::Component
                })
            }
            Expects::HeaderStart => {
                let read =
                    elements.next(budget, |cursor| Ok((cursor.vint()?, cursor.vint()?, cursor.vint()?)))?;
                read.map(|(timestamp, deletion, ttl)| {
                    made.timestamp_min = TIMESTAMP_EPOCH.wrapping_add(bits_i64(timestamp));
                    made.local_deletion_min = DELETION_TIME_EPOCH.wrapping_add(low_u32(deletion));
                    made.ttl_min = low_u32(ttl);
                    Expects::HeaderKey
                })
            }
            Expects::HeaderKey => elements.next(budget, |cursor| kind(cursor, nesting_max))?.map(|key| {
                made.key = Some(key);
                Expects::HeaderClustering { left: None }
            }),
            Expects::HeaderClustering { left } => {
                let read = vint_list(elements, budget, *left, |cursor| kind(cursor, nesting_max))?;
                read.map(|read| match push(read, &mut made.clustering) {
                    None => Expects::HeaderStatics { left: None },
                    left => Expects::HeaderClustering { left },
                })
            }
            Expects::HeaderStatics { left } => {
                let read = vint_list(elements, budget, *left, |cursor| column(cursor, nesting_max))?;
                read.map(|read| match push(read, &mut made.statics) {
                    None => Expects::HeaderRegulars { left: None },
                    left => Expects::HeaderStatics { left },
                })
            }
            Expects::HeaderRegulars { left } => {
                let read = vint_list(elements, budget, *left, |cursor| column(cursor, nesting_max))?;
                read.map(|read| match push(read, &mut made.regulars) {
                    None => Expects::Component,
                    left => Expects::HeaderRegulars { left },
                })
            }
        };
        Ok(match going {
            Going::Done(expects) => {
                if expects == Expects::Component {
                    self.leave(elements)?;
                }
                self.expects = expects;
                Going::Done(())
            }
            Going::Need(demand) => Going::Need(demand),
        })
    }

    /// Reads where components are.
    fn contents(&mut self, elements: &mut Elements, budget: &mut Budget<'_>) -> Result<Going<()>> {
        let has_sums = self.version.has_metadata_checksum();
        let Expects::Contents { count, sum } = self.expects else {
            let read = elements.next(budget, |cursor| {
                let count = cursor.count()?;
                let sum = marquetry_kernels::crc32(0, &count.to_be_bytes());
                let stored = if has_sums { cursor.u32()? } else { sum };
                if stored != sum {
                    return Err(Error::checksum("the number of components has another checksum").into());
                }
                if count > COMPONENTS_MAX {
                    return Err(Error::corrupt(format!("{count} components")).into());
                }
                Ok((count, sum))
            })?;
            return Ok(read.map(|(count, sum)| self.expects = Expects::Contents { count, sum }));
        };
        let end = elements.at() + elements.left();
        let read = elements.next(budget, |cursor| {
            let mut components: Vec<(u32, Range<u64>)> = Vec::new();
            let mut computed = sum;
            for _ in 0..count {
                let (kind, start) = (cursor.u32()?, cursor.u32()?);
                computed = marquetry_kernels::crc32(computed, &kind.to_be_bytes());
                computed = marquetry_kernels::crc32(computed, &start.to_be_bytes());
                components.push((kind, u64::from(start)..end));
            }
            if has_sums && cursor.u32()? != computed {
                return Err(Error::checksum("the list of components has another checksum").into());
            }
            Ok(components)
        })?;
        let mut components = match read {
            Going::Done(components) => components,
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        let first = elements.at();
        // Components follow each other; each ends where the next one begins.
        for at in 0..components.len() {
            let end = components.get(at + 1).map_or(end, |(_, next)| next.start);
            let range = &mut components[at].1;
            let sum_bytes = if has_sums { CHECKSUM_BYTES } else { 0 };
            let before = if at == 0 { first } else { range.start };
            range.end = end.saturating_sub(sum_bytes);
            if range.start < before || range.end < range.start {
                return Err(elements.corrupt("components that are not one after the other", first));
            }
        }
        (self.components, self.expects) = (components, Expects::Component);
        Ok(Going::Done(()))
    }

    /// Begins to read the next component, whose checksum is right.
    fn enter(&mut self, elements: &mut Elements) -> Result<Going<()>> {
        let Some((kind, range)) = self.components.get(self.next).cloned() else {
            return Err(Error::internal("a component after the last"));
        };
        elements.seek(range.clone());
        self.expects = match kind {
            VALIDATION if self.made.validation.is_none() => Expects::Validation,
            STATS if !self.made.has_stats => {
                self.made.has_stats = true;
                Expects::PartitionSizes { left: None }
            }
            HEADER if self.made.key.is_none() => Expects::HeaderStart,
            VALIDATION | STATS | HEADER => {
                return Err(elements.corrupt("a component that is there twice", range.start));
            }
            // How many partitions there are, for compactions; and what is not known.
            _ => {
                elements.release_before(range.end);
                self.next += 1;
                Expects::Component
            }
        };
        Ok(Going::Done(()))
    }

    /// Ends a component: nothing may be left of it. (Cassandra 5.0 counts four bytes more for a tombstones' bin than it writes.)
    fn leave(&mut self, elements: &mut Elements) -> Result<()> {
        let is_stats = self.components.get(self.next).is_some_and(|(kind, _)| *kind == STATS);
        let bins = if is_stats && self.version.has_unsigned_deletion_time() {
            u64_of(self.made.stats.tombstone_drop_times.len())
        } else {
            0
        };
        if elements.left() > 4 * bins {
            let at = elements.at();
            return Err(elements.corrupt("a component that is longer than what is in it", at));
        }
        elements.release_before(elements.at() + elements.left());
        self.next += 1;
        Ok(())
    }

    fn finish(&mut self, elements: &Elements) -> Result<Statistics> {
        let lacks = |what: &'static str| elements.corrupt(what, 0);
        let made = core::mem::take(&mut *self.made);
        let (partitioner, bloom_false_positives) =
            made.validation.ok_or_else(|| lacks("statistics that do not say the partitioner"))?;
        if !made.has_stats {
            return Err(lacks("statistics without statistics"));
        }
        let key = made.key.ok_or_else(|| lacks("statistics without a serialization header"))?;
        Ok(Statistics {
            partitioner,
            bloom_false_positives,
            stats: made.stats,
            header: SerializationHeader {
                timestamp_min: made.timestamp_min,
                local_deletion_min: made.local_deletion_min,
                ttl_min: made.ttl_min,
                key,
                clustering: made.clustering,
                statics: made.statics,
                regulars: made.regulars,
            },
        })
    }
}

/// What was read of a list: how many are left, and the first of them.
type Listed<N, T> = (N, Option<T>);

/// Reads the length of a list, or the next of its elements.
fn list<T>(
    elements: &mut Elements,
    budget: &mut Budget<'_>,
    left: Option<u32>,
    mut read: impl FnMut(&mut Cursor<'_>) -> Result<T, Fault>,
) -> Result<Going<Listed<u32, T>>> {
    match left {
        None => Ok(elements.next(budget, |cursor| cursor.count())?.map(|count| (count, None))),
        Some(left) => Ok(elements.next(budget, &mut read)?.map(|value| (left - 1, Some(value)))),
    }
}

/// As [`list`], of a list whose length is a vint.
fn vint_list<T>(
    elements: &mut Elements,
    budget: &mut Budget<'_>,
    left: Option<u64>,
    mut read: impl FnMut(&mut Cursor<'_>) -> Result<T, Fault>,
) -> Result<Going<Listed<u64, T>>> {
    match left {
        None => Ok(elements.next(budget, |cursor| cursor.vint())?.map(|count| (count, None))),
        Some(left) => Ok(elements.next(budget, &mut read)?.map(|value| (left - 1, Some(value)))),
    }
}

/// As [`list`], of clustering values, of which there is one a column at the most.
fn clustering_value(
    elements: &mut Elements,
    budget: &mut Budget<'_>,
    left: Option<u32>,
) -> Result<Going<Listed<u32, Vec<u8>>>> {
    let read = list(elements, budget, left, |cursor| Ok(cursor.short_bytes()?.to_vec()))?;
    match read {
        Going::Done((count, None)) if count > u32::from(u16::MAX) => {
            Err(elements.corrupt("more clustering values than there can be columns", elements.at()))
        }
        read => Ok(read),
    }
}

/// Keeps what was read; says how many are left, `None` if no more are.
fn push<N: PartialEq + Default, T>((left, value): Listed<N, T>, values: &mut Vec<T>) -> Option<N> {
    values.extend(value);
    (left != N::default()).then_some(left)
}

/// A bucket of a histogram: the bound of the one before it, and the number of things.
fn bucket(cursor: &mut Cursor<'_>) -> Result<(u64, u64), Fault> {
    Ok((cursor.u64()?, cursor.u64()?))
}

/// Each bucket is stored with the bound of the one before it (the first with its own).
fn shift(histogram: &mut Histogram) {
    let buckets = &mut histogram.buckets;
    for at in 1..buckets.len() {
        let next = buckets.get(at + 1).map_or(buckets[at].0, |(bound, _)| *bound);
        buckets[at].0 = next;
    }
}

/// From the commit log's position to the compression ratio, and the tombstones' most bins.
fn times(cursor: &mut Cursor<'_>, version: Version, stats: &mut Stats) -> Result<(), Fault> {
    cursor.take(8 + 4)?;
    (stats.timestamp_min, stats.timestamp_max) = (cursor.i64()?, cursor.i64()?);
    let deletion = |stored: u32| match stored {
        0x7fff_ffff if !version.has_unsigned_deletion_time() => NO_DELETION_TIME,
        seconds => seconds,
    };
    (stats.local_deletion_min, stats.local_deletion_max) = (deletion(cursor.u32()?), deletion(cursor.u32()?));
    (stats.ttl_min, stats.ttl_max) = (bits_i32(cursor.u32()?), bits_i32(cursor.u32()?));
    stats.compression_ratio = cursor.f64()?;
    cursor.u32()?;
    Ok(())
}

/// A bin of the tombstones' histogram: a time, and the number of tombstones.
fn tombstones(cursor: &mut Cursor<'_>, version: Version) -> Result<(u64, u64), Fault> {
    if version.has_unsigned_deletion_time() {
        return Ok((cursor.u64()?, u64::from(cursor.u32()?)));
    }
    let seconds = cursor.f64()?;
    // Stored as a binary64; what is no number of seconds counts as the latest time.
    let whole = marquetry_base::cast::integer_of_f64(seconds).and_then(|seconds| u64::try_from(seconds).ok());
    Ok((whole.unwrap_or(0x7fff_ffff), cursor.u64()?))
}

/// A value of a clustering bound: two bits say whether it is empty or null.
fn slice_value(cursor: &mut Cursor<'_>, header: u64, at: u16, fixed: Option<u32>) -> Result<Vec<u8>, Fault> {
    if header >> (at % 32 * 2) & 3 != 0 {
        return Ok(Vec::new());
    }
    Ok(match fixed {
        Some(length) => cursor.long(u64::from(length))?.to_vec(),
        None => cursor.vint_bytes()?.to_vec(),
    })
}

/// From the kind of counters to the commit log's lower bound.
fn totals(cursor: &mut Cursor<'_>, version: Version, stats: &mut Stats) -> Result<(), Fault> {
    stats.has_legacy_counter_shards = cursor.bool()?;
    (stats.cells, stats.rows) = (cursor.i64()?, cursor.i64()?);
    if version.has_commit_log_lower_bound() {
        cursor.take(8 + 4)?;
    }
    Ok(())
}

/// A position in the commit log.
fn position(cursor: &mut Cursor<'_>) -> Result<CommitLogPosition, Fault> {
    Ok(CommitLogPosition { segment: cursor.i64()?, byte: bits_i32(cursor.u32()?) })
}

/// From the pending repair to the partitions' deletions.
fn origin(cursor: &mut Cursor<'_>, version: Version, stats: &mut Stats) -> Result<(), Fault> {
    if version.has_pending_repair() {
        stats.pending_repair = if cursor.bool()? { Some(cursor.uuid()?) } else { None };
        stats.is_transient = cursor.bool()?;
    }
    if version.has_host_id() {
        stats.host_id = if cursor.bool()? { Some(cursor.uuid()?) } else { None };
    }
    if version.has_partition_deletions_marker() {
        stats.has_partition_deletions = Some(cursor.bool()?);
    }
    Ok(())
}

fn kind(cursor: &mut Cursor<'_>, nesting_max: u32) -> Result<MarshalType, Fault> {
    Ok(MarshalType::parse(text(cursor.vint_bytes()?)?, nesting_max)?)
}

fn column(cursor: &mut Cursor<'_>, nesting_max: u32) -> Result<HeaderColumn, Fault> {
    let name = cursor.vint_bytes()?.to_vec();
    Ok(HeaderColumn { name, kind: kind(cursor, nesting_max)? })
}

impl Release for StatisticsParser {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_columns(&mut self.made.statics, budget) && release_columns(&mut self.made.regulars, budget)
    }
}
