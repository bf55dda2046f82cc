//! Converts single values from Parquet to CQL.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

use marquetry_base::{Bitmap, Detail, Error, Result, cast};
use marquetry_kernels::utf8;
use marquetry_parquet::batch::{ByteArrays, FixedBytes, Values};
use marquetry_parquet::scalar::{float_of_half, int96_nanos, int96_parts};
use marquetry_parquet::schema::{Leaf, Meaning, Schema, TimeUnit};

use super::cast::Cast;
use super::value::Value;
use super::{InvalidUtf8, MappingOptions};
use crate::cql::CqlType;

/// How a column's values become CQL values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Conversion {
    Boolean,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float,
    Double,
    Float16,
    Decimal {
        scale: i32,
    },
    Date,
    Time(TimeUnit),
    /// To milliseconds, rounded down.
    Timestamp(TimeUnit),
    /// To milliseconds; what would be lost is an error.
    ExactTimestamp(TimeUnit),
    Int96,
    Interval,
    Uuid,
    Text {
        replace: bool,
    },
    Blob,
    /// UNKNOWN: a value is an error.
    AlwaysNull,
}

/// A column's values of one batch or dictionary, with their conversion.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    /// The number of the first row.
    RowNumber(u64),
    Boolean(&'a Bitmap),
    Int8(&'a [i32]),
    Int16(&'a [i32]),
    Int32(&'a [i32]),
    Int64(&'a [i64]),
    Uint8(&'a [i32]),
    Uint16(&'a [i32]),
    Uint32(&'a [i32]),
    Uint64(&'a [i64]),
    Float(&'a [f32]),
    Double(&'a [f64]),
    Float16(&'a FixedBytes),
    Decimal32(&'a [i32], i32),
    Decimal64(&'a [i64], i32),
    DecimalBytes(&'a ByteArrays, i32),
    DecimalFixed(&'a FixedBytes, i32),
    Date(&'a [i32]),
    Time32(&'a [i32], TimeUnit),
    Time64(&'a [i64], TimeUnit),
    Timestamp(&'a [i64], TimeUnit),
    ExactTimestamp(&'a [i64], TimeUnit),
    Int96(&'a FixedBytes),
    Interval(&'a FixedBytes),
    Uuid(&'a FixedBytes),
    Text {
        values: &'a ByteArrays,
        replace: bool,
    },
    Bytes(&'a ByteArrays),
    Fixed(&'a FixedBytes),
    AlwaysNull,
}

/// A column's values of one batch, with their conversion: one per slot, or indices into a dictionary.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slots<'a> {
    pub(super) indices: Option<&'a [u32]>,
    /// Of the batch, or of the dictionary.
    pub(super) source: Source<'a>,
    /// Values of the source.
    length: usize,
    /// The type that they are converted to then.
    pub(super) cast: Option<Cast>,
}

/// Nanoseconds of a millisecond.
const MILLI_NANOS: i64 = 1_000_000;

impl Conversion {
    /// The conversion of a leaf.
    pub(super) fn of(schema: &Schema, leaf: &Leaf, options: &MappingOptions) -> Conversion {
        match schema.meaning_of(leaf).read_as(leaf.physical_type) {
            Meaning::String | Meaning::Enum | Meaning::Json => match options.invalid_utf8 {
                InvalidUtf8::Error => Conversion::Text { replace: false },
                InvalidUtf8::Replace => Conversion::Text { replace: true },
                InvalidUtf8::Blob => Conversion::Blob,
            },
            Meaning::Decimal { scale, .. } => Conversion::Decimal { scale },
            Meaning::Date => Conversion::Date,
            Meaning::Time { unit, .. } => Conversion::Time(unit),
            Meaning::Timestamp { unit, .. } if unit == TimeUnit::Millis || options.timestamps_as_millis => {
                Conversion::Timestamp(unit)
            }
            Meaning::Timestamp { .. } => Conversion::Int64,
            Meaning::Integer { bit_width, is_signed } => match (bit_width, is_signed) {
                (8, true) => Conversion::Int8,
                (16, true) => Conversion::Int16,
                (64, true) => Conversion::Int64,
                (_, true) => Conversion::Int32,
                (8, false) => Conversion::Uint8,
                (16, false) => Conversion::Uint16,
                (64, false) => Conversion::Uint64,
                (_, false) => Conversion::Uint32,
            },
            Meaning::Interval => Conversion::Interval,
            Meaning::Uuid => Conversion::Uuid,
            Meaning::Float16 => Conversion::Float16,
            Meaning::Null => Conversion::AlwaysNull,
            Meaning::Boolean => Conversion::Boolean,
            Meaning::Int96 => Conversion::Int96,
            Meaning::Float => Conversion::Float,
            Meaning::Double => Conversion::Double,
            // `read_as` never returns the last of these.
            Meaning::Bytes
            | Meaning::Bson
            | Meaning::Geometry
            | Meaning::Geography
            | Meaning::Unrecognised => Conversion::Blob,
        }
    }

    /// The type of the values.
    pub(super) fn cql_type(self) -> CqlType {
        match self {
            Conversion::Boolean => CqlType::Boolean,
            Conversion::Int8 => CqlType::Tinyint,
            Conversion::Int16 | Conversion::Uint8 => CqlType::Smallint,
            Conversion::Int32 | Conversion::Uint16 | Conversion::AlwaysNull => CqlType::Int,
            Conversion::Int64 | Conversion::Uint32 => CqlType::Bigint,
            Conversion::Uint64 => CqlType::Varint,
            Conversion::Float | Conversion::Float16 => CqlType::Float,
            Conversion::Double => CqlType::Double,
            Conversion::Decimal { .. } => CqlType::Decimal,
            Conversion::Date => CqlType::Date,
            Conversion::Time(_) => CqlType::Time,
            Conversion::Timestamp(_) | Conversion::ExactTimestamp(_) | Conversion::Int96 => {
                CqlType::Timestamp
            }
            Conversion::Interval => CqlType::Duration,
            Conversion::Uuid => CqlType::Uuid,
            Conversion::Text { .. } => CqlType::Text,
            Conversion::Blob => CqlType::Blob,
        }
    }

    /// Whether the values are integers.
    pub(super) fn is_integer(self) -> bool {
        use Conversion as C;
        matches!(
            self,
            C::Int8 | C::Int16 | C::Int32 | C::Int64 | C::Uint8 | C::Uint16 | C::Uint32 | C::Uint64
        )
    }

    /// Values with this conversion; `None` if they do not have its physical type.
    pub(super) fn bind(self, values: &Values) -> Option<Slots<'_>> {
        let (indices, of) = match values {
            Values::Dictionary(indices, dictionary) => (Some(&**indices), &**dictionary),
            of => (None, of),
        };
        Some(Slots { indices, source: self.source(of)?, length: of.len(), cast: None })
    }

    fn source(self, values: &Values) -> Option<Source<'_>> {
        let width = |values: &FixedBytes, width| values.width() == width;
        Some(match (self, values) {
            (Conversion::Boolean, Values::Boolean(values)) => Source::Boolean(values),
            (Conversion::Int8, Values::Int32(values)) => Source::Int8(values),
            (Conversion::Int16, Values::Int32(values)) => Source::Int16(values),
            (Conversion::Int32, Values::Int32(values)) => Source::Int32(values),
            (Conversion::Int64, Values::Int64(values)) => Source::Int64(values),
            (Conversion::Uint8, Values::Int32(values)) => Source::Uint8(values),
            (Conversion::Uint16, Values::Int32(values)) => Source::Uint16(values),
            (Conversion::Uint32, Values::Int32(values)) => Source::Uint32(values),
            (Conversion::Uint64, Values::Int64(values)) => Source::Uint64(values),
            (Conversion::Float, Values::Float(values)) => Source::Float(values),
            (Conversion::Double, Values::Double(values)) => Source::Double(values),
            (Conversion::Float16, Values::FixedLenByteArray(values)) if width(values, 2) => {
                Source::Float16(values)
            }
            (Conversion::Decimal { scale }, Values::Int32(values)) => Source::Decimal32(values, scale),
            (Conversion::Decimal { scale }, Values::Int64(values)) => Source::Decimal64(values, scale),
            (Conversion::Decimal { scale }, Values::ByteArray(values)) => Source::DecimalBytes(values, scale),
            (Conversion::Decimal { scale }, Values::FixedLenByteArray(values)) => {
                Source::DecimalFixed(values, scale)
            }
            (Conversion::Date, Values::Int32(values)) => Source::Date(values),
            (Conversion::Time(unit), Values::Int32(values)) => Source::Time32(values, unit),
            (Conversion::Time(unit), Values::Int64(values)) => Source::Time64(values, unit),
            (Conversion::Timestamp(unit), Values::Int64(values)) => Source::Timestamp(values, unit),
            (Conversion::ExactTimestamp(unit), Values::Int64(values)) => Source::ExactTimestamp(values, unit),
            (Conversion::Int96, Values::Int96(values)) if width(values, 12) => Source::Int96(values),
            (Conversion::Interval, Values::FixedLenByteArray(values)) if width(values, 12) => {
                Source::Interval(values)
            }
            (Conversion::Uuid, Values::FixedLenByteArray(values)) if width(values, 16) => {
                Source::Uuid(values)
            }
            (Conversion::Text { replace }, Values::ByteArray(values)) => Source::Text { values, replace },
            (Conversion::Blob, Values::ByteArray(values)) => Source::Bytes(values),
            (Conversion::Blob, Values::FixedLenByteArray(values)) => Source::Fixed(values),
            (Conversion::AlwaysNull, values) if !matches!(values, Values::Dictionary(..)) => {
                Source::AlwaysNull
            }
            _ => return None,
        })
    }
}

impl<'a> Slots<'a> {
    /// The index of a slot's value in the source.
    #[inline]
    pub(super) fn index(&self, slot: usize) -> Result<usize> {
        let Some(indices) = self.indices else { return Ok(slot) };
        let index = cast::usize_of_u32(indices[slot]);
        if index < self.length { Ok(index) } else { Err(Error::misuse("an index beyond its dictionary")) }
    }

    /// A slot's value.
    ///
    /// # Errors
    ///
    /// Like [`Source::value`]; `Conversion` for a value that does not fit another type; `Misuse` for an index beyond the dictionary.
    #[inline]
    pub(super) fn value(&self, slot: usize) -> Result<Value<'a>> {
        let value = self.source.value(self.index(slot)?)?;
        match self.cast {
            None => Ok(value),
            Some(cast) => cast.of(value),
        }
    }
}

impl<'a> Source<'a> {
    /// The value at `index`, which must be below the number of values.
    ///
    /// # Errors
    ///
    /// `Conversion`, without a place, if CQL's type cannot hold it.
    #[inline]
    pub(super) fn value(&self, index: usize) -> Result<Value<'a>> {
        Ok(match *self {
            Source::RowNumber(first) => match first.checked_add(cast::u64_of(index)).map(i64::try_from) {
                Some(Ok(number)) => Value::Bigint(number),
                _ => return Err(Error::conversion("the row's number is beyond a bigint")),
            },
            Source::Boolean(values) => Value::Boolean(values.get(index)),
            Source::Int8(values) => Value::Tinyint(narrow(values[index], "INT(8)")?),
            Source::Int16(values) => Value::Smallint(narrow(values[index], "INT(16)")?),
            Source::Int32(values) => Value::Int(values[index]),
            Source::Int64(values) => Value::Bigint(values[index]),
            Source::Uint8(values) => Value::Smallint(narrow::<u8>(values[index], "UINT(8)")?.into()),
            Source::Uint16(values) => Value::Int(narrow::<u16>(values[index], "UINT(16)")?.into()),
            Source::Uint32(values) => Value::Bigint(cast::bits_u32(values[index]).into()),
            Source::Uint64(values) => Value::Unsigned(cast::bits_u64(values[index])),
            Source::Float(values) => Value::Float(values[index]),
            Source::Double(values) => Value::Double(values[index]),
            Source::Float16(values) => {
                Value::Float(float_of_half(u16::from_le_bytes(array(values.get(index))?)))
            }
            Source::Decimal32(values, scale) => Value::Decimal { unscaled: values[index].into(), scale },
            Source::Decimal64(values, scale) => Value::Decimal { unscaled: values[index], scale },
            Source::DecimalBytes(values, scale) => decimal(values.get(index), scale)?,
            Source::DecimalFixed(values, scale) => decimal(values.get(index), scale)?,
            Source::Date(values) => Value::Date(values[index]),
            Source::Time32(values, unit) => time(values[index].into(), unit)?,
            Source::Time64(values, unit) => time(values[index], unit)?,
            Source::Timestamp(values, unit) => {
                Value::Timestamp(values[index].div_euclid(unit.per_second() / 1000))
            }
            Source::ExactTimestamp(values, unit) => exact_timestamp(values[index], unit)?,
            Source::Int96(values) => int96(values.get(index))?,
            Source::Interval(values) => interval(values.get(index))?,
            Source::Uuid(values) => Value::Uuid(array(values.get(index))?),
            Source::Text { values, replace } => text(values.get(index), replace)?,
            Source::Bytes(values) => Value::Blob(Cow::Borrowed(values.get(index))),
            Source::Fixed(values) => Value::Blob(Cow::Borrowed(values.get(index))),
            Source::AlwaysNull => {
                return Err(Error::conversion(
                    "a value in a column of the type UNKNOWN, which is always null",
                ));
            }
        })
    }
}

#[inline]
fn narrow<T: TryFrom<i32>>(value: i32, annotation: &str) -> Result<T> {
    T::try_from(value)
        .map_err(|_| Error::conversion(format!("{value} is outside of the range of its type, {annotation}")))
}

/// Fixed-width values have the width that was checked when they were bound.
fn array<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| wrong_width())
}

#[cold]
fn wrong_width() -> Error {
    Error::internal("a value of another width than its column's")
}

#[inline]
fn decimal(unscaled: &[u8], scale: i32) -> Result<Value<'_>> {
    if unscaled.is_empty() {
        return Err(Error::conversion("a DECIMAL of no bytes"));
    }
    Ok(Value::DecimalBytes { unscaled: Cow::Borrowed(unscaled), scale })
}

#[inline]
fn time(value: i64, unit: TimeUnit) -> Result<Value<'static>> {
    let nanos_in_unit = TimeUnit::Nanos.per_second() / unit.per_second();
    if !(0..86_400 * unit.per_second()).contains(&value) {
        return Err(Error::conversion(format!("{value} is not a TIME({unit}) within a day")));
    }
    Ok(Value::Time(value * nanos_in_unit))
}

#[inline]
fn exact_timestamp(value: i64, unit: TimeUnit) -> Result<Value<'static>> {
    let in_millisecond = unit.per_second() / TimeUnit::Millis.per_second();
    if value % in_millisecond == 0 {
        return Ok(Value::Timestamp(value / in_millisecond));
    }
    let message = format!(
        "{value} as a TIMESTAMP({unit}) has digits below a millisecond, which a timestamp of CQL cannot hold"
    );
    Err(Error::conversion(message).with(Detail::AdmittedBy(&["timestamps_as_millis"])))
}

#[inline]
fn int96(bytes: &[u8]) -> Result<Value<'static>> {
    let bytes: [u8; 12] = array(bytes)?;
    i64::try_from(int96_nanos(bytes).div_euclid(MILLI_NANOS.into())).map(Value::Timestamp).map_err(|_| {
        let (nanos, day) = int96_parts(bytes);
        Error::conversion(format!("the INT96 of day {day} and {nanos} ns is beyond a timestamp"))
    })
}

/// Months, days and milliseconds, each an unsigned 32-bit number.
#[inline]
fn interval(bytes: &[u8]) -> Result<Value<'static>> {
    let [a, b, c, d, e, f, g, h, millis @ ..] = array::<12>(bytes)?;
    let (months, days) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    match (i32::try_from(months), i32::try_from(days)) {
        (Ok(months), Ok(days)) => {
            let nanos = i64::from(u32::from_le_bytes(millis)) * MILLI_NANOS;
            Ok(Value::Duration { months, days, nanos })
        }
        _ => Err(Error::conversion(format!(
            "an INTERVAL of {months} months and {days} days is beyond a duration"
        ))),
    }
}

#[inline]
fn text(bytes: &[u8], replace: bool) -> Result<Value<'_>> {
    if is_plain(bytes) {
        return Ok(Value::Text { bytes: Cow::Borrowed(bytes), is_plain: true });
    }
    text_with_care(bytes, replace)
}

#[inline(never)]
fn text_with_care(bytes: &[u8], replace: bool) -> Result<Value<'_>> {
    if utf8::valid(bytes) {
        return Ok(Value::Text { bytes: Cow::Borrowed(bytes), is_plain: false });
    }
    if replace {
        let bytes = match String::from_utf8_lossy(bytes) {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        };
        return Ok(Value::Text { bytes, is_plain: false });
    }
    let at = utf8::error_at(bytes).unwrap_or_default();
    Err(match bytes.get(at) {
        Some(byte) => Error::conversion(format!("text that is not UTF-8: the byte 0x{byte:02x} at {at}")),
        None => Error::internal("text that is and is not UTF-8"),
    })
}

/// Whether all bytes are ASCII and none is a single quote. That is true of most texts, and faster to check than UTF-8.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const QUOTES: u64 = LOW * b'\'' as u64;
    // A high bit for each byte that is not ASCII, or is a quote. A byte above a quote may be marked, too, which only
    // means the slower path.
    let marks = |word: u64| {
        let quote = word ^ QUOTES;
        (word | quote.wrapping_sub(LOW) & !quote) & HIGH
    };
    let (words, rest) = bytes.as_chunks::<8>();
    let marked = words.iter().fold(0, |marked, word| marked | marks(u64::from_le_bytes(*word)));
    marked == 0 && rest.iter().all(|&byte| byte < 0x80 && byte != b'\'')
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn plain_text_is_told_apart() {
        for length in 0..40 {
            let mut text: Vec<u8> = (0..length).map(|at| b"abc ,&(z~\0"[at % 10]).collect();
            assert!(is_plain(&text));
            for at in 0..length {
                for other in [b'\'', 0x80, 0xff, 0xa7] {
                    let before = core::mem::replace(&mut text[at], other);
                    assert!(!is_plain(&text), "{other} at {at} of {length}");
                    text[at] = before;
                }
            }
        }
    }
}
