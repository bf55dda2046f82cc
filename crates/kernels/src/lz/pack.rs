//! Finding matches: what the encoders of Snappy and LZ4 have in common.
//!
//! A run finds sequences (literals, then a match) greedily, through one table of the last positions of hashed bytes,
//! and writes them for as long as that is easy. It is not if the literals are many or the room is small: such a
//! sequence is returned to the caller, which writes it with care, in pieces. So a run keeps no state except the
//! [`Cursor`], and an encoder built on it can stop anywhere; what it writes does not depend on where it stopped.
//!
//! Speed: a look-up for each position bounds it, and mispredicted branches. `docs/bench/kernels.md` has its
//! distance from a copy of as many bytes (`make bench-kernels`).

use core::hint::black_box;

use super::{SLACK, WIDE};

/// The largest distance of a match.
pub const DISTANCE_MAX: usize = u16::MAX as usize;

/// The longest match; the rest of a longer one is found as the next match. So work and look-ahead are bounded.
pub const LENGTH_MAX: usize = 16 << 10;

/// No match begins in this many bytes at the end of the input, minus one.
pub const MARGIN: usize = WIDE;

/// Bytes that are compared at a time. The first four of them are the shortest match.
const WORD: usize = 8;

/// Positions that are searched after a match before any are skipped: fewer than [`MISSES_START`].
const NEAR: usize = 16;

/// Maximum literals of an easy sequence.
const LITERALS_MAX: usize = 4 << 10;

/// The entries of a table, as a power of two, and those for a small page. (Half as many make pages up to a tenth
/// larger. As many of 32 bits do not fit into the first-level cache, and take up to a quarter longer.)
const BITS: u32 = 14;
const SMALL_BITS: u32 = 12;
const SMALL_PAGE_BYTES: usize = 8 << 10;

/// After 2^5 positions without a match every second position is searched, after half as many of those every third, and
/// so on: incompressible data are skipped quickly.
const MISSES_SHIFT: u32 = 5;
const MISSES_START: usize = 1 << MISSES_SHIFT;
/// But at least every 31st position, so that compressible data are soon noticed. The number is odd: for values of four
/// or eight bytes it reaches all positions in turn, whereas a power of two would skip complete pages that compress.
const MISSES_MAX: usize = 31 << MISSES_SHIFT;

/// Where in the page bytes like the current ones last occurred.
///
/// Nothing is removed while a page continues: entries that are too far back, or were never set, are recognised.
#[derive(Debug)]
pub struct Table {
    /// The lower bits of positions. For a small page only the first 2^[`SMALL_BITS`] are used, so that clearing takes
    /// less time than searching.
    places: Places,
    is_small: bool,
    /// No position in use is after this one; unknown if a page was not complete.
    reached: usize,
}

type Places = [u16; 1 << BITS];

impl Table {
    /// A table that must be [started](Table::start).
    #[must_use]
    pub const fn new() -> Table {
        Table { places: [0; 1 << BITS], is_small: false, reached: 0 }
    }

    /// Clears the table, before a page of `length` bytes begins.
    pub fn start(&mut self, length: usize) {
        self.is_small = length <= SMALL_PAGE_BYTES;
        let bits = if self.is_small { SMALL_BITS } else { BITS };
        self.places[..1 << bits].fill(0);
        self.reached = 0;
    }
}

impl Default for Table {
    fn default() -> Self {
        Table::new()
    }
}

/// A prime that spreads bytes.
const PRIME: u64 = 0x9e37_79b1_85eb_ca87;

/// The entry, out of 2^`BITS`, for the bytes that `word` begins with.
#[inline(always)]
fn hash<W: Write, const BITS: u32>(word: u64) -> usize {
    if W::HASHED_BYTES == 4 {
        return ((word as u32).wrapping_mul(PRIME as u32) >> (32 - BITS)) as usize;
    }
    // Bytes that do not count are shifted out along with the prime.
    let prime = const { PRIME << (64 - 8 * W::HASHED_BYTES) };
    (word.wrapping_mul(prime) >> (64 - BITS)) as usize
}

/// How far an encoder came in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The next position.
    pub at: usize,
    /// Where the literals begin that are not yet part of a sequence.
    pub anchor: usize,
    /// Positions without a match since then, plus [`MISSES_START`].
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

/// Literals, then a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// How many literals.
    pub literals: usize,
    /// How far back the match is.
    pub distance: usize,
    /// How long it is.
    pub length: usize,
}

/// The input of a run. All positions are in the page.
#[derive(Debug)]
pub struct Input<'page> {
    /// Part of the page: the bytes to search, preceded by what matches may refer to, which is everything before or
    /// [`DISTANCE_MAX`] bytes.
    pub bytes: &'page [u8],
    /// The place of the first of them.
    pub base: usize,
    /// Where the run stops, give or take a match.
    pub until: usize,
    /// Where matches must end.
    pub match_end: usize,
}

/// How far a run came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Bytes written to the output. Some bytes after them may have been overwritten with garbage.
    pub produced: usize,
    /// Matches found.
    pub matches: usize,
    /// A sequence that was not written. The cursor is after it.
    pub left: Option<Sequence>,
}

/// How sequences are written.
pub(super) trait Write {
    /// How many bytes are hashed, four to eight: not all shorter matches are found.
    const HASHED_BYTES: u32;

    /// Maximum literals, at most 16, and the longest match of a short sequence.
    const SHORT: (usize, usize);

    /// The room that a short sequence may need, including what may be written after it.
    const SHORT_ROOM: usize;

    /// Writes a short sequence and returns its bytes.
    ///
    /// # Safety
    ///
    /// There is room for [`SHORT_ROOM`](Write::SHORT_ROOM) bytes at `to`, and 16 bytes can be read at `from`; they do not
    /// overlap.
    unsafe fn write_short(to: *mut u8, from: *const u8, sequence: Sequence) -> usize;

    /// Maximum bytes of a sequence, literals included, and of what may be written after it.
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
/// Tried and rejected: extending matches backwards makes pages 0.3 % smaller and takes 4 % longer; comparing two words
/// at once, so that no branch distinguishes matches of one from those of two, takes up to 5 % longer; looking up four
/// positions before testing whether any matches takes a third longer; leaving out short matches that are far away takes
/// a tenth longer; remembering the position before a match's end instead of its second one makes pages up to 1 %
/// larger. Six hashed bytes are faster than five, but make pages of text 4 % larger.
#[inline(always)]
pub(super) fn run<W: Write>(
    input: Input<'_>,
    cursor: &mut Cursor,
    table: &mut Table,
    output: &mut [u8],
) -> Packed {
    let is_whole = input.base == 0;
    // If a page is complete and continues, all entries are before the search; otherwise they may be anything.
    let is_known = is_whole && cursor.at >= table.reached;
    // From here on, there are enough bytes before a position for any distance that an entry can express.
    let far = input.base.saturating_add(DISTANCE_MAX);
    // Remains `usize::MAX` unless this function reaches its end.
    let reached = core::mem::replace(&mut table.reached, usize::MAX);
    let (input, places) = (&input, &mut table.places);
    let mut packed = Packed::default();
    if cursor.at < far {
        let until = input.until.min(far);
        packed = match (table.is_small, is_known) {
            (true, true) => search::<W, SMALL_BITS, false, true>(input, until, cursor, places, output),
            (true, false) => search::<W, SMALL_BITS, false, false>(input, until, cursor, places, output),
            (false, true) => search::<W, BITS, false, true>(input, until, cursor, places, output),
            (false, false) => search::<W, BITS, false, false>(input, until, cursor, places, output),
        };
    }
    if packed.left.is_none() && cursor.at >= far {
        let (until, output) = (input.until, &mut output[packed.produced..]);
        let rest = match is_whole {
            true => search::<W, BITS, true, true>(input, until, cursor, places, output),
            false => search::<W, BITS, true, false>(input, until, cursor, places, output),
        };
        packed.produced += rest.produced;
        packed.matches += rest.matches;
        packed.left = rest.left;
    }
    if is_whole {
        table.reached = reached.max(cursor.at);
    }
    packed
}

/// `FAR`: all searched positions are preceded by at least [`DISTANCE_MAX`] bytes. `WHOLE`: the bytes start with the
/// page; and unless `FAR`, no entry is after the searched positions, which are less than [`DISTANCE_MAX`] bytes from
/// the start.
fn search<W: Write, const BITS: u32, const FAR: bool, const WHOLE: bool>(
    input: &Input<'_>,
    until: usize,
    cursor: &mut Cursor,
    places: &mut Places,
    output: &mut [u8],
) -> Packed {
    const { assert!(BITS <= self::BITS) }
    let &Input { bytes, base, match_end, .. } = input;
    // A constant takes no register.
    let base = if WHOLE { 0 } else { base };
    let match_end = match_end.saturating_sub(base).min(bytes.len());
    let (Some(last), Some(last_match), Some(mut at)) =
        (bytes.len().checked_sub(MARGIN), match_end.checked_sub(WORD), cursor.at.checked_sub(base))
    else {
        return Packed::default();
    };
    if FAR && at < DISTANCE_MAX || !FAR && WHOLE && until > DISTANCE_MAX {
        return Packed::default();
    }
    // Up to where words can be read, and where a match may begin now.
    let readable = last;
    let last = last.min(last_match).min(until.saturating_sub(base + 1));
    // Literals may have begun before the first available byte: the difference is right, even if it wraps around.
    let mut anchor = cursor.anchor.wrapping_sub(base);
    let mut misses = cursor.misses;
    let (mut matches, mut left) = (0, None);
    let from = bytes.as_ptr();
    // Where the next byte is written; up to where a short sequence may be written; and where the room ends.
    let too_near = W::SHORT_ROOM.min(output.len() + 1) - 1;
    let room = output.as_mut_ptr_range();
    let (mut to, short_end) = (room.start, room.end.wrapping_sub(too_near));
    // SAFETY: all positions that it is called with are at most `readable`, and `readable + MARGIN <= bytes.len()`.
    let word_at = |at: usize| unsafe { load(from.add(at)) };
    // Looks up the bytes at a position, which `word` begins with. Returns their distance, and what differs.
    let look = |places: &mut Places, at: usize, word: u64| {
        let place = core::mem::replace(&mut places[hash::<W, BITS>(word)], base.wrapping_add(at) as u16);
        if WHOLE && !FAR {
            let place = usize::from(place);
            // SAFETY: `place <= at`: that was true when the run began, and since then only positions before this one
            // were recorded, which fit a `u16`.
            return (at - place, word as u32 ^ unsafe { load_half(from.add(place)) });
        }
        // Their distance, unless they are too far back: then differing bytes show it.
        let distance = usize::from((base.wrapping_add(at) as u16).wrapping_sub(place));
        let differ = if FAR || distance <= at {
            // SAFETY: `distance <= DISTANCE_MAX <= at` if it is not checked. So this is `at` or before it, and `at <=
            // readable`.
            word as u32 ^ unsafe { load_half(from.add(at - distance)) }
        } else {
            1
        };
        (distance, differ)
    };
    'sequences: while at <= last {
        let mut found = None;
        // Most matches are near: the first positions are searched without counting.
        if misses == MISSES_START && last - at >= NEAR {
            'near: for four in 0..NEAR / 4 {
                let words = word_at(at + 4 * four);
                for one in 0..4 {
                    let place = at + 4 * four + one;
                    let (distance, differ) = look(places, place, words >> (8 * one));
                    if differ == 0 {
                        found = Some((place, distance));
                        break 'near;
                    }
                }
            }
            if found.is_none() {
                at += NEAR;
                misses += NEAR;
            }
        }
        let (place, distance) = match found {
            Some(found) => found,
            None => loop {
                if at > last {
                    break 'sequences;
                }
                let (distance, differ) = look(places, at, word_at(at));
                if differ == 0 {
                    break (at, distance);
                }
                at += misses >> MISSES_SHIFT;
                misses = MISSES_MAX.min(misses + (misses >> MISSES_SHIFT));
            },
        };
        if distance == 0 {
            // An entry that is too far back to express looks like the position itself.
            (at, misses) = (place + 1, misses + (place - at) + 1);
            continue;
        }
        at = place;
        let word = word_at(at);
        // SAFETY: `1 <= distance <= at`, and `at <= readable`.
        let differ = word ^ unsafe { load(from.add(at - distance)) };
        // One more position inside the match is recorded.
        places[hash::<W, BITS>(word >> 8)] = base.wrapping_add(at + 1) as u16;
        // Most matches end within the word, which is before their last possible end.
        let end = match differ {
            0 => end_of_match(bytes, at, distance, match_end.min(at + LENGTH_MAX)),
            _ => at + (differ.trailing_zeros() >> 3) as usize,
        };
        let sequence = Sequence { literals: at.wrapping_sub(anchor), distance, length: end - at };
        let start = at.wrapping_sub(sequence.literals);
        let end = foreseen(at, end);
        (at, anchor, misses) = (end, end, MISSES_START);
        matches += 1;
        let is_short = sequence.literals <= W::SHORT.0
            && sequence.length <= W::SHORT.1
            && (FAR || WHOLE || start <= readable)
            && to < short_end;
        if is_short {
            // SAFETY: there is enough room. The few literals start before `at`, and within the bytes: these are all of
            // the page, or the start was checked. So 16 bytes can be read there.
            to = unsafe { to.add(W::write_short(to, from.add(start), sequence)) };
        } else {
            // SAFETY: `to` is within the room, because what was written fit.
            match unsafe { write_long::<W>(bytes, start, to, room.end, sequence) } {
                Some(end) => to = end,
                None => {
                    left = Some(sequence);
                    break;
                }
            }
        }
    }
    let produced = to.addr() - room.start.addr();
    *cursor = Cursor { at: base + at, anchor: base.wrapping_add(anchor), misses };
    Packed { produced, matches, left }
}

/// Writes a sequence that is not short, if it is easy. Returns where it ends.
///
/// # Safety
///
/// Bytes can be written from `to` up to `end`, which is not before it.
#[inline(never)]
unsafe fn write_long<W: Write>(
    bytes: &[u8],
    start: usize,
    to: *mut u8,
    end: *mut u8,
    sequence: Sequence,
) -> Option<*mut u8> {
    let is_easy = sequence.literals <= LITERALS_MAX
        && bytes.len().checked_sub(sequence.literals + SLACK).is_some_and(|last| start <= last)
        && end.addr() - to.addr() >= W::room(sequence);
    // SAFETY: as checked above.
    is_easy.then(|| unsafe { to.add(W::write(to, bytes.as_ptr().add(start), sequence)) })
}

/// The end of a match, found without its length if that is a usual one: the work after it need not wait for the
/// comparison.
///
/// The processor predicts the branch, and searches for the next match while it still compares; after an addition of the
/// length it would have to wait. The usual lengths are the shortest match, that of a 64-bit number's zeros, and a word:
/// testing more of them costs more than it gains. (Numbers take up to 45 % less time, digits 17 %; floats, URLs and
/// long matches the same, give or take 5 %.)
#[inline(always)]
fn foreseen(at: usize, end: usize) -> usize {
    // Hides that all of these are `end`: otherwise the branches would be optimised away.
    match end - at {
        4 => black_box(at + 4),
        5 => black_box(at + 5),
        8 => black_box(at + 8),
        _ => end,
    }
}

/// Where a match of at least a word ends, at most `end`.
#[inline(always)]
fn end_of_match(bytes: &[u8], at: usize, distance: usize, end: usize) -> usize {
    let from = bytes.as_ptr();
    let mut next = at + WORD;
    while next + WORD <= end {
        // SAFETY: `next + WORD <= end <= bytes.len()`, and the other position is before it.
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
/// 4 bytes can be read at `from`.
#[inline(always)]
unsafe fn load_half(from: *const u8) -> u32 {
    // SAFETY: the caller's promise.
    unsafe { from.cast::<u32>().read_unaligned() }
}

/// # Safety
///
/// 8 bytes can be read at `from`.
#[inline(always)]
unsafe fn load(from: *const u8) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { from.cast::<u64>().read_unaligned() }
}
