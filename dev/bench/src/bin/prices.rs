//! Prints what a unit is in nanoseconds, price by price: `bench-prices --out DIR [WORDS]`. See `src/prices.rs`.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use marquetry_base::Budget;
use marquetry_bench::prices::{Case, cases, read};
use marquetry_bench::stall::{Calls, Summary};
use marquetry_bench::{allocator, clock, level};
use serde_json::{Value, json};

/// Thousands of values of a case.
const THOUSANDS: usize = 1_000;
/// Readings: a step's time is the shortest.
const REPLAYS: usize = 7;
/// Rows of a batch as readers have them by default, and of a large one, whose arrays are not in a core's caches.
const BATCH_ROWS: [usize; 2] = [8_192, 1 << 16];
/// A step may take so many nanoseconds by unit, at the most, on a processor of today: so one that takes twice as long keeps within 0.5 ms.
const UNIT_NS_MAX: f64 = 1.0;
/// A unit that is less than this in all cases of a price makes steps needlessly short.
const UNIT_NS_MIN: f64 = 0.25;

const USAGE: &str = "usage: bench-prices --out DIR [WORDS of a case's price and name]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [flag, out, words @ ..] if flag == "--out" => {
            // As in the stall benchmark: page faults are a part of what memory costs.
            if let Some(ended) = allocator::again(&allocator::FRESH) {
                return ended;
            }
            run(&PathBuf::from(out), words)
        }
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-prices: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(out: &std::path::Path, words: &[String]) -> Result<(), String> {
    let kernels = level::hold()?;
    let begin = (Instant::now(), clock::cpu_time());
    let mut rows = Vec::new();
    for case in cases(THOUSANDS) {
        let name = format!("{} {}", case.price, case.name);
        if words.iter().all(|word| name.contains(word.as_str())) {
            rows.push(measure(&case)?);
            if let Some(row) = rows.last() {
                eprintln!("{}", line(row));
            }
        }
    }
    let (wall, cpu) = (begin.0.elapsed(), clock::cpu_time().saturating_sub(begin.1));
    let busy = wall.as_secs_f64() / cpu.as_secs_f64() - 1.0;
    std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let put = |name: &str, text: &str| {
        let path = out.join(name);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    };
    put("prices.md", &markdown(&rows, kernels, busy))?;
    let setting =
        json!({ "processor": clock::processor(), "kernels": kernels, "replays": REPLAYS, "busy_part": busy });
    put("prices.json", &format!("{:#}\n", json!({ "name": "prices", "setting": setting, "rows": rows })))
}

fn measure(case: &Case) -> Result<Value, String> {
    let [usual, large] = BATCH_ROWS.map(|rows| replay(case, rows));
    let (usual, large) = (usual?, large?);
    let amount = case.amount as f64 / 1024.0;
    let dearest = [usual.unit_ns_max, large.unit_ns_max].into_iter().flatten().fold(0.0, f64::max);
    Ok(json!({
        "price": case.price,
        "case": case.name,
        "per": if case.per_byte { "KiB" } else { "1,024 values" },
        "ns": usual.total_ns as f64 / amount,
        "units": usual.units as f64 / amount,
        "unit_ns": usual.total_ns as f64 / usual.units as f64,
        "unit_ns_large": large.total_ns as f64 / large.units as f64,
        "unit_ns_dearest": dearest,
        "longest_us": usual.longest_ns.max(large.longest_ns) as f64 / 1e3,
        "longest_units": if usual.longest_ns > large.longest_ns { usual.longest_units } else { large.longest_units },
        "units_max": usual.units_max.max(large.units_max),
    }))
}

fn replay(case: &Case, batch_rows: usize) -> Result<Summary, String> {
    let mut calls = Calls::default();
    for _ in 0..REPLAYS {
        read(case, batch_rows, &mut calls)
            .map_err(|error| format!("{}, {}: {error}", case.price, case.name))?;
        calls.end_replay()?;
    }
    Ok(calls.summary())
}

fn line(row: &Value) -> String {
    let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
    format!(
        "| {} | {} | {} | {:.0} | {:.0} | {:.2} | {:.2} | {:.2} | {:.0} | {} |",
        row["price"].as_str().unwrap_or("?"),
        row["case"].as_str().unwrap_or("?"),
        row["per"].as_str().unwrap_or("?"),
        number("ns"),
        number("units"),
        number("unit_ns"),
        number("unit_ns_large"),
        number("unit_ns_dearest"),
        number("longest_us"),
        row["longest_units"],
    )
}

fn markdown(rows: &[Value], kernels: &str, busy: f64) -> String {
    let mut text = format!(
        "# What a unit costs\n\nNanoseconds of thread CPU time by unit charged, price by price; a step's time is the shortest of {REPLAYS} readings, with buffers of \
         128 KiB and more fresh from the system. A price is right where no step is dearer than {UNIT_NS_MAX} ns a unit (a step of the default budget \
         then takes at most {:.2} ms), and not all of its cases are cheaper than {UNIT_NS_MIN}. Batches are of {} rows, or of {}; dearest of steps of 20,000 units or more. {}, kernels: {kernels}; beside this process the machine was busy {:.0} % of the time.\n\n",
        Budget::DEFAULT_UNITS as f64 * UNIT_NS_MAX / 1e6,
        BATCH_ROWS[0],
        BATCH_ROWS[1],
        clock::processor(),
        busy * 100.0
    );
    text += "| price | case | per | ns | units | ns/unit | large batches | dearest step | longest step µs | its units |\n";
    text += "|---|---|---|--:|--:|--:|--:|--:|--:|--:|\n";
    for row in rows {
        text += &line(row);
        text.push('\n');
    }
    let dear: Vec<&Value> =
        rows.iter().filter(|row| row["unit_ns_dearest"].as_f64() > Some(UNIT_NS_MAX)).collect();
    let _ = write!(text, "\n{} cases are dearer than they should be.\n", dear.len());
    for row in dear {
        let _ = writeln!(
            text,
            "* {}, {}: {:.2}",
            row["price"].as_str().unwrap_or("?"),
            row["case"].as_str().unwrap_or("?"),
            row["unit_ns_dearest"].as_f64().unwrap_or(0.0)
        );
    }
    text
}
