//! An LZ4 block: the basis of every layout of LZ4 pages.

use marquetry_kernels::lz::lz4;

use crate::block::{Block, Fault, Room, Stop};

/// Decodes a block's sequences. lz4/doc/lz4_Block_format.md.
///
/// The rules for the last bytes of a block are for encoders and are not checked: a block ends where its bytes end,
/// after literals, which may be empty. (The reference decoder requires the last five bytes to be literals.)
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    expect: Expect,
    produced: usize,
}

#[derive(Debug, Default, Clone, Copy)]
enum Expect {
    #[default]
    Token,
    /// The rest of the number of literals. `matched`, here and below: the token's lower half, a match's length.
    LiteralsLength {
        length: usize,
        matched: usize,
    },
    Literals {
        left: usize,
        matched: usize,
    },
    /// A match's offset; or the block's end.
    Offset {
        matched: usize,
    },
    MatchLength {
        distance: usize,
        length: usize,
    },
    Match {
        distance: usize,
        left: usize,
    },
}

/// A length in a token that continues after it.
const LENGTH_GOES_ON: usize = 15;

/// A byte of a length that is not its last.
const BYTE_GOES_ON: u8 = 255;

/// The shortest match.
const MATCH_MIN: usize = 4;

impl Sequences {
    /// Starts a block that may refer to the blocks before it.
    pub(crate) fn next_block(&mut self) {
        self.expect = Expect::Token;
    }

    /// Counts bytes that such a block may also refer to.
    pub(crate) fn stored(&mut self, bytes: usize) {
        self.produced += bytes;
    }
}

impl Block for Sequences {
    fn decode(&mut self, input: &[u8], room: &mut Room<'_>) -> Result<(usize, Stop), Fault> {
        let mut at = 0;
        loop {
            match self.expect {
                Expect::Token => {
                    at += room.run(&mut self.produced, |to| lz4::run(&input[at..], to));
                    let Some(&token) = input.get(at) else { return Ok((at, Stop::Input)) };
                    at += 1;
                    let (left, matched) = (usize::from(token >> 4), usize::from(token & 15));
                    self.expect = match left {
                        LENGTH_GOES_ON => Expect::LiteralsLength { length: left, matched },
                        _ => Expect::Literals { left, matched },
                    };
                }
                Expect::LiteralsLength { length, matched } => {
                    let (bytes, more, whole) = length_bytes(&input[at..]);
                    (at, room.elements) = (at + bytes, room.elements + bytes);
                    let left = length.saturating_add(more);
                    if !whole {
                        self.expect = Expect::LiteralsLength { length: left, matched };
                        return Ok((at, Stop::Input));
                    }
                    self.expect = Expect::Literals { left, matched };
                }
                Expect::Literals { left: 0, matched } => self.expect = Expect::Offset { matched },
                Expect::Literals { left, matched } => {
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let length = room.literals(&input[at..], left);
                    (at, self.produced) = (at + length, self.produced + length);
                    self.expect = Expect::Literals { left: left - length, matched };
                    if length < left && at == input.len() {
                        return Ok((at, Stop::Input));
                    }
                }
                Expect::Offset { matched } => {
                    let Some(&offset) = input[at..].first_chunk() else { return Ok((at, Stop::Input)) };
                    at += 2;
                    let distance = usize::from(u16::from_le_bytes(offset));
                    self.expect = match matched {
                        LENGTH_GOES_ON => Expect::MatchLength { distance, length: matched + MATCH_MIN },
                        _ => Expect::Match { distance, left: matched + MATCH_MIN },
                    };
                }
                Expect::MatchLength { distance, length } => {
                    let (bytes, more, whole) = length_bytes(&input[at..]);
                    (at, room.elements) = (at + bytes, room.elements + bytes);
                    let left = length.saturating_add(more);
                    if !whole {
                        self.expect = Expect::MatchLength { distance, length: left };
                        return Ok((at, Stop::Input));
                    }
                    self.expect = Expect::Match { distance, left };
                }
                Expect::Match { distance, left } => {
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let length = room.copy(distance, left, self.produced)?;
                    self.produced += length;
                    self.expect = if length == left {
                        Expect::Token
                    } else {
                        Expect::Match { distance, left: left - length }
                    };
                }
            }
        }
    }

    fn may_end(&self) -> bool {
        matches!(self.expect, Expect::Offset { .. } | Expect::Literals { left: 0, .. })
    }
}

/// Continues to read a length. Returns the bytes read, what they add, and whether they were the last.
fn length_bytes(input: &[u8]) -> (usize, usize, bool) {
    let full = input.iter().take_while(|&&byte| byte == BYTE_GOES_ON).count();
    let more = full.saturating_mul(usize::from(BYTE_GOES_ON));
    match input.get(full) {
        Some(&last) => (full + 1, more.saturating_add(usize::from(last)), true),
        None => (full, more, false),
    }
}
