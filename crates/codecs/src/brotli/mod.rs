//! BROTLI: exactly one stream (RFC 7932).
//!
//! The format has no frames and allows only one stream, so anything after it is an error. (The reference library's
//! one-call decoder, which Arrow C++ uses, ignores it.) The extension with windows of up to 1 GiB, which the RFC does
//! not have, is refused.
//!
//! The reference library and its translations decode into a ring buffer until it is full, whatever the output's size;
//! so a hostile stream, whose commands take no bits at all, causes steps of 80 ms. Therefore the stream is decoded
//! here, straight into the page. The dictionary and its transforms are those of `brotli-decompressor`.

mod codes;
mod header;
mod run;
mod tables;

use brotli_decompressor::dictionary::{
    kBrotliDictionary, kBrotliDictionaryOffsetsByLength, kBrotliDictionarySizeBitsByLength,
};
use brotli_decompressor::transform::{TransformDictionaryWord, kNumTransforms};
use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Codec, Price, Result};
use marquetry_kernels::lz::{Bits, copy_back};

use self::codes::number;
use self::header::{COMMANDS, CONTEXTS, DISTANCE_MAP, DISTANCE_SYMBOLS, DISTANCES, Header, LITERAL_MAP};
use self::tables::{COMMANDS_WITH_DISTANCE, LITERAL_CONTEXTS, literal_context};
use crate::block::{Fault, Room, Stop};
use crate::page::{Page, Ratio};
use crate::pieces::Format;

/// Reader of a Brotli stream.
pub(crate) struct Brotli {
    expect: Expect,
    bits: Bits,
    /// The maximum distance of a copy, by the stream's header.
    window: usize,
    /// The current metablock is the last.
    last: bool,
    /// Bytes that the metablock still has to become.
    left: usize,
    header: Header,
    /// The last four distances, the latest first.
    distances: [usize; 4],
    produced: usize,
    /// The last byte produced, and the one before.
    recent: (u8, u8),
    word: Word,
}

/// A word of the dictionary that is being written.
struct Word {
    bytes: [u8; WORD_BYTES_MAX],
    length: usize,
    written: usize,
}

/// The longest word, 24 bytes, with the longest prefix and suffix, and room to copy words in fixed sizes.
const WORD_BYTES_MAX: usize = 64;

#[derive(Debug, Clone, Copy)]
enum Expect {
    Stream,
    Metablock,
    Metadata {
        left: usize,
    },
    Stored,
    Header(header::Expect),
    Command,
    /// The rest of a command: how long its copy is.
    CopyLength {
        literals: usize,
        copy: tables::Range,
        reuse: bool,
    },
    Literals {
        left: usize,
        copy: usize,
        reuse: bool,
    },
    Distance {
        copy: usize,
        reuse: bool,
    },
    Copy {
        distance: usize,
        left: usize,
    },
    Word,
    /// Something that a run left, and why it is bad.
    Bad(&'static str),
    /// The bits after the last metablock.
    Padding,
    End,
}

/// The RFC subtracts this from a window's size, so that decoders may use a ring buffer whose size is a power of two.
const WINDOW_GAP: usize = 16;

/// The initial distances, the latest first.
const FIRST_DISTANCES: [usize; 4] = [4, 11, 15, 16];

/// Minimum and maximum letters of a dictionary word.
const WORD_LETTERS_MIN: usize = 4;
const WORD_LETTERS_MAX: usize = 24;

/// Minimum input that is worth beginning a run of commands for.
const RUN_INPUT_MIN: usize = 2 * INPUT_MIN;
/// Bytes of input that a command and a distance need: two loads of eight for the former, one for the latter, and what
/// these leave behind.
const INPUT_MIN: usize = 32;

/// A copy that needs not be stopped in its middle.
const SHORT_COPY_MAX: usize = 512;

const LITERALS_TOO_MANY: &str = "a metablock has more literals than bytes";
const COPY_TOO_LONG: &str = "a copy extends beyond its metablock";

/// The costs of a metablock's start, of a command, of one that is decoded with care, of a switch of blocks and of a
/// word, in elements.
const METABLOCK_ELEMENTS: usize = 4;
const COMMAND_ELEMENTS: usize = 1;
const CAREFUL_ELEMENTS: usize = 4;
const SWITCH_ELEMENTS: usize = 2;
const WORD_ELEMENTS: usize = 8;

/// A copy from so far back is not in a core's own caches, and costs so many elements more: measured at 60 to 150 ns a copy
/// from 8 MiB back.
const FAR_BYTES: usize = 256 << 10;
const FAR_ELEMENTS: usize = 12;

/// What a copy's distance costs, in elements.
fn distance_elements(distance: usize) -> usize {
    if distance < FAR_BYTES { 0 } else { FAR_ELEMENTS }
}

impl Default for Brotli {
    fn default() -> Brotli {
        Brotli {
            expect: Expect::Stream,
            bits: Bits::default(),
            window: 0,
            last: false,
            left: 0,
            header: Header::default(),
            distances: FIRST_DISTANCES,
            produced: 0,
            recent: (0, 0),
            word: Word { bytes: [0; WORD_BYTES_MAX], length: 0, written: 0 },
        }
    }
}

impl Format for Brotli {
    const CODEC: Codec = Codec::Brotli;

    /// A metablock becomes up to 2^24 bytes. It takes at least 77 bits (RFC 7932, section 9.2): 28 for its length and
    /// kind, 3 for the absence of block types, 8 for distances and context modes, 2 for single trees, and 12, 14 and 10
    /// for prefix codes of one symbol each, which then take no bits.
    const RATIO_MAX: Ratio = Ratio { output: (1 << 24) * 8, input: 77 };

    /// Measured (`examples/prices.rs`): literals and copies at 2 to 9 ns, in blocks of one, four times as long. Where
    /// copies come from is paid by its distance.
    const PRICE: Price = Price { kib: 150, kilovalue: 10 << 10 };

    /// The largest window.
    const HISTORY_BYTES: usize = 1 << 24;

    fn start(&mut self, _: usize, _: usize) {
        let header = core::mem::take(&mut self.header);
        *self = Brotli { header, ..Brotli::default() };
    }

    fn decode(&mut self, input: &[u8], page: &Page, room: &mut Room<'_>) -> Result<(usize, Stop)> {
        let mut at = 0;
        loop {
            // Uncompressed data are not read bit by bit.
            if !matches!(self.expect, Expect::Stored | Expect::Metadata { .. } | Expect::End) {
                at += self.bits.fill(&input[at..]);
            }
            match self.expect {
                Expect::Stream => {
                    let mut ahead = self.bits;
                    match window(&mut ahead) {
                        None => return Ok((at, Stop::Input)),
                        Some(0) => {
                            return Err(Codec::Brotli.unsupported(
                                "BROTLI stream with a large window, which RFC 7932 does not have",
                            ));
                        }
                        Some(bits) => self.window = (1 << bits) - WINDOW_GAP,
                    }
                    self.bits = ahead;
                    self.expect = Expect::Metablock;
                }
                Expect::End => {
                    if self.bits.count > 0 || at < input.len() {
                        return Err(page.corrupt("it goes on after its stream"));
                    }
                    return Ok((at, Stop::Input));
                }
                _ => {
                    let decoded = self.metablock(input, &mut at, room);
                    match decoded.map_err(|fault| fault.into_error(Codec::Brotli))? {
                        None => {}
                        Some(stop) => return Ok((at, stop)),
                    }
                }
            }
        }
    }

    fn history_bytes(&self) -> Option<usize> {
        // Once a page has ended, nothing is known about the next one.
        (self.window > 0 && !self.may_end()).then_some(self.window)
    }

    fn may_end(&self) -> bool {
        matches!(self.expect, Expect::End)
    }

    fn table_bytes(&self) -> usize {
        self.header.held_bytes()
    }
}

impl Brotli {
    /// Decodes on; why it stopped, if it did.
    fn metablock(
        &mut self,
        input: &[u8],
        at: &mut usize,
        room: &mut Room<'_>,
    ) -> Result<Option<Stop>, Fault> {
        match self.expect {
            Expect::Stream | Expect::End => {}
            Expect::Metablock => {
                if room.is_tired() {
                    return Ok(Some(Stop::Until));
                }
                room.elements += METABLOCK_ELEMENTS;
                let mut ahead = self.bits;
                let Some(start) = metablock(&mut ahead)? else { return Ok(Some(Stop::Input)) };
                self.bits = ahead;
                (self.expect, self.last, self.left) = match start {
                    Start::Empty => (Expect::Padding, true, 0),
                    Start::Metadata { length, last } => {
                        self.align()?;
                        (Expect::Metadata { left: length }, last, 0)
                    }
                    Start::Stored { length } => {
                        self.align()?;
                        (Expect::Stored, false, length)
                    }
                    Start::Compressed { length, last } => (Expect::Header(self.header.begin()), last, length),
                };
            }
            Expect::Metadata { left: 0 } => self.end_metablock(),
            Expect::Metadata { left } => {
                let skipped = if self.bits.take(8) {
                    1
                } else {
                    let skipped = left.min(input.len() - *at);
                    *at += skipped;
                    skipped
                };
                if skipped == 0 {
                    return Ok(Some(Stop::Input));
                }
                room.elements += 1;
                self.expect = Expect::Metadata { left: left - skipped };
            }
            Expect::Stored if self.left == 0 => self.end_metablock(),
            Expect::Stored => {
                if let Some(stop) = room.stop() {
                    return Ok(Some(stop));
                }
                let [byte, ..] = self.bits.buffer.to_le_bytes();
                let length = if self.bits.take(8) {
                    room.literal(byte);
                    1
                } else {
                    let length = room.literals(&input[*at..], self.left);
                    *at += length;
                    length
                };
                if length == 0 {
                    return Ok(Some(Stop::Input));
                }
                self.count(length, room);
            }
            Expect::Header(expect) => {
                let mut bits = self.bits;
                let fill = |bits: &mut Bits| *at += bits.fill(&input[*at..]);
                let next = self.header.read(expect, &mut bits, fill, room)?;
                self.bits = bits;
                match next {
                    None => self.expect = Expect::Command,
                    Some(expect) => {
                        self.expect = Expect::Header(expect);
                        return Ok(Some(if room.is_tired() { Stop::Until } else { Stop::Input }));
                    }
                }
            }
            Expect::Padding => {
                self.align()?;
                self.expect = Expect::End;
            }
            _ => return self.commands(input, at, room),
        }
        Ok(None)
    }

    /// Decodes commands until the metablock ends or something stops it.
    fn commands(&mut self, input: &[u8], at: &mut usize, room: &mut Room<'_>) -> Result<Option<Stop>, Fault> {
        let mut is_far = true;
        loop {
            *at += self.bits.fill(&input[*at..]);
            match self.expect {
                Expect::Command if is_far && self.left > 0 && input.len() - *at >= RUN_INPUT_MIN => {
                    // The rest is decoded with care.
                    is_far = false;
                    *at += self.run(&input[*at..], room);
                }
                Expect::Command => {
                    if self.left == 0 {
                        self.end_metablock();
                        return Ok(None);
                    }
                    if room.is_tired() {
                        return Ok(Some(Stop::Until));
                    }
                    let blocks = &mut self.header.blocks[COMMANDS];
                    if blocks.left == 0 {
                        room.elements += SWITCH_ELEMENTS;
                        if !blocks.switch(&mut self.bits) {
                            return Ok(Some(Stop::Input));
                        }
                        *at += self.bits.fill(&input[*at..]);
                    }
                    let mut ahead = self.bits;
                    let Some(symbol) = blocks.codes.read(blocks.current, &mut ahead) else {
                        return Ok(Some(Stop::Input));
                    };
                    let tables::Command { insert, copy } = tables::COMMANDS[symbol];
                    let Some(more) = number(&mut ahead, insert.bits) else { return Ok(Some(Stop::Input)) };
                    self.bits = ahead;
                    is_far = true;
                    blocks.left -= 1;
                    room.elements += CAREFUL_ELEMENTS;
                    let literals = usize_of_u32(insert.base) + more;
                    if literals > self.left {
                        return Err(Fault::Malformed(LITERALS_TOO_MANY));
                    }
                    self.expect =
                        Expect::CopyLength { literals, copy, reuse: symbol < COMMANDS_WITH_DISTANCE };
                }
                Expect::Bad(what) => return Err(Fault::Malformed(what)),
                Expect::CopyLength { literals, copy, reuse } => {
                    let Some(more) = number(&mut self.bits, copy.bits) else { return Ok(Some(Stop::Input)) };
                    let copy = usize_of_u32(copy.base) + more;
                    self.expect = Expect::Literals { left: literals, copy, reuse };
                }
                Expect::Literals { left: 0, copy, reuse } => {
                    self.expect = match self.left {
                        0 => Expect::Command,
                        _ => Expect::Distance { copy, reuse },
                    };
                }
                Expect::Literals { left, copy, reuse } => {
                    let (left, stop) = self.literals(left, input, at, room);
                    self.expect = Expect::Literals { left, copy, reuse };
                    if stop.is_some() {
                        return Ok(stop);
                    }
                }
                Expect::Distance { copy, reuse } => {
                    if !self.distance(copy, reuse, input, at, room)? {
                        return Ok(Some(Stop::Input));
                    }
                }
                Expect::Copy { distance, left } => {
                    if let Some(stop) = room.stop() {
                        return Ok(Some(stop));
                    }
                    let length = if left <= SHORT_COPY_MAX
                        && distance <= self.produced
                        && copy_back(&mut room.output[..room.end], room.at, distance, left)
                    {
                        room.at += left;
                        room.elements += 1;
                        left
                    } else {
                        room.copy(distance, left, self.produced)?
                    };
                    self.count(length, room);
                    self.expect = match left - length {
                        0 => Expect::Command,
                        left => Expect::Copy { distance, left },
                    };
                }
                Expect::Word => {
                    if let Some(stop) = room.stop() {
                        return Ok(Some(stop));
                    }
                    let Word { bytes, length, written } = &mut self.word;
                    let taken = room.literals(&bytes[*written..*length], *length - *written);
                    *written += taken;
                    let whole = written == length;
                    self.count(taken, room);
                    if whole {
                        self.expect = Expect::Command;
                    }
                }
                _ => return Ok(None),
            }
        }
    }

    /// Decodes literals. Returns how many are left, and why it stopped, if it did.
    fn literals(
        &mut self,
        mut left: usize,
        input: &[u8],
        at: &mut usize,
        room: &mut Room<'_>,
    ) -> (usize, Option<Stop>) {
        while left > 0 {
            if let Some(stop) = room.stop() {
                return (left, Some(stop));
            }
            let Header { blocks: [blocks, ..], modes, maps: [map, _], plain, .. } = &mut self.header;
            if blocks.left == 0 {
                room.elements += SWITCH_ELEMENTS;
                *at += self.bits.fill(&input[*at..]);
                if !blocks.switch(&mut self.bits) {
                    return (left, Some(Stop::Input));
                }
            }
            let count = left.min(blocks.left).min(room.end.min(room.until) - room.at);
            let of_type = usize::from(blocks.current);
            let contexts = &map[of_type * CONTEXTS[LITERAL_MAP]..][..CONTEXTS[LITERAL_MAP]];
            let (tables, plain) = (&LITERAL_CONTEXTS[usize::from(modes[of_type] & 3)], plain[of_type]);
            let mut start = blocks.codes.start(contexts[0]);
            let (mut bits, (mut last, mut before)) = (self.bits, self.recent);
            let mut taken = 0;
            for to in &mut room.output[room.at..room.at + count] {
                if bits.count < 16 {
                    *at += bits.fill(&input[*at..]);
                }
                if !plain {
                    let context = literal_context(tables, last, before);
                    start = blocks.codes.start(contexts[context & (CONTEXTS[LITERAL_MAP] - 1)]);
                }
                let (symbol, used) = blocks.codes.symbol(start, bits.buffer);
                if !bits.take(used) {
                    break;
                }
                let [byte, _] = symbol.to_le_bytes();
                *to = byte;
                (last, before) = (byte, last);
                taken += 1;
            }
            (self.bits, self.recent) = (bits, (last, before));
            blocks.left -= taken;
            left -= taken;
            self.left -= taken;
            self.produced += taken;
            room.at += taken;
            room.elements += taken;
            if taken < count {
                return (left, Some(Stop::Input));
            }
        }
        (0, None)
    }

    /// Reads a copy's distance; false if bits are missing.
    fn distance(
        &mut self,
        copy: usize,
        reuse: bool,
        input: &[u8],
        at: &mut usize,
        room: &mut Room<'_>,
    ) -> Result<bool, Fault> {
        let distance = if reuse {
            self.distances[0]
        } else {
            let Header { blocks, maps, postfix_bits, direct, .. } = &mut self.header;
            let blocks = &mut blocks[DISTANCES];
            if blocks.left == 0 {
                room.elements += SWITCH_ELEMENTS;
                if !blocks.switch(&mut self.bits) {
                    return Ok(false);
                }
                *at += self.bits.fill(&input[*at..]);
            }
            let context = usize::from(blocks.current) * CONTEXTS[DISTANCE_MAP] + (copy - 2).min(3);
            let mut ahead = self.bits;
            let Some(symbol) = blocks.codes.read(maps[DISTANCE_MAP][context], &mut ahead) else {
                return Ok(false);
            };
            let distance = match symbol.checked_sub(DISTANCE_SYMBOLS) {
                None => recent(self.distances, symbol),
                Some(symbol) => match symbol.checked_sub(*direct) {
                    None => symbol + 1,
                    Some(symbol) => {
                        let (high, low) = (symbol >> *postfix_bits, symbol & ((1 << *postfix_bits) - 1));
                        let extra = u32::try_from(1 + high / 2).unwrap_or(0);
                        let Some(more) = number(&mut ahead, extra) else { return Ok(false) };
                        let offset = ((2 + high % 2) << extra) - 4;
                        ((offset + more) << *postfix_bits) + low + *direct + 1
                    }
                },
            };
            self.bits = ahead;
            blocks.left -= 1;
            // Repeating the last distance does not make it a new one.
            if symbol > 0 && distance <= self.window.min(self.produced) {
                let [last, second, third, _] = self.distances;
                self.distances = [distance, last, second, third];
            }
            distance
        };
        let reach = self.window.min(self.produced);
        if distance == 0 {
            return Err(Fault::Malformed("a distance reaches before the first"));
        }
        self.expect = if distance <= reach {
            if copy > self.left {
                return Err(Fault::Malformed(COPY_TOO_LONG));
            }
            room.elements += distance_elements(distance);
            Expect::Copy { distance, left: copy }
        } else {
            room.elements += WORD_ELEMENTS;
            self.dictionary(distance - reach - 1, copy)?;
            Expect::Word
        };
        Ok(true)
    }

    /// Looks a word up. Section 8.
    fn dictionary(&mut self, number: usize, letters: usize) -> Result<(), Fault> {
        const BAD: Fault = Fault::Malformed("a copy is neither from the stream nor from the dictionary");
        if !(WORD_LETTERS_MIN..=WORD_LETTERS_MAX).contains(&letters) {
            return Err(BAD);
        }
        let bits = kBrotliDictionarySizeBitsByLength[letters];
        let (index, transform) = (number & ((1 << bits) - 1), number >> bits);
        let transform =
            i32::try_from(transform).ok().filter(|&transform| transform < kNumTransforms).ok_or(BAD)?;
        let offset = usize_of_u32(kBrotliDictionaryOffsetsByLength[letters]) + index * letters;
        let word = &kBrotliDictionary[offset..offset + letters];
        let length = i32::try_from(letters).unwrap_or(0);
        let length = TransformDictionaryWord(&mut self.word.bytes, word, length, transform);
        self.word.length = usize::try_from(length).unwrap_or(0);
        self.word.written = 0;
        if self.word.length > self.left {
            return Err(Fault::Malformed("a word extends beyond its metablock"));
        }
        // Transforms may leave nothing of a word.
        Ok(())
    }

    /// Counts bytes that were copied into the room.
    fn count(&mut self, length: usize, room: &Room<'_>) {
        self.left -= length;
        self.produced += length;
        self.recent = match room.output[..room.at] {
            [.., before, last] if length > 1 => (last, before),
            [.., last] if length == 1 => (last, self.recent.0),
            _ => self.recent,
        };
    }

    /// Drops the bits up to the next byte, which must be zero.
    fn align(&mut self) -> Result<(), Fault> {
        let behind = self.bits.count % 8;
        match number(&mut self.bits, behind) {
            Some(0) => Ok(()),
            _ => Err(Fault::Malformed("bits that mean nothing are not zero")),
        }
    }

    fn end_metablock(&mut self) {
        self.expect = if self.last { Expect::Padding } else { Expect::Metablock };
    }
}

/// A distance derived from one of the last four; 0 if it is invalid.
fn recent(distances: [usize; 4], symbol: usize) -> usize {
    let by = 1 + (symbol.saturating_sub(4) % 6) / 2;
    match symbol {
        0..4 => distances[symbol],
        _ => {
            let distance = distances[usize::from(symbol >= 10)];
            if symbol.is_multiple_of(2) { distance.saturating_sub(by) } else { distance + by }
        }
    }
}

/// A stream's window size, as a power of two; 0 for a large window. `None` if bits are missing.
fn window(bits: &mut Bits) -> Option<u32> {
    if number(bits, 1)? == 0 {
        return Some(16);
    }
    Some(match number(bits, 3)? {
        0 => match number(bits, 3)? {
            0 => 17,
            1 => 0,
            more => 8 + u32::try_from(more).unwrap_or(0),
        },
        more => 17 + u32::try_from(more).unwrap_or(0),
    })
}

/// How a metablock starts.
enum Start {
    /// The last one, which is empty.
    Empty,
    Metadata {
        length: usize,
        last: bool,
    },
    Stored {
        length: usize,
    },
    Compressed {
        length: usize,
        last: bool,
    },
}

/// Reads a metablock's start. `None` if bits are missing.
fn metablock(bits: &mut Bits) -> Result<Option<Start>, Fault> {
    let mut start = || {
        let last = number(bits, 1)? == 1;
        if last && number(bits, 1)? == 1 {
            return Some(Ok(Start::Empty));
        }
        let nibbles = u32::try_from(number(bits, 2)?).unwrap_or(0) + 4;
        if nibbles == 7 {
            if number(bits, 1)? != 0 {
                return Some(Err(Fault::Malformed("a reserved bit is not zero")));
            }
            let bytes = u32::try_from(number(bits, 2)?).unwrap_or(0);
            let length = number(bits, 8 * bytes)?;
            if bytes > 1 && length >> (8 * (bytes - 1)) == 0 {
                return Some(Err(Fault::Malformed("a length has bytes that mean nothing")));
            }
            let length = if bytes == 0 { 0 } else { length + 1 };
            return Some(Ok(Start::Metadata { length, last }));
        }
        let length = number(bits, 4 * nibbles)?;
        if nibbles > 4 && length >> (4 * (nibbles - 1)) == 0 {
            return Some(Err(Fault::Malformed("a length has bits that mean nothing")));
        }
        let length = length + 1;
        if !last && number(bits, 1)? == 1 {
            return Some(Ok(Start::Stored { length }));
        }
        Some(Ok(Start::Compressed { length, last }))
    };
    start().transpose()
}
