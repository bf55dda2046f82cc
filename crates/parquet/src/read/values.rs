//! From a data page's bytes to values: which decoder, and where its values go.

use alloc::boxed::Box;
use alloc::format;

use marquetry_base::{Bytes, Detail, Error, Price, Result};
use marquetry_kernels::plain::as_bytes_mut;
use marquetry_kernels::{Plain, bits, gather, strings};

use super::builder::{Builder, Output, reserve};
use super::dictionary::Entries;
use crate::batch::Values;
use crate::batch::store::Store;
use crate::encoding::alp::Alp;
use crate::encoding::byte_stream_split::ByteStreamSplit;
use crate::encoding::delta::Delta;
use crate::encoding::delta_byte_array::{
    BUILT_BYTES, Built, DeltaByteArray, DeltaLengthByteArray, LeadingStreams, Value, check_width,
};
use crate::encoding::hybrid::{Hybrid, WIDTH_MAX, beyond_dictionary};
use crate::encoding::plain::{Accept, PlainByteArray, PlainFixed};
use crate::encoding::stream::Stream;
use crate::encoding::{Decoded, too_few_values};
use crate::format::Encoding;
use crate::growing::SLICE_BYTES;
use crate::memory::Memory;
use crate::schema::PhysicalType;

/// What the decoders cost, by the value; measured by the read benchmark, rounded up.
mod price {
    use super::Price;

    /// A copy; the wider the value, the dearer, up to 16 bytes. Byte strings are paid by the byte as well.
    pub(super) const FIXED: Price = Price { kib: 100, kilovalue: 1500 };
    /// Gather bytes from as many places; wide values are paid by the byte as well.
    pub(super) const BYTE_STREAM_SPLIT: Price = Price { kib: 400, kilovalue: 1500 };
    /// Unpack and look up.
    pub(super) const DICTIONARY: Price = Price { kib: 100, kilovalue: 2500 };
    /// Read a length, make a view; text is paid by the byte as well.
    pub(super) const BYTE_ARRAY: Price = Price { kib: 200, kilovalue: 10_000 };
    /// Unpack and sum up.
    pub(super) const DELTA: Price = Price::per_kilovalue(2500);
    /// Unpack and multiply; once a vector, look at the positions of its exceptions.
    pub(super) const ALP: Price = Price::per_kilovalue(12_000);
    /// Build a value of two parts, in memory that is new.
    pub(super) const DELTA_BYTE_ARRAY: Price = Price { kib: 700, kilovalue: 30_000 };
}

/// A decoder of a page's values, somewhere in the page.
#[derive(Debug)]
pub(super) enum ValueDecoder {
    /// PLAIN of one width.
    Plain(PlainFixed),
    /// PLAIN BOOLEAN: bits, and the next one's number in its byte.
    PlainBits(Stream, usize),
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
    /// One of the two before, while it is looked for where its streams begin.
    Leading(Box<LeadingStreams>, Encoding, Accept),
    /// BYTE_STREAM_SPLIT.
    ByteStreamSplit(ByteStreamSplit),
    /// A page without a value: every row is null.
    Nothing,
}

impl ValueDecoder {
    /// The decoder for a page's values, whose first bytes are there.
    pub(super) fn new(
        encoding: Encoding,
        physical_type: PhysicalType,
        mut values: Stream,
        dictionary: Option<&Entries>,
        accept: Accept,
    ) -> Result<ValueDecoder> {
        use PhysicalType::{Boolean, ByteArray, Double, FixedLenByteArray, Float, Int32, Int64};
        if values.left() == 0 && !matches!(encoding, Encoding::Plain | Encoding::ByteStreamSplit) {
            // All null; writers then leave out bit widths and headers. The others have none, and values of no bytes.
            return Ok(ValueDecoder::Nothing);
        }
        Ok(match (encoding, physical_type) {
            (Encoding::Plain, Boolean) => ValueDecoder::PlainBits(values, 0),
            (Encoding::Plain, ByteArray) => ValueDecoder::PlainByteArray(PlainByteArray::new(values, accept)),
            (Encoding::Plain, _) => ValueDecoder::Plain(PlainFixed::new(values)),
            (Encoding::RleDictionary | Encoding::PlainDictionary, _) => {
                if dictionary.is_none() {
                    return Err(Error::corrupt("indices into a dictionary that is not there"));
                }
                let width = values.there().first().copied().map_or(0, u32::from);
                if width > WIDTH_MAX {
                    return Err(Error::corrupt(format!("dictionary indices of {width} bits")));
                }
                values.advance(1);
                ValueDecoder::Dictionary(Hybrid::new(values, width))
            }
            (Encoding::Rle, Boolean) => {
                let Some(length) = values.there().first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
                else {
                    return Err(Error::corrupt("the page ends in the middle of a length"));
                };
                values.advance(4);
                let (length, left) = (length as usize, values.left());
                if length > left {
                    return Err(Error::corrupt(format!("runs of {length} bytes in a page with {left} left")));
                }
                values.cut(length);
                ValueDecoder::Rle(Hybrid::new(values, 1))
            }
            (Encoding::DeltaBinaryPacked, Int32) => ValueDecoder::Delta32(Box::new(Delta::new(values)?)),
            (Encoding::DeltaBinaryPacked, Int64) => ValueDecoder::Delta64(Box::new(Delta::new(values)?)),
            (Encoding::DeltaLengthByteArray, ByteArray) => {
                ValueDecoder::Leading(Box::new(LeadingStreams::new(values, 1)), encoding, accept)
            }
            (Encoding::DeltaByteArray, ByteArray | FixedLenByteArray(_)) => {
                ValueDecoder::Leading(Box::new(LeadingStreams::new(values, 2)), encoding, accept)
            }
            (Encoding::ByteStreamSplit, Int32 | Int64 | Float | Double | FixedLenByteArray(_)) => {
                let width = physical_type.width().unwrap_or(0);
                ValueDecoder::ByteStreamSplit(ByteStreamSplit::new(values, width)?)
            }
            (Encoding::Alp, Float) => ValueDecoder::AlpFloat(Box::new(Alp::new(&values)?)),
            (Encoding::Alp, Double) => ValueDecoder::AlpDouble(Box::new(Alp::new(&values)?)),
            (Encoding::Unknown(_), _) => {
                return Err(Error::unsupported(format!("the encoding {encoding}"))
                    .with(Detail::Encoding(encoding.number())));
            }
            _ => return Err(Error::corrupt(format!("the encoding {encoding} cannot hold {physical_type}"))),
        })
    }

    /// Goes on looking for where the page's streams begin. True once that is known; false where a stream wants bytes first, and
    /// after a slice's work, which is added up in `work`. `last` is the last value of the page before, should it count.
    pub(super) fn prepare(&mut self, last: &mut Value, work: &mut usize) -> Result<bool> {
        let ValueDecoder::Leading(streams, encoding, accept) = self else { return Ok(true) };
        if !streams.step(work)? {
            return Ok(false);
        }
        let (is_whole_values, accept) = (*encoding == Encoding::DeltaLengthByteArray, *accept);
        let ValueDecoder::Leading(streams, ..) = core::mem::replace(self, ValueDecoder::Nothing) else {
            return Err(Error::internal("streams that are gone"));
        };
        *self = if is_whole_values {
            ValueDecoder::DeltaLengthByteArray(Box::new(DeltaLengthByteArray::new(*streams, accept)?))
        } else {
            let mut decoder = DeltaByteArray::new(*streams, accept)?;
            decoder.go_on_from(core::mem::take(last));
            ValueDecoder::DeltaByteArray(Box::new(decoder))
        };
        Ok(true)
    }

    /// The stream that wants bytes before more can be decoded.
    pub(super) fn starved(&mut self) -> Option<&mut Stream> {
        let stream = match self {
            ValueDecoder::Plain(plain) => plain.stream(),
            ValueDecoder::PlainBits(stream, _) => stream,
            ValueDecoder::PlainByteArray(plain) => plain.stream(),
            ValueDecoder::Rle(hybrid) | ValueDecoder::Dictionary(hybrid) => hybrid.stream(),
            ValueDecoder::Delta32(delta) => delta.stream(),
            ValueDecoder::Delta64(delta) => delta.stream(),
            ValueDecoder::AlpFloat(alp) => return alp.starved(),
            ValueDecoder::AlpDouble(alp) => return alp.starved(),
            ValueDecoder::DeltaLengthByteArray(delta) => return delta.starved(),
            ValueDecoder::DeltaByteArray(delta) => return delta.starved(),
            ValueDecoder::Leading(streams, ..) => return streams.starved(),
            ValueDecoder::ByteStreamSplit(_) | ValueDecoder::Nothing => return None,
        };
        stream.is_starved().then_some(stream)
    }

    /// Bytes held beside a page's segments, and beside what the batch holds: of the chunk of a page, and of the values between which one
    /// is built.
    pub(super) fn held(&self, builder: &Builder) -> usize {
        let stream = match self {
            ValueDecoder::Plain(plain) => plain.peek_stream(),
            ValueDecoder::PlainBits(stream, _) => stream,
            ValueDecoder::PlainByteArray(plain) => plain.peek_stream(),
            ValueDecoder::Rle(hybrid) | ValueDecoder::Dictionary(hybrid) => hybrid.peek_stream(),
            ValueDecoder::Delta32(delta) => delta.peek_stream(),
            ValueDecoder::Delta64(delta) => delta.peek_stream(),
            ValueDecoder::DeltaLengthByteArray(delta) => delta.peek_stream(),
            ValueDecoder::DeltaByteArray(delta) => {
                let last = match delta.last() {
                    Value::Long(last) if builder.holds(last) => 0,
                    last => last.bytes().len(),
                };
                return delta.held() + last;
            }
            _ => return 0,
        };
        let chunk = stream.chunk().0;
        stream.held().saturating_sub(if builder.holds(chunk) { chunk.len() } else { 0 })
    }

    /// Runs begun since this was last asked: without asking, there is an end to what is decoded.
    pub(super) fn take_runs(&mut self) -> usize {
        match self {
            ValueDecoder::Rle(hybrid) | ValueDecoder::Dictionary(hybrid) => hybrid.take_runs(),
            _ => 0,
        }
    }

    /// The bytes that views of the next values point into, where they do.
    pub(super) fn chunk(&self) -> Option<&Bytes> {
        match self {
            ValueDecoder::PlainByteArray(plain) => Some(plain.bytes()),
            ValueDecoder::DeltaLengthByteArray(delta) => Some(delta.bytes()),
            _ => None,
        }
    }

    /// What a value costs.
    pub(super) fn price(&self, dictionary: Option<&Entries>) -> Price {
        match self {
            ValueDecoder::Plain(_) | ValueDecoder::PlainBits(..) | ValueDecoder::Nothing => price::FIXED,
            ValueDecoder::Rle(_) => price::FIXED,
            ValueDecoder::ByteStreamSplit(_) => price::BYTE_STREAM_SPLIT,
            ValueDecoder::Dictionary(_) => dictionary.and_then(Entries::price).unwrap_or(price::DICTIONARY),
            ValueDecoder::PlainByteArray(_) | ValueDecoder::DeltaLengthByteArray(_) => price::BYTE_ARRAY,
            ValueDecoder::Delta32(_) | ValueDecoder::Delta64(_) | ValueDecoder::Leading(..) => price::DELTA,
            ValueDecoder::AlpFloat(_) | ValueDecoder::AlpDouble(_) => price::ALP,
            ValueDecoder::DeltaByteArray(_) => price::DELTA_BYTE_ARRAY,
        }
    }

    /// How many of the next `count` values are decoded at a time at most, so that they are not too many bytes; at least one.
    pub(super) fn slice_values(&self, builder: &Builder, count: usize) -> usize {
        if self.wide_width(builder).is_some() {
            // It may take several slices: what else there is must not be placed before it is whole.
            return count.min(1);
        }
        match &builder.output {
            Output::Fixed(width, _) => count.min((self.slice_bytes() / width.max(&1)).max(1)),
            _ => count,
        }
    }

    /// Bytes of values that are decoded at a time.
    fn slice_bytes(&self) -> usize {
        match self {
            ValueDecoder::DeltaByteArray(_) => BUILT_BYTES,
            _ => SLICE_BYTES,
        }
    }

    /// True for indices into a dictionary.
    pub(super) fn is_dictionary(&self) -> bool {
        matches!(self, ValueDecoder::Dictionary(_))
    }

    /// Decodes values to the end of the batch's: at most `count`, and fewer where a stream wants bytes first or they are many
    /// bytes.
    pub(super) fn decode(
        &mut self,
        builder: &mut Builder,
        dictionary: Option<&Entries>,
        count: usize,
        memory: &mut Memory,
    ) -> Result<Decoded> {
        if count == 0 {
            return Ok(Decoded::default());
        }
        if let Some(width) = self.wide_width(builder) {
            let decoded = self.wide(builder, dictionary, width, memory)?;
            builder.values += decoded.values;
            return Ok(decoded);
        }
        if let (ValueDecoder::Dictionary(hybrid), Some(Entries::Segmented(segmented))) =
            (&mut *self, dictionary)
        {
            let values = builder.look_up(segmented, hybrid, count)?;
            // Byte strings of one width are copied, whatever it is.
            let width = if let Output::Fixed(width, _) = &builder.output { *width } else { 0 };
            return Ok(Decoded { values, bytes: values * width });
        }
        let dictionary = dictionary.and_then(Entries::whole);
        let mut decoded = self.decode_into(builder, dictionary, count, memory)?;
        if let ValueDecoder::ByteStreamSplit(split) = self {
            decoded.bytes += split.take_looked_up();
        }
        builder.values += decoded.values;
        Ok(decoded)
    }

    fn decode_into(
        &mut self,
        builder: &mut Builder,
        dictionary: Option<&Values>,
        count: usize,
        memory: &mut Memory,
    ) -> Result<Decoded> {
        let (capacity, at) = (builder.capacity, builder.values);
        if let (ValueDecoder::Dictionary(hybrid), Some(true)) = (&mut *self, builder.holds_indices) {
            let out = builder.indices.room(capacity, at, count)?;
            let values = hybrid.decode(out)?;
            let entries = dictionary.map_or(0, Values::len);
            if values > 0 && gather::max_u32(&out[..values]) as usize >= entries {
                return Err(beyond_dictionary(entries));
            }
            return Ok(Decoded::values(values));
        }
        let values = match &mut builder.output {
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
                let (byte, at) = (at / 8, at % 8);
                let out = store.room(capacity.div_ceil(8), byte, (at + count).div_ceil(8))?;
                match self {
                    ValueDecoder::PlainBits(stream, bit) => copy_bits(stream, bit, out, at, count)?,
                    ValueDecoder::Rle(hybrid) => hybrid.decode_booleans(out, at, count)?,
                    _ => return Err(self.mismatch()),
                }
            }
            Output::Fixed(..) => return self.fixed(builder, dictionary, count, memory),
            Output::ByteArray(..) => return self.byte_arrays(builder, dictionary, count, memory),
        };
        Ok(Decoded::values(values))
    }

    /// Decodes byte strings.
    fn byte_arrays(
        &mut self,
        builder: &mut Builder,
        dictionary: Option<&Values>,
        count: usize,
        memory: &mut Memory,
    ) -> Result<Decoded> {
        let (capacity, at) = (builder.capacity, builder.values);
        let Output::ByteArray(store, buffers) = &mut builder.output else { return Err(self.mismatch()) };
        let out = store.room(capacity, at, count)?;
        match (&mut *self, dictionary) {
            (ValueDecoder::PlainByteArray(plain), _) => {
                let chunk = plain.bytes().clone();
                let buffer = buffers.number_of(&chunk)?;
                let decoded = plain.decode(buffer, out)?;
                if decoded.values > 0 {
                    buffers.keep(chunk)?;
                }
                Ok(decoded)
            }
            (ValueDecoder::Dictionary(hybrid), Some(Values::ByteArray(entries))) => {
                Ok(Decoded::values(hybrid.look_up(entries.views(), out)?))
            }
            (ValueDecoder::DeltaLengthByteArray(delta), _) => {
                let chunk = delta.bytes().clone();
                let buffer = buffers.number_of(&chunk)?;
                let decoded = delta.decode(buffer, out)?;
                if decoded.values > 0 {
                    buffers.keep(chunk)?;
                }
                Ok(decoded)
            }
            (ValueDecoder::DeltaByteArray(delta), _) => {
                let mut decoded = Decoded::default();
                while decoded.values < count && decoded.bytes < BUILT_BYTES {
                    let (buffer, built) = buffers.building(memory)?;
                    let reserve = |built: &mut _, more| reserve(built, more, memory);
                    let short = delta.next_short(buffer, built, &mut out[decoded.values..count], reserve)?;
                    if short.values > 0 {
                        decoded.values += short.values;
                        decoded.bytes += short.bytes;
                        continue;
                    }
                    match delta.next(count - decoded.values, memory)? {
                        Built::Value(Value::Short(value)) => {
                            let (buffer, offset) = buffers.build(value, memory)?;
                            out[decoded.values] = strings::view(value, buffer, offset);
                            decoded.values += 1;
                            decoded.bytes += value.len();
                        }
                        Built::Value(Value::Long(value)) => {
                            out[decoded.values] = strings::view(value, buffers.push(value.clone())?, 0);
                            decoded.values += 1;
                        }
                        Built::Some(bytes) => decoded.bytes += bytes,
                        Built::Starved => break,
                    }
                }
                Ok(decoded)
            }
            _ => Err(self.mismatch()),
        }
    }

    /// Decodes byte strings of one width.
    fn fixed(
        &mut self,
        builder: &mut Builder,
        dictionary: Option<&Values>,
        count: usize,
        memory: &mut Memory,
    ) -> Result<Decoded> {
        let (capacity, at) = (builder.capacity, builder.values);
        let Output::Fixed(width, store) = &mut builder.output else { return Err(self.mismatch()) };
        let width = *width;
        let count = count.min((self.slice_bytes() / width.max(1)).max(1));
        // A schema can claim any width: first see that the values are there, then make room for them.
        let count = match self {
            ValueDecoder::Plain(plain) => plain.values_there(count, width)?,
            ValueDecoder::ByteStreamSplit(split) => split.check_left(count).map(|()| count)?,
            ValueDecoder::Dictionary(_) if dictionary.is_none_or(Values::is_empty) => {
                return Err(beyond_dictionary(0));
            }
            ValueDecoder::Nothing => return Err(self.mismatch()),
            _ => count,
        };
        let out = store.room(capacity.saturating_mul(width), at * width, count * width)?;
        let values = match (&mut *self, dictionary) {
            (ValueDecoder::Plain(plain), _) => plain.decode_bytes(out).map(|_| count)?,
            // Values of no bytes have no streams.
            (ValueDecoder::ByteStreamSplit(_), _) if width == 0 => count,
            (ValueDecoder::ByteStreamSplit(split), _) => split.decode(out)?,
            (
                ValueDecoder::Dictionary(hybrid),
                Some(Values::FixedLenByteArray(entries) | Values::Int96(entries)),
            ) => {
                let indices = builder.indices.room(capacity, 0, count)?;
                hybrid.look_up_fixed((entries.bytes(), entries.len()), width, indices, out)?
            }
            (ValueDecoder::DeltaByteArray(delta), _) => {
                let (mut values, mut bytes) = (0, 0);
                while values < count {
                    match delta.next(count - values, memory)? {
                        Built::Value(value) => {
                            check_width(value.bytes().len(), width)?;
                            out[values * width..(values + 1) * width].copy_from_slice(value.bytes());
                            values += 1;
                            bytes += width;
                        }
                        Built::Some(built) => {
                            bytes += built;
                            break;
                        }
                        Built::Starved => break,
                    }
                }
                return Ok(Decoded { values, bytes });
            }
            _ => return Err(self.mismatch()),
        };
        Ok(Decoded { values, bytes: values * width })
    }

    /// The width of byte strings of one width that is decoded in slices, if it is.
    fn wide_width(&self, builder: &Builder) -> Option<usize> {
        let Output::Fixed(width, _) = &builder.output else { return None };
        let is_wide = match self {
            _ if builder.holds_indices == Some(true) => false,
            ValueDecoder::ByteStreamSplit(split) => split.is_wide(),
            _ => *width > self.slice_bytes(),
        };
        is_wide.then_some(*width)
    }

    /// Decodes a slice of one wide byte string.
    fn wide(
        &mut self,
        builder: &mut Builder,
        dictionary: Option<&Entries>,
        width: usize,
        memory: &mut Memory,
    ) -> Result<Decoded> {
        let (capacity, at, done) = (builder.capacity, builder.values, builder.partial);
        let Output::Fixed(_, store) = &mut builder.output else { return Err(self.mismatch()) };
        if let (ValueDecoder::DeltaByteArray(delta), 0) = (&mut *self, done) {
            match delta.next(1, memory)? {
                Built::Value(value) => check_width(value.bytes().len(), width)?,
                Built::Some(bytes) => return Ok(Decoded { values: 0, bytes }),
                Built::Starved => return Ok(Decoded::default()),
            }
        }
        if let (ValueDecoder::Dictionary(hybrid), 0) = (&mut *self, done)
            && hybrid.decode(builder.indices.room(capacity, 0, 1)?)? == 0
        {
            return Ok(Decoded::default());
        }
        let mut slice = self.slice_bytes().min(width - done);
        let mut entry: &[u8] = &[];
        // First see that the value is there, then make room for a slice of it.
        let indices = builder.indices.room(capacity, 0, 1)?;
        match (&mut *self, dictionary) {
            (ValueDecoder::Plain(plain), _) if width - done > plain.peek_stream().left() => {
                return Err(too_few_values());
            }
            (ValueDecoder::ByteStreamSplit(split), _) => split.check_left(1)?,
            (ValueDecoder::Dictionary(_), _) => {
                let beyond = || beyond_dictionary(dictionary.map_or(0, Entries::len));
                let index = indices[0] as usize;
                entry = dictionary.and_then(|entries| entries.part(index, done, slice)).ok_or_else(beyond)?;
                slice = entry.len();
            }
            (ValueDecoder::Nothing, _) => return Err(self.mismatch()),
            _ => {}
        }
        let out = store.room(capacity.saturating_mul(width), at * width + done, slice)?;
        let (copied, bytes) = match (&mut *self, dictionary) {
            (ValueDecoder::Plain(plain), _) => {
                let copied = plain.decode_bytes(out)?;
                (copied, copied)
            }
            (ValueDecoder::ByteStreamSplit(split), _) => split.decode_bytes(done, out)?,
            (ValueDecoder::DeltaByteArray(delta), _) => {
                out.copy_from_slice(&delta.last().bytes()[done..done + slice]);
                (slice, slice)
            }
            (ValueDecoder::Dictionary(_), _) => {
                out.copy_from_slice(entry);
                (slice, slice)
            }
            _ => return Err(self.mismatch()),
        };
        builder.partial = done + copied;
        let is_whole = builder.partial == width;
        if is_whole {
            builder.partial = 0;
        }
        Ok(Decoded { values: usize::from(is_whole), bytes })
    }

    /// Decodes numbers; `(capacity, at, count)` is where they go.
    fn numbers<T: Plain + Default>(
        &mut self,
        store: &mut Store<T>,
        dictionary: Option<&Values>,
        (capacity, at, count): (usize, usize, usize),
        entries: impl Fn(&Values) -> Option<&marquetry_base::Buffer<T>>,
    ) -> Result<usize> {
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
            ValueDecoder::Nothing => too_few_values(),
            _ => Error::internal("a decoder of another type than its column"),
        }
    }
}

/// Copies booleans, as many as are there; `bit` is the first one's number in its byte.
fn copy_bits(stream: &mut Stream, bit: &mut usize, out: &mut [u8], at: usize, count: usize) -> Result<usize> {
    let there = (stream.there().len() * 8).saturating_sub(*bit).min(count);
    if there == 0 && stream.has(1) {
        return Err(too_few_values());
    }
    bits::copy(stream.there(), *bit, out, at, there).map_err(|_| too_few_values())?;
    stream.advance((*bit + there) / 8);
    *bit = (*bit + there) % 8;
    Ok(there)
}

fn bytemuck_i32<T: Plain>(out: &mut [T]) -> Option<&mut [i32]> {
    (size_of::<T>() == 4).then(|| bytemuck::try_cast_slice_mut(as_bytes_mut(out)).ok()).flatten()
}

fn bytemuck_i64<T: Plain>(out: &mut [T]) -> Option<&mut [i64]> {
    (size_of::<T>() == 8).then(|| bytemuck::try_cast_slice_mut(as_bytes_mut(out)).ok()).flatten()
}
