//! What a file holds as records: a sum for each field of the root, that other readers' values can be brought to as well.
//!
//! Of a slot, a null is `n`, a struct `{` its fields `}`, a list `[` its elements `]`, a map `<` keys and values `>`, and a
//! leaf's value `v`, its length (`u32`, little-endian) and the bytes that [`canonical`] has. `expect_nested.py`
//! does the same with what pyarrow reads.

use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Error, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{Batch, BatchReader, ColumnBatch, Layout, ReadOptions};
use marquetry_parquet::record::{Program, RecordSink, Value};
use marquetry_parquet::schema::{NodeKind, Schema};

use crate::canonical::{self, FILE, Form};
use crate::hostile::{self, Manner};

/// The sum of one field of the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSum {
    /// Its name.
    pub name: String,
    /// The CRC-32 of all rows.
    pub crc32: u32,
    /// The first rows in clear.
    pub head: Vec<String>,
}

/// Rows that a [`FieldSum`] has in clear, and how many characters of each.
const HEAD_ROWS: usize = 5;
const HEAD_ROW_CHARACTERS_MAX: usize = 400;

/// Reads all rows as records; says the sums of the root's fields that have any of the leaves read.
///
/// # Errors
///
/// The machines'.
///
/// # Panics
///
/// When batches contradict themselves, or events their order.
pub fn field_sums(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    options: ReadOptions,
    manner: Manner,
) -> Result<Vec<FieldSum>> {
    let all = || (0..metadata.schema.leaves().len()).collect();
    let leaves: Vec<usize> = options.leaves.clone().unwrap_or_else(all);
    let program = Program::new(&metadata.schema, &leaves)?;
    let mut sink = Summing::new(&metadata.schema, &program);
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options.clone())?;
    let mut next_row = 0;
    hostile::run(&mut reader, FILE, bytes, manner, |batch| {
        assert_eq!(batch.first_row, next_row, "a batch that does not follow the one before");
        assert!(batch.rows > 0 && batch.rows <= options.batch_rows);
        next_row += batch.rows as u64;
        check_batch(&metadata.schema, &batch);
        tell(&program, &batch, &mut sink, manner.budget)
    })?;
    let rows: u64 = metadata.row_groups.iter().map(|group| group.rows).sum();
    assert_eq!(next_row, rows);
    Ok(sink.finish())
}

/// Tells a batch's records, each step with this budget.
///
/// # Errors
///
/// The assembly's.
pub fn tell<S: RecordSink>(program: &Program, batch: &Batch, sink: &mut S, budget: u64) -> Result<()> {
    let mut records = program.records(batch)?;
    loop {
        match records.step(sink, &mut Budget::new(budget)) {
            Ok(true) => break,
            Ok(false) => {}
            Err(error) => {
                assert_eq!(records.step(sink, &mut Budget::unlimited()), Err(error.clone()), "it must stay");
                return Err(error);
            }
        }
    }
    assert_eq!(records.step(sink, &mut Budget::new(0)), Ok(true), "records after the last");
    Ok(())
}

/// Checks that a batch's columns are what they say.
///
/// # Panics
///
/// When they are not.
pub fn check_batch(schema: &Schema, batch: &Batch) {
    for column in &batch.columns {
        let leaf = &schema.leaves()[column.leaf];
        assert_eq!(column.rows, batch.rows, "{}", leaf.path);
        assert_eq!(column.levels.is_none(), leaf.is_flat(), "{}", leaf.path);
        if column.levels.is_some() {
            check_nested(column, leaf.definition_max, leaf.repetition_max);
        }
    }
}

fn check_nested(column: &ColumnBatch, definition_max: u16, repetition_max: u16) {
    let Some(levels) = &column.levels else { return };
    let entries = levels.definition.len();
    let there = levels.definition.iter().filter(|&&level| u16::from(level) == definition_max).count();
    assert!(levels.definition.iter().all(|&level| u16::from(level) <= definition_max));
    assert_eq!((column.values.len(), column.nulls), (there, entries - there));
    assert_eq!((column.layout, column.validity.is_none()), (Layout::Dense, true));
    match &levels.repetition {
        Some(repetition) => {
            assert_eq!(repetition.len(), entries);
            assert_eq!(repetition.first(), Some(&0));
            assert_eq!(repetition.iter().filter(|&&level| level == 0).count(), column.rows);
            assert!(repetition.iter().all(|&level| u16::from(level) <= repetition_max));
        }
        None => assert_eq!((entries, repetition_max), (column.rows, 0)),
    }
}

/// A sink that sums up, and checks the order of events.
#[derive(Debug)]
pub struct Summing<'a> {
    program: &'a Program,
    /// How each of the program's fields is brought to its normal form; `None` for groups.
    forms: Vec<Option<Form>>,
    fields: Vec<Root>,
    /// What is open, the record first, and how many events of its own each had.
    open: Vec<(Open, usize)>,
    row: Vec<u8>,
}

#[derive(Debug)]
struct Root {
    name: String,
    /// False for a field without a leaf, of which nothing can be told.
    has_leaves: bool,
    hasher: crc32fast::Hasher,
    head: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Record,
    Struct(usize),
    List(usize),
    Map(usize),
}

impl<'a> Summing<'a> {
    /// Of no record yet.
    pub fn new(schema: &Schema, program: &'a Program) -> Summing<'a> {
        let forms = program
            .fields()
            .iter()
            .map(|field| match schema.nodes()[field.node].kind {
                NodeKind::Leaf { leaf } => Some(Form::of(
                    &schema.leaves()[leaf],
                    schema.nodes()[field.node].logical_type.as_ref(),
                )),
                NodeKind::Group { .. } => None,
            })
            .collect();
        let fields = program
            .roots()
            .iter()
            .map(|&root| {
                let node = program.fields()[root].node;
                Root {
                    name: schema.nodes()[node].name.clone(),
                    has_leaves: schema.leaves_of(node).next().is_some(),
                    hasher: crc32fast::Hasher::new(),
                    head: Vec::new(),
                }
            })
            .collect();
        Summing { program, forms, fields, open: Vec::new(), row: Vec::new() }
    }

    /// The sums of the fields that have leaves.
    pub fn finish(self) -> Vec<FieldSum> {
        assert!(self.open.is_empty(), "an unfinished record");
        self.fields
            .into_iter()
            .filter(|field| field.has_leaves)
            .map(|field| FieldSum { name: field.name, crc32: field.hasher.finalize(), head: field.head })
            .collect()
    }

    /// Checks that an event about `field` may come now.
    fn begin(&mut self, field: usize) {
        let Some((open, events)) = self.open.last_mut() else { panic!("an event outside of a record") };
        let children = |field: usize| &self.program.fields()[field].children;
        let expected = match *open {
            Open::Record => self.program.roots().get(*events),
            Open::Struct(parent) => children(parent).get(*events),
            Open::List(parent) => {
                assert_eq!(children(parent).len(), 1);
                children(parent).first()
            }
            Open::Map(parent) => children(parent).get(*events % children(parent).len()),
        };
        assert_eq!(expected, Some(&field), "an event about another field than is due in {open:?}");
        *events += 1;
    }

    /// A slot's event is complete.
    fn end(&mut self) {
        if let [(Open::Record, events)] = self.open[..] {
            let field = &mut self.fields[events - 1];
            field.hasher.update(&self.row);
            if field.head.len() < HEAD_ROWS {
                let mut clear = clear(&self.row);
                clear.truncate(HEAD_ROW_CHARACTERS_MAX);
                field.head.push(clear);
            }
            self.row.clear();
        }
    }

    fn open(&mut self, open: Open, field: usize, byte: u8) -> Result<()> {
        self.begin(field);
        self.open.push((open, 0));
        self.row.push(byte);
        Ok(())
    }

    fn close(&mut self, open: Open, byte: u8) -> Result<()> {
        let (found, events) = self.open.pop().expect("an end without a start");
        assert_eq!(found, open, "the end of something else");
        match found {
            Open::Struct(field) => assert_eq!(events, self.program.fields()[field].children.len()),
            Open::Map(field) => assert_eq!(events % self.program.fields()[field].children.len(), 0),
            Open::Record | Open::List(_) => {}
        }
        self.row.push(byte);
        self.end();
        Ok(())
    }
}

impl RecordSink for Summing<'_> {
    fn start_record(&mut self) -> Result<()> {
        assert!(self.open.is_empty(), "a record in a record");
        self.open.push((Open::Record, 0));
        Ok(())
    }

    fn end_record(&mut self) -> Result<()> {
        assert_eq!(self.open.pop(), Some((Open::Record, self.program.roots().len())));
        Ok(())
    }

    fn start_struct(&mut self, field: usize) -> Result<()> {
        self.open(Open::Struct(field), field, b'{')
    }

    fn end_struct(&mut self, field: usize) -> Result<()> {
        self.close(Open::Struct(field), b'}')
    }

    fn start_list(&mut self, field: usize) -> Result<()> {
        self.open(Open::List(field), field, b'[')
    }

    fn end_list(&mut self, field: usize) -> Result<()> {
        self.close(Open::List(field), b']')
    }

    fn start_map(&mut self, field: usize) -> Result<()> {
        self.open(Open::Map(field), field, b'<')
    }

    fn end_map(&mut self, field: usize) -> Result<()> {
        self.close(Open::Map(field), b'>')
    }

    fn null(&mut self, field: usize) -> Result<()> {
        self.begin(field);
        self.row.push(b'n');
        self.end();
        Ok(())
    }

    fn value(&mut self, field: usize, value: Value<'_>) -> Result<()> {
        self.begin(field);
        let form = self.forms[field].ok_or_else(|| Error::internal("a group's value"))?;
        let bytes = match value {
            Value::Boolean(value) => vec![u8::from(value)],
            Value::Int32(value) => value.to_le_bytes().to_vec(),
            Value::Int64(value) => value.to_le_bytes().to_vec(),
            Value::Float(value) => value.to_le_bytes().to_vec(),
            Value::Double(value) => value.to_le_bytes().to_vec(),
            Value::Bytes(bytes) => form.bring(bytes),
        };
        self.row.push(b'v');
        self.row.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.row.extend(bytes);
        self.end();
        Ok(())
    }
}

/// Canonical bytes as text: values in hex.
fn clear(row: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = row;
    while let [sign, behind @ ..] = rest {
        rest = behind;
        match sign {
            b'v' => {
                let Some((length, behind)) = rest.split_first_chunk::<4>() else { break };
                let (value, behind) = behind.split_at(u32::from_le_bytes(*length) as usize);
                rest = behind;
                text.extend(value.iter().map(|byte| format!("{byte:02x}")));
                text.push(',');
            }
            b'n' => text.push_str("n,"),
            sign => text.push(char::from(*sign)),
        }
    }
    text
}

/// Reads a file's footer and all its rows as records.
///
/// # Errors
///
/// The machines'.
pub fn read_all(bytes: &Bytes, options: ReadOptions, manner: Manner) -> Result<Vec<FieldSum>> {
    let metadata = canonical::metadata(bytes, manner)?;
    field_sums(bytes, &metadata, options, manner)
}
