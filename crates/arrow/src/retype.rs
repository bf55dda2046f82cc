//! Converts arrays of one type to the type that the file's writer had: only the conversions that `stored` needs.
//!
//! The crate `arrow-cast` has all of them, and a hundred more; but it would take longer to build than the rest of this
//! workspace, and its strings panic beyond 2 GiB.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{
    Array as _, ArrayRef, ArrowPrimitiveType, DictionaryArray, FixedSizeListArray, GenericByteArray,
    GenericListArray, MapArray, OffsetSizeTrait, PrimitiveArray, StructArray, UInt32Array,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{ArrowError, DataType, FieldRef, TimeUnit};
use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Limit, Limits, Result};

/// Converts an array to the field's type. Also returns the actual field, which differs if dictionaries were kept.
///
/// # Errors
///
/// `Conversion` for values that the type cannot hold: more entries than a dictionary's index type can count, lists that
/// do not have the fixed length, decimals beyond the width; `LimitExceeded` for strings that together are too long.
pub(crate) fn apply(array: ArrayRef, field: &FieldRef) -> Result<(FieldRef, ArrayRef)> {
    let array = convert(array, field.data_type())?;
    if array.data_type() == field.data_type() {
        return Ok((Arc::clone(field), array));
    }
    let mut other = field.as_ref().clone().with_data_type(array.data_type().clone());
    if matches!(array.data_type(), DataType::Dictionary(..)) {
        let mut metadata = other.metadata().clone();
        metadata.remove(EXTENSION_TYPE_NAME_KEY);
        metadata.remove(EXTENSION_TYPE_METADATA_KEY);
        other.set_metadata(metadata);
    }
    Ok((Arc::new(other), array))
}

/// Recurses as deep as schemas may be nested.
fn convert(array: ArrayRef, to: &DataType) -> Result<ArrayRef> {
    use DataType::*;
    if array.data_type() == to {
        return Ok(array);
    }
    match (array.data_type().clone(), to) {
        (Struct(_), Struct(fields)) => {
            let (_, arrays, nulls) = array.as_struct().clone().into_parts();
            let children = arrays.into_iter().zip(fields).map(|(array, field)| apply(array, field));
            let (fields, arrays): (Vec<FieldRef>, Vec<ArrayRef>) =
                children.collect::<Result<Vec<_>>>()?.into_iter().unzip();
            let made = StructArray::try_new_with_length(fields.into(), arrays, nulls, array.len());
            Ok(Arc::new(made.map_err(refused)?))
        }
        (List(_), List(element) | LargeList(element)) => {
            let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
            let (element, values) = apply(values, element)?;
            Ok(if matches!(to, List(_)) {
                Arc::new(GenericListArray::try_new(element, offsets, values, nulls).map_err(refused)?)
            } else {
                let offsets: ScalarBuffer<i64> = offsets.iter().map(|&offset| i64::from(offset)).collect();
                let offsets = OffsetBuffer::new(offsets);
                Arc::new(GenericListArray::try_new(element, offsets, values, nulls).map_err(refused)?)
            })
        }
        (List(_), FixedSizeList(element, length)) => fixed_lists(&array, element, *length),
        (Map(..), Map(entries, _)) => {
            let (_, offsets, pairs, nulls, _) = array.as_map().clone().into_parts();
            let (entries, pairs) = apply(Arc::new(pairs), entries)?;
            let pairs = pairs.as_struct().clone();
            Ok(Arc::new(MapArray::try_new(entries, offsets, pairs, nulls, false).map_err(refused)?))
        }
        // A kept dictionary: becomes one of the stored type, or at least gets entries of the stored type.
        (Dictionary(..), Dictionary(key, value)) => {
            let kept = array.as_dictionary::<UInt32Type>();
            let values = convert(Arc::clone(kept.values()), value)?;
            let keys = kept.keys().iter().map(|key| key.map(ArrowNativeType::as_usize));
            dictionary(keys, values, key)
        }
        (Dictionary(..), to) => {
            let kept = array.as_dictionary::<UInt32Type>();
            Ok(Arc::new(kept.with_values(convert(Arc::clone(kept.values()), to)?)))
        }
        (Utf8View, Dictionary(key, value)) => {
            let views = array.as_string_view();
            let (keys, entries) = distinct(views.iter());
            let entries: ArrayRef = Arc::new(arrow_array::StringViewArray::from_iter_values(entries));
            dictionary(keys.into_iter(), convert(entries, value)?, key)
        }
        (BinaryView, Dictionary(key, value)) => {
            let views = array.as_binary_view();
            let (keys, entries) = distinct(views.iter());
            let entries: ArrayRef = Arc::new(arrow_array::BinaryViewArray::from_iter_values(entries));
            dictionary(keys.into_iter(), convert(entries, value)?, key)
        }
        (Utf8View, Utf8) => strings::<Utf8Type>(array.as_string_view().iter(), array.nulls()),
        (Utf8View, LargeUtf8) => strings::<LargeUtf8Type>(array.as_string_view().iter(), array.nulls()),
        (BinaryView, Binary) => strings::<BinaryType>(array.as_binary_view().iter(), array.nulls()),
        (BinaryView, LargeBinary) => strings::<LargeBinaryType>(array.as_binary_view().iter(), array.nulls()),
        (Timestamp(unit, _), Timestamp(same, zone)) if unit == *same => Ok(zoned(&array, unit, zone)),
        (Int64, Timestamp(unit, zone)) => Ok(zoned(&instants(&array, *unit), *unit, zone)),
        (Int64, Duration(unit)) => Ok(match unit {
            TimeUnit::Second => same::<Int64Type, DurationSecondType>(&array),
            TimeUnit::Millisecond => same::<Int64Type, DurationMillisecondType>(&array),
            TimeUnit::Microsecond => same::<Int64Type, DurationMicrosecondType>(&array),
            TimeUnit::Nanosecond => same::<Int64Type, DurationNanosecondType>(&array),
        }),
        (Int64, Time64(TimeUnit::Microsecond)) => Ok(same::<Int64Type, Time64MicrosecondType>(&array)),
        (Int64, Time64(TimeUnit::Nanosecond)) => Ok(same::<Int64Type, Time64NanosecondType>(&array)),
        (Int64, Date64) => Ok(same::<Int64Type, Date64Type>(&array)),
        (Int32, Time32(TimeUnit::Second)) => Ok(same::<Int32Type, Time32SecondType>(&array)),
        (Int32, Time32(TimeUnit::Millisecond)) => Ok(same::<Int32Type, Time32MillisecondType>(&array)),
        (Date32, Date64) => {
            let days = array.as_primitive::<Date32Type>();
            Ok(Arc::new(days.unary::<_, Date64Type>(|day| i64::from(day) * 86_400_000)))
        }
        (Decimal128(..), Decimal32(..)) => {
            decimals::<Decimal32Type>(&array, to, |value| value.try_into().ok())
        }
        (Decimal128(..), Decimal64(..)) => {
            decimals::<Decimal64Type>(&array, to, |value| value.try_into().ok())
        }
        (Decimal128(..), Decimal256(..)) => {
            decimals::<Decimal256Type>(&array, to, |value| Some(i256::from_i128(value)))
        }
        // Text that was checked, and stays bytes.
        (BinaryView, Utf8View) => Ok(array),
        (from, to) => Err(Error::internal(format!("{from} as {to}"))),
    }
}

/// Contiguous strings. As views into pages and dictionaries they may share bytes; here each has its own.
fn strings<'a, T: ByteArrayType>(
    values: impl Iterator<Item = Option<&'a (impl AsRef<[u8]> + ?Sized + 'a)>> + Clone,
    nulls: Option<&NullBuffer>,
) -> Result<ArrayRef> {
    let total =
        values.clone().flatten().fold(0_u64, |sum, value| sum.saturating_add(u64_of(value.as_ref().len())));
    check_total::<T::Offset>(total)?;
    let mut bytes = Vec::with_capacity(usize::try_from(total).map_err(|_| Error::out_of_memory(usize::MAX))?);
    let mut offsets = vec![T::Offset::default()];
    for value in values {
        bytes.extend_from_slice(value.map_or(&[], AsRef::as_ref));
        offsets.push(T::Offset::usize_as(bytes.len()));
    }
    let offsets = OffsetBuffer::new(offsets.into());
    let made = GenericByteArray::<T>::try_new(offsets, bytes.into(), nulls.cloned());
    Ok(Arc::new(made.map_err(refused)?))
}

/// Checks that offsets can count the bytes of strings.
pub(crate) fn check_total<O: OffsetSizeTrait>(total: u64) -> Result<()> {
    if O::IS_LARGE {
        return Limits::DEFAULT.check(Limit::TotalBytes, total);
    }
    let message = || format!("{total} bytes of strings in a batch, which offsets of 32 bits cannot count");
    i32::try_from(total).map(drop).map_err(|_| Error::too_large(message()))
}

/// The distinct values, and for each value the index of its distinct value.
fn distinct<T: std::hash::Hash + Eq + Copy>(
    values: impl Iterator<Item = Option<T>>,
) -> (Vec<Option<usize>>, Vec<T>) {
    let (mut numbers, mut entries) = (HashMap::new(), Vec::new());
    let mut number = |value: T| {
        *numbers.entry(value).or_insert_with(|| {
            entries.push(value);
            entries.len() - 1
        })
    };
    let keys = values.map(|value| value.map(&mut number)).collect();
    drop(numbers);
    (keys, entries)
}

/// A dictionary of an index type.
fn dictionary(
    keys: impl Iterator<Item = Option<usize>>,
    values: ArrayRef,
    key: &DataType,
) -> Result<ArrayRef> {
    fn of<K: ArrowDictionaryKeyType>(
        keys: impl Iterator<Item = Option<usize>>,
        values: ArrayRef,
    ) -> Result<ArrayRef> {
        let beyond = |key: usize| {
            let (key, data_type) = (key + 1, K::DATA_TYPE);
            Error::conversion(format!(
                "a dictionary of at least {key} entries, more than the writer's index type {data_type} can count"
            ))
        };
        let key = |key: Option<usize>| {
            key.map(|key| K::Native::from_usize(key).ok_or_else(|| beyond(key))).transpose()
        };
        let keys: PrimitiveArray<K> = keys.map(key).collect::<Result<Vec<_>>>()?.into_iter().collect();
        Ok(Arc::new(DictionaryArray::try_new(keys, values).map_err(refused)?))
    }
    match key {
        DataType::Int8 => of::<Int8Type>(keys, values),
        DataType::Int16 => of::<Int16Type>(keys, values),
        DataType::Int32 => of::<Int32Type>(keys, values),
        DataType::Int64 => of::<Int64Type>(keys, values),
        DataType::UInt8 => of::<UInt8Type>(keys, values),
        DataType::UInt16 => of::<UInt16Type>(keys, values),
        DataType::UInt32 => of::<UInt32Type>(keys, values),
        DataType::UInt64 => of::<UInt64Type>(keys, values),
        other => Err(Error::internal(format!("a dictionary's index of {other}"))),
    }
}

/// Maximum entries of a column's lists in a batch, where null lists take as many as others: 8,192 rows of 16,384.
const SLOTS_MAX: u64 = 1 << 27;

/// Lists of one fixed length; a null list takes the same number of null entries.
fn fixed_lists(array: &ArrayRef, element: &FieldRef, length: i32) -> Result<ArrayRef> {
    let (_, offsets, values, nulls) = array.as_list::<i32>().clone().into_parts();
    let size = usize::try_from(length).map_err(|_| Error::internal("lists of a negative length"))?;
    let (element, values) = apply(values, element)?;
    let is_null = |row: usize| nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
    let mut is_dense = true;
    for (row, bounds) in offsets.windows(2).enumerate() {
        let found = (bounds[1] - bounds[0]).as_usize();
        if !is_null(row) && found != size {
            return Err(Error::conversion(format!(
                "a list of {found} elements, but the writer's type has lists of {length}"
            )));
        }
        is_dense &= found == size;
    }
    let values = if is_dense && offsets[0] == 0 {
        values.slice(0, size * array.len())
    } else {
        // Null lists become null entries that are not in the file.
        let slots = u64_of(array.len()).saturating_mul(u64_of(size));
        if slots > SLOTS_MAX {
            return Err(Error::too_large(format!(
                "{slots} entries of lists in a batch; at most {SLOTS_MAX} where nulls take room"
            )));
        }
        let slots = offsets.windows(2).enumerate().flat_map(|(row, bounds)| {
            let start = bounds[0].as_usize();
            (0..size).map(move |at| (!is_null(row)).then(|| u32::try_from(start + at).unwrap_or(u32::MAX)))
        });
        let slots: UInt32Array = slots.collect();
        arrow_select::take::take(&values, &slots, None).map_err(refused)?
    };
    let made = FixedSizeListArray::try_new_with_length(element, length, values, nulls, array.len());
    Ok(Arc::new(made.map_err(refused)?))
}

/// Decimals of another width.
fn decimals<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    to: &DataType,
    narrow: impl Fn(i128) -> Option<T::Native>,
) -> Result<ArrayRef> {
    let values = array.as_primitive::<Decimal128Type>();
    let is_null = |row: usize| values.is_null(row);
    let value = |(row, &value): (usize, &i128)| match narrow(value) {
        Some(value) => Ok(value),
        // The contents of a null's slot are undefined.
        None if is_null(row) => Ok(T::Native::default()),
        None => Err(Error::conversion(format!("the unscaled decimal {value} does not fit {to}"))),
    };
    let narrowed: Vec<T::Native> = values.values().iter().enumerate().map(value).collect::<Result<_>>()?;
    let made = PrimitiveArray::<T>::try_new(narrowed.into(), values.nulls().cloned()).map_err(refused)?;
    Ok(Arc::new(made.with_data_type(to.clone())))
}

/// The same memory, as values of a type of the same size.
fn same<A: ArrowPrimitiveType, B: ArrowPrimitiveType<Native = A::Native>>(array: &ArrayRef) -> ArrayRef {
    Arc::new(array.as_primitive::<A>().reinterpret_cast::<B>())
}

fn instants(array: &ArrayRef, unit: TimeUnit) -> ArrayRef {
    match unit {
        TimeUnit::Second => same::<Int64Type, TimestampSecondType>(array),
        TimeUnit::Millisecond => same::<Int64Type, TimestampMillisecondType>(array),
        TimeUnit::Microsecond => same::<Int64Type, TimestampMicrosecondType>(array),
        TimeUnit::Nanosecond => same::<Int64Type, TimestampNanosecondType>(array),
    }
}

/// The same instants, shown in another zone.
fn zoned(array: &ArrayRef, unit: TimeUnit, zone: &Option<Arc<str>>) -> ArrayRef {
    fn of<T: ArrowTimestampType>(array: &ArrayRef, zone: &Option<Arc<str>>) -> ArrayRef {
        let array: PrimitiveArray<T> = array.as_primitive::<T>().clone();
        Arc::new(array.with_timezone_opt(zone.clone()))
    }
    match unit {
        TimeUnit::Second => of::<TimestampSecondType>(array, zone),
        TimeUnit::Millisecond => of::<TimestampMillisecondType>(array, zone),
        TimeUnit::Microsecond => of::<TimestampMicrosecondType>(array, zone),
        TimeUnit::Nanosecond => of::<TimestampNanosecondType>(array, zone),
    }
}

fn refused(error: ArrowError) -> Error {
    Error::internal(format!("an array that does not fit its stored type: {error}"))
}
