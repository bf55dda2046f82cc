//! Brotli streams: by the reference library, and such as no encoder writes.

use marquetry_base::{Budget, Codec, Codecs, ErrorKind, Limits, Status};
use marquetry_codecs::StandardCodecs;

use crate::encoders::brotli_bits::Bits;
use crate::encoders::{Random, compress};
use crate::{decompress, decompressor, refused, run, run_in_pieces};

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

#[test]
fn windows_beyond_the_limit() {
    let plain = Random::new(1).noise(3 << 20);
    let stream = compress(Codec::Brotli, &plain);
    let codecs = |window_bytes| StandardCodecs::new(Limits { window_bytes, ..Limits::DEFAULT });
    let mut narrow = codecs(1 << 20).decompressor(Codec::Brotli).unwrap();
    let error = run(narrow.as_mut(), &stream, plain.len(), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.message().contains("window_bytes of 1048576"), "{error}");
    // What needs less than its window is read all the same.
    let short = compress(Codec::Brotli, &plain[..1_000_000]);
    assert!(run(narrow.as_mut(), &short, 1_000_000, 0).unwrap() == plain[..1_000_000]);
    let mut wide = codecs(4 << 20).decompressor(Codec::Brotli).unwrap();
    assert!(run(wide.as_mut(), &stream, plain.len(), 0).unwrap() == plain);
    assert!(
        codecs(0).decompressor(Codec::Brotli).is_ok() && codecs(u64::MAX).decompressor(Codec::Brotli).is_ok()
    );
}

/// A page of 100 bytes whose metablock says 16 MiB gets no ring buffer for them.
#[test]
fn a_metablock_larger_than_the_page() {
    let mut bits = Bits::stream();
    bits.stored(b"four");
    bits.metablock(1 << 24, 0);
    refused(Codec::Brotli, &bits.finish(), 100, "more than the announced 100 uncompressed bytes");
}

/// Metablocks of all lengths that become as many bytes for no bits, the largest ratio there is.
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

#[test]
fn hostile_streams_are_paid_for() {
    // A slice that costs most: 128 bytes at 600,000 units for 1 KiB, or what it becomes at 16,000.
    const SLICE_UNITS_MAX: u64 = 80_000;
    let repeated = |count: usize, one: &dyn Fn(&mut Bits)| {
        let mut bits = Bits::stream();
        (0..count).for_each(|_| one(&mut bits));
        (bits.finish(), count)
    };
    let (metadata, _) = repeated(10_000, &Bits::metadata);
    let pages = [
        (metadata, 0),
        repeated(1_000, &|bits| bits.metablock(1, 8)),
        repeated(100, &|bits| bits.wide(256, 1, 2)),
        repeated(100, &|bits| bits.wide(4, 1, 256)),
        repeated(100, &|bits| bits.wide(1, 256, 1)),
        repeated(100, &|bits| bits.wide(256, 256, 256)),
        // Command 488 inserts 2,114 literals and as many as 12 bits say.
        repeated(20, &|bits| bits.switching(3_000, false, 488, 3_000 - 2_114, 12)),
    ];
    for (number, (stream, length)) in pages.into_iter().enumerate() {
        let length = if number == 6 { 60_000 } else { length };
        let mut it = decompressor(Codec::Brotli);
        it.start(stream.len(), length, false).unwrap();
        let mut output = vec![0; length];
        let (mut consumed, mut produced, mut steps) = (0, 0, 0);
        loop {
            let mut budget = Budget::default();
            let progress = it.step(&stream[consumed..], true, &mut output, produced, &mut budget);
            let progress = progress.unwrap_or_else(|error| panic!("page {number}: {error}"));
            let units = budget.spent();
            assert!(units <= Budget::DEFAULT_UNITS + SLICE_UNITS_MAX, "page {number}: {units} in a step");
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
}

/// What a slice becomes beyond its output is bounded by the page's size, and charged when it is done.
#[test]
fn what_cannot_be_interrupted_is_charged_at_once() {
    let length = 1 << 20;
    let mut bits = Bits::stream();
    bits.stored(b"xxxxxxxx");
    bits.metablock(length - 8, 0);
    let stream = bits.finish();
    let mut it = decompressor(Codec::Brotli);
    it.start(stream.len(), length, false).unwrap();
    let mut budget = Budget::default();
    let progress = it.step(&stream, true, &mut vec![0; length], 0, &mut budget).unwrap();
    assert!(progress.produced < length && progress.status == Status::Yield);
    let all = 16_000 * (1 << 10);
    assert!((all..all + 1_000).contains(&budget.spent()), "{}", budget.spent());
    // The rest is only copied out.
    let mut budget = Budget::default();
    let progress = it.step(&stream[progress.consumed..], true, &mut vec![0; length], 0, &mut budget).unwrap();
    assert!(progress.produced > 0 && budget.spent() < all / 10, "{}", budget.spent());
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
