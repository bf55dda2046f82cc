//! Values as those of a wider type, and without the slots of nulls.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Bitmap, Buffer, Bytes, Error, ErrorKind, Result};

use crate::read::{ByteArrays, FixedBytes, INLINE_BYTES_MAX, Values};
use crate::schema::Widening;

/// A dictionary that was widened, and what became of it: batch after batch has the same one.
pub(super) type LastDictionary = Option<(Arc<Values>, Arc<Values>)>;

/// Values of a wider type. A null's slot stays zero, in whatever the type is.
pub(super) fn widen(values: Values, widening: Widening, last: &mut LastDictionary) -> Result<Values> {
    if let Values::Dictionary(indices, dictionary) = values {
        if widening == Widening::None {
            return Ok(Values::Dictionary(indices, dictionary));
        }
        if let Some((from, to)) = last
            && Arc::ptr_eq(from, &dictionary)
        {
            return Ok(Values::Dictionary(indices, Arc::clone(to)));
        }
        let wider = Arc::new(widen_plain((*dictionary).clone(), widening)?);
        *last = Some((dictionary, Arc::clone(&wider)));
        return Ok(Values::Dictionary(indices, wider));
    }
    widen_plain(values, widening)
}

fn widen_plain(values: Values, widening: Widening) -> Result<Values> {
    Ok(match (widening, values) {
        (Widening::None, values) => values,
        (Widening::SignExtend, Values::Int32(values)) => {
            Values::Int64(collect(&values, |value| i64::from(*value))?)
        }
        (Widening::ZeroExtend, Values::Int32(values)) => {
            Values::Int64(collect(&values, |value| i64::from(value.cast_unsigned()))?)
        }
        (Widening::Double, Values::Float(values)) => {
            Values::Double(collect(&values, |value| f64::from(*value))?)
        }
        (Widening::Bytes, Values::Int32(values)) => {
            inline(collect(&values, |value| view(&value.to_be_bytes()))?)
        }
        (Widening::Bytes, Values::Int64(values)) => {
            inline(collect(&values, |value| view(&value.to_be_bytes()))?)
        }
        (Widening::Bytes, Values::FixedLenByteArray(values)) => fixed(&values)?,
        (Widening::Bytes, values @ Values::ByteArray(_)) => values,
        _ => return Err(Error::internal("values of another type than the schema's")),
    })
}

/// The values that are there, of those with a slot for each null.
pub(super) fn compact(values: &Values, validity: &Bitmap) -> Result<Values> {
    Ok(match values {
        Values::Int32(values) => Values::Int32(pick(values, validity)?),
        Values::Int64(values) => Values::Int64(pick(values, validity)?),
        Values::Float(values) => Values::Float(pick(values, validity)?),
        Values::Double(values) => Values::Double(pick(values, validity)?),
        Values::Boolean(bits) => {
            let there = validity.iter().zip(bits.iter()).filter(|(is_there, _)| *is_there);
            Values::Boolean(there.map(|(_, bit)| bit).collect())
        }
        Values::ByteArray(values) => {
            Values::ByteArray(ByteArrays::new(pick(values.views(), validity)?, Arc::clone(values.buffers())))
        }
        Values::Int96(values) => Values::Int96(pick_fixed(values, validity)?),
        Values::FixedLenByteArray(values) => Values::FixedLenByteArray(pick_fixed(values, validity)?),
        Values::Dictionary(indices, dictionary) => {
            Values::Dictionary(pick(indices, validity)?, Arc::clone(dictionary))
        }
    })
}

fn pick<T: Copy>(values: &[T], validity: &Bitmap) -> Result<Buffer<T>> {
    let mut out = room(values.len())?;
    out.extend(validity.iter().zip(values).filter(|(is_there, _)| *is_there).map(|(_, value)| *value));
    Ok(out.into())
}

fn pick_fixed(values: &FixedBytes, validity: &Bitmap) -> Result<FixedBytes> {
    let mut out = room(values.bytes().len())?;
    let mut there = 0;
    for row in (0..values.len()).filter(|&row| validity.get(row)) {
        out.extend_from_slice(values.get(row));
        there += 1;
    }
    Ok(FixedBytes::new(values.width(), there, out.into()))
}

fn collect<T, U>(values: &[T], of: impl Fn(&T) -> U) -> Result<Buffer<U>> {
    let mut out = room(values.len())?;
    out.extend(values.iter().map(of));
    Ok(out.into())
}

fn room<T>(length: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    out.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length.saturating_mul(size_of::<T>())))?;
    Ok(out)
}

/// A view that holds its bytes, of which there are at most [`INLINE_BYTES_MAX`].
fn view(bytes: &[u8]) -> u128 {
    let mut view = [0; 16];
    let length = bytes.len().min(INLINE_BYTES_MAX);
    // At most 12.
    view[0] = u8::try_from(length).unwrap_or(0);
    view[4..4 + length].copy_from_slice(&bytes[..length]);
    u128::from_le_bytes(view)
}

fn inline(views: Buffer<u128>) -> Values {
    Values::ByteArray(ByteArrays::new(views, Arc::default()))
}

/// Byte strings of one length as views into them.
fn fixed(values: &FixedBytes) -> Result<Values> {
    if u32::try_from(values.bytes().len()).is_err() {
        return Err(Error::new(ErrorKind::LimitExceeded, "more than 4 GiB of values in a batch"));
    }
    let bytes = Bytes::from_owner(values.bytes().clone());
    Ok(Values::ByteArray(ByteArrays::from_lengths(bytes, (0..values.len()).map(|_| values.width()))))
}
