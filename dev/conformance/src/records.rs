//! What a file holds as records: a sum for each field of the root, that other readers' values can be brought to as well.
//!
//! Of a slot, a null is `n`, a struct `{` its fields `}`, a list `[` its elements `]`, a map `<` keys and values `>`, and a
//! leaf's value `v`, its length (`u32`, little-endian) and the bytes that [`canonical`] has. `expect_nested.py`
//! does the same with what pyarrow reads.

use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Error, Limits, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::{Array, ArrayKind, Assembler, Batch, ColumnBatch, Layout};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::record::{Program, RecordSink, Value};
use marquetry_parquet::schema::{NodeKind, Plan, Schema};

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
    let leaves = options.leaves.clone().map(Arc::from);
    let program = Program::plan(Arc::clone(&metadata.schema), leaves).at_once()?;
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

/// Reads all rows as arrays in Arrow's layout; says the same sums.
///
/// # Errors
///
/// The machine's and the assembly's.
///
/// # Panics
///
/// When batches or arrays contradict themselves.
pub fn array_sums(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    options: ReadOptions,
    manner: Manner,
) -> Result<Vec<FieldSum>> {
    let mut sums = ArraySums::new(&metadata.schema, options.leaves.clone());
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options.clone())?;
    hostile::run(&mut reader, FILE, bytes, manner, |batch| {
        check_batch(&metadata.schema, &batch);
        sums.add(&batch)
    })?;
    Ok(sums.finish())
}

/// Sums up batches as arrays in Arrow's layout.
#[derive(Debug)]
pub struct ArraySums<'a> {
    schema: &'a Schema,
    fields: Vec<(Assembler, Root)>,
}

impl<'a> ArraySums<'a> {
    /// Of no batch yet, of those leaves of a schema that are wanted, if not all.
    pub fn new(schema: &'a Arc<Schema>, mut leaves: Option<Vec<usize>>) -> ArraySums<'a> {
        if let Some(leaves) = &mut leaves {
            leaves.sort_unstable();
        }
        let leaves: Option<Arc<[usize]>> = leaves.map(Arc::from);
        let has_leaves = |node: &usize| {
            let shape = schema.shape(*node);
            let shape = leaves.as_ref().map_or(Some(shape), |leaves| shape.only(leaves));
            shape.is_some_and(|shape| shape.first_leaf().is_some())
        };
        let field = |node| {
            let assembler = Assembler::new(Arc::clone(schema), node, leaves.clone(), &Limits::DEFAULT);
            (assembler, Root::new(schema, node))
        };
        ArraySums { schema, fields: schema.children(0).filter(has_leaves).map(field).collect() }
    }

    /// Adds a batch.
    ///
    /// # Errors
    ///
    /// The assembly's.
    ///
    /// # Panics
    ///
    /// When arrays contradict themselves.
    pub fn add(&mut self, batch: &Batch) -> Result<()> {
        let column_of = |leaf| batch.columns.iter().find(|column| column.leaf == leaf);
        // In slices, or all at once.
        let units = if batch.first_row.is_multiple_of(2) { 0 } else { u64::MAX };
        for (assembler, field) in &mut self.fields {
            let array = loop {
                let mut budget = Budget::new(units);
                let array = assembler.step(batch, &column_of, &mut budget)?;
                let over = budget.spent().saturating_sub(units);
                assert!(over <= ASSEMBLY_UNITS_MAX, "a step of {over} units more than its budget");
                if let Some(array) = array {
                    break array;
                }
            };
            assert_eq!(array.length, batch.rows);
            check_array(&array);
            for row in 0..batch.rows {
                field.add(&slot(self.schema, &array, row));
            }
        }
        Ok(())
    }

    /// The sums.
    pub fn finish(self) -> Vec<FieldSum> {
        self.fields.into_iter().map(|(_, field)| field.finish()).collect()
    }
}

/// A slot's canonical bytes.
pub fn slot(schema: &Schema, array: &Array, slot: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_slot(schema, array, slot, &mut bytes);
    bytes
}

/// Units that a step of an [`Assembler`] may take beyond its budget: a slice.
const ASSEMBLY_UNITS_MAX: u64 = 20_000;

fn check_array(array: &Array) {
    match &array.validity {
        Some(validity) => {
            let nulls = (0..array.length).filter(|&slot| !validity.get(slot)).count();
            assert_eq!((validity.len(), nulls), (array.length, array.nulls));
            assert!(nulls > 0, "a validity without a null");
        }
        None => assert_eq!(array.nulls, 0),
    }
    match &array.kind {
        ArrayKind::Values(values) => assert_eq!(values.len(), array.length),
        ArrayKind::Struct(fields) => {
            for field in fields {
                assert_eq!(field.length, array.length);
                check_array(field);
            }
        }
        ArrayKind::List(offsets, element) => {
            check_offsets(array, offsets, element.length);
            check_array(element);
        }
        ArrayKind::Map(offsets, key, value) => {
            check_offsets(array, offsets, key.length);
            check_array(key);
            if let Some(value) = value {
                assert_eq!(value.length, key.length);
                check_array(value);
            }
        }
    }
}

fn check_offsets(array: &Array, offsets: &[i32], elements: usize) {
    assert_eq!(offsets.len(), array.length + 1);
    assert_eq!((offsets[0], usize::try_from(offsets[array.length]).ok()), (0, Some(elements)));
    for (slot, pair) in offsets.windows(2).enumerate() {
        assert!(pair[0] <= pair[1]);
        assert!(!is_null(array, slot) || pair[0] == pair[1], "a null with elements");
    }
}

fn is_null(array: &Array, slot: usize) -> bool {
    array.validity.as_ref().is_some_and(|validity| !validity.get(slot))
}

fn write_slot(schema: &Schema, array: &Array, slot: usize, out: &mut Vec<u8>) {
    if is_null(array, slot) {
        return out.push(b'n');
    }
    let elements = |offsets: &[i32]| {
        let index = |at: usize| usize::try_from(offsets[at]).unwrap_or(usize::MAX);
        index(slot)..index(slot + 1)
    };
    match &array.kind {
        ArrayKind::Values(values) => {
            let node = &schema.nodes()[array.node];
            let NodeKind::Leaf { leaf } = node.kind else { panic!("values of a group") };
            let form = Form::of(&schema.leaves()[leaf], node.logical_type.as_ref());
            canonical::with_bytes(values, slot, |bytes| write_value(&form.bring(bytes), out));
        }
        ArrayKind::Struct(fields) => {
            out.push(b'{');
            fields.iter().for_each(|field| write_slot(schema, field, slot, out));
            out.push(b'}');
        }
        ArrayKind::List(offsets, element) => {
            out.push(b'[');
            elements(offsets).for_each(|slot| write_slot(schema, element, slot, out));
            out.push(b']');
        }
        ArrayKind::Map(offsets, key, value) => {
            out.push(b'<');
            for slot in elements(offsets) {
                write_slot(schema, key, slot, out);
                if let Some(value) = value {
                    write_slot(schema, value, slot, out);
                }
            }
            out.push(b'>');
        }
    }
}

fn write_value(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'v');
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend(bytes);
}

/// Tells a batch's records, each step with this budget.
///
/// # Errors
///
/// The assembly's.
///
/// # Panics
///
/// When a step costs more than it may, or an error does not stay.
pub fn tell<S: RecordSink>(program: &Program, batch: &Batch, sink: &mut S, budget: u64) -> Result<()> {
    // A slice of instructions, the last of which may look at many columns.
    let units_max = budget.saturating_add(20_000);
    let mut records = program.records(batch)?;
    loop {
        let mut budget = Budget::new(budget);
        let step = records.step(sink, &mut budget);
        assert!(budget.spent() <= units_max, "a step of {} units", budget.spent());
        match step {
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
        let path = schema.path(leaf.node);
        assert_eq!(column.rows, batch.rows, "{path}");
        assert_eq!(column.levels.is_none(), leaf.is_flat(), "{path}");
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

impl Root {
    /// Of no row of a field yet.
    fn new(schema: &Schema, node: usize) -> Root {
        Root {
            name: schema.nodes()[node].name.clone(),
            has_leaves: schema.leaves_of(node).next().is_some(),
            hasher: crc32fast::Hasher::new(),
            head: Vec::new(),
        }
    }

    /// Adds a row's canonical bytes.
    fn add(&mut self, row: &[u8]) {
        self.hasher.update(row);
        if self.head.len() < HEAD_ROWS {
            let mut clear = clear(row);
            clear.truncate(HEAD_ROW_CHARACTERS_MAX);
            self.head.push(clear);
        }
    }

    fn finish(self) -> FieldSum {
        FieldSum { name: self.name, crc32: self.hasher.finalize(), head: self.head }
    }
}

impl<'a> Summing<'a> {
    /// Of no record yet.
    pub fn new(schema: &Schema, program: &'a Program) -> Summing<'a> {
        let forms = program
            .fields()
            .iter()
            .map(|field| match schema.nodes()[field.node].kind {
                NodeKind::Leaf { leaf } => {
                    Some(Form::of(&schema.leaves()[leaf], schema.nodes()[field.node].logical_type.as_ref()))
                }
                NodeKind::Group { .. } => None,
            })
            .collect();
        let fields = program.roots().map(|root| Root::new(schema, program.fields()[root].node)).collect();
        Summing { program, forms, fields, open: Vec::new(), row: Vec::new() }
    }

    /// The sums of the fields that have leaves.
    ///
    /// # Panics
    ///
    /// In the middle of a record.
    pub fn finish(self) -> Vec<FieldSum> {
        assert!(self.open.is_empty(), "an unfinished record");
        self.fields.into_iter().filter(|field| field.has_leaves).map(Root::finish).collect()
    }

    /// Checks that an event about `field` may come now.
    fn begin(&mut self, field: usize) {
        let Some((open, events)) = self.open.last_mut() else { panic!("an event outside of a record") };
        let children = |field: usize| self.program.children(field);
        let expected = match *open {
            Open::Record => self.program.roots().nth(*events),
            Open::Struct(parent) => children(parent).nth(*events),
            Open::List(parent) => {
                assert_eq!(children(parent).count(), 1);
                children(parent).next()
            }
            Open::Map(parent) => children(parent).nth(*events % children(parent).count()),
        };
        assert_eq!(expected, Some(field), "an event about another field than is due in {open:?}");
        *events += 1;
    }

    /// A slot's event is complete.
    fn end(&mut self) {
        if let [(Open::Record, events)] = self.open[..] {
            self.fields[events - 1].add(&self.row);
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
            Open::Struct(field) => assert_eq!(events, self.program.children(field).count()),
            Open::Map(field) => assert_eq!(events % self.program.children(field).count(), 0),
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
        assert_eq!(self.open.pop(), Some((Open::Record, self.program.roots().count())));
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
        write_value(&bytes, &mut self.row);
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
///
/// # Panics
///
/// As [`field_sums`].
pub fn read_all(bytes: &Bytes, options: ReadOptions, manner: Manner) -> Result<Vec<FieldSum>> {
    let metadata = canonical::metadata(bytes, manner)?;
    field_sums(bytes, &metadata, options, manner)
}
