use std::fs;
use std::io::Write;

use marquetry_io::store::LocalFiles;

use super::*;

fn opened(path: &Path) -> TextFile {
    let files = [(path.to_owned(), Format::Csv)];
    TextFile::open_all(
        &(Arc::new(LocalFiles) as Arc<dyn Store>),
        &files,
        &TextOptions::default(),
        &Cancel::new(),
    )
    .unwrap()
    .remove(0)
}

fn rows(file: &TextFile) -> Result<usize> {
    let (mut rows, mut found) = (0, file.read(None, &PieceOptions::default())?);
    while let Some(batch) = found.next()? {
        rows += batch.rows;
    }
    Ok(rows)
}

/// Its columns are those of what it was.
#[test]
fn a_file_that_changed_since_it_was_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, "n\n1\n").unwrap();
    let file = opened(&path);
    assert_eq!((rows(&file).unwrap(), rows(&file).unwrap()), (1, 1));
    fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"2\n").unwrap();
    let error = rows(&file).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "it was changed while it was read"));
    assert_eq!(error.place().object.as_deref(), path.to_str());
    assert_eq!(rows(&opened(&path)).unwrap(), 2);
}

/// What is read from anything is decompressed, whatever it is called.
#[test]
fn a_reader_of_compressed_text() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(b"n\n1\n2\n").unwrap();
    let (options, bytes) = (TextOptions::default(), gzip.finish().unwrap());
    let reader = std::io::Cursor::new(bytes);
    let file = TextFile::of_reader("upload", reader, Format::Csv, &options, &Cancel::new()).unwrap();
    assert_eq!(rows(&file).unwrap(), 2);
    assert_eq!(rows(&file).unwrap_err().kind(), ErrorKind::Misuse);
}
