//! Brotli streams by the reference library, and streams that no encoder writes.

use brotli::enc::{BrotliEncoderParams, StandardAlloc};
use brotli_decompressor::{BrotliDecompressStream, BrotliResult, BrotliState};
use marquetry_base::{Budget, Codec, Decompressor, ErrorKind, Status};

use crate::encoders::brotli_bits::Bits;
use crate::encoders::{Random, compress};
use crate::{decompress, decompressor, refused, run, run_in_pieces, run_in_pieces_of};

/// By the reference library, 1.2.
#[test]
fn streams_by_the_reference_library() {
    let again = b"the same words, again, the same words, again, the same words, again, ";
    for (stream, plain) in [
        (&b"\x3b"[..], &b""[..]),
        (
            b"\x1b\x4f\x00\xf8\xa5\x40\x58\x72\x90\x43\xae\xc9\x01\x88\x40\xa6\x8d\xd6\x00",
            b"the same words, the same words, the same words, the same words, the same words, ",
        ),
        // A window of 1 KiB.
        (
            b"\xa1\x20\x02\xc0\x2f\xc5\x42\xd7\x83\x1c\xb2\x88\x33\xda\x04\x22\x90\x71\x89\x19\xcc\x7d\xf8\x02",
            again,
        ),
    ] {
        assert_eq!(decompress(Codec::Brotli, stream, plain.len()).unwrap(), plain);
        let it = &mut *decompressor(Codec::Brotli);
        assert_eq!(run_in_pieces(it, stream, plain.len(), 1, &mut Random::new(1)).unwrap(), plain);
    }
}

#[test]
fn nothing_follows_a_stream() {
    let stream = compress(Codec::Brotli, b"words");
    for after in [&b"\0"[..], b"garbage", &stream] {
        let page = [&stream[..], after].concat();
        refused(Codec::Brotli, &page, 5, "goes on after its stream");
        refused(Codec::Brotli, &page, 10, "goes on after its stream");
    }
}

#[test]
fn large_windows_are_no_brotli() {
    // The seven bits 0010001, a reserved one, and a window of 2^30 bytes.
    let mut bits = Bits::default();
    bits.push(0b0001_0001, 8);
    bits.push(30, 6);
    let error = decompress(Codec::Brotli, &bits.finish(), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("large window"), "{error}");
}

/// The window is the page itself; if a host keeps less, copies from beyond that are refused.
#[test]
fn copies_from_beyond_what_is_kept() {
    let mut random = Random::new(1);
    let mut plain = random.noise(200_000);
    plain.extend_from_within(..5_000);
    let stream = compress(Codec::Brotli, &plain);
    let it = &mut *decompressor(Codec::Brotli);
    let pieces = |it: &mut dyn Decompressor, kept, random: &mut Random| {
        run_in_pieces_of(it, &stream, plain.len(), 5_000, kept, random)
    };
    for kept in [200_000, it.history_bytes(), usize::MAX] {
        assert!(pieces(it, kept, &mut random).unwrap() == plain);
    }
    let error = pieces(it, 100_000, &mut random).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.message().contains("bytes back in a BROTLI page of which a window of"), "{error}");
}

/// A page of 100 bytes whose metablock claims 16 MiB gets no ring buffer of that size.
#[test]
fn a_metablock_larger_than_the_page() {
    let mut bits = Bits::stream();
    bits.stored(b"four");
    bits.metablock(1 << 24, 0);
    refused(Codec::Brotli, &bits.finish(), 100, "more than the announced 100 uncompressed bytes");
}

/// Metablocks of all lengths whose contents take no bits: the largest possible ratio.
#[test]
fn the_largest_ratio() {
    let mut bits = Bits::stream();
    bits.stored(b"xxxxxxxx");
    for _ in 0..8 {
        bits.metablock(1 << 24, 0);
    }
    let (stream, length) = (bits.finish(), 8 + (8 << 24));
    assert!(length / stream.len() > 1_000_000, "a ratio of {}", length / stream.len());
    assert!(decompress(Codec::Brotli, &stream, length).unwrap().iter().all(|&byte| byte == b'x'));
    let most = (1 << 24) * 8 * stream.len() / 77;
    assert!(decompressor(Codec::Brotli).start(stream.len(), most, false).is_ok());
    assert!(decompressor(Codec::Brotli).start(stream.len(), most + 1, false).is_err());
}

/// Metablocks that become nothing or a byte, each with hundreds of codes; and commands, copies and literals that take
/// no bits.
#[test]
fn no_step_of_a_hostile_stream_is_larger_than_the_budget() {
    let repeated = |count: usize, one: &dyn Fn(&mut Bits)| {
        let mut bits = Bits::stream();
        (0..count).for_each(|_| one(&mut bits));
        bits.finish()
    };
    let free = |length: usize, command: u64| {
        let mut bits = Bits::stream();
        bits.stored(b"xxxxxxxx");
        bits.metablock(length - 8, command);
        bits.finish()
    };
    let megabyte = 1 << 20;
    let pages = [
        (repeated(80_000, &Bits::metadata), 0),
        (repeated(3_000, &|bits| bits.metablock(1, 8)), 3_000),
        (repeated(100, &|bits| bits.wide(256, 1, 2)), 100),
        (repeated(100, &|bits| bits.wide(4, 1, 256)), 100),
        (repeated(100, &|bits| bits.wide(1, 256, 1)), 100),
        (repeated(100, &|bits| bits.wide(256, 256, 256)), 100),
        // Command 488 inserts 2,114 literals and as many as 12 bits say.
        (repeated(20, &|bits| bits.switching(3_000, false, 488, 3_000 - 2_114, 12)), 60_000),
        // Copies of two bytes; a literal and such a copy.
        (free(megabyte, 0), megabyte),
        (free(8 + 3 * 300_000, 8), 8 + 3 * 300_000),
    ];
    let mut largest = 0;
    for (number, (stream, length)) in pages.into_iter().enumerate() {
        let mut it = decompressor(Codec::Brotli);
        it.start(stream.len(), length, true).unwrap();
        let mut output = vec![0; length];
        let (mut consumed, mut produced, mut steps) = (0, 0, 0);
        loop {
            let mut budget = Budget::default();
            let progress = it.step(&stream[consumed..], true, &mut output, produced, &mut budget);
            let progress = progress.unwrap_or_else(|error| panic!("page {number}: {error}"));
            largest = largest.max(budget.spent());
            consumed += progress.consumed;
            produced += progress.produced;
            steps += 1;
            if progress.status == Status::End {
                break;
            }
        }
        assert!(output.iter().all(|&byte| byte == b'x'));
        assert!(steps > 2, "page {number}: {steps} steps");
    }
    assert!(largest <= Budget::DEFAULT_UNITS, "{largest} units in a step");
}

/// The stream decompressed by the crate, if it ends where its bytes do.
fn by_the_crate(stream: &[u8], uncompressed_max: usize) -> Option<Vec<u8>> {
    let mut state =
        BrotliState::new(StandardAlloc::default(), StandardAlloc::default(), StandardAlloc::default());
    let mut output = vec![0; uncompressed_max];
    let (mut input_left, mut input_at) = (stream.len(), 0);
    let (mut output_left, mut output_at, mut total) = (output.len(), 0, 0);
    let result = BrotliDecompressStream(
        &mut input_left,
        &mut input_at,
        stream,
        &mut output_left,
        &mut output_at,
        &mut output,
        &mut total,
        &mut state,
    );
    output.truncate(output_at);
    (matches!(result, BrotliResult::ResultSuccess) && input_left == 0).then_some(output)
}

#[test]
fn streams_beside_the_crate() {
    rounds(1_500, 31);
}

#[test]
#[ignore = "soak: minutes of random Brotli streams"]
fn streams_beside_the_crate_for_long() {
    for seed in 800..830 {
        rounds(4_000, seed);
    }
}

/// Streams of all qualities, with and without words of the dictionary, some of them altered.
fn rounds(count: usize, seed: u64) {
    // Words in the dictionary, and results of its transforms.
    const WORDS: [&str; 16] = [
        "The time and the ",
        "information",
        "University of ",
        "that this would ",
        "HTTP://",
        "Something ",
        "government,",
        "\"international\" ",
        "\u{e9}t\u{e9} ",
        "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442} ",
        "<div class=",
        "</script>",
        "DEVELOPMENT ",
        "management. ",
        "january ",
        "0123456789",
    ];
    let mut random = Random::new(seed);
    let it = &mut *decompressor(Codec::Brotli);
    let (mut read, mut refused) = (0, 0);
    for round in 0..count {
        let length = 1 + random.below(if round % 30 == 0 { 120_000 } else { 1_500 });
        let mut plain = Vec::new();
        while plain.len() < length {
            match random.below(if round % 2 == 0 { 2 } else { 9 }) {
                0 | 1 => plain.extend_from_slice(WORDS[random.below(16)].as_bytes()),
                2 => plain.extend(random.noise(5)),
                3 => plain.extend_from_within(plain.len() - plain.len().min(40)..),
                _ => plain.extend(random.text(30)),
            }
        }
        let params = BrotliEncoderParams {
            quality: i32::try_from(round % 12).unwrap(),
            lgwin: 10 + i32::try_from(random.below(13)).unwrap(),
            ..BrotliEncoderParams::default()
        };
        let mut stream = Vec::new();
        brotli::BrotliCompress(&mut &plain[..], &mut stream, &params).unwrap();
        for _ in 0..random.below(3) {
            // The codes are at the start, and matter most.
            let at = random.below(stream.len().min(if round % 3 == 0 { 60 } else { usize::MAX }));
            stream[at] ^= 1 << random.below(8);
        }
        let expected = by_the_crate(&stream, 2 * plain.len() + 10_000);
        let becomes = expected.as_ref().unwrap_or(&plain).len();
        let result = match random.below(3) {
            0 => run(it, &stream, becomes, random.next() % 300_000),
            1 => run_in_pieces(it, &stream, becomes, 1 + random.below(300), &mut random),
            _ => run_in_pieces(it, &stream, becomes, 1 + random.below(40_000), &mut random),
        };
        match (result, expected) {
            (Ok(output), Some(expected)) => {
                assert!(output == expected, "round {round}: other bytes");
                read += 1;
            }
            (Err(error), None) => {
                assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{error}");
                refused += 1;
            }
            (Ok(_), None) => panic!("round {round}: the crate refuses {stream:02x?}"),
            (Err(error), Some(_)) => panic!("round {round}: {error}: the crate takes {stream:02x?}"),
        }
    }
    assert!(read > count / 3 && refused > count / 8, "{read} read, {refused} refused");
}

/// Mutations of many kinds: errors, or as many bytes as announced, and never a panic.
#[test]
fn mutated_streams() {
    let mut random = Random::new(77);
    let text = random.text(5_000);
    let mut wide = Bits::stream();
    wide.wide(16, 2, 7);
    wide.switching(3_000, true, 136, 0, 0);
    let seeds = [
        (compress(Codec::Brotli, &text), text.len()),
        (compress(Codec::Brotli, &random.noise(300)), 300),
        (wide.finish(), 3_001),
    ];
    let mut it = decompressor(Codec::Brotli);
    let mut refusals = 0;
    for round in 0..6_000 {
        let (mut stream, length) = seeds[round % seeds.len()].clone();
        for _ in 0..random.below(4) + 1 {
            let at = random.below(stream.len());
            match random.below(4) {
                0 => stream[at] = random.next().to_le_bytes()[0],
                1 => stream[at] ^= 1 << random.below(8),
                2 => drop(stream.remove(at)),
                _ => stream.insert(at, random.next().to_le_bytes()[0]),
            }
        }
        let result = match round % 4 {
            0 => run_in_pieces(it.as_mut(), &stream, length, 50, &mut random),
            _ => run(it.as_mut(), &stream, length, if round % 4 == 1 { 0 } else { u64::MAX }),
        };
        match result {
            Ok(output) => assert_eq!(output.len(), length),
            Err(error) => {
                refusals += 1;
                let told = matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported);
                assert!(told, "{error}");
            }
        }
    }
    assert!(refusals > 3_000, "{refusals}");
}

/// Units are paid for where a copy comes from, too: what is far is in no cache.
#[test]
fn copies_from_afar_cost_more() {
    const COPIES: usize = 20_000;
    const HISTORY: usize = 6 << 18;
    const STORED: usize = 4 << 10;
    let mut random = Random::new(7);
    let distances: Vec<u64> = (0..COPIES).map(|_| random.next()).collect();
    let units = [12, 18].map(|log| {
        let mut bits = Bits::stream();
        bits.stored(&[b'x'; STORED]);
        bits.metablock(HISTORY - STORED, 2);
        (0..4).for_each(|_| bits.metadata_byte());
        bits.far(log, &distances);
        let stream = bits.finish();
        let mut it = decompressor(Codec::Brotli);
        it.start(stream.len(), HISTORY + 2 * COPIES, true).unwrap();
        let (mut output, mut budget) = (vec![0; HISTORY + 2 * COPIES], Budget::unlimited());
        let progress = it.step(&stream, true, &mut output, 0, &mut budget).unwrap();
        assert_eq!(progress.status, Status::End);
        assert!(output.iter().all(|&byte| byte == b'x'));
        budget.spent()
    });
    assert!(units[1] > units[0] + 50 * COPIES as u64, "{units:?}");
}
