//! From batches of writes to the files of an SSTable.
//!
//! ```text
//!                        RowWriter ──► Sink: chunks, compressed ──► Data.db            as they come
//! batches ──► elements ──┤             Blocks ──► BigIndex, TrieIndex ──► Index.db; Partitions.db, Rows.db
//!                        └ Collector, Filter ──► Statistics.db, Filter.db, …           at the end
//! ```
//!
//! A [`SstableWriter`] is fed batches of the table ([`MutationBatch`]) in the order of tokens, and appends to components: to those of the
//! data and of the index as it goes, to the others at the end, TOC.txt last. Times are stored as differences from the least of the first batch;
//! otherwise where a batch ends makes no difference to the files.
//!
//! **What it holds** does not grow with the data, but for 16 bytes a partition (its hash, for the filter), a place a chunk, a sample of one
//! partition in 128, and the blocks of a partition without a trie. After four million partitions, and where [options](WriteOptions) say so, an
//! SSTable ends, and [`SstableWriter::next`] writes the next one. A row is held whole, because its length comes before it.
//!
//! Files are as Cassandra's own writers make them (`BigTableWriter.java`, `BtiTableWriter.java`, `MetadataCollector.java`), with two
//! differences: how many partitions there are, roughly, is stored in the dense form of its sketch always; and blocks of rows have the
//! default size of the version, whatever a node's settings are.

mod big;
mod blocks;
mod body;
mod bti;
mod cardinality;
mod clustering;
mod collector;
mod comparable;
mod filter;
mod options;
mod out;
mod rows;
mod sink;
mod statistics;
mod trie;

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Codecs, Error, Failed, Price, Release, Result};

use self::big::BigIndex;
use self::blocks::{Blocks, EndedPartition};
use self::bti::TrieIndex;
use self::clustering::{Clustering, ClusteringOrder};
use self::collector::Collector;
use self::comparable::Comparable;
use self::filter::Filter;
use self::out::Out;
use self::rows::{Part, RowLayout, RowWriter};
use self::sink::Sink;
use self::statistics::Parts;
use super::batch::{Continues, Deletion, EntryKind, MutationBatch, NO_DELETION_TIME, NO_TIMESTAMP};
use super::compare::Comparator;
use super::flags::{END_OF_PARTITION, HAS_EXTENDED_FLAGS, IS_MARKER};
use super::marshal::MarshalType;
use super::statistics::SerializationHeader;
use super::toc::Component;
use super::token::{murmur3_hash, token_of};
use super::version::IndexKind;
use super::{TableColumns, vint};

pub use options::{WRITTEN_VERSIONS, WriteCompression, WriteOptions};

/// The price of bytes that are copied, and of a piece of them.
const COPY_PRICE: Price = Price { kib: 150, kilovalue: 20 << 10 };
/// The price of a partition, and of its key's bytes, which are hashed twice.
const PARTITION_PRICE: Price = Price { kib: 3 << 10, kilovalue: 400 << 10 };
/// The price of a row's clustering values, which are compared, and of the row.
const ROW_PRICE: Price = Price { kib: 1 << 10, kilovalue: 150 << 10 };
/// The most bytes of a key: its length has 16 bits.
const KEY_BYTES_MAX: usize = 0xffff;
/// The most partitions of an SSTable: the hashes of so many have 64 MiB.
const PARTITIONS_MAX: u64 = 4 << 20;
/// Elements of a slice of what is written at the end.
const SLICE: usize = 4096;

/// What a step of a [`SstableWriter`] brings.
#[derive(Debug)]
pub enum WriteStep {
    /// Bytes to append to a component.
    Append(Component, Bytes),
    /// It waits for [`SstableWriter::feed`] or [`SstableWriter::finish`].
    Need,
    /// The budget is spent; call again.
    Yield,
    /// All components are complete.
    Done,
}

/// What was written so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenSstable {
    /// Partitions whose ends were written, and rows.
    pub partitions: u64,
    /// Rows, the static ones among them.
    pub rows: u64,
    /// Bytes of Data.db.
    pub file_bytes: u64,
    /// The token of the first partition and of the last that was begun.
    pub tokens: Option<(i64, i64)>,
}

/// Writes an SSTable: feed it batches, and append what [`step`](SstableWriter::step) brings to the components' files.
///
/// ```
/// use std::sync::Arc;
/// use marquetry_base::Budget;
/// use marquetry_codecs::StandardCodecs;
/// use marquetry_scylla::sstable::{TableColumns, Version};
/// use marquetry_scylla::sstable::write::{SstableWriter, WriteOptions, WriteStep};
/// # use marquetry_base::Result;
///
/// # fn write(columns: &TableColumns, batches: Vec<marquetry_scylla::sstable::batch::MutationBatch>) -> Result<()> {
/// let options = WriteOptions::new(Version::parse("nb")?)?;
/// let mut writer = SstableWriter::new(columns, options, &StandardCodecs::default())?;
/// let mut batches = batches.into_iter();
/// loop {
///     match writer.step(&mut Budget::default())? {
///         WriteStep::Append(component, bytes) => println!("{}: {} bytes", component.name(), bytes.len()),
///         WriteStep::Need => match batches.next() {
///             Some(batch) => writer.feed(batch)?,
///             None => writer.finish(),
///         },
///         WriteStep::Yield => {}
///         WriteStep::Done => return Ok(()),
///     }
/// }
/// # }
/// ```
pub struct SstableWriter {
    options: WriteOptions,
    header: SerializationHeader,
    /// Fixed lengths of the clustering columns.
    fixed: Vec<Option<u32>>,
    order: ClusteringOrder,
    /// How rows are stored: known with the first batch, whose least times all others are differences from.
    layout: Option<RowLayout>,
    parts: VecDeque<Part>,
    is_finished: bool,
    state: State,
    row: RowWriter,
    /// What is before a row's body, and how much of both went to the sink.
    head: Vec<u8>,
    partition: Partition,
    /// The clustering values of the entry, and of the one before it.
    clustering: Clustering,
    before: Clustering,
    blocks: Blocks,
    index: Index,
    collector: Collector,
    filter: Filter,
    sink: Sink,
    out: Out,
    first_token: Option<i64>,
    ended: u64,
    failed: Failed,
}

impl core::fmt::Debug for SstableWriter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SstableWriter")
            .field("options", &self.options)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Index {
    Big(BigIndex),
    Trie(TrieIndex),
}

/// The partition that is written.
#[derive(Debug, Default)]
struct Partition {
    key: Vec<u8>,
    hash: [u64; 2],
    token: Option<i64>,
    is_open: bool,
    position: u64,
    deletion: Option<Deletion>,
    head_bytes: u64,
    rows_end: u64,
    /// Where the row or bound before this one began, in the partition.
    row_before: u64,
    /// Its static row was not written yet, and the table has static columns.
    lacks_static: bool,
    /// A row or bound was written.
    has_rows: bool,
    open: Option<Deletion>,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// The next element.
    Element,
    /// A row's body is made.
    Row {
        is_static: bool,
    },
    /// The head goes to the sink, from this byte on, and then these segments of the body.
    Head {
        at: usize,
        has_body: bool,
    },
    Body {
        segment: usize,
        at: usize,
    },
    /// A chunk is compressed.
    Chunk {
        next: AfterChunk,
    },
    /// The entry of a partition is written to the index.
    Entry,
    /// The end.
    LastChunk,
    Finish(Last),
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum AfterChunk {
    Head { at: usize, has_body: bool },
    Body { segment: usize, at: usize },
}

/// Components that are written at the end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Last {
    Index,
    Filter,
    Statistics,
    Offsets(usize),
    Sums(usize),
    Toc,
}

impl SstableWriter {
    /// A writer of an SSTable of a table with these columns.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for options that make no sense;
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for clustering columns of types that are not sorted, or, of tries,
    /// have no bytes that are; and as [`Codecs::compressor`]'s.
    pub fn new(columns: &TableColumns, options: WriteOptions, codecs: &dyn Codecs) -> Result<SstableWriter> {
        options.check()?;
        let key: Vec<MarshalType> = columns.partition_key.iter().map(|column| column.kind.clone()).collect();
        let clustering: Vec<MarshalType> =
            columns.clustering.iter().map(|column| column.kind.clone()).collect();
        let header = SerializationHeader {
            timestamp_min: 0,
            local_deletion_min: 0,
            ttl_min: 0,
            key: match <[MarshalType; 1]>::try_from(key) {
                Ok([one]) => one,
                Err(all) => MarshalType::Composite(all),
            },
            clustering,
            statics: columns.statics.clone(),
            regulars: columns.regulars.clone(),
        };
        SstableWriter::of(header, options, codecs)
    }

    fn of(header: SerializationHeader, options: WriteOptions, codecs: &dyn Codecs) -> Result<SstableWriter> {
        let coder = match &options.compression {
            None => None,
            Some(compression) => match compression.compressor.codec() {
                Some(codec) => Some(codecs.compressor(codec, compression.level)?),
                None => None,
            },
        };
        let fixed: Vec<Option<u32>> = header.clustering.iter().map(MarshalType::fixed_bytes).collect();
        let order = header.clustering.iter().map(Comparator::new).collect::<Result<Vec<_>>>()?;
        let version = options.version;
        let index = match version.index() {
            IndexKind::Big => Index::Big(BigIndex::new(version, fixed.clone(), &options.limits)),
            IndexKind::Trie => Index::Trie(TrieIndex::new(version, Comparable::new(&header.clustering)?)),
        };
        Ok(SstableWriter {
            header,
            fixed,
            order: ClusteringOrder::new(order),
            layout: None,
            parts: VecDeque::new(),
            is_finished: false,
            state: State::Element,
            row: RowWriter::default(),
            head: Vec::new(),
            partition: Partition::default(),
            clustering: Clustering::default(),
            before: Clustering::default(),
            blocks: Blocks::new(options.index_block_bytes),
            index,
            collector: Collector::new(!version.has_unsigned_deletion_time()),
            filter: Filter::new(options.bloom_false_positives),
            sink: Sink::new(version, options.compression, coder),
            out: Out::default(),
            first_token: None,
            ended: 0,
            failed: Failed::default(),
            options,
        })
    }

    /// Takes the next batch, of the table.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) after [`finish`](SstableWriter::finish), or if the batch is not of the table.
    pub fn feed(&mut self, batch: MutationBatch) -> Result<()> {
        self.failed.check()?;
        if self.is_finished {
            return Err(Error::misuse("a batch after the last"));
        }
        if self.layout.is_none() {
            self.begin(&batch);
        }
        if !self.layout.as_ref().is_some_and(|layout| layout.fits(&batch, &self.fixed)) {
            return Err(Error::misuse("a batch that is not one of the table"));
        }
        if batch.partitions.ends.is_empty() {
            return Ok(());
        }
        let goes_on = match self.parts.back() {
            Some(part) => part.batch.is_open,
            None => self.partition.is_open,
        };
        if goes_on != (batch.continues != Continues::Nothing) {
            return Err(Error::misuse("a batch that does not go on where the one before it ended"));
        }
        let mut part = Part::new(batch);
        // A row that goes on is still with the part that began it; otherwise its entry would be the next.
        if part.batch.continues == Continues::Entry && self.parts.is_empty() {
            part.entry = 1;
        }
        self.parts.push_back(part);
        Ok(())
    }

    /// Takes notice that there is no further batch.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// After [`WriteStep::Done`], the writer of the next SSTable: where [options](WriteOptions) ended this one before the last partition. `None`
    /// if nothing is left.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) before it is done; and as [`Codecs::compressor`]'s.
    pub fn next(self, codecs: &dyn Codecs) -> Result<Option<SstableWriter>> {
        self.failed.check()?;
        if self.state != State::Done {
            return Err(Error::misuse("the next SSTable of one that is not complete"));
        }
        let Some(front) = self.parts.front() else { return Ok(None) };
        let mut next = SstableWriter::of(self.header, self.options, codecs)?;
        next.begin(&front.batch);
        (next.parts, next.is_finished, next.partition) = (self.parts, self.is_finished, self.partition);
        Ok(Some(next))
    }

    /// Whether the SSTable ends before a partition of this token.
    fn ends_before(&self, token: i64) -> bool {
        let Some(last) = self.partition.token.filter(|_| self.collector.partitions > 0) else { return false };
        let is_large = self.options.bytes_max.is_some_and(|most| self.sink.file_bytes() >= most);
        let is_split = || self.options.split_at.iter().any(|split| (last..token).contains(split));
        is_large || self.collector.partitions >= PARTITIONS_MAX || is_split()
    }

    /// What was written so far.
    pub fn written(&self) -> WrittenSstable {
        WrittenSstable {
            partitions: self.ended,
            rows: self.collector.rows.unsigned_abs(),
            file_bytes: self.sink.file_bytes(),
            tokens: self.first_token.zip(self.partition.token),
        }
    }

    /// The components that it writes, TOC.txt last.
    pub fn components(&self) -> Vec<Component> {
        let mut all = alloc::vec![Component::Data];
        all.extend(match self.index {
            Index::Big(_) => [Component::Index, Component::Summary],
            Index::Trie(_) => [Component::Partitions, Component::Rows],
        });
        all.extend([Component::Filter, Component::Statistics]);
        all.push(match self.options.compression {
            Some(_) => Component::CompressionInfo,
            None => Component::Crc,
        });
        all.extend([Component::Digest, Component::Toc]);
        all
    }

    /// Works until there are bytes, another batch is needed, or the budget is spent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for partitions or rows that are not in their order, a batch that contradicts
    /// itself, and no partition at all; [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for what the version cannot
    /// store; [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) for values, and indexes of partitions, beyond the
    /// limits.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<WriteStep> {
        Failed::run(self, |writer| &mut writer.failed, |writer| writer.advance(budget))
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<WriteStep> {
        loop {
            if let Some((component, bytes)) = self.out.take() {
                return Ok(WriteStep::Append(component, bytes));
            }
            let mut is_tired = false;
            let is_waiting = match self.state {
                State::Done => return Ok(WriteStep::Done),
                State::Element => !self.element(budget)?,
                _ => {
                    is_tired = !self.go_on(budget)?;
                    false
                }
            };
            if is_waiting {
                return Ok(WriteStep::Need);
            }
            if is_tired || budget.is_spent() {
                return Ok(match self.out.take() {
                    Some((component, bytes)) => WriteStep::Append(component, bytes),
                    None => WriteStep::Yield,
                });
            }
        }
    }

    /// Does what the state says, as far as the budget allows. False if what is left of it does not pay for anything more, even if it is not
    /// spent: a block of a compressor is dear.
    fn go_on(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        match self.state {
            State::Element | State::Done => {}
            State::Row { is_static } => {
                let Some(layout) = &self.layout else {
                    return Err(Error::internal("a row without a layout"));
                };
                let most = self.options.limits.value_bytes;
                if self.row.step(&mut self.parts, layout, &mut self.collector, most, budget)? {
                    self.row_head(is_static);
                }
            }
            State::Head { at, has_body } => {
                let rest = self.head.get(at..).unwrap_or_default();
                budget.charge(COPY_PRICE, rest.len(), 1);
                let rest = self.sink.take(rest).len();
                let at = self.head.len() - rest;
                if self.sink.is_full() {
                    self.state = State::Chunk { next: AfterChunk::Head { at, has_body } };
                } else if has_body {
                    self.state = State::Body { segment: 0, at: 0 };
                } else {
                    self.end_element(budget)?;
                }
            }
            State::Body { segment, at } => match self.row.body().segment(segment) {
                None => self.end_element(budget)?,
                Some(bytes) => {
                    let rest = self.sink.take(bytes.get(at..).unwrap_or_default()).len();
                    budget.charge(COPY_PRICE, bytes.len() - at - rest, 1);
                    let (segment, at) =
                        if rest == 0 { (segment + 1, 0) } else { (segment, bytes.len() - rest) };
                    self.state = match self.sink.is_full() {
                        true => State::Chunk { next: AfterChunk::Body { segment, at } },
                        false => State::Body { segment, at },
                    };
                }
            },
            State::Chunk { next } => {
                if !self.sink.seal(&mut self.out, budget)? {
                    return Ok(false);
                }
                self.state = match next {
                    AfterChunk::Head { at, has_body } => State::Head { at, has_body },
                    AfterChunk::Body { segment, at } => State::Body { segment, at },
                };
            }
            State::Entry => {
                let is_done = match &mut self.index {
                    Index::Big(index) => index.write_entry(&mut self.out, budget),
                    Index::Trie(_) => true,
                };
                if is_done {
                    self.state = State::Element;
                }
            }
            State::LastChunk => {
                if self.sink.has_rest() && !self.sink.seal(&mut self.out, budget)? {
                    return Ok(false);
                }
                self.state = State::Finish(Last::Index);
            }
            State::Finish(last) => self.finish_component(last, budget)?,
        }
        Ok(true)
    }

    /// The header's least times are those of the first batch: what comes later may be less, and is a negative difference then.
    fn begin(&mut self, batch: &MutationBatch) {
        let cells = &batch.columns;
        let deletions = [&batch.partitions.deletions, &batch.entries.deletions, &batch.entries.starts];
        let rows = batch.entries.timestamps.iter().copied().filter(|timestamp| *timestamp != NO_TIMESTAMP);
        let deleted = || {
            let complex = cells.iter().flat_map(|cells| &cells.deletions.values);
            deletions.into_iter().flat_map(|list| &list.values).chain(complex)
        };
        let of_cells = cells.iter().flat_map(|cells| &cells.timestamps.values).copied();
        let timestamps = rows.chain(of_cells).chain(deleted().map(|deletion| deletion.timestamp));
        let expiries = || {
            let of_cells = cells.iter().flat_map(|cells| &cells.expiries.values);
            batch.entries.expiries.values.iter().chain(of_cells).filter(|expiry| expiry.ttl > 0)
        };
        let tombstones = cells.iter().flat_map(|cells| &cells.tombstones.values).copied();
        let locals = tombstones
            .chain(deleted().map(|deletion| deletion.local_deletion))
            .chain(expiries().map(|expiry| expiry.local_deletion))
            .filter(|seconds| *seconds != NO_DELETION_TIME);
        self.header.timestamp_min = timestamps.min().unwrap_or(super::statistics::TIMESTAMP_EPOCH);
        self.header.local_deletion_min = locals.min().unwrap_or(super::statistics::DELETION_TIME_EPOCH);
        self.header.ttl_min = expiries().map(|expiry| expiry.ttl).min().unwrap_or(0);
        self.layout = Some(RowLayout::new(self.options.version, &self.header));
    }

    /// Begins the next element. False if there is none yet.
    fn element(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        if let Some(front) = self.parts.front()
            && front.partition >= front.batch.partitions.ends.len()
        {
            // Freeing it is what the next batch's reader would do.
            if let Some(part) = self.parts.front_mut()
                && !part.release(budget)
            {
                return Ok(true);
            }
            self.parts.pop_front();
            return Ok(true);
        }
        let Some(front) = self.parts.front() else {
            if !self.is_finished {
                return Ok(false);
            }
            if self.partition.is_open {
                return Err(Error::misuse("a partition that goes on after the last batch"));
            }
            if self.collector.partitions == 0 {
                return Err(Error::misuse("an SSTable without partitions"));
            }
            self.state = State::LastChunk;
            return Ok(true);
        };
        if !self.partition.is_open {
            let key = front.batch.partitions.keys.get(front.partition).unwrap_or_default();
            if self.ends_before(super::token::murmur3_token(key)) {
                self.state = State::LastChunk;
                return Ok(true);
            }
            return self.begin_partition(budget).map(|()| true);
        }
        let batch = &front.batch;
        let end = batch.entries_of(front.partition).end;
        if front.entry < end {
            return self.begin_entry(budget);
        }
        let is_last = front.partition + 1 == batch.partitions.ends.len();
        if is_last && batch.is_open {
            if let Some(front) = self.parts.front_mut() {
                front.partition += 1;
            }
            return Ok(true);
        }
        if self.partition.lacks_static {
            self.begin_static(0);
            return Ok(true);
        }
        if self.partition.open.is_some() {
            return Err(Error::misuse("a range of deleted rows that does not end in its partition"));
        }
        if let Some(front) = self.parts.front_mut() {
            front.partition += 1;
        }
        self.partition.rows_end = self.sink.position() - self.partition.position;
        self.partition.is_open = false;
        self.head.clear();
        self.head.push(END_OF_PARTITION);
        self.state = State::Head { at: 0, has_body: false };
        Ok(true)
    }

    /// A partition's key and deletion.
    fn begin_partition(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let Some(front) = self.parts.front() else { return Err(Error::internal("no partition")) };
        let key = front.batch.partitions.keys.get(front.partition).unwrap_or_default();
        budget.charge(PARTITION_PRICE, 2 * key.len(), 1);
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::unsupported(format!(
                "a partition key of {} bytes; 65,535 can be stored",
                key.len()
            )));
        }
        let hash = murmur3_hash(key);
        let token = if key.is_empty() { i64::MIN } else { token_of(hash) };
        let partition = &mut self.partition;
        let is_after = partition.token.is_none_or(|before| (before, &partition.key[..]) < (token, key));
        if !is_after {
            return Err(Error::misuse(
                "partitions that are not in the order of their tokens, or one that is there twice",
            ));
        }
        let number = super::batch::number_of(front.partition);
        let deletion = front.batch.partitions.deletions.get(number);
        self.head.clear();
        self.head.extend(u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.head.extend(key);
        rows::push_partition_deletion(&mut self.head, deletion, self.options.version)?;
        self.collector.partition(key, deletion);
        self.filter.add(hash);
        partition.key.clear();
        partition.key.extend_from_slice(key);
        let lacks_static = self.layout.as_ref().is_some_and(RowLayout::has_statics);
        *partition = Partition {
            key: core::mem::take(&mut partition.key),
            hash,
            token: Some(token),
            is_open: true,
            position: self.sink.position(),
            deletion,
            head_bytes: u64_of(self.head.len()),
            lacks_static,
            ..Partition::default()
        };
        self.first_token.get_or_insert(token);
        self.blocks.begin();
        self.state = State::Head { at: 0, has_body: false };
        Ok(())
    }

    /// A row or bound. False if the rest of it is not there yet.
    fn begin_entry(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        // A row may go on in the batches after this one.
        let mut count = 1;
        loop {
            let Some(part) = self.parts.get(count - 1) else { break };
            let last = part.batch.entries.kinds.len() == if count == 1 { part.entry + 1 } else { 1 };
            if !part.batch.is_open || !last {
                break;
            }
            match self.parts.get(count) {
                Some(next) if next.batch.continues == Continues::Entry => count += 1,
                Some(_) => break,
                None if self.is_finished => break,
                None => return Ok(false),
            }
        }
        let Some(front) = self.parts.front() else { return Err(Error::internal("no entry")) };
        core::mem::swap(&mut self.clustering, &mut self.before);
        self.clustering.read(&front.batch, front.entry);
        budget.charge(ROW_PRICE, self.clustering.bytes(), 1);
        let kind = self.clustering.kind;
        if kind == EntryKind::Static {
            if !self.partition.lacks_static {
                return Err(Error::misuse(
                    "a static row that is not its partition's first, or in a table without static columns",
                ));
            }
            self.begin_static(count);
            return Ok(true);
        }
        if self.partition.lacks_static {
            core::mem::swap(&mut self.clustering, &mut self.before);
            self.begin_static(0);
            return Ok(true);
        }
        self.order.check(&self.clustering)?;
        if self.partition.has_rows {
            let found = self.order.compare(&self.before, &self.clustering);
            let is_bound = !kind.is_row() && !self.before.kind.is_row();
            if found.is_gt() || (found.is_eq() && !is_bound) {
                return Err(Error::misuse(
                    "rows that are not in the order of their clustering columns, or one that is there twice",
                ));
            }
        }
        self.partition.has_rows = true;
        self.collector.clustering(&self.order, &self.clustering);
        if kind.is_row() {
            self.begin_row(count, false);
        } else {
            self.bound()?;
        }
        Ok(true)
    }

    fn begin_static(&mut self, count: usize) {
        self.partition.lacks_static = false;
        self.begin_row(count, true);
    }

    fn begin_row(&mut self, count: usize, is_static: bool) {
        if let Some(layout) = &self.layout {
            self.row.begin(&self.parts, count, is_static, layout);
        }
        self.state = State::Row { is_static };
    }

    /// What is before a row's body.
    fn row_head(&mut self, is_static: bool) {
        let (flags, extended) = self.row.flags();
        self.head.clear();
        self.head.push(flags);
        if flags & HAS_EXTENDED_FLAGS != 0 {
            self.head.push(extended);
        }
        let mut before = 0;
        if !is_static {
            self.clustering.write_values(&self.fixed, &mut self.head);
            before = self.row_start() - self.partition.row_before;
        }
        let mut length = Vec::new();
        vint::push_unsigned(&mut length, before);
        vint::push_unsigned(&mut self.head, u64_of(length.len() + self.row.body().len()));
        self.head.extend(length);
        if !is_static {
            let at = self.row_start();
            self.blocks.add(&self.clustering, at, None);
            self.partition.row_before = at;
        }
        self.state = State::Head { at: 0, has_body: true };
    }

    /// Where the next row begins in the partition.
    fn row_start(&self) -> u64 {
        self.sink.position() - self.partition.position
    }

    /// A bound of one or two ranges.
    fn bound(&mut self) -> Result<()> {
        let at = self.row_start();
        let (Some(front), Some(layout)) = (self.parts.front_mut(), &self.layout) else {
            return Err(Error::internal("a bound of no batch"));
        };
        let number = super::batch::number_of(front.entry);
        let entries = &front.batch.entries;
        let (ends, starts) = (entries.deletions.get(number), entries.starts.get(number));
        let kind = self.clustering.kind;
        if ends.is_none() || starts.is_some() != kind.is_boundary() {
            return Err(Error::misuse("a bound of a range that is not deleted"));
        }
        let opens = matches!(kind, EntryKind::InclusiveStart | EntryKind::ExclusiveStart);
        if self.partition.open.is_some() == opens {
            return Err(Error::misuse(
                "a range of deleted rows that begins in another one, or ends without having begun",
            ));
        }
        self.head.clear();
        self.head.push(IS_MARKER);
        self.clustering.write_bound(&self.fixed, &mut self.head);
        let mut body = Vec::new();
        vint::push_unsigned(&mut body, at - self.partition.row_before);
        for deletion in [ends, starts].into_iter().flatten() {
            layout.push_deletion(Some(deletion), &mut body)?;
            self.collector.deletion(deletion);
        }
        vint::push_unsigned(&mut self.head, u64_of(body.len()));
        self.head.extend(body);
        let open = if opens { ends } else { starts };
        self.partition.open = open;
        self.blocks.add(&self.clustering, at, Some(open));
        self.partition.row_before = at;
        front.entry += 1;
        self.state = State::Head { at: 0, has_body: false };
        Ok(())
    }

    /// What follows an element that went to the sink.
    fn end_element(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        self.state = State::Element;
        let at = self.row_start();
        if !self.partition.has_rows && self.partition.is_open {
            // The key, or the static row.
            self.partition.head_bytes = at;
            return Ok(());
        }
        if let Some(block) = self.blocks.take(at, !self.partition.is_open) {
            match &mut self.index {
                Index::Big(index) => index.add_block(block)?,
                Index::Trie(index) => index.add_block(block, &mut self.out, budget)?,
            }
        }
        if self.partition.is_open {
            return Ok(());
        }
        let partition = &self.partition;
        self.collector.end_partition(at);
        let ended = EndedPartition {
            key: &partition.key,
            hash: partition.hash,
            position: partition.position,
            deletion: partition.deletion,
            head_bytes: partition.head_bytes,
            rows_end: partition.rows_end,
        };
        match &mut self.index {
            Index::Big(index) => index.begin_entry(&ended)?,
            Index::Trie(index) => index.add(&ended, &mut self.out, budget)?,
        }
        self.ended += 1;
        self.state = State::Entry;
        Ok(())
    }

    /// Goes on with what is written at the end.
    fn finish_component(&mut self, last: Last, budget: &mut Budget<'_>) -> Result<()> {
        let next = match last {
            Last::Index => {
                let first = self.collector.first_key.clone().unwrap_or_default();
                let last_key = self.collector.last_key.clone();
                match &mut self.index {
                    Index::Big(index) => {
                        index.finish(&first, &last_key, &mut self.out, budget).then_some(Last::Filter)
                    }
                    Index::Trie(index) => {
                        index.finish(&first, &last_key, &mut self.out, budget)?;
                        Some(Last::Filter)
                    }
                }
            }
            Last::Filter => {
                self.filter.write(self.options.version, &mut self.out, budget).then_some(Last::Statistics)
            }
            Last::Statistics => {
                let ratio = self.options.compression.map(|_| (self.sink.file_bytes(), self.sink.position()));
                let parts = Parts {
                    version: self.options.version,
                    bloom_false_positives: self.options.bloom_false_positives,
                    header: &self.header,
                    fixed: &self.fixed,
                    ratio,
                };
                let bytes = parts.write(&mut self.collector);
                self.out.push(&Component::Statistics, &bytes, budget);
                if let Some(info) = self.sink.compression_info() {
                    self.out.push(&Component::CompressionInfo, &info, budget);
                    Some(Last::Offsets(0))
                } else {
                    let bytes = u32::try_from(self.sink.chunk_bytes()).unwrap_or(0).to_be_bytes();
                    self.out.push(&Component::Crc, &bytes, budget);
                    Some(Last::Sums(0))
                }
            }
            Last::Offsets(at) => {
                let bytes: Vec<u8> = self
                    .sink
                    .offsets()
                    .iter_from(at)
                    .take(SLICE)
                    .flat_map(|place| place.to_be_bytes())
                    .collect();
                self.out.push(&Component::CompressionInfo, &bytes, budget);
                Some(if bytes.is_empty() { Last::Toc } else { Last::Offsets(at + SLICE) })
            }
            Last::Sums(at) => {
                let bytes: Vec<u8> =
                    self.sink.sums().iter_from(at).take(SLICE).flat_map(|sum| sum.to_be_bytes()).collect();
                self.out.push(&Component::Crc, &bytes, budget);
                Some(if bytes.is_empty() { Last::Toc } else { Last::Sums(at + SLICE) })
            }
            Last::Toc => {
                self.out.push(&Component::Digest, self.sink.digest().to_string().as_bytes(), budget);
                self.out.seal();
                let lines: Vec<u8> = self
                    .components()
                    .iter()
                    .flat_map(|component| component.name().bytes().chain([b'\n']))
                    .collect();
                self.out.push(&Component::Toc, &lines, budget);
                self.out.seal();
                self.state = State::Done;
                return Ok(());
            }
        };
        if let Some(next) = next {
            self.state = State::Finish(next);
        }
        Ok(())
    }
}

impl Release for SstableWriter {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let index = match &mut self.index {
            Index::Big(index) => index.release(budget),
            Index::Trie(index) => index.release(budget),
        };
        index
            && self.filter.release(budget)
            && self.row.release(budget)
            && self.parts.iter_mut().all(|part| part.release(budget))
    }
}
