//! The encoders' side of the tests, and data to encode.

pub(crate) mod brotli_bits;
pub(crate) mod zstd_bits;

use std::io::Write;

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use marquetry_base::Codec;

pub(crate) fn compress(codec: Codec, plain: &[u8]) -> Vec<u8> {
    match codec {
        Codec::Snappy => snap::raw::Encoder::new().compress_vec(plain).unwrap(),
        Codec::Lz4Raw => lz4_flex::block::compress(plain),
        Codec::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
        Codec::Zstd => {
            let mut context = zstd_safe::CCtx::create();
            context.set_parameter(zstd_safe::CParameter::ChecksumFlag(true)).unwrap();
            let mut frame = vec![0; zstd_safe::compress_bound(plain.len())];
            let length = context.compress2(&mut frame[..], plain).unwrap();
            frame.truncate(length);
            frame
        }
        Codec::Brotli => {
            let params = BrotliEncoderParams { quality: 5, ..BrotliEncoderParams::default() };
            let mut stream = Vec::new();
            brotli::BrotliCompress(&mut &plain[..], &mut stream, &params).unwrap();
            stream
        }
        Codec::Lz4 => hadoop(plain, 100_000, 30_000, lz4_flex::block::compress),
        Codec::Lzo => hadoop(plain, 100_000, 30_000, |chunk| lzokay::compress::compress(chunk).unwrap()),
        Codec::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
            encoder.write_all(plain).unwrap();
            encoder.finish().unwrap()
        }
    }
}

/// Hadoop's framing: blocks of `block` bytes, in chunks of `chunk` bytes.
pub(crate) fn hadoop(
    plain: &[u8],
    block: usize,
    chunk: usize,
    compress: impl Fn(&[u8]) -> Vec<u8>,
) -> Vec<u8> {
    let size = |length: usize| u32::try_from(length).unwrap().to_be_bytes();
    let mut page = Vec::new();
    for block in plain.chunks(block) {
        page.extend(size(block.len()));
        for chunk in block.chunks(chunk) {
            let compressed = compress(chunk);
            page.extend(size(compressed.len()));
            page.extend(compressed);
        }
    }
    page
}

/// A Zstandard frame with a window of its own and of unknown content size.
pub(crate) fn zstd_frame(plain: &[u8], window_log: u32) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    context.set_parameter(zstd_safe::CParameter::WindowLog(window_log)).unwrap();
    context.set_parameter(zstd_safe::CParameter::ContentSizeFlag(false)).unwrap();
    let mut frame = vec![0; zstd_safe::compress_bound(plain.len())];
    let length = context.compress2(&mut frame[..], plain).unwrap();
    frame.truncate(length);
    frame
}

/// A GZIP member with these flags and what they announce.
pub(crate) fn member(flags: u8, fields: &[u8], plain: &[u8]) -> Vec<u8> {
    let mut member = vec![0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 0, 255];
    member.extend_from_slice(fields);
    let mut encoder = DeflateEncoder::new(member, Compression::best());
    encoder.write_all(plain).unwrap();
    let mut member = encoder.finish().unwrap();
    member.extend(crc32fast::hash(plain).to_le_bytes());
    member.extend(u32::try_from(plain.len()).unwrap().to_le_bytes());
    member
}

/// xorshift64: the same numbers in every run.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    pub(crate) fn noise(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next().to_le_bytes()[5]).collect()
    }

    pub(crate) fn text(&mut self, length: usize) -> Vec<u8> {
        let words = ["tailnum ", "origin ", "distance ", "delay "];
        let mut text = Vec::new();
        while text.len() < length {
            text.extend_from_slice(words[self.below(4)].as_bytes());
            write!(text, "{} ", self.next() % 10_000).unwrap();
        }
        text.truncate(length);
        text
    }
}
