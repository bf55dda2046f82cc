//! Parquet files as destinations: one file, a directory of them, or any writer.

mod directory;
mod file;
mod open_file;
mod output;
mod partition;

use std::sync::Arc;

use marquetry_base::{Error, Limits, Result};
use marquetry_codecs::levels;
use marquetry_parquet::format::{Compression, Encoding, KeyValue};
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{BloomOptions, WriteOptions};

use crate::key_values::holds_for_any_columns;
use crate::{ColumnPath, Table};

pub use directory::{DirectoryOptions, NewParquetDirectory};
pub use file::NewParquetFile;
pub use output::ParquetOutput;

/// How Parquet files are written.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ParquetOptions {
    /// How all columns are written that are not named below, and how large row groups and pages are.
    /// [`WriteOptions::columns`] go by the number of a leaf, so they are right only where the schema is known. What the table says
    /// of itself and of its order is added to [`WriteOptions::key_values`] and [`WriteOptions::sorting_columns`].
    pub write: WriteOptions,
    /// Columns, or all leaves below them, and the encoding of their values, instead of the one that suits the values.
    pub encodings: Vec<(ColumnPath, Encoding)>,
    /// Columns, or all leaves below them, that get Bloom filters.
    pub bloom: Vec<(ColumnPath, BloomOptions)>,
    /// Replace, and so delete, what is there.
    pub overwrite: bool,
}

/// What may be large where a file is read again that was just written.
const WRITTEN_LIMITS: Limits = Limits::TRUSTED;

impl ParquetOptions {
    /// Checks what can be known without a table.
    fn check(&self) -> Result<()> {
        for column in [&self.write.column].into_iter().chain(self.write.columns.values()) {
            check_level(column.compression, column.level)?;
        }
        let is_share = |fpp: f64| fpp > 0.0 && fpp < 1.0;
        match self.bloom.iter().find(|(_, bloom)| !is_share(bloom.fpp)) {
            Some((_, bloom)) => {
                let message = format!("{}: a rate is more than 0 and less than 1", bloom.fpp);
                Err(Error::option("bloom_fpp", message))
            }
            None => Ok(()),
        }
    }

    /// What a writer of these columns of a table is asked for.
    fn of_table(&self, schema: &Arc<Schema>, table: &Table) -> Result<WriteOptions> {
        let mut options = self.write.clone();
        options.spill = Some(open_file::SPILL);
        for (path, encoding) in &self.encodings {
            for leaf in path.leaves(schema).map_err(|error| option("encoding", error))? {
                let column = options.columns.entry(leaf).or_insert_with(|| options.column.clone());
                column.encoding = Some(*encoding);
            }
        }
        for (path, bloom) in &self.bloom {
            for leaf in path.leaves(schema).map_err(|error| option("bloom", error))? {
                let column = options.columns.entry(leaf).or_insert_with(|| options.column.clone());
                column.bloom = Some(*bloom);
            }
        }
        let has_all = **schema == *table.schema;
        let holds = |it: &&KeyValue| has_all || holds_for_any_columns(it);
        let given: Vec<String> = options.key_values.iter().map(|it| it.key.clone()).collect();
        let of_table = table.key_values.iter().filter(holds).filter(|it| !given.contains(&it.key));
        options.key_values.extend(of_table.cloned());
        Ok(options)
    }
}

/// The same error, as one of an option.
fn option(name: &'static str, error: Error) -> Error {
    error.with(marquetry_base::Detail::Option(name))
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
