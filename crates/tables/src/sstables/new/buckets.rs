//! Records of rows, in the order of their keys: spread over buckets by their tokens, and sorted bucket by bucket.
//!
//! Tokens are hashes, so rows of many partitions are spread evenly, in whatever order they come. A record is copied once, into its bucket; and a bucket is
//! small enough to be sorted in a core's cache, by the first bytes of its keys. What exceeds the memory is appended to a nameless file, bucket by
//! bucket, and read again when it is their turn. A bucket that does not fit, because partitions are large, is sorted by way of another such file.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::{Path, PathBuf};

use marquetry_base::cast::{u64_of, usize_of, usize_of_u32};
use marquetry_base::{Bytes, Error, Result};
use marquetry_io::ByteSink;
use marquetry_io::blocking::SpillFile;
use marquetry_kernels::prefix::common;
use marquetry_parquet::sort::SortOptions;
use marquetry_scylla::bridge::writes::RowRecords;

use super::encoding::{RECORDS, RECORDS_BYTES};
use crate::Cancel;
use crate::sorting::Sorting;

/// The most buckets, and the bytes of memory that there are for each at least.
const BUCKETS_MAX: usize = 1024;
const BUCKET_BYTES_MIN: u64 = 64 << 10;
/// Bytes of a bucket's chunks: of the first, and of the largest, unless a record is larger.
const CHUNK_BYTES_MIN: usize = 4 << 10;
const CHUNK_BYTES_MAX: usize = 64 << 10;
/// Bytes that are read from the file at a time.
const RANGE_BYTES: u64 = 1 << 20;
/// Records that are handed out at a time.
const SLICE: usize = 1024;
/// Bytes before a record: the lengths of its key, and of itself.
const HEAD_BYTES: usize = 8;

/// Records, each in the bucket that the first bits of its token choose.
pub(super) struct Buckets {
    buckets: Vec<Bucket>,
    /// Those bits.
    bits: u32,
    memory_bytes: u64,
    /// Bytes of all chunks.
    held: u64,
    threads: usize,
    /// Made when it is wanted, beside this path.
    spill: Option<SpillFile>,
    spilled: u64,
    scratch: PathBuf,
}

/// Records in the order in which they came: first those in the file, then those in memory.
#[derive(Default)]
struct Bucket {
    spilled: Vec<Range<u64>>,
    /// Whole records in each.
    chunks: Vec<Vec<u8>>,
    held: u64,
}

/// A key and its record.
type Pair<'a> = (&'a [u8], &'a [u8]);

/// A record that is sorted: eight bytes of its key, then the number of its chunk and its place in that, of 32 bits each. As numbers they have the order of
/// the keys, or else the one in which records came.
type Entry = u128;

impl Buckets {
    pub(super) fn new(memory_bytes: u64, threads: usize, scratch: &Path) -> Buckets {
        let wanted = usize_of(memory_bytes / BUCKET_BYTES_MIN).unwrap_or(usize::MAX).clamp(1, BUCKETS_MAX);
        let bits = wanted.ilog2();
        Buckets {
            buckets: (0..1 << bits).map(|_| Bucket::default()).collect(),
            bits,
            memory_bytes,
            held: 0,
            threads,
            spill: None,
            spilled: 0,
            scratch: scratch.to_path_buf(),
        }
    }

    /// Takes records.
    pub(super) fn push(&mut self, records: &RowRecords, cancel: &Cancel) -> Result<()> {
        for (key, record) in records.iter() {
            let at = first_word(key).checked_shr(u64::BITS - self.bits).and_then(usize_of).unwrap_or(0);
            let bucket = self.buckets.get_mut(at).ok_or_else(|| Error::internal("a token of no bucket"))?;
            let before = bucket.held;
            bucket.push(key, record)?;
            self.held += bucket.held - before;
        }
        if self.held > self.memory_bytes / 4 * 3 { self.spill(cancel) } else { Ok(()) }
    }

    /// Appends the largest buckets to the file, until half of what may be held is left.
    fn spill(&mut self, cancel: &Cancel) -> Result<()> {
        let file = match &mut self.spill {
            Some(file) => file,
            none => none.insert(SpillFile::create(Some(&self.scratch))?),
        };
        let mut order: Vec<usize> = (0..self.buckets.len()).collect();
        order.sort_by_key(|at| Reverse(self.buckets[*at].held));
        for at in order {
            if self.held <= self.memory_bytes / 8 * 3 {
                break;
            }
            cancel.check()?;
            let bucket = &mut self.buckets[at];
            for chunk in bucket.chunks.drain(..) {
                file.append(&chunk)?;
                let start = self.spilled;
                self.spilled += u64_of(chunk.len());
                match bucket.spilled.last_mut() {
                    Some(last) if last.end == start && last.end - last.start < RANGE_BYTES => {
                        last.end = self.spilled;
                    }
                    _ => bucket.spilled.push(start..self.spilled),
                }
            }
            self.held -= std::mem::take(&mut bucket.held);
        }
        Ok(())
    }

    /// Hands out all records, in the order of their keys; of those with one key, in the order in which they came.
    pub(super) fn finish(
        &mut self,
        cancel: &Cancel,
        take: &mut dyn FnMut(&[Pair<'_>]) -> Result<()>,
    ) -> Result<()> {
        for at in 0..self.buckets.len() {
            let bucket = std::mem::take(&mut self.buckets[at]);
            let of_file = bucket.spilled.iter().map(|range| range.end - range.start).sum::<u64>();
            if of_file > self.memory_bytes / 4 {
                self.sort_large(bucket, cancel, take)?;
                continue;
            }
            let mut chunks = Vec::with_capacity(bucket.spilled.len() + bucket.chunks.len());
            for range in bucket.spilled {
                cancel.check()?;
                chunks.push(read(&mut self.spill, range)?);
            }
            chunks.extend(bucket.chunks.into_iter().map(Bytes::from));
            let entries = sorted(&chunks)?;
            let mut pairs = Vec::with_capacity(SLICE.min(entries.len()));
            for part in entries.chunks(SLICE) {
                cancel.check()?;
                pairs.clear();
                pairs.extend(part.iter().map(|entry| pair_of(&chunks, *entry)));
                take(&pairs)?;
            }
        }
        Ok(())
    }

    /// The same of a bucket that does not fit into memory.
    fn sort_large(
        &mut self,
        bucket: Bucket,
        cancel: &Cancel,
        take: &mut dyn FnMut(&[Pair<'_>]) -> Result<()>,
    ) -> Result<()> {
        let options = SortOptions { memory_bytes: self.memory_bytes / 4, ..SortOptions::default() };
        let (schema, order) = (RowRecords::schema()?, RowRecords::order());
        let mut sorting =
            Sorting::new(&schema, &order, options, (self.threads, cancel), Some(&self.scratch))?;
        let mut records = RowRecords::default();
        let mut feed = |chunk: &[u8]| {
            let mut rest = chunk;
            while !rest.is_empty() {
                let ((key, record), more) = split(rest).ok_or_else(broken)?;
                rest = more;
                records.push(key, record);
                if records.len() >= RECORDS || records.bytes() >= RECORDS_BYTES {
                    sorting.push(records.take()?, 0)?;
                }
            }
            cancel.check()
        };
        for range in bucket.spilled {
            feed(&read(&mut self.spill, range)?)?;
        }
        bucket.chunks.iter().try_for_each(|chunk| feed(chunk))?;
        if !records.is_empty() {
            sorting.push(records.take()?, 0)?;
        }
        while let Some(batch) = sorting.next()? {
            cancel.check()?;
            take(&RowRecords::of(&batch)?.collect::<Vec<_>>())?;
        }
        Ok(())
    }
}

impl Bucket {
    fn push(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        let length = |bytes: &[u8]| {
            u32::try_from(bytes.len()).map_err(|_| Error::conversion("a row of 4 GiB or more"))
        };
        let (key_length, record_length) = (length(key)?, length(record)?);
        let bytes = HEAD_BYTES + key.len() + record.len();
        let room = self.chunks.last().map_or(0, |last| last.capacity() - last.len());
        if room < bytes {
            let before = self.chunks.last().map_or(0, Vec::capacity);
            let capacity = (2 * before).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX).max(bytes);
            let mut chunk = Vec::new();
            chunk.try_reserve_exact(capacity).map_err(|_| Error::out_of_memory(capacity))?;
            self.held += u64_of(chunk.capacity());
            self.chunks.push(chunk);
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.extend_from_slice(&key_length.to_le_bytes());
            chunk.extend_from_slice(&record_length.to_le_bytes());
            chunk.extend_from_slice(key);
            chunk.extend_from_slice(record);
        }
        Ok(())
    }
}

fn read(file: &mut Option<SpillFile>, range: Range<u64>) -> Result<Bytes> {
    file.as_mut().ok_or_else(broken)?.read(range)
}

/// The first record, and what follows it.
fn split(bytes: &[u8]) -> Option<(Pair<'_>, &[u8])> {
    let (key_length, rest) = bytes.split_first_chunk::<4>()?;
    let (record_length, rest) = rest.split_first_chunk::<4>()?;
    let (key, rest) = rest.split_at_checked(usize_of_u32(u32::from_le_bytes(*key_length)))?;
    let (record, rest) = rest.split_at_checked(usize_of_u32(u32::from_le_bytes(*record_length)))?;
    Some(((key, record), rest))
}

/// The records of chunks, in order.
fn sorted(chunks: &[Bytes]) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let number = |at: usize| u32::try_from(at).map_err(|_| Error::too_large("a bucket of too many records"));
    for (chunk, bytes) in chunks.iter().enumerate() {
        let chunk = u64::from(number(chunk)?) << 32;
        let mut rest: &[u8] = bytes;
        while !rest.is_empty() {
            let place = chunk | u64::from(number(bytes.len() - rest.len())?);
            let ((key, _), more) = split(rest).ok_or_else(broken)?;
            rest = more;
            entries.push(u128::from(first_word(key)) << 64 | u128::from(place));
        }
    }
    entries.sort_unstable();
    // Rows of one partition, mostly.
    let is_alike = |left: &Entry, right: &Entry| left >> 64 == right >> 64;
    entries
        .chunk_by_mut(is_alike)
        .filter(|alike| alike.len() > 1)
        .for_each(|alike| sort_alike(alike, chunks));
    Ok(entries)
}

/// Sorts records whose keys begin with the same eight bytes, and which are in the order in which they came.
fn sort_alike(entries: &mut [Entry], chunks: &[Bytes]) {
    let key = |entry: &Entry| pair_of(chunks, *entry).0;
    if entries.is_sorted_by(|left, right| key(left) <= key(right)) {
        return;
    }
    let first = entries.first().map_or(&[][..], key);
    let shared = entries.iter().map(|entry| common(first, key(entry))).min().unwrap_or(0);
    let rest = |entry: &Entry| key(entry).get(shared..).unwrap_or_default();
    for entry in &mut *entries {
        *entry = u128::from(first_word(rest(entry))) << 64 | *entry & u128::from(u64::MAX);
    }
    entries.sort_unstable_by(|left, right| {
        let by_word = (left >> 64).cmp(&(right >> 64));
        by_word.then_with(|| rest(left).cmp(rest(right))).then_with(|| left.cmp(right))
    });
}

/// The record of an entry.
fn pair_of(chunks: &[Bytes], entry: Entry) -> Pair<'_> {
    let [_, _, chunk, at] = words(entry);
    let bytes = chunks.get(chunk).and_then(|chunk| chunk.get(at..)).unwrap_or_default();
    split(bytes).map_or((&[], &[]), |(pair, _)| pair)
}

/// A number's four parts, the most significant first.
fn words(entry: Entry) -> [usize; 4] {
    let bytes = entry.to_be_bytes();
    let (words, _) = bytes.as_chunks::<4>();
    std::array::from_fn(|at| words.get(at).map_or(0, |word| usize_of_u32(u32::from_be_bytes(*word))))
}

/// The first eight bytes of a key, as a number that has its order; zeros follow the last one.
fn first_word(key: &[u8]) -> u64 {
    if let Some(word) = key.first_chunk::<8>() {
        return u64::from_be_bytes(*word);
    }
    let mut word = [0; 8];
    word.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(word)
}

#[cold]
fn broken() -> Error {
    Error::internal("records that are not what was written")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records in some order, of keys of which many begin alike, and some are there twice: each with its number.
    fn keys(count: u64) -> Vec<Vec<u8>> {
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state >> 33
        };
        let length = |number: u64| usize::try_from(number % 8).unwrap();
        (0..count)
            .map(|number| match number % 4 {
                // Few tokens, and then clustering values that begin alike, or are shorter.
                0 => [&((next() % 5) << 61).to_be_bytes()[..], b"alike", &(next() % 300).to_be_bytes()]
                    .concat(),
                1 => [&((next() % 5) << 61).to_be_bytes()[..], &b"alike\0\0"[..length(next())]].concat(),
                2 => (next() << 33).to_be_bytes()[..=length(next())].to_vec(),
                _ => [(next() << 33).to_be_bytes(), next().to_be_bytes()].concat(),
            })
            .collect()
    }

    #[test]
    fn records_are_in_the_order_of_their_keys_however_little_memory_there_is() {
        let keys = keys(60_000);
        let mut expected: Vec<(&[u8], u64)> = keys.iter().map(|key| &key[..]).zip(0..).collect();
        expected.sort_by_key(|(key, _)| *key);
        let folder = tempfile::tempdir().unwrap();
        for (memory_bytes, spills) in
            [(1 << 30, false), (3 << 20, true), (1 << 20, true), (100_000, true), (1, true)]
        {
            let mut buckets = Buckets::new(memory_bytes, 2, &folder.path().join("t"));
            let cancel = Cancel::new();
            let mut records = RowRecords::default();
            for (key, number) in keys.iter().zip(0_u64..) {
                // Now and then one that is larger than a chunk.
                let padding = if number % 9999 == 7 { 70_000 } else { 20 };
                records.push(key, &[&number.to_be_bytes()[..], &vec![7; padding]].concat());
                if records.len() == 1000 {
                    buckets.push(&records, &cancel).unwrap();
                    records.clear();
                }
            }
            let mut found: Vec<(Vec<u8>, u64)> = Vec::new();
            let mut take = |pairs: &[Pair<'_>]| {
                for (key, record) in pairs {
                    let number = u64::from_be_bytes(*record.first_chunk().unwrap());
                    assert_eq!(record.len(), if number % 9999 == 7 { 70_008 } else { 28 });
                    found.push((key.to_vec(), number));
                }
                Ok(())
            };
            buckets.finish(&cancel, &mut take).unwrap();
            assert_eq!(buckets.spilled > 0, spills, "{memory_bytes}");
            let found: Vec<(&[u8], u64)> = found.iter().map(|(key, number)| (&key[..], *number)).collect();
            assert!(found == expected, "{memory_bytes}");
        }
    }

    #[test]
    fn a_sort_that_is_cancelled_ends() {
        let folder = tempfile::tempdir().unwrap();
        let mut buckets = Buckets::new(1 << 20, 1, &folder.path().join("t"));
        let cancel = Cancel::new();
        let mut records = RowRecords::default();
        records.push(b"a key", b"a record");
        buckets.push(&records, &cancel).unwrap();
        cancel.cancel();
        let mut taken = 0;
        let ended = buckets.finish(&cancel, &mut |pairs| {
            taken += pairs.len();
            Ok(())
        });
        assert!(ended.is_err() && taken == 0);
    }
}
