//! Bytes in every codec, by the crates that others use.

use std::io::Write;

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use marquetry_base::Codec;

/// The codecs, by their numbers in the format.
pub const CODECS: [(i32, Option<Codec>); 8] = [
    (0, None),
    (1, Some(Codec::Snappy)),
    (2, Some(Codec::Gzip)),
    (6, Some(Codec::Zstd)),
    (7, Some(Codec::Lz4Raw)),
    (4, Some(Codec::Brotli)),
    (5, Some(Codec::Lz4)),
    (3, Some(Codec::Lzo)),
];

/// `plain` in a codec; `how` chooses among its encoder's ways.
///
/// # Panics
///
/// When an encoder fails, which none does.
pub fn compress(codec: Codec, plain: &[u8], how: u8) -> Vec<u8> {
    match codec {
        Codec::Snappy => snap::raw::Encoder::new().compress_vec(plain).expect("any bytes"),
        Codec::Lz4Raw => lz4_flex::block::compress(plain),
        Codec::Gzip => {
            let half = if how & 0x80 == 0 { plain.len() } else { plain.len() / 2 };
            // Members follow each other.
            let parts = if half == plain.len() { vec![plain] } else { vec![&plain[..half], &plain[half..]] };
            let member = |part: &[u8]| {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::new(u32::from(how) % 10));
                encoder.write_all(part).and_then(|()| encoder.finish()).expect("a vector takes all")
            };
            parts.into_iter().flat_map(member).collect()
        }
        Codec::Zlib => {
            let level = Compression::new(u32::from(how) % 10);
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(plain).and_then(|()| encoder.finish()).expect("a vector takes all")
        }
        Codec::Zstd => zstd(plain, how),
        Codec::Brotli => {
            let params = BrotliEncoderParams {
                // The best qualities take seconds to set up.
                quality: i32::from(how % 7),
                lgwin: 10 + i32::from(how / 7 % 12),
                ..BrotliEncoderParams::default()
            };
            let mut stream = Vec::new();
            brotli::BrotliCompress(&mut &plain[..], &mut stream, &params).expect("a vector takes all");
            stream
        }
        Codec::Lz4 => match how % 3 {
            0 => hadoop(plain, how, lz4_flex::block::compress),
            1 => {
                let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
                encoder.write_all(plain).expect("a vector takes all");
                encoder.finish().expect("a vector takes all")
            }
            _ => lz4_flex::block::compress(plain),
        },
        // The encoder clears large tables for each part: of hundreds of thousands, that would be all that a run does.
        Codec::Lzo => hadoop(plain, how, |part| match part.len() {
            0..18 if plain.len() > 64 << 10 => lzo_literals(part),
            _ => lzokay::compress::compress(part).expect("any bytes"),
        }),
    }
}

/// A stream of LZO without copies, of a few bytes.
fn lzo_literals(few: &[u8]) -> Vec<u8> {
    const END: [u8; 3] = [0x11, 0, 0];
    [&[17 + few.len() as u8][..], few, &END].concat()
}

fn zstd(plain: &[u8], how: u8) -> Vec<u8> {
    let mut context = zstd_safe::CCtx::create();
    let set = |context: &mut zstd_safe::CCtx<'_>, parameter| {
        context.set_parameter(parameter).expect("a parameter in its range");
    };
    set(&mut context, zstd_safe::CParameter::CompressionLevel(i32::from(how % 16)));
    set(&mut context, zstd_safe::CParameter::ChecksumFlag(how & 0x10 != 0));
    set(&mut context, zstd_safe::CParameter::ContentSizeFlag(how & 0x20 == 0));
    set(&mut context, zstd_safe::CParameter::WindowLog(10 + u32::from(how >> 6)));
    let mut frame = vec![0; zstd_safe::compress_bound(plain.len())];
    let length = context.compress2(&mut frame[..], plain).expect("room for the bound");
    frame.truncate(length);
    frame
}

/// A raw deflate stream.
///
/// # Panics
///
/// Never: a vector takes all.
pub fn deflate(plain: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(plain).and_then(|()| encoder.finish()).expect("a vector takes all")
}

/// Hadoop's framing: blocks, in chunks.
pub fn hadoop(plain: &[u8], how: u8, compress: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let size = |length: usize| (length as u32).to_be_bytes();
    let block = [1 << 20, 1 << 12, 300, 17][usize::from(how / 3 % 4)];
    let chunk = if how & 0x40 == 0 { block } else { block / 2 };
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
