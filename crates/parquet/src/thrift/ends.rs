//! Where numbers end, and how long strings are: what is skipped has to know no more.

use marquetry_base::cast::usize_of_u32;

use super::read::{Stop, Thrift};

/// Where a LEB128 number ends. `None` if its end has not arrived.
#[inline]
pub(super) fn varint_end(data: &[u8], at: usize) -> Thrift<Option<usize>> {
    let rest = data.get(at..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk::<8>() {
        let stops = !u64::from_le_bytes(*bytes) & 0x8080_8080_8080_8080;
        if stops != 0 {
            return Ok(Some(at + usize_of_u32(stops.trailing_zeros() / 8) + 1));
        }
    }
    match rest.iter().take(10).position(|byte| *byte < 0x80) {
        Some(last) => Ok(Some(at + last + 1)),
        None if rest.len() < 10 => Ok(None),
        None => Err(Stop::Corrupt(at, "a number longer than 64 bits")),
    }
}

/// A length below 2 GiB, and where it ends. `None` if its end has not arrived.
#[inline]
pub(super) fn length(data: &[u8], at: usize) -> Thrift<Option<(usize, usize)>> {
    match data.get(at) {
        Some(&byte) if byte < 0x80 => Ok(Some((byte.into(), at + 1))),
        _ => long_length(data, at),
    }
}

fn long_length(data: &[u8], at: usize) -> Thrift<Option<(usize, usize)>> {
    let Some(end) = varint_end(data, at)? else { return Ok(None) };
    let bytes = data.get(at..end).unwrap_or_default();
    let value = bytes.iter().rev().fold(0_u128, |value, byte| value << 7 | u128::from(byte & 0x7f));
    match i32::try_from(value).ok().and_then(|value| usize::try_from(value).ok()) {
        Some(value) => Ok(Some((value, end))),
        None => Err(Stop::Corrupt(at, "a length beyond 2 GiB")),
    }
}
