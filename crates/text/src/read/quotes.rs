//! Where fields end in delimited text, 64 bytes at a time, as long as quotes are where they belong.

use marquetry_kernels::marks::{self, BLOCK_BYTES};

/// Blocks that are looked at together.
pub(super) const BLOCKS: usize = 32;

/// What a block begins with, or what follows the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    /// Its first byte is in quotes.
    pub(super) is_quoted: bool,
    /// It follows the second quote of a field.
    pub(super) is_closed: bool,
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

/// Finds the ends in as many whole blocks as there are, up to [`BLOCKS`], and before the first one where a quote is neither at an end of a
/// field nor doubled. Returns how many blocks that were.
pub(super) fn ends(
    text: &[u8],
    delimiter: u8,
    quote: Option<u8>,
    before: &mut Before,
    out: &mut [Ends; BLOCKS],
) -> usize {
    let mut found = [[0; 3]; BLOCKS];
    let text = &text[..text.len().min(BLOCKS * BLOCK_BYTES)];
    // Without quotes, the delimiter is looked for twice.
    let blocks = marks::find(text, [delimiter, b'\n', quote.unwrap_or(delimiter)], &mut found);
    for (at, ([delimiters, line_ends, quotes], out)) in found[..blocks].iter().zip(out).enumerate() {
        let quotes = if quote.is_some() { *quotes } else { 0 };
        let Some(ends) = ends_of(*delimiters, *line_ends, quotes, before) else { return at };
        *out = ends;
    }
    blocks
}

fn ends_of(delimiters: u64, line_ends: u64, quotes: u64, before: &mut Before) -> Option<Ends> {
    // Opening quotes are inside, closing ones are not. Of two in the middle of a field, the first one closes it for a moment.
    let inside = marks::parity(quotes) ^ if before.is_quoted { u64::MAX } else { 0 };
    let (opening, closing) = (quotes & inside, quotes & !inside);
    let all = (delimiters | line_ends) & !inside;
    let after_closing = closing << 1 | u64::from(before.is_closed);
    let starts = all << 1 | u64::from(before.is_start);
    let is_right = opening & !(starts | after_closing) == 0 && after_closing & !(all | opening) == 0;
    if !is_right {
        return None;
    }
    let last = |bits: u64| bits >> 63 == 1;
    *before = Before { is_quoted: last(inside), is_closed: last(closing), is_start: last(all) };
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
            let next = Before { is_quoted: false, is_closed: false, is_start: false };
            now = if now.is_quoted {
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
        let parts: [&[u8]; 9] =
            [b"a,", b"\"b\",", b"\"\",", b"\"c,\"\"\n\"\n", b"1\n", b"\"\"\"\",", b"\"", b"x", b"\"d\"e"];
        let (mut whole, mut stopped) = (0, 0);
        for round in 0..2000 {
            // What comes last is wrong somewhere, and not in every text.
            let kinds = if round % 3 == 0 { parts.len() } else { 6 };
            let mut text: Vec<u8> = Vec::new();
            while text.len() < 200 + random(3000) {
                text.extend_from_slice(parts[if random(40) == 0 { random(kinds) } else { random(6) }]);
            }
            let quote = (round % 7 > 0).then_some(b'"');
            let start = Before { is_quoted: random(5) == 0, is_closed: false, is_start: random(2) == 0 };
            let (mut before, mut expected_before) = (start, start);
            let mut found = [Ends::default(); BLOCKS];
            let count = ends(&text, b',', quote, &mut before, &mut found);
            let mut blocks = text.chunks_exact(BLOCK_BYTES).take(BLOCKS);
            for ends in &found[..count] {
                let block = blocks.next().unwrap();
                assert_eq!(one_by_one(block, quote, &mut expected_before).as_ref(), Some(ends));
            }
            assert_eq!(before, expected_before);
            match blocks.next() {
                None => whole += 1,
                Some(block) => {
                    assert_eq!(one_by_one(block, quote, &mut expected_before), None);
                    stopped += 1;
                }
            }
        }
        assert!(whole > 300 && stopped > 300, "{whole}, {stopped}");
    }
}
