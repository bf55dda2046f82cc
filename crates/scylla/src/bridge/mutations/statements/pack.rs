//! Bound values, as the protocol has them: a length of 32 bits and as many bytes, or a negative length.

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

/// The length of a null.
const NULL: i32 = -1;
/// The length of what is not bound: it is left as it is.
const UNSET: i32 = -2;
/// The bytes of a length.
const LENGTH_BYTES: usize = 4;

pub(super) fn null(out: &mut Vec<u8>) {
    out.extend(NULL.to_be_bytes());
}

pub(super) fn unset(out: &mut Vec<u8>) {
    out.extend(UNSET.to_be_bytes());
}

/// A TTL in seconds; 0: it does not expire, whatever the table's default is.
pub(super) fn ttl(out: &mut Vec<u8>, seconds: u32) {
    out.extend(4_i32.to_be_bytes());
    out.extend(seconds.to_be_bytes());
}

pub(super) fn bytes(out: &mut Vec<u8>, value: &[u8]) -> Result<()> {
    out.extend(count(value.len())?);
    out.extend_from_slice(value);
    Ok(())
}

/// The value that `write` appends. So are elements of collections, and fields.
pub(super) fn value(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<()>) -> Result<()> {
    let at = out.len();
    out.extend([0; LENGTH_BYTES]);
    write(out)?;
    let length = count(out.len() - at - LENGTH_BYTES)?;
    if let Some(place) = out.get_mut(at..at + LENGTH_BYTES) {
        place.copy_from_slice(&length);
    }
    Ok(())
}

/// A number of bytes or elements.
pub(super) fn count(count: usize) -> Result<[u8; LENGTH_BYTES]> {
    let count = i32::try_from(count).map_err(|_| {
        Error::conversion(format!("{count} bytes or elements, more than CQL's protocol can say"))
    });
    count.map(i32::to_be_bytes)
}
