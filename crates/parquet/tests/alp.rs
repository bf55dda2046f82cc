//! ALP columns of a file by another writer, read beside the same values in dictionaries.
//!
//! `data/alp.parquet` was written by parquet-rs 60.1: 1,300 rows, a vector of 1,024 values and one of 276 in each ALP page,
//! with NaNs of several payloads, both infinities, negative zero and subnormal numbers among decimals.

mod common;

use std::sync::Arc;

use common::{NoCodecs, products};
use marquetry_base::{Bytes, Limits, Object};
use marquetry_parquet::batch::Values;
use marquetry_parquet::format::Encoding;
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};

fn bits(values: &Values) -> Vec<u64> {
    match values {
        Values::Float(values) => values.iter().map(|value| value.to_bits().into()).collect(),
        Values::Double(values) => values.iter().map(|value| value.to_bits()).collect(),
        _ => panic!("neither FLOAT nor DOUBLE"),
    }
}

#[test]
fn a_file_by_another_writer() {
    let file = Bytes::from_static(include_bytes!("data/alp.parquet"));
    let metadata =
        products(&mut FooterReader::new(Object(0), Limits::DEFAULT), &file, 1000).unwrap().remove(0);
    let columns = &metadata.row_groups[0].columns;
    for (column, alp) in columns.iter().zip([true, false, true, false]) {
        assert_eq!(column.encodings.contains(&Encoding::Alp), alp, "{:?}", column.encodings);
    }
    // Whole vectors, parts of them, and one value at a time.
    for (batch_rows, units) in [(8192, u64::MAX), (1000, 50_000), (7, 1000), (1, 1)] {
        let options = ReadOptions { batch_rows, ..ReadOptions::default() };
        let mut reader = BatchReader::new(Object(0), metadata.clone(), Arc::new(NoCodecs), options).unwrap();
        let mut rows = 0;
        for batch in products(&mut reader, &file, units).unwrap() {
            let columns: Vec<_> = batch.columns.iter().map(|column| bits(&column.values)).collect();
            assert_eq!(columns[0], columns[1], "DOUBLE, batches of {batch_rows}");
            assert_eq!(columns[2], columns[3], "FLOAT, batches of {batch_rows}");
            if rows == 0 && batch_rows > 1000 {
                assert!(columns[0].contains(&0x7ff8_0000_0000_1234) && columns[2].contains(&0x7fc0_1234));
            }
            rows += columns[0].len();
        }
        assert_eq!(rows, 1300);
    }
}
