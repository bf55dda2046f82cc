//! Values in another type, column by column.

use marquetry_base::cast::{bits_i32, bits_i64, bits_u32, bits_u64, exact_f64, integer_of_f64, nearest_f32};
use marquetry_base::{Bitmap, Bytes, twos_complement};
use marquetry_parquet::batch::{ByteArrays, FixedBytes, Value, Values};
use marquetry_parquet::print::{self, Shown};
use marquetry_parquet::scalar::{float_of_half, half_of_float, int96_nanos, int96_of_nanos};
use marquetry_parquet::schema::{Meaning, PhysicalType};
use marquetry_text::Scalar;

use super::plan::{Conversion, How};

/// The values of an array, of which some are null.
#[derive(Clone, Copy)]
pub(super) struct Slots<'a> {
    pub(super) count: usize,
    /// A bit for each value that is there. `None` if all are.
    pub(super) present: Option<&'a Bitmap>,
}

/// The index of the first value that does not fit.
type Converted<T> = Result<T, usize>;

impl Slots<'_> {
    /// Makes a value of each that is there; a null's is zero.
    #[inline]
    fn each<T: Default>(self, of: impl Fn(usize) -> Option<T>) -> Converted<Vec<T>> {
        let mut out = Vec::with_capacity(self.count);
        match self.present {
            None => {
                for at in 0..self.count {
                    out.push(of(at).ok_or(at)?);
                }
            }
            Some(present) => {
                for at in 0..self.count {
                    out.push(if present.get(at) { of(at).ok_or(at)? } else { T::default() });
                }
            }
        }
        Ok(out)
    }

    fn has(self, at: usize) -> bool {
        self.present.is_none_or(|present| present.get(at))
    }
}

impl Conversion {
    /// The values in the other type; a null's is zero or empty.
    ///
    /// # Errors
    ///
    /// The index of the first one that does not fit.
    pub(super) fn of(&self, values: &Values, slots: Slots<'_>) -> Converted<Values> {
        match self.how {
            How::Relabel => Ok(values.clone()),
            How::Nulls => self.to.values((0..slots.count).map(|_| None)),
            How::Number => self.numbers(values, slots),
            How::Units { times, per } => self.units(values, slots, times, per),
            How::Nanos => self.nanos(values, slots),
            How::Bytes => self.bytes(values, slots),
            How::Text => self.texts(values, slots),
        }
    }

    fn numbers(&self, values: &Values, slots: Slots<'_>) -> Converted<Values> {
        let scale = match self.from {
            Meaning::Decimal { scale, .. } => u32::try_from(scale).unwrap_or(0),
            _ => 0,
        };
        let is_unsigned = matches!(self.from, Meaning::Integer { is_signed: false, .. });
        match values {
            Values::Int32(values) if is_unsigned => {
                self.integers(slots, scale, |at| Some(i128::from(bits_u32(values[at]))))
            }
            Values::Int32(values) => self.integers(slots, scale, |at| Some(i128::from(values[at]))),
            Values::Int64(values) if is_unsigned => {
                self.integers(slots, scale, |at| Some(i128::from(bits_u64(values[at]))))
            }
            Values::Int64(values) => self.integers(slots, scale, |at| Some(i128::from(values[at]))),
            Values::Float(values) => self.floats(slots, |at| Some(f64::from(values[at]))),
            Values::Double(values) => self.floats(slots, |at| Some(values[at])),
            Values::ByteArray(values) => {
                self.integers(slots, scale, |at| twos_complement::to_i128(values.get(at)))
            }
            Values::FixedLenByteArray(values) if self.from == Meaning::Float16 => self.floats(slots, |at| {
                let half = u16::from_le_bytes(values.get(at).try_into().ok()?);
                Some(f64::from(float_of_half(half)))
            }),
            Values::FixedLenByteArray(values) => {
                self.integers(slots, scale, |at| twos_complement::to_i128(values.get(at)))
            }
            Values::Boolean(_) | Values::Int96(_) | Values::Dictionary(..) => Err(0),
        }
    }

    /// Integers, or decimals with `scale` digits after the point.
    #[inline]
    fn integers(
        &self,
        slots: Slots<'_>,
        scale: u32,
        unscaled: impl Fn(usize) -> Option<i128>,
    ) -> Converted<Values> {
        let (wanted_scale, bound) = match self.to {
            Scalar::Decimal { precision, scale } => (scale, 10_i128.checked_pow(precision)),
            _ => (0, None),
        };
        // Powers of ten that are too large fit no value but zero.
        let times = wanted_scale.checked_sub(scale).map(|more| 10_i128.checked_pow(more).unwrap_or(0));
        let per =
            scale.checked_sub(wanted_scale).map_or(1, |less| 10_i128.checked_pow(less).unwrap_or(i128::MAX));
        let scaled = |at: usize| -> Option<i128> {
            let value = unscaled(at)?;
            let value = match times {
                Some(1) => value,
                Some(0) => (value == 0).then_some(0)?,
                Some(times) => value.checked_mul(times)?,
                None => (value % per == 0).then(|| value / per)?,
            };
            bound.is_none_or(|bound| value > -bound && value < bound).then_some(value)
        };
        Ok(match (self.to, self.to.types().0) {
            (Scalar::Integer(bits), PhysicalType::Int32) => {
                let room = 1_i128 << (bits - 1);
                let of = |at| {
                    let value = scaled(at)?;
                    (-room..room).contains(&value).then(|| i32::try_from(value).ok()).flatten()
                };
                Values::Int32(slots.each(of)?.into())
            }
            (Scalar::Unsigned(bits), PhysicalType::Int32) => {
                let of = |at| {
                    let value = u32::try_from(scaled(at)?).ok()?;
                    (u64::from(value) < 1 << bits).then(|| bits_i32(value))
                };
                Values::Int32(slots.each(of)?.into())
            }
            (Scalar::Unsigned(_), _) => {
                Values::Int64(slots.each(|at| u64::try_from(scaled(at)?).ok().map(bits_i64))?.into())
            }
            (Scalar::Float16, _) => {
                let of = |at| half(exact_f64(scaled(at)?).filter(|it| nearest_half(*it) == Some(*it))?);
                Values::FixedLenByteArray(halves(slots.each(of)?))
            }
            (_, PhysicalType::Float) => {
                let of = |at| {
                    let value = exact_f64(scaled(at)?)?;
                    nearest_f32(value).filter(|near| f64::from(*near) == value)
                };
                Values::Float(slots.each(of)?.into())
            }
            (_, PhysicalType::Double) => Values::Double(slots.each(|at| exact_f64(scaled(at)?))?.into()),
            (_, PhysicalType::Int32) => {
                Values::Int32(slots.each(|at| i32::try_from(scaled(at)?).ok())?.into())
            }
            (_, PhysicalType::Int64) => {
                Values::Int64(slots.each(|at| i64::try_from(scaled(at)?).ok())?.into())
            }
            _ => {
                let mut bytes = Vec::with_capacity(slots.count * 16);
                for value in slots.each(scaled)? {
                    bytes.extend_from_slice(&value.to_be_bytes());
                }
                Values::FixedLenByteArray(FixedBytes::new(16, slots.count, bytes.into()))
            }
        })
    }

    #[inline]
    fn floats(&self, slots: Slots<'_>, value: impl Fn(usize) -> Option<f64>) -> Converted<Values> {
        match self.to {
            Scalar::Double => Ok(Values::Double(slots.each(value)?.into())),
            Scalar::Float => Ok(Values::Float(slots.each(|at| nearest_f32(value(at)?))?.into())),
            Scalar::Float16 => Ok(Values::FixedLenByteArray(halves(slots.each(|at| half(value(at)?))?))),
            _ => self.integers(slots, 0, |at| integer_of_f64(value(at)?)),
        }
    }

    fn units(&self, values: &Values, slots: Slots<'_>, times: i64, per: i64) -> Converted<Values> {
        let scaled = |value: i64| match per {
            1 => value.checked_mul(times),
            _ => (value % per == 0).then(|| value / per),
        };
        let is_int32 = self.to.types().0 == PhysicalType::Int32;
        match values {
            Values::Int32(values) if is_int32 => {
                Ok(Values::Int32(slots.each(|at| i32::try_from(scaled(values[at].into())?).ok())?.into()))
            }
            Values::Int32(values) => Ok(Values::Int64(slots.each(|at| scaled(values[at].into()))?.into())),
            Values::Int64(values) if is_int32 => {
                Ok(Values::Int32(slots.each(|at| i32::try_from(scaled(values[at])?).ok())?.into()))
            }
            Values::Int64(values) => Ok(Values::Int64(slots.each(|at| scaled(values[at]))?.into())),
            _ => Err(0),
        }
    }

    /// From and to the deprecated timestamps.
    fn nanos(&self, values: &Values, slots: Slots<'_>) -> Converted<Values> {
        const DAY_NANOS: i128 = 86_400_000_000_000;
        let nanos_of_unit = match self.from {
            Meaning::Timestamp { unit, .. } => 1_000_000_000 / i128::from(unit.per_second()),
            _ => DAY_NANOS,
        };
        let nanos = |at: usize| -> Option<i128> {
            match values {
                Values::Int96(values) => Some(int96_nanos(values.get(at).try_into().ok()?)),
                Values::Int64(values) => Some(i128::from(values[at]) * nanos_of_unit),
                Values::Int32(values) => Some(i128::from(values[at]) * nanos_of_unit),
                _ => None,
            }
        };
        let exact = |nanos: i128, per: i128| (nanos % per == 0).then_some(nanos / per);
        Ok(match self.to {
            Scalar::Timestamp { unit, .. } => {
                let per = 1_000_000_000 / i128::from(unit.per_second());
                Values::Int64(slots.each(|at| i64::try_from(exact(nanos(at)?, per)?).ok())?.into())
            }
            Scalar::Date => {
                Values::Int32(slots.each(|at| i32::try_from(exact(nanos(at)?, DAY_NANOS)?).ok())?.into())
            }
            _ => {
                let all = slots.each(|at| int96_of_nanos(nanos(at)?))?;
                Values::Int96(FixedBytes::new(12, slots.count, all.concat().into()))
            }
        })
    }

    /// Bytes of another length, or of any.
    fn bytes(&self, values: &Values, slots: Slots<'_>) -> Converted<Values> {
        let get = |at: usize| match values {
            Values::ByteArray(values) => values.get(at),
            Values::FixedLenByteArray(values) => values.get(at),
            _ => &[],
        };
        let (mut bytes, mut lengths) = (Vec::new(), Vec::with_capacity(slots.count));
        let width = match self.to.types().0 {
            PhysicalType::FixedLenByteArray(width) => usize::try_from(width).ok(),
            _ => None,
        };
        for at in 0..slots.count {
            let value = if slots.has(at) { get(at) } else { &[] };
            bytes.extend_from_slice(value);
            lengths.push(value.len());
            if let Some(width) = width {
                match (slots.has(at), value.len() == width) {
                    (true, false) => return Err(at),
                    (true, true) => {}
                    (false, _) => bytes.resize(bytes.len() + width, 0),
                }
            }
        }
        Ok(match width {
            Some(width) => Values::FixedLenByteArray(FixedBytes::new(width, slots.count, bytes.into())),
            None => Values::ByteArray(arrays(bytes, lengths)?),
        })
    }

    /// By what is printed, and read.
    fn texts(&self, values: &Values, slots: Slots<'_>) -> Converted<Values> {
        if let Values::ByteArray(values) = values
            && self.from.is_text()
        {
            return self.to.values((0..slots.count).map(|at| slots.has(at).then(|| values.get(at))));
        }
        let (mut bytes, mut lengths) = (Vec::new(), Vec::with_capacity(slots.count));
        for at in 0..slots.count {
            let start = bytes.len();
            if slots.has(at) {
                let value = Value::of_values(values, at).ok_or(at)?;
                let is_decimal = matches!(self.to, Scalar::Decimal { .. });
                if let (true, Some(digits)) = (is_decimal, digits(self.from, value)) {
                    bytes.extend_from_slice(digits.as_bytes());
                    lengths.push(bytes.len() - start);
                    continue;
                }
                match print::value(&mut bytes, self.from, value) {
                    Shown::Text(text) => bytes.extend_from_slice(text.as_bytes()),
                    Shown::NotText(_) => return Err(at),
                    Shown::Boolean | Shown::Number | Shown::Word | Shown::Wkt => {}
                }
            }
            lengths.push(bytes.len() - start);
        }
        let texts = arrays(bytes, lengths)?;
        match self.to {
            Scalar::Text => Ok(Values::ByteArray(texts)),
            to => to.values((0..slots.count).map(|at| slots.has(at).then(|| texts.get(at)))),
        }
    }
}

/// Contiguous values with these lengths; the first that is too long.
fn arrays(bytes: Vec<u8>, lengths: Vec<usize>) -> Converted<ByteArrays> {
    let too_long = lengths.iter().position(|length| u32::try_from(*length).is_err());
    ByteArrays::from_lengths(Bytes::from(bytes), lengths).map_err(|_| too_long.unwrap_or(0))
}

/// The digits of a float, without an exponent.
fn digits(from: Meaning, value: Value<'_>) -> Option<String> {
    match (from, value) {
        (Meaning::Float16, Value::Bytes(&[low, high])) => {
            Some(float_of_half(u16::from_le_bytes([low, high])).to_string())
        }
        (_, Value::Float(value)) => Some(value.to_string()),
        (_, Value::Double(value)) => Some(value.to_string()),
        _ => None,
    }
}

/// The nearest binary16.
fn half(value: f64) -> Option<[u8; 2]> {
    Some(half_of_float(nearest_f32(value)?)?.to_le_bytes())
}

fn nearest_half(value: f64) -> Option<f64> {
    half(value).map(|half| f64::from(float_of_half(u16::from_le_bytes(half))))
}

fn halves(values: Vec<[u8; 2]>) -> FixedBytes {
    FixedBytes::new(2, values.len(), values.concat().into())
}
