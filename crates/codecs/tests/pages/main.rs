//! Pages of every codec, valid and invalid, in one call and in pieces.

mod brotli;
mod compress;
mod differential;
mod encoders;
mod layouts;

use std::io::Read;

use encoders::{Random, compress, member, zstd_bits, zstd_frame};
use marquetry_base::{Budget, Codec, Codecs, Decompressor, Error, ErrorKind, Limits, Result, Status};
use marquetry_codecs::StandardCodecs;

const CODECS: [Codec; 8] = [
    Codec::Snappy,
    Codec::Lz4Raw,
    Codec::Lz4,
    Codec::Lzo,
    Codec::Gzip,
    Codec::Brotli,
    Codec::Zstd,
    Codec::Zlib,
];

fn decompressor(codec: Codec) -> Box<dyn Decompressor> {
    StandardCodecs::default().decompressor(codec).unwrap()
}

/// All input and room at once; budget after budget of `units`.
fn run(it: &mut dyn Decompressor, compressed: &[u8], uncompressed: usize, units: u64) -> Result<Vec<u8>> {
    it.start(compressed.len(), uncompressed, true)?;
    let mut output = vec![0xaa; uncompressed];
    let (mut consumed, mut produced, mut idle) = (0, 0, 0);
    loop {
        let progress =
            it.step(&compressed[consumed..], true, &mut output, produced, &mut Budget::new(units))?;
        consumed += progress.consumed;
        produced += progress.produced;
        match progress.status {
            Status::End => {
                assert_eq!((consumed, produced), (compressed.len(), uncompressed));
                return Ok(output);
            }
            // A context map is built after its bytes were read.
            Status::Yield if progress.consumed + progress.produced == 0 => {
                idle += 1;
                assert!(idle < 100, "no progress");
            }
            Status::Yield => idle = 0,
            // Its tables; the room is the window.
            Status::NeedMemory(bytes) => assert!(bytes <= 400 << 10, "{bytes} bytes"),
            status => panic!("{status:?} with everything at hand"),
        }
    }
}

fn decompress(codec: Codec, compressed: &[u8], uncompressed: usize) -> Result<Vec<u8>> {
    run(decompressor(codec).as_mut(), compressed, uncompressed, u64::MAX)
}

fn refused(codec: Codec, compressed: &[u8], uncompressed: usize, words: &str) {
    for units in [u64::MAX, Budget::DEFAULT_UNITS, 0] {
        let error = run(decompressor(codec).as_mut(), compressed, uncompressed, units).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.message().contains(words), "{error} does not say {words:?}");
        assert!(error.message().contains(codec.name()), "{error} does not name {}", codec.name());
    }
}

/// Data of several kinds.
fn samples() -> Vec<Vec<u8>> {
    let mut random = Random::new(7);
    let mut samples = vec![vec![], vec![1], vec![2; 2], b"the same words, the same words, again".to_vec()];
    for length in [1_000, 65_537, 300_000] {
        samples.push(vec![0; length]);
        samples.push(random.noise(length));
        samples.push(random.text(length));
    }
    samples
}

#[test]
fn round_trips() {
    for codec in CODECS {
        let mut reused = decompressor(codec);
        for plain in samples() {
            let compressed = compress(codec, &plain);
            for units in [u64::MAX, Budget::DEFAULT_UNITS, 0] {
                let output = run(reused.as_mut(), &compressed, plain.len(), units).unwrap();
                assert!(output == plain, "{codec:?} of {} bytes", plain.len());
            }
        }
    }
}

#[test]
fn a_small_stack_is_enough() {
    let work = || {
        for codec in CODECS {
            let plain = Random::new(1).text(200_000);
            assert!(decompress(codec, &compress(codec, &plain), plain.len()).unwrap() == plain);
        }
    };
    std::thread::Builder::new().stack_size(128 << 10).spawn(work).unwrap().join().unwrap();
}

/// Feeds and drains in pieces of random length, as a host that keeps `history` bytes of the output.
fn run_in_pieces_of(
    it: &mut dyn Decompressor,
    compressed: &[u8],
    uncompressed: usize,
    piece_max: usize,
    history: usize,
    random: &mut Random,
) -> Result<Vec<u8>> {
    it.start(compressed.len(), uncompressed, false)?;
    let mut output = vec![0xaa; uncompressed];
    let (mut consumed, mut seen) = (0, 0);
    let (mut produced, mut room_end) = (0, (random.below(piece_max) + 1).min(uncompressed));
    loop {
        let mut budget = Budget::new(random.below(2_000) as u64);
        let last = seen == compressed.len();
        let kept = history.min(produced);
        let room = &mut output[produced - kept..room_end];
        let progress = it.step(&compressed[consumed..seen], last, room, kept, &mut budget)?;
        consumed += progress.consumed;
        produced += progress.produced;
        assert!(consumed <= seen && produced <= room_end);
        match progress.status {
            Status::End => {
                assert_eq!((consumed, produced), (compressed.len(), uncompressed));
                return Ok(output);
            }
            Status::NeedInput => {
                assert!(!last, "input wanted after the last");
                assert_eq!(consumed, seen, "input left and more wanted");
                seen = (seen + random.below(piece_max) + 1).min(compressed.len());
            }
            Status::NeedRoom => {
                assert_eq!(produced, room_end, "room left and more wanted");
                assert!(room_end < uncompressed, "room wanted beyond the page");
                room_end = (room_end + random.below(piece_max) + 1).min(uncompressed);
            }
            Status::NeedMemory(_) => {}
            // A header, and a context map, are looked at after their bytes were consumed.
            Status::Yield => assert!(budget.spent() > 0, "no progress"),
        }
    }
}

/// The same, with a host that keeps what the codec requires.
fn run_in_pieces(
    it: &mut dyn Decompressor,
    compressed: &[u8],
    uncompressed: usize,
    piece_max: usize,
    random: &mut Random,
) -> Result<Vec<u8>> {
    // For this page, not for the previous one.
    it.start(compressed.len(), uncompressed, false)?;
    let history = it.history_bytes();
    run_in_pieces_of(it, compressed, uncompressed, piece_max, history, random)
}

#[test]
fn any_split_reads_the_same() {
    let mut random = Random::new(3);
    for codec in CODECS {
        let mut reused = decompressor(codec);
        for plain in samples() {
            let compressed = compress(codec, &plain);
            for piece_max in [1, 3, 100, 10_000, 200_000] {
                if piece_max < 100 && plain.len() > 2_000 {
                    continue;
                }
                let output =
                    run_in_pieces(reused.as_mut(), &compressed, plain.len(), piece_max, &mut random).unwrap();
                assert!(output == plain, "{codec:?} of {} bytes by {piece_max}", plain.len());
            }
        }
    }
}

#[test]
fn every_truncation_and_every_changed_byte() {
    let plain = Random::new(4).text(150);
    for codec in CODECS {
        let mut reused = decompressor(codec);
        let compressed = compress(codec, &plain);
        for units in [0, u64::MAX] {
            for length in 0..compressed.len() {
                let error = run(reused.as_mut(), &compressed[..length], plain.len(), units).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{codec:?} cut at {length}: {error}");
            }
            let mut refusals = 0;
            for at in 0..compressed.len() {
                for change in 1..=255u8 {
                    let mut changed = compressed.clone();
                    changed[at] ^= change;
                    match run(reused.as_mut(), &changed, plain.len(), units) {
                        Ok(output) => assert_eq!(output.len(), plain.len()),
                        Err(error) => {
                            refusals += 1;
                            assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
                            assert_ne!(error.kind(), ErrorKind::Misuse, "{error}");
                        }
                    }
                }
            }
            assert!(refusals > compressed.len(), "{codec:?}: only {refusals} changes refused");
        }
        // As good as new after all that.
        assert_eq!(run(reused.as_mut(), &compressed, plain.len(), 0).unwrap(), plain);
    }
}

#[test]
fn wrong_claims() {
    let plain = Random::new(5).text(10_000);
    for codec in CODECS {
        let compressed = compress(codec, &plain);
        let (less, more) = match codec {
            Codec::Snappy => ("its data announce 10000", "its data announce 10000"),
            _ => ("more than the announced 9999", "10000 uncompressed bytes, not the announced 10001"),
        };
        refused(codec, &compressed, plain.len() - 1, less);
        refused(codec, &compressed, plain.len() + 1, more);
        refused(codec, &compressed, 0, "uncompressed bytes");
        refused(codec, &[], 1, "cannot expand");
        refused(codec, &compressed[..compressed.len() - 1], plain.len(), "");
    }
    for codec in CODECS {
        let compressed = compress(codec, &plain);
        let end = match codec {
            // They end with checksums, or with an end.
            Codec::Gzip | Codec::Zstd | Codec::Zlib => "cut short after 10000 of 10000",
            Codec::Lz4 => "are left",
            // No longer taken for Hadoop's.
            Codec::Lzo => "",
            _ => "cut short after 99",
        };
        refused(codec, &compressed[..compressed.len() - 1], plain.len(), end);
        let half = if matches!(codec, Codec::Lz4 | Codec::Lzo) { end } else { "cut short after" };
        refused(codec, &compressed[..compressed.len() / 2], plain.len(), half);
    }
}

#[test]
fn bombs() {
    // Refused before anything is allocated.
    for codec in CODECS {
        let error = decompressor(codec).start(1 << 10, 2 << 30, false).unwrap_err();
        assert!(error.message().contains("1024 compressed bytes cannot expand"), "{error}");
        assert!(decompressor(codec).start(1 << 10, usize::MAX, false).is_err());
        assert_eq!(decompressor(codec).start(1 << 10, 1 << 30, false).is_ok(), codec == Codec::Brotli);
    }
    assert!(decompressor(Codec::Zstd).start(1 << 10, 32 << 20, false).is_ok(), "run-length blocks can");
    // A megabyte that claims to be ten bytes stops after them.
    for codec in CODECS {
        refused(codec, &compress(codec, &vec![0; 1 << 20]), 10, "uncompressed bytes");
    }
    // The largest ratios that encoders reach are not refused.
    for codec in CODECS {
        let plain = vec![0; 16 << 20];
        assert!(decompress(codec, &compress(codec, &plain), plain.len()).unwrap() == plain);
    }
}

#[test]
fn failures_stay_until_the_next_page() {
    for codec in CODECS {
        let good = compress(codec, b"good good good good good good");
        let mut it = decompressor(codec);
        let fail = |it: &mut dyn Decompressor| -> Error {
            it.step(&[0xff; 40], true, &mut [0; 29], 0, &mut Budget::default()).unwrap_err()
        };
        it.start(40, 29, false).unwrap();
        let first = fail(it.as_mut());
        assert_eq!(first.kind(), ErrorKind::Corrupt);
        assert_eq!(fail(it.as_mut()), first);
        assert_eq!(run(it.as_mut(), &good, 29, 1).unwrap(), b"good good good good good good");
        let claim = it.start(1, usize::MAX, false).unwrap_err();
        assert_eq!(fail(it.as_mut()), claim);
    }
}

#[test]
fn a_page_left_half_way_does_not_reach_into_the_next() {
    let plain = Random::new(6).noise(300_000);
    for codec in CODECS {
        let compressed = compress(codec, &plain);
        let mut it = decompressor(codec);
        it.start(compressed.len(), plain.len(), false).unwrap();
        let progress =
            it.step(&compressed[..5_000], false, &mut vec![0; 4_000], 0, &mut Budget::new(1)).unwrap();
        assert!(progress.consumed > 0 && progress.status != Status::End);
        assert!(run(it.as_mut(), &compressed, plain.len(), 1).unwrap() == plain);
    }
}

#[test]
fn misuse_is_told() {
    let is_misuse = |result: Result<_>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Misuse);
    for codec in CODECS {
        let page = compress(codec, b"some words");
        let step = |it: &mut dyn Decompressor, input: &[u8], last| {
            it.step(input, last, &mut [0; 10], 0, &mut Budget::unlimited())
        };
        let mut it = decompressor(codec);
        is_misuse(step(it.as_mut(), &page, true));
        it.start(page.len(), 10, true).unwrap();
        assert_eq!(step(it.as_mut(), &page, true).unwrap().status, Status::End);
        is_misuse(step(it.as_mut(), &[], true));
        it.start(page.len(), 10, false).unwrap();
        is_misuse(step(it.as_mut(), &page[1..], true));
        it.start(page.len() - 1, 10, false).unwrap();
        is_misuse(step(it.as_mut(), &page, false));
        it.start(page.len(), 10, false).unwrap();
        is_misuse(it.step(&page, true, &mut [0; 10], 11, &mut Budget::unlimited()));
    }
}

#[test]
fn nothing_may_be_compressed_to_nothing() {
    for codec in CODECS {
        assert_eq!(decompress(codec, &[], 0).unwrap(), []);
        assert_eq!(decompress(codec, &compress(codec, &[]), 0).unwrap(), []);
    }
    assert_eq!(compress(Codec::Snappy, &[]), [0]);
    refused(Codec::Snappy, &[0, 0, b'x'], 0, "");
}

#[test]
fn members_and_frames_in_a_row() {
    let parts = [b"first, ".to_vec(), vec![], Random::new(8).text(100_000), b"last".to_vec()];
    let plain = parts.concat();
    for codec in [Codec::Gzip, Codec::Zstd] {
        let mut compressed: Vec<u8> = parts.iter().flat_map(|part| compress(codec, part)).collect();
        for units in [u64::MAX, Budget::DEFAULT_UNITS, 0] {
            let output = run(decompressor(codec).as_mut(), &compressed, plain.len(), units).unwrap();
            assert!(output == plain);
        }
        let mut random = Random::new(9);
        for piece_max in [1, 1_000] {
            let it = &mut *decompressor(codec);
            let output = run_in_pieces(it, &compressed, plain.len(), piece_max, &mut random).unwrap();
            assert!(output == plain);
        }
        compressed.extend_from_slice(b"garbage at the end");
        refused(
            codec,
            &compressed,
            plain.len(),
            if codec == Codec::Gzip { "starts with the bytes 67 61" } else { "" },
        );
        compressed.truncate(compressed.len() - 17);
        refused(codec, &compressed, plain.len(), "");
    }
    let mut skippable = vec![0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    skippable.extend(compress(Codec::Zstd, b"words"));
    skippable.extend([0x5f, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]);
    assert_eq!(decompress(Codec::Zstd, &skippable, 5).unwrap(), b"words");
}

#[test]
fn gzip_headers_with_every_field() {
    let fields = [(4u8, &b"\x05\0extra"[..]), (8, b"name\0"), (16, b"comment\0"), (2, b"??")];
    for chosen in 0..16u32 {
        let mut flags = 1;
        let mut header = Vec::new();
        for (bit, (flag, bytes)) in fields.iter().enumerate() {
            if chosen >> bit & 1 == 1 {
                flags |= flag;
                header.extend_from_slice(bytes);
            }
        }
        let mut page = member(flags, &header, b"payload");
        if flags & 2 != 0 {
            let end = 10 + header.len() - 2;
            let crc = crc32fast::hash(&page[..end]).to_le_bytes();
            page[end..end + 2].copy_from_slice(&crc[..2]);
            for at in [4, 9, end, end + 1] {
                let mut damaged = page.clone();
                damaged[at] ^= 0x10;
                let mut theirs = Vec::new();
                assert!(flate2::read::GzDecoder::new(&damaged[..]).read_to_end(&mut theirs).is_err());
                refused(Codec::Gzip, &damaged, 7, "a member's header has the CRC");
            }
        }
        let mut theirs = Vec::new();
        flate2::read::GzDecoder::new(&page[..]).read_to_end(&mut theirs).unwrap();
        assert_eq!(theirs, b"payload");
        assert_eq!(decompress(Codec::Gzip, &page, 7).unwrap(), b"payload");
        let it = &mut *decompressor(Codec::Gzip);
        assert_eq!(run_in_pieces(it, &page, 7, 1, &mut Random::new(1)).unwrap(), b"payload");
    }
    let mut empty_extra = member(4, &[0, 0], b"payload");
    assert_eq!(decompress(Codec::Gzip, &empty_extra, 7).unwrap(), b"payload");
    let length = empty_extra.len();
    empty_extra[length - 1] ^= 1;
    refused(Codec::Gzip, &empty_extra, 7, "trailer says");
    empty_extra[length - 8] ^= 1;
    refused(Codec::Gzip, &empty_extra, 7, "CRC-32");
    refused(Codec::Gzip, b"\x78\x9c\x03\0\0\0\0\x01\0\0\0\0", 1, "starts with the bytes 78 9c");
    for (at, byte) in [(2, 7), (3, 0x20)] {
        let mut other = member(0, &[], b"payload");
        other[at] = byte;
        assert_eq!(decompress(Codec::Gzip, &other, 7).unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

#[test]
fn windows_beyond_the_limit() {
    let plain = Random::new(11).noise(3 << 20);
    let frame = zstd_frame(&plain, 21);
    let narrow = StandardCodecs::new(Limits { window_bytes: 1 << 20, ..Limits::DEFAULT });
    let error = run(narrow.decompressor(Codec::Zstd).unwrap().as_mut(), &frame, plain.len(), 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert!(error.message().contains("window_bytes of 1048576"), "{error}");
    let wide = StandardCodecs::new(Limits { window_bytes: 1 << 21, ..Limits::DEFAULT });
    assert!(run(wide.decompressor(Codec::Zstd).unwrap().as_mut(), &frame, plain.len(), 0).unwrap() == plain);
    for window_bytes in [0, u64::MAX] {
        let codecs = StandardCodecs::new(Limits { window_bytes, ..Limits::DEFAULT });
        assert!(codecs.decompressor(Codec::Zstd).is_ok());
    }
}

#[test]
fn memory_is_asked_for_before_it_is_taken() {
    let plain = Random::new(17).text(300_000);
    let frame = zstd_frame(&plain, 27);
    // It says no size of its content, and a window of 128 MiB; now one of 2^41 bytes and more.
    assert_eq!(frame[4] & 0b1110_0000, 0, "a frame that says how long it is");
    let mut largest = frame.clone();
    largest[5] = 0xff;
    for frame in [&frame, &largest, &[&frame[..], &largest].concat()] {
        let pages = if frame.len() > largest.len() { 2 } else { 1 };
        let plain = plain.repeat(pages);
        let mut it = decompressor(Codec::Zstd);
        let (mut admitted, mut asked) = (it.held_bytes(), 0);
        it.start(frame.len(), plain.len(), false).unwrap();
        let mut output = vec![0; plain.len()];
        let (mut consumed, mut produced) = (0, 0);
        loop {
            let seen =
                (consumed + 7).min(frame.len()).max(consumed + 1000 * produced.min(1)).min(frame.len());
            let (input, last) = (&frame[consumed..seen], seen == frame.len());
            let progress = it.step(input, last, &mut output, produced, &mut Budget::new(0)).unwrap();
            (consumed, produced) = (consumed + progress.consumed, produced + progress.produced);
            assert!(it.held_bytes() <= admitted, "{} bytes of {admitted}", it.held_bytes());
            match progress.status {
                Status::NeedMemory(bytes) => (admitted, asked) = (admitted + bytes, asked + 1),
                Status::End => break,
                _ => {}
            }
        }
        assert!(output == plain);
        // The page's bytes, not the window's; and once for all frames.
        assert!((1..=2).contains(&asked), "{asked} times");
        assert!(it.held_bytes() < 2 * plain.len() + (600 << 10), "{} bytes", it.held_bytes());
    }
}

/// A block that is accepted but becomes nothing does not cost as many tables as would fit into it.
#[test]
fn a_failing_step_is_bounded() {
    // A frame of one compressed block, which is noise.
    let noise = Random::new(13).noise(100_000);
    let header = u32::try_from(noise.len()).unwrap() << 3 | 2 << 1 | 1;
    let page = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x58][..], &header.to_le_bytes()[..3], &noise].concat();
    for whole in [false, true] {
        let mut it = decompressor(Codec::Zstd);
        it.start(page.len(), 100_000, whole).unwrap();
        let (mut consumed, mut output) = (0, vec![0; 100_000]);
        let (error, units) = loop {
            let mut budget = Budget::new(0);
            match it.step(&page[consumed..], true, &mut output, 0, &mut budget) {
                Ok(progress) => consumed += progress.consumed,
                Err(error) => break (error, budget.spent()),
            }
        };
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(units <= 30_000, "{units} units for {error}");
    }
}

/// Blocks that no encoder writes: matches alone, from anywhere; all tables for a few bytes. Once in a page whose frame the
/// library decodes, and once in one that it does not.
#[test]
fn zstd_blocks_that_are_all_work() {
    for runs in [5, 20] {
        let mut history = zstd_bits::raw(&[0; 16]);
        history.extend(zstd_bits::run(0).repeat(runs));
        let mut random = Random::new(11);
        let distances: Vec<u64> = (0..zstd_bits::matches_max(18)).map(|_| random.next()).collect();
        let copies = &distances[..zstd_bits::copies_max(18)];
        let blocks = [
            (zstd_bits::matches(18, &distances), 3 * distances.len()),
            (zstd_bits::copies(18, copies), 20 * copies.len()),
            (zstd_bits::copies(18, &copies[..100]), 20 * 100),
            (zstd_bits::tables(1).repeat(100), 400),
            (zstd_bits::tables(40).repeat(3), 3 * 43),
        ];
        for (block, bytes) in blocks {
            let frame = [zstd_bits::frame(22), history.clone(), block, zstd_bits::END.to_vec()].concat();
            let length = 16 + runs * zstd_bits::BLOCK_BYTES + bytes;
            assert_eq!(decompress(Codec::Zstd, &frame, length).unwrap(), vec![0; length]);
            let mut plain = vec![1; length];
            assert_eq!(zstd_safe::decompress(&mut plain[..], &frame).unwrap(), length);
            assert_eq!(plain, vec![0; length]);
        }
    }
}

#[test]
fn the_work_of_a_step_is_bounded() {
    // The largest slice is a block of ZSTD.
    const SLICE_UNITS_MAX: u64 = 75_000;
    let stored = [0, 0, 0, 0xff, 0xff].repeat(50_000);
    let mut hostile = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    hostile.extend(stored);
    hostile.extend([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let plain = Random::new(12).text(1 << 20);
    let empty_frames = [0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0].repeat(20_000);
    let pages = [
        (Codec::Gzip, hostile, 0),
        (Codec::Gzip, compress(Codec::Gzip, &plain), plain.len()),
        (Codec::Zstd, compress(Codec::Zstd, &plain), plain.len()),
        (Codec::Zstd, empty_frames, 0),
        (Codec::Lz4, compress(Codec::Lz4, &plain), plain.len()),
        (Codec::Lzo, compress(Codec::Lzo, &plain), plain.len()),
    ];
    for (codec, compressed, uncompressed) in pages {
        let mut it = decompressor(codec);
        it.start(compressed.len(), uncompressed, false).unwrap();
        let mut output = vec![0; uncompressed];
        let (mut consumed, mut produced, mut steps) = (0, 0, 0);
        loop {
            let mut budget = Budget::default();
            let progress =
                it.step(&compressed[consumed..], true, &mut output, produced, &mut budget).unwrap();
            let units = budget.spent();
            assert!(units <= Budget::DEFAULT_UNITS + SLICE_UNITS_MAX, "{codec:?}: {units} in a step");
            consumed += progress.consumed;
            produced += progress.produced;
            steps += 1;
            if progress.status == Status::End {
                break;
            }
            assert!(matches!(progress.status, Status::Yield | Status::NeedMemory(_)));
        }
        assert!(steps > 3, "{codec:?}: {steps} steps");
    }
}
