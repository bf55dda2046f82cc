//! What cancels a copy reaches the stores of both of its ends.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Error, ErrorKind, Result};
use marquetry_io::store::{Found, IsCancelled, LocalFiles, NewObject, NewObjects, ObjectStream, Store};
use marquetry_io::{ByteSource, ObjectVersion};
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{DirectoryOptions, NewParquetDirectory, NewParquetFile, ParquetOptions};
use marquetry_tables::text::{Format, NewTextFile, TextFormat, TextOptions, TextOutputOptions};
use marquetry_tables::{Cancel, Destination, PieceOptions, Source};

/// Local files, whose calls fail once they are cancelled.
struct Waiting(Vec<IsCancelled>);

impl Waiting {
    fn check(&self) -> Result<()> {
        if self.0.iter().any(|is_cancelled| is_cancelled()) { Err(Error::cancelled()) } else { Ok(()) }
    }
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}

impl Store for Waiting {
    fn cancellable(&self, is_cancelled: IsCancelled) -> Option<Arc<dyn Store>> {
        let all = self.0.iter().cloned().chain([is_cancelled]).collect();
        Some(Arc::new(Waiting(all)))
    }

    fn look(&self, path: &Path) -> Result<Found> {
        self.check().and_then(|()| LocalFiles.look(path))
    }

    fn find(&self, path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
        self.check().and_then(|()| LocalFiles.find(path, extensions))
    }

    fn open(&self, path: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        self.check().and_then(|()| LocalFiles.open(path))
    }

    fn stream(&self, path: &Path, is_cancelled: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        let is_set = is_cancelled();
        self.check().and_then(|()| if is_set { Err(Error::cancelled()) } else { Ok(()) })?;
        LocalFiles.stream(path, is_cancelled)
    }

    fn create(&self, path: &Path, replaces: bool) -> Result<Box<dyn NewObject>> {
        self.check().and_then(|()| LocalFiles.create(path, replaces))
    }

    fn create_directory(
        &self,
        path: &Path,
        replaces: bool,
        extensions: &'static [&'static str],
    ) -> Result<Box<dyn NewObjects>> {
        self.check().and_then(|()| LocalFiles.create_directory(path, replaces, extensions))
    }
}

#[test]
fn both_ends_are_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(Waiting(Vec::new()));
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("a.csv"), "id\n1\n").unwrap();
    let mut options = FilesOptions::default();
    options.store = Arc::clone(&store);
    options.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
    let text = Files::open([path("a.csv")], &options).unwrap();
    let table = text.table().clone();

    let mut parquet =
        NewParquetFile::new_in(Arc::clone(&store), path("a.parquet"), ParquetOptions::default());
    let mut directory =
        NewParquetDirectory::new_in(Arc::clone(&store), path("d"), DirectoryOptions::default());
    let lines =
        NewTextFile::new_in(Arc::clone(&store), path("b.csv"), Format::Csv, TextOutputOptions::default());
    let mut lines = lines.unwrap();
    let destinations: [&mut dyn Destination; 3] =
        [parquet.as_mut().unwrap(), directory.as_mut().unwrap(), &mut lines];
    for destination in destinations {
        let cancel = Cancel::new();
        destination.cancelled_by(&cancel);
        cancel.cancel();
        assert_eq!(destination.begin(&table).unwrap_err().kind(), ErrorKind::Cancelled);
    }

    let written = path("c.parquet");
    let mut destination = NewParquetFile::new(&written, ParquetOptions::default()).unwrap();
    let text: Arc<dyn Source> = Arc::new(text);
    marquetry_tables::copy(&text, &mut destination, &Default::default(), &mut |_| {}).unwrap();
    let parquet = Files::open([&written], &options).unwrap();
    for source in [&*text, &parquet] {
        let piece = PieceOptions::default();
        piece.cancel.cancel();
        let kind = source.open(0, &piece).and_then(|mut rows| rows.next()).map(drop).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::Cancelled);
        assert!(source.open(0, &PieceOptions::default()).unwrap().next().unwrap().is_some());
    }
    options.cancel.cancel();
    assert_eq!(Files::open([&written], &options).map(drop).unwrap_err().kind(), ErrorKind::Cancelled);
}
