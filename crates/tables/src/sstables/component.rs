//! The components of an SSTable, read.

use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Limits, Machine, Object, Result};
use marquetry_io::store::Store;
use marquetry_io::{ByteSource, ByteSources, ObjectVersion, drive};
use marquetry_scylla::sstable::checksums::{ChecksumsReader, parse_digest};
use marquetry_scylla::sstable::compression_info::CompressionInfoReader;
use marquetry_scylla::sstable::index::{Summary, SummaryReader};
use marquetry_scylla::sstable::statistics::{Statistics, StatisticsReader};
use marquetry_scylla::sstable::{Component, Packing, murmur3_token};

use super::components::SstableFiles;
use crate::subject::{name_of, named, renamed};
use crate::{BytesRead, Cancel};

/// The only object of each machine here.
pub(super) const FILE: Object = Object(0);

/// The most bytes of a Digest.crc32: ten digits.
const DIGEST_BYTES_MAX: u64 = 64;

/// An SSTable whose statistics were read. It is not kept open: a table may have thousands.
#[derive(Debug)]
pub(super) struct Sstable {
    pub(super) files: SstableFiles,
    pub(super) statistics: Statistics,
    /// The Data.db that belongs to them.
    version: ObjectVersion,
    /// What all pieces share, once one of them has read it.
    packing: OnceLock<Packing>,
    summary: OnceLock<Arc<Summary>>,
    /// The index is known to have the last partition.
    pub(super) has_last: OnceLock<()>,
}

impl Sstable {
    /// Reads what must be known of all SSTables of a table.
    ///
    /// # Errors
    ///
    /// Those of the readers, with the component's path; `Io` for what cannot be read.
    pub(super) fn open(store: &dyn Store, files: SstableFiles, limits: Limits) -> Result<Sstable> {
        let machine = StatisticsReader::new(FILE, files.name.version, limits);
        let statistics = read(store, &files, &Component::Statistics, machine)?;
        let (_, version) = store.open(&files.path(&Component::Data))?;
        let (packing, summary, has_last) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(Sstable { files, statistics, version, packing, summary, has_last })
    }

    /// The bytes of its data, as they are stored.
    pub(super) fn data_bytes(&self) -> u64 {
        self.version.bytes()
    }

    /// Whether it may have partitions with these tokens, by its statistics.
    pub(super) fn may_have(&self, tokens: &RangeInclusive<i64>) -> bool {
        match &self.statistics.stats.key_range {
            Some((first, last)) if self.is_sorted_by_tokens() => {
                murmur3_token(last) >= *tokens.start() && murmur3_token(first) <= *tokens.end()
            }
            _ => true,
        }
    }

    pub(super) fn is_sorted_by_tokens(&self) -> bool {
        self.statistics.partitioner.rsplit('.').next() == Some("Murmur3Partitioner")
    }

    /// How Data.db is packed. That is read once.
    pub(super) fn packing(&self, store: &dyn Store, limits: Limits) -> Result<Packing> {
        if let Some(packing) = self.packing.get() {
            return Ok(packing.clone());
        }
        let packing = self.read_packing(store, limits)?;
        Ok(self.packing.get_or_init(|| packing).clone())
    }

    /// Summary.db, if it is there. It is read once.
    pub(super) fn summary(&self, store: &dyn Store, limits: Limits) -> Result<Option<Arc<Summary>>> {
        if self.files.bytes_of(&Component::Summary).is_none() {
            return Ok(None);
        }
        if let Some(summary) = self.summary.get() {
            return Ok(Some(Arc::clone(summary)));
        }
        let machine = SummaryReader::new(FILE, limits);
        let summary = Arc::new(read(store, &self.files, &Component::Summary, machine)?);
        Ok(Some(Arc::clone(self.summary.get_or_init(|| summary))))
    }

    fn read_packing(&self, store: &dyn Store, limits: Limits) -> Result<Packing> {
        let has = |component: &Component| self.files.bytes_of(component).is_some();
        Ok(if has(&Component::CompressionInfo) {
            let machine = CompressionInfoReader::new(FILE, self.files.name.version, limits);
            let info = read(store, &self.files, &Component::CompressionInfo, machine)?;
            Packing::Compressed(Arc::new(info))
        } else if has(&Component::Crc) {
            let machine = ChecksumsReader::new(FILE, limits);
            Packing::Plain(Some(Arc::new(read(store, &self.files, &Component::Crc, machine)?)))
        } else {
            Packing::Plain(None)
        })
    }

    /// What Digest.crc32 says of Data.db, if it is there.
    pub(super) fn digest(&self, store: &dyn Store) -> Result<Option<u32>> {
        if self.files.bytes_of(&Component::Digest).is_none() {
            return Ok(None);
        }
        let path = self.files.path(&Component::Digest);
        let text = read_text(store, &path, DIGEST_BYTES_MAX)?;
        parse_digest(&text).map(Some).map_err(|error| renamed(error, &name_of(&path)))
    }

    /// Opens Data.db. What waits for it ends when `cancel` is set.
    pub(super) fn data(
        &self,
        store: &Arc<dyn Store>,
        cancel: &Cancel,
        bytes_read: &BytesRead,
    ) -> Result<DataSource> {
        let path = self.files.path(&Component::Data);
        let source = cancel.of_store(store).reopen(&path, &self.version);
        let source = source.map_err(|error| named(error, &name_of(&path)))?;
        Ok(ByteSources::new().with(FILE, Counted { source, bytes_read: bytes_read.clone() }))
    }
}

/// The bytes of a Data.db, counted as they are read.
pub(super) type DataSource = ByteSources<Counted>;

pub(super) struct Counted {
    source: Box<dyn ByteSource + Send>,
    bytes_read: BytesRead,
}

impl ByteSource for Counted {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn length(&self) -> Result<u64> {
        self.source.length()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let bytes = self.source.read(range)?;
        self.bytes_read.add(u64_of(bytes.len()));
        Ok(bytes)
    }

    fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
        self.source.will_read(ranges);
    }
}

/// The product of a machine that reads a component.
pub(super) fn read<M: Machine>(
    store: &dyn Store,
    files: &SstableFiles,
    component: &Component,
    mut machine: M,
) -> Result<M::Product> {
    let mut opened = || {
        let (source, _) = store.open(&files.path(component))?;
        drive(&mut machine, &ByteSources::new().with(FILE, source))?
            .ok_or_else(|| Error::internal("a component's reader ended without a product"))
    };
    opened().map_err(|error| files.named(error))
}

/// The bytes of a small object.
pub(super) fn read_text(store: &dyn Store, path: &Path, bytes_max: u64) -> Result<Bytes> {
    let read = || {
        let (source, version) = store.open(path)?;
        let length = version.bytes();
        if length > bytes_max {
            let what = format!("it has {length} bytes, and one of more than {bytes_max} is not expected");
            return Err(Error::corrupt(what));
        }
        source.read(0..length)
    };
    read().map_err(|error| renamed(error, &name_of(path)))
}
