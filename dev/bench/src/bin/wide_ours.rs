//! Marquetry as a contestant of wide tables: `bench-wide-ours FILE COLUMNS KIND TASK ROUNDS`.
//!
//! Beside the tasks of all contestants: `walk`, the footer without any of its columns; `arrow`, Arrow's schema of all columns,
//! from a footer that is read before it is timed.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use marquetry_arrow::ToArrow;
use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Error, Limits, Machine, Object, Priority, Result, Step, Want};
use marquetry_bench::wide::{Done, Table, contest, name, wanted};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::{ColumnBatch, Values};
use marquetry_parquet::format::{FileMetaData, FooterColumns};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};

const FILE: Object = Object(0);

fn main() -> ExitCode {
    let mut opened: Option<Arc<FileMetaData>> = None;
    contest(("bench-wide-ours", env!("CARGO_PKG_VERSION")), move |file, table, task| {
        run(file, table, task, &mut opened).map_err(|error| error.to_string())
    })
}

fn run(file: &Bytes, table: &Table<'_>, task: &str, opened: &mut Option<Arc<FileMetaData>>) -> Result<Done> {
    let mut done = Done::default();
    let limits = Limits::TRUSTED;
    let paths = || FooterColumns::new(wanted(table.columns).into_iter().map(name));
    let mut footer = match task {
        "open" => FooterReader::new(FILE, limits),
        "walk" => FooterReader::of_columns(FILE, limits, FooterColumns::default()),
        "open10" | "read10" => FooterReader::of_columns(FILE, limits, paths()),
        "arrow" => {
            if opened.is_none() {
                let mut footer = FooterReader::new(FILE, limits);
                *opened = drive(&mut footer, file, &mut done)?;
            }
            let metadata = opened.as_ref().ok_or_else(|| Error::internal("no metadata"))?;
            done.proof = ToArrow::new(&metadata.schema, None)?.schema().fields().len() as u64;
            return Ok(done);
        }
        other => return Err(Error::misuse(format!("no task is called {other}"))),
    };
    let metadata = drive(&mut footer, file, &mut done)?.ok_or_else(|| Error::internal("no metadata"))?;
    if task != "read10" {
        done.proof = metadata.schema.leaves().len() as u64;
        return Ok(done);
    }
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let mut reader = BatchReader::new(FILE, metadata, Arc::new(StandardCodecs::default()), options)?;
    while let Some(batch) = drive(&mut reader, file, &mut done)? {
        done.proof += batch.columns.iter().map(sum).sum::<u64>();
    }
    Ok(done)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole numbers below a thousand")]
fn sum(column: &ColumnBatch) -> u64 {
    let rows = (0..column.values.len()).filter(|row| !column.is_null(*row));
    match &column.values {
        Values::Double(values) => rows.map(|row| values[row] as u64).sum(),
        Values::ByteArray(values) => rows.map(|row| values.get(row).len() as u64).sum(),
        _ => u64::MAX / 1024,
    }
}

/// Drives a machine to its next product, and counts what it asks for.
fn drive<M: Machine>(machine: &mut M, file: &Bytes, done: &mut Done) -> Result<Option<M::Product>> {
    loop {
        match machine.step(&mut Budget::default())? {
            Step::Ready(product) => return Ok(Some(product)),
            Step::Done => return Ok(None),
            Step::Yield => {}
            Step::Append(..) => return Err(Error::internal("a reader that writes")),
            Step::Need(demand) => {
                let mut asks = false;
                for want in demand.wants {
                    match want {
                        Want::Length(object) => machine.supply_length(object, file.len() as u64)?,
                        Want::Range(object, range, Priority::Now) => {
                            let bytes = usize_of(range.start).zip(usize_of(range.end));
                            let (start, end) =
                                bytes.ok_or_else(|| Error::internal("a file beyond memory"))?;
                            done.bytes += range.end - range.start;
                            asks = true;
                            machine.supply(object, range, file.slice(start..end))?;
                        }
                        Want::Range(..) => {}
                    }
                }
                done.rounds += u64::from(asks);
            }
        }
    }
}
