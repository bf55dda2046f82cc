//! Values that are not wanted: stepped over, where their encoding allows it, or decoded and dropped.
//!
//! | encoding | a value that is not wanted costs |
//! |---|---|
//! | PLAIN of one width, BOOLEAN, BYTE_STREAM_SPLIT | nothing: its place is computed |
//! | RLE, dictionary indices | nothing, but for each run |
//! | PLAIN BYTE_ARRAY, DELTA_*, ALP | as much as one that is: each is decoded, and dropped |

use marquetry_base::Result;

use super::values::ValueDecoder;
use crate::encoding::delta_byte_array::{BUILT_BYTES, Built, Value};
use crate::encoding::too_few_values;
use crate::growing::SLICE_BYTES;
use crate::memory::Memory;

/// Numbers and views that are decoded to be dropped at a time, on the stack.
const DROPPED: usize = 256;

/// What [`ValueDecoder::skip`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Skipped {
    /// Values stepped over.
    pub(super) values: usize,
    /// Those of them that were decoded, and cost what that costs; and bytes that it took.
    pub(super) decoded: usize,
    pub(super) bytes: usize,
}

impl Skipped {
    fn free(values: usize) -> Skipped {
        Skipped { values, ..Skipped::default() }
    }
}

impl ValueDecoder {
    /// True where a value that is not wanted costs nothing, by the table above.
    pub(super) fn skips_freely(&self) -> bool {
        match self {
            ValueDecoder::Plain(_)
            | ValueDecoder::PlainBits(..)
            | ValueDecoder::Rle(_)
            | ValueDecoder::Dictionary(_)
            | ValueDecoder::ByteStreamSplit(_)
            | ValueDecoder::Nothing => true,
            ValueDecoder::PlainByteArray(_)
            | ValueDecoder::Delta32(_)
            | ValueDecoder::Delta64(_)
            | ValueDecoder::AlpFloat(_)
            | ValueDecoder::AlpDouble(_)
            | ValueDecoder::DeltaLengthByteArray(_)
            | ValueDecoder::DeltaByteArray(_)
            | ValueDecoder::Leading(..) => false,
        }
    }

    /// Steps over values of `width` bytes, if they have one: at most `count`, and fewer where a stream wants bytes first. No more than
    /// `decoded_max` are decoded for it.
    pub(super) fn skip(
        &mut self,
        count: usize,
        width: usize,
        decoded_max: usize,
        memory: &mut Memory,
    ) -> Result<Skipped> {
        let some = count.min(decoded_max);
        let decoded = |values| Ok(Skipped { values, decoded: values, bytes: 0 });
        match self {
            ValueDecoder::Plain(plain) => plain.skip(count, width).map(Skipped::free),
            ValueDecoder::PlainBits(stream, bit) => {
                let there = (stream.there().len() * 8).saturating_sub(*bit).min(count);
                if there == 0 && count > 0 && stream.has(1) {
                    return Err(too_few_values());
                }
                stream.advance((*bit + there) / 8);
                *bit = (*bit + there) % 8;
                Ok(Skipped::free(there))
            }
            ValueDecoder::Rle(hybrid) | ValueDecoder::Dictionary(hybrid) => {
                hybrid.skip(count).map(Skipped::free)
            }
            ValueDecoder::ByteStreamSplit(split) => split.skip(count).map(|()| Skipped::free(count)),
            ValueDecoder::Delta32(delta) => decoded(drop_some(some, |out| delta.decode(out))?),
            ValueDecoder::Delta64(delta) => decoded(drop_some(some, |out| delta.decode(out))?),
            ValueDecoder::AlpFloat(alp) => decoded(drop_some(some, |out| alp.decode(out))?),
            ValueDecoder::AlpDouble(alp) => decoded(drop_some(some, |out| alp.decode(out))?),
            ValueDecoder::PlainByteArray(plain) => {
                let mut bytes = 0;
                let values = drop_some(some, |out| {
                    if bytes >= SLICE_BYTES {
                        return Ok(0);
                    }
                    let decoded = plain.decode(0, out)?;
                    bytes += decoded.bytes;
                    Ok(decoded.values)
                })?;
                Ok(Skipped { values, decoded: values, bytes })
            }
            ValueDecoder::DeltaLengthByteArray(delta) => {
                let mut bytes = 0;
                let values = drop_some(some, |out| {
                    if bytes >= SLICE_BYTES {
                        return Ok(0);
                    }
                    let decoded = delta.decode(0, out)?;
                    bytes += decoded.bytes;
                    Ok(decoded.values)
                })?;
                Ok(Skipped { values, decoded: values, bytes })
            }
            ValueDecoder::DeltaByteArray(delta) => {
                let (mut values, mut bytes) = (0, 0);
                while values < some && bytes < BUILT_BYTES {
                    match delta.next(some - values, memory)? {
                        Built::Value(Value::Short(value)) => {
                            values += 1;
                            bytes += value.len();
                        }
                        // Each slice of it was counted.
                        Built::Value(Value::Long(_)) => values += 1,
                        Built::Some(more) => bytes += more,
                        Built::Starved => break,
                    }
                }
                Ok(Skipped { values, decoded: values, bytes })
            }
            ValueDecoder::Leading(..) => Ok(Skipped::default()),
            ValueDecoder::Nothing if count == 0 => Ok(Skipped::default()),
            ValueDecoder::Nothing => Err(too_few_values()),
        }
    }
}

/// Decodes values into room that is used again, until there are `count`, or no more come.
fn drop_some<T: Copy + Default>(
    count: usize,
    mut decode: impl FnMut(&mut [T]) -> Result<usize>,
) -> Result<usize> {
    let (mut room, mut done) = ([T::default(); DROPPED], 0);
    while done < count {
        let some = decode(&mut room[..(count - done).min(DROPPED)])?;
        if some == 0 {
            break;
        }
        done += some;
    }
    Ok(done)
}
