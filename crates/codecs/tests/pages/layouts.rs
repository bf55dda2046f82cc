//! The layouts of LZ4 and LZO pages: Hadoop's framing and its alternatives. The literals are by the reference
//! libraries: liblzo2 2.10 (through python-lzo 1.14) and liblz4 (through python's lz4).

use crate::encoders::{Random, hadoop};
use marquetry_base::{Budget, Codec, Codecs, ErrorKind, Result, Status};
use marquetry_codecs::StandardCodecs;

/// Decompresses with all input and room at once. Also returns the number of steps.
fn steps(codec: Codec, page: &[u8], uncompressed: usize, units: u64) -> Result<(Vec<u8>, usize)> {
    let mut it = StandardCodecs::default().decompressor(codec)?;
    it.start(page.len(), uncompressed, true)?;
    let mut output = vec![0xaa; uncompressed];
    let (mut consumed, mut produced, mut steps) = (0, 0, 0);
    loop {
        let mut budget = Budget::new(units);
        let progress = it.step(&page[consumed..], true, &mut output, produced, &mut budget)?;
        consumed += progress.consumed;
        produced += progress.produced;
        steps += 1;
        match progress.status {
            Status::End => {
                assert_eq!((consumed, produced), (page.len(), uncompressed));
                return Ok((output, steps));
            }
            Status::Yield => assert!(progress.consumed + progress.produced > 0),
            status => panic!("{status:?} with everything at hand"),
        }
    }
}

fn decompress(codec: Codec, page: &[u8], uncompressed: usize) -> Result<Vec<u8>> {
    steps(codec, page, uncompressed, 0).map(|(output, _)| output)
}

fn refused(codec: Codec, page: &[u8], uncompressed: usize, words: &str) {
    let error = decompress(codec, page, uncompressed).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.message().contains(words), "{error} does not say {words:?}");
}

fn hex(text: &str) -> Vec<u8> {
    text.as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// A block of one chunk in Hadoop's framing.
fn block(uncompressed: u32, chunk: &[u8]) -> Vec<u8> {
    let length = u32::try_from(chunk.len()).unwrap();
    [&uncompressed.to_be_bytes()[..], &length.to_be_bytes(), chunk].concat()
}

#[test]
fn chunks_and_blocks() {
    let plain = Random::new(1).text(100_000);
    let lzo = |plain: &[u8]| lzokay::compress::compress(plain).unwrap();
    for (codec, compress) in
        [(Codec::Lz4, lz4_flex::block::compress as fn(&[u8]) -> Vec<u8>), (Codec::Lzo, lzo)]
    {
        for (block, chunk) in
            [(100_000, 100_000), (50_000, 50_000), (100_000, 9_999), (30_000, 20_000), (1, 1)]
        {
            let mut page = hadoop(&plain, block, chunk, compress);
            let (output, taken) = steps(codec, &page, plain.len(), 0).unwrap();
            assert!(output == plain);
            assert!(taken > 10, "{taken} steps without a budget");
            assert_eq!(steps(codec, &page, plain.len(), u64::MAX).unwrap().1, 1);
            // Hadoop ends a stream that was split into chunks like this.
            page.extend([0; 4]);
            assert!(decompress(codec, &page, plain.len()).unwrap() == plain);
            page.push(0);
            refused(codec, &page, plain.len(), "cut short");
        }
        let nothing = if codec == Codec::Lz4 { vec![0] } else { vec![0x11, 0, 0] };
        // Chunks that end before their block, continue after it, or are empty.
        let chunk = compress(b"twelve bytes");
        let name = codec.name();
        refused(codec, &block(13, &chunk), 13, "cut short after 12 of 13");
        refused(codec, &block(11, &chunk), 12, "more than");
        refused(codec, &block(12, &chunk), 13, "12 uncompressed bytes, not the announced 13");
        refused(
            codec,
            &block(12, &chunk),
            11,
            &format!("corrupt {name} page: it has more than the announced 11"),
        );
        refused(codec, &[block(12, &chunk), block(12, &chunk)].concat(), 12, "more than the announced 12");
        refused(codec, &[block(1, &nothing), block(12, &chunk)].concat(), 13, "a chunk has no data");
        // (Such an LZO page is no longer taken for Hadoop's.)
        let words = if codec == Codec::Lzo { "" } else { "are left" };
        refused(codec, &block(12, &chunk)[..chunk.len() + 7], 12, words);
        // Empty pages, as Hadoop and Arrow C++ write them.
        assert_eq!(decompress(codec, &[0; 4], 0).unwrap(), []);
        assert_eq!(decompress(codec, &block(0, &nothing), 0).unwrap(), []);
        refused(codec, &block(0, &chunk), 0, "more than");
    }
}

#[test]
fn bare_lz4_blocks() {
    let mut random = Random::new(2);
    for plain in [
        vec![],
        vec![7],
        b"words, words, words".to_vec(),
        random.text(70_000),
        random.noise(70_000),
        vec![0; 70_000],
    ] {
        let page = lz4_flex::block::compress(&plain);
        assert!(decompress(Codec::Lz4, &page, plain.len()).unwrap() == plain);
        if plain.len() > 1 {
            refused(Codec::Lz4, &page, plain.len() - 1, "more than the announced");
            refused(Codec::Lz4, &page, plain.len() + 1, "not the announced");
            refused(Codec::Lz4, &page[..page.len() - 1], plain.len(), "");
        }
    }
}

/// 117 bytes; checksums of the block and of the content.
const FRAME: &str = "04224d185440ae25000000fc017468652073616d6520776f7264732c2010007f616761696e3b202700365061696e3b20\
    d218ff5b00000000b704fb08";
const FRAME_PLAIN: &[u8] = b"the same words, the same words, again; ";

/// Two blocks, the second of which refers to the first, 80,000 bytes; checksums of blocks and content, and its size.
fn linked_frame() -> Vec<u8> {
    [
        hex("04224d185c4080380100000000005a1b010000ff017468652073616d6520776f7264732c201000"),
        vec![0xff; 256],
        hex("d8507264732c20223ad2cd420000000f1000"),
        vec![0xff; 56],
        hex("a0507264732c20fd4bc02300000000fa6a0b35"),
    ]
    .concat()
}

#[test]
fn lz4_frames() {
    let (frame, plain) = (hex(FRAME), FRAME_PLAIN.repeat(3));
    assert!(decompress(Codec::Lz4, &frame, 117).unwrap() == plain);
    assert!(decompress(Codec::Lz4, &frame.repeat(3), 351).unwrap() == plain.repeat(3));
    let linked = linked_frame();
    assert!(decompress(Codec::Lz4, &linked, 80_000).unwrap() == b"the same words, ".repeat(5_000));
    // A block that is not compressed, written by hand.
    let checksum = 0x32d1_53ff_u32.to_le_bytes();
    let stored = [&frame[..7], &[3, 0, 0, 0x80], b"abc", &checksum, &[0; 4], &checksum].concat();
    assert_eq!(decompress(Codec::Lz4, &stored, 3).unwrap(), b"abc");
    refused(Codec::Lz4, &stored, 2, "more than the announced 2");

    refused(Codec::Lz4, &frame, 116, "more than the announced 116");
    refused(Codec::Lz4, &frame, 118, "117 uncompressed bytes, not the announced 118");
    refused(
        Codec::Lz4,
        &[&frame[..], b"garbage"].concat(),
        117,
        "an LZ4 frame is followed by bytes that are not a frame",
    );
    refused(Codec::Lz4, &linked, 79_999, "more than the announced 79999");
    for page in [&frame, &linked] {
        let uncompressed = if page.len() == frame.len() { 117 } else { 80_000 };
        for length in 0..page.len() {
            let error = decompress(Codec::Lz4, &page[..length], uncompressed).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "cut at {length}: {error}");
        }
        for at in 0..page.len() {
            for change in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                let mut changed = page.clone();
                changed[at] ^= change;
                // Everything is checked, except the maximum block size and the frame's magic number.
                let error = decompress(Codec::Lz4, &changed, uncompressed).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{error}");
            }
        }
    }
}

/// Pages as Parquet Java's LZO codec builds them from liblzo2's blocks: each uncompressed, and its block.
fn lzo_blocks() -> Vec<(Vec<u8>, Vec<u8>)> {
    let words = b"the same words, the same words, again; ".repeat(3);
    let numbers: Vec<u8> = (0..40u32).flat_map(u32::to_le_bytes).collect();
    let start = hex("2291d8cdc310411e7ec27378a661c935187c07e4d5636e9bc3c400b27244b8cd3a97f11ae6510705");
    let far = [&start[..], &[0; 20_000], &start[..]].concat();
    vec![
        (vec![], hex("110000")),
        (b"hello, lzo world!".to_vec(), hex("2268656c6c6f2c206c7a6f20776f726c6421110000")),
        // LZO1X-1, then LZO1X-999.
        (vec![b'a'; 1000], hex("02616161616120000000b610000c616161616161616161616161616161110000")),
        (vec![b'a'; 1000], hex("126120000000c90000110000")),
        (
            words.clone(),
            hex(
                "0d7468652073616d6520776f7264732c202e3c0003616761696e3b2f5800200b98000f616d6520776f7264732c20616761696e3b\
                20110000",
            ),
        ),
        (words, hex("217468652073616d6520776f7264732c202e3c0004616761696e3b20202d9800110000")),
        (
            numbers,
            hex(
                "12004100014d00024d00034d00044d00054d00064d00074d00084d00094d000a4d000b4d000c4d000d4d000e4d000f4d00104d00\
                114d00124d00134d00144d00154d00164d00174d00184d00194d001a4d001b4d001c4d001d4d001e4d001f4d00204d00214d0022\
                4d00234d00244d00254d00264d00274c00110000",
            ),
        ),
        // A match from beyond 16 KiB.
        (
            far,
            [
                hex("00182291d8cdc310411e7ec27378a661c935187c07e4d5636e9bc3c400b27244b8cd3a97f11ae6510705"),
                hex("000020"),
                vec![0; 78],
                hex("4b0400100b20390002"),
                hex("d5636e9bc3c400b27244b8cd3a97f11ae6510705110000"),
            ]
            .concat(),
        ),
    ]
}

#[test]
fn lzo_by_the_reference_library() {
    for (plain, bare) in lzo_blocks() {
        let size = u32::try_from(plain.len()).unwrap();
        let python = [&[0xf0][..], &size.to_be_bytes(), &bare].concat();
        let framed = block(size, &bare);
        for page in [&bare, &python, &framed] {
            assert!(decompress(Codec::Lzo, page, plain.len()).unwrap() == plain, "{} bytes", plain.len());
            if plain.is_empty() {
                continue;
            }
            refused(Codec::Lzo, page, plain.len() - 1, "");
            refused(Codec::Lzo, page, plain.len() + 1, "");
            for length in 0..page.len() {
                let error = decompress(Codec::Lzo, &page[..length], plain.len()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "cut at {length}: {error}");
            }
            for at in 0..page.len() {
                for change in 1..=255 {
                    let mut changed = page.clone();
                    changed[at] ^= change;
                    match decompress(Codec::Lzo, &changed, plain.len()) {
                        Ok(output) => assert_eq!(output.len(), plain.len()),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}"),
                    }
                }
            }
        }
    }
}

#[test]
fn the_three_layouts_of_lzo_are_told_apart() {
    // If the first literals are many, bare blocks start with zeros, as the sizes of blocks do.
    let mut random = Random::new(3);
    for length in (200..900).step_by(7).chain([70_000, 300_000]) {
        let plain = random.noise(length);
        let bare = lzokay::compress::compress(&plain).unwrap();
        assert!(bare[0] == 0 || length <= 238);
        for page in [&bare, &block(u32::try_from(length).unwrap(), &bare)] {
            assert!(decompress(Codec::Lzo, page, length).unwrap() == plain);
        }
    }
    // Bytes that would be plausible sizes.
    let plain = [&[0; 3][..], &[40][..], &random.noise(300)].concat();
    let bare = lzokay::compress::compress(&plain).unwrap();
    assert!(decompress(Codec::Lzo, &bare, plain.len()).unwrap() == plain);
    refused(Codec::Lzo, b"neither of the three", 100, "");
}
