//! The benchmark of sizes: the same rows in SSTables that Cassandra wrote and in Parquet that is made of them. See `README.md` for what makes it
//! fair.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use marquetry_bench::chart::{self, Axis};
use marquetry_bench::program;
use marquetry_bench::report::{Better, Report, Row};
use serde_json::json;

const USAGE: &str = "usage: bench-disk --files DIR --out DIR --marquetry PROGRAM --cassandra CASSANDRA.SH --maker MAKETABLES.JAVA --python PYTHON
                  [--rows 1000000] [--flights FILE.parquet] [--gdelt FILE.parquet] [--only WORDS] [--drop yes]

--flights and --gdelt are Parquet files whose first rows are tables, too; --only keeps the cases whose name has all of the words; --drop yes
removes SSTables as soon as they are measured.";

/// Compressors by the names of both sides.
const PACKINGS: [Packing; 2] = [
    Packing { name: "deflate", class: "DeflateCompressor", codec: "gzip" },
    Packing { name: "zstd", class: "ZstdCompressor", codec: "zstd" },
];

#[derive(Clone, Copy)]
struct Packing {
    name: &'static str,
    class: &'static str,
    codec: &'static str,
}

/// A table: how `MakeTables.java` knows it.
struct Table {
    group: &'static str,
    case: String,
    made_by: String,
    /// Parquet by SSTable, as it was published for `verbatim`.
    published: Option<f64>,
    /// The rows that are fed to it as CSV.
    rows_of: Option<PathBuf>,
}

fn main() -> ExitCode {
    match Options::parse().and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-disk: {message}");
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
    python: PathBuf,
    flights: Option<PathBuf>,
    gdelt: Option<PathBuf>,
    rows: u64,
    only: Vec<String>,
    drops: bool,
}

impl Options {
    fn parse() -> Result<Options, String> {
        let mut options = Options { rows: 1_000_000, ..Options::default() };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            match name.as_str() {
                "--files" => options.files = value.into(),
                "--out" => options.out = value.into(),
                "--marquetry" => options.marquetry = value.into(),
                "--cassandra" => options.cassandra = value.into(),
                "--maker" => options.maker = value.into(),
                "--python" => options.python = value.into(),
                "--flights" => options.flights = Some(value.into()),
                "--gdelt" => options.gdelt = Some(value.into()),
                "--rows" => options.rows = value.parse().map_err(|_| format!("{value} is not a number"))?,
                "--only" => options.only = value.split_whitespace().map(str::to_owned).collect(),
                "--drop" => options.drops = value == "yes",
                _ => return Err(format!("{name} {value}?\n{USAGE}")),
            }
        }
        let Options { files, out, marquetry, cassandra, maker, python, .. } = &options;
        if [files, out, marquetry, cassandra, maker, python].iter().any(|path| path.as_os_str().is_empty()) {
            return Err(USAGE.to_owned());
        }
        Ok(options)
    }
}

fn tables(options: &Options) -> Vec<Table> {
    let table = |group, case: String, made_by: String, published| Table {
        group,
        case,
        made_by,
        published,
        rows_of: None,
    };
    let mut tables = Vec::new();
    for (range, name) in [("100", "0 to 99"), ("full", "32 bits")] {
        tables.push(table("int, int", format!("values {name}"), format!("pair:{range}"), None));
    }
    for length in [16, 100] {
        for distinct in [1, 10, 100, 1_000, 10_000] {
            let case = format!("{length} characters, {distinct} distinct");
            tables.push(table("int, text", case, format!("text:{length}:{distinct}"), None));
        }
    }
    for (range, name) in [("100", "0 to 99"), ("full", "32 bits")] {
        for (values, published) in [(0, 0.80), (20, 1.51), (40, 1.10), (60, 0.91), (80, 0.86)] {
            let case = format!("{values} of 99, {name}");
            let made_by = format!("wide:99:{values}:{range}");
            tables.push(table("int, 99 ints", case, made_by, Some(published)));
        }
    }
    let sparse = ("10 of 197 columns".to_owned(), "sparse:".to_owned(), Some(2.08));
    tables.push(table("sparse", sparse.0, sparse.1, sparse.2));
    tables.push(table("time series with a TTL", "1,000 sensors".to_owned(), "series:".to_owned(), None));
    for (name, path) in [("flights", &options.flights), ("57 columns", &options.gdelt)] {
        if let Some(path) = path {
            tables.push(Table {
                group: "tables that others made",
                case: name.to_owned(),
                made_by: String::new(),
                published: None,
                rows_of: Some(path.clone()),
            });
        }
    }
    tables
}

fn run(options: &Options) -> Result<(), String> {
    let mut rows = Vec::new();
    let mut details = String::new();
    for table in tables(options) {
        for packing in PACKINGS {
            let name = format!("{} {} {}", table.group, table.case, packing.name);
            if !options.only.iter().all(|word| name.split([' ', ',']).any(|other| other == word)) {
                continue;
            }
            let measured = Measured::new(options, &table, packing)?;
            let row = measured.row(&table, packing);
            row.tell();
            rows.push(row);
            measured.describe(&name, &mut details);
        }
    }
    if rows.is_empty() {
        return Err("no case has all of those words".to_owned());
    }
    rows.sort_by_key(|row| PACKINGS.iter().position(|packing| row.group.ends_with(packing.name)));
    let report = report(options, rows);
    std::fs::create_dir_all(&options.out).map_err(|error| format!("{}: {error}", options.out.display()))?;
    let details = format!(
        "## What metadata cost\n\nBytes in the `full` file, compressed, of the columns that are not the table's own; and of the footer, page headers and the \
         page index, which is what is left.\n\n| case | write times | other metadata | kinds | the rest of the file but values |\n|---|--:|--:|--:|--:|\n{details}"
    );
    report.write_with(&options.out, Some(&chart::draw(&report, &Axis::relative())), &details)
}

struct Measured {
    data: u64,
    components: u64,
    full: u64,
    verbatim: u64,
    /// Bytes of column chunks of `full`, by the first two parts of their paths.
    columns: BTreeMap<String, u64>,
}

impl Measured {
    fn new(options: &Options, table: &Table, packing: Packing) -> Result<Measured, String> {
        let name: String = format!("{}-{}-{}", table.group, table.case, packing.name)
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
            .collect();
        let dir = options.files.join(format!("sstables-{}", options.rows)).join(name);
        make(options, table, packing, &dir)?;
        let (mut data, mut components) = (0, 0);
        for entry in std::fs::read_dir(&dir).map_err(|error| format!("{}: {error}", dir.display()))? {
            let entry = entry.map_err(|error| error.to_string())?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let bytes = entry.metadata().map_err(|error| error.to_string())?.len();
            if name.ends_with("-Data.db") {
                data += bytes;
            }
            if name.ends_with(".db") || name.ends_with(".crc32") || name.ends_with(".txt") {
                components += bytes;
            }
        }
        let (full, columns) = copied(options, packing, &dir, "full")?;
        let (verbatim, _) = copied(options, packing, &dir, "verbatim")?;
        if options.drops {
            std::fs::remove_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        }
        Ok(Measured { data, components, full, verbatim, columns })
    }

    fn row(&self, table: &Table, packing: Packing) -> Row {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let ratio = |bytes: u64| bytes as f64 / self.data as f64;
        // The published ratio counts where `verbatim` is what was published.
        let published = table.published.filter(|published| {
            packing.name == "deflate" && (ratio(self.verbatim) / published - 1.0).abs() <= 0.1
        });
        let bars =
            [Some(mb(self.verbatim)), Some(mb(self.data)), published.map(|ratio| ratio * mb(self.data))];
        let best = self.data.min(self.verbatim) as f64;
        let exact = self.full as f64 / best;
        Row {
            group: format!("{}, {}", table.group, packing.name),
            case: table.case.clone(),
            unit: "MB",
            better: Better::Lower,
            ours: Some(mb(self.full)),
            peers: vec![
                ("Data.db".to_owned(), mb(self.data)),
                ("all components".to_owned(), mb(self.components)),
                ("verbatim".to_owned(), mb(self.verbatim)),
            ],
            bar: bars.into_iter().flatten().fold(f64::INFINITY, f64::min),
            ratio: Some((exact, [exact, exact])),
            more: json!({
                "full_by_sstable": ratio(self.full),
                "verbatim_by_sstable": ratio(self.verbatim),
                "published": table.published,
                "columns": self.columns,
            }),
        }
    }

    fn describe(&self, name: &str, text: &mut String) {
        let sum = |is_wanted: &dyn Fn(&str) -> bool| -> u64 {
            self.columns.iter().filter(|(path, _)| is_wanted(path)).map(|(_, bytes)| bytes).sum()
        };
        let is_metadata = |path: &str| path.starts_with("mutation.");
        let times = sum(&|path| path == "mutation.write_time");
        let kinds = sum(&|path| path == "mutation.kind");
        let others = sum(&is_metadata) - times - kinds;
        let rest = self.full - sum(&|_| true);
        let _ = writeln!(text, "| {name} | {times} | {others} | {kinds} | {rest} |");
    }
}

/// Makes the SSTable, unless it is there.
fn make(options: &Options, table: &Table, packing: Packing, dir: &Path) -> Result<(), String> {
    if dir.join("schema.cql").exists() {
        return Ok(());
    }
    let _ = std::fs::remove_dir_all(dir);
    let mut command = Command::new(&options.cassandra);
    command.arg("run").arg(&options.maker).arg(dir);
    let Some(source) = &table.rows_of else {
        command.arg(&table.made_by).arg(options.rows.to_string()).arg(packing.class).stdin(Stdio::null());
        return program::output(&mut command).map(drop);
    };
    let columns = python(options, "columns", source)?;
    command.arg(format!("csv:number:{}", columns.trim())).arg("0").arg(packing.class);
    let mut csv = Command::new(&options.marquetry);
    csv.arg("copy").arg(source).args(["-", "--to", "csv", "--no-header", "--limit"]);
    csv.arg(options.rows.to_string()).stdout(Stdio::piped());
    let mut csv = csv.spawn().map_err(|error| format!("{}: {error}", options.marquetry.display()))?;
    let rows = csv.stdout.take().ok_or("no standard output")?;
    program::output(command.stdin(Stdio::from(rows)))?;
    let status = csv.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(format!("rows of {}: {status}", source.display())) }
}

/// Copies an SSTable to Parquet: the file's bytes, and those of its columns.
fn copied(
    options: &Options,
    packing: Packing,
    dir: &Path,
    mapping: &str,
) -> Result<(u64, BTreeMap<String, u64>), String> {
    let out = options.files.join(format!("disk-{mapping}.parquet"));
    let mut command = Command::new(&options.marquetry);
    command.arg("copy").arg(format!("sstable:{}", dir.display())).arg(&out);
    command.args(["--mapping", mapping, "--codec", packing.codec]).stdin(Stdio::null());
    program::output(&mut command)?;
    let bytes = std::fs::metadata(&out).map_err(|error| format!("{}: {error}", out.display()))?.len();
    let columns =
        serde_json::from_str(&python(options, "sizes", &out)?).map_err(|error| error.to_string())?;
    std::fs::remove_file(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    Ok((bytes, columns))
}

/// What pyarrow says of a Parquet file: the CQL types of its columns, or the bytes of its column chunks.
fn python(options: &Options, what: &str, file: &Path) -> Result<String, String> {
    const PROGRAM: &str = r#"
import collections, json, sys
import pyarrow.parquet as pq
file = pq.ParquetFile(sys.argv[2])
if sys.argv[1] == "columns":
    types = {"int8": "int", "int16": "int", "int32": "int", "int64": "bigint", "float": "double", "double": "double", "bool": "boolean"}
    print(",".join(f"{field.name}={types.get(str(field.type), 'text')}" for field in file.schema_arrow))
else:
    sizes = collections.Counter()
    for group in range(file.num_row_groups):
        for column in range(file.metadata.num_columns):
            chunk = file.metadata.row_group(group).column(column)
            sizes[".".join(chunk.path_in_schema.split(".")[:2])] += chunk.total_compressed_size
    print(json.dumps(sizes))
"#;
    let mut command = Command::new(&options.python);
    command.args(["-c", PROGRAM, what]).arg(file).stdin(Stdio::null());
    program::output(&mut command)
}

fn report(options: &Options, rows: Vec<Row>) -> Report {
    Report {
        name: "disk".to_owned(),
        title: "The same rows in SSTables and in Parquet".to_owned(),
        notes: vec![
            format!(
                "{} rows each. SSTables (format `oa`) are written by Cassandra 5.0.9 itself (`CQLSSTableWriter`, its default chunks of 16 KiB) with Deflate or Zstd; \
                 Parquet by `marquetry copy sstable:DIR FILE`, with GZIP or ZSTD at their default levels. Every row has a write time of its own: 20,000 rows a second, in the order of keys.",
                options.rows
            ),
            "`full` is the default mapping, which keeps every write time, TTL and tombstone (docs/full-mapping.md); `verbatim` is the published one, which has a cell's times beside each \
             value. Both are written with the encodings that our writer chooses. Our value is that of `full`; the bar is the least of `verbatim`, Data.db, and the published ratio of \
             Parquet to SSTable where `verbatim` comes within a tenth of it."
                .to_owned(),
            "“Distinct” is the number of different texts. “20 of 99” are rows that have 20 of 99 columns, chosen at random.".to_owned(),
        ],
        setting: json!({ "rows": options.rows, "cassandra": "5.0.9", "packings": PACKINGS.map(|packing| packing.name) }),
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_the_least_of_what_it_is_compared_with() {
        let table = Table {
            group: "g",
            case: "c".to_owned(),
            made_by: String::new(),
            published: Some(0.8),
            rows_of: None,
        };
        let sizes = |verbatim| Measured {
            data: 10_000_000,
            components: 12_000_000,
            full: 6_000_000,
            verbatim,
            columns: BTreeMap::from([("mutation.write_time".to_owned(), 3), ("a".to_owned(), 5)]),
        };
        let bar = |verbatim, packing: usize| sizes(verbatim).row(&table, PACKINGS[packing]).bar;
        assert_eq!(bar(8_500_000, 0), 8.0);
        assert_eq!(bar(8_500_000, 1), 8.5);
        assert_eq!(bar(9_500_000, 0), 9.5);
        assert_eq!(bar(19_500_000, 0), 10.0);
        let mut text = String::new();
        sizes(1).describe("n", &mut text);
        assert_eq!(text, "| n | 3 | 0 | 0 | 5999992 |\n");
    }
}
