//! LZO1X's instructions. Linux, Documentation/staging/lzo.rst (without the bitstream version, which only Linux has).
//!
//! Speed: the length of an instruction bounds a run, which the next one's place waits for, and mispredicted
//! branches. `docs/bench/kernels.md` has its distance from a copy of as many bytes (`make bench-kernels`).

use super::{Output, Run, SLACK, copy_literals, copy_match};

/// Bytes of input that an easy instruction may need: a length and its one byte, a distance, three literals copied as four.
const INPUT_MIN: usize = 2 + 2 + 4;

/// Room that an easy instruction may need: a match of up to 33 bytes, three literals.
const ROOM_MIN: usize = 33 + 3 + SLACK;

/// What preceded an instruction, which determines the meaning of one below 16: 0 for a match without literals after it,
/// 1 to 3 for a match followed by that many literals, this for a run of literals.
pub const AFTER_RUN: u8 = 4;

/// Decodes instructions while they are easy. `before` is what preceded the first of them, and is updated to what
/// precedes the next. See [`super`].
#[must_use]
pub fn run(input: &[u8], to: Output<'_>, before: &mut u8) -> Run {
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
        // SAFETY: `ip + 8 <= input.len()`.
        let bytes = unsafe { from.add(ip).cast::<[u8; 4]>().read() };
        let code = usize::from(bytes[0]);
        let second = usize::from(bytes[1]);
        let (mut length, distance, literals, mut next);
        if code >= 64 {
            length = (code >> 5) + 1;
            distance = 1 + (code >> 2 & 7) + (second << 3);
            literals = code & 3;
            next = ip + 2;
        } else if code >= 16 {
            // The length in the code, or zero if the next byte has it.
            let far = code < 32;
            length = if far { code & 7 } else { code & 31 };
            let mut place = [bytes[1], bytes[2]];
            next = ip + 3;
            if length == 0 {
                length = second + if far { 7 } else { 31 };
                place = [bytes[2], bytes[3]];
                next = ip + 4;
                if second == 0 {
                    break;
                }
            }
            length += 2;
            let place = usize::from(u16::from_le_bytes(place));
            literals = place & 3;
            distance = (place >> 2)
                + match far {
                    false => 1,
                    true => 0x4000 + ((code & 8) << 11),
                };
            // The end, or a match too near to the room's end.
            if far && distance == 0x4000 || output.len() - op < length + 3 + SLACK {
                break;
            }
        } else if *before == 0 {
            let extra = usize::from(code == 0);
            let run_length = 3 + if extra == 1 { 15 + second } else { code };
            let body = ip + 1 + extra;
            if extra == 1 && second == 0
                || input.len() - body < run_length + SLACK
                || output.len() - op < run_length + SLACK
            {
                break;
            }
            // SAFETY: `run_length + SLACK` bytes are left of both, which are different slices.
            unsafe { copy_literals(from.add(body), out.add(op), run_length) };
            ip = body + run_length;
            op += run_length;
            *before = AFTER_RUN;
            run.elements += 1;
            continue;
        } else {
            let after_run = *before == AFTER_RUN;
            length = if after_run { 3 } else { 2 };
            distance = 1 + (code >> 2) + (second << 2) + if after_run { 2048 } else { 0 };
            literals = code & 3;
            next = ip + 2;
        }
        if distance > op - start {
            break;
        }
        // SAFETY: `1 <= distance <= op`. Lengths in a code are at most 33, for which `ROOM_MIN` has room, and for 3 and
        // SLACK after them; others were checked. `next + 4 <= ip + 8 <= input.len()`.
        unsafe {
            copy_match(out, op, distance, length);
            out.add(op + length).cast::<u32>().write_unaligned(from.add(next).cast::<u32>().read_unaligned());
        }
        next += literals;
        *before = literals as u8;
        ip = next;
        op += length + literals;
        run.elements += 1;
    }
    run.consumed = ip;
    run.produced = op - at;
    run
}
