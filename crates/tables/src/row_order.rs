//! Whether rows come in an order: each is compared with the one before it, value by value.
//!
//! `copy` and the Parquet destinations check with it what others claim: a source of its rows, and the sorter of what it
//! made. So it compares values as the format orders them ([`Order`]), not the sorter's keys.

use std::cmp::Ordering;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Values};
use marquetry_parquet::format::{ColumnOrder, SortingColumn};
use marquetry_parquet::prune::Order;
use marquetry_parquet::schema::{PhysicalType, Schema};

/// An order of rows, and the last row that was compared.
///
/// Where the format leaves something open, −0 equals 0, NaN is greater than all numbers, and INT96 is ordered as
/// timestamps. Nulls are first or last as requested, in either direction.
#[derive(Debug)]
pub(crate) struct RowOrder {
    columns: Vec<Key>,
    has_last: bool,
}

/// A column of the order.
#[derive(Debug)]
struct Key {
    by: SortingColumn,
    leaf: usize,
    order: Order,
    /// Its value in the last row, as statistics hold values; `None` for null.
    last: Option<Vec<u8>>,
}

impl RowOrder {
    /// The order by these leaves, as far as it can be checked: up to the first leaf that is nested, or whose type has
    /// no order. With no leaves every order is right.
    ///
    /// # Errors
    ///
    /// `Misuse` for a leaf that does not exist.
    pub(crate) fn new(schema: &Schema, by: &[SortingColumn]) -> Result<RowOrder> {
        let mut columns: Vec<Key> = Vec::with_capacity(by.len());
        for by in by {
            let (leaf, leaves) = (usize_of_u32(by.column), schema.leaves());
            let Some(found) = leaves.get(leaf) else {
                return Err(Error::misuse(format!("an order by leaf {leaf} of {}", leaves.len())));
            };
            let column_order = match found.physical_type {
                PhysicalType::Int96 => ColumnOrder::Int96Timestamp,
                _ => ColumnOrder::TypeDefined,
            };
            let logical_type = schema.node_of(found).logical_type.as_ref();
            match Order::of(found.physical_type, logical_type, column_order) {
                Some(order) if found.is_flat() => columns.push(Key { by: *by, leaf, order, last: None }),
                _ => break,
            }
        }
        Ok(RowOrder { columns, has_last: false })
    }

    /// The leaves by which it is checked: the first of those requested.
    pub(crate) fn columns(&self) -> impl Iterator<Item = SortingColumn> + '_ {
        self.columns.iter().map(|key| key.by)
    }

    /// The first row of a batch, by its index, that belongs before the row that precedes it. The batch follows the one
    /// of the call before.
    ///
    /// # Errors
    ///
    /// `Misuse` for a batch of another schema.
    pub(crate) fn first_misplaced(&mut self, batch: &Batch) -> Result<Option<usize>> {
        if self.columns.is_empty() || batch.rows == 0 {
            return Ok(None);
        }
        let mut cursors = Vec::with_capacity(self.columns.len());
        for key in &self.columns {
            let column = batch.columns.get(key.leaf).filter(|column| {
                let nulls = if column.layout == Layout::Spaced { 0 } else { column.nulls };
                column.rows == batch.rows && column.values.len() + nulls >= batch.rows
            });
            let column = column.ok_or_else(|| Error::misuse("a batch of another schema"))?;
            cursors.push(Cursor { column, values: 0, now: None, before: None });
        }
        // Mostly the first column decides, and only the first row is left to be compared.
        let left = if self.rises(cursors[0].column) { 1 } else { batch.rows };
        for row in 0..left {
            let mut compared = Ordering::Equal;
            for (key, cursor) in self.columns.iter().zip(&mut cursors) {
                cursor.advance(row);
                if compared.is_eq() && (row > 0 || self.has_last) {
                    let before = if row == 0 { key.last.as_deref() } else { plain(&cursor.before) };
                    compared = key.compare(before, plain(&cursor.now));
                }
            }
            if compared.is_gt() {
                return Ok(Some(row));
            }
        }
        for (key, cursor) in self.columns.iter_mut().zip(&cursors) {
            key.last = plain(&cursor.last()).map(<[u8]>::to_vec);
        }
        self.has_last = true;
        Ok(None)
    }

    /// Whether the first column alone puts each row of a batch after the one before it: a quick look at numbers, which
    /// may miss that it does.
    fn rises(&self, column: &ColumnBatch) -> bool {
        fn in_order<T, U: PartialOrd>(
            values: &[T],
            of: impl Fn(&T) -> U,
            strictly: bool,
            down: bool,
        ) -> bool {
            let all = |is_right: fn(&U, &U) -> bool| {
                values.windows(2).all(|pair| is_right(&of(&pair[0]), &of(&pair[1])))
            };
            match (strictly, down) {
                (true, false) => all(U::lt),
                (true, true) => all(U::gt),
                (false, false) => all(U::le),
                (false, true) => all(U::ge),
            }
        }
        let Some(key) = self.columns.first().filter(|_| column.validity.is_none()) else { return false };
        let (strictly, down) = (self.columns.len() > 1, key.by.descending);
        match (&column.values, key.order) {
            (Values::Int32(all), Order::Signed32) => in_order(all, |value| *value, strictly, down),
            (Values::Int32(all), Order::Unsigned32) => {
                in_order(all, |value| value.cast_unsigned(), strictly, down)
            }
            (Values::Int64(all), Order::Signed64) => in_order(all, |value| *value, strictly, down),
            (Values::Int64(all), Order::Unsigned64) => {
                in_order(all, |value| value.cast_unsigned(), strictly, down)
            }
            (Values::Float(all), Order::Float) => in_order(all, |value| *value, strictly, down),
            (Values::Double(all), Order::Double) => in_order(all, |value| *value, strictly, down),
            _ => false,
        }
    }

    /// As [`first_misplaced`](RowOrder::first_misplaced), and the number of that row in its object.
    pub(crate) fn first_misplaced_number(&mut self, batch: &Batch) -> Result<Option<u64>> {
        Ok(self.first_misplaced(batch)?.map(|row| batch.first_row.saturating_add(u64_of(row))))
    }
}

impl Key {
    fn compare(&self, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        match (a, b) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) if self.by.nulls_first => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => self.compare(b, a).reverse(),
            (Some(a), Some(b)) if self.by.descending => compare_values(self.order, b, a),
            (Some(a), Some(b)) => compare_values(self.order, a, b),
        }
    }
}

fn compare_values(order: Order, a: &[u8], b: &[u8]) -> Ordering {
    match order.compare(digits(order, a), digits(order, b)) {
        Some(ordering) => ordering,
        None => order.is_nan(a).cmp(&order.is_nan(b)),
    }
}

/// A decimal without digits is 0.
fn digits(order: Order, value: &[u8]) -> &[u8] {
    if order == Order::Decimal && value.is_empty() { &[0] } else { value }
}

/// The value of a column in a row, and in the row before.
struct Cursor<'a> {
    column: &'a ColumnBatch,
    /// Values that belong to the rows so far.
    values: usize,
    now: Option<Plain<'a>>,
    before: Option<Plain<'a>>,
}

impl<'a> Cursor<'a> {
    /// The value of the batch's last row.
    fn last(&self) -> Option<Plain<'a>> {
        let column = self.column;
        let row = column.rows.checked_sub(1).filter(|row| !column.is_null(*row))?;
        // Of dense values the last one is that of the last row that has one.
        let at = if column.layout == Layout::Spaced { row } else { row.saturating_sub(column.nulls) };
        Some(Plain::of(&column.values, at))
    }

    fn advance(&mut self, row: usize) {
        self.before = self.now.take();
        if !self.column.is_null(row) {
            let at = if self.column.layout == Layout::Spaced { row } else { self.values };
            self.values += 1;
            self.now = Some(Plain::of(&self.column.values, at));
        }
    }
}

/// A value as statistics hold it: PLAIN, but BYTE_ARRAY without a length.
enum Plain<'a> {
    One([u8; 1]),
    Four([u8; 4]),
    Eight([u8; 8]),
    Bytes(&'a [u8]),
}

impl<'a> Plain<'a> {
    fn of(values: &'a Values, at: usize) -> Plain<'a> {
        match values {
            Values::Boolean(bits) => Plain::One([u8::from(bits.get(at))]),
            Values::Int32(values) => Plain::Four(values[at].to_le_bytes()),
            Values::Int64(values) => Plain::Eight(values[at].to_le_bytes()),
            Values::Float(values) => Plain::Four(values[at].to_le_bytes()),
            Values::Double(values) => Plain::Eight(values[at].to_le_bytes()),
            Values::ByteArray(values) => Plain::Bytes(values.get(at)),
            Values::Int96(values) | Values::FixedLenByteArray(values) => Plain::Bytes(values.get(at)),
            Values::Dictionary(indices, values) => Plain::of(values, usize_of_u32(indices[at])),
        }
    }
}

fn plain<'a>(value: &'a Option<Plain<'_>>) -> Option<&'a [u8]> {
    Some(match value.as_ref()? {
        Plain::One(bytes) => bytes,
        Plain::Four(bytes) => bytes,
        Plain::Eight(bytes) => bytes,
        Plain::Bytes(bytes) => bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_parquet::batch::FixedBytes;
    use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType};

    const UP: SortingColumn = SortingColumn { column: 0, descending: false, nulls_first: false };

    fn schema(physical: PhysicalType, logical: Option<LogicalType>) -> Schema {
        Schema::of_fields(&[FieldDef::new("a", FieldType::Leaf(physical, logical))]).unwrap()
    }

    /// A batch of values, with nulls in these rows; the values of a dense one stand close together.
    fn batch(values: Values, nulls: &[usize], layout: Layout) -> Batch {
        let rows = if layout == Layout::Spaced { values.len() } else { values.len() + nulls.len() };
        let validity = (!nulls.is_empty()).then(|| (0..rows).map(|row| !nulls.contains(&row)).collect());
        let nulls = nulls.len();
        let column =
            ColumnBatch { leaf: 0, rows, nulls, validity, values, layout, levels: None, provisional: false };
        Batch { row_group: 0, first_row: 0, rows, columns: vec![column] }
    }

    /// The first misplaced row, over batches of each size.
    fn misplaced(schema: &Schema, by: SortingColumn, batch: &Batch) -> Option<usize> {
        let in_one = RowOrder::new(schema, &[by]).unwrap().first_misplaced(batch).unwrap();
        let mut order = RowOrder::new(schema, &[by]).unwrap();
        let singly = (0..batch.rows).find(|&row| {
            let found = order.first_misplaced(&batch.slice(row..row + 1)).unwrap();
            assert!(found.is_none_or(|at| at == 0));
            found.is_some()
        });
        assert_eq!(in_one, singly);
        in_one
    }

    /// Values in order stay so, and any two of them in the other order do not.
    fn ascends(schema: &Schema, values: &Values) {
        let all = batch(values.clone(), &[], Layout::Spaced);
        assert_eq!(misplaced(schema, UP, &all), None, "{values:?}");
        let down = SortingColumn { descending: true, ..UP };
        for row in 1..all.rows {
            assert_eq!(misplaced(schema, down, &all.slice(row - 1..row + 1)), Some(1), "{values:?}, {row}");
        }
    }

    #[test]
    fn values_have_the_order_of_the_format() {
        use PhysicalType::{Boolean, ByteArray, Double, FixedLenByteArray, Float, Int32, Int64, Int96};
        let unsigned = |bit_width| Some(LogicalType::Integer { bit_width, is_signed: false });
        ascends(&schema(Boolean, None), &Values::Boolean([false, true].into_iter().collect()));
        ascends(&schema(Int32, None), &vec![i32::MIN, -1, 0, 1, i32::MAX].into());
        ascends(&schema(Int32, unsigned(32)), &vec![0, 1, i32::MAX, i32::MIN, -1].into());
        ascends(&schema(Int64, None), &vec![i64::MIN, -1, 0, 1 << 40, i64::MAX].into());
        ascends(&schema(Int64, unsigned(64)), &vec![0, 1 << 40, i64::MAX, i64::MIN, -1].into());
        let floats = [f32::NEG_INFINITY, -1.5, -1e-40, 0.0, f32::MIN_POSITIVE, f32::INFINITY, f32::NAN];
        ascends(&schema(Float, None), &Values::Float(floats.to_vec().into()));
        ascends(&schema(Double, None), &Values::Double(floats.map(f64::from).to_vec().into()));
        let fixed = |width, all: Vec<u8>| FixedBytes::new(width, all.len() / width, all.into());
        let halves = [0xfc00_u16, 0xbc00, 0, 0x3c00, 0x7c00, 0xfe00].map(u16::to_le_bytes).concat();
        ascends(
            &schema(FixedLenByteArray(2), Some(LogicalType::Float16)),
            &Values::FixedLenByteArray(fixed(2, halves)),
        );
        let texts: [&[u8]; 6] = [b"", b"\0", b"a", b"a\0", b"ab", b"\xff"];
        ascends(&schema(ByteArray, Some(LogicalType::String)), &texts.iter().collect());
        let decimal = Some(LogicalType::Decimal { precision: 6, scale: 1 });
        let numbers: [&[u8]; 5] = [&[0x80, 0], &[0xff, 0xfe], &[], &[0, 0, 7], &[1, 0]];
        ascends(&schema(ByteArray, decimal.clone()), &numbers.iter().collect());
        let numbers = [[0x80, 0], [0xff, 0xff], [0, 0], [0x7f, 1]].concat();
        ascends(&schema(FixedLenByteArray(2), decimal), &Values::FixedLenByteArray(fixed(2, numbers)));
        let times = [(5_i64, -1_i32), (-5, 0), (5, 0), (1, 256)];
        let times = times.map(|(nanos, day)| [&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat());
        ascends(&schema(Int96, None), &Values::Int96(fixed(12, times.concat())));
    }

    #[test]
    fn zeros_are_one_and_so_are_nans() {
        let all =
            batch(Values::Double(vec![0.0, -0.0, 0.0, f64::NAN, -f64::NAN].into()), &[], Layout::Spaced);
        assert_eq!(misplaced(&schema(PhysicalType::Double, None), UP, &all), None);
        let all = batch(Values::Double(vec![f64::NAN, f64::INFINITY].into()), &[], Layout::Spaced);
        assert_eq!(misplaced(&schema(PhysicalType::Double, None), UP, &all), Some(1));
    }

    #[test]
    fn nulls_are_first_or_last_in_either_direction() {
        let schema = schema(PhysicalType::Int32, None);
        let by = |descending, nulls_first| SortingColumn { column: 0, descending, nulls_first };
        for layout in [Layout::Dense, Layout::Spaced] {
            let of = |values: &[i32], nulls: &[usize]| {
                let is_value = |row: &usize| layout == Layout::Spaced || !nulls.contains(row);
                let kept: Vec<i32> = (0..values.len()).filter(is_value).map(|row| values[row]).collect();
                batch(kept.into(), nulls, layout)
            };
            let (first, last) = (of(&[9, 1, 2], &[0]), of(&[1, 2, 0], &[2]));
            assert_eq!(misplaced(&schema, by(false, true), &first), None);
            assert_eq!(misplaced(&schema, by(false, false), &first), Some(1));
            assert_eq!(misplaced(&schema, by(false, false), &last), None);
            assert_eq!(misplaced(&schema, by(false, true), &last), Some(2));
            let (first, last) = (of(&[0, 2, 1], &[0]), of(&[2, 1, 9], &[2]));
            assert_eq!(misplaced(&schema, by(true, true), &first), None);
            assert_eq!(misplaced(&schema, by(true, false), &first), Some(1));
            assert_eq!(misplaced(&schema, by(true, false), &last), None);
            assert_eq!(misplaced(&schema, by(true, true), &last), Some(2));
            assert_eq!(misplaced(&schema, by(false, false), &of(&[1, 7, 0], &[1])), Some(2));
        }
    }

    #[test]
    fn indices_stand_for_what_the_dictionary_has() {
        let entries: Values = vec![30, 10, 20].into();
        let of = |indices: Vec<u32>| {
            let values = Values::Dictionary(indices.into(), std::sync::Arc::new(entries.clone()));
            batch(values, &[], Layout::Spaced)
        };
        let schema = schema(PhysicalType::Int32, None);
        assert_eq!(misplaced(&schema, UP, &of(vec![1, 1, 2, 0])), None);
        assert_eq!(misplaced(&schema, UP, &of(vec![1, 0, 2])), Some(2));
    }

    #[test]
    fn later_columns_decide_among_equals() {
        let leaf = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None)).required();
        let schema = Schema::of_fields(&[leaf("a"), leaf("b")]).unwrap();
        let by = [SortingColumn { column: 1, ..UP }, SortingColumn { descending: true, ..UP }];
        let of = |a: Vec<i32>, b: Vec<i32>| Batch::of_values([a.into(), b.into()]).unwrap();
        let check = |batch: &Batch| RowOrder::new(&schema, &by).unwrap().first_misplaced(batch).unwrap();
        assert_eq!(check(&of(vec![9, 3, 5], vec![1, 1, 2])), None);
        assert_eq!(check(&of(vec![9, 3, 5], vec![1, 1, 1])), Some(2));
        // Also where the first column rises in each batch, and not from one to the next.
        let mut order = RowOrder::new(&schema, &by).unwrap();
        let mut next = |batch: &Batch| order.first_misplaced(batch).unwrap();
        assert_eq!(next(&of(vec![1, 5], vec![1, 2])), None);
        assert_eq!(next(&of(vec![4, 5], vec![2, 3])), None);
        assert_eq!(next(&of(vec![6, 5], vec![3, 4])), Some(0));
    }

    #[test]
    fn an_order_is_checked_up_to_what_has_none() {
        let leaf = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None));
        let fields = [
            leaf("a"),
            FieldDef::new("s", FieldType::Struct(vec![leaf("x")], None)),
            FieldDef::new(
                "i",
                FieldType::Leaf(PhysicalType::FixedLenByteArray(12), Some(LogicalType::Interval)),
            ),
        ];
        let schema = Schema::of_fields(&fields).unwrap();
        let by = |column| SortingColumn { column, ..UP };
        let checked = |all: &[u32]| {
            let all: Vec<SortingColumn> = all.iter().map(|column| by(*column)).collect();
            RowOrder::new(&schema, &all).map(|order| order.columns().map(|by| by.column).collect::<Vec<_>>())
        };
        assert_eq!(checked(&[0, 1, 2]).unwrap(), [0]);
        assert_eq!(checked(&[2, 0]).unwrap(), [0_u32; 0]);
        assert_eq!(checked(&[3]).unwrap_err().kind(), marquetry_base::ErrorKind::Misuse);
    }
}
