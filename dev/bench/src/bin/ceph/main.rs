//! The benchmark of the object class: what it is like for others beside its queries, what moves, and what a client works. See `README.md` for
//! what makes it fair.
#![forbid(unsafe_code)]

mod cluster;
mod forms;
mod lineitem;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use marquetry_base::Codec;
use marquetry_bench::clock;
use marquetry_bench::report::{Better, Report, Row};
use marquetry_parquet::format::Compression;
use marquetry_rados::{Asked, Pool};
use serde_json::json;

use crate::cluster::Cluster;

const USAGE: &str = "usage: bench-ceph --files DIR --out DIR --ceph CEPH.SH --classes DIR
                  [--rows 600000] [--seconds 20] [--store bluestore] [--plain PROGRAM] [--only WORDS]

--classes is what `dev/ceph.sh build-bench` made.
--plain is what reads rows by the FlatBuffers library: flat_rows.cc.
--only keeps the parts whose name has one of the words: guest, memory, client, forms.";

/// Of the reads of others, beside a class that decodes whole objects at once.
const GUEST_BAR: f64 = 0.25;
const CALL_BAR_MS: f64 = 5.0;
const MEMORY_BAR_MIB: f64 = 64.0;
/// Bytes that move for a selective query, in percent of the object's.
const MOVED_BAR_PERCENT: f64 = 1.0;
/// Times less work of a client.
const CLIENT_BAR: f64 = 10.0;

/// Objects that others read, and their bytes. They are in all placement groups, so also in those of the queries.
const OTHERS: usize = 64;
const OTHER_BYTES: usize = 64 << 10;
const READ_BYTES: u64 = 4 << 10;
/// Copies of the table that are queried, and streams of queries.
const COPIES: usize = 4;
const STREAMS: usize = 2;

/// The class whose calls end when all is done.
const WHOLE: &str = "marquetry_whole";

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-ceph: {message}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Options {
    files: PathBuf,
    out: PathBuf,
    ceph: PathBuf,
    classes: PathBuf,
    store: String,
    plain: Option<PathBuf>,
    rows: u64,
    seconds: u64,
    only: Vec<String>,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let store = "bluestore".to_owned();
        let mut options = Options { rows: 600_000, seconds: 20, store, ..Options::default() };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| USAGE.to_owned())?;
            let number = || value.parse::<u64>().map_err(|_| format!("{value} is not a number"));
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--ceph" => options.ceph = value.into(),
                "--classes" => options.classes = value.into(),
                "--store" => options.store = value,
                "--plain" => options.plain = Some(value.into()),
                "--rows" => options.rows = number()?.max(1000),
                "--seconds" => options.seconds = number()?.max(1),
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let paths = [&options.files, &options.out, &options.ceph, &options.classes];
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|word| part.contains(word.as_str()))
    }
}

/// What is measured: a table in a pool, and others' objects beside it.
struct Bench<'a> {
    options: &'a Options,
    cluster: &'a Cluster,
    pool: Pool,
    file: PathBuf,
    bytes: u64,
    copies: Vec<String>,
    others: Vec<String>,
}

fn run(options: &Options) -> Result<(), String> {
    let file = options.files.join(format!("lineitem-{}.parquet", options.rows));
    if !file.exists() {
        eprintln!("making {}", file.display());
        let made = file.with_extension("new");
        lineitem::write(&made, options.rows, Compression::Codec(Codec::Zstd))?;
        std::fs::rename(&made, &file).map_err(|error| error.to_string())?;
    }
    let content = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let directory = options.out.join("ceph-cluster");
    let cluster = Cluster::start(&options.ceph, &directory, &options.classes, (1, &options.store))?;
    let pool = Pool::open(&cluster.configuration, "test").map_err(|error| error.to_string())?;
    let copies: Vec<String> = (0..COPIES).map(|number| format!("lineitem/{number}.parquet")).collect();
    let others: Vec<String> = (0..OTHERS).map(|number| format!("others/{number}")).collect();
    for copy in &copies {
        pool.write(copy, &content, true).map_err(|error| error.to_string())?;
    }
    for other in &others {
        pool.write(other, &vec![7; OTHER_BYTES], true).map_err(|error| error.to_string())?;
    }
    let bytes = content.len().try_into().unwrap_or(0);
    let bench = Bench { options, cluster: &cluster, pool, file, bytes, copies, others };
    let mut rows = Vec::new();
    if options.wants("client") {
        rows.extend(bench.client()?);
    }
    if options.wants("guest") {
        rows.extend(bench.guest()?);
    }
    if options.wants("forms") {
        for thousands in [50, 500] {
            let rows_each = if options.rows < 100_000 { thousands * 100 } else { thousands * 1000 };
            rows.extend(forms::compare(&bench.pool, &options.files, rows_each, options.plain.as_deref())?);
        }
    }
    if options.wants("memory") {
        rows.extend(bench.memory()?);
    }
    let report = Report {
        name: "ceph".to_owned(),
        title: "The object class for Ceph".to_owned(),
        notes: vec![
            format!(
                "One OSD ({}) on this machine, with its client on the same cores; TPC-H's lineitem of {} rows, {} MiB of Parquet by ZSTD, {COPIES} \
                 times. “Whole objects at once” is the same engine in a class whose calls end when all is done, for the same queries.",
                options.store,
                options.rows,
                bytes >> 20
            ),
            "Of wall time on so few cores nothing follows for a cluster: OSD, client and the others share them, and a call that waits for its turn \
             counts as long as that takes."
                .to_owned(),
        ],
        setting: json!({
            "processor": clock::processor(),
            "store": options.store,
            "rows": options.rows,
            "object_bytes": bytes,
            "seconds": options.seconds,
            "streams": STREAMS,
        }),
        rows,
    };
    report.write(&options.out, None)
}

/// A query of the load, by its name.
fn loads() -> [(&'static str, Asked); 3] {
    let sums = ["count(*)", "sum(l_quantity)", "sum(l_extendedprice)"];
    let sums = sums.into_iter().fold(Asked::new(), Asked::aggregate);
    [
        ("all rows", Asked::new()),
        ("no row, by a pattern", Asked::new().predicate("l_comment LIKE '%zebra%'")),
        ("sums by groups", sums.group_by("l_returnflag").group_by("l_linestatus")),
    ]
}

/// The same, all at once.
fn at_once(asked: &Asked) -> Asked {
    asked.clone().share(u64::MAX, u64::MAX)
}

impl Bench<'_> {
    /// What others wait, and how long calls take.
    fn guest(&self) -> Result<Vec<Row>, String> {
        let mut rows = Vec::new();
        let alone = self.reads()?;
        eprintln!("others alone: p99 {:.2} ms of {} reads", quantile(&alone, 99), alone.len());
        for (name, asked) in loads() {
            let (ours, calls, work) = self.beside(&self.pool, &asked)?;
            let whole = self.pool.clone().by_class(WHOLE);
            let (theirs, whole_calls, whole_work) = self.beside(&whole, &at_once(&asked))?;
            let row = |group: &str, (ours, theirs): (f64, f64), bar: f64, more| Row {
                group: group.to_owned(),
                case: name.to_owned(),
                unit: "ms",
                better: Better::Lower,
                ours: Some(ours),
                peers: vec![("whole objects at once".to_owned(), theirs)],
                bar,
                ratio: None,
                more,
            };
            let (own, other) = (quantile(&ours, 99), quantile(&theirs, 99));
            let more = json!({
                "alone_p99_ms": quantile(&alone, 99),
                "reads": ours.len(),
                "reads_beside_whole": theirs.len(),
                "median_ms": quantile(&ours, 50),
                "median_beside_whole_ms": quantile(&theirs, 50),
                "longest_ms": quantile(&ours, 100),
                "longest_beside_whole_ms": quantile(&theirs, 100),
            });
            rows.push(row(
                "Reads of 4 KiB of other objects, 99th percentile",
                (own, other),
                GUEST_BAR * other,
                more,
            ));
            for (what, ours, theirs) in
                [("the clock's time", &calls, &whole_calls), ("work of its thread", &work, &whole_work)]
            {
                let more = json!({ "calls": ours.len(), "p99_ms": quantile(ours, 99), "median_ms": quantile(ours, 50) });
                let group = format!("The longest call into the class, {what}");
                let longest = (quantile(ours, 100), quantile(theirs, 100));
                rows.push(row(&group, longest, CALL_BAR_MS, more));
            }
        }
        rows.iter().for_each(Row::tell);
        Ok(rows)
    }

    /// Reads beside streams of queries; and the calls of these, by the clock and by their thread's work. All in milliseconds.
    fn beside(&self, pool: &Pool, asked: &Asked) -> Result<(Vec<f64>, Vec<f64>, Vec<f64>), String> {
        times(pool, &self.copies[0])?;
        let stop = AtomicBool::new(false);
        let answered = AtomicU64::new(0);
        let reads = std::thread::scope(|scope| {
            let streams: Vec<_> = (0..STREAMS)
                .map(|number| {
                    let (stop, answered) = (&stop, &answered);
                    scope.spawn(move || self.stream(pool, asked, (number, stop, answered)))
                })
                .collect();
            let reads = self.reads();
            stop.store(true, Ordering::Relaxed);
            for stream in streams {
                stream.join().map_err(|_| "a stream of queries panicked".to_owned())??;
            }
            reads
        })?;
        let (calls, work) = times(pool, &self.copies[0])?;
        if answered.load(Ordering::Relaxed) == 0 {
            return Err("no query was answered meanwhile: more seconds are needed".to_owned());
        }
        Ok((reads, calls, work))
    }

    /// Queries one copy of the table after the other, until it is stopped.
    fn stream(
        &self,
        pool: &Pool,
        asked: &Asked,
        (number, stop, answered): (usize, &AtomicBool, &AtomicU64),
    ) -> Result<(), String> {
        for copy in self.copies.iter().cycle().skip(number) {
            for answer in pool.query(copy, asked).map_err(|error| error.to_string())? {
                answer.map_err(|error| error.to_string())?;
                answered.fetch_add(1, Ordering::Relaxed);
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// How long reads of 4 KiB take, one after the other, of all other objects.
    fn reads(&self) -> Result<Vec<f64>, String> {
        let other = Pool::open(&self.cluster.configuration, "test").map_err(|error| error.to_string())?;
        let (begun, mut took) = (Instant::now(), Vec::new());
        let time = Duration::from_secs(self.options.seconds);
        for (number, name) in self.others.iter().cycle().enumerate() {
            if begun.elapsed() >= time {
                break;
            }
            // All over the object, the same in every run.
            let pieces = OTHER_BYTES as u64 / READ_BYTES;
            let at = number as u64 * 7 % pieces * READ_BYTES;
            let read = Instant::now();
            other.read(name, at..at + READ_BYTES).map_err(|error| error.to_string())?;
            took.push(read.elapsed().as_secs_f64() * 1e3);
        }
        Ok(took)
    }

    /// By how much the OSD's memory grows while queries come, eight at a time.
    fn memory(&self) -> Result<Vec<Row>, String> {
        // What it keeps of objects that are read, it keeps before.
        for copy in &self.copies {
            self.pool.read(copy, 0..self.bytes).map_err(|error| error.to_string())?;
        }
        let mut rows = Vec::new();
        for (name, asked) in loads() {
            let ours = self.growth(&self.pool, &asked)?;
            let theirs = self.growth(&self.pool.clone().by_class(WHOLE), &at_once(&asked))?;
            let row = Row {
                group: "Growth of the OSD's memory at its peak, beside eight queries at a time".to_owned(),
                case: name.to_owned(),
                unit: "MiB",
                better: Better::Lower,
                ours: Some(ours),
                peers: vec![("whole objects at once".to_owned(), theirs)],
                bar: MEMORY_BAR_MIB,
                ratio: None,
                more: json!({}),
            };
            row.tell();
            rows.push(row);
        }
        Ok(rows)
    }

    fn growth(&self, pool: &Pool, asked: &Asked) -> Result<f64, String> {
        let before = self.cluster.forget_peak()?;
        let copies: Vec<String> = self.copies.iter().cycle().take(2 * COPIES).cloned().collect();
        pool.query_all(&copies, asked, 8, |_, _| Ok(true)).map_err(|error| error.to_string())?;
        Ok(self.cluster.peak_mib()? - before)
    }

    /// What moves, and what a client works, beside reading the object and searching it there.
    fn client(&self) -> Result<Vec<Row>, String> {
        let columns = ["l_orderkey", "l_extendedprice"];
        let two = |predicate: &str| {
            columns.into_iter().fold(Asked::new().predicate(predicate), |asked, column| asked.column(column))
        };
        let sum = |predicate: &str| {
            Asked::new().aggregate("count(*)").aggregate("sum(l_extendedprice)").predicate(predicate)
        };
        let percent = |part: u64| format!("l_partkey <= {}", 2000 * part);
        // Which part of the rows moves is what the query asks for: of 10 % of them, nobody expects 1 % of the bytes.
        let queries = [
            (
                "one order, all columns",
                Asked::new().predicate("l_orderkey = 1001"),
                "l_orderkey = 1001".to_owned(),
                true,
            ),
            ("1 %, sum", sum(&percent(1)), percent(1), true),
            ("10 %, sum", sum(&percent(10)), percent(10), true),
            ("1 %, two columns", two(&percent(1)), percent(1), true),
            ("10 %, two columns", two(&percent(10)), percent(10), false),
            ("all rows, two columns", two("l_orderkey > 0"), "l_orderkey > 0".to_owned(), false),
        ];
        let mut rows = Vec::new();
        for (name, asked, predicate, is_selective) in queries {
            let (mut ours, mut theirs, mut moved, mut calls) = (Vec::new(), Vec::new(), 0_u64, 0_u64);
            // The first one is not counted.
            for round in 0..6 {
                let begun = cpu_ms();
                (moved, calls) = (0, 0);
                for answer in self.pool.query(&self.copies[0], &asked).map_err(|error| error.to_string())? {
                    let answer = answer.map_err(|error| error.to_string())?;
                    (moved, calls) = (moved + answer.data.len() as u64, calls + 1);
                }
                let between = cpu_ms();
                self.search_here(&predicate, &columns)?;
                if round > 0 {
                    ours.push(between - begun);
                    theirs.push(cpu_ms() - between);
                }
            }
            let percent = 100.0 * ratio(moved, self.bytes);
            let moved_row = Row {
                group: "Bytes that move, in percent of the object's".to_owned(),
                case: name.to_owned(),
                unit: "%",
                better: Better::Lower,
                ours: Some(percent),
                peers: vec![("reading the object".to_owned(), 100.0)],
                bar: if is_selective { MOVED_BAR_PERCENT } else { f64::NAN },
                ratio: None,
                more: json!({ "bytes": moved, "calls": calls }),
            };
            let group = "CPU of the client".to_owned();
            let names = ["ours", "reading the object, and searching it"];
            let bar = if is_selective { 1.0 / CLIENT_BAR } else { f64::NAN };
            rows.push(moved_row);
            rows.push(Row::of_samples(group, name.to_owned(), ("ms", bar), &names, &[ours, theirs]));
        }
        rows.iter().for_each(Row::tell);
        Ok(rows)
    }

    /// Reads the whole object from the pool, and finds its rows: in the file that it is a copy of.
    fn search_here(&self, predicate: &str, columns: &[&str]) -> Result<u64, String> {
        self.pool.read(&self.copies[0], 0..self.bytes).map_err(|error| error.to_string())?;
        let text = |error: marquetry::Error| error.to_string();
        let reader = marquetry::open(&self.file).map_err(text)?.filter(predicate).map_err(text)?;
        let reader = reader.columns(columns.iter().copied()).map_err(text)?;
        let mut rows = 0;
        for batch in reader.record_batches().map_err(text)? {
            rows += batch.map_err(text)?.num_rows() as u64;
        }
        Ok(rows)
    }
}

/// How long calls took since the last time, in the OSD that has an object: by the clock, and of their thread's work, in milliseconds.
fn times(pool: &Pool, object: &str) -> Result<(Vec<f64>, Vec<f64>), String> {
    let bytes = pool.execute(object, "times", b"").map_err(|error| error.to_string())?;
    let (mut wall, mut work) = (Vec::new(), Vec::new());
    for pair in bytes.as_chunks::<8>().0 {
        let [w0, w1, w2, w3, c0, c1, c2, c3] = *pair;
        wall.push(f64::from(u32::from_le_bytes([w0, w1, w2, w3])) / 1e3);
        work.push(f64::from(u32::from_le_bytes([c0, c1, c2, c3])) / 1e3);
    }
    Ok((wall, work))
}

/// The value that so many percent of all do not exceed.
fn quantile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

fn ratio(part: u64, all: u64) -> f64 {
    part as f64 / all as f64
}

/// What this process has worked, all threads together, in milliseconds.
fn cpu_ms() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
}
