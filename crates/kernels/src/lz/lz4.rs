//! LZ4's sequences. lz4/doc/lz4_Block_format.md.

use super::{Output, Run, SLACK, WIDE, copy_literals, copy_match, copy_wide};

/// Bytes of input that an easy sequence may need: a token, up to 14 literals (copied as 16), an offset, a length's byte.
const INPUT_MIN: usize = 1 + WIDE + 2 + 1;

/// Room that an easy sequence may need: up to 14 literals, a match of up to 18 bytes.
const ROOM_MIN: usize = 14 + 18 + SLACK;

/// A length in a token that goes on behind it.
const LENGTH_GOES_ON: usize = 15;

/// A byte of a length that is not its last.
const BYTE_GOES_ON: u8 = 255;

/// The shortest match.
const MATCH_MIN: usize = 4;

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
    // Where the current sequence starts; where it has come to.
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
            // Behind the literals there is an offset, a length's byte, and SLACK.
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
        // SAFETY: `1 <= distance <= to`. A match of a length in the token has room for 18 bytes and SLACK behind the literals, by
        // `ROOM_MIN` or the check of long literals; a longer one was checked just now.
        unsafe { copy_match(out, to, distance, length + MATCH_MIN) };
        ip = next;
        op = to + length + MATCH_MIN;
        run.elements += 1;
    }
    run.consumed = ip;
    run.produced = op - at;
    run
}
