//! Block codecs compared with the one-shot crates, on valid and invalid blocks, split at random.

use std::io::Write;

use flate2::write::DeflateEncoder;
use marquetry_base::{Budget, Codec, Codecs, Decompressor, ErrorKind, Status};
use marquetry_codecs::StandardCodecs;

use crate::encoders::{self, Random};
use crate::{decompressor, run, run_in_pieces_of};

const BLOCKS: [Codec; 3] = [Codec::Snappy, Codec::Lz4Raw, Codec::Lzo];

/// The page by a one-shot crate, if it has `uncompressed` bytes.
fn one_shot(codec: Codec, page: &[u8], uncompressed: usize) -> Option<Vec<u8>> {
    let mut output = vec![0; uncompressed];
    let length = match codec {
        // It needs the room that the block claims, and accepts more.
        Codec::Snappy => snap::raw::Decoder::new().decompress(page, &mut output).ok()?,
        Codec::Lz4Raw => lz4_flex::block::decompress_into(page, &mut output).ok()?,
        Codec::Lzo => {
            let chunk = &page[8..];
            lzo::decompress_into(chunk, &mut output).ok()?
        }
        _ => unreachable!("no block codec"),
    };
    (length == uncompressed).then_some(output)
}

fn compress(codec: Codec, plain: &[u8]) -> Vec<u8> {
    match codec {
        Codec::Snappy => snap::raw::Encoder::new().compress_vec(plain).unwrap(),
        Codec::Lz4Raw => lz4_flex::block::compress(plain),
        Codec::Lzo => framed(plain.len(), &lzokay::compress::compress(plain).unwrap()),
        _ => unreachable!("no block codec"),
    }
}

/// A chunk in Hadoop's framing, so that its layout is determined by sizes that no change touches.
fn framed(uncompressed: usize, chunk: &[u8]) -> Vec<u8> {
    let size = |bytes: usize| u32::try_from(bytes).unwrap().to_be_bytes();
    [&size(uncompressed)[..], &size(chunk.len()), chunk].concat()
}

/// Data of all shapes: repeats of any period, near and far, and noise between them.
fn data(random: &mut Random, length: usize) -> Vec<u8> {
    let mut data = Vec::with_capacity(length + 400);
    while data.len() < length {
        let most = if random.below(4) == 0 { 400 } else { 30 };
        let take = 1 + random.below(most);
        match random.below(5) {
            0 => data.extend(random.noise(take)),
            1 => data.extend(vec![random.next().to_le_bytes()[0]; take]),
            _ if data.is_empty() => data.push(7),
            choice => {
                let reach = if choice == 2 { 20 } else { 40_000 };
                let back = 1 + random.below(data.len().min(reach));
                for _ in 0..take {
                    data.push(data[data.len() - back]);
                }
            }
        }
    }
    data.truncate(length);
    data
}

/// Elements that no encoder would write in this order: any element, mostly valid ones.
fn elements(codec: Codec, random: &mut Random) -> (Vec<u8>, usize) {
    let (mut block, mut plain) = (Vec::new(), 0usize);
    let count = random.below(60);
    let literals =
        |block: &mut Vec<u8>, random: &mut Random, length: usize| block.extend(random.noise(length));
    let distance = |random: &mut Random, plain: usize, most: usize| {
        match random.below(40) {
            0 => plain + random.below(3),
            1 => random.below(2),
            2..=20 => 1 + random.below(plain.clamp(1, 40)),
            _ => 1 + random.below(plain.max(1)),
        }
        .min(most)
    };
    for at in 0..count {
        match codec {
            Codec::Snappy if plain == 0 || random.below(3) == 0 => {
                let most = if random.below(6) == 0 { 2_000 } else { 70 };
                let length = 1 + random.below(most);
                let bytes = (length - 1).to_le_bytes();
                match length {
                    ..=60 if random.below(20) > 0 => block.push(bytes[0] << 2),
                    ..=256 if random.below(20) > 0 => block.extend([60 << 2, bytes[0]]),
                    _ => {
                        let count = 2 + random.below(3);
                        block.push(u8::try_from(59 + count).unwrap() << 2);
                        block.extend(&bytes[..count]);
                    }
                }
                literals(&mut block, random, length);
                plain += length;
            }
            Codec::Snappy => {
                let far = random.below(3);
                let back = distance(random, plain, [2_047, 65_535, 1 << 30][far]);
                let length = if far == 0 { 4 + random.below(8) } else { 1 + random.below(64) };
                let bytes = back.to_le_bytes();
                let code = u8::try_from(length).unwrap();
                match far {
                    0 => block.extend([(code - 4) << 2 | bytes[1] << 5 | 1, bytes[0]]),
                    1 => block.extend([(code - 1) << 2 | 2, bytes[0], bytes[1]]),
                    _ => block.extend([(code - 1) << 2 | 3, bytes[0], bytes[1], bytes[2], bytes[3]]),
                }
                plain += length;
            }
            Codec::Lz4Raw => {
                let extended = |random: &mut Random| match random.below(6) {
                    0 => 15 + random.below(600),
                    _ => random.below(17),
                };
                let count = extended(random).max(usize::from(at == 0));
                let matched = extended(random);
                let code = |length: usize| u8::try_from(length.min(15)).unwrap();
                let rest = |block: &mut Vec<u8>, length: usize| {
                    if let Some(mut left) = length.checked_sub(15) {
                        while left >= 255 {
                            block.push(255);
                            left -= 255;
                        }
                        block.push(u8::try_from(left).unwrap());
                    }
                };
                block.push(code(count) << 4 | code(matched));
                rest(&mut block, count);
                literals(&mut block, random, count);
                plain += count;
                block.extend(&distance(random, plain, 65_535).to_le_bytes()[..2]);
                rest(&mut block, matched);
                plain += matched + 4;
            }
            _ => unreachable!("LZO's instructions depend on those before them"),
        }
    }
    match codec {
        Codec::Snappy => {
            let mut page = Vec::new();
            let mut length = plain;
            while length > 127 {
                page.push(length.to_le_bytes()[0] | 0x80);
                length >>= 7;
            }
            page.push(length.to_le_bytes()[0]);
            page.extend(block);
            (page, plain)
        }
        _ => {
            block.push(5 << 4);
            literals(&mut block, random, 5);
            (block, plain + 5)
        }
    }
}

/// The same bytes, or both refuse.
fn same(
    it: &mut dyn Decompressor,
    codec: Codec,
    page: &[u8],
    uncompressed: usize,
    random: &mut Random,
) -> bool {
    let expected = one_shot(codec, page, uncompressed);
    let result = match random.below(3) {
        0 => run(it, page, uncompressed, random.next() % 300_000),
        1 => run_in_pieces_of(it, page, uncompressed, 1 + random.below(300), usize::MAX, random),
        _ => run_in_pieces_of(it, page, uncompressed, 1 + random.below(40_000), usize::MAX, random),
    };
    match (result, expected) {
        (Ok(output), Some(expected)) => {
            assert!(output == expected, "{codec:?}: other bytes of {page:02x?}");
            true
        }
        (Err(error), None) => {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            false
        }
        (Ok(_), None) => panic!("{codec:?}: the crate refuses {page:02x?}"),
        (Err(error), Some(_)) => panic!("{codec:?}: {error}: the crate takes {page:02x?}"),
    }
}

#[test]
fn blocks_beside_the_one_shot_crates() {
    rounds(1_500, 20);
}

#[test]
#[ignore = "soak: minutes of random blocks"]
fn blocks_beside_the_one_shot_crates_for_long() {
    for seed in 100..160 {
        rounds(3_000, seed);
    }
}

fn rounds(count: usize, seed: u64) {
    let mut random = Random::new(seed);
    for codec in BLOCKS {
        let it = &mut *decompressor(codec);
        let (mut read, mut refused) = (0, 0);
        for round in 0..count {
            let (mut page, uncompressed) = match round % 3 {
                0 if codec != Codec::Lzo => elements(codec, &mut random),
                _ => {
                    let length = random.below(if round % 50 == 0 { 150_000 } else { 3_000 });
                    let plain = data(&mut random, length.max(1));
                    (compress(codec, &plain), plain.len())
                }
            };
            if random.below(2) == 0 {
                let from = if codec == Codec::Lzo { 8 } else { 0 };
                for _ in 0..1 + random.below(3) {
                    let at = from + random.below(page.len() - from);
                    page[at] = match random.below(3) {
                        0 => random.next().to_le_bytes()[0],
                        1 => page[at] ^ 1 << random.below(8),
                        _ => page[at].wrapping_add(1),
                    };
                }
            }
            if it.start(page.len(), uncompressed, false).is_err() {
                continue;
            }
            match same(it, codec, &page, uncompressed, &mut random) {
                true => read += 1,
                false => refused += 1,
            }
        }
        assert!(read > count / 4 && refused > count / 8, "{codec:?}: {read} read, {refused} refused");
    }
}

/// For short blocks, every truncation and every other byte at any position.
#[test]
fn every_change_has_the_verdict_of_the_one_shot_crates() {
    let mut random = Random::new(21);
    let plains = [b"words, words, words; more words, and more, ".repeat(4), data(&mut random, 150)];
    for codec in BLOCKS {
        let it = &mut *decompressor(codec);
        for plain in &plains {
            let page = compress(codec, plain);
            let from = if codec == Codec::Lzo { 8 } else { 0 };
            for length in from + 1..page.len() {
                let mut cut = page[..length].to_vec();
                if codec == Codec::Lzo {
                    cut = framed(plain.len(), &cut[8..]);
                }
                assert!(!same(it, codec, &cut, plain.len(), &mut random));
            }
            for at in from..page.len() {
                for change in 1..=255 {
                    let mut changed = page.clone();
                    changed[at] ^= change;
                    same(it, codec, &changed, plain.len(), &mut random);
                }
            }
        }
    }
}

/// The stream decompressed by zlib-rs, if it ends where its bytes do.
fn inflate(deflate: &[u8], uncompressed_max: usize) -> Option<Vec<u8>> {
    let mut stream = flate2::Decompress::new(false);
    let mut output = vec![0; uncompressed_max];
    let status = stream.decompress(deflate, &mut output, flate2::FlushDecompress::Finish).ok()?;
    let whole = status == flate2::Status::StreamEnd && stream.total_in() == deflate.len() as u64;
    output.truncate(usize::try_from(stream.total_out()).unwrap());
    whole.then_some(output)
}

/// Symbols with frequencies that need codes of all lengths, the longest included.
fn skewed(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| (random.next() | 1 << 40).trailing_zeros().to_le_bytes()[0].wrapping_mul(7)).collect()
}

fn deflate(plain: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::new(level));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// Streams that zlib-rs accepts and ones that it refuses, in members whose checksums are right.
#[test]
fn deflate_beside_zlib() {
    deflate_rounds(1_200, 24);
}

#[test]
#[ignore = "soak: minutes of random deflate streams"]
fn deflate_beside_zlib_for_long() {
    for seed in 500..560 {
        deflate_rounds(3_000, seed);
    }
}

fn deflate_rounds(count: usize, seed: u64) {
    let mut random = Random::new(seed);
    let it = &mut *decompressor(Codec::Gzip);
    let (mut read, mut refused) = (0, 0);
    for round in 0..count {
        let length = 1 + random.below(if round % 20 == 0 { 200_000 } else { 2_000 });
        let plain = match round % 4 {
            0 => skewed(&mut random, length),
            1 => random.text(length),
            _ => data(&mut random, length),
        };
        let mut stream = deflate(&plain, (round % 10).try_into().unwrap());
        let changes = random.below(3);
        for _ in 0..changes {
            // The codes are at the start, and matter most.
            let at = random.below(stream.len().min(if round % 2 == 0 { 80 } else { usize::MAX }));
            stream[at] ^= 1 << random.below(8);
        }
        let expected = inflate(&stream, 2 * plain.len() + 1_000);
        let mut page = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
        page.extend(&stream);
        let becomes = expected.as_ref().unwrap_or(&plain);
        page.extend(crc32fast::hash(becomes).to_le_bytes());
        page.extend(u32::try_from(becomes.len()).unwrap().to_le_bytes());
        let result = match random.below(3) {
            0 => run(it, &page, becomes.len(), random.next() % 300_000),
            1 => run_in_pieces_of(it, &page, becomes.len(), 1 + random.below(300), 32 << 10, &mut random),
            _ => run_in_pieces_of(it, &page, becomes.len(), 1 + random.below(40_000), 32 << 10, &mut random),
        };
        match (result, expected) {
            (Ok(output), Some(expected)) => {
                assert!(output == expected, "round {round}: other bytes");
                read += 1;
            }
            (Err(error), None) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                refused += 1;
            }
            (Ok(_), None) => panic!("round {round}: zlib refuses {stream:02x?}"),
            (Err(error), Some(_)) => panic!("round {round}: {error}: zlib takes {stream:02x?}"),
        }
    }
    assert!(read > count / 3 && refused > count / 8, "{read} read, {refused} refused");
}

/// If a host keeps less than a copy refers to, the error says so; if it keeps as much, decoding continues.
#[test]
fn copies_from_beyond_the_window() {
    let mut random = Random::new(22);
    let (first, between) = (random.noise(100), random.noise(70_000));
    let plain = [&first[..], &between, &first].concat();
    // The first hundred bytes again, from 70,100 back.
    let mut page = vec![0xb8, 0xa4, 0x04, 62 << 2, 0xd3, 0x11, 0x01];
    page.extend(&plain[..70_100]);
    page.extend([63 << 2 | 3, 0xd4, 0x11, 0x01, 0, 35 << 2 | 3, 0xd4, 0x11, 0x01, 0]);
    assert!(one_shot(Codec::Snappy, &page, plain.len()).as_ref() == Some(&plain));
    let it = &mut *decompressor(Codec::Snappy);
    for kept in [70_100, 100_000, usize::MAX] {
        let output = run_in_pieces_of(it, &page, plain.len(), 5_000, kept, &mut random).unwrap();
        assert!(output == plain);
    }
    for kept in [0, 1, 64 << 10, 70_099] {
        let error = run_in_pieces_of(it, &page, plain.len(), 50, kept, &mut random).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        let said =
            error.message().contains("a copy from 70100 bytes back in a SNAPPY page of which a window of");
        assert!(said, "{error}");
    }
    // From 4 GiB back, before the page's start.
    let far = [4, 0, b'x', 3, 0xff, 0xff, 0xff, 0xff, 3, 1, 0, 0, 0];
    let error = run(it, &far, 4, 0).unwrap_err();
    assert!(error.message().contains("a copy from 4294967295 bytes back where its block has 1"), "{error}");
}

/// The largest charge of a step, for blocks of only the shortest elements, and others.
#[test]
fn no_step_is_larger_than_the_budget() {
    let mut random = Random::new(23);
    let length = 1 << 20;
    let mut literals = vec![0x80, 0x80, 0x40];
    literals.extend([0, b'x'].repeat(length));
    let mut copies = vec![0x80, 0x80, 0x40, 3 << 2, b'a', b'b', b'c', b'd'];
    copies.extend([1, 4].repeat(length / 4 - 1));
    let mut matches = vec![4 << 4, b'a', b'b', b'c', b'd', 4, 0];
    matches.extend([0, 4, 0].repeat(length / 4 - 3));
    matches.extend([4 << 4, b'a', b'b', b'c', b'd']);
    // One literal, and a match of a length in 4,096 bytes.
    let mut long = vec![1 << 4 | 15, b'x', 1, 0];
    long.extend([255; 4_096]);
    long.extend([0, 5 << 4, 1, 2, 3, 4, 5]);
    let mut pages = vec![
        (Codec::Snappy, literals, length),
        (Codec::Snappy, copies, length),
        (Codec::Lz4Raw, matches, length),
        (Codec::Lz4Raw, long, 1 + 19 + 255 * 4_096 + 5),
    ];
    for plain in [random.noise(length), random.text(length), vec![0; length], data(&mut random, length)] {
        for codec in BLOCKS {
            pages.push((codec, compress(codec, &plain), length));
        }
        pages.push((Codec::Gzip, encoders::compress(Codec::Gzip, &plain), length));
    }
    // Empty blocks: stored, with the fixed codes, and with codes of their own.
    let mut member = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    member.extend([0, 0, 0, 0xff, 0xff].repeat(20_000));
    member.extend([2, 0, 0, 0, 0xff, 0xff].repeat(20_000));
    member.extend([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    pages.push((Codec::Gzip, member, 0));
    let mut members = vec![0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 255];
    members.extend(vec![b'n'; 1 << 20]);
    members.push(0);
    members.extend([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let small = encoders::member(0, &[], &skewed(&mut random, 40));
    members.extend(small.repeat(3_000));
    pages.push((Codec::Gzip, members, 120_000));
    let mut largest = 0;
    for (codec, page, uncompressed) in pages {
        let it = &mut *StandardCodecs::default().decompressor(codec).unwrap();
        it.start(page.len(), uncompressed, false).unwrap();
        let mut output = vec![0; uncompressed];
        let (mut consumed, mut produced) = (0, 0);
        loop {
            let mut budget = Budget::default();
            let progress = it.step(&page[consumed..], true, &mut output, produced, &mut budget).unwrap();
            largest = largest.max(budget.spent());
            consumed += progress.consumed;
            produced += progress.produced;
            if progress.status == Status::End {
                break;
            }
            assert!(matches!(progress.status, Status::Yield | Status::NeedMemory(_)));
        }
    }
    assert!(largest <= Budget::DEFAULT_UNITS, "{largest} units in a step");
    assert!(largest > Budget::DEFAULT_UNITS / 2, "{largest}: the budget is hardly used");
}
