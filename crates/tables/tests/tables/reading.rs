//! Sources are read: to the end, to an error that stays, or until nobody wants more.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use marquetry_base::{Detail, Error, ErrorKind, Result};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::{
    Batches, BytesRead, Cancel, ColumnPath, CopyOptions, Destination, DiffOptions, Piece, PieceOptions,
    Reading, ReadingOptions, Source, Table, Wants, Written, copy, diff, limit, project,
};

/// What the second piece does after its first rows.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Ends,
    Fails,
    /// Waits for what never comes.
    Waits,
}

/// Pieces with rows `(n, -n)`, of which batches of three are read. It numbers no rows.
struct Made {
    table: Table,
    pieces: Vec<Piece>,
    rows: Vec<i32>,
    then: Then,
    /// Pieces that are open.
    open: Arc<AtomicUsize>,
}

impl Made {
    /// Pieces of so many rows, which are known if `is_known`.
    fn new(rows: &[i32], is_known: bool) -> Made {
        let piece = |(number, rows): (usize, &i32)| {
            let mut piece = Piece::of(format!("piece {number}"));
            piece.rows = u64::try_from(*rows).ok().filter(|_| is_known);
            piece
        };
        Made {
            table: Table::new("made", schema(&["n", "m"], PhysicalType::Int32)),
            pieces: rows.iter().enumerate().map(piece).collect(),
            rows: rows.to_vec(),
            then: Then::Ends,
            open: Arc::default(),
        }
    }

    fn then(then: Then) -> Made {
        Made { then, ..Made::new(&[7, 3, 7], false) }
    }

    fn source(self) -> Arc<dyn Source> {
        Arc::new(self)
    }
}

fn schema(names: &[&str], physical: PhysicalType) -> Arc<Schema> {
    let column = |name: &&str| FieldDef::new(*name, FieldType::Leaf(physical, None)).required();
    Arc::new(Schema::of_fields(&names.iter().map(column).collect::<Vec<_>>()).unwrap())
}

impl Source for Made {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        self.open.fetch_add(1, Ordering::Relaxed);
        let then = if piece == 1 { self.then } else { Then::Ends };
        let (cancel, open) = (options.cancel.clone(), Arc::clone(&self.open));
        let next: i32 = self.rows[..piece].iter().sum();
        Ok(Box::new(MadeRows { next, end: next + self.rows[piece], then, cancel, open }))
    }
}

struct MadeRows {
    next: i32,
    end: i32,
    then: Then,
    cancel: Cancel,
    open: Arc<AtomicUsize>,
}

impl Batches for MadeRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        let numbers: Vec<i32> = (self.next..self.end.min(self.next + 3)).collect();
        if let Some(last) = numbers.last() {
            self.next = last + 1;
            let negative: Vec<i32> = numbers.iter().map(|n| -n).collect();
            return Ok(Some(Batch::of_values([numbers.into(), negative.into()])?));
        }
        let started = Instant::now();
        match self.then {
            Then::Ends => Ok(None),
            Then::Fails => Err(Error::corrupt("a row that cannot be read")),
            Then::Waits => loop {
                self.cancel.check()?;
                assert!(started.elapsed() < LONG, "nobody cancels a source that waits");
                thread::sleep(Duration::from_millis(2));
            },
        }
    }
}

impl Drop for MadeRows {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

fn reading(source: &Arc<dyn Source>, threads: usize, cancel: &Cancel) -> Reading {
    let mut options = ReadingOptions::default();
    (options.threads, options.cancel) = (Some(threads), cancel.clone());
    Reading::new(Arc::clone(source), options).unwrap()
}

/// The object of each row, its number there, and its first column.
fn rows_of(source: &Arc<dyn Source>, threads: usize) -> Vec<(String, u64, i32)> {
    let mut reading = reading(source, threads, &Cancel::new());
    let mut rows = Vec::new();
    while let Some((piece, batch)) = reading.next_batch().unwrap() {
        let Values::Int32(numbers) = &batch.columns[0].values else { panic!() };
        let name = reading.name_of(piece);
        rows.extend((batch.first_row..).zip(numbers.iter()).map(|(row, n)| (name.to_string(), row, *n)));
    }
    rows
}

/// Hands out batches, and counts them; each is read from ten bytes.
struct Hundredth(Arc<AtomicUsize>, BytesRead);

impl Batches for Hundredth {
    fn next(&mut self) -> Result<Option<Batch>> {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        let batch = Batch::of_values([vec![0_i32].into(), vec![0_i32].into()])?;
        self.1.add(if number < 100 { 10 } else { 0 });
        Ok((number < 100).then_some(batch))
    }
}

/// One piece of a hundred batches.
struct Hundred(Made, Arc<AtomicUsize>);

impl Source for Hundred {
    fn table(&self) -> &Table {
        self.0.table()
    }

    fn pieces(&self) -> &[Piece] {
        self.0.pieces()
    }

    fn open(&self, _: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(Hundredth(Arc::clone(&self.1), options.bytes_read.clone())))
    }
}

#[test]
fn the_piece_whose_turn_it_is_does_not_run_far_ahead() {
    let read = Arc::new(AtomicUsize::new(0));
    let source = Hundred(Made::new(&[100], false), Arc::clone(&read));
    let mut options = ReadingOptions::default();
    options.threads = Some(1);
    let mut reading = Reading::new(Arc::new(source), options).unwrap();
    // Four wait, and one is in hand.
    let start = Instant::now();
    while read.load(Ordering::SeqCst) < 5 && start.elapsed() < Duration::from_secs(30) {
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(Duration::from_millis(50));
    assert_eq!(read.load(Ordering::SeqCst), 5);
    assert_eq!(reading.bytes_read(), 0);
    let mut rows = 0;
    while let Some((_, batch)) = reading.next_batch().unwrap() {
        rows += batch.rows;
        assert!(read.load(Ordering::SeqCst) <= rows + 5);
        // Those of rows that wait are not counted.
        assert_eq!(reading.bytes_read(), 10 * u64::try_from(rows).unwrap());
    }
    assert_eq!(rows, 100);
}

#[test]
fn an_error_stays() {
    for threads in [0, 2] {
        let mut reading = reading(&Made::then(Then::Fails).source(), threads, &Cancel::new());
        let error = loop {
            if let Err(error) = reading.next_batch() {
                break error;
            }
        };
        assert_eq!((error.kind(), error.place().object.as_deref()), (ErrorKind::Corrupt, Some("piece 1")));
        for _ in 0..2 {
            assert_eq!(reading.next_batch().unwrap_err(), error, "{threads} threads");
        }
    }
}

#[test]
fn the_end_stays() {
    let mut reading = reading(&Made::new(&[4], false).source(), 2, &Cancel::new());
    assert_eq!([3, 1].map(|_| reading.next_batch().unwrap().unwrap().1.rows), [3, 1]);
    assert!(reading.next_batch().unwrap().is_none() && reading.next_batch().unwrap().is_none());
}

/// Sets a flag a little later.
fn soon(cancel: &Cancel) -> thread::JoinHandle<()> {
    let cancel = cancel.clone();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(50));
        cancel.cancel();
    })
}

/// A source that waits is cancelled by whoever reads it, on the caller's thread or on others.
#[test]
fn a_source_that_waits_is_cancelled() {
    for (threads, rows) in [(0, None), (2, None), (2, Some(100))] {
        let made = Made::then(Then::Waits);
        let open = Arc::clone(&made.open);
        let mut options = CopyOptions::default();
        (options.threads, options.limit) = (Some(threads), rows);
        let cancelling = soon(&options.cancel);
        let error = copy(&made.source(), &mut Counted::default(), &options, &mut |_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        cancelling.join().unwrap();
        assert_all_close(&open);
    }
    let options = DiffOptions::default();
    let cancelling = soon(&options.cancel);
    let [one, other] = [Then::Waits, Then::Ends].map(|then| Made::then(then).source());
    assert_eq!(diff([&one, &other], &options, &mut |_| {}).err().unwrap().kind(), ErrorKind::Cancelled);
    cancelling.join().unwrap();
}

/// Threads that wait for a source end when nobody wants its rows any more, though nobody cancelled anything.
#[test]
fn a_source_that_waits_is_left() {
    let made = Made::then(Then::Waits);
    let (open, cancel) = (Arc::clone(&made.open), Cancel::new());
    let mut reading = reading(&made.source(), 2, &cancel);
    assert!(reading.next_batch().unwrap().is_some());
    drop(reading);
    assert_all_close(&open);
    assert!(!cancel.is_set());
}

fn assert_all_close(open: &AtomicUsize) {
    let started = Instant::now();
    while open.load(Ordering::Relaxed) > 0 {
        assert!(started.elapsed() < LONG / 4, "a piece stays open");
        thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn rows_are_numbered_for_sources_that_do_not() {
    let mut made = Made::new(&[4, 5], false);
    made.pieces[1] = Piece::of("piece 0");
    made.pieces[1].first_row = Some(4);
    let source = made.source();
    let wanted = |n: i32| ("piece 0".to_string(), u64::try_from(n).unwrap(), n);
    for threads in [0, 2] {
        assert!(rows_of(&source, threads).into_iter().eq((0..9).map(wanted)));
        let some = project(&source, &ColumnPath::parse_list("n").unwrap()).unwrap();
        assert!(rows_of(&some, threads).into_iter().eq((0..9).map(wanted)));
    }
    // One that leaves out rows says which they are.
    let mut made = Made::new(&[4], false);
    made.pieces[0].first_row = None;
    let rows = rows_of(&made.source(), 0);
    assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), [0, 1, 2, 0]);
}

/// The first rows of a table are a table: however many threads read it, whatever is known of its pieces.
#[test]
fn a_limit_is_a_source() {
    for is_known in [true, false] {
        for rows in [0, 1, 3, 4, 8, 9, 10, 17, 20] {
            let source = limit(&Made::new(&[4, 5, 0, 8], is_known).source(), rows);
            for threads in [0, 3] {
                let found: Vec<i32> = rows_of(&source, threads).into_iter().map(|row| row.2).collect();
                assert!(found.iter().copied().eq(0..rows.min(17) as i32), "{rows}: {found:?}");
            }
            // Of some columns, and of less.
            let some = project(&source, &ColumnPath::parse_list("m").unwrap()).unwrap();
            let some = limit(&limit(&some, 6), 20);
            let found: Vec<i32> = rows_of(&some, 2).into_iter().map(|row| row.2).collect();
            assert!(found.iter().copied().eq((0..rows.min(6) as i32).map(|n| -n)), "{rows}: {found:?}");
        }
    }
    // Rows keep their objects where these are known; otherwise they are those of the table.
    let (_, row, n) = rows_of(&limit(&Made::new(&[4, 5], true).source(), 6), 0).pop().unwrap();
    assert_eq!((row, n), (1, 5));
    let last = rows_of(&limit(&Made::new(&[4, 5], false).source(), 6), 0).pop().unwrap();
    assert_eq!(last, ("made".to_string(), 5, 5));
    let last = rows_of(&limit(&Made::new(&[9], false).source(), 6), 0).pop().unwrap();
    assert_eq!(last, ("piece 0".to_string(), 5, 5));
    // Nothing is read beyond them; an error names the object that it comes from.
    let fails = Made::then(Then::Fails).source();
    assert_eq!(rows_of(&limit(&fails, 8), 2).len(), 8);
    let mut reading = reading(&limit(&fails, 17), 0, &Cancel::new());
    while let Ok(Some(_)) = reading.next_batch() {}
    assert_eq!(reading.next_batch().unwrap_err().place().object.as_deref(), Some("piece 1"));
}

/// The words for columns that are missing are the same, whatever the table is.
#[test]
fn missing_columns_are_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let made = Made::new(&[4], false).source();
    let mut file = NewParquetFile::new(&path, ParquetOptions::default()).unwrap();
    copy(&made, &mut file, &CopyOptions::default(), &mut |_| {}).unwrap();
    let file: Arc<dyn Source> = Arc::new(Files::open([&path], &FilesOptions::default()).unwrap());
    let wanted = ColumnPath::parse_list("o, n.x").unwrap();
    let words = [
        "there is no column \"o\"; its columns are n, m",
        "the column \"n\" holds values, and no field \"x\"",
    ];
    for source in [&made, &file] {
        let error = project(source, &wanted).err().unwrap();
        let parts: Vec<_> = error.parts().iter().map(|part| (part.message(), part.detail())).collect();
        assert_eq!(parts, words.map(|words| (words, Some(Detail::Option("columns")))));
        let error = wanted[0].leaves(&source.table().schema).unwrap_err();
        assert_eq!((error.message(), error.kind()), (words[0], ErrorKind::Misuse));
    }
}

/// A destination that writes nothing, and shows something else.
#[derive(Default)]
struct Counted {
    written: Written,
    shows: Option<Arc<Schema>>,
    is_committed: bool,
}

impl Destination for Counted {
    fn name(&self) -> &str {
        "counted"
    }

    fn begin(&mut self, _: &Table) -> Result<Wants> {
        let mut wants = Wants::default();
        wants.can_verify = true;
        Ok(wants)
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.written.rows += batch.rows as u64;
        Ok(())
    }

    fn finish(&mut self) -> Result<Written> {
        Ok(self.written)
    }

    fn written(&self) -> Result<Option<Box<dyn Source>>> {
        let Some(schema) = &self.shows else { return Ok(None) };
        let mut made = Made::new(&[4], false);
        made.table = Table::new("counted", Arc::clone(schema));
        Ok(Some(Box::new(made)))
    }

    fn commit(&mut self) -> Result<()> {
        self.is_committed = true;
        Ok(())
    }
}

/// Rows whose bits are the same are not the same in columns of other names or types.
#[test]
fn columns_are_verified() {
    let copied = |names: &[&str], physical| {
        let mut to = Counted { shows: Some(schema(names, physical)), ..Counted::default() };
        let mut options = CopyOptions::default();
        options.verify = true;
        let copied = copy(&Made::new(&[4], false).source(), &mut to, &options, &mut |_| {});
        assert_eq!(to.is_committed, copied.is_ok());
        copied
    };
    assert_eq!(copied(&["n", "m"], PhysicalType::Int32).unwrap().verified, 4);
    for (names, physical, words) in [
        (&["m", "n"][..], PhysicalType::Int32, "the column \"m\" was written, where \"n\" was read"),
        (&["n", "m"], PhysicalType::Float, "another type"),
        (&["n"], PhysicalType::Int32, "1 columns were written, where 2 were read"),
    ] {
        let error = copied(names, physical).unwrap_err();
        assert!(error.kind() == ErrorKind::Internal && error.message().contains(words), "{error}");
    }
}
