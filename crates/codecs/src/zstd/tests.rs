//! The decoder of frames beside the C library, which decodes all of them, whatever they refer to.

#[path = "../../tests/pages/encoders/mod.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests of all codecs")]
mod encoders;

use std::collections::BTreeSet;

use marquetry_base::{Budget, Decompressor, Error, ErrorKind, Result, Status};
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer};

use self::encoders::{Random, zstd_bits};
use super::Zstd;
use super::literals::NOT_USED_UP;

fn ours() -> Zstd {
    Zstd::with_reach(u64::MAX, 0).unwrap()
}

fn theirs() -> Zstd {
    Zstd::with_reach(u64::MAX, u64::MAX).unwrap()
}

/// How a host feeds a page.
#[derive(Debug, Clone, Copy)]
struct Manner {
    is_whole: bool,
    /// Bytes of input, and of room, that there are more of at a time, at the most.
    piece_max: usize,
    units: u64,
}

const AT_ONCE: Manner = Manner { is_whole: true, piece_max: usize::MAX, units: u64::MAX };

/// Slices that do not depend on the budget are not larger.
const SLICE_UNITS_MAX: u64 = 75_000;

fn read(it: &mut Zstd, page: &[u8], length: usize, manner: Manner) -> Result<Vec<u8>> {
    let mut random = Random::new(1);
    let mut piece = |at: usize, end: usize| match manner.piece_max {
        usize::MAX => end,
        most => end.min(at + 1 + random.below(most)),
    };
    it.start(page.len(), length, manner.is_whole)?;
    let mut admitted = it.held_bytes();
    let mut output = vec![0xaa; length];
    let (mut consumed, mut produced, mut seen, mut idle) = (0, 0, piece(0, page.len()), 0);
    let mut room = if manner.is_whole { length } else { piece(0, length) };
    loop {
        let mut budget = Budget::new(manner.units);
        let is_last = seen == page.len();
        // What was produced before need not be shown to who has a window.
        let from = if manner.is_whole { 0 } else { produced };
        let (input, to) = (&page[consumed..seen], &mut output[from..room]);
        let progress = it.step(input, is_last, to, produced - from, &mut budget)?;
        assert!(manner.units == u64::MAX || budget.spent() <= manner.units + SLICE_UNITS_MAX + BLOCK_UNITS);
        (consumed, produced) = (consumed + progress.consumed, produced + progress.produced);
        // (The library has room for a block that it does not ask for, where the host holds the page; and for a few bytes of a frame
        // that is skipped, or empty.)
        let is_asked = !manner.is_whole || it.own_reach_min == 0;
        assert!(!is_asked || it.held_bytes() <= admitted + 16, "{} bytes of {admitted}", it.held_bytes());
        idle = if progress.consumed + progress.produced > 0 { 0 } else { idle + 1 };
        assert!(idle < 2_000, "no progress, but {:?}", progress.status);
        match progress.status {
            Status::End => {
                assert_eq!((consumed, produced), (page.len(), length));
                // What was asked for was needed; the library needs less than it says where a frame has no blocks.
                let is_ours = it.own_reach_min == 0;
                assert!(
                    !is_ours || admitted <= it.held_bytes() + 1024,
                    "{} bytes of {admitted}",
                    it.held_bytes()
                );
                return Ok(output);
            }
            Status::NeedInput => {
                assert!(!is_last && consumed == seen, "input wanted where there is some, or no more");
                seen = piece(seen, page.len());
            }
            Status::NeedRoom => {
                assert!(produced == room && room < length, "room wanted where there is some, or no more");
                room = piece(room, length);
            }
            Status::NeedMemory(bytes) => admitted = it.held_bytes() + bytes,
            Status::Yield => assert!(budget.spent() > 0, "nothing was done"),
        }
    }
}

/// The library decodes a block at once.
const BLOCK_UNITS: u64 = 300_000;

/// Every way of feeding a page that is worth it for its length.
fn manners(page: &[u8], length: usize) -> Vec<Manner> {
    let mut manners = Vec::new();
    let bytes = page.len().max(length);
    for is_whole in [true, false] {
        for (piece_max, units) in
            [(usize::MAX, u64::MAX), (usize::MAX, 1), (1, 0), (2, u64::MAX), (700, 20_000), (60_000, 0)]
        {
            if bytes / piece_max < 20_000 {
                manners.push(Manner { is_whole, piece_max, units });
            }
        }
    }
    manners
}

/// Ours makes the same of a page as theirs, however it is fed.
fn same(ours: &mut Zstd, page: &[u8], length: usize) -> Option<Vec<u8>> {
    let expected = read(&mut theirs(), page, length, AT_ONCE).ok();
    for manner in manners(page, length) {
        match (read(ours, page, length, manner), &expected) {
            (Ok(output), Some(expected)) => assert!(output == *expected, "other bytes, {manner:?}"),
            (Err(error), None) => assert_kind(&error),
            (Ok(_), None) => panic!("{manner:?}: the library refuses {page:02x?}"),
            (Err(error), Some(_)) => panic!("{manner:?}: {error}; the library takes {page:02x?}"),
        }
    }
    expected
}

fn assert_kind(error: &Error) {
    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::LimitExceeded), "{error}");
}

fn set(context: &mut CCtx<'_>, parameter: CParameter) {
    context.set_parameter(parameter).unwrap();
}

/// A frame of blocks of `block` bytes, or of as many as the library likes.
fn frame(plain: &[u8], level: i32, window_log: u32, block: usize, has_checksum: bool) -> Vec<u8> {
    let mut context = CCtx::create();
    set(&mut context, CParameter::CompressionLevel(level));
    set(&mut context, CParameter::ChecksumFlag(has_checksum));
    if window_log > 0 {
        set(&mut context, CParameter::WindowLog(window_log));
        set(&mut context, CParameter::EnableLongDistanceMatching(window_log > 21));
    }
    let mut frame = vec![0; zstd_safe::compress_bound(plain.len()) + 64 * (plain.len() / block + 2)];
    if block >= plain.len() {
        let length = context.compress2(&mut frame[..], plain).unwrap();
        frame.truncate(length);
        return frame;
    }
    let mut output = OutBuffer::around(&mut frame[..]);
    for part in plain.chunks(block) {
        context.compress_stream(&mut output, &mut InBuffer::around(part)).unwrap();
        context.flush_stream(&mut output).unwrap();
    }
    context.end_stream(&mut output).unwrap();
    let length = output.pos();
    frame.truncate(length);
    frame
}

/// Numbers, each near the last.
fn numbers(random: &mut Random, bytes: usize) -> Vec<u8> {
    let mut number = 0u64;
    let mut next = || {
        number += random.next() % 1_000;
        number.to_le_bytes()
    };
    (0..bytes / 8).flat_map(|_| next()).collect()
}

/// Parts of what was before, from anywhere, and noise.
fn far(random: &mut Random, bytes: usize) -> Vec<u8> {
    let mut data = random.noise(1_000);
    while data.len() < bytes {
        let from = random.below(data.len());
        let length = (4 + random.below(60)).min(data.len() - from);
        data.extend_from_within(from..from + length);
        if random.below(4) == 0 {
            let noise = 1 + random.below(9);
            data.extend(random.noise(noise));
        }
    }
    data
}

/// What the compressed blocks of frames are made of: kinds of literals, of tables, and the like.
fn modes(page: &[u8]) -> BTreeSet<String> {
    let mut modes = BTreeSet::new();
    let header = page[4];
    let sizes = [[0, 1][usize::from(header >> 5 & 1)], 2, 4, 8][usize::from(header >> 6)];
    let mut at = 5 + usize::from(header & 1 << 5 == 0) + sizes;
    while let [a, b, c, ..] = page[at..] {
        let head = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        let (kind, size) = (head >> 1 & 3, head >> 3);
        modes.insert(format!("block {kind}"));
        let content = &page[at + 3..at + 3 + if kind == 1 { 1 } else { size }];
        at += 3 + content.len();
        if kind == 2 {
            let mut word = [0; 8];
            word[..5.min(content.len())].copy_from_slice(&content[..5.min(content.len())]);
            let word = u64::from_le_bytes(word);
            let field = |from: u32, bits: u32| usize::try_from(word >> from & ((1 << bits) - 1)).unwrap();
            let (literals, form) = (field(0, 2), field(2, 2));
            modes.insert(format!("literals {literals} in form {form}"));
            let end = match (literals, form) {
                (0, 0 | 2) => 1 + field(3, 5),
                (0, 1) => 2 + field(4, 12),
                (0, _) => 3 + field(4, 20),
                (1, _) => [2, 3, 2, 4][form],
                (_, 0 | 1) => 3 + field(14, 10),
                (_, 2) => 4 + field(18, 14),
                _ => 5 + field(22, 18),
            };
            if literals == 2 {
                let tree = content[[3, 3, 4, 5][form]];
                modes.insert(format!("tree {}", if tree < 128 { "compressed" } else { "as it is" }));
            }
            let tables = match content[end..] {
                [0, ..] => None,
                [255, _, _, tables, ..] | [128..=254, _, tables, ..] | [_, tables, ..] => Some(tables),
                _ => unreachable!("a block without sequences"),
            };
            for (name, shift) in [("literals", 6), ("offsets", 4), ("matches", 2)] {
                modes.extend(tables.map(|tables| format!("table of {name} {}", tables >> shift & 3)));
            }
        }
        if head & 1 == 1 {
            break;
        }
    }
    modes
}

#[test]
fn frames_of_the_library() {
    let mut random = Random::new(101);
    let mut ours = ours();
    let mut seen = BTreeSet::new();
    for bytes in [0, 1, 50, 3_000, 140_000, 400_000] {
        let zeros = vec![0; bytes];
        let mut mixed = zeros[..bytes / 3].to_vec();
        mixed.extend(random.noise(bytes / 3));
        let samples = [
            zeros,
            random.noise(bytes),
            random.text(bytes),
            numbers(&mut random, bytes),
            far(&mut random, bytes),
            mixed,
        ];
        for plain in &samples {
            for (level, log, block, has_checksum) in [
                (1, 0, usize::MAX, true),
                (3, 10, usize::MAX, false),
                (3, 17, 3_000, true),
                (-5, 27, 200, false),
                (19, 23, 900, true),
                (22, 27, usize::MAX, true),
            ] {
                if bytes > 5_000 && (level > 3 && block < 5_000 || level < 0) {
                    continue;
                }
                let page = frame(plain, level, log, block, has_checksum);
                seen.extend(modes(&page));
                assert!(same(&mut ours, &page, plain.len()).unwrap() == *plain);
            }
        }
    }
    // What the library does not choose for such data, crafted blocks have.
    for mode in [
        "block 0",
        "block 1",
        "block 2",
        "literals 0 in form 3",
        "literals 2 in form 0",
        "literals 2 in form 3",
        "literals 3 in form 0",
        "literals 3 in form 2",
        "tree compressed",
    ] {
        assert!(seen.contains(mode), "no {mode} in {seen:?}");
    }
    for table in ["literals", "offsets", "matches"] {
        for kind in 0..4 {
            assert!(
                seen.contains(&format!("table of {table} {kind}")),
                "no table {kind} of {table} in {seen:?}"
            );
        }
    }
}

/// Literals that repeat a byte, trees that are not compressed, matches alone, tables alone; frames of all kinds in a row.
#[test]
fn frames_that_no_encoder_writes() {
    let mut random = Random::new(103);
    let mut ours = ours();
    let history = [zstd_bits::raw(&random.noise(1_000)), zstd_bits::run(7)].concat();
    let history_bytes = 1_000 + zstd_bits::BLOCK_BYTES;
    let distances: Vec<u64> = (0..zstd_bits::matches_max(16)).map(|_| random.next()).collect();
    let mut blocks = vec![
        (zstd_bits::matches(16, &distances), 3 * distances.len()),
        (zstd_bits::copies(16, &distances[..5_000]), 5_000 * 20),
        (zstd_bits::tables(1).repeat(30), 120),
        (zstd_bits::tables(40), 43),
        (zstd_bits::tables(1_000), 1_003),
    ];
    for length in [0usize, 5, 31, 32, 4_095, 4_096, 100_000] {
        let (two, four) = (u32::try_from(length).unwrap() << 4, length < 32);
        let head: Vec<u8> = match length {
            _ if four => vec![u8::try_from(length << 3 | 1).unwrap()],
            ..4_096 => (two | 1 << 2 | 1).to_le_bytes()[..2].to_vec(),
            _ => (two | 3 << 2 | 1).to_le_bytes()[..3].to_vec(),
        };
        // No sequences.
        let content = [&head[..], b"r", &[0]].concat();
        let size = u32::try_from(content.len()).unwrap() << 3 | 2 << 1;
        blocks.push(([&size.to_le_bytes()[..3], &content].concat(), length));
    }
    let mut pages = Vec::new();
    for (block, bytes) in blocks {
        let frame = [zstd_bits::frame(18), history.clone(), block, zstd_bits::END.to_vec()].concat();
        pages.push((frame, history_bytes + bytes));
    }
    let text = random.text(5_000);
    let skipped = [&[0x5f, 0x2a, 0x4d, 0x18, 5, 0, 0, 0][..], b"notes"].concat();
    let frames = [
        frame(&text, 3, 0, 900, true),
        skipped,
        frame(&[], 3, 0, 1, false),
        frame(&text, 3, 0, 6_000, false),
    ];
    pages.push((frames.concat(), 2 * text.len()));
    for (page, length) in &pages {
        assert!(same(&mut ours, page, *length).is_some());
        assert!(same(&mut ours, page, length - 1).is_none());
        assert!(same(&mut ours, page, length + 1).is_none());
        assert!(same(&mut ours, &page[..page.len() - 1], *length).is_none());
    }
}

/// Small frames of every kind, with checksums and without.
fn small_frames() -> Vec<(Vec<u8>, usize)> {
    let mut random = Random::new(107);
    let mut text = random.text(600);
    text.extend(b"x".repeat(200));
    let numbers = numbers(&mut random, 900);
    let mut frames = Vec::new();
    for has_checksum in [true, false] {
        for (plain, level, block) in
            [(&text, 3, 2_000), (&text, 19, 250), (&numbers, 3, 300), (&numbers, 1, 2_000)]
        {
            frames.push((frame(plain, level, 0, block, has_checksum), plain.len()));
        }
    }
    let tables =
        [zstd_bits::frame(10), zstd_bits::raw(&[0; 16]), zstd_bits::tables(40), zstd_bits::END.to_vec()];
    frames.push((tables.concat(), 16 + 43));
    frames
}

#[test]
fn every_truncation_of_small_frames() {
    let mut ours = ours();
    for (page, length) in small_frames() {
        assert!(same(&mut ours, &page, length).is_some());
        for end in 0..page.len() {
            for manner in [AT_ONCE, Manner { is_whole: false, piece_max: 3, units: 0 }] {
                let error = read(&mut ours, &page[..end], length, manner).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
                assert!(read(&mut theirs(), &page[..end], length, AT_ONCE).is_err());
            }
        }
    }
}

#[test]
fn every_change_of_a_byte_of_small_frames() {
    let (mut ours, mut theirs) = (ours(), theirs());
    let (mut taken, mut refused, mut laxer) = (0, 0, 0);
    for (page, length) in small_frames() {
        for at in 0..page.len() {
            for change in 1..=255 {
                let mut changed = page.clone();
                changed[at] ^= change;
                match verdicts(&mut ours, &mut theirs, &changed, length) {
                    Verdict::Taken => taken += 1,
                    Verdict::Refused => refused += 1,
                    Verdict::Laxer => laxer += 1,
                }
            }
        }
    }
    // That the library took literals which ours refuses is the exception.
    println!("{taken} {refused} {laxer}");
    assert!(
        taken > 10_000 && refused > 10 * laxer,
        "{taken} taken, {refused} refused, {laxer} by ours alone"
    );
}

/// What becomes of a page, by ours and by theirs.
enum Verdict {
    Taken,
    Refused,
    /// Taken by the library alone: a stream of literals is not used up, which it looks at on some processors only.
    Laxer,
}

fn verdicts(ours: &mut Zstd, theirs: &mut Zstd, page: &[u8], length: usize) -> Verdict {
    let expected = read(theirs, page, length, AT_ONCE);
    match (read(ours, page, length, AT_ONCE), expected) {
        (Ok(output), Ok(expected)) => {
            assert!(output == expected, "other bytes of {page:02x?}");
            Verdict::Taken
        }
        (Err(error), Err(_)) => {
            assert_kind(&error);
            Verdict::Refused
        }
        (Ok(_), Err(error)) => panic!("the library refuses {page:02x?}: {error}"),
        (Err(error), Ok(_)) => {
            assert!(error.message().contains(NOT_USED_UP), "{error}: the library takes {page:02x?}");
            Verdict::Laxer
        }
    }
}

#[test]
fn changed_frames_at_random() {
    changes(60, 1);
}

#[test]
#[ignore = "soak: minutes of changed frames"]
fn changed_frames_at_random_for_long() {
    changes(6_000, 2);
}

/// Longer frames, of which several bytes are changed.
fn changes(rounds: usize, seed: u64) {
    let mut random = Random::new(seed);
    let (mut ours, mut theirs) = (ours(), theirs());
    let (mut taken, mut laxer) = (0, 0);
    for _ in 0..rounds {
        let bytes = 1 + random.below(20_000);
        let plain = match random.below(4) {
            0 => random.text(bytes),
            1 => numbers(&mut random, bytes),
            2 => random.noise(bytes),
            _ => far(&mut random, bytes),
        };
        let level = [-3, 1, 3, 9, 19][random.below(5)];
        let block = [100_000, 5_000, 700][random.below(3)];
        let log = [0, 10, 12, 24][random.below(4)];
        let page = frame(&plain, level, log, block, random.below(4) == 0);
        for _ in 0..100 {
            let mut changed = page.clone();
            for _ in 0..=random.below(3) {
                let at = random.below(changed.len());
                changed[at] = random.next().to_le_bytes()[3];
            }
            match verdicts(&mut ours, &mut theirs, &changed, plain.len()) {
                Verdict::Taken => taken += 1,
                Verdict::Laxer => laxer += 1,
                Verdict::Refused => {}
            }
        }
    }
    // Most that the library takes is taken: the exceptions are frames without checksums.
    assert!(taken > rounds && taken > 10 * laxer, "{taken} taken, {laxer} by the library alone");
}

/// A window that is filled many times, and matches from all of it.
#[test]
fn windows_are_filled_again() {
    let mut random = Random::new(109);
    for log in [10, 17, 18] {
        let plain = far(&mut random, 1_500_000);
        let mut page = frame(&plain, 3, log, 60_000, true);
        let mut ours = ours();
        let manner = Manner { is_whole: false, piece_max: 50_000, units: 20_000 };
        assert!(read(&mut ours, &page, plain.len(), manner).unwrap() == plain);
        // Not all of the page was kept, and what is no longer there is not made up.
        assert!(ours.held_bytes() < 1_000_000, "{} bytes", ours.held_bytes());
        if log > 17 {
            // Now it is said to need less.
            page[5] = 7 << 3;
            let error = read(&mut ours, &page, plain.len(), manner).unwrap_err();
            assert!(error.message().contains("beyond its window"), "{error}");
        }
    }
}

/// Which frames are decoded here: those that can refer far back, whatever their windows are said to be.
#[test]
fn frames_of_large_windows_are_ours() {
    let run = zstd_bits::run(0);
    for (runs, window_log, is_whole, is_ours) in [
        (16, 27, true, false),
        (16, 27, false, false),
        (17, 10, true, true),
        (17, 27, true, true),
        (17, 27, false, true),
        (17, 21, false, false),
    ] {
        let window_log = window_log.max(17);
        let page = [zstd_bits::frame(window_log), run.repeat(runs), zstd_bits::END.to_vec()].concat();
        let mut it = Zstd::new(1 << 27).unwrap();
        let manner = Manner { is_whole, ..AT_ONCE };
        read(&mut it, &page, runs * zstd_bits::BLOCK_BYTES, manner).unwrap();
        // What it has is enough for another such page.
        let held = it.held_bytes();
        read(&mut it, &page, runs * zstd_bits::BLOCK_BYTES, manner).unwrap();
        assert_eq!(it.held_bytes(), held);
        assert_eq!(
            it.frame.is_some(),
            is_ours,
            "{runs} blocks in a window of 2^{window_log}, whole: {is_whole}"
        );
    }
}

/// No slice depends on what the frame has in it, nor on how much of it is there.
#[test]
fn slices_are_bounded() {
    let mut random = Random::new(113);
    let mut ours = ours();
    let distances: Vec<u64> = (0..zstd_bits::matches_max(20)).map(|_| random.next()).collect();
    let far = [zstd_bits::run(0).repeat(17), zstd_bits::matches(20, &distances)].concat();
    let pages = [
        (
            [zstd_bits::frame(22), far, zstd_bits::END.to_vec()].concat(),
            17 * zstd_bits::BLOCK_BYTES + 3 * distances.len(),
        ),
        (
            [
                zstd_bits::frame(17),
                zstd_bits::raw(&[0; 16]),
                zstd_bits::tables(1).repeat(500),
                zstd_bits::END.to_vec(),
            ]
            .concat(),
            16 + 500 * 4,
        ),
        ([zstd_bits::frame(17), zstd_bits::raw(b"").repeat(100_000), zstd_bits::END.to_vec()].concat(), 0),
    ];
    for (page, length) in pages {
        for units in [0, 1, 10_000, Budget::DEFAULT_UNITS] {
            for is_whole in [true, false] {
                ours.start(page.len(), length, is_whole).unwrap();
                let (mut output, mut consumed, mut produced, mut most) = (vec![0; length], 0, 0, 0);
                loop {
                    let from = if is_whole { 0 } else { produced };
                    let mut budget = Budget::new(units);
                    let progress = ours
                        .step(&page[consumed..], true, &mut output[from..], produced - from, &mut budget)
                        .unwrap();
                    (consumed, produced) = (consumed + progress.consumed, produced + progress.produced);
                    most = most.max(budget.spent());
                    if progress.status == Status::End {
                        break;
                    }
                }
                assert!(most <= units + SLICE_OURS_MAX, "{most} units with {units}");
            }
        }
    }
}

/// The smallest slice, and what may follow before it is noticed: a block that begins in memory that was never used, its
/// literals likewise, a tree, tables.
const SLICE_OURS_MAX: u64 = 75_000;
