//! Values and levels to the bodies of pages.
//!
//! An [`Encoder`] takes the values of a page, a slice at a time, and returns the page's body at its end. It is then
//! ready for the next page. A [`LevelEncoder`] does the same for levels.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Bitmap, Budget, Error, Price, Result, cast};
use marquetry_kernels::plain::cast as cast_slice;
use marquetry_kernels::{Plain, bits, compact};

pub use crate::batch::Slice;
pub use crate::encoding::output::Body;

use crate::encoding::alp::encode::AlpEncoder;
use crate::encoding::byte_stream_split::encode::SplitEncoder;
use crate::encoding::delta::encode::DeltaEncoder;
use crate::encoding::delta_byte_array::encode::{LengthsEncoder, PrefixEncoder};
use crate::encoding::hybrid::encode::{HybridEncoder, LENGTH_BYTES};
use crate::encoding::indices::IndexEncoder;
use crate::encoding::other_type;
use crate::encoding::plain::encode::PlainEncoder;
use crate::format::Encoding;
use crate::growing::SLICE_BYTES;
use crate::schema::PhysicalType;

/// The cost of ending a page, besides what is done in slices.
const FINISH_UNITS: u64 = 2_000;

/// The price of a value that is copied unless it is null; for strings of one length, by their bytes and their runs.
const COMPACT_PRICE: Price = Price { kib: 1024, kilovalue: 2 << 10 };

/// Levels that are compared with the maximum at a time.
const LEVELS_AT_ONCE: usize = 4096;

/// An encoder of one column's values in one encoding, page after page.
///
/// ```
/// # fn main() -> Result<(), marquetry_base::Error> {
/// use marquetry_base::Budget;
/// use marquetry_parquet::format::Encoding;
/// use marquetry_parquet::schema::PhysicalType;
/// use marquetry_parquet::write::encoder::{Encoder, Slice};
///
/// let mut encoder = Encoder::new(Encoding::Plain, PhysicalType::Int32)?;
/// let values = [1, 2, 3];
/// let mut done = 0;
/// while done < values.len() {
///     done += encoder.put(Slice::Int32(&values[done..]), &mut Budget::default())?;
/// }
/// let body = loop {
///     if let Some(body) = encoder.finish(&mut Budget::default())? {
///         break body;
///     }
/// };
/// assert_eq!(body.pieces()[0][..], [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Encoder {
    kind: Kind,
    physical: PhysicalType,
    values: usize,
}

/// One per encoding. Those with buffers of their own are boxed, because a table may have very many columns.
#[derive(Debug)]
enum Kind {
    Plain(PlainEncoder),
    Booleans(HybridEncoder),
    Indices(IndexEncoder),
    DeltaInt32(DeltaEncoder<i32>),
    DeltaInt64(DeltaEncoder<i64>),
    DeltaLength(Box<LengthsEncoder>),
    DeltaBytes(Box<PrefixEncoder>),
    Split(SplitEncoder),
    AlpFloat(Box<AlpEncoder<f32>>),
    AlpDouble(Box<AlpEncoder<f64>>),
}

impl Encoder {
    /// An encoder of values of a type. One of [`Encoding::RleDictionary`] takes [indices](Slice::Indices), whatever the type.
    ///
    /// # Errors
    ///
    /// `Misuse` if the format does not allow that type in that encoding; `Unsupported` for BYTE_STREAM_SPLIT of
    /// strings of more than 64 KiB.
    pub fn new(encoding: Encoding, physical: PhysicalType) -> Result<Encoder> {
        use PhysicalType::{Boolean, ByteArray, Double, FixedLenByteArray, Float, Int32, Int64};
        let kind = match (encoding, physical) {
            (Encoding::Plain, _) => Kind::Plain(PlainEncoder::default()),
            (Encoding::Rle, Boolean) => Kind::Booleans(HybridEncoder::new(1, true)),
            (Encoding::RleDictionary, _) if physical != Boolean => Kind::Indices(IndexEncoder::default()),
            (Encoding::DeltaBinaryPacked, Int32) => Kind::DeltaInt32(DeltaEncoder::default()),
            (Encoding::DeltaBinaryPacked, Int64) => Kind::DeltaInt64(DeltaEncoder::default()),
            (Encoding::DeltaLengthByteArray, ByteArray) => Kind::DeltaLength(Box::default()),
            (Encoding::DeltaByteArray, ByteArray | FixedLenByteArray(_)) => Kind::DeltaBytes(Box::default()),
            (Encoding::ByteStreamSplit, Int32 | Float) => Kind::Split(SplitEncoder::new(4)),
            (Encoding::ByteStreamSplit, Int64 | Double) => Kind::Split(SplitEncoder::new(8)),
            (Encoding::Alp, Float) => Kind::AlpFloat(Box::default()),
            (Encoding::Alp, Double) => Kind::AlpDouble(Box::default()),
            // Without bytes there are no streams.
            (Encoding::ByteStreamSplit, FixedLenByteArray(0)) => Kind::Plain(PlainEncoder::default()),
            (Encoding::ByteStreamSplit, FixedLenByteArray(width)) => match cast::usize_of_u32(width) {
                width @ ..=SLICE_BYTES => Kind::Split(SplitEncoder::new(width)),
                width => {
                    return Err(Error::unsupported(format!("BYTE_STREAM_SPLIT of strings of {width} bytes")));
                }
            },
            _ => return Err(Error::misuse(format!("{physical} cannot be encoded as {encoding}"))),
        };
        Ok(Encoder { kind, physical, values: 0 })
    }

    /// Takes values and returns how many. Stops when the budget is spent, but always makes progress: it may have
    /// encoded only part of a long value, and then expects that value again, first. Pass the rest again. The same
    /// values give the same bytes, however they are split.
    ///
    /// # Errors
    ///
    /// `Misuse` for values of another type; an error if memory cannot be allocated. The encoder then stays failed.
    pub fn put(&mut self, values: Slice<'_>, budget: &mut Budget<'_>) -> Result<usize> {
        let done = match (&mut self.kind, values) {
            (Kind::Indices(encoder), Slice::Indices(indices)) => encoder.put(indices, budget),
            _ if !values.is_of(self.physical) => Err(other_type()),
            (Kind::Plain(encoder), values) => encoder.put(values, budget),
            (Kind::Booleans(encoder), Slice::Boolean { bits, first, values }) => {
                encoder.put_bits(bits, first, values, budget)
            }
            (Kind::DeltaInt32(encoder), Slice::Int32(values)) => encoder.put(values, budget),
            (Kind::DeltaInt64(encoder), Slice::Int64(values)) => encoder.put(values, budget),
            (Kind::DeltaLength(encoder), values) => encoder.put(values, budget),
            (Kind::DeltaBytes(encoder), values) => encoder.put(values, budget),
            (Kind::Split(encoder), values) => encoder.put(values, budget),
            (Kind::AlpFloat(encoder), Slice::Float(values)) => encoder.put(values, budget),
            (Kind::AlpDouble(encoder), Slice::Double(values)) => encoder.put(values, budget),
            _ => Err(other_type()),
        }?;
        self.values += done;
        Ok(done)
    }

    /// The indices taken for this page, if it is a page of indices.
    pub(super) fn into_indices(self) -> Vec<Vec<u32>> {
        if let Kind::Indices(encoder) = self.kind { encoder.into_pieces() } else { Vec::new() }
    }

    /// Values taken for this page.
    pub fn values(&self) -> usize {
        self.values
    }

    /// The bytes that the page's values would take if it ended here: exact for PLAIN, otherwise approximate.
    pub fn bytes(&self) -> usize {
        match &self.kind {
            Kind::Plain(encoder) => encoder.bytes(),
            Kind::Booleans(encoder) => LENGTH_BYTES + encoder.bytes(),
            Kind::Indices(encoder) => encoder.bytes(),
            Kind::DeltaInt32(encoder) => encoder.bytes(),
            Kind::DeltaInt64(encoder) => encoder.bytes(),
            Kind::DeltaLength(encoder) => encoder.bytes(),
            Kind::DeltaBytes(encoder) => encoder.bytes(),
            Kind::Split(encoder) => encoder.bytes(),
            Kind::AlpFloat(encoder) => encoder.bytes(),
            Kind::AlpDouble(encoder) => encoder.bytes(),
        }
    }

    /// Ends the page and returns its body, without levels; the encoder is then ready for the next page. `None` if the
    /// budget is spent; call again.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated; `Misuse` in the middle of a value.
    pub fn finish(&mut self, budget: &mut Budget<'_>) -> Result<Option<Body>> {
        // What ending a page costs in every encoding, besides what is sliced.
        budget.charge_units(FINISH_UNITS);
        let body = match &mut self.kind {
            Kind::Plain(encoder) => Some(encoder.finish()?),
            Kind::Booleans(encoder) => Some(encoder.finish(true)?),
            Kind::Indices(encoder) => encoder.finish(budget)?,
            Kind::DeltaInt32(encoder) => Some(encoder.finish()?),
            Kind::DeltaInt64(encoder) => Some(encoder.finish()?),
            Kind::DeltaLength(encoder) => Some(encoder.finish()?),
            Kind::DeltaBytes(encoder) => Some(encoder.finish()?),
            Kind::Split(encoder) => encoder.finish(budget)?,
            Kind::AlpFloat(encoder) => Some(encoder.finish(budget)?),
            Kind::AlpDouble(encoder) => Some(encoder.finish(budget)?),
        };
        if body.is_some() {
            self.values = 0;
        }
        Ok(body)
    }
}

/// An encoder of the definition or repetition levels of pages.
#[derive(Debug)]
pub struct LevelEncoder {
    /// `None` if all levels are 0: a table may have very many columns, most of them flat.
    runs: Option<Box<HybridEncoder>>,
    max: u8,
    levels: usize,
}

impl LevelEncoder {
    /// An encoder of levels up to `max`. If that is 0, there are no levels to encode, and no bytes.
    pub fn new(max: u8) -> LevelEncoder {
        let runs = || Box::new(HybridEncoder::new(u8::BITS - max.leading_zeros(), true));
        LevelEncoder { runs: (max > 0).then(runs), max, levels: 0 }
    }

    /// Takes one level `count` times, at a cost that does not depend on `count`.
    ///
    /// # Errors
    ///
    /// `Misuse` for a level above the maximum; an error if memory cannot be allocated.
    pub fn put_run(&mut self, level: u8, count: usize) -> Result<()> {
        self.check(level)?;
        self.levels += count;
        self.runs.as_mut().map_or(Ok(()), |runs| runs.put_run(level.into(), count))
    }

    /// Takes levels and returns how many. Stops when the budget is spent, but always makes progress.
    ///
    /// # Errors
    ///
    /// `Misuse` for a level above the maximum; an error if memory cannot be allocated.
    pub fn put(&mut self, levels: &[u8], budget: &mut Budget<'_>) -> Result<usize> {
        let mut done = 0;
        while done < levels.len() {
            let now = &levels[done..levels.len().min(done + LEVELS_AT_ONCE)];
            self.check(now.iter().fold(0, |largest, &level| level.max(largest)))?;
            done += self.runs.as_mut().map_or(Ok(now.len()), |runs| runs.put(now, budget))?;
            if budget.is_spent() {
                break;
            }
        }
        self.levels += done;
        Ok(done)
    }

    /// Takes definition levels of 0 and 1 from the validity of rows, and returns how many, as [`LevelEncoder::put`]
    /// does.
    ///
    /// # Errors
    ///
    /// `Misuse` if the maximum level is not 1, and for rows beyond the bitmap; an error if memory cannot be allocated.
    pub fn put_validity(
        &mut self,
        validity: &Bitmap,
        rows: Range<usize>,
        budget: &mut Budget<'_>,
    ) -> Result<usize> {
        let (Some(runs), 1, true) = (&mut self.runs, self.max, rows.end <= validity.len()) else {
            return Err(Error::misuse("validity for levels that are more than it says"));
        };
        let first = validity.offset() + rows.start;
        let done = runs.put_bits(validity.bytes(), first, rows.len(), budget)?;
        self.levels += done;
        Ok(done)
    }

    /// Levels taken for this page.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// The approximate bytes that the levels would take if the page ended here, without a V1 page's length.
    pub fn bytes(&self) -> usize {
        self.runs.as_ref().map_or(0, |runs| runs.bytes())
    }

    /// Ends the page's levels and returns their bytes, preceded by their length in four bytes if `with_length`, as in
    /// V1 pages; no bytes if the maximum level is 0. The encoder is then ready for the next page. The cost does not
    /// depend on the page.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub fn finish(&mut self, with_length: bool) -> Result<Body> {
        self.levels = 0;
        self.runs.as_mut().map_or_else(|| Ok(Body::default()), |runs| runs.finish(with_length))
    }

    fn check(&self, level: u8) -> Result<()> {
        if level <= self.max {
            return Ok(());
        }
        Err(Error::misuse(format!("the level {level}, where {} is the largest", self.max)))
    }
}

/// Memory for the values of a slice with nulls ([`Layout::Spaced`](crate::batch::Layout)), without the nulls.
#[derive(Debug, Default)]
pub struct Compacted {
    fours: Vec<u32>,
    eights: Vec<u64>,
    views: Vec<u128>,
    bytes: Vec<u8>,
}

impl Compacted {
    /// The values of `slice` whose bit in `validity`, which has one bit per value, is set. Call it with a few thousand
    /// values at a time, or with fewer long strings: it handles all of them in one call.
    ///
    /// # Errors
    ///
    /// `Misuse` if the two differ in length; an error if memory cannot be allocated.
    pub fn compact<'a>(
        &'a mut self,
        slice: Slice<'a>,
        validity: &Bitmap,
        budget: &mut Budget<'_>,
    ) -> Result<Slice<'a>> {
        if slice.len() != validity.len() {
            return Err(Error::misuse("values and validity of different lengths"));
        }
        let bytes = if let Slice::Fixed { bytes, .. } = slice { bytes.len() } else { 0 };
        budget.charge(COMPACT_PRICE, bytes, slice.len());
        Ok(match slice {
            Slice::Boolean { bits, first, values } => {
                let bytes = filled(&mut self.bytes, values.div_ceil(8))?;
                bytes.fill(0);
                let (mask, mask_first) = (validity.bytes(), validity.offset());
                let values = compact::bits(bits, first, mask, mask_first, values, bytes)
                    .map_err(|_| Error::misuse("a bitmap too short"))?;
                Slice::Boolean { bits: bytes, first: 0, values }
            }
            Slice::Int32(values) => {
                Slice::Int32(cast_slice(compacted(cast_slice(values), validity, &mut self.fours)?))
            }
            Slice::Float(values) => {
                Slice::Float(cast_slice(compacted(cast_slice(values), validity, &mut self.fours)?))
            }
            Slice::Indices(values) => Slice::Indices(compacted(values, validity, &mut self.fours)?),
            Slice::Int64(values) => {
                Slice::Int64(cast_slice(compacted(cast_slice(values), validity, &mut self.eights)?))
            }
            Slice::Double(values) => {
                Slice::Double(cast_slice(compacted(cast_slice(values), validity, &mut self.eights)?))
            }
            Slice::ByteArray(views, buffers) => {
                Slice::ByteArray(compacted(views, validity, &mut self.views)?, buffers)
            }
            Slice::Fixed { width, values, bytes } => {
                let room = filled(&mut self.bytes, bytes.len())?;
                let there = compact::fixed(width, bytes, validity.bytes(), validity.offset(), room);
                let there = there.map_err(|_| Error::misuse("strings of other bytes than they say"))?;
                // With a width of 0, only the bitmap has the number.
                let there = if width > 0 {
                    there
                } else {
                    bits::count_ones(validity.bytes(), validity.offset(), values).unwrap_or(0)
                };
                Slice::Fixed { width, values: there, bytes: &room[..there * width] }
            }
        })
    }
}

/// See [`Compacted::compact`].
fn compacted<'a, T: Plain>(values: &[T], validity: &Bitmap, room: &'a mut Vec<T>) -> Result<&'a [T]> {
    let room = filled(room, values.len())?;
    let there = compact::values(values, validity.bytes(), validity.offset(), room)
        .map_err(|_| Error::internal("no room for values"))?;
    Ok(&room[..there])
}

/// `values` values of `room`, with any content.
fn filled<T: Plain>(room: &mut Vec<T>, values: usize) -> Result<&mut [T]> {
    if room.len() < values {
        let more = values - room.len();
        room.try_reserve_exact(more).map_err(|_| Error::out_of_memory(values * size_of::<T>()))?;
        room.resize(values, T::ZERO);
    }
    Ok(&mut room[..values])
}

#[cfg(test)]
mod tests;
