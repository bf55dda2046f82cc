//! What a file is that was found: a Parquet file, or one of another format.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Detail, Error, ErrorKind, Limits, Result};
use marquetry_io::blocking::{File, FileStream};
use marquetry_io::files::PARQUET_EXTENSIONS;
use marquetry_io::store::{Found, ObjectStream, Spooled, Store};
use marquetry_io::{ByteSource, failed};
use marquetry_parquet::format::FooterColumns;

use super::format::FoundFile;
use super::options::FilesOptions;
use super::parquet::ParquetFile;
use crate::subject::{is_stdin, name_of, named};

/// Bytes of a file's start that are looked at: enough to tell text from what is not, compressed or not.
const START_BYTES: usize = 4 << 10;

/// A file, and what it is.
pub(super) enum Looked {
    /// A Parquet file.
    Parquet(LikelyParquet),
    /// A file of one of the formats, by its number.
    Other { format: usize, file: FoundFile },
}

/// A file at a path of a store that no other format takes. Unless it `is_likely`, it begins as no Parquet file does.
#[derive(Clone)]
pub(super) struct LikelyParquet {
    name: String,
    store: Arc<dyn Store>,
    path: PathBuf,
    is_likely: bool,
}

impl LikelyParquet {
    /// Opens it, for these columns if not for all.
    pub(super) fn open(self, columns: Option<&FooterColumns>, limits: Limits) -> Result<ParquetFile> {
        let LikelyParquet { name, store, path, is_likely } = self;
        ParquetFile::open_as(name, (&store, &path), columns, limits).map_err(|error| match error.kind() {
            ErrorKind::Corrupt if !is_likely => error.with(Detail::AdmittedBy(&["formats"])),
            _ => error,
        })
    }
}

/// What a file is.
///
/// What a name says is believed if it is a Parquet file's; otherwise the first bytes decide. What can be read only once (a pipe) is
/// opened here: a format reads it on, and a Parquet file is first written to a file without a name, because it is read
/// from its end.
pub(super) fn look(path: &Path, options: &FilesOptions) -> Result<Looked> {
    options.cancel.check()?;
    let name = name_of(path);
    if options.store.holds_parquet() {
        return parquet(name, FoundFile::named(path), options).map(Looked::Parquet);
    }
    let file = start_of(path, options).map_err(|error| named(error, &name))?;
    match options.formats.iter().position(|format| format.is_of(&file)) {
        Some(format) => Ok(Looked::Other { format, file }),
        None => parquet(name, file, options).map(Looked::Parquet),
    }
}

/// A file with its first bytes, unless its name tells enough.
fn start_of(path: &Path, options: &FilesOptions) -> Result<FoundFile> {
    let file = FoundFile::named(path);
    if is_stdin(path) {
        return match File::stdin() {
            Ok(stdin) => Ok(file.starting_with(start_of_source(&stdin)?)),
            Err(_) => {
                let cancel = options.cancel.clone();
                let reader = Box::new(FileStream::stdin(move || cancel.is_set())?);
                start_of_stream(file, ObjectStream { reader, version: None }, options)
            }
        };
    }
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_parquet = PARQUET_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(ending));
    // Where a format takes files whatever their names, only the first bytes tell.
    if is_parquet && !options.formats.iter().any(|format| format.is_of(&file)) {
        // A pipe may have such a name, too: the file's opening would say so.
        if !matches!(options.store.look(path), Ok(Found::Stream)) {
            return Ok(file);
        }
    }
    match options.store.look(path) {
        Ok(Found::Object { .. }) => {
            let (source, _) = options.store.open(path)?;
            Ok(file.starting_with(start_of_source(&source)?))
        }
        Ok(Found::Stream) => {
            let cancel = options.cancel.clone();
            let stream = options.store.stream(path, Box::new(move || cancel.is_set()))?;
            start_of_stream(file, stream, options)
        }
        // Opening it reports what is wrong.
        _ => Ok(file),
    }
}

fn start_of_source(source: &dyn ByteSource) -> Result<Vec<u8>> {
    Ok(source.read(0..source.length()?.min(u64_of(START_BYTES)))?.to_vec())
}

/// Reads the start of what can be read only once. It waits for as many bytes as there are, because fewer may not tell.
fn start_of_stream(
    file: FoundFile,
    ObjectStream { mut reader, version }: ObjectStream,
    options: &FilesOptions,
) -> Result<FoundFile> {
    let mut start = Vec::with_capacity(START_BYTES);
    let read = reader.by_ref().take(u64_of(START_BYTES)).read_to_end(&mut start);
    read.map_err(|error| not_read(file.path(), options, error))?;
    let reader = Box::new(Cursor::new(start.clone()).chain(reader));
    Ok(file.starting_with(start).read_from(ObjectStream { reader, version }))
}

fn not_read(path: &Path, options: &FilesOptions, error: io::Error) -> Error {
    options.cancel.check().err().unwrap_or_else(|| failed("read", &name_of(path), error))
}

/// What no format takes is a Parquet file, or an error.
fn parquet(name: String, mut file: FoundFile, options: &FilesOptions) -> Result<LikelyParquet> {
    let path = file.path().to_path_buf();
    let Some(stream) = file.take_stream() else {
        let is_likely = file.start().is_none() || file.is_parquet();
        return Ok(LikelyParquet { name, store: Arc::clone(&options.store), path, is_likely });
    };
    if !file.is_parquet() {
        let what = match file.start() {
            Some([]) => "it is empty, and no Parquet file",
            _ => "it does not begin as a Parquet file does, nor as text",
        };
        return Err(named(Error::corrupt(what).with(Detail::AdmittedBy(&["formats"])), &name));
    }
    let kept = Spooled::read(&name, stream.reader);
    let kept = kept.map_err(|error| options.cancel.check().err().unwrap_or(error))?;
    // By another path than standard input's, which is opened by its descriptor.
    Ok(LikelyParquet {
        name: name.clone(),
        store: Arc::new(kept),
        path: PathBuf::from(name),
        is_likely: true,
    })
}
