//! LZ4's sequences. lz4/doc/lz4_Block_format.md.
//!
//! Speed: the length of a sequence bounds a run, which the next one's place waits for, and mispredicted branches.
//! `docs/bench/kernels.md` has its distance from a copy of as many bytes (`make bench-kernels`).

use super::pack::{self, Cursor, Input, Packed, Sequence, Table};
use super::{Output, Run, SLACK, WIDE, copy_literals, copy_match, copy_wide};

/// Bytes of input that an easy sequence may need: a token, up to 14 literals (copied as 16), an offset, a length's byte.
const INPUT_MIN: usize = 1 + WIDE + 2 + 1;

/// Room that an easy sequence may need: up to 14 literals, a match of up to 18 bytes.
const ROOM_MIN: usize = 14 + 18 + SLACK;

/// A length in a token that continues after it.
pub const LENGTH_GOES_ON: usize = 15;

/// A byte of a length that is not its last.
const BYTE_GOES_ON: u8 = 255;

/// The shortest match.
pub const MATCH_MIN: usize = 4;

/// Decodes sequences, each of literals and a match, while they are easy. See [`super`].
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
    // Where the current sequence starts, and where its output goes.
    let (mut ip, mut op) = (0, at);
    while ip <= in_last && op <= out_last {
        // SAFETY: `ip < input.len()`.
        let token = unsafe { *from.add(ip) };
        let mut literals = usize::from(token >> 4);
        let mut length = usize::from(token & 15);
        let mut next = ip + 1;
        if literals < LENGTH_GOES_ON {
            // SAFETY: `next + 16 <= input.len()`, and `op + 16 <= output.len()`.
            unsafe { copy_wide(from.add(next), out.add(op)) };
        } else {
            // SAFETY: `ip + 2 <= input.len()`.
            let byte = unsafe { *from.add(next) };
            literals += usize::from(byte);
            next += 1;
            // The literals must be followed by an offset, a length's byte, and SLACK.
            if byte == BYTE_GOES_ON
                || input.len() - next < literals + SLACK
                || output.len() - op < literals + 18 + SLACK
            {
                break;
            }
            // SAFETY: `literals + SLACK` bytes are left of both, which are different slices.
            unsafe { copy_literals(from.add(next), out.add(op), literals) };
        }
        next += literals;
        let to = op + literals;
        // SAFETY: either `next <= ip + 15` and `ip + 20 <= input.len()`, or SLACK bytes follow.
        let distance = usize::from(unsafe { from.add(next).cast::<u16>().read_unaligned() });
        next += 2;
        if length == LENGTH_GOES_ON {
            // SAFETY: as above.
            let byte = unsafe { *from.add(next) };
            length += usize::from(byte);
            next += 1;
            if byte == BYTE_GOES_ON || output.len() - to < length + MATCH_MIN + SLACK {
                break;
            }
        }
        if distance.wrapping_sub(1) >= to - start {
            break;
        }
        // (18 bytes at once for every length in the token, as LZ4's own decoder copies them, took up to 15 % longer on a Zen 3: most
        // matches have 8 bytes or fewer.)
        // SAFETY: `1 <= distance <= to`. A match of a length in the token has room for 18 bytes and SLACK after the
        // literals, by `ROOM_MIN` or the check of long literals; a longer one was checked just now.
        unsafe { copy_match(out, to, distance, length + MATCH_MIN) };
        ip = next;
        op = to + length + MATCH_MIN;
        run.elements += 1;
    }
    run.consumed = ip;
    run.produced = op - at;
    run
}

/// Finds sequences and writes them while that is easy. See [`mod@pack`].
#[must_use]
pub fn pack(input: Input<'_>, cursor: &mut Cursor, table: &mut Table, output: &mut [u8]) -> Packed {
    pack::run::<Sequences>(input, cursor, table, output)
}

/// A sequence's token.
#[inline]
#[must_use]
pub fn token(literals: usize, length: usize) -> u8 {
    let matched = length.saturating_sub(MATCH_MIN).min(LENGTH_GOES_ON);
    (literals.min(LENGTH_GOES_ON) << 4 | matched) as u8
}

/// LZ4's form of sequences.
struct Sequences;

impl pack::Write for Sequences {
    const HASHED_BYTES: u32 = 5;
    const SHORT: (usize, usize) = (LENGTH_GOES_ON - 1, MATCH_MIN + LENGTH_GOES_ON - 1);
    /// A token, literals as they are copied, an offset.
    const SHORT_ROOM: usize = 1 + WIDE + 2;

    #[inline(always)]
    unsafe fn write_short(to: *mut u8, from: *const u8, sequence: Sequence) -> usize {
        let Sequence { literals, distance, length } = sequence;
        // SAFETY: what is written is what `SHORT_ROOM` counts.
        unsafe {
            *to = (literals << 4 | (length - MATCH_MIN)) as u8;
            copy_wide(from, to.add(1));
            to.add(1 + literals).cast::<[u8; 2]>().write_unaligned((distance as u16).to_le_bytes());
        }
        1 + literals + 2
    }

    fn room(sequence: Sequence) -> usize {
        let Sequence { literals, length, .. } = sequence;
        // A token, the literals' number, the literals with the excess of the copy, an offset, and the match's length.
        1 + (literals / 255 + 1) + literals + SLACK + 2 + (length / 255 + 1)
    }

    unsafe fn write(to: *mut u8, from: *const u8, sequence: Sequence) -> usize {
        let Sequence { literals, distance, length } = sequence;
        // SAFETY: what is written is what `room` counts, in the same order.
        unsafe {
            *to = token(literals, length);
            let mut at = write_rest(to, 1, literals);
            copy_literals(from, to.add(at), literals);
            at += literals;
            to.add(at).cast::<[u8; 2]>().write_unaligned((distance as u16).to_le_bytes());
            write_rest(to, at + 2, length - MATCH_MIN)
        }
    }
}

/// Writes the part of a length that does not fit into a token. Returns where it ends.
///
/// # Safety
///
/// There is room for `length / 255 + 1` bytes at `to + at`.
#[inline(always)]
unsafe fn write_rest(to: *mut u8, mut at: usize, length: usize) -> usize {
    if length < LENGTH_GOES_ON {
        return at;
    }
    let mut rest = length - LENGTH_GOES_ON;
    // SAFETY: `rest / 255` bytes and one more are written.
    unsafe {
        while rest >= usize::from(BYTE_GOES_ON) {
            *to.add(at) = BYTE_GOES_ON;
            rest -= usize::from(BYTE_GOES_ON);
            at += 1;
        }
        *to.add(at) = rest as u8;
    }
    at + 1
}
