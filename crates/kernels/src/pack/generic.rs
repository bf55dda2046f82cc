//! The portable twin: safe Rust.

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

/// Eight values take exactly `width` bytes; if the width is a constant, so are all shifts and words.
pub(super) fn u64(width: u32, values: &[u64], out: &mut [u8]) {
    macro_rules! by_width {
        ($($w:literal)+) => {
            match width {
                $($w => eights::<$w>(values, out),)+
                _ => {}
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63);
}

fn eights<const W: usize>(values: &[u64], out: &mut [u8]) {
    for (number, eight) in values.chunks(8).enumerate() {
        let out = &mut out[number * W..];
        // What is written beyond the eight values is written over by the next ones.
        match (<&[u64; 8]>::try_from(eight), out.get_mut(..W.div_ceil(8) * 8)) {
            (Ok(eight), Some(out)) => join::<W>(eight, out.as_chunks_mut::<8>().0),
            _ => {
                let (mut padded, mut words) = ([0; 8], [[0; 8]; 8]);
                padded[..eight.len()].copy_from_slice(eight);
                join::<W>(&padded, &mut words);
                let take = W.min(out.len());
                out[..take].copy_from_slice(&words.as_flattened()[..take]);
            }
        }
    }
}

#[inline(always)]
fn join<const W: usize>(values: &[u64; 8], out: &mut [[u8; 8]]) {
    let mut word = 0u64;
    let mut to = out.iter_mut();
    macro_rules! values {
        ($($i:literal)+) => { $(
            let value = values[$i] & (u64::MAX >> (64 - W));
            let bit = $i * W % 64;
            word |= value << bit;
            if bit + W >= 64 {
                if let Some(to) = to.next() {
                    *to = word.to_le_bytes();
                }
                word = if bit + W == 64 { 0 } else { value >> (64 - bit) };
            }
        )+ };
    }
    values!(0 1 2 3 4 5 6 7);
    if !W.is_multiple_of(8)
        && let Some(to) = to.next()
    {
        *to = word.to_le_bytes();
    }
}
