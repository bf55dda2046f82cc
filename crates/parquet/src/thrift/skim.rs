//! Structures of any size, in steps of any size.
//!
//! Nearly every structure of the metadata has a few hundred bytes in one piece, and is read at once, in place. One that
//! is long, or cut by the end of a piece, is *skimmed*: a resumable walk that leaves out unknown fields, sets long
//! strings aside, and writes the rest to a *digest*. That is short, so the same code reads it at once.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Bytes, Error, Limit, Limits, Price, Release, Result, release_all};

use super::read::{Kind, Reader, SHORT_BYTES_MAX, SKIP_DEPTH_MAX, Stop, Thrift};
use crate::growing::Joining;
use crate::memory::Memory;

/// Which parts of a value are needed. A value of another kind than expected is left out, as Thrift's own readers skip
/// it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Wanted {
    /// Nothing.
    Nothing,
    /// A number, a boolean, or a short string.
    Scalar,
    /// A string of bytes, which may be long.
    Bytes,
    /// A string of at most [`SHORT_BYTES_MAX`] bytes.
    Short,
    /// A list of scalars.
    Scalars,
    /// A list of structures, and the fields of each.
    Structs(Fields),
    /// Of a list its type and length, but no element.
    Head,
    /// These fields of a structure.
    Struct(Fields),
}

/// The known fields of a structure, by their number. [`ANY`] stands for all numbers, and comes last.
pub(crate) type Fields = &'static [(i16, Wanted)];

/// Whatever number a field has.
pub(crate) const ANY: i16 = i16::MIN;

/// Bytes that are read in place: a structure that is not complete within them is skimmed.
pub(crate) const WHOLE_BYTES_MAX: usize = 16 << 10;

/// The price of reading in place.
pub(crate) const READ_PRICE: Price = Price::per_kib(3 << 10);
/// The price of skimming.
const SKIM_PRICE: Price = Price { kib: 2 << 10, kilovalue: 8 << 10 };
/// Shorter strings are copied: a shared one holds everything that the host supplied with it.
const SHARED_BYTES_MIN: u64 = 64 << 10;
/// Shorter strings are in the digest.
const BESIDE_BYTES_MIN: u64 = 256;
/// Tokens between two looks at the budget.
const TOKENS_AT_ONCE: usize = 256;

/// Replaces the kind of a field that is not of the expected kind: a kind that no structure of the format has.
const OTHER: Kind = Kind::Uuid;

/// A structure that is being skimmed.
#[derive(Debug)]
pub(crate) struct Skim {
    what: &'static str,
    /// Where it starts in the file, and where the next byte is.
    start: u64,
    at: u64,
    structure_bytes_max: u64,
    expects: Expects,
    stack: Vec<Frame>,
    /// The beginning of a token whose end is in the next piece.
    token: Vec<u8>,
    digest: Vec<u8>,
    beside: Vec<Bytes>,
}

#[derive(Debug)]
enum Expects {
    /// The next part of the innermost structure, list or map.
    Next,
    /// One field, after the field `last`, or a structure's end; and nothing more.
    Field { last: i16, fields: Fields },
    /// A value of this kind.
    Value(Kind, Wanted),
    /// This many bytes that are not needed.
    Skip(u64),
    /// This many bytes for the digest, and then this many that are not needed.
    Keep(u64, u64),
    /// This many bytes of a string beside it, after those so far.
    Beside(u64, Vec<u8>),
    /// This many more bytes of a long string, after these.
    Pieces(u64, Box<Joining>),
    /// No input: a long string is being joined.
    Join(Box<Joining>),
    /// Nothing: it is complete.
    Nothing,
}

#[derive(Debug)]
enum Frame {
    Struct { last: i16, wanted: Wanted },
    List { kind: Kind, left: usize, wanted: Wanted },
    Map { key: Kind, value: Kind, left: u64 },
}

impl Release for Skim {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.expects, &mut self.digest, &mut self.beside], budget)
    }
}

impl Release for Expects {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Expects::Beside(_, string) => string.release(budget),
            Expects::Pieces(_, joining) | Expects::Join(joining) => joining.release(budget),
            _ => true,
        }
    }
}

impl Skim {
    /// Skims a structure that starts at `start` in the file.
    pub(crate) fn structure(what: &'static str, start: u64, fields: Fields, limits: &Limits) -> Skim {
        Skim::new(what, start, Expects::Value(Kind::Struct, Wanted::Struct(fields)), limits)
    }

    /// Skims one field of a structure, after the field `last`, or the structure's end. The field's number is kept, even if the rest
    /// is not.
    pub(crate) fn field(what: &'static str, start: u64, last: i16, fields: Fields, limits: &Limits) -> Skim {
        Skim::new(what, start, Expects::Field { last, fields }, limits)
    }

    fn new(what: &'static str, start: u64, expects: Expects, limits: &Limits) -> Skim {
        Skim {
            what,
            start,
            at: start,
            structure_bytes_max: limits.structure_bytes,
            expects,
            stack: Vec::new(),
            token: Vec::new(),
            digest: Vec::new(),
            beside: Vec::new(),
        }
    }

    /// Where the next byte is that it needs.
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Where the structure starts.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Bytes held.
    pub(crate) fn held(&self) -> usize {
        let string = match &self.expects {
            Expects::Beside(_, string) => string.capacity(),
            Expects::Pieces(_, joining) | Expects::Join(joining) => joining.held(),
            _ => 0,
        };
        string + self.digest.capacity() + self.beside.iter().map(Bytes::len).sum::<usize>()
    }

    /// Bytes of the digest.
    pub(crate) fn digest_bytes(&self) -> usize {
        self.digest.len()
    }

    /// True once nothing is missing of it.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.expects, Expects::Nothing)
    }

    /// Bytes that it certainly needs, from its position on. None while a string whose bytes have all arrived is joined.
    pub(crate) fn wants(&self) -> u64 {
        match &self.expects {
            Expects::Join(_) | Expects::Nothing => 0,
            Expects::Skip(left) => *left,
            Expects::Keep(left, rest) => left.saturating_add(*rest),
            Expects::Beside(left, _) | Expects::Pieces(left, _) => *left,
            _ => 1,
        }
    }

    /// Continues with the bytes that follow. True once it is complete; no byte after it is consumed. False if it needs
    /// more bytes or budget.
    ///
    /// # Errors
    ///
    /// `Corrupt` for invalid Thrift, `LimitExceeded` for `structure_bytes`.
    pub(crate) fn step(&mut self, piece: &Bytes, budget: &mut Budget<'_>) -> Result<bool> {
        let mut at = 0;
        while !self.is_complete() {
            let before = at;
            let tokens =
                self.tokens(piece, &mut at, budget).map_err(|stop| stop.into_error(self.what, self.start));
            self.at += u64_of(at - before);
            let tokens = tokens?;
            Limit::StructureBytes
                .check(self.structure_bytes_max, u64_of(self.digest.len()))
                .map_err(|error| error.at_offset(self.start))?;
            let is_joining = matches!(self.expects, Expects::Join(_));
            if tokens == 0 && at == piece.len() && !is_joining {
                break;
            }
            if budget.is_spent() {
                break;
            }
        }
        Ok(self.is_complete())
    }

    /// Reads the digest.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&mut Reader<'_>) -> Thrift<T>) -> Thrift<T> {
        read(&mut Reader::of_digest(&self.digest, &self.beside))
    }

    /// Takes some tokens and returns how many; none if the next one is incomplete.
    fn tokens(&mut self, piece: &Bytes, at: &mut usize, budget: &mut Budget<'_>) -> Thrift<usize> {
        let start = *at;
        // Bytes that cost nothing: they are skipped, or shared.
        let mut free = 0;
        let mut done = 0;
        while done < TOKENS_AT_ONCE && *at - start - free < WHOLE_BYTES_MAX {
            let left = piece.len() - *at;
            let whole = |wanted: u64| usize_of(wanted).unwrap_or(usize::MAX).min(left);
            match core::mem::replace(&mut self.expects, Expects::Next) {
                Expects::Nothing => {
                    self.expects = Expects::Nothing;
                    break;
                }
                Expects::Skip(wanted) => {
                    let skipped = whole(wanted);
                    (*at, free) = (*at + skipped, free + skipped);
                    if wanted > u64_of(skipped) {
                        self.expects = Expects::Skip(wanted - u64_of(skipped));
                        break;
                    }
                }
                Expects::Keep(wanted, rest) => {
                    // More than a digest may have is refused when the first part of it has arrived.
                    let kept = whole(wanted).min(WHOLE_BYTES_MAX);
                    self.digest.extend_from_slice(&piece[*at..*at + kept]);
                    *at += kept;
                    if wanted > u64_of(kept) {
                        self.expects = Expects::Keep(wanted - u64_of(kept), rest);
                        if kept == left {
                            break;
                        } else {
                            done += 1
                        }
                        continue;
                    }
                    if rest > 0 {
                        self.expects = Expects::Skip(rest);
                    }
                }
                Expects::Beside(wanted, mut string) => {
                    let kept = whole(wanted);
                    string.extend_from_slice(&piece[*at..*at + kept]);
                    *at += kept;
                    if wanted > u64_of(kept) {
                        self.expects = Expects::Beside(wanted - u64_of(kept), string);
                        break;
                    }
                    self.set_aside(string.into());
                }
                Expects::Pieces(wanted, mut joining) => {
                    let shared = whole(wanted);
                    if shared > 0 {
                        joining.push(piece.slice(*at..*at + shared), budget);
                    }
                    (*at, free) = (*at + shared, free + shared);
                    if wanted > u64_of(shared) {
                        self.expects = Expects::Pieces(wanted - u64_of(shared), joining);
                        break;
                    }
                    self.expects = Expects::Join(joining);
                }
                Expects::Join(mut joining) => {
                    // Its bytes are the file's, and limited as what is skimmed is.
                    let is_whole = joining.join(&mut Memory::unlimited(), budget);
                    let no_memory = |_| Stop::Corrupt(0, "a string that no memory could be allocated for");
                    if !is_whole.map_err(no_memory)? {
                        self.expects = Expects::Join(joining);
                        done += 1;
                        break;
                    }
                    self.set_aside(joining.finish());
                }
                expects => {
                    let before = (*at, self.token.len());
                    let is_there = self.token(expects, piece, at)?;
                    if !is_there {
                        done += usize::from(before != (*at, self.token.len()));
                        break;
                    }
                }
            }
            done += 1;
        }
        if matches!(self.expects, Expects::Next) && self.stack.is_empty() {
            self.expects = Expects::Nothing;
        }
        budget.charge(SKIM_PRICE, *at - start - free, done);
        Ok(done)
    }

    /// Takes a token of a few bytes, which the end of the piece may cut. False if its end has not arrived.
    fn token(&mut self, expects: Expects, piece: &[u8], at: &mut usize) -> Thrift<bool> {
        match expects {
            Expects::Field { last, fields } => {
                let Some(field) = self.whole(piece, at, |reader| reader.field(last))? else {
                    self.expects = Expects::Field { last, fields };
                    return Ok(false);
                };
                match field {
                    Some(field) => {
                        self.begin_field(field.id, field.kind, wanted_of(fields, field.id), true)?
                    }
                    None => {
                        self.digest.push(0);
                        self.expects = Expects::Nothing;
                    }
                }
            }
            Expects::Value(kind, wanted) => {
                if !self.value(kind, wanted, piece, at)? {
                    self.expects = Expects::Value(kind, wanted);
                    return Ok(false);
                }
            }
            _ => match self.stack.last_mut() {
                None => self.expects = Expects::Nothing,
                Some(Frame::List { left: 0, .. } | Frame::Map { left: 0, .. }) => drop(self.stack.pop()),
                Some(Frame::List { kind, left, wanted }) => {
                    *left -= 1;
                    self.expects = Expects::Value(*kind, *wanted);
                }
                Some(Frame::Map { key, value, left }) => {
                    // Keys and values alternate.
                    let kind = if *left % 2 == 0 { *key } else { *value };
                    *left -= 1;
                    self.expects = Expects::Value(kind, Wanted::Nothing);
                }
                Some(Frame::Struct { last, wanted }) => {
                    let (last, wanted) = (*last, *wanted);
                    let Some(field) = self.whole(piece, at, |reader| reader.field(last))? else {
                        return Ok(false);
                    };
                    let Some(field) = field else {
                        self.stack.pop();
                        if wanted != Wanted::Nothing {
                            self.digest.push(0);
                        }
                        return Ok(true);
                    };
                    if let Some(Frame::Struct { last, .. }) = self.stack.last_mut() {
                        *last = field.id;
                    }
                    match wanted {
                        Wanted::Struct(fields) => {
                            self.begin_field(field.id, field.kind, wanted_of(fields, field.id), false)?;
                        }
                        _ if matches!(field.kind, Kind::True | Kind::False) => self.check_depth()?,
                        _ => self.expects = Expects::Value(field.kind, Wanted::Nothing),
                    }
                }
            },
        }
        Ok(true)
    }

    /// Begins a field that may be needed in part. `is_told`: its number is kept in any case.
    fn begin_field(&mut self, id: i16, kind: Kind, wanted: Option<Wanted>, is_told: bool) -> Thrift<()> {
        let fits = match wanted {
            None | Some(Wanted::Nothing) => false,
            Some(Wanted::Scalar) => !matches!(kind, Kind::List | Kind::Set | Kind::Map | Kind::Struct),
            Some(Wanted::Bytes | Wanted::Short) => kind == Kind::Binary,
            Some(Wanted::Scalars | Wanted::Structs(_) | Wanted::Head) => kind == Kind::List,
            Some(Wanted::Struct(_)) => kind == Kind::Struct,
        };
        if fits || wanted.is_some() || is_told {
            self.digest.push(if fits { kind } else { OTHER }.number());
            varint(&mut self.digest, ((i32::from(id) << 1) ^ (i32::from(id) >> 15)).cast_unsigned().into());
            if !fits {
                self.digest.extend_from_slice(&[0; 16]);
            }
        }
        if !matches!(kind, Kind::True | Kind::False) {
            let wanted = wanted.filter(|_| fits).unwrap_or(Wanted::Nothing);
            self.expects = Expects::Value(kind, wanted);
        }
        Ok(())
    }

    /// Takes a value, or begins it. False if its head has not arrived.
    fn value(&mut self, kind: Kind, wanted: Wanted, piece: &[u8], at: &mut usize) -> Thrift<bool> {
        let is_kept = wanted != Wanted::Nothing;
        self.check_depth()?;
        if let Some(bytes) = kind.element_bytes() {
            let bytes = u64_of(bytes);
            self.expects = if is_kept { Expects::Keep(bytes, 0) } else { Expects::Skip(bytes) };
            return Ok(true);
        }
        match kind {
            Kind::I16 | Kind::I32 | Kind::I64 => {
                let Some(number) = self.whole(piece, at, |reader| reader.varint())? else { return Ok(false) };
                if is_kept {
                    varint(&mut self.digest, number);
                }
            }
            Kind::Binary => {
                let Some(length) = self.whole(piece, at, |reader| reader.varint())? else { return Ok(false) };
                if length > i32::MAX as u64 {
                    return Err(Stop::Corrupt(0, "a length beyond 2 GiB"));
                }
                self.expects = match wanted {
                    Wanted::Nothing => Expects::Skip(length),
                    Wanted::Bytes if length >= SHARED_BYTES_MIN => {
                        let bytes = usize_of(length).unwrap_or(usize::MAX);
                        Expects::Pieces(length, Box::new(Joining::new(bytes)))
                    }
                    Wanted::Bytes if length >= BESIDE_BYTES_MIN => Expects::Beside(length, Vec::new()),
                    wanted => {
                        let kept = match wanted {
                            Wanted::Short => length.min(u64_of(SHORT_BYTES_MAX + 1)),
                            _ => length,
                        };
                        varint(&mut self.digest, kept << 1);
                        Expects::Keep(kept, length - kept)
                    }
                };
            }
            Kind::List | Kind::Set => {
                let Some((kind, length)) = self.whole(piece, at, |reader| reader.list())? else {
                    return Ok(false);
                };
                if is_kept {
                    self.digest.push(0xf0 | kind.number());
                    varint(&mut self.digest, u64_of(length));
                }
                let inner = match (wanted, kind) {
                    // The reader refuses elements of another type, so none of them is needed.
                    (Wanted::Head, _) => None,
                    (Wanted::Structs(fields), Kind::Struct) => Some(Wanted::Struct(fields)),
                    (Wanted::Structs(_), _)
                    | (Wanted::Scalars, Kind::Struct | Kind::List | Kind::Set | Kind::Map) => None,
                    (Wanted::Scalars, _) => Some(Wanted::Scalar),
                    _ => Some(Wanted::Nothing),
                };
                match (inner, kind.element_bytes()) {
                    (None, _) if wanted == Wanted::Head || length == 0 => {}
                    (None, _) => self.expects = Expects::Nothing,
                    (Some(Wanted::Nothing), Some(bytes)) => {
                        self.check_depth_of(usize::from(length > 0))?;
                        self.expects = Expects::Skip(u64_of(length).saturating_mul(u64_of(bytes)));
                    }
                    (Some(wanted), _) => self.stack.push(Frame::List { kind, left: length, wanted }),
                }
            }
            Kind::Map => {
                let Some((key, value, length)) = self.whole(piece, at, |reader| reader.map())? else {
                    return Ok(false);
                };
                let Some(left) = length.checked_mul(2) else {
                    return Err(Stop::Corrupt(0, "a map beyond 2^63 entries"));
                };
                self.stack.push(Frame::Map { key, value, left });
            }
            _ => self.stack.push(Frame::Struct { last: 0, wanted }),
        }
        Ok(true)
    }

    /// What is skipped may not be nested deeper than a reader would skip.
    fn check_depth(&self) -> Thrift<()> {
        self.check_depth_of(0)
    }

    fn check_depth_of(&self, more: usize) -> Thrift<()> {
        let is_skipped = |frame: &&Frame| match frame {
            // Of a structure of which only its presence is needed, a reader skips everything.
            Frame::Struct { wanted, .. } => matches!(wanted, Wanted::Nothing | Wanted::Struct([])),
            Frame::List { wanted, .. } => *wanted == Wanted::Nothing,
            Frame::Map { .. } => true,
        };
        // What is needed is nested a few levels deep; so is everything that is not skipped.
        if self.stack.len() + more > SKIP_DEPTH_MAX as usize
            && self.stack.iter().filter(is_skipped).count() + more > SKIP_DEPTH_MAX as usize
        {
            return Err(Stop::Corrupt(0, "structures nested too deep"));
        }
        Ok(())
    }

    /// Stores a complete string beside the digest.
    fn set_aside(&mut self, string: Bytes) {
        varint(&mut self.digest, u64_of(self.beside.len()) << 1 | 1);
        self.beside.push(string);
    }

    /// A token that the end of the piece may cut. `None` if its end has not arrived.
    fn whole<T>(
        &mut self,
        piece: &[u8],
        at: &mut usize,
        read: impl Fn(&mut Reader<'_>) -> Thrift<T>,
    ) -> Thrift<Option<T>> {
        if self.token.is_empty() {
            let mut reader = Reader::new(piece, *at);
            return match read(&mut reader) {
                Ok(token) => {
                    *at = reader.at();
                    Ok(Some(token))
                }
                Err(Stop::End) => {
                    // A token has at most two dozen bytes, so nothing is left over.
                    self.token.extend_from_slice(&piece[*at..]);
                    *at = piece.len();
                    Ok(None)
                }
                Err(stop) => Err(stop),
            };
        }
        while let Some(&byte) = piece.get(*at) {
            self.token.push(byte);
            *at += 1;
            match read(&mut Reader::new(&self.token, 0)) {
                Err(Stop::End) => {}
                token => {
                    self.token.clear();
                    return token.map(Some);
                }
            }
        }
        Ok(None)
    }
}

/// What is needed of a field; `None` if it is unknown.
fn wanted_of(fields: Fields, id: i16) -> Option<Wanted> {
    fields.iter().find(|(known, _)| *known == id || *known == ANY).map(|(_, wanted)| *wanted)
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Errors of memory or limits are reported as they are; for an error of Thrift, what precedes it in the digest is
/// checked first.
pub(crate) fn first_fault(
    skim: &Skim,
    fault: Error,
    read: impl FnOnce(&mut Reader<'_>) -> Thrift<()>,
) -> Error {
    match skim.read(read) {
        Err(stop @ Stop::Corrupt(..)) => stop.into_error(skim.what, skim.start),
        _ => fault,
    }
}
