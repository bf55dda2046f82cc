//! What encoding costs: nanoseconds and bytes a value, the smallest of many rounds: some of them nobody interrupts.
//!
//! `cargo run --release -p marquetry-parquet --example encode [WORD]` shows the rows that have the word in them.
//!
//! The units charged are shown beside, with the price that most of them are of: it is right where a unit is no more than 1.5 ns.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "made-up values may be anything"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use marquetry_base::{Bitmap, Budget};
use marquetry_parquet::batch::{ByteArrays, FixedBytes, Values};
use marquetry_parquet::format::Encoding;
use marquetry_parquet::schema::PhysicalType;
use marquetry_parquet::write::dictionary::{DictionaryBuilder, DictionaryLimits};
use marquetry_parquet::write::encoder::{Compacted, Encoder, LevelEncoder, Slice};

/// Values of a round, and of a page.
const VALUES: usize = 1 << 20;
const PAGE: usize = 20_000;
const ROUNDS: usize = 9;

type Result<T> = std::result::Result<T, marquetry_base::Error>;

fn main() -> Result<()> {
    let word = std::env::args().nth(1).unwrap_or_default();
    println!("{:<40} {:>8} {:>8} {:>6} {:>7}  price", "", "ns/value", "B/value", "units", "ns/unit");
    for (name, physical, values) in data() {
        for encoding in [
            Encoding::Plain,
            Encoding::Rle,
            Encoding::DeltaBinaryPacked,
            Encoding::DeltaLengthByteArray,
            Encoding::DeltaByteArray,
            Encoding::ByteStreamSplit,
            Encoding::Alp,
        ] {
            let Ok(mut encoder) = Encoder::new(encoding, physical) else { continue };
            let price = price_of(encoding, physical);
            show(&word, price, &format!("{name}, {encoding}"), |laps| {
                pages(&mut encoder, Slice::of(&values), laps)
            })?;
        }
        if physical != PhysicalType::Boolean {
            let [found, new] = match physical {
                PhysicalType::ByteArray | PhysicalType::FixedLenByteArray(_) => {
                    ["write/dictionary.rs STRING_PRICE", "write/dictionary.rs NEW_PRICE"]
                }
                _ if name.contains("2^") => {
                    ["write/dictionary.rs FAR_PRICE", "write/dictionary.rs MOVED_PRICE"]
                }
                _ if name.contains("1,000") => {
                    ["write/dictionary.rs NUMBER_PRICE", "write/dictionary.rs PROBE_PRICE"]
                }
                _ => ["write/dictionary.rs NUMBER_PRICE", "write/dictionary.rs NEW_PRICE"],
            };
            show(&word, new, &format!("{name}, dictionary built"), |laps| {
                interned(physical, &values, false, laps)
            })?;
            show(&word, found, &format!("{name}, dictionary"), |laps| {
                interned(physical, &values, true, laps)
            })?;
        }
    }
    for (name, indices) in indices() {
        let mut encoder = Encoder::new(Encoding::RleDictionary, PhysicalType::Int32)?;
        show(&word, NUMBERS, &format!("indices {name}"), |laps| {
            pages(&mut encoder, Slice::Indices(&indices), laps)
        })?;
    }
    let mut random = Random(7);
    for (name, bits) in [("few null", 50_000), ("5 % null", 20), ("half null", 2)] {
        let price = if bits > 20 { "encoding/hybrid/encode.rs SAME_PRICE" } else { BITS };
        let validity: Bitmap = (0..VALUES).map(|_| random.below(bits) > 0).collect();
        show(&word, price, &format!("validity, {name}"), |laps| {
            let (mut levels, mut bytes, mut budget) = (LevelEncoder::new(1), 0, Budget::unlimited());
            for start in (0..VALUES).step_by(PAGE) {
                levels.put_validity(&validity, start..VALUES.min(start + PAGE), &mut budget)?;
                bytes += levels.finish(true)?.len();
                laps.lap();
            }
            Ok((bytes, budget.spent()))
        })?;
        let values: Vec<i64> = (0..VALUES as i64).collect();
        show(&word, "write/encoder.rs COMPACT_PRICE", &format!("compact INT64, {name}"), |laps| {
            let (mut room, mut bytes, mut budget) = (Compacted::default(), 0, Budget::unlimited());
            for start in (0..VALUES).step_by(4096) {
                let part = validity.slice(start..start + 4096);
                bytes += room.compact(Slice::Int64(&values[start..start + 4096]), &part, &mut budget)?.len();
                laps.lap();
            }
            Ok((bytes, budget.spent()))
        })?;
    }
    let levels: Vec<u8> = (0..VALUES).map(|_| random.below(4) as u8).collect();
    show(&word, NUMBERS, "levels 0 to 3, random", |laps| {
        let (mut encoder, mut bytes, mut budget) = (LevelEncoder::new(3), 0, Budget::unlimited());
        for levels in levels.chunks(PAGE) {
            encoder.put(levels, &mut budget)?;
            bytes += encoder.finish(true)?.len();
            laps.lap();
        }
        Ok((bytes, budget.spent()))
    })
}

const NUMBERS: &str = "encoding/hybrid/encode.rs NUMBER_PRICE";
const BITS: &str = "encoding/hybrid/encode.rs BIT_PRICE";

/// What is charged for most.
fn price_of(encoding: Encoding, physical: PhysicalType) -> &'static str {
    match encoding {
        Encoding::Rle => BITS,
        Encoding::DeltaBinaryPacked => "encoding/delta/encode.rs VALUE_PRICE",
        Encoding::DeltaByteArray => "encoding/delta_byte_array/encode.rs PREFIX_PRICE",
        Encoding::ByteStreamSplit => "encoding/byte_stream_split/encode.rs SPLIT_PRICE",
        Encoding::Alp if physical == PhysicalType::Float => "encoding/alp/encode.rs TRY_PRICE",
        Encoding::Alp => "encoding/alp/encode.rs VALUE_PRICE",
        _ if physical == PhysicalType::ByteArray => "encoding/strings.rs STRING_PRICE",
        _ => "growing.rs COPY_PRICE",
    }
}

/// The shortest time of each lap, over all rounds: what nobody interrupted.
struct Laps {
    least: Vec<Duration>,
    at: usize,
    last: Instant,
}

impl Laps {
    fn lap(&mut self) {
        let took = self.last.elapsed();
        match self.least.get_mut(self.at) {
            Some(least) => *least = took.min(*least),
            None => self.least.push(took),
        }
        self.at += 1;
        self.last = Instant::now();
    }
}

/// Times what says how many bytes it made and what it charged.
fn show(
    word: &str,
    price: &str,
    name: &str,
    mut run: impl FnMut(&mut Laps) -> Result<(usize, u64)>,
) -> Result<()> {
    if !name.contains(word) {
        return Ok(());
    }
    let mut laps = Laps { least: Vec::new(), at: 0, last: Instant::now() };
    let mut made = (0, 0);
    for _ in 0..ROUNDS {
        (laps.at, laps.last) = (0, Instant::now());
        made = black_box(run(&mut laps)?);
    }
    let per_value = |number: f64| number / VALUES as f64;
    let nanoseconds = per_value(laps.least.iter().sum::<Duration>().as_nanos() as f64);
    let units = per_value(made.1 as f64);
    println!(
        "{name:<40} {nanoseconds:>8.2} {:>8.3} {units:>6.2} {:>7.2}  {price}",
        per_value(made.0 as f64),
        nanoseconds / units
    );
    Ok(())
}

fn pages(encoder: &mut Encoder, values: Slice<'_>, laps: &mut Laps) -> Result<(usize, u64)> {
    let (mut bytes, mut budget) = (0, Budget::unlimited());
    // Pages are cut by their bytes as well.
    let page = match values {
        Slice::ByteArray(_, buffers) if buffers[0].len() > VALUES * 30 => PAGE / 4,
        _ => PAGE,
    };
    for start in (0..values.len()).step_by(page) {
        encoder.put(values.part(start..values.len().min(start + page)), &mut budget)?;
        bytes += black_box(encoder.finish(&mut budget)?).map_or(0, |body| body.len());
        laps.lap();
    }
    Ok((bytes, budget.spent()))
}

/// Of values that the dictionary has, if `again`.
fn interned(physical: PhysicalType, values: &Values, again: bool, laps: &mut Laps) -> Result<(usize, u64)> {
    let limits = DictionaryLimits { entries: usize::MAX, bytes: 4 << 20 };
    let mut dictionary = DictionaryBuilder::new(physical, limits);
    let mut indices = Vec::with_capacity(4096);
    let mut units = 0;
    for pass in 0..if again { 2 } else { 1 } {
        let mut budget = Budget::unlimited();
        (laps.at, laps.last) = (0, Instant::now());
        for start in (0..VALUES).step_by(4096) {
            indices.clear();
            let part = Slice::of(values).part(start..start + 4096);
            if dictionary.intern(part, &mut indices, &mut budget)?.full {
                break;
            }
            black_box(&indices);
            if !again || pass == 1 {
                laps.lap();
            }
        }
        units = budget.spent();
    }
    Ok((dictionary.bytes(), units))
}

fn data() -> Vec<(String, PhysicalType, Values)> {
    let mut random = Random(1);
    let mut all = Vec::new();
    let bits = (0..VALUES).map(|_| random.below(2) == 1).collect();
    all.push(("BOOLEAN random".into(), PhysicalType::Boolean, Values::Boolean(bits)));
    for (name, distinct) in [("of 1,000", 1000), ("of 100,000", 100_000), ("of 2^40", 1 << 40)] {
        let wide: Vec<i64> = (0..VALUES).map(|_| random.below(distinct) as i64).collect();
        let narrow: Vec<i32> = wide.iter().map(|&value| value as i32).collect();
        let doubles: Vec<f64> = wide.iter().map(|&value| value as f64 / 100.0).collect();
        let floats: Vec<f32> = doubles.iter().map(|&value| value as f32).collect();
        all.push((format!("INT64 {name}"), PhysicalType::Int64, Values::Int64(wide.into())));
        all.push((format!("INT32 {name}"), PhysicalType::Int32, Values::Int32(narrow.into())));
        all.push((format!("DOUBLE {name}"), PhysicalType::Double, Values::Double(doubles.into())));
        all.push((format!("FLOAT {name}"), PhysicalType::Float, Values::Float(floats.into())));
    }
    let mut time = 1_700_000_000_000_000;
    let times: Vec<i64> = (0..VALUES)
        .map(|_| {
            time += random.below(2000) as i64;
            time
        })
        .collect();
    all.push(("INT64 times".into(), PhysicalType::Int64, Values::Int64(times.into())));
    let wide: Vec<i64> = (0..VALUES).map(|_| random.below(1 << 56).rotate_left(8) as i64).collect();
    all.push(("INT64 of 2^56".into(), PhysicalType::Int64, Values::Int64(wide.into())));
    for (length, distinct) in [(8, 1000), (8, 100_000), (80, 1000), (80, 10_000)] {
        let strings = (0..VALUES).map(|_| format!("{:0>length$}", random.below(distinct)));
        all.push((format!("{length} bytes of {distinct}"), PhysicalType::ByteArray, byte_arrays(strings)));
    }
    let sorted = (0..VALUES).map(|at| format!("customer-{:09}", at * 3));
    all.push(("sorted".into(), PhysicalType::ByteArray, byte_arrays(sorted)));
    let ids: Vec<u8> = (0..VALUES * 16).map(|_| random.below(256) as u8).collect();
    let ids = FixedBytes::new(16, VALUES, ids.into());
    all.push((
        "FIXED(16) random".into(),
        PhysicalType::FixedLenByteArray(16),
        Values::FixedLenByteArray(ids),
    ));
    all
}

fn byte_arrays(strings: impl Iterator<Item = String>) -> Values {
    let strings: Vec<String> = strings.collect();
    Values::ByteArray(
        ByteArrays::from_lengths(strings.concat().into(), strings.iter().map(String::len)).unwrap(),
    )
}

fn indices() -> Vec<(&'static str, Vec<u32>)> {
    let mut random = Random(3);
    let mut of = |most: u64| (0..VALUES).map(|_| random.below(most) as u32).collect::<Vec<_>>();
    let mut all =
        vec![("of 2", of(2)), ("of 200", of(200)), ("of 1,000", of(1000)), ("of 100,000", of(100_000))];
    all.push(("in runs of 9", (0..VALUES).map(|at| (at / 9 % 2) as u32).collect()));
    let runs = of(10).into_iter().flat_map(|length| vec![length * 7; length as usize * 10]);
    all.push(("in runs", runs.take(VALUES).collect()));
    all
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 8) % most
    }
}
