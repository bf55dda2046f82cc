//! One partial aggregate of a group, as far as rows came.

use std::cmp::Ordering;

use marquetry_base::{Error, Result, twos_complement};
use marquetry_parquet::batch::Value;
use marquetry_parquet::prune::Order;

use super::form::compared;

/// One partial aggregate.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Part {
    /// Its leaf in the rows. `None`: of rows.
    pub(super) leaf: Option<usize>,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum What {
    Count,
    /// Of integers and decimals: exact.
    SumOfIntegers {
        is_signed: bool,
        /// Of decimals, digits after the point.
        scale: Option<i32>,
    },
    SumOfFloats,
    /// The first or the last in an order.
    Extreme(Order, Ordering),
}

/// What is known of a part so far. What no row had a value for is `None`.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum State {
    Count(u64),
    Integer(Option<i128>),
    Float(Option<f64>),
    Value(Option<Vec<u8>>),
}

impl State {
    pub(super) fn new(part: &Part) -> State {
        match part.what {
            What::Count => State::Count(0),
            What::SumOfIntegers { .. } => State::Integer(None),
            What::SumOfFloats => State::Float(None),
            What::Extreme(..) => State::Value(None),
        }
    }

    /// Adds a row's value, or a part of the rows'.
    pub(super) fn add(&mut self, part: &Part, value: Option<Value<'_>>, is_merge: bool) -> Result<()> {
        match (self, part.what, value) {
            (State::Count(count), _, Some(Value::Int64(more))) if is_merge => {
                *count = count.saturating_add(more.cast_unsigned());
            }
            (State::Count(_), _, _) if is_merge => {}
            (State::Count(count), _, value) => {
                *count += u64::from(part.leaf.is_none() || value.is_some());
            }
            (_, _, None) => {}
            (State::Integer(sum), What::SumOfIntegers { is_signed, .. }, Some(value)) => {
                let more = integer(value, is_signed);
                let added = more.and_then(|more| sum.unwrap_or(0).checked_add(more));
                *sum = Some(added.ok_or_else(|| Error::too_large("a sum of more than 127 bits"))?);
            }
            (State::Float(sum), _, Some(Value::Float(more))) => {
                *sum = Some(sum.unwrap_or(0.0) + f64::from(more));
            }
            (State::Float(sum), _, Some(Value::Double(more))) => *sum = Some(sum.unwrap_or(0.0) + more),
            (State::Value(best), What::Extreme(order, is_beyond), Some(value)) => {
                with_plain(value, |bytes| {
                    let bytes = &*compared(order, bytes);
                    let is_new = match &*best {
                        None => order.is_valid(bytes),
                        Some(best) => order.compare(bytes, best) == Some(is_beyond),
                    };
                    if is_new {
                        *best = Some(bytes.to_vec());
                    }
                });
            }
            _ => return Err(Error::internal("an aggregate of another type")),
        }
        Ok(())
    }

    /// Bytes that it has beside itself.
    pub(super) fn bytes(&self) -> usize {
        match self {
            State::Value(Some(value)) => value.len(),
            _ => 0,
        }
    }

    /// As a column of partial results has it.
    pub(super) fn plain(&self) -> Option<Vec<u8>> {
        match self {
            State::Count(count) => Some(count.to_le_bytes().to_vec()),
            State::Integer(sum) => sum.map(|sum| sum.to_be_bytes().to_vec()),
            State::Float(sum) => sum.map(|sum| sum.to_le_bytes().to_vec()),
            State::Value(value) => value.clone(),
        }
    }
}

fn integer(value: Value<'_>, is_signed: bool) -> Option<i128> {
    Some(match value {
        Value::Int32(value) if is_signed => value.into(),
        Value::Int32(value) => value.cast_unsigned().into(),
        Value::Int64(value) if is_signed => value.into(),
        Value::Int64(value) => value.cast_unsigned().into(),
        Value::Bytes(bytes) => twos_complement::to_i128(bytes)?,
        Value::Boolean(_) | Value::Float(_) | Value::Double(_) => return None,
    })
}

/// A value as statistics hold it: PLAIN, but BYTE_ARRAY without a length.
pub(super) fn with_plain<T>(value: Value<'_>, take: impl FnOnce(&[u8]) -> T) -> T {
    match value {
        Value::Boolean(value) => take(&[u8::from(value)]),
        Value::Int32(value) => take(&value.to_le_bytes()),
        Value::Int64(value) => take(&value.to_le_bytes()),
        Value::Float(value) => take(&value.to_le_bytes()),
        Value::Double(value) => take(&value.to_le_bytes()),
        Value::Bytes(value) => take(value),
    }
}
