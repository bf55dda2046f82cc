//! Looking values up in a file's Bloom filter.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{
    Budget, Bytes, Demand, Error, Failed, Input, Machine, Object, Price, Priority, Result, Step, Want,
    check_supply,
};

use crate::bloom::{BLOCK_BYTES, block_contains, block_offset};
use crate::format::{BLOOM_HEADER_BYTES_MAX, BloomFilterHeader, ColumnChunk, FileMetaData, MAGIC};

/// Looks hashes up in the Bloom filter of a column chunk: one product per hash, in order, whether a value with that
/// [hash](crate::bloom::hash) may be in the chunk. False is certain.
///
/// It reads only the filter's header and one block of 32 bytes per hash.
#[derive(Debug)]
pub struct BloomProbe {
    object: Object,
    /// Where the filter is; its end is not known, but it is not behind this.
    room: Range<u64>,
    /// What errors are about.
    metadata: Arc<FileMetaData>,
    row_group: usize,
    leaf: usize,
    hashes: Vec<u64>,
    /// The hash that is next.
    at: usize,
    /// Hashes whose blocks were asked for.
    asked: usize,
    input: Input,
    expects: Expects,
    failed: Failed,
}

#[derive(Debug)]
enum Expects {
    /// The header.
    Header,
    /// Blocks.
    Blocks(BloomPlace),
}

/// Where a Bloom filter's blocks are: what its header says, which need not be read again for another probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BloomPlace {
    start: u64,
    bytes: u32,
}

impl BloomPlace {
    /// The blocks' bytes in the file, without the header.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + u64::from(self.bytes)
    }

    /// The bytes of the block that has a hash, if the filter has it.
    pub fn block_of(&self, hash: u64) -> Range<u64> {
        let block = self.start + block_offset(hash, self.bytes);
        block..block + u64::from(BLOCK_BYTES)
    }
}

/// What it costs to look for a hash in its block, and to ask for it.
const PROBE_PRICE: Price = Price::per_kilovalue(200 << 10);

/// What it costs to put a block among those that are asked for, in order.
const ASK_UNITS: u64 = 100;

/// Blocks that are asked for together.
const WINDOW_BLOCKS: usize = 256;

impl BloomProbe {
    /// A probe of the filter of a leaf's chunk in a row group.
    ///
    /// # Errors
    ///
    /// `Misuse` if the chunk does not exist or has no filter ([`ColumnChunk::bloom_filter`]); `Unsupported` if it is
    /// encrypted or in another file; `Corrupt` if the filter is not within the file.
    pub fn new(
        object: Object,
        metadata: &Arc<FileMetaData>,
        row_group: usize,
        leaf: usize,
        hashes: Vec<u64>,
    ) -> Result<BloomProbe> {
        let group = metadata.row_groups.get(row_group);
        let chunk = group.and_then(|group| group.columns.get(leaf));
        let chunk = chunk.ok_or_else(|| Error::misuse(format!("leaf {leaf} of row group {row_group}")))?;
        let room = room_of(chunk, metadata).map_err(|error| at_leaf(error, metadata, row_group, leaf))?;
        Ok(BloomProbe {
            object,
            room,
            metadata: Arc::clone(metadata),
            row_group,
            leaf,
            hashes,
            at: 0,
            asked: 0,
            input: Input::new(),
            expects: Expects::Header,
            failed: Failed::default(),
        })
    }

    /// The same probe of a filter whose header an earlier probe has read: it is not read again.
    #[must_use]
    pub fn located(self, place: BloomPlace) -> BloomProbe {
        BloomProbe { expects: Expects::Blocks(place), ..self }
    }

    /// Where the filter's blocks are, once its header was read.
    pub fn place(&self) -> Option<BloomPlace> {
        match self.expects {
            Expects::Blocks(place) => Some(place),
            Expects::Header => None,
        }
    }

    /// Bytes of the filter's blocks, once its header was read.
    pub fn filter_bytes(&self) -> Option<u32> {
        self.place().map(|place| place.bytes)
    }

    /// Where the filter is in the file, with its header, once that was read.
    pub fn range(&self) -> Option<Range<u64>> {
        self.place().map(|place| self.room.start..place.range().end)
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<bool>> {
        loop {
            match &self.expects {
                Expects::Header => {
                    let end = self.room.end.min(self.room.start + BLOOM_HEADER_BYTES_MAX);
                    let head = self.room.start..end;
                    let Some(bytes) = self.input.contiguous(head.clone())? else {
                        let missing = self.input.missing(head).unwrap_or_default();
                        return Ok(Step::Need(Demand::now(self.object, missing)));
                    };
                    let (header, length) = BloomFilterHeader::read(&bytes, self.room.start)?;
                    let start = self.room.start + u64_of(length);
                    if self.room.end - start < header.bytes.into() {
                        return Err(Error::corrupt(format!(
                            "a Bloom filter of {} bytes where there is room for {}",
                            header.bytes,
                            self.room.end - start
                        ))
                        .at_offset(self.room.start));
                    }
                    self.expects = Expects::Blocks(BloomPlace { start, bytes: header.bytes });
                }
                &Expects::Blocks(place) => {
                    let Some(&hash) = self.hashes.get(self.at) else { return Ok(Step::Done) };
                    let Some(block) = self.input.contiguous(place.block_of(hash))? else {
                        return Ok(Step::Need(self.demand(place, budget)));
                    };
                    let block = block.first_chunk().ok_or_else(|| Error::internal("a short block"))?;
                    budget.charge(PROBE_PRICE, 0, 1);
                    self.at += 1;
                    if self.at == self.asked {
                        self.input.clear();
                    }
                    return Ok(Step::Ready(block_contains(block, hash)));
                }
            }
        }
    }

    /// The block of the hash that is next, and those of some behind it.
    fn demand(&mut self, place: BloomPlace, budget: &mut Budget<'_>) -> Demand {
        if self.asked <= self.at {
            self.asked = self.hashes.len().min(self.at + WINDOW_BLOCKS);
        }
        let mut ranges: Vec<Range<u64>> =
            self.hashes[self.at..self.asked].iter().map(|&hash| place.block_of(hash)).collect();
        budget.charge_units(ASK_UNITS * u64_of(ranges.len()));
        let now = ranges[0].start;
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup();
        let mut demand = Demand::default();
        for range in ranges {
            let priority = if range.start == now { Priority::Now } else { Priority::Soon };
            if let Some(missing) = self.input.missing(range) {
                demand.push(Want::Range(self.object, missing, priority));
            }
        }
        demand
    }
}

/// An error about a column chunk.
fn at_leaf(error: Error, metadata: &FileMetaData, row_group: usize, leaf: usize) -> Error {
    error.at(|place| {
        place.row_group = Some(u64_of(row_group));
        place.column = metadata.schema.leaves().get(leaf).map(|leaf| metadata.schema.path(leaf.node));
    })
}

/// Where a chunk's filter may be: from where it starts to where it ends, if the writer said, or else to the footer.
fn room_of(chunk: &ColumnChunk, metadata: &FileMetaData) -> Result<Range<u64>> {
    let (start, bytes) =
        chunk.bloom_filter.ok_or_else(|| Error::misuse("a column chunk without a Bloom filter"))?;
    if chunk.encrypted {
        return Err(Error::encrypted("the Bloom filter of an encrypted column"));
    }
    if chunk.file_path.is_some() {
        return Err(Error::unsupported("a column chunk in another file"));
    }
    let file = u64_of(MAGIC.len())..metadata.footer_start;
    let end = match bytes {
        Some(bytes) => start.saturating_add(bytes.into()),
        None => file.end,
    };
    if !file.contains(&start) || end > file.end {
        return Err(Error::corrupt(format!(
            "a Bloom filter from {start} to {end}, in a file with room for {file:?}"
        )));
    }
    Ok(start..end)
}

impl Machine for BloomProbe {
    type Product = bool;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<bool>> {
        let step = |machine: &mut BloomProbe| {
            machine
                .advance(budget)
                .map_err(|error| at_leaf(error, &machine.metadata, machine.row_group, machine.leaf))
        };
        Failed::run(self, |machine| &mut machine.failed, step)
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        if object != self.object {
            return Err(Error::misuse("an object that is not this machine's"));
        }
        check_supply(&range, &bytes, None)?;
        if self.failed.is_set() { Ok(()) } else { self.input.supply(range.start, bytes) }
    }

    fn supply_length(&mut self, _object: Object, _length: u64) -> Result<()> {
        Ok(())
    }

    fn fail(&mut self, object: Object, _range: Range<u64>, reason: Error) {
        if object == self.object {
            self.failed.set(reason);
        }
    }
}
