//! Copies that go on, of a ring that is made.

use std::sync::atomic::{AtomicU64, Ordering};

use marquetry_base::ErrorKind;
use marquetry_io::state_file::{sealed, unsealed};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};

use super::*;
use crate::files::{Files, FilesOptions};
use crate::{Batches, Piece, PieceOptions, Reading, ReadingOptions, TokenRange};

/// A ring of so many rows, at ten tokens each, that is split anyhow; it fails when so many pieces were opened.
struct Ring {
    table: Table,
    pieces: Vec<Piece>,
    opened: AtomicU64,
    fails_after: u64,
}

const FIRST: i64 = -1000;
const LAST: i64 = 999;

impl Ring {
    fn split(width: usize, done: &[RangeInclusive<i64>], fails_after: u64) -> Arc<dyn Source> {
        Arc::new(Ring::new(width, done, fails_after))
    }

    fn new(width: usize, done: &[RangeInclusive<i64>], fails_after: u64) -> Ring {
        let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
        let mut table = Table::new("ring", Arc::new(Schema::of_fields(&[id]).unwrap()));
        table.identity = Some("1".to_owned());
        let wanted = TokenRange::without(&[FIRST..=LAST], done);
        let mut pieces = Vec::new();
        for start in (FIRST..=LAST).step_by(width) {
            let end = LAST.min(start + i64::try_from(width).unwrap() - 1);
            for range in &wanted {
                let (start, end) = (start.max(*range.start()), end.min(*range.end()));
                if start <= end {
                    let mut piece = Piece::of(format!("{start} to {end}"));
                    piece.tokens = Some((start, end));
                    pieces.push(piece);
                }
            }
        }
        Ring { table, pieces, opened: AtomicU64::new(0), fails_after }
    }
}

impl Source for Ring {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
        if self.opened.fetch_add(1, Ordering::Relaxed) >= self.fails_after {
            return Err(Error::io("the ring broke"));
        }
        let (start, end) = self.pieces[piece].tokens.unwrap();
        // Of the tokens from 0 to 99 there are no rows.
        let rows: Vec<i64> =
            (start..=end).filter(|token| token % 10 == 0 && !(0..100).contains(token)).collect();
        Ok(Box::new(Once(Some(rows).filter(|rows| !rows.is_empty()))))
    }
}

struct Once(Option<Vec<i64>>);

impl Batches for Once {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.0.take().map(|rows| Batch::of_values([rows.into()])).transpose()
    }
}

fn run(parts: &mut Parts, source: &Arc<dyn Source>) -> Result<Copied> {
    let options = CopyOptions { threads: Some(1), ..CopyOptions::default() };
    parts.copy(source, &ParquetOptions::default(), &options, &mut |_| {})
}

/// Every row of the directory, in order.
fn rows_of(directory: &Path) -> Vec<i64> {
    let files: Arc<dyn Source> = Arc::new(Files::open([directory], &FilesOptions::default()).unwrap());
    let mut reading = Reading::new(files, ReadingOptions::default()).unwrap();
    let mut rows = Vec::new();
    while let Some((_, batch)) = reading.next_batch().unwrap() {
        match &batch.columns[0].values {
            marquetry_parquet::batch::Values::Int64(values) => rows.extend(values.iter().copied()),
            other => panic!("{other:?}"),
        }
    }
    rows.sort_unstable();
    rows
}

fn all() -> Vec<i64> {
    (FIRST..=LAST).filter(|token| token % 10 == 0 && !(0..100).contains(token)).collect()
}

#[test]
fn it_goes_on_however_the_ring_is_split() {
    let folder = tempfile::tempdir().unwrap();
    let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
    let open = |resume: bool| Parts::open(&state, &directory, resume, "o");
    // Each run fails later than the one before, and the ring is split otherwise each time.
    let mut runs = 0;
    for width in [37_usize, 64, 23, 51, 19].into_iter().cycle() {
        let mut parts = open(true).unwrap();
        let source = Ring::split(width, &parts.done(), 20);
        runs += 1;
        match run(&mut parts, &source) {
            Ok(_) => break,
            Err(error) => assert!(error.to_string().contains("the ring broke"), "{error}"),
        }
        // What appeared is what the state says.
        assert_eq!(rows_of_some(&directory), parts.rows());
        assert!(runs < 50);
    }
    assert!(runs > 2, "{runs}");
    assert_eq!(rows_of(&directory), all());
    // It is not repeated.
    let error = open(false).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["resume"])), "{error}");
    let mut parts = open(true).unwrap();
    assert!(parts.is_finished() && parts.rows() == u64_of(all().len()));
    let nothing = Ring::split(7, &parts.done(), 0);
    assert_eq!(run(&mut parts, &nothing).unwrap().rows, 0);
    drop(parts);
    // A file that somebody removed is written again.
    let lost = fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(lost).unwrap();
    let mut parts = open(true).unwrap();
    assert!(!parts.is_finished());
    let source = Ring::split(100, &parts.done(), 99);
    run(&mut parts, &source).unwrap();
    assert_eq!(rows_of(&directory), all());
}

fn rows_of_some(directory: &Path) -> u64 {
    let has_some = fs::read_dir(directory).is_ok_and(|mut files| files.next().is_some());
    if has_some { u64_of(rows_of(directory).len()) } else { 0 }
}

/// A kill between the state and the file it speaks of, and after the file: neither loses nor doubles rows.
#[test]
fn a_state_is_believed_as_far_as_files_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
    let mut parts = Parts::open(&state, &directory, false, "o").unwrap();
    let source = Ring::split(50, &parts.done(), 20);
    run(&mut parts, &source).unwrap_err();
    let files = parts.files();
    drop(parts);
    assert_eq!(files, 2);
    let text = fs::read_to_string(&state).unwrap();
    let text = unsealed(&text).unwrap();
    let more = text.replace("finished", "part 500 549 5 99 part-never.parquet\nfinished");
    fs::write(&state, sealed(&more)).unwrap();
    let mut parts = Parts::open(&state, &directory, true, "o").unwrap();
    assert!(!parts.done().iter().any(|tokens| tokens.contains(&500)));
    let source = Ring::split(50, &parts.done(), 99);
    run(&mut parts, &source).unwrap();
    drop(parts);
    assert_eq!(rows_of(&directory), all());
}

/// Files that appeared are looked at before a copy goes on, or says that it was finished.
#[test]
fn a_part_that_is_another_file_by_now_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
    let mut parts = Parts::open(&state, &directory, false, "o").unwrap();
    let source = Ring::split(50, &parts.done(), 99);
    run(&mut parts, &source).unwrap();
    drop(parts);
    let error = || Parts::open(&state, &directory, true, "o").unwrap_err().to_string();
    let mut files: Vec<PathBuf> = fs::read_dir(&directory).unwrap().map(|it| it.unwrap().path()).collect();
    files.sort_unstable();
    let (first, whole) = (&files[0], fs::read(&files[0]).unwrap());
    fs::write(first, &whole[..whole.len() / 2]).unwrap();
    assert!(error().contains("it is not what this copy wrote: it has "), "{}", error());
    fs::write(first, vec![0; whole.len()]).unwrap();
    assert!(error().contains("remove it to have its rows copied again"), "{}", error());
    fs::write(first, &whole).unwrap();
    assert!(Parts::open(&state, &directory, true, "o").unwrap().is_finished());
    fs::copy(first, directory.join("mine.parquet")).unwrap();
    assert!(error().contains("mine.parquet: this copy did not write it"), "{}", error());
    fs::remove_file(directory.join("mine.parquet")).unwrap();
    // It is believed only as it was written.
    let text = fs::read_to_string(&state).unwrap();
    fs::write(&state, text.replacen("part -", "part ", 1)).unwrap();
    assert!(error().contains("its checksum"), "{}", error());
}

/// How a table is reached is none of the state's business.
#[test]
fn encryption_may_be_asked_for_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
    let open = || Parts::open(&state, &directory, true, "o").unwrap();
    let named = |name: &str, parts: &Parts, fails_after| {
        let mut ring = Ring::new(50, &parts.done(), fails_after);
        ring.table.name = name.to_owned();
        Arc::new(ring) as Arc<dyn Source>
    };
    let mut parts = open();
    let source = named("cql://h/k.t?tls=yes", &parts, 20);
    run(&mut parts, &source).unwrap_err();
    drop(parts);
    let text = fs::read_to_string(&state).unwrap();
    assert!(text.contains("\nsource \"k.t (1, "), "{text}");
    let mut parts = open();
    let source = named("cql://other/k.t", &parts, 99);
    run(&mut parts, &source).unwrap();
    drop(parts);
    assert_eq!(rows_of(&directory), all());
}

/// A table without rows is a directory with a file without rows, which can be read.
#[test]
fn a_table_without_rows_has_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
    let open = || Parts::open(&state, &directory, true, "o").unwrap();
    let empty = |parts: &Parts| {
        let mut ring = Ring::new(50, &parts.done(), 99);
        ring.pieces.retain(|piece| piece.tokens.is_some_and(|(start, _)| (0..100).contains(&start)));
        Arc::new(ring) as Arc<dyn Source>
    };
    let mut parts = open();
    let source = empty(&parts);
    let copied = run(&mut parts, &source).unwrap();
    assert_eq!((copied.rows, copied.written.files, parts.files(), parts.rows()), (0, 1, 1, 0));
    drop(parts);
    assert_eq!(rows_of(&directory), [0_i64; 0]);
    let parts = open();
    assert!(parts.is_finished());
    // Without its file it is not complete, and made again.
    let file = fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&file).unwrap();
    drop(parts);
    let mut parts = open();
    assert!(!parts.is_finished());
    let source = empty(&parts);
    assert_eq!(run(&mut parts, &source).unwrap().written.files, 1);
    assert!(file.exists());
}

/// The statements are there when all files are, and only then.
#[test]
fn what_is_begun_anew_is_not_complete() {
    let folder = tempfile::tempdir().unwrap();
    let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
    let run = |fails_after| {
        let mut parts = Parts::open(&state, &directory, true, "o").unwrap();
        let mut ring = Ring::new(50, &parts.done(), fails_after);
        let value = Some(marquetry_base::Bytes::from(b"CREATE TABLE".to_vec()));
        let statements = marquetry_parquet::format::KeyValue { key: TABLE_SCHEMA_KEY.to_owned(), value };
        ring.table.key_values.push(statements);
        run(&mut parts, &(Arc::new(ring) as Arc<dyn Source>))
    };
    let is_complete = || directory.join(SCHEMA_FILE).exists();
    run(99).unwrap();
    assert!(is_complete());
    run(0).unwrap();
    assert!(is_complete());
    let is_part = |path: &PathBuf| path.extension().is_some_and(|it| it == "parquet");
    let lost = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).find(is_part);
    fs::remove_file(lost.unwrap()).unwrap();
    run(0).unwrap_err();
    assert!(!is_complete());
    run(99).unwrap();
    assert!(is_complete());
    fs::remove_file(directory.join(SCHEMA_FILE)).unwrap();
    assert_eq!(rows_of(&directory), all());
}

#[test]
fn only_what_it_began_with() {
    let folder = tempfile::tempdir().unwrap();
    let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
    let open = |directory: &Path, options: &str| Parts::open(&state, directory, true, options);
    let mut parts = open(&directory, "o").unwrap();
    assert!(Parts::open(&state, &directory, true, "o").unwrap_err().to_string().contains("in use"));
    let source = Ring::split(50, &[], 20);
    run(&mut parts, &source).unwrap_err();
    drop(parts);
    let told = |made: Result<Parts>| made.unwrap_err().to_string();
    assert!(told(open(&directory, "other")).contains("other options"));
    drop(open(&directory.join(""), "o").unwrap());
    assert!(told(open(&folder.path().join("other"), "o")).contains("a copy into"));
    let mut parts = open(&directory, "o").unwrap();
    let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
    let mut table = Table::new("ring", Arc::new(Schema::of_fields(&[id]).unwrap()));
    table.identity = Some("2".to_owned());
    let other: Arc<dyn Source> =
        Arc::new(Ring { table, pieces: Vec::new(), opened: AtomicU64::new(0), fails_after: 0 });
    assert!(run(&mut parts, &other).unwrap_err().to_string().contains("another table"));
    drop(parts);
    // A directory with something in it is nobody's to fill.
    fs::remove_file(&state).unwrap();
    assert_eq!(open(&directory, "o").unwrap_err().detail(), Some(Detail::AlreadyExists));
    for wrong in [
        "",
        "marquetry unload, version 1\n",
        "marquetry unload, version 2\nsource \"a\"\ndirectory \"b\"\noptions \"c\"\npart 5 4 0 0 -\nfinished no\n",
        "marquetry unload, version 2\nsource \"a\"\ndirectory \"b\"\noptions \"c\"\nfinished yes\n",
    ] {
        let is_sealed = wrong.ends_with("no\n");
        fs::write(&state, if is_sealed { sealed(wrong) } else { wrong.to_owned() }).unwrap();
        assert_eq!(open(&directory, "o").unwrap_err().kind(), ErrorKind::Corrupt, "{wrong}");
    }
}
