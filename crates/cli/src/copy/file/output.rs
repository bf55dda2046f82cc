//! What is written: one file, or a directory of them.

use std::fs;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Error, Limits, Object};
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::{NewDirectory, NewFile, SpillFile, allow_many_files};
use marquetry_io::files::PARQUET_EXTENSIONS;
use marquetry_io::{ByteSink, ByteSinks, drive_into};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{Fed, FileWriter, WriteOptions};

use super::Place;
use super::partition::Partitioning;
use crate::failure::{Failure, Outcome};

/// The file that is written, and the one that what is too much for memory waits in.
const FILE: Object = Object(0);
pub(super) const SPILL: Object = Object(1);

/// What all files have in common.
pub(super) struct Shape {
    pub(super) schema: Arc<Schema>,
    pub(super) options: WriteOptions,
    /// What may be large in the source, for what is said of errors.
    pub(super) limits: Limits,
}

/// What was written.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Written {
    pub(super) files: usize,
    pub(super) bytes: u64,
    pub(super) row_groups: usize,
}

/// A file that is being written.
pub(super) struct OpenFile {
    writer: FileWriter,
    file: NewFile,
    spill: SpillFile,
    name: String,
    limits: Limits,
    rows: u64,
    bytes: u64,
}

/// Counts what is appended.
struct Counting<'a> {
    file: &'a mut NewFile,
    bytes: &'a mut u64,
}

impl ByteSink for Counting<'_> {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        *self.bytes += u64_of(bytes.len());
        self.file.append(bytes)
    }

    fn read(&mut self, range: std::ops::Range<u64>) -> Result<marquetry_base::Bytes, Error> {
        self.file.read(range)
    }
}

impl OpenFile {
    /// A file that has no name yet; `beside` is a path in whose directory there is room for what waits.
    pub(super) fn new(shape: &Shape, name: String, file: NewFile, beside: &Path) -> Outcome<OpenFile> {
        let writer = shape.writer(&name)?;
        let spill = SpillFile::create_beside(beside)
            .map_err(|error| crate::input::failure(&name, &error, shape.limits))?;
        Ok(OpenFile { writer, file, spill, name, limits: shape.limits, rows: 0, bytes: 0 })
    }

    fn drive(&mut self) -> Result<bool, Error> {
        let mut file = Counting { file: &mut self.file, bytes: &mut self.bytes };
        let mut sinks =
            ByteSinks::<&mut dyn ByteSink>::new().with(FILE, &mut file).with(SPILL, &mut self.spill);
        Ok(drive_into(&mut self.writer, &mut sinks)?.is_some())
    }

    /// Writes rows.
    pub(super) fn write(&mut self, batch: Batch) -> Outcome {
        self.rows += u64_of(batch.rows);
        let fed = self.drive().and_then(|has_room| match has_room {
            true => self.writer.feed(batch),
            false => Err(Error::internal("a writer that ends before its rows")),
        });
        match fed.map_err(|error| self.failure(&error))? {
            Fed::Taken => Ok(()),
            Fed::Full(_) => Err(Failure::bug("a writer that asked for rows has no room for them")),
        }
    }

    /// Writes the end.
    pub(super) fn finish(&mut self) -> Outcome {
        self.writer.finish();
        while self.drive().map_err(|error| self.failure(&error))? {}
        Ok(())
    }

    /// Bytes that it has, about, while it is written.
    fn size(&self) -> u64 {
        self.bytes + self.writer.held()
    }

    /// What was written, at the end.
    pub(super) fn written(&self) -> Written {
        Written { files: 1, bytes: self.bytes, row_groups: self.writer.row_groups() }
    }

    /// Where it can be read before it has its name.
    pub(super) fn temporary(&self) -> &Path {
        self.file.temporary()
    }

    /// What people call it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn failure(&self, error: &Error) -> Failure {
        crate::input::failure(&self.name, error, self.limits)
    }
}

impl Shape {
    /// A writer of such a file. What is wrong with the options is found here.
    pub(super) fn writer(&self, name: &str) -> Outcome<FileWriter> {
        let codecs = Arc::new(StandardCodecs::default());
        FileWriter::new(FILE, Arc::clone(&self.schema), codecs, self.options.clone())
            .map_err(|error| Failure::about(name, &error))
    }
}

/// Where rows go: nothing appears before all of them are there.
pub(super) enum Output {
    File(Box<OpenFile>),
    Directory(Box<Directory>),
}

/// A directory of files, one of which is written at a time.
pub(super) struct Directory {
    shape: Shape,
    directory: NewDirectory,
    partitioning: Option<Arc<Partitioning>>,
    /// After which another file is begun.
    file_rows: Option<NonZeroU64>,
    file_bytes: Option<NonZeroU64>,
    /// The file at hand, and its place.
    open: Option<(OpenFile, PathBuf)>,
    /// The directory at hand, and files that are begun in it.
    below: PathBuf,
    number: usize,
    written: Written,
}

/// Looks at each file that is whole.
pub(super) type Look<'a> = dyn FnMut(&OpenFile, &Path) -> Outcome + 'a;

impl Output {
    /// One file.
    pub(super) fn file(shape: &Shape, path: &Path) -> Outcome<Output> {
        let name = path.display().to_string();
        // Before a file is made.
        shape.writer(&name)?;
        let file =
            NewFile::create(path).map_err(|error| crate::input::failure(&name, &error, shape.limits))?;
        let open = Box::new(OpenFile::new(shape, name, file, path)?);
        Ok(Output::File(open))
    }

    /// Writes rows.
    pub(super) fn write(&mut self, batch: Batch, look: &mut Look<'_>) -> Outcome {
        match self {
            Output::File(open) => open.write(batch),
            Output::Directory(directory) => directory.write(batch, look),
        }
    }

    /// Writes the end; says what there is.
    pub(super) fn finish(&mut self, look: &mut Look<'_>) -> Outcome<Written> {
        match self {
            Output::File(open) => {
                open.finish()?;
                look(open, Path::new(""))?;
                Ok(open.written())
            }
            Output::Directory(directory) => directory.finish(look),
        }
    }

    /// All of it appears.
    pub(super) fn commit(self, overwrite: bool) -> Outcome {
        match self {
            Output::File(open) => {
                let (name, limits) = (open.name.clone(), open.limits);
                let file = open.file;
                // Somebody may have made a file of that name meanwhile.
                let done = if overwrite { file.replace() } else { file.commit() };
                done.map_err(|error| crate::input::failure(&name, &error, limits))
            }
            Output::Directory(directory) => {
                let (name, limits) =
                    (directory.directory.path().display().to_string(), directory.shape.limits);
                let directory = directory.directory;
                let done =
                    if overwrite { directory.replace(&PARQUET_EXTENSIONS) } else { directory.commit() };
                done.map_err(|error| crate::input::failure(&name, &error, limits))
            }
        }
    }
}

impl Directory {
    pub(super) fn new(
        shape: Shape,
        path: &Path,
        partitioning: Option<Arc<Partitioning>>,
        file_rows: Option<NonZeroU64>,
        file_bytes: Option<NonZeroU64>,
        overwrite: bool,
    ) -> Outcome<Directory> {
        let name = path.display().to_string();
        shape.writer(&name)?;
        allow_many_files();
        let directory = NewDirectory::create(path, overwrite, &PARQUET_EXTENSIONS)
            .map_err(|error| crate::input::failure(&name, &error, shape.limits))?;
        Ok(Directory {
            shape,
            directory,
            partitioning,
            file_rows,
            file_bytes,
            open: None,
            below: PathBuf::new(),
            number: 0,
            written: Written::default(),
        })
    }

    fn write(&mut self, batch: Batch, look: &mut Look<'_>) -> Outcome {
        let mut start = 0;
        while start < batch.rows {
            let mut end = batch.rows;
            if let Some(partitioning) = &self.partitioning {
                end = (start + 1..end).find(|row| !partitioning.is_same(&batch, start, *row)).unwrap_or(end);
                let below = partitioning.directory(&batch, start)?;
                if below != self.below {
                    self.close(look)?;
                    (self.below, self.number) = (below, 0);
                }
            }
            if let (Some(most), Some((open, _))) = (self.file_rows, &self.open)
                && open.rows >= most.get()
            {
                self.close(look)?;
            }
            if self.open.is_none() {
                self.begin()?;
            }
            let Some((open, _)) = &mut self.open else { return Err(Failure::bug("a file that is not open")) };
            if let Some(most) = self.file_rows {
                let room = usize_of(most.get() - open.rows).unwrap_or(usize::MAX);
                end = end.min(start.saturating_add(room));
            }
            let part = slice(&batch, start, end);
            open.write(match &self.partitioning {
                Some(partitioning) => partitioning.kept(part),
                None => part,
            })?;
            start = end;
            if self.file_bytes.is_some_and(|most| open.size() >= most.get()) {
                self.close(look)?;
            }
        }
        Ok(())
    }

    /// Begins the next file of the directory at hand.
    fn begin(&mut self) -> Outcome {
        let place = self.below.join(format!("part-{:05}.parquet", self.number));
        self.number += 1;
        let name = self.directory.path().join(&place).display().to_string();
        let file = self
            .directory
            .file(&place)
            .map_err(|error| crate::input::failure(&name, &error, self.shape.limits))?;
        let beside = self.directory.path().to_path_buf();
        self.open = Some((OpenFile::new(&self.shape, name, file, &beside)?, place));
        Ok(())
    }

    /// Ends the file at hand, if there is one.
    fn close(&mut self, look: &mut Look<'_>) -> Outcome {
        let Some((mut open, place)) = self.open.take() else { return Ok(()) };
        open.finish()?;
        look(&open, &self.below)?;
        let written = open.written();
        self.written.files += 1;
        self.written.bytes += written.bytes;
        self.written.row_groups += written.row_groups;
        let (name, limits) = (open.name, open.limits);
        self.directory.keep(open.file, place).map_err(|error| crate::input::failure(&name, &error, limits))
    }

    fn finish(&mut self, look: &mut Look<'_>) -> Outcome<Written> {
        // A table without rows has a schema.
        if self.written.files == 0 && self.open.is_none() && self.partitioning.is_none() {
            self.begin()?;
        }
        self.close(look)?;
        Ok(self.written)
    }
}

fn slice(batch: &Batch, start: usize, end: usize) -> Batch {
    if (start, end) == (0, batch.rows) {
        return batch.clone();
    }
    Batch {
        row_group: batch.row_group,
        first_row: batch.first_row + u64_of(start),
        rows: end - start,
        columns: batch.columns.iter().map(|column| column.slice(start..end)).collect(),
    }
}

/// Fails where there is something that is not to be replaced.
pub(super) fn refuse_existing(place: Place<'_>) -> Outcome {
    let refused = |path: &Path, what: &str| Err(Failure::refused(format!("{}: {what}", path.display())));
    match place {
        Place::File(path) if fs::symlink_metadata(path).is_ok() => {
            refused(path, "there is a file already; --overwrite replaces it")
        }
        Place::Directory(path) if fs::read_dir(path).is_ok_and(|mut found| found.next().is_some()) => {
            refused(path, "the directory is not empty; --overwrite replaces it and all that is in it")
        }
        Place::File(_) | Place::Directory(_) => Ok(()),
    }
}
