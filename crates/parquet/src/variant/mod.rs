//! VARIANT: self-describing values in two byte strings, *metadata* (a dictionary of field names) and *value*.
//!
//! * [`Variant`] reads an encoded value in place: nothing is built, everything is checked as it is reached;
//! * [`JsonWriter`] and [`Variant::to_json`] print one as JSON;
//! * [`VariantBuilder`] encodes one;
//! * [`VariantColumns`] are the columns of a VARIANT group; a [`Reassembler`] reassembles values that are *shredded*
//!   into them.
//!
//! ```
//! # fn main() -> Result<(), marquetry_base::Error> {
//! use marquetry_base::Limits;
//! use marquetry_parquet::variant::{Metadata, Primitive, Variant, VariantBuilder};
//!
//! let mut builder = VariantBuilder::new(&Limits::DEFAULT);
//! builder.start_object()?;
//! builder.field("price")?;
//! builder.primitive(Primitive::Decimal4 { unscaled: 1250, scale: 2 })?;
//! builder.end()?;
//! let (metadata, value) = builder.finish()?;
//!
//! let variant = Variant::new(Metadata::new(&metadata)?, &value, &Limits::DEFAULT)?;
//! assert_eq!(variant.get("price")?.unwrap().primitive()?, Some(Primitive::Decimal4 { unscaled: 1250, scale: 2 }));
//! let mut json = Vec::new();
//! variant.to_json(&Limits::DEFAULT, &mut json)?;
//! assert_eq!(json, br#"{"price":12.50}"#);
//! # Ok(())
//! # }
//! ```
//!
//! # What a hostile value can cost
//!
//! A container's offsets may point anywhere among its values, so two fields could share one value, and a few bytes
//! could describe an enormous tree. A walk therefore adds up its values' lengths: a container whose values together
//! are longer than their space is corrupt, and a whole walk visits no more bytes than the value's length times its
//! depth. Depth is bounded by [`Limits::nesting`](marquetry_base::Limits::nesting), and nothing here recurses.
//!
//! Source: parquet-format's `VariantEncoding.md` and `VariantShredding.md`.

mod builder;
mod column;
mod columns;
mod encoder;
mod json;
mod metadata;
mod primitive;
mod shred;
mod value;

pub use builder::VariantBuilder;
pub use column::ShreddedType;
pub use columns::{ShreddedCell, VariantColumns};
pub use json::JsonWriter;
pub use metadata::Metadata;
pub use primitive::Primitive;
pub use shred::{Reassembler, ShreddedValue, TypedValue};
pub use value::{Array, Elements, Fields, Object, Value, Variant};

use core::cmp::Ordering;

/// Number `index` among the little-endian numbers of `width` (one to four) bytes in `bytes`.
#[inline]
fn number(bytes: &[u8], index: usize, width: usize) -> Option<usize> {
    let rest = bytes.get(index.checked_mul(width)?..)?;
    let word = match (rest.first_chunk::<4>(), width) {
        // A copy of variable length is a call: so four bytes are read, and the excess is cut off.
        (Some(four), 1..=4) => u32::from_le_bytes(*four) & (u32::MAX >> (32 - 8 * width)),
        (_, 1) => u32::from(*rest.first()?),
        (_, 2) => u32::from(u16::from_le_bytes(*rest.first_chunk()?)),
        (_, 3) => {
            let &[a, b, c] = rest.first_chunk()?;
            u32::from_le_bytes([a, b, c, 0])
        }
        _ => return None,
    };
    usize::try_from(word).ok()
}

/// Compares UTF-8 names in the order of UTF-16.
///
/// The format orders names by their bytes. Writers in Java that compare strings use this order instead, which differs
/// if a character beyond U+FFFF is compared with one from U+E000 to U+FFFF.
fn utf16_order(left: &[u8], right: &[u8]) -> Ordering {
    match left.iter().zip(right).find(|(left, right)| left != right) {
        // A first byte of at least 0xF0 begins a pair of surrogates, which are below U+E000 (first byte 0xEE).
        Some((&left, &right)) if left.min(right) >= 0xee && (left >= 0xf0) != (right >= 0xf0) => {
            right.cmp(&left)
        }
        Some((left, right)) => left.cmp(right),
        None => left.len().cmp(&right.len()),
    }
}

#[cfg(test)]
mod tests;
