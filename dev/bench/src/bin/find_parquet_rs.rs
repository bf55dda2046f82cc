//! parquet-rs as a contestant of look-ups: `bench-find-parquet-rs FILE COLUMN WAY [KEYS [MODE]]`, as `bench-find-ours`.
//!
//! The loop that its documentation suggests: metadata with the page index, and Bloom filters, are kept; the pages that can have a key are found in
//! the page index by halves where it is sorted, and read by a `RowSelection`. `pages` is not for it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int32Type, Int64Type};
use bytes::{Buf, Bytes};
use marquetry_bench::find::{COLUMNS, Finder, Input, contest, string};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};
use parquet::basic::BoundaryOrder;
use parquet::bloom_filter::Sbbf;
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData};
use parquet::file::page_index::column_index::ColumnIndexMetaData;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::file::statistics::Statistics;

fn main() -> ExitCode {
    contest::<Loop>()
}

/// A key as each column has it.
enum Key {
    Int32(i32),
    Int64(i64),
    Float(f32),
    Double(f64),
    String(String),
}

/// The input, as its readers want it.
#[derive(Clone)]
struct Source(Input);

impl Length for Source {
    fn len(&self) -> u64 {
        self.0.length()
    }
}

impl ChunkReader for Source {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        // Headers of pages and filters; where the end is not known, a part that has them.
        let end = self.len().min(start + 4096);
        Ok(self.0.read(start..end)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        Ok(self.0.read(start..start + length as u64)?)
    }
}

struct Loop {
    file: Source,
    leaf: usize,
    metadata: ArrowReaderMetadata,
    mask: ProjectionMask,
    uses_index: bool,
    /// Of each row group, the filter.
    filters: Vec<Option<Sbbf>>,
}

impl Loop {
    fn new(file: Input, leaf: usize, way: &str) -> Result<Loop, ParquetError> {
        let file = Source(file);
        let uses_index = matches!(way, "index" | "both");
        let policy = if uses_index { PageIndexPolicy::Required } else { PageIndexPolicy::Skip };
        let metadata =
            ArrowReaderMetadata::load(&file, ArrowReaderOptions::new().with_page_index_policy(policy))?;
        let mask = ProjectionMask::leaves(metadata.parquet_schema(), [leaf]);
        let mut filters = Vec::new();
        if matches!(way, "bloom" | "both") {
            let properties =
                parquet::file::properties::ReaderProperties::builder().set_read_bloom_filter(true).build();
            let options = parquet::file::serialized_reader::ReadOptionsBuilder::new()
                .with_reader_properties(properties)
                .build();
            let reader = SerializedFileReader::new_with_options(file.clone(), options)?;
            for group in 0..reader.num_row_groups() {
                filters.push(reader.get_row_group(group)?.get_column_bloom_filter(leaf).cloned());
            }
        }
        Ok(Loop { file, leaf, metadata, mask, uses_index, filters })
    }

    fn key(&self, number: u64) -> Key {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_possible_wrap,
            reason = "numbers are below 2^25"
        )]
        match COLUMNS[self.leaf] {
            "int32" => Key::Int32(number as i32),
            "int64" => Key::Int64(number as i64),
            "float" => Key::Float(number as f32),
            "double" => Key::Double(number as f64),
            _ => Key::String(string(number)),
        }
    }

    fn row_of(&self, number: u64) -> Result<Option<u64>, ParquetError> {
        let key = self.key(number);
        let metadata = self.metadata.metadata();
        let mut first_row = 0;
        for group in 0..metadata.num_row_groups() {
            let rows = u64::try_from(metadata.row_group(group).num_rows()).unwrap_or(0);
            let may_have = self.chunk_may_have(metadata, group, &key)
                && self.filters.get(group).and_then(Option::as_ref).is_none_or(|filter| match &key {
                    Key::Int32(key) => filter.check(key),
                    Key::Int64(key) => filter.check(key),
                    Key::Float(key) => filter.check(key),
                    Key::Double(key) => filter.check(key),
                    Key::String(key) => filter.check(key.as_str()),
                });
            if may_have && let Some(row) = self.find_in(group, rows, &key)? {
                return Ok(Some(first_row + row));
            }
            first_row += rows;
        }
        Ok(None)
    }

    /// All columns of a row: its pages are known.
    fn columns_of(&self, mut row: u64) -> Result<usize, ParquetError> {
        let groups = self.metadata.metadata().row_groups();
        let mut group = 0;
        while let Some(rows) = groups.get(group).and_then(|group| u64::try_from(group.num_rows()).ok())
            && row >= rows
        {
            (group, row) = (group + 1, row - rows);
        }
        let skipped = RowSelector::skip(usize::try_from(row).unwrap_or(usize::MAX));
        let mut reader =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
                .with_row_groups(vec![group])
                .with_row_selection(RowSelection::from(vec![skipped, RowSelector::select(1)]))
                .build()?;
        let batch = reader.next().transpose()?;
        Ok(batch.filter(|batch| batch.num_rows() == 1).map_or(0, |batch| batch.num_columns()))
    }

    fn chunk_may_have(&self, metadata: &ParquetMetaData, group: usize, key: &Key) -> bool {
        fn within<T: PartialOrd>(key: &T, least: Option<&T>, most: Option<&T>) -> bool {
            least.is_none_or(|least| least <= key) && most.is_none_or(|most| key <= most)
        }
        match (metadata.row_group(group).column(self.leaf).statistics(), key) {
            (Some(Statistics::Int32(found)), Key::Int32(key)) => {
                within(key, found.min_opt(), found.max_opt())
            }
            (Some(Statistics::Int64(found)), Key::Int64(key)) => {
                within(key, found.min_opt(), found.max_opt())
            }
            (Some(Statistics::Float(found)), Key::Float(key)) => {
                within(key, found.min_opt(), found.max_opt())
            }
            (Some(Statistics::Double(found)), Key::Double(key)) => {
                within(key, found.min_opt(), found.max_opt())
            }
            (Some(Statistics::ByteArray(found)), Key::String(key)) => {
                let (least, most) = (found.min_opt(), found.max_opt());
                least.is_none_or(|least| least.data() <= key.as_bytes())
                    && most.is_none_or(|most| key.as_bytes() <= most.data())
            }
            _ => true,
        }
    }

    fn find_in(&self, group: usize, rows: u64, key: &Key) -> Result<Option<u64>, ParquetError> {
        let mut builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(self.mask.clone())
                .with_batch_size(8192);
        let runs = if self.uses_index { self.pages(group, rows, key) } else { vec![[0, rows]] };
        if runs.is_empty() {
            return Ok(None);
        }
        if self.uses_index {
            let (mut selectors, mut end) = (Vec::new(), 0);
            for [from, to] in &runs {
                let size = |count: u64| usize::try_from(count).unwrap_or(0);
                if *from > end {
                    selectors.push(RowSelector::skip(size(from - end)));
                }
                selectors.push(RowSelector::select(size(to - from)));
                end = *to;
            }
            builder = builder.with_row_selection(RowSelection::from(selectors));
        }
        // Rows that are read, one after the other, and where they are.
        let mut read = 0;
        for batch in builder.build()? {
            let batch = batch?;
            let column = batch.column(0);
            let found = match key {
                Key::Int32(key) => {
                    column.as_primitive::<Int32Type>().values().iter().position(|value| value == key)
                }
                Key::Int64(key) => {
                    column.as_primitive::<Int64Type>().values().iter().position(|value| value == key)
                }
                #[allow(clippy::float_cmp, reason = "whole numbers")]
                Key::Float(key) => {
                    column.as_primitive::<Float32Type>().values().iter().position(|value| value == key)
                }
                #[allow(clippy::float_cmp, reason = "whole numbers")]
                Key::Double(key) => {
                    column.as_primitive::<Float64Type>().values().iter().position(|value| value == key)
                }
                Key::String(key) => {
                    let values = column.as_string::<i32>();
                    (0..values.len()).position(|row| values.value(row) == key)
                }
            };
            if let Some(found) = found {
                let mut at = read + found as u64;
                for [from, to] in &runs {
                    if at < to - from {
                        return Ok(Some(from + at));
                    }
                    at -= to - from;
                }
            }
            read += batch.num_rows() as u64;
        }
        Ok(None)
    }

    /// The rows of pages that can have a key.
    fn pages(&self, group: usize, rows: u64, key: &Key) -> Vec<[u64; 2]> {
        let Some(provider) = self.metadata.metadata().page_index() else { return vec![[0, rows]] };
        let (Some(index), Some(offsets)) =
            (provider.column_index(group, self.leaf), provider.offset_index(group, self.leaf))
        else {
            return vec![[0, rows]];
        };
        let locations = offsets.page_locations();
        let start = |page: usize| {
            locations.get(page).map_or(rows, |page| u64::try_from(page.first_row_index).unwrap_or(0))
        };
        let is_sorted = index.get_boundary_order() == Some(BoundaryOrder::ASCENDING);
        // By what says that a page's values are before the key, and after it.
        let runs = |is_before: &dyn Fn(usize) -> bool, is_after: &dyn Fn(usize) -> bool| {
            let pages = 0..locations.len();
            let (mut low, mut high) = (0, if is_sorted { pages.end } else { 0 });
            while low < high {
                let middle = usize::midpoint(low, high);
                if is_before(middle) { low = middle + 1 } else { high = middle }
            }
            (low..pages.end)
                .take_while(|page| !is_sorted || !is_after(*page))
                .filter(|page| !is_before(*page) && !is_after(*page))
                .map(|page| [start(page), start(page + 1)])
                .collect()
        };
        macro_rules! pages {
            ($index:expr, $key:expr) => {{
                let (least, most) = ($index.min_values(), $index.max_values());
                runs(&|page| most[page] < $key, &|page| least[page] > $key)
            }};
        }
        match (index, key) {
            (ColumnIndexMetaData::INT32(index), Key::Int32(key)) => pages!(index, *key),
            (ColumnIndexMetaData::INT64(index), Key::Int64(key)) => pages!(index, *key),
            (ColumnIndexMetaData::FLOAT(index), Key::Float(key)) => pages!(index, *key),
            (ColumnIndexMetaData::DOUBLE(index), Key::Double(key)) => pages!(index, *key),
            (ColumnIndexMetaData::BYTE_ARRAY(index), Key::String(key)) => {
                let key = key.as_bytes();
                runs(&|page| index.max_value(page).is_some_and(|most| most < key), &|page| {
                    index.min_value(page).is_some_and(|least| least > key)
                })
            }
            _ => vec![[0, rows]],
        }
    }
}

impl Finder for Loop {
    const NAME: (&'static str, &'static str) =
        ("bench-find-parquet-rs", parquet::file::properties::DEFAULT_CREATED_BY);

    fn open(file: Input, leaf: usize, way: &str, _: bool) -> Result<Loop, String> {
        Loop::new(file, leaf, way).map_err(|error| error.to_string())
    }

    fn find(&mut self, number: u64) -> Result<Option<u64>, String> {
        self.row_of(number).map_err(|error| error.to_string())
    }

    fn row(&mut self, row: u64) -> Result<usize, String> {
        self.columns_of(row).map_err(|error| error.to_string())
    }
}
