//! Aggregates of the rows of one call. Those of several calls, and of several objects, are put together by who asked.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use marquetry_base::{Error, Price, Result};

use crate::compact::{ROW_BYTES_MAX, text_bytes};
use crate::failure::of_arrow;
use crate::states::{Of, States, extremes_of};

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

/// Aggregates that are being computed, of all rows or of groups of them.
pub(crate) struct Aggregates {
    names: Vec<String>,
    /// Of each: its column's place, and what is known of it.
    columns: Vec<(Option<usize>, States)>,
}

impl Aggregates {
    /// For record batches of this schema, and of no group yet: each has its text, the column's place there, and what is computed.
    pub(crate) fn new(asked: &[Asking], schema: &SchemaRef) -> Result<Aggregates> {
        let mut columns = Vec::new();
        for (name, place, function) in asked {
            let data_type = place.map(|place| schema.field(place).data_type());
            let refused =
                |data_type: &DataType| Error::unsupported(format!("{name} is not computed of {data_type}"));
            let states = match (function, data_type) {
                (Function::Count, _) => States::Count(Vec::new()),
                (_, None) => return Err(Error::misuse(format!("{name} needs a column"))),
                (Function::Sum, Some(DataType::Decimal128(_, scale))) => States::Integers(Vec::new(), *scale),
                (Function::Sum, Some(data_type)) if data_type.is_integer() => States::Integers(Vec::new(), 0),
                (Function::Sum, Some(data_type)) if data_type.is_floating() => States::Floats(Vec::new()),
                (Function::Sum, Some(data_type)) => return Err(refused(data_type)),
                (Function::Min | Function::Max, Some(data_type)) => {
                    let extremes = extremes_of(data_type, *function == Function::Max);
                    States::Extreme(extremes.ok_or_else(|| refused(data_type))?)
                }
            };
            columns.push((*place, states));
        }
        Ok(Aggregates { names: asked.iter().map(|(name, ..)| name.clone()).collect(), columns })
    }

    /// The same, of one group, which all rows are in.
    pub(crate) fn of_all(asked: &[Asking], schema: &SchemaRef) -> Result<Aggregates> {
        let mut aggregates = Aggregates::new(asked, schema)?;
        aggregates.grow(1);
        Ok(aggregates)
    }

    /// Makes room for so many groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        self.columns.iter_mut().for_each(|(_, states)| states.grow(groups));
    }

    /// How many there are of each group.
    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Bytes of the values that are kept and have no fixed length.
    pub(crate) fn held_bytes(&self) -> usize {
        self.columns.iter().map(|(_, states)| states.held_bytes()).sum()
    }

    /// Bytes of texts of a batch that are compared: those of a column once for each aggregate.
    pub(crate) fn compared_bytes(&self, batch: &RecordBatch) -> u64 {
        let compared = self.columns.iter().filter_map(|(place, states)| match states {
            States::Extreme(..) => *place,
            States::Count(_) | States::Integers(..) | States::Floats(_) => None,
        });
        compared.map(|place| text_bytes(batch.column(place))).sum()
    }

    /// Adds rows without values to the one group: only what counts rows is computed.
    pub(crate) fn count(&mut self, rows: u64) {
        for (place, states) in &mut self.columns {
            if let (None, States::Count(counts)) = (place, states) {
                counts.iter_mut().for_each(|count| *count += rows);
            }
        }
    }

    /// Adds the rows of a batch to the one group.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        self.add_of(batch, Of::One(0))
    }

    /// Adds the rows of a batch to a group each.
    pub(crate) fn add_to(&mut self, groups: &[u32], batch: &RecordBatch) -> Result<()> {
        self.add_of(batch, Of::Each(groups))
    }

    fn add_of(&mut self, batch: &RecordBatch, of: Of<'_>) -> Result<()> {
        for (place, states) in &mut self.columns {
            match place {
                None => states.count(batch.num_rows(), of),
                Some(place) => states.add(batch.column(*place), of)?,
            }
        }
        Ok(())
    }

    /// A record batch with a row for each group. What no row had a value for is null.
    pub(crate) fn finish(&self) -> Result<RecordBatch> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (name, (_, states)) in self.names.iter().zip(&self.columns) {
            let array = states.finish()?;
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(of_arrow)
    }
}

/// Whether values of a type are compared here.
pub(crate) fn has_order(data_type: &DataType) -> bool {
    extremes_of(data_type, false).is_some()
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int32Type, UInt64Type};
    use arrow_array::{
        Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int32Array, PrimitiveArray,
        StringViewArray, new_null_array,
    };

    use super::*;

    fn computed(array: ArrayRef, functions: &[Function]) -> Result<Vec<ArrayRef>> {
        let field = Field::new("x", array.data_type().clone(), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let asked: Vec<_> =
            functions.iter().map(|function| ("f(x)".to_owned(), Some(0), *function)).collect();
        let mut aggregates = Aggregates::of_all(&asked, &schema)?;
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
    fn a_sum_that_needs_too_many_bits_is_an_error() {
        let most = 10_i128.pow(38) - 1;
        let decimals = |values: Vec<i128>| -> ArrayRef { Arc::new(Decimal128Array::from(values)) };
        let of = computed(decimals(vec![most, -1, -most, 3]), &[Function::Sum]).unwrap();
        assert_eq!(of[0].as_primitive::<Decimal128Type>().value(0), 2);
        // Of as many digits as there may be, two are too many.
        for values in [vec![most, most], vec![most, 1]] {
            let error = computed(decimals(values), &[Function::Sum]).unwrap_err();
            assert_eq!(error.kind(), marquetry_base::ErrorKind::LimitExceeded);
        }
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
