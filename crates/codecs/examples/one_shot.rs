//! Measures what it costs that decompression can stop anywhere: pages of usual sizes, in steps of the default budget,
//! compared with crates and libraries that decompress a page in one call.
//!
//! `cargo run --release -p marquetry-codecs --example one_shot`
//!
//! (For a single codec, pass its name after `--`.) Nanoseconds per 1,024 uncompressed bytes, the best of many runs
//! each; the cost is negative if ours is faster.

mod data;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use brotli::enc::BrotliEncoderParams;
use marquetry_base::{Budget, Codec, Codecs, Decompressor, Status};
use marquetry_codecs::StandardCodecs;

const PAGE_BYTES: [usize; 4] = [8 << 10, 64 << 10, 256 << 10, 1 << 20];

/// Bytes to decompress in total for each number.
const WORK_BYTES: usize = 24 << 20;

fn main() {
    println!("| codec | data | page, KiB | ratio | one call | steps | cost |");
    println!("|---|---|--:|--:|--:|--:|--:|");
    let wanted = std::env::args().nth(1);
    for codec in [Codec::Snappy, Codec::Lz4Raw, Codec::Zstd, Codec::Gzip, Codec::Brotli] {
        if wanted.as_ref().is_some_and(|wanted| wanted != codec.name()) {
            continue;
        }
        for page_bytes in PAGE_BYTES {
            for (name, plain) in data::columns(page_bytes) {
                let page = compress(codec, &plain);
                let mut output = vec![0; plain.len()];
                let mut decompressor = StandardCodecs::default().decompressor(codec).expect("a codec");
                let mut context = zstd_safe::DCtx::create();
                let runs = (WORK_BYTES / page_bytes).clamp(5, 400);
                let (mut one, mut ours) = (Duration::MAX, Duration::MAX);
                // In turn, so that both run under the same conditions.
                for _ in 0..runs {
                    let begin = Instant::now();
                    one_call(codec, &page, &mut output, &mut context);
                    one = one.min(begin.elapsed());
                    assert!(output == plain);
                    let begin = Instant::now();
                    stepped(decompressor.as_mut(), &page, &mut output);
                    ours = ours.min(begin.elapsed());
                }
                let per_kib = |time: Duration| time.as_secs_f64() * 1e9 * 1024.0 / plain.len() as f64;
                println!(
                    "| {} | {name} | {} | {:.1} | {:.0} | {:.0} | {:+.0} % |",
                    codec.name(),
                    page_bytes >> 10,
                    plain.len() as f64 / page.len() as f64,
                    per_kib(one),
                    per_kib(ours),
                    (per_kib(ours) / per_kib(one) - 1.0) * 100.0
                );
            }
        }
    }
}

fn stepped(decompressor: &mut dyn Decompressor, page: &[u8], output: &mut [u8]) {
    decompressor.start(page.len(), output.len(), true).expect("sizes that can be");
    let (mut consumed, mut produced) = (0, 0);
    loop {
        let mut budget = Budget::default();
        let progress =
            decompressor.step(&page[consumed..], true, output, produced, &mut budget).expect("a good page");
        consumed += progress.consumed;
        produced += progress.produced;
        if progress.status == Status::End {
            return;
        }
    }
}

fn one_call(codec: Codec, page: &[u8], output: &mut [u8], context: &mut zstd_safe::DCtx<'_>) {
    match codec {
        Codec::Snappy => {
            snap::raw::Decoder::new().decompress(page, output).expect("a good page");
        }
        Codec::Lz4Raw => {
            lz4_flex::block::decompress_into(page, output).expect("a good page");
        }
        Codec::Zstd => {
            context.decompress(output, page).expect("a good page");
        }
        Codec::Gzip => {
            // The frame is 10 bytes and 8.
            let mut stream = flate2::Decompress::new(false);
            let deflate = &page[10..page.len() - 8];
            stream.decompress(deflate, output, flate2::FlushDecompress::Finish).expect("a good page");
            let crc = crc32fast::hash(output);
            assert_eq!(crc.to_le_bytes(), page[page.len() - 8..page.len() - 4]);
        }
        _ => {
            let mut reader = brotli::Decompressor::new(page, 4096);
            reader.read_exact(output).expect("a good page");
        }
    }
}

fn compress(codec: Codec, plain: &[u8]) -> Vec<u8> {
    match codec {
        Codec::Snappy => snap::raw::Encoder::new().compress_vec(plain).expect("less than 4 GiB"),
        Codec::Lz4Raw => lz4_flex::block::compress(plain),
        Codec::Zstd => {
            let mut page = vec![0; zstd_safe::compress_bound(plain.len())];
            let length = zstd_safe::compress(&mut page[..], plain, 3).expect("room");
            page.truncate(length);
            page
        }
        Codec::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(plain).expect("memory");
            encoder.finish().expect("memory")
        }
        _ => {
            // The level that Arrow C++ uses.
            let params = BrotliEncoderParams { quality: 8, ..BrotliEncoderParams::default() };
            let mut page = Vec::new();
            brotli::BrotliCompress(&mut &plain[..], &mut page, &params).expect("memory");
            page
        }
    }
}
