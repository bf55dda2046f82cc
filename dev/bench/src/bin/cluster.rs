//! The benchmark of live clusters: loads into and unloads from one Cassandra on the same machine, by whole programs. See `README.md` for what
//! makes it fair.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use marquetry_bench::program::{self, TreeRun};
use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::server::{KEYSPACE, Server};
use marquetry_bench::{clock, stats, turns};
use serde_json::{Value, json};

const USAGE: &str =
    "usage: bench-cluster --files DIR --out DIR --marquetry PROGRAM --cassandra CASSANDRA.SH --peers DIR
                     --spark SPARKCOPY.JAVA [--rows 1000000] [--wide-rows 200000] [--rounds 3] [--only WORDS] [--without NAME]…

--peers is what `dev/setup.sh cluster-peers` makes: cqlsh, DSBulk, and Spark with its connector for Cassandra, which --spark is the program for.
--only keeps the cases whose name (`load five`) has all of the words.
--without leaves a contestant out: ours, ours-parquet, cqlsh, dsbulk, spark, spark-parquet.";

/// Times the best peer: rows by second of the client's CPU, and by second.
const CPU_BAR: f64 = 2.0;
const WALL_BAR: f64 = 1.3;
const MEMORY_BAR_MIB: f64 = 256.0;

/// The tables: their names, and how many columns there are beside the key.
const TABLES: [(&str, usize); 2] = [("five", 4), ("fifty-seven", 56)];
/// The types of these columns, one after the other.
const TYPES: [&str; 4] = ["bigint", "double", "text", "int"];

/// How much DSBulk logs: its distribution has such a file, its jars have none, and then it logs everything.
const LOGBACK: &str = "cluster-logback.xml";
const LOGBACK_XML: &str = "<configuration><appender name=\"CONSOLE\" class=\"ch.qos.logback.core.ConsoleAppender\"><encoder><pattern>%msg%n</pattern>\
</encoder></appender><root level=\"WARN\"><appender-ref ref=\"CONSOLE\"/></root></configuration>\n";

/// What the peers are called.
const NAMES: [(&str, &str); 6] = [
    ("ours", "ours"),
    ("ours-parquet", "ours, Parquet"),
    ("cqlsh", "cqlsh COPY"),
    ("dsbulk", "DSBulk"),
    ("spark", "Spark Cassandra Connector"),
    ("spark-parquet", "Spark Cassandra Connector, Parquet"),
];

/// What Spark needs to run on Java 17, as its own launcher gives it.
const SPARK_OPENS: [&str; 11] = [
    "java.lang",
    "java.lang.invoke",
    "java.lang.reflect",
    "java.io",
    "java.net",
    "java.nio",
    "java.util",
    "java.util.concurrent",
    "java.util.concurrent.atomic",
    "sun.nio.ch",
    "sun.security.action",
];

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-cluster: {message}");
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
    peers: PathBuf,
    spark: PathBuf,
    rows: u64,
    wide_rows: u64,
    rounds: usize,
    only: Vec<String>,
    without: Vec<String>,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let mut options = Options { rows: 1_000_000, wide_rows: 200_000, rounds: 3, ..Options::default() };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| USAGE.to_owned())?;
            let number = || value.parse::<u64>().map_err(|_| format!("{value} is not a number"));
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--marquetry" => options.marquetry = value.into(),
                "--cassandra" => options.cassandra = value.into(),
                "--peers" => options.peers = value.into(),
                "--spark" => options.spark = value.into(),
                "--rows" => options.rows = number()?.max(1),
                "--wide-rows" => options.wide_rows = number()?.max(1),
                "--rounds" => options.rounds = usize::try_from(number()?.max(1)).unwrap_or(1),
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                "--without" => options.without.push(value),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let paths = [
            &options.files,
            &options.out,
            &options.marquetry,
            &options.cassandra,
            &options.peers,
            &options.spark,
        ];
        if paths.iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    /// Where the program for Spark is compiled.
    fn spark_classes(&self) -> PathBuf {
        self.files.join("cluster-spark")
    }

    /// Spark's jars, as a class path has them.
    fn spark_jars(&self) -> PathBuf {
        self.peers.join("spark/*")
    }

    fn rows(&self, table: &str) -> u64 {
        if table == "five" { self.rows } else { self.wide_rows }
    }
}

/// One run of a contestant.
struct Measured {
    run: TreeRun,
    server_s: f64,
}

/// A table and a direction.
struct Case<'a> {
    options: &'a Options,
    server: &'a Server,
    table: &'static str,
    columns: Vec<(String, &'static str)>,
    is_load: bool,
    rows: u64,
    csv: PathBuf,
    parquet: PathBuf,
}

impl Case<'_> {
    fn name(&self) -> String {
        format!("{} {}", if self.is_load { "load" } else { "unload" }, self.table)
    }

    fn create(&self, table: &str) -> Result<(), String> {
        let columns: Vec<String> = self.columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        self.server.run(&format!("DROP TABLE IF EXISTS {KEYSPACE}.{table}"))?;
        self.server
            .run(&format!("CREATE TABLE {KEYSPACE}.{table} ({}, PRIMARY KEY (id))", columns.join(", ")))
    }

    fn address(&self, table: &str) -> String {
        format!("cql://{}/{KEYSPACE}.{table}", self.server.at)
    }

    /// How a contestant loads a table, or unloads it into a folder.
    fn command(&self, contestant: &str, table: &str, folder: &Path) -> Command {
        let (host, port) = self.server.at.rsplit_once(':').unwrap_or((&self.server.at, "9042"));
        let mut command = match contestant {
            "ours" | "ours-parquet" => {
                let file = if contestant == "ours" { &self.csv } else { &self.parquet };
                let mut command = Command::new(&self.options.marquetry);
                command.args(["copy", "--quiet"]);
                match self.is_load {
                    true => command.arg(file).arg(self.address(table)),
                    false => command
                        .arg(self.address(table))
                        .arg(folder.join(file.file_name().unwrap_or_default())),
                };
                command
            }
            "cqlsh" => {
                let names: Vec<&str> = self.columns.iter().map(|(name, _)| &**name).collect();
                let (verb, file) = match self.is_load {
                    true => ("FROM", self.csv.clone()),
                    false => ("TO", folder.join("out.csv")),
                };
                let statement = format!(
                    "COPY {KEYSPACE}.{table} ({}) {verb} '{}' WITH HEADER = true",
                    names.join(", "),
                    file.display()
                );
                let mut command = Command::new(self.options.peers.join("cqlsh-venv/bin/cqlsh"));
                command.args([host, port, "-e", &statement]);
                command
            }
            "spark" | "spark-parquet" => {
                let is_csv = contestant == "spark";
                let file = match (self.is_load, is_csv) {
                    (true, true) => self.csv.clone(),
                    (true, false) => self.parquet.clone(),
                    (false, _) => folder.join("out"),
                };
                let types = self
                    .columns
                    .iter()
                    .map(|(name, kind)| format!("{name} {}", if *kind == "text" { "string" } else { *kind }));
                let mut command = Command::new("java");
                for package in SPARK_OPENS {
                    command.arg(format!("--add-opens=java.base/{package}=ALL-UNNAMED"));
                }
                let jars = self.options.spark_jars().display().to_string();
                command.args(["-Xmx2g", "-cp"]);
                command.arg(format!("{}:{jars}", self.options.spark_classes().display()));
                command.args(["SparkCopy", if self.is_load { "load" } else { "unload" }]);
                command.args([host, port, KEYSPACE, table, if is_csv { "csv" } else { "parquet" }]);
                command.arg(file).arg(types.collect::<Vec<_>>().join(", "));
                command
            }
            _ => {
                let mut command = Command::new("java");
                let log = self.options.files.join(LOGBACK).display().to_string();
                command.arg(format!("-Dlogback.configurationFile={log}"));
                command.arg("-cp").arg(self.options.peers.join("dsbulk/*"));
                command.arg("com.datastax.oss.dsbulk.runner.DataStaxBulkLoader");
                command.arg(if self.is_load { "load" } else { "unload" });
                command.args([
                    "-k", KEYSPACE, "-t", table, "-h", host, "-port", port, "-header", "true", "-url",
                ]);
                command.arg(if self.is_load { self.csv.clone() } else { folder.join("out") });
                command.arg("-logDir").arg(folder.join("logs"));
                command
            }
        };
        command.stdin(Stdio::null());
        command
    }

    /// One run, into a fresh table or folder.
    fn once(&self, contestant: &str, folder: &Path) -> Result<Measured, String> {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        let table = if self.is_load { "loaded" } else { "source" };
        if self.is_load {
            self.create(table)?;
        }
        let before = self.server.cpu()?;
        let said = folder.join("stderr.txt");
        let mut command = self.command(contestant, table, folder);
        command.stderr(std::fs::File::create(&said).map_err(|error| error.to_string())?);
        let run =
            program::watch_tree(command).map_err(|error| format!("{contestant}: {}", why(&said, &error)))?;
        let server_s = self.server.cpu()?.saturating_sub(before).as_secs_f64();
        // What it says that it did is what it did.
        let found = match self.is_load {
            true => self.count(&self.address(table))?,
            false => self.unloaded(contestant, folder)?,
        };
        if found != self.rows {
            return Err(format!("{}: {contestant} moved {found} of {} rows", self.name(), self.rows));
        }
        Ok(Measured { run, server_s })
    }

    fn count(&self, source: &str) -> Result<u64, String> {
        let counted = program::output(Command::new(&self.options.marquetry).args(["count", source]))?;
        counted.trim().parse().map_err(|_| format!("{source}: not a number: {counted}"))
    }

    /// The rows of the files in a folder: each is a line, after a header in each file.
    fn unloaded(&self, contestant: &str, folder: &Path) -> Result<u64, String> {
        if contestant == "ours-parquet" {
            let file = self.parquet.file_name().unwrap_or_default();
            return self.count(&folder.join(file).display().to_string());
        }
        if contestant == "spark-parquet" {
            return self.count(&folder.join("out").display().to_string());
        }
        let mut found = 0;
        for directory in [folder.to_path_buf(), folder.join("out")] {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                if entry.path().extension().is_some_and(|it| it == "csv") {
                    let text = std::fs::read(entry.path()).map_err(|error| error.to_string())?;
                    let lines = text.iter().filter(|byte| **byte == b'\n').count();
                    found += u64::try_from(lines).unwrap_or(0).saturating_sub(1);
                }
            }
        }
        Ok(found)
    }

    /// All take turns. A peer that fails twice, one time after the other, takes no more of them, and is in no row; why is added to what `failed`.
    fn compare(&self, contestants: &[&'static str], failed: &mut Vec<String>) -> Result<Vec<Row>, String> {
        let folder = self.options.files.join("cluster-out");
        let mut runs: Vec<(&'static str, Vec<Measured>)> =
            contestants.iter().map(|contestant| (*contestant, Vec::new())).collect();
        // The first one's time is that of a server that has compiled nothing yet: it is not counted.
        for round in 0..=self.options.rounds {
            let mut left = Vec::new();
            for index in turns::of_round(round, runs.len()) {
                let (contestant, runs) = &mut runs[index];
                let run = match self.once(contestant, &folder) {
                    Err(error) if !contestant.starts_with("ours") => {
                        eprintln!("{error}; once more");
                        self.once(contestant, &folder)
                    }
                    run => run,
                };
                match run {
                    Ok(run) if round > 0 => runs.push(run),
                    Ok(_) => {}
                    Err(error) if contestant.starts_with("ours") => return Err(error),
                    Err(error) => {
                        eprintln!("{error}");
                        failed.push(format!("{} by {error}", self.name()));
                        left.push(*contestant);
                    }
                }
            }
            runs.retain(|(contestant, _)| !left.contains(contestant));
        }
        let _ = std::fs::remove_dir_all(&folder);
        let (contestants, runs): (Vec<&'static str>, Vec<Vec<Measured>>) = runs.into_iter().unzip();
        let contestants = &*contestants;
        let rows = u32::try_from(self.rows).map_or(f64::NAN, f64::from);
        let of = |value: &dyn Fn(&Measured) -> f64| -> Vec<Vec<f64>> {
            runs.iter().map(|runs| runs.iter().map(value).collect()).collect()
        };
        let direction = if self.is_load { "Load" } else { "Unload" };
        let samples = [
            ("rows a second of client CPU", "rows/s", Some(CPU_BAR), of(&|it| rows / it.run.cpu_s)),
            ("rows a second", "rows/s", Some(WALL_BAR), of(&|it| rows / it.run.wall_s)),
            ("peak memory of the client", "MiB", None, of(&|it| it.run.peak_mib)),
            ("CPU of the server", "s", None, of(&|it| it.server_s)),
        ];
        let made = samples.into_iter().map(|(what, unit, bar, samples)| {
            let row = row(&format!("{direction}: {what}"), self.table, (unit, bar), contestants, &samples);
            row.tell();
            row
        });
        Ok(made.collect())
    }
}

/// Why a program failed: the line that says so among those that it wrote, or else the last one, or else how it ended.
fn why(said: &Path, ended: &str) -> String {
    let said = std::fs::read(said).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    // What ended it, or else what it met first: a library logs what it tries and does without.
    let having = |words: &str| lines.clone().find(|line| line.contains(words));
    let line = having("Exception in thread").or_else(|| having("Exception"));
    let line = line.or_else(|| lines.next_back());
    // How it ended comes after the command, which is long.
    line.unwrap_or_else(|| ended.rsplit(": ").next().unwrap_or(ended)).chars().take(300).collect()
}

/// A row of the report. With a bar it is better the higher it is.
fn row(
    group: &str,
    case: &str,
    (unit, bar): (&'static str, Option<f64>),
    contestants: &[&'static str],
    samples: &[Vec<f64>],
) -> Row {
    let name_of = |key: &str| NAMES.iter().find(|(known, _)| *known == key).map_or("?", |(_, name)| name);
    let medians: Vec<f64> = samples.iter().map(|samples| stats::median(samples)).collect();
    let ours = contestants.iter().position(|it| *it == "ours");
    // Ours with Parquet is nobody's peer.
    let others = (0..contestants.len()).filter(|at| Some(*at) != ours && contestants[*at] != "ours-parquet");
    let better = if bar.is_some() { Better::Higher } else { Better::Lower };
    let best = others.clone().max_by(|a, b| {
        let order = medians[*a].total_cmp(&medians[*b]);
        if better == Better::Higher { order } else { order.reverse() }
    });
    let ratio = ours.zip(best).map(|(ours, best)| {
        (medians[ours] / medians[best], stats::ratio_interval(&samples[ours], &samples[best]))
    });
    let parquet = contestants.iter().position(|it| *it == "ours-parquet").map(|at| medians[at]);
    let bar = match (bar, best, unit) {
        (Some(times), Some(best), _) => times * medians[best],
        (None, _, "MiB") => MEMORY_BAR_MIB,
        // The server's work is reported, and held to what it is for the best peer.
        (None, Some(best), _) => medians[best],
        _ => f64::NAN,
    };
    Row {
        group: group.to_owned(),
        case: case.to_owned(),
        unit,
        better,
        ours: ours.map(|ours| medians[ours]),
        peers: others.map(|at| (name_of(contestants[at]).to_owned(), medians[at])).collect(),
        bar,
        ratio,
        more: json!({ "ours_parquet": parquet }),
    }
}

fn run(options: &Options) -> Result<(), String> {
    std::fs::create_dir_all(&options.files)
        .map_err(|error| format!("{}: {error}", options.files.display()))?;
    write(&options.files.join(LOGBACK), LOGBACK_XML)?;
    let (contestants, missing) = contestants(options);
    if contestants.iter().any(|name| name.starts_with("spark")) {
        let mut compile = Command::new("javac");
        compile.arg("-cp").arg(options.spark_jars()).arg("-d").arg(options.spark_classes());
        program::output(compile.arg(&options.spark))?;
    }
    let server = Server::start(&options.cassandra, &options.files.join("cluster-cassandra"))?;
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for (table, more) in TABLES {
        let types = TYPES.into_iter().cycle().take(more).enumerate();
        let mut columns = vec![("id".to_owned(), "bigint")];
        columns.extend(types.map(|(at, kind)| (format!("c{at}"), kind)));
        for is_load in [true, false] {
            let case = Case {
                options,
                server: &server,
                table,
                columns: columns.clone(),
                is_load,
                rows: options.rows(table),
                csv: options.files.join(format!("cluster-{table}.csv")),
                parquet: options.files.join(format!("cluster-{table}.parquet")),
            };
            let name = case.name();
            if !options.only.iter().all(|word| name.split(' ').any(|other| other == word)) {
                continue;
            }
            make(&case)?;
            if !is_load {
                case.create("source")?;
                program::output(&mut case.command_to_fill())?;
            }
            rows.extend(case.compare(&contestants, &mut failed)?);
            // What was measured is there, whatever comes.
            report(options, &contestants, (&missing, &failed), in_groups(&rows)).write(&options.out, None)?;
        }
    }
    if rows.is_empty() { Err("no case has all of those words".to_owned()) } else { Ok(()) }
}

/// The rows, those of a group together.
fn in_groups(rows: &[Row]) -> Vec<Row> {
    let mut rows = rows.to_vec();
    let mut groups: Vec<String> = Vec::new();
    for row in &rows {
        if !groups.contains(&row.group) {
            groups.push(row.group.clone());
        }
    }
    rows.sort_by_key(|row| groups.iter().position(|group| *group == row.group));
    rows
}

impl Case<'_> {
    /// Fills the table that is unloaded.
    fn command_to_fill(&self) -> Command {
        let mut command = Command::new(&self.options.marquetry);
        command.args(["copy", "--quiet"]).arg(&self.parquet).arg(self.address("source"));
        command
    }
}

/// Those that are there, and what is said of those that are not.
fn contestants(options: &Options) -> (Vec<&'static str>, Vec<String>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (key, name) in NAMES {
        let is_there = match key {
            "cqlsh" => options.peers.join("cqlsh-venv/bin/cqlsh").is_file(),
            "dsbulk" => options.peers.join("dsbulk").is_dir(),
            "spark" | "spark-parquet" => options.peers.join("spark").is_dir(),
            _ => true,
        };
        if is_there && !options.without.iter().any(|without| without == key) {
            found.push(key);
        } else if key != "ours-parquet" && key != "ours" {
            missing.push(name.to_owned());
        }
    }
    (found, missing)
}

/// Makes the rows of a table, as CSV and as Parquet, unless they are there.
fn make(case: &Case<'_>) -> Result<(), String> {
    let made = case.csv.with_extension("rows");
    let is_made = std::fs::read_to_string(&made).is_ok_and(|rows| rows == case.rows.to_string());
    if is_made && case.csv.is_file() && case.parquet.is_file() {
        return Ok(());
    }
    let names: Vec<&str> = case.columns.iter().map(|(name, _)| &**name).collect();
    let mut text = names.join(",") + "\n";
    let mut state = 1_u64;
    for row in 0..case.rows {
        let _ = write!(text, "{row}");
        for (_, kind) in case.columns.iter().skip(1) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let number = state >> 33;
            let _ = match *kind {
                "bigint" => write!(text, ",{number}"),
                "int" => write!(text, ",{}", number % 1_000_000),
                "double" => write!(text, ",{}.{}", number % 100_000, number % 8 * 125),
                _ => write!(text, ",text of {}", number % 100_000),
            };
        }
        text.push('\n');
    }
    write(&case.csv, &text)?;
    let _ = std::fs::remove_file(&case.parquet);
    let schema: Vec<String> = case.columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
    let mut command = Command::new(&case.options.marquetry);
    command.args(["copy", "--quiet", "--schema", &schema.join(", ")]).arg(&case.csv).arg(&case.parquet);
    program::output(&mut command)?;
    write(&made, &case.rows.to_string())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn report(
    options: &Options,
    contestants: &[&str],
    (missing, failed): (&[String], &[String]),
    rows: Vec<Row>,
) -> Report {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let version = |program: PathBuf| {
        program::output(Command::new(program).arg("--version"))
            .map_or_else(|_| "?".to_owned(), |text| text.trim().to_owned())
    };
    let mut versions = serde_json::Map::new();
    if contestants.contains(&"cqlsh") {
        versions.insert("cqlsh".to_owned(), json!(version(options.peers.join("cqlsh-venv/bin/cqlsh"))));
    }
    // Jars have their versions in their names.
    let of_jar = |folder: &str, prefix: &str| {
        let jars = std::fs::read_dir(options.peers.join(folder)).into_iter().flatten().flatten();
        let mut names = jars.map(|jar| jar.file_name().to_string_lossy().into_owned());
        names.find_map(|name| name.strip_prefix(prefix).map(|rest| rest.trim_end_matches(".jar").to_owned()))
    };
    if contestants.contains(&"dsbulk") {
        versions.insert("DSBulk".to_owned(), json!(of_jar("dsbulk", "dsbulk-runner-")));
    }
    if contestants.iter().any(|name| name.starts_with("spark")) {
        versions.insert("Spark".to_owned(), json!(of_jar("spark", "spark-sql_2.12-")));
        let connector = of_jar("spark", "spark-cassandra-connector_2.12-");
        versions.insert("Spark Cassandra Connector".to_owned(), json!(connector));
    }
    let text = Value::Object(versions.clone()).to_string();
    let notes = vec![
        format!(
            "Whole programs, from their start to their end, and one Cassandra on the same {cores} cores, with a heap of 2 GiB. All load the same CSV file, each into a \
             new table, and unload the same table into CSV, as they do by default: number of connections, batches, requests in flight. Medians of {} rounds, in turns, after a \
             run each that does not count. Rows are counted after each run. The client's CPU is that of all its processes, which end with it; its memory that of all of them \
             at once, looked at every 20 ms. The server's CPU is what its process had meanwhile; what it compacts later is not in it.",
            options.rounds
        ),
        "The bars are 2 × the best peer's rows by second of client CPU, 1.3 × its rows a second (unless the server's threads hold the machine), and 256 MiB. The JSON has Marquetry \
         with Parquet files instead of CSV as `ours_parquet`."
            .to_owned(),
        format!("{} rows of 5 columns, {} of 57. Versions: {text}. {}.", options.rows, options.wide_rows, clock::processor()),
        match missing.is_empty() && failed.is_empty() {
            true => "All contestants ran.".to_owned(),
            false => [("Not run", missing), ("Failed twice", failed)]
                .into_iter()
                .filter(|(_, of)| !of.is_empty())
                .map(|(what, of)| format!("{what}: {}.", of.join("; ")))
                .collect::<Vec<_>>()
                .join(" "),
        },
    ];
    Report {
        name: "cluster".to_owned(),
        title: "Live clusters: Marquetry and its peers".to_owned(),
        notes,
        setting: json!({
            "rounds": options.rounds,
            "rows": options.rows,
            "wide_rows": options.wide_rows,
            "versions": versions,
            "not_run": missing,
            "failed": failed,
            "cores": cores,
            "processor": clock::processor(),
        }),
        rows,
    }
}
