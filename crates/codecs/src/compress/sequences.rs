//! Pages of sequences (literals and a match each) that are written in pieces of any size: what the compressors of
//! Snappy and LZ4 have in common.
//!
//! A kernel finds sequences, and writes the easy ones. The others (little room, or many literals) are written here,
//! part by part. The sequences depend only on the page. If the page arrives in pieces, a window of it is kept: what
//! matches refer to, and as many bytes ahead as a match may have.

use marquetry_base::{Budget, Error, Price, Progress, Result, Status};
use marquetry_kernels::lz::pack::{Cursor, DISTANCE_MAX, Input, LENGTH_MAX, MARGIN, Packed, Sequence, Table};

use super::page::{Pack, Plain};

/// A format of sequences.
pub(crate) trait Format: Send + Default {
    /// The prices of the page's bytes and of matches.
    const PRICE: Price;

    /// How many bytes at the page's end must be literals.
    const LITERALS_AT_END: usize;

    /// Literals are written on their own once there are more; then there are not many more than [`HISTORY_BYTES`].
    /// `None` if literals belong to the match after them.
    const LITERALS_MAX: Option<usize>;

    /// The maximum compressed size of a page of `uncompressed` bytes.
    fn bound(uncompressed: usize) -> usize;

    /// Begins a page. Returns the bytes that it starts with.
    fn start(&mut self, uncompressed: usize) -> Part;

    /// Finds sequences and writes the easy ones.
    fn pack(input: Input<'_>, cursor: &mut Cursor, table: &mut Table, output: &mut [u8]) -> Packed;

    /// Begins to write a sequence. Without a match it is the page's last, or one of
    /// [`LITERALS_MAX`](Format::LITERALS_MAX).
    fn begin(&mut self, sequence: Sequence);

    /// The next part of it to write.
    fn part(&mut self) -> Option<Part>;
}

/// A part of what is written with care.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    /// The first of these bytes, and how many.
    Bytes([u8; 8], usize),
    /// The next literals, and how many.
    Literals(usize),
}

/// The price of writing with care: bytes of literals, which are copied, and parts.
pub(crate) const CARE_PRICE: Price = Price { kib: 100, kilovalue: 8 << 10 };

/// Bytes of a slice.
const SLICE_BYTES_MAX: usize = 64 << 10;
const SLICE_BYTES_MIN: usize = 4 << 10;

/// What is kept of a page before the current position: what matches refer to, and literals not yet written.
pub(crate) const HISTORY_BYTES: usize = DISTANCE_MAX + 1 + SLICE_BYTES_MIN;

/// Bytes that must be available after it.
const AHEAD_BYTES: usize = LENGTH_MAX + MARGIN;

/// The window's size: the history, the look-ahead, and about 100 KiB to search before it moves on.
const WINDOW_BYTES: usize = 192 << 10;

const _: () = assert!(WINDOW_BYTES >= HISTORY_BYTES + AHEAD_BYTES + SLICE_BYTES_MAX);

/// The compressor of a [`Format`].
pub(crate) struct Sequences<F> {
    table: Box<[Table; 1]>,
    cursor: Cursor,
    window: Window,
    writer: Writer<F>,
    /// The last sequence was begun.
    ending: bool,
}

/// What is being written with care.
struct Writer<F> {
    format: F,
    part: Option<Part>,
    /// How much of the part was written.
    written: usize,
    /// Where its literals come from.
    literals_from: usize,
}

impl<F: Format> Sequences<F> {
    pub(crate) fn new() -> Result<Sequences<F>> {
        let bytes = size_of::<Table>();
        let mut table = Vec::new();
        table.try_reserve_exact(1).map_err(|_| Error::out_of_memory(bytes))?;
        table.push(Table::new());
        let Ok(table) = table.into_boxed_slice().try_into() else {
            return Err(Error::internal("one table is more than one"));
        };
        Ok(Sequences {
            table,
            cursor: Cursor::new(),
            window: Window::default(),
            writer: Writer { format: F::default(), part: None, written: 0, literals_from: 0 },
            ending: false,
        })
    }
}

impl<F: Format> Pack for Sequences<F> {
    fn start(&mut self, uncompressed: usize) -> Result<()> {
        self.table[0].start(uncompressed);
        self.cursor = Cursor::new();
        self.window.clear();
        self.writer.start(uncompressed);
        self.ending = false;
        Ok(())
    }

    fn bound(&self, uncompressed: usize) -> usize {
        F::bound(uncompressed)
    }

    fn held_bytes(&self) -> usize {
        size_of::<Table>() + self.window.held_bytes()
    }

    fn pack(
        &mut self,
        page: &mut Plain,
        input: &[u8],
        output: &mut [u8],
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        let length = page.length();
        // At worst, each byte is a match.
        let worst = Price::per_kib(F::PRICE.kib.saturating_add(F::PRICE.kilovalue / 4));
        let (mut consumed, mut produced) = (0, 0);
        let status = loop {
            let paid = budget.bytes_left(worst);
            if budget.spent() > 0 && (paid < 2 * SLICE_BYTES_MIN || budget.is_spent()) {
                break Status::Yield;
            }
            let slice_bytes = paid.saturating_sub(SLICE_BYTES_MIN).clamp(SLICE_BYTES_MIN, SLICE_BYTES_MAX);
            let (bytes, base) = if page.is_whole() { (input, 0) } else { self.window.bytes() };
            let room = &mut output[produced..];
            if self.writer.is_busy() {
                let slice = room.len().min(slice_bytes);
                let (made, parts) = self.writer.write(bytes, base, &self.window, &mut room[..slice])?;
                budget.charge(CARE_PRICE, made, parts);
                produced += made;
                if self.writer.is_busy() && produced == output.len() {
                    break Status::NeedRoom;
                }
                continue;
            }
            if self.ending {
                consumed += if page.is_whole() { input.len() } else { 0 };
                break Status::End;
            }
            let seen = base + bytes.len();
            let is_end = seen == length;
            let until =
                if is_end { (length + 1).saturating_sub(MARGIN) } else { seen.saturating_sub(AHEAD_BYTES) };
            if self.cursor.at < until {
                let before = self.cursor.at;
                let found = F::pack(
                    Input {
                        bytes,
                        base,
                        until: until.min(before + slice_bytes),
                        match_end: seen.min(length.saturating_sub(F::LITERALS_AT_END)),
                    },
                    &mut self.cursor,
                    &mut self.table[0],
                    room,
                );
                produced += found.produced;
                budget.charge(F::PRICE, self.cursor.at - before, found.matches);
                if let Some(sequence) = found.left {
                    let end = self.cursor.at;
                    self.writer.begin(sequence, end)?;
                } else if self.cursor.at == before {
                    return Err(Error::internal("a compressor does not come on"));
                }
                if let Some(most) = F::LITERALS_MAX
                    && !self.writer.is_busy()
                    // Skipped bytes may end after the page.
                    && self.cursor.at.min(length) - self.cursor.anchor >= most
                {
                    self.cursor.anchor += most;
                    let end = self.cursor.anchor;
                    self.writer.begin(Sequence { literals: most, distance: 0, length: 0 }, end)?;
                }
            } else if is_end {
                self.ending = true;
                let literals = length - self.cursor.anchor;
                self.writer.begin(Sequence { literals, distance: 0, length: 0 }, length)?;
            } else {
                let left = &input[consumed..];
                let (taken, moved) =
                    self.window.fill(&left[..left.len().min(slice_bytes)], length, self.cursor)?;
                budget.charge(CARE_PRICE, taken + moved, 1);
                consumed += taken;
                page.advance(taken);
                if taken == 0 {
                    break Status::NeedInput;
                }
            }
        };
        Ok(Progress { consumed, produced, status })
    }
}

impl<F: Format> Writer<F> {
    fn start(&mut self, uncompressed: usize) {
        self.part = Some(self.format.start(uncompressed));
        (self.written, self.literals_from) = (0, 0);
    }

    /// True while a sequence is being written.
    fn is_busy(&self) -> bool {
        self.part.is_some()
    }

    /// Begins to write a sequence that ends at `end`.
    fn begin(&mut self, sequence: Sequence, end: usize) -> Result<()> {
        let Some(from) = end.checked_sub(sequence.length + sequence.literals) else {
            return Err(Error::internal("a sequence that begins before its page"));
        };
        self.literals_from = from;
        self.format.begin(sequence);
        self.next_part();
        Ok(())
    }

    fn next_part(&mut self) {
        self.part = self.format.part();
        self.written = 0;
    }

    /// Writes parts while there is room. Returns the number of bytes and of parts.
    fn write(
        &mut self,
        bytes: &[u8],
        base: usize,
        window: &Window,
        room: &mut [u8],
    ) -> Result<(usize, usize)> {
        let (mut made, mut parts) = (0, 0);
        while let Some(part) = self.part {
            let room = &mut room[made..];
            let (take, length) = match part {
                Part::Bytes(bytes, length) => {
                    let take = (length - self.written).min(room.len());
                    room[..take].copy_from_slice(&bytes[self.written..self.written + take]);
                    (take, length)
                }
                Part::Literals(length) => {
                    let left = (length - self.written).min(room.len());
                    let from = match self.literals_from.checked_sub(base) {
                        Some(at) => bytes.get(at..),
                        None => window.gone(self.literals_from),
                    };
                    let Some(from) = from.filter(|from| !from.is_empty() || left == 0) else {
                        return Err(Error::internal("literals that are not kept"));
                    };
                    let take = left.min(from.len());
                    room[..take].copy_from_slice(&from[..take]);
                    self.literals_from += take;
                    (take, length)
                }
            };
            made += take;
            self.written += take;
            parts += 1;
            if self.written == length {
                self.next_part();
            } else if take == room.len() {
                break;
            }
        }
        Ok((made, parts))
    }
}

/// The part of a page that is kept if it arrives in pieces.
#[derive(Debug, Default)]
struct Window {
    bytes: Vec<u8>,
    /// The place in the page of the first of them.
    base: usize,
    /// Literals that were moved out of it, up to `base`, in pieces of at most [`WINDOW_BYTES`]; and the position of the
    /// first.
    gone: std::collections::VecDeque<(usize, Vec<u8>)>,
}

impl Window {
    fn clear(&mut self) {
        self.bytes.clear();
        self.base = 0;
        self.gone.clear();
    }

    fn bytes(&self) -> (&[u8], usize) {
        (&self.bytes, self.base)
    }

    /// The literals from `place` on that were moved out, as far as they are contiguous.
    fn gone(&self, place: usize) -> Option<&[u8]> {
        let index = self.gone.partition_point(|(start, _)| *start <= place).checked_sub(1)?;
        let (start, bytes) = self.gone.get(index)?;
        bytes.get(place - start..)
    }

    /// Takes bytes of a page of `length`, and makes room for them if necessary. Returns how many it took, and how many
    /// it moved.
    fn fill(&mut self, input: &[u8], length: usize, cursor: Cursor) -> Result<(usize, usize)> {
        if input.is_empty() {
            return Ok((0, 0));
        }
        let most = length.min(WINDOW_BYTES);
        if self.bytes.capacity() < most {
            let more = most - self.bytes.len();
            self.bytes.try_reserve_exact(more).map_err(|_| Error::out_of_memory(most))?;
        }
        let mut moved = 0;
        if self.bytes.len() == most {
            self.move_on(cursor)?;
            moved = most;
        }
        let take = input.len().min(most - self.bytes.len());
        self.bytes.extend_from_slice(&input[..take]);
        Ok((take, moved))
    }

    /// Releases what is no longer needed, except literals that are still to be written.
    fn move_on(&mut self, cursor: Cursor) -> Result<()> {
        let keep_from = cursor.at.saturating_sub(HISTORY_BYTES).min(self.base + self.bytes.len());
        let leaves = keep_from.saturating_sub(self.base);
        while self.gone.front().is_some_and(|(start, bytes)| start + bytes.len() <= cursor.anchor) {
            self.gone.pop_front();
        }
        let literals_from = cursor.anchor.max(self.base);
        if literals_from < keep_from {
            let literals = &self.bytes[literals_from - self.base..leaves];
            let mut kept = Vec::new();
            kept.try_reserve_exact(literals.len()).map_err(|_| Error::out_of_memory(literals.len()))?;
            kept.extend_from_slice(literals);
            self.gone.push_back((literals_from, kept));
        }
        self.bytes.drain(..leaves);
        self.base = keep_from.max(self.base);
        Ok(())
    }

    fn held_bytes(&self) -> usize {
        self.bytes.capacity() + self.gone.iter().map(|(_, bytes)| bytes.capacity()).sum::<usize>()
    }
}
