//! Values as CQL literals.

use alloc::string::ToString;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use super::value::Value;
use crate::cql::{LiteralError, literal};

/// Appends a value.
///
/// # Errors
///
/// `Conversion`, without a place, if CQL cannot express it.
#[inline(always)]
pub(super) fn write(out: &mut Vec<u8>, value: &Value<'_>) -> Result<()> {
    let unprintable = |error: LiteralError| Error::conversion(error.to_string());
    match value {
        Value::Boolean(value) => literal::boolean(out, *value),
        Value::Tinyint(value) => literal::integer(out, *value),
        Value::Smallint(value) => literal::integer(out, *value),
        Value::Int(value) => literal::integer(out, *value),
        Value::Bigint(value) => literal::integer(out, *value),
        Value::Unsigned(value) => literal::integer(out, *value),
        Value::Varint(bytes) => literal::varint(out, bytes).map_err(unprintable)?,
        Value::Float(value) => literal::float(out, *value),
        Value::Double(value) => literal::double(out, *value),
        Value::Decimal { unscaled, scale } => literal::decimal(out, *unscaled, *scale),
        Value::DecimalBytes { unscaled, scale } => {
            literal::decimal_bytes(out, unscaled, *scale).map_err(unprintable)?;
        }
        Value::Date(days) => literal::date(out, *days),
        Value::Time(nanos) => literal::time(out, *nanos).map_err(unprintable)?,
        Value::Timestamp(millis) => literal::timestamp(out, *millis),
        Value::Duration { months, days, nanos } => {
            literal::duration(out, *months, *days, *nanos).map_err(unprintable)?;
        }
        Value::Uuid(bytes) | Value::Timeuuid(bytes) => literal::uuid(out, bytes),
        Value::Inet(address) => literal::inet(out, *address),
        Value::Text { bytes, is_plain: true } => plain_text(out, bytes),
        Value::Text { bytes, is_plain: false } => literal::utf8(out, bytes),
        Value::Blob(bytes) => literal::blob(out, bytes),
    }
    Ok(())
}

/// Text without quotes, so that nothing must be doubled.
#[inline]
fn plain_text(out: &mut Vec<u8>, bytes: &[u8]) {
    out.push(b'\'');
    out.extend_from_slice(bytes);
    out.push(b'\'');
}
