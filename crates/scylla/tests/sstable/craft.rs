//! Data.db written by hand: what no fixture has, such as rows of many megabytes.

use std::sync::Arc;

use marquetry_base::{Bytes, Limits, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::statistics::{Statistics, StatisticsReader};
use marquetry_scylla::sstable::{DataOptions, DataReader, Packing, Version};

use super::files::{OBJECT, next, one};

/// What times are differences from in Statistics.db.
pub(crate) const TIMESTAMP_EPOCH: i64 = 1_442_880_000_000_000;
pub(crate) const DELETION_TIME_EPOCH: u32 = 1_442_880_000;

/// Bytes, and how things are appended to them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Craft {
    pub(crate) bytes: Vec<u8>,
}

impl Craft {
    pub(crate) fn vint(mut self, value: u64) -> Craft {
        let bits = 64 - (value | 1).leading_zeros();
        let length = (1..9).find(|bytes| bits <= 7 * bytes).unwrap_or(9) as usize;
        if length == 9 {
            self.bytes.push(0xff);
            self.bytes.extend(value.to_be_bytes());
            return self;
        }
        let at = self.bytes.len();
        self.bytes.extend(&value.to_be_bytes()[8 - length..]);
        if length > 1 {
            self.bytes[at] |= !(0xff_u8 >> (length - 1));
        }
        self
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Craft {
        self.bytes.extend(bytes);
        self
    }

    pub(crate) fn long(self, bytes: &[u8]) -> Craft {
        self.vint(bytes.len() as u64).raw(bytes)
    }

    pub(crate) fn short(self, bytes: &[u8]) -> Craft {
        self.raw(&(bytes.len() as u16).to_be_bytes()).raw(bytes)
    }

    /// A partition of a version before `oa` that is not deleted.
    pub(crate) fn partition(self, key: &[u8]) -> Craft {
        self.short(key).raw(&[0x7f, 0xff, 0xff, 0xff]).raw(&i64::MIN.to_be_bytes())
    }

    /// A row: its flags, what is before its length, and what is after the length of the row before it.
    pub(crate) fn row(self, flags: &[u8], clustering: &[u8], body: &[u8]) -> Craft {
        self.raw(flags).raw(clustering).vint(body.len() as u64 + 1).vint(0).raw(body)
    }

    /// A cell with the write time of its row.
    pub(crate) fn cell(self, value: &[u8]) -> Craft {
        self.raw(&[0x08]).long(value)
    }

    pub(crate) fn end(self) -> Craft {
        self.raw(&[0x01])
    }
}

/// Statistics.db of version `mc`: types as they are named in it, without their package.
pub(crate) fn statistics(
    key: &str,
    clustering: &[&str],
    statics: &[(&str, &str)],
    regulars: &[(&str, &str)],
) -> Statistics {
    let kind =
        |craft: Craft, name: &str| craft.long(format!("org.apache.cassandra.db.marshal.{name}").as_bytes());
    let mut header = kind(Craft::default().vint(0).vint(0).vint(0), key).vint(clustering.len() as u64);
    for name in clustering {
        header = kind(header, name);
    }
    for columns in [statics, regulars] {
        header = header.vint(columns.len() as u64);
        for (name, of) in columns {
            header = kind(header.long(name.as_bytes()), of);
        }
    }
    let validation = Craft::default().short(b"Murmur3Partitioner").raw(&0.01_f64.to_be_bytes());
    let mut stats = Craft::default().raw(&[0; 8]);
    // To the compression ratio; the tombstones' histogram; level and repair; the clustering values; totals; the commit log.
    stats = stats.raw(&[0; 12 + 16 + 8 + 8 + 8]).raw(&[0; 8]).raw(&[0; 12]).raw(&[0; 8]).raw(&[0; 17]);
    stats = stats.raw(&[0; 12]).raw(&[0; 4]);
    let parts = [(0_u32, validation.bytes), (2, stats.bytes), (3, header.bytes)];
    let mut file = 3_u32.to_be_bytes().to_vec();
    let mut at = 4 + 8 * parts.len();
    for (number, bytes) in &parts {
        file.extend(number.to_be_bytes());
        file.extend((at as u32).to_be_bytes());
        at += bytes.len();
    }
    parts.iter().for_each(|(_, bytes)| file.extend(bytes));
    let version = Version::parse("mc").expect("known");
    one(StatisticsReader::new(OBJECT, version, Limits::DEFAULT), &Bytes::from(file)).expect("statistics")
}

/// A reader of data that are not compressed, and have no checksums.
pub(crate) fn reader(version: &str, statistics: &Statistics, options: DataOptions) -> DataReader {
    let version = Version::parse(version).expect("known");
    let codecs = Arc::new(StandardCodecs::default());
    DataReader::new(OBJECT, version, &statistics.header, Packing::Plain(None), codecs, options)
        .expect("a reader")
}

/// All batches of them.
pub(crate) fn read(version: &str, statistics: &Statistics, data: &Craft) -> Result<Vec<MutationBatch>> {
    let mut reader = reader(version, statistics, DataOptions::default());
    let bytes = Bytes::from(data.bytes.clone());
    let mut batches = Vec::new();
    while let Some(batch) = next(&mut reader, &bytes)? {
        batches.push(batch);
    }
    Ok(batches)
}
