//! How late a timer is beside a reader: one thread, a timer of a millisecond, and a file whose column is one page of a gibibyte.
#![forbid(unsafe_code)]

mod contestants;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use contestants::{Contestant, measure};
use marquetry_bench::clock;
use marquetry_bench::lateness::Spread;
use marquetry_bench::report::{Better, Report, Row};
use marquetry_conformance::craft::{
    BYTE_ARRAY, Chunk, Column, INT64, PLAIN, Page, SNAPPY, Table, UNCOMPRESSED, ZSTD,
};
use serde_json::{Value, json};

const USAGE: &str = "usage: bench-lateness --files DIR --out DIR [--mib 1024] [--seconds 3] [--rounds 5] [--only WORDS]

Makes the files that are missing in DIR, has each reader read them for so long in each round, and writes lateness.md and lateness.json.
--mib is the page's size. --only keeps the files whose name (`INT64 PLAIN SNAPPY`) has all of the words.";

/// The latest that the timer may be, at the 99.9th percentile, in milliseconds.
const BAR_MS: f64 = 1.0;

struct Case {
    name: &'static str,
    physical_type: i32,
    codec: i32,
}

const CASES: &[Case] = &[
    Case { name: "INT64 PLAIN UNCOMPRESSED", physical_type: INT64, codec: UNCOMPRESSED },
    Case { name: "INT64 PLAIN SNAPPY", physical_type: INT64, codec: SNAPPY },
    Case { name: "INT64 PLAIN ZSTD", physical_type: INT64, codec: ZSTD },
    Case { name: "BYTE_ARRAY PLAIN SNAPPY", physical_type: BYTE_ARRAY, codec: SNAPPY },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let result = match &arguments[..] {
        [word, name, file, seconds] if word == "--measure" => measure_here(name, file, seconds),
        _ => Options::parse(arguments).and_then(|options| run(&options)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-lateness: {message}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    files: PathBuf,
    out: PathBuf,
    mib: usize,
    seconds: u64,
    rounds: usize,
    only: Vec<String>,
}

impl Options {
    fn parse(arguments: Vec<String>) -> Result<Options, String> {
        let mut options = Options {
            files: PathBuf::new(),
            out: PathBuf::new(),
            mib: 1024,
            seconds: 3,
            rounds: 5,
            only: Vec::new(),
        };
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            let wrong = |_| format!("{name} {value}?\n{USAGE}");
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--mib" => options.mib = value.parse().map_err(wrong)?,
                "--seconds" => options.seconds = value.parse().map_err(wrong)?,
                "--rounds" => options.rounds = value.parse().map_err(wrong)?,
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let is_empty = options.files.as_os_str().is_empty() || options.out.as_os_str().is_empty();
        // The format gives a page's size 31 bits.
        if is_empty || !(1..2048).contains(&options.mib) || options.rounds == 0 {
            Err(USAGE.to_owned())
        } else {
            Ok(options)
        }
    }
}

/// One measurement, in this process: so that each has its own memory, and its own peak of it.
fn measure_here(name: &str, file: &str, seconds: &str) -> Result<(), String> {
    let contestant = Contestant::from_name(name).ok_or_else(|| format!("no contestant is called {name}"))?;
    let seconds = seconds.parse().map_err(|_| format!("{seconds} is no number of seconds"))?;
    println!("{}", measure(contestant, Path::new(file), seconds)?);
    Ok(())
}

/// The round of a contestant that the machine disturbed least: the one with the least lateness at the 99.9th percentile.
fn quietest(rounds: Vec<Measured>) -> Option<Measured> {
    let all: Vec<f64> = rounds.iter().map(|round| round.late.p999).collect();
    let mut quietest = rounds.into_iter().min_by(|one, other| one.late.p999.total_cmp(&other.late.p999))?;
    quietest.told["late_p999_of_rounds"] = json!(all);
    Some(quietest)
}

/// A measurement as its process told it.
struct Measured {
    contestant: Contestant,
    late: Spread,
    undisturbed: Spread,
    calls: Spread,
    told: Value,
}

fn run(options: &Options) -> Result<(), String> {
    for folder in [&options.files, &options.out] {
        std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    let mut tables = String::new();
    let (mut is_native, mut knows) = (true, true);
    for case in CASES {
        if !options.only.iter().all(|word| case.name.split(' ').any(|other| other == word)) {
            continue;
        }
        let file = make(options, case)?;
        // So that all find it in the system's cache.
        let bytes = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?.len();
        let mut rounds: Vec<Vec<Measured>> = Contestant::ALL.iter().map(|_| Vec::new()).collect();
        for round in 0..options.rounds {
            for (&contestant, rounds) in Contestant::ALL.iter().zip(&mut rounds) {
                eprintln!("{}, round {}: {}", case.name, round + 1, contestant.name());
                let measured = measure_there(&this, contestant, &file, options.seconds)?;
                is_native &= measured.told["io_uring"] != json!(false);
                knows &= measured.told["disturbance_known"] == json!(true);
                rounds.push(measured);
            }
        }
        let all: Vec<Measured> = rounds.into_iter().filter_map(quietest).collect();
        tables += &table(case, &all, bytes);
        rows.extend(judge(case, &all));
    }
    let report = Report {
        name: "lateness".to_owned(),
        title: "A timer beside a reader".to_owned(),
        notes: Vec::new(),
        setting: json!({
            "page_mib": options.mib,
            "seconds": options.seconds,
            "rounds": options.rounds,
            "processor": clock::processor(),
            "io_uring": is_native,
            "disturbance_known": knows,
        }),
        rows,
    };
    let text = markdown(options, &report, &tables, is_native, knows);
    for (extension, text) in [("md", text), ("json", format!("{:#}\n", report.json()))] {
        let path = options.out.join(format!("lateness.{extension}"));
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn measure_there(this: &Path, contestant: Contestant, file: &Path, seconds: u64) -> Result<Measured, String> {
    let mut command = Command::new(this);
    command.args(["--measure", contestant.name()]).arg(file).arg(seconds.to_string());
    let output = command.output().map_err(|error| error.to_string())?;
    let name = contestant.name();
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let told: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("{name}: {error}"))?;
    let spread = |what: &str| Spread::from_json(&told[what]).ok_or_else(|| format!("{name} told no {what}"));
    Ok(Measured {
        contestant,
        late: spread("late")?,
        undisturbed: spread("late_undisturbed")?,
        calls: spread("calls")?,
        told,
    })
}

/// Writes a case's file, unless it is there: one row group of one column of one page.
fn make(options: &Options, case: &Case) -> Result<PathBuf, String> {
    let plain = case.name.to_lowercase().replace(' ', "-");
    let path = options.files.join(format!("lateness-{plain}-{}.parquet", options.mib));
    if path.exists() {
        return Ok(path);
    }
    eprintln!("{}: making {}", case.name, path.display());
    let page_bytes = options.mib << 20;
    let mut body = Vec::with_capacity(page_bytes);
    let mut rows = 0_i32;
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut noise = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    // Times in microseconds, a second or so apart; and keys of 28 characters, of which sixteen say something.
    let mut time = 1_600_000_000_000_000_u64;
    while body.len() + 32 <= page_bytes {
        let number = noise();
        if case.physical_type == INT64 {
            time += number % 2_000_000;
            body.extend(time.to_le_bytes());
        } else {
            body.extend(28_u32.to_le_bytes());
            body.extend(format!("sensor-0042-{number:016x}").as_bytes());
        }
        rows += 1;
    }
    let mut page = Page::data(rows, PLAIN, body);
    if case.codec != UNCOMPRESSED {
        page = page.compressed(case.codec);
    }
    let chunk = Chunk::new(rows.into(), [page]).codec(case.codec);
    let table = Table::new([Column::required("v", case.physical_type)]).group(rows.into(), [chunk]);
    // Under another name until it is whole.
    let partial = path.with_extension("partial");
    let written = std::fs::write(&partial, table.write()).and_then(|()| std::fs::rename(&partial, &path));
    written.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

/// The rows that are held to the bar: ours, on either runtime.
fn judge(case: &Case, all: &[Measured]) -> Vec<Row> {
    let ours = [Contestant::OursCompio, Contestant::OursTokio];
    let others = |measured: &&Measured| !ours.contains(&measured.contestant);
    ours.into_iter()
        .filter_map(|contestant| {
            let ours = all.iter().find(|measured| measured.contestant == contestant)?;
            let peers = all.iter().filter(others);
            Some(Row {
                group: case.name.to_owned(),
                case: contestant.name().to_owned(),
                unit: "ms",
                better: Better::Lower,
                ours: Some(ours.undisturbed.p999),
                peers: peers.map(|peer| (peer.contestant.name().to_owned(), peer.undisturbed.p999)).collect(),
                bar: BAR_MS,
                ratio: None,
                more: json!({
                    "measured": all
                        .iter()
                        .map(|measured| (measured.contestant.name().to_owned(), measured.told.clone()))
                        .collect::<serde_json::Map<_, _>>(),
                }),
            })
        })
        .collect()
}

fn table(case: &Case, all: &[Measured], file_bytes: usize) -> String {
    let mut text = format!("## {} ({} MB)\n\n", case.name, file_bytes / 1_000_000);
    text += "| reader | late: p50 | p99 | p99.9 | latest | undisturbed: p99.9 | latest | a call's CPU time: p99.9 | longest | a reading | memory |\n";
    text += "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for Measured { contestant, late, undisturbed, calls, told } in all {
        let readings = told["readings"].as_f64().unwrap_or(0.0);
        let is_idle = readings == 0.0;
        let reading = told["seconds"].as_f64().unwrap_or(0.0) / readings;
        let memory = told["peak_memory_kib"].as_f64().unwrap_or(0.0) / 1024.0;
        let _ = write!(text, "| {} |", contestant.name());
        for time in [late.p50, late.p99, late.p999, late.max, undisturbed.p999, undisturbed.max] {
            let _ = write!(text, " {time:.3} |");
        }
        let _ = match is_idle {
            true => writeln!(text, " – | – | – | {memory:.0} MiB |"),
            false => {
                writeln!(text, " {:.3} | {:.3} | {reading:.2} s | {memory:.0} MiB |", calls.p999, calls.max)
            }
        };
    }
    let own = all.iter().filter_map(|measured| {
        let late = Spread::from_json(&measured.told["late_by_own_timer"])?;
        Some(format!("{} {:.3} and {:.3}", measured.contestant.name(), late.p50, late.p999))
    });
    let own: Vec<String> = own.collect();
    let rounds = all.iter().map(|measured| {
        let told = measured.told["late_p999_of_rounds"].as_array();
        let of_rounds: Vec<String> = told
            .into_iter()
            .flatten()
            .map(|late| format!("{:.2}", late.as_f64().unwrap_or(f64::NAN)))
            .collect();
        format!("{} {}", measured.contestant.name(), of_rounds.join(", "))
    });
    let rounds: Vec<String> = rounds.collect();
    let _ = writeln!(text, "\np99.9 of all rounds: {}.", rounds.join("; "));
    let _ = writeln!(text, "\nBy tokio's own timer, p50 and p99.9: {}.\n", own.join("; "));
    text
}

fn markdown(options: &Options, report: &Report, tables: &str, is_native: bool, knows: bool) -> String {
    let held = report.rows.iter().filter(|row| row.holds() == Some(true)).count();
    let mut text = format!("# {}\n\n", report.title);
    let notes = [
        format!(
            "A file of one column and one page of {} MiB is read again and again for {} seconds by one thread, which also has a timer of one \
             millisecond; that is a round, contestants take turns, and of {} rounds of each the one stands here that the machine disturbed least, by its \
             99.9th percentile (those of all rounds are told below). Milliseconds, by which the timer was late; a tick that a stall swallowed is as late as it was. *Idle* is the timer alone, on the same machine a few seconds before.",
            options.mib, options.seconds, options.rounds,
        ),
        format!(
            "The thread has a processor that no other thread of its process runs on; other programs do, and have it for some milliseconds now and \
             then. *Undisturbed* is what is left of a lateness without the time in which the thread was ready to run and another had its processor \
             (Linux's `schedstat`): as late as the tick would have been, had the thread always had its turn at once. Ours, by io_uring on compio and \
             on tokio, is held to a 99.9th percentile of {BAR_MS} ms of that. What the machine's host takes from all of it is in it still."
        ),
        "A call's CPU time is that of the thread in each call into the reader: the longest that a reader keeps its thread between two chances \
         for others, whatever else the machine did in that call: `stall.md` replays calls, and takes the shortest of each. (Reads that the kernel does at once, out of its cache, are in it on compio; on tokio other threads do them.)"
            .to_owned(),
        "On compio the timer is io_uring's, to the nanosecond. tokio's own has a wheel of a millisecond, and is up to one late by design: what \
         stands in the tables is a `timerfd` of the kernel, waited for as for a socket, and its own is told below them."
            .to_owned(),
        format!("{}.", clock::processor()),
    ];
    for note in notes {
        let _ = writeln!(text, "{note}\n");
    }
    if !is_native {
        text += "**There is no io_uring here**: compio read with threads.\n\n";
    }
    if !knows {
        text +=
            "**Nobody tells here what disturbed the thread**: undisturbed is the same as by the clock.\n\n";
    }
    if options.mib != 1024 {
        text += "**A quick look: the pages are small.** Its numbers are no results.\n\n";
    }
    let _ = writeln!(text, "The bar holds in {held} of {} rows.\n", report.rows.len());
    text + tables
}
