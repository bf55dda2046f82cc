//! The benchmark of wide tables: ten of very many columns. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use marquetry_bench::chart::{self, Axis};
use marquetry_bench::clock;
use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::stats::median;
use marquetry_bench::wide::{GROUP_ROWS, GROUPS, Table, WANTED, proof};
use serde_json::{Value, json};

const USAGE: &str = "usage: bench-wide --files DIR --out DIR --bin DIR --python PYTHON --peers PEERS_WIDE.PY [--columns N,…] [--only WORDS] [--drop yes]

--columns is which of 10, 100, 1000, 10000 and 100000 columns are measured; --only keeps the files whose name (`float64 chunk pyarrow`) has all of the
words; --drop yes removes files as soon as they are measured.";

const SIZES: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
/// The columns of tables that are not of numbers.
const TEXT_COLUMNS: usize = 10_000;
const WRITERS: [&str; 4] = ["ours", "ours-locator", "pyarrow", "parquet-rs"];
/// What contestants do; and what we do besides, so that the parts of an opening are known.
const TASKS: [(&str, &str); 3] =
    [("open10", "open for ten columns"), ("open", "open whole"), ("read10", "read ten columns")];
const PEERS: [&str; 4] = ["parquet-rs", "pyarrow", "DuckDB", "Polars"];

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-wide: {message}");
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
    columns: Vec<usize>,
    only: Vec<String>,
    drops: bool,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let [files, out, bin, python, peers] = std::array::from_fn(|_| PathBuf::new());
        let (columns, only) = (SIZES.to_vec(), Vec::new());
        let mut options = Options { files, out, bin, python, peers, columns, only, drops: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--bin" => options.bin = value.into(),
                "--python" => options.python = value.into(),
                "--peers" => options.peers = value.into(),
                "--columns" => {
                    let each = value.split(',').map(|part| part.parse().map_err(|_| USAGE.to_owned()));
                    options.columns = each.collect::<Result<_, _>>()?;
                }
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                "--drop" => options.drops = value == "yes",
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let paths = [&options.files, &options.out, &options.bin, &options.python, &options.peers];
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    fn wants(&self, table: &Table<'_>) -> bool {
        let words = [table.kind, table.statistics, table.writer];
        self.columns.contains(&table.columns) && self.only.iter().all(|word| words.contains(&word.as_str()))
    }
}

/// What is known of a file.
struct Measured {
    table: Table<'static>,
    bytes: u64,
    footer_bytes: u64,
    rows: Vec<Row>,
    /// What an opening takes without any column; Arrow's schema.
    walk: f64,
    arrow: f64,
}

fn run(options: &Options) -> Result<(), String> {
    let mut tables = Vec::new();
    for columns in SIZES {
        for statistics in ["none", "chunk", "page"] {
            tables.push((columns, statistics, "float64"));
        }
        if columns == TEXT_COLUMNS {
            tables.extend([(columns, "chunk", "string"), (columns, "chunk", "binary")]);
        }
    }
    let mut versions = serde_json::Map::new();
    let mut measured = Vec::new();
    for (columns, statistics, kind) in tables {
        for writer in WRITERS {
            let table = Table { columns, statistics, kind, writer };
            if options.wants(&table) {
                measured.push(measure(options, table, &mut versions)?);
            }
        }
    }
    if measured.is_empty() {
        return Err("no file has all of those words".to_owned());
    }
    let mut rows = sizes(&measured);
    rows.extend(measured.iter().flat_map(|measured| measured.rows.clone()));
    // A table for each task and writer.
    let task = |row: &Row| TASKS.iter().position(|(_, name)| row.group.contains(name)).unwrap_or(TASKS.len());
    rows.sort_by(|one, other| (task(one), &one.group).cmp(&(task(other), &other.group)));
    let report = report(options, rows, &Value::from(versions));
    let growth = Report {
        rows: report.rows.iter().filter(|row| row.more["is_growth"] == true).cloned().collect(),
        title: "Opening a file for ten of its columns".to_owned(),
        ..report.clone()
    };
    let chart = (!growth.rows.is_empty()).then(|| chart::draw(&growth, &Axis::microseconds()));
    report.write_with(&options.out, chart.as_deref(), &split(&measured))
}

fn measure(
    options: &Options,
    table: Table<'static>,
    versions: &mut serde_json::Map<String, Value>,
) -> Result<Measured, String> {
    let path = options.files.join(table.file_name());
    make(options, &table, &path)?;
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let footer_bytes = match bytes.last_chunk::<8>() {
        Some([a, b, c, d, ..]) => u32::from_le_bytes([*a, *b, *c, *d]).into(),
        None => 0,
    };
    let (bytes, columns) = (bytes.len() as u64, table.columns.to_string());
    let rounds = |is_engine: bool| match table.columns {
        100_000.. => {
            if is_engine {
                1
            } else {
                5
            }
        }
        10_000.. => {
            if is_engine {
                3
            } else {
                11
            }
        }
        1_000.. => {
            if is_engine {
                5
            } else {
                31
            }
        }
        _ => {
            if is_engine {
                15
            } else {
                101
            }
        }
    };
    let ask = |program: &str, task: &str| {
        let mut command = if program.starts_with("bench-") {
            Command::new(options.bin.join(program))
        } else {
            let mut command = Command::new(&options.python);
            command.arg(&options.peers).arg(program.to_lowercase());
            command
        };
        let is_engine = !program.starts_with("bench-");
        command.arg(&path).args([&columns, table.kind, task, &rounds(is_engine).to_string()]);
        say(command)
    };
    let mut rows = Vec::new();
    for (task, task_name) in TASKS {
        let mut answers = vec![("ours", ask("bench-wide-ours", task)?)];
        answers.push(("parquet-rs", ask("bench-wide-parquet-rs", task)?));
        for name in PEERS.into_iter().skip(1) {
            // With a hundred thousand columns it takes minutes for each task.
            if name == "DuckDB" && table.columns > 10_000 && table.statistics != "chunk" {
                continue;
            }
            answers.push((name, ask(name, task)?));
        }
        for (name, answer) in &answers {
            versions.insert((*name).to_owned(), answer["version"].clone());
            let wanted = table.columns.min(WANTED) as u64;
            let expected = match (task, *name) {
                ("read10", _) => proof(table.columns, table.is_text()),
                ("open10", "ours" | "DuckDB" | "Polars") => wanted,
                _ => table.columns as u64,
            };
            if answer["proof"] != expected {
                return Err(format!("{table:?}, {task}: {name} says {}, not {expected}", answer["proof"]));
            }
        }
        let row = row(&table, (task, task_name), &answers);
        row.tell();
        rows.push(row);
    }
    let micros = |answer: &Value| 1e6 * median(&seconds(answer));
    let walk = micros(&ask("bench-wide-ours", "walk")?);
    let arrow = micros(&ask("bench-wide-ours", "arrow")?);
    if options.drops {
        std::fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(Measured { table, bytes, footer_bytes, rows, walk, arrow })
}

/// Makes the file, unless it is there.
fn make(options: &Options, table: &Table<'_>, path: &Path) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    let mut made = if table.writer == "pyarrow" {
        let mut command = Command::new(&options.python);
        command.arg(&options.peers).arg("make");
        command
    } else {
        Command::new(options.bin.join("bench-wide-files"))
    };
    made.arg(path).args([&table.columns.to_string(), table.statistics, table.kind, table.writer]);
    say(made).map(drop)
}

fn row(table: &Table<'_>, (task, task_name): (&str, &str), answers: &[(&'static str, Value)]) -> Row {
    let names: Vec<&str> = answers.iter().map(|(name, _)| *name).collect();
    let samples: Vec<Vec<f64>> = answers
        .iter()
        .map(|(_, answer)| seconds(answer).into_iter().map(|seconds| 1e6 * seconds).collect())
        .collect();
    let is_foreign = !table.writer.starts_with("ours");
    let bar = if is_foreign && task == "open10" { 1.0 / 3.0 } else { 1.0 };
    let (by, statistics) = (by(table), table.statistics);
    let kind = if table.is_text() { format!(" {}", table.kind) } else { String::new() };
    let mut row = Row::of_samples(
        format!("{task_name}, {by}"),
        format!("{}{kind} columns, statistics: {statistics}", table.columns),
        ("µs", bar),
        &names,
        &samples,
    );
    let (_, ours) = &answers[0];
    if table.writer == "ours-locator" && task == "open10" && table.columns == 100_000 {
        row.bar = 2000.0;
    }
    #[allow(clippy::cast_precision_loss, reason = "an average, to be read")]
    let of_column = row.ours.map(|ours| ours / table.columns as f64);
    row.more = json!({
        "bytes_read": ours["bytes"], "rounds": ours["rounds"], "us_per_column": of_column,
        "is_growth": task == "open10" && statistics == "chunk" && !table.is_text(),
    });
    row
}

fn by(table: &Table<'_>) -> &'static str {
    match table.writer {
        "ours" => "written by Marquetry",
        "ours-locator" => "written by Marquetry, with a locator",
        "pyarrow" => "written by pyarrow",
        _ => "written by parquet-rs",
    }
}

/// Sizes of files, by what wrote them.
#[allow(clippy::cast_precision_loss, reason = "to be read")]
fn sizes(measured: &[Measured]) -> Vec<Row> {
    let is_same = |one: &Table<'_>, other: &Table<'_>| {
        (one.columns, one.statistics, one.kind) == (other.columns, other.statistics, other.kind)
    };
    let mut rows = Vec::new();
    for ours in measured.iter().filter(|measured| measured.table.writer == "ours") {
        let all = measured.iter().filter(|other| is_same(&ours.table, &other.table));
        let of_column = |bytes: u64| bytes as f64 / ours.table.columns as f64;
        let peers: Vec<(String, f64)> = all
            .clone()
            .filter(|other| other.table.writer != "ours")
            .map(|other| (other.table.writer.to_owned(), of_column(other.bytes)))
            .collect();
        let of_peers = peers.iter().filter(|(name, _)| !name.starts_with("ours")).map(|(_, bytes)| *bytes);
        let best = of_peers.fold(f64::INFINITY, f64::min);
        let footers: Vec<Value> = all
            .map(|other| json!({ "writer": other.table.writer, "footer_bytes": other.footer_bytes, "bytes": other.bytes }))
            .collect();
        rows.push(Row {
            group: "Size".to_owned(),
            case: format!(
                "{} {} columns, statistics: {}",
                ours.table.columns, ours.table.kind, ours.table.statistics
            ),
            unit: "bytes a column",
            better: Better::Lower,
            ours: Some(of_column(ours.bytes)),
            peers,
            bar: best,
            ratio: None,
            more: json!({ "files": footers }),
        });
    }
    rows
}

/// What an opening consists of.
#[allow(clippy::cast_precision_loss, reason = "to be read")]
fn split(measured: &[Measured]) -> String {
    let mut text = "## What an opening consists of\n\nMicroseconds a column: finding where structures end (the walk, for no column), our structures (what opening \
        the whole footer takes beyond that), and then Arrow's schema. Of a file with a locator no column takes no walk.\n\n\
        | file | footer, bytes a column | walk | our structures | Arrow's schema |\n|---|--:|--:|--:|--:|\n"
        .to_owned();
    for one in measured.iter().filter(|one| one.table.columns >= 1000) {
        let open = one.rows.iter().find(|row| row.group.starts_with("open whole")).and_then(|row| row.ours);
        let of_column = |micros: f64| format!("{:.3}", micros / one.table.columns as f64);
        text += &format!(
            "| {} {} columns, statistics: {}, {} | {:.0} | {} | {} | {} |\n",
            one.table.columns,
            one.table.kind,
            one.table.statistics,
            by(&one.table),
            one.footer_bytes as f64 / one.table.columns as f64,
            of_column(one.walk),
            open.map_or("–".to_owned(), |open| of_column((open - one.walk).max(0.0))),
            of_column(one.arrow),
        );
    }
    text
}

fn seconds(answer: &Value) -> Vec<f64> {
    answer["seconds"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// What a contestant says.
fn say(mut command: Command) -> Result<Value, String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{command:?}: {error}"))
}

fn report(options: &Options, rows: Vec<Row>, versions: &Value) -> Report {
    let told = versions.as_object().into_iter().flatten().filter(|(name, _)| *name != "ours");
    let told: Vec<String> =
        told.map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or("?"))).collect();
    let notes = vec![
        format!(
            "Tables of very many optional columns, {GROUPS} row groups of {GROUP_ROWS} rows, so that files are mostly metadata; names of many lengths, up to four nulls \
             in ten rows, each writer's defaults otherwise (SNAPPY). Median CPU time to open a file whole, to open it for {WANTED} of its columns, and to open it and read those. \
             One thread; the file's bytes are in memory for Marquetry and parquet-rs, and mapped or in the page cache for the others. Every answer is proved."
        ),
        "parquet-rs opens for ten columns without the statistics of others and without sizes, which is all that it can skip; its opening has no Arrow schema, its \
         reading has. pyarrow has no opening for some columns: it opens whole. DuckDB and Polars are asked for no row of the columns. DuckDB is left out of 100,000 \
         columns where statistics are not those of chunks."
            .to_owned(),
        "Bars: files by others are opened for ten columns in a third of the best peer's time; our own with a locator, of 100,000 columns, in 2 ms; elsewhere the best peer."
            .to_owned(),
        format!("{}. {}.", told.join(", "), clock::processor()),
    ];
    Report {
        name: "wide".to_owned(),
        title: "Wide tables: Marquetry and its peers".to_owned(),
        notes,
        setting: json!({ "columns": options.columns, "versions": versions, "processor": clock::processor() }),
        rows,
    }
}
