//! What is known of an aggregate so far, of each group: a place for each group, in an array of the aggregate's own type. So a batch is added by
//! one loop for each aggregate, which knows its type.

use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Decimal128Type, Float16Type, Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayAccessor, ArrayRef, ArrowNativeTypeOp, BinaryArray, BinaryViewArray, BooleanArray,
    Decimal128Array, FixedSizeBinaryArray, Float64Array, LargeBinaryArray, LargeStringArray, PrimitiveArray,
    StringArray, StringViewArray, UInt64Array, downcast_integer_array, downcast_primitive,
};
use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType};
use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Error, Result};

use crate::failure::of_arrow;

/// Bytes of memory that a kept text may have beyond twice its own: it is used again for the next one.
const KEPT_BYTES: usize = 64;

/// Does something with an array of texts or bytes, whichever it is.
macro_rules! of_bytes {
    ($array:ident => $then:expr, $other:expr) => {
        match $array.data_type() {
            arrow_schema::DataType::Utf8 => {
                let $array = $array.as_string::<i32>();
                $then
            }
            arrow_schema::DataType::LargeUtf8 => {
                let $array = $array.as_string::<i64>();
                $then
            }
            arrow_schema::DataType::Utf8View => {
                let $array = $array.as_string_view();
                $then
            }
            arrow_schema::DataType::Binary => {
                let $array = $array.as_binary::<i32>();
                $then
            }
            arrow_schema::DataType::LargeBinary => {
                let $array = $array.as_binary::<i64>();
                $then
            }
            arrow_schema::DataType::BinaryView => {
                let $array = $array.as_binary_view();
                $then
            }
            arrow_schema::DataType::FixedSizeBinary(_) => {
                let $array = $array.as_fixed_size_binary();
                $then
            }
            _ => $other,
        }
    };
}
pub(crate) use of_bytes;

/// The groups of rows that are added.
#[derive(Clone, Copy)]
pub(crate) enum Of<'a> {
    /// All are of this one.
    One(usize),
    /// Each has one of its own.
    Each(&'a [u32]),
}

/// What is known of an aggregate, of each group.
pub(crate) enum States {
    /// Rows, or values.
    Count(Vec<u64>),
    /// Sums of integers; and their scale.
    Integers(Vec<Option<i128>>, i8),
    /// Sums of floating-point numbers.
    Floats(Vec<Option<f64>>),
    /// The smallest or largest values.
    Extreme(Box<dyn Extremes>),
}

impl States {
    /// Makes room for so many groups.
    pub(crate) fn grow(&mut self, groups: usize) {
        match self {
            States::Count(counts) => counts.resize(groups, 0),
            States::Integers(sums, _) => sums.resize(groups, None),
            States::Floats(sums) => sums.resize(groups, None),
            States::Extreme(best) => best.grow(groups),
        }
    }

    /// Bytes of the values that are kept and have no fixed length.
    pub(crate) fn held_bytes(&self) -> usize {
        match self {
            States::Extreme(best) => best.held_bytes(),
            States::Count(_) | States::Integers(..) | States::Floats(_) => 0,
        }
    }

    /// Counts rows.
    pub(crate) fn count(&mut self, rows: usize, of: Of<'_>) {
        let States::Count(counts) = self else { return };
        match of {
            Of::One(group) => counts[group] += u64_of(rows),
            Of::Each(groups) => groups.iter().for_each(|group| counts[usize_of_u32(*group)] += 1),
        }
    }

    /// Adds the values of an array.
    pub(crate) fn add(&mut self, array: &ArrayRef, of: Of<'_>) -> Result<()> {
        match self {
            States::Count(counts) => add_count(array, of, counts),
            States::Integers(sums, _) => return add_integers(array, of, sums),
            States::Floats(sums) => add_floats(array, of, sums),
            States::Extreme(best) => return best.add(array, of),
        }
        Ok(())
    }

    /// An array with the aggregate of each group. What no row had a value for is null.
    pub(crate) fn finish(&self) -> Result<ArrayRef> {
        Ok(match self {
            States::Count(counts) => Arc::new(UInt64Array::from(counts.clone())),
            States::Integers(sums, scale) => {
                let sums = Decimal128Array::from_iter(sums.iter().copied());
                let sums =
                    sums.with_precision_and_scale(DECIMAL128_MAX_PRECISION, *scale).map_err(of_arrow)?;
                sums.validate_decimal_precision(DECIMAL128_MAX_PRECISION)
                    .map_err(|_| Error::too_large("a sum of more than 38 digits"))?;
                Arc::new(sums)
            }
            States::Floats(sums) => Arc::new(Float64Array::from_iter(sums.iter().copied())),
            States::Extreme(best) => best.finish()?,
        })
    }
}

fn add_count(array: &ArrayRef, of: Of<'_>, counts: &mut [u64]) {
    let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
    match (of, nulls) {
        (Of::One(group), nulls) => {
            let values = array.len() - nulls.map_or(0, |nulls| nulls.null_count());
            counts[group] += u64_of(values);
        }
        (Of::Each(groups), None) => groups.iter().for_each(|group| counts[usize_of_u32(*group)] += 1),
        (Of::Each(groups), Some(nulls)) => {
            for (group, is_there) in groups.iter().zip(&nulls) {
                counts[usize_of_u32(*group)] += u64::from(is_there);
            }
        }
    }
}

fn add_integers(array: &ArrayRef, of: Of<'_>, sums: &mut [Option<i128>]) -> Result<()> {
    // No call has so many numbers of 64 bits that their sum needs more than 127.
    fn sum<T>(array: &PrimitiveArray<T>, of: Of<'_>, sums: &mut [Option<i128>])
    where
        T: ArrowPrimitiveType,
        T::Native: Into<i128>,
    {
        fold(array, of, sums, |value| value.into(), |sum: i128, value| sum.wrapping_add(value.into()));
    }
    let is_beyond = Cell::new(false);
    downcast_integer_array!(
        array => sum(array, of, sums),
        DataType::Decimal128(_, _) => {
            let add = |sum: i128, value: i128| {
                sum.checked_add(value).unwrap_or_else(|| {
                    is_beyond.set(true);
                    sum
                })
            };
            fold(array.as_primitive::<Decimal128Type>(), of, sums, |value| value, add);
        }
        other => return Err(Error::internal(format!("a sum of {other}"))),
    );
    if is_beyond.get() {
        return Err(Error::too_large("a sum of more than 127 bits"));
    }
    Ok(())
}

fn add_floats(array: &ArrayRef, of: Of<'_>, sums: &mut [Option<f64>]) {
    fn sum<T>(array: &PrimitiveArray<T>, of: Of<'_>, sums: &mut [Option<f64>])
    where
        T: ArrowPrimitiveType,
        f64: From<T::Native>,
    {
        // Of negative zeros alone it is zero.
        let first = |value: T::Native| 0.0 + f64::from(value);
        fold(array, of, sums, first, |sum: f64, value| sum + f64::from(value));
    }
    match array.data_type() {
        DataType::Float16 => sum(array.as_primitive::<Float16Type>(), of, sums),
        DataType::Float32 => sum(array.as_primitive::<Float32Type>(), of, sums),
        _ => {
            if let Some(array) = array.as_primitive_opt::<Float64Type>() {
                sum(array, of, sums);
            }
        }
    }
}

/// Adds the values of an array to what is known of their groups, each of which begins with its first value. Nulls are left out.
fn fold<T: ArrowPrimitiveType, S: Copy>(
    array: &PrimitiveArray<T>,
    of: Of<'_>,
    states: &mut [Option<S>],
    first: impl Fn(T::Native) -> S,
    add: impl Fn(S, T::Native) -> S,
) {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    let values = array.values().iter().copied();
    let next = |state: &mut Option<S>, value: T::Native| {
        *state = Some(match *state {
            None => first(value),
            Some(known) => add(known, value),
        });
    };
    match (of, nulls) {
        (Of::One(group), None) => states[group] = fold_all(values, states[group], &first, &add),
        (Of::One(group), Some(_)) => {
            states[group] = fold_all(array.iter().flatten(), states[group], &first, &add);
        }
        (Of::Each(groups), None) => {
            for (group, value) in groups.iter().zip(values) {
                next(&mut states[usize_of_u32(*group)], value);
            }
        }
        (Of::Each(groups), Some(nulls)) => {
            for ((group, value), is_there) in groups.iter().zip(values).zip(nulls) {
                if is_there {
                    next(&mut states[usize_of_u32(*group)], value);
                }
            }
        }
    }
}

/// The same, of values that are all of one group.
fn fold_all<N, S>(
    mut values: impl Iterator<Item = N>,
    known: Option<S>,
    first: impl Fn(N) -> S,
    add: impl Fn(S, N) -> S,
) -> Option<S> {
    let known = match known {
        Some(known) => known,
        None => first(values.next()?),
    };
    Some(values.fold(known, add))
}

/// The smallest or largest values of groups, of one type.
pub(crate) trait Extremes {
    /// Makes room for so many groups.
    fn grow(&mut self, groups: usize);

    /// Bytes of the values that are kept and have no fixed length.
    fn held_bytes(&self) -> usize;

    /// Adds the values of an array.
    fn add(&mut self, array: &ArrayRef, of: Of<'_>) -> Result<()>;

    /// An array with the value of each group.
    fn finish(&self) -> Result<ArrayRef>;
}

/// The smallest or largest values of a type; `None` for one that has no order here.
pub(crate) fn extremes_of(data_type: &DataType, is_max: bool) -> Option<Box<dyn Extremes>> {
    macro_rules! numbers {
        ($t:ty) => {
            Some(Box::new(Numbers::<$t> { data_type: data_type.clone(), best: Vec::new(), is_max })
                as Box<dyn Extremes>)
        };
    }
    let order = if is_max { Ordering::Greater } else { Ordering::Less };
    match data_type {
        DataType::Interval(_) => None,
        DataType::Boolean => Some(Box::new(Bits { best: Vec::new(), is_max })),
        DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => {
            let data_type = data_type.clone();
            Some(Box::new(Texts { data_type, best: Vec::new(), held_bytes: 0, order }))
        }
        data_type => downcast_primitive! {
            data_type => (numbers),
            _ => None,
        },
    }
}

/// Of numbers: floating-point ones by IEEE 754's total order, in which NaN, whatever its sign, is after all others.
struct Numbers<T: ArrowPrimitiveType> {
    data_type: DataType,
    best: Vec<Option<T::Native>>,
    is_max: bool,
}

impl<T: ArrowPrimitiveType> Extremes for Numbers<T> {
    fn grow(&mut self, groups: usize) {
        self.best.resize(groups, None);
    }

    fn held_bytes(&self) -> usize {
        0
    }

    fn add(&mut self, array: &ArrayRef, of: Of<'_>) -> Result<()> {
        let array = without_sign_of_nan(array);
        let array = array.as_primitive_opt::<T>().ok_or_else(|| no_order(array.data_type()))?;
        let (best, first) = (&mut self.best, |value: T::Native| value);
        match self.is_max {
            true => fold(array, of, best, first, |best, value| if value.is_gt(best) { value } else { best }),
            false => fold(array, of, best, first, |best, value| if value.is_lt(best) { value } else { best }),
        }
        Ok(())
    }

    fn finish(&self) -> Result<ArrayRef> {
        let made = PrimitiveArray::<T>::from_iter(self.best.iter().copied());
        Ok(Arc::new(made.with_data_type(self.data_type.clone())))
    }
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

/// Of truth values: false is before true.
struct Bits {
    best: Vec<Option<bool>>,
    is_max: bool,
}

impl Extremes for Bits {
    fn grow(&mut self, groups: usize) {
        self.best.resize(groups, None);
    }

    fn held_bytes(&self) -> usize {
        0
    }

    fn add(&mut self, array: &ArrayRef, of: Of<'_>) -> Result<()> {
        let array = array.as_boolean_opt().ok_or_else(|| no_order(array.data_type()))?;
        for (at, value) in array.iter().enumerate() {
            let Some(value) = value else { continue };
            let best = &mut self.best[of.group(at)];
            *best = Some(match (*best, self.is_max) {
                (None, _) => value,
                (Some(best), true) => best | value,
                (Some(best), false) => best & value,
            });
        }
        Ok(())
    }

    fn finish(&self) -> Result<ArrayRef> {
        Ok(Arc::new(BooleanArray::from_iter(self.best.iter().copied())))
    }
}

/// Of texts and bytes, by their bytes.
struct Texts {
    data_type: DataType,
    best: Vec<Option<Vec<u8>>>,
    held_bytes: usize,
    /// That of a better value beside the best one.
    order: Ordering,
}

impl Texts {
    fn add_all<A: ArrayAccessor>(&mut self, array: A, of: Of<'_>)
    where
        A::Item: AsRef<[u8]>,
    {
        let values = (0..array.len()).filter(|at| array.is_valid(*at));
        let Of::One(group) = of else {
            values.for_each(|at| self.offer(of.group(at), array.value(at).as_ref()));
            return;
        };
        let mut best: Option<A::Item> = None;
        for value in values.map(|at| array.value(at)) {
            if best.as_ref().is_none_or(|best| value.as_ref().cmp(best.as_ref()) == self.order) {
                best = Some(value);
            }
        }
        if let Some(best) = best {
            self.offer(group, best.as_ref());
        }
    }

    /// Keeps a value if it is better than the one that is kept.
    fn offer(&mut self, group: usize, value: &[u8]) {
        let Some(best) = self.best.get_mut(group) else { return };
        let before = best.as_ref().map_or(0, Vec::capacity);
        match best {
            Some(kept) if value.cmp(kept.as_slice()) != self.order => return,
            Some(kept) if (value.len()..=2 * value.len() + KEPT_BYTES).contains(&kept.capacity()) => {
                kept.clear();
                kept.extend_from_slice(value);
            }
            _ => *best = Some(value.to_vec()),
        }
        let held = best.as_ref().map_or(0, Vec::capacity);
        self.held_bytes = (self.held_bytes + held).saturating_sub(before);
    }

    fn texts(&self) -> Result<Vec<Option<&str>>> {
        let texts = self.best.iter().map(|best| best.as_deref().map(str::from_utf8).transpose());
        let texts = texts.collect::<std::result::Result<_, _>>();
        texts.map_err(|_| Error::internal("a text that is not UTF-8 any more"))
    }
}

impl Extremes for Texts {
    fn grow(&mut self, groups: usize) {
        self.best.resize(groups, None);
    }

    fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    fn add(&mut self, array: &ArrayRef, of: Of<'_>) -> Result<()> {
        of_bytes!(array => self.add_all(array, of), return Err(no_order(array.data_type())));
        Ok(())
    }

    fn finish(&self) -> Result<ArrayRef> {
        let bytes = self.best.iter().map(Option::as_deref);
        Ok(match &self.data_type {
            DataType::Utf8 => Arc::new(StringArray::from_iter(self.texts()?)),
            DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter(self.texts()?)),
            DataType::Utf8View => Arc::new(StringViewArray::from_iter(self.texts()?)),
            DataType::Binary => Arc::new(BinaryArray::from_iter(bytes)),
            DataType::LargeBinary => Arc::new(LargeBinaryArray::from_iter(bytes)),
            DataType::BinaryView => Arc::new(BinaryViewArray::from_iter(bytes)),
            DataType::FixedSizeBinary(width) => {
                let made = FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes, *width);
                Arc::new(made.map_err(of_arrow)?)
            }
            other => return Err(no_order(other)),
        })
    }
}

impl Of<'_> {
    /// The group of a row.
    fn group(self, row: usize) -> usize {
        match self {
            Of::One(group) => group,
            Of::Each(groups) => usize_of_u32(groups[row]),
        }
    }
}

fn no_order(data_type: &DataType) -> Error {
    Error::internal(format!("values of {data_type} compared"))
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{TimestampMillisecondType, UInt64Type};
    use arrow_array::{Int32Array, UInt32Array};
    use arrow_select::take::take;

    use super::*;

    const ROWS: u32 = 1_000;
    const GROUPS: u32 = 7;

    /// A column of each kind, with nulls and without.
    fn columns() -> Vec<ArrayRef> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        for every in [5, u32::MAX] {
            let some = || (0..ROWS).map(move |row| (row % every != every - 1).then_some(row * row % 997));
            let texts = || some().map(|value| value.map(|value| format!("{value} and more than a view has")));
            let bytes = || some().map(|value| value.map(u32::to_be_bytes));
            let decimals =
                Decimal128Array::from_iter(some().map(|value| value.map(|value| -i128::from(value))));
            let zone = DataType::Timestamp(arrow_schema::TimeUnit::Millisecond, Some("UTC".into()));
            let times = some().map(|value| value.map(i64::from));
            let times = PrimitiveArray::<TimestampMillisecondType>::from_iter(times).with_data_type(zone);
            let float = |value: u32| match value % 50 {
                7 => -f64::NAN,
                8 => f64::INFINITY,
                9 => -0.0,
                _ => f64::from(value) / 8.0,
            };
            columns.extend([
                Arc::new(Int32Array::from_iter(
                    some().map(|value| value.map(|value| 500 - value.cast_signed())),
                )) as ArrayRef,
                Arc::new(PrimitiveArray::<UInt64Type>::from_iter(some().map(|value| value.map(u64::from)))),
                Arc::new(decimals.with_precision_and_scale(20, 3).unwrap()),
                Arc::new(Float64Array::from_iter(some().map(|value| value.map(float)))),
                Arc::new(times),
                Arc::new(BooleanArray::from_iter(some().map(|value| value.map(|value| value % 3 == 0)))),
                Arc::new(StringArray::from_iter(texts())),
                Arc::new(StringViewArray::from_iter(texts())),
                Arc::new(LargeBinaryArray::from_iter(bytes())),
                Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(bytes(), 4).unwrap()),
            ]);
        }
        columns
    }

    fn states(data_type: &DataType) -> Vec<States> {
        let mut states = vec![States::Count(Vec::new())];
        states.extend([false, true].map(|is_max| States::Extreme(extremes_of(data_type, is_max).unwrap())));
        match data_type {
            DataType::Float64 => states.push(States::Floats(Vec::new())),
            DataType::Decimal128(_, scale) => states.push(States::Integers(Vec::new(), *scale)),
            data_type if data_type.is_integer() => states.push(States::Integers(Vec::new(), 0)),
            _ => {}
        }
        states
    }

    #[test]
    fn groups_have_what_their_rows_have_alone() {
        // The last one has no row.
        let group = |row: u32| row * 31 % 101 % GROUPS;
        let groups: Vec<u32> = (0..ROWS).map(group).collect();
        for column in columns() {
            for (number, mut together) in states(column.data_type()).into_iter().enumerate() {
                together.grow(3);
                together.grow(usize_of_u32(GROUPS) + 1);
                let half = column.len() / 2;
                let (first, second) = (column.slice(0, half), column.slice(half, column.len() - half));
                together.add(&first, Of::Each(&groups[..half])).unwrap();
                together.add(&second, Of::Each(&groups[half..])).unwrap();
                let together = together.finish().unwrap();
                for of in 0..=GROUPS {
                    let rows: UInt32Array = (0..ROWS).filter(|row| group(*row) == of).collect();
                    let alone = &mut states(column.data_type())[number];
                    alone.grow(1);
                    alone.add(&take(&column, &rows, None).unwrap(), Of::One(0)).unwrap();
                    let (alone, at) = (alone.finish().unwrap(), usize_of_u32(of));
                    let shown = column.data_type();
                    assert_eq!(&alone, &together.slice(at, 1), "{shown}, aggregate {number}, group {of}");
                }
            }
        }
    }
}
