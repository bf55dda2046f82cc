//! Measures the conversion of a batch, in microseconds: the median of many; and what a unit that is charged for it takes, by the price that
//! most of it is charged at. The way back is measured, too.
//!
//! `cargo run --release -p marquetry-arrow --example cost [file.parquet …]`
//!
//! All batches of each file are read first, once with values and once with dictionaries kept, and then converted column
//! by column. Without files, one is created: 8,192 rows of columns of each kind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use marquetry_arrow::{FromArrow, ToArrow};
use marquetry_base::{Budget, Bytes, Limits, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::{ByteSources, drive, memory::Memory};
use marquetry_parquet::batch::{Array, Batch};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

const FILE: Object = Object(0);
const ROWS: usize = 8192;
const REPLAYS: usize = 101;

fn main() -> Result<()> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        println!("{ROWS} rows, of nullable columns one in eight is null; lists have 0 to 3 elements\n");
        return measure(made().into());
    }
    for path in files {
        println!("{path}\n");
        measure(std::fs::read(path).expect("the file can be read").into())?;
    }
    Ok(())
}

fn measure(file: Bytes) -> Result<()> {
    let sources = ByteSources::new().with(FILE, Memory::new("file", file));
    let metadata = drive(&mut FooterReader::new(FILE, Limits::DEFAULT), &sources)?.expect("a footer");
    println!(
        "| column | Arrow type | µs a batch, median | assembling offsets in the engine | price | ns a unit | µs back | ns a unit of {BACK} |"
    );
    println!("|---|---|--:|--:|---|--:|--:|--:|");
    for keep_dictionaries in [false, true] {
        // The times of a column, by its number: with values, and with dictionaries, for each batch.
        let mut times: BTreeMap<usize, Vec<[f64; 5]>> = BTreeMap::new();
        let mut types = BTreeMap::new();
        for (number, child) in metadata.schema.children(0).enumerate() {
            let leaves: Vec<usize> = metadata.schema.leaves_of(child).collect();
            if leaves.is_empty() {
                continue;
            }
            let options =
                ReadOptions { leaves: Some(leaves.clone()), keep_dictionaries, ..ReadOptions::default() };
            let codecs = Arc::new(StandardCodecs::default());
            let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, options)?;
            let mut to_arrow = ToArrow::new(&metadata.schema, Some(&leaves))?;
            let shape = metadata.schema.shape(child);
            while let Some(batch) = drive(&mut reader, &sources)? {
                if batch.rows < ROWS {
                    continue;
                }
                let converted = to_arrow.record_batch(&batch)?;
                types.insert(number, converted.schema().field(0).data_type().to_string());
                let whole = median(|| drop(to_arrow.record_batch(&batch)));
                let column =
                    |batch: &Batch, leaf: usize| batch.columns.iter().position(|column| column.leaf == leaf);
                let is_nested = batch.columns[0].levels.is_some();
                let assembled = median(|| {
                    if is_nested {
                        let found = |leaf| column(&batch, leaf).map(|at| &batch.columns[at]);
                        drop(Array::assemble(shape, batch.rows, &found));
                    }
                });
                let mut budget = Budget::unlimited();
                drop(to_arrow.step(&batch, &mut budget)?);
                let mut from_arrow = FromArrow::new(&converted.schema())?;
                let mut back = || from_arrow.part(&converted, 0, &mut Budget::unlimited());
                drop(back()?);
                let time_back = median(|| drop(back()));
                let mut budget_back = Budget::unlimited();
                drop(from_arrow.part(&converted, 0, &mut budget_back)?);
                times.entry(number).or_default().push([
                    whole,
                    if is_nested { assembled } else { 0.0 },
                    whole * 1e3 / budget.spent() as f64,
                    time_back,
                    time_back * 1e3 / budget_back.spent() as f64,
                ]);
            }
        }
        for (number, child) in metadata.schema.children(0).enumerate() {
            let (Some(times), Some(data_type)) = (times.get(&number), types.get(&number)) else { continue };
            if keep_dictionaries && !data_type.contains("Dictionary") {
                continue;
            }
            let mean = |at: usize| times.iter().map(|time| time[at]).sum::<f64>() / times.len() as f64;
            let (name, price) = (&metadata.schema.nodes()[child].name, price(data_type));
            let [whole, assembled, unit, back, unit_back] = [0, 1, 2, 3, 4].map(mean);
            println!(
                "| {name} | {data_type} | {whole:.2} | {assembled:.2} | {price} | {unit:.2} | {back:.2} | {unit_back:.2} |"
            );
        }
    }
    println!();
    Ok(())
}

/// What rows that come back are charged at.
const BACK: &str = "incoming/cost.rs ENTRY_PRICE";

/// The price that most of a column is charged at.
fn price(data_type: &str) -> &'static str {
    let prices = [
        ("Utf8View", "cost.rs TEXT_PRICE"),
        ("BinaryView", "cost.rs VIEW_PRICE"),
        ("Dictionary", "cost.rs VIEW_PRICE"),
        ("Timestamp", "cost.rs TIME_PRICE"),
        ("Utf8", "cost.rs RETYPE_PRICE"),
        ("Int8", "cost.rs VALUE_PRICE"),
        ("Decimal128", "cost.rs VALUE_PRICE"),
    ];
    prices
        .into_iter()
        .find(|(name, _)| data_type.contains(name))
        .map_or("the column alone", |(_, price)| price)
}

/// Microseconds.
fn median(mut run: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..REPLAYS)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[REPLAYS / 2]
}

/// Creates a file of one batch.
fn made() -> Vec<u8> {
    let message = "message m {
        REQUIRED INT64 int64; OPTIONAL INT64 int64_null; REQUIRED INT32 int8 (INTEGER(8,true));
        REQUIRED INT64 decimal18 (DECIMAL(18,2)); REQUIRED BYTE_ARRAY binary40; REQUIRED BYTE_ARRAY text8 (STRING);
        REQUIRED BYTE_ARRAY text40 (STRING); OPTIONAL BYTE_ARRAY text40_null (STRING);
        REQUIRED BYTE_ARRAY text40_dictionary (STRING);
        OPTIONAL GROUP list_int64 (LIST) { REPEATED GROUP list { OPTIONAL INT64 element; } }
        OPTIONAL GROUP list_text40 (LIST) { REPEATED GROUP list { OPTIONAL BYTE_ARRAY element (STRING); } }
        OPTIONAL GROUP struct { OPTIONAL INT64 a; OPTIONAL INT64 b; } }";
    let schema = Arc::new(parse_message_type(message).expect("a schema"));
    let dictionary = "text40_dictionary".into();
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_column_dictionary_enabled(dictionary, true)
        .set_write_batch_size(ROWS * 4)
        .build();
    let mut file = Vec::new();
    let mut writer = SerializedFileWriter::new(&mut file, schema, Arc::new(properties)).expect("a writer");
    let mut group = writer.next_row_group().expect("a row group");
    let mut leaf = 0;
    while let Some(mut column) = group.next_column().expect("a column") {
        let (definition, repetition) = levels(leaf);
        let present = definition.iter().max().copied().unwrap_or(0);
        let values = if definition.is_empty() {
            ROWS
        } else {
            definition.iter().filter(|level| **level == present).count()
        };
        let (definition, repetition) = (
            (!definition.is_empty()).then_some(&definition[..]),
            (!repetition.is_empty()).then_some(&repetition[..]),
        );
        let wide = |number: usize| i64::try_from(number).expect("a small number");
        let text = |number: usize| -> ByteArray {
            let text = match leaf {
                5 => format!("t{:07}", number * 7919),
                8 => format!("an entry of a dictionary, number {:08}", number % 100),
                _ => format!("text without any dictionary: {:011}", number * 7919),
            };
            text.into_bytes().into()
        };
        match column.untyped() {
            ColumnWriter::Int32ColumnWriter(column) => {
                let numbers: Vec<i32> = (0..128).cycle().take(values).collect();
                column.write_batch(&numbers, definition, repetition).expect("a column");
            }
            ColumnWriter::Int64ColumnWriter(column) => {
                let numbers: Vec<i64> = (0..values).map(|number| wide(number) * 7919).collect();
                column.write_batch(&numbers, definition, repetition).expect("a column");
            }
            ColumnWriter::ByteArrayColumnWriter(column) => {
                let texts: Vec<ByteArray> = (0..values).map(text).collect();
                column.write_batch(&texts, definition, repetition).expect("a column");
            }
            _ => unreachable!("no such column in the schema"),
        }
        column.close().expect("a column");
        leaf += 1;
    }
    group.close().expect("a row group");
    writer.close().expect("a footer");
    file
}

/// The definition and repetition levels of a leaf of the file.
fn levels(leaf: usize) -> (Vec<i16>, Vec<i16>) {
    match leaf {
        1 | 7 => ((0..ROWS).map(|row| i16::from(row % 8 != 0)).collect(), Vec::new()),
        9 | 10 => {
            let (mut definition, mut repetition) = (Vec::new(), Vec::new());
            for row in 0..ROWS {
                let elements = row % 4;
                if elements == 0 {
                    definition.push(i16::from(row % 8 == 0));
                    repetition.push(0);
                }
                for element in 0..elements {
                    definition.push(if (row + element) % 8 == 0 { 2 } else { 3 });
                    repetition.push(i16::from(element > 0));
                }
            }
            (definition, repetition)
        }
        11 | 12 => ((0..ROWS).map(|row| if row % 8 == 0 { 0 } else { 2 }).collect(), Vec::new()),
        _ => (Vec::new(), Vec::new()),
    }
}
