//! Values collected from several batches.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of, usize_of_u32};
use marquetry_base::{Bitmap, Bytes, Error, Result};
use marquetry_kernels::gather;

use super::merge::Pick;
use crate::batch::{ByteArrays, FixedBytes, INLINE_BYTES_MAX, Values};
use crate::growing::SLICE_BYTES;
use crate::schema::PhysicalType;

/// Values of one type that are being collected.
#[derive(Debug)]
pub(super) enum Collected {
    Boolean { bytes: Vec<u8>, bits: usize },
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    Fixed { width: usize, values: usize, bytes: Vec<u8>, is_int96: bool },
    Strings { views: Vec<u128>, shared: Shared },
}

/// Buffers that views point into: those of the batches, each added when the first of its strings is.
#[derive(Debug, Default)]
pub(super) struct Shared {
    buffers: Vec<Bytes>,
    /// For each batch, the number of its first buffer, or that it has not been added.
    firsts: Vec<u32>,
}

const NOT_HERE: u32 = u32::MAX;

/// Memory for `values` values.
pub(super) fn room<T>(values: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    room.try_reserve_exact(values)
        .map_err(|_| Error::out_of_memory(values.saturating_mul(size_of::<T>())))?;
    Ok(room)
}

impl Collected {
    /// Room for `values` values of a type, from `sources` batches.
    pub(super) fn new(physical_type: PhysicalType, values: usize, sources: usize) -> Result<Collected> {
        let fixed = |width: usize, is_int96: bool| {
            let bytes = room(values.saturating_mul(width))?;
            Ok(Collected::Fixed { width, values: 0, bytes, is_int96 })
        };
        Ok(match physical_type {
            PhysicalType::Boolean => Collected::Boolean { bytes: room(values.div_ceil(8))?, bits: 0 },
            PhysicalType::Int32 => Collected::Int32(room(values)?),
            PhysicalType::Int64 => Collected::Int64(room(values)?),
            PhysicalType::Float => Collected::Float(room(values)?),
            PhysicalType::Double => Collected::Double(room(values)?),
            PhysicalType::Int96 => return fixed(12, true),
            PhysicalType::FixedLenByteArray(width) => return fixed(usize_of_u32(width), false),
            PhysicalType::ByteArray => {
                let mut firsts = room(sources)?;
                firsts.resize(sources, NOT_HERE);
                Collected::Strings { views: room(values)?, shared: Shared { buffers: Vec::new(), firsts } }
            }
        })
    }

    /// Appends the values of rows from many batches, all of them or about a slice of their bytes. Returns how many
    /// rows are complete, and the bytes that were copied. `columns` has a column of each batch, with one value, or index of one, per row,
    /// or `None` for a batch that is missing. `order` is that of the picks, if they are all.
    ///
    /// # Errors
    ///
    /// `Misuse` for values of another type.
    pub(super) fn pick<'a>(
        &mut self,
        columns: impl ExactSizeIterator<Item = Option<Held<'a>>>,
        (picks, order): (&[Pick], Option<&Order>),
    ) -> Result<(usize, usize)> {
        macro_rules! numbers {
            ($out:expr, $kind:ident) => {{
                let (all, has_indices) = table(columns, |values| match values {
                    Values::$kind(values) => Some(&**values),
                    _ => None,
                })?;
                let of = |pick: &Pick| &all[usize_of_u32(pick.source)];
                if let (Some(order), false) = (order, has_indices) {
                    order.place(picks.len(), $out, |source, row| all[source].0[usize_of_u32(row)]);
                } else if has_indices {
                    $out.extend(picks.iter().map(|pick| of(pick).0[of(pick).at(pick.row)]));
                } else {
                    $out.extend(picks.iter().map(|pick| of(pick).0[usize_of_u32(pick.row)]));
                }
            }};
        }
        match self {
            Collected::Int32(out) => numbers!(out, Int32),
            Collected::Int64(out) => numbers!(out, Int64),
            Collected::Float(out) => numbers!(out, Float),
            Collected::Double(out) => numbers!(out, Double),
            Collected::Strings { views, shared } => {
                let (all, _) = table(columns, |values| match values {
                    Values::ByteArray(values) => Some(values),
                    _ => None,
                })?;
                let mut take = |source: usize, row: u32| {
                    let from = &all[source];
                    shared.take(from.0.views()[from.at(row)], from.0, source)
                };
                match order {
                    Some(order) => order.place(picks.len(), views, &mut take),
                    None => {
                        views.extend(picks.iter().map(|pick| take(usize_of_u32(pick.source), pick.row)));
                    }
                }
            }
            Collected::Boolean { .. } | Collected::Fixed { .. } => {
                let (all, _) = table(columns, Some)?;
                let mut bytes = 0;
                for (at, pick) in picks.iter().enumerate() {
                    let from = &all[usize_of_u32(pick.source)];
                    let at_row = from.at(pick.row);
                    let (count, copied) =
                        self.extend(from.0, at_row..at_row + 1, usize_of_u32(pick.source))?;
                    bytes += copied;
                    if count == 0 || bytes >= SLICE_BYTES {
                        return Ok((at + count, bytes));
                    }
                }
                return Ok((picks.len(), bytes));
            }
        }
        Ok((picks.len(), 0))
    }

    /// Appends consecutive values of a batch, all of them or about a slice of their bytes. Returns how many are
    /// complete, and the bytes that were copied. A long value takes several calls, with the same values again.
    ///
    /// # Errors
    ///
    /// `Misuse` for values of another type.
    pub(super) fn extend(
        &mut self,
        values: &Values,
        range: Range<usize>,
        source: usize,
    ) -> Result<(usize, usize)> {
        let count = range.len();
        match (self, values) {
            (Collected::Int32(out), Values::Int32(values)) => out.extend_from_slice(&values[range]),
            (Collected::Int64(out), Values::Int64(values)) => out.extend_from_slice(&values[range]),
            (Collected::Float(out), Values::Float(values)) => out.extend_from_slice(&values[range]),
            (Collected::Double(out), Values::Double(values)) => out.extend_from_slice(&values[range]),
            (Collected::Boolean { bytes, bits }, Values::Boolean(values)) => {
                range.for_each(|index| push_bit(bytes, bits, values.get(index)));
            }
            (
                Collected::Fixed { width, values: filled, bytes, .. },
                Values::Int96(values) | Values::FixedLenByteArray(values),
            ) if *width == values.width() => {
                let all = &values.bytes()[range.start * *width..range.end * *width];
                let begun = bytes.len() - *filled * *width;
                let part = &all[begun..all.len().min(begun + SLICE_BYTES)];
                bytes.extend_from_slice(part);
                return Ok((complete(filled, count, *width, bytes.len()), part.len()));
            }
            (Collected::Strings { views, shared }, Values::ByteArray(values)) => {
                views.extend(values.views()[range].iter().map(|view| shared.take(*view, values, source)));
            }
            _ => return Err(misfit()),
        }
        Ok((count, 0))
    }

    /// Appends values of a dictionary, if they are numbers or strings: otherwise false, and nothing is done.
    ///
    /// # Errors
    ///
    /// `Misuse` for values of another type, and for an index beyond the dictionary.
    pub(super) fn look_up(&mut self, entries: &Values, indices: &[u32]) -> Result<bool> {
        macro_rules! numbers {
            ($out:expr, $entries:expr) => {{
                let done = $out.len();
                $out.resize(done + indices.len(), Default::default());
                gather::values($entries, indices, &mut $out[done..]).map_err(|_| no_entry())?;
            }};
        }
        match (self, entries) {
            (Collected::Int32(out), Values::Int32(entries)) => numbers!(out, entries),
            (Collected::Int64(out), Values::Int64(entries)) => numbers!(out, entries),
            (Collected::Float(out), Values::Float(entries)) => numbers!(out, entries),
            (Collected::Double(out), Values::Double(entries)) => numbers!(out, entries),
            (Collected::Strings { views, shared }, Values::ByteArray(entries)) => {
                for index in indices {
                    let view = entries.views().get(usize_of_u32(*index)).ok_or_else(no_entry)?;
                    views.push(shared.take(*view, entries, 0));
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Appends one value, which may come from a dictionary; zero or empty for a null. False if it is long and not
    /// complete yet: then call again. Also returns the bytes that were copied.
    ///
    /// # Errors
    ///
    /// `Misuse` for values of another type, and for an index beyond the dictionary.
    pub(super) fn put(&mut self, values: &Values, index: Option<usize>) -> Result<(bool, usize)> {
        let Some(index) = index else {
            match self {
                Collected::Int32(out) => out.push(0),
                Collected::Int64(out) => out.push(0),
                Collected::Float(out) => out.push(0.0),
                Collected::Double(out) => out.push(0.0),
                Collected::Boolean { bytes, bits } => push_bit(bytes, bits, false),
                Collected::Fixed { width, values: filled, bytes, .. } => {
                    let left = (*filled + 1) * *width - bytes.len();
                    bytes.resize(bytes.len() + left.min(SLICE_BYTES), 0);
                    let count = complete(filled, 1, *width, bytes.len());
                    return Ok((count == 1, left.min(SLICE_BYTES)));
                }
                Collected::Strings { views, .. } => views.push(0),
            }
            return Ok((true, 0));
        };
        let (values, index) = match values {
            Values::Dictionary(indices, values) => (&**values, usize_of_u32(indices[index])),
            values => (values, index),
        };
        if index >= values.len() {
            return Err(no_entry());
        }
        let (count, bytes) = self.extend(values, index..index + 1, 0)?;
        Ok((count == 1, bytes))
    }

    /// All of them.
    pub(super) fn finish(self) -> Values {
        match self {
            Collected::Boolean { bytes, bits } => Values::Boolean(Bitmap::new(bytes.into(), 0, bits)),
            Collected::Int32(values) => Values::Int32(values.into()),
            Collected::Int64(values) => Values::Int64(values.into()),
            Collected::Float(values) => Values::Float(values.into()),
            Collected::Double(values) => Values::Double(values.into()),
            Collected::Fixed { width, values, bytes, is_int96 } => {
                let fixed = FixedBytes::new(width, values, bytes.into());
                if is_int96 { Values::Int96(fixed) } else { Values::FixedLenByteArray(fixed) }
            }
            Collected::Strings { views, shared } => {
                Values::ByteArray(ByteArrays::new(views.into(), Arc::new(shared.buffers)))
            }
        }
    }
}

impl Shared {
    /// Converts a batch's view to one into all buffers.
    #[inline]
    fn take(&mut self, view: u128, values: &ByteArrays, source: usize) -> u128 {
        let words: &[u32; 4] = bytemuck::cast_ref(&view);
        if usize_of_u32(words[0]) <= INLINE_BYTES_MAX {
            return view;
        }
        let Some(first) = self.firsts.get_mut(source) else { return 0 };
        if *first == NOT_HERE {
            // Memory would run out before there are too many buffers to count.
            *first = u32::try_from(self.buffers.len()).unwrap_or(NOT_HERE);
            self.buffers.extend(values.buffers().iter().cloned());
        }
        let mut moved = *words;
        moved[2] = moved[2].wrapping_add(*first);
        bytemuck::cast(moved)
    }
}

/// Counts values of `width` bytes that are complete now, of `count` that are due: returns how many have become so.
fn complete(filled: &mut usize, count: usize, width: usize, bytes: usize) -> usize {
    let more = bytes.checked_div(width).map_or(count, |all| all - *filled);
    *filled += more;
    more
}

/// Appends a bit.
pub(super) fn push_bit(bytes: &mut Vec<u8>, bits: &mut usize, bit: bool) {
    if bits.is_multiple_of(8) {
        bytes.push(0);
    }
    if let Some(last) = bytes.last_mut() {
        *last |= u8::from(bit) << (*bits % 8);
    }
    *bits += 1;
}

/// Rows that were picked, by their batches: near each other where they come from, rather than where they go.
#[derive(Debug)]
pub(super) struct Order {
    /// Where each batch's rows end, and the last one's.
    ends: Vec<usize>,
    /// Rows of the batches, and the place of each among all that were picked.
    rows: Vec<u32>,
    places: Vec<u32>,
}

impl Order {
    /// Of rows picked from so many batches.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated; `Internal` for a row of another batch.
    pub(super) fn of(picks: &[Pick], sources: usize) -> Result<Order> {
        let strange = || Error::internal("a row of a batch that is missing");
        let mut ends: Vec<usize> = room(sources)?;
        ends.resize(sources, 0);
        for pick in picks {
            *ends.get_mut(usize_of_u32(pick.source)).ok_or_else(strange)? += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += core::mem::replace(end, start);
        }
        let [mut rows, mut places] = [room(picks.len())?, room(picks.len())?];
        rows.resize(picks.len(), 0);
        places.resize(picks.len(), 0);
        // What are the starts so far become the ends.
        for (place, pick) in (0..).zip(picks) {
            let at = &mut ends[usize_of_u32(pick.source)];
            (rows[*at], places[*at]) = (pick.row, place);
            *at += 1;
        }
        Ok(Order { ends, rows, places })
    }

    /// Appends what the batches have in these rows, which are `rows`: each where it was picked.
    #[inline]
    pub(super) fn place<T: Copy + Default>(
        &self,
        rows: usize,
        out: &mut Vec<T>,
        mut of: impl FnMut(usize, u32) -> T,
    ) {
        let before = out.len();
        out.resize(before + rows, T::default());
        let out = &mut out[before..];
        let mut start = 0;
        for (source, end) in self.ends.iter().enumerate() {
            let part = start..*end;
            start = *end;
            for (row, place) in self.rows[part.clone()].iter().zip(&self.places[part]) {
                out[usize_of_u32(*place)] = of(source, *row);
            }
        }
    }
}

/// A column of a batch: its values, or those of its dictionary and what their indices are in each row.
pub(super) type Held<'a> = (&'a Values, Option<&'a [u16]>);

/// The same, of values of a type.
struct Of<'a, T: ?Sized>(&'a T, Option<&'a [u16]>);

impl<T: ?Sized> Of<'_, T> {
    /// Where the value of a row is.
    #[inline]
    fn at(&self, row: u32) -> usize {
        self.1.map_or(usize_of_u32(row), |indices| usize::from(indices[usize_of_u32(row)]))
    }
}

/// What each batch has, and whether any has indices. A missing batch gets another's as a placeholder, which is never used.
fn table<'a, T: ?Sized>(
    columns: impl ExactSizeIterator<Item = Option<Held<'a>>>,
    of: impl Fn(&'a Values) -> Option<&'a T>,
) -> Result<(Vec<Of<'a, T>>, bool)> {
    let mut all: Vec<Of<'a, T>> = room(columns.len())?;
    let (mut absent, mut has_indices) = (0, false);
    let push = |all: &mut Vec<Of<'a, T>>, (values, indices): (&'a T, Option<&'a [u16]>), times: usize| {
        all.extend((0..times).map(|_| Of(values, indices)));
    };
    for found in columns {
        match found {
            Some((values, indices)) => {
                has_indices |= indices.is_some();
                let found = (of(values).ok_or_else(misfit)?, indices);
                push(&mut all, found, core::mem::take(&mut absent) + 1);
            }
            None => absent += 1,
        }
    }
    if let Some(Of(values, indices)) = all.last() {
        let last = (*values, *indices);
        push(&mut all, last, absent);
    }
    Ok((all, has_indices))
}

/// What a batch's index leads to that its dictionary does not have.
pub(super) fn no_entry() -> Error {
    Error::misuse("an index that the dictionary of its batch does not have")
}

fn misfit() -> Error {
    Error::misuse("rows of other types than the schema's")
}

/// Byte strings copied out of their original buffers, so that no more memory is held than they need.
#[derive(Debug)]
pub(super) struct Compacting {
    views: Vec<u128>,
    buffers: Vec<Bytes>,
    open: Vec<u8>,
    held: u64,
}

/// Bytes of buffers of copied strings: of the first, and of the largest. Each is as large as all before it, and none is grown: to
/// move one took a millisecond.
const BUFFER_BYTES_MIN: usize = 4 << 10;
const BUFFER_BYTES_MAX: usize = 256 << 10;
/// Longer strings are not copied: their buffer holds little else.
const COPIED_BYTES_MAX: usize = 64 << 10;

impl Compacting {
    pub(super) fn new(values: usize) -> Result<Compacting> {
        Ok(Compacting { views: room(values)?, buffers: Vec::new(), open: Vec::new(), held: 0 })
    }

    /// Strings that are copied.
    pub(super) fn len(&self) -> usize {
        self.views.len()
    }

    /// Copies a string and returns its length in bytes.
    pub(super) fn push(&mut self, values: &ByteArrays, index: usize) -> Result<usize> {
        let view = values.views()[index];
        let words: &[u32; 4] = bytemuck::cast_ref(&view);
        let length = usize_of_u32(words[0]);
        if length <= INLINE_BYTES_MAX {
            self.views.push(view);
            return Ok(0);
        }
        let found = usize_of_u32(words[2]);
        let start = usize_of_u32(words[3]);
        let buffer =
            values.buffers().get(found).filter(|buffer| buffer.len().saturating_sub(start) >= length);
        let buffer =
            buffer.ok_or_else(|| Error::misuse(format!("a string of {length} bytes that is not there")))?;
        if length > COPIED_BYTES_MAX {
            self.seal();
            self.held += u64_of(length);
            self.views.push(moved(words, self.buffers.len(), 0)?);
            self.buffers.push(buffer.slice(start..start + length));
            return Ok(0);
        }
        if self.open.capacity() - self.open.len() < length {
            let before = usize_of(self.held).unwrap_or(usize::MAX).saturating_add(self.open.capacity());
            self.seal();
            self.open = room(before.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX).max(length))?;
        }
        self.views.push(moved(words, self.buffers.len(), self.open.len())?);
        self.open.extend_from_slice(&buffer[start..start + length]);
        Ok(length)
    }

    fn seal(&mut self) {
        if !self.open.is_empty() {
            self.held += u64_of(self.open.capacity());
            self.buffers.push(core::mem::take(&mut self.open).into());
        }
    }

    /// All strings, and the bytes that they hold outside of their views.
    pub(super) fn finish(mut self) -> (ByteArrays, u64) {
        self.seal();
        (ByteArrays::new(self.views.into(), Arc::new(self.buffers)), self.held)
    }
}

/// A view that points elsewhere.
fn moved(words: &[u32; 4], buffer: usize, offset: usize) -> Result<u128> {
    let number =
        |at: usize| u32::try_from(at).map_err(|_| Error::misuse("more strings than a batch can have"));
    Ok(bytemuck::cast([words[0], words[1], number(buffer)?, number(offset)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(all: &[&str]) -> ByteArrays {
        ByteArrays::from_lengths(Bytes::from(all.concat().into_bytes()), all.iter().map(|it| it.len()))
            .unwrap()
    }

    #[test]
    fn rows_are_placed_where_they_were_picked() {
        let pick = |(source, row)| Pick { source, row };
        let picks = [(2, 7), (0, 1), (2, 8), (2, 0), (0, 2)].map(pick);
        let order = Order::of(&picks, 4).unwrap();
        let (mut out, mut asked) = (alloc::vec![(9, 9)], Vec::new());
        order.place(picks.len(), &mut out, |source, row| {
            asked.push((source, row));
            (source, row)
        });
        assert_eq!(out, [(9, 9), (2, 7), (0, 1), (2, 8), (2, 0), (0, 2)]);
        assert_eq!(asked, [(0, 1), (0, 2), (2, 7), (2, 8), (2, 0)]);
        assert!(Order::of(&picks, 2).is_err());
    }

    #[test]
    fn strings_of_many_batches_share_their_buffers() {
        let columns = [
            strings(&["short", "one that is not short", "another that is not short"]),
            strings(&["the last one, which is long, too"]),
        ]
        .map(Values::ByteArray);
        let mut collected = Collected::new(PhysicalType::ByteArray, 5, 3).unwrap();
        let pick = |source, row| Pick { source, row };
        let picks = [pick(2, 0), pick(0, 1), pick(0, 0), pick(2, 0), pick(0, 2)];
        let sources = [Some((&columns[0], None)), None, Some((&columns[1], None))];
        collected.pick(sources.into_iter(), (&picks, None)).unwrap();
        let Values::ByteArray(values) = collected.finish() else { panic!() };
        assert_eq!(values.buffers().len(), 2);
        let expected = ["the last one, which is long, too", "one that is not short", "short"];
        assert!(values.iter().take(3).eq(expected.iter().map(|it| it.as_bytes())));
        assert_eq!(
            (values.get(3), values.get(4)),
            (expected[0].as_bytes(), &b"another that is not short"[..])
        );
        let wrong =
            Collected::new(PhysicalType::Int32, 1, 1).unwrap().pick(sources.into_iter(), (&picks, None));
        assert_eq!(wrong.unwrap_err().kind(), marquetry_base::ErrorKind::Misuse);
    }

    #[test]
    fn copied_strings_hold_what_they_are() {
        let long = "y".repeat(COPIED_BYTES_MAX + 1);
        let middle = "x".repeat(40_000);
        let all = [
            "a",
            &middle,
            "thirteen bytes",
            &long,
            &middle,
            &middle,
            &middle,
            &middle,
            &middle,
            &middle,
            "z",
        ];
        let values = strings(&all);
        let mut compacting = Compacting::new(all.len()).unwrap();
        for index in 0..all.len() {
            compacting.push(&values, index).unwrap();
        }
        assert_eq!(compacting.len(), all.len());
        let (copied, held) = compacting.finish();
        assert_eq!(copied, values);
        let lengths: Vec<usize> = copied.buffers().iter().map(|buffer| buffer.len()).collect();
        assert_eq!(lengths, [40_000, 14, 65_537, 120_000, 120_000]);
        let bytes = 7 * 40_000 + 65_537;
        assert!((bytes..2 * bytes).contains(&held), "{held}");
    }

    #[test]
    fn values_of_dictionaries_and_none() {
        let dictionary = Values::Dictionary(
            alloc::vec![1, 0, 7].into(),
            Arc::new(Values::Int64(alloc::vec![5, 6].into())),
        );
        let mut collected = Collected::new(PhysicalType::Int64, 3, 1).unwrap();
        [Some(0), None, Some(1)].into_iter().for_each(|index| {
            assert_eq!(collected.put(&dictionary, index).unwrap(), (true, 0));
        });
        assert!(collected.put(&dictionary, Some(2)).is_err());
        assert_eq!(collected.finish(), Values::Int64(alloc::vec![6, 0, 5].into()));
    }
}
