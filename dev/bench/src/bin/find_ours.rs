//! Marquetry's finder as a contestant: `bench-find-ours FILE COLUMN WAY [KEYS [MODE]]` looks the file's keys up in a column, and prints the
//! times.
//!
//! `WAY` names what is used beside the statistics of chunks: `none`, `index`, `bloom`, `both`, `pages` (index and Bloom filters of pages)
//! or `all`.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;

use marquetry_base::{Codecs, Error, Limits, Object, Result};
use marquetry_bench::find::{COLUMNS, Finder, Input, contest, run, string};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::RowSelection;
use marquetry_parquet::find::{FindOptions, Found, RowFinder, Structures};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::{Predicate, Ranges, Test, double_key};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};

const FILE: Object = Object(0);

fn main() -> ExitCode {
    contest::<Ours>()
}

struct Ours {
    file: Input,
    metadata: Arc<FileMetaData>,
    codecs: Arc<dyn Codecs>,
    leaf: usize,
    finder: RowFinder,
    found: Option<Found>,
}

fn read_options() -> ReadOptions {
    ReadOptions { verify_crc: false, ..ReadOptions::default() }
}

impl Ours {
    fn new(file: Input, leaf: usize, way: &str, has_rows: bool) -> Result<Ours> {
        let metadata = run(&mut FooterReader::new(FILE, Limits::DEFAULT), &file)?;
        let metadata = metadata.ok_or_else(|| Error::internal("no metadata"))?;
        let mut structures = Structures::default();
        structures.index = matches!(way, "index" | "both" | "pages" | "all");
        structures.bloom = matches!(way, "bloom" | "both" | "all");
        structures.page_bloom = matches!(way, "pages" | "all");
        let mut options = FindOptions::default();
        options.structures = structures;
        // A key is in one row, so the first one ends the search: the other contestants' loop ends there, too.
        options.limit = 1;
        options.read = read_options();
        if has_rows {
            options.locate = (0..COLUMNS.len()).collect();
        }
        let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::default());
        let nothing = Predicate::Or(Vec::new());
        let finder = RowFinder::new(FILE, Arc::clone(&metadata), Arc::clone(&codecs), nothing, options)?;
        Ok(Ours { file, metadata, codecs, leaf, finder, found: None })
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
        self.found = run(&mut self.finder, &self.file)?;
        Ok(self.found.as_ref().and_then(|found| {
            let first = self.metadata.row_groups[found.row_group].first_row;
            found.rows.next_run(0).map(|run| first + run.start)
        }))
    }

    /// All columns of the row that was found.
    fn columns_of(&mut self, row: u64) -> Result<usize> {
        let Some(Found { row_group, pages, .. }) = self.found.take() else { return Ok(0) };
        let row = row - self.metadata.row_groups[row_group].first_row;
        let read = ReadOptions { row_groups: Some(row_group..row_group + 1), ..read_options() };
        let mut reader = BatchReader::new(FILE, Arc::clone(&self.metadata), Arc::clone(&self.codecs), read)?;
        reader.select(row_group, RowSelection::of(row..row + 1)?)?;
        for (leaf, pages) in pages {
            reader.locate(row_group, leaf, pages)?;
        }
        let batch = run(&mut reader, &self.file)?;
        Ok(batch.filter(|batch| batch.rows == 1).map_or(0, |batch| batch.columns.len()))
    }
}

impl Finder for Ours {
    const NAME: (&'static str, &'static str) = ("bench-find-ours", env!("CARGO_PKG_VERSION"));

    fn open(file: Input, leaf: usize, way: &str, has_rows: bool) -> std::result::Result<Ours, String> {
        Ours::new(file, leaf, way, has_rows).map_err(|error| error.to_string())
    }

    fn find(&mut self, number: u64) -> std::result::Result<Option<u64>, String> {
        self.row_of(number).map_err(|error| error.to_string())
    }

    fn row(&mut self, row: u64) -> std::result::Result<usize, String> {
        self.columns_of(row).map_err(|error| error.to_string())
    }
}
