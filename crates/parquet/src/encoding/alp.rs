//! ALP: floating-point numbers as decimals, bit-packed, with what is no decimal beside them.
//!
//! A page is vectors of a power of two values. A vector holds integers `n`, packed as their distance from the smallest;
//! a value is `n × 10^factor × 10^-exponent`, in two multiplications of the type's own precision. Values that this does
//! not give back bit for bit are *exceptions*: a position in the vector, and the value.
//!
//! Source: `AlpEncoding.md`; `Encodings.md`, "ALP".

use alloc::format;
use alloc::vec::Vec;
use core::marker::PhantomData;

use marquetry_base::{Bytes, Error, Result};
use marquetry_kernels::unpack;

use super::too_few_values;

/// A number that ALP encodes.
pub(crate) trait AlpFloat: Copy + Default {
    /// Bytes of a value, and of a vector's smallest integer.
    const BYTES: usize;
    /// The largest exponent.
    const EXPONENT_MAX: u8;

    /// The smallest integer of a vector, or an exception's bits, from its [`Self::BYTES`] bytes.
    fn bits(bytes: &[u8]) -> u64;

    /// The value that has these bits.
    fn from_bits(bits: u64) -> Self;

    /// Decodes the packed integers from number `first` on; false if `packed` ends too early.
    fn decode(scale: &Scale, packed: &[u8], first: usize, out: &mut [Self]) -> bool;
}

/// How a vector's packed integers become values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scale {
    exponent: usize,
    factor: usize,
    /// The smallest integer, which the packed ones are the distances from.
    reference: u64,
    /// Bits of a packed integer.
    width: u32,
}

/// Integers that are unpacked at a time: whole groups of eight, in room for a small stack.
const PIECE: usize = 256;

impl AlpFloat for f32 {
    const BYTES: usize = 4;
    const EXPONENT_MAX: u8 = 10;

    fn bits(bytes: &[u8]) -> u64 {
        bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes).into())
    }

    fn from_bits(bits: u64) -> f32 {
        f32::from_bits(low(bits))
    }

    fn decode(scale: &Scale, packed: &[u8], first: usize, out: &mut [f32]) -> bool {
        let reference = low(scale.reference);
        let (factor, exponent) = (TENS_F32[scale.factor], TENTHS_F32[scale.exponent]);
        let mut distances = [0u32; PIECE];
        for (piece, out) in out.chunks_mut(PIECE).enumerate() {
            let distances = &mut distances[..out.len()];
            if unpack::u32_from(scale.width, packed, first + piece * PIECE, distances).is_err() {
                return false;
            }
            for (out, distance) in out.iter_mut().zip(distances) {
                *out = distance.wrapping_add(reference).cast_signed() as f32 * factor * exponent;
            }
        }
        true
    }
}

impl AlpFloat for f64 {
    const BYTES: usize = 8;
    const EXPONENT_MAX: u8 = 18;

    fn bits(bytes: &[u8]) -> u64 {
        bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    fn from_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }

    fn decode(scale: &Scale, packed: &[u8], first: usize, out: &mut [f64]) -> bool {
        let (factor, exponent) = (TENS_F64[scale.factor], TENTHS_F64[scale.exponent]);
        let mut distances = [0u64; PIECE];
        for (piece, out) in out.chunks_mut(PIECE).enumerate() {
            let distances = &mut distances[..out.len()];
            if unpack::u64_from(scale.width, packed, first + piece * PIECE, distances).is_err() {
                return false;
            }
            for (out, distance) in out.iter_mut().zip(distances) {
                *out = distance.wrapping_add(scale.reference).cast_signed() as f64 * factor * exponent;
            }
        }
        true
    }
}

fn low(bits: u64) -> u32 {
    marquetry_base::cast::low_u32(bits)
}

// Literals, for the format demands the nearest numbers to the decimals, which computed powers need not be.
const TENS_F32: [f32; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
const TENTHS_F32: [f32; 11] = [1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10];
const TENS_F64: [f64; 19] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];
const TENTHS_F64: [f64; 19] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15,
    1e-16, 1e-17, 1e-18,
];

// An exponent in its range is an index in its range.
const _: () = assert!(TENS_F32.len() == f32::EXPONENT_MAX as usize + 1);
const _: () = assert!(TENS_F64.len() == f64::EXPONENT_MAX as usize + 1);

/// Bytes of a page's header. Offsets are counted from its end.
const HEADER_BYTES: usize = 7;

/// Bytes of a vector's offset.
const OFFSET_BYTES: usize = 4;

/// A decoder of a page.
#[derive(Debug, Clone)]
pub(crate) struct Alp<T> {
    bytes: Bytes,
    /// Values in the page, by its header.
    values: usize,
    /// The next value's number.
    next: usize,
    /// The logarithm of a vector's values.
    vector_log: u32,
    /// Where the next vector starts, from the header's end on: behind the one before.
    vector_start: usize,
    vector: Vector,
    values_are: PhantomData<T>,
}

/// The vector that the next value is in.
#[derive(Debug, Clone, Default)]
struct Vector {
    values: usize,
    scale: Scale,
    /// Where the packed integers start, and the exceptions' positions and values.
    packed: usize,
    positions: usize,
    exceptions: usize,
    /// Exceptions not yet passed, where their positions ascend, as every known writer has them.
    next_exception: usize,
    exception_count: usize,
    /// Otherwise, for each position, the number of its last exception and one, or 0.
    exception_of: Vec<u16>,
}

impl<T: AlpFloat> Alp<T> {
    /// A decoder of the page that `bytes` are.
    pub(crate) fn new(bytes: Bytes) -> Result<Alp<T>> {
        let Some(&[mode, integers, vector_log, v0, v1, v2, v3]) = bytes.first_chunk::<HEADER_BYTES>() else {
            return Err(too_few_values());
        };
        if mode != 0 {
            return Err(Error::unsupported(format!("ALP pages of compression mode {mode}")));
        }
        if integers != 0 {
            return Err(Error::unsupported(format!("ALP pages of integer encoding {integers}")));
        }
        if !(3..=15).contains(&vector_log) {
            return Err(Error::corrupt(format!("ALP vectors of 2^{vector_log} values")));
        }
        let values = usize::try_from(i32::from_le_bytes([v0, v1, v2, v3]))
            .map_err(|_| Error::corrupt("an ALP page of a negative number of values"))?;
        let vectors = values.div_ceil(1 << vector_log);
        if vectors > (bytes.len() - HEADER_BYTES) / OFFSET_BYTES {
            return Err(too_few_values());
        }
        Ok(Alp {
            bytes,
            values,
            next: 0,
            vector_log: vector_log.into(),
            vector_start: vectors * OFFSET_BYTES,
            vector: Vector::default(),
            values_are: PhantomData,
        })
    }

    /// Decodes values.
    pub(crate) fn decode(&mut self, mut out: &mut [T]) -> Result<()> {
        if out.len() > self.values - self.next {
            return Err(too_few_values());
        }
        while !out.is_empty() {
            let first = self.next % (1 << self.vector_log);
            if first == 0 {
                self.next_vector()?;
            }
            let take = out.len().min(self.vector.values - first);
            let (now, later) = out.split_at_mut(take);
            let packed = &self.bytes[self.vector.packed..self.vector.positions];
            if !T::decode(&self.vector.scale, packed, first, now) {
                return Err(Error::internal("packed integers of a checked length were refused"));
            }
            self.patch(first, now);
            self.next += take;
            out = later;
        }
        Ok(())
    }

    /// Puts the exceptions in their places among the vector's values from `first` on.
    fn patch(&mut self, first: usize, out: &mut [T]) {
        let vector = &mut self.vector;
        let exceptions = &self.bytes[vector.exceptions..];
        let exception = |number: usize| T::from_bits(T::bits(&exceptions[number * T::BYTES..]));
        if !vector.exception_of.is_empty() {
            for (out, &number) in out.iter_mut().zip(&vector.exception_of[first..]) {
                if number > 0 {
                    *out = exception(usize::from(number) - 1);
                }
            }
            return;
        }
        let positions = &self.bytes[vector.positions..vector.exceptions];
        while vector.next_exception < vector.exception_count {
            let position = position(positions, vector.next_exception);
            let Some(out) = position.checked_sub(first).and_then(|at| out.get_mut(at)) else { break };
            *out = exception(vector.next_exception);
            vector.next_exception += 1;
        }
    }

    /// Reads and checks a vector's header and the positions of its exceptions: at most 2^15 of them.
    fn next_vector(&mut self) -> Result<()> {
        let number = self.next >> self.vector_log;
        let body = &self.bytes[HEADER_BYTES..];
        let offset = body.get(number * OFFSET_BYTES..).and_then(<[u8]>::first_chunk);
        let offset = u32::from_le_bytes(*offset.ok_or_else(too_few_values)?);
        // Vectors follow one another without a gap, so a vector's offset says nothing new.
        if offset as usize != self.vector_start {
            return Err(Error::corrupt(format!(
                "ALP vector {number} is said to be at {offset}, but the one before ends at {}",
                self.vector_start
            )));
        }
        let values = (self.values - self.next).min(1 << self.vector_log);
        let header = HEADER_BYTES + self.vector_start;
        let Some((&[exponent, factor, low, high], rest)) =
            self.bytes.get(header..).and_then(<[u8]>::split_first_chunk)
        else {
            return Err(too_few_values());
        };
        let exception_count = usize::from(u16::from_le_bytes([low, high]));
        let width = *rest.get(T::BYTES).ok_or_else(too_few_values)?;
        if exponent > T::EXPONENT_MAX || factor > exponent {
            return Err(Error::corrupt(format!("an ALP vector of exponent {exponent} and factor {factor}")));
        }
        if usize::from(width) > T::BYTES * 8 {
            return Err(Error::corrupt(format!("an ALP vector of integers of {width} bits")));
        }
        if exception_count > values {
            return Err(Error::corrupt(format!(
                "an ALP vector of {values} values with {exception_count} exceptions"
            )));
        }
        let packed = header + 4 + T::BYTES + 1;
        let positions = packed + (values * usize::from(width)).div_ceil(8);
        let exceptions = positions + exception_count * 2;
        let end = exceptions + exception_count * T::BYTES;
        if end > self.bytes.len() {
            return Err(too_few_values());
        }
        let exception_of = by_position(&self.bytes[positions..exceptions], values)?;
        self.vector_start = end - HEADER_BYTES;
        self.vector = Vector {
            values,
            scale: Scale {
                exponent: exponent.into(),
                factor: factor.into(),
                reference: T::bits(rest),
                width: width.into(),
            },
            packed,
            positions,
            exceptions,
            next_exception: 0,
            exception_count,
            exception_of,
        };
        Ok(())
    }
}

fn position(positions: &[u8], number: usize) -> usize {
    positions[number * 2..].first_chunk().map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes)))
}

/// Checks positions. Where they do not ascend, says which exception each position has; otherwise nothing.
fn by_position(positions: &[u8], values: usize) -> Result<Vec<u16>> {
    let count = positions.len() / 2;
    let (mut ascend, mut before) = (true, 0);
    for number in 0..count {
        let position = position(positions, number);
        if position >= values {
            return Err(Error::corrupt(format!(
                "an exception at position {position} of an ALP vector of {values} values"
            )));
        }
        ascend &= position >= before;
        before = position;
    }
    let mut exception_of = Vec::new();
    if !ascend {
        exception_of
            .try_reserve_exact(values)
            .map_err(|_| Error::out_of_memory(values * size_of::<u16>()))?;
        exception_of.resize(values, 0);
        for (number, one_more) in (0..count).zip(1u16..) {
            exception_of[position(positions, number)] = one_more;
        }
    }
    Ok(exception_of)
}

#[cfg(test)]
mod tests;
