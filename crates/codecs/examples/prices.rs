//! Measures decompression, in nanoseconds per 1,024 bytes: the source of the price constants.
//!
//! `cargo run --release -p marquetry-codecs --example prices [-- CODEC …]`
//!
//! The first table is per uncompressed byte, with an unlimited budget and in steps of the default one. Its last columns
//! are the longest step, in microseconds and in units charged; and nanoseconds per unit, for all steps and for the most
//! expensive of at least 20,000 units. The second table is for data that become nothing, which no encoder writes, per
//! compressed byte. A price is right if no step costs more than 1.5 ns per unit.

#[path = "../tests/pages/encoders/brotli_bits.rs"]
mod brotli_bits;
#[path = "../tests/pages/encoders/zstd_bits.rs"]
mod zstd_bits;

use std::io::Write;
use std::time::{Duration, Instant};

use brotli::enc::BrotliEncoderParams;
use brotli_bits::Bits as BrotliBits;
use flate2::write::GzEncoder;
use marquetry_base::{Budget, Codec, Codecs, Decompressor, Status};
use marquetry_codecs::StandardCodecs;

const PAGE_BYTES: usize = 1 << 20;
const REPLAYS: usize = 25;

/// Pages of more bytes are replayed less often.
const LARGE_BYTES: usize = 32 << 20;

fn main() {
    println!(
        "| price | codec | data | ratio | unlimited, ns/KiB | stepped, ns/KiB | longest step, µs | largest step, units | ns/unit | dearest step |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|--:|--:|");
    for (data, plain) in inputs(PAGE_BYTES) {
        for codec in [
            Codec::Snappy,
            Codec::Lz4Raw,
            Codec::Lz4,
            Codec::Lzo,
            Codec::Gzip,
            Codec::Zlib,
            Codec::Brotli,
            Codec::Zstd,
        ] {
            if is_wanted(codec) {
                row(codec, data, &compress(codec, &plain), plain.len(), true);
            }
        }
    }
    let free =
        brotli_free().into_iter().map(|(data, page, bytes)| (Codec::Brotli, data.to_owned(), page, bytes));
    for (codec, data, compressed, plain_bytes) in free.chain(far()).chain(tables()).chain(large()) {
        if is_wanted(codec) {
            row(codec, &data, &compressed, plain_bytes, true);
            if codec == Codec::Zstd && plain_bytes > LIBRARY_BYTES_MAX {
                row(codec, &format!("{data}, through a window"), &compressed, plain_bytes, false);
            }
        }
    }
    println!(
        "\n| price | codec | overhead | ns/KiB compressed | longest step, µs | largest step, units | ns/unit | dearest step |"
    );
    println!("|---|---|---|--:|--:|--:|--:|--:|");
    for (codec, name, compressed, plain_bytes) in overheads() {
        if !is_wanted(codec) {
            continue;
        }
        let run = replay(codec, &compressed, plain_bytes, true, Budget::default);
        let becomes_nothing = codec == Codec::Zstd && plain_bytes < compressed.len();
        println!(
            "| {} | {} | {name} | {:.0} | {} |",
            if becomes_nothing { "zstd/library.rs PRICE_OVERHEAD" } else { price_of(codec, plain_bytes) },
            codec.name(),
            ns_per_kib(run.total, compressed.len()),
            run.steps_text(),
        );
    }
}

/// A ZSTD frame that can refer farther back is not decoded by the library.
const LIBRARY_BYTES_MAX: usize = 2 << 20;

/// How far back a frame of ZSTD that becomes so many bytes can refer, through a window.
fn window_bytes(frame: &[u8], plain_bytes: usize) -> usize {
    let has_window = frame[4] & 1 << 5 == 0;
    let (log, eighths) = (10 + (frame[5] >> 3), usize::from(frame[5] & 7));
    if has_window { plain_bytes.min((8 + eighths) << (log - 3)) } else { plain_bytes }
}

/// The price of a codec, for a page whose matches refer back so many bytes at the most.
fn price_of(codec: Codec, plain_bytes: usize) -> &'static str {
    match codec {
        Codec::Snappy => "snappy.rs PRICE",
        Codec::Lz4Raw | Codec::Lz4 => "lz4.rs PRICE",
        Codec::Lzo => "lzo.rs PRICE",
        Codec::Gzip => "gzip.rs PRICE",
        Codec::Zlib => "zlib.rs PRICE",
        Codec::Brotli => "brotli/mod.rs PRICE",
        Codec::Zstd if plain_bytes > LIBRARY_BYTES_MAX => "zstd/work.rs PRICE",
        Codec::Zstd => "zstd/library.rs PRICE",
    }
}

/// A row of the first table.
fn row(codec: Codec, data: &str, compressed: &[u8], plain_bytes: usize, is_whole: bool) {
    let whole = replay(codec, compressed, plain_bytes, is_whole, Budget::unlimited);
    let stepped = replay(codec, compressed, plain_bytes, is_whole, Budget::default);
    let reach =
        if is_whole || codec != Codec::Zstd { plain_bytes } else { window_bytes(compressed, plain_bytes) };
    println!(
        "| {} | {} | {data} | {:.1} | {:.0} | {:.0} | {} |",
        price_of(codec, reach),
        codec.name(),
        ratio(plain_bytes, compressed.len()),
        ns_per_kib(whole.total, plain_bytes),
        ns_per_kib(stepped.total, plain_bytes),
        stepped.steps_text(),
    );
}

/// All codecs, or those that the command line names.
fn is_wanted(codec: Codec) -> bool {
    let mut named = std::env::args().skip(1).peekable();
    named.peek().is_none() || named.any(|name| name == codec.name())
}

/// The best of some replays, step by step.
struct Run {
    total: Duration,
    /// The shortest time of each step, and the units that it charged.
    steps: Vec<(Duration, u64)>,
}

/// Steps that charge less say nothing about what a unit costs.
const UNITS_MIN: u64 = 20_000;

impl Run {
    /// The last columns.
    fn steps_text(&self) -> String {
        let longest = self.steps.iter().map(|step| step.0).max().unwrap_or_default();
        let largest = self.steps.iter().map(|step| step.1).max().unwrap_or_default();
        let unit = |(time, units): (Duration, u64)| time.as_secs_f64() * 1e9 / units as f64;
        let all = self.steps.iter().fold((Duration::ZERO, 0), |sum, step| (sum.0 + step.0, sum.1 + step.1));
        let large = self.steps.iter().filter(|step| step.1 >= UNITS_MIN);
        let dearest = large.map(|&step| unit(step)).fold(0.0, f64::max);
        format!("{:.0} | {largest} | {:.2} | {dearest:.2}", longest.as_secs_f64() * 1e6, unit(all))
    }
}

fn replay(
    codec: Codec,
    compressed: &[u8],
    plain_bytes: usize,
    is_whole: bool,
    budget: fn() -> Budget<'static>,
) -> Run {
    let mut decompressor = StandardCodecs::default().decompressor(codec).expect("a codec");
    let mut output = vec![0; plain_bytes];
    let mut run = Run { total: Duration::MAX, steps: Vec::new() };
    for _ in 0..if plain_bytes > LARGE_BYTES { REPLAYS / 5 } else { REPLAYS } {
        let begin = Instant::now();
        let steps = page(decompressor.as_mut(), compressed, &mut output, is_whole, budget);
        run.total = run.total.min(begin.elapsed());
        run.steps.resize(steps.len(), (Duration::MAX, 0));
        run.steps.iter_mut().zip(steps).for_each(|(best, step)| *best = (step.0.min(best.0), step.1));
    }
    run
}

fn page(
    decompressor: &mut dyn Decompressor,
    compressed: &[u8],
    output: &mut [u8],
    is_whole: bool,
    budget: fn() -> Budget<'static>,
) -> Vec<(Duration, u64)> {
    decompressor.start(compressed.len(), output.len(), is_whole).expect("sizes that can be");
    let (mut consumed, mut produced, mut steps) = (0, 0, Vec::new());
    loop {
        let mut budget = budget();
        let shown = if is_whole { 0 } else { produced };
        let begin = Instant::now();
        let progress = decompressor
            .step(&compressed[consumed..], true, &mut output[shown..], produced - shown, &mut budget)
            .expect("a good page");
        steps.push((begin.elapsed(), budget.spent()));
        consumed += progress.consumed;
        produced += progress.produced;
        match progress.status {
            Status::End => return steps,
            Status::Yield | Status::NeedMemory(_) => {}
            status => panic!("{status:?} with everything at hand"),
        }
    }
}

fn ratio(plain: usize, compressed: usize) -> f64 {
    plain as f64 / compressed as f64
}

fn ns_per_kib(time: Duration, bytes: usize) -> f64 {
    time.as_secs_f64() * 1e9 * 1024.0 / bytes as f64
}

/// Pages like those of real columns, easy and hard.
fn inputs(bytes: usize) -> Vec<(&'static str, Vec<u8>)> {
    let mut random = random();
    let mut growing = Vec::new();
    let mut value = 0u32;
    while growing.len() < bytes {
        value = value.wrapping_add(u32::try_from(random() % 100).expect("small"));
        growing.extend_from_slice(&value.to_le_bytes());
    }
    let mut text = Vec::new();
    while text.len() < bytes {
        let section = ["news", "sport", "music", "films"][usize::try_from(random() % 4).expect("small")];
        writeln!(text, "https://example.com/{section}/page?id={:x}", random() >> 44).expect("memory");
    }
    text.truncate(bytes);
    let mut noise = Vec::new();
    while noise.len() < bytes {
        noise.extend_from_slice(&random().to_le_bytes());
    }
    vec![("growing 32-bit integers", growing), ("text", text), ("noise", noise), ("zeros", vec![0; bytes])]
}

fn random() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

fn compress(codec: Codec, plain: &[u8]) -> Vec<u8> {
    match codec {
        Codec::Snappy => snap::raw::Encoder::new().compress_vec(plain).expect("less than 4 GiB"),
        Codec::Lz4Raw => lz4_flex::block::compress(plain),
        Codec::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(plain).expect("memory");
            encoder.finish().expect("memory")
        }
        Codec::Zstd => {
            let mut compressed = vec![0; zstd_safe::compress_bound(plain.len())];
            let length = zstd_safe::compress(&mut compressed[..], plain, 3).expect("room");
            compressed.truncate(length);
            compressed
        }
        Codec::Brotli => {
            // The level that Arrow C++ uses.
            let params = BrotliEncoderParams { quality: 8, ..BrotliEncoderParams::default() };
            let mut stream = Vec::new();
            brotli::BrotliCompress(&mut &plain[..], &mut stream, &params).expect("memory");
            stream
        }
        Codec::Lz4 => hadoop(plain, lz4_flex::block::compress),
        Codec::Lzo => hadoop(plain, |chunk| lzokay::compress::compress(chunk).expect("memory")),
        Codec::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(plain).expect("memory");
            encoder.finish().expect("memory")
        }
    }
}

/// Hadoop's framing with its default buffer.
fn hadoop(plain: &[u8], compress: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut page = Vec::new();
    for plain in plain.chunks(256 << 10) {
        page.extend(block(plain.len(), &compress(plain)));
    }
    page
}

fn block(plain_bytes: usize, compressed: &[u8]) -> Vec<u8> {
    let size = |bytes: usize| u32::try_from(bytes).expect("small").to_be_bytes();
    [&size(plain_bytes)[..], &size(compressed.len()), compressed].concat()
}

/// Data that become little or nothing.
fn overheads() -> Vec<(Codec, &'static str, Vec<u8>, usize)> {
    let count = 1 << 14;
    let member = |deflate: Vec<u8>| {
        let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
        member.extend(deflate);
        // The last block, fixed codes, empty; then the CRC and length of nothing.
        member.extend([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        member
    };
    let stored = [0, 0, 0, 0xff, 0xff].repeat(count);
    let empty_member = member(Vec::new());
    let empty_frame = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0];
    let mut raw_blocks = vec![0x28, 0xb5, 0x2f, 0xfd, 0x20, 0];
    raw_blocks.extend([0, 0, 0].repeat(count));
    raw_blocks.extend([1, 0, 0]);
    let (flushed, flushed_bytes) = zstd_flushed(200, count / 16);
    // The shortest elements: literals of one byte, copies of four; 2^20 bytes of either.
    let mut literals = vec![0x80, 0x80, 0x40];
    literals.extend([0, b'x'].repeat(PAGE_BYTES));
    let mut copies = vec![0x80, 0x80, 0x40, 3 << 2, b'a', b'b', b'c', b'd'];
    copies.extend([1, 4].repeat(PAGE_BYTES / 4 - 1));
    let mut matches = vec![4 << 4, b'a', b'b', b'c', b'd', 4, 0];
    matches.extend([0, 4, 0].repeat(PAGE_BYTES / 4 - 3));
    matches.extend([4 << 4, b'a', b'b', b'c', b'd']);
    let lz4_blocks = [0, 0, 0, 1, 0, 0, 0, 2, 1 << 4, b'x'].repeat(count);
    // Literals, then matches of two bytes that carry three literals each; the shortest copies are M1.
    let mut lzo_copies = vec![17 + 4, b'a', b'b', b'c', b'd', 0x40 | 1, 0, b'x'];
    lzo_copies.extend([1, 0, b'x'].repeat(PAGE_BYTES / 3 - 3));
    lzo_copies.extend([0x40, 0, 17, 0, 0]);
    let lzo_copies_bytes = 4 + 3 + 1 + 3 * (PAGE_BYTES / 3 - 3) + 3;
    let lzo_copies = block(lzo_copies_bytes, &lzo_copies);
    let mut lzo_matches = vec![17 + 4, b'a', b'b', b'c', b'd'];
    lzo_matches.extend([0x40, 0].repeat(PAGE_BYTES / 3));
    lzo_matches.extend([17, 0, 0]);
    let lzo_matches = block(4 + 3 * (PAGE_BYTES / 3), &lzo_matches);
    let lzo_blocks = [0, 0, 0, 1, 0, 0, 0, 5, 18, b'x', 17, 0, 0].repeat(count);
    let mut hostile = vec![
        (Codec::Lz4, "blocks of one byte", lz4_blocks, count),
        (Codec::Lzo, "copies of two bytes, one literal", lzo_copies, lzo_copies_bytes),
        (Codec::Lzo, "copies of three bytes", lzo_matches, 4 + 3 * (PAGE_BYTES / 3)),
        (Codec::Lzo, "blocks of one byte", lzo_blocks, count),
        (Codec::Brotli, "empty metadata", brotli(count, BrotliBits::metadata), 0),
        (Codec::Brotli, "metadata of one byte", brotli(count, BrotliBits::metadata_byte), 0),
        (Codec::Brotli, "metablocks of one byte", brotli(count, |bits| bits.metablock(1, 8)), count),
    ];
    for (name, literal_types, command_types, literal_trees) in [
        ("metablocks of one byte, 256 types of literals", 256, 1, 2),
        ("metablocks of one byte, 256 trees of literals", 4, 1, 256),
        ("metablocks of one byte, 256 types of commands", 1, 256, 1),
        ("metablocks of one byte, 256 types and trees of all", 256, 256, 256),
    ] {
        let one = |bits: &mut BrotliBits| bits.wide(literal_types, command_types, literal_trees);
        hostile.push((Codec::Brotli, name, brotli(count / 16, one), count / 16));
    }
    let mut others = vec![
        (Codec::Snappy, "literals of one byte", literals, PAGE_BYTES),
        (Codec::Snappy, "copies of four bytes", copies, PAGE_BYTES),
        (Codec::Lz4Raw, "matches of four bytes", matches, PAGE_BYTES),
        (Codec::Gzip, "empty stored blocks", member(stored), 0),
        (Codec::Gzip, "empty blocks, tiny dynamic codes", member(dynamic_blocks(count, false)), 0),
        (Codec::Gzip, "empty blocks, large dynamic codes", member(dynamic_blocks(count, true)), 0),
        (Codec::Gzip, "empty members", empty_member.repeat(count), 0),
        (Codec::Zstd, "empty raw blocks", raw_blocks, 0),
        (Codec::Zstd, "empty frames", empty_frame.repeat(count), 0),
        (Codec::Zstd, "empty skippable frames", [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0].repeat(count), 0),
        (Codec::Zstd, "blocks of 200 bytes of text", flushed, flushed_bytes),
    ];
    hostile.append(&mut others);
    hostile
}

/// A Brotli stream of `count` times the same.
fn brotli(count: usize, one: impl Fn(&mut BrotliBits)) -> Vec<u8> {
    let mut bits = BrotliBits::stream();
    (0..count).for_each(|_| one(&mut bits));
    bits.finish()
}

/// Brotli streams whose bytes take no bits, so that a slice of input fills the complete ring buffer.
fn brotli_free() -> Vec<(&'static str, Vec<u8>, usize)> {
    let mut free = Vec::new();
    let length = PAGE_BYTES - (4 << 10);
    // Commands without extra bits, and one that inserts 22,594 literals and as many as 24 bits say.
    let literals = u64::try_from(length - 22_594).expect("small");
    for (name, command, extra, extra_bits) in [
        ("copies of two bytes for no bits", 0, 0, 0),
        ("a literal and a copy of two bytes for no bits", 8, 0, 0),
        ("literals for no bits", 504, literals, 24),
    ] {
        let mut bits = BrotliBits::stream();
        bits.stored(&[b'x'; 4 << 10]);
        bits.metablock(length, command);
        bits.push(extra, extra_bits);
        free.push((name, bits.finish(), PAGE_BYTES));
    }
    for (name, all, command, extra, extra_bits) in [
        ("literals in blocks of one", false, 504, literals, 24),
        ("literals, copies of two bytes and distances in blocks of one", true, 136, 0, 0),
    ] {
        let mut bits = BrotliBits::stream();
        bits.stored(&[b'x'; 4 << 10]);
        bits.switching(length, all, command, extra, extra_bits);
        free.push((name, bits.finish(), PAGE_BYTES));
    }
    free
}

/// Streams that copy the least from far back, where nothing is in the processor's caches.
fn far() -> Vec<(Codec, String, Vec<u8>, usize)> {
    let mut random = random();
    let mut all = Vec::new();
    for log in [15, 18, 19, 20, 21, 22, 25, 26] {
        let history = (2 << log) / zstd_bits::BLOCK_BYTES + 1;
        let count = zstd_bits::matches_max(log);
        let mut frame = zstd_bits::frame((log + 1).max(17));
        frame.extend(zstd_bits::run(b'x').repeat(history));
        for _ in 0..8 {
            let distances: Vec<u64> = (0..count).map(|_| random()).collect();
            frame.extend(zstd_bits::matches(log, &distances));
        }
        frame.extend(zstd_bits::END);
        let name = format!("matches of three bytes from {} KiB back", 1 << (log - 10));
        all.push((Codec::Zstd, name, frame, history * zstd_bits::BLOCK_BYTES + 8 * 3 * count));
        if [20, 25].contains(&log) {
            let count = zstd_bits::copies_max(log);
            let distances: Vec<u64> = (0..count).map(|_| random()).collect();
            let mut frame = zstd_bits::frame(log + 1);
            frame.extend(zstd_bits::run(b'x').repeat(history));
            frame.extend(zstd_bits::copies(log, &distances).repeat(8));
            frame.extend(zstd_bits::END);
            let name = format!("17 literals, matches of three bytes from {} KiB back", 1 << (log - 10));
            all.push((Codec::Zstd, name, frame, history * zstd_bits::BLOCK_BYTES + 8 * 20 * count));
        }
    }
    for log in [12, 15, 18, 20, 21] {
        let history = 6 << log;
        let mut bits = BrotliBits::stream();
        bits.stored(&[b'x'; 4 << 10]);
        bits.metablock(history - (4 << 10), 2);
        let distances: Vec<u64> = (0..PAGE_BYTES / 2).map(|_| random()).collect();
        bits.far(log, &distances);
        let name = format!("copies of two bytes from {} KiB back", 4 << (log - 10));
        all.push((Codec::Brotli, name, bits.finish(), history + PAGE_BYTES));
    }
    all
}

/// ZSTD blocks that describe all tables there are for a few bytes.
fn tables() -> Vec<(Codec, String, Vec<u8>, usize)> {
    let count = 1 << 12;
    let of = |literals: usize| {
        let blocks = zstd_bits::tables(literals).repeat(count);
        let frame =
            [zstd_bits::frame(17), zstd_bits::raw(&[0; 16]), blocks, zstd_bits::END.to_vec()].concat();
        let name = format!("blocks of {} bytes with all tables", literals + 3);
        (Codec::Zstd, name, frame, 16 + count * (literals + 3))
    };
    [1, 20, 40, 300, 1000].map(of).into()
}

/// ZSTD pages beyond what the library decodes: usual data, and a frame that is all tables.
fn large() -> Vec<(Codec, String, Vec<u8>, usize)> {
    let mut all: Vec<_> = inputs(8 * PAGE_BYTES)
        .into_iter()
        .map(|(data, plain)| {
            (Codec::Zstd, format!("8 MiB of {data}"), compress(Codec::Zstd, &plain), plain.len())
        })
        .collect();
    let count = 1 << 10;
    for literals in [1, 40, 1000] {
        let history = zstd_bits::run(0).repeat(LIBRARY_BYTES_MAX / zstd_bits::BLOCK_BYTES + 1);
        let blocks = zstd_bits::tables(literals).repeat(count);
        let bytes = history.len() / 4 * zstd_bits::BLOCK_BYTES + count * (literals + 3);
        let frame = [zstd_bits::frame(23), history, blocks, zstd_bits::END.to_vec()].concat();
        all.push((
            Codec::Zstd,
            format!("large page, blocks of {} bytes with all tables", literals + 3),
            frame,
            bytes,
        ));
    }
    all
}

/// Empty deflate blocks with Huffman codes of their own (RFC 1951, section 3.2.7), byte-aligned in the end.
fn dynamic_blocks(count: usize, large: bool) -> Vec<u8> {
    let mut bits = Bits::default();
    for _ in 0..count {
        // Not the last block, dynamic codes; then the numbers of codes: 257 and 1, or 286 and 30; 18 code lengths.
        bits.push(0b100, 3);
        bits.push(if large { 29 } else { 0 }, 5);
        bits.push(if large { 29 } else { 0 }, 5);
        bits.push(14, 4);
        // The lengths of the codes for 16 17 18 0 8 7 9 6 10 5 11 4 12 3 13 2 14 1.
        let lengths = if large {
            [1, 0, 0, 0, 3, 0, 3, 0, 0, 3, 0, 3, 0, 0, 0, 0, 0, 0]
        } else {
            [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]
        };
        lengths.iter().for_each(|&length| bits.push(length, 3));
        if large {
            // 226 lengths of 8 and 60 of 9; 2 distances of 4 and 28 of 5: complete codes, as zlib requires.
            bits.push_code(0b110, 3);
            bits.push_repeats(225);
            bits.push_code(0b111, 3);
            bits.push_repeats(59);
            bits.push_code(0b100, 3);
            bits.push_code(0b100, 3);
            bits.push_code(0b101, 3);
            bits.push_repeats(27);
            // End of block, symbol 256, is the 31st of nine bits.
            bits.push_code((226 << 1) + 30, 9);
        } else {
            // 138 + 118 lengths of 0, then 1 for the end of block and 1 for a distance; then the end of block.
            bits.push_code(1, 1);
            bits.push(138 - 11, 7);
            bits.push_code(1, 1);
            bits.push(118 - 11, 7);
            bits.push(0, 3);
        }
    }
    // An empty stored block, which is aligned.
    bits.push(0, 3);
    bits.align();
    bits.bytes.extend([0, 0, 0xff, 0xff]);
    bits.bytes
}

/// Bits in deflate's order.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    pending: u64,
    count: u32,
}

impl Bits {
    /// A number: the least significant bit first.
    fn push(&mut self, value: u64, count: u32) {
        self.pending |= value << self.count;
        self.count += count;
        while self.count >= 8 {
            self.bytes.push(self.pending.to_le_bytes()[0]);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    /// A Huffman code: the most significant bit first.
    fn push_code(&mut self, code: u64, count: u32) {
        (0..count).rev().for_each(|bit| self.push(code >> bit & 1, 1));
    }

    /// Symbol 16, code 0: repeats the length before, 3 to 6 times each.
    fn push_repeats(&mut self, mut times: u64) {
        while times > 0 {
            let run = times.min(6);
            self.push_code(0, 1);
            self.push(run - 3, 2);
            times -= run;
        }
    }

    fn align(&mut self) {
        self.push(0, (8 - self.count) % 8);
    }
}

/// One frame of `count` blocks of `bytes` of text each, with Huffman tables of their own.
fn zstd_flushed(bytes: usize, count: usize) -> (Vec<u8>, usize) {
    let mut random = random();
    let mut text = String::new();
    while text.len() < bytes * count {
        text.push_str(&format!("{:o} ", random()));
    }
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::CompressionLevel(3)).expect("a level");
    let mut frame = vec![0; 2 * text.len() + 1024];
    let mut output = zstd_safe::OutBuffer::around(&mut frame[..]);
    for chunk in text.as_bytes().chunks(bytes) {
        let mut input = zstd_safe::InBuffer::around(chunk);
        context.compress_stream(&mut output, &mut input).expect("room");
        context.flush_stream(&mut output).expect("room");
    }
    context.end_stream(&mut output).expect("room");
    let length = output.pos();
    frame.truncate(length);
    (frame, text.len())
}
