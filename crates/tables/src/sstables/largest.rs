//! The largest partitions of SSTables, found by reading them.

use std::path::Path;
use std::str;

use marquetry_base::Result;
use marquetry_base::cast::u64_of;
use marquetry_scylla::cql::{CqlType, literal};
use marquetry_scylla::sstable::batch::{Continues, EntryKind, MutationBatch};
use marquetry_scylla::sstable::marshal::MarshalType;
use marquetry_scylla::sstable::{KeyColumn, murmur3_token};

use super::SstablesOf;
use super::options::SstablesOptions;
use super::scan::Scan;
use crate::BytesRead;

/// A partition, as one SSTable has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LargePartition {
    /// The path of the SSTable's Data.db.
    pub sstable: String,
    /// The values of the key's columns, as literals of CQL; those of rarer types as bytes.
    pub key: String,
    /// Its token, by the usual partitioner.
    pub token: i64,
    /// Its bytes, uncompressed.
    pub bytes: u64,
    /// Its rows, without a static one.
    pub rows: u64,
    /// Its cells.
    pub cells: u64,
}

/// Reads the SSTables that a path names, and lists their largest partitions, the largest first. A partition that is in several
/// SSTables is in the list for each.
///
/// # Errors
///
/// As [`Sstables::open`](super::Sstables::open), and those of reading.
pub fn largest_partitions(
    path: &Path,
    most: usize,
    options: &SstablesOptions,
) -> Result<Vec<LargePartition>> {
    let table = SstablesOf::open(path, options)?;
    let mut largest: Vec<LargePartition> = Vec::new();
    for sstable in &table.sstables {
        let counted = (&options.cancel, &BytesRead::default());
        let Some(mut scan) = Scan::open(&table.store, sstable, table.limits, None, counted)? else {
            continue;
        };
        let mut found =
            Found { keys: &table.defined.columns.partition_key, current: None, largest: &mut largest, most };
        while let Some(batch) = scan.next()? {
            options.cancel.check()?;
            found.add(&batch, scan.name());
            scan.recycle(batch);
        }
        found.end(scan.data_bytes());
    }
    Ok(largest)
}

struct Found<'a> {
    keys: &'a [KeyColumn],
    /// The partition that may go on, and where it began.
    current: Option<(LargePartition, Vec<u8>, u64)>,
    largest: &'a mut Vec<LargePartition>,
    most: usize,
}

impl Found<'_> {
    fn add(&mut self, batch: &MutationBatch, name: &str) {
        let partitions = batch.partitions.offsets.iter().zip(0..);
        for (offset, partition) in partitions {
            if partition > 0 || batch.continues == Continues::Nothing {
                self.end(*offset);
                let key = batch.partitions.keys.get(partition).unwrap_or_default().to_vec();
                let begun = LargePartition {
                    sstable: name.to_owned(),
                    key: String::new(),
                    token: 0,
                    bytes: 0,
                    rows: 0,
                    cells: 0,
                };
                self.current = Some((begun, key, *offset));
            }
            let Some((current, ..)) = &mut self.current else { continue };
            let entries = batch.entries_of(partition);
            let is_again = partition == 0 && batch.continues == Continues::Entry;
            let kinds = batch.entries.kinds.get(entries.clone()).unwrap_or_default();
            let rows = kinds.iter().skip(usize::from(is_again)).filter(|kind| **kind == EntryKind::Row);
            current.rows += u64_of(rows.count());
            for cells in &batch.columns {
                let before =
                    |end: usize| cells.entries.partition_point(|entry| u64::from(*entry) < u64_of(end));
                current.cells += u64_of(before(entries.end) - before(entries.start));
            }
        }
    }

    /// The partition before this place in the data is complete.
    fn end(&mut self, offset: u64) {
        let Some((mut partition, key, start)) = self.current.take() else { return };
        partition.bytes = offset.saturating_sub(start);
        let at = self.largest.partition_point(|other| other.bytes >= partition.bytes);
        if at < self.most {
            (partition.key, partition.token) = (key_text(self.keys, &key), murmur3_token(&key));
            self.largest.insert(at, partition);
            self.largest.truncate(self.most);
        }
    }
}

/// A partition key for people.
fn key_text(columns: &[KeyColumn], key: &[u8]) -> String {
    let mut out = Vec::new();
    if let [only] = columns {
        literal_of(&only.kind, key, &mut out);
        return String::from_utf8_lossy(&out).into_owned();
    }
    let mut rest = key;
    for (number, column) in columns.iter().enumerate() {
        // Each has its length before it and a zero after it.
        let part = rest.split_first_chunk::<2>().and_then(|(length, rest)| {
            let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
            Some((value, rest.get(1..)?))
        });
        let Some((value, after)) = part else {
            out.clear();
            literal::blob(&mut out, key);
            break;
        };
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        literal_of(&column.kind, value, &mut out);
        rest = after;
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn literal_of(kind: &MarshalType, bytes: &[u8], out: &mut Vec<u8>) {
    let number = |bytes: &[u8]| bytes.try_into().ok().map(i64::from_be_bytes);
    match kind {
        MarshalType::Native(CqlType::Int) if bytes.len() == 4 => {
            bytes
                .try_into()
                .ok()
                .map(i32::from_be_bytes)
                .into_iter()
                .for_each(|it| literal::integer(out, it));
        }
        MarshalType::Native(CqlType::Bigint) if bytes.len() == 8 => {
            number(bytes).into_iter().for_each(|it| literal::integer(out, it));
        }
        MarshalType::Native(CqlType::Timestamp) if bytes.len() == 8 => {
            number(bytes).into_iter().for_each(|it| literal::timestamp(out, it));
        }
        MarshalType::Native(CqlType::Uuid | CqlType::Timeuuid) if bytes.len() == 16 => {
            bytes.try_into().ok().into_iter().for_each(|it| literal::uuid(out, it));
        }
        MarshalType::Native(CqlType::Text | CqlType::Ascii) => match str::from_utf8(bytes) {
            Ok(text) => literal::text(out, text),
            Err(_) => literal::blob(out, bytes),
        },
        _ => literal::blob(out, bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_for_people() {
        let columns = |kinds: &[&str]| {
            let column = |(at, kind): (usize, &&str)| KeyColumn {
                name: format!("k{at}"),
                kind: MarshalType::parse(kind, 8).unwrap(),
            };
            kinds.iter().enumerate().map(column).collect::<Vec<_>>()
        };
        let shown = |kinds: &[&str], key: &[u8]| key_text(&columns(kinds), key);
        assert_eq!(shown(&["Int32Type"], &[0xff, 0xff, 0xff, 0xfe]), "-2");
        assert_eq!(shown(&["UTF8Type"], b"it's"), "'it''s'");
        assert_eq!(shown(&["UTF8Type"], b"\xff"), "0xff");
        assert_eq!(shown(&["DoubleType"], &[1; 8]), "0x0101010101010101");
        let both = [0, 8, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 1, b'a', 0];
        assert_eq!(shown(&["LongType", "AsciiType"], &both), "7, 'a'");
        assert_eq!(shown(&["LongType", "AsciiType"], &both[..5]), "0x0008000000");
    }
}
