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
mod elements;
mod filter;
mod options;
mod out;
mod rows;
mod sink;
mod statistics;
mod trie;

use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Codecs, Error, Failed, Price, Release, Result};

use self::big::BigIndex;
use self::blocks::Blocks;
use self::bti::TrieIndex;
use self::clustering::{Clustering, ClusteringOrder};
use self::collector::Collector;
pub(crate) use self::comparable::{Comparable, push_decimal, push_escaped};
use self::filter::Filter;
use self::out::{COPY_PRICE, Out};
use self::rows::{Part, RowLayout, RowWriter};
use self::sink::Sink;
use self::statistics::Parts;
use super::TableColumns;
use super::batch::{Continues, Deletion, MutationBatch};
use super::compare::Comparator;
use super::marshal::MarshalType;
use super::statistics::SerializationHeader;
use super::toc::Component;
use super::version::IndexKind;

pub use options::{WRITTEN_VERSIONS, WriteCompression, WriteOptions};

/// The price of a partition, and of its key's bytes, which are hashed twice.
const PARTITION_PRICE: Price = Price { kib: 3 << 10, kilovalue: 400 << 10 };
/// The price of a row's clustering values, which are compared, and of the row.
const ROW_PRICE: Price = Price { kib: 1 << 10, kilovalue: 220 << 10 };
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
    /// Entries of all batches, also of those that earlier writers were fed.
    entries_fed: u64,
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
    /// The first of the sorted tokens at which SSTables end that is not before the last partition.
    next_split: usize,
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
    pub fn new(
        columns: &TableColumns,
        mut options: WriteOptions,
        codecs: &dyn Codecs,
    ) -> Result<SstableWriter> {
        options.check()?;
        options.split_at.sort_unstable();
        SstableWriter::of(columns.header(), options, codecs)
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
            entries_fed: 0,
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
            next_split: 0,
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
        // A row that goes on is still with the part that began it.
        let waits = |part: &Part| part.entry < part.batch.entries.kinds.len();
        if batch.continues == Continues::Entry && !self.parts.back().is_some_and(waits) {
            return Err(Error::misuse("a batch that goes on with a row, after one that ended with none"));
        }
        let first_entry = self.entries_fed;
        self.entries_fed += u64_of(batch.entries.kinds.len());
        self.parts.push_back(Part::new(batch, first_entry));
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
        (next.next_split, next.entries_fed) = (self.next_split, self.entries_fed);
        next.begin(&front.batch);
        (next.parts, next.is_finished, next.partition) = (self.parts, self.is_finished, self.partition);
        Ok(Some(next))
    }

    /// Whether the SSTable ends before a partition of this token.
    fn ends_before(&mut self, token: i64) -> bool {
        let Some(last) = self.partition.token.filter(|_| self.collector.partitions > 0) else { return false };
        let is_large = self.options.bytes_max.is_some_and(|most| self.sink.file_bytes() >= most);
        let splits = &self.options.split_at;
        while splits.get(self.next_split).is_some_and(|split| *split < last) {
            self.next_split += 1;
        }
        let is_split = splits.get(self.next_split).is_some_and(|split| *split < token);
        is_large || self.collector.partitions >= PARTITIONS_MAX || is_split
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

    /// The row or bound that it is at: its number among [all](crate::sstable::batch::Entries) that it and the writers before it were fed. After an error
    /// about what it was fed, the wrong one. `None` between partitions.
    pub fn entry(&self) -> Option<u64> {
        let front = self.parts.front().filter(|_| self.partition.is_open)?;
        Some(front.first_entry + u64_of(front.entry))
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
    /// [`ErrorKind::Conversion`](marquetry_base::ErrorKind::Conversion) for partitions or rows that are not in their order;
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for a batch that contradicts itself, and no partition at all; [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for what the version cannot
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
                if self.row.step(
                    &mut self.parts,
                    layout,
                    &mut self.collector,
                    &self.options.limits,
                    budget,
                )? {
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
                } else if !has_body {
                    self.end_element(budget)?;
                } else if let Some(bytes) = self.row.body().only_segment()
                    && bytes.len() < self.sink.room()
                {
                    budget.charge(COPY_PRICE, bytes.len(), 1);
                    self.sink.take(bytes);
                    self.end_element(budget)?;
                } else {
                    self.state = State::Body { segment: 0, at: 0 };
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
