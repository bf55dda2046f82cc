//! Decodes commands while they are easy.

use marquetry_base::cast::{low_u8, usize_of_u32};
use marquetry_kernels::lz::{Bits, copy_back};

use super::header::{CONTEXTS, DISTANCE_MAP, DISTANCE_SYMBOLS, LITERAL_MAP};
use super::tables::{COMMANDS, COMMANDS_WITH_DISTANCE, LITERAL_CONTEXTS, literal_context};
use super::{
    Brotli, COMMAND_ELEMENTS, COPY_TOO_LONG, Expect, INPUT_MIN, LITERALS_TOO_MANY, SHORT_COPY_MAX,
    distance_elements, recent,
};
use crate::block::Room;

/// Literals that need not be interruptible.
const LITERALS_MAX: usize = 512;

impl Brotli {
    /// Decodes complete commands as long as they are far from the ends of input and room, of the metablock and of
    /// blocks, and copy from the stream. It may leave the decoder in any state of a command. Returns the bytes of
    /// `input` consumed.
    pub(super) fn run(&mut self, input: &[u8], room: &mut Room<'_>) -> usize {
        let super::Header { blocks, maps, modes, plain, literal_starts, postfix_bits, direct, .. } =
            &mut self.header;
        let [literals, commands, distances] = blocks;
        let (postfix_bits, direct) = (*postfix_bits, *direct);
        let output = &mut room.output[..room.end];
        let command_start = commands.codes.start(commands.current);
        let literal_type = usize::from(literals.current);
        let starts = &literal_starts[literal_type * CONTEXTS[LITERAL_MAP]..][..CONTEXTS[LITERAL_MAP]];
        let tables = &LITERAL_CONTEXTS[usize::from(modes[literal_type] & 3)];
        let plain = plain[literal_type];
        let distance_map = &maps[DISTANCE_MAP][usize::from(distances.current) * CONTEXTS[DISTANCE_MAP]..];
        let distance_starts: [usize; 4] = core::array::from_fn(|at| distances.codes.start(distance_map[at]));
        let mut reader = Reader { input, at: 0, buffer: self.bits.buffer, count: self.bits.count };
        let (mut at, mut left, mut produced) = (room.at, self.left, self.produced);
        let (mut literals_left, mut commands_left, mut distances_left) =
            (literals.left, commands.left, distances.left);
        let (mut last, mut before) = self.recent;
        let mut recents = self.distances;
        let mut elements = room.elements;
        let mut expect = Expect::Command;
        while at < room.until
            && elements < room.elements_max
            && commands_left > 0
            && left > 0
            && input.len() - reader.at >= INPUT_MIN
        {
            reader.fill();
            let (symbol, used) = commands.codes.symbol(command_start, reader.buffer);
            reader.drop(used);
            let symbol = usize::from(symbol);
            let command = &COMMANDS[symbol];
            let insert = usize_of_u32(command.insert.base) + reader.number(command.insert.bits);
            reader.fill();
            let copy = usize_of_u32(command.copy.base) + reader.number(command.copy.bits);
            commands_left -= 1;
            elements += COMMAND_ELEMENTS;
            let reuse = symbol < COMMANDS_WITH_DISTANCE;
            if insert > 0 {
                // A literal takes 15 bits at most.
                let is_easy = insert <= LITERALS_MAX
                    && insert <= literals_left
                    && insert < left
                    && insert < output.len() - at
                    && input.len() - reader.at >= 2 * insert + INPUT_MIN;
                if !is_easy {
                    expect = if insert > left {
                        Expect::Bad(LITERALS_TOO_MANY)
                    } else {
                        Expect::Literals { left: insert, copy, reuse }
                    };
                    break;
                }
                let codes = &literals.codes;
                let room = &mut output[at..at + insert];
                if plain {
                    let start = usize_of_u32(starts[0]);
                    for to in room {
                        if reader.count < 16 {
                            reader.fill();
                        }
                        let (symbol, used) = codes.symbol(start, reader.buffer);
                        reader.drop(used);
                        let [byte, _] = symbol.to_le_bytes();
                        *to = byte;
                        (last, before) = (byte, last);
                    }
                } else {
                    for to in room {
                        if reader.count < 16 {
                            reader.fill();
                        }
                        let context = literal_context(tables, last, before);
                        let start = usize_of_u32(starts[context & 63]);
                        let (symbol, used) = codes.symbol(start, reader.buffer);
                        reader.drop(used);
                        let [byte, _] = symbol.to_le_bytes();
                        *to = byte;
                        (last, before) = (byte, last);
                    }
                }
                at += insert;
                left -= insert;
                produced += insert;
                literals_left -= insert;
                elements += insert;
            }
            let reach = self.window.min(produced);
            let mut distance = recents[0];
            if !reuse {
                if distances_left == 0 {
                    expect = Expect::Distance { copy, reuse };
                    break;
                }
                reader.fill();
                let kept = reader;
                let start = distance_starts[(copy - 2).min(3)];
                let (symbol, used) = distances.codes.symbol(start, reader.buffer);
                reader.drop(used);
                let symbol = usize::from(symbol);
                distance = if symbol < DISTANCE_SYMBOLS {
                    recent(recents, symbol)
                } else if symbol - DISTANCE_SYMBOLS < direct {
                    symbol - DISTANCE_SYMBOLS + 1
                } else {
                    let symbol = symbol - DISTANCE_SYMBOLS - direct;
                    let (high, low) = (symbol >> postfix_bits, symbol & ((1 << postfix_bits) - 1));
                    let extra = 1 + u32::from(low_u8((high / 2) as u64));
                    let offset = ((2 + high % 2) << extra) - 4;
                    ((offset + reader.number(extra)) << postfix_bits) + low + direct + 1
                };
                if distance > reach || distance == 0 {
                    reader = kept;
                    expect = Expect::Distance { copy, reuse };
                    break;
                }
                distances_left -= 1;
                if symbol > 0 {
                    recents = [distance, recents[0], recents[1], recents[2]];
                }
            }
            // (The initial distances of a stream may be beyond its start, even if they are reused.)
            if distance > reach {
                expect = Expect::Distance { copy, reuse };
                break;
            }
            elements += distance_elements(distance);
            if copy > left || copy > SHORT_COPY_MAX || !copy_back(output, at, distance, copy) {
                expect = if copy > left {
                    Expect::Bad(COPY_TOO_LONG)
                } else {
                    Expect::Copy { distance, left: copy }
                };
                break;
            }
            at += copy;
            left -= copy;
            produced += copy;
            elements += 1;
            // A copy is of two bytes or more.
            (last, before) = (output[at - 1], output[at - 2]);
        }
        (literals.left, commands.left, distances.left) = (literals_left, commands_left, distances_left);
        (self.left, self.produced, self.recent, self.distances) = (left, produced, (last, before), recents);
        self.expect = expect;
        (room.at, room.elements) = (at, elements);
        let consumed;
        (self.bits, consumed) = reader.end();
        consumed
    }
}

/// Bits of an input that is long enough.
#[derive(Clone, Copy)]
struct Reader<'input> {
    input: &'input [u8],
    at: usize,
    buffer: u64,
    /// Valid bits; those above are the input's next ones, and will be read again.
    count: u32,
}

impl Reader<'_> {
    /// Reads up to at least 56 bits, if there are eight bytes.
    #[inline(always)]
    fn fill(&mut self) {
        if let Some(&next) = self.input.get(self.at..).and_then(|input| input.first_chunk()) {
            self.buffer |= u64::from_le_bytes(next) << self.count;
            self.at += usize_of_u32((63 - self.count) >> 3);
            self.count |= 56;
        }
    }

    #[inline(always)]
    fn drop(&mut self, count: u32) {
        self.buffer >>= count;
        self.count -= count;
    }

    #[inline(always)]
    fn number(&mut self, count: u32) -> usize {
        let number = self.buffer & ((1 << count) - 1);
        self.drop(count);
        // At most 32 bits.
        usize_of_u32(marquetry_base::cast::low_u32(number))
    }

    /// The bits that are left, without complete bytes, and the bytes consumed.
    fn end(self) -> (Bits, usize) {
        let back = (self.count >> 3).min(u32::try_from(self.at).unwrap_or(u32::MAX));
        let count = self.count - 8 * back;
        (Bits { buffer: self.buffer & ((1 << count) - 1), count }, self.at - usize_of_u32(back))
    }
}
