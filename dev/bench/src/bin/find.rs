//! The benchmark of look-ups: one row among ten million, by key. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use marquetry_bench::clock;
use marquetry_bench::find::{COLUMNS, PAGE_ROWS};
use marquetry_bench::report::{Better, Report, Row};
use serde_json::{Value, json};

const USAGE: &str = "usage: bench-find --files DIR --out DIR --bin DIR --python PYTHON --peers PEERS_FIND.PY [--rows N] [--only WORDS]

--only keeps the cases whose name (`sorted 1 plain int64 both`) has all of the words.";

/// The files: their order, row groups and style, and the ways that keys are looked up in them.
const FILES: [(&str, u64, &str, &[&str]); 5] = [
    ("sorted", 1, "plain", &["both", "index", "bloom", "none"]),
    ("sorted", 10, "plain", &["both"]),
    ("sorted", 1, "default", &["both"]),
    ("mixed", 1, "plain", &["both"]),
    ("mixed", 1, "plain-pages", &["pages"]),
];

/// Contestants that are query engines; they use what they use.
const ENGINES: [(&str, &str); 3] =
    [("duckdb", "DuckDB"), ("polars", "Polars"), ("pyarrow", "pyarrow dataset")];

/// Keys of each kind, for contestants and ways that find a row in microseconds, and for those that scan.
const KEYS: usize = 1000;
const KEYS_OF_SCANS: usize = 5;

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-find: {message}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    files: PathBuf,
    out: PathBuf,
    bin: PathBuf,
    python: PathBuf,
    peers: PathBuf,
    rows: u64,
    only: Vec<String>,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let [files, out, bin, python, peers] = std::array::from_fn(|_| PathBuf::new());
        let mut options = Options { files, out, bin, python, peers, rows: 10_000_000, only: Vec::new() };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--bin" => options.bin = value.into(),
                "--python" => options.python = value.into(),
                "--peers" => options.peers = value.into(),
                "--rows" => options.rows = value.parse().map_err(|_| format!("{value} is no number"))?,
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let paths = [&options.files, &options.out, &options.bin, &options.python, &options.peers];
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    fn wants(&self, words: &[&str]) -> bool {
        self.only.iter().all(|word| words.iter().any(|of_case| of_case == word))
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut rows = Vec::new();
    let mut versions = serde_json::Map::new();
    // Of each column, how long a key takes that is in the table in order: what others are held to.
    let mut sorted = [f64::NAN; COLUMNS.len()];
    for (order, groups, style, ways) in FILES {
        let groups_word = groups.to_string();
        let has_cases =
            |column: &&str| ways.iter().any(|way| options.wants(&[order, &groups_word, style, column, way]));
        if !COLUMNS.iter().any(has_cases) {
            continue;
        }
        let path = options.files.join(format!("find-{}-{order}-{groups}-{style}.parquet", options.rows));
        if !path.exists() {
            let mut made = Command::new(options.bin.join("bench-find-files"));
            made.arg(&path).args([&options.rows.to_string(), order, &groups_word, style]);
            say(made)?;
        }
        for (number, column) in COLUMNS.iter().enumerate() {
            for way in ways {
                if !options.wants(&[order, &groups_word, style, column, way]) {
                    continue;
                }
                let is_scan = matches!(*way, "bloom" | "none") || order == "mixed" && *way == "both";
                let count = 2 * if is_scan { KEYS_OF_SCANS } else { KEYS };
                let mut answers = Vec::new();
                let mut rust = |program: &str, name: &'static str| {
                    let mut command = Command::new(options.bin.join(program));
                    command.arg(&path).args([column, way, &count.to_string()[..]]);
                    answers.push((name, say(command)?));
                    Ok::<(), String>(())
                };
                rust("bench-find-ours", "ours")?;
                if *way != "pages" {
                    rust("bench-find-parquet-rs", "parquet-rs loop")?;
                }
                if matches!(*way, "both" | "pages") {
                    for (key, name) in ENGINES {
                        let mut command = Command::new(&options.python);
                        command.arg(&options.peers).arg(key).arg(&path);
                        command.args([column, &(2 * KEYS_OF_SCANS).to_string()[..]]);
                        answers.push((name, say(command)?));
                    }
                }
                for (name, answer) in &answers {
                    versions.insert((*name).to_owned(), answer["version"].clone());
                }
                let case = Case {
                    order,
                    groups,
                    style,
                    column,
                    way,
                    pages: options.rows.div_ceil(PAGE_ROWS as u64),
                };
                for kind in ["member", "absent"] {
                    let row = case.row(kind, &answers, sorted[number]);
                    if (order, groups, style, *way, kind) == ("sorted", 1, "plain", "both", "member") {
                        sorted[number] = row.ours.unwrap_or(f64::NAN);
                    }
                    row.tell();
                    rows.push(row);
                }
            }
        }
    }
    if rows.is_empty() {
        return Err("no case has all of those words".to_owned());
    }
    report(options, rows, &Value::from(versions)).write(&options.out, None)
}

/// What a contestant says.
fn say(mut command: Command) -> Result<Value, String> {
    let program = format!("{:?}", command.get_program());
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program} failed: {}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{program}: {error}"))
}

struct Case<'a> {
    order: &'a str,
    groups: u64,
    style: &'a str,
    column: &'a str,
    way: &'a str,
    pages: u64,
}

impl Case<'_> {
    fn row(&self, kind: &str, answers: &[(&'static str, Value)], sorted: f64) -> Row {
        let median = |answer: &Value| answer["times"][kind]["median"].as_f64().unwrap_or(f64::NAN);
        let ours = answers.iter().find(|(name, _)| *name == "ours").map(|(_, answer)| answer);
        let of_loop = answers.iter().find(|(name, _)| *name == "parquet-rs loop");
        let of_loop = of_loop.map_or(f64::INFINITY, |(_, answer)| median(answer));
        let is_string = self.column == "string";
        #[allow(clippy::cast_precision_loss, reason = "thousands")]
        let bar = match (self.order, self.way, kind) {
            ("sorted", "both", "absent") => 5.0 + 0.5 * (self.groups - 1) as f64,
            ("sorted", "both" | "index", "member") => {
                let (most, of_peer) = if is_string { (100.0, 0.8) } else { (30.0, 0.5) };
                f64::min(most, of_peer * of_loop)
            }
            // As many pages as a rate of 0.01 lets pass, and the right one.
            (_, "pages", "member") => (0.01 * self.pages as f64 + 1.0) * sorted + 20.0,
            (_, "pages", _) => 0.01 * self.pages as f64 * sorted + 20.0,
            _ => of_loop,
        };
        let peers: Vec<(String, f64)> = answers
            .iter()
            .filter(|(name, _)| *name != "ours")
            .map(|(name, answer)| ((*name).to_owned(), median(answer)))
            .collect();
        let by_way = match self.way {
            "both" => "page index and Bloom filters",
            "index" => "page index",
            "bloom" => "Bloom filters",
            "pages" => "Bloom filters of pages",
            _ => "neither",
        };
        let groups =
            if self.groups == 1 { "one row group".to_owned() } else { format!("{} row groups", self.groups) };
        let style = if self.style.starts_with("plain") { "PLAIN" } else { "defaults" };
        Row {
            group: format!("{}, {groups}, {style}, {by_way}", if self.order == "sorted" { "Sorted" } else { "Mixed" }),
            case: format!("{}, {kind}", self.column),
            unit: "µs",
            better: Better::Lower,
            ours: ours.map(median),
            peers,
            bar,
            ratio: None,
            more: ours.map_or(json!({}), |ours| {
                json!({ "p99": ours["times"][kind]["p99"], "bytes": ours["bytes"], "open": ours["open"] })
            }),
        }
    }
}

fn report(options: &Options, rows: Vec<Row>, versions: &Value) -> Report {
    let told: Vec<String> = versions
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "ours")
        .map(|(name, version)| {
            format!("{name} {}", version.as_str().unwrap_or("?").trim_start_matches("parquet-rs version "))
        })
        .collect();
    let mut notes = vec![
        format!(
            "Median time to find the row of a key in one of five columns of {} rows (pages of {PAGE_ROWS} rows, strings of 124 bytes): {KEYS} keys that are there \
             and as many that are not, {KEYS_OF_SCANS} of each where rows are scanned and for the query engines, each key once before it is timed. Only the key column is read. The \
             file's bytes are in memory for Marquetry and the parquet-rs loop, in the page cache for the engines; metadata, page index and places of Bloom filters are warm, and no \
             checksum of a page is written or checked. Every answer is proved. One thread each.",
            options.rows
        ),
        "Bars: a member 30 µs and half the time of the parquet-rs loop (strings 100 µs and 0.8), an absent key 5 µs and 0.5 µs for each further row group; through Bloom filters \
         of pages the time of (a hundredth of the pages + 1) sorted members and 20 µs; elsewhere the parquet-rs loop's time."
            .to_owned(),
        format!("{}. {}.", told.join(", "), clock::processor()),
    ];
    if options.rows < 10_000_000 {
        notes.push("**A quick look at fewer rows.** Its numbers are no results.".to_owned());
    }
    Report {
        name: "find".to_owned(),
        title: "Finding rows: Marquetry and its peers".to_owned(),
        notes,
        setting: json!({ "rows": options.rows, "versions": versions, "processor": clock::processor() }),
        rows,
    }
}
