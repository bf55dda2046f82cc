//! Values of texts, in a given type.

use alloc::vec::Vec;

use marquetry_base::{Bitmap, Bytes};
use marquetry_parquet::batch::{ByteArrays, FixedBytes, Values};
use marquetry_parquet::record::Value;
use marquetry_parquet::scalar::half_of_float;
use marquetry_parquet::schema::{PhysicalType, TimeUnit};

use crate::Scalar;
use crate::parse::{self, VALUE_BYTES_MAX};

impl Scalar {
    /// The values of texts in this type, as given columns are read; a null's is zero or empty.
    ///
    /// ```
    /// use marquetry_text::Scalar;
    ///
    /// let texts = [Some(&b"7"[..]), None, Some(b"many")];
    /// assert_eq!(Scalar::Integer(32).values(texts[..2].iter().copied())?.len(), 2);
    /// assert!(Scalar::Integer(32).values(texts.iter().copied()) == Err(2));
    /// # Ok::<(), usize>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The index of the first text that is no such value.
    pub fn values<'a>(self, texts: impl Iterator<Item = Option<&'a [u8]>>) -> Result<Values, usize> {
        let texts = texts.enumerate();
        // Except for text, spaces around a value mean nothing.
        let is_text = self.is_text();
        let bare = texts.map(|(at, text)| (at, if is_text { text } else { text.map(<[u8]>::trim_ascii) }));
        Ok(match self.types().0 {
            PhysicalType::Boolean => {
                let (mut bits, mut rows) = (Vec::new(), 0);
                for (at, text) in bare {
                    if at % 8 == 0 {
                        bits.push(0);
                    }
                    if let (Some(text), Some(last)) = (text, bits.last_mut()) {
                        *last |= u8::from(parse::boolean(text).ok_or(at)?) << (at % 8);
                    }
                    rows = at + 1;
                }
                Values::Boolean(Bitmap::new(bits.into(), 0, rows))
            }
            PhysicalType::Int32 => Values::Int32(each(bare, |text| self.int32(text))?.into()),
            PhysicalType::Int64 => Values::Int64(each(bare, |text| self.int64(text))?.into()),
            PhysicalType::Float => Values::Float(each(bare, parse::float)?.into()),
            PhysicalType::Double => Values::Double(each(bare, parse::double)?.into()),
            PhysicalType::ByteArray => Values::ByteArray(self.bytes(bare)?),
            PhysicalType::Int96 => Values::Int96(self.fixed(bare, 12)?),
            PhysicalType::FixedLenByteArray(width) => {
                let width = usize::try_from(width).map_err(|_| 0_usize)?;
                Values::FixedLenByteArray(self.fixed(bare, width)?)
            }
        })
    }

    fn bytes<'a>(self, texts: impl Iterator<Item = (usize, Option<&'a [u8]>)>) -> Result<ByteArrays, usize> {
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        for (at, text) in texts {
            let before = bytes.len();
            match text {
                None => {}
                Some(text) if self.is_text() => bytes.extend_from_slice(text),
                Some(text) => parse::blob(text, &mut bytes).ok_or(at)?,
            }
            lengths.push(bytes.len() - before);
        }
        let too_long = lengths.iter().position(|length| u32::try_from(*length).is_err());
        ByteArrays::from_lengths(Bytes::from(bytes), lengths).map_err(|_| too_long.unwrap_or(0))
    }

    fn fixed<'a>(
        self,
        texts: impl Iterator<Item = (usize, Option<&'a [u8]>)>,
        width: usize,
    ) -> Result<FixedBytes, usize> {
        let (mut bytes, mut rows) = (Vec::new(), 0);
        for (at, text) in texts {
            let start = bytes.len();
            bytes.resize(start + width, 0);
            if let Some(text) = text {
                let is_short = text.len() <= VALUE_BYTES_MAX;
                is_short.then(|| fixed(self, text, &mut bytes[start..])).flatten().ok_or(at)?;
            }
            rows = at + 1;
        }
        Ok(FixedBytes::new(width, rows, bytes.into()))
    }

    /// A value of a type that is held in 32 bits.
    fn int32(self, text: &[u8]) -> Option<i32> {
        match self {
            Scalar::Integer(bits) => {
                let (value, room) = (parse::integer(text)?, 1_i64 << (bits - 1));
                (-room..room).contains(&value).then(|| i32::try_from(value).ok()).flatten()
            }
            Scalar::Unsigned(bits) => u32::try_from(parse::unsigned(text, bits)?).ok().map(u32::cast_signed),
            Scalar::Date => parse::date(text),
            Scalar::Time { unit, is_instant } => i32::try_from(parse::time_in(text, unit, is_instant)?).ok(),
            Scalar::Decimal { precision, scale } => {
                i32::try_from(parse::decimal(text, precision, scale)?).ok()
            }
            _ => None,
        }
    }

    /// A value of a type that is held in 64 bits.
    fn int64(self, text: &[u8]) -> Option<i64> {
        match self {
            Scalar::Integer(_) => parse::integer(text),
            Scalar::Unsigned(bits) => parse::unsigned(text, bits).map(u64::cast_signed),
            Scalar::Time { unit, is_instant } => parse::time_in(text, unit, is_instant),
            Scalar::Timestamp { unit, is_instant } => point(text, unit, is_instant),
            Scalar::Decimal { precision, scale } => {
                i64::try_from(parse::decimal(text, precision, scale)?).ok()
            }
            _ => None,
        }
    }
}

/// Parses each text. What is too long for a value is none.
fn each<'a, T: Default>(
    texts: impl Iterator<Item = (usize, Option<&'a [u8]>)>,
    parse: impl Fn(&[u8]) -> Option<T>,
) -> Result<Vec<T>, usize> {
    let value = |(at, text): (usize, Option<&[u8]>)| match text {
        None => Ok(T::default()),
        Some(text) if text.len() > VALUE_BYTES_MAX => Err(at),
        Some(text) => parse(text).ok_or(at),
    };
    texts.map(value).collect()
}

/// A time without a zone is UTC; one with a zone cannot be a local time.
fn point(text: &[u8], unit: TimeUnit, is_instant: bool) -> Option<i64> {
    let found = parse::timestamp(text)?;
    (is_instant || found.offset.is_none()).then(|| found.in_unit(unit)).flatten()
}

/// The value of a text, in this type. `None` if it has none.
pub(crate) fn with_value<R>(scalar: Scalar, text: &[u8], take: impl FnOnce(Value<'_>) -> R) -> Option<R> {
    if scalar.is_text() {
        return Some(take(Value::Bytes(text)));
    }
    let bare = text.trim_ascii();
    Some(match scalar.types().0 {
        PhysicalType::Boolean => take(Value::Boolean(parse::boolean(bare)?)),
        PhysicalType::Int32 => take(Value::Int32(scalar.int32(bare)?)),
        PhysicalType::Int64 => take(Value::Int64(scalar.int64(bare)?)),
        PhysicalType::Float => take(Value::Float(parse::float(bare)?)),
        PhysicalType::Double => take(Value::Double(parse::double(bare)?)),
        PhysicalType::ByteArray => {
            let mut bytes = Vec::new();
            parse::blob(bare, &mut bytes)?;
            take(Value::Bytes(&bytes))
        }
        PhysicalType::Int96 => take_fixed(scalar, bare, 12, take)?,
        PhysicalType::FixedLenByteArray(width) => {
            take_fixed(scalar, bare, usize::try_from(width).ok()?, take)?
        }
    })
}

/// A value of a type of fixed length. Most have at most 16 bytes.
fn take_fixed<R>(scalar: Scalar, text: &[u8], width: usize, take: impl FnOnce(Value<'_>) -> R) -> Option<R> {
    let (mut short, mut long) = ([0; 16], Vec::new());
    let slot = match short.get_mut(..width) {
        Some(slot) => slot,
        None => {
            long.resize(width, 0);
            &mut long[..]
        }
    };
    fixed(scalar, text, slot)?;
    Some(take(Value::Bytes(slot)))
}

/// A value of a type of fixed length, put into its slot.
pub(crate) fn fixed(scalar: Scalar, text: &[u8], slot: &mut [u8]) -> Option<()> {
    let mut put = |bytes: &[u8]| (bytes.len() == slot.len()).then(|| slot.copy_from_slice(bytes));
    match scalar {
        Scalar::Uuid => put(&parse::uuid(text)?),
        Scalar::Interval => put(&parse::interval(text)?),
        Scalar::Int96 => put(&parse::int96(parse::timestamp(text)?)?),
        Scalar::Float16 => put(&half_of_float(parse::float(text)?)?.to_le_bytes()),
        Scalar::Decimal { precision, scale } => put(&parse::decimal(text, precision, scale)?.to_be_bytes()),
        _ => {
            let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X"))?;
            (digits.len() == 2 * slot.len()).then_some(())?;
            for (byte, pair) in slot.iter_mut().zip(digits.chunks(2)) {
                *byte = parse::hex_byte(pair)?;
            }
            Some(())
        }
    }
}
