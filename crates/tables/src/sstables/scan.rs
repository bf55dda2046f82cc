//! The data of an SSTable, read from start to end, or those of some partitions.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use marquetry_base::{Codecs, Error, Limits, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::drive;
use marquetry_io::store::Store;
use marquetry_scylla::sstable::batch::MutationBatch;
use marquetry_scylla::sstable::{DataOptions, DataReader, Packing};

use super::component::{DataSource, FILE, Sstable};
use super::index;
use crate::{BytesRead, Cancel};

/// A reader of what is in an SSTable, with its file.
pub(super) struct Scan {
    sstable: Arc<Sstable>,
    name: String,
    reader: DataReader,
    source: DataSource,
    /// Bytes of the data, uncompressed.
    data_bytes: u64,
    /// The tokens that its partitions must have.
    tokens: Option<RangeInclusive<i64>>,
}

impl Scan {
    /// Opens an SSTable, for the partitions with these tokens, or all; then the digest of its file is checked at the end. `None` if it has
    /// none of them.
    pub(super) fn open(
        store: &Arc<dyn Store>,
        sstable: &Arc<Sstable>,
        limits: Limits,
        tokens: Option<&RangeInclusive<i64>>,
        (cancel, bytes_read): (&Cancel, &BytesRead),
    ) -> Result<Option<Scan>> {
        if tokens.is_some_and(|tokens| !sstable.may_have(tokens)) {
            return Ok(None);
        }
        let cancellable = cancel.of_store(store);
        let packing = sstable.packing(&*cancellable, limits)?;
        let Some(tokens) = tokens else {
            let digest = sstable.digest(&*cancellable)?;
            return Scan::of(store, sstable, limits, packing, None, digest, (cancel, bytes_read)).map(Some);
        };
        let places = (cancel, bytes_read);
        let range = index::range_of(&cancellable, sstable, &packing, limits, tokens)?;
        if !range.is_empty() {
            let part = Some((range, tokens.clone()));
            return Scan::of(store, sstable, limits, packing, part, None, places).map(Some);
        }
        // The index ends before such a token. Then it must be whole.
        if range.start == data_bytes(sstable, &packing)
            && sstable.has_last.get().is_none()
            && let Some(last) = index::unproved_last(&cancellable, sstable, &packing, limits)?
        {
            let part = Some((last.data, last.tokens));
            let mut scan = Scan::of(store, sstable, limits, packing, part, None, places)?;
            while let Some(batch) = scan.next()? {
                cancel.check()?;
                scan.recycle(batch);
            }
            sstable.has_last.get_or_init(|| ());
        }
        Ok(None)
    }

    /// Reads all data, or a part where these tokens are.
    fn of(
        store: &Arc<dyn Store>,
        sstable: &Arc<Sstable>,
        limits: Limits,
        packing: Packing,
        part: Option<(Range<u64>, RangeInclusive<i64>)>,
        digest: Option<u32>,
        (cancel, bytes_read): (&Cancel, &BytesRead),
    ) -> Result<Scan> {
        let data_bytes = data_bytes(sstable, &packing);
        let (range, tokens) = part.unzip();
        let mut options = DataOptions::default();
        (options.limits, options.range, options.digest) = (limits, range, digest);
        let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::new(limits));
        let header = &sstable.statistics.header;
        let reader = DataReader::new(FILE, sstable.files.name.version, header, packing, codecs, options)
            .map_err(|error| sstable.files.named(error))?;
        let source = sstable.data(store, cancel, bytes_read)?;
        let (sstable, name) = (Arc::clone(sstable), sstable.files.shown());
        Ok(Scan { sstable, name, reader, source, data_bytes, tokens })
    }

    /// The next batch; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<MutationBatch>> {
        let next = drive(&mut self.reader, &self.source).map_err(|error| self.named(error))?;
        if let (Some(batch), Some(tokens)) = (&next, &self.tokens) {
            index::check_tokens(&self.sstable, batch, tokens)?;
        }
        Ok(next)
    }

    /// Gives a batch back, to be filled again.
    pub(super) fn recycle(&mut self, batch: MutationBatch) {
        self.reader.recycle(batch);
    }

    pub(super) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// An error, with the path of the file that it is about.
    pub(super) fn named(&self, error: Error) -> Error {
        self.sstable.files.named(error)
    }
}

/// Bytes of an SSTable's data, uncompressed.
fn data_bytes(sstable: &Sstable, packing: &Packing) -> u64 {
    match packing {
        Packing::Compressed(info) => info.data_bytes,
        Packing::Plain(_) => sstable.data_bytes(),
    }
}
