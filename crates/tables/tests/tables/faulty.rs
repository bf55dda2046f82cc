//! Sources that are wrong: what they do is an error, and never rows that they do not have, a panic or a wait without end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use marquetry_base::{Bitmap, ErrorKind, Result};
use marquetry_parquet::batch::{Batch, Layout, Values};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::text::{Format, NewTextFile, TextOutputOptions};
use marquetry_tables::{
    Batches, Cancel, ColumnPath, CopyOptions, Destination, Piece, PieceOptions, Reading, ReadingOptions,
    Source, Table, copy, limit, project,
};

/// A source whose pieces a function opens.
struct Made<F> {
    table: Table,
    pieces: Vec<Piece>,
    open: F,
}

impl<F: Fn(usize, &PieceOptions) -> Box<dyn Batches> + Send + Sync + 'static> Made<F> {
    /// Of two columns, a number that is required and a text that may be null.
    fn source(pieces: usize, open: F) -> Arc<dyn Source> {
        Made::with(
            &[leaf("n", PhysicalType::Int64).required(), leaf("text", PhysicalType::ByteArray)],
            pieces,
            open,
        )
    }

    fn with(fields: &[FieldDef], pieces: usize, open: F) -> Arc<dyn Source> {
        let table = Table::new("made", Arc::new(Schema::of_fields(fields).unwrap()));
        let pieces = (0..pieces).map(|number| Piece::of(format!("piece {number}"))).collect();
        Arc::new(Made { table, pieces, open })
    }
}

fn leaf(name: &str, physical: PhysicalType) -> FieldDef {
    FieldDef::new(name, FieldType::Leaf(physical, None))
}

impl<F: Fn(usize, &PieceOptions) -> Box<dyn Batches> + Send + Sync> Source for Made<F> {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok((self.open)(piece, options))
    }
}

/// Batches that a function makes.
struct Rows<F>(F);

impl<F: FnMut() -> Result<Option<Batch>> + Send> Batches for Rows<F> {
    fn next(&mut self) -> Result<Option<Batch>> {
        (self.0)()
    }
}

fn batch(rows: usize) -> Batch {
    let texts = (0..rows).map(|n| format!("text {n}")).collect();
    Batch::of_values([(0_i64..).take(rows).collect::<Vec<_>>().into(), texts]).unwrap()
}

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// Batches that are not what the schema says are refused before anything of them is written, wherever they go.
#[test]
fn batches_of_another_shape_are_refused() {
    let faults: [fn(&mut Batch); 8] = [
        |batch| batch.columns[0].values = vec![1_i64, 2].into(),
        |batch| batch.columns[1].values = ["a"].into_iter().collect(),
        |batch| batch.rows = 4,
        |batch| batch.columns[0].values = vec![1.0, 2.0, 3.0].into(),
        |batch| {
            (batch.columns[0].nulls, batch.columns[0].validity) =
                (1, Some([true, false, true].into_iter().collect()));
        },
        |batch| batch.columns[1].validity = Some([true].into_iter().collect()),
        |batch| {
            let texts = batch.columns[1].values.clone();
            batch.columns[1].values = Values::Dictionary(vec![0, 1, 3].into(), Arc::new(texts));
        },
        |batch| (batch.columns[1].layout, batch.columns[1].nulls) = (Layout::Dense, 1),
    ];
    let folder = tempfile::tempdir().unwrap();
    for (number, fault) in faults.into_iter().enumerate() {
        let made = Made::source(1, move |_, _| {
            let mut wrong = batch(3);
            fault(&mut wrong);
            let mut all = [batch(3), wrong].into_iter();
            Box::new(Rows(move || Ok(all.next())))
        });
        let first = ColumnPath::parse_list("text, n").unwrap();
        for source in [&made, &limit(&made, 5), &project(&made, &first).unwrap()] {
            let text = |format: Format, name: &str| -> Box<dyn Destination> {
                let path = folder.path().join(name);
                Box::new(NewTextFile::new(path, format, TextOutputOptions::default()).unwrap())
            };
            let parquet = NewParquetFile::new(folder.path().join("a.parquet"), ParquetOptions::default());
            let to: [Box<dyn Destination>; 4] = [
                text(Format::Csv, "a.csv"),
                text(Format::Tsv, "a.tsv"),
                text(Format::JsonLines, "a.jsonl"),
                Box::new(parquet.unwrap()),
            ];
            for mut to in to {
                let mut options = CopyOptions::default();
                options.threads = Some(2 * (number % 2));
                let copied =
                    catch_unwind(AssertUnwindSafe(|| copy(source, to.as_mut(), &options, &mut |_| {})));
                let error = copied.expect("a panic").expect_err(&format!("fault {number}"));
                assert_eq!(error.kind(), ErrorKind::Misuse, "fault {number}: {error}");
                assert_eq!(error.place().object.as_deref(), Some("piece 0"), "{error}");
            }
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing appears");
}

/// Rows, and a panic when they are dropped.
struct PanicsInDrop(Option<Batch>);

impl Batches for PanicsInDrop {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(self.0.take())
    }
}

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("a bug in a source");
    }
}

#[test]
fn a_panic_in_drop_is_an_error() {
    let made = Made::source(2, |_, _| Box::new(PanicsInDrop(Some(batch(3)))));
    for threads in [0, 2] {
        for source in [&made, &limit(&made, 100)] {
            let mut options = ReadingOptions::default();
            options.threads = Some(threads);
            let mut reading = Reading::new(Arc::clone(source), options).unwrap();
            assert_eq!(reading.next_batch().unwrap().unwrap().1.rows, 3);
            let error = reading.next_batch().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal);
            assert_eq!(reading.next_batch().unwrap_err(), error);
        }
        // Nobody wants its rows any more: there is no one to report to, and nothing to fail.
        let mut options = ReadingOptions::default();
        options.threads = Some(threads);
        let mut reading = Reading::new(Arc::clone(&made), options).unwrap();
        assert!(reading.next_batch().unwrap().is_some());
        drop(reading);
    }
}

/// Pieces that go on do not keep a copy from looking whether it was cancelled.
#[test]
fn cancel_is_seen_while_other_pieces_go_on() {
    let made = Made::source(2, |piece, options| {
        let (cancel, started) = (options.cancel.clone(), Instant::now());
        Box::new(Rows(move || {
            if piece == 1 {
                thread::sleep(Duration::from_millis(20));
                return Ok(Some(batch(1)));
            }
            // It waits for what cannot be cancelled.
            while started.elapsed() < LONG / 4 {
                thread::sleep(Duration::from_millis(5));
            }
            cancel.check()?;
            Ok(None)
        }))
    });
    let cancel = Cancel::new();
    let mut options = ReadingOptions::default();
    (options.threads, options.cancel) = (Some(2), cancel.clone());
    let mut reading = Reading::new(made, options).unwrap();
    let cancelling = thread::spawn(move || {
        thread::sleep(Duration::from_millis(100));
        cancel.cancel();
        Instant::now()
    });
    assert_eq!(reading.next_batch().unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(cancelling.join().unwrap().elapsed() < LONG / 10);
}

/// Batches of nulls alone, which have no values, wait as others do: only so many.
#[test]
fn batches_without_values_are_bounded() {
    let made = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&made);
    let fields = [leaf("text", PhysicalType::ByteArray)];
    let source = Made::with(&fields, 2, move |piece, options| {
        let (cancel, made) = (options.cancel.clone(), Arc::clone(&counted));
        Box::new(Rows(move || {
            if piece == 0 {
                while !cancel.is_set() {
                    thread::sleep(Duration::from_millis(5));
                }
                return Ok(None);
            }
            made.fetch_add(1, Ordering::Relaxed);
            let mut batch = Batch::of_values([Values::from_iter([""; 0])])?;
            batch.rows = 32 << 20;
            let column = &mut batch.columns[0];
            (column.rows, column.nulls, column.layout) = (batch.rows, batch.rows, Layout::Dense);
            // 4 MiB of it.
            column.validity = Some(Bitmap::new(vec![0_u8; batch.rows / 8].into(), 0, batch.rows));
            Ok(Some(batch))
        }))
    });
    let mut options = ReadingOptions::default();
    options.threads = Some(2);
    let reading = Reading::new(source, options).unwrap();
    // 16 MiB of them may wait: 8 MiB for each thread.
    let (started, mut seen) = (Instant::now(), 0);
    while started.elapsed() < LONG / 4 && seen < 4 {
        seen = made.load(Ordering::Relaxed);
        thread::sleep(Duration::from_millis(5));
    }
    thread::sleep(Duration::from_millis(300));
    assert!((3..=6).contains(&made.load(Ordering::Relaxed)), "{made:?} batches");
    drop(reading);
}
