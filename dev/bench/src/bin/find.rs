//! The benchmark of look-ups: one row among ten million, by key. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use marquetry_bench::clock;
use marquetry_bench::find::{COLUMNS, PAGE_ROWS, page_bytes};
use marquetry_bench::report::{Better, Report, Row};
use serde_json::{Value, json};

const USAGE: &str = "usage: bench-find --files DIR --out DIR --bin DIR --python PYTHON --peers PEERS_FIND.PY [--more-python PYTHON] [--rows N] [--only WORDS]

--only keeps the cases whose name (`sorted 1 plain int64 both memory`) has all of the words. --more-python has Vortex and DataFusion.";

/// Ways that keys are looked up in, each with how the file is read.
type Ways = &'static [(&'static str, &'static str)];

/// The files: their order, row groups and style, and the ways that keys are looked up in them, each with how the file is read.
const FILES: [(&str, u64, &str, Ways); 5] = [
    (
        "sorted",
        1,
        "plain",
        &[
            ("both", "memory"),
            ("index", "memory"),
            ("bloom", "memory"),
            ("none", "memory"),
            ("both", "pread"),
            ("both", "rows"),
            ("both", "cold"),
        ],
    ),
    ("sorted", 10, "plain", &[("both", "memory")]),
    ("sorted", 1, "default", &[("both", "memory"), ("both", "pread"), ("both", "rows")]),
    ("mixed", 1, "plain", &[("both", "memory")]),
    ("mixed", 1, "plain-pages", &[("pages", "memory")]),
];

/// Columns that files are read for in other ways than from memory.
const COLUMNS_OF_MODES: [&str; 2] = ["int64", "string"];

/// False-positive rates of Bloom filters, in files of a tenth of the rows.
const RATES: [&str; 5] = ["0.001", "0.01", "0.05", "0.1", "0.5"];

/// Contestants that are Python packages: query engines, which use what they use, and Vortex, which has a file of its own.
const ENGINES: [(&str, &str); 4] = [
    ("duckdb", "DuckDB"),
    ("polars", "Polars"),
    ("pyarrow", "pyarrow dataset"),
    ("datafusion", "DataFusion"),
];
const VORTEX: (&str, &str) = ("vortex", "Vortex");
/// Those that another Python has.
const OF_MORE: [&str; 2] = ["datafusion", "vortex"];

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
    /// A Python with the others, if there is one.
    more_python: Option<PathBuf>,
    peers: PathBuf,
    rows: u64,
    only: Vec<String>,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let [files, out, bin, python, peers] = std::array::from_fn(|_| PathBuf::new());
        let (rows, only, more_python) = (10_000_000, Vec::new(), None);
        let mut options = Options { files, out, bin, python, more_python, peers, rows, only };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--bin" => options.bin = value.into(),
                "--python" => options.python = value.into(),
                "--more-python" => options.more_python = Some(value.into()),
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
        let is_wanted = |column: &str, way: &str, mode: &str| {
            (mode == "memory" || COLUMNS_OF_MODES.contains(&column))
                && options.wants(&[order, &groups_word, style, column, way, mode])
        };
        let has_cases = |column: &&str| ways.iter().any(|(way, mode)| is_wanted(column, way, mode));
        if !COLUMNS.iter().any(has_cases) {
            continue;
        }
        let path = file(options, options.rows, order, groups, style)?;
        for (number, column) in COLUMNS.iter().enumerate() {
            for (way, mode) in ways {
                if !is_wanted(column, way, mode) {
                    continue;
                }
                let is_scan = matches!(*way, "bloom" | "none") || order == "mixed" && *way == "both";
                let count = 2 * if is_scan { KEYS_OF_SCANS } else { KEYS };
                let mut answers = Vec::new();
                let mut rust = |program: &str, name: &'static str, way: &str| {
                    let mut command = Command::new(options.bin.join(program));
                    command.arg(&path).args([column, way, &count.to_string()[..], mode]);
                    answers.push((name, say(command)?));
                    Ok::<(), String>(())
                };
                rust("bench-find-ours", "ours", way)?;
                if *way != "pages" {
                    // Whoever looks up one key reads no filter of all keys for it.
                    let its_way = if *mode == "cold" { "index" } else { way };
                    rust("bench-find-parquet-rs", "parquet-rs loop", its_way)?;
                }
                let has_vortex = groups == 1 && style == "plain" && *way == "both";
                let engines = ENGINES.iter().filter(|_| matches!(*way, "both" | "pages") && *mode != "pread");
                for (key, name) in engines.chain(Some(&VORTEX).filter(|_| has_vortex && *mode != "pread")) {
                    let python = match OF_MORE.contains(key) {
                        true => options.more_python.as_ref(),
                        false => Some(&options.python),
                    };
                    let Some(python) = python else { continue };
                    let count = if *key == VORTEX.0 { count } else { 2 * KEYS_OF_SCANS };
                    let mut command = Command::new(python);
                    command.arg(&options.peers).arg(key).arg(&path);
                    command.args([column, &count.to_string()[..], mode]);
                    answers.push((*name, say(command)?));
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
                    mode,
                    pages: options.rows.div_ceil(PAGE_ROWS as u64),
                };
                for kind in ["member", "absent"] {
                    case.check_bytes(kind, &answers[0].1)?;
                    let row = case.row(kind, &answers, sorted[number]);
                    if (order, groups, style, *way, *mode, kind)
                        == ("sorted", 1, "plain", "both", "memory", "member")
                    {
                        sorted[number] = row.ours.unwrap_or(f64::NAN);
                    }
                    row.tell();
                    rows.push(row);
                }
            }
        }
    }
    let filters = filters(options, &mut rows)?;
    if rows.is_empty() {
        return Err("no case has all of those words".to_owned());
    }
    let told = tell_filters(&filters, options.rows / 10);
    report(options, rows, &Value::from(versions), filters).write_with(&options.out, None, &told)
}

/// A file, which is made if it is not there.
fn file(options: &Options, rows: u64, order: &str, groups: u64, style: &str) -> Result<PathBuf, String> {
    let path = options.files.join(format!("find-{rows}-{order}-{groups}-{style}.parquet"));
    if !path.exists() {
        let mut made = Command::new(options.bin.join("bench-find-files"));
        made.arg(&path).args([&rows.to_string(), order, &groups.to_string(), style]);
        say(made)?;
    }
    Ok(path)
}

/// Look-ups by Bloom filters of several false-positive rates, and what such filters take: for each rate its columns.
fn filters(options: &Options, rows: &mut Vec<Row>) -> Result<Vec<(&'static str, Value)>, String> {
    let mut filters = Vec::new();
    for rate in RATES {
        if !options.wants(&["rates", rate]) {
            continue;
        }
        let path = file(options, options.rows / 10, "sorted", 1, &format!("plain-rate-{rate}"))?;
        let mut command = Command::new(options.bin.join("bench-find-bloom"));
        command.arg(&path);
        filters.push((rate, say(command)?));
        for column in COLUMNS_OF_MODES {
            let mut answers = Vec::new();
            for (program, name) in [("bench-find-ours", "ours"), ("bench-find-parquet-rs", "parquet-rs loop")]
            {
                let mut command = Command::new(options.bin.join(program));
                command.arg(&path).args([column, "both", &(2 * KEYS).to_string()]);
                answers.push((name, say(command)?));
            }
            let pages = (options.rows / 10).div_ceil(PAGE_ROWS as u64);
            let case =
                Case { order: "sorted", groups: 1, style: rate, column, way: "both", mode: "rates", pages };
            for kind in ["member", "absent"] {
                let row = case.row(kind, &answers, f64::NAN);
                row.tell();
                rows.push(row);
            }
        }
    }
    Ok(filters)
}

/// A table of what filters take.
fn tell_filters(filters: &[(&'static str, Value)], rows: u64) -> String {
    if filters.is_empty() {
        return String::new();
    }
    let mut told = format!(
        "\n## What Bloom filters take\n\nFilters of one row group of {rows} rows, whose values are all different; their sizes are powers of two. What \
         looking for 100,000 absent values found; reading a filter whole, from the page cache (a look-up reads 32 bytes); what Zstandard leaves of it.\n\n\
         | rate asked for | column | size | bits a value | rate found | read whole | compressed |\n|--:|---|--:|--:|--:|--:|--:|\n"
    );
    for (rate, columns) in filters {
        for column in columns.as_array().into_iter().flatten() {
            let number = |name: &str| column[name].as_f64().unwrap_or(f64::NAN);
            told += &format!(
                "| {rate} | {} | {:.0} KiB | {:.1} | {:.4} | {:.0} µs | {:.0} % |\n",
                column["column"].as_str().unwrap_or_default(),
                number("bytes") / 1024.0,
                number("bits_a_value"),
                number("wrong"),
                number("load"),
                number("zstd") * 100.0
            );
        }
    }
    told
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
    mode: &'a str,
    pages: u64,
}

impl Case<'_> {
    /// Fails where more was read for a look-up than it needs: a block of the filter of each row group, and a page of who is there. Of a
    /// hundred that are not, filters let one or two through.
    fn check_bytes(&self, kind: &str, ours: &Value) -> Result<(), String> {
        let is_known =
            self.order == "sorted" && self.style == "plain" && matches!(self.mode, "memory" | "pread");
        let leaf = COLUMNS.iter().position(|column| *column == self.column).unwrap_or_default();
        let page = page_bytes(leaf);
        let most = match (self.way, kind) {
            ("both", "member") => 32 * self.groups + page + page / 20,
            ("both", _) => 32 * self.groups + page / 20,
            ("index", "member") => page,
            _ => u64::MAX,
        };
        let read = ours["times"][kind]["bytes"].as_u64().unwrap_or(u64::MAX);
        if is_known && read > most {
            return Err(format!("{}, {kind}: {read} bytes were read for a key, and not {most}", self.column));
        }
        Ok(())
    }

    fn row(&self, kind: &str, answers: &[(&'static str, Value)], sorted: f64) -> Row {
        let median = |answer: &Value| answer["times"][kind]["median"].as_f64().unwrap_or(f64::NAN);
        let ours = answers.iter().find(|(name, _)| *name == "ours").map(|(_, answer)| answer);
        let of_loop = answers.iter().find(|(name, _)| *name == "parquet-rs loop");
        let of_loop = of_loop.map_or(f64::INFINITY, |(_, answer)| median(answer));
        let is_string = self.column == "string";
        let best = |names: &[&str]| {
            let of_names = answers.iter().filter(|(name, _)| names.contains(name));
            of_names.map(|(_, answer)| median(answer)).fold(f64::INFINITY, f64::min)
        };
        let of_engines = best(&ENGINES.map(|(_, name)| name)) / 20.0;
        let of_vortex = best(&[VORTEX.1]);
        #[allow(clippy::cast_precision_loss, reason = "thousands")]
        let bar = match (self.order, self.way, kind) {
            _ if self.mode == "cold" => 0.5 * f64::min(of_loop, f64::min(20.0 * of_engines, of_vortex)),
            _ if matches!(self.mode, "pread" | "rows" | "rates") => of_loop,
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
        // Faster than Vortex by key, and twenty times as fast as every query engine: where keys are in order, or pages have filters.
        let is_held_to_all = self.mode == "memory" && (self.order == "sorted" || self.way == "pages");
        let bar = if is_held_to_all { f64::min(bar, f64::min(of_vortex, of_engines)) } else { bar };
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
        let style = if self.style == "default" { "defaults" } else { "PLAIN" };
        let in_mode = match self.mode {
            "pread" => ", read by pread".to_owned(),
            "rows" => ", whole rows".to_owned(),
            "cold" => ", cold".to_owned(),
            "rates" => format!(" of rate {}", self.style),
            _ => String::new(),
        };
        let order = if self.order == "sorted" { "Sorted" } else { "Mixed" };
        Row {
            group: format!("{order}, {groups}, {style}, {by_way}{in_mode}"),
            case: format!("{}, {kind}", self.column),
            unit: "µs",
            better: Better::Lower,
            ours: ours.map(median),
            peers,
            bar,
            ratio: None,
            more: ours.map_or(json!({}), |ours| {
                let of_kind = &ours["times"][kind];
                json!({
                    "p99": of_kind["p99"],
                    "bytes": of_kind["bytes"],
                    "bytes_max": of_kind["bytes_max"],
                    "open": ours["open"],
                })
            }),
        }
    }
}

fn report(
    options: &Options,
    rows: Vec<Row>,
    versions: &Value,
    filters: Vec<(&'static str, Value)>,
) -> Report {
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
             checksum of a page is written or checked. Every answer is proved. One thread each. `cold`: the file is opened for each key, from the \
             page cache, and closed. `whole rows`: all five columns of the row are read, too. Vortex has a file of its own, in memory, with the same rows; its Python \
             package is asked. How many bytes Marquetry reads for a key is in `find.json`, and checked.",
            options.rows
        ),
        "Bars: a member 30 µs and half the time of the parquet-rs loop (strings 100 µs and 0.8), an absent key 5 µs and 0.5 µs for each further row group; through Bloom filters \
         of pages the time of (a hundredth of the pages + 1) sorted members and 20 µs; there, and where keys are sorted, less than Vortex and a twentieth of the best engine; \
         cold, half of the best of all; elsewhere the parquet-rs loop's time."
            .to_owned(),
        format!("{}. {}.", told.join(", "), clock::processor()),
    ];
    if options.rows < 10_000_000 {
        notes.push("**A quick look at fewer rows.** Its numbers are no results.".to_owned());
    }
    if options.more_python.is_none() {
        notes.push(
            "Vortex and DataFusion were not there: `dev/setup.sh find-peers` installs them.".to_owned(),
        );
    }
    let filters: serde_json::Map<String, Value> =
        filters.into_iter().map(|(rate, columns)| (rate.to_owned(), columns)).collect();
    Report {
        name: "find".to_owned(),
        title: "Finding rows: Marquetry and its peers".to_owned(),
        notes,
        setting: json!({ "rows": options.rows, "versions": versions, "processor": clock::processor(), "filters": filters }),
        rows,
    }
}
