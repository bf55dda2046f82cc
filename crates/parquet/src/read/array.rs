//! Nested columns in Arrow's layout: offsets and validity at every level, made of the leaves' levels.
//!
//! Source: Arrow's columnar format (Variable-size List, Struct and Map layouts), and parquet-format's `README.md`, "Nested
//! Encoding".

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Bitmap, Buffer, Error, Limits, Result};
use marquetry_kernels::{Plain, bits, spread};

use super::builder::{spread_bits, spread_fixed};
use super::{ByteArrays, ColumnBatch, FixedBytes, Layout, Values};
use crate::schema::{Repeated, Shape, ShapeKind};

/// A field of a batch, in Arrow's layout: one slot a row, or an element of the list it is below.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The node of the schema.
    pub node: usize,
    /// Slots.
    pub length: usize,
    /// Slots that are null.
    pub nulls: usize,
    /// A bit a slot: there (1) or null (0). `None` when none is null.
    pub validity: Option<Bitmap>,
    /// What is in the slots.
    pub kind: ArrayKind,
}

/// What an [`Array`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum ArrayKind {
    /// Values, one a slot; a null's is zero or empty.
    Values(Values),
    /// Fields, each as long as the struct.
    Struct(Vec<Array>),
    /// `offsets[i]..offsets[i + 1]` are the elements of slot `i`.
    List(Buffer<i32>, Box<Array>),
    /// `offsets[i]..offsets[i + 1]` are the keys, and the values if there are any, of slot `i`.
    Map(Buffer<i32>, Box<Array>, Option<Box<Array>>),
}

/// Where slots are: entries of at most this repetition level and at least this definition level.
#[derive(Debug, Clone, Copy)]
struct Slots {
    repetition: u16,
    definition: u16,
}

impl Array {
    /// The array of a shape, of a batch's columns, which must have all of the shape's leaves; `column_of` finds a leaf's.
    ///
    /// # Errors
    ///
    /// `Misuse` for a leaf that is not there; `Corrupt` where the columns' levels contradict each other; `LimitExceeded` for lists of
    /// more than 2³¹ − 1 elements in a batch.
    pub fn assemble<'a>(
        shape: &Shape,
        rows: usize,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
    ) -> Result<Array> {
        let mut out = Vec::new();
        assemble(shape, Slots { repetition: 0, definition: 0 }, rows, column_of, &mut out)?;
        out.pop().ok_or_else(|| Error::internal("no array of a shape"))
    }
}

/// A shape that has a leaf, and where its slots are.
struct Field<'s> {
    shape: &'s Shape,
    first_leaf: usize,
    slots: Slots,
    length: usize,
}

/// Assembles a shape to the end of `out`.
///
/// It recurses, and hosts' stacks are small: what is large in it is in functions of its own, which do not.
fn assemble<'a>(
    shape: &Shape,
    slots: Slots,
    length: usize,
    column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
    out: &mut Vec<Array>,
) -> Result<()> {
    let Some(first_leaf) = shape.first_leaf() else {
        // A struct of nothing: no column could tell that it is null.
        return push(out, shape, length, (0, None), ArrayKind::Struct(Vec::new()));
    };
    let field = Field { shape, first_leaf, slots, length };
    let validity = field.validity(column_of)?;
    let mut below = Vec::new();
    match &shape.kind {
        ShapeKind::Leaf => {
            let values = field.values(&validity, column_of)?;
            push(out, shape, length, validity, ArrayKind::Values(values))
        }
        ShapeKind::Struct(fields) => {
            for field in fields {
                assemble(field, slots, length, column_of, &mut below)?;
            }
            push(out, shape, length, validity, ArrayKind::Struct(below))
        }
        ShapeKind::List(repeated, element) => {
            let offsets = field.offsets(repeated, column_of)?;
            assemble(element, Slots::below(repeated), elements(&offsets), column_of, &mut below)?;
            push_list(out, shape, length, validity, offsets, below)
        }
        ShapeKind::Map(repeated, key, value) => {
            let offsets = field.offsets(repeated, column_of)?;
            let (slots, entries) = (Slots::below(repeated), elements(&offsets));
            assemble(key, slots, entries, column_of, &mut below)?;
            if let Some(value) = value {
                assemble(value, slots, entries, column_of, &mut below)?;
            }
            push_list(out, shape, length, validity, offsets, below)
        }
    }
}

/// Nulls, and which slots are there.
type Validity = (usize, Option<Bitmap>);

#[inline(never)]
fn push(
    out: &mut Vec<Array>,
    shape: &Shape,
    length: usize,
    (nulls, validity): Validity,
    kind: ArrayKind,
) -> Result<()> {
    out.push(Array { node: shape.node, length, nulls, validity, kind });
    Ok(())
}

#[inline(never)]
fn push_list(
    out: &mut Vec<Array>,
    shape: &Shape,
    length: usize,
    validity: Validity,
    offsets: Buffer<i32>,
    below: Vec<Array>,
) -> Result<()> {
    let mut below = below.into_iter().map(Box::new);
    let first = below.next().ok_or_else(|| Error::internal("a list without an element"))?;
    let kind = match shape.kind {
        ShapeKind::Map(..) => ArrayKind::Map(offsets, first, below.next()),
        _ => ArrayKind::List(offsets, first),
    };
    push(out, shape, length, validity, kind)
}

/// Elements of all slots.
fn elements(offsets: &[i32]) -> usize {
    offsets.last().map_or(0, |&last| last.unsigned_abs() as usize)
}

impl Slots {
    /// Those of a list's elements.
    fn below(repeated: &Repeated) -> Slots {
        Slots { repetition: repeated.repetition, definition: repeated.definition }
    }
}

impl Field<'_> {
    /// The levels of the leaves after the first, which must say the same of the field as it does.
    fn others<'a>(
        &self,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
    ) -> impl Iterator<Item = LeafLevels<'a>> {
        let leaves = self.shape.leaves.clone().skip_while(|&leaf| leaf <= self.first_leaf);
        leaves.filter_map(column_of).map(LeafLevels::of)
    }

    #[inline(never)]
    fn validity<'a>(&self, column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>) -> Result<Validity> {
        if !self.shape.is_nullable {
            return Ok((0, None));
        }
        let of = |levels: LeafLevels<'_>| levels.validity(self.slots, self.shape.definition, self.length);
        let (nulls, validity) = of(LeafLevels::of(column(self.first_leaf, column_of)?))?;
        for other in self.others(column_of) {
            let (_, other) = of(other)?;
            if other.as_ref().map(Bitmap::bytes) != validity.as_ref().map(Bitmap::bytes) {
                return Err(disagree());
            }
        }
        Ok((nulls, validity))
    }

    /// Where each slot's elements start, and where the last one's end.
    #[inline(never)]
    fn offsets<'a>(
        &self,
        repeated: &Repeated,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
    ) -> Result<Buffer<i32>> {
        let levels = LeafLevels::of(column(self.first_leaf, column_of)?);
        let offsets = levels.offsets(self.slots, *repeated, self.length)?;
        for other in self.others(column_of) {
            if other.offsets(self.slots, *repeated, self.length)? != offsets {
                return Err(disagree());
            }
        }
        Ok(offsets.into())
    }

    /// A leaf's values, one a slot.
    #[inline(never)]
    fn values<'a>(
        &self,
        (nulls, validity): &Validity,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
    ) -> Result<Values> {
        let column = column(self.first_leaf, column_of)?;
        let levels = LeafLevels::of(column);
        if self.shape.is_nullable || self.shape.definition == self.slots.definition {
            return levels.values(column, self.length, *nulls, validity.as_ref());
        }
        // A required field of a struct that can be null: where that is, there is a slot without a value.
        let (absent, there) = levels.validity(self.slots, self.shape.definition, self.length)?;
        levels.values(column, self.length, absent, there.as_ref())
    }
}

fn column<'a>(leaf: usize, column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>) -> Result<&'a ColumnBatch> {
    column_of(leaf).ok_or_else(|| Error::misuse("a shape with a leaf that is not in the batch"))
}

/// The levels of a leaf, of whichever kind its batch has.
enum LeafLevels<'a> {
    /// A flat leaf: one entry a row, of definition level 0 or 1.
    Flat(&'a ColumnBatch),
    /// A leaf below no list: one entry a row.
    Rows(&'a [u8]),
    /// Definition and repetition levels.
    Entries(&'a [u8], &'a [u8]),
}

impl<'a> LeafLevels<'a> {
    fn of(column: &'a ColumnBatch) -> LeafLevels<'a> {
        match &column.levels {
            None => LeafLevels::Flat(column),
            Some(levels) => match &levels.repetition {
                None => LeafLevels::Rows(&levels.definition),
                Some(repetition) => LeafLevels::Entries(&levels.definition, repetition),
            },
        }
    }

    /// Hands out each entry's definition and repetition level.
    fn each(&self, mut take: impl FnMut(u16, u16)) {
        match self {
            LeafLevels::Flat(column) => {
                for row in 0..column.rows {
                    take(u16::from(!column.is_null(row)), 0);
                }
            }
            LeafLevels::Rows(definition) => {
                definition.iter().for_each(|&definition| take(definition.into(), 0))
            }
            LeafLevels::Entries(definition, repetition) => {
                for (&definition, &repetition) in definition.iter().zip(*repetition) {
                    take(definition.into(), repetition.into());
                }
            }
        }
    }

    /// Which slots are there: those whose definition level is at least `present`.
    fn validity(&self, slots: Slots, present: u16, length: usize) -> Result<(usize, Option<Bitmap>)> {
        let mut bytes = Vec::new();
        let (mut at, mut there) = (0usize, 0usize);
        bytes.resize(length.div_ceil(8), 0u8);
        self.each(|definition, repetition| {
            if repetition <= slots.repetition && definition >= slots.definition {
                if definition >= present {
                    if let Some(byte) = bytes.get_mut(at / 8) {
                        *byte |= 1 << (at % 8);
                    }
                    there += 1;
                }
                at += 1;
            }
        });
        if at != length {
            return Err(disagree());
        }
        let nulls = length - there;
        Ok((nulls, (nulls > 0).then(|| Bitmap::new(bytes.into(), 0, length))))
    }

    /// Where each slot's elements start, and where the last one's end.
    fn offsets(&self, slots: Slots, repeated: Repeated, length: usize) -> Result<Vec<i32>> {
        let mut offsets = Vec::new();
        offsets.try_reserve_exact(length + 1).map_err(|_| Error::out_of_memory(length * 4))?;
        let mut elements = 0u64;
        self.each(|definition, repetition| {
            if repetition <= slots.repetition && definition >= slots.definition {
                offsets.push(i32::try_from(elements).unwrap_or(i32::MAX));
            }
            if repetition <= repeated.repetition && definition >= repeated.definition {
                elements += 1;
            }
        });
        if offsets.len() != length {
            return Err(disagree());
        }
        let last = i32::try_from(elements).map_err(|_| {
            Error::new(
                marquetry_base::ErrorKind::LimitExceeded,
                "more than 2,147,483,647 elements in a batch",
            )
        })?;
        offsets.push(last);
        Ok(offsets)
    }

    /// The leaf's values, one a slot.
    fn values(
        &self,
        column: &ColumnBatch,
        length: usize,
        nulls: usize,
        validity: Option<&Bitmap>,
    ) -> Result<Values> {
        let is_spaced = column.layout == Layout::Spaced || nulls == 0;
        if column.values.len() != if is_spaced { length } else { length - nulls } {
            return Err(disagree());
        }
        match validity {
            Some(validity) if !is_spaced => spaced(&column.values, length, validity),
            _ => Ok(column.values.clone()),
        }
    }
}

/// Dense values with a slot for each null.
fn spaced(values: &Values, length: usize, validity: &Bitmap) -> Result<Values> {
    Ok(match values {
        Values::Int32(values) => Values::Int32(spread_plain(values, length, validity)?),
        Values::Int64(values) => Values::Int64(spread_plain(values, length, validity)?),
        Values::Float(values) => Values::Float(spread_plain(values, length, validity)?),
        Values::Double(values) => Values::Double(spread_plain(values, length, validity)?),
        Values::Boolean(bits) => {
            let mut out = room(length.div_ceil(8))?;
            bits::copy(bits.bytes(), bits.offset(), &mut out, 0, bits.len()).map_err(|_| disagree())?;
            spread_bits(&mut out, bits.len(), length, validity.bytes())?;
            Values::Boolean(Bitmap::new(out.into(), 0, length))
        }
        Values::ByteArray(values) => Values::ByteArray(ByteArrays::new(
            spread_plain(values.views(), length, validity)?,
            Arc::clone(values.buffers()),
        )),
        Values::Int96(values) => Values::Int96(spread_bytes(values, length, validity)?),
        Values::FixedLenByteArray(values) => {
            Values::FixedLenByteArray(spread_bytes(values, length, validity)?)
        }
        Values::Dictionary(indices, entries) => {
            Values::Dictionary(spread_plain(indices, length, validity)?, Arc::clone(entries))
        }
    })
}

fn spread_plain<T: Plain + Default>(values: &[T], length: usize, validity: &Bitmap) -> Result<Buffer<T>> {
    let mut out = room(length)?;
    out[..values.len()].copy_from_slice(values);
    spread::in_place(&mut out, values.len(), validity.bytes(), validity.offset()).map_err(|_| disagree())?;
    Ok(out.into())
}

fn spread_bytes(values: &FixedBytes, length: usize, validity: &Bitmap) -> Result<FixedBytes> {
    let width = values.width();
    let bytes = length.saturating_mul(width);
    // Nulls take nothing in the file, and a width is only claimed.
    Limits::check("page_bytes", Limits::DEFAULT.page_bytes, bytes as u64)?;
    let mut out = room(bytes)?;
    out[..values.bytes().len()].copy_from_slice(values.bytes());
    spread_fixed(&mut out, width, values.len(), length, validity.bytes())?;
    Ok(FixedBytes::new(width, length, out.into()))
}

fn room<T: Clone + Default>(length: usize) -> Result<Vec<T>> {
    let mut room = Vec::new();
    room.try_reserve_exact(length)
        .map_err(|_| Error::out_of_memory(length.saturating_mul(size_of::<T>())))?;
    room.resize(length, T::default());
    Ok(room)
}

/// Levels of columns that cannot be of the same rows.
fn disagree() -> Error {
    Error::corrupt("the levels of the columns contradict each other")
}
