//! The benchmark of whole programs: everyday copies, each program from its start to its end, on all cores; wall clock and peak memory.
//! See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use marquetry_bench::program::{self, Run};
use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::{chart, clock, stats, turns};
use serde_json::{Value, json};

const USAGE: &str =
    "usage: bench-whole --files DIR --out DIR --marquetry PROGRAM --python PYTHON --peers PEERS_WHOLE.PY
                   [--folder DIR] [--rounds 5] [--only WORDS] [--without NAME]…

--folder is where the programs write: in memory (/dev/shm).
--only keeps the cases whose name (`flights sort`) has all of the words.
--without leaves a contestant out: ours, duckdb, polars, pyarrow.";

/// What a task's time, and its memory, may be of the best peer's.
#[derive(Clone, Copy, Debug)]
struct Bars {
    time: f64,
    memory: f64,
}

/// A task: what it is called by `peers_whole.py`, and how Marquetry is told.
#[derive(Clone, Copy, Debug)]
struct Task {
    name: &'static str,
    title: &'static str,
    /// The destination's name; a directory's ends in a slash.
    out: &'static str,
    /// Which column of the listing it is about.
    column: Option<&'static str>,
    options: &'static [&'static str],
    bars: Bars,
}

const STREAM: Bars = Bars { time: 0.6, memory: 0.1 };

const TASKS: [Task; 6] = [
    Task {
        name: "csv-parquet",
        title: "CSV to Parquet",
        out: "out.parquet",
        column: None,
        options: &[],
        bars: STREAM,
    },
    Task {
        name: "parquet-csv",
        title: "Parquet to CSV",
        out: "out.csv",
        column: None,
        options: &[],
        bars: STREAM,
    },
    Task {
        name: "parquet-jsonl",
        title: "Parquet to JSON lines",
        out: "out.jsonl",
        column: None,
        options: &[],
        bars: STREAM,
    },
    Task {
        name: "parquet-zstd",
        title: "Parquet to ZSTD",
        out: "out.parquet",
        column: None,
        options: &["--codec", "zstd", "--level", "3"],
        bars: STREAM,
    },
    Task {
        name: "sort",
        title: "sort",
        out: "out.parquet",
        column: Some("sort"),
        options: &["--sort"],
        bars: Bars { time: 0.7, memory: 0.5 },
    },
    Task {
        name: "partition",
        title: "partition",
        out: "out/",
        column: Some("partition"),
        options: &["--partition-by"],
        bars: STREAM,
    },
];

/// Contestants by the names that `--without` and `peers_whole.py` have, and those in the report.
const CONTESTANTS: [(&str, &str); 4] =
    [("ours", "ours"), ("duckdb", "DuckDB"), ("polars", "Polars"), ("pyarrow", "pyarrow")];

/// What a second thread must bring: this much of what a second program brings that runs beside the first, each on one thread.
const EFFICIENCY_BAR: f64 = 0.9;

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-whole: {message}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug)]
struct Options {
    files: PathBuf,
    out: PathBuf,
    marquetry: PathBuf,
    python: PathBuf,
    peers: PathBuf,
    folder: PathBuf,
    rounds: usize,
    only: Vec<String>,
    without: Vec<String>,
}

impl Options {
    fn parse() -> Result<Self, String> {
        let mut options = Self {
            files: PathBuf::new(),
            out: PathBuf::new(),
            marquetry: PathBuf::new(),
            python: PathBuf::new(),
            peers: PathBuf::new(),
            folder: "/dev/shm".into(),
            rounds: 5,
            only: Vec::new(),
            without: Vec::new(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| USAGE.to_owned())?;
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--marquetry" => options.marquetry = value.into(),
                "--python" => options.python = value.into(),
                "--peers" => options.peers = value.into(),
                "--folder" => options.folder = value.into(),
                "--rounds" => {
                    let rounds: usize = value.parse().map_err(|_| format!("{value} is not a number"))?;
                    options.rounds = rounds.max(1);
                }
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                "--without" => options.without.push(value),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let paths = [&options.files, &options.out, &options.marquetry, &options.python, &options.peers];
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }
}

fn run(options: &Options) -> Result<(), String> {
    let listing = options.files.join("whole.json");
    let listing =
        std::fs::read_to_string(&listing).map_err(|error| format!("{}: {error}", listing.display()))?;
    let listing: Value = serde_json::from_str(&listing).map_err(|error| format!("whole.json: {error}"))?;
    // Where the programs write; what an interrupted benchmark left is written over.
    let folder = options.folder.join("marquetry-bench-whole");
    let mut rows = Vec::new();
    for table in listing["tables"].as_array().ok_or("a listing of no tables")? {
        for task in &TASKS {
            let case = Case::new(options, table, task, &folder)?;
            if options.only.iter().all(|word| case.name.split(' ').any(|other| other == word)) {
                rows.extend(case.compare()?);
                if !options.without.iter().any(|name| name == "ours") {
                    rows.push(case.threads()?);
                }
            }
        }
    }
    if rows.is_empty() {
        return Err("no case has all of those words".to_owned());
    }
    remove(&folder)?;
    // By group, in the order of their first rows.
    let mut groups: Vec<String> = Vec::new();
    for row in &rows {
        if !groups.contains(&row.group) {
            groups.push(row.group.clone());
        }
    }
    rows.sort_by_key(|row| groups.iter().position(|group| *group == row.group));
    let report = report(options, &listing, rows)?;
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    report.write(&options.out, Some(&chart::draw(&report, &chart::Axis::relative())))
}

/// A task on a table.
#[derive(Debug)]
struct Case<'a> {
    options: &'a Options,
    task: &'a Task,
    name: String,
    /// What is read, and the Parquet file of the same rows, which proves the result.
    source: PathBuf,
    parquet: PathBuf,
    column: Option<String>,
    folder: &'a Path,
}

impl<'a> Case<'a> {
    fn new(options: &'a Options, table: &Value, task: &'a Task, folder: &'a Path) -> Result<Self, String> {
        let text = |key: &str| table[key].as_str().ok_or_else(|| format!("a table without its {key}"));
        let parquet = options.files.join(text("parquet")?);
        Ok(Self {
            options,
            task,
            name: format!("{} {}", text("name")?, task.name),
            source: if task.name == "csv-parquet" {
                options.files.join(text("csv")?)
            } else {
                parquet.clone()
            },
            parquet,
            column: task.column.map(|key| text(key).map(str::to_owned)).transpose()?,
            folder,
        })
    }

    /// How a contestant is told to write into a folder.
    fn command(&self, contestant: &str, folder: &Path) -> Command {
        let out = folder.join(self.task.out);
        if contestant != "ours" {
            return self.python(contestant, &out);
        }
        let mut command = Command::new(&self.options.marquetry);
        command.arg("copy").arg(&self.source).arg(out).args(self.task.options).args(&self.column);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn python(&self, name: &str, out: &Path) -> Command {
        let mut command = Command::new(&self.options.python);
        let source = if name == "check" { &self.parquet } else { &self.source };
        command.arg(&self.options.peers).args([name, self.task.name]).arg(source).arg(out).args(&self.column);
        command.stdin(Stdio::null());
        command
    }

    /// Each contestant proves its result, then all take turns.
    fn compare(&self) -> Result<[Row; 2], String> {
        let mut contestants = CONTESTANTS.to_vec();
        // pyarrow writes no JSON.
        let is_unable = |key: &str| key == "pyarrow" && self.task.name == "parquet-jsonl";
        contestants
            .retain(|(key, _)| !is_unable(key) && !self.options.without.iter().any(|without| without == key));
        for (key, _) in &contestants {
            self.once(key)?;
            program::watch(self.python("check", &self.folder.join(self.task.out)))
                .map_err(|error| format!("{}: what {key} wrote: {error}", self.name))?;
        }
        let mut runs: Vec<Vec<Run>> = contestants.iter().map(|_| Vec::new()).collect();
        for round in 0..self.options.rounds {
            for index in turns::of_round(round, contestants.len()) {
                runs[index].push(self.once(contestants[index].0)?);
            }
        }
        let names: Vec<&'static str> = contestants.iter().map(|(_, name)| *name).collect();
        let times: Vec<Vec<f64>> =
            runs.iter().map(|runs| runs.iter().map(|run| run.wall_s).collect()).collect();
        let memory: Vec<Vec<f64>> =
            runs.iter().map(|runs| runs.iter().map(|run| run.peak_mib).collect()).collect();
        let rows = [
            Row::of_samples("Wall clock".into(), self.title(), ("s", self.task.bars.time), &names, &times),
            Row::of_samples(
                "Peak memory".into(),
                self.title(),
                ("MiB", self.task.bars.memory),
                &names,
                &memory,
            ),
        ];
        rows.iter().for_each(Row::tell);
        Ok(rows)
    }

    fn once(&self, contestant: &str) -> Result<Run, String> {
        remove(self.folder)?;
        make(self.folder)?;
        program::watch(self.command(contestant, self.folder))
    }

    /// Its name in the report.
    fn title(&self) -> String {
        format!("{}: {}", self.name.split(' ').next().unwrap_or_default(), self.task.title)
    }

    /// One program on two threads, beside two programs on one thread each that run at the same time: all on the same two CPUs.
    fn threads(&self) -> Result<Row, String> {
        let beside = self.folder.with_extension("beside");
        let on = |threads: &str, folder: &Path| {
            let mut command = self.command("ours", folder);
            command.args(["--threads", threads]);
            command
        };
        let mut ratios = Vec::new();
        for _ in 0..self.options.rounds {
            for folder in [self.folder, &beside] {
                remove(folder)?;
                make(folder)?;
            }
            let (one, other) = std::thread::scope(|scope| {
                let other = scope.spawn(|| program::watch(on("1", &beside)));
                (program::watch(on("1", self.folder)), other.join())
            });
            let other = other.map_err(|_| "the program beside was not watched".to_owned())?;
            let pair = (one?.wall_s + other?.wall_s) / 2.0;
            for folder in [self.folder, &beside] {
                remove(folder)?;
            }
            make(self.folder)?;
            let two = program::watch(on("2", self.folder))?.wall_s;
            ratios.push(pair / (2.0 * two));
        }
        let row = Row {
            group: "Two threads beside two programs of one thread".to_owned(),
            case: self.title(),
            unit: "of their speed",
            better: Better::Higher,
            ours: Some(stats::median(&ratios)),
            peers: Vec::new(),
            bar: EFFICIENCY_BAR,
            ratio: None,
            more: json!({ "interval": stats::median_interval(&ratios) }),
        };
        eprintln!("{}, two threads: {:.2} of two programs", self.name, stats::median(&ratios));
        Ok(row)
    }
}

fn remove(folder: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn make(folder: &Path) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn report(options: &Options, listing: &Value, rows: Vec<Row>) -> Result<Report, String> {
    let mut versions = serde_json::Map::new();
    for (key, name) in CONTESTANTS.into_iter().filter(|(key, _)| *key != "ours") {
        let output = Command::new(&options.python).arg(&options.peers).args([key, "version"]).output();
        let output = output.map_err(|error| format!("{}: {error}", options.python.display()))?;
        versions.insert(name.to_owned(), json!(String::from_utf8_lossy(&output.stdout).trim()));
    }
    let told: Vec<String> = versions
        .iter()
        .map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or("?")))
        .collect();
    let rows_of =
        |table: &Value| format!("{} of {} rows", table["name"].as_str().unwrap_or("?"), table["rows"]);
    let is_in = |table: &&Value| {
        table["name"]
            .as_str()
            .is_some_and(|name| rows.iter().any(|row| row.case.starts_with(&format!("{name}: "))))
    };
    let tables = listing["tables"].as_array().into_iter().flatten();
    let tables: Vec<String> = tables.filter(is_in).map(rows_of).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut notes = vec![
        format!(
            "Median wall clock of {} runs, and median of the most memory at once, of whole processes from their start to their end: `marquetry copy`, and Python with the \
             peer's package, each with the threads that it takes by itself on {cores} cores. Input is in the page cache, output in memory ({}). Parquet is written with SNAPPY, or ZSTD at \
             level 3. Contestants took turns. The bars are 0.6 × the best peer's time and a tenth of the least memory of a peer (for the sort, which has the whole table in \
             memory, 0.7 × and a half); intervals are 95 %, by the bootstrap over rounds. Every result was proved once: rows, and sums by column, by DuckDB.",
            options.rounds,
            options.folder.display()
        ),
        "Two threads: the speed of `--threads 2` by that of two programs with `--threads 1` at the same time, in the same minutes.".to_owned(),
        format!("Tables: {}. {}. {}.", tables.join(", "), told.join(", "), clock::processor()),
    ];
    if listing["scale"].as_f64() != Some(1.0) {
        notes
            .push(format!("**A quick look: {} of the rows.** Its numbers are no results.", listing["scale"]));
    }
    Ok(Report {
        name: "whole".to_owned(),
        title: "Whole programs: Marquetry and its peers".to_owned(),
        notes,
        setting: json!({
            "rounds": options.rounds,
            "scale": listing["scale"],
            "versions": versions,
            "cores": cores,
            "processor": clock::processor(),
        }),
        rows,
    })
}
