//! What a database reads of an SSTable, read from the SSTable and from a `full` Parquet file of it, under the step contract: one partition,
//! found by its key, and everything. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

use marquetry_base::{Budget, Codecs, Error, Limits, Machine, Object, Result, Step, Want};
use marquetry_bench::find::Input;
use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::sstables::{data_file, made};
use marquetry_bench::{clock, program, stats};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::find::{FindOptions, RowFinder};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::{Predicate, Ranges, Test};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_scylla::bridge::mutations::{UnmapStep, Unmapper};
use marquetry_scylla::sstable::batch::{EntryKind, MutationBatch};
use marquetry_scylla::sstable::compression_info::CompressionInfoReader;
use marquetry_scylla::sstable::filter::FilterReader;
use marquetry_scylla::sstable::index::{IndexFiles, IndexedData, PartitionFinder, Query, SummaryReader};
use marquetry_scylla::sstable::statistics::{Statistics, StatisticsReader};
use marquetry_scylla::sstable::{
    Component, DataOptions, DataReader, FileName, KeyNames, Packing, TableColumns,
};
use marquetry_testing::counting::{self, Counting};
use serde_json::json;

#[global_allocator]
static MEMORY: Counting = Counting;

const USAGE: &str = "usage: bench-pq --files DIR --out DIR --marquetry PROGRAM --cassandra CASSANDRA.SH --maker MAKETABLES.JAVA
                [--rows 10000000] [--wide-rows 1000000] [--rounds 5] [--keys 2000] [--only WORDS]

--keys is how many keys are looked up that are there, and how many that are not; --only keeps the tables whose name has all of the words.";

/// Tables: what the maker calls them, and whether they are wide, of which there are fewer rows.
const TABLES: [(&str, &str, bool); 2] =
    [("ten columns", "mixed:", false), ("197 columns, ten of them in a row", "sparse:", true)];

/// Of a partition, once the file is open: microseconds.
const WARM_BAR_US: f64 = 100.0;
/// The same, and the file is opened for it.
const COLD_BAR_US: f64 = 600.0;
/// Of everything: times the SSTable's.
const SCAN_BAR: f64 = 1.0;
/// The task quota of Seastar's reactor.
const STEP_BAR_US: f64 = 500.0;
/// The most that a read has: Seastar's default for DMA.
const PIECE_BYTES: u64 = 128 << 10;
/// Files are opened for so many of the keys.
const COLD_KEYS: usize = 100;

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-pq: {message}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Default)]
struct Options {
    files: PathBuf,
    out: PathBuf,
    marquetry: PathBuf,
    cassandra: PathBuf,
    maker: PathBuf,
    rows: u32,
    wide_rows: u32,
    rounds: usize,
    keys: u32,
    only: Vec<String>,
}

impl Options {
    fn parse() -> std::result::Result<Options, String> {
        let mut options =
            Options { rows: 10_000_000, wide_rows: 1_000_000, rounds: 5, keys: 2000, ..Options::default() };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            let number = || value.parse().map_err(|_| format!("{value} is not a number"));
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--marquetry" => options.marquetry = value.into(),
                "--cassandra" => options.cassandra = value.into(),
                "--maker" => options.maker = value.into(),
                "--rows" => options.rows = number()?,
                "--wide-rows" => options.wide_rows = number()?,
                "--keys" => options.keys = number()?,
                "--rounds" => options.rounds = value.parse().map_err(|_| USAGE.to_owned())?,
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let Options { files, out, marquetry, cassandra, maker, .. } = &options;
        if [files, out, marquetry, cassandra, maker].iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }
}

fn run(options: &Options) -> std::result::Result<(), String> {
    let mut tables = Vec::new();
    for (name, made_by, is_wide) in TABLES {
        if options.only.iter().all(|word| name.split([' ', ',']).any(|other| other == word)) {
            let count = if is_wide { options.wide_rows } else { options.rows };
            tables.push((name, count, make(options, made_by, count)?));
        }
    }
    if tables.is_empty() {
        return Err("no table has all of those words".to_owned());
    }
    clock::pin(0)?;
    let mut rows = Vec::new();
    for (name, count, files) in &tables {
        rows.extend(measure(options, name, *count, files)?);
    }
    let groups = ["One partition", "A key that", "Everything", "The longest", "Memory", "Size"];
    rows.sort_by_key(|row| groups.iter().position(|group| row.group.starts_with(group)));
    rows.iter().for_each(Row::tell);
    let report = Report {
        name: "pq".to_owned(),
        title: "A table's SSTable, and its `full` Parquet file, read as a database reads".to_owned(),
        notes: vec![
            format!(
                "{} rows of ten columns, {} of 197, a partition each, written by Cassandra's own writer (`CQLSSTableWriter`) as one SSTable of format `nb` with LZ4 and chunks of 16 KiB. \
                 The Parquet file is what `marquetry copy --mapping full --compression lz4_raw --bloom key --page-bloom key --page-rows 1024 --dictionary-bytes 32K` makes of it. Both are read by our own machines, on one core, by `pread` from the page cache (all that a step asks for, also what it will want soon, 128 KiB at a time, as reactors read), with all checksums; \
                 nothing is kept of what was read before but what opening reads (and the pages' indexes, which the finder keeps).",
                options.rows, options.wide_rows
            ),
            format!(
                "`ours` is the Parquet file, the peer is the SSTable. A partition that is found is read with all columns, and becomes a batch of writes (mutations) from both. \
                 {} keys that are there and as many that are not, all over the table; medians, and in the JSON 99 of 100. \
                 Opened for each key ({COLD_KEYS} of them): the footer, and of the SSTable Statistics, CompressionInfo and Summary. Scans: medians of {} rounds, by turns.",
                options.keys, options.rounds
            ),
            format!(
                "The longest step is the longest call of any machine in a scan, of the round where that was shortest; a step has {} units. glibc has its defaults, so what it does when it merges and gives back memory is in some of them, which [the stall benchmark](stall.md) leaves out. Not measured: ranges of tokens, which a Parquet file has no index of.",
                Budget::DEFAULT_UNITS
            ),
            format!("Cassandra 5.0.9. {}.", clock::processor()),
        ],
        setting: json!({ "rows": options.rows, "wide_rows": options.wide_rows, "rounds": options.rounds, "keys": options.keys, "processor": clock::processor(), "versions": { "cassandra": "5.0.9" } }),
        rows,
    };
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    report.write(&options.out, None)
}

fn measure(
    options: &Options,
    name: &str,
    count: u32,
    (data, file): &(PathBuf, PathBuf),
) -> std::result::Result<Vec<Row>, String> {
    let named = |error: Error| format!("{name}: {error}");
    let keys = keys(options.keys, count);
    let mut rows = Vec::new();
    let mut row = |group: &str, unit, (ours, peer): (f64, f64), bar: f64, more| {
        rows.push(Row {
            group: group.to_owned(),
            case: name.to_owned(),
            unit,
            better: Better::Lower,
            ours: Some(ours),
            peers: vec![("the SSTable".to_owned(), peer)],
            bar,
            ratio: Some((ours / peer, [ours / peer, ours / peer])),
            more,
        });
    };

    let mut parquet = Points::of::<ParquetFile>(file, &keys).map_err(named)?;
    let mut sstable = Points::of::<Sstable>(data, &keys).map_err(named)?;
    for (group, of, bar) in [
        ("One partition by its key, file open", 0, WARM_BAR_US),
        ("A key that is not there, file open", 1, WARM_BAR_US),
        ("One partition by its key, file opened for it", 2, COLD_BAR_US),
    ] {
        let [ours, theirs] = [&mut parquet.micros[of], &mut sstable.micros[of]].map(|micros| {
            micros.sort_by(f64::total_cmp);
            (stats::median(micros), micros[micros.len() * 99 / 100])
        });
        let more = json!({ "p99": ours.1, "sstable_p99": theirs.1, "bytes": parquet.bytes[of], "sstable_bytes": sstable.bytes[of] });
        row(group, "µs", (ours.0, theirs.0), bar, more);
    }

    let (mut ours, mut back, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
    let mut meters = [Meter::default(), Meter::default()];
    for _ in 0..options.rounds {
        let mut round = [Meter { is_timed: true, ..Meter::default() }; 2];
        let mut timed = |times: &mut Vec<f64>, work: &mut dyn FnMut(&mut [Meter; 2]) -> Result<u64>| {
            let start = Instant::now();
            let found = work(&mut round).map_err(named)?;
            times.push(start.elapsed().as_secs_f64());
            if found == u64::from(count) { Ok(()) } else { Err(format!("{name}: {found} rows of {count}")) }
        };
        timed(&mut ours, &mut |round| ParquetFile::open(file)?.scan(&mut round[0], false))?;
        timed(&mut theirs, &mut |round| Sstable::open(data)?.scan(&mut round[1]))?;
        timed(&mut back, &mut |round| ParquetFile::open(file)?.scan(&mut round[0], true))?;
        for (least, round) in meters.iter_mut().zip(round) {
            least.least(round);
        }
    }
    let [ours, back, theirs] = [&ours, &back, &theirs].map(|times| stats::median(times));
    let more = |seconds: f64| json!({ "rows_per_s": f64::from(count) / seconds, "sstable_rows_per_s": f64::from(count) / theirs });
    row("Everything, as batches", "s", (ours, theirs), SCAN_BAR * theirs, more(ours));
    row("Everything, as batches of writes", "s", (back, theirs), SCAN_BAR * theirs, more(back));
    let longest = [meters[0].longest_us, meters[1].longest_us];
    let more = json!({ "units": meters[0].units_max, "sstable_units": meters[1].units_max });
    row("The longest step of a scan", "µs", (longest[0], longest[1]), STEP_BAR_US, more);

    let held = |work: &mut dyn FnMut() -> Result<u64>| {
        counting::start();
        work().map_err(named)?;
        Ok::<_, String>(f64::from(u32::try_from(counting::peak() >> 10).unwrap_or(u32::MAX)) / 1024.0)
    };
    let ours = held(&mut || ParquetFile::open(file)?.scan(&mut Meter::default(), true))?;
    let theirs = held(&mut || Sstable::open(data)?.scan(&mut Meter::default()))?;
    row("Memory of a scan, at the most", "MiB", (ours, theirs), f64::INFINITY, json!({}));
    let bytes = |file: &Path| Input::file(file).map(|input| input.length() as f64 / f64::from(1 << 20));
    row("Size", "MiB", (bytes(file)?, bytes(data)?), bytes(data)?, json!({}));
    Ok(rows)
}

/// Keys that are there, and keys that are not, by turns: the first `count` of a table are its keys.
fn keys(wanted: u32, count: u32) -> Vec<(i32, bool)> {
    /// Prime, so that keys are all over the table.
    const STRIDE: u64 = 2_654_435_761;
    let key = |at: u32| i32::try_from((u64::from(at) * STRIDE + 12_345) % u64::from(count)).unwrap_or(0);
    let absent = |key: i32| key.saturating_add(i32::try_from(count).unwrap_or(i32::MAX));
    (0..wanted).flat_map(|at| [(key(at), true), (absent(key(at)), false)]).collect()
}

/// The times of look-ups, in microseconds: of keys that are there, of those that are not, and of those that are there with the file opened
/// for each; and the bytes that each has read, on average.
#[derive(Default)]
struct Points {
    micros: [Vec<f64>; 3],
    bytes: [u64; 3],
}

impl Points {
    fn of<F: Form>(path: &Path, keys: &[(i32, bool)]) -> Result<Points> {
        let mut points = Points::default();
        let mut form = F::open(path)?;
        for is_counted in [false, true] {
            for (key, is_there) in keys {
                let before = form.bytes_read();
                let start = Instant::now();
                let found = form.point(*key)?;
                let took = start.elapsed().as_secs_f64() * 1e6;
                if found != usize::from(*is_there) {
                    return Err(Error::internal(format!("key {key}: {found} rows")));
                }
                if is_counted {
                    let kind = usize::from(!is_there);
                    points.micros[kind].push(took);
                    points.bytes[kind] += form.bytes_read() - before;
                }
            }
        }
        for (key, _) in keys.iter().filter(|(_, is_there)| *is_there).take(COLD_KEYS) {
            let start = Instant::now();
            let mut form = F::open(path)?;
            form.point(*key)?;
            points.micros[2].push(start.elapsed().as_secs_f64() * 1e6);
            points.bytes[2] += form.bytes_read();
        }
        for (bytes, micros) in points.bytes.iter_mut().zip(&points.micros) {
            *bytes /= (micros.len() as u64).max(1);
        }
        Ok(points)
    }
}

/// What keys are looked up in.
trait Form: Sized {
    fn open(path: &Path) -> Result<Self>;
    /// The rows of the partition, as a batch of writes; how many there are.
    fn point(&mut self, key: i32) -> Result<usize>;
    fn bytes_read(&self) -> u64;
}

/// The longest and the dearest of steps.
#[derive(Debug, Clone, Copy, Default)]
struct Meter {
    is_timed: bool,
    longest_us: f64,
    units_max: u64,
}

impl Meter {
    fn step<T>(&mut self, step: impl FnOnce(&mut Budget<'_>) -> Result<T>) -> Result<T> {
        let mut budget = Budget::default();
        // The thread's own time: what else the machine does is not the step's.
        let start = self.is_timed.then(clock::thread_time);
        let done = step(&mut budget)?;
        if let Some(start) = start {
            self.longest_us = self.longest_us.max((clock::thread_time() - start).as_secs_f64() * 1e6);
        }
        self.units_max = self.units_max.max(budget.spent());
        Ok(done)
    }

    /// What the shorter of two had, if this one has something.
    fn least(&mut self, other: Meter) {
        if self.units_max == 0 || other.longest_us < self.longest_us {
            *self = other;
        }
    }

    /// The next product of a machine; `inputs` are its objects, by their numbers.
    fn drive<M: Machine>(&mut self, machine: &mut M, inputs: &[Input]) -> Result<Option<M::Product>> {
        let input = |object: Object| {
            let at = usize::try_from(object.0).ok().and_then(|at| inputs.get(at));
            at.ok_or_else(|| Error::internal("a demand for an object that nobody gave"))
        };
        loop {
            match self.step(|budget| machine.step(budget))? {
                Step::Ready(product) => return Ok(Some(product)),
                Step::Need(demand) => {
                    for want in demand.wants {
                        match want {
                            Want::Range(object, range, _) => {
                                for piece in pieces(range) {
                                    let bytes = input(object)?.read(piece.clone());
                                    let bytes = bytes.map_err(|error| Error::io(error.to_string()))?;
                                    machine.supply(object, piece, bytes)?;
                                }
                            }
                            Want::Length(object) => {
                                machine.supply_length(object, input(object)?.length())?;
                            }
                        }
                    }
                }
                Step::Yield | Step::Append(..) => {}
                Step::Done => return Ok(None),
            }
        }
    }
}

/// A range as reactors read it. A machine frees a buffer of its host's whole: one of 8 MiB would take half a millisecond of a step.
fn pieces(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        let piece = start..range.end.min(start + PIECE_BYTES);
        start = piece.end;
        Some(piece).filter(|piece| !piece.is_empty())
    })
}

fn of_io<T>(result: std::result::Result<T, String>) -> Result<T> {
    result.map_err(Error::io)
}

/// The rows of a batch of writes.
fn rows_of(batch: &MutationBatch) -> usize {
    batch.entries.kinds.iter().filter(|kind| **kind == EntryKind::Row).count()
}

/// An SSTable of format `nb`, whose small components are in memory.
struct Sstable {
    name: FileName,
    statistics: Statistics,
    packing: Packing,
    codecs: Arc<dyn Codecs>,
    of: IndexedData,
    /// Data, Index and Filter.
    inputs: [Input; 3],
    opening_bytes: u64,
}

const DATA: Object = Object(0);
const INDEX: Object = Object(1);
const FILTER: Object = Object(2);

impl Sstable {
    fn scan(&mut self, meter: &mut Meter) -> Result<u64> {
        self.read(DataOptions::default(), meter)
    }

    fn read(&mut self, options: DataOptions, meter: &mut Meter) -> Result<u64> {
        let (version, header) = (self.name.version, &self.statistics.header);
        let (packing, codecs) = (self.packing.clone(), Arc::clone(&self.codecs));
        let mut reader = DataReader::new(DATA, version, header, packing, codecs, options)?;
        let mut rows = 0;
        while let Some(batch) = meter.drive(&mut reader, &self.inputs)? {
            rows += rows_of(&batch) as u64;
            reader.recycle(batch);
        }
        Ok(rows)
    }
}

impl Form for Sstable {
    fn open(data: &Path) -> Result<Sstable> {
        let wrong = |what: &str| Error::option("file", format!("{}: {what}", data.display()));
        let name = data.file_name().and_then(|name| name.to_str()).map(FileName::parse).transpose()?;
        let name = name.flatten().ok_or_else(|| wrong("not a component of an SSTable"))?;
        let input = |component| of_io(Input::file(&data.with_file_name(name.of(&component))));
        let mut opening_bytes = 0;
        let mut whole = |component| {
            let input = input(component)?;
            opening_bytes += input.length();
            Ok::<_, Error>([input])
        };
        let (limits, version) = (Limits::DEFAULT, name.version);
        let missing = || Error::internal("a component without a product");
        let mut meter = Meter::default();
        let statistics = meter
            .drive(&mut StatisticsReader::new(DATA, version, limits), &whole(Component::Statistics)?)?
            .ok_or_else(missing)?;
        let info = meter
            .drive(
                &mut CompressionInfoReader::new(DATA, version, limits),
                &whole(Component::CompressionInfo)?,
            )?
            .ok_or_else(missing)?;
        let summary = meter
            .drive(&mut SummaryReader::new(DATA, limits), &whole(Component::Summary)?)?
            .ok_or_else(missing)?;
        let packing = Packing::Compressed(Arc::new(info));
        let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::default());
        let of = IndexedData {
            index: IndexFiles::Big { index: INDEX, summary: Some(Arc::new(summary)) },
            data: DATA,
            packing: packing.clone(),
            codecs: Arc::clone(&codecs),
            partitioner: statistics.partitioner.clone(),
            ends: statistics.stats.key_range.clone(),
        };
        let inputs = [input(Component::Data)?, input(Component::Index)?, input(Component::Filter)?];
        Ok(Sstable { name, statistics, packing, codecs, of, inputs, opening_bytes })
    }

    fn point(&mut self, key: i32) -> Result<usize> {
        let key = key.to_be_bytes();
        let (limits, mut meter) = (Limits::DEFAULT, Meter::default());
        let mut filter = FilterReader::new(FILTER, self.name.version, &key, limits);
        if meter.drive(&mut filter, &self.inputs)? == Some(false) {
            return Ok(0);
        }
        let mut finder = PartitionFinder::new(&self.of, Query::Key(key.to_vec()), limits)?;
        let pieces = meter.drive(&mut finder, &self.inputs)?.unwrap_or_default();
        let Some(piece) = pieces.into_iter().next() else { return Ok(0) };
        let mut options = DataOptions::default();
        options.range = Some(piece.data);
        let rows = self.read(options, &mut meter)?;
        usize::try_from(rows).map_err(|_| Error::internal("more rows than a number can say"))
    }

    fn bytes_read(&self) -> u64 {
        self.opening_bytes + self.inputs.iter().map(Input::bytes_read).sum::<u64>()
    }
}

/// A Parquet file of the mapping `full`.
struct ParquetFile {
    input: [Input; 1],
    metadata: Arc<FileMetaData>,
    codecs: Arc<dyn Codecs>,
    finder: RowFinder,
    unmapper: Unmapper,
}

const FILE: Object = Object(0);

impl ParquetFile {
    fn scan(&mut self, meter: &mut Meter, is_unmapped: bool) -> Result<u64> {
        let (metadata, codecs) = (Arc::clone(&self.metadata), Arc::clone(&self.codecs));
        let mut reader = BatchReader::new(FILE, metadata, codecs, ReadOptions::default())?;
        let unmapper = &mut self.unmapper;
        unmapper.restart();
        let mut rows = 0;
        while let Some(batch) = meter.drive(&mut reader, &self.input)? {
            if is_unmapped {
                unmapper.feed(batch)?;
                rows += unmap(unmapper, meter)?;
            } else {
                rows += batch.rows as u64;
            }
        }
        unmapper.finish();
        rows += unmap(unmapper, meter)?;
        Ok(rows)
    }
}

/// The rows of the writes that there are.
fn unmap(unmapper: &mut Unmapper, meter: &mut Meter) -> Result<u64> {
    let mut rows = 0;
    loop {
        match meter.step(|budget| unmapper.step(budget))? {
            UnmapStep::Ready(batch) => rows += rows_of(&batch) as u64,
            UnmapStep::Yield => {}
            UnmapStep::Need | UnmapStep::Done => return Ok(rows),
        }
    }
}

impl Form for ParquetFile {
    fn open(path: &Path) -> Result<ParquetFile> {
        let input = [of_io(Input::file(path))?];
        let mut meter = Meter::default();
        let metadata = meter.drive(&mut FooterReader::new(FILE, Limits::DEFAULT), &input)?;
        let metadata = metadata.ok_or_else(|| Error::internal("no metadata"))?;
        let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::default());
        let mut options = FindOptions::default();
        options.locate = (0..metadata.schema.leaves().len()).collect();
        let nothing = Predicate::Or(Vec::new());
        let finder = RowFinder::new(FILE, Arc::clone(&metadata), Arc::clone(&codecs), nothing, options)?;
        let unmapper = Unmapper::new(columns_of(path)?, &metadata.schema, Limits::DEFAULT)?;
        Ok(ParquetFile { input, metadata, codecs, finder, unmapper })
    }

    fn point(&mut self, key: i32) -> Result<usize> {
        let mut meter = Meter::default();
        let ranges = Ranges::of_keys(key.into(), key.into());
        self.finder.start(Predicate::Test(Test::accepting(0, ranges)))?;
        self.unmapper.restart();
        let unmapper = &mut self.unmapper;
        let mut rows = 0;
        while let Some(found) = meter.drive(&mut self.finder, &self.input)? {
            let group = found.row_group;
            let read = ReadOptions { row_groups: Some(group..group + 1), ..ReadOptions::default() };
            let (metadata, codecs) = (Arc::clone(&self.metadata), Arc::clone(&self.codecs));
            let mut reader = BatchReader::new(FILE, metadata, codecs, read)?;
            reader.select(group, found.rows)?;
            for (leaf, pages) in found.pages {
                reader.locate(group, leaf, pages)?;
            }
            while let Some(batch) = meter.drive(&mut reader, &self.input)? {
                unmapper.feed(batch)?;
                rows += unmap(unmapper, &mut meter)?;
            }
        }
        unmapper.finish();
        rows += unmap(unmapper, &mut meter)?;
        usize::try_from(rows).map_err(|_| Error::internal("more rows than a number can say"))
    }

    fn bytes_read(&self) -> u64 {
        self.input[0].bytes_read()
    }
}

/// The table's columns, as the file's SSTable has them: a database knows its tables, so this takes none of the time.
fn columns_of(parquet: &Path) -> Result<Arc<TableColumns>> {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    static KNOWN: Mutex<BTreeMap<PathBuf, Arc<TableColumns>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().map_err(|_| Error::internal("a lock that somebody broke"))?;
    if let Some(columns) = known.get(parquet) {
        return Ok(Arc::clone(columns));
    }
    let dir = parquet.with_extension("");
    let sstable = Sstable::open(&of_io(data_file(&dir))?)?;
    let names = KeyNames { partition_key: vec!["key".to_owned()], clustering: Vec::new() };
    let columns = Arc::new(TableColumns::new(&[&sstable.statistics.header], Some(&names))?);
    known.insert(parquet.to_owned(), Arc::clone(&columns));
    Ok(columns)
}

/// The SSTable's Data.db and the Parquet file; they are made unless they are there.
fn make(options: &Options, made_by: &str, rows: u32) -> std::result::Result<(PathBuf, PathBuf), String> {
    let dir = made(&options.files, (&options.cassandra, &options.maker), made_by, rows.into())?;
    let file = dir.with_extension("parquet");
    if !file.exists() {
        let mut command = Command::new(&options.marquetry);
        command.arg("copy").arg(format!("sstable:{}", dir.display())).arg(&file);
        let like_databases = [
            "--mapping",
            "full",
            "--compression",
            "lz4_raw",
            "--bloom",
            "key",
            "--page-bloom",
            "key",
            "--page-rows",
            "1024",
            // Who reads one row of a row group reads its dictionaries, too.
            "--dictionary-bytes",
            "32K",
        ];
        program::output(command.args(like_databases).stdin(Stdio::null()))?;
    }
    Ok((data_file(&dir)?, file))
}
