use super::word::portable;
use super::*;
use crate::Error;
use crate::testing::{Random, rounds};
use std::vec;
use std::vec::Vec;

/// The view's fields, written out one by one.
fn naive(bytes: &[u8], buffer: u32, offset: u32) -> u128 {
    let mut out = (bytes.len() as u32).to_le_bytes().to_vec();
    if bytes.len() <= 12 {
        out.extend_from_slice(bytes);
        out.resize(16, 0);
    } else {
        out.extend_from_slice(&bytes[..4]);
        out.extend_from_slice(&buffer.to_le_bytes());
        out.extend_from_slice(&offset.to_le_bytes());
    }
    u128::from_le_bytes(out.try_into().unwrap())
}

/// Strings of these lengths, consecutive in two buffers; each buffer ends with its last string.
fn views_of(random: &mut Random, lengths: &[usize]) -> (Vec<u128>, [Vec<u8>; 2], Vec<Vec<u8>>) {
    let mut buffers = [vec![], vec![]];
    let (mut views, mut strings) = (vec![], vec![]);
    for (number, &length) in lengths.iter().enumerate() {
        let string: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        let buffer = &mut buffers[number % 2];
        views.push(naive(&string, number as u32 % 2, buffer.len() as u32));
        buffer.extend_from_slice(&string);
        strings.push(string);
    }
    (views, buffers, strings)
}

#[test]
fn appends_strings_behind_others() {
    let mut random = Random::new(7);
    for round in 0..rounds(300) {
        let most = [13, 40, 300, 3000][round % 4];
        let lengths: Vec<usize> = (0..round % 70).map(|_| random.below(most)).collect();
        let (views, buffers, strings) = views_of(&mut random, &lengths);
        let with_lengths: Vec<u8> =
            strings.iter().flat_map(|it| [&(it.len() as u32).to_le_bytes()[..], it].concat()).collect();
        for (is_plain, expected) in [(true, with_lengths), (false, strings.concat())] {
            let append = if is_plain { append::<true> } else { append::<false> };
            let mut out = Vec::with_capacity(3 + expected.len() + APPEND_SLACK);
            out.extend_from_slice(b"abc");
            append(&views, &buffers, &mut out).unwrap();
            assert_eq!((&out[..3], &out[3..]), (&b"abc"[..], &expected[..]));
            let mut short = Vec::with_capacity(expected.len());
            let capacity = short.capacity();
            let refused = append(&views, &buffers, &mut short);
            let fits = views.is_empty() || capacity >= expected.len() + APPEND_SLACK;
            assert_eq!((refused.is_ok(), short.is_empty()), (fits, !fits || expected.is_empty()));
        }
    }
}

#[test]
fn joins_values_that_begin_as_the_one_before() {
    let mut random = Random::new(11);
    for round in 0..rounds(300) {
        let most = [3, 13, 40, 300, 3000][round % 5];
        let last: Vec<u8> = (0..random.below(most)).map(|_| random.next() as u8).collect();
        let (mut prefixes, mut suffixes, mut data) = (vec![], vec![], vec![]);
        let mut values: Vec<Vec<u8>> = vec![];
        for _ in 0..round % 70 {
            let before = values.last().unwrap_or(&last);
            let prefix = random.below(before.len() + 1);
            let suffix: Vec<u8> = (0..random.below(most)).map(|_| random.next() as u8).collect();
            values.push([&before[..prefix], &suffix].concat());
            prefixes.push(prefix as i32);
            suffixes.push(suffix.len() as i32);
            data.extend_from_slice(&suffix);
        }
        // With no more capacity than is needed, and with less; with a limit of a value, and of all of them.
        let all: usize = values.iter().map(Vec::len).sum();
        for (capacity, value_max, bytes_max) in [
            (all, usize::MAX, usize::MAX),
            (all, most, usize::MAX),
            (all, usize::MAX, all / 2),
            (all / 2, usize::MAX, usize::MAX),
        ] {
            let mut out = Vec::with_capacity(3 + capacity + APPEND_SLACK);
            out.extend_from_slice(b"abc");
            let room = (out.capacity() - 3 - APPEND_SLACK).min(bytes_max);
            let mut expected: Vec<u8> = vec![];
            let mut count = 0;
            for value in &values {
                if value.len() > value_max || expected.len() + value.len() > room {
                    break;
                }
                expected.extend_from_slice(value);
                count += 1;
            }
            let joined = join(&prefixes, &suffixes, &data, &last, (value_max, bytes_max), &mut out);
            let taken = suffixes[..count].iter().map(|&suffix| suffix as usize).sum();
            assert_eq!(joined, Joined { values: count, taken });
            assert_eq!((&out[..3], &out[3..]), (&b"abc"[..], &expected[..]));
        }
    }
}

#[test]
fn joins_no_values_that_are_not_there() {
    let join = |prefixes: &[i32], suffixes: &[i32], data: &[u8]| {
        let mut out = Vec::with_capacity(200);
        let joined = join(prefixes, suffixes, data, b"xyz", (usize::MAX, usize::MAX), &mut out);
        (joined.values, joined.taken, out)
    };
    assert_eq!(join(&[3, 1], &[1, 1], b"ab"), (2, 2, b"xyzaxb".to_vec()));
    for (prefixes, suffixes) in [
        ([4, 0], [1, 1]),
        ([-1, 0], [1, 1]),
        ([0, 0], [-1, 1]),
        ([0, 0], [3, 0]),
        ([i32::MIN, 0], [i32::MIN, 0]),
    ] {
        assert_eq!(join(&prefixes, &suffixes, b"ab"), (0, 0, vec![]));
    }
    // The second is not: longer than the one before, beyond the data.
    assert_eq!(join(&[1, 3], &[1, 0], b"ab"), (1, 1, b"xa".to_vec()));
    assert_eq!(join(&[1, 0], &[1, 2], b"ab"), (1, 1, b"xa".to_vec()));
    assert_eq!(join(&[0, 0], &[2], b"ab"), (1, 2, b"ab".to_vec()));
}

#[test]
fn appends_nothing_from_outside_of_buffers() {
    let buffer = vec![7; 100];
    for (length, number, offset, is_there) in [
        (100, 0, 0, true),
        (13, 0, 87, true),
        (13, 0, 88, false),
        (13, 1, 0, false),
        (101, 0, 0, false),
        (20, 0, u32::MAX, false),
    ] {
        let view = u128::from(length as u32) | u128::from(high(number, offset)) << 64;
        let mut out = Vec::with_capacity(1000);
        let appended = append::<false>(&[view], &[&buffer], &mut out);
        let expected = if is_there { Ok(()) } else { Err(Error::Mismatch) };
        assert_eq!((appended, out.len()), (expected, if is_there { length } else { 0 }));
    }
    let mut out = Vec::with_capacity(1000);
    let endless = u128::from(u32::MAX);
    assert!(matches!(append::<true>(&[endless], &[&buffer], &mut out), Err(Error::Short { .. })));
}

struct Page {
    plain: Vec<u8>,
    data: Vec<u8>,
    lengths: Vec<i32>,
    /// Offsets of the bytes in `plain` and in `data`.
    places: Vec<(usize, usize)>,
}

fn page(random: &mut Random, lengths: Vec<usize>) -> Page {
    let mut page = Page { plain: vec![], data: vec![], lengths: vec![], places: vec![] };
    for length in lengths {
        let bytes = random.bytes(length);
        page.plain.extend_from_slice(&(length as u32).to_le_bytes());
        page.places.push((page.plain.len(), page.data.len()));
        page.plain.extend_from_slice(&bytes);
        page.data.extend_from_slice(&bytes);
        page.lengths.push(length as i32);
    }
    page
}

fn shapes(random: &mut Random, shape: usize, count: usize) -> Vec<usize> {
    let usual = random.below(20);
    (0..count)
        .map(|i| match shape % 6 {
            0 => usual,
            1 => random.below(14),
            2 => random.below(40),
            3 => 11 + random.below(4),
            4 => {
                if random.below(30) == 0 {
                    random.below(30)
                } else {
                    usual
                }
            }
            _ => i / 20 % 15,
        })
        .collect()
}

#[test]
fn plain_and_lengths_against_the_oracle() {
    let mut random = Random::new(91);
    for round in 0..rounds(600) {
        let count = random.below(200);
        let lengths = shapes(&mut random, round, count);
        let page = page(&mut random, lengths);
        let (buffer, base) = (random.next() as u32, random.below(1 << 30) as u32);
        let expected: Vec<u128> = page
            .places
            .iter()
            .zip(&page.lengths)
            .map(|(place, &n)| naive(&page.plain[place.0..][..n as usize], buffer, base + place.0 as u32))
            .collect();
        // In slices of any size, and once in one call.
        for slice in [1 + random.below(40), count + 5] {
            let (mut at, mut made) = (0, vec![]);
            loop {
                let mut out = vec![0; slice];
                match plain(&page.plain, &mut at, buffer, base, 100, &mut out) {
                    Ok(n) => made.extend_from_slice(&out[..n]),
                    Err(error) => {
                        assert_eq!(error, StringsError::Truncated { at: page.plain.len() });
                        break;
                    }
                }
            }
            assert_eq!(made, expected);
            assert_eq!(at, page.plain.len());
        }
        let mut at = 0;
        let mut out = vec![0; count];
        let n = lengths_to_views(&page.lengths, &page.data, &mut at, buffer, base, &mut out).unwrap();
        assert_eq!((n, at), (count, page.data.len()));
        for ((place, view), &length) in page.places.iter().zip(out).zip(&page.lengths) {
            assert_eq!(view, naive(&page.data[place.1..][..length as usize], buffer, base + place.1 as u32));
        }
    }
}

#[test]
fn every_truncation_keeps_the_whole_values() {
    let mut random = Random::new(92);
    for shape in 0..6 {
        let lengths = shapes(&mut random, shape, rounds(40));
        let page = page(&mut random, lengths);
        for cut in 0..page.plain.len() {
            let input = page.plain[..cut].to_vec();
            let whole =
                page.places.iter().zip(&page.lengths).take_while(|(p, n)| p.0 + **n as usize <= cut).count();
            let end = page.places[whole].0 - 4;
            let (mut at, mut out) = (0, vec![0; page.lengths.len()]);
            let made = plain(&input, &mut at, 0, 0, 100, &mut out);
            if whole == 0 {
                assert_eq!((made, at), (Err(StringsError::Truncated { at: 0 }), 0));
            } else {
                assert_eq!((made, at), (Ok(whole), end));
                let next = plain(&input, &mut at, 0, 0, 100, &mut out);
                assert_eq!((next, at), (Err(StringsError::Truncated { at: end }), end));
            }
        }
        for cut in 0..page.data.len() {
            let data = page.data[..cut].to_vec();
            let whole =
                page.places.iter().zip(&page.lengths).take_while(|(p, n)| p.1 + **n as usize <= cut).count();
            let (mut at, mut out) = (0, vec![0; page.lengths.len()]);
            let made = lengths_to_views(&page.lengths, &data, &mut at, 0, 0, &mut out);
            let expected = if whole == 0 { Err(StringsError::Truncated { at: 0 }) } else { Ok(whole) };
            assert_eq!(made, expected);
        }
    }
}

#[test]
fn faults_come_after_the_values_before_them() {
    let mut random = Random::new(93);
    let mut page = page(&mut random, vec![5; 50]);
    let fault = page.places[30].0 - 4;
    for claimed in [101, u32::MAX, 1 << 31] {
        page.plain[fault..fault + 4].copy_from_slice(&claimed.to_le_bytes());
        let (mut at, mut out) = (0, [0; 60]);
        assert_eq!(plain(&page.plain, &mut at, 0, 0, 100, &mut out), Ok(30));
        let error = StringsError::TooLong { at: fault, len: claimed };
        assert_eq!(plain(&page.plain, &mut at, 0, 0, 100, &mut out), Err(error));
        assert_eq!(at, fault);
    }
    page.lengths[30] = -1;
    let (mut at, mut out) = (0, [0; 60]);
    assert_eq!(lengths_to_views(&page.lengths, &page.data, &mut at, 0, 0, &mut out), Ok(30));
    assert_eq!(at, 150);
    let rest = lengths_to_views(&page.lengths[30..], &page.data, &mut at, 0, 0, &mut out);
    assert_eq!(rest, Err(StringsError::Negative { index: 0 }));
}

#[test]
fn garbage_is_read_as_the_naive_reading_has_it() {
    let mut random = Random::new(95);
    for _ in 0..rounds(2000) {
        let n = random.below(300);
        let mut input = random.bytes(n);
        // Mostly plausible lengths, so that some values precede the error.
        let mut at = 0;
        while at + 4 <= n && random.below(20) != 0 {
            let len = random.below(20) as u32;
            input[at..at + 4].copy_from_slice(&len.to_le_bytes());
            at += 4 + len as usize;
        }
        let value_max = [15, 1000, u32::MAX][random.below(3)];
        let (mut expected, mut end) = (vec![], 0);
        let fault = loop {
            let Some(prefix) = input.get(end..end + 4) else { break StringsError::Truncated { at: end } };
            let len = u32::from_le_bytes(prefix.try_into().unwrap());
            if len > value_max {
                break StringsError::TooLong { at: end, len };
            }
            match input.get(end + 4..end + 4 + len as usize) {
                Some(bytes) => expected.push(naive(bytes, 1, 7 + end as u32 + 4)),
                None => break StringsError::Truncated { at: end },
            }
            end += 4 + len as usize;
        };
        let (mut at, mut out) = (0, vec![0; n + 1]);
        if !expected.is_empty() {
            assert_eq!(plain(&input, &mut at, 1, 7, value_max, &mut out), Ok(expected.len()));
            assert_eq!(out[..expected.len()], expected);
        }
        assert_eq!(at, end);
        assert_eq!(plain(&input, &mut at, 1, 7, value_max, &mut out), Err(fault));
    }
}

#[test]
fn the_twins_agree() {
    let mut random = Random::new(94);
    let bytes = random.bytes(64);
    for at in 0..=48 {
        for len in (0..20).chain([1000, u32::MAX]) {
            let place = random.next();
            // SAFETY: `at + LOAD <= 64`.
            let words = unsafe { (Word::load(&bytes, at), portable::Word::load(&bytes, at)) };
            let mut views = [0; 4];
            words.0.select(len, place).store(&mut views[0]);
            words.1.select(len, place).store(&mut views[1]);
            words.0.below(len).select(len, place).store(&mut views[2]);
            words.1.below(len).select(len, place).store(&mut views[3]);
            assert_eq!((views[0], views[2]), (views[1], views[3]));
        }
    }
}

#[test]
fn edges() {
    let mut at = 0;
    assert_eq!(plain(&[], &mut at, 0, 0, 9, &mut []), Ok(0));
    assert_eq!(plain(&[], &mut at, 0, 0, 9, &mut [0]), Err(StringsError::Truncated { at: 0 }));
    at = 99;
    assert_eq!(plain(&[0; 40], &mut at, 0, 0, 9, &mut [0]), Err(StringsError::Truncated { at: 99 }));
    assert_eq!(
        lengths_to_views(&[1], &[0; 40], &mut at, 0, 0, &mut [0]),
        Err(StringsError::Truncated { at: 99 })
    );
    assert_eq!(
        lengths_to_views(&[0], &[0; 40], &mut at, 0, 0, &mut [0]),
        Err(StringsError::Truncated { at: 99 })
    );
    // A value of no bytes at the very end is complete.
    let mut end = 40;
    assert_eq!(lengths_to_views(&[0, 0], &[0; 40], &mut end, 0, 0, &mut [1; 2]), Ok(2));
    at = 0;
    let far = plain(&[0; 40], &mut at, 0, i32::MAX as u32 - 39, 9, &mut [0]);
    assert_eq!(far, Err(StringsError::BufferTooLong));
    assert_eq!(plain(&[0; 40], &mut at, 0, i32::MAX as u32 - 40, 9, &mut [1; 2]), Ok(2));
    for n in 0..30 {
        let bytes: Vec<u8> = (1..=n).collect();
        assert_eq!(view(&bytes, 7, 9), naive(&bytes, 7, 9));
    }
}
