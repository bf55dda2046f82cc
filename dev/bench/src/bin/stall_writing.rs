//! The longest calls of the machines that write and sort. See `src/stall/writing.rs`.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::stall::{BAR_US, Calls, REPLAYS, Summary, writing};
use marquetry_bench::{allocator, clock, level};
use serde_json::json;

const USAGE: &str =
    "usage: bench-stall-writing --out DIR --mib NUMBER --thousands NUMBER [WORDS of a case's name]
--mib        the size of a long value
--thousands  the number of small things; a tenth of it for columns";

fn main() -> ExitCode {
    if let Some(ended) = allocator::again(&allocator::STEADY) {
        return ended;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [out, directory, mib, mebi, many, thousands, words @ ..]
            if (&**out, &**mib, &**many) == ("--out", "--mib", "--thousands") =>
        {
            match (mebi.parse(), thousands.parse()) {
                (Ok(mebi), Ok(thousands)) => run(directory.as_ref(), mebi, thousands, words),
                _ => Err(USAGE.to_owned()),
            }
        }
        _ => Err(USAGE.to_owned()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-stall-writing: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(out: &Path, mebi: usize, thousands: usize, words: &[String]) -> Result<(), String> {
    let kernels = level::hold()?;
    let mut rows = Vec::new();
    let mut details = "## Calls\n\n\
        Of each case: the time of the call that charged most; the longest drop, which is the host's, of a writer, a sorter or a batch (a writer or a sorter that \
        is abandoned is dropped at once); nanoseconds by unit in the dearest call of 20,000 units or more; what most units are of.\n\n\
        | case | calls | longest µs | call | its units | most units | its µs | drop µs | ns/unit most | all ms | prices |\n\
        |---|--:|--:|---|--:|--:|--:|--:|--:|--:|---|\n"
        .to_owned();
    for case in writing::cases(mebi, thousands) {
        if !words.iter().all(|word| case.name.contains(word.as_str())) {
            continue;
        }
        let mut calls = Calls::default();
        for _ in 0..REPLAYS {
            let ended = writing::run(&case, &mut calls).map_err(|error| error.to_string());
            ended.and_then(|()| calls.end_replay()).map_err(|message| format!("{}: {message}", case.name))?;
        }
        let summary = calls.summary();
        let prices: Vec<&str> = case.prices().collect();
        let line = format!("{} {} |", line(case.name, &summary), prices.join(", "));
        eprintln!("{line}");
        let _ = writeln!(details, "{line}");
        rows.push(Row {
            group: "longest call: writing and sorting".to_owned(),
            case: case.name.to_owned(),
            unit: "µs",
            better: Better::Lower,
            ours: Some(summary.longest_ns as f64 / 1e3),
            peers: Vec::new(),
            bar: BAR_US,
            ratio: None,
            more: summary.json(),
        });
    }
    if rows.is_empty() {
        return Err("no case has all of those words".to_owned());
    }
    let notes = vec![
        format!(
            "How long the machines that write and sort keep their thread, on large things: every call by itself, thread CPU time, the shortest of {REPLAYS} \
             replays that repeat each other. Long values are of {mebi} MiB; there are {thousands},000 small things, or a tenth of that of columns. The bar is {BAR_US} µs."
        ),
        "Buffers of 128 KiB and more come fresh from the system each time; glibc neither merges nor gives back what is small within a call \
         (`M_MXFAST`, `M_TRIM_THRESHOLD`), which takes 3 to 5 ms of its own where a hundred thousand columns were freed."
            .to_owned(),
        format!("{}, kernels: {kernels}.", clock::processor()),
    ];
    let setting = json!({
        "clock": "thread CPU time", "replays": REPLAYS, "mib": mebi, "thousands": thousands, "processor": clock::processor(), "kernels": kernels,
    });
    std::fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let (name, title) =
        ("stall_writing".to_owned(), "Never stall: the longest call of writing and sorting".to_owned());
    Report { name, title, notes, setting, rows }.write_with(out, None, &details)
}

fn line(name: &str, summary: &Summary) -> String {
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
