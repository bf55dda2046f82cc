use std::fs;
use std::io::Write;

use marquetry_io::store::LocalFiles;

use marquetry_base::ErrorKind;
use marquetry_base::cast::u64_of;

use super::rows::How;
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
    let message = "it was changed while it was read: it had 4 bytes, and now has 6";
    assert_eq!((error.kind(), error.message()), (ErrorKind::Io, message));
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

/// The rows of a text, as debugging shows them, by so many threads and in blocks of so many bytes; and the error that ends
/// them.
fn shown(file: &mut TextFile, threads: usize, block_bytes: usize) -> (Vec<String>, Option<Error>) {
    file.block_bytes = Some(block_bytes);
    let options = PieceOptions { threads, batch_rows: Some(3), ..PieceOptions::default() };
    let (mut rows, mut found) = (Vec::new(), file.read(None, &options).unwrap());
    loop {
        match found.next() {
            Ok(Some(batch)) => {
                assert_eq!(usize::try_from(batch.first_row).unwrap(), rows.len());
                for row in 0..batch.rows {
                    let row = batch.slice(row..row + 1);
                    rows.push(format!("{:?}", row.columns));
                }
            }
            Ok(None) => return (rows, None),
            Err(error) => return (rows, Some(error)),
        }
    }
}

/// Rows do not depend on the threads, wherever blocks end; neither does the error that comes first, wherever it is.
#[test]
fn threads_parse_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<String> = (0..200)
        .map(|row| match row % 5 {
            0 => format!("{row},\"a\nb,{row}\"\r\n"),
            1 => format!("{row},5\" and 6\"\n"),
            2 => format!("{row},\"\"\"\n\"\"\"\n\n"),
            3 => format!("{row},\n"),
            _ => format!("{row},\"\"\r\n"),
        })
        .collect();
    let wrongs = ["x,y\n", "1\n", "1,\"a\"b\n", "1,\"open\n", "1,\"\"\"\n"];
    let mut texts = vec![("a.csv".to_string(), format!("n,s\n{}", rows.concat()))];
    for (number, wrong) in wrongs.iter().enumerate() {
        for at in [1, 50, 199] {
            // A second error comes after it.
            let text = [&rows[..at], &[wrong.to_string()], &rows[at..], &["y,z\n".to_string()]].concat();
            texts.push((format!("{number}-{at}.csv"), format!("n,s\n{}", text.concat())));
        }
    }
    let lines = |wrong: &str| {
        let line = |row: usize| match row {
            120 => format!("{{\"n\":{row},\"l\":[1,{row}]{wrong}}}\n"),
            _ if row.is_multiple_of(7) => "\n".to_string(),
            _ => format!("{{\"n\":{row},\"l\":[1,{row}]}}\n"),
        };
        (0..200).map(line).collect::<String>()
    };
    texts.push(("a.jsonl".to_string(), lines("")));
    texts.push(("b.jsonl".to_string(), lines(",\"l\":")));
    for (name, text) in texts {
        let path = folder.path().join(&name);
        fs::write(&path, &text).unwrap();
        let format = Format::by_name(&name).unwrap();
        let mut options = TextOptions::default();
        let schema = if format == Format::Csv { "n bigint, s text" } else { "n bigint, l list<bigint>" };
        options.schema = Some(schema.parse().unwrap());
        let local: Arc<dyn Store> = Arc::new(LocalFiles);
        let opened = TextFile::open_all(&local, &[(path, format)], &options, &Cancel::new());
        let mut file = opened.unwrap().remove(0);
        let is_right = name.starts_with('a');
        for block_bytes in [0, 7, 100, 1000, 1 << 20] {
            let (rows, error) = shown(&mut file, 1, block_bytes);
            assert_eq!(error.is_none(), is_right, "{name}: {error:?}");
            assert!(rows.len() > 100 || !is_right);
            for threads in [2, 3, 8] {
                let by = (name.as_str(), block_bytes, threads);
                let found = shown(&mut file, threads, block_bytes);
                assert_eq!(found.1, error, "{by:?}");
                assert!(found.0 == rows, "{by:?}");
            }
        }
    }
}

/// Threads end when nobody wants rows any more, and a limit ends them.
#[test]
fn threads_that_parse_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, format!("n\n{}", "1\n".repeat(100_000))).unwrap();
    let mut file = opened(&path);
    file.block_bytes = Some(100);
    let alone = file.read(None, &PieceOptions { threads: 1, ..PieceOptions::default() }).unwrap();
    assert!(matches!(alone.how(), How::Here(_)));
    for rows in [1, 100, 777] {
        let mut options = PieceOptions::default().limited_to(rows);
        options.threads = 4;
        let mut found = file.read(None, &options).unwrap();
        let How::Elsewhere(parsing, _) = found.how() else { panic!() };
        let parsing = Arc::downgrade(parsing);
        let mut read = 0;
        while let Some(batch) = found.next().unwrap() {
            read += batch.rows;
        }
        assert_eq!(u64_of(read), rows);
        drop(found);
        let started = std::time::Instant::now();
        while parsing.strong_count() > 0 {
            assert!(started.elapsed().as_secs() < 20, "a thread stays");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// What threads have read ahead counts when its rows are handed out, so that who shows it does not stand at the end for long.
#[test]
fn bytes_count_when_their_rows_are_handed_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let text = format!("n\n{}", "1\n".repeat(2 << 20));
    fs::write(&path, &text).unwrap();
    let mut file = opened(&path);
    file.block_bytes = Some(1 << 20);
    for threads in [1, 4] {
        let options = PieceOptions { threads, ..PieceOptions::default() };
        let mut found = file.read(None, &options).unwrap();
        assert_eq!(options.bytes_read.get(), 0);
        found.next().unwrap().unwrap();
        // By now all of it could have been read.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let first = options.bytes_read.get();
        assert!((1 << 14..=2 << 20).contains(&first), "{threads} threads: {first} bytes");
        let mut before = first;
        while found.next().unwrap().is_some() {
            let now = options.bytes_read.get();
            assert!(now >= before);
            before = now;
        }
        assert_eq!(options.bytes_read.get(), u64_of(text.len()));
    }
    // With a limit, not all of it is.
    let options = PieceOptions { threads: 4, ..PieceOptions::default().limited_to(10) };
    let mut found = file.read(None, &options).unwrap();
    while found.next().unwrap().is_some() {}
    assert!((1..=2 << 20).contains(&options.bytes_read.get()));
}

/// A reader that hands out text, then waits, or panics, or fails.
struct Then(usize, fn() -> std::io::Result<usize>);

impl Read for Then {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.0 == 0 {
            return (self.1)();
        }
        let length = out.len().min(self.0);
        out[..length].iter_mut().zip(b"1\n".iter().cycle()).for_each(|(to, from)| *to = *from);
        self.0 -= length;
        Ok(length)
    }
}

#[test]
fn a_text_that_fails_in_the_middle_by_threads() {
    let mut options = TextOptions::default();
    options.infer_bytes = 1;
    let read = |then: fn() -> std::io::Result<usize>, threads| {
        let reader = Then(4 << 20, then);
        let mut file = TextFile::of_reader("it", reader, Format::Csv, &options, &Cancel::new()).unwrap();
        file.block_bytes = Some(10_000);
        let options = PieceOptions { threads, ..PieceOptions::default() };
        let (mut rows, mut found) = (0, file.read(None, &options).unwrap());
        loop {
            match found.next() {
                Ok(Some(batch)) => rows += batch.rows,
                Ok(None) => panic!("it ends"),
                Err(error) => return (rows, error),
            }
        }
    };
    let fails: fn() -> _ = || Err(std::io::Error::other("the line is cut"));
    let (rows, error) = read(fails, 1);
    assert!(rows > 2_000_000 && error.kind() == ErrorKind::Io, "{rows}: {error}");
    for threads in [2, 8] {
        let found = read(fails, threads);
        assert_eq!((found.0, found.1.message()), (rows, error.message()));
        let found = read(|| panic!("a reader with a bug"), threads);
        assert_eq!((found.0, found.1.kind()), (rows, ErrorKind::Internal));
    }
}

/// Rows may have several lines, and there may be lines that are no rows: the lines of many rows are found in one pass, whatever the blocks are.
#[test]
fn lines_of_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let (mut text, mut lines) = ("n,t\n".to_owned(), Vec::new());
    for row in 0..500_u64 {
        lines.push(1 + u64_of(text.matches('\n').count()));
        let field = if row % 7 == 3 { "\"a\n\nb\"" } else { "c" };
        text.push_str(&format!("{row},{field}\n"));
        if row % 50 == 49 {
            text.push('\n');
        }
    }
    fs::write(&path, &text).unwrap();
    let mut file = opened(&path);
    let cancel = Cancel::new();
    let expected = |rows: &[u64]| rows.iter().map(|row| lines[usize::try_from(*row).unwrap()]).collect();
    for block_bytes in [16, 100, 1000, 1 << 20] {
        file.block_bytes = Some(block_bytes);
        for rows in [&[][..], &[0], &[499], &[0, 1, 2, 3, 4, 5, 5, 99, 100, 101, 350, 350, 499]] {
            assert_eq!(file.lines_of(rows, &cancel), Some(expected(rows)), "{block_bytes}: {rows:?}");
        }
        assert_eq!(file.lines_of(&[0, 500], &cancel), None);
    }
    let all: Vec<u64> = (0..500).collect();
    assert_eq!(file.lines_of(&all, &cancel), Some(lines.clone()));
}
