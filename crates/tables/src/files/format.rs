//! Files of other formats than Parquet.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::Result;
use marquetry_io::store::{ObjectStream, Store};
use marquetry_parquet::schema::Schema;
use marquetry_text::Wanted;

use crate::{Batches, Cancel, Note, PieceOptions};

/// A format whose files are read wherever Parquet files are: CSV, or one of your own.
pub trait FileFormat: Send + Sync {
    /// Whether a file is of this format: by its name, by its first bytes, or because it was said.
    fn is_of(&self, file: &FoundFile) -> bool;

    /// The extensions, without the dot, of its files: a directory without a Parquet file is searched for them.
    fn extensions(&self) -> &[&str] {
        &[]
    }

    /// Opens all files of this format that make a table, at once: what one is may depend on the others. They are in
    /// this store.
    ///
    /// # Errors
    ///
    /// What cannot be opened. Errors name the file that they are about ([`Place::object`](marquetry_base::Place)).
    fn open(&self, store: &Arc<dyn Store>, files: Vec<FoundFile>) -> Result<Vec<Box<dyn FormatFile>>>;

    /// The same format, for rows that go where columns are wanted as these: where types are inferred, that says more than the files. `None`:
    /// it makes no difference.
    fn going_to(&self, _: &Arc<dyn WantedColumns>) -> Option<Arc<dyn FileFormat>> {
        None
    }
}

/// What is wanted of text, where its rows go.
pub trait WantedColumns: Send + Sync + fmt::Debug {
    /// Columns, by name, whose text is wanted as it is written: see [`TextOptions::wanted`](crate::text::TextOptions). Asked when there is
    /// text.
    ///
    /// # Errors
    ///
    /// Those of looking there.
    fn wanted(&self) -> Result<Vec<(String, Wanted)>>;
}

/// A file that was found, before anybody knows what it is.
///
/// ```
/// use marquetry_tables::files::FoundFile;
///
/// let mut file = FoundFile::named("events.json");
/// assert!(file.start().is_none());
/// file = file.starting_with(b"{\"id\":1}\n".to_vec());
/// assert!(!file.is_parquet());
/// ```
pub struct FoundFile {
    path: PathBuf,
    start: Option<Vec<u8>>,
    stream: Option<ObjectStream>,
}

impl FoundFile {
    /// A file that is known by its path alone.
    pub fn named(path: impl Into<PathBuf>) -> FoundFile {
        FoundFile { path: path.into(), start: None, stream: None }
    }

    /// The same, with the bytes that it starts with.
    #[must_use]
    pub fn starting_with(self, start: Vec<u8>) -> FoundFile {
        FoundFile { start: Some(start), ..self }
    }

    /// The same, which can be read only once: from `stream`, which has its first bytes, too.
    #[must_use]
    pub(super) fn read_from(self, stream: ObjectStream) -> FoundFile {
        FoundFile { stream: Some(stream), ..self }
    }

    /// Its path in the store; `-` is standard input.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its first bytes, at most a few KiB, if somebody looked at them: nobody does where the name says that it is a Parquet
    /// file, unless a format takes it all the same.
    pub fn start(&self) -> Option<&[u8]> {
        self.start.as_deref()
    }

    /// Whether it starts as Parquet files do.
    pub fn is_parquet(&self) -> bool {
        self.start.as_deref().is_some_and(|start| start.starts_with(b"PAR1") || start.starts_with(b"PARE"))
    }

    /// Where it is read from, if it can be read only once; taken from here.
    pub fn take_stream(&mut self) -> Option<ObjectStream> {
        self.stream.take()
    }
}

impl fmt::Debug for FoundFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FoundFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// A file of a [`FileFormat`], a table by itself.
pub trait FormatFile: Send + Sync {
    /// What people call it.
    fn name(&self) -> &str;

    /// What its format is called: `CSV`.
    fn format(&self) -> &str;

    /// What its rows are.
    fn schema(&self) -> &Arc<Schema>;

    /// Its rows, where they are known before they are read.
    fn rows(&self) -> Option<u64> {
        None
    }

    /// What is to be known of how it is read.
    fn note(&self) -> Option<Note> {
        None
    }

    /// Its length in bytes, where that is known.
    fn bytes(&self) -> Option<u64> {
        None
    }

    /// Whether several threads can read it at once: see [`PieceOptions::threads`].
    fn splits(&self) -> bool {
        false
    }

    /// The lines, counted from 1, that rows begin in, which are counted from 0 and ascend: for errors about rows that say where they are. It may
    /// take as long as reading the file up to the last of them. `None` for files without lines, what cannot be read again, and once
    /// it is cancelled.
    fn lines_of(&self, _rows: &[u64], _cancel: &Cancel) -> Option<Vec<u64>> {
        None
    }

    /// Opens it: batches of these leaves of its schema, in this order, and of no others.
    ///
    /// # Errors
    ///
    /// Why it cannot be opened.
    fn open(&self, leaves: &[usize], options: &PieceOptions) -> Result<Box<dyn Batches>>;
}
