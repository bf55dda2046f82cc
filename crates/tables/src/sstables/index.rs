//! Where partitions are in an SSTable, by its index.

use std::ops::{Range, RangeInclusive};
use std::sync::Arc;

use marquetry_base::{Codecs, Error, Limits, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::store::Store;
use marquetry_io::{ByteSource, ByteSources, drive};
use marquetry_scylla::sstable::batch::{Continues, MutationBatch};
use marquetry_scylla::sstable::index::{IndexFiles, IndexedData, PartitionFinder, Piece, Query};
use marquetry_scylla::sstable::{Component, IndexKind, Packing, murmur3_token};

use super::component::Sstable;
use crate::subject::{name_of, named};

const DATA: Object = Object(1);
const INDEX: Object = Object(2);
const ROWS: Object = Object(3);

/// Whether an SSTable has an index.
pub(super) fn is_there(sstable: &Sstable) -> bool {
    let has = |component: &Component| sstable.files.bytes_of(component).is_some();
    match sstable.files.name.version.index() {
        IndexKind::Big => has(&Component::Index),
        IndexKind::Trie => has(&Component::Partitions) && has(&Component::Rows),
    }
}

/// The part of the data, uncompressed, that has the partitions with these tokens.
pub(super) fn range_of(
    store: &Arc<dyn Store>,
    sstable: &Sstable,
    packing: &Packing,
    limits: Limits,
    tokens: &RangeInclusive<i64>,
) -> Result<Range<u64>> {
    let found = find(store, sstable, packing, limits, Query::Tokens(tokens.clone()))?;
    let piece = found.first().ok_or_else(|| Error::internal("a search for tokens without an answer"))?;
    Ok(piece.data.clone())
}

/// The last partition that the index has, if nothing else says which one that must be; `None` if something does.
pub(super) fn unproved_last(
    store: &Arc<dyn Store>,
    sstable: &Sstable,
    packing: &Packing,
    limits: Limits,
) -> Result<Option<Piece>> {
    let is_known = sstable.statistics.stats.key_range.is_some()
        || sstable.files.name.version.index() == IndexKind::Trie
        || sstable.summary(&**store, limits)?.is_some_and(|summary| !summary.last_key.is_empty());
    match is_known {
        true => Ok(None),
        false => Ok(find(store, sstable, packing, limits, Query::Last)?.pop()),
    }
}

/// Fails for partitions of a part of the data which have other tokens than those that the index has found it for: it has lost some, and
/// no checksum says so.
pub(super) fn check_tokens(
    sstable: &Sstable,
    batch: &MutationBatch,
    tokens: &RangeInclusive<i64>,
) -> Result<()> {
    let partitions = &batch.partitions;
    let begins = usize::from(batch.continues != Continues::Nothing);
    for (partition, offset) in partitions.offsets.iter().enumerate().skip(begins) {
        let token = murmur3_token(partitions.keys.get(partition).unwrap_or_default());
        if !tokens.contains(&token) {
            let (start, end) = (tokens.start(), tokens.end());
            let what = format!(
                "the partition of token {token} at byte {offset} of the uncompressed data is where it says that tokens {start} to {end} are"
            );
            return Err(named(Error::corrupt(what), &name_of(&sstable.files.path(&component(sstable)))));
        }
    }
    Ok(())
}

/// The component that says where partitions are.
fn component(sstable: &Sstable) -> Component {
    match sstable.files.name.version.index() {
        IndexKind::Big => Component::Index,
        IndexKind::Trie => Component::Partitions,
    }
}

/// Tokens at which the data can be split into so many parts of about the same size: the first of each part but the first.
pub(super) fn borders(
    store: &Arc<dyn Store>,
    sstable: &Sstable,
    limits: Limits,
    parts: u32,
) -> Result<Vec<i64>> {
    let packing = sstable.packing(&**store, limits)?;
    let pieces = find(store, sstable, &packing, limits, Query::Split(parts))?;
    Ok(pieces.iter().skip(1).map(|piece| *piece.tokens.start()).collect())
}

fn find(
    store: &Arc<dyn Store>,
    sstable: &Sstable,
    packing: &Packing,
    limits: Limits,
    query: Query,
) -> Result<Vec<Piece>> {
    let files = &sstable.files;
    let has = |component: &Component| files.bytes_of(component).is_some();
    let expect = |component: Component| match has(&component) {
        true => Ok(component),
        false => Err(files.named(Error::unsupported(format!("tokens without {}", component.name())))),
    };
    let mut sources: ByteSources<Box<dyn ByteSource + Send>> = ByteSources::new();
    let open = |component: &Component| Ok::<_, Error>(store.open(&files.path(component))?.0);
    sources = sources.with(DATA, open(&Component::Data)?);
    let index = match files.name.version.index() {
        IndexKind::Big => {
            sources = sources.with(INDEX, open(&expect(Component::Index)?)?);
            let summary = sstable.summary(&**store, limits)?;
            IndexFiles::Big { index: INDEX, summary }
        }
        IndexKind::Trie => {
            sources = sources.with(INDEX, open(&expect(Component::Partitions)?)?);
            sources = sources.with(ROWS, open(&expect(Component::Rows)?)?);
            IndexFiles::Trie { partitions: INDEX, rows: ROWS }
        }
    };
    let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::new(limits));
    let partitioner = sstable.statistics.partitioner.clone();
    let ends = sstable.statistics.stats.key_range.clone();
    let of = IndexedData { index, data: DATA, packing: packing.clone(), codecs, partitioner, ends };
    let found = PartitionFinder::new(&of, query, limits).and_then(|mut finder| drive(&mut finder, &sources));
    let found = found.map_err(|error| files.named(error))?;
    found.ok_or_else(|| Error::internal("a search that ended without an answer"))
}
