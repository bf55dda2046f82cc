//! Numbers: packed, from dictionaries, as differences, in streams of bytes, compared, hashed.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "made-up values may be anything"
)]

use std::hint::black_box;

use marquetry_kernels::{
    bloom, bounds, bss, delta, dictionary, differences, gather, pack, plain, unpack, within, xxh64,
};

use super::{Case, Random, Work, count};

/// Entries of a dictionary, and of one of its segments: all of them in the first-level cache.
const ENTRIES: usize = 1000;
const SEGMENT_BITS: u32 = 8;

const STORES: &str = "stores";
const BIT_BY_BIT: &str = "a shift and a mask for each value";
const SHUFFLES: &str = "shuffles, shifts and masks: three operations for each register of values";
const BYTES: &str = "shuffles and multiplications: four operations for each register of values (AVX-512: three; portable: a shift and a mask for each value)";
const UNALIGNED: &str = "two loads, two shifts and a mask for each value, whose byte is not known ahead";
const JOINING: &str = "shifts that join neighbours, and stores that overlap";
const MULTIPLYING: &str = "multiplications that join neighbours (portable: shifts)";
const WORDS: &str = "a mask, a shift and a union for each value, of words that wait for the one before";
const LOOK_UPS: &str = "two loads and a store for each value: one value a cycle";
const SUMS: &str = "the sum: four or five shuffles for each register of values, two to five of them across its lanes (portable: each value waits for the one before)";
const TRANSPOSES: &str = "shuffles that transpose";
const TESTS: &str = "loads, comparisons, and narrowing to bits";
const PRODUCTS: &str = "products of 64 bits, of which AVX2 has none: three of 32 bits each";
const LOADS: &str = "loads";
const BLOCKS: &str =
    "a load, an operation and a store of a block for each value, at places that are not known ahead";
const BITS_OF_BLOCKS: &str = "counts of bits";

pub(super) fn add(cases: &mut Vec<Case>) {
    unpacking(cases);
    packing(cases);
    dictionaries(cases);
    deltas(cases);
    streams(cases);
    bounds(cases);
    hashes(cases);
    filters(cases);
}

/// So many values of `width` bits, in a page that goes on after them.
fn packed(bytes: usize, width: u32, bits_out: usize) -> (usize, usize, Vec<u8>) {
    let values = count(bytes, width as usize + bits_out);
    let read = values * width as usize / 8;
    (values, read, Random(1).bytes(read + 16))
}

fn unpacking(cases: &mut Vec<Case>) {
    for width in [1, 5, 10, 17, 29, 32] {
        let bound = if width == 32 { STORES } else { SHUFFLES };
        cases.push(Case::new("unpack::u32", format!("width {width}"), bound, move |bytes| {
            let (values, read, input) = packed(bytes, width, 32);
            let mut out = vec![0_u32; values];
            Work::new(values, (read, 4 * values), move || {
                unpack::u32(width, black_box(&input), &mut out).is_ok()
            })
        }));
    }
    cases.push(Case::new("unpack::u32_from", "width 5, from the third value on", SHUFFLES, |bytes| {
        let (values, read, input) = packed(bytes, 5, 32);
        let mut out = vec![0_u32; values - 3];
        Work::new(values - 3, (read, 4 * (values - 3)), move || {
            unpack::u32_from(5, black_box(&input), 3, &mut out).is_ok()
        })
    }));
    for width in [7, 20, 40, 61, 64] {
        let bound = match width {
            64 => STORES,
            61 => UNALIGNED,
            _ => SHUFFLES,
        };
        cases.push(Case::new("unpack::u64", format!("width {width}"), bound, move |bytes| {
            let (values, read, input) = packed(bytes, width, 64);
            let mut out = vec![0_u64; values];
            Work::new(values, (read, 8 * values), move || {
                unpack::u64(width, black_box(&input), &mut out).is_ok()
            })
        }));
    }
    cases.push(Case::new("unpack::u64_from", "width 20, from the third value on", SHUFFLES, |bytes| {
        let (values, read, input) = packed(bytes, 20, 64);
        let mut out = vec![0_u64; values - 3];
        Work::new(values - 3, (read, 8 * (values - 3)), move || {
            unpack::u64_from(20, black_box(&input), 3, &mut out).is_ok()
        })
    }));
    for width in [1, 3] {
        cases.push(Case::new("unpack::u8_from", format!("width {width}"), BYTES, move |bytes| {
            let (values, read, input) = packed(bytes, width, 8);
            let mut out = vec![0_u8; values];
            Work::new(values, (read, values), move || {
                unpack::u8_from(width, black_box(&input), 0, &mut out).is_ok()
            })
        }));
    }
    let msb = Case::new("unpack::msb_u16", "width 3", BIT_BY_BIT, |bytes| {
        let (values, read, input) = packed(bytes, 3, 16);
        let mut out = vec![0_u16; values];
        Work::new(values, (read, 2 * values), move || {
            unpack::msb_u16(3, black_box(&input), 0, &mut out).is_ok()
        })
    });
    cases.push(msb.of_one_form());
}

fn packing(cases: &mut Vec<Case>) {
    for width in [1, 3] {
        cases.push(Case::new("pack::u8", format!("width {width}"), MULTIPLYING, move |bytes| {
            let (values, written, mut out) = packed(bytes, width, 8);
            let input = Random(2).bytes(values);
            Work::new(values, (values, written), move || pack::u8(width, black_box(&input), &mut out).is_ok())
        }));
    }
    for width in [5, 10, 17] {
        cases.push(Case::new("pack::u32", format!("width {width}"), JOINING, move |bytes| {
            let (values, written, mut out) = packed(bytes, width, 32);
            let input = fours(values);
            Work::new(values, (4 * values, written), move || {
                pack::u32(width, black_box(&input), &mut out).is_ok()
            })
        }));
    }
    for width in [20, 57] {
        cases.push(Case::new("pack::u64", format!("width {width}"), WORDS, move |bytes| {
            let (values, written, mut out) = packed(bytes, width, 64);
            let input = Random(2).numbers(values);
            Work::new(values, (8 * values, written), move || {
                pack::u64(width, black_box(&input), &mut out).is_ok()
            })
        }));
    }
}

fn fours(values: usize) -> Vec<u32> {
    let mut random = Random(3);
    (0..values).map(|_| random.next() as u32).collect()
}

fn indices(values: usize) -> Vec<u32> {
    let mut random = Random(4);
    (0..values).map(|_| random.below(ENTRIES as u64) as u32).collect()
}

/// A dictionary in segments.
fn segments<T: Copy>(entries: &[T], width: usize) -> Vec<Vec<T>> {
    entries.chunks(width << SEGMENT_BITS).map(<[T]>::to_vec).collect()
}

fn dictionaries(cases: &mut Vec<Case>) {
    macro_rules! of_size {
        ($type:ty, $shape:literal) => {
            cases.push(Case::new("gather::values", $shape, LOOK_UPS, |bytes| {
                let values = count(bytes, 8 * (4 + size_of::<$type>()));
                let (indices, mut out) = (indices(values), vec![<$type>::default(); values]);
                let dictionary: Vec<$type> = (0..).take(ENTRIES).collect();
                Work::new(values, (4 * values, size_of::<$type>() * values), move || {
                    gather::values(&dictionary, black_box(&indices), &mut out).is_ok()
                })
            }));
        };
    }
    of_size!(u32, "4 bytes");
    of_size!(u64, "8 bytes");
    of_size!(u128, "16 bytes");
    for width in [12, 21] {
        let fixed = Case::new("gather::fixed", format!("{width} bytes"), LOOK_UPS, move |bytes| {
            let values = count(bytes, 8 * (4 + width));
            let (indices, mut out) = (indices(values), vec![0; values * width]);
            let dictionary = Random(5).bytes(ENTRIES * width);
            Work::new(values, (4 * values, width * values), move || {
                gather::fixed(&dictionary, width, black_box(&indices), &mut out).is_ok()
            })
        });
        cases.push(fixed);
    }
    let segmented = Case::new("gather::segmented_fixed", "21 bytes", LOOK_UPS, |bytes| {
        let values = count(bytes, 8 * 25);
        let (indices, mut out) = (indices(values), vec![0; values * 21]);
        let segments = segments(&Random(5).bytes(ENTRIES * 21), 21);
        Work::new(values, (4 * values, 21 * values), move || {
            gather::segmented_fixed(&segments, SEGMENT_BITS, 21, black_box(&indices), &mut out).is_ok()
        })
    });
    cases.push(segmented.of_one_form());
    cases.push(Case::new("gather::max_u32", "", LOADS, |bytes| {
        let values = count(bytes, 32);
        let numbers = fours(values);
        Work::new(values, (4 * values, 0), move || black_box(gather::max_u32(black_box(&numbers))) > 0)
    }));
    macro_rules! bounds_of {
        ($kernel:ident, $type:ty, $number:expr) => {
            cases.push(Case::new(concat!("bounds::", stringify!($kernel)), "", LOADS, |bytes| {
                let values = count(bytes, 8 * size_of::<$type>());
                let numbers: Vec<$type> = fours(values).into_iter().map($number).collect();
                Work::new(values, (size_of::<$type>() * values, 0), move || {
                    black_box(bounds::$kernel(black_box(&numbers)));
                    true
                })
            }));
        };
    }
    bounds_of!(i32, i32, u32::cast_signed);
    bounds_of!(u32, u32, std::convert::identity);
    bounds_of!(i64, i64, i64::from);
    bounds_of!(u64, u64, u64::from);
    bounds_of!(f32, f32, f32::from_bits);
    bounds_of!(f64, f64, f64::from);
    macro_rules! packed_indices {
        ($type:ty, $shape:literal) => {
            cases.push(Case::new("dictionary::decode", $shape, LOOK_UPS, |bytes| {
                let (values, read, input) = packed(bytes, 10, 8 * size_of::<$type>());
                let mut out = vec![<$type>::default(); values];
                let dictionary: Vec<$type> = (0..1 << 10).collect();
                Work::new(values, (read, size_of::<$type>() * values), move || {
                    dictionary::decode(10, black_box(&input), 0, &dictionary, &mut out).is_ok()
                })
            }));
        };
    }
    packed_indices!(u32, "4 bytes, indices of 10 bits");
    packed_indices!(u64, "8 bytes, indices of 10 bits");
    cases.push(Case::new("dictionary::decode_segmented", "8 bytes, indices of 10 bits", LOOK_UPS, |bytes| {
        let (values, read, input) = packed(bytes, 10, 64);
        let mut out = vec![0; values];
        let segments = segments(&(0..1 << 10).collect::<Vec<u64>>(), 1);
        Work::new(values, (read, 8 * values), move || {
            gather::Segmented::new(&segments, SEGMENT_BITS)
                .and_then(|all| dictionary::decode_segmented(10, black_box(&input), 0, all, &mut out))
                .is_ok()
        })
    }));
}

fn deltas(cases: &mut Vec<Case>) {
    macro_rules! of_type {
        ($type:ty, $deltas:ty, $block:ident, $miniblock:ident, $sum:ident, $name:ident, $width:ident, $kernels:expr) => {{
            let [block, miniblock, sum, differences, width_of] = $kernels;
            let bits = 8 * size_of::<$type>();
            for width in [0_u8, 7, 12, 20] {
                let shape = format!("4 miniblocks of 32, width {width}");
                cases.push(Case::new(block, shape, SUMS, move |bytes| {
                    let (values, read, input) = packed(bytes, u32::from(width), bits);
                    let mut out = vec![<$type>::default(); values];
                    Work::new(values, (read, values * bits / 8), move || {
                        let (input, mut last, mut at) = (black_box(&input), 0, 0);
                        out.chunks_mut(128).all(|out| {
                            let taken = delta::$block(&[width; 4], 32, &input[at..], -3, &mut last, out);
                            at += taken.unwrap_or_default();
                            taken.is_ok()
                        })
                    })
                }));
            }
            cases.push(Case::new(miniblock, "32 at a time, width 12", SUMS, move |bytes| {
                let (values, read, input) = packed(bytes, 12, bits);
                let mut out = vec![<$type>::default(); values];
                Work::new(values, (read, values * bits / 8), move || {
                    let (input, mut last) = (black_box(&input), 0);
                    let miniblocks = input.chunks_exact(48).zip(out.chunks_mut(32));
                    miniblocks.fold(true, |is_ok, (input, out)| {
                        is_ok & delta::$miniblock(12, input, 0, -3, &mut last, out).is_ok()
                    })
                })
            }));
            cases.push(Case::new(sum, "", SUMS, move |bytes| {
                let values = count(bytes, 2 * bits);
                let deltas: Vec<$deltas> = (0..4).cycle().take(values).collect();
                let mut out = vec![<$type>::default(); values];
                Work::new(values, (values * bits / 8, values * bits / 8), move || {
                    delta::$sum(&mut 0, -3, black_box(&deltas), &mut out).is_ok()
                })
            }));
            cases.push(Case::new(differences, "", STORES, move |bytes| {
                let values = count(bytes, 2 * bits);
                let numbers: Vec<$type> =
                    Random(6).numbers(values).into_iter().map(|value| value as $type).collect();
                let mut out = vec![<$deltas>::default(); values];
                Work::new(values, (values * bits / 8, values * bits / 8), move || {
                    differences::$name(0, black_box(&numbers), &mut out).is_ok()
                })
            }));
            let width = Case::new(width_of, "", LOADS, move |bytes| {
                let values = count(bytes, bits);
                let numbers: Vec<$deltas> =
                    Random(6).numbers(values).into_iter().map(|value| value as $deltas).collect();
                Work::new(values, (values * bits / 8, 0), move || {
                    black_box(differences::$width(black_box(&numbers))) > 0
                })
            });
            cases.push(width.of_one_form());
        }};
    }
    of_type!(
        i32,
        u32,
        block_i32,
        miniblock_i32,
        prefix_sum_i32,
        i32,
        width_u32,
        [
            "delta::block_i32",
            "delta::miniblock_i32",
            "delta::prefix_sum_i32",
            "differences::i32",
            "differences::width_u32"
        ]
    );
    of_type!(
        i64,
        u64,
        block_i64,
        miniblock_i64,
        prefix_sum_i64,
        i64,
        width_u64,
        [
            "delta::block_i64",
            "delta::miniblock_i64",
            "delta::prefix_sum_i64",
            "differences::i64",
            "differences::width_u64"
        ]
    );
}

fn streams(cases: &mut Vec<Case>) {
    let copy = Case::new("plain::copy", "8 bytes, not aligned", STORES, |bytes| {
        let values = count(bytes, 128);
        let (input, mut out) = (Random(7).bytes(8 * values + 1), vec![0_u64; values]);
        Work::new(values, (8 * values, 8 * values), move || {
            plain::copy(&black_box(&input)[1..], &mut out) == values
        })
    });
    cases.push(copy);
    for width in [2, 4, 8, 16] {
        cases.push(Case::new("bss::decode", format!("{width} bytes"), TRANSPOSES, move |bytes| {
            let values = count(bytes, 16 * width);
            let (input, mut out) = (Random(7).bytes(width * values), vec![0; width * values]);
            Work::new(values, (width * values, width * values), move || {
                bss::decode(width, black_box(&input), values, 0, &mut out).is_ok()
            })
        }));
    }
    cases.push(Case::new("bss::values", "4 bytes", TRANSPOSES, |bytes| {
        let values = count(bytes, 64);
        let (input, mut out) = (Random(7).bytes(4 * values), vec![0_f32; values]);
        Work::new(values, (4 * values, 4 * values), move || {
            bss::values(black_box(&input), values, 0, &mut out).is_ok()
        })
    }));
    for width in [4, 8, 16] {
        cases.push(Case::new("bss::split", format!("{width} bytes"), TRANSPOSES, move |bytes| {
            let values = count(bytes, 16 * width);
            let (input, mut out) = (Random(7).bytes(width * values), vec![0; width * values]);
            Work::new(values, (width * values, width * values), move || {
                bss::split(width, black_box(&input), values, &mut out).is_ok()
            })
        }));
    }
}

fn bounds(cases: &mut Vec<Case>) {
    macro_rules! of_type {
        ($type:ty, $kernel:literal, $numbers:expr, $values:ident, $out:ident, $call:expr) => {
            cases.push(Case::new($kernel, "", TESTS, |bytes| {
                let values = count(bytes, 8 * size_of::<$type>());
                let numbers: Vec<$type> = Random(8).numbers(values).into_iter().map($numbers).collect();
                let mut words = vec![0; values / 64];
                Work::new(values, (size_of::<$type>() * values, values / 8), move || {
                    let ($values, $out) = (black_box(&numbers[..]), &mut words[..]);
                    $call.is_ok()
                })
            }));
        };
    }
    of_type!(u32, "within::u32", |bits| bits as u32, values, out, {
        within::u32(values, [1 << 20, 1 << 31], out)
    });
    of_type!(i32, "within::i32", |bits| bits as i32, values, out, {
        within::i32(values, [-9, 1 << 30], false, out)
    });
    of_type!(i64, "within::i64", |bits| bits as i64, values, out, {
        within::i64(values, [-9, 1 << 62], false, out)
    });
    of_type!(f32, "within::f32", |bits| (bits >> 40) as f32, values, out, {
        within::f32(values, [9.0, 1e6], false, out)
    });
    of_type!(f64, "within::f64", |bits| (bits >> 20) as f64, values, out, {
        within::f64(values, [9.0, 1e12], false, out)
    });
}

fn hashes(cases: &mut Vec<Case>) {
    cases.push(Case::new("xxh64::of_fours", "", PRODUCTS, |bytes| {
        let values = count(bytes, 96);
        let (numbers, mut out) = (fours(values), vec![0; values]);
        Work::new(values, (4 * values, 8 * values), move || {
            xxh64::of_fours(black_box(&numbers), &mut out).is_ok()
        })
    }));
    cases.push(Case::new("xxh64::of_eights", "", PRODUCTS, |bytes| {
        let values = count(bytes, 128);
        let (numbers, mut out) = (Random(9).numbers(values), vec![0; values]);
        Work::new(values, (8 * values, 8 * values), move || {
            xxh64::of_eights(black_box(&numbers), &mut out).is_ok()
        })
    }));
    let strings = Case::new("xxh64::of_bytes", "25 bytes", "products that wait for one another", |bytes| {
        let values = count(bytes, 8 * 25);
        let text = Random(9).bytes(25 * values);
        Work::new(values, (25 * values, 0), move || {
            black_box(&text).chunks(25).fold(0, |all, value| all ^ xxh64::of_bytes(value)) != 1
        })
    });
    cases.push(strings.of_one_form());
}

/// Blocks of a filter that is within the first-level cache.
const FILTER_BLOCKS: u32 = 128;

fn filters(cases: &mut Vec<Case>) {
    let blocks = |bytes| -> Vec<bloom::Block> {
        let mut random = Random(10);
        (0..count(bytes, 8 * 32)).map(|_| std::array::from_fn(|_| random.next() as u32)).collect()
    };
    cases.push(Case::new("bloom::insert", "a filter of 4 KiB", BLOCKS, |bytes| {
        let values = count(bytes, 64);
        let hashes = Random(10).numbers(values);
        let mut filter = vec![vec![[0; 8]; FILTER_BLOCKS as usize]];
        Work::new(values, (8 * values, 0), move || {
            bloom::insert(&mut filter, FILTER_BLOCKS.ilog2(), FILTER_BLOCKS, black_box(&hashes)).is_ok()
        })
    }));
    cases.push(Case::new("bloom::matches", "blocks", TESTS, |bytes| {
        let values = count(bytes, 8 * 32);
        let filter = Random(10).bytes(32 * values);
        let mut out = vec![0; values / 64];
        Work::new(values, (32 * values, values / 8), move || {
            bloom::matches(black_box(&filter).as_chunks().0, 0x1234_5678_9abc_def1, &mut out).is_ok()
        })
    }));
    cases.push(Case::new("bloom::fold", "blocks", LOADS, move |bytes| {
        let mut filter = blocks(bytes);
        Work::new(filter.len(), (32 * filter.len(), 16 * filter.len()), move || {
            bloom::fold(black_box(&mut filter));
            true
        })
    }));
    cases.push(Case::new("bloom::rate", "blocks", BITS_OF_BLOCKS, move |bytes| {
        let filter = blocks(bytes);
        Work::new(filter.len(), (32 * filter.len(), 0), move || {
            black_box(bloom::rate(black_box(&filter))) > 0
        })
    }));
    cases.push(Case::new("bloom::folded_rate", "blocks", BITS_OF_BLOCKS, move |bytes| {
        let filter = blocks(bytes);
        Work::new(filter.len(), (32 * filter.len(), 0), move || {
            black_box(bloom::folded_rate(black_box(&filter))) > 0
        })
    }));
}
