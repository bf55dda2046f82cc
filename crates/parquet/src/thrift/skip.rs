//! Structures that nobody asked for, skipped without being parsed.
//!
//! A footer of very many columns is mostly of column chunks that are not wanted. They are skipped without a reader, a
//! field's number or an allocation: all that counts is where each value ends.

use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Error, Price, Release, Result};

use super::alike::Layouts;
use super::ends::{length, varint_end};
use super::read::{Kind, SKIP_DEPTH_MAX, Stop, Thrift};

/// The price of skipping: of a token, and of the bytes between them.
const SKIP_PRICE: Price = Price { kib: 64, kilovalue: 4 << 10 };
/// Tokens between two looks at the budget, and what structures that are [alike](Layouts) cost between two.
const TOKENS_AT_ONCE: usize = 2048;
const UNITS_AT_ONCE: u64 = 8 << 10;
/// A token is at most a field's header with a number, and a head with two.
const TOKEN_BYTES_MAX: usize = 32;

/// Skips structures that follow each other, resumably, in pieces of any size.
///
/// What is skipped is not checked, but for what says where it ends: types, lengths, and how deep it is nested.
#[derive(Debug)]
pub(crate) struct Skipper {
    what: &'static str,
    start: u64,
    /// What is open; the first is the list of the structures.
    frames: Vec<Frame>,
    /// Bytes of a value that are still to come.
    raw: u64,
    /// The beginning of a token whose end is in the next piece.
    token: [u8; TOKEN_BYTES_MAX],
    token_bytes: usize,
    /// What the structures look like.
    layouts: Layouts,
}

#[derive(Debug, Clone, Copy)]
enum Frame {
    Struct,
    /// So many more elements.
    List {
        kind: Kind,
        left: u64,
    },
    /// So many more keys and values.
    Map {
        key: Kind,
        value: Kind,
        left: u64,
    },
}

impl Release for Skipper {}

impl Skipper {
    /// Skips nothing yet.
    pub(crate) fn new() -> Skipper {
        Skipper {
            what: "",
            start: 0,
            frames: Vec::with_capacity(8),
            raw: 0,
            token: [0; TOKEN_BYTES_MAX],
            token_bytes: 0,
            layouts: Layouts::default(),
        }
    }

    /// Once all is skipped: skips `count` structures more, the first of which starts at `start` in the file.
    pub(crate) fn begin(&mut self, what: &'static str, start: u64, count: usize) {
        (self.what, self.start, self.raw, self.token_bytes) = (what, start, 0, 0);
        self.frames.clear();
        self.frames.push(Frame::List { kind: Kind::Struct, left: u64_of(count) });
    }

    /// Where the first of the structures starts.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Continues with the bytes that follow. Returns how many were skipped, and whether all is; no byte after that is
    /// touched. If not all is, it needs more bytes or budget.
    ///
    /// # Errors
    ///
    /// `Corrupt` for invalid Thrift.
    pub(crate) fn step(&mut self, piece: &[u8], budget: &mut Budget<'_>) -> Result<(usize, bool)> {
        self.skip(piece, budget).map_err(|stop| -> Error { stop.into_error(self.what, self.start) })
    }

    fn skip(&mut self, piece: &[u8], budget: &mut Budget<'_>) -> Thrift<(usize, bool)> {
        let mut at = 0;
        loop {
            if self.token_bytes > 0 {
                self.end_token(piece, &mut at)?;
                budget.charge(SKIP_PRICE, 0, 1);
            } else {
                if self.alike(piece, &mut at, budget) {
                    return Ok((at, false));
                }
                let (before, begins) = (at, self.frames.len() == 1);
                let tokens = self.tokens(piece, &mut at, TOKENS_AT_ONCE)?;
                budget.charge(SKIP_PRICE, at - before, tokens);
                if begins && self.frames.len() <= 1 {
                    let structure = piece.get(before..at).unwrap_or_default();
                    self.layouts.learn(structure, budget);
                } else if tokens < TOKENS_AT_ONCE && self.frames.len() > 1 {
                    // The rest is the beginning of a token, or nothing.
                    let rest = piece.get(at..).unwrap_or_default();
                    if let Some(token) = self.token.get_mut(..rest.len()) {
                        token.copy_from_slice(rest);
                    }
                    (self.token_bytes, at) = (rest.len(), piece.len());
                }
            }
            if self.is_done() {
                return Ok((at, true));
            }
            if at == piece.len() || budget.is_spent() {
                return Ok((at, false));
            }
        }
    }

    /// Skips structures that look like those before, as far as they do. True if more may follow, but not of this budget.
    fn alike(&mut self, piece: &[u8], at: &mut usize, budget: &mut Budget<'_>) -> bool {
        let [Frame::List { left, .. }] = self.frames.as_mut_slice() else { return false };
        while *left > 0 {
            let before = budget.spent();
            while *left > 0 && budget.spent() - before < UNITS_AT_ONCE {
                let Some(end) = self.layouts.end(piece, *at, budget) else { return false };
                (*at, *left) = (end, *left - 1);
            }
            if *left > 0 && budget.is_spent() {
                return true;
            }
        }
        false
    }

    fn is_done(&self) -> bool {
        self.frames.is_empty() && self.raw == 0
    }

    /// Adds bytes to a token that was cut, until it is complete or the piece ends.
    fn end_token(&mut self, piece: &[u8], at: &mut usize) -> Thrift<()> {
        while let (Some(&byte), Some(next)) = (piece.get(*at), self.token.get_mut(self.token_bytes)) {
            *next = byte;
            (self.token_bytes, *at) = (self.token_bytes + 1, *at + 1);
            let token = self.token;
            let token = token.get(..self.token_bytes).unwrap_or_default();
            if self.tokens(token, &mut 0, 1)? > 0 {
                self.token_bytes = 0;
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes tokens: so many, or as many as are complete. Returns how many.
    fn tokens(&mut self, data: &[u8], position: &mut usize, tokens_max: usize) -> Thrift<usize> {
        let (mut at, mut done) = (*position, 0);
        'values: while done < tokens_max {
            if self.raw > 0 {
                let there = data.len() - at;
                let skipped = usize_of(self.raw).unwrap_or(usize::MAX).min(there);
                (at, self.raw) = (at + skipped, self.raw - u64_of(skipped));
                if self.raw > 0 {
                    break;
                }
            }
            match self.frames.last_mut() {
                None => break,
                Some(Frame::List { left: 0, .. } | Frame::Map { left: 0, .. }) => drop(self.frames.pop()),
                Some(Frame::Struct) => {
                    // Most is scalars in structures, which change nothing but the position.
                    while let Some(&head) = data.get(at) {
                        if done == tokens_max {
                            break 'values;
                        }
                        let mut next = at + 1;
                        if head == 0 {
                            self.frames.pop();
                            (at, done) = (next, done + 1);
                            // The next of the structures may be like one before.
                            if self.frames.len() == 1 {
                                break 'values;
                            }
                            continue 'values;
                        }
                        if head >> 4 == 0 {
                            let Some(end) = varint_end(data, next)? else { break 'values };
                            next = end;
                        }
                        match head & 0x0f {
                            1 | 2 => {}
                            4..=6 => {
                                let Some(end) = varint_end(data, next)? else { break 'values };
                                next = end;
                            }
                            8 => {
                                let Some((length, end)) = length(data, next)? else { break 'values };
                                next = end.saturating_add(length);
                                if next > data.len() {
                                    self.raw = u64_of(next - data.len());
                                    (at, done) = (data.len(), done + 1);
                                    continue 'values;
                                }
                            }
                            number => {
                                let kind = kind(number, at)?;
                                let Some(end) = self.value(kind, data, next)? else { break 'values };
                                (at, done) = (end, done + 1);
                                continue 'values;
                            }
                        }
                        (at, done) = (next, done + 1);
                    }
                    break;
                }
                Some(Frame::List { kind: Kind::I16 | Kind::I32 | Kind::I64, left }) => {
                    while *left > 0 && done < tokens_max {
                        let Some(end) = varint_end(data, at)? else { break 'values };
                        (at, done) = (end, done + 1);
                        *left -= 1;
                    }
                }
                Some(Frame::List { kind, .. }) => {
                    let (kind, depth) = (*kind, self.frames.len());
                    let Some(end) = self.value(kind, data, at)? else { break };
                    (at, done) = (end, done + 1);
                    if let Some(Frame::List { left, .. }) = self.frames.get_mut(depth - 1) {
                        *left -= 1;
                    }
                }
                Some(Frame::Map { key, value, left }) => {
                    // Keys and values alternate.
                    let (kind, depth) = (if *left % 2 == 0 { *key } else { *value }, self.frames.len());
                    let Some(end) = self.value(kind, data, at)? else { break };
                    (at, done) = (end, done + 1);
                    if let Some(Frame::Map { left, .. }) = self.frames.get_mut(depth - 1) {
                        *left -= 1;
                    }
                }
            }
        }
        while let Some(Frame::List { left: 0, .. } | Frame::Map { left: 0, .. }) = self.frames.last() {
            self.frames.pop();
        }
        *position = at;
        Ok(done)
    }

    /// Takes a value, or its head; returns its end. `None` if that has not arrived. (A boolean that is a field has no
    /// bytes, and is not asked for here.)
    fn value(&mut self, kind: Kind, data: &[u8], at: usize) -> Thrift<Option<usize>> {
        if let Some(bytes) = kind.element_bytes() {
            self.raw = u64_of(bytes);
            return Ok(Some(at));
        }
        match kind {
            Kind::I16 | Kind::I32 | Kind::I64 => varint_end(data, at),
            Kind::Binary => {
                let Some((length, end)) = length(data, at)? else { return Ok(None) };
                self.raw = u64_of(length);
                Ok(Some(end))
            }
            Kind::List | Kind::Set => {
                let Some(&head) = data.get(at) else { return Ok(None) };
                let (mut left, mut end) = (u64::from(head >> 4), at + 1);
                if left == 15 {
                    let Some((length, next)) = length(data, end)? else { return Ok(None) };
                    (left, end) = (u64_of(length), next);
                }
                if left > 0 {
                    let kind = self::kind(head & 0x0f, at)?;
                    match kind.element_bytes() {
                        Some(bytes) => {
                            self.check_depth(at)?;
                            self.raw = left.saturating_mul(u64_of(bytes));
                        }
                        None => self.open(Frame::List { kind, left }, at)?,
                    }
                }
                Ok(Some(end))
            }
            Kind::Map => {
                let Some((length, end)) = length(data, at)? else { return Ok(None) };
                if length == 0 {
                    return Ok(Some(end));
                }
                let Some(&kinds) = data.get(end) else { return Ok(None) };
                let (key, value) = (self::kind(kinds >> 4, at)?, self::kind(kinds & 0x0f, at)?);
                self.open(Frame::Map { key, value, left: 2 * u64_of(length) }, at)?;
                Ok(Some(end + 1))
            }
            _ => {
                self.open(Frame::Struct, at)?;
                Ok(Some(at))
            }
        }
    }

    fn open(&mut self, frame: Frame, at: usize) -> Thrift<()> {
        self.check_depth(at)?;
        self.frames.push(frame);
        Ok(())
    }

    fn check_depth(&self, at: usize) -> Thrift<()> {
        // The list of the structures and the structure itself are no nesting.
        if self.frames.len() > SKIP_DEPTH_MAX as usize + 1 {
            return Err(Stop::Corrupt(at, "structures nested too deep"));
        }
        Ok(())
    }
}

fn kind(number: u8, at: usize) -> Thrift<Kind> {
    Kind::of(number).ok_or(Stop::Corrupt(at, "an unknown Thrift type"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thrift::{Reader, Writer};

    fn skipped(bytes: &[u8], count: usize, piece_bytes: usize, units: u64) -> Result<Option<usize>> {
        let (mut skipper, mut at) = (Skipper::new(), 0);
        skipper.begin("a test", 0, count);
        for _ in 0..10 * bytes.len() + 10 {
            let end = bytes.len().min(at + piece_bytes);
            let (skipped, is_done) = skipper.step(&bytes[at..end], &mut Budget::new(units))?;
            at += skipped;
            if is_done {
                return Ok(Some(at));
            }
            if at == bytes.len() {
                return Ok(None);
            }
        }
        panic!("it does not go on");
    }

    fn structure() -> Vec<u8> {
        let mut writer = Writer::new();
        writer.structure(|fields| {
            fields.bool(1, true);
            fields.i8(2, 3);
            fields.u64(300, 1 << 63);
            fields.double(301, 0.5);
            fields.binary(302, b"text");
            fields.binary(303, &[7; 300]);
            fields.binary(304, b"");
            fields.structure(305, |fields| fields.structure(1, |fields| fields.i32(1, -70_000)));
            fields.list(306, Kind::I64, 0..40_i32, |writer, value| writer.i64(i64::from(value) << 33));
            fields
                .list(307, Kind::Struct, 0..3, |writer, _| writer.structure(|fields| fields.bool(9, false)));
            fields.list(308, Kind::Double, 0..0, |_, _: u8| {});
            fields.list(309, Kind::Double, 0..20, |writer, _: u8| writer.raw(&[255; 8]));
            fields.list(310, Kind::Binary, 0..3, |writer, _| writer.binary(b"name"));
            fields.list(311, Kind::List, 0..2, |writer, _| writer.list(Kind::I8, 0));
        });
        let mut bytes = writer.into_vec();
        bytes.pop();
        // A map from strings to lists of booleans, an empty map, sixteen bytes; and the end.
        bytes.extend([0x1b, 2, 0x89, 1, b'k', 0x21, 1, 2, 2, b'k', b'l', 0x01, 0x1b, 0, 0x1d]);
        bytes.extend([255; 16]);
        bytes.push(0);
        bytes
    }

    #[test]
    fn it_ends_where_a_reader_ends_in_pieces_of_any_size() {
        let bytes = [structure(), structure(), alloc::vec![0x18, 0xff]].concat();
        let mut reader = Reader::new(&bytes, 0);
        let mut ends = alloc::vec![0];
        for _ in 0..2 {
            reader.skip(Kind::Struct).unwrap();
            ends.push(reader.at());
        }
        assert_eq!(ends[2], bytes.len() - 2);
        for (count, end) in ends.iter().enumerate() {
            for piece_bytes in (1..40).chain([100, 1 << 20]) {
                for units in [0, 1, 10, u64::MAX] {
                    assert_eq!(skipped(&bytes, count, piece_bytes, units), Ok(Some(*end)), "{piece_bytes}");
                    for cut in [1, 7, 300] {
                        let short = &bytes[..end.saturating_sub(cut)];
                        if count > 0 {
                            assert_eq!(skipped(short, count, piece_bytes, units), Ok(None));
                        }
                    }
                }
            }
        }
    }

    /// Whatever the bytes are, what comes of them does not depend on pieces.
    #[test]
    fn bytes_that_are_no_structures() {
        let mut random = 0x1234_5678_9abc_def1_u64;
        let mut next = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let whole = structure();
        let mut endings = [0; 3];
        for _ in 0..3000 {
            let mut bytes = whole.clone();
            for _ in 0..1 + next() % 3 {
                let at = usize::try_from(next()).unwrap() % bytes.len();
                bytes[at] = next().to_le_bytes()[3];
            }
            let one = skipped(&bytes, 2, usize::MAX >> 1, u64::MAX);
            let number = match &one {
                Ok(Some(_)) => 0,
                Ok(None) => 1,
                Err(_) => 2,
            };
            endings[number] += 1;
            for piece_bytes in [1, 3, 17] {
                assert_eq!(skipped(&bytes, 2, piece_bytes, 1), one);
            }
            // What a reader accepts, it accepts.
            let mut reader = Reader::new(&bytes, 0);
            if reader.skip(Kind::Struct).is_ok() && reader.skip(Kind::Struct).is_ok() {
                assert_eq!(one, Ok(Some(reader.at())));
            }
        }
        assert!(endings[1] > 100 && endings[2] > 100, "{endings:?}");
    }

    #[test]
    fn nesting_is_bounded_as_a_readers_is() {
        for depth in [10, 63, 64, 65, 66, 1000] {
            let nested = [alloc::vec![0x1c; depth], alloc::vec![0; depth + 1]].concat();
            let read = Reader::new(&nested, 0).skip(Kind::Struct).is_ok();
            assert_eq!(skipped(&nested, 1, 1 << 20, u64::MAX).is_ok(), read, "{depth}");
            assert_eq!(read, depth <= 64);
            assert_eq!(skipped(&nested, 1, 1, 0).is_ok(), read, "{depth}");
        }
    }
}
