//! From the bytes of a CQL value to Parquet's columns.
//!
//! A value is one leaf, or a frozen collection, tuple or user-defined type, which may be long: it is read element by element, with a stack of
//! what is open, so that it can stop after any of them.

use alloc::vec::Vec;
use core::fmt::Write;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Range;
use core::str;

use marquetry_base::cast::{bits_i32, u64_of, usize_of_u32};
use marquetry_base::print::{DIGITS_BYTES_MAX, Digits};
use marquetry_base::twos_complement::shortest;
use marquetry_kernels::utf8;

use super::leaf::{LeafBuilder, Mark, Source, Store};
use super::shape::{Form, Kind, Shape, Shapes};
use crate::cql::literal::{DAY_NANOS, PLAIN_SCALE_MAX};
use crate::sstable::counter;
use crate::sstable::vint;

/// What became of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// Its bytes can be made of what is in the columns.
    Exact,
    /// The columns have what it means, but other bytes mean the same.
    Inexact,
    /// It cannot be in the column.
    Nothing,
}

/// What became of a value that may be long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Nothing means that nothing was added.
    Done(Found),
    /// There are more elements: go on.
    More,
}

/// Bytes of text that are checked in the time of an element.
const TEXT_BYTES_PER_ELEMENT: usize = 128;

/// Elements that may be read before the budget is looked at; and how many were, or took the time of how many: a long text takes that of
/// more than were left.
#[derive(Debug)]
pub(super) struct Effort {
    most: usize,
    done: usize,
}

impl Effort {
    pub(super) fn new(most: usize) -> Effort {
        Effort { most, done: 0 }
    }

    pub(super) fn take(&mut self, elements: usize) {
        self.done = self.done.saturating_add(elements);
    }

    pub(super) fn is_left(&self) -> bool {
        self.done < self.most
    }

    pub(super) fn done(&self) -> usize {
        self.done
    }
}

/// What takes as long as so many elements, beside itself: a value that is printed, and one that has others in it. (Some 250 and 100 ns.)
const PRINTED_ELEMENTS: usize = 8;
const GROUP_ELEMENTS: usize = 3;

/// Reads values, each with everything in it.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    open: Vec<Frame>,
    marks: Vec<Mark>,
    first_leaf: usize,
    is_exact: bool,
    /// Values within it that became null, because their columns cannot hold them.
    lost: u64,
}

/// A list, map, tuple or user-defined type that is being read.
#[derive(Debug, Clone, Copy)]
struct Frame {
    node: usize,
    /// The next element, or field; of a map, keys and values are counted.
    next: u32,
    count: u32,
    at: usize,
    end: usize,
    /// The repetition level of its first entry.
    repetition: u8,
}

/// A value that cannot be in its column, nor what it is in.
struct Refused;

impl Decoder {
    /// Begins with a value of this node. Call [`Decoder::run`] if there is more.
    #[expect(clippy::too_many_arguments, reason = "where a value is, and where it goes")]
    #[inline]
    pub(super) fn begin(
        &mut self,
        shapes: &Shapes,
        node: usize,
        source: Source<'_>,
        range: Range<usize>,
        repetition: u8,
        leaves: &mut [LeafBuilder],
        work: &mut Effort,
    ) -> Progress {
        let shape = &shapes.nodes[node];
        self.lost = 0;
        if let Form::Leaf(kind) = shape.form {
            // What is most frequent needs no stack.
            let Some(leaf) = leaves.get_mut(shape.leaves.start) else {
                return Progress::Done(Found::Nothing);
            };
            let found = scalar(kind, source, range, &mut leaf.values, work);
            if found != Found::Nothing {
                leaf.close(repetition);
            }
            return Progress::Done(found);
        }
        work.take(GROUP_ELEMENTS);
        self.first_leaf = shape.leaves.start;
        self.marks.clear();
        self.marks.extend(leaves[shape.leaves.clone()].iter().map(LeafBuilder::mark));
        self.open.clear();
        self.is_exact = true;
        match self.value(shapes, node, source, range, repetition, leaves, work) {
            Ok(true) => self.run(shapes, source, leaves, work),
            // A group that cannot be read is null: here, nothing.
            Ok(false) | Err(Refused) => self.refuse(leaves),
        }
    }

    /// Goes on with the value, for as many elements as `work` says.
    pub(super) fn run(
        &mut self,
        shapes: &Shapes,
        source: Source<'_>,
        leaves: &mut [LeafBuilder],
        work: &mut Effort,
    ) -> Progress {
        while !self.open.is_empty() {
            if !work.is_left() {
                return Progress::More;
            }
            work.take(1);
            if self.element(shapes, source, leaves, work).is_err() {
                return self.refuse(leaves);
            }
        }
        Progress::Done(if self.is_exact { Found::Exact } else { Found::Inexact })
    }

    /// Of the value that was read: how many values the columns have null for, because they cannot hold them.
    pub(super) fn lost(&self, found: Found) -> u64 {
        match found {
            Found::Exact => 0,
            Found::Inexact => self.lost,
            Found::Nothing => 1,
        }
    }

    fn refuse(&mut self, leaves: &mut [LeafBuilder]) -> Progress {
        self.open.clear();
        for (leaf, mark) in leaves[self.first_leaf..].iter_mut().zip(&self.marks) {
            leaf.cut(*mark);
        }
        Progress::Done(Found::Nothing)
    }

    /// The next element of what is open, or its end.
    fn element(
        &mut self,
        shapes: &Shapes,
        source: Source<'_>,
        leaves: &mut [LeafBuilder],
        work: &mut Effort,
    ) -> Result<(), Refused> {
        let Some(frame) = self.open.last_mut() else { return Ok(()) };
        if frame.next == frame.count {
            if frame.at != frame.end {
                self.is_exact = false;
            }
            self.open.pop();
            return Ok(());
        }
        let number = frame.next;
        let bytes = &source.bytes[..frame.end];
        let (node, item, is_first) = match &shapes.nodes[frame.node].form {
            Form::List(element) => (*element, item(bytes, &mut frame.at)?, number == 0),
            Form::Map(key, value) => {
                let node = if number.is_multiple_of(2) { *key } else { *value };
                (node, item(bytes, &mut frame.at)?, number < 2)
            }
            Form::Fields(fields) => {
                let node = fields.get(usize_of_u32(number)).copied().ok_or(Refused)?;
                let item = if frame.at == frame.end {
                    // Fields that were added after it was written.
                    self.is_exact = false;
                    Item::Null
                } else {
                    item(bytes, &mut frame.at)?
                };
                (node, item, true)
            }
            Form::Vector { element, element_bytes, .. } => {
                (*element, vector_item(bytes, &mut frame.at, *element_bytes)?, number == 0)
            }
            Form::Leaf(_) | Form::Duration => return Err(Refused),
        };
        frame.next += 1;
        let repetition = if is_first { frame.repetition } else { shapes.nodes[node].repetition };
        let shape = &shapes.nodes[node];
        match item {
            Item::Value(range) => {
                if !self.value(shapes, node, source, range, repetition, leaves, work)? {
                    self.is_exact = false;
                    self.lost += 1;
                    null(shape, repetition, leaves)?;
                }
            }
            Item::Null => null(shape, repetition, leaves)?,
            Item::Unset => {
                self.is_exact = false;
                null(shape, repetition, leaves)?;
            }
        }
        Ok(())
    }

    /// A value, or the beginning of one. False if it is nothing that its column can hold, and nothing was added.
    #[expect(clippy::too_many_arguments, reason = "where a value is, and where it goes")]
    fn value(
        &mut self,
        shapes: &Shapes,
        node: usize,
        source: Source<'_>,
        range: Range<usize>,
        repetition: u8,
        leaves: &mut [LeafBuilder],
        work: &mut Effort,
    ) -> Result<bool, Refused> {
        let shape = &shapes.nodes[node];
        let length = range.len();
        let counted = || -> Option<u32> {
            let count = source.bytes.get(range.clone())?.first_chunk::<4>()?;
            u32::try_from(i32::from_be_bytes(*count)).ok()
        };
        let mut at = range.start;
        let count = match &shape.form {
            Form::Leaf(kind) => {
                let leaf = leaves.get_mut(shape.leaves.start).ok_or(Refused)?;
                let found = scalar(*kind, source, range, &mut leaf.values, work);
                if found != Found::Nothing {
                    leaf.close(repetition);
                }
                self.is_exact &= found == Found::Exact;
                return Ok(found != Found::Nothing);
            }
            Form::Duration => {
                work.take(PRINTED_ELEMENTS);
                let Some((parts, is_exact)) = duration(&source.bytes[range]) else { return Ok(false) };
                self.is_exact &= is_exact;
                for (leaf, part) in leaves[shape.leaves.clone()].iter_mut().zip(parts) {
                    match &mut leaf.values {
                        // The first two parts have 32 bits.
                        Store::Int32(values) => values.push(i32::try_from(part).unwrap_or_default()),
                        Store::Int64(values) => values.push(part),
                        _ => return Err(Refused),
                    }
                    leaf.close(repetition);
                }
                return Ok(true);
            }
            Form::List(_) | Form::Map(..) => {
                let Some(count) = counted() else { return Ok(false) };
                let is_map = matches!(shape.form, Form::Map(..));
                at += 4;
                // Each item has its length before it.
                let items = u64::from(count) << u32::from(is_map);
                if items * 4 > u64_of(length).saturating_sub(4) {
                    return Ok(false);
                }
                if count == 0 {
                    for leaf in &mut leaves[shape.leaves.clone()] {
                        leaf.push_null(shape.definition, repetition);
                    }
                }
                count << u32::from(is_map)
            }
            Form::Fields(fields) => u32::try_from(fields.len()).map_err(|_| Refused)?,
            Form::Vector { count, element_bytes, .. } => {
                if element_bytes.is_some_and(|bytes| u64::from(bytes) * u64::from(*count) != u64_of(length))
                    || u64::from(*count) > u64_of(length)
                {
                    return Ok(false);
                }
                *count
            }
        };
        self.open.push(Frame { node, next: 0, count, at, end: range.end, repetition });
        Ok(true)
    }
}

fn null(shape: &Shape, repetition: u8, leaves: &mut [LeafBuilder]) -> Result<(), Refused> {
    if shape.is_required {
        return Err(Refused);
    }
    for leaf in &mut leaves[shape.leaves.clone()] {
        leaf.push_null(shape.definition - 1, repetition);
    }
    Ok(())
}

enum Item {
    Value(Range<usize>),
    Null,
    /// Null, but by another length than -1.
    Unset,
}

/// An element or a field: a length, and as many bytes. `bytes` end where its container does.
fn item(bytes: &[u8], at: &mut usize) -> Result<Item, Refused> {
    let length = bytes.get(*at..).and_then(|rest| rest.first_chunk::<4>()).ok_or(Refused)?;
    let length = i32::from_be_bytes(*length);
    *at += 4;
    match usize::try_from(length) {
        Ok(length) => {
            let range = *at..*at + length;
            if range.end > bytes.len() {
                return Err(Refused);
            }
            *at = range.end;
            Ok(Item::Value(range))
        }
        Err(_) if length == -1 => Ok(Item::Null),
        Err(_) => Ok(Item::Unset),
    }
}

/// An element of a vector: of a fixed length, or with its length before it, of a variable length itself.
fn vector_item(bytes: &[u8], at: &mut usize, fixed: Option<u32>) -> Result<Item, Refused> {
    let length = match fixed {
        Some(fixed) => usize_of_u32(fixed),
        None => {
            let (length, taken) = vint::unsigned(bytes.get(*at..).ok_or(Refused)?).ok_or(Refused)?;
            *at += taken;
            usize::try_from(length).map_err(|_| Refused)?
        }
    };
    let end = at.checked_add(length).filter(|end| *end <= bytes.len()).ok_or(Refused)?;
    let range = *at..end;
    *at = end;
    Ok(Item::Value(range))
}

/// Adds a value of a leaf to its values.
#[inline]
pub(super) fn scalar(
    kind: Kind,
    source: Source<'_>,
    range: Range<usize>,
    values: &mut Store,
    work: &mut Effort,
) -> Found {
    let offset = range.start;
    let bytes = source.bytes.get(range).unwrap_or_default();
    match (kind, values) {
        (Kind::Int, Store::Int32(values)) => {
            let Ok(bytes) = bytes.try_into() else { return Found::Nothing };
            values.push(i32::from_be_bytes(bytes));
        }
        (Kind::Bigint | Kind::Timestamp, Store::Int64(values)) => {
            let Ok(bytes) = bytes.try_into() else { return Found::Nothing };
            values.push(i64::from_be_bytes(bytes));
        }
        (Kind::Text | Kind::Bytes, values @ Store::Strings(_)) => {
            if kind == Kind::Text {
                work.take(bytes.len() / TEXT_BYTES_PER_ELEMENT);
                if !utf8::valid(bytes) {
                    return Found::Nothing;
                }
            }
            values.push_view(bytes, source.buffer, offset);
        }
        (_, values) => return rare(kind, bytes, values, work),
    }
    Found::Exact
}

/// The other kinds.
fn rare(kind: Kind, bytes: &[u8], values: &mut Store, work: &mut Effort) -> Found {
    match (kind, values) {
        (Kind::Boolean, Store::Boolean(values)) => {
            let [byte] = bytes else { return Found::Nothing };
            values.push(*byte);
            if *byte > 1 {
                return Found::Inexact;
            }
        }
        (Kind::Tinyint, Store::Int32(values)) => {
            let Ok(bytes) = bytes.try_into() else { return Found::Nothing };
            values.push(i8::from_be_bytes(bytes).into());
        }
        (Kind::Smallint, Store::Int32(values)) => {
            let Ok(bytes) = bytes.try_into() else { return Found::Nothing };
            values.push(i16::from_be_bytes(bytes).into());
        }
        (Kind::Date, Store::Int32(values)) => {
            let Ok(bytes) = bytes.try_into() else { return Found::Nothing };
            values.push(bits_i32(u32::from_be_bytes(bytes) ^ 1 << 31));
        }
        (Kind::Float, Store::Float(values)) => {
            let Ok(bytes) = bytes.try_into() else { return Found::Nothing };
            values.push(f32::from_bits(u32::from_be_bytes(bytes)));
        }
        (Kind::Double, Store::Double(values)) => {
            let Ok(bytes) = bytes.try_into() else { return Found::Nothing };
            values.push(f64::from_bits(u64::from_be_bytes(bytes)));
        }
        (Kind::Uuid, Store::Uuid(values)) => {
            if bytes.len() != 16 {
                return Found::Nothing;
            }
            values.extend_from_slice(bytes);
        }
        (Kind::Time, Store::Int64(values)) => {
            let Ok(bytes) = bytes.try_into() else { return Found::Nothing };
            let nanos = i64::from_be_bytes(bytes);
            if !(0..DAY_NANOS).contains(&nanos) {
                return Found::Nothing;
            }
            values.push(nanos);
        }
        (Kind::Counter, Store::Int64(values)) => {
            // Its sum does not say who counted what.
            work.take(bytes.len() / TEXT_BYTES_PER_ELEMENT);
            let Ok(total) = counter::total(bytes) else { return Found::Nothing };
            values.push(total);
            return Found::Inexact;
        }
        (Kind::Inet, values @ Store::Strings(_)) => {
            let address = if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
                IpAddr::from(Ipv4Addr::from(bytes))
            } else if let Ok(bytes) = <[u8; 16]>::try_from(bytes) {
                IpAddr::from(Ipv6Addr::from(bytes))
            } else {
                return Found::Nothing;
            };
            work.take(PRINTED_ELEMENTS);
            values.push_printed(|out| {
                // Writing to memory does not fail.
                let _ = write!(Text(out), "{address}");
            });
        }
        (Kind::Varint, values @ Store::Strings(_)) => {
            let Some(digits) = digits_of(bytes, work) else { return Found::Nothing };
            values.push_printed(|out| digits.integer(out));
            return exact_if(shortest(bytes).len() == bytes.len());
        }
        (Kind::Decimal, values @ Store::Strings(_)) => {
            let Some((scale, unscaled)) = bytes.split_first_chunk::<4>() else { return Found::Nothing };
            let scale = i32::from_be_bytes(*scale);
            let Some(digits) = digits_of(unscaled, work) else { return Found::Nothing };
            values.push_printed(|out| match usize::try_from(scale) {
                Ok(fraction) if fraction < digits.as_slice().len() || fraction <= PLAIN_SCALE_MAX => {
                    digits.fixed(out, fraction);
                }
                _ => digits.scientific(out, -i64::from(scale)),
            });
            return exact_if(shortest(unscaled).len() == unscaled.len());
        }
        _ => return Found::Nothing,
    }
    Found::Exact
}

fn exact_if(is_exact: bool) -> Found {
    if is_exact { Found::Exact } else { Found::Inexact }
}

/// The digits of an integer, unless it is so long that changing its base, or looking for the end of its sign, takes long.
fn digits_of(bytes: &[u8], work: &mut Effort) -> Option<Digits> {
    if bytes.len() > DIGITS_BYTES_MAX {
        return None;
    }
    // By the square of the length.
    work.take(PRINTED_ELEMENTS + (bytes.len() / 16) * (bytes.len() / 16));
    Digits::of_bytes(bytes)
}

/// Months, days, nanoseconds; and whether no other bytes are the same duration.
fn duration(bytes: &[u8]) -> Option<([i64; 3], bool)> {
    let (mut parts, mut at) = ([0; 3], 0);
    for (number, part) in parts.iter_mut().enumerate() {
        let (value, length) = vint::signed(bytes.get(at..)?)?;
        if number < 2 {
            i32::try_from(value).ok()?;
        }
        (*part, at) = (value, at + length);
    }
    if at != bytes.len() {
        return None;
    }
    let mut again = Vec::with_capacity(bytes.len());
    for part in parts {
        vint::push_signed(&mut again, part);
    }
    Some((parts, again == bytes))
}

struct Text<'a>(&'a mut Vec<u8>);

impl Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::mutations::leaf::Views;

    /// What is printed takes several times what a number does: a step of nothing else would be too long.
    #[test]
    fn what_is_printed_is_charged() {
        let effort = |kind, bytes: &[u8], mut values: Store| {
            let mut work = Effort::new(1000);
            let source = Source { bytes, buffer: 0 };
            assert!(scalar(kind, source, 0..bytes.len(), &mut values, &mut work) == Found::Exact);
            work.done()
        };
        let texts = || Store::Strings(Views::default());
        assert_eq!(effort(Kind::Int, &[0; 4], Store::Int32(Vec::new())), 0);
        assert_eq!(effort(Kind::Inet, &[127, 0, 0, 1], texts()), PRINTED_ELEMENTS);
        assert_eq!(effort(Kind::Varint, &[7], texts()), PRINTED_ELEMENTS);
        assert_eq!(effort(Kind::Decimal, &[0, 0, 0, 1, 7], texts()), PRINTED_ELEMENTS);
    }
}
