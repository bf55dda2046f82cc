//! The tables of RFC 7932.

/// A length or count: its minimum, and the number of bits that are added to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    pub(crate) base: u32,
    pub(crate) bits: u32,
}

/// Counts of blocks, by their symbol. Section 6.
pub(crate) const BLOCK_COUNTS: [Range; 26] =
    ranges([2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 7, 8, 9, 10, 11, 12, 13, 24], 1);

/// Lengths of insertions and copies. Section 5.
const INSERTS: [Range; 24] =
    ranges([0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 12, 14, 24], 0);
const COPIES: [Range; 24] =
    ranges([0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 24], 2);

/// Consecutive ranges.
const fn ranges<const N: usize>(bits: [u32; N], mut base: u32) -> [Range; N] {
    let mut ranges = [Range { base: 0, bits: 0 }; N];
    let mut at = 0;
    while at < N {
        ranges[at] = Range { base, bits: bits[at] };
        base += 1 << bits[at];
        at += 1;
    }
    ranges
}

/// What a command inserts and copies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub(crate) insert: Range,
    pub(crate) copy: Range,
}

/// Commands, by their symbol.
pub(crate) static COMMANDS: [Command; 704] = commands();

const fn commands() -> [Command; 704] {
    // The upper bits of a symbol select three more bits of each.
    const INSERT_CELLS: [usize; 11] = [0, 0, 0, 0, 8, 8, 0, 16, 8, 16, 16];
    const COPY_CELLS: [usize; 11] = [0, 8, 0, 8, 0, 8, 16, 0, 16, 8, 16];
    let mut commands = [Command { insert: INSERTS[0], copy: COPIES[0] }; 704];
    let mut symbol = 0;
    while symbol < 704 {
        let cell = symbol >> 6;
        commands[symbol] = Command {
            insert: INSERTS[INSERT_CELLS[cell] + (symbol >> 3 & 7)],
            copy: COPIES[COPY_CELLS[cell] + (symbol & 7)],
        };
        symbol += 1;
    }
    commands
}

/// Commands below this one reuse the last distance.
pub(crate) const COMMANDS_WITH_DISTANCE: usize = 128;

/// The context of a literal, by mode: a table for the last byte, and one for the byte before it. Section 7.1.
pub(crate) static LITERAL_CONTEXTS: [[[u8; 256]; 2]; 4] =
    [[low_bits(), [0; 256]], [high_bits(), [0; 256]], [UTF8_LAST, UTF8_BEFORE], [signed(3), signed(0)]];

/// The context of a literal by the mode's tables.
#[inline]
pub(crate) fn literal_context(tables: &[[u8; 256]; 2], last: u8, before: u8) -> usize {
    usize::from(tables[0][usize::from(last)] | tables[1][usize::from(before)])
}

const UTF8_LAST: [u8; 256] = utf8_last();
const UTF8_BEFORE: [u8; 256] = utf8_before();

const fn utf8_last() -> [u8; 256] {
    // From space on; before it only tabs, line feeds and carriage returns are 4.
    const ASCII: [u8; 96] = [
        8, 12, 16, 12, 12, 20, 12, 16, 24, 28, 12, 12, 32, 12, 36, 12, //
        44, 44, 44, 44, 44, 44, 44, 44, 44, 44, 32, 32, 24, 40, 28, 12, //
        12, 48, 52, 52, 52, 48, 52, 52, 52, 48, 52, 52, 52, 52, 52, 48, //
        52, 52, 52, 52, 52, 48, 52, 52, 52, 52, 52, 24, 12, 28, 12, 12, //
        12, 56, 60, 60, 60, 56, 60, 60, 60, 56, 60, 60, 60, 60, 60, 56, //
        60, 60, 60, 60, 60, 56, 60, 60, 60, 60, 60, 24, 12, 28, 12, 0,
    ];
    let mut table = [0; 256];
    let mut at = 0u8;
    loop {
        table[at as usize] = match at {
            9 | 10 | 13 => 4,
            0..32 => 0,
            32..128 => ASCII[at as usize - 32],
            // Bytes within and at the start of a character.
            128..192 => at & 1,
            _ => 2 + (at & 1),
        };
        if at == u8::MAX {
            return table;
        }
        at += 1;
    }
}

const fn utf8_before() -> [u8; 256] {
    let mut table = [0; 256];
    let mut at = 0u8;
    loop {
        table[at as usize] = match at {
            b'0'..=b'9' | b'A'..=b'Z' | 0xe0.. => 2,
            b'a'..=b'z' => 3,
            0..=b' ' | 0x7f..0xe0 => 0,
            _ => 1,
        };
        if at == u8::MAX {
            return table;
        }
        at += 1;
    }
}

const fn low_bits() -> [u8; 256] {
    let mut table = [0; 256];
    let mut at = 0u8;
    loop {
        table[at as usize] = at & 0x3f;
        if at == u8::MAX {
            return table;
        }
        at += 1;
    }
}

const fn high_bits() -> [u8; 256] {
    let mut table = [0; 256];
    let mut at = 0u8;
    loop {
        table[at as usize] = at >> 2;
        if at == u8::MAX {
            return table;
        }
        at += 1;
    }
}

const fn signed(shift: u32) -> [u8; 256] {
    let mut table = [0; 256];
    let mut at = 0;
    while at < 256 {
        let class = match at {
            0 => 0,
            1..16 => 1,
            16..64 => 2,
            64..128 => 3,
            128..192 => 4,
            192..240 => 5,
            240..255 => 6,
            _ => 7u8,
        };
        table[at] = class << shift;
        at += 1;
    }
    table
}
