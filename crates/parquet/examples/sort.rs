//! What sorting costs: nanoseconds a row and a unit, the smallest of some rounds, while rows are taken in and while they are handed out.
//!
//! `cargo run --release -p marquetry-parquet --example sort [WORD]` shows the cases that have the word in them.
//!
//! Beside each stand the prices that most of its units are of: they are right where a unit is no more than 1.5 ns.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "made-up values may be anything"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use marquetry_base::{Bitmap, Budget, Codec, Codecs, Decompressor, Error, Machine, Object, Step, Want};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, Layout, Values};
use marquetry_parquet::format::{Compression, SortingColumn};
use marquetry_parquet::hive::HiveType;
use marquetry_parquet::schema::{Plan as _, Schema, Union};
use marquetry_parquet::sort::{SortOptions, Sorted, Sorter};

const ROUNDS: usize = 5;
const SPILL: Object = Object(0);

type Result<T> = std::result::Result<T, Error>;

/// Rows to sort: how many, in batches of so many, and what their columns are; the first is the key.
struct Case {
    name: &'static str,
    rows: usize,
    batch_rows: usize,
    columns: &'static [Made],
    memory_bytes: u64,
    /// What most of the units are of, while rows are taken in, and while they are handed out.
    prices: [&'static str; 2],
}

/// How a column is made.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Made {
    Random,
    /// Numbers, a quarter of which are null, without room for them.
    Dense,
    /// Strings that are longer than a view, most of them different only behind a prefix.
    Text,
    /// Strings that differ at once.
    Word,
    /// Strings of 400 bytes and more.
    Long,
    /// Strings of which most begin alike, and one does not.
    Alike,
    /// Indices of a dictionary of 300 strings that many batches have.
    Code,
    /// Indices of a dictionary of a thousand numbers that the batch has for itself.
    Own,
}

use Made::{Alike, Code, Dense, Long, Own, Random, Text, Word};

const CASES: [Case; 12] = [
    Case {
        name: "a number",
        rows: 1 << 20,
        batch_rows: 8192,
        columns: &[Random],
        memory_bytes: u64::MAX,
        prices: ["sort/pieces.rs SORT_PRICE", "sort/merge.rs COMPARE_PRICE"],
    },
    Case {
        name: "a number and nine others",
        rows: 1 << 20,
        batch_rows: 8192,
        columns: &[Random; 10],
        memory_bytes: u64::MAX,
        prices: ["sort/pieces.rs KEY_PRICE", "sort/gather.rs VALUE_PRICE"],
    },
    Case {
        name: "dense numbers",
        rows: 1 << 19,
        batch_rows: 8192,
        columns: &[Dense; 8],
        memory_bytes: u64::MAX,
        prices: ["sort/stored.rs PUT_PRICE", "sort/gather.rs VALUE_PRICE"],
    },
    Case {
        name: "a long text",
        rows: 1 << 19,
        batch_rows: 8192,
        columns: &[Text],
        memory_bytes: u64::MAX,
        prices: ["sort/pieces.rs SORT_PRICE", "sort/merge.rs COMPARE_PRICE"],
    },
    Case {
        name: "a text that begins alike but once",
        rows: 1 << 19,
        batch_rows: 8192,
        columns: &[Alike],
        memory_bytes: u64::MAX,
        prices: ["sort/pieces.rs SORT_PRICE", "sort/pieces.rs TAIL_PRICE"],
    },
    Case {
        name: "a word and eight texts",
        rows: 1 << 18,
        batch_rows: 8192,
        columns: &[Word, Text, Text, Text, Text, Text, Text, Text, Text],
        memory_bytes: u64::MAX,
        prices: ["sort/stored.rs STRING_PRICE", "sort/gather.rs STRING_PRICE"],
    },
    Case {
        name: "a number and nine codes",
        rows: 1 << 20,
        batch_rows: 8192,
        columns: &[Random, Code, Code, Code, Code, Code, Code, Code, Code, Code],
        memory_bytes: u64::MAX,
        prices: ["sort/stored.rs TRANSLATE_PRICE", "sort/gather.rs INDEX_PRICE"],
    },
    Case {
        name: "dictionaries of their own",
        rows: 1 << 19,
        batch_rows: 8192,
        columns: &[Random, Own, Own, Own, Own],
        memory_bytes: u64::MAX,
        prices: ["sort/dictionaries.rs LEARN_PRICE", "sort/gather.rs INDEX_PRICE"],
    },
    Case {
        name: "a long string",
        rows: 1 << 17,
        batch_rows: 8192,
        columns: &[Long, Long],
        memory_bytes: u64::MAX,
        prices: ["sort/pieces.rs KEY_PRICE", "sort/producer.rs RELEASE_PRICE"],
    },
    Case {
        name: "batches of eight rows",
        rows: 1 << 15,
        batch_rows: 8,
        columns: &[Random; 10],
        memory_bytes: u64::MAX,
        prices: ["sort/stored.rs COLUMN_PRICE", "sort/gather.rs SOURCE_PRICE"],
    },
    Case {
        name: "a number and nine others, in runs",
        rows: 1 << 20,
        batch_rows: 8192,
        columns: &[Random; 10],
        memory_bytes: 16 << 20,
        prices: ["writing", "reading"],
    },
    Case {
        name: "a word and eight texts, in runs",
        rows: 1 << 18,
        batch_rows: 8192,
        columns: &[Word, Text, Text, Text, Text, Text, Text, Text, Text],
        memory_bytes: 16 << 20,
        prices: ["writing", "reading"],
    },
];

fn main() -> Result<()> {
    let word = std::env::args().nth(1).unwrap_or_default();
    println!("{:<44} {:>7} {:>7} {:>8}  price", "", "ns/row", "ns/unit", "largest");
    for case in CASES.iter().filter(|case| case.name.contains(&word)) {
        let (schema, batches) = case.make();
        let mut best = [Lap::MOST; 2];
        for _ in 0..ROUNDS {
            for (best, lap) in best.iter_mut().zip(case.run(&schema, &batches)?) {
                if lap.time < best.time {
                    *best = lap;
                }
            }
        }
        for ((lap, price), what) in best.iter().zip(case.prices).zip(["taken in", "handed out"]) {
            let nanos = lap.time.as_nanos() as f64;
            println!(
                "{:<44} {:>7.1} {:>7.2} {:>8}  {price}",
                format!("{}, {what}", case.name),
                nanos / case.rows as f64,
                nanos / lap.units as f64,
                lap.largest
            );
        }
    }
    Ok(())
}

/// What a half took: time, units, and the units of the largest step.
#[derive(Debug, Clone, Copy)]
struct Lap {
    time: Duration,
    units: u64,
    largest: u64,
}

impl Lap {
    const MOST: Lap = Lap { time: Duration::MAX, units: 1, largest: 0 };
    const NOTHING: Lap = Lap { time: Duration::ZERO, units: 0, largest: 0 };
}

impl Case {
    fn make(&self) -> (Arc<Schema>, Vec<Batch>) {
        let mut random = Numbers(7);
        let codes: Vec<String> = (0..300).map(|n| format!("code {n:03}")).collect();
        let codes = Arc::new(byte_arrays(&codes));
        let columns: Vec<_> = (0..)
            .zip(self.columns)
            .map(|(number, made)| match made {
                Random | Dense | Own => HiveType::Integer.column(&format!("c{number}")),
                Text | Word | Long | Alike | Code => HiveType::Text.column(&format!("c{number}")),
            })
            .collect();
        let schema = Union::new().with(columns).plan().at_once().expect("a schema").schema;
        let batch = |_| Batch {
            row_group: 0,
            first_row: 0,
            rows: self.batch_rows,
            columns: (0..)
                .zip(self.columns)
                .map(|(leaf, made)| made.column(leaf, self.batch_rows, &codes, &mut random))
                .collect(),
        };
        (schema, (0..self.rows / self.batch_rows).map(batch).collect())
    }

    /// Sorts the rows.
    fn run(&self, schema: &Arc<Schema>, batches: &[Batch]) -> Result<[Lap; 2]> {
        let by = [SortingColumn { column: 0, descending: false, nulls_first: false }];
        let options = SortOptions {
            memory_bytes: self.memory_bytes,
            compression: Compression::Uncompressed,
            ..SortOptions::default()
        };
        let mut sorter = Sorter::new(Arc::clone(schema), &by, Arc::new(NoCodecs), SPILL, options)?;
        let (mut laps, mut half, mut left, mut object) = ([Lap::NOTHING; 2], 0, batches.iter(), Vec::new());
        let mut rows = 0;
        loop {
            let mut budget = Budget::default();
            let started = Instant::now();
            let step = sorter.step(&mut budget)?;
            laps[half].time += started.elapsed();
            laps[half].units += budget.spent();
            laps[half].largest = laps[half].largest.max(budget.spent());
            match step {
                Step::Ready(Sorted::Room) => match left.next() {
                    Some(batch) => drop(sorter.feed(batch.clone())?),
                    None => {
                        sorter.finish();
                        half = 1;
                    }
                },
                Step::Ready(Sorted::Rows(batch)) => rows += batch.rows,
                Step::Append(_, bytes) => object.extend_from_slice(&bytes),
                Step::Need(demand) => {
                    for want in demand.wants {
                        if let Want::Range(_, range, _) = want {
                            let bytes = object[range.start as usize..range.end as usize].to_vec();
                            sorter.supply(SPILL, range, bytes.into())?;
                        }
                    }
                }
                Step::Yield => {}
                Step::Done => break,
            }
        }
        assert_eq!(rows, self.rows / self.batch_rows * self.batch_rows);
        Ok(laps)
    }
}

impl Made {
    fn column(self, leaf: usize, rows: usize, codes: &Arc<Values>, random: &mut Numbers) -> ColumnBatch {
        let mut column = ColumnBatch {
            leaf,
            rows,
            nulls: 0,
            validity: None,
            values: Values::Int64(Vec::new().into()),
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        };
        let strings = |random: &mut Numbers, of: &dyn Fn(u64) -> String| {
            let all: Vec<String> = (0..rows).map(|_| of(random.next())).collect();
            byte_arrays(&all)
        };
        let indices = |random: &mut Numbers, entries: &Arc<Values>| {
            let all = (0..rows).map(|_| (random.next() % entries.len() as u64) as u32);
            Values::Dictionary(all.collect::<Vec<_>>().into(), Arc::clone(entries))
        };
        column.values = match self {
            Random => Values::Int64((0..rows).map(|_| random.next() as i64).collect::<Vec<_>>().into()),
            Dense => {
                let there: Bitmap = (0..rows).map(|_| !random.next().is_multiple_of(4)).collect();
                let values = there.iter().filter(|bit| *bit).count();
                (column.nulls, column.layout, column.validity) = (rows - values, Layout::Dense, Some(there));
                Values::Int64((0..values).map(|_| random.next() as i64).collect::<Vec<_>>().into())
            }
            Text => strings(random, &|n| format!("https://example.org/customers/{n:020}/{}", n % 7)),
            Alike => strings(random, &|n| match n % 100_000 {
                0 => n.to_string(),
                _ => format!("https://example.org/customers/{n:020}/{}", n % 7),
            }),
            Word => strings(random, &|n| format!("{n:016x}")),
            Long => strings(random, &|n| format!("{n:016x}").repeat(25 + (n % 7) as usize)),
            Code => indices(random, codes),
            Own => {
                let entries: Vec<i64> = (0..1000).map(|_| (random.next() % 5000) as i64).collect();
                indices(random, &Arc::new(Values::Int64(entries.into())))
            }
        };
        column
    }
}

fn byte_arrays(all: &[String]) -> Values {
    let bytes = all.concat().into_bytes();
    Values::ByteArray(ByteArrays::from_lengths(bytes.into(), all.iter().map(String::len)).unwrap())
}

/// Runs are not compressed.
struct NoCodecs;

impl Codecs for NoCodecs {
    fn decompressor(&self, codec: Codec) -> Result<Box<dyn Decompressor>> {
        Err(Error::unsupported(codec.name()))
    }
}

/// Xorshift.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
