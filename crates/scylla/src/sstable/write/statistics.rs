//! Statistics.db: its four components, with checksums since version `na` (`MetadataSerializer.java`). What is in them,
//! [the reader](crate::sstable::statistics) says.

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::cast::{bits_u64, u64_of};
use marquetry_kernels::crc32;

use super::clustering::Clustering;
use super::collector::{Collector, TOMBSTONE_BINS};
use crate::sstable::batch::{EntryKind, NO_DELETION_TIME};
use crate::sstable::marshal::MarshalType;
use crate::sstable::statistics::{DELETION_TIME_EPOCH, SerializationHeader, TIMESTAMP_EPOCH};
use crate::sstable::token::murmur3_token;
use crate::sstable::version::Version;
use crate::sstable::vint;

/// The partitioner. Tokens are those of no other.
const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
/// The latest local deletion time of versions before `oa`: none.
const LEGACY_NO_DELETION_TIME: u32 = 0x7fff_ffff;

/// What the file is made of.
pub(super) struct Parts<'a> {
    pub(super) version: Version,
    pub(super) bloom_false_positives: f64,
    pub(super) header: &'a SerializationHeader,
    /// Fixed lengths of the clustering columns.
    pub(super) fixed: &'a [Option<u32>],
    /// Bytes of Data.db and of the data, if they are compressed.
    pub(super) ratio: Option<(u64, u64)>,
}

impl Parts<'_> {
    /// The file.
    pub(super) fn write(&self, collector: &mut Collector) -> Vec<u8> {
        let components = [self.validation(), compaction(collector), self.stats(collector), self.header()];
        let has_sums = self.version.has_metadata_checksum();
        let sum_bytes = if has_sums { 4 } else { 0 };
        let mut file = Vec::new();
        let count = u32::try_from(components.len()).unwrap_or(0);
        file.extend(count.to_be_bytes());
        let mut sum = crc32(0, &count.to_be_bytes());
        if has_sums {
            file.extend(sum.to_be_bytes());
        }
        let mut start = file.len() + 8 * components.len() + sum_bytes;
        for (number, component) in components.iter().enumerate() {
            let place = [u32::try_from(number).unwrap_or(0), u32::try_from(start).unwrap_or(u32::MAX)];
            for number in place {
                sum = crc32(sum, &number.to_be_bytes());
                file.extend(number.to_be_bytes());
            }
            start += component.len() + sum_bytes;
        }
        if has_sums {
            file.extend(sum.to_be_bytes());
        }
        for component in &components {
            file.extend(component);
            if has_sums {
                file.extend(crc32(0, component).to_be_bytes());
            }
        }
        file
    }

    fn validation(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_short(&mut bytes, PARTITIONER.as_bytes());
        bytes.extend(self.bloom_false_positives.to_be_bytes());
        bytes
    }

    fn stats(&self, collector: &mut Collector) -> Vec<u8> {
        let version = self.version;
        let mut bytes = Vec::new();
        collector.sizes.write(&mut bytes);
        collector.cells.write(&mut bytes);
        push_no_position(&mut bytes);
        let (least, greatest) = collector.timestamps.get().unwrap_or((i64::MIN, i64::MAX));
        bytes.extend(least.to_be_bytes());
        bytes.extend(greatest.to_be_bytes());
        let none =
            if version.has_unsigned_deletion_time() { NO_DELETION_TIME } else { LEGACY_NO_DELETION_TIME };
        let (least, greatest) =
            collector.local_deletions.get().unwrap_or((NO_DELETION_TIME, NO_DELETION_TIME));
        bytes.extend(least.min(none).to_be_bytes());
        bytes.extend(greatest.min(none).to_be_bytes());
        let (least, greatest) = collector.ttls.get().unwrap_or((0, 0));
        bytes.extend(least.to_be_bytes());
        bytes.extend(greatest.to_be_bytes());
        bytes.extend(ratio(self.ratio).to_be_bytes());
        self.tombstones(collector, &mut bytes);
        // Its level; it was never repaired.
        bytes.extend(0_u32.to_be_bytes());
        bytes.extend(0_u64.to_be_bytes());
        self.clustering(collector, &mut bytes);
        bytes.push(u8::from(collector.has_legacy_shards));
        bytes.extend(collector.columns.to_be_bytes());
        bytes.extend(collector.rows.to_be_bytes());
        push_no_position(&mut bytes);
        // No interval of a commit log.
        bytes.extend(0_u32.to_be_bytes());
        if version.has_pending_repair() {
            // No repair, and not of a transient replica.
            bytes.extend([0, 0]);
        }
        if version.has_host_id() {
            bytes.push(0);
        }
        if version.has_partition_deletions_marker() {
            bytes.push(u8::from(collector.has_partition_deletions));
        }
        if version.has_key_range() {
            for key in [collector.first_key.as_deref().unwrap_or_default(), &collector.last_key[..]] {
                vint::push_unsigned(&mut bytes, u64_of(key.len()));
                bytes.extend(key);
            }
            bytes.extend(coverage(collector).to_be_bytes());
        }
        bytes
    }

    fn tombstones(&self, collector: &mut Collector, bytes: &mut Vec<u8>) {
        let bins = collector.tombstones();
        bytes.extend(u32::try_from(TOMBSTONE_BINS).unwrap_or(0).to_be_bytes());
        bytes.extend(u32::try_from(bins.len()).unwrap_or(0).to_be_bytes());
        for (time, count) in bins {
            if self.version.has_unsigned_deletion_time() {
                bytes.extend(u64::from(*time).to_be_bytes());
                bytes.extend(u32::try_from(*count).unwrap_or(0x7fff_ffff).min(0x7fff_ffff).to_be_bytes());
            } else {
                bytes.extend(f64::from(*time).to_be_bytes());
                bytes.extend(count.to_be_bytes());
            }
        }
    }

    /// Which clustering values there are.
    fn clustering(&self, collector: &Collector, bytes: &mut Vec<u8>) {
        let (first, last) = (&collector.clustering_min, &collector.clustering_max);
        // Both are known, or nothing: a file with static rows and deletions of partitions only has none.
        let (first, last) = match (first, last) {
            (Some(first), Some(last)) => (Some(first), Some(last)),
            _ => (None, None),
        };
        if self.version.has_covered_slice() {
            vint::push_unsigned(bytes, u64_of(self.header.clustering.len()));
            for kind in &self.header.clustering {
                push_type(bytes, kind);
            }
            push_slice_bound(bytes, first, true, self.fixed);
            push_slice_bound(bytes, last, false, self.fixed);
            return;
        }
        for bound in [first, last] {
            let values = bound.map_or(0, |bound| {
                (0..bound.len()).take_while(|number| bound.value(*number).is_some()).count()
            });
            bytes.extend(u32::try_from(values).unwrap_or(0).to_be_bytes());
            for value in (0..values).filter_map(|number| bound.and_then(|bound| bound.value(number))) {
                push_short(bytes, value);
            }
        }
    }

    fn header(&self) -> Vec<u8> {
        let header = self.header;
        let mut bytes = Vec::new();
        vint::push_unsigned(&mut bytes, bits_u64(header.timestamp_min.wrapping_sub(TIMESTAMP_EPOCH)));
        let deletion = header.local_deletion_min.wrapping_sub(DELETION_TIME_EPOCH);
        vint::push_unsigned(&mut bytes, sign_extended(deletion));
        vint::push_unsigned(&mut bytes, u64::from(header.ttl_min));
        push_type(&mut bytes, &header.key);
        vint::push_unsigned(&mut bytes, u64_of(header.clustering.len()));
        for kind in &header.clustering {
            push_type(&mut bytes, kind);
        }
        for columns in [&header.statics, &header.regulars] {
            vint::push_unsigned(&mut bytes, u64_of(columns.len()));
            for column in columns {
                vint::push_unsigned(&mut bytes, u64_of(column.name.len()));
                bytes.extend(&column.name);
                push_type(&mut bytes, &column.kind);
            }
        }
        bytes
    }
}

/// A difference of 32 bits as servers store it: with its sign.
pub(super) fn sign_extended(difference: u32) -> u64 {
    bits_u64(i64::from(marquetry_base::cast::bits_i32(difference)))
}

fn compaction(collector: &Collector) -> Vec<u8> {
    let sketch = collector.cardinality.bytes();
    let mut bytes = u32::try_from(sketch.len()).unwrap_or(0).to_be_bytes().to_vec();
    bytes.extend(sketch);
    bytes
}

/// Bytes of the file to bytes of the data; -1 if they are not compressed.
fn ratio(bytes: Option<(u64, u64)>) -> f64 {
    let exact = |bytes: u64| marquetry_base::cast::exact_f64(i128::from(bytes >> 12)).unwrap_or(0.0);
    match bytes {
        None => -1.0,
        // To within a page: of small files the bytes themselves.
        Some((file, data)) if data >> 32 > 0 => exact(file) / exact(data),
        Some((file, data)) => {
            let small = |bytes: u64| f64::from(u32::try_from(bytes).unwrap_or(u32::MAX));
            small(file) / small(data.max(1))
        }
    }
}

/// The share of the ring from the first token to the last.
fn coverage(collector: &Collector) -> f64 {
    let token = |key: &[u8]| i128::from(murmur3_token(key));
    let first = collector.first_key.as_deref().unwrap_or_default();
    let tokens = token(&collector.last_key) - token(first);
    // Only the first 53 bits of it matter.
    let share = u32::try_from(tokens >> 32).unwrap_or(0);
    f64::from(share) / f64::from(u32::MAX)
}

/// A position in a commit log that there is not (`CommitLogPosition.NONE`).
fn push_no_position(bytes: &mut Vec<u8>) {
    bytes.extend((-1_i64).to_be_bytes());
    bytes.extend(0_u32.to_be_bytes());
}

fn push_short(bytes: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(usize::from(u16::MAX))];
    bytes.extend(u16::try_from(text.len()).unwrap_or(u16::MAX).to_be_bytes());
    bytes.extend(text);
}

fn push_type(bytes: &mut Vec<u8>, kind: &MarshalType) {
    let name = format!("{}", kind.qualified());
    vint::push_unsigned(bytes, u64_of(name.len()));
    bytes.extend(name.as_bytes());
}

/// A bound of the slice that all clustering values are in: what is not known is everything.
fn push_slice_bound(bytes: &mut Vec<u8>, of: Option<&Clustering>, is_start: bool, fixed: &[Option<u32>]) {
    let mut bound = of.cloned().unwrap_or_default();
    bound.kind = match (is_start, bound.kind) {
        (true, EntryKind::ExclusiveStart) => EntryKind::ExclusiveStart,
        (true, _) => EntryKind::InclusiveStart,
        (false, EntryKind::ExclusiveEnd) => EntryKind::ExclusiveEnd,
        (false, _) => EntryKind::InclusiveEnd,
    };
    bound.write_bound(fixed, bytes);
}
