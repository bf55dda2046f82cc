//! The types of columns in rows, what they are in Arrow, and their values both ways.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, PrimitiveBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_schema::{DataType, Field};
use marquetry_base::cast::nearest_f32;
use marquetry_base::{Error, Result, parse, print};

use super::flex::Value;

/// Columns whose nulls are known: a row has two numbers of 64 bits for them.
pub(super) const COLUMNS_MAX: usize = 128;
/// Bytes of what describes columns, at most.
const SCHEMA_BYTES_MAX: usize = 64 << 10;

/// The types that columns have here (`SkyDataType`), in the order of their numbers, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Char,
    Uchar,
    Bool,
    Float,
    Double,
    Date,
    String,
}

impl Type {
    const ALL: [Type; 15] = [
        Type::Int8,
        Type::Int16,
        Type::Int32,
        Type::Int64,
        Type::Uint8,
        Type::Uint16,
        Type::Uint32,
        Type::Uint64,
        Type::Char,
        Type::Uchar,
        Type::Bool,
        Type::Float,
        Type::Double,
        Type::Date,
        Type::String,
    ];

    fn of_number(number: usize) -> Option<Type> {
        Type::ALL.get(number.checked_sub(1)?).copied()
    }

    fn number(self) -> usize {
        Type::ALL.iter().position(|known| *known == self).map_or(0, |at| at + 1)
    }

    /// The type of a column in Arrow.
    pub(super) fn arrow(self) -> DataType {
        match self {
            Type::Int8 | Type::Char => DataType::Int8,
            Type::Int16 => DataType::Int16,
            Type::Int32 => DataType::Int32,
            Type::Int64 => DataType::Int64,
            Type::Uint8 | Type::Uchar => DataType::UInt8,
            Type::Uint16 => DataType::UInt16,
            Type::Uint32 => DataType::UInt32,
            Type::Uint64 => DataType::UInt64,
            Type::Bool => DataType::Boolean,
            Type::Float => DataType::Float32,
            Type::Double => DataType::Float64,
            Type::Date => DataType::Date32,
            Type::String => DataType::Utf8View,
        }
    }

    /// Whether its values are texts in rows.
    pub(super) fn is_text(self) -> bool {
        matches!(self, Type::Date | Type::String)
    }

    /// What a column of Arrow is in rows. Decimals are texts, which are exact.
    pub(super) fn of_arrow(field: &Field) -> Result<Type> {
        Ok(match field.data_type() {
            DataType::Int8 => Type::Int8,
            DataType::Int16 => Type::Int16,
            DataType::Int32 => Type::Int32,
            DataType::Int64 => Type::Int64,
            DataType::UInt8 => Type::Uint8,
            DataType::UInt16 => Type::Uint16,
            DataType::UInt32 => Type::Uint32,
            DataType::UInt64 => Type::Uint64,
            DataType::Boolean => Type::Bool,
            DataType::Float32 => Type::Float,
            DataType::Float64 => Type::Double,
            DataType::Date32 => Type::Date,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Decimal128(..) => {
                Type::String
            }
            other => {
                let message = format!("the column {} in rows, of type {other}", field.name());
                return Err(Error::unsupported(message));
            }
        })
    }
}

/// A column of rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    /// Its place in a row.
    pub(super) at: usize,
    pub(super) data_type: Type,
    pub(super) is_nullable: bool,
    pub(super) name: String,
}

/// The columns that a table's `data_schema` describes: a line for each, or what ends with a semicolon, of its place, type, whether it is of the
/// key, whether it may be null, and name.
pub(super) fn columns_of(text: &str) -> Result<Vec<Column>> {
    if text.len() > SCHEMA_BYTES_MAX {
        return Err(Error::too_large("the description of the columns of rows"));
    }
    let mut columns = Vec::new();
    for line in text.split(['\n', ';']).map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [at, number, _, is_nullable, name] = words.as_slice() else {
            return Err(Error::corrupt(format!("a column of rows that is described by '{line}'")));
        };
        let wrong = || Error::corrupt(format!("a column of rows that is described by '{line}'"));
        let at = at.parse().map_err(|_| wrong())?;
        let data_type = number.parse().map_err(|_| wrong())?;
        let data_type = Type::of_number(data_type)
            .ok_or_else(|| Error::unsupported(format!("the type {number} of the column {name} in rows")))?;
        if columns.len() >= COLUMNS_MAX {
            return Err(Error::unsupported(format!("rows of more than {COLUMNS_MAX} columns")));
        }
        columns.push(Column { at, data_type, is_nullable: *is_nullable == "1", name: (*name).to_owned() });
    }
    if columns.is_empty() {
        return Err(Error::corrupt("rows without a schema"));
    }
    Ok(columns)
}

/// The text that describes columns.
pub(super) fn text_of(columns: &[Column]) -> Result<String> {
    let mut text = String::new();
    for Column { at, data_type, is_nullable, name } in columns {
        if name.is_empty() || name.contains(|char: char| char.is_whitespace() || char == ';') {
            return Err(Error::unsupported(format!("a column of rows with the name '{name}'")));
        }
        text += &format!(" {at} {} 0 {} {name}\n", data_type.number(), u8::from(*is_nullable));
    }
    Ok(text)
}

/// The array of a column's values.
pub(super) fn values_of<'a>(
    data_type: Type,
    values: impl ExactSizeIterator<Item = Result<Value<'a>>>,
) -> Result<ArrayRef> {
    Ok(match data_type {
        Type::Int8 | Type::Char => numbers::<Int8Type>(values, integer)?,
        Type::Int16 => numbers::<Int16Type>(values, integer)?,
        Type::Int32 => numbers::<Int32Type>(values, integer)?,
        Type::Int64 => numbers::<Int64Type>(values, integer)?,
        Type::Uint8 | Type::Uchar => numbers::<UInt8Type>(values, integer)?,
        Type::Uint16 => numbers::<UInt16Type>(values, integer)?,
        Type::Uint32 => numbers::<UInt32Type>(values, integer)?,
        Type::Uint64 => numbers::<UInt64Type>(values, integer)?,
        Type::Float => numbers::<Float32Type>(values, |value| match value {
            Value::Float(number) => nearest_f32(number).map(Some).ok_or_else(|| other_type(value)),
            other => none(other),
        })?,
        Type::Double => numbers::<Float64Type>(values, |value| match value {
            Value::Float(number) => Ok(Some(number)),
            other => none(other),
        })?,
        Type::Date => numbers::<Date32Type>(values, |value| match value {
            Value::Text(text) => {
                let day = parse::date(text.as_bytes());
                day.map(Some).ok_or_else(|| Error::conversion(format!("'{text}' is no date, in rows")))
            }
            other => none(other),
        })?,
        Type::Bool => {
            let mut made = BooleanBuilder::with_capacity(values.len());
            for value in values {
                made.append_option(match value? {
                    Value::Bool(value) => Some(value),
                    Value::Int(number) => Some(number != 0),
                    Value::Uint(number) => Some(number != 0),
                    other => none(other)?,
                });
            }
            Arc::new(made.finish())
        }
        Type::String => {
            let mut made = StringViewBuilder::with_capacity(values.len());
            for value in values {
                made.append_option(match value? {
                    Value::Text(text) => Some(text),
                    other => none(other)?,
                });
            }
            Arc::new(made.finish())
        }
    })
}

/// The array of numbers that `number` makes of values.
fn numbers<'a, T: ArrowPrimitiveType>(
    values: impl ExactSizeIterator<Item = Result<Value<'a>>>,
    number: impl Fn(Value<'a>) -> Result<Option<T::Native>>,
) -> Result<ArrayRef> {
    let mut made = PrimitiveBuilder::<T>::with_capacity(values.len());
    for value in values {
        made.append_option(number(value?)?);
    }
    Ok(Arc::new(made.finish()))
}

/// Nothing, for a null; what is of another type than the column is an error.
fn none<T>(value: Value<'_>) -> Result<Option<T>> {
    if value == Value::Null { Ok(None) } else { Err(other_type(value)) }
}

fn other_type(value: Value<'_>) -> Error {
    Error::corrupt(format!("a value of another type than its column: {value:?}"))
}

fn integer<T: TryFrom<i64> + TryFrom<u64>>(value: Value<'_>) -> Result<Option<T>> {
    let number = match value {
        Value::Null => return Ok(None),
        Value::Int(number) => T::try_from(number).ok(),
        Value::Uint(number) => T::try_from(number).ok(),
        Value::Bool(value) => T::try_from(u64::from(value)).ok(),
        Value::Float(_) | Value::Text(_) => None,
    };
    number.map(Some).ok_or_else(|| other_type(value))
}

/// The values of an array of Arrow, one by one.
pub(super) enum Cells<'a> {
    Array(&'a ArrayRef),
    /// Texts of an array, which stand for its values.
    Texts(Vec<Option<String>>),
}

impl<'a> Cells<'a> {
    pub(super) fn of(array: &'a ArrayRef) -> Cells<'a> {
        let texts = |text: &dyn Fn(usize) -> String| {
            Cells::Texts((0..array.len()).map(|row| array.is_valid(row).then(|| text(row))).collect())
        };
        match array.data_type() {
            DataType::Date32 => {
                let days = array.as_primitive::<Date32Type>();
                texts(&|row| {
                    let mut text = Vec::new();
                    print::date(&mut text, days.value(row).into());
                    String::from_utf8_lossy(&text).into_owned()
                })
            }
            DataType::Decimal128(..) => {
                let decimals = array.as_primitive::<Decimal128Type>();
                texts(&|row| decimals.value_as_string(row))
            }
            _ => Cells::Array(array),
        }
    }

    pub(super) fn get(&self, row: usize) -> Result<Value<'_>> {
        let array = match self {
            Cells::Texts(texts) => return Ok(texts[row].as_deref().map_or(Value::Null, Value::Text)),
            Cells::Array(array) => *array,
        };
        if array.is_null(row) {
            return Ok(Value::Null);
        }
        let int = |number: i64| Value::Int(number);
        let uint = |number: u64| Value::Uint(number);
        Ok(match array.data_type() {
            DataType::Int8 => int(array.as_primitive::<Int8Type>().value(row).into()),
            DataType::Int16 => int(array.as_primitive::<Int16Type>().value(row).into()),
            DataType::Int32 => int(array.as_primitive::<Int32Type>().value(row).into()),
            DataType::Int64 => int(array.as_primitive::<Int64Type>().value(row)),
            DataType::UInt8 => uint(array.as_primitive::<UInt8Type>().value(row).into()),
            DataType::UInt16 => uint(array.as_primitive::<UInt16Type>().value(row).into()),
            DataType::UInt32 => uint(array.as_primitive::<UInt32Type>().value(row).into()),
            DataType::UInt64 => uint(array.as_primitive::<UInt64Type>().value(row)),
            DataType::Float32 => Value::Float(array.as_primitive::<Float32Type>().value(row).into()),
            DataType::Float64 => Value::Float(array.as_primitive::<Float64Type>().value(row)),
            DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
            DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row)),
            DataType::LargeUtf8 => Value::Text(array.as_string::<i64>().value(row)),
            DataType::Utf8View => Value::Text(array.as_string_view().value(row)),
            other => return Err(Error::unsupported(format!("values of type {other} in rows"))),
        })
    }
}
