//! The portable twin: safe Rust.

/// Unpacks the values from `first` on, one by one. `input` must hold them; bytes beyond it read as zero.
#[inline(always)]
pub(super) fn each<'a, T: 'a>(
    width: u32,
    input: &[u8],
    first: usize,
    out: impl Iterator<Item = &'a mut T>,
    narrow: impl Fn(u64) -> T,
) {
    let width = width as usize;
    let mut bit = first * width;
    for to in out {
        *to = narrow(value_at(input, bit, width));
        bit += width;
    }
}

/// The value of `width` bits, 1 to 64, at bit `bit`.
#[inline(always)]
fn value_at(input: &[u8], bit: usize, width: usize) -> u64 {
    let at = bit / 8;
    let shift = bit % 8;
    let low = match input.get(at..at + 8) {
        Some(bytes) => u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
        None => last(input, at),
    };
    let mut value = low >> shift;
    if shift + width > 64 {
        let ninth = input.get(at + 8).copied().unwrap_or(0);
        value |= u64::from(ninth) << (64 - shift);
    }
    value & (u64::MAX >> (64 - width))
}

/// The up to seven bytes from `at` to the end.
#[cold]
#[inline(never)]
fn last(input: &[u8], at: usize) -> u64 {
    let rest = input.get(at..).unwrap_or_default();
    let mut bytes = [0u8; 8];
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(bytes)
}

/// Eight values take exactly `width` bytes, which are one word.
#[inline(always)]
pub(super) fn u8(width: u32, input: &[u8], out: &mut [u8]) {
    u8_by(width, input, out, |word| {
        let mut values = [0u8; 8];
        for (at, value) in values.iter_mut().enumerate() {
            *value = (word >> (at as u32 * width)) as u8 & (u8::MAX >> (8 - width));
        }
        values
    });
}

/// `eight` extracts the values from a word, whose bits beyond the eight values may be anything.
#[inline(always)]
pub(super) fn u8_by(width: u32, input: &[u8], out: &mut [u8], eight: impl Fn(u64) -> [u8; 8]) {
    let bytes = width as usize;
    for (number, out) in out.chunks_mut(8).enumerate() {
        let at = number * bytes;
        let word = match input.get(at..at + 8) {
            Some(bytes) => u64::from_le_bytes(bytes.try_into().unwrap_or_default()),
            None => last(input, at),
        };
        let values = eight(word);
        match <&mut [u8; 8]>::try_from(&mut *out) {
            Ok(out) => *out = values,
            Err(_) => out.copy_from_slice(&values[..out.len()]),
        }
    }
}

/// 32 values take exactly `width` words of 32 bits; if the width is a constant, so are all shifts and words.
pub(super) fn u32(width: u32, input: &[u8], out: &mut [u32]) {
    macro_rules! by_width {
        ($($w:literal)+) => {
            match width {
                $($w => blocks::<$w>(input, out),)+
                _ => 0,
            }
        };
    }
    let done =
        by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);
    each(width, input, done, out[done..].iter_mut(), |value| value as u32);
}

/// Unpacks the complete blocks of 32, and returns how many values they have.
fn blocks<const W: usize>(input: &[u8], out: &mut [u32]) -> usize {
    let mut done = 0;
    let (blocks, _) = out.as_chunks_mut::<32>();
    for (to, from) in blocks.iter_mut().zip(input.chunks_exact(W * 4)) {
        macro_rules! values {
            ($($i:literal)+) => { $( to[$i] = value::<W, $i>(from); )+ };
        }
        values!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
        done += 32;
    }
    done
}

#[inline(always)]
fn value<const W: usize, const I: usize>(from: &[u8]) -> u32 {
    let word =
        |k: usize| u32::from_le_bytes([from[k * 4], from[k * 4 + 1], from[k * 4 + 2], from[k * 4 + 3]]);
    let (k, shift) = (I * W / 32, I * W % 32);
    let mut value = word(k) >> shift;
    if shift + W > 32 {
        value |= word(k + 1) << (32 - shift);
    }
    value & (u32::MAX >> (32 - W))
}

/// One unaligned word per value, and a byte where it is wide. (65 unrolled widths would be 100 KiB of code for the rare wide deltas.)
#[inline(always)]
pub(super) fn u64(width: u32, input: &[u8], out: &mut [u64]) {
    let step = width as usize;
    let mut done = 0;
    if width <= 57 {
        // No value reaches into a ninth byte. A group of eight takes `width` bytes; its loads reach eight further.
        let mask = u64::MAX >> (64 - width);
        let (groups, _) = out.as_chunks_mut::<8>();
        for (to, from) in groups.iter_mut().zip((0..).step_by(step)) {
            let Some(from) = input.get(from..from + step + 8) else { break };
            for (i, to) in to.iter_mut().enumerate() {
                let bit = i * step;
                let mut word = [0; 8];
                word.copy_from_slice(&from[bit / 8..bit / 8 + 8]);
                *to = u64::from_le_bytes(word) >> (bit % 8) & mask;
            }
            done += 8;
        }
    } else {
        let mask = u64::MAX >> (64 - width);
        let (groups, _) = out.as_chunks_mut::<8>();
        for (to, from) in groups.iter_mut().zip((0..).step_by(step)) {
            let Some(from) = input.get(from..from + step + 8) else { break };
            for (i, to) in to.iter_mut().enumerate() {
                let (byte, shift) = (i * step / 8, i * step % 8);
                let mut word = [0; 8];
                word.copy_from_slice(&from[byte..byte + 8]);
                // Where the value begins with the byte, no bit of the ninth is left.
                let above = u64::from(from[byte + 8]) << 1 << (63 - shift);
                *to = (u64::from_le_bytes(word) >> shift | above) & mask;
            }
            done += 8;
        }
    }
    each(width, input, done, out[done..].iter_mut(), |value| value);
}

pub(super) fn msb_u16(width: u32, input: &[u8], first: usize, out: &mut [u16]) {
    let width = width as usize;
    if width == 0 {
        out.fill(0);
        return;
    }
    let mut bit = first * width;
    for to in out {
        // A value of 16 bits that begins within a byte reaches into a third.
        let byte = |k: usize| u32::from(input.get(bit / 8 + k).copied().unwrap_or(0));
        let window = byte(0) << 16 | byte(1) << 8 | byte(2);
        *to = (window >> (24 - bit % 8 - width) & ((1 << width) - 1)) as u16;
        bit += width;
    }
}
