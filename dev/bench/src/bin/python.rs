//! The benchmark of the package for Python: reading into pyarrow and Polars, beside their own readers, and beside the same crate in Rust; and the
//! time of importing it. See `README.md` for what makes it fair.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use marquetry::arrow::StringLayout;
use marquetry_bench::protocol::{Contestant, Count, serve};
use marquetry_bench::report::{Better, Report, Row};
use marquetry_bench::{clock, stats, turns};
use mimalloc::MiMalloc;
use serde_json::{Value, json};

/// The crate in Rust gets its memory as the package does.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const USAGE: &str = "usage: bench-python --files DIR --out DIR --python PYTHON --peers PEERS_PYTHON.PY --package DIR
                    [--rounds 15] [--cpu NUMBER] [--only WORDS]
       bench-python engine kept|views|counted FILE

--package is the folder that holds the package `marquetry`; --only keeps the files whose name (`int32 PLAIN SNAPPY`) has all of the words.
`engine` is a contestant: the crate in Rust, which keeps all batches, with strings as the file's Arrow schema has them or as views, or counts rows.";

/// Times the CPU time of the crate in Rust.
const ENGINE_BAR: f64 = 1.03;
/// Times the CPU time of the other reader.
const READER_BAR: f64 = 1.0;
/// Milliseconds that an import may take.
const IMPORT_BAR: f64 = 50.0;
/// Bytes of values of a batch, as the package has it.
const BATCH_BYTES: usize = 4 << 20;
/// Untimed readings before the first round.
const WARM_UP_RUNS: usize = 2;

/// What is read into, the contestant of the package, what the crate does of it, and the other reader. DuckDB's own counts rows without reading them.
type Into = (&'static str, &'static str, &'static str, Option<[&'static str; 2]>);
const INTO: [Into; 3] = [
    ("pyarrow", "marquetry-pyarrow", "kept", Some(["pyarrow", "pyarrow.parquet.read_table"])),
    ("Polars", "marquetry-polars", "views", Some(["polars", "polars.read_parquet"])),
    ("DuckDB", "marquetry-duckdb", "counted", None),
];
/// What the crate is called as a contestant.
const ENGINE: &str = "the crate in Rust";
/// Of ten rows beside other readers, how many are to be faster.
const FASTER_OF_TEN: usize = 9;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, product, file] = &*arguments
        && word == "engine"
    {
        return serve(env!("CARGO_PKG_VERSION"), |_| read(product, file));
    }
    match Options::parse(&arguments).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-python: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Reads a file as the package does: into record batches that are kept until the last one is there, or counted. The proof is its rows.
fn read(product: &str, file: &str) -> Result<Count, String> {
    let text = |error: marquetry::Error| error.to_string();
    let mut table = marquetry::open(file).map_err(text)?.threads(0).batch_bytes(BATCH_BYTES);
    if product == "views" {
        table = table.strings(StringLayout::View);
    }
    let (mut kept, mut rows) = (Vec::new(), 0);
    for batch in table.record_batches().map_err(text)?.with_text_as_bytes() {
        let batch = batch.map_err(|error| error.to_string())?;
        rows += u64::try_from(batch.num_rows()).unwrap_or(0);
        if product != "counted" {
            kept.push(batch);
        }
    }
    Ok(Count { rows, sum: 0 })
}

#[derive(Debug)]
struct Options {
    files: PathBuf,
    out: PathBuf,
    python: PathBuf,
    peers: PathBuf,
    package: PathBuf,
    rounds: usize,
    cpu: usize,
    only: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options, String> {
        let mut options = Options {
            files: PathBuf::new(),
            out: PathBuf::new(),
            python: PathBuf::new(),
            peers: PathBuf::new(),
            package: PathBuf::new(),
            rounds: 15,
            cpu: 0,
            only: Vec::new(),
        };
        let mut arguments = arguments.iter();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            let number = || value.parse::<usize>().map_err(|_| format!("{value} is not a number"));
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--python" => options.python = value.into(),
                "--peers" => options.peers = value.into(),
                "--package" => options.package = value.into(),
                "--rounds" => options.rounds = number()?.max(1),
                "--cpu" => options.cpu = number()?,
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let Options { files, out, python, peers, package, .. } = &options;
        if [files, out, python, peers, package].iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }

    fn python(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.python);
        command.args(arguments).env("PYTHONPATH", &self.package);
        command
    }
}

fn run(options: &Options) -> Result<(), String> {
    let listing = options.files.join("cases.json");
    let listing =
        std::fs::read_to_string(&listing).map_err(|error| format!("{}: {error}", listing.display()))?;
    let listing: Value = serde_json::from_str(&listing).map_err(|error| format!("cases.json: {error}"))?;
    let cases = listing["cases"].as_array().ok_or("a listing of no cases")?;
    clock::pin(options.cpu)?;
    let (mut rows, mut versions, mut left_out) = (Vec::new(), serde_json::Map::new(), Vec::new());
    for case in cases {
        let name = case["name"].as_str().ok_or("a case without a name")?;
        // None of these packages reads ALP.
        let is_made = case["encoding"] != "ALP"
            && case["products"].as_array().is_some_and(|all| all.iter().any(|it| it == "arrow"));
        if is_made && options.only.iter().all(|word| name.split(' ').any(|other| other == word)) {
            for into in INTO {
                rows.extend(compare(options, name, case, into, &mut versions, &mut left_out)?);
            }
        }
    }
    if rows.is_empty() {
        return Err("no case has all of those words".to_owned());
    }
    rows.sort_by(|a: &Row, b: &Row| a.group.cmp(&b.group));
    rows.push(imported(options)?);
    report(options, &listing, rows, (versions, left_out)).write(&options.out, None)
}

/// A row beside the engine, and one beside the other reader, if there is one.
fn compare(
    options: &Options,
    name: &str,
    case: &Value,
    (library, ours, product, other): Into,
    versions: &mut serde_json::Map<String, Value>,
    left_out: &mut Vec<String>,
) -> Result<Vec<Row>, String> {
    let file = options.files.join(case["file"].as_str().ok_or("a case without a file")?);
    let file = file.to_string_lossy();
    let peers = options.peers.to_string_lossy();
    let engine = {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(["engine", product, &*file]);
        command
    };
    let mut contestants = vec![
        Contestant::start("ours", options.python(&[&*peers, ours, &*file]))?,
        Contestant::start(ENGINE, engine)?,
    ];
    if let Some([other, reader]) = other {
        contestants.push(Contestant::start(reader, options.python(&[&*peers, other, &*file]))?);
    }
    let (rows, sum) = (case["rows"].as_u64().unwrap_or(0), case["sum"].as_u64().unwrap_or(0));
    let mut able = Vec::with_capacity(contestants.len());
    for mut contestant in contestants {
        versions.insert(contestant.name.to_owned(), json!(contestant.version));
        let (_, count) = match contestant.run(true) {
            // A reader that is not ours may lack an encoding.
            Err(error) if other.is_some_and(|[_, reader]| reader == contestant.name) => {
                left_out.push(format!("{name}: {error}"));
                continue;
            }
            answer => answer.map_err(|error| format!("{name}: {error}"))?,
        };
        // The crate is proved by the package, which is made of it.
        let proof = if contestant.name == ENGINE { 0 } else { sum };
        if count != (Count { rows, sum: proof }) {
            return Err(format!("{name}: {} found {count:?}, not {rows} rows of {sum}", contestant.name));
        }
        for _ in 0..WARM_UP_RUNS {
            contestant.run(false)?;
        }
        able.push(contestant);
    }
    let mut contestants = able;
    let mut samples = vec![Vec::new(); contestants.len()];
    for round in 0..options.rounds {
        for index in turns::of_round(round, contestants.len()) {
            let (time, count) = contestants[index].run(false)?;
            if count.rows != rows {
                return Err(format!("{name}: {} counted {} rows", contestants[index].name, count.rows));
            }
            samples[index].push(time.cpu.as_secs_f64() * 1e3);
        }
    }
    let [ours, others @ ..] = &*samples else { return Err("no contestants".to_owned()) };
    let rows = contestants[1..].iter().zip(others).map(|(contestant, of_peer)| {
        let peer = contestant.name;
        let bar = if peer == ENGINE { ENGINE_BAR } else { READER_BAR };
        let group = format!("To {library}, beside {peer}");
        let names = ["ours", peer];
        let row =
            Row::of_samples(group, name.to_owned(), ("ms", bar), &names, &[ours.clone(), of_peer.clone()]);
        row.tell();
        row
    });
    Ok(rows.collect())
}

/// What `import marquetry` takes: the time of a Python that does it, less that of one that does nothing.
fn imported(options: &Options) -> Result<Row, String> {
    let run = |program: &str| {
        let started = Instant::now();
        let status = options.python(&["-c", program]).stdin(Stdio::null()).status();
        let status = status.map_err(|error| format!("{}: {error}", options.python.display()))?;
        if !status.success() {
            return Err(format!("{program} failed"));
        }
        Ok(started.elapsed().as_secs_f64() * 1e3)
    };
    let mut samples = Vec::new();
    for round in 0..options.rounds + 1 {
        let sample = run("import marquetry")? - run("pass")?;
        // The first one reads files, and writes those of Python's own.
        if round > 0 {
            samples.push(sample);
        }
    }
    Ok(Row {
        group: "Import".to_owned(),
        case: "import marquetry".to_owned(),
        unit: "ms",
        better: Better::Lower,
        ours: Some(stats::median(&samples)),
        peers: Vec::new(),
        bar: IMPORT_BAR,
        ratio: None,
        more: json!({ "interval": stats::median_interval(&samples) }),
    })
}

/// What was wanted, and what was found of it, in a sentence each.
fn claims(rows: &[Row]) -> String {
    let (engine, rest): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.group.ends_with(ENGINE));
    let (import, readers): (Vec<&Row>, Vec<&Row>) = rest.into_iter().partition(|row| row.group == "Import");
    let holding = |rows: &[&Row]| rows.iter().filter(|row| row.holds() == Some(true)).count();
    // Below and above the bar with 95 % confidence: what lies between is not decided by so many rounds.
    let beyond = |is_beyond: &dyn Fn(f64, f64) -> bool| {
        engine.iter().filter(|row| row.ratio.is_some_and(|(_, [low, high])| is_beyond(low, high))).count()
    };
    let yes = |holds: bool| if holds { "holds" } else { "does not hold" };
    let faster = holding(&readers);
    let import = import.first().and_then(|row| row.ours).unwrap_or(f64::NAN);
    format!(
        "Wanted: faster than the other reader in {FASTER_OF_TEN} of ten rows: {faster} of {} are; it {}. At most {ENGINE_BAR} × the CPU time of {ENGINE}: {} of {} rows are (in {} the whole \
         interval is, in {} none of it); it {}. An import in less than {IMPORT_BAR} ms: {import:.1} ms; it {}.",
        readers.len(),
        yes(10 * faster >= FASTER_OF_TEN * readers.len()),
        holding(&engine),
        engine.len(),
        beyond(&|_, high| high <= ENGINE_BAR),
        beyond(&|low, _| low > ENGINE_BAR),
        yes(holding(&engine) == engine.len()),
        yes(import < IMPORT_BAR),
    )
}

fn report(
    options: &Options,
    listing: &Value,
    rows: Vec<Row>,
    (versions, left_out): (serde_json::Map<String, Value>, Vec<String>),
) -> Report {
    let named: Vec<String> = versions
        .iter()
        .map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or("?")))
        .collect();
    let mut notes = vec![
        claims(&rows),
        format!(
            "Median CPU time of {} rounds to open and read a file of one column as one table, on one CPU and one thread each; the file is in the page \
             cache. DuckDB, which keeps no rows of a stream, counts them. Contestants took turns. Beside the crate in Rust (`marquetry::open(…).record_batches()`, all of which are kept, or counted \
             beside DuckDB; with the package's allocator) the bar is {ENGINE_BAR} × its time, beside the library's own reader that time. Intervals are 95 %, by the bootstrap over rounds.",
            options.rounds
        ),
        "Tables are read by `to_arrow()` and `to_polars()`, and by DuckDB's `from_arrow`. Strings have the type that the files' own Arrow schema says (`string`), as from pyarrow's reader; \
         to Polars they are views, as from its own."
            .to_owned(),
        format!("{}. {}.", named.join(", "), clock::processor()),
    ];
    if !left_out.is_empty() {
        notes.push(format!("Readers that cannot read a file: {}.", left_out.join("; ")));
    }
    if listing["scale"].as_f64() != Some(1.0) {
        notes
            .push(format!("**A quick look: {} of the rows.** Its numbers are no results.", listing["scale"]));
    }
    Report {
        name: "python".to_owned(),
        title: "Reading Parquet in Python: Marquetry and its peers".to_owned(),
        notes,
        setting: json!({
            "clock": "cpu",
            "rounds": options.rounds,
            "scale": listing["scale"],
            "versions": versions,
            "processor": clock::processor(),
        }),
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_counted_from_the_rows() {
        let row = |peer: &str, ours: f64| {
            let samples = [vec![ours; 5], vec![10.0; 5]];
            let bar = if peer == ENGINE { ENGINE_BAR } else { READER_BAR };
            let group = format!("To pyarrow, beside {peer}");
            Row::of_samples(group, "a".to_owned(), ("ms", bar), &["ours", peer], &samples)
        };
        let mut rows: Vec<Row> = (0..9).map(|_| row("a reader", 9.0)).collect();
        rows.extend([row("a reader", 11.0), row(ENGINE, 10.2), row(ENGINE, 10.4)]);
        let import =
            Row { group: "Import".to_owned(), bar: IMPORT_BAR, ours: Some(40.0), ..row("Python", 1.0) };
        rows.push(import);
        let said = claims(&rows);
        assert!(said.contains("9 of 10 are; it holds"), "{said}");
        assert!(
            said.contains("1 of 2 rows are (in 1 the whole interval is, in 1 none of it); it does not hold"),
            "{said}"
        );
        assert!(said.contains("40.0 ms; it holds"), "{said}");
        rows.push(row("a reader", 11.0));
        assert!(claims(&rows).contains("9 of 11 are; it does not hold"));
    }
}
