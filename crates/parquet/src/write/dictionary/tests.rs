//! Dictionaries compared with a linear search through all entries.

use alloc::vec;

use super::super::encoder::Encoder;
use super::*;
use crate::batch::{ByteArrays, FixedBytes, Values};
use crate::format::Encoding;

const WIDE: DictionaryLimits = DictionaryLimits { entries: usize::MAX, bytes: usize::MAX };

/// Interns all, some at a time and without a budget. Returns the indices, and whether the dictionary was full before
/// the end.
fn intern(dictionary: &mut DictionaryBuilder, values: Slice<'_>, at_once: usize) -> (Vec<u32>, bool) {
    let (mut indices, mut done) = (Vec::new(), 0);
    while done < values.len() {
        let part = values.part(done..values.len().min(done.saturating_add(at_once)));
        let interned = dictionary.intern(part, &mut indices, &mut Budget::new(0)).unwrap();
        done += interned.values;
        assert_eq!(indices.len(), done);
        if interned.full {
            return (indices, true);
        }
    }
    (indices, false)
}

fn page(dictionary: &mut DictionaryBuilder) -> Vec<u8> {
    let said = dictionary.bytes();
    loop {
        if let Some(body) = dictionary.finish(&mut Budget::new(0)).unwrap() {
            assert!(body.pieces().iter().all(|piece| piece.len() < 1 << 20));
            assert_eq!(body.len(), said);
            assert!(dictionary.is_empty() && dictionary.bytes() == 0);
            return body.pieces().concat();
        }
    }
}

/// Each value's number in order of first appearance, and the new values in PLAIN.
fn naive(values: &[Vec<u8>], lengths: bool) -> (Vec<u32>, Vec<u8>) {
    let mut seen = alloc::collections::BTreeMap::new();
    let (mut indices, mut page) = (Vec::new(), Vec::new());
    for value in values {
        let next = u32::try_from(seen.len()).unwrap();
        let index = *seen.entry(value.clone()).or_insert(next);
        if index == next {
            if lengths {
                page.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
            }
            page.extend(value);
        }
        indices.push(index);
    }
    (indices, page)
}

fn random(seed: u64, count: usize) -> Vec<u64> {
    let mut state = seed;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count).map(next).collect()
}

fn check(physical: PhysicalType, values: &Values, bytes: &[Vec<u8>]) {
    let lengths = physical == PhysicalType::ByteArray;
    let (indices, expected) = naive(bytes, lengths);
    let mut dictionary = DictionaryBuilder::new(physical, WIDE);
    for at_once in [usize::MAX, 100, 1] {
        let (found, full) = intern(&mut dictionary, Slice::of(values), at_once);
        assert!(found == indices && !full, "{physical:?} by {at_once}");
        assert_eq!(dictionary.len(), indices.iter().max().map_or(0, |&most| most as usize + 1));
        assert!(page(&mut dictionary) == expected, "{physical:?} by {at_once}");
    }
    // Its entries as values, as when it is given up.
    intern(&mut dictionary, Slice::of(values), usize::MAX);
    if dictionary.has_values() {
        let entries = dictionary.into_values(&mut Budget::new(0)).unwrap();
        let mut plain = Encoder::new(Encoding::Plain, physical).unwrap();
        let (all, mut done) = (Slice::of(&entries), 0);
        while done < all.len() {
            done += plain.put(all.part(done..all.len()), &mut Budget::new(0)).unwrap();
        }
        let body = plain.finish(&mut Budget::new(0)).unwrap().unwrap();
        assert!(body.pieces().concat() == expected, "{physical:?} as values");
    }
    // At the limit of entries, and at the limit of bytes.
    let entries = dictionary_len(&indices) / 2;
    for limits in
        [DictionaryLimits { entries, ..WIDE }, DictionaryLimits { bytes: expected.len() / 2, ..WIDE }]
    {
        let mut dictionary = DictionaryBuilder::new(physical, limits);
        let (found, full) = intern(&mut dictionary, Slice::of(values), 100);
        assert_eq!(full, found.len() < indices.len());
        assert!(found == indices[..found.len()]);
        assert!(dictionary.len() <= limits.entries && dictionary.bytes() <= limits.bytes);
        if limits.entries == entries {
            assert_eq!(dictionary.len(), entries);
        }
        // Those in the dictionary are still found.
        let again = intern(&mut dictionary, Slice::of(values).part(0..found.len()), 100);
        assert_eq!(again, (found, false));
    }
}

fn dictionary_len(indices: &[u32]) -> usize {
    indices.iter().max().map_or(0, |&most| most as usize + 1)
}

#[test]
fn numbers_of_all_types() {
    for distinct in [0u64, 1, 10, 3000, 200_000] {
        let numbers: Vec<u64> =
            random(5, 60_000).into_iter().map(|n| if distinct == 0 { 7 } else { n % distinct }).collect();
        let wide: Vec<i64> = numbers.iter().map(|&n| n.wrapping_mul(0x1_0000_0001).cast_signed()).collect();
        check(
            PhysicalType::Int64,
            &Values::Int64(wide.clone().into()),
            &wide.iter().map(|n| n.to_le_bytes().to_vec()).collect::<Vec<_>>(),
        );
        let narrow: Vec<i32> = numbers.iter().map(|&n| i32::try_from(n).unwrap() - 500).collect();
        check(
            PhysicalType::Int32,
            &Values::Int32(narrow.clone().into()),
            &narrow.iter().map(|n| n.to_le_bytes().to_vec()).collect::<Vec<_>>(),
        );
        let doubles: Vec<f64> = narrow
            .iter()
            .map(|&n| f64::from(n) / 4.0)
            .chain([0.0, -0.0, f64::NAN, f64::from_bits(0x7ff8_0000_0000_0001)])
            .collect();
        check(
            PhysicalType::Double,
            &Values::Double(doubles.clone().into()),
            &doubles.iter().map(|n| n.to_le_bytes().to_vec()).collect::<Vec<_>>(),
        );
        let floats: Vec<f32> =
            numbers.iter().map(|&n| f32::from(u16::try_from(n % 60_000).unwrap())).collect();
        check(
            PhysicalType::Float,
            &Values::Float(floats.clone().into()),
            &floats.iter().map(|n| n.to_le_bytes().to_vec()).collect::<Vec<_>>(),
        );
    }
}

#[test]
fn strings_of_all_lengths() {
    for distinct in [1u64, 40, 9000] {
        for lengths in [&[0usize, 1, 5, 11, 12, 13, 14, 20, 33, 80][..], &[8], &[80], &[3000]] {
            let count = if lengths == [3000] { 2000 } else { 20_000 };
            let strings: Vec<Vec<u8>> = random(9, count)
                .into_iter()
                .map(|n| {
                    let n = n % distinct;
                    let length = lengths[usize::try_from(n).unwrap() % lengths.len()];
                    // They differ only at the end: many share the same beginning.
                    let mut value = alloc::format!("{n:>length$}").into_bytes();
                    value.drain(..value.len() - length);
                    value
                })
                .collect();
            let all =
                ByteArrays::from_lengths(strings.concat().into(), strings.iter().map(Vec::len)).unwrap();
            check(PhysicalType::ByteArray, &Values::ByteArray(all), &strings);
            if let [width] = *lengths {
                let bytes = FixedBytes::new(width, strings.len(), strings.concat().into());
                let physical = PhysicalType::FixedLenByteArray(u32::try_from(width).unwrap());
                check(physical, &Values::FixedLenByteArray(bytes), &strings);
            }
        }
    }
    let none = FixedBytes::new(0, 9, Vec::new().into());
    check(PhysicalType::FixedLenByteArray(0), &Values::FixedLenByteArray(none), &vec![Vec::new(); 9]);
}

#[test]
fn long_strings_are_entries_each_time() {
    let lengths = [10, 64 << 10, (64 << 10) + 1, 700_000, 20, 64 << 10, (64 << 10) + 1, 10];
    let bytes = vec![7u8; lengths.iter().sum()];
    let strings = Values::ByteArray(ByteArrays::from_lengths(bytes.into(), lengths).unwrap());
    let mut dictionary = DictionaryBuilder::new(PhysicalType::ByteArray, WIDE);
    assert_eq!(intern(&mut dictionary, Slice::of(&strings), 9), (vec![0, 1, 2, 3, 4, 1, 5, 0], false));
    assert!(dictionary.may_repeat());
    let mut expected = Vec::new();
    for index in [0, 1, 2, 3, 4, 6] {
        expected.extend(u32::try_from(lengths[index]).unwrap().to_le_bytes());
        expected.resize(expected.len() + lengths[index], 7);
    }
    assert!(page(&mut dictionary) == expected);
    // One alone equals no other.
    intern(&mut dictionary, Slice::of(&strings).part(0..3), 9);
    assert!(!dictionary.may_repeat());
}

#[test]
fn no_call_does_much_more_than_its_budget() {
    let numbers: Vec<i64> = random(3, 1_300_000).into_iter().map(u64::cast_signed).collect();
    let strings: Vec<u8> = random(3, 60_000 * 4).into_iter().flat_map(u64::to_le_bytes).collect();
    let strings = ByteArrays::from_lengths(strings.into(), vec![32; 60_000]).unwrap();
    for (physical, values) in [
        (PhysicalType::Int64, Values::Int64(numbers.into())),
        (PhysicalType::ByteArray, Values::ByteArray(strings)),
    ] {
        let slice = Slice::of(&values);
        let mut dictionary = DictionaryBuilder::new(physical, WIDE);
        let (mut indices, mut done, mut most) = (Vec::new(), 0, 0);
        while done < slice.len() {
            let mut budget = Budget::new(0);
            let interned =
                dictionary.intern(slice.part(done..slice.len()), &mut indices, &mut budget).unwrap();
            done += interned.values;
            most = most.max(budget.spent());
            assert!(interned.values > 0 || interned.full);
            if interned.full {
                break;
            }
        }
        assert!(most < 250_000, "{most} units for {physical:?}");
        if physical == PhysicalType::Int64 {
            // Beyond the table's capacity, values are new each time.
            let before = dictionary.len();
            assert!(before > 1 << 20);
            intern(&mut dictionary, slice.part(0..1000), 1000);
            assert_eq!(dictionary.len(), before);
            intern(&mut dictionary, slice.part(slice.len() - 1000..slice.len()), 1000);
            assert_eq!(dictionary.len(), before + 1000);
        }
    }
}

#[test]
fn other_types() {
    let mut indices = Vec::new();
    for (physical, values) in [
        (PhysicalType::Int64, Slice::Int32(&[1])),
        (PhysicalType::Boolean, Slice::Boolean { bits: &[1], first: 0, values: 1 }),
        (PhysicalType::Int96, Slice::Fixed { width: 4, values: 1, bytes: &[0; 4] }),
        (PhysicalType::Int32, Slice::Indices(&[1])),
    ] {
        let mut dictionary = DictionaryBuilder::new(physical, WIDE);
        assert!(dictionary.intern(values, &mut indices, &mut Budget::default()).is_err());
    }
}

/// Long strings that differ in their last bytes alone, and whose hashes have the same first slot: each is compared with those before it, and
/// that is charged, and bounded.
#[test]
fn what_is_compared_is_charged() {
    const LENGTH: usize = 16 << 10;
    const COUNT: usize = 24;
    let value = |number: u32| -> Vec<u8> {
        let mut value = vec![b'x'; LENGTH];
        value[LENGTH - 4..].copy_from_slice(&number.to_le_bytes());
        value
    };
    // The uppermost bits of a hash are its slot in the first table, of 128 slots.
    let crafted: Vec<Vec<u8>> =
        (0..).map(value).filter(|value| table::hash_bytes(value) >> 25 == 5).take(COUNT).collect();
    let arrays =
        ByteArrays::from_lengths(Bytes::from(crafted.concat()), crafted.iter().map(|value| value.len()))
            .unwrap();
    let mut dictionary = DictionaryBuilder::new(PhysicalType::ByteArray, WIDE);
    let (mut indices, mut spent) = (Vec::new(), 0);
    for round in 0..2 {
        let mut done = 0;
        while done < COUNT {
            let slice = Slice::ByteArray(&arrays.views()[done..], arrays.buffers());
            let mut budget = Budget::new(0);
            done += dictionary.intern(slice, &mut indices, &mut budget).unwrap().values;
            // A slice of values, what is compared with them, and what is stored of them.
            let most = STRING_PRICE.of(256 << 10, 64) + ROOM_PRICE.of(64 << 10, 0) + (64 << 10);
            assert!(budget.spent() <= most, "{} units at once in round {round}", budget.spent());
            spent += budget.spent();
        }
    }
    // Each was looked at, and compared with those before it, of which eight are enough.
    let compared: usize = (0..COUNT).map(|number| number.min(8) * LENGTH).sum();
    assert!(spent >= 2 * STRING_PRICE.of(compared + COUNT * LENGTH, 0), "{spent} units");
    // What is found is what was stored; what is crafted so far may be stored again.
    assert!(dictionary.len() < 2 * COUNT && dictionary.may_repeat());
    let page = page(&mut dictionary);
    for (index, number) in indices.iter().zip((0..COUNT).cycle()) {
        let at = *index as usize * (LENGTH + 4) + 4;
        assert_eq!(page[at..at + LENGTH], crafted[number][..]);
    }
}
