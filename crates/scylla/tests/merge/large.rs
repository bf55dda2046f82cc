//! Rows, values and partitions that are larger than a batch: steps stay short, and batches small.

use std::sync::Arc;

use marquetry_base::{ErrorKind, Limits};
use marquetry_scylla::sstable::batch::{Continues, MutationBatch};
use marquetry_scylla::sstable::merge::{MergeOptions, Merger};
use marquetry_scylla::sstable::murmur3_token;

use crate::form::{STATIC, Sstable, Writer, read, table};
use crate::model::{Cell, Life, Marker, Partition, Row, merge_all};
use crate::{PLAIN, merged};

fn key() -> (i64, Vec<u8>) {
    let key = 1_i32.to_be_bytes().to_vec();
    (murmur3_token(&key), key)
}

fn cell(timestamp: i64, value: Vec<u8>) -> Cell {
    Cell { timestamp, life: Life::Live, value }
}

/// The column `b`, a text; and `l`, a list.
const TEXT: usize = 3;
const LIST: usize = 4;

fn written(sstable: &Sstable, every: u64) -> Vec<MutationBatch> {
    let mut count = 0;
    Writer::write(sstable, false, &mut || {
        count += 1;
        every > 0 && count % every == 0
    })
}

fn of_row(row: Row<i64>) -> Sstable {
    let mut partition = Partition::default();
    partition.rows.insert((0, 0), row);
    Sstable::from([(key(), partition)])
}

/// Values of many megabytes that differ in their last byte.
#[test]
fn long_values_are_compared_and_copied_in_parts() {
    let long = |last: u8| {
        let mut value = vec![7; 5 << 20];
        value.push(last);
        value
    };
    let inputs: Vec<Sstable> = [3, 9, 5]
        .map(|last| {
            let mut row = Row::default();
            row.cells.insert((TEXT, 0), cell(1, long(last)));
            row.cells.insert((LIST, 4), cell(1, long(10 - last)));
            of_row(row)
        })
        .to_vec();
    let batches = inputs.iter().map(|input| written(input, 0)).collect();
    let out = merged(&table(false), batches, &MergeOptions::default(), PLAIN).unwrap();
    let found = read(&out, false);
    assert!(found == merge_all(&inputs, false));
    let row = &found[&key()].rows[&(0, 0)];
    assert!(row.cells[&(TEXT, 0)].value == long(9) && row.cells[&(LIST, 4)].value == long(7));
    // The row goes on where a batch is full.
    assert_eq!(
        out.iter().map(|batch| batch.continues).collect::<Vec<_>>(),
        [Continues::Nothing, Continues::Entry]
    );
}

/// A list of some megabytes in two inputs, whose batches end anywhere in it.
#[test]
fn rows_of_many_batches() {
    let inputs: Vec<Sstable> = (0..2)
        .map(|input| {
            let mut row =
                Row { marker: Some(Marker { timestamp: 5 - input, expiry: None }), ..Row::default() };
            for path in 0..60_000 {
                if path % 3 != input {
                    row.cells.insert((LIST, path), cell(1 + path % 7 * input, vec![b'x'; 40]));
                }
            }
            of_row(row)
        })
        .collect();
    for every in [0, 5_000] {
        let batches: Vec<_> = inputs.iter().map(|input| written(input, every)).collect();
        let out = merged(&table(false), batches, &MergeOptions::default(), PLAIN).unwrap();
        assert!(read(&out, false) == merge_all(&inputs, false));
        assert!(out.len() > 5, "{}", out.len());
        for batch in &out {
            let bytes: usize = batch.columns[LIST].len() * 60;
            assert!(bytes < 2 << 20, "{bytes}");
        }
    }
}

/// A partition of many rows, which only the first input has at first, and then both.
#[test]
fn partitions_of_many_batches() {
    let mut inputs = vec![Sstable::new(), Sstable::new()];
    for (number, input) in inputs.iter_mut().enumerate() {
        let partition = input.entry(key()).or_insert_with(Partition::default);
        let start = if number == 0 { 0 } else { 20_000 };
        for at in start..30_000_i64 {
            let mut row = Row { marker: Some(Marker { timestamp: at % 5, expiry: None }), ..Row::default() };
            row.cells.insert((2, 0), cell(at % 3, i32::try_from(at).unwrap().to_be_bytes().to_vec()));
            partition.rows.insert((4 * (at / 100), 4 * (at % 100)), row);
        }
        let mut row = Row::default();
        row.cells.insert((0, 0), cell(3, vec![0, 0, 0, 1]));
        partition.rows.insert(STATIC, row);
    }
    let batches: Vec<_> = inputs.iter().map(|input| written(input, 3_000)).collect();
    for live_at in [None, Some(50)] {
        let mut options = MergeOptions::default();
        options.live_at = live_at;
        let out = merged(&table(false), batches.clone(), &options, PLAIN).unwrap();
        assert!(read(&out, false) == merge_all(&inputs, false));
        assert!(out.iter().all(|batch| batch.entries.kinds.len() <= 8192));
    }
}

/// Batches of an input that no other one interferes with are handed out themselves.
#[test]
fn one_input_passes() {
    let mut input = Sstable::new();
    for number in 0..100_i32 {
        let key = number.to_be_bytes().to_vec();
        let mut row = Row { marker: Some(Marker { timestamp: 1, expiry: None }), ..Row::default() };
        row.cells.insert((2, 0), cell(1, vec![0; 4]));
        let partition: &mut Partition<_, _> = input.entry((murmur3_token(&key), key)).or_default();
        partition.rows.insert((0, 0), row);
    }
    let batches = written(&input, 7);
    assert!(batches.len() > 10);
    for live_at in [None, Some(3)] {
        let mut options = MergeOptions::default();
        options.live_at = live_at;
        let out = merged(&table(false), vec![batches.clone(), Vec::new()], &options, PLAIN).unwrap();
        if live_at.is_none() {
            assert_eq!(out, batches);
        }
        assert_eq!(read(&out, false), input);
    }
}

/// What inputs hold counts against a limit.
#[test]
fn memory_is_limited() {
    let mut row = Row::default();
    row.cells.insert((TEXT, 0), cell(1, vec![7; 1 << 20]));
    let batches = written(&of_row(row), 0);
    let mut options = MergeOptions::default();
    options.limits = Limits { total_bytes: 3 << 19, ..Limits::DEFAULT };
    let mut merger = Merger::new(Arc::clone(&table(false)), 2, options).unwrap();
    merger.feed(0, batches[0].clone()).unwrap();
    let error = merger.feed(1, batches[0].clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    // A merger that failed stays failed.
    assert_eq!(merger.step(&mut marquetry_base::Budget::default()), Err(error));
}
