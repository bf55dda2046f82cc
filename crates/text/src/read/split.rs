//! Splits a text into blocks of complete rows, which several readers can read at the same time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::mem;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Bytes, Error, Failed, Limits, Price, Result, Step};
use marquetry_kernels::marks::BLOCK_BYTES;
use marquetry_parquet::write::Fed;

use super::delimited::BYTE_ORDER_MARK;
use super::place::{Start, at_line};
use super::quotes::{Before, Blocks};
use super::window::too_long;
use crate::TextOptions;

/// The price of looking for quotes and line ends: per byte, and per stop at one of them.
pub(crate) const SPLIT_PRICE: Price = Price { kib: 600, kilovalue: 12 << 10 };
/// Bytes that are looked at at once, and stops.
const SPLIT_SLICE_BYTES: usize = 64 << 10;
const SPLIT_SLICE_STOPS: usize = 2 << 10;

/// Splits a text into [blocks](Block) of complete rows. Each is read by a [`TextReader`](super::TextReader) of its own,
/// or one block after another by the same one: see [`TextReader::read_block`](super::TextReader::read_block).
///
/// ```text
/// feed(bytes) -> Taken | Full(bytes)     when step answers Ready(Split::Room)
/// finish()                               after the last bytes
/// step(budget) -> Ready(Split::Room) | Ready(Split::Block(block)) | Yield | Done | error
/// ```
///
/// Only line ends, quotes and comments are looked at; what is wrong in a row is found by the block's reader. Where blocks end
/// depends on the text alone. Blocks share what is fed: it should come in pieces of some KiB.
///
/// ```
/// use marquetry_base::{Budget, Bytes, Step};
/// use marquetry_text::read::{
///     Read, ReadOptions, Sampled, Split, SplitOptions, TextReader, TextSampler, TextSplitter,
/// };
/// use marquetry_text::{Format, TextOptions};
///
/// let text = Bytes::from_static(b"id,name\n1,\"a\nb\"\n2,c\n");
/// let mut budget = Budget::unlimited();
/// let mut sampler = TextSampler::new(Format::Csv, &TextOptions::default())?;
/// sampler.feed(text.clone())?;
/// sampler.finish();
/// let Step::Ready(Sampled::Sample(sample)) = sampler.step(&mut budget)? else { panic!() };
/// let form = sample.form()?;
///
/// let mut options = SplitOptions::default();
/// options.block_bytes = Some(8);
/// let mut splitter = TextSplitter::new(&form, options);
/// splitter.feed(text)?;
/// splitter.finish();
/// let mut rows = Vec::new();
/// while let Step::Ready(Split::Block(block)) = splitter.step(&mut budget)? {
///     let mut reader = TextReader::new(&form, ReadOptions::default())?;
///     reader.read_block(block)?;
///     while let Step::Ready(Read::Rows(batch)) = reader.step(&mut budget)? {
///         rows.push(batch.rows);
///     }
/// }
/// // The header and the row of two lines are one block.
/// assert_eq!(rows, [1, 1]);
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug)]
pub struct TextSplitter {
    rule: Rule,
    block_bytes: u64,
    /// No block is longer: one that is has a row that is too long, which its reader will find.
    bytes_max: u64,
    /// What is being looked at, how far it was, and how much of it is in earlier blocks.
    fed: Bytes,
    at: usize,
    taken: usize,
    is_finished: bool,
    is_over: bool,
    /// Maximum bytes of a row; and the error after a block that is too long.
    row_bytes: u64,
    too_long: Option<Error>,
    /// The block that is being filled, and its bytes.
    block: Block,
    bytes: u64,
    /// Where the text was looked at up to.
    place: Start,
    state: State,
    /// The byte before the next one; a line feed at the text's start.
    before: u8,
    /// How much of a byte order mark the text has begun with, until that is decided.
    mark: Option<usize>,
    /// With quotes, and without comments.
    blocks: Option<Box<Blocks>>,
    failed: Failed,
}

/// How a text is split.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SplitOptions {
    /// A block ends with the first row that ends after this many bytes. `None`: as many as suit the form.
    pub block_bytes: Option<usize>,
    /// Limits of sizes: see [`TextOptions::limits`].
    pub limits: Limits,
}

impl Default for SplitOptions {
    fn default() -> SplitOptions {
        SplitOptions { block_bytes: None, limits: Limits::DEFAULT }
    }
}

/// What a [`TextSplitter`] returns.
#[derive(Debug, Clone)]
pub enum Split {
    /// It takes more bytes; at the text's end, [finish](TextSplitter::finish) it.
    Room,
    /// The next block.
    Block(Block),
}

/// Complete rows of a text.
#[derive(Debug, Clone, Default)]
pub struct Block {
    pub(super) pieces: VecDeque<Bytes>,
    pub(super) start: Start,
}

impl Block {
    /// Its length in bytes.
    pub fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| u64_of(piece.len())).sum()
    }
}

/// What ends a row: a line feed that is not in quotes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rule {
    /// `None`: every line feed ends one.
    pub(super) quotes: Option<Quotes>,
    /// A line that begins with it is no row.
    pub(super) comment: Option<u8>,
    /// The first row is a header.
    pub(super) has_header: bool,
    /// An empty line is a row.
    pub(super) has_empty_rows: bool,
}

/// What begins and ends a quoted field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quotes {
    pub(super) delimiter: u8,
    pub(super) quote: u8,
}

/// What the next byte is part of: as the scanner of delimited text has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// What comes before the header; the flag is set after a carriage return that begins a line.
    Blank { is_returned: bool },
    /// A comment; the flag says whether it comes before the header.
    Comment { is_before_header: bool },
    /// No quotes.
    Plain,
    /// A quoted field.
    Quoted,
    /// It follows a quote in a quoted field.
    Closed,
}

impl TextSplitter {
    /// A splitter of a text whose rows end by this rule, and are read in pieces of so many bytes.
    pub(super) fn of(rule: Rule, piece_bytes: usize, options: &SplitOptions) -> TextSplitter {
        // Two pieces of a reader's window, less what it takes over of a row from the first.
        let suitable = 2 * piece_bytes - piece_bytes / 8;
        let block_bytes = u64_of(options.block_bytes.unwrap_or(suitable));
        let row_bytes = TextOptions { limits: options.limits, ..TextOptions::default() }.row_bytes();
        // A reader notices when a piece that is beyond the limit is full.
        let bytes_max = block_bytes.saturating_add(row_bytes).saturating_add(2 * u64_of(piece_bytes));
        let state = if rule.has_header { State::Blank { is_returned: false } } else { State::Plain };
        let place = Start { is_after_header: !rule.has_header, ..Start::default() };
        let blocks = rule
            .quotes
            .filter(|_| rule.comment.is_none())
            .map(|Quotes { delimiter, quote }| Box::new(Blocks::new(delimiter, Some(quote))));
        TextSplitter {
            rule,
            block_bytes,
            bytes_max,
            fed: Bytes::new(),
            at: 0,
            taken: 0,
            is_finished: false,
            is_over: false,
            row_bytes,
            too_long: None,
            block: Block { start: place, ..Block::default() },
            bytes: 0,
            place,
            state,
            before: b'\n',
            mark: Some(0),
            blocks,
            failed: Failed::default(),
        }
    }

    /// Passes the next bytes, if there is room.
    ///
    /// # Errors
    ///
    /// `Misuse` after [`TextSplitter::finish`]; the error of a failed splitter.
    pub fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        self.failed.check()?;
        if self.is_over {
            return Ok(Fed::Taken);
        }
        if self.is_finished {
            return Err(Error::misuse("bytes for a text that is finished"));
        }
        if self.at < self.fed.len() {
            return Ok(Fed::Full(bytes));
        }
        self.retire();
        self.fed = bytes;
        Ok(Fed::Taken)
    }

    /// Ends the text: nothing more will be fed.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Works until there is an answer or the budget is spent.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` after a block with a row that is too long, with the line in which the block begins (its reader
    /// finds that of the row), or if memory cannot be allocated; then the same again.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Split>> {
        Failed::run(self, |splitter| &mut splitter.failed, |splitter| splitter.advance(budget))
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Split>> {
        loop {
            if let Some(error) = self.too_long.take() {
                return Err(error);
            }
            if self.is_over {
                return Ok(Step::Done);
            }
            if self.at == self.fed.len() {
                self.retire();
                if !self.is_finished {
                    return Ok(Step::Ready(Split::Room));
                }
                self.is_over = true;
                return Ok(if self.bytes > 0 { Step::Ready(Split::Block(self.cut())) } else { Step::Done });
            }
            let fed = self.fed.clone();
            let until = fed.len().min(self.at + SPLIT_SLICE_BYTES);
            let free = usize_of(self.block_bytes.saturating_sub(self.bytes)).unwrap_or(usize::MAX);
            let Scanned { length, stops, is_end } = self.scan(&fed[self.at..until], free);
            let part = &fed[self.at..self.at + length];
            self.place.lines += u64_of(memchr::memchr_iter(b'\n', part).count());
            self.place.offset += u64_of(length);
            self.bytes += u64_of(length);
            self.at += length;
            budget.charge(SPLIT_PRICE, length, stops);
            if self.bytes > self.bytes_max {
                self.is_over = true;
                self.too_long = Some(at_line(self.block.start.lines + 1, too_long(self.row_bytes)));
            }
            if is_end || self.is_over {
                return Ok(Step::Ready(Split::Block(self.cut())));
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
    }

    /// Looks at a slice, up to the first row end after the first `free` bytes.
    fn scan(&mut self, text: &[u8], free: usize) -> Scanned {
        let mut scanned = Scanned::default();
        // Up to there, blocks were looked at in vain.
        let mut by_hand = 0;
        while scanned.length < text.len() && scanned.stops < SPLIT_SLICE_STOPS && !scanned.is_end {
            let mut rest = &text[scanned.length..];
            let free = free.saturating_sub(scanned.length);
            if self.may_take_blocks(free) {
                if scanned.length >= by_hand
                    && let Some((taken, left_out)) = self.take_blocks(&rest[..rest.len().min(free)])
                {
                    scanned.length += taken;
                    by_hand = scanned.length + left_out;
                    // The block that cannot be used costs as much as a stop.
                    scanned.stops += 1;
                    continue;
                }
                rest = &rest[..rest.len().min(by_hand.saturating_sub(scanned.length))];
            }
            match (self.mark, self.state, self.rule.quotes) {
                (Some(matched), ..) => scanned.length += self.look_for_mark(matched, rest[0]),
                (None, State::Blank { is_returned }, _) => {
                    scanned.stops += 1;
                    self.blank(is_returned, rest[0], free, &mut scanned);
                }
                (None, State::Comment { is_before_header }, _) => {
                    scanned.stops += 1;
                    self.comment(is_before_header, rest, free, &mut scanned);
                }
                (None, _, None) => line_feed(rest, free, &mut scanned),
                (None, State::Plain, Some(quotes)) => self.plain(rest, free, quotes, &mut scanned),
                (None, State::Quoted, Some(Quotes { quote, .. })) => {
                    scanned.stops += 1;
                    match memchr::memchr(quote, rest) {
                        Some(at) => {
                            scanned.length += at + 1;
                            self.state = State::Closed;
                        }
                        None => scanned.length += rest.len(),
                    }
                    self.before = text[scanned.length - 1];
                }
                (None, State::Closed, Some(Quotes { quote, .. })) => {
                    // What else follows is a delimiter, a line end, or wrong.
                    self.state = if rest[0] == quote { State::Quoted } else { State::Plain };
                    scanned.length += usize::from(rest[0] == quote);
                }
            }
        }
        scanned
    }

    /// Whether whole blocks of rows can be looked at, where a block of the text cannot end.
    fn may_take_blocks(&self, free: usize) -> bool {
        let is_in_rows =
            self.mark.is_none() && matches!(self.state, State::Plain | State::Quoted | State::Closed);
        is_in_rows && self.blocks.is_some() && free >= BLOCK_BYTES
    }

    /// Looks at whole blocks, up to one with a quote that is not where it belongs. Returns how many bytes that were, and how many are to be
    /// looked at one by one now.
    fn take_blocks(&mut self, text: &[u8]) -> Option<(usize, usize)> {
        let (blocks, Quotes { delimiter, .. }) = (self.blocks.as_mut()?, self.rule.quotes?);
        let mut before = Before {
            is_quoted: self.state == State::Quoted,
            is_closed: self.state == State::Closed,
            is_returned: false,
            is_start: self.before == delimiter || self.before == b'\n',
        };
        let mut taken = 0;
        loop {
            let (found, is_stopped) = blocks.next(&text[taken..], &mut before);
            taken += found.len() * BLOCK_BYTES;
            if is_stopped || found.is_empty() {
                break;
            }
        }
        if let Some(last) = taken.checked_sub(1) {
            self.before = text[last];
            // After a carriage return that follows a quote, anything is taken, as everywhere here.
            self.state = match before {
                Before { is_quoted: true, .. } => State::Quoted,
                Before { is_closed: true, .. } => State::Closed,
                _ => State::Plain,
            };
        }
        Some((taken, blocks.left_out_bytes()))
    }

    /// Looks at a byte at the text's start, after so many of a byte order mark. Returns the bytes that are done with.
    fn look_for_mark(&mut self, matched: usize, byte: u8) -> usize {
        if BYTE_ORDER_MARK.get(matched) == Some(&byte) {
            self.mark = Some(matched + 1).filter(|matched| *matched < BYTE_ORDER_MARK.len());
            return 1;
        }
        self.mark = None;
        if let Some(last) = matched.checked_sub(1).and_then(|last| BYTE_ORDER_MARK.get(last)) {
            self.before = *last;
            self.begin_rows();
        }
        0
    }

    /// Looks at a byte before the header.
    fn blank(&mut self, is_returned: bool, byte: u8, free: usize, scanned: &mut Scanned) {
        match (is_returned, byte) {
            (false, byte) if self.rule.comment == Some(byte) => {
                self.state = State::Comment { is_before_header: true };
                return;
            }
            // What is empty is the header.
            _ if self.rule.has_empty_rows => return self.begin_rows(),
            (_, b'\n') => {
                self.state = State::Blank { is_returned: false };
                scanned.is_end = free == 0;
            }
            (false, b'\r') => self.state = State::Blank { is_returned: true },
            _ => {
                self.before = if is_returned { b'\r' } else { b'\n' };
                self.begin_rows();
                return;
            }
        }
        scanned.length += 1;
    }

    /// The header begins.
    fn begin_rows(&mut self) {
        self.state = State::Plain;
        self.place.is_after_header = true;
    }

    /// Looks at a comment.
    fn comment(&mut self, is_before_header: bool, text: &[u8], free: usize, scanned: &mut Scanned) {
        let Some(found) = memchr::memchr(b'\n', text) else {
            scanned.length += text.len();
            return;
        };
        scanned.length += found + 1;
        scanned.is_end = found >= free;
        self.before = b'\n';
        self.state = if is_before_header { State::Blank { is_returned: false } } else { State::Plain };
    }

    /// Looks at what is not in quotes, up to a comment, or a quote that begins a field.
    fn plain(
        &mut self,
        text: &[u8],
        free: usize,
        Quotes { delimiter, quote }: Quotes,
        scanned: &mut Scanned,
    ) {
        // Without comments, quotes are looked for twice.
        let comment = self.rule.comment.unwrap_or(quote);
        let mut at = 0;
        loop {
            let found = if at < free {
                let end = free.min(text.len());
                let part = &text[at..end];
                let found = match self.rule.comment {
                    None => memchr::memchr(quote, part),
                    Some(comment) => memchr::memchr2(quote, comment, part),
                };
                found.map_or(end, |found| at + found)
            } else {
                memchr::memchr3(quote, comment, b'\n', &text[at..]).map_or(text.len(), |found| at + found)
            };
            let before = found.checked_sub(1).map_or(self.before, |last| text[last]);
            match text.get(found) {
                Some(byte) if self.rule.comment == Some(*byte) => {
                    scanned.stops += 1;
                    at = found;
                    // Any other is text.
                    if before == b'\n' {
                        self.state = State::Comment { is_before_header: false };
                        break;
                    }
                    at += 1;
                    if scanned.stops >= SPLIT_SLICE_STOPS {
                        break;
                    }
                }
                Some(byte) if *byte == quote => {
                    scanned.stops += 1;
                    at = found + 1;
                    // Any other is text.
                    let begins = before == delimiter || before == b'\n';
                    if begins {
                        self.state = State::Quoted;
                    }
                    if begins || scanned.stops >= SPLIT_SLICE_STOPS {
                        break;
                    }
                }
                Some(_) if found >= free && text[found] == b'\n' => {
                    at = found + 1;
                    scanned.is_end = true;
                    break;
                }
                // Up to here only quotes were looked for.
                Some(_) => at = found,
                None => {
                    at = found;
                    break;
                }
            }
        }
        if let Some(last) = at.checked_sub(1) {
            self.before = text[last];
        }
        scanned.length += at;
    }

    /// Adds what was looked at to the block.
    fn retire(&mut self) {
        if self.taken < self.at {
            self.block.pieces.push_back(self.fed.slice(self.taken..self.at));
        }
        self.taken = self.at;
        if self.at == self.fed.len() {
            // It may hold memory that is to be used again.
            (self.fed, self.at, self.taken) = (Bytes::new(), 0, 0);
        }
    }

    /// Ends the block.
    fn cut(&mut self) -> Block {
        self.retire();
        self.bytes = 0;
        mem::replace(&mut self.block, Block { pieces: VecDeque::new(), start: self.place })
    }
}

/// What [`TextSplitter::scan`] found.
#[derive(Debug, Default)]
struct Scanned {
    length: usize,
    stops: usize,
    /// The block ends here.
    is_end: bool,
}

/// Looks for the first line feed after `free` bytes.
fn line_feed(text: &[u8], free: usize, scanned: &mut Scanned) {
    let free = free.min(text.len());
    match memchr::memchr(b'\n', &text[free..]) {
        Some(found) => {
            scanned.length += free + found + 1;
            scanned.is_end = true;
        }
        None => scanned.length += text.len(),
    }
}

#[cfg(test)]
mod tests;
