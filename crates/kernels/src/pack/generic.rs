//! The portable twin: safe Rust.

/// Numbers that are narrowed at a time.
const NARROWED: usize = 64;

/// Eight values take exactly `width` bytes, which are one word.
#[inline(always)]
pub(super) fn u8(width: u32, values: &[u8], out: &mut [u8]) {
    u8_by(width, values, out, |eight| {
        let mask = (u8::MAX >> (8 - width)) as u64;
        let mut word = 0;
        for (at, &value) in eight.iter().enumerate() {
            word |= (u64::from(value) & mask) << (at as u32 * width);
        }
        word
    });
}

/// `word` packs eight values.
#[inline(always)]
pub(super) fn u8_by(width: u32, values: &[u8], out: &mut [u8], word: impl Fn([u8; 8]) -> u64) {
    let bytes = width as usize;
    for (number, eight) in values.chunks(8).enumerate() {
        let mut padded = [0; 8];
        match <&[u8; 8]>::try_from(eight) {
            Ok(eight) => padded = *eight,
            Err(_) => padded[..eight.len()].copy_from_slice(eight),
        }
        store(out, number * bytes, bytes, word(padded));
    }
}

/// Writes the low `bytes` bytes of a word at `at`, as many as fit; if eight fit, all eight, because what follows
/// overwrites them.
#[inline(always)]
fn store(out: &mut [u8], at: usize, bytes: usize, word: u64) {
    match out[at..].first_chunk_mut::<8>() {
        Some(to) => *to = word.to_le_bytes(),
        None => {
            let take = bytes.min(out.len() - at);
            out[at..at + take].copy_from_slice(&word.to_le_bytes()[..take]);
        }
    }
}

/// 32 values take exactly `width` words of 32 bits; if the width is a constant, so are all shifts and words.
#[inline(always)]
pub(super) fn u32(width: u32, values: &[u32], out: &mut [u8]) {
    macro_rules! by_width {
        ($($w:literal)+) => {
            match width {
                $($w => blocks::<$w>(values, out),)+
                _ => {}
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
}

#[inline(always)]
fn blocks<const W: usize>(values: &[u32], out: &mut [u8]) {
    for (values, out) in values.chunks(32).zip(out.chunks_mut(W * 4)) {
        match (<&[u32; 32]>::try_from(values), out.as_chunks_mut::<4>()) {
            (Ok(values), (words, _)) if words.len() == W => block::<W>(values, words),
            _ => {
                let (mut padded, mut words) = ([0; 32], [[0; 4]; 32]);
                padded[..values.len()].copy_from_slice(values);
                block::<W>(&padded, &mut words[..W]);
                out.copy_from_slice(&words.as_flattened()[..out.len()]);
            }
        }
    }
}

#[inline(always)]
fn block<const W: usize>(values: &[u32; 32], out: &mut [[u8; 4]]) {
    let mut word = 0u64;
    let mut to = out.iter_mut();
    macro_rules! values {
        ($($i:literal)+) => { $(
            // The bits of the word so far are a constant below 32, so the value ends within the word.
            word |= u64::from(values[$i] & (u32::MAX >> (32 - W))) << ($i * W % 32);
            if $i * W % 32 + W >= 32 {
                if let Some(to) = to.next() {
                    *to = (word as u32).to_le_bytes();
                }
                word >>= 32;
            }
        )+ };
    }
    values!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31);
    debug_assert_eq!(word, 0);
}

/// Numbers of at most 32 bits are packed by the kernel for those, `narrow`.
#[inline(always)]
pub(super) fn u64_by(width: u32, values: &[u64], out: &mut [u8], narrow: impl Fn(u32, &[u32], &mut [u8])) {
    if width > 32 {
        return wide(width, values, out);
    }
    for (values, out) in values.chunks(NARROWED).zip(out.chunks_mut(NARROWED / 8 * width as usize)) {
        let mut low = [0u32; NARROWED];
        for (low, value) in low.iter_mut().zip(values) {
            *low = *value as u32;
        }
        if width == 32 {
            out.copy_from_slice(&crate::plain::as_bytes(&low)[..out.len()]);
        } else {
            narrow(width, &low[..values.len()], out);
        }
    }
}

/// See [`u64_by`].
#[inline(always)]
pub(super) fn u64(width: u32, values: &[u64], out: &mut [u8]) {
    u64_by(width, values, out, u32);
}

/// From 33 to 63 bits: each value fills a word, or begins the next.
fn wide(width: u32, values: &[u64], out: &mut [u8]) {
    let mask = u64::MAX >> (64 - width);
    let (mut word, mut bits, mut at) = (0u64, 0, 0);
    for &value in values {
        let value = value & mask;
        word |= value << bits;
        bits += width;
        if bits >= 64 {
            store(out, at, 8, word);
            at += 8;
            bits -= 64;
            // `width - bits` bits of the value are written: from 1 to 63 if any are left.
            word = if bits == 0 { 0 } else { value >> (width - bits) };
        }
    }
    if bits > 0 {
        store(out, at, bits.div_ceil(8) as usize, word);
    }
}
