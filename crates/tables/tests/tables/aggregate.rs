//! Aggregates of a table: counted, added up and compared, by groups.

use std::sync::Arc;

use marquetry_base::{Detail, ErrorKind, Result};
use marquetry_parquet::batch::{Batch, FixedBytes, Values};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_tables::{Aggregates, Batches, ColumnPath, Piece, PieceOptions, Source, Table, aggregate};

/// A table of one batch.
struct One(Table, [Piece; 1], Batch);

impl Source for One {
    fn table(&self) -> &Table {
        &self.0
    }

    fn pieces(&self) -> &[Piece] {
        &self.1
    }

    fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(Rest(Some(self.2.clone()))))
    }
}

struct Rest(Option<Batch>);

impl Batches for Rest {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(self.0.take())
    }
}

/// A column: its name, its types, its values, and the rows that are null.
type Column = (&'static str, PhysicalType, Option<LogicalType>, Values, &'static [usize]);

fn table<const N: usize>(columns: [Column; N]) -> Arc<dyn Source> {
    let field = |(name, physical, logical, ..): &Column| {
        FieldDef::new(*name, FieldType::Leaf(*physical, logical.clone()))
    };
    let fields: Vec<FieldDef> = columns.iter().map(field).collect();
    let schema = Arc::new(Schema::of_fields(&fields).unwrap());
    let values: Vec<Values> = columns.iter().map(|(_, _, _, values, _)| values.clone()).collect();
    let mut batch = Batch::of_values(values).unwrap();
    for (column, (.., nulls)) in batch.columns.iter_mut().zip(&columns) {
        if !nulls.is_empty() {
            column.nulls = nulls.len();
            column.validity = Some((0..column.rows).map(|row| !nulls.contains(&row)).collect());
        }
    }
    batch.check(&schema).unwrap();
    Arc::new(One(Table::new("one", schema), [Piece::of("one")], batch))
}

fn computed(source: &Arc<dyn Source>, asked: &str, groups: &str) -> Result<Batch> {
    let groups = if groups.is_empty() { Vec::new() } else { ColumnPath::parse_list(groups)? };
    let made = aggregate(source, &Aggregates::parse(asked)?.by(groups))?;
    let mut batches = made.open(0, &PieceOptions::default())?;
    let batch = batches.next()?.unwrap();
    batch.check(&made.table().schema)?;
    assert!(batches.next()?.is_none());
    Ok(batch)
}

fn trips() -> Arc<dyn Source> {
    let decimal = Some(LogicalType::Decimal { scale: 2, precision: 7 });
    let unsigned = Some(LogicalType::Integer { bit_width: 64, is_signed: false });
    let cities: Values = ["b", "a", "b", "", "a"].into_iter().collect();
    table([
        ("city", PhysicalType::ByteArray, Some(LogicalType::String), cities, &[3]),
        ("fare", PhysicalType::Int32, decimal, vec![150, -25, 0, 7, 9].into(), &[2]),
        ("tip", PhysicalType::Double, None, vec![0.5, f64::NAN, -0.0, 2.0, 0.0].into(), &[]),
        ("most", PhysicalType::Int64, unsigned, vec![-1_i64, 1, 0, 0, 0].into(), &[1]),
        ("day", PhysicalType::Int32, Some(LogicalType::Date), vec![3, 2, 1, 9, 5].into(), &[]),
    ])
}

#[test]
fn rows_are_counted_added_and_compared_by_groups() {
    let all =
        computed(&trips(), "count(*), count(fare), sum(fare), avg(fare), min(tip), max(tip), max(day)", "")
            .unwrap();
    let values: Vec<&Values> = all.columns.iter().map(|column| &column.values).collect();
    assert_eq!(values[..2], [&vec![5_i64].into(), &vec![4_i64].into()]);
    let sum = FixedBytes::new(16, 1, 141_i128.to_be_bytes().to_vec().into());
    assert_eq!(*values[2], Values::FixedLenByteArray(sum));
    assert_eq!(*values[3], vec![0.3525].into());
    assert!(matches!(values[4], Values::Double(least) if least[0].to_bits() == (-0.0_f64).to_bits()));
    assert!(matches!(values[5], Values::Double(most) if most[0].is_nan()));
    assert_eq!(*values[6], vec![9].into());
    // In the order of the values, and null is one, which is last.
    let by_city = computed(&trips(), "max(day), sum(fare)", "city").unwrap();
    assert_eq!(by_city.columns[0].values, ["a", "b", ""].into_iter().collect());
    assert!(by_city.columns[0].is_null(2) && !by_city.columns[0].is_null(1));
    assert_eq!(by_city.columns[1].values, vec![5, 3, 9].into());
    let two = computed(&trips(), "count(*), avg(tip), min(fare)", "city, most").unwrap();
    assert_eq!(two.columns[2].values, vec![1_i64, 1, 1, 1, 1].into());
    assert_eq!((two.rows, two.columns[4].nulls), (5, 1));
}

#[test]
fn what_cannot_be_computed_is_an_error() {
    let wrong = [
        "",
        "fare",
        "sum(*)",
        "sum(fare",
        "median(fare)",
        "sum(fare) avg(fare)",
        "count(*),",
        "sum(nothing)",
    ];
    for asked in wrong.into_iter().chain(["sum(city)", "avg(day)", "min(city, fare)"]) {
        assert_eq!(computed(&trips(), asked, "").unwrap_err().kind(), ErrorKind::Misuse, "{asked}");
    }
    let nothing = computed(&trips(), "count(*)", "nothing").unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::Misuse);
    assert!(matches!(nothing.detail(), Some(Detail::Option("group_by"))), "{nothing:?}");
    assert_eq!(computed(&trips(), "sum(most)", "").unwrap_err().kind(), ErrorKind::LimitExceeded);
    assert_eq!(
        computed(&trips(), "avg(most)", "").unwrap().columns[0].values,
        vec![4_611_686_018_427_387_904.0].into()
    );
}

#[test]
fn names_are_those_that_were_asked_for() {
    let made = aggregate(&trips(), &Aggregates::parse(r#" Count( * ), sum("fare") "#).unwrap()).unwrap();
    let schema = &made.table().schema;
    let names: Vec<&str> = schema.children(0).map(|node| schema.nodes()[node].name.as_str()).collect();
    assert_eq!(names, ["Count( * )", r#"sum("fare")"#]);
}

/// Fields of a struct stay together when columns are chosen, so they would take each other's place.
#[test]
fn fields_of_structs_are_refused() {
    let double = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Double, None)).required();
    let place = FieldType::Struct(vec![double("lat"), double("lon")], None);
    let schema = Arc::new(Schema::of_fields(&[FieldDef::new("p", place), double("lon")]).unwrap());
    let batch = Batch::of_values(vec![vec![1.0].into(), vec![2.0].into(), vec![3.0].into()]).unwrap();
    let source: Arc<dyn Source> = Arc::new(One(Table::new("one", schema), [Piece::of("one")], batch));
    for (asked, groups) in [("min(p.lon), max(p.lat)", ""), ("count(p.lon)", "lon"), ("count(*)", "p.lat")] {
        let refused = computed(&source, asked, groups).unwrap_err();
        assert!(refused.kind() == ErrorKind::Misuse && refused.message().contains("nested"), "{refused}");
    }
}

/// NaN is after all numbers and equals NaN, 0 equals −0, and a decimal equals the same one of more bytes.
#[test]
fn equal_values_make_one_group() {
    let decimal = Some(LogicalType::Decimal { scale: 2, precision: 7 });
    let small = [vec![1], vec![0, 0, 1], vec![0xff], vec![0xff, 0xff], vec![0, 0xff], vec![0, 1]];
    let small: Values = small.iter().map(Vec::as_slice).collect();
    let half = [0x7e00_u16, 0xfe01, 0x8000, 0, 0x7c00, 0xfc00].map(u16::to_le_bytes).concat();
    let half = Values::FixedLenByteArray(FixedBytes::new(2, 6, half.into()));
    let (negative, other) = (-f64::NAN, f64::from_bits(f64::NAN.to_bits() + 1));
    let double: Values = vec![negative, other, -0.0, 0.0, -1.0, f64::NAN].into();
    let single: Values = vec![-f32::NAN, f32::NAN, 0.0, -0.0, 1.0, f32::NEG_INFINITY].into();
    let source = table([
        ("decimal", PhysicalType::ByteArray, decimal, small, &[]),
        ("half", PhysicalType::FixedLenByteArray(2), Some(LogicalType::Float16), half, &[]),
        ("double", PhysicalType::Double, None, double, &[]),
        ("single", PhysicalType::Float, None, single, &[]),
    ]);
    let counted = |by: &str| computed(&source, "count(*)", by).unwrap();
    let by_decimal = counted("decimal");
    let values: [&[u8]; 3] = [&[0xff], &[1], &[0, 0xff]];
    assert_eq!(by_decimal.columns[0].values, values.into_iter().collect());
    assert_eq!(by_decimal.columns[1].values, vec![2_i64, 3, 1].into());
    let by_double = counted("double");
    assert!(matches!(&by_double.columns[0].values, Values::Double(values)
        if values[..2] == [-1.0, 0.0] && values[1].is_sign_positive() && values[2].is_nan()));
    assert_eq!(by_double.columns[1].values, vec![1_i64, 2, 3].into());
    assert_eq!(counted("single").columns[1].values, vec![1_i64, 2, 1, 2].into());
    assert_eq!(counted("half").columns[1].values, vec![1_i64, 2, 1, 2].into());
    let ends =
        computed(&source, "min(double), max(double), min(single), max(single), min(half), max(half)", "");
    let ends = ends.unwrap();
    let doubles = |at: usize| matches!(&ends.columns[at].values, Values::Double(end) if end[0].is_nan());
    let singles = |at: usize| matches!(&ends.columns[at].values, Values::Float(end) if end[0].is_nan());
    assert_eq!([doubles(0), doubles(1), singles(2), singles(3)], [false, true, false, true]);
    let half = |bits: u16| FixedBytes::new(2, 1, bits.to_le_bytes().to_vec().into());
    assert_eq!(ends.columns[4].values, Values::FixedLenByteArray(half(0xfc00)));
    assert_eq!(ends.columns[5].values, Values::FixedLenByteArray(half(0x7e01)));
}

#[test]
fn a_sum_of_too_many_digits_is_an_error() {
    let decimal = Some(LogicalType::Decimal { scale: 0, precision: 38 });
    let of = |values: [i128; 2]| {
        let bytes = values.map(i128::to_be_bytes).concat();
        let values = Values::FixedLenByteArray(FixedBytes::new(16, 2, bytes.into()));
        let column = ("x", PhysicalType::FixedLenByteArray(16), decimal.clone(), values, &[][..]);
        computed(&table([column]), "sum(x)", "")
    };
    let most = 10_i128.pow(38) - 1;
    assert!(of([most, 0]).is_ok() && of([-most, 0]).is_ok());
    assert_eq!(of([most, 1]).unwrap_err().kind(), ErrorKind::LimitExceeded);
    assert_eq!(of([-most, -1]).unwrap_err().kind(), ErrorKind::LimitExceeded);
}
