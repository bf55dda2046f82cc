//! Reads a table for the benchmark of layouts: `bench-layouts-ours ADDRESS ROUNDS [COLUMN [PREDICATE]]`, of all columns where the column is `*`.
//!
//! The first line is what was found by a reading that is not timed: rows, values that are not null, and the most frequent values. Each line after it
//! is a reading's: milliseconds until the table was open and until its last row, and of a connection alone before it, if it is a table of a
//! cluster.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Instant;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array as _, RecordBatch};
use arrow_schema::DataType;
use marquetry::Reader;
use marquetry_base::cast::u64_of;
use serde_json::json;

/// How many of the most frequent values are told.
const TOP: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-layouts-ours: {message}");
            ExitCode::FAILURE
        }
    }
}

struct Wanted<'a> {
    address: &'a str,
    column: Option<&'a str>,
    predicate: Option<&'a str>,
}

impl Wanted<'_> {
    fn open(&self) -> Result<Reader, String> {
        let named = |error: marquetry::Error| format!("{}: {error}", self.address);
        let mut table = marquetry::open(self.address).map_err(named)?;
        if let Some(predicate) = self.predicate {
            table = table.filter(predicate).map_err(named)?;
        }
        match self.column {
            Some(column) => table.columns([column]).map_err(named),
            None => Ok(table),
        }
    }

    fn read(
        &self,
        table: &Reader,
        mut see: impl FnMut(&RecordBatch) -> Result<(), String>,
    ) -> Result<(), String> {
        for batch in table.record_batches().map_err(|error| format!("{}: {error}", self.address))? {
            see(&batch.map_err(|error| format!("{}: {error}", self.address))?)?;
        }
        Ok(())
    }
}

fn run(arguments: &[String]) -> Result<(), String> {
    let [address, rounds, rest @ ..] = arguments else {
        return Err("usage: bench-layouts-ours ADDRESS ROUNDS [COLUMN [PREDICATE]]".to_owned());
    };
    let rounds: usize = rounds.parse().map_err(|_| format!("{rounds} is not a number"))?;
    let column = rest.first().map(String::as_str).filter(|column| *column != "*");
    let wanted = Wanted { address, column, predicate: rest.get(1).map(String::as_str) };
    // Whoever connects has no more to read than this.
    let nothing = address.strip_prefix("cql://").and_then(|rest| rest.split_once('/'));
    let nothing = nothing.map(|(host, _)| format!("cql://{host}/system.local"));
    println!("{}", proof(&wanted)?);
    for _ in 0..rounds {
        let connecting = Instant::now();
        if let Some(nothing) = &nothing {
            drop(marquetry::open(nothing).map_err(|error| format!("{nothing}: {error}"))?);
        }
        let connect_ms = connecting.elapsed().as_secs_f64() * 1e3;
        let started = Instant::now();
        let table = wanted.open()?;
        let open_ms = started.elapsed().as_secs_f64() * 1e3;
        let mut rows = 0;
        wanted.read(&table, |batch| {
            rows += u64_of(batch.num_rows());
            Ok(())
        })?;
        let all_ms = started.elapsed().as_secs_f64() * 1e3;
        let connect_ms = nothing.as_ref().map(|_| connect_ms);
        println!("{}", json!({ "rows": rows, "connect_ms": connect_ms, "open_ms": open_ms, "ms": all_ms }));
    }
    Ok(())
}

/// What is there.
fn proof(wanted: &Wanted<'_>) -> Result<serde_json::Value, String> {
    let (mut rows, mut values, mut counts) = (0, 0, HashMap::<String, u64>::new());
    wanted.read(&wanted.open()?, |batch| {
        rows += u64_of(batch.num_rows());
        for column in batch.columns() {
            values += u64_of(column.len() - column.null_count());
        }
        if wanted.column.is_some() {
            count(batch, &mut counts)?;
        }
        Ok(())
    })?;
    let mut top: Vec<(String, u64)> = counts.into_iter().collect();
    top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    top.truncate(TOP);
    Ok(json!({ "rows": rows, "values": values, "top": top }))
}

/// Counts the values of the first column.
fn count(batch: &RecordBatch, counts: &mut HashMap<String, u64>) -> Result<(), String> {
    let column = batch.column(0);
    let mut add = |value: &str| match counts.get_mut(value) {
        Some(count) => *count += 1,
        None => drop(counts.insert(value.to_owned(), 1)),
    };
    match column.data_type() {
        DataType::Int32 => {
            column.as_primitive::<Int32Type>().iter().flatten().for_each(|it| add(&it.to_string()))
        }
        DataType::Int64 => {
            column.as_primitive::<Int64Type>().iter().flatten().for_each(|it| add(&it.to_string()))
        }
        DataType::Float64 => {
            column.as_primitive::<Float64Type>().iter().flatten().for_each(|it| add(&it.to_string()));
        }
        DataType::Utf8 => column.as_string::<i32>().iter().flatten().for_each(&mut add),
        DataType::Utf8View => column.as_string_view().iter().flatten().for_each(&mut add),
        other => return Err(format!("values of {other} are not counted")),
    }
    Ok(())
}
