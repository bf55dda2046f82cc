//! What several files hold as one table: the sums of [`records`](crate::records) over all of them.

use std::sync::Arc;

use marquetry_base::{Bytes, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::Array;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{Conform, ConformReader, ReadOptions};
use marquetry_parquet::record::Program;
use marquetry_parquet::schema::{Plan, Schema};

use crate::canonical::FILE;
use crate::hostile::{self, Manner};
use crate::records::{ArraySums, FieldSum, Summing, check_batch, tell};

/// A file, and its footer.
pub type Part = (Bytes, Arc<FileMetaData>);

/// Reads all rows of all files as those of `schema`, as records and as arrays, which must be the same; says the sums.
///
/// # Errors
///
/// The machines', and those of planning.
///
/// # Panics
///
/// When batches contradict themselves or the schema, or arrays the records.
pub fn conformed_sums(
    parts: &[Part],
    schema: &Arc<Schema>,
    options: &ReadOptions,
    manner: Manner,
) -> Result<Vec<FieldSum>> {
    let leaves = 0..schema.leaves().len();
    let program = Program::plan(Arc::clone(schema), None).at_once()?;
    let mut sink = Summing::new(schema, &program);
    let mut arrays = ArraySums::new(schema, None);
    for (bytes, metadata) in parts {
        let conform =
            Arc::new(Conform::plan(Arc::clone(&metadata.schema), Arc::clone(schema), &[]).at_once()?);
        let codecs = Arc::new(StandardCodecs::default());
        let mut reader =
            ConformReader::new(FILE, Arc::clone(metadata), codecs, options.clone(), conform, Vec::new())?;
        let mut next_row = 0;
        hostile::run(&mut reader, FILE, bytes, manner, |batch| {
            assert_eq!(batch.first_row, next_row, "a batch that does not follow the one before");
            assert!(batch.rows > 0 && batch.rows <= options.batch_rows);
            next_row += batch.rows as u64;
            assert!(batch.columns.iter().map(|column| column.leaf).eq(leaves.clone()));
            check_batch(schema, &batch);
            check_slices(schema, &batch)?;
            arrays.add(&batch)?;
            tell(&program, &batch, &mut sink, manner.budget)
        })?;
        assert_eq!(next_row, metadata.row_groups.iter().map(|group| group.rows).sum::<u64>());
    }
    let sums = sink.finish();
    assert_eq!(sums, arrays.finish(), "arrays are not what records are");
    Ok(sums)
}

/// A part of a batch is what the whole is there.
fn check_slices(schema: &Schema, batch: &marquetry_parquet::batch::Batch) -> Result<()> {
    if batch.rows < 3 {
        return Ok(());
    }
    let range = 1..batch.rows - 1;
    let parts: Vec<_> = batch.columns.iter().map(|column| column.slice(range.clone())).collect();
    for node in schema.children(0).take(3) {
        let shape = schema.shape(node);
        if shape.first_leaf().is_none() {
            continue;
        }
        let part = Array::assemble(shape, range.len(), &|leaf| parts.get(leaf))?;
        let whole = Array::assemble(shape, batch.rows, &|leaf| batch.columns.get(leaf))?;
        for row in 0..range.len() {
            assert_eq!(
                crate::records::slot(schema, &part, row),
                crate::records::slot(schema, &whole, row + 1)
            );
        }
    }
    Ok(())
}
