//! The writing benchmark's driver: every case, contestants in turns; time and size. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use marquetry_bench::bars::{self, BAR, BAR_SHARED};
use marquetry_bench::protocol::{Contestant, Time};
use marquetry_bench::report::{Report, Row};
use marquetry_bench::{chart, clock, level, turns};
use serde_json::{Value, json};

const USAGE: &str =
    "usage: bench-write --files DIR --out DIR --bin DIR --python PYTHON --peers PEERS_WRITE.PY
                   [--folder DIR] [--rounds 7] [--cpu NUMBER] [--only WORDS] [--without NAME]… [--name NAME] [--snappy yes]

--folder is where DuckDB writes: in memory (/dev/shm).
--name is that of the results: write, if it is not given.
--snappy yes compares ours with ourselves, where pages are compressed by SNAPPY: both compressors, of which one is chosen by a trial, and each of
them alone. The results are then called snappy.
Ours writes at each level of instructions that this processor has, the most first, a group of rows each, or at that of BENCH_LEVEL alone.
--only keeps the cases whose name (`int32 PLAIN SNAPPY`) has all of the words.
--without leaves a contestant out: ours, parquet-rs, pyarrow, duckdb, polars.";

/// The largest multiple of the smallest file that is good: a few bytes a page are no difference.
const SIZE_BAR: f64 = 1.001;

/// How much more time, or how much larger a file, than by the better of Snappy's two compressors alone is good.
const TRIAL_BAR: f64 = 1.03;

/// The portable kernels have no bar: they are for processors that the peers' are not made for either.
const UNJUDGED_LEVEL: &str = "portable";

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
    name: Option<String>,
    snappy: bool,
    levels: Vec<&'static str>,
}

/// Who writes a case: what it is left out by, its name in the report, how it is started. Of ours, the name is the level.
type Start = (&'static str, &'static str, Command);

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
            name: None,
            snappy: false,
            levels: level::wanted()?,
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
                "--name" => options.name = Some(value),
                "--snappy" if value == "yes" => options.snappy = true,
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let paths = [&options.files, &options.out, &options.bin, &options.python, &options.peers];
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    /// The contestants of a case.
    fn contestants(&self, case: &Value) -> Result<Vec<Start>, String> {
        let text = |key: &str| case[key].as_str().ok_or_else(|| format!("a case without its {key}"));
        let (file, encoding, codec) = (self.files.join(text("file")?), text("encoding")?, text("codec")?);
        let program = |name: &str| {
            let mut command = Command::new(self.bin.join(name));
            command.arg(&file).args([encoding, codec]);
            command
        };
        let ours = |level: &str, compressors: &str| {
            let mut command = program("bench-write-ours");
            command.arg(compressors).env(level::VARIABLE, level);
            command
        };
        let python = |name: &str| {
            let mut command = Command::new(&self.python);
            command.arg(&self.peers).arg(name).arg(&file).args([encoding, codec]).arg(&self.folder);
            command
        };
        if self.snappy {
            let &level = self.levels.first().ok_or("no level of instructions")?;
            return Ok(vec![
                ("ours", level, ours(level, "both")),
                ("usual", "the usual one alone", ours(level, "usual")),
                ("other", "the other one alone", ours(level, "other")),
            ]);
        }
        let mut all: Vec<Start> =
            self.levels.iter().map(|&level| ("ours", level, ours(level, "both"))).collect();
        all.push(("pyarrow", "pyarrow", python("pyarrow")));
        all.push(("parquet-rs", "parquet-rs", program("bench-write-parquet-rs")));
        // The others cannot be told an encoding.
        if encoding == "default" {
            all.push(("duckdb", "DuckDB", python("duckdb")));
            all.push(("polars", "Polars", python("polars")));
        }
        all.retain(|(key, _, _)| !self.without.iter().any(|without| without == key));
        Ok(all)
    }

    /// The largest multiples of the best other's time and size that are good for a case.
    fn bars(&self, case: &Value) -> [f64; 2] {
        let text = |key: &str| case[key].as_str().unwrap_or_default();
        if self.snappy { [TRIAL_BAR; 2] } else { [bars::of(text("encoding"), text("codec")), SIZE_BAR] }
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
        if options.snappy && case["codec"] != "SNAPPY" {
            continue;
        }
        if options.only.iter().all(|word| name.split(' ').any(|other| other == word)) {
            let (time, size) = compare(options, name, case, &mut versions)?;
            times.extend(time);
            sizes.push(size);
        }
    }
    if times.is_empty() {
        return Err("no case has all of those words".to_owned());
    }
    // A level's rows follow each other.
    let place = |row: &Row| options.levels.iter().position(|level| row.more["level"] == *level);
    times.sort_by_key(place);
    times.append(&mut sizes);
    let report = report(options, &listing, &versions, times);
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    report.write(&options.out, Some(&chart::draw(&report, &chart::Axis::relative())))
}

/// Rows of times, one for each level of ours, and one of sizes.
fn compare(
    options: &Options,
    name: &str,
    case: &Value,
    versions: &mut serde_json::Map<String, Value>,
) -> Result<(Vec<Row>, Row), String> {
    let mut contestants = Vec::new();
    for (key, name, command) in options.contestants(case)? {
        contestants.push((key == "ours", Contestant::start(name, command)?));
    }
    for (is_ours, contestant) in &mut contestants {
        let shown = if *is_ours { "ours" } else { contestant.name };
        versions.insert(shown.to_owned(), json!(contestant.version));
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
        for index in turns::of_round(round, contestants.len()) {
            let (time, count) = contestants[index].1.run(false)?;
            times[index].push(time);
            bytes[index] = count.sum;
        }
    }
    let samples: Vec<Vec<f64>> =
        times.iter().map(|times| times.iter().map(|time| milliseconds(time.cpu)).collect()).collect();
    let sizes: Vec<Vec<f64>> = bytes.iter().map(|bytes| vec![*bytes as f64 / 1e6]).collect();
    let group = case["group"].as_str().unwrap_or_default();
    let [time_bar, size_bar] = options.bars(case);
    let (ours, others): (Vec<usize>, Vec<usize>) =
        (0..contestants.len()).partition(|index| contestants[*index].0);
    if ours.iter().any(|index| bytes[*index] != bytes[ours[0]]) {
        return Err(format!("{name}: ours is not the same file at every level"));
    }
    // Ours at one level, or at none, beside the others.
    let row = |level: Option<usize>, group: String, rest: (&'static str, f64), samples: &[Vec<f64>]| {
        let all: Vec<usize> = level.into_iter().chain(others.iter().copied()).collect();
        let shown = |index: &usize| if contestants[*index].0 { "ours" } else { contestants[*index].1.name };
        let names: Vec<&str> = all.iter().map(shown).collect();
        let samples: Vec<Vec<f64>> = all.iter().map(|index| samples[*index].clone()).collect();
        Row::of_samples(group, name.to_owned(), rest, &names, &samples)
    };
    let mut rows = Vec::new();
    for (place, &index) in ours.iter().enumerate() {
        let level = contestants[index].1.name;
        let named = if place == 0 { group.to_owned() } else { format!("{group} ({level})") };
        let mut timed = row(Some(index), format!("time: {named}"), ("ms", time_bar), &samples);
        if level == UNJUDGED_LEVEL {
            timed.bar = f64::NAN;
        }
        timed.more = json!({ "level": level, "is_lower_level": place > 0 });
        rows.push(timed);
    }
    if ours.is_empty() {
        rows.push(row(None, format!("time: {group}"), ("ms", time_bar), &samples));
    }
    let size = row(ours.first().copied(), format!("size: {group}"), ("MB", size_bar), &sizes);
    rows.iter().chain([&size]).for_each(Row::tell);
    Ok((rows, size))
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
        if options.snappy {
            format!(
                "What Snappy's two compressors are worth, by ours alone: median CPU time of {} rounds to write a table, and the file's size, where the better one is found \
                 by a trial in each chunk (as all files are written), and with each of them alone for all pages. The bar is {TRIAL_BAR} × the better one.",
                options.rounds
            )
        } else {
            told_of_peers(options.rounds)
        },
        format!("{}. {}, kernels: {}.", told.join(", "), clock::processor(), options.levels.join(", ")),
    ];
    if listing["scale"].as_f64() != Some(1.0) {
        notes
            .push(format!("**A quick look: {} of the rows.** Its numbers are no results.", listing["scale"]));
    }
    Report {
        name: options.name.clone().unwrap_or(if options.snappy { "snappy" } else { "write" }.to_owned()),
        title: if options.snappy {
            "Snappy's two compressors, and what choosing between them is worth"
        } else {
            "Writing Parquet: Marquetry and its peers"
        }
        .to_owned(),
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

fn told_of_peers(rounds: usize) -> String {
    format!(
        "Median CPU time of {rounds} rounds to write a table that is in memory, to memory that is there (DuckDB and Polars to memory that grows), and the file's size, on one CPU; lower is better. Row groups of \
         1,048,576 rows, statistics of column chunks, neither page index nor checksums; ZSTD at level 1. Contestants took turns, ours at each level of instructions \
         that the processor has; the portable kernels have no bar. The bar is {BAR} × the best peer, {BAR_SHARED} × where values are PLAIN and compressed, and the smallest file and a thousandth more for sizes; intervals are 95 %, by the bootstrap over rounds."
    )
}
