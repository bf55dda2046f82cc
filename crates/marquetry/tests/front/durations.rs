//! Arrow's durations, which a Parquet file keeps with their unit, and a table of a cluster cannot.

use std::sync::Arc;

use arrow_array::types::DurationMicrosecondType;
use arrow_array::{ArrayRef, Int64Array, PrimitiveArray, RecordBatch, RecordBatchIterator};
use marquetry::Reader;
use marquetry::base::{Detail, Error, ErrorKind};
use marquetry::cluster::{CqlOptions, CqlTable, TableLayout};
use marquetry::scylla::bridge::MappingOptions;
use marquetry::scylla::cql::KeySpec;
use marquetry::tables::Destination;

fn batch() -> RecordBatch {
    let took: ArrayRef = Arc::new(PrimitiveArray::<DurationMicrosecondType>::from_iter_values([7, -1]));
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values([1, 2]));
    RecordBatch::try_from_iter([("id", id), ("took", took)]).unwrap()
}

fn incoming() -> Reader {
    Reader::of_record_batches("rows", RecordBatchIterator::new([Ok(batch())], batch().schema())).unwrap()
}

/// The error of a load into a cluster that nobody runs.
fn loaded(rows: &Reader, layout: Option<TableLayout>, columns: Option<Vec<String>>) -> Error {
    let key = Some(KeySpec::parse("id").unwrap());
    let mapping = MappingOptions { key, columns, ..MappingOptions::default() };
    let mut options = CqlOptions::create(mapping);
    options.layout = layout;
    options.retry_for = std::time::Duration::ZERO;
    let mut table = CqlTable::new("cql://127.0.0.1:1/ks.t".parse().unwrap(), options);
    table.begin(rows.table()).map(drop).unwrap_err()
}

#[test]
fn their_unit_is_not_lost_in_a_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let mut file = marquetry::create_arrow(&path, &batch().schema()).unwrap();
    file.write_arrow(&batch()).unwrap();
    file.finish().unwrap();
    // Two files of which each has an Arrow schema.
    let second = folder.path().join("second.parquet");
    std::fs::copy(&path, &second).unwrap();
    let both = marquetry::open_all([&path, &second], &marquetry::SourceOptions::default()).unwrap();
    for rows in [incoming(), marquetry::open(&path).unwrap(), both] {
        assert_eq!(rows.table().durations, [1]);
        for layout in [None, Some(TableLayout::Wide), Some(TableLayout::Blob)] {
            let error = loaded(&rows, layout, None);
            assert_eq!(error.kind(), ErrorKind::Conversion, "{error}");
            assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["types"])), "{error}");
            assert_eq!(error.place().column.as_deref(), Some("took"), "{error}");
        }
        // Whatever else is done with them, but for saying what they become.
        let other = rows.clone().types("id=int").unwrap().rename("took=lasted").unwrap();
        let other = other.columns(["lasted", "id"]).unwrap();
        assert_eq!(other.table().durations, [0]);
        assert_eq!(loaded(&other, None, None).place().column.as_deref(), Some("lasted"));
        let numbers = rows.clone().types("took=bigint").unwrap();
        let texts = rows.clone().types("took=text").unwrap();
        let without = rows.clone().columns(["id"]).unwrap();
        for fit in [&numbers, &texts, &without, &numbers.clone().columns(["took", "id"]).unwrap()] {
            let error = loaded(fit, None, None);
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        }
        let error = loaded(&rows, None, Some(vec!["ID".to_owned()]));
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert_eq!(loaded(&rows, None, Some(vec!["Took".to_owned()])).kind(), ErrorKind::Conversion);
    }
}
