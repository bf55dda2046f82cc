//! Finding matches: what the encoders of Snappy and LZ4 have in common.
//!
//! A run finds sequences (literals, then a match) greedily, through one table of the last places of hashed bytes, and writes
//! them for as long as that is easy. A sequence that is not, for its literals are many or the room is little, it gives to its
//! caller, who writes it with care, in pieces. So a run keeps no state but the [`Cursor`], and an encoder built on it stops
//! anywhere; what it writes does not depend on where it stopped.

use core::hint::black_box;

use super::{SLACK, WIDE};

/// The largest distance of a match.
pub const DISTANCE_MAX: usize = u16::MAX as usize;

/// The longest match; one that goes on is found again. So work and look-ahead are bounded.
pub const LENGTH_MAX: usize = 16 << 10;

/// Nothing is looked for in so many bytes at the end of the input, less one.
pub const MARGIN: usize = WIDE;

/// Bytes that are compared at a time. The first four of them are the shortest match.
const WORD: usize = 8;

/// Places that are looked at behind a match before places are passed over: fewer than [`MISSES_START`].
const NEAR: usize = 16;

/// The most literals of a sequence that is easy.
const LITERALS_MAX: usize = 4 << 10;

/// The places of a table, as a power of two, and those of a small page's. (Half as many make pages up to a tenth
/// larger. As many of 32 bits leave the first-level cache, and take up to a quarter longer.)
const BITS: u32 = 14;
const SMALL_BITS: u32 = 12;
const SMALL_PAGE_BYTES: usize = 8 << 10;

/// After 2^5 places without a match every second place is looked at, after half as many of those every third, and so on: what does not
/// compress is passed over quickly.
const MISSES_SHIFT: u32 = 5;
const MISSES_START: usize = 1 << MISSES_SHIFT;
/// But every 31st place at least, so that what compresses again is seen soon. An odd number: of values of four or eight bytes it looks at
/// all places in turn, where a power of two would pass over whole pages that compress.
const MISSES_MAX: usize = 31 << MISSES_SHIFT;

/// Where in the page bytes like those at hand were last seen.
///
/// Nothing has to be forgotten as a page goes on: what is too far back is found to be so, and so is what never was.
#[derive(Debug)]
pub struct Table {
    /// The lower bits of places. Of a small page, so that clearing takes less than finding, the first 2^[`SMALL_BITS`].
    places: Places,
    is_small: bool,
    /// No place is behind this one, of those that are used: where a page was not whole, that is not known.
    reached: usize,
}

type Places = [u16; 1 << BITS];

impl Table {
    /// A table that is to be [started](Table::start).
    #[must_use]
    pub const fn new() -> Table {
        Table { places: [0; 1 << BITS], is_small: false, reached: 0 }
    }

    /// Forgets everything, before a page of `length` bytes begins.
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

/// Which of 2^`BITS` places of a table is for the bytes that begin `word`.
#[inline(always)]
fn hash<W: Write, const BITS: u32>(word: u64) -> usize {
    if W::HASHED_BYTES == 4 {
        return ((word as u32).wrapping_mul(PRIME as u32) >> (32 - BITS)) as usize;
    }
    // Bytes that do not count are shifted out with the prime.
    let prime = const { PRIME << (64 - 8 * W::HASHED_BYTES) };
    (word.wrapping_mul(prime) >> (64 - BITS)) as usize
}

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
    /// How many bytes are hashed, four to eight: matches of fewer are not all found.
    const HASHED_BYTES: u32;

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
/// Tried, and not kept: to follow matches backwards, which makes pages 0.3 % smaller and takes 4 % longer; to compare two words at once, so
/// that no branch tells matches of one from those of two, which takes up to 5 % longer; to look at four places before it is asked whether
/// any is right, which takes a third longer; to leave out short matches that are far, which takes a tenth longer; to remember the place
/// before a match's end instead of its second one, which makes pages up to 1 % larger.
/// Six hashed bytes are faster than five, and pages of text 4 % larger.
#[inline(always)]
pub(super) fn run<W: Write>(
    input: Input<'_>,
    cursor: &mut Cursor,
    table: &mut Table,
    output: &mut [u8],
) -> Packed {
    let is_whole = input.base == 0;
    // Places of a page that is whole and goes on are all before what is looked at; else they may be any's.
    let is_known = is_whole && cursor.at >= table.reached;
    // From here on so many bytes are before that all is there that a place may tell.
    let far = input.base.saturating_add(DISTANCE_MAX);
    // So it stays where this does not come to its end.
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

/// `FAR`: before all that is looked at there are [`DISTANCE_MAX`] bytes. `WHOLE`: the bytes are the page from its start on, and unless `FAR`
/// no place is behind what is looked at, which is less than [`DISTANCE_MAX`] bytes from there.
fn search<W: Write, const BITS: u32, const FAR: bool, const WHOLE: bool>(
    input: &Input<'_>,
    until: usize,
    cursor: &mut Cursor,
    places: &mut Places,
    output: &mut [u8],
) -> Packed {
    const { assert!(BITS <= self::BITS) }
    let &Input { bytes, base, match_end, .. } = input;
    // Known beforehand, it takes no register.
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
    // Where words can be read, and where a match may begin now.
    let readable = last;
    let last = last.min(last_match).min(until.saturating_sub(base + 1));
    // Literals may have begun before the first of the bytes that are there: the difference is right, whatever it wraps around.
    let mut anchor = cursor.anchor.wrapping_sub(base);
    let mut misses = cursor.misses;
    let (mut matches, mut left) = (0, None);
    let from = bytes.as_ptr();
    // Where is written next; where a short sequence may be written before, at the latest; and where the room ends.
    let too_near = W::SHORT_ROOM.min(output.len() + 1) - 1;
    let room = output.as_mut_ptr_range();
    let (mut to, short_end) = (room.start, room.end.wrapping_sub(too_near));
    // SAFETY: all places that it is called with are at most `readable`, and `readable + MARGIN <= bytes.len()`.
    let word_at = |at: usize| unsafe { load(from.add(at)) };
    // Looks for the bytes at a place, with which `word` begins: how far back they are, and what differs.
    let look = |places: &mut Places, at: usize, word: u64| {
        let place = core::mem::replace(&mut places[hash::<W, BITS>(word)], base.wrapping_add(at) as u16);
        if WHOLE && !FAR {
            let place = usize::from(place);
            // SAFETY: `place <= at`: it was so when the run began, and since then places before this one were noted, which `u16` can tell.
            return (at - place, word as u32 ^ unsafe { load_half(from.add(place)) });
        }
        // Where that was, if it is not too far back: bytes that are others tell that it is.
        let distance = usize::from((base.wrapping_add(at) as u16).wrapping_sub(place));
        let differ = if FAR || distance <= at {
            // SAFETY: `distance <= DISTANCE_MAX <= at` where it is not asked. So this is `at` or before it, and `at <= readable`.
            word as u32 ^ unsafe { load_half(from.add(at - distance)) }
        } else {
            1
        };
        (distance, differ)
    };
    'sequences: while at <= last {
        let mut found = None;
        // Most matches are near: the first places are looked at without counting.
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
            // A place that is further back than can be told looks like the place itself.
            (at, misses) = (place + 1, misses + (place - at) + 1);
            continue;
        }
        at = place;
        let word = word_at(at);
        // SAFETY: `1 <= distance <= at`, and `at <= readable`.
        let differ = word ^ unsafe { load(from.add(at - distance)) };
        // Of the places within a match one more is remembered.
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
            // SAFETY: there is as much room. The few literals start before `at`, and within the bytes: of all of the page, where they are
            // known to be, or by what was asked. So 16 bytes can be read there.
            to = unsafe { to.add(W::write_short(to, from.add(start), sequence)) };
        } else {
            // SAFETY: `to` is within the room: what was written fit.
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

/// Writes a sequence that is not short, if it is easy: where it ends.
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
    // SAFETY: what is checked.
    is_easy.then(|| unsafe { to.add(W::write(to, bytes.as_ptr().add(start), sequence)) })
}

/// The end of a match, found without its length where that is a usual one: what comes behind it need not wait for the bytes to be compared.
///
/// Which branch is taken the processor foresees, and looks for the next match while it still compares; behind an addition of the length it
/// could not begin to. The usual lengths are the shortest match, that of the zeros of a number of 64 bits, and a word: more of them take longer
/// to be asked for than they give. (Numbers take up to 45 % less time, digits 17 %; floats, URLs and long matches the same, give or take 5 %.)
#[inline(always)]
fn foreseen(at: usize, end: usize) -> usize {
    // What is hidden is that all of these are `end`: the branches would be left out.
    match end - at {
        4 => black_box(at + 4),
        5 => black_box(at + 5),
        8 => black_box(at + 8),
        _ => end,
    }
}

/// Where a match of a word or more ends, `end` at the latest.
#[inline(always)]
fn end_of_match(bytes: &[u8], at: usize, distance: usize, end: usize) -> usize {
    let from = bytes.as_ptr();
    let mut next = at + WORD;
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
