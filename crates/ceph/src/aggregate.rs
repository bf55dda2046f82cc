//! Aggregates of the rows of one call. Those of several calls, and of several objects, are put together by who asked.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Float16Type, Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, ArrowNativeTypeOp, Decimal128Array, Float64Array, PrimitiveArray, RecordBatch,
    UInt64Array, downcast_integer_array, downcast_primitive_array, new_empty_array, new_null_array,
};
use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType, Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;
use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Price, Result};

use crate::compact::{ROW_BYTES_MAX, compact, text_bytes};
use crate::failure::of_arrow;

/// What a value costs that is added to an aggregate.
pub(crate) const FOLD_PRICE: Price = Price::per_kilovalue(3 << 10);
/// What a byte costs of texts that are compared for the smallest or largest; and bytes of them that are compared at once, of several rows and of
/// a single one: of its texts each may be both.
const COMPARE_PRICE: Price = Price::per_kib(100);
pub(crate) const COMPARED_BYTES: (u64, u64) = (8 << 20, 2 * ROW_BYTES_MAX);

/// The units of texts that are compared.
pub(crate) fn compared(bytes: u64) -> u64 {
    COMPARE_PRICE.of(usize::try_from(bytes).unwrap_or(usize::MAX), 0)
}

/// What is computed of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Function {
    /// Rows, or values that are not null.
    Count,
    /// The sum of numbers: exact of integers and decimals.
    Sum,
    /// The smallest value; of floating-point numbers by IEEE 754's total order, in which NaN, whatever its sign, is after all others.
    Min,
    /// The largest value, in the same order.
    Max,
}

impl Function {
    /// The function and the column that `sum(fare)` names; no column for `count(*)`.
    pub(crate) fn parse(text: &str) -> Result<(Function, Option<&str>)> {
        let wrong = || {
            let message =
                format!("'{text}' is none of count(*), count(x), sum(x), avg(x), min(x) and max(x)");
            Error::misuse(message)
        };
        let (name, rest) = text.trim().split_once('(').ok_or_else(wrong)?;
        let column = rest.strip_suffix(')').ok_or_else(wrong)?.trim();
        let function = match name.trim_end().to_ascii_lowercase().as_str() {
            "count" if column == "*" => return Ok((Function::Count, None)),
            "count" => Function::Count,
            "sum" => Function::Sum,
            "min" => Function::Min,
            "max" => Function::Max,
            _ => return Err(wrong()),
        };
        Ok((function, Some(column)))
    }
}

/// The column of `avg(fare)`: not an aggregate of its own, because it cannot be put together with others.
pub(crate) fn average_of(text: &str) -> Option<&str> {
    let (name, rest) = text.trim().split_once('(')?;
    let column = rest.strip_suffix(')')?.trim();
    (name.trim_end().eq_ignore_ascii_case("avg") && column != "*").then_some(column)
}

/// An aggregate that is asked for: its text, its column's place among those that are read, and what is computed.
pub(crate) type Asking = (String, Option<usize>, Function);

/// Aggregates that are being computed.
#[derive(Clone)]
pub(crate) struct Aggregates {
    names: Arc<[String]>,
    columns: Vec<(Option<usize>, State)>,
}

/// What is known of one so far.
#[derive(Clone)]
enum State {
    Count(u64),
    Integers(Option<i128>, i8),
    Floats(Option<f64>),
    /// The type; the value as an array of one; whether the largest is wanted.
    Extreme(DataType, Option<ArrayRef>, bool),
}

impl Aggregates {
    /// For record batches of this schema: each has its text, the column's place there, and what is computed.
    pub(crate) fn new(asked: &[Asking], schema: &SchemaRef) -> Result<Aggregates> {
        let mut columns = Vec::new();
        for (name, place, function) in asked {
            let data_type = place.map(|place| schema.field(place).data_type());
            let refused =
                |data_type: &DataType| Error::unsupported(format!("{name} is not computed of {data_type}"));
            let state = match (function, data_type) {
                (Function::Count, _) => State::Count(0),
                (_, None) => return Err(Error::misuse(format!("{name} needs a column"))),
                (Function::Sum, Some(DataType::Decimal128(_, scale))) => State::Integers(None, *scale),
                (Function::Sum, Some(data_type)) if data_type.is_integer() => State::Integers(None, 0),
                (Function::Sum, Some(data_type)) if data_type.is_floating() => State::Floats(None),
                (Function::Sum, Some(data_type)) => return Err(refused(data_type)),
                (Function::Min | Function::Max, Some(data_type)) if has_order(data_type) => {
                    State::Extreme(data_type.clone(), None, *function == Function::Max)
                }
                (Function::Min | Function::Max, Some(data_type)) => return Err(refused(data_type)),
            };
            columns.push((*place, state));
        }
        Ok(Aggregates { names: asked.iter().map(|(name, ..)| name.clone()).collect(), columns })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Bytes of the values that are kept.
    pub(crate) fn held_bytes(&self) -> usize {
        let kept = self.columns.iter().filter_map(|(_, state)| match state {
            State::Extreme(_, best, _) => best.as_ref(),
            State::Count(_) | State::Integers(..) | State::Floats(_) => None,
        });
        kept.map(|value| value.get_array_memory_size()).sum()
    }

    /// Bytes of texts of a batch that are compared: those of a column once for each aggregate.
    pub(crate) fn compared_bytes(&self, batch: &RecordBatch) -> u64 {
        let compared = self.columns.iter().filter_map(|(place, state)| match state {
            State::Extreme(..) => *place,
            State::Count(_) | State::Integers(..) | State::Floats(_) => None,
        });
        compared.map(|place| text_bytes(batch.column(place))).sum()
    }

    /// Adds rows without values: only what counts rows is computed.
    pub(crate) fn count(&mut self, rows: u64) {
        for (place, state) in &mut self.columns {
            if let (None, State::Count(count)) = (place, state) {
                *count += rows;
            }
        }
    }

    /// Adds the rows of a batch.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        for (place, state) in &mut self.columns {
            let array = place.map(|place| batch.column(place));
            match (state, array) {
                (State::Count(count), None) => *count += u64_of(batch.num_rows()),
                (State::Count(count), Some(array)) => {
                    *count += u64_of(array.len() - array.logical_null_count())
                }
                (_, None) => {}
                (State::Integers(sum, _), Some(array)) => {
                    if let Some(more) = sum_of_integers(array)? {
                        let added = sum.unwrap_or(0).checked_add(more);
                        *sum = Some(added.ok_or_else(|| too_large("a sum"))?);
                    }
                }
                (State::Floats(sum), Some(array)) => {
                    if let Some(more) = sum_of_floats(array) {
                        *sum = Some(sum.unwrap_or(0.0) + more);
                    }
                }
                (State::Extreme(_, best, is_max), Some(array)) => {
                    let array = &without_sign_of_nan(array);
                    let order = if *is_max { Ordering::Greater } else { Ordering::Less };
                    if let Some(at) = extreme(array, order)? {
                        let candidate = array.slice(at, 1);
                        let is_better = match best {
                            None => true,
                            Some(best) => compare(&candidate, best)? == order,
                        };
                        if is_better {
                            // A slice would hold all values of its batch.
                            let at = UInt64Array::from(vec![u64_of(at)]);
                            *best = Some(compact(&take(array, &at, None).map_err(of_arrow)?)?);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// A record batch of one row. What no row had a value for is null.
    pub(crate) fn finish(&self) -> Result<RecordBatch> {
        self.finish_all(std::slice::from_ref(self))
    }

    /// A record batch with a row for each of several, which are clones of this one to which rows were added.
    pub(crate) fn finish_all(&self, all: &[Aggregates]) -> Result<RecordBatch> {
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (at, (_, state)) in self.columns.iter().enumerate() {
            let states = all.iter().map(|of| &of.columns[at].1);
            arrays.push(match state {
                State::Count(_) => Arc::new(UInt64Array::from_iter(states.map(|state| match state {
                    State::Count(count) => Some(*count),
                    _ => None,
                }))),
                State::Integers(_, scale) => {
                    let sums = Decimal128Array::from_iter(states.map(|state| match state {
                        State::Integers(sum, _) => *sum,
                        _ => None,
                    }));
                    Arc::new(
                        sums.with_precision_and_scale(DECIMAL128_MAX_PRECISION, *scale).map_err(of_arrow)?,
                    )
                }
                State::Floats(_) => Arc::new(Float64Array::from_iter(states.map(|state| match state {
                    State::Floats(sum) => *sum,
                    _ => None,
                }))),
                State::Extreme(data_type, ..) => {
                    let null = new_null_array(data_type, 1);
                    let bests: Vec<&dyn Array> = states
                        .map(|state| match state {
                            State::Extreme(_, Some(best), _) => &**best,
                            _ => &*null,
                        })
                        .collect();
                    match bests.as_slice() {
                        [] => new_empty_array(data_type),
                        bests => concat(bests).map_err(of_arrow)?,
                    }
                }
            });
        }
        let fields: Vec<Field> = self
            .names
            .iter()
            .zip(&arrays)
            .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
            .collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(of_arrow)
    }
}

/// Whether values of a type are compared here.
pub(crate) fn has_order(data_type: &DataType) -> bool {
    let is_interval = matches!(data_type, DataType::Interval(_));
    data_type.is_primitive() && !is_interval || bytes_of(&new_null_array(data_type, 0)).is_some()
}

fn sum_of_integers(array: &ArrayRef) -> Result<Option<i128>> {
    fn sum<T>(array: &PrimitiveArray<T>) -> Result<Option<i128>>
    where
        T: ArrowPrimitiveType,
        T::Native: Into<i128>,
    {
        let mut sum = None;
        for value in array.iter().flatten() {
            let added: Option<i128> = sum.unwrap_or(0_i128).checked_add(value.into());
            sum = Some(added.ok_or_else(|| too_large("a sum"))?);
        }
        Ok(sum)
    }
    downcast_integer_array!(
        array => sum(array),
        DataType::Decimal128(_, _) => sum(array.as_primitive::<Decimal128Type>()),
        other => Err(Error::internal(format!("a sum of {other}")))
    )
}

fn sum_of_floats(array: &ArrayRef) -> Option<f64> {
    match array.data_type() {
        DataType::Float16 => array.as_primitive::<Float16Type>().iter().flatten().map(f64::from).reduce(add),
        DataType::Float32 => array.as_primitive::<Float32Type>().iter().flatten().map(f64::from).reduce(add),
        _ => array.as_primitive_opt::<Float64Type>()?.iter().flatten().reduce(add),
    }
}

fn add(a: f64, b: f64) -> f64 {
    a + b
}

/// The same values, but NaN has no sign: with one it would be before all numbers.
fn without_sign_of_nan(array: &ArrayRef) -> ArrayRef {
    type Half = <Float16Type as ArrowPrimitiveType>::Native;
    if let Some(array) = array.as_primitive_opt::<Float64Type>() {
        let values: Float64Array = array.unary(|value| if value.is_nan() { value.abs() } else { value });
        return Arc::new(values);
    }
    if let Some(array) = array.as_primitive_opt::<Float32Type>() {
        let values: PrimitiveArray<Float32Type> =
            array.unary(|value| if value.is_nan() { value.abs() } else { value });
        return Arc::new(values);
    }
    if let Some(array) = array.as_primitive_opt::<Float16Type>() {
        let values: PrimitiveArray<Float16Type> = array
            .unary(|value| if value.is_nan() { Half::from_bits(value.to_bits() & 0x7fff) } else { value });
        return Arc::new(values);
    }
    ArrayRef::clone(array)
}

/// Where the value is that is before all others in that order, or after them; `None` if all are null.
fn extreme(array: &ArrayRef, order: Ordering) -> Result<Option<usize>> {
    fn of<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, order: Ordering) -> Option<usize> {
        let mut best: Option<(usize, T::Native)> = None;
        for (at, value) in array.iter().enumerate() {
            let Some(value) = value else { continue };
            if best.is_none_or(|(_, best)| value.compare(best) == order) {
                best = Some((at, value));
            }
        }
        best.map(|(at, _)| at)
    }
    Ok(downcast_primitive_array!(
        array => of(array, order),
        _ => {
            let value = bytes_of(array).ok_or_else(|| no_order(array))?;
            let mut best: Option<usize> = None;
            for at in (0..array.len()).filter(|at| array.is_valid(*at)) {
                if best.is_none_or(|best| value(at).cmp(value(best)) == order) {
                    best = Some(at);
                }
            }
            best
        }
    ))
}

/// Compares two values of one type, each in an array of its own.
fn compare(a: &ArrayRef, b: &ArrayRef) -> Result<Ordering> {
    fn of<T: ArrowPrimitiveType>(a: &PrimitiveArray<T>, b: &ArrayRef) -> Option<Ordering> {
        Some(a.value(0).compare(b.as_primitive_opt::<T>()?.value(0)))
    }
    let order = downcast_primitive_array!(
        a => of(a, b),
        _ => bytes_of(a).zip(bytes_of(b)).map(|(a, b)| a(0).cmp(b(0)))
    );
    order.ok_or_else(|| no_order(a))
}

/// The values of an array as bytes that are in the values' order; `None` for types that have none.
pub(crate) fn bytes_of<'a>(array: &'a ArrayRef) -> Option<Box<dyn Fn(usize) -> &'a [u8] + 'a>> {
    const BITS: [&[u8]; 2] = [&[0], &[1]];
    Some(match array.data_type() {
        DataType::Boolean => {
            let array = array.as_boolean();
            Box::new(move |at| BITS[usize::from(array.value(at))])
        }
        DataType::Utf8 => {
            let array = array.as_string::<i32>();
            Box::new(move |at| array.value(at).as_bytes())
        }
        DataType::LargeUtf8 => {
            let array = array.as_string::<i64>();
            Box::new(move |at| array.value(at).as_bytes())
        }
        DataType::Utf8View => {
            let array = array.as_string_view();
            Box::new(move |at| array.value(at).as_bytes())
        }
        DataType::Binary => {
            let array = array.as_binary::<i32>();
            Box::new(move |at| array.value(at))
        }
        DataType::LargeBinary => {
            let array = array.as_binary::<i64>();
            Box::new(move |at| array.value(at))
        }
        DataType::BinaryView => {
            let array = array.as_binary_view();
            Box::new(move |at| array.value(at))
        }
        DataType::FixedSizeBinary(_) => {
            let array = array.as_fixed_size_binary();
            Box::new(move |at| array.value(at))
        }
        _ => return None,
    })
}

fn no_order(array: &ArrayRef) -> Error {
    Error::internal(format!("values of {} compared", array.data_type()))
}

fn too_large(what: &str) -> Error {
    Error::too_large(format!("{what} of more than 127 bits"))
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Int32Type, UInt64Type};
    use arrow_array::{BooleanArray, Int32Array, StringViewArray};

    use super::*;

    fn computed(array: ArrayRef, functions: &[Function]) -> Result<Vec<ArrayRef>> {
        let field = Field::new("x", array.data_type().clone(), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let asked: Vec<_> =
            functions.iter().map(|function| ("f(x)".to_owned(), Some(0), *function)).collect();
        let mut aggregates = Aggregates::new(&asked, &schema)?;
        let half = array.len() / 2;
        for part in [array.slice(0, half), array.slice(half, array.len() - half)] {
            aggregates.add(&RecordBatch::try_new(Arc::clone(&schema), vec![part]).unwrap())?;
        }
        Ok(aggregates.finish()?.columns().to_vec())
    }

    #[test]
    fn nulls_count_for_nothing() {
        use Function::{Count, Max, Min, Sum};
        let numbers = Int32Array::from(vec![Some(3), None, Some(i32::MAX), Some(-2), None, Some(i32::MAX)]);
        let of = computed(Arc::new(numbers), &[Count, Sum, Min, Max]).unwrap();
        assert_eq!(of[0].as_primitive::<UInt64Type>().value(0), 4);
        assert_eq!(of[1].as_primitive::<Decimal128Type>().value(0), 2 * i128::from(i32::MAX) + 1);
        assert_eq!(of[2].as_primitive::<Int32Type>().value(0), -2);
        assert_eq!(of[3].as_primitive::<Int32Type>().value(0), i32::MAX);
        let none = computed(new_null_array(&DataType::Utf8View, 4), &[Count, Min]).unwrap();
        assert_eq!((none[0].as_primitive::<UInt64Type>().value(0), none[1].null_count()), (0, 1));
    }

    #[test]
    fn texts_booleans_and_floats_have_an_order() {
        use Function::{Max, Min, Sum};
        let texts = StringViewArray::from(vec![
            Some("b"),
            Some("a text that is longer than a view"),
            None,
            Some("a"),
        ]);
        let of = computed(Arc::new(texts), &[Min, Max]).unwrap();
        assert_eq!((of[0].as_string_view().value(0), of[1].as_string_view().value(0)), ("a", "b"));
        let bits = computed(Arc::new(BooleanArray::from(vec![true, false])), &[Min, Max]).unwrap();
        assert_eq!((bits[0].as_boolean().value(0), bits[1].as_boolean().value(0)), (false, true));
        for nan in [f64::NAN, -f64::NAN] {
            let floats = Float64Array::from(vec![1.5, nan, -0.0, 0.0]);
            let of = computed(Arc::new(floats), &[Min, Max]).unwrap();
            assert_eq!(of[0].as_primitive::<Float64Type>().value(0).to_bits(), (-0.0_f64).to_bits());
            assert!(of[1].as_primitive::<Float64Type>().value(0).is_nan());
        }
        let singles = PrimitiveArray::<Float32Type>::from(vec![1.5, -f32::NAN]);
        let of = computed(Arc::new(singles), &[Min, Max]).unwrap();
        let [least, most] = [&of[0], &of[1]].map(|array| array.as_primitive::<Float32Type>().value(0));
        assert!(least.to_bits() == 1.5_f32.to_bits() && most.is_nan());
        let texts: ArrayRef = Arc::new(StringViewArray::from(vec!["a"]));
        assert!(computed(texts, &[Sum]).is_err());
    }

    #[test]
    fn what_is_no_aggregate_is_refused() {
        assert_eq!(Function::parse(" COUNT(*)").unwrap(), (Function::Count, None));
        assert_eq!(Function::parse("max( a.b )").unwrap(), (Function::Max, Some("a.b")));
        for wrong in ["", "count", "count(", "avg(x)", "sum(x", "sum)x("] {
            assert!(Function::parse(wrong).is_err(), "{wrong}");
        }
    }
}
