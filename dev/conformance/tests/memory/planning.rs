//! What is made of a schema is made in steps, however wide it is: no call does more than it may, and none allocates a large piece.

use std::sync::Arc;

use marquetry_base::{Bitmap, Budget, Limits, Result};
use marquetry_parquet::batch::{Array, ArrayKind, Assembler, Batch, ColumnBatch, Layout, Values};
use marquetry_parquet::read::Conform;
use marquetry_parquet::record::{Program, RecordSink, ShredOptions, Shredder, Value};
use marquetry_parquet::schema::{
    FieldDef, FieldType, PathPart, PhysicalType, Plan, Projection, Schema, Union,
};
use marquetry_testing::memory;

/// Units that a call may charge beyond its budget: a slice.
const SLICE_UNITS_MAX: u64 = 40_000;
/// Bytes of the largest piece.
const PIECE_BYTES_MAX: usize = 1 << 20;

/// Calls `work` until it is done: with the usual budget, or with none. Each call is a small one.
fn steps<T>(what: &str, units: u64, mut work: impl FnMut(&mut Budget<'_>) -> Option<T>) -> T {
    for calls in 1.. {
        let mut budget = Budget::new(units);
        memory::largest();
        let made = work(&mut budget);
        let largest = memory::largest();
        assert!(budget.spent() <= units + SLICE_UNITS_MAX, "{what}: a call of {} units", budget.spent());
        assert!(largest < PIECE_BYTES_MAX, "{what}: a piece of {largest} bytes in call {calls}");
        if let Some(made) = made {
            return made;
        }
    }
    unreachable!("calls without an end")
}

fn plan<P: Plan>(what: &str, units: u64, begin: impl FnOnce() -> P) -> P::Made {
    memory::largest();
    let mut plan = begin();
    let largest = memory::largest();
    assert!(largest < 64 << 10, "{what}: a constructor that allocates {largest} bytes");
    steps(what, units, |budget| plan.step(budget).unwrap())
}

fn int(name: &str) -> FieldDef {
    FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None))
}

fn group(name: &str, fields: Vec<FieldDef>) -> FieldDef {
    FieldDef::new(name, FieldType::Struct(fields, None))
}

/// Names that are in no order.
fn scattered(count: usize) -> Vec<FieldDef> {
    (0..count).map(|at| int(&format!("{}", (at * 7919) % 1_000_003))).collect()
}

/// Schemas that are wide, or deep.
fn schemas(count: usize) -> Vec<(&'static str, Arc<Schema>)> {
    let long = |at: usize| format!("{at} {}", "long ".repeat(60));
    let pathed = (0..60).fold(scattered(count / 25), |fields, at| vec![group(&long(at), fields)]);
    let list = |element: FieldDef| FieldDef::new("l", FieldType::List(Box::new(element)));
    let deep = (0..30).fold(int("x"), |field, _| list(group("g", vec![field, int("y")])));
    let groups = (0..count / 2).map(|at| group(&format!("g{at}"), vec![int("a").required()])).collect();
    [
        ("columns", scattered(count)),
        ("one struct", vec![group("s", scattered(count))]),
        ("groups", groups),
        ("long paths", pathed),
        ("deep", vec![deep]),
    ]
    .map(|(name, fields)| (name, Arc::new(Schema::of_fields(&fields).unwrap())))
    .into()
}

/// Adds all columns to a projection by their names, with one call after the other.
fn project(schema: &Arc<Schema>, units: u64) -> Projection {
    let mut projection = Projection::new(Arc::clone(schema));
    for node in schema.children(0) {
        let path = [PathPart { text: schema.nodes()[node].name.clone(), is_whole: true }];
        steps("a path", units, |budget| projection.add(&path, budget).unwrap());
    }
    projection
}

#[test]
fn plans_are_made_in_small_calls() {
    for (name, schema) in schemas(100_000) {
        let again = || Arc::clone(&schema);
        let half: Arc<[usize]> = (0..schema.leaves().len()).step_by(2).collect();
        let at_once = Program::plan(again(), None).at_once().unwrap();
        for units in [0, Budget::DEFAULT_UNITS] {
            let what = |work: &str| format!("{work} of {name}");
            let program = plan(&what("a program"), units, || Program::plan(again(), None));
            assert_eq!(format!("{program:?}"), format!("{at_once:?}"), "{name}");
            let part =
                plan(&what("half a program"), units, || Program::plan(again(), Some(Arc::clone(&half))));
            assert!(part.fields().len() < program.fields().len() || half.len() == schema.leaves().len());
            let options = ShredOptions::default();
            let shredder = plan(&what("a shredder"), units, || Shredder::plan(again(), None, options));
            assert_eq!(shredder.program().fields().len(), program.fields().len());

            let mut union = Union::new();
            union.add(again());
            union.add(again());
            let unified = plan(&what("a union"), units, || union.plan());
            assert_eq!((&unified.schema, unified.differences.len()), (&schema, 0), "{name}");
            let conform =
                plan(&what("a reading"), units, || Conform::plan(again(), Arc::clone(&unified.schema), &[]));
            assert!(conform.is_identity(), "{name}");
            let projected = plan(&what("a projection"), units, || project(&schema, units).plan());
            assert_eq!(projected, *schema, "{name}");
        }
    }
}

/// What is missing from a file is found out in steps, too.
#[test]
fn a_table_of_which_a_file_lacks_nearly_everything() {
    let count = 50_000;
    let with = |first: usize| {
        let fields = (first..first + count).map(|at| int(&format!("c{at}"))).collect();
        Arc::new(Schema::of_fields(&[group("s", fields)]).unwrap())
    };
    let schemas = [with(0), with(count - 1)];
    let mut union = Union::new();
    for schema in &schemas {
        union.add(Arc::clone(schema));
    }
    let unified = plan("a union", 0, || union.plan());
    assert_eq!((unified.schema.leaves().len(), unified.differences.len()), (2 * count - 1, 2 * count - 2));
    for schema in schemas {
        let table = Arc::clone(&unified.schema);
        let conform = plan("a reading", 0, || Conform::plan(schema, table, &[]));
        assert_eq!((conform.reads().len(), conform.is_identity()), (count, false));
    }
}

/// A batch of two rows, the first of which is null wherever that is possible.
fn batch(schema: &Schema) -> Batch {
    let column = |(leaf, found): (usize, &marquetry_parquet::schema::Leaf)| {
        let nulls = usize::from(found.definition_max > 0);
        let values: Vec<i32> = (nulls..2).map(|_| 7).collect();
        let is_flat = found.is_flat();
        let levels = (!is_flat).then(|| marquetry_parquet::batch::Levels {
            definition: vec![0, u8::try_from(found.definition_max).unwrap()].into(),
            repetition: (found.repetition_max > 0).then(|| vec![0, 0].into()),
        });
        let validity = (is_flat && nulls > 0).then(|| Bitmap::new(vec![0b10].into(), 0, 2));
        let (values, layout) = (Values::Int32(values.into()), Layout::Dense);
        ColumnBatch { leaf, rows: 2, nulls, validity, values, layout, levels, provisional: false }
    };
    let columns = schema.leaves().iter().enumerate().map(column).collect();
    Batch { row_group: 0, first_row: 0, rows: 2, columns }
}

/// Counts events.
#[derive(Default)]
struct Events(usize);

impl Events {
    fn one(&mut self) -> Result<()> {
        self.0 += 1;
        Ok(())
    }
}

impl RecordSink for Events {
    fn start_record(&mut self) -> Result<()> {
        self.one()
    }
    fn end_record(&mut self) -> Result<()> {
        self.one()
    }
    fn start_struct(&mut self, _: usize) -> Result<()> {
        self.one()
    }
    fn end_struct(&mut self, _: usize) -> Result<()> {
        self.one()
    }
    fn start_list(&mut self, _: usize) -> Result<()> {
        self.one()
    }
    fn end_list(&mut self, _: usize) -> Result<()> {
        self.one()
    }
    fn start_map(&mut self, _: usize) -> Result<()> {
        self.one()
    }
    fn end_map(&mut self, _: usize) -> Result<()> {
        self.one()
    }
    fn null(&mut self, _: usize) -> Result<()> {
        self.one()
    }
    fn value(&mut self, _: usize, _: Value<'_>) -> Result<()> {
        self.one()
    }
}

#[test]
fn records_and_arrays_of_wide_batches_take_small_calls() {
    for (name, schema) in schemas(100_000) {
        let batch = batch(&schema);
        let program = Program::plan(Arc::clone(&schema), None).at_once().unwrap();
        let mut all = Events::default();
        assert!(program.records(&batch).unwrap().step(&mut all, &mut Budget::unlimited()).unwrap());
        for units in [0, Budget::DEFAULT_UNITS] {
            let mut events = Events::default();
            memory::largest();
            let mut records = program.records(&batch).unwrap();
            assert_eq!(memory::largest(), 0, "{name}: records are begun in steps");
            steps(&format!("records of {name}"), units, |budget| {
                records.step(&mut events, budget).unwrap().then_some(())
            });
            assert_eq!(events.0, all.0, "{name}");
            assert!(events.0 > schema.leaves().len(), "{name}");

            let column_of = |leaf: usize| batch.columns.get(leaf);
            for node in schema.children(0).take(2) {
                let whole = Array::assemble(schema.shape(node), 2, &column_of).unwrap();
                let mut assembler = Assembler::new(Arc::clone(&schema), node, None, &Limits::DEFAULT);
                let array = arrays(&format!("arrays of {name}"), units, &mut assembler, &batch);
                assert_eq!(array, whole, "{name}");
                assert_eq!(arrays(name, units, &mut assembler, &batch), whole, "{name}, again");
            }
        }
    }
}

/// The array of a batch, whose struct of so many fields is one piece: it is what Arrow has, too.
fn arrays(what: &str, units: u64, assembler: &mut Assembler, batch: &Batch) -> Array {
    let column_of = |leaf: usize| batch.columns.get(leaf);
    loop {
        let mut budget = Budget::new(units);
        let made = assembler.step(batch, &column_of, &mut budget).unwrap();
        assert!(budget.spent() <= units + SLICE_UNITS_MAX, "{what}: a call of {} units", budget.spent());
        if let Some(array) = made {
            if let ArrayKind::Struct(fields) = &array.kind {
                assert_eq!(fields.capacity(), fields.len());
            }
            return array;
        }
    }
}
