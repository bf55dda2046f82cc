//! What fails stays failed: no file appears that lacks rows, and no stream ends as if it were complete.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::{ArrayRef, Int64Array, RecordBatch, TimestampSecondArray};
use arrow_schema::{DataType, Field, Schema as ArrowSchema, TimeUnit};
use futures_util::StreamExt;
use marquetry::base::ErrorKind;
use marquetry::batch::Batch;
use marquetry::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry::tables::{Batches, Piece, PieceOptions, Source, Table};
use marquetry::{Reader, Result};

#[test]
fn a_writer_that_failed_stays_failed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let schema = ArrowSchema::new(vec![Field::new("ts", DataType::Timestamp(TimeUnit::Second, None), true)]);
    let times = |wrong: Option<i64>| {
        let values = (0..100_000).map(|n| if Some(n) == wrong { i64::MAX } else { n });
        let column: ArrayRef = Arc::new(TimestampSecondArray::from_iter_values(values));
        RecordBatch::try_new(Arc::new(schema.clone()), vec![column]).unwrap()
    };
    let mut writer = marquetry::create_arrow(&path, &schema).unwrap();
    let error = writer.write_arrow(&times(Some(90_000))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conversion, "{error}");
    assert_eq!(writer.write_arrow(&times(None)), Err(error.clone()));
    assert_eq!(writer.finish(), Err(error));
    assert!(!path.exists());

    // Whatever the error is, and whoever makes the rows.
    let other: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3));
    let other = RecordBatch::try_from_iter([("other", other)]).unwrap();
    let rows = || Batch::of_values([vec![1_i64, 2, 3].into()]).unwrap();
    let two = || Batch::of_values([vec![1_i64].into(), vec![2_i64].into()]).unwrap();
    for refused in [
        |writer: &mut marquetry::Writer, other: &RecordBatch, _: Batch| writer.write_arrow(other),
        |writer: &mut marquetry::Writer, _: &RecordBatch, two: Batch| writer.write(two),
    ] {
        let field = FieldDef::new("n", FieldType::Leaf(PhysicalType::Int64, None));
        let mut writer = marquetry::create(&path, Schema::of_fields(&[field]).unwrap()).unwrap();
        writer.write(rows()).unwrap();
        let error = refused(&mut writer, &other, two()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert_eq!(writer.write(rows()), Err(error.clone()));
        assert_eq!(writer.finish(), Err(error));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
    }
}

/// A source that panics where it is asked for its pieces, once it has handed out rows.
struct Broken {
    table: Table,
    pieces: [Piece; 1],
    is_broken: Arc<AtomicBool>,
}

impl Broken {
    fn new() -> Broken {
        let n = FieldDef::new("n", FieldType::Leaf(PhysicalType::Int64, None)).required();
        let table = Table::new("broken", Arc::new(Schema::of_fields(&[n]).unwrap()));
        Broken { table, pieces: [Piece::of("a piece")], is_broken: Arc::default() }
    }
}

impl Source for Broken {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        assert!(!self.is_broken.load(Ordering::Relaxed), "a bug in a source");
        &self.pieces
    }

    fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(Three(Some(Batch::of_values([vec![1_i64, 2, 3].into()])?), Arc::clone(&self.is_broken))))
    }
}

struct Three(Option<Batch>, Arc<AtomicBool>);

impl Batches for Three {
    fn next(&mut self) -> Result<Option<Batch>> {
        let next = self.0.take();
        self.1.store(next.is_none(), Ordering::Relaxed);
        Ok(next)
    }
}

#[tokio::test]
async fn a_stream_whose_thread_died_does_not_end_as_if_complete() {
    let mut stream = Reader::of(Broken::new()).threads(0).stream().unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap().rows, 3);
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind(), ErrorKind::Internal);
    assert!(stream.next().await.is_none());
}
