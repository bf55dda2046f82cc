//! SSTables: their rows, their indexes, and lies in all of their components.

use std::fmt::Write as _;
use std::sync::Arc;

use marquetry_base::{Bytes, Error, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::hostile::{self, Manner};
use marquetry_scylla::sstable::batch::{Continues, EntryKind, Expiry, MutationBatch, NO_TIMESTAMP, Values};
use marquetry_scylla::sstable::checksums::ChecksumsReader;
use marquetry_scylla::sstable::compression_info::CompressionInfoReader;
use marquetry_scylla::sstable::filter::FilterReader;
use marquetry_scylla::sstable::index::{
    ALL_TOKENS, IndexFiles, IndexedData, PartitionFinder, Piece, Query, SummaryReader,
};
use marquetry_scylla::sstable::scylla_metadata::ScyllaMetadataReader;
use marquetry_scylla::sstable::statistics::{Statistics, StatisticsReader};
use marquetry_scylla::sstable::{DataOptions, DataReader, IndexKind, Packing};

use crate::choices::Choices;
use crate::host::{self, LIMITS, Watched, bounded, check_error};
use crate::meter::BLOCK_UNITS_MAX;
use crate::sstable::{CHUNKS, DATA, FILTER, INDEX, Partition, SECOND, STATISTICS, Sstable, Storage};

/// Objects, by the components they are.
const fn object(component: usize) -> Object {
    Object(component as u32)
}

/// An SSTable, right or not, before a hostile host; or any bytes as each of its components.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let manner = host::manner(choices);
    if choices.once_in(16) {
        anything(choices, manner);
        return;
    }
    let mut sstable = Sstable::choose(choices);
    // The data are told apart by checksums, or else anything may be in them.
    let lies: Vec<usize> = (0..choices.below(4)).map(|_| choices.below(6)).collect();
    for component in &lies {
        sstable.lie(*component, choices);
    }
    let files = sstable.files.clone().map(Bytes::from);
    let reading = Reading { sstable: &sstable, files, manner };
    reading.examine(&lies, choices);
}

/// The bytes as they are.
fn anything(choices: &mut Choices<'_>, manner: Manner) {
    let mut sstable = Sstable::choose(&mut Choices::new(&[choices.byte(), 0, 0, 0, choices.byte()]));
    let component = choices.below(7);
    let bytes = choices.rest().to_vec();
    if component == 6 {
        let bytes = Bytes::from(bytes);
        let read = |manner| one(ScyllaMetadataReader::new(object(DATA), LIMITS), DATA, &bytes, manner);
        let (kind, hostile) = (bounded(&bytes, &LIMITS, || read(Manner::KIND)), read(manner));
        assert_eq!(kind, hostile);
        return;
    }
    sstable.files[component] = bytes;
    let files = sstable.files.clone().map(Bytes::from);
    Reading { sstable: &sstable, files, manner }.examine(&[component], choices);
}

struct Reading<'a> {
    sstable: &'a Sstable,
    files: [Bytes; 6],
    manner: Manner,
}

/// The only product of a machine over a component.
fn one<M: marquetry_base::Machine>(
    machine: M,
    component: usize,
    bytes: &Bytes,
    manner: Manner,
) -> Result<M::Product>
where
    M::Product: std::fmt::Debug + PartialEq,
{
    let mut found = None;
    let manner = host::for_file(manner, bytes);
    hostile::run(&mut Watched::new(machine), object(component), bytes, manner, |product| {
        assert!(found.is_none(), "a second product");
        found = Some(product);
        Ok(())
    })
    .inspect_err(check_error)?;
    Ok(found.expect("a product"))
}

impl Reading<'_> {
    /// Reads everything in two manners, and compares it with what was written, but for components that lie.
    fn examine(&self, lies: &[usize], choices: &mut Choices<'_>) {
        let is_right = |components: &[usize]| !lies.iter().any(|lie| components.contains(lie));
        let all = Bytes::from(self.files.concat());
        let kind = bounded(&all, &LIMITS, || self.rows(Manner::KIND));
        let hostile = bounded(&all, &LIMITS, || self.rows(self.manner));
        assert!(kind == hostile, "another result by {:?}: {:?}, {:?}", self.manner, kind.1, hostile.1);
        if is_right(&[DATA, STATISTICS, CHUNKS]) {
            assert_eq!(kind.1, None, "an SSTable without a lie");
            assert_same(&kind.0, &self.sstable.told);
        } else if is_right(&[STATISTICS, CHUNKS])
            && self.sstable.storage != Storage::Plain
            && kind.1.is_none()
        {
            // A changed checksum is an error; and what is beyond the last chunk is not read.
            assert_same(&kind.0, &self.sstable.told);
        }
        let partitions = &self.sstable.partitions;
        let some = &partitions[choices.below(partitions.len())];
        let (a, b) = (some.token.wrapping_add(choices.number()), some.token);
        let count = choices.below(7) as u32 + 1;
        let absent = [&some.key[..], &[choices.byte()]].concat();
        for query in [
            Query::Key(some.key.clone()),
            Query::Key(absent),
            Query::Tokens(a.min(b)..=a.max(b)),
            Query::Split(count),
        ] {
            let kind = bounded(&all, &LIMITS, || self.find(&query, Manner::KIND));
            let hostile = bounded(&all, &LIMITS, || self.find(&query, self.manner));
            assert_eq!(kind, hostile, "another result by {:?}", self.manner);
            match kind {
                Err(error) => {
                    assert!(!is_right(&[DATA, STATISTICS, CHUNKS, INDEX, SECOND]), "{query:?}: {error}");
                }
                Ok(pieces) if is_right(&[DATA, STATISTICS, CHUNKS]) => {
                    check(&query, &pieces, partitions, is_right(&[INDEX, SECOND]));
                }
                Ok(_) => {}
            }
        }
        let may = |manner| {
            let version = self.sstable.version;
            one(
                FilterReader::new(object(FILTER), version, &some.key, LIMITS),
                FILTER,
                &self.files[FILTER],
                manner,
            )
        };
        let found = bounded(&all, &LIMITS, || may(Manner::KIND));
        assert_eq!(found, may(self.manner));
        assert!(found == Ok(true) || !is_right(&[FILTER]), "a key is not in the filter");
    }

    fn statistics(&self, manner: Manner) -> Result<Statistics> {
        let reader = StatisticsReader::new(object(STATISTICS), self.sstable.version, LIMITS);
        one(reader, STATISTICS, &self.files[STATISTICS], manner)
    }

    fn packing(&self, manner: Manner) -> Result<Packing> {
        let bytes = &self.files[CHUNKS];
        Ok(match self.sstable.storage {
            Storage::Compressed => {
                let reader = CompressionInfoReader::new(object(CHUNKS), self.sstable.version, LIMITS);
                Packing::Compressed(Arc::new(one(reader, CHUNKS, bytes, manner)?))
            }
            Storage::Checked => {
                let reader = ChecksumsReader::new(object(CHUNKS), LIMITS);
                Packing::Plain(Some(Arc::new(one(reader, CHUNKS, bytes, manner)?)))
            }
            Storage::Plain => Packing::Plain(None),
        })
    }

    /// What is in the rows, and how reading ended.
    fn rows(&self, manner: Manner) -> (String, Option<Error>) {
        let mut told = String::new();
        let error = self.read(manner, &mut told).err();
        (told, error)
    }

    fn read(&self, manner: Manner, told: &mut String) -> Result<()> {
        let statistics = self.statistics(manner)?;
        let packing = self.packing(manner)?;
        let codecs = Arc::new(StandardCodecs::new(LIMITS));
        let mut options = DataOptions::default();
        options.limits = LIMITS;
        let version = self.sstable.version;
        let reader = DataReader::new(object(DATA), version, &statistics.header, packing, codecs, options)
            .inspect_err(check_error)?;
        let bytes = &self.files[DATA];
        let mut watched = Watched::at_once(reader, BLOCK_UNITS_MAX);
        let manner = host::for_file(manner, bytes);
        hostile::run(&mut watched, object(DATA), bytes, manner, |batch| {
            tell(&batch, statistics.header.clustering.len(), told);
            Ok(())
        })
        .inspect_err(check_error)?;
        Ok(())
    }

    fn find(&self, query: &Query, manner: Manner) -> Result<Vec<Piece>> {
        let statistics = self.statistics(manner)?;
        let index = match self.sstable.version.index() {
            IndexKind::Big => {
                let reader = SummaryReader::new(object(SECOND), LIMITS);
                let summary = one(reader, SECOND, &self.files[SECOND], manner)?;
                IndexFiles::Big { index: object(INDEX), summary: Some(Arc::new(summary)) }
            }
            IndexKind::Trie => IndexFiles::Trie { partitions: object(INDEX), rows: object(SECOND) },
        };
        let of = IndexedData {
            index,
            data: object(DATA),
            packing: self.packing(manner)?,
            codecs: Arc::new(StandardCodecs::new(LIMITS)),
            partitioner: statistics.partitioner,
            ends: None,
        };
        let finder = PartitionFinder::new(&of, query.clone(), LIMITS).inspect_err(check_error)?;
        let objects =
            [DATA, INDEX, SECOND].map(|component| (object(component), self.files[component].clone()));
        let largest = objects.iter().map(|(_, bytes)| bytes).max_by_key(|bytes| bytes.len()).expect("three");
        let manner = host::for_file(manner, largest);
        let mut found = None;
        hostile::run_over(&mut Watched::at_once(finder, BLOCK_UNITS_MAX), &objects, manner, |pieces| {
            assert!(found.is_none(), "a second product");
            found = Some(pieces);
            Ok(())
        })
        .inspect_err(check_error)?;
        Ok(found.expect("a product"))
    }
}

/// Where partitions of these tokens are.
fn expected(partitions: &[Partition], tokens: &std::ops::RangeInclusive<i64>) -> std::ops::Range<u64> {
    let end = partitions[partitions.len() - 1].data.end;
    let from = |at: usize| partitions.get(at).map_or(end, |partition| partition.data.start);
    let first = partitions.partition_point(|partition| partition.token < *tokens.start());
    let last = partitions.partition_point(|partition| partition.token <= *tokens.end());
    from(first)..from(last)
}

/// Checks pieces of data that are right. An index that lies may have lost partitions.
fn check(query: &Query, pieces: &[Piece], partitions: &[Partition], is_right: bool) {
    let end = partitions[partitions.len() - 1].data.end;
    let is_border = |at: u64| at == end || partitions.iter().any(|partition| partition.data.start == at);
    for piece in pieces {
        assert!(is_border(piece.data.start) && is_border(piece.data.end), "{query:?}: {piece:?}");
    }
    match query {
        Query::Key(key) => {
            let found = partitions.iter().find(|partition| partition.key == *key);
            match (pieces, found) {
                ([], None) => {}
                ([], Some(_)) => assert!(!is_right, "a partition is not found"),
                ([piece], Some(found)) => {
                    assert_eq!(piece.data.start, found.data.start);
                    assert!(!is_right || piece.data == found.data, "{piece:?}, not {found:?}");
                }
                _ => panic!("{query:?}: {pieces:?}, not {found:?}"),
            }
        }
        Query::Tokens(tokens) => {
            assert!(pieces.len() == 1 && pieces[0].tokens == *tokens);
            assert!(!is_right || pieces[0].data == expected(partitions, tokens), "{query:?}: {pieces:?}");
        }
        Query::Split(count) => {
            assert!(pieces.len() <= *count as usize && !pieces.is_empty());
            let (first, last) = (&pieces[0], &pieces[pieces.len() - 1]);
            assert_eq!((first.data.start, last.data.end), (0, end));
            assert_eq!(*first.tokens.start()..=*last.tokens.end(), ALL_TOKENS);
            for pair in pieces.windows(2) {
                assert_eq!(pair[0].data.end, pair[1].data.start);
                assert_eq!(pair[0].tokens.end() + 1, *pair[1].tokens.start());
            }
            for piece in pieces.iter().filter(|_| is_right) {
                assert_eq!(piece.data, expected(partitions, &piece.tokens));
            }
        }
        other => panic!("{other:?} is not checked"),
    }
}

#[track_caller]
fn assert_same(told: &str, expected: &str) {
    if told == expected {
        return;
    }
    let differs = told.lines().zip(expected.lines()).position(|(a, b)| a != b);
    let at = differs.unwrap_or(told.lines().count().min(expected.lines().count()));
    panic!("line {at}: {:?}, not {:?}", told.lines().nth(at), expected.lines().nth(at));
}

/// Tells what is in a batch, as the writer of rows does.
fn tell(batch: &MutationBatch, clustering: usize, told: &mut String) {
    let mut cells_at = vec![0; batch.columns.len()];
    let mut entry = 0;
    for (partition, end) in batch.partitions.ends.iter().enumerate() {
        let at = partition as u32;
        if partition > 0 || batch.continues == Continues::Nothing {
            let key = batch.partitions.keys.get(partition).expect("a key");
            let _ = writeln!(told, "partition {key:x?} at {}", batch.partitions.offsets[partition]);
            if let Some(deletion) = batch.partitions.deletions.get(at) {
                let _ = writeln!(told, "  deleted {} {}", deletion.timestamp, deletion.local_deletion);
            }
        }
        while entry < *end {
            if entry > 0 || batch.continues != Continues::Entry {
                tell_entry(batch, entry, clustering, told);
            }
            for (number, at) in cells_at.iter_mut().enumerate() {
                tell_cells(batch, entry, number, at, told);
            }
            entry += 1;
        }
    }
    let counts = batch.columns.iter().map(marquetry_scylla::sstable::batch::Cells::len);
    assert!(cells_at.into_iter().eq(counts), "cells of no entry");
}

fn bytes_of(values: &Values, at: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.append_bytes(at, &mut bytes);
    bytes
}

fn tell_entry(batch: &MutationBatch, entry: u32, clustering: usize, told: &mut String) {
    let entries = &batch.entries;
    let at = entry as usize;
    let kind = entries.kinds[at];
    let _ = write!(told, "  entry {}", kind as u8);
    let count = match kind {
        EntryKind::Static => 0,
        EntryKind::Row => clustering,
        _ => {
            let count = entries.prefixes.get(entry).map_or(clustering, |count| count as usize);
            let _ = write!(told, " {count}");
            count
        }
    };
    for column in &entries.clustering[..count] {
        if column.nulls.contains(&entry) || column.empties.contains(&entry) {
            told.push_str(" none");
        } else {
            let _ = write!(told, " {:x?}", bytes_of(&column.values, at));
        }
    }
    if entries.timestamps[at] != NO_TIMESTAMP {
        let _ = write!(told, " at {}", entries.timestamps[at]);
    }
    if let Some(expiry) = entries.expiries.get(entry) {
        tell_expiry(expiry, told);
    }
    let deletions = [entries.deletions.get(entry), entries.starts.get(entry), entries.shadowables.get(entry)];
    for deletion in deletions.into_iter().flatten() {
        let _ = write!(told, " deleted {} {}", deletion.timestamp, deletion.local_deletion);
    }
    told.push('\n');
}

fn tell_expiry(expiry: Expiry, told: &mut String) {
    match expiry {
        Expiry::NEVER => told.push_str(" never"),
        Expiry { ttl, local_deletion } => drop(write!(told, " ttl {ttl} until {local_deletion}")),
    }
}

/// The cells of an entry in a column, from `at` on.
fn tell_cells(batch: &MutationBatch, entry: u32, number: usize, at: &mut usize, told: &mut String) {
    let cells = &batch.columns[number];
    if let Some(deletion) = cells.deletions.get(entry) {
        let _ = writeln!(told, "    {number} deleted {} {}", deletion.timestamp, deletion.local_deletion);
    }
    while cells.entries.get(*at) == Some(&entry) {
        let cell = *at as u32;
        let _ = write!(told, "    {number}");
        if let Some(timestamp) = cells.timestamps.get(cell) {
            let _ = write!(told, " at {timestamp}");
        }
        if let Some(local) = cells.tombstones.get(cell) {
            let _ = write!(told, " deleted {local}");
        } else if let Some(expiry) = cells.expiries.get(cell) {
            tell_expiry(expiry, told);
        }
        if let Some(path) = cells.paths.get(*at) {
            let _ = write!(told, " of {path:x?}");
        }
        let value = bytes_of(&cells.values, *at);
        let has_none = cells.empties.binary_search(&cell).is_ok() || cells.tombstones.get(cell).is_some();
        if has_none || value.is_empty() {
            told.push_str(" empty\n");
        } else {
            let _ = writeln!(told, " {value:x?}");
        }
        *at += 1;
    }
}
