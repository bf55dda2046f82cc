//! Measures compression against the crates that compress a page in one call: time and size; and the cost of a step,
//! which the prices come from.
//!
//! `cargo run --release -p marquetry-codecs --example compress [-- CODEC … FILE …]`
//!
//! Files are cut into pages, as they are: they should hold columns' bytes. Without files, columns are generated. Each
//! number is the best of several passes over all pages, by each contestant in turn: compressing the same page
//! repeatedly would train the branch predictor. The last columns are the longest step, in microseconds; the largest
//! one, in units; and nanoseconds per unit, for all steps and for the most expensive of at least 20,000 units. A price
//! is right if no step costs more than 1.5 ns per unit.

mod data;

use std::io::Write;
use std::time::{Duration, Instant};

use brotli::enc::BrotliEncoderParams;
use marquetry_base::{Budget, Codec, Codecs, Compressor, Status};
use marquetry_codecs::StandardCodecs;

const PAGE_BYTES: [usize; 3] = [8 << 10, 64 << 10, 1 << 20];

/// One level per price; none for codecs without levels.
const CASES: &[(&str, Codec, Option<i32>)] = &[
    ("compress/snappy.rs PRICE", Codec::Snappy, None),
    ("compress/lz4.rs PRICE", Codec::Lz4Raw, None),
    ("compress/gzip.rs PRICE_FASTEST", Codec::Gzip, Some(1)),
    ("compress/gzip.rs PRICE_FAST", Codec::Gzip, Some(4)),
    ("compress/gzip.rs PRICE_USUAL", Codec::Gzip, Some(6)),
    ("compress/gzip.rs PRICE_HIGH", Codec::Gzip, Some(7)),
    ("compress/gzip.rs PRICE_BEST", Codec::Gzip, Some(9)),
    ("compress/zstd.rs PRICE_FAST", Codec::Zstd, Some(1)),
    ("compress/zstd.rs PRICE_USUAL", Codec::Zstd, Some(3)),
    ("compress/zstd.rs PRICE_HIGH", Codec::Zstd, Some(6)),
    ("compress/zstd.rs PRICE_HIGHER", Codec::Zstd, Some(9)),
    ("compress/zstd.rs PRICE_BEST", Codec::Zstd, Some(19)),
    ("compress/brotli.rs PRICE_FASTEST", Codec::Brotli, Some(1)),
    ("compress/brotli.rs PRICE_FAST", Codec::Brotli, Some(4)),
    ("compress/brotli.rs PRICE_USUAL", Codec::Brotli, Some(5)),
    ("compress/brotli.rs PRICE_HIGH", Codec::Brotli, Some(7)),
    ("compress/brotli.rs PRICE_HIGHER", Codec::Brotli, Some(9)),
    ("compress/brotli.rs PRICE_BEST", Codec::Brotli, Some(11)),
];

/// The price that is added if input and room come in pieces.
const IN_PIECES: &[(&str, Codec)] =
    &[("compress/sequences.rs CARE_PRICE", Codec::Snappy), ("compress/stream.rs COPY_PRICE", Codec::Gzip)];

/// Passes end after the first one that exceeds this time, and after [`PASSES_MAX`].
const PASSES_TIME: Duration = Duration::from_secs(4);
const PASSES_MAX: usize = 15;

/// Steps that charge less say nothing about what a unit costs.
const UNITS_MIN: u64 = 20_000;

fn main() {
    let is_codec = |name: &String| CASES.iter().any(|case| case.1.name() == name);
    let (named, files): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(is_codec);
    let wanted = |codec: Codec| named.is_empty() || named.iter().any(|name| name == codec.name());
    println!(
        "| price | codec | level | data | page, KiB | ratio, one call | ratio | one call, ns/KiB | steps, ns/KiB | cost | longest step, µs | largest step, units | ns/unit | dearest step |"
    );
    println!("|---|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    for &(price, codec, level) in CASES {
        for page_bytes in PAGE_BYTES {
            for (name, columns) in columns(&files) {
                if wanted(codec) {
                    let pages: Vec<&[u8]> =
                        columns.iter().flat_map(|bytes| bytes.chunks(page_bytes)).collect();
                    row(price, (codec, level), &name, page_bytes, &pages, usize::MAX);
                }
            }
        }
    }
    for &(price, codec) in IN_PIECES {
        for (name, columns) in columns(&files) {
            if wanted(codec) {
                let level = (codec == Codec::Gzip).then_some(0);
                let pages: Vec<&[u8]> = columns.iter().map(Vec::as_slice).collect();
                row(price, (codec, level), &format!("{name}, in pieces"), 1 << 20, &pages, 4_000);
            }
        }
    }
}

/// Columns: all files as one set, or generated ones.
fn columns(files: &[String]) -> Vec<(String, Vec<Vec<u8>>)> {
    if files.is_empty() {
        return data::columns(1 << 20)
            .into_iter()
            .map(|(name, bytes)| (name.to_owned(), vec![bytes]))
            .collect();
    }
    let read = |file: &String| std::fs::read(file).expect("a file that can be read");
    vec![("the files".to_owned(), files.iter().map(read).collect())]
}

fn row(
    price: &str,
    (codec, level): (Codec, Option<i32>),
    name: &str,
    page_bytes: usize,
    pages: &[&[u8]],
    piece: usize,
) {
    let mut compressor = StandardCodecs::default().compressor(codec, level).expect("a codec");
    let most = pages.iter().map(|page| page.len()).max().unwrap_or(0);
    let mut output = vec![0; 2 * compressor.bound(most)];
    let mut context = zstd_safe::CCtx::create();
    let (mut one, mut ours) = (Duration::MAX, Duration::MAX);
    let (mut one_bytes, mut our_bytes) = (0, 0);
    let mut steps = Vec::new();
    let began = Instant::now();
    for _ in 0..PASSES_MAX {
        let begin = Instant::now();
        one_bytes = pages
            .iter()
            .map(|page| one_call(codec, level.unwrap_or(0), page, &mut output, &mut context))
            .sum();
        one = one.min(begin.elapsed());
        let mut step = 0;
        let begin = Instant::now();
        our_bytes = pages
            .iter()
            .map(|page| stepped(compressor.as_mut(), page, &mut output, piece, &mut steps, &mut step))
            .sum();
        ours = ours.min(begin.elapsed());
        if began.elapsed() > PASSES_TIME {
            break;
        }
    }
    let bytes: usize = pages.iter().map(|page| page.len()).sum();
    let per_kib = |time: Duration| time.as_secs_f64() * 1e9 * 1024.0 / bytes as f64;
    let ratio = |compressed: usize| bytes as f64 / compressed as f64;
    println!(
        "| {price} | {} | {} | {name} | {} | {:.3} | {:.3} | {:.0} | {:.0} | {:+.0} % | {} |",
        codec.name(),
        level.map_or(String::new(), |level| level.to_string()),
        page_bytes >> 10,
        ratio(one_bytes),
        ratio(our_bytes),
        per_kib(one),
        per_kib(ours),
        (per_kib(ours) / per_kib(one) - 1.0) * 100.0,
        steps_text(&steps),
    );
}

/// Compresses a page in steps of the default budget, with this much input and room at a time. Returns its compressed
/// bytes. Each step's shortest time is kept.
fn stepped(
    compressor: &mut dyn Compressor,
    page: &[u8],
    output: &mut [u8],
    piece: usize,
    steps: &mut Vec<(Duration, u64)>,
    step: &mut usize,
) -> usize {
    compressor.start(page.len()).expect("a page's length");
    let (mut consumed, mut produced) = (0usize, 0usize);
    loop {
        let shown = page.len().min(consumed.saturating_add(piece));
        let room = output.len().min(produced.saturating_add(piece));
        let mut budget = Budget::default();
        let begin = Instant::now();
        let progress = compressor
            .step(&page[consumed..shown], shown == page.len(), &mut output[produced..room], &mut budget)
            .expect("a page");
        let took = (begin.elapsed(), budget.spent());
        match steps.get_mut(*step) {
            Some(best) => best.0 = best.0.min(took.0),
            None => steps.push(took),
        }
        *step += 1;
        consumed += progress.consumed;
        produced += progress.produced;
        if progress.status == Status::End {
            return produced;
        }
    }
}

fn steps_text(steps: &[(Duration, u64)]) -> String {
    let longest = steps.iter().map(|step| step.0).max().unwrap_or_default();
    let largest = steps.iter().map(|step| step.1).max().unwrap_or_default();
    let unit = |(time, units): (Duration, u64)| time.as_secs_f64() * 1e9 / units as f64;
    let all = steps.iter().fold((Duration::ZERO, 0), |sum, step| (sum.0 + step.0, sum.1 + step.1));
    let large = steps.iter().filter(|step| step.1 >= UNITS_MIN);
    let dearest = large.map(|&step| unit(step)).fold(0.0, f64::max);
    format!("{:.0} | {largest} | {:.2} | {dearest:.2}", longest.as_secs_f64() * 1e6, unit(all))
}

fn one_call(
    codec: Codec,
    level: i32,
    page: &[u8],
    output: &mut [u8],
    context: &mut zstd_safe::CCtx<'_>,
) -> usize {
    match codec {
        Codec::Snappy => snap::raw::Encoder::new().compress(page, output).expect("room"),
        Codec::Lz4Raw => lz4_flex::block::compress_into(page, output).expect("room"),
        Codec::Zstd => context.compress(output, page, level).expect("room"),
        Codec::Gzip => {
            let level = flate2::Compression::new(level.unsigned_abs());
            let mut encoder = flate2::write::GzEncoder::new(&mut output[..], level);
            encoder.write_all(page).expect("room");
            let left = encoder.finish().expect("room").len();
            output.len() - left
        }
        _ => {
            let params = BrotliEncoderParams { quality: level, ..BrotliEncoderParams::default() };
            let mut room = &mut output[..];
            brotli::BrotliCompress(&mut &page[..], &mut room, &params).expect("room");
            let left = room.len();
            output.len() - left
        }
    }
}
