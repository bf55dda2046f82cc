//! The longest call of the machines that write and sort, on large things: long values, long rows, very many pages, columns, row groups and pairs of
//! key-value metadata.
//!
//! Batches are made anew for each replay and handed over whole, so that what releases them is the machine. Buffers of long strings are the host's: it
//! keeps them, because nobody can release a piece of memory in parts.

use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::{Budget, Codec, Error, Limits, Machine, Object, Result, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, FixedBytes, Layout, Levels, Values};
use marquetry_parquet::format::{Compression, Encoding, KeyValue, SortingColumn};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_parquet::sort::{SortOptions, Sorted, Sorter};
use marquetry_parquet::write::{BloomOptions, ColumnOptions, Fed, FileWriter, PageVersion, WriteOptions};

use super::{Call, Calls};

const FILE: Object = Object(0);
const SPILL: Object = Object(1);

/// Something large that is written or sorted.
pub struct Large {
    /// What it is.
    pub name: &'static str,
    schema: Arc<Schema>,
    /// Makes a batch, by its number; none after the last.
    batches: Box<dyn Fn(usize) -> Option<Batch>>,
    work: Work,
}

enum Work {
    Write(Box<WriteOptions>),
    Sort(SortOptions),
}

/// What most units are of in the steps of a case, or in some of its steps.
const PRICES: &[(&str, &str)] = &[
    ("string, PLAIN", "write/page.rs CRC_PRICE"),
    ("string, PLAIN", "encoding/strings.rs SHARE_PRICE"),
    ("string, Bloom filter", "write/bloom.rs HASH_PRICE"),
    ("row of many elements, PLAIN", "write/part.rs PART_PRICE"),
    ("row of many elements, PLAIN", "write/column.rs HISTOGRAM_PRICE"),
    ("row of many elements, PLAIN", "release.rs RELEASE_PRICE"),
    ("pages of one number", "format/write/index.rs PAGE_PRICE"),
    ("many columns", "write/file.rs COLUMN_PRICE"),
    ("many columns of long names", "format/write/footer.rs ELEMENT_PRICE"),
    ("many pairs of metadata", "write/file.rs PAIR_PRICE"),
    ("numbers, Bloom filter", "bloom.rs INSERT_PRICE"),
    ("sorted: rows of many elements", "sort/stored.rs START_PRICE"),
    ("sorted: many columns", "sort/sorter.rs LEAF_PRICE"),
];

impl Large {
    /// The prices that its steps are of.
    pub fn prices(&self) -> impl Iterator<Item = &'static str> {
        PRICES.iter().filter(|(name, _)| *name == self.name).map(|(_, price)| *price)
    }
}

/// All cases; `mebi` is the size of a long value in MiB, and `thousands` the number of small things.
pub fn cases(mebi: usize, thousands: usize) -> Vec<Large> {
    let mut all = long_values(mebi << 20);
    all.extend(long_rows(mebi << 18));
    all.extend(many(thousands * 1000));
    all.extend(sorted(mebi << 20, thousands * 1000));
    all
}

/// Writes or sorts a case once.
///
/// # Errors
/// The machine's.
pub fn run(case: &Large, calls: &mut Calls) -> Result<()> {
    let codecs = Arc::new(StandardCodecs::default());
    match &case.work {
        Work::Write(options) => {
            let options = WriteOptions::clone(options);
            let schema = Arc::clone(&case.schema);
            let mut writer = calls.time(Call::New, || FileWriter::new(FILE, schema, codecs, options))?;
            let mut number = 0;
            drive(&mut writer, calls, |writer, calls, _| {
                match (case.batches)(number) {
                    Some(batch) => {
                        number += 1;
                        if calls.time(Call::Supply, || writer.feed(batch))? != Fed::Taken {
                            return Err(Error::internal("no room"));
                        }
                    }
                    None => calls.time(Call::Supply, || writer.finish()),
                }
                Ok(())
            })?;
            calls.time(Call::Drop, || drop(writer));
        }
        Work::Sort(options) => {
            let by = [SortingColumn { column: 0, descending: false, nulls_first: false }];
            let schema = Arc::clone(&case.schema);
            let mut sorter =
                calls.time(Call::New, || Sorter::new(schema, &by, codecs, SPILL, options.clone()))?;
            let mut number = 0;
            drive(&mut sorter, calls, |sorter, calls, product| {
                match product {
                    Sorted::Rows(batch) => calls.time(Call::Drop, || drop(batch)),
                    Sorted::Room => match (case.batches)(number) {
                        Some(batch) => {
                            number += 1;
                            if calls.time(Call::Supply, || sorter.feed(batch))? != Fed::Taken {
                                return Err(Error::internal("no room"));
                            }
                        }
                        None => calls.time(Call::Supply, || sorter.finish()),
                    },
                }
                Ok(())
            })?;
            calls.time(Call::Drop, || drop(sorter));
        }
    }
    Ok(())
}

fn drive<M: Machine>(
    machine: &mut M,
    calls: &mut Calls,
    mut ready: impl FnMut(&mut M, &mut Calls, M::Product) -> Result<()>,
) -> Result<()> {
    let mut spilled: Vec<Bytes> = Vec::new();
    loop {
        let mut budget = Budget::default();
        let step = calls.time(Call::Step, || machine.step(&mut budget));
        calls.charged(budget.spent());
        match step? {
            Step::Yield => {}
            Step::Done => return Ok(()),
            Step::Ready(product) => ready(machine, calls, product)?,
            Step::Append(FILE, bytes) => calls.time(Call::Drop, || drop(bytes)),
            Step::Append(_, bytes) => spilled.push(bytes),
            Step::Need(demand) => {
                for want in demand.wants {
                    let Want::Range(object, range, _) = want else {
                        return Err(Error::internal("a length"));
                    };
                    let mut at = 0;
                    for piece in &spilled {
                        let (from, to) = (range.start.max(at), range.end.min(at + piece.len() as u64));
                        if from < to {
                            let place = |place: u64| usize::try_from(place - at).unwrap_or(0);
                            let bytes = piece.slice(place(from)..place(to));
                            calls.time(Call::Supply, || machine.supply(object, from..to, bytes))?;
                        }
                        at += piece.len() as u64;
                    }
                }
            }
        }
    }
}

fn leaf(name: impl Into<String>, physical: PhysicalType) -> FieldDef {
    FieldDef::new(name, FieldType::Leaf(physical, None)).required()
}

fn schema(fields: &[FieldDef]) -> Arc<Schema> {
    Arc::new(Schema::of_fields(fields).expect("a schema"))
}

fn fixed(width: usize) -> PhysicalType {
    PhysicalType::FixedLenByteArray(u32::try_from(width).unwrap_or(u32::MAX))
}

fn write(
    name: &'static str,
    schema: Arc<Schema>,
    options: WriteOptions,
    batches: impl Fn(usize) -> Option<Batch> + 'static,
) -> Large {
    // What readers refuse by default is written here.
    let options = WriteOptions { limits: Limits::TRUSTED, ..options };
    Large { name, schema, batches: Box::new(batches), work: Work::Write(Box::new(options)) }
}

fn column(column: ColumnOptions) -> WriteOptions {
    WriteOptions { column, ..WriteOptions::default() }
}

fn plain() -> ColumnOptions {
    ColumnOptions {
        encoding: Some(Encoding::Plain),
        compression: Compression::Uncompressed,
        ..ColumnOptions::default()
    }
}

/// Text that a codec finds something in.
fn text(bytes: usize) -> Bytes {
    let mut random = crate::prices::Random::new();
    let mut text = Vec::with_capacity(bytes + 8);
    while text.len() < bytes {
        text.extend(random.next().to_le_bytes().map(|byte| b'a' + byte % 16));
        if text.len() % 64 == 0 {
            text.extend_from_slice(b"and again");
        }
    }
    text.truncate(bytes);
    text.into()
}

fn batch(values: Values) -> Batch {
    Batch::of_values([values]).expect("a batch")
}

fn once<T>(number: usize, made: impl FnOnce() -> T) -> Option<T> {
    (number == 0).then(made)
}

fn numbers(count: usize) -> Values {
    let mut random = crate::prices::Random::new();
    Values::Int64((0..count).map(|_| random.next().cast_signed()).collect::<Vec<_>>().into())
}

fn long_values(bytes: usize) -> Vec<Large> {
    let of_strings = || schema(&[leaf("v", PhysicalType::ByteArray)]);
    let whole = text(2 * bytes + 10);
    let string = |name, options: ColumnOptions| {
        let whole = whole.clone();
        write(name, of_strings(), column(options), move |number| {
            // Two strings that begin alike, and a short one between them.
            let arrays = ByteArrays::from_lengths(whole.clone(), [bytes, 10, bytes]).unwrap();
            once(number, || batch(Values::ByteArray(arrays)))
        })
    };
    let encoded = |encoding| ColumnOptions { encoding: Some(encoding), ..ColumnOptions::default() };
    let compressed =
        |codec| ColumnOptions { compression: Compression::Codec(codec), ..encoded(Encoding::Plain) };
    let alike: Bytes = {
        let value = text(bytes);
        [&value[..], &value[..]].concat().into()
    };
    let alike = write(
        "strings that are alike, DELTA_BYTE_ARRAY",
        of_strings(),
        column(encoded(Encoding::DeltaByteArray)),
        move |number| {
            once(number, || {
                batch(Values::ByteArray(ByteArrays::from_lengths(alike.clone(), [bytes, bytes]).unwrap()))
            })
        },
    );
    let of_fixed = |name, options: ColumnOptions| {
        let (schema, value) = (schema(&[leaf("v", fixed(bytes))]), text(2 * bytes).to_vec());
        let value = marquetry_base::Buffer::from(value);
        write(name, schema, column(options), move |number| {
            once(number, || batch(Values::FixedLenByteArray(FixedBytes::new(bytes, 2, value.clone()))))
        })
    };
    let bloom = |options| ColumnOptions { bloom: Some(BloomOptions::default()), ..options };
    let v2 = {
        let mut v2 = string("string, PLAIN, SNAPPY, V2", compressed(Codec::Snappy));
        if let Work::Write(options) = &mut v2.work {
            options.page_version = PageVersion::V2;
        }
        v2
    };
    let dictionary = {
        // Entries as long as any.
        let (entry, count) = (60_000, bytes / 60_000);
        let options = WriteOptions { dictionary_bytes: 1 << 30, ..column(encoded(Encoding::RleDictionary)) };
        let whole = whole.clone();
        write("long entries of a dictionary", of_strings(), options, move |number| {
            let lengths = std::iter::repeat_n(entry, count);
            once(number, || {
                batch(Values::ByteArray(
                    ByteArrays::from_lengths(whole.slice(..entry * count), lengths).unwrap(),
                ))
            })
        })
    };
    vec![
        string("string, as chosen", ColumnOptions::default()),
        string("string, PLAIN", plain()),
        string("string, PLAIN, SNAPPY", compressed(Codec::Snappy)),
        string("string, PLAIN, ZSTD", compressed(Codec::Zstd)),
        string("string, PLAIN, LZ4_RAW", compressed(Codec::Lz4Raw)),
        v2,
        string("string, RLE_DICTIONARY", encoded(Encoding::RleDictionary)),
        string("string, DELTA_LENGTH_BYTE_ARRAY", encoded(Encoding::DeltaLengthByteArray)),
        string("string, DELTA_BYTE_ARRAY", encoded(Encoding::DeltaByteArray)),
        string("string, Bloom filter", bloom(plain())),
        alike,
        dictionary,
        of_fixed("FIXED, as chosen", ColumnOptions::default()),
        of_fixed("FIXED, PLAIN", plain()),
        of_fixed("FIXED, RLE_DICTIONARY", encoded(Encoding::RleDictionary)),
        of_fixed("FIXED, DELTA_BYTE_ARRAY, Bloom filter", bloom(encoded(Encoding::DeltaByteArray))),
    ]
}

/// A row of so many elements, after a short one.
fn list_of(values: Values, elements: usize) -> Batch {
    let mut repetition = vec![1; elements];
    repetition[0] = 0;
    repetition[1] = 0;
    let levels = Levels { definition: vec![2; elements].into(), repetition: Some(repetition.into()) };
    let column = ColumnBatch {
        leaf: 0,
        rows: 2,
        nulls: 0,
        validity: None,
        values,
        layout: Layout::Dense,
        levels: Some(levels),
        provisional: false,
    };
    Batch { row_group: 0, first_row: 0, rows: 2, columns: vec![column] }
}

fn list_schema(physical: PhysicalType, with_key: bool) -> Arc<Schema> {
    let element = leaf("element", physical);
    let list = FieldDef::new("l", FieldType::List(Box::new(element)));
    match with_key {
        true => schema(&[leaf("k", PhysicalType::Int64), list]),
        false => schema(&[list]),
    }
}

fn long_rows(elements: usize) -> Vec<Large> {
    let of = |name, physical, options, values: fn(usize) -> Values| {
        write(name, list_schema(physical, false), options, move |number| {
            once(number, || list_of(values(elements), elements))
        })
    };
    let words: fn(usize) -> Values = |elements| {
        let view = u128::from_le_bytes(*b"\x05\0\0\0words\0\0\0\0\0\0\0");
        Values::ByteArray(ByteArrays::new(vec![view; elements].into(), Arc::default()))
    };
    vec![
        of("row of many elements", PhysicalType::Int64, WriteOptions::default(), numbers),
        of("row of many elements, PLAIN", PhysicalType::Int64, column(plain()), numbers),
        of("row of many strings", PhysicalType::ByteArray, WriteOptions::default(), words),
    ]
}

fn many(count: usize) -> Vec<Large> {
    let of_numbers = || schema(&[leaf("v", PhysicalType::Int64)]);
    let rows = |name, options| {
        write(name, of_numbers(), options, move |number| once(number, || batch(numbers(count))))
    };
    let tiny = || WriteOptions { page_rows: 1, ..WriteOptions::default() };
    let strings = write(
        "pages of one string",
        schema(&[FieldDef::new("v", FieldType::Leaf(PhysicalType::ByteArray, None))]),
        WriteOptions { page_rows: 1, column: plain(), ..WriteOptions::default() },
        move |number| {
            once(number, || {
                let whole = text(count * 30);
                batch(Values::ByteArray(
                    ByteArrays::from_lengths(whole, std::iter::repeat_n(30, count)).unwrap(),
                ))
            })
        },
    );
    let columns = count / 10;
    let wide = |name, options, rows: usize, name_bytes: usize| {
        let names = (0..columns).map(|at| format!("{at:0name_bytes$}"));
        let fields: Vec<FieldDef> = names.map(|name| leaf(name, PhysicalType::Int64)).collect();
        write(name, schema(&fields), options, move |number| once(number, || side_by_side(rows, columns)))
    };
    let key_values =
        |name, key_values: Vec<KeyValue>| rows(name, WriteOptions { key_values, ..WriteOptions::default() });
    let pair = |key: String, value: &Bytes| KeyValue { key, value: Some(value.clone()) };
    let short = Bytes::from_static(b"value");
    let pairs = (0..count).map(|at| pair(format!("key {at}"), &short)).collect();
    let long = text(64 << 20);
    let dictionary = WriteOptions {
        dictionary_bytes: 1 << 30,
        ..column(ColumnOptions { encoding: Some(Encoding::RleDictionary), ..ColumnOptions::default() })
    };
    let bloom = column(ColumnOptions { bloom: Some(BloomOptions::default()), ..plain() });
    let spilled = WriteOptions { spill: Some(SPILL), held_bytes_max: 1 << 20, ..tiny() };
    let sorting = (0..u32::try_from(columns).unwrap_or(0).min(4096))
        .map(|column| SortingColumn { column, descending: false, nulls_first: false })
        .collect();
    vec![
        rows("pages of one number", tiny()),
        rows("pages of one number, spilled", spilled),
        strings,
        rows("row groups of ten rows", WriteOptions { row_group_rows: 10, ..WriteOptions::default() }),
        wide("many columns", WriteOptions::default(), 10, 1),
        wide(
            "many columns, row groups of one row",
            WriteOptions { row_group_rows: 1, sorting_columns: sorting, ..WriteOptions::default() },
            3,
            1,
        ),
        wide("many columns of long names", WriteOptions::default(), 1, 1000),
        key_values("many pairs of metadata", pairs),
        key_values(
            "a long key, and a long value of metadata",
            vec![pair("k".repeat(65_000), &short), pair("k".into(), &long)],
        ),
        rows("numbers in a large dictionary", dictionary),
        rows("numbers, Bloom filter", bloom),
    ]
}

/// So many columns of the same numbers, each in memory of its own.
fn side_by_side(rows: usize, columns: usize) -> Batch {
    let Values::Int64(values) = numbers(rows) else { unreachable!("numbers are INT64") };
    let column = || Values::Int64(values.to_vec().into());
    Batch::of_values(std::iter::repeat_with(column).take(columns)).expect("a batch")
}

fn sorted(bytes: usize, count: usize) -> Vec<Large> {
    let sort = |name, schema: Arc<Schema>, memory_bytes, batches: Box<dyn Fn(usize) -> Option<Batch>>| {
        let options = SortOptions { memory_bytes, ..SortOptions::default() };
        Large { name, schema, batches, work: Work::Sort(options) }
    };
    let with_key = |physical| schema(&[leaf("k", PhysicalType::Int64), leaf("v", physical)]);
    let of_fixed = |name, memory_bytes| {
        let value = marquetry_base::Buffer::from(text(2 * bytes).to_vec());
        let batches = move |number| {
            let values = FixedBytes::new(bytes, 2, value.clone());
            once(number, || {
                Batch::of_values([numbers(2), Values::FixedLenByteArray(values)]).expect("a batch")
            })
        };
        sort(name, with_key(fixed(bytes)), memory_bytes, Box::new(batches))
    };
    let of_strings = |name, memory_bytes, length: usize, rows: usize| {
        let whole = text(length * rows);
        let batches = move |number| {
            // Strings that are copied are in buffers of their own, which the sorter releases.
            let whole = if length > 1 << 20 { whole.clone() } else { Bytes::copy_from_slice(&whole) };
            let values = ByteArrays::from_lengths(whole, std::iter::repeat_n(length, rows)).unwrap();
            once(number, || Batch::of_values([numbers(rows), Values::ByteArray(values)]).expect("a batch"))
        };
        sort(name, with_key(PhysicalType::ByteArray), memory_bytes, Box::new(batches))
    };
    let list = |name, memory_bytes| {
        let elements = bytes / 8;
        let batches = move |number| {
            once(number, || {
                let mut batch = list_of(numbers(elements), elements);
                batch.columns[0].leaf = 1;
                let key = Batch::of_values([numbers(2)]).expect("a batch").columns.remove(0);
                batch.columns.insert(0, key);
                batch
            })
        };
        sort(name, list_schema(PhysicalType::Int64, true), memory_bytes, Box::new(batches))
    };
    let keys = |name, memory_bytes, length: usize| {
        let rows = bytes / length;
        let batches = move |number| {
            once(number, || {
                let (prefix, mut random) = (text(length - 8), crate::prices::Random::new());
                let mut whole = Vec::with_capacity(rows * length);
                for _ in 0..rows {
                    whole.extend_from_slice(&prefix);
                    whole.extend(random.next().to_le_bytes().map(|byte| byte | 1));
                }
                batch(Values::ByteArray(
                    ByteArrays::from_lengths(whole.into(), std::iter::repeat_n(length, rows)).unwrap(),
                ))
            })
        };
        let schema = schema(&[leaf("k", PhysicalType::ByteArray)]);
        sort(name, schema, memory_bytes, Box::new(batches))
    };
    let wide = {
        let columns = count / 10;
        let fields: Vec<FieldDef> =
            (0..columns).map(|at| leaf(format!("c{at}"), PhysicalType::Int64)).collect();
        let batches = move |number| once(number, || side_by_side(10, columns));
        sort("sorted: many columns", schema(&fields), u64::MAX, Box::new(batches))
    };
    vec![
        of_fixed("sorted: FIXED", u64::MAX),
        of_fixed("sorted: FIXED, spilled", 1 << 20),
        of_strings("sorted: strings", u64::MAX, bytes, 2),
        of_strings("sorted: strings, spilled", 1 << 20, bytes, 2),
        of_strings("sorted: many strings", u64::MAX, 1000, bytes / 1000),
        list("sorted: rows of many elements", u64::MAX),
        list("sorted: rows of many elements, spilled", 1 << 20),
        keys("sorted: keys that begin alike", u64::MAX, 60_000),
        keys("sorted: keys that begin alike, spilled", 16 << 20, 1_000),
        wide,
    ]
}
