//! How files are read as one table.

use std::sync::Arc;

use marquetry_base::Limits;
use marquetry_io::files::PARQUET_EXTENSIONS;
use marquetry_io::store::{LocalFiles, Store};

use super::format::FileFormat;
use super::hive::Hive;
use crate::{Address, Cancel, ColumnPath, Rename};

/// How files are read as one table.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions, Hive};
/// use marquetry_tables::text::{TextFormat, TextOptions};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let mut options = FilesOptions::default();
/// options.union = true;
/// options.hive = Hive::Text;
/// options.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
/// let trips = Files::open(["2023.csv", "2024/"], &options)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct FilesOptions {
    /// Where the files are.
    pub store: Arc<dyn Store>,
    /// Take these columns, in this order. `None`: all.
    pub columns: Option<Vec<ColumnPath>>,
    /// Columns that will be asked for, and no others: the chosen ones, and those that rows are [filtered](crate::filter())
    /// by. Of Parquet files of very many columns no more is opened, which takes a part of the time; what they are called as one
    /// table are only these columns, as they follow each other there. If one of them is missing, or anything else is wrong,
    /// everything is opened, so errors are the same. If `None`, they are the chosen [`columns`](FilesOptions::columns).
    pub needed: Option<Vec<ColumnPath>>,
    /// Columns missing from a file are null, and narrower types are widened. Otherwise files that differ are an
    /// error.
    pub union: bool,
    /// What directories such as `year=2024` mean.
    pub hive: Hive,
    /// The extensions, without the dot, of the files to find in directories. A directory without any of them is searched
    /// for files of the [`formats`](FilesOptions::formats).
    pub extensions: &'static [&'static str],
    /// Formats besides Parquet; files that none of them accepts are Parquet files.
    pub formats: Vec<Arc<dyn FileFormat>>,
    /// Where the rows will be written: what is there is no part of a directory or a pattern that is read, even if it is found
    /// there.
    pub destination: Option<Address>,
    /// The names that columns get on their way there, by one after the other: what a destination [wants](super::WantedColumns) of them, it wants
    /// by the last.
    pub renames: Vec<Rename>,
    /// Limits on sizes in the files.
    pub limits: Limits,
    /// Cancels what may take long, such as reading the footers of thousands of files.
    pub cancel: Cancel,
}

impl Default for FilesOptions {
    fn default() -> FilesOptions {
        FilesOptions {
            store: Arc::new(LocalFiles),
            columns: None,
            needed: None,
            union: false,
            hive: Hive::Auto,
            extensions: &PARQUET_EXTENSIONS,
            formats: Vec::new(),
            destination: None,
            renames: Vec::new(),
            limits: Limits::DEFAULT,
            cancel: Cancel::new(),
        }
    }
}
