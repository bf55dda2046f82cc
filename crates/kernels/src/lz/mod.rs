//! Blocks of literals and matches: Snappy, LZ4, LZO1X.
//!
//! A `run` decodes complete elements for as long as they are easy: valid, and far enough from the ends of input and
//! output that a copy may read and write some bytes too many. It leaves any other element to its caller, which decodes
//! it with care, can stop in its middle, and knows what is wrong with it. So a run never fails and keeps no state, and
//! a decoder built on it can stop anywhere. [`pack`] is the inverse, in the same manner.

pub mod inflate;
pub mod lz4;
pub mod lzo;
pub mod pack;
pub mod snappy;

#[cfg(test)]
mod tests;

/// How far a run came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// Bytes written to the output. Some bytes after them may have been overwritten with garbage.
    pub produced: usize,
    /// Literals and matches decoded.
    pub elements: usize,
}

/// What a run works on.
///
/// `output[..at]` is earlier output, `output[start..at]` what matches may refer to, `output[at..]` room. The run begins
/// no element once it has reached `until`.
#[derive(Debug)]
pub struct Output<'room> {
    /// Earlier output, and room.
    pub output: &'room mut [u8],
    /// Where the bytes start that matches may refer to.
    pub start: usize,
    /// Where the room starts.
    pub at: usize,
    /// Where the run stops, give or take an element.
    pub until: usize,
}

/// Bits of the input that were read and not used: the next one is the lowest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bits {
    /// The bits. Those above `count` are zero.
    pub buffer: u64,
    /// The number of bits.
    pub count: u32,
}

impl Bits {
    /// Drops `count` bits; false if there are fewer.
    #[inline]
    pub fn take(&mut self, count: u32) -> bool {
        if count > self.count {
            return false;
        }
        self.buffer = self.buffer.checked_shr(count).unwrap_or(0);
        self.count -= count;
        true
    }

    /// Reads bytes of `input` while there is room for them, up to at least 56 bits, and returns how many.
    #[inline]
    pub fn fill(&mut self, input: &[u8]) -> usize {
        if self.count >= 56 {
            return 0;
        }
        if let Some(&next) = input.first_chunk() {
            self.buffer |= u64::from_le_bytes(next) << self.count;
            let taken = (63 - self.count) >> 3;
            self.count += 8 * taken;
            self.buffer &= (1 << self.count) - 1;
            return taken as usize;
        }
        let mut taken = 0;
        while self.count < 56 {
            let Some(&byte) = input.get(taken) else { break };
            self.buffer |= u64::from(byte) << self.count;
            self.count += 8;
            taken += 1;
        }
        taken
    }
}

/// Copies `length` bytes to `output[at..]` from `distance` bytes before; the copy may read bytes that it wrote itself.
/// Some bytes after them are overwritten with garbage. Returns false and does nothing if `distance` is 0 or above `at`,
/// or if there is no room for the copy and [`COPY_SLACK`] bytes.
#[inline]
#[must_use]
pub fn copy_back(output: &mut [u8], at: usize, distance: usize, length: usize) -> bool {
    if distance == 0 || distance > at || at > output.len() {
        return false;
    }
    if output.len() - at < SLACK || output.len() - at - SLACK < length {
        return false;
    }
    // SAFETY: `1 <= distance <= at`, and `at + length + SLACK <= output.len()`.
    unsafe { copy_match(output.as_mut_ptr(), at, distance, length) };
    true
}

/// The room that [`copy_back`] needs after a copy.
pub const COPY_SLACK: usize = SLACK;

/// Bytes that a copy may write after the requested ones.
pub(crate) const SLACK: usize = 32;

/// Bytes that the processor moves at a time.
pub(crate) const WIDE: usize = 16;

/// Copies 16 bytes. They may overlap.
///
/// # Safety
///
/// 16 bytes can be read at `from` and written at `to`.
#[inline(always)]
pub(crate) unsafe fn copy_wide(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise. One load, then one store: overlap is allowed.
    unsafe { core::ptr::copy(from, to, WIDE) };
}

/// Copies 8 bytes. They may overlap.
///
/// # Safety
///
/// 8 bytes can be read at `from` and written at `to`.
#[inline(always)]
unsafe fn copy_word(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned()) };
}

/// Copies `length` bytes of literals, and up to [`SLACK`] more.
///
/// # Safety
///
/// `length + SLACK` bytes can be read at `from` and written at `to`, and the two do not overlap.
#[inline(always)]
pub(crate) unsafe fn copy_literals(from: *const u8, to: *mut u8, length: usize) {
    let mut done = 0;
    loop {
        // SAFETY: `done < length`, or `done` is 0, so `done + 2 * WIDE <= length + SLACK`.
        unsafe {
            copy_wide(from.add(done), to.add(done));
            copy_wide(from.add(done + WIDE), to.add(done + WIDE));
        }
        done += 2 * WIDE;
        if done >= length {
            break;
        }
    }
}

/// For each distance below 8: the factor that repeats the lowest `distance` bytes of a word, and how many bytes of the
/// product are complete periods.
const PERIODS: [(u64, usize); 8] = [
    (0, 0),
    (0x0101_0101_0101_0101, 8),
    (0x0001_0001_0001_0001, 8),
    (0x0001_0000_0100_0001, 6),
    (0x0000_0001_0000_0001, 8),
    (0x0000_0100_0000_0001, 5),
    (0x0001_0000_0000_0001, 6),
    (0x0100_0000_0000_0001, 7),
];

/// Copies `length` bytes to `out + at` from `distance` bytes before; the copy may read bytes that it wrote itself. Up
/// to [`SLACK`] bytes after them are overwritten with garbage.
///
/// # Safety
///
/// `out` starts a buffer of `at + length + SLACK` bytes or more, and `1 <= distance <= at`.
#[inline(always)]
pub(crate) unsafe fn copy_match(out: *mut u8, at: usize, distance: usize, length: usize) {
    // SAFETY: every byte read is at or after `at - distance`. Every store begins at `at + done` with `done < length`,
    // or with `done` 0, and is of 32 bytes at most, so it ends within `at + length + SLACK`. Every load ends where the
    // store of the same bytes does, less `distance`.
    unsafe {
        let to = out.add(at);
        let from = to.sub(distance);
        let mut done = 0;
        if distance >= 8 {
            // Most matches are short, and many have a distance of 8 or slightly more: for those, no branch
            // distinguishes near from far.
            copy_word(from, to);
            if length <= 8 {
                return;
            }
            copy_word(from.add(8), to.add(8));
            if length <= WIDE {
                return;
            }
            done = WIDE;
            if distance >= WIDE {
                loop {
                    copy_wide(from.add(done), to.add(done));
                    done += WIDE;
                    if done >= length {
                        return;
                    }
                }
            }
            loop {
                copy_word(from.add(done), to.add(done));
                done += 8;
                if done >= length {
                    return;
                }
            }
        }
        if at >= 8 {
            // The last `distance` bytes, loaded with those before them: that load finds the last store, where one of the bytes
            // from `from` on would have to wait for it.
            let last = to.sub(8).cast::<u64>().read_unaligned() >> (64 - 8 * distance);
            let (repeat, step) = PERIODS[distance & 7];
            let word = last.wrapping_mul(repeat);
            if step == 8 {
                loop {
                    to.add(done).cast::<[u64; 2]>().write_unaligned([word; 2]);
                    done += WIDE;
                    if done >= length {
                        return;
                    }
                }
            }
            loop {
                to.add(done).cast::<u64>().write_unaligned(word);
                done += step;
                if done >= length {
                    return;
                }
            }
        }
        while done < length {
            *to.add(done) = *from.add(done);
            done += 1;
        }
    }
}
