//! The Thrift compact protocol, read from a slice.
//!
//! Source: Thrift's `thrift-compact-protocol.md`. Only what Parquet's structures need; unknown fields are skipped, as
//! the format's forward compatibility requires.

use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::cast::usize_of;
use marquetry_base::{Bytes, Error};

/// Bytes of a string where only a short one is wanted, at most. Of a longer one, a [digest](super::Skim) has a byte more than that.
pub(crate) const SHORT_BYTES_MAX: usize = 4 << 10;

/// Why reading stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The slice ended in the middle of the structure: more bytes may complete it.
    End,
    /// The bytes are not such a structure: the offset in the slice, and why.
    Corrupt(usize, &'static str),
    /// A field has another type than this version expects. As in Thrift's own readers, it is skipped.
    OtherType,
}

/// The result of reading a piece of Thrift.
pub type Thrift<T> = core::result::Result<T, Stop>;

impl Stop {
    /// The error for a structure that should have been complete and begins at `start` in the file. Its place is the
    /// structure's start, not the exact byte: a skimmed structure is not read in place.
    pub fn into_error(self, what: &'static str, start: u64) -> Error {
        let error = match self {
            Stop::End => Error::corrupt(alloc::format!("{what} ends in the middle of its Thrift structure")),
            Stop::OtherType => Error::internal("a field of another type was not skipped"),
            Stop::Corrupt(_, why) => Error::corrupt(alloc::format!("{what}: {why}")),
        };
        error.at_offset(start)
    }
}

/// The type of a field or an element, as the compact protocol numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A field whose value is in its header; an element of one byte.
    True,
    /// The same, false.
    False,
    /// One byte.
    I8,
    /// Zigzag varint.
    I16,
    /// Zigzag varint.
    I32,
    /// Zigzag varint.
    I64,
    /// Eight bytes, little-endian.
    Double,
    /// Length and bytes.
    Binary,
    /// A list.
    List,
    /// A set, written as a list.
    Set,
    /// A map.
    Map,
    /// A structure.
    Struct,
    /// Sixteen bytes.
    Uuid,
}

impl Kind {
    /// The kind of a number.
    pub(super) fn of(number: u8) -> Option<Kind> {
        Some(match number {
            1 => Kind::True,
            2 => Kind::False,
            3 => Kind::I8,
            4 => Kind::I16,
            5 => Kind::I32,
            6 => Kind::I64,
            7 => Kind::Double,
            8 => Kind::Binary,
            9 => Kind::List,
            10 => Kind::Set,
            11 => Kind::Map,
            12 => Kind::Struct,
            13 => Kind::Uuid,
            _ => return None,
        })
    }

    /// Its number.
    pub(super) fn number(self) -> u8 {
        match self {
            Kind::True => 1,
            Kind::False => 2,
            Kind::I8 => 3,
            Kind::I16 => 4,
            Kind::I32 => 5,
            Kind::I64 => 6,
            Kind::Double => 7,
            Kind::Binary => 8,
            Kind::List => 9,
            Kind::Set => 10,
            Kind::Map => 11,
            Kind::Struct => 12,
            Kind::Uuid => 13,
        }
    }

    /// Bytes of an element of a list, if it is the same for all.
    pub(super) fn element_bytes(self) -> Option<usize> {
        match self {
            Kind::True | Kind::False | Kind::I8 => Some(1),
            Kind::Double => Some(8),
            Kind::Uuid => Some(16),
            _ => None,
        }
    }
}

/// A field's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its number in the structure.
    pub id: i16,
    /// Its type.
    pub kind: Kind,
}

/// Maximum nesting of structures in a skipped field. Thrift's own readers use 64.
pub(super) const SKIP_DEPTH_MAX: u32 = 64;

/// A reader of compact-protocol bytes.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    data: &'a [u8],
    at: usize,
    /// In a digest: the strings that are stored beside it.
    beside: Option<&'a [Bytes]>,
}

impl<'a> Reader<'a> {
    /// A reader that starts at `at` of `data`.
    pub fn new(data: &'a [u8], at: usize) -> Reader<'a> {
        Reader { data, at: at.min(data.len()), beside: None }
    }

    /// A reader of the digest of a skimmed structure. There, an even head of a string is twice its length; an odd one
    /// is twice its index in `beside`, plus one.
    pub(super) fn of_digest(data: &'a [u8], beside: &'a [Bytes]) -> Reader<'a> {
        Reader { data, at: 0, beside: Some(beside) }
    }

    /// The position in the slice.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Bytes that follow.
    pub fn rest(&self) -> usize {
        self.data.len() - self.at
    }

    /// Stops with a reason.
    pub fn corrupt<T>(&self, why: &'static str) -> Thrift<T> {
        Err(Stop::Corrupt(self.at, why))
    }

    /// Bytes that follow.
    pub fn left(&self) -> usize {
        self.data.len() - self.at
    }

    fn byte(&mut self) -> Thrift<u8> {
        let byte = *self.data.get(self.at).ok_or(Stop::End)?;
        self.at += 1;
        Ok(byte)
    }

    /// An unsigned LEB128 number.
    pub fn varint(&mut self) -> Thrift<u64> {
        // Most are short.
        let mut value = u64::from(self.byte()?);
        if value < 0x80 {
            return Ok(value);
        }
        value &= 0x7f;
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        self.corrupt("a number longer than 64 bits")
    }

    /// A zigzag number.
    pub fn i64(&mut self) -> Thrift<i64> {
        let raw = self.varint()?;
        Ok((raw >> 1).cast_signed() ^ -((raw & 1).cast_signed()))
    }

    /// A zigzag number that must fit 32 bits.
    pub fn i32(&mut self) -> Thrift<i32> {
        let value = self.i64()?;
        i32::try_from(value).or_else(|_| self.corrupt("a number beyond 32 bits"))
    }

    /// A zigzag number that must fit 16 bits.
    pub fn i16(&mut self) -> Thrift<i16> {
        let value = self.i64()?;
        i16::try_from(value).or_else(|_| self.corrupt("a number beyond 16 bits"))
    }

    /// One byte.
    pub fn i8(&mut self) -> Thrift<i8> {
        Ok(self.byte()?.cast_signed())
    }

    /// Eight bytes, little-endian.
    pub fn double(&mut self) -> Thrift<f64> {
        let bytes = self.take(8)?;
        Ok(f64::from_le_bytes(bytes.try_into().map_err(|_| Stop::End)?))
    }

    fn take(&mut self, length: usize) -> Thrift<&'a [u8]> {
        let bytes = self.data.get(self.at..).and_then(|rest| rest.get(..length)).ok_or(Stop::End)?;
        self.at += length;
        Ok(bytes)
    }

    /// A string of bytes.
    pub fn binary(&mut self) -> Thrift<&'a [u8]> {
        let length = match self.string_head()? {
            Ok(length) => length,
            Err(beside) => return Ok(beside),
        };
        // Thrift's lengths are signed 32-bit numbers.
        if length > i32::MAX as u64 {
            return self.corrupt("a length beyond 2 GiB");
        }
        self.take(usize_of(length).ok_or(Stop::End)?)
    }

    /// A string's length; or the string itself, if it is beside a digest.
    fn string_head(&mut self) -> Thrift<Result<u64, &'a Bytes>> {
        let head = self.varint()?;
        match self.beside {
            None => Ok(Ok(head)),
            Some(_) if head & 1 == 0 => Ok(Ok(head >> 1)),
            Some(beside) => match usize_of(head >> 1).and_then(|number| beside.get(number)) {
                Some(string) => Ok(Err(string)),
                None => self.corrupt("a string that is not there"),
            },
        }
    }

    /// A string of bytes, owned: one beside a digest is shared.
    pub fn bytes(&mut self) -> Thrift<Bytes> {
        let before = self.at;
        if let Err(beside) = self.string_head()? {
            return Ok(beside.clone());
        }
        self.at = before;
        Ok(Bytes::copy_from_slice(self.binary()?))
    }

    /// A string of bytes, owned; `None` for one that is longer than [`SHORT_BYTES_MAX`].
    pub(crate) fn short_bytes(&mut self) -> Thrift<Option<Bytes>> {
        let bytes = self.binary()?;
        Ok((bytes.len() <= SHORT_BYTES_MAX).then(|| Bytes::copy_from_slice(bytes)))
    }

    /// A string of characters.
    pub fn string(&mut self) -> Thrift<String> {
        let bytes = self.binary()?;
        match core::str::from_utf8(bytes) {
            Ok(text) => Ok(text.into()),
            Err(_) => self.corrupt("a string that is not UTF-8"),
        }
    }

    /// The value of a boolean field, which is in its header.
    pub fn bool(&self, field: Field) -> Thrift<bool> {
        match field.kind {
            Kind::True => Ok(true),
            Kind::False => Ok(false),
            _ => Err(Stop::OtherType),
        }
    }

    /// The next field of a structure, or `None` at its end. `last` is the previous field (0 at the start).
    pub fn field(&mut self, last: i16) -> Thrift<Option<Field>> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let kind = self.kind(head & 0x0f)?;
        let id = match head >> 4 {
            0 => self.i16()?,
            delta => match last.checked_add(i16::from(delta)) {
                Some(id) => id,
                None => return self.corrupt("a field's number beyond 16 bits"),
            },
        };
        Ok(Some(Field { id, kind }))
    }

    /// A list's element type and length.
    pub fn list(&mut self) -> Thrift<(Kind, usize)> {
        let head = self.byte()?;
        let length = match head >> 4 {
            15 => self.varint()?,
            short => u64::from(short),
        };
        if length > i32::MAX as u64 {
            return self.corrupt("a list beyond 2,147,483,647 elements");
        }
        let kind = if length == 0 { Kind::I8 } else { self.kind(head & 0x0f)? };
        Ok((kind, usize_of(length).ok_or(Stop::End)?))
    }

    /// A map's types, of keys and of values, and its length.
    pub fn map(&mut self) -> Thrift<(Kind, Kind, u64)> {
        let length = self.varint()?;
        if length == 0 {
            return Ok((Kind::I8, Kind::I8, 0));
        }
        let kinds = self.byte()?;
        Ok((self.kind(kinds >> 4)?, self.kind(kinds & 0x0f)?, length))
    }

    /// A list whose elements must be of `kind`; its length.
    pub fn list_of(&mut self, kind: Kind) -> Thrift<usize> {
        let (found, length) = self.list()?;
        if length > 0 && found != kind {
            return self.corrupt("a list of another type");
        }
        Ok(length)
    }

    /// Reads a list. Memory is not allocated by its claimed length, beyond what its bytes can justify.
    pub fn each<T>(&mut self, kind: Kind, mut read: impl FnMut(&mut Self) -> Thrift<T>) -> Thrift<Vec<T>> {
        let length = self.list_of(kind)?;
        let mut all = Vec::new();
        for _ in 0..length {
            all.push(read(self)?);
        }
        Ok(all)
    }

    /// Reads a structure field by field: `read` handles a field and returns true, or false to have it skipped.
    pub fn structure(&mut self, mut read: impl FnMut(&mut Self, Field) -> Thrift<bool>) -> Thrift<()> {
        let mut last = 0;
        while let Some(field) = self.field(last)? {
            last = field.id;
            match read(self, field) {
                Ok(true) => {}
                Ok(false) | Err(Stop::OtherType) => self.skip(field.kind)?,
                Err(stop) => return Err(stop),
            }
        }
        Ok(())
    }

    /// Reads a field that should be of `kind`. If it is not, nothing is read, and its structure skips it.
    pub fn expect<T>(
        &mut self,
        field: Field,
        kind: Kind,
        read: impl FnOnce(&mut Self) -> Thrift<T>,
    ) -> Thrift<T> {
        if field.kind != kind {
            return Err(Stop::OtherType);
        }
        read(self)
    }

    /// Skips a value.
    pub fn skip(&mut self, kind: Kind) -> Thrift<()> {
        self.skip_at(kind, true, 0)
    }

    fn skip_at(&mut self, kind: Kind, in_field: bool, depth: u32) -> Thrift<()> {
        if depth > SKIP_DEPTH_MAX {
            return self.corrupt("structures nested too deep");
        }
        match kind {
            Kind::True | Kind::False if in_field => {}
            Kind::True | Kind::False | Kind::I8 => drop(self.byte()?),
            Kind::I16 | Kind::I32 | Kind::I64 => drop(self.varint()?),
            Kind::Double => drop(self.take(8)?),
            Kind::Uuid => drop(self.take(16)?),
            Kind::Binary => drop(self.binary()?),
            Kind::List | Kind::Set => {
                let (kind, length) = self.list()?;
                if length > 0 && depth >= SKIP_DEPTH_MAX {
                    return self.corrupt("structures nested too deep");
                }
                if let Some(bytes) = kind.element_bytes() {
                    self.take(length.checked_mul(bytes).ok_or(Stop::End)?)?;
                    return Ok(());
                }
                for _ in 0..length {
                    self.skip_at(kind, false, depth + 1)?;
                }
            }
            Kind::Map => {
                let (key, value, length) = self.map()?;
                for _ in 0..length {
                    self.skip_at(key, false, depth + 1)?;
                    self.skip_at(value, false, depth + 1)?;
                }
            }
            Kind::Struct => {
                let mut last = 0;
                while let Some(field) = self.field(last)? {
                    last = field.id;
                    self.skip_at(field.kind, true, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    fn kind(&self, number: u8) -> Thrift<Kind> {
        Kind::of(number).map_or_else(|| self.corrupt("an unknown Thrift type"), Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(Reader::new(&[0x80, 0x01], 0).varint(), Ok(128));
        assert_eq!(Reader::new(&[0x80], 0).varint(), Err(Stop::End));
        assert_eq!(
            Reader::new(&[0xff; 11], 0).varint(),
            Err(Stop::Corrupt(10, "a number longer than 64 bits"))
        );
        let mut max = [0xff; 10];
        max[9] = 1;
        assert_eq!(Reader::new(&max, 0).i64(), Ok(i64::MIN));
        assert_eq!(Reader::new(&[3], 0).i64(), Ok(-2));
        assert!(matches!(Reader::new(&max, 0).i32(), Err(Stop::Corrupt(..))));
    }

    #[test]
    fn skips_all_types() {
        // A structure with a list of structures, a map, booleans, a binary and a double; then a byte that is not part
        // of it.
        let bytes = [
            0x19, 0x2c, 0x11, 0x00, 0x15, 0x02, 0x00, // 1: list of 2 structures {1: true}, {1: 1}
            0x1b, 0x01, 0x85, 0x01, b'k', 0x04, // 2: map of 1: binary to i32
            0x12, 0x18, 0x02, b'h', b'i', 0x17, 1, 2, 3, 4, 5, 6, 7, 8, 0x00, 0x99,
        ];
        let mut reader = Reader::new(&bytes, 0);
        reader.skip(Kind::Struct).unwrap();
        assert_eq!(reader.rest(), 1);
        for cut in 0..bytes.len() - 1 {
            assert_eq!(Reader::new(&bytes[..cut], 0).skip(Kind::Struct), Err(Stop::End), "cut at {cut}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = [0x1c; 1000];
        assert!(matches!(
            Reader::new(&nested, 0).skip(Kind::Struct),
            Err(Stop::Corrupt(_, "structures nested too deep"))
        ));
    }
}
