//! Measures CQL text per second on one core, in megabytes: `cargo run --release -p marquetry-scylla --example
//! insert_throughput`.
//!
//! A batch of ten columns (integers, doubles, texts, timestamps, a boolean; three of them with nulls) is printed again
//! and again into the same buffer. The best of several rounds is reported, for plain values and for texts in
//! dictionaries, and for each column together with the key alone.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "numbers here are small, or random anyway"
)]

#[path = "../tests/bridge/schema.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod schema;

use std::sync::Arc;
use std::time::Instant;

use marquetry_base::{Bitmap, Buffer};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, Layout, Values};
use marquetry_scylla::bridge::{InsertWriter, Mapping, MappingOptions, Nulls};
use marquetry_scylla::cql::{KeySpec, TableName};
use schema::{BOOLEAN, DOUBLE, Field, INT32, INT64, Note, UTF8, leaf};

const ROWS: usize = 8192;
const ROUNDS: usize = 60;

fn main() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut columns: Vec<(Field, Values, bool)> = vec![
        (leaf("id", INT64, Note::None), int64(|row| row as i64 + 1_000_000), false),
        (leaf("delay", INT32, Note::None), int32(|_| random.below(400) as i32 - 40), true),
        (leaf("distance", INT32, Note::None), int32(|_| random.below(3000) as i32), false),
    ];
    columns.push((
        leaf("latitude", DOUBLE, Note::None),
        double(|| random.below(180_000) as f64 / 1000.0 - 90.0),
        false,
    ));
    columns.push((
        leaf("score", DOUBLE, Note::None),
        double(|| random.below(1 << 53) as f64 / (1_u64 << 53) as f64),
        true,
    ));
    let codes = texts((0..ROWS).map(|_| ["SFO", "LAX", "JFK", "ORD"][random.below(4) as usize].to_owned()));
    columns.push((leaf("origin", schema::BYTE_ARRAY, UTF8), codes, false));
    let names = texts((0..ROWS).map(|row| format!("passenger number {row} of {}", random.below(1 << 40))));
    columns.push((leaf("name", schema::BYTE_ARRAY, UTF8), names, true));
    let times = int64(|_| 1_500_000_000_000 + random.below(1 << 38) as i64);
    columns.push((leaf("departure", INT64, Note::Converted(9)), times, false));
    let remarks = texts((0..ROWS).map(|row| format!("Flüge, vom {row}. an: it's {}", "x".repeat(row % 20))));
    columns.push((leaf("remark", schema::BYTE_ARRAY, UTF8), remarks, false));
    let flags = Values::Boolean((0..ROWS).map(|row| row % 3 == 0).collect());
    columns.push((leaf("cancelled", BOOLEAN, Note::None), flags, false));

    measure("ten columns", &columns, Nulls::Unset, &mut random);
    measure("ten columns, nulls as null", &columns, Nulls::Null, &mut random);
    let mut with_dictionaries = columns.clone();
    for (_, values, _) in &mut with_dictionaries {
        if let Values::ByteArray(_) = values {
            let indices: Vec<u32> = (0..ROWS).map(|row| row as u32).collect();
            *values = Values::Dictionary(indices.into(), Arc::new(values.clone()));
        }
    }
    measure("ten columns, dictionaries of texts", &with_dictionaries, Nulls::Unset, &mut random);
    for column in &columns[1..] {
        let pair = [columns[0].clone(), column.clone()];
        measure(&format!("  id and {}", column.0.name), &pair, Nulls::Unset, &mut random);
    }
}

fn measure(what: &str, columns: &[(Field, Values, bool)], nulls: Nulls, random: &mut Random) {
    let fields: Vec<Field> = columns.iter().map(|(field, ..)| field.clone()).collect();
    let metadata = schema::metadata(&fields);
    let options =
        MappingOptions { key: Some(KeySpec::parse("id").unwrap()), nulls, ..MappingOptions::default() };
    let mapping =
        Mapping::new(&metadata.schema, TableName::parse("bench.flights").unwrap(), &options).unwrap();
    let column = |(leaf, (_, values, has_nulls)): (usize, &(Field, Values, bool))| {
        let validity: Option<Bitmap> = has_nulls.then(|| (0..ROWS).map(|_| random.below(10) > 0).collect());
        let nulls = validity.as_ref().map_or(0, |bits| bits.iter().filter(|bit| !bit).count());
        ColumnBatch {
            leaf,
            rows: ROWS,
            nulls,
            validity,
            values: values.clone(),
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        }
    };
    let columns = columns.iter().enumerate().map(column).collect();
    let mapped = mapping.assemble(Batch { row_group: 0, first_row: 0, rows: ROWS, columns }).unwrap();
    let mut writer = InsertWriter::new(&mapping);
    let mut out = Vec::new();
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut row = 0;
        // Like a command: with a buffer that is written out when full.
        while row < ROWS {
            out.clear();
            row = writer.write(&mapped, row..ROWS, 0, &mut out, 256 << 10).unwrap().next_row;
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    out.clear();
    writer.write(&mapped, 0..ROWS, 0, &mut out, usize::MAX).unwrap();
    let megabytes = out.len() as f64 / 1e6;
    let nanos = best * 1e9 / ROWS as f64;
    println!(
        "{what:36} {:7.0} MB/s {nanos:7.1} ns/row {:6.1} bytes/row",
        megabytes / best,
        megabytes * 1e6 / ROWS as f64
    );
}

fn int32(mut value: impl FnMut(usize) -> i32) -> Values {
    Values::Int32((0..ROWS).map(&mut value).collect::<Vec<_>>().into())
}

fn int64(mut value: impl FnMut(usize) -> i64) -> Values {
    Values::Int64((0..ROWS).map(&mut value).collect::<Vec<_>>().into())
}

fn double(mut value: impl FnMut() -> f64) -> Values {
    Values::Double((0..ROWS).map(|_| value()).collect::<Vec<_>>().into())
}

fn texts(values: impl Iterator<Item = String>) -> Values {
    let mut bytes = Vec::new();
    let mut views = Vec::new();
    for value in values {
        let mut view = [0; 16];
        view[..4].copy_from_slice(&u32::try_from(value.len()).unwrap().to_le_bytes());
        if value.len() <= 12 {
            view[4..4 + value.len()].copy_from_slice(value.as_bytes());
        } else {
            view[4..8].copy_from_slice(&value.as_bytes()[..4]);
            view[12..].copy_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
            bytes.extend_from_slice(value.as_bytes());
        }
        views.push(u128::from_le_bytes(view));
    }
    Values::ByteArray(ByteArrays::new(Buffer::from(views), Arc::new(vec![bytes.into()])))
}

/// xorshift64*: random enough that branches cannot be predicted.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8) % bound
    }
}
