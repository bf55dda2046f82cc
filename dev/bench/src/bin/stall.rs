//! The stall benchmark's driver: how long each reader keeps the thread, what bounded steps cost, and how much memory each takes. See `README.md`.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use marquetry_bench::protocol::{Contestant, Time};
use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::stall::{BAR_US, REPLAYS};
use marquetry_bench::{allocator, chart, clock, level, stats};
use serde_json::{Value, json};

const USAGE: &str = "usage: bench-stall --files DIR --out DIR --bin DIR --python PYTHON --maker PROGRAM… --arrow PROGRAM
                   [--mib 64] [--scale 0.25] [--rounds 15] [--cpu NUMBER] [--only WORDS] [--without NAME]…

--maker  knows cases and writes their files: `PROGRAM DIR --mib … --scale … --list` prints them, `--case NAME` writes one; may be given again.
--mib    the size of the large things in the adversarial files; --scale: the part of the rows in the usual ones.
--only   keeps the cases whose group and name (`adversarial int64 PLAIN SNAPPY`) have all of the words.
--without leaves a contestant out: parquet-rs, arrow.";

/// The most that a call may ask of the allocator in one piece, in MiB, but for what is named.
const PIECE_MIB: f64 = 1.0;

/// A longest call that is so much over the bar is measured again, so many times, and the shortest counts, whosever it is: what others do on the
/// machine makes calls longer, and never shorter.
const NEAR_BAR_US: std::ops::Range<f64> = BAR_US..4.0 * BAR_US;
const AGAIN: usize = 2;

/// Files larger than this are deleted when they are measured: all together they are more than most disks have to spare.
const KEPT_BYTES_MAX: u64 = 128 << 20;

/// Readings before those whose cost is compared.
const WARM_UP_RUNS: usize = 2;

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-stall: {message}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug)]
struct Options {
    files: PathBuf,
    out: PathBuf,
    bin: PathBuf,
    python: PathBuf,
    makers: Vec<PathBuf>,
    arrow: PathBuf,
    mib: String,
    scale: String,
    rounds: usize,
    cpu: usize,
    only: Vec<String>,
    without: Vec<String>,
    /// The kernels' level, which ours takes from the same place.
    kernels: &'static str,
}

impl Options {
    fn parse() -> Result<Self, String> {
        let mut options = Self {
            files: PathBuf::new(),
            out: PathBuf::new(),
            bin: PathBuf::new(),
            python: PathBuf::new(),
            makers: Vec::new(),
            arrow: PathBuf::new(),
            mib: "64".to_owned(),
            scale: "0.25".to_owned(),
            rounds: 15,
            cpu: 0,
            only: Vec::new(),
            without: Vec::new(),
            kernels: level::hold()?,
        };
        let number = |text: &str| text.parse::<usize>().map_err(|_| format!("{text} is not a number"));
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| USAGE.to_owned())?;
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--bin" => options.bin = value.into(),
                "--python" => options.python = value.into(),
                "--maker" => options.makers.push(value.into()),
                "--arrow" => options.arrow = value.into(),
                "--mib" => options.mib = value,
                "--scale" => options.scale = value,
                "--rounds" => options.rounds = number(&value)?.max(1),
                "--cpu" => options.cpu = number(&value)?,
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                "--without" => options.without.push(value),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let paths = [&options.files, &options.out, &options.bin, &options.python, &options.arrow];
        if options.makers.is_empty() || paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    /// What a maker prints.
    fn make(&self, maker: &Path, arguments: &[&str]) -> Result<String, String> {
        let mut command = if maker.extension().is_some_and(|extension| extension == "py") {
            let mut command = Command::new(&self.python);
            command.arg(maker);
            command
        } else {
            Command::new(maker)
        };
        command.arg(&self.files).args(["--mib", &self.mib, "--scale", &self.scale]).args(arguments);
        let output = command.stderr(Stdio::inherit()).output();
        match output {
            Ok(output) if output.status.success() => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            Ok(output) => Err(format!("{}: {}", maker.display(), output.status)),
            Err(error) => Err(format!("{}: {error}", maker.display())),
        }
    }

    fn ours(&self, file: &Path) -> Command {
        let mut command = Command::new(self.bin.join("bench-stall-ours"));
        command.arg(file);
        command
    }

    /// The peers, by their names in the report.
    fn peers(&self, file: &Path) -> Vec<(&'static str, Command)> {
        let program = |path: PathBuf| {
            let mut command = Command::new(path);
            command.arg(file);
            command
        };
        let all = [
            ("parquet-rs", "parquet-rs push decoder", self.bin.join("bench-stall-parquet-rs")),
            ("arrow", "Arrow C++ ReadBatch", self.arrow.clone()),
        ];
        let wanted = all.into_iter().filter(|(key, _, _)| !self.without.iter().any(|without| without == key));
        wanted.map(|(_, name, path)| (name, program(path))).collect()
    }
}

/// What a run gathers.
#[derive(Debug, Default)]
struct Outcome {
    calls: Vec<Row>,
    cost: Vec<Row>,
    memory: Vec<Row>,
    pieces: Vec<Row>,
    versions: serde_json::Map<String, Value>,
    /// How much longer the readings took than their CPU time, one part a case.
    busy: Vec<f64>,
}

fn run(options: &Options) -> Result<(), String> {
    clock::pin(options.cpu)?;
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;

    let mut outcome = Outcome::default();
    for maker in &options.makers {
        let listing = options.make(maker, &["--list"])?;
        let listing: Value =
            serde_json::from_str(&listing).map_err(|error| format!("{}: {error}", maker.display()))?;
        for case in listing.as_array().ok_or("a listing of no cases")? {
            let text = |key: &str| case[key].as_str().ok_or_else(|| format!("a case without {key}"));
            let (name, group) = (text("name")?, text("group")?);
            let full_name = format!("{group} {name}");
            if !options.only.iter().all(|word| full_name.split(' ').any(|other| other == word)) {
                continue;
            }
            let file = options.files.join(text("file")?);
            if !file.exists() {
                options.make(maker, &["--case", name])?;
            }
            measure(options, case, name, group, &file, &mut outcome)?;
            let bytes = std::fs::metadata(&file).map_or(0, |metadata| metadata.len());
            if bytes > KEPT_BYTES_MAX {
                std::fs::remove_file(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            }
        }
    }
    if outcome.calls.is_empty() {
        return Err("no case has all of those words".to_owned());
    }
    let details = details(&outcome.calls);
    let report = report(options, outcome);
    let mut drawn = report.clone();
    drawn.rows.retain(|row| row.unit == "µs");
    let chart = chart::draw(&drawn, &chart::Axis::microseconds());
    report.write_with(&options.out, Some(&chart), &details)
}

fn measure(
    options: &Options,
    case: &Value,
    name: &str,
    group: &str,
    file: &Path,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let mut ours = options.ours(file);
    ours.envs(allocator::FRESH);
    let ours = replay("ours", ours, outcome)?.map_err(|error| format!("{name}: {error}"))?;
    let mut memory = options.ours(file);
    memory.arg("--memory");
    let our_memory = at_once("ours", memory)?;
    let mut ours = ours;
    for key in ["held_kib", "piece_kib"] {
        ours[key] = our_memory[key].clone();
    }
    let (mut calls, mut peaks) = (Vec::new(), Vec::new());
    let mut more = json!({ "in_one_piece": case["in_one_piece"], "calls": { "ours": ours }, "bytes": std::fs::metadata(file).map_or(0, |it| it.len()) });
    for (peer, command) in options.peers(file) {
        let answer = replay(peer, command, outcome)?;
        more["calls"][peer] = match answer {
            Ok(answer) => {
                // Who refuses a file did not read it.
                if answer["refused"].is_null() {
                    calls.push((peer.to_owned(), microseconds(&answer["longest_ns"])));
                }
                answer
            }
            Err(error) => json!({ "failed": error }),
        };
    }
    for (peer, mut command) in options.peers(file) {
        command.arg("--memory");
        match at_once(peer, command) {
            Ok(answer) if answer["refused"].is_null() => {
                peaks.push((peer.to_owned(), mib(&answer["peak_kib"])))
            }
            Ok(answer) => more["memory_refused"][peer] = answer["refused"].clone(),
            Err(error) => more["memory_refused"][peer] = json!(error),
        }
    }
    outcome.busy.push(
        ours["wall_ns"].as_f64().unwrap_or(0.0) / (ours["total_ns"].as_f64().unwrap_or(1.0) * REPLAYS as f64)
            - 1.0,
    );
    let row = Row {
        group: format!("longest call: {group} files"),
        case: name.to_owned(),
        unit: "µs",
        better: Better::Lower,
        ours: Some(microseconds(&ours["longest_ns"])),
        peers: calls,
        bar: BAR_US,
        ratio: None,
        more,
    };
    eprintln!("{}", progress(&row, &ours));
    outcome.calls.push(row);
    // What is larger by need is in the table of calls, with its reason.
    if case["in_one_piece"].is_null() && group != "usual" {
        outcome.pieces.push(Row {
            group: "largest piece of memory".to_owned(),
            case: name.to_owned(),
            unit: "MiB",
            better: Better::Lower,
            ours: Some(mib(&our_memory["piece_kib"])),
            peers: Vec::new(),
            bar: PIECE_MIB,
            ratio: None,
            more: json!({}),
        });
    }
    if let Some(bar) = case["memory_mib"].as_f64() {
        outcome.memory.push(Row {
            group: "peak resident memory".to_owned(),
            case: name.to_owned(),
            unit: "MiB",
            better: Better::Lower,
            ours: Some(mib(&our_memory["peak_kib"])),
            peers: peaks,
            bar,
            ratio: None,
            more: json!({}),
        });
    }
    if let (Some(bar), true) = (case["cost_bar"].as_f64(), ours["refused"].is_null()) {
        let row = cost(options, name, file, bar)?;
        if let Some((ratio, [low, high])) = row.ratio {
            eprintln!("  cost: {ratio:.3} ({low:.3}–{high:.3})");
        }
        outcome.cost.push(row);
    }
    Ok(())
}

/// What replays of a contestant show, or why it fails. It is a process of its own, which ends with this.
fn replay(
    name: &'static str,
    command: Command,
    outcome: &mut Outcome,
) -> Result<Result<Value, String>, String> {
    let mut contestant = Contestant::start(name, command)?;
    outcome.versions.insert(name.to_owned(), json!(contestant.version));
    let mut ask = || contestant.ask("replay").and_then(|answer| parse(name, &answer));
    let mut best = ask();
    for _ in 0..AGAIN {
        match &best {
            Ok(answer) if NEAR_BAR_US.contains(&microseconds(&answer["longest_ns"])) => {}
            _ => break,
        }
        let again = ask()?;
        if let Ok(answer) = &mut best
            && microseconds(&again["longest_ns"]) < microseconds(&answer["longest_ns"])
        {
            *answer = again;
        }
    }
    Ok(best)
}

/// The answer of a contestant that reads at once.
fn at_once(name: &'static str, command: Command) -> Result<Value, String> {
    let answer = Contestant::start(name, command)?.answer()?;
    parse(name, &answer)
}

fn parse(name: &str, answer: &str) -> Result<Value, String> {
    serde_json::from_str(answer).map_err(|_| format!("{name}: {answer}"))
}

/// What the default budget costs: a reading with it by one without an end, in the same process, in turns.
fn cost(options: &Options, name: &str, file: &Path, bar: f64) -> Result<Row, String> {
    let mut contestant = Contestant::start("ours", options.ours(file))?;
    for _ in 0..WARM_UP_RUNS {
        contestant.time("run")?;
    }
    let requests = ["run", "unlimited"];
    let mut times: [Vec<Time>; 2] = [Vec::new(), Vec::new()];
    for round in 0..options.rounds {
        for turn in 0..requests.len() {
            let index = (round + turn) % requests.len();
            times[index].push(contestant.time(requests[index])?.0);
        }
    }
    let [stepped, whole] =
        times.map(|times| -> Vec<f64> { times.iter().map(|time| time.cpu.as_secs_f64() * 1e3).collect() });
    let ratio = stats::median(&stepped) / stats::median(&whole);
    Ok(Row {
        group: "what bounded steps cost".to_owned(),
        case: name.to_owned(),
        unit: "×",
        better: Better::Lower,
        ours: Some(ratio),
        peers: Vec::new(),
        bar,
        ratio: Some((ratio, stats::ratio_interval(&stepped, &whole))),
        more: json!({ "stepped_ms": stats::median(&stepped), "unlimited_ms": stats::median(&whole) }),
    })
}

fn microseconds(nanoseconds: &Value) -> f64 {
    nanoseconds.as_f64().unwrap_or(f64::NAN) / 1e3
}

fn mib(kib: &Value) -> f64 {
    kib.as_f64().unwrap_or(f64::NAN) / 1024.0
}

fn progress(row: &Row, ours: &Value) -> String {
    let peers: Vec<String> = row.peers.iter().map(|(name, value)| format!("{name} {value:.0}")).collect();
    format!(
        "{}, {}: {:.0} µs in a {} of {} units, 99.9 % {:.0} µs, {} calls{}; a piece of {:.2} MiB, {:.1} MiB held; {}",
        row.group,
        row.case,
        row.ours.unwrap_or(f64::NAN),
        ours["longest_call"].as_str().unwrap_or("?"),
        ours["longest_units"],
        microseconds(&ours["p999_ns"]),
        ours["calls"],
        ours["refused"].as_str().map(|reason| format!(" (refused: {reason})")).unwrap_or_default(),
        mib(&ours["piece_kib"]),
        mib(&ours["held_kib"]),
        peers.join(", ")
    )
}

/// Our own calls, more closely.
fn details(rows: &[Row]) -> String {
    let mut text = "## Marquetry's calls\n\n\
        Of each file: calls, drops among them; the time that all but one in a thousand stay within; what the longest was but for drops, and the units that it \
        charged; the most units that any charged, and that call's time; the longest drop, which is the host's, of a batch or a reader: the system takes large \
        memory back page by page; nanoseconds by unit, in the median call and in the dearest, of those of 20,000 units or more; \
        the largest piece that a call asked the allocator for, and the most that was held at once, the host's pieces among it, both in MiB and in a reading \
        from the disk (what a library in C has for itself, zstd's window, is not counted).\n\n\
        | case | calls | 99.9 % µs | longest µs | call | its units | most units | its µs | drop µs | ns/unit median | ns/unit most | largest piece | peak | outcome |\n\
        |---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|---|\n"
        .to_owned();
    for row in rows {
        let ours = &row.more["calls"]["ours"];
        let unit = |key: &str| ours[key].as_f64().map_or("–".to_owned(), |value| format!("{value:.2}"));
        let outcome = match (ours["rows"].as_u64(), ours["refused"].as_str()) {
            (Some(rows), _) => format!("{rows} rows"),
            (None, reason) => reason.unwrap_or("?").replace('|', "/"),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {:.0} | {:.0} | {} | {} | {} | {:.0} | {:.0} | {} | {} | {:.2}{} | {:.1} | {outcome} |",
            row.case,
            ours["calls"],
            microseconds(&ours["p999_ns"]),
            microseconds(&ours["longest_ns"]),
            ours["longest_call"].as_str().unwrap_or("?"),
            ours["longest_units"],
            ours["units_max"],
            microseconds(&ours["units_max_ns"]),
            microseconds(&ours["drop_ns"]),
            unit("unit_ns_median"),
            unit("unit_ns_max"),
            mib(&ours["piece_kib"]),
            row.more["in_one_piece"].as_str().map(|why| format!(": {why}")).unwrap_or_default(),
            mib(&ours["held_kib"]),
        );
    }
    text + "\n"
}

fn report(options: &Options, outcome: Outcome) -> Report {
    let busy = stats::median(&outcome.busy);
    let versions: Vec<String> = outcome
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or("?")))
        .collect();
    let notes = vec![
        format!(
            "How long a reader keeps its thread before its host can do something else. Every call is timed by itself (the thread's CPU time, without that of \
             looking at the clock), a file is read {REPLAYS} times, and a call's time is the shortest of its {REPLAYS}: what others do on this machine is not the \
             reader's. A row is the longest call of a file; the bar is {BAR_US} µs, the task quota of Seastar's reactor. A row over the bar, and less than \
             four times over, is measured up to {AGAIN} times again, whosever it is, and the shortest counts. Ours: every step with the default \
             budget, every supply, the page index too, and what makes a reader, an assembler or a program of records; buffers of 128 KiB and more come fresh from the system each time, page faults and all. parquet-rs: \
             every `try_decode` and `push_ranges`. Arrow C++: every `HasNext` and `ReadBatch`, and what opens a file and a column."
        ),
        format!(
            "What bounded steps cost is the CPU time of a reading with the default budget by that of one with a budget without an end: medians of {} \
             rounds in turns, intervals 95 % by the bootstrap over rounds. Peak resident memory is that of a fresh process that reads the file once, from the \
             disk, as it asks for it, the program itself included.",
            options.rounds
        ),
        format!(
            "Usual files: {} of the read benchmark's rows. Adversarial ones: {} MiB each, or what the case says. A dash: the contestant cannot read the file.",
            options.scale, options.mib
        ),
        format!("{}. {}, kernels: {}.", versions.join(", "), clock::processor(), options.kernels),
        format!(
            "A reading took {:.0} % longer in the median case than its calls do, by the shortest of each: others' work on the machine, the clock's own calls, and what the host does between them.",
            busy * 100.0
        ),
    ];
    Report {
        name: "stall".to_owned(),
        title: "Never stall: the longest call".to_owned(),
        notes,
        setting: json!({
            "clock": "thread CPU time",
            "replays": REPLAYS,
            "rounds": options.rounds,
            "mib": options.mib,
            "scale": options.scale,
            "versions": outcome.versions,
            "processor": clock::processor(),
            "kernels": options.kernels,
            "busy_part": busy,
        }),
        rows: [outcome.calls, outcome.cost, outcome.memory, outcome.pieces].concat(),
    }
}
