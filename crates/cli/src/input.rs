//! Parquet files: opened, their footers read, their rows read batch by batch.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use marquetry_base::cast::u64_of;
use marquetry_base::{Codecs, Error, Limits, Machine, Object};
use marquetry_codecs::StandardCodecs;
use marquetry_io::{ByteSource, ByteSources, blocking, drive};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{Conform, ConformReader, FooterReader, ReadOptions};

use crate::failure::{Failure, Outcome, plain};

/// The only object of each machine here.
const FILE: Object = Object(0);

/// What may be large in a file.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct LimitArgs {
    /// Read pages, values, dictionaries and footers of any size, for whoever made the files is trusted
    ///
    /// Without it, each may have 256 MiB at most, so that a broken or hostile file cannot take all of the memory.
    #[arg(long, help_heading = "Files")]
    pub(crate) trust: bool,
}

impl LimitArgs {
    pub(crate) fn limits(self) -> Limits {
        if self.trust { Limits::TRUSTED } else { Limits::DEFAULT }
    }
}

/// A Parquet file whose footer was read.
///
/// It is not kept open: thousands of them may be named on one command line.
#[derive(Debug, Clone)]
pub(crate) struct ParquetFile {
    /// What the user called it; what is not UTF-8 in its path is replaced.
    pub(crate) name: String,
    path: PathBuf,
    /// Its length.
    pub(crate) bytes: u64,
    /// Its footer.
    pub(crate) metadata: Arc<FileMetaData>,
    /// What may be large in it.
    pub(crate) limits: Limits,
}

impl ParquetFile {
    /// Opens a file and reads its footer.
    pub(crate) fn open(path: &Path, limits: Limits) -> Outcome<ParquetFile> {
        let name = &*path.to_string_lossy();
        check_path(name, path)?;
        let sources = open(path).map_err(|error| failure(name, &error, limits))?;
        let read = || {
            let bytes = sources.get(FILE)?.length()?;
            let metadata = drive(&mut FooterReader::new(FILE, limits), &sources)?;
            Ok((bytes, metadata.ok_or_else(|| Error::internal("a footer's reader ended without a footer"))?))
        };
        let (bytes, metadata) = read().map_err(|error| failure(name, &error, limits))?;
        Ok(ParquetFile { name: name.to_string(), path: path.to_path_buf(), bytes, metadata, limits })
    }

    /// A file whose footer was read before.
    pub(crate) fn known(
        name: &str,
        path: &Path,
        bytes: u64,
        metadata: Arc<FileMetaData>,
        limits: Limits,
    ) -> ParquetFile {
        ParquetFile { name: name.to_string(), path: path.to_path_buf(), bytes, metadata, limits }
    }

    /// Opens it again, for its pages.
    fn sources(&self) -> Outcome<ByteSources<blocking::File>> {
        let open = || {
            let sources = open(&self.path)?;
            let bytes = sources.get(FILE)?.length()?;
            Ok((sources, bytes))
        };
        let (sources, bytes) = open().map_err(|error| self.failure(&error))?;
        if bytes != self.bytes {
            let (name, before) = (&self.name, self.bytes);
            return Err(Failure::unreachable(format!(
                "{name}: the file was changed while it was read: it had {before} bytes, and now has {bytes}"
            )));
        }
        Ok(sources)
    }

    /// Works a machine that reads this file to its end.
    pub(crate) fn run<M: Machine>(
        &self,
        mut machine: M,
        mut each: impl FnMut(M::Product) -> Outcome,
    ) -> Outcome {
        let sources = self.sources()?;
        while let Some(product) = drive(&mut machine, &sources).map_err(|error| self.failure(&error))? {
            each(product)?;
        }
        Ok(())
    }

    /// Works a machine that reads this file up to the first product that is wanted. `None` if there is none.
    pub(crate) fn find<M: Machine>(
        &self,
        mut machine: M,
        is_wanted: impl Fn(&M::Product) -> bool,
    ) -> Outcome<Option<M::Product>> {
        let sources = self.sources()?;
        while let Some(product) = drive(&mut machine, &sources).map_err(|error| self.failure(&error))? {
            if is_wanted(&product) {
                return Ok(Some(product));
            }
        }
        Ok(None)
    }

    /// The rows that a reader of this file has, up to `limit` of them.
    pub(crate) fn rows(&self, reader: ConformReader, limit: Option<u64>) -> Outcome<Rows> {
        Ok(Rows { reader, sources: self.sources()?, left: limit.unwrap_or(u64::MAX) })
    }

    /// A reader of this file's rows as those of another schema, for up to `limit` of them; dictionaries are kept as such on request.
    pub(crate) fn reader(
        &self,
        conform: Arc<Conform>,
        constants: Vec<Option<Values>>,
        limit: Option<u64>,
        keep_dictionaries: bool,
    ) -> Outcome<ConformReader> {
        let mut options = ReadOptions { keep_dictionaries, limits: self.limits, ..ReadOptions::default() };
        if let Some(limit) = limit {
            // Only the row groups that hold them, and no more of each page than needed.
            let groups = self.metadata.row_groups.partition_point(|group| group.first_row < limit);
            options.row_groups = Some(0..groups);
            options.batch_rows = options.batch_rows.min(usize::try_from(limit).unwrap_or(usize::MAX)).max(1);
            if limit < 100_000 {
                options.read_bytes = FEW_ROWS_READ_BYTES;
            }
        }
        let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::new(self.limits));
        ConformReader::new(FILE, Arc::clone(&self.metadata), codecs, options, conform, constants)
            .map_err(|error| self.failure(&error))
    }

    /// An engine's error as this file's.
    pub(crate) fn failure(&self, error: &Error) -> Failure {
        failure(&self.name, error, self.limits)
    }

    /// A scanner's object.
    pub(crate) const fn object() -> Object {
        FILE
    }
}

/// Bytes to read of a column chunk at a time when few rows are wanted: a page's usual size.
const FEW_ROWS_READ_BYTES: u64 = 1 << 20;

/// Batches of a file's rows.
pub(crate) struct Rows {
    reader: ConformReader,
    sources: ByteSources<blocking::File>,
    left: u64,
}

impl Rows {
    /// The next batch, cut to what is left of the limit. `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(mut batch) = drive(&mut self.reader, &self.sources)? else { return Ok(None) };
        if u64_of(batch.rows) > self.left {
            let rows = usize::try_from(self.left).unwrap_or(usize::MAX);
            batch.columns = batch.columns.iter().map(|column| column.slice(0..rows)).collect();
            batch.rows = rows;
        }
        self.left -= u64_of(batch.rows);
        Ok(Some(batch))
    }
}

fn open(path: &Path) -> Result<ByteSources<blocking::File>, Error> {
    Ok(ByteSources::new().with(FILE, blocking::File::open(path)?))
}

/// An engine's error as a file's, which was read within limits.
pub(crate) fn failure(name: &str, error: &Error, limits: Limits) -> Failure {
    match Failure::about(name, error) {
        Failure::Said(exit, message)
            if error.kind() == marquetry_base::ErrorKind::LimitExceeded && limits != Limits::TRUSTED =>
        {
            Failure::Said(exit, format!("{message}; `marquetry` reads it with --trust"))
        }
        failure => failure,
    }
}

/// The mistakes that people make with paths, told in their words.
fn check_path(name: &str, path: &Path) -> Outcome {
    if name == "-" || name == "/dev/stdin" {
        return Err(Failure::usage(
            "a Parquet file is read from its end, so it cannot come from standard input: write it to a file first",
        ));
    }
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && has_scheme(name) => Err(Failure::usage(
            format!("{name}: addresses are not supported as input yet; supported are local Parquet files"),
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Failure::unreachable(format!("{name}: no such file")))
        }
        Err(error) => Err(Failure::unreachable(format!("{name}: {}", plain(&error.to_string())))),
        Ok(metadata) if metadata.is_dir() => {
            Err(Failure::unreachable(format!("{name}: a directory, where a file is needed")))
        }
        Ok(metadata) if metadata.is_file() && metadata.len() == 0 => {
            Err(Failure::refused(format!("{name}: an empty file, not a Parquet file")))
        }
        Ok(_) => Ok(()),
    }
}

/// Whether it looks like an address: `s3://…`, `cql://…`, `sstable:…`.
pub(crate) fn has_scheme(name: &str) -> bool {
    name.contains("://") || name.starts_with("sstable:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_changed_while_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/one.parquet"), &path).unwrap();
        let file = ParquetFile::open(&path, Limits::DEFAULT).unwrap();
        let schema = &file.metadata.schema;
        let conform = Arc::new(Conform::new(schema, schema, &[]).unwrap());
        let reader = || file.reader(Arc::clone(&conform), Vec::new(), None, false).unwrap();
        assert!(file.rows(reader(), None).is_ok());
        fs::write(&path, b"PAR1 is written anew").unwrap();
        let Err(Failure::Said(exit, message)) = file.rows(reader(), None) else { panic!("no error") };
        assert_eq!(exit, crate::failure::Exit::Unreachable);
        assert!(message.contains("changed while it was read") && message.contains("now has 20"), "{message}");
    }
}
