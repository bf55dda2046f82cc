//! Decoding of deflate streams (RFC 1951) that can stop anywhere.

use marquetry_base::cast::u64_of;
use marquetry_kernels::lz::Bits;
use marquetry_kernels::lz::inflate::{
    self, BadCode, DISTANCES_MAX, END_SYMBOL, LITERALS_MAX, Symbol, Tables,
};

use crate::block::{Block, Fault, Room, Stop};

/// Decoder of a deflate stream.
///
/// It reads up to seven bytes ahead; [`Inflate::byte`] returns those after the stream's end.
#[derive(Debug)]
pub(crate) struct Inflate {
    expect: Expect,
    /// The current block is the last.
    last: bool,
    bits: Bits,
    tables: Box<Tables>,
    /// The tables are those of the fixed codes.
    fixed: bool,
    lengths: [u8; LENGTHS_MAX],
    produced: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expect {
    /// The three bits that a block starts with.
    Block,
    /// The length of a stored block, and its complement.
    StoredLength,
    Stored {
        left: usize,
    },
    /// The numbers of code lengths.
    Counts,
    /// The code lengths of the code that the lengths are written in.
    CodeLengths {
        counts: Counts,
        read: usize,
    },
    /// The lengths of the block's codes.
    Lengths {
        counts: Counts,
        read: usize,
    },
    Symbol,
    Match {
        distance: usize,
        left: usize,
    },
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    literals: usize,
    distances: usize,
    codes: usize,
}

const LENGTHS_MAX: usize = LITERALS_MAX + DISTANCES_MAX + 2;

/// The order in which the code lengths of the code of lengths are stored.
const CODE_LENGTHS_ORDER: [u8; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Symbols that repeat a length: the previous one, or zero.
const REPEAT_LAST: u8 = 16;
const REPEAT_ZERO: u8 = 17;

/// The maximum cost of building the two tables, in elements.
const TABLE_ELEMENTS: usize = 500;

impl Default for Inflate {
    fn default() -> Inflate {
        Inflate {
            expect: Expect::Block,
            last: false,
            bits: Bits::default(),
            tables: Box::new(Tables::new()),
            fixed: false,
            lengths: [0; LENGTHS_MAX],
            produced: 0,
        }
    }
}

impl Inflate {
    /// Begins a stream, in the bytes that follow the last one.
    pub(crate) fn next_stream(&mut self) {
        (self.expect, self.last, self.produced) = (Expect::Block, false, 0);
    }

    /// Discards what was read ahead.
    pub(crate) fn clear(&mut self) {
        self.bits = Bits::default();
    }

    /// Bytes that the stream became.
    pub(crate) fn produced(&self) -> u64 {
        self.produced
    }

    /// A byte after the stream that was read ahead.
    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.bits.take(self.bits.count % 8);
        let [byte, ..] = self.bits.buffer.to_le_bytes();
        self.bits.take(8).then_some(byte)
    }

    /// The next `count` bits, at most 32. `None` if the input ends first.
    fn bits(&mut self, count: u32, input: &[u8], at: &mut usize) -> Option<usize> {
        *at += self.bits.fill(&input[*at..]);
        let value = self.bits.buffer & ((1 << count) - 1);
        self.bits.take(count).then(|| usize::try_from(value).unwrap_or(usize::MAX))
    }

    fn block(&mut self, header: usize) -> Result<Expect, Fault> {
        self.last = header & 1 == 1;
        match header >> 1 {
            0 => {
                self.bits.take(self.bits.count % 8);
                Ok(Expect::StoredLength)
            }
            1 => {
                if !self.fixed {
                    let mut lengths = [8; 288];
                    lengths[144..256].fill(9);
                    lengths[256..280].fill(7);
                    let made = (self.tables.set_literals(&lengths), self.tables.set_distances(&[5; 32]));
                    debug_assert_eq!(made, (Ok(()), Ok(())));
                    self.fixed = true;
                }
                Ok(Expect::Symbol)
            }
            2 => Ok(Expect::Counts),
            _ => Err(Fault::Malformed("a deflate block of an unknown kind")),
        }
    }

    /// Builds the code that the lengths are written in. Its symbols are decoded as literals.
    fn code_lengths(&mut self) -> Result<(), Fault> {
        let lengths = &self.lengths[..CODE_LENGTHS_ORDER.len()];
        // Only for this code, a single symbol is not allowed.
        let single = lengths.iter().filter(|&&length| length > 0).count() == 1;
        self.fixed = false;
        let made = self.tables.set_literals(lengths);
        if made.is_err() || single {
            return Err(Fault::Malformed("the lengths of a deflate block's codes have a bad code"));
        }
        Ok(())
    }

    /// Builds the block's codes.
    fn codes(&mut self, counts: Counts) -> Result<(), Fault> {
        let (literals, distances) =
            self.lengths[..counts.literals + counts.distances].split_at(counts.literals);
        if literals[END_SYMBOL] == 0 {
            return Err(Fault::Malformed("a deflate block has no code for its end"));
        }
        let told = |error| match error {
            BadCode::Oversubscribed => "a deflate block's code has too many symbols",
            BadCode::Incomplete => "a deflate block's code has too few symbols",
        };
        self.tables.set_literals(literals).map_err(|error| Fault::Malformed(told(error)))?;
        self.tables.set_distances(distances).map_err(|error| Fault::Malformed(told(error)))
    }

    /// Continues to read the lengths of the block's codes. Returns how many were read, unless the input ends first.
    fn lengths(
        &mut self,
        counts: Counts,
        mut read: usize,
        input: &[u8],
        at: &mut usize,
        room: &mut Room<'_>,
    ) -> Result<(usize, Option<Stop>), Fault> {
        let all = counts.literals + counts.distances;
        while read < all {
            room.elements += 1;
            *at += self.bits.fill(&input[*at..]);
            let mut bits = self.bits;
            let symbol = match self.tables.symbol(&mut bits) {
                Symbol::Literal(symbol) => symbol,
                Symbol::Short => return Ok((read, Some(Stop::Input))),
                _ => return Err(Fault::Malformed("the lengths of a deflate block's codes have a bad code")),
            };
            if symbol < REPEAT_LAST {
                self.lengths[read] = symbol;
                read += 1;
            } else {
                let (value, extra, base) = match symbol {
                    REPEAT_LAST => match read.checked_sub(1) {
                        Some(last) => (self.lengths[last], 2, 3),
                        None => {
                            return Err(Fault::Malformed(
                                "a deflate block repeats a length before the first",
                            ));
                        }
                    },
                    REPEAT_ZERO => (0, 3, 3),
                    _ => (0, 7, 11),
                };
                let times = usize::try_from(bits.buffer & ((1 << extra) - 1)).unwrap_or(0) + base;
                if !bits.take(extra) {
                    return Ok((read, Some(Stop::Input)));
                }
                let Some(lengths) = self.lengths[..all].get_mut(read..read + times) else {
                    return Err(Fault::Malformed("a deflate block has more lengths than codes"));
                };
                lengths.fill(value);
                read += times;
            }
            self.bits = bits;
        }
        Ok((read, None))
    }

    /// Decodes symbols until something stops it: a match that does not fit, the block's end, or a [`Stop`].
    fn symbols(
        &mut self,
        input: &[u8],
        at: &mut usize,
        room: &mut Room<'_>,
    ) -> Result<Result<Expect, Stop>, Fault> {
        // Matches reach at most 32 KiB back, so a position beyond a usize does not matter.
        let mut produced = usize::try_from(self.produced).unwrap_or(usize::MAX);
        loop {
            let before = room.at;
            *at +=
                room.run(&mut produced, |to| inflate::run(&input[*at..], to, &mut self.bits, &self.tables));
            self.produced += u64_of(room.at - before);
            *at += self.bits.fill(&input[*at..]);
            let mut bits = self.bits;
            let symbol = self.tables.symbol(&mut bits);
            match symbol {
                Symbol::Short => return Ok(Err(Stop::Input)),
                Symbol::BadLiteral => {
                    return Err(Fault::Malformed("a deflate block has a bad literal or length"));
                }
                Symbol::BadDistance => return Err(Fault::Malformed("a deflate block has a bad distance")),
                Symbol::End => {
                    self.bits = bits;
                    room.elements += 1;
                    return Ok(Ok(if self.last { Expect::End } else { Expect::Block }));
                }
                Symbol::Literal(_) | Symbol::Match { .. } => {}
            }
            if let Some(stop) = room.stop() {
                return Ok(Err(stop));
            }
            self.bits = bits;
            match symbol {
                Symbol::Literal(byte) => {
                    room.literal(byte);
                    self.produced += 1;
                    produced = produced.saturating_add(1);
                }
                Symbol::Match { length, distance } => {
                    return Ok(Ok(Expect::Match { distance, left: length }));
                }
                _ => {}
            }
        }
    }
}

impl Block for Inflate {
    fn decode(&mut self, input: &[u8], room: &mut Room<'_>) -> Result<(usize, Stop), Fault> {
        let mut at = 0;
        loop {
            match self.expect {
                Expect::Block => {
                    if room.is_tired() {
                        return Ok((at, Stop::Until));
                    }
                    let Some(header) = self.bits(3, input, &mut at) else { return Ok((at, Stop::Input)) };
                    room.elements += if header >> 1 == 1 && !self.fixed { TABLE_ELEMENTS } else { 2 };
                    self.expect = self.block(header)?;
                }
                Expect::StoredLength => {
                    let Some(lengths) = self.bits(32, input, &mut at) else { return Ok((at, Stop::Input)) };
                    let (left, inverted) = (lengths & 0xffff, lengths >> 16);
                    if left != inverted ^ 0xffff {
                        return Err(Fault::Malformed("a stored deflate block has a bad length"));
                    }
                    self.expect = Expect::Stored { left };
                }
                Expect::Stored { left: 0 } => {
                    self.expect = if self.last { Expect::End } else { Expect::Block };
                }
                Expect::Stored { left } => {
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let length = if let Some(byte) = self.byte() {
                        room.literal(byte);
                        1
                    } else {
                        let length = room.literals(&input[at..], left);
                        at += length;
                        if length == 0 {
                            return Ok((at, Stop::Input));
                        }
                        length
                    };
                    self.produced += u64_of(length);
                    self.expect = Expect::Stored { left: left - length };
                }
                Expect::Counts => {
                    let Some(bits) = self.bits(14, input, &mut at) else { return Ok((at, Stop::Input)) };
                    let counts = Counts {
                        literals: 257 + (bits & 31),
                        distances: 1 + (bits >> 5 & 31),
                        codes: 4 + (bits >> 10),
                    };
                    if counts.literals > LITERALS_MAX || counts.distances > DISTANCES_MAX {
                        return Err(Fault::Malformed("a deflate block has too many codes"));
                    }
                    self.lengths[..CODE_LENGTHS_ORDER.len()].fill(0);
                    self.expect = Expect::CodeLengths { counts, read: 0 };
                }
                Expect::CodeLengths { counts, read } if read < counts.codes => {
                    let Some(length) = self.bits(3, input, &mut at) else { return Ok((at, Stop::Input)) };
                    let to = usize::from(CODE_LENGTHS_ORDER[read]);
                    self.lengths[to] = u8::try_from(length).unwrap_or(0);
                    self.expect = Expect::CodeLengths { counts, read: read + 1 };
                }
                Expect::CodeLengths { counts, .. } => {
                    room.elements += TABLE_ELEMENTS / 8;
                    self.code_lengths()?;
                    self.expect = Expect::Lengths { counts, read: 0 };
                }
                Expect::Lengths { counts, read } => {
                    let (read, stop) = self.lengths(counts, read, input, &mut at, room)?;
                    self.expect = Expect::Lengths { counts, read };
                    if let Some(stop) = stop {
                        return Ok((at, stop));
                    }
                    room.elements += TABLE_ELEMENTS;
                    self.codes(counts)?;
                    self.expect = Expect::Symbol;
                }
                Expect::Symbol => match self.symbols(input, &mut at, room)? {
                    Ok(expect) => self.expect = expect,
                    Err(stop) => return Ok((at, stop)),
                },
                Expect::Match { distance, left } => {
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let produced = usize::try_from(self.produced).unwrap_or(usize::MAX);
                    let length = room.copy(distance, left, produced)?;
                    self.produced += u64_of(length);
                    self.expect = if length == left {
                        Expect::Symbol
                    } else {
                        Expect::Match { distance, left: left - length }
                    };
                }
                Expect::End => return Ok((at, Stop::Input)),
            }
        }
    }

    fn may_end(&self) -> bool {
        self.expect == Expect::End
    }
}
