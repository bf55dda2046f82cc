//! The benchmark of writing SSTables: beside Cassandra's own writer, and beside a load by CQL. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use marquetry_bench::program::{self, TreeRun};
use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::server::{KEYSPACE, Server};
use marquetry_bench::{clock, stats};
use serde_json::json;

const USAGE: &str = "usage: bench-sstable-writing --files DIR --out DIR --marquetry PROGRAM --cassandra CASSANDRA.SH --maker MAKETABLES.JAVA
                             [--rows 5000000] [--server-rows 1000000] [--rounds 3] [--only WORDS] [--folder DIR]

--server-rows is how many rows are loaded into a Cassandra, 0 for none; --only keeps the tables whose name (`five columns`) has all of the words;
--folder is where SSTables are written: in memory (/dev/shm).";

/// Tables, and what `MakeTables.java` calls them.
const TABLES: [(&str, &str); 2] = [("five columns", "five"), ("ten columns", "mixed")];

/// Times the rows a second of Cassandra's writer, and of a load by CQL.
const UNSORTED_BAR: f64 = 10.0;
const SORTED_BAR: f64 = 5.0;
const LOAD_BAR: f64 = 5.0;

/// When the first row was written; each is a microsecond later than the one before it (`START` in `MakeTables.java`).
const WRITTEN: &str = "1700000000000000";
/// Of CPU there is no bar: that it is no more than the others'.
const CPU_BAR: f64 = 1.0;

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-sstable-writing: {message}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Clone, Default)]
struct Options {
    files: PathBuf,
    out: PathBuf,
    marquetry: PathBuf,
    cassandra: PathBuf,
    maker: PathBuf,
    rows: u32,
    server_rows: u32,
    rounds: usize,
    only: Vec<String>,
    folder: PathBuf,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let mut options = Options {
            rows: 5_000_000,
            server_rows: 1_000_000,
            rounds: 3,
            folder: PathBuf::from("/dev/shm"),
            ..Options::default()
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            let number = || value.parse::<u32>().map_err(|_| format!("{value} is not a number"));
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--marquetry" => options.marquetry = value.into(),
                "--cassandra" => options.cassandra = value.into(),
                "--maker" => options.maker = value.into(),
                "--rows" => options.rows = number()?.max(1),
                "--server-rows" => options.server_rows = number()?,
                "--rounds" => options.rounds = usize::try_from(number()?.max(1)).unwrap_or(1),
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                "--folder" => options.folder = value.into(),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let Options { files, out, marquetry, cassandra, maker, .. } = &options;
        if [files, out, marquetry, cassandra, maker].iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    fn marquetry(&self) -> Command {
        let mut command = Command::new(&self.marquetry);
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }
}

/// The times of one run.
#[derive(Clone, Copy)]
struct Times {
    wall_s: f64,
    cpu_s: f64,
}

impl From<TreeRun> for Times {
    fn from(run: TreeRun) -> Times {
        Times { wall_s: run.wall_s, cpu_s: run.cpu_s }
    }
}

fn run(options: &Options) -> Result<(), String> {
    std::fs::create_dir_all(&options.files)
        .map_err(|error| format!("{}: {error}", options.files.display()))?;
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    let folder = options.folder.join(format!("marquetry-bench-writing-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files = options.files.canonicalize().map_err(|error| error.to_string())?;
    let options = &Options { files, ..options.clone() };
    let rows = measure(options, &folder);
    let _ = std::fs::remove_dir_all(&folder);
    let mut rows = rows?;
    if rows.is_empty() {
        return Err("no table has all of those words".to_owned());
    }
    let is_cpu = |row: &Row| row.group.ends_with("CPU");
    rows.sort_by_key(|row| (is_cpu(row), !row.group.starts_with("Write")));
    report(options, rows).write(&options.out, None)
}

fn measure(options: &Options, folder: &Path) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let is_wanted = |name: &str| options.only.iter().all(|word| name.split(' ').any(|other| other == word));
    for (name, made_by) in TABLES {
        if is_wanted(name) {
            rows.extend(Table { options, folder, name, made_by, rows: options.rows }.write()?);
        }
    }
    if options.server_rows > 0 {
        for (name, made_by) in TABLES.into_iter().filter(|(name, _)| is_wanted(name)) {
            rows.extend(Table { options, folder, name, made_by, rows: options.server_rows }.load()?);
        }
    }
    Ok(rows)
}

struct Table<'a> {
    options: &'a Options,
    /// Where SSTables are written.
    folder: &'a Path,
    name: &'static str,
    made_by: &'static str,
    rows: u32,
}

impl Table<'_> {
    /// The writers take turns.
    fn write(&self) -> Result<Vec<Row>, String> {
        let (plain, full) = self.parquet()?;
        let (mut ours, mut ours_full) = (Vec::new(), Vec::new());
        let (mut sorted, mut unsorted) = (Vec::new(), Vec::new());
        for round in 0..self.options.rounds {
            let java = self.folder.join("sorted");
            sorted.push(self.java("sorted", &java)?);
            let plain_dir = self.folder.join("plain");
            ours.push(self.ours(&plain, &plain_dir, true)?);
            let full_dir = self.folder.join("full");
            ours_full.push(self.ours(&full, &full_dir, false)?);
            let java_unsorted = self.folder.join("unsorted");
            unsorted.push(self.java("unsorted", &java_unsorted)?);
            // All have the same writes, with their times.
            if round == 0 {
                for other in [&plain_dir, &full_dir, &java_unsorted] {
                    self.expect_same(&java, other)?;
                }
            }
            for dir in [&java, &plain_dir, &full_dir, &java_unsorted] {
                std::fs::remove_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
            }
        }
        let mut rows = Vec::new();
        for (input, samples) in [("any rows", &ours), ("rows of `full`", &ours_full)] {
            for (order, peer, bar) in [("unsorted", &unsorted, UNSORTED_BAR), ("sorted", &sorted, SORTED_BAR)]
            {
                let case = format!("{}, {input}", self.name);
                let peer = (format!("CQLSSTableWriter, {order}"), peer.as_slice());
                rows.extend(self.compare(&format!("Writing, beside {order}"), &case, samples, peer, bar));
            }
        }
        Ok(rows)
    }

    /// Two ways into a server take turns.
    fn load(&self) -> Result<Vec<Row>, String> {
        let (plain, _) = self.parquet()?;
        let server = Server::start(&self.options.cassandra, &self.options.files.join("writing-cassandra"))?;
        let definition = std::fs::read_to_string(self.schema()?).map_err(|error| error.to_string())?;
        let address = format!("cql://{}/{KEYSPACE}.t", server.at);
        let (mut imports, mut loads, mut import_server, mut load_server) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        // The first round is that of a server that has compiled nothing yet: it is not counted.
        for round in 0..=self.options.rounds {
            for is_import in [true, false] {
                server.run(&format!("DROP TABLE IF EXISTS {KEYSPACE}.t"))?;
                server.run(definition.trim().trim_end_matches(';'))?;
                let before = server.cpu()?;
                let times = if is_import {
                    // The path must not look like that of another keyspace: Cassandra would find nothing in it, and say nothing.
                    let dir = self.options.files.join("writing").join(KEYSPACE).join("t");
                    let _ = std::fs::remove_dir_all(&dir);
                    std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
                    let written = self.ours(&plain, &dir, true)?;
                    let mut command = server.nodetool();
                    command.args(["import", "--copy-data", KEYSPACE, "t"]).arg(&dir);
                    let imported = program::watch_tree(command)?;
                    std::fs::remove_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
                    Times { wall_s: written.wall_s + imported.wall_s, cpu_s: written.cpu_s + imported.cpu_s }
                } else {
                    let mut command = self.options.marquetry();
                    command.args(["copy", "--quiet", "--timestamp", WRITTEN]).arg(&plain).arg(&address);
                    program::watch_tree(command)?.into()
                };
                let at_server = server.cpu()?.saturating_sub(before).as_secs_f64();
                let counted = program::output(self.options.marquetry().arg("count").arg(&address))?;
                if counted.trim() != self.rows.to_string() {
                    return Err(format!(
                        "{}: the server has {} of {} rows",
                        self.name,
                        counted.trim(),
                        self.rows
                    ));
                }
                // Both leave the same rows: that the load does is known by the tests of loads.
                if round == 0 && is_import {
                    let mut command = self.options.marquetry();
                    command.args(["diff", "--quiet", "--key", "key"]).arg(&plain).arg(&address);
                    program::output(&mut command)?;
                }
                if round > 0 {
                    let (times_of, server_of) = match is_import {
                        true => (&mut imports, &mut import_server),
                        false => (&mut loads, &mut load_server),
                    };
                    times_of.push(times);
                    server_of.push(at_server);
                }
            }
        }
        let peer = ("load by CQL".to_owned(), loads.as_slice());
        let mut rows = self.compare("Into a Cassandra", self.name, &imports, peer, LOAD_BAR);
        let more = json!({ "server_cpu_s": stats::median(&import_server), "load_server_cpu_s": stats::median(&load_server) });
        for row in &mut rows {
            row.more = more.clone();
        }
        Ok(rows)
    }

    /// Rows a second, and rows a second of CPU.
    fn compare(
        &self,
        group: &str,
        case: &str,
        ours: &[Times],
        (name, peer): (String, &[Times]),
        bar: f64,
    ) -> Vec<Row> {
        let of = |value: &dyn Fn(&Times) -> f64, group: String, bar: f64| {
            let samples = |times: &[Times]| -> Vec<f64> {
                times.iter().map(|times| f64::from(self.rows) / value(times)).collect()
            };
            let (ours, peer) = (samples(ours), samples(peer));
            let medians = (stats::median(&ours), stats::median(&peer));
            let row = Row {
                group,
                case: case.to_owned(),
                unit: "rows/s",
                better: Better::Higher,
                ours: Some(medians.0),
                peers: vec![(name.clone(), medians.1)],
                bar: bar * medians.1,
                ratio: Some((medians.0 / medians.1, stats::ratio_interval(&ours, &peer))),
                more: json!({}),
            };
            row.tell();
            row
        };
        let cpu = format!("{group}: rows a second of CPU");
        vec![of(&|times| times.wall_s, group.to_owned(), bar), of(&|times| times.cpu_s, cpu, CPU_BAR)]
    }

    /// Our writer, from its start to its end.
    fn ours(&self, parquet: &Path, dir: &Path, is_plain: bool) -> Result<Times, String> {
        let mut command = self.options.marquetry();
        command.args(["copy", "--quiet", "--format", "nb"]).arg(parquet);
        command.arg(format!("sstable:{}", dir.display()));
        if is_plain {
            command.arg("--schema-cql").arg(self.schema()?).args(["--timestamp", WRITTEN]);
        }
        Ok(program::watch_tree(command)?.into())
    }

    /// Cassandra's writer: its time without the start of Java, and without what it takes to make the rows.
    fn java(&self, order: &str, dir: &Path) -> Result<Times, String> {
        let _ = std::fs::remove_dir_all(dir);
        let mut command = Command::new(&self.options.cassandra);
        command.arg("run").arg(&self.options.maker).arg(dir);
        command.args([self.made_by, &self.rows.to_string(), "LZ4Compressor"]);
        // Its buffers of rows that are not sorted fill 3 GiB with millions of rows.
        command.env("ORDER", order).env("COMPATIBILITY", "CASSANDRA_4").stdin(Stdio::null());
        command.env("HEAP", "10g").env("COLLECTOR", "Parallel");
        let printed = program::output(&mut command)?;
        let numbers: Result<Vec<f64>, String> = printed
            .split_whitespace()
            .map(|word| word.parse().map_err(|_| format!("not numbers: {printed}")))
            .collect();
        let numbers = numbers?;
        let [wall_s, cpu_s, rows_wall_s, rows_cpu_s, _] = numbers[..] else {
            return Err(format!("not five numbers: {printed}"));
        };
        Ok(Times { wall_s: wall_s - rows_wall_s, cpu_s: cpu_s - rows_cpu_s })
    }

    /// Where the files of rows are, which are made unless they are there: of any rows, in the order of keys, and of the mapping `full`.
    fn parquet(&self) -> Result<(PathBuf, PathBuf), String> {
        let path =
            |kind: &str| self.options.files.join(format!("writing-{}-{}-{kind}", self.made_by, self.rows));
        let (plain, full) = (path("plain.parquet"), path("full.parquet"));
        if !(plain.is_file() && full.is_file() && path("schema.cql").is_file()) {
            let dir = self.folder.join("rows");
            self.java("sorted", &dir)?;
            for (file, options) in [
                (&plain, ["--mapping", "logical", "--sort", "key"].as_slice()),
                (&full, &["--mapping", "full"]),
            ] {
                let _ = std::fs::remove_file(file);
                let mut command = self.options.marquetry();
                command.args(["copy", "--quiet"]).arg(format!("sstable:{}", dir.display())).arg(file);
                program::output(command.args(options))?;
            }
            std::fs::copy(dir.join("schema.cql"), path("schema.cql")).map_err(|error| error.to_string())?;
            std::fs::remove_dir_all(&dir).map_err(|error| error.to_string())?;
        }
        Ok((plain, full))
    }

    fn schema(&self) -> Result<PathBuf, String> {
        let path = self.options.files.join(format!("writing-{}-{}-schema.cql", self.made_by, self.rows));
        if path.is_file() { Ok(path) } else { Err(format!("{}: it is missing", path.display())) }
    }

    /// Two directories have the same writes, as many as there are rows.
    fn expect_same(&self, a: &Path, b: &Path) -> Result<(), String> {
        let (a, b) = (format!("sstable:{}", a.display()), format!("sstable:{}", b.display()));
        let counted = program::output(self.options.marquetry().args(["count", &a]))?;
        if counted.trim() != self.rows.to_string() {
            return Err(format!("{a}: {} of {} rows", counted.trim(), self.rows));
        }
        program::output(self.options.marquetry().args(["diff", "--quiet", &a, &b])).map(drop)
    }
}

fn report(options: &Options, rows: Vec<Row>) -> Report {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let notes = vec![
        format!(
            "{} rows become SSTables of format `nb` with LZ4 in chunks of 16 KiB, in memory ({}). Medians of {} rounds; writers took turns, on {cores} cores. \
             In the first round all directories were compared, write times included (`marquetry diff`).",
            options.rows,
            options.folder.display(),
            options.rounds
        ),
        "Ours is `marquetry copy FILE.parquet sstable:DIR` from start to end: it reads the file, converts and sorts (any rows, which come in the order of \
         their keys, not of their tokens) or takes writes as they are (rows of the mapping `full`, in the order of tokens), and writes. Of `CQLSSTableWriter` only the writer counts: from \
         its making to its end, less what making the rows alone takes, without the start of Java, with a heap of 10 GiB and the parallel collector; its own order by tokens is not counted in `sorted`. Its Bloom filters are those of a \
         writer that does not know the number of keys; ours are of their full size."
            .to_owned(),
        format!(
            "The bars are {UNSORTED_BAR:.0} × `CQLSSTableWriter` unsorted, {SORTED_BAR:.0} × sorted, and {LOAD_BAR:.0} × a load by CQL. Of rows a second of CPU: no fewer than the other's."
        ),
        format!(
            "Into a Cassandra: {} rows. Writing, as above, and `nodetool import --copy-data`, with the start of its Java; beside `marquetry copy FILE.parquet cql://…` of the same file. \
             The directory to import is on the disk. CPU is that of the clients; the server's is in the JSON. Rows are counted after each, and compared with the file after the first.",
            options.server_rows
        ),
        format!("Cassandra 5.0.9. {}.", clock::processor()),
    ];
    Report {
        name: "sstable_writing".to_owned(),
        title: "Writing SSTables: Marquetry and Cassandra's writer".to_owned(),
        notes,
        setting: json!({
            "rows": options.rows,
            "server_rows": options.server_rows,
            "rounds": options.rounds,
            "cores": cores,
            "processor": clock::processor(),
            "versions": { "cassandra": "5.0.9" },
        }),
        rows,
    }
}
