//! The header of a compressed metablock, read resumably. RFC 7932, sections 6, 7 and 9.2.

use marquetry_kernels::lz::Bits;

use super::codes::{CodeReader, Codes, number};
use super::tables::BLOCK_COUNTS;
use crate::block::{Fault, Room};

/// The contents of a metablock's header.
#[derive(Debug, Default)]
pub(crate) struct Header {
    /// Indexed by [`LITERALS`], [`COMMANDS`] and [`DISTANCES`].
    pub(crate) blocks: [Blocks; CATEGORIES],
    /// How distances are written.
    pub(crate) postfix_bits: u32,
    pub(crate) direct: usize,
    /// The context mode of each type of literal blocks.
    pub(crate) modes: Vec<u8>,
    /// The number of the prefix code of each context, for literals (64 contexts a type of blocks) and distances (4).
    pub(crate) maps: [Vec<u8>; 2],
    /// The types of literal blocks that have one prefix code in all contexts.
    pub(crate) plain: Vec<bool>,
    /// Where the prefix code of each context of literals starts.
    pub(crate) literal_starts: Vec<u32>,
    /// The number of prefix codes of each category.
    trees: [usize; CATEGORIES],
    reader: CodeReader,
    map_code: Codes,
    /// The inverse move-to-front's list.
    front: Vec<u8>,
}

/// Categories of blocks.
pub(crate) const LITERALS: usize = 0;
pub(crate) const COMMANDS: usize = 1;
pub(crate) const DISTANCES: usize = 2;
const CATEGORIES: usize = 3;

/// Maps of contexts.
pub(crate) const LITERAL_MAP: usize = 0;
pub(crate) const DISTANCE_MAP: usize = 1;

/// Contexts of a type of blocks, by map.
pub(crate) const CONTEXTS: [usize; 2] = [64, 4];

/// Blocks of one category, and their prefix codes.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    types: usize,
    /// The types of the current block and of the previous one.
    pub(crate) current: u8,
    before: u8,
    /// How much is left of the current block.
    pub(crate) left: usize,
    /// The prefix codes of types and of counts.
    types_code: Codes,
    counts_code: Codes,
    /// The prefix codes of the blocks' contents.
    pub(crate) codes: Codes,
}

/// What comes next in the header.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    // The number of block types of a category, and the codes that describe blocks.
    Types {
        category: usize,
    },
    TypesCode {
        category: usize,
    },
    CountsCode {
        category: usize,
    },
    FirstCount {
        category: usize,
    },
    /// How distances are written.
    Distances,
    Modes,
    /// The number of prefix codes in a map, and how its runs of zeros are written.
    Trees {
        map: usize,
    },
    Runs {
        map: usize,
    },
    MapCode {
        map: usize,
        runs: usize,
    },
    Entries {
        map: usize,
        runs: usize,
    },
    /// Whether the map was moved to front; undoing it.
    Flag {
        map: usize,
    },
    Front {
        map: usize,
        at: usize,
    },
    Codes {
        category: usize,
        read: usize,
    },
}

/// The result of reading part of a header.
enum Part {
    Next(Expect),
    Short,
    Whole,
}

/// Symbols of literals and of commands; those of distances that are not computed.
const LITERAL_SYMBOLS: usize = 256;
const COMMAND_SYMBOLS: usize = 704;
pub(crate) const DISTANCE_SYMBOLS: usize = 16;

/// Entries of a map that are moved to the front at a time, and the cost of that, in elements.
const FRONT_ENTRIES: usize = 128;
const FRONT_ELEMENTS: usize = 256;

impl Header {
    /// Bytes of memory of its tables.
    pub(crate) fn held_bytes(&self) -> usize {
        let codes =
            self.blocks.iter().flat_map(|blocks| [&blocks.types_code, &blocks.counts_code, &blocks.codes]);
        let lists = [&self.modes, &self.maps[0], &self.maps[1], &self.front].map(Vec::capacity);
        codes.chain([&self.map_code]).map(Codes::held_bytes).sum::<usize>()
            + lists.iter().sum::<usize>()
            + self.plain.capacity()
            + self.literal_starts.capacity() * size_of::<u32>()
    }

    /// Where a header begins.
    pub(crate) fn begin(&mut self) -> Expect {
        self.reader.reset();
        Expect::Types { category: LITERALS }
    }

    /// Continues to read. Returns what comes next if something stops it; `None` once the header is complete.
    pub(crate) fn read(
        &mut self,
        mut expect: Expect,
        bits: &mut Bits,
        mut fill: impl FnMut(&mut Bits),
        room: &mut Room<'_>,
    ) -> Result<Option<Expect>, Fault> {
        while !room.is_tired() {
            fill(bits);
            match self.part(expect, bits, &mut fill, room)? {
                Part::Next(next) => expect = next,
                Part::Short => break,
                Part::Whole => return Ok(None),
            }
        }
        Ok(Some(expect))
    }

    fn part(
        &mut self,
        expect: Expect,
        bits: &mut Bits,
        fill: impl FnMut(&mut Bits),
        room: &mut Room<'_>,
    ) -> Result<Part, Fault> {
        room.elements += 1;
        let mut ahead = *bits;
        let next = match expect {
            Expect::Types { category } => {
                let Some(types) = count(&mut ahead) else { return Ok(Part::Short) };
                self.blocks[category].begin(types);
                if types > 1 { Expect::TypesCode { category } } else { after_types(category) }
            }
            Expect::TypesCode { category } => {
                let Blocks { types, types_code, .. } = &mut self.blocks[category];
                if !self.reader.read(*types + 2, bits, fill, types_code, &mut room.elements)? {
                    return Ok(Part::Short);
                }
                return Ok(Part::Next(Expect::CountsCode { category }));
            }
            Expect::CountsCode { category } => {
                let code = &mut self.blocks[category].counts_code;
                if !self.reader.read(BLOCK_COUNTS.len(), bits, fill, code, &mut room.elements)? {
                    return Ok(Part::Short);
                }
                return Ok(Part::Next(Expect::FirstCount { category }));
            }
            Expect::FirstCount { category } => {
                let blocks = &mut self.blocks[category];
                let Some(left) = blocks.count(&mut ahead) else { return Ok(Part::Short) };
                blocks.left = left;
                after_types(category)
            }
            Expect::Distances => {
                let Some(both) = number(&mut ahead, 6) else { return Ok(Part::Short) };
                self.postfix_bits = u32::try_from(both & 3).unwrap_or(0);
                self.direct = (both >> 2) << self.postfix_bits;
                self.modes.clear();
                Expect::Modes
            }
            Expect::Modes if self.modes.len() < self.blocks[LITERALS].types => {
                let Some(mode) = number(&mut ahead, 2) else { return Ok(Part::Short) };
                self.modes.push(u8::try_from(mode).unwrap_or(0));
                Expect::Modes
            }
            Expect::Modes => Expect::Trees { map: LITERAL_MAP },
            Expect::Trees { map } => {
                let Some(trees) = count(&mut ahead) else { return Ok(Part::Short) };
                self.trees[category(map)] = trees;
                self.maps[map].clear();
                if trees > 1 {
                    Expect::Runs { map }
                } else {
                    let entries = self.entries(map);
                    self.maps[map].resize(entries, 0);
                    room.elements += entries / 64;
                    self.after_map(map)
                }
            }
            Expect::Runs { map } => {
                let runs = match number(&mut ahead, 1) {
                    Some(0) => Some(0),
                    Some(_) => number(&mut ahead, 4).map(|runs| runs + 1),
                    None => None,
                };
                let Some(runs) = runs else { return Ok(Part::Short) };
                self.map_code.clear();
                Expect::MapCode { map, runs }
            }
            Expect::MapCode { map, runs } => {
                let symbols = self.trees[category(map)] + runs;
                if !self.reader.read(symbols, bits, fill, &mut self.map_code, &mut room.elements)? {
                    return Ok(Part::Short);
                }
                return Ok(Part::Next(Expect::Entries { map, runs }));
            }
            Expect::Entries { map, .. } if self.maps[map].len() == self.entries(map) => Expect::Flag { map },
            Expect::Entries { map, runs } => {
                let Some(symbol) = self.map_code.read(0, &mut ahead) else { return Ok(Part::Short) };
                let (value, times) = match symbol {
                    0 => (0, 1),
                    _ if symbol <= runs => {
                        let bits = u32::try_from(symbol).unwrap_or(0);
                        let Some(more) = number(&mut ahead, bits) else { return Ok(Part::Short) };
                        (0, (1 << bits) + more)
                    }
                    _ => (symbol - runs, 1),
                };
                let entries = self.entries(map);
                let length = self.maps[map].len() + times;
                if length > entries {
                    return Err(Fault::Malformed("a map of contexts has too many entries"));
                }
                room.elements += times / 64;
                self.maps[map].resize(length, u8::try_from(value).unwrap_or(0));
                Expect::Entries { map, runs }
            }
            Expect::Flag { map } => match number(&mut ahead, 1) {
                None => return Ok(Part::Short),
                Some(0) => self.after_map(map),
                Some(_) => {
                    self.front.clear();
                    self.front.extend(0..=u8::MAX);
                    Expect::Front { map, at: 0 }
                }
            },
            Expect::Front { map, at } if at < self.maps[map].len() => {
                room.elements += FRONT_ELEMENTS;
                let end = self.maps[map].len().min(at + FRONT_ENTRIES);
                for entry in &mut self.maps[map][at..end] {
                    let place = usize::from(*entry);
                    *entry = self.front[place];
                    self.front.copy_within(..place, 1);
                    self.front[0] = *entry;
                }
                Expect::Front { map, at: end }
            }
            Expect::Front { map, .. } => self.after_map(map),
            Expect::Codes { category, read } if read == self.trees[category] => match category {
                DISTANCES => {
                    let codes = &self.blocks[LITERALS].codes;
                    self.literal_starts.clear();
                    self.literal_starts.extend(self.maps[LITERAL_MAP].iter().map(|&code| codes.place(code)));
                    room.elements += self.literal_starts.len() / 8;
                    return Ok(Part::Whole);
                }
                _ => Expect::Codes { category: category + 1, read: 0 },
            },
            Expect::Codes { category, read } => {
                let symbols = match category {
                    LITERALS => LITERAL_SYMBOLS,
                    COMMANDS => COMMAND_SYMBOLS,
                    _ => DISTANCE_SYMBOLS + self.direct + (48 << self.postfix_bits),
                };
                let codes = &mut self.blocks[category].codes;
                if !self.reader.read(symbols, bits, fill, codes, &mut room.elements)? {
                    return Ok(Part::Short);
                }
                return Ok(Part::Next(Expect::Codes { category, read: read + 1 }));
            }
        };
        *bits = ahead;
        Ok(Part::Next(next))
    }

    /// Entries that a map has.
    fn entries(&self, map: usize) -> usize {
        CONTEXTS[map] * self.blocks[category(map)].types
    }

    fn after_map(&mut self, map: usize) -> Expect {
        if map == LITERAL_MAP {
            let types = self.maps[map].chunks(CONTEXTS[map]);
            self.plain.clear();
            self.plain.extend(types.map(|codes| codes.iter().all(|code| *code == codes[0])));
            return Expect::Trees { map: DISTANCE_MAP };
        }
        self.trees[COMMANDS] = self.blocks[COMMANDS].types;
        Expect::Codes { category: LITERALS, read: 0 }
    }
}

impl Blocks {
    fn begin(&mut self, types: usize) {
        // A single block has no end.
        (self.types, self.current, self.before, self.left) = (types, 0, 1, usize::MAX);
        self.types_code.clear();
        self.counts_code.clear();
        self.codes.clear();
    }

    /// Begins the next block; false if bits are missing.
    pub(crate) fn switch(&mut self, bits: &mut Bits) -> bool {
        let mut ahead = *bits;
        let Some(symbol) = self.types_code.read(0, &mut ahead) else { return false };
        let Some(left) = self.count(&mut ahead) else { return false };
        let next = match symbol {
            0 => usize::from(self.before),
            1 => usize::from(self.current) + 1,
            _ => symbol - 2,
        };
        let next = if next >= self.types { next - self.types } else { next };
        self.before = self.current;
        (self.current, self.left) = (u8::try_from(next).unwrap_or(0), left);
        *bits = ahead;
        true
    }

    /// Reads how much a block has.
    fn count(&self, bits: &mut Bits) -> Option<usize> {
        let symbol = self.counts_code.read(0, bits)?;
        let range = BLOCK_COUNTS.get(symbol)?;
        let more = number(bits, range.bits)?;
        Some(marquetry_base::cast::usize_of_u32(range.base) + more)
    }
}

fn after_types(category: usize) -> Expect {
    match category {
        DISTANCES => Expect::Distances,
        _ => Expect::Types { category: category + 1 },
    }
}

/// The category that a map is for.
fn category(map: usize) -> usize {
    if map == LITERAL_MAP { LITERALS } else { DISTANCES }
}

/// A number of types or codes, from 1 to 256.
fn count(bits: &mut Bits) -> Option<usize> {
    if number(bits, 1)? == 0 {
        return Some(1);
    }
    let width = u32::try_from(number(bits, 3)?).unwrap_or(0);
    Some((1 << width) + number(bits, width)? + 1)
}
