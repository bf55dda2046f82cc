//! One file, whatever it is.

use std::fmt;
use std::path::Path;

use marquetry_base::{Error, Result};

use super::format::FormatFile;
use super::look::{Looked, look};
use super::options::FilesOptions;
use super::parquet::ParquetFile;

/// A file, opened as what it is: by its name if that is a Parquet file's, otherwise by its first bytes or by what was said
/// of it ([`FilesOptions::formats`]).
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{AnyFile, FilesOptions};
/// use marquetry_tables::text::{TextFormat, TextOptions};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let mut options = FilesOptions::default();
/// options.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
/// match AnyFile::open("events.json".as_ref(), &options)? {
///     AnyFile::Parquet(file) => println!("{} row groups", file.metadata().row_groups.len()),
///     AnyFile::Other(file) => println!("{} of {} columns", file.format(), file.schema().leaves().len()),
///     _ => {}
/// }
/// # Ok(())
/// # }
/// ```
#[non_exhaustive]
pub enum AnyFile {
    /// A Parquet file.
    Parquet(ParquetFile),
    /// One of another format.
    Other(Box<dyn FormatFile>),
}

impl AnyFile {
    /// Opens a file of the options' store. A Parquet file that comes through a pipe is kept in a file without a name.
    ///
    /// # Errors
    ///
    /// As [`Files::open`](super::Files::open) of this file alone.
    pub fn open(path: &Path, options: &FilesOptions) -> Result<AnyFile> {
        let store = options.cancel.of_store(&options.store);
        let options = &FilesOptions { store, ..options.clone() };
        match look(path, options)? {
            Looked::Parquet(file) => file.open(None, options.limits).map(AnyFile::Parquet),
            Looked::Other { format, file } => {
                let format = options.formats.get(format);
                let opened = format.map(|format| format.open(&options.store, vec![file])).transpose()?;
                let only = opened.into_iter().flatten().next();
                only.map(AnyFile::Other).ok_or_else(|| Error::internal("a file that was not opened"))
            }
        }
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        match self {
            AnyFile::Parquet(file) => file.name(),
            AnyFile::Other(file) => file.name(),
        }
    }

    /// What its format is called.
    pub fn format(&self) -> &str {
        match self {
            AnyFile::Parquet(_) => PARQUET,
            AnyFile::Other(file) => file.format(),
        }
    }
}

/// What people call the format of Parquet files.
pub(super) const PARQUET: &str = "Parquet";

impl fmt::Debug for AnyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyFile").field("name", &self.name()).field("format", &self.format()).finish()
    }
}
