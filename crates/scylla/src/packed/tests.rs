//! Records there and back, the example of the document, and damage.

use alloc::boxed::Box;
use alloc::string::ToString;
use alloc::vec;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, ErrorKind};
use marquetry_parquet::batch::{Batch, ByteArrays, Layout, Value};
use marquetry_parquet::record::{Field, RecordSink, ShredOptions, Shredder};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, Plan as _, Schema};

use super::*;

fn leaf(name: &str, physical: PhysicalType) -> FieldDef {
    FieldDef::new(name, FieldType::Leaf(physical, None))
}

fn list(name: &str, element: FieldDef) -> FieldDef {
    FieldDef::new(name, FieldType::List(Box::new(element)))
}

/// A field of each kind, null or not, in each other.
fn schema() -> Arc<Schema> {
    let key = leaf("key", PhysicalType::ByteArray).required();
    let pairs = FieldType::Map(Box::new(key.clone()), Some(Box::new(leaf("value", PhysicalType::Int32))));
    let place = vec![
        leaf("lat", PhysicalType::Double).required(),
        leaf("name", PhysicalType::ByteArray),
        list("tags", leaf("element", PhysicalType::Boolean)),
    ];
    let place = FieldDef::new("element", FieldType::Struct(place, None));
    let fields = [
        leaf("a", PhysicalType::Int32),
        leaf("b", PhysicalType::Int64).required(),
        leaf("c", PhysicalType::Boolean),
        leaf("d", PhysicalType::Float),
        FieldDef::new("e", FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String))),
        leaf("f", PhysicalType::FixedLenByteArray(3)),
        leaf("g", PhysicalType::Int96),
        list("h", leaf("element", PhysicalType::Int64).required()).required(),
        FieldDef::new("i", pairs),
        list("j", place),
        FieldDef::new("k", FieldType::Map(Box::new(key), None)),
    ];
    Arc::new(Schema::of_fields(&fields).unwrap())
}

fn packing(schema: &Arc<Schema>) -> Arc<Packing> {
    let program = Program::plan(Arc::clone(schema), None).at_once().unwrap();
    Arc::new(Packing::new(Arc::new(program)).unwrap())
}

fn shredder(schema: &Arc<Schema>, leaves: Option<Arc<[usize]>>) -> Shredder {
    let options = ShredOptions { layout: Layout::Spaced, ..ShredOptions::default() };
    Shredder::plan(Arc::clone(schema), leaves, options).at_once().unwrap()
}

fn taken(shredder: &mut Shredder) -> Batch {
    shredder.take(&mut Budget::unlimited()).unwrap().unwrap()
}

fn cells(packing: &Arc<Packing>, batch: &Batch) -> ByteArrays {
    let mut writer = CellWriter::new(Arc::clone(packing));
    assert!(packing.program().records(batch).unwrap().step(&mut writer, &mut Budget::unlimited()).unwrap());
    writer.take().unwrap()
}

/// What has not ended is no cell, and leaves nothing behind.
#[test]
fn a_record_that_has_not_ended_is_dropped() {
    let schema = Arc::new(Schema::of_fields(&[leaf("a", PhysicalType::ByteArray)]).unwrap());
    let mut writer = CellWriter::new(packing(&schema));
    let record = |writer: &mut CellWriter, text: &[u8]| {
        writer.start_record().unwrap();
        writer.value(0, Value::Bytes(text)).unwrap();
    };
    record(&mut writer, b"one");
    writer.end_record().unwrap();
    record(&mut writer, b"two");
    assert_eq!((writer.are_null(), writer.bytes()), (&[false][..], 12));
    assert_eq!(writer.take().unwrap().iter().collect::<Vec<_>>(), [b"\x01\x01\x03one"]);
    record(&mut writer, b"three");
    writer.end_record().unwrap();
    assert_eq!(writer.take().unwrap().iter().collect::<Vec<_>>(), [b"\x01\x01\x05three"]);
    assert_eq!(writer.take().unwrap().len(), 0);
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// A value of a field, or a null.
    fn field(&mut self, shredder: &mut Shredder, field: usize) {
        let program = Arc::clone(shredder.program());
        let (form, is_nullable) = program.form(field).unwrap();
        if is_nullable && self.below(4) == 0 {
            return shredder.null(field).unwrap();
        }
        let children: Vec<usize> = program.children(field).collect();
        match form {
            FieldForm::Leaf(leaf) => {
                let bytes = (0..self.below(20)).map(|byte| (byte * 7).to_le_bytes()[0]).collect::<Vec<u8>>();
                let number = (self.0 >> self.below(64)).cast_signed();
                let value = match leaf {
                    PhysicalType::Boolean => Value::Boolean(number % 2 == 0),
                    PhysicalType::Int32 => {
                        Value::Int32([i32::MIN, -1, 0, 64, i32::MAX][usize_of(self.below(5)).unwrap()])
                    }
                    PhysicalType::Int64 => Value::Int64(if self.below(9) == 0 { i64::MIN } else { number }),
                    PhysicalType::Float => Value::Float(-0.5),
                    PhysicalType::Double => Value::Double(1e300),
                    PhysicalType::ByteArray => Value::Bytes(&bytes),
                    PhysicalType::Int96 => Value::Bytes(&[7; 12]),
                    PhysicalType::FixedLenByteArray(_) => Value::Bytes(b"abc"),
                };
                shredder.value(field, value).unwrap();
            }
            FieldForm::Struct => {
                shredder.start_struct(field).unwrap();
                children.iter().for_each(|child| self.field(shredder, *child));
                shredder.end_struct(field).unwrap();
            }
            FieldForm::List | FieldForm::Map => {
                let is_map = form == FieldForm::Map;
                if is_map {
                    shredder.start_map(field).unwrap()
                } else {
                    shredder.start_list(field).unwrap()
                }
                for _ in 0..self.below(12) {
                    children.iter().for_each(|child| self.field(shredder, *child));
                }
                if is_map { shredder.end_map(field).unwrap() } else { shredder.end_list(field).unwrap() }
            }
        }
    }
}

fn rows(schema: &Arc<Schema>, count: usize) -> Batch {
    let (mut shredder, mut random) = (shredder(schema, None), Random(1));
    let roots: Vec<usize> = shredder.program().roots().collect();
    for _ in 0..count {
        shredder.start_record().unwrap();
        roots.iter().for_each(|root| random.field(&mut shredder, *root));
        shredder.end_record().unwrap();
    }
    taken(&mut shredder)
}

#[test]
fn records_are_the_same_there_and_back() {
    let schema = schema();
    let (packing, batch) = (packing(&schema), rows(&schema, 500));
    let cells = cells(&packing, &batch);
    assert_eq!(cells.len(), 500);
    let (mut back, all) = (shredder(&schema, None), Sinks::of(&packing, |_| true));
    cells.iter().for_each(|cell| packing.read(cell, &all, &mut back).unwrap());
    assert_eq!(taken(&mut back), batch);
    // Some columns of them.
    let wanted: Vec<usize> = ["b", "e", "j"].iter().map(|name| schema.child_of_root(name).unwrap()).collect();
    let leaves: Vec<usize> = wanted.iter().flat_map(|node| schema.leaves_of(*node)).collect();
    let mut some = shredder(&schema, Some(leaves.clone().into()));
    let sinks = Sinks::of(&packing, |node| wanted.contains(&node));
    cells.iter().for_each(|cell| packing.read(cell, &sinks, &mut some).unwrap());
    let of_all: Vec<_> = leaves.iter().map(|leaf| batch.columns[*leaf].clone()).collect();
    assert_eq!(taken(&mut some).columns, of_all);
}

/// Whatever is wrong with a cell, it is an error with its place, or another record; and never a panic.
#[test]
fn damage_is_an_error_with_its_place() {
    let schema = schema();
    let (packing, batch) = (packing(&schema), rows(&schema, 40));
    let all = Sinks::of(&packing, |_| true);
    let (mut refused, mut read) = (0, 0);
    for cell in cells(&packing, &batch).iter() {
        for end in 0..cell.len() {
            let error = packing.read(&cell[..end], &all, &mut shredder(&schema, None)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(error.place().offset.is_some_and(|at| at <= u64_of(end)), "{error}");
        }
        let longer = [cell, &[0]].concat();
        let error = packing.read(&longer, &all, &mut shredder(&schema, None)).unwrap_err();
        assert_eq!(
            (error.place().offset, error.message()),
            (Some(u64_of(cell.len())), "a record is damaged: bytes after the record")
        );
        for at in 0..cell.len() {
            for bit in [0, 3, 7] {
                let mut other = cell.to_vec();
                other[at] ^= 1 << bit;
                let mut shredder = shredder(&schema, None);
                match packing.read(&other, &all, &mut shredder) {
                    // One way to write a record: what is read is written as it was.
                    Ok(()) => {
                        assert_eq!(cells(&packing, &taken(&mut shredder)).get(0), other);
                        read += 1;
                    }
                    Err(error) => {
                        assert!(
                            matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
                            "{error}"
                        );
                        assert!(error.place().offset.is_some(), "{error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 1000 && read > 100, "{refused} refused, {read} read");
}

#[test]
fn what_is_claimed_is_never_allocated() {
    let element = leaf("element", PhysicalType::Int32);
    let schema = Arc::new(Schema::of_fields(&[list("a", element).required()]).unwrap());
    let packing = packing(&schema);
    let all = Sinks::of(&packing, |_| true);
    let said = |cell: &[u8]| packing.read(cell, &all, &mut shredder(&schema, None)).unwrap_err().to_string();
    let more = "a record is damaged: more elements than the cell has bytes for (column a, byte 1)";
    assert_eq!(said(&[1, 0xff, 0xff, 0xff, 0xff, 0x0f]), more);
    assert_eq!(
        said(&[&[1][..], &[0xff; 10]].concat()),
        "a record is damaged: a number that is not written as numbers are (column a, byte 1)"
    );
    assert_eq!(
        said(&[1, 0x81, 0]),
        "a record is damaged: a number that is not written as numbers are (column a, byte 1)"
    );
    assert_eq!(
        said(&[1, 1, 3, 2]),
        "a record is damaged: bits of more values than there are (column a, byte 2)"
    );
    assert_eq!(said(&[]), "a record of no bytes (byte 0)");
    assert!(said(&[2, 0]).starts_with("a record of version 2"));
    let nothing = leaf("element", PhysicalType::FixedLenByteArray(0)).required();
    let schema = Arc::new(Schema::of_fields(&[list("a", nothing)]).unwrap());
    let program = Program::plan(schema, None).at_once().unwrap();
    let error = Packing::new(Arc::new(program)).map(drop).unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Unsupported, "a list of values without bytes (column a)".to_string())
    );
}

#[test]
fn fields_are_known_by_their_nodes() {
    let packing = packing(&schema());
    let field: Option<&Field> = packing.program().fields().get(packing.roots[3]);
    assert_eq!(field.map(|field| field.node), schema().child_of_root("d"));
    assert!(!packing.is_one_nullable());
}
