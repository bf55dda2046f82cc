//! The benchmark of CQL text: `marquetry cql` prints a mixed table of one million rows, and of ten.
//!
//! What is held to a bar: the speed (bytes of text by CPU time, on one CPU, written to `/dev/null`), and that ten times the rows take no more memory.
//! The text is counted first, in an untimed run through a pipe: a row is a line that begins with `INSERT INTO `.
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use marquetry_bench::program::{self, Run};
use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::{clock, stats};
use serde_json::{Value, json};

const USAGE: &str = "usage: bench-cql-text --marquetry PROGRAM --files DIR --out DIR [--rounds 5] [--cpu 0]";

/// The least speed that is good, in millions of bytes a second.
const SPEED_BAR: f64 = 300.0;

/// Memory counts as constant if ten times the rows take at most this much more of it, and as much again as an allocator's mood.
const MEMORY_GROWTH_MAX: f64 = 1.1;
const MEMORY_SLACK_MIB: f64 = 4.0;

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-cql-text: {message}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug, Default)]
struct Options {
    marquetry: PathBuf,
    files: PathBuf,
    out: PathBuf,
    rounds: usize,
    cpu: usize,
}

impl Options {
    fn parse() -> Result<Self, String> {
        let mut options = Self { rounds: 5, ..Self::default() };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| USAGE.to_owned())?;
            let number = value.parse();
            match (name.as_str(), number) {
                ("--marquetry", _) => options.marquetry = value.into(),
                ("--files", _) => options.files = value.into(),
                ("--out", _) => options.out = value.into(),
                ("--rounds", Ok(number)) => options.rounds = usize::max(number, 1),
                ("--cpu", Ok(number)) => options.cpu = number,
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let paths = [&options.marquetry, &options.files, &options.out];
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }
}

fn run(options: &Options) -> Result<(), String> {
    let listing = options.files.join("tables.json");
    let listing =
        std::fs::read_to_string(&listing).map_err(|error| format!("{}: {error}", listing.display()))?;
    let listing: Value = serde_json::from_str(&listing).map_err(|error| format!("tables.json: {error}"))?;
    clock::pin(options.cpu)?;

    let mut measured = Vec::new();
    for table in listing["tables"].as_array().ok_or("tables.json: no tables")? {
        let (Some(file), Some(rows)) = (table["file"].as_str(), table["rows"].as_u64()) else {
            return Err("tables.json: a table without a file or rows".to_owned());
        };
        measured.push(measure(options, &options.files.join(file), rows)?);
    }
    let [small, large] = &measured[..] else {
        return Err("tables.json: two tables are expected, the smaller first".to_owned());
    };
    let report = report(options, &listing, small, large);
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    report.write(&options.out, None)
}

#[derive(Debug)]
struct Measured {
    rows: u64,
    text_bytes: u64,
    runs: Vec<Run>,
}

fn command(options: &Options, file: &Path) -> Command {
    let mut command = Command::new(&options.marquetry);
    command.arg("cql").arg(file).args(["--table", "bench.trips", "--key", "id"]).stdin(Stdio::null());
    command
}

fn measure(options: &Options, file: &Path, rows: u64) -> Result<Measured, String> {
    let text_bytes = count(command(options, file), rows)?;
    let mut runs = Vec::new();
    for _ in 0..options.rounds {
        let run = program::watch(command(options, file))?;
        eprintln!(
            "{rows} rows: {text_bytes} bytes in {:.3} s (CPU {:.3} s), at most {:.1} MiB",
            run.wall_s, run.cpu_s, run.peak_mib
        );
        runs.push(run);
    }
    Ok(Measured { rows, text_bytes, runs })
}

/// The bytes that the program prints; an error unless it prints the table's rows and ends well.
fn count(mut command: Command, rows: u64) -> Result<u64, String> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().map_err(|error| format!("{command:?}: {error}"))?;
    let mut text = BufReader::with_capacity(1 << 20, child.stdout.take().ok_or("no pipe")?);
    let (mut bytes, mut inserts, mut line) = (0, 0, Vec::new());
    loop {
        line.clear();
        let read = text.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        if read == 0 {
            break;
        }
        bytes += read as u64;
        inserts += u64::from(line.starts_with(b"INSERT INTO "));
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if !status.success() || inserts != rows {
        return Err(format!("{command:?}: {status}, {inserts} rows printed, not {rows}"));
    }
    Ok(bytes)
}

fn report(options: &Options, listing: &Value, small: &Measured, large: &Measured) -> Report {
    let peak = |measured: &Measured| measured.runs.iter().map(|run| run.peak_mib).fold(0.0, f64::max);
    let memory = Row {
        group: "Memory".to_owned(),
        case: format!(
            "peak for {} rows (for {}: {:.1})",
            thousands(large.rows),
            thousands(small.rows),
            peak(small)
        ),
        unit: "MiB",
        better: Better::Lower,
        ours: Some(peak(large)),
        peers: Vec::new(),
        bar: peak(small) * MEMORY_GROWTH_MAX + MEMORY_SLACK_MIB,
        ratio: None,
        more: json!({ "small_peak_mib": peak(small) }),
    };
    let mut notes = vec![format!(
        "`marquetry cql FILE --table bench.trips --key id > /dev/null`, on one CPU ({}): the median of {} runs, by CPU time; MB are millions of bytes. \
         The bar for memory is that of the smaller table and {:.0} % and {MEMORY_SLACK_MIB} MiB.",
        clock::processor(),
        options.rounds,
        (MEMORY_GROWTH_MAX - 1.0) * 100.0
    )];
    if listing["scale"].as_f64() != Some(1.0) {
        notes
            .push(format!("**A quick look: {} of the rows.** Its numbers are no results.", listing["scale"]));
    }
    Report {
        name: "cql_text".to_owned(),
        title: "Parquet to CQL text".to_owned(),
        notes,
        setting: json!({ "rounds": options.rounds, "clock": "cpu", "scale": listing["scale"], "processor": clock::processor() }),
        rows: vec![speed(small), speed(large), memory],
    }
}

fn speed(measured: &Measured) -> Row {
    let megabytes = Duration::from_micros(measured.text_bytes).as_secs_f64();
    let speeds: Vec<f64> = measured.runs.iter().map(|run| megabytes / run.cpu_s).collect();
    let walls: Vec<f64> = measured.runs.iter().map(|run| megabytes / run.wall_s).collect();
    Row {
        group: "Speed".to_owned(),
        case: format!("{} rows", thousands(measured.rows)),
        unit: "MB/s",
        better: Better::Higher,
        ours: Some(stats::median(&speeds)),
        peers: Vec::new(),
        bar: SPEED_BAR,
        ratio: None,
        more: json!({
            "text_bytes": measured.text_bytes,
            "interval": stats::median_interval(&speeds),
            "wall": stats::median(&walls),
        }),
    }
}

/// 1234567 as `1,234,567`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
