//! Compressors: round trips through our decompressors and others', in pieces and in one call.

use std::io::Read;

use marquetry_base::{Budget, Codec, Codecs, Compressor, ErrorKind, Result, Status};
use marquetry_codecs::{StandardCodecs, bounded_level_max, levels};

use crate::encoders::Random;
use crate::{decompress, decompressor, run_in_pieces};

const CODECS: [Codec; 6] =
    [Codec::Snappy, Codec::Lz4Raw, Codec::Lz4, Codec::Gzip, Codec::Brotli, Codec::Zstd];

/// The maximum charge of a step at usual levels: a chunk, which is compressed at once, can take more than the default
/// budget.
const STEP_UNITS_MAX: u64 = Budget::DEFAULT_UNITS + 100_000;

/// Stands for a codec's other compressor.
const OTHER: Option<i32> = Some(i32::MIN);

fn compressor(codec: Codec, level: Option<i32>) -> Box<dyn Compressor> {
    let codecs = StandardCodecs::default();
    match level {
        OTHER => codecs.other_compressor(codec).unwrap().expect("there is another one"),
        _ => codecs.compressor(codec, level).unwrap(),
    }
}

/// All input and room at once; budget after budget of `units`.
fn compress(it: &mut dyn Compressor, plain: &[u8], units: u64) -> Vec<u8> {
    it.start(plain.len()).unwrap();
    let mut page = vec![0xaa; it.bound(plain.len())];
    let (mut consumed, mut produced, mut steps) = (0, 0, 0);
    loop {
        let mut budget = Budget::new(units);
        let progress = it.step(&plain[consumed..], true, &mut page[produced..], &mut budget).unwrap();
        consumed += progress.consumed;
        produced += progress.produced;
        steps += 1;
        assert!(steps < 1_000 + plain.len(), "no end");
        match progress.status {
            Status::End => {
                assert_eq!(consumed, plain.len());
                page.truncate(produced);
                return page;
            }
            Status::Yield => assert!(budget.spent() > 0, "no progress"),
            status => panic!("{status:?} with everything at hand"),
        }
    }
}

/// Input, room and budgets of random sizes.
fn compress_in_pieces(
    it: &mut dyn Compressor,
    plain: &[u8],
    piece_max: usize,
    random: &mut Random,
) -> Vec<u8> {
    it.start(plain.len()).unwrap();
    let mut page = Vec::new();
    let (mut consumed, mut seen) = (0, 0);
    let mut room = vec![0xaa; random.below(piece_max) + 1];
    let mut used = 0;
    loop {
        let mut budget = Budget::new(random.below(2_000) as u64);
        let last = seen == plain.len();
        let progress = it.step(&plain[consumed..seen], last, &mut room[used..], &mut budget).unwrap();
        consumed += progress.consumed;
        used += progress.produced;
        assert!(consumed <= seen && used <= room.len());
        match progress.status {
            Status::End => {
                assert_eq!(consumed, plain.len());
                page.extend_from_slice(&room[..used]);
                return page;
            }
            Status::NeedInput => {
                assert!(!last, "input wanted after the last");
                assert_eq!(consumed, seen, "input left and more wanted");
                seen = (seen + random.below(piece_max) + 1).min(plain.len());
            }
            Status::NeedRoom => {
                assert_eq!(used, room.len(), "room left and more wanted");
                page.extend_from_slice(&room);
                room = vec![0xaa; random.below(piece_max) + 1];
                used = 0;
            }
            Status::NeedMemory(bytes) => panic!("a compressor asks for {bytes} bytes"),
            Status::Yield => assert!(budget.spent() > 0, "no progress"),
        }
    }
}

/// A page decompressed by another implementation.
fn theirs(codec: Codec, page: &[u8], uncompressed: usize) -> Vec<u8> {
    let mut output = vec![0; uncompressed];
    let length = match codec {
        Codec::Snappy => snap::raw::Decoder::new().decompress(page, &mut output).unwrap(),
        Codec::Lz4Raw => lz4_flex::block::decompress_into(page, &mut output).unwrap(),
        Codec::Gzip => {
            output.clear();
            flate2::read::GzDecoder::new(page).read_to_end(&mut output).unwrap()
        }
        Codec::Brotli => {
            output.clear();
            brotli::Decompressor::new(page, 4096).read_to_end(&mut output).unwrap()
        }
        Codec::Zstd => zstd_safe::decompress(&mut output[..], page).unwrap(),
        // Blocks of one chunk each, as Arrow C++ reads them.
        _ => {
            let (mut at, mut made) = (0, 0);
            while at < page.len() {
                let size = |at: usize| {
                    usize::try_from(u32::from_be_bytes(page[at..at + 4].try_into().unwrap())).unwrap()
                };
                let (plain, packed) = (size(at), size(at + 4));
                let chunk = &page[at + 8..at + 8 + packed];
                let room = &mut output[made..made + plain];
                assert_eq!(lz4_flex::block::decompress_into(chunk, room).unwrap(), plain);
                (at, made) = (at + 8 + packed, made + plain);
            }
            made
        }
    };
    assert_eq!(length, uncompressed);
    output
}

/// Data of all shapes.
fn samples() -> Vec<(String, Vec<u8>)> {
    let mut random = Random::new(17);
    let mut samples = vec![
        ("nothing".to_owned(), vec![]),
        ("a byte".to_owned(), vec![7]),
        ("words".to_owned(), b"the same words, the same words, again".to_vec()),
    ];
    for length in [2, 3, 4, 5, 11, 12, 13, 15, 16, 17, 18, 20, 31, 32, 33, 63, 64, 65, 70] {
        samples.push((format!("{length} bytes"), vec![9; length]));
        samples.push((format!("{length} of noise"), random.noise(length)));
    }
    for period in 1..70 {
        let unit = random.noise(period);
        samples.push((format!("period {period}"), unit.iter().copied().cycle().take(700 + period).collect()));
    }
    for length in [1_000, 65_536, 65_537, 300_000] {
        samples.push((format!("{length} zeros"), vec![0; length]));
        samples.push((format!("{length} of noise"), random.noise(length)));
        samples.push((format!("{length} of text"), random.text(length)));
        let mut value = 0u64;
        let integers = (0..length / 8).flat_map(|_| {
            value += random.next() % 1_000;
            value.to_le_bytes()
        });
        samples.push((format!("{length} of integers"), integers.collect()));
        let floats = (0..length / 8).flat_map(|_| ((random.next() % 10_000) as f64 / 100.0).to_le_bytes());
        samples.push((format!("{length} of floats"), floats.collect()));
    }
    // Noise that ends shortly before its literals would be written on their own.
    for length in [65_500, 65_530, 131_000, 131_040, 131_070] {
        samples.push((format!("{length} of noise"), random.noise(length)));
    }
    // A match as far back as possible, and one byte farther; long noise, then matches; noise that repeats the noise
    // before.
    let far = random.noise(400_000);
    for back in [65_534, 65_535, 65_536, 65_537] {
        samples.push((format!("{back} back"), [&far[..back], &far[..3_000]].concat()));
    }
    // Matches 65,536 bytes back look like matches at distance 0.
    let text = random.text(65_536);
    samples.push(("text that repeats at 65,536".to_owned(), [&text[..]; 4].concat()));
    samples.push(("noise, then zeros".to_owned(), [&far[..], &[0; 100_000]].concat()));
    samples.push((
        "noise and matches".to_owned(),
        far.chunks(30_000).flat_map(|c| [c, &c[..9_000]].concat()).collect(),
    ));
    samples
}

/// Levels that are as different as possible, and fast enough for tests.
fn levels_of(codec: Codec) -> Vec<Option<i32>> {
    match codec {
        Codec::Gzip => vec![None, Some(0), Some(1), Some(2), Some(4), Some(9)],
        Codec::Zstd => vec![None, Some(-5), Some(3), Some(7)],
        Codec::Brotli => vec![None, Some(0), Some(1), Some(3)],
        Codec::Snappy => vec![None, OTHER],
        _ => vec![None],
    }
}

#[test]
fn round_trips_by_ours_and_theirs() {
    for codec in CODECS {
        for level in levels_of(codec) {
            let mut reused = compressor(codec, level);
            for (name, plain) in samples() {
                let page = compress(reused.as_mut(), &plain, u64::MAX);
                let what = || format!("{codec:?} at {level:?}: {name}");
                assert!(page.len() <= reused.bound(plain.len()), "{}", what());
                assert!(decompress(codec, &page, plain.len()).unwrap() == plain, "{}", what());
                assert!(theirs(codec, &page, plain.len()) == plain, "{}", what());
            }
        }
    }
}

#[test]
fn the_same_bytes_whatever_the_pieces() {
    let mut random = Random::new(18);
    for codec in CODECS {
        for level in levels_of(codec) {
            let mut reused = compressor(codec, level);
            for (name, plain) in samples() {
                let expected = compress(compressor(codec, level).as_mut(), &plain, u64::MAX);
                let what = |how: usize| format!("{codec:?} at {level:?}: {name}, by {how}");
                for units in [0, Budget::DEFAULT_UNITS] {
                    let page = compress(reused.as_mut(), &plain, units);
                    assert!(page == expected, "{}", what(0));
                }
                for piece_max in [1, 3, 100, 10_000, 200_000] {
                    if piece_max < 100 && plain.len() > 2_000 {
                        continue;
                    }
                    let page = compress_in_pieces(reused.as_mut(), &plain, piece_max, &mut random);
                    assert!(page == expected, "{}", what(piece_max));
                }
            }
        }
    }
}

#[test]
fn pages_read_in_pieces_too() {
    let mut random = Random::new(19);
    let plain = random.text(200_000);
    for codec in CODECS {
        let page = compress_in_pieces(compressor(codec, None).as_mut(), &plain, 5_000, &mut random);
        let it = &mut *decompressor(codec);
        assert!(run_in_pieces(it, &page, plain.len(), 3_000, &mut random).unwrap() == plain);
    }
}

#[test]
fn every_level() {
    let plain = Random::new(20).text(40_000);
    for codec in [Codec::Gzip, Codec::Zstd, Codec::Brotli] {
        let known = levels(codec).unwrap();
        assert!((known.least..=known.most).contains(&known.default));
        let mut sizes = Vec::new();
        for level in known.least.max(-8)..=known.most {
            let page = compress(compressor(codec, Some(level)).as_mut(), &plain, Budget::DEFAULT_UNITS);
            assert!(decompress(codec, &page, plain.len()).unwrap() == plain, "{codec:?} at {level}");
            sizes.push(page.len());
        }
        assert!(sizes.last() < sizes.first(), "{codec:?}: {sizes:?}");
        let page = compress(compressor(codec, Some(known.least)).as_mut(), &plain, Budget::DEFAULT_UNITS);
        assert!(decompress(codec, &page, plain.len()).unwrap() == plain, "{codec:?} at {}", known.least);
        let default = compress(compressor(codec, None).as_mut(), &plain, u64::MAX);
        let named = compress(compressor(codec, Some(known.default)).as_mut(), &plain, u64::MAX);
        assert!(default == named, "{codec:?}");
        for level in [known.least - 1, known.most + 1] {
            let error = StandardCodecs::default().compressor(codec, Some(level)).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Misuse);
            let words = format!("no level {level}, but those from {} to {}", known.least, known.most);
            assert!(error.message().contains(&words), "{error}");
        }
    }
    for codec in [Codec::Snappy, Codec::Lz4Raw, Codec::Lz4, Codec::Lzo] {
        assert_eq!(levels(codec), None);
        let error = StandardCodecs::default().compressor(codec, Some(1)).err().unwrap();
        assert!(error.message().contains("has no levels"), "{error}");
    }
}

#[test]
fn lzo_is_only_read() {
    let error = StandardCodecs::default().compressor(Codec::Lzo, None).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn headers_are_as_others_write_them() {
    // Zstandard: a single segment of known size, no checksum.
    let page = compress(compressor(Codec::Zstd, None).as_mut(), &[5; 1_000], u64::MAX);
    assert_eq!(page[..4], [0x28, 0xb5, 0x2f, 0xfd]);
    assert_eq!(zstd_safe::get_frame_content_size(&page).unwrap(), Some(1_000));
    assert_eq!(page[4] & 4, 0, "a checksum");
    assert_eq!(page[4] & 0x20, 0x20, "a window of its own");
    // One member.
    let page = compress(compressor(Codec::Gzip, None).as_mut(), &[5; 1_000], u64::MAX);
    assert_eq!(page[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
}

#[test]
fn misuse_is_told_and_stays_until_the_next_page() {
    let is_misuse = |result: Result<_>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Misuse);
    for codec in CODECS {
        let it = &mut *compressor(codec, None);
        let step = |it: &mut dyn Compressor, input: &[u8], last| {
            it.step(input, last, &mut [0; 100], &mut Budget::unlimited())
        };
        is_misuse(step(it, b"some words", true));
        it.start(10).unwrap();
        assert_eq!(step(it, b"some words", true).unwrap().status, Status::End);
        is_misuse(step(it, &[], true));
        it.start(10).unwrap();
        is_misuse(step(it, b"words", true));
        is_misuse(step(it, b"some words", true));
        it.start(3).unwrap();
        is_misuse(step(it, b"words", false));
        is_misuse(it.start(1 << 31).map(|()| step(it, &[], false).unwrap()));
        is_misuse(step(it, &[], false));
        assert_eq!(decompress(codec, &compress(it, b"some words", 1), 10).unwrap(), b"some words");
    }
}

#[test]
fn a_page_left_half_way_does_not_reach_into_the_next() {
    let plain = Random::new(21).text(300_000);
    for codec in CODECS {
        let expected = compress(compressor(codec, None).as_mut(), &plain, 1);
        let it = &mut *compressor(codec, None);
        for shown in [100_000, 300_000] {
            it.start(plain.len()).unwrap();
            let mut budget = Budget::new(1);
            it.step(&plain[..shown], shown == plain.len(), &mut [0; 1_000], &mut budget).unwrap();
            assert!(compress(it, &plain, 1) == expected, "{codec:?}");
        }
    }
}

#[test]
fn the_work_of_a_step_is_bounded() {
    let mut random = Random::new(22);
    for plain in [random.text(1 << 20), random.noise(1 << 20), vec![0; 1 << 20]] {
        let bounded = |codec| [None, bounded_level_max(codec)].map(|level| (codec, level));
        for (codec, level) in CODECS.into_iter().flat_map(bounded) {
            let it = &mut *compressor(codec, level);
            it.start(plain.len()).unwrap();
            let mut page = vec![0; it.bound(plain.len())];
            let (mut consumed, mut produced, mut steps) = (0, 0, 0);
            loop {
                let mut budget = Budget::default();
                let progress = it.step(&plain[consumed..], true, &mut page[produced..], &mut budget).unwrap();
                assert!(budget.spent() <= STEP_UNITS_MAX, "{codec:?}: {} in a step", budget.spent());
                consumed += progress.consumed;
                produced += progress.produced;
                steps += 1;
                if progress.status == Status::End {
                    break;
                }
            }
            assert!(steps > 1, "{codec:?}: {steps} steps");
        }
    }
}

#[test]
fn a_small_stack_is_enough() {
    let work = || {
        let plain = Random::new(23).text(200_000);
        for codec in CODECS {
            for level in levels_of(codec) {
                let page = compress(compressor(codec, level).as_mut(), &plain, Budget::DEFAULT_UNITS);
                assert!(decompress(codec, &page, plain.len()).unwrap() == plain);
            }
        }
    };
    std::thread::Builder::new().stack_size(128 << 10).spawn(work).unwrap().join().unwrap();
}

/// Our matches cross boundaries of what others treat as separate blocks, and all our tables are large: no page of ours
/// is much larger than theirs.
#[test]
fn pages_are_not_larger_than_others() {
    let mut random = Random::new(24);
    let text = random.text(500_000);
    let snappy = compress(compressor(Codec::Snappy, None).as_mut(), &text, u64::MAX).len();
    assert!(snappy <= snap::raw::Encoder::new().compress_vec(&text).unwrap().len());
    let lz4 = compress(compressor(Codec::Lz4Raw, None).as_mut(), &text, u64::MAX).len();
    assert!(lz4 <= lz4_flex::block::compress(&text).len());
}
