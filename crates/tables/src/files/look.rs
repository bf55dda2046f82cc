//! What the files are that were found: Parquet files, or of another format.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Detail, Error, Result};
use marquetry_io::blocking::{File, FileStream};
use marquetry_io::files::PARQUET_EXTENSIONS;
use marquetry_io::store::{Found, ObjectStream, Spooled, Store};
use marquetry_io::{ByteSource, failed};

use super::format::FoundFile;
use super::options::FilesOptions;
use super::parquet::ParquetFile;
use crate::subject::{is_stdin, name_of, named};

/// Bytes of a file's start that are looked at: enough to tell text from what is not, compressed or not.
const START_BYTES: usize = 4 << 10;

/// A file, and what it is.
pub(super) enum Looked {
    /// A Parquet file, at a path of a store. Unless it `is_likely`, it begins as none.
    Parquet { name: String, store: Arc<dyn Store>, path: PathBuf, is_likely: bool },
    /// A file of one of the formats, by its number.
    Other { format: usize },
}

/// Says of each file what it is, and gives each format its files.
///
/// What a name says is believed if it is a Parquet file's; otherwise the first bytes decide. What can be read only once (a pipe) is
/// opened here: a format reads it on, and a Parquet file is first written to a file without a name, because it is read
/// from its end.
pub(super) fn look_at(
    found: &[PathBuf],
    options: &FilesOptions,
) -> Result<(Vec<Looked>, Vec<Vec<FoundFile>>)> {
    let mut looked = Vec::with_capacity(found.len());
    let mut of_formats: Vec<Vec<FoundFile>> = options.formats.iter().map(|_| Vec::new()).collect();
    for path in found {
        options.cancel.check()?;
        let name = name_of(path);
        let file = start_of(path, options).map_err(|error| named(error, &name))?;
        let format = options.formats.iter().position(|format| format.is_of(&file));
        looked.push(match format.and_then(|format| Some((format, of_formats.get_mut(format)?))) {
            Some((format, files)) => {
                files.push(file);
                Looked::Other { format }
            }
            None => parquet(name, file, options)?,
        });
    }
    Ok((looked, of_formats))
}

impl ParquetFile {
    /// Opens a Parquet file wherever it is read from, as [`Files::open`](super::Files::open) does: what can be read only once
    /// (a pipe, standard input, an object of a server without ranges) is kept in a file without a name. Of the options, those
    /// that say where files are, the limits, and what cancels waiting are used.
    ///
    /// # Errors
    ///
    /// As [`ParquetFile::open`]; `Corrupt` for a pipe that does not begin as a Parquet file does.
    pub fn open_any(path: &Path, options: &FilesOptions) -> Result<ParquetFile> {
        let name = name_of(path);
        let file = start_of(path, options).map_err(|error| named(error, &name))?;
        if file.stream().is_some() && !file.is_parquet() {
            return Err(named(Error::corrupt("it does not begin as a Parquet file does"), &name));
        }
        match parquet(name, file, options)? {
            Looked::Parquet { name, store, path, .. } => {
                ParquetFile::open_as(name, &store, &path, options.limits)
            }
            Looked::Other { .. } => Err(Error::internal("a format that nobody asked for")),
        }
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
    if PARQUET_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(ending)) {
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
fn parquet(name: String, mut file: FoundFile, options: &FilesOptions) -> Result<Looked> {
    let path = file.path().to_path_buf();
    let Some(stream) = file.take_stream() else {
        let is_likely = file.start().is_none() || file.is_parquet();
        return Ok(Looked::Parquet { name, store: Arc::clone(&options.store), path, is_likely });
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
    Ok(Looked::Parquet {
        name: name.clone(),
        store: Arc::new(kept),
        path: PathBuf::from(name),
        is_likely: true,
    })
}
