//! Pages of every encoding, at its extremes.

use marquetry_conformance::craft::{self, Levels, Page, Struct, V, prefixed, varint, zigzag};

use super::{Leaf, PAGE_BYTES, Shape, some_bytes};
use crate::choices::Choices;
use crate::compress::{CODECS, compress};
use crate::encode::{ALP, BYTE_STREAM_SPLIT, Physical, Style, encode, value};

/// Values of a page whose values take no bytes, at the most: as many as a few steps read.
const VALUES_MAX: usize = 3_000_000;

/// Levels that are written one by one, at the most.
const LEVELS_MAX: usize = 100_000;

/// The pages of a chunk: a dictionary, if there is one, and one of data; their codec; and the entries of that page.
pub(super) fn pages(leaf: &Leaf, choices: &mut Choices<'_>) -> (Vec<Page>, i32, usize) {
    let (number, codec) = choices.pick(&CODECS);
    let how = choices.byte();
    let entries = choices.pick(&[
        1_000,
        1,
        0,
        7,
        8,
        9,
        64,
        127,
        128,
        129,
        1_023,
        1_025,
        8_191,
        8_192,
        8_193,
        65_537,
        1_000_000,
        i32::MAX as usize,
    ]);
    let encoding = match choices.once_in(3) {
        true => craft::RLE_DICTIONARY,
        false => choices.pick(leaf.physical.encodings()),
    };
    let (dictionary, wanted) = match encoding {
        craft::RLE_DICTIONARY => dictionary(leaf.physical, choices),
        _ => (None, usize::MAX),
    };
    let levels = EntryLevels::choose(leaf, entries, choices);
    let there = levels.there();
    let (values, made) = match encoding {
        craft::RLE_DICTIONARY => indices(there, wanted, choices),
        _ => body(leaf.physical, encoding, there, choices),
    };
    // Where the values would be too many, there are fewer.
    let levels = if made < there { levels.cut(made) } else { levels };
    let mut pages: Vec<Page> = dictionary.into_iter().collect();
    pages.push(levels.page(encoding, &values, choices));
    for page in &mut pages {
        if let Some(codec) = codec {
            *page = compressed(page, |plain| compress(codec, plain, how));
        }
        if choices.once_in(4) {
            *page = page.clone().with_crc();
        }
    }
    (pages, number, levels.entries)
}

/// A page as it is compressed by this; the levels of V2 are not.
pub(super) fn compressed(page: &Page, compress: impl Fn(&[u8]) -> Vec<u8>) -> Page {
    let bytes_of = |field: i16| match page.header.0.get(&8) {
        Some(V::Struct(own)) => match own.0.get(&field) {
            Some(V::I32(bytes)) => *bytes as usize,
            _ => 0,
        },
        _ => 0,
    };
    let levels = bytes_of(5) + bytes_of(6);
    let mut page = page.clone();
    let values = page.body.split_off(levels);
    page.body.extend(compress(&values));
    let length = page.body.len() as i32;
    page.with(3, V::I32(length))
}

/// The levels of a page.
#[derive(Debug, Clone)]
struct EntryLevels {
    leaf: Leaf,
    entries: usize,
    /// Which entries have a value: all, none, every other one.
    mode: u8,
    /// How runs are cut.
    runs: u8,
}

impl EntryLevels {
    fn choose(leaf: &Leaf, entries: usize, choices: &mut Choices<'_>) -> EntryLevels {
        let mode = if leaf.shape == Shape::Required { 0 } else { choices.byte() % 3 };
        let runs = choices.byte() % 4;
        let most = match leaf.shape {
            _ if mode == 2 || runs > 0 || leaf.levels().1 > 1 => LEVELS_MAX,
            // Rows take a run each.
            Shape::Lists(_, row) => row.saturating_mul(LEVELS_MAX),
            _ => entries,
        };
        EntryLevels { leaf: leaf.clone(), entries: entries.min(most), mode, runs }
    }

    /// With so many values.
    fn cut(self, there: usize) -> EntryLevels {
        let entries = if self.mode == 2 { there * 2 } else { there };
        EntryLevels { entries: entries.min(self.entries), ..self }
    }

    fn there(&self) -> usize {
        match self.mode {
            0 => self.entries,
            1 => 0,
            _ => self.entries.div_ceil(2),
        }
    }

    fn page(&self, encoding: i32, values: &[u8], choices: &mut Choices<'_>) -> Page {
        let (definition_max, repetition_max) = self.leaf.levels();
        let row = match self.leaf.shape {
            Shape::Lists(_, row) => row,
            _ => 1,
        };
        let nothing = definition_max.saturating_sub(1);
        let definition = self.write(definition_max, |at| match self.mode {
            0 => definition_max,
            1 => nothing,
            _ => definition_max - (at % 2) as u32,
        });
        let repetition = self.write(repetition_max, |at| {
            // The innermost list goes on, or the outermost begins, or any between them.
            if at % row == 0 { 0 } else { 1 + (at % repetition_max as usize) as u32 }
        });
        let entries = self.entries as i32;
        let nulls = (self.entries - self.there()) as i32;
        let mut page = match choices.once_in(2) {
            true => Page::data_v2(entries, nulls, encoding, &[&repetition[..], &definition].concat(), values)
                .with_own(3, V::I32(self.leaf.rows(self.entries) as i32))
                .with_own(5, V::I32(definition.len() as i32))
                .with_own(6, V::I32(repetition.len() as i32)),
            false => {
                let length = |levels: &[u8], most: u32| if most == 0 { Vec::new() } else { prefixed(levels) };
                let levels =
                    [length(&repetition, repetition_max), length(&definition, definition_max)].concat();
                Page::data(entries, encoding, [&levels, values].concat())
            }
        };
        if choices.once_in(8) {
            let bound = V::Binary(some_bytes(choices));
            let bounds = Struct::of([(5, bound.clone()), (6, bound)]);
            let id = if page.header.0.contains_key(&8) { 8 } else { 5 };
            page = page.with_own(id, V::Struct(bounds));
        }
        page
    }

    /// Levels in runs of one kind: one long one, each of one entry, of eight, all packed.
    fn write(&self, most: u32, level: impl Fn(usize) -> u32) -> Vec<u8> {
        let width = u32::BITS - most.leading_zeros();
        if width == 0 {
            return Vec::new();
        }
        let entries = self.entries;
        if self.runs == 0 {
            // Runs as long as they are.
            let mut out = Vec::new();
            let mut at = 0;
            while at < entries {
                let first = level(at);
                // Beside the first of a row, and the one after it, a long row is one run.
                let is_steady = entries > LEVELS_MAX && at > 1 && self.mode != 2;
                let row = match self.leaf.shape {
                    Shape::Lists(_, row) if most == self.leaf.levels().1 => row,
                    _ => usize::MAX,
                };
                let end = match is_steady {
                    true => (at - at % row).saturating_add(row).min(entries),
                    false => at + 1,
                };
                out.extend(craft::repeated_run((end - at) as u64, first, width));
                at = end;
            }
            return out;
        }
        let levels: Vec<u32> = (0..entries).map(level).collect();
        match self.runs {
            1 => levels.iter().flat_map(|&level| craft::repeated_run(1, level, width)).collect(),
            2 => levels.chunks(8).flat_map(|eight| craft::packed_run(eight, width)).collect(),
            _ => Levels { width, levels: &levels }.write(),
        }
    }
}

/// Bytes of a string.
fn string_bytes(choices: &mut Choices<'_>) -> usize {
    choices.pick(&[8, 0, 1, 12, 13, 64, 1_000, 65_535, 65_536, (1 << 20) + 1, PAGE_BYTES - 4])
}

/// A dictionary, and how many entries it has.
fn dictionary(physical: Physical, choices: &mut Choices<'_>) -> (Option<Page>, usize) {
    let bytes = physical.width().unwrap_or_else(|| 4 + string_bytes(choices));
    let entries =
        choices.pick(&[3, 1, 0, 2, 255, 256, 1_000, 70_000, 300_000]).min(PAGE_BYTES / bytes.max(1)).max(1);
    let mut body = Vec::with_capacity(entries * bytes);
    for number in 0..entries {
        if physical == Physical::Bytes {
            body.extend(((bytes - 4) as u32).to_le_bytes());
        }
        let width = if physical == Physical::Bytes { bytes - 4 } else { bytes };
        body.extend(number.to_le_bytes().iter().cycle().take(width));
    }
    (Some(Page::dictionary(entries as i32, body)), entries)
}

/// Indices of so many values, and how many they are.
fn indices(count: usize, entries: usize, choices: &mut Choices<'_>) -> (Vec<u8>, usize) {
    let least = usize::BITS - entries.saturating_sub(1).leading_zeros();
    let width = least.max(choices.pick(&[0, 1, 8, 17, 32]));
    let last = entries.saturating_sub(1) as u32;
    let mut body = vec![width as u8];
    let few = count.min(LEVELS_MAX);
    let index = |at: usize| if entries == 0 { 0 } else { (at * 7_919 % entries) as u32 };
    match choices.byte() % 5 {
        0 => {
            let count = count.min(VALUES_MAX);
            body.extend(craft::repeated_run(count as u64, last, width));
            return (body, count);
        }
        1 => body.extend(craft::repeated_run(i32::MAX as u64, last, width)),
        2 => (0..few).for_each(|at| body.extend(craft::repeated_run(1, index(at), width))),
        3 => (0..few).step_by(8).for_each(|at| {
            let eight: Vec<u32> = (at..few.min(at + 8)).map(index).collect();
            body.extend(craft::packed_run(&eight, width));
        }),
        _ => body.extend(craft::packed_run(&(0..few).map(index).collect::<Vec<_>>(), width)),
    }
    (body, few)
}

/// Values in an encoding, and how many they are.
fn body(physical: Physical, encoding: i32, count: usize, choices: &mut Choices<'_>) -> (Vec<u8>, usize) {
    let width = physical.width();
    match (encoding, width) {
        (craft::PLAIN, _) if physical == Physical::Boolean => {
            let count = count.min(VALUES_MAX);
            (vec![0xa5; count.div_ceil(8)], count)
        }
        (craft::PLAIN, None) => {
            let bytes = string_bytes(choices);
            let count = count.min(PAGE_BYTES / (4 + bytes)).min(VALUES_MAX / 4);
            let one = [&(bytes as u32).to_le_bytes()[..], &vec![b's'; bytes]].concat();
            (one.repeat(count), count)
        }
        (craft::PLAIN | BYTE_STREAM_SPLIT, Some(width)) => {
            let count = count.min(PAGE_BYTES.checked_div(width).unwrap_or(VALUES_MAX));
            let noise = choices.random().number().to_le_bytes();
            (noise.repeat((count * width).div_ceil(8))[..count * width].to_vec(), count)
        }
        (craft::RLE, _) => {
            let count = count.min(VALUES_MAX);
            (prefixed(&craft::repeated_run(count as u64, 1, 1)), count)
        }
        (craft::DELTA_BINARY_PACKED, _) => {
            let count = count.min(VALUES_MAX);
            let deltas = Deltas::choose(choices);
            deltas.write(choices.number(), count)
        }
        (craft::DELTA_LENGTH_BYTE_ARRAY, _) => {
            let bytes = string_bytes(choices);
            let count = count.min(PAGE_BYTES / bytes.max(1)).min(VALUES_MAX / 4);
            let (lengths, count) =
                Deltas { bits: 0, least: 0, ..Deltas::choose(choices) }.write(bytes as i64, count);
            ([lengths, vec![b'l'; count * bytes]].concat(), count)
        }
        (craft::DELTA_BYTE_ARRAY, _) => delta_strings(width, count, choices),
        (ALP, _) => {
            let count = count.min(2_000);
            let style = Style::choose(choices);
            let random = &mut choices.random();
            let values: Vec<Vec<u8>> = (0..count).map(|at| value(physical, style, at, random)).collect();
            (encode(encoding, physical, &values, choices), count)
        }
        _ => (Vec::new(), 0),
    }
}

/// Strings of a prefix and a suffix: of one length, or each longer than the one before.
fn delta_strings(width: Option<usize>, count: usize, choices: &mut Choices<'_>) -> (Vec<u8>, usize) {
    let deltas = |choices: &mut Choices<'_>, least: i64| Deltas { bits: 0, least, ..Deltas::choose(choices) };
    let is_growing = width.is_none() && choices.once_in(2);
    let bytes = width.unwrap_or_else(|| string_bytes(choices));
    let suffix = bytes.min(choices.pick(&[1, 0, 8, 4_000, usize::MAX]));
    let count = count.min(PAGE_BYTES / suffix.max(1)).min(VALUES_MAX / 16);
    let count = if is_growing { count.min(2_000) } else { count.min((64 << 20) / bytes.max(1)) }.max(1);
    // The first has no prefix, so it is written beside the others, which are a page's second value and on.
    let step = if is_growing { suffix as i64 } else { 0 };
    let first = if is_growing { suffix } else { bytes };
    let prefixes: Vec<i64> =
        (0..count).map(|at| if at == 0 { 0 } else { (first - suffix) as i64 + step * at as i64 }).collect();
    let suffixes: Vec<i64> = (0..count).map(|at| if at == 0 { first } else { suffix } as i64).collect();
    let numbers = |choices: &mut Choices<'_>, numbers: &[i64]| match numbers.len() {
        ..=10_000 => craft::delta(numbers, 128, 4),
        // All but the first alike: the first block of many has the only other difference, so it is as if there were none.
        _ => deltas(choices, 0).write(numbers[1], numbers.len()).0,
    };
    let mut out = numbers(choices, &prefixes);
    out.extend(numbers(choices, &suffixes));
    out.extend(vec![b'd'; first + (count - 1) * suffix]);
    (out, count)
}

/// Blocks of DELTA_BINARY_PACKED.
#[derive(Debug, Clone, Copy)]
struct Deltas {
    block: usize,
    miniblocks: usize,
    bits: usize,
    least: i64,
}

impl Deltas {
    fn choose(choices: &mut Choices<'_>) -> Deltas {
        let block = choices.pick(&[128, 256, 1_024, 65_536, 1 << 20]);
        let miniblocks = choices.pick(&[4, 1, 2, 64, 4_096, 32_768]).min(block / 32);
        Deltas {
            block,
            miniblocks,
            bits: choices.pick(&[0, 1, 7, 8, 31, 32, 33, 63, 64]),
            least: choices.number(),
        }
    }

    /// A first number and blocks of these differences; so many numbers, or as many as a page has room for.
    fn write(self, first: i64, count: usize) -> (Vec<u8>, usize) {
        let mut one = Vec::new();
        zigzag(&mut one, self.least);
        one.extend(vec![self.bits as u8; self.miniblocks]);
        one.extend(vec![0x5a; self.block * self.bits / 8]);
        let blocks = count.saturating_sub(1).div_ceil(self.block).min((PAGE_BYTES / one.len()).max(1));
        let count = count.min(1 + blocks * self.block);
        let mut out = Vec::new();
        [self.block, self.miniblocks, count].iter().for_each(|&number| varint(&mut out, number as u64));
        zigzag(&mut out, first);
        out.extend(one.repeat(blocks));
        (out, count)
    }
}
