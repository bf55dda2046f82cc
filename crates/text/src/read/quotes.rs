//! Where fields end in delimited text, 64 bytes at a time, as long as quotes are where they belong.

use marquetry_kernels::marks::{self, BLOCK_BYTES};

/// Blocks that are looked at together.
const BLOCKS: usize = 32;

/// What a block begins with, or what follows the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Before {
    /// Its first byte is in quotes.
    pub(super) is_quoted: bool,
    /// It follows the second quote of a field, or that and a carriage return.
    pub(super) is_closed: bool,
    pub(super) is_returned: bool,
    /// It begins a field.
    pub(super) is_start: bool,
}

/// Delimiters and line ends that are not in quotes, in a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) all: u64,
    pub(super) lines: u64,
    /// Quotes are doubled.
    pub(super) has_doubled: bool,
}

/// Looks for the ends of fields in whole blocks. It looks at few together at first, so that little is lost where one cannot be used; and
/// where several in turn cannot, more and more are left out.
#[derive(Debug)]
pub(super) struct Blocks {
    delimiter: u8,
    quote: Option<u8>,
    together: usize,
    left_out: usize,
    masks: [[u64; 4]; BLOCKS],
    found: [Ends; BLOCKS],
}

impl Blocks {
    pub(super) fn new(delimiter: u8, quote: Option<u8>) -> Blocks {
        let (masks, found) = ([[0; 4]; BLOCKS], [Ends::default(); BLOCKS]);
        Blocks { delimiter, quote, together: 1, left_out: 1, masks, found }
    }

    /// The next blocks of `text`, up to the first one where a quote is neither at an end of a field nor doubled, and whether that is why
    /// there are no more.
    pub(super) fn next(&mut self, text: &[u8], before: &mut Before) -> (&[Ends], bool) {
        // Without quotes, the delimiter is looked for twice.
        let bytes = [self.delimiter, b'\n', b'\r', self.quote.unwrap_or(self.delimiter)];
        let blocks = marks::find(text, bytes, &mut self.masks[..self.together]);
        for (at, (masks, found)) in self.masks[..blocks].iter().zip(&mut self.found).enumerate() {
            let [delimiters, line_ends, returns, quotes] = *masks;
            let quotes = if self.quote.is_some() { quotes } else { 0 };
            let Some(ends) = ends_of(delimiters, line_ends, (returns, quotes), before) else {
                self.left_out = if at > 0 { 1 } else { BLOCKS.min(2 * self.left_out) };
                self.together = 1;
                return (&self.found[..at], true);
            };
            *found = ends;
        }
        if blocks > 0 {
            self.left_out = 1;
        }
        self.together = BLOCKS.min(2 * self.together);
        (&self.found[..blocks], false)
    }

    /// Bytes that are to be looked at one by one before the next block, which cannot be used.
    pub(super) fn left_out_bytes(&self) -> usize {
        self.left_out * BLOCK_BYTES
    }
}

fn ends_of(
    delimiters: u64,
    line_ends: u64,
    (returns, quotes): (u64, u64),
    before: &mut Before,
) -> Option<Ends> {
    // Opening quotes are inside, closing ones are not. Of two in the middle of a field, the first one closes it for a moment.
    let inside = marks::parity(quotes) ^ if before.is_quoted { u64::MAX } else { 0 };
    let (opening, closing) = (quotes & inside, quotes & !inside);
    let all = (delimiters | line_ends) & !inside;
    let after_closing = closing << 1 | u64::from(before.is_closed);
    let returned = returns & after_closing & !all & !opening;
    let after_returned = returned << 1 | u64::from(before.is_returned);
    let starts = all << 1 | u64::from(before.is_start);
    let is_right = opening & !(starts | after_closing) == 0
        && after_closing & !(all | opening | returned) == 0
        && after_returned & !(line_ends & all) == 0;
    if !is_right {
        return None;
    }
    let last = |bits: u64| bits >> 63 == 1;
    *before = Before {
        is_quoted: last(inside),
        is_closed: last(closing),
        is_returned: last(returned),
        is_start: last(all),
    };
    Some(Ends { all, lines: line_ends & all, has_doubled: opening & after_closing != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Byte by byte: the ends of a block, unless a quote is not where it belongs.
    fn one_by_one(block: &[u8], quote: Option<u8>, before: &mut Before) -> Option<Ends> {
        let (mut ends, mut now) = (Ends::default(), *before);
        for (bit, byte) in block.iter().enumerate() {
            let (is_quote, is_end) = (Some(*byte) == quote, matches!(byte, b',' | b'\n'));
            let next = Before::default();
            now = if now.is_returned {
                (*byte == b'\n').then_some(())?;
                (ends.all, ends.lines) = (ends.all | 1 << bit, ends.lines | 1 << bit);
                Before { is_start: true, ..next }
            } else if now.is_closed && *byte == b'\r' {
                Before { is_returned: true, ..next }
            } else if now.is_quoted {
                Before { is_quoted: !is_quote, is_closed: is_quote, ..next }
            } else if is_quote {
                ends.has_doubled |= now.is_closed;
                (now.is_start || now.is_closed).then_some(Before { is_quoted: true, ..next })?
            } else if is_end {
                ends.all |= 1 << bit;
                ends.lines |= u64::from(*byte == b'\n') << bit;
                Before { is_start: true, ..next }
            } else {
                (!now.is_closed).then_some(next)?
            };
        }
        *before = now;
        Some(ends)
    }

    #[test]
    fn as_byte_by_byte() {
        let mut state = 7_u64;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        let right: [&[u8]; 9] = [
            b"a,",
            b"\"b\",",
            b"\"\",",
            b"\"c,\"\"\n\"\n",
            b"1\r\n",
            b"\"\"\"\",",
            b"\"d\"\r\n",
            b"\r,",
            b"\"\r\"\n",
        ];
        let wrong: [&[u8]; 4] = [b"\"", b"\"d\"e", b"\"d\"\r,", b"x\"y,"];
        let (mut whole, mut stopped) = (0, 0);
        for round in 0..2000 {
            let mut text: Vec<u8> = Vec::new();
            while text.len() < 200 + random(3000) {
                let is_wrong = round % 3 == 0 && random(60) == 0;
                text.extend_from_slice(if is_wrong { wrong[random(4)] } else { right[random(9)] });
            }
            let quote = (round % 7 > 0).then_some(b'"');
            let start = Before { is_quoted: random(5) == 0, is_start: random(2) == 0, ..Before::default() };
            let (mut before, mut expected) = (start, start);
            let mut found = Blocks::new(b',', quote);
            let mut blocks = text.chunks_exact(BLOCK_BYTES);
            let mut at = 0;
            loop {
                let (ends, is_stopped) = found.next(&text[at..], &mut before);
                for ends in ends {
                    let block = blocks.next().unwrap();
                    assert_eq!(one_by_one(block, quote, &mut expected).as_ref(), Some(ends));
                }
                assert_eq!(before, expected);
                at += ends.len() * BLOCK_BYTES;
                if is_stopped {
                    assert_eq!(one_by_one(blocks.next().unwrap(), quote, &mut expected), None);
                    stopped += 1;
                    break;
                }
                if ends.is_empty() {
                    assert_eq!(blocks.next(), None);
                    whole += 1;
                    break;
                }
            }
        }
        assert!(whole > 300 && stopped > 300, "{whole}, {stopped}");
    }
}
