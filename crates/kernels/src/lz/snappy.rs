//! Snappy's elements. google/snappy, format_description.txt, section 2.
//!
//! Speed: the length of an element bounds a run, which the next element's place waits for, and mispredicted
//! branches. `docs/bench/kernels.md` has its distance from a copy of as many bytes (`make bench-kernels`).

use core::hint::select_unpredictable;

use super::pack::{self, Cursor, Input, Packed, Sequence, Table};
use super::{Output, Run, SLACK, WIDE, copy_literals, copy_match, copy_wide};

/// Bytes of input that an easy element may need: a tag, and a literal of up to 16 bytes or an offset of four.
const INPUT_MIN: usize = 1 + WIDE;

/// The longest copy.
const LENGTH_MAX: usize = 4 * WIDE;

/// Room that an easy element may need: a copy.
const ROOM_MIN: usize = LENGTH_MAX + SLACK;

/// A literal's longest length in its tag.
const LENGTH_IN_TAG_MAX: usize = 60;

/// The longest literal that is easy. A longer one may be as long as the page, and should be copied in slices.
const LITERAL_MAX: usize = 1 << 10;

/// For each tag: the length, the element's bytes, the bytes of its offset after the tag, and the offset's bits in the
/// tag. Literals of more than 60 bytes have a length that is not in the tag.
static TAGS: [u32; 256] = tags();

const LENGTH_MASK: u32 = 0xff;
const ADVANCE_SHIFT: u32 = 8;
const EXTRA_SHIFT: u32 = 16;
const OFFSET_SHIFT: u32 = 16;
const OFFSET_MASK: u32 = 0x700;

/// Decodes elements while they are easy. See [`super`].
#[must_use]
pub fn run(input: &[u8], to: Output<'_>) -> Run {
    let Output { output, start, at, until } = to;
    let mut run = Run::default();
    let (Some(in_last), Some(room_last)) =
        (input.len().checked_sub(INPUT_MIN), output.len().checked_sub(ROOM_MIN))
    else {
        return run;
    };
    if start > at || at > room_last {
        return run;
    }
    let out_last = room_last.min(until.saturating_sub(1));
    let (from, out) = (input.as_ptr(), output.as_mut_ptr());
    let (mut ip, mut op) = (0, at);
    while ip <= in_last && op <= out_last {
        // SAFETY: `ip + 17 <= input.len()`.
        let (tag, trailer) = unsafe { (*from.add(ip), from.add(ip + 1).cast::<u32>().read_unaligned()) };
        let entry = TAGS[usize::from(tag)];
        let length = (entry & LENGTH_MASK) as usize;
        let trailer = trailer & (((1u64 << (8 * (entry >> EXTRA_SHIFT & 7))) - 1) as u32);
        let distance = (entry >> OFFSET_SHIFT & OFFSET_MASK | trailer) as usize;
        // Whether an element is a literal or a copy is unpredictable, so nothing branches on it: one move of 16 bytes
        // serves both, unless it would read bytes that it writes itself.
        let is_literal = tag & 3 == 0;
        let reach = select_unpredictable(is_literal, LENGTH_IN_TAG_MAX, distance);
        if length <= reach && distance <= op - start {
            let source = select_unpredictable(
                is_literal,
                from.wrapping_add(ip + 1),
                out.cast_const().wrapping_add(op).wrapping_sub(distance),
            );
            // SAFETY: `op + ROOM_MIN <= output.len()`. A literal's source has 16 bytes, because `ip + 17 <=
            // input.len()`. A copy's has them in the output, from `op - distance` on: `distance <= op - start`, and it
            // is not 0, because `length <= distance`.
            unsafe { copy_wide(source, out.add(op)) };
            let is_whole = length <= WIDE || {
                let is_there = !is_literal || input.len() - ip > LENGTH_MAX;
                if is_there {
                    // SAFETY: as above, for 64 bytes: a literal's follow its tag. A load may see what earlier stores
                    // wrote, but not in the first `length` bytes, which are before `op`.
                    unsafe {
                        copy_wide(source.add(WIDE), out.add(op + WIDE));
                        copy_wide(source.add(2 * WIDE), out.add(op + 2 * WIDE));
                        copy_wide(source.add(3 * WIDE), out.add(op + 3 * WIDE));
                    }
                }
                is_there
            };
            if is_whole {
                ip += (entry >> ADVANCE_SHIFT & LENGTH_MASK) as usize;
                op += length;
                run.elements += 1;
                continue;
            }
        }
        if is_literal {
            let bits = usize::from(tag >> 2);
            let extra = (bits + 1).saturating_sub(LENGTH_IN_TAG_MAX);
            // SAFETY: `ip + 17 <= input.len()`.
            let trailer = unsafe { from.add(ip + 1).cast::<u32>().read_unaligned() };
            let length = match extra {
                0 => bits + 1,
                _ => (trailer & (u32::MAX >> (32 - 8 * extra))) as usize + 1,
            };
            let body = ip + 1 + extra;
            // `body <= ip + 5 < input.len()`, and `op <= output.len()`.
            if length > LITERAL_MAX
                || input.len() - body < length + SLACK
                || output.len() - op < length + SLACK
            {
                break;
            }
            // SAFETY: `length + SLACK` bytes are left of both, which are different slices.
            unsafe { copy_literals(from.add(body), out.add(op), length) };
            ip = body + length;
            op += length;
        } else {
            if distance.wrapping_sub(1) >= op - start {
                break;
            }
            // SAFETY: `1 <= distance <= op`, `length <= 64`, and `op + 64 + SLACK <= output.len()`.
            unsafe { copy_match(out, op, distance, length) };
            ip += (entry >> ADVANCE_SHIFT & LENGTH_MASK) as usize;
            op += length;
        }
        run.elements += 1;
    }
    run.consumed = ip;
    run.produced = op - at;
    run
}

const fn tags() -> [u32; 256] {
    let mut tags = [0; 256];
    let mut tag = 0;
    while tag < 256 {
        let bits = tag as u32;
        let (length, extra, offset) = match tag & 3 {
            0 if bits >> 2 >= 60 => (LENGTH_MASK, 0, 0),
            0 => ((bits >> 2) + 1, 0, 0),
            1 => (4 + (bits >> 2 & 7), 1, (bits >> 5) << 8),
            2 => ((bits >> 2) + 1, 2, 0),
            _ => ((bits >> 2) + 1, 4, 0),
        };
        let advance = if tag & 3 == 0 { 1 + (bits >> 2) + 1 } else { 1 + extra };
        tags[tag] = length | advance << ADVANCE_SHIFT | extra << EXTRA_SHIFT | offset << OFFSET_SHIFT;
        tag += 1;
    }
    tags
}

/// Finds sequences and writes them as elements while that is easy. See [`mod@pack`].
#[must_use]
pub fn pack(input: Input<'_>, cursor: &mut Cursor, table: &mut Table, output: &mut [u8]) -> Packed {
    pack::run::<Elements<4>>(input, cursor, table, output)
}

/// The same, but few matches of four bytes are found. Pages of text and digits, which have very many, become smaller,
/// because longer ones are found instead, and take a tenth less time; pages of small numbers become larger.
#[must_use]
pub fn pack_long(input: Input<'_>, cursor: &mut Cursor, table: &mut Table, output: &mut [u8]) -> Packed {
    pack::run::<Elements<5>>(input, cursor, table, output)
}

/// The length of the first copy for a match of `length` bytes. If it is shorter than that, another copy follows: the
/// rest is never too short for the two-byte element.
#[inline]
#[must_use]
pub fn first_copy(length: usize) -> usize {
    match length {
        ..=LENGTH_MAX => length,
        65..68 => 60,
        _ => LENGTH_MAX,
    }
}

/// An element that copies 1 to 64 bytes, and its length: two or three bytes.
#[inline]
#[must_use]
pub fn copy(distance: usize, length: usize) -> ([u8; 4], usize) {
    let (distance, length) = (distance as u32, length as u32);
    // A copy of fewer than four bytes does not fit the two-byte element. Both are computed; no branch distinguishes
    // them.
    let is_near = length.wrapping_sub(4) < 8 && distance < 1 << 11;
    // Both have the length above the kind and the distance after that: for a near one, its upper bits are next to the
    // length, and the rest of them in the third byte is not used.
    let near = 1_u32.wrapping_sub(4 << 2).wrapping_add(distance >> 3 & 0xe0);
    let far = 2_u32.wrapping_sub(1 << 2);
    let element =
        (length << 2).wrapping_add(distance << 8).wrapping_add(select_unpredictable(is_near, near, far));
    (element.to_le_bytes(), 3 - usize::from(is_near))
}

/// The tag of 1 to 65,536 literals and the following bytes of their number, and how many bytes these are in total.
#[inline]
#[must_use]
pub fn literal_tag(length: usize) -> ([u8; 4], usize) {
    let field = length.saturating_sub(1) as u32;
    match field {
        ..60 => ((field << 2).to_le_bytes(), 1),
        60..256 => ((60 << 2 | field << 8).to_le_bytes(), 2),
        _ => ((61 << 2 | field << 8).to_le_bytes(), 3),
    }
}

/// Snappy's elements of sequences, found by this many bytes.
struct Elements<const HASHED_BYTES: u32>;

impl<const HASHED_BYTES: u32> pack::Write for Elements<HASHED_BYTES> {
    const HASHED_BYTES: u32 = HASHED_BYTES;
    const SHORT: (usize, usize) = (WIDE, LENGTH_MAX);
    /// A tag, literals, and a copy, which is written as four bytes.
    const SHORT_ROOM: usize = 1 + WIDE + 4;

    #[inline(always)]
    unsafe fn write_short(to: *mut u8, from: *const u8, sequence: Sequence) -> usize {
        let Sequence { literals, distance, length } = sequence;
        // SAFETY: what is written is what `SHORT_ROOM` counts.
        unsafe {
            // Whether there are literals is hard to predict: zero literals are written, too.
            *to = (literals as u8).wrapping_sub(1) << 2;
            copy_wide(from, to.add(1));
            let at = literals + usize::from(literals > 0);
            let (element, bytes) = copy(distance, length);
            to.add(at).cast::<[u8; 4]>().write_unaligned(element);
            at + bytes
        }
    }

    fn room(sequence: Sequence) -> usize {
        // A tag, and literals with the excess of the copy; copies of at least 60 bytes, except for the last two; one
        // byte too many.
        3 + sequence.literals + SLACK + 3 * (sequence.length / 60 + 2) + 1
    }

    unsafe fn write(to: *mut u8, from: *const u8, sequence: Sequence) -> usize {
        let Sequence { literals, distance, mut length } = sequence;
        let mut at = 0;
        // SAFETY: what is written is what `room` counts, in the same order, and each store of four bytes counts for at
        // least two.
        unsafe {
            if literals > 0 {
                let (tag, bytes) = literal_tag(literals);
                to.cast::<[u8; 4]>().write_unaligned(tag);
                copy_literals(from, to.add(bytes), literals);
                at = bytes + literals;
            }
            loop {
                let part = first_copy(length);
                let (element, bytes) = copy(distance, part);
                to.add(at).cast::<[u8; 4]>().write_unaligned(element);
                at += bytes;
                length -= part;
                if length == 0 {
                    return at;
                }
            }
        }
    }
}
