//! ALP: floating-point numbers as decimals, bit-packed, with other values stored as exceptions.
//!
//! A page consists of vectors of a power of two values. A vector holds integers `n`, bit-packed as their distance from
//! the smallest; a value is `n × 10^factor × 10^-exponent`, in two multiplications of the type's own precision. Values
//! that this does not reproduce bit for bit are *exceptions*: a position in the vector, and the value.
//!
//! Source: `AlpEncoding.md`; `Encodings.md`, "ALP".

pub(crate) mod encode;

use alloc::format;
use alloc::vec::Vec;
use core::marker::PhantomData;

use marquetry_base::{Error, Result};
use marquetry_kernels::unpack;

use super::stream::{FIRST_BYTES, Stream};
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

    /// Decodes bit-packed integers, starting with number `first`; false if `packed` ends too early.
    fn decode(scale: &Scale, packed: &[u8], first: usize, out: &mut [Self]) -> bool;
}

/// How a vector's bit-packed integers become values.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scale {
    exponent: usize,
    factor: usize,
    /// The smallest integer, which is subtracted from the bit-packed ones.
    reference: u64,
    /// Bits of a bit-packed integer.
    width: u32,
}

/// Integers that are unpacked at a time: complete groups of eight, small enough for a small stack.
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

// Literals, because the format demands the numbers nearest to the decimals, which computed powers need not be.
const TENS_F32: [f32; 11] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10];
const TENTHS_F32: [f32; 11] = [1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10];
const TENS_F64: [f64; 19] =
    [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18];
const TENTHS_F64: [f64; 19] = [
    1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-14, 1e-15,
    1e-16, 1e-17, 1e-18,
];

// A valid exponent is a valid index.
const _: () = assert!(TENS_F32.len() == f32::EXPONENT_MAX as usize + 1);
const _: () = assert!(TENS_F64.len() == f64::EXPONENT_MAX as usize + 1);

/// Bytes of a page's header. Offsets are counted from its end.
const HEADER_BYTES: usize = 7;

// The header is available when a decoder is created.
const _: () = assert!(HEADER_BYTES <= FIRST_BYTES);

/// Bytes of a vector's offset.
const OFFSET_BYTES: usize = 4;

/// A decoder of a page.
#[derive(Debug, Clone)]
pub(crate) struct Alp<T> {
    /// The vectors' offsets, which precede the vectors.
    offsets: Stream,
    /// The vectors, from the start of the current one.
    vectors: Stream,
    /// Values in the page, by its header.
    values: usize,
    /// The next value's number.
    next: usize,
    /// The logarithm of a vector's values.
    vector_log: u32,
    /// Where the next vector starts, counted from the header's end: after the previous one.
    vector_start: usize,
    vector: Vector,
    values_are: PhantomData<T>,
}

/// The vector that the next value is in.
#[derive(Debug, Clone, Default)]
struct Vector {
    values: usize,
    scale: Scale,
    /// Where the bit-packed integers start, counted from the vector's start; the exceptions' positions; their values;
    /// and the end.
    packed: usize,
    positions: usize,
    exceptions: usize,
    end: usize,
    /// The next exception, if positions ascend, as those of every known writer do.
    next_exception: usize,
    exception_count: usize,
    /// Otherwise, for each position, the number of its last exception plus one, or 0.
    exception_of: Vec<u16>,
}

impl<T: AlpFloat> Alp<T> {
    /// A decoder of `page`, which is held.
    pub(crate) fn new(page: &Stream) -> Result<Alp<T>> {
        let Some(&[mode, integers, vector_log, v0, v1, v2, v3]) = page.there().first_chunk::<HEADER_BYTES>()
        else {
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
        let bytes = page.left();
        if vectors > (bytes - HEADER_BYTES) / OFFSET_BYTES {
            return Err(too_few_values());
        }
        let offsets = vectors * OFFSET_BYTES;
        Ok(Alp {
            offsets: page.part(HEADER_BYTES, offsets),
            vectors: page.part(HEADER_BYTES + offsets, bytes),
            values,
            next: 0,
            vector_log: vector_log.into(),
            vector_start: offsets,
            vector: Vector::default(),
            values_are: PhantomData,
        })
    }

    /// The stream that needs bytes.
    pub(crate) fn starved(&mut self) -> Option<&mut Stream> {
        [&mut self.offsets, &mut self.vectors].into_iter().find(|stream| stream.is_starved())
    }

    /// Decodes values, as many as have arrived.
    pub(crate) fn decode(&mut self, out: &mut [T]) -> Result<usize> {
        if out.len() > self.values - self.next {
            return Err(too_few_values());
        }
        let mut done = 0;
        while done < out.len() {
            let first = self.next % (1 << self.vector_log);
            if first == 0 && !self.next_vector()? {
                break;
            }
            let take = (out.len() - done).min(self.vector.values - first);
            let now = &mut out[done..done + take];
            let packed = &self.vectors.there()[self.vector.packed..self.vector.positions];
            if !T::decode(&self.vector.scale, packed, first, now) {
                return Err(Error::internal("packed integers of a checked length were refused"));
            }
            self.patch(first, now);
            self.next += take;
            done += take;
        }
        Ok(done)
    }

    /// Puts the exceptions into their places among the vector's values, starting with value `first`.
    fn patch(&mut self, first: usize, out: &mut [T]) {
        let vector = &mut self.vector;
        let bytes = self.vectors.there();
        let exceptions = &bytes[vector.exceptions..];
        let exception = |number: usize| T::from_bits(T::bits(&exceptions[number * T::BYTES..]));
        if !vector.exception_of.is_empty() {
            for (out, &number) in out.iter_mut().zip(&vector.exception_of[first..]) {
                if number > 0 {
                    *out = exception(usize::from(number) - 1);
                }
            }
            return;
        }
        let positions = &bytes[vector.positions..vector.exceptions];
        while vector.next_exception < vector.exception_count {
            let position = position(positions, vector.next_exception);
            let Some(out) = position.checked_sub(first).and_then(|at| out.get_mut(at)) else { break };
            *out = exception(vector.next_exception);
            vector.next_exception += 1;
        }
    }

    /// Reads and checks a vector's header and the positions of its exceptions: at most 2^15 of them. False if a stream
    /// needs bytes first.
    fn next_vector(&mut self) -> Result<bool> {
        self.vectors.advance(core::mem::take(&mut self.vector.end));
        let header_bytes = 4 + T::BYTES + 1;
        if !self.offsets.has(OFFSET_BYTES) || !self.vectors.has(header_bytes) {
            return Ok(false);
        }
        let number = self.next >> self.vector_log;
        let offset = u32::from_le_bytes(*self.offsets.there().first_chunk().ok_or_else(too_few_values)?);
        // Vectors follow one another without a gap, so a vector's offset says nothing new.
        if offset as usize != self.vector_start {
            return Err(Error::corrupt(format!(
                "ALP vector {number} is said to be at {offset}, but the one before ends at {}",
                self.vector_start
            )));
        }
        let values = (self.values - self.next).min(1 << self.vector_log);
        let bytes = self.vectors.there();
        let Some((&[exponent, factor, low, high], rest)) = bytes.split_first_chunk() else {
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
        let packed = header_bytes;
        let positions = packed + (values * usize::from(width)).div_ceil(8);
        let exceptions = positions + exception_count * 2;
        let end = exceptions + exception_count * T::BYTES;
        if end > self.vectors.left() {
            return Err(too_few_values());
        }
        let reference = T::bits(rest);
        if !self.vectors.has(end) {
            return Ok(false);
        }
        let exception_of = by_position(&self.vectors.there()[positions..exceptions], values)?;
        self.offsets.advance(OFFSET_BYTES);
        self.vector_start += end;
        self.vector = Vector {
            values,
            scale: Scale { exponent: exponent.into(), factor: factor.into(), reference, width: width.into() },
            packed,
            positions,
            exceptions,
            end,
            next_exception: 0,
            exception_count,
            exception_of,
        };
        Ok(true)
    }
}

fn position(positions: &[u8], number: usize) -> usize {
    positions[number * 2..].first_chunk().map_or(0, |bytes| usize::from(u16::from_le_bytes(*bytes)))
}

/// Checks positions. If they do not ascend, returns which exception each position has; otherwise nothing.
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
