//! The benchmark of a table's layouts in Cassandra: events like GDELT's, loaded into each, and read. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use marquetry_bench::gdelt::{COLUMNS, Model, ROWS, Wanted, schema};
use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::server::{KEYSPACE, Server};
use marquetry_bench::{clock, program, stats};
use serde_json::{Value, json};

const USAGE: &str = "usage: bench-layouts --files DIR --out DIR --bin DIR --marquetry PROGRAM --cassandra CASSANDRA.SH [--rows 4037539] [--rounds 5]
                     [--only LAYOUT]… [--compressions yes]

--bin holds bench-layouts-ours. --only takes some of: Parquet, rows, wide, blob, columns, \"columns, no dictionaries\". --compressions no leaves out
the tables that Cassandra compresses otherwise.";

/// What the experiment with Cassandra 2.1 that was published found: megabytes, records a second, and seconds for all columns and for one.
struct Published {
    megabytes: f64,
    load: f64,
    all_s: f64,
    one_s: f64,
}

struct Layout {
    name: &'static str,
    /// What `copy` is told besides; nothing for a file.
    options: &'static [&'static str],
    published: Option<Published>,
    /// Whether a reading takes so long, a minute and more, that the one that is verified is also the only one that is timed: what it counts is little
    /// beside it.
    is_slow: bool,
}

const LAYOUTS: [Layout; 6] = [
    Layout {
        name: "Parquet",
        options: &["--codec", "zstd", "--bloom", "globaleventid"],
        published: None,
        is_slow: false,
    },
    Layout {
        name: "rows",
        options: &["--create", "--key", "globaleventid"],
        published: Some(Published { megabytes: 1900.0, load: 2091.0, all_s: 505.0, one_s: 504.0 }),
        is_slow: true,
    },
    Layout {
        name: "wide",
        options: &["--create", "--layout", "wide", "--key", "sqldate, globaleventid"],
        published: Some(Published { megabytes: 2200.0, load: 1300.0, all_s: 941.0, one_s: 707.0 }),
        is_slow: true,
    },
    Layout {
        name: "blob",
        options: &["--create", "--layout", "blob", "--key", "globaleventid"],
        published: Some(Published { megabytes: 260.0, load: 52_877.0, all_s: 82.0, one_s: 82.0 }),
        is_slow: false,
    },
    Layout {
        name: "columns",
        options: &["--create", "--layout", "columns", "--codec", "zstd", "--bloom", "globaleventid"],
        published: Some(Published { megabytes: 266.0, load: 43_324.0, all_s: 8.6, one_s: 0.23 }),
        is_slow: false,
    },
    Layout {
        name: "columns, no dictionaries",
        options: &[
            "--create",
            "--layout",
            "columns",
            "--codec",
            "zstd",
            "--bloom",
            "globaleventid",
            "--dictionary-bytes",
            "1",
        ],
        published: None,
        is_slow: false,
    },
];

/// Cassandra's own compression of a table, as ALTER TABLE takes it.
const COMPRESSIONS: [(&str, &str); 3] = [
    ("LZ4", "{'class': 'LZ4Compressor'}"),
    ("Zstd", "{'class': 'ZstdCompressor'}"),
    ("none", "{'enabled': 'false'}"),
];

/// The bars, for the layout `columns`.
const DISK_MEGABYTES: f64 = 200.0;
const DISK_OF_ROWS: f64 = 0.4;
const LOAD: f64 = 300_000.0;
const ALL_COLUMNS: f64 = 1_500_000.0;
const INTEGERS_MS: f64 = 30.0;
const STRINGS_MS: f64 = 100.0;

/// A table's files are counted when they are the same for so long; and how often it is looked.
const SETTLED_AFTER: Duration = Duration::from_secs(1);
const SETTLED_TRIES: usize = 30;

/// The columns that are read alone: integers, and strings.
const INTEGERS: &str = "monthyear";
const STRINGS: &str = "actor1name";

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-layouts: {message}");
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
    rows: u64,
    rounds: usize,
    only: Vec<String>,
    compressions: bool,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let mut options = Options { rows: ROWS, rounds: 5, compressions: true, ..Options::default() };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| USAGE.to_owned())?;
            let number = || value.parse::<u64>().map_err(|_| format!("{value} is not a number"));
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--bin" => options.bin = value.into(),
                "--marquetry" => options.marquetry = value.into(),
                "--cassandra" => options.cassandra = value.into(),
                "--rows" => options.rows = number()?.max(1),
                "--rounds" => options.rounds = usize::try_from(number()?.max(1)).unwrap_or(1),
                "--only" => options.only.push(value),
                "--compressions" => options.compressions = value == "yes",
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let paths = [&options.files, &options.out, &options.bin, &options.marquetry, &options.cassandra];
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        if let Some(unknown) = options.only.iter().find(|only| LAYOUTS.iter().all(|it| it.name != **only)) {
            return Err(format!("there is no layout {unknown}\n{USAGE}"));
        }
        Ok(options)
    }
}

/// What is in the text, counted in it.
struct Truth {
    rows: u64,
    /// Values that are not null, of all columns.
    values: u64,
    /// The same of a column, and the most frequent ones.
    columns: HashMap<&'static str, (u64, Value)>,
    /// The identifier and the day of a record in the middle.
    record: (String, String),
}

impl Truth {
    fn of(text: &Path) -> Result<Truth, String> {
        let named = |error: std::io::Error| format!("{}: {error}", text.display());
        let wanted = [INTEGERS, STRINGS];
        let places = wanted.map(|wanted| COLUMNS.iter().position(|(name, _)| *name == wanted).unwrap_or(0));
        let mut counts = wanted.map(|_| HashMap::<String, u64>::new());
        let (mut rows, mut values) = (0, 0);
        let mut records = Vec::new();
        for line in BufReader::with_capacity(1 << 20, File::open(text).map_err(named)?).lines() {
            let line = line.map_err(named)?;
            for (at, field) in line.split('\t').enumerate() {
                values += u64::from(!field.is_empty());
                for (counts, place) in counts.iter_mut().zip(places) {
                    if at == place && !field.is_empty() {
                        *counts.entry(field.to_owned()).or_insert(0) += 1;
                    }
                }
            }
            let mut fields = line.split('\t');
            if rows % 1_000 == 500 {
                records
                    .push((fields.next().unwrap_or("").to_owned(), fields.next().unwrap_or("").to_owned()));
            }
            rows += 1;
        }
        let columns = wanted.into_iter().zip(counts).map(|(name, counts)| {
            let all = counts.values().sum();
            let mut top: Vec<(String, u64)> = counts.into_iter().collect();
            top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            top.truncate(5);
            (name, (all, json!(top)))
        });
        let columns = columns.collect();
        let record = records.get(records.len() / 2).cloned().ok_or("there are too few records")?;
        Ok(Truth { rows, values, columns, record })
    }
}

/// What was measured of a layout.
#[derive(Default)]
struct Measured {
    /// As the report names it.
    case: String,
    layout: &'static str,
    is_variant: bool,
    megabytes: f64,
    load_s: Option<f64>,
    flush_s: f64,
    load_cpu_s: Option<f64>,
    /// Milliseconds of each reading: with what it takes to connect, and without.
    all: Vec<Reading>,
    integers: Vec<Reading>,
    strings: Vec<Reading>,
    record: Vec<Reading>,
}

struct Reading {
    ms: f64,
    connect_ms: f64,
}

struct Bench<'a> {
    options: &'a Options,
    server: &'a Server,
    text: &'a Path,
    truth: &'a Truth,
}

fn run(options: &Options) -> Result<(), String> {
    std::fs::create_dir_all(&options.files)
        .map_err(|error| format!("{}: {error}", options.files.display()))?;
    let text = make(options)?;
    let truth = Truth::of(&text)?;
    let server = Server::start(&options.cassandra, &options.files.join("layouts-cassandra"))?;
    let bench = Bench { options, server: &server, text: &text, truth: &truth };
    let (mut measured, mut missing) = (Vec::new(), Vec::new());
    for layout in &LAYOUTS {
        if !options.only.is_empty() && !options.only.iter().any(|only| only == layout.name) {
            continue;
        }
        match bench.measure(layout)? {
            Ok(found) => measured.extend(found),
            Err(why) => {
                eprintln!("{} is not there: {why}", layout.name);
                missing.push((layout.name, why));
            }
        }
    }
    if measured.is_empty() {
        return Err("no layout is there".to_owned());
    }
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    report(options, &truth, &measured, &missing).write(&options.out, None)
}

/// Makes the text, unless it is there.
fn make(options: &Options) -> Result<PathBuf, String> {
    let text = options.files.join(format!("layouts-{}.tsv", options.rows));
    if !text.is_file() {
        let unfinished = text.with_extension("new");
        let named = |error: std::io::Error| format!("{}: {error}", unfinished.display());
        let mut out = std::io::BufWriter::with_capacity(1 << 20, File::create(&unfinished).map_err(named)?);
        let wanted = Wanted { rows: options.rows, ..Wanted::default() };
        Model::read()?.write(&wanted, &mut out).map_err(named)?;
        out.into_inner().map_err(|error| named(error.into_error()))?.sync_all().map_err(named)?;
        std::fs::rename(&unfinished, &text).map_err(named)?;
    }
    Ok(text)
}

impl Bench<'_> {
    /// A layout and its variants; or why the command refuses it.
    fn measure(&self, layout: &Layout) -> Result<Result<Vec<Measured>, String>, String> {
        let is_file = layout.name == "Parquet";
        let table = layout.name.replace([',', ' '], "_");
        let address = match is_file {
            true => self.options.files.join("layouts.parquet").display().to_string(),
            false => format!("cql://{}/{KEYSPACE}.{table}", self.server.at),
        };
        let mut command = Command::new(&self.options.marquetry);
        command.args(["copy", "--quiet", "--header", "no", "--schema", &schema()]).args(layout.options);
        if is_file {
            command.arg("--overwrite");
        } else {
            self.server.run(&format!("DROP TABLE IF EXISTS {KEYSPACE}.{table}"))?;
        }
        command.arg(self.text).arg(&address).stdin(Stdio::null());
        // A command that does not know a layout says so before it loads anything.
        if let Some(at) = layout.options.iter().position(|option| *option == "--layout")
            && let Some(why) = self.refusal(layout.options[at + 1])?
        {
            return Ok(Err(why));
        }
        let run = program::watch_tree(command).map_err(|error| format!("{}: {error}", layout.name))?;
        let flushing = Instant::now();
        if !is_file {
            program::output(self.server.nodetool().args(["flush", KEYSPACE, &table]))?;
        }
        let flush_s = flushing.elapsed().as_secs_f64();
        if !is_file {
            program::output(self.server.nodetool().args(["compact", KEYSPACE, &table]))?;
        }
        let mut found = Measured {
            case: layout.name.to_owned(),
            layout: layout.name,
            megabytes: self.megabytes(is_file, &address, &table)?,
            load_s: Some(run.wall_s),
            flush_s,
            load_cpu_s: Some(run.cpu_s),
            ..Measured::default()
        };
        self.read(&address, if layout.is_slow { 0 } else { self.options.rounds }, &mut found)?;
        let mut all = vec![found];
        if !is_file && self.options.compressions {
            for (name, value) in COMPRESSIONS {
                self.server.run(&format!("ALTER TABLE {KEYSPACE}.{table} WITH compression = {value}"))?;
                program::output(self.server.nodetool().args(["upgradesstables", "-a", KEYSPACE, &table]))?;
                let mut found = Measured {
                    case: format!("{}, {name} by Cassandra", layout.name),
                    layout: layout.name,
                    is_variant: true,
                    megabytes: self.megabytes(false, &address, &table)?,
                    ..Measured::default()
                };
                self.read(&address, if layout.is_slow { 0 } else { 1 }, &mut found)?;
                all.push(found);
            }
        }
        if !is_file {
            self.server.run(&format!("DROP TABLE {KEYSPACE}.{table}"))?;
        }
        Ok(Ok(all))
    }

    /// What the command says of a layout that it does not have.
    fn refusal(&self, layout: &str) -> Result<Option<String>, String> {
        let help = program::output(Command::new(&self.options.marquetry).args(["copy", "--help"]))?;
        // Its values are listed one by one, or named in a sentence.
        let is_known = help.split_once("--layout").is_some_and(|(_, rest)| {
            let of_option = rest.split("\n      --").next().unwrap_or(rest);
            of_option.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == layout)
        });
        Ok((!is_known).then(|| format!("`marquetry copy --help` has no layout {layout}")))
    }

    fn megabytes(&self, is_file: bool, address: &str, table: &str) -> Result<f64, String> {
        let bytes = match is_file {
            true => std::fs::metadata(address).map_err(|error| format!("{address}: {error}"))?.len(),
            false => self.settled_bytes(table)?,
        };
        Ok(f64::from(u32::try_from(bytes >> 10).map_err(|error| error.to_string())?) * 1024.0 / 1e6)
    }

    /// The bytes of a table's files, once those that a compaction has replaced are gone: the server removes them a little later.
    fn settled_bytes(&self, table: &str) -> Result<u64, String> {
        let mut before = self.server.table_bytes(table);
        for _ in 0..SETTLED_TRIES {
            std::thread::sleep(SETTLED_AFTER);
            let now = self.server.table_bytes(table);
            if now.is_ok() && now == before {
                return now;
            }
            before = now;
        }
        before.and(Err(format!("the files of {table} change all the time")))
    }

    /// Reads all columns, each of two, and one record; and holds what is found to what the text has. Of a slow layout's variants, all columns only.
    fn read(&self, address: &str, rounds: usize, found: &mut Measured) -> Result<(), String> {
        let truth = self.truth;
        let (values, nothing) = (truth.values, json!([]));
        found.all = self.timed(address, rounds, &["*"], (truth.rows, Some(values), &nothing))?;
        if rounds == 0 && found.is_variant {
            eprintln!(
                "{}: {:.0} MB; all columns {:.2} s",
                found.case,
                found.megabytes,
                median(&found.all) / 1e3
            );
            return Ok(());
        }
        for column in [INTEGERS, STRINGS] {
            let (values, top) = &truth.columns[column];
            let readings = self.timed(address, rounds, &[column], (truth.rows, Some(*values), top))?;
            if column == INTEGERS {
                found.integers = readings
            } else {
                found.strings = readings
            };
        }
        let (id, day) = &truth.record;
        let predicate = match found.layout {
            "wide" => format!("sqldate = {day} AND globaleventid = {id}"),
            _ => format!("globaleventid = {id}"),
        };
        // Quick in any layout.
        let rounds = if found.is_variant { 1 } else { self.options.rounds };
        found.record = self.timed(address, rounds, &["*", &predicate], (1, None, &nothing))?;
        eprintln!(
            "{}: {:.0} MB; all columns {:.2} s, {INTEGERS} {:.1} ms, {STRINGS} {:.1} ms, a record {:.1} ms",
            found.case,
            found.megabytes,
            median(&found.all) / 1e3,
            median(&found.integers),
            median(&found.strings),
            median(&found.record)
        );
        Ok(())
    }

    fn timed(
        &self,
        address: &str,
        rounds: usize,
        arguments: &[&str],
        (rows, values, top): (u64, Option<u64>, &Value),
    ) -> Result<Vec<Reading>, String> {
        let mut command = Command::new(self.options.bin.join("bench-layouts-ours"));
        command.arg(address).arg(rounds.to_string()).args(arguments).stdin(Stdio::null());
        let said = program::output(&mut command)?;
        let lines: Result<Vec<Value>, _> = said.lines().map(serde_json::from_str).collect();
        let lines = lines.map_err(|error| format!("{said}: {error}"))?;
        let [proof, rest @ ..] = &*lines else { return Err(format!("not understood: {said}")) };
        let is_right = values.is_none_or(|values| proof["values"] == json!(values)) && proof["top"] == *top;
        if !is_right || lines.iter().any(|reading| reading["rows"] != json!(rows)) {
            return Err(format!(
                "{address}, {arguments:?}: found {said}, and not {rows} rows, {values:?} values, {top}"
            ));
        }
        let timed = if rest.is_empty() { &lines[..] } else { rest };
        let readings = timed.iter().map(|reading| {
            let ms = reading["ms"].as_f64().ok_or_else(|| format!("not understood: {reading}"))?;
            Ok(Reading { ms, connect_ms: reading["connect_ms"].as_f64().unwrap_or(0.0) })
        });
        readings.collect()
    }
}

fn median(readings: &[Reading]) -> f64 {
    stats::median(&readings.iter().map(|reading| reading.ms).collect::<Vec<_>>())
}

/// Without what it takes to connect.
fn connected(readings: &[Reading]) -> f64 {
    let without = readings.iter().map(|reading| (reading.ms - reading.connect_ms).max(0.0));
    stats::median(&without.collect::<Vec<_>>())
}

fn report(options: &Options, truth: &Truth, measured: &[Measured], missing: &[(&str, String)]) -> Report {
    let rows = u32::try_from(truth.rows).map_or(f64::NAN, f64::from);
    let disk_of_rows = measured.iter().find(|it| it.case == "rows").map_or(f64::INFINITY, |it| it.megabytes);
    let mut all = Vec::new();
    for it in measured {
        let published =
            LAYOUTS.iter().find(|layout| layout.name == it.case).and_then(|it| it.published.as_ref());
        // What is held to the bars.
        let is_columns = it.case == "columns";
        let mut add = |group: &str, unit: &'static str, ours: f64, of: Option<f64>, bar: f64| {
            let better = if unit == "records/s" { Better::Higher } else { Better::Lower };
            let peers = of.map(|value| ("published (Cassandra 2.1)".to_owned(), value));
            all.push(Row {
                group: group.to_owned(),
                case: it.case.clone(),
                unit,
                better,
                ours: Some(ours),
                peers: peers.into_iter().collect(),
                bar: if is_columns { bar } else { f64::NAN },
                ratio: None,
                more: json!({}),
            });
        };
        add(
            "Disk after compaction",
            "MB",
            it.megabytes,
            published.map(|it| it.megabytes),
            DISK_MEGABYTES.min(DISK_OF_ROWS * disk_of_rows),
        );
        if let (Some(load_s), Some(cpu_s)) = (it.load_s, it.load_cpu_s) {
            add(
                "Load, until flushed",
                "records/s",
                rows / (load_s + it.flush_s),
                published.map(|it| it.load),
                LOAD,
            );
            add("Load: CPU time of the client", "s", cpu_s, None, f64::NAN);
        }
        let all_ms = median(&it.all);
        add(
            "All columns",
            "records/s",
            rows / all_ms * 1e3,
            published.map(|it| rows / it.all_s),
            ALL_COLUMNS,
        );
        if it.integers.is_empty() {
            continue;
        }
        let one = published.map(|it| it.one_s * 1e3);
        add("MonthYear, connected", "ms", connected(&it.integers), one, INTEGERS_MS);
        add("Actor1Name, connected", "ms", connected(&it.strings), one, STRINGS_MS);
        add("One record by its key, connected", "ms", connected(&it.record), None, f64::NAN);
        add("MonthYear, with connecting", "ms", median(&it.integers), None, f64::NAN);
        add("Actor1Name, with connecting", "ms", median(&it.strings), None, f64::NAN);
        add("One record by its key, with connecting", "ms", median(&it.record), None, f64::NAN);
    }
    let mut groups: Vec<String> = Vec::new();
    for row in &all {
        if !groups.contains(&row.group) {
            groups.push(row.group.clone());
        }
    }
    all.sort_by_key(|row| groups.iter().position(|group| *group == row.group));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut notes = vec![
        format!(
            "{} records of 57 columns, like GDELT's of 1979 to 1984 (`bench-gdelt`), loaded from tab-separated text by `marquetry copy` into one Cassandra with a heap of 2 GiB \
             on the same {cores} cores, each layout into a new table that is flushed and compacted before it is read. Readings are `marquetry::open(…).record_batches()`, medians \
             of {} (of one where Cassandra compresses otherwise); one that is not timed comes before, whose rows, values and most frequent values are those of the text. \
             Of `rows` and `wide`, which take half a minute and more, that one is timed, and the only one.",
            truth.rows, options.rounds
        ),
        "\"Connected\" is a reading less what opening `system.local` took just before it: all that the client does to connect. Footers, and the descriptions of tables, are \
         fetched within."
            .to_owned(),
        "Published is the experiment with Cassandra 2.1 on other hardware. Its `rows` and `wide` were written and read by a driver of that time, so ratios to it say little."
            .to_owned(),
        format!("{}.", clock::processor()),
    ];
    for (name, why) in missing {
        notes.push(format!("**{name} is not there**: {why}."));
    }
    if truth.rows != ROWS {
        notes
            .push(format!("**A quick look: {} of {ROWS} records.** Its numbers are no results.", truth.rows));
    }
    let published = measured.iter().filter(|it| !it.is_variant).map(|it| {
        json!({
            "layout": it.case, "megabytes": it.megabytes, "load_s": it.load_s, "flush_s": it.flush_s,
        })
    });
    Report {
        name: "layouts".to_owned(),
        title: "Layouts of a table in Cassandra".to_owned(),
        setting: json!({
            "rows": truth.rows,
            "rounds": options.rounds,
            "cores": cores,
            "loads": published.collect::<Vec<_>>(),
            "not_there": missing.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
            "processor": clock::processor(),
        }),
        notes,
        rows: all,
    }
}
