//! The reading benchmark's driver: every case × product, contestants in turns. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use marquetry_bench::bars::{self, BAR, BAR_COPY, BAR_SHARED};
use marquetry_bench::protocol::{Contestant, Count, Product, Time};
use marquetry_bench::report::{Better, COPY, Report, Row};
use marquetry_bench::{chart, clock, level, stats, turns};
use serde_json::{Value, json};

const USAGE: &str =
    "usage: bench-read --files DIR --out DIR --bin DIR --python PYTHON --peers PEERS.PY --readbatch PROGRAM
                  --marquetry PROGRAM [--nested] [--rounds 15] [--clock cpu|wall] [--cpu NUMBER] [--only WORDS]
                  [--without NAME]… [--name NAME]

--nested reads the files of nested.json, not those of cases.json.
Ours reads at each level of instructions that this processor has, a group of rows each, or at that of BENCH_LEVEL alone.
--name is that of the results: read or nested, if it is not given.
--only keeps the cases whose product and name (`arrow int32 PLAIN SNAPPY`) have all of the words.
--without leaves a contestant out: ours, readbatch, parquet-rs, pyarrow, duckdb, polars, copy.";

/// Values of a copy at a time: as many as a batch of the reader's has.
const COPY_VALUES: &str = "8192";

/// The portable kernels have no bar: they are for processors that the peers' are not made for either.
const UNJUDGED_LEVEL: &str = "portable";

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
    name: Option<String>,
    levels: Vec<&'static str>,
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
            name: None,
            levels: level::wanted()?,
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
                "--name" => options.name = Some(value),
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

    /// The contestants of a product on a file, but for a copy: the name to leave one out by, the name in the report (of ours, the level), how to start it.
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
        let mut all = Vec::new();
        for level in self.levels.iter().copied() {
            let mut command = match product {
                Product::Records => python(&self.marquetry.to_string_lossy()),
                _ => program(self.bin.join("bench-ours"), &[product.name()]),
            };
            command.env(level::VARIABLE, level);
            all.push(("ours", level, command));
            // The command knows no levels but the processor's own.
            if product == Product::Records {
                break;
            }
        }
        let parquet_rs =
            ("parquet-rs", "parquet-rs", program(self.bin.join("bench-parquet-rs"), &[product.name()]));
        let pyarrow = ("pyarrow", "pyarrow", python("pyarrow"));
        let duckdb = ("duckdb", "DuckDB", python("duckdb"));
        let polars = ("polars", "Polars", python("polars"));
        all.extend(match product {
            Product::Dense => {
                vec![("readbatch", "Arrow C++ ReadBatch", program(self.readbatch.clone(), &[])), parquet_rs]
            }
            Product::Arrow => vec![pyarrow, parquet_rs, duckdb, polars],
            Product::Dictionary => vec![pyarrow, parquet_rs],
            Product::Records => vec![duckdb, polars, pyarrow],
        });
        all
    }
}

/// How a copy of a case's bytes is started, if values without nulls of one width are the file's bytes.
fn copy(options: &Options, case: &Value, file: &Path) -> Option<Command> {
    if case["encoding"] != "PLAIN" || case["codec"] != "UNCOMPRESSED" || case["nulls"] != "none" {
        return None;
    }
    let value_bytes = match case["type"].as_str()? {
        "int32" | "float" => "4",
        "int64" | "double" => "8",
        "fixed16" => "16",
        _ => return None,
    };
    let mut command = Command::new(options.bin.join("bench-copy"));
    command.args([value_bytes, COPY_VALUES]).arg(file);
    Some(command)
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
                compare(options, product, name, case, &mut outcome)?;
            }
        }
    }
    if outcome.rows.is_empty() {
        return Err("no case has all of those words".to_owned());
    }
    // A level's rows of all products follow each other.
    let place = |row: &Row| options.levels.iter().position(|level| row.more["level"] == *level);
    outcome.rows.sort_by_key(place);
    let report = report(options, &listing, outcome);
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    report.write(&options.out, Some(&chart::draw(&report, &chart::Axis::relative())))
}

/// What a run gathers.
#[derive(Debug, Default)]
struct Outcome {
    rows: Vec<Row>,
    versions: serde_json::Map<String, Value>,
    /// How much longer everything took than its CPU time: one part a case.
    busy: Vec<f64>,
    /// Peers that cannot read a case, and why.
    left_out: Vec<String>,
}

fn compare(
    options: &Options,
    product: Product,
    name: &str,
    case: &Value,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let file = options.files.join(case["file"].as_str().ok_or("a case without a file")?);
    let full_name = format!("{} {name}", product.name());
    let expected = Count { rows: case["rows"].as_u64().unwrap_or(0), sum: case["sum"].as_u64().unwrap_or(0) };
    let mut all = options.contestants(product, &file);
    all.extend(copy(options, case, &file).map(|command| ("copy", COPY, command)));
    all.retain(|(key, _, _)| !options.without.iter().any(|without| without == key));
    let mut contestants = Vec::new();
    for (key, name, command) in all {
        let mut contestant = Contestant::start(name, command)?;
        match contestant.run(true) {
            Ok((_, count)) if count == expected || (key == "copy" && count.rows == expected.rows) => {}
            Ok((_, count)) => return Err(format!("{full_name}: {name} found {count:?}, not {expected:?}")),
            Err(error) if key == "ours" => return Err(format!("{full_name}: {error}")),
            Err(error) => {
                outcome.left_out.push(format!("{full_name}: {error}"));
                continue;
            }
        }
        let shown = if key == "ours" { key } else { name };
        outcome.versions.insert(shown.to_owned(), json!(contestant.version));
        for _ in 0..WARM_UP_RUNS {
            contestant.run(false)?;
        }
        contestants.push((key == "ours", contestant));
    }
    let mut times: Vec<Vec<Time>> = contestants.iter().map(|_| Vec::new()).collect();
    for round in 0..options.rounds {
        for index in turns::of_round(round, contestants.len()) {
            let (_, contestant) = &mut contestants[index];
            let (time, count) = contestant.run(false)?;
            if count.rows != expected.rows {
                return Err(format!("{full_name}: {} counted {} rows", contestant.name, count.rows));
            }
            times[index].push(time);
        }
    }
    outcome.busy.push(busy_part(&times));
    let measured: Vec<Measured> = contestants
        .iter()
        .zip(times)
        .map(|((is_ours, contestant), times)| Measured { is_ours: *is_ours, name: contestant.name, times })
        .collect();
    let (ours, peers): (Vec<&Measured>, Vec<&Measured>) = measured.iter().partition(|one| one.is_ours);
    // Where ours was left out, the peers have a row all the same.
    let rows = if ours.is_empty() { vec![None] } else { ours.into_iter().map(Some).collect() };
    for ours in rows {
        let row = judge(options, product, name, case, ours, &peers);
        eprintln!("{}", progress(&row));
        outcome.rows.push(row);
    }
    Ok(())
}

/// What a contestant took, round by round.
struct Measured {
    is_ours: bool,
    /// Of ours, the level of its kernels.
    name: &'static str,
    times: Vec<Time>,
}

impl Measured {
    fn milliseconds(&self, wall: bool) -> Vec<f64> {
        self.times.iter().map(|time| milliseconds(if wall { time.wall } else { time.cpu })).collect()
    }
}

/// The row of ours at one level, beside the peers.
fn judge(
    options: &Options,
    product: Product,
    name: &str,
    case: &Value,
    ours: Option<&Measured>,
    peers: &[&Measured],
) -> Row {
    let (mut intervals, mut other_clock) = (serde_json::Map::new(), serde_json::Map::new());
    for one in ours.iter().chain(peers) {
        let shown = if one.is_ours { "ours" } else { one.name };
        intervals.insert(shown.to_owned(), json!(stats::median_interval(&one.milliseconds(options.wall))));
        other_clock.insert(shown.to_owned(), json!(stats::median(&one.milliseconds(!options.wall))));
    }
    let median = |one: &Measured| stats::median(&one.milliseconds(options.wall));
    let (copies, readers): (Vec<&Measured>, Vec<&Measured>) =
        peers.iter().partition(|peer| peer.name == COPY);
    let best = readers.into_iter().min_by(|a, b| median(a).total_cmp(&median(b)));
    let best_ms = best.map_or(f64::NAN, median);
    let ratio = ours.zip(best).map(|(ours, best)| {
        let interval =
            stats::ratio_interval(&ours.milliseconds(options.wall), &best.milliseconds(options.wall));
        (median(ours) / best_ms, interval)
    });
    let level = ours.map(|ours| ours.name);
    let is_lower_level = level.is_some_and(|level| options.levels.first() != Some(&level));
    let bar = match product {
        _ if level == Some(UNJUDGED_LEVEL) => f64::NAN,
        Product::Records => BAR_SHARED * best_ms,
        _ => copies.first().map_or_else(|| bar_of(case) * best_ms, |copy| BAR_COPY * median(copy)),
    };
    Row {
        group: match level {
            Some(level) if is_lower_level => format!("{} ({level})", group(product)),
            _ => group(product).to_owned(),
        },
        case: name.to_owned(),
        unit: "ms",
        better: Better::Lower,
        ours: ours.map(median),
        peers: peers.iter().map(|peer| (peer.name.to_owned(), median(peer))).collect(),
        bar,
        ratio,
        more: json!({
            "product": product.name(),
            "level": level,
            "is_lower_level": is_lower_level,
            "values": case["rows"],
            "file_bytes": case["bytes"],
            "intervals": intervals,
            if options.wall { "cpu" } else { "wall" }: other_clock,
        }),
    }
}

fn bar_of(case: &Value) -> f64 {
    let text = |key: &str| case[key].as_str().unwrap_or_default();
    bars::of(text("encoding"), text("codec"))
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
             Contestants took turns. The bar is {BAR} × the best peer{}, {BAR_SHARED} × where values are PLAIN and compressed, and {BAR_COPY} × {COPY} where values are \
             the file's bytes (memcpy, a batch of 8,192 values at a time; it is no peer); intervals are 95 %, by the bootstrap over rounds.",
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
    if options.levels.len() > 1 {
        notes.push(format!(
            "Ours is held to each level of instructions that the processor has ({}), in turns with the peers, which use what they find; a group that names none is of the first. The portable \
             kernels are shown and have no bar; records are printed by the command, at the processor's level.",
            options.levels.join(", ")
        ));
    }
    if !outcome.left_out.is_empty() {
        notes.push(format!("Peers that cannot read a file: {}.", outcome.left_out.join("; ")));
    }
    Report {
        name: options.name.clone().unwrap_or(if options.nested { "nested" } else { "read" }.to_owned()),
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
