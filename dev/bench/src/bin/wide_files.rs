//! The files of the wide benchmark: `bench-wide-files FILE COLUMNS STATISTICS KIND WRITER` writes one, by Marquetry (`ours`, `ours-locator`) or
//! by parquet-rs. Those of pyarrow are made by `peers_wide.py`.
#![forbid(unsafe_code)]

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::{Error, Limits, Object, Result};
use marquetry_bench::wide::{GROUP_ROWS, GROUPS, Table, name, number, text};
use marquetry_codecs::StandardCodecs;
use marquetry_io::{ByteSink, ByteSinks, drive_into};
use marquetry_parquet::batch::{ColumnBatch, Layout, Levels, Values};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_parquet::write::{ColumnOptions, FileWriter, WriteOptions};
use parquet::basic::{Compression, LogicalType as TheirLogicalType, Repetition, Type as TheirType};
use parquet::data_type::{ByteArrayType, DoubleType};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

const FILE: Object = Object(0);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [path, columns, statistics, kind, writer] = arguments[..] else {
        eprintln!(
            "usage: bench-wide-files FILE COLUMNS none|chunk|page float64|string|binary ours|ours-locator|parquet-rs"
        );
        return ExitCode::FAILURE;
    };
    match Table::parse(columns, statistics, kind, writer).and_then(|table| write(&table, Path::new(path))) {
        Ok(()) => {
            println!("{{}}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("bench-wide-files: {path}: {message}");
            ExitCode::FAILURE
        }
    }
}

fn write(table: &Table<'_>, path: &Path) -> std::result::Result<(), String> {
    // What has its name is whole.
    let unfinished = path.with_extension("unfinished");
    let file = std::fs::File::create(&unfinished).map_err(|error| error.to_string())?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    if table.writer == "parquet-rs" {
        by_parquet_rs(table, &mut file).map_err(|error| error.to_string())?;
    } else {
        by_ours(table, &mut file).map_err(|error| error.to_string())?;
    }
    file.flush().and_then(|()| std::fs::rename(&unfinished, path)).map_err(|error| error.to_string())
}

fn by_ours(table: &Table<'_>, file: &mut BufWriter<std::fs::File>) -> Result<()> {
    let field_type = match table.kind {
        "float64" => FieldType::Leaf(PhysicalType::Double, None),
        "string" => FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String)),
        _ => FieldType::Leaf(PhysicalType::ByteArray, None),
    };
    let fields: Vec<FieldDef> =
        (0..table.columns).map(|column| FieldDef::new(name(column), field_type.clone())).collect();
    let options = WriteOptions {
        column: ColumnOptions { bounds: table.statistics != "none", ..ColumnOptions::default() },
        page_index: table.statistics == "page",
        locator: table.writer == "ours-locator",
        limits: Limits::TRUSTED,
        ..WriteOptions::default()
    };
    let schema = Arc::new(Schema::of_fields(&fields)?);
    let mut writer = FileWriter::new(FILE, schema, Arc::new(StandardCodecs::default()), options)?;
    let mut sinks = ByteSinks::new().with(FILE, ToFile(file));
    for group in 0..GROUPS {
        for column in 0..table.columns {
            drive_into(&mut writer, &mut sinks)?;
            writer.feed_column(chunk(table, group, column))?;
        }
    }
    drive_into(&mut writer, &mut sinks)?;
    writer.finish();
    while drive_into(&mut writer, &mut sinks)?.is_some() {}
    Ok(())
}

fn rows(group: u64) -> std::ops::Range<u64> {
    group * GROUP_ROWS..(group + 1) * GROUP_ROWS
}

#[allow(clippy::cast_precision_loss, reason = "whole numbers below a thousand")]
fn chunk(table: &Table<'_>, group: u64, column: usize) -> ColumnBatch {
    let numbers: Vec<Option<u64>> = rows(group).map(|row| number(column, row)).collect();
    let there = numbers.iter().flatten();
    let values = if table.is_text() {
        let texts: Vec<String> = there.map(|number| text(*number)).collect();
        texts.iter().map(String::as_str).collect()
    } else {
        Values::from(there.map(|number| *number as f64).collect::<Vec<_>>())
    };
    let definition: Vec<u8> = numbers.iter().map(|number| u8::from(number.is_some())).collect();
    ColumnBatch {
        leaf: column,
        rows: numbers.len(),
        nulls: numbers.iter().filter(|number| number.is_none()).count(),
        validity: None,
        values,
        layout: Layout::Dense,
        levels: Some(Levels { definition: definition.into(), repetition: None }),
        provisional: false,
    }
}

#[allow(clippy::cast_precision_loss, reason = "whole numbers below a thousand")]
fn by_parquet_rs(
    table: &Table<'_>,
    file: &mut BufWriter<std::fs::File>,
) -> std::result::Result<(), ParquetError> {
    let statistics = match table.statistics {
        "none" => EnabledStatistics::None,
        "chunk" => EnabledStatistics::Chunk,
        _ => EnabledStatistics::Page,
    };
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(statistics)
        .set_offset_index_disabled(table.statistics != "page")
        .build();
    let of_type = if table.is_text() { TheirType::BYTE_ARRAY } else { TheirType::DOUBLE };
    let mut fields = Vec::new();
    for column in 0..table.columns {
        let field = Type::primitive_type_builder(&name(column), of_type)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type((table.kind == "string").then_some(TheirLogicalType::String))
            .build()?;
        fields.push(Arc::new(field));
    }
    let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    for group in 0..GROUPS {
        let mut to_group = writer.next_row_group()?;
        for column in 0..table.columns {
            let numbers: Vec<Option<u64>> = rows(group).map(|row| number(column, row)).collect();
            let levels: Vec<i16> = numbers.iter().map(|number| i16::from(number.is_some())).collect();
            let there = numbers.iter().flatten();
            let Some(mut to_column) = to_group.next_column()? else { break };
            if table.is_text() {
                let texts: Vec<_> = there.map(|number| text(*number).as_str().into()).collect();
                to_column.typed::<ByteArrayType>().write_batch(&texts, Some(&levels), None)?;
            } else {
                let values: Vec<f64> = there.map(|number| *number as f64).collect();
                to_column.typed::<DoubleType>().write_batch(&values, Some(&levels), None)?;
            }
            to_column.close()?;
        }
        to_group.close()?;
    }
    writer.close().map(drop)
}

struct ToFile<'a>(&'a mut BufWriter<std::fs::File>);

impl ByteSink for ToFile<'_> {
    fn name(&self) -> &str {
        "a file"
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).map_err(|error| Error::io(error.to_string()))
    }

    fn read(&mut self, _: std::ops::Range<u64>) -> Result<Bytes> {
        Err(Error::io("what is written is not read"))
    }
}
