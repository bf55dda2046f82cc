//! Nulls, lists and bits.
#![expect(clippy::cast_possible_truncation, reason = "made-up values may be anything")]

use std::hint::black_box;

use marquetry_kernels::levels::{Entries, Slots};
use marquetry_kernels::{bits, compact, levels, spread};

use super::{Case, Random, Work, count};

const STORES: &str = "stores";
const LOADS: &str = "loads";
const WORDS: &str = "a shift and two loads for each word of 64 bits";
const TESTS: &str = "loads; a comparison and a mask for each register of levels";
const RANKS: &str = "counts of bits, and sums that wait for the one before";
const EXPANDS: &str =
    "an expansion by a table of shuffles (AVX-512: by one instruction) for each register of values";
const COMPRESSES: &str = "a compression by a table of shuffles (AVX-512: by one instruction; portable: value by value, a store each) for each register of values";
const EXTRACTS: &str = "an extraction of bits for each word, and a merge that waits for the one before";
const RUNS: &str = "a copy for each run of values";

pub(super) fn add(cases: &mut Vec<Case>) {
    bitmaps(cases);
    flat_levels(cases);
    nested_levels(cases);
    spreading(cases);
    compacting(cases);
}

/// A bitmap of so many bits, of which about so many of a hundred are set.
fn validity(values: usize, present: u64) -> Vec<u8> {
    let mut random = Random(41);
    let mut bitmap = vec![0_u8; values.div_ceil(8)];
    for at in 0..values {
        bitmap[at / 8] |= u8::from(random.below(100) < present) << (at % 8);
    }
    bitmap
}

fn ones(bitmap: &[u8]) -> usize {
    bitmap.iter().map(|byte| byte.count_ones() as usize).sum()
}

fn level_bytes(values: usize, seed: u64, below: u64) -> Vec<u8> {
    let mut random = Random(seed);
    (0..values).map(|_| random.below(below) as u8).collect()
}

fn bitmaps(cases: &mut Vec<Case>) {
    for (shape, from, to, bound) in [("bytes to bytes", 0, 8, STORES), ("not aligned", 3, 5, WORDS)] {
        let copy = Case::new("bits::copy", shape, bound, move |bytes| {
            let values = count(bytes, 2);
            let (input, mut out) = (Random(42).bytes(values / 8 + 8), vec![0; values / 8 + 8]);
            Work::new(values, (values / 8, values / 8), move || {
                bits::copy(black_box(&input), from, &mut out, to, values).is_ok()
            })
        });
        cases.push(copy.of_one_form());
    }
    let fill = Case::new("bits::fill", "not aligned", STORES, |bytes| {
        let values = count(bytes, 1);
        let mut out = vec![0; values / 8 + 8];
        Work::new(values, (0, values / 8), move || bits::fill(black_box(&mut out), 3, values, true).is_ok())
    });
    cases.push(fill.of_one_form());
    cases.push(Case::new("bits::count_ones", "not aligned", LOADS, |bytes| {
        let values = count(bytes, 1);
        let input = Random(42).bytes(values / 8 + 8);
        Work::new(values, (values / 8, 0), move || bits::count_ones(black_box(&input), 3, values).is_ok())
    }));
    macro_rules! from_levels {
        ($type:ty, $shape:literal) => {
            cases.push(Case::new("bits::from_levels", $shape, TESTS, |bytes| {
                let values = count(bytes, 8 * size_of::<$type>() + 1);
                let input: Vec<$type> = level_bytes(values, 43, 2).into_iter().map(<$type>::from).collect();
                let mut out = vec![0; values / 8 + 8];
                Work::new(values, (size_of::<$type>() * values, values / 8), move || {
                    bits::from_levels(black_box(&input), 1, &mut out, 3).is_ok()
                })
            }));
        };
    }
    from_levels!(u8, "levels of a byte");
    from_levels!(u16, "levels of two bytes");
    cases.push(Case::new("bits::unpack_bool", "not aligned", STORES, |bytes| {
        let values = count(bytes, 9);
        let (input, mut out) = (Random(42).bytes(values / 8 + 8), vec![0; values]);
        Work::new(values, (values / 8, values), move || {
            bits::unpack_bool(black_box(&input), 3, &mut out).is_ok()
        })
    }));
}

fn flat_levels(cases: &mut Vec<Case>) {
    cases.push(Case::new("levels::count", "", TESTS, |bytes| {
        let values = count(bytes, 8);
        let input = level_bytes(values, 44, 2);
        Work::new(values, (values, 0), move || black_box(levels::count(black_box(&input), 1)) > 0)
    }));
    cases.push(Case::new("levels::find_below", "of which there are too few", TESTS, |bytes| {
        let values = count(bytes, 8);
        let input = level_bytes(values, 44, 2);
        Work::new(values, (values, 0), move || levels::find_below(black_box(&input), 1, values).is_none())
    }));
    cases.push(Case::new("levels::find_from", "of which there are too few", TESTS, |bytes| {
        let values = count(bytes, 8);
        let input = level_bytes(values, 44, 2);
        Work::new(values, (values, 0), move || levels::find_from(black_box(&input), 1, values).is_none())
    }));
    cases.push(Case::new("levels::validity", "rows", TESTS, |bytes| {
        let values = count(bytes, 9);
        let definition = level_bytes(values, 44, 2);
        let mut out = vec![0; values / 8];
        Work::new(values, (values, values / 8), move || {
            let entries = Entries { definition: black_box(&definition), repetition: None };
            levels::validity(entries, Slots { repetition: 0, definition: 0 }, 1, &mut out, 0).is_ok()
        })
    }));
}

/// Entries of lists that have three elements on the average: their definition and repetition levels.
fn lists(values: usize) -> (Vec<u8>, Vec<u8>) {
    let mut random = Random(45);
    let repetition: Vec<u8> = (0..values).map(|_| u8::from(random.below(3) > 0)).collect();
    (vec![3; values], repetition)
}

const ROWS: Slots = Slots { repetition: 0, definition: 0 };
const ELEMENTS: Slots = Slots { repetition: 1, definition: 2 };

fn nested_levels(cases: &mut Vec<Case>) {
    cases.push(Case::new("levels::validity", "lists", RANKS, |bytes| {
        let values = count(bytes, 17);
        let (definition, repetition) = lists(values);
        let mut out = vec![0; values / 8];
        Work::new(values, (2 * values, values / 8), move || {
            let entries = Entries { definition: black_box(&definition), repetition: Some(&repetition) };
            levels::validity(entries, ROWS, 1, &mut out, 0).is_ok()
        })
    }));
    cases.push(Case::new("levels::offsets", "lists", RANKS, |bytes| {
        // An offset for each third entry.
        let values = count(bytes, 8 * 2 + 11);
        let (definition, repetition) = lists(values);
        let rows = repetition.iter().filter(|level| **level == 0).count();
        let mut out = vec![0; values];
        Work::new(values, (2 * values, 4 * rows), move || {
            let entries = Entries { definition: black_box(&definition), repetition: Some(&repetition) };
            levels::offsets(entries, ROWS, ELEMENTS, 0, &mut out).is_ok()
        })
    }));
    cases.push(Case::new("levels::differ", "which they do not", LOADS, |bytes| {
        let values = count(bytes, 32);
        let (left, right) = (lists(values), lists(values));
        Work::new(values, (4 * values, 0), move || {
            let left = Entries { definition: black_box(&left.0), repetition: Some(&left.1) };
            let right = Entries { definition: &right.0, repetition: Some(&right.1) };
            levels::differ(left, right, 2).is_none()
        })
    }));
    cases.push(Case::new("levels::keep", "a third", COMPRESSES, |bytes| {
        let values = count(bytes, 8 * 3);
        let (definition, repetition) = lists(values);
        let rows = repetition.iter().filter(|level| **level == 0).count();
        let (mut definition_out, mut repetition_out) = (vec![0; values], vec![0; values]);
        Work::new(values, (2 * values, 2 * rows), move || {
            let kept = levels::keep(
                black_box(&definition),
                &repetition,
                0,
                &mut definition_out,
                &mut repetition_out,
            );
            kept == Ok(rows)
        })
    }));
    cases.push(Case::new("levels::are_elements", "", TESTS, |bytes| {
        let values = count(bytes, 16);
        let (definition, repetition) = lists(values);
        Work::new(values, (2 * values, 0), move || {
            levels::are_elements(black_box(&definition), &repetition, &[2], None)
        })
    }));
}

fn spreading(cases: &mut Vec<Case>) {
    macro_rules! of_size {
        ($type:ty, $present:literal, $shape:literal) => {
            cases.push(Case::new("spread::in_place", $shape, EXPANDS, |bytes| {
                let values = count(bytes, 8 * size_of::<$type>() + 1);
                let bitmap = validity(values, $present);
                let dense = ones(&bitmap);
                let mut slots = vec![<$type>::default(); values];
                let read = size_of::<$type>() * dense + values / 8;
                Work::new(values, (read, size_of::<$type>() * values), move || {
                    spread::in_place(black_box(&mut slots), dense, &bitmap, 0).is_ok()
                })
            }));
        };
    }
    of_size!(u16, 90, "2 bytes, 90 % present");
    of_size!(u32, 90, "4 bytes, 90 % present");
    of_size!(u64, 90, "8 bytes, 90 % present");
    of_size!(u64, 50, "8 bytes, 50 % present");
    of_size!(u128, 90, "16 bytes, 90 % present");
    cases.push(Case::new("spread::copy", "8 bytes, 90 % present", EXPANDS, |bytes| {
        let values = count(bytes, 8 * 15 + 1);
        let bitmap = validity(values, 90);
        let dense = Random(46).numbers(ones(&bitmap));
        let mut slots = vec![0; values];
        let read = 8 * dense.len() + values / 8;
        Work::new(values, (read, 8 * values), move || {
            spread::copy(black_box(&dense), &mut slots, &bitmap, 0).is_ok()
        })
    }));
    let copy_bits = Case::new("spread::copy_bits", "90 % present", EXPANDS, |bytes| {
        let values = count(bytes, 3);
        let bitmap = validity(values, 90);
        let (dense, mut out) = (Random(46).bytes(values / 8 + 8), vec![0; values / 8 + 8]);
        Work::new(values, (values / 4, values / 8), move || {
            spread::copy_bits((black_box(&dense), 3), &mut out, 0, (&bitmap, 0), values).is_ok()
        })
    });
    cases.push(copy_bits);
}

fn compacting(cases: &mut Vec<Case>) {
    macro_rules! of_size {
        ($type:ty, $present:literal, $shape:literal) => {
            cases.push(Case::new("compact::values", $shape, COMPRESSES, |bytes| {
                let values = count(bytes, 8 * 2 * size_of::<$type>() + 1);
                let bitmap = validity(values, $present);
                let (slots, mut out) = (vec![<$type>::default(); values], vec![<$type>::default(); values]);
                let read = size_of::<$type>() * values + values / 8;
                Work::new(values, (read, size_of::<$type>() * ones(&bitmap)), move || {
                    compact::values(black_box(&slots), &bitmap, 0, &mut out).is_ok()
                })
            }));
        };
    }
    of_size!(u32, 90, "4 bytes, 90 % present");
    of_size!(u64, 90, "8 bytes, 90 % present");
    of_size!(u64, 50, "8 bytes, 50 % present");
    let in_place = Case::new("compact::in_place", "8 bytes, 90 % kept", COMPRESSES, |bytes| {
        let values = count(bytes, 65);
        let bitmap = validity(values, 90);
        let mut slots = vec![0_u64; values];
        Work::new(values, (8 * values + values / 8, 8 * ones(&bitmap)), move || {
            compact::in_place(black_box(&mut slots), &bitmap, 0).is_ok()
        })
    });
    cases.push(in_place);
    let fixed_in_place = Case::new("compact::fixed_in_place", "12 bytes, 90 % kept", RUNS, |bytes| {
        let values = count(bytes, 8 * 12 + 1);
        let bitmap = validity(values, 90);
        let mut slots = vec![0; 12 * values];
        Work::new(values, (12 * values + values / 8, 12 * ones(&bitmap)), move || {
            compact::fixed_in_place(12, black_box(&mut slots), &bitmap, 0).is_ok()
        })
    });
    cases.push(fixed_in_place.of_one_form());
    let fixed = Case::new("compact::fixed", "12 bytes, 90 % present", RUNS, |bytes| {
        let values = count(bytes, 8 * 24 + 1);
        let bitmap = validity(values, 90);
        let (slots, mut out) = (Random(47).bytes(12 * values), vec![0; 12 * values]);
        Work::new(values, (12 * values + values / 8, 12 * ones(&bitmap)), move || {
            compact::fixed(12, black_box(&slots), &bitmap, 0, &mut out).is_ok()
        })
    });
    cases.push(fixed.of_one_form());
    cases.push(Case::new("compact::bits", "90 % present", EXTRACTS, |bytes| {
        let values = count(bytes, 3);
        let bitmap = validity(values, 90);
        let (input, mut out) = (Random(47).bytes(values / 8), vec![0; values / 8]);
        Work::new(values, (values / 4, ones(&bitmap) / 8), move || {
            // Part of the work: what is written must be zero before.
            out.fill(0);
            compact::bits(black_box(&input), 0, &bitmap, 0, values, &mut out).is_ok()
        })
    }));
}
