//! The kernels, on as many values as a batch of the reader has.
#![expect(clippy::cast_possible_truncation, reason = "made-up values may be anything")]

use std::hint::black_box;

use marquetry_kernels::levels::{Entries, Slots};
use marquetry_kernels::{
    Error, bits, bss, compact, crc32, delta, dictionary, differences, gather, levels, pack, plain, spread,
    strings, unpack, utf8, within, xxh64,
};

use super::{Cases, Random};

const BATCH: usize = 8192;

pub(super) fn all(cases: &mut Cases) -> Result<(), String> {
    integers(cases)?;
    dictionaries(cases)?;
    deltas(cases)?;
    fixed_width(cases)?;
    byte_strings(cases)?;
    nulls(cases)?;
    bytes(cases)
}

fn integers(cases: &mut Cases) -> Result<(), String> {
    let input = Random(1).bytes(BATCH * 8 + 8);
    let (mut narrow, mut wide, mut packed) = (vec![0_u32; BATCH], vec![0_u64; BATCH], vec![0; BATCH * 8]);
    for width in [1, 5, 10, 17, 32] {
        cases.case(&format!("unpack::u32, width {width}"), &input, || {
            unpack::u32(width, black_box(&input), &mut narrow).map(drop)
        })?;
        cases.case(&format!("pack::u32, width {width}"), &input, || {
            pack::u32(width, black_box(&narrow), &mut packed).map(drop)
        })?;
    }
    for width in [7, 20, 57] {
        cases.case(&format!("unpack::u64, width {width}"), &input, || {
            unpack::u64(width, black_box(&input), &mut wide).map(drop)
        })?;
    }
    for width in [1, 3, 7] {
        let mut bytes = vec![0; BATCH];
        cases.case(&format!("unpack::u8_from, width {width}"), &input, || {
            unpack::u8_from(width, black_box(&input), 0, &mut bytes)
        })?;
        let bytes = &input[..BATCH];
        cases.case(&format!("pack::u8, width {width}"), bytes, || {
            pack::u8(width, black_box(bytes), &mut packed).map(drop)
        })?;
    }
    // The widths that have no shuffle of their own.
    cases.case("unpack::u32, width 29", &input, || unpack::u32(29, black_box(&input), &mut narrow))?;
    cases.case("unpack::u64, width 61", &input, || unpack::u64(61, black_box(&input), &mut wide))?;
    let numbers: Vec<u64> = (0..BATCH as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    for width in [20, 57] {
        cases.case(&format!("pack::u64, width {width}"), plain::as_bytes(&numbers), || {
            pack::u64(width, black_box(&numbers), &mut packed).map(drop)
        })?;
    }
    Ok(())
}

fn dictionaries(cases: &mut Cases) -> Result<(), String> {
    let mut random = Random(2);
    let packed = random.bytes(BATCH * 2);
    let (mut out4, mut out8) = (vec![0_u32; BATCH], vec![0_u64; BATCH]);
    let indices: Vec<u32> = (0..BATCH).map(|_| random.below(1000) as u32).collect();
    let (fours, eights): (Vec<u32>, Vec<u64>) = ((0..1024).collect(), (0..1024).collect());
    cases.case("gather::values, 4 bytes", plain::as_bytes(&indices), || {
        gather::values(&fours, black_box(&indices), &mut out4).map(drop)
    })?;
    cases.case("gather::values, 8 bytes", plain::as_bytes(&indices), || {
        gather::values(&eights, black_box(&indices), &mut out8).map(drop)
    })?;
    cases.case("dictionary::decode, 4 bytes, width 10", &packed, || {
        dictionary::decode(10, black_box(&packed), 0, &fours, &mut out4).map(drop)
    })?;
    cases.case("dictionary::decode, 8 bytes, width 10", &packed, || {
        dictionary::decode(10, black_box(&packed), 0, &eights, &mut out8).map(drop)
    })
}

fn deltas(cases: &mut Cases) -> Result<(), String> {
    let (mut fours, mut eights) = (vec![0_i32; BATCH], vec![0_i64; BATCH]);
    for width in [0_u8, 7, 12, 20] {
        let input = Random(3).bytes(BATCH * usize::from(width) / 8 + 8);
        let widths = [width; 4];
        cases.case(&format!("delta::block_i32, width {width}"), &input, || {
            let (mut last, mut at) = (0, 0);
            for out in fours.chunks_mut(128) {
                at += delta::block_i32(&widths, 32, black_box(&input[at..]), -3, &mut last, out)?;
            }
            Ok::<(), Error>(())
        })?;
        cases.case(&format!("delta::block_i64, width {width}"), &input, || {
            let (mut last, mut at) = (0, 0);
            for out in eights.chunks_mut(128) {
                at += delta::block_i64(&widths, 32, black_box(&input[at..]), -3, &mut last, out)?;
            }
            Ok::<(), Error>(())
        })?;
    }
    let (mut out4, mut out8) = (vec![0; BATCH], vec![0; BATCH]);
    cases.case("differences::i32", plain::as_bytes(&fours), || {
        differences::i32(0, black_box(&fours), &mut out4).map(drop)
    })?;
    cases.case("differences::i64", plain::as_bytes(&eights), || {
        differences::i64(0, black_box(&eights), &mut out8).map(drop)
    })?;
    cases.case("within::u32", plain::as_bytes(&out4), || {
        within::u32(black_box(&out4), [100, 1000], &mut out8[..BATCH / 64])
    })
}

fn fixed_width(cases: &mut Cases) -> Result<(), String> {
    let input = Random(4).bytes(BATCH * 16 + 8);
    let (mut fours, mut eights) = (vec![0_i32; BATCH], vec![0_f64; BATCH]);
    cases.case("plain::copy, 4 bytes", &input, || {
        black_box(plain::copy(black_box(&input[1..]), &mut fours));
        Ok::<(), Error>(())
    })?;
    cases.case("plain::copy, 8 bytes", &input, || {
        black_box(plain::copy(black_box(&input[1..]), &mut eights));
        Ok::<(), Error>(())
    })?;
    for width in [4, 8, 16] {
        let mut out = vec![0; BATCH * width];
        cases.case(&format!("bss::decode, width {width}"), &input, || {
            bss::decode(width, black_box(&input[..BATCH * width]), BATCH, 0, &mut out).map(drop)
        })?;
    }
    let mut hashes = vec![0; BATCH];
    let numbers: Vec<u64> = (0..BATCH as u64).collect();
    for width in [4, 8] {
        let (values, mut out) = (&input[..BATCH * width], vec![0; BATCH * width]);
        cases.case(&format!("bss::split, width {width}"), values, || {
            bss::split(width, black_box(values), BATCH, &mut out)
        })?;
    }
    cases.case("xxh64::of_eights", plain::as_bytes(&numbers), || {
        xxh64::of_eights(black_box(&numbers), &mut hashes).map(drop)
    })
}

fn byte_strings(cases: &mut Cases) -> Result<(), String> {
    let mut random = Random(5);
    let mut out = vec![0_u128; BATCH];
    for (name, longest, shortest) in [("8 bytes", 8, 8), ("0 to 12 bytes", 12, 0), ("5 to 30 bytes", 30, 5)] {
        let (mut input, mut data, mut lengths) = (vec![], vec![], vec![]);
        for _ in 0..BATCH {
            let length = shortest + random.below(longest - shortest + 1);
            let value = random.bytes(length as usize);
            input.extend_from_slice(&(length as u32).to_le_bytes());
            input.extend_from_slice(&value);
            data.extend_from_slice(&value);
            lengths.push(length as i32);
        }
        cases.case(&format!("strings::plain, {name}"), &input, || {
            strings::plain(black_box(&input), &mut 0, 1, 0, 1 << 20, &mut out).map(drop)
        })?;
        cases.case(&format!("strings::lengths_to_views, {name}"), &data, || {
            strings::lengths_to_views(black_box(&lengths), &data, &mut 0, 1, 0, &mut out).map(drop)
        })?;
    }
    Ok(())
}

fn nulls(cases: &mut Cases) -> Result<(), String> {
    let mut random = Random(6);
    let noise = random.bytes(BATCH / 8 + 8);
    let mut out = vec![0; BATCH / 8 + 8];
    cases.case("bits::copy, unaligned", &noise, || bits::copy(black_box(&noise), 3, &mut out, 5, BATCH))?;
    let definition: Vec<u8> = (0..BATCH).map(|_| random.below(2) as u8).collect();
    cases.case("bits::from_levels", &definition, || {
        bits::from_levels(black_box(&definition), 1, &mut out, 3).map(drop)
    })?;
    cases.case("levels::count", &definition, || {
        black_box(levels::count(black_box(&definition), 1));
        Ok::<(), Error>(())
    })?;
    for (name, present) in [("90 %", 90), ("50 %", 50)] {
        let mut validity = vec![0; BATCH / 8];
        for at in 0..BATCH {
            bits::set(&mut validity, at, random.below(100) < present).map_err(|error| error.to_string())?;
        }
        let dense = bits::count_ones(&validity, 0, BATCH).map_err(|error| error.to_string())?;
        let mut values = vec![1_u64; BATCH];
        let mut room = vec![0_u64; BATCH];
        cases.case(&format!("spread::in_place, 8 bytes, {name} present"), &validity, || {
            spread::in_place(black_box(&mut values), dense, &validity, 0).map(drop)
        })?;
        cases.case(&format!("compact::values, 8 bytes, {name} present"), &validity, || {
            compact::values(black_box(&values), &validity, 0, &mut room).map(drop)
        })?;
        let mut room = vec![0; BATCH / 8];
        cases.case(&format!("compact::bits, {name} present"), &validity, || {
            compact::bits(black_box(&noise), 3, &validity, 0, BATCH, &mut room).map(drop)
        })?;
    }
    nested(cases)
}

/// Entries of lists that have three elements on the average, of which a tenth is null.
fn nested(cases: &mut Cases) -> Result<(), String> {
    const ROWS: Slots = Slots { repetition: 0, definition: 0 };
    const ELEMENTS: Slots = Slots { repetition: 1, definition: 2 };
    let mut random = Random(7);
    let repetition: Vec<u8> = (0..BATCH).map(|_| u8::from(random.below(3) > 0)).collect();
    let definition: Vec<u8> = (0..BATCH).map(|_| 3 - u8::from(random.below(10) == 0)).collect();
    let both = [&definition[..], &repetition[..]].concat();
    let entries = Entries { definition: &definition, repetition: Some(&repetition) };
    let rows = Entries { definition: &definition, repetition: None };
    let (mut bits, mut offsets) = (vec![0; BATCH / 8 + 8], vec![0; BATCH]);
    for (name, entries, slots) in
        [("rows", rows, ROWS), ("lists", entries, ROWS), ("elements", entries, ELEMENTS)]
    {
        cases.case(&format!("levels::validity, {name}"), &both, || {
            levels::validity(black_box(entries), slots, 3, &mut bits, 3).map(drop)
        })?;
    }
    cases.case("levels::offsets", &both, || {
        levels::offsets(black_box(entries), ROWS, ELEMENTS, 0, &mut offsets).map(drop)
    })?;
    let (mut definition_out, mut repetition_out) = (vec![0; BATCH], vec![0; BATCH]);
    cases.case("levels::keep", &both, || {
        levels::keep(black_box(&definition), &repetition, 0, &mut definition_out, &mut repetition_out)
            .map(drop)
    })?;
    cases.case("levels::differ", &both, || {
        black_box(levels::differ(black_box(entries), entries, 2));
        Ok::<(), Error>(())
    })
}

fn bytes(cases: &mut Cases) -> Result<(), String> {
    let noise = Random(8).bytes(1 << 16);
    cases.case("crc32", &noise, || {
        black_box(crc32(0, black_box(&noise)));
        Ok::<(), Error>(())
    })?;
    let text = "Ünïcode, größer als ASCII — ".repeat(2000).into_bytes();
    cases.case("utf8::valid", &text, || {
        black_box(utf8::valid(black_box(&text)));
        Ok::<(), Error>(())
    })
}
