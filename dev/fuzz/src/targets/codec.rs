//! Decompressors, split anywhere, beside the one-shot crates; and compressors, whose pages both must read.

use std::io::Read;

use marquetry_base::{
    Budget, Codec, Codecs, Compressor, Decompressor, ErrorKind, Limits, Progress, Result, Status,
};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::hostile::Random;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer};

use crate::canary::{Canary, is_planted};
use crate::choices::Choices;
use crate::compress::{compress, deflate};
use crate::edit::Edit;
use crate::meter::{self, BLOCK_UNITS_MAX, SLICE_UNITS_MAX};

const CODECS: [Codec; 7] =
    [Codec::Snappy, Codec::Lz4Raw, Codec::Gzip, Codec::Zstd, Codec::Brotli, Codec::Lz4, Codec::Lzo];

/// The most that a page here becomes.
const PLAIN_BYTES_MAX: usize = 64 << 10;

/// A page of some codec, whole or damaged.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    let codec = choices.pick(&CODECS);
    let mut split = Split::choose(choices);
    let (page, uncompressed) = match choices.byte() % 8 {
        // As it stands: coverage finds its way from here.
        0 => {
            let uncompressed = choices.below(PLAIN_BYTES_MAX);
            (framed(codec, choices.rest()), uncompressed)
        }
        // A deflate stream changed anywhere, in a member whose checksums are mended.
        1 | 4 if codec == Codec::Gzip => {
            let plain = data_of(choices);
            let mut stream = deflate(&plain, u32::from(choices.byte()) % 10);
            Edit::several(choices, 3).iter().for_each(|edit| edit.apply(&mut stream));
            member(&stream)
        }
        kind => {
            let mut plain = data_of(choices);
            let mut page = compress(codec, &plain, choices.byte());
            if codec == Codec::Zstd && choices.once_in(4) {
                page = deepened(&page, choices.byte(), &mut plain);
                // Not byte by byte.
                split.piece_max = if split.is_whole { split.piece_max } else { split.piece_max.max(5_000) };
            }
            let mut uncompressed = plain.len();
            if kind > 3 {
                Edit::several(choices, 3).iter().for_each(|edit| edit.apply(&mut page));
            }
            if choices.once_in(8) {
                uncompressed = choices.number() as u32 as usize % PLAIN_BYTES_MAX;
            }
            if kind < 4 && uncompressed == plain.len() {
                let output = decompress(codec, &page, uncompressed, split).expect("a whole page");
                assert!(output == plain, "{codec:?}: other bytes than were compressed");
            }
            if kind == 3 && codec != Codec::Lzo && plain.len() <= PLAIN_BYTES_MAX {
                // Pages that are longer than any window, now and then.
                let times = if choices.once_in(4) { 5 } else { 1 };
                round_trip(codec, level_of(codec, choices), &plain.repeat(times), split);
            }
            (page, uncompressed)
        }
    };
    compare(codec, &page, uncompressed, split);
}

/// A frame of ZSTD, whose blocks come after so many bytes that it is not left to the library: then it can refer far back.
fn deepened(frame: &[u8], byte: u8, plain: &mut Vec<u8>) -> Vec<u8> {
    const BLOCK_BYTES: usize = 128 << 10;
    const BLOCKS: usize = 17;
    let descriptor = frame[4];
    let has_window = descriptor & 1 << 5 == 0;
    let content = [usize::from(!has_window), 2, 4, 8][usize::from(descriptor >> 6)];
    let checksum = if descriptor & 1 << 2 == 0 { 0 } else { 4 };
    let blocks = &frame[5 + usize::from(has_window) + content..frame.len() - checksum];
    // A window of 8 MiB, and nothing else that a header can say.
    let mut deep = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3];
    let head = (BLOCK_BYTES << 3 | 1 << 1).to_le_bytes();
    deep.extend([head[0], head[1], head[2], byte].repeat(BLOCKS));
    deep.extend(blocks);
    plain.splice(..0, std::iter::repeat_n(byte, BLOCKS * BLOCK_BYTES));
    deep
}

/// Stands for the other compressor of a codec.
const OTHER: i32 = i32::MIN;

/// A level of the codec that is quick enough.
fn level_of(codec: Codec, choices: &mut Choices<'_>) -> Option<i32> {
    let level = i32::from(choices.byte());
    match codec {
        Codec::Gzip => Some(level % 10),
        Codec::Zstd => Some(level % 14 - 7),
        Codec::Brotli => Some(level % 6),
        Codec::Snappy => (level % 2 == 1).then_some(OTHER),
        _ => None,
    }
}

/// Compresses, in pieces and whole, which must come to the same page; reads that by ours and by theirs.
fn round_trip(codec: Codec, level: Option<i32>, plain: &[u8], split: Split) {
    let codecs = StandardCodecs::default();
    let mut it = match level {
        Some(OTHER) => codecs.other_compressor(codec).expect("memory").expect("there is another one"),
        _ => codecs.compressor(codec, level).expect("a level of the codec"),
    };
    let page = packed(it.as_mut(), plain, split);
    let whole = Split { piece_max: usize::MAX, units_max: u64::MAX - 1, ..split };
    assert!(page == packed(it.as_mut(), plain, whole), "{codec:?} at {level:?}: the split decides the page");
    assert!(page.len() <= it.bound(plain.len()), "{codec:?} at {level:?}: a page beyond its bound");
    let output = decompress(codec, &page, plain.len(), whole).expect("a page of ours");
    assert!(output == plain, "{codec:?} at {level:?}: other bytes than were compressed");
    let theirs = one_shot(codec, &page, plain.len());
    // A block of nothing has a chunk of nothing, as Arrow C++ writes it, where the comparison knows of none.
    let is_laxer = codec == Codec::Lz4 && plain.is_empty();
    assert!(
        is_laxer || theirs.is_some_and(|theirs| theirs == plain),
        "{codec:?} at {level:?}: not for the crate"
    );
}

/// Compresses in pieces of random lengths.
fn packed(it: &mut dyn Compressor, plain: &[u8], split: Split) -> Vec<u8> {
    it.start(plain.len()).expect("a page's length");
    let mut random = Random(split.seed << 1 | 1);
    let is_whole = split.piece_max == usize::MAX;
    let mut page = Vec::new();
    let mut room =
        vec![0xaa; if is_whole { it.bound(plain.len()) } else { 1 + random.index(split.piece_max) }];
    let (mut consumed, mut used, mut seen) = (0, 0, if is_whole { plain.len() } else { 0 });
    loop {
        let units = random.below(split.units_max + 1);
        let mut budget = Budget::new(units);
        let last = seen == plain.len();
        let progress = meter::call("compressor", Budget::DEFAULT_UNITS, &mut budget, |budget| {
            it.step(&plain[consumed..seen], last, &mut room[used..], budget)
        });
        let progress = progress.expect("a good host");
        consumed += progress.consumed;
        used += progress.produced;
        assert!(consumed <= seen && used <= room.len(), "more than there was");
        match progress.status {
            Status::End => {
                assert_eq!(consumed, plain.len());
                page.extend_from_slice(&room[..used]);
                return page;
            }
            Status::NeedInput => {
                assert!(!last && consumed == seen, "more input wanted than there is, or too early");
                seen = (seen + 1 + random.index(split.piece_max)).min(plain.len());
            }
            Status::NeedRoom => {
                assert_eq!(used, room.len(), "room left and more wanted");
                page.extend_from_slice(&room);
                room.resize(1 + random.index(split.piece_max), 0xaa);
                used = 0;
            }
            Status::NeedMemory(bytes) => panic!("a compressor asks for {bytes} bytes"),
            Status::Yield => assert!(budget.spent() > 0, "no progress"),
        }
    }
}

/// Data of all shapes: repeats of any period, near and far, text, and noise between them.
fn data_of(choices: &mut Choices<'_>) -> Vec<u8> {
    let random = &mut choices.random();
    let length = match choices.byte() % 8 {
        0 => 0,
        1 => PLAIN_BYTES_MAX,
        2 => 20_000,
        _ => choices.below(3_000),
    };
    let length = random.index(length + 1);
    let noise_in = choices.pick(&[5, 2, 100]);
    let mut data = choices.bytes(30).to_vec();
    while data.len() < length {
        let most = if random.below(4) == 0 { 400 } else { 30 };
        let take = 1 + random.index(most);
        match random.below(noise_in) {
            0 => data.extend((0..take).map(|_| random.byte())),
            1 => data.extend(vec![random.byte(); take]),
            _ if data.is_empty() => data.push(7),
            choice => {
                let reach = if choice == 2 { 20 } else { 40_000 };
                let back = 1 + random.index(data.len().min(reach));
                (0..take).for_each(|_| data.push(data[data.len() - back]));
            }
        }
    }
    data
}

/// Arbitrary bytes, framed so that they reach the decoder behind the frame.
fn framed(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    match codec {
        Codec::Gzip => [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255], bytes].concat(),
        _ => bytes.to_vec(),
    }
}

/// A member of a deflate stream, with the checksums of what zlib makes of it.
fn member(stream: &[u8]) -> (Vec<u8>, usize) {
    let mut plain = Vec::new();
    let _ = flate2::read::DeflateDecoder::new(stream).take(PLAIN_BYTES_MAX as u64).read_to_end(&mut plain);
    let mut page = framed(Codec::Gzip, stream);
    page.extend(crc32fast::hash(&plain).to_le_bytes());
    page.extend((plain.len() as u32).to_le_bytes());
    (page, plain.len())
}

/// How a page is cut, and what a step may do.
#[derive(Debug, Clone, Copy)]
struct Split {
    seed: u64,
    piece_max: usize,
    units_max: u64,
    /// The host holds the whole page, and says so.
    is_whole: bool,
}

impl Split {
    fn choose(choices: &mut Choices<'_>) -> Split {
        Split {
            seed: choices.word(2),
            piece_max: choices.pick(&[40_000, 1, 2, 5, 60, 700]),
            units_max: choices.pick(&[2_000, 1, 200, 30_000, 250_000]),
            is_whole: choices.once_in(2),
        }
    }
}

/// Bytes that the library makes of ZSTD frames as a stream: at once it takes and refuses a little else, such as raw blocks
/// that are larger than their window.
fn zstd(page: &[u8], output: &mut [u8]) -> Option<usize> {
    let mut context = DCtx::create();
    context.set_parameter(DParameter::StableOutBuffer(true)).ok()?;
    let (mut from, mut to) = (InBuffer::around(page), OutBuffer::around(output));
    while from.pos() < page.len() {
        let before = (from.pos(), to.pos());
        let left = context.decompress_stream(&mut to, &mut from).ok()?;
        let is_end = from.pos() == page.len() && left == 0;
        if before == (from.pos(), to.pos()) || (from.pos() == page.len() && !is_end) {
            return None;
        }
    }
    Some(to.pos())
}

/// What the crates that decode at once make of a page: the bytes; `None` where they refuse it.
fn one_shot(codec: Codec, page: &[u8], uncompressed: usize) -> Option<Vec<u8>> {
    let mut output = vec![0; uncompressed];
    let length = match codec {
        Codec::Snappy => {
            if snap::raw::decompress_len(page).ok()? != uncompressed {
                return None;
            }
            snap::raw::Decoder::new().decompress(page, &mut output).ok()?
        }
        Codec::Lz4Raw => lz4_flex::block::decompress_into(page, &mut output).ok()?,
        Codec::Gzip => {
            // One byte more than announced would be too many.
            let mut decoder = flate2::read::MultiGzDecoder::new(page).take(uncompressed as u64 + 1);
            output.clear();
            decoder.read_to_end(&mut output).ok()?
        }
        Codec::Zstd => zstd(page, &mut output)?,
        Codec::Brotli => {
            let mut decoder = brotli::Decompressor::new(page, 4096).take(uncompressed as u64 + 1);
            output.clear();
            decoder.read_to_end(&mut output).ok()?
        }
        Codec::Zlib => {
            let mut decoder = flate2::read::ZlibDecoder::new(page).take(uncompressed as u64 + 1);
            output.clear();
            decoder.read_to_end(&mut output).ok()?
        }
        Codec::Lz4 | Codec::Lzo => {
            let mut at = 0;
            output.clear();
            while at < page.len() {
                let size = |at: usize| Some(u32::from_be_bytes(*page.get(at..)?.first_chunk()?) as usize);
                let mut owed = size(at)?;
                at += 4;
                while owed > 0 {
                    let chunk = page.get(at + 4..)?.get(..size(at)?)?;
                    at += 4 + chunk.len();
                    // A block of ours is of 128 KiB.
                    let mut room = vec![0; owed.min(2 * PLAIN_BYTES_MAX)];
                    let length = if codec == Codec::Lz4 {
                        lz4_flex::block::decompress_into(chunk, &mut room).ok()?
                    } else {
                        lzo::decompress_into(chunk, &mut room).ok()?
                    };
                    if length == 0 {
                        return None;
                    }
                    output.extend(&room[..length]);
                    owed = owed.checked_sub(length)?;
                }
            }
            output.len()
        }
    };
    (length == uncompressed).then(|| {
        output.truncate(length);
        output
    })
}

/// Ours and theirs: the same bytes, or both refuse, or ours is stricter as is documented.
fn compare(codec: Codec, page: &[u8], uncompressed: usize, split: Split) {
    let ours = decompress(codec, page, uncompressed, split);
    let again = decompress(codec, page, uncompressed, Split { seed: 1, piece_max: 1 << 20, ..split });
    match (&ours, &again) {
        (Ok(ours), Ok(again)) => assert!(ours == again, "{codec:?}: the split decides the bytes"),
        (Err(ours), Err(again)) => assert_eq!(ours.kind(), again.kind(), "{ours:?} and {again:?}"),
        _ => panic!("{codec:?}: the split decides whether it fails: {:?} and {:?}", ours.err(), again.err()),
    }
    let theirs = one_shot(codec, page, uncompressed);
    match (ours, theirs) {
        (Ok(ours), Some(theirs)) => assert!(ours == theirs, "{codec:?}: other bytes than the crate has"),
        (Err(error), None) => {
            assert!(
                matches!(
                    error.kind(),
                    ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::LimitExceeded
                ),
                "{error:?}"
            );
        }
        (Ok(_), None) => {
            assert!(is_laxer(codec, page), "{codec:?}: the crate refuses a page of {} bytes", page.len());
        }
        (Err(error), Some(_)) => {
            assert!(is_stricter(codec, page, error.message()), "{codec:?}: {error:?}: the crate takes it");
        }
    }
}

/// Where the crates refuse what is right.
fn is_laxer(codec: Codec, page: &[u8]) -> bool {
    match codec {
        // Nothing at all stands for nothing.
        _ if page.is_empty() => true,
        // Frames and bare blocks are read too, of which the comparison knows nothing; so are LZO's other headers.
        Codec::Lz4 | Codec::Lzo => true,
        _ => false,
    }
}

/// Where ours refuses what the crates take, each with its reason.
fn is_stricter(codec: Codec, page: &[u8], why: &str) -> bool {
    match codec {
        // What follows the last member is no member: `flate2` stops there, and gzip's own program only warns.
        Codec::Gzip => why.contains("starts with the bytes") || why.contains("cut short"),
        // The crates' decoders stop at the stream's end, or where they have all bytes that are wanted.
        Codec::Brotli => why.contains("goes on after its stream"),
        // A window that is larger than the limit, or smaller than its frame needs; a stream of literals whose end the library does not
        // look at on some processors.
        Codec::Zstd => ["window_bytes", "beyond its window", "do not end where their stream does"]
            .iter()
            .any(|words| why.contains(words)),
        // Told by the first byte, and then read as what it is.
        Codec::Lz4 | Codec::Lzo => true,
        _ => page.is_empty(),
    }
}

/// Decompresses in pieces of random lengths.
fn decompress(codec: Codec, page: &[u8], uncompressed: usize, split: Split) -> Result<Vec<u8>> {
    let limits = Limits { window_bytes: 8 << 20, ..Limits::DEFAULT };
    let mut it = Planted { it: StandardCodecs::new(limits).decompressor(codec)?, steps: 0 };
    it.start(page.len(), uncompressed, split.is_whole)?;
    let mut random = Random(split.seed << 1 | 1);
    let mut output = vec![0xaa; uncompressed];
    let history = it.history_bytes();
    let (mut consumed, mut seen, mut produced) = (0, 0, 0);
    let mut room_end =
        if split.is_whole { uncompressed } else { random.index(split.piece_max).min(uncompressed) };
    let mut idle = 0;
    loop {
        let units = random.below(split.units_max + 1);
        let mut budget = Budget::new(units);
        let last = seen == page.len();
        let kept = if split.is_whole { produced } else { history.min(produced) };
        let room = &mut output[produced - kept..room_end];
        let at_once = if codec == Codec::Zstd { BLOCK_UNITS_MAX } else { 0 };
        let progress = meter::call(codec.name(), at_once, &mut budget, |budget| {
            it.step(&page[consumed..seen], last, room, kept, budget)
        })?;
        consumed += progress.consumed;
        produced += progress.produced;
        assert!(consumed <= seen && produced <= room_end, "{codec:?}: more than there was");
        idle = if progress.consumed + progress.produced > 0 { 0 } else { idle + 1 };
        assert!(idle < 1_000, "{codec:?}: no progress, with {:?}", progress.status);
        match progress.status {
            Status::End => {
                assert_eq!((consumed, produced), (page.len(), uncompressed), "{codec:?}");
                return Ok(output);
            }
            Status::NeedInput => {
                assert!(!last, "{codec:?}: input wanted after the last");
                assert_eq!(consumed, seen, "{codec:?}: input left and more wanted");
                seen = (seen + 1 + random.index(split.piece_max)).min(page.len());
            }
            Status::NeedRoom => {
                assert_eq!(produced, room_end, "{codec:?}: room left and more wanted");
                assert!(room_end < uncompressed, "{codec:?}: room wanted beyond the page");
                room_end = (room_end + 1 + random.index(split.piece_max)).min(uncompressed);
            }
            Status::NeedMemory(_) | Status::Yield => {}
        }
    }
}

/// A decompressor with a planted fault, where one is let in.
struct Planted {
    it: Box<dyn Decompressor>,
    steps: u64,
}

impl Decompressor for Planted {
    fn start(&mut self, compressed: usize, uncompressed: usize, whole: bool) -> Result<()> {
        self.it.start(compressed, uncompressed, whole)
    }

    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        history: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        let progress = self.it.step(input, last, output, history, budget)?;
        self.steps += 1;
        if is_planted(Canary::Bytes) && progress.produced == 3 && history > 100 {
            output[history] ^= 1;
        }
        if is_planted(Canary::Units) && self.steps.is_multiple_of(50) {
            budget.charge_units(Budget::DEFAULT_UNITS + SLICE_UNITS_MAX);
        }
        Ok(progress)
    }

    fn history_bytes(&self) -> usize {
        self.it.history_bytes()
    }

    fn held_bytes(&self) -> usize {
        self.it.held_bytes()
    }
}
