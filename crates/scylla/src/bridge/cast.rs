//! Values in the types of a table that is there: what fits is converted, exactly; what does not is an error.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::calendar::{DAY_SECONDS, TimeUnit};
use marquetry_base::cast::{exact_f64, integer_of_f64, nearest_f32};
use marquetry_base::{Detail, Error, Result, parse, print, twos_complement};
use marquetry_kernels::utf8;

use super::value::Value;
use super::{MappingOptions, read, text as literals};
use crate::cql::{CqlType, literal};

/// A scalar type that values are converted to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cast {
    Ascii,
    Bigint,
    Blob,
    Boolean,
    Counter,
    Date,
    Decimal,
    Double,
    Duration,
    Float,
    Inet,
    Int,
    Smallint,
    Text,
    Time,
    /// Digits below a millisecond are cut off, or an error.
    Timestamp {
        rounds: bool,
    },
    Timeuuid,
    Tinyint,
    Uuid,
    Varint,
}

/// Whether some values of one type can be values of the other.
pub(super) fn is_possible(from: &CqlType, to: &CqlType) -> bool {
    use CqlType as T;
    let is_integer =
        |it: &CqlType| matches!(it, T::Tinyint | T::Smallint | T::Int | T::Bigint | T::Varint | T::Counter);
    match (from, to) {
        // As it is written.
        (T::Text, _) => true,
        (T::Tinyint | T::Smallint | T::Int | T::Bigint | T::Varint | T::Decimal, _) => {
            is_integer(to) || matches!(to, T::Decimal | T::Float | T::Double | T::Text | T::Ascii)
        }
        (T::Float | T::Double, T::Decimal | T::Float | T::Double) => true,
        (T::Float | T::Double, _) if is_integer(to) => true,
        (T::Date, T::Timestamp) | (T::Timestamp, T::Date) => true,
        (T::Uuid, T::Timeuuid) => true,
        // As CQL writes it.
        (
            T::Boolean
            | T::Float
            | T::Double
            | T::Date
            | T::Time
            | T::Timestamp
            | T::Duration
            | T::Uuid
            | T::Timeuuid
            | T::Inet,
            T::Text | T::Ascii,
        ) => true,
        (T::Blob, T::Uuid | T::Timeuuid | T::Text | T::Ascii) => true,
        _ => false,
    }
}

/// Milliseconds of a day.
const DAY_MILLIS: i64 = TimeUnit::Millis.per_day();
const _: () = assert!(DAY_MILLIS == DAY_SECONDS * 1000);
/// Digits of a decimal that every binary64 and binary32 keeps: written, read and written again they are the same.
const DOUBLE_DIGITS: u32 = 15;
const FLOAT_DIGITS: u32 = 6;

impl Cast {
    /// The conversion to a type; `None` for one that is not scalar.
    pub(super) fn to(cql_type: &CqlType, options: &MappingOptions) -> Option<Cast> {
        Some(match cql_type {
            CqlType::Ascii => Cast::Ascii,
            CqlType::Bigint => Cast::Bigint,
            CqlType::Blob => Cast::Blob,
            CqlType::Boolean => Cast::Boolean,
            CqlType::Counter => Cast::Counter,
            CqlType::Date => Cast::Date,
            CqlType::Decimal => Cast::Decimal,
            CqlType::Double => Cast::Double,
            CqlType::Duration => Cast::Duration,
            CqlType::Float => Cast::Float,
            CqlType::Inet => Cast::Inet,
            CqlType::Int => Cast::Int,
            CqlType::Smallint => Cast::Smallint,
            CqlType::Text => Cast::Text,
            CqlType::Time => Cast::Time,
            CqlType::Timestamp => Cast::Timestamp { rounds: options.timestamps_as_millis },
            CqlType::Timeuuid => Cast::Timeuuid,
            CqlType::Tinyint => Cast::Tinyint,
            CqlType::Uuid => Cast::Uuid,
            CqlType::Varint => Cast::Varint,
            _ => return None,
        })
    }

    pub(super) fn cql_type(self) -> CqlType {
        match self {
            Cast::Ascii => CqlType::Ascii,
            Cast::Bigint => CqlType::Bigint,
            Cast::Blob => CqlType::Blob,
            Cast::Boolean => CqlType::Boolean,
            Cast::Counter => CqlType::Counter,
            Cast::Date => CqlType::Date,
            Cast::Decimal => CqlType::Decimal,
            Cast::Double => CqlType::Double,
            Cast::Duration => CqlType::Duration,
            Cast::Float => CqlType::Float,
            Cast::Inet => CqlType::Inet,
            Cast::Int => CqlType::Int,
            Cast::Smallint => CqlType::Smallint,
            Cast::Text => CqlType::Text,
            Cast::Time => CqlType::Time,
            Cast::Timestamp { .. } => CqlType::Timestamp,
            Cast::Timeuuid => CqlType::Timeuuid,
            Cast::Tinyint => CqlType::Tinyint,
            Cast::Uuid => CqlType::Uuid,
            Cast::Varint => CqlType::Varint,
        }
    }

    /// A value in this type.
    ///
    /// # Errors
    ///
    /// `Conversion`, without a place, for one that does not fit.
    pub(super) fn of<'a>(self, value: Value<'a>) -> Result<Value<'a>> {
        // Bytes that stay what they are.
        let value = match (self, value) {
            (Cast::Ascii, Value::Text { bytes, is_plain }) if is_plain || bytes.is_ascii() => {
                return Ok(Value::Text { bytes, is_plain });
            }
            (Cast::Ascii, Value::Blob(bytes)) if bytes.is_ascii() => {
                return Ok(Value::Text { bytes, is_plain: false });
            }
            (Cast::Text, Value::Blob(bytes)) if utf8::valid(&bytes) => {
                return Ok(Value::Text { bytes, is_plain: false });
            }
            (_, value) => value,
        };
        self.made_of(&value).ok_or_else(|| self.misfit(&value))
    }

    fn made_of(self, value: &Value<'_>) -> Option<Value<'static>> {
        match value {
            Value::Text { bytes, .. } => self.of_text(bytes.trim_ascii()),
            Value::Tinyint(value) => self.of_integer((*value).into()),
            Value::Smallint(value) => self.of_integer((*value).into()),
            Value::Int(value) => self.of_integer((*value).into()),
            Value::Bigint(value) => self.of_integer((*value).into()),
            Value::Unsigned(value) => self.of_integer((*value).into()),
            Value::Float(_) | Value::Double(_) if matches!(self, Cast::Text | Cast::Ascii) => {
                self.written(value)
            }
            Value::Float(value) => self.of_float((*value).into(), |out| print::float(out, *value)),
            Value::Double(value) => self.of_float(*value, |out| print::double(out, *value)),
            Value::Decimal { unscaled, scale } => self.of_decimal((*unscaled).into(), *scale),
            Value::DecimalBytes { unscaled, scale } => {
                self.of_decimal(twos_complement::to_i128(unscaled)?, *scale)
            }
            Value::Date(days) => match self {
                Cast::Timestamp { .. } => Some(Value::Timestamp(i64::from(*days) * DAY_MILLIS)),
                _ => self.printed(|out| print::date(out, (*days).into())),
            },
            Value::Timestamp(millis) if self == Cast::Date && millis % DAY_MILLIS == 0 => {
                i32::try_from(millis / DAY_MILLIS).ok().map(Value::Date)
            }
            Value::Uuid(bytes) => match self {
                Cast::Timeuuid => timeuuid(*bytes),
                _ => self.printed(|out| print::uuid(out, bytes)),
            },
            Value::Boolean(_)
            | Value::Time(_)
            | Value::Timestamp(_)
            | Value::Duration { .. }
            | Value::Timeuuid(_)
            | Value::Inet(_) => self.written(value),
            Value::Blob(bytes) => {
                let bytes: [u8; 16] = bytes[..].try_into().ok()?;
                match self {
                    Cast::Uuid => Some(Value::Uuid(bytes)),
                    Cast::Timeuuid => timeuuid(bytes),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The value of a text, which CQL would have without quotes.
    fn of_text(self, text: &[u8]) -> Option<Value<'static>> {
        if self == Cast::Blob {
            return read::blob(text);
        }
        if text.len() > read::VALUE_BYTES_MAX {
            return None;
        }
        Some(match self {
            Cast::Boolean => Value::Boolean(parse::boolean(text)?),
            Cast::Tinyint | Cast::Smallint | Cast::Int | Cast::Bigint | Cast::Counter => {
                let integer = parse::integer(text).map(i128::from);
                let whole = || twos_complement::to_i128(&read::whole(text)?);
                return self.of_integer(integer.or_else(whole)?);
            }
            Cast::Varint => return read::varint(text).or_else(|| read::whole(text).map(Value::Varint)),
            Cast::Decimal => return read::decimal(text),
            Cast::Double => Value::Double(parse::double(text)?),
            Cast::Float => Value::Float(parse::float(text)?),
            Cast::Date => Value::Date(parse::date(text)?),
            Cast::Time => Value::Time(parse::time(text)?),
            Cast::Timestamp { rounds } => Value::Timestamp(read::timestamp(text, rounds)?),
            Cast::Duration => return read::duration(text),
            Cast::Uuid => Value::Uuid(parse::uuid(text)?),
            Cast::Timeuuid => return timeuuid(parse::uuid(text)?),
            Cast::Inet => Value::Inet(core::str::from_utf8(text).ok()?.parse().ok()?),
            // Text that is not ASCII; text needs no conversion.
            Cast::Ascii | Cast::Text | Cast::Blob => return None,
        })
    }

    fn of_integer(self, value: i128) -> Option<Value<'static>> {
        Some(match self {
            Cast::Tinyint => Value::Tinyint(value.try_into().ok()?),
            Cast::Smallint => Value::Smallint(value.try_into().ok()?),
            Cast::Int => Value::Int(value.try_into().ok()?),
            Cast::Bigint | Cast::Counter => Value::Bigint(value.try_into().ok()?),
            Cast::Varint => Value::Varint(twos_complement::shortest(&value.to_be_bytes()).to_vec()),
            Cast::Decimal => decimal(value, 0),
            Cast::Double => Value::Double(exact_f64(value)?),
            Cast::Float => {
                let double = exact_f64(value)?;
                Value::Float(nearest_f32(double).filter(|float| f64::from(*float) == double)?)
            }
            _ => return self.printed(|out| print::integer(out, value)),
        })
    }

    fn of_decimal(self, unscaled: i128, scale: i32) -> Option<Value<'static>> {
        let digits =
            |most: u32| (unscaled.unsigned_abs() < 10_u128.pow(most)).then(|| as_text(unscaled, scale));
        match self {
            Cast::Decimal => Some(decimal(unscaled, scale)),
            Cast::Double => parse::double(&digits(DOUBLE_DIGITS)?).map(Value::Double),
            Cast::Float => parse::float(&digits(FLOAT_DIGITS)?).map(Value::Float),
            Cast::Text | Cast::Ascii => {
                let text = as_text(unscaled, scale);
                // Not one of the functions that print what servers cannot read otherwise.
                (!text.starts_with(b"b")).then(|| self.printed(|out| out.extend_from_slice(&text))).flatten()
            }
            _ => {
                let one = 10_i128.checked_pow(scale.unsigned_abs())?;
                let whole = if scale < 0 {
                    unscaled.checked_mul(one)?
                } else {
                    (unscaled % one == 0).then_some(unscaled / one)?
                };
                self.of_integer(whole)
            }
        }
    }

    /// `print` writes the fewest digits that mean the number.
    fn of_float(self, value: f64, print: impl FnOnce(&mut Vec<u8>)) -> Option<Value<'static>> {
        match self {
            Cast::Double => Some(Value::Double(value)),
            Cast::Float => {
                let nearest = nearest_f32(value)?;
                let is_kept = f64::from(nearest) == value || value.is_nan() || {
                    // The digits may be the same: 0.1 is, though neither is that number.
                    let mut out = Vec::new();
                    print::float(&mut out, nearest);
                    parse::double(&out) == Some(value)
                };
                is_kept.then_some(Value::Float(nearest))
            }
            Cast::Decimal => {
                let mut out = Vec::new();
                print(&mut out);
                read::decimal(&out)
            }
            _ => self.of_integer(integer_of_f64(value)?),
        }
    }

    /// A text: the value as CQL writes it, without the quotes that some types need there. `None` if this is another type.
    fn written(self, value: &Value<'_>) -> Option<Value<'static>> {
        let mut out = Vec::new();
        literals::write(&mut out, value).ok()?;
        let text = out.strip_prefix(b"'").and_then(|text| text.strip_suffix(b"'")).unwrap_or(&out);
        self.printed(|out| out.extend_from_slice(text))
    }

    /// A text. `None` if this is another type.
    fn printed(self, print: impl FnOnce(&mut Vec<u8>)) -> Option<Value<'static>> {
        if !matches!(self, Cast::Text | Cast::Ascii) {
            return None;
        }
        let mut out = Vec::new();
        print(&mut out);
        Some(Value::Text { bytes: Cow::Owned(out), is_plain: false })
    }

    #[cold]
    fn misfit(self, value: &Value<'_>) -> Error {
        let mut out = Vec::new();
        // What cannot be printed is named by its type alone.
        let _ = literals::write(&mut out, value);
        let text = String::from_utf8_lossy(&out);
        let mut shown: String = text.chars().take(SHOWN_MAX).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        let error =
            Error::conversion(format!("{shown} does not fit the table's type there, {}", self.cql_type()));
        match (self, value) {
            // It can be rounded, by whoever says so.
            (
                Cast::Float | Cast::Double,
                Value::Double(_) | Value::Decimal { .. } | Value::DecimalBytes { .. },
            ) => error.with(Detail::AdmittedBy(&["types"])),
            (Cast::Timestamp { rounds: false }, Value::Text { bytes, .. })
                if parse::timestamp(bytes.trim_ascii()).is_some() =>
            {
                error.with(Detail::AdmittedBy(&["timestamps_as_millis"]))
            }
            _ => error,
        }
    }
}

/// Characters of a value that an error shows.
const SHOWN_MAX: usize = 60;

fn decimal(unscaled: i128, scale: i32) -> Value<'static> {
    let bytes = twos_complement::shortest(&unscaled.to_be_bytes()).to_vec();
    Value::DecimalBytes { unscaled: Cow::Owned(bytes), scale }
}

fn as_text(unscaled: i128, scale: i32) -> Vec<u8> {
    let mut out = Vec::new();
    literal::decimal(&mut out, unscaled, scale);
    out
}

/// A UUID whose version is 1, which has a time.
fn timeuuid(bytes: [u8; 16]) -> Option<Value<'static>> {
    (bytes[6] >> 4 == 1).then_some(Value::Timeuuid(bytes))
}

#[cfg(test)]
mod tests;
