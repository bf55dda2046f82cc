//! The values of an array that are not null, in a column's form.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_buffer::{ArrowNativeType, i256};
use arrow_schema::{DataType, Field, TimeUnit};
use arrow_select::take::{TakeOptions, take};
use marquetry_base::cast::{bits_i32, bits_i64};
use marquetry_base::{Buffer, Bytes, Error, Result};
use marquetry_parquet::batch::{ByteArrays, FixedBytes, Values};

use super::live::{Live, live_of, refused};
use super::types::decimal_bytes;

/// The last dictionary, and its converted values.
pub(super) type LastDictionary = Option<(ArrayRef, Arc<Values>)>;

/// The values of these slots, none of which is null.
///
/// # Errors
///
/// `Conversion` for values that the written type cannot hold.
pub(super) fn values(
    array: &ArrayRef,
    field: &Field,
    live: &Live,
    last: &mut LastDictionary,
) -> Result<Values> {
    if let DataType::Dictionary(_, _) = array.data_type() {
        return dictionary(array, field, live, last);
    }
    plain(array, live)
}

fn plain(array: &ArrayRef, live: &Live) -> Result<Values> {
    let array = array.as_ref();
    let data_type = array.data_type();
    Ok(match data_type {
        DataType::Null => Values::Int32(Buffer::default()),
        DataType::Boolean => {
            let bits = array.as_boolean().values();
            Values::Boolean(live.iter().map(|slot| bits.value(slot)).collect())
        }
        DataType::Int8 => int32::<Int8Type>(array, live, i32::from),
        DataType::Int16 => int32::<Int16Type>(array, live, i32::from),
        DataType::Int32 => int32::<Int32Type>(array, live, |value| value),
        DataType::UInt8 => int32::<UInt8Type>(array, live, i32::from),
        DataType::UInt16 => int32::<UInt16Type>(array, live, i32::from),
        DataType::UInt32 => int32::<UInt32Type>(array, live, bits_i32),
        DataType::Int64 => int64::<Int64Type>(array, live, |value| value),
        DataType::UInt64 => int64::<UInt64Type>(array, live, bits_i64),
        DataType::Float32 => Values::Float(of::<Float32Type, _>(array, live, |value| value)),
        DataType::Float64 => Values::Double(of::<Float64Type, _>(array, live, |value| value)),
        DataType::Float16 => fixed(2, live, |slot, out| {
            out.extend(array.as_primitive::<Float16Type>().value(slot).to_le_bytes())
        }),
        DataType::Date32 => int32::<Date32Type>(array, live, |value| value),
        DataType::Date64 => {
            let days = |value: i64| {
                let whole =
                    (value % 86_400_000 == 0).then(|| i32::try_from(value / 86_400_000).ok()).flatten();
                whole.ok_or_else(|| {
                    Error::conversion(format!("the date of {value} ms, which is not a whole day"))
                })
            };
            Values::Int32(try_of::<Date64Type, _>(array, live, days)?)
        }
        DataType::Time32(TimeUnit::Second) => {
            Values::Int32(try_of::<Time32SecondType, _>(array, live, |value| {
                value.checked_mul(1000).ok_or_else(|| too_large(value.into()))
            })?)
        }
        DataType::Time32(_) => int32::<Time32MillisecondType>(array, live, |value| value),
        DataType::Time64(TimeUnit::Microsecond) => int64::<Time64MicrosecondType>(array, live, |value| value),
        DataType::Time64(_) => int64::<Time64NanosecondType>(array, live, |value| value),
        DataType::Timestamp(TimeUnit::Second, _) => {
            Values::Int64(try_of::<TimestampSecondType, _>(array, live, |value| {
                value.checked_mul(1000).ok_or_else(|| too_large(value))
            })?)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            int64::<TimestampMillisecondType>(array, live, |it| it)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            int64::<TimestampMicrosecondType>(array, live, |it| it)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            int64::<TimestampNanosecondType>(array, live, |it| it)
        }
        DataType::Duration(TimeUnit::Second) => int64::<DurationSecondType>(array, live, |it| it),
        DataType::Duration(TimeUnit::Millisecond) => int64::<DurationMillisecondType>(array, live, |it| it),
        DataType::Duration(TimeUnit::Microsecond) => int64::<DurationMicrosecondType>(array, live, |it| it),
        DataType::Duration(TimeUnit::Nanosecond) => int64::<DurationNanosecondType>(array, live, |it| it),
        DataType::Interval(_) => intervals(array, live)?,
        DataType::Decimal32(precision, _) => {
            decimals::<Decimal32Type>(array, live, *precision, |value| i256::from_i128(value.into()))?
        }
        DataType::Decimal64(precision, _) => {
            decimals::<Decimal64Type>(array, live, *precision, |value| i256::from_i128(value.into()))?
        }
        DataType::Decimal128(precision, _) => {
            decimals::<Decimal128Type>(array, live, *precision, i256::from_i128)?
        }
        DataType::Decimal256(precision, _) => {
            decimals::<Decimal256Type>(array, live, *precision, |value| value)?
        }
        DataType::FixedSizeBinary(width) => {
            let strings = array.as_fixed_size_binary();
            fixed(width.as_usize(), live, |slot, out| out.extend_from_slice(strings.value(slot)))
        }
        DataType::Utf8 => {
            let strings = array.as_string::<i32>();
            offset_strings(strings.values(), live, |slot| bounds(strings.value_offsets(), slot))?
        }
        DataType::LargeUtf8 => {
            let strings = array.as_string::<i64>();
            offset_strings(strings.values(), live, |slot| bounds(strings.value_offsets(), slot))?
        }
        DataType::Binary => {
            let strings = array.as_binary::<i32>();
            offset_strings(strings.values(), live, |slot| bounds(strings.value_offsets(), slot))?
        }
        DataType::LargeBinary => {
            let strings = array.as_binary::<i64>();
            offset_strings(strings.values(), live, |slot| bounds(strings.value_offsets(), slot))?
        }
        DataType::Utf8View => {
            let strings = array.as_string_view();
            views(strings.views(), strings.data_buffers(), live)
        }
        DataType::BinaryView => {
            let strings = array.as_binary_view();
            views(strings.views(), strings.data_buffers(), live)
        }
        other => return Err(Error::unsupported(format!("Parquet has no type for {other}"))),
    })
}

fn of<P: ArrowPrimitiveType, T>(array: &dyn Array, live: &Live, of: impl Fn(P::Native) -> T) -> Buffer<T> {
    let values = array.as_primitive::<P>().values();
    let made: Vec<T> = match live {
        Live::Range(range) => values[range.clone()].iter().map(|value| of(*value)).collect(),
        Live::Picks(picks) => picks.iter().map(|slot| of(values[*slot])).collect(),
    };
    made.into()
}

fn try_of<P: ArrowPrimitiveType, T>(
    array: &dyn Array,
    live: &Live,
    of: impl Fn(P::Native) -> Result<T>,
) -> Result<Buffer<T>> {
    let values = array.as_primitive::<P>().values();
    Ok(live.iter().map(|slot| of(values[slot])).collect::<Result<Vec<T>>>()?.into())
}

fn int32<P: ArrowPrimitiveType>(array: &dyn Array, live: &Live, turn: impl Fn(P::Native) -> i32) -> Values {
    Values::Int32(of::<P, _>(array, live, turn))
}

fn int64<P: ArrowPrimitiveType>(array: &dyn Array, live: &Live, turn: impl Fn(P::Native) -> i64) -> Values {
    Values::Int64(of::<P, _>(array, live, turn))
}

fn too_large(seconds: i64) -> Error {
    Error::conversion(format!("{seconds} s, which milliseconds cannot count"))
}

fn fixed(width: usize, live: &Live, mut push: impl FnMut(usize, &mut Vec<u8>)) -> Values {
    let mut bytes = Vec::with_capacity(width * live.len());
    live.iter().for_each(|slot| push(slot, &mut bytes));
    Values::FixedLenByteArray(FixedBytes::new(width, live.len(), bytes.into()))
}

/// Months, days and milliseconds, none of them negative.
fn intervals(array: &dyn Array, live: &Live) -> Result<Values> {
    let values = array.as_primitive::<IntervalMonthDayNanoType>().values();
    let mut bytes = Vec::with_capacity(12 * live.len());
    for slot in live.iter() {
        let value = values[slot];
        let millis = (value.nanoseconds % 1_000_000 == 0).then_some(value.nanoseconds / 1_000_000);
        let parts = [Some(i64::from(value.months)), Some(i64::from(value.days)), millis];
        for part in parts {
            let part = part.and_then(|part| u32::try_from(part).ok()).ok_or_else(|| {
                let (months, days, nanos) = (value.months, value.days, value.nanoseconds);
                Error::conversion(format!(
                    "an interval of {months} months, {days} days and {nanos} ns; Parquet's has milliseconds and no negative parts"
                ))
            })?;
            bytes.extend(part.to_le_bytes());
        }
    }
    Ok(Values::FixedLenByteArray(FixedBytes::new(12, live.len(), bytes.into())))
}

/// Unscaled values, in as few bytes as hold them all.
fn decimals<P: ArrowPrimitiveType>(
    array: &dyn Array,
    live: &Live,
    precision: u8,
    wide: impl Fn(P::Native) -> i256,
) -> Result<Values> {
    let beyond = |value: i256| {
        Error::conversion(format!("the unscaled decimal {value} has more than {precision} digits"))
    };
    let narrow = |value: P::Native| {
        let value = wide(value);
        value.to_i128().ok_or_else(|| beyond(value))
    };
    Ok(match precision {
        0..=9 => Values::Int32(try_of::<P, _>(array, live, |value| {
            i32::try_from(narrow(value)?).map_err(|_| beyond(wide(value)))
        })?),
        10..=18 => Values::Int64(try_of::<P, _>(array, live, |value| {
            i64::try_from(narrow(value)?).map_err(|_| beyond(wide(value)))
        })?),
        _ => {
            let width = marquetry_base::cast::usize_of_u32(decimal_bytes(precision));
            let values = array.as_primitive::<P>().values();
            let mut bytes = Vec::with_capacity(width * live.len());
            for slot in live.iter() {
                let value = wide(values[slot]);
                let held = value.to_be_bytes();
                let (more, kept) = held.split_at(held.len() - width);
                let sign = if kept[0] >= 0x80 { 0xff } else { 0 };
                if more.iter().any(|byte| *byte != sign) {
                    return Err(beyond(value));
                }
                bytes.extend_from_slice(kept);
            }
            Values::FixedLenByteArray(FixedBytes::new(width, live.len(), bytes.into()))
        }
    })
}

fn bounds<O: ArrowNativeType>(offsets: &[O], slot: usize) -> (usize, usize) {
    (offsets[slot].as_usize(), offsets[slot + 1].as_usize())
}

/// Contiguous strings, as views into their memory.
fn offset_strings(
    bytes: &arrow_buffer::Buffer,
    live: &Live,
    bounds: impl Fn(usize) -> (usize, usize),
) -> Result<Values> {
    let first = live.iter().next().map_or(0, |slot| bounds(slot).0);
    let shared = Bytes::from_owner(bytes.clone()).slice(first..);
    let ranges = live.iter().map(|slot| {
        let (start, end) = bounds(slot);
        start - first..end - first
    });
    ByteArrays::from_ranges(shared, ranges).map(Values::ByteArray)
}

/// Views have the same layout as the engine's.
fn views(views: &[u128], buffers: &[arrow_buffer::Buffer], live: &Live) -> Values {
    let picked: Vec<u128> = match live {
        Live::Range(range) => views[range.clone()].to_vec(),
        Live::Picks(picks) => picks.iter().map(|slot| views[*slot]).collect(),
    };
    let buffers = buffers.iter().map(|buffer| Bytes::from_owner(buffer.clone())).collect();
    Values::ByteArray(ByteArrays::new(picked.into(), Arc::new(buffers)))
}

/// A dictionary and the keys into it; the entries themselves, if some of them are null.
fn dictionary(array: &ArrayRef, field: &Field, live: &Live, last: &mut LastDictionary) -> Result<Values> {
    let dictionary = array.as_any_dictionary();
    let entries = dictionary.values();
    if entries.logical_null_count() > 0 || matches!(entries.data_type(), DataType::Dictionary(..)) {
        let options = Some(TakeOptions { check_bounds: true });
        let unpacked = take(entries, dictionary.keys(), options).map_err(refused)?;
        return values(&unpacked, field, live, &mut None);
    }
    let made = match last {
        Some((known, made)) if Arc::ptr_eq(known, entries) => Arc::clone(made),
        _ => {
            let made = Arc::new(plain(entries, &live_of(entries.as_ref()))?);
            *last = Some((Arc::clone(entries), Arc::clone(&made)));
            made
        }
    };
    let indices = keys(dictionary.keys(), entries.len(), live)?;
    Ok(Values::Dictionary(indices.into(), made))
}

/// The keys of values that are not null.
///
/// # Errors
///
/// `Misuse` for one that is beyond the dictionary: nothing has checked those of other libraries.
fn keys(keys: &dyn Array, entries: usize, live: &Live) -> Result<Vec<u32>> {
    match keys.data_type() {
        DataType::Int8 => keys_of::<Int8Type>(keys, entries, live),
        DataType::Int16 => keys_of::<Int16Type>(keys, entries, live),
        DataType::Int32 => keys_of::<Int32Type>(keys, entries, live),
        DataType::Int64 => keys_of::<Int64Type>(keys, entries, live),
        DataType::UInt8 => keys_of::<UInt8Type>(keys, entries, live),
        DataType::UInt16 => keys_of::<UInt16Type>(keys, entries, live),
        DataType::UInt32 => keys_of::<UInt32Type>(keys, entries, live),
        DataType::UInt64 => keys_of::<UInt64Type>(keys, entries, live),
        other => Err(Error::misuse(format!("a dictionary whose keys are {other}"))),
    }
}

fn keys_of<T: ArrowPrimitiveType>(keys: &dyn Array, entries: usize, live: &Live) -> Result<Vec<u32>> {
    let keys = keys.as_primitive::<T>().values();
    let key = |slot: usize| {
        let key = keys[slot];
        let found = key.to_usize().filter(|key| *key < entries).and_then(|key| u32::try_from(key).ok());
        found.ok_or_else(|| Error::misuse(format!("key {key:?} of a dictionary of {entries} entries")))
    };
    live.iter().map(key).collect()
}
