//! The writing benchmark's driver: every case, contestants in turns; time and size. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use marquetry_bench::protocol::{Contestant, Time};
use marquetry_bench::report::{Report, Row};
use marquetry_bench::{chart, clock};
use serde_json::{Value, json};

const USAGE: &str =
    "usage: bench-write --files DIR --out DIR --bin DIR --python PYTHON --peers PEERS_WRITE.PY
                   [--folder DIR] [--rounds 7] [--cpu NUMBER] [--only WORDS] [--without NAME]…

--folder is where DuckDB writes: in memory (/dev/shm).
--only keeps the cases whose name (`int32 PLAIN SNAPPY`) has all of the words.
--without leaves a contestant out: ours, parquet-rs, pyarrow, duckdb, polars.";

/// The largest multiple of the best peer's time that is good.
const BAR: f64 = 1.0;

/// And that of the smallest file: a few bytes a page are no difference.
const SIZE_BAR: f64 = 1.001;

/// Untimed writings before the first round, after the one that proves the result.
const WARM_UP_RUNS: usize = 1;

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-write: {message}");
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
    peers: PathBuf,
    folder: PathBuf,
    rounds: usize,
    cpu: usize,
    only: Vec<String>,
    without: Vec<String>,
}

impl Options {
    fn parse() -> Result<Self, String> {
        let mut options = Self {
            files: PathBuf::new(),
            out: PathBuf::new(),
            bin: PathBuf::new(),
            python: PathBuf::new(),
            peers: PathBuf::new(),
            folder: "/dev/shm".into(),
            rounds: 7,
            cpu: 0,
            only: Vec::new(),
            without: Vec::new(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| USAGE.to_owned())?;
            let number = |text: &str| text.parse::<usize>().map_err(|_| format!("{text} is not a number"));
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--bin" => options.bin = value.into(),
                "--python" => options.python = value.into(),
                "--peers" => options.peers = value.into(),
                "--folder" => options.folder = value.into(),
                "--rounds" => options.rounds = number(&value)?.max(1),
                "--cpu" => options.cpu = number(&value)?,
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
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

    /// The contestants of a case: the name to leave one out by, the name in the report, how to start it.
    fn contestants(&self, case: &Value) -> Result<Vec<(&'static str, &'static str, Command)>, String> {
        let text = |key: &str| case[key].as_str().ok_or_else(|| format!("a case without its {key}"));
        let (file, encoding, codec) = (self.files.join(text("file")?), text("encoding")?, text("codec")?);
        let program = |name: &str| {
            let mut command = Command::new(self.bin.join(name));
            command.arg(&file).args([encoding, codec]);
            command
        };
        let python = |name: &str| {
            let mut command = Command::new(&self.python);
            command.arg(&self.peers).arg(name).arg(&file).args([encoding, codec]).arg(&self.folder);
            command
        };
        let mut all = vec![
            ("ours", "ours", program("bench-write-ours")),
            ("pyarrow", "pyarrow", python("pyarrow")),
            ("parquet-rs", "parquet-rs", program("bench-write-parquet-rs")),
        ];
        // The others cannot be told an encoding.
        if encoding == "default" {
            all.push(("duckdb", "DuckDB", python("duckdb")));
            all.push(("polars", "Polars", python("polars")));
        }
        all.retain(|(key, _, _)| !self.without.iter().any(|without| without == key));
        Ok(all)
    }
}

fn run(options: &Options) -> Result<(), String> {
    let listing = options.files.join("write.json");
    let listing =
        std::fs::read_to_string(&listing).map_err(|error| format!("{}: {error}", listing.display()))?;
    let listing: Value = serde_json::from_str(&listing).map_err(|error| format!("write.json: {error}"))?;
    let cases = listing["cases"].as_array().ok_or("a listing of no cases")?;
    clock::pin(options.cpu)?;
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    let mut versions = serde_json::Map::new();
    for case in cases {
        let name = case["name"].as_str().ok_or("a case without a name")?;
        if options.only.iter().all(|word| name.split(' ').any(|other| other == word)) {
            let [time, size] = compare(options, name, case, &mut versions)?;
            times.push(time);
            sizes.push(size);
        }
    }
    if times.is_empty() {
        return Err("no case has all of those words".to_owned());
    }
    times.append(&mut sizes);
    let report = report(options, &listing, &versions, times);
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    report.write(&options.out, Some(&chart::draw(&report, &chart::Axis::relative(BAR))))
}

fn compare(
    options: &Options,
    name: &str,
    case: &Value,
    versions: &mut serde_json::Map<String, Value>,
) -> Result<[Row; 2], String> {
    let mut contestants = Vec::new();
    for (_, name, command) in options.contestants(case)? {
        contestants.push(Contestant::start(name, command)?);
    }
    for contestant in &mut contestants {
        versions.insert(contestant.name.to_owned(), json!(contestant.version));
        let (_, count) = contestant.run(true).map_err(|error| format!("{name}: {error}"))?;
        let is_right = Some(count.rows) == case["rows"].as_u64()
            && (count.sum == 0 || case["sum"].as_u64().is_none_or(|sum| sum == count.sum));
        if !is_right {
            return Err(format!("{name}: {} wrote what is read as {count:?}", contestant.name));
        }
        for _ in 0..WARM_UP_RUNS {
            contestant.run(false)?;
        }
    }
    let mut times: Vec<Vec<Time>> = contestants.iter().map(|_| Vec::new()).collect();
    let mut bytes = vec![0; contestants.len()];
    for round in 0..options.rounds {
        for turn in 0..contestants.len() {
            // Each round begins with another contestant, so that none always follows the same one.
            let index = (round + turn) % contestants.len();
            let (time, count) = contestants[index].run(false)?;
            times[index].push(time);
            bytes[index] = count.sum;
        }
    }
    let names: Vec<&'static str> = contestants.iter().map(|contestant| contestant.name).collect();
    let samples: Vec<Vec<f64>> =
        times.iter().map(|times| times.iter().map(|time| milliseconds(time.cpu)).collect()).collect();
    #[expect(clippy::cast_precision_loss, reason = "a chart needs no more")]
    let sizes: Vec<Vec<f64>> = bytes.iter().map(|bytes| vec![*bytes as f64 / 1e6]).collect();
    let group = case["group"].as_str().unwrap_or_default();
    let rows = [
        Row::of_samples(format!("time: {group}"), name.to_owned(), ("ms", BAR), &names, &samples),
        Row::of_samples(format!("size: {group}"), name.to_owned(), ("MB", SIZE_BAR), &names, &sizes),
    ];
    rows.iter().for_each(Row::tell);
    Ok(rows)
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn report(
    options: &Options,
    listing: &Value,
    versions: &serde_json::Map<String, Value>,
    rows: Vec<Row>,
) -> Report {
    let told: Vec<String> = versions
        .iter()
        .map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or("?")))
        .collect();
    let mut notes = vec![
        format!(
            "Median CPU time of {} rounds to write a table that is in memory, to memory that is there (DuckDB and Polars to memory that grows), and the file's size, on one CPU; lower is better. Row groups of \
             1,048,576 rows, statistics of column chunks, neither page index nor checksums; ZSTD at level 1. Contestants took turns. The bar \
             is the best peer, and a thousandth more for sizes; intervals are 95 %, by the bootstrap over rounds.",
            options.rounds
        ),
        format!("{}. {}.", told.join(", "), clock::processor()),
    ];
    if listing["scale"].as_f64() != Some(1.0) {
        notes
            .push(format!("**A quick look: {} of the rows.** Its numbers are no results.", listing["scale"]));
    }
    Report {
        name: "write".to_owned(),
        title: "Writing Parquet: Marquetry and its peers".to_owned(),
        notes,
        setting: json!({
            "rounds": options.rounds,
            "scale": listing["scale"],
            "versions": versions,
            "processor": clock::processor(),
        }),
        rows,
    }
}
