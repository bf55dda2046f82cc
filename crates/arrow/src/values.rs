//! Values as Arrow arrays.

use std::sync::Arc;

use arrow_array::types::*;
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, GenericByteArray,
    NullArray, PrimitiveArray, StringViewArray, UInt32Array,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::{ArrowError, DataType, IntervalUnit, TimeUnit};
use arrow_select::take::take;
use bytemuck::NoUninit;
use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Bitmap, Buffer, Error};
use marquetry_parquet::batch::{ByteArrays, FixedBytes, Values};
use marquetry_parquet::scalar::{int96_nanos, int96_parts};

use crate::buffers::{bits, buffer, scalars};
use crate::retype::check_total;
use crate::utf8::Strings;

/// An error, and the slot whose value it is about.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) slot: Option<usize>,
    pub(crate) error: Error,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault { slot: None, error }
    }
}

/// Errors of arrow-rs that only a hand-made batch can cause.
impl From<ArrowError> for Fault {
    fn from(error: ArrowError) -> Fault {
        Error::misuse(format!("a batch that contradicts itself: {error}")).into()
    }
}

fn fault(slot: usize, error: Error) -> Fault {
    Fault { slot: Some(slot), error }
}

/// Values as an array of `data_type`. `present` has the slots with a value if `nulls` cannot express it: for a required
/// field of a null struct.
pub(crate) fn array(
    values: &Values,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
    present: Option<&Bitmap>,
) -> Result<ArrayRef, Fault> {
    match (values, data_type) {
        (values, DataType::Null) => Ok(Arc::new(NullArray::new(values.len()))),
        (Values::Boolean(values), DataType::Boolean) => {
            if nulls.as_ref().is_some_and(|nulls| nulls.len() != values.len()) {
                return Err(Error::misuse("a batch whose validity and values differ in length").into());
            }
            Ok(Arc::new(BooleanArray::new(bits(values), nulls)))
        }
        (Values::Int32(values), _) => int32(values, data_type, nulls),
        (Values::Int64(values), _) => int64(values, data_type, nulls),
        (Values::Float(values), DataType::Float32) => same::<_, Float32Type>(values, data_type, nulls),
        (Values::Double(values), DataType::Float64) => same::<_, Float64Type>(values, data_type, nulls),
        (Values::Int96(values), DataType::Timestamp(unit, None)) => int96(values, *unit, nulls, present),
        (Values::ByteArray(values), DataType::Utf8View) => text(values, nulls),
        (Values::ByteArray(values), DataType::BinaryView) => {
            Ok(Arc::new(BinaryViewArray::try_new(views(values), pages(values), nulls)?))
        }
        (Values::ByteArray(values), DataType::Utf8) => consecutive::<Utf8Type>(values, nulls),
        (Values::ByteArray(values), DataType::LargeUtf8) => consecutive::<LargeUtf8Type>(values, nulls),
        (Values::ByteArray(values), DataType::Binary) => consecutive::<BinaryType>(values, nulls),
        (Values::ByteArray(values), DataType::LargeBinary) => consecutive::<LargeBinaryType>(values, nulls),
        (Values::ByteArray(values), DataType::Decimal128(..) | DataType::Decimal256(..)) => {
            decimals(values.iter(), data_type, nulls)
        }
        (Values::FixedLenByteArray(values), _) => fixed(values, data_type, nulls),
        _ => Err(mismatch(data_type)),
    }
}

fn mismatch(data_type: &DataType) -> Fault {
    Error::misuse(format!("a batch whose physical type differs from its schema's, which is {data_type}"))
        .into()
}

fn int32(values: &Buffer<i32>, data_type: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef, Fault> {
    match data_type {
        DataType::Int32 => same::<_, Int32Type>(values, data_type, nulls),
        DataType::UInt32 => same::<_, UInt32Type>(values, data_type, nulls),
        DataType::Date32 => same::<_, Date32Type>(values, data_type, nulls),
        DataType::Time32(TimeUnit::Millisecond) => same::<_, Time32MillisecondType>(values, data_type, nulls),
        DataType::Decimal32(..) => same::<_, Decimal32Type>(values, data_type, nulls),
        DataType::Int8 => narrow::<Int8Type>(values, data_type, nulls),
        DataType::Int16 => narrow::<Int16Type>(values, data_type, nulls),
        DataType::UInt8 => narrow::<UInt8Type>(values, data_type, nulls),
        DataType::UInt16 => narrow::<UInt16Type>(values, data_type, nulls),
        DataType::Decimal128(..) => {
            let values: Vec<i128> = values.iter().map(|&value| value.into()).collect();
            primitive::<Decimal128Type>(values.into(), data_type, nulls)
        }
        DataType::Decimal256(..) => {
            let values: Vec<i256> = values.iter().map(|&value| i256::from_i128(value.into())).collect();
            primitive::<Decimal256Type>(values.into(), data_type, nulls)
        }
        _ => Err(mismatch(data_type)),
    }
}

fn int64(values: &Buffer<i64>, data_type: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef, Fault> {
    match data_type {
        DataType::Int64 => same::<_, Int64Type>(values, data_type, nulls),
        DataType::UInt64 => same::<_, UInt64Type>(values, data_type, nulls),
        DataType::Time64(TimeUnit::Microsecond) => same::<_, Time64MicrosecondType>(values, data_type, nulls),
        DataType::Time64(TimeUnit::Nanosecond) => same::<_, Time64NanosecondType>(values, data_type, nulls),
        DataType::Timestamp(unit, _) => timestamps(scalars(values), *unit, data_type, nulls),
        DataType::Decimal64(..) => same::<_, Decimal64Type>(values, data_type, nulls),
        DataType::Decimal128(..) => {
            let values: Vec<i128> = values.iter().map(|&value| value.into()).collect();
            primitive::<Decimal128Type>(values.into(), data_type, nulls)
        }
        DataType::Decimal256(..) => {
            let values: Vec<i256> = values.iter().map(|&value| i256::from_i128(value.into())).collect();
            primitive::<Decimal256Type>(values.into(), data_type, nulls)
        }
        _ => Err(mismatch(data_type)),
    }
}

fn fixed(values: &FixedBytes, data_type: &DataType, nulls: Option<NullBuffer>) -> Result<ArrayRef, Fault> {
    match data_type {
        DataType::FixedSizeBinary(width) if usize::try_from(*width) == Ok(values.width()) => {
            let bytes = buffer(values.bytes());
            Ok(Arc::new(FixedSizeBinaryArray::try_new_with_len(*width, bytes, nulls, values.len())?))
        }
        DataType::Float16 if values.width() == 2 => {
            primitive::<Float16Type>(scalars(values.bytes()), data_type, nulls)
        }
        DataType::Interval(IntervalUnit::MonthDayNano) if values.width() == 12 => {
            intervals(values, data_type, nulls)
        }
        DataType::Decimal128(..) | DataType::Decimal256(..) => {
            decimals((0..values.len()).map(|slot| values.get(slot)), data_type, nulls)
        }
        _ => Err(mismatch(data_type)),
    }
}

/// The same memory, as values of a type of the same size.
fn same<T: NoUninit + Send + Sync, P: ArrowPrimitiveType>(
    values: &Buffer<T>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Fault> {
    const { assert!(size_of::<T>() == size_of::<P::Native>()) }
    primitive::<P>(scalars(values), data_type, nulls)
}

fn primitive<P: ArrowPrimitiveType>(
    values: ScalarBuffer<P::Native>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Fault> {
    Ok(Arc::new(PrimitiveArray::<P>::try_new(values, nulls)?.with_data_type(data_type.clone())))
}

fn timestamps(
    values: ScalarBuffer<i64>,
    unit: TimeUnit,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Fault> {
    match unit {
        TimeUnit::Millisecond => primitive::<TimestampMillisecondType>(values, data_type, nulls),
        TimeUnit::Microsecond => primitive::<TimestampMicrosecondType>(values, data_type, nulls),
        TimeUnit::Nanosecond => primitive::<TimestampNanosecondType>(values, data_type, nulls),
        TimeUnit::Second => Err(mismatch(data_type)),
    }
}

/// Integers of 8 and 16 bits, which the format stores in 32.
fn narrow<P: ArrowPrimitiveType>(
    values: &[i32],
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Fault>
where
    P::Native: TryFrom<i32> + Into<i32>,
{
    let narrow: Vec<P::Native> =
        values.iter().map(|&value| P::Native::try_from(value).unwrap_or_default()).collect();
    let differs = narrow.iter().zip(values).position(|(&narrow, &value)| narrow.into() != value);
    if let Some(slot) = differs {
        // The format does not define such a value; cutting off bits would invent another.
        let error = Error::corrupt(format!("{} in a column of {data_type}", values[slot]));
        return Err(fault(slot, error));
    }
    primitive::<P>(narrow.into(), data_type, nulls)
}

/// INT96 timestamps, rounded down in a coarser unit.
fn int96(
    values: &FixedBytes,
    unit: TimeUnit,
    nulls: Option<NullBuffer>,
    present: Option<&Bitmap>,
) -> Result<ArrayRef, Fault> {
    let unit_nanos = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let mut out = Vec::with_capacity(values.len());
    let (words, _) = values.bytes().as_chunks::<12>();
    for (slot, bytes) in words.iter().enumerate() {
        if present.is_some_and(|present| !present.get(slot)) {
            out.push(0);
            continue;
        }
        let time = i64::try_from(int96_nanos(*bytes).div_euclid(unit_nanos)).map_err(|_| {
            let (_, day) = int96_parts(*bytes);
            let what = format!("a timestamp on Julian day {day}, outside the range of {unit:?}s in 64 bits");
            fault(slot, Error::conversion(what))
        })?;
        out.push(time);
    }
    timestamps(out.into(), unit, &DataType::Timestamp(unit, None), nulls)
}

/// Months, days and milliseconds.
fn intervals(
    values: &FixedBytes,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Fault> {
    let mut out = Vec::with_capacity(values.len());
    let (words, _) = values.bytes().as_chunks::<12>();
    for (slot, bytes) in words.iter().enumerate() {
        let [months, days, millis]: [u32; 3] = std::array::from_fn(|at| {
            u32::from_le_bytes([bytes[at * 4], bytes[at * 4 + 1], bytes[at * 4 + 2], bytes[at * 4 + 3]])
        });
        let (Ok(months_i32), Ok(days_i32)) = (i32::try_from(months), i32::try_from(days)) else {
            let what = format!(
                "an interval of {months} months and {days} days; Arrow's limit for each is 2,147,483,647"
            );
            return Err(fault(slot, Error::conversion(what)));
        };
        out.push(IntervalMonthDayNano::new(months_i32, days_i32, i64::from(millis) * 1_000_000));
    }
    primitive::<IntervalMonthDayNanoType>(out.into(), data_type, nulls)
}

/// Decimals from big-endian two's complement bytes of any length; no bytes mean zero.
fn decimals<'a>(
    values: impl ExactSizeIterator<Item = &'a [u8]>,
    data_type: &DataType,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Fault> {
    match data_type {
        DataType::Decimal128(..) => {
            primitive::<Decimal128Type>(widen(values, i128::from_be_bytes)?, data_type, nulls)
        }
        _ => primitive::<Decimal256Type>(widen(values, i256::from_be_bytes)?, data_type, nulls),
    }
}

fn widen<'a, N: ArrowNativeType, const WIDTH: usize>(
    values: impl ExactSizeIterator<Item = &'a [u8]>,
    number: impl Fn([u8; WIDTH]) -> N,
) -> Result<ScalarBuffer<N>, Fault> {
    let mut out = Vec::with_capacity(values.len());
    for (slot, bytes) in values.enumerate() {
        let sign = if bytes.first().is_some_and(|first| first & 0x80 != 0) { 0xff } else { 0 };
        let mut wide = [sign; WIDTH];
        match WIDTH.checked_sub(bytes.len()) {
            Some(start) => wide[start..].copy_from_slice(bytes),
            None => {
                let (more, kept) = bytes.split_at(bytes.len() - WIDTH);
                wide.copy_from_slice(kept);
                if more.iter().any(|&byte| byte != sign) || (wide[0] ^ sign) & 0x80 != 0 {
                    let what =
                        format!("a decimal of {} bytes, which does not fit {WIDTH} bytes", bytes.len());
                    return Err(fault(slot, Error::conversion(what)));
                }
            }
        }
        out.push(number(wide));
    }
    Ok(out.into())
}

fn views(values: &ByteArrays) -> ScalarBuffer<u128> {
    scalars(values.views())
}

fn pages(values: &ByteArrays) -> Vec<arrow_buffer::Buffer> {
    values.buffers().iter().map(|page| page.clone().into()).collect()
}

/// Strings. arrow-rs checks that they are UTF-8, and that the views are inside their pages.
fn text(values: &ByteArrays, nulls: Option<NullBuffer>) -> Result<ArrayRef, Fault> {
    let told = |error: ArrowError| not_text(values).unwrap_or_else(|| error.into());
    let strings = Strings::of(values);
    if strings.are_shared() && u32::try_from(values.len()).is_ok() {
        // Each would be checked as often as it is there: many bytes are those of few entries of a dictionary.
        let (entries, places) = strings.distinct();
        let entries = StringViewArray::try_new(entries.into(), pages(values), None).map_err(told)?;
        return Ok(take(&entries, &UInt32Array::try_new(places.into(), nulls)?, None)?);
    }
    StringViewArray::try_new(views(values), pages(values), nulls)
        .map(|array| Arc::new(array) as ArrayRef)
        .map_err(told)
}

/// Text as bytes, for those to whom a schema alone says what bytes are. It is checked to be UTF-8 all the same.
pub(crate) fn text_as_bytes(values: &Values, nulls: Option<NullBuffer>) -> Result<ArrayRef, Fault> {
    let Values::ByteArray(values) = values else { return Err(mismatch(&DataType::Utf8View)) };
    let strings = Strings::of(values);
    // Of pages that no view points into, the reader has the memory back.
    let pages = if strings.are_short { Vec::new() } else { pages(values) };
    let array = BinaryViewArray::try_new(views(values), pages, nulls)?;
    if !strings.are_text() {
        return Err(not_text(values).unwrap_or_else(|| Error::internal("text that is text after all").into()));
    }
    Ok(Arc::new(array))
}

/// The first value that is not UTF-8.
fn not_text(values: &ByteArrays) -> Option<Fault> {
    let slot = values.iter().position(|text| std::str::from_utf8(text).is_err())?;
    Some(fault(slot, Error::corrupt("text that is not UTF-8")))
}

/// Strings, or bytes, one after the other. As views into pages and dictionaries they may share bytes; here each has its own. Of text, arrow-rs checks
/// all bytes at once.
fn consecutive<T: ByteArrayType>(values: &ByteArrays, nulls: Option<NullBuffer>) -> Result<ArrayRef, Fault> {
    let total = values.lengths().fold(0_u64, |sum, length| sum.saturating_add(u64::from(length)));
    check_total::<T::Offset>(total)?;
    let mut bytes = Vec::new();
    values.append_to(&mut bytes)?;
    let mut end = 0;
    let mut offsets = Vec::with_capacity(values.len() + 1);
    offsets.push(T::Offset::default());
    offsets.extend(values.lengths().map(|length| {
        end += usize_of_u32(length);
        T::Offset::usize_as(end)
    }));
    let offsets = OffsetBuffer::new(offsets.into());
    match GenericByteArray::<T>::try_new(offsets, bytes.into(), nulls) {
        Ok(array) => Ok(Arc::new(array)),
        Err(error) if matches!(T::DATA_TYPE, DataType::Utf8 | DataType::LargeUtf8) => {
            Err(not_text(values).unwrap_or_else(|| error.into()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Indices into a dictionary.
pub(crate) fn keys(
    indices: &Buffer<u32>,
    nulls: Option<NullBuffer>,
) -> Result<PrimitiveArray<UInt32Type>, Fault> {
    Ok(PrimitiveArray::try_new(scalars(indices), nulls)?)
}

/// One value, zero or empty, of the type of `values`.
pub(crate) fn default_of(values: &Values) -> Values {
    match values {
        Values::Boolean(_) => Values::Boolean([false].into_iter().collect()),
        Values::Int32(_) => Values::Int32(vec![0].into()),
        Values::Int64(_) => Values::Int64(vec![0].into()),
        Values::Float(_) => Values::Float(vec![0.0].into()),
        Values::Double(_) => Values::Double(vec![0.0].into()),
        Values::ByteArray(_) => Values::ByteArray(ByteArrays::new(vec![0].into(), Arc::default())),
        Values::Int96(values) => Values::Int96(zeros(values.width())),
        Values::FixedLenByteArray(values) => Values::FixedLenByteArray(zeros(values.width())),
        Values::Dictionary(_, values) => default_of(values),
    }
}

fn zeros(width: usize) -> FixedBytes {
    FixedBytes::new(width, 1, vec![0; width].into())
}
