//! The benchmark of scale: whether reading takes twice the time where there is twice as much of everything. See `README.md`.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, ExitCode};

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

    /// Those that read a file into Arrow arrays.
    fn contestants(&self, file: &str) -> Vec<(&'static str, Command)> {
        let program = |name: &str| {
            let mut command = Command::new(self.bin.join(name));
            command.arg("arrow").arg(self.files.join(file));
            command
        };
        let mut pyarrow = Command::new(&self.python);
        pyarrow.arg(&self.peers).args(["pyarrow", "arrow"]).arg(self.files.join(file));
        let mut all = vec![
            ("ours", program("bench-ours")),
            ("pyarrow", pyarrow),
            ("parquet-rs", program("bench-parquet-rs")),
        ];
        all.retain(|(name, _)| !self.without.iter().any(|without| without == name));
        all
    }
}

/// What an axis counts, and by what its times are divided.
fn unit(axis: &str) -> &'static str {
    match axis {
        "megabytes" => "ms a MB",
        "columns" => "ms a column",
        _ => "ms a row group",
    }
}

fn run(options: &Options) -> Result<(), String> {
    let listing = options.files.join("scale.json");
    let listing =
        std::fs::read_to_string(&listing).map_err(|error| format!("{}: {error}", listing.display()))?;
    let listing: Value = serde_json::from_str(&listing).map_err(|error| format!("scale.json: {error}"))?;
    clock::pin(0)?;
    let mut versions = serde_json::Map::new();
    let mut rows: Vec<Row> = Vec::new();
    for case in listing["cases"].as_array().into_iter().flatten() {
        let axis = case["axis"].as_str().ok_or("a case without an axis")?;
        if options.only.as_ref().is_none_or(|only| only == axis) {
            let row = measure(options, axis, case, &rows, &mut versions)?;
            row.tell();
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err("no axis is called so".to_owned());
    }
    let mut notes = vec![
        format!(
            "Median CPU time of {} readings of a whole file into Arrow arrays, from bytes that are in memory, on one CPU, by how much there is of one \
             thing: bytes (two columns of numbers, PLAIN, and two of words, in dictionaries; row groups of 500,000 rows), columns (of 1,000 numbers, in \
             one row group), or row groups (of 1,000 rows and ten columns). A row's value is the time for one of them; the bar is {BAR} × the least \
             of ours in the rows above it: nothing takes longer than in proportion.",
            options.rounds
        ),
        format!("{}. {}.", told(&versions), clock::processor()),
    ];
    if listing["scale"].as_f64() != Some(1.0) {
        notes.push(format!(
            "**A quick look: {} of everything.** Its numbers are no results.",
            listing["scale"]
        ));
    }
    let lines = lines(&rows);
    let report = Report {
        name: "scale".to_owned(),
        title: "More and more of everything: Marquetry and its peers".to_owned(),
        notes,
        setting: json!({
            "rounds": options.rounds,
            "scale": listing["scale"],
            "versions": versions,
            "processor": clock::processor(),
        }),
        rows,
    };
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    report.write(&options.out, Some(&chart::draw_lines(&report.title, "seconds of CPU", &lines)))
}

/// One contestant after the other: what a large file takes in memory there is once.
fn measure(
    options: &Options,
    axis: &str,
    case: &Value,
    before: &[Row],
    versions: &mut serde_json::Map<String, Value>,
) -> Result<Row, String> {
    let file = case["file"].as_str().ok_or("a case without a file")?;
    let expected = Count { rows: case["rows"].as_u64().unwrap_or(0), sum: case["sum"].as_u64().unwrap_or(0) };
    let size = match axis {
        "megabytes" => case["bytes"].as_f64().unwrap_or(f64::NAN) / 1e6,
        _ => case["size"].as_f64().unwrap_or(f64::NAN),
    };
    let (mut names, mut samples) = (Vec::new(), Vec::new());
    for (name, command) in options.contestants(file) {
        let mut contestant = Contestant::start(name, command)?;
        let (_, count) = contestant.run(true)?;
        if count != expected {
            return Err(format!("{file}: {name} found {count:?}, not {expected:?}"));
        }
        let mut times = Vec::new();
        for _ in 0..options.rounds {
            let (time, _) = contestant.run(false)?;
            times.push(time.cpu.as_secs_f64() * 1e3 / size);
        }
        versions.insert(name.to_owned(), json!(contestant.version));
        names.push(name);
        samples.push(times);
    }
    let shown = if axis == "megabytes" { format!("{size:.1} MB") } else { format!("{size} {axis}") };
    let mut row = Row::of_samples(format!("by {axis}"), shown, (unit(axis), 1.0), &names, &samples);
    let least = before.iter().filter(|other| other.group == row.group).filter_map(|other| other.ours);
    row.bar = BAR * least.fold(f64::NAN, f64::min);
    row.more = json!({
        "size": size,
        "file_bytes": case["bytes"],
        "intervals": names.iter().zip(&samples).map(|(name, times)| ((*name).to_owned(), json!(stats::median_interval(times)))).collect::<serde_json::Map<_, _>>(),
    });
    Ok(row)
}

/// What is drawn: seconds by size, a panel an axis and a line a contestant.
fn lines(rows: &[Row]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for row in rows {
        let size = row.more["size"].as_f64().unwrap_or(f64::NAN);
        let ours = row.ours.map(|ours| (chart::OURS, ours));
        let peers = row.peers.iter().map(|(name, value)| (name.as_str(), *value));
        for (name, value) in ours.into_iter().chain(peers) {
            let point = (size, value * size / 1e3);
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
