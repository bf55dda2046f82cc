//! The Thrift compact protocol, written.
//!
//! Source: Thrift's `thrift-compact-protocol.md`.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use marquetry_base::cast::{low_u8, u64_of};
use marquetry_base::{Budget, Bytes, Release, release_all};

use super::read::Kind;

/// A piece ends after this many bytes: a footer is sent in pieces far below 1 MiB.
const PIECE_BYTES: usize = 64 << 10;
/// A longer string is a piece of its own, and is shared, not copied.
const SHARED_BYTES_MIN: usize = 4 << 10;

/// Writes compact-protocol bytes, as consecutive pieces.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    whole: VecDeque<Bytes>,
    current: Vec<u8>,
    /// Bytes of all pieces so far, and those of them that are shared, not copied.
    length: u64,
    shared: u64,
}

impl Release for Writer {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.whole, &mut self.current], budget)
    }
}

/// The fields of a structure, written in ascending order.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    writer: &'a mut Writer,
    last: i16,
}

impl Writer {
    /// An empty writer.
    pub(crate) fn new() -> Writer {
        Writer::default()
    }

    /// Bytes written so far, including those already taken.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes copied so far.
    pub(crate) fn copied(&self) -> u64 {
        self.length - self.shared
    }

    /// The last bytes that were written: not many, and perhaps none.
    pub(crate) fn last_bytes(&self) -> &[u8] {
        &self.current
    }

    /// The next complete piece.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        self.whole.pop_front()
    }

    /// True if a piece can be taken.
    pub(crate) fn has_whole(&self) -> bool {
        !self.whole.is_empty()
    }

    /// Ends the last piece.
    pub(crate) fn finish(&mut self) {
        if !self.current.is_empty() {
            let piece = core::mem::take(&mut self.current);
            self.whole.push_back(piece.into());
        }
    }

    /// Everything in one piece, if it is known to be short.
    pub(crate) fn into_vec(mut self) -> Vec<u8> {
        if self.whole.is_empty() {
            return self.current;
        }
        self.finish();
        self.whole.iter().flat_map(|piece| piece.iter().copied()).collect()
    }

    /// Bytes that are Thrift already, or none.
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.current.extend_from_slice(bytes);
        self.length += u64_of(bytes.len());
        if self.current.len() >= PIECE_BYTES {
            self.finish();
        }
    }

    fn byte(&mut self, byte: u8) {
        self.raw(&[byte]);
    }

    /// An unsigned LEB128 number.
    pub(crate) fn varint(&mut self, mut value: u64) {
        let mut bytes = [0; 10];
        let mut length = 0;
        while value >= 0x80 {
            bytes[length] = low_u8(value) | 0x80;
            value >>= 7;
            length += 1;
        }
        bytes[length] = low_u8(value);
        self.raw(&bytes[..=length]);
    }

    /// A zigzag number.
    pub(crate) fn i64(&mut self, value: i64) {
        self.varint((value << 1 ^ value >> 63).cast_unsigned());
    }

    /// A count or an offset, which Thrift only has as signed numbers.
    pub(crate) fn u64(&mut self, value: u64) {
        self.i64(value.cast_signed());
    }

    /// A string of bytes.
    pub(crate) fn binary(&mut self, bytes: &[u8]) {
        self.varint(u64_of(bytes.len()));
        self.raw(bytes);
    }

    /// A string of bytes, which is shared if it is long.
    pub(crate) fn shared(&mut self, bytes: &Bytes) {
        if bytes.len() < SHARED_BYTES_MIN {
            return self.binary(bytes);
        }
        self.varint(u64_of(bytes.len()));
        self.finish();
        self.whole.push_back(bytes.clone());
        self.length += u64_of(bytes.len());
        self.shared += u64_of(bytes.len());
    }

    /// A list's head.
    pub(crate) fn list(&mut self, kind: Kind, length: usize) {
        match u8::try_from(length) {
            Ok(short) if short < 15 => self.byte(short << 4 | kind.number()),
            _ => {
                self.byte(0xf0 | kind.number());
                self.varint(u64_of(length));
            }
        }
    }

    /// The header of a field that follows the field `last`.
    pub(crate) fn field(&mut self, last: i16, id: i16, kind: Kind) {
        match id.checked_sub(last).and_then(|delta| u8::try_from(delta).ok()) {
            Some(delta @ 1..=15) => self.byte(delta << 4 | kind.number()),
            _ => {
                self.byte(kind.number());
                self.i64(id.into());
            }
        }
    }

    /// The end of a structure.
    pub(crate) fn stop(&mut self) {
        self.byte(0);
    }

    /// A complete structure.
    pub(crate) fn structure(&mut self, write: impl FnOnce(&mut Fields<'_>)) {
        self.structure_after(0, write);
    }

    /// The rest of a structure whose field `last` was written already.
    pub(crate) fn structure_after(&mut self, last: i16, write: impl FnOnce(&mut Fields<'_>)) {
        let mut fields = Fields { writer: self, last };
        write(&mut fields);
        self.stop();
    }
}

impl Fields<'_> {
    /// The header of a field, whose value is then written to the returned writer.
    pub(crate) fn head(&mut self, id: i16, kind: Kind) -> &mut Writer {
        self.writer.field(self.last, id, kind);
        self.last = id;
        self.writer
    }

    /// A boolean.
    pub(crate) fn bool(&mut self, id: i16, value: bool) {
        self.head(id, if value { Kind::True } else { Kind::False });
    }

    /// One byte.
    pub(crate) fn i8(&mut self, id: i16, value: i8) {
        self.head(id, Kind::I8).byte(value.cast_unsigned());
    }

    /// A number of 16 bits.
    pub(crate) fn i16(&mut self, id: i16, value: i16) {
        self.head(id, Kind::I16).i64(value.into());
    }

    /// A number of 32 bits.
    pub(crate) fn i32(&mut self, id: i16, value: i32) {
        self.head(id, Kind::I32).i64(value.into());
    }

    /// A count, size or length of 31 bits, which Thrift only has as signed numbers.
    pub(crate) fn u32(&mut self, id: i16, value: u32) {
        self.i32(id, value.cast_signed());
    }

    /// A count, size or offset of 63 bits.
    pub(crate) fn u64(&mut self, id: i16, value: u64) {
        self.head(id, Kind::I64).u64(value);
    }

    /// A floating-point number.
    pub(crate) fn double(&mut self, id: i16, value: f64) {
        self.head(id, Kind::Double).raw(&value.to_le_bytes());
    }

    /// A string.
    pub(crate) fn binary(&mut self, id: i16, bytes: &[u8]) {
        self.head(id, Kind::Binary).binary(bytes);
    }

    /// A string that is shared if it is long.
    pub(crate) fn shared(&mut self, id: i16, bytes: &Bytes) {
        self.head(id, Kind::Binary).shared(bytes);
    }

    /// A structure.
    pub(crate) fn structure(&mut self, id: i16, write: impl FnOnce(&mut Fields<'_>)) {
        self.head(id, Kind::Struct).structure(write);
    }

    /// A structure without fields, as members of unions.
    pub(crate) fn empty(&mut self, id: i16) {
        self.structure(id, |_| {});
    }

    /// A list.
    pub(crate) fn list<T>(
        &mut self,
        id: i16,
        kind: Kind,
        values: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Writer, T),
    ) {
        let writer = self.head(id, Kind::List);
        writer.list(kind, values.len());
        for value in values {
            write(writer, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thrift::Reader;
    use alloc::vec;

    #[test]
    fn numbers_are_read_back() {
        let numbers = [0, 1, -1, 63, 64, -64, -65, i64::from(i32::MAX), i64::MIN, i64::MAX];
        let mut writer = Writer::new();
        numbers.iter().for_each(|number| writer.i64(*number));
        let bytes = writer.into_vec();
        let mut reader = Reader::new(&bytes, 0);
        for number in numbers {
            assert_eq!(reader.i64(), Ok(number));
        }
        assert_eq!(reader.rest(), 0);
    }

    #[test]
    fn fields_far_apart_and_long_lists() {
        let mut writer = Writer::new();
        writer.structure(|fields| {
            fields.bool(1, true);
            fields.i32(300, -5);
            fields.list(301, Kind::I64, 0..20u32, |writer, value| writer.u64(value.into()));
            fields.double(302, 0.5);
        });
        let bytes = writer.into_vec();
        let mut seen = Vec::new();
        let mut reader = Reader::new(&bytes, 0);
        reader
            .structure(|reader, field| {
                seen.push(field.id);
                match field.id {
                    300 => assert_eq!(reader.i32(), Ok(-5)),
                    301 => assert_eq!(reader.each(Kind::I64, Reader::i64).map(|all| all.len()), Ok(20)),
                    302 => assert_eq!(reader.double(), Ok(0.5)),
                    _ => return Ok(false),
                }
                Ok(true)
            })
            .unwrap();
        assert_eq!((seen, reader.rest()), (vec![1, 300, 301, 302], 0));
    }

    #[test]
    fn long_strings_are_shared_and_pieces_are_short() {
        let long = Bytes::from(vec![7; 3 << 20]);
        let mut writer = Writer::new();
        writer.shared(&long);
        (0..100_000).for_each(|number| writer.i64(number));
        writer.finish();
        let length = writer.length();
        let pieces: Vec<Bytes> = core::iter::from_fn(|| writer.take()).collect();
        assert_eq!(pieces[1].as_ptr(), long.as_ptr());
        assert!(pieces[2..].iter().all(|piece| piece.len() < PIECE_BYTES + 10));
        assert_eq!(pieces.iter().map(|piece| u64_of(piece.len())).sum::<u64>(), length);
    }
}
