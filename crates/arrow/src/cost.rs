//! What converting values costs. What is shared costs no more than its column.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use marquetry_base::Price;
use marquetry_base::cast::usize_of_u32;
use marquetry_parquet::batch::{INLINE_BYTES_MAX, Values};

/// What a column costs, besides its values.
pub(crate) const COLUMN_UNITS: u64 = 600;
/// The price of text: its views are looked at, and its bytes are checked to be UTF-8.
pub(crate) const TEXT_PRICE: Price = Price { kib: 300, kilovalue: 12 << 10 };
/// The price of a view that is only looked at.
pub(crate) const VIEW_PRICE: Price = Price::per_kilovalue(4 << 10);
/// The price of a value that is laid out otherwise.
pub(crate) const VALUE_PRICE: Price = Price::per_kilovalue(12 << 10);
/// The price of an INT96, which is divided.
pub(crate) const TIME_PRICE: Price = Price::per_kilovalue(40 << 10);
/// The price of a value that is converted to the type that a file's writer had, and of its bytes; and of a string that is copied behind others.
pub(crate) const RETYPE_PRICE: Price = Price { kib: 300, kilovalue: 15 << 10 };

/// What values of a type of Arrow's cost.
pub(crate) fn units(values: &Values, data_type: &DataType) -> u64 {
    match (values, data_type) {
        (Values::Int32(_), DataType::Int32 | DataType::UInt32 | DataType::Date32 | DataType::Time32(_))
        | (Values::Int32(_), DataType::Decimal32(..))
        | (Values::Int64(_), DataType::Int64 | DataType::UInt64 | DataType::Time64(_))
        | (Values::Int64(_), DataType::Timestamp(..) | DataType::Decimal64(..))
        | (Values::Boolean(_) | Values::Float(_) | Values::Double(_), _)
        | (Values::FixedLenByteArray(_), DataType::FixedSizeBinary(_) | DataType::Float16)
        | (_, DataType::Null) => 0,
        (Values::ByteArray(texts), DataType::Utf8View) => {
            // Bytes that several share are looked at once.
            let held = texts.buffers().iter().map(|buffer| buffer.len()).sum::<usize>();
            let held = held.saturating_add(texts.len().saturating_mul(INLINE_BYTES_MAX));
            TEXT_PRICE.of(texts.lengths().map(usize_of_u32).sum::<usize>().min(held), texts.len())
        }
        (
            Values::ByteArray(texts),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary,
        ) => RETYPE_PRICE.of(texts.lengths().map(usize_of_u32).sum(), texts.len()),
        (Values::ByteArray(texts), DataType::BinaryView) => VIEW_PRICE.of(0, texts.len()),
        (Values::Int96(values), _) => TIME_PRICE.of(0, values.len()),
        (values, _) => VALUE_PRICE.of(0, values.len()),
    }
}

/// What it costs to convert an array to another type, at most.
pub(crate) fn retype_units(array: &ArrayRef) -> u64 {
    let (mut values, mut bytes, mut arrays) = (0_usize, 0_usize, vec![array]);
    while let Some(array) = arrays.pop() {
        values = values.saturating_add(array.len());
        match array.data_type() {
            DataType::Struct(_) => arrays.extend(array.as_struct().columns()),
            DataType::List(_) => arrays.push(array.as_list::<i32>().values()),
            DataType::Map(..) => arrays.extend([array.as_map().keys(), array.as_map().values()]),
            DataType::Utf8View => {
                bytes = bytes.saturating_add(array.as_string_view().total_buffer_bytes_used());
            }
            DataType::BinaryView => {
                bytes = bytes.saturating_add(array.as_binary_view().total_buffer_bytes_used());
            }
            _ => {}
        }
    }
    RETYPE_PRICE.of(bytes, values)
}
