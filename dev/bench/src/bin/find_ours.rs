//! Marquetry's finder as a contestant: `bench-find-ours FILE COLUMN WAY [KEYS]` looks the file's keys up in a column, and prints the times.
//!
//! `WAY` names what is used beside the statistics of chunks: `none`, `index`, `bloom`, `both`, `pages` (index and Bloom filters of pages)
//! or `all`.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Error, Limits, Machine, Object, Priority, Result, Step, Want};
use marquetry_bench::find::{COLUMNS, Finder, contest, string};
use marquetry_codecs::StandardCodecs;
use marquetry_io::memory::Memory;
use marquetry_io::{ByteSources, drive};
use marquetry_parquet::find::{FindOptions, RowFinder, Structures};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::{Predicate, Ranges, Test, double_key};
use marquetry_parquet::read::{FooterReader, ReadOptions};

const FILE: Object = Object(0);

fn main() -> ExitCode {
    contest::<Ours>()
}

struct Ours {
    file: Bytes,
    metadata: Arc<FileMetaData>,
    leaf: usize,
    finder: RowFinder,
    bytes: u64,
}

impl Ours {
    fn new(file: Bytes, leaf: usize, way: &str) -> Result<Ours> {
        let sources = ByteSources::new().with(FILE, Memory::new("file", file.clone()));
        let metadata = drive(&mut FooterReader::new(FILE, Limits::DEFAULT), &sources)?
            .ok_or_else(|| Error::internal("no metadata"))?;
        let mut structures = Structures::default();
        structures.index = matches!(way, "index" | "both" | "pages" | "all");
        structures.bloom = matches!(way, "bloom" | "both" | "all");
        structures.page_bloom = matches!(way, "pages" | "all");
        let mut options = FindOptions::default();
        options.structures = structures;
        // A key is in one row, so the first one ends the search: the other contestants' loop ends there, too.
        options.limit = 1;
        options.read = ReadOptions { verify_crc: false, ..ReadOptions::default() };
        let codecs = Arc::new(StandardCodecs::default());
        let nothing = Predicate::Or(Vec::new());
        let finder = RowFinder::new(FILE, Arc::clone(&metadata), codecs, nothing, options)?;
        Ok(Ours { file, metadata, leaf, finder, bytes: 0 })
    }

    fn row_of(&mut self, number: u64) -> Result<Option<u64>> {
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

impl Finder for Ours {
    const NAME: (&'static str, &'static str) = ("bench-find-ours", env!("CARGO_PKG_VERSION"));

    fn open(file: Bytes, leaf: usize, way: &str) -> std::result::Result<Ours, String> {
        Ours::new(file, leaf, way).map_err(|error| error.to_string())
    }

    fn find(&mut self, number: u64) -> std::result::Result<Option<u64>, String> {
        self.row_of(number).map_err(|error| error.to_string())
    }

    fn bytes(&self) -> Option<u64> {
        Some(self.bytes)
    }
}
