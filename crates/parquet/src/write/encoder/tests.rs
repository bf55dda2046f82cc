//! Every encoder compared with our own decoders, at any slicing.

use alloc::vec;

use marquetry_base::Bytes;

use super::*;
use crate::batch::{ByteArrays, FixedBytes, Values};
use crate::encoding::alp::Alp;
use crate::encoding::byte_stream_split::ByteStreamSplit;
use crate::encoding::delta::{Delta, DeltaInteger};
use crate::encoding::delta_byte_array::{Built, DeltaByteArray, DeltaLengthByteArray, LeadingStreams};
use crate::encoding::hybrid::Hybrid;
use crate::encoding::plain::{Accept, PlainByteArray};
use crate::encoding::stream::{Stream, feed};
use crate::encoding::view::view_bytes;
use crate::memory::Memory;

const ACCEPT: Accept = Accept { value_bytes_max: u32::MAX, width: None, only_text: false };

/// xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap()
    }
}

/// How the values of a test look.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Random,
    Equal,
    Alternating,
    Ascending,
}

const SHAPES: [Shape; 4] = [Shape::Random, Shape::Equal, Shape::Alternating, Shape::Ascending];

const LENGTHS: [usize; 13] = [0, 1, 7, 8, 9, 33, 127, 128, 129, 257, 511, 1025, 5000];

fn number(shape: Shape, at: usize, random: &mut Random) -> u64 {
    match shape {
        Shape::Random => random.next() >> random.below(64),
        Shape::Equal => 0x8182_8384_8586_8788,
        Shape::Alternating => {
            if at.is_multiple_of(2) {
                1 << 63 | 1 << 31
            } else {
                u64::MAX >> 1
            }
        }
        Shape::Ascending => at as u64 * 3,
    }
}

fn values(physical: PhysicalType, shape: Shape, count: usize) -> Values {
    let random = &mut Random(count as u64 * 7919 + 1);
    let mut numbers = || (0..count).map(|at| number(shape, at, random)).collect::<Vec<u64>>();
    match physical {
        PhysicalType::Boolean => Values::Boolean(numbers().iter().map(|number| number & 1 == 1).collect()),
        PhysicalType::Int32 => Values::Int32(
            numbers().iter().map(|&n| cast::bits_i32(cast::low_u32(n))).collect::<Vec<_>>().into(),
        ),
        PhysicalType::Int64 => {
            Values::Int64(numbers().iter().map(|&n| cast::bits_i64(n)).collect::<Vec<_>>().into())
        }
        PhysicalType::Float => Values::Float(
            numbers().iter().map(|&n| f32::from_bits(cast::low_u32(n))).collect::<Vec<_>>().into(),
        ),
        PhysicalType::Double => {
            Values::Double(numbers().iter().map(|&n| f64::from_bits(n)).collect::<Vec<_>>().into())
        }
        PhysicalType::ByteArray => {
            let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
            for number in numbers() {
                let length = match shape {
                    Shape::Random => {
                        [0, 1, 4, 11, 12, 13, 31, 32, 33, 80, 200][usize::try_from(number % 11).unwrap()]
                    }
                    Shape::Equal => 16,
                    Shape::Alternating => usize::try_from(number % 2 * 40).unwrap(),
                    Shape::Ascending => 9 + lengths.len() / 100,
                };
                let value = number.to_be_bytes();
                bytes.extend(value.iter().cycle().take(length));
                lengths.push(length);
            }
            Values::ByteArray(ByteArrays::from_lengths(bytes.into(), lengths).unwrap())
        }
        PhysicalType::Int96 | PhysicalType::FixedLenByteArray(_) => {
            let width = physical.width().unwrap();
            let bytes: Vec<u8> =
                numbers().iter().flat_map(|n| n.to_be_bytes().into_iter().cycle().take(width)).collect();
            let all = FixedBytes::new(width, count, bytes.into());
            if physical == PhysicalType::Int96 { Values::Int96(all) } else { Values::FixedLenByteArray(all) }
        }
    }
}

/// Each value's bytes, as in PLAIN; booleans are bytes.
fn bytes_of(slice: Slice<'_>) -> Vec<Vec<u8>> {
    match slice {
        Slice::Boolean { bits, first, values } => {
            (first..first + values).map(|at| vec![bits[at / 8] >> (at % 8) & 1]).collect()
        }
        Slice::ByteArray(views, buffers) => {
            views.iter().map(|view| view_bytes(&view.to_le_bytes(), buffers).unwrap().to_vec()).collect()
        }
        Slice::Indices(indices) => indices.iter().map(|index| index.to_le_bytes().to_vec()).collect(),
        Slice::Fixed { width: 0, values, .. } => vec![Vec::new(); values],
        other => {
            let (width, bytes) = other.fixed().unwrap();
            bytes.chunks(width).map(<[u8]>::to_vec).collect()
        }
    }
}

/// A page's body, with the values passed in parts. `cut` returns how many at a time; there is no budget at all.
fn encode(encoder: &mut Encoder, slice: Slice<'_>, mut cut: impl FnMut() -> usize) -> Vec<u8> {
    let mut done = 0;
    while done < slice.len() {
        let end = slice.len().min(done.saturating_add(cut().max(1)));
        let part = slice.part(done..end);
        done += encoder.put(part, &mut Budget::new(0)).unwrap();
    }
    assert_eq!(encoder.values(), slice.len());
    loop {
        if let Some(body) = encoder.finish(&mut Budget::new(0)).unwrap() {
            assert!(body.pieces().iter().all(|piece| piece.len() < 1 << 20));
            assert_eq!(body.pieces().iter().map(Bytes::len).sum::<usize>(), body.len());
            assert_eq!(encoder.values(), 0);
            return body.pieces().concat();
        }
    }
}

fn deltas<T: DeltaInteger + Into<i64>>(page: Stream, count: usize) -> Vec<i64> {
    let mut out = vec![T::default(); count];
    assert_eq!(Delta::new(page).unwrap().decode(&mut out).unwrap(), count);
    out.into_iter().map(Into::into).collect()
}

/// Each value's bytes out of a page's body.
fn decode(encoding: Encoding, physical: PhysicalType, body: &[u8], count: usize) -> Vec<Vec<u8>> {
    let whole = Bytes::copy_from_slice(body);
    let page = Stream::from(whole.clone());
    let views =
        |views: Vec<u128>, bytes: &Bytes| bytes_of(Slice::ByteArray(&views, core::slice::from_ref(bytes)));
    let leading = |count| {
        let mut streams = LeadingStreams::new(Stream::from(whole.clone()), count);
        while !streams.step(&mut 0).unwrap() {
            streams.starved().into_iter().for_each(feed);
        }
        streams
    };
    match (encoding, physical) {
        (Encoding::Plain, PhysicalType::Boolean) => {
            bytes_of(Slice::Boolean { bits: body, first: 0, values: count })
        }
        (Encoding::Plain, PhysicalType::ByteArray) => {
            let (mut decoder, mut out) = (PlainByteArray::new(page, ACCEPT), vec![0; count]);
            let mut done = 0;
            while done < count {
                done += decoder.decode(0, &mut out[done..]).unwrap().values;
            }
            views(out, &whole)
        }
        (Encoding::Plain, _) => {
            let width = physical.width().unwrap();
            assert_eq!(body.len(), count * width);
            bytes_of(Slice::Fixed { width, values: count, bytes: body })
        }
        (Encoding::Rle, _) => {
            assert_eq!(body[..4], u32::try_from(body.len() - 4).unwrap().to_le_bytes());
            let mut decoder = Hybrid::new(whole.slice(4..).into(), 1);
            let mut out = vec![0; count.div_ceil(8)];
            let mut done = 0;
            while done < count {
                done += decoder.decode_booleans(&mut out, done, count - done).unwrap();
                decoder.take_runs();
            }
            bytes_of(Slice::Boolean { bits: &out, first: 0, values: count })
        }
        (Encoding::RleDictionary, _) => {
            let (mut decoder, mut out) =
                (Hybrid::new(whole.slice(1..).into(), body[0].into()), vec![0; count]);
            let mut done = 0;
            while done < count {
                done += decoder.decode(&mut out[done..]).unwrap();
                decoder.take_runs();
            }
            bytes_of(Slice::Indices(&out))
        }
        (Encoding::DeltaBinaryPacked, PhysicalType::Int32) => {
            deltas::<i32>(page, count).iter().map(|value| value.to_le_bytes()[..4].to_vec()).collect()
        }
        (Encoding::DeltaBinaryPacked, _) => {
            deltas::<i64>(page, count).iter().map(|value| value.to_le_bytes().to_vec()).collect()
        }
        (Encoding::DeltaLengthByteArray, _) => {
            let (mut decoder, mut out) =
                (DeltaLengthByteArray::new(leading(1), ACCEPT).unwrap(), vec![0; count]);
            let mut done = 0;
            while done < count {
                done += decoder.decode(0, &mut out[done..]).unwrap().values;
            }
            views(out, decoder.bytes())
        }
        (Encoding::DeltaByteArray, _) => {
            let mut decoder = DeltaByteArray::new(leading(2), ACCEPT).unwrap();
            let mut out = Vec::new();
            while out.len() < count {
                if let Built::Value(value) = decoder.next(1, &mut Memory::unlimited()).unwrap() {
                    out.push(value.bytes().to_vec());
                }
            }
            out
        }
        (Encoding::ByteStreamSplit, _) => {
            let width = physical.width().unwrap();
            let mut out = vec![0; count * width];
            if width > 0 {
                assert_eq!(ByteStreamSplit::new(page, width).unwrap().decode(&mut out).unwrap(), count);
            }
            bytes_of(Slice::Fixed { width, values: count, bytes: &out })
        }
        (Encoding::Alp, PhysicalType::Float) => {
            let mut out = vec![0f32; count];
            assert_eq!(Alp::<f32>::new(&page).unwrap().decode(&mut out).unwrap(), count);
            bytes_of(Slice::Float(&out))
        }
        (Encoding::Alp, _) => {
            let mut out = vec![0f64; count];
            assert_eq!(Alp::<f64>::new(&page).unwrap().decode(&mut out).unwrap(), count);
            bytes_of(Slice::Double(&out))
        }
        other => panic!("no decoder for {other:?}"),
    }
}

const TYPES: [PhysicalType; 11] = [
    PhysicalType::Boolean,
    PhysicalType::Int32,
    PhysicalType::Int64,
    PhysicalType::Int96,
    PhysicalType::Float,
    PhysicalType::Double,
    PhysicalType::ByteArray,
    PhysicalType::FixedLenByteArray(0),
    PhysicalType::FixedLenByteArray(3),
    PhysicalType::FixedLenByteArray(16),
    PhysicalType::FixedLenByteArray(700),
];

const ENCODINGS: [Encoding; 7] = [
    Encoding::Plain,
    Encoding::Rle,
    Encoding::DeltaBinaryPacked,
    Encoding::DeltaLengthByteArray,
    Encoding::DeltaByteArray,
    Encoding::ByteStreamSplit,
    Encoding::Alp,
];

#[test]
fn every_type_in_every_encoding() {
    let mut pairs = 0;
    let random = &mut Random(9);
    for physical in TYPES {
        for encoding in ENCODINGS {
            let Ok(mut encoder) = Encoder::new(encoding, physical) else { continue };
            pairs += 1;
            for shape in SHAPES {
                for count in LENGTHS {
                    let values = values(physical, shape, count);
                    let slice = Slice::of(&values);
                    let what = format!("{count} {shape:?} {physical:?} in {encoding:?}");
                    let body = encode(&mut encoder, slice, || usize::MAX);
                    assert_eq!(decode(encoding, physical, &body, count), bytes_of(slice), "{what}");
                    for most in [9, 200, 3000] {
                        assert!(
                            encode(&mut encoder, slice, || random.below(most)) == body,
                            "{what}: other bytes"
                        );
                    }
                }
            }
        }
    }
    // PLAIN for all 11, booleans as runs, two for integers, 1 + 5 for strings, four for numbers and four for strings
    // split, two for floats as decimals.
    assert_eq!(pairs, 11 + 1 + 2 + 1 + 5 + 4 + 4 + 2);
}

#[test]
fn decimals_are_small() {
    let mut random = Random(31);
    for (count, digits) in [(1, 2), (1024, 0), (1025, 1), (5000, 2), (5000, 6)] {
        let scale = 10f64.powi(digits);
        let mut all: Vec<f64> =
            (0..count).map(|_| f64::from(cast::low_u32(random.next() >> 48)) / scale).collect();
        all.iter_mut().step_by(997).for_each(|value| *value = core::f64::consts::PI);
        let narrow: Vec<f32> =
            all.iter().map(|&value| f32::from(u16::try_from(value.to_bits() >> 50).unwrap()) / 8.0).collect();
        for (physical, slice, bits) in [
            (PhysicalType::Double, Slice::Double(&all), 16),
            (PhysicalType::Float, Slice::Float(&narrow), 18),
        ] {
            let mut encoder = Encoder::new(Encoding::Alp, physical).unwrap();
            let body = encode(&mut encoder, slice, || usize::MAX);
            assert_eq!(decode(Encoding::Alp, physical, &body, count), bytes_of(slice));
            assert_eq!(encode(&mut encoder, slice, || 300), body);
            let most = 27 + count.div_ceil(1024) * 20 + count * bits / 8 + count / 8;
            assert!(body.len() <= most, "{} bytes for {count} {physical:?} of {digits} digits", body.len());
        }
    }
}

#[test]
fn indices_of_any_width() {
    let mut random = Random(11);
    let mut encoder = Encoder::new(Encoding::RleDictionary, PhysicalType::Int32).unwrap();
    for width in 0..=32u32 {
        for count in LENGTHS.into_iter().chain([70_000]) {
            let one = |at: usize, random: &mut Random| match (width, at / 100 % 3) {
                (0, _) => 0,
                (_, 0) => cast::low_u32(random.next() >> (64 - width)),
                (_, part) => u32::try_from(part - 1).unwrap(),
            };
            let indices: Vec<u32> = (0..count).map(|at| one(at, &mut random)).collect();
            let body = encode(&mut encoder, Slice::Indices(&indices), || usize::MAX);
            let found = decode(Encoding::RleDictionary, PhysicalType::Int32, &body, count);
            assert!(found == bytes_of(Slice::Indices(&indices)), "{count} of {width} bits");
            assert!(encode(&mut encoder, Slice::Indices(&indices), || random.below(900)) == body);
        }
    }
}

#[test]
fn values_and_pages_of_more_than_a_piece() {
    // Strings longer than a slice, some with the same beginning; and pages of several pieces.
    let lengths = [3, 200_000, 65_535, 65_536, 65_537, 0, 1_200_000, 13, 300_000];
    let bytes: Vec<u8> = (0..lengths.iter().sum::<usize>()).map(|at| (at % 251).to_le_bytes()[0]).collect();
    let strings = Values::ByteArray(ByteArrays::from_lengths(bytes.into(), lengths).unwrap());
    for encoding in [Encoding::Plain, Encoding::DeltaLengthByteArray, Encoding::DeltaByteArray] {
        let mut encoder = Encoder::new(encoding, PhysicalType::ByteArray).unwrap();
        let slice = Slice::of(&strings);
        let body = encode(&mut encoder, slice, || 100);
        assert!(
            decode(encoding, PhysicalType::ByteArray, &body, slice.len()) == bytes_of(slice),
            "{encoding:?}"
        );
        assert!(encode(&mut encoder, slice, || 1) == body, "{encoding:?}");
    }
    for (physical, count) in [
        (PhysicalType::Int64, 300_000),
        (PhysicalType::FixedLenByteArray(7), 300_000),
        (PhysicalType::FixedLenByteArray(60_000), 40),
        (PhysicalType::FixedLenByteArray(100_000), 40),
    ] {
        let values = values(physical, Shape::Random, count);
        let slice = Slice::of(&values);
        for encoding in [Encoding::Plain, Encoding::ByteStreamSplit] {
            let Ok(mut encoder) = Encoder::new(encoding, physical) else {
                assert_eq!((encoding, physical.width()), (Encoding::ByteStreamSplit, Some(100_000)));
                continue;
            };
            let body = encode(&mut encoder, slice, || 5000);
            let width = physical.width().unwrap();
            let mut expected = slice.fixed().unwrap().1.to_vec();
            if encoding == Encoding::ByteStreamSplit {
                let all = expected.clone();
                expected.clear();
                (0..width).for_each(|k| expected.extend(all.iter().skip(k).step_by(width)));
            }
            assert!(body == expected, "{physical:?} in {encoding:?}");
        }
    }
}

#[test]
fn no_call_does_much_more_than_its_budget() {
    // Everything in one call, without a budget: what a single call charges is its minimum.
    // A piece of a page is released at once.
    const MOST: u64 = 65_000;
    for physical in TYPES {
        for encoding in ENCODINGS.into_iter().chain([Encoding::RleDictionary]) {
            let Ok(mut encoder) = Encoder::new(encoding, physical) else { continue };
            let indices: Vec<u32> = (0..20_000).collect();
            let values = values(physical, Shape::Random, 20_000);
            let slice = if encoding == Encoding::RleDictionary {
                Slice::Indices(&indices)
            } else {
                Slice::of(&values)
            };
            let mut done = 0;
            while done < slice.len() {
                let mut budget = Budget::new(0);
                done += encoder.put(slice.part(done..slice.len()), &mut budget).unwrap();
                assert!(
                    (1..MOST).contains(&budget.spent()),
                    "{} for {physical:?} in {encoding:?}",
                    budget.spent()
                );
            }
            loop {
                let mut budget = Budget::new(0);
                let body = encoder.finish(&mut budget).unwrap();
                assert!(
                    (1..MOST).contains(&budget.spent()),
                    "{} to end {physical:?} in {encoding:?}",
                    budget.spent()
                );
                if body.is_some() {
                    break;
                }
            }
        }
    }
}

#[test]
fn what_is_held_is_known() {
    for encoding in ENCODINGS {
        for physical in TYPES {
            let Ok(mut encoder) = Encoder::new(encoding, physical) else { continue };
            for shape in SHAPES {
                let values = values(physical, shape, 5000);
                encoder.put(Slice::of(&values), &mut Budget::unlimited()).unwrap();
                let said = encoder.bytes();
                let body = encoder.finish(&mut Budget::unlimited()).unwrap().unwrap();
                let exact = encoding == Encoding::Plain;
                let off = said.abs_diff(body.len());
                let most = if exact { 0 } else { body.len() / 8 + 150 };
                assert!(
                    off <= most,
                    "{said} said, {} are, {shape:?} {physical:?} in {encoding:?}",
                    body.len()
                );
            }
        }
    }
}

#[test]
fn what_does_not_go_together() {
    use Encoding::{Alp, BitPacked, DeltaBinaryPacked, PlainDictionary, Rle, RleDictionary, Unknown};
    for (encoding, physical) in [
        (Rle, PhysicalType::Int32),
        (DeltaBinaryPacked, PhysicalType::Double),
        (BitPacked, PhysicalType::Boolean),
        (RleDictionary, PhysicalType::Boolean),
        (PlainDictionary, PhysicalType::Int32),
        (Alp, PhysicalType::Int32),
        (Unknown(77), PhysicalType::Int32),
    ] {
        assert!(Encoder::new(encoding, physical).is_err(), "{physical:?} in {encoding:?}");
    }
    let mut encoder = Encoder::new(Encoding::Plain, PhysicalType::Int32).unwrap();
    assert!(encoder.put(Slice::Int64(&[1]), &mut Budget::default()).is_err());
    assert!(encoder.put(Slice::Indices(&[1]), &mut Budget::default()).is_err());
    let mut fixed = Encoder::new(Encoding::Plain, PhysicalType::FixedLenByteArray(4)).unwrap();
    let wide = Slice::Fixed { width: 5, values: 1, bytes: &[0; 5] };
    assert!(fixed.put(wide, &mut Budget::default()).is_err());
    let mut strings = Encoder::new(Encoding::Plain, PhysicalType::ByteArray).unwrap();
    let outside = [u128::from(100u32)];
    assert!(strings.put(Slice::ByteArray(&outside, &[]), &mut Budget::default()).is_err());
}

#[test]
fn levels_of_both_page_versions() {
    let levels: Vec<u8> =
        (0..3000usize).map(|at| if at % 900 < 400 { 3 } else { (at * at % 4).to_le_bytes()[0] }).collect();
    let mut encoder = LevelEncoder::new(3);
    for with_length in [true, false] {
        let mut done = 0;
        while done < levels.len() {
            done += encoder.put(&levels[done..levels.len().min(done + 77)], &mut Budget::new(0)).unwrap();
        }
        assert_eq!(encoder.levels(), 3000);
        let about = encoder.bytes();
        let mut body = encoder.finish(with_length).unwrap().pieces().concat();
        if with_length {
            assert_eq!(body[..4], u32::try_from(body.len() - 4).unwrap().to_le_bytes());
            body.drain(..4);
        }
        assert!(about.abs_diff(body.len()) < 10);
        let (mut decoder, mut out) = (Hybrid::new(Bytes::from(body).into(), 2), vec![0; 3000]);
        assert_eq!(decoder.decode_levels(3, &mut out).unwrap(), 3000);
        assert_eq!(out, levels);
    }
    assert!(encoder.put(&[4], &mut Budget::default()).is_err());
    assert!(encoder.put_run(4, 1).is_err());
    let there: Bitmap = (0..100).map(|at| at % 3 > 0).collect();
    assert!(encoder.put_validity(&there, 0..100, &mut Budget::default()).is_err());

    let mut flat = LevelEncoder::new(1);
    assert_eq!(flat.put_validity(&there, 5..90, &mut Budget::default()).unwrap(), 85);
    let bits = flat.finish(true).unwrap();
    let narrow: Vec<u8> = there.iter().skip(5).take(85).map(u8::from).collect();
    flat.put(&narrow, &mut Budget::default()).unwrap();
    assert_eq!(flat.finish(true).unwrap(), bits);
    flat.put_run(1, 1 << 20).unwrap();
    assert_eq!(flat.finish(true).unwrap().pieces()[0][..], [5, 0, 0, 0, 0x80, 0x80, 0x80, 1, 1]);

    let mut none = LevelEncoder::new(0);
    none.put_run(0, 100).unwrap();
    assert_eq!((none.put(&[0; 9], &mut Budget::default()).unwrap(), none.levels()), (9, 109));
    assert!(none.finish(true).unwrap().is_empty());
}

#[test]
fn nulls_are_left_out() {
    let mut random = Random(21);
    let mut compacted = Compacted::default();
    for physical in TYPES {
        for count in [0, 1, 63, 64, 65, 500] {
            let values = values(physical, Shape::Random, count);
            let slice = Slice::of(&values);
            let validity: Bitmap = (0..count).map(|at| (at / 64) % 2 == 0 || random.below(3) > 0).collect();
            let expected: Vec<Vec<u8>> = bytes_of(slice)
                .into_iter()
                .zip(validity.iter())
                .filter(|(_, there)| *there)
                .map(|(value, _)| value)
                .collect();
            let there = compacted.compact(slice, &validity, &mut Budget::default()).unwrap();
            assert_eq!((bytes_of(there), there.len()), (expected.clone(), expected.len()), "{physical:?}");
        }
    }
    let other: Bitmap = (0..4).map(|_| true).collect();
    assert!(compacted.compact(Slice::Int32(&[1; 3]), &other, &mut Budget::default()).is_err());
}
