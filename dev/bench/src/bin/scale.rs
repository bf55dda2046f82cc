//! The benchmark of scale: whether reading takes twice the time where there is twice as much of everything. See `README.md`.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use marquetry_bench::chart::{self, Line};
use marquetry_bench::protocol::{Contestant, Count};
use marquetry_bench::report::{Report, Row};
use marquetry_bench::{clock, stats};
use serde_json::{Value, json};

const USAGE: &str = "usage: bench-scale --files DIR --out DIR --bin DIR --python PYTHON --peers PEERS.PY [--rounds 3] [--only AXIS] [--without NAME]…

--only keeps an axis: megabytes, columns, row groups.
--without leaves a contestant out: ours, pyarrow, parquet-rs.";

/// How much longer a unit may take in a file than in any smaller one: what is linear takes as long, and caches are left on the way.
const BAR: f64 = 1.25;

/// Memory that a contestant takes besides the file's bytes: of 100,000 columns, that is most.
const ROOM_BYTES: u64 = 2 << 30;

/// Why a peer may take four times as long for one size as for another.
const OF_FAULTS: &str = "parquet-rs allocates its arrays anew for each batch. Whether glibc returns that memory to the system each time, and takes a fault for each of its pages again, depends on what else is on the heap, down to the length of the file's path. \
    Where a size takes it several times as long for each MB as another, that is why; with `GLIBC_TUNABLES=glibc.malloc.trim_threshold=268435456:glibc.malloc.mmap_threshold=33554432` \
    it does not. Ours uses its memory again.";

/// A reading that takes so long is not repeated: what disturbs it is little beside it.
const LONG: Duration = Duration::from_secs(20);

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-scale: {message}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Options {
    files: PathBuf,
    out: PathBuf,
    bin: PathBuf,
    python: PathBuf,
    peers: PathBuf,
    rounds: usize,
    only: Option<String>,
    without: Vec<String>,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let mut options = Options { rounds: 3, ..Options::default() };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| USAGE.to_owned())?;
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--bin" => options.bin = value.into(),
                "--python" => options.python = value.into(),
                "--peers" => options.peers = value.into(),
                "--rounds" => {
                    let rounds: usize = value.parse().map_err(|_| format!("{value} is not a number"))?;
                    options.rounds = rounds.max(1);
                }
                "--only" => options.only = Some(value),
                "--without" => options.without.push(value),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let paths = [&options.files, &options.out, &options.bin, &options.python, &options.peers];
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    /// Those that read a file into Arrow arrays. Ours has batches of so many rows, or as it has them by default.
    fn contestants(&self, file: &str, batch_rows: Option<u64>) -> Vec<(&'static str, Command)> {
        let program = |name: &str| {
            let mut command = Command::new(self.bin.join(name));
            command.arg("arrow").arg(self.files.join(file));
            command
        };
        let mut ours = program("bench-ours");
        ours.args(batch_rows.map(|rows| rows.to_string()));
        let mut pyarrow = Command::new(&self.python);
        pyarrow.arg(&self.peers).args(["pyarrow", "arrow"]).arg(self.files.join(file));
        let mut all = vec![("ours", ours), ("pyarrow", pyarrow), ("parquet-rs", program("bench-parquet-rs"))];
        all.retain(|(name, _)| !self.without.iter().any(|without| without == name));
        all
    }
}

/// What an axis counts, and by what its times are divided.
fn unit(axis: &str) -> &'static str {
    match axis {
        "megabytes" => "µs a MB",
        "columns" => "µs a column",
        _ => "µs a row group",
    }
}

/// What a run gathers.
#[derive(Default)]
struct Outcome {
    rows: Vec<Row>,
    versions: serde_json::Map<String, Value>,
    /// What was not measured, and why.
    left_out: Vec<String>,
}

fn run(options: &Options) -> Result<(), String> {
    let listing = options.files.join("scale.json");
    let listing =
        std::fs::read_to_string(&listing).map_err(|error| format!("{}: {error}", listing.display()))?;
    let listing: Value = serde_json::from_str(&listing).map_err(|error| format!("scale.json: {error}"))?;
    clock::pin(0)?;
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    let mut outcome = Outcome::default();
    for case in listing["cases"].as_array().into_iter().flatten() {
        let axis = case["axis"].as_str().ok_or("a case without an axis")?;
        if options.only.as_ref().is_some_and(|only| only != axis) {
            continue;
        }
        let bytes = case["bytes"].as_u64().unwrap_or(0);
        match clock::available_memory().and_then(|free| no_room(bytes, free)) {
            Some(why) => outcome.leave_out(format!("{}: {why}", case["file"].as_str().unwrap_or(axis))),
            None => {
                measure(options, (axis, None), case, &mut outcome)?;
                if axis == "columns" {
                    // Peers' batches have all rows.
                    measure(options, (axis, case["rows"].as_u64()), case, &mut outcome)?;
                }
            }
        }
        // What a run has found is there, however it ends.
        report(options, &listing, &outcome)?;
    }
    if outcome.rows.is_empty() {
        return Err(format!("nothing was measured. {}", outcome.left_out.join("; ")));
    }
    Ok(())
}

fn report(options: &Options, listing: &Value, outcome: &Outcome) -> Result<(), String> {
    let mut notes = vec![
        format!(
            "Median CPU time of {} readings of a whole file into Arrow arrays, from bytes that are in memory, on one CPU, by how much there is of one \
             thing: bytes (two columns of numbers, PLAIN, and two of words, in dictionaries; row groups of 500,000 rows), columns (of 1,000 numbers, in \
             one row group; a batch of ours has 64 MiB, which is 74 rows of 100,000 columns, unless it is told to have all 1,000), or row groups (of 1,000 rows and ten columns). A reading that takes {} s is not repeated. A row's value is the time for one of them; the bar is {BAR} × the least \
             of ours in the rows above it: nothing takes longer than in proportion.",
            options.rounds,
            LONG.as_secs()
        ),
        format!("{}. {}.", told(&outcome.versions), clock::processor()),
    ];
    if outcome.versions.contains_key("parquet-rs") {
        notes.push(OF_FAULTS.to_owned());
    }
    if listing["scale"].as_f64() != Some(1.0) {
        notes.push(format!(
            "**A quick look: {} of everything.** Its numbers are no results.",
            listing["scale"]
        ));
    }
    if !outcome.left_out.is_empty() {
        notes.push(format!("Not measured: {}.", outcome.left_out.join("; ")));
    }
    let lines = lines(&outcome.rows);
    let report = Report {
        name: "scale".to_owned(),
        title: "More and more of everything: Marquetry and its peers".to_owned(),
        notes,
        setting: json!({
            "rounds": options.rounds,
            "scale": listing["scale"],
            "versions": outcome.versions,
            "processor": clock::processor(),
        }),
        rows: outcome.rows.clone(),
    };
    report.write(&options.out, Some(&chart::draw_lines(&report.title, "seconds of CPU", &lines)))
}

impl Outcome {
    fn leave_out(&mut self, told: String) {
        eprintln!("not measured: {told}");
        self.left_out.push(told);
    }
}

/// Why a file cannot be measured, if it cannot: a contestant holds its bytes, and some batches.
fn no_room(bytes: u64, free: u64) -> Option<String> {
    let needed = bytes + bytes / 16 + ROOM_BYTES;
    (needed > free).then(|| {
        format!("it takes {:.1} GB of memory, and {:.1} are free", needed as f64 / 1e9, free as f64 / 1e9)
    })
}

/// Adds a row: one contestant after the other, as what a large file takes in memory there is once.
fn measure(
    options: &Options,
    (axis, batch_rows): (&str, Option<u64>),
    case: &Value,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let file = case["file"].as_str().ok_or("a case without a file")?;
    let expected = Count { rows: case["rows"].as_u64().unwrap_or(0), sum: case["sum"].as_u64().unwrap_or(0) };
    let size = match axis {
        "megabytes" => case["bytes"].as_f64().unwrap_or(f64::NAN) / 1e6,
        _ => case["size"].as_f64().unwrap_or(f64::NAN),
    };
    let (mut names, mut samples) = (Vec::new(), Vec::new());
    for (name, command) in options.contestants(file, batch_rows) {
        match times(name, command, expected, options.rounds) {
            Ok((version, times)) => {
                outcome.versions.insert(name.to_owned(), json!(version));
                names.push(name);
                samples.push(times.iter().map(|time| time.as_secs_f64() * 1e6 / size).collect::<Vec<f64>>());
            }
            // What a peer cannot read is no reason not to read the rest.
            Err(error) if name != "ours" => outcome.leave_out(format!("{file}: {error}")),
            Err(error) => return Err(format!("{file}: {error}")),
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    let shown = if axis == "megabytes" { format!("{size:.1} MB") } else { format!("{size} {axis}") };
    let group = format!("by {axis}{}", if batch_rows.is_some() { ", all rows in a batch" } else { "" });
    let mut row = Row::of_samples(group, shown, (unit(axis), 1.0), &names, &samples);
    let least = outcome.rows.iter().filter(|other| other.group == row.group).filter_map(|other| other.ours);
    row.bar = BAR * least.fold(f64::NAN, f64::min);
    row.more = json!({
        "size": size,
        "file_bytes": case["bytes"],
        "intervals": names.iter().zip(&samples).map(|(name, times)| ((*name).to_owned(), json!(stats::median_interval(times)))).collect::<serde_json::Map<_, _>>(),
    });
    row.tell();
    outcome.rows.push(row);
    Ok(())
}

/// The CPU times of a contestant's readings, and its version.
fn times(
    name: &'static str,
    command: Command,
    expected: Count,
    rounds: usize,
) -> Result<(String, Vec<Duration>), String> {
    let mut contestant = Contestant::start(name, command)?;
    let (_, count) = contestant.run(true)?;
    if count != expected {
        return Err(format!("{name} found {count:?}, not {expected:?}"));
    }
    let mut times = Vec::new();
    while times.len() < rounds && times.last().is_none_or(|time| *time < LONG) {
        times.push(contestant.run(false)?.0.cpu);
    }
    Ok((contestant.version.clone(), times))
}

/// What is drawn: seconds by size, a panel an axis and a line a contestant.
fn lines(rows: &[Row]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let size = row.more["size"].as_f64().unwrap_or(f64::NAN);
        let ours = row.ours.map(|ours| (chart::OURS, ours));
        let peers = row.peers.iter().map(|(name, value)| (name.as_str(), *value));
        for (name, value) in ours.into_iter().chain(peers) {
            let point = (size, value * size / 1e6);
            match lines.iter_mut().find(|line| line.panel == row.group && line.name == name) {
                Some(line) => line.points.push(point),
                None => {
                    lines.push(Line { panel: row.group.clone(), name: name.to_owned(), points: vec![point] })
                }
            }
        }
    }
    lines
}

fn told(versions: &serde_json::Map<String, Value>) -> String {
    let all = versions.iter().map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or("?")));
    all.collect::<Vec<_>>().join(", ")
}
