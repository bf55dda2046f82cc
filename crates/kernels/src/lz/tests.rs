//! Every run compared with a naive decoder that works element by element and byte by byte.

use super::inflate::{self, Symbol, Tables};
use super::pack::{self, Cursor, Input, Packed, Table};
use super::{Bits, Output, Run, lz4, lzo, snappy};
use crate::testing::{Random, rounds};
use std::vec;
use std::vec::Vec;

/// How far back matches may refer, if far.
const FAR: usize = if cfg!(miri) { 2_000 } else { 70_000 };

/// Decodes one element: returns its bytes of input, and appends its output. `None` if it is incomplete or invalid.
type Element = fn(input: &[u8], output: &mut Vec<u8>, start: usize, before: &mut u8) -> Option<usize>;

fn append_literals(input: &[u8], at: usize, length: usize, output: &mut Vec<u8>) -> Option<usize> {
    output.extend_from_slice(input.get(at..at.checked_add(length)?)?);
    Some(at + length)
}

fn append_match(output: &mut Vec<u8>, start: usize, distance: usize, length: usize) -> Option<()> {
    if distance == 0 || distance > output.len() - start {
        return None;
    }
    for _ in 0..length {
        output.push(output[output.len() - distance]);
    }
    Some(())
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | byte as usize)
}

fn snappy_element(input: &[u8], output: &mut Vec<u8>, start: usize, _: &mut u8) -> Option<usize> {
    let tag = *input.first()? as usize;
    let (extra, high) = [(0, 0), (1, tag >> 5 << 8), (2, 0), (4, 0)][tag & 3];
    if tag & 3 == 0 {
        let field = tag >> 2;
        let extra = field.saturating_sub(59);
        let length = if extra == 0 { field } else { number(input.get(1..1 + extra)?) } + 1;
        return append_literals(input, 1 + extra, length, output);
    }
    let length = if tag & 3 == 1 { 4 + (tag >> 2 & 7) } else { (tag >> 2) + 1 };
    append_match(output, start, high + number(input.get(1..1 + extra)?), length)?;
    Some(1 + extra)
}

fn lz4_element(input: &[u8], output: &mut Vec<u8>, start: usize, _: &mut u8) -> Option<usize> {
    let token = *input.first()? as usize;
    let mut at = 1;
    let length = |nibble: usize, at: &mut usize| {
        let mut length = nibble;
        while length >= 15 {
            let byte = *input.get(*at)?;
            *at += 1;
            length += byte as usize;
            if byte < 255 {
                break;
            }
        }
        Some(length)
    };
    let literals = length(token >> 4, &mut at)?;
    at = append_literals(input, at, literals, output)?;
    let distance = number(input.get(at..at + 2)?);
    at += 2;
    let matched = length(token & 15, &mut at)?;
    append_match(output, start, distance, matched + 4)?;
    Some(at)
}

fn lzo_element(input: &[u8], output: &mut Vec<u8>, start: usize, before: &mut u8) -> Option<usize> {
    let code = *input.first()? as usize;
    let mut at = 1;
    let extended = |at: &mut usize, base: usize| {
        let mut length = base;
        loop {
            let byte = *input.get(*at)?;
            *at += 1;
            if byte != 0 {
                return Some(length + byte as usize);
            }
            length += 255;
        }
    };
    let byte = |at: usize| input.get(at).map(|&byte| byte as usize);
    let (distance, length, literals) = match code {
        64.. => {
            at = 2;
            (1 + (code >> 2 & 7) + (byte(1)? << 3), (code >> 5) + 1, code & 3)
        }
        16.. => {
            let (mask, base) = if code < 32 { (7, 0x4000 + ((code & 8) << 11)) } else { (31, 1) };
            let length = if code & mask == 0 { extended(&mut at, mask)? } else { code & mask } + 2;
            let place = number(input.get(at..at + 2)?);
            at += 2;
            if base + (place >> 2) == 0x4000 && base != 1 {
                return None;
            }
            (base + (place >> 2), length, place & 3)
        }
        _ if *before == 0 => {
            let length = if code == 0 { extended(&mut at, 15)? } else { code } + 3;
            *before = lzo::AFTER_RUN;
            return append_literals(input, at, length, output);
        }
        _ => {
            at = 2;
            let (near, length) = if *before == lzo::AFTER_RUN { (2049, 3) } else { (1, 2) };
            (near + (code >> 2) + (byte(1)? << 2), length, code & 3)
        }
    };
    append_match(output, start, distance, length)?;
    *before = literals as u8;
    append_literals(input, at, literals, output)
}

/// Runs on random elements, some of them invalid, at random positions of buffers that end exactly where they should.
fn against_naive(
    kernel: fn(&[u8], Output<'_>, &mut u8) -> Run,
    naive_element: Element,
    random_element: fn(&mut Random, &mut Vec<u8>, usize) -> usize,
) {
    let mut random = Random::new(31);
    let (mut elements, mut full) = (0, 0);
    for round in 0..rounds(3_000) {
        let at = random.below(if round % 7 == 0 { FAR } else { 200 });
        let start = random.below(at + 1) * random.below(2);
        let room = random.below(if round % 3 == 0 { 3_000 } else { 400 });
        let until = at + random.below(2 * room + 2);
        let (mut input, mut made) = (vec![], 0);
        while made < room + 200 {
            made += random_element(&mut random, &mut input, at - start + made);
        }
        input.truncate(random.below(input.len() * 2 + 1));
        let mut output = random.bytes(at + room);
        let mut naive = output[..at].to_vec();
        let before_first = random.below(5) as u8;
        let (mut before, mut before_naive) = (before_first, before_first);
        let run = kernel(&input, Output { output: &mut output, start, at, until }, &mut before);
        let (mut consumed, mut count) = (0, 0);
        while consumed < run.consumed {
            assert!(naive.len() < until, "an element begun behind the end");
            consumed += naive_element(&input[consumed..], &mut naive, start, &mut before_naive)
                .expect("a good element");
            count += 1;
        }
        let expected = Run { consumed, produced: naive.len() - at, elements: count };
        assert_eq!((run, before), (expected, before_naive));
        assert!(output[..naive.len()] == naive, "other bytes");
        elements += count;
        full += usize::from(run.produced > room / 2 && room > 200);
    }
    assert!(
        cfg!(miri) || elements > rounds(6_000) && full > rounds(3_000) / 40,
        "{elements} elements, {full} full"
    );
}

/// A distance, in a block of `reach` bytes, and at most `most`: near, far, or too far.
fn distance(random: &mut Random, reach: usize, most: usize) -> usize {
    match random.below(100) {
        0 => random.below(most),
        1..50 => 1 + random.below(reach.clamp(1, 40)).min(most - 1),
        _ => 1 + random.below(reach.max(1)).min(most - 1),
    }
}

#[test]
fn snappy_against_the_naive_decoder() {
    against_naive(
        |input, to, _| snappy::run(input, to),
        snappy_element,
        |random, input, reach| match random.below(5) {
            0 | 1 => {
                let most = [20, 70, 70, 300][random.below(4)];
                let length = 1 + random.below(most);
                match length {
                    ..=60 => input.push((length as u8 - 1) << 2),
                    61..=256 => input.extend([60 << 2, (length - 1) as u8]),
                    _ => input.extend([61 << 2, (length - 1) as u8, ((length - 1) >> 8) as u8]),
                }
                input.extend(random.bytes(length));
                length
            }
            2 => {
                let (back, length) = (distance(random, reach, 2_048), 4 + random.below(8));
                input.extend([(back >> 8 << 5) as u8 | (length as u8 - 4) << 2 | 1, back as u8]);
                length
            }
            kind => {
                let (back, length) = (distance(random, reach, 65_536), 1 + random.below(64));
                let [b0, b1, ..] = back.to_le_bytes();
                input.extend([(length as u8 - 1) << 2 | 2 | (kind == 4) as u8, b0, b1]);
                input.extend(vec![0; if kind == 4 { 2 } else { 0 }]);
                length
            }
        },
    );
}

#[test]
fn lz4_against_the_naive_decoder() {
    against_naive(
        |input, to, _| lz4::run(input, to),
        lz4_element,
        |random, input, reach| {
            let length = |random: &mut Random| {
                let most = if random.below(5) == 0 { 300 } else { 16 };
                random.below(most)
            };
            let (literals, matched) = (length(random), length(random));
            let rest = |input: &mut Vec<u8>, length: usize| match length.checked_sub(15) {
                Some(rest @ 255..) => input.extend([255, (rest - 255) as u8]),
                Some(rest) => input.push(rest as u8),
                None => {}
            };
            input.push((literals.min(15) << 4 | matched.min(15)) as u8);
            rest(input, literals);
            input.extend(random.bytes(literals));
            input.extend(&distance(random, reach + literals, 65_536).to_le_bytes()[..2]);
            rest(input, matched);
            literals + matched + 4
        },
    );
}

#[test]
fn lzo_against_the_naive_decoder() {
    against_naive(lzo::run, lzo_element, |random, input, reach| {
        let after = random.below(4);
        let place = |distance: usize| ((distance << 2 | after) as u16).to_le_bytes();
        let made = match random.below(6) {
            0 => {
                // A run of literals, or a short match, depending on what precedes it.
                let code = random.below(16);
                input.push(code as u8);
                if code == 0 {
                    input.push(random.below(200) as u8);
                }
                input.extend(random.bytes(code + 3));
                return code + 3;
            }
            1..=3 => {
                let (back, length) = (distance(random, reach, 2_048) - 1, 3 + random.below(6));
                input.extend([((length - 1) << 5 | (back & 7) << 2 | after) as u8, (back >> 3) as u8]);
                length
            }
            4 => {
                let (back, length) = (distance(random, reach, 16_384), 3 + random.below(100));
                match length {
                    ..=33 => input.push(32 | (length - 2) as u8),
                    _ => input.extend([32, (length - 33) as u8]),
                }
                input.extend(place(back - 1));
                length
            }
            _ => {
                let back = distance(random, reach.saturating_sub(16_384), 32_767);
                let length = 3 + random.below(50);
                let high = 16 | (back >> 14 << 3) as u8;
                match length {
                    ..=9 => input.push(high | (length - 2) as u8),
                    _ => input.extend([high, (length - 9) as u8]),
                }
                input.extend(place(back & 0x3fff));
                length
            }
        };
        input.extend(random.bytes(after));
        made + after
    });
}

/// Lengths of a complete code of `symbols` symbols, `bits` at most: a tree whose leaves are split at random.
fn random_code(random: &mut Random, symbols: usize, bits: u8) -> Vec<u8> {
    let mut leaves = vec![1u8, 1];
    while leaves.len() < symbols {
        let at = if random.below(3) == 0 { leaves.len() - 1 } else { random.below(leaves.len()) };
        if leaves[at] < bits {
            leaves[at] += 1;
            leaves.push(leaves[at]);
        } else if leaves.iter().all(|&length| length == bits) {
            break;
        }
    }
    leaves.resize(symbols, 0);
    for at in 0..symbols {
        leaves.swap(at, random.below(symbols));
    }
    leaves
}

/// Random bits are valid in any complete code: runs compared with single symbols, at random positions.
#[test]
fn inflate_against_single_symbols() {
    let mut random = Random::new(32);
    let mut tables = std::boxed::Box::new(Tables::new());
    let (mut elements, mut matches) = (0, 0);
    for round in 0..rounds(1_500) {
        let symbols = [257, 258, 270, 286][random.below(4)];
        tables.set_literals(&random_code(&mut random, symbols, 9 + (round % 7) as u8)).unwrap();
        let symbols = 2 + random.below(29);
        tables.set_distances(&random_code(&mut random, symbols, 5 + (round % 11) as u8)).unwrap();
        let length = random.below(2_000);
        let input = random.bytes(length);
        let at = random.below(if round % 2 == 0 { FAR } else { 200 });
        let start = random.below(at + 1) * random.below(2);
        let room = random.below(3_000);
        let until = at + random.below(2 * room + 2);
        let mut output = random.bytes(at + room);
        let mut naive = output[..at].to_vec();
        let mut bits = Bits::default();
        let skipped = if random.below(2) == 0 { bits.fill(&input) } else { 0 };
        bits.take(random.below(9) as u32);
        let mut bits_naive = bits;
        let to = Output { output: &mut output, start, at, until };
        let run = inflate::run(&input[skipped..], to, &mut bits, &tables);
        let (mut consumed, mut count) = (skipped, 0);
        while count < run.elements {
            consumed += bits_naive.fill(&input[consumed..]);
            match tables.symbol(&mut bits_naive) {
                Symbol::Literal(byte) => naive.push(byte),
                Symbol::Match { length, distance } => {
                    append_match(&mut naive, start, distance, length).expect("a good match");
                    matches += 1;
                }
                other => panic!("{other:?} in a run"),
            }
            count += 1;
        }
        assert_eq!(run.produced, naive.len() - at);
        assert!(output[..naive.len()] == naive, "other bytes");
        // The same bits are left, however many were read ahead.
        let place = |consumed: usize, bits: Bits| 8 * consumed - bits.count as usize;
        assert_eq!(place(skipped + run.consumed, bits), place(consumed, bits_naive));
        assert_eq!(bits.buffer >> bits.count, 0);
        elements += count;
    }
    assert!(
        cfg!(miri) || elements > rounds(30_000) && matches > rounds(1_500),
        "{elements} elements, {matches} matches"
    );
}

#[test]
fn lengths_that_make_no_code() {
    use inflate::BadCode::{Incomplete, Oversubscribed};
    let mut tables = std::boxed::Box::new(Tables::new());
    for (lengths, expected) in [
        (&[1u8, 1][..], Ok(())),
        (&[1, 2, 3, 3], Ok(())),
        (&[15; 2], Err(Incomplete)),
        (&[2, 2, 2], Err(Incomplete)),
        (&[1, 1, 1], Err(Oversubscribed)),
        (&[1, 2, 2, 15], Err(Oversubscribed)),
        // A single symbol, or none.
        (&[0, 1], Ok(())),
        (&[0, 2], Err(Incomplete)),
        (&[0, 0], Ok(())),
        (&[], Ok(())),
    ] {
        assert_eq!(tables.set_literals(lengths), expected, "{lengths:?}");
        assert_eq!(tables.set_distances(lengths), expected, "{lengths:?}");
    }
    // The other bit of a code of one symbol, and any bit of an empty code, is not a symbol.
    tables.set_literals(&[0, 1]).unwrap();
    assert_eq!(tables.symbol(&mut Bits { buffer: 0, count: 1 }), Symbol::Literal(1));
    assert_eq!(tables.symbol(&mut Bits { buffer: 1, count: 1 }), Symbol::BadLiteral);
    assert_eq!(tables.symbol(&mut Bits { buffer: 0, count: 0 }), Symbol::Short);
}

/// Every distance and length, at the very end of the room that the contract requires.
#[test]
fn matches_of_every_shape() {
    for distance in 1..=70 {
        for length in (1..=40).chain([63, 64, 65, 300]) {
            if cfg!(miri) && (distance * 7 + length) % 23 != 0 {
                continue;
            }
            for lead in [0, 1, 9] {
                let at = distance + lead;
                let mut output: Vec<u8> = (0..at + length + super::SLACK).map(|i| (i * 7) as u8).collect();
                let mut naive = output[..at].to_vec();
                append_match(&mut naive, 0, distance, length).unwrap();
                // SAFETY: the buffer has the required length, and the distance is neither 0 nor before its start.
                unsafe { super::copy_match(output.as_mut_ptr(), at, distance, length) };
                assert!(output[..naive.len()] == naive, "{distance} {length} {lead}");
            }
        }
    }
}

#[test]
fn places_that_do_not_fit_decode_nothing() {
    let input = [0; 100];
    for (start, at, until) in
        [(5, 4, 1_000), (0, 500, 1_000), (0, usize::MAX, usize::MAX), (0, 4, 4), (0, 4, 0)]
    {
        let mut output = vec![0; 400];
        let to = || Output { output: &mut [], start, at, until };
        assert_eq!(snappy::run(&input, to()), Run::default());
        for run in [
            snappy::run(&input, Output { output: &mut output, start, at, until }),
            lz4::run(&input, Output { output: &mut output, start, at, until }),
            lzo::run(&input, Output { output: &mut output, start, at, until }, &mut 0),
        ] {
            assert_eq!(run, Run::default());
        }
    }
}

/// Data with repeats, near and far, and noise between them.
fn data(random: &mut Random, length: usize) -> Vec<u8> {
    let mut data = random.bytes(1);
    while data.len() < length {
        let most = [6, 20, 400][random.below(3)];
        let take = 1 + random.below(most);
        if random.below(4) == 0 {
            data.extend(random.bytes(take));
        } else {
            let reach = [9, 300, FAR][random.below(3)];
            let back = 1 + random.below(data.len().min(reach));
            (0..take).for_each(|_| data.push(data[data.len() - back]));
        }
    }
    data
}

type Pack = fn(Input<'_>, &mut Cursor, &mut Table, &mut [u8]) -> Packed;

/// A page's packed form is unpacked by an element's naive decoder. The page is passed in slices that end anywhere, in
/// as small a part as allowed, and with random room.
fn unpacks(pack: Pack, element: Element, tail: usize, sequences_min: usize) {
    let mut random = Random::new(33);
    let mut table = Table::new();
    let (mut easy, mut given) = (0, 0);
    for round in 0..rounds(150) {
        let length = random.below([100, 5_000, 2 * FAR][round % 3]);
        let page = data(&mut random, length);
        table.start(page.len());
        let mut cursor = Cursor::new();
        let mut naive = vec![];
        loop {
            let until = cursor.at + 1 + random.below(3_000);
            let base = random.below((cursor.at + 1).saturating_sub(pack::DISTANCE_MAX).max(1));
            let base = base.min(cursor.anchor);
            let shown = (until + pack::LENGTH_MAX + pack::MARGIN).min(page.len());
            let most = [0, 30, 5_000][random.below(3)];
            let room = random.below(most + 1);
            let mut output = random.bytes(room);
            let match_end = shown.min(page.len() - tail.min(page.len()));
            let input = Input { bytes: &page[base..shown], base, until, match_end };
            let before = cursor;
            let packed = pack(input, &mut cursor, &mut table, &mut output);
            assert!(cursor.at >= before.at && cursor.anchor >= before.anchor);
            let (mut consumed, mut at) = (0, 0);
            while consumed < packed.produced {
                consumed += element(&output[consumed..packed.produced], &mut naive, 0, &mut at).unwrap();
            }
            easy += packed.matches;
            if let Some(sequence) = packed.left {
                given += 1;
                let literals = naive.len()..naive.len() + sequence.literals;
                naive.extend_from_slice(&page[literals]);
                append_match(&mut naive, 0, sequence.distance, sequence.length).unwrap();
                assert!(sequence.distance <= pack::DISTANCE_MAX && sequence.length <= pack::LENGTH_MAX);
            }
            assert_eq!(naive.len(), cursor.anchor);
            assert!(naive.len() <= match_end);
            if cursor.at + pack::MARGIN > page.len() {
                break;
            }
        }
        assert!(naive == page[..naive.len()], "other bytes");
    }
    assert!(cfg!(miri) || easy > sequences_min && given > sequences_min / 50, "{easy} easy, {given} given");
}

#[test]
fn snappy_unpacks_what_it_packs() {
    unpacks(snappy::pack, snappy_element, 0, rounds(20_000));
    unpacks(snappy::pack_long, snappy_element, 0, rounds(20_000));
}

#[test]
fn lz4_unpacks_what_it_packs() {
    unpacks(lz4::pack, lz4_element, 5, rounds(20_000));
}

/// Whatever positions a caller passes, nothing outside of its slices is touched (Miri would notice), and nothing
/// panics.
#[test]
fn packing_bears_any_place() {
    let mut random = Random::new(34);
    let mut table = Table::new();
    for _ in 0..rounds(3_000) {
        // Now and then enough that matches are searched without checking distances.
        let far = if random.below(30) == 0 { pack::DISTANCE_MAX } else { 0 };
        let length = far + random.below(200);
        let bytes: Vec<u8> = random.bytes(length).iter().map(|byte| byte & 1).collect();
        let mut any = || match random.below(4) {
            0 => usize::MAX - random.below(50),
            1 => random.below(1 << 20),
            2 => far + random.below(250),
            _ => random.below(250),
        };
        let random_start = any() % 4 == 0;
        let mut cursor = Cursor::new();
        (cursor.at, cursor.anchor) = (any(), any());
        let base = if any() % 2 == 0 { 0 } else { any() };
        let input = Input { bytes: &bytes, base, until: any(), match_end: any() };
        // Most runs find entries of others.
        if random_start {
            table.start(any());
        }
        let room = any().min(300);
        let mut output = vec![0; room];
        let run = [snappy::pack, snappy::pack_long, lz4::pack][any() % 3];
        let packed = run(input, &mut cursor, &mut table, &mut output);
        assert!(packed.produced <= output.len());
    }
}

#[test]
fn elements_say_what_they_mean() {
    for length in 1..=64 {
        for distance in [1, 7, 2_047, 2_048, 65_535] {
            let mut output: Vec<u8> = (0..65_535u32).map(|at| (at % 251) as u8).collect();
            let mut expected = output.clone();
            append_match(&mut expected, 0, distance, length).unwrap();
            let (element, bytes) = snappy::copy(distance, length);
            assert_eq!(snappy_element(&element[..bytes], &mut output, 0, &mut 0), Some(bytes));
            assert!(output == expected, "{distance} {length}");
        }
    }
    for length in [1, 59, 60, 61, 256, 257, 65_536] {
        let (tag, bytes) = snappy::literal_tag(length);
        let mut element = tag[..bytes].to_vec();
        element.resize(bytes + length, 7);
        let mut output = vec![];
        assert_eq!(snappy_element(&element, &mut output, 0, &mut 0), Some(bytes + length));
        assert_eq!(output.len(), length);
    }
    for length in 1..5_000 {
        let (mut left, mut copies) = (length, 0);
        while left > 0 {
            let part = snappy::first_copy(left);
            assert!((1..=64).contains(&part) && (part == left || left - part >= 4), "{left} of {length}");
            (left, copies) = (left - part, copies + 1);
        }
        assert!(copies <= length / 60 + 1);
    }
}
