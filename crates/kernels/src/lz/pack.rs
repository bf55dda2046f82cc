//! Finding matches: what the encoders of Snappy and LZ4 have in common.
//!
//! A run finds sequences (literals, then a match) greedily, through one table of the last places of hashed bytes, and writes
//! them for as long as that is easy. A sequence that is not, for its literals are many or the room is little, it gives to its
//! caller, who writes it with care, in pieces. So a run keeps no state but the [`Cursor`], and an encoder built on it stops
//! anywhere; what it writes does not depend on where it stopped.

use super::{SLACK, WIDE};

/// The largest distance of a match.
pub const DISTANCE_MAX: usize = u16::MAX as usize;

/// The longest match; one that goes on is found again. So work and look-ahead are bounded.
pub const LENGTH_MAX: usize = 16 << 10;

/// Nothing is looked for in so many bytes at the end of the input, less one.
pub const MARGIN: usize = WIDE;

/// Bytes that are compared at a time. The first four of them are the shortest match.
const WORD: usize = 8;

/// The most literals of a sequence that is easy.
const LITERALS_MAX: usize = 4 << 10;

const TABLE_BITS_MAX: u32 = 14;
const TABLE_BITS_MIN: u32 = 8;

/// After 2^5 places without a match every second place is looked at, after 2^5 of those every third, and so on: what does not
/// compress is passed over quickly.
const MISSES_SHIFT: u32 = 5;
const MISSES_START: usize = 1 << MISSES_SHIFT;

/// Where bytes like those at hand were last seen.
///
/// A place is kept modulo 2^16, and so are distances, none of which may be longer: every number leads to some place within
/// reach, and what stands there is compared. So nothing has to be forgotten as the window moves on.
#[derive(Debug)]
pub struct Table<'memory> {
    places: &'memory mut Places,
    mask: usize,
}

/// The memory of a [`Table`].
pub type Places = [u16; 1 << TABLE_BITS_MAX];

impl Table<'_> {
    /// The table of a page of `length` bytes. A small page is not worth a large table.
    #[must_use]
    pub fn new(places: &mut Places, length: usize) -> Table<'_> {
        let bits = length.max(1).ilog2().clamp(TABLE_BITS_MIN, TABLE_BITS_MAX);
        Table { places, mask: (1 << bits) - 1 }
    }

    /// Forgets everything, before a page begins.
    pub fn clear(&mut self) {
        self.places[..=self.mask].fill(0);
    }

    /// What is known of the bytes that begin `word`.
    #[inline(always)]
    fn place(&mut self, word: u64) -> &mut u16 {
        // The bytes that count come to the top; a prime spreads them.
        let hash = (word << (64 - 8 * HASHED_BYTES)).wrapping_mul(0x9e37_79b1_85eb_ca87);
        &mut self.places[(hash >> (64 - TABLE_BITS_MAX)) as usize & self.mask]
    }
}

/// How many bytes are hashed.
const HASHED_BYTES: u32 = 5;

/// How far an encoder came in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Where it looks next.
    pub at: usize,
    /// Where the literals start that are not yet part of a sequence.
    pub anchor: usize,
    /// Places looked at in vain since then, and [`MISSES_START`].
    misses: usize,
}

impl Cursor {
    /// At the start of a page.
    #[must_use]
    pub const fn new() -> Cursor {
        Cursor { at: 0, anchor: 0, misses: MISSES_START }
    }
}

impl Default for Cursor {
    fn default() -> Self {
        Cursor::new()
    }
}

/// Literals, then a match that refers to what was before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// How many literals.
    pub literals: usize,
    /// How far back the match is.
    pub distance: usize,
    /// How long it is.
    pub length: usize,
}

/// What a run works on. All places are those in the page.
#[derive(Debug)]
pub struct Input<'page> {
    /// A part of the page: what is to be looked at, and before it what matches may refer to, all of the page or
    /// [`DISTANCE_MAX`] bytes.
    pub bytes: &'page [u8],
    /// The place of the first of them.
    pub base: usize,
    /// Where the run stops, give or take a match.
    pub until: usize,
    /// Where matches end at the latest.
    pub match_end: usize,
}

/// How far a run came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Bytes written to the output. Some behind them were written, too, and mean nothing.
    pub produced: usize,
    /// Matches found.
    pub matches: usize,
    /// A sequence that was not written. The cursor is behind it.
    pub left: Option<Sequence>,
}

/// How sequences are written.
pub(super) trait Write {
    /// The most literals, at most 16, and the longest match of a short sequence.
    const SHORT: (usize, usize);

    /// The room that a short one may need, with what may be written behind it.
    const SHORT_ROOM: usize;

    /// Writes a short sequence: how many bytes it took.
    ///
    /// # Safety
    ///
    /// There is room for [`SHORT_ROOM`](Write::SHORT_ROOM) bytes at `to`, and 16 bytes can be read at `from`; they do not
    /// overlap.
    unsafe fn write_short(to: *mut u8, from: *const u8, sequence: Sequence) -> usize;

    /// The most bytes that a sequence takes, its literals included, with what may be written behind it.
    fn room(sequence: Sequence) -> usize;

    /// Writes any sequence: how many bytes it took.
    ///
    /// # Safety
    ///
    /// There is room for [`room`](Write::room) bytes at `to`, and `literals + SLACK` bytes can be read at `from`; they do not
    /// overlap.
    unsafe fn write(to: *mut u8, from: *const u8, sequence: Sequence) -> usize;
}

/// Finds and writes sequences.
///
/// Tried, and not kept: to follow matches backwards, which makes pages 0.3 % smaller and takes 4 % longer.
#[inline(always)]
pub(super) fn run<W: Write>(
    input: Input<'_>,
    cursor: &mut Cursor,
    table: &mut Table<'_>,
    output: &mut [u8],
) -> Packed {
    let Input { bytes, base, until, match_end } = input;
    let match_end = match_end.saturating_sub(base).min(bytes.len());
    let (Some(last), Some(last_match), Some(mut at)) =
        (bytes.len().checked_sub(MARGIN), match_end.checked_sub(WORD), cursor.at.checked_sub(base))
    else {
        return Packed::default();
    };
    let last = last.min(last_match).min(until.saturating_sub(base + 1));
    let short_last = output.len().checked_sub(W::SHORT_ROOM);
    // Only the low bits count.
    let bias = base as u16;
    // Literals may have begun before the first of the bytes that are there: the difference is right, whatever it wraps around.
    let mut anchor = cursor.anchor.wrapping_sub(base);
    let mut misses = cursor.misses;
    let (mut produced, mut matches, mut left) = (0, 0, None);
    let (from, to) = (bytes.as_ptr(), output.as_mut_ptr());
    while at <= last {
        // SAFETY: `at + MARGIN <= bytes.len()`.
        let word = unsafe { load(from.add(at)) };
        let place = (at as u16).wrapping_add(bias);
        let distance = usize::from(place.wrapping_sub(core::mem::replace(table.place(word), place)));
        // One comparison for `distance` 0, too.
        // SAFETY: in the second operand `1 <= distance <= at`.
        if distance.wrapping_sub(1) >= at || unsafe { load(from.add(at - distance)) } as u32 != word as u32 {
            at += misses >> MISSES_SHIFT;
            misses += 1;
            continue;
        }
        let end = end_of_match(bytes, at, distance, match_end.min(at + LENGTH_MAX));
        let sequence = Sequence { literals: at.wrapping_sub(anchor), distance, length: end - at };
        let is_short = sequence.literals <= W::SHORT.0
            && sequence.length <= W::SHORT.1
            && short_last.is_some_and(|last| produced <= last);
        matches += 1;
        (at, anchor, misses) = (end, end, MISSES_START);
        if at <= bytes.len() - MARGIN {
            let before = at - 2;
            // SAFETY: a match is of four bytes or more, and `before + MARGIN <= bytes.len()`.
            *table.place(unsafe { load(from.add(before)) }) = (before as u16).wrapping_add(bias);
        }
        let start = (end - sequence.length).wrapping_sub(sequence.literals);
        if is_short {
            // SAFETY: there is as much room. The literals are before a place where 16 bytes can be read; that they are in the
            // input
            produced += unsafe { W::write_short(to.add(produced), from.add(start), sequence) };
        } else if let Some(bytes) = write_long::<W>(bytes, start, &mut output[produced..], sequence) {
            produced += bytes;
        } else {
            left = Some(sequence);
            break;
        }
    }
    *cursor = Cursor { at: base + at, anchor: base.wrapping_add(anchor), misses };
    Packed { produced, matches, left }
}

/// Writes a sequence that is not short, if it is easy.
#[inline(never)]
fn write_long<W: Write>(bytes: &[u8], start: usize, output: &mut [u8], sequence: Sequence) -> Option<usize> {
    let is_easy = sequence.literals <= LITERALS_MAX
        && bytes.len().checked_sub(sequence.literals + SLACK).is_some_and(|last| start <= last)
        && output.len() >= W::room(sequence);
    // SAFETY: what is checked.
    is_easy.then(|| unsafe { W::write(output.as_mut_ptr(), bytes.as_ptr().add(start), sequence) })
}

/// Where a match of four bytes or more ends, `end` at the latest.
#[inline(always)]
fn end_of_match(bytes: &[u8], at: usize, distance: usize, end: usize) -> usize {
    let from = bytes.as_ptr();
    // Most matches end within the next word.
    let mut next = at + 4;
    while next + WORD <= end {
        // SAFETY: `next + WORD <= end <= bytes.len()`, and the other is before it.
        let differ = unsafe { load(from.add(next)) ^ load(from.add(next - distance)) };
        if differ != 0 {
            return next + (differ.trailing_zeros() >> 3) as usize;
        }
        next += WORD;
    }
    while next < end && bytes[next] == bytes[next - distance] {
        next += 1;
    }
    next
}

/// # Safety
///
/// 8 bytes can be read at `from`.
#[inline(always)]
unsafe fn load(from: *const u8) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { from.cast::<u64>().read_unaligned() }
}
