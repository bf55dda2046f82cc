//! The longest calls of the machines that write and sort: `bench-stall-writing [WORDS of a case's name]`. See `src/stall/writing.rs`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use marquetry_bench::stall::{Calls, Summary, writing};

/// MiB of a long value, and thousands of small things.
const MEBI: usize = 100;
const THOUSANDS: usize = 1000;
/// Replays: a call's time is the shortest.
const REPLAYS: usize = 3;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "| case | calls | longest µs | its call | its units | largest units | its µs | drop µs | dearest ns/unit | ms |"
    );
    println!("|---|--:|--:|---|--:|--:|--:|--:|--:|--:|---|");
    for case in writing::cases(MEBI, THOUSANDS) {
        if !words.iter().all(|word| case.name.contains(word.as_str())) {
            continue;
        }
        let mut calls = Calls::default();
        for _ in 0..REPLAYS {
            let ended = writing::run(&case, &mut calls).map_err(|error| error.to_string());
            if let Err(message) = ended.and_then(|()| calls.end_replay()) {
                println!("| {} | {message} |", case.name);
                return ExitCode::FAILURE;
            }
        }
        let prices: Vec<&str> = case.prices().collect();
        println!("{} {} |", row(case.name, &calls.summary()), prices.join(", "));
    }
    ExitCode::SUCCESS
}

fn row(name: &str, summary: &Summary) -> String {
    let micros = |nanos: u64| format!("{:.0}", nanos as f64 / 1e3);
    format!(
        "| {name} | {} | {} | {} {} | {} | {} | {} | {} | {:.2} | {:.0} |",
        summary.calls,
        micros(summary.longest_ns),
        summary.longest_call,
        summary.longest_at,
        summary.longest_units,
        summary.units_max,
        micros(summary.units_max_ns),
        micros(summary.drop_ns),
        summary.unit_ns_max.unwrap_or(0.0),
        summary.total_ns as f64 / 1e6,
    )
}
