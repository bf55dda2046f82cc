//! Pages whose compressed streams are at the extremes of their codecs: blocks, copies and tables that are as small, as large or as many
//! as can be. What they decompress to are numbers, whatever it is.

use std::io::Write;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use marquetry_conformance::adversarial::lz4_sequence;
use marquetry_conformance::craft::{self, Page, V, varint};
use marquetry_conformance::hostile::Random;

use super::{Leaf, Shape};
use crate::choices::Choices;
use crate::encode::Physical;

/// Bytes of a page here, at the most: compressing them takes longer than reading them.
const PLAIN_BYTES: usize = 1 << 20;

/// The most blocks or copies of a stream.
const PARTS: usize = 100_000;

/// As [`super::values::pages`]: one page of flat PLAIN values.
pub(super) fn pages(leaf: &mut Leaf, choices: &mut Choices<'_>) -> (Vec<Page>, i32, usize) {
    leaf.shape = Shape::Required;
    leaf.physical = choices.pick(&[Physical::Int64, Physical::Fixed(1), Physical::Fixed(4_096)]);
    let width = leaf.physical.width().unwrap_or(1);
    let parts = choices.pick(&[1_000, 1, 0, 2, 30_000, PARTS]);
    let (codec, (stream, bytes)) = match choices.byte() % 5 {
        0 => (craft::ZSTD, zstd(parts, choices)),
        1 => (craft::GZIP, gzip(parts, choices)),
        2 => (craft::BROTLI, brotli(parts, choices)),
        3 => (craft::SNAPPY, snappy(parts, choices)),
        _ => (craft::LZ4_RAW, lz4(parts, choices)),
    };
    let entries = bytes / width;
    let page = Page::data(entries as i32, craft::PLAIN, stream).with(2, V::I32(bytes as i32));
    (vec![page], codec, entries)
}

/// A stream, and what it is decompressed to: a count of bytes.
type Stream = (Vec<u8>, usize);

/// Bytes of some kind: noise, text of few letters, one letter.
fn plain(bytes: usize, choices: &mut Choices<'_>) -> Vec<u8> {
    let kind = choices.byte() % 4;
    let random: &mut Random = &mut choices.random();
    let mut byte = |at: usize| match kind {
        0 => random.byte(),
        1 => b'a' + random.byte() % 7,
        // Numbers of one magnitude: every table is needed, and none is long.
        2 if at % 8 < 3 => random.byte(),
        _ => 0,
    };
    (0..bytes).map(&mut byte).collect()
}

/// How much stands in a block.
fn part_bytes(parts: usize, choices: &mut Choices<'_>) -> usize {
    choices.pick(&[32, 1, 2, 8, 16, 64, 300, 4_096, 131_072]).min(PLAIN_BYTES / parts.max(1)).max(1)
}

fn zstd(parts: usize, choices: &mut Choices<'_>) -> Stream {
    const HEAD: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    let block = |length: usize, kind: usize, last: bool| -> [u8; 3] {
        let head = (length << 3 | kind << 1 | usize::from(last)).to_le_bytes();
        [head[0], head[1], head[2]]
    };
    match choices.byte() % 6 {
        // Blocks of one byte that repeats.
        0 => {
            let length = choices.pick(&[1, 0, 100, 131_072]);
            let parts = parts.min(8 * PLAIN_BYTES / (length + 1));
            let one = [&block(length, 1, false)[..], b"r"].concat();
            ([&HEAD[..], &one.repeat(parts), &block(0, 0, true)].concat(), parts * length)
        }
        // Blocks as they are.
        1 => {
            let length = part_bytes(parts, choices) % 131_072;
            let one = [&block(length, 0, false)[..], &vec![b'w'; length]].concat();
            ([&HEAD[..], &one.repeat(parts), &block(0, 0, true)].concat(), parts * length)
        }
        // Frames that are skipped, and one that is empty.
        2 => {
            let skipped = [0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
            ([&skipped.repeat(parts)[..], &HEAD, &block(0, 0, true)].concat(), 0)
        }
        // Frames of their own.
        3 => {
            let part = plain(part_bytes(parts, choices), choices);
            let mut frame = vec![0; zstd_safe::compress_bound(part.len())];
            let length = zstd_safe::compress(&mut frame[..], &part, 3).expect("room for the bound");
            (frame[..length].repeat(parts), parts * part.len())
        }
        // Blocks with tables of their own.
        _ => {
            let mut context = zstd_safe::CCtx::create();
            let level = choices.pick(&[1, 3, 9, 15]);
            let _ = context.set_parameter(zstd_safe::CParameter::CompressionLevel(level));
            let parts = parts.min(5_000);
            let part = part_bytes(parts, choices);
            let plain = plain(part * parts, choices);
            let mut out = vec![0; zstd_safe::compress_bound(plain.len()) + 64 * parts + 64];
            let mut output = zstd_safe::OutBuffer::around(&mut out[..]);
            for part in plain.chunks(part) {
                let _ = context.compress_stream(&mut output, &mut zstd_safe::InBuffer::around(part));
                let _ = context.flush_stream(&mut output);
            }
            let _ = context.end_stream(&mut output);
            let length = output.pos();
            out.truncate(length);
            (out, plain.len())
        }
    }
}

fn gzip(parts: usize, choices: &mut Choices<'_>) -> Stream {
    const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let member = |stream: &[u8], crc: u32, bytes: usize| {
        [&HEAD[..], stream, &crc.to_le_bytes(), &(bytes as u32).to_le_bytes()].concat()
    };
    match choices.byte() % 4 {
        // Stored blocks of nothing, and one that is the last.
        0 => (member(&[[0, 0, 0, 0xff, 0xff].repeat(parts), vec![3, 0]].concat(), 0, 0), 0),
        // Members of nothing, with long names.
        1 => {
            let name = vec![b'n'; choices.pick(&[0, 1, 1_000, 100_000])];
            let parts = parts.min(4 * PLAIN_BYTES / (name.len() + 20));
            let one = [&HEAD[..3], &[8], &HEAD[4..], &name, &[0, 3, 0], &[0; 8]].concat();
            (one.repeat(parts), 0)
        }
        // Blocks with tables of their own.
        _ => {
            let parts = parts.min(5_000);
            let part = part_bytes(parts, choices);
            let plain = plain(part * parts, choices);
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(choices.pick(&[6, 1, 9, 0])));
            for part in plain.chunks(part) {
                let _ = encoder.write_all(part).and_then(|()| encoder.flush());
            }
            let stream = encoder.finish().unwrap_or_default();
            let mut crc = Crc::new();
            crc.update(&plain);
            (member(&stream, crc.sum(), plain.len()), plain.len())
        }
    }
}

fn brotli(parts: usize, choices: &mut Choices<'_>) -> Stream {
    let quality = choices.pick(&[5, 1, 2, 9]);
    let parts = parts.min(2_000);
    let part = part_bytes(parts, choices);
    let plain = plain(part * parts, choices);
    let mut encoder =
        brotli::CompressorWriter::new(Vec::new(), 1 << 16, quality, choices.pick(&[22, 10, 16, 24]));
    // A flush ends a block; one of nothing is a block of metadata.
    for part in plain.chunks(part) {
        let _ = encoder.write_all(part).and_then(|()| encoder.flush());
    }
    (encoder.into_inner(), plain.len())
}

fn snappy(parts: usize, choices: &mut Choices<'_>) -> Stream {
    let far = choices.pick(&[65_535, 8, 1, 2_000, 300_000]);
    let first = plain(far, choices);
    let last = first.len() - 1;
    // Literals have their length less one in two bytes, or four.
    let mut out = [&[63 << 2][..], &(last as u32).to_le_bytes(), &first].concat();
    let copies: [(Vec<u8>, usize); 5] = [
        ([&[63 << 2 | 3][..], &(far as u32).to_le_bytes()].concat(), 64),
        ([&[3][..], &(far as u32).to_le_bytes()].concat(), 1),
        ([&[2][..], &(far.min(65_535) as u16).to_le_bytes()].concat(), 1),
        (vec![1, far.min(255) as u8], 4),
        (vec![0, b'l'], 1),
    ];
    let (copy, bytes) = copies[choices.below(copies.len())].clone();
    out.extend(copy.repeat(parts));
    let total = first.len() + parts * bytes;
    let mut stream = Vec::new();
    varint(&mut stream, total as u64);
    stream.extend(out);
    (stream, total)
}

fn lz4(parts: usize, choices: &mut Choices<'_>) -> Stream {
    let far = choices.pick(&[65_535, 4, 1, 2_000]);
    let matched = choices.pick(&[4, 5, 19, 64, 10_000]);
    let literals = vec![b'l'; choices.pick(&[0, 1, 15, 300])];
    let parts = parts.min(4 * PLAIN_BYTES / (matched + literals.len()));
    let mut stream = lz4_sequence(&plain(far, choices), far, 4);
    stream.extend(lz4_sequence(&literals, far, matched).repeat(parts));
    // The last sequence has literals only.
    stream.extend([5 << 4, 0, 0, 0, 0, 0]);
    (stream, far + 4 + parts * (matched + literals.len()) + 5)
}
