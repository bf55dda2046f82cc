//! Byte strings, and what is done with every byte.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "lengths here are small, and made-up values may be anything"
)]

use std::hint::black_box;

use marquetry_kernels::{crc32, marks, prefix, strings, utf8};

use super::{Case, Random, Work, count};

const NEXT: &str = "a length's load, which the next value's place waits for: 5 cycles and two additions";
const SAME: &str = "a load and a store of 16 bytes for each value, whose length is foreseen";
const PLACES: &str = "a load and a store of 16 bytes for each value, and a sum that waits for the one before";
const COPIES: &str = "loads and stores of any place, and a sum that waits for the one before";
const BRANCH: &str = "loads, and a branch that is mispredicted where a value's end cannot be foreseen";
const MASKS: &str = "four comparisons for each 32 or 64 bytes";
const CARRYLESS: &str = "products without carry: four of 16 bytes at a time";
const LOADS: &str = "loads";
const CLASSES: &str = "some twenty operations for each register of bytes";

/// Lengths of values, from the least to the most, any of them as likely.
const SHAPES: [(&str, u64, u64); 4] =
    [("8 bytes", 8, 8), ("0 to 12 bytes", 0, 12), ("5 to 30 bytes", 5, 30), ("80 bytes", 80, 80)];

pub(super) fn add(cases: &mut Vec<Case>) {
    for shape in SHAPES {
        views(cases, shape);
    }
    for shape in SHAPES {
        appending(cases, shape);
    }
    prefixes(cases);
    bytes(cases);
}

fn lengths(bytes: usize, (_, least, most): (&str, u64, u64), other_bytes: usize) -> Vec<usize> {
    let mut random = Random(21);
    let mean = (least + most) as usize / 2;
    (0..count(bytes, 8 * (mean + other_bytes)))
        .map(|_| (least + random.below(most - least + 1)) as usize)
        .collect()
}

fn views(cases: &mut Vec<Case>, shape: (&'static str, u64, u64)) {
    let bound = if shape.1 == shape.2 { SAME } else { NEXT };
    let plain = Case::new("strings::plain", shape.0, bound, move |bytes| {
        let lengths = lengths(bytes, shape, 4 + 16);
        let mut input = Vec::new();
        for &length in &lengths {
            input.extend_from_slice(&(length as u32).to_le_bytes());
            input.extend_from_slice(&Random(22 + length as u64).bytes(length));
        }
        let (values, read) = (lengths.len(), input.len());
        let mut out = vec![0; values];
        Work::new(values, (read, 16 * values), move || {
            strings::plain(black_box(&input), &mut 0, 1, 0, 1 << 20, &mut out) == Ok(values)
        })
    });
    cases.push(plain.of_one_form());
    let by_length = Case::new("strings::lengths_to_views", shape.0, PLACES, move |bytes| {
        let lengths = lengths(bytes, shape, 4 + 16);
        let input = Random(23).bytes(lengths.iter().sum());
        let (values, read) = (lengths.len(), 4 * lengths.len() + input.len());
        let lengths: Vec<i32> = lengths.into_iter().map(|length| length as i32).collect();
        let mut out = vec![0; values];
        Work::new(values, (read, 16 * values), move || {
            strings::lengths_to_views(black_box(&lengths), &input, &mut 0, 1, 0, &mut out) == Ok(values)
        })
    });
    cases.push(by_length.of_one_form());
}

fn appending(cases: &mut Vec<Case>, shape: (&'static str, u64, u64)) {
    let (_, least, most) = shape;
    let long = if most <= strings::INLINE_MAX as u64 { 0 } else { (least + most) as usize / 2 };
    let append = Case::new("strings::append", shape.0, COPIES, move |bytes| {
        let lengths = lengths(bytes, shape, 4 + 16 + long);
        let text = Random(24).bytes(lengths.iter().sum::<usize>() + 32);
        let (mut at, mut read) = (0, 0);
        let mut views = Vec::new();
        for length in lengths {
            views.push(strings::view(&text[at..at + length], 0, at as u32));
            at += length;
            read += if length > strings::INLINE_MAX { 16 + length } else { 16 };
        }
        let written = at + 4 * views.len();
        let mut out = Vec::with_capacity(written + strings::APPEND_SLACK);
        let buffers = [text];
        Work::new(views.len(), (read, written), move || {
            out.clear();
            strings::append::<true>(black_box(&views), &buffers, &mut out).is_ok()
        })
    });
    cases.push(append.of_one_form());
}

fn prefixes(cases: &mut Vec<Case>) {
    let join = Case::new("strings::join", "20 bytes as before, 8 others", COPIES, |bytes| {
        let values = count(bytes, 8 * (8 + 8 + 28));
        let mut prefixes = vec![20; values];
        prefixes[0] = 0;
        let mut suffixes = vec![8; values];
        suffixes[0] = 28;
        let data = Random(25).bytes(8 * values + 20);
        let mut out = Vec::with_capacity(28 * values + strings::APPEND_SLACK);
        Work::new(values, (8 * values + data.len(), 28 * values), move || {
            out.clear();
            let most = (1 << 20, usize::MAX);
            strings::join(black_box(&prefixes), &suffixes, &data, &[], most, &mut out).values == values
        })
    });
    cases.push(join.of_one_form());
    let common = Case::new("prefix::common", "60 of 80 bytes", BRANCH, |bytes| {
        let values = count(bytes, 8 * 80);
        let mut text = Random(26).bytes(80).repeat(values);
        for (at, value) in text.chunks_mut(80).enumerate() {
            value[60] = at as u8;
        }
        Work::new(values - 1, (160 * (values - 1), 0), move || {
            let text = black_box(&text);
            let pairs = text.chunks(80).zip(text[80..].chunks(80));
            pairs.fold(0, |all, (one, other)| all + prefix::common(one, other)) == 60 * (values - 1)
        })
    });
    cases.push(common.of_one_form());
}

fn bytes(cases: &mut Vec<Case>) {
    cases.push(Case::new("marks::find", "four kinds of bytes", MASKS, |bytes| {
        let blocks = count(bytes, 8 * (64 + 32));
        let (text, mut out) = (Random(27).bytes(64 * blocks), vec![[0; 4]; blocks]);
        Work::new(64 * blocks, (64 * blocks, 32 * blocks), move || {
            marks::find(black_box(&text), [b',', b'"', b'\n', b'\r'], &mut out) == blocks
        })
    }));
    let checksum = Case::new("crc32::crc32", "", CARRYLESS, |bytes| {
        let text = Random(28).bytes(bytes);
        Work::new(bytes, (bytes, 0), move || black_box(crc32(0, black_box(&text))) != 1)
    });
    cases.push(checksum.of_one_form());
    let ascii = Case::new("utf8::valid", "ASCII", LOADS, |bytes| {
        let text = vec![b'a'; bytes];
        Work::new(bytes, (bytes, 0), move || utf8::valid(black_box(&text)))
    });
    cases.push(ascii.of_one_form());
    let mixed = |bytes: usize| "Ünïcode, größer als ASCII — ".repeat(bytes / 34 + 1).into_bytes();
    let valid = Case::new("utf8::valid", "a fifth of other characters", CLASSES, move |bytes| {
        let text = mixed(bytes);
        Work::new(text.len(), (text.len(), 0), move || utf8::valid(black_box(&text)))
    });
    cases.push(valid.of_one_form());
    let error = Case::new("utf8::error_at", "a fifth of other characters", CLASSES, move |bytes| {
        let text = mixed(bytes);
        Work::new(text.len(), (text.len(), 0), move || utf8::error_at(black_box(&text)).is_none())
    });
    cases.push(error.of_one_form());
}
