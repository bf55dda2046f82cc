//! The reading benchmark's driver: every case × product, contestants in turns. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use marquetry_bench::protocol::{Contestant, Count, Product, Time};
use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::{chart, clock, stats};
use serde_json::{Value, json};

const USAGE: &str =
    "usage: bench-read --files DIR --out DIR --bin DIR --python PYTHON --peers PEERS.PY --readbatch PROGRAM
                  --marquetry PROGRAM [--nested] [--rounds 15] [--clock cpu|wall] [--cpu NUMBER] [--only WORDS]
                  [--without NAME]…

--nested reads the files of nested.json, not those of cases.json.
--only keeps the cases whose product and name (`arrow int32 PLAIN SNAPPY`) have all of the words.
--without leaves a contestant out: ours, readbatch, parquet-rs, pyarrow, duckdb, polars.";

/// The largest multiple of the best peer's time that is good.
const BAR: f64 = 1.5;
/// The same where records are printed.
const BAR_RECORDS: f64 = 1.0;

/// Untimed readings before the first round, after the one that proves the result: caches, allocators and branch predictors settle.
const WARM_UP_RUNS: usize = 2;

/// A machine on which elapsed times exceed CPU times by more than this part was busy with something else.
const BUSY_PART: f64 = 0.05;

fn main() -> ExitCode {
    let result = Options::parse().and_then(|options| run(&options));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-read: {message}");
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
    readbatch: PathBuf,
    marquetry: PathBuf,
    nested: bool,
    rounds: usize,
    wall: bool,
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
            readbatch: PathBuf::new(),
            marquetry: PathBuf::new(),
            nested: false,
            rounds: 15,
            wall: false,
            cpu: 0,
            only: Vec::new(),
            without: Vec::new(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            if name == "--nested" {
                options.nested = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| USAGE.to_owned())?;
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--bin" => options.bin = value.into(),
                "--python" => options.python = value.into(),
                "--peers" => options.peers = value.into(),
                "--readbatch" => options.readbatch = value.into(),
                "--marquetry" => options.marquetry = value.into(),
                "--rounds" => options.rounds = number(&value)?.max(1),
                "--clock" if value == "cpu" || value == "wall" => options.wall = value == "wall",
                "--cpu" => options.cpu = number(&value)?,
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                "--without" => options.without.push(value),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let paths = [
            &options.files,
            &options.out,
            &options.bin,
            &options.python,
            &options.peers,
            &options.readbatch,
            &options.marquetry,
        ];
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    /// The contestants of a product on a file: the name to leave one out by, the name in the report, how to start it.
    fn contestants(&self, product: Product, file: &Path) -> Vec<(&'static str, &'static str, Command)> {
        let program = |path: PathBuf, arguments: &[&str]| {
            let mut command = Command::new(path);
            command.args(arguments).arg(file);
            command
        };
        let python = |name: &str| {
            let mut command = Command::new(&self.python);
            command.arg(&self.peers).args([name, product.name()]).arg(file);
            command
        };
        let ours = ("ours", "ours", program(self.bin.join("bench-ours"), &[product.name()]));
        let parquet_rs =
            ("parquet-rs", "parquet-rs", program(self.bin.join("bench-parquet-rs"), &[product.name()]));
        let pyarrow = ("pyarrow", "pyarrow", python("pyarrow"));
        let mut all = match product {
            Product::Dense => {
                vec![
                    ours,
                    ("readbatch", "Arrow C++ ReadBatch", program(self.readbatch.clone(), &[])),
                    parquet_rs,
                ]
            }
            Product::Arrow => vec![
                ours,
                pyarrow,
                parquet_rs,
                ("duckdb", "DuckDB", python("duckdb")),
                ("polars", "Polars", python("polars")),
            ],
            Product::Dictionary => vec![ours, pyarrow, parquet_rs],
            Product::Records => vec![
                ("ours", "ours", python(&self.marquetry.to_string_lossy())),
                ("duckdb", "DuckDB", python("duckdb")),
                ("polars", "Polars", python("polars")),
                pyarrow,
            ],
        };
        all.retain(|(key, _, _)| !self.without.iter().any(|without| without == key));
        all
    }
}

fn number(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

fn run(options: &Options) -> Result<(), String> {
    let listed = if options.nested { "nested" } else { "cases" };
    let listing = options.files.join(format!("{listed}.json"));
    let listing =
        std::fs::read_to_string(&listing).map_err(|error| format!("{}: {error}", listing.display()))?;
    let listing: Value = serde_json::from_str(&listing).map_err(|error| format!("{listed}.json: {error}"))?;
    let cases = listing[listed].as_array().ok_or("a listing of no cases")?;
    clock::pin(options.cpu)?;

    let mut outcome = Outcome::default();
    for product in Product::ALL {
        for case in cases {
            let name = case["name"].as_str().ok_or("a case without a name")?;
            let made = case["products"]
                .as_array()
                .is_some_and(|products| products.iter().any(|p| p == product.name()));
            let full_name = format!("{} {name}", product.name());
            if made && options.only.iter().all(|word| full_name.split(' ').any(|other| other == word)) {
                outcome.rows.push(compare(
                    options,
                    product,
                    name,
                    case,
                    &mut outcome.versions,
                    &mut outcome.busy,
                )?);
            }
        }
    }
    if outcome.rows.is_empty() {
        return Err("no case has all of those words".to_owned());
    }
    let report = report(options, &listing, outcome);
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    report.write(&options.out, Some(&chart::draw(&report, &chart::Axis::relative(BAR))))
}

/// What a run gathers.
#[derive(Debug, Default)]
struct Outcome {
    rows: Vec<Row>,
    versions: serde_json::Map<String, Value>,
    /// How much longer everything took than its CPU time: one part a case.
    busy: Vec<f64>,
}

fn compare(
    options: &Options,
    product: Product,
    name: &str,
    case: &Value,
    versions: &mut serde_json::Map<String, Value>,
    busy: &mut Vec<f64>,
) -> Result<Row, String> {
    let file = options.files.join(case["file"].as_str().ok_or("a case without a file")?);
    let mut contestants = Vec::new();
    for (_, name, command) in options.contestants(product, &file) {
        contestants.push(Contestant::start(name, command)?);
    }
    let expected = Count { rows: case["rows"].as_u64().unwrap_or(0), sum: case["sum"].as_u64().unwrap_or(0) };
    for contestant in &mut contestants {
        versions.insert(contestant.name.to_owned(), json!(contestant.version));
        let (_, count) =
            contestant.run(true).map_err(|error| format!("{} {name}: {error}", product.name()))?;
        if count != expected {
            return Err(format!(
                "{} {name}: {} found {count:?}, not {expected:?}",
                product.name(),
                contestant.name
            ));
        }
        for _ in 0..WARM_UP_RUNS {
            contestant.run(false)?;
        }
    }
    let mut times: Vec<Vec<Time>> = contestants.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for turn in 0..contestants.len() {
            // Each round begins with another contestant, so that none always follows the same one.
            let index = (round + turn) % contestants.len();
            let (time, count) = contestants[index].run(false)?;
            if count.rows != expected.rows {
                return Err(format!("{name}: {} counted {} rows", contestants[index].name, count.rows));
            }
            times[index].push(time);
        }
    }
    let names: Vec<&'static str> = contestants.iter().map(|contestant| contestant.name).collect();
    busy.push(busy_part(&times));
    let row = judge(options, product, name, case, &names, &times);
    eprintln!("{}", progress(&row));
    Ok(row)
}

fn judge(
    options: &Options,
    product: Product,
    name: &str,
    case: &Value,
    names: &[&str],
    times: &[Vec<Time>],
) -> Row {
    let by_clock = |wall: bool| -> Vec<Vec<f64>> {
        let of = |time: &Time| milliseconds(if wall { time.wall } else { time.cpu });
        times.iter().map(|times| times.iter().map(of).collect()).collect()
    };
    let samples = by_clock(options.wall);
    let others = by_clock(!options.wall);
    let mut peers = Vec::new();
    let (mut ours, mut best): (Option<usize>, Option<usize>) = (None, None);
    let (mut intervals, mut other_clock) = (serde_json::Map::new(), serde_json::Map::new());
    for (index, name) in names.iter().enumerate() {
        let median = stats::median(&samples[index]);
        intervals.insert((*name).to_owned(), json!(stats::median_interval(&samples[index])));
        other_clock.insert((*name).to_owned(), json!(stats::median(&others[index])));
        if *name == "ours" {
            ours = Some(index);
            continue;
        }
        peers.push(((*name).to_owned(), median));
        if best.is_none_or(|best| median < stats::median(&samples[best])) {
            best = Some(index);
        }
    }
    let best_ms = best.map_or(f64::NAN, |best| stats::median(&samples[best]));
    let ours_ms = ours.map(|ours| stats::median(&samples[ours]));
    let ratio = ours.zip(best).map(|(ours, best)| {
        (stats::median(&samples[ours]) / best_ms, stats::ratio_interval(&samples[ours], &samples[best]))
    });
    Row {
        group: group(product).to_owned(),
        case: name.to_owned(),
        unit: "ms",
        better: Better::Lower,
        ours: ours_ms,
        peers,
        bar: if product == Product::Records { BAR_RECORDS } else { BAR } * best_ms,
        ratio,
        more: json!({
            "product": product.name(),
            "values": case["rows"],
            "file_bytes": case["bytes"],
            "intervals": intervals,
            if options.wall { "cpu" } else { "wall" }: other_clock,
        }),
    }
}

fn group(product: Product) -> &'static str {
    match product {
        Product::Dense => "dense values and levels",
        Product::Arrow => "Arrow arrays",
        Product::Dictionary => "Arrow arrays, dictionaries kept",
        Product::Records => "records to JSON lines",
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn busy_part(times: &[Vec<Time>]) -> f64 {
    let total = |of: fn(&Time) -> Duration| times.iter().flatten().map(of).sum::<Duration>().as_secs_f64();
    total(|time| time.wall) / total(|time| time.cpu) - 1.0
}

fn progress(row: &Row) -> String {
    let ours = row.ours.map(|ours| ("ours", ours));
    let all = ours.into_iter().chain(row.peers.iter().map(|(name, value)| (name.as_str(), *value)));
    let values: Vec<String> = all.map(|(name, value)| format!("{name} {value:.1}")).collect();
    let mut text = format!("{}, {}: {} ms", row.group, row.case, values.join(", "));
    if let Some((ratio, [low, high])) = row.ratio {
        text += &format!("; {ratio:.2} ({low:.2}–{high:.2}) × the best");
    }
    text
}

fn report(options: &Options, listing: &Value, outcome: Outcome) -> Report {
    let time = if options.wall { "elapsed" } else { "CPU" };
    let busy = stats::median(&outcome.busy);
    let versions: Vec<String> = outcome
        .versions
        .iter()
        .map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or("?")))
        .collect();
    let mut notes = vec![
        format!(
            "Median {time} time of {} rounds to read a file{} once, from bytes that are in memory, on one CPU; lower is better. \
             Contestants took turns. The bar is {BAR} × the best peer{}; intervals are 95 %, by the bootstrap over rounds.",
            options.rounds,
            if options.nested { "" } else { " of one column" },
            if options.nested {
                ", and the best peer itself where records are printed (Marquetry's time is then the whole program's)"
            } else {
                ""
            },
        ),
        format!("{}. {}.", versions.join(", "), clock::processor()),
    ];
    if listing["scale"].as_f64() != Some(1.0) {
        notes
            .push(format!("**A quick look: {} of the rows.** Its numbers are no results.", listing["scale"]));
    }
    if busy > BUSY_PART {
        let part = busy * 100.0;
        notes.push(format!(
            "The machine was busy: elapsed times exceeded CPU times by {part:.0} % in the median case."
        ));
    }
    Report {
        name: if options.nested { "nested" } else { "read" }.to_owned(),
        title: if options.nested {
            "Reading nested Parquet, and printing records: Marquetry and its peers"
        } else {
            "Reading Parquet: Marquetry and its peers"
        }
        .to_owned(),
        notes,
        setting: json!({
            "clock": if options.wall { "wall" } else { "cpu" },
            "rounds": options.rounds,
            "scale": listing["scale"],
            "versions": outcome.versions,
            "processor": clock::processor(),
            "busy_part": busy,
        }),
        rows: outcome.rows,
    }
}
