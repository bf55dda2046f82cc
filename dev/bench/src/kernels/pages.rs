//! Compressed pages. Runs of Snappy, LZ4 and Deflate are within our codecs here, which do with care what the kernel leaves to them.
#![expect(clippy::cast_possible_truncation, reason = "lengths here are small")]

use std::hint::black_box;

use marquetry_base::{Budget, Codec, Codecs, Compressor, Status};
use marquetry_codecs::StandardCodecs;
use marquetry_kernels::lz::{Output, lzo};

use super::{Case, Random, Work};

const ELEMENTS: &str =
    "an element's length, which the next one's place waits for, and branches that are mispredicted";
const SYMBOLS: &str =
    "a symbol's length, which the next one's place waits for: a look-up, a shift, an addition";
const SEARCH: &str = "a look-up for each position, and branches that are mispredicted";

pub(super) fn add(cases: &mut Vec<Case>) {
    for (kernel, codec, bound) in [
        ("lz::snappy::run", Codec::Snappy, ELEMENTS),
        ("lz::lz4::run", Codec::Lz4Raw, ELEMENTS),
        ("lz::inflate::run", Codec::Gzip, SYMBOLS),
    ] {
        let run = Case::new(kernel, format!("words, a page of {}", codec.name()), bound, move |bytes| {
            let page = text(bytes / 2);
            let Some(packed) = usual(codec).and_then(|mut codec| pack(codec.as_mut(), &page)) else {
                return Work::new(0, (0, 0), || false);
            };
            let (read, mut out) = (packed.len(), vec![0; page.len()]);
            let Ok(mut codec) = StandardCodecs::default().decompressor(codec) else {
                return Work::new(0, (0, 0), || false);
            };
            Work::new(page.len(), (read, page.len()), move || {
                let mut budget = Budget::unlimited();
                let done = codec
                    .start(packed.len(), out.len(), true)
                    .and_then(|()| codec.step(black_box(&packed), true, &mut out, 0, &mut budget));
                done.is_ok_and(|done| done.status == Status::End && done.produced == out.len())
            })
        });
        cases.push(run.of_one_form());
    }
    let run = Case::new("lz::lzo::run", "runs of 4 to 18 bytes, matches of 3 to 8", ELEMENTS, |bytes| {
        let (packed, length) = lzo_elements(bytes / 2);
        let mut out = vec![0; length + 128];
        Work::new(length, (packed.len(), length), move || {
            let to = Output { output: &mut out, start: 0, at: 0, until: usize::MAX };
            let run = lzo::run(black_box(&packed), to, &mut 0);
            // All but the last elements, which are not easy.
            run.produced + 200 > length
        })
    });
    cases.push(run.of_one_form());
    type Make = fn() -> Option<Box<dyn Compressor>>;
    let compressors: [(&str, Make); 3] = [
        ("lz::snappy::pack", || usual(Codec::Snappy)),
        ("lz::snappy::pack_long", || StandardCodecs::default().other_compressor(Codec::Snappy).ok()?),
        ("lz::lz4::pack", || usual(Codec::Lz4Raw)),
    ];
    for (kernel, make) in compressors {
        for (shape, page_of) in
            [("words", text as fn(usize) -> Vec<u8>), ("small numbers of 4 bytes", numbers)]
        {
            let pack_page = Case::new(kernel, shape, SEARCH, move |bytes| {
                let page = page_of(bytes / 2);
                let written =
                    make().and_then(|mut codec| pack(codec.as_mut(), &page)).map(|packed| packed.len());
                let (Some(written), Some(mut codec)) = (written, make()) else {
                    return Work::new(0, (0, 0), || false);
                };
                let mut out = vec![0; codec.bound(page.len())];
                Work::new(page.len(), (page.len(), written), move || {
                    pack_into(codec.as_mut(), black_box(&page), &mut out) == Some(written)
                })
            });
            cases.push(pack_page.of_one_form());
        }
    }
}

fn usual(codec: Codec) -> Option<Box<dyn Compressor>> {
    StandardCodecs::default().compressor(codec, None).ok()
}

fn pack(codec: &mut dyn Compressor, page: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![0; codec.bound(page.len())];
    let produced = pack_into(codec, page, &mut out)?;
    out.truncate(produced);
    Some(out)
}

fn pack_into(codec: &mut dyn Compressor, page: &[u8], out: &mut [u8]) -> Option<usize> {
    codec.start(page.len()).ok()?;
    let done = codec.step(page, true, out, &mut Budget::unlimited()).ok()?;
    (done.status == Status::End).then_some(done.produced)
}

/// Words of a vocabulary of a thousand, the first of them the most frequent.
fn text(length: usize) -> Vec<u8> {
    let mut random = Random(61);
    let words: Vec<Vec<u8>> = (0..1000)
        .map(|_| (0..3 + random.below(7)).map(|_| b'a' + random.below(26) as u8).chain([b' ']).collect())
        .collect();
    let mut text = Vec::with_capacity(length + 16);
    while text.len() < length {
        let most = 1 + random.below(words.len() as u64);
        text.extend_from_slice(&words[random.below(most) as usize]);
    }
    text.truncate(length);
    text
}

/// Numbers below 5000, of four bytes each.
fn numbers(length: usize) -> Vec<u8> {
    let mut random = Random(62);
    (0..length / 4).flat_map(|_| (random.below(5000) as u32).to_le_bytes()).collect()
}

/// LZO1X's instructions by turns: a run of literals, and a match of 3 to 8 bytes (`M2`: up to 2 KiB back) that no literals follow. And
/// how many bytes they are.
fn lzo_elements(length: usize) -> (Vec<u8>, usize) {
    let mut random = Random(63);
    let (mut packed, mut made) = (Vec::new(), 0);
    while made < length as u64 {
        let code = 1 + random.below(15);
        packed.push(code as u8);
        packed.extend_from_slice(&random.bytes(code as usize + 3));
        made += code + 3;
        let (bytes, distance) = (3 + random.below(6), 1 + random.below(made.min(2048)));
        packed.push((((bytes - 1) << 5) | (((distance - 1) % 8) << 2)) as u8);
        packed.push(((distance - 1) / 8) as u8);
        made += bytes;
    }
    (packed, made as usize)
}
