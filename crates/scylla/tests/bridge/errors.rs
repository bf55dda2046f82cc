//! Invalid rows, and invalid batches.

use std::sync::Arc;

use marquetry_base::ErrorKind;
use marquetry_parquet::batch::{Batch, Layout};
use marquetry_scylla::bridge::{InsertWriter, Mapping, MappingOptions, Nulls};

use crate::batch::{batch, bytes, cell, dictionary, int32, int64, keyed, mapped, mapping, numbered, text};
use crate::schema::{BYTE_ARRAY, Field, INT32, Note, UTF8, leaf};

fn pair() -> [Field; 2] {
    [leaf("a", BYTE_ARRAY, UTF8), leaf("b", BYTE_ARRAY, Note::None)]
}

fn two_rows(first: &str, second: &str) -> Batch {
    batch(vec![(bytes(&["k", first]), None), (bytes(&["k", second]), None)])
}

/// Text and cells agree on whether the second row is valid.
#[track_caller]
fn second_row(mapping: &Mapping, batch: &Batch) -> Result<(), String> {
    let text = text(mapping, batch).map(drop).map_err(|error| error.to_string());
    let mut cells = (0..mapping.columns().len()).map(|column| cell(mapping, column, batch, 1));
    let error = cells.find_map(|cell| cell.err()).map(|error| error.to_string());
    assert_eq!(text.clone().err(), error);
    text
}

#[test]
fn null_keys() {
    for nulls in [Nulls::Unset, Nulls::Null] {
        let by = |key| mapping(&pair(), &MappingOptions { nulls, ..keyed(key) }).unwrap();
        let valid: &[u8] = &[1, 0];
        let batch = batch(vec![(bytes(&["k", "l"]), None), (bytes(&["k", ""]), Some(valid))]);
        let message = "a column of the primary key is null (column b, row 1001, row group 2)".to_owned();
        for key in ["b", "(a, b)", "a, b"] {
            assert_eq!(second_row(&by(key), &batch), Err(message.clone()), "{key}");
        }
        assert_eq!(second_row(&by("a"), &batch), Ok(()));
    }
}

#[test]
fn empty_keys() {
    let by = |key| mapping(&pair(), &keyed(key)).unwrap();
    let message =
        |column| Err(format!("the partition key is empty (column {column}, row 1001, row group 2)"));
    assert_eq!(second_row(&by("a"), &two_rows("", "x")), message("a"));
    assert_eq!(second_row(&by("b, a"), &two_rows("x", "")), message("b"));
    // A part of a composite key and a clustering column may be empty.
    for key in ["(a, b)", "b, a"] {
        assert_eq!(second_row(&by(key), &two_rows("", "x")), Ok(()));
    }
    // In a dictionary, too, each time.
    let values = Arc::new(bytes(&["k", ""]));
    let batch = batch(vec![(dictionary(&[0, 1], &values), None), (bytes(&["", ""]), None)]);
    let mapping = by("a");
    let batch = mapped(&mapping, &batch);
    let mut writer = InsertWriter::new(&mapping);
    for _ in 0..2 {
        let mut out = Vec::new();
        let error = writer.write(&batch, 0..2, 0, &mut out, usize::MAX).unwrap_err();
        assert_eq!(Err(error.to_string()), message("a"));
        assert_eq!(out, b"INSERT INTO t (a, b) VALUES ('k', 0x);\n");
    }
}

#[test]
fn long_keys() {
    let longest = "x".repeat(65_535);
    let by_a = mapping(&pair(), &keyed("a")).unwrap();
    assert_eq!(second_row(&by_a, &two_rows(&longest, "")), Ok(()));
    let message = "a partition key of 65536 bytes, more than 65535 (column a, row 1001, row group 2)";
    assert_eq!(second_row(&by_a, &two_rows(&(longest.clone() + "x"), "")), Err(message.to_owned()));
    assert_eq!(second_row(&by_a, &two_rows("a", &(longest + "x"))), Ok(()));
}

#[test]
fn what_is_printed_is_whole_statements() {
    let mapping = mapping(&pair(), &keyed("b")).unwrap();
    let rows = batch(vec![(bytes(&[&b"fine"[..], b"\xff", b"fine"]), None), (bytes(&["k", "l", "m"]), None)]);
    let rows = mapped(&mapping, &rows);
    let mut out = b"-- before\n".to_vec();
    let mut writer = InsertWriter::new(&mapping);
    let error = writer.write(&rows, 0..3, 0, &mut out, usize::MAX).unwrap_err();
    assert_eq!(error.place().row, Some(1001));
    assert_eq!(String::from_utf8(out).unwrap(), "-- before\nINSERT INTO t (a, b) VALUES ('fine', 0x6b);\n");
    // The writer continues.
    let mut out = Vec::new();
    writer.write(&rows, 2..3, 0, &mut out, usize::MAX).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "INSERT INTO t (a, b) VALUES ('fine', 0x6d);\n");
}

#[test]
fn row_numbers_beyond_bigint() {
    let mapping = mapping(&pair(), &numbered()).unwrap();
    let batch = mapped(&mapping, &two_rows("x", "y"));
    let mut out = Vec::new();
    let last = i64::MAX as u64;
    let error = InsertWriter::new(&mapping).write(&batch, 0..2, last, &mut out, usize::MAX).unwrap_err();
    assert_eq!(error.to_string(), "the row's number is beyond a bigint (column n, row 1001, row group 2)");
    assert!(out.ends_with(b"(9223372036854775807, 'k', 0x6b);\n"));
    let mut bound = mapping.bind(&batch, last).unwrap();
    assert!(bound.write_cell(0, 0, &mut out).is_ok());
    assert!(bound.write_cell(0, 1, &mut out).is_err());
    assert!(mapping.bind(&batch, u64::MAX).unwrap().write_cell(0, 1, &mut out).is_err());
    assert!(InsertWriter::new(&mapping).write(&batch, 1..2, u64::MAX, &mut out, usize::MAX).is_err());
}

#[track_caller]
fn misused(mapping: &Mapping, batch: &Batch, message: &str) {
    for error in [text(mapping, batch).unwrap_err(), cell(mapping, 0, batch, 0).unwrap_err()] {
        assert_eq!((error.kind(), error.message()), (ErrorKind::Misuse, message));
    }
}

#[test]
fn batches_of_another_make() {
    let mapping = mapping(&[leaf("a", INT32, Note::None)], &keyed("a")).unwrap();
    let fine = batch(vec![(int32(&[1, 2]), None)]);
    assert!(text(&mapping, &fine).is_ok());
    let changed = |change: &dyn Fn(&mut Batch)| {
        let mut batch = fine.clone();
        change(&mut batch);
        batch
    };
    let message = "the batch lacks leaves of Mapping::leaves";
    misused(&mapping, &changed(&|batch| batch.columns[0].leaf = 1), message);
    misused(&mapping, &changed(&|batch| batch.columns.clear()), message);
    let message = "the numbers of values and rows of the batch differ";
    misused(&mapping, &changed(&|batch| batch.rows = 3), message);
    misused(
        &mapping,
        &changed(&|batch| batch.columns[0].validity = Some([true].into_iter().collect())),
        message,
    );
    let message = "the types of the batch differ from the schema's";
    misused(&mapping, &changed(&|batch| batch.columns[0].values = int64(&[1, 2])), message);
    let nested = Arc::new(dictionary(&[0], &Arc::new(int32(&[1]))));
    misused(&mapping, &changed(&|batch| batch.columns[0].values = dictionary(&[0, 0], &nested)), message);
    let dense = changed(&|batch| {
        batch.columns[0].layout = Layout::Dense;
        batch.columns[0].validity = Some([true, false].into_iter().collect());
    });
    misused(&mapping, &dense, "the batch has the layout Dense; Spaced is needed");
    assert!(text(&mapping, &changed(&|batch| batch.columns[0].layout = Layout::Dense)).is_ok());
    let beyond =
        changed(&|batch| batch.columns[0].values = dictionary(&[3, 0], &Arc::new(int32(&[1, 2, 3]))));
    misused(&mapping, &beyond, "an index beyond its dictionary");

    let fine = mapped(&mapping, &fine);
    let mut out = Vec::new();
    let mut writer = InsertWriter::new(&mapping);
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is refused")]
    for rows in [0..3, 2..1, 3..3] {
        assert_eq!(writer.write(&fine, rows, 0, &mut out, 0).unwrap_err().kind(), ErrorKind::Misuse);
    }
    let mut bound = mapping.bind(&fine, 0).unwrap();
    assert_eq!(bound.write_cell(1, 0, &mut out).unwrap_err().message(), "column 1 of 1");
    assert_eq!(bound.write_cell(0, 2, &mut out).unwrap_err().message(), "row 2 of a batch of 2 rows");
    assert_eq!(out, b"");
}
