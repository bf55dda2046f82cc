//! The benchmark of reading SSTables: to batches, and to Parquet files. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use marquetry_bench::chart::{self, Axis};
use marquetry_bench::program;
use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::sstables::{data_file, made};
use marquetry_bench::{clock, stats};
use serde_json::json;

const USAGE: &str = "usage: bench-sstable --files DIR --out DIR --bin DIR --marquetry PROGRAM --cassandra CASSANDRA.SH --maker MAKETABLES.JAVA
                     [--cqlite PROGRAM] [--rows 5000000] [--dump-rows 200000] [--rounds 5] [--only WORDS] [--folder DIR]

--cqlite is the program of dev/bench/cqlite; --dump-rows is how many rows sstabledump reads (its speed does not depend on it); --only keeps the
tables whose name has all of the words; --folder is where Parquet files are written: in memory (/dev/shm).";

/// Tables, and what a core is to reach: rows a second, or bytes of data a second.
const TABLES: [(&str, &str, Bar); 4] = [
    ("int, int", "pair:full", Bar::Rows(8e6)),
    ("ten columns", "mixed:", Bar::Bytes(400e6)),
    ("text of 100", "text:100:10000", Bar::Bytes(600e6)),
    ("time series with a TTL", "series:", Bar::None),
];

#[derive(Clone, Copy)]
enum Bar {
    Rows(f64),
    Bytes(f64),
    None,
}

/// To a file of the mapping `full`, a core: bytes of data a second.
const FULL_BAR: f64 = 150e6;
/// Times the speed of cqlite's scan, and of sstabledump.
const CQLITE_BAR: f64 = 1.25;
const DUMP_BAR: f64 = 10.0;
const MEMORY_BAR_MIB: f64 = 256.0;

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-sstable: {message}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Options {
    files: PathBuf,
    out: PathBuf,
    bin: PathBuf,
    marquetry: PathBuf,
    cassandra: PathBuf,
    maker: PathBuf,
    cqlite: Option<PathBuf>,
    rows: u64,
    dump_rows: u64,
    rounds: usize,
    only: Vec<String>,
    folder: PathBuf,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let mut options = Options {
            rows: 5_000_000,
            dump_rows: 200_000,
            rounds: 5,
            folder: PathBuf::from("/dev/shm"),
            ..Options::default()
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            let number = || value.parse().map_err(|_| format!("{value} is not a number"));
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--bin" => options.bin = value.into(),
                "--marquetry" => options.marquetry = value.into(),
                "--cassandra" => options.cassandra = value.into(),
                "--maker" => options.maker = value.into(),
                "--cqlite" => options.cqlite = Some(value.into()),
                "--rows" => options.rows = number()?,
                "--dump-rows" => options.dump_rows = number()?,
                "--folder" => options.folder = value.into(),
                "--rounds" => options.rounds = value.parse().map_err(|_| USAGE.to_owned())?,
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let Options { files, out, bin, marquetry, cassandra, maker, .. } = &options;
        if [files, out, bin, marquetry, cassandra, maker].iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut rows = Vec::new();
    for (name, made_by, bar) in TABLES {
        if options.only.iter().all(|word| name.split([' ', ',']).any(|other| other == word)) {
            rows.extend(measure(options, name, made_by, bar)?);
        }
    }
    if rows.is_empty() {
        return Err("no table has all of those words".to_owned());
    }
    let groups = ["Scan", "To a `full`", "To a `logical`", "Peak memory"];
    rows.sort_by_key(|row| groups.iter().position(|group| row.group.starts_with(group)));
    rows.iter().for_each(Row::tell);
    let report = Report {
        name: "sstable".to_owned(),
        title: "Reading SSTables: Marquetry and its peers".to_owned(),
        notes: vec![
            format!(
                "{} rows, written by Cassandra's own writer (`CQLSSTableWriter`) as one SSTable of format `nb` with LZ4 and its default chunks of 16 KiB; bytes are those of Data.db, uncompressed. \
                 Files are in the page cache. Medians of {} rounds; contestants took turns.",
                options.rows, options.rounds
            ),
            format!(
                "A scan ends in each contestant's own form of rows: ours batches in columns, with all checksums (chunks and digest) verified; cqlite-core's its stream of batches of rows; \
             sstabledump's JSON to /dev/null (measured with {} rows and scaled to all, without the start of its JVM, measured by an SSTable of 1000 rows; one run). To Parquet: `marquetry copy sstable:DIR FILE` from start to end, \
             with SNAPPY, into memory (/dev/shm), on so many threads.",
                options.dump_rows
            ),
            format!("cqlite-core 0.18.0, Cassandra 5.0.9. {}.", clock::processor()),
        ],
        setting: json!({ "rows": options.rows, "rounds": options.rounds, "processor": clock::processor(), "versions": { "cqlite-core": "0.18.0", "cassandra": "5.0.9" } }),
        rows,
    };
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    let speeds = Report {
        rows: report.rows.iter().filter(|row| row.unit == "s").cloned().collect(),
        ..report.clone()
    };
    report.write(&options.out, Some(&chart::draw(&speeds, &Axis::relative())))
}

fn measure(options: &Options, name: &str, made_by: &str, bar: Bar) -> Result<Vec<Row>, String> {
    let dir = make(options, made_by, options.rows)?;
    let data = data_file(&dir)?;
    let schema = dir.join("schema.cql");
    let pinned = |program: &Path| {
        let mut command = Command::new("taskset");
        command.args(["-c", "0"]).arg(program);
        command
    };
    let ours = || {
        let mut command = pinned(&options.bin.join("bench-sstable-ours"));
        command.arg(&data).arg("1");
        command
    };
    let cqlite = |program: &Path, threads: &str| {
        let mut command = if threads == "1" { pinned(program) } else { Command::new(program) };
        command.arg(&data).arg(&schema).args(["1", threads]);
        command
    };
    let (mut our_times, mut cqlite_times, mut cqlite_two) = (Vec::new(), Vec::new(), Vec::new());
    let (mut count, mut bytes) = (0.0, 0.0);
    for _ in 0..options.rounds {
        let answer = numbers(ours())?;
        let [rows, data_bytes, seconds] = answer[..] else { return Err(format!("{name}: {answer:?}")) };
        (count, bytes) = (rows, data_bytes);
        our_times.push(seconds);
        if let Some(program) = &options.cqlite {
            for (threads, times) in [("1", &mut cqlite_times), ("2", &mut cqlite_two)] {
                let answer = numbers(cqlite(program, threads))?;
                let [rows, seconds] = answer[..] else { return Err(format!("{name}: {answer:?}")) };
                if rows != count {
                    return Err(format!("{name}: cqlite found {rows} rows of {count}"));
                }
                times.push(seconds);
            }
        }
    }
    let dump_s = dump(options, made_by)? * count / options.dump_rows as f64;
    let peers = |times: &[f64], name: &str| {
        let cqlite = (!times.is_empty()).then(|| (name.to_owned(), stats::median(times)));
        cqlite.into_iter().chain([("sstabledump".to_owned(), dump_s)]).collect::<Vec<_>>()
    };
    let row = |group: &str, times: &[f64], peers: Vec<(String, f64)>, bar: f64| {
        let ours = stats::median(times);
        let bars = peers
            .iter()
            .map(|(name, seconds)| seconds / if name.starts_with("cqlite") { CQLITE_BAR } else { DUMP_BAR });
        let ratio = peers.iter().map(|(_, seconds)| ours / seconds).fold(f64::NAN, f64::max);
        let mega = |amount: f64| (amount / ours / 1e4).round() / 100.0;
        Row {
            group: group.to_owned(),
            case: format!("{name}: {} million rows/s, {:.0} MB/s", mega(count), mega(bytes)),
            unit: "s",
            better: Better::Lower,
            ours: Some(ours),
            bar: bars.fold(bar, f64::min),
            ratio: (!ratio.is_nan()).then_some((ratio, [ratio, ratio])),
            more: json!({ "table": name, "rows_per_s": count / ours, "bytes_per_s": bytes / ours }),
            peers,
        }
    };
    let scan_bar = match bar {
        Bar::Rows(rows) => count / rows,
        Bar::Bytes(speed) => bytes / speed,
        Bar::None => f64::INFINITY,
    };
    let mut rows =
        vec![row("Scan to batches, one core", &our_times, peers(&cqlite_times, "cqlite-core"), scan_bar)];
    let mut most = 0.0_f64;
    for mapping in ["full", "logical"] {
        for threads in ["1", "2"] {
            let mut times = Vec::new();
            for _ in 0..options.rounds {
                let out = options.folder.join("sstable-out.parquet");
                let mut command = if threads == "1" {
                    pinned(&options.marquetry)
                } else {
                    Command::new(&options.marquetry)
                };
                command.arg("copy").arg(format!("sstable:{}", dir.display())).arg(&out);
                command
                    .args(["--mapping", mapping, "--threads", threads])
                    .stdin(Stdio::null())
                    .stderr(Stdio::null());
                let run = program::watch(command)?;
                times.push(run.wall_s);
                most = most.max(run.peak_mib);
                std::fs::remove_file(&out).map_err(|error| format!("{}: {error}", out.display()))?;
            }
            let bar = if mapping == "full" && threads == "1" { bytes / FULL_BAR } else { f64::INFINITY };
            let cores = if threads == "1" { "one core" } else { "two cores" };
            let group = format!("To a `{mapping}` Parquet file, {cores}");
            // Others make no such file: their scans are told as what they need for less.
            rows.push(row(&group, &times, vec![("sstabledump".to_owned(), dump_s)], bar));
        }
    }
    rows.push(Row {
        group: "Peak memory of copies".to_owned(),
        case: name.to_owned(),
        unit: "MiB",
        better: Better::Lower,
        ours: Some(most),
        peers: Vec::new(),
        bar: MEMORY_BAR_MIB,
        ratio: None,
        more: json!({}),
    });
    if !cqlite_two.is_empty() {
        rows[0].more["cqlite_two_threads_s"] = json!(stats::median(&cqlite_two));
    }
    Ok(rows)
}

/// The seconds of sstabledump for the smaller SSTable, without those of its start.
fn dump(options: &Options, made_by: &str) -> Result<f64, String> {
    let seconds = |rows: u64| {
        let data = data_file(&make(options, made_by, rows)?)?;
        let mut command = Command::new(&options.cassandra);
        command.arg("dump").arg(&data).stdin(Stdio::null()).stderr(Stdio::null());
        program::watch(command).map(|run| run.wall_s)
    };
    Ok(seconds(options.dump_rows)? - seconds(1000)?)
}

/// The SSTable's folder; it is made unless it is there.
fn make(options: &Options, made_by: &str, rows: u64) -> Result<PathBuf, String> {
    made(&options.files, (&options.cassandra, &options.maker), made_by, rows)
}

fn numbers(mut command: Command) -> Result<Vec<f64>, String> {
    let text = program::output(&mut command)?;
    text.split_whitespace().map(|word| word.parse().map_err(|_| format!("not numbers: {text}"))).collect()
}
