//! From a data page's bytes to values: which decoder, and where its values go.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use marquetry_base::{Bytes, Error, Price, Result};
use marquetry_kernels::plain::as_bytes_mut;
use marquetry_kernels::{Plain, bits, gather, strings};

use super::Values;
use super::builder::{Builder, Output, Store};
use super::dictionary::Entries;
use crate::encoding::alp::Alp;
use crate::encoding::byte_stream_split::ByteStreamSplit;
use crate::encoding::delta::Delta;
use crate::encoding::delta_byte_array::{DeltaByteArray, DeltaLengthByteArray};
use crate::encoding::hybrid::{Hybrid, WIDTH_MAX, beyond_dictionary};
use crate::encoding::plain::{Accept, PlainByteArray, PlainFixed};
use crate::format::Encoding;
use crate::schema::PhysicalType;

/// What the decoders cost, by the value; measured by the read benchmark, rounded up.
mod price {
    use super::Price;

    /// A copy; the wider the value, the dearer, up to 16 bytes. Byte strings are paid by the byte as well.
    pub(super) const FIXED: Price = Price { kib: 100, kilovalue: 1500 };
    /// Unpack and look up.
    pub(super) const DICTIONARY: Price = Price { kib: 100, kilovalue: 2500 };
    /// Read a length, make a view.
    pub(super) const BYTE_ARRAY: Price = Price::per_kilovalue(6000);
    /// Unpack and sum up.
    pub(super) const DELTA: Price = Price::per_kilovalue(2500);
    /// Unpack and multiply; once a vector, look at the positions of its exceptions.
    pub(super) const ALP: Price = Price::per_kilovalue(12_000);
    /// Build a value of two parts.
    pub(super) const DELTA_BYTE_ARRAY: Price = Price { kib: 200, kilovalue: 30_000 };
}

/// A decoder of a page's values, somewhere in the page.
#[derive(Debug)]
pub(super) enum ValueDecoder {
    /// PLAIN of one width.
    Plain(PlainFixed),
    /// PLAIN BOOLEAN: bits, and the next one's number.
    PlainBits(Bytes, usize),
    /// PLAIN BYTE_ARRAY.
    PlainByteArray(PlainByteArray),
    /// RLE BOOLEAN.
    Rle(Hybrid),
    /// RLE_DICTIONARY.
    Dictionary(Hybrid),
    /// DELTA_BINARY_PACKED INT32.
    Delta32(Box<Delta<i32>>),
    /// DELTA_BINARY_PACKED INT64.
    Delta64(Box<Delta<i64>>),
    /// ALP FLOAT.
    AlpFloat(Box<Alp<f32>>),
    /// ALP DOUBLE.
    AlpDouble(Box<Alp<f64>>),
    /// DELTA_LENGTH_BYTE_ARRAY.
    DeltaLengthByteArray(Box<DeltaLengthByteArray>),
    /// DELTA_BYTE_ARRAY.
    DeltaByteArray(Box<DeltaByteArray>),
    /// BYTE_STREAM_SPLIT.
    ByteStreamSplit(ByteStreamSplit),
    /// A page without a value: every row is null.
    Nothing,
}

impl ValueDecoder {
    /// The decoder for a page's values.
    pub(super) fn new(
        encoding: Encoding,
        physical_type: PhysicalType,
        body: Bytes,
        dictionary: Option<&Entries>,
        accept: Accept,
    ) -> Result<ValueDecoder> {
        use PhysicalType::{Boolean, ByteArray, Double, FixedLenByteArray, Float, Int32, Int64};
        if body.is_empty() && encoding != Encoding::Plain {
            // All null; writers then leave out bit widths and headers.
            return Ok(ValueDecoder::Nothing);
        }
        Ok(match (encoding, physical_type) {
            (Encoding::Plain, Boolean) => ValueDecoder::PlainBits(body, 0),
            (Encoding::Plain, ByteArray) => ValueDecoder::PlainByteArray(PlainByteArray::new(body, accept)),
            (Encoding::Plain, _) => ValueDecoder::Plain(PlainFixed::new(body)),
            (Encoding::RleDictionary | Encoding::PlainDictionary, _) => {
                if dictionary.is_none() {
                    return Err(Error::corrupt("indices into a dictionary that is not there"));
                }
                let width = u32::from(body[0]);
                if width > WIDTH_MAX {
                    return Err(Error::corrupt(format!("dictionary indices of {width} bits")));
                }
                ValueDecoder::Dictionary(Hybrid::new(body.slice(1..), width))
            }
            (Encoding::Rle, Boolean) => {
                let (runs, _) = prefixed(&body)?;
                ValueDecoder::Rle(Hybrid::new(runs, 1))
            }
            (Encoding::DeltaBinaryPacked, Int32) => ValueDecoder::Delta32(Box::new(Delta::new(body)?)),
            (Encoding::DeltaBinaryPacked, Int64) => ValueDecoder::Delta64(Box::new(Delta::new(body)?)),
            (Encoding::DeltaLengthByteArray, ByteArray) => {
                ValueDecoder::DeltaLengthByteArray(Box::new(DeltaLengthByteArray::new(body, accept)?))
            }
            (Encoding::DeltaByteArray, ByteArray | FixedLenByteArray(_)) => {
                ValueDecoder::DeltaByteArray(Box::new(DeltaByteArray::new(body, accept)?))
            }
            (Encoding::ByteStreamSplit, Int32 | Int64 | Float | Double | FixedLenByteArray(_)) => {
                ValueDecoder::ByteStreamSplit(ByteStreamSplit::new(body, physical_type.width().unwrap_or(0))?)
            }
            (Encoding::Alp, Float) => ValueDecoder::AlpFloat(Box::new(Alp::new(body)?)),
            (Encoding::Alp, Double) => ValueDecoder::AlpDouble(Box::new(Alp::new(body)?)),
            (Encoding::Unknown(_), _) => {
                return Err(Error::unsupported(format!("the encoding {encoding} is not supported")));
            }
            _ => return Err(Error::corrupt(format!("the encoding {encoding} cannot hold {physical_type}"))),
        })
    }

    /// What a value costs.
    pub(super) fn price(&self, dictionary: Option<&Entries>) -> Price {
        match self {
            ValueDecoder::Plain(_) | ValueDecoder::PlainBits(..) | ValueDecoder::Nothing => price::FIXED,
            ValueDecoder::Rle(_) | ValueDecoder::ByteStreamSplit(_) => price::FIXED,
            ValueDecoder::Dictionary(_) => dictionary.and_then(Entries::price).unwrap_or(price::DICTIONARY),
            ValueDecoder::PlainByteArray(_) | ValueDecoder::DeltaLengthByteArray(_) => price::BYTE_ARRAY,
            ValueDecoder::Delta32(_) | ValueDecoder::Delta64(_) => price::DELTA,
            ValueDecoder::AlpFloat(_) | ValueDecoder::AlpDouble(_) => price::ALP,
            ValueDecoder::DeltaByteArray(_) => price::DELTA_BYTE_ARRAY,
        }
    }

    /// How many of the next `count` values to decode at a time, so that they are not too many bytes; at least one.
    pub(super) fn slice_values(&self, builder: &Builder, count: usize) -> usize {
        match (self, &builder.output) {
            (ValueDecoder::DeltaByteArray(delta), Output::ByteArray(..)) => {
                delta.values_within(count, SLICE_BYTES_MAX)
            }
            (_, Output::Fixed(width, _)) => count.min((SLICE_BYTES_MAX / width.max(&1)).max(1)),
            _ => count,
        }
    }

    /// True for indices into a dictionary.
    pub(super) fn is_dictionary(&self) -> bool {
        matches!(self, ValueDecoder::Dictionary(_))
    }

    /// Decodes `count` values to the end of the batch's.
    pub(super) fn decode(
        &mut self,
        builder: &mut Builder,
        dictionary: Option<&Entries>,
        count: usize,
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        if let (ValueDecoder::Dictionary(hybrid), Some(Entries::Segmented(segmented))) =
            (&mut *self, dictionary)
        {
            return segmented.look_up(hybrid, builder, count);
        }
        let dictionary = dictionary.and_then(Entries::whole);
        let (capacity, at) = (builder.capacity, builder.values);
        if let (ValueDecoder::Dictionary(hybrid), Some(true)) = (&mut *self, builder.holds_indices) {
            let out = builder.indices.room(capacity, at, count)?;
            hybrid.decode(out)?;
            let entries = dictionary.map_or(0, Values::len);
            if gather::max_u32(out) as usize >= entries {
                return Err(beyond_dictionary(entries));
            }
            builder.values += count;
            return Ok(());
        }
        match &mut builder.output {
            Output::Int32(store) => {
                self.numbers(store, dictionary, (capacity, at, count), |values| match values {
                    Values::Int32(values) => Some(values),
                    _ => None,
                })?
            }
            Output::Int64(store) => {
                self.numbers(store, dictionary, (capacity, at, count), |values| match values {
                    Values::Int64(values) => Some(values),
                    _ => None,
                })?
            }
            Output::Float(store) => {
                self.numbers(store, dictionary, (capacity, at, count), |values| match values {
                    Values::Float(values) => Some(values),
                    _ => None,
                })?
            }
            Output::Double(store) => {
                self.numbers(store, dictionary, (capacity, at, count), |values| match values {
                    Values::Double(values) => Some(values),
                    _ => None,
                })?
            }
            Output::Boolean(store) => {
                let out = store.room(capacity.div_ceil(8), 0, (at + count).div_ceil(8))?;
                match self {
                    ValueDecoder::PlainBits(bytes, bit) => {
                        bits::copy(bytes, *bit, out, at, count)
                            .map_err(|_| crate::encoding::too_few_values())?;
                        *bit += count;
                    }
                    ValueDecoder::Rle(hybrid) => drop(hybrid.decode_bits(out, at, count)?),
                    _ => return Err(self.mismatch()),
                }
            }
            Output::Fixed(width, store) => {
                let width = *width;
                // A schema can claim any width: first see that the values are there, then make room for them.
                let mut built = Vec::new();
                match self {
                    ValueDecoder::Plain(plain) => plain.check_left(count, width)?,
                    ValueDecoder::ByteStreamSplit(split) => split.check_left(count)?,
                    ValueDecoder::Dictionary(_) if dictionary.is_none_or(Values::is_empty) => {
                        return Err(beyond_dictionary(0));
                    }
                    ValueDecoder::DeltaByteArray(delta) => {
                        for _ in 0..count {
                            let length = delta.append(&mut built)?;
                            if length != width {
                                return Err(Error::corrupt(format!(
                                    "a value of {length} bytes, not {width}"
                                )));
                            }
                        }
                    }
                    ValueDecoder::Nothing => return Err(self.mismatch()),
                    _ => {}
                }
                let out = store.room(capacity.saturating_mul(width), at * width, count * width)?;
                match (&mut *self, dictionary) {
                    (ValueDecoder::Plain(plain), _) => plain.decode_bytes(out)?,
                    (ValueDecoder::ByteStreamSplit(split), _) => split.decode(out)?,
                    (
                        ValueDecoder::Dictionary(hybrid),
                        Some(Values::FixedLenByteArray(entries) | Values::Int96(entries)),
                    ) => {
                        let indices = builder.indices.room(capacity, 0, count)?;
                        hybrid.look_up_fixed(entries.bytes(), width, indices, out)?;
                    }
                    (ValueDecoder::DeltaByteArray(_), _) => out.copy_from_slice(&built),
                    _ => return Err(self.mismatch()),
                }
            }
            Output::ByteArray(store, buffers) => {
                let out = store.room(capacity, at, count)?;
                match (&mut *self, dictionary) {
                    (ValueDecoder::PlainByteArray(plain), _) => {
                        let buffer = buffers.of_page(plain.bytes())?;
                        plain.decode(buffer, out)?;
                    }
                    (ValueDecoder::Dictionary(hybrid), Some(Values::ByteArray(entries))) => {
                        hybrid.look_up(entries.views(), out)?;
                    }
                    (ValueDecoder::DeltaLengthByteArray(delta), _) => {
                        let buffer = buffers.of_page(delta.bytes())?;
                        delta.decode(buffer, out)?;
                    }
                    (ValueDecoder::DeltaByteArray(delta), _) => {
                        let (built, buffer) = buffers.built()?;
                        for view in out {
                            let start = built.len();
                            delta.append(built)?;
                            let offset = u32::try_from(start)
                                .map_err(|_| Error::internal("a batch's strings beyond 4 GiB"))?;
                            *view = strings::view(&built[start..], buffer, offset);
                        }
                    }
                    _ => return Err(self.mismatch()),
                }
            }
        }
        builder.values += count;
        Ok(())
    }

    /// Decodes numbers; `(capacity, at, count)` is where they go.
    fn numbers<T: Plain + Default>(
        &mut self,
        store: &mut Store<T>,
        dictionary: Option<&Values>,
        (capacity, at, count): (usize, usize, usize),
        entries: impl Fn(&Values) -> Option<&marquetry_base::Buffer<T>>,
    ) -> Result<()> {
        let out = store.room(capacity, at, count)?;
        match self {
            ValueDecoder::Plain(plain) => plain.decode(out),
            ValueDecoder::Dictionary(hybrid) => match dictionary.and_then(entries) {
                Some(entries) => hybrid.look_up(entries, out),
                None => Err(self.mismatch()),
            },
            ValueDecoder::Delta32(delta) => match bytemuck_i32(out) {
                Some(out) => delta.decode(out),
                None => Err(self.mismatch()),
            },
            ValueDecoder::Delta64(delta) => match bytemuck_i64(out) {
                Some(out) => delta.decode(out),
                None => Err(self.mismatch()),
            },
            ValueDecoder::AlpFloat(alp) => match bytemuck::try_cast_slice_mut(as_bytes_mut(out)) {
                Ok(out) => alp.decode(out),
                Err(_) => Err(self.mismatch()),
            },
            ValueDecoder::AlpDouble(alp) => match bytemuck::try_cast_slice_mut(as_bytes_mut(out)) {
                Ok(out) => alp.decode(out),
                Err(_) => Err(self.mismatch()),
            },
            ValueDecoder::ByteStreamSplit(split) => split.decode(as_bytes_mut(out)),
            _ => Err(self.mismatch()),
        }
    }

    fn mismatch(&self) -> Error {
        match self {
            ValueDecoder::Nothing => crate::encoding::too_few_values(),
            _ => Error::internal("a decoder of another type than its column"),
        }
    }
}

fn bytemuck_i32<T: Plain>(out: &mut [T]) -> Option<&mut [i32]> {
    (size_of::<T>() == 4).then(|| bytemuck::try_cast_slice_mut(as_bytes_mut(out)).ok()).flatten()
}

fn bytemuck_i64<T: Plain>(out: &mut [T]) -> Option<&mut [i64]> {
    (size_of::<T>() == 8).then(|| bytemuck::try_cast_slice_mut(as_bytes_mut(out)).ok()).flatten()
}

/// Bytes with their length (`u32`, little-endian) before them, and what follows them.
pub(super) fn prefixed(body: &Bytes) -> Result<(Bytes, Bytes)> {
    let length = match body.first_chunk::<4>() {
        Some(length) => u32::from_le_bytes(*length) as usize,
        None => return Err(Error::corrupt("the page ends in the middle of a length")),
    };
    if length > body.len() - 4 {
        return Err(Error::corrupt(format!("runs of {length} bytes in a page with {} left", body.len() - 4)));
    }
    Ok((body.slice(4..4 + length), body.slice(4 + length..)))
}

/// Bytes of values that are copied or built at a time, where a value can be long; one value may be longer.
const SLICE_BYTES_MAX: usize = 128 << 10;
