//! Text as tables: CSV, TSV and JSON lines, compressed or not, both ways.
//!
//! What is here waits: it reads, decompresses, and feeds the machines of [`marquetry_text`]; and it writes what those
//! of [`marquetry_parquet::print`] print.

mod compression;
mod fit;
mod new_file;
mod output;
mod prepare;
mod printing;
mod rows;
mod start;
mod steps;
mod stream;

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use marquetry_base::{Budget, Error, Limits, Result, Step};
use marquetry_io::ObjectVersion;
use marquetry_io::shown;
use marquetry_io::store::Store;
use marquetry_parquet::schema::Schema;
use marquetry_text::read::{Sample, Sampled, TextForm, TextSampler};

pub use marquetry_text::{
    Column, ColumnType, Columns, Format, Header, Quote, Scalar, TextOptions, TypeOf, Types, Wanted, character,
};

pub use fit::columns_of;
pub use new_file::NewTextFile;
pub use output::{TextOutput, TextOutputOptions};
pub use prepare::{Encoding, Preparing};
pub use rows::TextRows;

use crate::files::{FileFormat, FormatFile, FoundFile, WantedColumns};
use crate::subject::{name_of, named, renamed};
use crate::{Batches, BytesRead, Cancel, Note, PieceOptions};
use compression::Compression;
use rows::{Blocks, lines_of};
use start::format_by_start;
use steps::{fed, unexpected};
use stream::Stream;

/// Bytes of a file, compressed or not, for which one thread is enough.
const SMALL_BYTES: u64 = 1 << 20;

/// The files that are text, wherever files are read: see [`FilesOptions::formats`](crate::files::FilesOptions).
///
/// ```
/// use marquetry_tables::files::{FileFormat, FoundFile};
/// use marquetry_tables::text::{Format, TextFormat, TextOptions};
///
/// let mut text = TextFormat::new(TextOptions::default());
/// assert!(text.is_of(&FoundFile::named("trips.csv.gz")) && !text.is_of(&FoundFile::named("trips.log")));
/// assert!(text.is_of(&FoundFile::named("trips.log").starting_with(b"id,day\n1,2024-02-29\n".to_vec())));
/// text.format = Some(Format::JsonLines);
/// assert!(text.is_of(&FoundFile::named("trips.log")));
/// assert!(!text.is_of(&FoundFile::named("trips.log").starting_with(b"PAR1".to_vec())));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TextFormat {
    /// What files are, whatever their names end in, unless they begin as Parquet files do. `None`: what their names say, or
    /// else their first bytes.
    pub format: Option<Format>,
    /// How they are read.
    pub options: TextOptions,
    /// What is done with their bytes before.
    pub preparing: Preparing,
    /// Ends early what may take long: waiting for standard input.
    pub cancel: Cancel,
    /// Where rows go, if that says what is wanted of their text.
    wanted: Option<Arc<dyn WantedColumns>>,
}

impl TextFormat {
    /// Files whose names say that they are text, read in this way.
    pub fn new(options: TextOptions) -> TextFormat {
        TextFormat { options, ..TextFormat::default() }
    }

    fn format_of(&self, file: &FoundFile) -> Option<Format> {
        if file.is_parquet() {
            return None;
        }
        if self.format.is_some() {
            return self.format;
        }
        // The query of a URL is no part of its name.
        let by_name = || {
            let name = shown(&file.path().to_string_lossy());
            name.trim_end_matches("?…").rsplit('/').next().and_then(Format::by_name)
        };
        by_name().or_else(|| format_by_start(file.start()?, self.preparing.encoding))
    }
}

impl FileFormat for TextFormat {
    fn is_of(&self, file: &FoundFile) -> bool {
        self.format_of(file).is_some()
    }

    fn extensions(&self) -> &[&str] {
        self.format.map_or(&Format::ALL_EXTENSIONS, Format::extensions)
    }

    fn open(&self, store: &Arc<dyn Store>, files: Vec<FoundFile>) -> Result<Vec<Box<dyn FormatFile>>> {
        let format = |file: FoundFile| self.format_of(&file).map(|format| (file, format));
        let files: Vec<(FoundFile, Format)> = files.into_iter().filter_map(format).collect();
        let mut options = self.options.clone();
        options.skip_empty |= self.preparing.leaves_out();
        if let (Some(wanted), None, false) = (&self.wanted, &options.schema, files.is_empty()) {
            options.wanted = wanted.wanted()?;
        }
        let opened =
            TextFile::open_found(store, files.into_iter(), (&options, &self.preparing), &self.cancel)?;
        Ok(opened.into_iter().map(|file| Box::new(file) as Box<dyn FormatFile>).collect())
    }

    fn going_to(&self, wanted: &Arc<dyn WantedColumns>) -> Option<Arc<dyn FileFormat>> {
        Some(Arc::new(TextFormat { wanted: Some(Arc::clone(wanted)), ..self.clone() }))
    }
}

/// A text file as a table. Its first rows were read, so its columns are known; its rows are read from the start.
///
/// ```no_run
/// use std::path::PathBuf;
/// use std::sync::Arc;
///
/// use marquetry_io::store::{LocalFiles, Store};
/// use marquetry_tables::text::{Format, TextFile, TextOptions};
/// use marquetry_tables::{Batches, Cancel, PieceOptions};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let options = TextOptions::default();
/// let files = [(PathBuf::from("trips.csv.gz"), Format::Csv)];
/// let local: Arc<dyn Store> = Arc::new(LocalFiles);
/// for file in TextFile::open_all(&local, &files, &options, &Cancel::new())? {
///     println!("{}: {}", file.name(), file.columns());
///     let mut rows = file.read(None, &PieceOptions::default())?;
///     while let Some(batch) = rows.next()? {
///         println!("{} rows", batch.rows);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct TextFile {
    name: String,
    format: Format,
    form: TextForm,
    limits: Limits,
    preparing: Preparing,
    cancel: Cancel,
    from: From,
    /// Bytes of a block, if not as many as suit the form.
    block_bytes: Option<usize>,
    /// The first row may be no header.
    note: Option<Note>,
}

/// Where the bytes come from.
enum From {
    /// A file of a store that can be read again, as long as it does not change.
    Path(Arc<dyn Store>, PathBuf, Compression, ObjectVersion),
    /// What is read only once, from its start.
    Once(Mutex<Option<Stream>>),
}

impl From {
    /// Looks at the first rows of a text.
    fn sampled(
        mut stream: Stream,
        (store, path): (&Arc<dyn Store>, &Path),
        compression: Compression,
        format: Format,
        options: &TextOptions,
        cancel: &Cancel,
    ) -> Result<(Sample, From)> {
        let sample = sample(&mut stream, format, options, cancel)?;
        let from = match stream.version() {
            Some(version) => From::Path(Arc::clone(store), path.to_owned(), compression, version.clone()),
            None => From::Once(Mutex::new(Some(stream.again()))),
        };
        Ok((sample, from))
    }
}

impl fmt::Debug for TextFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextFile").field("name", &self.name).field("columns", self.columns()).finish()
    }
}

impl TextFile {
    /// Opens files of a store, and finds out what their columns are: of all that have the same ones, what holds the values of all. The
    /// path `-` is standard input. Whatever is not a regular file (a pipe, a device) is opened and read once. Text is
    /// decompressed if its name or, without such a name, its first bytes are those of gzip or Zstandard.
    ///
    /// # Errors
    ///
    /// `Io` for what cannot be read; what is wrong in the first rows; `Misuse` for options that cannot be, or not together,
    /// and for what would have to be read twice and cannot be. Errors name the file.
    pub fn open_all(
        store: &Arc<dyn Store>,
        files: &[(PathBuf, Format)],
        options: &TextOptions,
        cancel: &Cancel,
    ) -> Result<Vec<TextFile>> {
        let found = files.iter().map(|(path, format)| (FoundFile::named(path), *format));
        TextFile::open_found(store, found, (options, &Preparing::default()), cancel)
    }

    fn open_found(
        store: &Arc<dyn Store>,
        files: impl Iterator<Item = (FoundFile, Format)>,
        (options, preparing): (&TextOptions, &Preparing),
        cancel: &Cancel,
    ) -> Result<Vec<TextFile>> {
        let sampled = files.map(|(mut file, format)| {
            let opened = file.take_stream();
            let path = file.path();
            let name = name_of(path);
            let preparing = preparing.clone();
            let open = || {
                let compression = Compression::by_name(path);
                let stream = match opened {
                    Some(opened) => Stream::once(&name, opened.reader, compression, cancel)?,
                    None => Stream::open(&**store, path, compression, &name, (cancel, &BytesRead::default()))?,
                };
                let stream = stream.prepared(&preparing);
                if stream.version().is_none() && options.infer_bytes == u64::MAX && options.schema.is_none() {
                    let what = "the whole text is read twice, and this can be read only once: write it to a file first";
                    return Err(Error::option("infer_bytes", what));
                }
                From::sampled(stream, (store, path), compression, format, options, cancel)
            };
            match open() {
                Ok((sample, from)) => Ok((name, format, preparing, sample, from)),
                Err(error) => Err(named(error, &name)),
            }
        });
        let sampled = sampled.collect::<Result<Vec<_>>>()?;
        // What the texts that are like each other have in common.
        let mut joined: Vec<Sample> = Vec::new();
        let mut groups = Vec::with_capacity(sampled.len());
        for (name, _, _, sample, _) in &sampled {
            let known = joined.iter().position(|joined| joined.is_like(sample));
            groups.push(known.unwrap_or(joined.len()));
            match known.and_then(|known| joined.get_mut(known)) {
                Some(joined) => joined.join(sample).map_err(|error| named(error, name))?,
                None => joined.push(sample.clone()),
            }
        }
        let mut alike = vec![0_usize; joined.len()];
        groups.iter().for_each(|group| alike[*group] += 1);
        let opened =
            sampled.into_iter().zip(groups).map(|((name, format, preparing, sample, from), group)| {
                let form = sample.form_as(&joined[group]).map_err(|error| named(error, &name))?;
                let (limits, cancel) = (options.limits, cancel.clone());
                // Files that begin with the same row begin with a header.
                let note = header_note(&sample).filter(|_| alike[group] == 1);
                Ok(TextFile { name, format, form, limits, preparing, cancel, from, block_bytes: None, note })
            });
        opened.collect()
    }

    /// A text that is read from anything, once, compressed or not. `name` is what errors call it. While a read waits,
    /// `cancel` has no effect.
    ///
    /// # Errors
    ///
    /// As [`TextFile::open_all`].
    pub fn of_reader(
        name: impl Into<String>,
        reader: impl Read + Send + 'static,
        format: Format,
        options: &TextOptions,
        cancel: &Cancel,
    ) -> Result<TextFile> {
        let name = name.into();
        let open = || {
            let mut stream = Stream::once(&name, Box::new(reader), Compression::None, cancel)?;
            let sample = sample(&mut stream, format, options, cancel)?;
            Ok((sample.form()?, header_note(&sample), From::Once(Mutex::new(Some(stream.again())))))
        };
        match open() {
            Ok((form, note, from)) => {
                let (limits, cancel, preparing) = (options.limits, cancel.clone(), Preparing::default());
                Ok(TextFile { name, format, form, limits, preparing, cancel, from, block_bytes: None, note })
            }
            Err(error) => Err(named(error, &name)),
        }
    }

    /// A file that was just written and has no name yet; `name` is the one that it will have.
    fn of_written(
        name: &str,
        (store, path): (&Arc<dyn Store>, &Path),
        compression: Compression,
        format: Format,
        options: &TextOptions,
    ) -> Result<TextFile> {
        let open = || {
            let cancel = Cancel::new();
            let stream = Stream::open(&**store, path, compression, name, (&cancel, &BytesRead::default()))?;
            let (sample, from) = From::sampled(stream, (store, path), compression, format, options, &cancel)?;
            let (name, form, note) = (name.to_owned(), sample.form()?, header_note(&sample));
            let (limits, preparing) = (options.limits, Preparing::default());
            Ok(TextFile { name, format, form, limits, preparing, cancel, from, block_bytes: None, note })
        };
        open().map_err(|error| renamed(error, name))
    }

    /// What people call it: its path; what is not UTF-8 in it is replaced.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns.
    pub fn columns(&self) -> &Columns {
        self.form.columns()
    }

    /// The same as a Parquet schema.
    pub fn schema(&self) -> &Arc<Schema> {
        self.form.schema()
    }

    /// Its rows: batches of these leaves of the schema, in this order. `None`: of all.
    ///
    /// # Errors
    ///
    /// `Io` where it cannot be read, or was changed since it was opened; `Misuse` where it can be read only once, and was,
    /// and for leaves that the schema lacks.
    pub fn read(&self, leaves: Option<&[usize]>, options: &PieceOptions) -> Result<TextRows> {
        let open = || {
            let read = BytesRead::default();
            let blocks = self.blocks(&self.cancel.or(&options.cancel), &read)?;
            let threads = if self.splits() { options.threads } else { 1 };
            let options = PieceOptions { threads, ..options.clone() };
            TextRows::new(&self.name, &self.form, (blocks, read), leaves, self.limits, &options)
        };
        open().map_err(|error| renamed(error, &self.name))
    }
}

impl TextFile {
    /// Its blocks from the start.
    fn blocks(&self, cancel: &Cancel, bytes_read: &BytesRead) -> Result<Blocks> {
        let stream = match &self.from {
            From::Path(store, path, compression, version) => {
                let stream = Stream::open(&**store, path, *compression, &self.name, (cancel, bytes_read))?;
                match stream.version() {
                    Some(now) => version.expect(now)?,
                    None => return Err(Error::io("it was a file before, and can be read only once now")),
                }
                stream.prepared(&self.preparing)
            }
            From::Once(once) => {
                let mut once = once.lock().unwrap_or_else(PoisonError::into_inner);
                once.take().ok_or_else(|| Error::misuse(READ_ONCE))?
            }
        };
        Ok(Blocks::new(stream, &self.form, self.limits, self.block_bytes, cancel.clone()))
    }
}

impl FormatFile for TextFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn format(&self) -> &str {
        self.format.name()
    }

    fn schema(&self) -> &Arc<Schema> {
        self.form.schema()
    }

    /// Unless it is known to be small.
    fn splits(&self) -> bool {
        FormatFile::bytes(self).is_none_or(|bytes| bytes >= SMALL_BYTES) || self.block_bytes.is_some()
    }

    fn note(&self) -> Option<Note> {
        self.note.clone()
    }

    fn bytes(&self) -> Option<u64> {
        let From::Path(.., version) = &self.from else { return None };
        Some(version.bytes())
    }

    /// Reads it again up to there.
    fn lines_of(&self, rows: &[u64], cancel: &Cancel) -> Option<Vec<u64>> {
        let From::Path(..) = &self.from else { return None };
        let blocks = self.blocks(cancel, &BytesRead::default()).ok()?;
        lines_of(rows, &self.form, blocks, self.limits).ok()?
    }

    /// What can be read only once is opened once.
    fn open(&self, leaves: &[usize], options: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(self.read(Some(leaves), options)?))
    }
}

/// What is said where a row of values may have been taken for the names of columns.
fn header_note(sample: &Sample) -> Option<Note> {
    let text = "the first row is taken for the names of columns, and nothing tells it from the others";
    let note = Note { text: text.to_owned(), option: Some("header") };
    sample.is_header_guessed().then_some(note)
}

const READ_ONCE: &str = "it can be read only once: write it to a file first";

/// Looks at the first rows of a text.
fn sample(stream: &mut Stream, format: Format, options: &TextOptions, cancel: &Cancel) -> Result<Sample> {
    let mut sampler = TextSampler::new(format, options)?;
    loop {
        match sampler.step(&mut Budget::unlimited())? {
            Step::Ready(Sampled::Sample(sample)) => return Ok(sample),
            Step::Ready(Sampled::Room) => {
                cancel.check()?;
                match stream.next()? {
                    Some(bytes) => fed(sampler.feed(bytes)?)?,
                    None => sampler.finish(),
                }
            }
            Step::Yield => {}
            other => return Err(unexpected(&other)),
        }
    }
}

#[cfg(test)]
mod tests;
