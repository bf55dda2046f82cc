//! Parquet files as destinations: one file, a directory of them, or any writer.

mod crew;
mod directory;
mod dispatch;
mod file;
mod folder;
mod gathered;
mod lookup;
mod open_file;
mod output;
mod partition;
mod sizing;

use std::sync::Arc;

use marquetry_base::{Detail, Error, Faults, Limits, Result};
use marquetry_codecs::levels;
use marquetry_parquet::format::{Compression, Encoding, KeyValue};
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{BloomOptions, ColumnOptions, PageBloomOptions, WriteOptions};

use crate::key_values::holds_for_any_columns;
use crate::{ColumnPath, Table};

pub use directory::{DirectoryOptions, NewParquetDirectory};
pub use file::NewParquetFile;
pub(crate) use gathered::{Gathered, Plain};
pub use output::ParquetOutput;

/// How Parquet files are written.
///
/// ```
/// use marquetry_base::Codec;
/// use marquetry_parquet::format::{Compression, Encoding};
/// use marquetry_tables::ColumnPath;
/// use marquetry_tables::parquet::ParquetOptions;
///
/// # fn main() -> marquetry_base::Result<()> {
/// let mut options = ParquetOptions::default();
/// options.write.column.compression = Compression::Codec(Codec::Zstd);
/// options.encodings = vec![(ColumnPath::parse("id")?, Encoding::DeltaBinaryPacked)];
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ParquetOptions {
    /// How all columns are written that are not named below, and how large row groups and pages are.
    /// [`WriteOptions::columns`] go by the number of a leaf, so they are right only where the schema is known. What the table says
    /// of itself and of its order is added to [`WriteOptions::key_values`] and [`WriteOptions::sorting_columns`]. An order is stated
    /// up to its first column that is nested or whose type has no order, and of the row groups that have it: rows are
    /// compared as they are written, and from the first misplaced one on nothing is stated.
    pub write: WriteOptions,
    /// Columns, or all leaves below them, and the encoding of their values, instead of the one that suits the values.
    pub encodings: Vec<(ColumnPath, Encoding)>,
    /// Columns, or all leaves below them, that get Bloom filters.
    pub bloom: Vec<(ColumnPath, BloomOptions)>,
    /// Columns, or all leaves below them, whose pages get Bloom filters.
    pub page_bloom: Vec<(ColumnPath, PageBloomOptions)>,
    /// Replace, and so delete, what is there.
    pub overwrite: bool,
}

impl ParquetOptions {
    /// Checks what can be known without a table.
    pub(crate) fn check(&self) -> Result<()> {
        let mut faults = Faults::default();
        for column in [&self.write.column].into_iter().chain(self.write.columns.values()) {
            faults.take(check_level(column.compression, column.level));
        }
        let is_share = |fpp: f64| fpp > 0.0 && fpp < 1.0;
        let chunks = self.bloom.iter().map(|(_, bloom)| ("bloom_fpp", bloom.fpp));
        let pages = self.page_bloom.iter().map(|(_, bloom)| ("page_bloom_fpp", bloom.fpp));
        let mut rates: Vec<(&str, f64)> = chunks.chain(pages).collect();
        // Often one rate is that of many columns.
        rates.dedup_by_key(|(option, rate)| (*option, rate.to_bits()));
        for (option, rate) in rates.into_iter().filter(|(_, rate)| !is_share(*rate)) {
            faults.add(Error::option(option, format!("{rate}: a rate is more than 0 and less than 1")));
        }
        faults.into_result()
    }

    /// What a writer of these columns of a table is asked for. What is wrong with single columns is added to `faults`.
    fn of_table(&self, schema: &Arc<Schema>, table: &Table, faults: &mut Faults) -> WriteOptions {
        let mut options = self.write.clone();
        options.spill = Some(open_file::SPILL);
        for (path, encoding) in &self.encodings {
            let asked = ColumnOptions { encoding: Some(*encoding), ..ColumnOptions::default() };
            for leaf in leaves_of(path, (schema, table, &self.write.limits), &asked, "encoding", faults) {
                let column = options.columns.entry(leaf).or_insert_with(|| options.column.clone());
                column.encoding = asked.encoding;
            }
        }
        for (path, bloom) in &self.bloom {
            let asked = ColumnOptions { bloom: Some(*bloom), ..ColumnOptions::default() };
            for leaf in leaves_of(path, (schema, table, &self.write.limits), &asked, "bloom", faults) {
                let column = options.columns.entry(leaf).or_insert_with(|| options.column.clone());
                column.bloom = asked.bloom;
            }
        }
        for (path, bloom) in &self.page_bloom {
            let asked = ColumnOptions { page_bloom: Some(*bloom), ..ColumnOptions::default() };
            for leaf in leaves_of(path, (schema, table, &self.write.limits), &asked, "page_bloom", faults) {
                let column = options.columns.entry(leaf).or_insert_with(|| options.column.clone());
                column.page_bloom = asked.page_bloom;
            }
        }
        let has_all = **schema == *table.schema;
        let holds = |it: &&KeyValue| has_all || holds_for_any_columns(it);
        let given: Vec<String> = options.key_values.iter().map(|it| it.key.clone()).collect();
        let of_table = table.key_values.iter().filter(holds).filter(|it| !given.contains(&it.key));
        options.key_values.extend(of_table.cloned());
        options
    }
}

/// The leaves of a column that can be written as an option asks; the others are its faults, and about the table that
/// has the column.
fn leaves_of(
    path: &ColumnPath,
    (schema, table, limits): (&Arc<Schema>, &Table, &Limits),
    asked: &ColumnOptions,
    option: &'static str,
    faults: &mut Faults,
) -> Vec<usize> {
    let mut leaves = path.leaves_or(schema, option, faults).unwrap_or_default();
    leaves.retain(|leaf| {
        let checked = asked.check_leaf(schema, *leaf, limits);
        let checked = checked.map_err(|error| {
            error.with(Detail::Option(option)).at(|place| place.object = Some(table.name.clone()))
        });
        faults.take(checked).is_some()
    });
    leaves
}

/// Whether the codec has the level.
fn check_level(compression: Compression, level: Option<i32>) -> Result<()> {
    let Some(level) = level else { return Ok(()) };
    let levels = match compression {
        Compression::Codec(codec) => levels(codec),
        _ => None,
    };
    match levels {
        Some(levels) if (levels.least..=levels.most).contains(&level) => Ok(()),
        Some(levels) => {
            let message =
                format!("{compression} has the levels {} to {}, and not {level}", levels.least, levels.most);
            Err(Error::option("level", message))
        }
        None => {
            let message = format!("{compression} has no levels; GZIP, ZSTD and BROTLI have");
            Err(Error::option("level", message))
        }
    }
}
