#![expect(clippy::cast_possible_truncation, reason = "the samples fit")]

use super::super::stream::{feed, in_segments};
use super::*;
use alloc::vec;
use marquetry_base::Bytes;

/// A type to encode, as the document describes it.
trait Encode: AlpFloat {
    /// The integer for a value, if decoding it gives the value's bits back.
    fn integer(self, exponent: usize, factor: usize) -> Option<i64>;
    fn to_bits(self) -> u64;
}

impl Encode for f64 {
    fn integer(self, exponent: usize, factor: usize) -> Option<i64> {
        let scaled = (self * TENS_F64[exponent] * TENTHS_F64[factor]).round();
        let integer = (scaled.abs() < 9.2e18).then_some(scaled as i64)?;
        let decoded = integer as f64 * TENS_F64[factor] * TENTHS_F64[exponent];
        (decoded.to_bits() == self.to_bits()).then_some(integer)
    }

    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }
}

impl Encode for f32 {
    fn integer(self, exponent: usize, factor: usize) -> Option<i64> {
        let scaled = (self * TENS_F32[exponent] * TENTHS_F32[factor]).round();
        let integer = (scaled.abs() < 2.1e9).then_some(scaled as i32)?;
        let decoded = integer as f32 * TENS_F32[factor] * TENTHS_F32[exponent];
        (decoded.to_bits() == self.to_bits()).then_some(integer.into())
    }

    fn to_bits(self) -> u64 {
        f32::to_bits(self).into()
    }
}

/// How to encode: the logarithm of a vector's values, exponent, factor, excess bits, and whether exceptions go from the
/// last to the first.
#[derive(Debug, Clone, Copy)]
struct How(u8, usize, usize, u32, bool);

fn encode<T: Encode>(values: &[T], How(vector_log, exponent, factor, wider, backwards): How) -> Vec<u8> {
    let vectors: Vec<Vec<u8>> = values
        .chunks(1 << vector_log)
        .map(|values| {
            let integers: Vec<Option<i64>> =
                values.iter().map(|value| value.integer(exponent, factor)).collect();
            let stand_in = integers.iter().flatten().next().copied().unwrap_or(0);
            let packed: Vec<i64> = integers.iter().map(|integer| integer.unwrap_or(stand_in)).collect();
            let reference = *packed.iter().min().unwrap();
            let distance = |integer: i64| integer.wrapping_sub(reference).cast_unsigned();
            let most = packed.iter().map(|&integer| distance(integer)).max().unwrap();
            let width = (u64::BITS - most.leading_zeros() + wider).min(T::BYTES as u32 * 8);
            let mut exceptions: Vec<usize> = (0..values.len()).filter(|&at| integers[at].is_none()).collect();
            if backwards {
                exceptions.reverse();
            }
            let mut out = vec![exponent as u8, factor as u8];
            out.extend((exceptions.len() as u16).to_le_bytes());
            out.extend(&reference.to_le_bytes()[..T::BYTES]);
            out.push(width as u8);
            let start = out.len();
            out.resize(start + (values.len() * width as usize).div_ceil(8), 0);
            for (number, &integer) in packed.iter().enumerate() {
                for bit in 0..width as usize {
                    let at = number * width as usize + bit;
                    out[start + at / 8] |= ((distance(integer) >> bit & 1) as u8) << (at % 8);
                }
            }
            for &at in &exceptions {
                out.extend((at as u16).to_le_bytes());
            }
            for &at in &exceptions {
                out.extend(&values[at].to_bits().to_le_bytes()[..T::BYTES]);
            }
            out
        })
        .collect();
    let mut out = vec![0, 0, vector_log];
    out.extend((values.len() as u32).to_le_bytes());
    let mut offset = vectors.len() * OFFSET_BYTES;
    for vector in &vectors {
        out.extend((offset as u32).to_le_bytes());
        offset += vector.len();
    }
    out.extend(vectors.concat());
    out
}

fn bits<T: Encode>(values: &[T]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

fn decode<T: Encode>(bytes: &[u8], count: usize, slice: usize) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    for segment in [bytes.len(), 100] {
        let mut page = in_segments(bytes, segment.max(1));
        page.has(FIRST_BYTES);
        feed(&mut page);
        let mut alp = Alp::<T>::new(&page)?;
        let mut out = vec![T::default(); count];
        for mut out in out.chunks_mut(slice) {
            while !out.is_empty() {
                let done = alp.decode(out)?;
                alp.starved().into_iter().for_each(feed);
                out = &mut out[done..];
            }
        }
        assert!(alp.decode(&mut [T::default()]).is_err(), "more values than there are");
        found.push(bits(&out));
    }
    assert_eq!(found[0], found[1]);
    Ok(found.remove(0))
}

/// Decimals, and all kinds of values that are not.
fn doubles(count: usize) -> Vec<f64> {
    let odd = [
        f64::NAN,
        f64::from_bits(0x7ff8_0000_dead_beef),
        f64::from_bits(0xfff0_0000_0000_0001),
        -0.0,
        0.0,
        f64::INFINITY,
        f64::NEG_INFINITY,
        5e-324,
        f64::MIN_POSITIVE / 3.0,
        f64::MAX,
        f64::MIN,
        1.0 / 3.0,
        9_007_199_254_740_993.0,
    ];
    let mut state = 88172645463325252u64;
    (0..count)
        .map(|at| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if at % 11 == 5 { odd[at / 11 % odd.len()] } else { (state % 2_000_001) as f64 / 100.0 - 1e4 }
        })
        .collect()
}

fn floats(count: usize) -> Vec<f32> {
    let odd = [
        f32::NAN,
        f32::from_bits(0x7fc0_beef),
        f32::from_bits(0xff80_0001),
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e-45,
        f32::MAX,
        1.0 / 3.0,
    ];
    doubles(count)
        .iter()
        .enumerate()
        .map(|(at, &value)| if at % 11 == 5 { odd[at / 11 % odd.len()] } else { value as f32 })
        .collect()
}

#[test]
fn any_vectors_in_any_slices() {
    for count in [0, 1, 7, 8, 9, 300, 1024, 1025, 3000] {
        let (doubles, floats) = (doubles(count), floats(count));
        for how in [
            How(10, 2, 0, 0, false),
            How(3, 14, 12, 3, false),
            How(15, 4, 2, 40, false),
            How(7, 18, 18, 64, false),
            How(8, 2, 0, 1, true),
        ] {
            let bytes = encode(&doubles, how);
            for slice in [1, 5, 8, 64, 255, 1000, 4096] {
                assert_eq!(decode::<f64>(&bytes, count, slice).unwrap(), bits(&doubles), "{how:?}, {slice}");
            }
            let how = How(how.0, how.1.min(10), how.2.min(10), how.3, how.4);
            let bytes = encode(&floats, how);
            for slice in [1, 5, 8, 64, 255, 1000, 4096] {
                assert_eq!(decode::<f32>(&bytes, count, slice).unwrap(), bits(&floats), "{how:?}, {slice}");
            }
        }
    }
}

/// "Worked Example: Exceptions and Non-Zero Factor".
#[test]
fn the_document_s_example() {
    let values = [1500.0, f64::NAN, 2500.0, 333.5];
    let bytes = encode(&values, How(3, 4, 3, 0, false));
    assert_eq!(bytes.len(), HEADER_BYTES + OFFSET_BYTES + 31);
    assert_eq!(bytes[11..24], [4, 3, 1, 0, 0x07, 0x0d, 0, 0, 0, 0, 0, 0, 15]);
    assert_eq!(decode::<f64>(&bytes, 4, 4).unwrap(), bits(&values));
}

/// "computed in unsigned (wrapping) arithmetic".
#[test]
fn a_range_beyond_the_signed_largest() {
    let values = [-9.1e18, 9.1e18, 0.0, 1024.0];
    let bytes = encode(&values, How(3, 0, 0, 0, false));
    assert_eq!(bytes[23], 64, "distances of 64 bits");
    assert_eq!(bytes[13], 0, "no exception");
    assert_eq!(decode::<f64>(&bytes, 4, 4).unwrap(), bits(&values));
    let values = [-2.0e9f32, 2.0e9, 0.0];
    assert_eq!(decode::<f32>(&encode(&values, How(3, 0, 0, 0, false)), 3, 3).unwrap(), bits(&values));
}

/// With several exceptions at one position, the last one is the value, as if each were written in turn.
#[test]
fn exceptions_in_any_order_and_twice() {
    let values = [0.5, f64::NAN, f64::INFINITY, 0.25, -0.0];
    let bytes = encode(&values, How(3, 2, 0, 0, true));
    let positions = bytes.len() - 3 * 10;
    assert_eq!(bytes[positions..positions + 6], [4, 0, 2, 0, 1, 0]);
    assert_eq!(decode::<f64>(&bytes, 5, 2).unwrap(), bits(&values));
    for (wanted, at) in [([4, 0, 1, 0, 1, 0], 1), ([1, 0, 1, 0, 4, 0], 1)] {
        let mut bytes = bytes.clone();
        bytes[positions..positions + 6].copy_from_slice(&wanted);
        let numbers: Vec<usize> = (0..3).filter(|number| usize::from(wanted[number * 2]) == at).collect();
        let last = *numbers.last().unwrap();
        let value = u64::from_le_bytes(*bytes[positions + 6 + last * 8..].first_chunk().unwrap());
        for slice in [1, 5] {
            assert_eq!(decode::<f64>(&bytes, 5, slice).unwrap()[at], value);
        }
    }
}

#[test]
fn every_truncation_ends_in_an_error() {
    let doubles = doubles(200);
    for how in [How(6, 2, 0, 0, false), How(6, 2, 0, 0, true)] {
        let bytes = encode(&doubles, how);
        for cut in 0..bytes.len() {
            assert!(decode::<f64>(&bytes[..cut], 200, 77).is_err(), "cut at {cut}");
        }
    }
}

#[test]
fn no_changed_byte_does_harm() {
    let doubles = doubles(40);
    let bytes = encode(&doubles, How(4, 2, 0, 0, false));
    let mut refused = 0;
    for at in 0..bytes.len() {
        for byte in 0..=255 {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            let mut out = vec![0.0; 40];
            let whole = Alp::<f64>::new(&Bytes::from(bytes).into()).and_then(|mut alp| alp.decode(&mut out));
            refused += usize::from(whole.is_err());
        }
    }
    assert!(refused > 5000, "{refused} refused");
}

#[test]
fn headers_that_cannot_be() {
    use marquetry_base::ErrorKind;
    let bytes = encode(&doubles(40), How(4, 2, 0, 0, false));
    let vector = HEADER_BYTES + 3 * OFFSET_BYTES;
    for (at, byte, kind, message) in [
        (0, 1, ErrorKind::Unsupported, "ALP pages of compression mode 1"),
        (1, 1, ErrorKind::Unsupported, "ALP pages of integer encoding 1"),
        (2, 2, ErrorKind::Corrupt, "ALP vectors of 2^2 values"),
        (2, 16, ErrorKind::Corrupt, "ALP vectors of 2^16 values"),
        (6, 0x80, ErrorKind::Corrupt, "an ALP page of a negative number of values"),
        (6, 0x7f, ErrorKind::Corrupt, "the page ends before its last value"),
        (7, 13, ErrorKind::Corrupt, "ALP vector 0 is said to be at 13, but the one before ends at 12"),
        (vector, 19, ErrorKind::Corrupt, "an ALP vector of exponent 19 and factor 0"),
        (vector + 1, 3, ErrorKind::Corrupt, "an ALP vector of exponent 2 and factor 3"),
        (vector + 2, 17, ErrorKind::Corrupt, "an ALP vector of 16 values with 17 exceptions"),
        (vector + 12, 65, ErrorKind::Corrupt, "an ALP vector of integers of 65 bits"),
    ] {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        let error = decode::<f64>(&bytes, 40, 40).unwrap_err();
        assert_eq!((error.kind(), error.message()), (kind, message));
    }
    let mut bytes = encode(&[0.5f32, f32::NAN], How(3, 2, 0, 0, false));
    let position = bytes.len() - 6;
    bytes[position] = 2;
    assert_eq!(
        decode::<f32>(&bytes, 2, 2).unwrap_err().message(),
        "an exception at position 2 of an ALP vector of 2 values"
    );
    bytes[11] = 11;
    assert!(decode::<f32>(&bytes, 2, 2).unwrap_err().message().contains("exponent 11"));
}
