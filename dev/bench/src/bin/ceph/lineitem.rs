//! TPC-H's table `lineitem`, by the rules of its generator (TPC-H 3.0, 4.2.3), with prices as doubles, as the published experiment has them.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray};
use marquetry::Writer;
use marquetry::arrow::FromArrow;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_parquet::format::Compression;
use marquetry_rados::BEGUN_BYTES_MAX;

/// Days from 1970-01-01 to the first and the last day of an order, and to the day that is "today".
const FIRST_ORDER: i32 = 8035;
const ORDER_DAYS: u64 = 2406;
const TODAY: i32 = 9298;
/// Parts and suppliers of scale factor 1.
const PARTS: u64 = 200_000;
const SUPPLIERS: u64 = 10_000;

const INSTRUCTIONS: [&str; 4] = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"];
const MODES: [&str; 7] = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"];
/// Words of comments: some of each kind that the generator's grammar has.
const WORDS: [&str; 32] = [
    "foxes",
    "ideas",
    "theodolites",
    "pinto beans",
    "instructions",
    "dependencies",
    "excuses",
    "platelets",
    "asymptotes",
    "courts",
    "dolphins",
    "multipliers",
    "sauternes",
    "warthogs",
    "frets",
    "dinos",
    "sleep",
    "wake",
    "haggle",
    "nag",
    "cajole",
    "detect",
    "integrate",
    "furious",
    "sly",
    "careful",
    "blithe",
    "quick",
    "among",
    "about",
    "above",
    "according to the",
];

/// The places of two columns: keys of parts, and prices.
pub(crate) const PART: usize = 1;
pub(crate) const PRICE: usize = 5;

/// Rows that are made at a time.
const BATCH_ROWS: u64 = 50_000;

/// Random numbers, the same in every run (Knuth's MMIX).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn day(&mut self, end: u64) -> i32 {
        i32::try_from(self.below(end)).unwrap_or(0)
    }
}

/// Where the table goes on.
pub(crate) struct Lines {
    random: Random,
    order: u64,
    /// Lines of the order that are left, its number of the next one, and its day.
    left: u64,
    line: i32,
    day: i32,
}

impl Lines {
    pub(crate) fn new(seed: u64) -> Lines {
        Lines { random: Random(seed), order: 0, left: 0, line: 0, day: 0 }
    }

    /// The next rows.
    pub(crate) fn batch(&mut self, rows: u64) -> Result<RecordBatch, String> {
        let mut keys: [Vec<i64>; 3] = Default::default();
        let (mut lines, mut dates) = (Vec::new(), [Vec::new(), Vec::new(), Vec::new()]);
        let mut numbers: [Vec<f64>; 4] = Default::default();
        let mut texts: [Vec<&str>; 4] = Default::default();
        let mut comments = Vec::new();
        for _ in 0..rows {
            if self.left == 0 {
                self.order += 1;
                (self.left, self.line) = (1 + self.random.below(7), 0);
                self.day = FIRST_ORDER + self.random.day(ORDER_DAYS);
            }
            (self.left, self.line) = (self.left - 1, self.line + 1);
            let random = &mut self.random;
            // Eight of 32 keys are in use.
            let key = (self.order - 1) / 8 * 32 + (self.order - 1) % 8 + 1;
            let part = 1 + random.below(PARTS);
            // One of the four that have the part.
            let supplier =
                (part + random.below(4) * (SUPPLIERS / 4 + (part - 1) / SUPPLIERS)) % SUPPLIERS + 1;
            for (column, key) in keys.iter_mut().zip([key, part, supplier]) {
                column.push(i64::try_from(key).unwrap_or(i64::MAX));
            }
            lines.push(self.line);
            let quantity = 1 + random.below(50);
            let cents = 90_000 + part / 10 % 20_001 + 100 * (part % 1000);
            let number = |value: u64, by: f64| u32::try_from(value).map_or(0.0, f64::from) / by;
            numbers[0].push(number(quantity, 1.0));
            numbers[1].push(number(quantity * cents, 100.0));
            numbers[2].push(number(random.below(11), 100.0));
            numbers[3].push(number(random.below(9), 100.0));
            let ship = self.day + 1 + random.day(121);
            let commit = self.day + 30 + random.day(61);
            let receipt = ship + 1 + random.day(30);
            for (column, day) in dates.iter_mut().zip([ship, commit, receipt]) {
                column.push(day);
            }
            texts[0].push(if receipt > TODAY { "N" } else { ["R", "A"][usize::from(random.below(2) == 0)] });
            texts[1].push(if ship > TODAY { "O" } else { "F" });
            texts[2].push(pick(random, &INSTRUCTIONS));
            texts[3].push(pick(random, &MODES));
            let (mut comment, length) = (String::new(), 10 + random.below(34));
            while comment.len() < usize::try_from(length).unwrap_or(10) {
                comment.push_str(pick(random, &WORDS));
                comment.push(' ');
            }
            comment.truncate(usize::try_from(length).unwrap_or(10));
            comments.push(comment);
        }
        let [orders, parts, suppliers] = keys.map(|keys| Arc::new(Int64Array::from(keys)) as ArrayRef);
        let [quantity, price, discount, tax] =
            numbers.map(|numbers| Arc::new(Float64Array::from(numbers)) as ArrayRef);
        let [flag, status, instruction, mode] =
            texts.map(|texts| Arc::new(StringArray::from(texts)) as ArrayRef);
        let [ship, commit, receipt] = dates.map(|dates| Arc::new(Date32Array::from(dates)) as ArrayRef);
        let columns: [(&str, ArrayRef); 16] = [
            ("l_orderkey", orders),
            ("l_partkey", parts),
            ("l_suppkey", suppliers),
            ("l_linenumber", Arc::new(Int32Array::from(lines))),
            ("l_quantity", quantity),
            ("l_extendedprice", price),
            ("l_discount", discount),
            ("l_tax", tax),
            ("l_returnflag", flag),
            ("l_linestatus", status),
            ("l_shipdate", ship),
            ("l_commitdate", commit),
            ("l_receiptdate", receipt),
            ("l_shipinstruct", instruction),
            ("l_shipmode", mode),
            ("l_comment", Arc::new(StringArray::from(comments))),
        ];
        RecordBatch::try_from_iter(columns).map_err(|error| error.to_string())
    }
}

fn pick<'a>(random: &mut Random, words: &[&'a str]) -> &'a str {
    let at = random.below(words.len().try_into().unwrap_or(1));
    words[usize::try_from(at).unwrap_or(0)]
}

/// Writes a Parquet file of the next rows, so many of them, and of some columns by their places.
pub(crate) fn write(
    path: &Path,
    (lines, rows): (&mut Lines, u64),
    columns: &[usize],
    compression: Compression,
) -> Result<(), String> {
    let some = |batch: RecordBatch| batch.project(columns).map_err(|error| error.to_string());
    let schema = some(Lines::new(0).batch(1)?)?.schema();
    let schema = FromArrow::new(&schema).map_err(|error| error.to_string())?.schema().as_ref().clone();
    let mut options = ParquetOptions::default();
    options.write.column.compression = compression;
    // As `copy` to `rados://` writes them.
    options.write.begun_bytes_max = BEGUN_BYTES_MAX;
    options.overwrite = true;
    let mut writer = Writer::with(path, schema, options).map_err(|error| error.to_string())?;
    let mut left = rows;
    while left > 0 {
        let now = left.min(BATCH_ROWS);
        writer.write_arrow(&some(lines.batch(now)?)?).map_err(|error| error.to_string())?;
        left -= now;
    }
    writer.finish().map(drop).map_err(|error| error.to_string())
}
