//! Which pages may have a key: Bloom filters of pages beside a retrieval filter, at several numbers of pages; and what a
//! probe costs.
//!
//! `cargo run --release -p marquetry-parquet --example page_bloom`
//!
//! A retrieval filter is a function of keys: here a binary fuse filter of three cells a key, each of which is wide enough for the number of
//! a page and eight bits of a fingerprint, by which most absent keys are found out. It needs unique keys.
//!
//! The units charged are shown beside the time: they are right where a unit is no more than 1.5 ns.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "numbers of keys and pages are small, and shares need few digits"
)]

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use marquetry_base::{
    Budget, Bytes, Codec, Codecs, Decompressor, Error, Limits, Machine, Object, Result, Step, Want,
};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::bloom;
use marquetry_parquet::format::{Compression, Encoding, FileMetaData};
use marquetry_parquet::read::{FooterReader, PageBloom, PageBloomProbe, PageSet};
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_parquet::write::{ColumnOptions, Fed, FileWriter, PageBloomOptions, WriteOptions};

const FILE: Object = Object(0);
const PAGE_ROWS: usize = 4096;
/// Keys that are looked up, of those that are there and of others.
const TRIES: usize = 2000;
const ROUNDS: usize = 5;
/// The prices that probing and writing are mostly of.
const LOOK: &str = "read/page_bloom.rs LOOK_PRICE";
const BLOCK: &str = "write/page_bloom.rs BLOCK_PRICE";

fn main() -> Result<()> {
    let mut sending = Vec::new();
    println!(
        "| pages | Bloom: bits/key | read | ns/probe | units | false pages, member | absent \
         | retrieval: bits/key | ns/probe | pages, member | absent | built, ns/key |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for pages in [16, 64, 256, 1024, 4096] {
        let keys = pages * PAGE_ROWS;
        let (file, metadata, bytes, sent) = written(keys)?;
        sending.push(format!("{pages} pages: {sent}"));
        let found = PageBloom::of(&metadata, 0, 0).ok_or_else(|| Error::internal("no page filters"))?;
        let hashes = |first: usize, step: usize| -> Vec<u64> {
            (0..TRIES).map(|at| hash(first + at * step)).collect()
        };
        let members = hashes(0, keys / TRIES);
        let absent = hashes(usize::MAX / 2, 1);
        let (false_ones, ns, units) = probed(&file, found, &members)?;
        let (absent_ones, ..) = probed(&file, found, &absent)?;

        let started = Instant::now();
        let all: Vec<u64> = (0..keys).map(hash).collect();
        let retrieval = Retrieval::new(&all, |at| (at / PAGE_ROWS) as u32, pages)?;
        let built = started.elapsed().as_nanos() as f64 / keys as f64;
        for (at, hash) in all.iter().enumerate().step_by(97) {
            assert_eq!(retrieval.page(*hash), Some((at / PAGE_ROWS) as u32));
        }
        let of_absent = absent.iter().filter(|hash| retrieval.page(**hash).is_some()).count();
        let probe = least(|| {
            let started = Instant::now();
            members.iter().for_each(|hash| {
                black_box(retrieval.page(*hash));
            });
            started.elapsed().as_nanos() as f64 / TRIES as f64
        });
        println!(
            "| {pages} | {:.1} | {} B | {ns:.0} | {units:.0} | {:.2} | {:.2} | {:.1} | {probe:.0} | 1 | {:.3} | {built:.0} |",
            bytes as f64 * 8.0 / keys as f64,
            found.row_bytes(),
            false_ones as f64 / TRIES as f64 - 1.0,
            absent_ones as f64 / TRIES as f64,
            retrieval.bits() as f64 / keys as f64,
            of_absent as f64 / TRIES as f64,
        );
    }
    println!("\nProbing is mostly of {LOOK}; sending the filters of {BLOCK}:");
    sending.iter().for_each(|line| println!("{line}"));
    Ok(())
}

/// The hash of the key of a row: an INT64 that says nothing of its place.
fn hash(row: usize) -> u64 {
    bloom::hash(&key(row).to_le_bytes())
}

fn key(row: usize) -> i64 {
    (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).cast_signed()
}

/// The pages that are found by all of these hashes; nanoseconds and units a probe. The file is in memory.
fn probed(file: &Bytes, found: PageBloom, hashes: &[u64]) -> Result<(usize, f64, f64)> {
    let (mut pages, mut units) = (0, 0);
    let mut failed = None;
    let ns = least(|| {
        (pages, units) = (0, 0);
        let started = Instant::now();
        for hash in hashes {
            match probe(file, found, *hash, &mut units) {
                Ok(Some(set)) => pages += set.count(),
                Ok(None) => failed = Some(Error::internal("filters that are not believed")),
                Err(error) => failed = Some(error),
            }
        }
        started.elapsed().as_nanos() as f64 / hashes.len() as f64
    });
    match failed {
        Some(error) => Err(error),
        None => Ok((pages, ns, units as f64 / hashes.len() as f64)),
    }
}

fn probe(file: &Bytes, found: PageBloom, hash: u64, units: &mut u64) -> Result<Option<PageSet>> {
    let mut probe = PageBloomProbe::new(FILE, found, vec![hash]);
    loop {
        let mut budget = Budget::default();
        let step = probe.step(&mut budget)?;
        *units += budget.spent();
        match step {
            Step::Ready(pages) => return Ok(pages),
            Step::Need(demand) => supply(&mut probe, file, demand.wants)?,
            _ => {}
        }
    }
}

fn supply<M: Machine>(machine: &mut M, file: &Bytes, wants: Vec<Want>) -> Result<()> {
    for want in wants {
        match want {
            Want::Length(object) => machine.supply_length(object, file.len() as u64)?,
            Want::Range(object, range, _) => {
                let bytes = file.slice(range.start as usize..range.end as usize);
                machine.supply(object, range, bytes)?;
            }
        }
    }
    Ok(())
}

/// The least of a few rounds.
fn least(mut round: impl FnMut() -> f64) -> f64 {
    (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min)
}

/// A file of so many unique keys in a row group; its footer, the bytes that page filters add, and what sending them takes.
fn written(keys: usize) -> Result<(Bytes, Arc<FileMetaData>, usize, String)> {
    let (without, ns_without, units_without) = write(keys, None)?;
    let options = PageBloomOptions { bytes_max: u64::MAX, ..PageBloomOptions::default() };
    let (file, ns, units) = write(keys, Some(options))?;
    let (ns, units) = (ns - ns_without, (units - units_without) as f64);
    let sent = format!("{:.1} ms, {:.2} ns/unit", ns / 1e6, ns / units);
    let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
    loop {
        match footer.step(&mut Budget::default())? {
            Step::Ready(metadata) => {
                let added = file.len() - without.len();
                return Ok((file, metadata, added, sent));
            }
            Step::Need(demand) => supply(&mut footer, &file, demand.wants)?,
            _ => {}
        }
    }
}

/// A file; nanoseconds and units of the steps that end its row group.
fn write(keys: usize, page_bloom: Option<PageBloomOptions>) -> Result<(Bytes, f64, u64)> {
    let field = FieldDef::new("key", FieldType::Leaf(PhysicalType::Int64, None)).required();
    let schema = Arc::new(Schema::of_fields(&[field])?);
    let column = ColumnOptions {
        compression: Compression::Uncompressed,
        encoding: Some(Encoding::Plain),
        page_bloom,
        ..ColumnOptions::default()
    };
    let options = WriteOptions {
        column,
        page_rows: PAGE_ROWS,
        row_group_rows: u64::MAX,
        row_group_bytes: u64::MAX,
        ..WriteOptions::default()
    };
    let mut writer = FileWriter::new(FILE, schema, Arc::new(NoCodecs), options)?;
    let mut left: Range<usize> = 0..keys;
    let mut file = Vec::new();
    let (mut ns, mut units) = (0, 0);
    loop {
        let (mut budget, started) = (Budget::default(), Instant::now());
        let step = writer.step(&mut budget)?;
        if left.is_empty() {
            ns += started.elapsed().as_nanos();
            units += budget.spent();
        }
        match step {
            Step::Ready(_) if left.is_empty() => writer.finish(),
            Step::Ready(_) => {
                let rows = left.len().min(1 << 16);
                let values: Vec<i64> = (left.start..left.start + rows).map(key).collect();
                let batch = Batch::of_values([Values::Int64(values.into())])?;
                match writer.feed(batch)? {
                    Fed::Taken => left.start += rows,
                    Fed::Full(_) => {}
                }
            }
            Step::Append(_, bytes) => file.extend_from_slice(&bytes),
            Step::Done => return Ok((file.into(), ns as f64, units)),
            _ => {}
        }
    }
}

/// A binary fuse filter: the cells of a key, one in each of three neighbouring segments, add up (bit by bit) to its page and its
/// fingerprint.
struct Retrieval {
    cells: Vec<u32>,
    seed: u64,
    segment_bits: u32,
    segments: u64,
    page_bits: u32,
}

const FINGERPRINT_BITS: u32 = 8;

impl Retrieval {
    /// Of keys by their hashes, which are all different, and their pages.
    fn new(hashes: &[u64], page: impl Fn(usize) -> u32, pages: usize) -> Result<Retrieval> {
        let keys = hashes.len() as f64;
        let segment_bits = (keys.ln() / 3.33_f64.ln() + 2.25).floor() as u32;
        let factor = (0.875 + 0.25 * 1e6_f64.ln() / keys.ln()).max(1.125);
        let segment = 1_u64 << segment_bits;
        let segments = ((keys * factor) as u64).div_ceil(segment).max(3) - 2;
        let cells = ((segments + 2) * segment) as usize;
        let page_bits = usize::BITS - (pages - 1).leading_zeros();
        for seed in 1..100 {
            let mut filter = Retrieval { cells: vec![0; cells], seed, segment_bits, segments, page_bits };
            // Of each cell: how many keys have it, and the sum (bit by bit) of their numbers.
            let mut of_cells = vec![(0_u32, 0_u32); cells];
            for (at, hash) in hashes.iter().enumerate() {
                for cell in filter.places(*hash) {
                    of_cells[cell].0 += 1;
                    of_cells[cell].1 ^= at as u32;
                }
            }
            let mut order = Vec::with_capacity(hashes.len());
            let mut alone: Vec<usize> = (0..cells).filter(|cell| of_cells[*cell].0 == 1).collect();
            while let Some(cell) = alone.pop() {
                if of_cells[cell].0 != 1 {
                    continue;
                }
                let at = of_cells[cell].1;
                order.push((cell, at));
                for other in filter.places(hashes[at as usize]) {
                    of_cells[other].0 -= 1;
                    of_cells[other].1 ^= at;
                    if of_cells[other].0 == 1 {
                        alone.push(other);
                    }
                }
            }
            if order.len() < hashes.len() {
                continue;
            }
            for (cell, at) in order.into_iter().rev() {
                let hash = hashes[at as usize];
                let wanted = page(at as usize) | filter.fingerprint(hash) << page_bits;
                filter.cells[cell] = 0;
                let others = filter.places(hash).iter().fold(0, |sum, cell| sum ^ filter.cells[*cell]);
                filter.cells[cell] = wanted ^ others;
            }
            return Ok(filter);
        }
        Err(Error::internal("no seed"))
    }

    fn places(&self, hash: u64) -> [usize; 3] {
        let mixed =
            (hash ^ self.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        let mixed = mixed ^ mixed >> 32;
        let first = ((u128::from(mixed) * u128::from(self.segments << self.segment_bits)) >> 64) as u64;
        let segment = 1_u64 << self.segment_bits;
        let within = |shift: u32| (mixed >> shift) & (segment - 1);
        [first, (first + segment) ^ within(18), (first + 2 * segment) ^ within(0)].map(|place| place as usize)
    }

    fn fingerprint(&self, hash: u64) -> u32 {
        (hash >> 56) as u32 & ((1 << FINGERPRINT_BITS) - 1)
    }

    fn page(&self, hash: u64) -> Option<u32> {
        let sum = self.places(hash).iter().fold(0, |sum, place| sum ^ self.cells[*place]);
        let page = sum & ((1 << self.page_bits) - 1);
        (sum >> self.page_bits == self.fingerprint(hash)).then_some(page)
    }

    /// Bits that its cells take, without any between them.
    fn bits(&self) -> usize {
        self.cells.len() * (self.page_bits + FINGERPRINT_BITS) as usize
    }
}

/// Nothing is compressed.
struct NoCodecs;

impl Codecs for NoCodecs {
    fn decompressor(&self, codec: Codec) -> Result<Box<dyn Decompressor>> {
        Err(Error::unsupported(codec.name()))
    }
}
