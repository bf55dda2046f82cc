//! Records that are told and shredded again are the columns that they were; and columns that were shredded tell the same records.

use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Result};
use marquetry_conformance::files;
use marquetry_conformance::hostile::Random;
use marquetry_conformance::leaves::LeafSum;
use marquetry_conformance::records::{check_batch, tell};
use marquetry_parquet::batch::{Batch, Layout};
use marquetry_parquet::read::ReadOptions;
use marquetry_parquet::record::{Program, RecordSink, ShredOptions, Shredder, Value};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Plan, Schema};

use crate::given::{self, Flavour, SHAPES, TYPES};
use crate::rewritten::batches;

/// The batch of a shredder, taken in the smallest of steps.
fn take(shredder: &mut Shredder) -> Result<Batch> {
    loop {
        if let Some(batch) = shredder.take(&mut Budget::new(0))? {
            return Ok(batch);
        }
    }
}

fn sums(batch: &Batch) -> Vec<LeafSum> {
    let sum = |column| {
        let mut sum = LeafSum::default();
        sum.add(column);
        sum
    };
    batch.columns.iter().map(sum).collect()
}

/// Tells the records of batches to a shredder, and compares what it makes of them.
fn check(schema: &Arc<Schema>, batches: &[Batch]) -> Result<()> {
    let program = Program::plan(Arc::clone(schema), None).at_once()?;
    for layout in [Layout::Dense, Layout::Spaced] {
        let options = ShredOptions { batch_rows: usize::MAX, batch_bytes: usize::MAX, layout };
        let mut shredder = Shredder::plan(Arc::clone(schema), None, options).at_once()?;
        for batch in batches {
            tell(&program, batch, &mut shredder, 10_000)?;
            let again = take(&mut shredder)?;
            if again.rows > 0 {
                check_batch(schema, &again);
            }
            assert_eq!((again.rows, again.first_row), (batch.rows, batch.first_row));
            for (one, other) in batch.columns.iter().zip(&again.columns) {
                let path = schema.leaf_path(one.leaf);
                assert_eq!((one.leaf, one.rows, one.nulls), (other.leaf, other.rows, other.nulls), "{path}");
                assert_eq!(one.levels, other.levels, "{path}");
                assert_eq!(one.validity, other.validity, "{path}");
                assert!(other.levels.is_some() || other.layout == layout);
            }
            assert_eq!(sums(batch), sums(&again));
        }
    }
    Ok(())
}

#[test]
fn every_type_in_every_shape() {
    let schema = given::schema(&TYPES, &SHAPES);
    for (seed, flavour) in [(1, Flavour::Few), (2, Flavour::Random)] {
        let mut first_row = 0;
        let rows = [1, 700, 0, 33];
        let given = rows.map(|rows| {
            let layout = if rows % 2 == 0 { Layout::Spaced } else { Layout::Dense };
            let batch = Batch { first_row, ..given::batch(&schema, rows, flavour, layout, seed) };
            first_row += u64::try_from(rows).unwrap();
            batch
        });
        check(&schema, &given).unwrap();
    }
}

#[test]
fn files_of_the_corpus() {
    let Some(corpus) = files::corpus() else { return };
    let folders = ["parquet-testing/data", "parquet-testing/shredded_variant", "real"];
    let mut count = 0;
    for path in folders.iter().flat_map(|folder| files::parquet_files(&corpus.join(folder))) {
        if std::fs::metadata(&path).unwrap().len() > 4 << 20 {
            continue;
        }
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        // What cannot be read is another test's matter; so are lists that hold nothing.
        let Ok((schema, read)) = batches(&bytes, ReadOptions::default()) else { continue };
        match check(&schema, &read) {
            Ok(()) => count += 1,
            Err(error) => println!("{}: {error}", path.display()),
        }
    }
    println!("{count} files");
    assert!(count > 80, "{count} files");
}

/// An event, with its value.
#[derive(Debug, Clone, PartialEq)]
enum Event {
    Record(bool),
    Struct(usize, bool),
    List(usize, bool),
    Map(usize, bool),
    Null(usize),
    Value(usize, Vec<u8>),
}

/// A sink that keeps events.
#[derive(Default)]
struct Kept(Vec<Event>);

impl RecordSink for Kept {
    fn start_record(&mut self) -> Result<()> {
        self.0.push(Event::Record(true));
        Ok(())
    }

    fn end_record(&mut self) -> Result<()> {
        self.0.push(Event::Record(false));
        Ok(())
    }

    fn start_struct(&mut self, field: usize) -> Result<()> {
        self.0.push(Event::Struct(field, true));
        Ok(())
    }

    fn end_struct(&mut self, field: usize) -> Result<()> {
        self.0.push(Event::Struct(field, false));
        Ok(())
    }

    fn start_list(&mut self, field: usize) -> Result<()> {
        self.0.push(Event::List(field, true));
        Ok(())
    }

    fn end_list(&mut self, field: usize) -> Result<()> {
        self.0.push(Event::List(field, false));
        Ok(())
    }

    fn start_map(&mut self, field: usize) -> Result<()> {
        self.0.push(Event::Map(field, true));
        Ok(())
    }

    fn end_map(&mut self, field: usize) -> Result<()> {
        self.0.push(Event::Map(field, false));
        Ok(())
    }

    fn null(&mut self, field: usize) -> Result<()> {
        self.0.push(Event::Null(field));
        Ok(())
    }

    fn value(&mut self, field: usize, value: Value<'_>) -> Result<()> {
        let bytes = match value {
            Value::Boolean(value) => vec![u8::from(value)],
            Value::Int32(value) => value.to_le_bytes().to_vec(),
            Value::Int64(value) => value.to_le_bytes().to_vec(),
            Value::Float(value) => value.to_le_bytes().to_vec(),
            Value::Double(value) => value.to_le_bytes().to_vec(),
            Value::Bytes(bytes) => bytes.to_vec(),
        };
        self.0.push(Event::Value(field, bytes));
        Ok(())
    }
}

const LEAVES: [PhysicalType; 6] = [
    PhysicalType::Boolean,
    PhysicalType::Int32,
    PhysicalType::Int64,
    PhysicalType::Double,
    PhysicalType::ByteArray,
    PhysicalType::FixedLenByteArray(3),
];

/// Any field.
fn any_field(random: &mut Random, depth: usize) -> FieldDef {
    let field_type = match random.below(if depth < 4 { 6 } else { 2 }) {
        0 | 1 => FieldType::Leaf(LEAVES[random.index(LEAVES.len())], None),
        2 | 3 => {
            let fields = (0..1 + random.index(3))
                .map(|at| FieldDef { name: format!("f{at}"), ..any_field(random, depth + 1) });
            FieldType::Struct(fields.collect(), None)
        }
        4 => FieldType::List(Box::new(any_field(random, depth + 1))),
        _ => {
            let key =
                FieldDef::new("key", FieldType::Leaf(LEAVES[random.index(LEAVES.len())], None)).required();
            let value = (random.below(3) > 0).then(|| Box::new(any_field(random, depth + 1)));
            FieldType::Map(Box::new(key), value)
        }
    };
    FieldDef { is_nullable: random.below(3) > 0, ..FieldDef::new("x", field_type) }
}

/// Tells any value of a field, as an event to `sink`. Fields are numbered depth-first.
fn any_value(
    field: &FieldDef,
    number: &mut usize,
    random: &mut Random,
    sink: &mut dyn RecordSink,
) -> Result<()> {
    let at = *number;
    *number += 1;
    if field.is_nullable && random.below(4) == 0 {
        skip(&field.field_type, number);
        return sink.null(at);
    }
    match &field.field_type {
        FieldType::Leaf(physical_type, _) => {
            let value = random.number();
            let text = "text of some length".repeat(random.index(3));
            sink.value(
                at,
                match physical_type {
                    PhysicalType::Boolean => Value::Boolean(value.is_multiple_of(2)),
                    PhysicalType::Int32 => Value::Int32(i32::try_from(value % 1000).unwrap()),
                    PhysicalType::Int64 => Value::Int64(value.cast_signed()),
                    PhysicalType::Double => Value::Double(i32::try_from(value % 1000).unwrap().into()),
                    PhysicalType::FixedLenByteArray(_) => Value::Bytes(b"abc"),
                    _ => Value::Bytes(text.as_bytes()),
                },
            )
        }
        FieldType::Struct(fields, _) => {
            sink.start_struct(at)?;
            fields.iter().try_for_each(|field| any_value(field, number, random, sink))?;
            sink.end_struct(at)
        }
        FieldType::List(element) => {
            sink.start_list(at)?;
            let first = *number;
            for _ in 0..random.index(4) {
                *number = first;
                any_value(element, number, random, sink)?;
            }
            *number = first + 1;
            skip(&element.field_type, number);
            sink.end_list(at)
        }
        FieldType::Map(key, value) => {
            sink.start_map(at)?;
            let first = *number;
            for _ in 0..random.index(4) {
                *number = first;
                any_value(key, number, random, sink)?;
                if let Some(value) = value {
                    any_value(value, number, random, sink)?;
                }
            }
            *number = first;
            for field in [Some(key), value.as_ref()].into_iter().flatten() {
                *number += 1;
                skip(&field.field_type, number);
            }
            sink.end_map(at)
        }
    }
}

/// Passes over the numbers of what is below a field.
fn skip(field_type: &FieldType, number: &mut usize) {
    let below: Vec<&FieldDef> = match field_type {
        FieldType::Leaf(..) => Vec::new(),
        FieldType::Struct(fields, _) => fields.iter().collect(),
        FieldType::List(element) => vec![element],
        FieldType::Map(key, value) => {
            [Some(key), value.as_ref()].into_iter().flatten().map(|it| &**it).collect()
        }
    };
    for field in below {
        *number += 1;
        skip(&field.field_type, number);
    }
}

#[test]
fn any_records_of_any_schema() {
    for seed in 0..300 {
        let mut random = Random(seed * 2 + 1);
        let fields: Vec<FieldDef> = (0..1 + random.index(4))
            .map(|at| FieldDef { name: format!("c{at}"), ..any_field(&mut random, 0) })
            .collect();
        let schema = Arc::new(Schema::of_fields(&fields).unwrap());
        let plan = Shredder::plan(Arc::clone(&schema), None, ShredOptions::default());
        let mut shredder = plan.at_once().unwrap();
        let program = Arc::clone(shredder.program());
        let (mut told, mut again) = (Kept::default(), Kept::default());
        for _ in 0..3 {
            for _ in 0..random.index(40) {
                let row_seed = random.number() | 1;
                let row = |sink: &mut dyn RecordSink| -> Result<()> {
                    let (mut random, mut number) = (Random(row_seed), 0);
                    sink.start_record()?;
                    fields.iter().try_for_each(|field| any_value(field, &mut number, &mut random, sink))?;
                    sink.end_record()
                };
                row(&mut told).unwrap();
                row(&mut shredder).unwrap();
            }
            let batch = take(&mut shredder).unwrap();
            if batch.rows > 0 {
                check_batch(&schema, &batch);
            }
            tell(&program, &batch, &mut again, u64::MAX).unwrap();
        }
        assert_eq!(told.0, again.0, "seed {seed}");
    }
}
