//! Reads a table for the benchmark of layouts: `bench-layouts-ours ADDRESS ROUNDS [COLUMN [PREDICATE]]`, of all columns where the column is `*`.
//!
//! Each line is a reading's: rows, milliseconds until the table was open and until its last row, and of a connection alone before it, if it is a table
//! of a cluster. The first reading, which is none of the ROUNDS, also counts what it finds: values that are not null, and the most frequent ones.
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
use serde_json::{Value, json};

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

    /// One reading, which may be the one that counts.
    fn reading(&self, is_counting: bool) -> Result<Value, String> {
        let connect_ms = self.connect_ms()?;
        let named = |error: marquetry::Error| format!("{}: {error}", self.address);
        let (mut rows, mut values, mut counts) = (0, 0, HashMap::<String, u64>::new());
        let started = Instant::now();
        let table = self.open()?;
        let open_ms = milliseconds(started);
        for batch in table.record_batches().map_err(named)? {
            let batch = batch.map_err(|error| format!("{}: {error}", self.address))?;
            rows += u64_of(batch.num_rows());
            if is_counting {
                let there = batch.columns().iter().map(|column| u64_of(column.len() - column.null_count()));
                values += there.sum::<u64>();
                if self.column.is_some() {
                    count(&batch, &mut counts)?;
                }
            }
        }
        let mut found = json!({ "rows": rows, "connect_ms": connect_ms, "open_ms": open_ms, "ms": milliseconds(started) });
        if is_counting {
            let mut top: Vec<(String, u64)> = counts.into_iter().collect();
            top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            top.truncate(TOP);
            (found["values"], found["top"]) = (json!(values), json!(top));
        }
        Ok(found)
    }

    /// What it takes to connect to the cluster of a table: whoever does has no more to read than this one of the server's.
    fn connect_ms(&self) -> Result<Option<f64>, String> {
        let Some((host, _)) = self.address.strip_prefix("cql://").and_then(|rest| rest.split_once('/'))
        else {
            return Ok(None);
        };
        let (started, address) = (Instant::now(), format!("cql://{host}/system.local"));
        drop(marquetry::open(&address).map_err(|error| format!("{address}: {error}"))?);
        Ok(Some(milliseconds(started)))
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn run(arguments: &[String]) -> Result<(), String> {
    let [address, rounds, rest @ ..] = arguments else {
        return Err("usage: bench-layouts-ours ADDRESS ROUNDS [COLUMN [PREDICATE]]".to_owned());
    };
    let rounds: usize = rounds.parse().map_err(|_| format!("{rounds} is not a number"))?;
    let column = rest.first().map(String::as_str).filter(|column| *column != "*");
    let wanted = Wanted { address, column, predicate: rest.get(1).map(String::as_str) };
    for round in 0..=rounds {
        println!("{}", wanted.reading(round == 0)?);
    }
    Ok(())
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
