//! The benchmark of the object class: what it is like for others beside its queries, what moves, what a client works, and the published
//! experiment. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

mod cluster;
mod forms;
mod lineitem;
mod measure;
mod spread;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use marquetry::Reader;
use marquetry::arrow::ToArrow;
use marquetry::tables::files::{Files, FilesOptions};
use marquetry::tables::{Aggregates, Reading, ReadingOptions, aggregate};
use marquetry_base::{Budget, Codec};
use marquetry_bench::clock;
use marquetry_bench::report::{Better, Report, Row};
use marquetry_io::store::{LocalFiles, Store};
use marquetry_parquet::format::Compression;
use marquetry_rados::{Asked, Pool, RadosObjects};
use serde_json::json;

use crate::cluster::Cluster;
use crate::lineitem::Lines;
use crate::measure::{client_ms, quantile, text, times};

const USAGE: &str = "usage: bench-ceph --files DIR --out DIR --ceph CEPH.SH --classes DIR
                  [--rows 600000] [--seconds 20] [--store bluestore] [--osds \"1 2 4\"] [--plain PROGRAM] [--only WORDS]

--rows is of the table that most is about; of less than 100,000, all other objects have a tenth of their rows, too.
--classes is what `dev/ceph.sh build-bench` made.
--osds is how many OSDs the part of this name has, one after the other. All others have one.
--plain is what reads rows by the FlatBuffers library: flat_rows.cc.
--only keeps the parts whose name has one of the words: client, guest, memory, forms, osds.";

/// Of the reads of others, beside a class that decodes whole objects at once.
const GUEST_BAR: f64 = 0.25;
const CALL_BAR_MS: f64 = 5.0;
const MEMORY_BAR_MIB: f64 = 64.0;
/// Bytes that move for a selective query, in percent of the object's.
const MOVED_BAR_PERCENT: f64 = 1.0;
/// Bytes at the end of an object in which its footer is looked for, before anything is asked.
const FOOTER_BYTES: u64 = 64 << 10;
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
    osds: Vec<u64>,
    plain: Option<PathBuf>,
    rows: u64,
    seconds: u64,
    only: Vec<String>,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let store = "bluestore".to_owned();
        let mut options =
            Options { rows: 600_000, seconds: 20, store, osds: vec![1, 2, 4], ..Options::default() };
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
                "--osds" => {
                    let numbers = value.split_whitespace().map(str::parse::<u64>);
                    options.osds = numbers.collect::<Result<_, _>>().map_err(|_| format!("{value} OSDs?"))?;
                }
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

    /// As many, or a tenth of them if it is only to be seen whether all works.
    fn rows_of(&self, rows: u64) -> u64 {
        if self.rows < 100_000 { rows / 10 } else { rows }
    }
}

fn run(options: &Options) -> Result<(), String> {
    let mut rows = Vec::new();
    let file = options.files.join("ceph-lineitem.parquet");
    eprintln!("making {}", file.display());
    let lines = (&mut Lines::new(options.rows), options.rows);
    lineitem::write(&file, lines, forms::SHAPES[1].columns, Compression::Codec(Codec::Zstd))?;
    if ["client", "guest", "forms"].into_iter().any(|part| options.wants(part)) {
        rows.extend(in_one_osd(options, &file)?);
    }
    if options.wants("memory") {
        rows.extend(memory(options, &file)?);
    }
    if options.wants("osds") {
        rows.extend(spread::spread(options, options.rows_of(50_000))?);
    }
    let report = Report {
        name: "ceph".to_owned(),
        title: "The object class for Ceph".to_owned(),
        notes: vec![
            format!(
                "One OSD ({}) on this machine, with its client on the same cores; TPC-H's lineitem of {} rows, Parquet by ZSTD, {COPIES} times. “Whole \
                 objects at once” is the same engine in a class whose calls end when all is done, for the same queries. All forms of the same rows \
                 gave the same answers.",
                options.store, options.rows,
            ),
            "Of wall time on so few cores nothing follows for a cluster: OSD, client and the others share them, and a call that waits for its turn \
             counts as long as that takes. So of several OSDs there is the work of the busiest alone, as evenly as Ceph places objects: what a machine \
             for each would have to do."
                .to_owned(),
            "Rows beside a plain loop are the engine of the class over the same bytes in memory: the loop does not read them of an OSD, either. What it takes \
             in the OSD, with reading, is in the table of the work there, of rows."
                .to_owned(),
            "There is one object of each size, and of rows as many as hold the same rows: an object is written at once, and has 90 MiB at most. Of 2 GB \
             of them, each would say the same."
                .to_owned(),
        ],
        setting: json!({
            "processor": clock::processor(),
            "store": options.store,
            "rows": options.rows,
            "seconds": options.seconds,
            "streams": STREAMS,
        }),
        rows,
    };
    report.write(&options.out, None)
}

/// An OSD that has copies of a file, and nothing else.
fn with_copies(options: &Options, file: &Path) -> Result<(Cluster, Pool, u64), String> {
    let content = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let cluster = Cluster::start(options, 1)?;
    let pool = Pool::open(&cluster.configuration, "test").map_err(text)?;
    for copy in copies() {
        pool.write(&copy, &content, true).map_err(text)?;
    }
    Ok((cluster, pool, content.len() as u64))
}

fn copies() -> Vec<String> {
    (0..COPIES).map(|number| format!("lineitem/{number}.parquet")).collect()
}

/// By how much an OSD's memory grows while queries come, eight at a time. Each is another OSD, because one keeps what it had once.
fn memory(options: &Options, file: &Path) -> Result<Vec<Row>, String> {
    let growth = |class: Option<&str>, asked: &Asked| {
        let (cluster, pool, bytes) = with_copies(options, file)?;
        let pool = class.map_or_else(|| pool.clone(), |class| pool.clone().by_class(class));
        for copy in copies() {
            // What it keeps of objects that are read, and the class itself, it has before.
            pool.read(&copy, 0..bytes).map_err(text)?;
            times(&pool, &copy)?;
        }
        let before = cluster.forget_peak()?;
        let twice = [copies(), copies()].concat();
        pool.query_all(&twice, asked, 8, |_, _| Ok(true)).map_err(text)?;
        Ok::<f64, String>(cluster.peak_mib()? - before)
    };
    let mut rows = Vec::new();
    for (name, asked) in loads() {
        let (ours, theirs) = (growth(None, &asked)?, growth(Some(WHOLE), &at_once(&asked))?);
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

fn in_one_osd(options: &Options, file: &Path) -> Result<Vec<Row>, String> {
    let (cluster, pool, bytes) = with_copies(options, file)?;
    let others: Vec<String> = (0..OTHERS).map(|number| format!("others/{number}")).collect();
    for other in &others {
        pool.write(other, &vec![7; OTHER_BYTES], true).map_err(text)?;
    }
    let (file, copies) = (file.to_path_buf(), copies());
    let bench = Bench { options, cluster: &cluster, pool, file, bytes, copies, others };
    let mut rows = Vec::new();
    if options.wants("client") {
        rows.extend(bench.client()?);
    }
    if options.wants("guest") {
        rows.extend(bench.guest()?);
    }
    if options.wants("forms") {
        for shape in &forms::SHAPES {
            for size in shape.sizes {
                let case = (shape, options.rows_of(*size));
                rows.extend(forms::compare(&bench.pool, &options.files, case, options.plain.as_deref())?);
            }
        }
    }
    Ok(rows)
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

/// A query of the load, by its name: in the form in which `find` and all other commands ask.
fn loads() -> [(&'static str, Asked); 3] {
    let asked = Asked::new().as_parquet();
    let sums = ["count(*)", "sum(l_quantity)", "sum(l_extendedprice)"];
    let sums = sums.into_iter().fold(asked.clone(), Asked::aggregate);
    [
        ("all rows", asked.clone()),
        // Between the bounds of every page, and shorter than all: each has to be decoded.
        ("no row, by a text", asked.predicate("l_comment = 'courts'")),
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
            let [ours, calls, work] = self.beside(&self.pool, &asked)?;
            let whole = self.pool.clone().by_class(WHOLE);
            let [theirs, whole_calls, whole_work] = self.beside(&whole, &at_once(&asked))?;
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
    fn beside(&self, pool: &Pool, asked: &Asked) -> Result<[Vec<f64>; 3], String> {
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
        Ok([reads, calls, work])
    }

    /// Queries one copy of the table after the other, until it is stopped.
    fn stream(
        &self,
        pool: &Pool,
        asked: &Asked,
        (number, stop, answered): (usize, &AtomicBool, &AtomicU64),
    ) -> Result<(), String> {
        for copy in self.copies.iter().cycle().skip(number) {
            for answer in pool.query(copy, asked).map_err(text)? {
                answer.map_err(text)?;
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
        let other = Pool::open(&self.cluster.configuration, "test").map_err(text)?;
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
            other.read(name, at..at + READ_BYTES).map_err(text)?;
            took.push(read.elapsed().as_secs_f64() * 1e3);
        }
        Ok(took)
    }

    /// What moves, and what a client works, beside reading the object and searching it there.
    fn client(&self) -> Result<Vec<Row>, String> {
        // Which part of the rows moves is what the query asks for: of 10 % of them, nobody expects 1 % of the bytes.
        let percent = |part: u64| format!("l_partkey <= {}", 2000 * part);
        let queries = [
            ("one order, all columns", "l_orderkey = 1000".to_owned(), Wanted::All, true),
            ("1 %, sum", percent(1), Wanted::Sum, true),
            ("10 %, sum", percent(10), Wanted::Sum, true),
            ("1 %, two columns", percent(1), Wanted::Two, true),
            ("10 %, two columns", percent(10), Wanted::Two, false),
            ("all rows, two columns", "l_orderkey > 0".to_owned(), Wanted::Two, false),
        ];
        // One connection, as a client keeps it.
        let cluster = RadosObjects::beside(Arc::new(LocalFiles)).configured(&self.cluster.configuration);
        let cluster: Arc<dyn Store> = Arc::new(cluster);
        let object = format!("rados://test/{}", self.copies[0]);
        let mut rows = Vec::new();
        for (name, predicate, wanted, is_selective) in queries {
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            // The first one is not counted.
            for round in 0..6 {
                let begun = client_ms();
                let found = wanted.found(&object, &cluster, &predicate)?;
                let between = client_ms();
                self.pool.read(&self.copies[0], 0..self.bytes).map_err(text)?;
                let here = wanted.found(&self.file, &(Arc::new(LocalFiles) as Arc<dyn Store>), &predicate)?;
                let ended = client_ms();
                if found != here || found == 0 {
                    return Err(format!("{name}: {found} rows in the OSD, and {here} here"));
                }
                if round > 0 {
                    ours.push(between - begun);
                    theirs.push(ended - between);
                }
            }
            // The same question, whose answers can be counted; and the footer, which is read before.
            let (mut moved, mut calls) = (FOOTER_BYTES.min(self.bytes), 0_u64);
            let asked = wanted.asked().as_parquet().predicate(predicate);
            for answer in self.pool.query(&self.copies[0], &asked).map_err(text)? {
                (moved, calls) = (moved + answer.map_err(text)?.data.len() as u64, calls + 1);
            }
            let percent = 100.0 * moved as f64 / self.bytes as f64;
            let moved_row = Row {
                group: "Bytes that move, the footer's included, in percent of the object's".to_owned(),
                case: name.to_owned(),
                unit: "%",
                better: Better::Lower,
                ours: Some(percent),
                peers: vec![("reading the object".to_owned(), 100.0)],
                bar: if is_selective { MOVED_BAR_PERCENT } else { f64::NAN },
                ratio: None,
                more: json!({ "bytes": moved, "calls": calls }),
            };
            let group = "CPU of the client, from opening the table until it has the rows".to_owned();
            let names = ["ours", "reading the object, and searching it"];
            let bar = if is_selective { 1.0 / CLIENT_BAR } else { f64::NAN };
            rows.push(moved_row);
            rows.push(Row::of_samples(group, name.to_owned(), ("ms", bar), &names, &[ours, theirs]));
        }
        rows.iter().for_each(Row::tell);
        Ok(rows)
    }
}

/// What a query wants of the rows that it finds.
#[derive(Clone, Copy)]
enum Wanted {
    All,
    Two,
    Sum,
}

/// Columns that are wanted where not all are; the second one is summed.
const COLUMNS: [&str; 2] = ["l_orderkey", "l_extendedprice"];

impl Wanted {
    /// As the object class is asked.
    fn asked(self) -> Asked {
        match self {
            Wanted::All => Asked::new(),
            Wanted::Two => COLUMNS.into_iter().fold(Asked::new(), Asked::column),
            Wanted::Sum => Asked::new().aggregate("count(*)").aggregate(format!("sum({})", COLUMNS[1])),
        }
    }

    /// Opens a table, asks it, and takes all that it answers: how many rows that are, or of how many the sum is.
    fn found(self, path: impl AsRef<Path>, store: &Arc<dyn Store>, predicate: &str) -> Result<u64, String> {
        let mut options = FilesOptions::default();
        options.store = Arc::clone(store);
        let files = Files::open([path.as_ref()], &options).map_err(text)?;
        let reader = Reader::of(files).filter(predicate).map_err(text)?;
        match self {
            Wanted::All => rows_of(&reader),
            Wanted::Two => rows_of(&reader.columns(COLUMNS).map_err(text)?),
            Wanted::Sum => {
                let asked = Aggregates::parse(&format!("count(*), sum({})", COLUMNS[1])).map_err(text)?;
                let summed = aggregate(reader.source(), &asked).map_err(text)?;
                let mut to_arrow = ToArrow::new(&summed.table().schema, None).map_err(text)?;
                let mut reading = Reading::new(summed, ReadingOptions::default()).map_err(text)?;
                let (_, batch) = reading.next_batch().map_err(text)?.ok_or("aggregates without a row")?;
                let batch = to_arrow.step(&batch, &mut Budget::unlimited()).map_err(text)?;
                let batch = batch.ok_or("a budget without an end is spent")?;
                let counts =
                    batch.column(0).as_primitive_opt::<Int64Type>().ok_or("a count of another type")?;
                counts
                    .iter()
                    .flatten()
                    .map(|count| u64::try_from(count).map_err(|error| error.to_string()))
                    .sum()
            }
        }
    }
}

fn rows_of(reader: &Reader) -> Result<u64, String> {
    let mut rows = 0;
    for batch in reader.record_batches().map_err(text)? {
        rows += batch.map_err(|error| error.to_string())?.num_rows() as u64;
    }
    Ok(rows)
}
