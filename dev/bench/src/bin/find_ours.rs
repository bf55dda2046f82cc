//! Marquetry's finder as a contestant: `bench-find-ours FILE COLUMN WAY [KEYS]` looks the file's keys up in a column, and prints the times.
//!
//! `WAY` names what is used beside the statistics of chunks: `none`, `index`, `bloom`, `both`, `pages` (index and Bloom filters of pages)
//! or `all`.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Error, Limits, Machine, Object, Priority, Result, Step, Want};
use marquetry_bench::find::{COLUMNS, Times, read_keys, string};
use marquetry_codecs::StandardCodecs;
use marquetry_io::memory::Memory;
use marquetry_io::{ByteSources, drive};
use marquetry_parquet::find::{FindOptions, RowFinder, Structures};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::{Predicate, Ranges, Test, double_key};
use marquetry_parquet::read::{FooterReader, ReadOptions};
use serde_json::json;

const FILE: Object = Object(0);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (path, column, way, count) = match arguments[..] {
        [path, column, way] => (path, column, way, usize::MAX),
        [path, column, way, count] => (path, column, way, count.parse().unwrap_or(usize::MAX)),
        _ => {
            eprintln!("usage: bench-find-ours FILE COLUMN none|index|bloom|both|pages|all [KEYS]");
            return ExitCode::FAILURE;
        }
    };
    match run(Path::new(path), column, way, count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-find-ours: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: &Path, column: &str, way: &str, count: usize) -> std::result::Result<(), String> {
    let keys = read_keys(&path.with_extension("keys.json"))?;
    let keys = &keys[..keys.len().min(count)];
    let leaf = COLUMNS.iter().position(|name| *name == column).ok_or("no such column")?;
    let file = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let start = Instant::now();
    let mut finder = Finder::new(file.into(), leaf, way).map_err(|error| error.to_string())?;
    let opened = start.elapsed();
    // What is warm is what a look-up of each key has read.
    for warm in [true, false] {
        let times = Times::of(keys, |number| finder.find(number).map_err(|error| error.to_string()))?;
        if !warm {
            let bytes = finder.bytes as f64 / keys.len() as f64 / 2.0;
            println!(
                "{}",
                json!({
                    "version": env!("CARGO_PKG_VERSION"),
                    "open": opened.as_secs_f64() * 1e6,
                    "bytes": bytes,
                    "times": times.json(),
                })
            );
        }
    }
    Ok(())
}

struct Finder {
    file: Bytes,
    metadata: Arc<FileMetaData>,
    leaf: usize,
    finder: RowFinder,
    bytes: u64,
}

impl Finder {
    fn new(file: Bytes, leaf: usize, way: &str) -> Result<Finder> {
        let sources = ByteSources::new().with(FILE, Memory::new("file", file.clone()));
        let metadata = drive(&mut FooterReader::new(FILE, Limits::DEFAULT), &sources)?
            .ok_or_else(|| Error::internal("no metadata"))?;
        let mut structures = Structures::default();
        structures.index = matches!(way, "index" | "both" | "pages" | "all");
        structures.bloom = matches!(way, "bloom" | "both" | "all");
        structures.page_bloom = matches!(way, "pages" | "all");
        let mut options = FindOptions::default();
        options.structures = structures;
        options.read = ReadOptions { verify_crc: false, ..ReadOptions::default() };
        let codecs = Arc::new(StandardCodecs::default());
        let nothing = Predicate::Or(Vec::new());
        let finder = RowFinder::new(FILE, Arc::clone(&metadata), codecs, nothing, options)?;
        Ok(Finder { file, metadata, leaf, finder, bytes: 0 })
    }

    fn find(&mut self, number: u64) -> Result<Option<u64>> {
        let key = i128::from(number);
        let ranges = match COLUMNS[self.leaf] {
            "int32" | "int64" => Ranges::of_keys(key, key),
            "float" | "double" => {
                #[allow(clippy::cast_precision_loss, reason = "numbers are below 2^25")]
                let key = double_key(number as f64);
                Ranges::of_keys(key, key)
            }
            _ => Ranges::of_bytes(string(number).into()),
        };
        self.finder.start(Predicate::Test(Test::accepting(self.leaf, ranges)))?;
        let mut row = None;
        loop {
            match self.finder.step(&mut Budget::default())? {
                Step::Ready(found) => {
                    let first = self.metadata.row_groups[found.row_group].first_row;
                    row = found.rows.next_run(0).map(|run| first + run.start);
                }
                Step::Need(demand) => {
                    for want in demand.wants {
                        if let Want::Range(object, range, Priority::Now) = want {
                            let bytes = usize_of(range.start).zip(usize_of(range.end));
                            let (start, end) =
                                bytes.ok_or_else(|| Error::internal("a file beyond memory"))?;
                            self.finder.supply(object, range, self.file.slice(start..end))?;
                        }
                    }
                }
                Step::Yield | Step::Append(..) => {}
                Step::Done => {
                    self.bytes += self.finder.report().bytes;
                    return Ok(row);
                }
            }
        }
    }
}
