//! Record batches of others, as batches.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, RecordBatchIterator};
use marquetry::Reader;
use marquetry::tables::PieceOptions;

/// The rows of each batch of 10,000 rows of some columns.
fn rows(columns: usize, options: &PieceOptions) -> Vec<usize> {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(0..10_000));
    let named = (0..columns).map(|at| (format!("c{at}"), Arc::clone(&column)));
    let batch = RecordBatch::try_from_iter(named).unwrap();
    let given = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    let reader = Reader::of_record_batches("rows", given).unwrap();
    let mut batches = reader.source().open(0, options).unwrap();
    let next = || batches.next().unwrap().map(|batch| batch.rows);
    std::iter::from_fn(next).collect()
}

/// So that many columns are not in memory for many rows.
#[test]
fn a_batch_has_the_rows_that_its_bytes_allow() {
    let mut options = PieceOptions::default();
    assert_eq!(rows(3, &options), [8192, 1808]);
    options.batch_bytes = Some(3 * 16 * 5000);
    assert_eq!(rows(3, &options), [5000, 5000]);
    assert_eq!(rows(6, &options), [2500; 4]);
    options.batch_rows = Some(4000);
    assert_eq!(rows(3, &options), [4000, 4000, 2000]);
    options.batch_bytes = Some(1);
    assert_eq!(rows(1, &options).len(), 10_000);
}
