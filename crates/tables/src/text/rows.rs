//! The rows of a text: split into blocks, which one thread or several parse.

use std::sync::{Arc, Mutex, PoisonError};

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Limits, Result, Step};
use marquetry_parquet::batch::Batch;
use marquetry_text::read::{
    Block, Read, ReadOptions, Split, SplitOptions, TextForm, TextReader, TextSplitter,
};

use super::steps::{fed, unexpected};
use super::stream::Stream;
use crate::lanes::{Lanes, WAITING_BYTES_MAX, guarded, spawn};
use crate::subject::renamed;
use crate::{Batches, BytesRead, Cancel, PieceOptions};

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// Blocks begun ahead of the one whose rows are taken, per thread.
const BLOCKS_AHEAD: usize = 2;

/// The rows of a text file. Flat columns are spaced, nested ones have their levels.
///
/// Whatever the number of threads, the same blocks are parsed: rows, batches and errors are the same.
pub struct TextRows {
    name: String,
    how: How,
    /// Rows that are still wanted, and those that were handed out.
    left: u64,
    next_row: u64,
    bytes: Bytes,
}

/// Bytes of the text.
struct Bytes {
    /// Those that were read, also for rows that wait.
    read: BytesRead,
    /// Those of rows that were handed out, in all and counted elsewhere.
    handed_out: u64,
    count: BytesRead,
}

impl Bytes {
    /// Counts what was read for rows that are handed out.
    fn hand_out(&mut self, read: u64) {
        self.count.add(read.saturating_sub(self.handed_out));
        self.handed_out = self.handed_out.max(read);
    }
}

pub(super) enum How {
    /// On the thread that asks.
    Here(Box<(Blocks, Parser)>),
    /// By threads, a block at a time each; and what cancels waiting for them.
    Elsewhere(Arc<Parsing>, Cancel),
}

impl TextRows {
    /// The rows of a text from its start; of these leaves.
    pub(super) fn new(
        name: &str,
        form: &TextForm,
        (blocks, read): (Blocks, BytesRead),
        leaves: Option<&[usize]>,
        limits: Limits,
        options: &PieceOptions,
    ) -> Result<TextRows> {
        let left = options.limit.unwrap_or(u64::MAX);
        let bytes = Bytes { read: read.clone(), handed_out: 0, count: options.bytes_read.clone() };
        let mut read_options = ReadOptions::default();
        let wanted = options.batch_rows.unwrap_or(BATCH_ROWS);
        read_options.batch_rows = wanted.min(usize::try_from(left).unwrap_or(usize::MAX)).max(1);
        read_options.leaves = leaves.map(<[usize]>::to_vec);
        read_options.limits = limits;
        let parser = || Ok(Parser { reader: TextReader::new(form, read_options.clone())?, is_open: false });
        let how = if options.threads <= 1 {
            How::Here(Box::new((blocks, parser()?)))
        } else {
            let waiting_bytes =
                options.batch_bytes.map_or(WAITING_BYTES_MAX, |bytes| bytes.saturating_mul(2));
            let lanes = Lanes::new(usize::MAX, options.threads, BLOCKS_AHEAD, waiting_bytes);
            let parsing = Arc::new(Parsing { blocks: Mutex::new(blocks), read, lanes });
            // It ends the threads if not all can be started.
            let how = How::Elsewhere(Arc::clone(&parsing), options.cancel.clone());
            let rows = TextRows { name: name.to_string(), how, left, next_row: 0, bytes };
            for _ in 0..options.threads {
                let (parsing, mut parser) = (Arc::clone(&parsing), parser()?);
                spawn("marquetry-parser", move || parsing.work(&mut parser))?;
            }
            return Ok(rows);
        };
        Ok(TextRows { name: name.to_string(), how, left, next_row: 0, bytes })
    }

    #[cfg(test)]
    pub(super) fn how(&self) -> &How {
        &self.how
    }

    fn next_rows(&mut self) -> Result<Option<Batch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let next = match &mut self.how {
            How::Here(here) => {
                let (blocks, parser) = &mut **here;
                let batch = parser.next_of_all(blocks)?;
                batch.map(|batch| (batch, self.bytes.read.get()))
            }
            How::Elsewhere(parsing, cancel) => {
                let taken = parsing.lanes.take(cancel).map_err(|(_, error)| error)?;
                taken.map(|next| (next.batch, next.read))
            }
        };
        let Some((mut batch, read)) = next else {
            self.bytes.hand_out(self.bytes.read.get());
            self.left = 0;
            return Ok(None);
        };
        if u64_of(batch.rows) > self.left {
            batch = batch.slice(0..usize::try_from(self.left).unwrap_or(usize::MAX));
        }
        self.bytes.hand_out(read);
        let rows = u64_of(batch.rows);
        batch.first_row = self.next_row;
        (self.left, self.next_row) = (self.left - rows, self.next_row + rows);
        Ok(Some(batch))
    }
}

impl Batches for TextRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.next_rows().map_err(|error| renamed(error, &self.name))
    }
}

impl Drop for TextRows {
    fn drop(&mut self) {
        if let How::Elsewhere(parsing, _) = &self.how {
            parsing.lanes.stop();
        }
    }
}

/// The lines, counted from 1, that rows begin in, which ascend; `None` if there are not as many rows.
///
/// # Errors
///
/// What is wrong with the text before the last of them.
pub(super) fn lines_of(
    rows: &[u64],
    form: &TextForm,
    mut blocks: Blocks,
    limits: Limits,
) -> Result<Option<Vec<u64>>> {
    let parser = |batch_rows| {
        let mut options = ReadOptions::default();
        // The rows are the same whatever is read of them.
        (options.batch_rows, options.leaves, options.limits) = (batch_rows, Some(vec![0]), limits);
        Ok::<_, Error>(Parser { reader: TextReader::new(form, options)?, is_open: false })
    };
    let mut counting = parser(BATCH_ROWS)?;
    let mut lines = Vec::with_capacity(rows.len());
    // The first row of the block.
    let mut first = 0_u64;
    while let Some(&next) = rows.get(lines.len()) {
        let Some(block) = blocks.next()? else { return Ok(None) };
        // A block with a fault may have the row before that.
        let end = first.saturating_add(counting.rows_of(block.clone()).unwrap_or(u64::MAX));
        if next < end {
            let mut one_by_one = parser(1)?;
            one_by_one.begin(block)?;
            let mut read = first;
            while let Some(&wanted) = rows.get(lines.len()).filter(|row| **row < end) {
                while read <= wanted {
                    if one_by_one.next()?.is_none() {
                        return Ok(None);
                    }
                    read += 1;
                }
                lines.push(one_by_one.reader.line());
            }
        }
        first = end;
    }
    Ok(Some(lines))
}

/// The blocks of a text, as it is read and decompressed.
pub(super) struct Blocks {
    stream: Stream,
    splitter: TextSplitter,
    cancel: Cancel,
}

impl Blocks {
    /// Of a text of this form, which is read from its start. `block_bytes`: see [`SplitOptions`].
    pub(super) fn new(
        stream: Stream,
        form: &TextForm,
        limits: Limits,
        block_bytes: Option<usize>,
        cancel: Cancel,
    ) -> Blocks {
        let mut options = SplitOptions::default();
        (options.block_bytes, options.limits) = (block_bytes, limits);
        Blocks { stream, splitter: TextSplitter::new(form, options), cancel }
    }

    fn next(&mut self) -> Result<Option<Block>> {
        loop {
            match self.splitter.step(&mut Budget::unlimited())? {
                Step::Ready(Split::Block(block)) => return Ok(Some(block)),
                Step::Ready(Split::Room) => {
                    self.cancel.check()?;
                    match self.stream.next()? {
                        Some(bytes) => fed(self.splitter.feed(bytes)?)?,
                        None => self.splitter.finish(),
                    }
                }
                Step::Yield => {}
                Step::Done => return Ok(None),
                other => return Err(unexpected(&other)),
            }
        }
    }
}

/// Parses blocks.
pub(super) struct Parser {
    reader: TextReader,
    /// A block is being read.
    is_open: bool,
}

impl Parser {
    fn begin(&mut self, block: Block) -> Result<()> {
        self.is_open = true;
        self.reader.read_block(block)
    }

    /// The next rows of the block.
    fn next(&mut self) -> Result<Option<Batch>> {
        while self.is_open {
            match self.reader.step(&mut Budget::unlimited())? {
                Step::Ready(Read::Rows(batch)) => return Ok(Some(batch)),
                Step::Yield => {}
                Step::Done => self.is_open = false,
                other => return Err(unexpected(&other)),
            }
        }
        Ok(None)
    }

    /// The number of rows of a block.
    fn rows_of(&mut self, block: Block) -> Result<u64> {
        self.begin(block)?;
        let mut rows = 0;
        while let Some(batch) = self.next()? {
            rows += u64_of(batch.rows);
        }
        Ok(rows)
    }

    /// The next rows of the text.
    fn next_of_all(&mut self, blocks: &mut Blocks) -> Result<Option<Batch>> {
        loop {
            if let Some(batch) = self.next()? {
                return Ok(Some(batch));
            }
            match blocks.next()? {
                Some(block) => self.begin(block)?,
                None => return Ok(None),
            }
        }
    }
}

/// What the threads share that parse a text: a lane for each block.
pub(super) struct Parsing {
    /// Whoever needs a block reads and splits it, while others parse.
    blocks: Mutex<Blocks>,
    read: BytesRead,
    lanes: Lanes,
}

impl Parsing {
    /// Parses block after block, until there are none, or nobody wants more.
    fn work(&self, parser: &mut Parser) {
        while let Some((lane, block, read)) = self.begin() {
            let parse = || {
                parser.begin(block)?;
                while let Some(batch) = parser.next()? {
                    if !self.lanes.put(lane, batch, read) {
                        break;
                    }
                }
                Ok(())
            };
            let parsed = guarded(parse);
            let has_failed = parsed.is_err() || parser.is_open;
            if has_failed {
                // What comes after it is not wanted.
                self.lanes.close();
            }
            self.lanes.end(lane, 1, parsed);
            if has_failed {
                return;
            }
        }
    }

    /// The next block, its lane, and the bytes that were read by then.
    fn begin(&self) -> Option<(usize, Block, u64)> {
        // The text is not used again after a panic: that ends the last lane.
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        // Lanes are in the order of the blocks.
        let (lane, _) = self.lanes.begin(|_| 1)?;
        let ended = match guarded(|| blocks.next()) {
            Ok(Some(block)) => return Some((lane, block, self.read.get())),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        self.lanes.close();
        self.lanes.end(lane, 1, ended);
        None
    }
}
