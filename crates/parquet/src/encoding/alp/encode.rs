//! Writing ALP.
//!
//! The powers of ten are chosen by a page's first vector: all are tried on a few values, and for each further vector,
//! the best of them on a few of its values.
//!
//! Source: `AlpEncoding.md`; A. Afroozeh, L. Kuffo, P. Boncz, "ALP: Adaptive Lossless Floating-Point Compression" (2023).

use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Price, Result, cast};
use marquetry_kernels::pack;

use super::super::output::{Body, Output};
use super::{AlpFloat, HEADER_BYTES, OFFSET_BYTES, TENS_F32, TENS_F64, TENTHS_F32, TENTHS_F64};

/// The prices of a value, and of choosing powers for a vector, and for a page's first vector.
const VALUE_PRICE: Price = Price::per_kilovalue(8 << 10);
const TRY_PRICE: Price = Price::per_kilovalue(4 << 10);

/// The logarithm of a vector's values.
const VECTOR_LOG: u8 = 10;
const VECTOR: usize = 1 << VECTOR_LOG;

/// Values of a vector that powers are tried on, and powers that are kept for a page's further vectors.
const TRIED: usize = 32;
const KEPT: usize = 5;

/// A number to encode.
pub(crate) trait AlpValue: AlpFloat {
    /// The value's bits.
    fn to_bits(self) -> u64;

    /// The integer for a value, if decoding it gives the value's bits back. It must be far below the largest integer
    /// that the type represents exactly, because numbers of that size are what rounds it.
    fn integer(self, exponent: usize, factor: usize) -> Option<i64>;
}

macro_rules! alp_value {
    ($type:ty, $tens:ident, $tenths:ident, $rounds:expr) => {
        impl AlpValue for $type {
            fn to_bits(self) -> u64 {
                <$type>::to_bits(self).into()
            }

            #[inline(always)]
            fn integer(self, exponent: usize, factor: usize) -> Option<i64> {
                const ROUNDS: $type = $rounds;
                // A subnormal number never is such an integer, and a processor takes 60 ns to multiply it.
                let exponent_bits = <$type>::to_bits(self) & <$type>::to_bits(<$type>::INFINITY);
                let normal = if exponent_bits == 0 { 0.0 } else { self };
                let scaled = normal * $tens[exponent] * $tenths[factor];
                // A sum as large as this has no fractional digits. (`round` is not in `core`.)
                let rounded = scaled + ROUNDS - ROUNDS;
                let decoded = rounded * $tens[factor] * $tenths[exponent];
                let is_same = <$type>::to_bits(decoded) == <$type>::to_bits(self);
                #[expect(clippy::cast_possible_truncation, reason = "it is an integer, and far smaller")]
                (is_same && rounded.abs() < ROUNDS / 4.0).then_some(rounded as i64)
            }
        }
    };
}
// 1.5 times the first power of two from which on all numbers are integers.
alp_value!(f32, TENS_F32, TENTHS_F32, 12_582_912.0);
alp_value!(f64, TENS_F64, TENTHS_F64, 6_755_399_441_055_744.0);

/// Powers of ten: exponent and factor.
type Powers = (usize, usize);

/// An encoder of pages.
#[derive(Debug)]
pub(crate) struct AlpEncoder<T> {
    /// The vectors, and where each starts.
    vectors: Output,
    starts: Vec<usize>,
    values: usize,
    /// Values that do not fill a vector yet.
    open: Vec<T>,
    /// The powers that were best most often in a page's first vector.
    kept: [Powers; KEPT],
}

impl<T: AlpValue> Default for AlpEncoder<T> {
    fn default() -> AlpEncoder<T> {
        AlpEncoder {
            vectors: Output::default(),
            starts: Vec::new(),
            values: 0,
            open: Vec::new(),
            kept: [(0, 0); KEPT],
        }
    }
}

impl<T: AlpValue> AlpEncoder<T> {
    /// Takes as many values as the budget pays for, and returns how many.
    pub(crate) fn put(&mut self, values: &[T], budget: &mut Budget<'_>) -> Result<usize> {
        let mut done = 0;
        while done < values.len() {
            let now = &values[done..values.len().min(done + VECTOR - self.open.len())];
            if now.len() == VECTOR {
                self.vector(now, budget)?;
            } else {
                self.open
                    .try_reserve_exact(now.len())
                    .map_err(|_| Error::out_of_memory(VECTOR * T::BYTES))?;
                self.open.extend_from_slice(now);
                budget.charge(VALUE_PRICE, 0, now.len());
                if self.open.len() == VECTOR {
                    self.close(budget)?;
                }
            }
            done += now.len();
            self.values += now.len();
            if budget.is_spent() {
                break;
            }
        }
        Ok(done)
    }

    /// Bytes of the page so far, approximately.
    pub(crate) fn bytes(&self) -> usize {
        let closed = self.values - self.open.len();
        let open = (self.vectors.len() * self.open.len()).checked_div(closed);
        let head = HEADER_BYTES + self.values.div_ceil(VECTOR) * OFFSET_BYTES;
        head + self.vectors.len() + open.unwrap_or(self.open.len() * T::BYTES)
    }

    /// Ends the page.
    pub(crate) fn finish(&mut self, budget: &mut Budget<'_>) -> Result<Body> {
        self.close(budget)?;
        let too_long = |_| Error::too_large("an ALP page of 2^31 values or 4 GiB");
        let [v0, v1, v2, v3] = i32::try_from(self.values).map_err(too_long)?.to_le_bytes();
        let mut head = Output::default();
        head.put(&[0, 0, VECTOR_LOG, v0, v1, v2, v3])?;
        for start in &self.starts {
            let offset = self.starts.len() * OFFSET_BYTES + start;
            head.put(&u32::try_from(offset).map_err(too_long)?.to_le_bytes())?;
        }
        let mut body = head.finish(&[])?;
        body.append(self.vectors.finish(&[])?);
        (self.values, self.kept) = (0, [(0, 0); KEPT]);
        self.starts.clear();
        Ok(body)
    }

    /// Writes the values that do not fill a vector, if any.
    fn close(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let mut open = core::mem::take(&mut self.open);
        if !open.is_empty() {
            self.vector(&open, budget)?;
            open.clear();
        }
        self.open = open;
        Ok(())
    }

    /// Writes a vector.
    fn vector(&mut self, values: &[T], budget: &mut Budget<'_>) -> Result<()> {
        let (exponent, factor) = self.powers(values, budget);
        budget.charge(VALUE_PRICE, 0, values.len());
        // An exception gets its neighbour's integer, which never needs more bits.
        let mut integers = [0i64; VECTOR];
        let mut exceptions = [0u16; VECTOR];
        let (mut count, mut stand_in) = (0, None);
        for ((at, &value), integer) in (0u16..).zip(values).zip(&mut integers) {
            match value.integer(exponent, factor) {
                Some(found) => {
                    *integer = found;
                    stand_in.get_or_insert(found);
                }
                None => {
                    exceptions[count] = at;
                    count += 1;
                }
            }
        }
        let exceptions = &exceptions[..count];
        for &at in exceptions {
            integers[usize::from(at)] = stand_in.unwrap_or(0);
        }
        let integers = &integers[..values.len()];
        let least = integers.iter().copied().min().unwrap_or(0);
        let mut distances = [0u64; VECTOR];
        let distances = &mut distances[..values.len()];
        for (distance, integer) in distances.iter_mut().zip(integers) {
            *distance = integer.wrapping_sub(least).cast_unsigned();
        }
        let width = marquetry_kernels::differences::width_u64(distances);

        self.starts.try_reserve(1).map_err(|_| Error::out_of_memory(OFFSET_BYTES))?;
        self.starts.push(self.vectors.len());
        let byte = |number: usize| cast::low_u8(cast::u64_of(number));
        let [low, high] = u16::try_from(count).unwrap_or(0).to_le_bytes();
        self.vectors.put(&[byte(exponent), byte(factor), low, high])?;
        self.vectors.put(&least.to_le_bytes()[..T::BYTES])?;
        self.vectors.put(&[cast::low_u8(width.into())])?;
        let packed = self.vectors.room((values.len() * width as usize).div_ceil(8))?;
        pack::u64(width, distances, packed).map_err(|_| Error::internal("no room for packed integers"))?;
        for at in exceptions {
            self.vectors.put(&at.to_le_bytes())?;
        }
        for &at in exceptions {
            self.vectors.put(&values[usize::from(at)].to_bits().to_le_bytes()[..T::BYTES])?;
        }
        Ok(())
    }

    /// The best powers for a vector, judged by some of its values.
    fn powers(&mut self, values: &[T], budget: &mut Budget<'_>) -> Powers {
        let step = values.len().div_ceil(TRIED).max(1);
        let cost = |powers: Powers| cost(values.iter().step_by(step).copied(), powers);
        if self.starts.is_empty() {
            // Of equally good ones, the first is kept at the front.
            let mut costs = [usize::MAX; KEPT];
            let all = (0..=usize::from(T::EXPONENT_MAX)).flat_map(|e| (0..=e).map(move |f| (e, f)));
            for (tried, powers) in all.enumerate() {
                let cost = cost(powers);
                let place = costs.partition_point(|&kept| kept <= cost);
                if place < KEPT {
                    costs[place..].rotate_right(1);
                    self.kept[place..].rotate_right(1);
                    (costs[place], self.kept[place]) = (cost, powers);
                }
                if tried % KEPT == 0 {
                    budget.charge(TRY_PRICE, 0, TRIED * KEPT);
                }
            }
            return self.kept[0];
        }
        budget.charge(TRY_PRICE, 0, TRIED * KEPT);
        self.kept.into_iter().min_by_key(|&powers| cost(powers)).unwrap_or_default()
    }
}

/// The bits that these values take.
fn cost<T: AlpValue>(values: impl Iterator<Item = T>, (exponent, factor): Powers) -> usize {
    let (mut least, mut most, mut count, mut exceptions) = (i64::MAX, i64::MIN, 0, 0);
    for value in values {
        count += 1;
        match value.integer(exponent, factor) {
            Some(integer) => (least, most) = (least.min(integer), most.max(integer)),
            None => exceptions += 1,
        }
    }
    let range = if least <= most { most.wrapping_sub(least).cast_unsigned() } else { 0 };
    let width = (u64::BITS - range.leading_zeros()) as usize;
    count * width + exceptions * (16 + T::BYTES * 8)
}
